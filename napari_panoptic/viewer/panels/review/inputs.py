"""Inputs of a reviewer: verdicts by large buttons, a name, tags and notes."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, QSize, Qt
from qtpy.QtGui import (  # type: ignore[attr-defined]
    QAction,
    QKeyEvent,
    QResizeEvent,
    QTextCursor,
)
from qtpy.QtWidgets import (
    QGridLayout,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QTextEdit,
    QWidget,
)

from napari_panoptic.display.glossary import VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.review.judged import VERDICTS
from napari_panoptic.review.tags import STARTING_TAGS, joined_tags, split_tags, toggled
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.keys import Shortcut, key_text
from napari_panoptic.viewer.kit.layouts import Grow, row_of, stack
from napari_panoptic.viewer.kit.menus import TickMenu
from napari_panoptic.viewer.kit.shown import RichLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import arrow_icon

VERDICT_KEYS: Mapping[Verdict, str] = {
    verdict: str(number) for number, verdict in enumerate(VERDICTS, start=1)
}
"""The key of each verdict, as on the offline page; with Alt it also works in a text field."""
UNDO_KEY = str(len(VERDICTS) + 1)
GO_ON_KEY, NOTE_KEY = "Space", "Return"
JUDGING_KEYS: tuple[Shortcut, ...] = (
    *(Shortcut(key, f"verdict: {VERDICT_WORDS[of]}") for of, key in VERDICT_KEYS.items()),
    Shortcut(UNDO_KEY, "take back the last verdict of this window; its note becomes a draft"),
    Shortcut(GO_ON_KEY, "next failure without a verdict"),
    Shortcut(NOTE_KEY, "write a note; in a square of a plan: save the number"),
)
"""Keys that work in the workspace *Review* in place of napari's, also in the plan."""
VERDICT_COLOURS: Mapping[Verdict, Rgb] = {
    Verdict.ANNOTATION_RIGHT: (112, 64, 160),
    Verdict.PREDICTION_RIGHT: (232, 150, 40),
    Verdict.BOTH_WRONG: (140, 100, 60),
    Verdict.CANNOT_TELL: (150, 150, 165),
}
"""Accent of each verdict; none is the colour of a status, and they also differ under
colour-deficient vision."""
BUTTON_PX = 48
"""Height of a button, large enough to be hit without looking."""
SPACING_PX = 6
NAME_NEEDED = "Enter the reviewer's name first: verdicts are kept under it."


def verdict_title(verdict: Verdict) -> str:
    """Return the words of a verdict in sentence case."""
    words = VERDICT_WORDS[verdict]
    return words[:1].upper() + words[1:]


class StateLine(WrappedLabel):
    """The outcome of the last action; hidden if there is none."""

    def show_state(self, text: str, *, saved: bool | None = None) -> None:
        """Show the outcome; pass `saved` only for a verdict: whether it is on disk."""
        sign = {True: "✓ ", False: "✗ ", None: ""}[saved]
        self.show_text(f"{sign}{text}" if text else "")


