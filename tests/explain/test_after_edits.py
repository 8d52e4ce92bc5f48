"""Explanations after edits or at a threshold equal those of the same pixels evaluated anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic import EvaluationSettings, evaluate_pair
from napari_panoptic.display.crops import CropSource, cut
from napari_panoptic.explain.breakdown import RegionObjects, SizeClasses, by_cause, by_size
from napari_panoptic.explain.consensus import consensus
from napari_panoptic.explain.failure_groups import (
    counts_if_merged,
    failure_groups,
    lost_over,
)
from napari_panoptic.explain.policy_audit import audit_policies, reasons, spill_table
from napari_panoptic.explain.what_if import without_annotation_errors
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.questions.engines.thresholds import evaluation_at_threshold
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Matching
from napari_panoptic.values.vocabulary import Side
from tests.support.label_cases import CLASS_NAMES

NAME = CLASS_NAMES[0]
SHAPE = (60, 140)
NEW_ID = 4
"""Lower than other ids, so that its place in the order of ids is not the end."""


def images() -> tuple[dict[Side, np.ndarray], np.ndarray]:
    """Make reference objects in two rows, split or merged, below an ambiguous strip."""
    reference, prediction = np.zeros(SHAPE, np.int32), np.zeros(SHAPE, np.int32)
    for k in range(6):
        left = 20 * k + 2
        reference[5:25, left : left + 16] = 10 * k + 10
        prediction[5:14, left : left + 16] = 20 * k + 10
        prediction[14:25, left + 1 : left + 16] = 20 * k + 20
        reference[35:50, left : left + 16] = 10 * k + 100
    prediction[35:50, 2:38] = 200
    prediction[36:49, 45:60] = 210
    prediction[36:49, 90:118] = 220
    return {Side.REFERENCE: reference, Side.PREDICTION: prediction}, np.arange(60)[:, None] < 8


def at_and_below(
    pixels: dict[Side, np.ndarray], void: np.ndarray, settings: EvaluationSettings
) -> tuple[Evaluation, Evaluation]:
    """Return an evaluation at a threshold, and one of the pixels that are left."""
    names: dict[str, Any] = dict.fromkeys(("reference_classes", "prediction_classes"), NAME)
    reference, prediction = pixels.values()
    low = [10, 70, 210]
    given: dict[str, Any] = {"ambiguous": void, "settings": settings, "class_names": CLASS_NAMES}
    scores = {int(id_): 0.1 if id_ in low else 0.9 for id_ in np.unique(prediction) if id_}
    whole = evaluate_pair(reference, prediction, **names, **given, scores=scores)
    left = np.where(np.isin(prediction, low), 0, prediction)
    return evaluation_at_threshold(whole, 0.5), evaluate_pair(
        reference, left, **names, **given, scores=scores
    )


@pytest.fixture(params=[(rule, way) for rule in Matching for way in ("edits", "threshold")])
def both(request: pytest.FixtureRequest) -> tuple[Evaluation, Evaluation]:
    """Return an evaluation after edits or at a threshold, and one of the same pixels."""
    pixels, strip = images()
    void = np.broadcast_to(strip, SHAPE).copy()
    matching, way = request.param
    settings = EvaluationSettings(matching=matching)
    if way == "threshold":
        return at_and_below(pixels, void, settings)
    sides = [LabelImage.from_array(image, NAME, CLASS_NAMES) for image in pixels.values()]
    live = EditedPair(LabelPair(sides[0], sides[1], void))
    live.evaluate(settings)
    for side, erased in ((Side.REFERENCE, 20), (Side.PREDICTION, 50)):
        y, x = np.nonzero(pixels[side] == erased)
        live.set_pixels(side, y, x, 0)
        pixels[side][y, x] = 0
        y, x = (grid.ravel() for grid in np.mgrid[52:58, 100:112])
        live.set_pixels(side, y, x, NEW_ID, classes={NEW_ID: NAME})
        pixels[side][y, x] = NEW_ID
    fresh = evaluate_pair(
        *pixels.values(),
        reference_classes=dict.fromkeys(np.unique(pixels[Side.REFERENCE])[1:].tolist(), NAME),
        prediction_classes=dict.fromkeys(np.unique(pixels[Side.PREDICTION])[1:].tolist(), NAME),
        ambiguous=void,
        settings=settings,
        class_names=CLASS_NAMES,
    )
    return live.evaluate(settings), fresh


def test_failure_groups(both: tuple[Evaluation, Evaluation]) -> None:
    found, expected = map(failure_groups, both)
    assert len(found) == len(expected) > 3
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_equal(vars(ours), vars(theirs))
    live, fresh = both
    for groups in ([found[0]], found):
        ours, theirs = counts_if_merged(live, groups), counts_if_merged(fresh, groups)
        np.testing.assert_equal(vars(ours), vars(theirs))
    assert [loss.pq_lost for loss in lost_over([live])] == [
        loss.pq_lost for loss in lost_over([fresh])
    ]


@pytest.mark.parametrize("second", ["majority", "keep"])
def test_policy_audit(both: tuple[Evaluation, Evaluation], second: str) -> None:
    found, expected = (audit_policies(each, "clip", second) for each in both)
    pd.testing.assert_frame_equal(found.objects, expected.objects, check_exact=True)
    pd.testing.assert_frame_equal(found.effect, expected.effect, check_exact=True)
    pd.testing.assert_frame_equal(*map(spill_table, both), check_exact=True)
    for side in Side:
        np.testing.assert_array_equal(*(reasons(each, side) for each in both))


def test_conventions(both: tuple[Evaluation, Evaluation]) -> None:
    found, expected = (each.conventions() for each in both)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_consensus(both: tuple[Evaluation, Evaluation]) -> None:
    live, fresh = both
    found, expected = consensus({"A": live, "B": fresh}), consensus({"A": fresh, "B": fresh})
    np.testing.assert_array_equal(found.status, expected.status)
    assert len(found.fp_places) == len(expected.fp_places) > 0
    for ours, theirs in zip(found.fp_places, expected.fp_places, strict=True):
        np.testing.assert_equal(vars(ours), vars(theirs))


def test_breakdown_and_what_if(both: tuple[Evaluation, Evaluation]) -> None:
    tables = [[RegionObjects("A", "R", each.objects)] for each in both]
    pd.testing.assert_frame_equal(*map(by_cause, tables), check_exact=True)
    sizes = [by_size(table, SizeClasses((100.0, 300.0))) for table in tables]
    pd.testing.assert_frame_equal(*sizes, check_exact=True)
    corrected = [
        without_annotation_errors(each, reference_rows=[1, 2], prediction_rows=[3]) for each in both
    ]
    np.testing.assert_equal(*map(vars, corrected))


def test_crops(both: tuple[Evaluation, Evaluation]) -> None:
    sources = [
        CropSource(None, each.pair.reference, each.pair.prediction, each.outcomes) for each in both
    ]
    for side in Side:
        for row in range(len(both[0].outcomes.side(side))):
            ours, theirs = (cut(source, side, row, field_px=32, size_px=64) for source in sources)
            np.testing.assert_array_equal(ours.outlines, theirs.outlines)


def test_rows_are_those_of_the_pair_and_the_table(both: tuple[Evaluation, Evaluation]) -> None:
    live, fresh = both
    for side in Side:
        labels, expected = live.pair.side(side), fresh.pair.side(side)
        np.testing.assert_array_equal(labels.ids, live.outcomes.side(side).ids)
        np.testing.assert_array_equal(labels.index, expected.index)
        np.testing.assert_array_equal(labels.class_index, expected.class_index)
        np.testing.assert_equal(vars(live.table.side(side)), vars(fresh.table.side(side)))
    for name in ("pair_reference", "pair_prediction", "intersection", "void_intersection"):
        np.testing.assert_array_equal(getattr(live.table, name), getattr(fresh.table, name))
