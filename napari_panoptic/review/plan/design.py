"""The plan of a review: strata, how many items each gets, and which.

Every item has a random number that depends only on the seed and on the item. The items with the
smallest numbers of a stratum are its sample: a simple random sample without replacement, which a
larger sample contains (permanent random numbers; Ohlsson, in Business Survey Methods, Wiley 1995).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.review.identity import LARGEST_PX, LARGEST_WHOLE
from napari_panoptic.review.plan.survey import allocation
from napari_panoptic.review.plan.units import (
    KINDS,
    NO_ID,
    SIDES,
    SUSPECT,
    IntArray,
    ItemKind,
    ItemSide,
    StrArray,
    Units,
)

RARE = 20
"""Causes with fewer objects of a team, status and class share a stratum."""
LEAST_PER_STRATUM = 2
OTHER = "other"
"""The name of rare causes together."""
_LEAST_PROBABILITY = 1e-12
"""No item of a population that fits into memory is less likely to be drawn."""
_MOST_CLASSES = 2**15 - 1

ASSUMED_ERRORS: Mapping[ItemKind, float] = {
    ItemKind.TP: 0.05,
    ItemKind.MISCLASSIFIED: 0.3,
    ItemKind.FN: 0.3,
    ItemKind.FP: 0.3,
    ItemKind.BACKGROUND: 0.1,
}
"""Share of items at which the annotation is expected to be wrong, before any verdict."""
ASSUMED_SUSPECT_ERRORS = 0.5
"""The same of items whose annotation is suspect; nuclei per tile."""
SUSPECT_WEIGHT = 3.0
"""How much more of the suspects are drawn than precision asks for: they are errors to be found."""


class StratumLevel(StrEnum):
    """How finely the population is stratified; each level joins strata of the one before."""

    CAUSE = "cause"  # team, status, cause, class; background empty or partly covered
    CLASS = "class"  # team, status, class; background
    STATUS = "status"  # team, status; background
    # Suspects of a status are apart at every level, and not by cause.


LEVELS = tuple(StratumLevel)


@dataclass(frozen=True, eq=False)
class Strata:
    """A population cut into strata."""

    #: How finely the population is stratified.
    level: StratumLevel
    #: H names, sorted.
    names: tuple[str, ...]
    #: int64 (n,): position of each item's stratum in the names.
    of_unit: IntArray
    #: The outcome that all items of a stratum share (H,).
    kinds: tuple[ItemKind, ...]
    #: Whether its items are suspect (H,).
    suspect: tuple[bool, ...]

    @cached_property
    def sizes(self) -> IntArray:
        """Items in each stratum (H,)."""
        return np.bincount(self.of_unit, minlength=len(self.names))

    def count(self, rows: IntArray) -> IntArray:
        """Count some items of the population in each stratum (H,)."""
        return np.bincount(self.of_unit[rows], minlength=len(self.names))


@dataclass(frozen=True, eq=False)
class Plan:
    """The items of a review, in the order in which they are reviewed."""

    #: The drawn items; item k of the plan is row k - 1.
    units: Units
    #: Name of each item's stratum (n,).
    stratum: tuple[str, ...]
    #: float64 (n,): inclusion probability: drawn items over all items of the stratum.
    probability: NDArray[np.float64]
    #: How finely the population was stratified.
    level: StratumLevel
    #: The seed; None if unknown, as in a plan read from a table.
    seed: int | None = None

    def __len__(self) -> int:
        """Count the items."""
        return len(self.units)

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams of the items, sorted."""
        return tuple(sorted(set(self.units.team)))

    def drawn(self, strata: Strata) -> IntArray:
        """Return the number of items drawn from each stratum (H,)."""
        number = {name: position for position, name in enumerate(strata.names)}
        numbers = np.array([number[name] for name in self.stratum], np.int64)
        return np.bincount(numbers, minlength=len(strata.names))


