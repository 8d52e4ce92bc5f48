"""Editing in a real window, with real mouse and keys: figures and colours follow."""

import inspect
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
import tifffile
from qtpy.QtCore import QCoreApplication, QEvent, QPointF, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.display import styles
from napari_panoptic.io.formats.saving import read_objects, writable_forms
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.cohort import MaskFiles, Source
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.viewer.editing import live_edits
from napari_panoptic.viewer.editing.ambiguous_shapes import filled, outlines
from napari_panoptic.viewer.kit import shown as shown_module
from napari_panoptic.viewer.kit.napari_private import exchange_colours
from napari_panoptic.viewer.layers import scene
from napari_panoptic.viewer.layers.watch import LayerValues
from napari_panoptic.viewer.panels.edits import files as edits_files
from napari_panoptic.viewer.panels.edits.panel import (
    DRAW_AREAS,
    GOES_ON,
    NOTHING_DRAWN,
    NOTHING_EDITED,
)
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.viewer.editing.mending import same_area
from tests.viewer.finding import FIRST, SECOND, answering, on_canvas, row_of_status

LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton


@pytest.fixture(scope="module")
def shown_parts():
    """Show only the panel for edits."""
    return (EditsPresenter,)


@pytest.fixture
def at_first(fresh_desk, wait_until):
    """Switch editing on, with nothing edited."""
    part = part_of(fresh_desk)
    part.edits.discard()
    part.edits.chosen_class = None
    part.edits.note_saved(part.edits.unsaved)
    fresh_desk.raise_part(part)
    fresh_desk.link.scene.camera.fit()
    part.edits.set_on(True)
    wait_until(lambda: fresh_desk.is_settled)
    yield
    part.shapes.set_on(False)
    part.edits.set_on(False)
    wait_until(lambda: fresh_desk.is_settled)
    part.edits.discard()
    part.edits.note_saved(part.edits.unsaved)


@pytest.fixture
def layer(desk):
    return layer_of(desk, Side.PREDICTION)


@pytest.fixture
def follows(desk, wait_until):
    """Give a function that checks that everything shown equals a full recomputation."""

    def check():
        wait_until(lambda: desk.is_settled)
        session = desk.session
        snapshot = session.snapshot
        sides = {side: fresh(session.edited_labels(side)) for side in Side}
        pair = LabelPair(
            sides[Side.REFERENCE], sides[Side.PREDICTION], snapshot.ambiguous, snapshot.mpp
        )
        expected = evaluate(pair, session.settings)
        assert session.evaluation.objects.equals(expected.objects)
        assert desk.panels.metrics.figure("pq") == styles.ratio_text(expected.metrics.pq)
        assert len(desk.panels.objects.model.rows) == len(expected.objects)
        for side in Side:
            check_layer(desk, side, sides[side], expected.outcomes.side(side))

    return check


def part_of(desk):
    return desk.presenter(EditsPresenter)


def layer_of(desk, side):
    return desk.link.scene.object_layer(side, desk.session.team)[0]


def objects_of(session, side):
    """Give the id of each pixel, and the class of each object that has one."""
    labels = session.edited_labels(side)
    names = dict(zip(labels.ids.tolist(), labels.class_names_of_objects().tolist(), strict=True))
    image = labels.id_image()
    return image, {id_: names[id_] for id_ in np.unique(image).tolist() if id_}


def same_objects(one, other):
    """Tell whether pixels are shared out in the same way, whatever the ids, with equal classes."""
    (image, names), (others, other_names) = one, other
    pairs = np.unique(np.stack([image.ravel(), others.ravel()]), axis=1).T.tolist()
    is_one_to_one = len(pairs) == len(np.unique(image)) == len(np.unique(others))
    return is_one_to_one and all(names.get(a) == other_names.get(b) for a, b in pairs)


def fresh(labels):
    names = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
    return LabelImage.from_array(labels.id_image(), names, labels.class_names)


def check_layer(desk, side, labels, outcomes):
    """A layer shows the copy pixel by pixel, every object in the colour of its status."""
    layer, values = desk.link.scene.object_layer(side, desk.session.team)
    np.testing.assert_array_equal(values.ids(np.asarray(layer.data)), labels.id_image())
    table = styles.status_colour_table()
    for id_, status in zip(outcomes.ids.tolist(), outcomes.status.tolist(), strict=True):
        np.testing.assert_allclose(layer.get_color(values.value(id_)), table[status], atol=1e-6)


def save_with_area(part, path, wait_until):
    """Save the annotation with an ambiguous area in its upper left corner; gives that area."""
    saved = part.edits.objects_to_save(Side.REFERENCE)
    area = np.zeros(saved.labels.shape, bool)
    area[:20, :20] = True
    part.files.save_to(path, replace(saved, ambiguous=area))
    wait_until(lambda: not part.is_busy)
    return area


def drag(canvas, places, *, button=LEFT):
    QTest.mousePress(canvas, button, pos=places[0])
    for place in places[1:]:
        move(canvas, place, button)
    QTest.mouseRelease(canvas, button, pos=places[-1])


def move(canvas, place, buttons=Qt.MouseButton.NoButton):
    """Move the mouse as slowly as a hand: vispy leaves out moves within 10 ms."""
    QTest.qWait(12)
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(place),
        QPointF(canvas.mapToGlobal(place)),
        Qt.MouseButton.NoButton,
        buttons,
        Qt.KeyboardModifier.NoModifier,
    )
    QCoreApplication.sendEvent(canvas, event)
    QCoreApplication.processEvents()


def place_of(desk, y, x):
    return on_canvas(desk.viewer, y, x, layer="image")


def line(desk, start, end, steps=6):
    ys, xs = (np.linspace(a, b, steps) for a, b in zip(start, end, strict=True))
    return [place_of(desk, y, x) for y, x in zip(ys, xs, strict=True)]


