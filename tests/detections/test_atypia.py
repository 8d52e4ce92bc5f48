"""Scores of atypia."""

import numpy as np
import pytest

from napari_panoptic.detections.atypia import atypia_points, summarise_atypia


@pytest.mark.parametrize("reference", [1, 2, 3])
@pytest.mark.parametrize("score", [1, 2, 3, None])
def test_points_go_by_the_difference(reference, score):
    expected = 0 if score is None else {0: 1, 1: 0, 2: -1}[abs(reference - score)]
    assert atypia_points(reference, score) == expected


def test_frames_are_summed_up():
    pairs = [(1, 1), (1, 3), (2, 3), (3, 3), (3, None), (2, None)]
    found = summarise_atypia(pairs)
    assert found.points == 1 - 1 + 0 + 1 + 0 + 0
    expected = np.zeros((3, 4), int)
    for reference, score in pairs:
        expected[reference - 1, 3 if score is None else score - 1] += 1
    assert np.array_equal(found.confusion, expected)
    assert (found.n_frames, found.n_right, found.n_not_evaluated) == (6, 2, 2)


def test_no_frames_are_no_points():
    found = summarise_atypia([])
    assert (found.points, found.n_frames) == (0, 0)
