"""Pair detected with annotated points within a distance, and count them.

As in MITOS-ATYPIA-14: a detection is right if its centroid lies within 8 um of an
annotated mitosis, one detection per mitosis.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.statistics.graphs import pairs_by_component
from napari_panoptic.statistics.means import quotient
from napari_panoptic.values.detections import Points
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, of_side

DISTANCE_UM = 8.0
"""Largest distance of a detection from a mitosis in MITOS-ATYPIA-14."""
NO_PARTNER = -1
_ROUNDING = 1e-9
"""Relative excess of the limit that is allowed, since decimals are not exact in binary."""


@dataclass(frozen=True)
class DetectionSettings:
    """How detections are matched.

    Raises
    ------
    SettingsError
        For an invalid value.
    """

    #: Largest distance of a pair, inclusive.
    distance_um: float = DISTANCE_UM
    #: Detections below this confidence are left out; None to keep all. Detections without a
    #: confidence always count: their team has chosen them.
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
        """Return which detections are at or above the threshold, bool (n,)."""
        if self.confidence is None:
            return np.ones(len(confidence), bool)
        return np.isnan(confidence) | (confidence >= self.confidence)


@dataclass(frozen=True)
class DetectionCounts:
    """TP, FP and FN; counts of several frames can be added."""

    #: Pairs, detections without a partner, annotated points without one.
    tp: int = 0
    fp: int = 0
    fn: int = 0

    def __add__(self, other: DetectionCounts) -> DetectionCounts:
        return DetectionCounts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def precision(self) -> float:
        """TP / (TP + FP); NaN if nothing was detected."""
        return quotient(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """TP / (TP + FN); NaN if nothing was annotated."""
        return quotient(self.tp, self.tp + self.fn)

    @property
    def f_measure(self) -> float:
        """2 TP / (2 TP + FP + FN), the harmonic mean of both; NaN without any point.

        Equal to 2 P R / (P + R) if that is defined, and 0 if nothing right was found.
        """
        return quotient(2 * self.tp, self.weight)

    @property
    def weight(self) -> int:
        """2 TP + FP + FN: the F-measure of a sum is the mean with these weights."""
        return 2 * self.tp + self.fp + self.fn


# --- pairs --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointPairs:
    """The detection of each annotated point, and the reverse."""

    #: int64 (n,): row of the detection, or -1.
    reference_partner: NDArray[np.int64]
    #: int64 (m,): row of the annotated point, or -1.
    prediction_partner: NDArray[np.int64]
    #: float64 (n,) and (m,): to the partner; without one to the nearest point of the other side;
    #: NaN if that side has none.
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

    The number of pairs within the distance is maximal, and their summed distance
    is minimal among all such pairings. The solution is exact: each connected
    component of possible pairs is solved as a whole.

    Parameters
    ----------
    reference_um, prediction_um
        float64 (n, 2) and (m, 2): positions in micrometres.
    distance_um
        Largest distance of a pair, inclusive.
    """
    near = near_pairs(reference_um, prediction_um, distance_um)
    own, other = _assigned(near)
    reference_partner = np.full(len(reference_um), NO_PARTNER)
    prediction_partner = np.full(len(prediction_um), NO_PARTNER)
    reference_partner[own], prediction_partner[other] = other, own
    to_prediction = _nearest(reference_um, prediction_um)
    to_reference = _nearest(prediction_um, reference_um)
    between = _lengths(reference_um[own] - prediction_um[other])
    to_prediction[own], to_reference[other] = between, between
    return PointPairs(reference_partner, prediction_partner, to_prediction, to_reference)


@dataclass(frozen=True, eq=False)
class NearPairs:
    """The pairs within the distance: rows of both sides and distances, (k,) each."""

    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    distance: NDArray[np.float64]


