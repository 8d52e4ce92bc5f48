"""Buttons and labels of the panels."""

import inspect
from importlib import import_module
from pkgutil import walk_packages

import pytest
from qtpy.QtCore import QObject, Qt
from qtpy.QtWidgets import QDialogButtonBox, QLabel, QWidget

from napari_panoptic import viewer
from napari_panoptic.viewer.kit.layouts import FoldButton, Grow, lay_out, stack
from napari_panoptic.viewer.kit.widgets import ElidedLabel, PushButton, ToolButton, button_box


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


def test_a_label_is_cut_in_its_own_font_and_its_tooltip_has_the_whole_text(qtbot):
    label = ElidedLabel("A line that is cut in large letters")
    qtbot.addWidget(label)
    label.resize(label.fontMetrics().horizontalAdvance(label.text()) + 4, 30)
    label.show()
    qtbot.waitExposed(label)
    assert label.toolTip() == ""
    font = label.font()
    font.setPointSize(2 * font.pointSize())
    label.setFont(font)
    label.set_text(label.text(), tooltip="What it is about.")
    assert label.toolTip() == f"{label.text()}\nWhat it is about."


def test_a_button_with_an_arrow_folds_by_the_mouse_and_by_keys(qtbot):
    content = QLabel("Several words that need more than one line in a narrow panel")
    content.setWordWrap(True)
    fold, box = FoldButton("Settings", "Fold or unfold them.", content), QWidget()
    qtbot.addWidget(box)
    stack(box, fold, content)
    box.resize(80, 400)
    box.show()
    qtbot.waitExposed(box)
    assert fold.accessibleName() == "Settings"
    assert content.height() >= content.heightForWidth(content.width())
    qtbot.mouseClick(fold, Qt.MouseButton.LeftButton)
    assert not content.isVisible()
    assert fold.arrowType() == Qt.ArrowType.RightArrow
    qtbot.keyClick(fold, Qt.Key.Key_Space)
    assert content.isVisible()
    assert fold.arrowType() == Qt.ArrowType.DownArrow


@pytest.mark.parametrize("is_shown", [True, False])
def test_rows_stay_at_the_top_while_what_grows_is_hidden(is_shown, qtbot):
    rows, growing, box = [PushButton("Search", ""), QLabel("A hint.")], QLabel("grows"), QWidget()
    qtbot.addWidget(box)
    lay_out(box, *rows, Grow(growing))
    growing.setVisible(is_shown)
    box.resize(200, 400)
    box.show()
    qtbot.waitExposed(box)
    assert [row.height() for row in rows] == [row.sizeHint().height() for row in rows]
    assert growing.isVisible() == is_shown
    if is_shown:
        assert growing.geometry().bottom() == box.rect().bottom()


def test_no_class_derives_from_two_of_qt():
    """PySide6 makes two objects of such a class, and cannot paint it."""
    names = [module.name for module in walk_packages(viewer.__path__, f"{viewer.__name__}.")]
    classes = {
        kind
        for name in names
        for _, kind in inspect.getmembers(import_module(name), inspect.isclass)
    }
    doubled = [kind for kind in classes if sum(issubclass(b, QObject) for b in kind.__bases__) > 1]
    assert doubled == []
