"""The lists and figures of the desk of detections: frames, or patients, teams and points.

The curve of precision against recall is drawn as fast as the slider of the threshold moves; a
click on it sets the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QMouseEvent, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QCheckBox, QWidget

from napari_panoptic.detections.curve import DetectionCurve
from napari_panoptic.detections.pairing import DetectionCounts, JudgedPoints
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.display.glossary import (
    DETECTION_MEANINGS,
    NO_ANNOTATION,
    POINT_STATUS_MEANINGS,
)
from napari_panoptic.display.palette import TEAM_COLOURS
from napari_panoptic.display.styles import (
    STATUS_COLOURS,
    UNDEFINED,
    count_text,
    decimal_text,
    ratio_text,
)
from napari_panoptic.values.detections import DetectionCohort
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.layouts import Grow, lay_out
from napari_panoptic.viewer.kit.plot_view import ZERO_TO_ONE, PaintedPlot
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import ElidedLabel, heading, qcolor
from napari_panoptic.viewer.panels.navigator import (
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
        """List the points of the shown frame."""
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


_LINE = TEAM_COLOURS[2]
_F_LEVELS = (0.2, 0.4, 0.6, 0.8)


class DetectionFigures(QWidget):
    """Figures of the frame and of all frames, and precision against recall."""

    def __init__(self) -> None:
        super().__init__()
        self.table = FigureTable()
        self.curve, self._heading = CurveView(), heading("")
        self.note = ElidedLabel()
        rows = (self.table, self._heading, Grow(self.curve), self.note)
        lay_out(self, *rows, margins=(4, 4, 4, 4))

    def show_session(self, session: DetectionSession) -> None:
        """Show counts of the frame and of all frames that are counted, and the curve."""
        here = None if session.judged is None else session.judged.counts
        everywhere, n_frames = session.pooled(session.team), len(session.cohort.frames)
        is_whole = session.n_counted == n_frames
        frames = "all frames" if is_whole else f"{session.n_counted} of {n_frames} frames"
        self._heading.set_rich(f"<b>Precision and recall, {frames}</b>")
        header = [
            Cell(""),
            Cell("this frame", "Of the frame and team shown."),
            Cell(frames, "Summed over all frames, then computed: the challenge's metrics."),
        ]
        rows = []
        for name, title in (("f_measure", "F-measure"), ("precision", ""), ("recall", "")):
            meaning, is_main = DETECTION_MEANINGS[name], name == "f_measure"
            values = (math.nan if c is None else getattr(c, name) for c in (here, everywhere))
            texts = (title or name, *map(ratio_text, values))
            rows.append([Cell(text, meaning, bold=is_main) for text in texts])
        for status, name in ((Status.TP, "tp"), (Status.FP, "fp"), (Status.FN, "fn")):
            meaning = POINT_STATUS_MEANINGS[status]
            cells = [Cell(str(status), meaning, colour=STATUS_COLOURS[status])]
            for counts in (here, everywhere):
                text = UNDEFINED if counts is None else count_text(getattr(counts, name))
                cells.append(Cell(text, meaning))
            rows.append(cells)
        self.table.fill(header, rows)
        self.curve.show_curve(session.curve(), everywhere)
        self.note.set_text(self.curve.value_text())


class CurveView(PaintedPlot):
    """Precision against recall at every threshold, and where the present one is."""

    threshold_chosen = Signal(float)
    margins_px = (38, 8, 10)
    lines_below = 2
    x_ticks = ZERO_TO_ONE

    def __init__(self) -> None:
        super().__init__("Precision against recall")
        self._curve: DetectionCurve | None = None
        self._now = DetectionCounts()
        self.setMinimumHeight(150)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(
            "Precision against recall over all frames, one point per confidence threshold; the "
            "ring marks the current one. Click to set the threshold there. Grey: equal F-measure."
        )

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return a size that suits the panel."""
        return QSize(320, 220)

    def show_curve(self, curve: DetectionCurve | None, now: DetectionCounts) -> None:
        """Show another curve, and what counts now."""
        self._curve, self._now = curve, now
        self.update()

    def why_empty(self) -> str:
        """Describe why there is no curve; empty if there is one."""
        if self._curve is None:
            return "No curve: not every detection has a confidence."
        if not len(self._curve):
            return "No curve: nothing was detected."
        return "" if self._curve.n_reference else "No curve: nothing is annotated."

    def value_text(self) -> str:
        """Return average precision and the best F-measure in words."""
        curve = self._curve
        best = None if curve is None else curve.best
        if curve is None or best is None or not curve.n_reference:
            return ""
        return (
            f"average precision {ratio_text(curve.average_precision)} · best F "
            f"{ratio_text(float(curve.f_measure[best]))} at {curve.thresholds[best]:g}"
        )

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Choose the threshold that is nearest to a click."""
        if event is None or self._curve is None or self.why_empty():
            return
        at = event.position()
        away = [math.hypot(p.x() - at.x(), p.y() - at.y()) for p in self._places(self._curve)]
        self.threshold_chosen.emit(float(self._curve.thresholds[int(np.argmin(away))]))

    def draw_axes(self, painter: QPainter) -> None:
        """Draw the labelled lines, their marks, and lines of equal F-measure."""
        super().draw_axes(painter)
        painter.drawText(self.text_below(1), int(Qt.AlignmentFlag.AlignCenter), "recall")
        painter.save()
        painter.translate(10, self.place(0, 0.5).y())
        painter.rotate(-90)
        painter.drawText(QRectF(-50, -8, 100, 15), int(Qt.AlignmentFlag.AlignCenter), "precision")
        painter.restore()
        pale = self.ink
        pale.setAlphaF(0.3)
        painter.setPen(pale)
        for level in _F_LEVELS:
            recall = np.linspace(level / (2 - level), 1, 40)
            line = [self.place(r, level * r / (2 * r - level)) for r in recall]
            painter.drawPolyline(QPolygonF(line))

    def draw(self, painter: QPainter) -> None:
        """Draw the curve and the present point."""
        places = [] if self._curve is None else self._places(self._curve)
        painter.setPen(QPen(qcolor(_LINE), 1.8))
        painter.drawPolyline(QPolygonF(places))
        if len(places) <= self.width():  # more would only be a smear
            painter.setBrush(qcolor(_LINE))
            for place in places:
                painter.drawEllipse(place, 2.0, 2.0)
        if not (math.isnan(self._now.recall) or math.isnan(self._now.precision)):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.ink, 2.0))
            painter.drawEllipse(self.place(self._now.recall, self._now.precision), 6.0, 6.0)

    def _places(self, curve: DetectionCurve) -> list[QPointF]:
        return [self.place(*point) for point in zip(curve.recall, curve.precision, strict=True)]
