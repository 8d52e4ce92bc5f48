"""Rows in the order in which they are read; bars that wrap, sections that fold, and covers."""

from __future__ import annotations

from dataclasses import dataclass

from qtpy.QtCore import QEvent, QObject, QSize, Qt
from qtpy.QtGui import QResizeEvent, QShowEvent
from qtpy.QtWidgets import (
    QBoxLayout,
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QFlowLayout

from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown

Margins = tuple[int, int, int, int]
NO_MARGINS: Margins = (0, 0, 0, 0)
PANEL_MARGINS: Margins = (4, 4, 4, 2)
DIALOG_MARGINS: Margins = (9, 9, 9, 9)
SPACING_PX = 3


@dataclass(frozen=True, eq=False)
class Grow:
    """A widget, or a row of them, that takes the room that the others leave."""

    content: Content


Content = QWidget | QLayout | str | tuple["Row", ...]
Row = Content | Grow | None
"""A widget, a layout, a text, or several of them beside each other; None stands for free room."""


def lay_out(box: QWidget, *rows: Row, margins: Margins = NO_MARGINS) -> QVBoxLayout:
    """Lay out rows below each other in a widget; without a visible row that grows, at the top."""
    column = QVBoxLayout(box)
    column.setContentsMargins(*margins)
    column.setSpacing(SPACING_PX)
    fill(column, *rows)
    grows = any(row is None or isinstance(row, Grow) for row in rows)
    column.addStretch(0 if grows else 1)  # 0 takes room only while the growing widget is hidden
    return column


def row_of(*cells: Row) -> QHBoxLayout:
    """Return a row of widgets beside each other."""
    line = QHBoxLayout()
    line.setSpacing(SPACING_PX)
    line.setContentsMargins(*NO_MARGINS)
    fill(line, *cells)
    return line


def fill(layout: QBoxLayout, *rows: Row) -> None:
    """Add rows to a layout."""
    for row in rows:
        stretch = int(isinstance(row, Grow))
        content = row.content if isinstance(row, Grow) else row
        if content is None:
            layout.addStretch(1)
        elif isinstance(content, tuple):
            layout.addLayout(row_of(*content), stretch)
        elif isinstance(content, QLayout):
            layout.addLayout(content, stretch)
        else:
            widget = PlainLabel(content) if isinstance(content, str) else content
            layout.addWidget(widget, stretch)


QWIDGETSIZE_MAX = (1 << 24) - 1
"""Qt's own limit of sizes."""


def stack(box: QWidget, *widgets: QWidget, spacing_px: int = 5) -> None:
    """Put widgets into a box, one below the other, without margins."""
    layout = QVBoxLayout(box)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing_px)
    for widget in widgets:
        layout.addWidget(widget)


class FlowBar(QWidget):
    """A line of widgets that goes on in the next one where the window is narrow.

    No text is cut off, and the window can be as narrow as the widest widget.

    Parameters
    ----------
    widgets
        The widgets of the line, from the left.
    """

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self._widgets: tuple[QWidget, ...] = ()
        self._line = QFlowLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setHorizontalSpacing(SPACING_PX)
        self._line.setVerticalSpacing(SPACING_PX)
        self.line_up(*widgets)

    def line_up(self, *widgets: QWidget) -> None:
        """Show other widgets in the line; those that are left out are deleted."""
        for widget in self._widgets:
            self._line.removeWidget(widget)
            if widget not in widgets:
                widget.deleteLater()
        self._widgets = widgets
        for widget in widgets:
            self._line.addWidget(widget)

    def showEvent(self, event: QShowEvent | None) -> None:  # noqa: N802
        """Make all equally high, so that their words stand on one line."""
        super().showEvent(event)
        height = max((widget.sizeHint().height() for widget in self._widgets), default=0)
        for widget in self._widgets:
            widget.setMinimumHeight(height)


class FoldButton(QToolButton):
    """A button with an arrow that shows and hides a widget.

    superqt's QCollapsible fixes the height of its contents, so that texts are cut off in a narrow
    panel, shows no frame around a title that has the keys, and draws an arrow that does not follow
    the theme.

    Parameters
    ----------
    title
        The heading.
    meaning
        The tooltip.
    content
        The widget that is shown and hidden.
    """

    def __init__(self, title: str, meaning: str, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self.setText(title)
        self.setToolTip(meaning)
        self.setAccessibleName(title or meaning)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setAutoRaise(True)
        self.setCheckable(True)
        self.setChecked(True)
        self.setArrowType(Qt.ArrowType.DownArrow)
        self.toggled.connect(self._on_toggled)

    def _on_toggled(self, unfolded: bool) -> None:
        self._content.setVisible(unfolded)
        self.setArrowType(Qt.ArrowType.DownArrow if unfolded else Qt.ArrowType.RightArrow)


LONGEST_TITLE = 34
"""Letters of the title of a section, which may contain a name."""


class FoldingSection(QWidget):
    """Widgets under a title that folds and unfolds them; folded at first.

    Parameters
    ----------
    title
        Its contents.
    meaning
        The tooltip of the title.
    """

    def __init__(self, title: str, meaning: str = "") -> None:
        super().__init__()
        body = QWidget()
        self._rows = QVBoxLayout(body)
        self._rows.setContentsMargins(10, 0, 0, 0)
        self._rows.setSpacing(4)
        self.fold = FoldButton(title, meaning, body)
        self.fold.setStyleSheet("font-weight: bold")
        self.fold.setChecked(False)
        heading = QWidget()
        self._heading = QHBoxLayout(heading)
        self._heading.setContentsMargins(0, 0, 0, 0)
        self._heading.setSpacing(4)
        self._heading.addWidget(self.fold)
        self._heading.addStretch(0)
        stack(self, heading, body, spacing_px=2)

    def set_title(self, title: str) -> None:
        """Show another title."""
        short = title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE]}…"
        self.fold.setText(shown(short).replace("&", "&&"))

    def add(self, widget: QWidget) -> None:
        """Add a widget below the others."""
        self._rows.addWidget(widget)

    def add_beside_title(self, widget: QWidget) -> None:
        """Add a widget beside the title; it stays visible while the section is folded."""
        self._heading.addWidget(widget, 1)


