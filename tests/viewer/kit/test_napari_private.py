"""Every private name of napari that is used is there; without it the fallback applies.

A test that fails after an update of napari names what was renamed.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Labels, Shapes
from napari.settings import get_settings
from napari.utils._proxies import PublicOnlyProxy
from qtpy.QtWidgets import QLabel, QMainWindow
from vispy.visuals.shaders import Function

from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.kit import napari_private as private
from napari_panoptic.viewer.layers.labels import label_colours, set_colours
from tests.viewer.finding import lut_of


def without(kind, *hidden):
    """Return a subclass whose instances lack some names, as after an update of napari."""

    class Renamed(kind):
        def __getattribute__(self, name):
            if name in hidden:
                raise AttributeError(name)
            return super().__getattribute__(name)

    return Renamed


@pytest.fixture
def viewer(window):
    yield window
    window.canvas.grid.enabled, window.dims.ndisplay = False, 2


@pytest.fixture
def labels():
    return Labels(np.pad(np.ones((20, 20), np.uint16), 10))


class TestWindow:
    def test_it_is_found_until_it_is_closed(self, make_napari_viewer):
        viewer = make_napari_viewer()
        is_open = private.window_check(viewer)
        assert isinstance(private.window_of(viewer), QMainWindow)
        assert is_open()
        viewer.close()
        assert private.window_of(viewer) is None
        assert not is_open()

    def test_without_its_name_a_docked_widget_leads_to_it(self, viewer):
        widget = QLabel("docked")
        viewer.window.add_dock_widget(widget)
        renamed = SimpleNamespace(window=SimpleNamespace(dock_widgets=viewer.window.dock_widgets))
        assert private.window_of(renamed) is private.window_of(viewer)
        assert private.window_check(renamed)()

    def test_a_viewer_without_a_window_has_none(self):
        assert private.window_of(ViewerModel()) is None
        private.focus_canvas(ViewerModel())

    def test_a_viewer_is_taken_out_of_the_proxy_of_plugins(self):
        viewer = ViewerModel()
        assert private.unwrapped(PublicOnlyProxy(viewer)) is viewer
        assert private.unwrapped(viewer) is viewer

    def test_the_docks_of_napari_are_found(self, viewer):
        layer_list, controls = private.napari_docks(private.window_of(viewer))
        assert layer_list is not None
        assert controls is not None
        assert private.napari_docks(None) == (None, None)

    def test_a_cross_does_something_else(self, viewer):
        dock, crossed = viewer.window.add_dock_widget(QLabel("docked"), name="own"), []
        assert callable(type(dock).destroyOnClose)
        private.on_cross(dock, lambda: crossed.append(1))
        dock.destroyOnClose()
        assert crossed == [1]
        private.on_cross(dock, None)
        dock.destroyOnClose()
        assert "own" not in viewer.window.dock_widgets

    @pytest.mark.long
    def test_the_image_gets_the_keyboard(self, viewer, qtbot):
        field = QLabel("docked")
        viewer.window.add_dock_widget(field)
        private.focus_canvas(viewer)
        qtbot.waitUntil(lambda: private._canvas(viewer).native.hasFocus())


class TestCanvas:
    @pytest.mark.long
    def test_it_ends_where_single_steps_lead(self, viewer):
        viewer.add_layer(Labels(np.zeros((40, 60), np.uint16)))
        camera = viewer.window._qt_viewer.canvas.camera._view.camera
        moves = []
        camera.transform.changed.connect(lambda _event: moves.append(1))
        ends, counts = [], []
        for hold in (nullcontext(), private.moved_once(viewer)):
            viewer.scene.camera.center, viewer.scene.camera.zoom = (0, 1, 2), 1.5
            moves.clear()
            with hold:
                viewer.scene.camera.center, viewer.scene.camera.zoom = (0, 20, 30), 4.0
            where = viewer.scene.camera.center, viewer.scene.camera.zoom
            ends.append((camera.rect, *where, camera.transform.map((3, 5)).tolist()))
            counts.append(len(moves))
        assert ends[0] == ends[1]
        assert 0 < counts[1] < counts[0]  # notices when vispy's private name is gone

    def test_a_viewer_without_a_window_moves_too(self):
        viewer = ViewerModel()
        with private.moved_once(viewer):
            viewer.scene.camera.zoom = 3.0
        assert viewer.scene.camera.zoom == 3.0

    def test_cameras_of_former_cells_hear_no_more_of_the_camera(self, viewer):
        canvas = private._canvas(viewer)
        assert callable(getattr(type(canvas), private._UPDATE_GRID))
        private.release_old_cells(viewer)
        corrected = getattr(type(canvas), private._UPDATE_GRID)
        private.release_old_cells(viewer)
        assert getattr(type(canvas), private._UPDATE_GRID) is corrected
        for _ in range(2):
            viewer.add_layer(Labels(np.ones((20, 20), np.uint16)))
        viewer.dims.ndisplay = 3
        viewer.canvas.grid.enabled = True
        kept = list(canvas.grid_cameras)  # as the traceback of an earlier error keeps them
        viewer.add_layer(Labels(np.ones((20, 20), np.uint16)))
        assert not set(kept) & set(canvas.grid_cameras)
        viewer.scene.camera.center = (0, 6, 5)
        assert viewer.scene.camera.center == (0, 6, 5)
        private.release_old_cells(ViewerModel())

    def test_the_canvas_is_arranged_once_for_all_layers(self, viewer):
        canvas = private._canvas(viewer)
        assert hasattr(canvas, private._PAUSED)
        assert callable(getattr(canvas, private._ARRANGE))
        layers = [Labels(np.ones((20, 20), np.uint16)) for _ in range(2)]
        with private.arranged_once(viewer):
            for layer in layers:
                viewer.add_layer(layer)
            nodes = [canvas.layer_to_visual[layer].node for layer in layers]
            assert [node.parent for node in nodes] == [None, None]
        assert [node.parent for node in nodes] == [canvas.view.scene] * 2

    def test_without_the_names_layers_come_as_a_batch(self):
        viewer, batches = ViewerModel(), []
        viewer.layers.events.begin_batch.connect(batches.append)
        with private.arranged_once(viewer):
            viewer.add_layer(Labels(np.ones((20, 20), np.uint16)))
        assert len(batches) == 1

    @pytest.mark.long
    def test_textures_are_freed_in_the_canvas_that_owns_them(self, viewer, monkeypatch):
        canvas = private._canvas(viewer)
        kind, calls = type(canvas), []
        assert callable(getattr(kind, private._FREE_TEXTURES))
        monkeypatch.setattr(kind, private._FREE_TEXTURES, lambda _canvas: calls.append("freed"))
        private.free_textures_in_own_context(viewer)
        corrected = getattr(kind, private._FREE_TEXTURES)
        private.free_textures_in_own_context(viewer)
        assert getattr(kind, private._FREE_TEXTURES) is corrected
        native = SimpleNamespace(makeCurrent=lambda: calls.append("current"))
        corrected(SimpleNamespace(native=native))
        assert calls == ["current", "freed"]
        private.free_textures_in_own_context(ViewerModel())


class TestLayers:
    def test_a_layer_that_is_added_is_not_activated(self, labels):
        viewer = ViewerModel()
        first = viewer.add_layer(Labels(np.ones((9, 9), np.uint16)))
        with private.not_activated(viewer.layers):
            viewer.add_layer(labels)
        assert viewer.layers.selection.active is first
        other = viewer.add_layer(Labels(np.ones((9, 9), np.uint16)))
        assert viewer.layers.selection.active is other

    def test_tools_for_drawing_are_made_when_they_are_shown(self, viewer, labels):
        overlays = private._canvas(viewer)._layer_overlay_to_visual
        private.show_tools(labels, shown=False)
        viewer.add_layer(labels)
        assert len(overlays[labels]) == 0
        private.show_tools(labels, shown=True)
        assert len(overlays[labels]) == 2
        private.show_tools(SimpleNamespace(), shown=True)

    def test_a_layer_does_not_slice_while_it_is_held(self, labels):
        sliced = []
        labels.events.set_data.connect(sliced.append)
        with private.refresh_held(labels):
            labels.refresh()
        assert sliced == []

    def test_without_the_name_colours_still_change(self):
        layer = without(Labels, "_block_refresh")(np.array([[0, 1]], np.uint16))
        set_colours(layer, lut_of((0, 0, 1, 1)))
        assert layer.get_color(1).tolist() == [0, 0, 1, 1]

    @pytest.mark.long
    def test_colours_are_exchanged_on_the_card(self, viewer, labels):
        labels.colormap = label_colours(lut_of((1, 0, 0, 1)))
        viewer.add_layer(labels)
        viewer.screenshot()
        sliced = []
        labels.events.set_data.connect(sliced.append)
        assert private.exchange_colours(labels, lut_of((0, 1, 0, 1)), viewer)
        assert sliced == []
        assert labels.get_color(1).tolist() == [0, 1, 0, 1]
        shown = viewer.screenshot(flash=False)
        assert (shown[..., 1] > shown[..., 0]).any()
        assert not (shown[..., 0] > shown[..., 1]).any()

    def test_a_hidden_layer_keeps_only_the_newest_colours(self, viewer, labels):
        labels.colormap = label_colours(lut_of((1, 0, 0, 1)))
        labels.visible = False
        viewer.add_layer(labels)
        node = private._node_with_table(labels, viewer)
        for _ in range(20):
            assert private.exchange_colours(labels, lut_of((0, 0, 1, 1)), viewer)
        assert private.exchange_colours(labels, lut_of((0, 1, 0, 1)), viewer)
        waiting = node.shared_program[private._TABLE].glir._shared._commands
        assert [command[0] for command in waiting].count("DATA") == 1
        labels.visible = True
        shown = viewer.screenshot(flash=False)
        assert (shown[..., 1] > shown[..., 2]).any()

    def test_without_a_window_nothing_is_exchanged(self, labels):
        viewer = ViewerModel()
        labels.colormap = label_colours(lut_of((1, 0, 0, 1)))
        viewer.add_layer(labels)
        assert not private.exchange_colours(labels, lut_of((0, 1, 0, 1)), viewer)
        assert labels.get_color(1).tolist() == [1, 0, 0, 1]

    def test_contours_are_drawn_as_wanted(self, labels):
        asked = []

        def draw(part, width_px):
            asked.append(width_px)
            return np.zeros_like(part)

        private.draw_contours_with(labels, draw)
        labels.contour = 2
        assert asked[-1] == 2
        assert not np.asarray(labels._slice.image.view).any()

    def test_contours_of_another_signature_are_left_to_napari(self):
        class Renamed(Labels):
            def _calculate_contour(self, labels, data_slice, width=None):  # noqa: ARG002
                return super()._calculate_contour(labels, data_slice)

        layer = Renamed(np.ones((9, 9), np.uint16))
        private.draw_contours_with(layer, lambda _part, _px: pytest.fail("was called"))
        assert "_calculate_contour" not in vars(layer)

    def test_whole_objects_are_sent_where_contours_are_not_wanted(self, labels):
        assert private.draw_contours_with(labels, lambda part, _px: 0 * part, lambda: True)
        labels.contour = 2
        assert np.array_equal(labels._slice.image.view, labels.data)

    def test_a_layer_is_drawn_by_functions_of_our_own(self, viewer, labels):
        viewer.add_layer(labels)
        labels.opacity = 1
        read = Function("vec4 red(vec2 place) { return texture2D($texture, place); }")
        colour = "vec4 blue(vec4 read) { return vec4(0.0, 0.0, 1.0, $colour_of(read.r).a); }"
        drawn, seen = [], [private.Shading(read, colour)]

        def choose(how):
            drawn.append(how)
            return seen[0]

        viewer.scene.camera.zoom = 4
        own = viewer.screenshot(flash=False)
        assert private.shade_labels_with(labels, viewer, choose)
        assert private.shade_labels_with(labels, viewer, choose)  # as before
        private.redraw(labels, viewer)
        shown = viewer.screenshot(flash=False)
        assert (shown[..., :3] == (0, 0, 255)).all(-1).any()
        assert drawn[-1].px == pytest.approx(1 / 4)
        assert drawn[-1].size == (40, 40)
        assert drawn[-1].most == 65535
        seen[0] = None
        private.redraw(labels, viewer)
        assert np.array_equal(viewer.screenshot(flash=False), own)

    @pytest.mark.parametrize("name", private._SHADER_NAMES)
    def test_without_a_name_nothing_is_drawn_otherwise(self, viewer, labels, name, monkeypatch):
        viewer.add_layer(labels)
        assert hasattr(private._canvas(viewer).layer_to_visual[labels].node, name)
        monkeypatch.setattr(private, "_SHADER_NAMES", (*private._SHADER_NAMES, f"{name}_renamed"))
        assert not private.shade_labels_with(labels, viewer, lambda _drawn: None)
        private.redraw(labels, viewer)

    def test_a_shader_is_compiled_to_see_whether_that_is_possible(self, viewer):
        viewer.screenshot(flash=False)
        private._canvas(viewer).native.makeCurrent()
        assert private.is_shader_accepted("#version 120\nfloat halved(float x) { return x / 2.0; }")
        assert not private.is_shader_accepted("#version 120\nno GLSL")

    def test_a_part_is_redrawn_without_slicing(self, labels):
        sliced = []
        labels.events.set_data.connect(sliced.append)
        labels.data[12:15, 12:15] = 7
        assert private.redraw_part(labels, (slice(12, 15), slice(12, 15)))
        assert sliced == []
        assert (np.asarray(labels._slice.image.raw)[12:15, 12:15] == 7).all()

    @pytest.mark.parametrize("name", ["_partial_labels_refresh", "_accumulate_updated_slice"])
    def test_without_a_name_the_caller_redraws(self, name):
        layer = without(Labels, name)(np.ones((9, 9), np.uint16))
        assert not private.redraw_part(layer, (slice(1, 2), slice(1, 2)))


class TestHistories:
    def test_a_stroke_is_a_step_with_a_box(self, labels):
        labels.brush_size = 3
        labels.paint((20, 15), 5)
        steps = private.histories(labels)["undo"]
        (box,) = private.boxes_of(steps[-1])
        assert box[0] <= 19
        assert box[2] > 21
        assert box[1] <= 14
        assert box[3] > 16
        labels.undo()
        assert private.histories(labels)["redo"]

    def test_indices_of_pixels_have_a_box_too(self):
        atom = ((np.array([3, 5]), np.array([4, 9])), np.array([0, 0]), 1)
        assert list(private.boxes_of([atom])) == [(3, 4, 6, 10)]

    def test_an_empty_step_is_undone_and_redone_in_its_turn(self, labels):
        labels.paint((20, 15), 5)
        before = np.array(labels.data)
        steps = private.histories(labels)
        steps["undo"].append([private.EmptyStep()])
        assert list(private.boxes_of(steps["undo"][-1])) == []
        labels.undo()
        np.testing.assert_array_equal(labels.data, before)
        labels.redo()
        np.testing.assert_array_equal(labels.data, before)
        labels.undo()
        labels.undo()
        assert labels.data[20, 15] == 1

    def test_without_the_names_there_are_no_steps(self):
        layer = without(Labels, "_undo_history")(np.ones((9, 9), np.uint16))
        assert private.histories(layer) == {}

    def test_shapes_tell_what_is_in_hand(self):
        layer = Shapes([np.array([[0, 0], [0, 9], [9, 9]])], shape_type="polygon")
        assert not private.is_in_hand(layer)
        layer._moving_coordinates = (1.0, 1.0)
        layer._is_moving = True  # fails where it is no attribute of napari's
        assert private.is_in_hand(layer)
        assert not private.is_being_drawn(layer)
        layer._is_moving, layer._is_creating = False, True
        assert private.is_being_drawn(layer)
        assert private.is_in_hand(layer)
        renamed = without(Shapes, "_is_creating", "_is_moving")
        assert not private.is_in_hand(object.__new__(renamed))


@pytest.mark.long
def test_docks_make_napari_save_its_settings_once(viewer, close_desk, monkeypatch):
    saved = []
    settings = get_settings()
    monkeypatch.setattr(type(settings), "save", lambda *_args, **_options: saved.append(1))
    assert settings._save_on_change
    saved.clear()
    with private.settings_saved_once(settings):
        desk = desk_of(viewer)
        assert not saved
    assert len(saved) == 1
    assert settings._save_on_change
    close_desk(desk)


def test_settings_without_the_names_are_left_alone():
    with private.settings_saved_once(SimpleNamespace()):
        pass
