"""Measure matching, Hausdorff distance and restoration beside peers; print medians and ratios.

Run by ``make bench``. Every contender gets the same arrays in the same process,
is called once to warm up, and then several times; its result is compared with
ours.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks import contenders as c
from benchmarks.cases import LARGE, MEDIUM, SMALL, Labels, Size, class_image, label_pair
from napari_panoptic import EvaluationSettings
from napari_panoptic.io.cohort import open_cohort
from napari_panoptic.io.colour_coded import ColourCodedMask
from napari_panoptic.snapshots import load_region

T = TypeVar("T")
Row = tuple[str, float, str]
_BUDGET_S = 2.0
_MOST_CALLS = 15
_FEWEST_CALLS = 3


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Give the median time in ms of several calls after a first one, and the result."""
    result = call()
    times: list[float] = []
    while len(times) < _FEWEST_CALLS or (len(times) < _MOST_CALLS and sum(times) < _BUDGET_S):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return 1000 * median(times), result


def report(title: str, rows: Iterable[Row]) -> None:
    """Print a table; the ratio is to the second row, which is ours."""
    rows = list(rows)
    ours = rows[1][1]
    print(f"\n{title}")
    print(f"  {'':36} {'ms':>9} {'x ours':>8}   result")
    for name, milliseconds, verdict in rows:
        print(f"  {name:36} {milliseconds:9.2f} {milliseconds / ours:8.2f}   {verdict}")


def limit(*arrays: NDArray[np.generic]) -> Row:
    """Time reading the arrays once: nothing can be faster."""
    return ("LIMIT: reading the input once", timed(lambda: [a.max() for a in arrays])[0], "")


def matching(size: Size) -> list[Row]:
    """Measure matching at IoU > 0.5 with the list of pairs."""
    reference, prediction = label_pair(size)
    pair = c.trusted_pair(reference, prediction)
    ours_ms, _ = timed(lambda: c.match_pair(pair))
    arrays_ms, pairs = timed(lambda: c.match_here(reference, prediction))
    rows = [
        limit(reference, prediction),
        ("napari-panoptic", ours_ms, f"{len(pairs)} pairs"),
        ("napari-panoptic, checking raw arrays", arrays_ms, f"{len(pairs)} pairs"),
    ]
    for name, matcher in c.MATCHERS.items():
        if size is LARGE and name in c.DENSE:
            continue
        milliseconds, theirs = timed(lambda matcher=matcher: matcher(reference, prediction))
        rows.append((name, milliseconds, _same_pairs(pairs, theirs)))
    return rows


def _same_pairs(ours: c.Pairs, theirs: c.Pairs) -> str:
    different = {tuple(p) for p in ours.tolist()} ^ {tuple(p) for p in theirs.tolist()}
    return "same" if not different else f"{len(different)} pairs differ"


def hausdorff() -> list[Row]:
    """Measure contour-to-contour Hausdorff distances of all matched pairs of M."""
    reference, prediction = label_pair(MEDIUM)
    pair = c.trusted_pair(reference, prediction)
    pairs = c.match_here(reference, prediction)
    rows = np.stack(
        [
            np.searchsorted(pair.reference.ids, pairs[:, 0]),
            np.searchsorted(pair.prediction.ids, pairs[:, 1]),
        ],
        axis=1,
    )
    ours_ms, ours = timed(lambda: c.distances_here(pair, rows))
    table = [
        limit(reference, prediction),
        ("napari-panoptic", ours_ms, f"{len(pairs)} pairs"),
    ]
    for name, measure in c.DISTANCES.items():
        milliseconds, theirs = timed(lambda measure=measure: measure(reference, prediction, pairs))
        different = int((~np.isclose(ours, theirs, rtol=1e-12)).sum())
        table.append((name, milliseconds, f"{different} differ" if different else "same"))
    return table


def restoration() -> list[Row]:
    """Measure border-dilated restoration of M, from class numbers to labels."""
    classes = class_image(label_pair(MEDIUM)[0])
    mask = ColourCodedMask(classes, Path("in-memory"))
    ours_ms, ours = timed(lambda: c.restore_here(mask))
    table = [limit(classes), ("napari-panoptic", ours_ms, f"{int(ours.max())} objects")]
    for name, restorer in c.RESTORERS.items():
        milliseconds, theirs = timed(lambda restorer=restorer: restorer(classes))
        table.append((name, milliseconds, _same_objects(ours, theirs)))
    return table


def _same_objects(ours: Labels, theirs: Labels) -> str:
    """Compare two label images without regard to the numbers themselves."""
    partner = np.zeros(int(ours.max()) + 1, np.int32)
    partner[ours.ravel()] = theirs.ravel()
    partner[0] = 0
    different = int((partner[ours] != theirs).sum())
    return "same" if not different else f"{different} px differ"


def whole_cohort() -> None:
    """Time the command ``evaluate`` as a process of its own, and loading a region to look at."""
    cases = Path(__file__).resolve().parents[2] / "shared" / "cases"
    folders = [cases / "monusac", cases / "monusac-large"]
    if not all(folder.is_dir() for folder in folders):
        print("\nWhole cohorts: left out, the shared cases are not beside this repository")
        return
    print("\nWhole cohorts, distances included")
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "napari_panoptic.cli", "evaluate"]
        call = [*command, str(folders[0]), "--output", output]
        milliseconds, _ = timed(lambda: subprocess.run(call, check=True, capture_output=True))  # noqa: S603
    # Of all child processes so far the largest: on Linux in KiB.
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  evaluate, 30 regions, 4 teams: {milliseconds / 1000:.1f} s, {peak_mib:.0f} MiB")
    for folder in folders:
        cohort = open_cohort(folder)
        slowest = max(
            timed(lambda name=region.name: load_region(cohort, name, EvaluationSettings()))[0]  # noqa: B023
            for region in cohort.regions[:6]
        )
        print(
            f"  loading a region of {folder.name} with all teams: {slowest:.0f} ms (slowest of 6)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest images out")
    options = parser.parse_args()
    for size in (SMALL, MEDIUM) if options.quick else (SMALL, MEDIUM, LARGE):
        title = f"Matching {size.name}: {size.side} x {size.side} px, {size.objects} objects"
        report(title, matching(size))
    report("Hausdorff distance of all matched pairs of M", hausdorff())
    report("Border-dilated restoration of M", restoration())
    whole_cohort()


if __name__ == "__main__":
    main()