def middle_of(desk, side, row):
    """Find a pixel of an object."""
    session = desk.session
    labels = session.snapshot.labels(side, session.team)
    places = np.argwhere(labels.index == row + 1)
    return places[len(places) // 2]


def free_place(desk, size=14):
    """Find the middle of a square where nothing is annotated or predicted."""
    snapshot = desk.session.snapshot
    taken = (snapshot.reference.index > 0) | (snapshot.predictions[desk.session.team].index > 0)
    height, width = taken.shape
    for y in range(20, height - size - 20, 4):
        for x in range(20, width - size - 20, 4):
            if not taken[y : y + size, x : x + size].any():
                return y + size // 2, x + size // 2
    raise AssertionError("no free place")


CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
ALT = Qt.KeyboardModifier.AltModifier


class TestStrokes:
    def test_a_new_object_is_painted_counted_and_undone(self, desk, layer, canvas, follows):
        before = desk.session.evaluation.objects
        y, x = free_place(desk)
        part_of(desk).edits.start_new_object()
        layer.brush_size = 5
        drag(canvas, line(desk, (y - 3, x - 3), (y + 3, x + 3)))
        follows()
        outcomes = desk.session.evaluation.outcomes.prediction
        row = desk.session.snapshot.row_at(Side.PREDICTION, desk.session.team, y, x)
        assert outcomes.status[row] == STATUS_CODE[Status.FP]
        assert "prediction edited" in desk.panels.title.title()
        assert layer.name == "careful (edited)"

        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        follows()
        assert desk.session.evaluation.objects.equals(before)
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL | SHIFT)
        follows()
        assert len(desk.session.evaluation.outcomes.prediction) == len(outcomes)

    @pytest.mark.long
    def test_a_first_stroke_is_no_part_of_an_object_that_nobody_chose(
        self, desk, layer, canvas, follows
    ):
        edits, before = part_of(desk).edits, desk.session.evaluation.outcomes.prediction
        desk.session.select(None)
        edits.set_on(False)
        layer.selected_label = 1  # as napari gives every layer
        edits.set_on(True)
        layer.mode, layer.brush_size = "paint", 5
        y, x = free_place(desk)
        drag(canvas, line(desk, (y - 3, x - 3), (y + 3, x + 3)))
        follows()
        after = desk.session.evaluation.outcomes.prediction
        assert len(after) == len(before) + 1
        own = np.isin(after.ids, before.ids)
        np.testing.assert_array_equal(after.area_px[own], before.area_px)

    def test_figures_follow_before_the_button_is_released(self, desk, layer, canvas):
        row = row_of_status(desk, Side.PREDICTION, Status.TP)
        y, x = middle_of(desk, Side.PREDICTION, row)
        layer.mode, layer.brush_size = "erase", 9
        area = desk.session.evaluation.outcomes.prediction.area_px[row]
        QTest.mousePress(canvas, LEFT, pos=place_of(desk, y, x))
        move(canvas, place_of(desk, y + 1, x + 1), LEFT)
        assert desk.session.evaluation.outcomes.prediction.area_px[row] < area
        QTest.mouseRelease(canvas, LEFT, pos=place_of(desk, y + 1, x + 1))

    @pytest.mark.long
    def test_an_erased_object_is_missed(self, desk, layer, canvas, follows):
        row = row_of_status(desk, Side.REFERENCE, Status.TP)
        partner = int(desk.session.evaluation.outcomes.reference.partner[row])
        id_ = int(desk.session.evaluation.outcomes.reference.ids[row])
        desk.session.select_row(Side.REFERENCE, row)
        y, x = middle_of(desk, Side.PREDICTION, partner)
        layer.mode, layer.brush_size = "erase", 60
        drag(canvas, line(desk, (y - 4, x - 4), (y + 4, x + 4)))
        follows()
        reference = desk.session.evaluation.outcomes.reference
        assert reference.status[reference.row_of(id_)] == STATUS_CODE[Status.FN]
        assert "FN" in desk.panels.title.selected.text()
        assert desk.panels.objects.selected() == (Side.REFERENCE, reference.row_of(id_))

    def test_fill_gives_an_object_to_another(self, desk, layer, canvas, follows):
        row = row_of_status(desk, Side.PREDICTION, Status.TP)
        layer.mode, layer.selected_label = "fill", 0
        place = place_of(desk, *middle_of(desk, Side.PREDICTION, row))
        count = len(desk.session.evaluation.outcomes.prediction)
        drag(canvas, [place])
        follows()
        assert len(desk.session.evaluation.outcomes.prediction) == count - 1

    @pytest.mark.long
    def test_a_polygon_is_an_object(self, desk, layer, canvas, follows):
        y, x = free_place(desk, 20)
        part_of(desk).edits.start_new_object()
        layer.mode = "polygon"
        count = len(desk.session.evaluation.outcomes.prediction)
        for dy, dx in ((-6, -6), (-6, 6), (6, 6), (6, -6)):
            move(canvas, place_of(desk, y + dy, x + dx))
            QTest.mouseClick(canvas, LEFT, pos=place_of(desk, y + dy, x + dx))
        QTest.mouseDClick(canvas, LEFT, pos=place_of(desk, y + 6, x - 6))
        follows()
        assert len(desk.session.evaluation.outcomes.prediction) == count + 1

    def encircle(self, desk, canvas, *, closed):
        y, x = free_place(desk, 24)
        part_of(desk).edits.start_new_object()
        layer_of(desk, Side.PREDICTION).brush_size = 1
        angles = np.linspace(0, 2 * np.pi if closed else np.pi, 24)
        places = [place_of(desk, y + 8 * np.sin(a), x + 8 * np.cos(a)) for a in angles]
        QTest.mousePress(canvas, RIGHT, pos=places[0])
        QTest.mouseRelease(canvas, RIGHT, pos=places[0])
        for place in places:
            move(canvas, place)
        return y, x

    @pytest.mark.long
    def test_an_object_is_encircled(self, desk, canvas, follows):
        y, x = self.encircle(desk, canvas, closed=True)
        follows()
        row = desk.session.snapshot.row_at(Side.PREDICTION, desk.session.team, y, x)
        assert row is not None

    @pytest.mark.long
    def test_escape_in_mid_stroke_takes_it_back(self, desk, canvas, follows):
        before = desk.session.evaluation.objects
        self.encircle(desk, canvas, closed=False)
        assert not desk.session.evaluation.objects.equals(before)
        QTest.keyClick(canvas, Qt.Key.Key_Escape)
        follows()
        assert desk.session.evaluation.objects.equals(before)

    @pytest.mark.long
    def test_the_annotation_is_edited_for_all_teams(self, desk, canvas, follows):
        part = part_of(desk)
        part.edits.activate(Side.REFERENCE)
        layer = layer_of(desk, Side.REFERENCE)
        row = row_of_status(desk, Side.REFERENCE, Status.TP)
        id_ = int(desk.session.evaluation.outcomes.reference.ids[row])
        layer.mode, layer.selected_label = "fill", 0
        drag(canvas, [place_of(desk, *middle_of(desk, Side.REFERENCE, row))])
        follows()
        desk.session.set_team("merger")
        follows()
        assert desk.session.evaluation.outcomes.reference.row_of(id_) is None
        assert layer_of(desk, Side.PREDICTION).editable
        assert not desk.viewer.layers["careful"].editable
        y, x = free_place(desk)
        part.edits.start_new_object()
        drag(canvas, line(desk, (y - 2, x - 2), (y + 2, x + 2)))
        follows()


