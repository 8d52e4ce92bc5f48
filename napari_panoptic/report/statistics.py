"""Tables and sentences on tests between teams, over patients or over cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.records import fields_of
from napari_panoptic.report.columns import table, team_column
from napari_panoptic.report.page import team_label
from napari_panoptic.report.plots import critical_difference_diagram
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.friedman import TeamComparison
from napari_panoptic.statistics.teams import TeamStatistics
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    bounds_cell,
    number,
    number_cell,
    whole,
    words,
)
from napari_panoptic.tables.figures import count, p_value, places_of, signed, two_places, writer
from napari_panoptic.tables.markup import Child, Html, folded, fragment, note

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class StatisticsTables:
    """The tables of a section on tests between teams."""

    #: What was tested, for example a metric -> its statistics.
    found: Mapping[str, TeamStatistics]
    #: All teams of the cohort, in its order, which decides their colours.
    teams: Sequence[str]
    #: The same keys -> their texts.
    names: Mapping[str, str]
    #: The key whose pairs and p-values are shown first.
    main: str
    #: The text of `main` in a sentence.
    by: str
    #: The unit over which teams are compared: ``patient`` or ``case``.
    unit: str
    #: The heading of the keys in reports, and their column in CSV files.
    head: str
    column: str

    def parts(self, over: str, omitted: Child, diagram: str) -> list[Child]:
        """Return the parts of the section.

        Parameters
        ----------
        over
            A sentence on the patients or cases over which teams are compared.
        omitted
            The units that were left out.
        diagram
            Caption of the critical difference diagram.
        """
        main = self.found[self.main]
        return [
            note(
                f"{over} Intervals: {LEVEL:.0%} bootstrap, {count(RESAMPLES)} resamples of the "
                f"{self.unit}s, seed {SEED}; BCa unless another method is named."
            ),
            self._friedman(),
            omitted,
            plot_figure(
                critical_difference_diagram(main.critical, self.teams),
                "critical-difference",
                diagram,
            ),
            self._nemenyi(main.comparison),
            self._means(),
            self._pairs(),
        ]

    def _friedman(self) -> Html:
        columns = [
            self._name_column(),
            whole(f"{self.unit}s", "n"),
            TableColumn("left out", self._n_omitted),
            number("friedman_chi2", "Friedman χ²", two_places),
            number("friedman_p", "p", p_value),
            number("kendall_w", "Kendall's W"),
            number("critical_difference", "critical difference", two_places),
            words("why_undefined", "why undefined"),
        ]
        caption = (
            f"Whether the {len(self.found[self.main].comparison.teams)} competing teams differ, by "
            f"every {self.head}. n: {self.unit}s with a value for every team."
        )
        frame = tests_frame(self.found, self.column, self.unit)
        return table("friedman", caption, columns, frame)

    def _n_omitted(self, row: Record) -> CellContent:
        return number_cell(len(self.found[row[self.column]].comparison.figures.omitted), count)

    def _nemenyi(self, comparison: TeamComparison) -> Html:
        """Show which teams differ, by their ranks."""
        import pandas as pd

        if comparison.nemenyi_p is None:
            why = comparison.why_undefined or "the Friedman test finds no difference"
            return note(f"No Nemenyi test of {self.by}: {why}.")
        frame = pd.DataFrame(comparison.nemenyi_p, columns=list(comparison.teams))
        frame.insert(0, "team", list(comparison.teams), allow_duplicates=True)
        rows = [
            {"team": name, "p": own}
            for name, own in zip(comparison.teams, comparison.nemenyi_p.tolist(), strict=True)
        ]
        columns = [
            team_column(self.teams, title=self.by),
            *(self._p_column(place, name) for place, name in enumerate(comparison.teams)),
        ]
        caption = f"p-values of the Nemenyi test of every two teams by {self.by}."
        return table("nemenyi", caption, columns, frame, rows)

    def _p_column(self, place: int, name: str) -> TableColumn:
        def cell(row: Record) -> CellContent:
            return CellContent("") if row["team"] == name else number_cell(row["p"][place], p_value)

        return TableColumn(team_label(name, self.teams), cell)

    def _means(self) -> Html:
        """Show the mean of each team with its interval."""
        rows = [
            {
                self.column: key,
                "team": name,
                f"{self.unit}s": mean.n,
                **fields_of(mean, "mean", "low", "high", "method", "why"),
            }
            for key, own in self.found.items()
            for name, mean in own.means.items()
        ]
        columns = [
            self._name_column(),
            team_column(self.teams),
            whole(f"{self.unit}s", "n"),
            TableColumn("mean", lambda row: number_cell(row["mean"], writer(row[self.column]))),
            self._bounds_column(),
            words("why", "if not BCa, why"),
        ]
        shown = table("means", f"Means over {self.unit}s.", columns, rows)
        return folded(f"Means with intervals ({count(len(rows))} rows)", shown)

    def _pairs(self) -> Html:
        """Show how much each pair of teams differs."""
        columns = [
            team_column(self.teams, "first"),
            team_column(self.teams, "second"),
            whole(f"{self.unit}s", "n"),
            TableColumn("difference", self._difference),
            self._bounds_column(),
            number("rank_biserial", "rank-biserial", _signed_two_places),
            number("wilcoxon_p", "Wilcoxon p", p_value),
            number("holm_p", "Holm p", p_value),
            words("note", "why undefined"),
        ]
        caption = (
            f"Pairwise comparison of teams by {self.by}, over {self.unit}s evaluated for both: "
            "mean of first minus second, effect size from -1 to 1, two-sided p-values before and "
            "after Holm's correction."
        )
        main = self._pair_frame([self.main])
        every = self._pair_frame(self.found)
        by_every = f"By every {self.head}"
        all_columns = [self._name_column(), *columns]
        return fragment(
            _pair_table("pairs", caption, columns, main),
            folded(
                f"{by_every} ({count(len(every))} rows)",
                _pair_table("pairs_all", f"{by_every}.", all_columns, every),
            ),
        )

    def _pair_frame(self, keys: Iterable[str]) -> pd.DataFrame:
        found = {key: self.found[key] for key in keys}
        notes = [
            pair.why_undefined or pair.difference.why
            for own in found.values()
            for pair in own.pairs
        ]
        return pairs_frame(found, self.column, self.unit).assign(note=notes)

    def _name_column(self) -> TableColumn:
        return TableColumn(self.head, lambda row: CellContent(self.names[row[self.column]]))

    def _difference(self, row: Record) -> CellContent:
        places = places_of(row[self.column])
        return number_cell(row["difference"], lambda value: signed(value, places))

    def _bounds_column(self) -> TableColumn:
        def cell(row: Record) -> CellContent:
            return bounds_cell(row["low"], row["high"], places_of(row[self.column]))

        return TableColumn(f"{LEVEL:.0%} interval", cell)


def _pair_table(slug: str, caption: str, columns: list[TableColumn], frame: pd.DataFrame) -> Html:
    return table(slug, caption, columns, frame.drop(columns="note"), frame.to_dict("records"))


def _signed_two_places(value: float) -> str:
    return signed(value, 2)


def tests_frame(found: Mapping[str, TeamStatistics], column: str, unit: str) -> pd.DataFrame:
    """Return a row per key: do teams differ? ``column`` is the name of the column of keys."""
    import pandas as pd

    rows: list[dict[str, Any]] = [
        {
            column: key,
            f"{unit}s": own.comparison.n_patients,
            "left_out": " ".join(o.patient for o in own.comparison.figures.omitted),
            **fields_of(own.comparison, "friedman_chi2", "friedman_p", "kendall_w"),
            "critical_difference": own.critical.difference,
            "why_undefined": own.comparison.why_undefined,
        }
        for key, own in found.items()
    ]
    columns = [column, f"{unit}s", "left_out", "friedman_chi2", "friedman_p", "kendall_w"]
    return pd.DataFrame(rows, columns=[*columns, "critical_difference", "why_undefined"])


def pairs_frame(found: Mapping[str, TeamStatistics], column: str, unit: str) -> pd.DataFrame:
    """Return a row per key and pair of teams; ``column`` is the name of the keys' column."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                column: key,
                **fields_of(pair, "first", "second"),
                f"{unit}s": pair.n_patients,
                "left_out": " ".join(o.patient for o in pair.figures.omitted),
                "difference": pair.difference.mean,
                **fields_of(pair.difference, "low", "high", "method"),
                **fields_of(pair, "rank_biserial", "wilcoxon_p", "holm_p", "why_undefined"),
            }
            for key, own in found.items()
            for pair in own.pairs
        ]
    )
