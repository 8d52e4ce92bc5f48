"""After any sequence of edits the live evaluation equals a full one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic import EvaluationSettings
from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.edits import EditedPair, IdWindow
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.values.labels import LabelImage, LabelPair, Scores
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples
from tests.support.label_cases import CLASS_NAMES, LabelCase, random_pair


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
    np.testing.assert_equal(dict(live.metrics), dict(full.metrics))
    pd.testing.assert_frame_equal(live.by_class, full.by_class, check_exact=True)
    for side in Side:
        ours, theirs = live.outcomes.side(side), full.outcomes.side(side)
        for name in ("partner", "bbox", "hausdorff95_px", "status", "cause"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


def shared_px(table: OverlapTable, ids: tuple[Any, Any]) -> dict[tuple[int, int], tuple[int, int]]:
    """Give the pixels that pairs share, and in the ambiguous area, by the ids of both."""
    pairs = zip(ids[0][table.pair_reference], ids[1][table.pair_prediction], strict=True)
    counts = zip(table.intersection.tolist(), table.void_intersection.tolist(), strict=True)
    return dict(zip(pairs, counts, strict=True))


def window_around(image: Any, y: Any, x: Any) -> IdWindow:
    """Cut the smallest window out that holds all these pixels."""
    if not len(y):
        return IdWindow((0, 0), np.zeros((0, 0), np.uint16), np.zeros(0, np.int64))
    part = image[y.min() : y.max() + 1, x.min() : x.max() + 1]
    ids, numbers = np.unique(part, return_inverse=True)
    return IdWindow(
        (int(y.min()), int(x.min())), numbers.reshape(part.shape).astype(np.uint16), ids
    )


class Scribbler:
    """Edits a pair as people do: strokes, erasing, filling, undo, redo, other ambiguous areas."""

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
        self.live = EditedPair(pair_of(case))
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
        elif choice < 0.4:
            self.huge()
        elif choice < 0.5:
            self.redraw()
        elif choice < 0.6:
            self.rename()
        else:
            self.stroke()

    def huge(self) -> None:
        """Erase all, fill the background, or scatter ids over a large part of the image."""
        side = list(Side)[int(self.rng.integers(2))]
        image = self.images[side]
        kind = int(self.rng.integers(3))
        known = [0, *self.classes[side]]
        ids: Any = 0
        if kind == 0:
            y, x = np.nonzero(image >= 0)
        elif kind == 1:
            y, x = np.nonzero(image == 0)
            ids = int(self.rng.choice(known))
        else:
            share = self.rng.random()
            y, x = np.nonzero(self.rng.random(image.shape) < share)
            ids = self.rng.choice(known, len(y))
        before = image[y, x].copy()
        ids = np.broadcast_to(ids, y.shape).copy()
        self._set(side, y, x, ids)
        self.done.append((side, y, x, before, ids))
        self.undone.clear()

    def redraw(self) -> None:
        """Move the whole ambiguous area, flip a part of it, or do away with it."""
        kind, shape = int(self.rng.integers(3)), self.images[Side.REFERENCE].shape
        if kind == 0:
            self.void = None
        elif kind == 1 or self.void is None:
            self.void = self.rng.random(shape) < self.rng.random()
        else:
            self.void = self.void.copy()
            top, left = (int(self.rng.integers(n)) for n in shape)
            self.void[top : top + 6, left : left + 6] ^= True
        self.live.set_ambiguous(self.void)

    def rename(self) -> None:
        """Give an object another class."""
        side = list(Side)[int(self.rng.integers(2))]
        present = np.unique(self.images[side])[1:]
        if len(present):
            id_, name = int(self.rng.choice(present)), str(self.rng.choice(CLASS_NAMES))
            self.classes[side][id_] = name
            self.live.set_class(side, id_, name)

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
        image = self.images[side]
        changed = int((image[y, x] != ids).sum())
        image[y, x] = ids
        if self.rng.random() < 0.5:
            edit = self.live.set_pixels(side, y, x, ids, classes=self.classes[side])
        else:
            window = window_around(image, y, x)
            edit = self.live.set_window(side, window, classes=self.classes[side])
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
    EvaluationSettings(iou_threshold=0.2, near_iou=0.3),
    EvaluationSettings(iou_threshold=0.1, ambiguous="majority", distances=False),
    EvaluationSettings(zone_px=1),
    EvaluationSettings(zone_px=2, ambiguous_share=0.25, matching="centroid"),
    EvaluationSettings(zone_px=3, ambiguous="majority", distances=False),
]


@settings(max_examples=examples(40), deadline=None)
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


def strokes_of_one_brush(seed: int, how: EvaluationSettings, count: int) -> None:
    """Compare after each of many strokes on tissue whose objects are mostly apart."""
    rng = np.random.default_rng(seed)
    scribbler = Scribbler(rng, random_pair(rng, (40, 45), max_id=300))
    for _ in range(count):
        scribbler.stroke()
        assert_same(scribbler.live.evaluate(how), scribbler.full(how))


@pytest.mark.parametrize("how", SETTINGS, ids=str)
def test_strokes_of_one_brush(how: EvaluationSettings) -> None:
    strokes_of_one_brush(7, how, 25)


def test_an_evaluation_does_not_change_with_later_edits() -> None:
    rng = np.random.default_rng(11)
    scribbler, held = Scribbler(rng, random_pair(rng, (30, 30), max_id=200)), []
    for _ in range(25):
        scribbler.act()
        how = SETTINGS[int(rng.integers(2))]
        evaluation, full = scribbler.live.evaluate(how), scribbler.full(how)
        table = evaluation.table
        counted = [table.reference.area, table.prediction.bbox, table.intersection]
        held.append((evaluation, full, counted, [column.copy() for column in counted]))
    for evaluation, full, counted, copies in held:
        assert_same(evaluation, full)
        for column, copy in zip(counted, copies, strict=True):
            np.testing.assert_array_equal(column, copy)


def test_counts_do_not_change_with_later_edits() -> None:
    rng = np.random.default_rng(13)
    scribbler, held = Scribbler(rng, random_pair(rng, (30, 30), max_id=200)), []
    for _ in range(25):
        scribbler.act()
        live, full = scribbler.live.evaluate(SETTINGS[0]), scribbler.full(SETTINGS[0])
        ids = live.pair.reference.ids, live.pair.prediction.ids
        held.append((live.table, ids, full))
    for table, ids, full in held:
        for side, own in zip(Side, ids, strict=True):
            counted, expected = (getattr(of, side.value) for of in (table, full.table))
            assert len(counted) == len(own)
            there = np.flatnonzero(counted.area)
            there = there[np.argsort(own[there])]
            for name in (field.name for field in fields(SideTable)):
                np.testing.assert_array_equal(
                    getattr(counted, name)[there], getattr(expected, name), name
                )
        theirs = full.pair.reference.ids, full.pair.prediction.ids
        assert shared_px(table, ids) == shared_px(full.table, theirs)


@settings(max_examples=examples(20), deadline=None)
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


@settings(max_examples=examples(20), deadline=None)
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


@pytest.mark.parametrize("objects", [1, 40])
def test_boxes_are_right_however_many_objects_lose_their_edges(objects: int) -> None:
    """Few are looked for in their boxes; many that lie all over the image in one pass."""
    rng = np.random.default_rng(objects)
    shape, names = (30, 40), dict.fromkeys(range(1, objects + 1), CLASS_NAMES[0])
    image = rng.integers(1, objects + 1, shape)
    labels = LabelImage.from_array(image, names, CLASS_NAMES)
    live = EditedPair(LabelPair(labels, labels))
    for margin in (1, 3, 0, 2):  # smaller, smaller, larger again, smaller
        now = np.zeros(shape, np.int64)
        inside = np.s_[margin : shape[0] - margin, margin : shape[1] - margin]
        now[inside] = image[inside]
        y, x = (at.ravel() for at in np.mgrid[: shape[0], : shape[1]])
        live.set_window(Side.PREDICTION, window_around(now, y, x))
        full = evaluate(LabelPair(labels, LabelImage.from_array(now, names, CLASS_NAMES)))
        assert_same(live.evaluate(EvaluationSettings()), full)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_edits_of_thousands_of_objects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (60, 70)
    reference, prediction = (np.repeat(rng.permutation(2100) + 1, 2).reshape(shape) for _ in Side)
    classes = {id_: str(rng.choice(CLASS_NAMES)) for id_ in range(1, 2101)}
    case = LabelCase(reference, prediction, classes, dict(classes), rng.random(shape) < 0.3)
    scribbler = Scribbler(rng, case)
    for _ in range(6):
        scribbler.huge()
        scribbler.stroke()
        scribbler.redraw()
        assert_same(scribbler.live.evaluate(SETTINGS[0]), scribbler.full(SETTINGS[0]))


@pytest.mark.parametrize("how", [EvaluationSettings(), EvaluationSettings(distances=False)])
def test_many_new_objects_one_after_the_other(how: EvaluationSettings) -> None:
    empty = LabelImage.empty((60, 60), CLASS_NAMES)
    live = EditedPair(LabelPair(empty, empty))
    held: list[tuple[Evaluation, pd.DataFrame]] = []
    for number in range(600):
        side, (y, x) = list(Side)[number % 2], np.divmod(2 * np.arange(2) + 5 * (number // 2), 60)
        live.set_pixels(side, y, x, 1000 - number, classes={1000 - number: CLASS_NAMES[number % 2]})
        if number % 97 == 0:
            found = live.evaluate(how)
            assert_same(found, evaluate(live.pair(), how))
            held.append((found, found.objects.copy()))
    assert_same(live.evaluate(how), evaluate(live.pair(), how))
    for found, objects in held:
        assert found.objects.equals(objects)


def test_pixels_outside_the_image_change_nothing() -> None:
    _, live = simple()
    one = np.array([[1]], np.uint16)
    for y, x in ((-1, 0), (0, 12), (12, 3)):
        with pytest.raises(LabelError, match="must lie in the image of 12 x 12 px"):
            live.set_pixels(Side.PREDICTION, np.array([y, 3]), np.array([x, 3]), 0)
        with pytest.raises(LabelError, match="must lie in the image of 12 x 12 px"):
            live.set_window(Side.PREDICTION, IdWindow((y, x), one, np.array([0, 3])))
    with pytest.raises(LabelError, match="needs y and x, found 2 and 1"):
        live.set_pixels(Side.PREDICTION, np.array([3, 4]), np.array([3]), 0)
    with pytest.raises(LabelError, match="the number 1, there are 1 ids"):
        live.set_window(Side.PREDICTION, IdWindow((0, 0), one, np.array([0])))
    assert live.evaluate(EvaluationSettings()).metrics.pq == 1.0


@pytest.mark.parametrize("outlines", ["both-clipped", "as-published"])
def test_distances_follow_the_ambiguous_area(outlines: str) -> None:
    image = np.zeros((20, 20), int)
    image[2:18, 2:14] = 3
    lower = image.copy()
    lower[:6] = 0
    reference, prediction = (
        LabelImage.from_array(at, {3: "Epithelial"}, CLASS_NAMES) for at in (image, lower)
    )
    how = EvaluationSettings(ambiguous="clip", outlines=outlines)
    live, found = EditedPair(LabelPair(reference, prediction)), []
    for rows in (1, 2, 3):
        void = np.zeros(image.shape, bool)
        void[2 : 2 + rows] = True
        live.set_ambiguous(void)
        full = evaluate(LabelPair(reference, prediction, void), how)
        assert_same(live.evaluate(how), full)
        found.append(full.metrics.mean_hausdorff_px)
    assert found == [3, 2, 1]


def simple() -> tuple[LabelPair, EditedPair]:
    image = np.zeros((12, 12), int)
    image[2:6, 2:6] = 3
    labels = LabelImage.from_array(image, {3: "Epithelial"}, CLASS_NAMES)
    pair = LabelPair(labels, labels)
    return pair, EditedPair(pair)


def test_the_original_is_never_changed() -> None:
    pair, live = simple()
    before = pair.prediction.index.copy()
    live.set_pixels(Side.PREDICTION, np.arange(12), np.arange(12), 0)
    np.testing.assert_array_equal(pair.prediction.index, before)
    assert live.pair().prediction.id_image()[3, 3] == 0
    assert live.pair().reference.id_image()[3, 3] == 3


def test_objects_that_share_pixels_are_refused() -> None:
    """Edits write one object per pixel, but the counts would be of the shared ones."""
    one, two = np.zeros((2, 20, 20), np.int32)
    one[2:10, 2:10], two[6:16, 6:16] = 1, 2
    flat = LabelImage.from_class_masks({"A": one, "B": two}, ("A", "B"), (20, 20))
    shared = flat.with_class_overlaps().with_overlaps(Overlaps.KEEP)
    assert shared.planes
    whole, uppermost = LabelPair(shared, flat), LabelPair(flat, flat)
    known = evaluate(whole, EvaluationSettings(overlaps="keep"))
    for pair, evaluation in ((whole, None), (whole, known), (uppermost, known)):
        with pytest.raises(LabelError, match='set overlaps to "flatten"'):
            EditedPair(pair, known=evaluation)
    EditedPair(uppermost, known=evaluate(uppermost))


def test_a_new_object_needs_a_class_and_nothing_is_changed_without() -> None:
    _, live = simple()
    for classes in ({}, {9: "Fibroblast"}):
        with pytest.raises(LabelError, match="a new object needs a class, one of Epithelial"):
            live.set_pixels(Side.PREDICTION, np.array([0]), np.array([0]), 9, classes=classes)
        window = IdWindow((0, 0), np.array([[1, 2]], np.uint16), np.array([0, 3, 9]))
        with pytest.raises(LabelError, match="a new object needs a class, one of Epithelial"):
            live.set_window(Side.PREDICTION, window, classes=classes)
    assert live.pair().prediction.id_image()[0, 0] == 0
    assert live.evaluate(EvaluationSettings()).metrics.pq == 1.0


def test_another_class_for_an_object() -> None:
    _, live = simple()
    live.set_class(Side.PREDICTION, 3, "Macrophage")
    evaluation = live.evaluate(EvaluationSettings())
    assert evaluation.objects["status"].tolist() == ["misclassified", "misclassified"]
    assert live.pair().prediction.class_names_of_objects().tolist() == ["Macrophage"]
    with pytest.raises(LabelError, match="no object 77"):
        live.set_class(Side.PREDICTION, 77, "Macrophage")


def test_objects_keep_their_scores_when_they_are_edited() -> None:
    image = np.zeros((12, 12), int)
    image[2:6, 2:6], image[8:10, 8:10] = 3, 7
    labels = LabelImage.from_array(image, dict.fromkeys((3, 7), "Epithelial"), CLASS_NAMES)
    scored = replace(labels, known_scores=Scores(labels.ids, np.array([0.25, 0.75])))
    live = EditedPair(LabelPair(labels, scored))
    np.testing.assert_array_equal(live.pair().prediction.scores, [0.25, 0.75])
    live.set_pixels(Side.PREDICTION, np.array([2]), np.array([2]), 9, classes={9: "Macrophage"})
    before = live.pair().prediction
    np.testing.assert_array_equal(before.scores, [0.25, 0.75, np.nan])
    live.set_class(Side.PREDICTION, 3, "Macrophage")
    live.set_pixels(Side.PREDICTION, *np.nonzero(image == 7), 0)
    np.testing.assert_array_equal(
        live.evaluate(EvaluationSettings()).objects["score"][-2:], [0.25, np.nan]
    )
    live.set_pixels(Side.PREDICTION, np.array([8]), np.array([8]), 7)
    np.testing.assert_array_equal(live.pair().prediction.scores, [0.25, 0.75, np.nan])
    # Objects of another file have its scores, though their ids are there already.
    window = IdWindow(
        (0, 0), image.astype(np.uint16), np.arange(8), Scores(np.array([3]), np.array([0.5]))
    )
    live.set_window(Side.PREDICTION, window)
    np.testing.assert_array_equal(live.pair().prediction.scores, [0.5, np.nan])
    np.testing.assert_array_equal(before.scores, [0.25, 0.75, np.nan])


@pytest.mark.parametrize("seed", range(4))
def test_pixels_far_apart_are_counted_as_those_of_one_window(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = []
    for _ in Side:
        image = np.zeros((700, 500), np.int64)
        for id_ in rng.permutation(300)[:150] + 1:
            (y, x), (height, width) = rng.integers(0, (690, 490)), rng.integers(3, 60, 2)
            image[y : y + height, x : x + width] = id_
        images.append(image)
    names = {id_: CLASS_NAMES[id_ % 4] for id_ in range(1, 400)}
    void = rng.random((700, 500)) < 0.1
    live = EditedPair(pair_of(LabelCase(images[0].copy(), images[1].copy(), names, names, void)))
    for step in range(6):
        side = list(Side)[step % 2]
        image = images[step % 2]
        chosen = rng.choice(np.unique(image)[1:], 5)
        y, x = np.nonzero(np.isin(image, chosen))
        if step > 3:  # parts of objects, and new ones
            kept = rng.random(len(y)) < 0.5
            y, x = y[kept], x[kept]
        ids = np.where(image[y, x] == chosen[0], 0, rng.integers(0, 400, len(y)))
        image[y, x] = ids
        live.set_pixels(side, y, x, ids, classes=names)
        case = LabelCase(images[0].copy(), images[1].copy(), names, names, void)
        for how in (EvaluationSettings(), EvaluationSettings(zone_px=2)):
            assert_same(live.evaluate(how), evaluate(pair_of(case), how))
