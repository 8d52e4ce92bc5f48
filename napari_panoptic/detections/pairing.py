"""Points found against points annotated: pairs within a distance, counts, precision and recall.

As in MITOS-ATYPIA-14: a detection is right where its centroid lies within 8 um of
an annotated mitosis, one detection per mitosis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.detections.cohort import Points
from napari_panoptic.nuclei.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.statistics.means import quotient

DISTANCE_UM = 8.0
"""How far a detection may lie from a mitosis, in MITOS-ATYPIA-14."""
NO_PARTNER = -1
_ROUNDING = 1e-9
"""Relative: by so much a distance may exceed the limit, since decimals are no binary fractions."""
_DENSE_UP_TO = 1 << 22
"""Entries of a matrix of costs; larger components are solved as sparse ones."""


@dataclass(frozen=True)
class DetectionSettings:
    """How detections are judged.

    Parameters
    ----------
    distance_um
        How far apart the two points of a pair may lie; this distance included.
    confidence
        Detections below this confidence are left out; None leaves out none.
        Detections without a confidence always count: their team has chosen them.

    Raises
    ------
    SettingsError
        For a value that cannot be.
    """

    distance_um: float = DISTANCE_UM
    confidence: float | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        if not (math.isfinite(self.distance_um) and self.distance_um > 0):
            raise SettingsError(
                f"the distance must be a number of micrometres above 0, found {self.distance_um}"
            )
        if self.confidence is not None and not math.isfinite(self.confidence):
            raise SettingsError(f"the confidence must be a number, found {self.confidence}")

    def as_record(self) -> dict[str, float | None]:
        """Return a plain dictionary, for JSON."""
        return asdict(self)

    def counted(self, confidence: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which detections are sure enough, bool (n,)."""
        if self.confidence is None:
            return np.ones(len(confidence), bool)
        return np.isnan(confidence) | (confidence >= self.confidence)


