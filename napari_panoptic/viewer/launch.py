"""The desk in a window of its own, for the command line."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import napari
from napari.settings import get_settings
from qtpy.compat import isalive
from qtpy.QtCore import QCoreApplication, QEventLoop, QThreadPool

from napari_panoptic.common.errors import PanopticError, checked_name
from napari_panoptic.values.cohort import Cohort, Task
from napari_panoptic.values.links import CohortKey, ObjectLink, check_link
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of
from napari_panoptic.viewer.desk.window import fit_into_screen, mark_own
from napari_panoptic.viewer.kit.napari_private import settings_saved_once, window_of
from napari_panoptic.viewer.kit.questions import existing_folder
from napari_panoptic.viewer.kit.shown import OpeningReport, shown
from napari_panoptic.viewer.opening import (
    TITLE_END,
    AnyDesk,
    Opened,
    open_link_in,
    read_folder,
    show_in,
    title_of,
)
from napari_panoptic.viewer.state.preferences import PREFERENCES

PREFERRED_SIZE = (1600, 1000)
"""Width and height of the window, where the screen is large enough."""
MOST_RECENT = 10
"""The most cohorts shown lately that are read to find that of a link."""
FIRST_REGION_S = 0.3
"""How long a window waits for its first region before it is painted without one."""
PATIENCE_S = 300.0
"""How long the workers may rest before a picture is given up."""
WORKED_S = 1.0
"""Processor time within `PATIENCE_S` from which workers do not rest."""
CLOSING_S = 3.0
"""How long jobs get to end when the window is closed."""
REPAINT_S = 0.5
"""How long the canvas gets to draw the last change."""


def run_view(
    cohort: Path | Cohort,
    *,
    region: str | None = None,
    screenshot: Path | None = None,
    allow_outside: bool = False,
    link: ObjectLink | None = None,
) -> int:
    """Open a cohort in a window, and stay until it is closed.

    Parameters
    ----------
    cohort
        The cohort's folder, or a cohort of nuclei.
    region
        The region to start with; the first where None.
    screenshot
        Where to save a picture of the whole window: it is then taken as soon
        as everything is loaded, and the window is closed.
    allow_outside
        Whether links that lead out of the cohort's folder are followed.
    link
        What to show of the cohort, which is one of nuclei; the user is asked about a link to
        another version of it.

    Returns
    -------
    int
        0.

    Raises
    ------
    SettingsError
        For an unknown region, and a link to something that the cohort lacks.
    PanopticError
        For a folder that is no cohort, or a picture that cannot be taken.
    """
    opened = (
        Opened(Task.NUCLEI, cohort)
        if isinstance(cohort, Cohort)
        else read_folder(cohort, allow_outside=allow_outside)
    )
    if region is not None:
        checked_name("--region", region, lambda name: str(opened.cohort.region(name).name))
    begin = Beginning(region)
    if isinstance(opened.cohort, Cohort):
        begin = Beginning.of(link, opened.cohort, region)
    viewer = napari.Viewer(title=title_of(opened))
    with _painted_once(viewer):
        _give_size(viewer)
        desk = _filled(viewer, opened, begin)
        _keep_on_screen(viewer)
    if link is not None and isinstance(desk, Desk):
        desk.later(partial(desk.links.open, link))
        QCoreApplication.processEvents()
    return _stay(viewer, desk, screenshot)


def recent_cohort(link: ObjectLink) -> Cohort | None:
    """Return the cohort of a link among those shown lately.

    A cohort of the same name is taken if none has the same fingerprint; None if there is none.
    """
    folders = PREFERENCES.recent_cohorts()
    # Links have the name of the folder, unless a description states another one.
    folders.sort(key=lambda folder: folder.name != link.cohort.name)
    alike: Cohort | None = None
    for folder in folders[:MOST_RECENT]:
        try:
            opened = read_folder(folder)
        except PanopticError:  # it may be gone, or be none any more
            continue
        if not isinstance(opened.cohort, Cohort):
            continue
        key = CohortKey.of(opened.cohort)
        if not key.differences(link.cohort):
            return opened.cohort
        if alike is None and key.name == link.cohort.name:
            alike = opened.cohort
    return alike


def run_link(link: ObjectLink) -> int:
    """Open a window that asks for the folder of a link's cohort, and stay until it is closed.

    Returns
    -------
    int
        0.
    """
    viewer = napari.Viewer(title=f"{shown(link.cohort.name)}{TITLE_END}")
    with _painted_once(viewer):
        _give_size(viewer)
        desk = desk_of(viewer)
        _keep_on_screen(viewer)
    desk.later(partial(_ask_for_folder_of, viewer, link, desk.start))
    return _stay(viewer, desk, None)


def _ask_for_folder_of(viewer: napari.Viewer, link: ObjectLink, report: OpeningReport) -> None:
    recent = PREFERENCES.recent_cohorts()
    title = f"Open link: the folder of the cohort {link.cohort.name}"
    folder = existing_folder(window_of(viewer), shown(title), recent[0].parent if recent else "")
    if folder is not None:
        open_link_in(viewer, folder, link, report)


def _stay(viewer: napari.Viewer, desk: AnyDesk | None, screenshot: Path | None) -> int:
    """Stay until a window is closed, or until its picture is taken; returns 0."""
    status = 1
    try:
        if screenshot is None or desk is None:
            if _is_open(viewer):
                napari.run()
        elif _is_open(viewer):
            try:
                _take_picture(viewer, desk, screenshot)
            finally:
                viewer.close()
        status = 0
    finally:
        _end_jobs(status)
    return status


def show_folder(folder: Path, keep: object = None) -> napari.Viewer:
    """Open a cohort folder in a new window, for notebooks and scripts.

    Parameters
    ----------
    folder
        The cohort's folder.
    keep
        Kept alive as long as the window, such as a temporary folder.
    """
    opened = read_folder(folder)
    viewer = napari.Viewer(title=title_of(opened))
    _give_size(viewer)
    show_in(viewer, opened)
    window = window_of(viewer)
    if keep is not None and window is not None:
        window.destroyed.connect(lambda *_: keep)
    QCoreApplication.processEvents()
    _keep_on_screen(viewer)
    napari.run()
    return viewer


@dataclass(frozen=True)
class Beginning:
    """The first contents of a window."""

    #: The region; None for the first.
    region: str | None = None
    #: The team, and how to evaluate; None for the usual ones.
    team: str | None = None
    settings: EvaluationSettings | None = None

    @classmethod
    def of(cls, link: ObjectLink | None, cohort: Cohort, region: str | None) -> Beginning:
        """Return the beginning of a link; its region and team, unless the user is asked first.

        Raises
        ------
        LinkError
            If the cohort lacks something.
        """
        if link is None:
            return cls(region)
        link = check_link(link, cohort)
        if CohortKey.of(cohort).differences(link.cohort):
            return cls(region)
        return cls(link.region or None, link.team or None, link.settings)


def _filled(viewer: napari.Viewer, opened: Opened, begin: Beginning) -> AnyDesk | None:
    """Show a cohort on its desk."""
    with settings_saved_once(get_settings()):
        if not isinstance(opened.cohort, Cohort):
            return show_in(viewer, opened, region=begin.region)
        desk = desk_of(viewer)
    QCoreApplication.processEvents()  # gives the panels their sizes
    if _is_open(viewer):  # the user may close the window whenever events are processed
        desk.show_cohort(
            opened.cohort,
            region=begin.region,
            settings=begin.settings,
            team=begin.team,
        )
        _process_events(lambda: _has_shown(desk) or not _is_open(viewer), FIRST_REGION_S)
    return desk


def _is_open(viewer: napari.Viewer) -> bool:
    """Return whether the window is there; napari forgets it when it is closed."""
    window = window_of(viewer)
    return window is not None and isalive(window)  # type: ignore[no-untyped-call]


def _has_shown(desk: Desk) -> bool:
    return desk.session is not None and desk.session.snapshot is not None


@contextmanager
def _painted_once(viewer: napari.Viewer) -> Iterator[None]:
    """Paint a window when it has been filled, and not again with every panel and layer.

    If napari names its window differently, it is painted in between.
    """
    window = window_of(viewer)
    if window is None:
        yield
        return
    window.setUpdatesEnabled(False)
    try:
        yield
    finally:
        if _is_open(viewer):
            window.setUpdatesEnabled(True)


def _end_jobs(status: int) -> None:
    """Wait a moment for jobs; one that hangs must not keep a process without a window.

    Closing the window cancels all jobs, but none ends in the middle of a read. Qt waits for them
    when the process ends, and a job that reports to objects that are gone aborts it.

    Parameters
    ----------
    status
        Exit status of the process, if jobs are left.
    """
    pool = QThreadPool.globalInstance()
    if pool is None:
        return
    pool.clear()
    _process_events(lambda: pool.activeThreadCount() == 0, CLOSING_S)
    if pool.activeThreadCount():
        atexit.register(_leave, status)


def _leave(status: int) -> None:
    """End the process at once, without its threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _give_size(viewer: napari.Viewer) -> None:
    """Make a window of the program's own, as large as preferred, within its screen."""
    mark_own(viewer)
    viewer.window.resize(*PREFERRED_SIZE)
    _keep_on_screen(viewer)


def _keep_on_screen(viewer: napari.Viewer) -> None:
    """Shrink a window to its screen: with its title bar, which it gets when it is shown."""
    window = window_of(viewer)
    if window is not None and isalive(window):  # type: ignore[no-untyped-call]
        fit_into_screen(window)


def _take_picture(viewer: napari.Viewer, desk: AnyDesk, path: Path) -> None:
    worked, before = _worker_s(), -WORKED_S
    while not desk.is_settled and worked - before >= WORKED_S:
        _process_events(lambda: desk.is_settled, PATIENCE_S)
        worked, before = _worker_s(), worked
    if not desk.is_settled:
        raise PanopticError(
            f"the cohort was not loaded, and nothing has happened for {PATIENCE_S:.0f} s; open it "
            "without a screenshot to see how far it comes"
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


def _worker_s() -> float:
    """Return the processor time of all threads but this one, in seconds."""
    return time.process_time() - time.thread_time()


def _process_events(done: Callable[[], bool], seconds: float) -> None:
    """Let the window live until a condition holds, at most for some time."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        time.sleep(0.002)
