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

Array = NDArray[Any]
Comparison = Callable[[Array, Array], str]
SAME = "same"

MAIN = "benchmarks.contenders"
PANOPTICA = "benchmarks.peers_panoptica"
TORCH = "benchmarks.peers_torch"


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Parameters
    ----------
    label
        What the table calls it.
    contender
        A key of the module's ``CONTENDERS``.
    module
        Where it is.
    inputs
        Other inputs than those of the stage.
    is_library
        Whether it is a package that evaluates segmentations.
    differs
        Why its result differs, where that is known.
    """

    label: str
    contender: str
    module: str = MAIN
    inputs: str = ""
    is_library: bool = False
    differs: str = ""


@dataclass(frozen=True)
class Stage:
    """One table: the same work by different means.

    Parameters
    ----------
    key
        A short name, unlike any other.
    title, text
        What the document says above the table.
    inputs
        The name of its inputs.
    limit
        The row of what cannot be undercut, if there is one.
    ours
        Our rows; results of the others are compared with the first.
    others
        The other rows.
    compare
        Says in words how a result differs from ours; None where there is nothing to compare.
    """

    key: str
    title: str
    text: str
    inputs: str
    limit: Row | None
    ours: tuple[Row, ...]
    others: tuple[Row, ...] = ()
    compare: Comparison | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the order of the table."""
        return (*([self.limit] if self.limit else []), *self.ours, *self.others)


@dataclass
class Measured:
    """What came of a row: ms of each round, memory, and how the result compares."""

    rounds_ms: list[float] = field(default_factory=list)
    extra_bytes: int | None = None
    verdict: str = ""
    error: str = ""

    @property
    def ms(self) -> float:
        """The median."""
        return median(self.rounds_ms) if self.rounds_ms else math.nan

    def times(self, other: Measured) -> float:
        """By how much it takes longer: the median over the rounds, so that noise hits both."""
        ratios = [a / b for a, b in zip(self.rounds_ms, other.rounds_ms, strict=False)]
        return median(ratios) if ratios else math.nan


Results = dict[tuple[str, str], Measured]
"""By key of the stage and label of the row."""


# --- Comparisons ---------------------------------------------------------------


def same_pairs(ours: Array, theirs: Array) -> str:
    """Compare pairs (k, 2), or their number where it is all that a peer tells."""
    if theirs.ndim == 0:
        extra = int(theirs) - len(ours)
        return SAME if extra == 0 else f"{extra:+d} pairs"
    if not len(ours) + len(theirs):
        return SAME
    different = {tuple(p) for p in ours.tolist()} ^ {tuple(p) for p in theirs.tolist()}
    return SAME if not different else f"{len(different)} pairs differ"


def same_distances(ours: Array, theirs: Array) -> str:
    """Compare both figures, or the Hausdorff distances alone."""
    compared = ours if theirs.ndim == 2 else ours[:, 0]
    different = ~np.isclose(compared, theirs, rtol=1e-12)
    if different.any():
        return f"{int(different.sum())} differ"
    return SAME


def same_objects(ours: Array, theirs: Array) -> str:
    """Compare two label images without regard to the numbers themselves."""
    partner = np.zeros(int(ours.max()) + 1, np.int64)
    partner[ours.ravel()] = theirs.ravel()
    partner[0] = 0
    return _pixels(partner[ours] != theirs)


def _pixels(different: NDArray[np.bool_]) -> str:
    count = int(np.count_nonzero(different))
    return SAME if not count else f"{count} px differ ({count / different.size:.2%})"


def same_figures(ours: Array, theirs: Array) -> str:
    """Compare arrays value by value, where there are any."""
    if not theirs.size:
        return ""
    return SAME if np.array_equal(ours, theirs) else "differs"


# --- Inputs --------------------------------------------------------------------


def make_inputs(sizes: tuple[Size, ...]) -> dict[str, list[Array]]:
    """Draw what the stages work on; everything is seeded."""
    inputs: dict[str, list[Array]] = {"half": _half(), "256": _beyond_a_byte()}
    for size in sizes:
        reference, prediction = label_pair(size)
        inputs[f"pair {size.name}"] = [reference, prediction]
        if size is not SMALL:
            shape = np.array([size.side, size.side])
            inputs[f"polygons {size.name}"] = [*polygons(size), shape]
        if size is MEDIUM:
            inputs["rgb"] = [colour_coded(reference)]
            inputs |= {name: list(pair) for name, pair in worst_pairs(size).items()}
    return inputs


def _half() -> list[Array]:
    """Draw two pairs, one with an IoU of exactly 0.5."""
    reference, prediction = np.zeros((2, 40, 40), np.int32)
    reference[2:12, 2:12], prediction[2:12, 2:7] = 1, 1
    reference[20:30, 20:30], prediction[20:30, 20:29] = 2, 2
    return [reference, prediction]


