"""The command ``demo``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from napari_panoptic.cli.options import add_screenshot
from napari_panoptic.cli.view import open_window
from napari_panoptic.samples.write import write_sample

ABOUT = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--cohort",
        type=Path,
        metavar="FOLDER",
        help="write the sample cohort there and keep it (default: a temporary folder)",
    )
    add_screenshot(parser)


def run(options: argparse.Namespace) -> int:
    """Write the sample cohort, and open it."""
    if options.cohort is not None:
        return open_window(write_sample(options.cohort), screenshot=options.screenshot)
    with tempfile.TemporaryDirectory(prefix="napari-panoptic-") as folder:
        return open_window(write_sample(Path(folder)), screenshot=options.screenshot)
