"""A planned review in a real window: from the question to the estimate, by keys and mouse."""

import re
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.file import REVIEW_FILE
from napari_panoptic.review.judged import VERDICTS
from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.review.plan.design import draw
from napari_panoptic.review.plan.estimates import Estimate, Estimates, estimate
from napari_panoptic.review.plan.goal import Goal
from napari_panoptic.review.plan.items import item_at
from napari_panoptic.review.plan.suspects import with_cohort_suspects
from napari_panoptic.review.plan.units import ItemKind, population
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.layouts import Curtain
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.review.inputs import VERDICT_KEYS
from napari_panoptic.viewer.panels.review.plan import words, work
from napari_panoptic.viewer.panels.review.plan.presenter import PlanPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.viewer.finding import canvas_of, shown_text, texts_in_sight

ALT, LEFT = Qt.KeyboardModifier.AltModifier, Qt.MouseButton.LeftButton
TEAM = "merger"
KEYS = {verdict: getattr(Qt.Key, f"Key_{key[-1]}") for verdict, key in VERDICT_KEYS.items()}


@pytest.fixture(scope="module")
def shown_parts():
    return tuple(part for part in PARTS if part in (ReviewPresenter, PlanPresenter))


@pytest.fixture(scope="module")
def shown_cohort(nuclei_sample, tmp_path_factory):
    """Open two regions and two teams of a cohort of this module's own, which keeps a review."""
    folder = shutil.copytree(nuclei_sample, tmp_path_factory.mktemp("plan") / "cohort")
    for patient in sorted(folder.glob("MoNuSAC Testing Data and Annotations/*"))[1:]:
        shutil.rmtree(patient)
    cohort = open_cohort(folder)
    return replace(cohort, teams=tuple(t for t in cohort.teams if t.name in ("careful", TEAM)))


@pytest.fixture(scope="module")
def units(shown_cohort):
    """List the items of the team, apart from the window."""
    return population(shown_cohort, Reading(teams=(TEAM,))).units


class PlanWindow:
    """The panel of a plan, used as a reviewer uses it."""

    def __init__(self, desk, wait_until):
        self.desk, self._wait_until = desk, wait_until

    @property
    def review(self):
        return self.desk.presenter(ReviewPresenter)

    @property
    def presenter(self):
        return self.desk.presenter(PlanPresenter)

    @property
    def panel(self):
        return self.presenter.panel

    def settle(self):
        self._wait_until(lambda: self.desk.is_settled)

    def bring_to_front(self):
        self.desk.show_workspace("Review")
        self.desk.raise_part(self.presenter)
        self._wait_until(lambda: self.presenter.is_in_sight)
        self.settle()

    def start_again(self):
        """Show the cohort again, as on the next day."""
        self.desk.show_cohort(self.desk.session.cohort)
        self.settle()
        self.bring_to_front()

    def press_alt(self, key):
        QTest.keyClick(canvas_of(self.desk.viewer), key, ALT)

    def click(self, button):
        QTest.mouseClick(button, LEFT)
        self.settle()

    def draw(self, precision=0.2, **ticked):
        """Ask for the F1 of the team, and draw the plan."""
        ask = self.panel.ask
        ask.team.choose(TEAM)
        ask.quantity.choose(Quantity.F1)
        ask.precision.setValue(precision)
        for name in ("is_blind", "is_shared", "has_suspects"):
            getattr(ask, name).setChecked(ticked.get(name, False))
        self.settle()
        assert ask.draw.isEnabled()
        self.click(ask.draw)

    def judge(self, verdict, count=0):
        """Press the key of a verdict on the item that is shown."""
        self.settle()
        if self.presenter.item.kind is ItemKind.BACKGROUND:
            self.panel.item.nuclei.setValue(count)
            verdict = Verdict.ANNOTATION_RIGHT
        self.press_alt(KEYS[verdict])
        self.settle()


@pytest.fixture
def window(open_desk, shown_cohort, wait_until):
    """Bring the panel to the front, with Ada as reviewer and no plan yet."""
    window = PlanWindow(open_desk, wait_until)
    window.review.reviewing.close()
    for path in shown_cohort.root.glob("panoptic-review*"):
        path.unlink(missing_ok=True)
    window.review.reviewing.use(reviewer="Ada", path=shown_cohort.root / REVIEW_FILE)
    window.bring_to_front()
    yield window
    window.presenter.pause()


def planted(item):
    """Return the truth about an item: verdict and number of nuclei."""
    if item.kind is ItemKind.BACKGROUND:
        return Verdict.ANNOTATION_RIGHT, item.number % 3 == 0
    if item.kind in (ItemKind.FN, ItemKind.FP) and item.number % 2:
        return Verdict.PREDICTION_RIGHT, None
    return Verdict.ANNOTATION_RIGHT, None


