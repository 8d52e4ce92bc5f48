"""COCO instances: polygons and run lengths of the objects of one or many regions.

The definition is https://cocodataset.org/#format-data and #format-results; run lengths are packed
as the masks of pycocotools are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.guard import largest_px
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.coco_files import CocoContent, read_coco
from napari_panoptic.io.formats.format import FileItem, Objects
from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said, Stated
from napari_panoptic.io.formats.polygons.outline_rules import lie_between
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.trace import border_rings, outlined_entries, pixel_outlines
from napari_panoptic.values.cohort import ClassScheme, Crowds, Source, Vertices
from napari_panoptic.values.labels import LabelImage, size_text

TITLE = "COCO instances"
WHAT = "COCO instances (images, annotations with a segmentation, categories), or a list of results"
FILE_NAME = "instances.json"
OBJECT_ID = "object_id"
"""Our key of the id of an object, where ``id`` is a running number over many regions."""
_CHARACTER_0 = 48
_MOST_DIGITS = 12
"""Largest number of digits of a packed run length: more than 2^31 needs."""

_LEAST_RUNS = 2
"""Least number of runs of an object whose distance has a meaning."""

IntArray = NDArray[np.int64]


def instance_items(path: Path) -> Iterator[FileItem]:
    """List the regions of a file: the stems of its images, or the ids of images in results.

    Raises
    ------
    UnreadableFileError
        If it is not valid, or two images have one stem.
    """
    content = read_coco(path, WHAT)
    stems = content.stems(path, WHAT)
    for key, stem in stems.items():
        yield FileItem(stem, key, is_only=len(stems) == 1, is_keyed=content.is_results)


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the objects of one region.

    The class is the name of the category; in results, and for categories that are not described,
    its number. Crowds are areas in which single objects are not annotated: they are excluded,
    unless the rules call them objects. Polygons of one annotation are parts of one object. Run
    lengths give their pixels. A file of annotations without any segmentation, such as mere boxes,
    is refused.
    """
    content, rules = read_coco(file.path, WHAT), file.rules
    key = _image(content, file.item)
    entries = content.objects.get(key, ())
    room = _Room()
    shift = _shift_of_runs(entries) if rules.vertices is Vertices.PIXEL_CENTRES else 0.0
    has_outlines = any(e.get("segmentation") for own in content.objects.values() for e in own)
    for entry in entries:
        category = int(entry["category_id"])
        id_ = entry.get(OBJECT_ID, entry.get("id"))
        segmentation = entry.get("segmentation")
        yield Outline(
            # Among others one without a segmentation is an object without a pixel.
            _rings(segmentation, room, shift) if segmentation or not has_outlines else [],
            content.categories.get(category, category),
            id=id_ if type(id_) is int and 0 < id_ < 2**62 else None,
            score=entry.get("score"),
            is_excluded=bool(entry.get("iscrowd")) and rules.crowds is not Crowds.OBJECTS,
        )
    yield Stated(shape=_stated_size(content, key))
    yield from room.findings()


def _image(content: CocoContent, item: str | None) -> str:
    """Return the id of the image of a region."""
    if item is None:
        if len(content.images) != 1:
            raise ValueError(f"expected one image, found {len(content.images)}")
        item = next(iter(content.images))
    if item not in content.images:
        raise ValueError(f"the file has no image {item} any longer; open the cohort again")
    return item


def _stated_size(content: CocoContent, key: str) -> tuple[int, int] | None:
    """Return height and width of an image by its entry, or else by its run lengths."""
    sizes = {
        (int(runs["size"][0]), int(runs["size"][1]))
        for entry in content.objects.get(key, ())
        if isinstance(runs := entry.get("segmentation"), dict)
    }
    stated = content.sizes.get(key)
    if len(sizes | {stated} - {None}) > 1:
        own = "one image" if stated is None else f"an image of {size_text(stated)}"
        texts = english_list([size_text(size) for size in sorted(sizes)])
        raise ValueError(f"run lengths of {texts} in {own}")
    return stated or next(iter(sizes), None)


