"""Recolouring a labels layer without cutting its pixels again.

A labels layer that gets other colours slices its data anew, which with outlines
takes a second and more on a slide; yet the graphics card looks 16-bit labels up
in the colour table by itself. napari has no public way to say so: the private
name is used here only, and without it recolouring is merely slower.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import cast

import numpy as np
from napari.layers import Labels
from napari.utils.colormaps import CyclicLabelColormap
from numpy.typing import NDArray


def set_colours(layer: Labels, lut: NDArray[np.float32]) -> None:
    """Give every label of a layer its own colour.

    Parameters
    ----------
    layer
        A labels layer with uint16 data.
    lut
        float32 (65536, 4): RGBA of each label.
    """
    with refresh_held(layer):
        layer.colormap = label_colours(lut)


def label_colours(lut: NDArray[np.float32]) -> CyclicLabelColormap:
    """Make the colour map that gives label ``k`` row ``k`` of the table."""
    return CyclicLabelColormap(colors=lut, background_value=0)


def refresh_held(layer: Labels) -> AbstractContextManager[None]:
    """Keep a layer from slicing its data anew; does nothing where napari cannot."""
    hold = getattr(layer, "_block_refresh", None)
    return nullcontext() if hold is None else cast("AbstractContextManager[None]", hold())
