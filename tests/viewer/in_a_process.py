"""Windows in a process of its own: a crash of Qt or OpenGL then is an exit code."""

import subprocess
import sys

from tests.support.sandbox import sandbox

WINDOW = """
import sys
from functools import partial

import napari
from qtpy.QtCore import QCoreApplication, QEvent, Qt
from qtpy.QtWidgets import QApplication, QLabel

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.viewer.opening import open_in
from napari_panoptic.viewer.desk import nuclei as desk_module
from tests.support.waiting import wait_until

ALL_PARTS = desk_module.PARTS
desk_module.PARTS = ()  # the panels beside the table have no part in this


wait_until = partial(wait_until, meanwhile=QApplication.processEvents)


def draw():
    for _ in range(20):
        QApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def open_window():
    viewer = napari.Viewer()
    viewer.window.resize(1000, 700)
    return viewer


def open_desk(viewer):
    desk = open_in(viewer, sys.argv[1])
    wait_until(lambda: desk.is_settled)
    draw()
    return desk


"""


def run_in_process(code, folder, around):
    """Run code after `WINDOW` in another process, which must end well; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", WINDOW + code, str(folder)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=sandbox(around),
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout
