"""How often intervals of planned reviews hold the truth where this is hard.

Made-up populations without pixels: small plans of four classes, of which the last is rare and may
be annotated much worse; cohorts in which one of five patients has all nuclei that neither side
has; and cohorts whose patients, of unequal size and quality, are a sample of many.

    python -m benchmarks.review_small [--reviews 400]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.review_coverage import STRATIFIED, TRUTHS, Truth, coverage, planted, truth_of
from napari_panoptic.review.plan.corrected import DECIDED, QUANTITIES
from napari_panoptic.review.plan.design import draw, rows_of
from napari_panoptic.review.plan.estimates import ItemVerdict, estimate
from napari_panoptic.review.plan.units import KINDS, ItemKind, Units

SHARES = (0.5, 0.3, 0.15, 0.05)
"""Of the classes among the items."""
ERRORS = (0.1, 0.2, 0.4, 0.8)
"""Share of wrong annotations by class, where classes differ; of TPs a third of it."""
KIND_SHARES = (0.4, 0.08, 0.15, 0.12, 0.25)
FloatArray = NDArray[np.float64]


def made_up(kind: NDArray[np.int64], patient: NDArray[np.int64], shares: Sequence[float]) -> Units:
    """Return items with these outcomes (positions in `KINDS`) and patients."""
    rng = np.random.default_rng(4)
    n, n_classes = len(kind), len(shares)
    own = rng.choice(n_classes, n, p=list(shares)) + 1
    other = np.where(kind == 1, own % n_classes + 1, own)
    name = np.array([f"P{number}" for number in patient], object)
    return Units(
        class_names=tuple("ABCD"[:n_classes]),
        team=np.full(n, "T", object),
        patient=name,
        region=name,
        side=np.where(kind == 4, 2, np.where(kind == 3, 1, 0)).astype(np.int8),
        kind=kind.astype(np.int8),
        id=np.where(kind == 4, -1, np.arange(n)),
        y_px=np.arange(n) * 64.0,
        x_px=np.zeros(n),
        reference_class=np.where(kind <= 2, own, 0).astype(np.int16),
        prediction_class=np.where((kind <= 1) | (kind == 3), other, 0).astype(np.int16),
        iou=np.where(kind <= 1, rng.uniform(0.5, 1, n), 0),
        detail=np.where(kind == 4, "empty", np.where(kind >= 2, "missed", "")).astype(object),
    )


def several_classes(n: int = 2000) -> Units:
    """Return items of four classes and five patients."""
    rng = np.random.default_rng(5)
    return made_up(rng.choice(5, n, p=list(KIND_SHARES)), rng.integers(0, 5, n), SHARES)


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


def of_other_patients(
    number: int, unequal: float, seeds: Sequence[int], n_items: int
) -> FloatArray:
    """Return how often the intervals for patients like these hold their figures, (Q,)."""
    wanted = patients(3000, unequal, 99)[1].figures
    held = np.zeros(len(QUANTITIES))
    for seed in seeds:
        units, truth = patients(number, unequal, 1000 * number + seed)
        plan = draw(units, n_items, seed)
        rows = rows_of(plan, units).tolist()
        answers = [
            ItemVerdict(item, DECIDED[truth.verdict[row]], int(truth.count[row]))
            for item, row in enumerate(rows, start=1)
        ]
        overall = [r for r in estimate(plan, units, answers).rows if r.class_name == "all"]
        low, high = np.array([(r.patients_low, r.patients_high) for r in overall]).T
        held += (low <= wanted) & (wanted <= high)
    return held / len(seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=int, default=400)
    seeds = range(parser.parse_args().reviews)
    assert len(KINDS) == len(KIND_SHARES)
    units = several_classes()
    cases = {
        "usual": (planted(units, TRUTHS["usual"], 1), (12, 20, 40, 100, 200)),
        "classes differ": (differing(units), (12, 20, 40, 100, 200)),
        "0.3 missed per tile, in one of five": (missed_in_one(units, 0.3), (100, 200)),
        "1 missed per tile, in one of five": (missed_in_one(units, 1.0), (40, 100, 200)),
        "3 missed per tile, in one of five": (missed_in_one(units, 3.0), (40, 100, 200)),
    }
    print(f"| truth | items | {' | '.join(map(str, QUANTITIES))} | pq: truth, mean |")
    for name, (truth, sizes) in cases.items():
        for n_items in sizes:
            found = coverage(units, truth, STRATIFIED, n_items, seeds)
            cells = [
                f"{covered:.1%} (±{100 * width:.1f})"
                for covered, width in zip(found.covered, found.half_width, strict=True)
            ]
            pq = f"{found.truth[-1]:.3f}, {found.mean[-1]:.3f}"
            print(f"| {name} | {n_items} | {' | '.join(cells)} | {pq} |", flush=True)
    print(f"| sigma of log size | patients | {' | '.join(map(str, QUANTITIES))} |")
    for unequal in (0.0, 0.7, 1.2):
        for number in (5, 8, 15):
            held = of_other_patients(number, unequal, seeds, 150)
            cells = [f"{covered:.1%}" for covered in held.tolist()]
            print(f"| {unequal} | {number} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
