"""From what happens to a labels layer to pixels that changed.

Layers tell of their edits in many ways, and of some not at all: a stroke tells
where it went, an undo only that something was redrawn, another plugin nothing.
So an event is only taken as a hint where to look. What changed is found by
comparing the layer with the session's own copy there, which makes the result
independent of how the edit came about. Where there is no hint, the whole image
is compared as soon as the hand rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from napari.layers import Labels
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer

from napari_panoptic._compiled import compiled
from napari_panoptic.evaluation.labels import LabelImage

Box = tuple[int, int, int, int]

REST_MS = 150
"""How long the hand rests before the whole image is compared."""


class LayerValues:
    """Which object a layer's pixel value stands for.

    A layer shows the number of an object's row, which fits 16 bits; values
    beyond those of the file's objects are new objects.

    Parameters
    ----------
    ids
        int64 (n,): ids of the objects with the values 1..n.
    """

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self._ids = ids
        self._beyond = int(ids.max(initial=0)) - len(ids)

    def ids(self, values: NDArray[np.integer]) -> NDArray[np.int64]:
        """Give the ids of pixel values; 0 stays 0."""
        values = values.astype(np.int64)
        known = np.concatenate([[0], self._ids])
        inside = values < len(known)
        return np.where(inside, known[np.where(inside, values, 0)], values + self._beyond)

    def value(self, id_: int) -> int:
        """Give the pixel value of an id."""
        place = int(np.searchsorted(self._ids, id_))
        if place < len(self._ids) and self._ids[place] == id_:
            return place + 1
        return id_ - self._beyond

    def values(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the pixel values of ids."""
        place = np.searchsorted(self._ids, ids)
        inside = place < len(self._ids)
        known = np.zeros(len(ids), bool)
        known[inside] = self._ids[place[inside]] == ids[inside]
        return np.where(known, place + 1, ids - self._beyond)


class LayerWatch(QObject):
    """Watches one labels layer and tells which of its pixels differ from the copy.

    Parameters
    ----------
    layer
        The layer; its data are uint16 values as :class:`LayerValues` reads them.
    values
        What its values stand for.
    current
        Gives the session's present label image of that side.
    changed
        Called with (y, x, ids) of pixels that differ.
    refused
        Called when the layer's data have another size than the region.
    """

    def __init__(
        self,
        layer: Labels,
        values: LayerValues,
        current: Callable[[], LabelImage],
        changed: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], None],
        refused: Callable[[str], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self.layer = layer
        self.values = values
        self._current = current
        self._changed = changed
        self._refused = refused
        self._is_paused = False
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self.compare_all)
        self._events = (
            (layer.events.labels_update, self._on_labels_update),
            (layer.events.paint, self._on_paint),
            (layer.events.set_data, self._on_set_data),
            (layer.events.data, self._on_set_data),
        )
        for emitter, slot in self._events:
            emitter.connect(slot)
        self._wrapped = {name: getattr(layer, name) for name in ("undo", "redo")}
        layer.undo = lambda: self._replay("undo")
        layer.redo = lambda: self._replay("redo")

    def close(self) -> None:
        """Let go of the layer."""
        self._rest.stop()
        for emitter, slot in self._events:
            emitter.disconnect(slot)
        for name in self._wrapped:
            # The methods were covered by attributes of the instance.
            self.layer.__dict__.pop(name, None)
        self.deleteLater()

    def pause(self, paused: bool) -> None:
        """Stop listening while the desk itself writes to the layer."""
        self._is_paused = paused

    def compare_all(self) -> None:
        """Compare the whole layer with the copy."""
        self._rest.stop()
        data = np.asarray(self.layer.data)
        current = self._current()
        if data.shape != current.shape:
            self._refused(
                f"the layer '{self.layer.name}' must keep its size of "
                f"{current.shape[1]} x {current.shape[0]} px, found shape {data.shape}; "
                "the figures do not follow it"
            )
            return
        self._compare((0, 0, *current.shape))

    def _compare(self, box: Box) -> None:
        y0, x0, y1, x1 = box
        data = np.asarray(self.layer.data)
        current = self._current()
        if data.shape != current.shape or not np.issubdtype(data.dtype, np.integer):
            self._rest.start()
            return
        # 16 bits is what the desk's own layers have: those are not copied.
        kind: type[np.integer] = np.uint16 if data.dtype == np.uint16 else np.int64
        window: NDArray[np.integer] = np.ascontiguousarray(data[y0:y1, x0:x1], dtype=kind)
        shown = self._slot_values(current)
        y, x = _differing(window, np.ascontiguousarray(current.index[y0:y1, x0:x1]), shown)
        if len(y):
            self._changed(y + y0, x + x0, self.values.ids(window[y, x]))

    def _slot_values(self, current: LabelImage) -> NDArray[np.int64]:
        return np.concatenate([[0], self.values.values(current.ids)])

    def _on_labels_update(self, event: Any) -> None:
        if self._is_paused:
            return
        y0, x0 = (int(v) for v in event.offset)
        height, width = event.data.shape[:2]
        self._compare(self._inside((y0, x0, y0 + height, x0 + width)))

    def _on_paint(self, event: Any) -> None:
        if not self._is_paused:
            for box in boxes_of(event.value):
                self._compare(self._inside(box))

    def _on_set_data(self, _event: Any) -> None:
        # Also fires when a layer is merely shown again: there is no telling.
        if not self._is_paused:
            self._rest.start()

    def _replay(self, name: str) -> None:
        """Undo or redo, and look where the history says."""
        history = getattr(self.layer, f"_{name}_history", None)
        boxes = list(boxes_of(history[-1])) if history else []
        resting = self._rest.isActive()
        self._wrapped[name]()
        for box in boxes:
            self._compare(self._inside(box))
        if boxes and not resting:
            self._rest.stop()

    def _inside(self, box: Box) -> Box:
        height, width = self._current().shape
        y0, x0, y1, x1 = box
        return max(y0, 0), max(x0, 0), min(y1, height), min(x1, width)


def boxes_of(item: Iterable[Any]) -> Iterable[Box]:
    """Give the bounding boxes of an entry of a layer's history.

    An entry is a list of atoms: masks with a box (napari 0.9), or pixel indices
    with values before and after.
    """
    for atom in item:
        key = getattr(atom, "slice_key", None)
        if key is not None:
            rows, columns = key[-2:]
            yield int(rows.start), int(columns.start), int(rows.stop), int(columns.stop)
        elif len(atom[0][0]):
            y, x = (np.asarray(axis) for axis in atom[0][-2:])
            yield int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1


@compiled
def _differing(
    data: NDArray[np.integer], index: NDArray[np.int32], shown: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the pixels whose value is not the one that the copy would show."""
    height, width = data.shape
    count = 0
    for y in range(height):
        for x in range(width):
            count += data[y, x] != shown[index[y, x]]
    ys = np.empty(count, np.int64)
    xs = np.empty(count, np.int64)
    count = 0
    for y in range(height):
        for x in range(width):
            if data[y, x] != shown[index[y, x]]:
                ys[count] = y
                xs[count] = x
                count += 1
    return ys, xs
