"""Precision against recall, drawn as fast as a slider moves; a click sets the threshold."""

from __future__ import annotations

import math

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_panoptic.detections.curve import DetectionCurve
from napari_panoptic.detections.pairing import DetectionCounts
from napari_panoptic.display.palette import TEAM_COLOURS
from napari_panoptic.display.styles import ratio_text
from napari_panoptic.viewer.kit.widgets import qcolor

_LEFT, _BOTTOM, _TOP, _RIGHT = 38, 30, 8, 10
_LINE = TEAM_COLOURS[2]
_F_LEVELS = (0.2, 0.4, 0.6, 0.8)
NO_CURVE = "No curve: not every detection has a confidence."
NOTHING_ANNOTATED = "No curve: nothing is annotated."


class CurveView(QWidget):
    """Precision against recall at every threshold, and where the present one is."""

    threshold_chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._curve: DetectionCurve | None = None
        self._now = DetectionCounts()
        self.setMinimumHeight(150)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
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

    def text(self) -> str:
        """Describe why there is no curve; empty if there is one."""
        if self._curve is None or not len(self._curve):
            return NO_CURVE if self._curve is None else "No curve: nothing was detected."
        return "" if self._curve.n_reference else NOTHING_ANNOTATED

    def place(self, recall: float, precision: float) -> QPointF:
        """Return where in the widget a point of the plot lies."""
        width = self.width() - _LEFT - _RIGHT
        height = self.height() - _TOP - _BOTTOM
        return QPointF(_LEFT + recall * width, _TOP + (1 - precision) * height)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Choose the threshold that is nearest to a click."""
        curve = self._curve
        if event is None or curve is None or self.text():
            return
        at = event.position()
        points = [self.place(*p) for p in zip(curve.recall, curve.precision, strict=True)]
        away = [math.hypot(p.x() - at.x(), p.y() - at.y()) for p in points]
        self.threshold_chosen.emit(float(curve.thresholds[int(np.argmin(away))]))

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw axes, lines of equal F-measure, the curve and the present point."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(self.foregroundRole())
        pale = self.palette().color(self.foregroundRole())
        pale.setAlphaF(0.3)
        if reason := self.text():
            painter.setPen(ink)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, reason)
        else:
            self._draw_axes(painter, ink, pale)
            self._draw_curve(painter)
        painter.end()

    def _draw_axes(self, painter: QPainter, ink: object, pale: object) -> None:
        small = painter.font()
        small.setPointSizeF(max(small.pointSizeF() * 0.8, 6.0))
        painter.setFont(small)
        centre, right = Qt.AlignmentFlag.AlignCenter, Qt.AlignmentFlag.AlignRight
        for value in (0.0, 0.5, 1.0):
            painter.setPen(QPen(pale))
            painter.drawLine(self.place(0, value), self.place(1, value))
            painter.drawLine(self.place(value, 0), self.place(value, 1))
            painter.setPen(QPen(ink))
            below, beside = self.place(value, 0), self.place(0, value)
            painter.drawText(QRectF(below.x() - 20, below.y() + 1, 40, 14), centre, f"{value:g}")
            painter.drawText(QRectF(0, beside.y() - 7, _LEFT - 3, 14), right, f"{value:g}")
        bottom = self.place(0.5, 0)
        painter.drawText(QRectF(bottom.x() - 60, bottom.y() + 13, 120, 15), centre, "recall")
        painter.save()
        painter.translate(10, self.place(0, 0.5).y())
        painter.rotate(-90)
        painter.drawText(QRectF(-50, -8, 100, 15), centre, "precision")
        painter.restore()
        painter.setPen(QPen(pale))
        for level in _F_LEVELS:
            recall = np.linspace(level / (2 - level), 1, 40)
            line = [self.place(r, level * r / (2 * r - level)) for r in recall]
            painter.drawPolyline(QPolygonF(line))

    def _draw_curve(self, painter: QPainter) -> None:
        curve = self._curve
        if curve is None:
            return
        painter.setPen(QPen(qcolor(_LINE), 1.8))
        points = [self.place(*p) for p in zip(curve.recall, curve.precision, strict=True)]
        painter.drawPolyline(QPolygonF(points))
        if len(points) <= self.width():  # more would only be a smear
            painter.setBrush(qcolor(_LINE))
            for point in points:
                painter.drawEllipse(point, 2.0, 2.0)
        if not (math.isnan(self._now.recall) or math.isnan(self._now.precision)):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.palette().color(self.foregroundRole()), 2.0))
            painter.drawEllipse(self.place(self._now.recall, self._now.precision), 6.0, 6.0)

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
