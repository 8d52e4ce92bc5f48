"""Tests of connected components."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import coo_array, csgraph

from napari_panoptic.statistics.graphs import connected_components


@pytest.mark.parametrize("n_edges", [0, 1, 5, 20, 64, 65, 300])
def test_components_are_those_of_scipy(n_edges: int) -> None:
    rng = np.random.default_rng(n_edges)
    n = 40 + n_edges
    a, b = rng.integers(n, size=(2, n_edges))
    graph = coo_array((np.ones(n_edges), (a, b)), shape=(n, n))
    expected = csgraph.connected_components(graph, directed=False)[1]
    assert_array_equal(connected_components(a, b, n), expected)


def test_a_long_chain_is_one_component() -> None:
    nodes = np.arange(64)[::-1]
    assert_array_equal(connected_components(nodes[:-1], nodes[1:], 65), [0] * 64 + [1])


def test_a_graph_without_nodes_has_no_component() -> None:
    none = np.zeros(0, np.int64)
    assert len(connected_components(none, none, 0)) == 0
