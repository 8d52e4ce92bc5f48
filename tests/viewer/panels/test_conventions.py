"""The panel of conventions: published figures are typed, and what fits is listed first."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.questions.conventions import Conventions, scores_of
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter

LEFT = Qt.MouseButton.LeftButton
ConventionsPresenter = next(part for part in PARTS if part.title == "Conventions")


@pytest.fixture(scope="module")
def shown_parts():
    return tuple(part for part in PARTS if part in (FailuresPresenter, ConventionsPresenter))


@pytest.fixture(scope="module")
def answer(shown_cohort):
    return Conventions(teams=("careful", "merger")).answer(shown_cohort)


@pytest.fixture
def part(open_desk, wait_until):
    desk = open_desk
    desk.show_workspace("Failures")
    desk.reveal("Conventions")
    part = desk.presenter(ConventionsPresenter)
    wait_until(lambda: desk.is_settled and is_in_sight(part.panel))
    type_published(part, "")
    part.forget()
    return part


def type_published(part, text):
    field = part.panel.typed["published"]
    field.setFocus()
    field.selectAll()
    QTest.keyClick(field, Qt.Key.Key_Delete)
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def ask(part, wait_until):
    QTest.mouseClick(part.panel.work.start, LEFT)
    wait_until(lambda: not part.is_busy)
    assert part.answer is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [("careful", "Must be TEAM=FIGURE"), ("nobody=0.5", "found 'nobody'")],
)
def test_what_cannot_be_asked_is_said_at_once(part, text, said):
    type_published(part, text)
    assert said in part.panel.headline.text()
    assert not part.panel.work.start.isEnabled()
    type_published(part, "")
    assert part.panel.headline.text() == Conventions.hint
    assert part.panel.work.start.isEnabled()


def test_what_fits_published_figures_comes_first(part, answer, wait_until):
    frame = scores_of(answer).frame.set_index("convention")
    published = {team: frame.loc["stardist", f"value {team}"] for team in ("careful", "merger")}
    type_published(part, ", ".join(f"{team}={value:.3f}" for team, value in published.items()))
    ask(part, wait_until)
    assert part.panel.shown_table.title == "What fits"
    rows = part.panel.table.texts()
    assert rows[0][0] == "yes"
    fitting = [row for row in rows if row[0] == "yes"]
    assert any("stardist pq" in row[1] for row in fitting)
    assert f"{len(fitting)} combination" in part.panel.note.text()


def test_other_figures_make_the_answer_stale(part, wait_until):
    ask(part, wait_until)
    type_published(part, "careful=0.5")
    assert part.answer is None
    assert not is_in_sight(part.panel.table)


def test_a_row_opens_the_nuclei_that_are_counted_otherwise(part, open_desk, wait_until):
    ask(part, wait_until)
    table = part.panel.which.values[-1]
    part.panel.which.choose(table)
    part.panel.table.select(0)
    QTest.keyClick(part.panel.table, Qt.Key.Key_Return)
    gallery = open_desk.presenter(FailuresPresenter)
    wait_until(lambda: is_in_sight(gallery.panel) and open_desk.is_settled)
    names = {gallery.failures.name(int(own)) for own in gallery.panel.view.items.rows}
    assert names == set(table.objects(0).names)
