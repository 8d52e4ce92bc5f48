"""Hints stand above the image, and nobody's message takes the keys from a text field."""

import pytest
from napari.utils.notifications import NotificationSeverity
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.shown import show_info, show_warning
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.viewer.finding import canvas_of

toasts = pytest.importorskip("napari._qt.dialogs.qt_notification")
NOTE = "dark, irregular: 1 2 3; split ajd"


@pytest.fixture
def note(open_desk, wait_until):
    """The note of the selected object in the panel *Review*, with the focus."""
    desk, window = open_desk, open_desk.viewer.window._qt_window
    desk.show_workspace("Review")
    window.activateWindow()
    wait_until(lambda: window.isActiveWindow() and desk.is_settled and desk.is_arranged)
    desk.session.select_row(Side.REFERENCE, 0)
    field = desk.docked()["Review"].note
    field.clear()
    field.setFocus()
    yield field
    field.clear()
    canvas_of(desk.viewer).setFocus()


def toast(desk, text="Another plugin has finished."):
    """Show a message of napari as other code does."""
    shown = toasts.NapariQtNotification(
        text, NotificationSeverity.INFO, parent=canvas_of(desk.viewer)
    )
    shown.show()
    return shown


def state(desk):
    chosen = desk.session.selection
    pair = desk.session.evaluation.pair
    review = desk.presenter(ReviewPresenter).reviewing
    return (
        desk.session.snapshot.region.name,
        (chosen.side, chosen.id),
        pair.reference.ids.tolist(),
        pair.prediction.ids.tolist(),
        {} if review.judged is None else dict(review.judged.records),
    )


def type_where_the_focus_is(text):
    for letter in text:
        QTest.keyClicks(QApplication.focusWidget(), letter)
        yield


def test_every_letter_is_in_the_note_while_a_toast_opens_and_closes(open_desk, note):
    """The rest of the note became commands: one split an annotated nucleus."""
    before, opened = state(open_desk), None
    for number, _ in enumerate(type_where_the_focus_is(NOTE)):
        if number % 6 == 2:
            opened = toast(open_desk)
        elif opened is not None and number % 6 == 5:
            opened.close()
    assert note.toPlainText() == NOTE
    assert state(open_desk) == before


def test_every_letter_is_in_the_note_while_a_verdict_is_refused(open_desk, note):
    before = state(open_desk)
    for number, _ in enumerate(type_where_the_focus_is(NOTE)):
        if number == 8:
            show_info("Verdict not stored: no newly selected object.")
            show_warning("Something else was refused.")
    assert note.toPlainText() == NOTE
    assert state(open_desk) == before
    assert open_desk.panels.title.selected.text() == "Something else was refused."


@pytest.mark.usefixtures("note")
def test_the_image_keeps_the_focus_that_a_click_gave_it(open_desk):
    opened = toast(open_desk)
    QTest.mouseClick(canvas_of(open_desk.viewer), Qt.MouseButton.LeftButton)
    canvas_of(open_desk.viewer).setFocus(Qt.FocusReason.MouseFocusReason)
    opened.close()
    assert QApplication.focusWidget() is canvas_of(open_desk.viewer)


@pytest.mark.usefixtures("note")
def test_a_hint_is_gone_with_the_next_object(open_desk):
    """Toasts stayed, also after what they said was over."""
    n_toasts = len(toasts.NapariQtNotification._instances)
    show_info("Verdict not stored: no newly selected object.")
    title = open_desk.panels.title
    assert title.selected.text().startswith("Verdict not stored")
    open_desk.session.select_row(Side.REFERENCE, 1)
    assert "not stored" not in title.selected.text()
    assert len(toasts.NapariQtNotification._instances) == n_toasts


def test_a_hint_that_is_cut_is_readable_in_whole(open_desk, note):
    long = "The folder is not writable for you; nothing was changed. " * 5
    show_info(long)
    assert open_desk.messages.text().strip() == long.strip()
    assert QApplication.focusWidget() is note
