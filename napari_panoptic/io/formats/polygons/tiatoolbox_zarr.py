"""The Zarr that TIAToolbox 2 writes by default: the contours of the nuclei of an image.

A group with the arrays ``contours`` (n, vertices, 2), ``type`` (n,) and ``prob`` (n,), or with an
array of each image in a group of that name. Contours are those of OpenCV, x and y in px at the
resolution of the model; shorter ones end with the smallest number that their type can hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.pixels.decode import decoding
from napari_panoptic.io.pixels.label_windows import opened_zarr
from napari_panoptic.values.cohort import Source, Vertices

WHAT = "a Zarr of TIAToolbox (contours, type and prob of nuclei)"
_TASK = "nuclei_segmentation"
"""The group of the nuclei, where the model segments other things as well."""
_MOST_NUMBERS = 10**6
"""Number of coordinates that are read at a time."""


def holds_contours(path: Path) -> bool:
    """Return whether a Zarr folder has contours rather than pixels."""
    with decoding(path, WHAT):
        node = _task(opened_zarr(path))
        return not hasattr(node, "chunks") and "contours" in node and "box" in node


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the nuclei of a store; ids are running numbers, and the class is the type."""
    with decoding(file.path, WHAT):
        node = _task(opened_zarr(file.path))
        contours, kinds, scores = (
            _array(node, name, file.path) for name in ("contours", "type", "prob")
        )
        count = contours.shape[0]
        if kinds.shape != (count,) or scores.shape != (count,):
            raise ValueError("contours, type and prob differ in length")
        if not count:
            return
        if contours.ndim != 3 or contours.shape[2] != 2 or contours.dtype.kind != "i":
            raise ValueError(f"contours have the shape {contours.shape}, not (n, vertices, 2)")
        padding = np.iinfo(contours.dtype).min
        step = max(1, _MOST_NUMBERS // max(1, contours.shape[1]))
        for start in range(0, count, step):
            rows = slice(start, start + step)
            for ring, kind, score in zip(
                contours[rows], kinds[rows].tolist(), scores[rows].tolist(), strict=True
            ):
                is_vertex = (ring != padding).all(axis=1)
                yield Outline([ring[is_vertex]], kind, score=score)


def _task(node: Any) -> Any:
    return node[_TASK] if not hasattr(node, "chunks") and _TASK in node else node


def _array(node: Any, name: str, path: Path) -> Any:
    from napari_panoptic.io.pixels.zarr_chunks import bounded

    array = node[name]
    if not hasattr(array, "chunks"):
        if "1" in array:
            raise ValueError(
                "it has the nuclei of several images, whose names it does not state; run the model "
                "for each image by itself"
            )
        array = array["0"]
    if math.prod(array.shape[1:]) > _MOST_NUMBERS:
        raise ValueError(f"{name} has the shape {array.shape}")
    return bounded(array, path, WHAT)


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=Vertices.PIXEL_CENTRES),
    name=Source.TIATOOLBOX_ZARR,
    title="TIAToolbox Zarr",
    endings=(".tiatoolbox.zarr",),
)
