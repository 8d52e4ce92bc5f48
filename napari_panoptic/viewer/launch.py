"""The desk in a window of its own, for the command line."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import napari
from napari.settings import get_settings
from qtpy.QtCore import QCoreApplication, QEventLoop
from qtpy.QtWidgets import QApplication

from napari_panoptic.errors import PanopticError
from napari_panoptic.regions import Task
from napari_panoptic.viewer.opening import AnyDesk, read_folder, show_in
from napari_panoptic.viewer.shown import shown
from napari_panoptic.viewer.work import warm_up

PREFERRED_SIZE = (1600, 1000)
"""Width and height of the window, where the screen is large enough."""
PATIENCE_S = 300.0
"""How long a picture may take before something must be wrong."""
REPAINT_S = 0.5
"""How long the canvas gets to draw what was set last."""


def run_view(
    cohort_path: Path,
    *,
    region: str | None = None,
    screenshot: Path | None = None,
    allow_outside: bool = False,
) -> int:
    """Open a cohort in a window, and stay until it is closed.

    Parameters
    ----------
    cohort_path
        The cohort's folder.
    region
        The region to start with; the first where None.
    screenshot
        Where to save a picture of the whole window: it is then taken as soon
        as everything is loaded, and the window is closed.
    allow_outside
        Whether links that lead out of the cohort's folder are followed.

    Returns
    -------
    int
        0.

    Raises
    ------
    PanopticError
        For a folder that is no cohort, an unknown region, or a picture that
        cannot be taken.
    """
    opened = read_folder(cohort_path, allow_outside=allow_outside)
    if region is not None:
        opened.cohort.region(region)
    if opened.task is Task.NUCLEI:
        warm_up()  # while the window is being built
    with _collected_later():
        viewer = napari.Viewer(title=f"{shown(opened.cohort.name)} · napari-panoptic")
        viewer.window.resize(*_window_size())
        with _settings_saved_once():
            desk = show_in(viewer, opened, region=region)
    if screenshot is None or desk is None:
        napari.run()
        return 0
    try:
        _take_picture(viewer, desk, screenshot)
    finally:
        viewer.close()
    return 0


@contextmanager
def _collected_later() -> Iterator[None]:
    """Look for garbage only when the window is there.

    Each look goes through everything that is imported, which takes a tenth of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _settings_saved_once() -> Iterator[None]:
    """Let napari note the places of all docks at once; it saves its settings for each, twice.

    Where its attributes should be named otherwise, it does so.
    """
    settings = get_settings()
    if not (hasattr(settings, "_save_on_change") and hasattr(settings, "_maybe_save")):
        yield
        return
    before, settings._save_on_change = settings._save_on_change, False
    try:
        yield
    finally:
        settings._save_on_change = before
        settings._maybe_save()


def _window_size() -> tuple[int, int]:
    screen = QApplication.primaryScreen()
    if screen is None:
        return PREFERRED_SIZE
    free = screen.availableGeometry()
    return min(PREFERRED_SIZE[0], free.width()), min(PREFERRED_SIZE[1], free.height())


def _take_picture(viewer: napari.Viewer, desk: AnyDesk, path: Path) -> None:
    _process_events(lambda: desk.is_settled, PATIENCE_S)
    if not desk.is_settled:
        raise PanopticError(
            f"the cohort was not loaded within {PATIENCE_S:.0f} s; open it without a screenshot "
            "to see how far it comes"
        )
    desk.show_failure()
    _process_events(lambda: False, REPAINT_S)
    try:
        viewer.screenshot(str(path), canvas_only=False, flash=False)
    except OSError as error:
        raise PanopticError(
            f"the picture cannot be saved: {error.strerror or error}; choose another place",
            path=path,
        ) from error


def _process_events(done: Callable[[], bool], seconds: float) -> None:
    """Let the window live until something is so, at most for some time."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        time.sleep(0.005)
