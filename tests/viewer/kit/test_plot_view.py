"""A plot on the ground of the window."""

from threading import Event, Thread

import pytest
from matplotlib.figure import Figure
from qtpy.QtWidgets import QApplication

from napari_panoptic.display.palette import TEAM_COLOURS
from napari_panoptic.report.plots import Plot
from napari_panoptic.report.plots.theme import Drawing, png_bytes
from napari_panoptic.viewer.kit.plot_view import DRAWING, PlotView
from tests.viewer.contrast import READABLE, SEEN, contrast, luminance, pixels_of


def test_the_window_draws_when_a_worker_has_drawn(qtbot):
    view = PlotView()
    qtbot.addWidget(view)
    view.show_plot(Plot(Figure(figsize=(3, 2)), {}))
    begun, told = Event(), []

    def draw():
        with DRAWING:
            begun.set()
            Event().wait(0.2)
            told.append("worker")

    worker = Thread(target=draw)
    worker.start()
    assert begun.wait(60)
    view.canvas.draw()
    told.append("window")
    worker.join()
    assert told == ["worker", "window"]


@pytest.mark.long
class TestPlots:
    @pytest.fixture
    def view(self, qtbot):
        view = PlotView()
        qtbot.addWidget(view)
        view.resize(390, 420)
        view.setStyleSheet("QWidget { background-color: #262930; color: #f0f1f2 }")
        drawing = Drawing(7.4, 3.0)
        (axes,) = drawing.panels(["A title"], 1)
        axes.plot([0, 1], [0, 1], color="#{:02x}{:02x}{:02x}".format(*TEAM_COLOURS[0]))
        axes.set_xlabel("x axis")
        axes.set_ylabel("y axis")
        self.plot = drawing.done()
        view.show_plot(self.plot)
        view.show()
        qtbot.waitExposed(view)
        QApplication.processEvents()
        return view

    def test_a_plot_fits_its_panel(self, view):
        canvas = view.canvas
        shown = canvas.visibleRegion().boundingRect()
        assert shown.width() == canvas.width() <= view.width()

    def test_a_plot_has_the_colours_of_the_window(self, view):
        before = png_bytes(self.plot, dpi=40)
        pixels = pixels_of(view.canvas)
        ground = pixels[2, 2]
        assert luminance(ground) < 0.1
        assert contrast(pixels, ground) >= READABLE
        # Along the lower half of the panel nothing but the line, in a colour that is dark itself.
        middle = pixels[pixels.shape[0] // 2, pixels.shape[1] // 2 - 40 : pixels.shape[1] - 30]
        assert contrast(middle, ground) >= SEEN
        assert png_bytes(self.plot, dpi=40) == before  # saved as it would be printed
