"""The command ``evaluate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import (
    add_cohort,
    add_detections,
    add_held,
    add_rules,
    add_run,
    add_teams_and_protocol,
)
from napari_panoptic.cli.parser import add_choice
from napari_panoptic.cli.tasks import run_for_task
from napari_panoptic.nuclei.values.settings import Outlines

HELP = "write the figures of a whole cohort as CSV tables"
ABOUT = (
    "Match every predicted nucleus with every annotated one, and write objects.csv, regions.csv, "
    "patients.csv, patients_by_class.csv, teams.csv, confusion.csv and evaluation.json; or, for a "
    "cohort of detections, detections.csv, frames.csv, patients.csv, teams.csv, curve.csv, "
    "atypia.csv and evaluation.json. Files that cannot be read are listed, and the rest is "
    "evaluated. Exit status: 0 done, 1 nothing could be evaluated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the tables"
    )
    add_teams_and_protocol(parser)
    add_rules(parser)
    add_choice(parser, "--outlines", Outlines, "which outlines the Hausdorff distance compares")
    add_run(parser)
    parser.add_argument(
        "--no-distances", action="store_true", help="leave out the Hausdorff distances (faster)"
    )
    add_held(parser)
    add_detections(parser)


run = run_for_task
