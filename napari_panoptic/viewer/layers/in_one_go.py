"""Several changes of a layer or of the camera, followed by the window once.

napari slices a layer's data and sends them to the graphics card after each
change, and for other data rebuilds the colour table and its shaders although
their type is the same. The private names are used here only, and without them
the same is shown, merely later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from napari.layers import Layer
from numpy.typing import NDArray

from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.viewer.layers.recolour import refresh_held


@contextmanager
def drawn_once(layer: Layer) -> Iterator[None]:
    """Let several changes of a layer slice its data once, after the last of them.

    The layer keeps its eye as it is: each time that one opens or closes, napari
    arranges all layers again, which takes longer than filling one.
    """
    with refresh_held(layer):
        yield
    layer.refresh()


def put_data(
    layer: Any,
    data: NDArray[Any],
    pixels: PixelSize,
    *,
    origin_yx_px: tuple[float, float] = (0, 0),
) -> None:
    """Set the data of a labels layer.

    Data of the same type are no news to colours and controls: who listens is
    then reported by the event ``set_data`` alone.

    Parameters
    ----------
    layer
        A labels layer.
    data
        Its new labels (y, x).
    pixels
        How large they are, and where they lie.
    origin_yx_px
        Where the first pixel of the data lies in the region.
    """
    is_same_type = layer.data.dtype == data.dtype
    with layer.events.data.blocker() if is_same_type else nullcontext():
        layer.data = data
    layer.editable = False
    layer.units = pixels.units
    is_same_scale = tuple(layer.scale) == pixels.scale
    # Also where it stays: napari then forgets how far the former data reached.
    with layer.events.scale.blocker() if is_same_scale else nullcontext():
        layer.scale = np.array(pixels.scale)
    origin = pixels.to_world(origin_yx_px)
    if tuple(layer.translate) != origin:
        layer.translate = origin


def moved_once(viewer: Any) -> AbstractContextManager[None]:
    """Let several changes of the camera be followed after the last of them."""
    try:
        camera = viewer.window._qt_viewer.canvas.camera._view.camera
    except AttributeError:
        return nullcontext()
    is_known = hasattr(camera, "_block_updates") and hasattr(camera, "view_changed")
    return _held(camera) if is_known else nullcontext()


@contextmanager
def _held(camera: Any) -> Iterator[None]:
    before = camera.get_state()
    with camera._block_updates():
        yield
    if camera.get_state() != before:
        camera.view_changed()
