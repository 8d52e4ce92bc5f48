"""Items of reviews without pixels behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.review.plan.units import Units

Ints = NDArray[np.int64]


def units_of_kinds(
    class_names: tuple[str, ...],
    kind: Ints,
    patient: Ints,
    classes: tuple[Ints, Ints],
    iou: NDArray[np.float64],
    detail: NDArray[Any],
) -> Units:
    """Return items of one team with these outcomes (positions in `KINDS`), a region per patient.

    `classes` are those of annotation and prediction, and `iou` is theirs, where there are both.
    """
    n = len(kind)
    name = np.array([f"P{number}" for number in patient], object)
    return Units(
        class_names=class_names,
        team=np.full(n, "T", object),
        patient=name,
        region=name,
        side=np.where(kind == 4, 2, np.where(kind == 3, 1, 0)).astype(np.int8),
        kind=kind.astype(np.int8),
        id=np.where(kind == 4, -1, np.arange(n)),
        y_px=np.arange(n) * 64.0,
        x_px=np.zeros(n),
        reference_class=np.where(kind <= 2, classes[0], 0).astype(np.int16),
        prediction_class=np.where((kind <= 1) | (kind == 3), classes[1], 0).astype(np.int16),
        iou=np.where(kind <= 1, iou, 0),
        detail=detail.astype(object),
    )
