"""In a small window, in both themes: nothing is cut off, no panel is scrolled sideways."""

import itertools

import napari
import pytest
from napari.settings import get_settings
from qtpy.QtCore import QPoint, QRect
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QToolButton,
    QWidget,
)

from napari_panoptic.samples.write import write_detection_sample, write_raters_sample
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.kit.widgets import ElidedLabel, dock_of, is_in_sight
from napari_panoptic.viewer.opening import open_in
from napari_panoptic.viewer.panels.ranking import RankingPresenter
from tests.viewer.finding import close_viewer, handle_events

FONT_PT = 12
SIZE = 1280, 800
TASKS = ["nuclei", *(pytest.param(t, marks=pytest.mark.long) for t in ("detections", "raters"))]


@pytest.fixture(scope="module")
def viewer(qapp, napari_application):  # noqa: ARG001
    appearance = get_settings().appearance
    before = appearance.font_size
    viewer = napari.Viewer()
    appearance.font_size = FONT_PT
    viewer.window.resize(*SIZE)
    yield viewer
    appearance.font_size = before
    close_viewer(viewer)
    qapp.processEvents()


@pytest.fixture(
    scope="module",
    params=[
        "nuclei",
        *(pytest.param(task, marks=pytest.mark.long) for task in ("detections", "raters")),
    ],
)
def desk_of_task(request, viewer, tmp_path_factory, sample_folder, wait_until):
    folder = sample_folder
    if request.param != "nuclei":
        folder = tmp_path_factory.mktemp("layout") / request.param
        write = write_detection_sample if request.param == "detections" else write_raters_sample
        folder = write(folder)
    desk = open_in(viewer, folder)
    wait_until(lambda: desk.is_settled)
    if request.param == "nuclei":
        desk.session.select_row(Side.REFERENCE, 0)
    yield desk
    desk.close()


def visible(panel, kind):
    return [widget for widget in panel.findChildren(kind) if is_in_sight(widget)]


def cut_off(panel):
    """List the labels and buttons with less room than their words need."""
    found = []
    for widget in visible(panel, QWidget):
        if isinstance(widget, ElidedLabel | QComboBox | QAbstractItemView):
            continue
        if isinstance(widget.parent(), QLineEdit):  # Qt's own: an icon, without words
            continue
        is_label = isinstance(widget, QLabel) and not widget.wordWrap() and widget.text()
        if (is_label or isinstance(widget, QAbstractButton)) and (
            widget.width() < widget.minimumSizeHint().width()
            or widget.height() < widget.minimumSizeHint().height()
            or (is_label and widget.width() < widget.sizeHint().width())
        ):
            found.append(f"{widget.text()[:60]!r}: {widget.width()} < {widget.sizeHint().width()}")
    for button in panel.findChildren(QAbstractButton):
        parent, place = button.parentWidget(), button.geometry().adjusted(2, 2, -2, -2)
        if button.isVisible() and button.text() and not parent.rect().contains(place):
            found.append(f"{button.text()[:60]!r}: beyond what it lies on")
    for menu in visible(panel, QComboBox):
        room = menu.width() - 24
        if menu.fontMetrics().horizontalAdvance(menu.currentText()) > max(room, 0):
            found.append(f"{menu.currentText()!r} in {menu.width()} px")
    return found


def overlapping(panel):
    """List pairs of labels and buttons of one parent that lie upon each other."""
    by_parent = {}
    for widget in [*visible(panel, QLabel), *visible(panel, QAbstractButton)]:
        by_parent.setdefault(widget.parentWidget(), []).append(widget)
    pairs = itertools.chain(*(itertools.combinations(each, 2) for each in by_parent.values()))
    return [
        f"{one.text()[:40]!r} and {other.text()[:40]!r}"
        for one, other in pairs
        if one.geometry().adjusted(1, 1, -1, -1).intersects(other.geometry())
    ]


def scrolled_sideways(panel):
    """List the scroll areas and tables with a horizontal bar."""
    areas = [panel, *panel.findChildren(QAbstractScrollArea)]
    return [
        type(area).__name__
        for area in areas
        if isinstance(area, QAbstractScrollArea) and area.horizontalScrollBar().isVisible()
    ]


def beyond_the_window(panel):
    """Return how far a panel reaches beyond its window."""
    window = panel.window()
    place = QRect(panel.mapTo(window, QPoint(0, 0)), panel.size())
    return max(place.right() - window.width(), -place.left(), 0)


