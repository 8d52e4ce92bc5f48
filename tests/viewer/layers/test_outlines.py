"""Outlines are lines of the wanted width, on the edges of the pixels, at every zoom."""

import gc
import weakref

import numpy as np
import pytest
from napari.layers import Labels
from qtpy.QtCore import QCoreApplication
from scipy.spatial import cKDTree

from napari_panoptic.display.outlines import CASING_PX
from napari_panoptic.display.styles import LUT_LENGTH
from napari_panoptic.kernels.drawing import HATCH_SPACING_PX
from napari_panoptic.viewer.kit import napari_private as private
from napari_panoptic.viewer.kit.napari_private import Drawn
from napari_panoptic.viewer.layers import outline_shader, outlines
from napari_panoptic.viewer.layers.labels import label_colours, set_colours
from napari_panoptic.viewer.layers.outlines import Beneath, LayerOutlines, outlines_of

SIZE = 60
RECTANGLE, BESIDE = (slice(10, 30), slice(8, 28)), (slice(10, 30), slice(28, 40))


def shapes():
    """Return a rectangle, one that touches it, a disc with steps, and an object of one pixel."""
    y, x = np.mgrid[:SIZE, :SIZE]
    labels = np.zeros((SIZE, SIZE), np.uint16)
    labels[RECTANGLE], labels[BESIDE] = 1, 300
    labels[(y - 44) ** 2 + (x - 22.5) ** 2 < 11**2] = 2
    labels[45, 48] = 3
    return labels


def lut(colour=(1, 0, 0, 1)):
    table = np.zeros((LUT_LENGTH, 4), np.float32)
    table[1:] = colour
    return table


@pytest.fixture
def viewer(window, monkeypatch):
    monkeypatch.setattr(outlines, "_DRIVER", outlines._Driver())
    window.window.resize(900, 700)
    yield window
    window.canvas.grid.enabled, window.dims.ndisplay = False, 2


@pytest.fixture
def layer(viewer):
    return add_layer(viewer, shapes())


def add_layer(viewer, data, **options):
    layer = Labels(data, colormap=label_colours(lut()), opacity=1, **options)
    viewer.add_layer(layer)
    layer.contour = 1
    return layer


def picture(viewer):
    """Return the shares that red lines and their white casing cover of each screen pixel."""
    QCoreApplication.processEvents()
    shot = viewer.screenshot(flash=False)[..., :3] / 255
    return shot[..., 0] - shot[..., 1], shot[..., 1]


def places(viewer, shape):
    """Return where the middles of screen pixels lie in label pixels, from their upper left."""
    zoom, (y, x) = viewer.scene.camera.zoom, viewer.scene.camera.center[-2:]
    rows = (np.arange(shape[0]) + 0.5 - shape[0] / 2) / zoom + y + 0.5
    columns = (np.arange(shape[1]) + 0.5 - shape[1] / 2) / zoom + x + 0.5
    return np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1)


def edge_points(labels):
    """Return points (y, x) along the edges between pixels of different labels."""
    steps = (np.arange(32) + 0.5) / 32
    y, x = np.nonzero(labels[:, 1:] != labels[:, :-1])
    upright = [np.stack([y + s, x + 1.0], axis=1) for s in steps]
    y, x = np.nonzero(labels[1:] != labels[:-1])
    level = [np.stack([y + 1.0, x + s], axis=1) for s in steps]
    return np.concatenate(upright + level)


def widths_across(viewer, line, at_y, x_range):
    """Return how much a line covers along rows of the screen between two columns of labels."""
    where = places(viewer, line.shape)
    rows = np.abs(where[:, 0, 0] - at_y) < 2
    columns = (where[0, :, 1] > x_range[0]) & (where[0, :, 1] < x_range[1])
    return line[np.ix_(rows, columns)].sum(axis=1)