def stored(window, reviewer="Ada"):
    with ReviewStore(window.review.reviewing.path, reviewer=reviewer) as review:
        return review.plan.stored().plan, review.plan.answers()


def test_a_name_is_asked_for_first(window):
    window.review.reviewing.use(reviewer="")
    assert shown_text(window.panel.hint) == words.ASK_FOR_NAME
    assert is_in_sight(window.panel.enter_name)
    assert not window.panel.ask.isVisible()


def test_after_a_failure_the_items_can_be_counted_again(window, monkeypatch):
    ask = window.panel.ask
    ask.team.choose("careful")

    def failing(*_arguments, **_options):
        raise PanopticError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(work, "population", failing)
        ask.team.choose(TEAM)
        ask.has_suspects.setChecked(True)
        window.settle()
    assert ask.offer.text() == "the disk is gone"
    assert not ask.draw.isEnabled()
    assert is_in_sight(ask.counting.start)
    window.click(ask.counting.start)
    assert "items" in ask.offer.text()
    assert ask.draw.isEnabled()
    assert ask.counting.start.isHidden()


def test_the_number_of_items_can_be_typed(window, units):
    ask = window.panel.ask
    ask.items.setFocus()
    ask.items.selectAll()
    QTest.keyClicks(ask.items, "31")
    QTest.keyClick(ask.items, Qt.Key.Key_Return)
    window.draw()
    drawn, _ = stored(window)
    assert drawn.units.keys == draw(units, 31, seed=1).units.keys
    # The number of items to add stands between what the state says and the results.
    row, results = window.panel.more, window.panel.export
    assert row.mapTo(window.panel, QPoint()).y() < results.mapTo(window.panel, QPoint()).y()


def test_from_the_question_to_the_estimate(window, units, shown_cohort, tmp_path):
    window.draw(precision=0.25)
    drawn, _ = stored(window)
    n = len(drawn)
    assert drawn.units.keys == draw(units, n, seed=1).units.keys
    window.click(window.panel.begin)
    kinds = set()
    for number in range(1, n + 1):
        item = window.presenter.item
        assert item == item_at(drawn, number)
        kinds.add(item.kind)
        session = window.desk.session
        assert (session.snapshot.region.name, session.team) == (item.region, TEAM)
        if item.kind is not ItemKind.BACKGROUND:
            assert (session.selection.side, session.selection.id) == (item.side, item.object_id)
        verdict, count = planted(item)
        window.judge(verdict, count or 0)
    assert {ItemKind.TP, ItemKind.BACKGROUND} < kinds
    assert window.panel.item.verdicts.end_text() == words.ALL_DONE

    plan, answers = stored(window)
    assert [(a.verdict, a.count) for a in answers] == [
        planted(item_at(plan, number)) for number in range(1, n + 1)
    ]
    found = estimate(plan, units, answers)
    (f1,) = (r for r in found.rows if (r.quantity, r.class_name) == (Quantity.F1, ALL))
    assert window.panel.headline.text() == (
        f"{n} of {n} · F1 {f1.estimate:.2f} ± {f1.half_width:.2f}"
    )
    assert f"{f1.estimate:.3f}" in window.panel.result_text()
    assert "seed 1" in window.panel.result_text()
    shown = {name: figure for name, figure, *_ in window.panel.table.texts()}
    assert shown["F1"] == f"{f1.estimate:.2f}"

    folder = tmp_path / "window"
    window.presenter.export(folder)
    window.settle()
    arguments = ["--plan", folder / "plan.csv", "--verdicts", folder / "verdicts.csv"]
    told = ["estimate", shown_cohort.root, *arguments, "-o", tmp_path / "told"]
    assert main([str(argument) for argument in told]) == 0
    own = (folder / "estimates.csv").read_bytes()
    assert own == (tmp_path / "told" / "estimates.csv").read_bytes()
    assert len(pd.read_csv(folder / "verdicts.csv")) == n


@pytest.mark.long
def test_more_suspects_are_drawn_when_asked_for(window, units, shown_cohort):
    window.draw(has_suspects=True)
    drawn, _ = stored(window)
    refined = with_cohort_suspects(units, shown_cohort)
    assert drawn.units.keys == draw(refined, len(drawn), seed=1).units.keys
    assert drawn.units.detail.tolist() == draw(refined, len(drawn), seed=1).units.detail.tolist()
    window.start_again()
    window.click(window.panel.begin)
    window.judge(*planted(window.presenter.item))
    assert window.panel.problem_text() == ""
    assert window.panel.headline.text().startswith(f"1 of {len(drawn)}")


