"""The layers of a desk of detections: the image, circles around annotated points, detections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from napari.layers import Layer, Points
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QTimer

from napari_panoptic.detections.pairing import JudgedPoints
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.display.palette import rgba_table
from napari_panoptic.display.styles import NEUTRAL_COLOUR, STATUS_COLOURS
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.values.detections import Points as PointValues
from napari_panoptic.values.detections import unique_ids
from napari_panoptic.values.vocabulary import STATUSES, Side
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.layers.camera import fit, is_fitted
from napari_panoptic.viewer.layers.labels import drawn_once
from napari_panoptic.viewer.layers.owned import (
    IMAGE,
    OwnedLayers,
    Owner,
    Slot,
    put_in_place,
    set_units,
    show_image,
)
from napari_panoptic.viewer.state.preferences import Tool, ToolInHand

NAMES = {Side.REFERENCE: "annotated points", Side.PREDICTION: "detections"}
"""Names of the layers, and their roles."""
SELECTED = "selected point"
CIRCLE_WIDTH_UM, CROSS_UM = 0.9, 4.0
"""Width of the circles around annotated points, and size of the crosses of detections."""
COMFORTABLE_UM = 90.0
"""Width of the visible part when a point is centred from afar."""
SMALLEST_CROSS_PX = 13.0
"""From afar crosses become no smaller on the screen: their colours could not be distinguished."""
_TRANSPARENT = (0.0, 0.0, 0.0, 0.0)
_DARK = (0.05, 0.05, 0.05, 1.0)
_CROSS_BORDER = 0.12


class PointScene:
    """The layers of the desk in one viewer.

    Parameters
    ----------
    viewer
        The viewer; layers of others in it are left alone.
    """

    points_changed = Signal(object, object, bool)
    """The user changed points: side, all its points, and whether this continues a change."""
    tool_changed = Signal()
    """The user took another tool, or another layer."""
    marked = Signal(object)
    """The user marked one point with napari's tool, the one that Delete removes: side and row."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._own = OwnedLayers(viewer, Owner.DESK, Slot)
        self._image: SlideImage | None = None
        self._mpp_xy = (1.0, 1.0)
        self.origin_yx = (0.0, 0.0)
        """World position of the middle of the first pixel."""
        self._distance_um = 1.0
        self._known: dict[Side, PointValues] = {}
        self._filling = Within()
        self._is_resizing = False
        self._is_changing: Side | None = None
        self._judged: JudgedPoints | None = None
        self._connected: dict[Side, Points] = {}
        self._new_confidence = 1.0

    # --- contents ---

    def show_frame(self, image: SlideImage | None, mpp_xy: tuple[float, float]) -> None:
        """Show another image, whole, and close the one before."""
        before, self._image, self._mpp_xy = self._image, image, mpp_xy
        self._own.adopt_all()
        is_first = not list(self._own)
        with self._filling:
            if image is None:
                self._own.hide_empty(IMAGE)
            else:
                show_image(self._own, image, self._pixels)
                self._viewer.layers.move(self._viewer.layers.index(self._own.layer(IMAGE)), 0)
            set_units(self._viewer, self._pixels.units, Owner.DESK)
        if is_first:
            self._viewer.canvas.overlays.scale_bar.visible = True
        self.fit()
        if before is not None and before is not image:
            before.close()

    def close_image(self) -> None:
        """Close the image once its layer is gone; a cohort that is left keeps it open till then."""
        image, self._image = self._image, None
        if image is not None:
            QTimer.singleShot(0, lambda: image.close())

    def show_points(
        self,
        points: Mapping[Side, PointValues | None],
        judged: JudgedPoints | None,
        distance_um: float,
    ) -> None:
        """Fill the layers with points that they do not show yet, and colour them by status.

        Parameters
        ----------
        points
            Those of each side; None hides a layer: nothing is known there.
        judged
            Their outcomes; None where they are not judged.
        distance_um
            The radius of the circles.
        """
        is_other_size = distance_um != self._distance_um
        self._distance_um, self._judged = distance_um, judged
        with self._filling:
            for side, values in points.items():
                layer, before = self._layer(side), self._known.get(side)
                if values is None:
                    self._known.pop(side, None)
                    layer.mode = Tool.LOOK
                    layer.visible = False
                    continue
                self._known[side] = values
                if values is not before:
                    self._is_changing = None  # a drag of other points is over
                    self._fill_points(side, layer)
                elif is_other_size:
                    self._set_look(side, layer)
                self._colour(side, layer)

    def mark(self, selection: tuple[Side, int] | None) -> None:
        """Mark the selected point by a white ring, or none."""
        position = self._place_of(selection)
        if position is None:
            self._own.set_visible(SELECTED, False)
            return
        before = self._active_side()
        ring_px = 2.6 * self._distance_um / self._mean_mpp
        with self._filling:
            layer = self._own.layer(SELECTED)
            if layer is None:
                layer = self._add(SELECTED, Points(np.zeros((0, 2)), name=SELECTED))
            is_sized = np.allclose(layer.size, ring_px) and np.array_equal(
                layer.scale, self._pixels.scale
            )
            if layer.visible and np.array_equal(layer.data, [position]) and is_sized:
                return
            layer.data = np.array([position])
            put_in_place(layer, self._pixels)
            layer.size = ring_px
            layer.face_color = [_TRANSPARENT]
            layer.border_color = [(1.0, 1.0, 1.0, 1.0)]
            layer.border_width_is_relative = False
            layer.border_width = 0.7 / self._mean_mpp
            layer.visible = True
            layer.editable = False
        self._activate(before)

    def _place_of(self, selection: tuple[Side, int] | None) -> NDArray[np.float64] | None:
        """Return y and x of a point, in px; None where there is no such point."""
        if selection is None or selection[0] not in self._known:
            return None
        side, row = selection
        xy_px = self._known[side].xy_px
        return xy_px[row, ::-1] if 0 <= row < len(xy_px) else None

    def set_hidden(self, hidden: bool) -> None:
        """Show the tissue only, or everything."""
        for side in Side:
            if side in self._known:
                self._layer(side).visible = not hidden

    @property
    def is_hidden(self) -> bool:
        """Whether all points are hidden."""
        return not any(self._layer(side).visible for side in self._known)

    def set_new_confidence(self, confidence: float) -> None:
        """Set the confidence of detections that the user adds."""
        if confidence != self._new_confidence:
            self._new_confidence = confidence
            if Side.PREDICTION in self._known:
                with self._filling:
                    self._set_defaults(Side.PREDICTION, self._layer(Side.PREDICTION))

    # --- the camera ---

    def fit(self) -> None:
        """Show the whole image, where there is one."""
        if self._image is not None:
            fit(self._viewer, self._image.shape, self._pixels)

    def is_whole_in_sight(self, canvas: NDArray[np.float64]) -> bool:
        """Return whether the whole image fills a canvas of a height and width on the screen."""
        return self._image is not None and is_fitted(
            self._viewer, self._image.shape, self._pixels, canvas
        )

    def centre(self, selection: tuple[Side, int] | None) -> None:
        """Bring a point to the middle; from afar, nearer."""
        place = self._place_of(selection)
        if place is None:
            return
        camera = self._viewer.scene.camera
        camera.center = (0.0, *(place * self._mpp_xy[::-1] + self.origin_yx))
        canvas = np.array(self._viewer.canvas.viewbox_size(self._viewer.layers), float)
        camera.zoom = max(camera.zoom, float(canvas.min()) / COMFORTABLE_UM)

    def point_at(self, position: Any) -> tuple[Side, int] | None:
        """Find the point under a world position, detections before annotated ones."""
        place = (np.array(position[-2:]) - self.origin_yx) / self._mpp_xy[::-1]
        for side in (Side.PREDICTION, Side.REFERENCE):
            points = self._known.get(side)
            if points is None or not len(points) or not self._layer(side).visible:
                continue
            away = np.hypot(*((points.xy_px[:, ::-1] - place) * self._mpp_xy[::-1]).T)
            row = int(away.argmin())
            reach = CROSS_UM / 2 if side is Side.PREDICTION else self._distance_um
            if away[row] <= reach:
                return side, row
        return None

    # --- editing ---

    def take_tool(self, side: Side, tool: Tool, row: int | None = None) -> None:
        """Take a tool for the points of a side, which must be known.

        Parameters
        ----------
        side
            Whose points it works on.
        tool
            What for.
        row
            The point that it starts with, if any.
        """
        if side not in self._known:
            return
        for other in self._connected.values():
            other.mode = Tool.LOOK
        self._activate(side)
        layer = self._layer(side)
        layer.mode = tool
        if tool is Tool.MOVE and row is not None:
            layer.selected_data = {row}

    def follow_selection(self, side: Side, row: int) -> None:
        """Let the tool that moves and deletes, where it is in hand, work on the selected point."""
        if self.tool.tool is not Tool.MOVE:
            return
        if side is not self.tool.side:
            self.take_tool(side, Tool.MOVE, row)
        elif self._connected[side].selected_data != {row}:
            with self._filling:
                self._connected[side].selected_data = {row}

    def activate_points(self) -> None:
        """Let napari's tools work on the points of the team; one in hand stays where it is."""
        if self.tool.tool is Tool.LOOK or self.tool.side not in self._known:
            known = [side for side in (Side.PREDICTION, Side.REFERENCE) if side in self._known]
            self._activate(known[0] if known else None)

    @property
    def tool(self) -> ToolInHand:
        """The points that tools work on, those of the team by default, and the tool in hand."""
        side = self._active_side()
        if side is None:
            return ToolInHand()
        mode = str(self._connected[side].mode)
        return ToolInHand(side, Tool(mode) if mode in (Tool.ADD, Tool.MOVE) else Tool.LOOK)

    def _active_side(self) -> Side | None:
        return self._side_of(self._viewer.layers.selection.active)

    def _side_of(self, layer: Layer | None) -> Side | None:
        return next((side for side, own in self._connected.items() if own is layer), None)

    def release(self) -> None:
        """Let go of the layers; they stay in the viewer."""
        for layer in self._connected.values():
            layer.selected_data.events.items_changed.disconnect(self._on_items)
            layer.events.data.disconnect(self._on_data)
            layer.events.set_data.disconnect(self._on_refresh)
            layer.events.mode.disconnect(self._on_mode)
            layer.mode = Tool.LOOK  # unheard: the next cohort has the tool that was in hand
        if self._connected:
            self._viewer.layers.selection.events.active.disconnect(self._on_mode)
        self._connected.clear()
        self._known.clear()
        self._own.release()
        self._judged = None

    def _on_mode(self, _event: Any) -> None:
        if not self._filling:
            self.tool_changed.emit()

    def _on_items(self, _event: Any) -> None:
        """Follow which point is marked by napari's tool; of several, none is the selected one."""
        side, is_moving = self.tool.side, self.tool.tool is Tool.MOVE
        if self._filling or not is_moving or side not in self._known:
            return
        marked = list(self._connected[side].selected_data)
        if len(marked) == 1 and marked[0] < len(self._known[side]):
            self.marked.emit((side, int(marked[0])))

    def _on_data(self, event: Any) -> None:
        """Follow what napari's tools did: added, removed, or began or ended a drag."""
        side = self._side_of(event.source)
        if side is None or self._filling:
            return
        action = str(getattr(event, "action", "")).rpartition(".")[2].lower()
        self._is_resizing = action in ("adding", "removing")
        if self._is_resizing or action == "changing":
            return
        if action != "changed":
            self._is_changing = None  # adding or removing is no step of a drag
        self._take(side)
        self._is_changing = None

    def _on_refresh(self, event: Any) -> None:
        """Follow a drag while it lasts: napari reports only that something is redrawn."""
        side = self._side_of(event.source)
        if side not in self._known or self._filling:
            return
        layer, known = self._connected[side], self._known[side]
        if len(layer.data) == len(known):
            self._take(side)
        elif len(layer.data) > len(known) and not self._is_resizing:
            # Pasted points cause no other event; those being added or removed by an event of
            # their own, once all is consistent. They are no step of a drag.
            self._is_changing = None
            self._take(side)
            self._is_changing = None

    def _take(self, side: Side) -> None:
        layer, known = self._connected[side], self._known.get(side)
        if known is None:
            return
        xy = np.asarray(layer.data, float)[:, ::-1]
        if xy.shape == known.xy_px.shape and np.array_equal(xy, known.xy_px):
            return
        ids = layer.features["id"].to_numpy(float)
        confidence = layer.features["confidence"].to_numpy(float)
        fresh = unique_ids(ids)
        points = PointValues(xy.copy(), confidence.copy(), fresh)
        self._known[side] = points
        with self._filling:
            if not np.array_equal(ids, fresh):
                layer.features = layer.features.assign(id=fresh.astype(float))
            self._set_defaults(side, layer)
        goes_on = self._is_changing is side
        self._is_changing = side
        self.points_changed.emit(side, points, goes_on)

    # --- the layers ---

    @property
    def _pixels(self) -> PixelSize:
        scale = (self._mpp_xy[1], self._mpp_xy[0])
        return PixelSize(scale, ("micrometer", "micrometer"), self.origin_yx)

    def _add(self, role: str, layer: Points) -> Points:
        put_in_place(layer, self._pixels)  # before: napari warns where units differ for a moment
        self._own.add(role, layer)
        return layer

    @property
    def _mean_mpp(self) -> float:
        return float(np.mean(self._mpp_xy))

    def _layer(self, side: Side) -> Points:
        """Return the layer of a side, made where it is not there; one left behind is taken over.

        If the user deleted it, it is filled with the known points again.
        """
        import pandas as pd

        layer = self._own.layer(NAMES[side])
        is_new = layer is None
        if layer is None:
            layer = Points(
                np.zeros((0, 2)),
                name=NAMES[side],
                features=pd.DataFrame({"id": np.zeros(0), "confidence": np.zeros(0)}),
                symbol="disc" if side is Side.REFERENCE else "cross",
            )
            self._add(NAMES[side], layer)
        if self._connected.get(side) is not layer:
            if not self._connected:
                self._viewer.layers.selection.events.active.connect(self._on_mode)
            self._connected[side] = layer
            layer.events.mode.connect(self._on_mode)
            layer.selected_data.events.items_changed.connect(self._on_items)
            layer.events.data.connect(self._on_data)
            layer.events.set_data.connect(self._on_refresh)
        if is_new and side in self._known:
            with self._filling:
                self._fill_points(side, layer)
                self._colour(side, layer)
        return layer

    def _fill_points(self, side: Side, layer: Points) -> None:
        # Before it is filled: napari does not follow the data of hidden layers, and would look
        # for points that are no more. Only where it is hidden: the tool changes with it.
        import pandas as pd

        points = self._known[side]
        if not layer.visible:
            layer.visible = True
        layer.selected_data = set()
        layer.data = points.xy_px[:, ::-1].copy()
        layer.features = pd.DataFrame(
            {"id": points.ids.astype(float), "confidence": points.confidence}
        )
        self._set_defaults(side, layer)
        put_in_place(layer, self._pixels, remeasure=True)
        self._set_look(side, layer)

    def _set_defaults(self, side: Side, layer: Points) -> None:
        """Set the id and the confidence of the next added point."""
        import pandas as pd

        points, confidence = self._known[side], np.nan
        if side is Side.PREDICTION and points.all_have_confidence:
            confidence = self._new_confidence
        following = float(points.ids.max(initial=0) + 1)
        layer.feature_defaults = pd.DataFrame({"id": [following], "confidence": [confidence]})

    def _set_look(self, side: Side, layer: Points) -> None:
        if side is Side.REFERENCE:
            size, width = 2 * self._distance_um / self._mean_mpp, CIRCLE_WIDTH_UM / self._mean_mpp
            layer.border_width_is_relative = False
            layer.current_face_color = np.array(_TRANSPARENT)
            symbol = "disc"
        else:
            size, width = CROSS_UM / self._mean_mpp, _CROSS_BORDER
            layer.border_width_is_relative = True
            layer.current_border_color = np.array(_DARK)
            symbol = "cross"
            layer.canvas_size_limits = (SMALLEST_CROSS_PX, 10_000.0)
        if not (len(layer.data) and np.all(np.isclose(layer.size, size))):
            layer.size = size
            layer.current_size = size
        layer.border_width = width
        layer.current_border_width = width
        layer.symbol = symbol

    def _colour(self, side: Side, layer: Points) -> None:
        """Colour points by their status, as far as it is known."""
        points, judged = self._known[side], self._judged
        if not len(points):
            return
        if judged is None or points is not judged.side(side).points:
            colours = np.repeat(rgba_table([NEUTRAL_COLOUR]), len(points), axis=0)
        else:
            colours = rgba_table([STATUS_COLOURS[name] for name in STATUSES])[
                judged.side(side).status
            ]
        dark = np.tile(np.array(_DARK, np.float32), (len(colours), 1))
        border, face = (
            (colours, np.zeros_like(colours)) if side is Side.REFERENCE else (dark, colours)
        )
        if np.array_equal(layer.border_color, border) and np.array_equal(layer.face_color, face):
            return
        with drawn_once(layer):
            layer.border_color = border
            layer.face_color = face

    def _activate(self, side: Side | None) -> None:
        layer: Layer | None = self._own.layer(IMAGE if side is None else NAMES[side])
        if layer is not None:
            self._viewer.layers.selection.active = layer
