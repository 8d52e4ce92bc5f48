"""Two ambiguous policies side by side: what flips, why, and what that does to PQ."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QWidget,
)

from napari_panoptic.display.glossary import SETTING_MEANINGS, SETTING_WORDS
from napari_panoptic.display.styles import (
    count_text,
    ratio_text,
    signed_count_text,
    signed_text,
)
from napari_panoptic.live.session import Selection
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar, ListPanel
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, shown
from napari_panoptic.viewer.panels.audit.audited import Audited, object_columns, spill_columns

if TYPE_CHECKING:
    import pandas as pd

EMPTY = (
    "Nothing to audit. Without a cohort: open one. Otherwise this region has no annotation, or "
    "no prediction of this team: choose another region or team."
)
NO_AREA = (
    "This region has no ambiguous area: every policy gives the same figures. Choose a region "
    "with a hatched area."
)
NOTHING = "No object of this kind here. Choose other policies, or another list."


class AuditList(StrEnum):
    """Which objects the table lists."""

    FLIPS = "flips"
    TOUCHING = "touching"
    SPILL = "spill"


_LISTED_MEANINGS: Mapping[AuditList, str] = {
    AuditList.FLIPS: "Objects whose status is not the same under both policies.",
    AuditList.TOUCHING: "All objects with a pixel in the ambiguous area, and their treatment.",
    AuditList.SPILL: (
        "Predictions that leak out of an ambiguous area, under the current policy: the "
        "remainder outside may count as an FP."
    ),
}


_PQ_COUNTS = (
    "As PQ counts: a misclassified object is an FP of the predicted class and an FN of the "
    "annotated one."
)


class AuditPanel(ListPanel):
    """Two menus of policies, what the choice changes, and the objects behind it."""

    policies_chosen = Signal()
    object_chosen = Signal(Side, int)
    marks_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.first, self.second = (_policy_menu(which) for which in ("first", "second"))
        self.effect = FigureTable()
        self.marked = QCheckBox("Mark")
        self._lists: dict[AuditList, QPushButton] = {}
        self.headline = RichLabel()
        self.headline.setWordWrap(True)
        self.sentence = RichLabel()
        self.sentence.setWordWrap(True)
        self._listed = AuditList.FLIPS
        self._audited: Audited | None = None
        self._empty = EMPTY
        self._shown: list[tuple[Side, int]] = []
        self._lay_out()
        self.show_audit(None)

    @property
    def policies(self) -> tuple[AmbiguousPolicy, AmbiguousPolicy]:
        """The two policies that are compared."""
        return self.first.choice, self.second.choice

    @property
    def listed(self) -> AuditList:
        """Which objects are listed."""
        return self._listed

    def button(self, listed: AuditList) -> QPushButton:
        """Return the button of a list."""
        return self._lists[listed]

    def listed_objects(self) -> list[tuple[Side, int]]:
        """Return side and row of the objects that are listed."""
        return [self._shown[row] for row in self.table.rows()]

    def set_policies(self, first: str, second: str) -> None:
        """Choose policies without telling."""
        for menu, policy in ((self.first, first), (self.second, second)):
            menu.show_choice(policy)

    def choose_list(self, listed: AuditList) -> None:
        """List other objects."""
        self._listed = listed
        for name, button in self._lists.items():
            with QSignalBlocker(button):
                button.setChecked(name is listed)
        self._fill()
        self.marks_changed.emit()

    def show_audit(self, audited: Audited | None, *, empty: str = EMPTY) -> None:
        """Show what two policies make of a region; a hint if there is nothing to audit."""
        self._audited, self._empty = audited, empty
        there = audited is not None
        for widget in (self.effect, self.headline, self.marked, *self._lists.values()):
            widget.setVisible(there)
        if audited is not None:
            self._show_headline(audited)
            self._fill_effect(audited)
            frame = audited.objects
            counts = {
                AuditList.FLIPS: int(frame["flips"].sum()),
                AuditList.TOUCHING: int((frame["ambiguous_px"] > 0).sum()),
                AuditList.SPILL: len(audited.spill),
            }
            for name, number in counts.items():
                self._lists[name].setText(f"{name.capitalize()} {count_text(number)}")
        self._fill()

    def show_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, where it is listed."""
        wanted = None if selection is None else (selection.side, selection.row)
        row = self._shown.index(wanted) if wanted in self._shown else None
        if row != self.table.selected():
            self.table.select(row)
        self._show_sentence(row)

    def _policy_words(self) -> tuple[str, str]:
        first, second = self.policies
        return SETTING_WORDS[first], SETTING_WORDS[second]

    def _show_headline(self, audited: Audited) -> None:
        audit, (first, second) = audited.audit, self._policy_words()
        before, after = audit.first.metrics.pq, audit.second.metrics.pq
        text = (
            f"<b>PQ {ratio_text(before)} → {ratio_text(after)} "
            f"({signed_text(audit.pq_difference)})</b> from “{first}” to “{second}”"
        )
        self.headline.set_rich(text)
        tooltip = (
            "PQ of the region under the first policy and under the second. The contributions in "
            "the list are leave-one-out: what the PQ would lose if only this change were undone."
        )
        if math.isnan(audit.pq_difference):
            tooltip += " Undefined: under one of them there are no objects."
        elif not math.isnan(audit.pq_unexplained):
            tooltip += (
                f" They leave {signed_text(audit.pq_unexplained)} unexplained, since PQ is a "
                "quotient."
            )
        self.headline.setToolTip(tooltip)

    def _fill_effect(self, audited: Audited) -> None:
        header = [
            Cell("Class", "Classes that change; the last line is the region."),
            Cell("ΔTP", "Change in TP from the first policy to the second."),
            Cell("ΔFP", f"Change in FP. {_PQ_COUNTS}"),
            Cell("ΔFN", f"Change in FN. {_PQ_COUNTS}"),
            Cell("PQ", "Panoptic quality under the second policy."),
            Cell("ΔPQ", "PQ under the second policy minus that under the first."),
        ]
        rows = []
        for record in audited.audit.effect.to_dict("records"):
            name = str(record["class"])
            if name != "mean" and not _differs(record):
                continue  # only what the choice of a policy changes
            cells = [Cell("region" if name == "mean" else name, bold=name == "mean")]
            for key in ("tp", "fp", "fn"):
                change = int(record[f"{key}_difference"])
                after = count_text(int(record[f"{key}_second"]))
                before = count_text(int(record[f"{key}_first"]))
                why = f"{before} under the first policy, {after} under the second."
                cells.append(Cell(signed_count_text(change), why, bold=bool(change)))
            for key, write in (("pq_second", ratio_text), ("pq_difference", signed_text)):
                value = float(record[key])
                why = "Undefined: no such object under one of the policies."
                cells.append(Cell(write(value), why if math.isnan(value) else ""))
            rows.append(cells)
        self.effect.fill(header, rows)

    def _fill(self) -> None:
        self.sentence.clear()
        audited = self._audited
        if audited is None:
            self._shown = []
            self.table.show_rows([])
        elif self._listed is AuditList.SPILL:
            self._shown = [(Side.PREDICTION, int(row)) for row in audited.spill["row"]]
            self.table.show_rows(spill_columns(audited.spill))
        else:
            frame = audited.objects
            chosen = (
                frame["flips"] if self._listed is AuditList.FLIPS else frame["ambiguous_px"] > 0
            )
            places = np.flatnonzero(chosen.to_numpy(bool))
            weight = -np.nan_to_num(np.abs(frame["pq_contribution"].to_numpy(float)[places]))
            places = places[np.argsort(weight, kind="stable")]
            part = frame.iloc[places]
            self._shown = [
                (Side(side), int(row))
                for side, row in zip(part["side"], audited.rows[places], strict=True)
            ]
            self.table.show_rows(object_columns(part, *self.policies))
        is_empty = not self._shown
        self.table.setVisible(not is_empty)
        self.hint.setVisible(is_empty)
        if audited is None:
            self.hint.setText(self._empty)
        else:
            self.hint.setText(NOTHING if audited.has_area else NO_AREA)

    def _show_sentence(self, row: int | None) -> None:
        audited = self._audited
        if audited is None or row is None:
            self.sentence.clear()
            return
        side, own_row = self._shown[row]
        reference = len(audited.evaluation.outcomes.reference)
        place = own_row if side is Side.REFERENCE else reference + own_row
        record = audited.objects.iloc[place]
        title = html.escape(shown(f"{side.value} {record['id']} · {record['class']}"))
        lines = [f"<b>{title}</b>"]
        for policy, which in zip(self._policy_words(), ("first", "second"), strict=True):
            reason = record[f"reason_{which}"] or "does not touch the ambiguous area"
            lines.append(f"{policy}: {_fate(record, which)} – {reason}")
        self.sentence.set_rich("<br>".join(lines))

    def _lay_out(self) -> None:
        layout = self._rows
        layout.addWidget(self._menus())
        layout.addWidget(self.headline)
        layout.addWidget(self.effect)
        layout.addWidget(self._switches())
        layout.addWidget(self.hint)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.sentence)
        layout.addStretch(0)
        self.table.row_chosen.connect(self._on_row)

    def _menus(self) -> FlowBar:
        for menu in (self.first, self.second):
            menu.chosen.connect(lambda _policy: self.policies_chosen.emit())
        return FlowBar(
            _beside(PlainLabel("Compare"), self.first), _beside(PlainLabel("with"), self.second)
        )

    def _switches(self) -> FlowBar:
        group = QButtonGroup(self)
        for listed in AuditList:
            button = self._lists[listed] = QPushButton(listed.value)
            button.setCheckable(True)
            button.setChecked(listed is AuditList.FLIPS)
            button.setToolTip(_LISTED_MEANINGS[listed])
            button.clicked.connect(lambda _=False, chosen=listed: self.choose_list(chosen))
            group.addButton(button)
        self.marked.setChecked(True)
        self.marked.setToolTip("Draw black and white dashes around the listed objects.")
        self.marked.toggled.connect(lambda _on: self.marks_changed.emit())
        return FlowBar(*self._lists.values(), self.marked)

    def _on_row(self, row: int, _column: int) -> None:
        self.object_chosen.emit(*self._shown[row])
        self._show_sentence(row)


def _policy_menu(which: str) -> ChoiceBox:
    menu = ChoiceBox(
        [
            Choice(
                policy, SETTING_WORDS[policy], f"{SETTING_MEANINGS[policy]} Code name: {policy}."
            )
            for policy in AmbiguousPolicy
        ],
        f"The {which} policy. Open the menu and rest on a policy to read what it does.",
    )
    # In a 12 pt font, Qt reserves too little room for the longest name.
    menu.setMinimumContentsLength(max(len(SETTING_WORDS[policy]) for policy in AmbiguousPolicy))
    return menu


def _beside(*widgets: QWidget) -> QWidget:
    """Keep widgets together in a line that may be broken."""
    pair = QWidget()
    line = QHBoxLayout(pair)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(3)
    for widget in widgets:
        line.addWidget(widget)
    return pair


def _differs(record: dict[Hashable, Any]) -> bool:
    """Return whether a class has another figure under the second policy."""
    changes = (float(record[f"{key}_difference"]) for key in ("tp", "fp", "fn", "iou_sum"))
    return any(change != 0 for change in changes)


def _fate(record: pd.Series, which: str) -> str:
    cause = record[f"cause_{which}"]
    status = record[f"status_{which}"]
    return f"{status} ({cause})" if cause else str(status)
