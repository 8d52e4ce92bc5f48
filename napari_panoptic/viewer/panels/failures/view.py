"""The gallery: crops in sections, of which only those in sight are cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from psygnal import Signal
from qtpy.QtCore import (
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from qtpy.QtGui import (
    QColor,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.viewer.jobs.jobs import single_shot
from napari_panoptic.viewer.kit.widgets import (
    is_desk_key,
    is_in_sight,
    offer_link,
    qcolor,
    viewport_of,
)
from napari_panoptic.viewer.panels.failures.crops import Crops
from napari_panoptic.viewer.panels.failures.model import FailureModel

SMALLEST_CROP, USUAL_CROP, LARGEST_CROP = 72, 112, 256
"""Widths of a crop on the screen."""
GAP, UNDER, HEADING_HEIGHT, FRAME = 8, 4, 26, 3
CAPTION_LINES = 2
REST_MS = 30
"""How long the view rests before crops that came into sight are cut."""
_CONTROL = Qt.KeyboardModifier.ControlModifier
_EXTENDING = _CONTROL | Qt.KeyboardModifier.ShiftModifier
_Move = QAbstractItemView.CursorAction


class FailureView(QListView):
    """Crops in sections; chosen by mouse or keys, several with Ctrl or Shift.

    Signals give the row of a failure: ``chosen`` if the keys moved to it, ``wanted`` if it was
    clicked or confirmed. Selecting from outside emits neither.
    """

    chosen = Signal(int)
    wanted = Signal(int)
    zoomed = Signal(int)
    selection_moved = Signal()
    link_wanted = Signal()  # to the selected failures

    def __init__(self, crops: Crops, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.items = FailureModel()
        self.items.setParent(self)
        self.crops = crops
        self.crop_points = USUAL_CROP
        self.painter = _Painter(self)
        self.setModel(self.items)
        self.setItemDelegate(self.painter)
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setMovement(QListView.Movement.Static)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUniformItemSizes(False)  # headings are as wide as the view
        self.setMouseTracking(True)
        self.setAccessibleName("Failures")
        offer_link(self, self.link_wanted.emit)
        self._cell_of, self._cell = (0, 0, 0), QSize()
        self._wanted_names: list[FailureName] = []
        self._modifiers = Qt.KeyboardModifier.NoModifier
        self._look = single_shot(REST_MS, self._want_crops, self)
        self._kept_heading = _KeptHeading(self)
        self.items.modelReset.connect(self._kept_heading.hide)  # until it is painted
        crops.changed.connect(self._repaint)
        self.clicked.connect(self._on_clicked)
        self.chosen_items().selectionChanged.connect(lambda *_: self.selection_moved.emit())

    @property
    def is_busy(self) -> bool:
        """Whether crops in sight are still to be cut."""
        return self._look.isActive() or self.crops.is_busy

    @property
    def is_at_top(self) -> bool:
        """Whether the first items are in sight."""
        bar = self.verticalScrollBar()
        return bar is None or bar.value() == 0

    def chosen_items(self) -> QItemSelectionModel:
        """Return what is selected."""
        model = self.selectionModel()
        if model is None:
            raise RuntimeError("a view with items has a selection")
        return model

    def resize_crops(self, points: int) -> None:
        """Show crops in another size."""
        anchor = self._anchor()
        self.crop_points = points
        self._lay_out()
        self._return_to(anchor)

    def refill(self, fill: Callable[[], None]) -> None:
        """Change the items by calling `fill`; the same failures stay selected and in place."""
        anchor, chosen = self._anchor(), set(self.selected_names())
        current = self.currentIndex()
        held = self.items.name(current.row()) if self._is_crop(current) else None
        fill()
        self.painter.measure()
        self._select_names(chosen, held)
        self._return_to(anchor)
        self._look.start()

    def select(self, row: int | None) -> None:
        """Select a failure and scroll to it; several that were selected here stay so."""
        item = self.items.item_of(row)
        selection = self.chosen_items()
        if item is None:
            if len(selection.selectedIndexes()) < 2:
                selection.clear()
            return
        index = self.items.index(item)
        if index == self.currentIndex() and selection.isSelected(index):
            return
        if selection.isSelected(index):
            selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        else:
            selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.scrollTo(index)

    def deselect(self) -> None:
        """Select no failure."""
        self.chosen_items().clear()

    def selected(self) -> int | None:
        """Return the row of the current failure, if it is selected."""
        index = self.currentIndex()
        is_chosen = self._is_crop(index) and self.chosen_items().isSelected(index)
        return self.items.row(index.row()) if is_chosen else None

    def selected_names(self) -> list[FailureName]:
        """Return all selected failures, in the order of the gallery."""
        items = sorted(index.row() for index in self.chosen_items().selectedIndexes())
        return [self.items.name(item) for item in items]

    def look_again(self) -> None:
        """Have the crops in sight cut that are missing or outdated."""
        self._look.start()

    def cell_rect(self, row: int) -> QRect | None:
        """Return where a failure is in the viewport; None if it has no item."""
        item = self.items.item_of(row)
        return None if item is None else self.visualRect(self.items.index(item))

    def moveCursor(  # noqa: N802
        self,
        action: QAbstractItemView.CursorAction,
        modifiers: Qt.KeyboardModifier,  # noqa: ARG002 - Qt's own argument
    ) -> QModelIndex:
        """Return where a key leads: from crop to crop, across headings."""
        current = self.currentIndex().row()
        if not self.items.rowCount():
            return QModelIndex()
        if current < 0 or action == _Move.MoveHome:
            return self._crop(self.items.next_crop(1))
        if action == _Move.MoveEnd:
            return self._crop(self.items.next_crop(-1))
        if action in (_Move.MoveLeft, _Move.MovePrevious):
            return self._crop(self.items.next_crop(-1, current))
        if action in (_Move.MoveRight, _Move.MoveNext):
            return self._crop(self.items.next_crop(1, current))
        page = max(viewport_of(self).height() - self.cell_size().height(), 0)
        lines = 1 if action in (_Move.MoveUp, _Move.MoveDown) else page // self.cell_size().height()
        step = -1 if action in (_Move.MoveUp, _Move.MovePageUp) else 1
        row = current
        for _ in range(max(lines, 1)):
            row = self._above_or_below(row, step)
        return self.items.index(row)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Move by arrows, go by Enter or Space; letters go to the desk."""
        if event is None:
            return
        row = self.selected()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            if row is not None:
                self.wanted.emit(row)
        elif is_desk_key(event) and not event.modifiers() & _CONTROL:
            event.ignore()
        else:
            super().keyPressEvent(event)
            now = self.selected()
            if now is not None and now != row and not event.modifiers() & _EXTENDING:
                self.chosen.emit(now)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Show what can be clicked."""
        super().mouseMoveEvent(event)
        if event is not None:
            is_item = self.indexAt(event.position().toPoint()).isValid()
            shape = Qt.CursorShape.PointingHandCursor if is_item else Qt.CursorShape.ArrowCursor
            viewport_of(self).setCursor(shape)

    def wheelEvent(self, event: QWheelEvent | None) -> None:  # noqa: N802
        """Scroll; with Ctrl show more or less around each object."""
        if event is not None and event.modifiers() & _CONTROL:
            self.zoomed.emit(-1 if event.angleDelta().y() > 0 else 1)
            event.accept()
        else:
            super().wheelEvent(event)

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802
        """Draw the items, and have the missing crops cut."""
        super().paintEvent(event)
        self._keep_heading()
        # A panel that comes from behind others in tabs is painted, and gets no other event.
        if not self._look.isActive() and self._has_news():
            self._look.start()

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Fill the width with as many columns as fit."""
        super().resizeEvent(event)
        self._lay_out()

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Make room for captions in another font."""
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.FontChange:
            self._lay_out()

    def cell_size(self) -> QSize:
        """Return the size of a crop with its caption; together they fill the width."""
        room = viewport_of(self).width() - 1
        key = room, self.crop_points, self.fontMetrics().lineSpacing()
        if key != self._cell_of:
            width = room // max(room // (self.crop_points + GAP), 1)
            height = self.crop_points + UNDER + CAPTION_LINES * key[-1] + GAP
            self._cell_of, self._cell = key, QSize(width, height)
        return self._cell

    def kept_heading(self) -> int | None:
        """Return the heading that is kept in sight at the top; None while it is there itself."""
        return self._kept_heading.item if self._kept_heading.isVisible() else None

    def scrollTo(  # noqa: N802
        self,
        index: QModelIndex,
        hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible,
    ) -> None:
        """Scroll to an item, so that it is not below the heading that is kept in sight."""
        super().scrollTo(index, hint)
        hidden = HEADING_HEIGHT - self.visualRect(index).top()
        bar = self.verticalScrollBar()
        if bar is not None and self._is_crop(index) and hidden > 0:
            bar.setValue(bar.value() - hidden)

    def _keep_heading(self) -> None:
        """Keep the heading of the first section in sight at the top; the next one pushes it out."""
        first, last = self._items_in_sight()
        item = None if last < first else self.painter.heading_of(first)
        if item is None or self.visualRect(self.items.index(item)).top() >= 0:
            self._kept_heading.hide()
            return
        following = self.painter.heading_after(item)
        top = HEADING_HEIGHT
        if following is not None:
            top = min(self.visualRect(self.items.index(following)).top(), HEADING_HEIGHT)
        self._kept_heading.put(item, top - HEADING_HEIGHT)

    def press_heading(self, item: int) -> None:
        """Close or open the section of a heading."""
        self.refill(lambda: self.items.toggle(item))

    def _lay_out(self) -> None:
        self.painter.measure()
        self.scheduleDelayedItemsLayout()

    def item_sizes(self) -> tuple[QSize, QSize]:
        """Return the sizes of a crop and of a heading, which takes a whole line."""
        return self.cell_size(), QSize(viewport_of(self).width() - 1, HEADING_HEIGHT)

    def names_in_sight(self) -> list[FailureName]:
        """Return the failures whose crops can be seen, from the top."""
        first, last = self._items_in_sight()
        items = range(first, last + 1)
        return [self.items.name(item) for item in items if not self.items.is_heading(item)]

    def _items_in_sight(self) -> tuple[int, int]:
        """Return the first and the last item in sight."""
        n = self.items.rowCount()
        height = viewport_of(self).height()

        def first_below(y: int) -> int:
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                if self.visualRect(self.items.index(middle)).bottom() < y:
                    low = middle + 1
                else:
                    high = middle
            return low

        first = first_below(0)
        last = first
        while last < n and self.visualRect(self.items.index(last)).top() < height:
            last += 1
        return first, last - 1

    def _has_news(self) -> bool:
        names = self.names_in_sight()
        return names != self._wanted_names

    def _want_crops(self) -> None:
        # Nothing is wanted out of sight; what is painted then has news.
        self._wanted_names = self.names_in_sight() if is_in_sight(self) else []
        self.crops.want(self._wanted_names)

    def _repaint(self) -> None:
        viewport_of(self).update()

    def _on_clicked(self, index: QModelIndex) -> None:
        """Close or open a section, or go to an object; not while several are being selected."""
        if self.items.is_heading(index.row()):
            self.press_heading(index.row())
        elif not self._modifiers & _EXTENDING:
            self.wanted.emit(self.items.row(index.row()))

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Note whether several crops are being selected."""
        if event is not None:
            self._modifiers = event.modifiers()
        super().mouseReleaseEvent(event)

    def _is_crop(self, index: QModelIndex) -> bool:
        return index.isValid() and not self.items.is_heading(index.row())

    def _crop(self, item: int | None) -> QModelIndex:
        """Return a crop by its item; the current one where there is none."""
        return self.currentIndex() if item is None else self.items.index(item)

    def _above_or_below(self, item: int, step: int) -> int:
        """Return the crop of the line above or below that is nearest to straight above or below."""
        here = self.visualRect(self.items.index(item))
        line: list[tuple[int, int]] = []
        top: int | None = None
        other = item + step
        while 0 <= other < self.items.rowCount():
            rect = self.visualRect(self.items.index(other))
            if not self.items.is_heading(other) and rect.y() != here.y():
                if top is not None and rect.y() != top:
                    break
                top = rect.y()
                line.append((abs(rect.x() - here.x()), other))
            other += step
        return min(line)[1] if line else item

    def _anchor(self) -> tuple[FailureName, int] | None:
        """Return a failure in sight and its place in the viewport."""
        if not self.items.rowCount():
            return None
        first, last = self._items_in_sight()
        current = self.currentIndex().row()
        order = [current] if first <= current <= last else []
        for item in [*order, *range(first, last + 1)]:
            rect = self.visualRect(self.items.index(item))
            if not self.items.is_heading(item) and rect.top() >= 0:
                return self.items.name(item), rect.top()
        return None

    def _return_to(self, anchor: tuple[FailureName, int] | None) -> None:
        """Scroll until a failure is where it was."""
        bar = self.verticalScrollBar()
        if anchor is None or bar is None:
            return
        item = self.items.item_of(self.items.failures.find(anchor[0]))
        if item is None:
            return
        self.executeDelayedItemsLayout()
        top = self.visualRect(self.items.index(item)).top()
        bar.setValue(bar.value() + top - anchor[1])

    def _select_names(self, names: set[FailureName], current: FailureName | None) -> None:
        selection = self.chosen_items()
        for name in names:
            item = self.items.item_of(self.items.failures.find(name))
            if item is not None:
                index = self.items.index(item)
                selection.select(index, QItemSelectionModel.SelectionFlag.Select)
                if name == current:
                    selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)


