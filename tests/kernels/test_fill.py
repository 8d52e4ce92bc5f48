"""The compiled loops over polygons against scikit-image, and against fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import Delaunay
from skimage.draw import polygon

from napari_panoptic.kernels import fill as kernels
from tests.support.examples import examples, seeds

Ring = NDArray[Any]
Object = Sequence[tuple[Ring, bool]]
Point = tuple[Fraction, Fraction]
UNSURE = Fraction(1, 10**6)
"""px from an edge within which float64 decides, for vertices of at most 2^29 px."""
PER_PX = 16
"""Random points lie on a grid of so many lines per px: whole numbers decide exactly."""


def flat(*objects: Object) -> kernels.Flat:
    rings = [ring for object_ in objects for ring in object_]
    starts = np.cumsum([0, *(len(points) for points, _ in rings)])
    vertices = [points for points, _ in rings] or [np.zeros((0, 2))]
    return (
        np.concatenate(vertices).astype(np.float64),
        starts.astype(np.int64),
        np.array([hole for _, hole in rings], bool),
        np.cumsum([0, *(len(object_) for object_ in objects)]).astype(np.int64),
        bool(vertices[0].dtype == np.int32),
    )


def covered(object_: Object, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Ask scikit-image of pixels; of points of the plane, every edge for every pixel."""
    whole = np.zeros(shape, bool)
    if object_ and object_[0][0].dtype == np.int32:
        ((points, _),) = object_
        whole[polygon(points[:, 1], points[:, 0], shape)] = True
        return whole
    part = np.zeros(shape, bool)
    for points, is_hole in object_:
        if not is_hole:
            whole |= part
            part = np.zeros(shape, bool)
        part ^= crossed_an_odd_number_of_times(points, shape)
    return whole | part


def crossed_an_odd_number_of_times(points: Ring, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Count, with whole numbers, the edges on the way from each pixel's centre to the left."""
    fine = np.rint(points * PER_PX).astype(np.int64)
    np.testing.assert_array_equal(fine / PER_PX, points)
    y, x = np.indices(shape) * PER_PX + PER_PX // 2
    odd = np.zeros(shape, bool)
    for a, b in zip(fine, np.roll(fine, -1, axis=0), strict=True):
        (xa, ya), (xb, yb) = (a, b) if a[1] <= b[1] else (b, a)
        odd ^= (ya <= y) & (y < yb) & ((x - xa) * (yb - ya) >= (y - ya) * (xb - xa))
    return odd


def random_pixels(generator: np.random.Generator, n: int | None = None) -> Ring:
    spread = generator.choice([2, 8, 40])
    centre = generator.uniform(-8, 48, 2)
    points = centre + generator.normal(0, spread, (n or generator.integers(1, 14), 2))
    return points.astype(np.int32)


def random_points(generator: np.random.Generator) -> Ring:
    per_px = generator.choice([1, 2, PER_PX])  # centres lie on many edges
    centre, spread = generator.uniform(-8, 48, 2), generator.choice([1, 8, 40])
    points = centre + generator.normal(0, spread, (generator.integers(1, 14), 2))
    return np.rint(points * per_px) / per_px


def of_one_ring(generator: np.random.Generator) -> Object:
    return [(random_pixels(generator), False)]


def of_parts(generator: np.random.Generator) -> Object:
    more = range(generator.choice([0, 0, 1, 3]))
    others = [(random_points(generator), bool(generator.random() < 0.6)) for _ in more]
    return [(random_points(generator), False), *others]


both_rules = pytest.mark.parametrize("random_object", [of_one_ring, of_parts])
RandomObject = Callable[[np.random.Generator], Object]


def drawn(
    objects: Sequence[Object], shape: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_], int]:
    image, twice = np.zeros(shape, np.int32), np.zeros(shape, bool)
    visible = np.zeros(len(objects) + 1, np.int64)
    labels = np.arange(1, len(objects) + 1, dtype=np.int32)
    overlapping = kernels.draw_counted(
        flat(*objects), np.arange(len(objects)), labels, (0, 0, *shape), image, visible, twice
    )
    return image, visible, twice, overlapping


def test_thousands_of_polygons_have_the_pixels_of_scikit_image() -> None:
    """Self-crossing ones and those beyond the frame, too."""
    generator = np.random.default_rng(0)
    for _ in range(4_000):
        shape = (int(generator.integers(1, 45)), int(generator.integers(1, 45)))
        ring = random_pixels(generator)
        expected = covered([(ring, False)], shape)
        image, visible, _, overlapping = drawn([[(ring, False)]], shape)
        np.testing.assert_array_equal(image, expected)
        assert (visible[1], overlapping) == (expected.sum(), 0)


