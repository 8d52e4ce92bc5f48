"""The listed objects are saved with the columns of objects.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.nuclei.outcomes import OBJECTS
from napari_panoptic.viewer.jobs import jobs
from napari_panoptic.viewer.panels.objects import presenter


@pytest.fixture(scope="module")
def shown_parts() -> tuple[()]:
    """Show no panel beside the table."""
    return ()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(presenter, "show_info", said.append)
    monkeypatch.setattr(jobs, "show_error", said.append)
    return said


def choose(monkeypatch: pytest.MonkeyPatch, path: Path | None) -> None:
    answer = ("" if path is None else str(path), "")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: answer)


def test_the_listed_objects_are_saved_in_the_order_of_the_table(
    open_desk: Any,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    wait_until: Any,
) -> None:
    table, session = open_desk.panels.objects, open_desk.session
    table.set_filter(ObjectFilter(statuses=frozenset({"FN", "FP"})))
    choose(monkeypatch, tmp_path / "listed.csv")
    table.export.click()
    wait_until(lambda: bool(told))
    assert told == [f"The objects are in {tmp_path / 'listed.csv'}"]
    saved = pd.read_csv(tmp_path / "listed.csv", keep_default_na=False)
    assert list(saved.columns) == OBJECTS.keys
    snapshot = session.snapshot
    assert set(saved["team"]) == {session.team}
    assert set(saved["region"]) == {snapshot.region.name}
    assert set(saved["patient"]) == {snapshot.region.patient}
    listed = [table.model.object_at(row) for row in range(table.model.rowCount())]
    outcomes = session.shown.outcomes
    ids = [int(outcomes.side(side).ids[row]) for side, row in listed]
    assert saved["id"].tolist() == ids
    assert saved["side"].tolist() == [str(side) for side, _ in listed]
    assert set(saved["status"]) <= {"FN", "FP"}
    assert len(saved) > 1


def test_nothing_listed_and_full_disks_are_explained(
    open_desk: Any,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    wait_until: Any,
) -> None:
    table = open_desk.panels.objects
    choose(monkeypatch, tmp_path / "listed.csv")
    table.set_filter(ObjectFilter(statuses=frozenset()))
    table.export.click()
    assert told == [presenter.NOTHING]
    table.set_filter(ObjectFilter())
    choose(monkeypatch, None)
    table.export.click()
    assert told == [presenter.NOTHING]
    choose(monkeypatch, tmp_path / "missing" / "listed.csv")
    table.export.click()
    wait_until(lambda: len(told) == 2)
    assert "Choose another place." in told[1]
    assert not list(tmp_path.iterdir())
