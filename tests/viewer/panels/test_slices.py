"""The panel of slices in a real window: what failures have in common, and the way to them."""

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.questions.engines.cohort_objects import common_slices
from napari_panoptic.questions.engines.slice_conditions import slice_words
from napari_panoptic.questions.question import question_kind
from napari_panoptic.questions.slices import slice_sentence
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.question.presenter import NOT_EDITED, STALE, STOPPED
from tests.viewer.finding import bring_to_front, canvas_of

LEFT = Qt.MouseButton.LeftButton
TEAM, BETTER = "merger", "careful"
SLICES = question_kind("slices")
HINT = SLICES.hint


@pytest.fixture(scope="module")
def shown_parts():
    return (ObjectPresenter, FailuresPresenter, presenter_type())


@pytest.fixture(scope="module")
def objects(open_desk):
    """Return the objects of the team that fails more, read apart from the panel."""
    session = open_desk.session
    return question_kind("slices")(team=TEAM, settings=session.protocol).gather(session.cohort)


@pytest.fixture
def part(open_desk, wait_until):
    """Bring the panel to the front by its key, before any search."""
    desk, session = open_desk, open_desk.session
    if session.settings != session.protocol:
        desk.panels.settings.settings_chosen.emit(session.protocol)
    session.set_team(TEAM)
    desk.link.failures.show_only(None)
    desk.show_workspace("Inspect")
    wait_until(lambda: desk.is_settled)
    QTest.keyClick(
        canvas_of(desk.viewer),
        "k",
        Qt.KeyboardModifier.AltModifier,
    )
    part = desk.presenter(presenter_type())
    wait_until(lambda: is_in_sight(part.panel))
    part.panel.inputs["side"].choose(Side.REFERENCE)
    part.panel.inputs["cause"].choose(None)
    part.forget()
    return part


def presenter_type():
    """Return the presenter of the panel."""
    (found,) = (part for part in PARTS if part.title == SLICES.title)
    return found


def search(part, wait_until):
    QTest.mouseClick(part.panel.work.start, LEFT)
    assert part.is_busy
    wait_until(lambda: not part.is_busy)


def click(part, row):
    """Click the sentence of a slice."""
    view = part.panel.sentences
    place = view.visualItemRect(view.item(row)).center()
    QTest.mouseClick(view.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, place)


def shown_covariate(part):
    """Return the covariate of the plot that is shown."""
    curve, *_ = part.panel.plots.menu.choice.arguments
    return curve.covariate


def shown_failures(desk):
    gallery = desk.presenter(FailuresPresenter)
    return {gallery.failures.name(int(row)) for row in gallery.panel.view.items.rows}


def failing_objects(objects, side, rows, statuses):
    """Name the objects of a slice that fail, from the table of all objects."""
    frame = objects.of_side(side).iloc[rows]
    frame = frame[frame["status"].isin(statuses)]
    return {FailureName(TEAM, at.region, side, int(at.id)) for at in frame.itertuples()}


def sentences(found, side, cause=None):
    listed = enumerate(found.slices, start=1)
    return [f"{number}. {slice_sentence(own, side, cause)}" for number, own in listed]


