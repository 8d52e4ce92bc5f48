"""The pixels near the edge of an object, against a loop over the pixels of the element."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.kernels.counts import blank_rows, count_window
from napari_panoptic.kernels.zone import UNCERTAIN, mark_zone
from tests.support.examples import seeds

ALL = np.zeros(0, np.uint8)
NOWHERE = np.zeros((0, 0), np.uint8)


def marked(labels: NDArray[np.int32], reach: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Look at every pixel of the element around every pixel."""
    height, width = labels.shape
    middle, found = len(reach) // 2, np.zeros(labels.shape, bool)
    for y, x in np.ndindex(labels.shape):
        for dy, to_side in enumerate(reach.tolist(), start=-middle):
            for dx in range(-to_side, to_side + 1):
                is_inside = 0 <= y + dy < height and 0 <= x + dx < width
                found[y, x] |= is_inside and labels[y + dy, x + dx] != labels[y, x]
    return found


@pytest.mark.parametrize("seed", seeds(120))
def test_marks_what_the_element_reaches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = (int(n) for n in rng.integers(1, 16, 2))
    blocks = rng.integers(0, 4, (height // 3 + 1, width // 3 + 1))
    labels = np.kron(blocks, np.ones((3, 3), int))[:height, :width].astype(np.int32)
    void = rng.random(labels.shape) < 0.1
    kept = np.append(1, rng.random(3) < 0.7).astype(np.uint8)
    n = int(rng.integers(0, 5))
    half = rng.integers(0, n + 1, n + 1)
    reach = np.concatenate([half[:0:-1], half]).astype(np.int32)
    left = np.where(void | (kept[labels] == 0), 0, labels)
    codes, cut = void.astype(np.uint8), int(rng.integers(0, height + 1))
    for rows in ((0, cut), (cut, height)):
        mark_zone(labels, void.view(np.uint8), kept, reach, rows, codes[slice(*rows)])
    np.testing.assert_array_equal(codes, void + UNCERTAIN * marked(left, reach))


@pytest.mark.parametrize("seed", seeds(40))
def test_only_the_zone_is_counted(seed: int) -> None:
    """As if the rest were background."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 40, 2))
    reference, prediction = (rng.integers(0, 4, shape).astype(np.int32) for _ in range(2))
    codes = rng.choice(np.array([0, 1, 2, 3], np.uint8), shape)
    found, expected = ([blank_rows(4), blank_rows(4)] for _ in range(2))
    runs = count_window(reference, prediction, codes, (0, 0), shape[1], 1, *found, zone_only=True)
    sides = [np.where(codes >= UNCERTAIN, side, 0) for side in (reference, prediction)]
    void = (codes == 3).view(np.uint8)
    wanted = count_window(*sides, void, (0, 0), shape[1], 1, *expected)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own[1:], other[1:])
    for column in (2, 3):
        sums = [np.bincount(4 * r[:, 0] + r[:, 1], r[:, column], 16) for r in (runs, wanted)]
        np.testing.assert_array_equal(*sums)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kept": np.ones(2, np.uint8)}, "numbers that no object has"),
        ({"reach": np.zeros(2, np.int32)}, "no middle"),
        ({"reach": np.array([0, -1, 0], np.int32)}, "no middle"),
        ({"reach": np.array([0, 300, 0], np.int32)}, "too wide"),
        ({"rows": (0, 9)}, "beyond the image"),
        ({"codes": np.zeros((2, 2), np.uint8)}, "differ in shape"),
        ({"void": np.zeros((1, 1), np.uint8)}, "another shape"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], said: str) -> None:
    given = {
        "labels": np.full((4, 4), 3, np.int32),
        "void": NOWHERE,
        "kept": ALL,
        "reach": np.array([0, 1, 0], np.int32),
        "rows": (0, 4),
        "codes": np.zeros((4, 4), np.uint8),
    }
    mark_zone(**given)
    with pytest.raises(ValueError, match=said):
        mark_zone(**{**given, **changes})


def test_there_must_be_a_zone_to_count() -> None:
    image, rows = np.zeros((2, 2), np.int32), blank_rows(2)
    with pytest.raises(ValueError, match="no zone"):
        count_window(image, image, NOWHERE, (0, 0), 2, 1, rows, rows, zone_only=True)
