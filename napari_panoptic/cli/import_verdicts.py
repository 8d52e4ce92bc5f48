"""The command ``import-verdicts``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.console import report_findings
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.report.writing import check_writable
from napari_panoptic.review.earlier import is_review_file, take_over
from napari_panoptic.review.package.answers import Answers, read_answers
from napari_panoptic.review.package.importing import (
    Imported,
    check_cohort,
    import_answers,
    write_verdicts,
)
from napari_panoptic.review.reviewing import usual_place

ABOUT = (
    "Check a file of verdicts that the page of a review package saved, find its objects in the "
    "cohort, and write the verdicts into the cohort's review file: all of them or, after an "
    "error, none. Altered files, files about another cohort, and files that were imported "
    "before are refused. A review file of an earlier version is taken over with all its verdicts "
    "and plans. Exit status: 0 done, 1 nothing was imported, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="VERDICTS.json",
        help="the file that the page saved, or a review file of an earlier version (SQLite)",
    )
    parser.add_argument(
        "cohort",
        type=Path,
        nargs="?",
        default=Path(),
        metavar="COHORT",
        help="the cohort that the package was made of (default: the current folder)",
    )
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="follow links that lead out of the cohort's folder (default: no)",
    )
    parser.add_argument(
        "--review",
        type=Path,
        metavar="SQLITE",
        help="the review file (default: the one that the window uses for this cohort)",
    )
    parser.add_argument(
        "--reviewer",
        metavar="NAME",
        help="the reviewer's name in the review file (default: the one entered on the page)",
    )
    parser.add_argument(
        "--verdicts",
        type=Path,
        metavar="CSV",
        help="with a package made from a plan: also write the table that 'estimate' reads; "
        "needed if the file has counts of nuclei in squares of background",
    )
    parser.add_argument(
        "--table-only",
        action="store_true",
        help="write --verdicts, and leave the review file as it is",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the file of --verdicts if it is there"
    )


def run(options: argparse.Namespace) -> int:
    """Import a file of verdicts."""
    if is_review_file(options.file):
        return _take_over(options)
    answers = read_answers(options.file)
    _check_table(options, answers)
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    if options.table_only:
        check_cohort(cohort, answers.contents)
    else:
        reviewer = options.reviewer or answers.reviewer
        if not reviewer.strip():
            raise SettingsError("the file names no reviewer; give --reviewer NAME")
        place = options.review or usual_place(cohort.root)
        _print_imported(import_answers(cohort, answers, place, reviewer), place)
    if options.verdicts is not None:
        number = write_verdicts(options.verdicts, answers)
        say(f"{counted(number, 'verdict')} written to {options.verdicts}")
    return 0


def _take_over(options: argparse.Namespace) -> int:
    """Take over a review file of an earlier version."""
    if options.reviewer or options.verdicts or options.table_only:
        raise SettingsError(
            "--reviewer, --verdicts and --table-only are for verdicts that a page saved; leave "
            "them out for a review file"
        )
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    place = options.review or usual_place(cohort.root)
    taken = take_over(options.file, place)
    report_findings(taken.findings, None)
    say(
        f"{counted(taken.verdicts, 'verdict')}, {counted(taken.plans, 'plan')} and "
        f"{counted(taken.answers, 'verdict')} on items of plans taken over into {place}"
    )
    return 0


def _check_table(options: argparse.Namespace, answers: Answers) -> None:
    """Check before anything is written that the table can be, and that nothing is lost."""
    if options.verdicts is None:
        if options.table_only:
            raise SettingsError("--table-only: give --verdicts CSV with it")
        tiles = [a.item.item for a in answers.answers if a.item.target is None]
        if tiles:
            raise SettingsError(
                f"the file has answers on {counted(len(tiles), 'square')} of background, which a "
                f"review file cannot hold; give --verdicts CSV to keep them"
            )
        return
    if answers.contents.plan is None:
        raise SettingsError("--verdicts: the package was not made from a plan; leave it out")
    check_writable(options.verdicts)
    if options.verdicts.exists() and not options.force:
        raise PanopticError(
            "there is a table of verdicts already; choose another name, or give --force to "
            "replace it",
            path=options.verdicts,
        )


def _print_imported(imported: Imported, place: Path) -> None:
    say(f"{imported.saved} verdicts of {imported.reviewer} imported into {place}")
    if imported.known:
        say(f"{imported.known} were imported before and are unchanged")
    if imported.older:
        say(f"newer verdicts of the reviewer stay: item {english_list(imported.older)}")
    if imported.replaced:
        say(
            f"replaced a verdict of the reviewer on an object with other pixels at the same place, "
            f"which stays in the history; look at them in the window: item "
            f"{english_list(imported.replaced)}"
        )
    if imported.missing:
        say(
            f"not in the cohort any more, imported by their places: item "
            f"{english_list(imported.missing)}"
        )
