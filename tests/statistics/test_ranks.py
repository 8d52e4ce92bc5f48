from __future__ import annotations

import numpy as np

from napari_panoptic.statistics.ranks import competition_ranks, ranked_teams


def test_equal_scores_share_a_rank() -> None:
    ranks = competition_ranks([[0.5, np.nan], [0.7, 0.1], [0.5, 0.2], [0.4, np.nan]])
    np.testing.assert_array_equal(ranks, [[2, 0], [1, 2], [2, 1], [4, 0]])
    assert competition_ranks([]).tolist() == []
    assert competition_ranks(np.zeros((0, 3))).shape == (0, 3)


def test_a_rounding_error_decides_no_rank() -> None:
    assert competition_ranks([0.3, 0.1 + 0.2, 0.4]).tolist() == [2, 2, 1]
    assert competition_ranks([0.3, 0.3 + 1e-9, 0.4]).tolist() == [3, 2, 1]


def test_columns_are_ranked_by_themselves() -> None:
    scores = np.random.default_rng(0).integers(0, 4, (6, 5)) / 4
    ranks = competition_ranks(scores)
    for column in range(5):
        expected = [1 + sum(scores[:, column] > own) for own in scores[:, column]]
        assert ranks[:, column].tolist() == expected


def test_teams_without_a_figure_have_no_rank() -> None:
    assert ranked_teams({"a": 0.2, "b": np.nan, "c": 0.7, "d": 0.2}) == {"a": 2, "c": 1, "d": 2}
