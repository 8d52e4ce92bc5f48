"""The command ``init``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from napari_panoptic.cli.console import print_table, report_findings
from napari_panoptic.cli.printing import say, warn
from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.text import counted
from napari_panoptic.inspection.inspect import Inspection, inspect_folder, known_description
from napari_panoptic.inspection.values import Doubt, Fix, count_rows
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.folder_scan import scan_folder
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.report.nuclei.inspection_picture import inspection_picture, save_picture
from napari_panoptic.values.cohort import Task

ABOUT = (
    "Scan a folder for images, annotations and predictions, report what is recognised, draw one "
    "region with both outlines, and list doubts with the setting that removes each. A commented "
    "cohort.toml is written where the layout is unknown; settings only with --fix, or if you "
    "choose them on a terminal. An existing cohort.toml is kept as cohort.toml.bak when it "
    "changes. Exit status: 0 done, with or without doubts; 1 something was not found, and nothing "
    "was written; 2 wrong arguments."
)
ALL = "all"
"""The word for all doubts in `--fix`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to scan")
    parser.add_argument(
        "--reference",
        metavar="FOLDER",
        help="the folder or file with the annotation (default: recognised by its name)",
    )
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME[=CHOICE]",
        help="write the setting that removes a doubt; may be repeated; 'all' for every doubt that "
        "needs no choice",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE.png",
        help="where the picture of both outlines is written (default: in the cache)",
    )


def run(options: argparse.Namespace) -> int:
    """Show what a folder holds, and write settings."""
    folder = options.folder
    if (task := task_of(options.folder)) is not Task.NUCLEI:
        say(f"{folder} is a cohort of {task}, which init does not check for doubts")
        return 0
    known, text = known_description(options.folder), None
    is_described = known is not None and (options.folder / DESCRIPTION).exists()
    if known is None:
        scan = scan_folder(options.folder, reference=options.reference)
        for line in scan.summary:
            say(line)
        text = scan.description()
    inspection = inspect_folder(options.folder, description=text)
    _print_counts(inspection)
    _write_picture(inspection, options.picture)
    fixes = _wanted(inspection, options.fix) or list(_asked(inspection))
    if fixes:
        inspection = inspection.with_fixes(fixes)
        for line in (line for fix in fixes for line in fix.lines):
            say(f"set {line}")
        _write_picture(inspection, options.picture)
    _print_doubts(inspection.doubts)
    kept = inspection.save()
    cohort = inspection.cohort
    size = (
        f"{counted(len(cohort.regions), 'region')}, {counted(len(cohort.patients), 'patient')}, "
        f"{counted(len(cohort.competing_teams), 'team')}"
    )
    if not inspection.is_saved:
        before = "" if kept is None else f" (the one before is now {kept.name})"
        say(f"{inspection.root / DESCRIPTION} written{before}: {size}")
    elif is_described:
        say(f"{folder} has a {DESCRIPTION} already, which was not changed: {size}")
    else:
        say(f"{folder} needs no {DESCRIPTION}: it is a known layout with {size}")
    report_findings(inspection.findings, None)
    say(f"look at it with: napari-panoptic view {options.folder}")
    return 0


def _print_counts(inspection: Inspection) -> None:
    header, rows = count_rows(inspection.counts)
    print_table(header, [row[:-1] for row in rows])
    read, regions = len(inspection.looked_at), len(inspection.cohort.regions)
    say(f"objects in the regions read ({read} of {regions}):")
    for row in rows:
        if row[-1]:
            say(f"  {row[0]}: {row[-1]}")


def _print_doubts(doubts: Sequence[Doubt]) -> None:
    say(f"{counted(len(doubts), 'doubt')}{':' if doubts else ''}")
    for doubt in doubts:
        say(f"  {doubt.name}: {doubt.message}")
        for fix in doubt.fixes:
            is_usual = doubt.is_clear and fix is doubt.fixes[0]
            choice = doubt.name if is_usual else f"{doubt.name}={fix.name}"
            say(f"    --fix '{choice}' writes {'; '.join(fix.lines)}")


def _write_picture(inspection: Inspection, path: Path | None) -> None:
    picture = inspection_picture(inspection)
    if picture is None:
        return
    place = path
    if place is None:
        name = inspection.root.resolve().name or "cohort"
        place = user_cache_path("napari-panoptic") / "inspected" / f"{name}.png"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        save_picture(picture, place)
    except OSError as error:
        if path is None:
            warn(
                f"no picture, since the cache cannot be written ({error.strerror or error}: "
                f"{place.parent}); give --picture FILE"
            )
            return
        raise PanopticError(
            f"the picture cannot be written: {error.strerror or error}; choose another --picture",
            path=path,
        ) from error
    say(f"both outlines over {picture.region}: {place}")


def _wanted(inspection: Inspection, names: Sequence[str]) -> list[Fix]:
    """Return the requested settings.

    Raises
    ------
    SettingsError
        For an unknown doubt, or one that needs a choice.
    """
    fixes: list[Fix] = []
    known = {doubt.name: doubt for doubt in inspection.doubts}
    for name in names:
        if name == ALL:
            fixes += [doubt.fix() for doubt in known.values() if doubt.fixes and doubt.is_clear]
        elif name in known:
            fixes.append(known[name].fix())
        else:
            start, _, choice = name.rpartition("=")
            if start not in known:
                there = ", ".join(known) or "there is no doubt"
                raise SettingsError(f"--fix: there is no doubt '{start or name}'; known: {there}")
            fixes.append(known[start].fix(choice))
    return fixes


def _asked(inspection: Inspection) -> Iterator[Fix]:
    """Ask about each doubt, on a terminal only."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    for doubt in inspection.doubts:
        if not doubt.fixes:
            continue
        say(f"{doubt.name}: {doubt.message}")
        for number, fix in enumerate(doubt.fixes, start=1):
            say(f"  {number}  {fix.label}: {'; '.join(fix.lines)}")
        try:
            answer = input("Which setting should be written? (Enter for none) ").strip()
        except EOFError:
            return
        if answer.isdecimal() and 1 <= int(answer) <= len(doubt.fixes):
            yield doubt.fixes[int(answer) - 1]
