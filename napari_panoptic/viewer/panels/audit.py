"""Two ambiguous policies compared on the present region: what flips, why, and the change in PQ."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtWidgets import QCheckBox, QWidget

from napari_panoptic.display import marks, slide_texts, styles
from napari_panoptic.display.glossary import SETTING_MEANINGS, SETTING_WORDS
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.display.styles import (
    count_text,
    ratio_text,
    signed_count_text,
    signed_text,
)
from napari_panoptic.explain.policy_audit import PolicyAudit, audit_policies, spill_table
from napari_panoptic.live.session import Selection
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Cause, Side, Status
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, ChoiceButtons
from napari_panoptic.viewer.kit.layouts import FlowBar, Grow, ListPanel, fill, lay_out
from napari_panoptic.viewer.kit.shown import RichLabel, shown
from napari_panoptic.viewer.kit.widgets import share_text
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.region_panel import Here, RegionPresenter, ResultHere

if TYPE_CHECKING:
    import pandas as pd

MARKS_LAYER = "audited objects"
EMPTY = "Nothing to audit. Open a cohort."
NO_AREA = (
    "This region has no ambiguous area: every policy gives the same figures. Choose a region "
    "with a hatched area."
)
NOTHING = "No object of this kind here. Choose other policies, or another list."
_PQ_COUNTS = (
    "As PQ counts: a misclassified object is an FP of the predicted class and an FN of the "
    "annotated one."
)


class AuditList(StrEnum):
    """Which objects the table lists."""

    FLIPS = "flips"
    TOUCHING = "touching"
    SPILL = "spill"


_LISTS = (
    Choice(AuditList.FLIPS, "Changed", "Objects whose status is not the same under both policies."),
    Choice(
        AuditList.TOUCHING,
        "In the area",
        "All objects with a pixel in an ambiguous area, and their treatment.",
    ),
    Choice(
        AuditList.SPILL,
        "Sticking out",
        "Predictions that stick out of an ambiguous area, under the current policy: the "
        "part outside may count as an FP (spill).",
    ),
)


@dataclass(frozen=True, eq=False)
class Audited(ResultHere):
    """What is shown: the policies compared, and the spill under the one that is set."""

    audit: PolicyAudit
    objects: pd.DataFrame
    spill: pd.DataFrame

    @property
    def has_area(self) -> bool:
        """Whether there is an ambiguous area at all."""
        area = self.here.evaluation.pair.ambiguous
        return area is not None and bool(area.any())

    @property
    def policies(self) -> tuple[AmbiguousPolicy, AmbiguousPolicy]:
        """The two policies that were compared."""
        return self.audit.first.settings.ambiguous, self.audit.second.settings.ambiguous

    def place_of(self, side: Side, row: int) -> int:
        """Return the place of an object in `objects`: the reference comes first."""
        n_reference = len(self.here.evaluation.outcomes.reference)
        return row if side is Side.REFERENCE else n_reference + row

    def listed(self, listed: AuditList) -> list[tuple[Side, int]]:
        """Return side and row of the objects of a list, in its order."""
        if listed is AuditList.SPILL:
            return [(Side.PREDICTION, int(row)) for row in self.spill["row"]]
        frame = self.objects
        chosen = frame["flips"] if listed is AuditList.FLIPS else frame["ambiguous_px"] > 0
        places = np.flatnonzero(chosen.to_numpy(bool))
        weight = -np.nan_to_num(np.abs(frame["pq_contribution"].to_numpy(float)[places]))
        sides = frame["side"].tolist()
        first = self.place_of(Side.PREDICTION, 0)
        return [
            (Side(sides[place]), int(place) if place < first else int(place) - first)
            for place in places[np.argsort(weight, kind="stable")]
        ]


def audited(here: Here, first: AmbiguousPolicy, second: AmbiguousPolicy) -> Audited:
    """Compare two policies; for workers."""
    audit = audit_policies(here.evaluation, first, second)
    return Audited(here, audit, audit.objects, spill_table(here.evaluation))


class AuditPanel(ListPanel):
    """Two menus of policies, what the choice changes, and the objects behind it."""

    marks_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.first, self.second = (_policy_menu(which) for which in ("first", "second"))
        self.effect = FigureTable()
        self.marked = QCheckBox("Mark")
        self.marked.setChecked(True)
        self.marked.setToolTip("Draw black and white dashes around the listed objects.")
        self.marked.toggled.connect(lambda _on: self.marks_changed.emit())
        self.lists = ChoiceButtons(_LISTS, self.marked)
        self.lists.chosen.connect(lambda _list: self._on_list())
        self.headline, self.sentence = RichLabel(wraps=True), RichLabel(wraps=True)
        self._audited: Audited | None = None
        self._listed: list[tuple[Side, int]] = []
        menus = FlowBar(_beside("Compare", self.first), _beside("with", self.second))
        fill(self._rows, menus, self.headline, self.effect, self.lists, self.hint)
        fill(self._rows, Grow(self.table), self.sentence)
        self._rows.addStretch(0)
        self.table.row_chosen.connect(lambda row, _column: self._show_sentence(row))
        self.show_nothing(EMPTY)

    @property
    def policies(self) -> tuple[AmbiguousPolicy, AmbiguousPolicy]:
        """The two policies that are chosen."""
        return self.first.choice, self.second.choice

    def object_at(self, row: int) -> tuple[Side, int]:
        """Return side and row of the object in a row of the table."""
        return self._listed[row]

    def listed_objects(self) -> list[tuple[Side, int]]:
        """Return side and row of the objects that are listed."""
        return [self._listed[row] for row in self.table.rows()]

    def show_nothing(self, why: str) -> None:
        """Show why there is nothing to audit."""
        self._audited, self._listed = None, []
        for widget in (self.effect, self.headline, self.lists, self.table):
            widget.hide()
        self.table.show_rows([])
        self.sentence.clear()
        self.hint.show_text(why)

    def show_audit(self, audited: Audited) -> None:
        """Show what two policies make of a region."""
        self._audited = audited
        for widget in (self.effect, self.headline, self.lists):
            widget.show()
        self._show_headline(audited)
        self._show_effect(audited.audit)
        self.lists.show_counts({one: len(audited.listed(one)) for one in AuditList})
        self._show_list(audited)

    def show_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, where it is listed."""
        wanted = None if selection is None else (selection.side, selection.row)
        row = self._listed.index(wanted) if wanted in self._listed else None
        if row != self.table.selected():
            self.table.select(row)
        self._show_sentence(row)

    def _on_list(self) -> None:
        if self._audited is not None:
            self._show_list(self._audited)
            self.marks_changed.emit()

    def _show_headline(self, audited: Audited) -> None:
        audit = audited.audit
        first, second = (SETTING_WORDS[policy] for policy in audited.policies)
        before, after = audit.first.metrics.pq, audit.second.metrics.pq
        self.headline.set_rich(
            f"<b>PQ {ratio_text(before)} → {ratio_text(after)} "
            f"({signed_text(audit.pq_difference)})</b> from “{first}” to “{second}”"
        )
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

    def _show_effect(self, audit: PolicyAudit) -> None:
        header = [
            Cell("Class", "Classes that change; the last line is the region."),
            Cell("ΔTP", "Change in TP from the first policy to the second."),
            Cell("ΔFP", f"Change in FP. {_PQ_COUNTS}"),
            Cell("ΔFN", f"Change in FN. {_PQ_COUNTS}"),
            Cell("PQ", "Panoptic quality under the second policy."),
            Cell("ΔPQ", "PQ under the second policy minus that under the first."),
        ]
        records = audit.effect.to_dict("records")
        # Only what the choice of a policy changes.
        rows = [_effect_cells(r) for r in records if r["class"] == "mean" or _differs(r)]
        self.effect.fill(header, rows)

    def _show_list(self, audited: Audited) -> None:
        self.sentence.clear()
        self._listed = audited.listed(self.lists.choice)
        if self.lists.choice is AuditList.SPILL:
            self.table.show_rows(_spill_columns(audited.spill))
        else:
            places = [audited.place_of(*at) for at in self._listed]
            self.table.show_rows(_object_columns(audited.objects.iloc[places], audited.policies))
        self.table.setVisible(bool(self._listed))
        none = NOTHING if audited.has_area else NO_AREA
        self.hint.show_text("" if self._listed else none)

    def _show_sentence(self, row: int | None) -> None:
        if self._audited is None or row is None:
            self.sentence.clear()
            return
        side, own_row = self._listed[row]
        record = self._audited.objects.iloc[self._audited.place_of(side, own_row)]
        title = html.escape(shown(f"{side.value} {record['id']} · {record['class']}"))
        lines = [f"<b>{title}</b>"]
        policies = self._audited.policies
        for policy, which in zip(policies, ("first", "second"), strict=True):
            reason = record[f"reason_{which}"] or "does not touch the ambiguous area"
            lines.append(f"{SETTING_WORDS[policy]}: {_fate(record, which)} – {reason}")
        self.sentence.set_rich("<br>".join(lines))


