"""Outlines on the slices of a volume, along pixel edges, computed once and in advance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.raters.levels import levels_reached, levels_reached_by_votes
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.raters import RatersSettings

FAINT = 0.45
"""How opaque levels are that are not the chosen one."""
RATER_ALPHA = 0.9
AHEAD = 6
"""Number of slices that are outlined in advance."""
MOST_KEPT = 600
"""Number of cached sets of outlines, of a few hundred bytes to some hundred kilobytes each."""
RATER_COLOURS: tuple[Rgb, ...] = (
    (235, 255, 0),
    (120, 235, 255),
    (255, 40, 120),
    (160, 40, 235),
    (0, 120, 80),
    (80, 40, 120),
    (120, 40, 0),
    (255, 200, 160),
)
"""Colours of raters, legible on grey and on the disagreement colour; they repeat from the ninth
on. Under normal and three kinds of colour-deficient vision any two differ by a
CIEDE2000 of at least 16, and by 9 from the middle of the levels (the tests measure it)."""
REFERENCE_COLOURS: tuple[Rgb, Rgb] = ((40, 90, 235), (190, 220, 255))
PREDICTION_COLOURS: tuple[Rgb, Rgb] = ((215, 85, 0), (255, 225, 120))
"""Colours of the lowest and the highest level, in blues and oranges; the others are mixed."""
DIVIDED_COLOUR: Rgb = (217, 26, 217)
"""The colour of voxels on which raters disagree."""


class Shown(StrEnum):
    """What can be shown over the image."""

    RATERS = "raters"
    REFERENCE = "their mean"
    PREDICTION = "prediction"
    DISAGREEMENT = "disagreement"


@dataclass(frozen=True, eq=False)
class CasePicture:
    """What is shown of a structure of a case."""

    #: Modality -> (z, y, x), or (z, y, x, colour).
    pictures: Mapping[str, NDArray[Any]]
    #: Modality -> darkest and brightest value shown, least and greatest of all; none for colours.
    contrasts: Mapping[str, tuple[float, float, float, float]]
    #: bool (n, z, y, x).
    masks: NDArray[np.bool_]
    #: The place of each rater in the cohort, for the colour.
    raters: tuple[int, ...]
    #: Whole numbers (z, y, x).
    votes: NDArray[np.unsignedinteger]
    #: Floating-point (z, y, x).
    probabilities: NDArray[np.floating]
    #: Distances of voxels along z, y and x, in mm where `is_mm`.
    spacing: tuple[float, float, float]

    is_mm: bool
    #: The slice that is looked at first.
    start: int = 0


@dataclass(frozen=True)
class OutlineChoice:
    """Which outlines are wanted."""

    #: What is outlined.
    shown: Shown
    #: The chosen level, by its place.
    level: int = 0
    #: Whether the other levels are left out.
    is_only: bool = True
    #: The one rater, by the place in the case, who is outlined; None for all.
    rater: int | None = None


@dataclass(frozen=True, eq=False)
class OutlineSegments:
    """Segments as a layer of vectors takes them."""

    #: float32 (n, 2, 2): start, and from there to the end, as (y, x).
    vectors: NDArray[np.float32]
    #: float32 (n, 4): red, green, blue and opacity from 0 to 1.
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
        self._found: dict[tuple[int, OutlineChoice], OutlineSegments] = {}

    def of(self, number: int, look: OutlineChoice) -> OutlineSegments:
        """Return the outlines on a slice; in any thread."""
        found = self._found.get((number, look))
        if found is None:
            found = _joined(self._lines(number, look))
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[number, look] = found
        return found

    def _lines(self, z: int, look: OutlineChoice) -> list[tuple[NDArray[np.float32], Rgb, float]]:
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


class OutlinePrefetcher:
    """Finds the outlines on the slices next to the one that is shown, in a thread."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="outlines")
        self._waiting: list[Future[None]] = []
        self._last = 0

    def request(
        self, outlines: SliceOutlines, number: int, n_slices: int, looks: set[OutlineChoice]
    ) -> None:
        """Find the outlines around a slice; cancel earlier requests."""
        step = -1 if number < self._last else 1
        self._last = number
        self.cancel()
        for z in _around(number, step, n_slices):
            self._waiting.append(self._executor.submit(_find, outlines, z, looks))

    def cancel(self) -> None:
        """Cancel the requests that have not started."""
        for future in self._waiting:
            future.cancel()
        self._waiting = []

    def close(self) -> None:
        """Stop."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _find(outlines: SliceOutlines, number: int, looks: Iterable[OutlineChoice]) -> None:
    for look in looks:
        outlines.of(number, look)


def _around(number: int, step: int, n_slices: int) -> list[int]:
    """Return the slices to come, those in the direction of the last step first."""
    ahead = [number + step * k for k in range(1, AHEAD + 1)]
    wanted = [*ahead[:2], number - step, *ahead[2:]]
    return [z for z in wanted if 0 <= z < n_slices]


def _joined(lines: list[tuple[NDArray[np.float32], Rgb, float]]) -> OutlineSegments:
    segments = np.concatenate([np.zeros((0, 2, 2), np.float32), *(own for own, _, _ in lines)])
    colours = [[*(channel / 255 for channel in colour), alpha] for _, colour, alpha in lines]
    of_lines = np.array(colours, np.float32).reshape(-1, 4)
    return OutlineSegments(
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


def rater_colour(number: int) -> Rgb:
    """Return the colour of a rater by position in the cohort."""
    return RATER_COLOURS[number % len(RATER_COLOURS)]


def level_colours(ends: tuple[Rgb, Rgb], n_levels: int) -> list[Rgb]:
    """Mix a colour per level, the lowest first."""
    shares = np.linspace(0, 1, n_levels) if n_levels > 1 else np.array([1.0])
    low, high = np.array(ends[0], float), np.array(ends[1], float)
    mixed = np.round(low + shares[:, None] * (high - low)).astype(int).tolist()
    return [(red, green, blue) for red, green, blue in mixed]


def outline_segments(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the edges between the pixels of a mask and all others.

    Parameters
    ----------
    mask
        bool (y, x).

    Returns
    -------
    float32 (n, 2, 2): segments from one (y, x) to another, pixel centres being
    whole numbers. Collinear edges are joined; the edge of the image is an edge of
    the mask, too.
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return np.zeros((0, 2, 2), np.float32)
    top, left = rows[0], columns[0]
    inside = np.pad(mask[top : rows[-1] + 1, left : columns[-1] + 1], 1).astype(np.int8)
    flat = _runs(np.diff(inside, axis=0)[:, 1:-1] != 0)
    upright = _runs(np.diff(inside, axis=1)[1:-1].T != 0)[:, :, ::-1]
    corner = np.array([top - 0.5, left - 0.5])
    segments: NDArray[np.float64] = np.concatenate([flat, upright]) + corner
    return segments.astype(np.float32)


def _runs(edges: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Join neighbours in each row: float64 (n, 2, 2) of (row, from) and (row, to)."""
    steps = np.diff(np.pad(edges, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, start = np.nonzero(steps == 1)
    _, end = np.nonzero(steps == -1)
    return np.stack([np.stack([row, start], 1), np.stack([row, end], 1)], 1).astype(np.float64)


def disagreement_colours(n_raters: int) -> NDArray[np.float64]:
    """Return RGBA (0-1) of 0 to ``n_raters`` votes by how far raters disagree, 1 - |2 v/n - 1|.

    From transparent, where all agree, over purple to pink: no grey of the image, no blue or
    orange of outlines.
    """
    share = np.arange(n_raters + 1) / max(n_raters, 1)
    heat = 1 - np.abs(2 * share - 1)
    colours = np.zeros((n_raters + 1, 4))
    anchors = np.array([[0.4, 0.0, 0.55], np.array(DIVIDED_COLOUR) / 255, [1.0, 0.65, 1.0]])
    for channel in range(3):
        colours[:, channel] = np.interp(heat, [0, 0.5, 1], anchors[:, channel])
    colours[:, 3] = np.where(heat > 0, 0.2 + 0.35 * heat, 0)
    return colours
