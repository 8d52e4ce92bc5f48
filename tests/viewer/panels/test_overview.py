"""The overview of large regions: its picture, its frame, its magnification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from napari._app_model import get_app_model
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.viewer.panels import overview as module
from napari_panoptic.viewer.panels.navigator import NavigatorPresenter
from napari_panoptic.viewer.panels.overview import (
    OverviewPicture,
    OverviewPresenter,
    magnification_text,
)
from napari_panoptic.viewer.state.preferences import PREFERENCES


@pytest.mark.parametrize(
    ("zoom", "mpp", "text"),
    [
        (1.0, 0.25, "40x"),
        (1.0, 0.5, "20x"),
        (0.3125, 0.25, "12.5x"),
        (0.01, 0.25, "0.4x"),
        (40.0, 0.25, "1600x"),
        (0.5, None, "50 %"),
        (0.00123, None, "0.123 %"),
    ],
)
def test_magnification(zoom: float, mpp: float | None, text: str) -> None:
    assert magnification_text(zoom, mpp) == text


def picture(height: int, width: int) -> SlideImage:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, : width // 2] = (200, 0, 0)
    return SlideImage((pixels,), 0.25, (), (height, width))


@pytest.mark.parametrize("shape", [(2000, 4000), (4000, 2000), (50, 4000)])
def test_a_click_asks_for_the_place_under_the_mouse(qtbot: Any, shape: tuple[int, int]) -> None:
    parent, asked = QWidget(), []
    qtbot.addWidget(parent)
    parent.resize(600, 500)
    overview = OverviewPicture(parent)
    overview.centre_wanted.connect(lambda y, x: asked.append((y, x)))
    overview.show_image(picture(*shape))
    parent.show()
    overview.show()
    step = max(shape) / module.LONGEST_PX
    QTest.mouseClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(10, 1))
    assert asked == [pytest.approx((step, 10 * step))]
    assert parent.rect().contains(overview.geometry())
    parent.resize(400, 300)
    qtbot.waitUntil(lambda: overview.geometry().bottom() <= 300 - module.MARGIN_PX)
    shown = overview.grab().toImage()
    ratio = shown.width() / overview.width()
    assert shown.pixelColor(round(4 * ratio), 0).red() > 100
    QTest.mouseMove(overview, QPoint(20, 1))  # no button is held
    assert len(asked) == 1


def test_it_follows_the_camera_and_moves_it(
    new_desk: Any, monkeypatch: Any, wait_until: Any
) -> None:
    overview, viewer = new_desk.presenter(OverviewPresenter).panel, new_desk.viewer
    assert overview.isHidden()  # the regions of the sample are small
    monkeypatch.setattr(module, "LARGE_PX", 1000)
    get_app_model().commands.execute_command("napari-panoptic.toggle_overview")
    assert not PREFERENCES.overview
    assert overview.isHidden()
    get_app_model().commands.execute_command("napari-panoptic.toggle_overview")
    assert overview.isVisible()
    height, width = new_desk.session.snapshot.shape
    mpp = new_desk.session.snapshot.mpp
    camera = viewer.scene.camera
    camera.zoom = 2 / mpp
    assert overview.text == magnification_text(2, mpp)
    overview.centre_wanted.emit(height / 4, width / 3)
    assert camera.center[-2:] == pytest.approx((height / 4 * mpp, width / 3 * mpp))
    y0, x0, y1, x1 = overview.view
    assert ((y0 + y1) / 2, (x0 + x1) / 2) == pytest.approx((height / 4, width / 3))
    canvas = viewer.canvas.viewbox_size(viewer.layers)
    assert (y1 - y0, x1 - x0) == pytest.approx((canvas[0] / 2, canvas[1] / 2))
    assert math.prod(new_desk.session.snapshot.shape) >= 1000
    monkeypatch.setattr(module, "LARGE_PX", 10**9)
    new_desk.link.presenter(NavigatorPresenter).go_on()
    wait_until(lambda: new_desk.is_settled)
    assert overview.isHidden()
