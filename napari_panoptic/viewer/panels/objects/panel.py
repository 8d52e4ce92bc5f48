"""The table of all objects: sorted, filtered, saved, and linked to the image both ways."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QEvent, QModelIndex, QSignalBlocker, Qt
from qtpy.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent, QResizeEvent
from qtpy.QtWidgets import QAbstractItemView, QWidget

from napari_panoptic.display import styles
from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.display.listed import ListedObjects, Others
from napari_panoptic.display.object_rows import (
    COLUMNS,
    SIDE_WORDS,
    GivenVerdicts,
    ObjectFilter,
    ObjectRows,
    WorstFirst,
)
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Side
from napari_panoptic.viewer.kit.array_table import ArrayTable
from napari_panoptic.viewer.kit.layouts import PANEL_MARGINS, FlowBar, Grow, lay_out
from napari_panoptic.viewer.kit.menus import ChoiceMenu, MenuButton, TickMenu
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import ToolButton, offer_link, opens_menu, viewport_of
from napari_panoptic.viewer.panels.filters import FILTER, FilterMenu, filter_text
from napari_panoptic.viewer.panels.objects.model import ObjectTableModel

EMPTY = "No objects to list. Open a cohort."
_LEAST_ROWS = 2
"""How many rows can be seen however low the panel is."""
LONGEST_TITLE_PX = 300
"""Longest description of the listed objects; names of classes may be long."""
ALL_HIDDEN = "No object passes the filters. Choose “All objects” in the menu “Filter”."


class _View(ArrayTable):
    """A table of which several rows can be selected and copied."""

    copy_pressed = Signal()
    current_row_clicked = Signal()

    def __init__(self, model: ObjectTableModel) -> None:
        super().__init__(model=model)
        self._row_before: int | None = None
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.clicked.connect(self._on_clicked)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Note which row is current before the press."""
        self._row_before = self.currentIndex().row()
        super().mousePressEvent(event)

    def _on_clicked(self, index: QModelIndex) -> None:
        before, self._row_before = self._row_before, None
        if before in (None, index.row()):
            self.current_row_clicked.emit()

    def event(self, event: QEvent | None) -> bool:
        """Keep napari's own shortcuts from taking the key that copies."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.matches(QKeySequence.StandardKey.Copy)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Copy the selected rows."""
        if event is not None and event.matches(QKeySequence.StandardKey.Copy):
            self.copy_pressed.emit()
        else:
            super().keyPressEvent(event)


