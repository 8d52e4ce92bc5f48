"""Compare the teams of a region: what all miss, what only one finds, where several have an FP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import counted
from napari_panoptic.display import slide_texts
from napari_panoptic.display.names import cut_off, distinct_names
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.question import RegionQuestion
from napari_panoptic.display.styles import (
    SHORT_STATUS_WORDS,
    STATUS_MEANINGS,
    STATUS_WORDS,
    count_text,
    ratio_text,
)
from napari_panoptic.display.team_pictures import SEVERAL
from napari_panoptic.explain.consensus import Consensus, FpPlace, consensus
from napari_panoptic.explain.failures import FailureSet
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.tables.columns import CellContent, TableColumn, TableSpec, number, whole, words
from napari_panoptic.values.vocabulary import STATUSES, Side, Status

LONGEST_NAME = 24
"""Letters that the heading of a team's column has room for; longer names lose their end."""
ALL, FN_IN_ALL, TP_IN_ONE = "All", "FN in all teams", "TP in one team only"
FP_IN_SEVERAL = f"FP in {SEVERAL}+ teams"
ONE_TEAM = "Only one team has a prediction here: add a second team's folder to compare them."
NONE_LISTED = f"No object of this kind here. Press “{ALL}” to see every annotated object."
NONE_ANNOTATED = f"Nothing is annotated here. Press “{FP_IN_SEVERAL}”, or choose another region."
_CAPTIONS = {
    ALL: "Every annotated object, those found by the fewest teams first.",
    FN_IN_ALL: "Annotated objects that are FN in every team evaluated on them.",
    TP_IN_ONE: "Annotated objects that exactly one team found with the right class (TP).",
    FP_IN_SEVERAL: "Places where two or more teams have an FP.",
}


@dataclass(frozen=True, kw_only=True)
class RegionTeams(RegionQuestion):
    """The outcomes of several teams in a region, object by object."""

    title = "Teams"
    heading = "Teams in a region"
    key = "u"
    marks_name = ""
    on_slide = slide_texts.TEAMS
    is_about_all_teams = True

    def answered(self, here: Here) -> Answer:
        """Compare the teams."""
        return teams_answer(here, consensus(here.evaluations))


def teams_answer(here: Here, result: Consensus) -> Answer:
    """List annotated objects, and places with FPs, of the teams that were compared."""
    order = np.lexsort((-result.reference.area_px, -result.fn, result.found))
    n, missed = len(order), int(result.fn_for_all.sum())
    chosen = {
        ALL: np.ones(n, np.bool_),
        FN_IN_ALL: result.fn_for_all,
        TP_IN_ONE: result.found_by_one_only,
    }
    lists = [_objects(here, result, order[own[order]], name) for name, own in chosen.items()]
    return Answer(
        headline=f"{counted(len(result.teams), 'team')}: {count_text(missed)} of "
        f"{counted(n, 'annotated object', write=count_text)} are FN in all of them.",
        notes=(ONE_TEAM,) if len(result.teams) == 1 else (),
        tables=(*lists, _places(here, result.shared_fp_places(SEVERAL))),
    )


def _objects(here: Here, result: Consensus, rows: NDArray[np.intp], heading: str) -> AnswerTable:
    """Return annotated objects with their outcome in each team."""
    own, teams = result.reference, result.teams
    columns = [
        whole("id", "Id", "Id of the annotated object."),
        words("class", "Class", "Class in the annotation."),
        _out_of(teams, "found", "Found", "How many teams found it with the right class (TP)"),
        *_team_columns(here.evaluations, _status_cell, "Outcome of the object with {}"),
        whole("area_px", "Area", "Its area in px, after the ambiguous policy."),
    ]
    content = {
        "id": own.ids[rows],
        "class": np.array(["", *result.class_names])[own.class_index[rows]],
        "found": result.found[rows],
        "area_px": own.area_px[rows],
    }
    statuses = [[STATUSES[code] for code in result.status[rows, k]] for k in range(len(teams))]
    return _table(
        TableSpec("", "annotated object", columns, _CAPTIONS[heading]),
        content | dict(zip(map(_key, teams), statuses, strict=True)),
        lambda row: here.named((team, Side.REFERENCE, own.ids[rows[row]]) for team in teams),
        heading=heading,
        tooltip=lambda row: object_sentence(result, int(rows[row])),
        empty=NONE_LISTED if len(own) else NONE_ANNOTATED,
    )


