"""Scores from a probability map: its mean in each object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.reading import reading, refuse
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.io.pixels.label_windows import open_pixels
from napari_panoptic.values.labels import LabelImage, Scores

WHAT = "a probability map (one channel: numbers, or whole numbers of which the largest means 1)"
_HIGHEST = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}


def with_map_scores(masks: LoadedMasks, path: Path) -> LoadedMasks:
    """Score the objects of a region by a probability map; scores of their own file are replaced.

    Parameters
    ----------
    masks
        The objects.
    path
        The map.

    Raises
    ------
    UnreadableFileError
        If the map cannot be read, or has another size than the objects.
    """
    shape = masks.labels.shape
    with reading(path):
        pixels = open_pixels(path, WHAT)
        check_size(pixels.shape, shape, path=path, what="the probability map")
        probability = _as_probability(pixels.read((0, 0, *shape)))

    def scored(loaded: LoadedMasks) -> LoadedMasks:
        labels = replace(loaded.labels, known_scores=mean_scores(loaded.labels, probability))
        if (restored := loaded.restored) is None:
            return replace(loaded, labels=labels)
        return replace(loaded, labels=labels, restored=lambda *way: scored(restored(*way)))

    return scored(masks)


def mean_scores(labels: LabelImage, probability: NDArray[Any]) -> Scores:
    """Return the mean of a map (y, x) over each object; NaN if any of its pixels is NaN."""
    sums, areas = np.zeros((2, len(labels) + 1))
    for sheet in labels.sheets:
        sums += np.bincount(sheet.ravel(), probability.ravel(), minlength=len(sums))
        areas += np.bincount(sheet.ravel(), minlength=len(areas))
    order = np.argsort(labels.ids, kind="stable")
    with np.errstate(invalid="ignore"):
        return Scores(labels.ids[order], (sums[1:] / areas[1:])[order])


def maps_need_whole_regions(path: Path) -> Finding:
    """Return the finding that a probability map is not used for a slide."""
    return Finding(
        FindingKind.FALLBACK,
        "the region is too large to hold, but scores from a probability map need that: the map is "
        "not used",
        path=path,
    )


def _as_probability(pixels: NDArray[Any]) -> NDArray[np.float64]:
    if pixels.dtype.kind == "f":
        return pixels.astype(np.float64)
    if (highest := _HIGHEST.get(pixels.dtype)) is None:
        raise refuse(
            f"expected {WHAT}, found numbers of type {pixels.dtype}; save it as float32, uint8 or "
            "uint16"
        )
    return pixels / highest
