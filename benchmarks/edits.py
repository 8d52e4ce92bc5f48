"""Edits in a window: strokes of the brush, and edits of the whole image.

The main thread's processor time, so that other work on the machine does not count.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import MEDIUM, Size, label_near, sizes, write_cohort
from benchmarks.measure import Measured, ms, report, temporary
from benchmarks.windows import opened, redraw, settle, window
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.viewer.desk.nuclei import Desk
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
