"""HoVer-Net JSON: the contours of one region, read nucleus by nucleus, and written."""

from __future__ import annotations

import math
import mmap
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, FindingKind, UnreadableFileError, english_list
from napari_panoptic.io.files import check_file, replaced_when_complete
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.contours import as_contours
from napari_panoptic.io.formats.polygons.geojson_writer import connected_areas
from napari_panoptic.io.formats.polygons.model import (
    LARGEST_COORDINATE,
    ODD_SHAPES,
    PolygonFile,
    PolygonStore,
    ReadingStoppedError,
    object_findings,
    unknown_class_findings,
)
from napari_panoptic.io.formats.polygons.trace import imagescope_vertices, pixel_outlines
from napari_panoptic.kernels.restore import components
from napari_panoptic.nuclei.values.cohort import ClassScheme
from napari_panoptic.nuclei.values.labels import LabelImage, Scores

WHAT = 'HoVer-Net JSON, {"mag": …, "nuc": {"1": {"contour": [[x, y], …], "type": …}}}'
BATCH = 1000
"""Nuclei that are held as Python objects at a time."""
LARGEST_HEAD = 1 << 20
"""Bytes that may stand before the nuclei, and behind them."""

_BEGIN = re.compile(rb'"nuc"\s*:\s*\{')
# A nucleus holds numbers, texts and lists, and no object of its own.
_NUCLEUS = re.compile(rb'\s*"([^"\\]{1,64})"\s*:\s*(\{[^{}]*\})\s*(,?)')


