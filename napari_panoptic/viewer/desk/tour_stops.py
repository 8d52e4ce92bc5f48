"""What the tour of the desk explains: a panel each, in two sentences."""

from __future__ import annotations

from qtpy.QtWidgets import QMainWindow, QWidget

from napari_panoptic.viewer.kit.tour import TourStop
from napari_panoptic.viewer.panels.around import Panels


def tour_stops(
    window: QMainWindow, strip: QWidget, panels: Panels, start: QWidget
) -> list[TourStop]:
    """List the stops of a tour of the desk, with and without a cohort.

    Parameters
    ----------
    window
        The window; its middle is the image.
    strip
        What stands above the image.
    panels, start
        The panels.
    """
    image = window.centralWidget()
    stops = [
        TourStop(
            "Begin here",
            "Open a folder with images, annotations and predictions, compare two layers of "
            "napari, or open the sample. You can also drop a folder or files here.",
            start,
        ),
        TourStop(
            "Workspaces",
            "Each button arranges the window for one task (Ctrl+1, Ctrl+2 …). The line below it "
            "names region, team and rules, and the selected object.",
            strip,
        ),
        TourStop(
            "Regions and teams",
            "One line per region and per team, with PQ and failures: FN, FP and misclassified. "
            "Click a line to show it, or press J and K for the next and previous region.",
            panels.navigator,
        ),
        TourStop(
            "The legend",
            "Thick outlines are the reference, thin ones the prediction, coloured by status or "
            "class. Click an entry to list only these objects; H and Q change the drawing.",
            panels.legend,
        ),
        TourStop(
            "Settings",
            "They decide how objects are matched and what counts. Every change takes effect at "
            "once, and one click returns to the protocol.",
            panels.settings,
        ),
        TourStop(
            "Metrics",
            "The metrics of this region and team; hover over one for its meaning. Click one, or a "
            "cell of the matrix, to list only the objects behind it.",
            panels.metrics,
        ),
        TourStop(
            "Objects",
            "One line per object, worst first. Press N for the next failure: the image zooms to "
            "it, and its cause is explained.",
            panels.objects,
        ),
    ]
    if image is not None:
        seen = TourStop(
            "The image",
            "Click a nucleus to select it, hover over it for its metrics, drag and scroll to move. "
            "A second click at the same place selects the object beneath.",
            image,
        )
        stops.insert(3, seen)
    return stops
