"""The command ``plan``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.console import print_table, report_findings
from napari_panoptic.cli.inputs import nuclei_from, reading_from
from napari_panoptic.cli.options import add_cohort, add_output, add_reading
from napari_panoptic.cli.parser import add_seed, positive
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import checked_name
from napari_panoptic.common.text import counted
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.report.writing import check_writable, write_bytes
from napari_panoptic.review.plan.corrected import ALL, QUANTITIES
from napari_panoptic.review.plan.design import Plan, draw, extend, stratified, with_seed
from napari_panoptic.review.plan.estimates import expected
from napari_panoptic.review.plan.suspects import with_cohort_suspects
from napari_panoptic.review.plan.tables import PLAN, plan_frame, read_plan
from napari_panoptic.review.plan.units import Units, population

ABOUT = (
    "Draw a stratified sample of the objects of a team, and of tiles of background, and write it "
    "as a CSV table in the order in which it is to be reviewed. Prints how precise the estimates "
    "are expected to be. See docs/tasks/review-plan.md. Exit status: 0 done, 1 nothing "
    "could be drawn, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--team",
        metavar="T",
        action="append",
        required=True,
        help="team whose predictions are reviewed; may be repeated",
    )
    parser.add_argument(
        "--items", type=positive, metavar="N", required=True, help="number of items to review"
    )
    add_seed(parser, "the same seed and cohort give the same plan", default=0)
    parser.add_argument(
        "--extend",
        type=Path,
        metavar="PLAN",
        help="plan drawn with the same seed: its items are kept, and new ones are appended",
    )
    parser.add_argument(
        "--suspects",
        action="store_true",
        help="draw more of the suspect annotations, where several teams agree with each other but "
        "not with the annotation; estimates stay unbiased. Needs the predictions of two teams",
    )
    add_output(parser, "CSV", "the table to write")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Draw a plan, write its table, and print the design."""
    cohort = nuclei_from(options)
    teams = tuple(checked_name("--team", name, cohort.checked_team) for name in options.team)
    reading = reading_from(options, cohort, tuple(dict.fromkeys(teams)))
    check_writable(options.output)
    check_not_in_cohort([options.output], cohort.root)
    found = population(cohort, reading)
    report_findings(found.findings, None)
    units = found.units
    table = None if options.extend is None else read_plan(options.extend)
    if options.suspects or (table is not None and table.has_suspects):
        units = with_cohort_suspects(units, cohort, reading.source)
    if table is None:
        plan = draw(units, options.items, options.seed)
    else:
        before, findings = table.plan(units)
        report_findings(findings, None)
        before = with_seed(before, units, options.seed)
        plan = extend(before, units, options.items)
    write_bytes(options.output, PLAN.csv(plan_frame(plan)))
    _print_design(plan, units)
    say(f"plan of {counted(len(plan), 'item')} written to {options.output}")
    return 0


def _print_design(plan: Plan, units: Units) -> None:
    strata = stratified(units, plan.level)
    rows = [
        (name, int(size), int(n), float(n / size))
        for name, size, n in zip(strata.names, strata.sizes, plan.drawn(strata), strict=True)
    ]
    print_table(("stratum", "all", "drawn", "probability"), rows)
    say("expected half-width of the 95 % intervals over all classes, if all items are reviewed:")
    widths = {
        (row.team, row.quantity): row.half_width
        for row in expected(plan, units)
        if row.class_name == ALL
    }
    print_table(
        ("team", *map(str, QUANTITIES)),
        [(team, *(widths[team, quantity] for quantity in QUANTITIES)) for team in plan.teams],
    )
