"""The commands for cohorts of detections."""

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
from napari_panoptic.detections.evaluate import DetectionEvaluation, evaluate_detections
from napari_panoptic.detections.pairing import DISTANCE_UM, DetectionSettings
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.report.detections.tables import (
    TABLE_NAMES,
    TEAMS,
    best_first,
    teams_table,
    write_detection_tables,
)
from napari_panoptic.report.page import write_page
from napari_panoptic.values.detections import DetectionCohort


def evaluate(options: argparse.Namespace) -> int:
    """Write the tables of a cohort.

    Raises
    ------
    PanopticError
        If nothing could be evaluated or written.
    """
    settings = _settings(options)
    cohort = open_detection_cohort(options.cohort, allow_outside=options.allow_outside)
    with tables_in(options.output, TABLE_NAMES):
        evaluation = _evaluated(cohort, settings, options.teams, "evaluation.json")
        write_detection_tables(evaluation, options.output)
    _print_figures(evaluation)
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
    from napari_panoptic.report.detections.page import detection_report_page

    settings = _settings(options)
    check_report(options.output, options.cohort)
    cohort = open_detection_cohort(options.cohort, allow_outside=options.allow_outside)
    evaluation = _evaluated(cohort, settings, options.teams, "the report")
    date = report_date(is_wanted=options.date)
    write_page(options.output, detection_report_page(evaluation, date=date))
    say(f"report written to {options.output}")
    return 0


def _settings(options: argparse.Namespace) -> DetectionSettings:
    distance = DISTANCE_UM if options.distance_um is None else options.distance_um
    return DetectionSettings(distance, options.confidence)


def _evaluated(
    cohort: DetectionCohort,
    settings: DetectionSettings,
    wanted: str | None,
    listed_in: str,
) -> DetectionEvaluation:
    teams = chosen_teams(wanted, cohort.team_names, cohort.checked_team)
    with share_bar() as progress:
        evaluation = evaluate_detections(cohort, settings, teams, progress=progress)
    report_findings(evaluation.findings, None if evaluation.is_empty else listed_in)
    if evaluation.is_empty:
        why = "no frame has both a readable annotation and a readable prediction"
        if not teams:
            why = f"it has no predictions; {cohort.predictions_expected}"
        raise PanopticError(f"nothing could be evaluated: {why}", path=cohort.root)
    return evaluation


def _print_figures(evaluation: DetectionEvaluation) -> None:
    columns = ("team", "f_measure", "precision", "recall", "tp", "fp", "fn", "frames")
    print_frame(TEAMS.only(*columns), best_first(teams_table(evaluation)))
    say(
        f"F-measure of all frames together; a detection within "
        f"{evaluation.settings.distance_um:g} um of a mitosis is right"
    )
