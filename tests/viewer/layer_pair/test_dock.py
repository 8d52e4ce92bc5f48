"""Layers of the user's on the desk: what is shown, what follows, and what is left alone."""

import errno
import gc
import tempfile
import weakref
from pathlib import Path
from unittest.mock import patch

import dask.array as da
import napari
import numpy as np
import pandas as pd
import pytest
import zarr
from qtpy.QtCore import QCoreApplication, QEvent, QPoint
from qtpy.QtWidgets import QLabel, QMessageBox

from napari_panoptic import evaluate_pair
from napari_panoptic.io.cohorts.comparison import LabelsComparison
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.detections import detection_desk_in
from napari_panoptic.viewer.desk.nuclei import PARTS, desk_in
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.layer_pair.dock import CompareLayers
from napari_panoptic.viewer.layers.outlines import outlines_of
from napari_panoptic.viewer.layers.owned import SELECTED, is_own
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.viewer.finding import close_viewer, handle_events

SHAPE = (90, 120)


def blobs(seed, shape=SHAPE, count=12, first=1):
    """Draw disks, numbered from `first`."""
    rng = np.random.default_rng(seed)
    image = np.zeros(shape, np.int32)
    y, x = np.ogrid[: shape[0], : shape[1]]
    for number in range(count):
        cy, cx = rng.integers(8, shape[0] - 8), rng.integers(8, shape[1] - 8)
        image[(y - cy) ** 2 + (x - cx) ** 2 <= 25] = number + first
    return image


@pytest.fixture(autouse=True)
def few_panels():
    """Open desks with the panel of edits alone: the others have tests of their own."""
    with patch(
        "napari_panoptic.viewer.desk.nuclei.PARTS", tuple(p for p in PARTS if p.title == "Edits")
    ):
        yield


class Window:
    """A viewer with layers of the user's, and the dock in which they are compared."""

    def __init__(self, viewer, wait_until):
        self.viewer, self.wait = viewer, wait_until
        self.dock = None

    def open_dock(self):
        self.dock = CompareLayers(self.viewer)
        self.viewer.window.add_dock_widget(self.dock, name="Compare")
        return self.dock

    def compare(self):
        if self.dock is None:
            self.open_dock()
        self.dock.compare.changed.emit(True)
        self.settle()
        return self.dock.message.value

    @property
    def desk(self):
        return desk_in(self.viewer)

    def listed_names(self):
        """Return the names of the layers that can be chosen as a reference."""
        return {layer.name for layer in self.dock.reference.choices}

    @property
    def session(self):
        return self.desk.session

    def settle(self):
        live = self.dock.live
        self.wait(lambda: live is None or live.is_settled)

    def close(self):
        for found in (desk_in(self.viewer), detection_desk_in(self.viewer)):
            if found is not None:
                found.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def assert_equal(self, reference, predictions):
        """Check figures and objects of all teams against the arrays of the layers."""
        for team, layer in predictions.items():
            expected = evaluate_pair(np.asarray(reference.data), np.asarray(layer.data))
            found = self.session.snapshot.evaluations[team]
            assert found.metrics.pq == expected.metrics.pq or np.isnan(expected.metrics.pq)
            shared = [c for c in expected.objects.columns if c in found.objects.columns]
            pd.testing.assert_frame_equal(
                ordered(found.objects[shared]), ordered(expected.objects[shared])
            )


def ordered(objects):
    """Sort objects by side and id: under edit, new ones come last."""
    return objects.sort_values(["side", "id"]).reset_index(drop=True)


@pytest.fixture
def window(window, wait_until):
    """Give the window of all tests, and close what they opened."""
    opened = Window(window, wait_until)
    yield opened
    opened.close()
    assert desk_in(window) is None
    assert detection_desk_in(window) is None


@pytest.fixture
def pair(window):
    """Add an annotation and two predictions."""
    window.reference = window.viewer.add_labels(blobs(1), name="ground truth")
    window.one = window.viewer.add_labels(np.roll(blobs(1), 2, 0), name="one")
    window.other = window.viewer.add_labels(blobs(2), name="two: v1")
    return window


def own_layers(viewer):
    return [layer for layer in viewer.layers if is_own(layer)]


