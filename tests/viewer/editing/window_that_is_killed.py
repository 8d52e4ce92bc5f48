"""A window in a process of its own in which something is drawn and that never ends by itself.

With a file as second argument, objects are mended and judged instead; their state goes there.
"""

import os
import sys
import traceback
from pathlib import Path

import napari
import numpy as np
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QApplication

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.values.vocabulary import Side, Status, Verdict
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.editing.object_actions import Asking
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.support.waiting import wait_until
from tests.viewer.editing.mending import begin, press_on_canvas, select


def main() -> None:
    viewer = napari.Viewer()
    desk = desk_of(viewer)
    desk.show_cohort(open_cohort(Path(sys.argv[1])))
    part = desk.presenter(EditsPresenter)
    steps = iter(mend_and_wait(desk, part) if sys.argv[2:] else draw_and_wait(desk, part))
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


def mend_and_wait(desk, part):
    """Mend by keys and by verdicts; a last verdict comes when all else is autosaved."""
    while not desk.is_settled:
        yield
    begin(desk, until_settled)
    review = desk.presenter(ReviewPresenter)
    review.panel.named.emit("Ada")
    review.panel.show_mending(True)
    review.panel.goes_on.setChecked(False)
    part.mending.asking = Asking.TAKE
    keys = {
        Qt.Key.Key_D: (Side.REFERENCE, Status.FN),
        Qt.Key.Key_A: (Side.PREDICTION, Status.TP),
        Qt.Key.Key_R: (Side.PREDICTION, Status.FP),
        Qt.Key.Key_2: (Side.REFERENCE, Status.FN),
    }
    for key, (side, status) in keys.items():
        desk.session.select(None)
        select(desk, side, status)
        until_settled(lambda: desk.is_settled)  # keys apply to what was painted
        press_on_canvas(desk, key)
        until_settled(lambda: desk.is_settled)
        yield
    assert len(part.mending.done) == len(keys)
    while not desk.is_settled or part.autosaver.is_busy:
        yield
    pair = desk.session.evaluation.pair
    names = pair.reference.class_names_of_objects().astype(str)
    np.savez(
        sys.argv[2],
        ids=pair.reference.id_image(),
        known=pair.reference.ids,
        names=names,
        area=pair.ambiguous,
    )
    desk.session.select(None)
    select(desk, Side.REFERENCE, Status.FN)
    until_settled(lambda: not desk.link.painting.is_due)
    review.give(Verdict.PREDICTION_RIGHT)
    print("autosaved", flush=True)  # noqa: T201
    while True:
        yield


def until_settled(is_so):
    wait_until(is_so, meanwhile=QApplication.processEvents)


if __name__ == "__main__":
    main()
