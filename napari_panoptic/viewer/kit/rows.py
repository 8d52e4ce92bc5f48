"""Lays out a panel from a list of rows, in the order in which they are read."""

from __future__ import annotations

from dataclasses import dataclass

from qtpy.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

from napari_panoptic.viewer.kit.shown import PlainLabel

Margins = tuple[int, int, int, int]
NO_MARGINS: Margins = (0, 0, 0, 0)
PANEL_MARGINS: Margins = (4, 4, 4, 2)
_SPACING_PX = 3


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
    column.setSpacing(_SPACING_PX)
    fill(column, *rows)
    grows = any(row is None or isinstance(row, Grow) for row in rows)
    column.addStretch(0 if grows else 1)  # 0 takes room only while what grows is hidden
    return column


def row_of(*cells: Row) -> QHBoxLayout:
    """Return a row of widgets beside each other."""
    line = QHBoxLayout()
    line.setSpacing(_SPACING_PX)
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
