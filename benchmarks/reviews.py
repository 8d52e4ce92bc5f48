"""How often the intervals of planned reviews hold a truth that was planted in all items.

Tables show the share of intervals that hold it with its own interval, and in points the half-width
of the intervals, the root mean square error and the bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import MONUSAC
from benchmarks.measure import (
    Coverage,
    Floats,
    coverage_of,
    print_table,
    repeated,
    share,
)
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.plan.corrected import DECIDED, QUANTITIES, SumPositions
from napari_panoptic.review.plan.design import draw, rows_of
from napari_panoptic.review.plan.estimates import Estimates, ItemVerdict, estimate
from napari_panoptic.review.plan.survey import share_interval, variance_factors
from napari_panoptic.review.plan.units import KINDS, ItemKind, Units, population
from napari_panoptic.values.reading import Reading
from tests.support.review_units import units_of_kinds

STRATIFIED, RANDOM = "stratified", "random"
Ints = NDArray[np.int64]

# By kind of item (TP, misclassified, FN, FP): share of items with the verdicts "prediction right"
# and "both wrong"; and nuclei per tile.
_ITEMS = (ItemKind.TP, ItemKind.MISCLASSIFIED, ItemKind.FN, ItemKind.FP, ItemKind.BACKGROUND)
_SHARES = {
    "usual": ((0.02, 0.01), (0.35, 0.1), (0.25, 0.05), (0.2, 0.05), (0.08, 0.0)),
    "few errors": ((0.01, 0.005), (0.1, 0.05), (0.08, 0.02), (0.05, 0.02), (0.08, 0.0)),
    "many errors": ((0.08, 0.05), (0.5, 0.15), (0.45, 0.1), (0.5, 0.1), (0.2, 0.0)),
}
TRUTHS = {name: dict(zip(_ITEMS, own, strict=True)) for name, own in _SHARES.items()}


@dataclass(frozen=True, eq=False)
class Truth:
    """What is true of each item: a position in `DECIDED`, and a number of nuclei."""

    verdict: Ints
    count: Ints
    figures: Floats  # (Q,), over all classes

    def answers(self, rows: Ints) -> list[ItemVerdict]:
        """Return what a reviewer who knows the truth says of the items of a plan."""
        return [
            ItemVerdict(item, DECIDED[self.verdict[row]], int(self.count[row]))
            for item, row in enumerate(rows.tolist(), start=1)
        ]


def planted(units: Units, shares: Mapping[ItemKind, tuple[float, float]], seed: int) -> Truth:
    """Plant a truth; errors are up to several times as frequent in some patients as in others."""
    rng = np.random.default_rng(seed)
    patients, number = np.unique(units.patient.astype(str), return_inverse=True)
    often = rng.gamma(4, 0.25, len(patients))[number]
    verdict, count = np.zeros((2, len(units)), np.int64)
    for kind, (prediction, neither) in shares.items():
        rows = np.flatnonzero(units.is_kind(kind))
        if kind is ItemKind.BACKGROUND:
            count[rows] = rng.poisson(prediction * often[rows])
            continue
        first = np.minimum(0.7, prediction * often[rows])
        second = np.minimum(0.2, neither * often[rows])
        chance = rng.random(len(rows))
        verdict[rows] = np.where(chance < first, 1, np.where(chance < first + second, 2, 0))
    return truth_of(units, verdict, count)


def truth_of(units: Units, verdict: Ints, count: Ints) -> Truth:
    """Return a truth with its figures."""
    sums = SumPositions(len(units.class_names))
    totals = _values(sums, units, verdict, count).sum(axis=0)
    return Truth(verdict, count, sums.figures(totals)[:, -1])


def _values(sums: SumPositions, units: Units, verdict: Ints, count: Ints) -> Floats:
    values: Floats = sums.of(units)[np.arange(len(units)), verdict]
    tiles = units.is_kind(ItemKind.BACKGROUND)
    values[tiles, sums.lacked] = count[tiles]
    return values


def estimated(units: Units, truth: Truth, n_items: int, seed: int) -> Estimates:
    """Review a stratified plan."""
    plan = draw(units, n_items, seed)
    return estimate(plan, units, truth.answers(rows_of(plan, units)))


def review(units: Units, truth: Truth, design: str, n_items: int, seed: int) -> Floats:
    """Return estimate, low and high of each quantity over all classes, (3, Q)."""
    if design == RANDOM:
        return _random_review(units, truth, n_items, seed)
    rows = estimated(units, truth, n_items, seed).rows
    overall = rows[len(units.class_names) :: len(units.class_names) + 1]
    return np.array([(row.estimate, row.low, row.high) for row in overall]).T


def _random_review(units: Units, truth: Truth, n_items: int, seed: int) -> Floats:
    """Review a simple random sample of all items, estimated as one stratum."""
    rows = np.random.default_rng(seed).choice(len(units), n_items, replace=False)
    sums = SumPositions(len(units.class_names))
    values = _values(sums, units[rows], truth.verdict[rows], truth.count[rows])
    totals = values.sum(axis=0) * len(units) / n_items
    directions = np.nan_to_num(sums.gradient(totals))[:, -1].T
    factor = variance_factors(np.array([len(units)]), np.array([n_items]))
    variance = factor[0] * (values @ directions).var(axis=0, ddof=1)
    middle = sums.figures(totals)[:, -1]
    items, z = np.full(len(middle), float(n_items)), np.full(len(middle), 1.96)
    return np.stack([middle, *share_interval(middle, variance, items, z)])


def coverage(
    units: Units, truth: Truth, design: str, n_items: int, seeds: Sequence[int]
) -> Coverage:
    """Review a truth with several seeds."""
    return coverage_of(truth.figures, partial(review, units, truth, design, n_items), seeds)


def review_coverage(
    cohort: str = MONUSAC,
    teams: str = "",
    truths: str = ",".join(TRUTHS),
    items: int = 200,
    reviews: int = 1000,
) -> None:
    """Truths in the items of a cohort, by stratified plans and simple random samples."""
    opened, rows = open_cohort(Path(cohort)), []
    for team in teams.split(",") if teams else [team.name for team in opened.competing_teams]:
        units = population(opened, Reading(teams=(team,))).units
        for name in truths.split(","):
            truth = planted(units, TRUTHS[name], 1)
            for design in (STRATIFIED, RANDOM):
                found = coverage(units, truth, design, items, range(reviews))
                rows.append([team, name, design, *found.cells()])
    print_table(f"{reviews} reviews of {items} items", ["team", "truth", "", *QUANTITIES], rows)


# --- where this is hard -------------------------------------------------------------------------

SHARES = (0.5, 0.3, 0.15, 0.05)
"""Of the classes among the items."""
ERRORS = (0.1, 0.2, 0.4, 0.8)
"""Share of wrong annotations by class, where classes differ; of TPs a third of it."""
KIND_SHARES = (0.4, 0.08, 0.15, 0.12, 0.25)


def made_up(kind: Ints, patient: Ints, shares: Sequence[float]) -> Units:
    """Return items without pixels, with these outcomes (positions in `KINDS`) and patients."""
    rng = np.random.default_rng(4)
    n_classes = len(shares)
    own = rng.choice(n_classes, len(kind), p=list(shares)) + 1
    classes = own, np.where(kind == 1, own % n_classes + 1, own)
    detail = np.where(kind == 4, "empty", np.where(kind >= 2, "missed", ""))
    iou = rng.uniform(0.5, 1, len(kind))
    return units_of_kinds(tuple("ABCD"[:n_classes]), kind, patient, classes, iou, detail)


def several_classes(n: int = 2000) -> Units:
    """Return items of four classes and five patients."""
    rng = np.random.default_rng(5)
    kind = rng.choice(len(KINDS), n, p=list(KIND_SHARES))
    return made_up(kind, rng.integers(0, 5, n), SHARES)


def differing(units: Units) -> Truth:
    """Plant a truth in which rare classes are annotated much worse."""
    rng = np.random.default_rng(1)
    own = np.where(units.reference_class > 0, units.reference_class, units.prediction_class)
    wrong = np.array([0, *ERRORS])[own] * np.where(units.is_kind(ItemKind.TP), 1 / 3, 1)
    chance = rng.random(len(units))
    verdict = np.where(chance < 0.8 * wrong, 1, np.where(chance < wrong, 2, 0))
    tiles = units.is_kind(ItemKind.BACKGROUND)
    verdict[tiles] = 0
    return truth_of(units, verdict, np.where(tiles, rng.poisson(0.1, len(units)), 0))


def missed_in_one(units: Units, per_tile: float) -> Truth:
    """Plant a truth whose only errors are nuclei without an outline in one patient."""
    rng = np.random.default_rng(1)
    tiles = units.is_kind(ItemKind.BACKGROUND) & (units.patient == "P0")
    count = np.where(tiles, rng.poisson(per_tile, len(units)), 0)
    return truth_of(units, np.zeros(len(units), np.int64), count)


def patients(number: int, unequal: float, seed: int) -> tuple[Units, Truth]:
    """Return a cohort of patients whose size (lognormal), errors and matches differ."""
    rng = np.random.default_rng(seed)
    size = np.maximum(20, rng.lognormal(np.log(250) - unequal**2 / 2, unequal, number)).astype(int)
    patient = np.repeat(np.arange(number), size)
    found = rng.beta(8, 3, number)[patient]
    shares = np.stack([0.6 * found, np.full_like(found, 0.05), 0.6 * (1 - found)])
    shares = np.concatenate([shares, np.full((1, len(found)), 0.12)])
    kind = (rng.random(len(patient)) > np.cumsum(shares, axis=0)).sum(axis=0)
    units = made_up(kind, patient, (0.5, 0.5))
    return units, planted(units, TRUTHS["usual"], seed)


def held_by_others(number: int, unequal: float, seeds: Sequence[int], n_items: int) -> Floats:
    """Return whether each interval for patients like these holds their figures, (seeds, Q)."""
    wanted = patients(3000, unequal, 99)[1].figures

    def trial(seed: int) -> list[bool]:
        units, truth = patients(number, unequal, 1000 * number + seed)
        rows = estimated(units, truth, n_items, seed).rows
        ends = [(row.patients_low, row.patients_high) for row in rows if row.class_name == "all"]
        pairs = zip(ends, wanted, strict=True)
        return [low <= figure <= high for (low, high), figure in pairs]

    return repeated(trial, seeds)


@dataclass(frozen=True, eq=False)
class ClassRates:
    """Annotation error rates of classes in several reviews."""

    truth: Floats  # (C,)
    found: Floats  # (reviews, C, 3): estimate, low and high; NaN without a reviewed object

    @property
    def is_defined(self) -> NDArray[np.bool_]:
        """Whether each review has an estimate of each class (reviews, C)."""
        return ~np.isnan(self.found[..., 0])

    @property
    def covered(self) -> Floats:
        """The share of intervals that hold the truth, among those that are defined (C,)."""
        low, high = self.found[..., 1], self.found[..., 2]
        is_held = (low <= self.truth + 1e-9) & (self.truth - 1e-9 <= high)
        return np.asarray(is_held.sum(axis=0) / self.is_defined.sum(axis=0))


def class_rates(units: Units, truth: Truth, n_items: int, seeds: Sequence[int]) -> ClassRates:
    """Review a truth with several seeds; only the error rates of classes."""
    sums = SumPositions(len(units.class_names))
    totals = _values(sums, units, truth.verdict, truth.count).sum(axis=0)

    def trial(seed: int) -> Floats:
        rows = estimated(units, truth, n_items, seed).rows[: len(units.class_names)]
        return np.array([(row.estimate, row.low, row.high) for row in rows])

    return ClassRates(sums.figures(totals)[0, :-1], repeated(trial, seeds))


def review_small(reviews: int = 400) -> None:
    """Small plans, rare classes, nuclei that one patient lacks, and figures of other patients."""
    units, seeds, rows = several_classes(), range(reviews), []
    cases = {
        "usual": (planted(units, TRUTHS["usual"], 1), (12, 20, 40, 100, 200)),
        "classes differ": (differing(units), (12, 20, 40, 100, 200)),
        "0.3 missed per tile, in one of five": (missed_in_one(units, 0.3), (100, 200)),
        "1 missed per tile, in one of five": (missed_in_one(units, 1.0), (40, 100, 200)),
        "3 missed per tile, in one of five": (missed_in_one(units, 3.0), (40, 100, 200)),
    }
    for name, (truth, sizes) in cases.items():
        for n_items in sizes:
            found = coverage(units, truth, STRATIFIED, n_items, seeds)
            rows.append([name, n_items, *found.cells()])
    print_table(f"{reviews} reviews", ["truth", "items", *QUANTITIES], rows)
    rows = []
    for name, (truth, sizes) in list(cases.items())[:2]:
        for n_items in sizes:
            rates = class_rates(units, truth, n_items, seeds)
            shares = zip(rates.covered, rates.is_defined.mean(axis=0), strict=True)
            rows.append([name, n_items, *(f"{own:.1%} of {there:.0%}" for own, there in shares)])
    title = "Error rates of classes: intervals that hold, of reviews with an object of the class"
    print_table(title, ["truth", "items", *units.class_names], rows)
    rows = []
    for unequal in (0.0, 0.7, 1.2):
        for number in (5, 8, 15):
            held = held_by_others(number, unequal, seeds, 150)
            rows.append([unequal, number, *map(share, held.T)])
    header = ["sigma of log size", "patients", *QUANTITIES]
    print_table("Figures of patients like these, 150 items", header, rows)
