"""Buttons with menus of words: of which each is let through or not, or of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QAction, QKeyEvent, QMouseEvent  # type: ignore[attr-defined]
from qtpy.QtWidgets import QMenu, QToolButton

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.display import styles
from napari_panoptic.display.glossary import VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.display.object_rows import SIDE_WORDS
from napari_panoptic.values.vocabulary import SIDES, Cause, Status
from napari_panoptic.viewer.kit.widgets import opens_menu

_SIDE_TEXTS = dict(zip(SIDE_WORDS, (str(side) for side in SIDES), strict=True))
_VERDICT_TEXTS = {VERDICT_WORDS[verdict]: text for verdict, text in VERDICT_MEANINGS.items()}
_NO_CAUSE, _NO_VERDICT = "no cause", "none yet"


class TickMenu(QMenu):
    """A menu that stays open while entries are ticked; Esc or a click elsewhere closes it."""

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Tick the entry under the mouse without closing."""
        action = None if event is None else self.actionAt(event.position().toPoint())
        if not _ticked(action):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Tick the current entry on Space and Enter without closing."""
        keys = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event is None or event.key() not in keys or not _ticked(self.activeAction()):
            super().keyPressEvent(event)


def _ticked(action: QAction | None) -> bool:
    """Tick an entry that can be ticked; returns whether it can."""
    if action is None or not action.isCheckable() or not action.isEnabled():
        return False
    action.trigger()
    return True


class FilterMenu(QToolButton):
    """A button with a menu of words, each let through or not."""

    changed = Signal()

    def __init__(self, title: str, words: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._words: tuple[str, ...] = ()
        self._menu = TickMenu(self)
        self._menu.setToolTipsVisible(True)
        self.setMenu(self._menu)
        opens_menu(self)
        self.setToolTip(f"Which {title} to list.")
        self.set_words(words)

    def set_words(self, words: Sequence[str]) -> None:
        """Offer other words, all let through; the same words stay as they are."""
        self._show_state()
        if tuple(words) == self._words:
            return
        self._words = tuple(words)
        self._menu.clear()
        for word in words:
            nothing = _NO_VERDICT if self._title == "verdict" else _NO_CAUSE
            action = self._menu.addAction(_SIDE_TEXTS.get(word, word) or nothing)
            if action is not None:
                action.setCheckable(True)
                action.setChecked(True)
                action.setData(word)
                action.setToolTip(_meaning(word))
                action.triggered.connect(lambda _=False: self._on_change())
        self._show_state()

    def checked(self) -> frozenset[str] | None:
        """Return the words that are let through; None for all."""
        chosen = frozenset(a.data() for a in self._menu.actions() if a.isChecked())
        return None if len(chosen) == len(self._words) else chosen

    def uncheck(self, word: str) -> None:
        """Stop letting a word through, as a click in the menu does."""
        for action in self._menu.actions():
            if action.data() == word and action.isChecked():
                action.trigger()

    def check_only(self, words: frozenset[str] | None) -> None:
        """Let only some words through; None for all."""
        for action in self._menu.actions():
            action.setChecked(words is None or action.data() in words)
        self._show_state()

    def _on_change(self) -> None:
        self._show_state()
        self.changed.emit()

    def _show_state(self) -> None:
        chosen = self.checked()
        title = self._title.capitalize()
        self.setText(title if chosen is None or not self._words else f"{title} ({len(chosen)})")


class ChoiceMenu(QToolButton):
    """A button with a menu of which one entry is chosen.

    Parameters
    ----------
    title
        What is chosen.
    meaning
        One sentence for the tooltip.
    choices
        The entries, the first chosen.
    """

    chosen = Signal(object)

    def __init__(self, title: str, meaning: str, choices: Sequence[MenuChoice]) -> None:
        super().__init__()
        self._title = title
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self.setMenu(self._menu)
        opens_menu(self)
        self.setToolTip(meaning)
        self._actions = {}
        for choice in choices:
            action = self._menu.addAction(choice.short)
            if action is not None:
                action.setCheckable(True)
                action.setToolTip(choice.meaning)
                action.triggered.connect(lambda _=False, c=choice: self._on_choice(c))
                self._actions[choice] = action
        self.show_choice(choices[0])

    @property
    def choice(self) -> Any:
        """The entry that is chosen."""
        return next(choice for choice, action in self._actions.items() if action.isChecked())

    def choose(self, choice: MenuChoice) -> None:
        """Choose an entry, as a click in the menu does."""
        self._actions[choice].trigger()

    def offer(self, choice: MenuChoice, *, offered: bool) -> None:
        """Show or hide an entry that cannot always be chosen."""
        self._actions[choice].setVisible(offered)

    def add_switch(self, text: str, meaning: str) -> QAction:
        """Add an entry below the choices that is switched on and off."""
        self._menu.addSeparator()
        action = QAction(text, self._menu)
        action.setCheckable(True)
        action.setToolTip(meaning)
        self._menu.addAction(action)
        return action

    def show_choice(self, choice: MenuChoice) -> None:
        """Show the choice without emitting a signal."""
        for other, action in self._actions.items():
            action.setChecked(other is choice)
        self.setText(f"{self._title}: {choice.short}")

    def _on_choice(self, choice: MenuChoice) -> None:
        self.show_choice(choice)
        self.chosen.emit(choice)


def _meaning(word: str) -> str:
    if word in set(Status):
        return styles.STATUS_MEANINGS[Status(word)]
    if word in set(Cause):
        return styles.CAUSE_MEANINGS[Cause(word)]
    return _VERDICT_TEXTS.get(word, "")
