"""Many polygons in few arrays: the value that readers of outlines return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding
from napari_panoptic.kernels.fill import Flat
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import Scores

LARGEST_COORDINATE = 2.0**29
"""Vertices farther out than this, in px, are treated as damage."""

AMBIGUOUS = 0
"""The class index of ambiguous areas."""
UNKNOWN = -1
"""The class index of objects whose class the scheme does not know."""


class PixelRule(StrEnum):
    """Which pixels an object has."""

    VERTEX = "vertex"  # those on the outline, which runs from pixel to pixel, and inside
    CENTRE = "centre"  # those whose centres (x + 0.5, y + 0.5) lie inside


@dataclass(frozen=True, eq=False)
class Polygons:
    """Outlined objects, in document order.

    An object is made of parts, a part of an outline and the holes in it: one
    ring of vertices each, not closed.
    """

    #: float64 (v, 2): x and y in px of the image at full resolution, of at most
    #: `LARGEST_COORDINATE`.
    vertices_xy: NDArray[np.float64]
    #: int64 (r + 1,): where each ring starts among the vertices.
    ring_starts: NDArray[np.int64]
    #: bool (r,): whether the ring is a hole, in the last ring before it that is not.
    is_hole: NDArray[np.bool_]
    #: int64 (n + 1,): where each object starts among the rings.
    object_starts: NDArray[np.int64]
    #: int64 (n,): the objects' running numbers in their file, ascending.
    ids: NDArray[np.int64]
    #: int16 (n,): 1-based index into the scheme's names, or `AMBIGUOUS`.
    class_index: NDArray[np.int16]
    #: Which pixels objects have. By vertices, as in ImageScope files, each object has one ring, and
    #: vertices are truncated to whole numbers.
    rule: PixelRule

    @classmethod
    def of_rings(
        cls,
        rings: Sequence[NDArray[np.float64]],
        class_index: NDArray[np.int16],
        rule: PixelRule,
        *,
        ids: NDArray[np.int64] | None = None,
    ) -> Polygons:
        """Make objects of one ring each; ids are running numbers by default."""
        return cls(
            np.concatenate([np.zeros((0, 2)), *rings]),
            starts_of(np.array([len(ring) for ring in rings], np.int64)),
            np.zeros(len(rings), np.bool_),
            np.arange(len(rings) + 1, dtype=np.int64),
            np.arange(1, len(rings) + 1, dtype=np.int64) if ids is None else ids,
            class_index,
            rule,
        )

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    @property
    def flat(self) -> Flat:
        """The arguments of the kernels."""
        by_vertex = self.rule is PixelRule.VERTEX
        return self.vertices_xy, self.ring_starts, self.is_hole, self.object_starts, by_vertex

    def of_rows(self, keep: NDArray[np.bool_]) -> Polygons:
        """Return some of the objects, chosen by bool (n,)."""
        ring_sizes, object_sizes = np.diff(self.ring_starts), np.diff(self.object_starts)
        rings = np.repeat(keep, object_sizes)
        return Polygons(
            self.vertices_xy[np.repeat(rings, ring_sizes)],
            starts_of(ring_sizes[rings]),
            self.is_hole[rings],
            starts_of(object_sizes[keep]),
            self.ids[keep],
            self.class_index[keep],
            self.rule,
        )


@dataclass(frozen=True, eq=False)
class PolygonFile:
    """The polygons of one file."""

    #: In document order, without those of unknown classes (whose ids are skipped).
    polygons: Polygons
    #: Micrometres per pixel, or None if the file does not state it.
    mpp: float | None = None
    #: Problems found while reading.
    findings: tuple[Finding, ...] = ()
    #: Magnification of the image in whose px the vertices are, or None if the file does not state
    #: it.
    magnification: float | None = None
    #: Probabilities of the objects, or None if the file has none.
    scores: Scores | None = None
    #: Height and width in px of the image in whose px the vertices are, or None if the file does
    #: not state them.
    shape: tuple[int, int] | None = None
    #: The number of areas that are excluded since the file calls them crowds.
    crowds: int = 0


def starts_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64 (n + 1,): where runs of these sizes start, and where the last ends."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def opened(ring: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a ring (n, 2) without a last vertex that repeats the first."""
    return ring[:-1] if len(ring) > 1 and np.array_equal(ring[0], ring[-1]) else ring


def class_number(names: Sequence[str], scheme: ClassScheme) -> int:
    """Return the class index of the first known name, or `UNKNOWN`."""
    known = scheme.first_known(names)
    if known is None:
        return UNKNOWN
    return AMBIGUOUS if known == scheme.ambiguous else scheme.names.index(known) + 1