class _KeptHeading(QWidget):
    """The heading of a section whose beginning has been scrolled out of sight."""

    def __init__(self, view: FailureView) -> None:
        super().__init__(view)
        self._view = view
        self.item = 0
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def put(self, item: int, top: int) -> None:
        """Show the heading of an item at a height in the view."""
        place = QRect(0, top, viewport_of(self._view).width(), HEADING_HEIGHT)
        if (item, place, True) != (self.item, self.geometry(), self.isVisible()):
            self.item = item
            self.setGeometry(place)
            self.show()
            self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw the heading as the view does."""
        items = self._view.items
        if self.item >= items.rowCount() or not items.is_heading(self.item):
            return  # other failures, and the view has not been painted yet
        painter = QPainter(self)
        view = viewport_of(self._view)
        painter.fillRect(self.rect(), view.palette().color(view.backgroundRole()))
        self._view.painter.paint_heading(painter, self.rect(), self.item)
        painter.end()

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Close the section."""
        if event is not None and self.rect().contains(event.position().toPoint()):
            self._view.press_heading(self.item)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Keep the mouse from the crop below."""


class _Painter(QStyledItemDelegate):
    """Draws crops with their captions, and headings."""

    def __init__(self, view: FailureView) -> None:
        super().__init__(view)
        self._view = view
        self._sizes = (QSize(), QSize())
        self._headings: frozenset[int] = frozenset()
        self._in_order: list[int] = []

    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex) -> QSize:  # noqa: N802
        """Return the size of an item."""
        return self._sizes[index.row() in self._headings]

    def measure(self) -> None:
        """Note the sizes of items; Qt asks for each of them."""
        self._sizes, self._headings = self._view.item_sizes(), self._view.items.headings
        self._in_order = sorted(self._headings)

    def heading_of(self, item: int) -> int | None:
        """Return the heading of the section of an item; None without sections."""
        place = bisect_right(self._in_order, item)
        return self._in_order[place - 1] if place else None

    def heading_after(self, heading: int) -> int | None:
        """Return the heading of the next section, or None."""
        place = bisect_right(self._in_order, heading)
        return self._in_order[place] if place < len(self._in_order) else None

    def paint(
        self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Draw an item."""
        if painter is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        if self._view.items.is_heading(index.row()):
            self.paint_heading(painter, option.rect, index.row())
        else:
            is_selected = self._view.chosen_items().isSelected(index)
            self._paint_crop(painter, option.rect, index.row(), is_selected=is_selected)
        painter.restore()

    def paint_heading(self, painter: QPainter, rect: QRect, item: int) -> None:
        """Draw the heading of a section."""
        items = self._view.items
        font = QFont(self._view.font())
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(self._text_colour())
        where = rect.adjusted(GAP, 0, -GAP, 0)
        arrow = "▸" if items.is_closed(item) else "▾"
        text = painter.fontMetrics().elidedText(
            f"{arrow} {items.heading_text(item)}", Qt.TextElideMode.ElideMiddle, where.width()
        )
        centred = int(Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(where, centred, text)
        width = painter.fontMetrics().horizontalAdvance(text) + 10
        painter.setFont(self._view.font())
        painter.setPen(self._text_colour(160))
        said = painter.fontMetrics().elidedText(
            items.section(item).meaning, Qt.TextElideMode.ElideRight, where.width() - width
        )
        painter.drawText(where.adjusted(width, 0, 0, 0), centred, said)

    def _paint_crop(self, painter: QPainter, rect: QRect, item: int, *, is_selected: bool) -> None:
        view, points = self._view, self._view.crop_points
        crop = QRect(rect.topLeft() + QPoint(GAP // 2, GAP // 2), QSize(points, points))
        pixmap = view.crops.picture(view.items.name(item))
        if pixmap is None or pixmap.isNull():
            painter.fillRect(crop, self._text_colour(30))
        else:
            painter.drawPixmap(crop, pixmap)
        if is_selected:
            self._paint_frame(painter, crop)
        self._paint_caption(painter, crop, item, is_bold=is_selected)

    def _paint_caption(self, painter: QPainter, crop: QRect, item: int, *, is_bold: bool) -> None:
        caption = self._view.items.caption(self._view.items.row(item))
        line = self._view.fontMetrics().lineSpacing()
        top = crop.bottom() + UNDER
        swatch = QRect(crop.x(), top + 3, 9, line - 6)
        painter.fillRect(swatch, qcolor(caption.colour))
        font = QFont(self._view.font())
        font.setBold(is_bold)
        painter.setFont(font)
        painter.setPen(self._text_colour())
        lines = QRect(crop.x(), top, crop.width(), line)
        beside = lines.adjusted(swatch.width() + 4, 0, 0, 0)
        _write(painter, beside, "", caption.outcome, Qt.TextElideMode.ElideMiddle)
        # The end of a region's name tells it from others of its patient.
        before = f"{caption.figure} · " if caption.region else caption.figure
        below = lines.translated(0, line)
        _write(painter, below, before, caption.region, Qt.TextElideMode.ElideLeft)

    def _paint_frame(self, painter: QPainter, crop: QRect) -> None:
        """Mark a selected crop as the selected object is on the image: light, edged dark."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, width in ((QColor(0, 0, 0), FRAME + 2.0), (QColor(255, 255, 255), FRAME)):
            pen = QPen(colour)
            pen.setWidthF(width)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(QRectF(crop))

    def _text_colour(self, alpha: int = 255) -> QColor:
        colour = QColor(self._view.palette().color(self._view.foregroundRole()))
        colour.setAlpha(alpha)
        return colour


def _write(painter: QPainter, where: QRect, kept: str, text: str, cut: Qt.TextElideMode) -> None:
    """Write one line: words that are always whole, then a text that is cut to the room left."""
    metrics = painter.fontMetrics()
    room = where.width() - metrics.horizontalAdvance(kept)
    said = metrics.elidedText(text, cut, room)
    painter.drawText(where, int(Qt.AlignmentFlag.AlignVCenter), kept + said)
