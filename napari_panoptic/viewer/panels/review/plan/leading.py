"""Navigation to the items of a plan on the image."""

from __future__ import annotations

from napari_panoptic.nuclei.values.vocabulary import Verdict
from napari_panoptic.review.plan.items import PlanItem
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.review.plan.square import TileSquare


class Leading:
    """Navigate to an item, and check whether it is in view.

    Parameters
    ----------
    around
        Session, viewer and the other panels.
    """

    def __init__(self, around: Surroundings) -> None:
        self._session, self._link = around.session, around.link
        self._square = TileSquare(around.viewer)
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

    def follow_region(self) -> None:
        """Frame the square in its own region only."""
        item, snapshot = self._item, self._session.snapshot
        if item is None or snapshot is None or snapshot.region.name != item.region:
            self._square.remove()
        elif item.tile_yx_px is not None and not self._square.is_shown:
            self._session.select(None)
            box = self._square.show(snapshot, item.tile_yx_px)
            self._link.scene.bring_box_into_view(box)

    def is_shown(self, item: PlanItem, verdict: Verdict) -> bool:
        """Return whether the user is looking at an item, so that verdicts apply to it."""
        session, chosen = self._session, self._session.selection
        snapshot = session.snapshot
        if snapshot is None or (snapshot.region.name, session.team) != (item.region, item.team):
            return False
        if item.tile_yx_px is not None:
            return self._square.is_shown
        if verdict is Verdict.CANNOT_TELL:
            return True  # also if it cannot be shown, such as an object that was edited away
        return chosen is not None and (chosen.side, chosen.id) == (item.side, item.object_id)

    def leave(self) -> None:
        """Stop showing an item."""
        self._item = None
        self._square.remove()

    def close(self, *, is_window_gone: bool) -> None:
        """Remove the square, or only drop it if its window is closed."""
        self._item = None
        self._square.close(is_window_gone=is_window_gone)
