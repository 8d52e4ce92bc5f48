"""Edits in a window: strokes of the brush, edits of the whole image, and actions on objects.

The main thread's processor time, so that other work on the machine does not count.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from qtpy.QtWidgets import QApplication, QDockWidget

from benchmarks.cases import MEDIUM, Size, label_near, sizes, write_classes, write_cohort
from benchmarks.measure import Measured, ms, report, temporary
from benchmarks.windows import opened, redraw, settle, window
from napari_panoptic.live.mends import Target
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Side, Status
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.editing.object_actions import Asking, ObjectAction
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

Times = dict[str, list[float]]


def watch_of(desk: Desk) -> Any:
    """Switch editing on, and return what watches the layer of the team."""
    edits = desk.presenter(EditsPresenter).edits
    edits.set_on(True)
    return edits._watches[next(side for side in edits._watches if side.value == "prediction")]


def discard(desk: Desk) -> None:
    """Discard all edits."""
    desk.presenter(EditsPresenter).edits.discard()
    settle(desk)


# --- strokes ------------------------------------------------------------------------------------


def strokes(names: str = "ML", n: int = 200) -> None:
    """A dab of the brush, until colours, figures, title and legend are right."""
    for size in sizes(names):
        with temporary() as folder, opened(write_cohort(folder, size)) as (desk, viewer):
            layer = watch_of(desk).layer
            layer.brush_size = 10
            rng = np.random.default_rng(4)
            call, drawn, later, undo = [], [], [], []
            empty = [ms(lambda: redraw(viewer)) for _ in range(20)]
            top = int(np.asarray(layer.data).max())
            for number in range(n + 10):
                y, x = rng.integers(30, size.side - 30, 2)
                label = label_near(layer.data, y, x, number, top)
                call.append(ms(lambda: layer.paint((y, x), label)))  # noqa: B023
                if number % 10 == 0:
                    drawn.append(ms(lambda: redraw(viewer)))
                    later.append(ms(desk.link._follow_edits))
                    undo.append(ms(layer.undo))
                    layer.redo()
            settle(desk)
            found = [
                Measured("stroke to colours and figures", call[10:], limit=12.0),
                Measured("lists and rings, at rest", later[1:]),
                Measured("undo", undo[1:]),
                Measured("redraw after a stroke, beside an empty one", drawn[1:], beside=empty),
            ]
            report(f"A dab of the brush, {size}", found)
            discard(desk)


# --- edits of the whole image -------------------------------------------------------------------


def fills(names: str = "ML", n: int = 2) -> None:
    """Filling the background and erasing all: our share, and napari alone with and without lines.

    "Ours" is what follows each edit: the working copy, figures, colours, title and legend.
    """
    for size in sizes(names):
        with temporary() as folder, opened(write_cohort(folder, size)) as (desk, _viewer):
            redrawn = Measured("ambiguous area redrawn, counted", redrawn_ms(desk, size), limit=50)
            watch = watch_of(desk)
            data, contour = np.asarray(watch.layer.data).copy(), watch.layer.contour
            spent: list[float] = []
            compare = watch._compare
            watch._compare = lambda box: spent.append(ms(lambda: compare(box)))  # noqa: B023
            ours: Times = {}

            def after(name: str, desk: Desk = desk, ours: Times = ours) -> None:
                ours.setdefault(name, []).append(sum(spent))  # noqa: B023
                settle(desk)
                spent.clear()  # noqa: B023

            with_desk = huge_edits(watch.layer, n, after)
            del watch._compare
            discard(desk)
        found = [redrawn]
        alone, areas = plain_edits(data, n, contour), plain_edits(data, n, 0)
        for name, took in with_desk.items():
            limit = 150.0 if size is MEDIUM and name == "fill" else np.inf
            found += [
                Measured(f"{name}: ours", ours[name][1:], limit=limit),
                Measured(f"{name}: with the desk, beside napari", took, beside=alone[name]),
                Measured(f"{name}: napari alone", alone[name]),
                Measured(f"{name}: napari without outlines", areas[name]),
            ]
        report(f"Edits of the whole image, {size}", found)


def huge_edits(layer: Any, n: int, after: Callable[[str], None] = lambda _name: None) -> Times:
    """Fill, undo, redo and erase on a layer, each several times from the same pixels."""
    times: Times = {"fill": [], "undo": [], "redo": [], "erase all": []}
    data = np.asarray(layer.data)
    y, x = np.argwhere(data[:200, :200] == 0)[0]
    objects = np.nonzero(data)
    for _ in range(n + 1):
        for name, edit in (
            ("fill", lambda: layer.fill((y, x), 7)),
            ("undo", layer.undo),
            ("redo", layer.redo),
            ("", layer.undo),
            ("erase all", lambda: layer.data_setitem(objects, 0)),
            ("", layer.undo),
        ):
            times.setdefault(name, []).append(ms(edit))
            after(name)
    return {name: each[1:] for name, each in times.items() if name}


def plain_edits(data: Any, n: int, contour: int) -> Times:
    """Do the same in a viewer without the desk."""
    with window() as viewer:
        layer = viewer.add_labels(data.copy())
        layer.contour = contour
        return huge_edits(layer, n)


def redrawn_ms(desk: Desk, size: Size) -> list[float]:
    """Redraw a rectangle of the ambiguous area; the counting alone."""
    live = EditedPair(desk.session.evaluation.pair)
    rng = np.random.default_rng(5)
    masks = [np.zeros((size.side, size.side), bool)]
    for _ in range(5):
        y, x = rng.integers(0, size.side - 600, 2)
        masks.append(masks[-1].copy())
        masks[-1][y : y + 400, x : x + 600] ^= True
    return [ms(lambda mask=mask: live.set_ambiguous(mask)) for mask in masks[1:]][1:]  # type: ignore[misc]


# --- actions on objects -------------------------------------------------------------------------

PANELS = ("Edits", "Review", "Objects", "Metrics")


def mends(names: str = "ML", n: int = 30, many: int = 500) -> None:
    """Actions on single objects, and on M on many at once, with all panels in sight."""
    for size in sizes(names):
        limits = {1: 12.0, many: 100.0} if size.name == "M" else {1: 40.0}
        with temporary() as folder:
            spoil(write_cohort(folder, size))
            with opened(folder) as (desk, _viewer):
                show_panels(desk)
                desk.presenter(EditsPresenter).mending.asking = Asking.TAKE
                found = []
                for objects, limit in limits.items():
                    for kind in ObjectAction:
                        calls = n if objects == 1 else max(3, n // 4)
                        times = mend_ms(desk, kind, objects, calls)
                        found += [
                            Measured(f"{kind}, {objects}: {name}", each[1:], limit=limit)
                            for name, each in times.items()
                        ]
                report(f"Actions on objects, {size}", found)
                discard(desk)


def spoil(root: Path) -> None:
    """Let some predictions be pieces of an object, and some contain two."""
    places = [root / "reference" / "R_1.tif", root / "teams" / "team" / "R_1.tif"]
    reference, labels = (tifffile.imread(path) for path in places)
    columns = np.indices(labels.shape)[1]
    ids = np.unique(labels[labels > 0]).tolist()
    for one, other in list(pairwise(ids[:40]))[::2]:
        own = labels == one
        labels[labels == other] = 0
        labels[own & (columns > columns[own].mean())] = other
    for own in (labels == id_ for id_ in ids[40:80]):
        found = np.bincount(reference[own]).argmax() if own.any() else 0
        if found:
            part = (reference == found) & (columns > int(columns[own].mean()))
            reference[part] = reference.max() + 1
    for path, image in zip(places, (reference, labels), strict=True):
        tifffile.imwrite(path, image)
        present = np.unique(image[image > 0])
        write_classes(path, present, present % 4)


def show_panels(desk: Desk) -> None:
    """Show the panels beside each other, in windows of their own."""
    docks = desk.strip.window().findChildren(QDockWidget)
    for number, title in enumerate(PANELS):
        dock = next(dock for dock in docks if dock.windowTitle() == title)
        dock.setFloating(True)
        dock.show()
        dock.move(40 + 380 * number, 60)
        dock.resize(370, 700)
    QApplication.processEvents()
    settle(desk)


def targets_of(desk: Desk, kind: ObjectAction) -> list[Target]:
    """Return objects that an action changes something of."""
    outcomes = desk.session.evaluation.outcomes
    reference, prediction = (outcomes.side(side) for side in Side)
    match kind:
        case ObjectAction.MERGE:
            own, rows = prediction, prediction.cause == CAUSE_CODE[Cause.FRAGMENT]
        case ObjectAction.SPLIT:
            own, rows = prediction, prediction.cause == CAUSE_CODE[Cause.MERGER]
        case ObjectAction.TAKE_CLASS:
            own, rows = reference, reference.status == STATUS_CODE[Status.MISCLASSIFIED]
        case _:
            own, rows = reference, reference.partner >= 0
    return [(own.side, int(own.ids[row])) for row in np.flatnonzero(rows)]


def mend_ms(desk: Desk, kind: ObjectAction, n: int, calls: int) -> Times:
    """Do an action, undo and redo it, each time on other objects."""
    part, every = desk.presenter(EditsPresenter), targets_of(desk, kind)
    found: Times = {"do": [], "undo": [], "redo": []}
    rng = np.random.default_rng(2)
    for _ in range(calls + 2):
        chosen = [every[k] for k in rng.permutation(len(every))[:n]]
        side, id_ = chosen[0]
        desk.session.select_row(side, desk.session.evaluation.outcomes.side(side).row_of(id_))
        settle(desk)
        before = len(part.mending.done)
        took = ms(lambda: part.mending.do(kind, chosen))  # noqa: B023
        if len(part.mending.done) == before:
            continue
        found["do"].append(took)
        for name, call in (("undo", part.undo), ("redo", lambda: part.undo(redo=True))):
            settle(desk)
            found[name].append(ms(call))
        settle(desk)
        part.undo()
        settle(desk)
    return found