class AuditPresenter(RegionPresenter[AuditPanel, Audited]):
    """Audits the ambiguous policy on the region and team that are shown."""

    title = "Ambiguous"
    key = "Alt-a"
    panel_type = AuditPanel
    marks_name = MARKS_LAYER
    on_slide = slide_texts.AUDIT
    compute = staticmethod(audited)

    def __init__(self, around: Surroundings, panel: AuditPanel) -> None:
        super().__init__(around, panel)
        self._drawing: Latest[NDArray[np.uint8]] = Latest(self._on_drawn)
        self._policy_set: AmbiguousPolicy | None = None

    @property
    def is_busy(self) -> bool:
        """Whether policies are being compared, or objects marked."""
        return super().is_busy or self._drawing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        panel = self.panel
        return [
            *super().connections(),
            (self.session.selection_changed, self._on_selection),
            (panel.first.chosen, self.refresh),
            (panel.second.chosen, self.refresh),
            (panel.table.row_chosen, self._on_row),
            (panel.table.centre_wanted, self.centre_selected),
            (panel.marks_changed, self.mark),
        ]

    def close(self) -> None:
        """Stop, and take the marks away."""
        self._drawing.close()
        super().close()

    def compute_now(self) -> None:
        """Compare the policy that is set with another one, until the user chooses."""
        policy = self.session.settings.ambiguous
        if policy is not self._policy_set:
            self._policy_set = policy
            majority, clip = AmbiguousPolicy.MAJORITY, AmbiguousPolicy.CLIP
            self.panel.first.show_choice(policy)
            self.panel.second.show_choice(majority if policy is not majority else clip)
        super().compute_now()

    def choices(self) -> tuple[object, ...]:
        """Return the two policies."""
        return self.panel.policies

    def show(self, value: Audited) -> None:
        """List what the choice of a policy changes."""
        self.panel.show_audit(value)
        self.panel.show_selection(self.session.selection)

    def show_nothing(self, why: str) -> None:
        """Show why there is nothing to audit."""
        self.panel.show_nothing(why)

    def mark(self) -> None:
        """Draw dashes around what is listed, in a worker."""
        objects = self.panel.listed_objects()
        wanted = self.panel.marked.isChecked() and self.is_in_sight
        if self.value is not None and wanted and objects:
            self._drawing.start(partial(_marked, self.value.here, objects))
            return
        self._drawing.drop()
        self.marks.remove()

    def _on_drawn(self, picture: NDArray[np.uint8]) -> None:
        if self.value is not None:
            self.marks.show(picture, PixelSize.of(self.value.here.snapshot))

    def _on_row(self, row: int, _column: int) -> None:
        self.select_row(*self.panel.object_at(row))

    def _on_selection(self, selection: Selection | None) -> None:
        if self.value is not None:
            self.panel.show_selection(selection)


