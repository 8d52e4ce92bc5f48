"""How often intervals of what mending changes hold the truth, for every team.

A truth is planted in every object of one team. Its verdicts are mended one by one, and what this
changes in the sums of each team is added up: the true change. The truth is reviewed many times by
plans of several sizes. The annotation with all verdicts applied together is compared with it.

    python -m benchmarks.mending_estimates [COHORT] [--team T] [--reviews 400]
        [--truths "usual" "few errors" "many errors"] [--items 12 40 100 200]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.review_coverage import TRUTHS, planted
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.actions import apply, mend_of_verdicts
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.corrections import CorrectionRequest
from napari_panoptic.review.plan.after_mending import (
    MENDED,
    Examples,
    MendedFigure,
    example_rows,
    figures_after,
    reviewed_objects,
)
from napari_panoptic.review.plan.corrected import ALL, DECIDED, QUANTITIES
from napari_panoptic.review.plan.design import draw
from napari_panoptic.review.plan.estimates import ItemVerdict
from napari_panoptic.review.plan.mending import (
    AnnotatedCohort,
    annotated_cohort,
    mending_changes,
    sums_of,
)
from napari_panoptic.review.plan.units import SIDES, ItemKind, Units, population
from napari_panoptic.samples.write import write_sample_cohort
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Planted:
    """A cohort, one of its teams, and a truth of each of its items."""

    work: CorrectionRequest
    #: All items, with tiles; and the team's objects, in the same order without tiles.
    units: Units
    known: AnnotatedCohort
    #: int64 (n,): of each item, a position in `DECIDED`.
    verdict: NDArray[np.int64]
    #: float64 (objects, U, K): what the truth of each object changes.
    changes: FloatArray
    examples: Examples

    @property
    def is_object(self) -> NDArray[np.bool_]:
        """Whether each item is an object (n,)."""
        return ~self.units.is_kind(ItemKind.BACKGROUND)

    def figures(self, sums: FloatArray) -> FloatArray:
        """Return the figures (U, Q, C + 1) of sums (U, K), without the error rate."""
        kept = [QUANTITIES.index(quantity) for quantity in MENDED]
        return self.known.positions.figures(sums)[:, kept]

    @property
    def as_annotated(self) -> FloatArray:
        """The figures before mending (U, Q, C + 1)."""
        return self.figures(self.known.sums)

    @property
    def truth(self) -> FloatArray:
        """The figures with the changes of all objects added up (U, Q, C + 1)."""
        sums = self.known.sums + self.changes.sum(axis=0)
        return self.figures(self.known.positions.possible(sums))


@dataclass(frozen=True, eq=False)
class Held:
    """The reviews of one size: shares and means per team, quantity and class (U, Q, C + 1)."""

    covered: FloatArray
    mean: FloatArray
    half_width: FloatArray


def plant(cohort: Cohort, team: str, truth: str, seed: int = 1) -> Planted:
    """Plant a truth, and mend every object of it alone."""
    settings = EvaluationSettings().replaced(distances=False)
    work = CorrectionRequest(cohort, (), team, settings)
    units, known = population(cohort, (team,)).units, annotated_cohort(work)
    verdict = planted(units, TRUTHS[truth], seed).verdict
    of_objects = verdict[~units.is_kind(ItemKind.BACKGROUND)]
    changes = mending_changes(work, known, np.arange(len(of_objects)), of_objects)
    rows, number = example_rows(known.objects)
    each = [mending_changes(work, known, rows, np.full(len(rows), v)) for v in range(len(DECIDED))]
    examples = Examples(rows, number, np.stack(each, axis=1))
    return Planted(work, units, known, verdict, changes, examples)


def review(case: Planted, n_items: int, seed: int) -> tuple[MendedFigure, ...]:
    """Review a plan, and estimate the figures of all teams after mending."""
    plan = draw(case.units, n_items, seed)
    row_of = {key: row for row, key in enumerate(case.units.keys)}
    answers = [
        ItemVerdict(item, DECIDED[case.verdict[row_of[key]]])
        for item, key in enumerate(plan.units.keys, start=1)
    ]
    sample = reviewed_objects(plan, case.work.team, case.known.objects, answers)
    return figures_after(case.known, sample, case.changes[sample.rows], case.examples)


def coverage(case: Planted, n_items: int, seeds: Sequence[int]) -> Held:
    """Review a truth with several seeds; count the intervals that hold the true change."""
    shape = case.truth.shape
    found = np.array(
        [
            [(row.after, row.as_annotated + row.low, row.as_annotated + row.high) for row in rows]
            for rows in (review(case, n_items, seed) for seed in seeds)
        ]
    )
    middle, low, high = (found[..., k].reshape(len(seeds), *shape) for k in range(3))
    truth = case.truth
    is_held = (low <= truth + 1e-9) & (truth <= high + 1e-9) | np.isnan(truth)
    width = np.nanmean(high - low, axis=0) / 2
    return Held(is_held.mean(axis=0), np.nanmean(middle, axis=0), width)


def together(case: Planted) -> FloatArray:
    """Return the figures if all verdicts are applied together, as the command does."""
    work, sums = case.work, np.zeros_like(case.known.sums)
    objects = case.known.objects
    verdicts = [DECIDED[number] for number in case.verdict[case.is_object].tolist()]
    for region in work.cohort.regions:
        held = HeldRegion(work.cohort, region, work.settings)
        wanted: dict[tuple[Side, int], Verdict] = {
            (Side(str(SIDES[int(objects.side[row])])), int(objects.id[row])): verdicts[row]
            for row in np.flatnonzero(objects.region == region.name).tolist()
        }
        own = held.evaluate(work.team, work.settings).evaluation
        if own is None:
            continue
        mend = mend_of_verdicts(own, wanted, claim=work.claim, covered=work.covered)
        for number, team in enumerate(case.known.teams):
            found = held.evaluate(team, work.settings).evaluation
            if found is not None:
                edited = EditedPair(found.pair, known=found)
                apply(mend, edited)
                sums[number] += sums_of(edited.evaluate(work.settings).counts)
            held.forget(team)
    return case.figures(sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path, nargs="?", help="default: the sample cohort")
    parser.add_argument("--team", help="the reviewed team (default: the first)")
    parser.add_argument("--reviews", type=int, default=400)
    parser.add_argument("--truths", nargs="+", choices=TRUTHS, default=["usual"])
    parser.add_argument("--items", type=int, nargs="+", default=[12, 40, 100, 200])
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = options.cohort or write_sample_cohort(Path(folder) / "sample")
        cohort = open_cohort(path)
        team = options.team or cohort.competing_teams[0].name
        for truth in options.truths:
            case = plant(cohort, team, truth)
            print(f"reviewed: {team}, {len(case.known.objects)} objects; truth: {truth}")
            _print_truth(case)
            _print_coverage(case, options.items, range(options.reviews))


def _print_truth(case: Planted) -> None:
    added, applied, before = case.truth, together(case), case.as_annotated
    print("| team | figure | as annotated | one by one | together |")
    for number, team in enumerate(case.known.teams):
        for place, quantity in enumerate(MENDED):
            values = [each[number, place, -1] for each in (before, added, applied)]
            cells = " | ".join(f"{value:.4f}" for value in values)
            print(f"| {team} | {quantity} | {cells} |")


def _print_coverage(case: Planted, sizes: Sequence[int], seeds: Sequence[int]) -> None:
    print(f"| items | team | {' | '.join(map(str, MENDED))} | {ALL} classes | pq: truth, mean |")
    for n_items in sizes:
        found = coverage(case, n_items, seeds)
        for number, team in enumerate(case.known.teams):
            cells = [
                f"{covered:.1%} (±{100 * width:.1f})"
                for covered, width in zip(
                    found.covered[number, :, -1], found.half_width[number, :, -1], strict=True
                )
            ]
            classes = f"{found.covered[number, :, :-1].min():.1%}"
            pq = f"{case.truth[number, -1, -1]:.3f}, {found.mean[number, -1, -1]:.3f}"
            print(f"| {n_items} | {team} | {' | '.join(cells)} | {classes} | {pq} |", flush=True)


if __name__ == "__main__":
    main()
