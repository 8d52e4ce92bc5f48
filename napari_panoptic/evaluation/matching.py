"""Which predicted object belongs to which reference object."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from napari_panoptic.evaluation.ambiguity import JudgedOverlap
from napari_panoptic.evaluation.labels import LabelPair
from napari_panoptic.evaluation.overlap import OverlapTable
from napari_panoptic.evaluation.settings import EvaluationSettings, Matching

NO_PARTNER = -1


@dataclass(frozen=True, eq=False)
class Matches:
    """One-to-one pairs of reference and predicted objects.

    Parameters
    ----------
    reference_partner
        int32 (n,): row of the matched prediction, or -1.
    prediction_partner
        int32 (m,): row of the matched reference object, or -1.
    pair
        int64 (k,): positions of the matched pairs in the judged overlap.
    """

    reference_partner: NDArray[np.int32]
    prediction_partner: NDArray[np.int32]
    pair: NDArray[np.int64]


def match(
    pair: LabelPair, table: OverlapTable, judged: JudgedOverlap, settings: EvaluationSettings
) -> Matches:
    """Match the objects of a label pair by the rule that the settings name.

    Parameters
    ----------
    pair, table, judged
        The label pair, its overlap table, and that table after the policy.
    settings
        Rule and threshold.

    Returns
    -------
    Matches
        Class-blind. Strict IoU: pairs above the threshold, strictly; below a
        threshold of 0.5 the one-to-one subset of largest summed IoU. Centroid:
        for each reference object the prediction of highest IoU (lowest id of
        equals), if its rounded centroid falls on that reference object.
    """
    if settings.matching is Matching.CENTROID:
        chosen = _centroid_pairs(pair, judged)
    else:
        chosen = np.flatnonzero(judged.iou > settings.iou_threshold)
        if settings.one_to_one_enforced:
            chosen = _best_assignment(chosen, table, judged)
    reference_partner = np.full(len(table.reference), NO_PARTNER, np.int32)
    prediction_partner = np.full(len(table.prediction), NO_PARTNER, np.int32)
    reference_partner[judged.pair_reference[chosen]] = judged.pair_prediction[chosen]
    prediction_partner[judged.pair_prediction[chosen]] = judged.pair_reference[chosen]
    return Matches(reference_partner, prediction_partner, chosen)


def _centroid_pairs(pair: LabelPair, judged: JudgedOverlap) -> NDArray[np.int64]:
    candidates = np.flatnonzero(judged.iou > 0)
    # Best pair per reference object: highest IoU first, then the lowest label.
    order = candidates[
        np.lexsort(
            (
                pair.prediction.ids[judged.pair_prediction[candidates]],
                -judged.iou[candidates],
                judged.pair_reference[candidates],
            )
        )
    ]
    _, first = np.unique(judged.pair_reference[order], return_index=True)
    best: NDArray[np.int64] = order[first]
    # Rounds half to even, as the published rule does.
    y, x = (
        np.rint(judged.prediction.centroid_yx_px[judged.pair_prediction[best]]).astype(np.int64).T
    )
    hit = pair.reference.index[y, x] == judged.pair_reference[best] + 1
    if judged.cuts_reference and pair.ambiguous is not None:
        hit &= ~pair.ambiguous[y, x]
    matched: NDArray[np.int64] = best[hit]
    return matched


def _best_assignment(
    candidates: NDArray[np.int64], table: OverlapTable, judged: JudgedOverlap
) -> NDArray[np.int64]:
    """Choose, among candidate pairs, the one-to-one subset of largest summed IoU."""
    rows = judged.pair_reference[candidates]
    columns = judged.pair_prediction[candidates]
    n_reference = len(table.reference)
    n_objects = n_reference + len(table.prediction)
    graph = coo_array(
        (np.ones(len(candidates)), (rows, n_reference + columns)), shape=(n_objects, n_objects)
    )
    _, component = connected_components(graph, directed=False)
    order = np.argsort(component[rows], kind="stable")
    borders = np.flatnonzero(np.diff(component[rows][order])) + 1
    chosen = [
        group if len(group) <= 1 else _assign(group, table, judged)
        for group in np.split(candidates[order], borders)
    ]
    return np.sort(np.concatenate(chosen)) if chosen else candidates


def _assign(
    group: NDArray[np.int64], table: OverlapTable, judged: JudgedOverlap
) -> NDArray[np.int64]:
    # Objects enter in the order of their first pixels, so that which of several
    # equally good assignments is taken does not depend on how objects are labelled.
    rows = judged.pair_reference[group]
    columns = judged.pair_prediction[group]
    _, i = np.unique(table.reference.first_pixel[rows], return_inverse=True)
    _, j = np.unique(table.prediction.first_pixel[columns], return_inverse=True)
    iou = np.zeros((i.max() + 1, j.max() + 1))
    iou[i, j] = judged.iou[group]
    position = np.full(iou.shape, -1, np.int64)
    position[i, j] = group
    picked: NDArray[np.int64] = position[linear_sum_assignment(iou, maximize=True)]
    return picked[picked >= 0]
