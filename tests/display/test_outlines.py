"""Outlines as lines, against distances to the edges of pixels that are measured one by one."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.path import Path as Polygon
from numpy.typing import NDArray
from scipy import ndimage

from napari_panoptic.display.outlines import (
    CASING_ALPHA,
    CASING_PX,
    SELECTED_MORE_PX,
    Lined,
    draw_outlines,
    line_rings,
    margin_px,
    shorter_sides,
)

RED, GREEN = (255, 0, 0, 255), (0, 255, 0, 255)
CHAMFER_PX = np.sqrt(1 / 8)
"""How far the chamfer of a corner is from it, in px of the image."""


def blobs(seed: int, shape: tuple[int, int] = (28, 33)) -> NDArray[np.int32]:
    """Return objects of which some touch each other, each with background and others beside it."""
    rng = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(rng.normal(size=shape), 1.6)
    found = ndimage.label(noise > 0)[0]
    halves = np.arange(shape[1]) > shape[1] // 2
    return np.where(found > 0, 2 * found - halves, 0).astype(np.int32)


def boxes(labels: NDArray[np.int32]) -> NDArray[np.int64]:
    found = np.zeros((labels.max(), 4), np.int64)
    for label in range(1, labels.max() + 1):
        y, x = np.nonzero(labels == label)
        if len(y):
            found[label - 1] = y.min(), x.min(), y.max() + 1, x.max() + 1
    return found


def lined(
    labels: NDArray[np.int32], width: float, *, is_free: bool = False, wider: int = 0
) -> Lined:
    """Return lines of one colour for each label: red for odd ones, green for even ones.

    With `is_free`, no object is too small for its line.
    """
    shorter = shorter_sides(boxes(labels))
    colours = np.array([GREEN, RED], np.uint8)[np.arange(len(shorter)) % 2]
    return Lined(labels, shorter + 10**6 * is_free, colours, width, wider)


def edges(labels: NDArray[np.int32]) -> list[tuple[float, float, float, float]]:
    """Return x0, y0, x1, y1 of each side of a pixel between two different labels."""
    height, width = labels.shape
    found: list[tuple[float, float, float, float]] = []
    for y in range(height):
        for x in range(width):
            if x + 1 < width and labels[y, x] != labels[y, x + 1]:
                found.append((x + 1, y, x + 1, y + 1))
            if y + 1 < height and labels[y, x] != labels[y + 1, x]:
                found.append((x, y + 1, x + 1, y + 1))
    return found


def distances(
    segments: list[tuple[float, float, float, float]], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far each point x, y is from the nearest segment."""
    nearest = np.full(len(points), np.inf)
    for x0, y0, x1, y1 in segments:
        start, by = np.array([x0, y0]), np.array([x1 - x0, y1 - y0])
        along = np.clip((points - start) @ by / (by @ by), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(points - start - along[:, None] * by, axis=1))
    return nearest


def middles(shape: tuple[int, int], scale: float, margin: int) -> NDArray[np.float64]:
    """Return x, y of each pixel of a picture, in px of the window."""
    y, x = np.indices(shape).reshape(2, -1)
    return np.stack([x + 0.5, y + 0.5], axis=1) / scale + margin


