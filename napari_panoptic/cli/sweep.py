"""The command ``sweep``: settings of a post-processing, one team for each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from napari_panoptic.cli.console import (
    RegionProgress,
    print_frame,
    tables_in,
    words,
)
from napari_panoptic.cli.inputs import settings_from, source_from
from napari_panoptic.cli.options import (
    add_cohort,
    add_held,
    add_jobs,
    add_metric,
    add_output,
    add_rules_of_objects,
    metric_from,
)
from napari_panoptic.cli.printing import say
from napari_panoptic.cli.tasks import check_task
from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.tables.csv_tables import read_sweep_table
from napari_panoptic.nuclei.regions.cohort_evaluation import InputWatch
from napari_panoptic.questions.engines.sweep import CohortSweep, sweep_cohort
from napari_panoptic.questions.engines.sweep_design import parameters_in, sweep_design
from napari_panoptic.report.nuclei.sweeps import (
    SWEEP,
    SWEEP_NAMES,
    SWEEP_PAGE,
    SWEEP_STEPS,
    choice_lines,
    settings_table,
    steps_table,
    sweep_page,
    sweep_record,
    sweep_tables,
)
from napari_panoptic.report.nuclei.tables import input_fingerprints
from napari_panoptic.report.page import write_page
from napari_panoptic.tables.columns import name_column, number, whole
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.vocabulary import Cause, Side

ABOUT = (
    "Evaluate teams that are settings of one post-processing, such as prob0.5_nms0.3: a metric "
    "over the settings with intervals, causes of failures, objects that change between "
    "neighbouring settings, and the best setting with its honest figure, for which it is chosen "
    "while each patient in turn is left out. Write tables, sweep.json and sweep.html. Exit "
    "status: 0 done, 1 nothing could be evaluated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="TABLE",
        help="CSV table with a column team and one for each parameter (default: parameters are "
        "read from the names of teams, such as prob0.5_nms0.3 or t=0.4,min=20)",
    )
    parser.add_argument(
        "--teams",
        metavar="A,B",
        help="the settings, separated by commas or semicolons (default: the teams of the table, or "
        "all teams whose names have parameters)",
    )
    add_metric(parser)
    add_output(parser)
    add_rules_of_objects(parser)  # distances are measured if the metric needs them
    add_jobs(parser)
    add_held(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate the settings of a sweep, write the tables, and print the choice."""
    check_task(options)
    settings = settings_from(options)
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    values, left_out = _values(options, cohort)
    design = sweep_design(values)
    source = source_from(options, cohort, design.teams)
    with tables_in(options.output, SWEEP_NAMES) as place:
        watch = InputWatch(cohort, design.teams)
        with RegionProgress(cohort) as progress:
            sweep = sweep_cohort(
                cohort,
                design,
                settings,
                metric=metric_from(options),
                source=source,
                jobs=options.jobs,
                scheduler=options.scheduler,
                held_up_to_px=options.held_up_to,
                on_result=progress.on_result,
            )
        sweep = replace(sweep, findings=(*left_out, *sweep.findings, *watch.findings()))
        inputs = input_fingerprints(cohort, design.teams)
        page = sweep_page(sweep, inputs)
        place.write(
            sweep_tables(sweep),
            sweep_record(sweep, cohort=cohort.name, protocol=options.protocol),
            sweep.findings,
            inputs,
            add=lambda draft: write_page(draft / SWEEP_PAGE, page),
        )
    _print_sweep(sweep)
    say(f"tables and sweep.html written to {options.output}")
    return 0


def _values(
    options: argparse.Namespace, cohort: Cohort
) -> tuple[Mapping[str, Mapping[str, str]], tuple[Finding, ...]]:
    """Return the parameters of each team of the sweep, and findings about teams left out."""
    wanted = None if options.teams is None else _teams_from(options.teams, cohort)
    if options.settings is not None:
        rows = read_sweep_table(options.settings)
        listed = {checked_name("--settings", t, cohort.checked_team): v for t, v in rows.items()}
        if wanted is None:
            return listed, ()
        if missing := [team for team in wanted if team not in listed]:
            raise SettingsError(
                f"expected a row for each team, found none for {english_list(missing)}; add it, or "
                "leave the team out of --teams",
                path=options.settings,
            )
        return {team: listed[team] for team in wanted}, ()
    teams = [team.name for team in cohort.competing_teams] if wanted is None else wanted
    found = {team: parameters_in(team) for team in teams}
    without = [team for team, values in found.items() if not values]
    if wanted is not None:
        return found, ()
    message = (
        "the team's name has no parameter, so it is left out of the sweep; write a table for "
        "--settings to include it"
    )
    notes = tuple(Finding(FindingKind.EXTRA, message, team=team) for team in without)
    return {team: values for team, values in found.items() if values}, notes


def _teams_from(text: str, cohort: Cohort) -> tuple[str, ...]:
    """Split names at semicolons if there are any, since names can contain commas."""
    names = words(text, ";" if ";" in text else ",")
    if not names:
        raise SettingsError(f"--teams: expected names separated by commas, found '{text}'")
    return tuple(checked_name("--teams", name, cohort.checked_team) for name in names)


def _print_sweep(sweep: CohortSweep) -> None:
    columns = [
        name_column("team", "setting"),
        number("mean", sweep.metric),
        *SWEEP.only("low"),
        *(whole(cause) for cause in _CAUSES),
    ]
    counts = {name: [own[side, name] for own in sweep.causes] for name, side in _CAUSES.items()}
    print_frame(columns, settings_table(sweep).assign(**counts))
    say()
    if sweep.steps:
        changes = ("fixed", "broken", "reclassified", "new", "gone")
        columns = SWEEP_STEPS.only("team_before", "team_after", "difference", *changes, "turns")
        print_frame(columns, steps_table(sweep))
        say("turns: whether split or merged is the more frequent cause changes here")
        say()
    for name, text in choice_lines(sweep):
        say(f"{name}: {text}")


_CAUSES: Mapping[str, Side] = {
    str(Cause.SPLIT): Side.REFERENCE,
    str(Cause.MERGED): Side.REFERENCE,
    str(Cause.MISSED): Side.REFERENCE,
    str(Cause.SPURIOUS): Side.PREDICTION,
}
"""Printed cause -> the side of its objects."""
