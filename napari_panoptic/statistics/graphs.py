"""Connected components, and pairs grouped by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
_FEW_EDGES = 64
"""With more edges, SciPy is faster."""


def connected_components(a: NDArray[np.integer], b: NDArray[np.integer], n: int) -> IntArray:
    """Return int64 (n,): the component, from 0, of each of n nodes.

    Parameters
    ----------
    a, b
        (k,): the nodes at the two ends of each edge.
    n
        Number of nodes.
    """
    if len(a) <= _FEW_EDGES:
        return _few_components(a, b, n)
    from scipy.sparse import coo_array, csgraph

    graph = coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n))
    return csgraph.connected_components(graph, directed=False)[1].astype(np.int64)  # type: ignore[no-any-return]


def chosen_components(
    a: NDArray[np.integer], b: NDArray[np.integer], is_chosen: NDArray[np.bool_]
) -> tuple[IntArray, int]:
    """Return the connected components that have a chosen node, by number.

    Parameters
    ----------
    a, b
        (k,): the nodes at the two ends of each edge.
    is_chosen
        bool (n,): of each node.

    Returns
    -------
    number
        int64 (n,): the component of each node, from 0; -1 if none of its nodes is chosen.
    count
        Number of these components.
    """
    if not is_chosen.any():
        return np.full(len(is_chosen), -1, np.int64), 0
    component = connected_components(a, b, len(is_chosen))
    chosen = np.unique(component[is_chosen])
    number = np.full(len(is_chosen), -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    return number[component], len(chosen)


def pairs_by_component(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> list[IntArray]:
    """Group pairs that compete with each other, directly or by a chain of pairs.

    Parameters
    ----------
    rows, columns
        (k,): the two objects of each pair, numbered separately from 0.

    Returns
    -------
    list
        int64 (m,) each: the positions of the pairs of one component, ascending.
    """
    if not len(rows):
        return []
    n_rows = int(rows.max()) + 1
    component = connected_components(rows, n_rows + columns, n_rows + int(columns.max()) + 1)
    order = np.argsort(component[rows], kind="stable")
    starts = np.flatnonzero(np.diff(component[rows][order], prepend=-1))
    return np.split(order, starts[1:])


def _few_components(a: NDArray[np.integer], b: NDArray[np.integer], n: int) -> IntArray:
    """Return the components of a graph with few edges, numbered by their first nodes."""
    parent: dict[int, int] = {}

    def first(node: int) -> int:
        while node in parent:
            node = parent[node]
        return node

    for ends in zip(a.tolist(), b.tolist(), strict=True):
        one, other = sorted(map(first, ends))
        if one != other:
            parent[other] = one
    firsts = np.arange(n)
    firsts[list(parent)] = [first(node) for node in parent]
    number = np.cumsum(firsts == np.arange(n)) - 1
    component: IntArray = number[firsts]
    return component
