"""Two small plots: Dice over the slices of a volume, and a team among the raters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QMouseEvent, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QToolTip

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.plot_view import PaintedPlot
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import qcolor

_TEAM: Rgb = (255, 150, 40)
_LINE: Rgb = (120, 170, 220)
ONE_RATER = "One rater has no spread to compare with."


class SliceStrip(PaintedPlot):
    """Average Dice of each slice as a line; a click goes to the slice."""

    slice_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__("Dice of each slice")
        self.scores: NDArray[np.float64] = np.zeros(0)
        self.current = 0
        self._is_marked: NDArray[np.bool_] = np.zeros(0, bool)
        self.setMinimumHeight(90)
        self.setMouseTracking(True)

    def show_scores(self, scores: NDArray[np.float64], is_marked: NDArray[np.bool_]) -> None:
        """Show the slices of a volume; those that a rater marked are drawn as points."""
        self.scores, self._is_marked = scores, is_marked
        self.update()

    def show_current(self, number: int) -> None:
        """Mark the slice that is looked at."""
        self.current = number
        self.update()

    def place_of(self, number: int) -> QPointF:
        """Return where a slice is drawn."""
        score = float(np.nan_to_num(self.scores[number]))
        return self.place((number + 0.5) / len(self.scores), score)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Go to a slice."""
        number = None if event is None else self._slice_at(event.position().x())
        if number is not None:
            self.slice_chosen.emit(number)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Show the values under the mouse; with a button pressed, go there."""
        number = None if event is None else self._slice_at(event.position().x())
        if event is None or number is None:
            return
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.slice_chosen.emit(number)
        score = self.scores[number]
        text = "undefined" if math.isnan(score) else f"{score:.3f}"
        QToolTip.showText(event.globalPosition().toPoint(), f"slice {number}: Dice {text}", self)

    def draw(self, painter: QPainter) -> None:
        """Draw the slice that is looked at, the line and its points."""
        if not len(self.scores):
            return
        places = [self.place_of(number) for number in range(len(self.scores))]
        x = places[min(self.current, len(places) - 1)].x()
        painter.setPen(QPen(qcolor(_TEAM), 2))
        painter.drawLine(QPointF(x, self.area.top()), QPointF(x, self.area.bottom()))
        painter.setPen(QPen(qcolor(_LINE), 1.4))
        painter.drawPolyline(QPolygonF(places))
        painter.setBrush(qcolor(_LINE))
        for place, is_marked in zip(places, self._is_marked, strict=True):
            if is_marked:
                painter.drawEllipse(place, 2.2, 2.2)

    def draw_axes(self, painter: QPainter) -> None:
        """Draw the labelled lines, and the numbers of the first and the last slice."""
        super().draw_axes(painter)
        if len(self.scores):
            below, last = self.text_below(), str(len(self.scores) - 1)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignLeft), "slice 0")
            painter.drawText(below, int(Qt.AlignmentFlag.AlignRight), last)

    def _slice_at(self, x: float) -> int | None:
        area = self.area
        number = math.floor((x - area.left()) / area.width() * len(self.scores))
        return number if 0 <= number < len(self.scores) else None


class SpreadStrip(PaintedPlot):
    """The raters on a scale of Dice, the range between them, and a team in it."""

    margins_px = (14, 22, 14)

    def __init__(self) -> None:
        super().__init__("The team among the raters")
        self._raters: list[tuple[str, float, Rgb]] = []
        self._team: tuple[str, float] | None = None
        self._lowest = 0.0
        self.y_ticks = {0.0: ""}
        self.setFixedHeight(68)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_spread(
        self, raters: Sequence[tuple[str, float, Rgb]], team: tuple[str, float] | None
    ) -> None:
        """Show raters and team: names, averages against the others, and colours."""
        self._raters = [rater for rater in raters if not math.isnan(rater[1])]
        self._team = None if team is None or math.isnan(team[1]) else team
        lines = [f"rater {name}: {value:.3f}" for name, value, _ in self._raters]
        known = [value for _, value, _ in self._raters]
        if self._team is not None:
            lines.insert(0, f"{self._team[0]}: {self._team[1]:.3f}")
            known.append(self._team[1])
        self.setToolTip(shown("Dice against all raters but one\n" + "\n".join(lines)))
        self._lowest = max(0.0, math.floor(10 * min(known, default=0.0) - 0.2) / 10)
        ticks = np.arange(round(self._lowest * 10), 11) / 10
        self.x_ticks = {self._position(tick): f"{tick:.1f}" for tick in ticks.tolist()}
        self.update()

    def why_empty(self) -> str:
        """Return why there is no spread."""
        return "" if self._raters else ONE_RATER

    def draw(self, painter: QPainter) -> None:
        """Draw range, raters and team."""
        area, values = self.area, [value for _, value, _ in self._raters]
        places = [self.place(self._position(value), 0.5) for value in values]
        left, right = min(at.x() for at in places), max(at.x() for at in places)
        band = self.ink
        band.setAlpha(60)
        painter.fillRect(QRectF(left, area.top(), max(right - left, 1.5), area.height()), band)
        painter.setPen(QPen(QColor(30, 30, 30), 0.8))
        rows = _rows(at.x() for at in places)
        for (_, _, colour), at, row in zip(self._raters, places, rows, strict=True):
            painter.setBrush(qcolor(colour))
            painter.drawEllipse(QPointF(at.x(), at.y() + row), 5, 5)
        if self._team is not None:
            self._draw_team(painter, *self._team)

    def _position(self, value: float) -> float:
        return (value - self._lowest) / max(1.0 - self._lowest, 1e-9)

    def _draw_team(self, painter: QPainter, team: str, value: float) -> None:
        x, area = self.place(self._position(value), 0).x(), self.area
        painter.setPen(QPen(qcolor(_TEAM), 3))
        painter.drawLine(QPointF(x, area.top() - 3), QPointF(x, area.bottom() + 1))
        name = shown(f"{team} {value:.3f}")
        width = painter.fontMetrics().horizontalAdvance(name) + 4
        start = min(max(x - width / 2, 0), max(self.width() - width, 0))
        painter.setPen(self.ink)
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
