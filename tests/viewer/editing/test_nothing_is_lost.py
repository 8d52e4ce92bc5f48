"""What could cost the user work: undo after other things happened, and edits that nobody notes."""

from collections import Counter
from functools import partial

import numpy as np
import pytest

from napari_panoptic.live import actions
from napari_panoptic.live.autosaves import EditedPart
from napari_panoptic.live.mends import Covered
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Side, Status, Verdict
from napari_panoptic.viewer.editing.ambiguous_shapes import filled
from napari_panoptic.viewer.editing.object_actions import Asking, ObjectAction
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.viewer.editing.mending import (
    MENDING_PARTS,
    figures,
    fresh,
    layer_shows,
    rows_of_review,
    same_area,
    select,
    state,
    undo,
    without_edits,
)
from tests.viewer.finding import FIRST, SECOND

FIRST_TEAM = "merger"

pytestmark = pytest.mark.long

SQUARE = np.array([[1.0, 1.0], [1.0, 9.0], [9.0, 9.0], [9.0, 1.0]])


@pytest.fixture(scope="module")
def shown_parts():
    return MENDING_PARTS


@pytest.fixture
def at_first(fresh_desk, wait_until):
    yield from without_edits(fresh_desk, wait_until)


@pytest.fixture
def part(desk):
    return desk.presenter(EditsPresenter)


@pytest.fixture
def review(desk, wait_until):
    review = desk.presenter(ReviewPresenter)
    review.panel.named.emit("Ada")
    review.panel.goes_on.setChecked(False)
    review.panel.show_mending(True)
    wait_until(lambda: desk.is_settled)
    yield review
    review.panel.named.emit("Ada")
    review.panel.goes_on.setChecked(True)


@pytest.fixture
def settle(desk, wait_until):
    return partial(wait_until, lambda: desk.is_settled)


def give(desk, review, settle, verdict=Verdict.PREDICTION_RIGHT, number=0):
    """Judge the first FN, or a later one, and return its id."""
    own = desk.session.evaluation.outcomes.reference
    row = int(np.flatnonzero(own.status == STATUS_CODE[Status.FN])[number])
    desk.session.select(None)
    desk.session.select_row(Side.REFERENCE, row)
    review.give(verdict)
    settle()
    return int(own.ids[row])


def go(desk, settle, region):
    desk.link.go_to(region, team="merger")
    settle()


# --- all at once -------------------------------------------------------------------------------


class Walk:
    """Does all that can be undone on a desk, in any order."""

    def __init__(self, desk, settle, seed):
        self.desk, self.settle, self.rng = desk, settle, np.random.default_rng(seed)
        self.part, self.review = desk.presenter(EditsPresenter), desk.presenter(ReviewPresenter)
        self.counts = Counter()

    @property
    def outcomes(self):
        return self.desk.session.evaluation.outcomes.side(list(Side)[self.rng.integers(2)])

    def action(self, kind):
        own, n = self.outcomes, int(self.rng.integers(1, 4))
        if kind in (ObjectAction.MERGE, ObjectAction.SPLIT):
            own = self.desk.session.evaluation.outcomes.prediction
            causes = [CAUSE_CODE[Cause.FRAGMENT], CAUSE_CODE[Cause.MERGER]]
            rows = np.flatnonzero(np.isin(own.cause, causes)) if self.rng.integers(3) else ()
            n = 1 if len(rows) else n
        elif kind is ObjectAction.TAKE_CLASS:
            rows = np.flatnonzero(own.status == STATUS_CODE[Status.MISCLASSIFIED])
        else:
            rows = ()
        rows = rows if len(rows) else np.arange(len(own))
        chosen = self.rng.permutation(rows)[:n].tolist()
        return self.part.mending.do(kind, [(own.side, int(own.ids[row])) for row in chosen])

    def verdict(self):
        own = self.outcomes
        rows = np.flatnonzero(own.status != STATUS_CODE[Status.TP])
        if not len(rows):
            return False
        self.desk.session.select(None)
        self.desk.session.select_row(own.side, int(self.rng.choice(rows)))
        self.review.give(list(Verdict)[self.rng.integers(4)])
        return True

    def stroke(self):
        side = list(Side)[self.rng.integers(2)]
        layer, _ = self.desk.link.scene.object_layer(side, self.desk.session.team)
        self.part.edits.activate(side)
        if self.rng.integers(2):
            self.part.edits.start_new_object()
        place = tuple(int(self.rng.integers(5, n - 5)) for n in layer.data.shape)
        label = layer.selected_label if self.rng.integers(3) else 0
        before = self.part.edits.revision
        layer.paint(place, label)
        return self.part.edits.revision > before

    def class_change(self):
        own = self.outcomes
        self.desk.session.select_row(own.side, int(self.rng.integers(len(own))))
        names = self.desk.session.cohort.scheme.names
        before = self.part.edits.revision
        self.part.edits.set_class(str(self.rng.choice(names)))
        return self.part.edits.revision > before

    def step(self, *, with_strokes):
        kinds = [*ObjectAction, "verdict", "verdict"]
        kinds += ["stroke", "stroke", "class"] if with_strokes else []
        kind = kinds[self.rng.integers(len(kinds))]
        match kind:
            case "verdict":
                is_done = self.verdict()
            case "stroke":
                is_done = self.stroke()
            case "class":
                is_done = self.class_change()
            case _:
                is_done = self.action(kind)
        self.counts[str(kind)] += is_done

    def undo(self, *, redo=False):
        self.desk.session.select(None)
        assert undo(self.desk, lambda _done: self.settle(), redo=redo) == ""
        self.counts["redo" if redo else "undo"] += 1

    def check(self):
        self.settle()
        assert figures(self.desk.session.evaluation) == figures(fresh(self.desk))
        assert all(layer_shows(self.desk, side) for side in Side)


