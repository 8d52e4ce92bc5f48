"""What the command line does with a cohort of several raters."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from tqdm import tqdm

from napari_panoptic.cli.console import (
    chosen_teams,
    report_findings,
    tables_in,
    write_report,
)
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.visible import visible
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.raters.cohort import RatedCohort
from napari_panoptic.raters.evaluate import RatedEvaluation, evaluate_raters
from napari_panoptic.report.raters.statistics import conclusion, ranking_table
from napari_panoptic.report.raters.tables import TABLE_NAMES, write_rater_tables


def evaluate_rated(options: argparse.Namespace) -> int:
    """Write the tables of a cohort of several raters.

    Raises
    ------
    PanopticError
        Where nothing could be evaluated or written.
    """
    cohort = open_raters(options.cohort, allow_outside=options.allow_outside)
    teams = chosen_teams(options.teams, cohort.teams, cohort.checked_team)
    with tables_in(options.output, TABLE_NAMES, cohort.root):
        evaluation = _evaluated(cohort, teams, options.jobs, "evaluation.json")
        write_rater_tables(evaluation, options.output)
    _print_scores(evaluation)
    print(visible(f"tables written to {options.output}"))
    return 0


def report_rated(options: argparse.Namespace) -> int:
    """Write the report of a cohort of several raters.

    Raises
    ------
    PanopticError
        Where nothing could be evaluated or written.
    """

    def evaluate() -> RatedEvaluation:
        cohort = open_raters(options.cohort, allow_outside=options.allow_outside)
        teams = chosen_teams(options.teams, cohort.teams, cohort.checked_team)
        return _evaluated(cohort, teams, options.jobs, "the report")

    return write_report(options, evaluate, _write)


def _write(evaluation: RatedEvaluation, path: Path, date: str) -> None:
    # matplotlib takes long to import: only the report needs it.
    from napari_panoptic.report.raters.page import write_rater_report

    write_rater_report(evaluation, path, date=date)


def _evaluated(
    cohort: RatedCohort, teams: tuple[str, ...], jobs: int | None, listed_in: str
) -> RatedEvaluation:
    total = sum(len(case.masks) for case in cohort.cases)
    # disable=None: a bar for people at a terminal, silence for log files.
    with tqdm(total=total, unit="structure", disable=None) as bar:
        evaluation = evaluate_raters(cohort, teams, jobs=jobs, on_case=lambda _case: bar.update())
    report_findings(evaluation.findings, listed_in if evaluation.results else None)
    if not evaluation.results:
        raise PanopticError(
            "nothing could be evaluated: no rater's mask can be used", path=cohort.root
        )
    return evaluation


def _print_scores(evaluation: RatedEvaluation) -> None:
    if not evaluation.teams:
        print("no predictions: the tables compare the raters with each other")
        return
    ranking = ranking_table(evaluation).to_dict("records")
    width = max(len(visible(team)) for team in ("team", *evaluation.teams))
    print(f"{'team'.ljust(width)}  score   Brier   rank  shared")
    for row in ranking:
        score = "\N{EN DASH}" if math.isnan(row["score"]) else f"{row['score']:.4f}"
        ranks = f"{_whole(row['rank']):>4}  {_whole(row['shared_rank']):>6}"
        print(f"{visible(row['team']).ljust(width)}  {score:6}  {row['brier']:.4f}  {ranks}")
    levels = ", ".join(f"{level:g}" for level in evaluation.settings.levels)
    # Of those that could be evaluated, which the mean is of.
    structures = {result.structure for result in evaluation.results}
    cases = {result.case for result in evaluation.results}
    print(
        f"score: Dice at {levels}, mean over levels, cases and structures "
        f"({len(structures)} structures, {len(cases)} cases)"
    )
    if sentence := conclusion(evaluation):
        print(visible(sentence))


def _whole(value: object) -> str:
    return str(value) if isinstance(value, int) else "\N{EN DASH}"
