"""The command ``package``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import add_cohort, add_output, add_restoration, add_source
from napari_panoptic.cli.parser import positive, seed
from napari_panoptic.cli.tasks import run_for_task

ABOUT = (
    "Write the items of a review plan, or the worst failures of a cohort, into one HTML file "
    "with their pictures. A colleague judges them in a browser, without this program, and sends "
    "back a file of verdicts for import-verdicts. Exit status: 0 done, 1 nothing could be "
    "written, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    add_output(parser, "FILE.html", "the file to write")
    items = parser.add_mutually_exclusive_group(required=True)
    items.add_argument("--plan", type=Path, metavar="CSV", help="the items of a plan, in its order")
    items.add_argument(
        "--failures",
        type=positive,
        metavar="N",
        help="the N worst failures, those that overlap least first; with --compare, N annotated "
        "objects with different outcomes",
    )
    parser.add_argument(
        "--teams", metavar="A,B", help="with --failures: teams, separated by commas (default: all)"
    )
    add_source(parser)
    add_restoration(parser)
    parser.add_argument(
        "--blind",
        action="store_true",
        help="show neither teams nor outcomes; failures are shuffled",
    )
    parser.add_argument(
        "--compare",
        metavar="A,B",
        help="show the two teams side by side on the same object, blind and on random sides",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        default=0,
        metavar="S",
        help="seed of the random sides and order (default: %(default)s)",
    )
    parser.add_argument(
        "--reviewer",
        default="",
        metavar="NAME",
        help="the reviewer's name, which can be changed on the page (default: asked there)",
    )


run = run_for_task