def _beyond_a_byte() -> list[Array]:
    """Draw the pairs 200 with 56, the sum of which is 256, and 3 with 4."""
    reference, prediction = np.zeros((2, 40, 40), np.int32)
    reference[2:12, 2:12], prediction[2:12, 2:12] = 200, 56
    reference[20:30, 20:30], prediction[20:30, 20:29] = 3, 4
    return [reference, prediction]


# --- Stages --------------------------------------------------------------------

OURS = "napari-panoptic"
ACCEPTS_HALF = "accepts an IoU of exactly 0.5"
FRAME = "counts pixels at the frame as contour"
READING = "LIMIT: reading the input once"
COLOURS = "LIMIT: looking at the colour of every pixel"

_NUMPY = (
    Row("NumPy unique of fused ids", "NumPy unique"),
    Row("NumPy bincount of fused ids", "NumPy bincount"),
    Row("fastremap unique of fused ids", "fastremap"),
)
_SKIMAGE = Row("scikit-image contingency_table", "scikit-image contingency_table", is_library=True)
_LIBRARIES = (
    _SKIMAGE,
    Row("traccuracy", "traccuracy", is_library=True),
    Row("stardist.matching", "stardist.matching", is_library=True, differs=ACCEPTS_HALF),
    Row("cellpose, table of IoUs", "cellpose, table of IoUs", TORCH, is_library=True),
    Row(
        "cellpose, average_precision",
        "cellpose, average_precision",
        TORCH,
        is_library=True,
        differs=ACCEPTS_HALF,
    ),
    Row(
        "panoptica, matcher alone",
        "panoptica, matcher alone",
        PANOPTICA,
        is_library=True,
        differs=ACCEPTS_HALF,
    ),
    Row(
        "panoptica, evaluation",
        "panoptica, evaluation",
        PANOPTICA,
        is_library=True,
        differs=f"{ACCEPTS_HALF}; adds labels in the smallest unsigned type, where 200 + 56 is 0",
    ),
    Row("torchmetrics PanopticQuality", "torchmetrics PanopticQuality", TORCH, is_library=True),
)
# At L the memory of the others grows with the product of the numbers of objects (several
# GiB), or they take minutes.
_AT_LARGE = (_NUMPY[0], _NUMPY[2], _SKIMAGE)
LEFT_OUT_AT_LARGE = (
    "At L NumPy bincount, traccuracy, stardist and cellpose are left out, whose tables grow with "
    "the product of the numbers of objects (about 5 GiB), and panoptica and torchmetrics, which "
    "take half a minute and more."
)


def _matching(size: Size) -> Stage:
    text = (
        f"{size.side} x {size.side} px, {size.objects:,} reference objects. From two label "
        "images to the list of pairs with an IoU above 0.5."
    )
    return Stage(
        key=f"matching {size.name}",
        title=f"Matching, {size.name}",
        text=f"{text} {LEFT_OUT_AT_LARGE}" if size is LARGE else text,
        inputs=f"pair {size.name}",
        limit=Row(READING, "LIMIT"),
        ours=(
            Row(OURS, "match"),
            Row(f"{OURS}, images that are checked already", "match checked"),
            Row(f"{OURS}, whole evaluation: causes and metrics too", "evaluate"),
        ),
        others=_AT_LARGE if size is LARGE else (*_NUMPY, *_LIBRARIES),
        compare=same_pairs,
    )


_WORST = Stage(
    key="worst",
    title="Matching, label images unlike tissue, M",
    text=(
        "Noise: nearly every pixel is another pair. Sparse: ids spread up to 2^31. One: a square "
        "over a quarter of the image. Covered: 100 % of the pixels belong to objects."
    ),
    inputs="pair M",
    limit=Row(READING, "LIMIT"),
    ours=(
        Row(OURS, "match"),
        Row("the same, sparse", "match", inputs="sparse"),
        Row("the same, one object", "match", inputs="one"),
        Row("the same, none", "match", inputs="none"),
        Row("the same, covered", "match", inputs="covered"),
        Row("the same, noise", "match", inputs="noise"),
    ),
    others=(
        Row("NumPy unique of fused ids, covered", "NumPy unique", inputs="covered"),
        Row("NumPy unique of fused ids, noise", "NumPy unique", inputs="noise"),
    ),
    compare=same_pairs,
)

