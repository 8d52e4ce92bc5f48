from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.display.decoded_windows import DecodedWindows
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.windowed_labels import Box, TiledLabels
from tests.support.slides import random_pair, tiled
from tests.support.waiting import wait_until

SHAPE = (700, 1100)


@pytest.fixture(scope="module")
def pair() -> LabelPair:
    return random_pair(SHAPE, 400)


@pytest.mark.parametrize("tile_px", [0, 64, 333, 512, 2000])
@pytest.mark.parametrize("step", [1, 2])
def test_windows_are_those_of_the_whole_image(pair: LabelPair, tile_px: int, step: int) -> None:
    index = pair.reference.index
    windows = DecodedWindows(tiled(pair.reference, tile_px), most_bytes=1 << 20)
    rng = np.random.default_rng(1)
    for _ in range(30):
        y0, y1 = np.sort(rng.integers(0, SHAPE[0] + 1, 2)).tolist()
        x0, x1 = np.sort(rng.integers(0, SHAPE[1] + 1, 2)).tolist()
        y0, x0 = y0 - y0 % step, x0 - x0 % step
        found = windows.window((y0, x0, y1, x1), step)
        np.testing.assert_array_equal(found, index[y0:y1:step, x0:x1:step])
        assert found.dtype == np.int32


def test_windows_seen_a_moment_ago_are_not_read_again(pair: LabelPair) -> None:
    read: list[Box] = []
    labels = tiled(pair.reference, 512, on_read=read.append)
    windows = DecodedWindows(labels)
    windows.window((0, 0, 512, 1024))
    assert sorted(read) == [(0, 0, 512, 512), (0, 512, 512, 1024)]
    windows.window((3, 40, 500, 700))
    assert len(read) == 2
    windows.window((600, 600, 601, 601))
    assert read[2:] == [(512, 512, 700, 1024)]


def test_memory_for_windows_is_bounded(pair: LabelPair) -> None:
    read: list[Box] = []
    labels = tiled(pair.reference, 512, on_read=read.append)
    windows = DecodedWindows(labels, most_bytes=512 * 512 * 4)
    for x in (0, 600, 0):
        windows.window((0, x, 10, x + 10))
        assert windows.kept_bytes <= 512 * 512 * 4
    assert len(read) == 3
    # A window larger than what may be kept is right all the same.
    np.testing.assert_array_equal(windows.window((0, 0, *SHAPE)), pair.reference.index)


def test_what_cannot_be_read_is_background_and_told_once(pair: LabelPair) -> None:
    def broken(_box: Box) -> NDArray[np.int32]:
        raise UnreadableFileError("gone")

    told: list[Exception] = []
    whole = tiled(pair.reference)
    labels = TiledLabels(
        whole.shape,
        whole.ids,
        whole.class_index,
        whole.original_ids,
        whole.class_names,
        broken,
        512,
    )
    windows = DecodedWindows(labels, on_failure=told.append)
    assert not windows.window((0, 0, 700, 1100)).any()
    assert [str(error) for error in told] == ["gone"]


def test_a_reader_that_fails_in_its_own_way_holds_nothing_up(pair: LabelPair) -> None:
    told: list[Exception] = []

    def fail(_box: Box) -> None:
        raise ZeroDivisionError("of a reader")

    labels = tiled(pair.reference, 512, on_read=fail)
    windows = DecodedWindows(labels, on_failure=told.append)
    windows.fetch([(1, 0, 0), (1, 0, 1)])
    wait_until(lambda: not windows.is_busy)
    assert not windows.window((0, 0, *SHAPE)).any()
    (error,) = told
    assert isinstance(error, PanopticError)
    assert "ZeroDivisionError('of a reader')" in str(error)


def test_several_windows_are_read_side_by_side(pair: LabelPair) -> None:
    both = Event()
    begun: list[Box] = []

    def wait(box: Box) -> None:
        begun.append(box)
        if len(begun) == 2:
            both.set()
        assert both.wait(10)

    DecodedWindows(tiled(pair.reference, 512, on_read=wait)).window((0, 0, 500, 900))
    assert len(begun) == 2


def test_nobody_is_told_of_windows_that_were_left(pair: LabelPair) -> None:
    begun, may_read, told = Event(), Event(), Event()

    def wait(_box: Box) -> None:
        begun.set()
        may_read.wait(10)

    windows = DecodedWindows(tiled(pair.reference, 64, on_read=wait), on_arrival=told.set)
    box = (0, 0, *SHAPE)
    windows.window_so_far(box)
    assert begun.wait(10)
    windows.leave()
    may_read.set()
    wait_until(lambda: not windows.is_busy)
    assert not told.is_set()
    # Layers that stay when a desk is closed show the objects as before.
    pixels, missing = windows.window_so_far(box)
    assert not missing
    assert np.array_equal(pixels, pair.reference.index)


def test_only_the_latest_wish_is_fetched(pair: LabelPair) -> None:
    read: list[Box] = []
    may_read = Event()

    def wait(box: Box) -> None:
        read.append(box)
        assert may_read.wait(20)

    windows = DecodedWindows(tiled(pair.reference, 128, on_read=wait))
    windows.window_so_far((0, 0, 700, 1100))
    wait_until(lambda: len(read) >= 2)
    index, missing = windows.window_so_far((600, 600, 610, 610))
    assert not index.any()
    assert missing == [(600, 600, 610, 610)]
    may_read.set()
    wait_until(lambda: not windows.is_busy)
    assert len(read) <= 3
    assert read[-1] == (512, 512, 700, 1024)
    index, missing = windows.window_so_far((600, 600, 610, 610))
    assert not missing
    np.testing.assert_array_equal(index, pair.reference.index[600:610, 600:610])


def test_what_is_in_view_is_kept_however_much(pair: LabelPair) -> None:
    windows = DecodedWindows(tiled(pair.reference), most_bytes=1)
    windows.window_so_far((0, 0, *SHAPE))
    wait_until(lambda: not windows.is_busy)
    index, missing = windows.window_so_far((0, 0, *SHAPE))
    assert not missing
    np.testing.assert_array_equal(index, pair.reference.index)
