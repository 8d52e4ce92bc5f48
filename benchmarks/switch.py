"""Measure how long another region takes, and what the desk's layers cost per frame.

Needs a display: ``xvfb-run -a python -m benchmarks.switch [COHORT]`` where there is
none; without a cohort, generated ones of 1500 and 8192 px are used. A switch is
a region chosen as a click does; the clock runs until colours, figures and lists of
the team that is looked at have been drawn, and until all teams are there. A frame
is one redraw of the canvas after the camera moved, with all of the desk's layers
and with the image alone.
"""

import argparse
import shutil
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import napari

from benchmarks.cases import LARGE, MEDIUM
from benchmarks.sliders import write_colour_coded_cohort
from benchmarks.windows import answer_ms, opened
from napari_panoptic.io.cohort import open_cohort
from napari_panoptic.viewer.widgets.desk import Desk

ROUNDS = 3
FRAMES = 60


def switches(desk: Desk) -> tuple[list[float], list[float]]:
    """Go through all regions; gives ms to the team that is looked at, and to all."""
    session = desk.session
    if session is None:
        raise RuntimeError("the desk shows no cohort")
    names = [region.name for region in session.cohort.regions]
    choose = desk.panels.navigator.region_chosen.emit
    times = [answer_ms(desk, lambda name=name: choose(name)) for name in names * ROUNDS]  # type: ignore[misc]
    first, every = zip(*times[len(names) :], strict=True)
    return list(first), list(every)


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
        first, every = switches(desk)
        with_layers = frame_ms(viewer)
        for layer in viewer.layers:
            layer.visible = layer.name == "image"
        alone = frame_ms(viewer)
    print(
        f"{title}: switch {median(first):.0f} ms (slowest {max(first):.0f}), "
        f"all teams {median(every):.0f} ms; frame {with_layers:.1f} ms, image alone {alone:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", nargs="?", type=Path)
    options = parser.parse_args()
    if options.cohort is not None:
        measure(options.cohort, options.cohort.name)
        return
    for size in (MEDIUM, LARGE):
        with TemporaryDirectory() as folder:
            root = write_colour_coded_cohort(Path(folder), size)
            for path in [*root.rglob("R_1.*")]:
                shutil.copy(path, path.with_stem("R_2"))
            measure(root, f"{size.name}, {size.side} px, four teams")


if __name__ == "__main__":
    main()
