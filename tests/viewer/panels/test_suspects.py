"""The panel of suspects in a real window: a nucleus removed from the annotation is found."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from lxml import etree
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QPushButton

from napari_panoptic.cli.main import main
from napari_panoptic.explain.failures import (
    FailureName,
    FailureSet,
    chosen_objects,
)
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.questions.engines.suspects import LIKELY_SCORE, SuspectKind
from napari_panoptic.questions.suspects import CAUTION, SUSPECT_SETTINGS, Suspects, reason_of
from napari_panoptic.review.file import REVIEW_FILE
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, Verdict
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.question.presenter import STALE
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.suspects import SuspectsPresenter
from napari_panoptic.viewer.state.preferences import PREFERENCES
from tests.viewer.finding import FIRST, canvas_of, names_of_visible, nearest_view_middle, shown_text

LEFT, ALT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier
TEAM = "merger"


@dataclass(frozen=True)
class Removed:
    """A nucleus that the annotation no longer has."""

    pixels: np.ndarray


@pytest.fixture(scope="module")
def planted(nuclei_sample, tmp_path_factory):
    """Copy a part of the sample, and remove from the annotation a nucleus that every team has."""
    left_out = shutil.ignore_patterns("over-splitter", "*GT*", "*RGB*", "Sample-C*", "Sample-B_2*")
    folder = tmp_path_factory.mktemp("suspects") / "cohort"
    shutil.copytree(nuclei_sample, folder, ignore=left_out)
    region = load_region(open_cohort(folder), FIRST, SUSPECT_SETTINGS)
    outcomes = [own.outcomes.reference for own in region.evaluations.values()]
    seen = np.all([own.status == STATUS_CODE[Status.TP] for own in outcomes], axis=0)
    row = int(np.argmax(seen * outcomes[0].area_px))
    number = int(outcomes[0].ids[row])  # ids are running numbers in the file
    (path,) = folder.glob(f"*/*/{FIRST}.xml")
    tree = etree.parse(path)
    drawn = tree.findall(".//Regions/Region")[number - 1]
    drawn.getparent().remove(drawn)
    tree.write(path)
    return folder, Removed(np.argwhere(region.reference.id_image() == number))


@pytest.fixture(scope="module")
def shown_cohort(planted):
    return open_cohort(planted[0])


@pytest.fixture(scope="module")
def shown_parts():
    wanted = (FailuresPresenter, SuspectsPresenter, ReviewPresenter)
    return tuple(part for part in PARTS if part in wanted)


@pytest.fixture(scope="module")
def expected(shown_cohort):
    """Find the suspects apart from the panel."""
    teams = [team.name for team in shown_cohort.competing_teams]
    return Suspects(teams=tuple(teams)).gather(shown_cohort).suspects


@pytest.fixture
def part(open_desk, wait_until):
    """Bring the panel to the front by its key, and search."""
    desk = open_desk
    desk.session.set_team(TEAM)
    desk.link.failures.show_only(None)
    desk.show_workspace("Failures")
    wait_until(lambda: desk.is_settled)
    QTest.keyClick(canvas_of(desk.viewer), "u", ALT)
    part = desk.presenter(SuspectsPresenter)
    wait_until(lambda: is_in_sight(part.panel))
    part.panel.of_kind.check_only(None)
    part.panel.least.show_choice(LIKELY_SCORE)
    part.forget()
    assert shown_text(part.panel.headline) == Suspects.hint
    QTest.mouseClick(part.panel.work.start, LEFT)
    assert part.is_busy
    wait_until(lambda: not part.is_busy)
    return part


def here(session):
    """Name the selected object."""
    selection, region = session.selection, session.snapshot.region.name
    return FailureName(session.team, region, selection.side, selection.id)


def listed(part):
    """Return the suspects that are listed, in the order of the table."""
    suspects = part.found.gathered.suspects
    return [suspects[row] for row in part.panel.table.rows()]


def choose(part, suspect):
    """Click the row of a suspect."""
    table = part.panel.table
    place = table.model().index(listed(part).index(suspect), 0)
    table.scrollTo(place)
    QTest.mouseClick(table.viewport(), LEFT, pos=table.visualRect(place).center())


def only(part, kind):
    """List one kind, of any score."""
    part.panel.of_kind.check_only(frozenset({str(kind)}))
    part.panel.least.choose(0.0)


def show_gallery(part, desk, wait_until):
    QTest.mouseClick(part.panel.making.start, LEFT)
    gallery = desk.presenter(FailuresPresenter)
    wait_until(lambda: not part.is_busy and is_in_sight(gallery.panel))
    wait_until(lambda: desk.is_settled)
    return gallery


def test_it_lists_and_saves_what_the_command_writes(
    part, planted, expected, tmp_path, monkeypatch, wait_until
):
    likely = [suspect for suspect in expected if suspect.score >= LIKELY_SCORE]
    assert listed(part) == likely
    assert is_in_sight(part.panel.note)
    assert CAUTION in part.panel.note.text()
    only(part, SuspectKind.WRONG_CLASS)
    wanted = listed(part)
    assert wanted == [own for own in expected if own.kind is SuspectKind.WRONG_CLASS]
    part.panel.table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
    scores = [suspect.score for suspect in listed(part)]
    assert scores == sorted(own.score for own in wanted)
    assert scores != [own.score for own in wanted]
    part.panel.table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)

    # The files are those of the command, whatever is listed.
    assert main(["suspects", str(planted[0]), "-o", str(tmp_path / "command")]) == 0
    (tmp_path / "window").mkdir()
    chosen = str(tmp_path / "window")
    monkeypatch.setattr(FolderDialog, "ask", lambda *_args: chosen)
    QTest.mouseClick(part.panel.save, LEFT)
    wait_until(lambda: not part.is_busy)
    for name in Suspects.file_names():
        written = (tmp_path / "window" / name).read_bytes()
        assert written == (tmp_path / "command" / name).read_bytes()


def test_other_settings_keep_objects_of_the_old_ones_out_of_the_gallery(
    part, open_desk, wait_until
):
    settings, gallery = open_desk.session.settings, open_desk.presenter(FailuresPresenter)
    only(part, SuspectKind.BADLY_LOCATED)
    QTest.mouseClick(part.panel.making.start, LEFT)
    assert part.is_busy
    open_desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.9))
    try:
        wait_until(lambda: open_desk.is_settled)
        assert gallery.panel.chosen.text() == ""
        assert open_desk.link.failures.only is None
        assert is_in_sight(part.panel.making.start)  # to be pressed again
        assert stops(part.panel) == []
    finally:
        open_desk.panels.settings.settings_chosen.emit(settings)
        wait_until(lambda: open_desk.is_settled)


def stops(panel):
    """List the buttons in sight that stop something."""
    return [b for b in panel.findChildren(QPushButton) if b.text() == "Stop" and is_in_sight(b)]


def test_an_export_and_a_search_each_have_their_own_stop(
    part, open_desk, tmp_path, monkeypatch, wait_until
):
    settings = open_desk.session.settings
    monkeypatch.setattr(FolderDialog, "ask", lambda *_args: str(tmp_path))
    QTest.mouseClick(part.panel.save, LEFT)
    other = settings.replaced(ambiguous=AmbiguousPolicy.KEEP)
    open_desk.panels.settings.settings_chosen.emit(other)
    try:
        assert len(stops(part.panel)) == 1  # the export goes on
        QTest.mouseClick(part.panel.work.start, LEFT)
        assert len(stops(part.panel)) == 2
        said = []
        wait_until(lambda: said.append((bool(stops(part.panel)), part.is_busy)) or not part.is_busy)
        assert all(is_offered == is_busy for is_offered, is_busy in said)
        assert (tmp_path / Suspects.file_names()[0]).exists()
        assert listed(part)
    finally:
        open_desk.panels.settings.settings_chosen.emit(settings)
        wait_until(lambda: open_desk.is_settled)


@pytest.mark.long
def test_a_click_goes_to_an_overlooked_nucleus_with_all_teams_that_agree(
    part, open_desk, planted, wait_until
):
    session, pixels = open_desk.session, planted[1].pixels
    (suspect,) = (own for own in listed(part) if own.kind is SuspectKind.OVERLOOKED)
    assert len(suspect.teams) > 2
    choose(part, suspect)
    wait_until(lambda: open_desk.is_settled and session.snapshot.region.name == FIRST)

    # The prediction of the team that is shown, which lies where the nucleus was removed.
    assert (session.team, session.selection.side) == (TEAM, Side.PREDICTION)
    own = session.snapshot.predictions[TEAM].id_image() == session.selection.id
    assert own[tuple(pixels.T)].mean() > 0.5
    visible = set(names_of_visible(open_desk.viewer))
    assert visible & {"reference", *session.cohort.team_names} == {"reference", *suspect.teams}
    table = part.panel.table
    classes = [row[table.titles().index("class")] for row in table.texts()]
    longest = max(map(table.fontMetrics().horizontalAdvance, classes))
    assert table.columnWidth(table.titles().index("class")) > longest
    assert part.panel.row_line.text() == reason_of(suspect)
    assert suspect.sentence in reason_of(suspect)
    shown = np.argwhere(own)
    middle = nearest_view_middle(open_desk.viewer, (*shown.min(axis=0), *(shown.max(axis=0) + 1)))
    np.testing.assert_allclose(open_desk.viewer.scene.camera.center[-2:], middle)

    # Another region shows the team alone again.
    open_desk.link.go_to("Sample-B_1")
    wait_until(lambda: open_desk.is_settled and session.snapshot.region.name == "Sample-B_1")
    assert set(names_of_visible(open_desk.viewer)) & set(suspect.teams) == {TEAM}


@pytest.mark.long
def test_the_gallery_shows_exactly_the_listed_objects(part, open_desk, expected, wait_until):
    only(part, SuspectKind.BADLY_LOCATED)
    wanted = listed(part)
    assert wanted == [own for own in expected if own.kind is SuspectKind.BADLY_LOCATED]
    gallery = show_gallery(part, open_desk, wait_until)
    shown = {gallery.failures.name(int(row)): int(row) for row in gallery.panel.view.items.rows}
    assert set(shown) == {FailureName(TEAM, s.region, Side.REFERENCE, s.id) for s in wanted}
    assert gallery.panel.chosen.text() == f"Suspects · badly-located · {len(wanted)} objects"
    # Most are matched: no failures, though suspect.
    status = gallery.failures.columns["status"]
    assert (status == STATUS_CODE[Status.TP]).mean() > 0.5
    # N leads to one of them.
    open_desk.session.select(None)
    QTest.keyClick(canvas_of(open_desk.viewer), Qt.Key.Key_N)
    wait_until(lambda: open_desk.is_settled)
    assert here(open_desk.session) in shown


@pytest.mark.long
@pytest.mark.usefixtures("part")
def test_n_leads_through_objects_of_several_teams(open_desk, wait_until):
    session, link = open_desk.session, open_desk.link
    names = {
        FailureName(team, region, Side.PREDICTION, 1)
        for team, region in (("careful", FIRST), ("confuser", "Sample-B_1"), (TEAM, FIRST))
    }
    given = chosen_objects(session.cohort, names, session.reading)
    link.show_objects(FailureSet("first ones", frozenset(names), given=given))
    session.select(None)
    seen = []
    for _ in names:
        QTest.keyClick(canvas_of(open_desk.viewer), Qt.Key.Key_N)
        wait_until(lambda: open_desk.is_settled)
        seen.append(here(session))
    assert len(seen) == len(names)
    assert set(seen) == names


@pytest.mark.long
def test_a_verdict_applies_to_suspects_of_several_regions(part, open_desk, planted, wait_until):
    reviewing = open_desk.presenter(ReviewPresenter).reviewing
    PREFERENCES.reviewer = "Ada"
    reviewing.use(reviewer="Ada", path=planted[0] / REVIEW_FILE)
    only(part, SuspectKind.BADLY_LOCATED)
    gallery = show_gallery(part, open_desk, wait_until)
    matched = [
        gallery.failures.name(int(row))
        for row in gallery.panel.view.items.rows
        if gallery.failures.columns["status"][row] == STATUS_CODE[Status.TP]
    ]
    by_region = {name.region: name for name in matched}
    names = list(by_region.values())
    open_desk.link.failures.choose(names)
    QTest.keyClick(canvas_of(open_desk.viewer), Qt.Key.Key_2, ALT)
    wait_until(lambda: open_desk.is_settled)
    with ReviewStore(planted[0] / REVIEW_FILE, reviewer="Ada") as store:
        records = store.verdicts()
    reviewing.close()
    assert {FailureName(r.team, r.region, r.side, r.object_id) for r in records} == set(names)
    assert {record.verdict for record in records} == {Verdict.PREDICTION_RIGHT}
    # It went on to a suspect without a verdict.
    assert here(open_desk.session) not in names


@pytest.mark.long
def test_another_policy_takes_the_suspects_away(part, open_desk, wait_until):
    settings = open_desk.session.settings
    other = settings.replaced(ambiguous=AmbiguousPolicy.KEEP)
    open_desk.panels.settings.settings_chosen.emit(other)
    assert shown_text(part.panel.headline) == STALE.format(verb="Search")
    assert part.found is None
    open_desk.panels.settings.settings_chosen.emit(settings)
    wait_until(lambda: open_desk.is_settled)
