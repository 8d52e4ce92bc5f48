"""Windows of one side of a slide that are read on demand and cached."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.cache import ByteCache
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.values.windowed_labels import (
    Box,
    TiledLabels,
    common_box,
    paste,
    tile_box,
    tiles_in,
)

DECODED_BYTES = 64 << 20
"""Memory for windows of one side that were read already."""
READ_AT_A_TIME = 2
"""Number of windows that are read at the same time."""
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
        self._on_failure = on_failure
        self._on_arrival = on_arrival
        self._failed = False
        tile = labels.tile_px or WINDOW_PX
        edge = tile * math.ceil(WINDOW_PX / tile)
        self._edge = edge if edge % 2 == 0 else 2 * edge
        self._in_view: frozenset[Place] = frozenset()
        self._kept: ByteCache[Place, NDArray[np.int32]] = ByteCache(
            most_bytes, is_pinned=lambda place: place in self._in_view
        )
        self._wanted: list[Place] = []
        self._being_read: set[Place] = set()
        self._readers = 0
        self._is_left = False
        self._lock = Lock()

    @property
    def kept_bytes(self) -> int:
        """Memory in use."""
        return self._kept.n_bytes

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
        parts = [common_box(self._box(place), box) for place in missing]
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
        return [(step, *tile) for tile in tiles_in(box, (self._edge, self._edge))]

    def _known(self, places: Sequence[Place]) -> tuple[dict[Place, NDArray[np.int32]], list[Place]]:
        """Return the windows that are kept, and those that must be read."""
        known = self._kept.known(places)
        return known, [place for place in places if place not in known]

    def _assembled(
        self, box: Box, step: int, known: dict[Place, NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        y0, x0, y1, x1 = box
        at = y0 // step, x0 // step, -(-y1 // step), -(-x1 // step)
        result = np.zeros((at[2] - at[0], at[3] - at[1]), np.int32)
        for (_, ty, tx), pixels in known.items():
            paste(result, at, pixels, (ty * self._edge // step, tx * self._edge // step))
        return result

    def _box(self, place: Place) -> Box:
        return tile_box(place[1:], (self._edge, self._edge), self._labels.shape)

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
        self._kept.add(place, pixels, pixels.nbytes)
        with self._lock:
            self._being_read.discard(place)
        return pixels
