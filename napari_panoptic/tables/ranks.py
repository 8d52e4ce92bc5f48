"""Ranks of teams and their test, in words and figures."""

from __future__ import annotations

import math

from napari_panoptic.statistics.friedman import SIGNIFICANCE, TeamComparison
from napari_panoptic.tables.figures import p_value


def friedman_sentence(comparison: TeamComparison, what: str, unit: str) -> str:
    """Return the result of the Friedman test as a sentence.

    Parameters
    ----------
    comparison
        The teams compared.
    what
        The figure compared, such as ``"PQ"``.
    unit
        The unit over which teams are compared: ``patient`` or ``case``.
    """
    if comparison.why_undefined:
        return f"No Friedman test of {what}: {comparison.why_undefined}."
    differs = comparison.friedman_p < SIGNIFICANCE
    p = p_value(comparison.friedman_p)
    return (
        f"{what[0].upper()}{what[1:]} {'differs' if differs else 'does not differ significantly'} "
        f"between teams (Friedman, p {p if p.startswith('<') else f'= {p}'}, "
        f"n = {comparison.n_patients} {unit}s, Kendall's W = {comparison.kendall_w:.2f})."
    )


def rank_of(comparison: TeamComparison, name: str) -> dict[str, float]:
    """Return the ``mean_rank`` and the ``rank`` of a team, NaN if they are undefined."""
    if name not in comparison.teams or comparison.why_undefined:
        return {"mean_rank": math.nan, "rank": math.nan}
    place = comparison.teams.index(name)
    return {
        "mean_rank": float(comparison.mean_ranks[place]),
        "rank": comparison.ranks[place],
    }
