"""Time the command ``evaluate`` on a whole cohort, and loading a region to look at.

``python -m benchmarks.cohort``; needs the shared cases beside this repository.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from os import wait4, waitstatus_to_exitcode
from pathlib import Path
from statistics import median

from napari_panoptic import EvaluationSettings
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"
REPEATS = 3
REGIONS = 6


def evaluated(cohort: Path) -> tuple[float, float]:
    """Run ``evaluate`` as a process of its own; seconds, and MiB at most."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(cohort)]
        start = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            [*command, "--output", output], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = wait4(process.pid, 0)
        process.returncode = waitstatus_to_exitcode(status)
        assert process.returncode == 0
        # On Linux in KiB.
        return time.perf_counter() - start, usage.ru_maxrss / 1024


def _milliseconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


def main() -> None:
    folders = [CASES / "monusac", CASES / "monusac-large"]
    if not all(folder.is_dir() for folder in folders):
        print("The shared cases are not beside this repository")
        return
    runs = [evaluated(folders[0]) for _ in range(REPEATS)]
    seconds, peak_mib = median(run[0] for run in runs), max(run[1] for run in runs)
    print(f"evaluate, 30 regions, 4 teams, distances: {seconds:.1f} s, {peak_mib:.0f} MiB at most")
    for folder in folders:
        cohort = open_cohort(folder)
        slowest = max(
            _milliseconds(partial(load_region, cohort, region.name, EvaluationSettings()))
            for region in cohort.regions[:REGIONS]
        )
        print(
            f"loading a region of {folder.name} with all teams: {slowest:.0f} ms "
            f"(slowest of {REGIONS})"
        )


if __name__ == "__main__":
    main()