def _places(here: Here, places: Sequence[FpPlace]) -> AnswerTable:
    """Return the places where several teams have an FP."""
    teams = tuple(here.evaluations)
    ids = {team: own.outcomes.prediction.ids for team, own in here.evaluations.items()}
    columns = [
        whole("place", "Place", "Number of the place, most teams first."),
        _out_of(teams, "teams", "Teams", "How many teams have an FP here"),
        *_team_columns(here.evaluations, _number_cell, "How many FPs {} has here"),
    ]
    content = {"place": np.arange(1, len(places) + 1), "teams": [len(p.rows) for p in places]}
    counts = [[len(place.rows.get(team, ())) for place in places] for team in teams]
    return _table(
        TableSpec("", "place with FPs", columns, _CAPTIONS[FP_IN_SEVERAL]),
        content | dict(zip(map(_key, teams), counts, strict=True)),
        lambda row: here.named(
            (team, Side.PREDICTION, ids[team][fp])
            for team, rows in places[row].rows.items()
            for fp in rows
        ),
        heading=FP_IN_SEVERAL,
        tooltip=lambda row: _place_sentence(places[row]),
        empty=NONE_LISTED,
    )


def _table(
    spec: TableSpec, columns: Mapping[str, Any], objects: Callable[[int], FailureSet], **more: Any
) -> AnswerTable:
    import pandas as pd

    frame = pd.DataFrame(columns)
    return AnswerTable(spec, frame, objects, has_others=True, is_of_objects=True, **more)


def _key(team: str) -> str:
    """Return the name of a team's column in a frame, which no other column has."""
    return f"with {team}"


def _out_of(teams: Sequence[str], key: str, title: str, about: str) -> TableColumn:
    """Return a column of numbers of teams."""
    n = len(teams)
    return number(key, title, lambda count: f"{count:.0f} / {n}", f"{about}, out of how many.")


def _team_columns(
    evaluations: Mapping[str, Evaluation], cell: Callable[[str, Any], CellContent], about: str
) -> Iterator[TableColumn]:
    """Yield a column per team; below the team's name its heading has the PQ."""
    for team, short in zip(evaluations, distinct_names(list(evaluations)), strict=True):
        pq = ratio_text(evaluations[team].metrics.pq)
        yield TableColumn(
            f"{cut_off(short, LONGEST_NAME)}\n{pq}",
            lambda row, team=team: cell(team, row[_key(team)]),  # type: ignore[misc]
            (team,),
            f"{about.replace('{}', team)}; below its name the team's PQ.",
        )


def _status_cell(team: str, status: Status) -> CellContent:
    about = f"{team}: {STATUS_MEANINGS[status]} Click to see this team."
    return CellContent(SHORT_STATUS_WORDS[status], None, status, about)


def _number_cell(_team: str, count: int) -> CellContent:
    return CellContent(count_text(count), count, Status.FP) if count else CellContent("", 0)


def object_sentence(result: Consensus, row: int) -> str:
    """Describe the outcome of a reference object with each team."""
    own = result.reference
    fates: dict[str, list[str]] = {}
    for team, code in zip(result.teams, result.status[row], strict=True):
        fates.setdefault(STATUS_WORDS[STATUSES[code]], []).append(team)
    texts = " · ".join(f"{status}: {', '.join(teams)}" for status, teams in fates.items())
    return f"Reference {own.ids[row]} · {result.class_names[own.class_index[row] - 1]} · {texts}"


def _place_sentence(place: FpPlace) -> str:
    y, x = place.centroid_yx_px
    return f"Nothing is annotated at ({y:.0f}, {x:.0f}) px · FP: {', '.join(place.teams)}"