_RULES = Stage(
    key="rules",
    title="The other rule, M",
    text="From two label images to the pairs; both rules work from one overlap table.",
    inputs="pair M",
    limit=Row(READING, "LIMIT"),
    ours=(
        Row(f"{OURS}, strict IoU", "match"),
        Row(f"{OURS}, centroid", "match centroid"),
        Row(f"{OURS}, strict IoU and centroid", "match both"),
    ),
)

_DISTANCES = Stage(
    key="distances",
    title="Distances of all matched pairs, M",
    text=(
        "Contour to contour. Ours are Hausdorff distance and its 95th percentile; "
        "of the peers, where it is not said otherwise, the Hausdorff distance alone. "
        "All are given the pairs, and ours what counting the overlap has found."
    ),
    inputs="distances",
    limit=Row(READING, "LIMIT"),
    ours=(Row(f"{OURS}, both", "distances"),),
    others=(
        Row("SciPy cdist on crops, both", "SciPy cdist, both"),
        Row("SciPy cdist on crops", "SciPy cdist"),
        Row("SciPy distance transform on crops", "SciPy distance transform"),
        Row("SciPy cKDTree", "SciPy cKDTree"),
        Row("scikit-image hausdorff_distance on crops", "scikit-image hausdorff_distance"),
        Row("medpy on crops", "medpy", differs=FRAME),
    ),
    compare=same_distances,
)


def _polygons(size: Size) -> Stage:
    return Stage(
        key=f"polygons {size.name}",
        title=f"Polygons to labels, {size.name}",
        text=(
            f"{size.objects:,} polygons of 12 to 40 vertices on {size.side} x {size.side} px. "
            "Ours also finds what vanished, overlapped and lies outside. Results are compared "
            "pixel by pixel with the loop over skimage.draw.polygon, whose pixels are the rule."
        ),
        inputs=f"polygons {size.name}",
        limit=Row("LIMIT: allocating the image", "allocate"),
        ours=(Row(OURS, "rasterize"),),
        others=(
            Row("loop over skimage.draw.polygon", "skimage.draw.polygon"),
            Row("OpenCV fillPoly", "OpenCV fillPoly", differs="has another rule at the edge"),
            Row("Pillow", "Pillow", differs="has another rule at the edge"),
        ),
        compare=same_objects,
    )


def _restoration(kind: str) -> Stage:
    dilated = kind == "dilated"
    maxima = " + shifted maxima" if dilated else ""
    suffix = ", maxima" if dilated else ""
    others = [
        Row(f"{name}{maxima}", f"{name}{suffix}")
        for name in ("cc3d", "SciPy label", "scikit-image label")
    ]
    if dilated:
        others.append(
            Row(
                "scikit-image expand_labels",
                "scikit-image expand_labels",
                differs="decides otherwise where two objects meet",
            )
        )
    return Stage(
        key=f"restoration {kind}",
        title=f"Restoration, border-{kind}, M",
        text=(
            "From the RGB pixels of a colour-coded mask to labels"
            f"{', each object grown by 1 px' if dilated else ''}. LIMIT packs the colour of "
            "each pixel into one number; NumPy's maximum of the same bytes sees no colours."
        ),
        inputs="rgb",
        limit=Row(COLOURS, "read colours"),
        ours=(Row(OURS, f"restore {kind}"),),
        others=tuple(others),
        compare=same_objects,
    )


_FIGURES = Stage(
    key="figures",
    title="Statuses, causes and metrics, L",
    text="25,000 reference objects, from a given overlap table to all figures, without distances.",
    inputs="pair L",
    limit=None,
    ours=(
        Row(f"{OURS}, all of it", "figures of table"),
        Row("of this: ambiguous policy and matching", "matches of table"),
        Row("of this: statuses and causes", "outcomes of matches"),
        Row("of this: counts and metrics", "figures of outcomes"),
    ),
)


def _stroke(size: Size) -> Stage:
    return Stage(
        key=f"stroke {size.name}",
        title=f"A brush stroke of 400 px, {size.name}",
        text="All over the prediction: some enlarge an object, some erase, some draw a new one.",
        inputs=f"pair {size.name}",
        limit=None,
        ours=(Row(f"{OURS}, all figures of the region", "stroke figures"),),
        others=(Row("evaluating the whole region again", "stroke recounted"),),
        compare=same_figures,
    )


def make_stages(sizes: tuple[Size, ...]) -> list[Stage]:
    """Give the tables for the sizes that are wanted."""
    larger = [size for size in sizes if size is not SMALL]
    return [
        *(_matching(size) for size in sizes),
        _WORST,
        _RULES,
        _DISTANCES,
        *(_polygons(size) for size in larger),
        _restoration("removed"),
        _restoration("dilated"),
        *([_FIGURES] if LARGE in sizes else []),
        *(_stroke(size) for size in larger),
    ]


