"""COCO instances: polygons and run lengths of the objects of one or many regions.

The definition is https://cocodataset.org/#format-data and #format-results; run lengths are packed
as the masks of pycocotools are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files import check_file
from napari_panoptic.io.formats.format import Item
from napari_panoptic.io.formats.polygons.polygon_format import Outline
from napari_panoptic.io.formats.polygons.trace import pixel_outlines
from napari_panoptic.io.guard import check_length, largest_px

WHAT = "COCO instances (images, annotations with a segmentation, categories), or a list of results"
CROWD = "Ambiguous"
"""The class of a crowd: an area in which single objects are not annotated."""
_CHARACTER_0 = 48
_MOST_DIGITS = 12
"""Of a packed run length: more than 2^31 need."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class _Content:
    """The parsed JSON: image id -> name, and -> annotations; category id -> name."""

    images: Mapping[str, str]
    objects: Mapping[str, Sequence[Mapping[str, Any]]]
    categories: Mapping[int, str]


def instance_items(path: Path) -> Iterator[Item]:
    """List the regions of a file: the stems of its images, or the ids of images in results.

    Raises
    ------
    UnreadableFileError
        If it is not valid, or two images have one stem.
    """
    content = _read(path)
    stems = {key: PurePosixPath(name).stem or name for key, name in content.images.items()}
    if len({stem.casefold() for stem in stems.values()}) < len(stems):
        raise _refused(path, "several images have the same name")
    for key, stem in stems.items():
        yield Item(stem, key, is_only=len(stems) == 1)


def read_objects(path: Path, item: str | None) -> Iterator[Outline]:
    """Yield the objects of one region.

    The class is the name of the category; in results, and for categories that are not described,
    its number. Crowds have the class `CROWD`. Polygons of one annotation are parts of one
    object. Run lengths give their pixels. Annotations without a segmentation, such as mere boxes,
    refuse the file.

    Parameters
    ----------
    path
        The file.
    item
        The id of the image; None if there is only one.
    """
    content = _read(path)
    if item is None:
        if len(content.images) != 1:
            raise ValueError(f"expected one image, found {len(content.images)}")
        item = next(iter(content.images))
    if item not in content.images:
        raise ValueError(f"there is no image {item} any more; open the cohort again")
    room = _Room()
    for entry in content.objects.get(item, ()):
        category = int(entry["category_id"])
        value: str | int = CROWD if entry.get("iscrowd") else category
        if value == category:
            value = content.categories.get(category, category)
        id_ = entry.get("id")
        score = entry.get("score")
        yield (
            _rings(entry.get("segmentation"), room),
            value,
            id_ if type(id_) is int and 0 < id_ < 2**62 else None,
            math.nan if score is None else float(score),
        )


class _Room:
    """How many pixels of run lengths may still be decoded: a few bytes can claim many."""

    def __init__(self) -> None:
        self._left = largest_px()

    def take(self, pixels: int) -> None:
        self._left -= pixels
        if self._left < 0:
            raise ValueError("its run lengths are larger than images may be (--max-pixels)")


def _rings(segmentation: Any, room: _Room) -> list[NDArray[np.float64]]:
    """Return the rings of polygons or run lengths, along the edges of pixels."""
    if isinstance(segmentation, dict):
        return _rings_of_runs(segmentation, room)
    if not isinstance(segmentation, list) or not segmentation:
        raise ValueError("an annotation has no segmentation; a box alone outlines no nucleus")
    rings = []
    for numbers in segmentation:
        points = np.array(numbers, np.float64)
        if points.ndim != 1 or len(points) % 2:
            raise ValueError("a polygon is a list x, y, x, y, …")
        rings.append(points.reshape(-1, 2))
    return rings


def _rings_of_runs(runs: Mapping[str, Any], room: _Room) -> list[NDArray[np.float64]]:
    height, width = (int(length) for length in runs["size"])
    if height < 1 or width < 1:
        raise ValueError("run lengths need a size [height, width]")
    counts = runs["counts"]
    lengths = unpacked(counts) if isinstance(counts, str) else np.array(counts, np.int64)
    if lengths.ndim != 1 or (lengths < 0).any() or (lengths > height * width).any():
        raise ValueError("run lengths must be whole numbers that fit into the image")
    ends = np.cumsum(lengths)
    if (ends[-1] if len(ends) else 0) != height * width:
        raise ValueError("run lengths do not add up to the pixels of the image")
    first, last = ends[0::2], ends[1::2]
    first = first[: len(last)]
    first, last = first[first < last], last[first < last]
    if not len(first):
        return []
    left, right = int(first[0]) // height, int(last[-1] - 1) // height
    is_within = (first // height == (last - 1) // height).all()
    top = int((first % height).min()) if is_within else 0
    bottom = int(((last - 1) % height).max()) if is_within else height - 1
    room.take((bottom - top + 1) * (right - left + 1))
    mask = np.zeros((right - left + 1, bottom - top + 1), np.int32)
    if is_within:
        for start, end in zip(first.tolist(), last.tolist(), strict=True):
            column, row = divmod(start, height)
            mask[column - left, row - top : end - column * height - top] = 1
    else:
        flat = mask.reshape(-1)
        for start, end in zip(first.tolist(), last.tolist(), strict=True):
            flat[start - left * height : end - left * height] = 1
    outlines = pixel_outlines(np.ascontiguousarray(mask.T), 1)
    corner = np.array([left, top], np.float64)
    return [ring.astype(np.float64) + corner for ring in outlines.rings_of(0)]


def unpacked(text: str) -> IntArray:
    """Return the run lengths that pycocotools packs into a text.

    A number has five bits per character, the lowest first, above the character "0"; a sixth bit
    says that more follow, and the last five bits carry the sign. From the fourth on, numbers are
    differences from the one before the last.

    Raises
    ------
    ValueError
        For a text that is no such list.
    """
    lengths: list[int] = []
    value = shift = 0
    for code in text.encode("ascii"):
        bits = code - _CHARACTER_0
        if not 0 <= bits < 64 or shift > 5 * _MOST_DIGITS:
            raise ValueError("packed run lengths are damaged")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
        value = shift = 0
    if shift:
        raise ValueError("packed run lengths are cut off")
    if lengths and not -(2**62) < min(lengths) <= max(lengths) < 2**62:
        raise ValueError("packed run lengths are damaged")
    return np.array(lengths, np.int64)


def _read(path: Path) -> _Content:
    check_file(path, WHAT)
    check_length(path, WHAT)
    status = path.stat()
    return _parsed(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _parsed(path: Path, mtime_ns: int, size: int) -> _Content:  # noqa: ARG001 - the file as it was
    try:
        table = orjson.loads(path.read_bytes())
        results = isinstance(table, list)
        objects: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for entry in table if results else table["annotations"]:
            objects[str(entry["image_id"])].append(entry)
        if results:
            return _Content({key: key for key in objects}, objects, {})
        images = {str(image["id"]): str(image["file_name"]) for image in table["images"]}
        categories = {int(c["id"]): str(c["name"]) for c in table.get("categories", ())}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise _refused(path, str(error)) from error
    except LookupError as error:
        raise _refused(path, f"the key {error} is missing") from error
    if unknown := set(objects) - set(images):
        raise _refused(path, f"annotations of the image {min(unknown)[:40]}, which is not listed")
    return _Content(images, objects, categories)


def _refused(path: Path, found: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, found something else ({found}); export it again", path=path
    )
