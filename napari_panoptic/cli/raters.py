"""The commands for cohorts of several raters."""

from __future__ import annotations

import argparse

from napari_panoptic.cli.console import (
    check_report,
    chosen_teams,
    print_frame,
    report_date,
    report_findings,
    share_bar,
    tables_in,
)
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.raters.evaluate import RatedEvaluation, evaluate_raters
from napari_panoptic.report.page import write_page
from napari_panoptic.report.raters.statistics import conclusion, ranking_table
from napari_panoptic.report.raters.tables import TABLE_NAMES, TEAMS, write_rater_tables
from napari_panoptic.values.raters import RatedCohort


def evaluate(options: argparse.Namespace) -> int:
    """Write the tables of a cohort.

    Raises
    ------
    PanopticError
        If nothing could be evaluated or written.
    """
    cohort = open_raters(options.cohort, allow_outside=options.allow_outside)
    with tables_in(options.output, TABLE_NAMES):
        evaluation = _evaluated(cohort, options, "evaluation.json")
        write_rater_tables(evaluation, options.output)
    _print_scores(evaluation)
    say(f"tables written to {options.output}")
    return 0


def report(options: argparse.Namespace) -> int:
    """Write the report of a cohort.

    Raises
    ------
    PanopticError
        If nothing could be evaluated or written.
    """
    # matplotlib takes long to import: only the report needs it.
    from napari_panoptic.report.raters.page import rater_page, worst_cases

    check_report(options.output, options.cohort)
    cohort = open_raters(options.cohort, allow_outside=options.allow_outside)
    evaluation = _evaluated(cohort, options, "the report")
    date = report_date(is_wanted=options.date)
    page = rater_page(evaluation, list(worst_cases(evaluation)), date=date)
    write_page(options.output, page)
    say(f"report written to {options.output}")
    return 0


def _evaluated(cohort: RatedCohort, options: argparse.Namespace, listed_in: str) -> RatedEvaluation:
    teams = chosen_teams(options.teams, cohort.teams, cohort.checked_team)
    with share_bar() as progress:
        evaluation = evaluate_raters(cohort, teams, jobs=options.jobs, progress=progress)
    report_findings(evaluation.findings, listed_in if evaluation.results else None)
    if not evaluation.results:
        raise PanopticError(
            "nothing could be evaluated: no rater's mask can be used", path=cohort.root
        )
    return evaluation


def _print_scores(evaluation: RatedEvaluation) -> None:
    if not evaluation.teams:
        say("no predictions: the tables compare the raters with each other")
        return
    columns = TEAMS.only("team", "score", "brier", "rank", "shared_rank")
    print_frame(columns, ranking_table(evaluation))
    levels = ", ".join(f"{level:g}" for level in evaluation.settings.levels)
    # Only those that could be evaluated enter the mean.
    structures = {result.structure for result in evaluation.results}
    cases = {result.case for result in evaluation.results}
    say(
        f"score: Dice at {levels}, mean over levels, cases and structures "
        f"({counted(len(structures), 'structure')}, {counted(len(cases), 'case')})"
    )
    if sentence := conclusion(evaluation):
        say(sentence)
