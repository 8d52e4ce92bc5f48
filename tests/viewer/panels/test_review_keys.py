"""The keys of the review: in its workspace only, wherever the focus is, after any click."""

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLineEdit, QTextEdit

from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.display.palette import STATUS_COLOURS
from napari_panoptic.review.judged import VERDICTS
from napari_panoptic.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.desk.link import LEAVING, NOT_PAINTED
from napari_panoptic.viewer.desk.workspaces import WorkspaceBar
from napari_panoptic.viewer.kit.keys import key_text
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.review.inputs import JUDGING_KEYS, VERDICT_COLOURS
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.support.vision import VISIONS, deltaE_ciede2000, seen_as
from tests.viewer.finding import hold

ALT = Qt.KeyboardModifier.AltModifier
LEFT = Qt.MouseButton.LeftButton
DIGITS = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4)


@pytest.fixture
def review_desk(review, wait_until):
    """Show the workspace of the review in the active window."""
    desk, window = review.desk, review.viewer.window._qt_window
    desk.show_workspace("Review")
    window.activateWindow()
    wait_until(lambda: window.isActiveWindow() and desk.is_settled)
    review.canvas.setFocus()
    review.step()
    review.settle()
    return desk


@pytest.fixture
def press_focused(review):
    """Give a function that presses a key where the focus is, and waits."""

    def press_key(key):
        QApplication.processEvents()
        review.press_where_the_focus_is(key)
        review.settle()

    return press_key


def verdicts(review):
    return [record.verdict for record in review.stored()]


def test_the_digits_give_the_verdicts_and_go_on(review_desk, review, press_focused):
    for number, verdict in enumerate(VERDICTS):
        before = review_desk.session.selection
        press_focused(DIGITS[number])
        assert verdicts(review)[-1] is verdict
        assert review_desk.session.selection != before
    assert len(verdicts(review)) == len(VERDICTS)


def test_five_takes_the_last_one_back_with_its_note(review_desk, review, press_focused):
    chosen = review_desk.session.selection
    press_focused(Qt.Key.Key_Return)
    QTest.keyClicks(review.note, "1 of 2 nuclei")
    press_focused(Qt.Key.Key_Escape)
    press_focused(Qt.Key.Key_3)
    assert [record.note for record in review.stored()] == ["1 of 2 nuclei"]
    press_focused(Qt.Key.Key_5)
    assert verdicts(review) == []
    assert review_desk.session.selection == chosen
    assert review.note.toPlainText() == "1 of 2 nuclei"


def test_space_goes_on_without_a_verdict(review_desk, review, press_focused):
    before = review_desk.session.selection
    press_focused(Qt.Key.Key_Space)
    assert review_desk.session.selection != before
    assert verdicts(review) == []


def test_enter_opens_the_note_where_digits_are_text_and_escape_leaves_it(
    review, review_desk, press_focused
):
    press_focused(Qt.Key.Key_Return)
    assert review.note.hasFocus()
    before = review_desk.session.selection
    for key in (*DIGITS, Qt.Key.Key_5, Qt.Key.Key_Space):
        press_focused(key)
    assert review.note.toPlainText() == "12345 "
    assert verdicts(review) == []
    assert review_desk.session.selection == before
    press_focused(Qt.Key.Key_Escape)
    assert not review.note.hasFocus()
    press_focused(Qt.Key.Key_2)
    assert [record.note for record in review.stored()] == ["12345"]


def test_a_key_that_is_held_gives_one_verdict(review, press_focused):
    shortcuts = review.desk.presenter(ReviewPresenter).keys._shortcuts.values()
    assert not any(shortcut.autoRepeat() for shortcut in shortcuts)
    press_focused(Qt.Key.Key_1)
    assert len(verdicts(review)) == 1


@pytest.mark.usefixtures("hasty")
def test_an_object_that_was_not_painted_gets_no_verdict(review_desk, review, press_focused):
    """Five presses within 250 ms judged five objects, of which four had never been seen."""
    first = review_desk.session.selection
    for _ in range(5):
        review.press_where_the_focus_is(DIGITS[0])
    following = review_desk.session.selection
    assert following != first
    assert len(verdicts(review)) == 1
    assert NOT_PAINTED in review.texts()
    assert review_desk.panels.title.selected.text() == NOT_PAINTED
    review.settle()
    assert review_desk.session.selection == following
    press_focused(DIGITS[1])
    assert verdicts(review)[-1] is VERDICTS[1]
    assert len(verdicts(review)) == 2


