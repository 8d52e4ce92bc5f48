"""The panel of any question about a region: that of the guide for developers, and the marks."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.panels.region_question import region_presenter
from tests.support.region_guide import added_to_questions
from tests.viewer.finding import names_of_visible, shown_text


@pytest.fixture(scope="module")
def touching(tmp_path_factory):
    """Return the presenter of the question that the guide adds."""
    with added_to_questions(tmp_path_factory.mktemp("guide")) as kind:
        yield region_presenter(kind)


@pytest.fixture(scope="module")
def shown_parts(touching):
    return (touching,)


@pytest.fixture
def part(desk, touching, wait_until):
    """Show the panel at the first region with an answer."""
    found = desk.presenter(touching)
    desk.raise_part(found)
    for region in desk.session.cohort.regions:
        desk.link.request(region=region.name)
        wait_until(lambda: found.is_in_sight and desk.is_settled)
        if found.value is not None and found.value.answer is not None:
            return found
        assert shown_text(found.panel.headline).startswith("No object touches")
        assert not found.panel.which.isVisible()
    return pytest.fail("nothing touches an area in the sample")


def test_the_question_of_the_guide_has_a_panel(desk, part):
    panel, frame = part.panel, part.value.answer.tables[0].frame
    assert shown_text(panel.headline) == part.value.answer.headline
    assert panel.which.button(panel.shown_table).text() == f"Touching {len(frame)}"
    assert panel.which.button(panel.shown_table).isVisible()
    assert panel.marked.isVisible()
    assert [line[1] for line in panel.table.texts()] == frame["id"].astype(str).tolist()
    assert not panel.work.start.isVisible()
    index = panel.table.model().index(1, 0)
    place = panel.table.visualRect(index).center()
    QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    selection = desk.session.selection
    assert [str(selection.side), selection.id] == frame[["side", "id"]].iloc[1].tolist()
    desk.session.select(None)
    assert panel.table.selected() is None


def test_listed_objects_are_marked_while_that_is_wanted(desk, viewer, part, wait_until):
    name = part.kind.marks_name
    wait_until(lambda: name in names_of_visible(viewer))
    marked = viewer.layers[name].data
    outcomes, frame = part.value.here.evaluation.outcomes, part.value.answer.tables[0].frame
    for side in Side:
        own = outcomes.side(side)
        for id_ in frame["id"][frame["side"] == side]:
            y0, x0, y1, x1 = own.bbox[own.row_of(id_)]
            assert marked[max(y0 - 2, 0) : y1 + 2, max(x0 - 2, 0) : x1 + 2].any()
    part.panel.marked.setChecked(False)
    wait_until(lambda: desk.is_settled)
    assert name not in names_of_visible(viewer)
    part.panel.marked.setChecked(True)
    wait_until(lambda: name in names_of_visible(viewer))


def test_a_link_to_rows_is_copied(desk, part, monkeypatch):
    copied = []
    monkeypatch.setattr(desk.link.links, "copy", copied.extend)
    part.panel.link_wanted.emit([part.panel.shown_table.objects(0)])
    (name,) = copied
    assert (name.team, name.region) == (desk.session.team, desk.session.snapshot.region.name)
