"""Every private name of napari and vispy that the viewer uses, each with a fallback.

Other modules call the functions below and use public API only. Where napari renames something,
the fallback applies: the window then works, but slower or with less comfort, as each function
says. ``tests/viewer/kit/test_napari_private.py`` fails for each name that is gone.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

import numpy as np
from napari.layers import Labels, Layer, Shapes
from napari.utils.colormaps import CyclicLabelColormap
from napari.utils.events import disconnect_events
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget
from vispy.gloo import gl
from vispy.visuals.shaders import Function

Box = tuple[int, int, int, int]

_CROSS = "destroyOnClose"
_LAYER_LIST, _LAYER_CONTROLS = "layer list", "layer controls"
_DRAWN = "_scene_canvas"
_FREE_TEXTURES = "_clean_and_update_scenegraph"
_UPDATE_GRID = "_init_or_update_grid"
_PAUSED, _ARRANGE = "_pause_scene_graph", "_update_scenegraph"
_ACTIVATES, _OVERLAYS = "_activate_on_insert", "_overlays"
_TOOLS = {"polygon", "brush_stroke"}
_TABLE = "texture2D_values"
_TABLE_SHAPE = (256, 256, 4)
_SHADER_NAMES = (
    "_build_color_transform",
    "_data",
    "_interpolation_fun",
    "_need_colortransform_update",
    "_need_interpolation_update",
    "_prepare_draw",
)
_MOST = {"r8": 255, "r16": 65535}
_SHADED = "_napari_panoptic_shaded"


# --- the window ------------------------------------------------------------------------------


def window_of(viewer: Any) -> QMainWindow | None:
    """Return the Qt window of a viewer; None where it has none, or no more.

    Fallback: the window that a docked widget stands in.
    """
    window = getattr(viewer, "window", None)
    found = getattr(window, "_qt_window", None)
    if found is None:
        with suppress(RuntimeError):
            widgets = getattr(window, "dock_widgets", {}).values()
            docked = [widget for widget in widgets if isinstance(widget, QWidget)]
            found = docked[0].window() if docked else None
    return found if isinstance(found, QMainWindow) else None


def window_check(viewer: Any) -> Callable[[], bool]:
    """Return a function that checks whether the window of a viewer is still open.

    napari releases its window a moment before the docks notice. Fallback: it is always open.
    """
    window = getattr(viewer, "window", None)
    if not hasattr(window, "_qt_window"):
        return lambda: True
    return lambda: hasattr(window, "_qt_window")


def unwrapped(viewer: Any) -> Any:
    """Return the viewer inside the proxy that napari passes to plugins.

    Fallback: the viewer as it is.
    """
    return getattr(viewer, "__wrapped__", viewer)


def napari_docks(window: QWidget | None) -> tuple[QDockWidget | None, QDockWidget | None]:
    """Return napari's own layer list and layer controls; None for each that is not found."""
    # Docks are children of the window itself. Looking further takes 10 ms, thirty times an opening.
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    docks = [] if window is None else window.findChildren(QDockWidget, options=direct)
    found = {dock.objectName(): dock for dock in docks}
    return found.get(_LAYER_LIST), found.get(_LAYER_CONTROLS)


def on_cross(dock: QDockWidget, action: Callable[[], None] | None) -> None:
    """Replace the action of the cross in a dock's title; None restores napari's own.

    napari removes the dock without an event that could be refused. Fallback: that stays so.
    """
    if action is None:
        dock.__dict__.pop(_CROSS, None)
    else:
        setattr(dock, _CROSS, action)


# --- the canvas ------------------------------------------------------------------------------


def focus_canvas(viewer: Any) -> None:
    """Return the keyboard focus to the image, also from a floating panel. Fallback: nothing."""
    native = canvas_widget(viewer)
    if native is None:
        return
    if not native.isActiveWindow():
        native.activateWindow()
    native.setFocus(Qt.FocusReason.ShortcutFocusReason)  # napari's messages give no reason