def checked_plan(plan: Plan) -> Plan:
    """Return a plan that was read from a file if this program can have written it.

    Raises
    ------
    ValueError
        If it is no plan, with the reason.
    """
    units, n = plan.units, len(plan.units)
    names = (units.team, units.patient, units.region, units.detail, plan.stratum)
    numbers = (units.side, units.kind, units.y_px, units.x_px, units.iou, plan.probability)
    classes = (units.reference_class, units.prediction_class)
    if {len(each) for each in (*names, *numbers, *classes)} != {n}:
        raise ValueError("expected a value for each item, found others")
    if not all(type(name) is str for column in names for name in column):
        raise ValueError("expected texts as names")
    if len(units.class_names) > _MOST_CLASSES:
        raise ValueError(f"expected up to {_MOST_CLASSES} classes, found {len(units.class_names)}")
    for what, column, lowest, highest in (
        ("side", units.side, 0, len(SIDES) - 1),
        ("kind", units.kind, 0, len(KINDS) - 1),
        ("y_px", units.y_px, -LARGEST_PX, LARGEST_PX),
        ("x_px", units.x_px, -LARGEST_PX, LARGEST_PX),
        ("iou", units.iou, 0, 1),
        ("probability", plan.probability, _LEAST_PROBABILITY, 1),
        ("class", np.concatenate(classes), 0, len(units.class_names)),
        ("seed", np.array([plan.seed or 0]), 0, math.inf),
    ):
        is_wrong = ~((column >= lowest) & (column <= highest))
        if is_wrong.any():
            wrong = column[is_wrong][0]
            raise ValueError(f"expected {what} from {lowest} to {highest}, found {wrong}")
    is_tile = units.side == SIDES.index(ItemSide.BACKGROUND)
    if not np.where(
        is_tile, units.id == NO_ID, (units.id >= 0) & (units.id <= LARGEST_WHOLE)
    ).all():
        raise ValueError("expected an id for each object and for no tile")
    if len(set(units.keys)) < n:
        raise ValueError("several items are the same object or tile")
    return plan


def stratified(units: Units, level: StratumLevel) -> Strata:
    """Cut a population into strata that depend on nothing but its outcomes.

    Parameters
    ----------
    units
        The population.
    level
        How finely.
    """
    kinds = np.array([str(kind) for kind in KINDS], object)[units.kind]
    keys = list(zip(units.team, kinds, *_finer(units, level), strict=True))
    names = ["/".join(part for part in key if part) for key in keys]
    ordered = sorted(set(names))
    number = {name: position for position, name in enumerate(ordered)}
    kind_of = dict(zip(names, kinds, strict=True))
    is_suspect = dict(zip(names, units.is_suspect.tolist(), strict=True))
    return Strata(
        level,
        tuple(ordered),
        np.array([number[name] for name in names], np.int64),
        tuple(ItemKind(kind_of[name]) for name in ordered),
        tuple(is_suspect[name] for name in ordered),
    )


def least_items(units: Units) -> int:
    """Return the size of the smallest plan with enough items in each of the coarsest strata."""
    return min(len(units), LEAST_PER_STRATUM * len(stratified(units, StratumLevel.STATUS).names))


def _finer(units: Units, level: StratumLevel) -> list[StrArray]:
    """Return the parts of a stratum's name after team and status: suspect, detail and class."""
    is_suspect = units.is_suspect
    mark = np.where(is_suspect, np.array(SUSPECT, object), "")
    if level is StratumLevel.STATUS:
        return [mark]
    classes = np.array(["", *units.class_names], object)
    class_index = np.where(units.reference_class > 0, units.reference_class, units.prediction_class)
    if level is StratumLevel.CLASS:
        return [mark, np.where(is_suspect, "", classes[class_index])]
    details = _details(units, class_index)
    is_joined = is_suspect & (details == OTHER)
    return [mark, details, np.where(is_joined, "", classes[class_index])]


def _details(units: Units, own_class: NDArray[np.int16]) -> StrArray:
    """Return the causes, with the rare ones of a team, status and class as one.

    Suspects are joined over causes, and the rare ones of a team and status over classes.
    """
    details = np.where(units.is_suspect, np.array(SUSPECT, object), units.detail)
    groups = list(zip(units.team, units.kind.tolist(), own_class.tolist(), details, strict=True))
    counts = Counter(groups)
    is_unmatched = (units.is_kind(ItemKind.FN) | units.is_kind(ItemKind.FP)).tolist()
    joined = [
        OTHER if (may_join or is_suspect) and counts[group] < RARE else _cause(group[-1])
        for group, may_join, is_suspect in zip(
            groups, is_unmatched, units.is_suspect.tolist(), strict=True
        )
    ]
    return np.array(joined, object)


def _cause(detail: str) -> str:
    return "" if detail == SUSPECT else detail


def draw(units: Units, n_items: int, seed: int) -> Plan:
    """Draw a plan: a stratified sample in random order.

    The finest level of strata is used at which two items per stratum take at most half of the
    items. The rest is distributed by Neyman's allocation, with standard deviations that follow
    from `ASSUMED_ERRORS`.

    Parameters
    ----------
    units
        The population.
    n_items
        Number of items; all items if there are fewer.
    seed
        The seed. The same seed and population give the same plan.

    Raises
    ------
    SettingsError
        If there is nothing to draw, or if a stratum of the coarsest level would get no item.
    """
    if not len(units):
        raise SettingsError("there is nothing to review: no region has predictions of the teams")
    for level in LEVELS:
        strata = stratified(units, level)
        least = np.minimum(strata.sizes, LEAST_PER_STRATUM)
        if n_items >= 2 * least.sum() or n_items >= len(units):
            break
    else:
        if n_items < least.sum():
            least = np.minimum(strata.sizes, 1)
        if n_items < least.sum():
            raise SettingsError(
                f"--items: expected at least {least.sum()}, one for each outcome of each team and "
                f"one for background; found {n_items}"
            )
    drawn = allocation(strata.sizes, _spreads(strata), n_items, least)
    rows = _sample(units, strata, drawn, seed)
    return plan_of(units, strata, _shuffled(units, rows, seed), seed)


