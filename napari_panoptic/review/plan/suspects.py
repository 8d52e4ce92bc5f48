"""Suspect annotations as strata of their own: more of them are drawn, at a known probability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.questions.engines.suspects import LIKELY_SCORE, Suspect
from napari_panoptic.questions.suspects import Suspects
from napari_panoptic.review.plan.units import SUSPECT, ItemSide, KeyParts, Units, tile_name
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.vocabulary import Side


def with_suspects(units: Units, suspects: Iterable[Suspect]) -> Units:
    """Mark the items whose annotation is suspect, with a score of at least `LIKELY_SCORE`.

    - A pair or FN is suspect if its annotated object is.
    - An FP is suspect if its team is one of those that agree on it as an overlooked object.
    - A tile is suspect if it holds the centroid of such an object and its team is not one of them.

    Parameters
    ----------
    units
        The population.
    suspects
        Of the same cohort. They decide the strata: the same ones are needed for the estimate.

    Returns
    -------
    Units
        The same items, with `SUSPECT` in the detail of some.
    """
    teams = set(units.team)
    likely = [suspect for suspect in suspects if suspect.score >= LIKELY_SCORE]
    marked = {parts for suspect in likely for parts in _items(suspect, teams)}
    details = [
        f"{SUSPECT} {cause}".rstrip(" ") if parts in marked else cause
        for parts, cause in zip(units.key_parts(), units.cause.tolist(), strict=True)
    ]
    return replace(units, detail=np.array(details, object))


def with_cohort_suspects(units: Units, cohort: Cohort, source: Source | None = None) -> Units:
    """Mark the items whose annotation is suspect by the predictions of all teams of a cohort.

    Parameters
    ----------
    units
        The population.
    cohort, source
        What to compare: all teams but the annotation's own colour-coded version.

    Raises
    ------
    SettingsError
        If the cohort has fewer than two teams.
    """
    teams = [team.name for team in cohort.competing_teams]
    if len(teams) < 2:
        raise SettingsError(
            f"--suspects: suspects are found where two or more teams agree; found {len(teams)}; "
            f"leave --suspects out"
        )
    asked = Suspects(teams=tuple(teams), source=source)
    try:
        suspects = asked.gather(cohort).suspects
    except UnansweredError:  # no region has the predictions of two teams
        suspects = ()
    return with_suspects(units, suspects)


def _items(suspect: Suspect, teams: set[str]) -> list[KeyParts]:
    """Return what identifies the items of a suspect."""
    region = suspect.region
    if suspect.side is Side.REFERENCE:
        ids = (suspect.id, *suspect.other_ids)
        return [(team, region, str(ItemSide.REFERENCE), str(id_)) for team in teams for id_ in ids]
    seen = dict(zip(suspect.teams, suspect.team_ids, strict=True))
    tile = tile_name(*suspect.centroid_yx_px)
    return [
        (team, region, str(ItemSide.PREDICTION), str(seen[team]))
        if team in seen
        else (team, region, str(ItemSide.BACKGROUND), tile)
        for team in teams
    ]
