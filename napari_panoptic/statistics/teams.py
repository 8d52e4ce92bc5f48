"""All statistics of one metric over teams and patients, and their record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from napari_panoptic.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    SEED,
    Interval,
    mean_interval,
)
from napari_panoptic.statistics.friedman import (
    CriticalDifference,
    PairedFigures,
    TeamComparison,
    TeamFigures,
    compare_teams,
    critical_difference,
)
from napari_panoptic.statistics.pairwise import PairComparison, compare_pairs


@dataclass(frozen=True, eq=False)
class TeamStatistics:
    """The statistics of teams by one metric."""

    #: All teams over the patients with a figure of each.
    comparison: TeamComparison
    critical: CriticalDifference
    #: Team -> mean over all patients with a figure of it, with its interval. No figure counts as 0
    #: here, whatever the rule: it is the team's own mean.
    means: Mapping[str, Interval]
    #: Every two teams over the patients with figures of both.
    pairs: tuple[PairComparison, ...]


def team_statistics(
    figures: TeamFigures,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> TeamStatistics:
    """Compare teams by one metric, all together and two at a time.

    Parameters
    ----------
    figures
        The figures of the teams.
    resamples, seed
        As in `napari_panoptic.statistics.bootstrap.mean_interval`.

    Raises
    ------
    ValueError, SettingsError
        As `napari_panoptic.statistics.friedman.paired_figures`.
    """
    comparison = compare_teams(figures)
    return TeamStatistics(
        comparison=comparison,
        critical=critical_difference(comparison),
        means={
            team: mean_interval(values, resamples=resamples, seed=seed, unit=figures.unit)
            for team, values in figures.by_team.items()
        },
        pairs=compare_pairs(figures, resamples=resamples, seed=seed),
    )


def bootstrap_record(resamples: int, seed: int, unit: str = "patient") -> dict[str, Any]:
    """Describe how intervals were found, for a record."""
    return {"over": f"{unit}s", "level": LEVEL, "resamples": resamples, "seed": seed}


def statistics_record(statistics: TeamStatistics) -> dict[str, Any]:
    """Return plain values, for JSON."""
    comparison, critical = statistics.comparison, statistics.critical
    teams = comparison.teams
    record: dict[str, Any] = {
        **_compared(comparison.figures),
        "friedman_chi2": comparison.friedman_chi2,
        "friedman_p": comparison.friedman_p,
        "kendall_w": comparison.kendall_w,
        "why_undefined": comparison.why_undefined,
        "mean_ranks": dict(zip(teams, comparison.mean_ranks.tolist(), strict=True)),
        "ranks": dict(zip(teams, comparison.ranks, strict=True)),
        "nemenyi_p": None,
        "critical_difference": {
            "alpha": critical.alpha,
            "difference": critical.difference,
            "groups": critical.groups,
        },
        "means": {team: asdict(interval) for team, interval in statistics.means.items()},
        "pairs": [_pair_record(pair) for pair in statistics.pairs],
    }
    if comparison.nemenyi_p is not None:
        record["nemenyi_p"] = {
            team: dict(zip(teams, row, strict=True))
            for team, row in zip(teams, comparison.nemenyi_p.tolist(), strict=True)
        }
    return record


def _pair_record(pair: PairComparison) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        **_compared(pair.figures),
        "difference": asdict(pair.difference),
        "rank_biserial": pair.rank_biserial,
        "wilcoxon_p": pair.wilcoxon_p,
        "holm_p": pair.holm_p,
        "why_undefined": pair.why_undefined,
    }


def _compared(figures: PairedFigures) -> dict[str, Any]:
    return {
        "patients": len(figures.patients),
        "missing": str(figures.missing),
        "omitted": {omission.patient: omission.reason for omission in figures.omitted},
        "counted_as_worst": [list(gap) for gap in figures.counted_as_worst],
    }