def test_the_dock_stays_a_tab_and_the_window_as_high_as_it_was(pair):
    window = pair.viewer.window._qt_window
    pair.open_dock()
    height = window.height()
    pair.compare()
    dock, desk = pair.dock.native.parent(), pair.desk
    for workspace in desk.workspaces:
        desk.show_workspace(workspace.name)
        pair.wait(lambda: desk.is_arranged)
        handle_events()
        assert window.height() == height, workspace.name
        assert not dock.isHidden()
        if workspace.name in ("Inspect", "Ambiguous"):  # the others lack their panels here
            assert desk.dock("Edits") in window.tabifiedDockWidgets(dock), workspace.name
            assert not is_in_sight(pair.dock.native), workspace.name


@pytest.mark.parametrize(
    "others_px",
    [
        pytest.param(0, id="alone", marks=pytest.mark.long),
        pytest.param(350, id="beside another plugin"),
    ],
)
def test_a_small_window_keeps_its_size_with_all_panels(pair, others_px):
    main = pair.viewer.window._qt_window
    others = QLabel("another plugin")
    others.setMinimumHeight(others_px)
    if others_px:
        pair.viewer.window.add_dock_widget(others, name="other", area="right")
    pair.viewer.window.resize(1270, 760)
    handle_events()
    size = main.size()
    with patch("napari_panoptic.viewer.desk.nuclei.PARTS", PARTS):
        pair.open_dock()
        handle_events()
        assert main.size() == size
        pair.compare()
    for workspace in ("Failures", "Cohort", "Inspect"):
        pair.desk.show_workspace(workspace)
        pair.wait(lambda: pair.desk.is_arranged)
        assert main.size() == size, workspace
        bottom = main.statusBar().mapTo(main, QPoint(0, 0)).y()
        for title in pair.desk.docked():
            dock = pair.desk.dock(title)
            if is_in_sight(dock):
                assert dock.geometry().bottom() < bottom, (workspace, title)


# --- placement ---


@pytest.mark.parametrize(
    "placed",
    [
        {"scale": (0.5, 0.25), "translate": (30, -12)},
        {"scale": (0.5, 0.5), "translate": (7, 3), "units": ("micrometer", "micrometer")},
    ],
    ids=["anisotropic", "micrometres"],
)
def test_results_lie_on_the_layers(window, placed):
    viewer = window.viewer
    viewer.add_image(np.zeros(SHAPE), **placed)
    mine = viewer.add_labels(blobs(1), name="truth", **placed)
    viewer.add_labels(blobs(2), name="model", **placed)
    window.compare()
    results = [layer for layer in own_layers(viewer) if layer.data.shape[:2] == SHAPE]
    assert len(results) >= 3
    for layer in results:
        assert tuple(layer.scale) == tuple(mine.scale)
        assert tuple(layer.translate) == tuple(mine.translate)
        assert [str(u) for u in layer.units] == [str(u) for u in mine.units]
    y, x = np.argwhere(mine.data)[0]
    world = mine.data_to_world((y, x))
    pointed = window.desk.link.scene.objects_at(world)
    assert any(at.team is None for at in pointed)
    window.desk.link.scene.camera.fit()
    camera = viewer.scene.camera.center[-2:]
    middle = mine.data_to_world(((SHAPE[0] - 1) / 2, (SHAPE[1] - 1) / 2))
    assert np.allclose(camera, middle)


