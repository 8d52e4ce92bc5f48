"""Crops in a grid, under the headings of their groups; drawn only when seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QEvent, QPoint, QRect, QRectF, Qt, QTimer
from qtpy.QtGui import (
    QColor,
    QFont,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from qtpy.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from napari_panoptic.nuclei.display import styles
from napari_panoptic.viewer.kit.widgets import is_desk_key, is_in_sight, qcolor, viewport_of

CROP_POINTS = 112
"""Width of a crop on the screen."""
GAP, UNDER, HEADING_HEIGHT, FRAME = 8, 4, 26, 3
CAPTION_LINES = 2
BUDGET_S = 0.012
"""How long crops are drawn before the window may live again."""
KEPT = 600
"""Crops that are kept when they are out of sight."""


@dataclass(frozen=True, eq=False)
class Group:
    """Failures of one cause.

    Parameters
    ----------
    title
        The cause.
    meaning
        One sentence about it.
    rows
        int (n,): rows of the object table, in its order.
    """

    title: str
    meaning: str
    rows: NDArray[np.intp]


@dataclass(frozen=True)
class Caption:
    """What stands below a crop.

    Parameters
    ----------
    lines
        Two lines of text.
    colour
        Colour of the swatch before the first.
    """

    lines: tuple[str, str]
    colour: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Contents:
    """What a gallery shows.

    Parameters
    ----------
    groups
        The groups, from the top.
    caption, tooltip
        Row -> its tooltip.
    draw
        Row, width on the screen, pixels per point -> its picture.
    name
        Row -> what its picture is kept under.
    """

    groups: Sequence[Group] = ()
    caption: Callable[[int], Caption] = lambda _row: Caption(("", ""), (0, 0, 0))
    tooltip: Callable[[int], str] = lambda _row: ""
    draw: Callable[[int, int, float], QImage] = lambda _row, size, _per: QImage(
        size, size, QImage.Format.Format_RGB32
    )
    name: Callable[[int], tuple[str, int]] = lambda row: ("", row)
    rows: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        """Line the groups up."""
        every = [group.rows for group in self.groups] or [np.zeros(0, np.intp)]
        object.__setattr__(self, "rows", np.concatenate(every))


class CropGrid(QAbstractScrollArea):
    """Crops in a grid below the headings of their groups; drawn only when seen.

    Signals give the row of a crop: ``chosen`` if the keys moved to it,
    ``wanted`` if it was clicked or confirmed.
    """

    chosen = Signal(int)
    wanted = Signal(int)
    zoomed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._contents = Contents()
        self._selected: int | None = None
        self._pixmaps: dict[tuple[str, int], QPixmap] = {}
        self._stale: set[tuple[str, int]] = set()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._draw_some)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Failure gallery")
        viewport_of(self).setMouseTracking(True)

    @property
    def is_busy(self) -> bool:
        """Whether crops in sight are still to be drawn."""
        return self._timer.isActive()

    @property
    def drawn(self) -> int:
        """How many crops are drawn and kept."""
        return len(self._pixmaps)

    def show_contents(self, contents: Contents) -> None:
        """Show other crops; pictures of the same objects are kept."""
        self._contents = contents
        self._fit_scroll_bar()
        self._look_again()

    def let_go(self) -> None:
        """Have nothing to show until there are new contents; touches nothing of Qt's."""
        self._contents = Contents()

    def forget_pictures(self) -> None:
        """Redraw every crop."""
        self._pixmaps.clear()
        self._stale.clear()
        self._look_again()

    def redraw_pictures(self) -> None:
        """Redraw every crop, and show the old ones until then."""
        self._stale = set(self._pixmaps)
        self._look_again()

    def select(self, row: int | None) -> None:
        """Mark a crop and scroll to it."""
        changed = row != self._selected
        self._selected = row
        place = self._place_of(row)
        if place is not None and changed:
            self._scroll_to(place)
        viewport_of(self).update()

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows of all crops, in the order in which they are shown."""
        return self._contents.rows

    def has(self, row: int) -> bool:
        """Return whether there is a crop of a row."""
        return self._place_of(row) is not None

    def selected(self) -> int | None:
        """Return the row of the marked crop, if it is shown."""
        return None if self._place_of(self._selected) is None else self._selected

    def cell_rect(self, row: int) -> QRect | None:
        """Return where a crop is in the viewport, or None if there is no such crop."""
        place = self._place_of(row)
        return None if place is None else self._rect(place).translated(0, -self._scrolled())

    def row_at(self, place: QPoint) -> int | None:
        """Find the crop under a point of the viewport."""
        for number in self._places_in_sight():
            if self._rect(number).translated(0, -self._scrolled()).contains(place):
                return int(self._contents.rows[number])
        return None

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw headings and crops that are in sight."""
        painter = QPainter(viewport_of(self))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.translate(0, -self._scrolled())
        for group, top in zip(self._contents.groups, self._tops(), strict=True):
            if self._is_in_sight(top, HEADING_HEIGHT):
                self._paint_heading(painter, group, top)
        for place in self._places_in_sight():
            self._paint_cell(painter, place)
        painter.end()
        # A panel that comes from behind others in tabs is painted, and gets no other event.
        if not self._timer.isActive() and self._next_missing() is not None:
            self._timer.start(0)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Fill the width with as many columns as fit."""
        super().resizeEvent(event)
        self._fit_scroll_bar()
        self._look_again()

    def showEvent(self, event: QShowEvent | None) -> None:  # noqa: N802
        """Draw what was left out while the grid was hidden."""
        super().showEvent(event)
        place = self._place_of(self._selected)
        if place is not None:
            self._scroll_to(place)
        self._look_again()

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: N802, ARG002
        """Draw crops that come into sight."""
        self._look_again()

    def viewportEvent(self, event: QEvent | None) -> bool:  # noqa: N802
        """Return what lies under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.tooltip_at(event.pos()), self)
            return True
        return super().viewportEvent(event)

    def tooltip_at(self, place: QPoint) -> str:
        """Return the text about the crop or heading under a point of the viewport."""
        row = self.row_at(place)
        if row is not None:
            return self._contents.tooltip(row)
        y = place.y() + self._scrolled()
        for group, top in zip(self._contents.groups, self._tops(), strict=True):
            if top <= y < top + HEADING_HEIGHT:
                return group.meaning
        return ""

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Go to the crop that is clicked."""
        if event is None or event.button() != Qt.MouseButton.LeftButton:
            return
        row = self.row_at(event.position().toPoint())
        if row is not None:
            self.wanted.emit(row)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Show what can be clicked."""
        if event is not None:
            is_crop = self.row_at(event.position().toPoint()) is not None
            shape = Qt.CursorShape.PointingHandCursor if is_crop else Qt.CursorShape.ArrowCursor
            viewport_of(self).setCursor(shape)

    def wheelEvent(self, event: QWheelEvent | None) -> None:  # noqa: N802
        """Scroll; with Ctrl show more or less around each object."""
        if event is not None and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoomed.emit(-1 if event.angleDelta().y() > 0 else 1)
            event.accept()
        else:
            super().wheelEvent(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Move by arrows, go by Enter or Space; letters go to the desk."""
        if event is None:
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            if self.selected() is not None:
                self.wanted.emit(self._selected)
        elif is_desk_key(event):
            event.ignore()
        elif (target := self._target_of_key(event.key())) is not None:
            self.chosen.emit(int(self._contents.rows[target]))
        else:
            super().keyPressEvent(event)

    # Where everything is.

    def _columns(self) -> int:
        return max((viewport_of(self).width() - GAP) // (CROP_POINTS + GAP), 1)

    def _cell_height(self) -> int:
        return CROP_POINTS + UNDER + CAPTION_LINES * self.fontMetrics().lineSpacing() + GAP

    def _lines(self, group: Group) -> int:
        return -(-len(group.rows) // self._columns())

    def _tops(self) -> list[int]:
        """Return where each group begins."""
        tops, top = [], 0
        for group in self._contents.groups:
            tops.append(top)
            top += HEADING_HEIGHT + self._lines(group) * self._cell_height()
        return tops

    def _height(self) -> int:
        if not self._contents.groups:
            return 0
        last = self._contents.groups[-1]
        return self._tops()[-1] + HEADING_HEIGHT + self._lines(last) * self._cell_height()

    def _scrolled(self) -> int:
        bar = self.verticalScrollBar()
        return 0 if bar is None else bar.value()

    def _is_in_sight(self, top: int, height: int) -> bool:
        above = self._scrolled()
        return top + height >= above and top < above + viewport_of(self).height()

    def _places_in_sight(self) -> list[int]:
        """List the places of the crops that can be seen, from the top."""
        found: list[int] = []
        first, columns, height = 0, self._columns(), self._cell_height()
        for group, top in zip(self._contents.groups, self._tops(), strict=True):
            begin = top + HEADING_HEIGHT
            above = (self._scrolled() - begin) // height
            below = (self._scrolled() + viewport_of(self).height() - begin) // height
            low = max(above, 0) * columns
            high = min((below + 1) * columns, len(group.rows))
            found += range(first + low, first + high)
            first += len(group.rows)
        return found

    def _rect(self, place: int) -> QRect:
        first = 0
        for group, top in zip(self._contents.groups, self._tops(), strict=True):
            if place < first + len(group.rows):
                line, column = divmod(place - first, self._columns())
                y = top + HEADING_HEIGHT + line * self._cell_height()
                x = GAP + column * (CROP_POINTS + GAP)
                return QRect(x, y, CROP_POINTS, self._cell_height() - GAP)
            first += len(group.rows)
        return QRect()

    def _place_of(self, row: int | None) -> int | None:
        if row is None:
            return None
        found = np.flatnonzero(self._contents.rows == row)
        return int(found[0]) if len(found) else None

    def _target_of_key(self, key: int) -> int | None:
        """Find the place that an arrow key leads to."""
        last = len(self._contents.rows) - 1
        place = self._place_of(self._selected)
        page = max(viewport_of(self).height() - self._cell_height(), self._cell_height())
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        drops = {
            Qt.Key.Key_Up: -self._cell_height(),
            Qt.Key.Key_Down: self._cell_height(),
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
        }
        if last < 0 or key not in (*steps, *drops, Qt.Key.Key_Home, Qt.Key.Key_End):
            return None
        if place is None or key == Qt.Key.Key_Home:
            return 0
        if key == Qt.Key.Key_End:
            return last
        if key in steps:
            return min(max(place + steps[Qt.Key(key)], 0), last)
        return self._nearest(place, drops[Qt.Key(key)])

    def _nearest(self, place: int, drop: int) -> int:
        """Find the crop nearest to a point straight above or below a crop, in that direction."""
        rect = self._rect(place)
        ahead = range(place) if drop < 0 else range(place + 1, len(self._contents.rows))
        near = [at for at in self._near(place, drop) if at in ahead]
        rects = [(at, self._rect(at)) for at in near]
        rects = [(at, other) for at, other in rects if other.y() != rect.y()]
        if not rects:
            return place
        goal = rect.y() + drop
        return min(rects, key=lambda pair: (abs(pair[1].y() - goal), abs(pair[1].x() - rect.x())))[
            0
        ]

    def _near(self, place: int, drop: int) -> range:
        lines = abs(drop) // self._cell_height() + 2
        reach = lines * self._columns()
        return range(max(place - reach, 0), min(place + reach + 1, len(self._contents.rows)))

    def _scroll_to(self, place: int) -> None:
        bar, rect = self.verticalScrollBar(), self._rect(place)
        if bar is None:
            return
        if rect.top() - HEADING_HEIGHT < bar.value():
            bar.setValue(rect.top() - HEADING_HEIGHT)
        elif rect.bottom() + GAP > bar.value() + viewport_of(self).height():
            bar.setValue(rect.bottom() + GAP - viewport_of(self).height())

    def _fit_scroll_bar(self) -> None:
        bar = self.verticalScrollBar()
        if bar is not None:
            bar.setRange(0, max(self._height() - viewport_of(self).height(), 0))
            bar.setPageStep(viewport_of(self).height())
            bar.setSingleStep(self._cell_height() // 3)

    # What is drawn, and when.

    def _look_again(self) -> None:
        viewport_of(self).update()
        if is_in_sight(self):
            self._timer.start(0)

    def _draw_some(self) -> None:
        """Draw crops in sight that are missing, for a moment; then let the window live."""
        end = time.perf_counter() + BUDGET_S
        per_point = self.devicePixelRatioF()
        size = round(CROP_POINTS * per_point)
        while (row := self._next_missing()) is not None:
            if time.perf_counter() > end:
                self._timer.start(0)
                break
            name = self._contents.name(row)
            pixmap = QPixmap.fromImage(self._contents.draw(row, size, per_point))
            pixmap.setDevicePixelRatio(per_point)
            self._pixmaps.pop(name, None)
            self._pixmaps[name] = pixmap
            self._stale.discard(name)
        self._drop_oldest()
        viewport_of(self).update()

    def _next_missing(self) -> int | None:
        """Find the first crop in sight that is not drawn, or not as things are now."""
        for place in self._places_in_sight():
            row = int(self._contents.rows[place])
            name = self._contents.name(row)
            if name not in self._pixmaps or name in self._stale:
                return row
        return None

    def _drop_oldest(self) -> None:
        kept = max(KEPT, 2 * len(self._places_in_sight()))
        for name in list(self._pixmaps)[: max(len(self._pixmaps) - kept, 0)]:
            del self._pixmaps[name]
            self._stale.discard(name)

    def _paint_heading(self, painter: QPainter, group: Group, top: int) -> None:
        font = QFont(self.font())
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(self._text_colour())
        where = QRect(GAP, top, viewport_of(self).width() - 2 * GAP, HEADING_HEIGHT)
        text = f"{group.title}  {styles.count_text(len(group.rows))}"
        painter.drawText(where, int(Qt.AlignmentFlag.AlignVCenter), text)
        width = painter.fontMetrics().horizontalAdvance(text) + 10
        painter.setFont(self.font())
        painter.setPen(self._text_colour(160))
        said = painter.fontMetrics().elidedText(
            group.meaning, Qt.TextElideMode.ElideRight, where.width() - width
        )
        painter.drawText(where.adjusted(width, 0, 0, 0), int(Qt.AlignmentFlag.AlignVCenter), said)

    def _paint_cell(self, painter: QPainter, place: int) -> None:
        row, rect = int(self._contents.rows[place]), self._rect(place)
        crop = QRect(rect.topLeft(), rect.topLeft() + QPoint(CROP_POINTS - 1, CROP_POINTS - 1))
        pixmap = self._pixmaps.get(self._contents.name(row))
        if pixmap is None:
            painter.fillRect(crop, self._text_colour(30))
        else:
            painter.drawPixmap(crop, pixmap)
        caption = self._contents.caption(row)
        line = self.fontMetrics().lineSpacing()
        swatch = QRect(rect.x(), crop.bottom() + UNDER + 3, 9, line - 6)
        painter.fillRect(swatch, qcolor(caption.colour))
        is_selected = row == self._selected
        font = QFont(self.font())
        font.setBold(is_selected)
        painter.setFont(font)
        painter.setPen(self._text_colour())
        for number, text in enumerate(caption.lines):
            indent = swatch.width() + 4 if number == 0 else 0
            where = QRect(
                rect.x() + indent, crop.bottom() + UNDER + number * line, CROP_POINTS - indent, line
            )
            shown = painter.fontMetrics().elidedText(
                text, Qt.TextElideMode.ElideRight, where.width()
            )
            painter.drawText(where, int(Qt.AlignmentFlag.AlignVCenter), shown)
        if is_selected:
            self._paint_frame(painter, crop)

    def _paint_frame(self, painter: QPainter, crop: QRect) -> None:
        """Mark the selected crop as the selected object is on the image: light, edged dark."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, width in ((QColor(0, 0, 0), FRAME + 2.0), (QColor(255, 255, 255), FRAME)):
            pen = QPen(colour)
            pen.setWidthF(width)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(QRectF(crop))

    def _text_colour(self, alpha: int = 255) -> QColor:
        colour = QColor(self.palette().color(self.foregroundRole()))
        colour.setAlpha(alpha)
        return colour