@pytest.mark.parametrize(
    ("seed", "scale"),
    [
        *((seed, scale) for seed in range(4) for scale in (1, 3)),
        (0, 10),
        *(pytest.param(seed, 10, marks=pytest.mark.long) for seed in (1, 2, 3)),
    ],
)
def test_lines_lie_along_the_edges_of_the_pixels(seed: int, scale: int) -> None:
    labels, width = blobs(seed), 2.5
    margin = margin_px(scale)
    inner = labels.shape[0] - 2 * margin, labels.shape[1] - 2 * margin
    shape = inner[0] * scale, inner[1] * scale
    layer = lined(labels, width, is_free=True)
    picture = draw_outlines([layer], shape, margin_px=margin)
    far = scale * distances(edges(labels), middles(shape, scale, margin)).reshape(shape)
    is_line = (picture[..., 2] == 0) & (picture[..., 3] == 255)
    # All that is nearer to an edge than to its chamfer is covered, and nothing beyond.
    assert (far[is_line] <= width / 2 + CHAMFER_PX * scale).all()
    assert is_line[far <= width / 2 - CHAMFER_PX * scale - 0.5].all()
    is_any = picture[..., 3] > 0
    assert (far[is_any] < width / 2 + CASING_PX + 0.5 + CHAMFER_PX * scale).all()
    assert is_line.any()
    # Every pixel of a line has the colour of an object that it belongs to, or lies beside.
    y, x = (middles(shape, scale, margin)[:, ::-1].T).astype(int).reshape(2, *shape)
    own = labels[y, x]
    is_red, is_green = is_line & (picture[..., 0] == 255), is_line & (picture[..., 1] == 255)
    assert not (is_red & (own > 0) & (own % 2 == 0)).any()
    assert not (is_green & (own % 2 == 1)).any()


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 8))]
)
def test_rings_hold_the_middles_of_exactly_the_pixels_of_their_object(seed: int) -> None:
    labels = blobs(seed)
    rings = line_rings(labels)
    y, x = np.indices(labels.shape).reshape(2, -1)
    points = np.stack([x + 0.5, y + 0.5], axis=1)
    inside = np.zeros((labels.max() + 1, labels.size), bool)
    for ring, label in enumerate(rings.label):
        corners = rings.halves_xy[rings.start[ring] : rings.start[ring + 1]] / 2
        inside[label] ^= Polygon(np.concatenate([corners, corners[:1]])).contains_points(points)
        # Between corners it runs along pixels, or straight through single steps; no corner is
        # further from an edge than a chamfer, and none lies on a straight line.
        step = np.roll(corners, -1, axis=0) - corners
        before = np.roll(step, 1, axis=0)
        assert (step[:, 0] * before[:, 1] != step[:, 1] * before[:, 0]).all()
        assert ((step == 0).any(axis=1) | (abs(step[:, 0]) == abs(step[:, 1]))).all()
        framed = np.pad(labels, 1)
        assert (distances(edges(framed), corners + 1) <= 1e-9).all()
        assert (distances(edges(framed), corners + step / 2 + 1) <= CHAMFER_PX + 1e-9).all()
    for label in range(1, labels.max() + 1):
        assert np.array_equal(inside[label], labels.ravel() == label)


@pytest.mark.parametrize("scale", [1, 2, 3, 10])
@pytest.mark.parametrize("width", [1.5, 2.5])
@pytest.mark.parametrize("is_wider", [False, True])
def test_lines_have_their_width(scale: int, width: float, is_wider: bool) -> None:
    labels = np.zeros((60, 60), np.int32)
    labels[10:50, 10:50] = 1
    picture = draw_outlines([lined(labels, width, wider=is_wider)], (60 * scale,) * 2, margin_px=0)
    across = picture[30 * scale].astype(float) / 255
    line = across[:, 3] * across[:, 0]
    # Across both sides of the square; casings are white: their green tells them from the line.
    red = (across[:, 3] * (across[:, 0] - across[:, 1])).sum() / 2
    assert red == pytest.approx(width + SELECTED_MORE_PX * is_wider, abs=0.05)
    pale = (across[:, 3] * across[:, 1]).sum() / 2
    assert pale == pytest.approx(2 * CASING_PX * CASING_ALPHA, abs=0.25)
    assert line.max() <= 1


