"""A heading that folds and unfolds what is below it."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QToolButton, QWidget


class FoldButton(QToolButton):
    """A button with an arrow that shows and hides a widget.

    superqt's QCollapsible fixes the height of its contents, and draws an arrow that does not
    follow the theme.

    Parameters
    ----------
    title
        The heading.
    meaning
        The tooltip.
    content
        The widget that is shown and hidden.
    """

    def __init__(self, title: str, meaning: str, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self.setText(title)
        self.setToolTip(meaning)
        self.setAccessibleName(title or meaning)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setAutoRaise(True)
        self.setCheckable(True)
        self.setChecked(True)
        self.setArrowType(Qt.ArrowType.DownArrow)
        self.toggled.connect(self._on_toggled)

    def _on_toggled(self, unfolded: bool) -> None:
        self._content.setVisible(unfolded)
        self.setArrowType(Qt.ArrowType.DownArrow if unfolded else Qt.ArrowType.RightArrow)
