"""Scores of nuclear atypia: what teams reached in sum, and what they answered frame by frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from napari_panoptic.detections.atypia import (
    POINTS_RULE,
    AnswerState,
    AtypiaAnswer,
    AtypiaEvaluation,
    LoadedScores,
)
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.display.glossary import ATYPIA_MEANINGS
from napari_panoptic.display.styles import UNDEFINED, count_text, points_text, ratio_text
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.name_table import NameTable
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.panels.places import figure_column, name_column

_TEAM_ROWS = 7
"""Number of teams that are seen without scrolling."""


@dataclass(frozen=True)
class _Row:
    """A line of the list: the scores of a frame, and whose answer."""

    loaded: LoadedScores
    team: str

    @property
    def answer(self) -> AtypiaAnswer:
        return self.loaded.answers[self.team]


class AtypiaPanel(QWidget):
    """The points of each team, and of the team shown the score of every frame; or of all teams."""

    frame_chosen = Signal(str)
    team_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state: tuple[object, ...] | None = None
        self._session: DetectionSession | None = None
        self._rows: list[_Row] = []
        self.teams = NameTable("Scores of the teams")
        self.teams.chosen.connect(self.team_chosen.emit)
        self._note = WrappedLabel()
        self.table = ArrayTable()
        self.table.row_chosen.connect(self._on_row)
        self.table.centre_wanted.connect(self._on_row)
        self.all_teams = QCheckBox("All teams")
        self.all_teams.setToolTip("List the scores of all teams, not only of the one shown.")
        self.all_teams.toggled.connect(self._on_toggled)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.teams)
        layout.addWidget(self._note)
        layout.addWidget(self.all_teams)
        layout.addWidget(self.table, 1)

    def show_session(self, session: DetectionSession) -> None:
        """Show what is known, where it differs from what is shown."""
        self._session = session
        name = "" if session.shown is None else session.shown.frame.name
        state = (id(session), id(session.scores), session.team, name, self.all_teams.isChecked())
        if state != self._state:
            is_other = self._state is None or state[:2] != self._state[:2]
            self._state = state
            if is_other:
                self._fill_teams(session.scores)
            self.teams.mark(session.team)
            self._fill_rows(session, name)

    def note(self) -> str:
        """Return the text about the scores as a whole."""
        return self._note.text()

    def _fill_teams(self, scores: AtypiaEvaluation | None) -> None:
        names: list[str] = []
        if scores is not None:
            last = len(scores.team_names)
            names = sorted(scores.team_names, key=lambda team: scores.ranks.get(team, last))
        self.teams.show_rows(names, [] if scores is None else _team_columns(scores, names))
        self.teams.setFixedHeight(self.teams.table.row_height * (2 + min(len(names), _TEAM_ROWS)))
        self._note.setText("Reading the scores …" if scores is None else f"{POINTS_RULE}.")

    def _fill_rows(self, session: DetectionSession, frame: str) -> None:
        scores = session.scores
        listed: Sequence[str] = ()
        if scores is not None:
            wanted = scores.team_names if self.all_teams.isChecked() else (session.team,)
            listed = [team for team in scores.team_names if team in wanted]
        self._rows = [
            _Row(loaded, team)
            for loaded in (() if scores is None else scores.frames)
            for team in listed
        ]
        self.table.show_rows(self._columns())
        here = [
            row
            for row, each in enumerate(self._rows)
            if each.team == session.team and frame in self._frames_of(each.loaded)
        ]
        self.table.select(here[0] if here else None)

    def _columns(self) -> tuple[Column, ...]:
        rows = self._rows
        points = [row.loaded.points(row.team) for row in rows]
        return (
            Column(
                "Frame",
                "The frame whose atypia was scored; click to show it.",
                _words([row.loaded.frame.name for row in rows]),
                is_text=True,
                stretch=True,
                tooltip=lambda row: self._where(rows[row].loaded),
            ),
            Column(
                "Team",
                "Whose score.",
                _words([row.team for row in rows]),
                is_text=True,
                stretch=True,
            ),
            Column(
                "True",
                ATYPIA_MEANINGS["true score"],
                _words([_said(row.loaded.reference) for row in rows]),
                width=40,
                is_text=True,
                tooltip=lambda row: rows[row].loaded.reference.why,
            ),
            Column(
                "Score",
                ATYPIA_MEANINGS["score"],
                _words([_said(row.answer) for row in rows]),
                width=98,
                is_text=True,
                tooltip=lambda row: (
                    rows[row].answer.why or ATYPIA_MEANINGS[str(rows[row].answer.state)]
                ),
            ),
            Column(
                "Conf",
                "The team's confidence in its score.",
                np.array([row.answer.given.confidence for row in rows], float),
                text=ratio_text,
                width=44,
            ),
            Column(
                "Points",
                ATYPIA_MEANINGS["points"],
                np.array([math.nan if value is None else value for value in points], float),
                text=points_text,
                width=46,
            ),
        )

    def _frames_of(self, loaded: LoadedScores) -> list[str]:
        """Name the frames that can be looked at for a score."""
        if self._session is None:
            return []
        return [frame.name for frame in self._session.cohort.frames_of(loaded.frame)]

    def _where(self, loaded: LoadedScores) -> str:
        names = self._frames_of(loaded)
        if not names:
            return f"{loaded.frame.name}: none of the frames of this cohort shows it"
        return f"{loaded.frame.name}: seen in {', '.join(names)}"

    def _on_row(self, row: int, _column: int = 0) -> None:
        """Go to the frame of a row, and to its team; stay where a part of that frame is shown."""
        session, chosen = self._session, self._rows[row]
        if session is None:
            return
        names = self._frames_of(chosen.loaded)
        here = None if session.shown is None else session.shown.frame.name
        if chosen.team != session.team:
            self.team_chosen.emit(chosen.team)
        if names and here not in names:
            self.frame_chosen.emit(names[0])

    def _on_toggled(self, _checked: bool) -> None:
        if self._session is not None:
            self.show_session(self._session)


def _words(texts: Sequence[str]) -> np.ndarray:
    return np.array(texts, dtype=object)


def _said(answer: AtypiaAnswer) -> str:
    """Return a score, or say why there is none."""
    return str(answer.state if answer.given.score is None else answer.given.score)


def _team_columns(scores: AtypiaEvaluation, names: Sequence[str]) -> list[Column]:
    """Describe what teams reached over all frames; one that sent no scores reached nothing."""
    found = [scores.of(name) if name in scores.ranks else None for name in names]
    ranks = [scores.ranks.get(name, math.nan) for name in names]
    lacking = [(UNDEFINED, "")] * len(names)

    def column(title: str, values: Sequence[float], text: Callable[[Any], str]) -> Column:
        return figure_column(title, ATYPIA_MEANINGS[title], values, lacking, text=text)

    def reached(name: str) -> list[float]:
        return [math.nan if one is None else getattr(one, name) for one in found]

    return [
        name_column("Team", "The team; choose it to list its scores.", names),
        column("rank", ranks, _count),
        column("points", reached("points"), points_text),
        column("frames", reached("n_frames"), _count),
        column("right", reached("n_right"), _count),
        column(str(AnswerState.NOT_EVALUATED), reached("n_not_evaluated"), _count),
        column(str(AnswerState.MISSING), [scores.n_missing(name) for name in names], _count),
    ]


def _count(value: float) -> str:
    return count_text(int(value))
