"""The card of the selected object, alone and on a desk."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtGui import QGuiApplication
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QLabel

from napari_panoptic.display.describe import object_facts
from napari_panoptic.display.explanation import Named, explain
from napari_panoptic.questions.answer import Reason
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.object_card import EMPTY, Card, ObjectCard, ObjectPresenter
from napari_panoptic.viewer.panels.teams import TeamsPresenter
from tests.support.small_pairs import four_fates
from tests.viewer.finding import bring_to_front, handle_events, row_of_status, shown_text

R, P = Side.REFERENCE, Side.PREDICTION


def card_of(side, row, **more):
    evaluation = four_fates()
    labels = evaluation.pair.reference if side is R else evaluation.pair.prediction
    facts = object_facts(labels, evaluation.outcomes, side, row, side_name=str(side))
    return Card(facts, explain(evaluation, side, row), **more)


@pytest.fixture(scope="module")
def shown_parts():
    """Show the panel of the object, and one that stands in another workspace."""
    return (ObjectPresenter, TeamsPresenter)


class TestCard:
    @pytest.fixture
    def panel(self, qtbot):
        panel = ObjectCard()
        qtbot.addWidget(panel)
        panel.resize(300, 500)
        panel.show()
        return panel

    def test_without_an_object_it_says_how_to_select_one(self, panel):
        assert shown_text(panel.hint).startswith(EMPTY)
        assert "next failure" in shown_text(panel.hint)
        panel.show_card(card_of(R, 0))
        assert shown_text(panel.hint) == ""
        panel.show_card(None)
        assert shown_text(panel.hint).startswith(EMPTY)

    def test_all_of_it_is_copied_as_text(self, panel):
        panel.show_card(card_of(R, 1, partner=Named(P, 1, 22), verdict="both wrong"))
        panel.copy_button.click()
        assert QGuiApplication.clipboard().text().splitlines() == [
            "Misclassified: reference 12 · Round",
            "It matches prediction 22, but the prediction class is Long.",
            "Id: 12",
            "Class: Round",
            "Partner: prediction 22",
            "Partner class: Long",
            "IoU: 0.900",
            "Hausdorff: 1.0\u2009px (0.5\u2009µm)",
            "Area: 100\u2009px (25.0\u2009µm²)",
            "Centroid: y 8.5, x 28.5\u2009px",
            "Verdict: both wrong",
        ]

    def test_why_it_failed_is_said_if_that_is_known(self, panel):
        panel.show_card(card_of(R, 2))
        assert not panel.reason.isVisible()
        reason = Reason("Small <b>: 62 % of such nuclei are FP, 18 % of all others.", "31 of 50")
        panel.show_card(card_of(R, 2, reason=reason))
        assert panel.reason.isVisible()
        assert panel.reason.textFormat() == Qt.TextFormat.PlainText
        assert panel.reason.toolTip() == "31 of 50"
        panel.copy_button.click()
        assert QGuiApplication.clipboard().text().splitlines()[2] == reason.sentence

    def test_figures_keep_number_and_unit_in_one_line(self, panel):
        panel.resize(200, 500)
        panel.show_card(card_of(R, 1))
        texts = [shown_text(label) for label in panel.findChildren(QLabel)]
        assert any("100\u202fpx\u00a0(25.0\u202fµm²)" in text for text in texts)

    def test_the_way_to_copy_it_is_in_sight_in_a_low_panel(self, panel):
        panel.resize(400, 180)
        panel.show_card(card_of(R, 1, partner=Named(P, 1, 22), verdict="both wrong"))
        handle_events()
        button = panel.copy_button
        assert button.mapTo(panel, button.rect().bottomLeft()).y() < panel.height()

    def test_text_can_be_selected(self, panel):
        panel.show_card(card_of(P, 2))
        labels = [label for label in panel.findChildren(QLabel) if "Spurious" in label.text()]
        flags = [label.textInteractionFlags() for label in labels]
        assert flags
        assert all(flag & Qt.TextInteractionFlag.TextSelectableByMouse for flag in flags)

    def test_names_from_files_are_no_markup(self, panel):
        card = card_of(R, 0)
        object.__setattr__(card.facts, "class_name", "<img src=x>")
        panel.show_card(card)
        texts = [label.text() for label in panel.findChildren(QLabel)]
        assert not any("<img" in text for text in texts)
        assert any("&lt;img" in text for text in texts)

    @pytest.mark.parametrize("width", [300, 800])
    def test_it_is_never_scrolled_sideways(self, panel, width, qtbot):
        panel.show_card(card_of(R, 1, partner=Named(P, 1, 22)))
        panel.resize(width, 500)
        qtbot.waitUntil(lambda: panel.widget().width() <= panel.viewport().width())
        assert panel.widget().minimumSizeHint().width() <= width


class TestOnTheDesk:
    @pytest.fixture
    def part(self, open_desk, wait_until):
        part = open_desk.presenter(ObjectPresenter)
        bring_to_front(part.panel)
        wait_until(lambda: is_in_sight(part.panel))
        yield part
        open_desk.session.select(None)
        open_desk.session.set_team("careful")

    def test_it_follows_the_selection(self, open_desk, part):
        session = open_desk.session
        row = row_of_status(open_desk, R, Status.FN)
        session.select_row(R, row)
        card = part.panel.card
        assert (card.facts.id, card.status) == (session.selection.id, "FN")
        assert card.draw is not None
        session.select(None)
        assert part.panel.card is None

    def test_a_link_selects_the_partner(self, open_desk, part):
        session = open_desk.session
        row = row_of_status(open_desk, R, Status.MISCLASSIFIED)
        session.select_row(R, row)
        partner = part.panel.card.partner
        part.panel.follow(f"{partner.side}/{partner.id}")
        assert (session.selection.side, session.selection.id) == (P, partner.id)
        assert part.panel.card.partner.row == row

    @pytest.mark.long
    def test_it_follows_settings_and_team(self, open_desk, part, wait_until):
        session = open_desk.session
        row = row_of_status(open_desk, R, Status.TP)
        session.select_row(R, row)
        open_desk.panels.settings.threshold.setValue(0.95)
        wait_until(lambda: part.panel.card.status == "FN")
        open_desk.panels.settings.reset.click()
        wait_until(lambda: part.panel.card.status == "TP")
        session.set_team("merger")
        assert part.panel.card is None or part.panel.card.facts.side_name == "reference"

    def test_out_of_sight_it_waits(self, open_desk, part, wait_until):
        open_desk.show_workspace("Teams")
        wait_until(lambda: not part.is_in_sight)
        open_desk.session.select_row(R, 2)
        assert part.panel.card is None
        open_desk.show_workspace("Inspect")
        wait_until(lambda: part.panel.card is not None)
        assert part.panel.card.facts.id == open_desk.session.selection.id

    @pytest.mark.long
    def test_keys_of_the_desk_work_on_it(self, open_desk, part):
        open_desk.session.select_row(R, 0)
        before = open_desk.session.selection
        QTest.keyClick(part.panel.copy_button, Qt.Key.Key_N)
        assert open_desk.session.selection != before