class VerdictButtons(QWidget):
    """A large button per verdict, in two columns where there is room."""

    given = Signal(Verdict)

    def __init__(self) -> None:
        super().__init__()
        self.buttons = {verdict: _button(verdict) for verdict in VERDICTS}
        for verdict, button in self.buttons.items():
            button.clicked.connect(lambda _=False, v=verdict: self.given.emit(v))
        self._grid = QWidget()
        self._layout = QGridLayout(self._grid)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(SPACING_PX)
        self._columns = 0
        self._takes_verdicts = False
        self._end, self._end_text = RichLabel(wraps=True), ""
        self._end.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._end.setMargin(SPACING_PX)
        stack(self, self._grid, self._end)
        self._arrange(1)
        self.show_end("")

    @property
    def columns(self) -> int:
        """Number of buttons beside each other."""
        return self._columns

    def show_verdict(self, verdict: Verdict | None, *, enabled: bool) -> None:
        """Show which verdict an object has, and whether one can be given."""
        for own, button in self.buttons.items():
            with QSignalBlocker(button):
                button.setChecked(own is verdict)
        self._takes_verdicts = enabled
        self._show_enabled()

    def show_reviewer(self, name: str) -> None:
        """Explain the buttons, or ask for a name first."""
        for verdict, button in self.buttons.items():
            meaning = f"{VERDICT_MEANINGS[verdict]} ({_keys(VERDICT_KEYS[verdict])})"
            button.setToolTip(meaning if name else NAME_NEEDED)

    def show_end(self, text: str, detail: str = "") -> None:
        """Show in place of the buttons that the queue has ended; the buttons if empty.

        No verdict can be given by the buttons until they are shown again.

        Parameters
        ----------
        text
            The thing that has ended, in a few words.
        detail
            The next steps.
        """
        self._end_text = text
        # Relative to the theme's own size, which style sheets would overrule.
        title = f'<b style="font-size: x-large">{html.escape(text)}</b>'
        self._end.set_rich(f"<p>{title}</p><p>{html.escape(detail)}</p>")
        self._grid.setVisible(not text)
        self._end.setVisible(bool(text))
        self._show_enabled()

    def end_text(self) -> str:
        """Return the text at the end of the queue; empty before."""
        return self._end_text

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the size with one column."""
        hint = super().minimumSizeHint()
        return QSize(self._widest() if self._grid.isVisibleTo(self) else 0, hint.height())

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Put the buttons in two columns where their words fit."""
        super().resizeEvent(event)
        self._arrange(2 if self.width() >= 2 * self._widest() + SPACING_PX else 1)

    def _show_enabled(self) -> None:
        for button in self.buttons.values():
            button.setEnabled(self._takes_verdicts and not self._end_text)

    def _widest(self) -> int:
        return max(button.sizeHint().width() for button in self.buttons.values())

    def _arrange(self, columns: int) -> None:
        if columns == self._columns:
            return
        self._columns = columns
        for number, button in enumerate(self.buttons.values()):
            self._layout.addWidget(button, number // columns, number % columns)


def _button(verdict: Verdict) -> QPushButton:
    button = QPushButton(f"{verdict_title(verdict)}  {VERDICT_KEYS[verdict]}")
    button.setCheckable(True)
    button.setMinimumHeight(BUTTON_PX)
    # Narrower than its words while the column is being made narrower.
    button.setMinimumWidth(1)
    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    red, green, blue = VERDICT_COLOURS[verdict]
    rgb = f"{red}, {green}, {blue}"
    button.setStyleSheet(
        f"QPushButton {{ border-left: 6px solid rgb({rgb}); padding: 4px 3px; }}"
        f"QPushButton:checked {{ font-weight: bold; background: rgba({rgb}, 110); }}"
        f"QPushButton:disabled {{ border-left: 6px solid rgba({rgb}, 90); }}"
    )
    return button


MOST_LINES = 6
"""Lines of a note that are shown at once."""
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


def with_alt(key: str) -> str:
    """Return the key that does the same as a key of the verdicts, also in a text field."""
    return f"Alt-{key}"


def _keys(key: str) -> str:
    return f"{key}, or {key_text(with_alt(key))} also in a text field"


def is_verdict_key(event: QKeyEvent) -> bool:
    """Return whether a key is one of those of the verdicts."""
    digits = range(Qt.Key.Key_1, Qt.Key.Key_1 + len(VERDICTS) + 1)
    return event.modifiers() == Qt.KeyboardModifier.AltModifier and event.key() in digits


class LineField(QLineEdit):
    """A line of text; Enter takes it, Esc leaves it."""

    entered = Signal()
    escaped = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.returnPressed.connect(self.entered.emit)

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

    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.line = LineField()
        self.line.setPlaceholderText("tags")
        self.line.setToolTip("Keywords for sorting, separated by commas. Enter saves them.")
        self._menu = TickMenu(self)
        self._menu.aboutToShow.connect(self._tick)
        self._choose = QAction(arrow_icon(), "Choose", self.line)
        self._choose.setToolTip("Tick common tags and your own ones.")
        self._choose.triggered.connect(lambda _=False: self._show_menu())
        self.line.addAction(self._choose, QLineEdit.ActionPosition.TrailingPosition)
        self.setLayout(row_of(Grow(self.line)))
        self.setFocusProxy(self.line)
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

    def _show_menu(self) -> None:
        self._menu.popup(self.line.mapToGlobal(self.line.rect().bottomLeft()))

    def _on_tag(self, tag: str) -> None:
        self.line.setText(toggled(self.line.text(), tag))
        self._tick()
        self.edited.emit()

    def _tick(self) -> None:
        tags = split_tags(self.line.text())
        for action in self._menu.actions():
            action.setChecked(action.data() in tags)
