"""Dice at levels against several raters, their own spread, and calibration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_panoptic.common.errors import LabelError, SettingsError
from napari_panoptic.raters.levels import (
    MapReliability,
    Reference,
    Standing,
    agreement,
    compare,
    least_votes,
    levels_reached,
    standing,
)
from napari_panoptic.raters.objects import object_agreement
from napari_panoptic.raters.ranking import CASES, by_structure, by_team
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.raters import AtLevel, BothEmpty, RatersSettings
from tests.support import raters_oracle as oracle

SETTINGS = [RatersSettings(at_level=a, both_empty=b) for a in AtLevel for b in BothEmpty]
# Values at which ">=" and ">" differ, and what lies beside them.
TELLING = [0.0, 0.05, 0.1, 0.2, 0.3, 1 / 3, 0.5, 0.6, 0.7, 0.8999999, 0.9, 1.0]


def _reference(masks):
    names = tuple(f"r{number}" for number in range(len(masks)))
    return Reference(names, np.asarray(masks, bool))


@st.composite
def cases(draw, *, least_raters=1):
    """Draw raters, a map and settings; small, with many ties and empty levels."""
    n = draw(st.integers(least_raters, 10))
    shape = draw(st.sampled_from([(1, 1), (2, 3), (3, 2, 1), (2, 2, 3)]))
    size = math.prod(shape)
    bits = draw(st.lists(st.booleans(), min_size=n * size, max_size=n * size))
    values = draw(st.lists(st.sampled_from(TELLING), min_size=size, max_size=size))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    masks = np.array(bits, bool).reshape(n, *shape)
    return (
        _reference(masks),
        np.array(values, dtype).reshape(shape),
        draw(st.sampled_from(SETTINGS)),
    )


def _same(found, expected):
    wanted = [math.nan if value is None else value for value in expected]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)


@given(cases())
def test_dice_and_its_counts_equal_the_definition(case):
    reference, values, settings = case
    found = compare(reference, values, settings)
    shares = oracle.reference_of(reference.masks)

    _same(found.dice(settings), oracle.dice_at_levels(shares, values, settings))
    for place, level in enumerate(settings.levels):
        inside, predicted = oracle.level_sets(shares, values, level, settings.at_level)
        counts = found.counts[place]
        assert (counts.reference, counts.prediction) == (len(inside), len(predicted))
        assert counts.both == len(inside & predicted)
    _same(
        [found.score(settings)], [oracle.average(oracle.dice_at_levels(shares, values, settings))]
    )


@given(cases())
def test_slices_equal_the_definition_on_each_slice_alone(case):
    reference, values, settings = case
    found = compare(reference, values, settings)
    if not reference.is_volume:
        assert found.slices is None
        assert found.slice_scores(settings).size == 0
        return
    assert len(found.slice_scores(settings)) == reference.shape[0]
    for z in range(reference.shape[0]):
        shares = oracle.reference_of(reference.masks[:, z])
        expected = oracle.dice_at_levels(shares, values[z], settings)
        _same(found.slices[z].dice(settings.both_empty), expected)
        _same(found.slice_scores(settings)[z : z + 1], [oracle.average(expected)])
    for name in ("reference", "prediction", "both"):
        np.testing.assert_array_equal(
            getattr(found.slices, name).sum(axis=0), getattr(found.counts, name)
        )


@given(cases(least_raters=2))
def test_leaving_a_rater_out_equals_the_definition(case):
    reference, values, settings = case
    found, raters = compare(reference, values, settings), agreement(reference, settings)
    averages = []
    for number, mask in enumerate(reference.masks):
        shares = oracle.reference_of(reference.masks, left_out=number)
        own = oracle.dice_at_levels(shares, mask.astype(float), settings)
        _same(raters.left_out[number], own)
        _same(raters.left_out_mean[number : number + 1], [oracle.average(own)])
        of_team = oracle.dice_at_levels(shares, values, settings)
        _same(found.left_out[number].dice(settings.both_empty), of_team)
        averages.append(oracle.average(of_team))
    _same([found.left_out_score(settings)], [oracle.average(averages)])


@given(cases())
def test_pairs_of_raters_equal_the_definition(case):
    reference, _, settings = case
    found = agreement(reference, settings)
    marked = [set(map(tuple, np.argwhere(mask))) for mask in reference.masks]
    for i, first in enumerate(marked):
        for j, second in enumerate(marked):
            expected = 1.0 if i == j else oracle.dice(first, second, settings.both_empty)
            _same(found.pairwise[i, j : j + 1], [expected])
    assert found.area_px.tolist() == [len(own) for own in marked]


@given(cases())
def test_brier_equals_the_definition_and_is_least_for_the_mean(case):
    reference, values, settings = case
    found = compare(reference, values, settings)
    mean = reference.masks.mean(axis=0)

    assert found.brier == pytest.approx(oracle.brier(reference.masks, values), abs=1e-12)
    assert found.brier_least == pytest.approx(oracle.brier(reference.masks, mean), abs=1e-12)
    assert found.brier >= found.brier_least - 1e-12


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_raters_changes_no_figure(case, random):
    reference, values, settings = case
    order = list(range(len(reference.raters)))
    random.shuffle(order)
    other = Reference(tuple(reference.raters[i] for i in order), reference.masks[order])

    first, second = compare(reference, values, settings), compare(other, values, settings)
    np.testing.assert_array_equal(first.counts.both, second.counts.both)
    before, after = agreement(reference, settings), agreement(other, settings)
    np.testing.assert_array_equal(before.left_out_mean[order], after.left_out_mean)
    np.testing.assert_array_equal(before.pairwise[np.ix_(order, order)], after.pairwise)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_raters_mean_itself_is_perfect(settings):
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 5, 6, 7, 10):
        reference = _reference(rng.random((n, 6, 7)) < 0.5)
        for dtype in (np.float32, np.float64):
            mean = (reference.votes / n).astype(dtype)
            assert np.nanmin(compare(reference, mean, settings).dice(settings)) == 1.0, n


def test_three_of_ten_raters_reach_0_3_exactly():
    # 0.1 + 0.2 > 0.3 in binary fractions; votes are whole numbers.
    assert [least_votes(10, level, AtLevel.AT_LEAST) for level in (0.1, 0.3, 0.7)] == [1, 3, 7]
    assert [least_votes(10, level, AtLevel.ABOVE) for level in (0.1, 0.3, 0.7)] == [2, 4, 8]


def test_a_map_saved_in_single_precision_reaches_the_level_it_was_saved_at():
    levels = np.array(RatersSettings().levels, np.float32)
    assert float(levels[3]) < 0.7  # what a comparison in double precision would trip over
    assert levels_reached(levels, RatersSettings()).tolist() == [1, 2, 3, 4, 5]
    above = RatersSettings(at_level=AtLevel.ABOVE)
    assert levels_reached(levels, above).tolist() == [0, 1, 2, 3, 4]


def test_a_missing_prediction_scores_zero_where_raters_marked_something():
    masks = np.zeros((3, 4, 4), bool)
    masks[:, 1:3, 1:3] = True
    settings = RatersSettings()
    background = np.broadcast_to(np.float32(0), (4, 4))
    assert compare(_reference(masks), background, settings).score(settings) == 0.0


def test_reliability_counts_every_voxel_once():
    rng = np.random.default_rng(2)
    reference = _reference(rng.random((4, 9, 8)) < 0.4)
    values = rng.random((9, 8))
    found = compare(reference, values, RatersSettings()).reliability
    share = reference.masks.mean(axis=0)
    for place in range(10):
        inside = (values >= place / 10) & ((values < (place + 1) / 10) | (place == 9))
        assert found.voxels[place] == inside.sum()
        assert found.predicted[place] == pytest.approx(values[inside].sum())
        assert found.observed[place] == pytest.approx(share[inside].sum())
    twice = found + found + MapReliability.zero()
    assert twice.voxels.sum() == 2 * 72


def test_one_rater_has_no_spread():
    reference = _reference(np.ones((1, 2, 2)))
    found = agreement(reference, RatersSettings())
    assert all(math.isnan(end) for end in found.spread)
    assert math.isnan(found.mean_pairwise)
    assert compare(reference, np.ones((2, 2)), RatersSettings()).left_out is None


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.79, Standing.BELOW),
        (0.8, Standing.WITHIN),
        (0.9, Standing.WITHIN),
        (0.91, Standing.ABOVE),
        (math.nan, Standing.UNDEFINED),
    ],
)
def test_standing(score, expected):
    assert standing(score, (0.8, 0.9)) is expected


@pytest.mark.parametrize("levels", [(), (0.0, 0.5), (0.5, 0.5), (0.9, 0.1), (0.5, 1.1)])
def test_levels_that_cannot_be_are_refused(levels):
    with pytest.raises(SettingsError, match="ascending"):
        RatersSettings(levels=levels)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(LabelError, match=r"\(2, 2\).*\(3, 2\)"):
        compare(_reference(np.ones((1, 2, 2))), np.ones((3, 2)), RatersSettings())
    with pytest.raises(LabelError, match="at least one"):
        Reference((), np.ones((0, 2, 2), bool))


def _row(team, structure, case, dice, **others):
    row = dict.fromkeys(CASES.keys, math.nan) | {"team": team, "structure": structure}
    spread = {"left_out_dice": dice, "raters_lowest": 0.5, "raters_highest": 0.8}
    own = str(standing(dice, (0.5, 0.8)))
    return (
        row | spread | {"case": case, "dice": dice, "prediction": "there", "standing": own} | others
    )


def test_structures_weigh_alike_and_equal_teams_share_a_rank():
    rows = [
        _row("a", "many", "1", 0.4),
        _row("a", "many", "2", 0.6),
        _row("a", "many", "3", 0.8),
        _row("a", "few", "1", 1.0),
        *[_row("b", "many", str(n), 0.6) for n in (1, 2, 3)],
        _row("b", "few", "1", 1.0),
        *[_row("c", "many", str(n), 0.0, prediction="missing") for n in (1, 2, 3)],
        _row("c", "few", "1", 0.2),
    ]
    cases = CASES.frame(rows)
    structures = by_structure(cases).set_index(["team", "structure"])
    assert structures.loc[("a", "many"), "dice"] == pytest.approx(0.6)
    assert structures.loc[
        ("a", "many"), ["cases_below", "cases_within", "cases_above"]
    ].tolist() == [
        1,
        2,
        0,
    ]
    assert structures.loc[("c", "many"), "missing"] == 3
    ranking = by_team(by_structure(cases), cases).set_index("team")
    assert ranking["score"].to_dict() == pytest.approx({"a": 0.8, "b": 0.8, "c": 0.1})
    assert ranking["rank"].to_dict() == {"a": 1, "b": 1, "c": 3}
    assert ranking.loc["a", "dice_all_cases"] == pytest.approx(0.7)


def test_equal_cases_spread_by_nothing():
    cases = [_row("a", "disc", str(n), 0.7137) for n in range(3)]
    cases += [_row("b", "disc", str(n), dice) for n, dice in enumerate((0.25, 0.5, 1.0))]
    found = by_structure(CASES.frame(cases)).set_index("team")
    assert found.loc["a", "dice_sd"] == 0.0
    assert found.loc["b", "dice_sd"] == pytest.approx(np.std([0.25, 0.5, 1.0], ddof=1))


def test_raters_of_objects_agree_on_them_two_by_two():
    labels = np.zeros((12, 12), int)
    labels[1:5, 1:5] = 1
    labels[7:11, 7:11] = 2
    one_less = np.where(labels == 2, 0, labels)
    smaller = labels.copy()
    smaller[1] = 0  # 12 of 16 pixels are left of the first object

    def image(array):
        return LabelImage.from_array(array, {1: "A", 2: "A"}, ("A", "B"), side="rater")

    found = object_agreement([image(labels), image(one_less), image(smaller)])
    pq, f1 = found.of_class("A")
    assert np.diag(pq).tolist() == [1.0, 1.0, 1.0]
    assert f1[0, 1] == f1[1, 0] == pytest.approx(2 / 3)
    assert pq[0, 1] == pytest.approx(1 / 1.5)
    assert pq[0, 2] == pq[2, 0] == pytest.approx((0.75 + 1) / 2)
    assert np.isnan(found.of_class("B")[0]).all()
