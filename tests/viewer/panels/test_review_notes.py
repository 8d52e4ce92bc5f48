"""Notes: the keyboard returns to the image, and a note without a verdict is kept."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.values.vocabulary import Side

pytestmark = pytest.mark.long


def type_note(review, text):
    review.note.setFocus()
    QTest.keyClicks(review.note, text)


def test_after_a_verdict_the_keys_are_those_of_the_image(review):
    review.step()
    type_note(review, "pale")
    review.give(1, review.note)
    (record,) = review.stored()
    assert record.note == "pale"
    assert review.panel.window().focusWidget() is review.canvas
    review.settle()
    following = review.session.selection
    review.press_where_the_focus_is(Qt.Key.Key_N)
    review.settle()
    assert review.session.selection != following
    assert review.note.toPlainText() == ""


def test_a_clicked_button_returns_the_keys(review):
    review.step()
    review.button("both wrong").setFocus()
    QTest.mouseClick(review.button("both wrong"), Qt.MouseButton.LeftButton)
    assert review.panel.window().focusWidget() is review.canvas


def test_escape_leaves_every_field(review):
    review.step()
    review.open_settings()
    for field in (review.note, review.tags, review.name):
        field.setFocus()
        review.press_where_the_focus_is(Qt.Key.Key_Escape)
        assert review.panel.window().focusWidget() is review.canvas


def test_a_note_without_a_verdict_is_kept_for_its_object(review):
    review.step()
    first = review.session.selection
    type_note(review, "blurred")
    review.press(Qt.Key.Key_Escape, widget=review.note)
    review.step()
    review.settle()  # it may be in the other region
    assert review.note.toPlainText() == ""
    review.press(Qt.Key.Key_N, Qt.KeyboardModifier.ShiftModifier)
    review.settle()
    assert review.session.selection == first
    assert review.note.toPlainText() == "blurred"
    assert "draft" in review.texts()
    review.give(3)
    (record,) = review.stored()
    assert record.note == "blurred"
    review.session.select(first)
    assert review.note.toPlainText() == "blurred"
    assert "draft" not in review.texts()


def test_such_a_note_outlives_the_window(review):
    review.step()
    first = review.session.selection
    type_note(review, "out of focus")
    review.start_again()
    review.enter_name("Grace")
    review.session.select(first)
    assert review.note.toPlainText() == ""  # others' notes are not shown
    review.enter_name("Ada")
    assert review.note.toPlainText() == "out of focus"
    review.give(1)
    assert [record.note for record in review.stored()] == ["out of focus"]


def test_a_note_typed_before_the_name_becomes_the_reviewer_s(review):
    review.start_again()
    review.step()
    type_note(review, "fold")
    review.enter_name("Ada")
    assert review.note.toPlainText() == "fold"
    review.give(1)
    assert [record.note for record in review.stored()] == ["fold"]


def test_the_note_of_another_reviewer_is_not_taken_over(review):
    review.session.select_row(Side.REFERENCE, 0)
    type_note(review, "mine")
    review.give(1, review.note)
    review.session.select_row(Side.REFERENCE, 0)
    assert review.note.toPlainText() == "mine"
    review.enter_name("Grace")
    assert review.note.toPlainText() == ""
