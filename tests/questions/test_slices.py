"""What failures have in common: against brute force, planted slices, noise, and SliceLine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.failure_slices import CAUSED, caused_failures, null_cohort, planted_cohort
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.questions.engines.slice_conditions import (
    SliceCondition,
    condition_words,
    conditions_on,
    property_words,
    rounded_threshold,
    slice_words,
)
from napari_panoptic.questions.engines.slices import Limits, search_slices
from napari_panoptic.questions.slices import reason_sentence
from napari_panoptic.values.vocabulary import Cause, Side, Status
from tests.support.examples import examples

Covariates = Mapping[str, NDArray[Any]]


def slow_z(inside: pd.Series, fails: pd.Series, patients: pd.Series) -> float:
    """Mantel-Haenszel's statistic from a table of each patient."""
    found = expected = variance = 0.0
    for _, rows in fails.groupby(patients):
        n, m, s = len(rows), rows.sum(), inside[rows.index].sum()
        found += (inside[rows.index] & rows).sum()
        expected += s * m / n
        if n > 1:
            variance += s * (n - s) * m * (n - m) / (n * n * (n - 1))
    return (found - expected) / variance**0.5 if variance else 0.0


def all_slices(
    covariates: Covariates, limits: Limits
) -> dict[tuple[SliceCondition, ...], NDArray[np.bool_]]:
    """Every slice within the limits of size -> its objects."""
    alone = {name: conditions_on(name, values) for name, values in covariates.items()}
    slices: dict[tuple[SliceCondition, ...], NDArray[np.bool_]] = {
        (c,): c.holds(covariates[c.covariate]) for own in alone.values() for c in own
    }
    for one, other in combinations(covariates, 2):
        for a in conditions_on(one, covariates[one], broad=False):
            for b in conditions_on(other, covariates[other], broad=False):
                slices[a, b] = a.holds(covariates[one]) & b.holds(covariates[other])
    n = len(next(iter(slices.values())))
    least = max(limits.objects, limits.least_share * n)
    return {
        key: own for key, own in slices.items() if least <= own.sum() <= limits.largest_share * n
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_search_agrees_with_brute_force(seed: int) -> None:
    cohort = planted_cohort(
        seed, objects=700, covariates=4, patients=5, planted=100, planted_rate=0.6
    )
    covariates = dict(cohort.covariates)
    numbers = covariates["x0"].astype(np.float64)
    covariates["x0"] = np.where(cohort.is_failure & (numbers > 0.9), np.nan, numbers)
    found = search_slices(covariates, cohort.is_failure, cohort.patients, permutations=200)
    every = all_slices(covariates, Limits())
    fails, patients = pd.Series(cohort.is_failure), pd.Series(cohort.patients)
    z = {key: slow_z(pd.Series(inside), fails, patients) for key, inside in every.items()}
    assert found.searched == len(every)
    assert found.slices
    for own in found.slices:
        inside = every[own.conditions]
        assert own.rows.tolist() == np.flatnonzero(inside).tolist()
        assert own.failures == (inside & cohort.is_failure).sum()
        assert own.rate == pytest.approx(cohort.is_failure[inside].mean())
        assert own.rate_elsewhere == pytest.approx(cohort.is_failure[~inside].mean())
        assert own.z == pytest.approx(z[own.conditions])
        by_patient = fails.groupby([patients, pd.Series(inside)]).mean().unstack()
        assert own.patients == len(by_patient.dropna())
        assert own.patients_higher == (by_patient[True] > by_patient[False]).sum()
        expected = fails.groupby(patients).transform("mean")[inside].mean()
        assert own.rate_expected == pytest.approx(expected)
    assert found.slices[0].z == pytest.approx(max(z.values()))


def test_the_planted_slice_is_found_and_nothing_restates_it() -> None:
    found = 0
    for seed in range(10):
        cohort = planted_cohort(seed, covariates=6)
        slices = cohort.search(permutations=199)
        found += cohort.is_found(slices)
        assert len(slices.slices) <= 3
    # At the rate of 85 in 100, fewer would be found once in a thousand such tests.
    assert found >= stats.binom.ppf(1e-3, 10, 0.85)


@pytest.mark.parametrize("drift", [False, True])
def test_pure_noise_is_reported_as_rarely_as_promised(drift: bool) -> None:
    n = 100
    reported = sum(
        bool(
            null_cohort(seed, drift=drift, objects=400, covariates=4, patients=6)
            .search(permutations=99)
            .slices
        )
        for seed in range(n)
    )
    assert reported <= stats.binom.ppf(1 - 1e-3, n, 0.05)


def test_a_test_that_neglects_patients_would_report_drift() -> None:
    # The simulation can tell: without patients, the same cohorts are full of slices.
    for seed in range(4):
        cohort = null_cohort(seed, drift=True, objects=2000, covariates=4, patients=6)
        alone = np.zeros(2000, np.int64)
        assert search_slices(cohort.covariates, cohort.is_failure, alone, permutations=99).slices


def test_the_planted_slice_is_the_first_of_ours_and_of_sliceline() -> None:
    sliceline = pytest.importorskip("sliceline.slicefinder")
    sliceline = pytest.importorskip("sliceline.slicefinder")
    cohort = planted_cohort(4, covariates=6, planted_rate=0.6)
    ours = cohort.search(permutations=199).slices[0].conditions
    assert [condition.as_formula() for condition in ours] == ["x0 < 0.2", "x1 < 0.2"]
    names = list(cohort.covariates)
    columns = cohort.covariates.values()
    fifths = np.array(
        [np.digitize(x, (0.2, 0.4, 0.6, 0.8)) if x.dtype.kind == "f" else x for x in columns],
        dtype=object,
    ).T
    finder = sliceline.Slicefinder(alpha=0.95, k=1, max_l=2, min_sup=0.02, verbose=False)
    finder.fit(fifths, cohort.is_failure.astype(np.float64))
    first = zip(names, finder.top_slices_[0], strict=True)
    assert {name: value for name, value in first if value is not None} == {"x0": 0, "x1": 0}


# --- what is listed ---------------------------------------------------------------------------


def failing_where(rate: NDArray[np.float64], seed: int = 0) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random(len(rate)) < rate


def test_a_pair_that_restates_its_single_condition_is_not_listed() -> None:
    rng = np.random.default_rng(1)
    covariates = {f"x{k}": rng.random(4000) for k in range(5)}
    fails = failing_where(np.where(covariates["x0"] < 0.2, 0.5, 0.1))
    found = search_slices(covariates, fails, np.zeros(4000), permutations=199)
    assert [[c.as_formula() for c in own.conditions] for own in found.slices] == [["x0 < 0.2"]]


def test_two_reasons_are_two_slices() -> None:
    rng = np.random.default_rng(2)
    covariates = {f"x{k}": rng.random(4000) for k in range(5)}
    covariates["organ"] = rng.choice(np.array(["kidney", "lung"], object), 4000)
    is_pair = (covariates["x2"] >= 0.8) & (covariates["organ"] == "lung")
    fails = failing_where(0.1 + 0.4 * (covariates["x0"] < 0.2) + 0.4 * is_pair)
    found = search_slices(covariates, fails, np.zeros(4000), permutations=199)
    assert {tuple(c.as_formula() for c in own.conditions) for own in found.slices} == {
        ("x0 < 0.2",),
        ("x2 >= 0.8", "organ = lung"),
    }


def test_slices_that_fail_less_are_not_listed() -> None:
    x = np.random.default_rng(3).random(2000)
    fails = failing_where(np.where(x < 0.2, 0.0, 0.3))
    found = search_slices({"x": x}, fails, np.zeros(2000), permutations=99)
    assert all(own.rate > own.rate_elsewhere for own in found.slices)
    assert not any(own.conditions == (SliceCondition("x", high=0.2),) for own in found.slices)


def test_values_of_whole_patients_are_compared_within_patients_only() -> None:
    rng = np.random.default_rng(4)
    patients = np.repeat(np.arange(8), 200)
    site = np.where(patients < 4, "north", "south").astype(object)
    fails = failing_where(np.where(site == "north", 0.5, 0.1))
    covariates = {"site": site, "x": rng.random(1600)}
    assert not search_slices(covariates, fails, patients, permutations=199).slices
    in_site = failing_where(np.where((site == "north") & (covariates["x"] < 0.2), 0.6, 0.1))
    found = search_slices(covariates, in_site, patients, permutations=199).slices
    assert [c.as_formula() for c in found[0].conditions] == ["site = north", "x < 0.2"]


def test_held_out_patients_confirm_what_all_share_and_not_what_one_has() -> None:
    rng = np.random.default_rng(5)
    patients = np.repeat(np.arange(10), 400)
    covariates = {f"x{k}": rng.random(4000) for k in range(4)}
    is_small = covariates["x0"] < 0.2
    everywhere = failing_where(np.where(is_small, 0.4, 0.1))
    found = search_slices(covariates, everywhere, patients, permutations=199)
    assert [own.confirmed for own in found.slices] == [True]
    in_one = failing_where(np.where(is_small & (patients == 3), 0.9, 0.1))
    found = search_slices(covariates, in_one, patients, permutations=199)
    assert found.slices
    assert not any(own.confirmed for own in found.slices)
    few = search_slices(covariates, everywhere, patients // 2, permutations=199)
    assert [own.confirmed for own in few.slices] == [None]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_nothing_stands_out_where_all_or_none_fail(rate: float) -> None:
    fails = np.full(300, bool(rate))
    found = search_slices({"x": np.arange(300.0)}, fails, np.zeros(300))
    assert found.slices == ()
    assert found.failures == 300 * rate


def test_no_objects_have_no_slices() -> None:
    found = search_slices({"x": np.zeros(0), "y": np.zeros(0, object)}, np.zeros(0, bool), [])
    assert (found.slices, found.searched, found.objects) == ((), 0, 0)
    assert found.undefined == ("x", "y")


def test_covariates_that_say_nothing_are_named() -> None:
    n = 200
    covariates = {
        "same": np.ones(n),
        "unknown": np.full(n, np.nan),
        "no-word": np.full(n, "", object),
        "x": np.arange(float(n)),
    }
    found = search_slices(covariates, np.arange(n) % 5 == 0, np.zeros(n), permutations=19)
    assert found.undefined == ("same", "unknown", "no-word")
    assert list(found.curves) == ["x"]


def test_columns_of_another_length_are_refused() -> None:
    with pytest.raises(SettingsError, match="'x' for each of 3 objects, found 2"):
        search_slices({"x": np.zeros(2)}, np.zeros(3, bool), np.zeros(3))


def test_a_search_can_be_cancelled() -> None:
    cohort = planted_cohort(0, objects=600, covariates=3)
    with pytest.raises(StoppedError):
        search_slices(
            cohort.covariates,
            cohort.is_failure,
            cohort.patients,
            progress=Progress(is_wanted=lambda: False),
        )


# --- why one object failed --------------------------------------------------------------------


def two_reasons(seed: int = 2) -> tuple[Covariates, NDArray[np.bool_]]:
    """Objects of which the small ones, and those of one organ, fail more often."""
    rng = np.random.default_rng(seed)
    covariates: dict[str, Any] = {f"x{k}": rng.random(4000) for k in range(4)}
    covariates["organ"] = rng.choice(np.array(["kidney", "lung"], object), 4000)
    is_small, is_lung = covariates["x0"] < 0.2, covariates["organ"] == "lung"
    return covariates, failing_where(0.05 + 0.3 * is_small + 0.2 * is_lung)


def test_an_object_has_the_certain_slices_whose_conditions_it_meets() -> None:
    covariates, fails = two_reasons()
    found = search_slices(covariates, fails, np.zeros(4000), permutations=99)
    assert len(found.slices) >= 2
    first, *others = found.slices
    found = replace(found, slices=(first, *(replace(own, confirmed=True) for own in others)))
    n_several = 0
    for row in range(4000):
        own = {name: values[row] for name, values in covariates.items()}
        expected = [
            each
            for each in found.slices
            if all(c.holds(np.array([own[c.covariate]])).all() for c in each.conditions)
        ]
        listed = found.certain_with(row)
        assert set(map(id, listed)) == set(map(id, expected))
        differences = [each.rate - each.rate_elsewhere for each in listed]
        assert differences == sorted(differences, reverse=True)
        n_several += len(listed) > 1
    assert n_several


def test_slices_that_held_out_patients_do_not_confirm_are_not_certain() -> None:
    covariates, fails = two_reasons()
    found = search_slices(covariates, fails, np.zeros(4000), permutations=99)
    row = int(found.slices[0].rows[0])
    assert found.certain_with(row)
    unconfirmed = tuple(replace(own, confirmed=False) for own in found.slices)
    assert replace(found, slices=unconfirmed).certain_with(row) == []


def test_no_reason_fails_less_often_than_the_others() -> None:
    """Small objects fail more within each patient, but most are in patients that fail little."""
    rng = np.random.default_rng(6)
    patients = np.repeat(np.arange(4), 1000)
    is_good = patients < 2
    x = np.where(rng.random(4000) < np.where(is_good, 0.5, 0.02), 0.1, 0.9) + rng.random(4000) / 10
    fails = failing_where(np.where(is_good, 0.03, 0.6) + 0.12 * (x < 0.5))
    found = search_slices({"x": x}, fails, patients, permutations=99)
    assert any(own.rate < own.rate_elsewhere for own in found.slices)
    for own in found.slices:
        for row in own.rows[:50]:
            assert all(each.rate > each.rate_elsewhere for each in found.certain_with(int(row)))


@pytest.mark.parametrize("with_class", [False, True])
@pytest.mark.parametrize(
    "n_cohorts", [pytest.param(1, id="one"), pytest.param(20, id="twenty", marks=pytest.mark.long)]
)
def test_the_planted_cause_is_named_for_four_of_five_failures(
    with_class: bool, n_cohorts: int
) -> None:
    named = 0
    for seed in range(n_cohorts):
        cohort, failures = caused_failures(seed, with_class=with_class, covariates=6)
        assert len(failures) == CAUSED == 200
        named += cohort.n_named(cohort.search(permutations=199), failures)[0]
    assert named >= 0.8 * CAUSED * n_cohorts


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize(
    ("n_cohorts", "objects", "permutations"),
    [
        pytest.param(40, 400, 99, id="forty"),
        pytest.param(200, 5000, 199, id="two-hundred", marks=pytest.mark.long),
    ],
)
def test_without_a_planted_cause_none_is_named_for_19_of_20_failures(
    drift: bool, n_cohorts: int, objects: int, permutations: int
) -> None:
    named = cohorts = read = 0
    for seed in range(n_cohorts):
        cohort = null_cohort(seed, drift=drift, objects=objects, covariates=4, patients=6)
        failures = np.flatnonzero(cohort.is_failure)
        _, own = cohort.n_named(cohort.search(permutations=permutations), failures)
        named, cohorts, read = named + own, cohorts + bool(own), read + len(failures)
    assert named <= 0.05 * read
    assert cohorts <= stats.binom.ppf(1 - 1e-3, n_cohorts, 0.05)


SMALL = SliceCondition("area_px", high=80.0)
TOUCHING = SliceCondition("touching", value="yes")
LYMPHOCYTE = SliceCondition("class", value="Lymphocyte")


@pytest.mark.parametrize(
    ("conditions", "side", "cause", "sentence"),
    [
        (
            (LYMPHOCYTE, SMALL),
            Side.REFERENCE,
            Cause.MISSED,
            "Small (under 80 px): 62 % of such Lymphocytes are missed by this team, 18 % of all "
            "others.",
        ),
        (
            (SMALL, TOUCHING),
            Side.REFERENCE,
            None,
            "Small (under 80 px) and touching a neighbour: 62 % of such nuclei are FN or "
            "misclassified for this team, 18 % of all others.",
        ),
        (
            (LYMPHOCYTE,),
            Side.REFERENCE,
            Status.MISCLASSIFIED,
            "62 % of Lymphocytes are misclassified by this team, 18 % of all others.",
        ),
        (
            (SliceCondition("solidity", low=0.9),),
            Side.REFERENCE,
            Cause.TOO_SMALL,
            "Compact (solidity of 0.9 or more): 62 % of such nuclei are drawn too small by this "
            "team, 18 % of all others.",
        ),
        (
            (SliceCondition("my_score", low=1.0),),
            Side.PREDICTION,
            None,
            "With my score of 1 or more: 62 % of such predictions are FP, 18 % of all others.",
        ),
        (
            (SMALL,),
            Side.PREDICTION,
            Cause.FRAGMENT,
            "Small (under 80 px): 62 % of such predictions are fragments, 18 % of all others.",
        ),
    ],
)
def test_a_reason_is_a_plain_sentence(
    conditions: tuple[SliceCondition, ...], side: Side, cause: str | None, sentence: str
) -> None:
    covariates, fails = two_reasons()
    own = search_slices(covariates, fails, np.zeros(4000), permutations=19).slices[0]
    own = replace(own, conditions=conditions, rate=0.62, rate_elsewhere=0.18)
    assert reason_sentence(own, side, cause) == sentence


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (SliceCondition("area_um", low=12.5), "large (12.5 µm² or more)"),
        (SliceCondition("eccentricity", high=0.4), "round (eccentricity under 0.4)"),
        (SliceCondition("haematoxylin_od", low=0.44), "dark (haematoxylin OD of 0.44 or more)"),
        (
            SliceCondition("local_density_um", high=4.0),
            "in a sparse area (fewer than 4 neighbours per 10,000 µm²)",
        ),
        (SliceCondition("frame_distance_px", high=3.0), "less than 3 px from the frame"),
        (SliceCondition("area_px", value=7.0), condition_words(SliceCondition("area_px", value=7))),
    ],
)
def test_properties_are_plain_words_with_their_limits(
    condition: SliceCondition, words: str
) -> None:
    assert property_words(condition) == words


