"""How often ``compare`` errs, and how often the intervals of a chosen setting hold the truth.

**Without a difference.** Each simulated cohort has 12 patients of at most 60 nuclei. Some
patients are harder than others, and each version deviates in each patient by a random effect of
its own: patients drift, but the mean difference is 0. The versions are compared as
``napari-panoptic compare`` does, at a margin of 0, so that p < 0.05 and the verdict "worse" should
each occur in 5 % of the cohorts. Beside them is McNemar's test over all nuclei, which takes the
nuclei of a patient for independent.

**At the margin.** The mean difference of a population of patients lies exactly at minus a margin
above 0, so that the verdicts "not-worse" and "worse" should each occur in at most 5 % of the
cohorts. Most patients change little, and a few lose much.

**The choice.** Settings of a sweep, or thresholds, are chosen by the patients of a cohort. The
truth is the mean figure, over all patients of the population, of the settings that the patients
chose without one of them, and what it is better than without a choice.

    python -m benchmarks.version_gate [--cohorts 1000] [--parts null margin choice]
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from napari_panoptic.nuclei.regions.results import counts_of_rows
from napari_panoptic.questions.engines.thresholds import ThresholdCurve, best_threshold
from napari_panoptic.questions.engines.version_diff import Change
from napari_panoptic.questions.engines.versions import Version, VersionComparison, compare_versions
from napari_panoptic.statistics.differences import Conclusion, decide, paired_differences
from tests.support.version_rows import (
    CLASSES,
    Rates,
    drifting_rates,
    reference_objects,
    version_of,
)

PATIENTS, NUCLEI, DRIFT, SEED = 12, 60, 0.4, 20
METRICS = ("pq", "sq", "dq", "detection_f1")
COHORT_SIZES = (8, 12, 25)
MARGIN = 0.02
FloatArray = NDArray[np.float64]


def null_comparison(rng: np.random.Generator, metric: str) -> VersionComparison:
    """Draw and compare two versions of which neither is better on average."""
    reference = reference_objects(rng, PATIENTS, 1, NUCLEI, ignored=0.0)
    versions = []
    for name, rates in zip(("old", "new"), drifting_rates(rng, PATIENTS, DRIFT), strict=True):
        by_patient = {
            f"P{n}": Rates(rate, wrong_class=0.3, fps=0.1 * NUCLEI) for n, rate in enumerate(rates)
        }
        objects = version_of(rng, reference, by_patient)
        versions.append(Version(name, objects, counts_of_rows(objects, CLASSES)))
    return compare_versions(versions[0], versions[1], CLASSES, metric=metric, margin=0.0)


def pooled_mcnemar(comparison: VersionComparison) -> float:
    """Return the p-value of McNemar's exact test over all nuclei, whatever their patients."""
    counts = comparison.diff.counts
    fixed, broken = counts[Change.FIXED], counts[Change.BROKEN]
    return float(stats.binomtest(fixed, fixed + broken).pvalue) if fixed + broken else 1.0


# --- at the margin ----------------------------------------------------------------------------

LOSSES = ("normal", "gamma", "exponential", "noisy exponential", "a quarter", "log-normal")


def differences_at(
    margin: float, losses: str, rng: np.random.Generator, shape: tuple[int, int]
) -> FloatArray:
    """Draw differences (cohorts, patients) whose mean in the population is minus the margin.

    The margin is also their standard deviation, but for the last two, which vary more.
    """
    if losses == "normal":
        excess = rng.normal(0, 1, shape)
    elif losses == "gamma":  # skewness -1.4
        excess = (2 - rng.gamma(2, 1, shape)) / math.sqrt(2)
    elif losses == "exponential":  # skewness -2
        excess = 1 - rng.exponential(1, shape)
    elif losses == "noisy exponential":  # skewness -1.4
        excess = (1 - rng.exponential(1, shape) + rng.normal(0, 0.5, shape)) / math.sqrt(1.25)
    elif losses == "a quarter":  # of the patients lose 1 to 5 times the margin, the others nothing
        lost = (rng.random(shape) < 0.25) * rng.uniform(1, 5, shape)
        excess = 0.75 - lost + rng.normal(0, 0.7, shape)
    else:  # skewness -6
        excess = math.exp(0.5) - rng.lognormal(0, 1, shape)
    return margin * (excess - 1)


def verdict_at(margin: float, differences: FloatArray) -> Conclusion:
    """Return the verdict on the differences of the patients of a cohort."""
    n = len(differences)
    figures = {"pq": (np.full(n, 0.5), 0.5 + differences)}
    (found,) = paired_differences(figures, [str(k) for k in range(n)], resamples=2)
    return decide(found, margin).verdict


# --- the choice -------------------------------------------------------------------------------

CHOICES = ("thresholds", "similar settings", "one better setting", "skewed patients")
_THRESHOLDS = 50


