"""No kernel reads or writes outside its arrays, whatever it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.kernels import (
    causes,
    contours,
    counts,
    drawing,
    fill,
    geojson,
    relabel,
    restore,
    trace,
)

IMAGE = np.zeros((3, 20), np.int32)
ONES = np.ones((3, 20), np.int32)
NO_VOID = np.zeros((0, 0), np.uint8)
ROWS = counts.blank_rows(2)
NUMBERS = np.arange(3)
BEYOND = np.array([[0, 0, 4, 4]])
SQUARE: fill.Flat = (
    np.array([[1, 1], [5, 1], [5, 3], [1, 3]], np.float64),
    np.array([0, 4]),
    np.zeros(1, bool),
    np.array([0, 1]),
    True,
)
FIRST = np.zeros(1, np.int64)
LABEL = np.ones(1, np.int32)


def image() -> NDArray[np.int32]:
    return np.zeros((8, 8), np.int32)


@pytest.mark.parametrize(
    ("reference", "void", "rows", "message"),
    [
        (IMAGE.astype(np.int64), NO_VOID, ROWS, "dtype mismatch"),
        (IMAGE[0], NO_VOID, ROWS, "wrong number of dimensions"),
        (IMAGE[:2], NO_VOID, ROWS, "differ in shape"),
        (IMAGE, NO_VOID, np.zeros((2, 3), np.int64), "another length"),
        (IMAGE, np.zeros((3, 19), np.uint8), ROWS, "void has another shape"),
        (IMAGE + 2, NO_VOID, ROWS, "numbers that no object has"),
        (IMAGE - 1, NO_VOID, ROWS, "numbers that no object has"),
    ],
)
def test_windows_that_do_not_fit(
    reference: NDArray[np.int32], void: NDArray[np.uint8], rows: NDArray[np.int64], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        counts.count_window(reference, IMAGE, void, (0, 0), 20, 1, rows, ROWS)


def test_windows_cut_out_of_larger_images_are_counted() -> None:
    rows = [counts.blank_rows(2), counts.blank_rows(2)]
    counts.count_window(ONES[:, ::2], ONES[:, 10:], NO_VOID, (0, 0), 10, 1, *rows)
    assert [int(each[1, counts.AREA]) for each in rows] == [30, 30]


@pytest.mark.parametrize("box", [(0, 0, 4, 4), (0, -1, 2, 4), (0, 19, 2, 21)])
def test_boxes_beyond_the_image(box: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="beyond the image"):
        contours.contours_in_boxes(IMAGE, NO_VOID, np.ones(1, np.int32), np.array([box]))


@pytest.mark.parametrize("start", [[0, 0, 4], [0, -1, 2], [0, 2, 1], [0, 0]])
def test_contours_that_are_not_there(start: list[int]) -> None:
    yx, pairs = np.zeros((3, 2), np.int32), np.zeros((1, 2), np.int64)
    there = np.array([0, 0, 3])
    for starts in ((np.array(start), there), (there, np.array(start))):
        with pytest.raises(ValueError, match=r"not there|outside the coordinates"):
            contours.contour_distances(starts[0], yx, starts[1], yx, pairs, 2_000_000, 95.0)


def features(**sizes: int) -> tuple[Any, ...]:
    """Return the arguments for one feature, with room for what is given."""
    text = b'{"features":[{"coordinates":[[[1,2],[3,4]]]}]}'
    room = {"frame": 99, "batch": 99, "xy": 9, "ring_sizes": 9} | sizes
    return (
        np.frombuffer(text, np.uint8),
        0,
        99,
        np.array([0, 0, 0, 2, 0]),
        np.zeros(room["frame"], np.uint8),
        np.zeros(room["batch"], np.uint8),
        np.zeros((room["xy"], 2)),
        np.zeros(room["ring_sizes"], np.int64),
        np.zeros(4, np.int64),
    )


@pytest.mark.parametrize("small", ["frame", "batch", "xy", "ring_sizes"])
def test_features_that_do_not_fit_into_the_buffers(small: str) -> None:
    geojson.split_features(*features())
    with pytest.raises(ValueError, match="too small"):
        geojson.split_features(*features(**{small: 1 if small != "ring_sizes" else 0}))


def flat(**changes: Any) -> fill.Flat:
    names = ("xy", "ring_starts", "is_hole", "object_starts", "by_vertex")
    fields = dict(zip(names, SQUARE, strict=True)) | changes
    return (
        fields["xy"],
        fields["ring_starts"],
        fields["is_hole"],
        fields["object_starts"],
        fields["by_vertex"],
    )


@pytest.mark.parametrize(
    ("polygons", "message"),
    [
        (flat(ring_starts=np.array([0, 5])), "vertex of a ring is not there"),
        (flat(ring_starts=np.array([-1, 4])), "vertex of a ring is not there"),
        (flat(object_starts=np.array([0, 2])), "ring of an object is not there"),
        (flat(object_starts=np.array([0])), "no such object"),
        (flat(is_hole=np.zeros(0, bool)), "outline or hole"),
        (flat(xy=np.full((4, 2), np.nan)), "too far out"),
        (flat(xy=np.full((4, 2), 1e300)), "too far out"),
    ],
)
@pytest.mark.parametrize("by_vertex", [False, True])
def test_polygons_that_are_not_there(polygons: fill.Flat, message: str, by_vertex: bool) -> None:
    polygons = (*polygons[:4], by_vertex)
    with pytest.raises(ValueError, match=message):
        fill.draw(polygons, FIRST, LABEL, (0, 0, 8, 8), image())
    with pytest.raises(ValueError, match=message):
        fill.have_pixels(polygons, FIRST, (8, 8))


def test_polygons_and_images_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="smaller than the window"):
        fill.draw(SQUARE, FIRST, LABEL, (0, 0, 9, 9), image())
    with pytest.raises(ValueError, match="no label"):
        fill.draw(SQUARE, FIRST, LABEL[:0], (0, 0, 8, 8), image())
    twice, visible = np.zeros((8, 8), bool), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="beyond the image"):
        fill.draw_counted(SQUARE, FIRST, LABEL, (0, 0, 9, 9), image(), visible, twice)
    with pytest.raises(ValueError, match="label has no count"):
        fill.draw_counted(SQUARE, FIRST, LABEL, (0, 0, 8, 8), image(), visible[:1], twice)
    with pytest.raises(ValueError, match="label without a count"):
        fill.draw_counted(SQUARE, FIRST, LABEL, (0, 0, 8, 8), image() + 7, visible, twice)
    with pytest.raises(ValueError, match="vertex of a ring is not there"):
        fill.odd_shapes(SQUARE[0], np.array([0, 9]), SQUARE[3])


def test_tables_without_an_entry() -> None:
    table = np.zeros(2, np.int32)
    for value in (2, -1, 2**31 - 1):
        with pytest.raises(ValueError, match="no entry"):
            relabel.look_up(table, IMAGE + np.int32(value), np.empty_like(IMAGE))
    with pytest.raises(ValueError, match="no entry"):
        relabel.look_up(table[:0], IMAGE, np.empty_like(IMAGE))
    with pytest.raises(ValueError, match="empty"):
        relabel.look_up_ids(IMAGE.view(np.uint32), table[:0], np.empty_like(IMAGE))
    with pytest.raises(ValueError, match="no number"):
        relabel.search_ids(IMAGE.view(np.uint32), NUMBERS, table, np.empty_like(IMAGE))
    with pytest.raises(ValueError, match="differ in shape"):
        relabel.look_up_ids(IMAGE.view(np.uint32), table, np.empty((3, 19), np.int32))


def test_objects_that_no_pair_can_have() -> None:
    one = causes.Objects(np.ones(1, np.int64), *(np.ones(1, bool) for _ in range(3)))
    for rows, columns in (([1], [0]), ([0], [1]), ([-1], [0])):
        pairs = causes.OverlappingPairs(
            np.array(rows, np.int32), np.array(columns, np.int32), np.ones(1, np.int64), np.ones(1)
        )
        with pytest.raises(ValueError, match="object that is not there"):
            causes.causes(pairs, one, one, 0.1)
    with pytest.raises(ValueError, match="no object has"):
        counts.sum_runs(np.full((2, 4), 9, np.int32), 2, 2)
    # The key that stands for the end of a list.
    last = np.full(1, np.iinfo(np.int64).max)
    found = counts.add_pairs(counts.Pairs(last, last, last), counts.no_pairs())
    assert [column.tolist() for column in found] == [last.tolist()] * 3
    with pytest.raises(ValueError, match="differ in length"):
        counts.add_pairs(counts.Pairs(NUMBERS, NUMBERS[:2], NUMBERS), counts.no_pairs())


def test_pictures_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="label without a width"):
        drawing.outlines(ONES, np.ones(1, np.int64))
    picture = np.zeros((3, 20), np.uint8)
    with pytest.raises(ValueError, match="beyond the image"):
        drawing.dash(picture, ONES, np.ones(1, np.int64), BEYOND, 2)
    with pytest.raises(ValueError, match="one code for each box"):
        drawing.paint_ellipses(BEYOND.astype(np.int32), picture[0, :0], 1.0, 0, 0, 0, picture)
    with pytest.raises(ValueError, match="differ in shape"):
        drawing.draw_cell(ONES[:2].astype(np.uint16), ONES, picture.view(bool), True, 1, 1, 1)
    with pytest.raises(ValueError, match="whole numbers"):
        drawing.outline_pixels(np.zeros((3, 3)), 1)


def test_lines_that_do_not_fit() -> None:
    rows, xy = np.arange(3), np.zeros((4, 2), np.float32)
    start, label, one = np.array([0, 4]), np.ones(1, np.int32), np.ones(1, np.float32)
    nearest, far = drawing.nearest_lines(ONES, rows, rows, xy, start, label, one, one)
    for wrong in (rows - 1, rows + 1):
        with pytest.raises(ValueError, match="a row lies outside"):
            drawing.nearest_lines(ONES, wrong, rows, xy, start, label, one, one)
    for wrong in (rows - 1, rows + 18):
        with pytest.raises(ValueError, match="a column lies outside"):
            drawing.nearest_lines(ONES, rows, wrong, xy, start, label, one, one)
    for ends in ([0, 5], [-1, 4], [3, 2]):
        with pytest.raises(ValueError, match="a ring lies outside"):
            drawing.nearest_lines(ONES, rows, rows, xy, np.array(ends), label, one, one)
    with pytest.raises(ValueError, match="one label for each ring"):
        drawing.nearest_lines(ONES, rows, rows, xy, start[:1], label, one, one)
    for widths in ((one[:0], one), (one, one[:0])):
        with pytest.raises(ValueError, match="one width for each ring"):
            drawing.nearest_lines(ONES, rows, rows, xy, start, label, *widths)
    picture, colour = np.zeros((3, 3, 4), np.uint8), np.full((1, 4), 255, np.uint8)
    drawing.paint_lines(picture, nearest, far, one, one, colour)
    with pytest.raises(ValueError, match="four numbers"):
        drawing.paint_lines(picture[..., :3].copy(), nearest, far, one, one, colour)
    with pytest.raises(ValueError, match="one colour for each ring"):
        drawing.paint_lines(picture, nearest, far, one, one, colour[:0])
    with pytest.raises(ValueError, match="differ in shape"):
        drawing.paint_lines(picture, nearest[:2], far, one, one, colour)
    with pytest.raises(ValueError, match="a line that is not there"):
        drawing.paint_lines(picture, nearest + 1, far, one, one, colour)


def test_masks_that_do_not_fit() -> None:
    numbers, last = restore.counted_components(ONES.astype(np.uint8))
    with pytest.raises(ValueError, match="differ in shape"):
        restore.grow(numbers, np.ones((2, 20), np.uint8), last, restore.half_widths(1))
    with pytest.raises(ValueError, match="for each class"):
        restore.grow(numbers, ONES.astype(np.uint8), last[:9], restore.half_widths(1))
    for widths in (FIRST[:0], FIRST - 1):
        with pytest.raises(ValueError, match="disk"):
            restore.shrink(numbers, widths)
    with pytest.raises(ValueError, match="red, green and blue"):
        restore.classify(np.zeros((3, 4, 4), np.uint8), LABEL, LABEL.astype(np.uint8))


def test_rings_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="frame of the image is not 0"):
        trace.walk_borders(ONES, False, False)
    with pytest.raises(ValueError, match="no frame"):
        trace.walk_borders(ONES[:1], False, False)
    xy = np.zeros((3, 2), np.int32)
    for start in ([0, 4], [1, 3], [0, 3, 2]):
        with pytest.raises(ValueError, match="ring"):
            trace.cut_loops(xy, np.array(start), np.full(3, -1))
        with pytest.raises(ValueError, match="ring"):
            trace.name_line_pixels(xy, np.array(start), np.ones(3, np.int64))
        with pytest.raises(ValueError, match="ring"):
            trace.chamfer(xy, np.array(start))
    with pytest.raises(ValueError, match="does not come before it"):
        trace.cut_loops(xy, np.array([0, 3]), np.array([-1, 2, -1]))
    # 2^62 pixels four times are none in 64 bits.
    for steps in (0, 2**62):
        with pytest.raises(ValueError, match="no pixel, or too many"):
            trace.name_line_pixels(np.zeros((4, 2), np.int32), np.array([0, 4]), np.full(4, steps))
