"""Scores of nuclear atypia: read them, and give points for how near they are to the true ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.formats.points.point_files import AtypiaScore, read_atypia
from napari_panoptic.statistics.ranks import ranked_teams
from napari_panoptic.values.detections import ScoredFrame

POINTS_BY_DIFFERENCE = (1, 0, -1)
"""Points for a score that is right, off by one, off by two (MITOS-ATYPIA-14)."""


@dataclass(frozen=True)
class AtypiaResult:
    """A team's score of one frame."""

    #: The team and the frame.
    team: str
    frame: ScoredFrame
    #: The true score.
    reference: int
    #: The team's, perhaps none.
    answer: AtypiaScore

    @property
    def points(self) -> int:
        """Between -1 and 1; 0 if the team did not evaluate the frame."""
        score = self.answer.score
        return 0 if score is None else POINTS_BY_DIFFERENCE[abs(score - self.reference)]


@dataclass(frozen=True, eq=False)
class AtypiaEvaluation:
    """The evaluation of the scores of a cohort."""

    #: One per team and frame with a true score and a readable file, frame by frame.
    results: tuple[AtypiaResult, ...] = ()
    #: What could not be read.
    findings: tuple[Finding, ...] = ()

    @cached_property
    def frames(self) -> Mapping[str, int]:
        """Team -> number of its results; 0 for other teams."""
        return Counter(result.team for result in self.results)

    @cached_property
    def points(self) -> Mapping[str, int]:
        """The sum of each team that has results, by which the challenge ranks."""
        points = dict.fromkeys(self.frames, 0)
        for result in self.results:
            points[result.team] += result.points
        return points

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """1 + the number of teams with more points, of those that have results."""
        return ranked_teams(self.points)


def evaluate_atypia(frames: Sequence[ScoredFrame], teams: Sequence[str]) -> AtypiaEvaluation:
    """Read and evaluate scores; files that cannot be read are listed.

    Parameters
    ----------
    frames
        The frames.
    teams
        Names of the teams.
    """
    results, findings = [], []

    def read(path: Path | None, frame: ScoredFrame, team: str | None) -> AtypiaScore | None:
        try:
            return None if path is None else read_atypia(path)
        except PanopticError as error:
            findings.append(Finding.unreadable(error, region=frame.name, team=team))
            return None

    for frame in frames:
        true = read(frame.reference, frame, None)
        for team in teams:
            answer = read(frame.predictions.get(team), frame, team)
            if true is not None and true.score is not None and answer is not None:
                results.append(AtypiaResult(team, frame, true.score, answer))
    return AtypiaEvaluation(tuple(results), tuple(findings))
