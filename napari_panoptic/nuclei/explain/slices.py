"""What failures have in common: slices of at most two conditions that fail more than the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.explain.failure_curves import Curve, failure_curve
from napari_panoptic.nuclei.explain.slice_conditions import Condition, conditions_on
from napari_panoptic.statistics.max_t import (
    PERMUTATIONS,
    SEED,
    SetFamily,
    max_t,
    stratified_z,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Covariates = Mapping[str, NDArray[Any]]

SIGNIFICANCE = 0.05
LEAST_OBJECTS, LEAST_SHARE, LARGEST_SHARE = 30, 0.02, 0.8
"""A slice has at least so many objects, and these shares of all objects at least and at most."""
LEAST_EXPECTED = 1.0
"""Failures that a slice would have at least if it failed as its patients do."""
ADDS_Z = 3.0
"""Least statistic of a slice beyond what is listed; less is a restatement."""
MOST_LISTED = 10
LEAST_PATIENTS = 8
"""Patients with failures and other objects that a confirmation needs, half of them held out."""
SAME_SHARE = 0.5
"""Objects in common, of those in either, that make two slices the same finding."""


@dataclass(frozen=True)
class Limits:
    """Which slices are searched.

    Parameters
    ----------
    objects
        Least number of objects of a slice.
    least_share, largest_share
        Least and largest share of all objects.
    """

    objects: int = LEAST_OBJECTS
    least_share: float = LEAST_SHARE
    largest_share: float = LARGEST_SHARE


@dataclass(frozen=True, eq=False)
class Slice:
    """Objects that meet one or two conditions, and how often they fail.

    Parameters
    ----------
    conditions
        One or two.
    rows
        int64 (k,): the objects, by their rows in what was searched.
    failures
        How many of them fail.
    rate, rate_elsewhere
        Share of failures among them, and among all other objects.
    z
        Mantel-Haenszel statistic within patients.
    p
        Family-wise p-value over all slices searched.
    patients, patients_higher
        Patients with objects in the slice and elsewhere, and those of them whose objects fail
        more often in the slice.
    confirmed
        Whether a search in half of the patients found it and the other half confirmed it; None
        if there are too few patients.
    """

    conditions: tuple[Condition, ...]
    rows: IntArray
    failures: int
    rate: float
    rate_elsewhere: float
    z: float
    p: float
    patients: int
    patients_higher: int
    confirmed: bool | None = None

    @property
    def objects(self) -> int:
        """Number of objects."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class SliceSearch:
    """The slices that stand out, and what was searched.

    Parameters
    ----------
    slices
        Those with a family-wise p-value of at most 0.05, without restatements; the one with the
        largest statistic first.
    searched
        Number of slices that were tested.
    objects, failures
        Numbers of objects and failures.
    undefined
        Covariates without a value for any object, and those with one value for all.
    covariates, is_failure, patients
        What was searched.
    """

    slices: tuple[Slice, ...]
    searched: int
    undefined: tuple[str, ...]
    covariates: Covariates
    is_failure: BoolArray
    patients: NDArray[Any]

    @property
    def objects(self) -> int:
        """Number of objects."""
        return len(self.is_failure)

    @property
    def failures(self) -> int:
        """Number of failures."""
        return int(self.is_failure.sum())

    @cached_property
    def curves(self) -> Mapping[str, Curve]:
        """Covariate -> how often objects fail over its values."""
        return {
            name: failure_curve(name, values, self.is_failure, self.patients)
            for name, values in self.covariates.items()
            if name not in self.undefined
        }


# --- the search -------------------------------------------------------------------------------


def search_slices(
    covariates: Covariates,
    is_failure: BoolArray,
    patients: Sequence[Any] | NDArray[Any],
    *,
    limits: Limits | None = None,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
    progress: Progress = UNWATCHED,
) -> SliceSearch:
    """Search all slices of at most two conditions that fail more often than the other objects.

    Parameters
    ----------
    covariates
        Covariate -> (n,): float64, NaN if undefined; or words, empty if undefined.
    is_failure
        bool (n,): which objects fail.
    patients
        (n,): the patient of each object. Slices are compared with the rest within patients, and
        failures are permuted within patients.
    limits
        Which slices are searched; None for the usual ones.
    permutations, seed
        See `napari_panoptic.statistics.max_t.max_t`.
    progress
        Reported to, and checked for cancellation.

    Raises
    ------
    SettingsError
        If covariates, failures and patients differ in length.
    StoppedError
        If cancelled.
    """
    is_failure = np.asarray(is_failure, np.bool_)
    who, strata = np.unique(np.asarray(patients), return_inverse=True)
    for name, values in [*covariates.items(), ("patients", strata)]:
        if len(values) != len(is_failure):
            raise SettingsError(
                f"expected one value of '{name}' for each of {len(is_failure)} objects, found "
                f"{len(values)}"
            )
    alone = [part for name, values in covariates.items() if (part := _parted(name, values))]
    in_pairs = [part.in_pairs(covariates[part.covariate]) for part in alone]
    known = {part.covariate for part in alone}
    undefined = tuple(name for name in covariates if name not in known)
    found = SliceSearch((), 0, undefined, covariates, is_failure, who[strata])
    family, slices = _family(alone, in_pairs, is_failure, strata, limits or Limits())
    if not len(family):
        return found
    tested = max_t(
        family,
        is_failure,
        strata,
        permutations=permutations,
        seed=seed,
        progress=progress.part(0, 0.6),
    )
    work = _Search(family, slices, is_failure, strata)
    chosen = work.distinct(tested.z, np.flatnonzero(tested.p <= SIGNIFICANCE))
    listed = [work.described(k, covariates, tested.z[k], tested.p[k]) for k in chosen]
    if listed:
        halves = _halves(is_failure, strata, seed)
        if halves is not None:
            listed = work.confirmed(listed, halves, permutations, seed, progress.part(0.6, 1))
    return replace(found, slices=tuple(listed), searched=len(family))


