"""Intervals hold the truth as often as they say: the short form of the benchmark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.reviews import (
    RANDOM,
    STRATIFIED,
    TRUTHS,
    class_rates,
    coverage,
    differing,
    held_by_others,
    made_up,
    missed_in_one,
    planted,
    several_classes,
    truth_of,
)
from benchmarks.suspects import errors_found
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.plan.corrected import QUANTITIES, Quantity
from napari_panoptic.review.plan.units import SUSPECT, population
from napari_panoptic.values.reading import Reading
from tests.support.paths import SHARED_CASES, needs_shared_cases
from tests.support.survey_oracle import least

PQ = QUANTITIES.index(Quantity.PQ)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("n_reviews", [25, pytest.param(50, marks=pytest.mark.long)])
def test_intervals_hold_the_truth(many_units, truth, n_reviews):
    found = coverage(
        many_units, planted(many_units, TRUTHS[truth], 1), STRATIFIED, 150, range(n_reviews)
    )
    assert (found.covered >= least(n_reviews)).all()
    assert np.abs(found.mean - found.truth).max() < 0.03


@pytest.mark.parametrize("n_items", [12, 20])
def test_classes_of_which_a_small_plan_has_no_pair_are_not_taken_for_missed(n_items):
    units = several_classes()
    for truth in (planted(units, TRUTHS["usual"], 1), differing(units)):
        found = coverage(units, truth, STRATIFIED, n_items, range(30))
        assert (found.covered >= least(30)).all()
        assert found.truth[PQ] - found.mean[PQ] < 0.08  # without the known items, 0.1 and more


@pytest.mark.parametrize("wrong", [0.1, 0.6, 1.0])
def test_error_rates_of_a_rare_class_are_shares_and_hold_the_truth(wrong):
    """A class of 15 of 300 nuclei, whose strata hold several classes."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 300, p=[0.6, 0.1, 0.3])
    units = made_up(kind, np.arange(300) // 50, (0.95, 0.05))
    verdict = (rng.random(300) < wrong).astype(np.int64)
    truth = truth_of(units, verdict, np.zeros(300, np.int64))
    for n_items in (12, 20):
        rates = class_rates(units, truth, n_items, range(30))
        middle, low, high = np.moveaxis(rates.found[rates.is_defined], -1, 0)
        assert ((low >= 0) & (low <= middle) & (middle <= high) & (high <= 1)).all()
        assert rates.is_defined[:, 0].mean() > 0.9
        n = rates.is_defined[:, 1].sum()
        assert n > 10  # without a reviewed nucleus of the class there is no estimate
        assert (rates.covered >= [least(30), least(n)]).all()


def test_nuclei_that_one_patient_lacks_are_within_the_interval():
    units = several_classes()
    found = coverage(units, missed_in_one(units, 3.0), STRATIFIED, 100, range(60))
    assert (found.covered >= least(60)).all()
    assert np.abs(found.mean - found.truth).max() < 0.03


@pytest.mark.parametrize(
    ("unequal", "n_reviews"),
    [(1.2, 20), *(pytest.param(unequal, 40, marks=pytest.mark.long) for unequal in (0.0, 1.2))],
)
def test_intervals_for_other_patients_hold_their_figures(unequal, n_reviews):
    held = held_by_others(8, unequal, range(n_reviews), 150).mean(axis=0)
    assert (held >= least(n_reviews)).all()


@pytest.mark.parametrize("n_reviews", [25, pytest.param(80, marks=pytest.mark.long)])
def test_strata_of_suspects_find_more_errors_and_hold_the_truth(many_units, n_reviews):
    truth = planted(many_units, TRUTHS["usual"], 1)
    # Half of the errors are suspect, and so is one right annotation in forty.
    is_wrong = (truth.verdict > 0) | (truth.count > 0)
    is_suspect = np.random.default_rng(3).random(len(is_wrong)) < np.where(is_wrong, 0.5, 0.025)
    details = np.where(is_suspect, SUSPECT + " " + many_units.detail, many_units.detail)
    refined = replace(many_units, detail=np.array([own.rstrip() for own in details], object))

    seeds = range(n_reviews)
    usual, found = (
        coverage(units, truth, STRATIFIED, 150, seeds) for units in (many_units, refined)
    )
    assert (found.covered >= least(n_reviews)).all()
    assert np.abs(found.bias).max() < 0.03
    assert errors_found(refined, truth, 150, seeds) > 1.5 * errors_found(
        many_units, truth, 150, seeds
    )
    rate, *_ = range(len(found.error))  # the annotation error rate
    assert found.error[rate] < 0.9 * usual.error[rate]
    assert found.half_width[rate] < usual.half_width[rate]


@needs_shared_cases
@pytest.mark.parametrize("n_reviews", [15, pytest.param(40, marks=pytest.mark.long)])
def test_a_stratified_plan_is_more_precise_than_a_random_sample_of_the_same_size(n_reviews):
    cohort = open_cohort(SHARED_CASES / "monusac")
    units = population(cohort, Reading(teams=("jitter",))).units
    truth = planted(units, TRUTHS["usual"], 1)
    stratified, random = (
        coverage(units, truth, design, 200, range(n_reviews)) for design in (STRATIFIED, RANDOM)
    )
    assert (stratified.half_width < random.half_width).all()
    assert (stratified.covered >= least(n_reviews)).all()