class TestOtherWays:
    def test_a_plugin_sets_pixels(self, desk, layer, follows):
        layer.data_setitem((np.array([30, 30]), np.array([40, 41])), 3)
        follows()
        assert desk.session.is_edited(Side.PREDICTION)

    def test_pixels_are_written_in_place(self, desk, layer, follows):
        layer.data[20:40, 20:40] = 0
        layer.refresh()
        follows()
        assert not desk.session.edited_labels(Side.PREDICTION).index[20:40, 20:40].any()

    @pytest.mark.long
    @pytest.mark.parametrize("kind", [np.uint16, np.int32, np.int64])
    def test_data_are_replaced(self, desk, layer, follows, kind):
        data = np.array(layer.data, kind)
        data[:100] = 0
        layer.data = data
        follows()
        assert layer.data.dtype == np.uint16
        assert not desk.session.edited_labels(Side.PREDICTION).index[:100].any()

    def test_data_of_another_shape_are_refused(self, desk, layer, follows, capture_warnings):
        layer.data_setitem((np.array([30]), np.array([40])), 3)
        layer.data = np.zeros((10, 10), np.uint16)
        follows()
        assert "must keep its size" in capture_warnings()[0]
        assert desk.session.is_edited(Side.PREDICTION)
        assert layer.data.shape == desk.session.snapshot.shape

    @pytest.mark.long
    def test_numbers_beyond_16_bits_are_refused(self, desk, layer, follows, capture_warnings):
        layer.data = np.array(layer.data, np.int64) + 70_000
        follows()
        assert "at most 65534" in capture_warnings()[0]
        assert not desk.session.is_edited(Side.PREDICTION)

    def test_the_console_edits_the_session(self, desk, layer, follows):
        y, x = (at.ravel() for at in np.mgrid[10:20, 10:20])
        desk.session.edit(Side.PREDICTION, y, x, 9000, classes={9000: "Neutrophil"})
        follows()
        values = desk.link.scene.object_layer(Side.PREDICTION, "careful")[1]
        assert layer.data[12, 12] == values.value(9000)

    def test_a_renamed_layer_is_still_followed(self, desk, layer, canvas, follows):
        layer.name = "mine"
        layer.mode, layer.brush_size = "erase", 30
        row = row_of_status(desk, Side.PREDICTION, Status.TP)
        drag(canvas, [place_of(desk, *middle_of(desk, Side.PREDICTION, row))])
        follows()
        assert desk.session.is_edited(Side.PREDICTION)
        assert layer.name == "mine"
        layer.name = "careful (edited)"

    @pytest.mark.long
    def test_a_deleted_layer_comes_back_with_what_was_drawn(
        self, desk, viewer, layer, follows, wait_until, capture_warnings
    ):
        layer.data_setitem((np.array([30, 30]), np.array([40, 41])), 3)
        viewer.layers.remove(layer)
        wait_until(lambda: desk.link.scene.object_layer(Side.PREDICTION, "careful") is not None)
        follows()
        assert "was restored" in capture_warnings()[0]
        again = layer_of(desk, Side.PREDICTION)
        assert again is not layer
        assert again.editable
        assert again.data[30, 40] == 3


def random_step(desk, rng, layers):
    """Do one of the many things that somebody does to a layer."""
    layer = layers[rng.integers(2)]
    y, x = (int(rng.integers(20, size - 20)) for size in layer.data.shape)
    labels = np.unique(layer.data)
    label = int(rng.choice([0, int(labels[-1]) + 1, *labels[:20]]))
    steps = ["paint", "fill", "undo", "redo", "undo", "set", "polygon", "contour", "class"]
    step = rng.choice(steps)
    if step == "class":
        side = list(Side)[layers.index(layer)]
        desk.session.select_row(side, int(rng.integers(20)))
        part_of(desk).edits.set_class(str(rng.choice(desk.session.cohort.scheme.names)))
    elif step == "paint":
        layer.brush_size = int(rng.integers(1, 40))
        layer.paint((y, x), label)
    elif step == "fill":
        layer.fill((y, x), label)
    elif step == "set":
        layer.data_setitem((np.array([y, y + 1]), np.array([x, x])), label)
    elif step == "polygon":
        layer.paint_polygon([[y, x], [y, x + 15], [y + 15, x + 9]], label)
    elif step == "contour":
        layer.contour = int(rng.integers(0, 3))
    else:
        getattr(layer, step)()


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_any_sequence_of_edits_equals_a_recomputation(desk, follows, seed):
    rng = np.random.default_rng(seed)
    layers = [layer_of(desk, side) for side in Side]
    for _ in range(40):
        random_step(desk, rng, layers)
    follows()
    for layer in layers:
        for _ in range(40):
            layer.undo()
    follows()
    for side in Side:
        original = desk.session.loaded.predictions["careful"]
        if side is Side.REFERENCE:
            original = desk.session.loaded.reference
        np.testing.assert_array_equal(
            desk.session.edited_labels(side).id_image(), original.id_image()
        )
        assert objects_of(desk.session, side)[1] == dict(
            zip(original.ids.tolist(), original.class_names_of_objects().tolist(), strict=True)
        )
        assert not desk.session.is_edited(side)


def choose_class(desk, side, row):
    """Select an object and choose another class for it; gives its id, and both classes."""
    part = part_of(desk)
    desk.session.select_row(side, row)
    part.refresh()
    menu = part.panel.object_class
    before = menu.currentText()
    menu.setCurrentIndex((menu.currentIndex() + 1) % menu.count())
    return desk.session.selection.id, before, menu.currentText()


def class_of(desk, side, id_):
    return objects_of(desk.session, side)[1].get(id_)