class Curtain(QWidget):
    """Covers a widget with a sentence; the layout around it stays as it is.

    Parameters
    ----------
    covered
        The widget, which becomes the parent.
    text
        The sentence.
    """

    def __init__(self, covered: QWidget, text: str) -> None:
        super().__init__(covered)
        # Else a widget of a class of one's own has no background in napari's themes.
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        label = WrappedLabel(text)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(label)
        self.setGeometry(covered.rect())
        covered.installEventFilter(self)
        self.raise_()
        self.show()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Stay as large as the covered widget, and above its later children."""
        covered = self.parentWidget()
        kinds = (QEvent.Type.Resize, QEvent.Type.ChildAdded, QEvent.Type.LayoutRequest)
        if covered is not None and event is not None and event.type() in kinds:
            self.setGeometry(covered.rect())
            self.raise_()
        return super().eventFilter(watched, event)

    @classmethod
    def draw(cls, covered: QWidget, text: str) -> None:
        """Cover a widget; an empty text uncovers it."""
        for curtain in covered.findChildren(cls, options=Qt.FindChildOption.FindDirectChildrenOnly):
            covered.removeEventFilter(curtain)
            curtain.hide()
            curtain.deleteLater()
        if text:
            cls(covered, text)


class ShrinkingPanel(QScrollArea):
    """A panel in a dock: where it has less room than it needs, it scrolls.

    Unlike Qt's scroll areas it asks for the same room as the panel, as long as nothing limits it.

    Parameters
    ----------
    panel
        The panel.
    most_px
        The height that it never insists on more than.
    """

    def __init__(self, panel: QWidget, most_px: int = QWIDGETSIZE_MAX) -> None:
        super().__init__()
        self._most_px = most_px
        self._limit = QSize(QWIDGETSIZE_MAX, QWIDGETSIZE_MAX)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setStyleSheet("ShrinkingPanel { border: 0; padding: 0 }")  # napari's takes 2 px
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # a click must not take the keys
        self.setSizePolicy(panel.sizePolicy())
        self.setWidget(panel)

    def limit(self, limit: QSize) -> None:
        """Set how much room the panel may insist on."""
        if limit != self._limit:
            self._limit = limit
            self.updateGeometry()
            if isinstance(dock := self.parentWidget(), QDockWidget):
                dock.setMinimumSize(0, 0)  # Qt keeps the least size that it once had

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size that the panel prefers."""
        panel = self.widget()
        return super().sizeHint() if panel is None else panel.sizeHint()

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the least size of the panel, within the limit."""
        return self._least().boundedTo(self._limit).boundedTo(QSize(QWIDGETSIZE_MAX, self._most_px))

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Fit the panel into the room that is there."""
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent | None) -> bool:
        """Follow the panel when it needs more or less."""
        is_done = super().event(event)
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
            self.updateGeometry()
        return is_done

    def _least(self) -> QSize:
        panel = self.widget()
        if panel is None:
            return QSize()
        hint = panel.minimumSizeHint()
        # As in Qt's layouts, an explicit size counts instead of the hint.
        return QSize(panel.minimumWidth() or hint.width(), panel.minimumHeight() or hint.height())

    def _fit(self) -> None:
        panel, viewport = self.widget(), self.viewport()
        if panel is not None and viewport is not None:
            self.setMaximumHeight(panel.maximumHeight())  # a form has a fixed height
            panel.resize(viewport.size().expandedTo(self._least()))


MIN_LIST_PX = 92


class ScrollPanel(QScrollArea):
    """Rows of widgets; in a low dock the panel scrolls, so that nothing is squeezed.

    Parameters
    ----------
    parent
        The parent.
    margins_px
        Left, above, right and below the rows.
    spacing_px
        Between the rows; Qt's own if None.
    """

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        margins_px: tuple[int, int, int, int] = (4, 4, 4, 2),
        spacing_px: int | None = 3,
    ) -> None:
        super().__init__(parent)
        body = QWidget()
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._rows = QVBoxLayout(body)
        self._rows.setContentsMargins(*margins_px)
        if spacing_px is not None:
            self._rows.setSpacing(spacing_px)