def extend(plan: Plan, units: Units, n_items: int) -> Plan:
    """Draw more items for a plan, after those that it has.

    Items keep their numbers and order. All probabilities are those of the larger sample: they are
    what a plan of that size from the start would have in the same strata.

    Parameters
    ----------
    plan
        A plan with its seed, drawn from this population.
    units
        The population.
    n_items
        Number of items after the extension; the plan is returned if it has as many.

    Raises
    ------
    SettingsError
        If the seed is unknown, or the plan was not drawn from this population.
    """
    if n_items <= len(plan):
        return plan
    if plan.seed is None:
        raise SettingsError("a plan can only be extended with its seed; give --seed")
    strata = stratified(units, plan.level)
    before = rows_of(plan, units)
    drawn = allocation(strata.sizes, _spreads(strata), n_items, strata.count(before))
    rows = _sample(units, strata, drawn, plan.seed)
    added = _shuffled(units, rows[~np.isin(rows, before)], plan.seed)
    return plan_of(units, strata, np.concatenate([before, added]), plan.seed)


def with_seed(plan: Plan, units: Units, seed: int) -> Plan:
    """Return a plan with its seed, after a check that this is the seed.

    Parameters
    ----------
    plan
        A plan without a seed, as a table has it.
    units
        The population.
    seed
        The seed with which it was drawn.

    Raises
    ------
    SettingsError
        If the plan was drawn with another seed, or from another population.
    """
    strata, rows = stratified(units, plan.level), rows_of(plan, units)
    if not np.array_equal(np.sort(rows), _sample(units, strata, strata.count(rows), seed)):
        raise SettingsError(
            f"the plan was not drawn with the seed {seed} from this cohort; give the seed, cohort "
            f"and options with which it was drawn"
        )
    return replace(plan, seed=seed)


def rows_of(plan: Plan, units: Units) -> IntArray:
    """Return the row of each item in a population.

    Raises
    ------
    SettingsError
        If an item is not there: the cohort or the settings have changed.
    """
    row = {key: number for number, key in enumerate(units.keys)}
    missing = [k for k, key in enumerate(plan.units.keys, start=1) if key not in row]
    if missing:
        raise SettingsError(
            f"{len(missing)} of {len(plan)} items of the plan, the first being item {missing[0]}, "
            f"are not in this cohort; give the cohort and options with which it was drawn"
        )
    return np.array([row[key] for key in plan.units.keys], np.int64)


def plan_of(units: Units, strata: Strata, rows: IntArray, seed: int | None = None) -> Plan:
    """Return the plan of some rows of a population, in their order."""
    stratum = strata.of_unit[rows]
    return Plan(
        units[rows],
        tuple(strata.names[number] for number in stratum.tolist()),
        strata.count(rows)[stratum] / strata.sizes[stratum],
        strata.level,
        seed,
    )


def assumed_errors(kind: ItemKind, is_suspect: bool) -> float:
    """Return the share of items at which the annotation is expected to be wrong."""
    return ASSUMED_SUSPECT_ERRORS if is_suspect else ASSUMED_ERRORS[kind]


def _spreads(strata: Strata) -> NDArray[np.float64]:
    """Return the expected standard deviation of verdicts in each stratum, larger for suspects."""
    shares = np.array(list(map(assumed_errors, strata.kinds, strata.suspect)))
    weights = np.where(strata.suspect, SUSPECT_WEIGHT, 1.0)
    result: NDArray[np.float64] = weights * np.sqrt(shares * (1 - shares))
    return result


def _sample(units: Units, strata: Strata, drawn: IntArray, seed: int) -> IntArray:
    """Return the rows with the smallest random numbers of each stratum."""
    order = np.lexsort((_random(units.keys, seed, "draw"), strata.of_unit))
    starts = np.concatenate([[0], np.cumsum(strata.sizes)[:-1]])
    place = np.arange(len(units)) - starts[strata.of_unit[order]]
    return np.sort(order[place < drawn[strata.of_unit[order]]])


def _shuffled(units: Units, rows: IntArray, seed: int) -> IntArray:
    numbers = _random([units.keys[row] for row in rows.tolist()], seed, "order")
    return rows[np.argsort(numbers, kind="stable")]


def _random(keys: Sequence[str], seed: int, purpose: str) -> NDArray[np.uint64]:
    """Return a random number of each item, the same on every machine and in every order."""
    key = f"{purpose} {seed}".encode()[:64]
    digests = (
        blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8, key=key) for name in keys
    )
    return np.frombuffer(b"".join(digest.digest() for digest in digests), "<u8")
