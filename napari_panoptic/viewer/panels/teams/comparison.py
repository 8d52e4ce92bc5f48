"""The teams of a region compared, and the columns of the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import shortened
from napari_panoptic.display import styles
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
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import STATUSES
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.panels.seen_part import Material
from napari_panoptic.viewer.state.modes import ViewMode


@dataclass(frozen=True, eq=False)
class TeamsComparison:
    """What is shown: the teams of a region, compared and, where asked for, drawn."""

    snapshot: RegionSnapshot
    evaluations: Mapping[str, Evaluation]
    consensus: Consensus
    cells: CellPictures | None
    picture: ConsensusPicture | None


def compared(known: Material, mode: ViewMode, widths: tuple[int, int]) -> TeamsComparison:
    """Compare the teams and draw what a view needs; for workers."""
    evaluations = known.complete()
    picture = consensus_picture(evaluations, widths[1]) if mode is ViewMode.CONSENSUS else None
    return TeamsComparison(
        snapshot=known.snapshot,
        evaluations=evaluations,
        consensus=consensus(evaluations) if picture is None else picture.consensus,
        cells=cell_pictures(evaluations, widths) if mode is ViewMode.GRID else None,
        picture=picture,
    )


LONGEST_NAME = 24
"""Letters that the heading of a team's column has room for; longer names lose their middle."""


def _heading(comparison: TeamsComparison, team: str) -> str:
    pq = ratio_text(comparison.evaluations[team].metrics.pq)
    return f"{shortened(team, LONGEST_NAME)}\n{pq}"


def object_columns(comparison: TeamsComparison, order: NDArray[np.intp]) -> list[Column]:
    """Return what is shown of the reference objects, in an order."""
    result = comparison.consensus
    own, n = result.reference, len(result.teams)
    names = np.array(result.class_names)
    columns = [
        Column("Id", "Id of the annotated object.", own.ids[order], width=44),
        Column(
            "Class",
            "Class in the annotation.",
            names[own.class_index[order] - 1] if len(names) else own.ids[order].astype(str),
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
    ]
    columns += [_team_column(comparison, number, order) for number in range(len(result.teams))]
    columns.append(
        Column(
            "Area",
            "Its area in px, after the ambiguous policy.",
            own.area_px[order],
            text=lambda value: count_text(int(value)),
        )
    )
    return columns


def _team_column(comparison: TeamsComparison, number: int, order: NDArray[np.intp]) -> Column:
    result = comparison.consensus
    team = result.teams[number]
    codes = result.status[order, number]

    def tooltip(row: int) -> str:
        return f"{team}: {styles.STATUS_MEANINGS[STATUSES[codes[row]]]} Click to see this team."

    return Column(
        _heading(comparison, team),
        f"Outcome of the object with {team}, and below its name the team's PQ here.",
        codes,
        text=lambda code: styles.SHORT_STATUS_WORDS[STATUSES[code]],
        tooltip=tooltip,
        colour=lambda row: styles.STATUS_COLOURS[STATUSES[codes[row]]],
        stretch=True,
        is_whole=True,
        is_text=True,
        key=team,
    )


def place_columns(comparison: TeamsComparison, places: Sequence[FpPlace]) -> list[Column]:
    """Return what is shown of invented places."""
    teams = comparison.consensus.teams
    n = len(teams)
    numbers = np.array([[len(p.rows.get(t, ())) for t in teams] for p in places], np.int64)
    numbers = numbers.reshape(len(places), n)
    columns = [
        Column("Place", "Number of the place, most teams first.", np.arange(1, len(places) + 1)),
        Column(
            "Teams",
            "How many teams have an FP here, out of how many.",
            (numbers > 0).sum(axis=1),
            text=lambda value: f"{value} / {n}",
        ),
    ]
    columns += [
        Column(
            _heading(comparison, team),
            f"How many FPs {team} has here; below its name the team's PQ.",
            numbers[:, k],
            text=lambda value: count_text(int(value)) if value else "",
            colour=_place_colour(numbers[:, k]),
            stretch=True,
            is_whole=True,
            is_text=True,
            key=team,
        )
        for k, team in enumerate(teams)
    ]
    return columns


def _place_colour(numbers: NDArray[np.int64]) -> Callable[[int], Rgb | None]:
    return lambda row: FP_COLOUR if numbers[row] else None


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
