"""Layers of a desk: they stay in place, and go when the desk is closed."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from napari.layers import Layer

from napari_panoptic.viewer.kit.shown import show_info

STAYS = (
    "Layers of this window stay where they are: moved, turned or stretched, a layer would show its "
    "objects in other places than those that figures, lists and files are about."
)

_OF_DESKS: WeakSet[Layer] = WeakSet()


def keep_in_place(layer: Layer) -> None:
    """Reject napari's transform tool on a layer of a desk; repeated calls do nothing.

    Every layer that a desk makes or takes over passes here, so this is also where it is noted
    which layers go with the desk. Copies that the user made are none of them.

    Parameters
    ----------
    layer
        The layer.
    """
    if layer not in _OF_DESKS:
        _OF_DESKS.add(layer)
        # Last: the buttons of napari's controls must hear of the one tool before the other.
        layer.events.mode.connect(_put_down, position="last")


def remove_desk_layers(viewer: Any) -> None:
    """Remove the layers of a desk that is closed; those of others stay.

    Parameters
    ----------
    viewer
        The viewer that the desk was opened in.
    """
    own = [layer for layer in viewer.layers if layer in _OF_DESKS]
    if own:
        with viewer.layers.batched_update():
            for layer in own:
                viewer.layers.remove(layer)


def _put_down(event: Any) -> None:
    layer = event.source
    if str(layer.mode) == "transform":
        layer.mode = "pan_zoom"
        show_info(STAYS)
