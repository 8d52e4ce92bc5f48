"""From the events of the user's layers to what may have changed in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import napari
from napari.layers import Labels, Layer
from psygnal import Signal

from napari_panoptic.viewer.kit.napari_private import boxes_of
from napari_panoptic.viewer.layer_pair import sources
from napari_panoptic.viewer.layer_pair.sources import ChosenLayers


class Connections:
    """Slots that are connected to signals of napari or psygnal, and disconnected together."""

    def __init__(self) -> None:
        self._all: list[tuple[Any, Callable[..., Any]]] = []

    def connect(self, emitter: Any, slot: Callable[..., Any]) -> None:
        """Connect a slot to a signal."""
        emitter.connect(slot)
        self._all.append((emitter, slot))

    def close(self) -> None:
        """Disconnect all slots."""
        for emitter, slot in self._all:
            emitter.disconnect(slot)
        self._all = []


class PairWatch(Connections):
    """Listens to the layers of a comparison."""

    drawn = Signal(object, object)  # a layer, and the box of the pixels or None if unknown
    stepped = Signal()  # another slice may be shown
    moved = Signal()  # a layer lies elsewhere, or has another name
    classified = Signal(object)  # a layer whose columns may have other classes or scores
    removed = Signal(object)  # a layer, of these or others

    def listen(self, viewer: napari.Viewer, choice: ChosenLayers) -> None:
        """Listen to the layers of a comparison."""
        layers, dims = viewer.layers.events, viewer.dims.events
        self.connect(layers.removed, lambda event: self.removed.emit(event.value))
        for emitter in (dims.current_step, dims.order):
            self.connect(emitter, self._on_step)
        for layer in choice.layers:
            self._listen_to(layer, choice, viewer)

    def _listen_to(self, layer: Layer, choice: ChosenLayers, viewer: napari.Viewer) -> None:
        events: Any = layer.events

        def on_change(_event: Any) -> None:
            self.drawn.emit(layer, None)

        def on_stroke(event: Any) -> None:
            offset, size = tuple(event.offset), event.data.shape
            if len(offset) != 2:
                self.drawn.emit(layer, None)
                return
            y, x = (int(value) for value in offset)
            self.drawn.emit(layer, (y, x, y + int(size[0]), x + int(size[1])))

        def on_paint(event: Any) -> None:
            for box in boxes_of(event.value):
                self.drawn.emit(layer, box)

        self.connect(events.data, on_change)
        if isinstance(layer, Labels):
            self.connect(events.labels_update, on_stroke)
            self.connect(events.paint, on_paint)
            # Undo, redo and refresh() by other code emit nothing else.
            is_fixed = hasattr(sources.data_of(layer), "dask")
            if not is_fixed and not sources.is_large(layer, viewer):
                self.connect(events.set_data, on_change)
        if layer in choice.sides and choice.class_column is not None:
            self.connect(events.features, lambda _event: self.classified.emit(layer))
        for name in ("name", "scale", "translate", "rotate", "shear", "affine", "units"):
            if (emitter := getattr(events, name, None)) is not None:
                self.connect(emitter, self._on_move)

    def _on_step(self, _event: Any = None) -> None:
        self.stepped.emit()

    def _on_move(self, _event: Any = None) -> None:
        self.moved.emit()
