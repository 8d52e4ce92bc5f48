"""Links: copied from a desk, and opened on it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QMessageBox

from napari_panoptic.values.cohort import Source
from napari_panoptic.values.links import CohortKey, LinkMaker, ObjectLink
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk import object_links
from napari_panoptic.viewer.desk.object_links import difference_text
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.suspects import SuspectsPresenter
from napari_panoptic.viewer.panels.versions import VersionsPresenter
from tests.support.paths import REPOSITORY

OTHER_SETTINGS = EvaluationSettings(iou_threshold=0.6, near_iou=0.2)


@pytest.fixture(scope="module", autouse=True)
def own_sockets() -> Iterator[Path]:
    """Keep sockets apart from those of open windows; their paths must be short."""
    with tempfile.TemporaryDirectory() as runtime, pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", runtime)
        yield Path(runtime)


@pytest.fixture
def shown(open_desk: Any, cohort: Any, wait_until: Any) -> Any:
    """Give the desk of the module with its cohort as it was opened."""
    if open_desk.session is not None and open_desk.session.cohort is not cohort:
        open_desk.show_cohort(cohort)
    open_desk.links.open(ObjectLink(CohortKey.of(cohort), "Sample-A_1", "careful"))
    open_desk.session.select(None)
    wait_until(lambda: open_desk.is_settled)
    assert open_desk.session.settings == EvaluationSettings()
    return open_desk


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give what the desk shows as errors and notes about links."""
    said: list[str] = []
    monkeypatch.setattr(object_links, "show_error", said.append)
    monkeypatch.setattr(object_links, "show_info", said.append)
    return said


def copied() -> str:
    return QGuiApplication.clipboard().text()


def link_to(desk: Any, region: str, team: str, *objects: tuple[Side, int], **more: Any) -> Any:
    key = CohortKey.of(desk.session.cohort)
    return ObjectLink(key, region, team, objects, **more)


def selected(desk: Any) -> tuple[str, str, Side, int]:
    session = desk.session
    chosen = session.selection
    return session.snapshot.region.name, chosen.team, chosen.side, chosen.id


def test_the_card_copies_a_link_that_leads_back(shown, wait_until):
    session = shown.session
    session.select_row(Side.PREDICTION, 2)
    place = selected(shown)
    shown.presenter(ObjectPresenter).panel.link_button.pushed.emit()
    text = copied()
    assert text == LinkMaker.of(session.cohort).text(place[0], place[1], *place[2:])
    assert shown.viewer.status == f"Copied {text}"

    shown.links.open(link_to(shown, "Sample-A_2", "merger"))
    wait_until(lambda: shown.is_settled)
    assert session.snapshot.region.name == "Sample-A_2"
    shown.links.open_copied()
    wait_until(lambda: shown.is_settled)
    assert selected(shown) == place


def test_a_link_has_the_settings_and_applies_them(shown, wait_until):
    session = shown.session
    shown.link.request(settings=OTHER_SETTINGS, source=Source.SUBMISSION)
    wait_until(lambda: shown.is_settled)
    session.select_row(Side.REFERENCE, 1)
    place = selected(shown)
    shown.link.links.copy_shown()
    link = ObjectLink.parse(copied())
    assert (link.settings, link.source) == (OTHER_SETTINGS, Source.SUBMISSION)

    shown.links.open(link_to(shown, place[0], place[1]))  # the same region, usual settings
    wait_until(lambda: shown.is_settled)
    assert (session.settings, session.source) == (EvaluationSettings(), None)
    session.select(None)
    shown.links.open(link)
    wait_until(lambda: shown.is_settled)
    assert (session.settings, session.source) == (OTHER_SETTINGS, Source.SUBMISSION)
    assert selected(shown) == place


def test_without_an_object_the_place_is_copied(shown):
    shown.link.links.copy_shown()
    assert ObjectLink.parse(copied()) == link_to(shown, "Sample-A_1", "careful")


def test_several_rows_of_the_table_are_one_link(shown, wait_until):
    session, table = shown.session, shown.panels.objects
    table.view.selectRow(1)
    table.view.selectionModel().select(
        table.model.index(3, 0),
        table.view.selectionModel().SelectionFlag.Select
        | table.view.selectionModel().SelectionFlag.Rows,
    )
    (entry,) = table.view.actions()
    assert entry.text() == "Copy link"
    entry.trigger()
    link = ObjectLink.parse(copied())
    outcomes = session.shown.outcomes
    wanted = {(side, int(outcomes.side(side).ids[row])) for side, row in table.selected_objects()}
    assert set(link.objects) == wanted
    assert len(wanted) == 2

    session.select(None)
    shown.links.open(link)
    wait_until(lambda: shown.is_settled)
    assert selected(shown)[2:] == link.objects[0]
    only = shown.link.failures.only
    assert {(name.side, name.id) for name in only.names} == wanted
    assert only.title == object_links.GALLERY_TITLE
    gallery = shown.presenter(FailuresPresenter)
    assert len(gallery.failures) == len(wanted)
    shown.link.failures.show_only(None)


def test_the_gallery_copies_what_is_selected(shown, wait_until, errors):
    shown.reveal("Failures")
    gallery = shown.presenter(FailuresPresenter)
    wait_until(lambda: len(gallery.failures) > 5 and shown.is_settled)
    view = gallery.panel.view
    view.select(0)
    (entry,) = view.actions()
    entry.trigger()
    name = gallery.failures.name(0)
    assert copied() == LinkMaker.of(shown.session.cohort).to([name])

    view.selectAll()  # of several regions
    entry.trigger()
    assert "objects of one region and team, found" in errors[-1]
    assert copied() == LinkMaker.of(shown.session.cohort).to([name])
    view.deselect()


