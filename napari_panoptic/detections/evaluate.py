"""Evaluate a cohort of detections: from files of points to counts and curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.detections.atypia import AtypiaEvaluation, evaluate_atypia
from napari_panoptic.detections.curve import (
    ConfidenceCounts,
    DetectionCurve,
    StackedCounts,
    confidence_counts,
)
from napari_panoptic.detections.pairing import (
    DetectionCounts,
    DetectionSettings,
    JudgedPoints,
    judge_points,
)
from napari_panoptic.io.formats.points.point_files import read_points
from napari_panoptic.io.images.slides import probe_image
from napari_panoptic.statistics.bootstrap import Interval, mean_interval
from napari_panoptic.statistics.friedman import TeamComparison, TeamFigures, compare_teams
from napari_panoptic.statistics.ranks import ranked_teams
from napari_panoptic.values.detections import DetectionCohort, Frame, Points

JUDGING_ERRORS = (ValueError, MemoryError)
"""Errors of SciPy's solvers for points that cannot be paired."""


@dataclass(frozen=True, eq=False)
class LoadedFrame:
    """The points of a frame, as read."""

    #: The frame.
    frame: Frame
    #: Height and width in px, or None without an image.
    shape: tuple[int, int] | None
    #: Micrometres per pixel along x and y.
    mpp_xy: tuple[float, float]
    #: The annotated points, or None without a readable file.
    reference: Points | None
    #: Team -> its detections, if its file exists and can be read.
    predictions: Mapping[str, Points]
    #: What was odd or could not be read.
    findings: tuple[Finding, ...] = ()


def load_frame(
    cohort: DetectionCohort, frame: Frame, teams: Sequence[str] | None = None
) -> LoadedFrame:
    """Read the points of a frame, no pixels.

    Parameters
    ----------
    cohort, frame
        What to read.
    teams
        Names of the teams; all if None.

    Raises
    ------
    UnreadableFileError
        If neither the description nor the image states the pixel size, or the image
        cannot be read.
    """
    findings: list[Finding] = []
    shape, mpp_xy = _size(frame, findings)

    def points_in(path: Path | None, team: str | None) -> Points | None:
        if path is None:
            return None
        try:
            read = read_points(
                path,
                shape=shape,
                is_reference=team is None,
                region=frame.name,
                team=team,
                in_file=frame.in_file,
                mpp_xy=mpp_xy,
            )
        except PanopticError as error:
            findings.append(Finding.unreadable(error, region=frame.name, team=team))
            return None
        findings.extend(read.findings)
        return read.points

    reference = points_in(frame.reference, None)
    names = cohort.team_names if teams is None else teams
    found = {team: points_in(cohort.predictions.get((team, frame.name)), team) for team in names}
    predictions = {team: points for team, points in found.items() if points is not None}
    return LoadedFrame(frame, shape, mpp_xy, reference, predictions, tuple(findings))


def _size(
    frame: Frame, findings: list[Finding]
) -> tuple[tuple[int, int] | None, tuple[float, float]]:
    """Return shape and pixel size; the description overrides the image."""
    info = None if frame.image is None else probe_image(frame.image)
    mpp_xy = frame.mpp_xy
    if mpp_xy is None and info is not None:
        findings += [replace(f, region=frame.name) for f in info.findings]
        mpp_xy = None if info.mpp is None else (info.mpp, info.mpp)
    if mpp_xy is None:
        raise UnreadableFileError(
            "the size of a pixel in micrometres is stated neither by the image nor by the "
            "cohort.toml; write mpp = 0.25 (the right number) at its top",
            path=frame.image or frame.reference,
            region=frame.name,
        )
    return (None if info is None else info.shape), mpp_xy


@dataclass(frozen=True, eq=False)
class FrameCounts:
    """The teams' counts in a frame at any threshold."""

    #: The points.
    loaded: LoadedFrame
    #: Largest distance of a pair.
    distance_um: float
    #: Team -> its counts; empty without an annotation.
    by_team: Mapping[str, ConfidenceCounts]
    #: Why they could not be judged; empty if they were.
    why_not: str = ""


def count_frame(loaded: LoadedFrame, distance_um: float) -> FrameCounts:
    """Count the detections of all teams in a frame."""
    reference = loaded.reference
    found = {
        team: confidence_counts(reference, points, loaded.mpp_xy, distance_um)
        for team, points in loaded.predictions.items()
        if reference is not None
    }
    return FrameCounts(loaded, distance_um, found)


def count_frame_or_why(loaded: LoadedFrame, distance_um: float) -> FrameCounts:
    """Count the detections of all teams in a frame; return the reason if that fails.

    A failure must cost neither the user's points nor the figures of other frames.
    """
    try:
        return count_frame(loaded, distance_um)
    except JUDGING_ERRORS as error:
        return FrameCounts(loaded, distance_um, {}, why_not_judged(loaded.frame, error))


def why_not_judged(frame: Frame, error: Exception) -> str:
    """Return a message that a frame cannot be judged, and what to do."""
    is_memory = isinstance(error, MemoryError)
    reason = "there is not enough memory" if is_memory else str(error) or type(error).__name__
    return (
        f"frame {frame.name} cannot be judged ({reason}); its points are kept and its figures stay "
        f"unknown. It is tried again at another distance, or when its points are changed"
    )