# --- conditions -------------------------------------------------------------------------------


@settings(max_examples=examples(60), derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 4e5]), st.sampled_from([0.2, 0.6, 0.8]))
def test_thresholds_are_round_and_move_few_objects(seed: int, scale: float, q: float) -> None:
    values = scale * np.random.default_rng(seed).gamma(3, size=500)
    threshold = rounded_threshold(values, q)
    below = (values < np.quantile(values, q)).sum()
    assert abs((values < threshold).sum() - below) <= 0.01 * len(values)
    shorter = [float(f"{np.quantile(values, q):.{k}e}") for k in range(11)]
    first = next(t for t in shorter if abs((values < t).sum() - below) <= 0.01 * len(values))
    assert threshold == first


def test_few_numbers_and_words_are_conditions_one_by_one() -> None:
    grades = conditions_on("grade", np.array([1.0, 2.0, 2.0, np.nan, 3.0]))
    assert [c.as_formula() for c in grades] == ["grade = 1", "grade = 2", "grade = 3"]
    assert grades[1].holds(np.array([1.0, 2.0, np.nan])).tolist() == [False, True, False]
    words = conditions_on("organ", np.array(["lung", "", "kidney"], object))
    assert [c.as_formula() for c in words] == ["organ = kidney", "organ = lung"]


