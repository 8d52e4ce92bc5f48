"""The panel of look-alikes."""

import pytest

from napari_panoptic.questions.look_alikes import LookAlikes
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import PARTS

Presenter = next(part for part in PARTS if part.title == LookAlikes.title)
TEAM = "merger"


@pytest.fixture(scope="module")
def shown_parts():
    return (Presenter,)


def test_links_are_pasted_and_those_of_another_team_refused(open_desk, wait_until):
    session = open_desk.session
    session.set_team(TEAM)
    part = open_desk.presenter(Presenter)
    assert "--link" in part.why_not()
    maker, region = LinkMaker.of(session.cohort), session.cohort.regions[0].name
    field = part.panel.typed["links"]

    def paste(text):
        field.setText(text)
        field.editingFinished.emit()

    paste(maker.link(region, "careful", [(Side.REFERENCE, 1)]).text)
    assert "one team" in part.why_not()
    paste("nonsense")
    assert "panoptic:" in part.why_not()
    paste(maker.link(region, TEAM, [(Side.REFERENCE, 2), (Side.REFERENCE, 3)]).text)
    assert part.why_not() == ""
    part.ask()
    wait_until(lambda: part.answer is not None)
    assert "that look most alike" in part.panel.headline.text()
    assert part.panel.table.model().rowCount() == LookAlikes.neighbours
