"""Tables of tests between teams, for reports on nuclei and on several raters alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from napari_panoptic.report.cells import note, number, team_label, writer
from napari_panoptic.report.page import Cell, Child, Html, Table, folded, fragment, table
from napari_panoptic.report.text import count, interval, p_value, ratio, signed
from napari_panoptic.statistics.bootstrap import LEVEL
from napari_panoptic.statistics.pairwise import PairComparison
from napari_panoptic.statistics.teams import TeamStatistics


@dataclass(frozen=True)
class TableWords:
    """How tests are told of.

    Parameters
    ----------
    teams
        All teams of the cohort, in its order: that decides their colours.
    names
        What is tested -> how it is written; such as the name of each figure.
    main
        The one that pairs and p-values of pairs are shown of.
    by
        How that is written in a sentence.
    unit
        Over what teams are compared: ``patient``, or ``case``.
    head, column
        What `names` are names of, in tables shown and in tables kept.
    """

    teams: Sequence[str]
    names: Mapping[str, str]
    main: str
    by: str
    unit: str
    head: str
    column: str

    def name(self, team: str) -> Html:
        """Write a team's name beside its colour."""
        return team_label(team, self.teams)

    def cell(self, team: str) -> Cell:
        """Return a cell with a team's name beside its colour."""
        return Cell(self.name(team))

    def places(self, name: str) -> int:
        """Return how many decimals a figure is written with: distances are no ratios."""
        return 1 if name.endswith("_px") else 3


def friedman_table(words: TableWords, found: Mapping[str, TeamStatistics]) -> Html:
    """Show whether teams differ at all."""
    rows, records = [], []
    for name, own in found.items():
        comparison = own.comparison
        omitted = comparison.figures.omitted
        rows.append(
            [
                Cell(words.names[name]),
                number(comparison.n_patients, count),
                number(len(omitted), count),
                number(comparison.friedman_chi2, lambda v: ratio(v, 2)),
                number(comparison.friedman_p, p_value),
                number(comparison.kendall_w),
                number(own.critical.difference, lambda v: ratio(v, 2)),
                Cell(comparison.why_undefined),
            ]
        )
        records.append(
            {
                words.column: name,
                f"{words.unit}s": comparison.n_patients,
                "left_out": " ".join(o.patient for o in omitted),
                "friedman_chi2": comparison.friedman_chi2,
                "friedman_p": comparison.friedman_p,
                "kendall_w": comparison.kendall_w,
                "critical_difference": own.critical.difference,
                "why_undefined": comparison.why_undefined,
            }
        )
    header = [
        words.head,
        "n",
        "left out",
        "Friedman χ²",
        "p",
        "Kendall's W",
        "critical difference",
        "why undefined",
    ]
    caption = (
        f"Whether the {len(found[words.main].comparison.teams)} competing teams differ, by "
        f"every {words.head}. n: {words.unit}s that compare."
    )
    return table(Table("friedman", caption, header, rows, pd.DataFrame(records)))


def nemenyi_table(words: TableWords, found: TeamStatistics) -> Html:
    """Show which teams differ, by their ranks."""
    comparison = found.comparison
    if comparison.nemenyi_p is None:
        why = comparison.why_undefined or "the Friedman test finds no difference"
        return note(f"No Nemenyi test of {words.by}: {why}.")
    rows = [
        [
            words.cell(team),
            *(
                Cell("") if row == column else number(float(p), p_value)
                for column, p in enumerate(comparison.nemenyi_p[row])
            ),
        ]
        for row, team in enumerate(comparison.teams)
    ]
    frame = pd.DataFrame(comparison.nemenyi_p, columns=list(comparison.teams))
    frame.insert(0, "team", list(comparison.teams), allow_duplicates=True)
    header: list[Child] = [words.by, *(words.name(team) for team in comparison.teams)]
    caption = f"p-values of the Nemenyi test of every two teams by {words.by}."
    return table(Table("nemenyi", caption, header, rows, frame))


def means_table(words: TableWords, found: Mapping[str, TeamStatistics]) -> Html:
    """Show each team's means, with intervals."""
    rows, records = [], []
    for name, own in found.items():
        places = words.places(name)
        for team, mean in own.means.items():
            rows.append(
                [
                    Cell(words.names[name]),
                    words.cell(team),
                    number(mean.n, count),
                    number(mean.mean, writer(name)),
                    Cell(interval(mean.low, mean.high, places), mean.low),
                    Cell(mean.why),
                ]
            )
            records.append(
                {
                    words.column: name,
                    "team": team,
                    f"{words.unit}s": mean.n,
                    "mean": mean.mean,
                    "low": mean.low,
                    "high": mean.high,
                    "method": str(mean.method),
                    "why": mean.why,
                }
            )
    header = [words.head, "team", "n", "mean", f"{LEVEL:.0%} interval", "if not BCa, why"]
    shown = Table("means", f"Means over {words.unit}s.", header, rows, pd.DataFrame(records))
    return folded(f"Means with intervals ({count(len(rows))} rows)", table(shown))


def pairs_table(words: TableWords, found: Mapping[str, TeamStatistics]) -> Html:
    """Show by how much each two teams differ."""
    header: list[Child] = [
        "first",
        "second",
        "n",
        "difference",
        f"{LEVEL:.0%} interval",
        "rank-biserial",
        "Wilcoxon p",
        "Holm p",
        "why undefined",
    ]
    caption = (
        f"Every two teams by {words.by} over the {words.unit}s with figures of both: mean of first "
        f"minus second, effect size from -1 to 1, two-sided p-values before and after Holm's "
        "correction."
    )
    main = {words.main: found[words.main]}
    rows = [_pair_row(words, pair, 3) for pair in found[words.main].pairs]
    first = Table("pairs", caption, header, rows, pairs_frame(main, words.column, words.unit))
    all_rows = [
        [Cell(words.names[name]), *_pair_row(words, pair, words.places(name))]
        for name, own in found.items()
        for pair in own.pairs
    ]
    frame = pairs_frame(found, words.column, words.unit)
    by_every = f"By every {words.head}"
    every = Table("pairs_all", f"{by_every}.", [words.head, *header], all_rows, frame)
    return fragment(table(first), folded(f"{by_every} ({count(len(all_rows))} rows)", table(every)))


def _pair_row(words: TableWords, pair: PairComparison, places: int) -> list[Cell]:
    difference = pair.difference
    return [
        words.cell(pair.first),
        words.cell(pair.second),
        number(pair.n_patients, count),
        number(difference.mean, lambda v: signed(v, places)),
        Cell(interval(difference.low, difference.high, places), difference.low),
        number(pair.rank_biserial, lambda v: signed(v, 2)),
        number(pair.wilcoxon_p, p_value),
        number(pair.holm_p, p_value),
        Cell(pair.why_undefined or difference.why),
    ]


def pairs_frame(found: Mapping[str, TeamStatistics], column: str, unit: str) -> pd.DataFrame:
    """Return a row per what is tested and two teams."""
    return pd.DataFrame(
        [
            {
                column: name,
                "first": pair.first,
                "second": pair.second,
                f"{unit}s": pair.n_patients,
                "left_out": " ".join(o.patient for o in pair.figures.omitted),
                "difference": pair.difference.mean,
                "low": pair.difference.low,
                "high": pair.difference.high,
                "method": str(pair.difference.method),
                "rank_biserial": pair.rank_biserial,
                "wilcoxon_p": pair.wilcoxon_p,
                "holm_p": pair.holm_p,
                "why_undefined": pair.why_undefined,
            }
            for name, own in found.items()
            for pair in own.pairs
        ]
    )
