"""What napari itself calls."""

import shutil

import numpy as np
import pytest
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.io.images.slides import SLIDE_ENDINGS
from napari_panoptic.values.cohort import Task
from napari_panoptic.viewer import hooks, opening
from napari_panoptic.viewer.desk.detections import detection_desk_in
from napari_panoptic.viewer.desk.nuclei import desk_in, desk_of
from napari_panoptic.viewer.desk.raters import rated_desk_in
from napari_panoptic.viewer.desk.shell import DeskStrip
from napari_panoptic.viewer.kit.napari_private import window_of
from napari_panoptic.viewer.panels.inspection import InspectionDialog
from tests.support.builders import noise, write_svs
from tests.support.paths import REPOSITORY


def test_the_sample_opens_on_the_desk(
    close_desk, window, wait_until, monkeypatch, cache, nuclei_sample
):
    """The sample was written before; that of raters, which is quicker to write, was not."""
    monkeypatch.setattr(opening, "user_cache_path", lambda _name: cache)
    shutil.copytree(nuclei_sample, cache / opening.SAMPLE_FOLDERS[Task.NUCLEI])
    viewer = window
    viewer.open_sample("napari-panoptic", "sample-cohort")
    desk = desk_of(viewer)
    wait_until(lambda: desk.is_settled)
    assert [layer.name for layer in viewer.layers][:2] == ["image", "reference"]
    assert desk.session.cohort.root == cache / opening.SAMPLE_FOLDERS[Task.NUCLEI]

    viewer.open_sample("napari-panoptic", "sample-raters")
    raters = rated_desk_in(viewer)
    wait_until(lambda: raters.is_settled)
    assert desk_in(viewer) is None
    assert raters.cohort.root == cache / opening.SAMPLE_FOLDERS[Task.RATERS]
    close_desk(raters)


@pytest.mark.long
def test_samples_of_other_tasks_open_one_after_the_other(
    close_desk, window, wait_until, monkeypatch, cache, detection_sample
):
    monkeypatch.setattr(opening, "user_cache_path", lambda _name: cache)
    shutil.copytree(detection_sample, cache / opening.SAMPLE_FOLDERS[Task.DETECTIONS])
    viewer = window

    def seen():
        return {layer.name for layer in viewer.layers if layer.visible}

    viewer.open_sample("napari-panoptic", "sample-detections")
    detections = detection_desk_in(viewer)
    wait_until(lambda: detections.is_settled)
    assert viewer.layers[0].name == "image"
    assert seen() == {"image", "annotated points", "detections"}

    viewer.open_sample("napari-panoptic", "sample-raters")
    raters = rated_desk_in(viewer)
    wait_until(lambda: raters.is_settled)
    assert detection_desk_in(viewer) is None
    assert raters.cohort.root == cache / opening.SAMPLE_FOLDERS[Task.RATERS]
    assert not seen() & {"annotated points", "detections"}
    images = [layer for layer in viewer.layers if layer.visible and layer.name.startswith("image")]
    assert len(images) == 1

    viewer.open_sample("napari-panoptic", "sample-detections")
    again = detection_desk_in(viewer)
    wait_until(lambda: again.is_settled)
    assert seen() == {"image", "annotated points", "detections"}  # the one that was there
    close_desk(again)


@pytest.mark.long
def test_a_cohort_folder_is_read_by_naming_the_plugin(
    close_desk, window, sample_folder, wait_until
):
    viewer = window
    viewer.open(str(sample_folder), plugin="napari-panoptic")
    desk = desk_of(viewer)
    wait_until(lambda: desk.is_settled)
    assert "reference" in viewer.layers
    close_desk(desk)


@pytest.mark.long
def test_the_inspector_comes_from_the_plugins_menu(close_desk, window, wait_until):
    viewer = window
    _, widget = viewer.window.add_plugin_dock_widget("napari-panoptic", "Panoptic Inspector")
    assert isinstance(widget, DeskStrip)
    wait_until(lambda: "Regions" in viewer.window.dock_widgets)
    assert desk_of(viewer) is widget.desk
    assert not isinstance(hooks.make_inspector(viewer), DeskStrip)
    close_desk(widget.desk)


@pytest.mark.long
def test_open_cohort_asks_for_a_folder(close_desk, window, sample_folder, wait_until, monkeypatch):
    viewer = window
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_args: str(sample_folder))
    hooks.open_cohort_dialog(viewer)
    wait_until(lambda: window_of(viewer).findChildren(InspectionDialog))
    (dialog,) = window_of(viewer).findChildren(InspectionDialog)
    wait_until(dialog.open_button.isEnabled)
    dialog.open_button.click()
    wait_until(lambda: desk_in(viewer) is not None)
    desk = desk_of(viewer)
    wait_until(lambda: desk.session is not None and desk.is_settled)
    assert desk.session.cohort.root == sample_folder
    close_desk(desk)


@pytest.mark.parametrize("make", ["file", "empty folder", "list"])
def test_other_paths_are_left_to_other_readers(make, tmp_path):
    (tmp_path / "a.txt").write_text("no cohort")
    path = {"file": str(tmp_path / "a.txt"), "empty folder": str(tmp_path), "list": ["a", "b"]}
    assert hooks.cohort_reader(path[make]) is None


def test_a_cohort_folder_has_a_reader(sample_folder):
    assert hooks.cohort_reader(str(sample_folder)) is not None


def test_a_slide_becomes_a_layer(tmp_path):
    path = write_svs(tmp_path / "a.svs", noise(20, 30), mpp=0.25)
    reader = hooks.slide_reader(str(path))
    assert reader is not None
    ((pixels, *_),) = reader(str(path))
    np.testing.assert_array_equal(pixels, noise(20, 30))
    path.write_bytes(b"no slide")
    assert hooks.slide_reader(str(path)) is None


def test_the_manifest_names_the_endings_of_slides():
    manifest = (REPOSITORY / "napari.yaml").read_text("utf-8")
    for ending in SLIDE_ENDINGS:
        assert f'"*.{ending}"' in manifest