coordinate = st.integers(-6, 20)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=9),
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
)
def test_polygons_of_few_pixels(points: list[tuple[int, int]], shape: tuple[int, int]) -> None:
    ring = np.array(points, np.int32)
    np.testing.assert_array_equal(
        drawn([[(ring, False)]], shape)[0], covered([(ring, False)], shape)
    )


def inside(object_: Object, x: Fraction, y: Fraction) -> bool:
    """Decide for one point without any rounding."""
    odd = False
    for points, is_hole in object_:
        if not is_hole:
            if odd:
                return True
            odd = False
        corners = [(Fraction(x), Fraction(y)) for x, y in points.tolist()]
        for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
            odd ^= crossed(a, b, x, y)
    return odd


def crossed(a: Point, b: Point, x: Fraction, y: Fraction) -> bool:
    """Return whether the way from a point to the left crosses an edge."""
    (xa, ya), (xb, yb) = a, b
    return (ya <= y) != (yb <= y) and xa + (y - ya) / (yb - ya) * (xb - xa) <= x


def is_sure(object_: Object, x: Fraction, y: Fraction) -> bool:
    """Return whether a point is not within rounding error of an edge."""
    steps = [(0, 0), (0, -UNSURE), (0, UNSURE), (-UNSURE, 0), (UNSURE, 0)]
    return all(
        len({crossed(a, b, x + dx, y + dy) for dx, dy in steps}) == 1
        for points, _ in object_
        for a, b in pairwise([(Fraction(p), Fraction(q)) for p, q in [*points, points[0]]])
    )


def check_exactly(object_: Object, shape: tuple[int, int]) -> None:
    """Compare all pixels but those within rounding error of an edge."""
    half = Fraction(1, 2)
    found = drawn([object_], shape)[0] > 0
    for y, x in np.ndindex(shape):
        if is_sure(object_, x + half, y + half):
            assert found[y, x] == inside(object_, x + half, y + half), (y, x)


@pytest.mark.parametrize("seed", seeds(150))
def test_edges_that_miss_centres_by_next_to_nothing(seed: int) -> None:
    """Where float64 rounds the crossing, only centres next to it may be wrong."""
    generator = np.random.default_rng(seed)
    reach = 10.0 ** generator.integers(0, 9)
    points = []
    for _ in range(5):
        centre = generator.integers(0, 6, 2) + 0.5
        away = generator.uniform(-reach, reach, 2)
        points += [centre + away, centre - away * generator.choice([1, 0.1, generator.random()])]
    xy = np.array(points)
    if seed % 3 == 0:
        xy = np.nextafter(np.rint(2 * xy) / 2, generator.choice([-np.inf, np.inf], xy.shape))
    check_exactly([(xy[:6], False), (xy[6:], bool(seed % 2))], (6, 6))


anywhere = st.floats(-4, 9, allow_subnormal=False).map(lambda v: v if abs(v) > 1e-100 else 0.0)
a_point = st.one_of(st.integers(-8, 18).map(lambda k: k / 2), anywhere)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.tuples(a_point, a_point), min_size=1, max_size=6), st.booleans()),
        min_size=1,
        max_size=3,
    )
)
def test_objects_of_few_pixels_by_their_centres(
    rings: list[tuple[list[tuple[float, float]], bool]],
) -> None:
    check_exactly([(np.array(p), k > 0 and hole) for k, (p, hole) in enumerate(rings)], (5, 6))


@pytest.mark.parametrize("seed", seeds(30))
def test_triangles_that_share_edges_share_no_pixel_and_leave_none(seed: int) -> None:
    generator = np.random.default_rng(seed)
    shape = (17, 23)
    points = generator.uniform(0, shape[::-1], (25, 2))
    if seed % 2:
        points = np.rint(2 * points) / 2
    corners = np.array([(0, 0), (23, 0), (23, 17), (0, 17)], float)
    points = np.unique(np.concatenate([corners, points]), axis=0)
    triangles = [[(points[t], False)] for t in Delaunay(points).simplices]
    covers = sum((drawn([t], shape)[0] for t in triangles), np.zeros(shape, np.int32))
    assert (covers == 1).all()


def test_a_square_along_the_edges_of_pixels_has_these_pixels() -> None:
    corners = np.array([(0, 0), (10, 0), (10, 10), (0, 10)], float)
    expected = np.zeros((12, 12), bool)
    expected[:10, :10] = True
    for ring in (corners, corners[::-1], np.concatenate([corners, corners[:1]])):
        np.testing.assert_array_equal(drawn([[(ring, False)]], (12, 12))[0] > 0, expected)
    # Upper and left edges through centres belong to it, lower and right ones do not.
    image = drawn([[(corners + 0.5, False)]], (12, 12))[0]
    np.testing.assert_array_equal(image > 0, expected)


