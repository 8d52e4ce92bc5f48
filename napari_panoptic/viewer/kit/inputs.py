"""Inputs: lists of choices, fields, and sliders with a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from psygnal import Signal
from qtpy.QtCore import QEvent, QLocale, QRect, QSignalBlocker, Qt
from qtpy.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from qtpy.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QToolTip,
    QWidget,
)
from superqt import QLabeledDoubleSlider

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.display.names import distinct_names
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import shown

_COMPACT_COMBO = "QComboBox { padding: 1px 0px 1px 4px } QComboBox::drop-down { width: 16px }"
"""Style of menus that have to fit into narrow strips."""


class Choice(NamedTuple):
    """An entry of a list."""

    #: The value, such as a member of an enumeration.
    value: Any
    #: How it is shown.
    words: str
    #: The tooltip of the entry.
    meaning: str = ""


def name_choices(names: Sequence[str]) -> list[Choice]:
    """Return names as entries, shortened to what distinguishes them, with the full names."""
    return [Choice(*each) for each in zip(names, distinct_names(names), names, strict=True)]


class ChoiceBox(QComboBox):
    """A list of which one value is chosen.

    The values never pass through Qt, which may return members of an enumeration as plain
    strings. superqt's QEnumComboBox identifies members by the text shown and cannot show
    other words than their names.

    Parameters
    ----------
    choices
        The entries.
    meaning
        The tooltip of the list.
    parent
        The widget that it belongs to.
    """

    chosen = Signal(object)  # the value, when the user chooses it

    def __init__(
        self,
        choices: Sequence[Choice] = (),
        meaning: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._choices: tuple[Choice, ...] = ()
        self.setToolTip(meaning)
        self.setStyleSheet(_COMPACT_COMBO)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keys with the desk
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.offer(choices)
        self.currentIndexChanged.connect(self._on_index)

    @property
    def choice(self) -> Any:
        """The chosen value; None if there is none."""
        return self._choices[self.currentIndex()].value if self.currentIndex() >= 0 else None

    @property
    def values(self) -> tuple[Any, ...]:
        """All values, in their order."""
        return tuple(choice.value for choice in self._choices)

    def offer(self, choices: Sequence[Choice]) -> None:
        """Offer other values, the first chosen; emits nothing."""
        with QSignalBlocker(self):
            self._choices = tuple(choices)
            self.clear()
            self.addItems([shown(choice.words) for choice in choices])
            for place, choice in enumerate(choices):
                self.setItemData(place, shown(choice.meaning), Qt.ItemDataRole.ToolTipRole)

    def show_among(self, choices: Sequence[Choice], value: Any) -> None:
        """Show one of several values; a list that is open stays so where they are the same."""
        if tuple(choices) != self._choices:
            self.offer(choices)
        self.show_choice(value)

    def show_choice(self, value: Any) -> None:
        """Show a value as chosen, none if it is not offered; emits nothing."""
        values = self.values
        with QSignalBlocker(self):
            self.setCurrentIndex(values.index(value) if value in values else -1)

    def choose(self, value: Any) -> None:
        """Choose a value, as the user does."""
        self.setCurrentIndex(self.values.index(value))

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Leave keys with Ctrl or Alt to the desk; Qt would look for an entry with the letter."""
        modifiers = Qt.KeyboardModifier
        if (
            event is not None
            and event.text()
            and event.modifiers()
            & (modifiers.ControlModifier | modifiers.AltModifier | modifiers.MetaModifier)
        ):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def shrinkable(self) -> ChoiceBox:
        """Let the list become narrower than its longest entry; returns itself."""
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(4)
        return self

    def _on_index(self, index: int) -> None:
        if index >= 0:
            self.chosen.emit(self._choices[index].value)


EDGE_PX = 18
"""Width of the ends of a widget on which a click goes one step back or forward."""
_STEP_COMBO = (
    f"QComboBox {{ padding: 1px {EDGE_PX}px 1px {EDGE_PX}px }} "
    "QComboBox::drop-down { width: 0px; border: none } QComboBox::down-arrow { image: none }"
)


