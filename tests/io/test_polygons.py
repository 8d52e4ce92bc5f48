"""The compiled loops over polygons against scikit-image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from skimage.draw import polygon

from napari_panoptic.io import _polygons as kernels

Ring = NDArray[np.int32]
Object = Sequence[tuple[Ring, bool]]


def flat(*objects: Object) -> kernels.Flat:
    rings = [ring for object_ in objects for ring in object_]
    starts = np.cumsum([0, *(len(points) for points, _ in rings)])
    vertices = [np.zeros((0, 2), np.int32), *(points for points, _ in rings)]
    return (
        np.concatenate(vertices),
        starts.astype(np.int64),
        np.array([hole for _, hole in rings], bool),
        np.cumsum([0, *(len(object_) for object_ in objects)]).astype(np.int64),
    )


def covered(object_: Object, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Cut the holes out of each part, then put the parts together."""
    whole, part = np.zeros(shape, bool), np.zeros(shape, bool)
    for points, is_hole in object_:
        if not is_hole:
            whole |= part
            part[:] = False
        if len(points):
            part[polygon(points[:, 1], points[:, 0], shape)] = not is_hole
    return whole | part


def random_ring(generator: np.random.Generator, n: int | None = None) -> Ring:
    spread = generator.choice([2, 8, 40])
    centre = generator.uniform(-8, 48, 2)
    points = centre + generator.normal(0, spread, (n or generator.integers(1, 14), 2))
    return points.astype(np.int32)


def random_object(generator: np.random.Generator) -> Object:
    more = range(generator.choice([0, 0, 1, 3]))
    others = [(random_ring(generator), bool(generator.random() < 0.6)) for _ in more]
    return [(random_ring(generator), False), *others]


def drawn(
    objects: Sequence[Object], shape: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_], int]:
    image, twice = np.zeros(shape, np.int32), np.zeros(shape, bool)
    visible = np.zeros(len(objects) + 1, np.int64)
    labels = np.arange(1, len(objects) + 1, dtype=np.int32)
    overlapping = kernels.draw_counted(
        flat(*objects), np.arange(len(objects)), labels, image, visible, twice
    )
    return image, visible, twice, overlapping


def test_ten_thousand_polygons_have_the_pixels_of_scikit_image() -> None:
    """Self-crossing ones and those beyond the frame, too."""
    generator = np.random.default_rng(0)
    for _ in range(10_000):
        shape = (int(generator.integers(1, 45)), int(generator.integers(1, 45)))
        ring = random_ring(generator)
        expected = covered([(ring, False)], shape)
        image, visible, _, overlapping = drawn([[(ring, False)]], shape)
        np.testing.assert_array_equal(image, expected)
        assert (visible[1], overlapping) == (expected.sum(), 0)


coordinate = st.integers(-6, 20)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=9),
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
)
def test_polygons_of_few_pixels(points: list[tuple[int, int]], shape: tuple[int, int]) -> None:
    ring = np.array(points, np.int32)
    np.testing.assert_array_equal(
        drawn([[(ring, False)]], shape)[0], covered([(ring, False)], shape)
    )


@pytest.mark.parametrize("seed", range(60))
def test_objects_over_each_other_with_an_account(seed: int) -> None:
    """Images of more than one band of rows; parts, holes, and objects with neither."""
    generator = np.random.default_rng(seed)
    shape = (int(generator.integers(1, 1300)), 40)
    objects: list[Object] = [random_object(generator) for _ in range(12)]
    down = generator.integers(0, shape[0], len(objects))
    objects = [
        [(points + np.array([0, dy], np.int32), hole) for points, hole in object_]
        for dy, object_ in zip(down, objects, strict=True)
    ] + [[]]
    expected, claims = np.zeros(shape, np.int32), np.zeros(shape, int)
    for label, object_ in enumerate(objects, start=1):
        mask = covered(object_, shape)
        expected[mask] = label
        claims += mask
    image, visible, twice, overlapping = drawn(objects, shape)
    np.testing.assert_array_equal(image, expected)
    np.testing.assert_array_equal(twice, claims > 1)
    assert overlapping == (claims > 1).sum()
    counted = np.bincount(expected.ravel(), minlength=len(objects) + 1)
    np.testing.assert_array_equal(visible[1:], counted[1:])
    found = kernels.have_pixels(flat(*objects), np.arange(len(objects)), shape)
    assert found.tolist() == [bool(covered(o, shape).any()) for o in objects]


