"""Write the package of a review."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from napari_panoptic.cli.console import chosen_teams, progress_bar, report_findings, words
from napari_panoptic.common.errors import PanopticError, SettingsError, checked_name
from napari_panoptic.common.text import visible
from napari_panoptic.nuclei.values.cohort import Cohort
from napari_panoptic.report.package.page import write_package
from napari_panoptic.review.package.choosing import (
    Question,
    Reading,
    failures_of,
    numbered,
    pairs_in,
    read_plan,
    shuffled,
    worst,
    worst_pairs,
)

_MEBIBYTE = 2**20


def write(options: argparse.Namespace, cohort: Cohort, reading: Reading) -> int:
    """Write a review package.

    Parameters
    ----------
    options
        Those of the command.
    cohort, reading
        The cohort, and how its objects are read.
    """
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
    print(visible(f"{number} items written to {options.output} ({size:.1f} MiB)"))
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
) -> tuple[list[tuple[Question, ...]], str | None]:
    """Return what is shown together, and the SHA-256 of the plan if there is one."""
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
        failures, findings = failures_of(cohort, teams, reading, on_region=bar.update)
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