class Steps:
    """Arrows at both ends of a widget, which step back and forward.

    Subclasses derive from it and from a widget, and have a signal ``stepped`` (-1 or 1) and
    ``step_tips`` with the tooltips of the arrows.
    """

    step_tips = ("", "")
    can_step = True

    def step_at(self: Any, event: QMouseEvent | QHelpEvent | None) -> int:
        """Return where a click would step: -1, 1, or 0 between the arrows."""
        if event is None or not self.can_step or not self.isEnabled():
            return 0
        x = event.pos().x()
        return -1 if x < EDGE_PX else int(x >= self.width() - EDGE_PX)

    def event(self: Any, event: QEvent | None) -> bool:
        """Explain the arrow under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            step = self.step_at(event)
            if step:
                QToolTip.showText(event.globalPos(), self.step_tips[step > 0], self)
                return True
        return bool(super().event(event))  # type: ignore[misc]

    def mousePressEvent(self: Any, event: QMouseEvent | None) -> None:  # noqa: N802
        """Step where an arrow is pressed."""
        step = self.step_at(event)
        if step:
            self.stepped.emit(step)
        else:
            super().mousePressEvent(event)  # type: ignore[misc]

    def mouseDoubleClickEvent(self: Any, event: QMouseEvent | None) -> None:  # noqa: N802
        """Take two quick clicks for two."""
        self.mousePressEvent(event)

    def paintEvent(self: Any, event: QPaintEvent | None) -> None:  # noqa: N802
        """Draw the arrows at the ends."""
        super().paintEvent(event)  # type: ignore[misc]
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        for arrow, x in (("◀", 0), ("▶", self.width() - EDGE_PX)):
            place = QRect(x, 0, EDGE_PX, self.height())
            painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), arrow)
        painter.end()


class StepBox(Steps, ChoiceBox):
    """A list of names with arrows to the previous and to the next one.

    Parameters
    ----------
    meaning
        The subject of the choice, for the tooltip.
    backwards, forwards
        The tooltips of the arrows.
    most_px
        Largest width.
    """

    stepped = Signal(int)  # -1 or 1

    def __init__(self, meaning: str, backwards: str, forwards: str, *, most_px: int) -> None:
        super().__init__(meaning=meaning)
        self._meaning, self.step_tips = meaning, (backwards, forwards)
        self.setStyleSheet(_STEP_COMBO)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(80)
        self.setMaximumWidth(most_px)

    def show_names(self, names: Sequence[str], name: str | None) -> None:
        """Offer names, as short as they stay distinct, and show one; none if None."""
        self.show_among(name_choices(names), name)
        self.setToolTip(f"{shown(name)}\n{self._meaning}" if name else self._meaning)
        self.setEnabled(bool(names))


class ChoiceButtons(FlowBar):
    """Buttons beside each other, of which the chosen one is down.

    Parameters
    ----------
    choices
        The entries, the first chosen.
    more
        Widgets in the same line, behind the buttons.
    """

    chosen = Signal(object)  # the value, when the user presses its button

    def __init__(self, choices: Sequence[Choice] = (), *more: QWidget) -> None:
        super().__init__(*more)
        self._more = more
        self._buttons: list[QPushButton] = []
        self._group = QButtonGroup(self)
        self._group.idClicked.connect(lambda place: self.chosen.emit(self.values[place]))
        self.offer(choices)

    @property
    def choice(self) -> Any:
        """The chosen value; None if there is none."""
        return self.values[self._group.checkedId()] if self.values else None

    def offer(self, choices: Sequence[Choice]) -> None:
        """Offer other values; among as many as the last ones, the choice stays in its place."""
        self.values = tuple(choice.value for choice in choices)
        if not choices:
            return
        if len(choices) != len(self._buttons):
            self._buttons = [QPushButton() for _ in choices]
            self.line_up(*self._buttons, *self._more)
            for place, button in enumerate(self._buttons):
                button.setCheckable(True)
                button.setChecked(place == 0)
                self._group.addButton(button, place)
        for choice, button in zip(choices, self._buttons, strict=True):
            button.setText(shown(choice.words))
            button.setToolTip(shown(choice.meaning))

    def button(self, value: Any) -> QPushButton:
        """Return the button of a value."""
        return self._buttons[self.values.index(value)]

    def show_choice(self, value: Any) -> None:
        """Show a value as chosen; emits nothing."""
        self.button(value).setChecked(True)

    def choose(self, value: Any) -> None:
        """Choose a value, as the user does."""
        self.button(value).click()


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


class TextInput(QLineEdit):
    """A field whose text is read when it is left, or with Enter.

    Parameters
    ----------
    hint
        Its text while it is empty.
    meaning
        Its tooltip.
    read
        Returns the value of a text, or raises a SettingsError.
    """

    chosen = Signal(object)

    def __init__(self, hint: str, meaning: str, read: Callable[[str], Any]) -> None:
        super().__init__()
        self.setPlaceholderText(hint)
        self.setAccessibleName(hint)
        self.setToolTip(meaning)
        self.setClearButtonEnabled(True)
        self.setMinimumWidth(self.fontMetrics().horizontalAdvance(hint) // 2)
        self._value_of, self._last = read, ""
        self.editingFinished.connect(self._on_edited)

    @property
    def choice(self) -> Any:
        """The value of the text; that of an empty one if it cannot be read."""
        try:
            return self._value_of(self.text())
        except SettingsError:
            return self._value_of("")

    @property
    def problem(self) -> str:
        """Why the text cannot be read; empty if it can."""
        try:
            self._value_of(self.text())
        except SettingsError as error:
            return str(error)
        return ""

    def _on_edited(self) -> None:
        if self.text() != self._last:
            self._last = self.text()
            self.chosen.emit(self.choice)
