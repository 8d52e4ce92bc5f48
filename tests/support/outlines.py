"""Outlines as tests compare them: one value per object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PixelRule, PolygonFile, Polygons
from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, Source


@dataclass(frozen=True, eq=False)
class Polygon:
    id: int
    class_name: str
    vertices_xy: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Annotation:
    polygons: tuple[Polygon, ...]
    mpp: float | None
    findings: tuple[Finding, ...]


def stopped(done: int, total: int) -> None:
    """Cancel the reading of a file."""
    raise StoppedError(f"stopped after {done} of {total}")


def read_annotation(path: Path, scheme: ClassScheme) -> Annotation:
    """Read an ImageScope file, object by object."""
    file = read_outlines(Source.IMAGESCOPE, path, scheme)
    polygons, names = file.polygons, [scheme.ambiguous or "", *scheme.names]
    starts = polygons.ring_starts.tolist()
    found = [
        Polygon(id_, names[index], polygons.vertices_xy[start:stop])
        for id_, index, start, stop in zip(
            polygons.ids.tolist(), polygons.class_index.tolist(), starts, starts[1:], strict=False
        )
    ]
    return Annotation(tuple(found), file.mpp, file.findings)


def polygons_of(outlines: Sequence[tuple[str, Any]], scheme: ClassScheme) -> Polygons:
    """Make ImageScope polygons of class names and vertices."""
    numbers = {scheme.ambiguous: AMBIGUOUS} | {n: k for k, n in enumerate(scheme.names, start=1)}
    return Polygons.of_rings(
        [np.array(points, np.float64).reshape(-1, 2) for _, points in outlines],
        np.array([numbers[name] for name, _ in outlines], np.int16),
        PixelRule.VERTEX,
    )


def read_outlines(
    source: Source, path: Path, scheme: ClassScheme = MONUSAC_CLASSES, **options: Any
) -> PolygonFile:
    """Read a file of a known format without drawing it."""
    read = known_forms()[source].outlines
    assert read is not None
    return read(path, scheme, **options)
