"""A slide that is read in windows has the figures of one that is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.windowed_evaluation import (
    evaluate_tiles,
    evaluate_tiles_again,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import (
    Box,
    TiledArea,
    TiledLabels,
    TiledPair,
)
from tests.support.compare import evaluate_case
from tests.support.examples import examples
from tests.support.label_cases import random_pair

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 40), st.integers(1, 40))
every_settings = st.builds(
    EvaluationSettings,
    matching=st.sampled_from(["strict-iou", "centroid"]),
    iou_threshold=st.sampled_from([0.2, 0.5, 0.7]),
    ambiguous=st.sampled_from(["clip", "clip-predictions", "majority", "keep"]),
    outlines=st.sampled_from(["as-published", "both-clipped", "both-whole"]),
    near_iou=st.sampled_from([0.1, 0.3]),
    zone_px=st.sampled_from([0, 0, 1, 3]),
    distances=st.booleans(),
)
every_settings |= every_settings.filter(lambda own: own.ambiguous != "keep").map(
    lambda own: own.replaced(ambiguous_share=0.25)
)


class Reads:
    """Reads windows of an image that is held, and notes which."""

    def __init__(self, image: np.ndarray) -> None:
        self.image, self.boxes = image, []

    def __call__(self, box: Box) -> Any:
        self.boxes.append(box)
        y0, x0, y1, x1 = box
        assert 0 <= y0 < y1 <= self.image.shape[0]
        assert 0 <= x0 < x1 <= self.image.shape[1]
        return self.image[y0:y1, x0:x1].copy()


def tiled_side(labels: LabelImage, *, tile_px: int = 0, empty_rows: int = 0) -> TiledLabels:
    """Let a label image be read in windows; as many objects more have no pixel."""
    n = len(labels)
    # New rows stand between the others: ids of those are spread to make room.
    rows = np.arange(n) + np.minimum(np.arange(n), empty_rows)
    is_old = np.zeros(n + empty_rows, bool)
    is_old[rows] = True
    ids = np.zeros(n + empty_rows, np.int64)
    ids[is_old] = labels.ids
    class_index = np.ones(n + empty_rows, np.int16)
    class_index[is_old] = labels.class_index
    lookup = np.concatenate([[0], rows + 1]).astype(np.int32)
    return TiledLabels(
        shape=labels.shape,
        ids=ids,
        class_index=class_index,
        original_ids=ids,
        class_names=labels.class_names,
        read=Reads(lookup[labels.index]),
        tile_px=tile_px,
    )


def tiled(pair: LabelPair, *, tile_px: int = 0, empty_rows: int = 0) -> TiledPair:
    area = None if pair.ambiguous is None else TiledArea(pair.reference.shape, void(pair.ambiguous))
    return TiledPair(
        tiled_side(pair.reference, tile_px=tile_px, empty_rows=empty_rows),
        tiled_side(pair.prediction, empty_rows=empty_rows),
        area,
        pair.mpp,
    )


def void(mask: np.ndarray) -> Callable[[Box], Any]:
    reads = Reads(mask)

    def read(box: Box) -> Any:
        window = reads(box)
        return window if window.any() else None

    return read


def some_pair(seed: int, shape: tuple[int, int], *, mpp: float | None = 0.25) -> LabelPair:
    case = random_pair(np.random.default_rng(seed), shape)
    return evaluate_case(case, mpp=mpp, distances=False).pair


def assert_same(found: Evaluation[TiledPair], expected: Evaluation) -> None:
    """To the last digit."""
    pd.testing.assert_frame_equal(found.objects, expected.objects, check_exact=True)
    pd.testing.assert_frame_equal(found.by_class, expected.by_class, check_exact=True)
    pd.testing.assert_frame_equal(found.confusion, expected.confusion)
    np.testing.assert_equal(dict(found.metrics), dict(expected.metrics))
    for side in ("reference", "prediction"):
        np.testing.assert_array_equal(
            getattr(found.outcomes, side).hausdorff95_px,
            getattr(expected.outcomes, side).hausdorff95_px,
        )
        np.testing.assert_array_equal(
            getattr(found.outcomes, side).bbox, getattr(expected.outcomes, side).bbox
        )


@settings(max_examples=examples(70), deadline=None)
@given(
    seed=seeds,
    shape=shapes,
    how=every_settings,
    window_px=st.integers(1, 24),
    tile_px=st.sampled_from([0, 1, 4, 7]),
    empty_rows=st.integers(0, 3),
)
@example(1, (40, 40), EvaluationSettings(), 40, 0, 0)
def test_equals_the_evaluation_of_images_that_are_held(
    seed: int,
    shape: tuple[int, int],
    how: EvaluationSettings,
    window_px: int,
    tile_px: int,
    empty_rows: int,
) -> None:
    pair = some_pair(seed, shape)
    slide = tiled(pair, tile_px=tile_px, empty_rows=min(empty_rows, len(pair.reference)))
    assert_same(evaluate_tiles(slide, how, window_px=window_px), evaluate(pair, how))


@settings(max_examples=examples(30), deadline=None)
@given(seed=seeds, shape=shapes, steps=st.lists(every_settings, min_size=2, max_size=4))
def test_other_settings_on_the_same_slide(
    seed: int, shape: tuple[int, int], steps: list[EvaluationSettings]
) -> None:
    pair = some_pair(seed, shape)
    found = evaluate_tiles(tiled(pair), steps[0], window_px=8)
    expected = evaluate(pair, steps[0])
    for how in steps[1:]:
        found = evaluate_tiles_again(found, how, window_px=8)
        expected = evaluate_again(expected, how)
        assert_same(found, expected)
        np.testing.assert_array_equal(found.distances.keys.shape, expected.distances.keys.shape)


def large_objects() -> LabelPair:
    """Draw a ring as large as the image, small objects in it, and one at its edge."""
    y, x = np.mgrid[:150, :170]
    far = np.hypot(y - 75, x - 85)
    reference = np.where((far > 50) & (far < 60), 1, 0)
    prediction = np.where((far > 48) & (far < 60), 3, 0)
    reference[70:80, 80:90] = 2
    prediction[71:81, 80:90] = 7
    reference[:, :3], prediction[:, :4] = 9, 9
    classes = {1: "a", 2: "b", 3: "a", 7: "a", 9: "b"}
    sides = [LabelImage.from_array(image, classes, ("a", "b")) for image in (reference, prediction)]
    return LabelPair(*sides, ambiguous=(y > 100) & (x < 100), mpp=0.5)


@pytest.mark.parametrize("outlines", ["as-published", "both-clipped", "both-whole"])
@pytest.mark.parametrize("window_px", [5, 16, 64, 400])
def test_objects_larger_than_windows(outlines: str, window_px: int) -> None:
    pair, how = large_objects(), EvaluationSettings(outlines=outlines)
    found = evaluate_tiles(tiled(pair), how, window_px=window_px)
    expected = evaluate(pair, how)
    assert_same(found, expected)
    assert expected.counts.hausdorff_pairs.sum() == 3


def test_every_pixel_is_read_once_without_distances() -> None:
    pair = some_pair(3, (37, 29))
    slide = tiled(pair, tile_px=4)
    evaluate_tiles(slide, EvaluationSettings(distances=False), window_px=9)
    for side in (slide.reference, slide.prediction):
        times = np.zeros(side.shape, int)
        for y0, x0, y1, x1 in side.read.boxes:
            assert y0 % 4 == x0 % 4 == 0
            times[y0:y1, x0:x1] += 1
        assert (times == 1).all()


def test_other_thresholds_and_policies_read_no_pixel() -> None:
    pair = some_pair(5, (40, 40))
    slide = tiled(pair)
    found = evaluate_tiles(slide, EvaluationSettings(ambiguous="keep"), window_px=16)
    n_read = len(slide.reference.read.boxes)
    for how in (
        EvaluationSettings(ambiguous="majority", iou_threshold=0.8),
        EvaluationSettings(ambiguous="clip", distances=False),
    ):
        found = evaluate_tiles_again(found, how)
    assert len(slide.reference.read.boxes) == n_read


def test_objects_without_a_pixel_have_no_row() -> None:
    pair = some_pair(8, (30, 30))
    slide = tiled(pair, empty_rows=1)
    found = evaluate_tiles(slide)
    for side in Side:
        expected = pair.side(side).ids
        assert len(slide.side(side)) == len(expected) + 1
        assert len(found.table.side(side)) == len(expected)
        np.testing.assert_array_equal(found.pair.side(side).ids, expected)
        np.testing.assert_array_equal(found.outcomes.side(side).ids, expected)
        window = found.pair.side(side).read((0, 0, 30, 30))
        np.testing.assert_array_equal(window, pair.side(side).index)


def test_progress_goes_from_nothing_to_all() -> None:
    told: list[tuple[float, str]] = []
    how = EvaluationSettings(matching="centroid")
    evaluate_tiles(
        tiled(large_objects()),
        how,
        window_px=20,
        progress=Progress(report=lambda share, doing: told.append((share, doing))),
    )
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    sayings = list(dict.fromkeys(saying for _, saying in told))
    assert sayings == ["counting overlaps", "matching by centroids", "measuring distances", "done"]


@pytest.mark.parametrize("after", [0, 1, 5, 60])
def test_can_be_stopped_between_windows(after: int) -> None:
    slide, asked = tiled(large_objects()), []

    def is_wanted() -> bool:
        asked.append(None)
        return len(asked) <= after

    with pytest.raises(StoppedError):
        evaluate_tiles(slide, window_px=10, progress=Progress(is_wanted))
    assert len(slide.reference.read.boxes) <= 4 * (after + 1)


def test_errors_of_reading_come_through() -> None:
    pair = tiled(large_objects())

    def read(box: Box) -> Any:
        raise LabelError(f"no window {box}")

    object.__setattr__(pair.prediction, "read", read)
    with pytest.raises(LabelError, match="no window"):
        evaluate_tiles(pair)


def test_an_image_without_a_pixel() -> None:
    labels = LabelImage.empty((0, 5), ("a",))
    found = evaluate_tiles(tiled(LabelPair(labels, labels)))
    assert len(found.objects) == 0
    assert np.isnan(found.metrics.pq)
