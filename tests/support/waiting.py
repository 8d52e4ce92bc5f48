"""Waiting until something is so, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 240.0
"""Longer than anything takes on a busy machine."""


def wait_until(
    condition: Callable[[], object],
    message: str | Callable[[], object] = "it did not happen in time",
    *,
    meanwhile: Callable[[], object] = lambda: None,
    patience_s: float = PATIENCE_S,
    pause_s: float = 0.002,
) -> None:
    """Wait until a condition is true; fail with a message, or what it returns, if it never is.

    `meanwhile` is called between two looks, such as to handle events of a window.
    """
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, message() if callable(message) else message
        meanwhile()
        time.sleep(pause_s)
