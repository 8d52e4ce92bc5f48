"""Timers that end with what they serve."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from qtpy.QtCore import QObject, QTimer


def single_shot(
    interval_ms: int, slot: Callable[[], object], parent: QObject | None = None
) -> QTimer:
    """Return a timer that calls a slot once, a while after its last start.

    Unlike superqt's `qdebounced` it can be stopped for good, and does not run on
    after the call.

    Parameters
    ----------
    interval_ms
        How long after.
    slot
        Called on the main thread. Qt keeps an object whose method it is weakly.
    parent
        Ends the timer with itself; without one, pass the timer to `stop_timers`.
    """
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    timer.timeout.connect(slot)
    return timer


def stop_timers(*timers: QTimer) -> None:
    """Stop timers whose owner goes away; they may be gone with their application.

    Garbage is collected in whatever thread needs memory. Unlike PyQt, PySide deletes
    a timer there, and Qt would still call one that was running.
    """
    for timer in timers:
        with suppress(RuntimeError):
            timer.stop()
