"""Splits, mergers and duplicates as groups: what belongs together, and what it costs."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import (
    QHBoxLayout,
    QWidget,
)

from napari_panoptic.display.glossary import GROUP_MEANINGS
from napari_panoptic.display.styles import count_text, ratio_text, signed_text
from napari_panoptic.explain.failure_groups import (
    FailureGroup,
    GroupKind,
    pq_if_merged,
)
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.questions.engines.cohort_losses import LossesSoFar
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.array_table import ArrayTable
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import ListPanel
from napari_panoptic.viewer.kit.shown import RichLabel, WrappedLabel
from napari_panoptic.viewer.kit.work_controls import WorkControls
from napari_panoptic.viewer.panels.groups.grouped import (
    REFERENCE_COLUMNS,
    Grouped,
    group_columns,
    member_columns,
)

EMPTY = (
    "No groups to show. Without a cohort: open one. Otherwise this region has no annotation, or "
    "no prediction of this team: choose another region or team."
)
NO_GROUPS = (
    "No splits, mergers or duplicates in this region. “Over the cohort” counts them in all "
    "regions; the panel Failures, grouped by cause, leads to them."
)
_ALL = "all kinds"


class GroupsPanel(ListPanel):
    """The list of groups, what is in one, and what they cost here and in the cohort."""

    group_chosen = Signal(object)  # FailureGroup
    object_chosen = Signal(Side, int)
    centre_wanted = Signal(object)  # FailureGroup

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.members = ArrayTable()
        self.kind = ChoiceBox(meaning="Which groups are listed.")
        self.work = WorkControls(
            "Over the cohort",
            "Sum up what splits, mergers and duplicates cost this team over all regions, from "
            "the files as they are on disk.",
        )
        self.compute, self.stop = self.work.start, self.work.stop
        self.cohort = FigureTable()
        self.headline, self.what_if = RichLabel(), RichLabel()
        self.note = WrappedLabel()
        self._grouped: Grouped | None = None
        self._pairs: list[tuple[int, int]] = []
        self._lay_out()
        self.show_groups(None)
        self.show_losses(None)

    def selected(self) -> FailureGroup | None:
        """Return the selected group."""
        row = self.table.selected()
        return None if row is None or self._grouped is None else self._grouped.groups[row]

    def show_groups(self, grouped: Grouped | None, *, empty: str = EMPTY) -> None:
        """List the groups of a region; a hint if there are none."""
        self._grouped = grouped
        groups = () if grouped is None else grouped.groups
        counted = Counter(group.kind for group in groups)
        kinds = [Choice(kind, f"{kind} {count_text(counted[kind])}") for kind in GroupKind]
        all_kinds = Choice(None, f"{_ALL} {count_text(len(groups))}")
        self.kind.show_among([all_kinds, *kinds], self.kind.choice)
        self.headline.setVisible(bool(groups))
        self.hint.setText(empty if grouped is None else NO_GROUPS)
        if grouped is not None:
            now, then = grouped.evaluation.metrics.pq, grouped.if_all_merged.pq
            self.headline.set_rich(f"If all were one: {_from_to('PQ', now, then)}")
            self.headline.setToolTip(_reason("PQ", now, then, _ALL_MEANING))
        self._fill()

    def select(self, number: int | None) -> None:
        """Select a group without telling."""
        if number != self.table.selected():
            self.table.select(number)
        self._show_members(number)

    def show_losses(self, so_far: LossesSoFar | None, *, note: str = "") -> None:
        """Show what the groups cost over the cohort; None if that is not known."""
        is_counting = so_far is not None and so_far.done < so_far.total
        self.work.show_count((so_far.done, so_far.total) if so_far and is_counting else None)
        self.cohort.setVisible(so_far is not None and bool(so_far.losses))
        if so_far is None:
            self.note.show_text(note)
            return
        if so_far.left_out:
            note += f" · {count_text(so_far.left_out)} left out: nothing to evaluate there"
        self.note.setText(f"{count_text(so_far.done)} of {count_text(so_far.total)} regions{note}")
        self.note.show()
        header = [
            Cell("Kind", "What went wrong."),
            Cell("Groups", "How many groups of this kind."),
            Cell("Pooled PQ", "PQ of the counts summed over the cohort, not a mean over patients."),
            Cell("If one", "The same with every group of this kind merged or cut as it should be."),
            Cell("ΔPQ", "Change of the pooled PQ if these groups were one: what they cost now."),
        ]
        rows = []
        for loss in so_far.losses:
            name = _ALL if loss.kind is None else str(loss.kind)
            meaning = "" if loss.kind is None else GROUP_MEANINGS[loss.kind]
            before, after = unit_metrics(loss.before).pq, unit_metrics(loss.after).pq
            why = "Undefined: there are no objects." if math.isnan(before) else ""
            rows.append(
                [
                    Cell(name, meaning, bold=loss.kind is None),
                    Cell(count_text(loss.groups)),
                    Cell(ratio_text(before), why),
                    Cell(ratio_text(after), why),
                    Cell(signed_text(loss.pq_lost), why, bold=True),
                ]
            )
        self.cohort.fill(header, rows)

    def _fill(self) -> None:
        grouped = self._grouped
        if grouped is None or not grouped.groups:
            self.table.show_rows([])
        else:
            kind = self.kind.choice
            chosen = np.array([kind in (None, group.kind) for group in grouped.groups])
            self.table.show_rows(group_columns(grouped), chosen)
        is_empty = not self.table.rows()
        self.hint.setVisible(is_empty)
        for widget in (self.table, self.kind):
            widget.setVisible(grouped is not None and bool(grouped.groups))
        self._show_members(None)

    def _show_members(self, number: int | None) -> None:
        grouped = self._grouped
        shown = grouped is not None and number is not None
        self.members.setVisible(shown)
        self.what_if.setVisible(shown)
        if grouped is None or number is None:
            self.what_if.clear()
            self._pairs = []
            return
        group = grouped.groups[number]
        now, then = grouped.evaluation.metrics.pq, pq_if_merged(grouped.evaluation, group).pq
        word = "cut as annotated" if group.kind is GroupKind.MERGER else "one"
        self.what_if.set_rich(f"What if these were {word}: {_from_to('PQ', now, then)}")
        self.what_if.setToolTip(_reason("PQ", now, then, _ONE_MEANING))
        self._pairs = list(
            zip(group.pair_reference.tolist(), group.pair_prediction.tolist(), strict=True)
        )
        self.members.show_rows(member_columns(grouped.evaluation, group))
        self.members.setFixedHeight(min(26 + 20 * len(self._pairs) + 16, 150))

    def _lay_out(self) -> None:
        for label in (self.headline, self.what_if):
            label.setWordWrap(True)
        top = QHBoxLayout()
        self.kind.chosen.connect(lambda _kind: self._fill())
        top.addWidget(self.kind)
        top.addWidget(self.headline, 1)
        bottom = QHBoxLayout()
        for widget in (self.work.start, self.work.stop, self.work.bar):
            bottom.addWidget(widget)
        bottom.addWidget(self.note, 1)
        bottom.addStretch(0)  # so that the button is not stretched where there is no note
        layout = self._rows
        layout.addLayout(top)
        layout.addWidget(self.hint)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.what_if)
        layout.addWidget(self.members)
        layout.addLayout(bottom)
        layout.addWidget(self.cohort)
        layout.addStretch(0)
        self.table.row_chosen.connect(self._on_group)
        self.table.centre_wanted.connect(lambda row: self._on_centre(row))
        self.members.row_chosen.connect(self._on_member)

    def _on_group(self, row: int, _column: int) -> None:
        self._show_members(row)
        if self._grouped is not None:
            self.group_chosen.emit(self._grouped.groups[row])

    def _on_centre(self, row: int) -> None:
        if self._grouped is not None:
            self.centre_wanted.emit(self._grouped.groups[row])

    def _on_member(self, row: int, column: int) -> None:
        """Select the object of the cell: the first columns are the annotation's."""
        reference, prediction = self._pairs[row]
        if column in REFERENCE_COLUMNS:
            self.object_chosen.emit(Side.REFERENCE, reference)
        else:
            self.object_chosen.emit(Side.PREDICTION, prediction)


_ALL_MEANING = (
    "PQ of this region now, and if every group were one: parts of an object joined, mergers cut "
    "along the annotation."
)
_ONE_MEANING = (
    "PQ of this region now, and if this group were one: its parts joined, a merger cut along "
    "the annotation. With a minus sign the joined object would be the worse one."
)


def _from_to(name: str, now: float, then: float) -> str:
    change = signed_text(then - now)
    return f"<b>{name} {ratio_text(now)} → {ratio_text(then)} ({change})</b>"


def _reason(name: str, now: float, then: float, meaning: str) -> str:
    if math.isnan(now) or math.isnan(then):
        return f"{meaning} {name} is undefined here: there are no objects."
    return meaning
