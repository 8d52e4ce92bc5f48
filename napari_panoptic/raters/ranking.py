"""Aggregate scores per case to structures and teams, and rank the teams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_panoptic.raters.levels import Standing, standing
from napari_panoptic.statistics.means import mean_defined, spread
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    bounds,
    name_column,
    number,
    unshown,
    whole,
    words,
)
from napari_panoptic.tables.figures import UNDEFINED

if TYPE_CHECKING:
    import pandas as pd

_STANDING_WORDS = {
    Standing.BELOW: "below all raters",
    Standing.WITHIN: "within the raters",
    Standing.ABOVE: "above all raters",
    Standing.UNDEFINED: UNDEFINED,
}


def _standing(row: Record) -> CellContent:
    return CellContent(_STANDING_WORDS[Standing(row["standing"])])


TEAM, STRUCTURE, CASE = (name_column(key) for key in ("team", "structure", "case"))
STANDING = TableColumn("stands", _standing, ("standing",), "below, within or above the raters")
CASES = TableSpec(
    "cases.csv",
    "team, structure and case",
    [
        TEAM,
        STRUCTURE,
        CASE,
        words("prediction", about="there, missing or unreadable"),
        number("dice", "Dice"),
        number("left_out_dice", "against all raters but one"),
        bounds("raters_lowest", "raters_highest", "raters"),
        STANDING,
        number("brier", "Brier"),
        unshown("brier_least", about="of the raters' own mean"),
        unshown("raters", about="number"),
    ],
    "The lowest first. Missing and unreadable predictions count as background.",
)
STRUCTURES = TableSpec(
    "structures.csv",
    "team and structure: means over cases",
    [
        TEAM,
        STRUCTURE,
        whole("cases", about="number"),
        whole("missing", about="cases without a usable prediction"),
        number("dice", "mean Dice"),
        unshown("dice_sd", about="sample standard deviation"),
        number("dice_median", "median"),
        number("dice_lowest", "lowest"),
        unshown("left_out_dice", "raters_lowest", "raters_highest"),
        unshown("standing", about="of the means"),
        unshown("cases_below", "cases_within", "cases_above", about="numbers of cases"),
        number("brier", "Brier"),
    ],
    "Dice averaged over levels, over the cases of each structure.",
)


def by_structure(cases: pd.DataFrame) -> pd.DataFrame:
    """Average the cases of each team and structure.

    ``raters_lowest`` and ``raters_highest`` are the means over cases of the
    lowest and the highest rater, and ``standing`` compares the mean of
    ``left_out_dice`` with them.

    Parameters
    ----------
    cases
        With the columns of `CASES`.
    """
    rows = []
    for (team, structure), own in cases.groupby(["team", "structure"], sort=False):
        raters = mean_defined(own["raters_lowest"]), mean_defined(own["raters_highest"])
        left_out = mean_defined(own["left_out_dice"])
        rows.append(
            {
                "team": team,
                "structure": structure,
                "cases": len(own),
                "missing": int((own["prediction"] != "there").sum()),
                "dice": mean_defined(own["dice"]),
                "dice_sd": spread(own["dice"]).sd,
                "dice_median": own["dice"].median(),
                "dice_lowest": own["dice"].min(),
                "left_out_dice": left_out,
                "raters_lowest": raters[0],
                "raters_highest": raters[1],
                "standing": str(standing(left_out, raters)),
                "cases_below": int((own["standing"] == Standing.BELOW).sum()),
                "cases_within": int((own["standing"] == Standing.WITHIN).sum()),
                "cases_above": int((own["standing"] == Standing.ABOVE).sum()),
                "brier": mean_defined(own["brier"]),
            }
        )
    return STRUCTURES.frame(rows)


def by_team(structures: pd.DataFrame, cases: pd.DataFrame) -> pd.DataFrame:
    """Average the structures of each team, and rank the teams, the best first.

    ``score`` is the mean over structures of the mean over cases, so that a
    structure with many cases weighs no more than others; ``dice_all_cases`` is
    the plain mean over all cases of all structures. Equal scores share a rank,
    1 + the number of better teams, see `competition_ranks`; undefined ones come last.

    Parameters
    ----------
    structures
        From `by_structure`.
    cases
        With the columns of `CASES`.
    """
    import pandas as pd

    rows = [
        {
            "team": team,
            "structures": len(own),
            "cases": int(own["cases"].sum()),
            "missing": int(own["missing"].sum()),
            "score": mean_defined(own["dice"]),
            "dice_all_cases": mean_defined(cases.loc[cases["team"] == team, "dice"]),
            "left_out_dice": mean_defined(own["left_out_dice"]),
            "brier": mean_defined(own["brier"]),
        }
        for team, own in structures.groupby("team", sort=False)
    ]
    if not rows:
        return pd.DataFrame(columns=["rank", "team", "score"])
    table = pd.DataFrame(rows)
    ranks = pd.Series(competition_ranks(table["score"]), dtype="Int64")
    table.insert(0, "rank", ranks.mask(ranks == 0))
    return table.sort_values("rank", kind="stable", ignore_index=True)
