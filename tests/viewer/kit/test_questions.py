"""Questions before something is lost: Enter and Esc lose nothing."""

import pytest
from qtpy.QtCore import Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLineEdit, QWidget

from napari_panoptic.viewer.kit.questions import (
    MOST_LISTED,
    BoxQuestion,
    ask,
    folder_from,
    is_confirmed,
    may_replace,
)
from tests.viewer.finding import answering

KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Escape)


@pytest.fixture
def parent(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    return parent


def answer_with(key):
    QTimer.singleShot(0, lambda: QTest.keyClick(QApplication.activeModalWidget(), key))


@pytest.mark.parametrize("key", KEYS)
def test_enter_and_escape_discard_nothing(parent, key):
    answer_with(key)
    assert not is_confirmed(parent, "Discard edits", "Discard them?")


@pytest.mark.parametrize("key", KEYS)
def test_enter_and_escape_replace_no_file(parent, tmp_path, key):
    (tmp_path / "a.csv").write_text("")
    answer_with(key)
    assert not may_replace(parent, [tmp_path / "a.csv"])


def type_and_press_enter(name):
    dialog = QApplication.activeModalWidget()
    field = dialog.findChild(QLineEdit)
    field.clear()
    QTest.keyClicks(field, name)
    QTest.keyClick(field, Qt.Key.Key_Return)


@pytest.mark.parametrize("name", ["there", "new", "new/and deeper"])
def test_a_folder_to_write_into_may_be_new(parent, tmp_path, name):
    (tmp_path / "there").mkdir()
    QTimer.singleShot(0, lambda: type_and_press_enter(name))
    assert folder_from(parent, "Corrected annotation", tmp_path) == tmp_path / name
    assert (tmp_path / name).is_dir()


def test_a_folder_that_was_not_chosen_is_not_made(parent, tmp_path):
    def cancel():
        dialog = QApplication.activeModalWidget()
        QTest.keyClicks(dialog.findChild(QLineEdit), "new")
        dialog.reject()

    QTimer.singleShot(0, cancel)
    assert folder_from(parent, "Corrected annotation", tmp_path) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", KEYS)
def test_enter_and_escape_mean_the_last_answer(parent, key):
    answer_with(key)
    answers = {"Leave them": "left", "Take them": "taken", "Cancel": None}
    assert ask(parent, BoxQuestion("Pixels", "Whose are they?", answers)) is None


def test_another_button_can_be_the_usual_one_and_escape_stays_harmless(parent):
    question = BoxQuestion(
        "Edits", "Not saved:", {"Save…": 1, "Discard": 2, "Stay": 3}, usual="Save…"
    )
    answer_with(Qt.Key.Key_Return)
    assert ask(parent, question) == 1
    answer_with(Qt.Key.Key_Escape)
    assert ask(parent, question) == 3


def test_a_button_gives_its_answer_and_what_would_be_lost_is_listed(parent):
    lost = [f"edit {number}" for number in range(MOST_LISTED + 2)]
    question = BoxQuestion("Edits", "Not saved:", {"Discard": "gone", "Stay": "there"}, lost=lost)
    with answering("Discard") as asked:
        assert ask(parent, question) == "gone"
    (text,) = asked
    assert text.split("\n") == ["Not saved:", *lost[:MOST_LISTED], "… and 2 more"]
