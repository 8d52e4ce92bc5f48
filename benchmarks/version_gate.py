"""How often ``compare`` errs on cohorts in which neither version is better.

Each simulated cohort has 12 patients of at most 60 nuclei. Some patients are harder than others,
and each version deviates in each patient by a random effect of its own: patients drift, but the
mean difference is 0. The versions are compared as ``napari-panoptic compare`` does, at a margin
of 0, so that p < 0.05 and the verdict "worse" should each occur in 5 % of the cohorts. Beside
them is McNemar's test over all nuclei, which takes the nuclei of a patient for independent.

    python -m benchmarks.version_gate [--cohorts 1000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import stats

from napari_panoptic.nuclei.explain.version_diff import Change
from napari_panoptic.nuclei.explain.versions import Version, VersionComparison, compare_versions
from napari_panoptic.nuclei.regions.results import counts_of_rows
from napari_panoptic.statistics.differences import Verdict
from tests.support.version_rows import (
    CLASSES,
    Rates,
    drifting_rates,
    reference_objects,
    version_of,
)

PATIENTS, NUCLEI, DRIFT, SEED = 12, 60, 0.4, 20
METRICS = ("pq", "sq", "dq", "detection_f1")


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


def main() -> None:
    """Simulate, and print how often each way errs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohorts", type=int, default=1000)
    n = parser.parse_args().cohorts
    rng = np.random.default_rng(SEED)
    significant = dict.fromkeys(METRICS, 0)
    holm = worse = not_worse = mcnemar = 0
    start = time.process_time()
    for _ in range(n):
        comparison = null_comparison(rng, "pq")
        for one in comparison.metrics:
            if one.name in METRICS:
                significant[one.name] += one.p < 0.05
        holm += min(one.holm_p for one in comparison.metrics) < 0.05
        worse += comparison.decision.verdict is Verdict.WORSE
        not_worse += comparison.decision.verdict is Verdict.NOT_WORSE
        mcnemar += pooled_mcnemar(comparison) < 0.05
    for name, count in significant.items():
        print(f"{name}: p < 0.05 in {count / n:.1%} of {n} cohorts")
    print(f"any metric, Holm p < 0.05: {holm / n:.1%}")
    print(f"verdict worse: {worse / n:.1%}; not-worse: {not_worse / n:.1%}")
    print(f"McNemar over all nuclei, p < 0.05: {mcnemar / n:.1%}")
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
