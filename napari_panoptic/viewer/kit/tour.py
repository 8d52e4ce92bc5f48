"""A short tour: one panel after the other is framed and explained, beside the user's work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, QPoint, QRect, Qt
from qtpy.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import heading, is_in_sight

CARD_PX = 330
GAP_PX = 12
"""Between a panel and its explanation."""
FRAME_PX = 3
_FRAME = QColor(255, 170, 0)


@dataclass(frozen=True, eq=False)
class TourStop:
    """A stop of a tour."""

    #: What is explained, in a few words.
    title: str
    #: Two sentences.
    text: str
    #: The panel.
    widget: QWidget


class Tour(QFrame):
    """The explanation of the present stop, with Back and Next; Esc ends the tour.

    Panels that are not in sight are left out. Nothing is blocked meanwhile.

    Parameters
    ----------
    window
        The window of the panels.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._stops: list[TourStop] = []
        self._place = -1
        self._frame = _Frame(window)
        self.setAutoFillBackground(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedWidth(CARD_PX)
        self._title, self._text, self._count = heading(""), WrappedLabel(), PlainLabel()
        self.back, self.following, end = (QPushButton(t) for t in ("Back", "Next", "End"))
        self.back.clicked.connect(lambda _=False: self._step(-1))
        self.following.clicked.connect(lambda _=False: self._step(1))
        end.clicked.connect(lambda _=False: self.end())
        end.setToolTip("End the tour (Esc)")
        row = QHBoxLayout()
        row.addWidget(self._count, 1)
        for button in (end, self.back, self.following):
            row.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 10)
        layout.addWidget(self._title)
        layout.addWidget(self._text)
        layout.addLayout(row)
        window.installEventFilter(self)
        self.hide()

    @property
    def stop(self) -> TourStop | None:
        """The panel that is explained now; None if there is no tour."""
        return self._stops[self._place] if 0 <= self._place < len(self._stops) else None

    def begin(self, stops: Sequence[TourStop]) -> None:
        """Explain the first panel in sight."""
        self.end()
        self._stops = list(stops)
        self._step(1)

    def end(self) -> None:
        """End the tour."""
        self._place = -1
        self._frame.hide()
        self.hide()

    def remove(self) -> None:
        """Take the tour away."""
        if isalive(self):  # type: ignore[no-untyped-call]
            self.end()
            self._frame.deleteLater()
            self.deleteLater()

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802
        """Draw the edge: the ground is that of the panels around it."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setPen(QPen(_FRAME, FRAME_PX))
        painter.drawRect(self.rect())
        painter.end()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """End on Esc; the arrow keys go back and on."""
        key = None if event is None else event.key()
        if key == Qt.Key.Key_Escape:
            self.end()
        elif key in (Qt.Key.Key_Right, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._step(1)
        elif key == Qt.Key.Key_Left:
            self._step(-1)
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Stay beside the panel when the window is laid out differently."""
        moved = (QEvent.Type.Resize, QEvent.Type.LayoutRequest)
        if self.stop is not None and event is not None and event.type() in moved:
            self._put_beside()
        return super().eventFilter(watched, event)

    def _step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) panel in sight; after the last one, end."""
        found = self._next_in_sight(self._place, step)
        if found is not None:
            self._place = found
            self._explain()
        elif step > 0:
            self.end()

    def _next_in_sight(self, place: int, step: int) -> int | None:
        place += step
        while 0 <= place < len(self._stops):
            if is_in_sight(self._stops[place].widget):
                return place
            place += step
        return None

    def _explain(self) -> None:
        stop = self._stops[self._place]
        self._title.set_rich(f"<b>{stop.title}</b>")
        self._text.setText(stop.text)
        in_sight = [at for at in self._stops if is_in_sight(at.widget)]
        self._count.setText(f"{in_sight.index(stop) + 1} of {len(in_sight)}")
        self.back.setEnabled(self._next_in_sight(self._place, -1) is not None)
        is_last = self._next_in_sight(self._place, 1) is None
        self.following.setText("Done" if is_last else "Next")
        self._put_beside()
        self.show()
        self.raise_()
        self.setFocus()

    def _put_beside(self) -> None:
        """Frame the panel, and put the explanation where it covers the panel least."""
        stop, window = self.stop, self.parentWidget()
        if stop is None or window is None:
            return
        panel = QRect(stop.widget.mapTo(window, QPoint(0, 0)), stop.widget.size())
        self._frame.setGeometry(panel.adjusted(-FRAME_PX, -FRAME_PX, FRAME_PX, FRAME_PX))
        self._frame.show()
        self._frame.raise_()
        layout = self.layout()
        if layout is not None:
            self.setFixedHeight(layout.totalHeightForWidth(CARD_PX))
        self.move(_place_beside(panel, QRect(QPoint(0, 0), window.size()), self.rect()))
        self.raise_()


def _place_beside(panel: QRect, window: QRect, card: QRect) -> QPoint:
    """Return the place of a card right or left of a panel, below or above it, or upon it."""
    x = min(max(panel.left(), window.left()), window.right() - card.width())
    y = min(max(panel.top(), window.top()), window.bottom() - card.height())
    for place in (
        QPoint(panel.right() + GAP_PX, y),
        QPoint(panel.left() - GAP_PX - card.width(), y),
        QPoint(x, panel.bottom() + GAP_PX),
        QPoint(x, panel.top() - GAP_PX - card.height()),
    ):
        if window.contains(card.translated(place)):
            return place
    return panel.center() - card.center()


class _Frame(QWidget):
    """A frame around a panel, through which the mouse works as usual."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw the frame."""
        painter = QPainter(self)
        painter.setPen(QPen(_FRAME, 2 * FRAME_PX))
        painter.drawRect(self.rect())
        painter.end()
