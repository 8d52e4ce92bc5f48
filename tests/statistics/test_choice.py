"""The best of several settings, chosen once without each patient: recomputed by loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.versions import choice_trials
from napari_panoptic.statistics.bootstrap import IntervalMethod
from napari_panoptic.statistics.choice import choose


def best_by_hand(rows: list[list[float]], *, higher: bool) -> int | None:
    means = {}
    for place in range(len(rows[0]) if rows else 0):
        known = [row[place] for row in rows if not math.isnan(row[place])]
        if known:
            means[place] = round(sum(known) / len(known), 9)
    if not means:
        return None
    wanted = max(means.values()) if higher else min(means.values())
    return min(place for place, mean in means.items() if mean == wanted)


def without_gaps(row: list[float], *, higher: bool) -> list[float]:
    """Count a patient with the worst figure of any setting where a setting has none."""
    known = [figure for figure in row if not math.isnan(figure)]
    worst = (min if higher else max)(known, default=math.nan)
    return [worst if math.isnan(figure) else figure for figure in row]


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_each_patient_is_left_out(seed: int, higher: bool) -> None:
    rng = np.random.default_rng(seed)
    figures = rng.integers(0, 4, (5, 4)) / 4.0  # with ties
    figures[rng.random(figures.shape) < 0.2] = math.nan
    rows = [without_gaps(row, higher=higher) for row in figures.tolist()]
    found = choose(figures, higher_is_better=higher)
    assert found.is_filled.tolist() == (np.isnan(figures).any(1) & ~np.isnan(rows).all(1)).tolist()
    assert found.best == best_by_hand(rows, higher=higher)
    for place, row in enumerate(rows):
        others = rows[:place] + rows[place + 1 :]
        own = best_by_hand(others, higher=higher)
        assert found.chosen[place] == own
        assert found.left_out[place] == pytest.approx(
            math.nan if own is None else row[own], nan_ok=True
        )
    assert found.honest.mean == pytest.approx(np.nanmean(found.left_out))
    apart = (found.at_best - found.left_out) * (1 if higher else -1)
    assert found.optimism.mean == pytest.approx(np.nanmean(apart))


def test_a_single_patient_has_no_honest_figure() -> None:
    found = choose([[0.5, 0.7]])
    assert (found.best, found.optimistic, found.chosen) == (1, 0.7, (None,))
    assert found.honest.n == 0
    assert found.optimism.n == 0


def test_a_setting_does_not_win_by_patients_in_whom_it_has_no_figure() -> None:
    found = choose([[0.80, 0.85, 0.86], [0.82, 0.86, 0.87], [0.30, 0.35, math.nan]])
    assert found.best == 1
    assert found.optimistic == pytest.approx((0.85 + 0.86 + 0.35) / 3)
    assert found.honest.n == 3
    assert found.is_filled.tolist() == [False, False, True]
    # Of distances the highest is the worst; a patient without any figure does not count.
    far = choose([[5.0, math.nan], [4.0, 3.0], [math.nan, math.nan]], higher_is_better=False)
    assert far.figures[0].tolist() == [5.0, 5.0]
    assert (far.best, far.honest.n) == (1, 2)


@pytest.mark.parametrize("choice", ["thresholds", "similar settings"])
def test_intervals_hold_what_the_choice_is_worth(choice: str) -> None:
    """The short form of the benchmark: 25 patients, who choose among 50 or 5 settings."""
    cohorts = 60
    least = 0.95 - 3 * math.sqrt(0.95 * 0.05 / cohorts)
    honest, gain, claimed_wrongly = choice_trials(
        choice, np.random.default_rng(3), cohorts, 25
    ).mean(axis=0)
    assert honest >= least
    assert gain >= least
    assert claimed_wrongly <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / cohorts)


def test_an_interval_of_a_choice_needs_six_patients() -> None:
    figures = np.random.default_rng(1).random((6, 3))
    assert choose(figures).honest.method is IntervalMethod.STUDENTISED
    few = choose(figures[:5]).honest
    assert (few.n, few.method) == (5, IntervalMethod.UNDEFINED)
    assert math.isnan(few.low)
    assert few.why == "an interval of a choice needs at least 6 patients, found 5"


@pytest.mark.parametrize("higher", [True, False])
def test_an_interval_does_not_depend_on_rounding_where_settings_tie(higher: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):  # quotients of small counts, as of thresholds
        figures = rng.integers(0, 4, (8, 6)) / rng.integers(3, 9, 8)[:, np.newaxis]
        one, other = (
            choose(values, higher_is_better=higher) for values in (figures, figures * (1 + 2**-52))
        )
        for found, expected in (
            (other.honest, one.honest),
            (other.optimism, one.optimism),
            (other.gain_over(0), one.gain_over(0)),
        ):
            ends = [[each.low, each.high] for each in (found, expected)]
            np.testing.assert_allclose(*ends, rtol=0, atol=1e-9)


def test_patients_without_a_figure_do_not_change_an_interval() -> None:
    figures = np.random.default_rng(1).random((8, 3))
    gap = np.full((1, 3), math.nan)
    assert choose(np.vstack([figures, gap])).honest == choose(figures).honest
    # With equal settings there is nothing to choose, and no optimism.
    equal = choose(np.repeat(figures[:, :1], 3, axis=1))
    assert (equal.optimism.low, equal.optimism.mean, equal.optimism.high) == (0, 0, 0)
