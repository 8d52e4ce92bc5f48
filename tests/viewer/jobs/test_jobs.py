"""Computations in other threads: which answers arrive, what ends them, and what they keep alive."""

import gc
import subprocess
import sys
import threading
import time
import weakref
from threading import Event

import pytest
from qtpy.QtCore import QThreadPool
from superqt.utils import WorkerBase

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.viewer.jobs import jobs
from napari_panoptic.viewer.jobs.jobs import Job, Latest, Several, Stream, UnforeseenError
from tests.support.sandbox import sandbox
from tests.viewer.finding import handle_events

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")
PATIENCE_S = 30


@pytest.fixture
def shown(monkeypatch):
    """Collect the errors that are shown to the user."""
    shown = []
    monkeypatch.setattr(jobs, "show_error", shown.append)
    return shown


@pytest.fixture
def raised(monkeypatch):
    """Collect the kinds of errors that napari would show."""
    raised = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: raised.append(error[0]))
    return raised


@pytest.fixture
def settle(wait_until, qapp):
    """Return a function that waits until no thread computes and all is handed over."""

    def wait():
        handle_events()  # workers begin a moment after they are started
        wait_until(lambda: QThreadPool.globalInstance().activeThreadCount() == 0)
        qapp.processEvents()

    return wait


class Gate:
    """Computes a value as soon as it may."""

    def __init__(self, value):
        self.value, self.begun, self.may_end = value, Event(), Event()

    def __call__(self):
        self.begun.set()
        assert self.may_end.wait(PATIENCE_S)
        return self.value


def fail(error):
    raise error


def steps(*values):
    """Return what yields values, and then raises if the last one is an error."""

    def generate(_job):
        for value in values:
            if isinstance(value, Exception):
                raise value
            yield value

    return generate


class TestLatest:
    def test_computes_elsewhere_and_answers_on_the_main_thread(self, wait_until):
        threads = []
        latest = Latest(lambda thread: threads.extend([thread, threading.current_thread()]))
        latest.start(threading.current_thread)
        wait_until(lambda: not latest.is_busy)
        elsewhere, here = threads
        assert here is threading.main_thread()
        assert elsewhere is not here

    def test_the_newest_answer_counts_and_those_between_are_not_computed(self, wait_until):
        taken, computed = [], []
        latest = Latest(taken.append)
        first = Gate("first")
        latest.start(first)
        wait_until(first.begun.is_set)
        for name in ("second", "third", "fourth"):
            latest.start(lambda name=name: computed.append(name) or name)
        assert latest.is_busy
        first.may_end.set()
        wait_until(lambda: not latest.is_busy)
        assert taken == computed == ["fourth"]

    def test_none_is_an_answer_too(self, wait_until):
        taken = []
        latest = Latest(taken.append)
        latest.start(lambda: None)
        wait_until(lambda: not latest.is_busy)
        assert taken == [None]

    def test_each_step_is_an_answer_until_something_newer_is_wanted(self, wait_until, settle):
        taken, may_go_on = [], Event()
        latest = Latest(taken.append)

        def generate(_job):
            yield "picture"
            assert may_go_on.wait(PATIENCE_S)
            yield "figures"

        latest.start_steps(generate)
        wait_until(lambda: taken == ["picture"])
        latest.start_steps(steps("other"))
        may_go_on.set()
        wait_until(lambda: not latest.is_busy)
        settle()
        assert taken == ["picture", "other"]

    def test_dropped_it_is_not_busy_and_answers_nothing(self, wait_until, settle):
        taken = []
        latest = Latest(taken.append)
        gate = Gate("dropped")
        latest.start(gate)
        wait_until(gate.begun.is_set)
        latest.start(lambda: "waiting")
        latest.drop()
        assert not latest.is_busy
        gate.may_end.set()
        settle()
        assert taken == []
        latest.start(lambda: "next")
        wait_until(lambda: not latest.is_busy)
        assert taken == ["next"]

    def test_closed_it_starts_nothing_more(self, settle):
        taken, gate = [], Gate("late")
        latest = Latest(taken.append)
        latest.start(gate)
        latest.close()
        latest.start(lambda: "after")
        assert not latest.is_busy
        gate.may_end.set()
        settle()
        assert taken == []

    def test_an_outdated_error_is_not_shown(self, wait_until, shown):
        taken, begun, may_fail = [], Event(), Event()

        def compute():
            begun.set()
            assert may_fail.wait(PATIENCE_S)
            fail(PanopticError("outdated"))

        latest = Latest(taken.append)
        latest.start(compute)
        wait_until(begun.is_set)
        latest.start(lambda: "newer")
        may_fail.set()
        wait_until(lambda: not latest.is_busy)
        assert (taken, shown) == (["newer"], [])


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "words"),
        [
            (PanopticError("expected a mask, found a hole"), "expected a mask, found a hole"),
            (OSError("the disk is gone"), "the disk is gone"),
            (MemoryError(), "there is not enough memory"),
        ],
    )
    def test_foreseen_errors_are_shown_and_end_the_job(self, wait_until, shown, error, words):
        latest = Latest(print)
        latest.start(lambda: fail(error))
        wait_until(lambda: not latest.is_busy)
        assert shown == [words]

    def test_they_are_handed_to_the_caller_who_wants_them(self, wait_until, shown):
        failed = []
        latest = Latest(print, failed=failed.append)
        error = PanopticError("expected a mask, found a hole")
        latest.start(lambda: fail(error))
        wait_until(lambda: not latest.is_busy)
        assert (failed, shown) == ([error], [])

    # Superqt takes a RuntimeError for a deleted window, and would never end its worker.
    @pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError, StopIteration])
    @pytest.mark.qt_no_exception_capture
    def test_unforeseen_errors_end_every_job_and_are_raised(self, wait_until, shown, raised, error):
        failed, ended = [], []
        latest = Latest(print, failed=failed.append)
        stream = Stream(print, failed=failed.append, ended=lambda: ended.append("stream"))
        several = Several(ended=lambda: ended.append("several"))
        latest.start(lambda: fail(error()))
        stream.start(steps(error()))
        several.start(lambda: fail(error()), print, failed.append)
        wait_until(lambda: not (latest.is_busy or stream.is_busy or several.is_busy))
        assert [type(each) for each in failed] == [UnforeseenError] * 3
        assert sorted(ended) == ["several", "stream"]
        assert len(raised) == 3
        assert shown == []

    @pytest.mark.qt_no_exception_capture
    def test_napari_shows_unforeseen_errors_alone(self, wait_until, shown, raised):
        latest = Latest(print)
        latest.start(lambda: fail(ZeroDivisionError()))
        wait_until(lambda: not latest.is_busy)
        assert (shown, raised) == ([], [ZeroDivisionError])

    @pytest.mark.qt_no_exception_capture
    def test_after_cancelling_no_error_is_raised(self, wait_until, settle, shown, raised):
        begun, may_fail = Event(), Event()

        def generate(_job):
            begun.set()
            assert may_fail.wait(PATIENCE_S)
            yield fail(ZeroDivisionError())

        stream = Stream(print)
        stream.start(generate)
        wait_until(begun.is_set)
        stream.stop()
        may_fail.set()
        settle()
        assert (shown, raised) == ([], [])


