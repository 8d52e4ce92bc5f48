"""Unsaved edits after a crash, and when a window is closed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.saving import read_objects
from napari_panoptic.live.autosaves import AutosaveFolder
from napari_panoptic.live.mends import MendAction
from napari_panoptic.review.file import REVIEW_FILE
from napari_panoptic.review.mended_annotation import mended_annotation
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.editing import autosaving
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.support.sandbox import sandbox
from tests.viewer.finding import FIRST, answering
from tests.viewer.in_a_process import run_in_process

pytestmark = pytest.mark.long


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """Give the cache that all windows of a test share."""
    folder = tmp_path / "shared cache"
    monkeypatch.setattr(autosaving, "user_cache_path", lambda _name: folder)
    return folder


@pytest.fixture
def open_window(make_napari_viewer, close_desk, wait_until, cache_folder, own_folder):  # noqa: ARG001
    """Give a function that opens the cohort in a window; gives its desk and panel."""
    desks = []

    def open_one():
        viewer = make_napari_viewer(show=True)
        desk = desk_of(viewer)
        desk.show_cohort(open_cohort(own_folder))
        wait_until(lambda: desk.is_settled)
        desks.append(desk)
        return desk, desk.presenter(EditsPresenter)

    yield open_one
    for desk in desks:
        close_desk(desk)


def draw(desk, part, wait_until):
    """Erase an object of the team, and wait until that is autosaved."""
    part.edits.set_on(True)
    layer, _ = desk.link.scene.object_layer(Side.PREDICTION, desk.session.team)
    layer.data_setitem(np.nonzero(np.asarray(layer.data) == 1), 0)
    assert part.edits.unsaved
    wait_until(lambda: desk.is_settled and not part.autosaver.is_busy)


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*.npz"))


def shown_ids(desk, side):
    return desk.session.edited_labels(side).id_image()


@contextmanager
def chosen(file, folder):
    """Choose a file, or a folder, in the next file dialog."""
    with (
        patch.object(QFileDialog, "getSaveFileName", return_value=(file, "")),
        patch.object(FolderDialog, "ask", return_value=folder),
    ):
        yield


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_edits_of_a_killed_window_are_offered_and_restored(
    open_window, own_folder, cache_folder, wait_until
):
    cache = cache_folder.parent / "of the other window"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.viewer.editing.window_that_is_killed", str(own_folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "LOCALAPPDATA": str(cache)},
    ) as process:
        assert process.stdout.readline() == "autosaved\n"
        process.send_signal(signal.SIGKILL)
    (cache / "napari-panoptic").rename(cache_folder)
    assert len(files_in(cache_folder)) == 3

    desk, part = open_window()
    panel, session = part.panel, desk.session
    before = {side: shown_ids(desk, side) for side in Side}
    assert panel.isVisible()  # it comes to the front
    assert panel.left.isVisible()
    assert "annotation" in panel.left_state.text()
    assert "changed" not in panel.left_state.text()
    assert not part.edits.unsaved  # nothing is restored without being asked for
    assert not any(session.is_edited(side) for side in Side)
    panel.restore.click()
    wait_until(lambda: desk.is_settled and not part.autosaver.is_busy)
    for side in Side:
        now = shown_ids(desk, side)
        expected = before[side].copy()
        expected[expected == before[side][before[side] > 0].min()] = 0
        expected[np.arange(5, 15), np.arange(5, 15)] = expected.max() + 1
        np.testing.assert_array_equal(now > 0, expected > 0)
        assert session.is_edited(side)
    assert session.snapshot.ambiguous[:20, :30].all()
    assert session.snapshot.ambiguous.sum() == 600
    assert len(part.edits.unsaved) == 3
    assert not panel.left.isVisible()
    assert len(files_in(cache_folder)) == 3  # kept for another crash
    part.edits.discard()
    wait_until(lambda: desk.is_settled and not part.autosaver.is_busy)
    assert files_in(cache_folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_a_killed_window_loses_no_verdict_and_nothing_that_was_mended(
    open_window, nuclei_sample, own_folder, cache_folder, wait_until, tmp_path
):
    shutil.rmtree(own_folder)
    shutil.copytree(nuclei_sample, own_folder)
    expected = tmp_path / "expected.npz"
    arguments = ["tests.viewer.editing.window_that_is_killed", str(own_folder), str(expected)]
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=Path(__file__).parents[3],
            env=sandbox(tmp_path / "around"),
        )
        with process:
            said = process.stdout.readline()
            process.send_signal(signal.SIGKILL)
    said_wrong = (tmp_path / "errors").read_text()
    assert said == "autosaved\n", said_wrong
    assert "Traceback" not in said_wrong
    (tmp_path / "around" / "cache" / "napari-panoptic").rename(cache_folder)
    with ReviewStore(own_folder / REVIEW_FILE, reviewer="Ada") as store:
        verdicts = store.verdicts()
    assert [record.verdict for record in verdicts] == [Verdict.PREDICTION_RIGHT] * 2

    desk, part = open_window()
    desk.link.go_to(FIRST, team="merger")
    wait_until(lambda: desk.is_settled)
    part.panel.restore.click()
    wait_until(lambda: desk.is_settled and not part.autosaver.is_busy)
    assert {at.words for at in part.edits.unsaved} == {"annotation", "ambiguous areas"}
    now = desk.session.edited_labels(Side.REFERENCE)
    with np.load(expected) as stored:
        np.testing.assert_array_equal(now.id_image(), stored["ids"])
        assert now.ids.tolist() == stored["known"].tolist()
        assert now.class_names_of_objects().tolist() == stored["names"].tolist()
        np.testing.assert_array_equal(desk.session.snapshot.ambiguous, stored["area"])
    (edited,) = desk.session.drawn_annotations()
    rows = mended_annotation(edited, part.mending.done).corrections
    actions = Counter(row.mended.action for row in rows)
    assert actions == {MendAction.DELETE: 2, MendAction.DRAW: 1}  # as drawn by hand
    part.edits.discard()
    wait_until(lambda: desk.is_settled and not part.autosaver.is_busy)


def test_left_edits_are_discarded_and_changed_files_are_noticed(
    open_window, close_desk, own_folder, cache_folder, wait_until
):
    desk, part = open_window()
    team = desk.session.team
    draw(desk, part, wait_until)
    assert len(files_in(cache_folder)) == 1
    _, other = open_window()
    assert not other.panel.left.isVisible()  # they are not left: their window is open
    close_desk(desk)  # without being asked, as a program may
    assert len(files_in(cache_folder)) == 1
    left = next(cache_folder.rglob("*.npz")).parent
    shutil.copytree(left, left.with_name("older"))  # of a window before
    masks = own_folder / "Teams" / team
    mask = next(path for path in sorted(masks.rglob("*.tif")))
    mask.write_bytes(mask.read_bytes() + b"\0")

    desk, part = open_window()
    assert part.panel.left.isVisible()
    assert "files have changed" in part.panel.left_state.text()
    with answering("Yes") as question:
        part.panel.discard_left.click()
    assert "1 older version of them will be deleted, too." in question[0]
    wait_until(lambda: desk.is_settled and not part.autosaver.is_busy)
    assert not part.panel.left.isVisible()
    assert files_in(cache_folder) == []


def test_an_autosave_that_failed_is_tried_again(open_window, cache_folder, wait_until, monkeypatch):
    desk, part = open_window()
    said, write, left = [], AutosaveFolder.write, [2]

    def fail_twice(*arguments):
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("no space left on device")
        write(*arguments)

    monkeypatch.setattr(AutosaveFolder, "write", fail_twice)
    monkeypatch.setattr(autosaving, "show_warning", said.append)
    part.edits.set_on(True)
    layer, _ = desk.link.scene.object_layer(Side.PREDICTION, desk.session.team)
    layer.data_setitem(np.nonzero(np.asarray(layer.data) == 1), 0)
    wait_until(lambda: files_in(cache_folder))  # though nothing more is drawn
    assert len(said) == 1
    assert "no space left" in said[0]


def test_an_autosave_is_not_renumbered_while_it_waits(
    open_window, close_desk, cache_folder, wait_until, monkeypatch
):
    desk, part = open_window()
    may_write, write = threading.Event(), AutosaveFolder.write

    def wait_and_write(*arguments):
        assert may_write.wait(60)
        write(*arguments)

    monkeypatch.setattr(AutosaveFolder, "write", wait_and_write)
    part.edits.set_on(True)
    layer, _ = desk.link.scene.object_layer(Side.PREDICTION, desk.session.team)
    layer.data_setitem(np.nonzero(np.asarray(layer.data) == 3), 0)
    first = shown_ids(desk, Side.PREDICTION)
    wait_until(lambda: part.autosaver.is_busy and not part.autosaver._later.isActive())
    layer.data_setitem(np.nonzero(np.asarray(layer.data) == 1), 0)  # other rows move up
    may_write.set()
    wait_until(lambda: files_in(cache_folder))
    (path,) = cache_folder.rglob("*.npz")
    with np.load(path) as stored:
        ids = np.concatenate([[0], stored["ids"]])[stored["index"]]
    np.testing.assert_array_equal(ids, first)
    close_desk(desk)


def test_edits_of_another_region_are_led_to(open_window, close_desk, wait_until):
    desk, part = open_window()
    first, second = (region.name for region in desk.session.cohort.regions[:2])
    desk.panels.navigator.place_chosen.emit(second)
    wait_until(lambda: desk.is_settled)
    draw(desk, part, wait_until)
    erased = shown_ids(desk, Side.PREDICTION)
    close_desk(desk)
    desk, part = open_window()
    desk.link.go_to(first)
    wait_until(lambda: desk.is_settled)
    assert desk.session.snapshot.region.name == first
    assert second in part.panel.left_state.text()
    part.panel.restore.click()
    wait_until(lambda: desk.is_settled)
    assert desk.session.snapshot.region.name == second
    assert not desk.session.is_edited(Side.PREDICTION)
    part.panel.restore.click()
    wait_until(lambda: desk.is_settled)
    np.testing.assert_array_equal(shown_ids(desk, Side.PREDICTION), erased)


@pytest.mark.parametrize("regions", [1, 2])
def test_the_closing_dialog_saves(open_window, cache_folder, wait_until, tmp_path, regions):
    desk, part = open_window()
    drawn = {}
    for region in [region.name for region in desk.session.cohort.regions[:regions]]:
        desk.panels.navigator.place_chosen.emit(region)
        wait_until(lambda: desk.is_settled)
        draw(desk, part, wait_until)
        drawn[region] = shown_ids(desk, Side.PREDICTION)
    with answering("Cancel"):
        assert not part.may_leave()
    with answering("Save"), chosen("", ""):
        assert not part.may_leave()  # cancelled in the file dialog
    assert len(part.edits.unsaved) == regions
    names = {region: f"{region}_{desk.session.team}_edited.tif" for region in drawn}
    one = str(tmp_path / next(iter(names.values())))
    with answering("Save"), chosen(one, str(tmp_path)):
        assert part.may_leave()
    for region, ids in drawn.items():
        found = read_objects(tmp_path / names[region], desk.session.cohort.scheme, ids.shape)
        assert isinstance(found.labels, LabelImage)
        np.testing.assert_array_equal(found.labels.id_image(), ids)
    wait_until(lambda: not part.autosaver.is_busy)
    assert files_in(cache_folder) == []


def test_discarding_when_closing_leaves_nothing_to_restore(
    open_window, close_desk, cache_folder, wait_until
):
    desk, part = open_window()
    draw(desk, part, wait_until)
    with answering("Discard"):
        assert part.may_leave()
    close_desk(desk)
    assert files_in(cache_folder) == []


LEFT_OPEN = """
from napari_panoptic.values.vocabulary import Side

desk_module.PARTS = ALL_PARTS
desk = open_desk(open_window())
desk.session.edit(Side.PREDICTION, [0], [0], 1)
draw()
print("drawn")
"""


@pytest.mark.usefixtures("qtbot")
def test_a_program_that_ends_with_an_open_window_keeps_edits(own_folder, tmp_path):
    assert "drawn" in run_in_process(LEFT_OPEN, own_folder, tmp_path / "around")
    assert files_in(tmp_path / "around" / "cache")
