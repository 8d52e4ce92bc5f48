"""Plans of reviews and their estimates, on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from napari_panoptic.cli.console import print_table, report_findings, tables_in
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.spreadsheets import inert_cells
from napari_panoptic.common.text import counted, utf8, visible
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.report.nuclei.review import (
    ESTIMATES_RECORD,
    ESTIMATES_TABLE,
    ReviewedPlan,
    write_estimates,
)
from napari_panoptic.report.writing import check_writable, write_bytes
from napari_panoptic.review.plan.conclusions import sentences
from napari_panoptic.review.plan.corrected import ALL, QUANTITIES
from napari_panoptic.review.plan.design import Plan, draw, extend, stratified, with_seed
from napari_panoptic.review.plan.estimates import estimate, expected
from napari_panoptic.review.plan.suspects import with_cohort_suspects
from napari_panoptic.review.plan.tables import plan_frame, read_plan, read_verdicts
from napari_panoptic.review.plan.units import Units, population


def write_plan(
    options: argparse.Namespace,
    cohort: Cohort,
    teams: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None,
) -> int:
    """Draw a plan, write its table, and print the design."""
    check_writable(options.output)
    check_not_in_cohort([options.output], cohort.root)
    found = population(cohort, tuple(dict.fromkeys(teams)), settings, source)
    report_findings(found.findings, None)
    units = found.units
    table = None if options.extend is None else read_plan(options.extend)
    if options.suspects or (table is not None and table.has_suspects):
        units = with_cohort_suspects(units, cohort, source)
    if table is None:
        plan = draw(units, options.items, options.seed)
    else:
        before, findings = table.plan(units)
        report_findings(findings, None)
        before = with_seed(before, units, options.seed)
        plan = extend(before, units, options.items)
    write_bytes(
        options.output,
        utf8(inert_cells(plan_frame(plan)).to_csv(index=False, lineterminator="\n")),
    )
    _print_design(plan, units)
    print(visible(f"plan of {counted(len(plan), 'item')} written to {options.output}"))
    return 0


def _print_design(plan: Plan, units: Units) -> None:
    strata = stratified(units, plan.level)
    rows = [
        (name, int(size), int(n), float(n / size))
        for name, size, n in zip(strata.names, strata.sizes, plan.drawn(strata), strict=True)
    ]
    print_table(("stratum", "all", "drawn", "probability"), rows)
    print("expected half-width of the 95 % intervals over all classes, if all items are reviewed:")
    widths = {
        (row.team, row.quantity): row.half_width
        for row in expected(plan, units)
        if row.class_name == ALL
    }
    print_table(
        ("team", *map(str, QUANTITIES)),
        [(team, *(widths[team, quantity] for quantity in QUANTITIES)) for team in plan.teams],
    )


def estimate_cohort(
    options: argparse.Namespace,
    cohort: Cohort,
    settings: EvaluationSettings,
    source: Source | None,
) -> int:
    """Write what the verdicts of a plan say about a cohort."""
    review, findings = _reviewed(options, cohort, settings, source)
    report_findings([*findings, *review.estimates.findings], ESTIMATES_RECORD)
    inputs = file_fingerprints([options.plan, options.verdicts], cohort.root)
    with tables_in(options.output, (ESTIMATES_TABLE, ESTIMATES_RECORD), cohort.root):
        write_estimates(options.output, review, findings, inputs)
    for sentence in sentences(review.estimates):
        print(visible(sentence))
    print(visible(f"tables written to {options.output}"))
    return 0


def reviewed(options: argparse.Namespace, cohort: Cohort, source: Source | None) -> ReviewedPlan:
    """Return a reviewed plan for a report, under the default settings of plans."""
    review, findings = _reviewed(options, cohort, EvaluationSettings(), source)
    told = [*findings, *review.estimates.findings]
    report_findings([f for f in told if f not in cohort.findings], None)
    return review


def _reviewed(
    options: argparse.Namespace,
    cohort: Cohort,
    settings: EvaluationSettings,
    source: Source | None,
) -> tuple[ReviewedPlan, list[Finding]]:
    """Read a plan and its verdicts, and estimate."""
    table = read_plan(options.plan)
    found = population(cohort, table.teams(cohort.team_names), settings, source)
    units = found.units
    if table.has_suspects:
        units = with_cohort_suspects(units, cohort, source)
    plan, of_plan = table.plan(units)
    if (seed := getattr(options, "seed", None)) is not None:
        plan = with_seed(plan, units, seed)
    answers, of_verdicts = read_verdicts(options.verdicts, plan)
    estimates = estimate(plan, units, answers)
    findings = [*found.findings, *of_plan, *of_verdicts]
    return ReviewedPlan(plan, units, estimates), findings