@dataclass(frozen=True)
class DetectionCounts:
    """How many were found, invented and missed; adds up over frames.

    Parameters
    ----------
    tp, fp, fn
        Pairs, detections without a partner, annotated points without one.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0

    def __add__(self, other: DetectionCounts) -> DetectionCounts:
        return DetectionCounts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def precision(self) -> float:
        """TP / (TP + FP); NaN where nothing was detected."""
        return quotient(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """TP / (TP + FN); NaN where nothing was annotated."""
        return quotient(self.tp, self.tp + self.fn)

    @property
    def f_measure(self) -> float:
        """2 TP / (2 TP + FP + FN), the harmonic mean of both; NaN where there is nothing at all.

        The same as 2 P R / (P + R) where that is defined, and 0 where nothing
        right was found.
        """
        return quotient(2 * self.tp, self.weight)

    @property
    def weight(self) -> int:
        """2 TP + FP + FN: the F-measure of several is their mean with these weights."""
        return 2 * self.tp + self.fp + self.fn


def summed(counts: Iterable[DetectionCounts]) -> DetectionCounts:
    """Add counts up."""
    return sum(counts, DetectionCounts())


# --- pairs --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointPairs:
    """Which detection belongs to which annotated point.

    Parameters
    ----------
    reference_partner
        int64 (n,): row of the detection, or -1.
    prediction_partner
        int64 (m,): row of the annotated point, or -1.
    reference_distance_um, prediction_distance_um
        float64 (n,) and (m,): to the partner; without one to the nearest point
        of the other side; NaN where that side has none.
    """

    reference_partner: NDArray[np.int64]
    prediction_partner: NDArray[np.int64]
    reference_distance_um: NDArray[np.float64]
    prediction_distance_um: NDArray[np.float64]

    @property
    def counts(self) -> DetectionCounts:
        """TP, FP and FN."""
        tp = int((self.prediction_partner >= 0).sum())
        return DetectionCounts(
            tp, len(self.prediction_partner) - tp, len(self.reference_partner) - tp
        )


def pair_points(
    reference_um: NDArray[np.float64],
    prediction_um: NDArray[np.float64],
    distance_um: float = DISTANCE_UM,
) -> PointPairs:
    """Pair detections with annotated points, one to one.

    As many pairs as possible lie within the distance; among all ways to reach
    that number, one of the smallest summed distance. Exact: points that are
    connected by possible pairs are assigned to each other as a whole.

    Parameters
    ----------
    reference_um, prediction_um
        float64 (n, 2) and (m, 2): places in micrometres.
    distance_um
        How far apart a pair may lie, inclusive.
    """
    near = _near(reference_um, prediction_um, distance_um)
    own, other = _assigned(near, len(reference_um), len(prediction_um))
    reference_partner = np.full(len(reference_um), NO_PARTNER)
    prediction_partner = np.full(len(prediction_um), NO_PARTNER)
    reference_partner[own], prediction_partner[other] = other, own
    to_prediction = _nearest(reference_um, prediction_um)
    to_reference = _nearest(prediction_um, reference_um)
    between = _lengths(reference_um[own] - prediction_um[other])
    to_prediction[own], to_reference[other] = between, between
    return PointPairs(reference_partner, prediction_partner, to_prediction, to_reference)


@dataclass(frozen=True, eq=False)
class _Near:
    """The pairs that are near enough: rows of both sides and distances, (k,) each."""

    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    distance: NDArray[np.float64]


def _near(
    reference_um: NDArray[np.float64], prediction_um: NDArray[np.float64], distance_um: float
) -> _Near:
    from scipy.spatial import cKDTree  # takes longer than a window to open

    nothing = np.zeros(0, np.int64)
    if not len(reference_um) or not len(prediction_um):
        return _Near(nothing, nothing, np.zeros(0))
    limit = distance_um * (1 + _ROUNDING)
    trees = cKDTree(reference_um), cKDTree(prediction_um)
    # A little further than the limit: what is near enough is decided by the same sum below.
    found = trees[0].sparse_distance_matrix(
        trees[1], limit * (1 + _ROUNDING), output_type="ndarray"
    )
    rows, columns = found["i"].astype(np.int64), found["j"].astype(np.int64)
    lengths = _lengths(reference_um[rows] - prediction_um[columns])
    order = np.lexsort((columns, rows))
    order = order[lengths[order] <= limit]
    return _Near(rows[order], columns[order], lengths[order])


def _lengths(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.hypot(xy[:, 0], xy[:, 1])
    return lengths


def _nearest(from_um: NDArray[np.float64], to_um: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.spatial import cKDTree

    if not len(from_um) or not len(to_um):
        return np.full(len(from_um), np.nan)
    distances: NDArray[np.float64] = cKDTree(to_um).query(from_um)[0]
    return distances


def _assigned(
    near: _Near, n_reference: int, n_prediction: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of both sides of every pair chosen."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(near.distance):
        return near.reference, near.prediction
    n = n_reference + n_prediction
    ends = near.reference, near.prediction + n_reference
    graph = coo_array((np.ones(len(near.distance), np.int8), ends), shape=(n, n))
    component = connected_components(graph, directed=False)[1][near.reference]
    order = np.argsort(component, kind="stable")
    starts = np.flatnonzero(np.diff(component[order], prepend=-1))
    groups = np.split(order, starts[1:])
    # Most points have one counterpart: nothing is to be chosen there.
    alone = [group[0] for group in groups if len(group) == 1]
    chosen = [np.array(alone, np.int64)]
    chosen += [group[_best(near, group)] for group in groups if len(group) > 1]
    edges = np.concatenate(chosen)
    return near.reference[edges], near.prediction[edges]


def _best(near: _Near, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Choose among the edges of one component; gives places in the group.

    Whatever is left without a partner costs more than all distances together,
    so that the number of pairs comes first.
    """
    rows, row_of = np.unique(near.reference[group], return_inverse=True)
    columns, column_of = np.unique(near.prediction[group], return_inverse=True)
    distance = near.distance[group]
    dear = float(distance.max()) * (min(len(rows), len(columns)) + 1) + 1.0
    solve = _dense if len(rows) * len(columns) <= _DENSE_UP_TO else _sparse
    return solve(row_of, column_of, distance, (len(rows), len(columns)), dear)


def _dense(
    row_of: NDArray[np.int64],
    column_of: NDArray[np.int64],
    distance: NDArray[np.float64],
    shape: tuple[int, int],
    dear: float,
) -> NDArray[np.int64]:
    from scipy.optimize import linear_sum_assignment

    costs = np.full(shape, dear)
    costs[row_of, column_of] = distance
    edge = np.full(shape, NO_PARTNER)
    edge[row_of, column_of] = np.arange(len(distance))
    chosen: NDArray[np.int64] = edge[linear_sum_assignment(costs)]
    return chosen[chosen >= 0]