class TestStream:
    def test_values_come_in_order_and_then_the_end(self, wait_until):
        told = []
        stream = Stream(told.append, ended=lambda: told.append("end"))
        stream.start(steps(1, 2, 3))
        wait_until(lambda: not stream.is_busy)
        assert told == [1, 2, 3, "end"]

    def test_an_error_comes_after_the_values_and_before_the_end(self, wait_until):
        told = []
        stream = Stream(
            told.append,
            failed=lambda error: told.append(str(error)),
            ended=lambda: told.append("end"),
        )
        stream.start(steps(1, PanopticError("no more")))
        wait_until(lambda: not stream.is_busy)
        assert told == [1, "no more", "end"]

    @pytest.mark.parametrize("end", [Stream.stop, Stream.close])
    def test_stopped_it_hands_over_nothing_more(self, wait_until, settle, end):
        told, dropped, begun, may_go_on = [], [], Event(), Event()

        def generate(job):
            yield 1
            begun.set()
            assert may_go_on.wait(PATIENCE_S)
            yield job.is_wanted
            raise AssertionError

        stream = Stream(told.append, ended=lambda: told.append("end"), dropped=dropped.append)
        stream.start(generate)
        wait_until(lambda: begun.is_set() and told)
        end(stream)
        assert not stream.is_busy
        may_go_on.set()
        settle()
        assert told == [1]
        assert dropped == [False]

    def test_closed_it_starts_nothing_more(self, settle):
        told = []
        stream = Stream(told.append)
        stream.close()
        stream.start(steps(1))
        assert not stream.is_busy
        settle()
        assert told == []

    def test_started_again_only_the_new_values_count(self, wait_until, settle):
        told = []
        stream = Stream(told.append)
        old = Gate("old")
        stream.start(lambda _job: iter([old()]))
        wait_until(old.begun.is_set)
        stream.start(steps("new"))
        wait_until(lambda: not stream.is_busy)
        old.may_end.set()
        settle()
        assert told == ["new"]

    def test_the_newest_progress_arrives_but_not_all_of_it(self, wait_until, monkeypatch):
        monkeypatch.setattr(jobs, "PROGRESS_EVERY_MS", 20)
        told, may_end = [], Event()

        def generate(job):
            for done in range(1001):
                job.report(done, 1000)
            assert may_end.wait(PATIENCE_S)
            yield "value"

        stream = Stream(print, progressed=lambda *progress: told.append(progress))
        stream.start(generate)
        wait_until(lambda: (1000, 1000) in told)
        may_end.set()
        wait_until(lambda: not stream.is_busy)
        assert len(told) < 100

    def test_after_stopping_no_progress_arrives(self, wait_until, settle, monkeypatch):
        monkeypatch.setattr(jobs, "PROGRESS_EVERY_MS", 20)
        told, begun, may_end = [], Event(), Event()

        def generate(job):
            job.report("before")
            begun.set()
            assert may_end.wait(PATIENCE_S)
            job.report("after")
            yield "value"

        stream = Stream(print, progressed=told.append)
        stream.start(generate)
        wait_until(begun.is_set)
        stream.stop()
        may_end.set()
        settle()
        time.sleep(2.5 * jobs.PROGRESS_EVERY_MS / 1000)  # nothing may arrive, however late
        settle()
        assert told == []


