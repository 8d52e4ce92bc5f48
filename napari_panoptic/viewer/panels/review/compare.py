"""The dialog that compares two reviewers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.common.text import counted
from napari_panoptic.display.glossary import KAPPA_MEANING, VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.display.styles import UNDEFINED, count_text, ratio_text
from napari_panoptic.review.identity import reviewer_name
from napari_panoptic.review.verdicts import AgreementItem, ReviewerAgreement, ReviewRecord
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.layouts import FlowBar, row_of
from napari_panoptic.viewer.kit.shown import WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import PushButton, button_box

TOO_FEW = (
    "Two reviewers are needed, and only one name has verdicts so far. Let a second person open "
    "the same cohort, enter their own name in the review panel and judge the same objects."
)
BLIND = "Comparing shows you the other's verdicts. Do it when both have finished."
DECIDE = "Go through the disagreements and give the deciding verdicts."
THIRD_NEEDED = "A third reviewer decides: enter a name that is neither of the two."
NONE_SHARED = "There is no object yet that both have judged."


_LIST_HEADINGS = ("Decision", "Region", "Team", "Notes")


class CompareDialog(QDialog):
    """Two reviewers' agreement, and the objects on which they differ.

    Parameters
    ----------
    parent
        The window that it belongs to.
    """

    record_chosen = Signal(ReviewRecord)
    adjudication_wanted = Signal(ReviewerAgreement)
    export_wanted = Signal(ReviewerAgreement)
    third_named = Signal(str)  # before `adjudication_wanted`

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Compare reviewers")
        self._own = ""
        self._compare: Callable[[str, str], ReviewerAgreement | None] = lambda _a, _b: None
        self._shown: ReviewerAgreement | None = None
        self.first, self.second = QComboBox(), QComboBox()
        self.go, self.decide = PushButton("Compare"), PushButton("Decide disagreements")
        self.export = PushButton(
            "Export…", "Write the verdicts of both, the decisions and kappa as CSV."
        )
        self.intro, self._kappa = WrappedLabel(BLIND), WrappedLabel()
        self._kappa.setToolTip(KAPPA_MEANING)
        self._table, self.list = FigureTable(), QTreeWidget()
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setToolTip("Objects on which the two differ. Double click or Enter goes there.")
        self.third = QLineEdit()
        self.third.setPlaceholderText("third reviewer")
        self.third.setToolTip("Name of the third reviewer, who decides.")
        self.third.textChanged.connect(self._show_third)
        self._actions = FlowBar(self.third, self.decide, self.export)
        self.list.itemActivated.connect(self._on_item)
        self.go.pushed.connect(self._on_compare)
        self.decide.pushed.connect(self._on_decide)
        self.export.pushed.connect(self._on_export)
        buttons = button_box(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.intro)
        layout.addLayout(row_of(self.first, "and", self.second, self.go, None))
        for widget in (self._kappa, self._table, self.list, self._actions):
            layout.addWidget(widget)
        layout.setStretchFactor(self.list, 1)
        layout.addStretch(0)
        layout.addWidget(buttons)
        self.resize(680, 480)
        self._clear()

    def text(self) -> str:
        """Return the text about the agreement."""
        return self._kappa.text()

    def lines(self) -> list[list[str]]:
        """Return the disagreements listed."""
        items = (self.list.topLevelItem(row) for row in range(self.list.topLevelItemCount()))
        columns = range(self.list.columnCount())
        return [[item.text(column) for column in columns] for item in items if item is not None]

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
        self._compare, self._own = compare, own
        for menu in (self.first, self.second):
            menu.clear()
            for name in reviewers:
                menu.addItem(shown(name), name)
        self.first.setCurrentIndex(max(0, self.first.findData(own)))
        others = [name for name in reviewers if name != self.first.currentData()]
        self.second.setCurrentIndex(self.second.findData(others[0]) if others else 0)
        self.go.setEnabled(bool(others))
        self.intro.setText(BLIND if others else TOO_FEW)
        self._clear()

    def show_agreement(self, compared: ReviewerAgreement) -> None:
        """Show kappa, the table of verdicts and the disagreements."""
        self._shown = compared
        self._kappa.setText(agreement_text(compared))
        self._kappa.show()
        agreement = compared.agreement
        header = [Cell(f"{compared.first} ↓  {compared.second} →", "Objects by the two verdicts.")]
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
        names = ("Object", shown(compared.first), shown(compared.second))
        self.list.setHeaderLabels([*names, *_LIST_HEADINGS])
        self.list.clear()
        for number, disagreement in enumerate(compared.disagreements):
            item = QTreeWidgetItem(_disagreement_texts(disagreement))
            item.setData(0, Qt.ItemDataRole.UserRole, number)
            self.list.addTopLevelItem(item)
        for column in range(self.list.columnCount()):
            self.list.resizeColumnToContents(column)
        self.list.setVisible(bool(compared.disagreements))
        self.export.setEnabled(bool(compared.items))
        self.third.setHidden(self._is_third(self._own))
        self._show_third()
        self._actions.show()

    def _is_third(self, name: str) -> bool:
        found = self._shown
        return found is not None and name not in ("", found.first, found.second)

    @property
    def _decider(self) -> str:
        """The name of the reviewer who would decide: the own one, else the one entered."""
        return self._own if self._is_third(self._own) else reviewer_name(self.third.text())

    def _show_third(self, _text: str = "") -> None:
        """Offer to decide only to a third reviewer."""
        is_third = self._is_third(self._decider)
        has_some = self._shown is not None and bool(self._shown.disagreements)
        self.decide.setEnabled(is_third and has_some)
        self.decide.setToolTip(DECIDE if is_third else THIRD_NEEDED)

    def _clear(self) -> None:
        self._shown = None
        self.third.clear()
        self.list.clear()
        for widget in (self._kappa, self._table, self.list, self._actions):
            widget.hide()

    def _on_compare(self) -> None:
        found = self._compare(self.first.currentData(), self.second.currentData())
        if found is not None:
            self.show_agreement(found)

    def _on_item(self, item: QTreeWidgetItem, _column: int) -> None:
        if self._shown is not None:
            pair = self._shown.disagreements[item.data(0, Qt.ItemDataRole.UserRole)]
            self.record_chosen.emit(pair.first)

    def _on_decide(self) -> None:
        if self._shown is not None:
            self.close()
            self.third_named.emit(self._decider)
            self.adjudication_wanted.emit(self._shown)

    def _on_export(self) -> None:
        if self._shown is not None:
            self.export_wanted.emit(self._shown)


def _disagreement_texts(item: AgreementItem) -> list[str]:
    first, second, decision = item.first, item.second, item.decision
    given = (first, second) if decision is None else (first, second, decision)
    return [
        shown(f"{first.side} {first.object_id} · {first.class_name}"),
        VERDICT_WORDS[first.verdict],
        VERDICT_WORDS[second.verdict],
        "" if decision is None else VERDICT_WORDS[decision.verdict],
        shown(first.region),
        shown(first.team),
        shown(" / ".join(record.note for record in given if record.note)),
    ]


def agreement_text(found: ReviewerAgreement) -> str:
    """Describe how far two reviewers agree."""
    agreement = found.agreement
    if not agreement.n:
        return NONE_SHARED
    objects = counted(agreement.n, "object", write=count_text)
    same = agreement.n - len(found.disagreements)
    start = f"Both judged {objects}, {count_text(same)} of them alike. Cohen's κ = "
    if math.isnan(agreement.kappa):
        return f"{start}{UNDEFINED}: undefined if both always give the same verdict."
    low, high = (ratio_text(value) for value in (agreement.low, agreement.high))
    return f"{start}{ratio_text(agreement.kappa)} (95 % interval {low} to {high})."


def _verdict_cell(name: str) -> Cell:
    verdict = Verdict(name)
    return Cell(VERDICT_WORDS[verdict], VERDICT_MEANINGS[verdict])
