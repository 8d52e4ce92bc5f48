"""Verdicts laid over the objects of an evaluation. Pure: arrays and records only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.explain.failures import whole_objects
from napari_panoptic.explain.what_if import without_annotation_errors
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.review.identity import (
    Fingerprint,
    ObjectKey,
    Subject,
    matched,
    may_be_mistaken,
    object_key,
)
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, Verdict

VERDICTS: tuple[Verdict, ...] = tuple(Verdict)
NO_VERDICT = 0
"""Code of an object without a verdict; verdict ``k`` (0-based) has the code ``k + 1``."""

Object = tuple[Side, int]
"""An object of an evaluation: its side and its row on that side."""

_CODES = {verdict: code for code, verdict in enumerate(VERDICTS, start=NO_VERDICT + 1)}
_FAILED = {
    Side.REFERENCE: (STATUS_CODE[Status.FN], STATUS_CODE[Status.MISCLASSIFIED]),
    Side.PREDICTION: (STATUS_CODE[Status.FP],),
}


class Subjects:
    """Describes objects of an evaluation, one at a time, as the review file knows them.

    Parameters
    ----------
    evaluation
        Where the objects are from; may be of a working copy.
    region, team
        Its names.
    """

    def __init__(self, evaluation: Evaluation, *, region: str, team: str) -> None:
        self.evaluation = evaluation
        self.region, self.team = region, team
        self._measured: dict[Side, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}

    def of(self, side: Side, row: int) -> Subject:
        """Describe one object, and those that a verdict on it could also belong to."""
        beside = tuple(self.key(side, other) for other in self._around(side, row))
        return replace(self._alone(side, row), beside=beside)

    def key(self, side: Side, row: int) -> ObjectKey:
        """Return everything that distinguishes an object from others."""
        return object_key(self._alone(side, row))

    def _alone(self, side: Side, row: int) -> Subject:
        own = self.evaluation.outcomes.side(side)
        centroids, areas = self.measured(side)
        y, x = centroids[row].tolist()
        name = self.evaluation.outcomes.class_names[int(own.class_index[row]) - 1]
        return Subject(
            team=self.team,
            region=self.region,
            side=side,
            object_id=int(own.ids[row]),
            fingerprint=Fingerprint(name, y, x, int(areas[row])),
        )

    def find(self, records: Sequence[ReviewRecord]) -> dict[Object, ReviewRecord]:
        """Find the objects that verdicts are about; those of other regions and teams have none."""
        objects = [(side, row) for side in Side for row in self.near(side, records)]
        own = [self.key(*at) for at in objects]
        numbers = matched(own, map(object_key, records))
        return {
            at: records[number]
            for at, number in zip(objects, numbers, strict=True)
            if number is not None
        }

    def _around(self, side: Side, row: int) -> list[int]:
        """Return the rows of the other objects that a verdict on an object could belong to."""
        centroids, areas = self.measured(side)
        classes = self.evaluation.outcomes.side(side).class_index
        near = may_be_mistaken(centroids[row], float(areas[row]), centroids, areas)
        near &= classes == classes[row]
        near[row] = False
        rows: list[int] = np.flatnonzero(near).tolist()
        return rows

    def measured(self, side: Side) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return centroids (n, 2) and areas (n,) of all pixels of each object, by row."""
        if side not in self._measured:
            self._measured[side] = whole_objects(self.evaluation, side)
        return self._measured[side]

    def are_those_of(self, other: Subjects) -> bool:
        """Return whether these are the same objects in the same rows, whatever their outcomes."""
        if (self.region, self.team) != (other.region, other.team):
            return False
        sides = [(s, self.evaluation.outcomes, other.evaluation.outcomes) for s in Side]
        return all(
            mine.class_names == theirs.class_names
            and np.array_equal(mine.side(side).ids, theirs.side(side).ids)
            and np.array_equal(mine.side(side).class_index, theirs.side(side).class_index)
            and all(map(np.array_equal, self.measured(side), other.measured(side)))
            for side, mine, theirs in sides
        )

    def near(self, side: Side, records: Sequence[ReviewRecord]) -> list[int]:
        """Find the rows of the objects that some records may be about; never misses one."""
        from scipy.spatial import cKDTree

        own = [record for record in records if record.side is side]
        if not own or not len(self.evaluation.outcomes.side(side)):
            return []
        places = [(r.fingerprint.centroid_y_px, r.fingerprint.centroid_x_px) for r in own]
        centroids, areas = self.measured(side)
        distances, _ = cKDTree(places).query(centroids)
        # Wider than what counts as the same object: the decision is made elsewhere.
        reach = np.maximum(1.0, np.sqrt(areas / np.pi))
        rows: list[int] = np.flatnonzero(distances <= reach).tolist()
        return rows


