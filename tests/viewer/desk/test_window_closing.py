"""A desk in a window of its own: neither leaves a widget behind."""

import pytest
from qtpy.compat import isalive
from qtpy.QtWidgets import QAbstractItemView

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import desk_of


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
    wait_until(lambda: desk.is_settled and desk.link.scene.stand_in is not None)
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
def test_a_desk_that_is_closed_leaves_no_model_to_garbage_collection(desk, close_desk, qapp):
    views = [each for each in qapp.allWidgets() if isinstance(each, QAbstractItemView)]
    models = [view.model() for view in views]
    own = [model for model in models if type(model).__module__.startswith("napari_panoptic")]
    assert desk.panels.objects.model in own
    assert len(own) > 10
    assert all(isalive(model) for model in own)
    close_desk(desk)
    assert not any(isalive(model) for model in own)
