"""Small things of the desk that kept users from finding, reading or using what is there."""

import numpy as np
import pytest
from qtpy.QtCore import QPoint, QRect, QSize, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLabel, QMenu, QToolButton, QWidget

from napari_panoptic.display.palette import TEAM_COLOURS
from napari_panoptic.report.plots.theme import Drawing, png_bytes
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.kit.choice_menus import FilterMenu
from napari_panoptic.viewer.kit.plot_view import PlotView
from napari_panoptic.viewer.kit.widgets import dock_of, is_in_sight
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.teams.panel import TeamsPanel
from tests.support.small_pairs import four_fates

LEFT, ALT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier
CAPTIONS = ("PQ", "SQ", "DQ", "Matched", "Precision", "Recall")
READABLE, SEEN = 4.5, 3.0
"""Contrasts that words, and marks, need (WCAG 2.2)."""


def luminance(pixels):
    """Give the relative luminance of sRGB pixels (..., 3), 0-255, as WCAG defines it."""
    scaled = np.asarray(pixels, float) / 255
    linear = np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def pixels_of(widget):
    image = widget.grab().toImage().convertToFormat(widget.grab().toImage().Format.Format_RGB888)
    bits = image.constBits()
    if hasattr(bits, "asarray"):
        bits = bits.asarray(image.sizeInBytes())
    rows = np.frombuffer(bytes(bits), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3)


def contrast(pixels, ground):
    """Give the highest contrast of any pixel with a ground."""
    found, behind = luminance(pixels).ravel(), float(luminance(ground))
    return float(((np.maximum(found, behind) + 0.05) / (np.minimum(found, behind) + 0.05)).max())


def canvas_of(desk):
    return desk._viewer.window._qt_viewer.canvas.native


def panels_of(desk):
    own = {"Regions": desk.panels.navigator, "Metrics": desk.panels.metrics}
    own["Objects"] = desk.panels.objects
    return {**own, **{part.title: part.widget for part in desk.parts}}


def test_defect_20_the_list_of_keys_is_there_without_a_cohort(
    make_napari_viewer, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1280, 800)
    desk = desk_of(viewer)
    wait_until(lambda: is_in_sight(desk.panels.title))
    button = next(b for b in desk.panels.title.findChildren(QToolButton) if b.text() == "?")
    QTest.mouseClick(button, LEFT)
    assert desk.panels.keys.isVisible()
    assert ("N", "next failure, also of other regions") in desk.panels.keys.lines()
    # It lies over a column of panels and not over the image.
    canvas = canvas_of(desk)
    image = QRect(canvas.mapToGlobal(QPoint(0, 0)), canvas.size())
    assert not desk.panels.keys.frameGeometry().intersects(image)
    desk.panels.keys.close()
    close_desk(desk)


class TestClosedPanels:
    @pytest.mark.long
    def test_defect_20_the_window_menu_lists_panels_and_brings_them_back(self, open_desk):
        menu = open_desk._viewer.window.window_menu
        for title, widget in panels_of(open_desk).items():
            dock = dock_of(widget)
            dock.hide()
            action = next(action for action in menu.actions() if action.text() == title)
            action.trigger()
            QApplication.processEvents()
            assert is_in_sight(widget), f"{title} is not brought back"

    @pytest.mark.long
    def test_defect_20_every_panel_has_a_key_that_brings_it_back(self, open_desk):
        panels, canvas = panels_of(open_desk), canvas_of(open_desk)
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
    def test_defect_20_no_verdict_means_nothing_to_undo(self, open_desk, tmp_path, wait_until):
        part = open_desk.presenter(ReviewPresenter)
        open_desk.raise_part(part)
        part.reviewing.use(reviewer="Ada", path=tmp_path / "review.sqlite")
        open_desk.show_failure()
        part.give(Verdict.CANNOT_TELL)
        wait_until(part.panel.undo.isEnabled)
        QTest.mouseClick(part.panel.undo, LEFT)
        wait_until(lambda: not part.panel.undo.isEnabled())
        part.reviewing.close()

    def test_defect_20_no_stroke_means_nothing_to_undo(self, open_desk, wait_until):
        part = open_desk.presenter(EditsPresenter)
        open_desk.raise_part(part)
        panel = part.panel
        QTest.mouseClick(panel.edit, LEFT)
        wait_until(lambda: part.edits.is_on and panel.new_object.isEnabled())
        assert not panel.undo.isEnabled()
        assert not panel.redo.isEnabled()
        layer = open_desk._viewer.layers.selection.active
        layer.paint((10, 10), 300)
        wait_until(panel.undo.isEnabled)
        QTest.mouseClick(panel.undo, LEFT)
        wait_until(lambda: not panel.undo.isEnabled() and panel.redo.isEnabled())
        QTest.mouseClick(panel.edit, LEFT)
        part.edits.discard()
        wait_until(lambda: open_desk.is_settled)


