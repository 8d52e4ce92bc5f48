"""Splits, mergers and duplicates as groups: what belongs together, and what it costs.

To mend a group means to join its parts, or to cut a merger along the annotation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QWidget

from napari_panoptic.display import marks, slide_texts, styles
from napari_panoptic.display.glossary import GROUP_MEANINGS
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.display.styles import count_text, ratio_text, signed_text
from napari_panoptic.explain.failure_groups import (
    FailureGroup,
    GroupKind,
    counts_if_merged,
    failure_groups,
    pq_if_merged,
    statuses_if_merged,
)
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import Metrics, unit_metrics
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.questions.groups import Groups
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import Grow, ListPanel, fill
from napari_panoptic.viewer.kit.shown import RichLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import share_text
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.presenter import QuestionPresenter
from napari_panoptic.viewer.panels.question.view import QuestionView
from napari_panoptic.viewer.panels.region_panel import Here, RegionPresenter, ResultHere

GROUP_LAYER = "failure group"
EMPTY = "No groups to show. Open a cohort."
NO_GROUPS = (
    "No splits, mergers or duplicates in this region. “Over the cohort” counts them in all "
    "regions; the panel Failures, grouped by cause, leads to them."
)
SHARED_PIXELS = (
    "Groups need objects that share no pixels: choose “Object on top” for “Shared pixels” in the "
    "settings."
)
_ALL = "all kinds"
_ALL_MEANING = (
    "PQ of this region now, and if every group were mended: the parts of an object joined, mergers "
    "cut along the annotation. Classes stay as predicted."
)
_ONE_MEANING = (
    "PQ of this region now, and if this group were mended: its parts joined, a merger cut along "
    "the annotation. Classes stay as predicted."
)
_MENDED: Mapping[GroupKind, tuple[str, str]] = {
    GroupKind.SPLIT: ("joined", "the joined object"),
    GroupKind.MERGER: ("cut apart", "each piece"),
    GroupKind.DUPLICATE: ("joined", "the joined object"),
    GroupKind.MIXED: ("cut and joined", "each object"),
}
"""How a group is mended, and what results from it."""
_RING_ON_SCREEN_PX = 3.0
LEAST_COHORT_PX = 260
"""Height of the answer over the cohort; the panel scrolls where there is less room."""
_REFERENCE_COLUMNS = (0, 2)
"""Columns of the list of members that are about the annotated object."""


@dataclass(frozen=True, eq=False)
class Grouped(ResultHere):
    """What is shown: the groups of a region and team."""

    groups: tuple[FailureGroup, ...]
    if_all_merged: Metrics


def grouped(here: Here) -> Grouped:
    """Find the groups; for workers."""
    groups = failure_groups(here.evaluation)
    merged = counts_if_merged(here.evaluation, groups) if groups else here.evaluation.counts
    return Grouped(here, groups, unit_metrics(merged))


class GroupsPanel(ListPanel):
    """The list of groups, what is in one, and what they cost here and in the cohort."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.members = ArrayTable()
        self.kind = ChoiceBox(meaning="Which groups are listed.")
        self.cohort = QuestionView(Groups)
        self.headline, self.what_if = RichLabel(wraps=True), RichLabel(wraps=True)
        self.why = WrappedLabel()
        self._grouped: Grouped | None = None
        fill(self._rows, (self.kind, Grow(self.headline)), self.hint, Grow(self.table))
        fill(self._rows, self.what_if, self.why, self.members, self.cohort)
        self._rows.addStretch(0)
        self.kind.chosen.connect(lambda _kind: self._show_list())
        self.table.row_chosen.connect(lambda row, _column: self._show_members(row))
        self.cohort.table_chosen.connect(self._give_room)
        self.show_nothing(EMPTY)

    def show_nothing(self, why: str) -> None:
        """Show why there are no groups."""
        self._grouped = None
        self._offer_kinds(())
        self.hint.setText(why)
        self._show_list()

    def show_groups(self, grouped: Grouped) -> None:
        """List the groups of a region; a hint if there are none."""
        self._grouped = grouped
        self._offer_kinds(grouped.groups)
        self.hint.setText(NO_GROUPS)
        now, then = grouped.here.evaluation.metrics.pq, grouped.if_all_merged.pq
        self.headline.set_rich(f"All mended: {_from_to(now, then)}")
        self.headline.setToolTip(_reason(now, then, _ALL_MEANING))
        self._show_list()

    def select(self, number: int | None) -> None:
        """Select a group without telling."""
        if number != self.table.selected():
            self.table.select(number)
        self._show_members(number)

    def _give_room(self) -> None:
        """Make room for the tables of the cohort when there are some."""
        has_tables = self.cohort.shown_table is not None
        self.cohort.setMinimumHeight(LEAST_COHORT_PX if has_tables else 0)
        self._rows.setStretchFactor(self.cohort, int(has_tables))

    def _offer_kinds(self, groups: tuple[FailureGroup, ...]) -> None:
        counted = Counter(group.kind for group in groups)
        kinds = [Choice(kind, f"{kind} {count_text(counted[kind])}") for kind in GroupKind]
        all_kinds = Choice(None, f"{_ALL} {count_text(len(groups))}")
        self.kind.show_among([all_kinds, *kinds], self.kind.choice)
        for widget in (self.kind, self.headline, self.table):
            widget.setVisible(bool(groups))

    def _show_list(self) -> None:
        if self._grouped is None or not self._grouped.groups:
            self.table.show_rows([])
        else:
            kind, groups = self.kind.choice, self._grouped.groups
            chosen = np.array([kind in (None, group.kind) for group in groups])
            self.table.show_rows(_group_columns(groups), chosen)
        self.hint.setVisible(not self.table.rows())
        self._show_members(None)

    def _show_members(self, number: int | None) -> None:
        shown = self._grouped is not None and number is not None
        self.members.setVisible(shown)
        self.what_if.setVisible(shown)
        self.why.show_text("")
        if self._grouped is None or number is None:
            return
        evaluation, group = self._grouped.here.evaluation, self._grouped.groups[number]
        now, then = evaluation.metrics.pq, pq_if_merged(evaluation, group).pq
        word, _ = _MENDED[group.kind]
        self.what_if.set_rich(f"If {word}: {_from_to(now, then)}")
        self.what_if.setToolTip(_reason(now, then, _ONE_MEANING))
        self.why.show_text(why_no_gain(evaluation, group))
        self.members.show_rows(_member_columns(evaluation, group))
        self.members.setFixedHeight(min(26 + 20 * len(group.pair_reference) + 16, 150))


