"""The common parts of the strips above the images of all desks, and the list of keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QAction, QKeySequence  # type: ignore[attr-defined]
from qtpy.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.common.text import counted
from napari_panoptic.viewer.kit.keys import KEY_LIST, Shortcut
from napari_panoptic.viewer.kit.layouts import DIALOG_MARGINS, Grow, lay_out
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import ElidedLabel, button_box, heading


class KeysButton(QToolButton):
    """The way to the list of all keys, which has a key of its own.

    Parameters
    ----------
    strip
        The strip that it lies on; the key works in its window.
    wanted
        Called when the user asks for the list.
    """

    def __init__(self, strip: QWidget, wanted: Callable[[], object]) -> None:
        super().__init__(strip)
        self.setText(KEY_LIST.text)
        self.setToolTip(f"All keys and their actions ({KEY_LIST.text})")
        self.clicked.connect(lambda _=False: wanted())
        action = QAction(strip)
        # Whether Shift counts as part of the character is not the same everywhere.
        action.setShortcuts([QKeySequence(key) for key in (KEY_LIST.key, f"Shift+{KEY_LIST.key}")])
        action.triggered.connect(lambda _=False: wanted())
        strip.addAction(action)


class NotesButton(QPushButton):
    """The number of findings in the shown files, and the way to their list; hidden without any.

    Parameters
    ----------
    meaning
        The tooltip.
    wanted
        Called when the user asks for the list.
    """

    def __init__(self, meaning: str, wanted: Callable[[], object]) -> None:
        super().__init__()
        self.setToolTip(meaning)
        self.hide()
        self.clicked.connect(lambda _=False: wanted())

    def show_count(self, count: int) -> None:
        """Show how many notes there are."""
        self.setVisible(count > 0)
        self.setText(f"⚠ {counted(count, 'note')}" if count else "")


class TitleLines(QWidget):
    """The lines above the image, one of which shows the selected object or a message."""

    selected: ElidedLabel

    def show_message(self, text: str) -> None:
        """Show a message until something else is selected."""
        self.selected.set_text(text)


class FigureTitle(TitleLines):
    """The shown region with its figure, and below it the selected object; with keys and notes.

    Parameters
    ----------
    title, selected
        Texts at first.
    figure_meaning, notes_meaning
        The tooltips of the figure and of the button with the notes.
    """

    notes_clicked = Signal()
    keys_clicked = Signal()

    def __init__(
        self, title: str, selected: str, *, figure_meaning: str, notes_meaning: str
    ) -> None:
        super().__init__()
        self._title = ElidedLabel(title, mode=Qt.TextElideMode.ElideLeft)
        self.selected, self.figure = ElidedLabel(selected), RichLabel()
        self.figure.setToolTip(figure_meaning)
        self.notes = NotesButton(notes_meaning, self.notes_clicked.emit)
        self._first, second = QHBoxLayout(), QHBoxLayout()
        self._first.addWidget(self._title, 1)
        self._first.addWidget(self.figure)
        second.addWidget(self.selected, 1)
        second.addWidget(self.notes)
        second.addWidget(KeysButton(self, self.keys_clicked.emit))
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(6, 0, 6, 0)
        self._lines.setSpacing(1)
        self._lines.addLayout(self._first)
        self._lines.addLayout(second)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def title(self) -> str:
        """Return the title as it is shown."""
        return self._title.text()


INTRO = "Keys work wherever the mouse is; in a text field, letters are letters."


class KeysDialog(QDialog):
    """Every key and its effect; stays open beside the image.

    Parameters
    ----------
    parent
        The window that it belongs to.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys")
        self._lines: list[tuple[str, str]] = []
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        buttons = button_box(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        lay_out(self, WrappedLabel(INTRO), Grow(self._area), buttons, margins=DIALOG_MARGINS)
        self.resize(460, 560)

    def lines(self) -> list[tuple[str, str]]:
        """Return the keys and meanings listed."""
        return list(self._lines)

    def show_keys(self, sections: Sequence[tuple[str, Sequence[Shortcut]]]) -> None:
        """List the keys, section by section."""
        body = QWidget()
        grid = QGridLayout(body)
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(16)
        self._lines = []
        for title, keys in sections:
            grid.addWidget(heading(title), grid.rowCount(), 0, 1, 2)
            for shortcut in keys:
                row = grid.rowCount()
                grid.addWidget(PlainLabel(shortcut.text), row, 0)
                meaning = WrappedLabel(shortcut.meaning)
                grid.addWidget(meaning, row, 1)
                self._lines.append((shortcut.text, shortcut.meaning))
        grid.setRowStretch(grid.rowCount(), 1)
        self._area.setWidget(body)
