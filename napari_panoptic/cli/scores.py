"""The command ``scores``."""

from __future__ import annotations

import argparse

from napari_panoptic.cli.options import add_cohort, add_held, add_output, add_rules_of_objects
from napari_panoptic.cli.tasks import run_for_task

ABOUT = (
    "Evaluate the scores (confidences) of a team's predictions: average precision per "
    "class and IoU, calibration, PQ and F1 over thresholds, the best threshold with its figure for "
    "patients that it was not chosen on, and the wrong predictions, highest score first. Exit "
    "status: 0 done, 1 nothing could be evaluated, or no prediction has a score, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--team", required=True, metavar="T", help="team whose predictions are evaluated"
    )
    add_output(parser)
    add_rules_of_objects(parser)
    add_held(parser)


run = run_for_task
