"""Label images as Zarr stores: plain arrays, OME-Zarr label images, and images with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import zarr
from numpy.typing import NDArray

FOREIGN = Path(__file__).resolve().parents[1] / "data" / "formats"
"""Files that other programs wrote."""
KINDS = ("array", "label", "labels", "image")
"""An array by itself; a label image; a group of labels; an image with labels."""


def write_zarr(
    path: Path,
    image: NDArray[Any],
    *,
    kind: str = "label",
    zarr_format: Any = 2,
    leading: tuple[int, ...] = (),
) -> Path:
    """Write a label image (y, x) in chunks of 16 x 16 px, after dimensions of one."""
    pixels = image.reshape(*leading, *image.shape)
    before = (1,) * (pixels.ndim - 2)
    if kind == "array":
        array = zarr.create_array(
            str(path),
            shape=pixels.shape,
            dtype=pixels.dtype,
            chunks=(*before, 16, 16),
            zarr_format=zarr_format,
        )
        array[...] = pixels
        return path
    root = zarr.create_group(str(path), zarr_format=zarr_format)
    if kind == "label":
        _write_multiscale(root, pixels, zarr_format)
        return path
    labels = root if kind == "labels" else root.create_group("labels")
    _describe(labels, {"labels": ["nuclei"]}, zarr_format)
    _write_multiscale(labels.create_group("nuclei"), pixels, zarr_format)
    if kind == "image":
        _describe(root, {"multiscales": [{"datasets": [{"path": "0"}]}]}, zarr_format)
    return path


def _write_multiscale(group: zarr.Group, pixels: NDArray[Any], zarr_format: int) -> None:
    leading = (1,) * (pixels.ndim - 2)
    for level, scale in enumerate((1, 2)):
        array = group.create_array(
            str(level),
            shape=pixels[..., ::scale, ::scale].shape,
            dtype=pixels.dtype,
            chunks=(*leading, 16, 16),
        )
        array[...] = pixels[..., ::scale, ::scale]
    scales = [{"datasets": [{"path": "0"}, {"path": "1"}]}]
    _describe(group, {"multiscales": scales, "image-label": {}}, zarr_format)


def _describe(group: zarr.Group, attributes: dict[str, Any], zarr_format: int) -> None:
    """Write attributes where version 0.4 and 0.5 of OME-Zarr have them."""
    group.attrs.update(attributes if zarr_format == 2 else {"ome": attributes})


def unzipped(name: str, folder: Path) -> Path:
    """Unpack an image of the test data that another program wrote."""
    path = folder / f"{name}.ome.zarr"
    with ZipFile(FOREIGN / f"{name}.zip") as file:
        file.extractall(path)
    return path
