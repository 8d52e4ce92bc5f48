"""Collects the outlined objects of one file while it is read, and reports the problems."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.polygons.model import (
    AMBIGUOUS,
    LARGEST_COORDINATE,
    UNKNOWN,
    PixelRule,
    PolygonFile,
    Polygons,
    starts_of,
)
from napari_panoptic.io.formats.polygons.outline import MadeBy, Note, Outline, Said, Stated
from napari_panoptic.io.formats.scores import score_value
from napari_panoptic.kernels.fill import CROSSING, DEGENERATE, bounds, odd_shapes
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import Scores

BATCH = 1000
"""Objects that are held as Python objects at a time."""
LARGEST_ID = 2**31 - 1
"""Larger ids are replaced by running numbers."""
_MOST_DETAILS, _LONGEST_DETAILS = 5, 200
UNREADABLE_VERTICES: Note = (
    FindingKind.UNREADABLE,
    "polygon(s) with vertices without a readable X and Y, drawn without these vertices",
)
DECIMAL_COMMAS: Note = (
    FindingKind.UNREADABLE,
    "polygon(s) with X or Y that have a decimal comma, drawn without these vertices: write decimal "
    "points, or export again under an English locale",
)
BETWEEN_PIXELS: Note = (
    FindingKind.FALLBACK,
    "contour(s) with vertices between pixels, which were rounded to whole ones",
)
_NO_SCORE: Note = (
    FindingKind.FALLBACK,
    "object(s) whose score is not a finite number, read without it",
)
_OUTLINES_OF_AREAS: Note = (
    FindingKind.FALLBACK,
    "annotation(s) without a class beside detections, taken for outlines of areas and left out",
)
_OUTLINES_OF_DETECTIONS: Note = (
    FindingKind.FALLBACK,
    "annotation(s) with a class around detections, taken for outlines of areas and left out; "
    "if these are nuclei, export them without the detections",
)
_ODD_SHAPES = {
    DEGENERATE: (
        FindingKind.DEGENERATE,
        "polygon(s) with fewer than three different vertices, kept as they are",
    ),
    CROSSING: (
        FindingKind.SELF_CROSSING,
        "polygon(s) whose outline crosses itself, filled by the even-odd rule",
    ),
}


class Collector:
    """Collects what a file says in document order, in about the memory that the objects need.

    Parameters
    ----------
    path, what
        The file and what it should be, for findings and errors.
    scheme
        The classes.
    numbers
        The lookup of the classes of objects.
    rule
        Which pixels the objects have. By centres, a last vertex that repeats the first is dropped.
    renumbered
        The finding if objects have ids that do not ascend and are replaced by
        running numbers; empty for none.
    """

    def __init__(
        self,
        path: Path,
        what: str,
        scheme: ClassScheme,
        numbers: ClassNumbers,
        rule: PixelRule = PixelRule.CENTRE,
        renumbered: str = "",
    ) -> None:
        self._path, self._what = path, what
        self._scheme, self._numbers = scheme, numbers
        self._rule, self._renumbered = rule, renumbered
        self._vertices: NDArray[np.float64] = np.empty((1024, 2), np.float64)
        self._used = 0
        self._rings: list[NDArray[np.float64]] = []
        self._flushed = 0
        self._odd: list[NDArray[np.uint8]] = []
        self._ring_sizes, self._object_sizes = array("q"), array("q")
        self._is_hole = array("b")
        self._class_index, self._ids, self._scores = array("h"), array("q"), array("d")
        self._unknown: dict[str | None, list[int]] = defaultdict(list)
        self._notes: dict[Note, list[int]] = defaultdict(list)
        self._details: dict[str, dict[str, None]] = defaultdict(dict)
        self._left_out = Counter[tuple[FindingKind, str]]()
        self._found: list[Finding] = []
        self._stated = Stated()
        self._crowds = 0
        self._detections, self._around = array("q"), array("q")
        self._unnamed: list[int] = []

    def __len__(self) -> int:
        """Count the objects, also those that were left out and take a number."""
        return len(self._class_index)

    def add(self, said: Said) -> None:
        """Add the next entry of the file."""
        if isinstance(said, Outline):
            self._add(said)
        elif isinstance(said, Finding):
            self._found.append(said)
        elif isinstance(said, Stated):
            stated = (getattr(said, each.name) for each in fields(Stated))
            known = (getattr(self._stated, each.name) for each in fields(Stated))
            self._stated = Stated(
                *(a if b is None else b for a, b in zip(known, stated, strict=True))
            )
        else:
            if said.detail:
                self._details[said.message][said.detail] = None
            if said.is_numbered:
                self._object_sizes.append(0)
                self._class_index.append(UNKNOWN)
                self._ids.append(len(self) if said.id is None else said.id)
                self._scores.append(math.nan)
                self._notes[said.kind, said.message].append(len(self))
            else:
                self._left_out[said.kind, said.message] += 1

    def _add(self, said: Outline) -> None:
        number = len(self) + 1
        rings = [self._ring(ring, number) for ring in said.rings]
        index, called = self._class_of(said, number)
        self._rings += rings
        self._is_hole.extend(said.is_hole or (place > 0 for place in range(len(rings))))
        self._object_sizes.append(len(rings))
        self._class_index.append(index)
        self._ids.append(number if said.id is None else said.id if said.id <= LARGEST_ID else 0)
        score = math.nan if said.score is None else score_value(said.score)
        self._scores.append(score)
        if said.score is not None and math.isnan(score):
            self._note(_NO_SCORE, number)
        for note in said.notes:
            self._note(note, number)
        if index == UNKNOWN:
            self._unknown[called].append(number)
        if said.made_by is MadeBy.PROGRAM:
            self._detections.append(number)
        elif said.made_by is MadeBy.HAND:
            if called is None:
                self._unnamed.append(number)
            elif index > AMBIGUOUS:
                self._around.append(number)
        if number - self._flushed >= BATCH:
            self._flush()

    def _ring(self, ring: ArrayLike, number: int) -> NDArray[np.float64]:
        points = np.asarray(ring, np.float64)
        if points.ndim == 2 and points.shape[1] == 2:
            return points
        if points.size:
            raise self._refused("an outline that is not a list of x, y pairs", number)
        return points.reshape(0, 2)

    def _class_of(self, said: Outline, number: int) -> tuple[int, str | None]:
        """Return the class index of an object, and the name to report an unknown one by."""
        if said.is_excluded:
            is_area = self._scheme.canonical(str(said.entry)) == self._scheme.ambiguous
            self._crowds += not (is_area and self._scheme.ambiguous is not None)
            return AMBIGUOUS, None
        try:
            return self._numbers.of(said.entry)
        except TypeError:
            raise self._refused("a class that is not a name or a number", number) from None

    def _refused(self, found: str, number: int) -> UnreadableFileError:
        message = f"expected {self._what}, found object {number} with {found}; export it again"
        return UnreadableFileError(message, path=self._path, object_id=number)

    def _note(self, note: Note, number: int) -> None:
        """Report an object if its class is known."""
        self._notes[note].append(-number)

    def finished(self) -> PolygonFile:
        """Return everything, with the findings."""
        self._flush()
        self._vertices.resize((self._used, 2), refcheck=False)
        index = np.asarray(self._class_index, np.int16)
        if self._detections:
            for number in self._unnamed:
                index[number - 1] = UNKNOWN
                self._notes[_OUTLINES_OF_AREAS].append(number)
        found = list(self._found)
        for (kind, message), n in self._left_out.items():
            text = counted(n, self._detailed(message))
            found.append(Finding(kind, text, path=self._path, count=n))
        ids = np.asarray(self._ids, np.int64)
        if (ids <= 0).any() or (np.diff(ids) <= 0).any():
            ids = np.arange(1, len(ids) + 1)
            if self._renumbered:
                message, n = self._renumbered, len(ids)
                found.append(Finding(FindingKind.FALLBACK, message, path=self._path, count=n))
        polygons = Polygons(
            self._vertices,
            starts_of(np.asarray(self._ring_sizes, np.int64)),
            np.asarray(self._is_hole, np.bool_),
            starts_of(np.asarray(self._object_sizes, np.int64)),
            ids,
            index,
            self._rule,
        )
        known = index != UNKNOWN
        found += self._findings(ids, known)
        found += self._numbers.findings(self._path)
        if not known.all():
            polygons = polygons.of_rows(known)
        if self._detections and self._around:
            inner, outer = ids[np.array(self._detections) - 1], ids[np.array(self._around) - 1]
            is_area = _areas_around(polygons, outer, inner)
            found += object_findings(_OUTLINES_OF_DETECTIONS, polygons.ids[is_area], self._path)
            polygons = polygons.of_rows(~is_area)
        scores = np.asarray(self._scores, np.float64)
        return PolygonFile(
            polygons,
            self._stated.mpp,
            tuple(found),
            magnification=self._stated.magnification,
            scores=None if np.isnan(scores).all() else Scores(ids, scores),
            shape=self._stated.shape,
            crowds=self._crowds,
        )

    def _detailed(self, message: str) -> str:
        details = list(self._details.get(message, ()))[:_MOST_DETAILS]
        return message.replace("{}", ", ".join(details)[:_LONGEST_DETAILS]) if details else message

    def _flush(self) -> None:
        """Copy the vertices of the last objects into one array, and look at their shapes."""
        vertices = np.concatenate([np.zeros((0, 2)), *self._rings])
        ring_sizes = np.fromiter(map(len, self._rings), np.int64, len(self._rings))
        object_sizes = np.array(self._object_sizes[self._flushed :], np.int64)
        is_far = ~(np.abs(vertices) <= LARGEST_COORDINATE).all(axis=1)
        if is_far.any():
            ring = np.searchsorted(np.cumsum(ring_sizes), np.argmax(is_far), side="right")
            place = np.searchsorted(np.cumsum(object_sizes), ring, side="right")
            raise self._refused("a coordinate out of range", self._flushed + int(place) + 1)
        if self._rule is PixelRule.CENTRE:
            vertices, ring_sizes = _opened(vertices, ring_sizes)
        self._ring_sizes.extend(ring_sizes.tolist())
        self._odd.append(odd_shapes(vertices, starts_of(ring_sizes), starts_of(object_sizes)))
        need = self._used + len(vertices)
        if need > len(self._vertices):
            # Enlarged in place where the system can; no view of it exists before the end.
            self._vertices.resize((need + need // 4, 2), refcheck=False)
        self._vertices[self._used : need] = vertices
        self._used, self._flushed, self._rings = need, len(self), []

    def _findings(self, ids: NDArray[np.int64], known: NDArray[np.bool_]) -> Iterator[Finding]:
        unknown = {name: ids[np.array(n) - 1].tolist() for name, n in self._unknown.items()}
        yield from _unknown_classes(unknown, self._scheme, self._path)
        in_order = sorted(self._notes.items(), key=lambda note: min(map(abs, note[1])))
        for (kind, message), numbers in in_order:
            # Negative numbers stand for objects that count only if their class is known.
            rows = np.abs(numbers) - 1
            rows = rows[(np.array(numbers) > 0) | known[rows]]
            yield from object_findings((kind, self._detailed(message)), ids[rows], self._path)
        odd = np.concatenate(self._odd)
        for bit, note in _ODD_SHAPES.items():
            yield from object_findings(note, ids[known & (odd & bit > 0)], self._path)


def _opened(
    vertices: NDArray[np.float64], ring_sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return rings, given by their sizes, without last vertices that repeat the first."""
    starts = starts_of(ring_sizes)
    rings = np.flatnonzero(ring_sizes > 1)
    last = starts[rings + 1] - 1
    is_closed = (vertices[starts[rings]] == vertices[last]).all(axis=1)
    if not is_closed.any():
        return vertices, ring_sizes
    ring_sizes[rings[is_closed]] -= 1
    return np.delete(vertices, last[is_closed], axis=0), ring_sizes


