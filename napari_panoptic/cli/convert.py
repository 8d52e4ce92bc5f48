"""The command ``convert``."""

from __future__ import annotations

import argparse

from napari_panoptic.cli.console import report_findings
from napari_panoptic.cli.inputs import nuclei_from, reading_from
from napari_panoptic.cli.options import add_cohort, add_output, add_reading
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import checked_name
from napari_panoptic.common.text import english_list
from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.nuclei.regions import conversion

ABOUT = (
    "Read every region of a team's predictions, or of the annotation, and write them in another "
    "format: all of them or, after an error, none. Exit status: 0 done, 1 nothing was written, 2 "
    "wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
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
    add_output(parser, meaning="a new or empty folder")
    parser.add_argument(
        "--force", action="store_true", help="replace files of the same names in DIR"
    )
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Write a team, or the annotation, in another format."""
    cohort = nuclei_from(options)
    team = options.team
    if team is not None:
        team = checked_name("--team", team, cohort.checked_team)
    reading = reading_from(options, cohort, () if team is None else (team,))
    form = conversion.form_to_write(options.to)
    work = conversion.Conversion(
        cohort, team, form, reading.settings, reading.source, options.force
    )
    report_findings(conversion.convert(work, options.output), None)
    say(f"{options.to} written to {options.output}")
    return 0
