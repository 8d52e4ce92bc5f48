"""Figures with their names, as links and as plain ones."""

from __future__ import annotations

from typing import Any

import pytest
from qtpy.QtCore import Qt

from napari_panoptic.viewer.kit.figures import Figure


@pytest.mark.parametrize("is_link", [True, False])
def test_a_figure_can_be_clicked_only_if_it_is_a_link(is_link: bool, qtbot: Any) -> None:
    figure, clicks = Figure("PQ", "Panoptic quality.", is_link=is_link), []
    qtbot.addWidget(figure)
    figure.clicked.connect(lambda: clicks.append("click"))
    figure.show()
    qtbot.waitExposed(figure)
    qtbot.mouseClick(figure, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(figure, Qt.MouseButton.RightButton)
    qtbot.keyClick(figure, Qt.Key.Key_Return)
    assert clicks == (["click", "click"] if is_link else [])
