"""Small label pairs with a name, and a generator of random ones, for tests and documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

CLASS_NAMES = ["Epithelial", "Lymphocyte", "Neutrophil", "Macrophage"]
EPITHELIAL, LYMPHOCYTE, NEUTROPHIL, MACROPHAGE = CLASS_NAMES

Labels = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]
Block = tuple[int, int, int, int, int]  # id, first row, end row, first column, end column


@dataclass(frozen=True)
class LabelCase:
    """Two label images of one shape, (height, width), that nobody may write to.

    `reference_classes` and `prediction_classes` name the class of each id; `ambiguous` is a mask
    of the same shape, or None.
    """

    reference: Labels
    prediction: Labels
    reference_classes: dict[int, str]
    prediction_classes: dict[int, str]
    ambiguous: Mask | None = None

    def __post_init__(self) -> None:
        # The cases are shared between tests: an evaluation that edits its input must fail.
        for array in (self.reference, self.prediction, self.ambiguous):
            if array is not None:
                array.flags.writeable = False


# --- named cases ------------------------------------------------------------------------------


def _draw(
    blocks: Iterable[Block],
    *,
    shape: tuple[int, int] = (16, 16),
    dtype: npt.DTypeLike = np.int32,
) -> Labels:
    labels: Labels = np.zeros(shape, dtype=dtype)
    for label, top, bottom, left, right in blocks:
        labels[top:bottom, left:right] = label
    return labels


def _mask(
    top: int, bottom: int, left: int, right: int, *, shape: tuple[int, int] = (16, 16)
) -> Mask:
    mask = np.zeros(shape, dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


def _case(
    reference: list[Block],
    prediction: list[Block],
    *,
    ambiguous: Mask | None = None,
    shape: tuple[int, int] = (16, 16),
    dtype: npt.DTypeLike = np.int32,
) -> LabelCase:
    """Draw a case of rectangles, all of one class; later rectangles cover earlier ones."""
    return LabelCase(
        _draw(reference, shape=shape, dtype=dtype),
        _draw(prediction, shape=shape, dtype=dtype),
        {block[0]: EPITHELIAL for block in reference},
        {block[0]: EPITHELIAL for block in prediction},
        ambiguous,
    )


def _perfect() -> LabelCase:
    """Show two objects of two classes, both found exactly."""
    labels = _draw([(1, 2, 8, 2, 8), (2, 9, 14, 5, 14)])
    classes = {1: EPITHELIAL, 2: LYMPHOCYTE}
    return LabelCase(labels, labels.copy(), classes, dict(classes))


def _misclassified() -> LabelCase:
    """Show two objects found exactly, one of them under the name of another class."""
    labels = _draw([(1, 2, 8, 2, 8), (2, 9, 14, 5, 14)])
    return LabelCase(
        labels, labels.copy(), {1: EPITHELIAL, 2: LYMPHOCYTE}, {1: EPITHELIAL, 2: MACROPHAGE}
    )


def _noise() -> LabelCase:
    """Show labels without any shape, in many pieces each."""
    rng = np.random.default_rng(20)
    reference = rng.integers(0, 7, (16, 16)).astype(np.int32)
    prediction = np.where(rng.random((16, 16)) < 0.4, rng.integers(0, 7, (16, 16)), reference)
    return LabelCase(
        reference,
        prediction.astype(np.int32),
        {label: CLASS_NAMES[label % 4] for label in range(1, 7)},
        {label: CLASS_NAMES[label % 3] for label in range(1, 7)},
        rng.random((16, 16)) < 0.2,
    )


CASES: dict[str, LabelCase] = {
    "perfect": _perfect(),
    "empty-both": _case([], []),
    "empty-prediction": _case([(1, 2, 8, 2, 8)], []),
    "empty-reference": _case([], [(1, 2, 8, 2, 8)]),
    # Each half has an IoU of exactly 0.5, so neither matches.
    "split-in-two": _case([(1, 5, 11, 4, 12)], [(1, 5, 11, 4, 8), (2, 5, 11, 8, 12)]),
    "split-in-three": _case(
        [(1, 5, 11, 3, 12)], [(1, 5, 11, 3, 6), (2, 5, 11, 6, 9), (3, 5, 11, 9, 12)]
    ),
    "merged-two": _case([(1, 5, 11, 4, 8), (2, 5, 11, 8, 12)], [(1, 5, 11, 4, 12)]),
    # Two big pieces split the object; a third sticks out of it by less than half.
    "fragment": _case([(1, 4, 10, 3, 13)], [(1, 4, 10, 3, 8), (2, 4, 8, 8, 13), (3, 8, 11, 9, 12)]),
    "duplicate": _case([(1, 5, 11, 4, 12)], [(1, 5, 11, 4, 10), (2, 5, 11, 10, 12)]),
    # Shifted by half a width: half of each lies in the other, and no more.
    "displaced": _case([(1, 5, 11, 3, 9)], [(1, 5, 11, 6, 12)]),
    "too-small": _case([(1, 4, 10, 4, 10)], [(1, 5, 8, 5, 9)]),
    "too-large": _case([(1, 5, 8, 5, 9)], [(1, 4, 10, 4, 10)]),
    "spurious": _case([(1, 1, 6, 1, 6)], [(1, 1, 6, 1, 6), (2, 9, 14, 9, 14)]),
    "missed": _case([(1, 1, 6, 1, 6), (2, 9, 14, 9, 14)], [(1, 1, 6, 1, 6)]),
    "misclassified": _misclassified(),
    "exactly-half-iou": _case([(1, 4, 8, 4, 8)], [(1, 4, 8, 4, 12)]),
    # All four edges and two corners of the image; each prediction lacks one row or column.
    "touching-frame": _case(
        [(1, 0, 5, 0, 5), (2, 0, 16, 10, 16), (3, 11, 16, 0, 7)],
        [(1, 0, 5, 0, 4), (2, 0, 16, 11, 16), (3, 12, 16, 0, 7)],
    ),
    "whole-image": _case([(1, 0, 16, 0, 16)], [(1, 0, 16, 0, 16)]),
    "one-pixel": _case(
        [(1, 3, 4, 3, 4), (2, 8, 9, 8, 9), (3, 15, 16, 15, 16)],
        [(1, 3, 4, 3, 4), (2, 8, 9, 9, 10), (3, 15, 16, 15, 16)],
    ),
    # A ring around another object; the prediction fills the ring and lacks the core.
    "nested-ring": _case([(1, 2, 14, 2, 14), (2, 6, 10, 6, 10)], [(1, 2, 14, 2, 14)]),
    "inside-ambiguous": _case(
        [(1, 2, 6, 2, 6), (2, 9, 14, 3, 12)],
        [(1, 3, 7, 3, 7), (2, 9, 14, 3, 12)],
        ambiguous=_mask(0, 8, 0, 8),
    ),
    "straddles-ambiguous": _case(
        [(1, 4, 10, 3, 13)], [(1, 4, 10, 2, 13)], ambiguous=_mask(0, 16, 0, 8)
    ),
    # A find inside the ambiguous region whose dilated rim sticks out on two sides.
    "spill-rim": _case(
        [(1, 10, 15, 10, 15)],
        [(1, 10, 15, 10, 15), (2, 3, 9, 3, 9)],
        ambiguous=_mask(0, 8, 0, 8),
    ),
    "sparse-ids-up-to-2^31": _case(
        [(7, 1, 6, 1, 6), (2**31 - 1, 1, 6, 8, 14), (2**31, 8, 14, 1, 6)],
        [(2**31, 1, 6, 1, 6), (3, 1, 6, 8, 13), (2**31 - 2, 9, 14, 2, 6)],
        dtype=np.int64,
    ),
    # 200 + 56 is 0 in the eight bits of these labels.
    "uint8-wrap": _case(
        [(200, 1, 6, 1, 6), (56, 8, 14, 8, 14)],
        [(56, 1, 6, 1, 6), (200, 8, 14, 8, 14)],
        dtype=np.uint8,
    ),
    "noise": _noise(),
}


# --- random cases -----------------------------------------------------------------------------


def _blobs(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Draw ellipses that touch and cover each other."""
    rows, columns = np.indices(shape)
    labels: Labels = np.zeros(shape, dtype=np.int64)
    for label in range(1, int(rng.integers(2, 15))):
        y, x = rng.integers(0, shape[0]), rng.integers(0, shape[1])
        height, width = rng.uniform(1, max(max(shape) / 4, 2), 2)
        labels[((rows - y) / height) ** 2 + ((columns - x) / width) ** 2 <= 1] = label
    return labels


