"""Panels and keys of the desk are found again, hide nothing, and can be read."""

import pytest
from qtpy.QtCore import QPoint, QRect, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLabel, QMenu

from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.kit.widgets import dock_of, is_in_sight
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.viewer.contrast import READABLE, contrast, pixels_of
from tests.viewer.finding import canvas_of

pytestmark = pytest.mark.long

LEFT, ALT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier
CAPTIONS = ("PQ", "SQ", "DQ", "Matched", "Precision", "Recall")


def panels_of(desk):
    own = {"Regions": desk.panels.navigator, "Metrics": desk.panels.metrics}
    own["Objects"] = desk.panels.objects
    return {**own, **{part.title: part.widget for part in desk.parts}}


def test_the_list_of_keys_is_there_without_a_cohort(make_napari_viewer, close_desk, wait_until):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1280, 800)
    desk = desk_of(viewer)
    wait_until(lambda: is_in_sight(desk.panels.title))
    entries = (entry for menu in desk.strip.findChildren(QMenu) for entry in menu.actions())
    next(entry for entry in entries if entry.text().startswith("All keys")).trigger()
    assert desk.panels.keys.isVisible()
    assert ("N", "next failure, also of other regions") in desk.panels.keys.lines()
    # It lies over a column of panels and not over the image.
    canvas = canvas_of(desk.viewer)
    image = QRect(canvas.mapToGlobal(QPoint(0, 0)), canvas.size())
    assert not desk.panels.keys.frameGeometry().intersects(image)
    desk.panels.keys.close()
    close_desk(desk)


class TestClosedPanels:
    def test_the_window_menu_lists_panels_and_brings_them_back(self, open_desk):
        menu = open_desk.viewer.window.window_menu
        for title, widget in panels_of(open_desk).items():
            dock = dock_of(widget)
            dock.hide()
            action = next(action for action in menu.actions() if action.text() == title)
            action.trigger()
            QApplication.processEvents()
            assert is_in_sight(widget), f"{title} is not brought back"

    def test_every_panel_has_a_key_that_brings_it_back(self, open_desk):
        panels, canvas = panels_of(open_desk), canvas_of(open_desk.viewer)
        open_desk.panels.title.keys_clicked.emit()
        listed = dict(open_desk.panels.keys.lines())
        open_desk.panels.keys.close()
        letters = {"Regions": "X", "Metrics": "M", "Objects": "O", "Review": "J"}
        for title, letter in letters.items():
            dock_of(panels[title]).hide()
            assert f"Alt+{letter}" in listed or f"⌥+{letter}" in listed
            QTest.keyClick(canvas, getattr(Qt.Key, f"Key_{letter}"), ALT)
            QApplication.processEvents()
            assert is_in_sight(panels[title]), f"{title} is not brought back"
        assert all(part.key for part in open_desk.parts)


class TestUndo:
    def test_no_verdict_means_nothing_to_undo(self, open_desk, tmp_path, wait_until):
        part = open_desk.presenter(ReviewPresenter)
        open_desk.raise_part(part)
        part.reviewing.use(reviewer="Ada", path=tmp_path / "review.sqlite")
        open_desk.show_failure()
        part.give(Verdict.CANNOT_TELL)
        wait_until(part.panel.undo.isEnabled)
        QTest.mouseClick(part.panel.undo, LEFT)
        wait_until(lambda: not part.panel.undo.isEnabled())
        part.reviewing.close()

    def test_no_stroke_means_nothing_to_undo(self, open_desk, wait_until):
        part = open_desk.presenter(EditsPresenter)
        open_desk.raise_part(part)
        panel = part.panel
        QTest.mouseClick(panel.edit, LEFT)
        wait_until(lambda: part.edits.is_on and panel.new_object.isEnabled())
        assert not panel.undo.isEnabled()
        assert not panel.redo.isEnabled()
        layer = open_desk.viewer.layers.selection.active
        layer.paint((10, 10), 300)
        wait_until(panel.undo.isEnabled)
        QTest.mouseClick(panel.undo, LEFT)
        wait_until(lambda: not panel.undo.isEnabled() and panel.redo.isEnabled())
        QTest.mouseClick(panel.edit, LEFT)
        part.edits.discard()
        wait_until(lambda: open_desk.is_settled)


@pytest.mark.parametrize("size", [(1280, 800), (1600, 1000)])
def test_comparing_reviewers_leaves_the_image_in_sight(open_desk, wait_until, size):
    viewer = open_desk.viewer
    viewer.window.resize(*size)
    viewer.window._qt_window.show()
    part = open_desk.presenter(ReviewPresenter)
    open_desk.raise_part(part)
    wait_until(lambda: is_in_sight(part.panel))
    part.panel.compare.click()
    dialog = part.panel.compare_dialog
    assert dialog.isVisible()
    canvas = canvas_of(open_desk.viewer)
    image = QRect(canvas.mapToGlobal(QPoint(0, 0)), canvas.size())
    assert not dialog.frameGeometry().intersects(image)
    dialog.close()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_captions_can_be_read(open_desk, wait_until, theme):
    viewer, metrics = open_desk.viewer, open_desk.panels.metrics
    viewer.theme = theme
    metrics.fold.setChecked(True)
    dock = dock_of(metrics)
    dock.show()
    dock.raise_()
    wait_until(lambda: is_in_sight(metrics))
    captions = [
        label
        for label in metrics.findChildren(QLabel)
        if label.isVisible()
        and label.text() in ("PQ", "SQ", "DQ", "Matched", "Precision", "Recall")
    ]
    assert len(captions) >= len(CAPTIONS)
    for label in captions:
        pixels = pixels_of(label)
        ground = pixels[0, -1]
        assert contrast(pixels, ground) >= READABLE, label.text()
