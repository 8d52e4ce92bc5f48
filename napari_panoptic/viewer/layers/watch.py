"""From what happens to a labels layer to pixels that changed.

Layers report their edits in many ways, and some not at all: a stroke reports
its place, an undo only that something was redrawn, another plugin nothing.
So an event is only a hint to look. What changed is found by
comparing the layer with the session's own copy there, which makes the result
independent of how the edit came about. Where there is no hint, the whole image
is compared as soon as the hand rests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from napari.layers import Labels
from numpy.typing import NDArray

from napari_panoptic.kernels.drawing import MAX_OBJECTS
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.napari_private import (
    Box,
    EmptyStep,
    boxes_of,
    histories,
    redraw_part,
    refresh_held,
)

REST_MS = 150
"""How long the hand rests before the whole image is compared."""


class LayerValues:
    """Which object a layer's pixel value stands for.

    A layer shows the number of an object's row, which fits 16 bits; values
    beyond those of the objects that it was filled with are new objects.

    Parameters
    ----------
    ids
        int64 (n,): ids of the objects with the values 1..n, in any order.
    """

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self._ids = ids.copy()
        self._order = np.argsort(self._ids)
        self._sorted = self._ids[self._order]
        self._known = np.concatenate([[0], self._ids])
        self._beyond = int(ids.max(initial=0)) - len(ids)

    def ids(self, values: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the ids of pixel values; 0 stays 0."""
        values = values.astype(np.int64)
        inside = values < len(self._known)
        return np.where(inside, self._known[np.where(inside, values, 0)], values + self._beyond)

    @cached_property
    def ids_of_values(self) -> NDArray[np.int64]:
        """The ids of all values that 16 bits can hold, int64 (65536,)."""
        return self.ids(np.arange(1 << 16))

    def value(self, id_: int) -> int:
        """Return the pixel value of an id."""
        return int(self.values(np.array([id_], np.int64))[0])

    def values(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pixel values of ids."""
        if len(ids) == len(self._ids) and np.array_equal(ids, self._ids):
            return np.arange(1, len(ids) + 1, dtype=np.int64)
        result: NDArray[np.int64] = ids - self._beyond
        if len(self._ids):
            place = np.minimum(np.searchsorted(self._sorted, ids), len(self._ids) - 1)
            found = self._sorted[place] == ids
            result[found] = self._order[place[found]] + 1
        return result

    def has_room_for(self, ids: NDArray[np.int64]) -> bool:
        """Return whether each id has a pixel value of its own that 16 bits can hold."""
        new = ids[~np.isin(ids, self._sorted)] - self._beyond
        return not len(new) or (new.min() > len(self._ids) and new.max() <= MAX_OBJECTS)

    def shown(self, labels: LabelImage) -> NDArray[np.int64]:
        """Return the pixel value of every slot of a label image, 0 for background."""
        return np.concatenate([[0], self.values(labels.ids)])


def shows(data: Any, values: LayerValues, labels: LabelImage) -> bool:
    """Return whether a layer's data are the picture of a label image."""
    data = np.asarray(data)
    if data.shape != labels.shape or data.dtype != np.uint16:
        return False
    shown = values.shown(labels)
    return bool(np.array_equal(data, shown.astype(np.uint16)[labels.index]))


class ClassChange(EmptyStep):
    """An object that got another class, as an entry of a layer's history.

    napari's history knows only pixels: a class change is an edit of zero pixels.

    Parameters
    ----------
    id_
        The object.
    before, after
        Its classes.
    """

    def __init__(self, id_: int, before: str, after: str) -> None:
        self.id_, self.before, self.after = id_, before, after


class LayerWatch:
    """Watches one labels layer and reports the pixels that differ from the copy.

    The layer's history is cleared: steps on other objects cannot be undone on these.

    Parameters
    ----------
    layer
        The layer; its data are uint16 values as :class:`LayerValues` reads them.
    values
        What its values stand for.
    current
        Gives the session's present label image of that side.
    changed
        Called with a window that holds all pixels that differ, and the ids that
        these became, int64 (k,).
    classed
        Called with the classes (id -> class) that objects have after an undo or redo.
    refused
        Called if the layer's data cannot be this region's objects, with the
        reason. It puts the layer right again.
    asked
        Called when the user undoes (False) or redoes (True) on the layer, in place of its own
        last step; None to replay that.
    """

    def __init__(
        self,
        layer: Labels,
        values: LayerValues,
        current: Callable[[], LabelImage | None],
        changed: Callable[[IdWindow, NDArray[np.int64]], None],
        classed: Callable[[Mapping[int, str]], object],
        refused: Callable[[str], None],
        asked: Callable[[bool], object] | None = None,
    ) -> None:
        self.layer = layer
        self.values = values
        self.is_thorough = True
        self.replaying = Within()
        """Whether pixels that differ come from an undo or a redo."""
        self._current = current
        self._changed = changed
        self._classed = classed
        self._refused = refused
        self._writing = Within()  # the desk itself changes the layer
        self._stroke: Box | None = None
        self._shown: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._steps: list[Any] = []  # of the layer's history at the last look
        self._n_forgotten = 0
        self._rest = single_shot(REST_MS, self.compare_all)
        self._events = (
            (layer.events.labels_update, self._on_labels_update),
            (layer.events.paint, self._on_paint),
            (layer.events.set_data, self._on_set_data),
            (layer.events.data, self._on_data),
        )
        for emitter, slot in self._events:
            emitter.connect(slot)
        self._wrapped = {name: getattr(layer, name) for name in ("undo", "redo")}
        layer.undo = lambda: self.replay(redo=False) if asked is None else asked(False)
        layer.redo = lambda: self.replay(redo=True) if asked is None else asked(True)
        self.forget_history()

    def close(self) -> None:
        """Let go of the layer."""
        stop_timers(self._rest)
        for emitter, slot in self._events:
            emitter.disconnect(slot)
        for name in self._wrapped:
            # The methods were covered by attributes of the instance.
            self.layer.__dict__.pop(name, None)

    def remember(self, change: ClassChange) -> None:
        """Let a class that was given be the step that is undone next."""
        if steps := histories(self.layer):
            steps["undo"].append([change])
            steps["redo"].clear()

    def forget_history(self) -> None:
        """Let nothing be undone or done again any more."""
        for history in histories(self.layer).values():
            history.clear()

    def depth(self, *, redo: bool = False) -> int:
        """Return how many steps can be undone, or redone; 0 if that is unknown."""
        return len(histories(self.layer).get("redo" if redo else "undo", ()))

    def n_forgotten(self) -> int:
        """Return how many of its oldest steps the layer has forgotten: napari keeps a hundred."""
        before, self._steps = self._steps, list(histories(self.layer).get("undo", ()))
        if before and self._steps and before[0] is not self._steps[0]:
            places = [place for place, step in enumerate(before) if step is self._steps[0]]
            self._n_forgotten += places[0] if places else len(before)
        return self._n_forgotten

    def forget_undone(self) -> None:
        """Let nothing be redone any more."""
        if steps := histories(self.layer):
            steps["redo"].clear()

    def follow_copy(self, box: Box | None = None) -> None:
        """Write edits made elsewhere into the layer.

        Parameters
        ----------
        box
            A box that holds all pixels that were edited; None for the whole image.
        """
        current, data = self._current(), self.layer.data
        if current is None or data.shape != current.shape or data.dtype != np.uint16:
            return
        shown = self._slot_values(current)
        index = np.ascontiguousarray(current.index)
        y0, x0, y1, x1 = box or (0, 0, *current.shape)
        part = np.ascontiguousarray(data[y0:y1, x0:x1])
        (top, left, bottom, right), _ = _differing(part, index, (y0, x0), shown)
        if top < bottom:
            rows, columns = slice(y0 + top, y0 + bottom), slice(x0 + left, x0 + right)
            with self._writing:
                data[rows, columns] = shown[index[rows, columns]]
                if not (self.layer.visible and redraw_part(self.layer, (rows, columns))):
                    self.layer.refresh()

    @property
    def is_resting(self) -> bool:
        """Whether nothing is waiting to be compared."""
        return not self._rest.isActive()

    def compare_all(self) -> None:
        """Compare the whole layer with the copy."""
        if self._writing:
            return
        self._rest.stop()
        current = self._current()
        if current is not None and self._is_readable(current):
            self._compare((0, 0, *current.shape))

    def _is_readable(self, current: LabelImage) -> bool:
        """Return whether the layer's data can be objects of this region; else refuse them."""
        data = self.layer.data
        reason = ""
        if tuple(data.shape) != current.shape:
            height, width = current.shape
            reason = (
                f"must keep its size of {width} x {height} px, found an array of shape "
                f"{tuple(data.shape)}"
            )
        elif data.dtype != np.uint16:
            values = np.asarray(data)
            if values.min(initial=0) < 0 or values.max(initial=0) > MAX_OBJECTS:
                reason = (
                    f"holds at most {MAX_OBJECTS} objects, numbered from 1; found "
                    f"values from {values.min()} to {values.max()}"
                )
            else:
                # The graphics card colours 16 bits by itself; no pixel changes.
                with self._writing:
                    self.layer.data = values.astype(np.uint16)
        if reason:
            self._refused(f"The layer '{self.layer.name}' {reason}. It was restored.")
        return not reason

    def _compare(self, box: Box) -> None:
        """Compare a part of the layer, and hand on the smallest window of what differs."""
        current = self._current()
        y0, x0, y1, x1 = box
        if current is None or y0 >= y1 or x0 >= x1:
            return
        data = np.asarray(self.layer.data)
        if data.shape != current.shape or data.dtype != np.uint16:
            self._rest.start()
            return
        part = np.ascontiguousarray(data[y0:y1, x0:x1])
        index = np.ascontiguousarray(current.index)
        found, values = _differing(part, index, (y0, x0), self._slot_values(current))
        top, left, bottom, right = found
        if top < bottom:
            window = IdWindow(
                (y0 + top, x0 + left), part[top:bottom, left:right], self.values.ids_of_values
            )
            self._changed(window, window.ids[np.flatnonzero(values)])

    def _slot_values(self, current: LabelImage) -> NDArray[np.int64]:
        # The ids of a live copy are another array as soon as there is another id.
        if self._shown is None or self._shown[0] is not current.ids:
            self._shown = (current.ids, self.values.shown(current))
        return self._shown[1]

    def _on_labels_update(self, event: Any) -> None:
        if self._writing:
            return
        y0, x0 = (int(v) for v in event.offset)
        height, width = event.data.shape[:2]
        box = self._inside((y0, x0, y0 + height, x0 + width))
        self._stroke = box if self._stroke is None else box_around(self._stroke, box)
        self._compare(box)

    def _on_paint(self, event: Any) -> None:
        self._stroke = None
        if not self._writing:
            for box in boxes_of(event.value):
                self._compare(self._inside(box))

    def _on_set_data(self, _event: Any) -> None:
        """Compare everything once the hand rests: this event also comes without a change."""
        if self._writing:
            return
        stroke, self._stroke = self._stroke, None
        if stroke is not None:  # perhaps a stroke that was given up
            self._compare(stroke)
        if self.is_thorough:
            self._rest.start()

    def _on_data(self, _event: Any) -> None:
        if not self._writing:
            self._stroke = None
            self._rest.start()

    def replay(self, *, redo: bool) -> None:
        """Undo or redo, look where the history says, and redraw only that."""
        name = "redo" if redo else "undo"
        history = histories(self.layer).get(name)
        changes = [at for at in history[-1] if isinstance(at, ClassChange)] if history else []
        if changes:
            with self._writing, refresh_held(self.layer):
                self._wrapped[name]()
            is_undo = name == "undo"
            self._classed({at.id_: at.before if is_undo else at.after for at in changes})
            return
        boxes = [self._inside(box) for box in boxes_of(history[-1])] if history else []
        if not boxes or not redraw_part(self.layer):
            self._wrapped[name]()  # followed when the hand rests
            return
        # napari redraws everything, which with outlines takes seconds on a slide.
        with self._writing:
            with refresh_held(self.layer):
                self._wrapped[name]()
            redraw_part(self.layer, *((slice(y0, y1), slice(x0, x1)) for y0, x0, y1, x1 in boxes))
        with self.replaying:
            for box in boxes:
                self._compare(box)

    def _inside(self, box: Box) -> Box:
        height, width = self.layer.data.shape[-2:]
        y0, x0, y1, x1 = box
        return max(y0, 0), max(x0, 0), min(y1, height), min(x1, width)


def box_around(one: Box, other: Box) -> Box:
    """Return the smallest box around two."""
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )


def _differing(
    data: NDArray[np.uint16],
    index: NDArray[np.int32],
    corner_yx: tuple[int, int],
    shown: NDArray[np.int64],
) -> tuple[Box, NDArray[np.bool_]]:
    """Find the pixels whose value is not the one that the copy would show.

    Returns their bounding box within the data, empty if there are none, and
    for each of the 65,536 values whether one of them has it.
    """
    height, width = data.shape
    y0, x0 = corner_yx
    differ = data != shown.astype(np.uint16)[index[y0 : y0 + height, x0 : x0 + width]]
    values = np.zeros(1 << 16, np.bool_)
    rows, columns = np.flatnonzero(differ.any(axis=1)), np.flatnonzero(differ.any(axis=0))
    if len(rows) == 0:
        return (height, width, 0, 0), values
    values[data[differ]] = True
    return (int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1), values
