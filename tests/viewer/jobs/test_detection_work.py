"""Frames of detections, read and counted in other threads, without a window."""

import sys
from threading import Event

import pytest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.detections.evaluate import load_frame
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.samples.write import write_detection_sample
from napari_panoptic.viewer.jobs import detection_work as work
from napari_panoptic.viewer.jobs.detection_work import FrameCounter, FrameReader

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = write_detection_sample(tmp_path_factory.mktemp("detections") / "sample")
    return open_detection_cohort(folder)


@pytest.fixture
def shown():
    """Collect the frames that are to be shown."""
    return []


@pytest.fixture
def reader(cohort, shown):
    reader = FrameReader(cohort, shown.append, lambda _read: None)
    yield reader
    reader.close()


class Picture:
    """Stands for an image whose file is open."""

    def __init__(self):
        self.is_closed = False

    def close(self):
        """Close the file."""
        self.is_closed = True


@pytest.mark.long
def test_the_image_of_a_frame_that_comes_too_late_is_closed(
    cohort, reader, shown, wait_until, monkeypatch
):
    pictures, begun, may_go_on = [], Event(), Event()

    def read(_path):
        picture = Picture()
        pictures.append(picture)
        if len(pictures) == 1:
            begun.set()
            assert may_go_on.wait(30)
        return picture

    monkeypatch.setattr(work, "read_image", read)
    first, second = cohort.frames[:2]
    reader.want(first)
    wait_until(begun.is_set)
    reader.want(second)
    wait_until(lambda: not reader.is_busy)
    may_go_on.set()
    wait_until(lambda: pictures[0].is_closed)
    assert [each.name for each in shown] == [second.name]
    assert [picture.is_closed for picture in pictures] == [True, False]


@pytest.mark.parametrize("error", [PanopticError("no such file"), OSError("no such file")])
def test_a_frame_that_cannot_be_read_says_why(
    cohort, reader, shown, wait_until, monkeypatch, error
):
    def fail(*_asked):
        raise error

    monkeypatch.setattr(work, "load_frame", fail)
    reader.want(cohort.frames[0])
    wait_until(lambda: not reader.is_busy)
    (read,) = shown
    assert (read.loaded, read.error) == (None, "no such file")


@pytest.mark.qt_no_exception_capture
def test_counting_that_fails_is_not_started_again(cohort, wait_until, monkeypatch):
    raised, ended = [], []
    monkeypatch.setattr(sys, "excepthook", lambda *error: raised.append(error[0]))

    def fail(*_asked):
        raise ZeroDivisionError

    frames = [load_frame(cohort, cohort.frames[0])]
    counter = FrameCounter(lambda _counts: None, lambda: ended.append(counter.is_busy))
    with monkeypatch.context() as broken:
        broken.setattr(work, "count_frame_or_why", fail)
        counter.start(frames, 8.0)
        wait_until(lambda: raised)
    assert (counter.is_busy, ended) == (False, [])
    counter.start(frames, 8.0)
    wait_until(lambda: ended)
    assert (raised, ended) == ([ZeroDivisionError], [False])
