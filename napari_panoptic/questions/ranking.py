"""Rank teams by every metric, and test whether they differ over patients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import counted
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation, statistics_of
from napari_panoptic.nuclei.regions.experiment import region_result
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.questions.answer import Answer, AnswerTable, UnansweredError
from napari_panoptic.questions.question import Gathered, Question, option, why_nothing
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.teams import TeamStatistics, bootstrap_record, statistics_record
from napari_panoptic.tables.columns import (
    CellContent,
    TableColumn,
    TableSpec,
    bounds,
    name_column,
    number,
    whole,
)
from napari_panoptic.tables.figures import p_value, two_places
from napari_panoptic.tables.ranks import friedman_sentence, rank_of
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Status

RANKING = TableSpec(
    "ranking.csv",
    "metric and team",
    [
        TableColumn("metric", lambda row: CellContent(FIGURE_NAMES[row["metric"]]), ("metric",)),
        name_column("team"),
        number("mean", about="over all patients with a figure of the team"),
        bounds("low", "high", "95 % interval", "of the mean, by bootstrap over patients"),
        number("mean_rank", "mean rank", two_places, "over the patients with figures of all teams"),
        whole("rank", about="1 + the number of teams that are significantly better (Nemenyi)"),
        whole("patients", about="number with figures of all teams: those that are tested"),
        number("friedman_p", "Friedman p", p_value, "of no difference between teams"),
    ],
    "Rank: 1 + the number of teams that are significantly better (Nemenyi, p < 0.05).",
)
FAILED = (str(Status.FN), str(Status.FP), str(Status.MISCLASSIFIED))


@dataclass(frozen=True, kw_only=True)
class Ranking(Question):
    """How teams rank by every metric, and how certain that is."""

    title = "Ranking"
    about = (
        "Evaluate teams, and write their mean by every metric with its interval, their ranks over "
        "patients, and the tests of differences to ranking.csv and ranking.json; 'evaluate' has "
        "the same among its statistics. Exit status: 0 done, 1 nothing could be evaluated, 2 wrong "
        "arguments."
    )
    hint = "Press “Compute” to see how teams rank by every metric."
    tables = (RANKING,)
    takes_windows = True

    #: Names of the teams.
    teams: tuple[str, ...] = option("names of teams, separated by commas (default: all)")

    @property
    def matching(self) -> EvaluationSettings:
        """The settings with distances, which one of the metrics needs."""
        return self.settings.replaced(distances=True)

    def why_not(self, cohort: Cohort) -> str:
        """Return why there is no ranking; empty if there is one."""
        if len(self.teams) > 1:
            return ""
        found = counted(len(self.teams), "team")
        return f"a ranking needs two or more teams, found {found}; add another one"

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> RegionResult:
        """Return the figures and objects of a team in a region, also if it has none."""
        ((team, evaluated),) = teams.items()
        return region_result(region, team, evaluated, self.matching)

    def joined(self, cohort: Cohort, gathered: Gathered) -> CohortEvaluation:
        """Return the evaluation of the cohort."""
        evaluation = CohortEvaluation(cohort, self.matching, self.protocol, gathered.parts)
        if not evaluation.evaluated:
            raise UnansweredError(why_nothing(cohort, self.teams), evaluation.findings)
        return evaluation

    def answered(
        self, cohort: Cohort, gathered: CohortEvaluation, progress: Progress = UNWATCHED
    ) -> Answer:
        """Compare the teams over patients."""
        found = statistics_of(gathered)
        if not found:
            raise UnansweredError(self.why_not(cohort) or "only one team competes")
        frame = RANKING.frame(statistics_rows(found))
        return Answer(
            headline=friedman_sentence(found["pq"].comparison, "PQ", "patient"),
            notes=(),
            tables=(
                AnswerTable(RANKING, frame, lambda row: _failures(gathered, frame["team"][row])),
            ),
            plots=(),
            record=self.record(
                cohort,
                gathered.findings,
                teams=self.teams,
                protocol=self.protocol,
                settings=self.matching.as_record(),
                bootstrap=bootstrap_record(RESAMPLES, SEED),
                statistics={metric: statistics_record(one) for metric, one in found.items()},
            ),
        )


def statistics_rows(found: Mapping[str, TeamStatistics]) -> Iterator[dict[str, Any]]:
    """Return a row of `RANKING` for each metric and team."""
    for metric, own in found.items():
        for team in own.comparison.teams:
            yield {
                "metric": metric,
                "team": team,
                **fields_of(own.means[team], "mean", "low", "high"),
                **rank_of(own.comparison, team),
                "patients": own.comparison.n_patients,
                "friedman_p": own.comparison.friedman_p,
            }


def _failures(evaluation: CohortEvaluation, team: str) -> FailureSet:
    """Return all failures of a team."""
    names = []
    for result in evaluation.evaluated:
        if result.team == team and result.objects is not None:
            failed = result.objects[result.objects["status"].isin(FAILED)]
            for side, id_ in zip(failed["side"], failed["id"], strict=True):
                names.append(FailureName(team, result.region, Side(side), int(id_)))
    return FailureSet(f"failures of {team}", frozenset(names))