def canvas_widget(viewer: Any) -> QWidget | None:
    """Return the widget of the image, to which napari's messages give the focus when they close.

    Fallback: None.
    """
    native = getattr(_canvas(viewer), "native", None)
    return native if isinstance(native, QWidget) else None


def on_painted(viewer: Any, action: Callable[[], None]) -> Callable[[], None] | None:
    """Call a function whenever the image is painted; return one that ends this.

    Fallback: None, and it is never called.
    """
    draw = getattr(getattr(getattr(_canvas(viewer), _DRAWN, None), "events", None), "draw", None)
    if draw is None:
        return None

    def painted(_event: Any) -> None:
        action()

    draw.connect(painted)
    return lambda: draw.disconnect(painted)


def moved_once(viewer: Any) -> AbstractContextManager[None]:
    """Apply several changes of the camera together. Fallback: each of them at once."""
    view = getattr(getattr(_canvas(viewer), "camera", None), "_view", None)
    camera = getattr(view, "camera", None)
    is_known = hasattr(camera, "_block_updates") and hasattr(camera, "view_changed")
    return _held(camera) if is_known else nullcontext()


def free_textures_in_own_context(viewer: Any) -> None:
    """Make every canvas current before it frees textures; repeated calls do nothing.

    After layers were removed, napari 0.9 flushes the commands that free their textures without
    making its canvas current. Where Qt last drew another window, OpenGL then frees the textures
    of that window which have the same numbers, and the next write to one of them aborts the
    program. The correction covers all windows, because closing any of them can damage the
    others, and it stays when a desk is closed. Fallback: napari's own behaviour.

    Parameters
    ----------
    viewer
        A viewer with a window.
    """
    _correct_once(viewer, _FREE_TEXTURES, _in_own_context)


def release_old_cells(viewer: Any) -> None:
    """Disconnect the cameras of a grid's former cells; repeated calls do nothing.

    When a grid gets another shape, napari 0.9 takes the cameras of its cells out of their scenes,
    but leaves them connected. Whatever keeps one alive, such as the traceback of an earlier error,
    makes every later move of a 3-D camera fail. Fallback: napari's own behaviour.

    Parameters
    ----------
    viewer
        A viewer with a window.
    """
    _correct_once(viewer, _UPDATE_GRID, _releasing_old_cells)


def _correct_once(viewer: Any, name: str, correct: Callable[[Any], Any]) -> None:
    """Replace a method of all canvases by its correction, unless that was done before."""
    canvas = type(_canvas(viewer))
    method = getattr(canvas, name, None)
    if method is not None and not hasattr(method, "__wrapped__"):
        setattr(canvas, name, correct(method))


def _canvas(viewer: Any) -> Any | None:
    window = getattr(viewer, "window", None)
    return getattr(getattr(window, "_qt_viewer", None), "canvas", None)


@contextmanager
def _held(camera: Any) -> Iterator[None]:
    before, failed = camera.get_state(), None
    with camera._block_updates():  # after an error within it, vispy would block them for ever
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again
            failed = error
    if camera.get_state() != before:
        camera.view_changed()
    if failed is not None:
        raise failed


def _in_own_context(flush: Any) -> Any:
    @wraps(flush)
    def flush_in_own_context(canvas: Any) -> Any:
        # The native canvas may be gone (RuntimeError) or be named differently.
        with suppress(AttributeError, RuntimeError):
            canvas.native.makeCurrent()
        return flush(canvas)

    return flush_in_own_context


def _releasing_old_cells(update: Any) -> Any:
    @wraps(update)
    def update_and_release(canvas: Any) -> Any:
        before = list(getattr(canvas, "grid_cameras", ()))
        result = update(canvas)
        for camera in before:
            if camera not in canvas.grid_cameras:
                disconnect_events(canvas.viewer.dims.events, camera)
                disconnect_events(canvas.viewer.scene.camera.events, camera)
        return result

    return update_and_release


# --- layers ----------------------------------------------------------------------------------


def refresh_held(layer: Layer) -> AbstractContextManager[None]:
    """Prevent a layer from slicing its data. Fallback: it slices after each change."""
    hold = getattr(layer, "_block_refresh", None)
    return nullcontext() if hold is None else cast("AbstractContextManager[None]", hold())