AGREEMENT = {
    "half": "two pairs, of which one has an IoU of exactly 0.5 and is none",
    "256": "the pairs 200 with 56 and 3 with 4",
}
"""Small inputs on which matchers are known to differ, and what they hold."""
MATCHERS = (Row(OURS, "match"), *_NUMPY, *_LIBRARIES)


# --- Targets -------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What a figure is held against.

    Parameters
    ----------
    text
        What it is about.
    bound
        The figure that it must reach.
    unit
        What stands behind it.
    value
        Computes it from the results; KeyError where something was not measured.
    at_least
        Whether more is better.
    """

    text: str
    bound: float
    unit: str
    value: Callable[[Results], float]
    at_least: bool = False

    def reached(self, results: Results) -> float:
        """Give the figure, NaN where it was not measured."""
        try:
            return self.value(results)
        except (KeyError, ValueError):
            return math.nan

    def is_met(self, value: float) -> bool:
        """Tell whether a figure is good enough."""
        return value >= self.bound if self.at_least else value <= self.bound


def _times(stage: str, row: str, other: str) -> Callable[[Results], float]:
    return lambda results: results[stage, row].times(results[stage, other])


def _fastest(stage: str, ours: str, rows: tuple[Row, ...]) -> Callable[[Results], float]:
    def value(results: Results) -> float:
        found = (results[stage, row.label] for row in rows if (stage, row.label) in results)
        ratios = [other.times(results[stage, ours]) for other in found if other.rounds_ms]
        return min(ratios)

    return value


def _worst(results: Results) -> float:
    typical = results["worst", OURS]
    rows = (row.label for row in _WORST.ours[1:-1])
    return max(results["worst", row].times(typical) for row in rows)


def _mib(stage: str, row: str) -> Callable[[Results], float]:
    def value(results: Results) -> float:
        extra = results[stage, row].extra_bytes
        return math.nan if extra is None else extra / 2**20

    return value


def _ms(stage: str, row: str) -> Callable[[Results], float]:
    return lambda results: results[stage, row].ms


_STRICT, _CENTROID, _BOTH = (row.label for row in _RULES.ours)
_BOTH = _DISTANCES.ours[0].label
_FASTEST_OF_DISTANCES = _DISTANCES.others[1:]
_STROKE = _stroke(MEDIUM).ours
TARGETS = (
    Target("matching, M", 4, "x LIMIT", _times("matching M", OURS, READING)),
    Target("matching, L", 3, "x LIMIT", _times("matching L", OURS, READING)),
    Target(
        "matching, M, faster than the fastest evaluation library",
        15,
        "x",
        _fastest("matching M", OURS, _LIBRARIES),
        at_least=True,
    ),
    Target(
        "matching, M, faster than the best NumPy form",
        4,
        "x",
        _fastest("matching M", OURS, _NUMPY[:2]),
        at_least=True,
    ),
    Target(
        "matching a noise image",
        2,
        "x np.unique",
        _times("worst", "the same, noise", "NumPy unique of fused ids, noise"),
    ),
    Target("matching sparse ids, one object, none, full cover", 5, "x the typical M", _worst),
    Target("extra memory of matching, L", 64, "MiB", _mib("matching L", OURS)),
    Target("centroid rule", 1.1, "x strict", _times("rules", _CENTROID, _STRICT)),
    Target("strict and centroid together", 1.1, "x strict", _times("rules", _BOTH, _STRICT)),
    Target("both distances of all pairs, M", 8, "ms", _ms("distances", _BOTH)),
    Target(
        "distances, faster than the fastest exact peer",
        10,
        "x",
        _fastest("distances", _BOTH, _FASTEST_OF_DISTANCES),
        at_least=True,
    ),
    *(
        Target(f"polygons to labels, {s}", 3, "x allocating", _times(key, OURS, limit))
        for s in "ML"
        for key, limit in [(f"polygons {s}", "LIMIT: allocating the image")]
    ),
    *(
        Target(
            f"restoration, border-{kind}",
            6,
            "x reading the RGB",
            _times(f"restoration {kind}", OURS, COLOURS),
        )
        for kind in ("removed", "dilated")
    ),
    Target(
        "restoration, border-dilated, faster than cc3d",
        4,
        "x",
        _times("restoration dilated", "cc3d + shifted maxima", OURS),
        at_least=True,
    ),
    Target(
        "statuses, causes, metrics of 25,000 objects",
        15,
        "ms",
        _ms("figures", f"{OURS}, all of it"),
    ),
    *(
        Target(f"a stroke, all figures, {s}", bound, "ms", _ms(f"stroke {s}", _STROKE[0].label))
        for s, bound in (("M", 0.4), ("L", 3.0))
    ),
)
