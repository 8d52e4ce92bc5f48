"""A correction of napari: textures of removed layers are freed in the canvas that owns them.

After layers were removed, napari 0.9 flushes the commands that free their textures without
making its canvas current. Where Qt last drew another window, OpenGL then frees the textures of
that window which have the same numbers, and the next write to one of them aborts the program.
Closing one of two windows is enough. The private names are used here only; without them napari
does as it always did.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from typing import Any

FLUSH = "_clean_and_update_scenegraph"


def free_textures_in_own_context(viewer: Any) -> None:
    """Make every canvas of napari current before it frees textures; repeated calls do nothing.

    The correction covers all windows, because closing any of them can damage the others. It
    stays when a desk is closed.

    Parameters
    ----------
    viewer
        A viewer with a window.
    """
    with suppress(AttributeError):
        canvas = type(viewer.window._qt_viewer.canvas)
        flush = getattr(canvas, FLUSH)
        if not hasattr(flush, "__wrapped__"):
            setattr(canvas, FLUSH, _in_own_context(flush))


def _in_own_context(flush: Any) -> Any:
    @wraps(flush)
    def flush_in_own_context(canvas: Any) -> Any:
        # The native canvas may be gone (RuntimeError) or be named differently.
        with suppress(AttributeError, RuntimeError):
            canvas.native.makeCurrent()
        return flush(canvas)

    return flush_in_own_context
