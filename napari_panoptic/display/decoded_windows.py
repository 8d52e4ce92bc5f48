"""Windows of one side of a slide that are read on demand and cached."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.values.windowed_labels import Box, TiledLabels

DECODED_BYTES = 64 << 20
"""Memory for windows of one side that were read already."""
READ_AT_A_TIME = 2
"""Windows that are read side by side."""
WINDOW_PX = 512
"""Least edge of the windows that are read and kept, in px at full resolution."""


Place = tuple[int, int, int]
"""A window that is kept: its step, and its number down and to the right."""


class DecodedWindows:
    """Pixels of one side, of which the windows read last are kept.

    Windows are read by the caller who needs them at once, or in threads of
    their own by :meth:`fetch`, of which only the latest wish counts.

    Parameters
    ----------
    labels
        The side.
    most_bytes
        Memory for what is kept; what was asked for last may need more.
    on_failure
        Gets the first error that reading raised; what cannot be read is
        background.
    on_arrival
        Called, from another thread, when all that was to be fetched is there.
    """

    def __init__(
        self,
        labels: TiledLabels,
        *,
        most_bytes: int = DECODED_BYTES,
        on_failure: Callable[[PanopticError | OSError], None] = lambda _error: None,
        on_arrival: Callable[[], None] = lambda: None,
    ) -> None:
        self._labels = labels
        self._most_bytes = most_bytes
        self._on_failure = on_failure
        self._on_arrival = on_arrival
        self._failed = False
        tile = labels.tile_px or WINDOW_PX
        edge = tile * math.ceil(WINDOW_PX / tile)
        self._edge = edge if edge % 2 == 0 else 2 * edge
        self._kept: OrderedDict[Place, NDArray[np.int32]] = OrderedDict()
        self._kept_bytes = 0
        self._in_view: frozenset[Place] = frozenset()
        self._wanted: list[Place] = []
        self._being_read: set[Place] = set()
        self._readers = 0
        self._is_left = False
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        """Memory in use."""
        return self._kept_bytes

    @property
    def is_busy(self) -> bool:
        """Whether windows are being fetched."""
        return self._readers > 0

    def window(self, box: Box, step: int = 1) -> NDArray[np.int32]:
        """Return a window, or each ``step``-th of its rows and columns.

        Parameters
        ----------
        box
            A window in px at full resolution, which begins at a multiple of
            ``step``.
        step
            1 or 2.
        """
        known, missing = self._known(self._places(box, step))
        if len(missing) > 1:
            with ThreadPoolExecutor(max_workers=READ_AT_A_TIME) as pool:
                known.update(zip(missing, pool.map(self._read, missing), strict=True))
        elif missing:
            known[missing[0]] = self._read(missing[0])
        return self._assembled(box, step, known)

    def window_so_far(self, box: Box, step: int = 1) -> tuple[NDArray[np.int32], list[Box]]:
        """Return what is there of a window, and the parts of it that are not, to be fetched.

        Returns
        -------
        int32 (y, x), list of Box
            The pixels, 0 in parts that are missing; these parts, in px at full
            resolution. After :meth:`leave` none is missing.
        """
        if self._is_left:
            return self.window(box, step), []
        places = self._places(box, step)
        known, missing = self._known(places)
        self._in_view = frozenset(places)
        self.fetch(missing)
        y0, x0, y1, x1 = box
        parts = [
            (max(top, y0), max(left, x0), min(bottom, y1), min(right, x1))
            for top, left, bottom, right in map(self._box, missing)
        ]
        return self._assembled(box, step, known), parts

    def fetch(self, places: Sequence[Place]) -> None:
        """Read windows in the background, instead of those that were to be fetched before."""
        with self._lock:
            if self._is_left:
                return
            self._wanted = [at for at in reversed(places) if at not in self._being_read]
            begun = min(READ_AT_A_TIME - self._readers, len(self._wanted))
            self._readers += max(begun, 0)
        for _ in range(begun):
            # The interpreter waits for it: a decoder that outlives it brings the process down.
            Thread(target=self._read_wanted, daemon=False).start()

    def leave(self) -> None:
        """Stop fetching and notifying: the listener is about to be destroyed.

        What is asked for later is read by the caller.
        """
        with self._lock:
            self._is_left = True
            self._wanted = []

    def _read_wanted(self) -> None:
        """Read until nothing is wanted any more; the last one to do so tells."""
        while True:
            with self._lock:
                if not self._wanted:
                    self._readers -= 1
                    is_last = self._readers == 0
                    break
                place = self._wanted.pop()
                self._being_read.add(place)
            self._read(place)
        if is_last and not self._is_left:
            self._on_arrival()

    def _places(self, box: Box, step: int) -> list[Place]:
        y0, x0, y1, x1 = box
        if y0 >= y1 or x0 >= x1:
            return []
        return [
            (step, ty, tx)
            for ty in range(y0 // self._edge, (y1 - 1) // self._edge + 1)
            for tx in range(x0 // self._edge, (x1 - 1) // self._edge + 1)
        ]

    def _known(self, places: Sequence[Place]) -> tuple[dict[Place, NDArray[np.int32]], list[Place]]:
        """Return the windows that are kept, and those that must be read."""
        with self._lock:
            known = {place: self._kept[place] for place in places if place in self._kept}
            for place in known:
                self._kept.move_to_end(place)
        return known, [place for place in places if place not in known]

    def _assembled(
        self, box: Box, step: int, known: dict[Place, NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        y0, x0, y1, x1 = box
        height, width = -(-(y1 - y0) // step), -(-(x1 - x0) // step)
        result = np.zeros((height, width), np.int32)
        for (_, ty, tx), pixels in known.items():
            top, left = (ty * self._edge - y0) // step, (tx * self._edge - x0) // step
            rows = slice(max(top, 0), min(top + pixels.shape[0], height))
            columns = slice(max(left, 0), min(left + pixels.shape[1], width))
            result[rows, columns] = pixels[
                rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
            ]
        return result

    def _box(self, place: Place) -> Box:
        _, ty, tx = place
        height, width = self._labels.shape
        y0, x0 = ty * self._edge, tx * self._edge
        return y0, x0, min(y0 + self._edge, height), min(x0 + self._edge, width)

    def _read(self, place: Place) -> NDArray[np.int32]:
        """Read a window, and keep it."""
        box = y0, x0, y1, x1 = self._box(place)
        try:
            pixels = self._labels.read(box)
        except Exception as error:  # noqa: BLE001 - packages may bring readers of their own
            if not isinstance(error, (PanopticError, OSError)):
                error = PanopticError(f"a part of the image cannot be read ({error!r})")
            if not (self._failed or self._is_left):
                self._failed = True
                self._on_failure(error)
            pixels = np.zeros((y1 - y0, x1 - x0), np.int32)
        step = place[0]
        if step > 1:
            pixels = np.ascontiguousarray(pixels[::step, ::step])
        with self._lock:
            if place not in self._kept:
                self._kept[place] = pixels
                self._kept_bytes += pixels.nbytes
            self._being_read.discard(place)
            self._drop_oldest()
        return pixels

    def _drop_oldest(self) -> None:
        for place in list(self._kept):
            if self._kept_bytes <= self._most_bytes:
                break
            if place not in self._in_view:
                self._kept_bytes -= self._kept.pop(place).nbytes
