"""Ranks of teams from their mean Dice in each structure."""

from __future__ import annotations

import numpy as np
import pandas as pd

from napari_panoptic.raters.ranking import by_structure, by_team


def cases(dice: dict[str, list[float]]) -> pd.DataFrame:
    """Make the table of cases that raters are ranked from: team -> Dice of each case."""
    return pd.DataFrame(
        [
            {
                "team": team,
                "structure": "lesion",
                "case": f"case{number}",
                "prediction": "there",
                "dice": value,
                "left_out_dice": value,
                "raters_lowest": 0.5,
                "raters_highest": 0.9,
                "standing": "within",
                "brier": 0.1,
                "brier_least": 0.1,
                "raters": 3,
            }
            for team, values in dice.items()
            for number, value in enumerate(values)
        ]
    )


def test_the_order_of_cases_does_not_rank_teams() -> None:
    assert np.mean([0.1, 0.2, 0.3]) != np.mean([0.3, 0.2, 0.1])  # what the ranks were made of
    table = cases({"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.1, 0.1, 0.1]})
    ranking = by_team(by_structure(table), table).set_index("team")
    assert ranking["rank"].to_dict() == {"a": 1, "b": 1, "c": 3}
    assert ranking.loc["a", "score"] == ranking.loc["b", "score"]


def test_an_undefined_score_has_no_rank_and_comes_last() -> None:
    table = cases({"none": [float("nan")], "a": [0.5]})
    ranking = by_team(by_structure(table), table)
    assert ranking["team"].tolist() == ["a", "none"]
    assert ranking["rank"].tolist() == [1, pd.NA]