class TestSearch:
    def test_before_a_search_it_says_what_to_do(self, part):
        assert part.panel.headline.text() == HINT
        assert not part.panel.sentences.isVisible()
        assert part.panel.plots.view.plot is None
        assert part.panel.focusProxy() is part.panel.work.start

    @pytest.mark.long
    def test_it_lists_what_stands_out_in_words(self, part, objects, wait_until):
        search(part, wait_until)
        expected = common_slices(objects)
        assert expected.slices
        assert part.panel.sentences.texts() == sentences(expected, Side.REFERENCE)
        assert f"{expected.failures} of {expected.objects}" in part.panel.headline.text()

    @pytest.mark.long
    def test_other_failures_are_searched_by_side_and_cause(self, part, objects, wait_until):
        search(part, wait_until)
        part.panel.inputs["cause"].choose("merged")
        assert part.panel.headline.text() == HINT  # nothing is shown that is of other failures
        search(part, wait_until)
        expected = common_slices(objects, Side.REFERENCE, "merged")
        assert part.panel.sentences.texts() == sentences(expected, Side.REFERENCE, "merged")
        part.panel.inputs["side"].choose(Side.PREDICTION)
        assert part.panel.inputs["cause"].choice is None
        search(part, wait_until)
        expected = common_slices(objects, Side.PREDICTION)
        assert part.panel.sentences.texts() == sentences(expected, Side.PREDICTION)

    @pytest.mark.long
    def test_where_nothing_is_found_it_says_so(self, part, open_desk, wait_until):
        open_desk.session.set_team(BETTER)
        search(part, wait_until)
        assert "nothing stands out" in part.panel.headline.text()
        assert not part.panel.sentences.isVisible()
        assert is_in_sight(part.panel.plots.view)  # rates are shown all the same

    def test_it_can_be_stopped(self, part, wait_until):
        QTest.mouseClick(part.panel.work.start, LEFT)
        QTest.mouseClick(part.panel.work.stop, LEFT)
        wait_until(lambda: not part.is_busy)
        assert part.panel.headline.text() == STOPPED.format(verb="Search")
        assert part.found is None
        assert is_in_sight(part.panel.work.start)


class TestStale:
    @pytest.mark.long
    def test_another_team_takes_the_slices_away(self, part, open_desk, wait_until):
        search(part, wait_until)
        open_desk.session.set_team(BETTER)
        assert part.panel.headline.text() == STALE.format(verb="Search")
        assert part.found is None
        assert not part.panel.sentences.isVisible()

    @pytest.mark.long
    def test_other_settings_take_the_slices_away(self, part, open_desk, wait_until):
        search(part, wait_until)
        settings = open_desk.session.settings
        open_desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.6))
        assert part.panel.headline.text() == STALE.format(verb="Search")
        wait_until(lambda: open_desk.is_settled)
        assert part.found is None

    @pytest.mark.long
    def test_a_search_of_another_team_never_arrives(self, part, open_desk, wait_until):
        QTest.mouseClick(part.panel.work.start, LEFT)
        open_desk.session.set_team(BETTER)
        assert not part.is_busy
        search(part, wait_until)
        assert part.found.asked.question.team == BETTER

    @pytest.mark.long
    def test_with_unsaved_edits_it_says_that_they_are_not_included(
        self, part, open_desk, wait_until
    ):
        session = open_desk.session
        search(part, wait_until)
        assert NOT_EDITED not in part.panel.note.text()
        own = session.known_ids(Side.PREDICTION)[0]
        y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == own)
        try:
            session.edit(Side.PREDICTION, y, x, 0)
            wait_until(lambda: open_desk.is_settled)
            assert NOT_EDITED in part.panel.note.text()
        finally:
            session.discard_edits()
        wait_until(lambda: open_desk.is_settled)
        assert NOT_EDITED not in part.panel.note.text()


