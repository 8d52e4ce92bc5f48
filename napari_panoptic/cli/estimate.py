"""The command ``estimate``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from napari_panoptic.cli.console import report_findings, tables_in
from napari_panoptic.cli.inputs import nuclei_from, reading_from
from napari_panoptic.cli.options import add_cohort, add_output, add_reading
from napari_panoptic.cli.parser import add_seed
from napari_panoptic.cli.printing import say
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.report.nuclei.review import (
    ESTIMATES_RECORD,
    ReviewedPlan,
    write_estimates,
)
from napari_panoptic.review.plan.conclusions import sentences
from napari_panoptic.review.plan.design import with_seed
from napari_panoptic.review.plan.estimates import estimate
from napari_panoptic.review.plan.suspects import with_cohort_suspects
from napari_panoptic.review.plan.tables import ESTIMATES, read_plan, read_verdicts
from napari_panoptic.review.plan.units import population
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.reading import Reading

ABOUT = (
    "Read the verdicts on the items of a plan, and write estimates.csv: the share of wrong "
    "annotations, and each team's precision, recall, F1 and PQ if the annotation were right, with "
    "95 % intervals; and estimates.json with the design. See docs/tasks/review-plan.md. Exit "
    "status: 0 done, 1 nothing could be estimated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--plan", type=Path, required=True, metavar="CSV", help="a table written by plan"
    )
    parser.add_argument(
        "--verdicts",
        type=Path,
        required=True,
        metavar="CSV",
        help="a table with the columns item, verdict (annotation-right, prediction-right, "
        "both-wrong or cannot-tell) and count (of background items: nuclei without an outline)",
    )
    add_output(parser)
    meaning = "the seed of the plan, to be checked and stated in estimates.json"
    add_seed(parser, meaning, default=None)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Write what the verdicts of a plan say about a cohort."""
    cohort = nuclei_from(options)
    reading = reading_from(options, cohort, cohort.team_names)
    review, findings = _reviewed(options, cohort, reading)
    report_findings([*findings, *review.estimates.findings], ESTIMATES_RECORD)
    inputs = file_fingerprints([options.plan, options.verdicts], cohort.root)
    with tables_in(options.output, (ESTIMATES.file, ESTIMATES_RECORD)):
        write_estimates(options.output, review, findings, inputs)
    for sentence in sentences(review.estimates):
        say(sentence)
    say(f"tables written to {options.output}")
    return 0


def reviewed(options: argparse.Namespace, cohort: Cohort, source: Source | None) -> ReviewedPlan:
    """Return a reviewed plan for a report, under the default settings of plans."""
    review, findings = _reviewed(options, cohort, Reading(source=source))
    all_findings = [*findings, *review.estimates.findings]
    report_findings([f for f in all_findings if f not in cohort.findings], None)
    return review


def _reviewed(
    options: argparse.Namespace,
    cohort: Cohort,
    reading: Reading,
) -> tuple[ReviewedPlan, list[Finding]]:
    """Read a plan and its verdicts, and estimate."""
    table = read_plan(options.plan)
    found = population(cohort, replace(reading, teams=tuple(table.teams(cohort.team_names))))
    units = found.units
    if table.has_suspects:
        units = with_cohort_suspects(units, cohort, reading.source)
    plan, of_plan = table.plan(units)
    if (wanted := getattr(options, "seed", None)) is not None:
        plan = with_seed(plan, units, wanted)
    answers, of_verdicts = read_verdicts(options.verdicts, plan)
    estimates = estimate(plan, units, answers)
    findings = [*found.findings, *of_plan, *of_verdicts]
    return ReviewedPlan(plan, units, estimates), findings
