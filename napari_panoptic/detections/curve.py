"""Counts, precision and recall of detections at every threshold of confidence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.detections.pairing import (
    DISTANCE_UM,
    DetectionCounts,
    DetectionSettings,
    near_pairs,
)
from napari_panoptic.values.detections import Points


def adds_a_pair(
    reference_um: NDArray[np.float64],
    prediction_um: NDArray[np.float64],
    confidence: NDArray[np.float64],
    distance_um: float = DISTANCE_UM,
) -> NDArray[np.bool_]:
    """Return which detections increase the number of pairs, added by decreasing confidence.

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
        Largest distance of a pair, inclusive.

    Returns
    -------
    bool (m,)
    """
    near = near_pairs(reference_um, prediction_um, distance_um)
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
    """Pair a detection by the shortest augmenting path; return whether there is one.

    Parameters
    ----------
    start
        The added detection.
    lists
        Detection -> the points near enough.
    row_of, point_of
        The pairs so far, by point and by detection; updated in place.
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
            # Each detection on the path takes the next point and releases its own.
            free: int | None = point
            while free is not None:
                taker = reached_from[free]
                left = point_of.get(taker)
                row_of[free], point_of[taker] = taker, free
                free = left
            return True
    return False


@dataclass(frozen=True, eq=False)
class DetectionCurve:
    """Precision and recall at every threshold of confidence, the highest first."""

    #: float64 (k,): the distinct confidences, decreasing.
    thresholds: NDArray[np.float64]
    #: int64 (k,): over all frames, with an optimal pairing of the detections at or above each
    #: threshold.
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    #: Annotated points of all frames.
    n_reference: int

    def __len__(self) -> int:
        return len(self.thresholds)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """float64 (k,)."""
        return self.tp / (self.tp + self.fp)

    @cached_property
    def recall(self) -> NDArray[np.float64]:
        """float64 (k,); NaN if nothing was annotated."""
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

        Not interpolated. NaN if nothing was annotated, 0 if nothing was detected.
        """
        if not self.n_reference:
            return math.nan
        gained = np.diff(self.recall, prepend=0.0)
        return float((gained * self.precision).sum())

    @property
    def best(self) -> int | None:
        """Position of the largest F-measure, the first of several; None without any."""
        return int(np.argmax(self.f_measure)) if len(self) else None

    def counts_at(self, place: int) -> DetectionCounts:
        """Return TP, FP and FN at a threshold."""
        tp = int(self.tp[place])
        return DetectionCounts(tp, int(self.fp[place]), self.n_reference - tp)

    def place_of(self, threshold: float) -> int | None:
        """Return the position of the lowest threshold at or above a value; None if none is."""
        place = int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1
        return place if place >= 0 else None


def precision_recall(
    confidence: NDArray[np.float64], adds: NDArray[np.bool_], n_reference: int
) -> DetectionCurve:
    """Return precision and recall over frames at every threshold.

    Parameters
    ----------
    confidence, adds
        float64 (m,) and bool (m,): of the detections of all frames, the latter
        from `adds_a_pair` frame by frame.
    n_reference
        Annotated points of all these frames.
    """
    order = np.argsort(-confidence, kind="stable")
    falling = confidence[order]
    # The last of equal confidences: a threshold takes all of them or none.
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True)) if len(falling) else order
    tp = np.cumsum(adds[order])[last].astype(np.int64)
    return DetectionCurve(falling[last], tp, last + 1 - tp, n_reference)


@dataclass(frozen=True, eq=False)
class ConfidenceCounts:
    """A team's TP, FP and FN in one frame as a function of the confidence threshold."""

    #: float64 (m,); NaN for detections that always count.
    confidence: NDArray[np.float64]
    #: bool (m,): as from `adds_a_pair`, those without a confidence first.
    adds: NDArray[np.bool_]
    #: Annotated points.
    n_reference: int


def confidence_counts(
    reference: Points,
    prediction: Points,
    mpp_xy: tuple[float, float],
    distance_um: float = DISTANCE_UM,
) -> ConfidenceCounts:
    """Count a team's detections in one frame at any threshold.

    Parameters
    ----------
    reference, prediction, mpp_xy
        As for `judge_points`.
    distance_um
        Largest distance of a pair, inclusive.
    """
    scale = np.array(mpp_xy)
    sure = np.where(np.isnan(prediction.confidence), np.inf, prediction.confidence)
    adds = adds_a_pair(reference.xy_px * scale, prediction.xy_px * scale, sure, distance_um)
    return ConfidenceCounts(prediction.confidence, adds, len(reference))


@dataclass(frozen=True, eq=False)
class StackedCounts:
    """A team's counts in several frames, concatenated so that all are counted at once."""

    #: float64 (m,) and bool (m,): as in `ConfidenceCounts`, of all frames.
    confidence: NDArray[np.float64]
    adds: NDArray[np.bool_]
    #: int64 (m,): position of the frame of each detection.
    frame: NDArray[np.int64]
    #: int64 (k,): annotated points of each frame.
    n_reference: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Sequence[ConfidenceCounts]) -> StackedCounts:
        """Concatenate counts; there may be none."""
        return cls(
            np.concatenate([np.zeros(0), *(one.confidence for one in counts)]),
            np.concatenate([np.zeros(0, bool), *(one.adds for one in counts)]),
            np.repeat(np.arange(len(counts)), [len(one.adds) for one in counts]),
            np.array([one.n_reference for one in counts], np.int64),
        )

    def counts(self, settings: DetectionSettings) -> list[DetectionCounts]:
        """Return TP, FP and FN of each frame."""
        counted = settings.counted(self.confidence)
        k = len(self.n_reference)
        n_counted = np.bincount(self.frame[counted], minlength=k)
        tp = np.bincount(self.frame[counted & self.adds], minlength=k)
        rows = np.stack([tp, n_counted - tp, self.n_reference - tp], axis=1)
        return [DetectionCounts(*row) for row in rows.tolist()]

    @property
    def curve(self) -> DetectionCurve | None:
        """Precision and recall over all frames; None if a detection has no confidence."""
        if np.isnan(self.confidence).any():
            return None
        return precision_recall(self.confidence, self.adds, int(self.n_reference.sum()))
