"""The command ``plan``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import add_cohort, add_output, add_restoration, add_source
from napari_panoptic.cli.parser import positive, seed
from napari_panoptic.cli.tasks import run_for_task

ABOUT = (
    "Draw a stratified sample of the objects of a team, and of tiles of background, and write it "
    "as a CSV table in the order in which it is to be reviewed. Prints how precise the estimates "
    "are expected to be. See docs/review-plan.md. Exit status: 0 done, 1 nothing could be drawn, "
    "2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--team",
        metavar="T",
        action="append",
        required=True,
        help="team whose predictions are reviewed; may be repeated",
    )
    parser.add_argument(
        "--items", type=positive, metavar="N", required=True, help="number of items to review"
    )
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="S",
        default=0,
        help="the same seed and cohort give the same plan (default: %(default)s)",
    )
    parser.add_argument(
        "--extend",
        type=Path,
        metavar="PLAN",
        help="plan drawn with the same seed: its items are kept, and new ones are appended",
    )
    parser.add_argument(
        "--suspects",
        action="store_true",
        help="draw more of the suspect annotations, where several teams agree with each other but "
        "not with the annotation; estimates stay unbiased. Needs the predictions of two teams",
    )
    add_output(parser, "CSV", "the table to write")
    add_source(parser)
    add_restoration(parser)


run = run_for_task
