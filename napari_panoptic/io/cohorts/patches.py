"""Where the regions of a cohort lie in slides, so that outlines of whole slides apply to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.tables.csv_tables import read_rows
from napari_panoptic.values.cohort import SlidePatch

LARGEST_PX = 2.0**29
LARGEST_SCALE = 64.0
_COLUMNS = ("region", "x", "y", "scale", "slide")


@dataclass(frozen=True)
class PlacedRegion:
    """A region and its place in a slide."""

    #: Name of the region.
    region: str
    #: What ``{slide}`` stands for in the paths of files with outlines of the slide.
    slide: str
    #: Its place in the slide.
    patch: SlidePatch


def placed_region(region: str, values: Mapping[str, Any], where: str) -> PlacedRegion:
    """Make a place of the values ``x``, ``y``, and perhaps ``scale`` and ``slide``.

    The slide has the name of the region if none is given.

    Raises
    ------
    CohortError
        If a number is missing or out of range.
    """
    x, y = (_number(values.get(key), f"{where}.{key}", -LARGEST_PX, LARGEST_PX) for key in "xy")
    scale = _number(values.get("scale", 1.0), f"{where}.scale", 1 / LARGEST_SCALE, LARGEST_SCALE)
    slide = values.get("slide", region)
    if not isinstance(slide, str) or not slide:
        raise CohortError(f"{where}.slide must be the name of a slide, found {slide!r}")
    return PlacedRegion(region, slide, SlidePatch(x, y, scale))


def read_patches(path: Path) -> tuple[PlacedRegion, ...]:
    """Read a table with the columns region, x, y, and perhaps scale and slide.

    Raises
    ------
    UnreadableFileError
        As `read_rows`.
    CohortError
        If columns are unknown, or a place is not valid.
    """
    rows = read_rows(path, "a table of places in slides", _COLUMNS[:3])
    if unknown := [name for name in rows.header if name not in _COLUMNS]:
        raise CohortError(
            f"expected the columns {english_list(_COLUMNS)}, found {english_list(unknown)}; rename "
            "or remove the others",
            path=path,
        )
    placed = []
    for line, row in rows:
        if not row["region"]:
            raise CohortError(
                f"expected the name of a region in line {line}, found none", path=path
            )
        values = {name: cell for name, cell in row.items() if cell}
        try:
            placed.append(placed_region(values["region"], values, f"line {line}"))
        except CohortError as error:
            raise CohortError(error.message, path=path) from error
    return tuple(placed)


def _number(value: Any, where: str, low: float, high: float) -> float:
    """Read a number; tables have texts."""
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not low <= number <= high:
        raise CohortError(f"{where} must be a number from {low:g} to {high:g}, found {value!r}")
    return number