def test_results_on_layers_of_32_bits_are_outlined_by_lines(pair):
    assert pair.reference.data.dtype.itemsize >= 4
    pair.compare()
    shown = [layer for layer in own_layers(pair.viewer) if layer.visible and layer.name != "image"]
    assert len(shown) == 3  # one is the line around the selected object
    for layer in shown:
        assert layer.data.dtype == np.uint16 or layer.name == SELECTED
        assert layer.contour > 0
        assert outlines_of(layer, pair.viewer).are_lines


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale": (2, 2)}, "differ in scale (2, 2 and 1, 1)"),
        ({"translate": (5, 0)}, "differ in translate (5, 0 and 0, 0)"),
        ({"rotate": 30}, "rotate"),
        ({"shear": [0.5]}, "shear"),
        ({"affine": [[1, 0, 3], [0, 1, 0], [0, 0, 1]]}, "affine"),
        ({"units": ("micrometer", "micrometer")}, "differ in units"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_layers_that_do_not_lie_on_each_other_are_refused(window, change, words):
    window.viewer.add_labels(blobs(1), name="truth")
    window.viewer.add_labels(blobs(2), name="model", **change)
    told = window.compare()
    assert words in told
    assert "'model'" in told
    assert window.desk is None


@pytest.mark.long
def test_a_rotation_that_all_layers_share_is_refused(window):
    for name in ("truth", "model"):
        window.viewer.add_labels(blobs(1), name=name, rotate=90)
    assert "rotate transformation" in window.compare()


@pytest.mark.long
def test_another_size_is_refused(window):
    window.viewer.add_labels(blobs(1), name="truth")
    small = window.viewer.add_labels(blobs(1, (50, 60)), name="model")
    dock = window.open_dock()
    dock.predictions.value = [small]
    assert "50 x 60 px and the others 90 x 120" in window.compare()


# --- following ---


@pytest.mark.long
def test_random_edits_from_both_sides(pair):
    """200 edits by brush, bucket, undo and other code; figures equal those of the arrays."""
    pair.compare()
    rng = np.random.default_rng(7)
    layers = [pair.reference, pair.one, pair.other]
    teams = {"one": pair.one, "two_ v1": pair.other}
    session = pair.session
    for step in range(200):
        layer = layers[int(rng.integers(3))]
        kind = rng.choice(["paint", "fill", "undo", "redo", "data", "write", "team"])
        at = tuple(int(rng.integers(0, n)) for n in SHAPE)
        label = int(rng.choice([0, *range(1, 14), 40, 500]))
        if kind == "paint":
            layer.brush_size = int(rng.integers(2, 14))
            layer.paint(at, label)
        elif kind == "fill":
            layer.fill(at, label)
        elif kind in ("undo", "redo"):
            getattr(layer, kind)()
        elif kind == "data":
            layer.data = np.roll(layer.data, int(rng.integers(-4, 5)), int(rng.integers(2)))
        elif kind == "write":
            layer.data[at[0] : at[0] + 9, at[1] : at[1] + 9] = label
            layer.refresh()
        else:
            session.set_team(str(rng.choice(list(teams))))
        if step % 3 == 0:
            QCoreApplication.processEvents()
        if step % 20 == 19:
            pair.settle()
            pair.assert_equal(pair.reference, teams)
    assert pair.session is session  # nothing was built again
    for team in teams:
        session.set_team(team)
        pair.settle()
        layer, values = pair.desk.link.scene.object_layer(Side.PREDICTION, team)
        assert np.array_equal(values.ids(layer.data), np.asarray(teams[team].data))


@pytest.mark.long
def test_mirrored_edits_are_not_unsaved(pair, monkeypatch):
    pair.compare()
    monkeypatch.setattr(QMessageBox, "exec", lambda _box: pytest.fail("asked"))
    pair.one.paint((40, 40), 99)
    pair.settle()
    part = pair.desk.presenter(EditsPresenter)
    assert pair.session.shown.outcomes.prediction.row_of(99) is not None
    assert not part.edits.unsaved
    assert not part.autosaver.is_busy
    assert pair.desk.may_leave()
    assert not any("edited" in layer.name for layer in pair.viewer.layers)


@pytest.mark.long
def test_edits_on_the_desk_are_unsaved_and_stay(pair, monkeypatch):
    pair.compare()
    part = pair.desk.presenter(EditsPresenter)
    part.toggle()
    mine = pair.desk.link.scene.object_layer(Side.PREDICTION, "one")[0]
    mine.paint((5, 5), 60)
    pair.settle()
    assert part.edits.unsaved
    asked = []
    monkeypatch.setattr(QMessageBox, "exec", lambda _box: asked.append(1))
    assert not pair.desk.may_leave()
    assert asked
    pair.one.paint((80, 100), 61)  # elsewhere: the drawn object stays
    pair.settle()
    assert pair.session.shown.pair.prediction.index[5, 5]
    part.edits.discard()
    pair.settle()
    assert not part.edits.unsaved
    pair.assert_equal(pair.reference, {"one": pair.one})


@pytest.mark.long
def test_renaming_keeps_settings_team_and_view(pair):
    pair.compare()
    settings = pair.session.settings.replaced(iou_threshold=0.7)
    pair.desk.panels.settings.settings_chosen.emit(settings)
    pair.session.set_team("two_ v1")
    pair.settle()
    pair.viewer.scene.camera.zoom = 3.25
    pair.other.name = "version 2"
    pair.settle()
    assert pair.session.team == "version 2"
    assert pair.session.settings == settings
    assert pair.viewer.scene.camera.zoom == 3.25
    assert "version 2" in pair.listed_names()


@pytest.mark.long
def test_data_of_another_shape(pair):
    pair.compare()
    pair.one.data = blobs(1, (60, 70))
    pair.settle()
    assert "60 x 70" in pair.dock.message.value
    pair.reference.data = blobs(1, (60, 70))
    pair.other.data = blobs(3, (60, 70))
    pair.settle()
    assert pair.session.snapshot.shape == (60, 70)
    pair.assert_equal(pair.reference, {"one": pair.one})


@pytest.mark.long
def test_the_slider_of_a_stack(window):
    stack = np.stack([blobs(n) for n in range(3)])
    truth = window.viewer.add_labels(stack, name="truth")
    model = window.viewer.add_labels(np.roll(stack, 2, 1), name="model")
    window.viewer.dims.set_current_step(0, 0)
    window.compare()
    for step in (2, 1):
        window.viewer.dims.set_current_step(0, step)
        window.settle()
        expected = evaluate_pair(stack[step], model.data[step])
        assert window.session.shown.metrics.pq == expected.metrics.pq
    truth.data[1, :40] = 0
    truth.refresh()
    window.settle()
    expected = evaluate_pair(truth.data[1], model.data[1])
    assert window.session.shown.metrics.pq == expected.metrics.pq


@pytest.mark.long
def test_another_prediction_is_added(pair):
    pair.compare()
    pair.session.set_team("two_ v1")
    third = pair.viewer.add_labels(blobs(5), name="third")
    assert "third" in pair.listed_names()
    pair.dock.predictions.value = [pair.one, pair.other, third]
    pair.compare()
    assert pair.session.team == "two_ v1"
    pair.assert_equal(pair.reference, {"one": pair.one, "third": third})


@pytest.mark.long
def test_removing_layers_is_a_notice(pair):
    pair.compare()
    pair.viewer.layers.remove(pair.other)
    pair.settle()
    assert pair.dock.message.value.startswith(("The layer 'two: v1' was removed", "The results"))
    assert list(pair.session.snapshot.evaluations) == ["one"]
    figures = pair.session.shown.metrics
    pair.viewer.layers.remove(pair.reference)
    pair.settle()
    assert "results are those of the last state" in pair.dock.message.value
    assert pair.session.shown.metrics == figures


@pytest.mark.long
def test_removing_everything(pair):
    pair.compare()
    pair.viewer.layers.clear()
    pair.settle()
    assert "were removed" in pair.dock.message.value


# --- the user's layers ---


@pytest.mark.long
def test_the_layers_of_the_user_stay_as_they_are(pair):
    pair.one.paint((3, 3), 77)
    before = [
        (layer.name, layer.data.copy(), layer.visible, layer.opacity, layer.contour)
        for layer in pair.viewer.layers
    ]
    colours = [layer.colormap for layer in pair.viewer.layers]
    order = list(pair.viewer.layers)
    pair.compare()
    pair.session.set_team("two_ v1")
    pair.settle()
    pair.desk.close()
    mine = [layer for layer in pair.viewer.layers if not is_own(layer)]
    assert mine == order
    for layer, (name, data, *look) in zip(mine, before, strict=True):
        assert layer.name == name
        assert np.array_equal(layer.data, data)
        assert [layer.visible, layer.opacity, layer.contour] == look
    assert [layer.colormap for layer in mine] == colours
    pair.one.undo()
    assert pair.one.data[3, 3] == 0


@pytest.mark.long
def test_results_are_written_to_the_features(pair):
    pair.one.features = pd.DataFrame({"index": [3, 1], "class": ["x", "y"], "note": ["a", "b"]})
    calls = []
    pair.one.events.features.connect(lambda _event: calls.append(1))
    pair.compare()
    pair.settle()
    table = pair.one.features
    assert list(table["index"][:2]) == [3, 1]
    assert list(table["note"][:2]) == ["a", "b"]
    assert list(table["class"][:2]) == ["x", "y"]
    assert "class (result)" in table
    objects = pair.session.snapshot.evaluations["one"].objects
    objects = objects[objects["side"] == "prediction"].set_index("id")
    for row in table[table["status"].notna()].itertuples():
        assert row.status == objects.loc[table["index"][row.Index]].status
    count = len(calls)
    pair.wait(lambda: pair.dock.live.is_settled)
    assert len(calls) == count <= 3
    widget = _napari_features_table(pair.viewer)
    assert widget is not None


def _napari_features_table(viewer):
    """Open napari's own table on the layer that is active."""
    viewer.layers.selection.active = viewer.layers["one"]
    _, widget = viewer.window.add_plugin_dock_widget("napari", "Features table widget")
    return widget


# --- classes, areas, shapes, points ---


@pytest.mark.long
def test_classes_and_scores_of_columns(pair):
    for layer in (pair.reference, pair.one):
        layer.features = pd.DataFrame({"index": range(13), "kind": ["", *(["round", "long"] * 6)]})
    scores = [np.nan, np.nan, *(k / 16 for k in range(2, 13))]
    pair.one.features = pair.one.features.assign(Prob=scores)
    dock = pair.open_dock()
    dock.predictions.value = [pair.one]
    dock.classes.value = "kind"
    pair.compare()
    assert {"round", "long"} <= set(pair.session.cohort.scheme.names)
    kinds = dict(enumerate(pair.reference.features["kind"]))
    expected = evaluate_pair(
        pair.reference.data, pair.one.data, reference_classes=kinds, prediction_classes=kinds
    )
    assert pair.session.shown.metrics.pq == expected.metrics.pq
    features = pair.one.features.copy()
    features.loc[features["index"] == 2, "kind"] = "round"
    pair.one.features = features
    pair.settle()
    own = pair.session.shown.objects
    mine = own[own["side"] == "prediction"].set_index("id")
    assert mine.loc[2, "class"] == "round"
    np.testing.assert_array_equal(mine["score"], [scores[id_] for id_ in mine.index])
    pair.one.features = features.assign(Prob=0.5)
    pair.settle()
    own = pair.session.shown.objects
    assert set(own.loc[own["side"] == "prediction", "score"]) == {0.5}


@pytest.mark.long
def test_classes_of_a_table(pair, tmp_path):
    path = tmp_path / "classes.csv"
    path.write_text("id,class\n1,round\n2,long\n")
    dock = pair.open_dock()
    dock.classes.value = "a table file"
    assert "Choose the table" in pair.compare()
    dock.table.value = path
    pair.compare()
    assert {"round", "long", "Nucleus"} <= set(pair.session.cohort.scheme.names)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["labels", "shapes"])
