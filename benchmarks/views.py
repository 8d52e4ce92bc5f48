"""Looking at regions in a window: settings, other regions, lists, slides, and the start.

By the clock, from the request until it is drawn, unless processor time is named.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import napari
import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from benchmarks.cases import (
    CLASSES,
    MONUSAC,
    Size,
    label_pair,
    scene,
    sizes,
    write_cohort,
    write_slide,
)
from benchmarks.contenders import classed
from benchmarks.measure import Measured, ms, report, temporary
from benchmarks.windows import (
    answer_ms,
    opened,
    read_in_windows,
    redraw,
    redraw_ms,
    settle,
    wait,
    window,
)
from napari_panoptic.display.behind import behind_cell
from napari_panoptic.display.object_rows import COLUMNS, ObjectFilter, WorstFirst
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.read_ahead import ReadAhead
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of
from napari_panoptic.viewer.panels.objects.panel import ObjectTable

# --- settings -----------------------------------------------------------------------------------

STEPS: dict[str, list[Any]] = {
    "iou_threshold": [round(0.05 * k, 2) for k in range(1, 20)],
    "matching": ["centroid", "strict-iou"] * 5,
    "ambiguous": ["keep", "majority", "clip-predictions", "clip"] * 3,
    "restoration": ["border-dilated", "border-removed"] * 5 + ["border-dilated"],
    "zone_px": [1, 2, 3, 4, 5, 4, 3, 2, 1, 0] * 2,
    "radius": [-3, -2, -1, 0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, -1, -2],
}


def sliders(names: str = "ML") -> None:
    """A step of a slider or menu of the settings, four teams with colour-coded masks."""
    for size in sizes(names):
        with temporary() as folder, opened(write_cohort(folder, size, coloured_teams=4)) as (d, _):
            found = []
            for name, values in STEPS.items():
                times = []
                for value in values:
                    # A radius has no effect otherwise.
                    more = {"restoration": "border-dilated"} if name == "radius" else {}
                    wanted = d.session.settings.replaced(**{name: value}, **more)
                    times.append(answer_ms(d, partial(d.link.request, settings=wanted)))
                d.link.request(settings=d.session.protocol)
                settle(d)
                first, every = map(list, zip(*times[1:], strict=True))
                found += [Measured(f"{name}: team in sight", first, limit=50.0)]
                found += [Measured(f"{name}: all teams", every)]
            report(f"A step of a setting, 4 teams, {size}", found)


# --- other regions ------------------------------------------------------------------------------


def switch(cohort: str = "", names: str = "ML", n: int = 12) -> None:
    """A click on another region, read ahead (a neighbour) or not (a jump); a frame of the canvas.

    Measured in a cohort, or in generated ones if none is given.
    """
    if cohort:
        _switch(Path(cohort), Path(cohort).name, n)
        return
    for size in sizes(names):
        with temporary() as folder:
            _switch(write_cohort(folder, size, coloured_teams=4, regions=2), str(size), n)


def _switch(root: Path, title: str, n: int) -> None:
    with opened(root) as (desk, viewer):
        found = []
        for name in ("jump", "neighbour"):
            desk.link.loader.ahead.close()
            if name == "neighbour":
                desk.link.loader.ahead = ReadAhead(desk.session.cohort)
            # The first switches find files and memory cold.
            times = [click_next(desk, viewer) for _ in range(n + 3)][3:]
            first, every = map(list, zip(*times, strict=True))
            found += [Measured(f"{name}: drawn", first), Measured(f"{name}: all teams", every)]

        with_layers = frames_ms(viewer)
        for layer in viewer.layers:
            layer.visible = layer.name == "image"
        frame = "frame while panning, beside the image alone"
        found.append(Measured(frame, with_layers, beside=frames_ms(viewer)))
    report(f"Another region, {title}", found)


def frames_ms(viewer: napari.Viewer) -> list[float]:
    """Redraw the canvas while the camera moves."""
    times = []
    for number in range(60):
        z, y, x = viewer.scene.camera.center
        viewer.scene.camera.center = (z, y, x + (0.5 if number % 2 else -0.5))
        times.append(ms(partial(redraw, viewer), time.perf_counter))
    return times


def click_next(desk: Desk, viewer: napari.Viewer) -> tuple[float, float]:
    """Click on the next region at rest; return ms to the team in sight, and to all teams."""
    session, link, places = desk.session, desk.link, desk.panels.navigator.places
    names = [region.name for region in session.cohort.regions]
    shown = session.snapshot.region.name if session.snapshot else names[-1]
    name = names[(names.index(shown) + 1) % len(names)]
    index = places.table.model().index(places.listed().index(name), 0)
    places.table.scrollTo(index)
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    drawn: list[float] = []

    def note(_event: object) -> None:
        if session.snapshot and session.snapshot.region.name == name and session.evaluation:
            drawn.append(time.perf_counter())

    settle(desk)
    end = time.monotonic() + 1.0  # layers out of sight are filled last
    wait(lambda: time.monotonic() > end and not link.loader.ahead.is_busy)
    canvas.events.draw.connect(note, position="last")
    began, place = time.perf_counter(), places.table.visualRect(index).center()
    QTest.mouseClick(places.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    wait(lambda: drawn and not link.loader.is_busy, 60)
    all_there = time.perf_counter()
    canvas.events.draw.disconnect(note)
    return 1000 * (drawn[0] - began), 1000 * (all_there - began)


# --- the list of objects ------------------------------------------------------------------------


def objects(n: int = 100_000, calls: int = 15) -> None:
    """Sorting, filtering and selecting in a table of objects, with one repaint."""
    application = QApplication.instance() or QApplication([])
    table = ObjectTable()
    table.resize(430, 700)
    table.show()
    pair, _ = classed(*label_pair(Size("", 18 * int(np.sqrt(n)), n // 2)))
    shown = evaluate(replace(pair, mpp=0.25)).outcomes
    orders = (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder)
    failures = ObjectFilter(statuses=frozenset({"FN", "FP", "misclassified"}))
    picks = np.random.default_rng(2).integers(0, n // 2, calls + 1).tolist()
    sort, put = table.view.sortByColumn, table.put_worst_first

    def filtered(wanted: ObjectFilter, number: int) -> None:
        table.set_filter(ObjectFilter() if number % 2 else wanted)

    actions: dict[str, Callable[[int], object]] = {
        "show other outcomes": lambda _k: table.show_outcomes(shown),
        **{
            f"sort by {column.title}": lambda k, place=place: sort(place, orders[k % 2])
            for place, column in enumerate(COLUMNS)
        },
        **{f"worst first: {by}": lambda _k, by=by: put(by) for by in WorstFirst},
        "filter: failures, and back": partial(filtered, failures),
        "filter: a cell of the confusion matrix": partial(
            filtered, behind_cell(CLASSES[0], CLASSES[1])
        ),
        "select and scroll to an object": lambda k: table.select((Side.REFERENCE, picks[k])),
        "failures in their order": lambda _k: table.model.failures(),
    }

    def painted(action: Callable[[int], object], number: int) -> None:
        action(number)
        application.processEvents()

    found = []
    for name, action in actions.items():
        each = [ms(partial(painted, action, k), time.perf_counter) for k in range(calls + 1)]
        found.append(Measured(name, each[1:], limit=20.0))
    table.close()
    report(f"A table of {len(shown.reference) + len(shown.prediction):,} objects", found)


# --- a slide ------------------------------------------------------------------------------------


def slide_view(height: int = 30_000, width: int = 40_000, n: int = 600_000) -> None:
    """A whole slide: opening, panning and jumping, with the objects and the picture alone.

    The slide is written once into the temporary folder (1 GB), and used again from there.
    """
    program = Path(__file__).with_name("cases.py").read_bytes()
    name = f"{width}x{height}-{hashlib.sha256(program).hexdigest()[:12]}"
    root = Path(gettempdir()) / f"napari-panoptic-slide-{name}"
    if not root.exists():
        # It is there whole or not at all.
        unfinished = root.with_name(f"{root.name}-{os.getpid()}")
        write_slide(unfinished, scene((height, width), n)).rename(root)
    with window() as viewer:
        desk = desk_of(viewer)
        began = time.perf_counter()
        with read_in_windows():
            desk.show_cohort(open_cohort(root))
        wait(lambda: any(layer.name == "image" for layer in viewer.layers))
        redraw_ms(viewer, lambda _k: None, 1)
        found = [Measured("open to the first picture", [time.perf_counter() - began], "s")]
        settle(desk)
        found += [Measured("evaluated and shown", [time.perf_counter() - began], "s")]
        found += looked_around(viewer, (height, width), mpp=0.25)
        report(f"A slide, {width} x {height} px, {desk.panels.objects.count_text()}", found)
        desk.close()
        settle(desk)


def looked_around(viewer: napari.Viewer, shape: tuple[int, int], mpp: float) -> list[Measured]:
    """Pan by 60 px and jump, with the objects and with the picture alone."""
    camera, rng = viewer.scene.camera, np.random.default_rng(3)
    layers = [layer for layer in viewer.layers if layer.name not in ("image", "failures")]
    found = [Measured("redraw of what is there", redraw_ms(viewer, lambda _k: None, 40))]

    def pan(_number: int) -> None:
        z, y, x = camera.center
        camera.center = (z, y, x + 60 / camera.zoom)

    for zoom in (1.0, 0.3):
        camera.zoom = zoom / mpp
        places = (rng.uniform(0.2, 0.6, (12, 2)) * shape * mpp).tolist()

        def jump(number: int, places: Any = places) -> None:
            camera.center = (0.0, *places[number])

        for title, shown in (("picture and objects", True), ("picture alone", False)):
            for layer in layers:
                layer.visible = shown
            redraw_ms(viewer, jump, 1)
            pans, jumps = redraw_ms(viewer, pan, 40), redraw_ms(viewer, jump, len(places))
            name = f"zoom {zoom:g}, {title}"
            found += [Measured(f"{name}: pan", pans), Measured(f"{name}: jump", jumps)]
        for layer in layers:
            layer.visible = True
    return found


# --- the start ----------------------------------------------------------------------------------

_STARTED = """
import sys, time

