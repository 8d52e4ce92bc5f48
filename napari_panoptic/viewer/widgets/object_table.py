"""The table of all objects: sorted, filtered, and linked to the image both ways."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import (
    QAbstractTableModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    Qt,
)
from qtpy.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QPushButton,
    QSizePolicy,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.evaluation.outcomes import Outcomes
from napari_panoptic.evaluation.vocabulary import CAUSES, STATUS_CODE, STATUSES, Cause, Side, Status
from napari_panoptic.viewer import styles
from napari_panoptic.viewer.glossary import VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.viewer.listed import Listed, Others
from napari_panoptic.viewer.object_rows import (
    COLUMNS,
    SIDE_WORDS,
    SIDES,
    GivenVerdicts,
    Kind,
    ObjectFilter,
    ObjectRows,
    WorstFirst,
)
from napari_panoptic.viewer.shown import PlainLabel, shown
from napari_panoptic.viewer.widgets.parts import is_desk_key, opens_menu, qcolor, viewport_of

_SIDE_TEXTS = dict(zip(SIDE_WORDS, (str(side) for side in SIDES), strict=True))
_NO_CAUSE, _NO_VERDICT = "no cause", "none yet"
_ROW_HEIGHT = 20
_NARROWEST_BUTTON = 40
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
EMPTY = (
    "No objects to list. Without a cohort: open one. Otherwise this region has no prediction of "
    "this team, or no annotation: choose another region or team."
)
ALL_HIDDEN = "No object passes the filters. Press “all” to see every object again."


class ObjectTableModel(QAbstractTableModel):
    """Every object in the order and choice that somebody asked for.

    Columns stay where they are; only an array of row numbers is sorted and
    filtered.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = ObjectRows.empty()
        self._all_sorted: NDArray[np.intp] = np.zeros(0, np.intp)
        self._order: NDArray[np.intp] = np.zeros(0, np.intp)
        self._filter = ObjectFilter()
        self._sort: tuple[str, bool] | None = None
        self._worst = WorstFirst.IOU

    @property
    def rows(self) -> ObjectRows:
        """All objects, in their own order."""
        return self._rows

    @property
    def order(self) -> NDArray[np.intp]:
        """The object row of each table row."""
        return self._order

    @property
    def filter(self) -> ObjectFilter:
        """Which objects are listed."""
        return self._filter

    @property
    def worst(self) -> WorstFirst:
        """What makes one failure worse than another."""
        return self._worst

    def set_rows(self, rows: ObjectRows) -> None:
        """Show other objects, sorted and filtered as before."""
        self.beginResetModel()
        self._rows = rows
        self._all_sorted = self._sorted()
        self._order = self._filtered()
        self.endResetModel()

    @property
    def depends_on_verdicts(self) -> bool:
        """Whether another verdict can change which objects are listed, or their order."""
        by_verdict = self._sort is not None and self._sort[0] == "verdict"
        return by_verdict or self._filter.verdicts is not None

    def repaint_verdicts(self, rows: ObjectRows) -> None:
        """Take rows that differ in their verdicts only, which changes neither list nor order."""
        self._rows = rows
        if len(self._order):
            column = _column("verdict")
            self.dataChanged.emit(self.index(0, column), self.index(len(self._order) - 1, column))

    def set_filter(self, wanted: ObjectFilter) -> None:
        """List only some objects."""
        self.beginResetModel()
        self._filter = wanted
        self._order = self._filtered()
        self.endResetModel()

    def put_worst_first(self, by: WorstFirst) -> None:
        """Put failures first, the worst of them at the top."""
        self._worst = by
        self.sort_by(None)

    def sort_by(self, name: str | None, *, descending: bool = False) -> None:
        """Sort by a column; None puts the worst first."""
        self._sort = None if name is None else (name, descending)
        # The rows stay, only their order changes: what is selected stays so.
        self.layoutAboutToBeChanged.emit()
        before, kept = self._order, self.persistentIndexList()
        self._all_sorted = self._sorted()
        self._order = self._filtered()
        places = np.zeros(len(self._rows), np.intp)
        places[self._order] = np.arange(len(self._order))
        moved = [self.index(int(places[before[at.row()]]), at.column()) for at in kept]
        self.changePersistentIndexList(kept, moved)
        self.layoutChanged.emit()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort as a click on a header asks for; column -1 puts the worst first."""
        name = COLUMNS[column].name if column >= 0 else None
        self.sort_by(name, descending=order == Qt.SortOrder.DescendingOrder)

    def table_row(self, side: Side, object_row: int) -> int | None:
        """Find an object in the table; None where a filter hides it."""
        found = np.flatnonzero(self._order == self._rows.row_of(side, object_row))
        return int(found[0]) if len(found) else None

    def object_at(self, table_row: int) -> tuple[Side, int]:
        """Give side and row of the object in a table row."""
        return self._rows.object_of(int(self._order[table_row]))

    def failure_after(self, table_row: int | None, step: int) -> int | None:
        """Find the table row of the next (1) or previous (-1) failure, round and round.

        Parameters
        ----------
        table_row
            Where to start; None starts at the first or last one.
        step
            1 or -1.
        """
        places = self._failure_places()
        if not len(places):
            return None
        if table_row is None:
            return int(places[0] if step > 0 else places[-1])
        if step > 0:
            return int(places[np.searchsorted(places, table_row, side="right") % len(places)])
        return int(places[np.searchsorted(places, table_row, side="left") - 1])

    def failures(self) -> NDArray[np.intp]:
        """Give the object rows of the listed failures, in the order of the table.

        They are those that `failure_after` goes through.
        """
        found: NDArray[np.intp] = self._order[self._failure_places()]
        return found

    def _failure_places(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._marks()[self._order])

    def _marks(self) -> NDArray[np.bool_]:
        """Mark the failures; a misclassified pair only once where both sides are listed."""
        rows = self._rows
        marks = rows.failures()
        misclassified = rows.values["status"] == STATUS_CODE[Status.MISCLASSIFIED]
        on_reference = np.arange(len(rows)) < rows.n_reference
        if (misclassified & on_reference)[self._order].any():
            marks &= on_reference | ~misclassified
        return marks

    def rowCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the listed objects."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Give text, colour swatch, alignment or explanation of a cell."""
        if not index.isValid():
            return None
        column = COLUMNS[index.column()]
        row = int(self._order[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(self._rows.text(row, column))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind is Kind.WORD else _RIGHT
        if role == Qt.ItemDataRole.DecorationRole and column.name == "status":
            status = STATUSES[int(self._rows.values["status"][row])]
            return qcolor(styles.STATUS_COLOURS[status])
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._explanation(row, column.name)
        return None

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Give title and meaning of a column."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section].meaning
        return None

    def _explanation(self, row: int, column: str) -> str | None:
        if column == "status":
            return styles.STATUS_MEANINGS[STATUSES[int(self._rows.values["status"][row])]]
        if column == "cause":
            return styles.CAUSE_MEANINGS[CAUSES[int(self._rows.values["cause"][row])]] or None
        return None

    def _sorted(self) -> NDArray[np.intp]:
        """Sort all rows, also those that the filter holds back: filtering is then no sorting."""
        if self._sort is None:
            return self._rows.worst_first(self._worst)
        return self._rows.ordered_by(self._sort[0], descending=self._sort[1])

    def _filtered(self) -> NDArray[np.intp]:
        if self._filter.is_open:
            return self._all_sorted
        chosen: NDArray[np.intp] = self._all_sorted[
            self._rows.let_through(self._filter)[self._all_sorted]
        ]
        return chosen


class _View(QTableView):
    """A table view that hands the keys of the desk on."""

    centre_pressed = Signal()
    copy_pressed = Signal()

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
        """Centre on Space; letters go to the desk instead of searching the table."""
        if event is not None and event.key() == Qt.Key.Key_Space:
            self.centre_pressed.emit()
        elif event is not None and event.matches(QKeySequence.StandardKey.Copy):
            self.copy_pressed.emit()
        elif event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)


class ObjectTable(QWidget):
    """The object table with its filters.

    Signals tell the side and row of an object that somebody chose here; setting
    the selection from outside emits nothing.
    """

    object_selected = Signal(Side, int)
    centre_wanted = Signal(Side, int)
    listed_changed = Signal()  # other objects, or the same in another order
    others_chosen = Signal(Others)
    columns_chosen = Signal(frozenset)  # the names of the columns that are hidden

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ObjectTableModel()
        self.view = _View()
        self.worst = ChoiceMenu(
            "first",
            "What the table, and N and Shift+N, take for the worst.",
            list(WorstFirst),
        )
        self.others = ChoiceMenu(
            "image", "What the image shows beside the listed objects.", list(Others)
        )
        self._behind = QToolButton()
        self._columns = QMenu(self)
        self._hidden: frozenset[str] = frozenset()
        self._outcomes: Outcomes | None = None
        self._with_um = False
        self._count = PlainLabel()
        self._empty = EMPTY
        self._hint = PlainLabel(EMPTY)
        self._hint.setWordWrap(True)
        self._menus: dict[str, FilterMenu] = {}
        self._verdicts: Mapping[Side, GivenVerdicts] = {}
        self._is_synchronising = False
        self._set_up_view()
        self._lay_out()
        self.show_outcomes(None)

    def show_outcomes(self, outcomes: Outcomes | None) -> None:
        """List the objects of a label pair; a hint where there is none.

        The outcomes that are listed already change nothing.
        """
        if outcomes is not None and outcomes is self._outcomes:
            return
        rows = ObjectRows.empty() if outcomes is None else ObjectRows.prepared(outcomes)
        rows = rows.with_verdicts(self._verdicts)
        self._outcomes = outcomes
        classes = () if outcomes is None else outcomes.class_names
        self._menus["class"].set_words(classes)
        self._with_um = outcomes is not None and outcomes.mpp is not None
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

    def set_filter(self, wanted: ObjectFilter) -> None:
        """List only some objects."""
        for name, words in (
            ("side", wanted.sides),
            ("status", wanted.statuses),
            ("class", wanted.classes),
            ("cause", wanted.causes),
            ("verdict", wanted.verdicts),
        ):
            self._menus[name].check_only(words)
        self._reset(lambda: self.model.set_filter(wanted))

    def select(self, chosen: tuple[Side, int] | None) -> None:
        """Select an object and scroll to it; an object that a filter hides deselects."""
        row = None if chosen is None else self.model.table_row(*chosen)
        if row is not None and row == self.view.currentIndex().row():
            # Chosen here: further rows may be selected with it.
            self.view.scrollTo(self.view.currentIndex())
            return
        self._is_synchronising = True
        try:
            if row is None:
                self.view.clearSelection()
                self.view.setCurrentIndex(QModelIndex())
            else:
                index = self.model.index(row, max(self.view.currentIndex().column(), 0))
                flags = QItemSelectionModel.SelectionFlag
                _selection_model(self.view).setCurrentIndex(
                    index, flags.ClearAndSelect | flags.Rows
                )
                self.view.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)
        finally:
            self._is_synchronising = False

    def menu(self, name: str) -> FilterMenu:
        """Give the filter menu of a column: side, status, class or cause."""
        return self._menus[name]

    def count_text(self) -> str:
        """Give what is said about how many objects are listed."""
        return self._count.text()

    def say_when_empty(self, words: str = EMPTY) -> None:
        """Say why there are no objects, wherever there are none."""
        self._empty = words
        if not len(self.model.rows):
            self._hint.setText(words)

    def hint_text(self) -> str:
        """Give the hint; empty where objects are listed."""
        return "" if self._hint.isHidden() else self._hint.text()

    def selected(self) -> tuple[Side, int] | None:
        """Give side and row of the selected object."""
        index = self.view.currentIndex()
        return self.model.object_at(index.row()) if index.isValid() else None

    def step_failure(self, step: int, selected: tuple[Side, int] | None) -> None:
        """Choose the next (1) or previous (-1) failure in the order of the table."""
        start = None if selected is None else self.model.table_row(*selected)
        row = self.model.failure_after(start, step)
        if row is not None:
            self.object_selected.emit(*self.model.object_at(row))

    @property
    def outcomes(self) -> Outcomes | None:
        """What the listed objects come from."""
        return self._outcomes

    def standing_out(self) -> Listed | None:
        """Give the objects that stand out on the image; None where all look alike."""
        others = Others(self.others.choice)
        if others is Others.SHOWN or self._outcomes is None or self.model.filter.is_open:
            return None
        return Listed.from_order(self.model.rows, self.model.order, self._outcomes, others)

    def put_worst_first(self, by: WorstFirst) -> None:
        """Put failures first, the worst of them at the top."""
        self._clear_sort_indicator()
        self.worst.show_choice(by)
        self.model.put_worst_first(by)

    def selected_rows(self) -> list[int]:
        """Give the table rows that are selected, from the top."""
        chosen = _selection_model(self.view).selection()
        parts = [chosen[number] for number in range(len(chosen))]
        return sorted({row for part in parts for row in range(part.top(), part.bottom() + 1)})

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

    def behind_text(self) -> str:
        """Give what is said about the figure behind which the listed objects stand."""
        return "" if self._behind.isHidden() else self._behind.text()

    def _set_up_view(self) -> None:
        view = self.view
        view.setModel(self.model)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setShowGrid(False)
        view.setWordWrap(False)
        vertical, horizontal = view.verticalHeader(), view.horizontalHeader()
        if vertical is not None:
            vertical.setVisible(False)
            vertical.setDefaultSectionSize(_ROW_HEIGHT)
            vertical.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        if horizontal is not None:
            horizontal.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
            horizontal.setSortIndicatorClearable(True)
            horizontal.setMinimumSectionSize(24)
            horizontal.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            horizontal.customContextMenuRequested.connect(self._on_header_menu)
            horizontal.sortIndicatorChanged.connect(lambda _column, _order: self._show_count())
        for number, column in enumerate(COLUMNS):
            view.setColumnWidth(number, column.width)
        view.setSortingEnabled(True)
        _selection_model(view).currentRowChanged.connect(self._on_row)
        view.doubleClicked.connect(lambda _index: self._on_centre())
        view.centre_pressed.connect(self._on_centre)
        view.copy_pressed.connect(self.copy)
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
        bar = QHBoxLayout()
        bar.setSpacing(3)
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
            if name != "verdict":
                bar.addWidget(menu)
        failures, everything = QPushButton("failures"), QPushButton("all")
        unreviewed = QPushButton("unreviewed")
        unreviewed.setToolTip("List only the failures that have no verdict of yours yet.")
        unreviewed.clicked.connect(lambda _=False: self.set_filter(_UNREVIEWED_ONLY))
        failures.setToolTip("List only what somebody has to look at: FN, FP and misclassified.")
        everything.setToolTip("Remove the filters and put the worst first.")
        failures.clicked.connect(lambda _=False: self.set_filter(_FAILURES_ONLY))
        everything.clicked.connect(lambda _=False: self._show_all())
        for button in (failures, unreviewed, everything):
            _let_shrink(button)
        bar.addStretch(1)
        bar.addWidget(failures)
        bar.addWidget(unreviewed)
        bar.addWidget(everything)
        second = QHBoxLayout()
        second.setSpacing(3)
        columns = QToolButton()
        columns.setText("columns")
        columns.setToolTip("Which columns to show; also by a right click on the header.")
        columns.setMenu(self._columns)
        _let_shrink(columns)
        opens_menu(columns)
        second.addWidget(self.worst)
        second.addWidget(self.others)
        second.addWidget(self._menus["verdict"])
        second.addStretch(1)
        second.addWidget(columns)
        self.worst.chosen.connect(self.put_worst_first)
        self.others.chosen.connect(self.others_chosen.emit)
        self._behind.setToolTip("The objects behind this figure are listed; a click lists all.")
        self._behind.clicked.connect(lambda _=False: self.set_filter(ObjectFilter()))
        self._behind.hide()
        last = QHBoxLayout()
        last.addWidget(self._count, 1)
        last.addWidget(self._behind)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addLayout(bar)
        layout.addLayout(second)
        layout.addWidget(self._hint)
        layout.addWidget(self.view, 1)
        layout.addLayout(last)

    def _show_all(self) -> None:
        self._clear_sort_indicator()
        self.model.sort_by(None)
        self.set_filter(ObjectFilter())

    def _clear_sort_indicator(self) -> None:
        horizontal = self.view.horizontalHeader()
        if horizontal is not None:
            blocked = horizontal.blockSignals(True)  # the table is sorted by what comes next
            horizontal.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
            horizontal.blockSignals(blocked)
            self._show_count()
            viewport_of(horizontal).update()

    def _show_columns(self) -> None:
        """Show the columns that are wanted; micrometres only where they are known."""
        for number, column in enumerate(COLUMNS):
            unknown = column.name == "hausdorff_um" and not self._with_um
            self.view.setColumnHidden(number, unknown or column.name in self._hidden)
        for action in self._columns.actions():
            action.setChecked(action.data() not in self._hidden)
            # An object without its id cannot be told from another.
            action.setEnabled(action.data() != "id")

    def _on_columns(self) -> None:
        self.hide_columns([a.data() for a in self._columns.actions() if not a.isChecked()])
        self.columns_chosen.emit(self._hidden)

    def _on_header_menu(self, place: QPoint) -> None:
        horizontal = self.view.horizontalHeader()
        if horizontal is not None:
            self._columns.popup(horizontal.mapToGlobal(place))

    def _on_listed(self) -> None:
        title = self.model.filter.title
        self._behind.setText(f"✕ {title}")
        self._behind.setVisible(bool(title))
        self.listed_changed.emit()

    def _reset(self, change: Any) -> None:
        """Change the model without taking the lost selection for somebody's wish."""
        selected = self.selected()
        self._is_synchronising = True
        try:
            change()
        finally:
            self._is_synchronising = False
        if selected is not None and self._is_there(*selected):
            self.select(selected)
        self._show_count()
        listed, total = self.model.rowCount(), len(self.model.rows)
        self._hint.setText(self._empty if not total else ALL_HIDDEN)
        self._hint.setVisible(not listed)

    def _show_count(self) -> None:
        listed, total = self.model.rowCount(), len(self.model.rows)
        self._count.setText(
            f"{styles.count_text(listed)} of {styles.count_text(total)} objects"
            + (" · worst first" if _sorted_by(self.view) < 0 else "")
        )

    def _is_there(self, side: Side, row: int) -> bool:
        reference = self.model.rows.n_reference
        count = reference if side is Side.REFERENCE else len(self.model.rows) - reference
        return row < count

    def _on_row(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._is_synchronising:
            self.object_selected.emit(*self.model.object_at(current.row()))

    def _on_centre(self) -> None:
        selected = self.selected()
        if selected is not None:
            self.centre_wanted.emit(*selected)

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
        self._reset(lambda: self.model.set_filter(wanted))


class FilterMenu(QToolButton):
    """A button with a menu of words, each let through or not."""

    changed = Signal()

    def __init__(self, title: str, words: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._words: tuple[str, ...] = ()
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self.setMenu(self._menu)
        opens_menu(self)
        _let_shrink(self)
        self.setToolTip(f"Which {title} to list.")
        self.set_words(words)

    def set_words(self, words: Sequence[str]) -> None:
        """Offer other words, all let through; the same words stay as they are."""
        self._show_state()
        if tuple(words) == self._words:
            return
        self._words = tuple(words)
        self._menu.clear()
        for word in words:
            nothing = _NO_VERDICT if self._title == "verdict" else _NO_CAUSE
            action = self._menu.addAction(_SIDE_TEXTS.get(word, word) or nothing)
            if action is not None:
                action.setCheckable(True)
                action.setChecked(True)
                action.setData(word)
                action.setToolTip(_meaning(word))
                action.triggered.connect(lambda _=False: self._on_change())
        self._show_state()

    def checked(self) -> frozenset[str] | None:
        """Give the words that are let through; None for all."""
        chosen = frozenset(a.data() for a in self._menu.actions() if a.isChecked())
        return None if len(chosen) == len(self._words) else chosen

    def uncheck(self, word: str) -> None:
        """Stop letting a word through, as a click in the menu does."""
        for action in self._menu.actions():
            if action.data() == word and action.isChecked():
                action.trigger()

    def check_only(self, words: frozenset[str] | None) -> None:
        """Let only some words through; None for all."""
        for action in self._menu.actions():
            action.setChecked(words is None or action.data() in words)
        self._show_state()

    def _on_change(self) -> None:
        self._show_state()
        self.changed.emit()

    def _show_state(self) -> None:
        chosen = self.checked()
        self.setText(
            self._title if chosen is None or not self._words else f"{self._title} ({len(chosen)})"
        )


class ChoiceMenu(QToolButton):
    """A button with a menu of which one entry is chosen.

    Parameters
    ----------
    title
        What is chosen.
    meaning
        One sentence for the tooltip.
    choices
        The entries, the first chosen; each has a ``meaning``.
    """

    chosen = Signal(object)

    def __init__(self, title: str, meaning: str, choices: Sequence[WorstFirst | Others]) -> None:
        super().__init__()
        self._title = title
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self.setMenu(self._menu)
        opens_menu(self)
        _let_shrink(self)
        self.setToolTip(meaning)
        self._actions = {}
        for choice in choices:
            action = self._menu.addAction(str(choice))
            if action is not None:
                action.setCheckable(True)
                action.setToolTip(choice.meaning)
                action.triggered.connect(lambda _=False, c=choice: self._on_choice(c))
                self._actions[choice] = action
        self.show_choice(choices[0])

    @property
    def choice(self) -> WorstFirst | Others:
        """The entry that is chosen."""
        return next(choice for choice, action in self._actions.items() if action.isChecked())

    def choose(self, choice: WorstFirst | Others) -> None:
        """Choose an entry, as a click in the menu does."""
        self._actions[choice].trigger()

    def show_choice(self, choice: WorstFirst | Others) -> None:
        """Show what is chosen, and tell nobody."""
        for other, action in self._actions.items():
            action.setChecked(other is choice)
        self.setText(f"{self._title}: {choice.short}")

    def _on_choice(self, choice: WorstFirst | Others) -> None:
        self.show_choice(choice)
        self.chosen.emit(choice)


_FAILURES_ONLY = ObjectFilter(statuses=frozenset(str(status) for status in styles.FAILURES))
_UNREVIEWED_ONLY = replace(_FAILURES_ONLY, verdicts=frozenset({""}))


_VERDICT_TEXTS = {VERDICT_WORDS[verdict]: text for verdict, text in VERDICT_MEANINGS.items()}


def _let_shrink(button: QAbstractButton) -> None:
    """Let a button rather be cut than make a narrow window wider."""
    button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    button.setMinimumWidth(_NARROWEST_BUTTON)


def _meaning(word: str) -> str:
    if word in set(Status):
        return styles.STATUS_MEANINGS[Status(word)]
    if word in set(Cause):
        return styles.CAUSE_MEANINGS[Cause(word)]
    return _VERDICT_TEXTS.get(word, "")


def _column(name: str) -> int:
    return [column.name for column in COLUMNS].index(name)


def _sorted_by(view: QTableView) -> int:
    horizontal = view.horizontalHeader()
    return -1 if horizontal is None else horizontal.sortIndicatorSection()


def _selection_model(view: QTableView) -> QItemSelectionModel:
    selection = view.selectionModel()
    if selection is None:
        raise RuntimeError("a table view with a model always has a selection model")
    return selection