class TestLines:
    @pytest.mark.parametrize("zoom", [1, 3, 10, 30])
    @pytest.mark.parametrize("width", [2.5, pytest.param(1.5, marks=pytest.mark.long)])
    def test_they_run_along_the_edges_of_pixels_in_their_width(self, viewer, layer, zoom, width):
        outlines_of(layer, viewer).set_width(width)
        viewer.scene.camera.zoom = zoom
        viewer.scene.camera.center = (0, 19.7, 9.3) if zoom > 3 else (0, 30, 30)
        line, casing = picture(viewer)
        where, points = places(viewer, line.shape), edge_points(shapes())
        far = cKDTree(points).query(where.reshape(-1, 2))[0].reshape(line.shape) * zoom
        beyond = 0.5 * zoom + width / 2 + 0.75  # half a label pixel, and half a screen pixel
        assert line[far > beyond].max() < 0.05
        assert casing[far > beyond + CASING_PX + 0.5].max() < 0.05
        # Each point of an edge has a line near it.
        drawn = cKDTree(where[line > 0.4])
        in_sight = (points > where[0, 0] + 2 / zoom).all(1) & (points < where[-1, -1]).all(1)
        assert in_sight.sum() > 500
        assert drawn.query(points[in_sight])[0].max() * zoom < 0.5 * zoom + 1
        # The left side of the rectangle is straight.
        found = widths_across(viewer, line, 20, (5, 11))
        assert np.abs(found - width).max() < (0.55 if zoom == 1 else 0.15)

    @pytest.mark.parametrize("zoom", [0.3, 1, 1.4])
    @pytest.mark.parametrize("width", [2.5, pytest.param(1.5, marks=pytest.mark.long)])
    def test_from_afar_they_have_their_width_on_average(self, viewer, zoom, width):
        data = np.zeros((400, 400), np.uint16)
        data[100:300, 100:300] = 1
        outlines_of(add_layer(viewer, data), viewer).set_width(width)
        viewer.scene.camera.zoom, found = zoom, []
        for shift in np.arange(10) / 10 / zoom:  # edges lie anywhere between screen pixels
            viewer.scene.camera.center = (0, 200, 200 + shift)
            line, _ = picture(viewer)
            found.append(widths_across(viewer, line, 200, (80, 120)).mean())
        assert np.mean(found) == pytest.approx(width, abs=0.2)

    def test_steps_are_straight(self, viewer):
        y, x = np.mgrid[:SIZE, :SIZE]
        layer = add_layer(viewer, (x > y).astype(np.uint16))
        outlines_of(layer, viewer).set_width(2.5)
        viewer.scene.camera.zoom, viewer.scene.camera.center = 20, (0, 30, 30)
        line, _ = picture(viewer)
        where = places(viewer, line.shape)
        far = np.abs(where[..., 1] - where[..., 0] - 0.5) / np.sqrt(2) * 20
        inside = (where > 20).all(-1) & (where < 40).all(-1)
        assert line[inside & (far < 0.7)].min() > 0.9
        assert line[inside & (far > 2.2)].max() < 0.05

    @pytest.mark.parametrize(
        "zoom", [0.25, 2, *(pytest.param(z, marks=pytest.mark.long) for z in (0.5, 8))]
    )
    def test_none_is_wider_than_a_quarter_of_the_object(self, viewer, zoom):
        data = np.zeros((400, 400), np.uint16)
        data[100:300, 197:203] = 1  # 6 px wide
        layer = add_layer(viewer, data)
        lines = outlines_of(layer, viewer)
        lines.set_width(2.5)
        lines.set_boxes(np.array([[100, 197, 300, 203]]))
        viewer.scene.camera.zoom, viewer.scene.camera.center = zoom, (0, 200, 199.5)
        line, _ = picture(viewer)
        middle = line[line.shape[0] // 2 - 5 : line.shape[0] // 2 + 5]
        both = middle.sum(axis=1).mean()
        assert 0 < both <= 2 * min(2.5, 6 * zoom / 4) + 0.3

    def test_the_selected_one_is_a_pixel_wider(self, viewer, layer):
        lines = outlines_of(layer, viewer)
        viewer.scene.camera.zoom, viewer.scene.camera.center = 12, (0, 19.5, 9)
        found = []
        for selected in (None, 1, 2):
            lines.select(selected)
            line, _ = picture(viewer)
            found.append(widths_across(viewer, line, 20, (5, 11)).mean())
        assert found == pytest.approx([1.5, 2.5, 1.5], abs=0.15)

    def test_on_a_fine_display_they_are_as_wide_for_the_eye(self):
        objects = np.full((1 << 16, 2), 255, np.uint8)
        programs, told = outlines._Programs(objects), []
        for ratio in (1.0, 2.0):
            read = programs.present(Drawn(0.01, ratio, (60, 60), 65535), (2.5, 0)).read
            told.append([read[name].value for name in ("half_width", "casing", "more")])
        assert told[1] == pytest.approx([2 * value for value in told[0]])

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_another_type_of_data_is_drawn_alike(self, viewer, dtype):
        data = np.where(shapes() == 300, 4, shapes())
        layer = add_layer(viewer, data.astype(np.uint16))
        outlines_of(layer, viewer)
        viewer.scene.camera.zoom = 8
        before, _ = picture(viewer)
        layer.data = data.astype(dtype)
        layer.colormap = label_colours(lut())
        after, _ = picture(viewer)
        assert outlines_of(layer, viewer).are_lines
        np.testing.assert_allclose(after, before, atol=0.02)


class TestLayer:
    def test_filled_objects_are_those_of_napari(self, viewer, layer):
        viewer.scene.camera.zoom = 6
        layer.contour = 0
        plain = viewer.screenshot(flash=False)
        outlines_of(layer, viewer)
        layer.contour = 1
        lined = viewer.screenshot(flash=False)
        layer.contour = 0
        assert np.array_equal(viewer.screenshot(flash=False), plain)
        assert not np.array_equal(lined, plain)

    def test_strokes_and_colours_are_those_of_a_new_drawing(self, viewer, layer):
        outlines_of(layer, viewer)
        viewer.scene.camera.zoom = 6
        before = viewer.screenshot(flash=False)
        layer.brush_size = 9
        layer.paint((30, 30), 2)
        stroke = viewer.screenshot(flash=False)
        assert not np.array_equal(stroke, before)
        layer.refresh()
        assert np.array_equal(viewer.screenshot(flash=False), stroke)
        layer.undo()
        assert np.array_equal(viewer.screenshot(flash=False), before)
        set_colours(layer, lut((0, 1, 0, 1)), viewer)
        recoloured = viewer.screenshot(flash=False)
        layer.refresh()
        assert np.array_equal(viewer.screenshot(flash=False), recoloured)
        assert not np.array_equal(recoloured, before)

    def test_one_that_comes_back_has_its_lines(self, viewer, layer):
        lines = outlines_of(layer, viewer)
        viewer.scene.camera.zoom = 6
        viewer.layers.remove(layer)
        viewer.add_layer(layer)
        lines.set_width(1.5)
        viewer.scene.camera.zoom = 6
        viewer.scene.camera.center = (0, (SIZE - 1) / 2, (SIZE - 1) / 2)
        assert outlines_of(layer, viewer) is lines
        assert lines.are_lines
        assert picture(viewer)[0].max() > 0.9

    def test_in_a_grid_they_are_as_wide(self, viewer):
        for _ in range(2):
            add_layer(viewer, shapes())
        for each in viewer.layers:
            outlines_of(each, viewer).set_width(2.5)
        viewer.canvas.grid.enabled = True
        viewer.scene.camera.zoom, viewer.scene.camera.center = 6, (0, 20, 17.5)
        line, _ = picture(viewer)
        row = line[line.shape[0] // 2 - 3 : line.shape[0] // 2 + 3]
        for half in (row[:, : row.shape[1] // 2], row[:, row.shape[1] // 2 :]):
            # Both sides of the two rectangles, and the border between them.
            assert half.sum(axis=1) == pytest.approx(7.5, abs=0.5)


class TestTwo:
    """Outlines of other labels beneath those of the layer."""

    AREA = LUT_LENGTH - 1

    @pytest.fixture
    def two(self, viewer):
        above, below = np.zeros((2, SIZE, SIZE), np.uint16)
        above[10:30, 8:28], below[35:55, 8:28], below[5:55, 40:55] = 1, 2, self.AREA
        table = lut((0, 0, 0, 0))
        table[1], table[2], table[self.AREA] = (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)
        layer = Labels(above, colormap=label_colours(table), opacity=1)
        viewer.add_layer(layer)
        layer.contour = 1
        outlines_of(layer, viewer).put_beneath(Beneath(below, self.AREA), 2.5)
        viewer.scene.camera.center = (0, (SIZE - 1) / 2, (SIZE - 1) / 2)
        return layer

    def shares(self, viewer):
        """Return the shares of red, green and blue lines; casings are white."""
        QCoreApplication.processEvents()
        shot = viewer.screenshot(flash=False)[..., :3] / 255
        return [shot[..., k] - shot.min(axis=-1) for k in range(3)]

    @pytest.mark.parametrize("zoom", [1.4, 3, pytest.param(10, marks=pytest.mark.long)])
    @pytest.mark.usefixtures("two")
    def test_both_have_their_width_and_colour(self, viewer, zoom):
        viewer.scene.camera.zoom = zoom
        red, green, _ = self.shares(viewer)
        off = 0.55 if zoom == 1.4 else 0.15
        assert np.abs(widths_across(viewer, red, 20, (5, 11)) - 1.5).max() < off
        assert np.abs(widths_across(viewer, green, 45, (5, 11)) - 2.5).max() < off

    @pytest.mark.usefixtures("two")
    def test_the_area_is_hatched(self, viewer):
        viewer.scene.camera.zoom = 10
        blue = self.shares(viewer)[2]
        where = places(viewer, blue.shape)
        y, x = np.moveaxis(np.floor(where), -1, 0)
        inside = (y > 6) & (y < 53) & (x > 41) & (x < 53)  # within its outline
        inside &= (np.abs(where - np.floor(where) - 0.5) < 0.4).all(-1)
        is_hatch = (y + x) % HATCH_SPACING_PX == 0
        assert blue[inside & is_hatch].min() > 0.99
        assert blue[inside & ~is_hatch].max() < 0.01

    def test_alone_again_the_layer_is_as_before(self, viewer, two):
        viewer.scene.camera.zoom = 6
        lines = outlines_of(two, viewer)
        lines.put_beneath(None)
        assert self.shares(viewer)[1].max() == 0
        assert self.shares(viewer)[0].max() > 0.9


class TestEnd:
    def test_a_layer_that_was_removed_is_let_go_of(self, viewer):
        layer = add_layer(viewer, shapes())
        lines, known = weakref.ref(outlines_of(layer, viewer)), weakref.ref(layer)
        picture(viewer)
        viewer.layers.remove(layer)
        viewer.layers.selection.clear()
        del layer
        QCoreApplication.processEvents()
        gc.collect()
        assert known() is None
        assert lines() is None
        assert picture(viewer)[0].max() == 0

    def test_a_copy_has_the_contours_of_napari(self, viewer, layer):
        outlines_of(layer, viewer)
        copy = Labels.create(*layer.as_layer_data_tuple())
        viewer.add_layer(copy)
        copy.contour = 2
        expected = Labels(layer.data)
        expected.contour = 2
        np.testing.assert_array_equal(copy._slice.image.view > 0, expected._slice.image.view > 0)
        assert (layer._slice.image.view == layer.data).all()


class TestWithoutThem:
    """napari's contours take their place."""

    def contours(self, viewer, layer):
        QCoreApplication.processEvents()
        shown = np.asarray(layer._slice.image.view)
        assert 0 < np.count_nonzero(shown) < np.count_nonzero(layer.data)
        assert not outlines_of(layer, viewer).are_lines

    def test_with_a_driver_that_refuses_them(self, viewer, layer, monkeypatch, caplog):
        monkeypatch.setattr(outline_shader, "standalone", lambda _way: "#version 120\nno GLSL")
        assert outlines_of(layer, viewer).are_lines  # until the first drawing
        viewer.screenshot(flash=False)
        self.contours(viewer, layer)
        assert "refuses" in caplog.text
        assert viewer.screenshot(flash=False).any()

    @pytest.mark.parametrize("name", private._SHADER_NAMES)
    def test_without_a_name_of_vispy(self, viewer, layer, name, monkeypatch):
        assert private._flat_node(layer, viewer) is not None
        monkeypatch.setattr(private, "_SHADER_NAMES", (name + " renamed",))
        outlines_of(layer, viewer)
        self.contours(viewer, layer)

    def test_without_the_contours_of_napari(self, viewer, layer, monkeypatch):
        monkeypatch.setattr(outlines, "draw_contours_with", lambda *_: False)
        lines = LayerOutlines(layer, viewer)
        assert not lines.are_lines

    def test_without_a_window(self):
        from napari.components import ViewerModel

        viewer = ViewerModel()
        layer = add_layer(viewer, shapes())
        outlines_of(layer, viewer)
        self.contours(viewer, layer)

    def test_with_the_3d_display_and_back(self, viewer, layer):
        lines = outlines_of(layer, viewer)
        assert lines.are_lines
        viewer.dims.ndisplay = 3
        self.contours(viewer, layer)
        viewer.screenshot(flash=False)
        viewer.dims.ndisplay = 2
        assert lines.are_lines
        assert np.array_equal(layer._slice.image.view, layer.data)


@pytest.mark.parametrize("are_two", [False, True])
@pytest.mark.parametrize("way", outline_shader.WAYS)
def test_each_program_tells_all_that_it_needs(way, are_two):
    program = outline_shader.program(way, are_two=are_two)
    assert outline_shader.needed(program) <= set(outline_shader.UNIFORMS)
    assert "$" not in outline_shader.standalone(program)
