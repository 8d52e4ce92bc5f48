"""Each class of a region alone, on its own mask, as the MoNuSAC 2020 challenge scored it.

Reconstructed by Foucart, Debeir and Decaestecker (2021) from the organisers' notebook, with the
error that makes a figure depend on ids: a predicted object was a false positive unless a matched
annotated object had its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.conventions import FloatArray, Sum, key_of
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.values.conventions import Convention, Nothing, ObjectScope, Pairs
from napari_panoptic.values.labels import LabelImage, LabelPair, class_compacts, region_ids
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status

BY_ID = key_of(ObjectScope.CLASS_MASKS, Pairs.ABOVE_HALF_BY_ID)
BY_PAIR = key_of(ObjectScope.CLASS_MASKS, Pairs.ABOVE_HALF)


@dataclass(frozen=True, eq=False)
class ClassEvaluations:
    """A region of a team, each class alone."""

    #: Class -> the evaluation of its own masks.
    evaluations: Mapping[str, Evaluation]

    @cached_property
    def sums(self) -> dict[str, FloatArray]:
        """The sums for conventions; see `napari_panoptic.nuclei.conventions.RegionSums`.

        A class is there if it was before the ambiguous area was cut.
        """
        found = np.stack([_sums(evaluation) for evaluation in self.evaluations.values()])
        by_id = found.copy()
        by_id[:, Sum.FP] = [
            np.count_nonzero(counted_by_id(evaluation)) for evaluation in self.evaluations.values()
        ]
        return {BY_PAIR: found, BY_ID: by_id}

    def counts(self, convention: Convention) -> Counts:
        """Count the region as a convention of class masks does.

        Only the classes that it counts here enter. One that has nothing left after the
        ambiguous area is cut counts all the same.
        """
        sums = self.sums[key_of(convention.objects, convention.pairs)]
        total = Counts.zero(tuple(self.evaluations))
        for number, evaluation in enumerate(self.evaluations.values()):
            had_reference, had_prediction = sums[number, : Sum.HAD_PREDICTION + 1] > 0
            is_lenient = convention.nothing is Nothing.NO_REFERENCE
            if not (had_reference or (had_prediction and not is_lenient)):
                continue
            own = evaluation.counts
            fp, confusion, present = own.fp.copy(), own.confusion.copy(), own.present.copy()
            fp[number] = confusion[0, number + 1] = int(sums[number, Sum.FP])
            present[number] = 1
            total += replace(own, fp=fp, confusion=confusion, present=present)
        return total


def evaluate_classes(
    pair: LabelPair,
    settings: EvaluationSettings,
    earlier: ClassEvaluations | None = None,
    alone: Callable[[LabelImage], Mapping[str, LabelImage]] | None = None,
) -> ClassEvaluations:
    """Evaluate every class of a label pair alone, on its own masks.

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
    alone
        Returns the objects of each class alone; None for `classes_alone`.
    """
    if earlier is None:
        pairs = class_pairs(pair, alone or classes_alone)
        return ClassEvaluations({name: evaluate(own, settings) for name, own in pairs})
    again = {n: evaluate_again(own, settings) for n, own in earlier.evaluations.items()}
    return ClassEvaluations(again)


def class_pairs(
    pair: LabelPair, alone: Callable[[LabelImage], Mapping[str, LabelImage]]
) -> Iterator[tuple[str, LabelPair]]:
    """Yield a label pair for each class alone, not flattened over other classes."""
    reference, prediction = alone(pair.reference), alone(pair.prediction)
    for name in pair.class_names:
        yield name, replace(pair, reference=reference[name], prediction=prediction[name])


def counted_by_id(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Return which predicted objects (m,) of a class the challenge counted as false positives.

    Those whose id in the file no matched annotated object has.
    """
    pair = evaluation.pair
    matched = evaluation.matches.reference_partner != NO_PARTNER
    present = evaluation.statuses[Side.PREDICTION] != STATUS_CODE[Status.IGNORED]
    alike = np.isin(pair.prediction.original_ids, pair.reference.original_ids[matched])
    unlike: NDArray[np.bool_] = present & ~alike
    return unlike


def _sums(evaluation: Evaluation) -> FloatArray:
    reference, prediction = (evaluation.statuses[side] for side in Side)
    iou = evaluation.judged.iou[evaluation.matches.pair]
    sums = np.zeros(len(Sum))
    sums[[Sum.HAD_REFERENCE, Sum.HAD_PREDICTION]] = len(reference) > 0, len(prediction) > 0
    sums[Sum.TP], sums[Sum.IOU] = len(iou), iou.sum()
    sums[Sum.FN] = np.count_nonzero(reference == STATUS_CODE[Status.FN])
    sums[Sum.FP] = np.count_nonzero(prediction == STATUS_CODE[Status.FP])
    return sums


def classes_alone(labels: LabelImage) -> dict[str, LabelImage]:
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
