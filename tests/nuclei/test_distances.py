"""Contours and distances against SciPy and NumPy, the slow way, and the cache of distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial.distance import cdist

from napari_panoptic import EvaluationSettings
from napari_panoptic.nuclei import distances
from napari_panoptic.nuclei.ambiguity import judge
from napari_panoptic.nuclei.distances import (
    Contours,
    contour_distances,
    contours,
    contours_in_boxes,
    pair_distances,
)
from napari_panoptic.nuclei.evaluate import evaluate, evaluate_again
from napari_panoptic.nuclei.overlap import overlap_table
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import AmbiguousPolicy, Matching, Outlines
from tests.nuclei.test_edits import assert_same, pair_of
from tests.support.examples import examples, seeds
from tests.support.label_cases import random_pair

Rows = NDArray[np.int32]


def blocks(seed: int) -> NDArray[np.int32]:
    """Draw touching objects of several pieces, up to the image's edges."""
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 45, 2)
    small = rng.integers(0, rng.integers(2, 7), (height // 3 + 1, width // 4 + 1))
    index = np.repeat(np.repeat(small, 3, 0), 4, 1)[:height, :width]
    return np.where(rng.random(index.shape) < 0.05, 0, index).astype(np.int32)


def boxes_of(index: NDArray[np.int32], rows: Rows) -> NDArray[np.int32]:
    found = ndimage.find_objects(index)
    return np.array(
        [(y.start, x.start, y.stop, x.stop) for y, x in (found[row] for row in rows)], np.int32
    ).reshape(-1, 4)


def slow_contour(inside: NDArray[np.bool_]) -> NDArray[np.intp]:
    return np.argwhere(inside & ~ndimage.binary_erosion(inside, border_value=1))


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("seed", seeds(40))
def test_contours_are_objects_minus_their_erosion(seed: int, is_cut: bool) -> None:
    index = blocks(seed)
    rng = np.random.default_rng(seed)
    void = rng.random(index.shape) < 0.1 if is_cut else None
    rows = np.unique(index[index > 0]).astype(np.int32) - np.int32(1)
    some = rng.permutation(rows)[: len(rows) // 2 + 1]
    at_once = contours(index, int(index.max()), without=void)
    in_boxes = contours_in_boxes(index, some, boxes_of(index, some), without=void)
    for row in rows.tolist():
        inside = index == row + 1
        expected = slow_contour(inside if void is None else inside & ~void)
        np.testing.assert_array_equal(at_once.of(row), expected)
        for place in np.flatnonzero(some == row).tolist():
            np.testing.assert_array_equal(in_boxes.of(place), expected)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (5, 6), (3, 17)])
def test_an_object_as_large_as_the_image_has_no_contour(shape: tuple[int, int]) -> None:
    box = np.array([[0, 0, *shape]], np.int32)
    found = contours_in_boxes(np.ones(shape, np.int32), np.zeros(1, np.int32), box)
    assert len(found.yx) == 0


def one_contour(points: list[tuple[int, int]]) -> Contours:
    yx = np.array(sorted(set(points)), np.int32).reshape(-1, 2)
    return Contours(np.array([0, 0, len(yx)], np.int64), yx)


def both_ways(reach: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    coordinate = st.integers(0, reach)
    return st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=45)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from([3, 40, 32767, 2_000_000]).flatmap(lambda r: st.tuples(*[both_ways(r)] * 2)))
def test_distances_are_those_of_all_pairs_of_pixels(
    points: tuple[list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    a, b = one_contour(points[0]), one_contour(points[1])
    first = np.zeros(1, np.int32)
    found = contour_distances(a, b, first, first)
    table = cdist(a.yx, b.yx)
    there, back = table.min(axis=1), table.min(axis=0)
    assert found.hausdorff_px[0] == max(there.max(), back.max())
    expected = max(np.percentile(there, 95), np.percentile(back, 95))
    assert found.hausdorff95_px[0] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("apart", [32767, 32768, 50_000])
def test_squares_of_what_is_far_apart(apart: int) -> None:
    """The first is the last whose square, both ways, an int32 holds."""
    first = np.zeros(1, np.int32)
    a, b = one_contour([(0, 0)]), one_contour([(apart, apart)])
    found = contour_distances(a, b, first, first)
    assert found.hausdorff_px[0] == np.sqrt(2 * apart**2)


def distances_of(
    pair: LabelPair, rows: Rows, columns: Rows, policy: AmbiguousPolicy, outlines: Outlines
) -> NDArray[np.float64]:
    table = overlap_table(pair)
    judged = judge(table, EvaluationSettings(ambiguous=policy))
    found = pair_distances(pair, table, judged, rows, columns, outlines)
    return np.stack([found.hausdorff_px, found.hausdorff95_px])


def noise_pair(rng: np.random.Generator, n: int) -> LabelPair:
    """Strew objects over the image: the box of each is about all of it."""
    names = ("A",)
    images = [rng.integers(0, n + 1, (30, 37)) for _ in range(2)]
    sides = [LabelImage.from_array(i, dict.fromkeys(range(1, n + 1), "A"), names) for i in images]
    return LabelPair(sides[0], sides[1], rng.random((30, 37)) < 0.2)


@pytest.mark.parametrize("policy", list(AmbiguousPolicy))
@pytest.mark.parametrize("outlines", list(Outlines))
def test_ways_to_the_same_distances(
    monkeypatch: pytest.MonkeyPatch, policy: AmbiguousPolicy, outlines: Outlines
) -> None:
    rng = np.random.default_rng(5)
    pair = noise_pair(rng, 9)
    rows, columns = rng.integers(0, 9, (2, 12), dtype=np.int32)  # objects in several pairs
    assert len(np.unique(rows)) < len(rows)
    in_one_pass = distances_of(pair, rows, columns, policy, outlines)
    for k in range(len(rows)):  # boxes of one object hold no more than the image
        alone = distances_of(pair, rows[[k]], columns[[k]], policy, outlines)
        np.testing.assert_array_equal(alone[:, 0], in_one_pass[:, k])
    monkeypatch.setattr(distances, "_THREADS_FROM", 1)
    threaded = distances_of(pair, rows, columns, policy, outlines)
    np.testing.assert_array_equal(threaded, in_one_pass)
    monkeypatch.setattr(distances, "_TREE_FROM", 0)
    by_tree = distances_of(pair, rows, columns, policy, outlines)
    np.testing.assert_allclose(by_tree, in_one_pass, rtol=1e-14)


@pytest.mark.parametrize("seed", seeds(20))
def test_any_walk_through_the_settings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pair = pair_of(random_pair(rng))
    evaluation = evaluate(pair)
    for _ in range(12):
        settings = EvaluationSettings(
            matching=rng.choice(list(Matching)),
            iou_threshold=float(rng.choice([0.05, 0.3, 0.5, 0.8])),
            ambiguous=rng.choice(list(AmbiguousPolicy)),
            outlines=rng.choice(list(Outlines)),
            distances=bool(rng.random() < 0.8),
        )
        evaluation = evaluate_again(evaluation, settings)
        assert_same(evaluation, evaluate(pair, settings))


def test_a_step_of_the_threshold_measures_only_new_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = pair_of(random_pair(np.random.default_rng(1), (60, 60)))
    evaluation = evaluate(pair, EvaluationSettings(iou_threshold=0.05))
    known = len(evaluation.distances.keys)
    assert known > 0

    def no_more(*_args: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("napari_panoptic.nuclei.evaluate.pair_distances", no_more)
    stricter = evaluate_again(evaluation, EvaluationSettings(iou_threshold=0.8))
    assert len(stricter.distances.keys) == known  # what is not needed now is kept
    assert_same(stricter, evaluate_again(stricter, EvaluationSettings(iou_threshold=0.8)))