def object_findings(note: Note, ids: NDArray[np.int64], path: Path) -> Iterator[Finding]:
    """Report the objects, given by their ids (n,), that a note is about; nothing if there are none.

    Parameters
    ----------
    note
        The kind of problem, and what the objects are and what was done.
    ids
        int64 (n,): of the objects.
    path
        The file.
    """
    if len(ids):
        kind, message = note
        numbers = tuple(ids.tolist())
        objects = "object" if len(numbers) == 1 else "objects"
        text = f"{counted(len(numbers), message)} ({objects} {english_list(numbers)})"
        yield Finding(kind, text, path=path, count=len(numbers), object_ids=numbers)


def _unknown_classes(
    unknown: Mapping[str | None, Sequence[int]], scheme: ClassScheme, path: Path
) -> Iterator[Finding]:
    """Report the objects left out because of their class: name, if there is one -> ids."""
    known = [*scheme.names, *([scheme.ambiguous] if scheme.ambiguous else [])]
    for name, ids in unknown.items():
        called = "without a class name" if name is None else f"of the unknown class '{name}'"
        alias = f' as "" = "{known[0]}"' if name is None else ""
        yield Finding(
            FindingKind.UNKNOWN_CLASS,
            f"{counted(len(ids), 'polygon')} {called} left out; known are {english_list(known)} "
            f"(other spellings can be listed under [aliases] in cohort.toml{alias})",
            path=path,
            class_name=name,
            count=len(ids),
            object_ids=tuple(ids),
        )


