"""Micrometres per pixel, as files state them in tags of TIFF, entries of ImageJ and properties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.pixels.decode import (
    DECODING_ERRORS,
    decoding,
    file_kind,
    foreign_decoder,
    open_tiff,
)

WHAT = "an image (a slide that OpenSlide opens, TIFF, PNG, JPEG or OME-Zarr)"
PLAUSIBLE_MPP = (0.01, 20.0)
"""Resolution tags that mean anything else are a screen's or a printer's."""
MPP_TOLERANCE = 0.01
"""Relative difference of x and y above which pixels count as not square."""
_TIFF_UNITS = {2: "inch", 3: "centimeter"}
_MICROMETRES = {
    **dict.fromkeys(("um", "micron", "microns", "micrometer", "micrometre"), 1.0),
    **dict.fromkeys(("pm", "picometer"), 1e-6),
    **dict.fromkeys(("nm", "nanometer"), 1e-3),
    **dict.fromkeys(("mm", "millimeter"), 1e3),
    **dict.fromkeys(("cm", "centimeter"), 1e4),
    **dict.fromkeys(("m", "meter"), 1e6),
    **dict.fromkeys(("in", "inch", "inches"), 25_400.0),
}
_MICRO = ("\\u00b5", "\u00b5", "\u03bc")
"""Ways to write the prefix of micrometres; the first is that of ImageJ, escaped."""


def micrometres(unit: Any) -> float | None:
    """Return the micrometres in a unit of length; None for an unknown unit."""
    text = str(unit)
    for micro in _MICRO:
        text = text.replace(micro, "u")
    return _MICROMETRES.get(text)


def mean_mpp(
    x: float | None, y: float | None, path: Path
) -> tuple[float | None, tuple[Finding, ...]]:
    """Return the micrometres per pixel of both directions; report pixels that are not square."""
    if x is None or y is None:
        return x or y, ()
    mpp = x / 2 + y / 2  # in this order the sum is never beyond any number
    if abs(x - y) <= MPP_TOLERANCE * mpp:
        return mpp, ()
    message = (
        f"pixels are not square ({x:g} x {y:g} um): distances in um use the mean of {mpp:g} um "
        f"per pixel"
    )
    return mpp, (Finding(FindingKind.FALLBACK, message, path=path),)


def tag_mpp(
    tags: tuple[float | None, float | None], path: Path
) -> tuple[float | None, tuple[Finding, ...]]:
    """Return the micrometres per pixel across and down that tags state, if they are plausible."""
    low, high = PLAUSIBLE_MPP
    given = [mpp for mpp in tags if mpp is not None]
    if not given or not all(low <= mpp <= high for mpp in given):
        message = "the image has no micrometres per pixel (MPP): distances are given in px only"
        return None, (Finding(FindingKind.NO_MPP, message, path=path),)
    mpp, findings = mean_mpp(*tags, path)
    message = f"micrometres per pixel ({mpp:g}) were taken from the TIFF resolution tags"
    return mpp, (Finding(FindingKind.FALLBACK, message, path=path), *findings)


def property_tags(properties: Mapping[str, str]) -> tuple[float | None, float | None]:
    """Return the micrometres per pixel across and down by the properties of OpenSlide."""
    um = micrometres(properties.get("tiff.ResolutionUnit"))
    um = um or _imagej_um(_entries_in(properties.get("tiff.ImageDescription", "")))
    x = positive(properties.get("tiff.XResolution"))
    y = positive(properties.get("tiff.YResolution"))
    return (um / x if um and x else None, um / y if um and y else None)


def resolution_tags(path: Path) -> tuple[float | None, float | None]:
    """Return the micrometres per pixel across and down by the tags of a TIFF; None if unknown."""
    if file_kind(path) != "tiff":
        return None, None
    with decoding(path, WHAT), open_tiff(path) as tiff:
        with foreign_decoder():
            tags, description = tiff.pages[0].tags, tiff.pages[0].description
        um = micrometres(_TIFF_UNITS.get(tag_value(tags, "ResolutionUnit")))
        um = um or _imagej_um(_entries_in(description))
        x, y = _ratio(tag_value(tags, "XResolution")), _ratio(tag_value(tags, "YResolution"))
    return (um / x if um and x else None, um / y if um and y else None)


def imagej_spacing_um(path: Path) -> tuple[float | None, float | None, float | None]:
    """Return the distances of voxels (z, y, x) that ImageJ wrote into a TIFF; None if unknown."""
    um = _imagej_um(stated := imagej_entries(path))
    if um is None:
        return None, None, None
    x, y = resolution_tags(path)
    z = positive(stated.get("spacing"))
    return None if z is None else z * um, y, x


def imagej_entries(path: Path) -> dict[str, str]:
    """Return what ImageJ wrote about a TIFF; empty for other files."""
    with suppress(*DECODING_ERRORS), foreign_decoder():
        if file_kind(path) == "tiff":
            with open_tiff(path) as tiff:
                return _entries_in(tiff.pages[0].description)
    return {}


def _entries_in(description: str) -> dict[str, str]:
    if not description.startswith("ImageJ="):
        return {}
    pairs = (line.partition("=") for line in description.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _imagej_um(stated: Mapping[str, str]) -> float | None:
    """Return the micrometres of ImageJ's unit of length, in which its resolution is; else None."""
    return micrometres(stated.get("unit", "").casefold())


def tag_value(tags: Any, name: str) -> Any:
    """Return the value of a tag of a TIFF page; None if it is absent."""
    return tags[name].value if name in tags else None


def _ratio(value: Any) -> float | None:
    match value:
        case (numerator, denominator) if denominator and numerator > 0:
            return float(numerator / denominator)
    return None


def positive(text: str | None) -> float | None:
    """Return the positive number that a text states, or None."""
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if value > 0 and math.isfinite(value) else None
