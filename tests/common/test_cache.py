"""The least recently used values are dropped beyond a limit in bytes."""

from __future__ import annotations

import pytest

from napari_panoptic.common.cache import ByteCache


def test_the_least_recently_used_are_dropped() -> None:
    dropped: list[str] = []
    cache: ByteCache[str, str] = ByteCache(30, on_drop=dropped.append)
    for name in "abc":
        cache.add(name, name.upper(), 10)
    assert cache.known("ax") == {"a": "A"}
    cache.add("d", "D", 10)
    assert dropped == ["B"]
    assert cache.known("abcd") == {"a": "A", "c": "C", "d": "D"}
    assert cache.n_bytes == 30
    cache.add("e", "E", 31)
    assert cache.known("acde") == {}
    assert cache.n_bytes == 0
    assert dropped == ["B", "A", "C", "D", "E"]


def test_a_value_replaces_that_of_the_same_key() -> None:
    cache: ByteCache[str, int] = ByteCache(30)
    cache.add("a", 1, 25)
    cache.add("a", 2, 30)
    assert cache.known("a") == {"a": 2}
    assert cache.n_bytes == 30
    cache.clear()
    assert cache.known("a") == {}
    assert cache.n_bytes == 0


def test_the_last_value_and_pinned_ones_may_exceed_the_limit() -> None:
    last: ByteCache[str, int] = ByteCache(30, keeps_last=True)
    last.add("a", 1, 10)
    last.add("b", 2, 99)
    assert last.known("ab") == {"b": 2}
    pinned: ByteCache[str, int] = ByteCache(10, is_pinned="ac".__contains__)
    for name in "abcd":
        pinned.add(name, 1, 10)
    assert set(pinned.known("abcd")) == {"a", "c"}


def test_values_are_made_once_per_version() -> None:
    made: list[int] = []
    cache: ByteCache[str, int] = ByteCache(30)

    def make() -> int:
        made.append(len(made))
        return made[-1]

    for version in (1, 1, 2, 2):
        cache.current("a", make, lambda _value: 8, version=version)
    assert made == [0, 1]
    assert cache.n_bytes == 8

    def fail() -> int:
        raise ValueError("damaged")

    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            cache.current("b", fail, lambda _value: 8)
