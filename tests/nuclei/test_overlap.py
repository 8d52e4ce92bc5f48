"""Counting, whole or window by window, beside loops over pixels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_panoptic.kernels import threads as _threads
from napari_panoptic.nuclei import overlap
from napari_panoptic.nuclei.overlap import (
    OverlapCounter,
    OverlapTable,
    SideTable,
    overlap_table,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from tests.support.examples import examples

Labels = NDArray[np.int32]
Mask = NDArray[np.bool_]
seeds = st.integers(0, 2**32 - 1)


def labels_of(rng: np.random.Generator, shape: tuple[int, int], n: int, *, noisy: bool) -> Labels:
    """Draw an image of the numbers 0..n: of any at each pixel, or of rectangles."""
    if noisy:
        return rng.integers(0, n + 1, shape).astype(np.int32)
    image = np.zeros(shape, np.int32)
    for number in range(1, n + 1):
        y, x = rng.integers(0, shape[0] + 1), rng.integers(0, shape[1] + 1)
        image[y : y + rng.integers(1, 9), x : x + rng.integers(1, 20)] = number
    return image


def images_of(
    seed: int, shape: tuple[int, int], *, with_void: bool
) -> tuple[Labels, Labels, Mask | None]:
    rng = np.random.default_rng(seed)
    reference, prediction = (
        labels_of(rng, shape, int(rng.integers(0, 30)), noisy=bool(rng.integers(2))) for _ in "rp"
    )
    void = labels_of(rng, shape, 3, noisy=bool(rng.integers(2))) > 0
    return reference, prediction, void if with_void else None


def side_by_hand(image: Labels, void: Mask, n: int) -> SideTable:
    rows = []
    far = max(image.shape)
    for number in range(1, n + 1):
        y, x = np.nonzero(image == number)
        lost = void[y, x]
        rows.append(
            (
                len(y),
                int(lost.sum()),
                (y.sum(), x.sum()),
                (y[lost].sum(), x[lost].sum()),
                (y.min(), x.min(), y.max() + 1, x.max() + 1) if len(y) else (far, far, 0, 0),
                y[0] * image.shape[1] + x[0] if len(y) else 1 << 40,
            )
        )
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 6
    shapes = [(n,), (n,), (n, 2), (n, 2), (n, 4), (n,)]
    types = [np.int64, np.int64, np.int64, np.int64, np.int32, np.int64]
    return SideTable(
        *(np.array(c, t).reshape(s) for c, t, s in zip(columns, types, shapes, strict=True))
    )


def table_by_hand(
    reference: Labels, prediction: Labels, void: Mask | None, n: tuple[int, int]
) -> OverlapTable:
    mask = np.zeros(reference.shape, bool) if void is None else void
    shared: dict[tuple[int, int], list[int]] = {}
    for r, p, v in zip(reference.ravel(), prediction.ravel(), mask.ravel(), strict=True):
        if r and p:
            counts = shared.setdefault((int(r) - 1, int(p) - 1), [0, 0])
            counts[0] += 1
            counts[1] += int(v)
    pairs = sorted(shared)
    return OverlapTable(
        reference=side_by_hand(reference, mask, n[0]),
        prediction=side_by_hand(prediction, mask, n[1]),
        pair_reference=np.array([r for r, _ in pairs], np.int32),
        pair_prediction=np.array([p for _, p in pairs], np.int32),
        intersection=np.array([shared[pair][0] for pair in pairs], np.int64),
        void_intersection=np.array([shared[pair][1] for pair in pairs], np.int64),
    )


def assert_same(found: OverlapTable, wanted: OverlapTable) -> None:
    for name in ("reference", "prediction"):
        for column in fields(SideTable):
            a, b = (getattr(getattr(t, name), column.name) for t in (found, wanted))
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=f"{name} {column.name}")
    for a, b in zip(astuple(found)[2:], astuple(wanted)[2:], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def side(image: Labels) -> LabelImage:
    ids = np.arange(1, int(image.max(initial=0)) + 1, dtype=np.int64)
    return LabelImage(image, ids, np.ones(len(ids), np.int16), ids, ("A",))


def in_windows(
    images: tuple[Labels, Labels, Mask | None], n: tuple[int, int], rng: np.random.Generator
) -> list[OverlapCounter]:
    """Count windows of any sizes in any order into two counters."""
    reference, prediction, void = images
    height, width = reference.shape
    ys = sorted({0, height, *rng.integers(0, height + 1, 3).tolist()})
    xs = sorted({0, width, *rng.integers(0, width + 1, 3).tolist()})
    windows = [np.s_[y0:y1, x0:x1] for y0, y1 in pairwise(ys) for x0, x1 in pairwise(xs)]
    counters = [OverlapCounter(*n, (height, width)) for _ in range(2)]
    for k in rng.permutation(len(windows)):
        window = windows[k]
        area = None if void is None or not void[window].any() else void[window]
        corner = window[0].start, window[1].start
        counters[rng.integers(2)].add(corner, reference[window], prediction[window], area)
    return counters


@settings(max_examples=examples(100), deadline=None)
@given(seed=seeds, shape=st.tuples(st.integers(1, 40), st.integers(1, 70)), with_void=st.booleans())
def test_counting_against_loops_over_pixels(
    seed: int, shape: tuple[int, int], with_void: bool
) -> None:
    images = images_of(seed, shape, with_void=with_void)
    pair = LabelPair(side(images[0]), side(images[1]), images[2])
    n = len(pair.reference), len(pair.prediction)
    assert_same(overlap_table(pair), table_by_hand(*images, n))


@settings(max_examples=examples(100), deadline=None)
@given(seed=seeds, shape=st.tuples(st.integers(1, 40), st.integers(1, 70)), with_void=st.booleans())
def test_windows_in_any_order_give_the_whole(
    seed: int, shape: tuple[int, int], with_void: bool
) -> None:
    images = images_of(seed, shape, with_void=with_void)
    n = 32, 31  # some of them without a pixel
    counter, other = in_windows(images, n, np.random.default_rng(seed))
    counter.table()  # looking at it between changes nothing
    counter.merge(other)
    assert_same(counter.table(), table_by_hand(*images, n))


@pytest.mark.parametrize("with_void", [False, True])
@pytest.mark.parametrize("n", [60, 2000])  # as many pairs as there can be, and few of these
def test_images_of_several_strips(n: int, with_void: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_STRIP_PX", 1000)
    rng = np.random.default_rng(3)
    reference, prediction = (rng.integers(0, n, (90, 130)).astype(np.int32) for _ in "rp")
    void = rng.random(reference.shape) < 0.3 if with_void else None
    counter = OverlapCounter(n, n, (90, 130))
    for top in range(0, 90, 30):  # pairs are known already when others are added
        strip = np.s_[top : top + 30]
        area = None if void is None else void[strip]
        counter.add((top, 0), reference[strip], prediction[strip], area)
    assert_same(counter.table(), table_by_hand(reference, prediction, void, (n, n)))


@settings(max_examples=examples(100), deadline=None)
@given(seed=seeds, shape=st.tuples(st.integers(1, 40), st.integers(1, 70)), with_void=st.booleans())
def test_subtracting_a_window_leaves_the_rest(
    seed: int, shape: tuple[int, int], with_void: bool
) -> None:
    images = images_of(seed, shape, with_void=with_void)
    rng = np.random.default_rng(seed)
    counter = OverlapCounter(30, 30, shape)
    counter.add((0, 0), *images)
    y0, x0 = (int(rng.integers(0, n)) for n in shape)
    window = np.s_[y0 : y0 + 9, x0 : x0 + 9]
    void = None if images[2] is None else images[2][window]
    counter.add((y0, x0), images[0][window], images[1][window], void, sign=-1)
    found = counter.table()
    for image in images[:2]:
        image[window] = 0
    wanted = table_by_hand(*images, (30, 30))
    for a, b in zip(astuple(found)[2:], astuple(wanted)[2:], strict=True):
        np.testing.assert_array_equal(a, b)
    for own, other in ((found.reference, wanted.reference), (found.prediction, wanted.prediction)):
        for name in ("area", "void_area", "sum_yx", "void_sum_yx"):
            np.testing.assert_array_equal(getattr(own, name), getattr(other, name))


@pytest.mark.parametrize("with_void", [False, True])
def test_two_threads_count_as_one(with_void: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    images = images_of(5, (61, 200), with_void=with_void)
    pair = LabelPair(side(images[0]), side(images[1]), images[2])
    alone = overlap_table(pair)
    monkeypatch.setattr(_threads, "THREADS_FROM_PX", 1)
    monkeypatch.setattr(overlap, "_THREADS_FROM_PX_PER_OBJECT", 1)
    monkeypatch.setattr(overlap, "_THREADS_FROM_PX", 1)
    assert_same(overlap_table(pair), alone)


@pytest.mark.parametrize(("side_px", "n_threads"), [(1500, 1), (2048, 2)])
def test_a_second_thread_is_started_where_it_pays(
    side_px: int, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = np.zeros((side_px, side_px), np.int32)
    image[:9, :9] = 1
    at_work = []
    run = _threads.in_threads

    def in_threads(work: Any, parts: Any) -> Any:
        at_work.append(len(parts))
        return run(work, parts)

    monkeypatch.setattr(overlap, "in_threads", in_threads)
    overlap_table(LabelPair(side(image), side(image), None))
    assert at_work == [n_threads]


def test_counters_of_several_threads() -> None:
    rng = np.random.default_rng(8)
    reference, prediction = (labels_of(rng, (200, 300), 50, noisy=False) for _ in "rp")

    def counted(y: int) -> OverlapCounter:
        counter = OverlapCounter(50, 50, (200, 300))
        counter.add((y, 0), reference[y : y + 50], prediction[y : y + 50])
        return counter

    with ThreadPoolExecutor(max_workers=4) as pool:
        first, *others = pool.map(counted, range(0, 200, 50))
    for other in others:
        first.merge(other)
    assert_same(first.table(), table_by_hand(reference, prediction, None, (50, 50)))


def test_images_that_may_not_be_written_to() -> None:
    images = images_of(11, (20, 30), with_void=True)
    for image in images:
        assert image is not None
        image.flags.writeable = False
    pair = LabelPair(side(images[0]), side(images[1]), images[2])
    n = len(pair.reference), len(pair.prediction)
    assert_same(overlap_table(pair), table_by_hand(*images, n))


def test_a_slide_of_many_pixels_does_not_wrap() -> None:
    # One long line far out: sums beyond 32 bit, in one run and in several windows.
    width = 200_000
    line = np.ones((1, width), np.int32)
    counter = OverlapCounter(1, 1, (1_000_000, 3 * width))
    for k in range(3):
        counter.add((999_999, k * width), line, line, line > 0)
    table = counter.table()
    n = 3 * width
    assert table.intersection.tolist() == table.void_intersection.tolist() == [n]
    assert table.reference.sum_yx.tolist() == [[n * 999_999, n * (n - 1) // 2]]
    assert table.prediction.void_sum_yx.tolist() == [[n * 999_999, n * (n - 1) // 2]]
    assert table.reference.bbox.tolist() == [[999_999, 0, 1_000_000, n]]
    assert table.reference.first_pixel.tolist() == [999_999 * n]


def test_a_number_that_no_object_has_is_refused() -> None:
    counter = OverlapCounter(2, 2, (4, 4))
    line = np.array([[0, 1, 2, 3]], np.int32)
    with pytest.raises(ValueError, match="no object has"):
        counter.add((0, 0), line, line)
