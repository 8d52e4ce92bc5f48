"""Timers that end with what they serve."""

from __future__ import annotations

from contextlib import suppress

from qtpy.QtCore import QTimer


def stop_timers(*timers: QTimer) -> None:
    """Stop timers whose owner goes away; they may be gone with their application.

    Garbage is collected in whatever thread needs memory. Unlike PyQt, PySide deletes
    a timer there, and Qt would still call one that was running.
    """
    for timer in timers:
        with suppress(RuntimeError):
            timer.stop()
