"""Tests between teams over the cases of several raters.

A case takes the place of a patient (QUBIQ, structured description: "One case is
one patient dataset"). Figures of one case are not independent, so the structures
of a case are averaged before teams are compared over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from napari_panoptic.raters.evaluate import RatedEvaluation
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.friedman import TeamFigures
from napari_panoptic.statistics.means import mean_defined
from napari_panoptic.statistics.teams import (
    TeamStatistics,
    bootstrap_record,
    statistics_record,
    team_statistics,
)
from napari_panoptic.tables.ranks import friedman_sentence

if TYPE_CHECKING:
    import pandas as pd

ALL_STRUCTURES = "(all)"
"""Stands for the mean over the structures of a case."""
UNIT = "case"

# Shared by tables, record and report. The weak keys do not keep an evaluation alive.
_KNOWN: WeakKeyDictionary[RatedEvaluation, Mapping[str, TeamStatistics]] = WeakKeyDictionary()


def rater_statistics(evaluation: RatedEvaluation) -> Mapping[str, TeamStatistics]:
    """Compare the teams by Dice over cases: over all structures, and on each.

    Missing and unreadable predictions count as background, as everywhere, so that
    figures are undefined only if Dice itself is undefined.

    Returns
    -------
    `ALL_STRUCTURES` and each structure -> statistics; only `ALL_STRUCTURES` if there is one
    structure, and empty with fewer than two teams.
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
    return team_statistics(TeamFigures(figures, [str(case) for case in means.index], unit=UNIT))


def ranking_table(evaluation: RatedEvaluation) -> pd.DataFrame:
    """Return the ranking with the result of the test over cases.

    ``rank`` is the rank by score; ``shared_rank`` is 1 + the number of teams
    that are significantly better; ``mean_rank`` is the mean over cases.
    """
    import pandas as pd

    table = evaluation.ranking.copy()
    found = rater_statistics(evaluation).get(ALL_STRUCTURES)
    ranks: dict[str, tuple[float, int | None]] = dict.fromkeys(table["team"], (math.nan, None))
    if found is not None:
        comparison = found.comparison
        shared = [None if comparison.why_undefined else rank for rank in comparison.ranks]
        both = zip(comparison.mean_ranks.tolist(), shared, strict=True)
        ranks = dict(zip(comparison.teams, both, strict=True))
    table["mean_rank"] = [ranks[team][0] for team in table["team"]]
    table["shared_rank"] = pd.array([ranks[team][1] for team in table["team"]], dtype="Int64")
    return table


def conclusion(evaluation: RatedEvaluation) -> str:
    """Return a sentence on whether teams differ; empty with fewer than two."""
    found = rater_statistics(evaluation).get(ALL_STRUCTURES)
    if found is None:
        return ""
    sentence = friedman_sentence(found.comparison, "Dice", UNIT)
    if found.comparison.why_undefined:
        return sentence
    shared = "shared rank: 1 + the number of teams that are significantly better (Nemenyi)"
    return f"{sentence.removesuffix('.')}; {shared}"


def statistics_records(evaluation: RatedEvaluation) -> dict[str, Any]:
    """Return the statistics as plain values for JSON, by structure (``(all)``: their mean)."""
    record: dict[str, Any] = {"unit": UNIT, "bootstrap": bootstrap_record(RESAMPLES, SEED, UNIT)}
    for structure, own in rater_statistics(evaluation).items():
        record[structure] = statistics_record(own)
    return record