def test_too_few_permutations_to_find_anything_are_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    fails = rng.random(600) < np.where(x < -0.8, 0.95, 0.05)
    patients = np.repeat(list("abcdef"), 100)
    with pytest.raises(SettingsError, match="at least 19 permutations, found 18"):
        search_slices({"x": x}, fails, patients, permutations=18)
    assert search_slices({"x": x}, fails, patients, permutations=19).slices


def test_curves_count_every_object_once_and_have_bands() -> None:
    cohort = planted_cohort(1, objects=1200, covariates=3, patients=8)
    curves = cohort.search(permutations=19).curves
    for name, curve in curves.items():
        values = cohort.covariates[name]
        for k, condition in enumerate(curve.bins):
            inside = condition.holds(values)
            assert curve.objects[k] == inside.sum()
            assert curve.failures[k] == (inside & cohort.is_failure).sum()
        assert curve.objects.sum() == 1200
        assert (curve.low <= curve.rate).all()
        assert (curve.rate <= curve.high).all()
        assert curve.over_patients
    assert len(curves["x0"].bins) == 10
    assert len(curves["class"].bins) == 3


@pytest.mark.parametrize(
    ("conditions", "side", "words"),
    [
        (
            (
                SliceCondition("class", value="Lymphocyte"),
                SliceCondition("area_px", high=80.0),
                SliceCondition("touching", value="yes"),
            ),
            Side.REFERENCE,
            "Lymphocytes under 80 px touching a neighbour",
        ),
        ((SliceCondition("class", value="Epithelial"),), Side.REFERENCE, "Epithelial nuclei"),
        ((SliceCondition("class", value="dead"),), Side.PREDICTION, "dead predictions"),
        (
            (SliceCondition("solidity", low=0.9), SliceCondition("eosin_od", high=0.25)),
            Side.PREDICTION,
            "Predictions with solidity of 0.9 or more and with eosin OD under 0.25",
        ),
        (
            (SliceCondition("area_um", low=12.5), SliceCondition("frame_distance_um", high=3.0)),
            Side.REFERENCE,
            "Nuclei of 12.5 µm² or more and less than 3 µm from the frame",
        ),
        ((SliceCondition("organ", value="kidney"),), Side.REFERENCE, "Nuclei with organ kidney"),
        (
            (SliceCondition("my_score", low=1.0, high=2.0),),
            Side.REFERENCE,
            "Nuclei with my score from 1 to under 2",
        ),
    ],
)
def test_slices_are_described_in_words(
    conditions: tuple[SliceCondition, ...], side: Side, words: str
) -> None:
    assert slice_words(conditions, side) == words


def test_every_built_in_covariate_has_words_for_both_ends() -> None:
    for name in ("area_px", "local_density_px", "neighbour_distance_px", "haematoxylin_od"):
        for condition in (SliceCondition(name, high=5.0), SliceCondition(name, low=5.0)):
            assert "5" in condition_words(condition)
