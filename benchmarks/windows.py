"""What the measurements in a real window have in common."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import napari
from qtpy.QtWidgets import QApplication

from napari_panoptic.values.cohort import Cohort
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of

PATIENCE_S = 300


def settle(desk: Desk) -> None:
    """Wait until everything is shown."""
    end = time.monotonic() + PATIENCE_S
    while not desk.is_settled and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.002)


@contextmanager
def opened(cohort: Cohort) -> Iterator[tuple[Desk, napari.Viewer]]:
    """Show a cohort on a desk in a window of its own, and close both afterwards."""
    viewer = napari.Viewer()
    viewer.window.resize(1600, 1000)
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    settle(desk)
    yield desk, viewer
    desk.close()
    settle(desk)
    viewer.close()


def answer_ms(desk: Desk, ask: Callable[[], object]) -> tuple[float, float]:
    """Ask for something; gives ms until the team that is looked at is drawn, and until all are."""
    session, link = desk.session, desk.link
    if session is None or link is None:
        raise RuntimeError("the desk shows no cohort")
    answers: list[float] = []

    def note(_snapshot: object) -> None:
        answers.append(time.perf_counter())

    session.region_changed.connect(note)
    drawn, began = 0.0, time.perf_counter()
    ask()
    while link.loader.is_busy:
        QApplication.processEvents()
        if answers and not drawn:
            drawn = time.perf_counter()
        time.sleep(0.0003)  # leaves the interpreter to the worker
    all_there = time.perf_counter()
    session.region_changed.disconnect(note)
    settle(desk)
    return 1000 * (drawn - began), 1000 * (all_there - began)
