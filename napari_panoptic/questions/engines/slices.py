"""Finds slices: objects that meet one or two conditions and fail more often than the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.questions.engines.slice_conditions import (
    Curve,
    SliceCondition,
    conditions_on,
    failure_curve,
)
from napari_panoptic.statistics.max_t import (
    PERMUTATIONS,
    SEED,
    SetFamily,
    max_t,
    set_z,
    stratified_z,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Covariates = Mapping[str, NDArray[Any]]

SIGNIFICANCE = 0.05
LEAST_PERMUTATIONS = 19
"""With fewer, no p-value can be as low as `SIGNIFICANCE`: the least is 1 / (permutations + 1)."""
LEAST_OBJECTS, LEAST_SHARE, LARGEST_SHARE = 30, 0.02, 0.8
"""Least number of objects of a slice, and its least and largest share of all objects."""
LEAST_EXPECTED = 1.0
"""Least number of failures that a slice would have at the failure rates of its patients."""
ADDS_Z = 3.0
"""Least statistic of a slice given the slices listed before; with less it restates them."""
NOMINATED_Z = 2.0
"""Least statistic of a slice in one half of the patients to be tested in the other half."""
MOST_LISTED = 10
LEAST_PATIENTS = 6
"""Least number of patients with failures and other objects; a confirmation holds out half."""
SAME_SHARE = 0.5
"""Two slices are the same finding if their objects have at least this Jaccard index."""


@dataclass(frozen=True)
class Limits:
    """Limits on the slices that are searched."""

    #: Least number of objects of a slice.
    objects: int = LEAST_OBJECTS
    #: Least and largest share of all objects.
    least_share: float = LEAST_SHARE
    largest_share: float = LARGEST_SHARE


@dataclass(frozen=True, eq=False)
class Slice:
    """Objects that meet one or two conditions, and how often they fail."""

    #: One or two.
    conditions: tuple[SliceCondition, ...]
    #: int64 (k,): the rows of the objects in the table that was searched.
    rows: IntArray
    #: Number of them that fail.
    failures: int
    #: Share of failures among them, and among all other objects.
    rate: float
    rate_elsewhere: float
    #: Share of failures among them if they failed as often as all objects of their patients.
    rate_expected: float
    #: Mantel-Haenszel statistic within patients.
    z: float
    #: Family-wise p-value over all slices searched.
    p: float
    #: Number of patients with objects both in the slice and elsewhere, and number of those whose
    #: objects fail more often in the slice.
    patients: int
    patients_higher: int
    #: Whether a search in one half of the patients finds the slice and the other half confirms it.
    #: None if there are too few patients, or too few failures in the other half.
    confirmed: bool | None = None

    @property
    def objects(self) -> int:
        """Number of objects."""
        return len(self.rows)

    @property
    def excess(self) -> float:
        """Difference of the rates in the slice and elsewhere."""
        return self.rate - self.rate_elsewhere


@dataclass(frozen=True, eq=False)
class SliceSearch:
    """The significant slices, and the data that were searched.

    Parameters
    ----------
    objects, failures
        Numbers of objects and failures.
    """

    #: Slices with a family-wise p-value of at most 0.05 that do not restate others, by descending
    #: statistic.
    slices: tuple[Slice, ...]
    #: Number of slices that were tested.
    searched: int
    #: Covariates that are undefined for all objects, or have the same value for all.
    undefined: tuple[str, ...]
    #: The data that were searched.
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

    def certain_with(self, row: int) -> list[Slice]:
        """Return the certain slices with an object, that of the largest difference of rates first.

        Left out are those that held-out patients do not confirm, and those that fail more often
        within patients only, but less often than all other objects.
        """
        certain = [own for own in self.slices if own.confirmed is not False and own.excess > 0]
        holding = [own for own in certain if row in own.rows]
        return sorted(holding, key=lambda own: -own.excess)

    @cached_property
    def curves(self) -> Mapping[str, Curve]:
        """Covariate -> failure rate by its values."""
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
        bool (n,): whether each object fails.
    patients
        (n,): the patient of each object. Slices are compared with the other objects of the same
        patients, and failures are permuted within patients.
    limits
        Limits on the slices; None for the default.
    permutations, seed
        See `napari_panoptic.statistics.max_t.max_t`.
    progress
        Reported to, and checked for cancellation.

    Raises
    ------
    SettingsError
        If covariates, failures and patients differ in length, or for fewer than
        `LEAST_PERMUTATIONS`.
    StoppedError
        If cancelled.
    """
    if permutations < LEAST_PERMUTATIONS:
        raise SettingsError(
            f"expected at least {LEAST_PERMUTATIONS} permutations, found {permutations}: with "
            f"fewer, no slice can have a p-value of {SIGNIFICANCE}"
        )
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
    held = {c: c.holds(covariates[c.covariate]) for part in alone for c in part.conditions}
    work = _Search(family, slices, held, is_failure, strata)
    chosen = work.distinct(tested.z, np.flatnonzero(tested.p <= SIGNIFICANCE))
    listed = [work.described(k, tested.z[k], tested.p[k]) for k in chosen]
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
    conditions: tuple[SliceCondition, ...]
    members: BoolArray  # (conditions, bins)

    def in_pairs(self, values: NDArray[Any]) -> _Partition:
        """Leave out the broad conditions, which are not combined in pairs."""
        narrow = conditions_on(self.covariate, values, broad=False)
        kept = [condition in narrow for condition in self.conditions]
        return replace(self, conditions=narrow, members=self.members[kept])


