"""The plots of an answer, one of which is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from qtpy.QtWidgets import QWidget

from napari_panoptic.questions.answer import (
    AnswerPlot,
)
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import Grow, lay_out
from napari_panoptic.viewer.kit.plot_view import DRAWING, PlotView

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

_LEAST_PLOT_PX = 130


class PlotPicker(QWidget):
    """A menu of plots above the one that is chosen; hidden without any."""

    def __init__(self) -> None:
        super().__init__()
        self.menu, self.view = ChoiceBox(meaning="Which plot is shown."), PlotView()
        self.view.setMinimumHeight(_LEAST_PLOT_PX)
        self.work: Latest[Plot] = Latest(self.view.show_plot)
        lay_out(self, ("Plot", Grow(self.menu)), Grow(self.view))
        self.menu.chosen.connect(self._draw)

    def fill(self, plots: Sequence[AnswerPlot]) -> None:
        """Offer plots, and draw the first one."""
        self.work.drop()
        self.view.show_plot(None)
        self.menu.offer([Choice(plot, plot.title, plot.caption) for plot in plots])
        self.setVisible(bool(plots))
        if plots:
            self._draw(plots[0])

    def choose(self, title: str) -> None:
        """Choose the plot of a title, if there is one."""
        for plot in self.menu.values:
            if plot.title == title:
                self.menu.choose(plot)

    def _draw(self, plot: AnswerPlot) -> None:
        self.work.start(partial(_drawn, plot))


def _drawn(plot: AnswerPlot) -> Plot:
    from napari_panoptic.report.answers import drawn

    with DRAWING:
        return drawn(plot)