@contextmanager
def arranged_once(viewer: Any) -> Iterator[None]:
    """Prevent napari from arranging its canvas again for each layer that is added or shown.

    Layers must not be removed meanwhile. Fallback: a batch, at whose end napari also collects
    garbage, which takes a fifth of a second.
    """
    canvas = _canvas(viewer)
    if not hasattr(canvas, _PAUSED) or not hasattr(canvas, _ARRANGE):
        with viewer.layers.batched_update():
            yield
        return
    setattr(canvas, _PAUSED, True)
    try:
        yield
    finally:
        setattr(canvas, _PAUSED, False)
        getattr(canvas, _ARRANGE)()


@contextmanager
def not_activated(layers: Any) -> Iterator[None]:
    """Prevent napari from activating layers that are added. Fallback: it activates them."""
    before = getattr(layers, _ACTIVATES, None)
    if before is not None:
        setattr(layers, _ACTIVATES, False)
    try:
        yield
    finally:
        if before is not None:
            setattr(layers, _ACTIVATES, before)


def show_tools(layer: Labels, *, shown: bool) -> None:
    """Show or hide napari's tools for drawing on a layer, which it makes with each layer.

    Fallback: they are there, and making them takes longer than the rest of a layer.
    """
    overlays = getattr(layer, _OVERLAYS, {})
    for name in _TOOLS & set(overlays):
        overlays[name].visible = shown


def exchange_colours(layer: Labels, lut: NDArray[np.float32], viewer: Any) -> bool:
    """Write colours into a layer's colour map and into its texture on the graphics card.

    Parameters
    ----------
    layer
        A labels layer.
    lut
        float32 (65535, 4): RGBA of each label.
    viewer
        The viewer that shows it.

    Returns
    -------
    bool
        False if that is impossible: nothing is changed then, and the caller sets the colour map.
    """
    colours = layer.colormap
    if not isinstance(colours, CyclicLabelColormap) or colours.colors.shape != lut.shape:
        return False
    # A copy of the layer, made with "Duplicate layer", shares its colour map.
    others = (other for other in viewer.layers if other is not layer)
    if any(getattr(other, "colormap", None) is colours for other in others):
        return False
    node = _node_with_table(layer, viewer)
    if node is None or layer.data.dtype != np.uint16:
        return False
    colours.colors[:] = lut
    colours._clear_cache()
    mapping = colours._get_mapping_from_cache(np.dtype(np.uint16))
    texture = node.shared_program[_TABLE]
    texture.set_data(mapping.reshape(_TABLE_SHAPE))
    _drop_superseded(texture)
    node.update()
    return True


def _drop_superseded(texture: Any) -> None:
    """Keep only the newest of the tables that wait to be sent to the graphics card.

    vispy keeps every table, of 1 MiB, until the texture is drawn; a hidden layer is never drawn.
    Fallback: they wait.
    """
    waiting: Any = getattr(getattr(texture, "glir", None), "_shared", None)
    if hasattr(waiting, "_commands") and hasattr(waiting, "_filter"):
        waiting._commands = waiting._filter(waiting._commands, None)


def _node_with_table(layer: Labels, viewer: Any) -> Any | None:
    """Return the visual of a layer if its colours can be replaced there."""
    try:
        node = _canvas(viewer).layer_to_visual[layer].node  # type: ignore[union-attr]
        texture = node.shared_program[_TABLE]
    except (AttributeError, KeyError):
        return None
    names = ("_clear_cache", "_get_mapping_from_cache")
    is_known = all(hasattr(CyclicLabelColormap, name) for name in names)
    return node if is_known and tuple(texture.shape) == _TABLE_SHAPE else None


