"""Two small drawings: Dice over the slices of a volume, and a team among the raters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QToolTip, QWidget

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import qcolor

_MARGIN = 26
_TEAM: Rgb = (255, 150, 40)
_LINE: Rgb = (120, 170, 220)


class SliceStrip(QWidget):
    """Average Dice of each slice as a line; a click goes to the slice."""

    slice_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._scores: NDArray[np.float64] = np.zeros(0)
        self._is_marked: NDArray[np.bool_] = np.zeros(0, bool)
        self._current = 0
        self.setMinimumHeight(90)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Dice of each slice")

    def show_scores(self, scores: NDArray[np.float64], is_marked: NDArray[np.bool_]) -> None:
        """Show the slices of a volume; those that a rater marked are drawn as points."""
        self._scores, self._is_marked = scores, is_marked
        self.update()

    def show_current(self, number: int) -> None:
        """Mark the slice that is looked at."""
        if number != self._current:
            self._current = number
            self.update()

    def place_of(self, number: int) -> QPointF:
        """Return where a slice is drawn."""
        area = self._area()
        score = self._scores[number]
        y = area.bottom() if math.isnan(score) else area.bottom() - score * area.height()
        return QPointF(area.left() + (number + 0.5) / len(self._scores) * area.width(), y)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Go to a slice."""
        number = None if event is None else self._slice_at(event.position().x())
        if number is not None:
            self.slice_chosen.emit(number)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Show what is under the mouse; with a button pressed, go there."""
        number = None if event is None else self._slice_at(event.position().x())
        if event is None or number is None:
            return
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.slice_chosen.emit(number)
        score = self._scores[number]
        text = "undefined" if math.isnan(score) else f"{score:.3f}"
        QToolTip.showText(event.globalPosition().toPoint(), f"slice {number}: Dice {text}", self)

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw axis, line, points and the slice that is looked at."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(self.foregroundRole())
        area = self._area()
        _draw_scale(painter, area, ink)
        if len(self._scores):
            x = self.place_of(min(self._current, len(self._scores) - 1)).x()
            painter.setPen(QPen(qcolor(_TEAM), 2))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            places = [self.place_of(number) for number in range(len(self._scores))]
            painter.setPen(QPen(qcolor(_LINE), 1.4))
            painter.drawPolyline(QPolygonF(places))
            painter.setBrush(qcolor(_LINE))
            for place, is_marked in zip(places, self._is_marked, strict=True):
                if is_marked:
                    painter.drawEllipse(place, 2.2, 2.2)
            painter.setPen(ink)
            below = QRectF(area.left(), area.bottom() + 2, area.width(), self._line_px())
            last = str(len(self._scores) - 1)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignLeft), "slice 0")
            painter.drawText(below, int(Qt.AlignmentFlag.AlignRight), last)
        painter.end()

    def _area(self) -> QRectF:
        width, height = self.width() - _MARGIN - 8, self.height() - self._line_px() - 10
        return QRectF(_MARGIN, 6, max(width, 1), max(height, 1))

    def _line_px(self) -> int:
        return self.fontMetrics().height()

    def _slice_at(self, x: float) -> int | None:
        area = self._area()
        number = math.floor((x - area.left()) / area.width() * len(self._scores))
        return number if 0 <= number < len(self._scores) else None


class SpreadStrip(QWidget):
    """The raters on a scale of Dice, the range between them, and a team in it."""

    def __init__(self) -> None:
        super().__init__()
        self._raters: list[tuple[str, float, Rgb]] = []
        self._team: tuple[str, float] | None = None
        self.setFixedHeight(74)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("The team among the raters")

    def show_spread(
        self, raters: Sequence[tuple[str, float, Rgb]], team: tuple[str, float] | None
    ) -> None:
        """Show raters and team: names, averages against the others, and colours."""
        self._raters = [rater for rater in raters if not math.isnan(rater[1])]
        self._team = None if team is None or math.isnan(team[1]) else team
        lines = [f"rater {name}: {value:.3f}" for name, value, _ in self._raters]
        if self._team is not None:
            lines.insert(0, f"{self._team[0]}: {self._team[1]:.3f}")
        self.setToolTip(shown("Dice against all raters but one\n" + "\n".join(lines)))
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw scale, range, raters and team."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(self.foregroundRole())
        if not self._raters:
            text = "One rater has no spread to compare with."
            painter.setPen(ink)
            painter.drawText(QRectF(self.rect()), int(Qt.AlignmentFlag.AlignCenter), text)
            painter.end()
            return
        values = [value for _, value, _ in self._raters]
        known = [*values, *([self._team[1]] if self._team else [])]
        low = max(0.0, math.floor(10 * min(known) - 0.2) / 10)
        area = QRectF(14, 22, max(self.width() - 28, 1), 24)

        def x_of(value: float) -> float:
            return area.left() + (value - low) / max(1.0 - low, 1e-9) * area.width()

        painter.setPen(Qt.PenStyle.NoPen)
        band = QColor(ink)
        band.setAlpha(60)
        painter.setBrush(band)
        left, right = x_of(min(values)), x_of(max(values))
        painter.drawRect(QRectF(left, area.top(), max(right - left, 1.5), area.height()))
        pen = QPen(ink, 1)
        painter.setPen(pen)
        painter.drawLine(QPointF(area.left(), area.bottom()), QPointF(area.right(), area.bottom()))
        for tick in np.arange(round(low * 10), 11) / 10:
            x = x_of(float(tick))
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 4))
            box = QRectF(x - 16, area.bottom() + 5, 32, 16)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignHCenter), f"{tick:.1f}")
        for (_, value, colour), row in zip(self._raters, _rows(map(x_of, values)), strict=True):
            painter.setPen(QPen(QColor(30, 30, 30), 0.8))
            painter.setBrush(qcolor(colour))
            painter.drawEllipse(QPointF(x_of(value), area.center().y() + row), 5, 5)
        if self._team is not None:
            self._draw_team(painter, x_of(self._team[1]), area, ink)
        painter.end()

    def _draw_team(self, painter: QPainter, x: float, area: QRectF, ink: QColor) -> None:
        if self._team is None:
            return
        painter.setPen(QPen(qcolor(_TEAM), 3))
        painter.drawLine(QPointF(x, area.top() - 3), QPointF(x, area.bottom() + 1))
        name = shown(f"{self._team[0]} {self._team[1]:.3f}")
        width = painter.fontMetrics().horizontalAdvance(name) + 4
        start = min(max(x - width / 2, 0), max(self.width() - width, 0))
        painter.setPen(ink)
        box = QRectF(start, 0, min(width, self.width()), 18)
        painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), name)


def _rows(places: Iterable[float]) -> list[float]:
    """Return how far above or below the middle each dot is drawn, so that none covers another."""
    rows, taken = [], list[tuple[float, float]]()
    for x in places:
        free = (r for r in (0.0, -7.0, 7.0) if all(abs(x - x0) >= 9 for x0, r0 in taken if r0 == r))
        rows.append(next(free, 0.0))
        taken.append((x, rows[-1]))
    return rows


def _draw_scale(painter: QPainter, area: QRectF, ink: QColor) -> None:
    pale = QColor(ink)
    pale.setAlpha(70)
    for value in (0.0, 0.5, 1.0):
        y = area.bottom() - value * area.height()
        painter.setPen(pale)
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.setPen(ink)
        box = QRectF(0, y - 8, _MARGIN - 4, 16)
        painter.drawText(box, int(Qt.AlignmentFlag.AlignRight), f"{value:g}")
