"""Ambiguous areas as shapes that can be drawn, moved, deleted and undone.

The hatching beneath them follows when a hand movement ends.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Shapes
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PixelRule, Polygons
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.io.formats.polygons.trace import connected_areas, lines_of
from napari_panoptic.live.session import Session
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.viewer.editing.live_edits import LiveEdits
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.napari_private import is_being_drawn, is_in_hand
from napari_panoptic.viewer.kit.shown import show_info
from napari_panoptic.viewer.layers.owned import OwnedLayers, Owner, Slot

NAME = "ambiguous areas (shapes)"
SHAPES = "ambiguous shapes"
"""The layer's role."""
EDGE_COLOUR, FACE_COLOUR = "#1a1a1aff", "#1a1a1a18"
EDGE_PX = 2
FOLLOW_MS = 50
"""How long figures wait for a moving shape; longer where counting takes longer."""
CORNERS = 64
"""Corners of the polygon that stands for a drawn ellipse."""
_AREA = "area"
_SCHEME = ClassScheme(names=("none",), colours=((0, 0, 0),), ambiguous=_AREA)
UNDO_KEY, REDO_KEY = "Control-Z", "Control-Shift-Z"
"""As napari has them for labels."""
MAX_STEPS = 100
_ENDS_OF_STEPS = ("added", "changed", "removed")
WITH_AN_AREA = ("polygon", "rectangle", "ellipse", "path")


class AmbiguousShapes:
    """A shapes layer on the hatched areas, while the user redraws them.

    Parameters
    ----------
    viewer
        The napari viewer.
    session
        The live state.
    edits
        Takes the drawn area.
    """

    changed = Signal()
    """The shapes came or went."""

    def __init__(self, viewer: ViewerModel, session: Session, edits: LiveEdits) -> None:
        self._viewer, self._session = viewer, session
        self._edits = edits
        self._layer: Shapes | None = None
        self._history: ShapesHistory | None = None
        self._region = ""
        self._timer = single_shot(FOLLOW_MS, self.follow)
        self._following = Within()  # the area becomes the drawn one
        self._own = OwnedLayers(self._viewer, Owner.AREAS, Slot)
        self._own.remove(SHAPES)  # of a cohort that was shown before
        self._viewer.layers.events.removed.connect(self._on_removed)

    @property
    def is_on(self) -> bool:
        """Whether the areas are shown as shapes."""
        return self._layer is not None

    @property
    def is_busy(self) -> bool:
        """Whether figures have yet to follow the shapes."""
        return self._timer.isActive()

    @property
    def layer(self) -> Shapes | None:
        """The shapes, while they are shown."""
        return self._layer

    def close(self) -> None:
        """Let go of the shapes; they stay in the viewer as a plain layer."""
        self._disconnect()
        self._layer = None
        stop_timers(self._timer)
        self._viewer.layers.events.removed.disconnect(self._on_removed)

    def set_on(self, is_on: bool) -> None:
        """Show the areas as shapes, or only hatched."""
        snapshot = self._session.snapshot
        if is_on == self.is_on or (is_on and (snapshot is None or not snapshot.evaluations)):
            self.changed.emit()
            return
        if is_on:
            self._make()
        else:
            self.settle()
            self._remove()
        self.changed.emit()

    def show_region(self) -> None:
        """Show the shapes of the shown region; they stay if the area is the same."""
        snapshot = self._session.snapshot
        if self._layer is None or snapshot is None:
            return
        same = self._region == snapshot.region.name and _equal(self._drawn(), self._present())
        if not same:
            self._remove()
            if snapshot.evaluations:
                self._make()
            self.changed.emit()

    def _on_undo_asked(self, redo: bool) -> None:
        if problem := self._edits.history.undo(redo=redo):
            show_info(problem)

    def follow_area(self, *, is_step: bool) -> None:
        """Show an area that was redrawn in another way than by the shapes.

        Parameters
        ----------
        is_step
            Whether that can be undone, so that earlier steps of the shapes can be, too.
        """
        if self._following:
            return
        snapshot, history = self._session.snapshot, self._history
        if not is_step or snapshot is None or history is None or is_in_hand(history.layer):
            self.show_region()
        elif not _equal(self._drawn(), self._present()):
            history.show(outlines(self._present()))

    def settle(self) -> None:
        """Let the figures follow the latest drawing at once."""
        if self._timer.isActive():
            self.follow()

    def follow(self) -> None:
        """Let the figures follow the shapes as they are now."""
        self._timer.stop()
        snapshot = self._session.snapshot
        if self._layer is None or snapshot is None or snapshot.region.name != self._region:
            return
        if is_being_drawn(self._layer):
            self._timer.start()  # half a polygon is not yet an area
            return
        began = time.perf_counter()
        drawn = self._drawn()
        if not _equal(drawn, self._present()):
            with self._following:
                self._edits.set_ambiguous(drawn)
        self._timer.setInterval(max(FOLLOW_MS, round(2000 * (time.perf_counter() - began))))

    def _make(self) -> None:
        snapshot = self._session.snapshot
        if snapshot is None:
            return
        self._region = snapshot.region.name
        pixels = PixelSize.of(snapshot)
        layer = Shapes(
            outlines(self._present()),
            shape_type="polygon",
            name=NAME,
            edge_color=EDGE_COLOUR,
            face_color=FACE_COLOUR,
            edge_width=EDGE_PX,
            scale=pixels.scale,
            translate=pixels.origin,
            units=pixels.units,
        )
        layer.current_edge_color = EDGE_COLOUR
        layer.current_face_color = FACE_COLOUR
        self._own.add(SHAPES, layer)
        self._viewer.layers.selection.active = layer
        self._layer = layer
        self._history = ShapesHistory(layer, self._on_undo_asked)
        self._edits.history.add_source(self._history)
        layer.mode = "select" if layer.nshapes else "add_polygon"
        for emitter in (layer.events.data, layer.events.set_data):
            emitter.connect(self._on_drawn)

    def _remove(self) -> None:
        self._timer.stop()
        self._disconnect()
        self._layer = None
        self._own.remove(SHAPES)

    def _disconnect(self) -> None:
        if self._history is not None:
            self._edits.history.remove_source(self._history)
            self._history.close()
            self._history = None
        if self._layer is not None:
            for emitter in (self._layer.events.data, self._layer.events.set_data):
                emitter.disconnect(self._on_drawn)

    def _present(self) -> NDArray[np.bool_] | None:
        snapshot = self._session.snapshot
        return None if snapshot is None else snapshot.ambiguous

    def _drawn(self) -> NDArray[np.bool_] | None:
        snapshot = self._session.snapshot
        if self._layer is None or snapshot is None:
            return None
        return filled(self._layer.data, self._layer.shape_type, snapshot.shape)

    def _on_drawn(self, _event: Any) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _on_removed(self, event: Any) -> None:
        if self._layer is not None and event.value is self._layer:
            # The areas stay as they were: shapes are deleted one by one, not with the layer.
            self._remove()
            self.changed.emit()


