"""A cache with a limit in bytes, for whatever was decoded or parsed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from threading import RLock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """Values of which the least recently used are dropped beyond a limit. Thread-safe.

    Parameters
    ----------
    most_bytes
        The limit.
    keeps_last
        Whether the value that was added last is kept, however large it is.
    is_pinned
        Returns whether the value of a key must stay for now.
    on_drop
        Called with each dropped value.
    """

    def __init__(
        self,
        most_bytes: int,
        *,
        keeps_last: bool = False,
        is_pinned: Callable[[K], bool] = lambda _key: False,
        on_drop: Callable[[V], object] = lambda _value: None,
    ) -> None:
        self._most_bytes, self._keeps_last = most_bytes, keeps_last
        self._is_pinned, self._on_drop = is_pinned, on_drop
        self._kept: dict[K, tuple[V, int, Hashable]] = {}
        self._n_bytes = 0
        self._lock = RLock()

    @property
    def n_bytes(self) -> int:
        """Size of all values together."""
        return self._n_bytes

    def known(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values that are there, which were then used last."""
        with self._lock:
            there = [key for key in keys if key in self._kept]
            for key in there:
                self._kept[key] = self._kept.pop(key)
            return {key: self._kept[key][0] for key in there}

    def add(self, key: K, value: V, n_bytes: int, *, version: Hashable = None) -> None:
        """Add a value, in place of an earlier one of this key, and drop others if necessary."""
        with self._lock:
            self._drop([key] if key in self._kept else [])
            self._kept[key] = value, n_bytes, version
            self._n_bytes += n_bytes
            if self._n_bytes > self._most_bytes:
                others = list(self._kept)
                self._drop(others[:-1] if self._keeps_last else others, self._most_bytes)

    def current(
        self,
        key: K,
        make: Callable[[], V],
        n_bytes: Callable[[V], int],
        *,
        version: Hashable = None,
    ) -> V:
        """Return the value of a key; make it if it is missing or has another version.

        One value is made at a time, while other threads wait. Errors are raised again by each
        call.
        """
        with self._lock:
            if key not in self._kept or self._kept[key][2] != version:
                value = make()
                self.add(key, value, n_bytes(value), version=version)
            return self.known([key])[key]

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._drop(list(self._kept))

    def _drop(self, keys: Iterable[K], least_bytes: int = -1) -> None:
        for key in keys:
            if self._n_bytes <= least_bytes:
                return
            if least_bytes < 0 or not self._is_pinned(key):
                value, n_bytes, _ = self._kept.pop(key)
                self._n_bytes -= n_bytes
                self._on_drop(value)