def figures_of_settings(
    choice: str, rng: np.random.Generator, cohorts: int, patients: int
) -> FloatArray:
    """Draw figures (cohorts, patients, settings); the first setting is the one without a choice."""
    shape = (cohorts, patients)
    if choice == "thresholds":
        return _f1_over_thresholds(rng, shape)
    peak = 0.02 if choice == "similar settings" else 0.2
    means = 0.7 - peak * np.linspace(-1, 1, 5) ** 2
    if choice == "skewed patients":
        patient = 0.1 * (1 - rng.exponential(1, (*shape, 1)))
    else:
        patient = rng.normal(0, 0.1, (*shape, 1))
    return means + patient + rng.normal(0, 0.03, (*shape, 5))


def _f1_over_thresholds(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Draw F1 where removing the lower half of the scores changes the mean by less than 0.01.

    Of high scores 90 % are right, of low ones 38.5 %, half of the F1 of all: these neither gain
    nor lose.
    """
    nuclei = rng.integers(30, 60, shape)
    counts = []
    for share, right in ((0.5, 0.385), (0.75, 0.9)):
        n = (share * nuclei).astype(int)
        bins = rng.multinomial(n, np.full(_THRESHOLDS // 2, 2 / _THRESHOLDS))
        counts.append((bins, rng.binomial(bins, right)))
    predicted, right_ones = (
        np.concatenate(both, axis=-1)[..., ::-1].cumsum(axis=-1)[..., ::-1]
        for both in zip(*counts, strict=True)
    )
    found = np.minimum(right_ones, nuclei[..., np.newaxis])
    f1: FloatArray = 2 * found / (predicted + nuclei[..., np.newaxis])
    return f1


def choices_held(
    choice: str, rng: np.random.Generator, cohorts: int, patients: int
) -> tuple[float, float, float]:
    """Return how often intervals hold the honest figure and the gain, and claim a gain wrongly.

    A gain is claimed if its interval lies above 0, and wrongly if it also lies above the truth.
    """
    means = figures_of_settings(choice, rng, 1, 40_000)[0].mean(axis=0)
    names, places = tuple(map(str, range(patients))), np.arange(len(means), dtype=float)
    held = np.zeros(3)
    for figures in figures_of_settings(choice, rng, cohorts, patients):
        found = best_threshold(ThresholdCurve(places, names, {"pq": figures}, True))
        truth = float(means[found.chosen.astype(int)].mean())
        honest, gain, gained = found.honest, found.gain, truth - means[0]
        is_wrong = gain.low > max(0.0, gained)
        held += (honest.low <= truth <= honest.high, gain.low <= gained <= gain.high, is_wrong)
    figure, better, wrong = (held / cohorts).tolist()
    return figure, better, wrong


# --- all --------------------------------------------------------------------------------------


def main() -> None:
    """Simulate, and print how often each way errs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohorts", type=int, default=1000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    start = time.process_time()
    for part in options.parts:
        PARTS[part](options.cohorts)
    print(f"{time.process_time() - start:.0f} s of processor time")


def print_null(n: int) -> None:
    """Print how often each way errs without a difference."""
    rng = np.random.default_rng(SEED)
    significant = dict.fromkeys(METRICS, 0)
    holm = worse = not_worse = mcnemar = 0
    for _ in range(n):
        comparison = null_comparison(rng, "pq")
        for one in comparison.metrics:
            if one.name in METRICS:
                significant[one.name] += one.p < 0.05
        holm += min(one.holm_p for one in comparison.metrics) < 0.05
        worse += comparison.decision.verdict is Conclusion.WORSE
        not_worse += comparison.decision.verdict is Conclusion.NOT_WORSE
        mcnemar += pooled_mcnemar(comparison) < 0.05
    for name, count in significant.items():
        print(f"{name}: p < 0.05 in {count / n:.1%} of {n} cohorts")
    print(f"any metric, Holm p < 0.05: {holm / n:.1%}")
    print(f"verdict worse: {worse / n:.1%}; not-worse: {not_worse / n:.1%}")
    print(f"McNemar over all nuclei, p < 0.05: {mcnemar / n:.1%}")


def print_margin(n: int) -> None:
    """Print how often the verdicts err at a margin."""
    print(f"| losses | {' | '.join(f'{k} patients' for k in COHORT_SIZES)} |")
    print("|---" * (1 + len(COHORT_SIZES)) + "|")
    for losses in LOSSES:
        cells = []
        for patients in COHORT_SIZES:
            rng = np.random.default_rng(SEED)
            drawn = differences_at(MARGIN, losses, rng, (n, patients))
            verdicts = Counter(verdict_at(MARGIN, own) for own in drawn)
            shares = (verdicts[one] / n for one in (Conclusion.NOT_WORSE, Conclusion.WORSE))
            cells.append("; ".join(f"{share:.1%}" for share in shares))
        print(f"| {losses} | {' | '.join(cells)} |", flush=True)


def print_choice(n: int) -> None:
    """Print how often the intervals of a choice hold the truth."""
    print("| choice | patients | honest figure held | gain held | gain claimed wrongly |")
    print("|---" * 5 + "|")
    for choice in CHOICES:
        for patients in COHORT_SIZES:
            shares = choices_held(choice, np.random.default_rng(SEED), n, patients)
            print(
                f"| {choice} | {patients} | {' | '.join(map('{:.1%}'.format, shares))} |",
                flush=True,
            )


PARTS = {"null": print_null, "margin": print_margin, "choice": print_choice}


if __name__ == "__main__":
    main()