def draw_contours_with(
    layer: Labels,
    draw: Callable[[NDArray[Any], int], NDArray[Any]],
    unless: Callable[[], bool] = lambda: False,
) -> bool:
    """Replace the way in which a labels layer finds its contours.

    napari applies two greyscale filters to the whole image each time that a layer is shown or
    filled: two seconds at 8192 x 8192 px. Fallback: these filters.

    Parameters
    ----------
    layer
        A labels layer with background 0.
    draw
        Called with a 2-D part of the labels and the contour's width in px; returns the labels
        on contours, 0 elsewhere.
    unless
        Returns whether whole objects are to be sent to the graphics card all the same.

    Returns
    -------
    bool
        Whether that is possible.
    """
    theirs = getattr(type(layer), "_calculate_contour", None)
    if theirs is None or list(inspect.signature(theirs).parameters)[1:] != ["labels", "data_slice"]:
        return False
    layer_ref = weakref.ref(layer)

    def contour(labels: NDArray[Any], data_slice: tuple[slice, ...]) -> NDArray[Any] | None:
        labels_layer = layer_ref()
        if labels_layer is None or labels_layer.contour < 1 or unless():
            return None
        if labels.ndim != 2:
            return cast("NDArray[Any] | None", theirs(labels_layer, labels, data_slice))
        # As far around the changed part as a rim reaches.
        reach = int(labels_layer.contour)
        around = tuple(
            slice(max(part.start - reach, 0), min(part.stop + reach, size))
            for part, size in zip(data_slice, labels.shape, strict=True)
        )
        inner = tuple(
            slice(part.start - outer.start, part.stop - outer.start)
            for part, outer in zip(data_slice, around, strict=True)
        )
        return draw(np.asarray(labels[around]), reach)[inner]

    layer._calculate_contour = contour
    return True


@dataclass(frozen=True)
class Drawn:
    """How a labels layer is about to be drawn."""

    #: How many of its pixels, along an edge, a pixel of the screen covers.
    px: float
    #: How many pixels of the screen make one of the user's, as on a fine display.
    ratio: float
    #: Width and height of its texture on the graphics card, in pixels of that.
    size: tuple[int, int]
    #: The number that the card reads as 1.0.
    most: int


@dataclass(frozen=True)
class Shading:
    """Functions for the graphics card."""

    #: GLSL ``vec4 (vec2 place)`` that reads the layer's ``$texture``.
    read: Function
    #: GLSL that turns what was read into a colour, ``vec4 (vec4 read)``; ``$colour_of`` in it is
    #: napari's function ``vec4 (float label)``.
    colour: str


def shade_labels_with(
    layer: Labels, viewer: Any, shading: Callable[[Drawn], Shading | None]
) -> bool:
    """Replace the two functions by which the graphics card draws a labels layer in 2-D.

    Parameters
    ----------
    layer
        A labels layer of a viewer.
    viewer
        The viewer.
    shading
        Called before each drawing; None stands for napari's own functions.

    Returns
    -------
    bool
        False if that is impossible, as with the 3-D display: nothing is changed then.
    """
    node = _flat_node(layer, viewer)
    if node is None or node.texture_format not in _MOST:
        return False
    if hasattr(node, _SHADED):
        return True
    prepare, colours = node._prepare_draw, node._build_color_transform
    functions, most = dict(node._interpolation_fun), _MOST[node.texture_format]
    in_use: list[Shading | None] = [None]

    def build_colours() -> Any:
        if in_use[0] is None:
            return colours()
        function = Function(in_use[0].colour)
        function["colour_of"] = Function(node.cmap.glsl_map)
        return function

    def prepare_draw(view: Any) -> Any:
        if node._data is not None:
            onto_screen = view.transforms.get_transform("visual", "framebuffer")
            start, end = onto_screen.map([[0, 0, 0, 1], [1, 0, 0, 1]])[:, :2]
            px = 1 / max(float(np.hypot(*(end - start))), 1e-9)
            ratio = float(view.transforms.pixel_scale)
            wanted = shading(Drawn(px, ratio, node.size, most))
            if wanted is not in_use[0]:
                in_use[0] = wanted
                read = functions["nearest"] if wanted is None else wanted.read
                node._interpolation_fun = {**functions, "nearest": read}
                node._need_interpolation_update = node._need_colortransform_update = True
        return prepare(view)

    node.unfreeze()
    node._prepare_draw, node._build_color_transform = prepare_draw, build_colours
    setattr(node, _SHADED, True)
    node.freeze()
    return True