def _marked(here: Here, objects: Sequence[tuple[Side, int]]) -> NDArray[np.uint8]:
    """Draw dashes around objects, given by side and row; for workers."""
    pair, outcomes = here.evaluation.pair, here.evaluation.outcomes
    parts = []
    for side, labels in ((Side.REFERENCE, pair.reference), (Side.PREDICTION, pair.prediction)):
        rows = np.array([row for own, row in objects if own is side], np.int64)
        parts.append((labels, rows + 1, outcomes.side(side).bbox[rows]))
    return marks.dashed(here.snapshot.shape, parts)


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


def _beside(word: str, menu: QWidget) -> QWidget:
    """Keep a word and a menu together in a line that may be broken."""
    pair = QWidget()
    lay_out(pair, (word, menu))
    return pair


def _effect_cells(record: dict[Hashable, Any]) -> list[Cell]:
    name = str(record["class"])
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
    return cells


def _differs(record: dict[Hashable, Any]) -> bool:
    """Return whether a class has another figure under the second policy."""
    changes = (float(record[f"{key}_difference"]) for key in ("tp", "fp", "fn", "iou_sum"))
    return any(change != 0 for change in changes)


def _fate(record: pd.Series, which: str) -> str:
    cause = record[f"cause_{which}"]
    status = record[f"status_{which}"]
    return f"{status} ({styles.CAUSE_WORDS[Cause(cause)]})" if cause else str(status)


