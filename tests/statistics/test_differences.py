from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.versions import differences_at, verdict_at
from napari_panoptic.statistics.bootstrap import mean_interval
from napari_panoptic.statistics.differences import (
    Conclusion,
    PairedDifference,
    decide,
    difference_record,
    paired_differences,
)
from napari_panoptic.statistics.pairwise import holm
from tests.support.examples import seeds
from tests.support.version_rows import drifting_figures

NAN = float("nan")


def difference_of(
    differences: list[float] | np.ndarray, *, lower_is_better: bool = False
) -> PairedDifference:
    """Return the difference of one figure with these differences of patients."""
    new = [0.5 + one for one in differences]
    (found,) = paired_differences(
        {"figure": ([0.5] * len(new), new)},
        [f"P{n}" for n in range(len(new))],
        lower_is_better=("figure",) if lower_is_better else (),
        resamples=200,
    )
    return found


def test_difference_interval_and_tests() -> None:
    rng = np.random.default_rng(3)
    old, new = rng.random(9), rng.random(9)
    other = rng.random(9)
    names = [f"P{n}" for n in range(9)]
    found = paired_differences({"pq": (old, new), "sq": (old, other)}, names)
    for one, values in zip(found, (new, other), strict=True):
        assert one.interval == mean_interval(values - old)
        expected = stats.permutation_test(
            (values - old,), np.mean, permutation_type="samples", n_resamples=2**9
        )
        assert one.p == pytest.approx(expected.pvalue, abs=1e-12)
        assert (one.old, one.new) == pytest.approx((old.mean(), values.mean()))
    assert [one.holm_p for one in found] == holm([one.p for one in found])


def test_undefined_figures_are_left_out_and_named() -> None:
    (found,) = paired_differences(
        {"pq": ([0.5, NAN, 0.5], [0.6, 0.7, NAN])}, ["P1", "P2", "P3"], resamples=50
    )
    record = difference_record(found)
    assert record["patients"] == 1
    assert record["omitted"] == {
        "P2": "old has no figure for patient P2",
        "P3": "new has no figure for patient P3",
    }
    assert record["difference"] == pytest.approx(0.1)
    (nothing,) = paired_differences({"pq": ([NAN], [0.5])}, ["P1"], resamples=50)
    assert math.isnan(nothing.p)
    decision = decide(nothing, 0.01)
    assert decision.verdict is Conclusion.UNDECIDED
    assert decision.reason == "no patient has a figure of both versions"


def test_a_patient_with_a_figure_of_one_version_only_does_not_pass() -> None:
    names = [f"P{n}" for n in range(12)]
    better, worse = np.full(12, 0.9), np.full(12, 0.1)
    for new, verdict in ((better, Conclusion.UNDECIDED), (worse, Conclusion.WORSE)):
        old, new = np.full(12, 0.5), new.copy()
        old[3] = new[5] = new[6] = NAN
        (found,) = paired_differences({"sq": (old, new)}, names, resamples=50)
        decision = decide(found, 0.01)
        assert decision.verdict is verdict
        assert decision.reason.endswith(
            "patients P5 and P6 have a figure of the old version only and patient P3 has a figure "
            "of the new version only"
        )
    # A patient without any figure is no reason against a version.
    (both,) = paired_differences(
        {"sq": ([0.5] * 11 + [NAN], [0.9] * 11 + [NAN])}, names, resamples=50
    )
    assert decide(both, 0.01).verdict is Conclusion.NOT_WORSE


def test_verdicts() -> None:
    worse = [-0.02, -0.03, -0.025, -0.04, -0.02, -0.03, -0.025, -0.03]
    assert decide(difference_of(worse), 0.01).verdict is Conclusion.WORSE
    assert decide(difference_of(worse), 0.1).verdict is Conclusion.NOT_WORSE
    assert decide(difference_of(worse), 0.025).verdict is Conclusion.UNDECIDED
    assert decide(difference_of([0.0] * 8), 0.01).verdict is Conclusion.NOT_WORSE
    assert decide(difference_of([0.0] * 8), 0.0).verdict is Conclusion.UNDECIDED
    with pytest.raises(ValueError, match="margin"):
        decide(difference_of(worse), -0.1)


def test_of_distances_lower_ones_are_better() -> None:
    up = [2.0, 3.0, 2.5, 4.0, 2.0, 3.0, 2.5, 3.0]
    decision = decide(difference_of(up, lower_is_better=True), 1.0)
    assert decision.verdict is Conclusion.WORSE
    assert decision.low > 1.0
    assert decide(difference_of(up), 1.0).verdict is Conclusion.NOT_WORSE
    down = decide(difference_of([-one for one in up], lower_is_better=True), 1.0)
    assert down.verdict is Conclusion.NOT_WORSE
    assert (down.low, down.high) == pytest.approx((-decision.high, -decision.low))


@pytest.mark.parametrize("seed", seeds(25))
def test_limits_do_not_contradict_the_verdict(seed: int) -> None:
    rng = np.random.default_rng(seed)
    decision = decide(difference_of(rng.normal(-0.01, 0.02, 8)), 0.01)
    if decision.verdict is Conclusion.NOT_WORSE:
        assert decision.low > -0.01
    elif decision.verdict is Conclusion.WORSE:
        assert decision.high < -0.01
    else:
        assert decision.low <= -0.01 <= decision.high


def test_fewer_than_eight_patients_never_decide() -> None:
    found = difference_of([-0.2, -0.21, -0.22, -0.2, -0.19, -0.2, -0.21])
    for margin in (0.01, 0.9):
        decision = decide(found, margin)
        assert decision.verdict is Conclusion.UNDECIDED
        assert min(decision.p_worse, decision.p_not_worse) < 0.05
        assert decision.reason == "cannot be decided with 7 patients: at least 8 are needed"
    eight = difference_of([-0.2, -0.21, -0.22, -0.2, -0.19, -0.2, -0.21, -0.2])
    assert decide(eight, 0.01).verdict is Conclusion.WORSE
    assert decide(eight, 0.9).verdict is Conclusion.NOT_WORSE
    spread = difference_of([-0.2, 0.25, -0.22, 0.1, -0.19])
    assert spread.note == (
        f"cannot be decided with 5 patients: at least 8 are needed and about {spread.needed} for "
        "the observed difference"
    )
    one = decide(difference_of([0.1]), 0.01)
    assert one.reason == "cannot be decided with 1 patient: at least 8 are needed"


def test_errors_on_cohorts_without_a_difference() -> None:
    """Patients drift, but neither version is better: 5 % of verdicts may err."""
    cohorts, patients = 400, 12
    rng = np.random.default_rng(20)
    significant = worse = 0
    for _ in range(cohorts):
        old, new = drifting_figures(rng, patients, nuclei=60)
        names = [str(n) for n in range(patients)]
        (found,) = paired_differences({"f1": (old, new)}, names, resamples=2)
        significant += found.p < 0.05
        worse += decide(found, 0.0).verdict is Conclusion.WORSE
    least, most = stats.binom.interval(0.999, cohorts, 0.05)
    assert least <= significant <= most
    assert least <= worse <= most


def test_errors_where_a_few_patients_lose_much() -> None:
    """The mean lies exactly at minus the margin: at most 7 % may pass."""
    cohorts, margin = 200, 0.02
    rng = np.random.default_rng(20)
    drawn = differences_at(margin, "exponential", rng, (cohorts, 12))
    passed = sum(verdict_at(margin, own) is Conclusion.NOT_WORSE for own in drawn)
    assert passed <= stats.binom.ppf(0.95, cohorts, 0.07)