def redraw(layer: Labels, viewer: Any) -> None:
    """Draw a layer that is shaded in another way again, without slicing it."""
    node = _flat_node(layer, viewer)
    if node is not None:
        node.update()


def is_shader_accepted(functions: str) -> bool:
    """Return whether the graphics driver compiles GLSL functions; only while a canvas is drawn."""
    shader = gl.glCreateShader(gl.GL_FRAGMENT_SHADER)
    try:
        gl.glShaderSource(shader, functions + "\nvoid main() { gl_FragColor = vec4(0.0); }\n")
        gl.glCompileShader(shader)
        return bool(gl.glGetShaderParameter(shader, gl.GL_COMPILE_STATUS))
    finally:
        gl.glDeleteShader(shader)


def _flat_node(layer: Labels, viewer: Any) -> Any | None:
    """Return the visual of a layer in 2-D if its functions can be replaced there."""
    visuals = getattr(_canvas(viewer), "layer_to_visual", {})
    node = getattr(visuals.get(layer), "node", None)
    return node if all(hasattr(node, name) for name in _SHADER_NAMES) else None


def redraw_part(layer: Labels, *windows: tuple[slice, ...]) -> bool:
    """Redraw parts of a labels layer; False if the caller has to refresh the whole layer."""
    redraw = getattr(layer, "_partial_labels_refresh", None)
    accumulate = getattr(layer, "_accumulate_updated_slice", None)
    if redraw is None or accumulate is None:
        return False
    for window in windows:
        accumulate(window)
        redraw()
    return True


# --- histories -------------------------------------------------------------------------------


class EmptyStep(tuple[Any, ...]):
    """A change of no pixel, as an entry of a labels layer's history.

    napari undoes and redoes it in order with the strokes. Subclasses add the changed values.
    """

    def __new__(cls, *_args: Any, **_options: Any) -> EmptyStep:
        """Create the entry: indices of no pixel, no values before, and a value after."""
        nowhere = np.zeros(0, np.intp)
        return super().__new__(cls, ((nowhere, nowhere), nowhere.astype(np.uint16), 0))


def histories(layer: Labels) -> dict[str, Any]:
    """Return the steps to ``undo`` and to ``redo``, oldest first. Fallback: an empty dict."""
    both = {name: getattr(layer, f"_{name}_history", None) for name in ("undo", "redo")}
    return {} if None in both.values() else both


def boxes_of(step: Iterable[Any]) -> Iterable[Box]:
    """Yield the bounding boxes of an entry of a labels layer's history.

    An entry is a list of atoms: masks with a box (napari 0.9), or pixel indices
    with values before and after.
    """
    for atom in step:
        key = getattr(atom, "slice_key", None)
        if key is not None:
            rows, columns = key[-2:]
            yield int(rows.start), int(columns.start), int(rows.stop), int(columns.stop)
        elif len(atom[0][0]):
            y, x = (np.asarray(axis) for axis in atom[0][-2:])
            yield int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1


def is_being_drawn(layer: Shapes) -> bool:
    """Return whether the user is still drawing a shape. Fallback: False."""
    return bool(getattr(layer, "_is_creating", False))


def is_in_hand(layer: Shapes) -> bool:
    """Return whether the user is drawing or moving a shape. Fallback: False."""
    return is_being_drawn(layer) or bool(getattr(layer, "_is_moving", False))


# --- the start of the program ----------------------------------------------------------------


@contextmanager
def settings_saved_once(settings: Any) -> Iterator[None]:
    """Save napari's settings once, not twice for every dock. Fallback: they are saved each time.

    Parameters
    ----------
    settings
        As ``napari.settings.get_settings`` returns them.
    """
    if not (hasattr(settings, "_save_on_change") and hasattr(settings, "_maybe_save")):
        yield
        return
    before, settings._save_on_change = settings._save_on_change, False
    try:
        yield
    finally:
        settings._save_on_change = before
        settings._maybe_save()
