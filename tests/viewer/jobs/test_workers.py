"""What works in other threads or later ends with what it served."""

import gc
import weakref

import pytest
from superqt.utils import create_worker

from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.jobs.workers import connect_worker


def numbers():
    yield 1
    yield 2
    return 3


@pytest.mark.usefixtures("qtbot")
def test_slots_are_told_the_worker_and_do_not_keep_it(wait_until):
    told = []
    worker = create_worker(numbers, _start_thread=False)
    known = weakref.ref(worker)

    def note(worker, *values):
        told.append((worker is known(), *values))

    connect_worker(worker, yielded=note, returned=note, finished=note)
    worker.start()
    del worker
    gc.disable()  # PySide has circles that it cannot see
    try:
        wait_until(lambda: known() is None, "the worker is kept")
    finally:
        gc.enable()
    assert told == [(True, 1), (True, 2), (True, 3), (True,)]


@pytest.mark.usefixtures("qtbot")
def test_an_object_whose_method_is_a_slot_is_not_kept():
    class Receiver:
        def note(self, worker, *values):
            pass

    receiver = Receiver()
    known = weakref.ref(receiver)
    worker = create_worker(numbers, _start_thread=False)
    connect_worker(worker, yielded=receiver.note, finished=receiver.note)
    del receiver
    assert known() is None
    worker.yielded.emit(1)  # the method is not called


def test_no_timer_runs_on_where_a_layer_is_not_watched_any_more(desk, close_desk):
    edits = next(part for part in desk.parts if part.title == "Edits").edits
    edits.set_on(True)
    watch = edits._watches[Side.PREDICTION]
    watch.layer.data = watch.layer.data.copy()
    assert not watch.is_resting
    close_desk(desk)
    assert watch.is_resting
