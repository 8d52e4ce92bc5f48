"""A small layer of marks on top of the objects, for one panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels
from numpy.typing import NDArray

from napari_panoptic.nuclei.display.marks import MARK_COLOURS
from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.viewer.layers.in_one_go import drawn_once, put_data
from napari_panoptic.viewer.layers.kept_in_place import keep_in_place
from napari_panoptic.viewer.layers.owned import own
from napari_panoptic.viewer.layers.recolour import label_colours

MARKS = "napari-panoptic marks"
"""Owner of the layers of marks (see `owned`)."""


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
        self._viewer = viewer
        self._name = name
        self._colours = colours
        self._layer: Any | None = None

    @property
    def layer(self) -> Any | None:
        """The layer, where something is marked."""
        return self._layer if self._layer in self._viewer.layers else None

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
            active = self._viewer.layers.selection.active
            layer = Labels(picture, name=self._name, scale=pixels.scale, units=pixels.units)
            layer.colormap = label_colours(np.array(self._colours))
            layer.translate = pixels.to_world(origin_yx_px)
            own(layer, MARKS, self._name)
            self._viewer.add_layer(layer)
            layer.editable = False
            keep_in_place(layer)
            self._layer = layer
            self._viewer.layers.selection.active = active
            return
        with drawn_once(layer):
            put_data(layer, picture, pixels, origin_yx_px=origin_yx_px)
        if not layer.visible:
            layer.visible = True

    def remove(self) -> None:
        """Take the marks away."""
        layer, self._layer = self.layer, None
        if layer is not None:
            self._viewer.layers.remove(layer)

    def forget(self) -> None:
        """Let go of the layer without touching it: its window is gone."""
        self._layer = None
