"""Scores of nuclear atypia: read them, and give points for how near they are to the true ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.formats.points.point_files import AtypiaScore, read_atypia
from napari_panoptic.statistics.ranks import ranked_teams
from napari_panoptic.values.detections import DetectionCohort, ScoredFrame

NO_SCORE = AtypiaScore(None)
SCORES = (1, 2, 3)
"""The possible scores."""
POINTS_BY_DIFFERENCE = (1, 0, -1)
"""Points for a score that is right, off by one, off by two (MITOS-ATYPIA-14)."""
POINTS_RULE = (
    "1 point for a score that is right, 0 for one off by one, \N{MINUS SIGN}1 for one off by two, "
    "0 where the frame was not evaluated"
)
"""The rule in words."""


class AnswerState(StrEnum):
    """State of a team's answer."""

    SCORED = "scored"  # 1, 2 or 3
    NOT_EVALUATED = "not evaluated"  # an empty file
    MISSING = "missing"  # no file
    UNREADABLE = "unreadable"  # a file that holds something else


def atypia_points(reference: int, score: int | None) -> int:
    """Return 1 for a score that is right, 0 for one off by one, -1 for one off by two.

    Parameters
    ----------
    reference
        The true score, 1 to 3.
    score
        The team's, or None if it did not evaluate the frame: 0 points.
    """
    return 0 if score is None else POINTS_BY_DIFFERENCE[abs(score - reference)]


@dataclass(frozen=True, eq=False)
class AtypiaSummary:
    """A team's result over all frames for which it sent a file."""

    #: Their sum, by which the challenge ranks.
    points: int
    #: int64 (3, 4): rows true scores, columns the team's, the last one "not evaluated".
    confusion: NDArray[np.int64]

    @property
    def n_frames(self) -> int:
        """Number of frames with a true score and a file of the team."""
        return int(self.confusion.sum())

    @property
    def n_right(self) -> int:
        """Number of frames with the right score."""
        return int(np.trace(self.confusion[:, : len(SCORES)]))

    @property
    def n_not_evaluated(self) -> int:
        """Number of frames that the team left open, with an empty file."""
        return int(self.confusion[:, -1].sum())


def summarise_atypia(pairs: Sequence[tuple[int, int | None]]) -> AtypiaSummary:
    """Summarise the scores of several frames.

    Parameters
    ----------
    pairs
        Per frame the true score, and the team's or None.
    """
    confusion = np.zeros((len(SCORES), len(SCORES) + 1), np.int64)
    for reference, score in pairs:
        column = len(SCORES) if score is None else SCORES.index(score)
        confusion[SCORES.index(reference), column] += 1
    return AtypiaSummary(sum(atypia_points(*pair) for pair in pairs), confusion)


@dataclass(frozen=True)
class AtypiaAnswer:
    """The atypia of a frame as scored by a team or the annotation."""

    #: State of the answer.
    state: AnswerState
    #: The content of the file; no score if there is none.
    given: AtypiaScore = NO_SCORE
    #: Why it cannot be read, in words; empty if it can be.
    why: str = ""

    @property
    def is_file(self) -> bool:
        """Whether there is a readable file, possibly an empty one."""
        return self.state in (AnswerState.SCORED, AnswerState.NOT_EVALUATED)


MISSING_ANSWER = AtypiaAnswer(AnswerState.MISSING)


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """The scores of a frame, as read."""

    #: The frame.
    frame: ScoredFrame
    #: The true score.
    reference: AtypiaAnswer
    #: Team -> its answer, for every requested team.
    answers: Mapping[str, AtypiaAnswer]
    #: What could not be read.
    findings: tuple[Finding, ...] = ()

    def points(self, team: str) -> int | None:
        """Return a team's points; None without a true score, or a usable file of the team."""
        true, answer = self.reference.given.score, self.answers[team]
        if true is None or not answer.is_file:
            return None
        return atypia_points(true, answer.given.score)


def load_scores(frame: ScoredFrame, teams: Sequence[str]) -> LoadedScores:
    """Read the scores of a frame; files that cannot be read are listed.

    Parameters
    ----------
    frame
        The frame.
    teams
        Names of the teams.
    """
    findings: list[Finding] = []
    reference = _answer(frame.reference, frame, None, findings)
    answers = {team: _answer(frame.predictions.get(team), frame, team, findings) for team in teams}
    return LoadedScores(frame, reference, answers, tuple(findings))


def _answer(
    path: Path | None, frame: ScoredFrame, team: str | None, findings: list[Finding]
) -> AtypiaAnswer:
    if path is None:
        return MISSING_ANSWER
    try:
        given = read_atypia(path)
    except PanopticError as error:
        findings.append(Finding.unreadable(error, region=frame.name, team=team))
        return AtypiaAnswer(AnswerState.UNREADABLE, why=str(error))
    state = AnswerState.NOT_EVALUATED if given.score is None else AnswerState.SCORED
    return AtypiaAnswer(state, given)


@dataclass(frozen=True)
class AtypiaResult:
    """A team's score of one frame, with its points."""

    #: The team and the frame.
    team: str
    frame: ScoredFrame
    #: The true score.
    reference: int
    #: The team's, perhaps none.
    answer: AtypiaScore
    #: Between -1 and 1.
    points: int


@dataclass(frozen=True, eq=False)
class AtypiaEvaluation:
    """The evaluation of the scores of a cohort."""

    #: The scores of each frame.
    frames: tuple[LoadedScores, ...] = ()
    #: The requested teams.
    team_names: tuple[str, ...] = ()

    @cached_property
    def results(self) -> tuple[AtypiaResult, ...]:
        """One per team and frame with a true score and a usable file, frame by frame."""
        found = []
        for loaded in self.frames:
            for team in self.team_names:
                true, points = loaded.reference.given.score, loaded.points(team)
                if true is not None and points is not None:
                    given = loaded.answers[team].given
                    found.append(AtypiaResult(team, loaded.frame, true, given, points))
        return tuple(found)

    def of(self, team: str) -> AtypiaSummary:
        """Summarise a team's scores."""
        return summarise_atypia(
            [(r.reference, r.answer.score) for r in self.results if r.team == team]
        )

    def n_missing(self, team: str) -> int:
        """Count the frames with a true score for which a team has no usable file."""
        return sum(
            loaded.reference.given.score is not None and not loaded.answers[team].is_file
            for loaded in self.frames
        )

    @cached_property
    def teams(self) -> tuple[str, ...]:
        """The teams that sent scores."""
        there = {result.team for result in self.results}
        return tuple(team for team in self.team_names if team in there)

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """1 + the number of teams with more points, of those that sent scores."""
        return ranked_teams({team: self.of(team).points for team in self.teams})


def evaluate_atypia(
    cohort: DetectionCohort, teams: Iterable[str] | None = None
) -> AtypiaEvaluation:
    """Read and evaluate all scores of a cohort.

    Parameters
    ----------
    cohort
        The cohort.
    teams
        Names of the teams; all if None.
    """
    names = cohort.team_names if teams is None else tuple(teams)
    return AtypiaEvaluation(tuple(load_scores(frame, names) for frame in cohort.atypia), names)
