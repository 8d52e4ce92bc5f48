"""All questions of a workspace, asked in one pass over the files."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.questions import question
from napari_panoptic.questions.causes import Causes
from napari_panoptic.viewer.desk.nuclei import BESIDE_FAILURES, PARTS
from napari_panoptic.viewer.jobs import jobs
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.question.presenter import STOPPED, QuestionPresenter
from napari_panoptic.viewer.panels.ranking import RankingPresenter

LEFT = Qt.MouseButton.LeftButton


def presenter_type(title):
    return next(part for part in PARTS if part.title == title)


CausesPresenter = presenter_type("Causes")
ConventionsPresenter = presenter_type("Conventions")


@pytest.fixture(scope="module")
def shown_parts():
    wanted = (*BESIDE_FAILURES, FailuresPresenter.title, RankingPresenter.title)
    return tuple(part for part in PARTS if part.title in wanted)


def asked_with(desk, part):
    """Return the panels asked with one: those that can be asked without an input."""
    titles = desk.asked_together(part.title)
    return [
        own.presenter
        for own in desk.parts
        if own.title in titles
        and isinstance(own.presenter, QuestionPresenter)
        and not own.presenter.why_not()
    ]


@pytest.fixture
def bring(open_desk, wait_until):
    """Give a function that brings a question in sight, in a workspace, with nothing asked."""

    def bring(kind, workspace):
        open_desk.session.set_team("merger")
        open_desk.show_workspace(workspace)
        open_desk.reveal(kind.title)
        part = open_desk.presenter(kind)
        wait_until(lambda: is_in_sight(part.panel) and open_desk.is_settled)
        for own in asked_with(open_desk, part):
            own.forget()
        return part

    return bring


@pytest.fixture
def passes(monkeypatch):
    """Collect the passes over the files: how many questions look at each region."""
    made = []
    real = question.look_at

    def noted(cohort, looks, *args, **options):
        made.append(len(looks))
        return real(cohort, looks, *args, **options)

    monkeypatch.setattr(question, "look_at", noted)
    return made


def test_all_questions_of_failures_are_answered_and_regions_are_read_once(
    bring, open_desk, wait_until, passes
):
    part = bring(CausesPresenter, "Failures")
    everyone = asked_with(open_desk, part)
    assert {own.title for own in everyone} == set(BESIDE_FAILURES) - {"Look-alikes"}
    QTest.mouseClick(part.panel.all, LEFT)
    assert all(own.is_asking for own in everyone)
    assert all(own.panel.work.is_running for own in everyone)
    assert not any(own.panel.all.isVisibleTo(own.panel) for own in everyone)
    wait_until(lambda: open_desk.is_settled)
    assert all(own.found is not None for own in everyone)
    assert passes == [len(everyone)]
    for own in everyone:
        if own.answer is not None:
            wanted = own.question()
            alone = wanted.question.answer(wanted.cohort)
            assert own.panel.headline.text() == alone.headline


def test_one_that_fails_keeps_no_other_from_its_answer(bring, open_desk, wait_until, monkeypatch):
    def fails(*_args, **_options):
        raise PanopticError("no causes today")

    told = []
    monkeypatch.setattr(Causes, "answered", fails)
    monkeypatch.setattr(jobs, "show_error", told.append)
    part = bring(CausesPresenter, "Failures")
    QTest.mouseClick(part.panel.all, LEFT)
    wait_until(lambda: open_desk.is_settled)
    assert told == ["no causes today"]
    assert part.found is None
    assert part.panel.headline.text() == Causes.hint
    others = [own for own in asked_with(open_desk, part) if own is not part]
    assert all(own.found is not None for own in others)


def test_each_can_be_stopped_and_the_last_one_stops_the_work(bring, open_desk, wait_until):
    part = bring(CausesPresenter, "Failures")
    everyone = asked_with(open_desk, part)
    QTest.mouseClick(part.panel.all, LEFT)
    QTest.mouseClick(part.panel.work.stop, LEFT)
    assert part.panel.headline.text() == STOPPED.format(verb=Causes.verb)
    assert all(own.is_asking for own in everyone if own is not part)
    for own in everyone:
        own.stop()
    wait_until(lambda: open_desk.is_settled)
    assert all(own.found is None for own in everyone)


def test_another_team_stops_what_depends_on_it_alone(bring, open_desk, wait_until):
    part = bring(CausesPresenter, "Failures")
    conventions = open_desk.presenter(ConventionsPresenter)
    QTest.mouseClick(part.panel.all, LEFT)
    open_desk.session.set_team("careful")
    assert not part.is_asking
    assert conventions.is_asking
    wait_until(lambda: open_desk.is_settled)
    assert part.found is None
    assert conventions.answer is not None


def test_the_ranking_answers_conventions_too(bring, open_desk, wait_until, monkeypatch):
    part = bring(RankingPresenter, "Cohort")
    conventions = open_desk.presenter(ConventionsPresenter)
    borders = open_desk.presenter(presenter_type("Borders"))
    assert set(asked_with(open_desk, part)) == {borders, conventions, part}
    looks, kind = [], type(conventions.question().question)
    real = kind.look
    monkeypatch.setattr(kind, "look", lambda *args: looks.append(args[0]) or real(*args))
    QTest.mouseClick(part.panel.all, LEFT)
    wait_until(lambda: open_desk.is_settled)
    assert part.answer is not None
    by_report = len(looks)
    wanted = conventions.question()
    alone = wanted.question.answer(wanted.cohort)
    assert by_report == len(looks) - by_report > 0
    assert conventions.answer.headline == alone.headline
    for name, frame in alone.files.items():
        assert frame.equals(conventions.answer.files[name])


def test_there_is_no_such_button_elsewhere(open_desk):
    assert open_desk.asked_together("Versions") == ()
    assert open_desk.asked_together("Sweeps") == ()
    assert "Scores" in open_desk.asked_together("Causes")
