"""A plot on the ground of the window."""

from threading import Event, Thread

from matplotlib.figure import Figure

from napari_panoptic.report.plots import Plot
from napari_panoptic.viewer.kit.plot_view import DRAWING, PlotView


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
