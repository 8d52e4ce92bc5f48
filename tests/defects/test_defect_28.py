"""Equal scores had different ranks where sums or rounding depend on the order of figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.raters.ranking import by_structure, by_team
from napari_panoptic.statistics.friedman import TeamFigures, compare_teams
from napari_panoptic.statistics.pairwise import compare_pairs


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


def test_defect_28_the_order_of_cases_does_not_rank_teams() -> None:
    assert np.mean([0.1, 0.2, 0.3]) != np.mean([0.3, 0.2, 0.1])  # what the ranks were made of
    table = cases({"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.1, 0.1, 0.1]})
    ranking = by_team(by_structure(table), table).set_index("team")
    assert ranking["rank"].to_dict() == {"a": 1, "b": 1, "c": 3}
    assert ranking.loc["a", "score"] == ranking.loc["b", "score"]


def test_defect_28_an_undefined_score_has_no_rank_and_comes_last() -> None:
    table = cases({"none": [float("nan")], "a": [0.5]})
    ranking = by_team(by_structure(table), table)
    assert ranking["team"].tolist() == ["a", "none"]
    assert ranking["rank"].tolist() == [1, pd.NA]


def test_defect_28_the_order_of_regions_does_not_place_teams(tmp_path: Path) -> None:
    lines = []
    for team, values in {"a": (0.1, 0.2, 0.3), "b": (0.3, 0.2, 0.1), "c": (0.1, 0.1, 0.1)}.items():
        lines.append(team)
        for number, pq in enumerate(values):
            path = f".\\P{number}\\P{number}_1\\Epithelial\\1_mask.mat"
            lines += [path, "['1.mat']", repr(pq)]
    dump = tmp_path / "dump.txt"
    dump.write_text("\n".join(lines))
    assert main(["dump", str(dump), "--output", str(tmp_path / "tables")]) == 0
    board = pd.read_csv(tmp_path / "tables" / "leaderboard.csv").set_index("team")
    assert board["place"].to_dict() == {"a": 1, "b": 1, "c": 3}


NEXT = [(value, float(np.nextafter(value, 1))) for value in (0.5001220703125, 0.1234567890125)]


@pytest.mark.parametrize(
    "pair", [*NEXT, (0.1234567890125, 0.12345678901250001), (3e-7, 3e-7 * (1 + 4e-16))]
)
def test_defect_28_neighbouring_numbers_tie(pair: tuple[float, float]) -> None:
    """They lie on the two sides of a number that is rounded at its last digit."""
    low, high = pair
    assert low < high
    figures = {"a": [high, low, high], "b": [low, high, low], "c": [low / 2, low / 3, low / 4]}
    found = compare_teams(TeamFigures(figures))
    assert found.mean_ranks.tolist() == [1.5, 1.5, 3.0]
    first = compare_pairs(TeamFigures(figures))[0]
    assert first.why_undefined == "both teams have equal figures for each of the 3 patients"


def test_defect_28_small_figures_keep_their_order() -> None:
    """Twelve digits of the largest, however small: not fifteen decimals."""
    figures = {"a": [3e-7, 3e-7], "b": [2.9999999e-7, 2.9999999e-7], "c": [1e-7, 1e-7]}
    assert compare_teams(TeamFigures(figures)).mean_ranks.tolist() == [1.0, 2.0, 3.0]
    tiny = {team: [value * 1e-9 for value in values] for team, values in figures.items()}
    assert compare_teams(TeamFigures(tiny)).mean_ranks.tolist() == [1.0, 2.0, 3.0]


def test_defect_28_equal_differences_tie() -> None:
    """0.3 - 0.2 and 0.2 - 0.1 differ in their last digit, but are one difference."""
    (pair,) = compare_pairs(TeamFigures({"a": [0.3, 0.1, 0.5], "b": [0.2, 0.2, 0.2]}))
    # Sizes 0.1, 0.1, 0.3 have the ranks 1.5, 1.5, 3, the second with a minus.
    assert pair.rank_biserial == pytest.approx((4.5 - 1.5) / 6)
