"""A tour frames and explains the panels in sight, one after the other."""

from __future__ import annotations

from typing import Any

import pytest
from qtpy.QtCore import QPoint, QRect, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.kit.keys_dialog import KeysDialog
from napari_panoptic.viewer.kit.tour import Tour, TourStop

PLACES = (QRect(0, 0, 200, 600), QRect(200, 0, 400, 300), QRect(600, 300, 200, 300))


@pytest.fixture
def window(qtbot: Any) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(800, 600)
    return window


@pytest.fixture
def stops(qtbot: Any, window: QWidget) -> list[TourStop]:
    found = []
    for number, place in enumerate(PLACES):
        panel = QWidget(window)
        panel.setGeometry(place)
        found.append(TourStop(f"stop {number}", "One sentence. Another one.", panel))
    window.show()
    qtbot.waitExposed(window)
    return found


def frame_of(window: QWidget) -> QWidget:
    return next(
        child
        for child in window.children()
        if isinstance(child, QWidget)
        and child.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    )


def test_each_panel_is_framed_and_none_is_covered(window: QWidget, stops: list[TourStop]) -> None:
    tour = Tour(window)
    tour.begin(stops)
    for number, stop in enumerate(stops):
        assert tour.stop is stop
        assert tour.isVisible()
        assert frame_of(window).geometry().contains(stop.widget.geometry())
        assert window.rect().contains(tour.geometry())
        assert not tour.geometry().intersects(stop.widget.geometry())
        assert tour.back.isEnabled() == (number > 0)
        assert tour.following.text() == ("Done" if number == len(stops) - 1 else "Next")
        tour.following.click()
    assert tour.stop is None
    assert not tour.isVisible()
    assert not frame_of(window).isVisible()


def test_panels_out_of_sight_are_left_out(window: QWidget, stops: list[TourStop]) -> None:
    tour = Tour(window)
    stops[1].widget.hide()
    tour.begin(stops)
    tour.following.click()
    assert tour.stop is stops[2]
    stops[1].widget.show()
    QTest.keyClick(tour, Qt.Key.Key_Left)
    assert tour.stop is stops[1]
    stops[2].widget.hide()
    QTest.keyClick(tour, Qt.Key.Key_Right)
    assert tour.stop is None
    for stop in stops:
        stop.widget.hide()
    tour.begin(stops)
    assert tour.stop is None


def test_escape_ends_it(window: QWidget, stops: list[TourStop]) -> None:
    tour = Tour(window)
    tour.begin(stops)
    QTest.keyClick(tour, Qt.Key.Key_Escape)
    assert not tour.isVisible()
    tour.begin(stops)
    assert tour.stop is stops[0]


def test_it_follows_its_panel(qtbot: Any, window: QWidget, stops: list[TourStop]) -> None:
    tour = Tour(window)
    tour.begin(stops[2:])
    stops[2].widget.move(QPoint(0, 0))
    window.resize(900, 700)
    qtbot.waitUntil(lambda: frame_of(window).x() <= 0)


def test_the_key_list_begins_it(qtbot: Any) -> None:
    dialog, begun = KeysDialog(), []
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.tour_button.isVisible()
    dialog.offer_tour(lambda: begun.append(True))
    dialog.tour_button.click()
    assert begun == [True]
    assert not dialog.isVisible()


@pytest.mark.long
def test_it_works_before_a_cohort_is_open_and_after(
    make_napari_viewer: Any, close_desk: Any, cohort: Any, wait_until: Any
) -> None:
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1280, 800)
    desk = desk_of(viewer)
    wait_until(desk.start.isVisible)
    assert titles(desk)[:2] == ["Begin here", "Workspaces"]
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled and not desk.start.isVisible())
    named = titles(desk)
    assert named[:2] == ["Workspaces", "Regions and teams"]
    assert "The image" in named
    assert 5 <= len(named) <= 7
    desk.panels.keys.tour_button.click()
    tour = desk.tour
    close_desk(desk)
    assert tour.stop is None
    del tour


def titles(desk: Any) -> list[str]:
    """Take the tour, and return what it explains."""
    desk.panels.keys.tour_button.click()
    found = []
    while desk.tour.stop is not None:
        found.append(desk.tour.stop.title)
        desk.tour.following.click()
    return found
