"""Connections to workers in other threads that do not keep the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref


def connect_worker(worker: Any, **slots: Callable[..., object]) -> None:
    """Connect slots to a worker's signals, with the worker as the first argument.

    A slot that kept the worker itself would close a circle through the worker's
    signals: PySide, unlike PyQt, cannot see such circles and never frees them.

    Parameters
    ----------
    worker
        A worker of superqt that was not started yet.
    **slots
        Signal -> what is called on the main thread.
    """
    known = ref(worker)
    for signal, slot in slots.items():
        getattr(worker, signal).connect(_told(known, slot))


def _told(known: ref[Any], slot: Callable[..., object]) -> Callable[..., None]:
    def tell(*told: object) -> None:
        slot(known(), *told)

    return tell
