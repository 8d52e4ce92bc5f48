"""Measure what outlines cost as lines, beside napari's contours of image pixels.

Needs a display: ``xvfb-run -a python -m benchmarks.outlines [COHORT ...]`` where there is none;
without a cohort, generated regions of 1500 and 8192 px are used. Of each cohort the region that is
shown first is measured, in one window, with lines and with contours by turns, at zooms in screen
pixels per image pixel. A call is what the main thread does before the canvas is drawn, a frame the
same with the drawing, until software OpenGL has finished it: ms of processor time, of the main
thread and of all threads, so that other work on the machine does not count.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import napari
import numpy as np
from qtpy.QtWidgets import QApplication
from vispy.gloo import gl

from benchmarks.cases import LARGE, MEDIUM
from benchmarks.strokes import write_cohort
from benchmarks.windows import opened, settle
from napari_panoptic.display.styles import ColourBy
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.layers import outlines

STEPS = 24
ROUNDS = 3
ZOOMS = (0.25, 1, 4, 12, 30)
CALL_LIMIT_MS = 5.0
FRAME_LIMIT = 1.4
"""Of a frame with contours."""

Times = dict[str, list[float]]


def measure(desk: Desk, viewer: napari.Viewer) -> dict[bool, Times]:
    """Move the camera and recolour, with lines and without; gives ms per name."""
    found: dict[bool, Times] = {True: {}, False: {}}
    look = desk.state.look
    for _ in range(ROUNDS):
        for are_lines in (True, False):
            draw_as_lines(desk, viewer, are_lines=are_lines)
            for zoom in ZOOMS:
                for name, step in steps(desk, viewer, zoom).items():
                    calls = found[are_lines].setdefault(f"{name}, call", [])
                    frames = found[are_lines].setdefault(f"{name}, frame", [])
                    for number in range(STEPS // ROUNDS + 2):
                        call, frame = timed(viewer, partial(step, number))
                        if number > 1:  # the first ones compile, or draw what was put off
                            calls.append(call)
                            frames.append(frame)
    draw_as_lines(desk, viewer, are_lines=True)
    desk.state.look = look
    return found


def draw_as_lines(desk: Desk, viewer: napari.Viewer, *, are_lines: bool) -> None:
    """Draw outlines as lines, or as where the driver refuses them."""
    outlines._DRIVER.accepts = are_lines
    scene = desk.link.scene  # type: ignore[union-attr]
    for slot in scene._own:
        if slot.layer in outlines._OUTLINES:
            outlines.outlines_of(slot.layer, viewer)._follow()
    scene.follow_zoom()
    settle(desk)


def steps(desk: Desk, viewer: napari.Viewer, zoom: float) -> dict[str, Callable[[int], None]]:
    """Return what is done at a zoom."""
    camera, state = viewer.scene.camera, desk.state
    pixel = float(viewer.layers["reference"].scale[-1])  # camera and layers are in micrometres
    camera.zoom = zoom / pixel
    middle = np.array(camera.center)

    def pan(number: int) -> None:
        camera.center = tuple(middle + 20 / camera.zoom * (number % 4 - 1.5))

    def zoom_in(number: int) -> None:
        camera.zoom = zoom / pixel * 1.1 ** (number % 4)

    def recolour(number: int) -> None:
        state.look = replace(state.look, colour_by=list(ColourBy)[number % 2])

    found = {f"pan at {zoom:g}": pan, f"zoom from {zoom:g}": zoom_in}
    if zoom == 1:
        found["recolour"] = recolour
    return found


def timed(viewer: napari.Viewer, step: Callable[[], None]) -> tuple[float, float]:
    """Return the ms of a call, and of the call with the frame that follows."""
    canvas: Any = viewer.window._qt_viewer.canvas._scene_canvas
    QApplication.processEvents()
    began, began_all = time.thread_time(), time.process_time()
    step()
    called = time.thread_time()
    canvas.set_current()
    canvas.on_draw(None)
    gl.glFinish()
    return 1000 * (called - began), 1000 * (time.process_time() - began_all)


def report(found: dict[bool, Times]) -> None:
    """Print the medians, and what is above a limit."""
    for name, times in found[True].items():
        lined, contours = median(times), median(found[False][name])
        is_call = name.endswith("call")
        is_above = lined > CALL_LIMIT_MS if is_call else lined > FRAME_LIMIT * contours
        limit = f"{CALL_LIMIT_MS:g} ms" if is_call else f"{FRAME_LIMIT:g} x"
        mark = f"  above {limit}" if is_above else ""
        print(
            f"  {name:26} lines {lined:7.1f}   contours {contours:7.1f}"
            f"   x {lined / contours:4.2f}{mark}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohorts", nargs="*", type=Path)
    options = parser.parse_args()
    for root in options.cohorts:
        show(root)
    if not options.cohorts:
        for size in (MEDIUM, LARGE):
            with TemporaryDirectory() as folder:
                show(write_cohort(Path(folder), size))


def show(root: Path) -> None:
    """Measure a cohort and print the figures."""
    with opened(open_cohort(root)) as (desk, viewer):
        snapshot = None if desk.session is None else desk.session.snapshot
        if snapshot is None:
            raise RuntimeError("the desk shows no region")
        height, width = snapshot.shape
        print(f"\n{snapshot.region.name}: {height} x {width} px")
        report(measure(desk, viewer))


if __name__ == "__main__":
    main()
