"""What is compared with what: inputs, rows, and the targets that the figures are held against."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import (
    LARGE,
    MEDIUM,
    SMALL,
    Size,
    colour_coded,
    label_pair,
    polygons,
    worst_pairs,
)
from benchmarks.workers import PANOPTICA, TORCH, Row

Array = NDArray[Any]
Comparison = Callable[[Array, Array], str]
SAME = "same"


@dataclass(frozen=True)
class Stage:
    """The same work by different means; results are compared with our first row."""

    key: str  # a unique short name
    title: str
    inputs: str
    limit: Row | None  # the lower bound, if there is one
    ours: tuple[Row, ...]
    others: tuple[Row, ...] = ()
    compare: Comparison | None = None  # describes how a result differs from ours

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the order of the table."""
        return (*([self.limit] if self.limit else []), *self.ours, *self.others)


@dataclass
class Measured:
    """The measurements of a row: ms of each round, memory, and how the result compares."""

    rounds_ms: list[float] = field(default_factory=list)
    extra_bytes: int | None = None
    verdict: str = ""
    error: str = ""

    @property
    def ms(self) -> float:
        """The median."""
        return median(self.rounds_ms) if self.rounds_ms else math.nan

    def times(self, other: Measured) -> float:
        """Return the ratio of times: the median over the rounds, so that noise hits both."""
        ratios = [a / b for a, b in zip(self.rounds_ms, other.rounds_ms, strict=False)]
        return median(ratios) if ratios else math.nan


Results = dict[tuple[str, str], Measured]
"""By key of the stage and label of the row."""


# --- comparisons --------------------------------------------------------------------------------


def same_pairs(ours: Array, theirs: Array) -> str:
    """Compare pairs (k, 2), or their number if a peer returns only that."""
    if theirs.ndim == 0:
        extra = int(theirs) - len(ours)
        return SAME if extra == 0 else f"{extra:+d} pairs"
    different = {tuple(p) for p in ours.tolist()} ^ {tuple(p) for p in theirs.tolist()}
    return SAME if not different else f"{len(different)} pairs differ"


def same_distances(ours: Array, theirs: Array) -> str:
    """Compare both figures, or the Hausdorff distances alone."""
    compared = ours if theirs.ndim == 2 else ours[:, 0]
    n = int((~np.isclose(compared, theirs, rtol=1e-12)).sum())
    return f"{n} differ" if n else SAME


def same_objects(ours: Array, theirs: Array) -> str:
    """Compare two label images without regard to the numbers themselves."""
    partner = np.zeros(int(ours.max()) + 1, np.int64)
    partner[ours.ravel()] = theirs.ravel()
    partner[0] = 0
    n = int(np.count_nonzero(partner[ours] != theirs))
    return SAME if not n else f"{n} px differ ({n / ours.size:.2%})"


def same_figures(ours: Array, theirs: Array) -> str:
    """Compare arrays value by value, where there are any."""
    return "" if not theirs.size else SAME if np.array_equal(ours, theirs) else "differs"


# --- inputs -------------------------------------------------------------------------------------


def make_inputs(sizes: tuple[Size, ...]) -> dict[str, list[Array]]:
    """Draw the inputs of all stages; everything is seeded."""
    # Two pairs, one with an IoU of exactly 0.5; and the pair 200 with 56, the sum of which is 256.
    half = _squares((1, 1, 5), (2, 2, 9))
    inputs: dict[str, list[Array]] = {"half": half, "256": _squares((200, 56, 10), (3, 4, 9))}
    for size in sizes:
        inputs[f"pair {size.name}"] = list(label_pair(size))
        if size is not SMALL:
            shape = np.array([size.side, size.side])
            inputs[f"polygons {size.name}"] = [*polygons(size), shape]
        if size is MEDIUM:
            inputs["rgb"] = [colour_coded(inputs["pair M"][0])]
            inputs |= {name: list(pair) for name, pair in worst_pairs(size).items()}
    return inputs


def _squares(*pairs: tuple[int, int, int]) -> list[Array]:
    """Draw squares of 10 px; of each the id, the id of its prediction, and its width."""
    reference, prediction = np.zeros((2, 40, 40), np.int32)
    for at, (id_, other, width) in zip((2, 20), pairs, strict=True):
        reference[at : at + 10, at : at + 10] = id_
        prediction[at : at + 10, at : at + width] = other
    return [reference, prediction]


# --- stages -------------------------------------------------------------------------------------

OURS = "napari-panoptic"
READING = Row("LIMIT: reading the input once", "LIMIT")
COLOURS = Row("LIMIT: looking at the colour of every pixel", "read colours")
ALLOCATING = Row("LIMIT: allocating the image", "allocate")
HALF = "accepts an IoU of exactly 0.5"
BYTE = f"{HALF}; adds labels in the smallest unsigned type, where 200 + 56 is 0"

_NUMPY = (
    Row("NumPy unique of fused ids", "NumPy unique"),
    Row("NumPy bincount of fused ids", "NumPy bincount"),
    Row("fastremap unique of fused ids", "fastremap"),
)
_SKIMAGE = Row("scikit-image contingency_table")
_LIBRARIES = (
    _SKIMAGE,
    Row("traccuracy"),
    Row("stardist.matching", differs=HALF),
    Row("cellpose, table of IoUs", environment=TORCH),
    Row("cellpose, average_precision", environment=TORCH, differs=HALF),
    Row("panoptica, matcher alone", environment=PANOPTICA, differs=HALF),
    Row("panoptica, evaluation", environment=PANOPTICA, differs=BYTE),
    Row("torchmetrics PanopticQuality", environment=TORCH),
)
# At L the memory of the others grows with the product of the numbers of objects (several
# GiB), or they take minutes.
_AT_LARGE = (_NUMPY[0], _NUMPY[2], _SKIMAGE)


def _matching(size: Size) -> Stage:
    ours = (
        Row(OURS, "match"),
        Row(f"{OURS}, images that are checked already", "match checked"),
        Row(f"{OURS}, whole evaluation: causes and metrics too", "evaluate"),
    )
    others = _AT_LARGE if size is LARGE else (*_NUMPY, *_LIBRARIES)
    key, title, inputs = f"matching {size.name}", f"Matching, {size.name}", f"pair {size.name}"
    return Stage(key, title, inputs, READING, ours, others, same_pairs)


_UNLIKE_TISSUE = ("sparse", "one object", "none", "covered", "noise")
_WORST = Stage(
    *("worst", "Matching, label images unlike tissue, M", "pair M", READING),
    ours=(
        Row(OURS, "match"),
        *(Row(f"the same, {own}", "match", inputs=own.split()[0]) for own in _UNLIKE_TISSUE),
    ),
    others=tuple(
        Row(f"NumPy unique of fused ids, {name}", "NumPy unique", inputs=name)
        for name in ("covered", "noise")
    ),
    compare=same_pairs,
)
_RULES = Stage(
    *("rules", "The other rule, M", "pair M", READING),
    ours=(
        Row(f"{OURS}, strict IoU", "match"),
        Row(f"{OURS}, centroid", "match centroid"),
        Row(f"{OURS}, strict IoU and centroid", "match both"),
    ),
)
_DISTANCES = Stage(
    *("distances", "Distances of all matched pairs, M", "distances", READING),
    ours=(Row(f"{OURS}, both", "distances"),),
    others=(
        Row("SciPy cdist on crops, both", "SciPy cdist, both"),
        Row("SciPy distance transform on crops", "SciPy distance transform"),
        Row("SciPy cKDTree"),
        Row("scikit-image hausdorff_distance on crops", "scikit-image hausdorff_distance"),
        Row("medpy on crops", "medpy"),  # counts pixels at the frame as contour
    ),
    compare=same_distances,
)
_FIGURES = Stage(
    *("figures", "Statuses, causes and metrics, L", "pair L", None),
    ours=(
        Row(f"{OURS}, all of it", "figures of table"),
        Row("of this: ambiguous policy and matching", "matches of table"),
        Row("of this: statuses and causes", "outcomes of matches"),
        Row("of this: counts and metrics", "figures of outcomes"),
    ),
)


def _polygons(size: Size) -> Stage:
    skimage = Row("loop over skimage.draw.polygon", "skimage.draw.polygon")
    others = (skimage, Row("OpenCV fillPoly"), Row("Pillow"))  # with other rules at the edge
    key, title = f"polygons {size.name}", f"Polygons to labels, {size.name}"
    return Stage(key, title, key, ALLOCATING, (Row(OURS, "rasterize"),), others, same_objects)


def _restoration(kind: str) -> Stage:
    is_dilated = kind == "dilated"
    others = [
        Row(f"{name}{' + shifted maxima' * is_dilated}", f"{name}{', maxima' * is_dilated}")
        for name in ("cc3d", "SciPy label", "scikit-image label")
    ]
    others += [Row("scikit-image expand_labels")] * is_dilated
    key, title = f"restoration {kind}", f"Restoration, border-{kind}, M"
    ours = (Row(OURS, f"restore {kind}"),)
    return Stage(key, title, "rgb", COLOURS, ours, tuple(others), same_objects)


def _stroke(size: Size) -> Stage:
    key, title = f"stroke {size.name}", f"A brush stroke of 400 px, {size.name}"
    ours = (Row(f"{OURS}, all figures of the region", "stroke figures"),)
    others = (Row("evaluating the whole region again", "stroke recounted"),)
    return Stage(key, title, f"pair {size.name}", None, ours, others, same_figures)