@dataclass(frozen=True, eq=False)
class _Partition:
    """A covariate cut into bins, and the conditions that are unions of them."""

    covariate: str
    bins: NDArray[np.int32]  # (n,): of each object
    conditions: tuple[Condition, ...]
    members: BoolArray  # (conditions, bins)

    def in_pairs(self, values: NDArray[Any]) -> _Partition:
        """Leave out the broad conditions, of which pairs are not made."""
        narrow = conditions_on(self.covariate, values, broad=False)
        kept = np.isin(np.arange(len(self.conditions)), [self.conditions.index(c) for c in narrow])
        return replace(self, conditions=narrow, members=self.members[kept])


def _parted(name: str, values: NDArray[Any]) -> _Partition | None:
    """Cut a covariate into bins; None if it does not divide the objects."""
    conditions = conditions_on(name, values)
    if not conditions:
        return None
    # Objects that meet the same conditions are in the same bin.
    code = np.zeros(len(values), np.int64)
    for bit, condition in enumerate(conditions):
        code |= condition.holds(values).astype(np.int64) << bit
    found, bins = np.unique(code, return_inverse=True)
    members = (found >> np.arange(len(conditions))[:, None]) & 1
    return _Partition(name, bins.astype(np.int32), conditions, members.astype(np.bool_))


def _family(
    alone: Sequence[_Partition],
    in_pairs: Sequence[_Partition],
    is_failure: BoolArray,
    strata: IntArray,
    limits: Limits,
) -> tuple[SetFamily, list[tuple[Condition, ...]]]:
    """Return all slices within the limits, as unions of cells, and their conditions."""
    from scipy.sparse import csr_array

    columns: list[NDArray[np.int32]] = []
    blocks: list[csr_array] = []
    slices: list[tuple[Condition, ...]] = []
    for partition in alone:
        columns.append(partition.bins)
        blocks.append(csr_array(partition.members.astype(np.int64)))
        slices += [(condition,) for condition in partition.conditions]
    for one, other in combinations(in_pairs, 2):
        columns.append(one.bins * other.members.shape[1] + other.bins)
        blocks.append(csr_array(np.kron(one.members, other.members).astype(np.int64)))
        slices += [(a, b) for a in one.conditions for b in other.conditions]
    family = _put_together(columns, blocks, len(is_failure))
    objects = np.arange(len(is_failure))
    sizes = family.counts(objects)
    least = max(limits.objects, limits.least_share * len(objects))
    expected = np.zeros(len(family))
    for patient in range(int(strata.max(initial=-1)) + 1):
        own = np.flatnonzero(strata == patient)
        expected += family.counts(own) * is_failure[own].mean()
    kept = np.flatnonzero(
        (sizes >= least)
        & (sizes <= limits.largest_share * len(objects))
        & (expected >= LEAST_EXPECTED)
    )
    return family.part(objects, kept), [slices[k] for k in kept]


def _put_together(
    columns: Sequence[NDArray[np.int32]], blocks: Sequence[csr_array], n: int
) -> SetFamily:
    from scipy.sparse import block_diag, csr_array

    if not blocks:
        return SetFamily(np.zeros((n, 0), np.int32), csr_array((0, 0), dtype=np.int64))
    starts = np.cumsum([0, *(block.shape[1] for block in blocks[:-1])], dtype=np.int32)
    cells = np.stack(columns, axis=1) + starts
    return SetFamily(cells.astype(np.int32), csr_array(block_diag(blocks, format="csr")))


