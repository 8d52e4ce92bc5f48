"""Frames of detections, read and judged behind the window."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psygnal import Signal
from superqt.utils import create_worker

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.detections.atypia import AtypiaEvaluation, evaluate_atypia
from napari_panoptic.detections.cohort import DetectionCohort, Frame
from napari_panoptic.detections.evaluate import (
    FrameCounts,
    LoadedFrame,
    count_frame_or_why,
    load_frame,
)
from napari_panoptic.io.images import SlideImage, read_image
from napari_panoptic.viewer.jobs.workers import connect_worker

TOLD_EVERY_S = 0.05
"""Interval between reports of the frames' figures, each of which refills the lists."""


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
        Its pixels, if they were asked for and exist.
    error
        In words; empty if all went well.
    """

    name: str
    loaded: LoadedFrame | None = None
    image: SlideImage | None = None
    error: str = ""


class FrameReader:
    """Reads the frame that is wanted with its image, behind it points of others and scores.

    Parameters
    ----------
    cohort
        Whose frames.
    """

    shown_read = Signal(ReadFrame)
    other_read = Signal(ReadFrame)
    scores_read = Signal(AtypiaEvaluation)

    def __init__(self, cohort: DetectionCohort) -> None:
        self._cohort = cohort
        self._wanted: Any | None = None
        self._others: Any | None = None
        self._scores: Any | None = None
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether something is being read."""
        return any(each is not None for each in (self._wanted, self._others, self._scores))

    @property
    def is_reading_others(self) -> bool:
        """Whether points are being read behind what is shown."""
        return self._others is not None

    def want(self, frame: Frame) -> None:
        """Read a frame with its image; the answer to an older wish is dropped."""
        worker: Any = create_worker(_read_one, self._cohort, frame, _start_thread=False)
        self._wanted = worker
        connect_worker(worker, returned=self._on_one, finished=self._on_finished)
        worker.start()

    def read_others(self, frames: Sequence[Frame]) -> None:
        """Read the points of frames."""
        self.stop()
        worker: Any = create_worker(_read_each, self._cohort, frames, _start_thread=False)
        self._others = worker
        connect_worker(worker, yielded=self._on_other, finished=self._on_finished)
        worker.start()

    def read_scores(self) -> None:
        """Read the scores of atypia."""
        worker: Any = create_worker(evaluate_atypia, self._cohort, _start_thread=False)
        self._scores = worker
        connect_worker(worker, returned=self._on_scores, finished=self._on_finished)
        worker.start()

    def stop(self) -> None:
        """Read no more frames than those that are wanted."""
        if self._others is not None:
            self._others.quit()
            self._others = None

    def close(self) -> None:
        """Stop, and tell nothing any more."""
        self._is_closed = True
        self.stop()
        self._wanted = self._scores = None

    def _on_one(self, worker: Any, read: ReadFrame) -> None:
        if self._is_closed or worker is not self._wanted:
            if read.image is not None:
                read.image.close()
            return
        self._wanted = None
        self.shown_read.emit(read)

    def _on_other(self, worker: Any, read: ReadFrame) -> None:
        if not self._is_closed and worker is self._others:
            self.other_read.emit(read)

    def _on_finished(self, worker: Any) -> None:
        """Wait no more for one that has ended, though it may have brought nothing."""
        if worker is self._wanted:
            self._wanted = None
        elif worker is self._others:
            self._others = None
        elif worker is self._scores:
            self._scores = None

    def _on_scores(self, worker: Any, scores: AtypiaEvaluation) -> None:
        if worker is self._scores:
            self._scores = None
            self.scores_read.emit(scores)


def _read_one(cohort: DetectionCohort, frame: Frame) -> ReadFrame:
    try:
        loaded = load_frame(cohort, frame)
        image = None if frame.image is None else read_image(frame.image)
    except (PanopticError, OSError, MemoryError) as error:
        return ReadFrame(frame.name, error=_words(error))
    return ReadFrame(frame.name, loaded, image)


def _read_each(cohort: DetectionCohort, frames: Sequence[Frame]) -> Iterator[ReadFrame]:
    for frame in frames:
        try:
            yield ReadFrame(frame.name, load_frame(cohort, frame))
        except (PanopticError, OSError, MemoryError) as error:
            yield ReadFrame(frame.name, error=_words(error))


def _words(error: Exception) -> str:
    return str(error) or "there is not enough memory for this frame"


class StandingsFinder:
    """Finds out behind the window what frames amount to; one lot of frames at a time."""

    found = Signal(object)  # list[FrameCounts]
    ended = Signal()

    def __init__(self) -> None:
        self._worker: Any | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being found out."""
        return self._worker is not None

    def start(self, frames: Sequence[LoadedFrame], distance_um: float) -> None:
        """Judge frames; discard what was under way."""
        self.stop()
        worker: Any = create_worker(_stand_each, frames, distance_um, _start_thread=False)
        self._worker = worker
        connect_worker(worker, yielded=self._on_found, finished=self._on_finished)
        worker.start()

    def stop(self) -> None:
        """Let what is under way come to nothing."""
        if self._worker is not None:
            self._worker.quit()
            self._worker = None

    def _on_found(self, worker: Any, found: list[FrameCounts]) -> None:
        if worker is self._worker:
            self.found.emit(found)

    def _on_finished(self, worker: Any) -> None:
        if worker is self._worker:
            self._worker = None
            self.ended.emit()


def _stand_each(frames: Sequence[LoadedFrame], distance_um: float) -> Iterator[list[FrameCounts]]:
    """Judge one frame after the other, and tell of several at once."""
    found: list[FrameCounts] = []
    told = time.monotonic()
    for loaded in frames:
        found.append(count_frame_or_why(loaded, distance_um))
        if time.monotonic() - told > TOLD_EVERY_S:
            yield found
            found, told = [], time.monotonic()
    if found:
        yield found
