"""The plots of an answer, one of which is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QWidget

from napari_panoptic.questions.answer import AnswerPlot
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import Grow, lay_out
from napari_panoptic.viewer.kit.plot_view import DRAWING, PlotView
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import PushButton

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

_LEAST_PLOT_PX, _LEAST_LETTERS = 130, 8


class PlotPicker(QWidget):
    """A menu of plots above the one that is chosen, and a button that saves it.

    Parameters
    ----------
    title
        The plot that is shown first, later the one that was chosen last; empty for the first plot
        of each answer.
    hint
        What is shown while there are no plots; the widget is hidden then if it is empty.
    about_points
        What a click on a point does.
    """

    def __init__(self, title: str = "", hint: str = "", about_points: str = "") -> None:
        super().__init__()
        self._title, self._hint, self._about_points = title, hint, about_points
        self._waiting: AnswerPlot | None = None
        self.menu = ChoiceBox(meaning="Which plot is shown.").shrinkable()
        self.menu.setMinimumContentsLength(_LEAST_LETTERS)
        self.save = PushButton("Save plot…", "Save this plot as SVG or PNG.")
        self.note, self.view = WrappedLabel(), PlotView()
        self.view.setMinimumHeight(_LEAST_PLOT_PX)
        self.work: Latest[Plot] = Latest(self._show_plot)
        lay_out(self, ("Plot", Grow(self.menu), self.save), self.note, Grow(self.view))
        self.menu.chosen.connect(self._on_menu)
        self.fill(())

    def fill(self, plots: Sequence[AnswerPlot]) -> None:
        """Offer plots, and draw the chosen one."""
        self.menu.offer([Choice(plot, plot.title, plot.caption) for plot in plots])
        for box in (self.menu, self.save):
            box.setEnabled(bool(plots))
        if not self._hint:  # else the panel decides whether there is room
            self.setVisible(bool(plots))
        if plots:
            kept = next((plot for plot in plots if plot.title == self._title), plots[0])
            self.menu.show_choice(kept)
            self._draw(kept)
        else:
            self._draw(None)
            self.note.show_text(self._hint)

    def choose(self, title: str) -> None:
        """Choose the plot of a title, if there is one."""
        for plot in self.menu.values:
            if plot.title == title:
                self.menu.choose(plot)

    def showEvent(self, event: QShowEvent | None) -> None:  # noqa: N802
        """Draw what was chosen while there was no room for it."""
        super().showEvent(event)
        if self._waiting is not None:
            self._draw(self._waiting)

    def _on_menu(self, plot: AnswerPlot) -> None:
        if self._title:
            self._title = plot.title
        self._draw(plot)

    def _draw(self, plot: AnswerPlot | None) -> None:
        """Draw a plot in a worker, when there is room for it; None shows none."""
        self.work.drop()
        self.view.show_plot(None)
        self.note.show_text("")
        self.save.setEnabled(False)
        self._waiting = None if self.isVisible() else plot
        if plot is not None and self.isVisible():
            self.work.start(partial(_drawn, plot))

    def _show_plot(self, plot: Plot) -> None:
        points = (point for points in plot.points.values() for point in points)
        has_points = any(point.patient or point.region for point in points)
        self.note.show_text(self._about_points if has_points else "")
        self.view.show_plot(plot)
        self.save.setEnabled(True)


def _drawn(plot: AnswerPlot) -> Plot:
    from napari_panoptic.report.answers import drawn

    with DRAWING:
        return drawn(plot)
