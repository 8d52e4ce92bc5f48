"""The files of a comparison, for all that reads cohorts: a temporary folder that follows it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from napari.layers import Layer
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.cohorts import comparison as arrays
from napari_panoptic.viewer.jobs.jobs import Several, single_shot, stop_timers
from napari_panoptic.viewer.layer_pair import sources
from napari_panoptic.viewer.layer_pair.sources import ChosenLayers

STORE_MS = 1500
"""How long after the last change the files follow."""


class Store:
    """Writes the sides that have changed, in another thread.

    Parameters
    ----------
    due
        Called a while after the last change; calls `write`.
    failed
        Receives the error if a side cannot be written; it is written with the next change.
    """

    def __init__(
        self, due: Callable[[], object], failed: Callable[[PanopticError], object]
    ) -> None:
        self._failed = failed
        self.folder = tempfile.TemporaryDirectory(
            prefix="napari-panoptic-", ignore_cleanup_errors=True
        )
        self._place = Path(self.folder.name)
        self._unstored: set[Layer] = set()
        self._timer = single_shot(STORE_MS, due)
        self._writer = ThreadPoolExecutor(1, "comparison")
        self._writing = Several()

    def new_place(self) -> Path:
        """Return a new folder for the whole comparison; changes are written there from now on."""
        self._unstored.clear()
        self._place = Path(tempfile.mkdtemp(dir=self.folder.name))
        return self._place

    def note(self, layer: Layer) -> None:
        """Write a side soon."""
        self._unstored.add(layer)
        self._timer.start()

    def write(
        self, choice: ChosenLayers, viewer: Any, pixels: Mapping[Layer, NDArray[Any]]
    ) -> None:
        """Write the sides that were noted."""
        layers, self._unstored = self._unstored, set()
        try:
            comparison = sources.arrays_of(choice, viewer)
        except (PanopticError, ValueError):
            return  # they no longer fit together, which was reported
        if not isinstance(comparison, arrays.LabelsComparison):
            return
        for layer in layers & pixels.keys():
            team = choice.teams.get(layer)
            side = comparison.reference if team is None else comparison.predictions[team]
            side = replace(side, array=pixels[layer].copy())
            changed = (
                replace(comparison, reference=side)
                if team is None
                else replace(comparison, predictions={team: side})
            )
            written = self._writer.submit(changed.write_side, self._place, team)
            failed = partial(self._on_failed, layers)
            self._writing.start(partial(_waited, written), lambda _: None, failed)

    def _on_failed(self, layers: set[Layer], error: PanopticError) -> None:
        self._unstored |= layers
        self._failed(error)

    def close(self) -> None:
        """Stop writing, and delete the files."""
        stop_timers(self._timer)
        self._writer.shutdown(cancel_futures=True)  # it writes into the folder
        self.folder.cleanup()


def _waited(written: Future[str]) -> None:
    """Wait until a side is written; for workers."""
    with suppress(CancelledError):  # the comparison was closed
        written.result()