@pytest.mark.usefixtures("hasty", "review_desk")
def test_a_button_gives_no_verdict_on_an_object_that_was_not_painted(review):
    button = review.panel.verdicts.buttons[VERDICTS[0]]
    review.press_where_the_focus_is(Qt.Key.Key_N)
    button.click()
    assert verdicts(review) == []
    assert not button.isChecked()
    review.settle()
    button.click()
    assert verdicts(review) == [VERDICTS[0]]


@pytest.mark.usefixtures("hasty")
def test_an_image_that_is_out_of_sight_is_not_waited_for(review_desk, review):
    around = review.canvas.parentWidget()
    around.hide()
    try:
        review.press_where_the_focus_is(Qt.Key.Key_Space)
        review_desk.presenter(ReviewPresenter).give(VERDICTS[0])
    finally:
        around.show()
    assert verdicts(review) == [VERDICTS[0]]


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.NoModifier, ALT])
def test_a_held_key_of_a_verdict_counts_once(review, review_desk, modifier):
    hold(QApplication.focusWidget(), DIGITS[0], modifier, review.settle)
    assert len(verdicts(review)) == 1
    assert review_desk.session.selection is not None


def test_an_object_that_is_being_left_gets_no_verdict(review_desk, review, press_focused):
    press_focused(Qt.Key.Key_N)
    review.settle()
    regions = {region.name for region in review_desk.session.cohort.regions}
    (other,) = regions - {review_desk.session.snapshot.region.name}
    review_desk.link.go_to(other)
    review_desk.presenter(ReviewPresenter).give(Verdict.BOTH_WRONG)  # before any event
    assert verdicts(review) == []
    assert LEAVING in review.texts()
    review.settle()
    review_desk.session.select_row(Side.REFERENCE, 0)
    press_focused(Qt.Key.Key_1)
    assert len(verdicts(review)) == 1


def test_napari_has_its_digits_back_in_other_workspaces(
    review_desk, review, press_focused, wait_until
):
    layer = review.viewer.add_labels(np.zeros((20, 20), int), name="mine")
    try:
        review.viewer.layers.selection.active = layer
        review.canvas.setFocus()
        press_focused(Qt.Key.Key_2)
        assert layer.mode == "pan_zoom"
        assert len(verdicts(review)) == 1
        review_desk.show_workspace("Inspect")
        wait_until(lambda: review_desk.is_settled)
        review.viewer.layers.selection.active = layer
        review.canvas.setFocus()
        press_focused(Qt.Key.Key_2)
        assert layer.mode == "paint"
        assert len(verdicts(review)) == 1
        layer.mode = "pan_zoom"
        review_desk.show_workspace("Review")
        wait_until(lambda: review_desk.is_settled)
        review.viewer.layers.selection.active = layer
        press_focused(Qt.Key.Key_2)
        assert layer.mode == "pan_zoom"
        assert len(verdicts(review)) == 2
    finally:
        review.viewer.layers.remove(layer)


def test_closing_the_desk_gives_napari_its_digits_back(review_desk, review, wait_until):
    assert review_desk.workspace.name == "Review"
    review.close()
    layer = review.viewer.add_labels(np.zeros((20, 20), int), name="mine")
    try:
        window = review.viewer.window._qt_window
        window.activateWindow()
        wait_until(window.isActiveWindow)
        review.viewer.layers.selection.active = layer
        review.canvas.setFocus()
        QTest.keyClick(review.canvas, Qt.Key.Key_2)
        assert layer.mode == "paint"
    finally:
        review.viewer.layers.remove(layer)
        review.start_again()


