"""Windows of one slide, gone over by all workers of a Dask cluster.

The task that evaluates a slide hands its windows out as tasks of their own. It
gives its thread back while it waits for them, so that even a single worker of
one thread gets on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from napari_panoptic.evaluation.tiles import TiledPair
from napari_panoptic.evaluation.windows import Elsewhere
from napari_panoptic.io.fingerprints import file_fingerprints
from napari_panoptic.io.tiled_loading import open_masks
from napari_panoptic.regions import ClassScheme, MaskFiles

T = TypeVar("T")
R = TypeVar("R")

_KEPT_OPEN = 2
"""Slides that a worker keeps open: opening one takes a second or more."""


@dataclass(frozen=True)
class SlideFiles:
    """What any process needs to open a slide that it can reach under the same paths.

    Parameters
    ----------
    reference, prediction
        The files of the two sides.
    scheme
        The classes.
    shape
        Height and width in px.
    mpp
        Micrometres per pixel, or None where unknown.
    """

    reference: MaskFiles
    prediction: MaskFiles
    scheme: ClassScheme
    shape: tuple[int, int]
    mpp: float | None

    def open(self) -> TiledPair:
        """Open both sides.

        Raises
        ------
        PanopticError
            Where the files cannot be read.
        """
        reference, prediction = (
            open_masks(files, self.scheme, self.shape)
            for files in (self.reference, self.prediction)
        )
        return TiledPair(reference.labels, prediction.labels, reference.ambiguous, self.mpp)

    def state(self) -> str:
        """Say which files these are, as they are now: by name, size and time."""
        parts = [repr(self)]
        for path in (*self.reference.all_paths, *self.prediction.all_paths):
            if path.is_dir():
                parts += file_fingerprints([path], path.parent).values()
            else:
                found = path.stat()
                parts.append(f"{found.st_size} {found.st_mtime_ns}")
        return "\n".join(parts)


class ClusterWorkers(Elsewhere):
    """The workers of a cluster, for one slide.

    Parameters
    ----------
    client
        Dask's client.
    files
        The slide.
    """

    def __init__(self, client: Any, files: SlideFiles) -> None:
        self._client, self._files, self._state = client, files, files.state()

    def over(
        self, work: Callable[[TiledPair, T], R], items: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """Make each item a task; see `napari_panoptic.evaluation.windows.Elsewhere.over`."""
        from distributed import as_completed

        waiting = {
            self._client.submit(_do, self._files, self._state, work, item, pure=False): place
            for place, item in enumerate(items)
        }
        try:
            for future in as_completed(list(waiting)):
                result = future.result()
                yield waiting.pop(future), result
        finally:
            self._client.cancel(list(waiting))


@contextmanager
def cluster_client(is_on_cluster: bool) -> Iterator[Any | None]:
    """Give a task of a cluster a client of its own, and its thread back while it has it.

    Parameters
    ----------
    is_on_cluster
        Whether this runs as such a task; None is given where it does not.
    """
    if not is_on_cluster:
        yield None
        return
    from distributed import worker_client

    with worker_client() as client:
        yield client


_lock = threading.Lock()
_open_slides: OrderedDict[str, TiledPair] = OrderedDict()


def _do(files: SlideFiles, state: str, work: Callable[[TiledPair, T], R], item: T) -> R:
    return work(_opened(files, state), item)


def _opened(files: SlideFiles, state: str) -> TiledPair:
    """Open a slide, or give it as this worker has opened it before in the same state."""
    with _lock:
        pair = _open_slides.pop(state, None) or files.open()
        _open_slides[state] = pair
        while len(_open_slides) > _KEPT_OPEN:
            _open_slides.popitem(last=False)
    return pair
