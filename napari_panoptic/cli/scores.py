"""The command ``scores``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import add_cohort, add_held, add_protocol, add_rules
from napari_panoptic.cli.tasks import run_for_task

HELP = "evaluate the scores of a team's predictions: calibration and best threshold"
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
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the tables"
    )
    add_protocol(parser)
    add_rules(parser)
    add_held(parser)
    # Options of `evaluate` that have no effect on which objects match.
    parser.set_defaults(no_distances=True, outlines=None)


run = run_for_task