def test_an_ambiguous_area(pair, kind):
    mask = np.zeros(SHAPE, np.uint8)
    mask[10:50, 10:60] = 1
    if kind == "labels":
        area = pair.viewer.add_labels(mask, name="area")
    else:
        corners = [[9.5, 9.5], [9.5, 59.5], [49.5, 59.5], [49.5, 9.5]]
        area = pair.viewer.add_shapes([np.array(corners)], shape_type="polygon", name="area")
    dock = pair.open_dock()
    dock.predictions.value = [pair.one]
    dock.ambiguous.value = area
    pair.compare()
    expected = evaluate_pair(pair.reference.data, pair.one.data, ambiguous=mask > 0)
    assert pair.session.shown.metrics.pq == expected.metrics.pq
    if kind == "labels":
        mask[:, :80] = 1
        area.data = mask
    else:
        area.data = [np.array([[-0.5, -0.5], [-0.5, 79.5], [89.5, 79.5], [89.5, -0.5]])]
        mask[:] = 0
        mask[:, :80] = 1
    pair.settle()
    expected = evaluate_pair(pair.reference.data, pair.one.data, ambiguous=mask > 0)
    assert pair.session.shown.metrics.pq == expected.metrics.pq
    assert not pair.desk.presenter(EditsPresenter).edits.unsaved