class TestClasses:
    @pytest.mark.long
    def test_strokes_and_classes_are_undone_in_the_order_in_which_they_were_made(
        self, desk, layer, canvas, follows
    ):
        session, side = desk.session, Side.PREDICTION
        row = row_of_status(desk, side, Status.TP)
        place = middle_of(desk, side, row)
        layer.mode, layer.brush_size = "erase", 3
        states = [objects_of(session, side)]
        figures = [session.evaluation.objects]

        def note():
            follows()
            states.append(objects_of(session, side))
            figures.append(session.evaluation.objects)

        drag(canvas, [place_of(desk, *place)])
        note()
        id_, before, after = choose_class(desk, side, row)
        note()
        layer.mode, layer.selected_label = "fill", 0
        drag(canvas, [place_of(desk, place[0], place[1] + 4)])  # the object is drawn away
        note()
        assert [at[1].get(id_) for at in states] == [before, before, after, None]
        for key, order in ((CTRL, (2, 1, 0)), (CTRL | SHIFT, (1, 2, 3)), (CTRL, (2, 1, 0))):
            for at in order:
                QTest.keyClick(canvas, Qt.Key.Key_Z, key)
                follows()
                image, names = objects_of(session, side)
                np.testing.assert_array_equal(image, states[at][0])
                assert names == states[at][1]
                assert session.evaluation.objects.equals(figures[at])
                assert session.is_edited(side) is (at > 0)
                assert bool(part_of(desk).edits.unsaved) is (at > 0)
                assert layer.name == ("careful (edited)" if at else "careful")

    @pytest.mark.long
    def test_the_panel_shows_the_class_that_is_there_again(self, desk, follows):
        panel = part_of(desk).panel
        row = row_of_status(desk, Side.REFERENCE, Status.TP)
        _, before, after = choose_class(desk, Side.REFERENCE, row)
        follows()
        QTest.mouseClick(panel.undo, LEFT)
        follows()
        assert panel.object_class.currentText() == before
        QTest.mouseClick(panel.redo, LEFT)
        follows()
        assert panel.object_class.currentText() == after
        assert "annotation (not saved)" in panel.state.text()

    @pytest.mark.long
    def test_a_stroke_leaves_no_class_to_be_given_again(self, desk, layer, canvas, follows):
        row = row_of_status(desk, Side.PREDICTION, Status.TP)
        id_, before, _ = choose_class(desk, Side.PREDICTION, row)
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        layer.data_setitem((np.array([30]), np.array([40])), 3)
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL | SHIFT)
        follows()
        assert class_of(desk, Side.PREDICTION, id_) == before

    @pytest.mark.long
    def test_the_same_class_again_is_no_step(self, desk, canvas, follows):
        y, x = free_place(desk)
        part_of(desk).edits.start_new_object()
        drag(canvas, line(desk, (y - 3, x), (y + 3, x)))
        desk.session.select_row(Side.PREDICTION, 0)
        edits = part_of(desk).edits
        edits.set_class(edits.selected_class())
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        follows()
        assert not desk.session.is_edited(Side.PREDICTION)

    @pytest.mark.long
    def test_a_class_given_while_layers_are_locked_can_be_undone(
        self, desk, viewer, canvas, follows
    ):
        part, session = part_of(desk), desk.session
        part.edits.set_on(False)
        follows()
        assert not part.panel.undo.isEnabled()
        choose_class(desk, Side.REFERENCE, row_of_status(desk, Side.REFERENCE, Status.TP))
        follows()
        assert session.is_edited(Side.REFERENCE)
        assert part.panel.undo.isEnabled()
        assert viewer.layers.selection.active is layer_of(desk, Side.REFERENCE)
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        follows()
        assert not session.is_edited(Side.REFERENCE)

    @pytest.mark.long
    @pytest.mark.parametrize("is_on", [True, False])
    def test_a_class_outlives_other_regions_and_its_undo_does_not(
        self, desk, follows, wait_until, is_on
    ):
        part, side = part_of(desk), Side.PREDICTION
        part.edits.set_on(is_on)
        id_, _, after = choose_class(desk, side, row_of_status(desk, side, Status.TP))
        for region in (SECOND, FIRST):
            desk.link.request(region=region)
            wait_until(lambda: desk.is_settled)
            before = desk.session.evaluation.objects
            for undoes in (layer_of(desk, side).undo, layer_of(desk, side).redo):
                undoes()
                follows()
                assert desk.session.evaluation.objects.equals(before)
        assert class_of(desk, side, id_) == after

    @pytest.mark.long
    @pytest.mark.parametrize("is_on", [True, False])
    def test_what_was_done_beside_another_team_is_not_undone(self, desk, follows, is_on):
        part, side = part_of(desk), Side.REFERENCE
        part.edits.set_on(is_on)
        id_, _, after = choose_class(desk, side, row_of_status(desk, side, Status.TP))
        desk.session.set_team("merger")
        layer_of(desk, side).undo()
        follows()
        assert class_of(desk, side, id_) == after

    def test_a_class_that_was_discarded_does_not_come_back(self, desk, canvas, follows):
        part, side = part_of(desk), Side.PREDICTION
        id_, before, _ = choose_class(desk, side, row_of_status(desk, side, Status.TP))
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL | SHIFT)
        part.edits.discard()
        for key in (CTRL, CTRL | SHIFT):
            QTest.keyClick(canvas, Qt.Key.Key_Z, key)
            follows()
            assert class_of(desk, side, id_) == before

    @pytest.mark.long
    def test_what_is_saved_has_the_class_that_is_there(
        self, desk, canvas, follows, tmp_path, wait_until
    ):
        part, side = part_of(desk), Side.PREDICTION
        id_, before, after = choose_class(desk, side, row_of_status(desk, side, Status.TP))
        for name, wanted in (("given", after), ("undone", before)):
            path = tmp_path / f"{name}.tif"
            part.files.save_to(path, part.edits.objects_to_save(side))
            wait_until(lambda: not part.is_busy)
            assert f"{id_},{wanted}" in path.with_suffix(".csv").read_text().splitlines()
            assert not part.edits.unsaved
            QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
            follows()


