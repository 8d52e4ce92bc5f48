"""What the command line does with cohorts of detections."""

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
from napari_panoptic.detections.atypia import AnswerState
from napari_panoptic.detections.cohort import DetectionCohort
from napari_panoptic.detections.evaluate import DetectionEvaluation, evaluate_detections
from napari_panoptic.detections.pairing import DISTANCE_UM, DetectionSettings
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.report.detections.tables import TABLE_NAMES, write_detection_tables


def evaluate_detected(options: argparse.Namespace) -> int:
    """Write the figures of a cohort as tables; as ``napari-panoptic evaluate``.

    Raises
    ------
    PanopticError
        Where nothing could be evaluated or written.
    """
    settings = _settings(options)
    cohort = open_detection_cohort(options.cohort, allow_outside=options.allow_outside)
    teams = chosen_teams(options.teams, cohort.team_names, cohort.checked_team)
    with tables_in(options.output, TABLE_NAMES, cohort.root):
        evaluation = _evaluated(cohort, settings, teams, "evaluation.json")
        write_detection_tables(evaluation, options.output)
    _print_figures(evaluation)
    print(visible(f"tables written to {options.output}"))
    return 0


def report_detected(options: argparse.Namespace) -> int:
    """Write everything about a cohort as one HTML file; as ``napari-panoptic report``.

    Raises
    ------
    PanopticError
        Where nothing could be evaluated or written.
    """
    settings = _settings(options)

    def evaluate() -> DetectionEvaluation:
        cohort = open_detection_cohort(options.cohort, allow_outside=options.allow_outside)
        teams = chosen_teams(options.teams, cohort.team_names, cohort.checked_team)
        return _evaluated(cohort, settings, teams, "the report")

    return write_report(options, evaluate, _write)


def _write(evaluation: DetectionEvaluation, path: Path, date: str) -> None:
    # matplotlib takes long to import: only the report needs it.
    from napari_panoptic.report.detections.page import write_detection_report

    write_detection_report(evaluation, path, date=date)


def _settings(options: argparse.Namespace) -> DetectionSettings:
    distance = DISTANCE_UM if options.distance_um is None else options.distance_um
    return DetectionSettings(distance, options.confidence)


def _evaluated(
    cohort: DetectionCohort,
    settings: DetectionSettings,
    teams: tuple[str, ...],
    listed_in: str,
) -> DetectionEvaluation:
    # disable=None: a bar for people at a terminal, silence for log files.
    with tqdm(total=len(cohort.frames), unit="frame", disable=None) as bar:
        evaluation = evaluate_detections(cohort, settings, teams, on_frame=bar.update)
    report_findings(evaluation.findings, None if evaluation.is_empty else listed_in)
    if evaluation.is_empty:
        why = "no frame has both a readable annotation and a readable prediction"
        if not teams:
            why = f"it has no predictions; {cohort.predictions_expected}"
        raise PanopticError(f"nothing could be evaluated: {why}", path=cohort.root)
    return evaluation


def _print_figures(evaluation: DetectionEvaluation) -> None:
    """Print a line per team, the best first, teams without a figure last."""
    width = max(len(visible(name)) for name in ("team", *evaluation.team_names))
    print(f"{'team'.ljust(width)}  F-measure  precision  recall      TP     FP     FN  frames")
    counts = {team: evaluation.counts(team) for team in evaluation.team_names}
    for team in sorted(counts, key=lambda t: _best_first(counts[t].f_measure)):
        own = counts[team]
        figures = "  ".join(
            _cell(value, size)
            for value, size in ((own.f_measure, 9), (own.precision, 9), (own.recall, 6))
        )
        numbers = "".join(f"{value:7d}" for value in (own.tp, own.fp, own.fn))
        n_frames = len(evaluation.by_team[team])
        print(f"{visible(team).ljust(width)}  {figures} {numbers}{n_frames:8d}")
    for team in sorted(evaluation.atypia.teams, key=lambda t: evaluation.atypia.ranks[t]):
        found = evaluation.atypia.of(team)
        points = f"{found.points} points of {found.n_frames} frames"
        if missing := evaluation.atypia.n_missing(team):
            points += f", {missing} {AnswerState.MISSING}"
        print(f"{visible(team).ljust(width)}  atypia: {points}")
    print(
        f"F-measure of all frames together; a detection within "
        f"{evaluation.settings.distance_um:g} um of a mitosis is right"
    )


def _best_first(figure: float) -> tuple[bool, float]:
    return math.isnan(figure), -figure


def _cell(value: float, size: int) -> str:
    return ("\N{EN DASH}" if math.isnan(value) else f"{value:.4f}").rjust(size)