class ObjectTable(QWidget):
    """The object table with its filters.

    Signals carry the side and row of an object that the user chose here; setting
    the selection from outside emits nothing.
    """

    object_selected = Signal(Side, int)
    rows_selected = Signal()  # a different selection, by the user or from outside
    centre_wanted = Signal(Side, int)
    filter_changed = Signal(ObjectFilter)
    verdicts_changed = Signal()
    listed_changed = Signal()  # other objects, or the same in another order
    columns_chosen = Signal(frozenset)  # the names of the columns that are hidden
    link_wanted = Signal()  # to the selected objects

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ObjectTableModel()
        self.view = _View(self.model)
        self.others = ChoiceMenu(
            "Others", "What the image shows besides the listed objects.", list(Others)
        )
        self.behind = ToolButton()
        self.export = ToolButton(
            "Export…", "Save the listed objects as CSV, with the columns of objects.csv."
        )
        self._columns = TickMenu(self)
        self._hidden: frozenset[str] = frozenset()
        self._outcomes: Outcomes | None = None
        self._with_um = self._with_scores = False
        self._count = PlainLabel()
        self._empty = EMPTY
        self.hint = WrappedLabel(EMPTY)
        self._menus: dict[str, FilterMenu] = {}
        self._verdicts: Mapping[Side, GivenVerdicts] = {}
        self._is_in_sight = True
        self._set_up_view()
        self._lay_out()
        self.show_outcomes(None)

    def show_outcomes(self, outcomes: Outcomes | None) -> None:
        """List the objects of a label pair; a hint if there is none.

        The outcomes that are listed already change nothing.
        """
        if outcomes is not None and outcomes is self._outcomes:
            return
        rows = ObjectRows.empty() if outcomes is None else ObjectRows.prepared(outcomes)
        rows = rows.with_verdicts(self._verdicts)
        self._outcomes = outcomes
        classes = () if outcomes is None else outcomes.class_names
        self._menus["class"].set_words(classes)
        self._menus["class"].check_only(self.model.filter.classes)
        self._with_um = outcomes is not None and outcomes.mpp is not None
        self._with_scores = outcomes is not None and not np.isnan(outcomes.prediction.score).all()
        self._show_columns()
        self._reset(lambda: self.model.set_rows(rows))

    def show_verdicts(self, given: Mapping[Side, GivenVerdicts]) -> None:
        """Show which objects were judged, and how."""
        self._verdicts = given
        before, rows = self.model.rows, self.model.rows.with_verdicts(given)
        if rows is before:
            return
        if self.model.depends_on_verdicts:
            self._reset(lambda: self.model.set_rows(rows))
        else:
            self.model.repaint_verdicts(rows)
            self.view.fit_columns()
        self.verdicts_changed.emit()

    def set_filter(self, wanted: ObjectFilter) -> None:
        """List only some objects."""
        if wanted == self.model.filter and wanted.title == self.model.filter.title:
            return
        for name, words in wanted.words.items():
            self._menus[name].check_only(words)
        self._filter_by(wanted)

    def select(self, chosen: tuple[Side, int] | None) -> None:
        """Select an object and scroll to it; an object that a filter hides deselects."""
        row = None if chosen is None else self.model.table_row(*chosen)
        if row is not None and row == self.view.currentIndex().row():
            # Chosen here: further rows may be selected with it.
            self.view.scrollTo(self.view.currentIndex())
            return
        with self.view.quiet:
            self.view.select_row(row)

    def menu(self, name: str) -> FilterMenu:
        """Return the filter menu of a column: side, status, class or cause."""
        return self._menus[name]

    def count_text(self) -> str:
        """Return the text about how many objects are listed."""
        return self._count.text()

    def say_when_empty(self, words: str = EMPTY) -> None:
        """Set the text shown without objects."""
        self._empty = words
        if not len(self.model.rows):
            self.hint.setText(words)

    @property
    def empty_text(self) -> str:
        """The text shown without objects."""
        return self._empty

    def selected(self) -> tuple[Side, int] | None:
        """Return side and row of the selected object."""
        index = self.view.currentIndex()
        return self.model.object_at(index.row()) if index.isValid() else None

    @property
    def outcomes(self) -> Outcomes | None:
        """The outcomes of the listed objects."""
        return self._outcomes

    def standing_out(self) -> ListedObjects | None:
        """Return the objects that stand out on the image; None if all look alike."""
        others = Others(self.others.choice)
        if others is Others.SHOWN or self._outcomes is None or self.model.filter.is_open:
            return None
        return ListedObjects.from_order(self.model.rows, self.model.order, self._outcomes, others)

    def put_worst_first(self, by: WorstFirst) -> None:
        """Put failures first, the worst of them at the top."""
        self._clear_sort_indicator()
        self.model.put_worst_first(by)

    def selected_rows(self) -> list[int]:
        """Return the table rows that are selected, from the top."""
        chosen = self.view.selection().selection()
        parts = [chosen[number] for number in range(len(chosen))]
        return sorted({row for part in parts for row in range(part.top(), part.bottom() + 1)})

    def selected_objects(self) -> list[tuple[Side, int]]:
        """Return side and row of every selected object, in the order of the table."""
        return [self.model.object_at(row) for row in self.selected_rows()]

    def copy(self) -> None:
        """Copy the selected rows, in the columns shown, for a spreadsheet."""
        clipboard, rows = QGuiApplication.clipboard(), self.selected_rows()
        if clipboard is None or not rows:
            return
        columns = [c for k, c in enumerate(COLUMNS) if not self.view.isColumnHidden(k)]
        clipboard.setText(self.model.rows.tab_separated(self.model.order[rows], columns))

    def hide_columns(self, names: Collection[str]) -> None:
        """Hide some columns, and show all others; the id stays."""
        self._hidden = frozenset(names) & {column.name for column in COLUMNS} - {"id"}
        self._show_columns()

    def _set_up_view(self) -> None:
        view = self.view
        view.heading.sortIndicatorChanged.connect(lambda _column, _order: self._show_count())
        view.selection().currentRowChanged.connect(lambda *_rows: self._on_row())
        view.selection().selectionChanged.connect(lambda *_rows: self.rows_selected.emit())
        # A click on the current row selects its object once more, which no change of rows reports.
        view.current_row_clicked.connect(self._on_row)
        view.centre_wanted.connect(
            lambda row: self.centre_wanted.emit(*self.model.rows.object_of(row))
        )
        view.copy_pressed.connect(self.copy)
        offer_link(view, self.link_wanted.emit)
        self.model.modelReset.connect(self._on_listed)
        self.model.layoutChanged.connect(self._on_listed)
        for column in COLUMNS:
            action = self._columns.addAction(column.title)
            if action is not None:
                action.setCheckable(True)
                action.setData(column.name)
                action.setToolTip(column.meaning)
                action.triggered.connect(lambda _=False: self._on_columns())
        self._columns.setToolTipsVisible(True)
        self._show_columns()

    def _lay_out(self) -> None:
        words = {
            "side": SIDE_WORDS,
            "status": tuple(str(status) for status in STATUSES),
            "class": (),
            "cause": tuple(str(cause) for cause in CAUSES),
            "verdict": ("", *VERDICT_WORDS.values()),
        }
        for name, choices in words.items():
            menu = FilterMenu(name, choices)
            menu.changed.connect(self._on_filter)
            self._menus[name] = menu
        failures = ToolButton("Failures", "List only the failures: FN, FP and misclassified.")
        failures.pushed.connect(lambda: self.set_filter(_FAILURES_ONLY))
        unreviewed = ToolButton(
            "Unreviewed failures", "List only the failures without a verdict of yours."
        )
        unreviewed.pushed.connect(lambda: self.set_filter(_UNREVIEWED_ONLY))
        everything = ToolButton("All objects", "Remove the filters and put the worst first.")
        everything.pushed.connect(self._show_all)
        columns = ToolButton("Columns", "Which columns to show.")
        columns.setMenu(self._columns)
        opens_menu(columns)
        self.behind.pushed.connect(lambda: self.set_filter(ObjectFilter()))
        self.behind.hide()
        of_columns = self._menus.values()
        self.filters = MenuButton(
            FILTER,
            "Which objects to list, in the table and for N.",
            *(everything, failures, unreviewed, None),
            *of_columns,
        )
        more = MenuButton(
            "More", "What else can be shown, and saved.", self.others, columns, self.export
        )
        lay_out(
            self,
            FlowBar(self.filters, self.behind, self._count, more),
            self.hint,
            Grow(self.view),
            margins=PANEL_MARGINS,
        )

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Stay as high as buttons, hint and counts need at this width, so that none overlap."""
        super().resizeEvent(event)
        self._fit_height()

    def event(self, event: QEvent | None) -> bool:
        """Follow other letters too: buttons then need more lines."""
        is_done = super().event(event)
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self._fit_height()
        return is_done

    def set_in_sight(self, in_sight: bool) -> None:
        """Need no height behind another tab, or the panels in sight would lose it."""
        self._is_in_sight = in_sight
        self._fit_height()

    def _fit_height(self) -> None:
        if not self._is_in_sight:
            self.setMinimumHeight(1)  # 0 stands for the height that the layout needs
            return
        layout, view = self.layout(), self.view
        rows = _LEAST_ROWS * view.row_height + 2 * view.frameWidth()
        view.setMinimumHeight(view.heading.sizeHint().height() + rows)
        if layout is not None:
            self.setMinimumHeight(layout.minimumHeightForWidth(self.width()))

    def _show_all(self) -> None:
        self._clear_sort_indicator()
        self.model.sort(-1)
        self.set_filter(ObjectFilter())

    def _clear_sort_indicator(self) -> None:
        with QSignalBlocker(self.view.heading):  # the table is sorted below
            self.view.heading.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self._show_count()
        viewport_of(self.view.heading).update()

    def _show_columns(self) -> None:
        """Show the columns that are wanted; micrometres and scores only where known."""
        unknown_names = {
            *(() if self._with_um else ("hausdorff_um",)),
            *(() if self._with_scores else ("score",)),
        }
        for number, column in enumerate(COLUMNS):
            unknown = column.name in unknown_names
            self.view.setColumnHidden(number, unknown or column.name in self._hidden)
        for action in self._columns.actions():
            action.setChecked(action.data() not in self._hidden)
            # An object without its id cannot be distinguished from another.
            action.setEnabled(action.data() != "id")
        self.view.fit_columns()

    def _on_columns(self) -> None:
        self.hide_columns([a.data() for a in self._columns.actions() if not a.isChecked()])
        self.columns_chosen.emit(self._hidden)

    def _on_listed(self) -> None:
        self.filters.setText(filter_text(self.model.filter.words))
        title = self.model.filter.title
        words = self.behind.fontMetrics().elidedText(
            f"✕ {title}", Qt.TextElideMode.ElideMiddle, LONGEST_TITLE_PX
        )
        self.behind.setText(shown(words))
        self.behind.setToolTip(shown(f"Filtered: {title}. Click to show all objects."))
        self.behind.setVisible(bool(title))
        self.listed_changed.emit()

    def _reset(self, change: Callable[[], object]) -> None:
        """Change the model without taking the lost selection for a choice of the user."""
        selected = self.selected()
        with self.view.quiet:
            change()
        if selected is not None and self._is_there(*selected):
            self.select(selected)
        self._show_count()
        listed, total = self.model.rowCount(), len(self.model.rows)
        self.hint.setText(self._empty if not total else ALL_HIDDEN)
        self.hint.setVisible(not listed)
        self._fit_height()

    def _show_count(self) -> None:
        listed, total = self.model.rowCount(), len(self.model.rows)
        self._count.setText(
            f"{styles.count_text(listed)} of {styles.count_text(total)} objects"
            + (" · worst first" if self.view.sorted_by < 0 else "")
        )

    def _is_there(self, side: Side, row: int) -> bool:
        reference = self.model.rows.n_reference
        count = reference if side is Side.REFERENCE else len(self.model.rows) - reference
        return row < count

    def _on_row(self) -> None:
        selected = self.selected()
        if selected is not None and not self.view.quiet:
            self.object_selected.emit(*selected)

    def _on_filter(self) -> None:
        before = self.model.filter
        wanted = replace(
            before,
            sides=self._menus["side"].checked(),
            statuses=self._menus["status"].checked(),
            classes=self._menus["class"].checked(),
            causes=self._menus["cause"].checked(),
            verdicts=self._menus["verdict"].checked(),
            title="" if before.pairs is None else before.title,
        )
        self._filter_by(wanted)

    def _filter_by(self, wanted: ObjectFilter) -> None:
        self._reset(lambda: self.model.set_filter(wanted))
        self.filter_changed.emit(wanted)


_FAILURES_ONLY = ObjectFilter(statuses=frozenset(str(status) for status in styles.FAILURES))
_UNREVIEWED_ONLY = replace(_FAILURES_ONLY, verdicts=frozenset({""}))
