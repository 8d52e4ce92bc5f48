"""Frames of detections, read behind the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from napari.qt.threading import create_worker
from psygnal import Signal

from napari_panoptic.detected import LoadedFrame, load_frame
from napari_panoptic.errors import PanopticError
from napari_panoptic.io.slides import SlideImage, read_image
from napari_panoptic.points import DetectionCohort, Frame


@dataclass(frozen=True, eq=False)
class ReadFrame:
    """A frame that was read, or why it cannot be.

    Parameters
    ----------
    name
        Which.
    loaded
        Its points, or None.
    image
        Its pixels, where they were asked for and are there.
    error
        In words; empty where all went well.
    """

    name: str
    loaded: LoadedFrame | None = None
    image: SlideImage | None = None
    error: str = ""


class FrameReader:
    """Reads the frame that is wanted with its image, and the points of all others behind it.

    Parameters
    ----------
    cohort
        Whose frames.
    """

    shown_read = Signal(ReadFrame)
    other_read = Signal(ReadFrame)

    def __init__(self, cohort: DetectionCohort) -> None:
        self._cohort = cohort
        self._wanted: Any | None = None
        self._all: Any | None = None
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether something is being read."""
        return self._wanted is not None or self._all is not None

    def want(self, frame: Frame) -> None:
        """Read a frame with its image; the answer to an older wish is dropped."""
        worker: Any = create_worker(_read_one, self._cohort, frame, _start_thread=False)
        self._wanted = worker
        worker.returned.connect(partial(self._on_one, worker))
        worker.start()

    def read_all(self) -> None:
        """Read the points of all frames."""
        worker: Any = create_worker(_read_all, self._cohort, _start_thread=False)
        self._all = worker
        worker.yielded.connect(partial(self._on_other, worker))
        worker.finished.connect(partial(self._on_finished, worker))
        worker.start()

    def close(self) -> None:
        """Stop, and tell nothing any more."""
        self._is_closed = True
        if self._all is not None:
            self._all.quit()
        self._wanted = self._all = None

    def _on_one(self, worker: Any, read: ReadFrame) -> None:
        if self._is_closed or worker is not self._wanted:
            if read.image is not None:
                read.image.close()
            return
        self._wanted = None
        self.shown_read.emit(read)

    def _on_other(self, worker: Any, read: ReadFrame) -> None:
        if not self._is_closed and worker is self._all:
            self.other_read.emit(read)

    def _on_finished(self, worker: Any) -> None:
        if worker is self._all:
            self._all = None


def _read_one(cohort: DetectionCohort, frame: Frame) -> ReadFrame:
    try:
        loaded = load_frame(cohort, frame)
        image = None if frame.image is None else read_image(frame.image)
    except PanopticError as error:
        return ReadFrame(frame.name, error=str(error))
    return ReadFrame(frame.name, loaded, image)


def _read_all(cohort: DetectionCohort) -> Iterator[ReadFrame]:
    for frame in cohort.frames:
        try:
            yield ReadFrame(frame.name, load_frame(cohort, frame))
        except PanopticError as error:
            yield ReadFrame(frame.name, error=str(error))