class TestCard:
    @pytest.fixture
    def card(self, part, open_desk, wait_until):
        """Search the FP, and go to one of the first slice; its card has the reason."""
        desk, session = open_desk, open_desk.session
        panel = desk.presenter(ObjectPresenter).panel
        bring_to_front(panel)
        part.panel.inputs["side"].choose(Side.PREDICTION)
        search(part, wait_until)
        (table,) = part.answer.tables
        name = min(table.objects(0).names, key=lambda name: (name.region, name.id))
        desk.link.go_to(name.region, name.side, name.id)
        wait_until(lambda: desk.is_settled and session.selection is not None)
        wait_until(lambda: is_in_sight(panel.reason))
        yield panel
        session.select(None)

    def test_it_says_why_this_one_failed_while_the_slices_hold(
        self, card, part, open_desk, wait_until
    ):
        session = open_desk.session
        selection, region = session.selection, session.snapshot.region.name
        name = FailureName(TEAM, region, selection.side, selection.id)
        reason = part.answer.reason(name)
        assert card.reason.text() == reason.sentence
        assert card.reason.toolTip() == reason.tooltip
        right = session.evaluation.outcomes.prediction.status == STATUS_CODE[Status.TP]
        session.select_row(Side.PREDICTION, int(np.flatnonzero(right)[0]))
        assert not card.reason.isVisible()  # it did not fail
        session.select(selection)
        assert card.reason.isVisible()
        part.panel.inputs["cause"].choose("spurious")
        assert not card.reason.isVisible()  # the slices are of other failures
        part.panel.inputs["cause"].choose(None)
        assert card.reason.isVisible()  # the slices hold again
        search(part, wait_until)
        assert card.reason.text() == reason.sentence
        settings = session.settings.replaced(iou_threshold=0.6)
        open_desk.panels.settings.settings_chosen.emit(settings)
        assert not card.reason.isVisible()
        wait_until(lambda: open_desk.is_settled)
        assert card.card is not None
        assert not card.reason.isVisible()

    def test_an_edited_region_has_no_reasons(self, card, open_desk, wait_until):
        session = open_desk.session
        selection = session.selection
        own = next(id_ for id_ in session.known_ids(Side.PREDICTION) if id_ != selection.id)
        y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == own)
        try:
            session.edit(Side.PREDICTION, y, x, 0)
            wait_until(lambda: open_desk.is_settled)
            assert session.selection.id == selection.id
            assert not card.reason.isVisible()
        finally:
            session.discard_edits()
        wait_until(lambda: open_desk.is_settled)
        assert card.reason.isVisible()

    def test_a_threshold_of_scores_takes_the_reason_away(self, card, open_desk, wait_until):
        session = open_desk.session
        session.set_threshold(0.5)
        wait_until(lambda: open_desk.is_settled)
        assert card.card is not None
        assert not card.reason.isVisible()
        session.set_threshold(None)
        wait_until(lambda: open_desk.is_settled)
        assert card.reason.isVisible()

    def test_another_team_has_no_reasons_of_this_one(self, card, open_desk, wait_until):
        session = open_desk.session
        session.set_team(BETTER)
        wait_until(lambda: open_desk.is_settled)
        session.select_row(Side.PREDICTION, 0)
        assert card.card is not None
        assert not card.reason.isVisible()


class TestLinks:
    @pytest.mark.parametrize(
        ("side", "statuses"),
        [(Side.REFERENCE, ("FN", "misclassified")), (Side.PREDICTION, ("FP",))],
    )
    def test_a_click_shows_exactly_its_failures_in_the_gallery(
        self, part, open_desk, objects, wait_until, side, statuses
    ):
        part.panel.inputs["side"].choose(side)
        search(part, wait_until)
        own = common_slices(objects, side).slices[0]
        click(part, 0)
        gallery = open_desk.presenter(FailuresPresenter)
        wait_until(lambda: is_in_sight(gallery.panel) and len(shown_failures(open_desk)))
        expected = failing_objects(objects, side, own.rows, statuses)
        assert len(expected) == own.failures
        assert shown_failures(open_desk) == expected
        words = slice_words(own.conditions, side)
        title = f"{' and '.join(statuses)} of {TEAM} · {words} · {own.failures} objects"
        assert gallery.panel.chosen.text() == title

    @pytest.mark.long
    def test_enter_opens_the_slice_that_the_arrows_went_to(
        self, part, open_desk, objects, wait_until
    ):
        part.panel.inputs["side"].choose(Side.PREDICTION)
        search(part, wait_until)
        (table,) = part.answer.tables
        first, second, *_ = common_slices(objects, Side.PREDICTION).slices
        view = part.panel.sentences
        assert part.panel.focusProxy() is view
        assert shown_covariate(part) == first.conditions[0].covariate
        QTest.keyClick(view, Qt.Key.Key_Down)
        assert shown_covariate(part) == second.conditions[0].covariate
        QTest.keyClick(view, Qt.Key.Key_Return)
        wait_until(lambda: len(shown_failures(open_desk)) == second.failures)
        assert shown_failures(open_desk) == table.objects(1).names

    @pytest.mark.long
    def test_the_plot_is_of_the_chosen_covariate(self, part, objects, wait_until):
        search(part, wait_until)
        part.panel.plots.choose("failure rate over solidity")
        wait_until(lambda: not part.is_busy)
        plot = part.panel.plots.view.plot
        (axes,) = plot.figure.axes
        assert axes.get_xlabel() == "solidity"
        (points,) = plot.points.values()
        curve = common_slices(objects).curves["solidity"]
        assert [point.y for point in points] == pytest.approx(curve.rate.tolist())