class CohortGroups(QuestionPresenter):
    """What the groups cost the team over the cohort."""

    title = "Groups"
    kind = Groups
    panel_type = partial(QuestionView, Groups)


class GroupsPresenter(RegionPresenter[GroupsPanel, Grouped]):
    """Shows the failure groups of the region and team that are shown."""

    title = "Groups"
    key = "Alt-g"
    panel_type = GroupsPanel
    marks_name = GROUP_LAYER
    on_slide = slide_texts.GROUPS
    compute = staticmethod(grouped)

    def __init__(self, around: Surroundings, panel: GroupsPanel) -> None:
        super().__init__(around, panel)
        self.cohort = CohortGroups(around, panel.cohort)
        self._outlined: FailureGroup | None = None
        self.cohort.refresh()

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed."""
        return super().is_busy or self.cohort.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            *super().connections(),
            *self.cohort.connections(),
            (session.selection_changed, self._on_selection),
            (panel.table.row_chosen, self._on_group),
            (panel.table.centre_wanted, self._on_centre),
            (panel.members.row_chosen, self._on_member),
        ]

    def close(self) -> None:
        """Stop, and take the marks away."""
        self.cohort.close()
        super().close()

    def obstacle(self, snapshot: RegionSnapshot) -> str:
        """Return why there can be no groups of objects that share pixels."""
        return SHARED_PIXELS if snapshot.keeps_overlaps else ""

    def show(self, value: Grouped) -> None:
        """List the groups."""
        self._outlined = None
        self.panel.show_groups(value)
        self._on_selection(self.session.selection)

    def show_nothing(self, why: str) -> None:
        """Show why there are no groups."""
        self.panel.show_nothing(why)

    def mark(self) -> None:
        """Draw one ring around the objects of the selected group."""
        group, value = self._outlined, self.value
        if group is None or value is None or not self.is_in_sight:
            self.marks.remove()
            return
        pair = value.here.evaluation.pair
        parts = [
            (pair.reference, group.reference_rows + 1),
            (pair.prediction, group.prediction_rows + 1),
        ]
        ring_px = camera.ring_px(self.link.scene.zoom, _RING_ON_SCREEN_PX)
        picture = marks.ring_around(parts, group.bbox, ring_px=ring_px)
        pixels = PixelSize.of(value.here.snapshot)
        self.marks.show(picture.image, pixels, origin_yx_px=picture.origin_yx_px)

    def _on_selection(self, selection: Selection | None) -> None:
        """Select the group that an object belongs to; without an object leave it."""
        if self.value is None or selection is None:
            return
        for number, group in enumerate(self.value.groups):
            is_reference = selection.side is Side.REFERENCE
            if selection.row in (group.reference_rows if is_reference else group.prediction_rows):
                self.panel.select(number)
                self._outline(group)
                return

    def _on_group(self, row: int, _column: int) -> None:
        if self.value is not None:
            group = self.value.groups[row]
            self._outline(group)
            self.link.scene.show_box(group.bbox, only_if_hidden=True)

    def _on_centre(self, row: int) -> None:
        if self.value is not None:
            self.link.scene.centre_box(self.value.groups[row].bbox)

    def _on_member(self, row: int, column: int) -> None:
        """Select the object of the cell."""
        group = self._outlined
        if group is not None and column in _REFERENCE_COLUMNS:
            self.select_row(Side.REFERENCE, int(group.pair_reference[row]))
        elif group is not None:
            self.select_row(Side.PREDICTION, int(group.pair_prediction[row]))

    def _outline(self, group: FailureGroup) -> None:
        self._outlined = group
        self.mark()


def _from_to(now: float, then: float) -> str:
    return f"<b>PQ {ratio_text(now)} → {ratio_text(then)} ({signed_text(then - now)})</b>"


def why_no_gain(evaluation: Evaluation, group: FailureGroup) -> str:
    """Return a sentence on why mending a group does not raise PQ; empty if it does."""
    if math.isnan(group.pq_lost) or signed_text(group.pq_lost).startswith("+"):
        return ""
    now = evaluation.outcomes.reference.status[group.reference_rows]
    then = statuses_if_merged(evaluation, group)
    n, (_, what) = len(then), _MENDED[group.kind]
    tp, wrong, missed = (
        STATUS_CODE[status] for status in (Status.TP, Status.MISCLASSIFIED, Status.FN)
    )
    if (then == tp).sum() > (now == tp).sum():
        return f"No gain: more nuclei are matched, but {what} overlaps its nucleus less well."
    if (wrongs := int((then == wrong).sum())) > (then == missed).sum():
        of = "the nucleus" if n == 1 else f"{count_text(wrongs)} of the {count_text(n)} nuclei"
        return (
            f"No gain: {what} keeps the predicted class, which is the wrong one for {of}. "
            "A misclassified nucleus costs as much as a missed one."
        )
    if (then == missed).any():
        return f"No gain: {what} still overlaps its nucleus too little to match it."
    return f"No gain: {what} matches no better than what matches now."


def _reason(now: float, then: float, meaning: str) -> str:
    if math.isnan(now) or math.isnan(then):
        return f"{meaning} PQ is undefined here: there are no objects."
    return meaning


def _group_columns(groups: tuple[FailureGroup, ...]) -> list[Column]:
    """Return what is shown of the groups."""
    shares = np.array([group.share_of_reference.max(initial=0.0) for group in groups])
    return [
        Column(
            "Kind",
            "What went wrong.",
            np.array([str(group.kind) for group in groups]),
            tooltip=lambda row: GROUP_MEANINGS[groups[row].kind],
            width=74,
            is_text=True,
            stretch=True,
        ),
        Column(
            "Annotated",
            "How many annotated objects take part.",
            np.array([len(group.reference_rows) for group in groups]),
            width=78,
        ),
        Column(
            "Predicted",
            "How many predictions take part.",
            np.array([len(group.prediction_rows) for group in groups]),
            width=78,
        ),
        _share_column(
            "Covered",
            "The largest share of an annotated object that one prediction of the group covers.",
            shares,
            width=66,
        ),
        Column(
            "PQ gain",
            "Change of the region's PQ if the group were mended: its parts joined, a merger cut "
            "along the annotation. With a minus sign the joined object would be the worse one.",
            np.array([group.pq_lost for group in groups]),
            text=signed_text,
            width=78,
        ),
    ]


def _member_columns(evaluation: Evaluation, group: FailureGroup) -> list[Column]:
    """Return what is shown of the pairs of objects in a group."""
    outcomes, names = evaluation.outcomes, evaluation.outcomes.class_names
    return [
        _id_column("Annotated", outcomes.reference, group.pair_reference, names),
        _id_column("Predicted", outcomes.prediction, group.pair_prediction, names),
        _share_column(
            "Of annotated",
            "Share of the annotated object's area in the prediction.",
            group.share_of_reference,
        ),
        _share_column(
            "Of predicted",
            "Share of the prediction's area in the annotated object.",
            group.share_of_prediction,
        ),
        Column(
            "Shared px",
            "Pixels that the two share, after the ambiguous policy.",
            group.intersection_px,
            text=lambda value: count_text(int(value)),
        ),
    ]


def _share_column(
    title: str, meaning: str, shares: NDArray[np.float64], *, width: int = 84
) -> Column:
    return Column(title, meaning, shares, text=share_text, width=width)


def _id_column(
    title: str, side: SideOutcomes, rows: NDArray[np.int64], names: Sequence[str]
) -> Column:
    statuses = [STATUSES[code] for code in side.status[rows]]
    classes = [names[number - 1] for number in side.class_index[rows]]

    def colour(row: int) -> Rgb:
        return styles.STATUS_COLOURS[statuses[row]]

    return Column(
        title,
        f"Id of the {title.lower()} object; click to select it.",
        side.ids[rows],
        tooltip=lambda row: f"{classes[row]}: {styles.STATUS_MEANINGS[statuses[row]]}",
        colour=colour,
        width=92,
        stretch=True,
    )
