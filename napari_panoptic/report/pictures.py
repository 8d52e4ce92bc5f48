"""Pictures of failures: how they are encoded, and how a page shows them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.palette import STATUS_COLOURS, hex_colour
from napari_panoptic.io.images.slides import SlideImage, read_image
from napari_panoptic.tables.markup import Child, Html, data_uri, element
from napari_panoptic.values.vocabulary import Status

_QUALITY = 82


def readable_image(path: Path | None, item: str | None = None) -> SlideImage | None:
    """Open an image; None if there is none, or it cannot be read: outlines are drawn on grey."""
    try:
        return None if path is None else read_image(path, item)
    except (PanopticError, OSError):
        return None


def jpeg(picture: Image.Image, *, quality: int = _QUALITY) -> bytes:
    """Encode a picture. Colours are not subsampled, since outlines are thin."""
    try:
        return _encoded(picture, quality, is_optimized=True)
    except OSError:
        # Pillow optimizes within a buffer of a byte per pixel: too few for noise.
        return _encoded(picture, quality, is_optimized=False)


def _encoded(picture: Image.Image, quality: int, *, is_optimized: bool) -> bytes:
    target = io.BytesIO()
    picture.convert("RGB").save(
        target, "JPEG", quality=quality, subsampling=0, optimize=is_optimized
    )
    return target.getvalue()


def outlined(
    tissue: NDArray[np.uint8], outlines: NDArray[np.uint8], *, is_smooth: bool = True
) -> Image.Image:
    """Return the RGB picture of tissue, enlarged to the size of its outlines, beneath them.

    Parameters
    ----------
    tissue
        uint8 (y, x, 3).
    outlines
        uint8 (y, x, 4), as of `napari_panoptic.display.outlines.draw_outlines`.
    is_smooth
        Whether to interpolate between the pixels of the tissue.
    """
    height, width, _ = outlines.shape
    way = Image.Resampling.BILINEAR if is_smooth else Image.Resampling.NEAREST
    ground = Image.fromarray(tissue).resize((width, height), way).convert("RGBA")
    return Image.alpha_composite(ground, Image.fromarray(outlines)).convert("RGB")


def figure(content: bytes, alt: str, *caption: Child) -> Html:
    """Return the picture of a failure with its caption; all are shown in the same size."""
    image = element("img", src=data_uri("image/jpeg", content), alt=alt, width="168")
    return element("figure", image, element("figcaption", *caption))


def group(title: Child, figures: Iterable[Child]) -> Html:
    """Return pictures of failures of one kind, or in one place, under a heading."""
    return element(
        "div",
        element("h4", title),
        element("div", *figures, class_="gallery"),
        class_="cause",
    )


def legend(words: Mapping[Status, str]) -> Html:
    """Explain the colours of outlines."""
    items = [
        element("span", element("span", class_="stripe", style=_stripe(status)), text)
        for status, text in words.items()
    ]
    return element("div", *items, class_="legend")


def _stripe(status: Status) -> str:
    return f"border-top:4px solid {hex_colour(STATUS_COLOURS[status])}"
