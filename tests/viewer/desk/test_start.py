"""A desk without a cohort shows ways to begin, what is being read, and why something failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtWidgets import QFileDialog, QToolButton

from napari_panoptic.display.title import LOADING
from napari_panoptic.viewer import opening
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.panels.start import StartPanel
from napari_panoptic.viewer.panels.title import NOTHING_OPEN
from napari_panoptic.viewer.state.preferences import PREFERENCES
from tests.viewer.finding import shown_text


@pytest.fixture
def empty_desk(window: Any, close_desk: Any) -> Any:
    desk = desk_of(window)
    yield desk
    close_desk(desk)


def drop(panel: StartPanel, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    panel.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, none))


def test_the_last_cohort_is_opened_again_and_the_panel_disappears(
    window: Any, close_desk: Any, sample_folder: Path, wait_until: Any
) -> None:
    PREFERENCES.last_cohort = sample_folder
    desk = desk_of(window)
    panel = desk.start
    wait_until(panel.isVisible)
    assert panel.continue_button.text().startswith(f"Continue: {sample_folder.name}\n")
    panel.continue_button.click()
    assert shown_text(panel.reading) == f"Reading {sample_folder.name} …"
    assert not panel.cohort_button.isEnabled()
    wait_until(lambda: desk.session is not None and desk.is_settled)
    assert desk.session.cohort.root == sample_folder
    assert not panel.isVisible()
    assert not shown_text(panel.reading)
    close_desk(desk)


@pytest.mark.long
def test_a_folder_that_is_no_cohort_is_explained_in_the_panel(
    empty_desk: Any, tmp_path: Path, wait_until: Any
) -> None:
    panel = empty_desk.start
    assert not panel.continue_button.isVisible()
    drop(panel, tmp_path)
    wait_until(lambda: bool(panel.failure.text()))
    said = panel.failure.text()
    assert str(tmp_path) in said
    assert "expected either the MoNuSAC folders" in said
    assert "Choose such a folder" in said
    assert panel.cohort_button.isEnabled()
    assert panel.isVisible()


@pytest.mark.long
def test_a_cohort_that_vanished_since_is_explained(empty_desk: Any, tmp_path: Path) -> None:
    panel = empty_desk.start
    PREFERENCES.last_cohort = tmp_path
    panel.show_last(tmp_path)
    PREFERENCES.last_cohort = tmp_path / "gone"
    panel.continue_button.click()
    assert "Open its folder" in panel.failure.text()
    assert not panel.continue_button.isVisible()


@pytest.mark.long
def test_the_other_buttons_lead_to_folder_sample_and_layers(
    empty_desk: Any,
    sample_folder: Path,
    wait_until: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panel, viewer = empty_desk.start, empty_desk.viewer
    panel.layers_button.click()
    assert any(name.startswith("Compare layers") for name in viewer.window.dock_widgets)
    chosen: list[str] = []
    monkeypatch.setattr(
        QFileDialog,
        "getExistingDirectory",
        lambda *_args: chosen.append("asked") or "",
    )
    panel.cohort_button.click()
    assert chosen == ["asked"]
    monkeypatch.setattr(opening, "write_sample", lambda _folder, _task: sample_folder)
    panel.sample_button.click()
    wait_until(lambda: empty_desk.session is not None and empty_desk.is_settled)
    assert empty_desk.session.cohort.root == sample_folder
    assert not panel.isVisible()


@pytest.mark.parametrize("width", [380, 520, 900])
def test_nothing_is_cut_off(qtbot: Any, width: int, tmp_path: Path) -> None:
    panel = StartPanel(None, lambda _wanted, _report: None)
    qtbot.addWidget(panel)
    panel.show_last(tmp_path / ("long name " * 20) / ("another name " * 20))
    panel.resize(width, 10)
    panel.show()
    panel.show_failed("expected this, found that. " * 12)
    qtbot.waitUntil(lambda: panel.width() == width)
    for button in (panel.continue_button, panel.cohort_button, panel.layers_button):
        for line in button.text().split("\n"):
            assert button.fontMetrics().horizontalAdvance(line) <= button.width()
        assert button.height() >= 2 * button.fontMetrics().height()


def test_an_empty_desk_keeps_its_ways_to_begin(
    window: Any, close_desk: Any, sample_folder: Path, wait_until: Any
) -> None:
    PREFERENCES.last_cohort = sample_folder
    desk = desk_of(window)
    panel = desk.start
    wait_until(panel.isVisible)
    buttons = {button.text(): button for button in desk.strip.findChildren(QToolButton)}
    assert not buttons["Failures"].isEnabled()
    buttons["Failures"].click()
    assert panel.isVisible()
    assert desk.panels.title.selected.text() == NOTHING_OPEN
    panel.continue_button.click()
    wait_until(lambda: desk.session is not None)
    assert desk.panels.title.selected.text() == LOADING
    wait_until(lambda: desk.is_settled)
    assert desk.panels.title.selected.text().startswith("▶")  # the worst failure
    buttons["Failures"].click()
    assert desk.workspace.name == "Failures"
    close_desk(desk)