class TestAround:
    @pytest.mark.long
    def test_edits_outlive_other_regions_and_settings(self, desk, canvas, follows, wait_until):
        y, x = free_place(desk)
        part_of(desk).edits.start_new_object()
        drag(canvas, line(desk, (y - 3, x), (y + 3, x)))
        for change in ({"region": SECOND}, {"region": FIRST}):
            desk.link.request(**change)
            wait_until(lambda: desk.is_settled)
            follows()
        assert desk.session.is_edited(Side.PREDICTION)
        desk.panels.settings.threshold.setValue(0.7)
        follows()
        part_of(desk).edits.start_new_object()
        drag(canvas, line(desk, (y, x - 3), (y, x + 3)))
        follows()

    @pytest.mark.long
    def test_undo_of_another_region_is_forgotten(self, desk, canvas, follows, wait_until):
        drag_place = free_place(desk)
        part_of(desk).edits.start_new_object()
        drag(canvas, line(desk, drag_place, drag_place))
        desk.link.request(region=SECOND)
        wait_until(lambda: desk.is_settled)
        before = desk.session.evaluation.objects
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        follows()
        assert desk.session.evaluation.objects.equals(before)

    @pytest.mark.long
    def test_new_objects_get_the_class_asked_for(self, desk, canvas, follows):
        part = part_of(desk)
        panel = part.panel
        panel.new_class.choose("Macrophage")
        y, x = free_place(desk)
        QTest.mouseClick(panel.new_object, LEFT)
        drag(canvas, line(desk, (y - 3, x), (y + 3, x)))
        follows()
        row = desk.session.snapshot.row_at(Side.PREDICTION, desk.session.team, y, x)
        number = desk.session.evaluation.outcomes.prediction.class_index[row]
        assert desk.session.cohort.scheme.names[number - 1] == "Macrophage"

    @pytest.mark.long
    @pytest.mark.parametrize("goes_away", [False, True])
    @pytest.mark.parametrize("by_key", [False, True], ids=["by button", "by key"])
    def test_a_new_object_has_its_own_class_after_another_was_undone(
        self, desk, canvas, follows, wait_until, goes_away, by_key
    ):
        edits, (y, x) = part_of(desk).edits, free_place(desk)
        stroke = line(desk, (y - 3, x), (y + 3, x))
        given = []
        for name in ("Neutrophil", "Macrophage"):
            edits.chosen_class = name
            if by_key and given:
                QTest.keyClick(canvas, Qt.Key.Key_2)  # the brush
                QTest.keyClick(canvas, Qt.Key.Key_M)
            else:
                edits.start_new_object()
            drag(canvas, stroke)
            follows()
            image, names = objects_of(desk.session, Side.PREDICTION)
            given.append(names[image[y, x]])
            QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
            follows()
            for region in (SECOND, FIRST) if goes_away else ():
                desk.link.request(region=region)
                wait_until(lambda: desk.is_settled)
                desk.link.scene.camera.fit()
        assert given == ["Neutrophil", "Macrophage"]

    @pytest.mark.long
    def test_edits_discarded_by_anybody_are_not_asked_for(self, desk, canvas, wait_until):
        y, x = free_place(desk)
        part = part_of(desk)
        part.edits.start_new_object()
        drag(canvas, line(desk, (y - 3, x), (y + 3, x)))
        wait_until(lambda: desk.is_settled)
        assert part.edits.unsaved
        desk.session.discard_edits()
        wait_until(lambda: desk.is_settled)
        assert part.edits.unsaved == ()
        assert part.may_leave()

    @pytest.mark.long
    def test_the_selected_object_gets_another_class(self, desk, follows):
        panel = part_of(desk).panel
        row = row_of_status(desk, Side.PREDICTION, Status.TP)
        desk.session.select_row(Side.PREDICTION, row)
        follows()
        other = (panel.object_class.currentIndex() + 1) % panel.object_class.count()
        panel.object_class.setCurrentIndex(other)
        follows()
        status = desk.session.evaluation.outcomes.prediction.status[row]
        assert status == STATUS_CODE[Status.MISCLASSIFIED]

    def test_layers_are_locked_while_editing_is_off(self, desk, viewer, canvas, layer):
        assert layer.editable
        QTest.keyClick(canvas, Qt.Key.Key_D, ALT)
        assert not part_of(desk).edits.is_on
        assert not layer.editable
        QTest.keyClick(canvas, Qt.Key.Key_D, ALT)
        assert layer.editable
        assert viewer.layers.selection.active is layer

    def test_the_panel_says_what_the_brush_does_next(self, desk, layer, follows):
        part = part_of(desk)
        part.refresh()
        assert part.panel.state.text() == NOTHING_DRAWN
        layer.data[:30] = 0
        layer.refresh()
        follows()
        part.refresh()
        assert part.panel.state.text().endswith(GOES_ON)
        part.edits.set_on(False)
        part.refresh()
        assert GOES_ON not in part.panel.state.text()
        part.edits.discard()
        part.refresh()
        assert part.panel.state.text() == NOTHING_EDITED

    def test_the_panel_shows_what_changed(self, desk, layer, follows):
        panel = part_of(desk).panel
        before = desk.session.evaluation.metrics.pq
        layer.data[:150] = 0
        layer.refresh()
        follows()
        rows = {row[0]: row[1:] for row in panel.differences.texts()}
        now = desk.session.evaluation.metrics.pq
        assert rows["PQ"] == [f"{before:.3f}", f"{now:.3f}", f"−{before - now:.3f}"]
        assert "careful (not saved)" in panel.state.text()
        with answering("Yes") as asked:
            QTest.mouseClick(panel.discard, LEFT)
        assert len(asked) == 1
        follows()
        assert not desk.session.is_edited(Side.PREDICTION)
        assert layer.name == "careful"
        assert not panel.differences.isVisible()

    @pytest.mark.long
    @pytest.mark.parametrize("ending", [".tif", ".geojson", ".xml", ".ome.zarr"])
    def test_a_copy_is_saved(self, desk, layer, follows, tmp_path, ending, wait_until):
        part = part_of(desk)
        layer.data[:100] = 0
        layer.refresh()
        follows()
        path = tmp_path / f"mine{ending}"
        with patch.object(QFileDialog, "getSaveFileName", return_value=(str(path), "")):
            QTest.mouseClick(part.panel.save, LEFT)
        wait_until(lambda: not part.is_busy)
        assert path.stat().st_size > 0
        assert not part.edits.unsaved
        assert "careful (saved)" in part.panel.state.text()

    @pytest.mark.long
    @pytest.mark.parametrize("ending", [form.endings[0] for form in writable_forms()])
    def test_what_a_form_cannot_hold_is_said_when_it_is_saved(
        self, desk, follows, tmp_path, ending, wait_until, capture_warnings
    ):
        part, session, side = part_of(desk), desk.session, Side.REFERENCE
        y, x = (at.ravel() for at in np.mgrid[20:40, 20:40])
        is_hole = (abs(y - 30) < 3) & (abs(x - 30) < 3)
        session.edit(side, y, x, np.where(is_hole, 0, 9000), classes={9000: "Neutrophil"})
        ring = np.zeros(session.snapshot.shape, bool)
        ring[60:90, 60:90], ring[70:80, 70:80] = True, False
        part.edits.set_ambiguous(ring)
        follows()
        path = tmp_path / f"mine{ending}"
        part.files.save_to(path, part.edits.objects_to_save(side))
        wait_until(lambda: not part.is_busy)
        said = [text for text in capture_warnings() if "mine" in text]
        opened = (
            None
            if ending == ".ome.zarr"
            else read_objects(path, session.cohort.scheme, session.snapshot.shape)
        )
        if ending == ".hovernet.json":
            assert said[0].startswith(f"Saved, but {path.name} cannot hold all: 1 object has")
            assert str(tmp_path) in said[0]
            assert "holes were filled" in said[0]
            assert "9000" in said[0]
            assert "1 ambiguous area has" in said[0]
            assert "counts as not saved" in said[0]
            assert [at.words for at in part.edits.unsaved] == ["annotation", "ambiguous areas"]
            assert opened.labels.index[30, 30]
            assert opened.ambiguous[75, 75]
        else:
            (sentence,) = said
            assert sentence.startswith(f"Saved {path.name}")
            assert sentence.endswith(f" in {tmp_path}")
            assert not part.edits.unsaved
            assert opened is None or not opened.labels.index[30, 30]
            assert opened is None or np.array_equal(opened.ambiguous, ring)

    @pytest.mark.long
    @pytest.mark.parametrize("answer", ["Yes", "No"])
    def test_a_file_whose_ending_nobody_typed_is_asked_about_before_it_is_replaced(
        self, desk, layer, follows, tmp_path, wait_until, answer
    ):
        part = part_of(desk)
        layer.data[:100] = 0
        layer.refresh()
        follows()
        theirs = tmp_path / "mine.tif"
        theirs.write_text("theirs")
        chosen = str(tmp_path / "mine"), "Label image with a table of classes (*.tif)"
        with (
            patch.object(QFileDialog, "getSaveFileName", return_value=chosen),
            answering(answer) as asked,
        ):
            QTest.mouseClick(part.panel.save, LEFT)
        wait_until(lambda: not part.is_busy)
        assert "mine.tif exists already" in asked[0]
        assert (theirs.read_bytes() == b"theirs") == (answer == "No")
        assert bool(part.edits.unsaved) == (answer == "No")

    @pytest.mark.long
    def test_where_nothing_can_be_written_nothing_is_lost(
        self, desk, layer, follows, tmp_path, wait_until, capture_errors
    ):
        part = part_of(desk)
        layer.data[:100] = 0
        layer.refresh()
        follows()
        part.files.save_to(
            tmp_path / "no folder" / "x.tif", part.edits.objects_to_save(Side.PREDICTION)
        )
        wait_until(lambda: not part.is_busy)
        assert "cannot be written" in capture_errors()[0]
        assert part.edits.unsaved

    @pytest.mark.parametrize(
        ("ending", "side"),
        [
            (".tif", Side.PREDICTION),
            (".xml", Side.REFERENCE),
            *(
                pytest.param(ending, side, marks=pytest.mark.long)
                for ending, side in (
                    (".tif", Side.REFERENCE),
                    (".xml", Side.PREDICTION),
                    *product((".geojson", ".hovernet.json", ".roi.zip"), Side),
                )
            ),
        ],
    )
    def test_what_was_saved_can_be_opened_again(
        self, desk, viewer, follows, tmp_path, side, ending, wait_until
    ):
        part, session = part_of(desk), desk.session
        files, ambiguous = objects_of(session, side), session.snapshot.ambiguous
        pq = session.evaluation.metrics.pq
        part.edits.set_on(True, side)
        layer = viewer.layers.selection.active
        drawn = layer.data.copy()
        drawn[:60] = 0
        drawn[300:320, 300:330] = drawn.max() + 1
        layer.data = drawn
        follows()
        session.set_class(side, min(objects_of(session, side)[1]), "Macrophage")
        edited, pq_edited = objects_of(session, side), session.evaluation.metrics.pq
        assert not same_objects(edited, files)
        path = tmp_path / f"mine{ending}"
        part.files.save_to(path, part.edits.objects_to_save(side))
        wait_until(lambda: not part.is_busy)
        part.edits.discard()
        follows()
        assert same_objects(objects_of(session, side), files)

        with patch.object(QFileDialog, "getOpenFileName", return_value=(str(path), "")):
            QTest.mouseClick(part.panel.open, LEFT)
        wait_until(lambda: desk.is_settled)
        follows()
        assert same_objects(objects_of(session, side), edited)
        assert session.evaluation.metrics.pq == pytest.approx(pq_edited, rel=1e-12)
        assert not part.edits.unsaved
        assert "(saved)" in part.panel.state.text()
        np.testing.assert_array_equal(session.snapshot.ambiguous, ambiguous)
        # The layer shows it, and goes on from there.
        np.testing.assert_array_equal(layer.data > 0, edited[0] > 0)
        part.edits.discard()
        follows()
        assert session.evaluation.metrics.pq == pq

    @pytest.mark.long
    def test_strokes_of_before_cannot_be_undone_on_what_was_opened(
        self, desk, canvas, follows, tmp_path, wait_until
    ):
        part, (y, x) = part_of(desk), free_place(desk)
        saved = []
        for at in (x, x + 3):  # an object, and more of it
            if not saved:
                part.edits.start_new_object()
            drag(canvas, line(desk, (y - 3, at), (y + 3, at)))
            follows()
            path = tmp_path / f"{at}.tif"
            part.files.save_to(path, part.edits.objects_to_save(Side.PREDICTION))
            wait_until(lambda: not part.is_busy)
            saved.append((path, objects_of(desk.session, Side.PREDICTION)))
        path, objects = saved[-1]
        part.files.open_from(path)
        wait_until(lambda: not part.is_busy)
        follows()
        assert same_objects(objects_of(desk.session, Side.PREDICTION), objects)
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        follows()
        assert same_objects(objects_of(desk.session, Side.PREDICTION), objects)

    def test_a_file_of_another_size_is_not_opened(self, desk, tmp_path, wait_until, capture_errors):
        part, session = part_of(desk), desk.session
        path = tmp_path / "small.tif"
        tifffile.imwrite(path, np.ones((20, 30), np.uint16))
        path.with_suffix(".csv").write_text("id,class\n1,Epithelial\n")
        before = objects_of(session, Side.PREDICTION)
        part.files.open_from(path)
        wait_until(lambda: not part.is_busy)
        assert "30 x 20" in capture_errors()[0]
        part.files.open_from(tmp_path / "what.doc")
        wait_until(lambda: not part.is_busy)
        assert "found '.doc'" in capture_errors()[-1]
        assert same_objects(objects_of(session, Side.PREDICTION), before)

    @pytest.mark.long
    def test_a_file_is_opened_while_nothing_is_to_be_painted(
        self, desk, follows, tmp_path, wait_until
    ):
        part, session = part_of(desk), desk.session
        path = tmp_path / "mine.tif"
        saved = part.edits.objects_to_save(Side.REFERENCE)
        part.files.save_to(path, replace(saved, ambiguous=None))
        wait_until(lambda: not part.is_busy)
        part.edits.set_on(False)
        session.set_team("merger")
        follows()
        part.panel.side.show_choice(Side.PREDICTION)
        part.files.open_from(path)  # a team has exactly what is annotated
        wait_until(lambda: not part.is_busy)
        follows()
        assert session.evaluation.metrics.pq == 1.0
        assert not layer_of(desk, Side.PREDICTION).editable
        assert session.is_edited(Side.PREDICTION)
        assert not session.is_edited(Side.REFERENCE)
        assert session.evaluation.outcomes.prediction.count(Status.FP) == 0

    @pytest.mark.long
    def test_areas_of_a_file_that_a_team_cannot_have_are_told(
        self, desk, follows, tmp_path, wait_until, monkeypatch
    ):
        part, told = part_of(desk), []
        monkeypatch.setattr(edits_files, "show_info", told.append)
        path = tmp_path / "mine.tif"
        save_with_area(part, path, wait_until)
        before = desk.session.snapshot.ambiguous
        part.edits.activate(Side.PREDICTION)
        part.files.open_from(path)
        wait_until(lambda: not part.is_busy)
        follows()
        assert edits_files.AREAS_LEFT_OUT in told[-1]
        np.testing.assert_array_equal(desk.session.snapshot.ambiguous, before)

    @pytest.mark.long
    def test_areas_of_a_file_come_to_the_shapes_that_are_shown(
        self, desk, follows, tmp_path, wait_until
    ):
        part = part_of(desk)
        path = tmp_path / "mine.tif"
        area = save_with_area(part, path, wait_until)
        part.shapes.set_on(True)
        part.panel.side.show_choice(Side.REFERENCE)
        part.files.open_from(path)
        wait_until(lambda: not part.is_busy)
        follows()
        layer = part.shapes.layer
        assert same_area(filled(layer.data, layer.shape_type, area.shape), area)
        layer.add(np.array([[40, 40], [40, 60], [60, 60], [60, 40]]), shape_type="polygon")
        follows()
        drawn = desk.session.snapshot.ambiguous
        assert drawn[:20, :20].all()
        assert drawn[45:55, 45:55].all()

    @pytest.mark.long
    def test_areas_that_are_not_saved_are_asked_about_before_an_annotation_is_opened(
        self, desk, follows, tmp_path, wait_until
    ):
        part = part_of(desk)
        path = tmp_path / "mine.tif"
        part.files.save_to(path, part.edits.objects_to_save(Side.REFERENCE))
        wait_until(lambda: not part.is_busy)
        part.edits.activate(Side.REFERENCE)
        drawn = np.zeros(desk.session.snapshot.shape, bool)
        drawn[10:50, 10:50] = True
        part.edits.set_ambiguous(drawn)
        follows()
        with (
            patch.object(QFileDialog, "getOpenFileName", return_value=(str(path), "")),
            answering("No") as asked,
        ):
            QTest.mouseClick(part.panel.open, LEFT)
        wait_until(lambda: desk.is_settled)
        assert "ambiguous areas" in asked[0]
        np.testing.assert_array_equal(desk.session.snapshot.ambiguous, drawn)

    @pytest.mark.long
    @pytest.mark.parametrize("answer", ["Yes", "No"])
    def test_what_is_not_saved_is_replaced_only_when_allowed(
        self, desk, layer, follows, tmp_path, answer, wait_until
    ):
        part, session = part_of(desk), desk.session
        path = tmp_path / "mine.tif"
        part.files.save_to(path, part.edits.objects_to_save(Side.PREDICTION))
        wait_until(lambda: not part.is_busy)
        files = objects_of(session, Side.PREDICTION)
        layer.data[:100] = 0
        layer.refresh()
        follows()
        drawn = objects_of(session, Side.PREDICTION)
        with (
            patch.object(QFileDialog, "getOpenFileName", return_value=(str(path), "")),
            answering(answer) as asked,
        ):
            QTest.mouseClick(part.panel.open, LEFT)
        wait_until(lambda: desk.is_settled)
        follows()
        assert "not saved" in asked[0]
        expected = files if answer == "Yes" else drawn
        assert same_objects(objects_of(session, Side.PREDICTION), expected)

    @pytest.mark.long
    def test_what_is_drawn_while_a_file_is_read_is_asked_about(self, desk, tmp_path, wait_until):
        part, session = part_of(desk), desk.session
        path = tmp_path / "mine.tif"
        part.files.save_to(path, part.edits.objects_to_save(Side.PREDICTION))
        wait_until(lambda: not part.is_busy)
        with answering("No") as asked:
            part.files.open_from(path)
            session.edit(Side.PREDICTION, [0, 1, 2], [0, 0, 0], 0)
            session.set_class(
                Side.PREDICTION, min(objects_of(session, Side.PREDICTION)[1]), "Macrophage"
            )
            drawn = objects_of(session, Side.PREDICTION)
            wait_until(lambda: not part.is_busy)
        assert "not saved" in asked[0]
        assert same_objects(objects_of(session, Side.PREDICTION), drawn)
        assert part.edits.unsaved

    @pytest.mark.long
    def test_objects_of_a_file_are_evaluated_once_whatever_their_classes(
        self, desk, tmp_path, wait_until
    ):
        part, session = part_of(desk), desk.session
        path = tmp_path / "mine.tif"
        part.files.save_to(path, part.edits.objects_to_save(Side.PREDICTION))
        wait_until(lambda: not part.is_busy)
        for id_ in sorted(objects_of(session, Side.PREDICTION)[1])[:4]:
            session.set_class(Side.PREDICTION, id_, "Neutrophil")
        told = []
        session.edited.connect(told.append)
        with answering("Yes"):
            part.files.open_from(path)
            wait_until(lambda: not part.is_busy)
        session.edited.disconnect(told.append)
        assert len(told) == 1
        assert not session.is_edited(Side.PREDICTION)

    def test_files_of_the_cohort_are_never_written_over(self, desk, follows, capture_errors):
        part = part_of(desk)
        forms = desk.session.cohort.predictions["careful", FIRST]
        path = next(iter(forms.values())).all_paths[0]
        content = path.read_bytes()
        part.files.save_to(path, part.edits.objects_to_save(Side.PREDICTION))
        follows()
        assert "stays as it is" in capture_errors()[0]
        assert path.read_bytes() == content

    def test_no_file_of_the_cohort_is_replaced_or_removed_beside_another(
        self, desk, tmp_path, wait_until, capture_errors
    ):
        part, session = part_of(desk), desk.session
        theirs = [tmp_path / "R.npy", tmp_path / "R.csv", tmp_path / "R_ambiguous.tif"]
        for path in theirs:
            path.write_bytes(b"theirs")
        forms = {
            **session.cohort.predictions,
            ("merger", FIRST): {Source.LABELS: MaskFiles(Source.LABELS, {"": tuple(theirs)})},
        }
        with patch.object(session, "cohort", replace(session.cohort, predictions=forms)):
            part.files.save_to(tmp_path / "R.tif", part.edits.objects_to_save(Side.PREDICTION))
            wait_until(lambda: not part.is_busy)
        assert "R.csv is a file of the cohort, which stays as it is" in capture_errors()[0]
        assert [path.read_bytes() for path in theirs] == [b"theirs"] * 3
        assert not (tmp_path / "R.tif").exists()

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("name", "asked"), [("mine", "mine.tif and mine.csv"), ("m.tif", "m.csv")]
    )
    def test_files_that_no_dialog_asked_about_are_asked_about(
        self, desk, tmp_path, wait_until, name, asked
    ):
        part = part_of(desk)
        stem = name.partition(".")[0]
        there = [tmp_path / f"{stem}.csv", *([tmp_path / "mine.tif"] if name == "mine" else [])]
        for path in there:
            path.write_bytes(b"earlier")
        chosen = next(f"{f.title} (*{f.endings[0]})" for f in writable_forms())
        for answer in ("No", "Yes"):
            with (
                patch.object(
                    QFileDialog, "getSaveFileName", return_value=(str(tmp_path / name), chosen)
                ),
                answering(answer) as question,
            ):
                part.files.save_as()
                wait_until(lambda: not part.is_busy)
            assert question[0].startswith(asked)
            is_kept = answer == "No"
            assert all((path.read_bytes() == b"earlier") is is_kept for path in there)

    @pytest.mark.long
    @pytest.mark.parametrize("leaves", [False, True])
    def test_closing_asks_while_edits_are_not_saved(self, desk, viewer, layer, follows, leaves):
        layer.data[:100] = 0
        layer.refresh()
        follows()
        part = part_of(desk)

        with answering("Discard" if leaves else "Cancel"):
            assert part.may_leave() is leaves
            if not leaves:
                assert not viewer.window._qt_window.close()
                assert viewer.window._qt_window.isVisible()


