"""A desk in a window of its own: closing it leaves nothing behind, and other windows alone."""

import gc

import pytest
from qtpy.compat import isalive
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QAbstractItemView

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.panels.review.files import POLL_MS
from tests.viewer.in_a_process import run_in_process


def test_a_window_with_an_open_desk_leaks_nothing(make_napari_viewer, cohort, wait_until):
    viewer = make_napari_viewer(show=True, strict_qt="raise")
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)


def test_a_window_is_closed_with_teams_side_by_side_and_an_object_selected(
    make_napari_viewer, cohort, wait_until
):
    viewer = make_napari_viewer(show=True, strict_qt="raise")
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    desk.show_workspace("Teams")
    wait_until(lambda: desk.is_settled and desk.link.scene.alternative is not None)
    desk.session.select_row(Side.REFERENCE, 0)
    wait_until(lambda: desk.is_settled)
    viewer.close()
    assert desk.link is None


@pytest.mark.long
def test_a_window_closed_in_the_middle_of_work_leaks_nothing(
    make_napari_viewer, cohort, wait_until
):
    viewer = make_napari_viewer(show=True, strict_qt="raise")
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    session, loader, summary = desk.session, desk.link.loader, desk.link.summary
    assert loader.is_busy
    viewer.close()
    wait_until(lambda: not loader.is_busy and not summary.is_busy)
    wait_until(lambda: desk.link is None)
    assert session.snapshot is None
    assert len(session.region_changed) == 0


# Last: the window that its desk stands in stays open until the module ends.
def test_a_desk_that_is_closed_leaves_no_model_to_garbage_collection(new_desk, close_desk, qapp):
    views = [each for each in qapp.allWidgets() if isinstance(each, QAbstractItemView)]
    models = [view.model() for view in views]
    own = [model for model in models if type(model).__module__.startswith("napari_panoptic")]
    assert new_desk.panels.objects.model in own
    assert len(own) > 10
    assert all(isalive(model) for model in own)
    close_desk(new_desk)
    assert not any(isalive(model) for model in own)


ONE_CLOSED = """
import numpy as np

for has_desk in (True, False):
    closed = open_window()
    if has_desk:
        open_desk(closed)
    else:
        for _ in range(4):
            closed.add_labels(np.ones((200, 200), "u2"))
        draw()
    other = open_window()
    desk = open_desk(other)
    closed.close()
    draw()
    for _ in range(3):
        desk.link.panels.navigator.following.click()
        wait_until(lambda: desk.is_settled)
        desk.show_failure()
        draw()
    other.close()
    draw()
print("drawn")
"""


@pytest.mark.long
@pytest.mark.usefixtures("qtbot")
def test_closing_a_window_leaves_the_textures_of_another_alone(sample_folder, tmp_path):
    assert "drawn" in run_in_process(ONE_CLOSED, sample_folder, tmp_path / "around")


CLOSED_EARLY = """
from napari.qt import get_qapp
from qtpy.QtCore import QTimer
from napari_panoptic.viewer.launch import run_view
from napari_panoptic.viewer.desk.nuclei import desk_in

application, closed = get_qapp(), []


def close_when(is_time):
    viewer = napari.current_viewer()
    if viewer is not None and is_time(viewer):
        viewer.close()
        closed.append(viewer)
        timer.stop()


timer = QTimer()
for is_time in (
    lambda viewer: desk_in(viewer) is not None,
    lambda viewer: desk_in(viewer) is not None and desk_in(viewer).session is not None,
):
    timer.timeout.connect(lambda is_time=is_time: close_when(is_time))
    timer.start(0)
    assert run_view(sys.argv[1]) == 0
    timer.timeout.disconnect()
    draw()
assert len(closed) == 2
print("ended")
"""


@pytest.mark.long
@pytest.mark.usefixtures("qtbot")
def test_a_window_closed_at_its_start_ends_the_program_quietly(sample_folder, tmp_path):
    assert "ended" in run_in_process(CLOSED_EARLY, sample_folder, tmp_path / "around")


@pytest.mark.long
def test_no_timer_of_the_review_outlives_its_cohort(new_desk):
    def running():
        """Return the running timers that look at the review file."""
        timers = [each for each in gc.get_objects() if isinstance(each, QTimer) and isalive(each)]
        return [timer for timer in timers if timer.isActive() and timer.interval() == POLL_MS]

    assert running()
    new_desk.link.close()
    assert not running()