def make_stages(sizes: tuple[Size, ...]) -> list[Stage]:
    """Return the stages of some sizes."""
    larger = [size for size in sizes if size is not SMALL]
    return [
        *(_matching(size) for size in sizes),
        *(_WORST, _RULES, _DISTANCES),
        *(_polygons(size) for size in larger),
        *(_restoration(kind) for kind in ("removed", "dilated")),
        *([_FIGURES] if LARGE in sizes else []),
        *(_stroke(size) for size in larger),
    ]


AGREEMENT = {
    "half": "two pairs, of which one has an IoU of exactly 0.5 and is none",
    "256": "the pairs 200 with 56 and 3 with 4",
}
"""Small inputs on which matchers are known to differ, and what they hold."""
MATCHERS = (Row(OURS, "match"), *_NUMPY, *_LIBRARIES)


# --- targets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A bound of a figure, which is computed from the results; KeyError if it was not measured."""

    text: str
    bound: float
    unit: str
    value: Callable[[Results], float]
    at_least: bool = False

    def reached(self, results: Results) -> float:
        """Return the figure, NaN where it was not measured."""
        try:
            return self.value(results)
        except (KeyError, ValueError):
            return math.nan

    def is_met(self, value: float) -> bool:
        """Return whether a figure is good enough."""
        return value >= self.bound if self.at_least else value <= self.bound


def _times(stage: str, row: str, other: str) -> Callable[[Results], float]:
    return lambda results: results[stage, row].times(results[stage, other])


def _faster(text: str, bound: float, stage: str, rows: tuple[Row, ...], ours: str = OURS) -> Target:
    """Compare with the fastest of some rows."""

    def value(results: Results) -> float:
        found = (results[stage, row.label] for row in rows if (stage, row.label) in results)
        return min(other.times(results[stage, ours]) for other in found if other.rounds_ms)

    return Target(text, bound, "x", value, at_least=True)


def _worst(results: Results) -> float:
    typical = results["worst", OURS]
    return max(results["worst", row.label].times(typical) for row in _WORST.ours[1:-1])


def _mib(results: Results) -> float:
    extra = results["matching L", OURS].extra_bytes
    return math.nan if extra is None else extra / 2**20


def _ms(text: str, bound: float, stage: str, row: str) -> Target:
    return Target(text, bound, "ms", lambda results: results[stage, row].ms)


_STRICT, _CENTROID, _RULES_BOTH = (row.label for row in _RULES.ours)
_BOTH = _DISTANCES.ours[0].label
TARGETS = (
    Target("matching, M", 4, "x LIMIT", _times("matching M", OURS, READING.label)),
    Target("matching, L", 3, "x LIMIT", _times("matching L", OURS, READING.label)),
    _faster(
        "matching, M, faster than the fastest evaluation library", 15, "matching M", _LIBRARIES
    ),
    _faster("matching, M, faster than the best NumPy form", 4, "matching M", _NUMPY[:2]),
    Target(
        *("matching a noise image", 2, "x np.unique"),
        _times("worst", "the same, noise", "NumPy unique of fused ids, noise"),
    ),
    Target("matching sparse ids, one object, none, full cover", 5, "x the typical M", _worst),
    Target("extra memory of matching, L", 64, "MiB", _mib),
    Target("centroid rule", 1.1, "x strict", _times("rules", _CENTROID, _STRICT)),
    Target("strict and centroid together", 1.1, "x strict", _times("rules", _RULES_BOTH, _STRICT)),
    _ms("both distances of all pairs, M", 8, "distances", _BOTH),
    _faster(
        *("distances, faster than the fastest exact peer", 10, "distances"),
        *(_DISTANCES.others[1:], _BOTH),
    ),
    *(
        Target(
            *(f"polygons to labels, {s}", 3, "x allocating"),
            _times(f"polygons {s}", OURS, ALLOCATING.label),
        )
        for s in "ML"
    ),
    *(
        Target(
            *(f"restoration, border-{kind}", 6, "x reading the RGB"),
            _times(f"restoration {kind}", OURS, COLOURS.label),
        )
        for kind in ("removed", "dilated")
    ),
    _faster(
        *("restoration, border-dilated, faster than cc3d", 4, "restoration dilated"),
        (Row("cc3d + shifted maxima"),),
    ),
    _ms("statuses, causes, metrics of 25,000 objects", 15, "figures", f"{OURS}, all of it"),
    *(
        _ms(f"a stroke, all figures, {s}", bound, f"stroke {s}", _stroke(MEDIUM).ours[0].label)
        for s, bound in (("M", 0.4), ("L", 3.0))
    ),
)
