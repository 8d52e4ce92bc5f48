"""How often the intervals of planned reviews hold the truth.

A truth is planted in every object and tile of a cohort: patients differ in how often the
annotation is wrong. It is reviewed many times, each time with another seed, by plans of equal
size: stratified, and simple random samples of all items.

    python -m benchmarks.review_coverage COHORT [--reviews 1000] [--items 200] [--teams A,B]
        [--truths "usual" "few errors" "many errors"]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.plan.corrected import DECIDED, QUANTITIES, SumPositions
from napari_panoptic.review.plan.design import draw, rows_of
from napari_panoptic.review.plan.estimates import ItemVerdict, estimate
from napari_panoptic.review.plan.survey import share_interval, variance_factors
from napari_panoptic.review.plan.units import ItemKind, Units, population

STRATIFIED, RANDOM = "stratified", "random"
DESIGNS = (STRATIFIED, RANDOM)
FloatArray = NDArray[np.float64]

# Share of items with the verdicts "prediction right" and "both wrong", and nuclei per tile.
TRUTHS: Mapping[str, Mapping[ItemKind, tuple[float, float]]] = {
    "usual": {
        ItemKind.TP: (0.02, 0.01),
        ItemKind.MISCLASSIFIED: (0.35, 0.1),
        ItemKind.FN: (0.25, 0.05),
        ItemKind.FP: (0.2, 0.05),
        ItemKind.BACKGROUND: (0.08, 0.0),
    },
    "few errors": {
        ItemKind.TP: (0.01, 0.005),
        ItemKind.MISCLASSIFIED: (0.1, 0.05),
        ItemKind.FN: (0.08, 0.02),
        ItemKind.FP: (0.05, 0.02),
        ItemKind.BACKGROUND: (0.08, 0.0),
    },
    "many errors": {
        ItemKind.TP: (0.08, 0.05),
        ItemKind.MISCLASSIFIED: (0.5, 0.15),
        ItemKind.FN: (0.45, 0.1),
        ItemKind.FP: (0.5, 0.1),
        ItemKind.BACKGROUND: (0.2, 0.0),
    },
}


@dataclass(frozen=True, eq=False)
class Truth:
    """What is true of each item: a position in `DECIDED`, and a number of nuclei."""

    verdict: NDArray[np.int64]
    count: NDArray[np.int64]
    figures: FloatArray  # (Q,), over all classes


@dataclass(frozen=True, eq=False)
class Coverage:
    """The reviews of one truth by one design, per quantity (Q,)."""

    truth: FloatArray
    covered: FloatArray
    mean: FloatArray
    half_width: FloatArray


def planted(units: Units, shares: Mapping[ItemKind, tuple[float, float]], seed: int) -> Truth:
    """Plant a truth; errors are up to several times as frequent in some patients as in others."""
    rng = np.random.default_rng(seed)
    patients, number = np.unique(units.patient.astype(str), return_inverse=True)
    often = rng.gamma(4, 0.25, len(patients))[number]
    verdict, count = np.zeros(len(units), np.int64), np.zeros(len(units), np.int64)
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


def truth_of(units: Units, verdict: NDArray[np.int64], count: NDArray[np.int64]) -> Truth:
    """Return a truth with its figures."""
    sums = SumPositions(len(units.class_names))
    totals = _values(sums, units, verdict, count).sum(axis=0)
    return Truth(verdict, count, sums.figures(totals)[:, -1])


def review(units: Units, truth: Truth, design: str, n_items: int, seed: int) -> FloatArray:
    """Return estimate, low and high of each quantity over all classes, (3, Q)."""
    if design == RANDOM:
        return _random_review(units, truth, n_items, seed)
    plan = draw(units, n_items, seed)
    rows = rows_of(plan, units)
    answers = [
        ItemVerdict(item, DECIDED[truth.verdict[row]], int(truth.count[row]))
        for item, row in enumerate(rows.tolist(), start=1)
    ]
    found = estimate(plan, units, answers).rows
    overall = found[len(units.class_names) :: len(units.class_names) + 1]
    return np.array([(row.estimate, row.low, row.high) for row in overall]).T


def coverage(
    units: Units, truth: Truth, design: str, n_items: int, seeds: Sequence[int]
) -> Coverage:
    """Review a truth with several seeds; an undefined interval does not hold the truth."""
    found = np.array([review(units, truth, design, n_items, seed) for seed in seeds])
    middle, low, high = found.swapaxes(0, 1)
    is_held = (low <= truth.figures + 1e-12) & (high >= truth.figures - 1e-12)
    return Coverage(
        truth.figures,
        is_held.mean(axis=0),
        np.nanmean(middle, axis=0),
        np.nanmean(high - low, axis=0) / 2,
    )


def _values(
    sums: SumPositions, units: Units, verdict: NDArray[np.int64], count: NDArray[np.int64]
) -> FloatArray:
    values = sums.of(units)[np.arange(len(units)), verdict]
    tiles = units.is_kind(ItemKind.BACKGROUND)
    values[tiles, sums.lacked] = count[tiles]
    return values


def _random_review(units: Units, truth: Truth, n_items: int, seed: int) -> FloatArray:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path)
    parser.add_argument("--reviews", type=int, default=1000)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--teams", help="separated by commas (default: all)")
    parser.add_argument("--truths", nargs="+", choices=TRUTHS, default=list(TRUTHS))
    options = parser.parse_args()
    cohort = open_cohort(options.cohort)
    usual = [team.name for team in cohort.competing_teams]
    teams = options.teams.split(",") if options.teams else usual
    names = " | ".join(map(str, QUANTITIES))
    print(f"| team | truth | design | {names} |")
    print("|---" * (3 + len(QUANTITIES)) + "|")
    for team in teams:
        units = population(cohort, (team,)).units
        for name in options.truths:
            truth = planted(units, TRUTHS[name], 1)
            for design in DESIGNS:
                found = coverage(units, truth, design, options.items, range(options.reviews))
                cells = [
                    f"{covered:.1%} (±{100 * width:.1f})"
                    for covered, width in zip(found.covered, found.half_width, strict=True)
                ]
                print(f"| {team} | {name} | {design} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
