"""Steps of a shapes layer that can be undone: napari keeps them of labels only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.layers import Shapes
from numpy.typing import NDArray

from napari_panoptic.viewer.kit.napari_private import is_in_hand

UNDO_KEY, REDO_KEY = "Control-Z", "Control-Shift-Z"
"""As napari has them for labels."""
MAX_STEPS = 100
_ENDS_OF_STEPS = ("added", "changed", "removed")


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
    """Undoes what was done to the shapes of a layer, step by step.

    A step is what one hand movement made of all shapes: one drawn, moved,
    reshaped or deleted.

    Parameters
    ----------
    layer
        The layer; as it is now is as far back as it goes.
    """

    def __init__(self, layer: Shapes) -> None:
        self._layer = layer
        self._now = self._drawn()
        self._done: deque[_Drawn] = deque(maxlen=MAX_STEPS)
        self._undone: deque[_Drawn] = deque(maxlen=MAX_STEPS)
        self._is_stepping = False
        layer.events.data.connect(self._on_data)
        layer.bind_key(UNDO_KEY, lambda _layer: self.undo(), overwrite=True)
        layer.bind_key(REDO_KEY, lambda _layer: self.redo(), overwrite=True)

    def close(self) -> None:
        """Let go of the layer."""
        self._layer.events.data.disconnect(self._on_data)
        for key in (UNDO_KEY, REDO_KEY):
            self._layer.bind_key(key, None)

    def undo(self) -> None:
        """Take the last step back."""
        self._step(self._done, self._undone)

    def redo(self) -> None:
        """Do what was undone last again."""
        self._step(self._undone, self._done)

    def may_undo(self, *, redo: bool = False) -> bool:
        """Return whether there is a step to undo, or to do again."""
        if redo:
            return bool(self._undone)
        return bool(self._done) or not _equal(self._drawn(), self._now)

    def _step(self, source: deque[_Drawn], target: deque[_Drawn]) -> None:
        if is_in_hand(self._layer):
            return
        self._note()  # changes without an event
        if not source:
            return
        target.append(self._now)
        self._now = source.pop()
        self._is_stepping = True
        try:
            self._show(self._now)
        finally:
            self._is_stepping = False

    def _show(self, drawn: _Drawn) -> None:
        """Replace all shapes, each in its own style: napari keeps styles by position only."""
        layer = self._layer
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
        if not self._is_stepping and str(event.action) in _ENDS_OF_STEPS:
            self._note()

    def _note(self) -> None:
        """Remember how the shapes were before, where they are others now."""
        drawn = self._drawn()
        if not _equal(drawn, self._now):
            self._done.append(self._now)
            self._undone.clear()
            self._now = drawn

    def _drawn(self) -> _Drawn:
        layer = self._layer
        columns = (layer.data, layer.shape_type, layer.edge_width)
        return [
            _Shape(np.array(corners), str(kind), float(width), np.array(edge), np.array(face))
            for corners, kind, width, edge, face in zip(
                *columns, layer.edge_color, layer.face_color, strict=True
            )
        ]


def _equal(one: _Drawn, other: _Drawn) -> bool:
    return len(one) == len(other) and all(
        a.kind == b.kind and np.array_equal(a.corners, b.corners)
        for a, b in zip(one, other, strict=True)
    )
