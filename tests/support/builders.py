"""Small files of every form, written the way the wild writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import tifffile
from numpy.typing import NDArray

from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source

BORDER = (139, 69, 19)
COLOURS = dict(zip(MONUSAC_CLASSES.names, MONUSAC_CLASSES.colours, strict=True))
Points = Sequence[tuple[object, object]]


def write_svs(path: Path, rgb: NDArray[np.uint8], *, mpp: float | None = 0.25) -> Path:
    """Write an Aperio slide of one level, without loss."""
    height, width = rgb.shape[:2]
    text = f"Aperio Image Library v11.2.1 \r\n{width}x{height} (256x256) RGB|AppMag = 40"
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(
        path,
        rgb,
        tile=(256, 256),
        photometric="rgb",
        compression="adobe_deflate",
        metadata=None,
        description=text + (f"|MPP = {mpp}" if mpp else ""),
    )
    return path


def noise(height: int, width: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """Draw random colours."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def square(x: int, y: int, size: int = 4) -> Points:
    """Give the vertices of a square, which covers (size + 1) x (size + 1) pixels."""
    return [(x, y), (x + size, y), (x + size, y + size), (x, y + size)]


def annotation_xml(
    *layers: tuple[str, Sequence[Points]], root: str = 'Annotations MicronsPerPixel="0.25"'
) -> str:
    """Write ImageScope XML: one layer per (class name, polygons)."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<{root}>"]
    for name, polygons in layers:
        lines.append(f'<Annotation Id="1" Name=""><Attributes><Attribute Name="{name}"/>')
        lines.append("</Attributes><Regions><RegionAttributeHeaders><AttributeHeader Id='9999'/>")
        lines.append("</RegionAttributeHeaders>")
        for points in polygons:
            vertices = "".join(f'<Vertex X="{x}" Y="{y}" Z="0"/>' for x, y in points)
            lines.append(f'<Region Id="1"><Vertices>{vertices}</Vertices></Region>')
        lines.append("</Regions><Plots/></Annotation>")
    return "\n".join([*lines, f"</{root.split()[0]}>"])


def write_xml(path: Path, *layers: tuple[str, Sequence[Points]]) -> Path:
    """Write ImageScope XML to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(annotation_xml(*layers), encoding="utf-8")
    return path


def colour_mask(classes: NDArray[Any]) -> NDArray[np.uint8]:
    """Paint numbers of classes (0 background, -1 border) in the challenge's colours."""
    palette = np.array([(0, 0, 0), *COLOURS.values(), BORDER], dtype=np.uint8)
    return palette[classes]


def write_tiff(path: Path, array: NDArray[Any], **options: Any) -> Path:
    """Write a plain TIFF."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if array.ndim == 3 and array.shape[-1] in (3, 4):
        options.setdefault("photometric", "rgb")
    tifffile.imwrite(path, array, **options)
    return path


def write_mat(path: Path, **variables: Any) -> Path:
    """Write a MATLAB file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, variables)
    return path


def submission(**paths: Path | Sequence[Path]) -> MaskFiles:
    """Name the files of a submission: class -> file or files."""
    return MaskFiles(Source.SUBMISSION, _tuples(paths))


def label_files(single: Path | None = None, *more: Path, **paths: Path) -> MaskFiles:
    """Name label images: one file (and its tables), or class -> file."""
    if single is not None:
        return MaskFiles(Source.LABELS, {"": (single, *more)})
    return MaskFiles(Source.LABELS, _tuples(paths))


def _tuples(paths: Mapping[str, Path | Sequence[Path]]) -> dict[str, tuple[Path, ...]]:
    return {
        name: (value,) if isinstance(value, Path) else tuple(value) for name, value in paths.items()
    }


def two_objects(height: int = 12, width: int = 16) -> NDArray[np.int32]:
    """Draw two objects, 1 and 2, apart from each other."""
    mask = np.zeros((height, width), np.int32)
    mask[1:4, 1:5] = 1
    mask[6:10, 8:13] = 2
    return mask