@pytest.mark.long
def test_shapes_as_reference(window):
    squares = [(y, x) for y in (10, 40) for x in (10, 50, 90)]
    drawn = np.zeros(SHAPE, np.int32)
    corners = []
    for number, (y, x) in enumerate(squares, start=1):
        drawn[y : y + 12, x : x + 12] = number
        corners.append(np.add([[0, 0], [0, 12], [12, 12], [12, 0]], (y - 0.5, x - 0.5)))
    shapes = window.viewer.add_shapes(corners, shape_type="polygon", name="truth")
    model = window.viewer.add_labels(np.roll(drawn, 2, 1), name="model")
    dock = window.open_dock()
    dock.reference.value, dock.predictions.value = shapes, [model]
    window.compare()
    assert window.session.shown.metrics.pq == evaluate_pair(drawn, model.data).metrics.pq
    assert list(shapes.features["status"]) == ["TP"] * 6
    shapes.selected_data = {0}
    shapes.remove_selected()
    drawn[drawn == 1] = 0
    window.settle()
    assert window.session.shown.metrics.pq == evaluate_pair(drawn, model.data).metrics.pq


@pytest.mark.long
def test_points_open_the_desk_of_detections(window):
    placed = {"scale": (0.5, 0.5), "translate": (4, 6), "units": ("micrometer", "micrometer")}
    viewer = window.viewer
    viewer.add_image(np.zeros(SHAPE), **placed)
    truth = viewer.add_points([[10, 10], [40, 50], [70, 90]], name="truth", **placed)
    model = viewer.add_points([[11, 10], [40, 52]], name="model", **placed)
    dock = window.open_dock()
    assert dock.reference.value is truth
    window.compare()
    desk = detection_desk_in(viewer)
    assert desk.session.judged is not None
    results = [layer for layer in own_layers(viewer) if layer.visible]
    assert results
    assert all(tuple(layer.translate) == (4, 6) for layer in results)
    assert desk.session.pooled("model").tp == 2
    model.data = [[11, 10], [40, 52], [70, 91]]
    window.settle()
    assert detection_desk_in(viewer).session.pooled("model").tp == 3


