"""The lists of the desk of detections: frames, or patients, and teams; points of a frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QCheckBox, QWidget

from napari_panoptic.detections.pairing import DetectionCounts, JudgedPoints
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.display.glossary import (
    DETECTION_MEANINGS,
    NO_ANNOTATION,
    POINT_STATUS_MEANINGS,
)
from napari_panoptic.display.styles import STATUS_COLOURS, UNDEFINED, decimal_text, ratio_text
from napari_panoptic.values.detections import DetectionCohort
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.rows import Grow, lay_out
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.panels.places import (
    PlaceNavigator,
    counts_column,
    figure_column,
    name_column,
)

SIDE_WORDS = {Side.REFERENCE: "annotated", Side.PREDICTION: "detected"}
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


class PointTable(QWidget):
    """Every point of the frame and team shown; a click centres it."""

    point_chosen = Signal(object)  # side and row

    def __init__(self) -> None:
        super().__init__()
        self.table = ArrayTable()
        self.only_failures = QCheckBox("Only failures")
        self.note = WrappedLabel()
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.note.hide()
        self._columns: Sequence[Column] = ()
        self._is_failure: NDArray[np.bool_] = np.zeros(0, bool)
        self._n_reference = 0
        self._selected: int | None = None
        self.table.row_chosen.connect(self._on_row)
        self.table.centre_wanted.connect(self._on_row)
        self.only_failures.toggled.connect(self._fill)
        lay_out(self, self.only_failures, self.note, Grow(self.table), margins=(4, 4, 4, 4))

    def show_session(self, session: DetectionSession) -> None:
        """List the points of what is shown."""
        judged, why = session.judged, session.why_nothing_is_judged()
        self.note.show_text(why)
        self.table.setVisible(not why)  # empty then, and the text needs the room
        if judged is None:
            self._columns, self._is_failure = (), np.zeros(0, bool)
            self._n_reference, self._selected = 0, None
        else:
            status = np.concatenate([judged.reference_status, judged.prediction_status])
            failing = [STATUS_CODE[Status.FN], STATUS_CODE[Status.FP]]
            self._is_failure = np.isin(status, failing)
            self._n_reference = len(judged.reference)
            self._columns = _point_columns(judged, [str(STATUSES[code]) for code in status])
            self._selected = self._row(session.selection)
        self._fill()

    def show_selection(self, selection: tuple[Side, int] | None) -> None:
        """Mark the selected point."""
        self._selected = self._row(selection)
        self.table.select(self._selected)

    def next_failure(
        self, selection: tuple[Side, int] | None, step: int
    ) -> tuple[Side, int] | None:
        """Return the failure after (1) or before (-1) a point in the order of the table, round."""
        order, current = self.table.rows()[::step], self._row(selection)
        start = order.index(current) + 1 if current in order else 0
        failures = (row for row in (*order[start:], *order[:start]) if self._is_failure[row])
        found = next(failures, None)
        return None if found is None else self._point(found)

    def _fill(self, _checked: bool = False) -> None:
        shown = self._is_failure if self.only_failures.isChecked() and self._columns else None
        self.table.show_rows(self._columns, shown)
        self.table.select(self._selected)

    def _row(self, selection: tuple[Side, int] | None) -> int | None:
        if selection is None:
            return None
        side, row = selection
        return row if side is Side.REFERENCE else self._n_reference + row

    def _point(self, row: int) -> tuple[Side, int]:
        if row < self._n_reference:
            return Side.REFERENCE, row
        return Side.PREDICTION, row - self._n_reference

    def _on_row(self, row: int, _column: int = 0) -> None:
        self.point_chosen.emit(self._point(row))


def _point_columns(judged: JudgedPoints, status: Sequence[str]) -> tuple[Column, ...]:
    """Describe the annotated points, and the detections after them."""
    reference, prediction = judged.reference, judged.prediction
    sides = np.array([SIDE_WORDS[side] for side in Side], dtype=object)
    xy = np.concatenate([reference.xy_px, prediction.xy_px])
    return (
        Column(
            "Side",
            "Annotated, or detected by the team.",
            np.repeat(sides, [len(reference), len(prediction)]),
            is_text=True,
            stretch=True,  # cut before the outcome is
        ),
        Column(
            "Id",
            "Line in the file.",
            np.concatenate([reference.ids, prediction.ids]),
            width=34,
        ),
        Column(
            "Status",
            "Its outcome.",
            np.array(status, dtype=object),
            is_text=True,
            stretch=True,
            tooltip=lambda row: POINT_STATUS_MEANINGS[Status(status[row])],
            colour=lambda row: STATUS_COLOURS[Status(status[row])],
        ),
        Column(
            "Conf",
            DETECTION_MEANINGS["confidence"],
            np.concatenate([reference.confidence, prediction.confidence]),
            text=ratio_text,
            width=48,
        ),
        Column(
            "µm",
            DETECTION_MEANINGS["distance_um"],
            np.concatenate([judged.reference_distance_um, judged.prediction_distance_um]),
            text=decimal_text,
            width=46,
        ),
        Column("x", "In px from the left.", xy[:, 0], text=decimal_text, width=56),
        Column("y", "In px from the top.", xy[:, 1], text=decimal_text, width=56),
    )