@dataclass(frozen=True, eq=False)
class FrameResult:
    """The outcome of a team's detections in one frame."""

    #: The team and the frame.
    team: str
    frame: Frame
    #: The outcome of each point.
    judged: JudgedPoints
    #: Their counts at any threshold.
    by_confidence: ConfidenceCounts
    #: Micrometres per pixel along x and y.
    mpp_xy: tuple[float, float]

    @property
    def counts(self) -> DetectionCounts:
        """TP, FP and FN."""
        return self.judged.counts


@dataclass(frozen=True, eq=False)
class DetectionEvaluation:
    """The evaluation of a cohort of detections."""

    #: The cohort, the settings and the evaluated teams.
    cohort: DetectionCohort
    settings: DetectionSettings
    team_names: tuple[str, ...]
    #: One per team and frame with a usable annotation and prediction.
    results: tuple[FrameResult, ...]
    #: The evaluation of the scores of nuclear atypia.
    atypia: AtypiaEvaluation = field(default_factory=AtypiaEvaluation)
    #: All findings, those of the cohort first.
    findings: tuple[Finding, ...] = ()

    _curves: dict[str, DetectionCurve | None] = field(default_factory=dict)

    @cached_property
    def by_team(self) -> Mapping[str, tuple[FrameResult, ...]]:
        """The results of each team, in the order of frames."""
        return {team: tuple(r for r in self.results if r.team == team) for team in self.team_names}

    @property
    def is_empty(self) -> bool:
        """Whether nothing could be evaluated."""
        return not self.results and not self.atypia.results

    def counts(self, team: str) -> DetectionCounts:
        """Sum over all frames of a team: the challenge's figures are of these."""
        return sum((result.counts for result in self.by_team[team]), DetectionCounts())

    def patient_counts(self, team: str) -> dict[str, DetectionCounts]:
        """Sum over the frames of each patient that could be evaluated."""
        found: dict[str, DetectionCounts] = {}
        for result in self.by_team[team]:
            patient = result.frame.patient
            found[patient] = found.get(patient, DetectionCounts()) + result.counts
        return found

    def interval(self, team: str) -> Interval:
        """Return a team's F-measure over all frames with its bootstrap interval over patients.

        The F-measure of several patients is the mean of theirs, weighted by
        2 TP + FP + FN.
        """
        counts = list(self.patient_counts(team).values())
        return mean_interval(
            [c.f_measure for c in counts], weights=[float(c.weight) for c in counts]
        )

    def curve(self, team: str) -> DetectionCurve | None:
        """Return precision and recall at every threshold, over all frames of a team.

        None if one of its detections has no confidence.
        """
        if team not in self._curves:
            counts = [result.by_confidence for result in self.by_team[team]]
            self._curves[team] = StackedCounts.of(counts).curve
        return self._curves[team]

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """1 + the teams with a higher F-measure over all frames; absent if undefined."""
        return ranked_teams({team: self.counts(team).f_measure for team in self.team_names})

    @cached_property
    def comparison(self) -> TeamComparison:
        """Compare teams by the F-measure per patient, over patients with one of every team."""
        per_team = {team: self.patient_counts(team) for team in self.team_names}
        figures = {
            team: [
                counts[patient].f_measure if patient in counts else math.nan
                for patient in self.cohort.patients
            ]
            for team, counts in per_team.items()
        }
        return compare_teams(TeamFigures(figures, patients=self.cohort.patients))


def evaluate_detections(
    cohort: DetectionCohort,
    settings: DetectionSettings,
    teams: Sequence[str] | None = None,
    *,
    progress: Progress = UNWATCHED,
) -> DetectionEvaluation:
    """Evaluate all frames; files that cannot be read are left out and listed.

    Parameters
    ----------
    cohort, settings
        The cohort and the settings.
    teams
        Names of the teams; all if None.
    progress
        Where to report each frame.
    """
    names = cohort.team_names if teams is None else tuple(teams)
    findings = [f for f in cohort.findings if f.team is None or f.team in names]
    results: list[FrameResult] = []
    for number, frame in enumerate(cohort.frames, 1):
        try:
            loaded = load_frame(cohort, frame, names)
        except PanopticError as error:
            findings.append(Finding.unreadable(error, region=frame.name))
        else:
            findings += loaded.findings
            results += _judged(loaded, settings)
        progress.tell(number / len(cohort.frames), frame.name)
    atypia = evaluate_atypia(cohort.atypia, names)
    findings += atypia.findings
    return DetectionEvaluation(cohort, settings, names, tuple(results), atypia, tuple(findings))


def _judged(loaded: LoadedFrame, settings: DetectionSettings) -> list[FrameResult]:
    """Judge all teams in one frame; empty without an annotation."""
    reference = loaded.reference
    if reference is None:
        return []
    return [
        FrameResult(
            team,
            loaded.frame,
            judge_points(reference, points, loaded.mpp_xy, settings),
            confidence_counts(reference, points, loaded.mpp_xy, settings.distance_um),
            loaded.mpp_xy,
        )
        for team, points in loaded.predictions.items()
    ]