def _failures(evaluation: Evaluation, side: Side) -> NDArray[np.bool_]:
    return np.isin(evaluation.outcomes.side(side).status, _FAILED[side])


def judged_as_one(evaluation: Evaluation, side: Side, row: int) -> Object:
    """Return the object that a verdict on an object is kept with.

    The two objects of a misclassified pair are one question: its verdict is
    kept with the reference object.
    """
    own = evaluation.outcomes.side(side)
    if side is Side.PREDICTION and own.status[row] == STATUS_CODE[Status.MISCLASSIFIED]:
        return Side.REFERENCE, int(own.partner[row])
    return side, row


@dataclass(frozen=True, eq=False)
class Judged:
    """The verdicts on the objects of one evaluation."""

    evaluation: Evaluation
    records: Mapping[Object, ReviewRecord]

    @cached_property
    def codes(self) -> Mapping[Side, NDArray[np.int16]]:
        """Side -> int16 (n,): verdict of each object, by row.

        Both objects of a misclassified pair have the verdict that either has.
        """
        own = self.evaluation.outcomes.reference
        pairs = own.status == STATUS_CODE[Status.MISCLASSIFIED]
        rows = np.flatnonzero(pairs & (own.partner != NO_PARTNER))
        partners = own.partner[rows]
        codes = {side: given.copy() for side, given in self._given.items()}
        reference, prediction = codes[Side.REFERENCE], codes[Side.PREDICTION]
        both = np.where(reference[rows] > NO_VERDICT, reference[rows], prediction[partners])
        reference[rows], prediction[partners] = both, both
        return codes

    @cached_property
    def _given(self) -> Mapping[Side, NDArray[np.int16]]:
        """The verdicts on single objects, before they are spread over pairs."""
        outcomes = self.evaluation.outcomes
        given = {side: np.zeros(len(outcomes.side(side)), np.int16) for side in Side}
        for (side, row), record in self.records.items():
            given[side][row] = _CODES[record.verdict]
        return given

    @cached_property
    def by_id(self) -> Mapping[tuple[Side, int], ReviewRecord]:
        """The verdicts by side and id; those on misclassified pairs for both objects."""
        outcomes, found = self.evaluation.outcomes, {}
        partners = {}
        for (side, row), record in self.records.items():
            own, other = outcomes.side(side), outcomes.other(side)
            found[side, int(own.ids[row])] = record
            partner = int(own.partner[row])
            if own.status[row] == STATUS_CODE[Status.MISCLASSIFIED] and partner != NO_PARTNER:
                partners[other.side, int(other.ids[partner])] = record
        return {**partners, **found}

    def under(self, evaluation: Evaluation) -> Judged:
        """Lay the same verdicts over the same objects, in the same rows, with other outcomes."""
        return replace(self, evaluation=evaluation)

    def with_verdict(self, place: Object, record: ReviewRecord) -> Judged:
        """Return a copy in which an object has this verdict instead of its own."""
        return replace(self, records={**self.records, place: record})

    def record(self, side: Side, row: int) -> ReviewRecord | None:
        """Return the verdict on an object or, of a misclassified pair, on the other one."""
        outcomes = self.evaluation.outcomes
        own = outcomes.side(side)
        first = judged_as_one(self.evaluation, side, row)
        record = self.records.get(first) or self.records.get((side, row))
        if record is None and own.status[row] == STATUS_CODE[Status.MISCLASSIFIED]:
            record = self.records.get((outcomes.other(side).side, int(own.partner[row])))
        return record

    def counts(self) -> tuple[int, int]:
        """Count the failures that have a verdict, and all failures."""
        failures = {side: _failures(self.evaluation, side) for side in Side}
        judged = [failures[side] & (self.codes[side] != NO_VERDICT) for side in Side]
        done = sum(int(np.count_nonzero(of_side)) for of_side in judged)
        return done, sum(int(np.count_nonzero(of_side)) for of_side in failures.values())

    def corrected_counts(self) -> Counts:
        """Count as if the verdicts "prediction right" were the truth."""
        right = _CODES[Verdict.PREDICTION_RIGHT]
        rows = {side: np.flatnonzero(self._given[side] == right) for side in Side}
        return without_annotation_errors(
            self.evaluation,
            reference_rows=rows[Side.REFERENCE],
            prediction_rows=rows[Side.PREDICTION],
        )