def _parted(name: str, values: NDArray[Any]) -> _Partition | None:
    """Divide a covariate into bins; None if all objects are in one bin."""
    conditions = conditions_on(name, values)
    if not conditions:
        return None
    # Objects that meet the same conditions share a bin.
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
) -> tuple[SetFamily, list[tuple[SliceCondition, ...]]]:
    """Return all slices within the limits, as unions of cells, and their conditions."""
    from scipy.sparse import csr_array

    columns: list[NDArray[np.int32]] = []
    blocks: list[csr_array] = []
    slices: list[tuple[SliceCondition, ...]] = []
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
    """Slices, and their objects."""

    family: SetFamily
    slices: list[tuple[SliceCondition, ...]]
    held: Mapping[SliceCondition, BoolArray]  # (n,): whether each object meets the condition
    is_failure: BoolArray
    strata: IntArray

    def part(self, rows: IntArray) -> _Search:
        """Return the same slices for a subset of the objects."""
        return _Search(
            self.family.part(rows, np.arange(len(self.slices))),
            self.slices,
            {condition: held[rows] for condition, held in self.held.items()},
            self.is_failure[rows],
            self.strata[rows],
        )

    def inside(self, conditions: tuple[SliceCondition, ...]) -> BoolArray:
        """Return bool (n,): whether each object is in a slice."""
        inside: BoolArray = np.all([self.held[condition] for condition in conditions], axis=0)
        return inside

    def distinct(self, z: FloatArray, candidates: IntArray) -> list[int]:
        """Return the slices that do not restate better ones, the best first.

        A pair restates its single condition if that is a candidate too, and the other condition
        adds nothing among the objects that meet it. A slice restates the slices listed before it if
        it stands out neither among the objects inside each of them nor among those outside. It also
        restates a listed slice that differs in thresholds only, if one of the two contains the
        other.
        """
        if not len(candidates):
            return []
        ordered = candidates[np.argsort(-z[candidates], kind="stable")].tolist()
        singles = {self.slices[k] for k in ordered if len(self.slices[k]) == 1}
        # In a small family, a smaller statistic is significant.
        adds = min(ADDS_Z, float(z[candidates].min()))
        listed: list[int] = []
        beside = self.strata
        for k in ordered:
            inside = self.inside(self.slices[k])
            if (
                not set_z(inside, self.is_failure, beside) >= adds  # or undefined
                or any(self._nested(k, other) for other in listed)
                or self._restates(k, singles, adds)
            ):
                continue
            listed.append(k)
            if len(listed) == MOST_LISTED:
                break
            _, beside = np.unique(2 * beside + inside, return_inverse=True)
        return listed

    def _restates(self, k: int, singles: Set[tuple[SliceCondition, ...]], adds: float) -> bool:
        """Return whether a pair adds nothing to one of its conditions alone."""
        if len(self.slices[k]) == 1:
            return False
        one, other = self.slices[k]
        return any(
            (single,) in singles and not self._adds(second, single, adds)
            for single, second in ((one, other), (other, one))
        )

    def _adds(self, second: SliceCondition, single: SliceCondition, adds: float) -> bool:
        """Return whether a second condition raises the failure rate further."""
        held = self.held[single]
        z = set_z(self.held[second][held], self.is_failure[held], self.strata[held])
        if not np.isnan(z):
            return z >= adds
        # The value is the same for whole patients: test the single condition in the others.
        rest = ~self.held[second]
        return not set_z(held[rest], self.is_failure[rest], self.strata[rest]) >= NOMINATED_Z

    def _nested(self, k: int, other: int) -> bool:
        """Return whether two slices differ in thresholds only, and one contains the other."""
        covariates = ([c.covariate for c in self.slices[number]] for number in (k, other))
        if len({tuple(names) for names in covariates}) > 1:
            return False
        one, two = self.inside(self.slices[k]), self.inside(self.slices[other])
        return not (one & ~two).any() or not (two & ~one).any()

    def described(self, k: int, z: float, p: float) -> Slice:
        """Return a slice with its figures."""
        inside = self.inside(self.slices[k])
        n_patients = int(self.strata.max()) + 1
        cells = 2 * self.strata + inside
        objects = np.bincount(cells, minlength=2 * n_patients).reshape(-1, 2)
        failures = np.bincount(cells, self.is_failure, 2 * n_patients).reshape(-1, 2)
        both = (objects > 0).all(axis=1)
        rates = failures[both] / objects[both]
        expected = objects[:, 1] * failures.sum(axis=1) / objects.sum(axis=1)
        return Slice(
            conditions=self.slices[k],
            rows=np.flatnonzero(inside),
            failures=int(failures[:, 1].sum()),
            rate=float(failures[:, 1].sum() / objects[:, 1].sum()),
            rate_elsewhere=float(failures[:, 0].sum() / objects[:, 0].sum()),
            rate_expected=float(expected.sum() / objects[:, 1].sum()),
            z=float(z),
            p=float(p),
            patients=int(both.sum()),
            patients_higher=int((rates[:, 1] > rates[:, 0]).sum()),
        )

    def confirmed(
        self,
        listed: Sequence[Slice],
        halves: tuple[IntArray, IntArray],
        permutations: int,
        seed: int,
        progress: Progress,
    ) -> list[Slice]:
        """Search one half of the patients, and record which slices the other half confirms."""
        searched, held_out = (self.part(rows) for rows in halves)
        z = stratified_z(searched.family, searched.is_failure, searched.strata)
        best = searched.distinct(z, np.flatnonzero(np.nan_to_num(z) >= NOMINATED_Z))
        tested = max_t(
            held_out.family.part(np.arange(len(halves[1])), np.array(best, np.int64)),
            held_out.is_failure,
            held_out.strata,
            permutations=permutations,
            seed=seed,
            progress=progress,
        )
        found = [
            np.flatnonzero(self.inside(self.slices[k]))
            for k, p in zip(best, tested.p, strict=True)
            if p <= SIGNIFICANCE
        ]
        return [
            replace(own, confirmed=any(_overlap(own.rows, rows) >= SAME_SHARE for rows in found))
            if held_out.expected(own.conditions) >= LEAST_EXPECTED
            else own
            for own in listed
        ]

    def expected(self, conditions: tuple[SliceCondition, ...]) -> float:
        """Return the failures expected in a slice at the failure rates of its patients."""
        _, place = np.unique(self.strata, return_inverse=True)
        rate = np.bincount(place, self.is_failure) / np.bincount(place)
        return float(rate[place][self.inside(conditions)].sum())


def _overlap(a: IntArray, b: IntArray) -> float:
    """Return the Jaccard index of the objects of two slices."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


def _halves(is_failure: BoolArray, strata: IntArray, seed: int) -> tuple[IntArray, IntArray] | None:
    """Divide the patients into halves with similar numbers of objects; None for too few."""
    n, m = np.bincount(strata), np.bincount(strata, weights=is_failure)
    tell = np.flatnonzero((m > 0) & (m < n))
    if len(tell) < LEAST_PATIENTS:
        return None
    rng = np.random.default_rng(seed)
    by_size = tell[np.argsort(-n[tell], kind="stable")]
    # Of each two patients of similar size, one is held out at random.
    pairs = np.arange(len(by_size)) // 2
    first = rng.integers(0, 2, pairs[-1] + 1)[pairs]
    held_out = by_size[(np.arange(len(by_size)) + first) % 2 == 1]
    is_out = np.isin(strata, held_out)
    return np.flatnonzero(np.isin(strata, tell) & ~is_out), np.flatnonzero(is_out)
