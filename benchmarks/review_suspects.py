"""What strata of suspects add to a planned review, on errors planted in a cohort's annotation.

Errors are planted as in ``benchmarks.suspects``. They are the only errors: a reviewer who knows
them answers the items of many plans of equal size, with and without strata of suspects.

    python -m benchmarks.review_suspects COHORT [--reviews 500] [--items 200] [--teams A,B]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.planted import Planted
from benchmarks.review_coverage import STRATIFIED, Truth, review, truth_of
from benchmarks.suspects import regions_of, with_errors
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.questions.engines.suspects import SuspectKind, find_suspects
from napari_panoptic.review.plan.corrected import QUANTITIES
from napari_panoptic.review.plan.design import draw, rows_of
from napari_panoptic.review.plan.suspects import with_suspects
from napari_panoptic.review.plan.units import ItemKind, Units, joined, tile_name, units_of
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import Restoration

PREDICTION, NEITHER = 1, 2  # positions in DECIDED


@dataclass(frozen=True, eq=False)
class Case:
    """The items of one team in an annotation with planted errors, and what is true of them."""

    plain: Units
    refined: Units
    truth: Truth


def cases(
    cohort_path: Path, teams: Sequence[str] = (), *, share: float = 0.05, seed: int = 0
) -> dict[str, Case]:
    """Plant errors in a cohort, and list the items of each team."""
    cohort = open_cohort(cohort_path)
    competing = [team.name for team in cohort.competing_teams]
    dilated = regions_of(cohort, Restoration.BORDER_DILATED)
    planted, found = with_errors(dilated, competing, share, seed)
    suspects = find_suspects(found)
    regions = regions_of(cohort, Restoration.BORDER_REMOVED)
    result = {}
    for team in teams or competing:
        parts = [_of_region(region, planted[region.region.name], team) for region in regions]
        units = joined(cohort.scheme.names, [units for units, _, _ in parts])
        verdict, count = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        refined = with_suspects(units, suspects)
        result[team] = Case(units, refined, truth_of(units, verdict, count))
    return result


def _of_region(
    region: RegionSnapshot, planted: Planted, team: str
) -> tuple[Units, NDArray[np.int64], NDArray[np.int64]]:
    """Return the items of a region, and the true verdict and count of each."""
    prediction = region.predictions[team]
    evaluation = evaluate(LabelPair(planted.labels, prediction, region.ambiguous), region.settings)
    units = units_of(evaluation, team, region.region.patient, region.region.name)
    verdict, count = np.zeros((2, len(units)), np.int64)
    is_reference = units.reference_class > 0
    for row in np.flatnonzero(is_reference).tolist():
        if int(units.id[row]) in planted.errors:
            # A prediction of the true class at the place of a class that was changed is right.
            is_swap = planted.errors[int(units.id[row])] is SuspectKind.WRONG_CLASS
            is_pair = units.prediction_class[row] > 0
            is_right = is_pair and (not is_swap or units.is_kind(ItemKind.MISCLASSIFIED)[row])
            verdict[row] = PREDICTION if is_right else NEITHER
    image, ids = prediction.id_image(), prediction.ids
    fps = {int(units.id[row]): row for row in np.flatnonzero(units.is_kind(ItemKind.FP)).tolist()}
    tiles = {
        tile_name(units.y_px[row], units.x_px[row]): row
        for row in np.flatnonzero(units.is_kind(ItemKind.BACKGROUND)).tolist()
    }
    for pixels in planted.removed.values():
        seen = image[tuple(pixels)]
        best = int(np.bincount(np.searchsorted(ids, seen[seen > 0]), minlength=1).argmax())
        id_ = int(ids[best]) if (seen > 0).mean() > 0.5 else 0
        place = tile_name(*pixels.mean(axis=1).tolist())
        if id_ in fps:
            verdict[fps[id_]] = PREDICTION
        elif not id_ and place in tiles:
            count[tiles[place]] += 1
    return units, verdict, count


@dataclass(frozen=True, eq=False)
class Reviews:
    """What many reviews of one case find.

    `covered`, `half_width` and `error` (root mean square) are per quantity; `found` is the mean
    number of wrong annotations among the items, a tile with nuclei that lack an outline being one.
    """

    covered: NDArray[np.float64]
    half_width: NDArray[np.float64]
    error: NDArray[np.float64]
    bias: NDArray[np.float64]
    found: float


def reviews(units: Units, truth: Truth, n_items: int, seeds: Sequence[int]) -> Reviews:
    """Review a truth with several seeds; an undefined interval does not hold the truth."""
    found = np.array([review(units, truth, STRATIFIED, n_items, seed) for seed in seeds])
    middle, low, high = found.swapaxes(0, 1)
    is_held = (low <= truth.figures + 1e-12) & (high >= truth.figures - 1e-12)
    is_wrong = (truth.verdict > 0) | (truth.count > 0)
    errors = [is_wrong[rows_of(draw(units, n_items, seed), units)].sum() for seed in seeds]
    return Reviews(
        is_held.mean(axis=0),
        np.nanmean(high - low, axis=0) / 2,
        np.sqrt(np.nanmean((middle - truth.figures) ** 2, axis=0)),
        np.nanmean(middle, axis=0) - truth.figures,
        float(np.mean(errors)),
    )


def main() -> None:
    """Print by team and design: errors found, coverage (±half-width; error; bias, in points)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path)
    parser.add_argument("--reviews", type=int, default=500)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--teams", help="separated by commas (default: all)")
    options = parser.parse_args()
    teams = options.teams.split(",") if options.teams else ()
    print(f"| team | strata | errors found | {' | '.join(map(str, QUANTITIES))} |")
    print("|---" * (3 + len(QUANTITIES)) + "|")
    for team, case in cases(options.cohort, teams).items():
        for name, units in (("usual", case.plain), ("suspects", case.refined)):
            own = reviews(units, case.truth, options.items, range(options.reviews))
            cells = [
                f"{covered:.1%} (±{100 * width:.1f}; {100 * error:.2f}; {100 * bias:+.2f})"
                for covered, width, error, bias in zip(
                    own.covered, own.half_width, own.error, own.bias, strict=True
                )
            ]
            print(f"| {team} | {name} | {own.found:.1f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
