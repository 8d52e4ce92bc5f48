"""A window in a process of its own in which something is drawn and that never ends by itself."""

import os
import sys
import traceback
from pathlib import Path

import napari
import numpy as np
from qtpy.QtCore import QTimer

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter


def main() -> None:
    viewer = napari.Viewer()
    desk = desk_of(viewer)
    desk.show_cohort(open_cohort(Path(sys.argv[1])))
    part = desk.presenter(EditsPresenter)
    steps = iter(draw_and_wait(desk, part))
    timer = QTimer()
    timer.timeout.connect(lambda: step(steps))
    timer.start(20)
    napari.run()


def step(steps):
    """Go on; an error ends the process, or its parent would wait for ever: napari shows it only."""
    try:
        next(steps)
    except BaseException:  # noqa: BLE001 - whatever it is
        traceback.print_exc()
        os._exit(1)


def draw_and_wait(desk, part):
    while not desk.is_settled:
        yield
    part.edits.set_on(True)
    for side in Side:
        layer, _ = desk.link.scene.object_layer(side, desk.session.team)
        layer.data_setitem(np.nonzero(np.asarray(layer.data) == 1), 0)
        layer.data_setitem((np.arange(5, 15), np.arange(5, 15)), layer.data.max() + 1)
    area = np.zeros(desk.session.snapshot.shape, bool)
    area[:20, :30] = True
    part.edits.set_ambiguous(area)
    while not desk.is_settled or part.autosaver.is_busy:
        yield
    print("autosaved", flush=True)  # noqa: T201
    while True:
        yield


if __name__ == "__main__":
    main()
