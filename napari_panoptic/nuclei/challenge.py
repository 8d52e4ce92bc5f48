"""The MoNuSAC 2020 scoring as it was run, with each of its errors corrected.

Reconstructed by Foucart, Debeir and Decaestecker (2021) from the organisers'
notebook: every class is scored alone, and three errors change the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.statistics.means import spread
from napari_panoptic.values.labels import LabelImage, LabelPair, class_compacts, region_ids
from napari_panoptic.values.settings import Correction, EvaluationSettings
from napari_panoptic.values.vocabulary import STATUS_CODE, Status


@dataclass(frozen=True, eq=False)
class ClassScore:
    """One class of one region, scored alone."""

    #: Matched pairs, unmatched reference objects, summed IoU of the pairs.
    tp: int
    fn: int
    iou_sum: float
    #: Prediction ids that are not among the ids of matched *reference* objects: which the challenge
    #: counted as false positives.
    fp_as_run: int
    #: Predicted objects that match nothing, which it meant to count.
    fp: int
    #: Whether the class had an object there before the ambiguous area was cut.
    in_reference: bool
    in_prediction: bool
    #: The outcomes of this class alone, with the true false positives.
    counts: Counts
    #: Ids in the file of the annotated objects, and of those that match.
    reference_ids: tuple[int, ...]
    matched_ids: tuple[int, ...]
    #: Ids of the predicted objects that match nothing.
    unmatched: tuple[int, ...]
    #: Ids of predicted objects that match, and that the challenge counted as false positives
    #: nevertheless: no matched reference object has their id in the file.
    only_as_run: tuple[int, ...]
    #: Ids of predicted objects that match nothing, and that the challenge did not count: a matched
    #: reference object has their id in the file.
    only_corrected: tuple[int, ...]

    def without_ids(self) -> ClassScore:
        """Return a copy without the ids, whose size does not depend on the number of objects."""
        nothing: tuple[int, ...] = ()
        return replace(
            self,
            reference_ids=nothing,
            matched_ids=nothing,
            unmatched=nothing,
            only_as_run=nothing,
            only_corrected=nothing,
        )


@dataclass(frozen=True, eq=False)
class ChallengeEvaluation:
    """A region of a team, each class alone."""

    #: Class -> the evaluation of that class's own masks.
    evaluations: Mapping[str, Evaluation]
    #: Class -> its score.
    scores: Mapping[str, ClassScore]


def evaluate_challenge(
    pair: LabelPair, settings: EvaluationSettings, earlier: ChallengeEvaluation | None = None
) -> ChallengeEvaluation:
    """Score every class of a label pair alone, on its own masks.

    Parameters
    ----------
    pair
        With masks per class if the files have them; else classes are taken from the
        flattened labels.
    settings
        The matching rule and ambiguous policy are applied within each class.
    earlier
        The evaluation of the same pair under other settings, whose overlap and
        distances are reused.
    """
    if earlier is None:
        evaluations = {name: evaluate(alone, settings) for name, alone in class_pairs(pair)}
    else:
        evaluations = {n: evaluate_again(e, settings) for n, e in earlier.evaluations.items()}
    scores = {name: _class_score(evaluation) for name, evaluation in evaluations.items()}
    return ChallengeEvaluation(evaluations, scores)


def class_pairs(pair: LabelPair) -> Iterator[tuple[str, LabelPair]]:
    """Yield a label pair for each class alone, not flattened over other classes."""
    reference, prediction = _classes_alone(pair.reference), _classes_alone(pair.prediction)
    for name in pair.class_names:
        yield name, replace(pair, reference=reference[name], prediction=prediction[name])


def challenge_counts(
    scores: Mapping[str, ClassScore], corrections: frozenset[Correction]
) -> Counts:
    """Count one region as the challenge does, with corrections.

    Only the classes that the challenge counts in this region enter. One that
    has nothing left after the ambiguous area is cut counts all the same.
    """
    total = Counts.zero(tuple(scores))
    for number, score in enumerate(scores.values()):
        if not is_counted(score, corrections):
            continue
        counts = score.counts
        fp, confusion, present = counts.fp.copy(), counts.confusion.copy(), counts.present.copy()
        fp[number] = confusion[0, number + 1] = false_positives(score, corrections)
        present[number] = 1
        total += replace(counts, fp=fp, confusion=confusion, present=present)
    return total


def team_score(regions: Sequence[tuple[str, Counts]], corrections: frozenset[Correction]) -> float:
    """Compute a team's score: the mean PQ over regions, or over patients where corrected.

    Parameters
    ----------
    regions
        ``(patient, counts)`` of every evaluated region.
    corrections
        Which of the three errors to correct.
    """
    if Correction.PER_PATIENT in corrections:
        patients: dict[str, Counts] = {}
        for patient, counts in regions:
            patients[patient] = patients[patient] + counts if patient in patients else counts
        units = list(patients.values())
    else:
        units = [counts for _, counts in regions]
    return spread([unit_metrics(unit).pq for unit in units]).mean


def uncounted(regions: Iterable[Mapping[str, ClassScore]]) -> tuple[int, int]:
    """Count what the challenge ignored because the annotation lacks the class.

    Returns
    -------
    objects
        Predicted objects of absent classes, after the ambiguous area is cut.
    masks
        Class masks that hold at least one of them.
    """
    absent = [
        score.fp
        for scores in regions
        for score in scores.values()
        if not score.in_reference and score.fp > 0
    ]
    return sum(absent), len(absent)


def false_positives(score: ClassScore, corrections: frozenset[Correction]) -> int:
    """Return the false positives of a class under the corrections."""
    return score.fp if Correction.MATCHING in corrections else score.fp_as_run


def is_counted(score: ClassScore, corrections: frozenset[Correction]) -> bool:
    """Return whether a class of a region enters the score."""
    if Correction.ABSENT_CLASS_FP in corrections:
        return score.in_reference or score.in_prediction
    return score.in_reference


def _classes_alone(labels: LabelImage) -> dict[str, LabelImage]:
    """Return each class's own mask, or else its part of the flattened labels."""
    if not labels.class_masks:
        return {name: _part_of(labels, name) for name in labels.class_names}
    own = class_compacts(labels.class_masks, labels.class_names)
    ids = region_ids({name: own_ids for name, (_, own_ids) in own.items()})
    alone = {
        name: LabelImage(
            index=index,
            ids=ids[name],
            class_index=np.full(len(own_ids), labels.class_names.index(name) + 1, np.int16),
            original_ids=own_ids,
            class_names=labels.class_names,
            known_scores=labels.known_scores,
        )
        for name, (index, own_ids) in own.items()
    }
    nothing = LabelImage.empty(labels.shape, labels.class_names)
    return {name: alone.get(name, nothing) for name in labels.class_names}


