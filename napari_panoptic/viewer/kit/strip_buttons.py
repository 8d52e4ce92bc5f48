"""Buttons that the strips above the images of all desks have."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtGui import QAction, QKeySequence  # type: ignore[attr-defined]
from qtpy.QtWidgets import QPushButton, QToolButton, QWidget

from napari_panoptic.viewer.kit.keys import KEY_LIST


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
    """How much was odd in the files of what is shown, and the way to the list; hidden without any.

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
        self.setText(f"⚠ {count} note{'' if count == 1 else 's'}")

    def said(self) -> str:
        """Return its text; empty if it is hidden."""
        return "" if self.isHidden() else self.text()
