"""Objects moved by whole pixels, as a registration that is a pixel off would move them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.relabel import present_labels
from napari_panoptic.values.labels import LabelImage, LazyMasks, Vanished
from napari_panoptic.values.settings import Overlaps

Shift = tuple[int, int]
NO_SHIFT: Shift = (0, 0)
SHIFTS: tuple[Shift, ...] = (
    NO_SHIFT,
    *((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != NO_SHIFT),
)
"""None, and one pixel in each of eight directions, as (dy, dx)."""


def shifted(labels: LabelImage, shift: Shift) -> LabelImage:
    """Move all objects by whole pixels; not in place.

    Parameters
    ----------
    labels
        The objects.
    shift
        (dy, dx) in px.

    Returns
    -------
    LabelImage
        Of the same shape. Objects keep their ids; pixels that leave the image
        are lost, and objects without any pixel left have vanished.
    """
    if shift == NO_SHIFT:
        return labels
    masks, index = labels.class_masks, _moved(labels.index, shift)
    present = present_labels(index, len(labels))[1:]
    moved = replace(
        labels,
        index=index,
        class_masks=LazyMasks(masks, lambda name: _moved(masks[name], shift)),
        other_form=labels.other_form and partial(_shifted_whole, labels, shift),
    )
    if present.all():
        return moved
    names = labels.class_names_of_objects()[~present].tolist()
    gone = [
        Vanished(id_, name, "moved out of the image")
        for id_, name in zip(labels.ids[~present].tolist(), names, strict=True)
    ]
    return replace(moved.of_rows(present, index), vanished=(*labels.vanished, *gone))


def _shifted_whole(labels: LabelImage, shift: Shift) -> LabelImage:
    """Move objects with the pixels that they share."""
    whole = labels.with_overlaps(Overlaps.KEEP)
    planes = [_moved(plane, shift) for plane in whole.planes]
    flat = shifted(labels, shift)
    return flat.in_planes(planes, whole.ids, whole.class_index, whole.original_ids)


def _moved(image: NDArray[Any], shift: Shift) -> NDArray[Any]:
    moved = np.zeros_like(image)
    (y_from, y_to), (x_from, x_to) = (
        (slice(max(-step, 0), max(size - step, 0)), slice(max(step, 0), max(size + step, 0)))
        for size, step in zip(image.shape, shift, strict=True)
    )
    moved[y_to, x_to] = image[y_from, x_from]
    return moved
