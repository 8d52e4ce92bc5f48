"""Measure how long another region takes, and what the desk's layers cost per frame.

Needs a display: ``xvfb-run -a python -m benchmarks.switch [COHORT ...]`` where there is
none; without a cohort, generated ones of 1500 and 8192 px are used. A switch is
a click of the mouse on a region in the list; the clock runs until the canvas has
drawn the objects of the team that is looked at in their colours, and until all teams
are there. A jump is to a region of which nothing was read ahead, a neighbour one that
was, as it is small enough. A frame is one redraw of the canvas after the camera moved,
with all of the desk's layers and with the image alone.
"""

import argparse
import shutil
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import napari
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from benchmarks.cases import LARGE, MEDIUM
from benchmarks.sliders import write_colour_coded_cohort
from benchmarks.windows import opened, settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.read_ahead import ReadAhead
from napari_panoptic.viewer.desk.nuclei import Desk

SWITCHES = 12
UNCOUNTED = 3
"""The first switches find files and memory cold."""
PATIENCE_S = 60
FRAMES = 60


def switches(
    desk: Desk, viewer: napari.Viewer, *, is_read_ahead: bool
) -> list[tuple[float, float]]:
    """Click on one region after the other; gives ms to the team looked at, and to all."""
    session, link = desk.session, desk.link
    if session is None or link is None:
        raise RuntimeError("the desk shows no cohort")
    link.loader.ahead.close()
    if is_read_ahead:
        link.loader.ahead = ReadAhead(session.cohort)
    names = [region.name for region in session.cohort.regions]
    times = []
    for _ in range(SWITCHES + UNCOUNTED):
        shown = "" if session.snapshot is None else session.snapshot.region.name
        times.append(switch(desk, viewer, names[(names.index(shown) + 1) % len(names)]))
    return times[UNCOUNTED:]


def switch(desk: Desk, viewer: napari.Viewer, name: str) -> tuple[float, float]:
    """Click on a region when everything is at rest."""
    session, link = desk.session, desk.link
    if session is None or link is None:
        raise RuntimeError("the desk shows no cohort")
    places = desk.panels.navigator.places
    table, row = places.table, places.listed().index(name)
    index = table.model().index(row, 0)
    table.scrollTo(index)
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    drawn: list[float] = []

    def note(_event: object) -> None:
        snapshot = session.snapshot
        if snapshot is not None and snapshot.region.name == name and session.evaluation:
            drawn.append(time.perf_counter())

    rest(desk)
    canvas.events.draw.connect(note, position="last")
    began = time.perf_counter()
    QTest.mouseClick(
        table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(index).center()
    )
    while (link.loader.is_busy or not drawn) and time.perf_counter() < began + PATIENCE_S:
        QApplication.processEvents()
        time.sleep(0.0003)  # leaves the interpreter to the worker
    all_there = time.perf_counter()
    canvas.events.draw.disconnect(note)
    return 1000 * (drawn[0] - began), 1000 * (all_there - began)


def rest(desk: Desk) -> None:
    """Wait until nothing is read, shown or filled any more."""
    settle(desk)
    end = time.monotonic() + 1.0  # layers out of sight are filled last
    while (desk.link and desk.link.loader.ahead.is_busy) or time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.002)


def frame_ms(viewer: napari.Viewer) -> float:
    """Redraw the canvas while the camera moves."""
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    times = []
    for number in range(FRAMES):
        z, y, x = viewer.scene.camera.center
        viewer.scene.camera.center = (z, y, x + (0.5 if number % 2 else -0.5))
        began = time.perf_counter()
        canvas.render()
        times.append(1000 * (time.perf_counter() - began))
    return median(times)


def measure(folder: Path, title: str) -> None:
    """Open a cohort on a desk, and print what was measured."""
    with opened(open_cohort(folder)) as (desk, viewer):
        jumps = switches(desk, viewer, is_read_ahead=False)
        neighbours = switches(desk, viewer, is_read_ahead=True)
        with_layers = frame_ms(viewer)
        for layer in viewer.layers:
            layer.visible = layer.name == "image"
        alone = frame_ms(viewer)
    print(title)
    for name, times in (("jump", jumps), ("neighbour", neighbours)):
        first, every = zip(*times, strict=True)
        print(
            f"  {name:10} drawn median {median(first):6.0f} ms (slowest {max(first):.0f}), "
            f"all teams {median(every):6.0f} ms"
        )
    print(f"  frame {with_layers:.1f} ms, image alone {alone:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohorts", nargs="*", type=Path)
    options = parser.parse_args()
    for cohort in options.cohorts:
        measure(cohort, cohort.name)
    if options.cohorts:
        return
    for size in (MEDIUM, LARGE):
        with TemporaryDirectory() as folder:
            root = write_colour_coded_cohort(Path(folder), size)
            for path in [*root.rglob("R_1.*")]:
                shutil.copy(path, path.with_stem("R_2"))
            measure(root, f"{size.name}, {size.side} px, four teams")


if __name__ == "__main__":
    main()
