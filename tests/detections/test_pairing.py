"""Points against points: every way to pair them is tried, on small sets."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.detections.curve import adds_a_pair, precision_recall
from napari_panoptic.detections.pairing import (
    DetectionCounts,
    DetectionSettings,
    pair_points,
)
from tests.support.examples import examples

# Small whole numbers: points meet, distances are equal, and many lie exactly at the limit.
PLACES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=6)


def _array(places):
    return np.array(places, float).reshape(-1, 2)


def _all_pairings(reference, prediction, limit):
    """Yield number of pairs and summed distance of every one-to-one pairing there is."""
    if not reference:
        yield 0, 0.0
        return
    first, *rest = reference
    for n, total in _all_pairings(rest, prediction, limit):
        yield n, total
    for place, other in enumerate(prediction):
        distance = math.dist(first, other)
        if distance <= limit:
            for n, total in _all_pairings(
                rest, prediction[:place] + prediction[place + 1 :], limit
            ):
                yield n + 1, total + distance


def _best(reference, prediction, limit):
    n = max(n for n, _ in _all_pairings(reference, prediction, limit))
    return n, min(t for k, t in _all_pairings(reference, prediction, limit) if k == n)


@settings(max_examples=examples(150), deadline=None)
@given(PLACES, PLACES, st.sampled_from([1.0, 3.0, 5.0]))
def test_as_many_pairs_as_possible_then_the_nearest(reference, prediction, limit):
    found = pair_points(_array(reference), _array(prediction), limit)
    pairs = [(r, p) for r, p in enumerate(found.reference_partner) if p >= 0]

    assert [found.prediction_partner[p] for _, p in pairs] == [r for r, _ in pairs]
    assert (found.prediction_partner >= 0).sum() == len(pairs)
    distances = [math.dist(reference[r], prediction[p]) for r, p in pairs]
    assert all(distance <= limit for distance in distances)
    n, total = _best(reference, prediction, limit)
    assert len(pairs) == n
    assert sum(distances) == pytest.approx(total)
    assert found.counts == DetectionCounts(n, len(prediction) - n, len(reference) - n)


@settings(max_examples=examples(60), deadline=None)
@given(PLACES, PLACES)
def test_distances_are_to_the_partner_or_the_nearest(reference, prediction):
    found = pair_points(_array(reference), _array(prediction), 3.0)
    for own, partners, distances, other in (
        (reference, found.reference_partner, found.reference_distance_um, prediction),
        (prediction, found.prediction_partner, found.prediction_distance_um, reference),
    ):
        for place, partner, distance in zip(own, partners, distances, strict=True):
            if not other:
                assert math.isnan(distance)
            elif partner >= 0:
                assert distance == pytest.approx(math.dist(place, other[partner]))
            else:
                assert distance == pytest.approx(min(math.dist(place, o) for o in other))


def test_the_distance_is_inclusive_though_decimals_are_no_binary_fractions():
    here, there = np.array([[0.0, 0.0]]), np.array([[0.1 * 3, 0.0]])  # 0.30000000000000004
    assert pair_points(here, there, 0.3).counts.tp == 1
    assert pair_points(here, there, 0.2999).counts.tp == 0


def test_a_greedy_choice_would_lose_a_pair():
    # The middle detection is nearest to both; taken greedily, one mitosis stays without.
    reference = _array([(0, 0), (10, 0)])
    prediction = _array([(4, 0), (11, 0), (17, 0)])
    assert pair_points(reference, prediction, 7).counts.tp == 2


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000))
def test_large_components_are_solved_as_a_matrix_is(seed):
    rng = np.random.default_rng(seed)
    reference, prediction = rng.random((40, 2)), rng.random((30, 2))
    distance = cdist(reference, prediction)
    costs = np.where(distance <= 0.2, distance, 100.0)
    chosen = costs[linear_sum_assignment(costs)]
    found = pair_points(reference, prediction, 0.2)
    assert found.counts.tp == (chosen < 100).sum()
    own = found.prediction_distance_um[found.prediction_partner >= 0]
    assert own.sum() == pytest.approx(chosen[chosen < 100].sum())


@settings(max_examples=examples(40), deadline=None)
@given(PLACES, PLACES, st.randoms(use_true_random=False))
def test_the_order_in_files_changes_no_figure(reference, prediction, random):
    before = pair_points(_array(reference), _array(prediction), 4.0)
    random.shuffle(reference)
    random.shuffle(prediction)
    after = pair_points(_array(reference), _array(prediction), 4.0)
    assert before.counts == after.counts
    total = [
        found.prediction_distance_um[found.prediction_partner >= 0].sum()
        for found in (before, after)
    ]
    assert total[0] == pytest.approx(total[1])


FRAMES = st.lists(
    st.tuples(
        PLACES,
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 4)), max_size=6),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=examples(80), deadline=None)
@given(FRAMES)
def test_the_curve_is_the_best_pairing_at_each_threshold(frames):
    limit = 4.0
    counted = [
        (
            _array(reference),
            _array([d[:2] for d in detections]),
            np.array([d[2] for d in detections], float),
        )
        for reference, detections in frames
    ]
    curve = precision_recall(
        np.concatenate([c for *_, c in counted]),
        np.concatenate([adds_a_pair(*each, limit) for each in counted]),
        sum(len(r) for r, *_ in counted),
    )
    thresholds = sorted({d[2] for _, detections in frames for d in detections}, reverse=True)

    assert curve.thresholds.tolist() == thresholds
    area, recall = 0.0, 0.0
    for place, threshold in enumerate(thresholds):
        expected = sum(
            (
                DetectionCounts(n, len(kept) - n, len(reference) - n)
                for reference, detections in frames
                for kept in [[d[:2] for d in detections if d[2] >= threshold]]
                for n in [_best(reference, kept, limit)[0]]
            ),
            DetectionCounts(),
        )
        assert curve.counts_at(place) == expected
        assert curve.precision[place] == pytest.approx(expected.precision)
        assert curve.recall[place] == pytest.approx(expected.recall, nan_ok=True)
        assert curve.f_measure[place] == pytest.approx(expected.f_measure)
        assert curve.place_of(threshold) == curve.place_of(threshold - 0.5) == place
        area += (expected.recall - recall) * expected.precision
        recall = expected.recall
    assert curve.place_of(5.0) is None
    assert curve.average_precision == pytest.approx(
        area if curve.n_reference else math.nan, nan_ok=True
    )


def test_counts_are_undefined_where_there_is_nothing():
    nothing = DetectionCounts()
    assert all(math.isnan(v) for v in (nothing.precision, nothing.recall, nothing.f_measure))
    missed = DetectionCounts(fn=3)
    assert math.isnan(missed.precision)
    assert (missed.recall, missed.f_measure) == (0.0, 0.0)
    right = DetectionCounts(6, 2, 3)
    p, r = right.precision, right.recall
    assert right.f_measure == pytest.approx(2 * p * r / (p + r))


def test_the_f_measure_of_several_is_their_weighted_mean():
    counts = [DetectionCounts(3, 1, 2), DetectionCounts(0, 2, 1), DetectionCounts(5, 0, 0)]
    mean = np.average([c.f_measure for c in counts], weights=[c.weight for c in counts])
    assert sum(counts, DetectionCounts()).f_measure == pytest.approx(mean)


def test_detections_without_a_confidence_always_count():
    confidence = np.array([0.2, np.nan, 0.5])
    assert DetectionSettings(confidence=0.5).counted(confidence).tolist() == [False, True, True]
    assert DetectionSettings().counted(confidence).all()


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_a_distance_that_cannot_be_is_refused(wrong):
    with pytest.raises(SettingsError, match="micrometres above 0"):
        DetectionSettings(distance_um=wrong)


def test_many_points_are_paired_as_one_problem_would_be():
    rng = np.random.default_rng(3)
    reference = rng.random((150, 2)) * 100
    prediction = np.concatenate(
        [reference[::2] + rng.normal(0, 4, (75, 2)), rng.random((80, 2)) * 100]
    )
    found = pair_points(reference, prediction, 8.0)
    from scipy.optimize import linear_sum_assignment

    costs = cdist(reference, prediction)
    costs[costs > 8.0] = 1e6
    rows, columns = linear_sum_assignment(costs)
    near = costs[rows, columns] < 1e6
    assert found.counts.tp == near.sum()
    paired = found.prediction_distance_um[found.prediction_partner >= 0]
    assert paired.sum() == pytest.approx(costs[rows, columns][near].sum())