class _Room:
    """How many pixels of run lengths may still be decoded: a few bytes can claim many.

    Also counts objects whose runs are as far apart as pixels of a column, or else of a row.
    """

    def __init__(self) -> None:
        self._left = largest_px()
        self._by_columns = self._by_rows = 0

    def note(self, starts: NDArray[np.int64], height: int, width: int) -> None:
        """Count an object by the starts of its runs."""
        step = float(np.median(np.diff(starts))) if len(starts) > _LEAST_RUNS else 0.0
        self._by_columns += abs(step - height) <= 1
        self._by_rows += abs(step - width) <= 1 < abs(step - height)

    def findings(self) -> Iterator[Finding]:
        """Report that pixels were counted row by row, if they were."""
        if self._by_rows > self._by_columns:
            message = (
                f"run lengths of {counted(self._by_rows, 'object')} seem to go row by row, those "
                f"of COCO go column by column: save them again in Fortran order, as pycocotools "
                f"does"
            )
            yield Finding(FindingKind.CONVENTION, message, count=self._by_rows)

    def take(self, pixels: int) -> None:
        self._left -= pixels
        if self._left < 0:
            raise ValueError("its run lengths are larger than images may be (--max-pixels)")


def _shift_of_runs(entries: Sequence[Mapping[str, Any]]) -> float | None:
    """Return how the outlines of run lengths keep their pixels beside polygons through centres."""
    found = [entry.get("segmentation") for entry in entries]
    polygons = [np.array(ring, np.float64) for own in found if type(own) is list for ring in own]
    xy = np.concatenate([np.zeros(0), *polygons])
    return -0.5 if lie_between(xy.reshape(-1, 2)) else None


def _rings(segmentation: Any, room: _Room, shift: float | None) -> list[NDArray[np.float64]]:
    """Return the rings of polygons or of run lengths; for ``shift`` see `_rings_of_runs`."""
    if isinstance(segmentation, dict):
        return _rings_of_runs(segmentation, room, shift)
    if not isinstance(segmentation, list) or not segmentation:
        raise ValueError(
            "an annotation has no segmentation; a box alone outlines no nucleus (boxes around "
            "points belong into a cohort of detections)"
        )
    rings = []
    for numbers in segmentation:
        points = np.array(numbers, np.float64)
        if points.ndim != 1 or len(points) % 2:
            raise ValueError("a polygon is a list x, y, x, y, …")
        rings.append(points.reshape(-1, 2))
    return rings


def _rings_of_runs(
    runs: Mapping[str, Any], room: _Room, shift: float | None
) -> list[NDArray[np.float64]]:
    """Return rings along the edges of pixels, moved by ``shift``; None: through border pixels."""
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
    room.note(first, height, width)
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
    image = np.ascontiguousarray(mask.T)
    rings = border_rings(image, 1)[0] if shift is None else pixel_outlines(image, 1).rings_of(0)
    corner = np.array([left, top], np.float64) + (shift or 0.0)
    return [ring.astype(np.float64) + corner for ring in rings]


def unpacked(text: str) -> IntArray:
    """Return the run lengths that pycocotools packs into a text.

    A number has five bits per character, the lowest first, above the character "0"; a sixth bit
    says that more follow, and the last five bits carry the sign. From the fourth on, numbers are
    differences from the one before the last.

    Raises
    ------
    ValueError
        For a text that is not such a list.
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


# --- writing --------------------------------------------------------------------------------------


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Format`."""
    _write(path, [objects])
    return (path,)


def write_instances(folder: Path, count: int, regions: Iterable[Objects]) -> tuple[Finding, ...]:  # noqa: ARG001
    """Write ``instances.json`` with every region as an image.

    Objects have run lengths, which keep every pixel. Excluded areas become crowds of the ambiguous
    class, one per connected piece. Ids of annotations are running numbers over all regions, as
    pycocotools expects; ids of objects are kept beside them.
    """
    _write(folder / FILE_NAME, regions)
    return ()


