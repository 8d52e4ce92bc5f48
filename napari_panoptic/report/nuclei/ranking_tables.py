"""The tables of the ranking as files: protocols, averages, statistics and patients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from napari_panoptic.common.spreadsheets import csv_bytes
from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.report.nuclei.tables import patients_table
from napari_panoptic.report.writing import check_writable, write_bytes


def ranking_tables(report: CohortReport) -> Mapping[str, pd.DataFrame]:
    """Return file name -> table, with full precision; undefined is NaN.

    Parameters
    ----------
    report
        The evaluated cohort.
    """
    return {
        "ranking-protocols.csv": _protocols(report),
        "ranking-averages.csv": _averages(report),
        "ranking-statistics.csv": _statistics(report),
        "ranking-patients.csv": patients_table(report.evaluation),
    }


def write_ranking_tables(report: CohortReport, folder: Path) -> list[Path]:
    """Write the tables as CSV files into a folder; existing files are replaced.

    Raises
    ------
    PanopticError
        If a file cannot be written.
    """
    tables = {folder / name: table for name, table in ranking_tables(report).items()}
    for path in tables:
        check_writable(path)
    return [write_bytes(path, csv_bytes(table)) for path, table in tables.items()]


def _protocols(report: CohortReport) -> pd.DataFrame:
    table = report.protocols
    rows = [
        {
            "team": team,
            "protocol": protocol,
            "score": table.scores[row, column],
            "rank": table.ranks[row, column] or None,
            "units": table.n_units[row, column],
        }
        for row, team in enumerate(table.teams)
        for column, protocol in enumerate(table.protocols)
    ]
    names = ["team", "protocol", "score", "rank", "units"]
    return pd.DataFrame(rows, columns=names).astype({"rank": "Int64"})


def _averages(report: CohortReport) -> pd.DataFrame:
    table = report.aggregation
    rows = []
    for team in table.teams:
        for unit, mean in table.ways:
            found = table.aggregates[team, unit, mean]
            rank = table.ranks[team, unit, mean] or None
            row = (team, unit.value, mean.value, found.spread.mean, rank, found.spread.n)
            rows.append((*row, found.n_units))
    names = ["team", "unit", "class_mean", "pq", "rank", "defined_units", "units"]
    return pd.DataFrame(rows, columns=names).astype({"rank": "Int64"})


def _statistics(report: CohortReport) -> pd.DataFrame:
    rows = []
    for metric, found in report.statistics.items():
        comparison = found.comparison
        for team, rank in zip(comparison.teams, comparison.ranks, strict=True):
            mean = found.means[team]
            row = (metric, team, mean.mean, mean.low, mean.high, rank)
            rows.append((*row, comparison.n_patients, comparison.friedman_p))
    names = ["metric", "team", "mean", "low", "high", "rank", "patients", "friedman_p"]
    return pd.DataFrame(rows, columns=names)
