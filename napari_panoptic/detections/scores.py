"""From files of atypia scores to points: what each team answered, and what it amounts to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from napari_panoptic.common.errors import Finding, FindingKind, PanopticError
from napari_panoptic.detections.atypia import (
    AnswerState,
    AtypiaSummary,
    atypia_points,
    summarise_atypia,
)
from napari_panoptic.detections.cohort import DetectionCohort, ScoredFrame
from napari_panoptic.io.points import AtypiaScore, read_atypia
from napari_panoptic.statistics.ranks import ranked_teams

NO_SCORE = AtypiaScore(None)


@dataclass(frozen=True)
class AtypiaAnswer:
    """What a team, or the annotation, says about the atypia of a frame.

    Parameters
    ----------
    state
        What is there.
    given
        What the file says; no score where there is none.
    why
        Why it cannot be read, in words; empty where it can be.
    """

    state: AnswerState
    given: AtypiaScore = NO_SCORE
    why: str = ""

    @property
    def is_file(self) -> bool:
        """Whether there is a usable file, be it an empty one."""
        return self.state in (AnswerState.SCORED, AnswerState.NOT_EVALUATED)


MISSING_ANSWER = AtypiaAnswer(AnswerState.MISSING)


@dataclass(frozen=True, eq=False)
class LoadedScores:
    """The scores of a frame, as read.

    Parameters
    ----------
    frame
        Which.
    reference
        The true score.
    answers
        Team -> its answer; every team that was asked for is there.
    findings
        What could not be read.
    """

    frame: ScoredFrame
    reference: AtypiaAnswer
    answers: Mapping[str, AtypiaAnswer]
    findings: tuple[Finding, ...] = ()

    def points(self, team: str) -> int | None:
        """Return a team's points; None without a true score, or a usable file of the team."""
        true, answer = self.reference.given.score, self.answers[team]
        if true is None or not answer.is_file:
            return None
        return atypia_points(true, answer.given.score)


def load_scores(frame: ScoredFrame, teams: Sequence[str]) -> LoadedScores:
    """Read the scores of a frame; what cannot be read is listed.

    Parameters
    ----------
    frame
        Which.
    teams
        Whose answers.
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
        finding = Finding(FindingKind.UNREADABLE, str(error), error.path, frame.name, team)
        findings.append(finding)
        return AtypiaAnswer(AnswerState.UNREADABLE, why=str(error))
    state = AnswerState.NOT_EVALUATED if given.score is None else AnswerState.SCORED
    return AtypiaAnswer(state, given)


@dataclass(frozen=True)
class AtypiaResult:
    """What became of a team's score of one frame.

    Parameters
    ----------
    team, frame
        Whose, and where.
    reference
        The true score.
    answer
        The team's, perhaps none.
    points
        Between -1 and 1.
    """

    team: str
    frame: ScoredFrame
    reference: int
    answer: AtypiaScore
    points: int


@dataclass(frozen=True, eq=False)
class AtypiaEvaluation:
    """What became of the scores of a cohort.

    Parameters
    ----------
    frames
        The scores of each frame.
    team_names
        Whose were asked for.
    """

    frames: tuple[LoadedScores, ...] = ()
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
        """Sum up a team's scores."""
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
        Whose.
    teams
        Which teams; all where None.
    """
    names = cohort.team_names if teams is None else tuple(teams)
    return AtypiaEvaluation(tuple(load_scores(frame, names) for frame in cohort.atypia), names)
