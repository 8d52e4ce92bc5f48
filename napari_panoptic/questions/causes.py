"""Find what each cause of failures costs a team: its figures if these failures were mended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.explain.what_if import tally_all
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import class_quality, class_sums, detection_sums
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.engines.cohort_objects import CAUSES_OF, FAILURES
from napari_panoptic.questions.question import Gathered, TeamQuestion
from napari_panoptic.statistics.bootstrap import mean_intervals
from napari_panoptic.statistics.means import means_defined, quotients
from napari_panoptic.tables import columns
from napari_panoptic.tables.figures import signed
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.vocabulary import CAUSES, SIDES, STATUSES, Side, Status

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
CAUSE_WORDS = tuple(dict.fromkeys(cause for causes in CAUSES_OF.values() for cause in causes))
_ABOUT = "mean over patients of the change if these failures were mended"
COSTS = columns.TableSpec(
    "causes.csv",
    "class and cause that it has, the most expensive first; an empty class stands for all classes",
    [
        columns.unshown("team"),
        columns.class_column(),
        columns.words("cause", about="of FN and FP; misclassified nuclei count as one"),
        columns.whole("failures"),
        columns.number("d_pq", "ΔPQ", signed, _ABOUT),
        columns.bounds("low", "high", "95 % interval", "of d_pq, by bootstrap over patients"),
        *(columns.number(f"d_{k}", f"Δ{k.upper()}", signed, _ABOUT) for k in ("sq", "dq", "f1")),
    ],
    "Changes if all failures of a cause were mended: an FN becomes a TP with an IoU of 1, an FP is "
    "removed, a misclassified object gets its right class. The changes do not add up.",
)


@dataclass(frozen=True, kw_only=True)
class Causes(TeamQuestion):
    """What each cause of failures costs a team."""

    title, key, heading = "Causes", "Alt-q", "What each cause costs"
    about = (
        "Compute the change of PQ, SQ, DQ and F1 if all failures of one cause were mended, for "
        "each class and patient, and write means over patients with intervals to causes.csv. An "
        "FN becomes a TP with an IoU of 1, an FP is removed, a misclassified object gets its right "
        "class; the changes do not add up. Exit status: 0 done, 1 nothing could be evaluated, 2 "
        "wrong arguments."
    )
    hint = "Press “Compute” to see what each cause of failures costs this team over the cohort."
    tables = (COSTS,)

    def part(
        self, evaluation: Evaluation, region: Region
    ) -> tuple[str, IntArray, FloatArray, dict[tuple[str, str], list[FailureName]]]:
        """Return the patient, counts, and the failures by class and cause.

        The counts are those as they are, then with each cause mended: confusion int64
        (1 + causes, C + 1, C + 1), whose index 0 is none, and the IoU of TPs (1 + causes, C).
        """
        outcomes, now = evaluation.outcomes, tally_all(evaluation.outcomes)
        n = 1 + len(CAUSE_WORDS)
        confusion, iou_sum = np.repeat(now.confusion, n, 0), np.repeat(now.iou_sum, n, 0)
        failures: dict[tuple[str, str], list[FailureName]] = {}
        for side, own in ((side, outcomes.side(side)) for side in SIDES):
            for row in np.flatnonzero(np.isin([STATUSES[s] for s in own.status], FAILURES[side])):
                k, is_mixed = int(own.class_index[row]), own.partner[row] >= 0
                cause = str(Status.MISCLASSIFIED if is_mixed else CAUSES[own.cause[row]])
                at = 1 + CAUSE_WORDS.index(cause)
                # The cell of the confusion matrix in which the failure is, and where it would be.
                wrong = int(outcomes.prediction.class_index[own.partner[row]]) if is_mixed else 0
                confusion[at][(k, wrong) if side is Side.REFERENCE else (0, k)] -= 1
                if side is Side.REFERENCE:
                    confusion[at, k, k] += 1
                    iou_sum[at, k - 1] += own.iou[row] if is_mixed else 1.0
                name = FailureName(self.team, region.name, side, int(own.ids[row]))
                for word in ("", *(outcomes.class_names[c - 1] for c in (k, wrong) if c)):
                    failures.setdefault((word, cause), []).append(name)
        return region.patient, confusion, iou_sum, failures

    def answered(
        self, cohort: Cohort, gathered: Gathered, progress: Progress = UNWATCHED
    ) -> Answer:
        """Compare each patient's figures with and without the failures of each cause."""
        patients: dict[str, tuple[IntArray, FloatArray]] = {}
        failures: dict[tuple[str, str], list[FailureName]] = {}
        for patient, confusion, iou_sum, found in gathered.parts:
            known = patients.get(patient, (0, 0.0))
            patients[patient] = known[0] + confusion, known[1] + iou_sum
            for key, names in found.items():
                failures.setdefault(key, []).extend(names)
        changes = np.stack([_changes(*counts) for counts in patients.values()], axis=-1)
        rows: list[dict[str, Any]] = []
        for c, name in enumerate(("", *cohort.scheme.names)):
            own = [
                self._row(name, cause, failures.get((name, cause), []), changes[:, c, k])
                for k, cause in enumerate(CAUSE_WORDS)
                if not name or (name, cause) in failures
            ]
            rows += sorted(own, key=lambda row: -np.nan_to_num(row["d_pq"], nan=-np.inf))
        n = sum(row["failures"] for row in rows[: len(CAUSE_WORDS)])
        return Answer(
            f"{self.team}: what {counted(n, 'failure')} cost in "
            f"{counted(len(patients), 'patient')}.",
            ("The changes of the causes do not add up.",),
            (AnswerTable(COSTS, COSTS.frame(rows), lambda r: rows[r]["objects"], printed=12),),
            (),
            self.team_record(cohort, gathered, patients=len(patients), failures=n),
        )

    def _row(
        self, name: str, cause: str, failures: list[FailureName], changes: FloatArray
    ) -> dict[str, Any]:
        """Return the row of a class and cause, given the changes (4, patients)."""
        pq, sq, dq, f1 = mean_intervals([own[~np.isnan(own)] for own in changes])
        row = {"team": self.team, "class": name, "cause": cause, "failures": len(failures)}
        row |= {"d_pq": pq.mean, "low": pq.low, "high": pq.high}
        row |= {"d_sq": sq.mean, "d_dq": dq.mean, "d_f1": f1.mean}
        return row | {"objects": FailureSet(f"{cause} of {self.team}", frozenset(failures))}


def _changes(confusion: IntArray, iou_sum: FloatArray) -> FloatArray:
    """Return the changes (4, 1 + C, causes) of PQ, SQ, DQ and F1, of all classes, then each."""
    quality = class_quality(*class_sums(confusion), iou_sum)
    sums = np.stack(detection_sums(confusion))
    of_all = [means_defined(own, axis=-1) for own in quality] + [quotients(*sums.sum(axis=-1))]
    by_class = [*quality, quotients(*sums)]
    figures = np.stack([np.column_stack(own) for own in zip(of_all, by_class, strict=True)])
    changes: FloatArray = (figures[:, 1:] - figures[:, :1]).swapaxes(1, 2)
    return changes
