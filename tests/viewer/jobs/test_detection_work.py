"""Frames of detections, read in other threads, without a window."""

from functools import partial
from threading import Event

import pytest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.viewer.jobs import detection_work as work
from napari_panoptic.viewer.jobs.detection_work import ReadFrame, read_with_image
from napari_panoptic.viewer.jobs.jobs import Stream

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")


@pytest.fixture
def shown():
    """Collect the frames that are to be shown."""
    return []


@pytest.fixture
def wanted(shown):
    wanted = Stream(shown.append, dropped=ReadFrame.close)
    yield wanted
    wanted.close()


class Picture:
    """Stands for an image whose file is open."""

    def __init__(self):
        self.is_closed = False

    def close(self):
        """Close the file."""
        self.is_closed = True


@pytest.mark.long
def test_the_image_of_a_frame_that_comes_too_late_is_closed(
    detection_cohort, wanted, shown, wait_until, monkeypatch
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
    first, second = detection_cohort.frames[:2]
    wanted.start(partial(read_with_image, detection_cohort, first))
    wait_until(begun.is_set)
    wanted.start(partial(read_with_image, detection_cohort, second))
    wait_until(lambda: not wanted.is_busy)
    may_go_on.set()
    wait_until(lambda: pictures[0].is_closed)
    assert [each.name for each in shown] == [second.name]
    assert [picture.is_closed for picture in pictures] == [True, False]


@pytest.mark.parametrize("error", [PanopticError("no such file"), OSError("no such file")])
def test_a_frame_that_cannot_be_read_says_why(
    detection_cohort, wanted, shown, wait_until, monkeypatch, error
):
    def fail(*_asked):
        raise error

    monkeypatch.setattr(work, "load_frame", fail)
    wanted.start(partial(read_with_image, detection_cohort, detection_cohort.frames[0]))
    wait_until(lambda: not wanted.is_busy)
    (read,) = shown
    assert (read.loaded, read.error) == (None, "no such file")
