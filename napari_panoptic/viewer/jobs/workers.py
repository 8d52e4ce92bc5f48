"""Connections to workers in other threads that keep neither the workers nor their receivers."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import WeakMethod, ref


def connect_worker(worker: Any, **slots: Callable[..., object]) -> None:
    """Connect slots to a worker's signals, with the worker as the first argument.

    A slot that kept the worker itself would close a circle through the worker's
    signals: PySide, unlike PyQt, cannot see such circles and never frees them. The
    signals of a worker can also outlive it, so they keep no object whose method is
    a slot; a method of an object that is gone is not called.

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
    receiver = WeakMethod(slot) if isinstance(slot, MethodType) else lambda kept=slot: kept

    def tell(*told: object) -> None:
        if (called := receiver()) is not None:
            called(known(), *told)

    return tell