@dataclass(frozen=True, eq=False)
class _Search:
    """Slices, and the objects that they are made of."""

    family: SetFamily
    slices: list[tuple[Condition, ...]]
    is_failure: BoolArray
    strata: IntArray

    def rows(self, k: int) -> IntArray:
        """Return the objects of a slice."""
        cells = self.family.members[[k]].indices
        return np.flatnonzero(np.isin(self.family.cells, cells).any(axis=1))

    def distinct(self, z: FloatArray, candidates: IntArray) -> list[int]:
        """Return the slices that say something that those before them do not, the best first.

        A pair restates its single condition if that is a candidate, and the other condition
        adds nothing among the objects that meet it. A slice restates those listed before if it
        does not stand out among the objects within, and among those outside, of each of them.
        """
        ordered = candidates[np.argsort(-z[candidates], kind="stable")]
        singles = {self.slices[k][0]: k for k in ordered if len(self.slices[k]) == 1}
        listed: list[int] = []
        beside = self.strata
        for k in ordered.tolist():
            own = np.array([k])
            if len(listed) == MOST_LISTED:
                break
            if self._z(own, beside) < ADDS_Z:
                continue
            if any(
                self._z(own, self.strata, self.rows(singles[condition])) < ADDS_Z
                for condition in self.slices[k]
                if len(self.slices[k]) > 1 and condition in singles
            ):
                continue
            listed.append(k)
            inside = np.zeros(len(beside), np.int64)
            inside[self.rows(k)] = 1
            _, beside = np.unique(2 * beside + inside, return_inverse=True)
        return listed

    def _z(self, own: IntArray, strata: IntArray, rows: IntArray | None = None) -> float:
        """Return the statistic of a slice among some objects; 0 where it cannot differ."""
        among = np.arange(len(strata)) if rows is None else rows
        z = stratified_z(self.family.part(among, own), self.is_failure[among], strata[among])
        return float(np.nan_to_num(z[0]))

    def described(self, k: int, covariates: Covariates, z: float, p: float) -> Slice:
        """Return a slice with its figures."""
        rows = self.rows(k)
        inside = np.zeros(len(self.strata), np.bool_)
        inside[rows] = True
        n_patients = int(self.strata.max()) + 1
        counts, failures = (
            np.array(
                [
                    np.bincount(self.strata[part], weights, minlength=n_patients)
                    for part, weights in (
                        (inside, self.is_failure[inside] if of_failures else None),
                        (~inside, self.is_failure[~inside] if of_failures else None),
                    )
                ]
            )
            for of_failures in (False, True)
        )
        both = (counts > 0).all(axis=0)
        rates = failures[:, both] / counts[:, both]
        order = list(covariates)
        return Slice(
            conditions=tuple(sorted(self.slices[k], key=lambda c: order.index(c.covariate))),
            rows=rows,
            failures=int(self.is_failure[inside].sum()),
            rate=float(self.is_failure[inside].mean()),
            rate_elsewhere=float(self.is_failure[~inside].mean()),
            z=float(z),
            p=float(p),
            patients=int(both.sum()),
            patients_higher=int((rates[0] > rates[1]).sum()),
        )

    def confirmed(
        self,
        listed: Sequence[Slice],
        halves: tuple[IntArray, IntArray],
        permutations: int,
        seed: int,
        progress: Progress,
    ) -> list[Slice]:
        """Search half of the patients again, test what is found in the other, and note it."""
        searched, held_out = halves
        among = self.family.part(searched, np.arange(len(self.family)))
        z = stratified_z(among, self.is_failure[searched], self.strata[searched])
        of_half = _Search(among, self.slices, self.is_failure[searched], self.strata[searched])
        candidates = np.flatnonzero(np.nan_to_num(z) >= ADDS_Z)
        best = np.array(of_half.distinct(z, candidates), np.int64)
        tested = max_t(
            self.family.part(held_out, best),
            self.is_failure[held_out],
            self.strata[held_out],
            permutations=permutations,
            seed=seed,
            progress=progress,
        )
        seen = [self.rows(k) for k in best[tested.p <= SIGNIFICANCE].tolist()]
        return [
            replace(own, confirmed=any(_overlap(own.rows, rows) >= SAME_SHARE for rows in seen))
            for own in listed
        ]


def _overlap(a: IntArray, b: IntArray) -> float:
    """Return the objects in both slices as a share of those in either."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


def _halves(is_failure: BoolArray, strata: IntArray, seed: int) -> tuple[IntArray, IntArray] | None:
    """Divide the patients into two halves of about as many objects; None for too few of them."""
    n, m = np.bincount(strata), np.bincount(strata, weights=is_failure)
    tell = np.flatnonzero((m > 0) & (m < n))
    if len(tell) < LEAST_PATIENTS:
        return None
    rng = np.random.default_rng(seed)
    by_size = tell[np.argsort(-n[tell], kind="stable")]
    # Of each two neighbours in size, chance decides which is held out.
    pairs = np.arange(len(by_size)) // 2
    first = rng.integers(0, 2, pairs[-1] + 1)[pairs]
    held_out = by_size[(np.arange(len(by_size)) + first) % 2 == 1]
    is_out = np.isin(strata, held_out)
    return np.flatnonzero(np.isin(strata, tell) & ~is_out), np.flatnonzero(is_out)
