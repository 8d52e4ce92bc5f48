"""Frames of detections, read and counted in other threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.detections.evaluate import (
    FrameCounts,
    LoadedFrame,
    count_frame_or_why,
    load_frame,
)
from napari_panoptic.io.images.slides import SlideImage, read_image
from napari_panoptic.values.detections import DetectionCohort, Frame
from napari_panoptic.viewer.jobs.jobs import (
    FORESEEN,
    Job,
    Stream,
    as_value,
    show_failure,
)

TOLD_EVERY_S = 0.05
"""Interval between reports of the frames' figures, each of which refills the lists."""


@dataclass(frozen=True, eq=False)
class ReadFrame:
    """A frame that was read, or why it cannot be."""

    #: Name of the frame.
    name: str
    #: Its points, or None.
    loaded: LoadedFrame | None = None
    #: Its pixels, if they were requested and exist.
    image: SlideImage | None = None
    #: In words; empty if all went well.
    error: str = ""


class FrameReader:
    """Reads the frame that is wanted with its image, and behind it the points of others.

    Parameters
    ----------
    cohort
        Whose frames.
    on_wanted, on_other
        Called, on the main thread, with the frame that is wanted, and with each of the others.
    """

    def __init__(
        self,
        cohort: DetectionCohort,
        on_wanted: Callable[[ReadFrame], None],
        on_other: Callable[[ReadFrame], None],
    ) -> None:
        self._cohort = cohort
        self._wanted = Stream(on_wanted, dropped=_close_image)
        self._others = Stream(on_other)

    @property
    def is_busy(self) -> bool:
        """Whether something is being read."""
        return self._wanted.is_busy or self._others.is_busy

    @property
    def is_reading_others(self) -> bool:
        """Whether points are being read behind what is shown."""
        return self._others.is_busy

    def want(self, frame: Frame) -> None:
        """Read a frame with its image; the answer to an older wish is dropped."""
        self._wanted.start(partial(_read, self._cohort, [frame], True))

    def read_others(self, frames: Sequence[Frame]) -> None:
        """Read the points of frames."""
        self._others.start(partial(_read, self._cohort, frames, False))

    def stop(self) -> None:
        """Read no more frames than those that are wanted."""
        self._others.stop()

    def close(self) -> None:
        """Stop, and report nothing more."""
        self._wanted.close()
        self._others.close()


def _close_image(read: ReadFrame) -> None:
    if read.image is not None:
        read.image.close()


def _read(
    cohort: DetectionCohort, frames: Sequence[Frame], with_image: bool, _job: Job[ReadFrame]
) -> Iterator[ReadFrame]:
    for frame in frames:
        try:
            loaded = load_frame(cohort, frame)
            image = None
            if with_image and frame.image is not None:
                image = read_image(frame.image)
        except FORESEEN as error:
            yield ReadFrame(frame.name, error=str(as_value(error)))
        else:
            yield ReadFrame(frame.name, loaded, image)


class FrameCounter:
    """Counts the matches of frames in the background; one list of frames at a time.

    Parameters
    ----------
    on_counts
        Called, on the main thread, with the counts of some frames.
    on_ended
        Called when all are counted; not after an error, which counting again would repeat.
    """

    def __init__(
        self, on_counts: Callable[[list[FrameCounts]], None], on_ended: Callable[[], None]
    ) -> None:
        self._on_all_counted = on_ended
        self._stream: Stream[list[FrameCounts]] = Stream(
            on_counts, ended=self._on_ended, failed=self._on_failed
        )
        self._has_failed = False

    @property
    def is_busy(self) -> bool:
        """Whether frames are being counted."""
        return self._stream.is_busy

    def start(self, frames: Sequence[LoadedFrame], distance_um: float) -> None:
        """Count frames; discard what was under way."""
        self._has_failed = False
        self._stream.start(partial(_count, frames, distance_um))

    def stop(self) -> None:
        """Cancel what is under way."""
        self._stream.stop()

    def _on_failed(self, error: PanopticError) -> None:
        self._has_failed = True
        show_failure(error)

    def _on_ended(self) -> None:
        if not self._has_failed:
            self._on_all_counted()


def _count(
    frames: Sequence[LoadedFrame], distance_um: float, _job: Job[list[FrameCounts]]
) -> Iterator[list[FrameCounts]]:
    """Count one frame after the other, and yield several at once."""
    found: list[FrameCounts] = []
    told = time.monotonic()
    for loaded in frames:
        found.append(count_frame_or_why(loaded, distance_um))
        if time.monotonic() - told > TOLD_EVERY_S:
            yield found
            found, told = [], time.monotonic()
    if found:
        yield found