@pytest.mark.parametrize("seed", range(60))
def test_a_window_is_cut_out_of_the_whole(seed: int) -> None:
    generator = np.random.default_rng(seed)
    objects = [random_object(generator) for _ in range(10)]
    whole = drawn(objects, (60, 70))[0]
    y0, x0 = (int(v) for v in generator.integers(0, 50, 2))
    window = np.zeros((int(generator.integers(1, 10)), int(generator.integers(1, 20))), np.int32)
    labels = np.arange(1, 11, dtype=np.int32)
    kernels.draw_window(flat(*objects), np.arange(10), labels, y0, x0, window)
    height, width = window.shape
    np.testing.assert_array_equal(window, whole[y0 : y0 + height, x0 : x0 + width])


def test_far_vertices_do_not_overflow() -> None:
    far = 2**29
    square = np.array([(-far, -far), (far, -far), (far, far), (-far, far)], np.int32)
    assert (drawn([[(square, False)]], (3, 4))[0] == 1).all()
    slanted = np.array([(-far, -far), (far, far), (far, far - 1)], np.int32)
    image = drawn([[(slanted, False)]], (9, 9))[0]
    np.testing.assert_array_equal(image > 0, np.eye(9, dtype=bool))


def test_boxes() -> None:
    objects: list[Object] = [[(np.array([(3, 4), (1, 9), (2, -2)], np.int32), False)], []]
    assert kernels.bounds(flat(*objects)).tolist() == [[-2, 1, 10, 4], [0, 0, 0, 0]]


@pytest.mark.parametrize("seed", range(20))
def test_boxes_are_found_by_tile(seed: int) -> None:
    generator = np.random.default_rng(seed)
    corner = generator.integers(0, 30, (20, 2))
    boxes = np.hstack([corner, np.minimum(corner + generator.integers(1, 20, (20, 2)), 40)])
    boxes[3] = 0
    starts, places = kernels.boxes_by_tile(boxes, 16, 3, 3)
    for tile in range(9):
        y, x = tile // 3 * 16, tile % 3 * 16
        touching = [
            k
            for k, (y0, x0, y1, x1) in enumerate(boxes.tolist())
            if max(y0, y) < min(y1, y + 16) and max(x0, x) < min(x1, x + 16)
        ]
        assert places[starts[tile] : starts[tile + 1]].tolist() == touching


@pytest.mark.parametrize(
    ("points", "crosses"),
    [
        ([(0, 0), (4, 4), (4, 0), (0, 4)], True),
        ([(0, 0), (4, 0), (4, 4), (0, 4)], False),
        # Going out and back along the same line touches, but does not cross.
        ([(0, 0), (4, 0), (8, 0), (4, 0), (4, 4)], False),
        ([(0, 0), (4, 0), (2, 0), (2, 4)], False),
    ],
)
def test_crossing_outlines(points: list[tuple[float, float]], crosses: bool) -> None:
    assert kernels.crosses_itself(np.array(points, dtype=np.float64)) is crosses


def crosses_plainly(xy: NDArray[np.float64]) -> bool:
    """Compare every edge with every other."""
    after = np.roll(xy, -1, axis=0)

    def side(a: NDArray[np.float64], b: NDArray[np.float64], p: NDArray[np.float64]) -> float:
        return float((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]))

    return any(
        side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
        for k, (a, b) in enumerate(zip(xy, after, strict=True))
        for c, d in list(zip(xy, after, strict=True))[k + 1 :]
    )


@pytest.mark.parametrize("seed", range(40))
def test_crossings_of_short_and_long_outlines(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.choice([4, 7, 30, 90]))
    turn = np.sort(generator.uniform(0, 2 * np.pi, n))
    radius = generator.uniform(9, 10, n)
    xy = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    if seed % 2:
        i, j = generator.choice(n, 2, replace=False)
        xy[[i, j]] = xy[[j, i]]
    assert kernels.crosses_itself(xy) is crosses_plainly(xy)


def test_odd_shapes() -> None:
    rings = [[(0, 0), (4, 0), (4, 4)], [(1, 1), (1, 1), (2, 2)], [(0, 0), (4, 4), (4, 0), (0, 4)]]
    xy = np.array([point for ring in rings for point in ring], np.float64)
    found = kernels.odd_shapes(xy, np.array([0, 3, 6, 10]), np.array([0, 1, 3, 3]))
    both = kernels.DEGENERATE | kernels.CROSSING
    assert found.tolist() == [0, both, kernels.DEGENERATE]
