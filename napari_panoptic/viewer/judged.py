"""Verdicts laid over the objects of an evaluation. Pure: arrays and records only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_panoptic.evaluation.evaluate import Evaluation
from napari_panoptic.evaluation.matching import NO_PARTNER
from napari_panoptic.evaluation.metrics import Counts
from napari_panoptic.evaluation.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.evaluation.what_if import without_annotation_errors
from napari_panoptic.review import Fingerprint, ReviewRecord, Subject, Verdict

VERDICTS: tuple[Verdict, ...] = tuple(Verdict)
NO_VERDICT = 0
"""Code of an object without a verdict; verdict ``k`` (0-based) has the code ``k + 1``."""

Object = tuple[Side, int]
"""An object of an evaluation: its side and its row on that side."""


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
        self._region, self._team = region, team
        self._measured: dict[Side, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}

    def of(self, side: Side, row: int) -> Subject:
        """Describe one object."""
        own = self.evaluation.outcomes.side(side)
        centroids, areas = self.measured(side)
        y, x = centroids[row].tolist()
        name = self.evaluation.outcomes.class_names[int(own.class_index[row]) - 1]
        return Subject(
            team=self._team,
            region=self._region,
            side=side,
            object_id=int(own.ids[row]),
            fingerprint=Fingerprint(name, y, x, int(areas[row])),
        )

    def measured(self, side: Side) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Give centroids (n, 2) and areas (n,) of all pixels of each object, by row."""
        if side not in self._measured:
            table = self.evaluation.table
            whole = table.reference if side is Side.REFERENCE else table.prediction
            slots = self._slots_of(side)
            areas = whole.area[slots]
            self._measured[side] = whole.sum_yx[slots] / np.maximum(areas, 1)[:, None], areas
        return self._measured[side]

    def near(self, side: Side, records: Sequence[ReviewRecord]) -> list[int]:
        """Find the rows of the objects that some records may be about; never misses one."""
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

    def _slots_of(self, side: Side) -> NDArray[np.int64]:
        """Give the row in label image and overlap table of each row of the outcomes.

        The two differ where objects of a working copy lost their last pixel.
        """
        pair, ids = self.evaluation.pair, self.evaluation.outcomes.side(side).ids
        labels = pair.reference if side is Side.REFERENCE else pair.prediction
        order = np.argsort(labels.ids, kind="stable")
        slots: NDArray[np.int64] = order[np.searchsorted(labels.ids[order], ids)]
        return slots


def failure_rows(evaluation: Evaluation) -> list[Object]:
    """List the objects that somebody has to judge; a misclassified pair by its reference."""
    reference, prediction = evaluation.outcomes.reference, evaluation.outcomes.prediction
    wrong = [STATUS_CODE[Status.FN], STATUS_CODE[Status.MISCLASSIFIED]]
    missed = np.flatnonzero(np.isin(reference.status, wrong))
    invented = np.flatnonzero(prediction.status == STATUS_CODE[Status.FP])
    return [
        *((Side.REFERENCE, row) for row in missed.tolist()),
        *((Side.PREDICTION, row) for row in invented.tolist()),
    ]


def judged_as_one(evaluation: Evaluation, side: Side, row: int) -> Object:
    """Give the object that a verdict on an object is kept with.

    The two objects of a misclassified pair are one question: its verdict is
    kept with the reference object.
    """
    own = evaluation.outcomes.side(side)
    if side is Side.PREDICTION and own.status[row] == STATUS_CODE[Status.MISCLASSIFIED]:
        return Side.REFERENCE, int(own.partner[row])
    return side, row


@dataclass(frozen=True, eq=False)
class Judged:
    """The verdicts on the objects of one evaluation.

    Parameters
    ----------
    evaluation
        What was judged.
    records
        Object -> the verdict given on it.
    codes
        Side -> int16 (n,): verdict of each object, by row; both objects of a
        misclassified pair have the verdict that either has.
    """

    evaluation: Evaluation
    records: Mapping[Object, ReviewRecord]
    codes: Mapping[Side, NDArray[np.int16]] = field(init=False)

    def __post_init__(self) -> None:
        """Spread the verdicts over rows and pairs."""
        object.__setattr__(self, "codes", self._spread())

    def record(self, side: Side, row: int) -> ReviewRecord | None:
        """Give the verdict on an object or, of a misclassified pair, on the other one."""
        own = self.evaluation.outcomes.side(side)
        first = judged_as_one(self.evaluation, side, row)
        record = self.records.get(first) or self.records.get((side, row))
        if record is None and own.status[row] == STATUS_CODE[Status.MISCLASSIFIED]:
            record = self.records.get((_other(side), int(own.partner[row])))
        return record

    def counts(self) -> tuple[int, int]:
        """Count the failures that have a verdict, and all failures."""
        failures = failure_rows(self.evaluation)
        return sum(bool(self.codes[side][row]) for side, row in failures), len(failures)

    def corrected_counts(self) -> Counts:
        """Count as if the verdicts "prediction right" were the truth."""
        right = [at for at, record in self.records.items() if _is_annotation_error(record)]
        return without_annotation_errors(
            self.evaluation,
            reference_rows=[row for side, row in right if side is Side.REFERENCE],
            prediction_rows=[row for side, row in right if side is Side.PREDICTION],
        ).after

    def _spread(self) -> dict[Side, NDArray[np.int16]]:
        outcomes = self.evaluation.outcomes
        codes = {side: np.zeros(len(outcomes.side(side)), np.int16) for side in Side}
        for (side, row), record in self.records.items():
            codes[side][row] = VERDICTS.index(record.verdict) + 1
        own = outcomes.reference
        pairs = own.status == STATUS_CODE[Status.MISCLASSIFIED]
        rows = np.flatnonzero(pairs & (own.partner != NO_PARTNER))
        partners = own.partner[rows]
        reference, prediction = codes[Side.REFERENCE], codes[Side.PREDICTION]
        both = np.where(reference[rows] > 0, reference[rows], prediction[partners])
        reference[rows], prediction[partners] = both, both
        return codes


def _is_annotation_error(record: ReviewRecord) -> bool:
    return record.verdict is Verdict.PREDICTION_RIGHT


def _other(side: Side) -> Side:
    return Side.PREDICTION if side is Side.REFERENCE else Side.REFERENCE