def problems_of(panels, workspace, seen):
    """List the problems of all panels in sight, and add their titles to those seen."""
    problems = []
    for title, panel in panels.items():
        if not is_in_sight(panel):
            continue
        seen.add(title)
        where = f"{workspace} > {title}"
        problems += [f"{where}: cut off: {text}" for text in cut_off(panel)]
        problems += [f"{where}: overlap: {text}" for text in overlapping(panel)]
        problems += [f"{where}: scrolled: {text}" for text in scrolled_sideways(panel)]
        if beyond := beyond_the_window(panel):
            problems.append(f"{where}: {beyond} px beyond the window")
    return problems


def small_letters(panel):
    """List the fields, tables and buttons in sight whose letters are smaller than chosen."""
    kinds = (QAbstractButton, QAbstractItemView, QHeaderView, QLabel, QLineEdit)
    found = [widget for kind in kinds for widget in visible(panel, kind)]
    return [
        f"{type(widget).__name__} {widget.accessibleName()}: {widget.font().pointSizeF()}"
        for widget in found
        if widget.font().pointSizeF() < FONT_PT
    ]


def cut_titles(desk):
    """List the titles of docks that are lower than their letters."""
    labels = [
        label
        for title in desk.docked()
        for label in desk.dock(title).titleBarWidget().findChildren(QLabel)
        if is_in_sight(label) and label.text()
    ]
    return [label.text() for label in labels if label.height() < label.fontMetrics().height()]


def test_a_hidden_panel_is_styled_when_it_is_shown(desk_of_task, wait_until):
    wait_until(lambda: desk_of_task.is_arranged and desk_of_task.is_settled)
    workspace = desk_of_task.workspace.name
    # A start does not pay for their style.
    unstyled = [
        title for title in desk_of_task.docked() if not desk_of_task.dock(title).styleSheet()
    ]
    assert not any(is_in_sight(desk_of_task.docked()[title]) for title in unstyled)
    assert unstyled or len(desk_of_task.workspaces) == 1
    for title in unstyled[:1]:
        desk_of_task.reveal(title)
        wait_until(lambda: desk_of_task.is_arranged and desk_of_task.is_settled)
        assert desk_of_task.dock(title).styleSheet()
        assert small_letters(desk_of_task.docked()[title]) == []
    desk_of_task.show_workspace(workspace)


def test_letters_are_as_large_as_chosen(desk_of_task, wait_until):
    wait_until(lambda: desk_of_task.is_arranged and desk_of_task.is_settled)
    panels = {"strip": desk_of_task.strip, **desk_of_task.docked()}
    small = {title: small_letters(panel) for title, panel in panels.items()}
    assert not any(small.values()), small
    assert cut_titles(desk_of_task) == []
    objects = desk_of_task.docked().get("Objects")
    if objects is not None:
        needed = objects.view.fontMetrics().height()
        assert objects.view.verticalHeader().defaultSectionSize() >= needed
    before = desk_of_task.strip.findChild(QToolButton).font().pointSizeF()
    get_settings().appearance.font_size = FONT_PT - 2
    assert desk_of_task.strip.findChild(QToolButton).font().pointSizeF() == before - 2
    get_settings().appearance.font_size = FONT_PT


@pytest.mark.long
@pytest.mark.parametrize("theme", ["dark", pytest.param("light", marks=pytest.mark.long)])
def test_nothing_is_cut_off(desk_of_task, viewer, theme, wait_until):
    viewer.theme = theme
    viewer.window.resize(*SIZE)
    problems = []
    seen = set()
    for workspace in desk_of_task.workspaces:
        desk_of_task.show_workspace(workspace.name)
        wait_until(lambda: desk_of_task.is_arranged and desk_of_task.is_settled)
        if workspace.name == "Cohort" and isinstance(desk_of_task, Desk):
            desk_of_task.presenter(RankingPresenter).ask()
            wait_until(lambda: desk_of_task.is_settled)
            assert desk_of_task.presenter(RankingPresenter).panel.conventions.texts()
        handle_events()
        size = viewer.window._qt_window.width(), viewer.window._qt_window.height()
        if size != SIZE:
            problems.append(f"{workspace.name}: the window has grown to {size}")
        panels = {"strip": desk_of_task.strip, **desk_of_task.docked()}
        problems += problems_of(panels, workspace.name, seen)
        for title, panel in panels.items():
            dock = dock_of(panel)
            if dock is not None and not dock.isHidden() and title not in seen:  # behind a tab
                desk_of_task.reveal(title)
                wait_until(lambda panel=panel: is_in_sight(panel) and desk_of_task.is_settled)
                problems += problems_of(panels, workspace.name, seen)
    assert not problems, "\n".join(problems)
    assert len(seen) > 2
    assert "Slices" in seen or "Slices" not in desk_of_task.docked()
