import numpy as np
import pytest

from napari_panoptic.display.failure_cells import (
    FEW_ALPHA,
    FEW_OBJECTS,
    SHARE_ALPHAS,
    SHARE_COLOURS,
    SHARES,
    CellCount,
    FailureCells,
    cell_px_at,
    share_texts,
)
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status
from tests.support.slides import random_pair

SHAPE = (700, 1100)


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return evaluate(random_pair(SHAPE, 400)).outcomes


@pytest.mark.parametrize("cell_px", [64, 100, 4096])
def test_failures_are_counted_in_squares(outcomes: Outcomes, cell_px: int) -> None:
    cells = FailureCells.count(outcomes, SHAPE, cell_px)
    rows, columns = (max(round(edge / cell_px), 1) for edge in SHAPE)
    assert cells.counts.shape[1:] == (rows, columns)
    assert cells.size_yx_px == (SHAPE[0] / rows, SHAPE[1] / columns)
    expected: dict[tuple[int, int], list[int]] = {}
    for side in Side:
        own = outcomes.side(side)
        for row in range(len(own)):
            status = STATUSES[own.status[row]]
            is_counted = status is Status.FP or (
                side is Side.REFERENCE and status is not Status.IGNORED
            )
            if not is_counted:
                continue
            y, x = (int(value) for value in own.centroid_yx_px[row])
            y, x = y * rows // SHAPE[0], x * columns // SHAPE[1]
            found = expected.setdefault((y, x), [0, 0, 0, 0])
            found[0] += 1
            for place, failure in enumerate((Status.FN, Status.FP, Status.MISCLASSIFIED), 1):
                found[place] += status is failure
    for y in range(cells.counts.shape[1]):
        for x in range(cells.counts.shape[2]):
            there = CellCount(*expected.get((y, x), [0, 0, 0, 0]))
            height, width = cells.size_yx_px
            assert cells.at(int((y + 0.5) * height), int((x + 0.5) * width)) == there
    assert cells.at(-1, 0) is None
    assert cells.at(0, SHAPE[1]) is None
    # Each pair once: the same as all that is to be found in the confusion matrix.
    own = outcomes.reference
    total = np.count_nonzero(own.status != STATUS_CODE[Status.IGNORED])
    total += outcomes.prediction.count(Status.FP)
    assert cells.counts[0].sum() == total


def test_squares_are_coloured_by_the_share_that_failed() -> None:
    objects = np.array([[0, 20, 20, 20, 20, 20, 20, 20, 4]])
    failures = np.array([[0, 0, 1, 2, 4, 8, 12, 20, 4]])
    zero = np.zeros_like(objects)
    cells = FailureCells(
        (64, 9 * 64), 64, np.stack([objects, failures, zero, zero]).astype(np.int32)
    )
    rgba = cells.picture()[0]
    assert not rgba[:2].any()
    # The edges of the shares belong to the upper colour, as the legend says.
    for place, colour in zip(range(2, 8), (0, 1, 2, 3, 4, 4), strict=True):
        assert tuple(rgba[place, :3]) == SHARE_COLOURS[colour]
        assert rgba[place, 3] == round(255 * SHARE_ALPHAS[colour])
    assert objects[0, 8] < FEW_OBJECTS
    assert rgba[8, 3] == round(255 * SHARE_ALPHAS[4] * FEW_ALPHA)


def test_squares_in_words() -> None:
    assert CellCount(0, 0, 0, 0).text == "no objects"
    assert CellCount(1, 0, 0, 0).text == "1 object, no failures"
    assert CellCount(31, 5, 6, 1).text == "31 objects, 12 failures (FN 5, FP 6, misclassified 1)"
    assert CellCount(1, 1, 0, 0).text == "1 object, 1 failure (FN 1)"
    assert share_texts() == ["<10", "10–20", "20–40", "40–60", "≥60"]
    assert len(share_texts()) == len(SHARES) + 1 == len(SHARE_COLOURS) == len(SHARE_ALPHAS)


def test_squares_follow_the_zoom() -> None:
    edges = [cell_px_at(zoom) for zoom in (0.02, 0.03, 0.06, 0.12, 0.3, 1.0)]
    assert edges == [512, 512, 256, 128, 64, 64]
