"""HoVer-Net JSON: the contours of one region, read nucleus by nucleus, and written."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.json_files import parsed_json
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.class_numbers import TYPE_INFO, ClassNumbers, type_info_of
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.collect import BATCH, BETWEEN_PIXELS
from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said, Stated
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.trace import (
    imagescope_vertices,
    lines_of,
    outlined_entries,
    pixel_outlines,
)
from napari_panoptic.kernels.restore import components
from napari_panoptic.values.cohort import Source, Vertices
from napari_panoptic.values.labels import LabelImage

WHAT = 'HoVer-Net JSON, {"mag": …, "nuc": {"1": {"contour": [[x, y], …], "type": …}}}'
ENDING = ".hovernet.json"
LARGEST_HEAD = 1 << 20
"""Bytes that may stand before the nuclei, and behind them."""

# Some programs write the nuclei alone, without "mag" and "nuc".
_BEGIN = re.compile(rb'"nuc"\s*:\s*\{|\A\s*\{(?=\s*"[^"\\]{1,64}"\s*:\s*\{[^{}]*"contour")')
# A nucleus holds numbers, texts and lists, and no object of its own.
_NUCLEUS = re.compile(rb'\s*"([^"\\]{1,64})"\s*:\s*(\{[^{}]*\})\s*(,?)')


def read_objects(source: OutlineFile) -> Iterator[Said]:
    """Yield the nuclei of a HoVer-Net JSON file.

    A contour is that of OpenCV: its vertices are pixels of the nucleus, rounded to whole ones, and
    the pixels on and within it are its own. Holes are not in such files. The class comes from
    ``type``, see `napari_panoptic.io.formats.class_numbers`, the score from ``type_prob``. Ids are
    the keys of the nuclei where these ascend, as HoVer-Net writes them, else running numbers. The
    magnification is ``mag``: HoVer-Net writes contours of a slide in px of the magnification at
    which it was processed, and of a smaller image, without ``mag``, in px of that.
    """
    with (
        source.path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        at, is_more, count = _begin(data), True, 0
        while is_more and (match := _NUCLEUS.match(data, at)):
            count += 1
            yield _nucleus(match[1], match[2], count)
            at, is_more = match.end(), bool(match[3])
            if count % BATCH == 0:
                source.progress(at, len(data))
        yield Stated(magnification=_checked_rest(data, at, count, is_more=is_more))
        source.progress(len(data), len(data))


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Format`.

    Each has one contour, as HoVer-Net writes them: they read as objects without holes
    and of one (8-connected) piece pixel by pixel; `losses` lists the others. Ids become keys, and
    ``type`` is the number that is read as the class: by the table of names beside the original
    file, if there is one, else by that beside the new file, else by position, from 1. Scores of
    objects are written as ``type_prob``, ``null`` if there is none. Connected pieces of the
    excluded area come last, with the name of their class as ``type``. The file appears only when it
    is complete.
    """
    original = objects.original
    is_own = original is not None and original.source == Source.HOVERNET
    known = (*original.object_paths[:1], path) if original is not None and is_own else (path,)
    table = next((own for own in known if type_info_of(own)), None)
    types = ClassNumbers(table, objects.scheme).written()
    is_first = True
    with replaced_when_complete(path) as file:
        file.write(b'{"mag":null,"nuc":{')
        for entry in outlined_entries(objects, _outer_contours):
            if entry.outline is None:
                continue
            contour, _ = entry.outline
            kind = types[entry.class_index - 1] if entry.class_index else entry.class_name
            text = f'"{entry.id}":'.encode() + orjson.dumps(_entry(contour, kind, entry.score))
            file.write((b"\n" if is_first else b",\n") + text)
            is_first = False
        file.write(b"\n}}\n")
    return (path,)


def write_hovernet(folder: Path, count: int, regions: Iterable[Objects]) -> tuple[Finding, ...]:  # noqa: ARG001
    """Write a file for each region, and a table of the names of their class numbers."""
    findings: list[Finding] = []
    table: dict[str, Any] = {}
    for objects in regions:
        if not table:
            named = zip(objects.scheme.names, objects.scheme.colours, strict=True)
            table = {str(number): [*own] for number, own in enumerate(named, start=1)}
            with replaced_when_complete(folder / TYPE_INFO) as file:
                file.write(orjson.dumps(table))
        write_files(folder / f"{objects.region}{ENDING}", replace(objects, original=None))
        findings += losses(objects)
    return tuple(findings)