def _part_of(labels: LabelImage, name: str) -> LabelImage:
    rows = np.flatnonzero(labels.class_index == labels.class_names.index(name) + 1)
    lookup = np.zeros(len(labels) + 1, np.int32)
    lookup[rows + 1] = np.arange(1, len(rows) + 1, dtype=np.int32)
    return LabelImage(
        index=lookup[labels.index],
        ids=labels.ids[rows],
        class_index=labels.class_index[rows],
        original_ids=labels.original_ids[rows],
        class_names=labels.class_names,
        known_scores=labels.known_scores,
    )


def _class_score(evaluation: Evaluation) -> ClassScore:
    reference, prediction = evaluation.outcomes.reference, evaluation.outcomes.prediction
    matched = reference.partner != NO_PARTNER
    present = prediction.status != STATUS_CODE[Status.IGNORED]
    reference_ids = evaluation.pair.reference.original_ids
    # Prediction ids that are no matched reference id: the challenge's error.
    unlike = present & ~np.isin(evaluation.pair.prediction.original_ids, reference_ids[matched])
    unmatched = prediction.status == STATUS_CODE[Status.FP]
    return ClassScore(
        tp=int(matched.sum()),
        fn=reference.count(Status.FN),
        iou_sum=float(reference.iou[matched].sum()),
        fp_as_run=int(unlike.sum()),
        fp=int(unmatched.sum()),
        in_reference=len(reference) > 0,
        in_prediction=len(prediction) > 0,
        counts=evaluation.counts,
        reference_ids=tuple(reference_ids.tolist()),
        matched_ids=tuple(reference_ids[matched].tolist()),
        unmatched=tuple(prediction.ids[unmatched].tolist()),
        only_as_run=tuple(prediction.ids[unlike & ~unmatched].tolist()),
        only_corrected=tuple(prediction.ids[unmatched & ~unlike].tolist()),
    )
