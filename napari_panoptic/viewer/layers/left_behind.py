"""Hidden layers that a desk has left in the window, while another one shows its own."""

from __future__ import annotations

from typing import Any

from napari_panoptic.viewer.layers.owned import is_own


def take_unit(viewer: Any, unit: str) -> None:
    """Set the unit of the hidden layers of all desks to the current one.

    napari warns, and shows no scale any more, if units of layers differ,
    also of hidden ones; the desk that shows them again sets its own unit.

    Parameters
    ----------
    viewer
        The viewer; what others put into it is left alone.
    unit
        Such as ``pixel`` or ``micrometer``.
    """
    for layer in viewer.layers:
        if _is_left_behind(layer) and {str(own) for own in layer.units} != {unit}:
            layer.units = (unit,) * layer.ndim


def _is_left_behind(layer: Any) -> bool:
    return is_own(layer) and not layer.visible
