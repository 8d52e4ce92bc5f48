"""What napari compiles when the first shape is drawn, compiled before that.

It takes seconds, in which the window would stand still: clicks that are queued
meanwhile arrive at once, as a double click that closes the polygon.
"""

from __future__ import annotations

from threading import Event

import numpy as np
from napari.layers import Shapes

_READY = Event()
_SQUARE = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 9.0], [9.0, 0.0]])


def are_shapes_ready() -> bool:
    """Return whether shapes can be drawn without compiling anything."""
    return _READY.is_set()


def prepare_shapes() -> None:
    """Draw shapes on a layer that is not shown. For workers."""
    if _READY.is_set():
        return
    layer = Shapes(ndim=2)
    for kind in ("rectangle", "ellipse", "line", "path", "polygon"):
        corners = _SQUARE[:2] if kind == "line" else _SQUARE
        layer.add(corners, shape_type=kind)
    for n in (2, 3):  # while a polygon is being drawn
        layer.add(_SQUARE[:n], shape_type="path")
    for corners in (_SQUARE[:3], np.concatenate([_SQUARE, [[4.0, 4.0]]])):
        for order in ("C", "F"):
            layer.add(np.asarray(corners, order=order), shape_type="polygon")
    layer.data = [(corners.copy(), "polygon") for corners in (_SQUARE, _SQUARE + 20)]
    layer.selected_data = {0}
    layer.remove_selected()
    layer.get_value((4.0, 4.0))
    _READY.set()
