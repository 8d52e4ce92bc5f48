"""Measure how long the evaluation takes to follow a stroke of the brush, without a window.

``python -m benchmarks.live``, with ``--distances`` to measure outlines too. On a
seeded pair of 1500 x 1500 and one of 8192 x 8192 px, 200 strokes of about 400 px
enlarge an object, erase, or draw a new one; some are undone at once. Two
stages, the second including the first:

counts
    The pixels are set, and areas, boxes and overlaps are counted again.
all figures
    Outcomes of all objects, the confusion matrix, and the figures of the region and of each
    class.
"""

import argparse
import time
from collections.abc import Iterator
from statistics import median, quantiles

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import CLASSES, LARGE, MEDIUM, Labels, Size, label_pair
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

STROKES = 200
RADIUS_PX = 11
LIMITS_MS = {"counts": 0.2, "counts + all figures": 3.0}

Stroke = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | int]


def live_pair(size: Size) -> tuple[EditedPair, Labels]:
    """Make a pair under edit whose objects have random classes, and its prediction."""
    reference, prediction = label_pair(size)
    rng = np.random.default_rng(3)
    sides = [
        LabelImage.from_array(
            labels, dict(enumerate(rng.choice(CLASSES, size.objects + 1))), CLASSES
        )
        for labels in (reference, prediction)
    ]
    return EditedPair(LabelPair(*sides)), prediction


def strokes(labels: Labels) -> Iterator[Stroke]:
    """Draw dabs of the brush all over an image, which follows; every tenth is undone."""
    rng = np.random.default_rng(4)
    dab_y, dab_x = np.nonzero(np.hypot(*np.mgrid[-RADIUS_PX:12, -RADIUS_PX:12]) <= RADIUS_PX + 0.3)
    top = int(labels.max())
    for number in range(STROKES + 10):
        y, x = rng.integers(30, labels.shape[0] - 60, 2)
        near = labels[y - 25 : y + 25, x - 25 : x + 25]
        found = near[near > 0]
        id_ = int(found[0]) if number % 3 and len(found) else (0 if number % 2 else top + number)
        before = labels[y + dab_y, x + dab_x].astype(np.int64)
        labels[y + dab_y, x + dab_x] = id_
        yield y + dab_y, x + dab_x, id_
        if number % 10 == 9:
            labels[y + dab_y, x + dab_x] = before
            yield y + dab_y, x + dab_x, before


def measure(size: Size, settings: EvaluationSettings) -> dict[str, list[float]]:
    """Return ms per stage and stroke."""
    live, prediction = live_pair(size)
    live.evaluate(settings)
    times: dict[str, list[float]] = {stage: [] for stage in LIMITS_MS}
    for y, x, ids in strokes(prediction.copy()):
        classes = {ids: CLASSES[0]} if isinstance(ids, int) else {}
        marks = [time.perf_counter()]
        live.set_pixels(Side.PREDICTION, y, x, ids, classes=classes)
        marks.append(time.perf_counter())
        evaluation = live.evaluate(settings)
        _ = evaluation.metrics, evaluation.class_figures
        marks.append(time.perf_counter())
        for stage, mark in zip(LIMITS_MS, marks[1:], strict=True):
            times[stage].append(1000 * (mark - marks[0]))
    return {stage: found[10:] for stage, found in times.items()}  # warm by then


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="leave the large image out")
    parser.add_argument("--distances", action="store_true", help="measure outlines, too")
    options = parser.parse_args()
    settings = EvaluationSettings(distances=options.distances)
    for size in (MEDIUM,) if options.quick else (MEDIUM, LARGE):
        print(f"\n{size.name}: {size.side} x {size.side} px, {size.objects} objects: ms per stroke")
        for stage, times in measure(size, settings).items():
            above = "" if median(times) <= LIMITS_MS[stage] else f"  above {LIMITS_MS[stage]:g}"
            p95 = quantiles(times, n=20)[-1]
            print(f"  {stage:26} median {median(times):7.3f}   p95 {p95:7.3f}{above}")


if __name__ == "__main__":
    main()
