"""Labels layers filled and coloured without delay.

After each change napari slices a layer's data again and sends them to the graphics card. With
outlines that takes a second and more on a slide. Yet the card looks 16-bit labels up in the
colour table by itself, and several changes can be followed by one slicing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from napari.layers import Labels, Layer
from napari.utils.colormaps import CyclicLabelColormap
from numpy.typing import NDArray

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.kit.napari_private import (
    exchange_colours,
    refresh_held,
)


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
