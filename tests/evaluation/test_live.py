"""After any sequence of edits the live evaluation equals a full one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic import EvaluationSettings
from napari_panoptic.errors import LabelError
from napari_panoptic.evaluation.evaluate import Evaluation, evaluate
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.live import LiveEvaluation
from napari_panoptic.evaluation.vocabulary import Side
from tests.label_cases import CLASS_NAMES, LabelCase, random_pair


def pair_of(case: LabelCase) -> LabelPair:
    return LabelPair(
        LabelImage.from_array(case.reference, case.reference_classes, CLASS_NAMES),
        LabelImage.from_array(case.prediction, case.prediction_classes, CLASS_NAMES),
        case.ambiguous,
        0.25,
    )


def assert_same(live: Evaluation, full: Evaluation) -> None:
    assert live.objects.equals(full.objects)
    np.testing.assert_array_equal(live.counts.confusion, full.counts.confusion)
    assert dict(live.metrics) == pytest.approx(dict(full.metrics), rel=1e-12, nan_ok=True)
    for side in Side:
        ours, theirs = live.outcomes.side(side), full.outcomes.side(side)
        for name in ("partner", "bbox", "hausdorff95_px", "status", "cause"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


class Scribbler:
    """Edits a pair as people do: strokes, erasing, filling, undo and redo."""

    def __init__(self, rng: np.random.Generator, case: LabelCase) -> None:
        self.rng = rng
        self.images = {
            Side.REFERENCE: case.reference.astype(np.int64),
            Side.PREDICTION: case.prediction.astype(np.int64),
        }
        self.classes = {
            Side.REFERENCE: dict(case.reference_classes),
            Side.PREDICTION: dict(case.prediction_classes),
        }
        self.void = case.ambiguous
        self.live = LiveEvaluation(pair_of(case))
        self.done: list[tuple[Side, Any, Any, Any, Any]] = []
        self.undone: list[tuple[Side, Any, Any, Any, Any]] = []

    def act(self) -> None:
        choice = self.rng.random()
        if choice < 0.2 and self.done:
            edit = self.done.pop()
            self._set(edit[0], edit[1], edit[2], edit[3])
            self.undone.append(edit)
        elif choice < 0.3 and self.undone:
            edit = self.undone.pop()
            self._set(edit[0], edit[1], edit[2], edit[4])
            self.done.append(edit)
        else:
            self.stroke()

    def stroke(self) -> None:
        side = list(Side)[int(self.rng.integers(2))]
        image = self.images[side]
        if self.rng.random() < 0.15:  # fill: everything of one id
            y, x = np.nonzero(image == image.flat[self.rng.integers(image.size)])
        else:
            mask = np.zeros(image.shape, bool)
            top, left = (int(self.rng.integers(n)) for n in image.shape)
            mask[top : top + int(self.rng.integers(1, 9)), left : left + 5] = True
            y, x = np.nonzero(mask & (self.rng.random(image.shape) < 0.9))
        known = [0, *self.classes[side]]
        id_ = int(self.rng.choice([0, int(self.rng.choice(known)), int(max(known)) + 3]))
        if id_ and id_ not in self.classes[side]:
            self.classes[side][id_] = str(self.rng.choice(CLASS_NAMES))
        before = image[y, x].copy()
        self._set(side, y, x, np.full(len(y), id_))
        self.done.append((side, y, x, before, np.full(len(y), id_)))
        self.undone.clear()

    def _set(self, side: Side, y: Any, x: Any, ids: Any) -> None:
        changed = int((self.images[side][y, x] != ids).sum())
        edit = self.live.set_pixels(side, y, x, ids, classes=self.classes[side])
        self.images[side][y, x] = ids
        assert edit.changed_px == changed

    def full(self, how: EvaluationSettings) -> Evaluation:
        sides = [
            LabelImage.from_array(self.images[side], self.classes[side], CLASS_NAMES)
            for side in Side
        ]
        return evaluate(LabelPair(sides[0], sides[1], self.void, 0.25), how)


SETTINGS = [
    EvaluationSettings(),
    EvaluationSettings(matching="centroid", ambiguous="clip-predictions"),
    EvaluationSettings(ambiguous="majority", iou_threshold=0.7),
    EvaluationSettings(ambiguous="keep", outlines="both-clipped"),
    EvaluationSettings(outlines="both-whole"),
]


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), often=st.booleans())
def test_any_sequence_of_edits_equals_a_full_recomputation(seed: int, often: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 25)), int(rng.integers(1, 25)))
    scribbler = Scribbler(rng, random_pair(rng, shape, max_id=60))
    how = SETTINGS[int(rng.integers(len(SETTINGS)))]
    for number in range(int(rng.integers(1, 16))):
        scribbler.act()
        if often or number % 5 == 4:
            assert_same(scribbler.live.evaluate(how), scribbler.full(how))
        if rng.random() < 0.1:
            how = SETTINGS[int(rng.integers(len(SETTINGS)))]
    assert_same(scribbler.live.evaluate(how), scribbler.full(how))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_undoing_everything_restores_every_figure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_pair(rng, (20, 20), max_id=60)
    scribbler = Scribbler(rng, case)
    before = scribbler.live.evaluate(SETTINGS[0])
    for _ in range(8):
        scribbler.stroke()
    for side, y, x, old, _ in reversed(scribbler.done):
        scribbler.live.set_pixels(side, y, x, old)
    assert_same(scribbler.live.evaluate(SETTINGS[0]), before)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_moving_the_ambiguous_area(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scribbler = Scribbler(rng, random_pair(rng, (18, 21), max_id=60))
    for how in SETTINGS:
        scribbler.act()
        scribbler.void = None if rng.random() < 0.2 else rng.random((18, 21)) < 0.3
        scribbler.live.set_ambiguous(scribbler.void)
        assert_same(scribbler.live.evaluate(how), scribbler.full(how))
        scribbler.act()
        assert_same(scribbler.live.evaluate(how), scribbler.full(how))


def simple() -> tuple[LabelPair, LiveEvaluation]:
    image = np.zeros((12, 12), int)
    image[2:6, 2:6] = 3
    labels = LabelImage.from_array(image, {3: "Epithelial"}, CLASS_NAMES)
    pair = LabelPair(labels, labels)
    return pair, LiveEvaluation(pair)


def test_the_original_is_never_changed() -> None:
    pair, live = simple()
    before = pair.prediction.index.copy()
    live.set_pixels(Side.PREDICTION, np.arange(12), np.arange(12), 0)
    np.testing.assert_array_equal(pair.prediction.index, before)
    assert live.id_at(Side.PREDICTION, 3, 3) == 0
    assert live.id_at(Side.REFERENCE, 3, 3) == 3


def test_a_new_object_needs_a_class_and_nothing_is_changed_without() -> None:
    _, live = simple()
    for classes in ({}, {9: "Fibroblast"}):
        with pytest.raises(LabelError, match="a new object needs a class, one of Epithelial"):
            live.set_pixels(Side.PREDICTION, np.array([0]), np.array([0]), 9, classes=classes)
    assert live.id_at(Side.PREDICTION, 0, 0) == 0
    assert live.evaluate(EvaluationSettings()).metrics.pq == 1.0


def test_another_class_for_an_object() -> None:
    _, live = simple()
    live.set_class(Side.PREDICTION, 3, "Macrophage")
    evaluation = live.evaluate(EvaluationSettings())
    assert evaluation.objects["status"].tolist() == ["misclassified", "misclassified"]
    assert live.labels(Side.PREDICTION).class_names_of_objects().tolist() == ["Macrophage"]
    with pytest.raises(LabelError, match="no object 77"):
        live.set_class(Side.PREDICTION, 77, "Macrophage")
