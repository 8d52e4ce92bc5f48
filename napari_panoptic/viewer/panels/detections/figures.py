"""Figures of a frame and of all frames, and precision against recall; a click sets the threshold.

The curve is drawn as fast as the slider of the threshold moves.
"""

from __future__ import annotations

import math

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QMouseEvent, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QWidget

from napari_panoptic.detections.curve import DetectionCurve
from napari_panoptic.detections.pairing import DetectionCounts
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.display.glossary import DETECTION_MEANINGS, POINT_STATUS_MEANINGS
from napari_panoptic.display.palette import TEAM_COLOURS
from napari_panoptic.display.styles import STATUS_COLOURS, UNDEFINED, count_text, ratio_text
from napari_panoptic.values.vocabulary import Status
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.painted_plot import ZERO_TO_ONE, PaintedPlot
from napari_panoptic.viewer.kit.rows import Grow, lay_out
from napari_panoptic.viewer.kit.widgets import ElidedLabel, heading, qcolor

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
        """Draw the labelled lines, what they show, and lines of equal F-measure."""
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
