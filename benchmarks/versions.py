"""How often `compare` errs, and how often the intervals of a chosen setting hold the truth.

**null**: Each simulated cohort has 12 patients of at most 60 nuclei. Some patients are harder than
others, and each version deviates in each patient by a random effect of its own; the mean
difference is 0. The versions are compared at a margin of 0, so that p < 0.05 and the verdict
"worse" should each occur in 5 % of the cohorts. Beside them is McNemar's test over all nuclei,
which takes the nuclei of a patient for independent.

**margin**: The mean difference of a population of patients lies exactly at minus a margin above 0,
so that the verdicts "not-worse" and "worse" should each occur in at most 5 % of the cohorts.

**choice**: Settings of a sweep, or thresholds, are chosen by the patients of a cohort. The truth is
the mean figure, over all patients of the population, of the settings that the patients chose
without one of them, and what it is better than without a choice.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from benchmarks.measure import Floats, print_table, repeated, share
from napari_panoptic.nuclei.regions.results import counts_of_rows
from napari_panoptic.questions.engines.thresholds import ThresholdCurve, best_threshold
from napari_panoptic.questions.engines.version_diff import Change
from napari_panoptic.questions.engines.versions import Version, VersionComparison, compare_versions
from napari_panoptic.statistics.differences import Conclusion, decide, paired_differences
from tests.support.version_rows import CLASSES, Rates, drifting_rates, reference_objects, version_of

PATIENTS, NUCLEI, DRIFT, SEED = 12, 60, 0.4, 20
METRICS = ("pq", "sq", "dq", "detection_f1")
COHORT_SIZES = (8, 12, 25)
MARGIN = 0.02


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

LOSSES = (
    *("normal", "gamma", "exponential", "noisy exponential", "a quarter"),
    *("log-normal", "heavy log-normal", "a tenth"),
)


def differences_at(
    margin: float, losses: str, rng: np.random.Generator, shape: tuple[int, int]
) -> Floats:
    """Draw differences (cohorts, patients) whose mean in the population is minus the margin.

    The margin is also their standard deviation, but for the last four, which vary more.
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
    elif losses == "a tenth":  # lose 10 to 20 times the margin
        lost = (rng.random(shape) < 0.1) * rng.uniform(10, 20, shape)
        excess = 1.5 - lost + rng.normal(0, 0.5, shape)
    else:  # skewness -6, and -33
        sigma = 1.5 if losses.startswith("heavy") else 1.0
        excess = math.exp(sigma**2 / 2) - rng.lognormal(0, sigma, shape)
    return margin * (excess - 1)


def verdict_at(margin: float, differences: Floats) -> Conclusion:
    """Return the verdict on the differences of the patients of a cohort."""
    n = len(differences)
    figures = {"pq": (np.full(n, 0.5), 0.5 + differences)}
    (found,) = paired_differences(figures, [str(k) for k in range(n)], resamples=2)
    return decide(found, margin).verdict


# --- the choice -------------------------------------------------------------------------------

CHOICES = ("thresholds", "similar settings", "one better setting", "skewed patients", "a tenth")
_THRESHOLDS = 50


def figures_of_settings(
    choice: str, rng: np.random.Generator, cohorts: int, patients: int
) -> Floats:
    """Draw figures (cohorts, patients, settings); the first setting is the one without a choice."""
    shape = (cohorts, patients)
    if choice == "thresholds":
        return _f1_over_thresholds(rng, shape)
    peak = 0.02 if choice == "similar settings" else 0.2
    means = 0.7 - peak * np.linspace(-1, 1, 5) ** 2
    noise = 0.03
    if choice == "skewed patients":
        patient = 0.1 * (1 - rng.exponential(1, (*shape, 1)))
    elif choice == "a tenth":  # of the patients lose 0.2 to 0.4, the others are alike
        patient = (rng.random((*shape, 1)) < 0.1) * rng.uniform(-0.4, -0.2, (*shape, 1))
        noise = 0.01
    else:
        patient = rng.normal(0, 0.1, (*shape, 1))
    return means + patient + rng.normal(0, noise, (*shape, 5))