def _write(path: Path, regions: Iterable[Objects]) -> None:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    scheme: ClassScheme | None = None
    for number, objects in enumerate(regions, start=1):
        scheme = objects.scheme
        height, width = objects.labels.shape
        name = f"{objects.region}.png"
        images.append({"id": number, "file_name": name, "height": height, "width": width})
        for entry in _entries(objects):
            annotations.append({"id": len(annotations) + 1, "image_id": number, **entry})
    table = {
        "images": images,
        "annotations": annotations,
        "categories": [] if scheme is None else _categories(scheme),
    }
    with replaced_when_complete(path) as file:
        file.write(orjson.dumps(table))


def _categories(scheme: ClassScheme) -> list[dict[str, Any]]:
    """Return the classes, numbered from 1, and the ambiguous one as the last."""
    names = [*scheme.names, *([scheme.ambiguous] if scheme.ambiguous else [])]
    return [
        {"id": number, "name": name, "supercategory": "nucleus"}
        for number, name in enumerate(names, start=1)
    ]


def _entries(objects: Objects) -> Iterator[dict[str, Any]]:
    for entry in outlined_entries(objects, _encoded):
        is_area = entry.class_index == 0
        yield {
            # The ambiguous class is the last.
            "category_id": len(objects.scheme.names) + 1 if is_area else entry.class_index,
            "iscrowd": int(is_area),
            **entry.outline,
            OBJECT_ID: entry.id,
            **({} if math.isnan(entry.score) else {"score": entry.score}),
        }


def _encoded(labels: LabelImage) -> Iterator[dict[str, Any]]:
    """Yield the run lengths, area and box of each object, in the order of their rows."""
    height, width = labels.shape
    # Pixels by object, and of each object column by column.
    columns = labels.index.T
    place = np.flatnonzero(columns)
    row = columns.ravel()[place]
    order = np.argsort(row, kind="stable")
    place, row = place[order].astype(np.int64), row[order]
    is_first = np.ones(len(place), np.bool_)
    is_first[1:] = (np.diff(place) != 1) | (np.diff(row) != 0)
    first = np.flatnonzero(is_first)
    following = np.append(first[1:], len(place))[: len(first)]  # nothing follows in no pixels
    starts, ends = place[first], place[following - 1] + 1
    bounds = np.searchsorted(row[first], np.arange(1, len(labels) + 2)).tolist()
    for low, high in pairwise(bounds):
        edges = np.stack([starts[low:high], ends[low:high]], axis=1).ravel()
        lengths = np.diff(np.concatenate([[0], edges, [height * width]]))
        counts = packed(lengths[: len(lengths) - (lengths[-1] == 0)].tolist())
        yield {
            "segmentation": {"size": [height, width], "counts": counts},
            "area": int(lengths[1::2].sum()),
            "bbox": _box(starts[low:high], ends[low:high] - 1, height),
        }


def _box(first: IntArray, last: IntArray, height: int) -> list[int]:
    """Return left, top, width and height of runs of pixels, given by column."""
    if not len(first):
        return [0, 0, 0, 0]
    left, right = int(first[0]) // height, int(last[-1]) // height
    goes_on = (first // height != last // height).any()
    top = 0 if goes_on else int((first % height).min())
    bottom = height - 1 if goes_on else int((last % height).max())
    return [left, top, right - left + 1, bottom - top + 1]


def packed(lengths: Sequence[int]) -> str:
    """Return run lengths as pycocotools packs them; `unpacked` has the definition."""
    text = bytearray()
    for place, length in enumerate(lengths):
        rest = length - lengths[place - 2] if place > 2 else length
        while True:
            bits, rest = rest & 31, rest >> 5
            is_last = rest == (-1 if bits & 16 else 0)
            text.append(_CHARACTER_0 + bits + (0 if is_last else 32))
            if is_last:
                break
    return text.decode("ascii")


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=None),
    name=Source.COCO_INSTANCES,
    title=TITLE,
    endings=(".coco.json",),
    items=instance_items,
    write=write_files,
    write_all=write_instances,
)