def _mosaic(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Fill the image with touching cells, without any background."""
    seeds = rng.integers(0, shape, (int(rng.integers(2, 15)), 2))
    grid = np.indices(shape)[:, :, :, None]
    squared = (grid[0] - seeds[:, 0]) ** 2 + (grid[1] - seeds[:, 1]) ** 2
    cells: Labels = squared.argmin(axis=2).astype(np.int64) + 1
    return cells


def _nested(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Draw rectangles one inside the other."""
    labels: Labels = np.zeros(shape, dtype=np.int64)
    step = int(rng.integers(1, 4))
    for label in range(1, 8):
        inset = (label - 1) * step
        labels[inset : shape[0] - inset, inset : shape[1] - inset] = label
    return labels


def _pixels(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Scatter objects of one pixel."""
    labels: Labels = np.zeros(shape, dtype=np.int64)
    count = min(int(rng.integers(1, 30)), labels.size)
    labels.flat[rng.choice(labels.size, count, replace=False)] = np.arange(1, count + 1)
    return labels


def _blocks(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Draw rectangles on a coarse grid: many shares and IoUs of exactly one half."""
    labels: Labels = np.zeros(shape, dtype=np.int64)
    for label in range(1, int(rng.integers(2, 12))):
        top, left = (
            2 * rng.integers(0, max(shape[0] // 2, 1)),
            2 * rng.integers(0, shape[1] // 2 + 1),
        )
        height, width = 2 * rng.integers(1, 5, 2)
        labels[top : top + height, left : left + width] = label
    return labels


def _filled(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Let one object fill the image, now and then with another one in it."""
    labels: Labels = np.ones(shape, dtype=np.int64)
    if rng.random() < 0.5:
        labels.flat[rng.integers(0, labels.size)] = 2
    return labels


def _empty(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:  # noqa: ARG001
    """Leave the image without objects."""
    return np.zeros(shape, dtype=np.int64)


def _scatter(rng: np.random.Generator, shape: tuple[int, int]) -> Labels:
    """Give every pixel a label of its own choice."""
    return rng.integers(0, int(rng.integers(2, 9)), shape)


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Labels]] = {
    "blobs": _blobs,
    "mosaic": _mosaic,
    "nested": _nested,
    "pixels": _pixels,
    "blocks": _blocks,
    "filled": _filled,
    "empty": _empty,
    "scatter": _scatter,
}
"""Kinds of random label images; most pairs should be of the first, see `random_pair`."""

INTEGER_DTYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")


def _edited(rng: np.random.Generator, labels: Labels) -> Labels:
    """Copy labels as a mediocre team would: shifted, eaten at, split, merged and dropped."""
    shift = rng.integers(-2, 3, 2)
    edited = np.roll(labels, tuple(shift), axis=(0, 1))
    for label in np.unique(labels[labels > 0]):
        own = edited == label
        fate = rng.random()
        if fate < 0.1:
            edited[own] = 0
        elif fate < 0.25 and own.any():
            edited[own & (np.indices(own.shape)[1] > np.nonzero(own)[1].mean())] = edited.max() + 1
        elif fate < 0.35:
            edited[own] = rng.choice(labels[labels > 0])
        elif fate < 0.5:
            edited[own & (rng.random(own.shape) < rng.random())] = 0
    return edited


def _renumbered(
    rng: np.random.Generator, labels: Labels, dtype: np.dtype[Any], max_id: int
) -> Labels:
    """Give the objects random ids that fit the type: few or many gaps, in no order."""
    old, positions = np.unique(labels, return_inverse=True)
    # Ids close together are shared by both images, which catches ids of the wrong side.
    limit = max(min(int(np.iinfo(dtype).max), max_id), old.size)
    highest = min(limit, int(rng.choice([old.size, 3 * old.size, limit])))
    new: set[int] = set()
    if rng.random() < 0.5:
        new.add(highest)
    while len(new) < old.size:
        new.add(int(rng.integers(1, highest + 1)))
    ids = np.array(rng.permutation(sorted(new))[: old.size], dtype=dtype)
    ids[old == 0] = 0
    return ids[positions].reshape(labels.shape)


def _random_mask(rng: np.random.Generator, shape: tuple[int, int]) -> Mask | None:
    """Choose no mask, or one that is empty, full, a rectangle or scattered."""
    choice = rng.random()
    if choice < 0.25:
        return None
    if choice < 0.3:
        return np.zeros(shape, dtype=bool)
    if choice < 0.35:
        return np.ones(shape, dtype=bool)
    if choice < 0.8:
        top, left = int(rng.integers(0, shape[0])), int(rng.integers(0, shape[1]))
        height, width = int(rng.integers(1, shape[0] + 1)), int(rng.integers(1, shape[1] + 1))
        return _mask(top, top + height, left, left + width, shape=shape)
    mask: Mask = rng.random(shape) < rng.random()
    return mask


def random_pair(
    rng: np.random.Generator,
    shape: tuple[int, int] = (24, 24),
    *,
    dtype: npt.DTypeLike | None = None,
    reference_kind: str | None = None,
    prediction_kind: str | None = None,
    with_ambiguous: bool = True,
    max_id: int = 2**31,
) -> LabelCase:
    """Make a random label pair.

    Parameters
    ----------
    rng
        Source of all randomness; the same state gives the same pair.
    shape
        Height and width in pixels, each at least 1.
    dtype
        Integer type of both images; None chooses one for each, so that they may differ.
    reference_kind, prediction_kind
        One of `KINDS`, or None for any. A prediction may also be "edited", which is the reference
        spoilt in many ways; with None, half of the predictions are.
    with_ambiguous
        Whether there may be an ambiguous mask (there need not be).
    max_id
        Highest id, where the type can hold it.

    Returns
    -------
    LabelCase
        Ids have gaps and no order, and classes are random, though mostly right.
    """
    if reference_kind is None:
        reference_kind = str(rng.choice(list(KINDS), p=_likelihoods()))
    if prediction_kind is None:
        prediction_kind = str(rng.choice(list(KINDS), p=_likelihoods()))
        if rng.random() < 0.5:
            prediction_kind = "edited"
    drawn = KINDS[reference_kind](rng, shape)
    guessed = (
        _edited(rng, drawn) if prediction_kind == "edited" else KINDS[prediction_kind](rng, shape)
    )
    reference = _renumbered(rng, drawn, _some_dtype(rng, dtype), max_id)
    prediction = _renumbered(rng, guessed, _some_dtype(rng, dtype), max_id)
    reference_classes = {i: str(rng.choice(CLASS_NAMES)) for i in _ids(reference)}
    prediction_classes = {}
    for i in _ids(prediction):
        below = int(rng.choice(reference[prediction == i]))
        right = below != 0 and rng.random() < 0.7
        prediction_classes[i] = reference_classes[below] if right else str(rng.choice(CLASS_NAMES))
    ambiguous = _random_mask(rng, shape) if with_ambiguous else None
    return LabelCase(reference, prediction, reference_classes, prediction_classes, ambiguous)


def _likelihoods() -> list[float]:
    """Likelihood of each of `KINDS`: the extremes are rare, so that most pairs have matches."""
    weights = [5, 4, 2, 2, 4, 1, 1, 2]
    return [weight / sum(weights) for weight in weights]


def _some_dtype(rng: np.random.Generator, dtype: npt.DTypeLike | None) -> np.dtype[Any]:
    return np.dtype(str(rng.choice(INTEGER_DTYPES)) if dtype is None else dtype)


def _ids(labels: Labels) -> list[int]:
    return [int(label) for label in np.unique(labels) if label != 0]
