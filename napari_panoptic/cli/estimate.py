"""The command ``estimate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import add_cohort, add_output, add_restoration, add_source
from napari_panoptic.cli.parser import seed
from napari_panoptic.cli.tasks import run_for_task

ABOUT = (
    "Read the verdicts on the items of a plan, and write estimates.csv: the share of wrong "
    "annotations, and each team's precision, recall, F1 and PQ if the annotation were right, with "
    "95 % intervals; and estimates.json with the design. See docs/review-plan.md. Exit status: 0 "
    "done, 1 nothing could be estimated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--plan", type=Path, required=True, metavar="CSV", help="a table written by plan"
    )
    parser.add_argument(
        "--verdicts",
        type=Path,
        required=True,
        metavar="CSV",
        help="a table with the columns item, verdict (annotation-right, prediction-right, "
        "both-wrong or cannot-tell) and count (of background items: nuclei without an outline)",
    )
    add_output(parser)
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="S",
        help="the seed of the plan, to be checked and stated in estimates.json",
    )
    add_source(parser)
    add_restoration(parser)


run = run_for_task