@dataclass(frozen=True, eq=False)
class _Shape:
    """One shape with its style."""

    corners: NDArray[Any]
    kind: str
    edge_width: float
    edge_colour: NDArray[Any]
    face_colour: NDArray[Any]


_Drawn = list[_Shape]


class ShapesHistory:
    """Undoes changes of the shapes of a layer, step by step.

    A step is what one hand movement made of all shapes: one drawn, moved,
    reshaped or deleted.

    Parameters
    ----------
    layer
        The layer; as it is now is as far back as it goes.
    asked
        Called when the user undoes (False) or redoes (True) on the layer, in place of its own
        last step; None to replay that.
    """

    def __init__(self, layer: Shapes, asked: Callable[[bool], object] | None = None) -> None:
        self.layer = layer
        self._now = self._drawn()
        self._done: deque[_Drawn] = deque(maxlen=MAX_STEPS)
        self._undone: deque[_Drawn] = deque(maxlen=MAX_STEPS)
        self._n_forgotten = 0
        self._showing = Within()
        layer.events.data.connect(self._on_data)
        for key, redo in ((UNDO_KEY, False), (REDO_KEY, True)):
            layer.bind_key(key, self._step_of_key(asked, redo=redo), overwrite=True)

    def close(self) -> None:
        """Let go of the layer."""
        self.layer.events.data.disconnect(self._on_data)
        for key in (UNDO_KEY, REDO_KEY):
            self.layer.bind_key(key, None)

    def replay(self, *, redo: bool) -> None:
        """Take the last step back, or redo the step that was undone last."""
        steps = self._done, self._undone
        self._step(*reversed(steps) if redo else steps)

    def show(self, polygons: Sequence[NDArray[np.float64]]) -> None:
        """Replace all shapes by polygons (n, 2) of y, x in px, which is no step of the layer."""
        self._note()
        style = (EDGE_PX, np.array(EDGE_COLOUR), np.array(FACE_COLOUR))
        self._show([_Shape(corners, "polygon", *style) for corners in polygons])
        self._now = self._drawn()

    def depth(self, *, redo: bool = False) -> int:
        """Return how many steps can be undone, or redone."""
        if redo:
            return len(self._undone)
        return len(self._done) + (not _are_equal(self._drawn(), self._now))

    def n_forgotten(self) -> int:
        """Return how many of the oldest steps were forgotten so far."""
        return self._n_forgotten

    def forget_undone(self) -> None:
        """Let nothing be redone any more."""
        self._undone.clear()

    def _step_of_key(
        self, asked: Callable[[bool], object] | None, *, redo: bool
    ) -> Callable[[Shapes], None]:
        """Return the function that a key calls: a function, since napari reads its name."""

        def step(_layer: Shapes) -> None:
            if asked is None:
                self.replay(redo=redo)
            else:
                asked(redo)

        return step

    def _step(self, source: deque[_Drawn], target: deque[_Drawn]) -> None:
        if is_in_hand(self.layer):
            return
        self._note()  # changes without an event
        if not source:
            return
        target.append(self._now)
        self._now = source.pop()
        self._show(self._now)

    def _show(self, drawn: _Drawn) -> None:
        """Replace all shapes, each in its own style: napari keeps styles by position only."""
        layer = self.layer
        with self._showing:
            layer.selected_data = set()
            layer.data = []
            if drawn:
                layer.add(
                    [shape.corners.copy() for shape in drawn],
                    shape_type=[shape.kind for shape in drawn],
                    edge_width=[shape.edge_width for shape in drawn],
                    edge_color=np.array([shape.edge_colour for shape in drawn]),
                    face_color=np.array([shape.face_colour for shape in drawn]),
                )

    def _on_data(self, event: Any) -> None:
        if not self._showing and str(event.action) in _ENDS_OF_STEPS:
            self._note()

    def _note(self) -> None:
        """Remember how the shapes were before, where they are others now."""
        drawn = self._drawn()
        if not _are_equal(drawn, self._now):
            self._n_forgotten += len(self._done) == MAX_STEPS
            self._done.append(self._now)
            self._undone.clear()
            self._now = drawn

    def _drawn(self) -> _Drawn:
        layer = self.layer
        columns = (layer.data, layer.shape_type, layer.edge_width)
        return [
            _Shape(np.array(corners), str(kind), float(width), np.array(edge), np.array(face))
            for corners, kind, width, edge, face in zip(
                *columns, layer.edge_color, layer.face_color, strict=True
            )
        ]


