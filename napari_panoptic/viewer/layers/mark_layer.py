"""A small layer of marks on top of the objects, for one panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels
from numpy.typing import NDArray

from napari_panoptic.display.marks import MARK_COLOURS
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.layers.labels import drawn_once, label_colours, put_data
from napari_panoptic.viewer.layers.owned import OwnedLayers, Owner, Slot


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
