"""Measure how long a stroke of the brush takes on the desk.

Needs a display: ``xvfb-run -a python -m benchmarks.strokes`` where there is none.
Each stroke is one dab of the brush on the layer of the team, with everything that
follows before the interface is free again: the working copy, figures, colours,
title and legend. Main-thread processor time, so that other work on the machine
does not count; the redraw of the canvas is measured apart, beside an empty one.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import napari
import numpy as np
import tifffile

from benchmarks.cases import CLASSES, LARGE, MEDIUM, Size, label_pair
from benchmarks.windows import opened, settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

STROKES = 200
LIMIT_MS = 12.0
TEAM = "team"


def write_cohort(root: Path, size: Size) -> Path:
    """Write a cohort of one region, as label images with tables of classes."""
    reference, prediction = label_pair(size)
    rng = np.random.default_rng(3)
    (root / "cohort.toml").write_text(_DESCRIPTION, encoding="utf-8")
    for folder, labels in (("reference", reference), (f"teams/{TEAM}", prediction)):
        place = root / folder
        place.mkdir(parents=True)
        tifffile.imwrite(place / "R_1.tif", labels.astype(np.uint16))
        ids = np.unique(labels[labels > 0])
        lines = [
            f"{id_},{CLASSES[k]}" for id_, k in zip(ids, rng.integers(0, 4, len(ids)), strict=True)
        ]
        (place / "R_1.csv").write_text("\n".join(["id,class", *lines]), encoding="utf-8")
    image = np.full((size.side, size.side, 3), 220, np.uint8)
    image[prediction > 0] = (150, 100, 160)
    (root / "images").mkdir()
    tifffile.imwrite(root / "images" / "R_1.tif", image, photometric="rgb", tile=(256, 256))
    return root


def strokes(desk: Desk, viewer: napari.Viewer, size: Size) -> list[tuple[str, list[float]]]:
    """Dab the brush all over the region, half of it with new objects."""
    edits = desk.presenter(EditsPresenter).edits
    edits.set_on(True)
    layer: Any = edits._watches[next(s for s in edits._watches if s.value == "prediction")].layer
    layer.brush_size = 10
    canvas = viewer.window._qt_viewer.canvas
    rng = np.random.default_rng(4)
    call, wall, redraw, later, undo = [], [], [], [], []
    empty = [_timed(lambda: canvas._scene_canvas.render()) for _ in range(20)]
    top = int(np.asarray(layer.data).max())
    for number in range(STROKES + 10):
        y, x = rng.integers(30, size.side - 30, 2)
        near = np.asarray(layer.data)[y - 25 : y + 25, x - 25 : x + 25]
        found = near[near > 0]
        label = int(found[0]) if number % 3 and len(found) else (0 if number % 2 else top + number)
        start, began = time.thread_time(), time.perf_counter()
        layer.paint((y, x), label)
        call.append(1000 * (time.thread_time() - start))
        wall.append(1000 * (time.perf_counter() - began))
        if number % 10 == 0:
            redraw.append(_timed(lambda: canvas._scene_canvas.render()))
            later.append(_timed(lambda: settle_edit(desk)))
            undo.append(_timed(layer.undo))
            layer.redo()
    settle(desk)
    return [
        ("stroke to colours and figures", call[10:]),
        ("the same, by the clock", wall[10:]),
        ("lists and rings, at rest", later[1:]),
        ("undo", undo[1:]),
        ("redraw after a stroke", redraw[1:]),
        ("empty redraw", empty[1:]),
    ]


def settle_edit(desk: Desk) -> None:
    """Do at once what follows an edit later."""
    if desk.link is not None:
        desk.link._follow_edits()


def _timed(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return 1000 * (time.thread_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest image out")
    options = parser.parse_args()
    for size in (MEDIUM,) if options.quick else (MEDIUM, LARGE):
        with TemporaryDirectory() as folder:
            cohort = open_cohort(write_cohort(Path(folder), size))
            with opened(cohort) as (desk, viewer):
                print(f"\n{size.name}: {size.side} x {size.side} px, {size.objects} objects: ms")
                limits = {"stroke to colours and figures": LIMIT_MS}
                for name, times in strokes(desk, viewer, size):
                    limit = limits.get(name)
                    above = "" if limit is None or median(times) <= limit else f"  above {limit:g}"
                    p95 = quantiles(times, n=20)[-1]
                    print(f"  {name:36} median {median(times):7.1f}   p95 {p95:7.1f}{above}")
                edits = desk.presenter(EditsPresenter).edits
                edits.discard()
                settle(desk)


_DESCRIPTION = """
[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
image = "images/{region}.tif"
reference.labels = "reference/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""

if __name__ == "__main__":
    main()
