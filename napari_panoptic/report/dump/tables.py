"""The tables of ``napari-panoptic dump``: an organisers' output, scored and compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic import __version__
from napari_panoptic.common.records import fields_of
from napari_panoptic.io.tables.challenge_dump import Dump, organ_of
from napari_panoptic.report.writing import write_set
from napari_panoptic.statistics.bootstrap import (
    RESAMPLES,
    SEED,
    Interval,
    IntervalMethod,
    mean_interval,
)
from napari_panoptic.statistics.friedman import MissingRule, TeamFigures
from napari_panoptic.statistics.means import mean_defined
from napari_panoptic.statistics.ranks import ranked_teams
from napari_panoptic.statistics.teams import (
    TeamStatistics,
    bootstrap_record,
    statistics_record,
    team_statistics,
)
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    name_column,
    number,
    unshown,
    whole,
)
from napari_panoptic.tables.figures import interval, p_digits, ratio, two_places
from napari_panoptic.values.conventions import CHALLENGE_PROTOCOL

if TYPE_CHECKING:
    import pandas as pd

MEAN = "mean"
"""Takes the place of a class: the mean over classes."""
ALL = "all"
"""Takes the place of an organ: all organs."""
UNKNOWN = "unknown"
"""Organ of patients without a known organ."""

_PLACE = ["patient", "region", "class"]
_RECORD = "statistics.json"


def _interval_keys(name: str) -> tuple[str, str, str]:
    return f"{name}_low", f"{name}_high", f"{name}_interval"


def _interval(name: str) -> TableColumn:
    """Return a column of intervals, with their method unless it is the usual one."""
    keys = _interval_keys(name)

    def cell(row: Record) -> CellContent:
        low, high, method = (row[key] for key in keys)
        is_usual = math.isnan(low) or method == IntervalMethod.BCA
        return CellContent(interval(low, high) + ("" if is_usual else f" ({method})"))

    return TableColumn("interval", cell, keys)


def _regions(row: Record) -> CellContent:
    return CellContent(f"{row['regions']} of {row['regions_listed']}")


LEADERBOARD = TableSpec(
    "leaderboard.csv",
    "team, the best score first",
    [
        unshown("place", about="by score"),
        name_column("team"),
        number(
            "score",
            write=lambda score: ratio(score, 4),
            about="mean over regions of the mean over classes",
        ),
        _interval("score"),
        TableColumn(
            "regions", _regions, ("regions", "regions_listed"), "with a figure; in the output"
        ),
        unshown("not_submitted", about="missing masks, scored 0"),
        unshown("gaps", about="figures that are not in the output"),
        whole("patients"),
        unshown("patient_mean", *_interval_keys("patient_mean"), about="mean over patients"),
        number("mean_rank", "mean rank", two_places),
        whole("rank"),
    ],
)
BY_ORGAN = TableSpec(
    "by_organ.csv",
    "team, organ or `all`, class or `mean`",
    [
        unshown("team", "organ", "class"),
        unshown("patients", "regions"),
        unshown(
            "pq",
            about="mean over regions that have the class; with `--missing worst`, gaps count as 0, "
            "unlike in `patient_mean`",
        ),
        unshown(*_interval_keys("pq")),
    ],
)
PATIENTS = TableSpec(
    "patients.csv",
    "team and patient",
    [
        unshown("team", "patient", "organ"),
        unshown(MEAN, about="over its regions, of the mean over classes; then of each class"),
    ],
)
PAIRS = TableSpec(
    "pairs.csv",
    "class or `mean`, and pair of teams",
    [
        unshown("class"),
        name_column("first"),
        name_column("second"),
        whole("patients"),
        unshown("omitted"),
        number("difference"),
        _interval("difference"),
        number("rank_biserial", "r (rank-biserial)"),
        number("wilcoxon_p", "Wilcoxon p", p_digits),
        number("holm_p", "Holm p", p_digits),
        unshown("why_undefined"),
    ],
)
TABLE_NAMES = (LEADERBOARD.file, BY_ORGAN.file, PATIENTS.file, PAIRS.file, _RECORD)
"""The files of a set, the record last."""


@dataclass(frozen=True, eq=False)
class DumpEvaluation:
    """The scores, ranks and statistics of the teams in an organisers' output.

    The regions and classes are those that occur for any team. A team without a figure for one of
    them (a gap) has no figure for the region, nor for the patient, because a mean over the
    remaining ones could not be compared with other teams. If gaps count as 0, this applies to
    scores and tests, but not to a team's own mean over patients.
    """

    #: The output, as read.
    dump: Dump
    #: Patient, or TCGA case -> organ.
    organs: Mapping[str, str]
    #: Whether gaps are left out or count as 0.
    missing: MissingRule = MissingRule.COMPLETE_CASES
    #: Parameters of the bootstrap intervals.
    resamples: int = RESAMPLES
    seed: int = SEED

    @cached_property
    def as_dumped(self) -> pd.DataFrame:
        """PQ by (patient, region, class), one column per team; NaN in gaps."""
        import pandas as pd

        rows: dict[tuple[str, str, str], dict[str, float]] = {}
        for f in self.dump.figures:
            rows.setdefault((f.patient, f.region, f.class_name), {})[f.team] = f.pq
        index = pd.MultiIndex.from_tuples(list(rows), names=_PLACE)
        return pd.DataFrame(list(rows.values()), index=index, columns=list(self.dump.teams))

    @cached_property
    def gaps(self) -> list[tuple[str, str, str, str]]:
        """Team, patient, region and class of every figure that is missing."""
        missing = np.argwhere(self.as_dumped.isna().to_numpy())
        return [(self.dump.teams[column], *self.as_dumped.index[row]) for row, column in missing]

    @cached_property
    def not_submitted(self) -> list[tuple[str, str, str, str]]:
        """Team, patient, region and class of every mask that was not handed in."""
        lacking = (f for f in self.dump.figures if not f.submitted)
        return [(f.team, f.patient, f.region, f.class_name) for f in lacking]

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The figures after the rule for gaps."""
        return self.as_dumped.fillna(0.0) if self.missing is MissingRule.WORST else self.as_dumped

    @property
    def regions(self) -> pd.DataFrame:
        """Mean over the classes of a region, by (patient, region)."""
        return self.by_class[MEAN]

    @cached_property
    def classes(self) -> list[str]:
        """The classes, by name."""
        return sorted(self.cells.index.unique("class"))

    @cached_property
    def by_class(self) -> dict[str, pd.DataFrame]:
        """Figures by (patient, region) of each class, and of the mean over classes (first)."""
        return self._by_class(self.cells)

    @cached_property
    def patients(self) -> dict[str, pd.DataFrame]:
        """Means over the regions of a patient, by class (and ``mean``); each has all patients."""
        return self._of_patients(self.by_class)

    @cached_property
    def patients_as_dumped(self) -> dict[str, pd.DataFrame]:
        """Means as in `patients`, but NaN for patients with a gap."""
        return self._of_patients(self._by_class(self.as_dumped))

    def _by_class(self, cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
        names = cells.index.get_level_values("class")
        of_classes = {name: cells[names == name].droplevel("class") for name in self.classes}
        return {MEAN: _complete_means(cells, ["patient", "region"]), **of_classes}

    def _of_patients(self, by_class: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        listed = by_class[MEAN].index.unique("patient")
        return {
            name: _complete_means(regions, ["patient"]).reindex(listed)
            for name, regions in by_class.items()
        }

    @cached_property
    def scores(self) -> dict[str, float]:
        """The challenge's score per team: mean over regions. The best first, undefined last."""
        scores = {team: mean_defined(self.regions[team]) for team in self.dump.teams}
        order = sorted(scores, key=lambda team: (math.isnan(scores[team]), -scores[team]))
        return {team: scores[team] for team in order}

    @cached_property
    def organ_by_patient(self) -> dict[str, str]:
        """Organ of each patient of the dump."""
        patients = self.cells.index.unique("patient")
        return {patient: organ_of(patient, self.organs) or UNKNOWN for patient in patients}

    @cached_property
    def statistics(self) -> dict[str, TeamStatistics]:
        """The teams compared over patients: by the mean over classes, and by each class."""
        found = {}
        for name, own in self.patients_as_dumped.items():
            at_worst = self.patients[name]
            found[name] = team_statistics(
                TeamFigures(
                    {team: own[team].tolist() for team in self.dump.teams},
                    own.index.tolist(),
                    missing=self.missing,
                    worst={team: at_worst[team].tolist() for team in self.dump.teams},
                ),
                resamples=self.resamples,
                seed=self.seed,
            )
        return found

    def interval_over_patients(self, figures: pd.Series[float]) -> Interval:
        """Return the mean of figures of regions, resampled by patient.

        Parameters
        ----------
        figures
            Indexed by ``patient`` and other levels; NaN in gaps.
        """
        by_patient = figures.groupby(level="patient", sort=False)
        return mean_interval(
            by_patient.agg(mean_defined).tolist(),
            weights=by_patient.count().tolist(),
            resamples=self.resamples,
            seed=self.seed,
        )


def write_dump_tables(evaluation: DumpEvaluation, folder: Path) -> list[Path]:
    """Write all tables of a dump into a folder, which is created if missing.

    Returns
    -------
    list of Path
        The files written. Existing ones are replaced, all of them or none.
    """
    tables = {
        LEADERBOARD.file: leaderboard_table(evaluation),
        BY_ORGAN.file: by_organ_table(evaluation),
        PATIENTS.file: patients_table(evaluation),
        PAIRS.file: pairs_table(evaluation),
    }
    return write_set(folder, tables, (_RECORD, record_of_dump(evaluation)))


def leaderboard_table(evaluation: DumpEvaluation) -> pd.DataFrame:
    """Return one row per team, the best score first.

    ``place`` is the rank by score (``score``: mean over regions); ``rank`` is the
    rank by the tests over patients, shared by teams that do not differ.
    """
    statistics = evaluation.statistics[MEAN]
    comparison = statistics.comparison
    places = ranked_teams(evaluation.scores)
    rows = []
    for team, score in evaluation.scores.items():
        number = comparison.teams.index(team)
        figures = evaluation.regions[team]
        patients = statistics.means[team]
        rows.append(
            {
                "place": places.get(team),
                "team": team,
                "score": score,
                **_ends("score", evaluation.interval_over_patients(figures)),
                "regions": int(figures.notna().sum()),
                "regions_listed": len(figures),
                "not_submitted": _number(evaluation.not_submitted, team),
                "gaps": _number(evaluation.gaps, team),
                "patients": patients.n,
                "patient_mean": patients.mean,
                **_ends("patient_mean", patients),
                "mean_rank": comparison.mean_ranks[number],
                "rank": comparison.ranks[number],
            }
        )
    return LEADERBOARD.frame(rows).astype({"place": "Int64"})


def by_organ_table(evaluation: DumpEvaluation) -> pd.DataFrame:
    """Return one row per team, organ (or all) and class (or their mean).

    ``pq`` is the mean over the organ's regions that have the class, as in table
    2 of Foucart et al. (2021). Like the score, which is that of all organs and the mean over
    classes, it counts gaps as 0 if these count as worst.
    """
    organs = sorted({*evaluation.organ_by_patient.values()})
    rows = []
    for team in evaluation.dump.teams:
        for organ in (*organs, ALL):
            for name, frame in evaluation.by_class.items():
                of_organ = frame.index.get_level_values("patient").map(evaluation.organ_by_patient)
                own = frame.loc[(of_organ == organ) | (organ == ALL), team]
                found = evaluation.interval_over_patients(own)
                rows.append(
                    {
                        "team": team,
                        "organ": organ,
                        "class": name,
                        "patients": found.n,
                        "regions": int(own.notna().sum()),
                        "pq": mean_defined(own),
                        **_ends("pq", found),
                    }
                )
    return BY_ORGAN.frame(rows)


def patients_table(evaluation: DumpEvaluation) -> pd.DataFrame:
    """Return the figures that the tests compare: `PATIENTS`, with a column for each class."""
    figures = {name: frame.to_dict() for name, frame in evaluation.patients.items()}
    rows = [
        {"team": team, "patient": patient, "organ": organ}
        | {name: by_team[team][patient] for name, by_team in figures.items()}
        for team in evaluation.dump.teams
        for patient, organ in evaluation.organ_by_patient.items()
    ]
    return PATIENTS.extended(*evaluation.classes).frame(rows)


def pairs_table(evaluation: DumpEvaluation) -> pd.DataFrame:
    """Return one row per pair of teams and class (or their mean), over patients."""
    rows = [
        {
            "class": name,
            **fields_of(pair, "first", "second"),
            "patients": pair.n_patients,
            "omitted": len(pair.figures.omitted),
            "difference": pair.difference.mean,
            **_ends("difference", pair.difference),
            **fields_of(pair, "rank_biserial", "wilcoxon_p", "holm_p", "why_undefined"),
        }
        for name, statistics in evaluation.statistics.items()
        for pair in statistics.pairs
    ]
    return PAIRS.frame(rows)


def record_of_dump(evaluation: DumpEvaluation) -> dict[str, Any]:
    """Return scores, rules, gaps and statistics."""
    return {
        "dump": evaluation.dump.path.name,
        "version": __version__,
        "missing": str(evaluation.missing),
        "bootstrap": bootstrap_record(evaluation.resamples, evaluation.seed),
        "score": evaluation.scores,
        "convention": f"{CHALLENGE_PROTOCOL} pq",
        "organs": evaluation.organ_by_patient,
        "gaps": [dict(zip(["team", *_PLACE], gap, strict=True)) for gap in evaluation.gaps],
        "not_submitted": [
            dict(zip(["team", *_PLACE], mask, strict=True)) for mask in evaluation.not_submitted
        ],
        "statistics": {
            name: statistics_record(statistics)
            for name, statistics in evaluation.statistics.items()
        },
    }


def _number(figures: Sequence[tuple[str, ...]], team: str) -> int:
    return sum(figure[0] == team for figure in figures)


def _ends(name: str, found: Interval) -> dict[str, Any]:
    ends = (found.low, found.high, str(found.method))
    return dict(zip(_interval_keys(name), ends, strict=True))


def _complete_means(figures: pd.DataFrame, levels: list[str]) -> pd.DataFrame:
    """Return means over rows that share the levels; undefined if any of them is."""
    means = figures.groupby(level=levels, sort=False).agg(mean_defined)
    return means.mask(figures.isna().groupby(level=levels, sort=False).any())