@pytest.mark.long
def test_points_and_labels_are_not_mixed(pair):
    points = pair.viewer.add_points([[10, 10]], name="dots")
    dock = pair.open_dock()
    dock.predictions.value = [points]
    assert "'dots' has points and 'ground truth' has outlines" in pair.compare()


# --- lazy layers ---


@pytest.mark.long
@pytest.mark.parametrize("kind", ["dask", "zarr"])
def test_lazy_layers(window, tmp_path, kind):
    truth, model = blobs(1), blobs(2)
    if kind == "dask":
        lazy = da.from_array(model, chunks=40)
    else:
        lazy = zarr.create_array(str(tmp_path / "m.zarr"), data=model, chunks=(40, 40))
    window.viewer.add_labels(truth, name="truth")
    window.viewer.add_labels(lazy, name="model")
    window.compare()
    assert window.session.shown.metrics.pq == evaluate_pair(truth, model).metrics.pq


@pytest.mark.long
def test_large_lazy_layers_are_slides(window, monkeypatch):
    for module in ("viewer.layer_pair.sources", "live.session"):
        monkeypatch.setattr(f"napari_panoptic.{module}.HELD_UP_TO_PX", 1000)
    truth, model = blobs(1), blobs(2)
    window.viewer.add_labels(da.from_array(truth, chunks=40), name="truth")
    window.viewer.add_labels(da.from_array(model, chunks=40), name="model")
    window.compare()
    assert window.session.snapshot.is_slide
    assert window.session.shown.metrics.pq == evaluate_pair(truth, model).metrics.pq


# --- saving, and the dock ---


