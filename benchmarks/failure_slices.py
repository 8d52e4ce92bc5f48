"""How often planted slices of failures are found, and how often something is found in pure noise.

It simulates 100 cohorts with a planted slice of each kind, 20 in which it fails obviously more
often, 500 without any and 500 without any in which patients drift; it counts what is found and what
the cards of failures name, and times a large search: about half an hour.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import print_table, repeated, report, share, wall_and_cpu
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
    """Simulated objects; `planted` are those that fail more often, if there is a slice."""

    covariates: dict[str, NDArray[np.generic]]  # numbers x0, x1, ..., and "class"
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

    The properties are two small numbers, or a number and a class, which is one of the covariates.
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
    seed: int, *, drift: bool, objects: int = 5000, covariates: int = 12, patients: int = 12
) -> Simulated:
    """Simulate objects whose covariates say nothing about failures within a patient.

    With drift each patient has a failure rate and a distribution of covariates of its own, so that
    the two are associated over all objects.
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


def failure_slices(cohorts: int = 0, permutations: int = PERMUTATIONS) -> None:
    """Slices of failures that are found where they are planted, and where there is only noise.

    If `cohorts` is given, as many of each kind.
    """
    rows = []

    def planted(with_class: bool, seed: int) -> tuple[int, ...]:
        cohort = planted_cohort(seed, with_class=with_class)
        found = cohort.search(permutations)
        is_found = cohort.is_found(found)
        is_confirmed = is_found and any(own.confirmed for own in found.slices)
        caused = np.flatnonzero(cohort.is_failure & cohort.planted)
        return is_found, is_confirmed, cohort.n_named(found, caused)[0], len(caused)

    def obvious(with_class: bool, seed: int) -> tuple[int, ...]:
        cohort, caused = caused_failures(seed, with_class=with_class)
        found = cohort.search(permutations)
        return cohort.is_found(found), 0, cohort.n_named(found, caused)[0], CAUSED

    def noise(drift: bool, seed: int) -> tuple[int, ...]:
        cohort = null_cohort(seed, drift=drift)
        found, fails = cohort.search(permutations), np.flatnonzero(cohort.is_failure)
        named = cohort.n_named(found, fails)[1]
        return bool(found.slices), named > 0, named, len(fails)

    for title, trial, n in (
        ("planted by {}", planted, 100),
        ("planted by {}, obvious", obvious, 20),
        ("nothing planted{}", noise, 500),
    ):
        for is_second in (False, True):
            each = repeated(lambda seed: trial(is_second, seed), range(cohorts or n))  # noqa: B023
            kinds = ("", ", patients drift") if trial is noise else ("two numbers", "class, number")
            found, other, named, failures = each.T
            cells = [share(found), share(other), share(named.sum(), int(failures.sum()))]
            rows.append([title.format(kinds[is_second]), *cells, len(each)])
    header = ["cohorts", "something found", "confirmed (noise: on cards)", "on cards of failures"]
    print_table("Slices of failures", [*header, "n"], rows)
    cohort = planted_cohort(0, objects=20_000, planted=800, patients=25)
    taken = wall_and_cpu("search and curves", lambda: cohort.search(permutations).curves)
    report(f"20,000 objects, 12 covariates, {permutations} permutations", taken)