@both_rules
@pytest.mark.parametrize("seed", seeds(25))
def test_objects_over_each_other_with_an_account(random_object: RandomObject, seed: int) -> None:
    """Parts, holes, and objects with neither."""
    generator = np.random.default_rng(seed)
    shape = (int(generator.integers(1, 1300)), 40)
    objects: list[Object] = [random_object(generator) for _ in range(12)]
    down = generator.integers(0, shape[0], len(objects))
    objects = [
        [(points + np.array([0, dy], points.dtype), hole) for points, hole in object_]
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


@both_rules
@pytest.mark.parametrize("seed", seeds(25))
def test_a_window_is_cut_out_of_the_whole(random_object: RandomObject, seed: int) -> None:
    generator = np.random.default_rng(seed)
    objects = [random_object(generator) for _ in range(10)]
    whole = drawn(objects, (60, 70))[0]
    y0, x0 = (int(v) for v in generator.integers(0, 50, 2))
    window = np.zeros((int(generator.integers(1, 10)), int(generator.integers(1, 20))), np.int32)
    labels = np.arange(1, 11, dtype=np.int32)
    height, width = window.shape
    box = (y0, x0, y0 + height, x0 + width)
    kernels.draw(flat(*objects), np.arange(10), labels, box, window)
    np.testing.assert_array_equal(window, whole[y0 : y0 + height, x0 : x0 + width])


@both_rules
@pytest.mark.parametrize("seed", seeds(20))
def test_objects_are_drawn_where_nothing_is(seed: int, random_object: RandomObject) -> None:
    generator = np.random.default_rng(seed)
    objects = [random_object(generator) for _ in range(6)]
    shape = (int(generator.integers(1, 45)), int(generator.integers(1, 45)))
    image, expected = np.zeros((2, *shape), np.int32)
    labels = np.arange(1, 7, dtype=np.int32)
    drawn = kernels.draw_where_free(flat(*objects), np.arange(6), labels, image)
    for label, object_, is_drawn in zip(labels, objects, drawn, strict=True):
        own = covered(object_, shape)
        assert is_drawn == (not expected[own].any())
        expected[own & is_drawn] = label
    np.testing.assert_array_equal(image, expected)


def test_far_vertices_do_not_overflow() -> None:
    far = 2**29
    square = np.array([(-far, -far), (far, -far), (far, far), (-far, far)], np.int32)
    assert (drawn([[(square, False)]], (3, 4))[0] == 1).all()
    slanted = np.array([(-far, -far), (far, far), (far, far - 1)], np.int32)
    image = drawn([[(slanted, False)]], (9, 9))[0]
    np.testing.assert_array_equal(image > 0, np.eye(9, dtype=bool))
    assert (drawn([[(square.astype(float), False)]], (3, 4))[0] == 1).all()
    check_exactly([(slanted.astype(float), False)], (9, 9))


def test_boxes() -> None:
    objects: list[Object] = [[(np.array([(3, 4), (1, 9), (2, -2)], np.int32), False)], []]
    assert kernels.bounds(flat(*objects)).tolist() == [[-2, 1, 10, 4], [0, 0, 0, 0]]
    objects = [[(np.array([(3.1, 4), (1, 9), (2, -2.5)]), False)], []]
    assert kernels.bounds(flat(*objects)).tolist() == [[-3, 1, 9, 4], [0, 0, 0, 0]]


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
    assert crosses_itself(np.array(points, dtype=np.float64)) is crosses


def crosses_itself(xy: NDArray[np.float64]) -> bool:
    odd = kernels.odd_shapes(xy, np.array([0, len(xy)]), np.array([0, 1]))
    return bool(odd[0] & kernels.CROSSING)


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


@pytest.mark.parametrize("seed", seeds(40))
def test_crossings_of_short_and_long_outlines(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.choice([4, 7, 30, 90]))
    turn = np.sort(generator.uniform(0, 2 * np.pi, n))
    radius = generator.uniform(9, 10, n)
    xy = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    if seed % 2:
        i, j = generator.choice(n, 2, replace=False)
        xy[[i, j]] = xy[[j, i]]
    assert crosses_itself(xy) is crosses_plainly(xy)


def test_odd_shapes() -> None:
    rings = [[(0, 0), (4, 0), (4, 4)], [(1, 1), (1, 1), (2, 2)], [(0, 0), (4, 4), (4, 0), (0, 4)]]
    xy = np.array([point for ring in rings for point in ring], np.float64)
    found = kernels.odd_shapes(xy, np.array([0, 3, 6, 10]), np.array([0, 1, 3, 3]))
    both = kernels.DEGENERATE | kernels.CROSSING
    assert found.tolist() == [0, both, kernels.DEGENERATE]
