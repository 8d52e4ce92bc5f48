"""The command ``suspects``."""

from __future__ import annotations

import argparse

from napari_panoptic.cli.options import add_cohort, add_output, add_restoration, add_source
from napari_panoptic.cli.parser import add_choice
from napari_panoptic.cli.tasks import run_for_task
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy, Restoration

ABOUT = (
    "Compare what several teams agree on with the annotation, and write suspects.csv (the most "
    "suspect first) and suspects.json: objects that the annotation misses, outlines badly, assigns "
    "to another class, splits or merges. No review is needed. Suspects are not errors: teams can "
    "make the same errors. Exit status: 0 done, 1 nothing could be compared, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    add_output(parser)
    parser.add_argument(
        "--teams",
        metavar="A,B",
        help="names of two or more teams, separated by commas (default: all but the annotation's "
        "own colour-coded version)",
    )
    add_source(parser)
    add_restoration(parser, default=Restoration.BORDER_DILATED)
    add_choice(parser, "--ambiguous", AmbiguousPolicy, "how ambiguous areas are treated")


run = run_for_task
