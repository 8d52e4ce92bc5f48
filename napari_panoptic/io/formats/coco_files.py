"""The JSON of COCO instances: images, annotations and categories, also of challenges like MIDOG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import composed
from napari_panoptic.io.files.guard import check_file, check_length
from napari_panoptic.io.files.json_files import parsed_json, parsing


@dataclass(frozen=True)
class CocoContent:
    """The parsed JSON."""

    #: Id of each image -> its file name; in results, which have no names, the id.
    images: Mapping[str, str]
    #: Id of an image -> its annotations, as in the file.
    objects: Mapping[str, Sequence[Mapping[str, Any]]]
    #: Id of a category -> its name.
    categories: Mapping[int, str]
    #: Id of an image -> its height and width in px, where the file states both.
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def stems(self, path: Path, what: str) -> dict[str, str]:
        """Return the names of the images without folder and ending, by their ids.

        Raises
        ------
        UnreadableFileError
            If two images have one stem.
        """
        # On Windows, programs write backslashes.
        names = {key: composed(name.replace("\\", "/")) for key, name in self.images.items()}
        stems = {key: PurePosixPath(name).stem or name for key, name in names.items()}
        if len({stem.casefold() for stem in stems.values()}) < len(stems):
            raise coco_refused(path, what, "several images have the same name")
        return stems


def read_coco(path: Path, what: str) -> CocoContent:
    """Read a file; the result is cached until the file changes.

    Parameters
    ----------
    path
        The file.
    what
        The expected content, for errors.

    Raises
    ------
    UnreadableFileError
        If it is not valid.
    """
    check_file(path, what)
    check_length(path, what)
    status = path.stat()
    return _parsed(path, what, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _parsed(path: Path, what: str, mtime_ns: int, size: int) -> CocoContent:  # noqa: ARG001 - the file as it was
    with parsing(path, what):
        table = parsed_json(path.read_bytes())
        results = isinstance(table, list)
        objects: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for entry in table if results else table["annotations"]:
            objects[str(entry["image_id"])].append(entry)
        if results:
            return CocoContent({key: key for key in objects}, objects, {})
        images = {str(image["id"]): str(image["file_name"]) for image in table["images"]}
        categories = {int(c["id"]): str(c["name"]) for c in table.get("categories") or ()}
    if unknown := set(objects) - set(images):
        found = f"annotations of the image {min(unknown)[:40]}, which is not listed"
        raise coco_refused(path, what, found)
    sizes = {
        str(image["id"]): (image.get("height"), image.get("width")) for image in table["images"]
    }
    stated = {
        key: size for key, size in sizes.items() if all(type(n) is int and n > 0 for n in size)
    }
    return CocoContent(images, objects, categories, stated)


def coco_refused(path: Path, what: str, found: str) -> UnreadableFileError:
    """Return the error for a file that is not valid."""
    return UnreadableFileError(
        f"expected {what}, found something else ({found}); export it again", path=path
    )
