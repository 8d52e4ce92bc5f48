"""The command ``package``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from napari_panoptic.cli.console import (
    check_report,
    chosen_teams,
    report_findings,
    share_bar,
    words,
)
from napari_panoptic.cli.inputs import reading_from
from napari_panoptic.cli.options import add_cohort, add_output, add_reading
from napari_panoptic.cli.parser import add_seed, positive
from napari_panoptic.cli.printing import say
from napari_panoptic.cli.tasks import check_task
from napari_panoptic.common.errors import PanopticError, SettingsError, checked_name
from napari_panoptic.common.text import counted
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.report.package.page import write_package
from napari_panoptic.review.package.choosing import (
    ItemQuestion,
    failures_of,
    numbered,
    pairs_in,
    read_questions,
    shuffled,
    worst,
    worst_pairs,
)
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.reading import Reading

ABOUT = (
    "Write the items of a review plan, or the worst failures of a cohort, into one HTML file "
    "with their pictures. A colleague judges them in a browser, without this program, and sends "
    "back a file of verdicts for import-verdicts. Exit status: 0 done, 1 nothing could be "
    "written, 2 wrong arguments."
)

_MEBIBYTE = 2**20


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
    add_reading(parser)
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
    add_seed(parser, "seed of the random sides and order", default=0)
    parser.add_argument(
        "--reviewer",
        default="",
        metavar="NAME",
        help="the reviewer's name, which can be changed on the page (default: asked there)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the package of a review."""
    check_task(options)
    check_report(options.output, options.cohort)
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    reading = reading_from(options, cohort, cohort.team_names).without_distances
    pair = _pair(cohort, options.compare)
    is_blind = options.blind or pair is not None
    groups, plan = _groups(options, cohort, reading, pair)
    groups = shuffled(groups, options.seed, order=is_blind and plan is None)
    if plan is None:
        groups = numbered(groups)
    write_package(
        options.output,
        cohort,
        groups,
        reading,
        plan=plan,
        is_blind=is_blind,
        reviewer=options.reviewer,
    )
    size = options.output.stat().st_size / _MEBIBYTE
    number = sum(map(len, groups))
    say(f"{counted(number, 'item')} written to {options.output} ({size:.1f} MiB)")
    return 0


def _pair(cohort: Cohort, text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = words(text)
    if len(names) != 2:
        raise SettingsError(f"--compare: expected two teams separated by a comma, found '{text}'")
    first, second = (checked_name("--compare", name, cohort.checked_team) for name in names)
    return first, second


def _groups(
    options: argparse.Namespace,
    cohort: Cohort,
    reading: Reading,
    pair: tuple[str, str] | None,
) -> tuple[list[tuple[ItemQuestion, ...]], str | None]:
    """Return the objects shown together, and the SHA-256 of the plan if there is one."""
    if options.plan is not None:
        if options.teams is not None:
            raise SettingsError("--teams: the plan names the teams; leave --teams out")
        questions, digest = read_questions(options.plan, cohort)
        singles: Sequence[tuple[ItemQuestion, ...]] = [(question,) for question in questions]
        return list(singles if pair is None else pairs_in(questions, pair)), digest
    usual = pair or tuple(team.name for team in cohort.competing_teams)
    teams = chosen_teams(options.teams, usual, cohort.checked_team)
    if pair is not None and set(teams) != set(pair):
        raise SettingsError("--teams: --compare names the teams; leave --teams out")
    with share_bar() as progress:
        failures, findings = failures_of(
            cohort, replace(reading, teams=tuple(teams)), progress=progress
        )
    report_findings(findings, None)
    groups = (
        [(question,) for question in worst(failures, options.failures)]
        if pair is None
        else list(worst_pairs(failures, pair, options.failures))
    )
    if not groups:
        raise PanopticError(
            "there are no failures to review; 'napari-panoptic evaluate' shows the outcomes",
            path=options.cohort,
        )
    return [tuple(group) for group in groups], None
