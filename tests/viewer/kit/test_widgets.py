"""Buttons of the panels."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDialogButtonBox

from napari_panoptic.viewer.kit.widgets import PushButton, ToolButton, button_box


@pytest.mark.parametrize("kind", [PushButton, ToolButton])
def test_a_click_and_the_space_key_push_a_button(kind, qtbot):
    button, pushed = kind("Save…", "Save it."), []
    qtbot.addWidget(button)
    button.pushed.connect(lambda: pushed.append(button.text()))
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert pushed == ["Save…", "Save…"]
    button.setEnabled(False)
    button.click()
    assert len(pushed) == 2


def test_buttons_of_dialogs_have_no_icon(qtbot):
    close = QDialogButtonBox.StandardButton.Close
    box = button_box(close)
    qtbot.addWidget(box)
    assert box.button(close).text().replace("&", "") == "Close"
    assert box.button(close).icon().isNull()
