"""The square around a tile of background on the image."""

from __future__ import annotations

import numpy as np
from napari.components import ViewerModel
from numpy.typing import NDArray

from napari_panoptic.kernels.drawing import MARK, MARK_EDGE
from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot
from napari_panoptic.review.plan.units import TILE_PX
from napari_panoptic.viewer.layers.mark_layer import MarkLayer

_LAYER = "background to review"
_EDGE_PX, _WIDTH_PX = 1, 3
"""Width of the dark edge, and of the whole frame, which lies outside the tile."""

Box = tuple[int, int, int, int]


class TileSquare:
    """A frame around the tile under review.

    Parameters
    ----------
    viewer
        The viewer.
    """

    def __init__(self, viewer: ViewerModel) -> None:
        self._marks = MarkLayer(viewer, _LAYER)
        self.is_shown = False

    def show(self, snapshot: RegionSnapshot, tile_yx_px: tuple[int, int]) -> Box:
        """Frame a tile; return its box (y0, x0, y1, x1) in px, clipped to the image."""
        (y0, x0), (height, width) = tile_yx_px, snapshot.shape
        box = (y0, x0, min(y0 + TILE_PX, height), min(x0 + TILE_PX, width))
        picture = _frame(box[2] - y0, box[3] - x0)
        origin = (y0 - _WIDTH_PX, x0 - _WIDTH_PX)
        self._marks.show(picture, PixelSize.of(snapshot), origin_yx_px=origin)
        self.is_shown = True
        return box

    def remove(self) -> None:
        """Remove the frame."""
        if self.is_shown:
            self._marks.remove()
            self.is_shown = False

    def close(self, *, is_window_gone: bool) -> None:
        """Remove the frame, or only drop it if its window is closed."""
        if is_window_gone:
            self._marks.forget()
        else:
            self.remove()


def _frame(height: int, width: int) -> NDArray[np.uint8]:
    """Return a bright frame with dark edges around a box of a size."""
    picture = np.full((height + 2 * _WIDTH_PX, width + 2 * _WIDTH_PX), MARK_EDGE, np.uint8)
    edge, inside = _EDGE_PX, _WIDTH_PX - _EDGE_PX
    picture[edge:-edge, edge:-edge] = MARK
    picture[inside:-inside, inside:-inside] = MARK_EDGE
    picture[_WIDTH_PX:-_WIDTH_PX, _WIDTH_PX:-_WIDTH_PX] = 0
    return picture