def is_hatched(viewer):
    return "ambiguous areas" in viewer.layers and viewer.layers["ambiguous areas"].visible


class TestAmbiguousAreas:
    @pytest.mark.long
    def test_shapes_follow_the_hand(self, desk, viewer, canvas, follows, wait_until):
        part = part_of(desk)
        before = desk.session.snapshot.ambiguous
        evaluation = desk.session.evaluation
        QTest.mouseClick(part.panel.shapes, LEFT)
        shapes = part.shapes.layer
        wait_until(lambda: desk.is_settled)
        assert desk.session.evaluation is evaluation  # the same pixels
        assert not is_hatched(viewer)

        shapes.mode = "add_rectangle"
        drag(canvas, line(desk, (30, 30), (120, 120)))
        follows()
        assert desk.session.snapshot.ambiguous[40:110, 40:110].all()
        assert "ambiguous areas (not saved)" in part.panel.state.text()

        shapes.selected_data = {shapes.nshapes - 1}
        shapes.remove_selected()
        follows()
        after = desk.session.snapshot.ambiguous
        assert (after is None) == (before is None)
        assert after is None or np.array_equal(after, before)

        QTest.mouseClick(part.panel.shapes, LEFT)
        assert shapes not in viewer.layers
        assert is_hatched(viewer) == (before is not None)

    @pytest.mark.long
    def test_what_was_done_to_areas_is_undone_and_done_again(self, desk, canvas, follows):
        part = part_of(desk)
        files = desk.session.snapshot.ambiguous
        QTest.mouseClick(part.panel.shapes, LEFT)
        layer = part.shapes.layer
        n_before = layer.nshapes
        layer.mode = "add_rectangle"
        drag(canvas, line(desk, (30, 30), (120, 120)))
        follows()
        drawn = desk.session.snapshot.ambiguous.copy()
        layer.selected_data = {n_before}
        layer.remove_selected()
        follows()

        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
        follows()
        assert np.array_equal(desk.session.snapshot.ambiguous, drawn)
        QTest.mouseClick(part.panel.undo, LEFT)
        follows()
        assert layer.nshapes == n_before
        assert same_area(desk.session.snapshot.ambiguous, files)
        assert not part.edits.unsaved
        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)  # nothing is left to be undone
        follows()
        assert layer.nshapes == n_before

        QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL | SHIFT)
        follows()
        assert np.array_equal(desk.session.snapshot.ambiguous, drawn)
        assert [at.words for at in part.edits.unsaved] == ["ambiguous areas"]
        QTest.mouseClick(part.panel.redo, LEFT)
        follows()
        assert same_area(desk.session.snapshot.ambiguous, files)

    @pytest.mark.long
    def test_the_panel_says_how_areas_are_drawn_and_the_brush_comes_back(self, desk, viewer, layer):
        part = part_of(desk)
        assert viewer.layers.selection.active is layer
        QTest.mouseClick(part.panel.shapes, LEFT)
        assert part.panel.state.text() == DRAW_AREAS
        viewer.layers.selection.active = layer
        part.refresh()
        assert part.panel.state.text() == NOTHING_DRAWN
        viewer.layers.selection.active = part.shapes.layer
        QTest.mouseClick(part.panel.shapes, LEFT)
        assert viewer.layers.selection.active is layer
        assert part.panel.state.text() == NOTHING_DRAWN


