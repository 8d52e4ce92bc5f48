"""Layers that stay where they are: figures are of places in the image that they lie on."""

from __future__ import annotations

from typing import Any

from napari.layers import Layer

from napari_panoptic.viewer.shown import show_info

STAYS = (
    "Layers of this window stay where they are: moved, turned or stretched, a layer would show its "
    "objects in other places than those that figures, lists and files are about."
)


def keep_in_place(layer: Layer) -> None:
    """Put napari's tool that moves, turns and stretches a layer down whenever it is taken.

    Parameters
    ----------
    layer
        A layer of a desk; one that is left behind stays in place, too.
    """
    # Last: the buttons of napari's controls must hear of the one tool before the other.
    layer.events.mode.connect(_put_down, position="last")


def _put_down(event: Any) -> None:
    layer = event.source
    if str(layer.mode) == "transform":
        layer.mode = "pan_zoom"
        show_info(STAYS)
