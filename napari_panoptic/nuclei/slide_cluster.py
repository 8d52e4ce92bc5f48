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
from pathlib import Path
from typing import Any, TypeVar

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.fingerprints import file_fingerprints, file_stamps
from napari_panoptic.io.formats.registry import open_masks
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.nuclei.values.windowed_labels import TiledPair
from napari_panoptic.nuclei.window_run import Elsewhere

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
        """Describe which files these are, as they are now: by name, size and time."""
        return f"{self!r}\n{file_stamps(self._paths())}"

    def content(self) -> dict[str, str]:
        """Return fingerprints that are the same on every machine.

        Times are not, of which fingerprints of folders are made: they are left out.
        """
        return file_fingerprints((p for p in self._paths() if not p.is_dir()), Path())

    def _paths(self) -> tuple[Path, ...]:
        return (*self.reference.all_paths, *self.prediction.all_paths)


@dataclass(frozen=True)
class SlideNow:
    """A slide as the process that hands its windows out sees it.

    Parameters
    ----------
    files
        The slide.
    state, content
        Of its files, there.
    """

    files: SlideFiles
    state: str
    content: dict[str, str]


class OtherFileError(PanopticError):
    """A worker sees another file than the process that handed the windows out."""


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
        self._client = client
        self._slide = SlideNow(files, files.state(), files.content())

    def over(
        self, work: Callable[[TiledPair, T], R], items: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """Make each item a task; see `napari_panoptic.nuclei.window_run.Elsewhere.over`."""
        from distributed import as_completed

        waiting = {
            self._client.submit(_do, self._slide, work, item, pure=False): place
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
    """Yield a task of a cluster a client of its own, and its thread back while it has it.

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


def _do(slide: SlideNow, work: Callable[[TiledPair, T], R], item: T) -> R:
    return work(_opened(slide), item)


def _opened(slide: SlideNow) -> TiledPair:
    """Open a slide, or give it as this worker has opened it before in the same state.

    Raises
    ------
    OtherFileError
        Where this worker sees other files than the process that asks.
    PanopticError
        Where they cannot be read.
    """
    with _lock:
        pair = _open_slides.pop(slide.state, None) or _opened_now(slide)
        _open_slides[slide.state] = pair
        while len(_open_slides) > _KEPT_OPEN:
            _open_slides.popitem(last=False)
    return pair


def _opened_now(slide: SlideNow) -> TiledPair:
    here = slide.files.content()
    if other := [path for path, wanted in slide.content.items() if here.get(path) != wanted]:
        raise OtherFileError(
            "a worker of the cluster sees another file here than the one that handed out the "
            "slide: it was replaced meanwhile, or the workers do not share their files; see that "
            "all see the same one, and run the same again",
            path=Path(other[0]),
        )
    return slide.files.open()
