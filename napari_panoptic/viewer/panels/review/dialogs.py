"""Dialogs of the review: the history of an object, and two reviewers compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.nuclei.display.glossary import KAPPA_MEANING, VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.nuclei.display.styles import UNDEFINED, count_text, ratio_text
from napari_panoptic.nuclei.values.vocabulary import Verdict
from napari_panoptic.review.verdicts import HistoryEntry, ReviewerAgreement, ReviewRecord
from napari_panoptic.viewer.kit.shown import PlainLabel, shown
from napari_panoptic.viewer.kit.widgets import Cell, FigureTable

NO_HISTORY = "You have given no verdict on this object yet."
TOO_FEW = (
    "Two reviewers are needed, and only one name has verdicts so far. Let a second person open "
    "the same cohort, enter their own name in the review panel and judge the same objects."
)
BLIND = "Comparing shows you the other's verdicts. Do it when both have finished."
NONE_SHARED = "There is no object yet that both have judged."


class HistoryDialog(QDialog):
    """Every verdict that a reviewer ever gave on one object."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("History of verdicts")
        self._intro = PlainLabel()
        self._intro.setWordWrap(True)
        self._list = _list(("When", "Verdict", "Tag", "Note", "Outcome"))
        _lay_out(self, self._intro, self._list)
        self.resize(640, 260)

    def lines(self) -> list[list[str]]:
        """Return the lines listed."""
        return _texts(self._list)

    def intro(self) -> str:
        """Return the sentence above the list."""
        return self._intro.text()

    def show_history(self, title: str, entries: Sequence[HistoryEntry]) -> None:
        """List the verdicts on an object, oldest first."""
        self._intro.setText(f"{title}. {'' if entries else NO_HISTORY}".strip())
        self._list.clear()
        for entry in entries:
            record = entry.record
            state = "stands" if entry.standing else "replaced"
            if entry.withdrawn_at is not None:
                state = f"undone at {entry.withdrawn_at.astimezone():%H:%M:%S}"
            texts = [
                f"{record.given_at.astimezone():%Y-%m-%d %H:%M:%S}",
                VERDICT_WORDS[record.verdict],
                shown(record.tag),
                shown(record.note),
                state,
            ]
            self._list.addTopLevelItem(QTreeWidgetItem(texts))
        _fit(self._list)