def read_hovernet(
    path: Path,
    scheme: ClassScheme,
    *,
    progress: Callable[[int, int], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> PolygonFile:
    """Read the nuclei of a HoVer-Net JSON file.

    A contour is that of OpenCV: its vertices are pixels of the nucleus, and
    the pixels on and within it are its own. The class comes from ``type``, see
    `napari_panoptic.io.formats.class_numbers`. Ids are the keys of the nuclei where
    these ascend, as HoVer-Net writes them, else running numbers.

    Parameters
    ----------
    path
        The file.
    scheme
        The classes.
    progress
        Is told bytes read and bytes in all.
    is_wanted
        Asked now and then whether to go on.

    Returns
    -------
    PolygonFile
        With int32 vertices, rounded to whole pixels where they are none, and
        ``type_prob`` as scores.
        Holes are not in such files. Its magnification is ``mag``: HoVer-Net
        gives contours of a slide in px of the magnification at which it was
        processed, and of a smaller image, without ``mag``, in px of that.

    Raises
    ------
    UnreadableFileError
        Where the file is missing, empty, cut off or of another form. It is
        refused as a whole, as half an annotation would do harm.
    ReadingStoppedError
        Where ``is_wanted`` said no.
    """
    check_file(path, WHAT)
    nuclei = _Nuclei(path, scheme)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for at in _walk(data, path, nuclei):
            if not is_wanted():
                raise ReadingStoppedError("reading was stopped", path=path)
            if progress is not None:
                progress(at, len(data))
    return nuclei.finished()


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Form`."""
    write_hovernet(path, objects.labels, ambiguous=objects.ambiguous, scheme=objects.scheme)
    return (path,)


def losses(objects: Objects) -> tuple[Finding, ...]:
    """Return which objects and excluded areas come back with other pixels than they have."""
    found: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    if changed := _changed(objects.labels):
        found.append((f"{len(changed)} object(s)", changed, changed))
    if objects.ambiguous is not None:
        areas = connected_areas(objects.ambiguous, objects.ambiguous_class)
        if odd := _changed(areas):
            found.append((f"{len(odd)} ambiguous area(s)", odd, ()))
    return tuple(
        Finding(
            FindingKind.FALLBACK,
            f"{what} have holes or several pieces, and HoVer-Net one contour each: holes were "
            f"filled, and pieces joined by lines of one pixel: {english_list(numbers)}",
            region=objects.region,
            team=objects.team or None,
            count=len(numbers),
            object_ids=ids,
        )
        for what, numbers, ids in found
    )


def _changed(labels: LabelImage) -> tuple[int, ...]:
    """Return the ids of objects whose outer contour is not all there is of them."""
    return tuple(int(labels.ids[row]) for row, _, is_same in _outer_contours(labels) if not is_same)


@dataclass(frozen=True)
class WrittenContours:
    """What came of writing objects as contours.

    Parameters
    ----------
    count
        How many objects were written.
    changed
        Ids of those that the form cannot hold as they are: their holes were
        filled, or their pieces joined by lines of one pixel.
    """

    count: int
    changed: tuple[int, ...]


def write_hovernet(
    path: Path,
    labels: LabelImage,
    *,
    magnification: float | None = None,
    ambiguous: NDArray[np.bool_] | None = None,
    scheme: ClassScheme | None = None,
) -> WrittenContours:
    """Write objects as HoVer-Net does: one contour each.

    `read_hovernet` gives objects without holes and of one (8-connected) piece
    back pixel by pixel. The scores of the objects are written as ``type_prob``,
    ``null`` where there is none. The file appears only when it is complete.

    Parameters
    ----------
    path
        Where to write; an existing file is replaced.
    labels
        The objects; ids become keys, and ``type`` is the number of the class, from 1.
    magnification
        That of the image, written as ``mag``; None where unknown.
    ambiguous
        bool image (y, x) of an excluded area, or None: its connected pieces
        are written last, with the name of the class as ``type``.
    scheme
        Tells that name.
    """
    name = "Ambiguous" if scheme is None else scheme.ambiguous or "Ambiguous"
    sides: list[tuple[LabelImage, int, str | None]] = [(labels, 0, None)]
    if ambiguous is not None:
        sides.append((connected_areas(ambiguous, name), int(labels.ids.max(initial=0)), name))
    changed: list[int] = []
    count = 0
    with replaced_when_complete(path) as file:
        file.write(b'{"mag":' + orjson.dumps(magnification) + b',"nuc":{')
        for objects, offset, kind in sides:
            scores = objects.scores.tolist()
            for row, contour, is_same in _outer_contours(objects):
                id_ = int(objects.ids[row]) + offset
                changed += [] if is_same else [id_]
                number = int(objects.class_index[row]) if kind is None else kind
                made = _entry(contour, number, scores[row])
                entry = f'"{id_}":'.encode() + orjson.dumps(made)
                file.write((b",\n" if count else b"\n") + entry)
                count += 1
        file.write(b"\n}}\n")
    return WrittenContours(count, tuple(changed))


def _outer_contours(labels: LabelImage) -> Iterator[tuple[int, NDArray[np.int32], bool]]:
    """Yield the row, the contour, and whether it says all, of each object with a pixel."""
    from scipy.ndimage import find_objects  # takes long to import, and only writing needs it

    n = len(labels)
    rings = np.diff(pixel_outlines(labels.index, n).first_ring)
    boxes = find_objects(labels.index, n)
    for row, contour in enumerate(imagescope_vertices(labels.index, n)):
        if rings[row] > 1:
            yield row, *_outer_contour(labels.index[boxes[row]] == row + 1, boxes[row])
        elif rings[row]:
            yield row, contour, True


def _outer_contour(
    mask: NDArray[np.bool_], box: tuple[slice, slice]
) -> tuple[NDArray[np.int32], bool]:
    """Trace an object without its holes; tell whether the contour says all of it."""
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


def _walk(data: mmap.mmap, path: Path, nuclei: _Nuclei) -> Iterator[int]:
    """Read all nuclei; tell now and then how many bytes are read."""
    begin = _BEGIN.search(data, 0, LARGEST_HEAD)
    if begin is None:
        raise _malformed(path, 'it has no "nuc"')
    at, is_more = begin.end(), True
    while is_more and (match := _NUCLEUS.match(data, at)):
        nuclei.add(match[1], match[2])
        at, is_more = match.end(), bool(match[3])
        if len(nuclei) % BATCH == 0:
            nuclei.store()
            yield at
    nuclei.store()
    if len(data) - at > LARGEST_HEAD:
        raise _malformed(path, f"nucleus {len(nuclei) + 1} is none", len(nuclei) + 1)
    try:
        frame = orjson.loads(data[: begin.end()] + data[at:])
    except orjson.JSONDecodeError:
        reason = f"it is cut off or damaged behind {len(nuclei)} nuclei"
        raise _malformed(path, reason) from None
    if not isinstance(frame, dict) or frame.get("nuc") != {} or (is_more and len(nuclei)):
        raise _malformed(path, f"it is damaged behind {len(nuclei)} nuclei")
    nuclei.magnification = _magnification(frame.get("mag"), path)
    yield len(data)


def _magnification(value: Any, path: Path) -> float | None:
    """Read at which magnification coordinates are; None where they are those of the image."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1000:
        raise _malformed(path, f'its "mag" is no magnification but {str(value)[:40]!r}')
    return float(value)


def _score(value: Any) -> float:
    """Return the probability of a nucleus's class; NaN where there is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else math.nan


def _malformed(path: Path, reason: str, number: int | None = None) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, but {reason}; export it again", path=path, object_id=number
    )


class _Nuclei:
    """Turns entries into objects, and notes what is odd."""

    def __init__(self, path: Path, scheme: ClassScheme) -> None:
        self._path, self._scheme = path, scheme
        self._classes = ClassNumbers(path, scheme)
        self._store = PolygonStore(np.int32)
        self._class_index = array("h")
        self._keys = array("q")
        self._scores = array("d")
        self._unknown: dict[str | None, list[int]] = defaultdict(list)
        self._contours: list[NDArray[np.float64]] = []
        self._between: list[int] = []
        self.magnification: float | None = None

    def __len__(self) -> int:
        return len(self._class_index)

    def add(self, key: bytes, text: bytes) -> None:
        """Take an entry."""
        number = len(self) + 1
        try:
            entry = orjson.loads(text)
            contour = np.array(entry["contour"], np.float64)
            kind = entry.get("type")
        except (orjson.JSONDecodeError, KeyError, ValueError, TypeError) as error:
            raise self._malformed(key, number) from error
        if contour.size == 0:
            contour = contour.reshape(0, 2)
        is_plane = contour.ndim == 2 and contour.shape[1] == 2
        if not is_plane or not (np.abs(contour) <= LARGEST_COORDINATE).all():
            raise self._malformed(key, number)
        if isinstance(kind, list | dict):
            raise self._malformed(key, number)
        rounded = np.rint(contour)
        if not np.array_equal(rounded, contour):
            self._between.append(number)
        index, unknown = self._classes.of(kind)
        if index < 0:
            self._unknown[unknown].append(number)
        self._class_index.append(index)
        self._scores.append(_score(entry.get("type_prob")))
        self._keys.append(int(key) if key.isdigit() and len(key) < 10 else -1)
        self._contours.append(rounded)

    def store(self) -> None:
        """Keep what was added in few arrays."""
        sizes = np.array([len(contour) for contour in self._contours], np.int64)
        one = np.ones(len(sizes), np.int64)
        vertices = np.concatenate([np.zeros((0, 2)), *self._contours])
        self._store.add(vertices, sizes, np.zeros(len(sizes), np.bool_), one)
        self._contours = []

    def finished(self) -> PolygonFile:
        """Return everything, with the findings."""
        index = np.array(self._class_index, np.int16)
        polygons, odd = self._store.finished(index)
        keys = np.array(self._keys, np.int64)
        findings: list[Finding] = []
        if (keys > 0).all() and (np.diff(keys) > 0).all():
            polygons = replace(polygons, ids=keys[polygons.ids - 1])
        else:
            keys = np.arange(1, len(keys) + 1)
            message = "the keys of the nuclei are no ascending numbers: they were numbered anew"
            findings.append(Finding(FindingKind.FALLBACK, message, path=self._path))
        unknown = {
            name: keys[np.array(numbers) - 1].tolist() for name, numbers in self._unknown.items()
        }
        findings += unknown_class_findings(unknown, self._scheme, self._path)
        between = np.array(self._between, np.int64)
        between = between[index[between - 1] >= 0]
        message = "contour(s) with vertices between pixels, which were rounded to whole ones"
        odd_kinds = [(FindingKind.FALLBACK, between, message)]
        odd_kinds += [(kind, odd[kind], ODD_SHAPES[kind]) for kind in odd]
        for kind, rows, text in odd_kinds:
            findings += object_findings(kind, keys[rows - 1], text, self._path)
        scores = np.array(self._scores, np.float64)
        return PolygonFile(
            as_contours(polygons),
            None,
            tuple(findings),
            magnification=self.magnification,
            scores=None if np.isnan(scores).all() else Scores(keys, scores),
        )

    def _malformed(self, key: bytes, number: int) -> UnreadableFileError:
        name = key.decode("utf-8", errors="replace")
        return _malformed(
            self._path,
            f"the nucleus '{name}' has no contour of x, y pairs, or no plain type",
            number,
        )
