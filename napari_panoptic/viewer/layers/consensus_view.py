"""The layers that show the consensus of all teams instead of the objects of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels
from numpy.typing import NDArray

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.display.styles import Display, Look
from napari_panoptic.display.team_pictures import (
    SEVERAL,
    ConsensusPicture,
    Count,
    object_colours,
    place_colours,
)
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.layers.labels import label_colours, set_colours
from napari_panoptic.viewer.layers.outlines import outlines_of
from napari_panoptic.viewer.layers.owned import (
    AMBIGUOUS,
    IMAGE,
    SELECTED,
    OwnedLayers,
    Owner,
    Slot,
    put_in_place,
    set_unless_so,
)
from napari_panoptic.viewer.layers.scene import Pointed, Scene

CONSENSUS_LAYER = "consensus of the teams"
FP_LAYER = "FP in several teams"
"""Names and roles of the layers."""


class ConsensusView:
    """The consensus layers in a viewer; an alternative to the scene's objects.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The scene whose objects are hidden meanwhile; image and rings stay.
    session
        The live state.
    """

    keeps: frozenset[str] = frozenset({IMAGE, AMBIGUOUS, SELECTED})

    def __init__(self, viewer: ViewerModel, scene: Scene, session: Session) -> None:
        self._viewer, self._scene, self._session = viewer, scene, session
        self._own = OwnedLayers(viewer, Owner.CONSENSUS, Slot)
        self._picture: ConsensusPicture | None = None

    @property
    def is_on(self) -> bool:
        """Whether the consensus is shown."""
        return self._picture is not None

    def layer(self, role: str) -> Any | None:
        """Return one of the view's layers; None if it is not there."""
        return self._own.layer(role)

    def show(self, snapshot: RegionSnapshot, picture: ConsensusPicture, count: Count) -> None:
        """Show the consensus on a region."""
        is_new, self._picture = self._picture is None, picture
        if is_new:
            self._scene.activate(self)
        pixels = PixelSize.of(snapshot)
        self._fill(FP_LAYER, picture.places, pixels)
        self._fill(CONSENSUS_LAYER, picture.objects, pixels)
        self.show_count(count)
        self.apply_look(self._scene.look)

    def show_count(self, count: Count) -> None:
        """Colour the objects by their counts."""
        if self._picture is None:
            return
        found = self._picture.consensus
        colours = {
            CONSENSUS_LAYER: object_colours(found, count),
            FP_LAYER: place_colours(found),
        }
        for slot in self._own:
            set_colours(slot.layer, colours[slot.role])

    def leave(self, *, restore: bool = True) -> None:
        """Show the objects of one team again."""
        if self._picture is None:
            return
        self._picture = None
        if restore:
            for slot in self._own:
                self._own.remove(slot.role)
            self._scene.deactivate(self)
        self._own.release()

    # As an alternative to the scene.

    def objects_at(
        self,
        position: Sequence[float],
        viewbox: tuple[int, int] | None,  # noqa: ARG002 - there is one
    ) -> list[Pointed]:
        """List the reference object and the invented objects of a place under a point."""
        snapshot, picture = self._session.snapshot, self._picture
        if snapshot is None or picture is None or self._scene.look.display is Display.HIDDEN:
            return []
        at = PixelSize.of(snapshot).px_inside(position, snapshot.shape)
        if at is None:
            return []
        objects = []
        row = snapshot.row_at(Side.REFERENCE, self._session.team, *at)
        if row is not None:
            objects.append(Pointed(None, Side.REFERENCE, row))
        for team in picture.consensus.teams:
            row = snapshot.row_at(Side.PREDICTION, team, *at)
            if row is not None and self._is_shared_fp(team, row):
                objects.append(Pointed(team, Side.PREDICTION, row))
        return objects

    def apply_look(self, look: Look) -> None:
        """Show, hide, outline or fill the objects."""
        for slot in self._own:
            self._own.set_visible(slot.role, look.display is not Display.HIDDEN)
            set_unless_so(slot.layer, "opacity", look.opacity)
        objects = self._own.layer(CONSENSUS_LAYER)
        if objects is None or self._picture is None:
            return
        lines = outlines_of(objects, self._viewer)
        lines.set_width(look.line_px(Side.PREDICTION))
        outcomes = next(iter(self._picture.evaluations.values())).outcomes
        lines.set_boxes(outcomes.reference.bbox, more_px=self._picture.more_px)
        zoom = 1.0 if lines.are_lines else self._scene.camera.zoom
        set_unless_so(objects, "contour", look.contour(Side.PREDICTION, zoom))

    def emphasise(self, selection: Selection | None) -> None:
        """Leave the rings to the scene, which keeps its own."""

    def _is_shared_fp(self, team: str, row: int) -> bool:
        if self._picture is None:
            return False
        places = self._picture.consensus.shared_fp_places(SEVERAL)
        return any(row in place.rows.get(team, ()) for place in places)

    def _fill(self, role: str, data: NDArray[np.uint16], pixels: PixelSize) -> None:
        slot = self._own.slot(role)
        if slot is None:
            layer = Labels(data, name=role, colormap=label_colours(np.zeros((2, 4), np.float32)))
            put_in_place(layer, pixels)
            self._own.add(role, layer)
        elif slot.layer.data is not data:
            slot.layer.data = data
            slot.layer.editable = False
            put_in_place(slot.layer, pixels, remeasure=True)
