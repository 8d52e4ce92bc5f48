"""Two ambiguous policies side by side: what flips, why, and what that does to PQ."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.evaluation.audit import PolicyAudit, audit_policies, spill_table
from napari_panoptic.evaluation.evaluate import Evaluation
from napari_panoptic.evaluation.settings import AmbiguousPolicy
from napari_panoptic.evaluation.vocabulary import Side, Status
from napari_panoptic.regions import Rgb
from napari_panoptic.session import RegionSnapshot, Selection
from napari_panoptic.viewer import marks, styles
from napari_panoptic.viewer.desk_part import Connections, Surroundings
from napari_panoptic.viewer.mark_layer import MarkLayer
from napari_panoptic.viewer.part_work import Latest, Material, SeenPart, material
from napari_panoptic.viewer.styles import count_text, ratio_text, signed_count_text, signed_text
from napari_panoptic.viewer.widgets.array_table import ArrayTable, Column
from napari_panoptic.viewer.widgets.parts import COMPACT_COMBO, Cell, FigureTable

EMPTY = (
    "Nothing to audit. Without a cohort: open one. Otherwise this region has no annotation, or "
    "no prediction of this team: choose another region or team."
)
NO_AREA = (
    "This region has no ambiguous area: every policy gives the same figures. Choose a region "
    "with a hatched area."
)
NOTHING = "No object of this kind here. Choose other policies, or another list."
MARKS_LAYER = "audited objects"
MIN_LIST_PX = 92

POLICY_MEANINGS: Mapping[AmbiguousPolicy, str] = {
    AmbiguousPolicy.CLIP: (
        "Ambiguous pixels are cut from annotation and predictions; what sticks out is judged."
    ),
    AmbiguousPolicy.CLIP_PREDICTIONS: "Ambiguous pixels are cut from the predictions only.",
    AmbiguousPolicy.MAJORITY: (
        "Ambiguous pixels leave the IoU; an unmatched object mostly inside is ignored."
    ),
    AmbiguousPolicy.KEEP: "Nothing is excluded.",
}


class Listed(StrEnum):
    """Which objects the table lists."""

    FLIPS = "flips"
    TOUCHING = "touching"
    SPILL = "spill"


_LISTED_MEANINGS: Mapping[Listed, str] = {
    Listed.FLIPS: "Objects whose status is not the same under both policies.",
    Listed.TOUCHING: "All objects with a pixel in the ambiguous area, and what is done with them.",
    Listed.SPILL: (
        "Predictions that leak out of an ambiguous area, under the policy that is set: the "
        "remainder outside may count as an FP."
    ),
}


@dataclass(frozen=True, eq=False)
class Audited:
    """What is shown: the policies compared, and the spill under the one that is set."""

    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation
    audit: PolicyAudit
    objects: pd.DataFrame
    spill: pd.DataFrame
    rows: NDArray[np.int64]  # of its side, for each row of `objects`

    @property
    def has_area(self) -> bool:
        """Whether there is an ambiguous area at all."""
        area = self.evaluation.pair.ambiguous
        return area is not None and bool(area.any())


def audited(known: Material, team: str, first: str, second: str) -> Audited:
    """Compare two policies; for workers."""
    evaluation = known.complete()[team]
    audit = audit_policies(evaluation, first, second)
    outcomes = evaluation.outcomes
    rows = np.concatenate([np.arange(len(outcomes.side(side))) for side in Side])
    return Audited(
        known.snapshot, team, evaluation, audit, audit.objects, spill_table(evaluation), rows
    )


class AuditPanel(QScrollArea):
    """Two menus of policies, what the choice changes, and the objects behind it."""

    policies_chosen = Signal()
    object_chosen = Signal(Side, int)
    centre_wanted = Signal()
    marks_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.first, self.second = QComboBox(), QComboBox()
        self.effect = FigureTable()
        self.table = ArrayTable()
        self.marked = QCheckBox("mark on the image")
        self._lists: dict[Listed, QPushButton] = {}
        self._headline = QLabel()
        self._headline.setWordWrap(True)
        self._hint = QLabel()
        self._hint.setWordWrap(True)
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._listed = Listed.FLIPS
        self._audited: Audited | None = None
        self._shown: list[tuple[Side, int]] = []
        self._lay_out()
        self.show_audit(None)

    @property
    def policies(self) -> tuple[str, str]:
        """The two policies that are compared."""
        return self.first.currentText(), self.second.currentText()

    @property
    def listed(self) -> Listed:
        """Which objects are listed."""
        return self._listed

    def button(self, listed: Listed) -> QPushButton:
        """Give the button of a list."""
        return self._lists[listed]

    def headline_text(self) -> str:
        """Give what is said about PQ."""
        return self._headline.text()

    def hint_text(self) -> str:
        """Give the hint; empty where objects are listed."""
        return "" if self._hint.isHidden() else self._hint.text()

    def sentence_text(self) -> str:
        """Give what is said about the selected object."""
        return self._sentence.text()

    def listed_objects(self) -> list[tuple[Side, int]]:
        """Give side and row of the objects that are listed."""
        return [self._shown[row] for row in self.table.rows()]

    def set_policies(self, first: str, second: str) -> None:
        """Choose policies without telling."""
        for menu, policy in ((self.first, first), (self.second, second)):
            with QSignalBlocker(menu):
                menu.setCurrentText(policy)

    def choose_list(self, listed: Listed) -> None:
        """List other objects."""
        self._listed = listed
        for name, button in self._lists.items():
            with QSignalBlocker(button):
                button.setChecked(name is listed)
        self._fill()
        self.marks_changed.emit()

    def show_audit(self, audited: Audited | None) -> None:
        """Show what two policies make of a region; a hint where there is nothing to audit."""
        self._audited = audited
        there = audited is not None
        for widget in (self.effect, self._headline, self.marked, *self._lists.values()):
            widget.setVisible(there)
        if audited is not None:
            self._show_headline(audited)
            self._fill_effect(audited)
            frame = audited.objects
            counts = {
                Listed.FLIPS: int(frame["flips"].sum()),
                Listed.TOUCHING: int((frame["ambiguous_px"] > 0).sum()),
                Listed.SPILL: len(audited.spill),
            }
            for name, number in counts.items():
                self._lists[name].setText(f"{name} {count_text(number)}")
        self._fill()

    def show_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, where it is listed."""
        wanted = None if selection is None else (selection.side, selection.row)
        row = self._shown.index(wanted) if wanted in self._shown else None
        if row != self.table.selected():
            self.table.select(row)
        self._show_sentence(row)

    def _show_headline(self, audited: Audited) -> None:
        audit, (first, second) = audited.audit, self.policies
        before, after = audit.first.metrics.pq, audit.second.metrics.pq
        text = (
            f"<b>PQ {ratio_text(before)} → {ratio_text(after)} "
            f"({signed_text(audit.pq_difference)})</b> from {first} to {second}"
        )
        self._headline.setText(text)
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
        self._headline.setToolTip(tooltip)

    def _fill_effect(self, audited: Audited) -> None:
        header = [
            Cell("Class", "Classes that change; the last line is the region."),
            Cell("TP", "Under the second policy, and the change."),
            Cell("FP", "Under the second policy, and the change."),
            Cell("FN", "Under the second policy, and the change."),
            Cell("PQ", "Panoptic quality under the second policy."),
            Cell("change", "PQ under the second policy minus that under the first."),
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
                text = f"{after} ({signed_count_text(change)})" if change else after
                before = count_text(int(record[f"{key}_first"]))
                cells.append(Cell(text, f"{before} under the first policy.", bold=bool(change)))
            for key, write in (("pq_second", ratio_text), ("pq_difference", signed_text)):
                value = float(record[key])
                why = "Undefined: no such object under one of the policies."
                cells.append(Cell(write(value), why if math.isnan(value) else ""))
            rows.append(cells)
        self.effect.fill(header, rows)

    def _fill(self) -> None:
        self._sentence.clear()
        audited = self._audited
        if audited is None:
            self._shown = []
            self.table.show_rows([])
        elif self._listed is Listed.SPILL:
            self._shown = [(Side.PREDICTION, int(row)) for row in audited.spill["row"]]
            self.table.show_rows(_spill_columns(audited.spill))
        else:
            frame = audited.objects
            chosen = frame["flips"] if self._listed is Listed.FLIPS else frame["ambiguous_px"] > 0
            places = np.flatnonzero(chosen.to_numpy(bool))
            weight = -np.nan_to_num(np.abs(frame["pq_contribution"].to_numpy(float)[places]))
            places = places[np.argsort(weight, kind="stable")]
            part = frame.iloc[places]
            self._shown = [
                (Side(side), int(row))
                for side, row in zip(part["side"], audited.rows[places], strict=True)
            ]
            self.table.show_rows(_object_columns(part, self.policies))
        is_empty = not self._shown
        self.table.setVisible(not is_empty)
        self._hint.setVisible(is_empty)
        if audited is None:
            self._hint.setText(EMPTY)
        else:
            self._hint.setText(NOTHING if audited.has_area else NO_AREA)

    def _show_sentence(self, row: int | None) -> None:
        audited = self._audited
        if audited is None or row is None:
            self._sentence.clear()
            return
        side, own_row = self._shown[row]
        reference = len(audited.evaluation.outcomes.reference)
        place = own_row if side is Side.REFERENCE else reference + own_row
        record = audited.objects.iloc[place]
        lines = [f"<b>{side.value} {record['id']} · {record['class']}</b>"]
        for policy, which in zip(self.policies, ("first", "second"), strict=True):
            reason = record[f"reason_{which}"] or "does not touch the ambiguous area"
            lines.append(f"{policy}: {_fate(record, which)} – {reason}")
        self._sentence.setText("<br>".join(lines))

    def _lay_out(self) -> None:
        menus = QHBoxLayout()
        menus.setSpacing(3)
        for word, menu, meaning in (
            ("Compare", self.first, "The first policy."),
            ("with", self.second, "The second policy."),
        ):
            menu.setStyleSheet(COMPACT_COMBO)
            for policy in AmbiguousPolicy:
                menu.addItem(str(policy))
                menu.setItemData(
                    menu.count() - 1, POLICY_MEANINGS[policy], Qt.ItemDataRole.ToolTipRole
                )
            menu.setToolTip(f"{meaning} Open the menu and rest on a policy to read what it does.")
            menu.currentIndexChanged.connect(lambda _index: self.policies_chosen.emit())
            menus.addWidget(QLabel(word))
            menus.addWidget(menu, 1)
        lists = QHBoxLayout()
        lists.setSpacing(3)
        group = QButtonGroup(self)
        for listed in Listed:
            button = self._lists[listed] = QPushButton(listed.value)
            button.setCheckable(True)
            button.setChecked(listed is Listed.FLIPS)
            button.setToolTip(_LISTED_MEANINGS[listed])
            button.clicked.connect(lambda _=False, chosen=listed: self.choose_list(chosen))
            group.addButton(button)
            lists.addWidget(button)
        lists.addStretch(1)
        self.marked.setChecked(True)
        self.marked.setToolTip("Draw black and white dashes around the listed objects.")
        self.marked.toggled.connect(lambda _on: self.marks_changed.emit())
        lists.addWidget(self.marked)
        # In a low dock the panel scrolls, so that nothing is squeezed.
        body = QWidget()
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setMinimumHeight(MIN_LIST_PX)
        layout = QVBoxLayout(body)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addLayout(menus)
        layout.addWidget(self._headline)
        layout.addWidget(self.effect)
        layout.addLayout(lists)
        layout.addWidget(self._hint)
        layout.addWidget(self.table, 1)
        layout.addWidget(self._sentence)
        layout.addStretch(0)
        self.table.row_chosen.connect(self._on_row)
        self.table.centre_wanted.connect(lambda _row: self.centre_wanted.emit())

    def _on_row(self, row: int, _column: int) -> None:
        self.object_chosen.emit(*self._shown[row])
        self._show_sentence(row)


_SIDE_WORDS = {str(Side.REFERENCE): "ref.", str(Side.PREDICTION): "pred."}


def _differs(record: dict[Hashable, Any]) -> bool:
    """Tell whether a class has another figure under the second policy."""
    changes = (float(record[f"{key}_difference"]) for key in ("tp", "fp", "fn", "iou_sum"))
    return any(change != 0 for change in changes)


def _fate(record: pd.Series, which: str) -> str:
    cause = record[f"cause_{which}"]
    status = record[f"status_{which}"]
    return f"{status} ({cause})" if cause else str(status)


def _object_columns(part: pd.DataFrame, policies: tuple[str, str]) -> list[Column]:
    reasons = [
        "; ".join(
            f"{policy}: {reason}" for policy, reason in zip(policies, pair, strict=True) if reason
        )
        or "its partner changes"
        for pair in zip(part["reason_first"], part["reason_second"], strict=True)
    ]
    columns = [
        Column(
            "Side",
            "Annotation or prediction.",
            _words(_SIDE_WORDS[side] for side in part["side"]),
            width=40,
            is_text=True,
        ),
        Column("Id", "Id of the object.", part["id"].to_numpy(), width=44),
    ]
    for policy, which in zip(policies, ("first", "second"), strict=True):
        statuses = part[f"status_{which}"].tolist()
        causes = part[f"cause_{which}"].tolist()
        columns.append(
            Column(
                policy,
                f"What becomes of it under the policy {policy}.",
                _words(part[f"status_{which}"]),
                tooltip=partial(_tooltip, statuses, causes),
                colour=partial(_colour, statuses),
                width=88,
                is_text=True,
            )
        )
    columns += [
        Column(
            "ΔPQ",
            "Contribution to the difference in PQ, leave-one-out; partners that change together "
            "have one contribution between them.",
            part["pq_contribution"].to_numpy(float),
            text=lambda value: signed_text(float(value)),
            width=58,
        ),
        Column(
            "inside",
            "Share of its pixels in the ambiguous area.",
            (part["ambiguous_px"] / part["area_px"]).to_numpy(float),
            text=_percent,
            width=54,
        ),
        Column("Why", "What each policy does with it.", _words(reasons), width=420, is_text=True),
    ]
    return columns


def _spill_columns(spill: pd.DataFrame) -> list[Column]:
    statuses, causes = spill["status"].tolist(), spill["cause"].tolist()
    return [
        Column("Id", "Id of the prediction.", spill["id"].to_numpy(), width=44),
        Column("Class", "Predicted class.", _words(spill["class"]), width=80, is_text=True),
        Column(
            "Status",
            "What became of it under the policy that is set.",
            _words(spill["status"]),
            tooltip=partial(_tooltip, statuses, causes),
            colour=partial(_colour, statuses),
            width=80,
            is_text=True,
        ),
        Column(
            "inside",
            "Share of its pixels in the ambiguous area.",
            spill["ambiguous_share"].to_numpy(float),
            text=_percent,
            width=56,
        ),
        Column(
            "outside px",
            "Pixels that leak out of the ambiguous area.",
            spill["remainder_px"].to_numpy(),
            text=lambda value: count_text(int(value)),
            width=74,
        ),
        Column(
            "FP by spill",
            "It is an FP although most of it lies in the ambiguous area: only because it leaks.",
            np.where(spill["fp_by_spill"].to_numpy(bool), "yes", ""),
            width=74,
            is_text=True,
        ),
    ]


def _words(values: Iterable[str]) -> NDArray[np.str_]:
    words: NDArray[np.str_] = np.array(list(values), dtype=np.str_)
    return words


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _tooltip(statuses: list[str], causes: list[str], row: int) -> str:
    words = {str(key): meaning for key, meaning in styles.CAUSE_MEANINGS.items()}
    return words.get(causes[row]) or styles.STATUS_MEANINGS[Status(statuses[row])]


def _colour(statuses: list[str], row: int) -> Rgb:
    return styles.STATUS_COLOURS[Status(statuses[row])]


class AuditPart(SeenPart):
    """Audits the ambiguous policy on the region and team that are shown."""

    title = "Audit"
    key = "Alt-a"

    def __init__(self) -> None:
        super().__init__()
        self._panel = AuditPanel()
        self._latest: Latest[Audited] = Latest(self._show)
        self._audited: Audited | None = None
        self._marks: MarkLayer | None = None
        self._policy_set: AmbiguousPolicy | None = None
        self.watch(self._panel)

    @property
    def widget(self) -> AuditPanel:
        """The panel."""
        return self._panel

    @property
    def is_busy(self) -> bool:
        """Whether policies are being compared."""
        return self._latest.is_busy

    @property
    def marks(self) -> MarkLayer | None:
        """The marks on the image."""
        return self._marks

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        return [
            *super().connections(around),
            (around.session.selection_changed, self._panel.show_selection),
            (self._panel.policies_chosen, self.refresh),
            (self._panel.object_chosen, around.session.select_row),
            (self._panel.centre_wanted, self._on_centre),
            (self._panel.marks_changed, self._mark),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort."""
        self._marks = MarkLayer(around.viewer, MARKS_LAYER)
        self._policy_set = None
        super().attach(around)

    def detach(self) -> None:
        """Leave a cohort."""
        self._latest.drop()
        if self._marks is not None:
            (self._marks.forget if self.is_window_gone else self._marks.remove)()
        self._marks = self._audited = None
        super().detach()

    def compute_now(self) -> None:
        """Compare the two policies in a worker."""
        around = self.around
        if around is None:
            return
        self._follow_policy(around.session.settings.ambiguous)
        team = around.session.team
        known = None if team is None else material(around.session, teams=(team,))
        if known is None or team is None:
            self._latest.drop()
            self._audited = None
            self._panel.show_audit(None)
            self._mark()
            return
        first, second = self._panel.policies
        self._latest.start(lambda: audited(known, team, first, second))

    def on_sight(self, seen: bool) -> None:
        """Mark objects only while somebody looks at them here."""
        if seen:
            self._mark()
        elif self._marks is not None:
            self._marks.remove()

    def _follow_policy(self, policy: AmbiguousPolicy) -> None:
        """Compare the policy that is set with another one, until somebody chooses."""
        if policy is self._policy_set:
            return
        self._policy_set = policy
        other = (
            AmbiguousPolicy.MAJORITY
            if policy is not AmbiguousPolicy.MAJORITY
            else AmbiguousPolicy.CLIP
        )
        self._panel.set_policies(str(policy), str(other))

    def _show(self, value: Audited) -> None:
        if self.around is None:
            return
        self._audited = value
        self._panel.show_audit(value)
        self._panel.show_selection(self.around.session.selection)
        self._mark()

    def _mark(self) -> None:
        """Draw dashes around what is listed."""
        audited, layer = self._audited, self._marks
        if layer is None:
            return
        objects = self._panel.listed_objects()
        wanted = audited is not None and self._panel.marked.isChecked() and self.is_in_sight
        if audited is None or not wanted or not objects:
            layer.remove()
            return
        evaluation = audited.evaluation
        parts = []
        for side, labels in (
            (Side.REFERENCE, evaluation.pair.reference),
            (Side.PREDICTION, evaluation.pair.prediction),
        ):
            rows = np.array([row for own, row in objects if own is side], np.int64)
            parts.append((labels, rows + 1, evaluation.outcomes.side(side).bbox[rows]))
        layer.show(marks.dashed(audited.snapshot.shape, parts), audited.snapshot.mpp)

    def _on_centre(self) -> None:
        around = self.around
        if around is not None and around.session.selection is not None:
            around.link.scene.centre(around.session.selection)
