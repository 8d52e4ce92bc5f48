"""A plot in a panel; its points lead to what they stand for."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QScrollArea, QVBoxLayout, QWidget

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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._scroll)
        self._plot: Plot | None = None
        self._canvas: Any | None = None

    @property
    def plot(self) -> Plot | None:
        """The plot that is shown."""
        return self._plot

    @property
    def canvas(self) -> Any | None:
        """What it is drawn on."""
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
