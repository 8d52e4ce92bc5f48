"""Windows that are closed while a slide is being read or evaluated."""

import gc
import subprocess
import sys
import weakref

import pytest

from napari_panoptic.viewer.layers.slide_view import _Arrivals
from tests.support.sandbox import sandbox
from tests.support.slides import HELD_UP_TO_PX, write_slide_cohort

CLOSED_EARLY = """
import gc, sys, time
from functools import partial

import napari
from qtpy.QtWidgets import QApplication

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.display.decoded_windows import DecodedWindows
from napari_panoptic.viewer.desk import nuclei as desk_module
from tests.support.waiting import wait_until

begin, read = Session.__init__, DecodedWindows._read


def begin_with_slides(self, *args, **options):
    begin(self, *args, **options)
    self.held_up_to_px = int(sys.argv[2])


reads = []


def read_slowly(self, place):
    reads.append(place)
    time.sleep(0.05)
    return read(self, place)


wait_until = partial(wait_until, meanwhile=QApplication.processEvents)
Session.__init__ = begin_with_slides
DecodedWindows._read = read_slowly
desk_module.PARTS = ()  # the panels beside the table have no part in this
cohort = open_cohort(sys.argv[1])
for number in range(10):
    before = len(reads)
    viewer = napari.Viewer()
    desk = desk_module.desk_of(viewer)
    desk.show_cohort(cohort)
    link = desk.link
    if number % 2:
        wait_until(lambda: link.loader.is_busy, "the slide is not evaluated")
    else:
        wait_until(lambda: link.slides.is_on, "the slide is not shown")
        viewer.scene.camera.zoom = 1.0
        # On a busy machine all may be read before anybody looks.
        wait_until(lambda: len(reads) > before, "no pixels are read")
    if number % 4 < 2:
        desk.close()
    viewer.close()
    del viewer, desk, link
    gc.collect()
    QApplication.processEvents()
print("all closed")
"""


@pytest.mark.long
@pytest.mark.usefixtures("qtbot")
def test_ten_windows_closed_while_a_slide_is_read_or_evaluated_end_cleanly(tmp_path):
    # In a process of its own, whose end is part of it: threads that outlive what
    # they tell, or the interpreter, bring it down.
    write_slide_cohort(tmp_path / "slides")
    arguments = [str(tmp_path / "slides"), str(HELD_UP_TO_PX)]
    around = tmp_path / "around"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CLOSED_EARLY, *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=sandbox(around),
        cwd=around / "cwd",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all closed" in done.stdout
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.usefixtures("qapp")
def test_whoever_tells_of_pixels_is_there_as_long_as_they_may_come():
    """Fails where only the signal is held: it does not keep alive what sends it."""
    arrivals = _Arrivals()
    there, tell = weakref.ref(arrivals), arrivals.teller("objects")
    del arrivals
    gc.collect()
    assert there() is not None
    tell()
    del tell
    gc.collect()
    assert there() is None
