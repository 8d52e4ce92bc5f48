"""Walks along the lines of contours, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.kernels import trace
from tests.support.examples import seeds


def random_rings(seed: int) -> list[NDArray[np.int32]]:
    """Return rings that come back to some of their vertices."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 5, (n, 2)).astype(np.int32) for n in rng.integers(1, 12, 5)]


@pytest.mark.parametrize("seed", seeds(20))
def test_loops_are_cut_off(seed: int) -> None:
    rings = random_rings(seed)
    vertices, start = np.concatenate(rings), np.cumsum([0, *map(len, rings)])
    earlier, expected = np.full(len(vertices), -1), []
    for number, ring in enumerate(rings):
        walk: list[tuple[int, ...]] = []
        last: dict[tuple[int, ...], int] = {}
        for i, vertex in enumerate(map(tuple, ring.tolist()), start[number]):
            # An equal one that is still on the walk, as the caller knows corners to be.
            if vertex in walk:
                earlier[i] = last[vertex]
                corner = walk.index(vertex)
                expected.append((number, walk[corner:]))
                walk = walk[: corner + 1]
            else:
                last[vertex] = i
                walk.append(vertex)
        expected.append((number, walk))
    left, starts, source = trace.cut_loops(vertices, start, earlier)
    pieces = np.split(left, starts[1:-1])
    found = [(int(n), [tuple(v) for v in p.tolist()]) for n, p in zip(source, pieces, strict=True)]
    assert found == expected


@pytest.mark.parametrize("seed", seeds(20))
def test_lines_that_run_twice_through_a_pixel_name_all_their_pixels(seed: int) -> None:
    rings = random_rings(seed)
    xy, start = np.concatenate(rings), np.cumsum([0, *map(len, rings)])
    edges = [np.roll(ring, -1, axis=0) - ring for ring in rings]
    steps = [np.maximum(1, np.gcd(*edge.T)).astype(np.int64) for edge in edges]
    found, starts = trace.name_line_pixels(xy, start, np.concatenate(steps))
    for k, (ring, edge, count) in enumerate(zip(rings, edges, steps, strict=True)):
        line = np.concatenate(
            [v + e // n * np.arange(n)[:, None] for v, e, n in zip(ring, edge, count, strict=True)]
        )
        has_twins = len(np.unique(line, axis=0)) < len(line)
        expected = line if has_twins else ring
        np.testing.assert_array_equal(found[starts[k] : starts[k + 1]], expected)
