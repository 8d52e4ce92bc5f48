"""OME-Zarr labels: the classes that their metadata give, the excluded area, and writing them.

Read are versions 0.4 and 0.5, https://ngff.openmicroscopy.org/0.5/ (labels,
image-label); written is 0.4, which more programs read.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.files.json_files import parsing
from napari_panoptic.io.files.replacing import exchange, folder_to_disk
from napari_panoptic.io.formats.format import Format, Objects
from napari_panoptic.io.formats.scores import SCORE_NAMES, ScoreNames
from napari_panoptic.io.pixels.label_windows import zarr_label

WHAT = "an OME-Zarr label image"
CLASS_KEY = "class"
"""Among the properties of a label: the name of its class."""
AMBIGUOUS_LABEL = "ambiguous"
"""Name of the label image of the excluded area."""
_NUCLEI = "nuclei"
_CHUNK_PX = 1024
_SMALLEST_LEVEL_PX = 256


def label_classes(path: Path) -> dict[int, str] | None:
    """Return the class of each label, by the properties of an OME-Zarr label image.

    Returns
    -------
    dict or None
        Label value -> text under the key ``class``; None if no label has one.

    Raises
    ------
    UnreadableFileError
        If the properties are not what the format wants.
    """
    example = f'{{"label-value": 1, "{CLASS_KEY}": "Epithelial"}}'
    with parsing(path, f"properties of labels such as {example}"):
        properties = _properties(path)
        classes = {
            int(of_label["label-value"]): str(of_label[CLASS_KEY]).strip()
            for of_label in properties
            if CLASS_KEY in of_label
        }
    return classes or None


def label_scores(path: Path, name: str | None = None) -> dict[int, float]:
    """Return the scores of labels with a class, in the order of `label_classes`; NaN for none.

    Parameters
    ----------
    path
        An image that `label_classes` can read.
    name
        The key of the score; None for the well-known names.
    """
    scores = ScoreNames(name)
    return {int(p["label-value"]): scores.of(p) for p in _properties(path) if CLASS_KEY in p}


def _properties(path: Path) -> list[Any]:
    _, attributes = zarr_label(path, WHAT)
    properties: list[Any] = (attributes.get("image-label") or {}).get("properties") or []
    return properties


def write_ome_zarr(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write a region as OME-Zarr 0.4 with the labels ``nuclei`` and ``ambiguous``.

    Classes and their colours are among the properties of the labels, so that
    no table is needed. The folder appears only when it is complete.
    """
    import zarr

    folder = Path(mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part"))
    try:
        labels = zarr.create_group(str(folder / "z"), zarr_format=2).create_group("labels")
        names = [_NUCLEI] if objects.ambiguous is None else [_NUCLEI, AMBIGUOUS_LABEL]
        labels.attrs["labels"] = names
        ids = objects.labels.id_image()
        ids = ids.astype(np.uint32 if ids.max() <= np.iinfo(np.uint32).max else np.uint64)
        _write_levels(labels, _NUCLEI, ids, _described(objects), objects.mpp)
        if objects.ambiguous is not None:
            area = objects.ambiguous.astype(np.uint8)
            _write_levels(labels, AMBIGUOUS_LABEL, area, {}, objects.mpp)
        folder_to_disk(folder / "z")
        exchange([folder / "z"], [path])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return (path,)


def _described(objects: Objects) -> dict[str, Any]:
    colours = dict(zip(objects.scheme.names, objects.scheme.colours, strict=True))
    labels = objects.labels
    of_labels = list(
        zip(labels.ids.tolist(), labels.class_names_of_objects().tolist(), strict=True)
    )
    scored = zip(of_labels, labels.scores.tolist(), strict=True)
    return {
        "colors": [{"label-value": i, "rgba": [*colours[name], 255]} for i, name in of_labels],
        "properties": [
            {"label-value": i, CLASS_KEY: name}
            | ({} if math.isnan(score) else {SCORE_NAMES[0]: score})
            for (i, name), score in scored
        ],
    }


def _write_levels(
    labels: Any,
    name: str,
    pixels: NDArray[Any],
    described: Mapping[str, Any],
    mpp: float | None,
) -> None:
    """Write an image and every second pixel of it, and so on, until it is small."""
    group = labels.create_group(name)
    axes: list[dict[str, str]] = [{"name": axis, "type": "space"} for axis in "yx"]
    if mpp is not None:
        axes = [{**axis, "unit": "micrometer"} for axis in axes]
    datasets: list[dict[str, Any]] = []
    while True:
        level, factor = len(datasets), 2 ** len(datasets)
        edge = [min(_CHUNK_PX, size) for size in pixels.shape]
        array = group.create_array(
            str(level),
            shape=pixels.shape,
            dtype=pixels.dtype,
            chunks=edge,
            chunk_key_encoding={"name": "v2", "separator": "/"},
            # A missing chunk could also be lost.
            config={"write_empty_chunks": True},
        )
        array[...] = pixels
        scale = [(mpp or 1.0) * factor] * 2
        datasets.append(
            {
                "path": str(level),
                "coordinateTransformations": [{"type": "scale", "scale": scale}],
            }
        )
        if max(pixels.shape) <= _SMALLEST_LEVEL_PX:
            break
        pixels = pixels[::2, ::2]
    group.attrs["multiscales"] = [
        {"version": "0.4", "name": name, "axes": axes, "datasets": datasets}
    ]
    group.attrs["image-label"] = {"version": "0.4", **described}


FORMAT = Format(
    name="ome-zarr",
    title="OME-Zarr labels",
    endings=(".ome.zarr",),
    write=write_ome_zarr,
)
