"""Navigation to the items of a plan on the image, and the square around a background tile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.kernels.drawing import MARK, MARK_EDGE
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.review.plan.items import PlanItem
from napari_panoptic.review.plan.units import TILE_PX
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.layers.labels import MarkLayer
from napari_panoptic.viewer.panels.part import Surroundings

_LAYER = "background to review"
_EDGE_PX, _WIDTH_PX = 1, 3
"""Width of the dark edge, and of the whole frame, which lies outside the tile."""


class PlanNavigation:
    """Navigate to an item, and check whether it is in view.

    Parameters
    ----------
    around
        Session, viewer and the other panels.
    """

    def __init__(self, around: Surroundings) -> None:
        self._session, self._link = around.session, around.link
        self._square = MarkLayer(around.viewer, _LAYER)
        self._is_framed = False
        self._item: PlanItem | None = None

    def go_to(self, item: PlanItem) -> None:
        """Show an item: select the object, or frame the square once its region is loaded."""
        self.leave()
        self._item = item
        if item.tile_yx_px is None:
            self._link.go_to(item.region, item.side, item.object_id, team=item.team)
        else:
            self._link.go_to(item.region, team=item.team)
            self.follow_region()

    def follow_region(self, _snapshot: object = None) -> None:
        """Frame the square in its own region only."""
        item, snapshot = self._item, self._session.snapshot
        if item is None or snapshot is None or snapshot.region.name != item.region:
            self._remove_frame()
        elif item.tile_yx_px is not None and not self._is_framed:
            self._session.select(None)
            self._frame(snapshot, item.tile_yx_px)

    def is_shown(self, item: PlanItem, verdict: Verdict) -> bool:
        """Return whether the user is looking at an item, so that verdicts apply to it."""
        session, chosen = self._session, self._session.selection
        snapshot = session.snapshot
        if snapshot is None or (snapshot.region.name, session.team) != (item.region, item.team):
            return False
        if item.tile_yx_px is not None:
            return self._is_framed
        if verdict is Verdict.CANNOT_TELL:
            return True  # also if it cannot be shown, such as an object that was edited away
        return chosen is not None and (chosen.side, chosen.id) == (item.side, item.object_id)

    def leave(self) -> None:
        """Stop showing an item."""
        self._item = None
        self._remove_frame()

    def close(self, *, is_window_gone: bool) -> None:
        """Remove the square, or only drop it if its window is closed."""
        if is_window_gone:
            self._item = None
            self._square.forget()
        else:
            self.leave()

    def _frame(self, snapshot: RegionSnapshot, tile_yx_px: tuple[int, int]) -> None:
        """Frame a tile, clipped to the image, and bring it into view."""
        (y0, x0), (height, width) = tile_yx_px, snapshot.shape
        y1, x1 = min(y0 + TILE_PX, height), min(x0 + TILE_PX, width)
        origin = (y0 - _WIDTH_PX, x0 - _WIDTH_PX)
        picture = _frame_picture(y1 - y0, x1 - x0)
        self._square.show(picture, PixelSize.of(snapshot), origin_yx_px=origin)
        self._is_framed = True
        self._link.scene.camera.bring_box_into_view((y0, x0, y1, x1))
        self._link.painting.expect()

    def _remove_frame(self) -> None:
        if self._is_framed:
            self._square.remove()
            self._is_framed = False


def _frame_picture(height: int, width: int) -> NDArray[np.uint8]:
    """Return a bright frame with dark edges around a box of a size."""
    picture = np.full((height + 2 * _WIDTH_PX, width + 2 * _WIDTH_PX), MARK_EDGE, np.uint8)
    edge, inside = _EDGE_PX, _WIDTH_PX - _EDGE_PX
    picture[edge:-edge, edge:-edge] = MARK
    picture[inside:-inside, inside:-inside] = MARK_EDGE
    picture[_WIDTH_PX:-_WIDTH_PX, _WIDTH_PX:-_WIDTH_PX] = 0
    return picture