def losses(objects: Objects) -> tuple[Finding, ...]:
    """Return findings about objects and excluded areas whose pixels change."""
    entries = outlined_entries(objects, _outer_contours)
    changed = [entry for entry in entries if entry.outline is not None and not entry.outline[1]]
    ids = tuple(entry.id for entry in changed if entry.class_index)
    areas = tuple(entry.number for entry in changed if not entry.class_index)
    found = (
        (counted(len(ids), "object has", "objects have"), ids, ids),
        (counted(len(areas), "ambiguous area has", "ambiguous areas have"), areas, ()),
    )
    return tuple(
        Finding(
            FindingKind.FALLBACK,
            f"{what} holes or several pieces, and HoVer-Net one contour each: holes were "
            f"filled, and pieces joined by lines of one pixel: {english_list(numbers)}",
            region=objects.region,
            team=objects.team or None,
            count=len(numbers),
            object_ids=ids,
        )
        for what, numbers, ids in found
        if numbers
    )


def _outer_contours(labels: LabelImage) -> Iterator[tuple[NDArray[np.int32], bool] | None]:
    """Yield the contour of each object, and whether it has all of it; None without a pixel."""
    from scipy.ndimage import find_objects  # takes long to import, and only writing needs it

    n = len(labels)
    rings = np.diff(pixel_outlines(labels.index, n).first_ring)
    boxes = find_objects(labels.index, n)
    for row, contour in enumerate(lines_of(labels)):
        if rings[row] > 1:
            yield _outer_contour(labels.index[boxes[row]] == row + 1, boxes[row])
        else:
            yield (contour, True) if rings[row] else None


def _outer_contour(
    mask: NDArray[np.bool_], box: tuple[slice, slice]
) -> tuple[NDArray[np.int32], bool]:
    """Trace an object without its holes; return also whether the contour has all of it."""
    from scipy.ndimage import binary_fill_holes

    filled = binary_fill_holes(mask)
    line = imagescope_vertices(filled.astype(np.int32), 1)[0]
    pieces = int(components(filled.astype(np.uint8)).max())
    corner = np.array([box[1].start, box[0].start], np.int32)
    return line + corner, pieces == 1 and np.array_equal(filled, mask)


def _entry(contour: NDArray[np.int32], kind: int | str, score: float) -> dict[str, Any]:
    (x0, y0), (x1, y1) = contour.min(axis=0).tolist(), contour.max(axis=0).tolist()
    return {
        "bbox": [[y0, x0], [y1 + 1, x1 + 1]],
        "centroid": contour.mean(axis=0).tolist(),
        "contour": contour.tolist(),
        "type_prob": None if math.isnan(score) else score,
        "type": kind,
    }


def _begin(data: mmap.mmap) -> int:
    """Return where the nuclei begin."""
    begin = _BEGIN.search(data, 0, LARGEST_HEAD)
    if begin is None:
        raise _malformed('it has no "nuc"')
    return begin.end()


def _checked_rest(data: mmap.mmap, at: int, count: int, *, is_more: bool) -> float | None:
    """Check what stands around the nuclei, and return the magnification."""
    if len(data) - at > LARGEST_HEAD:
        raise _malformed(f"entry {count + 1} is not a nucleus", count + 1)
    try:
        frame = parsed_json(data[: _begin(data)] + data[at:])
    except ValueError:
        raise _malformed(f"it is cut off or damaged after {count} nuclei") from None
    is_frame = isinstance(frame, dict) and (not frame or frame.get("nuc") == {})
    if not is_frame or (is_more and count):
        raise _malformed(f"it is damaged after {count} nuclei")
    value = frame.get("mag")
    if value is None:
        return None  # coordinates are those of the image
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1000:
        raise _malformed(f'its "mag" is not a magnification but {str(value)[:40]!r}')
    return float(value)


def _malformed(reason: str, number: int | None = None) -> UnreadableFileError:
    return UnreadableFileError(f"expected {WHAT}, but {reason}; export it again", object_id=number)


def _nucleus(key: bytes, text: bytes, number: int) -> Outline:
    """Return an entry."""
    try:
        entry = parsed_json(text)
        contour, kind = np.array(entry["contour"], np.float64), entry.get("type")
        if contour.size and (contour.ndim != 2 or contour.shape[1] != 2):
            raise ValueError
        hash(kind)
    except (KeyError, ValueError, TypeError) as error:
        name = key.decode("utf-8", errors="replace")
        reason = f"the nucleus '{name}' has no contour of x, y pairs, or no plain type"
        raise _malformed(reason, number) from error
    rounded = np.rint(contour)
    return Outline(
        [rounded],
        kind,
        id=int(key) if key.isdigit() and len(key) < 10 else -1,
        score=entry.get("type_prob"),
        notes=[] if np.array_equal(rounded, contour) else [BETWEEN_PIXELS],
    )


FORMAT = polygon_format(
    OutlineReader(
        read_objects,
        what=WHAT,
        vertices=Vertices.PIXEL_CENTRES,
        renumbered="the keys of the nuclei are not ascending numbers: they were renumbered",
        most_bytes=None,
    ),
    name=Source.HOVERNET,
    title="HoVer-Net JSON",
    endings=(ENDING,),
    write=write_files,
    write_all=write_hovernet,
    losses=losses,
)
