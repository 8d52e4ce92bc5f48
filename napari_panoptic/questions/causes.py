"""Find what each cause of failures costs a team: its figures if these failures were mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import counted
from napari_panoptic.explain.what_if import tally_all
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import class_quality, class_sums
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.engines.cohort_failures import FailureName, FailureSet
from napari_panoptic.questions.engines.cohort_objects import CAUSES_OF, FAILURES
from napari_panoptic.questions.question import Gathered, TeamQuestion
from napari_panoptic.statistics.bootstrap import mean_intervals
from napari_panoptic.statistics.means import means_defined, quotients
from napari_panoptic.tables.columns import (
    CellContent,
    TableColumn,
    TableSpec,
    bounds,
    number,
    unshown,
    whole,
    words,
)
from napari_panoptic.tables.figures import signed
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.vocabulary import CAUSES, SIDES, STATUSES, Side, Status

CAUSE_WORDS = tuple(dict.fromkeys(cause for causes in CAUSES_OF.values() for cause in causes))
_ABOUT = "mean over patients of the change if these failures were mended"
COSTS = TableSpec(
    "causes.csv",
    "class and cause that it has, the most expensive cause first; those of all classes, with an "
    "empty class, come first",
    [
        unshown("team"),
        TableColumn("class", lambda row: CellContent(row["class"] or "all classes"), ("class",)),
        words("cause", about="of FN and FP; misclassified nuclei count as one"),
        whole("failures"),
        number("d_pq", "ΔPQ", signed, _ABOUT),
        bounds("low", "high", "95 % interval", "of d_pq, by bootstrap over patients"),
        *(number(f"d_{key}", f"Δ{key.upper()}", signed, _ABOUT) for key in ("sq", "dq", "f1")),
    ],
    "Changes if all failures of a cause were mended: an FN becomes a TP with an IoU of 1, an FP is "
    "removed, a misclassified object gets its right class. The changes do not add up.",
)
Failure = tuple[set[str], str, FailureName]
"""Classes and cause of a failure, and its name; a misclassified object has two classes."""


@dataclass(frozen=True, eq=False)
class Mended:
    """The counts of a region or patient as they are, then with each cause mended."""

    #: int64 (1 + causes, C + 1, C + 1): rows reference, columns prediction, index 0 none.
    confusion: NDArray[np.int64]
    #: float64 (1 + causes, C): summed IoU of the TPs of a class.
    iou_sum: NDArray[np.float64]

    def __add__(self, other: Mended) -> Mended:
        """Sum two regions."""
        return Mended(self.confusion + other.confusion, self.iou_sum + other.iou_sum)

    def changes(self) -> NDArray[np.float64]:
        """Return the changes (4, 1 + C, causes) of PQ, SQ, DQ and F1, of all classes, then each.

        F1 is that of detection: a class has its nuclei, and the predictions without a nucleus.
        """
        quality = class_quality(*class_sums(self.confusion), self.iou_sum)
        found, fp = self.confusion[:, 1:, 1:].sum(axis=2), self.confusion[:, 0, 1:]
        sums = np.stack([2 * found, 2 * found + self.confusion[:, 1:, 0] + fp])
        of_all = [means_defined(own, axis=-1) for own in quality] + [quotients(*sums.sum(axis=-1))]
        by_class = [*quality, quotients(*sums)]
        figures = np.stack([np.column_stack(own) for own in zip(of_all, by_class, strict=True)])
        changes: NDArray[np.float64] = (figures[:, 1:] - figures[:, :1]).swapaxes(1, 2)
        return changes


@dataclass(frozen=True, kw_only=True)
class Causes(TeamQuestion):
    """What each cause of failures costs a team."""

    title = "Causes"
    key = "Alt-q"
    heading = "What each cause costs"
    about = (
        "Compute the change of PQ, SQ, DQ and F1 if all failures of one cause were mended, for "
        "each class and patient, and write means over patients with intervals to causes.csv. An "
        "FN becomes a TP with an IoU of 1, an FP is removed, a misclassified object gets its right "
        "class; the changes do not add up. Exit status: 0 done, 1 nothing could be evaluated, 2 "
        "wrong arguments."
    )
    hint = "Press “Compute” to see what each cause of failures costs this team over the cohort."
    tables = (COSTS,)

    def look(
        self, evaluation: Evaluation, region: Region
    ) -> tuple[str, tuple[str, ...], Mended, list[Failure]]:
        """Return patient, classes, counts, and class, cause and name of each failure."""
        outcomes, now = evaluation.outcomes, tally_all(evaluation.outcomes)
        confusion = np.repeat(now.confusion, 1 + len(CAUSE_WORDS), axis=0)
        iou_sum = np.repeat(now.iou_sum, 1 + len(CAUSE_WORDS), axis=0)
        failures = []
        for side, own in ((side, outcomes.side(side)) for side in SIDES):
            for row in np.flatnonzero(np.isin([STATUSES[s] for s in own.status], FAILURES[side])):
                status, k = STATUSES[own.status[row]], int(own.class_index[row])
                is_mixed = status is Status.MISCLASSIFIED
                cause = str(status if is_mixed else CAUSES[own.cause[row]])
                at = 1 + CAUSE_WORDS.index(cause)
                # The cell of the confusion matrix in which the failure is, and where it would be.
                wrong = outcomes.prediction.class_index[own.partner[row]] if is_mixed else 0
                confusion[at][(k, wrong) if side is Side.REFERENCE else (0, k)] -= 1
                if side is Side.REFERENCE:
                    confusion[at, k, k] += 1
                    iou_sum[at, k - 1] += own.iou[row] if is_mixed else 1.0
                name = FailureName(self.team, region.name, side, int(own.ids[row]))
                classes = {outcomes.class_names[c - 1] for c in (k, wrong) if c}
                failures.append((classes, cause, name))
        return region.patient, outcomes.class_names, Mended(confusion, iou_sum), failures

    def answered(
        self, cohort: Cohort, gathered: Gathered, progress: Progress = UNWATCHED
    ) -> Answer:
        """Compare each patient's figures with and without the failures of each cause."""
        patients: dict[str, Mended] = {}
        for patient, _, own, _ in gathered.parts:
            patients[patient] = patients[patient] + own if patient in patients else own
        changes = np.stack([own.changes() for own in patients.values()], axis=-1)
        failures = [one for *_, own in gathered.parts for one in own]
        rows = []
        for c, name in enumerate(("", *gathered.parts[0][1])):
            of_class = [
                self._row(name, cause, failures, changes[:, c, k])
                for k, cause in enumerate(CAUSE_WORDS)
                if not name or any(name in own and cause == word for own, word, _ in failures)
            ]
            rows += sorted(of_class, key=lambda row: -np.nan_to_num(row["d_pq"], nan=-np.inf))
        return Answer(
            headline=f"{self.team}: what {counted(len(failures), 'failure')} of "
            f"{counted(len(patients), 'patient')} cost.",
            notes=("The changes of the causes do not add up.",),
            tables=(
                AnswerTable(
                    COSTS,
                    COSTS.frame(rows),
                    lambda row: rows[row]["objects"],
                    printed=len(CAUSE_WORDS),
                ),
            ),
            plots=(),
            record=self.team_record(
                cohort, gathered, patients=len(patients), failures=len(failures)
            ),
        )

    def _row(
        self, name: str, cause: str, failures: Sequence[Failure], changes: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return the row of a class and cause, given the changes (4, patients)."""
        ids = [one for n, word, one in failures if word == cause and (not name or name in n)]
        pq, sq, dq, f1 = mean_intervals([own[~np.isnan(own)] for own in changes])
        return {
            "team": self.team,
            "class": name,
            "cause": cause,
            "failures": len(ids),
            "d_pq": pq.mean,
            **fields_of(pq, "low", "high"),
            "d_sq": sq.mean,
            "d_dq": dq.mean,
            "d_f1": f1.mean,
            "objects": FailureSet(f"{cause} of {self.team}", frozenset(ids)),
        }