def _are_equal(one: _Drawn, other: _Drawn) -> bool:
    return len(one) == len(other) and all(
        a.kind == b.kind and np.array_equal(a.corners, b.corners)
        for a, b in zip(one, other, strict=True)
    )


def outlines(mask: NDArray[np.bool_] | None) -> list[NDArray[np.float64]]:
    """Turn an area into polygons (n, 2) of y, x in px; filled again they are the same pixels."""
    if mask is None:
        return []
    lines = [line for line in lines_of(connected_areas(mask, "Ambiguous")) if len(line)]
    # A shape needs three corners; an area of one or two pixels repeats its last one.
    return [_at_least_three(line[:, ::-1].astype(np.float64)) for line in lines]


def filled(
    shapes: Sequence[NDArray[Any]], types: Sequence[str], shape: tuple[int, int]
) -> NDArray[np.bool_] | None:
    """Fill shapes as the reader of annotations does.

    Parameters
    ----------
    shapes
        Corners (n, 2) of each: y, x in px.
    types
        The type of each; lines have no area.
    shape
        Height and width of the region.

    Returns
    -------
    bool image (y, x), or None if no pixel is covered.
    """
    rings = [
        np.round(corners_of(np.asarray(data), kind))[:, ::-1]
        for data, kind in zip(shapes, types, strict=True)
        if kind in WITH_AN_AREA
    ]
    ambiguous = np.full(len(rings), AMBIGUOUS, np.int16)
    polygons = Polygons.of_rings(rings, ambiguous, PixelRule.VERTEX)
    return rasterize_polygons(polygons, shape, _SCHEME).held().ambiguous


def corners_of(data: NDArray[Any], kind: str) -> NDArray[np.float64]:
    """Return the outline (n, 2) of a shape of napari, y and x in px."""
    corners = data[:, -2:].astype(np.float64)
    if kind != "ellipse":
        return corners
    middle = corners.mean(axis=0)
    angles = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)[:, None]
    along, across = (corners[1] - corners[0]) / 2, (corners[3] - corners[0]) / 2
    ring: NDArray[np.float64] = middle + np.cos(angles) * along + np.sin(angles) * across
    return ring


def _at_least_three(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    missing = max(3 - len(corners), 0)
    return np.concatenate([corners, np.repeat(corners[-1:], missing, axis=0)])


def _equal(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    if one is None or other is None:
        return (one is None or not one.any()) and (other is None or not other.any())
    return np.array_equal(one, other)
