"""Frames of detections, read and counted in other threads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from napari_panoptic.detections.evaluate import (
    FrameCounts,
    LoadedFrame,
    count_frame_or_why,
    load_frame,
)
from napari_panoptic.io.images.slides import SlideImage, read_image
from napari_panoptic.values.detections import DetectionCohort, Frame
from napari_panoptic.viewer.jobs.jobs import FORESEEN, Job, as_value

REPORT_EVERY_S = 0.05
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

    def close(self) -> None:
        """Close the image of a frame that comes too late."""
        if self.image is not None:
            self.image.close()


def read_points(
    cohort: DetectionCohort, frames: Sequence[Frame], _job: Job[ReadFrame]
) -> Iterator[ReadFrame]:
    """Read the points of frames."""
    for frame in frames:
        yield _read(cohort, frame, with_image=False)


def read_with_image(
    cohort: DetectionCohort, frame: Frame, _job: Job[ReadFrame]
) -> Iterator[ReadFrame]:
    """Read the points and the image of a frame."""
    yield _read(cohort, frame, with_image=True)


def _read(cohort: DetectionCohort, frame: Frame, *, with_image: bool) -> ReadFrame:
    try:
        loaded = load_frame(cohort, frame)
        image = read_image(frame.image) if with_image and frame.image is not None else None
    except FORESEEN as error:
        return ReadFrame(frame.name, error=str(as_value(error)))
    return ReadFrame(frame.name, loaded, image)


def count_frames(
    frames: Sequence[LoadedFrame], distance_um: float, _job: Job[list[FrameCounts]]
) -> Iterator[list[FrameCounts]]:
    """Count one frame after the other, and yield several at once."""
    found: list[FrameCounts] = []
    reported = time.monotonic()
    for loaded in frames:
        found.append(count_frame_or_why(loaded, distance_um))
        if time.monotonic() - reported > REPORT_EVERY_S:
            yield found
            found, reported = [], time.monotonic()
    if found:
        yield found