def near_pairs(
    reference_um: NDArray[np.float64], prediction_um: NDArray[np.float64], distance_um: float
) -> NearPairs:
    """Return all pairs within a distance, sorted by row and column."""
    from scipy.spatial import cKDTree  # takes longer than a window to open

    nothing = np.zeros(0, np.int64)
    if not len(reference_um) or not len(prediction_um):
        return NearPairs(nothing, nothing, np.zeros(0))
    limit = distance_um * (1 + _ROUNDING)
    trees = cKDTree(reference_um), cKDTree(prediction_um)
    # Slightly beyond the limit; the exact comparison follows below.
    found = trees[0].sparse_distance_matrix(
        trees[1], limit * (1 + _ROUNDING), output_type="ndarray"
    )
    rows, columns = found["i"].astype(np.int64), found["j"].astype(np.int64)
    lengths = _lengths(reference_um[rows] - prediction_um[columns])
    order = np.lexsort((columns, rows))
    order = order[lengths[order] <= limit]
    return NearPairs(rows[order], columns[order], lengths[order])


def _lengths(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.hypot(xy[:, 0], xy[:, 1])
    return lengths


def _nearest(from_um: NDArray[np.float64], to_um: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.spatial import cKDTree

    if not len(from_um) or not len(to_um):
        return np.full(len(from_um), np.nan)
    distances: NDArray[np.float64] = cKDTree(to_um).query(from_um)[0]
    return distances


def _assigned(near: NearPairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of both sides of the chosen pairs."""
    groups = pairs_by_component(near.reference, near.prediction)
    # Most points have one counterpart and need no solver.
    alone = np.array([group[0] for group in groups if len(group) == 1], np.int64)
    chosen = [(near.reference[alone], near.prediction[alone])]
    chosen += [_best(near, group) for group in groups if len(group) > 1]
    own, other = zip(*chosen, strict=True)
    return np.concatenate(own), np.concatenate(other)


def _best(near: NearPairs, group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Solve one component; return the rows of both sides of its pairs.

    Each annotated point can be paired with a dummy, which costs more than all distances
    together, so that the number of pairs comes first.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows, row_of = np.unique(near.reference[group], return_inverse=True)
    columns, column_of = np.unique(near.prediction[group], return_inverse=True)
    distance, every = near.distance[group], np.arange(len(rows))
    dummy_cost = float(distance.max()) * (min(len(rows), len(columns)) + 1) + 1.0
    # A cost of zero would mean no edge: add one to all.
    costs = np.concatenate([distance, np.full(len(rows), dummy_cost)]) + 1.0
    # scipy 1.15 accepts only 32-bit indices.
    ends = (
        np.concatenate([row_of, every]).astype(np.int32),
        np.concatenate([column_of, len(columns) + every]).astype(np.int32),
    )
    graph = csr_array((costs, ends), shape=(len(rows), len(columns) + len(rows)))
    own, other = min_weight_full_bipartite_matching(graph)
    is_pair = other < len(columns)
    return rows[own[is_pair]], columns[other[is_pair]]


# --- one frame ------------------------------------------------------------------------------------


class PointOutcomes(NamedTuple):
    """The points of one side of a frame and their outcomes, as in `JudgedPoints`."""

    points: Points
    status: NDArray[np.int8]
    partner: NDArray[np.int64]
    distance_um: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgedPoints:
    """The outcome of every point of one frame."""

    #: All points, also those that do not count.
    reference: Points
    prediction: Points
    #: int8 (n,) and (m,): status codes (`STATUSES`): TP and FN; TP, FP, and ignored for detections
    #: below the confidence threshold.
    reference_status: NDArray[np.int8]
    prediction_status: NDArray[np.int8]
    #: int64 (n,) and (m,): row of the partner, or -1.
    reference_partner: NDArray[np.int64]
    prediction_partner: NDArray[np.int64]
    #: float64 (n,) and (m,): as in `PointPairs`; NaN for ignored detections.
    reference_distance_um: NDArray[np.float64]
    prediction_distance_um: NDArray[np.float64]

    def side(self, side: Side) -> PointOutcomes:
        """Return the points of a side and their outcomes."""
        status = of_side(side, self.reference_status, self.prediction_status)
        partner = of_side(side, self.reference_partner, self.prediction_partner)
        distance_um = of_side(side, self.reference_distance_um, self.prediction_distance_um)
        points = of_side(side, self.reference, self.prediction)
        return PointOutcomes(points, status, partner, distance_um)

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
    """Determine the outcome of every point of a frame.

    Parameters
    ----------
    reference, prediction
        The annotated points and the detections.
    mpp_xy
        Micrometres per pixel along x and y.
    settings
        How to match.
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
