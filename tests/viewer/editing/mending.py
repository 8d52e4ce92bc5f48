"""Objects that are mended on a desk in a real window, and what must come back when it is undone."""

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.metrics import METRIC_NAMES
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Side
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.editing.object_actions import Asking
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.state.preferences import PREFERENCES
from tests.viewer.finding import FIRST, canvas_of

MENDING_PARTS = tuple(part for part in PARTS if part in (EditsPresenter, ReviewPresenter))


def begin(desk, wait_until):
    """Show a region without edits in the workspace of the review, with nothing selected."""
    desk.show_workspace("Review")
    desk.link.go_to(FIRST, team="merger")
    wait_until(lambda: desk.is_settled)
    part = desk.presenter(EditsPresenter)
    part.edits.set_on(False)
    part.edits.discard()
    part.mending.asking = Asking.KEEP
    desk.session.select(None)
    desk.link.failures.choose(())
    wait_until(lambda: desk.is_settled)


def without_edits(desk, wait_until):
    """Begin, yield, and go back to the files of all regions."""
    begin(desk, wait_until)
    yield
    PREFERENCES.mends_at_once = False
    part, session = desk.presenter(EditsPresenter), desk.session
    for region in {at.region for at in part.edits.unsaved}:
        desk.link.go_to(region, team="merger")
        wait_until(lambda: desk.is_settled and not session.snapshot.pending)
        part.edits.discard()
    wait_until(lambda: desk.is_settled)
    for _ in range(50):  # verdicts
        desk.link.history.undo()
        wait_until(lambda: desk.is_settled)


def select(desk, side, status, cause=None):
    own = desk.session.evaluation.outcomes.side(side)
    found = own.status == STATUS_CODE[status]
    if cause is not None:
        found &= own.cause == CAUSE_CODE[cause]
    row = int(np.flatnonzero(found)[0])
    desk.session.select_row(side, row)
    return int(own.ids[row])


def press_on_canvas(desk, key, modifier=Qt.KeyboardModifier.NoModifier):
    window = desk.strip.window()
    window.activateWindow()
    QTest.keyClick(canvas_of(desk.viewer), key, modifier)


def state(desk):
    session = desk.session
    pair = session.evaluation.pair
    found = []
    for side in Side:
        labels = pair.side(side)
        names = labels.class_names_of_objects()
        found.append(
            (labels.id_image().tobytes(), dict(zip(labels.ids.tolist(), names, strict=True)))
        )
    area = pair.ambiguous
    return found, None if area is None else area.tobytes(), figures(session.evaluation)


def figures(evaluation):
    return [repr(evaluation.metrics[name]) for name in METRIC_NAMES]


def fresh(desk):
    """Evaluate what is shown from its pixels alone."""
    pair = desk.session.evaluation.pair
    return evaluate(
        LabelPair(pair.reference, pair.prediction, pair.ambiguous, pair.mpp), desk.session.settings
    )


def layer_shows(desk, side):
    layer, values = desk.link.scene.object_layer(side, desk.session.team)
    labels = desk.session.evaluation.pair.side(side)
    return np.array_equal(values.ids(np.asarray(layer.data)), labels.id_image())


def rows_of_review(review):
    """Return the verdicts that are in effect."""
    store = review.reviewing.store
    return (
        []
        if store is None
        else sorted(
            (own.region, own.team, own.side, own.object_id, own.verdict, own.tag, own.note)
            for own in store.verdicts()
        )
    )


def undo(desk, wait_until, *, redo=False):
    """Undo the last step, in whatever region it is; return why not, empty if it was done."""
    problem = desk.link.history.undo(redo=redo)
    wait_until(lambda: desk.is_settled)
    if "Press again" in problem:
        problem = desk.link.history.undo(redo=redo)
        wait_until(lambda: desk.is_settled)
    return problem


def same_area(one, other):
    """Return whether areas have the same pixels; without an area none has."""
    none = np.zeros((1, 1), bool)
    return np.array_equal(
        *np.broadcast_arrays(*(none if at is None else at for at in (one, other)))
    )
