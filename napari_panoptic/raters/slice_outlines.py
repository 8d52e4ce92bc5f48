"""Outlines on the slices of a volume: found once, and ahead of the hand in another thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.values.cohort import Rgb
from napari_panoptic.raters.cohort import RatersSettings
from napari_panoptic.raters.levels import levels_reached, levels_reached_by_votes
from napari_panoptic.raters.outlines import (
    PREDICTION_COLOURS,
    REFERENCE_COLOURS,
    level_colours,
    outline_segments,
    rater_colour,
)

FAINT = 0.45
"""How opaque levels are that are not the chosen one."""
RATER_ALPHA = 0.9
AHEAD = 6
"""Number of slices that are outlined in advance."""
MOST_KEPT = 600
"""Number of cached sets of outlines, of a few hundred bytes to some hundred kilobytes each."""


class Shown(StrEnum):
    """What can be shown over the image."""

    RATERS = "raters"
    REFERENCE = "their mean"
    PREDICTION = "prediction"
    DISAGREEMENT = "disagreement"


@dataclass(frozen=True, eq=False)
class CasePicture:
    """What is shown of a structure of a case.

    Parameters
    ----------
    pictures
        Modality -> (z, y, x), or (z, y, x, colour).
    contrasts
        Modality -> darkest and brightest value shown, least and greatest of all;
        none for colours.
    masks
        bool (n, z, y, x).
    raters
        The place of each rater in the cohort, for the colour.
    votes
        Whole numbers (z, y, x).
    probabilities
        Floating-point (z, y, x).
    spacing
        Distances of voxels along z, y and x, in mm where `is_mm`.
    start
        The slice that is looked at first.
    """

    pictures: Mapping[str, NDArray[Any]]
    contrasts: Mapping[str, tuple[float, float, float, float]]
    masks: NDArray[np.bool_]
    raters: tuple[int, ...]
    votes: NDArray[np.unsignedinteger]
    probabilities: NDArray[np.floating]
    spacing: tuple[float, float, float]
    is_mm: bool
    start: int = 0


@dataclass(frozen=True)
class Look:
    """Which outlines are wanted.

    Parameters
    ----------
    shown
        Whose.
    level
        The chosen level, by its place.
    is_only
        Whether the other levels are left out.
    rater
        The one rater, by the place in the case, who is outlined; None for all.
    """

    shown: Shown
    level: int = 0
    is_only: bool = True
    rater: int | None = None


@dataclass(frozen=True, eq=False)
class Outlines:
    """Segments as a layer of vectors takes them.

    Parameters
    ----------
    vectors
        float32 (n, 2, 2): start, and from there to the end, as (y, x).
    colours
        float32 (n, 4): red, green, blue and opacity from 0 to 1.
    """

    vectors: NDArray[np.float32]
    colours: NDArray[np.float32]


class SliceOutlines:
    """The outlines on the slices of a case.

    A caller that asks for outlines that are not computed yet waits for them, so
    that those of another slice are never drawn.

    Parameters
    ----------
    picture
        The case.
    settings
        The levels.
    """

    def __init__(self, picture: CasePicture, settings: RatersSettings) -> None:
        self._picture, self._settings = picture, settings
        self._by_votes = levels_reached_by_votes(len(picture.raters), settings)
        self._found: dict[tuple[int, Look], Outlines] = {}

    def of(self, number: int, look: Look) -> Outlines:
        """Return the outlines on a slice; in any thread."""
        found = self._found.get((number, look))
        if found is None:
            found = _joined(self._lines(number, look))
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[number, look] = found
        return found

    def _lines(self, z: int, look: Look) -> list[tuple[NDArray[np.float32], Rgb, float]]:
        picture = self._picture
        if look.shown is Shown.RATERS:
            return [
                (outline_segments(mask[z]), rater_colour(number), RATER_ALPHA)
                for place, (mask, number) in enumerate(
                    zip(picture.masks, picture.raters, strict=True)
                )
                if look.rater in (None, place)
            ]
        if look.shown is Shown.REFERENCE:
            reached, ends = self._by_votes[picture.votes[z]], REFERENCE_COLOURS
        else:
            reached = levels_reached(picture.probabilities[z], self._settings)
            ends = PREDICTION_COLOURS
        return [
            (outline_segments(reached > place), colour, 1.0 if place == look.level else FAINT)
            for place, colour in enumerate(level_colours(ends, len(self._settings.levels)))
            if place == look.level or not look.is_only
        ]


class AheadOfHand:
    """Finds the outlines on the slices next to the one that is looked at, in a thread."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="outlines")
        self._waiting: list[Future[None]] = []
        self._last = 0

    def look_at(
        self, outlines: SliceOutlines, number: int, n_slices: int, looks: set[Look]
    ) -> None:
        """Begin with the slices around one; what was begun for another is given up."""
        step = -1 if number < self._last else 1
        self._last = number
        self.rest()
        for z in _around(number, step, n_slices):
            self._waiting.append(self._executor.submit(_find, outlines, z, looks))

    def rest(self) -> None:
        """Begin with nothing more."""
        for future in self._waiting:
            future.cancel()
        self._waiting = []

    def close(self) -> None:
        """Stop."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _find(outlines: SliceOutlines, number: int, looks: Iterable[Look]) -> None:
    for look in looks:
        outlines.of(number, look)


def _around(number: int, step: int, n_slices: int) -> list[int]:
    """Return the slices to come, those in the direction of the last step first."""
    ahead = [number + step * k for k in range(1, AHEAD + 1)]
    wanted = [*ahead[:2], number - step, *ahead[2:]]
    return [z for z in wanted if 0 <= z < n_slices]


def _joined(lines: list[tuple[NDArray[np.float32], Rgb, float]]) -> Outlines:
    segments = np.concatenate([np.zeros((0, 2, 2), np.float32), *(own for own, _, _ in lines)])
    colours = [[*(channel / 255 for channel in colour), alpha] for _, colour, alpha in lines]
    of_lines = np.array(colours, np.float32).reshape(-1, 4)
    return Outlines(
        np.stack([segments[:, 0], segments[:, 1] - segments[:, 0]], axis=1),
        np.repeat(of_lines, [len(own) for own, _, _ in lines], axis=0),
    )


def contrast(values: NDArray[Any], sampled: int = 200_000) -> tuple[float, float, float, float]:
    """Return the 1st and 99th percentile, the least and the greatest of the values."""
    some = values.ravel()[:: max(1, values.size // sampled)].astype(np.float64)
    some = some[np.isfinite(some)]
    if not some.size:
        return 0.0, 1.0, 0.0, 1.0
    low, high = (float(value) for value in np.percentile(some, [1, 99]))
    lowest, highest = float(some.min()), float(some.max())
    top = max(high, low + 1e-6)
    return low, top, lowest, max(highest, top)
