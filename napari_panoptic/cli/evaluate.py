"""The command ``evaluate``."""

from __future__ import annotations

import argparse

from napari_panoptic.cli.options import add_cohort, add_detections, add_evaluation, add_output
from napari_panoptic.cli.tasks import run_for_task

ABOUT = (
    "Match every predicted nucleus with every annotated one, and write objects.csv, regions.csv, "
    "patients.csv, patients_by_class.csv, teams.csv, confusion.csv and evaluation.json; or, for a "
    "cohort of detections, detections.csv, frames.csv, patients.csv, teams.csv, curve.csv, "
    "atypia.csv and evaluation.json; or, for a cohort with several raters, levels.csv, cases.csv, "
    "structures.csv, teams.csv, tests.csv, pairs.csv, raters.csv, slices.csv, reliability.csv and "
    "evaluation.json. Files that cannot be read are listed, and the rest is evaluated. Exit "
    "status: 0 done, 1 nothing could be evaluated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    add_output(parser)
    add_evaluation(parser, resumes=True)
    add_detections(parser)


run = run_for_task