@pytest.mark.long
def test_a_plan_goes_on_after_a_restart_and_can_be_extended(window, units):
    window.draw()
    window.click(window.panel.begin)
    for _ in range(3):
        window.judge(*planted(window.presenter.item))
    window.press_alt(Qt.Key.Key_5)  # undo
    window.settle()
    plan, answers = stored(window)
    assert [answer.item for answer in answers] == [1, 2]
    window.start_again()
    assert window.panel.begin.text() == "Continue the review"
    session = window.desk.session
    others = session.protocol.replaced(iou_threshold=0.7)
    window.desk.panels.settings.settings_chosen.emit(others)
    window.settle()
    assert session.settings == others
    window.click(window.panel.begin)
    assert session.settings == session.protocol  # those of the plan
    assert window.presenter.item == item_at(plan, 3)
    window.panel.more.setValue(7)
    window.click(window.panel.extension)
    extended, answers = stored(window)
    assert extended.units.keys == draw_extended(plan, units, 7)
    assert [answer.item for answer in answers] == [1, 2]


def draw_extended(plan, units, more):
    """Return what identifies the items of the plan with further items."""
    larger = set(draw(units, len(plan) + more, plan.seed).units.keys)
    keys = plan.units.keys
    assert set(keys) <= larger
    with_more = [key for key in larger if key not in keys]
    assert len(with_more) == more
    return (*keys, *sorted(with_more, key=lambda key: order_of(key, plan.seed)))


def order_of(key, seed):
    """Return the random number that decides the order, as the documents describe it."""
    from hashlib import blake2b

    digest = blake2b(key.encode(), digest_size=8, key=f"order {seed}".encode()).digest()
    return int.from_bytes(digest, "little")


@pytest.mark.long
def test_no_verdict_is_taken_on_anything_but_the_item(window):
    window.draw()
    window.click(window.panel.begin)
    while window.presenter.item.kind is ItemKind.BACKGROUND:
        window.judge(Verdict.ANNOTATION_RIGHT)
    item, session = window.presenter.item, window.desk.session
    _, before = stored(window)
    ids = session.evaluation.outcomes.side(Side.REFERENCE).ids
    row = int(ids[0] == item.object_id) if item.side is Side.REFERENCE else 0
    session.select_row(Side.REFERENCE, row)
    window.press_alt(Qt.Key.Key_1)
    window.settle()
    assert stored(window)[1] == before
    assert window.panel.state.text() == words.SHOWN_AGAIN.format(item.number)
    assert (session.selection.side, session.selection.id) == (item.side, item.object_id)
    window.press_alt(Qt.Key.Key_1)
    window.settle()
    assert stored(window)[1][-1].item == item.number


def test_verdicts_without_a_plan_are_no_part_of_the_estimate(window):
    window.draw()
    window.desk.session.select_row(Side.REFERENCE, 0)
    window.press_alt(Qt.Key.Key_2)  # the review of the plan has not begun
    window.presenter.refresh()
    window.settle()
    assert stored(window)[1] == []
    assert (
        f"{words.OUTSIDE} Such verdicts in this file: 1 (1 report errors)."
        in window.panel.result_text()
    )


@pytest.mark.long
def test_a_blind_reviewer_sees_neither_team_nor_status(window):
    window.desk.session.set_team(TEAM)
    window.draw(is_blind=True)
    title, objects = window.desk.panels.title, window.desk.panels.objects
    assert TEAM in title.title()
    window.click(window.panel.begin)
    item = window.presenter.item
    assert window.panel.item.title() == f"Item 1 of {len(stored(window)[0])}"
    window.desk.session.select_row(Side.REFERENCE, 0)
    for text in (title.title(), title.figure.text(), title.selected.text()):
        assert TEAM not in text
        assert "PQ" not in text
        assert str(item.kind) not in text
    assert [curtain.isHidden() for curtain in objects.findChildren(Curtain)] == [False]
    window.click(window.panel.pause)
    assert TEAM in title.title()
    assert all(curtain.isHidden() for curtain in objects.findChildren(Curtain))


def teams_in_sight(viewer):
    found = re.compile(rf"\b(careful|{TEAM})\b")  # not the mergers of a panel's name
    return [text for text in texts_in_sight(viewer) if found.search(text)]


