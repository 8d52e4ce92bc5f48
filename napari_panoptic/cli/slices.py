"""The command ``slices``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.options import (
    add_cohort,
    add_held,
    add_output,
    add_rules_of_objects,
)
from napari_panoptic.cli.parser import positive, seed
from napari_panoptic.cli.tasks import run_for_task
from napari_panoptic.nuclei.values.vocabulary import Side

ABOUT = (
    "Search all slices of objects of at most two conditions, such as a class and a size, that "
    "fail more often than the other objects of the same patients, and write those that stand out "
    "to slices.csv, the best first. Exit status: 0 done, also where nothing stands out, 1 nothing "
    "could be evaluated, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from napari_panoptic.io.tables.metadata import METADATA_FILE
    from napari_panoptic.nuclei.explain.cohort_objects import CAUSES_OF
    from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED

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
    parser.add_argument(
        "--metadata",
        type=Path,
        metavar="FILE",
        help="a table with a column patient and others, such as organ (default: "
        f"{METADATA_FILE} in the cohort's folder, if it is there)",
    )
    add_rules_of_objects(parser)
    add_held(parser)
    parser.add_argument(
        "--permutations",
        type=positive,
        default=PERMUTATIONS,
        metavar="N",
        help="random assignments of failures within patients (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=seed,
        default=SEED,
        metavar="N",
        help="seed of the random numbers (default: %(default)s)",
    )


run = run_for_task
