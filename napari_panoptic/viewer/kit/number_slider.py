"""A slider with its number beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psygnal import Signal
from qtpy.QtCore import QLocale, QSignalBlocker, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QLineEdit, QWidget
from superqt import QLabeledDoubleSlider

_STEPS: Mapping[int, int] = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
}


class NumberSlider(QLabeledDoubleSlider):  # type: ignore[misc]
    """superqt's slider with a number that can be typed, and arrow keys, which superqt lacks.

    Parameters
    ----------
    low, high
        The range.
    step
        The step of the arrow keys.
    decimals
        To how many decimals values are rounded.
    """

    chosen = Signal(float)  # the rounded value, when the user changes it

    def __init__(self, low: float, high: float, *, step: float, decimals: int) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setDecimals(decimals)
        self.setMinimumWidth(80)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keys with the desk
        for child in self.findChildren(QWidget):
            child.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        number = self.findChild(QLineEdit)
        number.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        number.validator().setLocale(QLocale.c())  # superqt reads it with a decimal point
        self.valueChanged.connect(self._on_value)

    def show_value(self, value: float) -> None:
        """Show a value; emits nothing."""
        with QSignalBlocker(self):
            self.setValue(value)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Step by the arrow keys."""
        step = 0 if event is None else _STEPS.get(event.key(), 0)
        if step:
            self.setValue(round(self.value() + step * self.singleStep(), self.decimals()))
        else:
            super().keyPressEvent(event)

    def _on_value(self, value: Any) -> None:
        self.chosen.emit(round(value, self.decimals()))
