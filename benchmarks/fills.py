"""Measure how long huge edits hold up the interface, beside what napari itself needs for them.

Needs a display: ``xvfb-run -a python -m benchmarks.fills`` where there is none.
The background of a team's layer is filled with one label, that is undone and done
again, and all objects are erased at once. *Ours* is what follows each edit on the
main thread: finding what changed, the working copy, figures, colours, title and
legend. The same is done on a plain labels layer with the same pixels and outlines,
in a viewer without the desk; *areas* is that layer without outlines. The ambiguous
area is redrawn in one place.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import napari
import numpy as np

from benchmarks.cases import LARGE, MEDIUM, Size
from benchmarks.strokes import write_cohort
from benchmarks.windows import settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

REPEATS = 2
FILL_LIMIT_MS = 150.0
AMBIGUOUS_LIMIT_MS = 50.0
Times = dict[str, list[float]]


def huge_edits(layer: Any, after: Callable[[str], None]) -> Times:
    """Fill, undo, redo and erase on a layer, each several times from the same pixels."""
    times: Times = {"fill": [], "undo": [], "redo": [], "erase all": []}
    data = np.asarray(layer.data)
    y, x = np.argwhere(data[:200, :200] == 0)[0]
    objects = np.nonzero(data)
    for _ in range(REPEATS + 1):
        for name, edit in (
            ("fill", lambda: layer.fill((y, x), 7)),
            ("undo", layer.undo),
            ("redo", layer.redo),
            ("", layer.undo),
            ("erase all", lambda: layer.data_setitem(objects, 0)),
            ("", layer.undo),
        ):
            took = _timed(edit)
            after(name)
            if name:
                times[name].append(took)
    return {name: all_of_it[1:] for name, all_of_it in times.items()}


def edits_with_desk(desk: Desk, watch: Any) -> tuple[Times, Times]:
    """Do that on a layer of the desk; also tell what of the time follows the edits."""
    ours: Times = {"fill": [], "undo": [], "redo": [], "erase all": []}
    spent: list[float] = []
    compare = watch._compare
    watch._compare = lambda box: spent.append(_timed(lambda: compare(box)))

    def after(name: str) -> None:
        if name:
            ours[name].append(sum(spent))
        settle(desk)
        spent.clear()

    times = huge_edits(watch.layer, after)
    del watch._compare
    return times, {name: all_of_it[1:] for name, all_of_it in ours.items()}


def plain_edits(data: Any, *, contour: int) -> Times:
    """Do the same in a viewer without the desk."""
    viewer = napari.Viewer()
    viewer.window.resize(1600, 1000)
    layer = viewer.add_labels(data.copy())
    layer.contour = contour
    times = huge_edits(layer, lambda _: None)
    viewer.close()
    return times


def ambiguous(desk: Desk, size: Size) -> list[float]:
    """Redraw a rectangle of the ambiguous area; the counting alone."""
    evaluation = desk.session.evaluation if desk.session is not None else None
    if evaluation is None:
        return []
    live = EditedPair(evaluation.pair)
    rng = np.random.default_rng(5)
    mask, times = np.zeros((size.side, size.side), bool), []
    for _ in range(REPEATS + 3):
        y, x = rng.integers(0, size.side - 600, 2)
        mask = mask.copy()
        mask[y : y + 400, x : x + 600] ^= True
        redrawn = mask
        times.append(_timed(lambda: live.set_ambiguous(redrawn)))  # noqa: B023 - called at once
    return times[1:]


def _timed(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return 1000 * (time.thread_time() - start)


def measure(size: Size, folder: Path) -> None:
    viewer = napari.Viewer()
    viewer.window.resize(1600, 1000)
    desk = desk_of(viewer)
    desk.show_cohort(open_cohort(write_cohort(folder, size)))
    settle(desk)
    times = ambiguous(desk, size)
    print(f"\n{size.name}: {size.side} x {size.side} px, {size.objects} objects: ms")
    print(f"  ambiguous area redrawn, counted {median(times):7.0f}   limit {AMBIGUOUS_LIMIT_MS:g}")
    edits = desk.presenter(EditsPresenter).edits
    edits.set_on(True)
    watch: Any = edits._watches[next(s for s in edits._watches if s.value == "prediction")]
    data, contour = np.asarray(watch.layer.data).copy(), watch.layer.contour
    with_desk, ours = edits_with_desk(desk, watch)
    edits.discard()
    settle(desk)
    desk.close()
    settle(desk)
    viewer.close()
    alone, areas = plain_edits(data, contour=contour), plain_edits(data, contour=0)
    for name, took in with_desk.items():
        limit = f"   limit {FILL_LIMIT_MS:g}" if size is MEDIUM and name == "fill" else ""
        print(
            f"  {name:10} with the desk {median(took):7.0f}   napari alone "
            f"{median(alone[name]):7.0f}   areas alone {median(areas[name]):7.0f}   "
            f"ours {median(ours[name]):7.0f}{limit}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest image out")
    options = parser.parse_args()
    for size in (MEDIUM,) if options.quick else (MEDIUM, LARGE):
        with TemporaryDirectory() as folder:
            measure(size, Path(folder))


if __name__ == "__main__":
    main()
