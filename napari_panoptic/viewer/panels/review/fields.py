"""Text fields of the review: they leave the keys of verdicts to the desk."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtGui import QKeyEvent, QResizeEvent, QTextCursor
from qtpy.QtWidgets import QHBoxLayout, QLineEdit, QTextEdit, QToolButton, QWidget

from napari_panoptic.review.judged import VERDICTS
from napari_panoptic.review.tags import STARTING_TAGS, joined_tags, split_tags, toggled
from napari_panoptic.viewer.kit.choice_menus import TickMenu
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import opens_menu

MOST_LINES = 6
"""Lines of a note that are shown at once."""
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


def is_verdict_key(event: QKeyEvent) -> bool:
    """Return whether a key is one of those of the verdicts."""
    digits = range(Qt.Key.Key_1, Qt.Key.Key_1 + len(VERDICTS) + 1)
    return event.modifiers() == Qt.KeyboardModifier.AltModifier and event.key() in digits


class Line(QLineEdit):
    """A line of text; Esc leaves it."""

    escaped = Signal()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Hand keys with Alt and a digit on; on some systems they would write something."""
        if event is not None and is_verdict_key(event):
            event.ignore()
        elif event is not None and event.key() == Qt.Key.Key_Escape:
            event.accept()
            self.escaped.emit()
        else:
            super().keyPressEvent(event)


class NoteField(QTextEdit):
    """A note: one line that grows; Enter saves it, Shift+Enter starts another line."""

    entered = Signal()
    escaped = Signal()
    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setPlaceholderText("note")
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.textChanged.connect(self._on_changed)
        self._fit()

    def text(self) -> str:
        """Return the note."""
        return self.toPlainText()

    def set_text(self, text: str) -> None:
        """Show a note; emits nothing."""
        if text != self.text():
            with QSignalBlocker(self):
                self.setPlainText(text)
            self.moveCursor(QTextCursor.MoveOperation.End)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Save on Enter, leave on Esc, and hand the keys of verdicts on."""
        if event is None:
            return
        is_line_break = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if is_verdict_key(event):
            event.ignore()
        elif event.key() == Qt.Key.Key_Escape:
            event.accept()
            self.escaped.emit()
        elif event.key() in _ENTER and not is_line_break:
            event.accept()
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Grow where a narrower field needs more lines."""
        super().resizeEvent(event)
        self._fit()

    def _on_changed(self) -> None:
        self._fit()
        self.edited.emit()

    def _fit(self) -> None:
        document = self.document()
        if document is None:
            return
        margins = self.contentsMargins()
        frame = margins.top() + margins.bottom()
        most = MOST_LINES * self.fontMetrics().lineSpacing() + 2 * document.documentMargin()
        self.setFixedHeight(int(min(document.size().height(), most)) + frame)


class TagField(QWidget):
    """Tags, separated by commas: typed, or ticked in a menu of known ones."""

    entered = Signal()
    escaped = Signal()
    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.line = Line()
        self.line.setPlaceholderText("tags")
        self.line.setToolTip("Keywords for sorting, separated by commas. Enter saves them.")
        self._menu = TickMenu(self)
        self._menu.aboutToShow.connect(self._tick)
        self.choose = QToolButton()
        self.choose.setText("Choose")
        self.choose.setToolTip("Tick common tags and your own ones.")
        self.choose.setMenu(self._menu)
        opens_menu(self.choose)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.line, 1)
        layout.addWidget(self.choose)
        self.setFocusProxy(self.line)
        self.line.returnPressed.connect(self.entered.emit)
        self.line.escaped.connect(self.escaped.emit)
        self.line.textEdited.connect(lambda _text: self.edited.emit())
        self.offer(())

    def text(self) -> str:
        """Return the tags, separated by commas."""
        return joined_tags(split_tags(self.line.text()))

    def set_text(self, text: str) -> None:
        """Show tags; emits nothing."""
        if text != self.line.text():
            self.line.setText(text)

    def offer(self, own: Sequence[str]) -> None:
        """Offer the common tags and the user's own ones."""
        self._menu.clear()
        for number, tag in enumerate((*STARTING_TAGS, *own)):
            if number == len(STARTING_TAGS):
                self._menu.addSeparator()
            action = self._menu.addAction(shown(tag).replace("&", "&&"))
            if action is not None:
                action.setCheckable(True)
                action.setData(tag)
                action.triggered.connect(lambda _=False, t=tag: self._on_tag(t))

    def offered(self) -> list[str]:
        """Return the tags of the menu."""
        return [action.data() for action in self._menu.actions() if action.data()]

    def tick(self, tag: str) -> None:
        """Tick a tag of the menu, as a click does."""
        next(action for action in self._menu.actions() if action.data() == tag).trigger()

    def _on_tag(self, tag: str) -> None:
        self.line.setText(toggled(self.line.text(), tag))
        self._tick()
        self.edited.emit()

    def _tick(self) -> None:
        tags = split_tags(self.line.text())
        for action in self._menu.actions():
            action.setChecked(action.data() in tags)
