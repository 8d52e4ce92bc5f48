from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from napari_panoptic import evaluate_pair
from napari_panoptic.common.errors import LabelError
from napari_panoptic.values.labels import LabelImage, LabelPair, compact

CLASSES = ("A", "B")


def image(*rows: str) -> np.ndarray:
    return np.array([[int(c) for c in row] for row in rows], np.int32)


def test_ids_are_kept_where_no_class_repeats_them() -> None:
    labels = LabelImage.from_class_masks(
        {"A": image("5500", "0000"), "B": image("0000", "0022")}, CLASSES, (2, 4)
    )
    assert labels.ids.tolist() == [2, 5]
    assert labels.class_names_of_objects().tolist() == ["B", "A"]
    np.testing.assert_array_equal(labels.id_image(), image("5500", "0022"))


def test_repeated_ids_are_numbered_anew_class_by_class() -> None:
    labels = LabelImage.from_class_masks(
        {"A": image("1100", "0003"), "B": image("0011", "2000")}, CLASSES, (2, 4)
    )
    assert labels.ids.tolist() == [1, 2, 3, 4]
    assert labels.original_ids.tolist() == [1, 3, 1, 2]
    assert labels.class_names_of_objects().tolist() == ["A", "A", "B", "B"]
    np.testing.assert_array_equal(labels.id_image(), image("1133", "4002"))


def test_a_later_class_overwrites_and_what_vanishes_is_told() -> None:
    labels = LabelImage.from_class_masks({"A": image("1120"), "B": image("0330")}, CLASSES, (1, 4))
    np.testing.assert_array_equal(labels.id_image(), image("1330"))
    assert labels.ids.tolist() == [1, 3]
    assert [(v.id, v.class_name, v.reason) for v in labels.vanished] == [
        (2, "A", "covered by another class")
    ]
    assert labels.overlapping_px == 2


def test_compact_handles_huge_ids() -> None:
    index, ids = compact(np.array([[0, 2**40, 7], [7, 0, 2**62]]))
    assert ids.tolist() == [7, 2**40, 2**62]
    np.testing.assert_array_equal(index, [[0, 2, 1], [1, 0, 3]])


@given(st.data(), st.integers(0, 5), st.integers(0, 5))
def test_compact_numbers_any_ids_in_their_order(
    data: st.DataObject, height: int, width: int
) -> None:
    own = st.sampled_from([0, 1, 7, 70_000, 2**31 - 2, 2**40, 2**62])
    values = data.draw(arrays(np.int64, (height, width), elements=own))
    index, ids = compact(values)
    assert ids.tolist() == sorted(set(values.ravel().tolist()) - {0})
    assert index.dtype == np.int32
    np.testing.assert_array_equal(np.append(0, ids)[index], values)


def test_compact_without_background() -> None:
    index, ids = compact(np.array([[2**40, 2**41]]))
    assert ids.tolist() == [2**40, 2**41]
    np.testing.assert_array_equal(index, [[1, 2]])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2), int), r"2-D array \(y, x\), found shape \(2, 2, 2\)"),
        (np.zeros((2, 2)), "whole numbers, found type float64"),
        (np.array([[-4, 0]]), "negative ids, found -4"),
        (np.array([[2**63 + 1]], np.uint64), "above 2\\^63"),
        (np.array([[3, 4]]), "there is none for 4"),
    ],
)
def test_what_is_no_label_image_is_refused_in_words(array: np.ndarray, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        evaluate_pair(array, array, reference_classes={3: "A"}, prediction_classes={3: "A"})


def test_unknown_class() -> None:
    with pytest.raises(LabelError, match="unknown class C in the prediction; known are A and B"):
        evaluate_pair(
            [[1]],
            [[1]],
            reference_classes={1: "A"},
            prediction_classes={1: "C"},
            class_names=CLASSES,
        )


def test_sizes_must_agree() -> None:
    with pytest.raises(LabelError, match="size of 3 x 2 px, found 2 x 3 px"):
        evaluate_pair(
            np.zeros((2, 3), int),
            np.zeros((3, 2), int),
            reference_classes={},
            prediction_classes={},
        )
    with pytest.raises(LabelError, match="ambiguous mask must have the reference's size"):
        LabelPair(
            LabelImage.empty((2, 3), CLASSES),
            LabelImage.empty((2, 3), CLASSES),
            np.zeros((3, 2), bool),
        )


def test_booleans_are_one_object() -> None:
    result = evaluate_pair(
        np.array([[True, False]]),
        np.array([[True, False]]),
        reference_classes={1: "A"},
        prediction_classes={1: "A"},
    )
    assert result.metrics.pq == 1.0


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_an_image_of_no_pixels_has_no_figures(shape: tuple[int, int]) -> None:
    nothing = np.zeros(shape, int)
    result = evaluate_pair(nothing, nothing, reference_classes={}, prediction_classes={})
    assert result.objects.empty
    assert np.isnan(result.metrics.pq)


def test_tidying_sorts_ids_and_drops_what_has_no_pixel() -> None:
    untidy = LabelImage(
        index=image("3300", "0011"),
        ids=np.array([9, 5, 4]),
        class_index=np.array([1, 2, 2], np.int16),
        original_ids=np.array([9, 5, 4]),
        class_names=CLASSES,
    )
    tidy = untidy.tidied()
    assert tidy.ids.tolist() == [4, 9]
    assert tidy.class_names_of_objects().tolist() == ["B", "A"]
    np.testing.assert_array_equal(tidy.index, image("1100", "0022"))
    np.testing.assert_array_equal(tidy.id_image(), untidy.id_image())
    np.testing.assert_array_equal(untidy.index, image("3300", "0011"))
