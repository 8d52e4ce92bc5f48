"""Frames, or patients, and teams with their F-measure and failures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

from qtpy.QtWidgets import QWidget

from napari_panoptic.detections.pairing import DetectionCounts
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.display.glossary import (
    DETECTION_MEANINGS,
    NO_ANNOTATION,
    POINT_STATUS_MEANINGS,
)
from napari_panoptic.display.styles import UNDEFINED
from napari_panoptic.values.detections import DetectionCohort
from napari_panoptic.values.vocabulary import Status
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.panels.places import (
    PlaceNavigator,
    counts_column,
    figure_column,
    name_column,
)

_F = DETECTION_MEANINGS["f_measure"]


class DetectionNavigator(PlaceNavigator):
    """Tables of the frames, or patients, and of the teams."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("frame", parent=parent)
        self._session: DetectionSession | None = None
        self._current = ""

    def show_cohort(self, cohort: DetectionCohort) -> None:
        """List the frames of a cohort."""
        self._session, self._current = None, ""
        self.list_places([(frame.name, frame.patient) for frame in cohort.frames])

    def show_figures(self, session: DetectionSession, *, is_paused: bool = False) -> None:
        """Show frame, team and all figures again, and for how many frames they are known."""
        self._session = session
        current = "" if session.shown is None else session.shown.frame.name
        self.fill_places()
        if current != self._current:
            self._current = current
            self.mark_place(current)
        self._fill_teams(session, current)
        self.show_progress(session.n_known, len(session.cohort.frames), "frames")
        if is_paused:
            self.show_stop("Continue", "Compute the metrics of the other frames.")
        else:
            self.show_stop("Stop", "Stop computing the metrics of the other frames.")

    def place_figures(self, names: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of frames."""
        session = self._session
        if session is None:
            return _figures("F", _F, [None] * len(names))
        found = [session.counts(name, session.team) for name in names]
        lacking = [(_lacking(session, name, session.team), _why(session, name)) for name in names]
        return _figures("F", _F, found, lacking)

    def patient_figures(self, patients: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of patients, summed over the frames that are known."""
        session = self._session
        found: dict[str, list[DetectionCounts]] = {patient: [] for patient in patients}
        for frame in () if session is None else session.cohort.frames:
            counts = None if session is None else session.counts(frame.name, session.team)
            if counts is not None:
                found[frame.patient].append(counts)
        summed = [reduce(add, counts) if counts else None for counts in found.values()]
        return _figures("F", f"{_F} Of all frames of the patient together.", summed)

    def _fill_teams(self, session: DetectionSession, frame: str) -> None:
        names = session.cohort.team_names
        here = [session.counts(frame, name) for name in names]
        lacking = [(_lacking(session, frame, name), _why(session, frame)) for name in names]
        pooled = [session.pooled(name).f_measure for name in names]
        meaning = "The team; choose it to show its detections."
        columns = [
            name_column("Team", meaning, names),
            figure_column("F", f"{_F} Over all frames.", pooled, [(UNDEFINED, "")] * len(names)),
            *_figures("Here", f"{_F} Of the frame shown.", here, lacking),
        ]
        self.teams.show_rows(names, columns)
        self.teams.mark(session.team)


def _figures(
    title: str,
    meaning: str,
    found: Iterable[DetectionCounts | None],
    lacking: Sequence[tuple[str, str]] = (),
) -> list[Column]:
    known = list(found)

    def values(name: str) -> list[float]:
        return [math.nan if counts is None else getattr(counts, name) for counts in known]

    return [
        figure_column(title, meaning, values("f_measure"), lacking, in_words=True),
        counts_column("FN", POINT_STATUS_MEANINGS[Status.FN], values("fn"), lacking),
        counts_column("FP", POINT_STATUS_MEANINGS[Status.FP], values("fp"), lacking),
    ]


def _lacking(session: DetectionSession, frame: str, team: str | None) -> str:
    """Return in a word why there are no counts; empty while they are not known."""
    if team is None or not session.is_known(frame):
        return ""
    if session.counts(frame, team) is not None:
        return UNDEFINED
    if frame in session.failed:
        return "unreadable"
    if session.has_annotation(frame):
        return session.lacking(frame, team)
    return NO_ANNOTATION


def _why(session: DetectionSession, frame: str) -> str:
    return session.failed.get(frame) or session.unjudged.get(frame, "")
