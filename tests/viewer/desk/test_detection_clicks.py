"""On the desk of detections only a plain click selects a point."""

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.opening import open_in
from tests.viewer.finding import canvas_of, click, on_canvas

pytestmark = pytest.mark.long

LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
NO_KEY, CTRL = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier


def drag_back(canvas, place):
    """Press on a place, go away, come back and let go."""
    QTest.mousePress(canvas, LEFT, NO_KEY, place)
    for step in (10, 30, 10, 0):
        QTest.mouseMove(canvas, place + QPoint(step, 0))
    QTest.mouseRelease(canvas, LEFT, NO_KEY, place)


@pytest.fixture
def points(make_napari_viewer, detection_sample, wait_until, close_desk):
    """Return a desk, its canvas, and where a lone annotated point lies on it."""
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1280, 800)
    desk = open_in(viewer, detection_sample)
    wait_until(lambda: desk.is_settled)
    judged = desk.session.judged
    row = int(np.flatnonzero(judged.reference_partner < 0)[0])
    x, y = judged.reference.xy_px[row]
    canvas = canvas_of(viewer)
    yield desk, canvas, on_canvas(viewer, y, x, layer="annotated points"), row
    close_desk(desk)


def test_only_a_plain_click_selects(points):
    desk, canvas, place, row = points
    QTest.mouseClick(canvas, RIGHT, NO_KEY, place)
    assert desk.session.selection is None
    QTest.mouseClick(canvas, LEFT, CTRL, place)
    assert desk.session.selection is None
    drag_back(canvas, place)
    assert desk.session.selection is None
    click(canvas, place)
    assert desk.session.selection == (Side.REFERENCE, row)
