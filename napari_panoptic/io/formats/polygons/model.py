"""Many polygons in few arrays, as readers collect them, and what is odd about them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, FindingKind, PanopticError, english_list
from napari_panoptic.kernels.fill import CROSSING, DEGENERATE, Flat, odd_shapes
from napari_panoptic.nuclei.values.cohort import ClassScheme
from napari_panoptic.nuclei.values.labels import Scores

LARGEST_COORDINATE = 2.0**29
"""Vertices farther out than this, in px, are taken for damage."""

AMBIGUOUS = 0
"""The class index of ambiguous areas."""
UNKNOWN = -1
"""The class index of objects whose class the scheme does not know."""


class ReadingStoppedError(PanopticError):
    """Nobody wants the file any more that is being read."""


@dataclass(frozen=True, eq=False)
class Polygons:
    """Outlined objects, in document order.

    An object is made of parts, a part of an outline and the holes in it: one
    ring of vertices each, not closed.

    Parameters
    ----------
    vertices_xy
        (v, 2): x and y in px of the image at full resolution, of at most
        `LARGEST_COORDINATE`. The type tells which pixels objects have. int32,
        as in ImageScope files: those on the outline, which runs from pixel to
        pixel, and inside; each object has one ring. float64, as in GeoJSON
        files: those whose centres (x + 0.5, y + 0.5) lie inside.
    ring_starts
        int64 (r + 1,): where each ring starts among the vertices.
    is_hole
        bool (r,): whether the ring is a hole in the last one that is none.
    object_starts
        int64 (n + 1,): where each object starts among the rings.
    ids
        int64 (n,): the objects' running numbers in their file, ascending.
    class_index
        int16 (n,): 1-based index into the scheme's names, or `AMBIGUOUS`.
    """

    vertices_xy: NDArray[np.int32] | NDArray[np.float64]
    ring_starts: NDArray[np.int64]
    is_hole: NDArray[np.bool_]
    object_starts: NDArray[np.int64]
    ids: NDArray[np.int64]
    class_index: NDArray[np.int16]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    @property
    def flat(self) -> Flat:
        """The arrays as the compiled loops take them."""
        return self.vertices_xy, self.ring_starts, self.is_hole, self.object_starts


@dataclass(frozen=True, eq=False)
class PolygonFile:
    """The polygons of one file.

    Parameters
    ----------
    polygons
        In document order, those of unknown classes left out (their ids are, too).
    mpp
        Micrometres per pixel, or None where the file does not say.
    findings
        What was odd.
    magnification
        That of the image in whose px the vertices are, or None where the file does
        not say.
    scores
        How sure a model was of its objects, or None where the file does not say.
    """

    polygons: Polygons
    mpp: float | None = None
    findings: tuple[Finding, ...] = ()
    magnification: float | None = None
    scores: Scores | None = None


class PolygonStore:
    """Collects objects, batch by batch, in about the memory that they need.

    Parameters
    ----------
    dtype
        Of the vertices: int32 truncates them.
    """

    def __init__(self, dtype: type[np.int32] | type[np.float64]) -> None:
        self._vertices: NDArray[Any] = np.empty((1024, 2), dtype)
        self._used = 0
        self._ring_sizes: list[NDArray[np.int64]] = []
        self._is_hole: list[NDArray[np.bool_]] = []
        self._object_sizes: list[NDArray[np.int64]] = []
        self._odd: list[NDArray[np.uint8]] = []

    def add(
        self,
        vertices_xy: NDArray[np.float64],
        ring_sizes: NDArray[np.int64],
        is_hole: NDArray[np.bool_],
        object_sizes: NDArray[np.int64],
    ) -> None:
        """Add complete objects.

        Parameters
        ----------
        vertices_xy
            float64 (v, 2). Copied.
        ring_sizes
            int64 (r,): vertices of each ring.
        is_hole
            bool (r,).
        object_sizes
            int64 (n,): rings of each object.
        """
        self._odd.append(odd_shapes(vertices_xy, _starts(ring_sizes), _starts(object_sizes)))
        need = self._used + len(vertices_xy)
        if need > len(self._vertices):
            # Enlarged in place where the system can; no view of it is given away before the end.
            self._vertices.resize((need + need // 4, 2), refcheck=False)
        self._vertices[self._used : need] = vertices_xy
        self._used = need
        self._ring_sizes.append(ring_sizes)
        self._is_hole.append(is_hole)
        self._object_sizes.append(object_sizes)

    def finished(
        self, class_index: NDArray[np.int16]
    ) -> tuple[Polygons, dict[FindingKind, NDArray[np.int64]]]:
        """Return the objects of known classes, and the ids of the odd ones among them.

        Parameters
        ----------
        class_index
            int16 (n,): the class of every object, `UNKNOWN` for those to leave
            out. Ids are their places, from 1.
        """
        self._vertices.resize((self._used, 2), refcheck=False)
        polygons = Polygons(
            self._vertices,
            _starts(_joined(self._ring_sizes, np.int64)),
            _joined(self._is_hole, np.bool_),
            _starts(_joined(self._object_sizes, np.int64)),
            np.arange(1, len(class_index) + 1, dtype=np.int64),
            class_index,
        )
        odd = _joined(self._odd, np.uint8)
        known = class_index != UNKNOWN
        ids = {
            FindingKind.DEGENERATE: np.flatnonzero(known & (odd & DEGENERATE > 0)) + 1,
            FindingKind.SELF_CROSSING: np.flatnonzero(known & (odd & CROSSING > 0)) + 1,
        }
        return (polygons if known.all() else _kept(polygons, known)), ids


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _kept(polygons: Polygons, keep: NDArray[np.bool_]) -> Polygons:
    """Leave out objects."""
    ring_sizes = np.diff(polygons.ring_starts)
    object_sizes = np.diff(polygons.object_starts)
    rings = np.repeat(keep, object_sizes)
    vertices = np.repeat(rings, ring_sizes)
    return Polygons(
        polygons.vertices_xy[vertices],
        _starts(ring_sizes[rings]),
        polygons.is_hole[rings],
        _starts(object_sizes[keep]),
        polygons.ids[keep],
        polygons.class_index[keep],
    )


def class_number(names: Sequence[str], scheme: ClassScheme) -> int:
    """Return the class index of the first known name, or `UNKNOWN`."""
    known = scheme.first_known(names)
    if known is None:
        return UNKNOWN
    return AMBIGUOUS if known == scheme.ambiguous else scheme.names.index(known) + 1


def ids_array(ids: array[int]) -> NDArray[np.int64]:
    """Turn an array of the standard library into one of NumPy."""
    return np.frombuffer(ids, np.int64).copy() if ids else np.zeros(0, np.int64)


ODD_SHAPES = {
    FindingKind.UNREADABLE: (
        "polygon(s) with vertices without a readable X and Y, drawn without these vertices"
    ),
    FindingKind.DEGENERATE: (
        "polygon(s) with fewer than three different vertices, kept as they are"
    ),
    FindingKind.SELF_CROSSING: (
        "polygon(s) whose outline crosses itself, filled by the even-odd rule"
    ),
}
"""What readers say of odd polygons, in this order."""


def object_findings(
    kind: FindingKind, ids: NDArray[np.int64], message: str, path: Path
) -> Iterator[Finding]:
    """Report objects, if there are any.

    Parameters
    ----------
    kind
        What sort of oddity.
    ids
        int64 (n,): of the objects.
    message
        What they are and what was done; it follows their number.
    path
        The file.
    """
    if len(ids):
        numbers = tuple(ids.tolist())
        text = f"{len(numbers)} {message} ({'object' if len(numbers) == 1 else 'objects'} "
        text += f"{english_list(numbers)})"
        yield Finding(kind, text, path=path, count=len(numbers), object_ids=numbers)


def unknown_class_findings(
    unknown: Mapping[str | None, Sequence[int]], scheme: ClassScheme, path: Path
) -> Iterator[Finding]:
    """Report the objects left out for their class.

    Parameters
    ----------
    unknown
        Class name, None where there is none -> ids.
    scheme
        The classes.
    path
        The file.
    """
    known = [*scheme.names, *([scheme.ambiguous] if scheme.ambiguous else [])]
    for name, ids in unknown.items():
        called = "without a class name" if name is None else f"of the unknown class '{name}'"
        alias = f' as "" = "{known[0]}"' if name is None else ""
        yield Finding(
            FindingKind.UNKNOWN_CLASS,
            f"{len(ids)} polygon(s) {called} left out; known are {english_list(known)} "
            f"(other spellings can be listed under [aliases] in cohort.toml{alias})",
            path=path,
            class_name=name,
            count=len(ids),
            object_ids=tuple(ids),
        )
