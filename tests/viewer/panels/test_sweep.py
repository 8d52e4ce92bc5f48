"""The panel of sweeps in a real window: the best setting, and the objects of a step."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.questions.sweep import Sweep
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.question.presenter import STALE
from tests.viewer.finding import canvas_of

LEFT, ALT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.AltModifier
(SWEEP_PRESENTER,) = (part for part in PARTS if getattr(part, "kind", None) is Sweep)
STEPS, FLIPS = "From setting to setting", "Changed objects"


@pytest.fixture(scope="module")
def shown_cohort(sweep_folder):
    return open_cohort(sweep_folder)


@pytest.fixture(scope="module")
def shown_parts():
    return tuple(part for part in PARTS if part in (FailuresPresenter, SWEEP_PRESENTER))


@pytest.fixture
def part(open_desk, wait_until):
    """Bring the panel to the front by its key, and ask."""
    open_desk.show_workspace("Teams")
    wait_until(lambda: open_desk.is_settled)
    QTest.keyClick(canvas_of(open_desk.viewer), "y", ALT)
    part = open_desk.presenter(SWEEP_PRESENTER)
    wait_until(lambda: is_in_sight(part.panel))
    part.panel.inputs["metric"].choose("pq")
    click_and_wait(part.panel.work.start, part, wait_until)
    return part


def click_and_wait(button, part, wait_until):
    QTest.mouseClick(button, LEFT)
    wait_until(lambda: not part.is_busy)


def show_table(panel, title):
    panel.which.setCurrentText(title)
    panel.which.activated.emit(panel.which.currentIndex())
    return panel.shown_table


def test_it_says_and_saves_what_the_command_writes(
    part, sweep_folder, tmp_path, monkeypatch, wait_until
):
    assert main(["sweep", str(sweep_folder), "-o", str(tmp_path / "command")]) == 0
    (tmp_path / "window").mkdir()
    chosen = str(tmp_path / "window")
    monkeypatch.setattr(FolderDialog, "ask", lambda *_args: chosen)
    click_and_wait(part.panel.save, part, wait_until)
    for name in set(Sweep.file_names()) - {Sweep.page}:  # ids in its plots are random
        if name != Sweep.record_file():
            written = (tmp_path / "window" / name).read_bytes()
            assert written == (tmp_path / "command" / name).read_bytes()
    assert part.panel.headline.text().startswith("best setting: min_size")
    assert len(part.answer.record.content["settings_swept"]) == 4


def test_a_step_and_an_object_lead_to_the_gallery(part, open_desk, wait_until):
    steps = show_table(part.panel, STEPS)
    changed = steps.objects(0)
    assert changed.versions == ("min_size1", "min_size2")
    row = steps.frame.iloc[0]
    assert len(changed.names) == row[["fixed", "broken", "reclassified", "new", "gone"]].sum()
    fixed = [name for name in changed.names if name.side is Side.REFERENCE]
    assert {name.team for name in fixed} == {"min_size1"}  # where they fail
    part.panel.table.centre_wanted.emit(0)
    gallery = open_desk.presenter(FailuresPresenter)
    wait_until(lambda: not part.is_busy and is_in_sight(gallery.panel))
    wait_until(lambda: open_desk.is_settled)
    assert open_desk.link.failures.only.names == changed.names
    open_desk.link.failures.show_only(None)

    flips = show_table(part.panel, FLIPS)
    assert len(flips.objects(0).names) == 1


def test_another_metric_or_other_settings_take_the_answer_away(part, open_desk, wait_until):
    assert part.answer is not None
    part.panel.inputs["metric"].choose("sq")
    assert part.answer is None
    click_and_wait(part.panel.work.start, part, wait_until)
    assert part.answer.record.content["metric"] == "sq"
    settings = open_desk.session.settings
    open_desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.7))
    try:
        assert part.answer is None
        assert part.panel.headline.text() == STALE.format(verb=Sweep.verb)
    finally:
        open_desk.panels.settings.settings_chosen.emit(settings)
        wait_until(lambda: open_desk.is_settled)


def test_teams_without_parameters_are_no_sweep(cohort, shown_cohort):
    assert "a sweep needs two or more settings, found none" in Sweep().why_not(cohort)
    assert Sweep().why_not(shown_cohort) == ""
