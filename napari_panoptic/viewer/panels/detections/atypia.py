"""Scores of nuclear atypia: what teams reached in sum, and what they answered frame by frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QCheckBox, QTreeWidgetItem, QVBoxLayout, QWidget

from napari_panoptic.detections.atypia import (
    POINTS_RULE,
    AnswerState,
    AtypiaAnswer,
    AtypiaEvaluation,
    LoadedScores,
)
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.nuclei.display.glossary import ATYPIA_MEANINGS
from napari_panoptic.nuclei.display.styles import UNDEFINED, count_text, points_text, ratio_text
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.shown import PlainLabel, shown
from napari_panoptic.viewer.panels.navigator import NAME_ROLE, figure_tree, fill_item

_TEAM_HEADER = {
    "Team": "The team; click to list its scores.",
    **{title: ATYPIA_MEANINGS[title] for title in ("rank", "points", "frames", "right")},
    str(AnswerState.NOT_EVALUATED): ATYPIA_MEANINGS[str(AnswerState.NOT_EVALUATED)],
    str(AnswerState.MISSING): ATYPIA_MEANINGS[str(AnswerState.MISSING)],
}
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
        self._items: dict[str, QTreeWidgetItem] = {}
        self._teams = figure_tree(_TEAM_HEADER)
        self._teams.setRootIsDecorated(False)
        self._teams.currentItemChanged.connect(self._on_team)
        self._note = PlainLabel()
        self._note.setWordWrap(True)
        self.table = ArrayTable()
        self.table.row_chosen.connect(self._on_row)
        self.table.centre_wanted.connect(self._on_row)
        self.all_teams = QCheckBox("all teams")
        self.all_teams.setToolTip("List the scores of all teams, not only of the one shown.")
        self.all_teams.toggled.connect(self._on_toggled)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self._teams)
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
            self._mark_team(session.team)
            self._fill_rows(session, name)

    def team_text(self, name: str, column: int) -> str:
        """Return what is shown of a team."""
        return self._items[name].text(column)

    def choose_team(self, name: str) -> None:
        """Choose a team, as a click on it does."""
        self._teams.setCurrentItem(self._items[name])

    def note(self) -> str:
        """Return the text about the scores as a whole."""
        return self._note.text()

    def _fill_teams(self, scores: AtypiaEvaluation | None) -> None:
        with QSignalBlocker(self._teams):
            self._teams.clear()
            self._items = {}
            if scores is None:
                self._note.setText("reading the scores …")
                return
            by_points = sorted(
                scores.team_names, key=lambda team: scores.ranks.get(team, len(scores.team_names))
            )
            for team in by_points:
                item = QTreeWidgetItem([shown(team)])
                item.setData(0, NAME_ROLE, team)
                item.setToolTip(0, shown(team))
                fill_item(item, 1, _sums(scores, team))
                self._teams.addTopLevelItem(item)
                self._items[team] = item
        height = self._teams.sizeHintForRow(0) * min(len(self._items), _TEAM_ROWS)
        header = self._teams.header()
        self._teams.setFixedHeight(
            height + (0 if header is None else header.sizeHint().height()) + 6
        )
        self._note.setText(f"{POINTS_RULE}.")

    def _mark_team(self, team: str | None) -> None:
        item = self._items.get(team or "")
        if item is not None:
            with QSignalBlocker(self._teams):
                self._teams.setCurrentItem(item)

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
                "frame",
                "The frame whose atypia was scored; click to show it.",
                _words([row.loaded.frame.name for row in rows]),
                width=80,
                is_text=True,
                tooltip=lambda row: self._where(rows[row].loaded),
            ),
            Column("team", "Whose score.", _words([r.team for r in rows]), width=70, is_text=True),
            Column(
                "true",
                ATYPIA_MEANINGS["true score"],
                _words([_said(row.loaded.reference) for row in rows]),
                width=40,
                is_text=True,
                tooltip=lambda row: rows[row].loaded.reference.why,
            ),
            Column(
                "score",
                ATYPIA_MEANINGS["score"],
                _words([_said(row.answer) for row in rows]),
                width=98,
                is_text=True,
                tooltip=lambda row: (
                    rows[row].answer.why or ATYPIA_MEANINGS[str(rows[row].answer.state)]
                ),
            ),
            Column(
                "conf",
                "The team's confidence in its score.",
                np.array([row.answer.given.confidence for row in rows], float),
                text=ratio_text,
                width=44,
            ),
            Column(
                "points",
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

    def _on_team(self, item: QTreeWidgetItem | None, _previous: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.team_chosen.emit(item.data(0, NAME_ROLE))

    def _on_toggled(self, _checked: bool) -> None:
        if self._session is not None:
            self.show_session(self._session)


def _words(texts: Sequence[str]) -> np.ndarray:
    return np.array(texts, dtype=object)


def _said(answer: AtypiaAnswer) -> str:
    """Return a score, or say why there is none."""
    return str(answer.state if answer.given.score is None else answer.given.score)


def _sums(scores: AtypiaEvaluation, team: str) -> tuple[str, ...]:
    """Describe what a team reached over all frames; one that sent no scores reached nothing."""
    missing = scores.n_missing(team)
    if team not in scores.ranks:
        return (*(UNDEFINED,) * 5, count_text(missing))
    found = scores.of(team)
    counts = (found.n_frames, found.n_right, found.n_not_evaluated, missing)
    return (
        count_text(scores.ranks[team]),
        points_text(found.points),
        *(count_text(value) for value in counts),
    )
