"""The JSON of COCO instances: images, annotations and categories, also of challenges like MIDOG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import composed
from napari_panoptic.io.files.guard import check_file, check_length
from napari_panoptic.io.files.json_files import kept_until_changed, parsed_json, parsing
from napari_panoptic.io.files.stated_names import checked_name


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
    #: Whether the file is a list of results, which names no image.
    is_results: bool = False

    def stems(self, path: Path, what: str) -> dict[str, str]:
        """Return the names of the images without folder and ending, by their ids.

        Raises
        ------
        UnreadableFileError
            If two images have one stem, or one is not a name of a region.
        """
        # On Windows, programs write backslashes.
        names = {key: composed(name.replace("\\", "/")) for key, name in self.images.items()}
        stems = {key: PurePosixPath(name).stem or name for key, name in names.items()}
        for stem in stems.values():
            try:
                checked_name(stem, "an image")
            except ValueError as error:
                raise coco_refused(path, what, str(error)) from error
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
    return _parsed(path, what)


@kept_until_changed
def _parsed(path: Path, what: str) -> CocoContent:
    with parsing(path, what):
        table = parsed_json(path.read_bytes())
        results = isinstance(table, list)
        objects: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for entry in table if results else table["annotations"]:
            objects[_text(entry["image_id"], "image_id")].append(entry)
        if results:
            return CocoContent({key: key for key in objects}, objects, {}, is_results=True)
        images = _images(table["images"])
        categories = {int(c["id"]): str(c["name"]) for c in table.get("categories") or ()}
    if unknown := set(objects) - set(images):
        found = f"annotations of the image {min(unknown)[:40]}, which is not listed"
        raise coco_refused(path, what, found)
    sizes = {
        _text(image["id"], "the id of an image"): (image.get("height"), image.get("width"))
        for image in table["images"]
    }
    stated = {
        key: size for key, size in sizes.items() if all(type(n) is int and n > 0 for n in size)
    }
    return CocoContent(images, objects, categories, stated)


def _images(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the file name of each image by its id."""
    images: dict[str, str] = {}
    for entry in entries:
        key = _text(entry["id"], "the id of an image")
        name = _text(entry["file_name"], "file_name")
        if images.setdefault(key, name) != name:
            raise ValueError(f"several images have the id {key[:40]}")
    return images


def _text(value: Any, what: str) -> str:
    """Return a text, or a whole number as a text."""
    if type(value) is float and value.is_integer():  # as tables with missing values are written
        value = int(value)
    if type(value) not in (str, int):
        raise ValueError(f"expected a text or a whole number as {what}, found {value!r:.60}")
    return str(value)


def coco_refused(path: Path, what: str, found: str) -> UnreadableFileError:
    """Return the error for a file that is not valid."""
    return UnreadableFileError(
        f"expected {what}, found something else ({found}); export it again", path=path
    )
