"""Shapes of ambiguous areas: there at once, and in their style after undo and redo."""

import numpy as np
import pytest
from napari.layers import Shapes
from qtpy.QtCore import QEvent, QPointF, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_panoptic.display import object_layers
from napari_panoptic.viewer.editing.ambiguous_shapes import ShapesHistory
from napari_panoptic.viewer.layers.owned import AMBIGUOUS
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.viewer.finding import on_canvas

pytestmark = pytest.mark.long

LEFT = Qt.MouseButton.LeftButton
CTRL, NONE = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.NoModifier
STYLE = {"edge_color": "#1a1a1aff", "face_color": "#1a1a1a40", "edge_width": 2}
SQUARE = np.array([[1.0, 1.0], [1.0, 9.0], [9.0, 9.0], [9.0, 1.0]])


def style_of(layer):
    return [
        (float(width), edge.tolist(), face.tolist())
        for width, edge, face in zip(
            layer.edge_width, layer.edge_color, layer.face_color, strict=True
        )
    ]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_undo_and_redo_keep_the_style_of_every_shape(n):
    layer = Shapes([SQUARE + 20 * k for k in range(n)], shape_type="polygon", **STYLE)
    history = ShapesHistory(layer)
    layer.add(SQUARE + 100, shape_type="polygon", **STYLE)
    layer.add(SQUARE + 150, shape_type="ellipse", **STYLE)
    (expected,) = {str(style) for style in style_of(layer)}
    layer.selected_data = {0}
    layer.remove_selected()
    for redo in (False, False, True, True, *[False] * 4):
        history.replay(redo=redo)
        assert {str(style) for style in style_of(layer)} <= {expected}
    assert layer.nshapes == n


@pytest.fixture
def part(new_desk, wait_until):
    part = new_desk.presenter(EditsPresenter)
    area = np.zeros(new_desk.session.snapshot.shape, bool)
    area[20:80, 20:80] = area[100:160, 120:200] = True
    new_desk.session.set_ambiguous(area)
    new_desk.raise_part(part)
    wait_until(lambda: new_desk.is_settled)
    return part


def test_the_first_shapes_are_there_at_once(part):
    part.panel.shapes.click()
    assert part.shapes.layer.nshapes == 2
    assert part.panel.shapes.isChecked()


def test_areas_stay_hatched_while_they_are_edited(new_desk, part, wait_until):
    part.panel.shapes.click()
    wait_until(lambda: new_desk.is_settled)
    hatching, layer = new_desk.viewer.layers[AMBIGUOUS], part.shapes.layer
    active = new_desk.viewer.layers.selection.active
    assert hatching.visible
    np.testing.assert_array_equal(hatching.data, drawn_hatching(new_desk))
    layer.data = [layer.data[0] + 30, layer.data[1]]
    wait_until(lambda: new_desk.session.snapshot.ambiguous[100, 105])
    wait_until(lambda: new_desk.is_settled)
    np.testing.assert_array_equal(hatching.data, drawn_hatching(new_desk))
    assert new_desk.viewer.layers.selection.active is active is layer
    part.panel.shapes.click()
    assert hatching.visible
    assert part.shapes.layer is None


def drawn_hatching(desk):
    return object_layers.hatching(desk.session.snapshot.ambiguous)


def test_drawing_and_undo_paint_nothing_white(new_desk, part, canvas, wait_until):
    viewer = new_desk.viewer
    part.shapes.set_on(True)
    wait_until(lambda: new_desk.is_settled)
    picture = viewer.screenshot(flash=False)
    layer = part.shapes.layer
    places = [on_canvas(viewer, y, x) for y, x in ((50, 50), (55, 60), (60, 70))]
    QTest.mousePress(canvas, LEFT, NONE, places[0])
    for place in places[1:]:
        at = QPointF(place)
        QApplication.sendEvent(canvas, QMouseEvent(QEvent.Type.MouseMove, at, at, LEFT, LEFT, NONE))
    QTest.mouseRelease(canvas, LEFT, NONE, places[-1])
    wait_until(lambda: new_desk.is_settled)
    assert layer.data[0].min() > 20  # it was moved
    QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: new_desk.is_settled)
    assert layer.data[0].min() == 20
    layer.mode = "add_polygon"
    for place in [on_canvas(viewer, y, x) for y, x in ((200, 200), (200, 260), (240, 260))]:
        QTest.mouseMove(canvas, place)
        QTest.mouseClick(canvas, LEFT, NONE, place)
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    wait_until(lambda: new_desk.is_settled)
    assert layer.nshapes == 3
    QTest.keyClick(canvas, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: new_desk.is_settled and layer.nshapes == 2)
    layer.mode = "select"
    after = viewer.screenshot(flash=False)
    assert (np.abs(after.astype(int) - picture.astype(int)).max(axis=2) > 60).mean() < 0.01