class TestSliders:
    @pytest.mark.long
    def test_the_figures_follow_the_slider_and_end_where_it_stands(
        self, desk, layer, follows, wait_until
    ):
        layer.data[:60] = 0
        layer.refresh()
        follows()
        slider = desk.panels.settings.threshold
        asked, shown = [], []
        session = desk.session
        session.settings_changed.connect(asked.append)
        session.region_changed.connect(shown.append)
        slider.setFocus()
        for _ in range(7):
            QTest.keyClick(slider, Qt.Key.Key_Right)
        wait_until(lambda: not desk.link.loader.is_busy)
        assert [settings.iou_threshold for settings in asked] == pytest.approx(
            [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85]
        )
        # Steps on the way are left out, and no answer comes after a newer one.
        thresholds = [snapshot.settings.iou_threshold for snapshot in shown]
        assert len(thresholds) < 7
        assert thresholds == sorted(thresholds)
        assert thresholds[-1] == pytest.approx(0.85)
        session.settings_changed.disconnect(asked.append)
        session.region_changed.disconnect(shown.append)
        follows()

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("matching", ["centroid", "strict-iou"]),
            ("ambiguous", ["keep", "majority", "clip-predictions", "clip"]),
            ("restoration", ["border-dilated", "border-removed"]),
        ],
    )
    def test_menus_are_followed_without_waiting_for_the_answer(
        self, desk, layer, follows, wait_until, name, values
    ):
        layer.data[:40] = 0
        layer.refresh()
        follows()
        menu = desk.panels.settings.combos[name]
        for value in [*values, *values]:
            menu.choose(value)
            if value == values[0]:
                wait_until(lambda: not desk.link.loader.is_busy)
        wait_until(lambda: desk.is_settled)
        assert str(getattr(desk.session.snapshot.settings, name)) == values[-1]
        assert not desk.session.snapshot.pending
        follows()

    @pytest.mark.long
    def test_the_radius_follows_its_slider(self, desk, follows, wait_until):
        panel = desk.panels.settings
        panel.combos["restoration"].choose("border-dilated")
        panel.radius.setValue(3)
        wait_until(lambda: desk.is_settled)
        assert desk.session.snapshot.settings.radius == 3
        follows()


