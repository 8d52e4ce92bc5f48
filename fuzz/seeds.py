"""Good files to begin with: small ones made here, and small pieces of real ones."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import tifffile
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.values.cohort import MONUSAC_CLASSES

REPOSITORY = Path(__file__).resolve().parent.parent
CASES = REPOSITORY.parent / "shared" / "cases"
LARGEST_BYTES = 6000
"""Larger files are no seeds: inputs should be quick."""


def real_files(pattern: str, *, most: int = 4) -> list[bytes]:
    """Give small files among the shared cases, where these are."""
    small = (
        path.read_bytes()
        for path in sorted(CASES.glob(pattern))
        if path.stat().st_size <= LARGEST_BYTES
    )
    return list(islice(small, most))


def real_annotations() -> Iterator[bytes]:
    """Give the beginnings of real ImageScope files, with their first two regions."""
    for path in sorted(CASES.glob("monusac/*/*/*.xml"))[:3]:
        text = path.read_text(encoding="utf-8", errors="replace")
        vertices = r"(<Vertices>(?:\s*<Vertex [^>]*>){8})(?:\s*<Vertex [^>]*>)*"
        head, *regions = re.split(r"(?=<Region )", text[: 4 * 10**5])
        regions = [re.sub(vertices, r"\1", region.split("</Region>")[0]) for region in regions[:2]]
        if regions:
            body = "</Region>".join([*regions, "</Regions></Annotation></Annotations>"])
            yield (head + body).encode()


def real_dump() -> list[bytes]:
    """Give the first lines of the organisers' output."""
    path = CASES / "challenge-dump" / "per_image_class_pq.txt"
    return [path.read_bytes()[:1500].rpartition(b"\n")[0]] if path.is_file() else []


def two_objects() -> NDArray[np.int32]:
    """Draw two objects in 12 x 16 px."""
    mask = np.zeros((12, 16), np.int32)
    mask[1:4, 1:5], mask[6:10, 8:13] = 1, 2
    return mask


def colours(mask: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Paint objects 1 to 4 in the challenge's colours."""
    return np.array([(0, 0, 0), *MONUSAC_CLASSES.colours], np.uint8)[mask]


def tiff(array: NDArray[Any], **options: Any) -> bytes:
    """Write a TIFF."""
    return _written(lambda file: tifffile.imwrite(file, array, **options))


def png(array: NDArray[Any], form: str = "PNG") -> bytes:
    """Write a PNG, or what else Pillow writes."""
    return _written(lambda file: Image.fromarray(array).save(file, form))


def npy(array: NDArray[Any]) -> bytes:
    """Write an NPY file."""
    return _written(lambda file: np.save(file, array))


def npz(**arrays: NDArray[Any]) -> bytes:
    """Write an NPZ archive."""
    return _written(lambda file: np.savez_compressed(file, **arrays))


def mat(**variables: Any) -> bytes:
    """Write a MATLAB file; ``_options`` are those of scipy."""
    options = variables.pop("_options", {})
    return _written(lambda file: scipy.io.savemat(file, variables, **options))


def slide(array: NDArray[np.uint8]) -> bytes:
    """Write an Aperio slide of one level."""
    text = "Aperio Image Library v11.2.1 \r\n16x12 (16x16) RGB|AppMag = 40|MPP = 0.25"
    options = {"photometric": "rgb", "metadata": None, "tile": (16, 16)}
    return tiff(array, description=text, compression="adobe_deflate", **options)


def _written(write: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()
