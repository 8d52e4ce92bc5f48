"""The list of keys."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import button_box, heading

INTRO = "Keys work wherever the mouse is; in a text field, letters are letters."


class KeysDialog(QDialog):
    """Every key and what it does; stays open beside the image.

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
        intro = WrappedLabel(INTRO)
        layout = QVBoxLayout(self)
        layout.addWidget(intro)
        layout.addWidget(self._area, 1)
        layout.addWidget(buttons)
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