@pytest.mark.parametrize("with_strokes", [True, False])
def test_undos_restore_pixels_figures_and_rows_of_the_review(
    desk, part, review, settle, with_strokes, monkeypatch
):
    walk, history = Walk(desk, settle, seed=4), desk.link.history
    monkeypatch.setattr(part.mending, "_ask", lambda _text, options, *_: options.popitem()[1])
    part.mending.asking = Asking.ASK
    places = [(region, team) for region in (FIRST, SECOND) for team in ("merger", "careful")]
    if with_strokes:  # they are forgotten with their layer
        places = places[:1]
        part.edits.set_on(True)
    before = {}
    for region, team in places:
        desk.link.go_to(region, team=team)
        settle()
        before[region, team] = state(desk)
    rows = rows_of_review(review)
    while sum(walk.counts.values()) < 300:
        chance = walk.rng.random()
        if chance < 0.15 and history.may_undo(redo=True):
            walk.undo(redo=True)
        elif chance < 0.4 and history.may_undo():
            walk.undo()
        else:
            walk.step(with_strokes=with_strokes)
        if walk.rng.random() < 0.05:
            region, team = places[walk.rng.integers(len(places))]
            desk.link.go_to(region, team=team)
            walk.check()
    assert len(walk.counts) == (11 if with_strokes else 9)
    assert min(walk.counts.values()) > 1
    assert len(rows_of_review(review)) > 5
    while history.may_undo():
        walk.undo()
    assert rows_of_review(review) == rows
    for region, team in places:
        desk.link.go_to(region, team=team)
        walk.check()
        assert state(desk) == before[region, team]
    assert part.edits.unsaved == ()


# --- ambiguous areas ---------------------------------------------------------------------------


def test_a_marked_area_is_unsaved_until_it_is_undone(desk, part, wait_until):
    select(desk, Side.PREDICTION, Status.FP)
    part.do(ObjectAction.MARK_AMBIGUOUS)
    assert part.edits.unsaved == (EditedPart(FIRST, None),)
    undo(desk, wait_until)
    assert part.edits.unsaved == ()


def test_shapes_take_over_an_area_that_is_marked(desk, part, settle):
    part.shapes.set_on(True)
    settle()
    part.shapes.layer.add(SQUARE, shape_type="polygon")
    select(desk, Side.PREDICTION, Status.FP)
    row = desk.session.selection.row
    part.do(ObjectAction.MARK_AMBIGUOUS)  # a moment after the shape was drawn
    settle()
    marked = desk.session.snapshot.ambiguous.copy()
    assert marked[2:8, 2:8].all()
    assert marked[desk.session.evaluation.pair.prediction.index == row + 1].all()
    part.shapes.layer.add(SQUARE + 20, shape_type="polygon")
    settle()
    assert desk.session.snapshot.ambiguous[marked].all()
    part.shapes.set_on(False)
    settle()


