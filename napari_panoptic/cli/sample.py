"""The command ``sample``."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.printing import say
from napari_panoptic.samples.write import write_sample
from napari_panoptic.values.cohort import Task

ABOUT = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="created if it is missing")
    parser.add_argument(
        "--task",
        choices=[str(task) for task in Task],
        default=str(Task.NUCLEI),
        help="task of the sample (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Write a sample cohort."""
    folder = write_sample(options.folder, Task(options.task))
    say(f"sample cohort written to {folder}")
    say(f"look at it with: napari-panoptic view {folder}")
    return 0
