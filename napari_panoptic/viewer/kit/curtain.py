"""A cover over a panel whose contents must not be seen for some time."""

from __future__ import annotations

from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_panoptic.viewer.kit.shown import PlainLabel


class Curtain(QWidget):
    """Covers a widget with a sentence; the layout around it stays as it is.

    Parameters
    ----------
    covered
        The widget, which becomes the parent.
    text
        The sentence.
    """

    def __init__(self, covered: QWidget, text: str) -> None:
        super().__init__(covered)
        # Else a widget of a class of one's own has no background in napari's themes.
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        label = PlainLabel(text)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        QVBoxLayout(self).addWidget(label)
        self.setGeometry(covered.rect())
        covered.installEventFilter(self)
        self.raise_()
        self.show()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Stay as large as the covered widget, and above what is added to it."""
        covered = self.parentWidget()
        kinds = (QEvent.Type.Resize, QEvent.Type.ChildAdded, QEvent.Type.LayoutRequest)
        if covered is not None and event is not None and event.type() in kinds:
            self.setGeometry(covered.rect())
            self.raise_()
        return super().eventFilter(watched, event)

    @classmethod
    def draw(cls, covered: QWidget, text: str) -> None:
        """Cover a widget; an empty text uncovers it."""
        for curtain in covered.findChildren(cls, options=Qt.FindChildOption.FindDirectChildrenOnly):
            covered.removeEventFilter(curtain)
            curtain.hide()
            curtain.deleteLater()
        if text:
            cls(covered, text)