def _sparse(
    row_of: NDArray[np.int64],
    column_of: NDArray[np.int64],
    distance: NDArray[np.float64],
    shape: tuple[int, int],
    dear: float,
) -> NDArray[np.int64]:
    """As `_dense`; every row has a stand-in of its own to be paired with at a dear price."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    n_rows, n_columns = shape
    every = np.arange(n_rows)
    # A price of zero would count as no edge: all are one higher.
    prices = np.concatenate([distance, np.full(n_rows, dear)]) + 1.0
    rows, columns = (row_of, every), (column_of, n_columns + every)
    # Of 32 bits, which is all that scipy 1.15 takes.
    ends = np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32)
    graph = csr_array((prices, ends), shape=(n_rows, n_columns + n_rows))
    own, other = min_weight_full_bipartite_matching(graph)
    is_pair = other < n_columns
    order = np.lexsort((column_of, row_of))
    keys = (row_of * n_columns + column_of)[order]
    wanted = own[is_pair].astype(np.int64) * n_columns + other[is_pair]
    places: NDArray[np.int64] = order[np.searchsorted(keys, wanted)]
    return places


# --- precision and recall at every threshold ------------------------------------------------------


def adds_a_pair(
    reference_um: NDArray[np.float64],
    prediction_um: NDArray[np.float64],
    confidence: NDArray[np.float64],
    distance_um: float = DISTANCE_UM,
) -> NDArray[np.bool_]:
    """Return which detections raise the number of pairs when they are added, the surest first.

    At any threshold, the largest possible number of pairs is the number of such
    detections at or above it: whether a set of detections can be paired whole
    is a matroid (Edmonds and Fulkerson 1965), and in a matroid the greedy order
    finds the rank of every leading part. Each detection looks for an augmenting
    path (Berge 1957; Kuhn 1955).

    Parameters
    ----------
    reference_um, prediction_um
        float64 (n, 2) and (m, 2): places in micrometres.
    confidence
        float64 (m,), no NaN.
    distance_um
        How far apart a pair may lie, inclusive.

    Returns
    -------
    bool (m,)
    """
    near = _near(reference_um, prediction_um, distance_um)
    order = np.argsort(near.prediction, kind="stable")
    ends = np.searchsorted(near.prediction[order], np.arange(len(prediction_um) + 1))
    neighbours = near.reference[order]
    lists = [neighbours[a:b].tolist() for a, b in itertools.pairwise(ends)]
    row_of: dict[int, int] = {}
    point_of: dict[int, int] = {}
    adds = np.zeros(len(prediction_um), bool)
    for row in np.argsort(-confidence, kind="stable").tolist():
        adds[row] = _augment(row, lists, row_of, point_of)
    return adds


def _augment(
    start: int, lists: Sequence[Sequence[int]], row_of: dict[int, int], point_of: dict[int, int]
) -> bool:
    """Look for an annotated point that is free, or can be made so, breadth first; then take it.

    Parameters
    ----------
    start
        The detection that is added.
    lists
        Detection -> the points near enough.
    row_of, point_of
        The pairs so far, by point and by detection; changed where there is a way.
    """
    reached_from: dict[int, int] = {}
    queue = [start]
    for row in queue:
        for point in lists[row]:
            if point in reached_from:
                continue
            reached_from[point] = row
            if point in row_of:
                queue.append(row_of[point])
                continue
            # Each detection on the way takes the next point, and leaves its own to the one before.
            free: int | None = point
            while free is not None:
                taker = reached_from[free]
                left = point_of.get(taker)
                row_of[free], point_of[taker] = taker, free
                free = left
            return True
    return False


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall at every threshold of confidence, the surest first.

    Parameters
    ----------
    thresholds
        float64 (k,): the confidences given, each once, falling.
    tp, fp
        int64 (k,): over all frames, with the detections at or above each
        threshold, paired as well as these alone can be.
    n_reference
        Annotated points of all frames.
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    n_reference: int

    def __len__(self) -> int:
        return len(self.thresholds)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """float64 (k,)."""
        return self.tp / (self.tp + self.fp)

    @cached_property
    def recall(self) -> NDArray[np.float64]:
        """float64 (k,); NaN where nothing was annotated."""
        if not self.n_reference:
            return np.full(len(self), np.nan)
        return self.tp / self.n_reference

    @cached_property
    def f_measure(self) -> NDArray[np.float64]:
        """float64 (k,)."""
        return 2 * self.tp / (self.tp + self.fp + self.n_reference)

    @property
    def average_precision(self) -> float:
        """Sum over thresholds of precision times the recall gained there.

        Not interpolated. NaN where nothing was annotated, 0 where nothing was
        detected.
        """
        if not self.n_reference:
            return math.nan
        gained = np.diff(self.recall, prepend=0.0)
        return float((gained * self.precision).sum())

    @property
    def best(self) -> int | None:
        """Where the F-measure is largest, the highest threshold of several; None without any."""
        return int(np.argmax(self.f_measure)) if len(self) else None

    def counts_at(self, place: int) -> DetectionCounts:
        """Return TP, FP and FN at a threshold."""
        tp = int(self.tp[place])
        return DetectionCounts(tp, int(self.fp[place]), self.n_reference - tp)

    def place_of(self, threshold: float) -> int | None:
        """Find the lowest listed threshold at or above one; None where none is that high."""
        place = int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1
        return place if place >= 0 else None


def precision_recall(
    confidence: NDArray[np.float64], adds: NDArray[np.bool_], n_reference: int
) -> PrecisionRecall:
    """Return precision and recall over frames at every threshold.

    Parameters
    ----------
    confidence, adds
        float64 (m,) and bool (m,): of the detections of all frames, the latter
        as `adds_a_pair` says frame by frame.
    n_reference
        Annotated points of all these frames.
    """
    order = np.argsort(-confidence, kind="stable")
    falling = confidence[order]
    # The last of equal confidences: a threshold takes all of them or none.
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True)) if len(falling) else order
    tp = np.cumsum(adds[order])[last].astype(np.int64)
    return PrecisionRecall(falling[last], tp, last + 1 - tp, n_reference)


# --- one frame ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JudgedPoints:
    """What became of the points of one frame.

    Parameters
    ----------
    reference, prediction
        All of them, whether they count or not.
    reference_status, prediction_status
        int8 (n,) and (m,): status codes (`STATUSES`): TP and FN; TP, FP, and
        ignored for detections that are not sure enough.
    reference_partner, prediction_partner
        int64 (n,) and (m,): row of the partner, or -1.
    reference_distance_um, prediction_distance_um
        float64 (n,) and (m,): as in `PointPairs`; NaN for what is ignored.
    """

    reference: Points
    prediction: Points
    reference_status: NDArray[np.int8]
    prediction_status: NDArray[np.int8]
    reference_partner: NDArray[np.int64]
    prediction_partner: NDArray[np.int64]
    reference_distance_um: NDArray[np.float64]
    prediction_distance_um: NDArray[np.float64]

    def of(self, side: Side) -> Points:
        """Return the points of a side."""
        return self.reference if side is Side.REFERENCE else self.prediction

    @cached_property
    def counts(self) -> DetectionCounts:
        """TP, FP and FN."""
        own = np.bincount(self.prediction_status, minlength=len(STATUS_CODE))
        tp, fp = int(own[STATUS_CODE[Status.TP]]), int(own[STATUS_CODE[Status.FP]])
        return DetectionCounts(tp, fp, len(self.reference) - tp)


def judge_points(
    reference: Points,
    prediction: Points,
    mpp_xy: tuple[float, float],
    settings: DetectionSettings,
) -> JudgedPoints:
    """Find out what became of every point of a frame.

    Parameters
    ----------
    reference, prediction
        The annotated points and the detections.
    mpp_xy
        Micrometres per pixel along x and y.
    settings
        How to judge.
    """
    scale = np.array(mpp_xy)
    own_um, other_um = reference.xy_px * scale, prediction.xy_px * scale
    counted = np.flatnonzero(settings.counted(prediction.confidence))
    pairs = pair_points(own_um, other_um[counted], settings.distance_um)
    tp, fp, fn, ignored = (
        np.int8(STATUS_CODE[s]) for s in (Status.TP, Status.FP, Status.FN, Status.IGNORED)
    )
    prediction_status = np.full(len(prediction), ignored)
    prediction_status[counted] = np.where(pairs.prediction_partner >= 0, tp, fp)
    prediction_partner = np.full(len(prediction), NO_PARTNER)
    prediction_partner[counted] = pairs.prediction_partner
    prediction_distance = np.full(len(prediction), np.nan)
    prediction_distance[counted] = pairs.prediction_distance_um
    is_found = pairs.reference_partner >= 0
    reference_partner = np.full(len(reference), NO_PARTNER)
    reference_partner[is_found] = counted[pairs.reference_partner[is_found]]
    return JudgedPoints(
        reference,
        prediction,
        np.where(is_found, tp, fn),
        prediction_status,
        reference_partner,
        prediction_partner,
        pairs.reference_distance_um,
        prediction_distance,
    )


@dataclass(frozen=True, eq=False)
class Standing:
    """What a team's detections of one frame amount to at any threshold of confidence.

    Parameters
    ----------
    confidence
        float64 (m,); NaN for detections that always count.
    adds
        bool (m,): as from `adds_a_pair`, those without a confidence first.
    n_reference
        Annotated points.
    """

    confidence: NDArray[np.float64]
    adds: NDArray[np.bool_]
    n_reference: int

    def counts(self, settings: DetectionSettings) -> DetectionCounts:
        """Return TP, FP and FN of the detections that are sure enough."""
        counted = settings.counted(self.confidence)
        tp = int(self.adds[counted].sum())
        return DetectionCounts(tp, int(counted.sum()) - tp, self.n_reference - tp)


def standing(
    reference: Points,
    prediction: Points,
    mpp_xy: tuple[float, float],
    distance_um: float = DISTANCE_UM,
) -> Standing:
    """Find out what detections amount to at any threshold.

    Parameters
    ----------
    reference, prediction, mpp_xy
        As for `judge_points`.
    distance_um
        How far apart a pair may lie, inclusive.
    """
    scale = np.array(mpp_xy)
    sure = np.where(np.isnan(prediction.confidence), np.inf, prediction.confidence)
    adds = adds_a_pair(reference.xy_px * scale, prediction.xy_px * scale, sure, distance_um)
    return Standing(prediction.confidence, adds, len(reference))


@dataclass(frozen=True, eq=False)
class StackedStandings:
    """The standings of a team in several frames, one behind the other: all are counted at once.

    Parameters
    ----------
    confidence, adds
        float64 (m,) and bool (m,): as in `Standing`, of all frames.
    frame
        int64 (m,): the place of the frame that each detection is in.
    n_reference
        int64 (k,): annotated points of each frame.
    """

    confidence: NDArray[np.float64]
    adds: NDArray[np.bool_]
    frame: NDArray[np.int64]
    n_reference: NDArray[np.int64]

    @classmethod
    def of(cls, standings: Sequence[Standing]) -> StackedStandings:
        """Stack standings; there may be none."""
        return cls(
            np.concatenate([np.zeros(0), *(one.confidence for one in standings)]),
            np.concatenate([np.zeros(0, bool), *(one.adds for one in standings)]),
            np.repeat(np.arange(len(standings)), [len(one.adds) for one in standings]),
            np.array([one.n_reference for one in standings], np.int64),
        )

    def counts(self, settings: DetectionSettings) -> list[DetectionCounts]:
        """Return TP, FP and FN of each frame; as `Standing.counts`."""
        counted = settings.counted(self.confidence)
        k = len(self.n_reference)
        n_counted = np.bincount(self.frame[counted], minlength=k)
        tp = np.bincount(self.frame[counted & self.adds], minlength=k)
        rows = np.stack([tp, n_counted - tp, self.n_reference - tp], axis=1)
        return [DetectionCounts(*row) for row in rows.tolist()]

    @property
    def curve(self) -> PrecisionRecall | None:
        """Precision and recall over all frames; None where a detection has no confidence."""
        if np.isnan(self.confidence).any():
            return None
        return precision_recall(self.confidence, self.adds, int(self.n_reference.sum()))


def curve_of(standings: Sequence[Standing]) -> PrecisionRecall | None:
    """Return precision and recall over frames; None where a detection has no confidence."""
    return StackedStandings.of(standings).curve