def test_nothing_in_the_window_names_the_team_to_a_blind_reviewer(window, shared_viewer):
    title = shared_viewer.title
    whole = f"{TEAM}s: annotation / {TEAM}"  # as where two files are compared
    shared_viewer.title = whole
    window.draw(is_blind=True)
    for name in ("Regions", "Settings", "Plan"):
        window.desk.reveal(name)
    layers = [layer.name for layer in shared_viewer.layers]
    window.click(window.panel.begin)
    assert shared_viewer.title == f"{TEAM}s: annotation / …"
    names = [region.name for region in window.desk.session.cohort.regions]
    for region in (*names, *names):
        assert teams_in_sight(shared_viewer) == []
        window.desk.link.go_to(region)
        window.settle()
    assert teams_in_sight(shared_viewer) == []
    window.desk.panels.title.notes_clicked.emit()
    assert not window.desk.panels.notes.isVisible()
    window.click(window.panel.pause)
    assert shared_viewer.title == whole
    assert [layer.name for layer in shared_viewer.layers] == layers
    assert {TEAM, "careful"} <= set(teams_in_sight(shared_viewer))
    shared_viewer.title = title


@pytest.mark.long
def test_two_reviewers_share_a_plan_and_agree(window):
    window.draw(is_shared=True)
    window.click(window.panel.begin)
    while window.presenter.item.number <= 2:
        window.judge(Verdict.ANNOTATION_RIGHT)
    with ReviewStore(window.review.reviewing.path, reviewer="Bo") as other:
        first = item_at(other.plan.stored().plan, 1)
        count = 0 if first.kind is ItemKind.BACKGROUND else None
        other.plan.answer(1, Verdict.ANNOTATION_RIGHT, count=count)
    window.review.reviewing.use(reviewer="Bo")
    window.settle()
    window.click(window.panel.begin)
    assert window.presenter.item.number == 3  # Ada's verdicts count
    objects = first.kind is not ItemKind.BACKGROUND
    assert ("Bo and Ada agree on 100% of 1 items" in window.panel.result_text()) is objects


def test_an_estimate_that_is_not_there_has_a_reason_beside_it():
    nan = float("nan")
    row = Estimate(Quantity.PQ, "A", ALL, nan, nan, nan, 3, nan, nan, nan, (nan, nan), nan)
    missing = "no FN of A was reviewed: figures that depend on them are left empty"
    findings = (
        Finding(FindingKind.MISSING, missing, team="A"),
        Finding(FindingKind.MISSING, missing.replace("A", "B"), team="B"),
    )
    goal = Goal(Quantity.PQ, ("A",), 0.05, 10.0, 5.0)
    assert words.result_sentences(goal, Estimates((row,), (), 3, 0, findings)) == (
        f"The PQ of A cannot be estimated yet. N{missing[1:]}."
    )


def test_no_line_is_broken_within_95_percent():
    row = Estimate(Quantity.PQ, "A", ALL, 0.5, 0.4, 0.6, 50, 0.05, 0.3, 0.7, (0.5, 0.5), 0.5)
    goal = Goal(Quantity.PQ, ("A",), 0.05, 10.0, 5.0)
    told = words.result_sentences(goal, Estimates((row,), (), 50, 0, ()))
    assert "(95\u00a0% interval: 0.400 to 0.600; 50 items)" in told


DIGITS = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4)


def test_digits_alone_judge_items_and_count_nuclei(window, wait_until):
    top = window.desk.viewer.window._qt_window
    top.activateWindow()
    wait_until(top.isActiveWindow)
    window.draw()
    window.click(window.panel.begin)

    def press_digit(key):
        focused = QApplication.focusWidget()
        QTest.keyClick(top if focused is None else focused, key)
        window.settle()

    given = {}
    kinds = set()
    for turn in range(60):
        item = window.presenter.item
        canvas_of(window.desk.viewer).setFocus(Qt.FocusReason.MouseFocusReason)  # a click there
        kinds.add(item.kind)
        if item.kind is ItemKind.BACKGROUND:
            press_digit(Qt.Key.Key_1)
            press_digit(Qt.Key.Key_2)
            assert window.panel.item.nuclei.value() == 12
            press_digit(Qt.Key.Key_Return)
            given[item.number] = (Verdict.ANNOTATION_RIGHT, 12)
        else:
            press_digit(DIGITS[turn % 4])
            given[item.number] = (VERDICTS[turn % 4], None)
        assert window.presenter.item.number == item.number + 1
        if ItemKind.BACKGROUND in kinds and len(kinds) > 2:
            break
    answers = {at.item: (at.verdict, at.count) for at in stored(window)[1]}
    assert answers == given
    canvas_of(window.desk.viewer).setFocus()
    press_digit(Qt.Key.Key_5)
    assert window.presenter.item.number == max(given)
    press_digit(Qt.Key.Key_Space)
    assert window.presenter.item.number == max(given)  # it is the first one without a verdict
