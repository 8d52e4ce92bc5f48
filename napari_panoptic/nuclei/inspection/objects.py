"""Doubts about objects: where vertices of outlines lie, and whether pieces are objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from napari_panoptic.io.cohorts.description import RULE_KEYS
from napari_panoptic.io.formats.polygons.model import Polygons
from napari_panoptic.io.formats.polygons.outline_rules import (
    LEAST_DIAGONALS,
    LEAST_SHARE,
    objects_far_apart,
    traced_outlines,
)
from napari_panoptic.nuclei.inspection.looking import SeenSide
from napari_panoptic.nuclei.inspection.values import Doubt, Target
from napari_panoptic.nuclei.values.cohort import Multipolygons, Objects, Vertices

LEAST_HALVES = 16
"""With fewer vertices between pixels, a file may as well hold drawn outlines."""
LEAST_PIECES = 10
"""With fewer pieces in all, objects may as well be cut by chance."""
MANY_TIMES = 4
"""Ratio of pieces to numbers from which numbers look like classes."""

_VERTICES = (
    (Vertices.PIXEL_CENTRES, "They run through pixel centres"),
    (Vertices.PIXEL_EDGES, "They are pixel edges"),
)
_PARTS = (
    (Multipolygons.SPLIT, "Each part is an object"),
    (Multipolygons.ONE_OBJECT, "They are one object"),
)
_OBJECTS = (
    (Objects.PIECES, "Each piece is an object"),
    (Objects.NUMBERS, "Each number is an object"),
)


def vertex_doubt(target: Target, sides: Sequence[SeenSide]) -> Iterator[Doubt]:
    """Report outlines that run through the centres of pixels and are read as edges."""
    name = target.name
    open_ = [
        side.outlines.polygons
        for side in sides
        if side.outlines is not None
        and side.files.rules.vertices is None
        and side.files.source in RULE_KEYS["vertices"][1]
        and len(side.outlines.polygons)
    ]
    traced = sum(look_traced(polygons) for polygons in open_)
    half = sum(_look_between(polygons) for polygons in open_)
    if not traced and not half:
        return
    found, how = (traced, "whole numbers and steps of 45 degrees, as OpenCV traces objects")
    if half > traced:
        found, how = (half, "half numbers, as scikit-image traces objects")
    some = "" if found == len(open_) else "; the others are traced differently"
    yield Doubt(
        f"vertices:{name}",
        f"Outlines of {target.in_words} run through the centres of pixels in {found} of "
        f"{len(open_)} files that were read ({how}){some}. They are read as the edges of pixels, "
        "so that every object is shifted or lacks a rim.",
        tuple(target.fix("vertices", str(word), label) for word, label in _VERTICES),
    )


def multipolygon_doubt(target: Target, sides: Sequence[SeenSide]) -> Iterator[Doubt]:
    """Report objects of several parts that lie far apart."""
    count = sum(
        len(objects_far_apart(side.outlines.polygons)[0])
        for side in sides
        if side.outlines is not None
        and side.files.rules.multipolygons is None
        and side.files.source in RULE_KEYS["multipolygons"][1]
    )
    if count:
        yield Doubt(
            f"multipolygons:{target.name}",
            f"{count} object(s) of {target.in_words} have several parts that lie far apart: a "
            "MultiPolygon is read as one object, and CellViT writes one for all nuclei of a class.",
            tuple(target.fix("multipolygons", str(word), label) for word, label in _PARTS),
        )


def piece_doubt(target: Target, sides: Sequence[SeenSide]) -> Iterator[Doubt]:
    """Report masks whose numbers have too many pieces for numbers of objects."""
    masks = [s for s in sides if s.masks is not None and s.files.rules.objects is None]
    pieces = sum(side.pieces for side in masks)
    numbers = sum(side.counts().total() for side in masks)
    if pieces >= max(LEAST_PIECES, MANY_TIMES * numbers) and numbers:
        yield Doubt(
            f"objects:{target.name}",
            f"Masks of {target.in_words} have {numbers} numbers in {pieces} separate pieces, as if "
            "all nuclei of a class had the same number. Touching nuclei in such masks remain "
            "one object.",
            tuple(target.fix("objects", str(word), label) for word, label in _OBJECTS),
        )


def look_traced(polygons: Polygons) -> bool:
    """Return whether outlines look traced by OpenCV, through the centres of pixels."""
    traced, others, diagonals = traced_outlines(polygons)
    return diagonals >= LEAST_DIAGONALS and traced >= LEAST_SHARE * (traced + others)


def _look_between(polygons: Polygons) -> bool:
    """Whether each vertex lies in the middle between two neighbouring pixels."""
    twice = 2 * polygons.vertices_xy
    is_half = np.rint(twice) % 2 == 1
    between = (twice == np.rint(twice)).all(axis=1) & (is_half.sum(axis=1) == 1)
    return len(between) >= LEAST_HALVES and between.mean() >= LEAST_SHARE