def drawn_at(viewer, is_there):
    from qtpy.QtWidgets import QApplication

    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    drawn = []
    canvas.events.draw.connect(lambda _: drawn.append(is_there() and time.time()), position="last")
    canvas.update()
    while not any(drawn):
        QApplication.processEvents()
        time.sleep(0.001)
    print("drawn", next(at for at in drawn if at))
    print("cpu", time.process_time())
"""
_NAPARI = """
import napari
import numpy as np

viewer = napari.Viewer()
if "layers" in sys.argv:
    viewer.add_image(np.zeros((500, 500, 3), np.uint8))
    for _ in range(2):
        viewer.add_labels(np.ones((500, 500), np.uint8))
drawn_at(viewer, lambda: True)
"""
_DESK = """
def watch():
    from napari_panoptic.viewer.desk.nuclei import desk_of

    def is_coloured():
        # Layers are drawn in between, too, while they are being filled.
        desk = desk_of(viewer)
        is_evaluated = desk.session is not None and desk.session.evaluation is not None
        return is_evaluated and not desk.link.scene.is_filling

    viewer = napari.current_viewer()
    drawn_at(viewer, is_coloured)

from napari_panoptic.__main__ import main as command
import napari
napari.run = watch
sys.argv = ["napari-panoptic", "view", sys.argv[1]]
sys.exit(command())
"""


def start(cohort: str = MONUSAC, n: int = 7) -> None:
    """Starts in processes of their own, in turn: empty windows of napari, and our first region."""
    ways = {"empty window": (_NAPARI,), "with an image and two labels layers": (_NAPARI, "layers")}
    ways |= {"first coloured region": (_DESK, cohort)}
    # The first start of each fills caches.
    starts = [{name: started(*way) for name, way in ways.items()} for _ in range(n + 1)][1:]
    found = []
    for name in ways:
        for moment, text in (("drawn", "drawn"), ("cpu", "processors")):
            each, empty = ([one[k][moment] for one in starts] for k in (name, "empty window"))
            found.append(Measured(f"{name}: {text}", each, "s", beside=empty))
    report(f"Starts, {Path(cohort).name}", found)


def started(code: str, *arguments: str) -> dict[str, float]:
    """Start a process; return its moments, in seconds since it was asked for."""
    # Where Python may not keep what it compiled, each start would compile this package again.
    environment = {k: own for k, own in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", _STARTED + code, *arguments]
    began = time.time()
    # How it ends does not matter: the window is still open then.
    done = subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: S603
    words = [line.split() for line in done.stdout.splitlines()]
    moments = {own[0]: float(own[1]) for own in words if len(own) == 2}
    if "drawn" not in moments:
        raise RuntimeError(f"nothing was drawn: {done.stderr[-2000:]}")
    return moments | {"drawn": moments["drawn"] - began}
