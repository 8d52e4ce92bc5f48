"""The next failure is centred and enlarged."""

from itertools import product

import pytest
from qtpy.QtCore import Qt

from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.viewer.state.preferences import PREFERENCES

pytestmark = pytest.mark.long

SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def fitted(review):
    """Give the window with the whole region in view."""
    review.viewer.reset_view()
    return review


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.NoModifier, SHIFT])
def test_n_brings_every_failure_into_view(fitted, modifier):
    for _ in range(fitted.failures()):
        fitted.press(Qt.Key.Key_N, modifier)
        size, away = fitted.size_on_screen()
        assert max(size) >= 64
        assert away < 1


def test_so_does_a_verdict_that_leads_on(fitted):
    fitted.press(Qt.Key.Key_N)
    fitted.give(1)
    size, away = fitted.size_on_screen()
    assert max(size) >= 64
    assert away < 1


def test_the_only_failure_is_brought_back(fitted):
    objects, classes = fitted.desk.panels.objects, fitted.cohort.scheme.names
    for name, status in product(classes, ("FN", "FP", "misclassified")):
        objects.set_filter(ObjectFilter(classes=frozenset({name}), statuses=frozenset({status})))
        if fitted.failures() == 1:
            break
    assert fitted.failures() == 1
    chosen = None
    while chosen is None or chosen != fitted.session.selection:  # also those of the other region
        chosen = fitted.session.selection
        fitted.press(Qt.Key.Key_N)
        fitted.settle()
    fitted.viewer.reset_view()
    fitted.press(Qt.Key.Key_N)
    assert fitted.session.selection == chosen
    assert max(fitted.size_on_screen()[0]) >= 64


def test_a_zoom_that_suits_is_left_alone(fitted):
    fitted.press(Qt.Key.Key_N)
    fitted.viewer.scene.camera.zoom *= 1.5
    zoom = fitted.viewer.scene.camera.zoom
    fitted.session.select(None)
    fitted.press(Qt.Key.Key_N)  # the same failure
    assert fitted.viewer.scene.camera.zoom == zoom


def test_the_user_turns_it_off(fitted):
    before = fitted.viewer.scene.camera.zoom
    switch = fitted.desk.panels.queue.follow
    assert switch.isChecked()
    switch.trigger()
    assert not PREFERENCES.follow
    for _ in range(3):
        fitted.press(Qt.Key.Key_N)
    assert fitted.viewer.scene.camera.zoom == before
    switch.trigger()
    fitted.press(Qt.Key.Key_N)
    fitted.settle()  # it may be in the other region
    assert max(fitted.size_on_screen()[0]) >= 64
