"""The command ``init``."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.text import visible

HELP = "describe a folder of your own in a cohort.toml"
ABOUT = (
    "Scan a folder for images, annotations and predictions, report what is recognised, and write "
    "a commented cohort.toml into it. Exit status: 0 written, or not needed; 1 something was not "
    "found, and nothing was written; 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to scan")
    parser.add_argument(
        "--reference",
        metavar="FOLDER",
        help="the folder in it with the annotation (default: recognised by its name)",
    )


def run(options: argparse.Namespace) -> int:
    """Describe a folder, unless it has a known layout."""
    from napari_panoptic.cli.console import number, report_findings
    from napari_panoptic.io.cohorts.description import DESCRIPTION
    from napari_panoptic.io.cohorts.folder_scan import scan_folder, write_description
    from napari_panoptic.io.cohorts.nuclei import open_cohort

    if not (options.folder / DESCRIPTION).exists():
        with suppress(CohortError):
            cohort = open_cohort(options.folder)
            print(
                f"{visible(str(options.folder))} needs no {DESCRIPTION}: it is a known layout with "
                f"{number(len(cohort.regions), 'region')} and {number(len(cohort.teams), 'team')}"
            )
            return 0
    scan = scan_folder(options.folder, reference=options.reference)
    for line in scan.summary:
        print(visible(line))
    path = write_description(scan)
    cohort = open_cohort(options.folder)
    print(
        visible(
            f"{path} written: {number(len(cohort.regions), 'region')}, "
            f"{number(len(cohort.patients), 'patient')}, "
            f"{number(len(cohort.competing_teams), 'team')}"
        )
    )
    report_findings(cohort.findings, None)
    print(visible(f"look at it with: napari-panoptic view {options.folder}"))
    return 0