class CompareDialog(QDialog):
    """Two reviewers' agreement, and the objects on which they differ.

    Parameters
    ----------
    parent
        The window that it belongs to.
    """

    record_chosen = Signal(ReviewRecord)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Compare reviewers")
        self._compare: Callable[[str, str], ReviewerAgreement | None] = lambda _a, _b: None
        self._shown: ReviewerAgreement | None = None
        self.first, self.second = QComboBox(), QComboBox()
        self.go = QPushButton("compare")
        self._intro, self._kappa = PlainLabel(BLIND), PlainLabel()
        self._intro.setWordWrap(True)
        self._kappa.setWordWrap(True)
        self._kappa.setToolTip(KAPPA_MEANING)
        self._table = FigureTable()
        self.list = _list(("Region", "Team", "Object", "", "", "Notes"))
        self.list.setToolTip("Objects on which the two differ. Double click or Enter goes there.")
        self.list.itemActivated.connect(self._on_item)
        self.go.clicked.connect(lambda _=False: self._on_compare())
        row = QHBoxLayout()
        for widget in (self.first, PlainLabel("and"), self.second, self.go):
            row.addWidget(widget)
        row.addStretch(1)
        head = QWidget()
        head.setLayout(row)
        row.setContentsMargins(0, 0, 0, 0)
        _lay_out(self, self._intro, head, self._kappa, self._table, self.list)
        self.resize(680, 480)
        self._clear()

    def text(self) -> str:
        """Return the text about the agreement."""
        return self._kappa.text()

    def intro(self) -> str:
        """Return the sentence above the menus."""
        return self._intro.text()

    def lines(self) -> list[list[str]]:
        """Return the disagreements listed."""
        return _texts(self.list)

    def offer(
        self,
        reviewers: Sequence[str],
        own: str,
        compare: Callable[[str, str], ReviewerAgreement | None],
    ) -> None:
        """Offer the reviewers of a file; nothing is shown before it is asked for.

        Parameters
        ----------
        reviewers
            Everybody with a verdict.
        own
            Who asks.
        compare
            Compares two of them; None if that failed, which was reported.
        """
        self._compare = compare
        for menu in (self.first, self.second):
            menu.clear()
            for name in reviewers:
                menu.addItem(shown(name), name)
        self.first.setCurrentIndex(max(0, self.first.findData(own)))
        others = [name for name in reviewers if name != self.first.currentData()]
        self.second.setCurrentIndex(self.second.findData(others[0]) if others else 0)
        self.go.setEnabled(bool(others))
        self._intro.setText(BLIND if others else TOO_FEW)
        self._clear()

    def show_agreement(self, found: ReviewerAgreement) -> None:
        """Show kappa, the table of verdicts and the disagreements."""
        self._shown = found
        self._kappa.setText(agreement_text(found))
        self._kappa.show()
        agreement = found.agreement
        header = [Cell(f"{found.first} ↓  {found.second} →", "Objects by the two verdicts.")]
        header += [_verdict_cell(name) for name in agreement.categories]
        total = max(agreement.n, 1)
        rows = [
            [
                _verdict_cell(name),
                *(
                    Cell(count_text(int(n)), shade=float(n) / total, bold=i == j)
                    for j, n in enumerate(agreement.table[i])
                ),
            ]
            for i, name in enumerate(agreement.categories)
        ]
        self._table.fill(header, rows)
        self._table.setVisible(bool(rows))
        self.list.setHeaderLabels(
            ["Region", "Team", "Object", shown(found.first), shown(found.second), "Notes"]
        )
        self.list.clear()
        for first, second in found.disagreements:
            notes = " / ".join(text for text in (first.note, second.note) if text)
            item = QTreeWidgetItem(
                [
                    shown(first.region),
                    shown(first.team),
                    shown(f"{first.side} {first.object_id} · {first.class_name}"),
                    VERDICT_WORDS[first.verdict],
                    VERDICT_WORDS[second.verdict],
                    shown(notes),
                ]
            )
            item.setData(0, Qt.ItemDataRole.UserRole, self.list.topLevelItemCount())
            self.list.addTopLevelItem(item)
        self.list.setVisible(bool(found.disagreements))
        _fit(self.list)

    def _clear(self) -> None:
        self._shown = None
        self.list.clear()
        for widget in (self._kappa, self._table, self.list):
            widget.hide()

    def _on_compare(self) -> None:
        found = self._compare(self.first.currentData(), self.second.currentData())
        if found is not None:
            self.show_agreement(found)

    def _on_item(self, item: QTreeWidgetItem, _column: int) -> None:
        if self._shown is not None:
            pair = self._shown.disagreements[item.data(0, Qt.ItemDataRole.UserRole)]
            self.record_chosen.emit(pair[0])


def agreement_text(found: ReviewerAgreement) -> str:
    """Describe how far two reviewers agree."""
    agreement = found.agreement
    if not agreement.n:
        return NONE_SHARED
    objects = f"{count_text(agreement.n)} object{'' if agreement.n == 1 else 's'}"
    same = agreement.n - len(found.disagreements)
    start = f"Both judged {objects}, {count_text(same)} of them alike. Cohen's κ = "
    if math.isnan(agreement.kappa):
        return f"{start}{UNDEFINED}: undefined if both always give the same verdict."
    low, high = (signed_ratio(value) for value in (agreement.low, agreement.high))
    return f"{start}{signed_ratio(agreement.kappa)} (95 % interval {low} to {high})."


def signed_ratio(value: float) -> str:
    """Write a ratio that can be negative."""
    return ratio_text(value).replace("-", "−")


def _verdict_cell(name: str) -> Cell:
    verdict = Verdict(name)
    return Cell(VERDICT_WORDS[verdict], VERDICT_MEANINGS[verdict])


def _list(header: Sequence[str]) -> QTreeWidget:
    tree = QTreeWidget()
    tree.setHeaderLabels(list(header))
    tree.setRootIsDecorated(False)
    tree.setUniformRowHeights(True)
    return tree


def _lay_out(dialog: QDialog, *widgets: QWidget) -> None:
    layout = QVBoxLayout(dialog)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, QTreeWidget) else 0)
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.close)
    layout.addStretch(0)
    layout.addWidget(buttons)


def _fit(tree: QTreeWidget) -> None:
    for column in range(tree.columnCount()):
        tree.resizeColumnToContents(column)


def _texts(tree: QTreeWidget) -> list[list[str]]:
    return [
        [item.text(column) for column in range(tree.columnCount())]
        for row in range(tree.topLevelItemCount())
        if (item := tree.topLevelItem(row)) is not None
    ]
