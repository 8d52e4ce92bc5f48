from __future__ import annotations

from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.display import slide_layers, styles
from napari_panoptic.display.decoded_windows import DecodedWindows
from napari_panoptic.display.listed import ListedObjects, Others
from napari_panoptic.display.object_layers import HATCH_RIM_PX, emphasis, hatching
from napari_panoptic.display.slide_layers import (
    CLASSES,
    FADED,
    LARGEST_LAST_LEVEL_PX,
    DrawnArea,
    DrawnLevel,
    DrawnSide,
    SideLook,
    apart_colours,
    code_colours,
    selected_rings,
    told_apart,
)
from napari_panoptic.display.styles import ColourBy
from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.windowed_evaluation import evaluate_tiles
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.vocabulary import STATUSES, Side, Status
from napari_panoptic.values.windowed_labels import Box, TiledArea, TiledLabels, TiledPair
from tests.support.slides import random_pair, tiled
from tests.support.waiting import wait_until

SHAPE = (700, 1100)


@pytest.fixture(scope="module")
def pair() -> LabelPair:
    return random_pair(SHAPE, 400)


@pytest.fixture(scope="module")
def outcomes(pair: LabelPair) -> Outcomes:
    return evaluate(pair).outcomes


def drawn_side(pair: LabelPair, outcomes: Outcomes, side: Side = Side.REFERENCE) -> DrawnSide:
    labels = pair.reference if side is Side.REFERENCE else pair.prediction
    return DrawnSide(tiled(labels), outcomes.side(side))


def settled(drawn: DrawnSide | DrawnArea, level: DrawnLevel) -> NDArray[np.uint8]:
    """Ask for all of a level, and once more when it has been read."""
    np.asarray(level)
    wait_until(lambda: not drawn.windows.is_busy)
    return np.asarray(level)


def test_levels_end_small() -> None:
    labels = TiledLabels(
        (30_000, 40_001),
        np.zeros(0, np.int64),
        np.zeros(0, np.int16),
        np.zeros(0, np.int64),
        ("a",),
        lambda box: np.zeros((box[2] - box[0], box[3] - box[1]), np.int32),
    )
    nothing = evaluate(random_pair((20, 20), 0)).outcomes
    levels = DrawnSide(labels, nothing.reference).levels
    assert [level.shape for level in levels[:3]] == [(30000, 40001), (15000, 20001), (7500, 10001)]
    assert max(levels[-1].shape) <= LARGEST_LAST_LEVEL_PX < max(levels[-2].shape)
    assert not levels[-1][...].any()


@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("colour_by", list(ColourBy))
def test_near_levels_show_every_pixel_of_every_object(
    pair: LabelPair, outcomes: Outcomes, width: int, colour_by: ColourBy
) -> None:
    for side, labels in ((Side.REFERENCE, pair.reference), (Side.PREDICTION, pair.prediction)):
        drawn = drawn_side(pair, outcomes, side)
        drawn.look = SideLook(drawn.codes(colour_by, None), (width, width))
        own = outcomes.side(side)
        of_row = own.status + 1 if colour_by is ColourBy.STATUS else own.class_index + CLASSES
        for level in (0, 1):
            index = labels.index[:: 1 << level, :: 1 << level]
            rims = outline_pixels(np.ascontiguousarray(index), width) if width else index
            expected = np.concatenate([[0], of_row])[rims]
            np.testing.assert_array_equal(settled(drawn, drawn.levels[level]), expected)
            part = np.s_[100:300, 17:-40]
            if width == 0:  # outlines end at a window
                np.testing.assert_array_equal(drawn.levels[level][part], expected[part])


def test_a_level_is_indexed_as_an_array(pair: LabelPair, outcomes: Outcomes) -> None:
    drawn = drawn_side(pair, outcomes)
    drawn.look = SideLook(drawn.codes(ColourBy.STATUS, None), (0, 0))
    level = drawn.levels[0]
    whole = settled(drawn, level)
    assert isinstance(level, DrawnLevel)
    assert (level.shape, level.ndim, level.size, len(level)) == (SHAPE, 2, 700 * 1100, 700)
    assert (level.dtype, level.chunks) == (np.uint8, (512, 512))
    for key in (np.s_[5], np.s_[5, -1], np.s_[..., 3], np.s_[10:600:7, 100:20:-3], np.s_[3:3]):
        np.testing.assert_array_equal(level[key], whole[key])
    with pytest.raises(IndexError):
        level[0, 0, 0]
    with pytest.raises(ValueError, match="copy"):
        level.__array__(copy=False)