def _areas_around(
    polygons: Polygons, outer_ids: NDArray[np.int64], inner_ids: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return bool (n,): which of the outer objects a user drew around detected nuclei.

    They contain an inner object of at most half their box, whose centre counts. One of nearly
    the same size is the same nucleus outlined twice.
    """
    import shapely

    outer, inner = (np.isin(polygons.ids, ids) for ids in (outer_ids, inner_ids))
    boxes = bounds(polygons.flat)
    inside, size = boxes[inner], (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    inside = inside[np.argsort(inside[:, 1] + inside[:, 3])]
    y, x = ((inside[:, :2] + inside[:, 2:]) / 2).T
    areas = (inside[:, 2:] - inside[:, :2]).prod(axis=1)
    found = np.zeros(len(polygons), np.bool_)
    for row in np.flatnonzero(outer).tolist():
        y0, x0, y1, x1 = boxes[row].tolist()
        near = slice(*np.searchsorted(x, (x0, x1)).tolist())
        fits = (y[near] >= y0) & (y[near] <= y1) & (2 * areas[near] <= size[row])
        for ring in range(*polygons.object_starts[row : row + 2].tolist()) if fits.any() else ():
            line = polygons.vertices_xy[polygons.ring_starts[ring] : polygons.ring_starts[ring + 1]]
            if len(line) > 2 and not polygons.is_hole[ring]:
                shape = shapely.Polygon(line)
                found[row] |= shapely.contains_xy(shape, x[near][fits], y[near][fits]).any()
    return found
