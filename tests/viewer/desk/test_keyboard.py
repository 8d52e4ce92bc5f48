"""Where the keys go after a click, in every workspace."""

import pytest
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QTextEdit,
    QToolButton,
)

from napari_panoptic.viewer.desk.nuclei import WORKSPACES
from napari_panoptic.viewer.kit.widgets import dock_of, is_in_sight
from tests.viewer.finding import handle_events

TEXT = (QLineEdit, QTextEdit, QAbstractSpinBox)
LEFT = Qt.MouseButton.LeftButton


def parts_of(desk):
    """Return the strip and the docks of a desk."""
    return [dock_of(desk.strip), *(desk.dock(title) for title in desk.docked())]


def in_sight(desk, kind):
    found = [widget for part in parts_of(desk) for widget in part.findChildren(kind)]
    return [widget for widget in found if widget.isEnabled() and is_in_sight(widget)]


def fields_of(desk):
    """Return the text fields in sight that are not part of another control."""
    fields = in_sight(desk, QLineEdit) + in_sight(desk, QTextEdit)
    return [at for at in fields if not isinstance(at.parent(), QComboBox | QAbstractSpinBox)]


@pytest.mark.parametrize(
    "name",
    [
        at.name if at.name == "Review" else pytest.param(at.name, marks=pytest.mark.long)
        for at in WORKSPACES
    ],
)
def test_after_a_click_on_any_button_the_keys_work(open_desk, wait_until, name):
    desk, window = open_desk, open_desk.viewer.window._qt_window
    desk.show_workspace(name)
    window.activateWindow()
    wait_until(lambda: window.isActiveWindow() and desk.is_settled and desk.is_arranged)
    fields = fields_of(desk)
    clicked = set()
    for button in in_sight(desk, QAbstractButton):
        has_menu = isinstance(button, QToolButton) and button.menu() is not None
        if has_menu or isinstance(button.parent(), QLineEdit):
            continue  # the menu has the keys as long as it is open
        if fields:
            fields[0].setFocus()
        with QSignalBlocker(button):  # what it does is not asked here
            QTest.mouseClick(button, LEFT)
        handle_events()
        wait_until(
            lambda: not isinstance(QApplication.focusWidget(), (*TEXT, QAbstractButton)),
            lambda button=button: (button.text(), QApplication.focusWidget()),
        )
        clicked.add(type(button).__name__)
    assert clicked
    before = desk.session.selection
    desk.link.failures.leave()
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_N)
    wait_until(lambda: desk.is_settled)
    assert desk.session.selection != before


def test_a_text_field_that_was_chosen_keeps_the_keys(open_desk, wait_until):
    desk, window = open_desk, open_desk.viewer.window._qt_window
    desk.show_workspace("Review")
    window.activateWindow()
    wait_until(lambda: window.isActiveWindow() and desk.is_settled and desk.is_arranged)
    field = next(at for at in fields_of(desk) if isinstance(at, QTextEdit))
    field.clear()
    QTest.mouseClick(field.viewport(), LEFT)
    handle_events()  # which leave the focus where it is
    assert field.hasFocus()
    before = desk.session.selection
    for key in "n1":
        QTest.keyClicks(QApplication.focusWidget(), key)
    assert field.toPlainText() == "n1"
    assert desk.session.selection == before
    field.clear()