class TestPieces:
    def test_outlines_of_an_area_fill_to_the_same_pixels(self):
        mask = np.zeros((30, 40), bool)
        mask[3:12, 4:20] = True
        mask[5:8, 6:9] = False
        mask[20, 20] = mask[25, 30] = mask[25, 31] = True
        shapes = outlines(mask)
        np.testing.assert_array_equal(filled(shapes, ["polygon"] * len(shapes), mask.shape), mask)

    def test_lines_have_no_area_and_ellipses_have(self):
        corners = np.array([[5, 5], [5, 25], [25, 25], [25, 5]])
        assert filled([corners[:2]], ["line"], (30, 30)) is None
        round_area = filled([corners], ["ellipse"], (30, 30))
        assert round_area[15, 15]
        assert not round_area[6, 6]

    def test_values_stand_for_ids_in_any_order(self):
        values = LayerValues(np.array([7, 3, 90]))
        ids = np.array([3, 90, 7, 91, 95])
        np.testing.assert_array_equal(values.values(ids), [2, 3, 1, 4, 8])
        np.testing.assert_array_equal(values.ids(values.values(ids)), ids)
        np.testing.assert_array_equal(values.ids(np.array([0])), [0])

    def test_colours_are_exchanged_on_the_card(self, desk, viewer, layer):
        # Notices when one of the private names behind the fast way is gone.
        lut = np.zeros((styles.LUT_LENGTH, 4), np.float32)
        lut[1:] = (1, 0, 1, 1)
        assert exchange_colours(layer, lut, viewer)
        fast = viewer.screenshot(canvas_only=True, flash=False)
        layer.refresh()
        np.testing.assert_array_equal(fast, viewer.screenshot(canvas_only=True, flash=False))
        assert (fast[..., :3] == (255, 0, 255)).all(axis=-1).any()
        session = desk.session
        desk.link.scene.restore_objects(Side.PREDICTION, session.team)


@pytest.mark.long
def test_objects_that_share_pixels_are_flattened_while_edited(desk, wait_until):
    session = desk.session
    desk.link.request(settings=session.protocol.replaced(overlaps=Overlaps.KEEP))
    wait_until(lambda: desk.is_settled)
    kept = session.evaluation
    assert "overlaps kept: 4 objects" in desk.panels.title.title()
    assert "as soon as one is edited, all are flattened" in part_of(desk).panel.state.text()
    # The object that others cover completely has a row, and a ring around its pixels.
    covered = kept.pair.reference
    (row,) = set(range(len(covered))) - set((np.unique(covered.index) - 1).tolist())
    session.select_row(Side.REFERENCE, row)
    rings = desk.viewer.layers["selected object"]
    assert rings.visible
    assert np.asarray(rings.data).any()
    with patch.object(live_edits, "show_warning") as told:
        for _ in range(2):
            session.edit(Side.REFERENCE, *np.array([[3, 3], [3, 4]]), 0)
            session.edit(Side.REFERENCE, *np.array([[3], [3]]), 9999, classes={9999: "Epithelial"})
    wait_until(lambda: desk.is_settled)
    told.assert_called_once_with(live_edits.FLATTENED)
    assert "overlaps flattened while edited" in desk.panels.title.title()
    assert len(session.evaluation.outcomes.reference) == len(kept.outcomes.reference)  # - 1 + 1
    session.discard_edits()
    wait_until(lambda: desk.is_settled)
    assert session.evaluation is kept
    assert "overlaps kept: 4 objects" in desk.panels.title.title()


@pytest.fixture
def capture_warnings(monkeypatch):
    """Return what warnings and hints say, which the desk shows above the image."""
    said = []
    monkeypatch.setattr(shown_module, "_show", lambda text, _notify: said.append(text))
    return lambda: said


@pytest.fixture
def capture_errors():
    yield from _captured("error")


def _captured(severity):
    from napari.utils.notifications import notification_manager

    start = len(notification_manager.records)
    with patch.object(notification_manager, "notification_ready", wraps=None):
        yield lambda: [
            record.message
            for record in notification_manager.records[start:]
            if str(record.severity) == severity
        ]


def test_a_stroke_reaches_its_colour_through_ten_functions(layer, follows, monkeypatch):
    """Every function on the way costs the hand time, and the reader a place to look."""
    ways, real = [], scene.set_colours

    def set_colours(*given):
        stack = inspect.stack()
        ways.append([at.function for at in stack if "napari_panoptic/viewer" in at.filename])
        ways[-1] += [at.function for at in stack if "napari_panoptic/live" in at.filename]
        real(*given)

    monkeypatch.setattr(scene, "set_colours", set_colours)
    layer.paint((30, 30), int(layer.data.max()) + 1)
    (first, *_) = ways
    assert first[0] == "_colour"
    assert "_on_labels_update" in first
    assert len(first) + 1 <= 10  # and `set_colours` itself
    follows()