def test_objects_are_ellipses_until_their_pixels_are_there(
    pair: LabelPair, outcomes: Outcomes
) -> None:
    may_read, told = Event(), Event()
    labels = tiled(pair.reference, 512, on_read=lambda _box: may_read.wait(20))
    drawn = DrawnSide(labels, outcomes.reference, on_arrival=told.set)
    drawn.look = SideLook(drawn.codes(ColourBy.STATUS, None), (0, 0))
    rough = np.asarray(drawn.levels[0])
    expected = np.zeros(SHAPE, np.uint8)
    own = outcomes.reference
    for row in sorted(range(len(own)), key=lambda row: (_rank(own.status[row]), row)):
        for y, x in _ellipse(own.bbox[row].astype(float), SHAPE):
            expected[y, x] = own.status[row] + 1
    np.testing.assert_array_equal(rough, expected)
    assert drawn.windows.is_busy
    may_read.set()
    assert told.wait(20)
    index = pair.reference.index
    exact = np.concatenate([[0], own.status + 1])[index]
    np.testing.assert_array_equal(np.asarray(drawn.levels[0]), exact)
    # Outlines of ellipses have the same outer edge as filled ones.
    drawn.look = SideLook(drawn.look.codes, (2, 2))
    drawn.windows = DecodedWindows(tiled(pair.reference, 512, on_read=lambda _: may_read.wait(20)))
    may_read.clear()
    rims = np.asarray(drawn.levels[0])
    assert 0 < np.count_nonzero(rims) < np.count_nonzero(rough)
    assert not rims[rough == 0].any()
    may_read.set()


