"""Column widths of the object table: wide enough for the words, but no wider than the panel."""

from __future__ import annotations

import numpy as np
from qtpy.QtGui import QFontInfo

from napari_panoptic.display.object_rows import COLUMNS, Kind, ObjectRows
from napari_panoptic.viewer.kit.sortable_view import SortableView
from napari_panoptic.viewer.kit.widgets import viewport_of

WORD_MARGIN_PX = 12
"""Beside the longest word of a column, for the edges of its cell."""
ID_MARGIN_PX = 16
"""Beside an id, for the edges of its cell and the larger letters of some themes."""
_LETTERS_PX = 12
"""Height of the letters for which the widths below and those of the columns are made."""
_LEAST_PX = {
    "side": 34,
    "id": 24,
    "status": 46,
    "cause": 36,
    "iou": 40,
    "hausdorff_px": 34,
    "class": 36,
}
"""Column -> its minimum width in a narrow panel.

Words are then cut, and tooltips show them in full. Other columns are as wide as their values need:
if they are shown, the table scrolls.
"""
_TAKES_THE_REST = "cause"


class ColumnWidths:
    """Fits the columns to the panel, until the user makes one wider or narrower.

    Parameters
    ----------
    view
        The table.
    """

    def __init__(self, view: SortableView) -> None:
        self._view = view
        self._rows = ObjectRows.empty()
        self._is_fitting = self._is_users = False
        if (horizontal := view.horizontalHeader()) is not None:
            horizontal.sectionResized.connect(self._on_resized)

    def show_rows(self, rows: ObjectRows) -> None:
        """Fit the columns to other rows."""
        self._rows = rows
        self.fit()

    def fit(self) -> None:
        """Share the width of the table among the visible columns."""
        if self._is_users:
            self._make_room_for_ids()
            return
        view = self._view
        shown = [k for k in range(len(COLUMNS)) if not view.isColumnHidden(k)]
        wanted = {k: self._wanted_px(k) for k in shown}
        least = {k: min(self._least_px(k), wanted[k]) for k in shown}
        missing = sum(wanted.values()) - sum(least.values())
        spare = max(viewport_of(view).width() - sum(least.values()), 0)
        share = min(spare / missing, 1.0) if missing else 1.0
        widths = {k: least[k] + int(share * (wanted[k] - least[k])) for k in shown}
        for k in shown:
            if COLUMNS[k].name == _TAKES_THE_REST:
                widths[k] += max(viewport_of(view).width() - sum(widths.values()), 0)
        self._set(widths)

    def _wanted_px(self, number: int) -> int:
        """Return the width at which nothing in a column is cut."""
        column = COLUMNS[number]
        if column.kind is Kind.ID:
            return max(self._scaled(column.width), self._id_px(column.name))
        words = self._rows.words.get(column.name, ()) if column.name == "class" else ()
        metrics = self._view.fontMetrics()
        longest = max(map(metrics.horizontalAdvance, words), default=0)
        return max(longest + WORD_MARGIN_PX if longest else 0, self._scaled(column.width))

    def _least_px(self, number: int) -> int:
        """Return the width below which a column is useless."""
        column = COLUMNS[number]
        least = self._scaled(_LEAST_PX.get(column.name, column.width))
        return max(least, self._id_px(column.name)) if column.kind is Kind.ID else least

    def _id_px(self, name: str) -> int:
        if not len(self._rows):
            return 0
        longest = str(int(np.max(self._rows.values[name])))
        return self._view.fontMetrics().horizontalAdvance(longest) + ID_MARGIN_PX

    def _make_room_for_ids(self) -> None:
        """Widen the columns of ids where they would be cut off, as on a slide."""
        for number, column in enumerate(COLUMNS):
            if column.kind is Kind.ID and not self._view.isColumnHidden(number):
                needed = self._id_px(column.name)
                if needed > self._view.columnWidth(number):
                    self._set({number: needed})

    def _scaled(self, width_px: int) -> int:
        """Return a width for letters of the size that the table has."""
        return round(width_px * QFontInfo(self._view.font()).pixelSize() / _LETTERS_PX)

    def _set(self, widths: dict[int, int]) -> None:
        self._is_fitting = True
        try:
            for number, width in widths.items():
                self._view.setColumnWidth(number, width)
        finally:
            self._is_fitting = False

    def _on_resized(self, _number: int, before: int, now: int) -> None:
        """Leave the widths alone once the user has chosen one; 0 is a column that is hidden."""
        if before and now and not self._is_fitting:
            self._is_users = True
