"""Find the splits, mergers and duplicates of a team, and what each of them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted
from napari_panoptic.explain.failure_groups import (
    CohortLoss,
    failure_groups,
    lost_over,
)
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.question import Gathered, TeamQuestion
from napari_panoptic.tables.columns import TableSpec, name_column, number, whole, words
from napari_panoptic.tables.figures import signed
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.settings import EvaluationSettings, Overlaps
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

LOSSES = TableSpec(
    "",
    "kind of groups",
    [
        words("kind"),
        whole("groups"),
        number("pq", "pooled PQ"),
        number("pq_if_one", "if mended"),
        number("pq_lost", "change of PQ", lambda value: signed(value, 4)),
    ],
    "PQ of the counts summed over the cohort, and if every group of a kind were mended: joined, or "
    "cut along the annotation. The changes of the kinds do not add up.",
)
GROUPS = TableSpec(
    "groups.csv",
    "split, merger or duplicate; in each region, the one that costs the most PQ first",
    [
        name_column("region"),
        words("kind", about="split, merger, duplicate or mixed"),
        words("reference_ids", "annotated", "of the annotated objects, separated by spaces"),
        words("prediction_ids", "predicted", "of the predictions, separated by spaces"),
        number(
            "pq_lost",
            "change of PQ",
            lambda value: signed(value, 4),
            "of the region, if the group were joined, or cut along the annotation",
        ),
    ],
    "Objects of splits, mergers and duplicates, region by region.",
)
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Groups(TeamQuestion):
    """What splits, mergers and duplicates cost a team."""

    title = "Group costs"
    key = "Alt-Shift-g"  # every letter with Alt alone is taken
    heading = "What splits, mergers and duplicates cost"
    about = (
        "Find the splits, mergers and duplicates of a team as groups of objects, and write them to "
        "groups.csv, each with the change of the region's PQ if its parts were joined, or the "
        "merged objects cut along the annotation. Exit status: 0 done, 1 nothing could be "
        "evaluated, 2 wrong arguments."
    )
    verb = "Over the cohort"
    hint = "Press “Over the cohort” to see what groups cost this team in all regions."
    tables = (GROUPS,)

    @property
    def matching(self) -> EvaluationSettings:
        """The settings without shared pixels, which would count twice in joined objects."""
        return super().matching.replaced(overlaps=Overlaps.FLATTEN)

    def part(
        self, evaluation: Evaluation, region: Region
    ) -> tuple[list[dict[str, Any]], tuple[CohortLoss, ...]]:
        """Return the groups of a region."""
        ids = evaluation.outcomes.reference.ids, evaluation.outcomes.prediction.ids
        rows = [
            {
                "region": region.name,
                "kind": str(group.kind),
                "reference_ids": _spaced(ids[0][group.reference_rows]),
                "prediction_ids": _spaced(ids[1][group.prediction_rows]),
                "pq_lost": group.pq_lost,
            }
            for group in failure_groups(evaluation)
        ]
        return rows, lost_over([evaluation])

    def answered(
        self, cohort: Cohort, gathered: Gathered, progress: Progress = UNWATCHED
    ) -> Answer:
        """Add up what the kinds cost, and list the groups."""
        frame = GROUPS.frame(row for rows, _ in gathered.parts for row in rows)
        losses = [_sum(own) for own in zip(*(lost for _, lost in gathered.parts), strict=True)]
        kinds = LOSSES.frame(map(_loss_row, losses))
        flat = "Pixels that objects share were given to one of them."
        return Answer(
            headline=f"{self.team}: {counted(len(frame), 'group')} in "
            f"{counted(len(gathered.parts), 'region')}.",
            notes=(flat,) if self.settings.overlaps is not Overlaps.FLATTEN else (),
            tables=(
                AnswerTable(
                    LOSSES,
                    kinds,
                    lambda row: self._of_kind(frame, kinds["kind"][row]),
                    has_others=True,
                ),
                AnswerTable(
                    GROUPS,
                    frame,
                    lambda row: self._objects(frame.iloc[[row]]),
                    has_others=True,
                    is_of_objects=True,
                    heading="groups of each region",
                    printed=0,
                ),
            ),
            plots=(),
            record=self.team_record(
                cohort, gathered, regions=len(gathered.parts), kinds=kinds.to_dict("records")
            ),
        )

    def _of_kind(self, frame: pd.DataFrame, kind: str) -> FailureSet:
        return self._objects(frame if kind == ALL else frame[frame["kind"] == kind])

    def _objects(self, rows: pd.DataFrame) -> FailureSet:
        kinds = rows["kind"].unique()
        names = (
            FailureName(self.team, region, side, int(id_))
            for side, column in (
                (Side.REFERENCE, "reference_ids"),
                (Side.PREDICTION, "prediction_ids"),
            )
            for region, ids in zip(rows["region"], rows[column], strict=True)
            for id_ in ids.split()
        )
        what = kinds[0] if len(kinds) == 1 else "groups"
        return FailureSet(f"{what} of {self.team}", frozenset(names))


def _spaced(ids: NDArray[np.int64]) -> str:
    return " ".join(map(str, ids.tolist()))


def _sum(losses: Sequence[CohortLoss]) -> CohortLoss:
    first = losses[0]
    names = first.before.class_names
    before, after = (
        summed([getattr(own, when) for own in losses], names) for when in ("before", "after")
    )
    return CohortLoss(first.kind, sum(own.groups for own in losses), before, after)


def _loss_row(loss: CohortLoss) -> dict[str, Any]:
    return {
        "kind": ALL if loss.kind is None else str(loss.kind),
        "groups": loss.groups,
        "pq": unit_metrics(loss.before).pq,
        "pq_if_one": unit_metrics(loss.after).pq,
        "pq_lost": loss.pq_lost,
    }