class TestSeveral:
    def test_each_answer_comes_to_its_own_receiver(self, wait_until, shown):
        told = []
        several = Several(ended=lambda: told.append("end"))
        several.start(lambda: 1, lambda value: told.append(("one", value)))
        several.start(lambda: 2, lambda value: told.append(("other", value)))
        several.start(lambda: fail(PanopticError("third")), print)
        assert several.is_busy
        wait_until(lambda: not several.is_busy)
        assert set(told) == {("one", 1), ("other", 2), "end"}
        assert told.count("end") == 3
        assert shown == ["third"]


class Receiver:
    """Has methods that a job calls."""

    def __init__(self):
        self.told = []

    def take(self, _job, value):
        """Note a value."""
        self.told.append(value)

    def end(self, _job, error):
        """Note the end."""
        self.told.append(error)


class TestLifetime:
    def test_a_receiver_that_is_gone_is_not_kept_and_not_called(self, settle):
        receiver, gate = Receiver(), Gate(1)
        told, known = receiver.told, weakref.ref(receiver)
        Job(lambda _job: iter([gate()]), take=receiver.take, ended=receiver.end)
        del receiver
        assert known() is None
        gate.may_end.set()
        settle()
        assert told == []

    def test_without_its_owner_a_computation_ends_in_silence(self, settle, shown):
        taken, gate = [], Gate(1)
        latest = Latest(taken.append)
        latest.start(gate)
        known = weakref.ref(latest)
        del latest
        assert known() is None
        gate.may_end.set()
        settle()
        assert (taken, shown) == ([], [])

    def test_a_job_keeps_neither_its_worker_nor_what_it_computed_with(self, wait_until):
        receiver, material = Receiver(), Receiver()
        known = weakref.ref(material)
        job = Job(
            lambda _job, material=material: iter([len(material.told)]),
            take=receiver.take,
            ended=receiver.end,
        )
        (worker,) = WorkerBase._worker_set
        worker = weakref.ref(worker)
        del material
        gc.disable()  # PySide has circles that it cannot see
        try:
            wait_until(lambda: worker() is None and known() is None, "something is kept")
        finally:
            gc.enable()
        assert receiver.told == [0, None]
        assert job.is_wanted

    def test_cancelled_before_it_begins_a_job_computes_nothing(self, settle, monkeypatch):
        monkeypatch.setattr(WorkerBase, "start", lambda worker: delayed.append(worker))
        delayed, computed, receiver = [], [], Receiver()
        job = Job(lambda _job: iter([computed.append(1)]), take=receiver.take, ended=receiver.end)
        monkeypatch.undo()
        job.cancel()
        delayed.pop().start()
        settle()
        assert computed == []
        assert receiver.told == [None]


OUTLIVED = """
import atexit
import threading

atexit.register(lambda: print("the interpreter ends", flush=True))

from qtpy.QtCore import QCoreApplication
from napari_panoptic.viewer.jobs.jobs import Job

app, begun = QCoreApplication([]), threading.Event()

def work(job):
    begun.set()
    threading.main_thread().join()  # until the interpreter begins to end
    sum(number % 7 for number in range(3_000_000))
    print("the job ends", flush=True)
    yield 1

job = Job(work, take=lambda _job, _value: None, ended=lambda _job, _error: None)
begun.wait()
"""


def test_the_interpreter_waits_for_jobs_that_outlive_their_window(tmp_path):
    """In a napari of the user's, nobody else does: without, they bring the process down."""
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVED],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=sandbox(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["the job ends", "the interpreter ends"]