@pytest.mark.parametrize(
    "kind",
    [
        *("button", "list", "queue"),
        *(
            pytest.param(k, marks=pytest.mark.long)
            for k in ("progress", "fold", "workspace", "tab")
        ),
    ],
)
def test_after_a_click_on_a_control_the_keys_work(
    review_desk, review, press_focused, kind, wait_until
):
    panel, strip = review.panel, review_desk.panels.queue
    review.note.setFocus()  # the focus must not stay there either
    clicked = {
        "button": panel.following,
        "progress": panel.region_progress,
        "list": panel.history.viewport(),
        "fold": panel.settings.fold,
        "queue": strip,
        "workspace": review_desk.strip.findChild(WorkspaceBar).button("Review"),
        "tab": review.canvas,
    }[kind]
    n = len(verdicts(review))
    # The control of the queue has an arrow at its end, and a menu in its middle.
    at = QPoint(strip.width() - 3, strip.height() // 2) if kind == "queue" else QPoint()
    QTest.mouseClick(clicked, LEFT, Qt.KeyboardModifier.NoModifier, at)
    review.settle()
    wait_until(lambda: not isinstance(QApplication.focusWidget(), QLineEdit | QTextEdit))
    if review_desk.session.selection is None:
        review.step()
    press_focused(Qt.Key.Key_1)
    assert len(verdicts(review)) == n + 1


@pytest.mark.parametrize(
    "name",
    [
        "Cohort",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("Inspect", "Failures", "Groups", "Teams")
        ),
    ],
)
def test_after_a_change_of_workspace_the_keys_work(
    review_desk, review, press_focused, name, wait_until
):
    review_desk.show_workspace(name)
    wait_until(lambda: review_desk.is_settled and review_desk.is_arranged)
    review_desk.show_workspace("Review")
    wait_until(lambda: review_desk.is_settled and review_desk.is_arranged)
    press_focused(Qt.Key.Key_1)
    assert len(verdicts(review)) == 1


def test_the_arrows_of_a_table_work_after_a_click_on_it_and_so_do_the_digits(
    review_desk, review, press_focused, wait_until
):
    review_desk._arranger.toggle("Objects", True)  # as a user who drags it here
    view = review_desk.panels.objects.view
    wait_until(lambda: is_in_sight(view) and review_desk.is_settled)
    view.scrollTo(view.model().index(0, 1))
    place = view.visualRect(view.model().index(0, 1)).center()
    QTest.mouseClick(view.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, place)
    review.settle()
    row = view.currentIndex().row()
    press_focused(Qt.Key.Key_Down)
    assert view.currentIndex().row() == row + 1
    press_focused(Qt.Key.Key_4)
    assert len(verdicts(review)) == 1


def test_a_floating_panel_has_the_keys_too(review_desk, review, press_focused, wait_until):
    dock = review_desk.dock("Review")
    dock.setFloating(True)
    try:
        wait_until(lambda: dock.isFloating() and review_desk.is_arranged)
        review.canvas.setFocus()
        press_focused(Qt.Key.Key_1)
        assert len(verdicts(review)) == 1
    finally:
        dock.setFloating(False)
        wait_until(lambda: review_desk.is_arranged)


def test_the_list_of_keys_has_them(review_desk):
    review_desk.panels.title.keys_clicked.emit()
    lines = review_desk.panels.keys.lines()
    review_desk.panels.keys.close()
    for number, verdict in enumerate(VERDICTS, start=1):
        words = f"verdict: {VERDICT_WORDS[verdict]}"
        assert (str(number), words) in lines
        assert (f"Alt+{number}", words) in lines
    for key in JUDGING_KEYS:
        assert (key_text(key.key), key.meaning) in lines
    assert {key_text(key.key) for key in JUDGING_KEYS} >= {"1", "5", "Space", "Enter"}


def test_colours_of_verdicts_are_not_those_of_statuses():
    colours = list(VERDICT_COLOURS.values())
    for colour in colours:
        for status in STATUS_COLOURS.values():
            apart = deltaE_ciede2000(seen_as(colour, "normal"), seen_as(status, "normal"))
            assert apart >= 20
    for vision in VISIONS:
        for number, one in enumerate(colours):
            for other in colours[number + 1 :]:
                assert deltaE_ciede2000(seen_as(one, vision), seen_as(other, vision)) >= 15
