"""Outlines of masks along pixel edges, exactly as counted, and the colours of raters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.values.cohort import Rgb

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
