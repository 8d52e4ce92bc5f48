"""Which events count: plain clicks on the canvas, and changes that the user made."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

CLICK_TOLERANCE_PX = 3
"""How far the mouse may move on the screen between press and release."""


def is_plain_click(event: Any) -> Generator[None, None, bool]:
    """Follow a press to its release, and return whether it was a plain click.

    Plain: with the left button, without Ctrl, Shift or Alt, and never further from its
    start than the tolerance. A drag that returns to its start is a drag.

    Parameters
    ----------
    event
        The mouse event of napari's drag callback, which changes with every step.
    """
    start, furthest = event.pos, 0.0
    is_plain = event.button == 1 and not event.modifiers
    yield
    while event.type == "mouse_move":
        furthest = max(furthest, *(abs(a - b) for a, b in zip(event.pos, start, strict=True)))
        yield
    return is_plain and furthest <= CLICK_TOLERANCE_PX


class Within:
    """True inside its with-blocks, also after a nested one; False outside."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        """Count one more block."""
        self._depth += 1

    def __exit__(self, *_error: object) -> None:
        """Count one less."""
        self._depth -= 1

    def __bool__(self) -> bool:
        """Return whether a block is running."""
        return self._depth > 0
