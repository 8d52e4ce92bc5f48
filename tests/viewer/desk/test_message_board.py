"""Messages are readable in whole, also where napari's own place for them is hidden."""

import threading

import pytest
from napari.settings import get_settings
from napari.utils.notifications import notification_manager
from qtpy.QtCore import QCoreApplication, QEvent, QRect
from qtpy.QtWidgets import QMainWindow, QScrollArea, QToolButton, QWidget

from napari_panoptic.viewer.desk.message_board import MessageBoard
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.kit.shown import WrappedLabel, show_error, show_info, show_warning

LONG = " ".join(["The folder is not writable for you; nothing was changed."] * 5)


@pytest.fixture
def board(qtbot):
    window = QMainWindow()
    qtbot.addWidget(window)
    window.setCentralWidget(QWidget())
    window.resize(1280, 800)
    window.show()
    board = MessageBoard(window, lambda: True)
    yield board
    board.release()


def is_in_window(board):
    window = board.parentWidget()
    return QRect(0, 0, window.width(), window.height()).contains(board.geometry())


def is_whole(board):
    label, area = board.findChild(WrappedLabel), board.findChild(QScrollArea)
    is_scrolled = area.verticalScrollBar().isVisible()
    has_room = label.height() >= label.heightForWidth(label.width())
    return is_in_window(board) and has_room and not is_scrolled


def test_a_short_message_is_left_to_napari_where_its_canvas_is_shown(board):
    show_info("Saved.")
    assert board.text() == ""
    board.parentWidget().centralWidget().hide()
    show_info("Saved.")
    assert "Saved." in board.text()


def test_messages_do_not_replace_each_other(board, wait_until):
    show_error(LONG)
    show_warning("Second.")
    assert board.text().index("Second.") < board.text().index(LONG)
    wait_until(lambda: is_whole(board))
    board.findChild(QToolButton).click()
    assert board.text() == ""
    show_error(f"Third. {LONG}")
    assert "Second." not in board.text()


def test_messages_follow_the_corner_of_a_smaller_window(board, wait_until):
    show_error(LONG)
    board.parentWidget().resize(500, 400)
    wait_until(lambda: is_whole(board))


def test_a_name_that_is_wider_than_the_board_is_broken(board, wait_until):
    show_error(f"/folder/{'name_of_a_file' * 12}.geojson: expected a label image. {LONG}")
    wait_until(lambda: is_whole(board))
    area = board.findChild(QScrollArea)
    assert board.findChild(WrappedLabel).width() <= area.viewport().width()
    assert "name_of_a_file" * 12 in board.text()


def test_more_than_the_window_holds_is_scrolled(board, wait_until):
    for number in range(30):
        show_error(f"{number}: {LONG}")
    wait_until(lambda: is_in_window(board))
    assert board.text().count(LONG) == 30


def test_the_same_message_is_listed_once_and_first(board):
    for _ in range(3):
        show_error(LONG)
    assert board.text().count(LONG) == 1
    show_warning("Second.")
    show_error(LONG)
    assert board.text().count(LONG) == 1
    assert board.text().index(LONG) < board.text().index("Second.")
    board.findChild(QToolButton).click()
    show_error(LONG)
    assert LONG in board.text()


def test_a_message_of_a_thread_is_shown(board, wait_until):
    thread = threading.Thread(target=show_error, args=[LONG])
    thread.start()
    thread.join()
    wait_until(lambda: LONG in board.text())


def test_the_level_of_napari_holds(board, monkeypatch):
    monkeypatch.setattr(get_settings().application, "gui_notification_level", "error")
    show_info(LONG)
    assert board.text() == ""
    show_error(LONG)
    assert LONG in board.text()


@pytest.mark.long
def test_a_desk_shows_whole_messages_in_every_workspace_until_it_closes(
    make_napari_viewer, cohort, wait_until, close_desk
):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1280, 800)
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    board = desk.messages
    for name in ("Inspect", "Failures", "Cohort"):
        desk.show_workspace(name)
        wait_until(lambda: desk.is_settled and desk.is_arranged)
        board.hide()
        show_error(LONG)
        assert LONG in board.text()
        wait_until(lambda: is_whole(board))
    window = board.parentWidget()
    listening = len(notification_manager.notification_ready.callbacks)
    close_desk(desk)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not window.findChildren(MessageBoard)
    assert len(notification_manager.notification_ready.callbacks) == listening - 1
