"""The command ``slices``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.console import report_findings, report_nothing, share_bar, tables_in
from napari_panoptic.cli.inputs import metadata_from, one_team_from
from napari_panoptic.cli.options import (
    add_cohort,
    add_held,
    add_metadata,
    add_output,
    add_rules_of_objects,
)
from napari_panoptic.cli.parser import add_seed, positive
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.tables.covariates import read_covariates
from napari_panoptic.questions.engines.cohort_objects import CAUSES_OF
from napari_panoptic.questions.engines.cohort_slices import SliceRequest, cohort_slices
from napari_panoptic.questions.engines.slices import LEAST_PERMUTATIONS, SliceSearch
from napari_panoptic.report.nuclei.slices import (
    NOTHING,
    SLICES,
    SLICES_NAMES,
    search_sentence,
    slice_sentence,
    slices_record,
    slices_table,
)
from napari_panoptic.report.nuclei.tables import input_fingerprints
from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED
from napari_panoptic.values.vocabulary import Side

ABOUT = (
    "Search all slices of objects of at most two conditions, such as a class and a size, that "
    "fail more often than the other objects of the same patients, and write those that stand out "
    "to slices.csv, the best first. Exit status: 0 done, also where nothing stands out, 1 nothing "
    "could be evaluated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--team", required=True, metavar="T", help="team whose failures are searched"
    )
    add_output(parser)
    parser.add_argument(
        "--side",
        choices=[str(side) for side in Side],
        help="search among annotated objects, of which FN and misclassified ones fail, or among "
        f"predictions, of which FP fail (default: {Side.REFERENCE}, or the side that the cause "
        "belongs to)",
    )
    parser.add_argument(
        "--cause",
        choices=list(dict.fromkeys(cause for causes in CAUSES_OF.values() for cause in causes)),
        metavar="CAUSE",
        help="only failures of this cause count, such as missed, merged or misclassified",
    )
    parser.add_argument(
        "--covariates",
        type=Path,
        metavar="FILE",
        help="a table with the columns patient, region, side, id, and one for each covariate",
    )
    add_metadata(parser)
    add_rules_of_objects(parser)
    add_held(parser)
    parser.add_argument(
        "--permutations",
        type=_permutations,
        default=PERMUTATIONS,
        metavar="N",
        help=f"random assignments of failures within patients, at least {LEAST_PERMUTATIONS} "
        "(default: %(default)s)",
    )
    add_seed(parser, "seed of the random numbers", default=SEED, metavar="N")


def _permutations(text: str) -> int:
    """Read a number of permutations with which a slice can be significant."""
    if (number := positive(text)) < LEAST_PERMUTATIONS:
        raise argparse.ArgumentTypeError(
            f"must be at least {LEAST_PERMUTATIONS} for a slice to be significant, found {number}"
        )
    return number


def run(options: argparse.Namespace) -> int:
    """Write what the failures of a team have in common."""
    cohort, team, settings, source = one_team_from(options)
    side = _side_from(options.side, options.cause)
    metadata = metadata_from(options, cohort)
    table = None if options.covariates is None else read_covariates(options.covariates)
    request = SliceRequest(
        cohort, team, settings, source, side, options.cause, options.permutations, options.seed
    )
    with tables_in(options.output, SLICES_NAMES) as place, share_bar() as progress:
        searched = cohort_slices(
            request,
            metadata=metadata,
            table=table,
            held_up_to_px=options.held_up_to,
            jobs=None,
            progress=progress,
        )
        findings = tuple(dict.fromkeys((*cohort.findings, *searched.objects.findings)))
        is_written = not searched.objects.frame.empty
        if is_written:
            tables = {SLICES.file: slices_table(searched.found, side)}
            inputs = input_fingerprints(cohort, (team,))
            place.write(tables, slices_record(searched, options.protocol), findings, inputs)
    if not is_written:
        report_findings(findings, None)
        return report_nothing(cohort, (team,))
    _print_slices(searched.found, request)
    say(f"tables written to {options.output}")
    return 0


def _side_from(side: str | None, cause: str | None) -> Side:
    """Return the side to search: the given one, or the first that has the cause."""
    sides = [own for own in Side if cause is None or cause in CAUSES_OF[own]]
    if side is None:
        return sides[0]
    if Side(side) not in sides:
        raise SettingsError(
            f"--cause: objects of the {side} have no cause '{cause}'; expected one of "
            f"{english_list(CAUSES_OF[Side(side)], limit=99)}"
        )
    return Side(side)


def _print_slices(found: SliceSearch, request: SliceRequest) -> None:
    say(search_sentence(found, request.team, request.side, request.cause))
    for place, own in enumerate(found.slices, start=1):
        say(f"{place}. {slice_sentence(own, request.side, request.cause)}")
    if not found.slices:
        say(NOTHING)
