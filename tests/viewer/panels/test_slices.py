"""The panel of slices in a real window: what failures have in common, and the way to them."""

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.engines.cohort_objects import cohort_objects, common_slices
from napari_panoptic.questions.engines.slice_conditions import slice_words
from napari_panoptic.report.nuclei.slices import slice_sentence
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.parts import PARTS
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.presenter import FailuresPresenter
from napari_panoptic.viewer.panels.slices.panel import HINT, NOT_EDITED, STALE, STOPPED
from napari_panoptic.viewer.panels.slices.presenter import SlicesPresenter

LEFT = Qt.MouseButton.LeftButton
TEAM, BETTER = "merger", "careful"


@pytest.fixture(scope="module")
def shown_parts():
    return tuple(part for part in PARTS if part in (FailuresPresenter, SlicesPresenter))


@pytest.fixture(scope="module")
def objects(open_desk):
    """Return the objects of the team that fails more, read apart from the panel."""
    session = open_desk.session
    return cohort_objects(session.cohort, [TEAM], session.protocol)[TEAM]


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
        desk.link.scene._viewer.window._qt_viewer.canvas.native,
        "k",
        Qt.KeyboardModifier.AltModifier,
    )
    part = desk.presenter(SlicesPresenter)
    wait_until(lambda: is_in_sight(part.panel))
    part.panel.side.choose(Side.REFERENCE)
    part.panel.cause.choose(None)
    part.refresh()
    return part


def search(part, wait_until):
    QTest.mouseClick(part.panel.search, LEFT)
    assert part.is_busy
    wait_until(lambda: not part.is_busy)


def click(part, row):
    """Click the sentence of a slice."""
    view = part.panel.list
    place = view.visualItemRect(view.item(row)).center()
    QTest.mouseClick(view.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, place)


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
        assert not part.panel.list.isVisible()
        assert part.panel.plot.plot is None
        assert part.panel.focusProxy() is part.panel.search

    @pytest.mark.long
    def test_it_lists_what_stands_out_in_words(self, part, objects, wait_until):
        search(part, wait_until)
        expected = common_slices(objects)
        assert expected.slices
        assert part.panel.list.texts() == sentences(expected, Side.REFERENCE)
        assert f"{expected.failures} of {expected.objects}" in part.panel.headline.text()

    @pytest.mark.long
    def test_other_failures_are_searched_by_side_and_cause(self, part, objects, wait_until):
        search(part, wait_until)
        part.panel.cause.choose("merged")
        assert part.panel.headline.text() == HINT  # nothing is shown that is of other failures
        search(part, wait_until)
        expected = common_slices(objects, Side.REFERENCE, "merged")
        assert part.panel.list.texts() == sentences(expected, Side.REFERENCE, "merged")
        part.panel.side.choose(Side.PREDICTION)
        assert part.panel.cause.choice is None
        search(part, wait_until)
        expected = common_slices(objects, Side.PREDICTION)
        assert part.panel.list.texts() == sentences(expected, Side.PREDICTION)

    @pytest.mark.long
    def test_where_nothing_is_found_it_says_so(self, part, open_desk, wait_until):
        open_desk.session.set_team(BETTER)
        search(part, wait_until)
        assert "Nothing stands out" in part.panel.headline.text()
        assert not part.panel.list.isVisible()
        assert is_in_sight(part.panel.plot)  # rates are shown all the same

    def test_it_can_be_stopped(self, part, wait_until):
        QTest.mouseClick(part.panel.search, LEFT)
        QTest.mouseClick(part.panel.stop, LEFT)
        wait_until(lambda: not part.is_busy)
        assert part.panel.headline.text() == STOPPED
        assert part.slices is None
        assert is_in_sight(part.panel.search)


class TestStale:
    @pytest.mark.long
    def test_another_team_takes_the_slices_away(self, part, open_desk, wait_until):
        search(part, wait_until)
        open_desk.session.set_team(BETTER)
        assert part.panel.headline.text() == STALE
        assert part.slices is None
        assert not part.panel.list.isVisible()

    @pytest.mark.long
    def test_other_settings_take_the_slices_away(self, part, open_desk, wait_until):
        search(part, wait_until)
        settings = open_desk.session.settings
        open_desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.6))
        assert part.panel.headline.text() == STALE
        wait_until(lambda: open_desk.is_settled)
        assert part.slices is None

    @pytest.mark.long
    def test_a_search_of_another_team_never_arrives(self, part, open_desk, wait_until):
        QTest.mouseClick(part.panel.search, LEFT)
        open_desk.session.set_team(BETTER)
        assert not part.is_busy
        search(part, wait_until)
        assert part.slices.request.team == BETTER

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


class TestLinks:
    @pytest.mark.parametrize(
        ("side", "statuses"),
        [(Side.REFERENCE, ("FN", "misclassified")), (Side.PREDICTION, ("FP",))],
    )
    def test_a_click_shows_exactly_its_failures_in_the_gallery(
        self, part, open_desk, objects, wait_until, side, statuses
    ):
        part.panel.side.choose(side)
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
    def test_enter_opens_the_slice_that_the_arrows_went_to(self, part, open_desk, wait_until):
        part.panel.side.choose(Side.PREDICTION)
        search(part, wait_until)
        first, second, *_ = part.slices.found.slices
        view = part.panel.list
        assert part.panel.focusProxy() is view
        assert part.panel.covariate.choice == first.conditions[0].covariate
        QTest.keyClick(view, Qt.Key.Key_Down)
        assert part.panel.covariate.choice == second.conditions[0].covariate
        QTest.keyClick(view, Qt.Key.Key_Return)
        wait_until(lambda: len(shown_failures(open_desk)) == second.failures)
        assert shown_failures(open_desk) == set(part.slices.failures_of(second))

    @pytest.mark.long
    def test_the_plot_is_of_the_chosen_covariate(self, part, wait_until):
        search(part, wait_until)
        part.panel.covariate.choose("solidity")
        wait_until(lambda: not part.is_busy)
        (axes,) = part.panel.plot.plot.figure.axes
        assert axes.get_xlabel() == "solidity"
        (points,) = part.panel.plot.plot.points.values()
        curve = part.slices.found.curves["solidity"]
        assert [point.y for point in points] == pytest.approx(curve.rate.tolist())
