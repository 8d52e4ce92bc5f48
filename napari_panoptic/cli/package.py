"""The command ``package``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.cli.options import add_cohort, add_source
from napari_panoptic.cli.parser import positive, seed
from napari_panoptic.common.errors import PanopticError, SettingsError, checked_name
from napari_panoptic.common.text import visible

if TYPE_CHECKING:
    from napari_panoptic.nuclei.values.cohort import Cohort, Source
    from napari_panoptic.review.package.plan_rows import Question

HELP = "write a page on which a colleague can review objects in a browser"
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
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.html", help="the file to write"
    )
    items = parser.add_mutually_exclusive_group(required=True)
    items.add_argument("--plan", type=Path, metavar="CSV", help="the items of a plan, in its order")
    items.add_argument(
        "--failures",
        type=positive,
        metavar="N",
        help="the N worst failures, those that overlap least first; with --compare, N annotated "
        "objects that one of the two teams failed",
    )
    parser.add_argument(
        "--teams", metavar="A,B", help="with --failures: teams, separated by commas (default: all)"
    )
    add_source(parser)
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


def run(options: argparse.Namespace) -> int:
    """Write a review package."""
    from napari_panoptic.cli.console import check_report, report_findings
    from napari_panoptic.cli.tasks import check_task
    from napari_panoptic.io.cohorts.nuclei import open_cohort
    from napari_panoptic.nuclei.values.cohort import Source, Task
    from napari_panoptic.report.package.drawing import drawn
    from napari_panoptic.report.package.page import write_package
    from napari_panoptic.review.package.choosing import numbered, shuffled
    from napari_panoptic.review.package.contents import Contents
    from napari_panoptic.review.package.importing import fingerprints_of

    check_task(options, Task.NUCLEI)
    check_report(options.output, options.cohort)
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    source = None if options.source is None else Source(options.source)
    pair = _pair(cohort, options.compare)
    is_blind = options.blind or pair is not None
    groups, plan = _groups(options, cohort, source, pair)
    groups = shuffled(groups, options.seed, order=is_blind and plan is None)
    if plan is None:
        groups = numbered(groups)
    questions = [question for group in groups for question in group]
    report_findings(cohort.findings, None)
    found = {each.item.item: each for each in drawn(cohort, questions, source)}
    regions = dict.fromkeys(question.region for question in questions)
    contents = Contents(
        cohort=visible(cohort.name, longest=200),
        source=options.source,
        plan=plan,
        images=fingerprints_of([cohort.region(name) for name in regions], cohort.root),
        items=tuple(found[question.item].item for question in questions),
    )
    write_package(
        options.output,
        contents,
        [[found[question.item] for question in group] for group in groups],
        is_blind=is_blind,
        reviewer=options.reviewer,
    )
    size = options.output.stat().st_size / _MEBIBYTE
    print(visible(f"{len(questions)} items written to {options.output} ({size:.1f} MiB)"))
    return 0


def _pair(cohort: Cohort, text: str | None) -> tuple[str, str] | None:
    from napari_panoptic.cli.console import words

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
    source: Source | None,
    pair: tuple[str, str] | None,
) -> tuple[list[tuple[Question, ...]], str | None]:
    """Return what is shown together, and the SHA-256 of the plan if there is one."""
    from napari_panoptic.cli.console import chosen_teams, progress_bar, report_findings
    from napari_panoptic.review.package.choosing import (
        failures_of,
        pairs_in,
        worst,
        worst_pairs,
    )
    from napari_panoptic.review.package.plan_rows import read_plan

    if options.plan is not None:
        if options.teams is not None:
            raise SettingsError("--teams: the plan names the teams; leave --teams out")
        questions, digest = read_plan(options.plan, cohort)
        singles: Sequence[tuple[Question, ...]] = [(question,) for question in questions]
        return list(singles if pair is None else pairs_in(questions, pair)), digest
    usual = pair or tuple(team.name for team in cohort.competing_teams)
    teams = chosen_teams(options.teams, usual, cohort.checked_team)
    if pair is not None and set(teams) != set(pair):
        raise SettingsError("--teams: --compare names the teams; leave --teams out")
    with progress_bar(len(cohort.regions), "region") as bar:
        failures, findings = failures_of(cohort, teams, source, on_region=bar.update)
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