def test_shapes_can_be_undone_beyond_an_area_that_is_marked(desk, part, wait_until, settle):
    part.shapes.set_on(True)
    settle()
    layer, seen = part.shapes.layer, [desk.session.snapshot.ambiguous]
    layer.add(SQUARE, shape_type="polygon")
    settle()
    seen.append(desk.session.snapshot.ambiguous.copy())
    select(desk, Side.PREDICTION, Status.FP)
    part.do(ObjectAction.MARK_AMBIGUOUS)
    settle()
    seen.append(desk.session.snapshot.ambiguous.copy())
    assert (seen[2] & ~seen[1]).any()
    layer.add(SQUARE + 20, shape_type="polygon")
    settle()
    for redo, areas in ((False, seen[::-1]), (True, seen[1:])):
        for area in areas:
            assert undo(desk, wait_until, redo=redo) == ""
            drawn = filled(layer.data, layer.shape_type, desk.session.snapshot.shape)
            assert same_area(drawn, area)
            assert same_area(desk.session.snapshot.ambiguous, area)
    assert part.shapes.layer is layer
    part.shapes.set_on(False)
    settle()


# --- verdicts ----------------------------------------------------------------------------------


def test_a_verdict_is_saved_again_once_in_whatever_region(desk, review, settle, wait_until):
    before, rows = state(desk), rows_of_review(review)
    give(desk, review, settle)
    after, given = state(desk), rows_of_review(review)
    assert undo(desk, wait_until) == ""
    go(desk, settle, SECOND)
    assert desk.link.history.undo(redo=True)  # shows the region, and does no more
    settle()
    assert rows_of_review(review) == rows
    assert undo(desk, wait_until, redo=True) == ""
    assert (state(desk), rows_of_review(review)) == (after, given)
    assert undo(desk, wait_until) == ""
    assert (state(desk), rows_of_review(review)) == (before, rows)
    assert not review.reviewing.may_undo()


def test_tags_that_come_later_are_a_step_of_their_own(desk, review, settle, wait_until):
    before, rows = state(desk), rows_of_review(review)
    give(desk, review, settle, Verdict.ANNOTATION_RIGHT)
    given = rows_of_review(review)
    review.panel.tags.line.setText("faint")
    review.panel.tags.line.entered.emit()
    settle()
    assert "faint" in rows_of_review(review)[-1]
    assert undo(desk, wait_until) == ""
    assert rows_of_review(review) == given
    assert undo(desk, wait_until) == ""
    assert (state(desk), rows_of_review(review)) == (before, rows)


def test_a_withdrawn_verdict_does_not_cost_an_earlier_one(desk, review, settle, wait_until):
    before = state(desk)
    give(desk, review, settle, Verdict.ANNOTATION_RIGHT)
    first = rows_of_review(review)
    give(desk, review, settle, Verdict.ANNOTATION_RIGHT, number=1)
    review.withdraw()
    settle()
    assert rows_of_review(review) == first
    assert undo(desk, wait_until) == ""
    assert rows_of_review(review) == []
    assert not desk.link.history.may_undo()
    assert state(desk) == before


def test_what_another_window_withdrew_is_undone_without_another_verdict(
    desk, review, settle, wait_until
):
    before = state(desk)
    give(desk, review, settle, Verdict.ANNOTATION_RIGHT)
    first = rows_of_review(review)
    give(desk, review, settle, number=1)
    record = review.reviewing.store.verdicts()[-1]
    review.reviewing.store.withdraw(record)
    assert undo(desk, wait_until) == ""
    assert (state(desk), rows_of_review(review)) == (before, first)
    assert undo(desk, wait_until, redo=True) == ""
    assert rows_of_review(review) == first


def test_another_reviewer_undoes_edits_but_no_verdicts(desk, review, settle, wait_until):
    before = state(desk)
    give(desk, review, settle)
    given = rows_of_review(review)
    give(desk, review, settle, Verdict.ANNOTATION_RIGHT)
    review.panel.named.emit("Bob")
    settle()
    assert undo(desk, wait_until) == ""
    assert state(desk) == before
    assert undo(desk, wait_until, redo=True) == ""
    assert rows_of_review(review) == []
    review.panel.named.emit("Ada")
    settle()
    assert rows_of_review(review)[:1] == given
    assert len(rows_of_review(review)) == 2
    for record in review.reviewing.store.verdicts():
        review.reviewing.store.withdraw(record)


def test_what_was_discarded_does_not_come_back_with_a_verdict(
    desk, part, review, settle, wait_until
):
    before = state(desk)
    give(desk, review, settle)
    assert undo(desk, wait_until) == ""
    select(desk, Side.PREDICTION, Status.FP)
    desk.session.apply(actions.delete(desk.session.evaluation, [_selected(desk)]))
    part.edits.discard()
    settle()
    assert undo(desk, wait_until, redo=True) == ""
    assert len(rows_of_review(review)) == 1
    assert state(desk) == before
    assert undo(desk, wait_until) == ""
    assert rows_of_review(review) == []