def _f1_over_thresholds(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw F1 where removing the lower half of the scores changes the mean by less than 0.01.

    Of high scores 90 % are right, of low ones 38.5 %, half of the F1 of all: these neither gain
    nor lose.
    """
    nuclei = rng.integers(30, 60, shape)
    counts = []
    for part, right in ((0.5, 0.385), (0.75, 0.9)):
        n = (part * nuclei).astype(int)
        bins = rng.multinomial(n, np.full(_THRESHOLDS // 2, 2 / _THRESHOLDS))
        counts.append((bins, rng.binomial(bins, right)))
    predicted, right_ones = (
        np.concatenate(both, axis=-1)[..., ::-1].cumsum(axis=-1)[..., ::-1]
        for both in zip(*counts, strict=True)
    )
    found = np.minimum(right_ones, nuclei[..., np.newaxis])
    f1: Floats = 2 * found / (predicted + nuclei[..., np.newaxis])
    return f1


def choice_trials(choice: str, rng: np.random.Generator, cohorts: int, patients: int) -> Floats:
    """Return whether intervals hold the honest figure and the gain, and claim a gain wrongly.

    A gain is claimed if its interval lies above 0, and wrongly if it also lies above the truth.
    """
    means = figures_of_settings(choice, rng, 1, 40_000)[0].mean(axis=0)
    names, places = tuple(map(str, range(patients))), np.arange(len(means), dtype=float)
    drawn = figures_of_settings(choice, rng, cohorts, patients)

    def trial(cohort: int) -> tuple[bool, bool, bool]:
        found = best_threshold(ThresholdCurve(places, names, {"pq": drawn[cohort]}, True))
        truth = float(means[found.chosen.astype(int)].mean())
        honest, gain, gained = found.honest, found.gain, truth - means[0]
        is_held = honest.low <= truth <= honest.high, gain.low <= gained <= gain.high
        return *is_held, gain.low > max(0.0, gained)

    return repeated(trial, range(cohorts))


# --- all --------------------------------------------------------------------------------------


def version_gate(parts: str = "null,margin,choice", cohorts: int = 1000) -> None:
    """How often comparing versions errs, and how often intervals of a chosen setting hold."""
    for part in parts.split(","):
        {"null": without_a_difference, "margin": at_the_margin, "choice": of_a_choice}[part](
            cohorts
        )


def without_a_difference(cohorts: int) -> None:
    """Print how often each way errs where no version is better."""
    rng = np.random.default_rng(SEED)

    def trial(_: int) -> list[bool]:
        found = null_comparison(rng, "pq")
        p_of = {one.name: one.p for one in found.metrics}
        return [
            *(p_of[name] < 0.05 for name in METRICS),
            min(one.holm_p for one in found.metrics) < 0.05,
            found.decision.verdict is Conclusion.WORSE,
            found.decision.verdict is Conclusion.NOT_WORSE,
            pooled_mcnemar(found) < 0.05,
        ]

    names = [f"{name}: p < 0.05" for name in METRICS]
    names += ["any metric: Holm p < 0.05", "verdict worse", "verdict not-worse"]
    names += ["McNemar over all nuclei: p < 0.05"]
    shares = map(share, repeated(trial, range(cohorts)).T)
    print_table(
        f"No difference, {cohorts} cohorts", ["", ""], list(zip(names, shares, strict=True))
    )


def at_the_margin(cohorts: int) -> None:
    """Print how often the verdicts err at a margin."""
    rows = []
    for losses in LOSSES:
        cells = []
        for patients in COHORT_SIZES:
            rng = np.random.default_rng(SEED)
            drawn = differences_at(MARGIN, losses, rng, (cohorts, patients))
            verdicts = [verdict_at(MARGIN, own) for own in drawn]
            wanted = (Conclusion.NOT_WORSE, Conclusion.WORSE)
            cells += [share([own is one for own in verdicts]) for one in wanted]
        rows.append([losses, *cells])
    header = [f"{own}, {k} patients" for k in COHORT_SIZES for own in ("not-worse", "worse")]
    print_table(f"At a margin of {MARGIN:g}, {cohorts} cohorts", ["losses", *header], rows)


def of_a_choice(cohorts: int) -> None:
    """Print how often the intervals of a choice hold the truth."""
    rows = []
    for choice in CHOICES:
        for patients in COHORT_SIZES:
            held = choice_trials(choice, np.random.default_rng(SEED), cohorts, patients)
            rows.append([choice, patients, *map(share, held.T)])
    header = ["choice", "patients", "honest figure held", "gain held", "gain claimed wrongly"]
    print_table(f"A choice, {cohorts} cohorts", header, rows)
