"""The command ``report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import (
    add_cohort,
    add_detections,
    add_held,
    add_metadata,
    add_output,
    add_overlaps,
    add_run,
    add_teams_and_protocol,
)
from napari_panoptic.cli.tasks import run_for_task

ABOUT = (
    "Evaluate a cohort under every version of the challenge's scoring, ways to average, "
    "restorations, rules, radii, thresholds and shifts, and write all tables, plots and pictures "
    "of the worst failures into one HTML file that needs no other files. Exit status: 0 done, 1 "
    "nothing could be evaluated or written, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    add_output(parser, "FILE.html", "the file to write")
    add_teams_and_protocol(parser)
    add_overlaps(parser)
    add_metadata(parser, ", by which patients are grouped")
    parser.add_argument(
        "--group",
        default="",
        metavar="COLUMN",
        help="the column to group patients by (default: organ if there is one, else the first)",
    )
    parser.add_argument(
        "--plan",
        type=Path,
        metavar="CSV",
        help="a plan of a review, whose estimates are a section of the report",
    )
    parser.add_argument(
        "--verdicts", type=Path, metavar="CSV", help="the verdicts on the items of the plan"
    )
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar=("OLD", "NEW"),
        help="two teams to compare as an old and a new version, in a section of their own",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="X",
        help="with --compare: by how much the PQ of the new version may be worse (default: 0.01)",
    )
    add_run(parser)
    add_held(parser)
    parser.add_argument(
        "--date",
        action="store_true",
        help="write today's date into the report; without it the same files give the same report",
    )
    add_detections(parser)


run = run_for_task
