"""A plot in a panel, whose points lead to their objects; small plots that Qt draws."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar

from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent
from qtpy.QtWidgets import QScrollArea, QSizePolicy, QWidget

from napari_panoptic.viewer.kit.layouts import Grow, lay_out

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot


LEAST_WIDTH_PX = 240
"""A panel that is narrower than this shows a plot in part."""
DPI = 88
"""For a window with a 9 pt font: labels of 7.5 pt can be read, and most plots fit 400 px."""
DPI_PT, MOST_ENLARGED = 9.0, 1.35
"""The font size (pt) that DPI is meant for, and the largest factor for larger fonts."""
LEAST_SCALE = 0.7
DRAWING = RLock()
"""Held while a figure is made or drawn: matplotlib does not promise that two threads may do so.

The window waits for it: workers compute first, and hold it for the figure alone.
"""


class PlotView(QWidget):
    """Shows one plot, as wide as the panel is."""

    point_chosen = Signal(object)  # Point

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        lay_out(self, Grow(self._scroll))
        self._plot: Plot | None = None
        self._canvas: Any | None = None

    @property
    def plot(self) -> Plot | None:
        """The plot that is shown."""
        return self._plot

    @property
    def canvas(self) -> Any | None:
        """The canvas."""
        return self._canvas

    def show_plot(self, plot: Plot | None) -> None:
        """Show a plot instead of the one before; None shows nothing."""
        self._plot = plot
        self._canvas = None
        if plot is None:
            self._scroll.setWidget(QWidget())
            return
        # matplotlib takes long to import: only a plot needs it.
        from napari_panoptic.viewer.kit.plot_canvas import PlotCanvas

        width, height = plot.figure.get_size_inches()
        enlarged = min(max(self.font().pointSizeF() / DPI_PT, 1.0), MOST_ENLARGED)
        plot.figure.set_dpi(DPI * enlarged)
        canvas: Any = PlotCanvas(plot.figure, DRAWING)
        # As wide as the panel, and never lower than it was designed at that width.
        canvas.setMinimumSize(
            LEAST_WIDTH_PX, round(max(LEAST_WIDTH_PX / width, LEAST_SCALE * DPI) * height)
        )
        canvas.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keys go to the desk
        canvas.mpl_connect("pick_event", self._on_pick)
        self._canvas = canvas
        self._scroll.setWidget(canvas)

    def _on_pick(self, event: Any) -> None:
        points = () if self._plot is None else self._plot.points.get(event.artist, ())
        if len(event.ind) and event.ind[0] < len(points):
            self.point_chosen.emit(points[int(event.ind[0])])


ZERO_TO_ONE: Mapping[float, str] = {0.0: "0", 0.5: "0.5", 1.0: "1"}
"""Labels of an axis from 0 to 1."""
_SMALLEST_PT = 6.0


class PaintedPlot(QWidget):
    """A plot with labelled lines; subclasses implement `draw`.

    Positions in the plot go from 0 to 1, from the left to the right and from the bottom to the
    top.

    Parameters
    ----------
    name
        Its content, for screen readers.
    """

    #: Left of, above and right of the plot.
    margins_px: ClassVar[tuple[int, int, int]] = (26, 6, 8)
    #: Number of lines of text below the plot.
    lines_below: ClassVar[int] = 1
    #: Position -> label of the lines across and along the plot.
    x_ticks: Mapping[float, str] = {}
    y_ticks: Mapping[float, str] = ZERO_TO_ONE

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def draw(self, painter: QPainter) -> None:
        """Draw the plot."""
        raise NotImplementedError

    def why_empty(self) -> str:
        """Return the sentence to show instead of the plot; empty to draw it."""
        return ""

    @property
    def area(self) -> QRectF:
        """The part of the widget between the axes."""
        left, top, right = self.margins_px
        below = self.lines_below * QFontMetrics(self._small_font).height() + 4
        size = self.width() - left - right, self.height() - top - below
        return QRectF(left, top, max(size[0], 1), max(size[1], 1))

    @property
    def ink(self) -> QColor:
        """The colour of texts."""
        return QColor(self.palette().color(self.foregroundRole()))

    def place(self, x: float, y: float) -> QPointF:
        """Return where in the widget a position of the plot lies."""
        area = self.area
        return QPointF(area.left() + x * area.width(), area.bottom() - y * area.height())

    def text_below(self, line: int = 0) -> QRectF:
        """Return the place of a line of text below the plot."""
        area, height = self.area, QFontMetrics(self._small_font).height()
        return QRectF(area.left(), area.bottom() + 2 + line * height, area.width(), height)

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw axes and contents, or the reason why there are none."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self.ink)
        if reason := self.why_empty():
            painter.drawText(QRectF(self.rect()), int(Qt.AlignmentFlag.AlignCenter), reason)
        else:
            painter.save()
            painter.setFont(self._small_font)
            self.draw_axes(painter)
            painter.restore()
            self.draw(painter)
        painter.end()

    def draw_axes(self, painter: QPainter) -> None:
        """Draw the labelled lines, in a small font."""
        pale = self.ink
        pale.setAlphaF(0.3)
        painter.setPen(pale)
        for x in self.x_ticks:
            painter.drawLine(self.place(x, 0), self.place(x, 1))
        for y in self.y_ticks:
            painter.drawLine(self.place(0, y), self.place(1, y))
        painter.setPen(self.ink)
        below, height = self.text_below(), QFontMetrics(self._small_font).height()
        for x, label in self.x_ticks.items():
            box = QRectF(self.place(x, 0).x() - 20, below.top(), 40, height)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), label)
        for y, label in self.y_ticks.items():
            box = QRectF(0, self.place(0, y).y() - height / 2, self.area.left() - 4, height)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignRight), label)

    @property
    def _small_font(self) -> QFont:
        small = QFont(self.font())
        small.setPointSizeF(max(small.pointSizeF() * 0.8, _SMALLEST_PT))
        return small
