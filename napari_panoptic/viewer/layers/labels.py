"""Layers of labels and marks, filled and coloured without delay; the view kept steady.

After each change napari slices a layer's data again and sends them to the graphics card. With
outlines that takes a second and more on a slide. Yet the card looks 16-bit labels up in the
colour table by itself, and several changes can be followed by one slicing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels, Layer
from napari.utils.colormaps import CyclicLabelColormap
from numpy.typing import NDArray

from napari_panoptic.display.marks import MARK_COLOURS
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.napari_private import (
    exchange_colours,
    refresh_held,
)
from napari_panoptic.viewer.layers.camera import canvas_size
from napari_panoptic.viewer.layers.owned import OwnedLayers, Owner, Slot


def label_colours(lut: NDArray[np.floating[Any]]) -> CyclicLabelColormap:
    """Return the colour map that gives label ``k`` row ``k`` of the table."""
    return CyclicLabelColormap(colors=lut, background_value=0)


def set_colours(layer: Labels, lut: NDArray[np.float32], viewer: Any = None) -> None:
    """Set the colour of every label of a layer; its pixels are not sliced again.

    Parameters
    ----------
    layer
        A labels layer with uint16 data.
    lut
        float32 (65535, 4): RGBA of each label.
    viewer
        The viewer in whose window the layer is shown: then only the colour
        table on the graphics card is exchanged, which is the fastest way.
    """
    if viewer is not None and exchange_colours(layer, lut, viewer):
        return
    with refresh_held(layer):
        layer.colormap = label_colours(lut)


@contextmanager
def drawn_once(layer: Layer) -> Iterator[None]:
    """Slice a layer's data once, after the last of several changes.

    The layer stays visible or hidden: each time that this changes, napari arranges
    all layers again, which takes longer than filling one.
    """
    with refresh_held(layer):
        yield
    layer.refresh()


def put_data(
    layer: Any,
    data: NDArray[Any],
    pixels: PixelSize,
    *,
    origin_yx_px: tuple[float, float] = (0, 0),
) -> None:
    """Set the data of a labels layer.

    Data of the same type are no news to colours and controls: they are then
    reported by the event ``set_data`` alone.

    Parameters
    ----------
    layer
        A labels layer.
    data
        Its new labels (y, x).
    pixels
        How large they are, and where they lie.
    origin_yx_px
        Where the first pixel of the data lies in the region.
    """
    is_same_type = layer.data.dtype == data.dtype
    with layer.events.data.blocker() if is_same_type else nullcontext():
        layer.data = data
    layer.editable = False
    layer.units = pixels.units
    is_same_scale = tuple(layer.scale) == pixels.scale
    # Also where it stays: napari then forgets how far the former data reached.
    with layer.events.scale.blocker() if is_same_scale else nullcontext():
        layer.scale = np.array(pixels.scale)
    origin = pixels.to_world(origin_yx_px)
    if tuple(layer.translate) != origin:
        layer.translate = origin


class MarkLayer:
    """One layer that is made when it is needed and removed when it is not.

    Parameters
    ----------
    viewer
        The viewer.
    name
        The layer's name.
    colours
        RGBA of the values in its pictures, background first.
    """

    def __init__(
        self,
        viewer: ViewerModel,
        name: str,
        colours: Sequence[tuple[float, float, float, float]] = MARK_COLOURS,
    ) -> None:
        self._own = OwnedLayers(viewer, Owner.MARKS, Slot)
        self._name = name
        self._colours = colours

    @property
    def layer(self) -> Any | None:
        """The layer, where something is marked."""
        return self._own.layer(self._name)

    def show(
        self,
        picture: NDArray[np.uint8],
        pixels: PixelSize,
        *,
        origin_yx_px: tuple[int, int] = (0, 0),
    ) -> None:
        """Show a picture of marks.

        Parameters
        ----------
        picture
            uint8 (y, x): values as the colours name them.
        pixels
            How large the region's pixels are, and where they lie.
        origin_yx_px
            Where its upper left corner lies in the region.
        """
        layer = self.layer
        if layer is None:
            layer = Labels(
                picture, name=self._name, colormap=label_colours(np.array(self._colours))
            )
            layer.scale, layer.units = pixels.scale, pixels.units
            layer.translate = pixels.to_world(origin_yx_px)
            self._own.add(self._name, layer)
            return
        with drawn_once(layer):
            put_data(layer, picture, pixels, origin_yx_px=origin_yx_px)
        self._own.set_visible(self._name, True)

    def remove(self) -> None:
        """Take the marks away."""
        self._own.remove(self._name)

    def forget(self) -> None:
        """Release the layer without touching it: its window is gone."""
        self._own.release()


SETTLE_MS = 60
"""How long the canvas keeps its size before the view follows: docks are laid out in steps."""


class Fitted(Protocol):
    """The part that can be shown as a whole."""

    def fit(self) -> None:
        """Show all of it."""

    def is_whole_in_sight(self, canvas: NDArray[np.float64]) -> bool:
        """Return whether all of it fills a canvas of a height and width on the screen."""


class SteadyView:
    """Keeps the same part in view when the canvas changes its size.

    A region that filled the canvas fills it again. Otherwise the camera moves only if `keep`
    moves it.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The shown part.
    keep
        Called with the size of the canvas before, where the user has zoomed.
    """

    def __init__(
        self,
        viewer: ViewerModel,
        scene: Fitted,
        keep: Callable[[NDArray[np.float64]], None] = lambda _canvas: None,
    ) -> None:
        self._viewer, self._scene, self._keep = viewer, scene, keep
        self._canvas = canvas_size(viewer)  # when the camera last moved
        self._fitted_zoom: float | None = None  # of a whole region, until the view follows
        self._later = single_shot(SETTLE_MS, self._follow)
        self._events = (viewer.scene.camera.events.center, viewer.scene.camera.events.zoom)
        for event in self._events:
            event.connect(self._remember)
        viewer.canvas.events.size.connect(self._wait)

    @property
    def is_busy(self) -> bool:
        """Whether the view has yet to follow the canvas."""
        return self._later.isActive()

    def release(self) -> None:
        """Leave the camera alone from now on."""
        stop_timers(self._later)
        for event in self._events:
            event.disconnect(self._remember)
        self._viewer.canvas.events.size.disconnect(self._wait)

    def _remember(self) -> None:
        self._canvas = canvas_size(self._viewer)

    def _wait(self) -> None:
        if self._scene.is_whole_in_sight(self._canvas):
            self._fitted_zoom = self._viewer.scene.camera.zoom
        self._later.start()

    def _follow(self) -> None:
        before = self._canvas
        # An object may have been brought to the middle meanwhile, at the same zoom.
        has_zoom_of_whole = self._viewer.scene.camera.zoom == self._fitted_zoom
        self._fitted_zoom = None
        self._remember()
        if has_zoom_of_whole or self._scene.is_whole_in_sight(before):
            self._scene.fit()
        else:
            self._keep(before)
