"""Match predicted objects to reference objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.statistics.graphs import pairs_by_component
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import EvaluationSettings, Matching
from napari_panoptic.values.vocabulary import Side, of_side
from napari_panoptic.values.windowed_labels import TiledPair

NO_PARTNER = -1


@dataclass(frozen=True, eq=False)
class Matches:
    """One-to-one pairs of reference and predicted objects."""

    #: int32 (n,): row of the matched prediction, or -1.
    reference_partner: NDArray[np.int32]
    #: int32 (m,): row of the matched reference object, or -1.
    prediction_partner: NDArray[np.int32]
    #: int64 (k,): positions of the matched pairs in the judged overlap.
    pair: NDArray[np.int64]

    def partner(self, side: Side) -> NDArray[np.int32]:
        """Return the partners of one side's objects."""
        return of_side(side, self.reference_partner, self.prediction_partner)


class PointLookup(Protocol):
    """What the centroid rule looks up at single pixels, in images or in windows of a slide."""

    def reference_at(
        self, y: NDArray[np.int64], x: NDArray[np.int64]
    ) -> Sequence[NDArray[np.int32]]:
        """Return the reference objects (row plus one; 0 for none) at points, image by image."""

    def ambiguous_at(self, y: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which points (n,) are in the ambiguous area."""


ZoneLookup = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Returns which points (n,) lie in the zone, given their rows and columns."""


def match(
    pair: LabelPair | TiledPair,
    table: OverlapTable,
    judged: JudgedOverlap,
    settings: EvaluationSettings,
    *,
    points: PointLookup | None = None,
    zone_at: ZoneLookup | None = None,
) -> Matches:
    """Match the objects of a label pair by the rule that the settings name.

    Parameters
    ----------
    pair, table, judged
        The label pair, its overlap table, and that table after the policy.
    settings
        Rule and threshold.
    points
        Looks up single pixels; needed for a pair that is read in windows, and None for
        one that is held.
    zone_at
        Looks up which pixels lie in the zone; None without one.

    Returns
    -------
    Matches
        Class-blind. Strict IoU: pairs above the threshold, strictly; below a
        threshold of 0.5 the one-to-one subset of largest summed IoU. Centroid:
        for each reference object the prediction of highest IoU (lowest id of
        equals), if its rounded centroid falls on a counting pixel of that object. If
        objects of a side share pixels, always the one-to-one subset.
    """
    if settings.matching is Matching.CENTROID:
        if points is None:
            if not isinstance(pair, LabelPair):
                raise TypeError("single pixels of a pair that is read in windows need a lookup")
            points = pair
        chosen = _centroid_pairs(pair, points, judged, zone_at)
        is_contested = pair.has_planes
    else:
        chosen = np.flatnonzero(judged.iou > settings.iou_threshold)
        # Above 0.5 two objects compete for the same one only if they share pixels.
        is_contested = settings.one_to_one_enforced or pair.has_planes
    if is_contested:
        chosen = _best_assignment(chosen, table, judged)
    rows, columns = judged.pair_reference[chosen], judged.pair_prediction[chosen]
    reference_partner = np.full(len(table.reference), NO_PARTNER, np.int32)
    prediction_partner = np.full(len(table.prediction), NO_PARTNER, np.int32)
    reference_partner[rows], prediction_partner[columns] = columns, rows
    return Matches(reference_partner, prediction_partner, chosen)


def _centroid_pairs(
    pair: LabelPair | TiledPair,
    points: PointLookup,
    judged: JudgedOverlap,
    zone_at: ZoneLookup | None,
) -> NDArray[np.int64]:
    best = _best_of_each(judged, pair.prediction.ids)
    # Rounds half to even, as the published rule does.
    y, x = (
        np.rint(judged.prediction.centroid_yx_px[judged.pair_prediction[best]]).astype(np.int64).T
    )
    wanted = judged.pair_reference[best] + 1
    hit = np.any([found == wanted for found in points.reference_at(y, x)], axis=0)
    if judged.cuts_reference and pair.ambiguous is not None:
        hit &= ~points.ambiguous_at(y, x)
    if zone_at is not None:
        hit &= ~zone_at(y, x)
    matched: NDArray[np.int64] = best[hit]
    return matched


def _best_of_each(judged: JudgedOverlap, prediction_ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pair of highest IoU of each reference object that has one; ties: lowest id."""
    pairs = np.flatnonzero(judged.iou > 0)
    rows, ids = judged.pair_reference[pairs], prediction_ids[judged.pair_prediction[pairs]]
    order = np.lexsort((ids, -judged.iou[pairs], rows))
    best: NDArray[np.int64] = pairs[order[np.diff(rows[order], prepend=-1) != 0]]
    return best


def _best_assignment(
    candidates: NDArray[np.int64], table: OverlapTable, judged: JudgedOverlap
) -> NDArray[np.int64]:
    """Choose, among candidate pairs, the one-to-one subset of largest summed IoU."""
    rows, columns = judged.pair_reference[candidates], judged.pair_prediction[candidates]
    # Most pairs compete with no other.
    is_contested = (np.bincount(rows)[rows] > 1) | (np.bincount(columns)[columns] > 1)
    if not is_contested.any():
        return np.sort(candidates)
    contested = candidates[is_contested]
    groups = pairs_by_component(rows[is_contested], columns[is_contested])
    chosen = [_assign(contested[group], table, judged) for group in groups]
    return np.sort(np.concatenate([candidates[~is_contested], *chosen]))


def _assign(
    group: NDArray[np.int64], table: OverlapTable, judged: JudgedOverlap
) -> NDArray[np.int64]:
    from scipy.optimize import linear_sum_assignment  # the default rule does not need it

    # Objects enter in the order of their first pixels, so that which of several
    # equally good assignments is taken does not depend on how objects are labelled.
    i = _in_order(judged.pair_reference[group], table.reference)
    j = _in_order(judged.pair_prediction[group], table.prediction)
    iou = np.zeros((i.max() + 1, j.max() + 1))
    iou[i, j] = judged.iou[group]
    position = np.full(iou.shape, -1, np.int64)
    position[i, j] = group
    picked: NDArray[np.int64] = position[linear_sum_assignment(iou, maximize=True)]
    return picked[picked >= 0]


def _in_order(rows: NDArray[np.int32], side: SideTable) -> NDArray[np.int64]:
    """Return numbers from 0 for the objects in some rows, by their first pixels.

    Objects that share their first pixel follow each other by area, then by row.
    """
    once, place = np.unique(rows, return_inverse=True)
    order = np.lexsort((once, side.area[once], side.first_pixel[once]))
    number = np.empty(len(once), np.int64)
    number[order] = np.arange(len(once))
    return number[place]