def test_from_afar_objects_are_ellipses_in_their_boxes(pair: LabelPair, outcomes: Outcomes) -> None:
    drawn = drawn_side(pair, outcomes)
    drawn.look = SideLook(drawn.codes(ColourBy.STATUS, None), (1, 1))
    read: list[Box] = []
    drawn.windows = DecodedWindows(tiled(pair.reference, on_read=read.append))
    own = outcomes.reference
    order = sorted(range(len(own)), key=lambda row: (_rank(own.status[row]), row))
    for level, factor in ((2, 4.0), (4, 16.0)):
        height, width = -(-SHAPE[0] // int(factor)), -(-SHAPE[1] // int(factor))
        expected = np.zeros((height, width), np.uint8)
        for row in order:
            for y, x in _ellipse(own.bbox[row] / factor, (height, width)):
                expected[y, x] = own.status[row] + 1
        found = drawn._drawn(level, 0, 0, height, width)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(drawn._drawn(level, 20, 7, 11, 30), expected[20:31, 7:37])
    assert not read


def _rank(status: int) -> int:
    if STATUSES[status] in styles.FAILURES:
        return 2
    return 0 if STATUSES[status] is Status.IGNORED else 1


def _ellipse(box: NDArray[np.float64], shape: tuple[int, int]) -> list[tuple[int, int]]:
    """The slow way: every pixel whose middle lies inside, and the one in the middle."""
    y0, x0, y1, x1 = box
    cy, cx, ry, rx = (y0 + y1) / 2, (x0 + x1) / 2, (y1 - y0) / 2, (x1 - x0) / 2
    inside = [
        (y, x)
        for y in range(max(int(y0) - 1, 0), min(int(y1) + 2, shape[0]))
        for x in range(max(int(x0) - 1, 0), min(int(x1) + 2, shape[1]))
        if ((y + 0.5 - cy) * rx) ** 2 + ((x + 0.5 - cx) * ry) ** 2 <= (rx * ry) ** 2
    ]
    return [*inside, (int(cy), int(cx))]


def test_the_last_level_is_drawn_once_for_a_look(pair: LabelPair, outcomes: Outcomes) -> None:
    drawn = drawn_side(pair, outcomes)
    codes = drawn.codes(ColourBy.STATUS, None)
    drawn.look = SideLook(codes, (1, 1))
    last = drawn.levels[-1]
    assert np.shares_memory(last[...], last[...])
    first = last[...].copy()
    drawn.look = SideLook(np.minimum(codes, 1), (1, 1))
    assert last[...].max() == 1
    assert first.max() > 1


def test_objects_that_are_not_listed_step_back(pair: LabelPair, outcomes: Outcomes) -> None:
    drawn = drawn_side(pair, outcomes)
    ids = outcomes.reference.ids[::2]
    plain = drawn.codes(ColourBy.STATUS, None)
    listed = {
        others: ListedObjects({Side.REFERENCE: ids, Side.PREDICTION: ids}, others)
        for others in Others
    }
    np.testing.assert_array_equal(drawn.codes(ColourBy.STATUS, listed[Others.SHOWN]), plain)
    dimmed = drawn.codes(ColourBy.STATUS, listed[Others.DIMMED])
    np.testing.assert_array_equal(dimmed[1::2], plain[1::2])
    np.testing.assert_array_equal(dimmed[2::2], plain[2::2] + FADED)
    hidden = drawn.codes(ColourBy.STATUS, listed[Others.HIDDEN])
    assert not hidden[2::2].any()
    colours = code_colours(MONUSAC_CLASSES)
    assert (colours[dimmed[2::2], 3] < colours[plain[2::2], 3]).all()
    drawn.look = SideLook(hidden, (0, 0))
    y, x = np.argwhere(pair.reference.index == 2)[0].tolist()
    assert drawn.row_at(y, x) is None
    drawn.look = SideLook(plain, (0, 0))
    assert drawn.row_at(y, x) == 1


def test_objects_without_pixels_shift_no_rows(pair: LabelPair) -> None:
    """Objects of a slide may have no pixel; an evaluation leaves them out."""
    own = pair.reference
    gone = 3  # the object of this row
    index = np.where(own.index == gone + 1, 0, own.index)
    whole = LabelImage(index, own.ids, own.class_index, own.original_ids, own.class_names)
    found = evaluate_tiles(TiledPair(tiled(whole), tiled(pair.prediction)))
    outcomes = found.outcomes
    drawn = DrawnSide(found.pair.reference, outcomes.reference)
    drawn.look = SideLook(drawn.codes(ColourBy.CLASS, None), (0, 0))
    np.testing.assert_array_equal(
        settled(drawn, drawn.levels[0]), np.concatenate([[0], own.class_index + CLASSES])[index]
    )
    for label in (1, 2, 3, 5, 9):
        y, x = np.argwhere(index == label)[0].tolist()
        row = drawn.row_at(y, x)
        assert row is not None
        assert outcomes.reference.ids[row] == own.ids[label - 1]
    assert drawn.row_at(*np.argwhere(index == 0)[0].tolist()) is None


def test_rings_are_those_of_the_whole_image(pair: LabelPair, outcomes: Outcomes) -> None:
    sides = {side: drawn_side(pair, outcomes, side) for side in Side}
    for side, across in ((Side.REFERENCE, Side.PREDICTION), (Side.PREDICTION, Side.REFERENCE)):
        labels = {Side.REFERENCE: pair.reference, Side.PREDICTION: pair.prediction}
        own = outcomes.side(side)
        partners = set()
        for row in range(0, len(own), 7):
            partner = int(own.partner[row])
            partners.add(partner >= 0)
            beside = labels[across], partner, outcomes.side(across).bbox[partner]
            expected = emphasis(
                (labels[side], row, own.bbox[row]), beside if partner >= 0 else None, ring_px=2
            )
            found, _ = selected_rings(sides[side], row, sides[across], ring_px=2)
            np.testing.assert_array_equal(found.image, expected.image)
            assert found.origin_yx_px == expected.origin_yx_px
        assert partners == {True, False}


def excluded() -> NDArray[np.bool_]:
    mask = np.zeros(SHAPE, bool)
    mask[100:300, 200:520] = True
    mask[650:, 900:] = True
    mask[400, 700] = True
    return mask


def area_of(mask: NDArray[np.bool_], *, may_read: Event | None = None) -> TiledArea:
    def read(box: Box) -> NDArray[np.bool_] | None:
        if may_read is not None:
            assert may_read.wait(20)
        y0, x0, y1, x1 = box
        part = mask[y0:y1, x0:x1]
        return part.copy() if part.any() else None

    return TiledArea(mask.shape, read)


def test_an_excluded_area_is_hatched_as_that_of_a_region() -> None:
    mask = excluded()
    drawn = DrawnArea(area_of(mask))
    whole = settled(drawn, drawn.levels[0])
    np.testing.assert_array_equal(whole, hatching(mask))
    np.testing.assert_array_equal(settled(drawn, drawn.levels[1]), hatching(mask[::2, ::2]))
    # Window by window lines go on; an outline is right but for what lies beyond the window.
    inner = slice(HATCH_RIM_PX, -HATCH_RIM_PX)
    for y, x in ((50, 130), (211, 333), (560, 900)):
        part = drawn.picture(0, y, x, 140, 200)
        np.testing.assert_array_equal(
            part[inner, inner], whole[y : y + 140, x : x + 200][inner, inner]
        )
    wait_until(lambda: not drawn.is_busy)


def test_from_afar_no_part_of_an_excluded_area_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slide_layers, "LARGEST_LAST_LEVEL_PX", 100)
    monkeypatch.setattr(slide_layers, "OVERVIEW_WINDOW_PX", 64)
    mask, told = excluded(), Event()
    drawn = DrawnArea(area_of(mask), on_arrival=told.set)
    assert told.wait(20)
    wait_until(lambda: not drawn.is_busy)
    level = len(drawn.levels) - 1
    step = 1 << (level - slide_layers.FINER_BY)
    assert level > slide_layers.FINER_BY
    rows, columns = (-(-edge // step) for edge in SHAPE)
    touched = np.array(
        [
            [
                mask[y * step : (y + 1) * step, x * step : (x + 1) * step].any()
                for x in range(columns)
            ]
            for y in range(rows)
        ]
    )
    np.testing.assert_array_equal(drawn._from_afar(step, 0, 0, rows, columns), touched)
    coarse = drawn._from_afar(1 << level, 0, 0, *drawn.levels[level].shape)
    expected = hatching(coarse, rim_px=slide_layers.FAR_RIM_PX)
    np.testing.assert_array_equal(drawn.levels[level][...], expected)


def test_until_its_pixels_are_there_an_area_is_drawn_from_afar() -> None:
    may_read = Event()
    drawn = DrawnArea(area_of(excluded(), may_read=may_read))
    assert not drawn.picture(0, 0, 0, *SHAPE).any()
    assert drawn.is_busy
    may_read.set()
    wait_until(lambda: not drawn.is_busy)
    np.testing.assert_array_equal(drawn.picture(0, 0, 0, *SHAPE), hatching(excluded()))


def test_an_area_that_cannot_be_read_is_told_of() -> None:
    told: list[Exception] = []

    def read(_box: Box) -> None:
        raise UnreadableFileError("gone")

    drawn = DrawnArea(TiledArea(SHAPE, read), on_failure=told.append)
    wait_until(lambda: not drawn.is_busy)
    assert [str(error) for error in told] == ["gone"]
    assert not drawn.levels[-1][...].any()


def test_objects_that_touch_are_told_apart_and_keep_their_colours() -> None:
    codes, index = np.array([[3, 3, 0], [9, 131, 3]], np.uint8), np.array([[7, 8, 0], [9, 10, 262]])
    apart = told_apart(codes, index)
    assert apart.dtype == np.uint16
    assert apart[0, 0] != apart[0, 1]
    assert apart[0, 2] == 0
    scheme = MONUSAC_CLASSES
    np.testing.assert_array_equal(apart_colours(scheme)[apart], code_colours(scheme)[codes])