_SIDE_WORDS = {str(Side.REFERENCE): "ref.", str(Side.PREDICTION): "pred."}


def _object_columns(
    part: pd.DataFrame, policies: tuple[AmbiguousPolicy, AmbiguousPolicy]
) -> list[Column]:
    """Return the columns of objects under two policies; tooltips of a row state the reasons."""
    words = [SETTING_WORDS[policy] for policy in policies]
    reasons = [
        "; ".join(
            f"{policy}: {reason}" for policy, reason in zip(words, pair, strict=True) if reason
        )
        or "its partner changes"
        for pair in zip(part["reason_first"], part["reason_second"], strict=True)
    ]
    why = reasons.__getitem__
    sides = _words(_SIDE_WORDS[side] for side in part["side"])
    inside = (part["ambiguous_px"] / part["area_px"]).to_numpy(float)
    return [
        Column("Side", "Annotation or prediction.", sides, tooltip=why, width=40, is_text=True),
        Column("Id", "Id of the object.", part["id"].to_numpy(), tooltip=why, width=44),
        *(
            _outcome_column(
                SETTING_WORDS[policy],
                f"Its outcome under the policy “{SETTING_WORDS[policy]}” ({policy}).",
                part[f"status_{which}"].tolist(),
                part[f"cause_{which}"].tolist(),
                stretch=True,
            )
            for policy, which in zip(policies, ("first", "second"), strict=True)
        ),
        Column(
            "ΔPQ",
            "Contribution to the difference in PQ, leave-one-out; partners that change together "
            "have one contribution between them.",
            part["pq_contribution"].to_numpy(float),
            text=signed_text,
            tooltip=why,
            width=58,
        ),
        _inside_column(inside, tooltip=why, width=54),
    ]


def _spill_columns(spill: pd.DataFrame) -> list[Column]:
    """Return what is shown of predictions that leak out of the ambiguous area."""
    return [
        Column("Id", "Id of the prediction.", spill["id"].to_numpy(), width=44),
        Column("Class", "Predicted class.", _words(spill["class"]), is_text=True, stretch=True),
        _outcome_column(
            "Status",
            "Its outcome under the current policy.",
            spill["status"].tolist(),
            spill["cause"].tolist(),
            width=80,
        ),
        _inside_column(spill["ambiguous_share"].to_numpy(float), width=56),
        Column(
            "Outside px",
            "Pixels that stick out of the ambiguous area.",
            spill["remainder_px"].to_numpy(),
            text=lambda value: count_text(int(value)),
            width=74,
        ),
        Column(
            "FP by that",
            "It is an FP only because it sticks out: most of it is in the ambiguous area.",
            np.where(spill["fp_by_spill"].to_numpy(bool), "yes", ""),
            width=74,
            is_text=True,
        ),
    ]


def _inside_column(shares: NDArray[np.float64], **more: Any) -> Column:
    return Column(
        "Inside", "Share of its pixels in the ambiguous area.", shares, text=share_text, **more
    )


def _outcome_column(
    title: str, meaning: str, statuses: list[str], causes: list[str], **more: Any
) -> Column:
    words = {str(key): text for key, text in styles.CAUSE_MEANINGS.items()}

    def tooltip(row: int) -> str:
        return words.get(causes[row]) or styles.STATUS_MEANINGS[Status(statuses[row])]

    def colour(row: int) -> Rgb:
        return styles.STATUS_COLOURS[Status(statuses[row])]

    values = _words(statuses)
    return Column(title, meaning, values, tooltip=tooltip, colour=colour, is_text=True, **more)


def _words(values: Iterable[str]) -> NDArray[np.str_]:
    words: NDArray[np.str_] = np.array(list(values), dtype=np.str_)
    return words
