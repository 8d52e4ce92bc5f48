"""The teams of a region compared, and the columns of the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import styles
from napari_panoptic.display.names import cut_off, distinct_names
from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.display.team_pictures import (
    FP_COLOUR,
    CellPictures,
    ConsensusPicture,
    cell_pictures,
    consensus_picture,
)
from napari_panoptic.explain.consensus import Consensus, FpPlace, consensus
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.vocabulary import STATUSES
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.panels.region_panel import Material
from napari_panoptic.viewer.state.preferences import ViewMode


@dataclass(frozen=True, eq=False)
class TeamsComparison:
    """What is shown: the teams of a region, compared and, where asked for, drawn."""

    snapshot: RegionSnapshot
    evaluations: Mapping[str, Evaluation]
    consensus: Consensus
    cells: CellPictures | None
    picture: ConsensusPicture | None


def compared(known: Material, mode: ViewMode, widths: tuple[int, int] | None) -> TeamsComparison:
    """Compare the teams and draw what a view needs; for workers."""
    evaluations = known.complete()
    picture = consensus_picture(evaluations) if mode is ViewMode.CONSENSUS else None
    return TeamsComparison(
        snapshot=known.snapshot,
        evaluations=evaluations,
        consensus=consensus(evaluations) if picture is None else picture.consensus,
        cells=cell_pictures(evaluations, widths) if mode is ViewMode.GRID else None,
        picture=picture,
    )


LONGEST_NAME = 24
"""Letters that the heading of a team's column has room for; longer names lose their end."""


def _heading(comparison: TeamsComparison, team: str) -> str:
    teams = list(comparison.evaluations)
    short = distinct_names(teams)[teams.index(team)]
    return f"{cut_off(short, LONGEST_NAME)}\n{ratio_text(comparison.evaluations[team].metrics.pq)}"


def object_columns(comparison: TeamsComparison, order: NDArray[np.intp]) -> list[Column]:
    """Return what is shown of the reference objects, in an order."""
    result = comparison.consensus
    own, n = result.reference, len(result.teams)
    names = np.array(["", *result.class_names])
    return [
        Column("Id", "Id of the annotated object.", own.ids[order], width=44),
        Column(
            "Class",
            "Class in the annotation.",
            names[own.class_index[order]],
            width=80,
            is_text=True,
        ),
        Column(
            "Found",
            "How many teams found it with the right class (TP), out of how many.",
            result.found[order],
            text=lambda value: f"{value} / {n}",
            width=50,
        ),
        *(
            _status_column(comparison, team, result.status[order, number])
            for number, team in enumerate(result.teams)
        ),
        Column(
            "Area",
            "Its area in px, after the ambiguous policy.",
            own.area_px[order],
            text=lambda value: count_text(int(value)),
        ),
    ]


def place_columns(comparison: TeamsComparison, places: Sequence[FpPlace]) -> list[Column]:
    """Return what is shown of invented places."""
    teams = comparison.consensus.teams
    n = len(teams)
    numbers = np.array([[len(p.rows.get(t, ())) for t in teams] for p in places], np.int64)
    numbers = numbers.reshape(len(places), n)
    return [
        Column("Place", "Number of the place, most teams first.", np.arange(1, len(places) + 1)),
        Column(
            "Teams",
            "How many teams have an FP here, out of how many.",
            (numbers > 0).sum(axis=1),
            text=lambda value: f"{value} / {n}",
        ),
        *(_number_column(comparison, team, numbers[:, k]) for k, team in enumerate(teams)),
    ]


def _status_column(
    comparison: TeamsComparison, team: str, codes: NDArray[np.integer[Any]]
) -> Column:
    statuses = [STATUSES[code] for code in codes]
    return _team_column(
        comparison,
        team,
        f"Outcome of the object with {team}, and below its name the team's PQ here.",
        codes,
        text=lambda code: styles.SHORT_STATUS_WORDS[STATUSES[code]],
        tooltip=lambda row: (
            f"{team}: {styles.STATUS_MEANINGS[statuses[row]]} Click to see this team."
        ),
        colour=lambda row: styles.STATUS_COLOURS[statuses[row]],
    )


def _number_column(comparison: TeamsComparison, team: str, numbers: NDArray[np.int64]) -> Column:
    return _team_column(
        comparison,
        team,
        f"How many FPs {team} has here; below its name the team's PQ.",
        numbers,
        text=lambda value: count_text(int(value)) if value else "",
        colour=lambda row: FP_COLOUR if numbers[row] else None,
    )


def _team_column(
    comparison: TeamsComparison,
    team: str,
    meaning: str,
    values: NDArray[np.integer[Any]],
    **more: Any,
) -> Column:
    heading = _heading(comparison, team)
    return Column(
        heading, meaning, values, stretch=True, is_whole=True, is_text=True, key=team, **more
    )


def object_sentence(result: Consensus, row: int) -> str:
    """Describe the outcome of a reference object with each team."""
    own = result.reference
    words: dict[str, list[str]] = {}
    for team, code in zip(result.teams, result.status[row], strict=True):
        words.setdefault(styles.STATUS_WORDS[STATUSES[code]], []).append(team)
    fates = " · ".join(f"{status}: {', '.join(teams)}" for status, teams in words.items())
    return f"Reference {own.ids[row]} · {result.class_names[own.class_index[row] - 1]} · {fates}"


def place_sentence(place: FpPlace) -> str:
    """Return which teams have an FP at a place."""
    y, x = place.centroid_yx_px
    return f"Nothing is annotated at ({y:.0f}, {x:.0f}) px · FP: {', '.join(place.teams)}"
