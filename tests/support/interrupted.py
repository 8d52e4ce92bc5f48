"""Runs that stop at a chosen region on any machine, and a cohort large enough for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.paths import REPOSITORY
from tests.support.small_cohort import REGIONS, write_cohort

_AT_REGION = """
import os, signal, sys

count, wanted, how = 0, int(sys.argv[1]), sys.argv[2]

def on_event(event, arguments):
    global count
    if event != "os.rename" or not os.fspath(arguments[1]).endswith(".part.json"):
        return
    count += 1
    if count == wanted:
        match how:
            case "kill -9":
                os.kill(os.getpid(), signal.SIGKILL)
            case "Ctrl-C":  # a terminal sends it to the workers as well
                os.killpg(0, signal.SIGINT)
            case "wait":
                print("waiting", flush=True)
                sys.stdin.read()

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
sys.addaudithook(on_event)
from napari_panoptic.cli.main import main
sys.exit(main(sys.argv[3:]))
"""


def stopped_at(region: int, how: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a command that stops itself just before it stores a region.

    Parameters
    ----------
    region
        Counted from 1.
    how
        ``kill -9``, ``Ctrl-C``, or ``wait`` to print a line and wait for input.
    arguments
        The command line.
    """
    return subprocess.Popen(
        [sys.executable, "-c", _AT_REGION, str(region), how, *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_large_cohort(folder: Path, n_regions: int) -> Path:
    """Write a cohort of many regions, ten per patient: links to the files of one region."""
    small, large = write_cohort(folder / "one"), folder / "many"
    source = REGIONS[1].name
    for number in range(n_regions):
        patient = f"TCGA-ZZ-{number // 10:04}-01Z-00-DX1"
        for path in small.rglob(f"{source}*"):
            if path.is_file() and "Submissions" not in path.parts:
                target = large / Path(*path.relative_to(small).parts[:-2]) / patient
                target.mkdir(parents=True, exist_ok=True)
                os.link(path, target / path.name.replace(source, f"{patient}_{number}"))
    return large
