"""Collects the outlined objects of one file while it is read, and reports the problems."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.polygons.model import (
    UNKNOWN,
    PixelRule,
    PolygonFile,
    Polygons,
    class_number,
    starts_of,
)
from napari_panoptic.io.formats.scores import score_value
from napari_panoptic.kernels.fill import CROSSING, DEGENERATE, odd_shapes
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import Scores

BATCH = 1000
"""Objects that are held as Python objects at a time."""
UNREADABLE_VERTICES = (
    "polygon(s) with vertices without a readable X and Y, drawn without these vertices"
)
DECIMAL_COMMAS = (
    "polygon(s) with X or Y that have a decimal comma, drawn without these vertices: write decimal "
    "points, or export again under an English locale"
)
_NO_SCORE = "object(s) whose score is no finite number, read without it"
BETWEEN_PIXELS = "contour(s) with vertices between pixels, which were rounded to whole ones"
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

Known = tuple[int, str | None]
"""The class index of an object, and the name by which an unknown class is reported."""


class Collector:
    """Collects objects in document order, in about the memory that they need.

    Parameters
    ----------
    path
        The file, for findings and tables of class names beside it.
    scheme
        The classes.
    rule
        Which pixels the objects have.
    renumbered
        The finding if objects have ids that do not ascend and are replaced by
        running numbers; empty for none.
    has_numbers
        Whether a table beside the file can name classes given as numbers.

    Attributes
    ----------
    numbers
        The lookup of classes given as numbers.
    """

    def __init__(
        self,
        path: Path,
        scheme: ClassScheme,
        rule: PixelRule = PixelRule.CENTRE,
        *,
        renumbered: str = "",
        has_numbers: bool = True,
    ) -> None:
        self.numbers = ClassNumbers(path if has_numbers else None, scheme)
        self._path, self._scheme, self._rule = path, scheme, rule
        self._renumbered = renumbered
        self._vertices: NDArray[np.float64] = np.empty((1024, 2), np.float64)
        self._used = 0
        self._rings: list[NDArray[np.float64]] = []
        self._flushed = 0
        self._odd: list[NDArray[np.uint8]] = []
        self._ring_sizes, self._object_sizes = array("q"), array("q")
        self._is_hole = array("b")
        self._class_index, self._ids, self._scores = array("h"), array("q"), array("d")
        self._unknown: dict[str | None, list[int]] = defaultdict(list)
        self._notes: dict[tuple[FindingKind, str], list[int]] = defaultdict(list)
        self._named: dict[tuple[str, ...], Known] = {}

    def __len__(self) -> int:
        """Count the objects, also those that were left out."""
        return len(self._class_index)

    def named(self, names: tuple[str, ...]) -> Known:
        """Return the class of the first known name; without names, that of objects without one."""
        if not names:
            return self.numbers.of(None)
        if names not in self._named:
            self._named[names] = class_number(names, self._scheme), names[0]
        return self._named[names]

    def add(
        self,
        rings: Sequence[NDArray[np.float64]],
        known: Known,
        *,
        is_hole: Iterable[bool] = (),
        id_: int = 0,
        score: Any = None,
    ) -> int:
        """Add an object, and return its running number.

        Parameters
        ----------
        rings
            float64 (n, 2) each, not closed: x and y in px. Copied later: they
            must not change.
        known
            Its class.
        is_hole
            Whether each ring is a hole; by default all but the first are.
        id_
            Its id in the file, if it has one.
        score
            Its probability, a number; None if the file gives none. Anything else is reported.
        """
        self._rings += rings
        self._ring_sizes.extend(map(len, rings))
        self._is_hole.extend(is_hole or (place > 0 for place in range(len(rings))))
        self._object_sizes.append(len(rings))
        self._class_index.append(known[0])
        self._ids.append(id_)
        number = score_value(score)
        self._scores.append(number)
        if score is not None and math.isnan(number):
            self.note(FindingKind.FALLBACK, _NO_SCORE, len(self))
        if known[0] == UNKNOWN:
            self._unknown[known[1]].append(len(self))
        if len(self) - self._flushed >= BATCH:
            self._flush()
        return len(self)

    def skip(self, id_: int = 0) -> int:
        """Count an object that is not read, and return its running number."""
        self._object_sizes.append(0)
        self._class_index.append(UNKNOWN)
        self._ids.append(id_)
        self._scores.append(math.nan)
        return len(self)

    def leave_out(self, kind: FindingKind, message: str, number: int) -> None:
        """Leave an object out, and report it; the message follows the number of such."""
        self._class_index[number - 1] = UNKNOWN
        self._notes[kind, message].append(number)

    def note(self, kind: FindingKind, message: str, number: int) -> None:
        """Report an object if its class is known; the message follows the number of such."""
        self._notes[kind, message].append(-number)

    def finished(
        self,
        *,
        mpp: float | None = None,
        magnification: float | None = None,
        findings: Iterable[Finding] = (),
    ) -> PolygonFile:
        """Return everything, with the findings; ``findings`` come first."""
        self._flush()
        self._vertices.resize((self._used, 2), refcheck=False)
        index = np.array(self._class_index, np.int16)
        found = list(findings)
        ids = np.array(self._ids, np.int64)
        if (ids <= 0).any() or (np.diff(ids) <= 0).any():
            ids = np.arange(1, len(ids) + 1)
            if self._renumbered:
                message, n = self._renumbered, len(ids)
                found.append(Finding(FindingKind.FALLBACK, message, path=self._path, count=n))
        polygons = Polygons(
            self._vertices,
            starts_of(np.array(self._ring_sizes, np.int64)),
            np.array(self._is_hole, np.bool_),
            starts_of(np.array(self._object_sizes, np.int64)),
            ids,
            index,
            self._rule,
        )
        known = index != UNKNOWN
        found += self._findings(ids, known)
        found += self.numbers.findings(self._path)
        scores = np.array(self._scores, np.float64)
        return PolygonFile(
            polygons if known.all() else polygons.of_rows(known),
            mpp,
            tuple(found),
            magnification=magnification,
            scores=None if np.isnan(scores).all() else Scores(ids, scores),
        )

    def _flush(self) -> None:
        """Copy the vertices of the last objects into one array, and look at their shapes."""
        vertices = np.concatenate([np.zeros((0, 2)), *self._rings])
        ring_sizes = np.array(
            self._ring_sizes[len(self._ring_sizes) - len(self._rings) :], np.int64
        )
        object_sizes = np.array(self._object_sizes[self._flushed :], np.int64)
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
            yield from object_findings(kind, ids[rows], message, self._path)
        odd = np.concatenate(self._odd)
        for bit, (kind, message) in _ODD_SHAPES.items():
            yield from object_findings(kind, ids[known & (odd & bit > 0)], message, self._path)


def object_findings(
    kind: FindingKind, ids: NDArray[np.int64], message: str, path: Path
) -> Iterator[Finding]:
    """Report objects, if there are any.

    Parameters
    ----------
    kind
        The kind of problem.
    ids
        int64 (n,): of the objects.
    message
        What they are and what was done, after their number: ``row(s) left out``.
    path
        The file.
    """
    if len(ids):
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
