"""Whether teams differ over the cases of several raters.

A case is what a patient is elsewhere (QUBIQ, structured description: "One case is
one patient dataset"): figures of one case are not independent, so the structures
of a case are averaged before teams are compared over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd

from napari_panoptic.raters.evaluate import RatedEvaluation
from napari_panoptic.report.team_statistics import (
    TeamStatistics,
    bootstrap_record,
    statistics_record,
    team_statistics,
)
from napari_panoptic.report.text import p_value
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.friedman import SIGNIFICANCE
from napari_panoptic.statistics.means import mean_defined

ALL_STRUCTURES = "(all)"
"""Stands for the mean over the structures of a case."""
UNIT = "case"


# Tables, record and report ask for the same. An evaluation is not kept for it.
_KNOWN: WeakKeyDictionary[RatedEvaluation, Mapping[str, TeamStatistics]] = WeakKeyDictionary()


def rated_statistics(evaluation: RatedEvaluation) -> Mapping[str, TeamStatistics]:
    """Compare the teams by Dice over cases: over all structures, and on each.

    Missing and unreadable predictions count as background, as everywhere: a gap
    is there only where Dice itself is undefined.

    Returns
    -------
    `ALL_STRUCTURES` and the structures -> what is to be said; without the
    structures where there is one only, and empty with fewer than two teams.
    """
    if evaluation not in _KNOWN:
        _KNOWN[evaluation] = _statistics(evaluation)
    return _KNOWN[evaluation]


def _statistics(evaluation: RatedEvaluation) -> Mapping[str, TeamStatistics]:
    if len(evaluation.teams) < 2:
        return {}
    cases = evaluation.cases
    found = {ALL_STRUCTURES: _compared(evaluation, cases)}
    if len(evaluation.cohort.structures) > 1:
        for structure in evaluation.cohort.structures:
            found[structure] = _compared(evaluation, cases[cases["structure"] == structure])
    return found


def _compared(evaluation: RatedEvaluation, cases: pd.DataFrame) -> TeamStatistics:
    by_case = cases.groupby(["case", "team"], sort=False)["dice"]
    means = by_case.agg(mean_defined).unstack("team")
    figures = {team: means[team].tolist() if team in means else [] for team in evaluation.teams}
    return team_statistics(figures, [str(case) for case in means.index], unit=UNIT)


def tests_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return a row per structure, the first for all together: whether teams differ."""
    rows = [
        {
            "structure": structure,
            "cases": own.comparison.n_patients,
            "left_out": " ".join(o.patient for o in own.comparison.figures.omitted),
            "friedman_chi2": own.comparison.friedman_chi2,
            "friedman_p": own.comparison.friedman_p,
            "kendall_w": own.comparison.kendall_w,
            "critical_difference": own.critical.difference,
            "why_undefined": own.comparison.why_undefined,
        }
        for structure, own in rated_statistics(evaluation).items()
    ]
    columns = ["structure", "cases", "left_out", "friedman_chi2", "friedman_p", "kendall_w"]
    return pd.DataFrame(rows, columns=[*columns, "critical_difference", "why_undefined"])


def ranking_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return the ranking with what the test over cases says.

    ``rank`` is that of the score; ``shared_rank`` is 1 + the number of teams
    that are significantly better, and ``mean_rank`` the mean over cases.
    """
    table = evaluation.ranking.copy()
    found = rated_statistics(evaluation).get(ALL_STRUCTURES)
    if found is None:
        return table.assign(
            mean_rank=float("nan"), shared_rank=pd.array([pd.NA] * len(table), dtype="Int64")
        )
    comparison = found.comparison
    mean_ranks = dict(zip(comparison.teams, comparison.mean_ranks.tolist(), strict=True))
    ranks: dict[str, Any] = dict(zip(comparison.teams, comparison.ranks, strict=True))
    if comparison.why_undefined:
        ranks = dict.fromkeys(comparison.teams, pd.NA)
    table["mean_rank"] = table["team"].map(mean_ranks)
    table["shared_rank"] = pd.array([ranks[team] for team in table["team"]], dtype="Int64")
    return table


def said(evaluation: RatedEvaluation) -> str:
    """Say in a sentence whether teams differ; empty with fewer than two."""
    found = rated_statistics(evaluation).get(ALL_STRUCTURES)
    if found is None:
        return ""
    comparison = found.comparison
    if comparison.why_undefined:
        return f"no test of the teams: {comparison.why_undefined}"
    differ = comparison.friedman_p < SIGNIFICANCE
    return (
        f"teams {'differ' if differ else 'do not differ significantly'} over "
        f"{comparison.n_patients} cases (Friedman, p {p_value(comparison.friedman_p)}); "
        f"shared: 1 + the teams that are significantly better (Nemenyi)"
    )


def rated_statistics_record(evaluation: RatedEvaluation) -> dict[str, Any]:
    """Return all of it as plain values, for JSON; by structure, all together under ``(all)``."""
    record: dict[str, Any] = {"unit": UNIT, "bootstrap": bootstrap_record(RESAMPLES, SEED, UNIT)}
    for structure, own in rated_statistics(evaluation).items():
        record[structure] = statistics_record(own)
    return record