def test_a_verdict_whose_objects_have_changed_is_withdrawn(desk, part, review, settle, wait_until):
    give(desk, review, settle)
    go(desk, settle, SECOND)
    go(desk, settle, FIRST)
    part.edits.set_on(True, Side.REFERENCE)
    mend = part.mending.done[-1].mend.sides[0]
    layer, _ = desk.link.scene.object_layer(Side.REFERENCE, "merger")
    layer.data_setitem((mend.y, mend.x), layer.selected_label)
    go(desk, settle, SECOND)  # strokes cannot be undone any more
    drawn = desk.session.has_edits(FIRST)
    assert drawn
    assert undo(desk, wait_until) == ""
    assert rows_of_review(review) == []
    assert not desk.link.history.may_undo()
    go(desk, settle, FIRST)
    assert desk.session.evaluation.pair.reference.index[mend.y, mend.x].all()  # what was drawn


def test_a_verdict_that_cannot_be_withdrawn_keeps_what_it_mended(
    desk, review, settle, wait_until, monkeypatch
):
    give(desk, review, settle)
    after, given = state(desk), rows_of_review(review)
    with monkeypatch.context() as broken:
        broken.setattr(type(review.reviewing.store), "take_back", _fail)
        assert "disk" in undo(desk, wait_until)
        assert state(desk) == after
    assert rows_of_review(review) == given
    assert undo(desk, wait_until) == ""
    assert rows_of_review(review) == []


def _fail(*_args):
    from napari_panoptic.review.file import ReviewError

    raise ReviewError("the disk is full")


def _selected(desk):
    return desk.session.selection.side, desk.session.selection.id


# --- the order of steps ------------------------------------------------------------------------


def test_steps_are_undone_in_their_order_after_more_strokes_than_napari_keeps(
    desk, part, settle, wait_until
):
    part.edits.set_on(True, Side.PREDICTION)
    layer, _ = desk.link.scene.object_layer(Side.PREDICTION, desk.session.team)
    layer.brush_size = 1
    for number in range(103):
        layer.paint((3, 3 + number), 1 + number % 2)
    settle()
    states = [state(desk)]
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    settle()
    states.append(state(desk))
    for number in range(3):
        layer.paint((6, 3 + number), 1)
        states.append(state(desk))
    settle()
    for expected in reversed(states[:-1]):
        assert undo(desk, wait_until) == ""
        assert state(desk) == expected
    for expected in states[1:]:
        assert undo(desk, wait_until, redo=True) == ""
        assert state(desk) == expected
    layer.paint((9, 3), 1)
    assert not desk.link.history.may_undo(redo=True)


def test_a_step_whose_objects_were_drawn_over_does_not_block_the_others(
    desk, part, settle, wait_until
):
    select(desk, Side.PREDICTION, Status.FP)
    part.do(ObjectAction.MARK_AMBIGUOUS)
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    settle()
    mend = part.mending.done[-1].mend.sides[0]
    part.edits.set_on(True, Side.REFERENCE)
    layer, _ = desk.link.scene.object_layer(Side.REFERENCE, "merger")
    layer.data_setitem((mend.y, mend.x), layer.selected_label)
    go(desk, settle, SECOND)
    go(desk, settle, FIRST)
    assert desk.session.snapshot.ambiguous.any()
    assert "any more" in undo(desk, wait_until)
    assert undo(desk, wait_until) == ""
    assert desk.session.snapshot.ambiguous is None


def test_a_deleted_layer_keeps_what_was_mended(desk, part, settle, wait_until):
    before = state(desk)
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    settle()
    after = state(desk)
    layer, _ = desk.link.scene.object_layer(Side.REFERENCE, "merger")
    desk.viewer.layers.remove(layer)
    settle()
    assert state(desk) == after
    assert undo(desk, wait_until) == ""
    assert state(desk) == before
    assert all(layer_shows(desk, side) for side in Side)


def test_a_layer_without_room_for_an_id_does_not_undo_what_was_mended(desk, settle):
    session = desk.session
    select(desk, Side.PREDICTION, Status.FP)
    targets, beside = [_selected(desk)], Covered.BESIDE
    mend = actions.accept(session.evaluation, targets, covered=beside, first_id=200_000)
    session.apply(mend)
    assert 200_000 in session.evaluation.outcomes.reference.ids
    after = state(desk)
    layer, _ = desk.link.scene.object_layer(Side.REFERENCE, "merger")
    layer.refresh()
    settle()
    assert 200_000 in session.evaluation.outcomes.reference.ids
    assert state(desk) == after
    assert all(layer_shows(desk, side) for side in Side)
