"""Opening a real window, waiting for it, and timing what is shown in it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import napari
from qtpy.QtWidgets import QApplication

from benchmarks.measure import ms
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of

PATIENCE_S = 300


def settle(desk: Any) -> None:
    """Wait until everything is shown."""
    wait(lambda: desk.is_settled)


def wait(done: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Let the window work until something is done."""
    end = time.monotonic() + patience_s
    while not done() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.0003)  # leaves the interpreter to the worker
    QApplication.processEvents()


@contextmanager
def window() -> Iterator[napari.Viewer]:
    """Open an empty window, and close it afterwards."""
    viewer = napari.Viewer()
    viewer.window.resize(1600, 1000)
    QApplication.processEvents()
    yield viewer
    viewer.close()


@contextmanager
def opened(root: Any) -> Iterator[tuple[Desk, napari.Viewer]]:
    """Show the cohort of a folder on a desk in a window of its own, and close both afterwards."""
    with window() as viewer:
        desk = desk_of(viewer)
        desk.show_cohort(open_cohort(root))
        settle(desk)
        yield desk, viewer
        desk.close()
        settle(desk)


@contextmanager
def read_in_windows() -> Iterator[None]:
    """Have cohorts shown meanwhile whose regions are slides, also where they are smaller."""
    begin = Session.__init__

    def begin_with_slides(self: Session, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self.held_up_to_px = 0

    with patch.object(Session, "__init__", begin_with_slides):
        yield


def redraw(viewer: napari.Viewer) -> None:
    """Draw the canvas."""
    viewer.window._qt_viewer.canvas._scene_canvas.render()


def redraw_ms(viewer: napari.Viewer, move: Callable[[int], object], n: int) -> list[float]:
    """Return ms by the clock of moves of the camera, each until it is drawn."""

    def drawn(number: int) -> None:
        move(number)
        QApplication.processEvents()
        redraw(viewer)

    return [ms(lambda k=k: drawn(k), time.perf_counter) for k in range(n)]  # type: ignore[misc]


def answer_ms(desk: Desk, ask: Callable[[], object]) -> tuple[float, float]:
    """Ask for something; return ms until the team in sight is drawn, and until all are there."""
    answers: list[float] = []

    def note(_snapshot: object) -> None:
        answers.append(time.perf_counter())

    desk.session.region_changed.connect(note)
    drawn, began = 0.0, time.perf_counter()
    ask()
    while desk.link.loader.is_busy:
        QApplication.processEvents()
        if answers and not drawn:
            drawn = time.perf_counter()
        time.sleep(0.0003)
    all_there = time.perf_counter()
    desk.session.region_changed.disconnect(note)
    settle(desk)
    return 1000 * (drawn - began), 1000 * (all_there - began)
