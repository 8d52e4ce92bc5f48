from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage
from skimage.draw import polygon

from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons import trace
from napari_panoptic.io.formats.polygons.imagescope import (
    traced_outlines,
    write_annotation,
)
from napari_panoptic.io.formats.polygons.model import PixelRule, Polygons
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.io.formats.polygons.trace import (
    Part,
    TracedOutlines,
    imagescope_vertices,
    joined,
    pixel_outlines,
)
from napari_panoptic.kernels.fill import draw
from napari_panoptic.values.cohort import MONUSAC_CLASSES, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import seeds
from tests.support.outlines import read_outlines

Ring = NDArray[np.int32]


def drawn(text: str) -> NDArray[np.int32]:
    """Read an image from lines of digits; a dot is background."""
    rows = [[0 if mark == "." else int(mark) for mark in line] for line in text.split()]
    return np.array(rows, np.int32)


def every_image(height: int, width: int) -> list[NDArray[np.int32]]:
    """Give every binary image of a size."""
    codes = np.arange(2 ** (height * width))[:, None]
    bits = (codes >> np.arange(height * width)) & 1
    return list(bits.astype(np.int32).reshape(-1, height, width))


def random_labels(seed: int) -> NDArray[np.int32]:
    """Draw smooth blobs or noise: objects with holes, several parts, thin and touching ones."""
    generator = np.random.default_rng(seed)
    height, width = generator.integers(1, 70, 2)
    if seed % 2:
        return generator.integers(0, 4, (height, width)).astype(np.int32)
    smooth = ndimage.gaussian_filter(generator.random((height, width)), 1.2)
    owner = generator.integers(1, 6, (height // 9 + 1, width // 9 + 1))
    cells = np.kron(owner, np.ones((9, 9), int))[:height, :width]
    return np.where(smooth > 0.5, cells, 0).astype(np.int32)


def filled_by_rings(rings: list[Ring], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Fill by the even-odd rule; pixel centres lie half a pixel from the corners."""
    mask = np.zeros(shape, bool)
    for ring in rings:
        mask[polygon(ring[:, 1] - 0.5, ring[:, 0] - 0.5, shape)] ^= True
    return mask


def filled_by_reader(vertices: Ring, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, np.int32)
    if len(vertices):
        ring = Polygons.of_rings(
            [vertices.astype(np.float64)], np.ones(1, np.int16), PixelRule.VERTEX
        )
        draw(ring.flat, np.zeros(1, int), np.ones(1, np.int32), (0, 0, *shape), mask)
    return mask > 0


def filled_by_scikit_image(vertices: Ring, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, bool)
    if len(vertices):
        mask[polygon(vertices[:, 1], vertices[:, 0], shape)] = True
    return mask


def signed_area(ring: Ring) -> float:
    x, y = ring.T.astype(float)
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def rings_of(part: Part) -> list[Ring]:
    return [part.exterior, *part.holes]


def check_parts(outlines: TracedOutlines, row: int, mask: NDArray[np.bool_]) -> None:
    parts = outlines.of(row)
    pieces, count = ndimage.label(mask)
    assert len(parts) == count
    seen = set()
    for part in parts:
        assert signed_area(part.exterior) > 0
        assert all(signed_area(hole) < 0 for hole in part.holes)
        piece = filled_by_rings(rings_of(part), mask.shape)
        numbers = np.unique(pieces[piece])
        # The part with its own holes is one connected piece of the object.
        assert len(numbers) == 1
        assert np.array_equal(piece, pieces == numbers[0])
        seen.add(int(numbers[0]))
        for ring in rings_of(part):
            assert len(np.unique(ring, axis=0)) == len(ring) >= 4
            steps = np.diff(ring, axis=0, append=ring[:1])
            assert ((steps != 0).sum(axis=1) == 1).all()
            assert all((a != 0).tolist() != (b != 0).tolist() for a, b in pairwise(steps))
    assert len(seen) == count


# Along pixel edges


def test_a_pixel_is_a_square() -> None:
    (part,) = pixel_outlines(drawn("... .1."), 1).of(0)
    assert (
        part.exterior.tolist()
        in np.array(
            [np.roll([[1, 1], [2, 1], [2, 2], [1, 2]], shift, axis=0) for shift in range(4)]
        ).tolist()
    )
    assert part.holes == ()


def test_a_ring_has_a_hole() -> None:
    (part,) = pixel_outlines(drawn("111 1.1 111"), 1).of(0)
    assert signed_area(part.exterior) == 9
    assert [signed_area(hole) for hole in part.holes] == [-1]


def test_pixels_that_touch_by_a_corner_are_parts() -> None:
    parts = pixel_outlines(drawn("1. .1"), 1).of(0)
    assert [signed_area(part.exterior) for part in parts] == [1, 1]


def test_a_bay_closed_by_a_corner_is_a_hole() -> None:
    (part,) = pixel_outlines(drawn(".11 1.1 111"), 1).of(0)
    assert signed_area(part.exterior) == 8
    assert [signed_area(hole) for hole in part.holes] == [-1]


def test_a_part_within_the_hole_of_another_keeps_its_own_holes() -> None:
    image = drawn("1111111 1.....1 1.111.1 1.1.1.1 1.111.1 1.....1 1111111")
    parts = pixel_outlines(image, 1).of(0)
    areas = sorted((signed_area(p.exterior), [signed_area(h) for h in p.holes]) for p in parts)
    assert areas == [(9.0, [-1.0]), (49.0, [-25.0])]


def test_objects_that_touch_share_the_border() -> None:
    outlines = pixel_outlines(drawn("1122 1122"), 2)
    assert len(outlines) == 2
    assert signed_area(outlines.of(0)[0].exterior) == signed_area(outlines.of(1)[0].exterior) == 4


def test_an_object_without_a_pixel_has_no_part() -> None:
    outlines = pixel_outlines(drawn("1.3"), 4)
    assert [len(outlines.of(row)) for row in range(4)] == [1, 0, 1, 0]
    assert pixel_outlines(np.zeros((0, 0), np.int32), 0).vertices_xy.shape == (0, 2)


def test_every_small_image_along_pixel_edges() -> None:
    for image in chain(every_image(3, 3), every_image(2, 4)):
        mask = image > 0
        outlines = pixel_outlines(image, 1)
        assert np.array_equal(filled_by_rings(outlines.rings_of(0), mask.shape), mask)
        check_parts(outlines, 0, mask)


@pytest.mark.parametrize("seed", seeds(30))
def test_random_labels_along_pixel_edges(seed: int) -> None:
    labels = random_labels(seed)
    before = labels.copy()
    n = int(labels.max())
    outlines = pixel_outlines(labels, n)
    assert np.array_equal(labels, before)
    for row in range(n):
        mask = labels == row + 1
        assert np.array_equal(filled_by_rings(outlines.rings_of(row), mask.shape), mask)
        check_parts(outlines, row, mask)


# As ImageScope vertices


def test_straight_stretches_have_no_vertices_between_their_ends() -> None:
    (square,) = imagescope_vertices(drawn("1111 1111 1111"), 1)
    assert sorted(square.tolist()) == [[0, 0], [0, 2], [3, 0], [3, 2]]


def test_every_small_image_comes_back_from_imagescope_vertices() -> None:
    for image in chain(every_image(3, 3), every_image(2, 4)):
        (vertices,) = imagescope_vertices(image, 1)
        assert np.array_equal(filled_by_reader(vertices, image.shape), image > 0)


@pytest.mark.parametrize("seed", seeds(30))
def test_random_labels_come_back_from_imagescope_vertices(seed: int) -> None:
    labels = random_labels(seed)
    n = int(labels.max())
    for number, vertices in enumerate(imagescope_vertices(labels, n), start=1):
        mask = labels == number
        assert np.array_equal(filled_by_reader(vertices, mask.shape), mask)
        assert np.array_equal(filled_by_scikit_image(vertices, mask.shape), mask)


def test_many_holes_are_bridged_without_looking_at_all_vertices_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """6,400 holes took 76 s: each was compared with the whole line before it."""
    looked = 0
    cells_around = trace._cells_around

    def counted(*at: int) -> Iterator[tuple[int, int]]:
        nonlocal looked
        for cell in cells_around(*at):
            looked += 1
            yield cell

    monkeypatch.setattr(trace, "_cells_around", counted)
    cells = {}
    for n in (10, 20):
        yy, xx = np.mgrid[:24, :24]
        area = np.tile((yy - 12) ** 2 + (xx - 12) ** 2 >= 64, (n, n)).astype(np.int32)
        (vertices,) = imagescope_vertices(area, 1)
        assert np.array_equal(filled_by_reader(vertices, area.shape), area > 0)
        cells[n], looked = looked, 0
    assert cells[20] < 5 * cells[10]


def test_parts_that_are_far_apart_are_joined_without_searching_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are more cells between two parts than vertices."""
    looked = []
    cells_around = trace._cells_around
    monkeypatch.setattr(trace, "_cells_around", lambda *at: looked.append(at) or cells_around(*at))
    corners = np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.int32)
    places = np.array([[0, 0], [100_000, 50_000], [100_000, 0]], np.int32)
    line = joined([np.add(corners, place) for place in places])
    steps = np.abs(np.diff(line, axis=0)).max(axis=1)
    assert np.count_nonzero(steps > 9) == 4  # two bridges, forth and back
    assert len(looked) < 10
    expected = {tuple(xy) for place in places for xy in (corners + place).tolist()}
    assert {tuple(xy) for xy in line.tolist()} == expected


def test_holes_of_many_parts_are_not_compared_with_every_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1,600 rings took 37 s: each hole was compared with all parts that are smaller."""
    compared = []
    contains = trace.contains
    monkeypatch.setattr(trace, "contains", lambda *of: compared.append(of) or contains(*of))
    yy, xx = np.mgrid[:24, :24]
    squares = (yy - 12) ** 2 + (xx - 12) ** 2
    rings = np.tile((squares < 100) & (squares > 9), (10, 10)).astype(np.int32)
    parts = pixel_outlines(rings, 1).of(0)
    assert [len(part.holes) for part in parts] == [1] * 100
    for part in parts:
        (hole,) = part.holes
        assert (hole.min(axis=0) > part.exterior.min(axis=0)).all()
        assert (hole.max(axis=0) < part.exterior.max(axis=0)).all()
    assert len(compared) == 100


def written(labels: LabelImage, ambiguous: NDArray[np.bool_]) -> Objects:
    return Objects(labels, Side.REFERENCE, "r1", "", ambiguous, MONUSAC_CLASSES, None)


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_annotation_comes_back_from_its_file(tmp_path: Path, seed: int) -> None:
    labels = random_labels(2 * seed)
    generator = np.random.default_rng(seed)
    ids = 3 + 2 * np.arange(int(labels.max()) + 1)
    ids[0] = 0
    classes = {int(i): str(generator.choice(MONUSAC_CLASSES.names)) for i in ids[1:]}
    image = LabelImage.from_array(ids[labels], classes, MONUSAC_CLASSES.names)
    ambiguous = ndimage.gaussian_filter(generator.random(labels.shape), 2) > 0.52
    path = tmp_path / "annotation.xml"
    write_annotation(path, traced_outlines(written(image, ambiguous)), mpp=0.25)
    polygons = read_outlines(Source.IMAGESCOPE, path).polygons
    again = rasterize_polygons(polygons, image.shape, MONUSAC_CLASSES).held()

    assert np.array_equal(again.labels.index, image.index)
    assert np.array_equal(again.labels.class_index, image.class_index)
    assert again.labels.vanished == ()
    assert again.labels.overlapping_px == 0
    found = np.zeros(image.shape, bool) if again.ambiguous is None else again.ambiguous
    assert np.array_equal(found, ambiguous)


def test_outlines_keep_the_order_and_ambiguous_pieces_come_last() -> None:
    image = LabelImage.from_array(
        drawn("77.3 77.."), {7: "Lymphocyte", 3: "Epithelial"}, MONUSAC_CLASSES.names
    )
    outlines = traced_outlines(written(image, drawn("..11 1...") > 0))
    names = ["Epithelial", "Lymphocyte", "Ambiguous", "Ambiguous"]
    assert [name for name, _ in outlines] == names
