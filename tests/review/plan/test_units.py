"""The population of a review: every object that takes part, and every bit of background."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.run import run_regions
from napari_panoptic.review.plan.units import (
    EMPTY,
    PARTLY,
    SIDES,
    TILE_PX,
    ItemKind,
    ItemSide,
    population,
    units_of,
)
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.small_pairs import all_found, empty_pair, four_fates


def places(units, kind):
    own = units[units.is_kind(kind)]
    return [(str(SIDES[side]), id_) for side, id_ in zip(own.side, own.id.tolist(), strict=True)]


def test_every_object_that_takes_part_is_one_item():
    units = units_of(four_fates(), "T", "P", "R")
    assert places(units, ItemKind.TP) == [("reference", 11)]
    assert places(units, ItemKind.MISCLASSIFIED) == [("reference", 12)]
    assert places(units, ItemKind.FN) == [("reference", 13)]
    assert places(units, ItemKind.FP) == [("prediction", 23)]
    assert units.reference_class.tolist() == [1, 1, 2, 0, 0]
    assert units.prediction_class.tolist() == [1, 2, 0, 2, 0]
    assert units.iou[:2].tolist() == [0.9, 0.9]
    assert set(zip(units.team, units.patient, units.region, strict=True)) == {("T", "P", "R")}


def test_a_region_without_objects_is_background():
    units = units_of(empty_pair(), "T", "P", "R")
    assert places(units, ItemKind.BACKGROUND) == [("background", -1)]
    assert units.detail.tolist() == [EMPTY]
    assert (units.y_px[0], units.x_px[0]) == (4, 4)


def test_the_population_counts_what_evaluate_counts(small_folder, small_units):
    cohort = open_cohort(small_folder)
    condition = Condition("all", EvaluationSettings(distances=False))
    work = Experiment(("alpha", "beta"), (condition,))
    expected = {}
    for ((*results,),) in run_regions(cohort, work, jobs=1):
        for result in results:
            counted = result.objects.groupby(["side", "status"]).size()
            for kind, side in {
                "TP": "reference",
                "misclassified": "reference",
                "FN": "reference",
                "FP": "prediction",
            }.items():
                key = result.team, kind
                expected[key] = expected.get(key, 0) + int(counted.get((side, kind), 0))
    found = {
        (team, str(kind)): int((small_units.is_kind(kind) & (small_units.team == team)).sum())
        for team in ("alpha", "beta")
        for kind in (ItemKind.TP, ItemKind.MISCLASSIFIED, ItemKind.FN, ItemKind.FP)
    }
    assert found == expected


@pytest.mark.parametrize("shape", [(TILE_PX, TILE_PX), (150, 100), (5, 200)])
def test_every_pixel_of_background_is_in_one_tile(shape):
    rng = np.random.default_rng(1)
    reference = np.zeros(shape, np.int64)
    reference[: shape[0] // 3, : shape[1] // 2] = 1
    prediction = np.where(rng.random(shape) < 0.3, 2, 0)
    ambiguous = np.zeros(shape, bool)
    ambiguous[-TILE_PX // 2 :, -TILE_PX // 2 :] = True
    evaluation = evaluate_pair(
        reference,
        prediction,
        reference_classes={1: "Round"},
        prediction_classes={2: "Round"},
        class_names=("Round",),
        ambiguous=ambiguous,
    )
    units = units_of(evaluation, "T", "P", "R")
    tiles = units[units.is_kind(ItemKind.BACKGROUND)]
    free = (reference == 0) & (prediction == 0) & ~ambiguous
    y, x = np.nonzero(free)
    expected = set(zip((y // TILE_PX).tolist(), (x // TILE_PX).tolist(), strict=True))
    found = [
        (int(a // TILE_PX), int(b // TILE_PX)) for a, b in zip(tiles.y_px, tiles.x_px, strict=True)
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert free[tiles.y_px.astype(int), tiles.x_px.astype(int)].all()
    for (row, column), detail in zip(found, tiles.detail, strict=True):
        tile = np.s_[row * TILE_PX : (row + 1) * TILE_PX, column * TILE_PX : (column + 1) * TILE_PX]
        assert detail == (EMPTY if free[tile].all() else PARTLY)


def test_keys_tell_all_items_apart(small_units):
    assert len(set(small_units.keys)) == len(small_units)
    assert set(SIDES) == {ItemSide.REFERENCE, ItemSide.PREDICTION, ItemSide.BACKGROUND}


def test_all_found_has_no_failures():
    units = units_of(all_found(), "T", "P", "R")
    assert {str(kind) for kind in ItemKind if units.is_kind(kind).any()} == {"TP", "background"}


def test_a_region_that_cannot_be_read_is_reported_and_left_out(tmp_path, small_folder):
    import shutil

    root = shutil.copytree(small_folder, tmp_path / "cohort")
    broken = next((root / "MoNuSAC Testing Data and Annotations").rglob("*.xml"))
    broken.write_text("not XML")
    found = population(open_cohort(root), Reading(teams=("alpha",)))
    assert broken.stem not in set(found.units.region)
    assert any(f.region == broken.stem and f.kind == "unreadable" for f in found.findings)


def test_a_region_that_is_too_large_is_reported(small_folder):
    found = population(open_cohort(small_folder), Reading(teams=("alpha",), held_up_to_px=1300))
    assert len(set(found.units.region)) < 5
    assert any("pixels" in finding.message or "px" in finding.message for finding in found.findings)