class TestMenus:
    @pytest.fixture
    def opened(self, qtbot):
        def open_menu(button):
            menu = button.menu()
            menu.popup(QPoint(100, 100))
            qtbot.waitUntil(menu.isVisible)
            return menu

        return open_menu

    def _tick(self, menu, number):
        action = menu.actions()[number]
        QTest.mouseClick(
            menu, LEFT, Qt.KeyboardModifier.NoModifier, menu.actionGeometry(action).center()
        )
        return action

    def test_defect_20_several_teams_are_ticked_without_opening_the_menu_again(self, qtbot, opened):
        panel = TeamsPanel()
        qtbot.addWidget(panel)
        panel.offer_teams(["Ada", "Bob", "Cyd"], ["Ada", "Bob", "Cyd"])
        button = next(b for b in panel.findChildren(QToolButton) if b.menu() is not None)
        menu = opened(button)
        self._tick(menu, 0)
        assert menu.isVisible()
        self._tick(menu, 1)
        assert menu.isVisible()
        assert panel.chosen_teams() == ("Cyd",)
        QTest.keyClick(menu, Qt.Key.Key_Escape)
        assert not menu.isVisible()

    def test_defect_20_filters_stay_open_too(self, qtbot, opened):
        button = FilterMenu("status", ["TP", "FP", "FN"])
        qtbot.addWidget(button)
        menu: QMenu = opened(button)
        self._tick(menu, 0)
        QTest.keyClick(menu, Qt.Key.Key_Down)
        QTest.keyClick(menu, Qt.Key.Key_Space)
        assert menu.isVisible()
        assert len(button.checked()) == 1
        menu.close()


@pytest.mark.parametrize("size", [(1280, 800), (1600, 1000)])
def test_defect_20_comparing_reviewers_leaves_the_image_in_sight(open_desk, wait_until, size):
    viewer = open_desk._viewer
    viewer.window.resize(*size)
    viewer.window._qt_window.show()
    part = open_desk.presenter(ReviewPresenter)
    open_desk.raise_part(part)
    wait_until(lambda: is_in_sight(part.panel))
    part.panel.compare.click()
    dialog = part.panel.compare_dialog
    assert dialog.isVisible()
    canvas = canvas_of(open_desk)
    image = QRect(canvas.mapToGlobal(QPoint(0, 0)), canvas.size())
    assert not dialog.frameGeometry().intersects(image)
    dialog.close()


@pytest.mark.parametrize("outcomes", [None, "some"])
@pytest.mark.parametrize("size", [(300, 90), (420, 150)])
def test_defect_20_nothing_overlaps_in_a_low_panel(qtbot, outcomes, size):
    table = ObjectTable()
    qtbot.addWidget(table)
    table.show_outcomes(None if outcomes is None else four_fates().outcomes)
    table.show()
    table.resize(QSize(*size))
    for _ in range(5):  # each line of buttons that is added changes the height
        QApplication.processEvents()
        table.resize(QSize(*size))
    shown = [w for w in table.findChildren(QWidget) if w.isVisible() and w.parent() is table]
    for number, one in enumerate(shown):
        for other in shown[number + 1 :]:
            assert not one.geometry().intersects(other.geometry())
    for one in shown:
        for child in one.findChildren(QWidget):
            if child.isVisible() and child.parent() is one and not isinstance(one, QLabel):
                assert one.rect().contains(child.geometry()) or one is table.view


class TestPlots:
    @pytest.fixture
    def view(self, qtbot):
        view = PlotView()
        qtbot.addWidget(view)
        view.resize(390, 420)
        view.setStyleSheet("QWidget { background-color: #262930; color: #f0f1f2 }")
        drawing = Drawing(7.4, 3.0)
        (axes,) = drawing.panels(["A title"], 1)
        axes.plot([0, 1], [0, 1], color="#{:02x}{:02x}{:02x}".format(*TEAM_COLOURS[0]))
        axes.set_xlabel("x axis")
        axes.set_ylabel("y axis")
        self.plot = drawing.done()
        view.show_plot(self.plot)
        view.show()
        qtbot.waitExposed(view)
        QApplication.processEvents()
        return view

    def test_defect_20_a_plot_fits_its_panel(self, view):
        canvas = view.canvas
        shown = canvas.visibleRegion().boundingRect()
        assert shown.width() == canvas.width() <= view.width()

    def test_defect_20_a_plot_has_the_colours_of_the_window(self, view):
        before = png_bytes(self.plot, dpi=40)
        pixels = pixels_of(view.canvas)
        ground = pixels[2, 2]
        assert luminance(ground) < 0.1
        assert contrast(pixels, ground) >= READABLE
        # Along the lower half of the panel nothing but the line, in a colour that is dark itself.
        middle = pixels[pixels.shape[0] // 2, pixels.shape[1] // 2 - 40 : pixels.shape[1] - 30]
        assert contrast(middle, ground) >= SEEN
        assert png_bytes(self.plot, dpi=40) == before  # saved as it would be printed


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_defect_20_captions_can_be_read(open_desk, wait_until, theme):
    viewer, metrics = open_desk._viewer, open_desk.panels.metrics
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
