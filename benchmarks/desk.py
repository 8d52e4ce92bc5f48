"""Measure how fast the desk's object table sorts, filters and selects; print medians.

Needs a display: ``xvfb-run -a python -m benchmarks.desk`` where there is none. The
times are those of the main thread, with the view's own work and one repaint of it.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication

from benchmarks.cases import CLASSES
from napari_panoptic.display.behind import behind_cell
from napari_panoptic.display.object_rows import COLUMNS, ObjectFilter, WorstFirst
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Side, Status
from napari_panoptic.viewer.panels.objects.panel import ObjectTable

OBJECTS = 100_000
CALLS = 15
LIMIT_MS = 20.0
_CAUSES = {
    Side.REFERENCE: (Cause.MISSED, Cause.SPLIT, Cause.MERGED, Cause.DISPLACED),
    Side.PREDICTION: (Cause.SPURIOUS, Cause.FRAGMENT, Cause.MERGER, Cause.DUPLICATE),
}


def synthetic_outcomes(objects: int, *, seed: int = 1) -> Outcomes:
    """Make outcomes of as many objects, half on either side; four of five match."""
    rng = np.random.default_rng(seed)
    n = objects // 2
    matched = rng.random(n) < 0.8
    classes = rng.integers(1, len(CLASSES) + 1, n).astype(np.int16)
    across = np.where(
        rng.random(n) < 0.9, classes, rng.integers(1, len(CLASSES) + 1, n).astype(np.int16)
    )
    iou = np.where(matched, rng.uniform(0.5, 1, n), rng.uniform(0, 0.5, n))
    iou[~matched & (rng.random(n) < 0.5)] = 0.0
    shared = {
        "partner": np.where(matched, np.arange(n), NO_PARTNER).astype(np.int32),
        "iou": iou,
        "hausdorff_px": np.where(matched, rng.exponential(4, n), np.nan),
    }
    same = classes == across
    return Outcomes(
        reference=_side(Side.REFERENCE, classes, matched, same, shared, rng),
        prediction=_side(Side.PREDICTION, across, matched, same, shared, rng),
        class_names=CLASSES,
        mpp=0.25,
    )


def _side(
    side: Side,
    classes: NDArray[np.int16],
    matched: NDArray[np.bool_],
    same: NDArray[np.bool_],
    shared: dict[str, NDArray[np.generic]],
    rng: np.random.Generator,
) -> SideOutcomes:
    n = len(classes)
    unmatched = STATUS_CODE[Status.FN if side is Side.REFERENCE else Status.FP]
    found = np.where(same, STATUS_CODE[Status.TP], STATUS_CODE[Status.MISCLASSIFIED])
    causes = rng.choice([CAUSE_CODE[cause] for cause in _CAUSES[side]], n)
    corner = rng.integers(0, 30_000, (n, 2))
    return SideOutcomes(
        side=side,
        ids=np.arange(1, n + 1),
        class_index=classes,
        status=np.where(matched, found, unmatched).astype(np.int8),
        cause=np.where(matched, CAUSE_CODE[Cause.NONE], causes).astype(np.int8),
        hausdorff95_px=shared["hausdorff_px"] * 0.8,  # type: ignore[operator]
        area_px=rng.integers(80, 3000, n),
        centroid_yx_px=corner + 12.5,
        bbox=np.concatenate([corner, corner + 25], axis=1).astype(np.int32),
        score=np.full(n, np.nan),
        **shared,  # type: ignore[arg-type]
    )


def timed(call: Callable[[int], object]) -> tuple[float, float]:
    """Give the time of a first call and the median of further ones, in ms, repaint included."""
    times = []
    for number in range(CALLS + 1):
        start = time.perf_counter()
        call(number)
        QApplication.processEvents()
        times.append(1000 * (time.perf_counter() - start))
    return times[0], median(times[1:])


def table_rows(objects: int) -> list[tuple[str, float, float]]:
    """Measure everything that somebody does to the table."""
    table = ObjectTable()
    table.resize(430, 700)
    table.show()
    outcomes = synthetic_outcomes(objects)
    rows = [("show other outcomes", *timed(lambda _number: table.show_outcomes(outcomes)))]
    for number, column in enumerate(COLUMNS):
        rows.append((f"sort by {column.title}", *timed(_sorting(table, number))))
    rows += [(f"worst first: {by}", *timed(_worst_first(table, by))) for by in WorstFirst]
    failures = ObjectFilter(statuses=frozenset({"FN", "FP", "misclassified"}))
    for name, wanted in (
        ("filter: failures, and back", failures),
        ("filter: a cell of the confusion matrix", behind_cell(CLASSES[0], CLASSES[1])),
    ):
        rows.append((name, *timed(_filtering(table, wanted))))
    rng = np.random.default_rng(2)
    picks = rng.integers(0, objects // 2, CALLS + 1)
    rows.append(
        (
            "select and scroll to an object",
            *timed(lambda number: table.select((Side.REFERENCE, int(picks[number])))),
        )
    )
    rows.append(("failures in their order", *timed(lambda _number: table.model.failures())))
    table.close()
    return rows


def _sorting(table: ObjectTable, column: int) -> Callable[[int], None]:
    orders = (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder)
    return lambda number: table.view.sortByColumn(column, orders[number % 2])


def _worst_first(table: ObjectTable, worst: WorstFirst) -> Callable[[int], None]:
    return lambda _number: table.put_worst_first(worst)


def _filtering(table: ObjectTable, wanted: ObjectFilter) -> Callable[[int], None]:
    return lambda number: table.set_filter(ObjectFilter() if number % 2 else wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    options = parser.parse_args()
    application = QApplication.instance() or QApplication([])
    print(f"Object table, {options.objects} objects: first call and median of {CALLS}, ms")
    for name, first, milliseconds in table_rows(options.objects):
        mark = "" if milliseconds <= LIMIT_MS else f"  above {LIMIT_MS:g}"
        print(f"  {name:42} {first:8.1f} {milliseconds:8.1f}{mark}")
    application.quit()


if __name__ == "__main__":
    main()
