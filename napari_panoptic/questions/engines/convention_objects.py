"""One region by all conventions: its sums, and the objects that they count in different ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.nuclei.class_masks import ClassEvaluations, classes_alone, counted_by_id
from napari_panoptic.nuclei.conventions import (
    RegionSums,
    Rules,
    centroid_pairs,
    met,
    pairs_by,
    pieces_of,
    rules_of,
    sums_of_pair,
)
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.conventions import Pairs
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.values.windowed_labels import TiledPair

_MOST_DISTANT = 4_000_000
"""Of centroids: pairs of larger regions are counted, but not listed."""


@dataclass(frozen=True)
class Difference:
    """Objects of a team in a region that some conventions count otherwise than others."""

    #: Why, as a sentence; the class, empty for any.
    reason: str
    team: str
    region: str
    class_name: str
    #: The objects.
    names: tuple[FailureName, ...]


OTHER_CLASS = "a pair of two classes: all nuclei together make it, class by class does not"
HALF = "an IoU of exactly 0.5: a pair for stardist only"
TWICE = "the best partner of two annotated nuclei: AJI uses it twice, AJI+ once"
NEAR = "centroids at most 12 px apart without an IoU above 0.5: a pair by centroids only"
FAR = "an IoU above 0.5, but no pair by centroids"
ABSENT = (
    "predicted where no nucleus of the class is annotated: not counted by pannuke, cellvit and "
    "monusac-2020-as-run"
)
PIECES = "in several pieces: one object, or as many as pieces by FCIS"
BY_ID = "matched, but no matched nucleus has its number: a false positive as run"
NOT_BY_ID = "matches nothing, but a matched nucleus has its number: not counted as run"


T = TypeVar("T")
_KNOWN_UP_TO_PX = 1 << 20
"""Parts of larger images are not kept: they take as much memory as the images."""


def _once(compute: Callable[[LabelImage], T]) -> Callable[[LabelImage], T]:
    """Remember the result for each small label image: the annotation is that of each team."""
    known: WeakKeyDictionary[LabelImage, T] = WeakKeyDictionary()

    def result(labels: LabelImage) -> T:
        found = known.get(labels)
        if found is None:
            found = compute(labels)
            if labels.index.size <= _KNOWN_UP_TO_PX:
                known[labels] = found
        return found

    return result


known_pieces = _once(pieces_of)
"""Returns the pieces of the objects of a region that is not edited."""
known_classes = _once(classes_alone)
"""Returns the objects of each class of a region that is not edited."""


def sums_under(
    evaluation: Evaluation | Evaluation[TiledPair],
    classes: ClassEvaluations | None,
    rules: Sequence[Rules],
) -> dict[Rules, RegionSums]:
    """Return what all conventions need of a team in a region, under each of several rules.

    Of a region that is read in windows, those of other borders than the evaluation's are missing.

    Parameters
    ----------
    evaluation
        All classes together, each pixel in one object.
    classes
        Each class alone, under the first of the rules; None if there is none.
    rules
        Which pixels and objects count.
    """
    pair, table, own = evaluation.pair, evaluation.table, rules_of(evaluation.settings)
    outside = {own: evaluation.judged.counted}
    found = {
        each: sums_of_pair(pair, table, each, outside.get(each), known_pieces) for each in rules
    }
    if classes is not None:
        first = found[rules[0]]
        found[rules[0]] = RegionSums({**first.sums, **classes.sums}, first.types)
    return found


def differences(
    evaluation: Evaluation, classes: ClassEvaluations, rules: Rules, place: tuple[str, str]
) -> list[Difference]:
    """List the objects of a team in a region that conventions count in different ways.

    Parameters
    ----------
    evaluation, classes
        All classes together, and each alone.
    rules
        Which pixels and objects count in both.
    place
        Team and region.
    """
    return [
        Difference(reason, *place, class_name, tuple(FailureName(*place, *name) for name in names))
        for reason, class_name, names in (
            *_of_pairs(evaluation, rules),
            *_of_classes(classes),
        )
        if names
    ]


Named = list[tuple[Side, int]]


def _of_pairs(evaluation: Evaluation, rules: Rules) -> Iterator[tuple[str, str, Named]]:
    pair = evaluation.pair
    sides = pair.reference.class_index, pair.prediction.class_index
    found = met(evaluation.table, sides, len(pair.class_names), rules)
    every = np.arange(len(found.rows))
    above = pairs_by(Pairs.ABOVE_HALF, found, every)

    def both(pairs: NDArray[np.integer]) -> Named:
        rows = found.rows[pairs], found.columns[pairs]
        return [*_named(pair, Side.REFERENCE, rows[0]), *_named(pair, Side.PREDICTION, rows[1])]

    yield OTHER_CLASS, "", both(above[~found.is_same_class[above]])
    yield HALF, "", both(np.setdiff1d(pairs_by(Pairs.HALF, found, every), above))
    best = found.columns[pairs_by(Pairs.BEST_IOU, found, every)]
    twice = np.flatnonzero(np.bincount(best) > 1)
    yield TWICE, "", _named(pair, Side.PREDICTION, twice)
    rows, columns = (np.flatnonzero(side.exists) for side in (found.reference, found.prediction))
    if len(rows) * len(columns) <= _MOST_DISTANT:
        near = set(
            zip(*(own.tolist() for own in centroid_pairs(found, rows, columns)), strict=True)
        )
        over = set(zip(found.rows[above].tolist(), found.columns[above].tolist(), strict=True))
        for reason, pairs in ((NEAR, near - over), (FAR, over - near)):
            ends = np.array(sorted(pairs), np.intp).reshape(-1, 2)
            yield (
                reason,
                "",
                [
                    *_named(pair, Side.REFERENCE, ends[:, 0]),
                    *_named(pair, Side.PREDICTION, ends[:, 1]),
                ],
            )
    for side in Side:
        labels = pair.side(side)
        numbers = known_pieces(labels)[1]
        yield PIECES, "", _named(pair, side, np.flatnonzero(np.bincount(numbers, minlength=1) > 1))


def _of_classes(classes: ClassEvaluations) -> Iterator[tuple[str, str, Named]]:
    for name, own in classes.evaluations.items():
        ids, unlike = own.pair.prediction.ids, counted_by_id(own)
        unmatched = own.statuses[Side.PREDICTION] == STATUS_CODE[Status.FP]
        if not len(own.pair.reference):
            yield ABSENT, name, _as_predicted(ids[unmatched])
        yield BY_ID, name, _as_predicted(ids[unlike & ~unmatched])
        yield NOT_BY_ID, name, _as_predicted(ids[unmatched & ~unlike])


def _as_predicted(ids: NDArray[np.int64]) -> Named:
    return [(Side.PREDICTION, id_) for id_ in ids.tolist()]


def _named(pair: LabelPair, side: Side, rows: NDArray[np.integer]) -> Named:
    return [(side, id_) for id_ in pair.side(side).ids[rows].tolist()]