def test_the_comparison_is_saved_as_a_cohort(pair, tmp_path):
    pair.compare()
    pair.one.paint((40, 40), 99)
    pair.settle()
    folder = tmp_path / "saved"
    with patch("napari_panoptic.viewer.layer_pair.dock.ask_for_new_folder", lambda _p: folder):
        pair.dock.save.changed.emit(True)
    assert str(folder) in pair.dock.message.value
    assert len(list(folder.rglob("cohort.toml"))) == 1
    cohort = open_cohort(folder)
    snapshot = load_region(cohort, "pair", pair.session.settings)
    found = {team: each.metrics.pq for team, each in snapshot.evaluations.items()}
    assert found == {
        team: each.metrics.pq for team, each in pair.session.snapshot.evaluations.items()
    }


@pytest.mark.long
def test_the_dock_lists_the_layers_of_the_user_only(pair):
    pair.compare()
    names = pair.listed_names()
    assert names == {"ground truth", "one", "two: v1"}
    results = {layer.name for layer in own_layers(pair.viewer)}
    assert "one (results)" in results
    pair.desk.close()
    assert pair.listed_names() == names


@pytest.mark.long
def test_layers_that_are_opened_later_are_chosen(window):
    dock = window.open_dock()
    assert "Open an annotation" in window.compare()
    window.viewer.add_labels(blobs(1), name="mask_gt")
    window.viewer.add_labels(blobs(2), name="stardist")
    assert dock.reference.value.name == "mask_gt"
    assert [layer.name for layer in dock.predictions.value] == ["stardist"]


# --- closing ---


@pytest.mark.long
def test_nothing_stays_alive_after_closing(pair):
    pair.compare()
    pair.one.paint((40, 40), 99)
    pair.settle()
    live = pair.dock.live
    folders = [p for p in Path(tempfile.gettempdir()).glob("napari-panoptic-*") if p.is_dir()]
    assert folders
    refs = [weakref.ref(live), weakref.ref(pair.desk), weakref.ref(pair.session)]
    refs.append(weakref.ref(pair.desk.link))
    mine = Path(live._store.folder.name)
    pair.desk.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not mine.exists()
    pair.viewer.window.remove_dock_widget(pair.dock.native)
    pair.dock.native.deleteLater()
    pair.dock = live = None
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def is_gone():
        gc.collect()
        return all(ref() is None for ref in refs)

    pair.wait(is_gone)  # a worker that is about to end may hold the session
    pair.one.paint((20, 20), 3)  # nobody listens any more
    QCoreApplication.processEvents()


@pytest.mark.long
def test_the_folder_is_removed_with_the_window(qapp, napari_application, wait_until):  # noqa: ARG001
    viewer = napari.Viewer()
    opened = Window(viewer, wait_until)
    viewer.add_labels(blobs(1), name="truth")
    viewer.add_labels(blobs(2), name="model")
    opened.compare()
    folder = opened.session.cohort.root
    assert folder.exists()
    close_viewer(viewer)
    wait_until(lambda: not folder.exists())


@pytest.mark.long
def test_the_files_of_the_comparison_follow(pair):
    pair.compare()
    pair.one.paint((40, 40), 99)
    pair.settle()
    cohort, settings = pair.session.cohort, pair.session.settings
    expected = pair.session.snapshot.evaluations["one"].metrics.pq

    def follows():
        found = load_region(cohort, "pair", settings).evaluations["one"]
        return found.metrics.pq == expected and found.outcomes.prediction.row_of(99) is not None

    pair.wait(follows)


def test_what_cannot_be_written_is_said_and_written_with_the_next_change(pair, monkeypatch):
    pair.compare()
    with monkeypatch.context() as patch:

        def is_full(*_asked):
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(LabelsComparison, "write_side", is_full)
        pair.one.paint((40, 40), 99)
        pair.wait(lambda: "No space left on device" in pair.dock.message.value)
    pair.other.paint((10, 10), 98)  # another layer: the first one is written with it
    cohort, settings = pair.session.cohort, pair.session.settings

    def has_both():
        found = load_region(cohort, "pair", settings).evaluations
        ids = {name: own.outcomes.prediction for name, own in found.items()}
        if ids.keys() != {"one", "two_ v1"}:  # one is just being written
            return False
        first, second = ids["one"].row_of(99), ids["two_ v1"].row_of(98)
        return first is not None and second is not None

    pair.wait(has_both)
