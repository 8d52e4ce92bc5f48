"""The command ``convert``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import add_cohort, add_restoration, add_source
from napari_panoptic.cli.tasks import run_for_task
from napari_panoptic.common.text import english_list

ABOUT = (
    "Read every region of a team's predictions, or of the annotation, and write them in another "
    "format: all of them or, after an error, none. Exit status: 0 done, 1 nothing was written, 2 "
    "wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from napari_panoptic.io.formats.registry import known_forms

    add_cohort(parser)
    parser.add_argument("--team", metavar="T", help="whose predictions (default: the annotation)")
    forms = [form.name for form in known_forms().values() if form.write or form.write_all]
    parser.add_argument(
        "--to",
        required=True,
        choices=forms,
        metavar="FORMAT",
        help=f"one of {english_list(forms, limit=len(forms))}",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="a new or empty folder"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace files of the same names in DIR"
    )
    add_source(parser)
    add_restoration(parser)


run = run_for_task
