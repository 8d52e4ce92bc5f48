"""The command ``dump``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.console import tables_in
from napari_panoptic.cli.options import add_output
from napari_panoptic.cli.parser import add_seed
from napari_panoptic.cli.printing import say
from napari_panoptic.io.tables.challenge_dump import (
    MONUSAC_2020_TEST_ORGANS,
    read_dump,
    read_organs,
)
from napari_panoptic.report.dump.tables import TABLE_NAMES, DumpEvaluation, write_dump_tables
from napari_panoptic.report.dump.text import dump_text
from napari_panoptic.statistics.bootstrap import SEED
from napari_panoptic.statistics.friedman import MissingRule

ABOUT = (
    "Read the PQ per team, region and class that the organisers of MoNuSAC 2020 published as "
    "their notebook printed them, and show the leaderboard, the figures by organ and class, and "
    "whether teams differ over patients."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the organisers' output")
    parser.add_argument(
        "--metadata",
        type=Path,
        metavar="CSV",
        help="a table with the columns patient and organ "
        "(default: the organs of the MoNuSAC 2020 test set)",
    )
    files = "leaderboard.csv, by_organ.csv, patients.csv, pairs.csv and statistics.json"
    add_output(parser, meaning=f"write {files} there", required=False)
    parser.add_argument(
        "--missing",
        choices=[rule.value for rule in MissingRule],
        default=MissingRule.COMPLETE_CASES.value,
        help="how a missing figure of a team is treated: its patient is left out, or it counts as "
        "0 (default: %(default)s)",
    )
    meaning = "seed of the random numbers for the intervals"
    add_seed(parser, meaning, default=SEED, metavar="N")


def run(options: argparse.Namespace) -> int:
    """Print the figures of a dump, and write them as tables."""
    dump = read_dump(options.file)
    organs = MONUSAC_2020_TEST_ORGANS
    if options.metadata is not None:
        organs = read_organs(options.metadata, dump)
    evaluation = DumpEvaluation(dump, organs, MissingRule(options.missing), seed=options.seed)
    if options.output is not None:
        with tables_in(options.output, TABLE_NAMES):
            write_dump_tables(evaluation, options.output)
    for line in dump_text(evaluation).split("\n"):
        say(line)
    if options.output is not None:
        say(f"tables written to {options.output}")
    return 0
