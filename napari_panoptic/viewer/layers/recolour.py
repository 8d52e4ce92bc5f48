"""Recolouring a labels layer without cutting its pixels again.

A labels layer that gets other colours slices its data again, which with outlines
takes a second and more on a slide; yet the graphics card looks 16-bit labels up
in the colour table by itself. napari has no public way to say so: the private
names are used here only, and without them recolouring is merely slower.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
from napari.layers import Labels, Layer
from napari.utils.colormaps import CyclicLabelColormap
from numpy.typing import NDArray


def set_colours(layer: Labels, lut: NDArray[np.float32], viewer: Any = None) -> None:
    """Set the colour of every label of a layer.

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
    if viewer is not None and _exchange_on_card(layer, lut, viewer):
        return
    with refresh_held(layer):
        layer.colormap = label_colours(lut)


def _exchange_on_card(layer: Labels, lut: NDArray[np.float32], viewer: Any) -> bool:
    """Write the colours into the layer's colour map and into its texture.

    Returns
    -------
    bool
        False if that cannot be done; nothing is changed then.
    """
    colours = layer.colormap
    if not isinstance(colours, CyclicLabelColormap) or colours.colors.shape != lut.shape:
        return False
    # A copy of the layer, made with "Duplicate layer", shares its colour map.
    if any(
        other is not layer and getattr(other, "colormap", None) is colours
        for other in viewer.layers
    ):
        return False
    table = _table_on_card(layer, viewer)
    if table is None or layer.data.dtype != np.uint16:
        return False
    colours.colors[:] = lut
    colours._clear_cache()
    mapping = colours._get_mapping_from_cache(np.dtype(np.uint16))
    table.shared_program["texture2D_values"].set_data(mapping.reshape(256, 256, 4))
    table.update()
    return True


def _table_on_card(layer: Labels, viewer: Any) -> Any | None:
    """Return the visual of a layer if its colours can be replaced there."""
    try:
        visual = viewer.window._qt_viewer.canvas.layer_to_visual[layer]
        texture = visual.node.shared_program["texture2D_values"]
    except (AttributeError, KeyError):
        return None
    known = hasattr(CyclicLabelColormap, "_clear_cache") and hasattr(
        CyclicLabelColormap, "_get_mapping_from_cache"
    )
    return visual.node if known and tuple(texture.shape) == (256, 256, 4) else None


def label_colours(lut: NDArray[np.float32]) -> CyclicLabelColormap:
    """Make the colour map that gives label ``k`` row ``k`` of the table."""
    return CyclicLabelColormap(colors=lut, background_value=0)


def refresh_held(layer: Layer) -> AbstractContextManager[None]:
    """Keep a layer from slicing its data again; do nothing if napari cannot."""
    hold = getattr(layer, "_block_refresh", None)
    return nullcontext() if hold is None else cast("AbstractContextManager[None]", hold())