def test_rows_of_questions_have_links(shown, wait_until):
    suspects = shown.presenter(SuspectsPresenter)
    suspects.ask()
    wait_until(lambda: shown.is_settled and suspects.answer is not None)
    suspects.panel.least.choose(0.0)
    suspects.panel.table.select_row(0)
    wait_until(lambda: shown.is_settled)
    (entry,) = suspects.panel.table.actions()
    entry.trigger()
    row = suspects.panel.table.rows()[0]
    link = ObjectLink.parse(copied())
    frame = suspects.answer.tables[0].frame
    assert link.region == frame["region"][row]
    assert [id_ for _, id_ in link.objects] == [frame["id"][row]]


def test_objects_of_two_versions_have_links(shown, wait_until):
    versions = shown.presenter(VersionsPresenter)
    shown.reveal("Versions")
    wait_until(lambda: shown.is_settled and versions.panel.listed())
    versions.panel.table.select_row(0)
    wait_until(lambda: shown.is_settled)
    (entry,) = versions.panel.table.actions()
    entry.trigger()
    assert ObjectLink.parse(copied()).objects == (selected(shown)[2:],)


def test_what_the_cohort_lacks_is_refused_and_nothing_changes(shown, wait_until, errors):
    for link, message in (
        (link_to(shown, "Sample-A_9", "careful"), "no region 'Sample-A_9'"),
        (link_to(shown, "Sample-A_2", "careless", settings=OTHER_SETTINGS), "no team 'careless'"),
        (link_to(shown, "Sample-A_2", "merger", source=Source("halo")), "format 'halo'"),
    ):
        shown.links.open(link)
        assert message in errors.pop()
        assert errors == []
    assert shown.is_settled
    assert shown.session.wanted_region == "Sample-A_1"
    assert shown.session.settings == EvaluationSettings()
    QGuiApplication.clipboard().setText("/etc/passwd")
    shown.links.open_copied()
    assert "begins with 'panoptic:'" in errors.pop()
    # An object that is not there is reported, as elsewhere.
    shown.links.open(link_to(shown, "Sample-A_1", "careful", (Side.REFERENCE, 10**6)))
    wait_until(lambda: shown.is_settled)
    assert shown.session.selection is None


@pytest.mark.parametrize("opens", [True, False])
def test_another_version_of_the_cohort_is_asked_about(shown, wait_until, monkeypatch, opens):
    asked = []

    def answer(box):
        asked.append(box.text())
        assert box.defaultButton().text() == "Cancel"
        wanted = "Open it here" if opens else "Cancel"
        next(button for button in box.buttons() if button.text() == wanted).click()

    monkeypatch.setattr(QMessageBox, "exec", answer)
    other = replace(shown.session.cohort, teams=shown.session.cohort.teams[:1])
    shown.links.open(ObjectLink(CohortKey.of(other), "Sample-A_2", "careful"))
    wait_until(lambda: shown.is_settled)
    assert len(asked) == 1
    assert "another version of the cohort" in asked[0]
    assert "its teams differ" in asked[0]
    assert shown.session.wanted_region == ("Sample-A_2" if opens else "Sample-A_1")


def test_differences_are_described():
    key = CohortKey("one", "00000000", "000000")
    assert difference_text(replace(key, name="copy"), key) == ""
    text = difference_text(CohortKey("two", "00000001", "000001"), key)
    assert "from the cohort “two”, and “one” is open. Their regions and teams differ" in text


def test_a_blind_review_stays_blind(shown, wait_until, errors):
    QGuiApplication.clipboard().setText("before")
    shown.state.is_blind = True
    shown.link.links.copy_shown()
    shown.links.open(link_to(shown, "Sample-A_2", "merger"))
    wait_until(lambda: shown.is_settled)
    shown.state.is_blind = False
    assert errors == [object_links.NO_LINKS] * 2
    assert copied() == "before"
    assert shown.session.wanted_region == "Sample-A_1"


SENDER = """
import sys
from napari_panoptic.cli.main import main
sys.exit(main(["view", "--link", sys.argv[1]]))
"""


def send(text: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SENDER, text],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_command_opens_a_link_in_the_open_window(shown, wait_until):
    row = shown.session.shown.outcomes.reference.ids[0]
    link = link_to(shown, "Sample-A_1", "merger", (Side.REFERENCE, int(row)))
    process = send(link.text)
    wait_until(lambda: process.poll() is not None)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert out == f"opened in the window that shows {link.cohort.name}\n"
    wait_until(lambda: shown.session.selection is not None and shown.is_settled)
    assert selected(shown) == ("Sample-A_1", "merger", *link.objects[0])


def test_the_socket_goes_with_the_cohort(shown, cohort, own_sockets, wait_until):
    folder = own_sockets / "napari-panoptic"
    fewer = replace(cohort, regions=cohort.regions[:2])
    for now in (fewer, cohort):
        shown.show_cohort(now)
        (socket,) = folder.iterdir()
        assert CohortKey.of(now).fingerprint in socket.name
    wait_until(lambda: shown.is_settled)


def test_a_closed_desk_leaves_no_socket(shown, close_desk, own_sockets):
    """The last test of the module: a desk in a window that is the user's own."""
    assert list(own_sockets.iterdir())
    close_desk(shown)
    assert not list(own_sockets.iterdir())
