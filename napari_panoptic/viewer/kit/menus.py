"""Buttons with menus: of which entries are ticked, one is chosen, or other buttons are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QAction, QKeyEvent, QMouseEvent  # type: ignore[attr-defined]
from qtpy.QtWidgets import QAbstractButton, QMenu, QToolButton

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.viewer.kit.widgets import ToolButton, opens_menu


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


class ChoiceMenu(QToolButton):
    """A button with a menu of which one entry is chosen.

    Parameters
    ----------
    title
        The subject of the choice; empty if the entries make it clear.
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

    @property
    def entries(self) -> list[QAction]:
        """All entries of the menu."""
        return list(self._menu.actions())

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
        self.setText(f"{self._title}: {choice.short}" if self._title else choice.short)

    def _on_choice(self, choice: MenuChoice) -> None:
        self.show_choice(choice)
        self.chosen.emit(choice)


class MenuButton(ToolButton):
    """A button with a menu that gathers other buttons: their menus, or their actions.

    Parameters
    ----------
    text, tooltip
        Of the button.
    entries
        The buttons, which are no longer seen themselves; None for a line between them.
    """

    def __init__(self, text: str, tooltip: str, *entries: QAbstractButton | None) -> None:
        super().__init__(text, tooltip)
        self._gathered: list[tuple[QAbstractButton, QAction]] = []
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self._menu.aboutToShow.connect(self._show_entries)
        self.setMenu(self._menu)
        opens_menu(self)
        self.gather(*entries)

    def gather(self, *entries: QAbstractButton | None) -> None:
        """Add entries at the end."""
        for entry in entries:
            if entry is None:
                self._menu.addSeparator()
            else:
                self._gather(entry)
        self._show_entries()

    def _gather(self, entry: QAbstractButton) -> None:
        entry.setParent(self)
        entry.hide()
        own = entry.menu() if isinstance(entry, QToolButton) else None
        action = self._menu.addAction("") if own is None else self._menu.addMenu(own)
        if action is None:
            return
        if own is None:
            action.triggered.connect(lambda _=False: entry.click())
        self._gathered.append((entry, action))

    def _show_entries(self) -> None:
        """Show the entries as their buttons are now."""
        for entry, action in self._gathered:
            action.setText(entry.text())
            action.setToolTip(entry.toolTip())
            action.setEnabled(entry.isEnabled())
            action.setCheckable(entry.isCheckable())
            action.setChecked(entry.isChecked())
