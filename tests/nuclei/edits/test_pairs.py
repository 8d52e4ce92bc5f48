"""The pairs under edit, and which objects chains of overlaps join."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.nuclei.edits.pairs import Joined, LivePairs
from napari_panoptic.nuclei.overlap import OverlapTable, overlap_table
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair

N = 12
Shared = dict[tuple[int, int], list[int]]


def empty_table() -> OverlapTable:
    nothing = LabelImage.empty((1, 1), ("Epithelial",))
    return overlap_table(LabelPair(nothing, nothing))


def no_pairs() -> LivePairs:
    return LivePairs(empty_table())


def change_at_random(rng: np.random.Generator, pairs: LivePairs, shared: Shared) -> None:
    """Let some pairs share more or less, some of them nothing any more."""
    chosen = {(int(r), int(p)) for r, p in rng.integers(0, N, (int(rng.integers(0, 6)), 2))}
    chosen |= {pair for pair in shared if rng.random() < 0.15}
    keys, change, void_change = [], [], []
    for pair in rng.permutation(sorted(chosen)).reshape(-1, 2).tolist():
        before = shared.get(tuple(pair), [0, 0])
        after = [0, 0] if rng.random() < 0.4 else sorted(rng.integers(1, 9, 2).tolist())[::-1]
        keys.append(((pair[0] + 1) << 32) | (pair[1] + 1))
        change.append(after[0] - before[0])
        void_change.append(after[1] - before[1])
        shared[tuple(pair)] = after
        if not after[0]:
            del shared[tuple(pair)]
    pairs.add(*(np.array(column, np.int64) for column in (keys, change, void_change)))


def joined_slowly(shared: Shared, rows: set[int], columns: set[int]) -> tuple[set[int], set[int]]:
    """Follow overlaps until nothing is new."""
    while True:
        more_rows = rows | {r for r, p in shared if p in columns}
        more_columns = columns | {p for r, p in shared if r in rows}
        if (more_rows, more_columns) == (rows, columns):
            return rows, columns
        rows, columns = more_rows, more_columns


def assert_pairs(found: OverlapTable | Joined, shared: Shared) -> None:
    listed = zip(
        found.pair_reference.tolist(),
        found.pair_prediction.tolist(),
        found.intersection.tolist(),
        found.void_intersection.tolist(),
        strict=True,
    )
    assert list(listed) == [(*pair, *shared[pair]) for pair in sorted(shared)]
    assert found.pair_reference.dtype == found.pair_prediction.dtype == np.int32


def all_of(pairs: LivePairs) -> Joined:
    """Give all pairs without having a table frozen."""
    objects = np.arange(N)
    joined = pairs.joined_to(objects, objects, (N, N), limit=N + 1)
    assert joined is not None
    return joined


def rows_of(chosen: set[int]) -> NDArray[np.int64]:
    return np.array(sorted(chosen), np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_pairs_come_and_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    empty = empty_table()
    pairs, shared = LivePairs(empty), {}
    held: list[tuple[OverlapTable, Shared]] = []
    for _ in range(40):
        change_at_random(rng, pairs, shared)
        if rng.random() < 0.5:  # else what comes next changes what is there
            held.append((pairs.table(empty.reference, empty.prediction), dict(shared)))
        assert_pairs(all_of(pairs), shared)
    for table, then in held:
        assert_pairs(table, then)


@pytest.mark.parametrize("seed", range(20))
def test_joined_objects_are_those_that_a_slow_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, shared = no_pairs(), {}
    for _ in range(30):
        change_at_random(rng, pairs, shared)
        start = [{int(k) for k in rng.integers(0, N, int(rng.integers(0, 3)))} for _ in range(2)]
        rows, columns = joined_slowly(shared, *start)
        objects = [rows_of(side) for side in start]
        joined = pairs.joined_to(*objects, (N, N), limit=N + 1)
        assert joined is not None
        assert (set(joined.reference.tolist()), set(joined.prediction.tolist())) == (rows, columns)
        assert joined.reference.tolist() == sorted(rows)
        assert_pairs(joined, {pair: px for pair, px in shared.items() if pair[0] in rows})
        for limit in range(1, N + 1):
            is_found = pairs.joined_to(*objects, (N, N), limit=limit) is not None
            assert is_found == (max(len(rows), len(columns)) < limit)


def test_tables_that_were_handed_out_stay_as_they_are() -> None:
    empty = empty_table()
    pairs = LivePairs(empty)
    one = np.array([1], np.int64)
    pairs.add((one << 32) | 1, 5 * one, one)
    held = pairs.table(empty.reference, empty.prediction)
    pairs.add((one << 32) | 1, one, one)
    held_later = pairs.table(empty.reference, empty.prediction)
    pairs.add((one << 32) | 2, one, one)
    pairs.add((one << 32) | 1, -6 * one, -2 * one)
    assert len(empty.intersection) == 0
    assert (held.intersection.tolist(), held.void_intersection.tolist()) == ([5], [1])
    assert (held_later.intersection.tolist(), held_later.void_intersection.tolist()) == ([6], [2])
    assert held.pair_reference.tolist() == held_later.pair_reference.tolist() == [0]
    assert all_of(pairs).pair_prediction.tolist() == [1]


def test_there_is_room_for_any_number_of_new_pairs() -> None:
    empty = empty_table()
    pairs = LivePairs(empty)
    many = np.arange(1, 5001)
    for few in np.array_split(np.random.default_rng(1).permutation(many), 7):
        pairs.add((few << 32) | (5001 - few), few, few // 2)
    table = pairs.table(empty.reference, empty.prediction)
    assert table.pair_reference.tolist() == (many - 1).tolist()
    assert table.pair_prediction.tolist() == (5000 - many).tolist()
    assert table.intersection.tolist() == many.tolist()
    assert table.void_intersection.tolist() == (many // 2).tolist()
