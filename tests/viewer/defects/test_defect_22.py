"""A timer of the review that ran on after its cohort, and garbage held back by the team grid."""

import gc

import pytest
from qtpy.compat import isalive
from qtpy.QtCore import QTimer

from napari_panoptic.viewer.panels.review.files import POLL_MS
from napari_panoptic.viewer.panels.teams.presenter import TeamsPresenter
from napari_panoptic.viewer.state.modes import ViewMode


@pytest.mark.long
def test_defect_22_no_timer_of_the_review_outlives_its_cohort(desk):
    def running():
        """Return the running timers that look at the review file."""
        timers = [each for each in gc.get_objects() if isinstance(each, QTimer) and isalive(each)]
        return [timer for timer in timers if timer.isActive() and timer.interval() == POLL_MS]

    assert running()
    desk.link.close()
    assert not running()


@pytest.mark.long
def test_defect_22_side_by_side_leaves_the_garbage_collector_alone(desk, wait_until):
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        teams = desk.presenter(TeamsPresenter)
        teams.set_mode(ViewMode.GRID)
        wait_until(lambda: desk.is_settled and teams.grid.is_on)
        assert gc.get_freeze_count() > frozen / 2  # some of them were deleted since
    finally:
        gc.unfreeze()
