"""How often planted slices of failures are found, and how often something is found in pure noise.

``python -m benchmarks.failure_slices`` simulates 100 cohorts with a planted slice of each kind, 20
in which it fails obviously more often, 500 without any and 500 without any in which patients drift.
It counts what is found, and what the cards of failures name, and times a large search: about half
an hour. ``--cohorts N`` simulates N of each kind.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.questions.engines.slice_conditions import slice_words
from napari_panoptic.questions.engines.slices import Slice, SliceSearch, search_slices
from napari_panoptic.statistics.max_t import PERMUTATIONS

CLASSES = np.array(["Epithelial", "Lymphocyte", "Macrophage"], dtype=object)
CLASS_SHARES = (0.5, 0.3, 0.2)
USUAL_RATE, PLANTED_RATE, OBVIOUS_RATE = 0.15, 0.3, 0.6
CAUSED = 200
"""Failures of the planted slice for which the object card is read, of each cohort."""
SAME = 0.5
"""Objects in common, of those in either, that make a slice the planted one."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated objects.

    Parameters
    ----------
    covariates
        Numbers ``x0``, ``x1``, ..., and ``class``.
    is_failure, patients
        (n,): of each object.
    planted
        bool (n,): the objects that fail more often; none in a cohort without a slice.
    """

    covariates: dict[str, NDArray[np.generic]]
    is_failure: NDArray[np.bool_]
    patients: NDArray[np.int64]
    planted: NDArray[np.bool_]

    def search(self, permutations: int = PERMUTATIONS) -> SliceSearch:
        """Search its slices."""
        return search_slices(
            self.covariates, self.is_failure, self.patients, permutations=permutations
        )

    def is_found(self, found: SliceSearch) -> bool:
        """Return whether one of the slices is the planted one."""
        return any(self.is_planted(own) for own in found.slices)

    def is_planted(self, own: Slice) -> bool:
        """Return whether a slice is the planted one."""
        both = int(self.planted[own.rows].sum())
        return both >= SAME * (own.objects + self.planted.sum() - both)

    def n_named(self, found: SliceSearch, failures: NDArray[np.int64]) -> tuple[int, int]:
        """Count the failures for which the object card names the planted slice, or any slice."""
        named = [own[0] for row in failures if (own := found.certain_with(int(row)))]
        return sum(map(self.is_planted, named)), len(named)


def planted_cohort(
    seed: int,
    *,
    with_class: bool = False,
    objects: int = 5000,
    covariates: int = 12,
    patients: int = 12,
    planted: int = 200,
    planted_rate: float = PLANTED_RATE,
) -> Simulated:
    """Simulate objects of which some with two properties fail twice as often.

    Parameters
    ----------
    seed
        Of the random numbers.
    with_class
        Whether one of the properties is a class; else both are small numbers.
    objects, covariates, patients, planted, planted_rate
        Numbers of them, the class being one of the covariates, and how often the planted fail.
    """
    rng = np.random.default_rng(seed)
    numbers = rng.random((objects, covariates - 1))
    classes = rng.choice(CLASSES, objects, p=CLASS_SHARES)
    first = numbers[:, 0] + 10.0 * (classes != CLASSES[2])
    order = np.argsort(first if with_class else numbers[:, :2].max(axis=1))
    is_planted = np.zeros(objects, np.bool_)
    is_planted[order[:planted]] = True
    rate = np.where(is_planted, planted_rate, USUAL_RATE)
    return Simulated(
        {f"x{k}": column for k, column in enumerate(numbers.T)} | {"class": classes},
        rng.random(objects) < rate,
        rng.integers(0, patients, objects),
        is_planted,
    )


def null_cohort(
    seed: int,
    *,
    drift: bool,
    objects: int = 5000,
    covariates: int = 12,
    patients: int = 12,
) -> Simulated:
    """Simulate objects whose covariates say nothing about failures within a patient.

    Parameters
    ----------
    seed
        Of the random numbers.
    drift
        Whether each patient has a failure rate and a distribution of covariates of its own, so
        that the two are associated over all objects.
    objects, covariates, patients
        Numbers of them.
    """
    rng = np.random.default_rng(seed)
    who = rng.integers(0, patients, objects)
    numbers = rng.random((objects, covariates - 1))
    rates, shares = np.full(patients, USUAL_RATE), np.tile(CLASS_SHARES, (patients, 1))
    if drift:
        numbers += rng.normal(0, 1.0, (patients, covariates - 1))[who]
        rates = rng.uniform(0.03, 0.4, patients)
        shares = rng.dirichlet(np.full(len(CLASSES), 2.0), patients)
    place = (rng.random(objects)[:, None] > np.cumsum(shares, axis=1)[who]).sum(axis=1)
    return Simulated(
        {f"x{k}": column for k, column in enumerate(numbers.T)}
        | {"class": CLASSES[np.minimum(place, len(CLASSES) - 1)]},
        rng.random(objects) < rates[who],
        who,
        np.zeros(objects, np.bool_),
    )


def caused_failures(
    seed: int, *, with_class: bool, planted_rate: float = OBVIOUS_RATE, covariates: int = 12
) -> tuple[Simulated, NDArray[np.int64]]:
    """Simulate a cohort, and return `CAUSED` failures of its planted slice."""
    planted = round(1.25 * CAUSED / planted_rate)
    cohort = planted_cohort(
        seed,
        with_class=with_class,
        objects=25 * planted,
        covariates=covariates,
        planted=planted,
        planted_rate=planted_rate,
    )
    return cohort, np.flatnonzero(cohort.is_failure & cohort.planted)[:CAUSED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, metavar="N", help="of each kind")
    parser.add_argument("--permutations", type=int, default=PERMUTATIONS, metavar="N")
    options = parser.parse_args()
    for with_class in (False, True):
        n = options.cohorts or 100
        found, confirmed, named, failures = 0, 0, 0, 0
        for seed in range(n):
            cohort = planted_cohort(seed, with_class=with_class)
            slices = cohort.search(options.permutations)
            is_found = cohort.is_found(slices)
            found += is_found
            confirmed += is_found and any(own.confirmed for own in slices.slices)
            caused = np.flatnonzero(cohort.is_failure & cohort.planted)
            named += cohort.n_named(slices, caused)[0]
            failures += len(caused)
        kind = "a class and a number" if with_class else "two numbers"
        print(
            f"planted by {kind}: found in {found} of {n}, confirmed in {confirmed}, named on the "
            f"cards of {named} of {failures} failures",
            flush=True,
        )
        n = options.cohorts or 20
        named = 0
        for seed in range(n):
            cohort, caused = caused_failures(seed, with_class=with_class)
            named += cohort.n_named(cohort.search(options.permutations), caused)[0]
        print(f"  obvious: named on the cards of {named} of {n * CAUSED} failures", flush=True)
    for drift in (False, True):
        n = options.cohorts or 500
        found, on_cards, named, failures = 0, 0, 0, 0
        for seed in range(n):
            cohort = null_cohort(seed, drift=drift)
            slices = cohort.search(options.permutations)
            fails = np.flatnonzero(cohort.is_failure)
            _, any_slice = cohort.n_named(slices, fails)
            found += bool(slices.slices)
            on_cards += any_slice > 0
            named += any_slice
            failures += len(fails)
        print(
            f"nothing planted, drift {drift}: something reported in {found} of {n}, named on cards "
            f"in {on_cards}, of {named} of {failures} failures",
            flush=True,
        )
    cohort = planted_cohort(0, objects=20_000, planted=800, patients=25)
    start, busy = time.perf_counter(), time.process_time()
    slices = cohort.search(options.permutations)
    _ = slices.curves
    print(
        f"20,000 objects, 12 covariates, {options.permutations} permutations: "
        f"{time.perf_counter() - start:.1f} s ({time.process_time() - busy:.1f} s of the processor)"
    )
    for own in slices.slices:
        print(
            f"  {slice_words(own.conditions)}: {own.rate:.3f}, elsewhere {own.rate_elsewhere:.3f}"
        )


if __name__ == "__main__":
    main()