def test_a_line_through_single_steps_is_straight_and_as_wide() -> None:
    labels = (np.add.outer(np.arange(60), np.arange(60)) < 60).astype(np.int32)
    width, size = 2.5, 360
    picture = draw_outlines([lined(labels, width)], (size, size), margin_px=0)
    red = picture[..., 3] / 255 * (picture[..., 0].astype(float) - picture[..., 1]) / 255
    # Across the line, a step from pixel to pixel is the root of 2 long, and half of that to the
    # pixels of the next diagonal. It has the same width all along.
    at = np.arange(size // 4, size)
    across = [np.sqrt(2) * red[at[: len(at) - k], at[k:]].sum() for k in range(100)]
    pairs = np.array(across).reshape(-1, 2).mean(axis=1)
    assert np.allclose(pairs, width, atol=0.1)
    assert np.ptp(pairs) < 0.01


@pytest.mark.parametrize("side", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("scale", [0.5, 1, 3])
def test_no_line_is_wider_than_a_quarter_of_the_shorter_side(side: int, scale: float) -> None:
    labels = np.zeros((80, 40), np.int32)
    labels[10:70, 20 : 20 + side] = 1
    shape = round(80 * scale), round(40 * scale)
    picture = draw_outlines([lined(labels, 2.5, wider=1)], shape, margin_px=0)
    across = picture[shape[0] // 2].astype(float) / 255
    red = (across[:, 3] * (across[:, 0] - across[:, 1])).sum() / 2
    assert red <= min(side * scale / 4, 3.5) + 0.06
    assert red >= 0.6 * min(side * scale / 4, 3.5)


def test_objects_that_touch_both_keep_their_line() -> None:
    labels = np.zeros((30, 30), np.int32)
    labels[5:25, 5:15], labels[5:25, 15:25] = 1, 2
    for scale in (1, 3, 10):
        picture = draw_outlines([lined(labels, 2.5)], (30 * scale,) * 2, margin_px=0)
        border = picture[15 * scale]
        assert border[15 * scale - 1].tolist() == list(RED)
        assert border[15 * scale].tolist() == list(GREEN)


def test_an_object_that_the_border_of_the_crop_cuts_is_not_closed_along_it() -> None:
    labels = np.zeros((40, 60), np.int32)
    labels[15:25, :] = 1
    for scale in (1, 3, 10):
        margin = margin_px(scale)
        shape = (40 - 2 * margin) * scale, (60 - 2 * margin) * scale
        picture = draw_outlines([lined(labels, 2.5)], shape, margin_px=margin)
        # The same along the border as in the middle: two lines across it.
        assert (picture == picture[:, shape[1] // 2, None]).all()
        assert picture[..., 3].any()


def test_an_object_just_beside_the_crop_reaches_into_it() -> None:
    margin = margin_px(3)
    labels = np.zeros((40, 40), np.int32)
    labels[10:30, :margin] = 1  # its right edge is the left border of the crop
    picture = draw_outlines([lined(labels, 2.5, is_free=True)], (66, 66), margin_px=margin)
    assert picture[33, 0].tolist() == list(RED)


def test_casings_lie_below_all_lines() -> None:
    labels = np.zeros((30, 30), np.int32)
    labels[5:25, 5:25] = 1
    below, above = lined(labels, 4.0), lined(2 * labels, 1.0)
    picture = draw_outlines([below, above], (300, 300), margin_px=0)
    across = picture[150, 40:60]
    assert not ((across[:, 2] > 0) & (abs(np.arange(20) - 9.5) < 1.5)).any()
    assert (across == RED).all(axis=1).any()


def test_points_of_a_fine_screen_are_larger() -> None:
    labels = blobs(1)
    once = draw_outlines([lined(labels, 2.0)], (28 * 4, 33 * 4), margin_px=0)
    fine = draw_outlines([lined(labels, 1.0)], (28 * 4, 33 * 4), margin_px=0, per_point=2.0)
    has_casing = (once[..., 2] > 0) | (fine[..., 2] > 0)
    assert np.array_equal(once[~has_casing], fine[~has_casing])


def test_nothing_is_drawn_without_objects() -> None:
    for labels in (np.zeros((9, 9), np.int32), np.ones((9, 9), np.int32)):
        inner = draw_outlines([lined(labels, 2.5)], (9, 9), margin_px=3)
        assert not inner.any()
        assert len(line_rings(labels).label) == labels[0, 0]


@pytest.mark.parametrize("scale", [0.2, 0.37])
def test_from_afar_lines_lie_within_a_pixel_of_the_picture(scale: float) -> None:
    labels = np.pad(blobs(3, (190, 190)), 5)
    labels = labels.repeat(2, axis=0).repeat(2, axis=1)
    shape = (round(400 * scale),) * 2
    picture = draw_outlines([lined(labels, 1.5)], shape, margin_px=0)
    is_edge = np.zeros(labels.shape, bool)
    is_edge[1:] |= labels[1:] != labels[:-1]
    is_edge[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    far = ndimage.distance_transform_edt(~is_edge) * scale
    points = middles(shape, scale, 0).astype(int)
    seen = far[points[:, 1], points[:, 0]].reshape(shape)[picture[..., 3] > 100]
    assert (seen < 1.5 / 2 + CASING_PX + 1).all()
    assert len(seen) > 500
