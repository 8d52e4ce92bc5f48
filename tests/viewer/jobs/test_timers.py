"""Timers that end with what they serve."""

import pytest
from qtpy.QtCore import QCoreApplication, QEvent, QObject
from qtpy.QtTest import QTest

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.viewer.finding import handle_events


@pytest.mark.usefixtures("qapp", "qtbot")
class TestSingleShot:
    def test_calls_once_after_the_last_start(self, wait_until):
        calls = []
        timer = single_shot(20, lambda: calls.append(1))
        for _ in range(3):
            timer.start()
        wait_until(lambda: calls)
        handle_events()
        assert not timer.isActive()
        assert calls == [1]

    def test_nothing_is_called_after_it_was_stopped(self):
        calls = []
        timer = single_shot(5, lambda: calls.append(1))
        timer.start()
        stop_timers(timer)
        assert not timer.isActive()
        QTest.qWait(10)  # nothing may happen, however long it takes
        assert calls == []

    def test_it_ends_with_its_parent(self):
        calls, parent = [], QObject()
        timer = single_shot(5, lambda: calls.append(1), parent)
        timer.start()
        parent.deleteLater()
        QCoreApplication.sendPostedEvents(parent, QEvent.Type.DeferredDelete)
        QTest.qWait(10)  # nothing may happen, however long it takes
        assert calls == []
        stop_timers(timer)  # is gone, which is no error


@pytest.mark.long
def test_no_timer_runs_on_where_a_layer_is_not_watched_any_more(new_desk, close_desk):
    edits = new_desk.presenter(EditsPresenter).edits
    edits.set_on(True)
    watch = edits._watches[Side.PREDICTION]
    watch.layer.data = watch.layer.data.copy()
    assert not watch.is_resting
    close_desk(new_desk)
    assert watch.is_resting
