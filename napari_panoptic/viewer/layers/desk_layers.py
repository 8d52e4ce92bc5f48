"""Which layers of a viewer are the desk's, and what they are called."""

from __future__ import annotations

from typing import Any

from napari.layers import Layer

from napari_panoptic.io.images import SlideImage
from napari_panoptic.nuclei.display.object_layers import PixelSize

ROLE = "napari-panoptic role"
"""Owner of the layers of the desks of nuclei and of detections (see `owned`)."""
IMAGE = "image"
AMBIGUOUS = "ambiguous areas"
REFERENCE = "reference"
SELECTED = "selected object"


def set_unless_so(layer: Layer, name: str, value: object) -> None:
    """Set an attribute if it differs: napari slices again whenever one is set."""
    if getattr(layer, name) != value:
        setattr(layer, name, value)


def image_layer_data(
    image: SlideImage, pixels: PixelSize | None = None
) -> tuple[Any, dict[str, Any], str]:
    """Return data, options and type of the layer that shows a region's pixels.

    Parameters
    ----------
    image
        The pixels.
    pixels
        How large they are and where they lie; as the image says if None.
    """
    several = len(image.levels) > 1
    pixels = pixels or PixelSize.from_mpp(image.mpp)
    options = {
        "name": IMAGE,
        "rgb": True,
        "multiscale": several,
        "scale": pixels.scale,
        "translate": pixels.origin,
        "units": pixels.units,
    }
    return (list(image.levels) if several else image.levels[0]), options, "image"
