"""The whole chain for one label pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.ambiguity import judge
from napari_panoptic.nuclei.distance_cache import KnownDistances, matched_distances
from napari_panoptic.nuclei.distances import PairDistances
from napari_panoptic.nuclei.matching import match
from napari_panoptic.nuclei.metrics import Counts, count
from napari_panoptic.nuclei.outcomes import Outcomes, outcomes
from napari_panoptic.nuclei.overlap import OverlapTable, counted_pair, overlap_table
from napari_panoptic.nuclei.tables import EvaluatedFigures
from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES
from napari_panoptic.nuclei.values.labels import LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings


@dataclass(frozen=True, eq=False)
class Evaluation(EvaluatedFigures):
    """What came of evaluating one label pair.

    Nothing in it is ever changed, but the images of a pair under edit: see
    `napari_panoptic.nuclei.edits.pair.LiveEvaluation.pair`.

    Parameters
    ----------
    pair
        What was evaluated.
    settings
        How.
    table
        Areas and intersections.
    outcomes
        Status, cause, partner, IoU and distances of every object.
    counts
        Their sums, which can be added over regions.
    distances
        What was measured on these pixels so far, under whatever settings.
    """

    pair: LabelPair
    settings: EvaluationSettings
    table: OverlapTable
    outcomes: Outcomes
    counts: Counts
    distances: KnownDistances


def evaluate(pair: LabelPair, settings: EvaluationSettings | None = None) -> Evaluation:
    """Evaluate one label pair.

    Parameters
    ----------
    pair
        Reference, prediction and ambiguous area; not changed.
    settings
        How to evaluate; the defaults where None.

    Raises
    ------
    LabelError
        Where overlaps are kept and too many objects lie over one another.
    """
    settings = settings or EvaluationSettings()
    pair = pair.with_overlaps(settings.overlaps)
    return evaluated(pair, overlap_table(pair), settings, KnownDistances.none())


def evaluate_again(evaluation: Evaluation, settings: EvaluationSettings) -> Evaluation:
    """Evaluate the same pixels under other settings.

    No setting but ``overlaps`` changes the overlap table, and few the distances:
    both are taken over. The result equals that of :func:`evaluate`.
    """
    if evaluation.pair.with_overlaps(settings.overlaps) is not evaluation.pair:
        return evaluate(evaluation.pair, settings)
    return evaluated(evaluation.pair, evaluation.table, settings, evaluation.distances)


def evaluated(
    pair: LabelPair, table: OverlapTable, settings: EvaluationSettings, known: KnownDistances
) -> Evaluation:
    """Evaluate a label pair whose overlap is counted already.

    Parameters
    ----------
    pair, table
        The label pair and its counts.
    settings
        How to evaluate.
    known
        Distances that were measured on the same pixels before.
    """
    judged = judge(table, settings.ambiguous)
    matches = match(pair, table, judged, settings)
    distances: PairDistances | None = None
    if settings.distances:
        distances, known = matched_distances(pair, table, judged, matches, settings.outlines, known)
    result = outcomes(pair, table, judged, matches, distances, near_iou=settings.near_iou)
    return Evaluation(
        pair=pair,
        settings=settings,
        table=table,
        outcomes=result,
        counts=count(result),
        distances=known,
    )


def evaluate_pair(
    reference: ArrayLike,
    prediction: ArrayLike,
    *,
    reference_classes: Mapping[int, str],
    prediction_classes: Mapping[int, str],
    ambiguous: ArrayLike | None = None,
    settings: EvaluationSettings | None = None,
    mpp: float | None = None,
    class_names: Sequence[str] | None = None,
) -> Evaluation:
    """Evaluate a predicted label image; see `napari_panoptic.evaluate_pair`.

    Unlike there, both sides need a class for every id. By default the classes are
    the four of MoNuSAC if the two mappings name no others, else those that they
    name, in order of first mention.
    """
    if class_names is None:
        class_names = _usual_order([*reference_classes.values(), *prediction_classes.values()])
    pair, table = counted_pair(
        reference,
        prediction,
        reference_classes,
        prediction_classes,
        class_names,
        ambiguous=None if ambiguous is None else _mask(ambiguous),
        mpp=mpp,
    )
    return evaluated(pair, table, settings or EvaluationSettings(), KnownDistances.none())


def _usual_order(mentioned: Sequence[str]) -> tuple[str, ...]:
    if set(mentioned) <= set(MONUSAC_CLASSES.names):
        return MONUSAC_CLASSES.names
    return tuple(dict.fromkeys(mentioned))


def _mask(ambiguous: ArrayLike) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    mask = np.asarray(ambiguous)
    if mask.ndim != 2:
        raise LabelError(f"the ambiguous mask must be 2-D (y, x), found shape {mask.shape}")
    return mask.astype(bool)
