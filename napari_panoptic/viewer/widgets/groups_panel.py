"""Splits, mergers and duplicates as groups: what belongs together, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.evaluation.evaluate import Evaluation
from napari_panoptic.evaluation.groups import (
    FailureGroup,
    GroupKind,
    counts_if_merged,
    failure_groups,
    pq_if_merged,
)
from napari_panoptic.evaluation.metrics import Metrics, unit_metrics
from napari_panoptic.evaluation.vocabulary import STATUSES, Side
from napari_panoptic.regions import Rgb
from napari_panoptic.session import RegionSnapshot, Selection
from napari_panoptic.viewer import marks, styles
from napari_panoptic.viewer.cohort_losses import LossesSoFar, cohort_losses
from napari_panoptic.viewer.desk_part import Connections, Surroundings
from napari_panoptic.viewer.mark_layer import MarkLayer
from napari_panoptic.viewer.part_work import Latest, Material, SeenPart, Stream, material
from napari_panoptic.viewer.styles import count_text, ratio_text, signed_text
from napari_panoptic.viewer.widgets.array_table import ArrayTable, Column
from napari_panoptic.viewer.widgets.parts import COMPACT_COMBO, Cell, FigureTable

EMPTY = (
    "No groups to show. Without a cohort: open one. Otherwise this region has no annotation, or "
    "no prediction of this team: choose another region or team."
)
NO_GROUPS = (
    "This team splits, merges or doubles no object here. Choose another region, or look over the "
    "whole cohort below."
)
GROUP_LAYER = "failure group"
MIN_LIST_PX = 92
_RING_ON_SCREEN_PX, _MAX_RING_PX = 3.0, 8
_ALL = "all kinds"

KIND_MEANINGS: Mapping[GroupKind, str] = {
    GroupKind.SPLIT: "Several predictions share one annotated object.",
    GroupKind.MERGER: "One prediction swallows several annotated objects.",
    GroupKind.DUPLICATE: "Further predictions lie in an object that one matched.",
    GroupKind.MIXED: "A merger, and a split or duplicate with it.",
}


@dataclass(frozen=True, eq=False)
class Grouped:
    """What is shown: the groups of a region and team."""

    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation
    groups: tuple[FailureGroup, ...]
    if_all_merged: Metrics


def grouped(known: Material, team: str) -> Grouped:
    """Find the groups; for workers."""
    evaluation = known.complete()[team]
    groups = failure_groups(evaluation)
    merged = counts_if_merged(evaluation, groups) if groups else evaluation.counts
    return Grouped(known.snapshot, team, evaluation, groups, unit_metrics(merged))


class GroupsPanel(QScrollArea):
    """The list of groups, what is in one, and what they cost here and in the cohort."""

    group_chosen = Signal(object)  # FailureGroup
    object_chosen = Signal(Side, int)
    centre_wanted = Signal(object)  # FailureGroup
    cohort_wanted = Signal()
    stop_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table, self.members = ArrayTable(), ArrayTable()
        self.kind = QComboBox()
        self.compute = QPushButton("over the cohort")
        self.stop = QPushButton("stop")
        self.cohort = FigureTable()
        self._progress = QProgressBar()
        self._headline, self._what_if = QLabel(), QLabel()
        self._hint, self._note = QLabel(), QLabel()
        self._grouped: Grouped | None = None
        self._pairs: list[tuple[int, int]] = []
        self._lay_out()
        self.show_groups(None)
        self.show_losses(None)

    def headline_text(self) -> str:
        """Give what is said about all groups of the region."""
        return self._headline.text()

    def what_if_text(self) -> str:
        """Give what is said about the selected group."""
        return self._what_if.text()

    def hint_text(self) -> str:
        """Give the hint; empty where groups are listed."""
        return "" if self._hint.isHidden() else self._hint.text()

    def note_text(self) -> str:
        """Give what is said about the sum over the cohort."""
        return self._note.text()

    def is_counting(self) -> bool:
        """Tell whether progress is shown."""
        return not self._progress.isHidden()

    def selected(self) -> FailureGroup | None:
        """Give the selected group."""
        row = self.table.selected()
        return None if row is None or self._grouped is None else self._grouped.groups[row]

    def show_groups(self, grouped: Grouped | None) -> None:
        """List the groups of a region; a hint where there are none."""
        self._grouped = grouped
        groups = () if grouped is None else grouped.groups
        with QSignalBlocker(self.kind):
            chosen = self.kind.currentData()
            self.kind.clear()
            self.kind.addItem(f"{_ALL} {count_text(len(groups))}", None)
            for kind in GroupKind:
                number = sum(group.kind is kind for group in groups)
                self.kind.addItem(f"{kind} {count_text(number)}", kind)
            self.kind.setCurrentIndex(max(self.kind.findData(chosen), 0))
        self._headline.setVisible(grouped is not None)
        self._hint.setText(EMPTY if grouped is None else NO_GROUPS)
        if grouped is not None:
            now, then = grouped.evaluation.metrics.pq, grouped.if_all_merged.pq
            self._headline.setText(f"If all were one: {_from_to('PQ', now, then)}")
            self._headline.setToolTip(_reason("PQ", now, then, _ALL_MEANING))
        self._fill()

    def select(self, number: int | None) -> None:
        """Select a group without telling."""
        if number != self.table.selected():
            self.table.select(number)
        self._show_members(number)

    def show_losses(self, so_far: LossesSoFar | None, *, note: str = "") -> None:
        """Show what the groups cost over the cohort; None where that is not known."""
        counting = so_far is not None and so_far.done < so_far.total
        self._progress.setVisible(counting)
        self.stop.setVisible(counting)
        self.compute.setVisible(not counting)
        self.cohort.setVisible(so_far is not None and bool(so_far.losses))
        if so_far is None:
            self._note.setText(note)
            self._note.setVisible(bool(note))
            return
        self._progress.setMaximum(so_far.total)
        self._progress.setValue(so_far.done)
        if so_far.left_out:
            note += f" · {count_text(so_far.left_out)} left out: nothing to evaluate there"
        self._note.setText(f"{count_text(so_far.done)} of {count_text(so_far.total)} regions{note}")
        self._note.show()
        header = [
            Cell("Kind", "What went wrong."),
            Cell("groups", "How many groups of this kind."),
            Cell("PQ now", "PQ of all counts of the cohort summed up."),
            Cell("if one", "The same with every group of this kind merged or cut as it should be."),
            Cell("lost", "The difference: what these groups cost."),
        ]
        rows = []
        for loss in so_far.losses:
            name = _ALL if loss.kind is None else str(loss.kind)
            meaning = "" if loss.kind is None else KIND_MEANINGS[loss.kind]
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
            kind = self.kind.currentData()
            chosen = np.array([kind in (None, group.kind) for group in grouped.groups])
            self.table.show_rows(_group_columns(grouped), chosen)
        is_empty = not self.table.rows()
        self._hint.setVisible(is_empty)
        for widget in (self.table, self.kind):
            widget.setVisible(grouped is not None and bool(grouped.groups))
        self._show_members(None)

    def _show_members(self, number: int | None) -> None:
        grouped = self._grouped
        shown = grouped is not None and number is not None
        self.members.setVisible(shown)
        self._what_if.setVisible(shown)
        if grouped is None or number is None:
            self._what_if.clear()
            self._pairs = []
            return
        group = grouped.groups[number]
        now, then = grouped.evaluation.metrics.pq, pq_if_merged(grouped.evaluation, group).pq
        word = "cut as annotated" if group.kind is GroupKind.MERGER else "one"
        self._what_if.setText(f"What if these were {word}: {_from_to('PQ', now, then)}")
        self._what_if.setToolTip(_reason("PQ", now, then, _ONE_MEANING))
        self._pairs = list(
            zip(group.pair_reference.tolist(), group.pair_prediction.tolist(), strict=True)
        )
        self.members.show_rows(_member_columns(grouped.evaluation, group))
        self.members.setFixedHeight(min(26 + 20 * len(self._pairs) + 16, 150))

    def _lay_out(self) -> None:
        for label in (self._headline, self._what_if, self._hint, self._note):
            label.setWordWrap(True)
        top = QHBoxLayout()
        self.kind.setStyleSheet(COMPACT_COMBO)
        self.kind.setToolTip("Which groups are listed.")
        self.kind.currentIndexChanged.connect(lambda _index: self._fill())
        top.addWidget(self.kind)
        top.addWidget(self._headline, 1)
        bottom = QHBoxLayout()
        self.compute.setToolTip(
            "Sum up what splits, mergers and duplicates cost this team over all regions, from "
            "the files as they are on disk."
        )
        self.compute.clicked.connect(lambda _=False: self.cohort_wanted.emit())
        self.stop.setToolTip("Stop after the region that is being evaluated.")
        self.stop.clicked.connect(lambda _=False: self.stop_wanted.emit())
        self._progress.setTextVisible(False)
        self._progress.setFixedHeight(10)
        for widget in (self.compute, self.stop, self._progress):
            bottom.addWidget(widget)
        bottom.addWidget(self._note, 1)
        # In a low dock the panel scrolls, so that nothing is squeezed.
        body = QWidget()
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setMinimumHeight(MIN_LIST_PX)
        layout = QVBoxLayout(body)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addLayout(top)
        layout.addWidget(self._hint)
        layout.addWidget(self.table, 1)
        layout.addWidget(self._what_if)
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
        if column in _REFERENCE_COLUMNS:
            self.object_chosen.emit(Side.REFERENCE, reference)
        else:
            self.object_chosen.emit(Side.PREDICTION, prediction)


_REFERENCE_COLUMNS = (0, 2)
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


def _group_columns(grouped: Grouped) -> list[Column]:
    groups = grouped.groups
    sizes = [(len(g.reference_rows), len(g.prediction_rows)) for g in groups]
    return [
        Column(
            "Kind",
            "What went wrong.",
            np.array([str(group.kind) for group in groups]),
            tooltip=lambda row: KIND_MEANINGS[groups[row].kind],
            width=74,
            is_text=True,
        ),
        Column(
            "annotated",
            "How many annotated objects take part.",
            np.array([size[0] for size in sizes]),
            width=78,
        ),
        Column(
            "predicted",
            "How many predictions take part.",
            np.array([size[1] for size in sizes]),
            width=78,
        ),
        Column(
            "largest share",
            "The largest share of an annotated object that one prediction of the group covers.",
            np.array([group.share_of_reference.max(initial=0.0) for group in groups]),
            text=_percent,
            width=100,
        ),
        Column(
            "PQ lost",
            "PQ of the region if the group were one, minus its PQ now; with a minus sign the "
            "joined object would be the worse one.",
            np.array([group.pq_lost for group in groups]),
            text=lambda value: signed_text(float(value)),
            width=78,
        ),
    ]


def _member_columns(evaluation: Evaluation, group: FailureGroup) -> list[Column]:
    outcomes = evaluation.outcomes
    columns = []
    for title, side, rows in (
        ("annotated", outcomes.reference, group.pair_reference),
        ("predicted", outcomes.prediction, group.pair_prediction),
    ):
        codes = side.status[rows]
        classes = [outcomes.class_names[k - 1] for k in side.class_index[rows]]
        columns.append(
            Column(
                title,
                f"Id of the {title} object; click to select it.",
                side.ids[rows],
                tooltip=partial(_member_tooltip, codes, classes),
                colour=partial(_colour, codes),
                width=92,
            )
        )
    shares: Sequence[tuple[str, str, NDArray[np.float64]]] = (
        ("of annotated", "Share of the annotated object's area.", group.share_of_reference),
        ("of predicted", "Share of the prediction's area.", group.share_of_prediction),
    )
    columns += [
        Column(title, meaning, values, text=_percent, width=84) for title, meaning, values in shares
    ]
    columns.append(
        Column(
            "px",
            "Pixels that the two share, after the ambiguous policy.",
            group.intersection_px,
            text=lambda value: count_text(int(value)),
        )
    )
    return columns


def _member_tooltip(codes: NDArray[np.int8], classes: list[str], row: int) -> str:
    return f"{classes[row]}: {styles.STATUS_MEANINGS[STATUSES[codes[row]]]}"


def _colour(codes: NDArray[np.int8], row: int) -> Rgb:
    return styles.STATUS_COLOURS[STATUSES[codes[row]]]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


class GroupsPart(SeenPart):
    """Shows the failure groups of the region and team that are shown."""

    title = "Groups"
    key = "Alt-g"

    def __init__(self) -> None:
        super().__init__()
        self._panel = GroupsPanel()
        self._latest: Latest[Grouped] = Latest(self._show)
        self._stream: Stream[LossesSoFar] = Stream(self._on_losses, self._on_losses_end)
        self._grouped: Grouped | None = None
        self._ring: MarkLayer | None = None
        self._outlined: FailureGroup | None = None
        self._losses: LossesSoFar | None = None
        self._losses_of = ""
        self.watch(self._panel)

    @property
    def widget(self) -> GroupsPanel:
        """The panel."""
        return self._panel

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed."""
        return self._latest.is_busy or self._stream.is_busy

    @property
    def ring(self) -> MarkLayer | None:
        """The outline of the selected group."""
        return self._ring

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        panel = self._panel
        return [
            *super().connections(around),
            (around.session.settings_changed, self._on_settings),
            (around.session.selection_changed, self._on_selection),
            (panel.group_chosen, self._on_group),
            (panel.object_chosen, around.session.select_row),
            (panel.centre_wanted, self._on_centre),
            (panel.cohort_wanted, self._on_cohort),
            (panel.stop_wanted, self._on_stop),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort."""
        self._ring = MarkLayer(around.viewer, GROUP_LAYER)
        self._forget_losses()
        super().attach(around)

    def detach(self) -> None:
        """Leave a cohort."""
        self._latest.drop()
        self._stream.stop()
        if self._ring is not None:
            (self._ring.forget if self.is_window_gone else self._ring.remove)()
        self._ring = self._grouped = self._outlined = None
        super().detach()

    def compute_now(self) -> None:
        """Find the groups in a worker."""
        around = self.around
        if around is None:
            return
        if self._losses_of and self._losses_of != around.session.team:
            self._forget_losses()
        team = around.session.team
        known = None if team is None else material(around.session, teams=(team,))
        if known is None or team is None:
            self._latest.drop()
            self._grouped = None
            self._panel.show_groups(None)
            self._outline(None)
            return
        self._latest.start(lambda: grouped(known, team))

    def on_sight(self, seen: bool) -> None:
        """Outline a group only while somebody looks at it here."""
        if seen:
            self._outline(self._outlined)
        elif self._ring is not None:
            self._ring.remove()

    def _show(self, value: Grouped) -> None:
        around = self.around
        if around is None:
            return
        self._grouped = value
        self._panel.show_groups(value)
        self._outline(None)
        self._on_selection(around.session.selection)

    def _on_selection(self, selection: Selection | None) -> None:
        """Select the group that an object belongs to; without an object leave it."""
        grouped = self._grouped
        if grouped is None or selection is None or selection.team != grouped.team:
            return
        for number, group in enumerate(grouped.groups):
            is_reference = selection.side is Side.REFERENCE
            rows = group.reference_rows if is_reference else group.prediction_rows
            if selection.row in rows:
                self._panel.select(number)
                self._outline(group)
                return

    def _on_group(self, group: FailureGroup) -> None:
        self._outline(group)
        if self.around is not None:
            self.around.link.scene.centre_box(group.bbox, only_if_hidden=True)

    def _on_centre(self, group: FailureGroup) -> None:
        if self.around is not None:
            self.around.link.scene.centre_box(group.bbox)

    def _outline(self, group: FailureGroup | None) -> None:
        """Draw one ring around the objects of a group."""
        self._outlined = group
        grouped, ring, around = self._grouped, self._ring, self.around
        if ring is None or around is None:
            return
        if group is None or grouped is None or not self.is_in_sight:
            ring.remove()
            return
        pair = grouped.evaluation.pair
        zoom = around.link.scene.zoom
        picture = marks.ring_around(
            [
                (pair.reference, group.reference_rows + 1),
                (pair.prediction, group.prediction_rows + 1),
            ],
            group.bbox,
            ring_px=int(np.clip(round(_RING_ON_SCREEN_PX / zoom), 1, _MAX_RING_PX)),
        )
        ring.show(picture.image, grouped.snapshot.mpp, origin_yx_px=picture.origin_yx_px)

    # Over the cohort.

    def _on_cohort(self) -> None:
        around = self.around
        if around is None or around.session.team is None:
            return
        session, team = around.session, around.session.team
        cohort, settings, source = session.cohort, session.settings, session.source
        self._losses_of = team
        self._losses = LossesSoFar(0, len(cohort.regions))
        self._panel.show_losses(self._losses)
        self._stream.start(lambda: cohort_losses(cohort, team, settings, source))

    def _on_losses(self, so_far: LossesSoFar) -> None:
        self._losses = so_far
        self._panel.show_losses(so_far, note=f" of {self._losses_of}")

    def _on_losses_end(self) -> None:
        if self._losses is not None and self._losses.done < self._losses.total:
            self._forget_losses("could not be summed up; see the notes of the regions")

    def _on_stop(self) -> None:
        self._stream.stop()
        self._forget_losses("stopped; press the button to begin anew")

    def _on_settings(self, _settings: object) -> None:
        self._forget_losses("other settings since: press the button to sum up anew")

    def _forget_losses(self, note: str = "") -> None:
        """Drop a sum that belongs to another team, cohort or setting."""
        had_one, self._losses = self._losses is not None, None
        self._stream.stop()
        self._losses_of = ""
        self._panel.show_losses(None, note=note if had_one else "")
