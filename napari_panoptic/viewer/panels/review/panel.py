"""The review panel: the object, a large button per verdict, progress, and history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QGridLayout,
    QMenu,
    QProgressBar,
    QToolButton,
    QWidget,
)

from napari_panoptic.display.styles import UNDEFINED, count_text, ratio_text
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.verdicts import ReviewRecord, Share
from napari_panoptic.tables.figures import signed
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.layouts import (
    FlowBar,
    FoldingSection,
    Grow,
    ScrollPanel,
    fill,
    stack,
)
from napari_panoptic.viewer.kit.menus import MenuButton
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import (
    ElidedLabel,
    PushButton,
    ToolButton,
    opens_menu,
)
from napari_panoptic.viewer.panels.edits.panel import corrected_button, mend_button
from napari_panoptic.viewer.panels.review.compare import CompareDialog
from napari_panoptic.viewer.panels.review.history import HistoryList
from napari_panoptic.viewer.panels.review.inputs import (
    UNDO_KEY,
    LineField,
    NoteField,
    StateLine,
    TagField,
    VerdictButtons,
)
from napari_panoptic.viewer.state.preferences import PREFERENCES

NOTHING_TO_JUDGE = (
    "Nothing to judge here: this region has no prediction of this team, or no annotation. Choose "
    "another region or team."
)
NO_OBJECT = "Select an object, or press N for the next failure."
WHO = "Who reviews? Others do not see your verdicts."
LONGEST_NAME = 40
"""Letters of a name on a button."""
WHAT_IF = (
    "Figures if every verdict “prediction right” were the truth: such FNs are removed, such FPs "
    "become TPs with an IoU of 1 (so SQ is an upper bound), such misclassified pairs become TPs."
)


class ReviewExport(StrEnum):
    """The files that can be written, in the words of the menu."""

    OWN = "My verdicts as CSV…"
    ALL = "All reviewers' verdicts as CSV…"
    REGION = "This region as GeoJSON for QuPath…"


@dataclass(frozen=True)
class BeforeAfter:
    """Figures as they are, and as they would be."""

    title: str
    before: Mapping[str, float]
    after: Mapping[str, float]


class ReviewPanel(ScrollPanel):
    """The widget of the review; it shows and reports, and decides nothing."""

    named = Signal(str)
    typing_ended = Signal()  # Enter or Esc in a field
    export_wanted = Signal(ReviewExport)
    action_wanted = Signal(object)  # ObjectAction
    corrected_wanted = Signal(str)  # the format of the corrected annotation

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, margins_px=(8, 4, 8, 4), spacing_px=5)
        self.settings = FoldingSection("Reviewer")
        self.name = LineField()
        self.same = PushButton()
        self.verdicts = VerdictButtons()
        self.note, self.tags = NoteField(), TagField()
        self.undo = PushButton(f"Undo   {UNDO_KEY}")
        self.withdrawal = PushButton("Withdraw")
        self.following = PushButton("Next open   Space")
        self.compare = PushButton("Compare reviewers…")
        self.compare_dialog = CompareDialog(self)
        self.goes_on = _switch("Next after a verdict")
        self.mends_at_once = _switch("At once, with each verdict")
        self.mend = mend_button(self.action_wanted.emit)
        self.corrected = corrected_button(self.corrected_wanted.emit)
        self.mend.gather(None, self.corrected, self.mends_at_once)
        self.shows_reviewer = _switch("Reviewer and file")
        self.shows_what_if = _switch("If the verdicts were right")
        self.place = PushButton("Change file…")
        self.suggestion = PushButton("Use my own folder")
        self.retry = PushButton("Try again")
        self.region_progress, self.cohort_progress = QProgressBar(), QProgressBar()
        self.stop = PushButton("Stop")
        self.history = HistoryList()
        self.what_if = FoldingSection("If the verdicts were right", WHAT_IF)
        self.end_adjudication = PushButton("Stop deciding")
        self.object_title = ElidedLabel(NO_OBJECT)
        self.state = StateLine()
        self._draft = PlainLabel("draft")
        self.where = ElidedLabel("", mode=Qt.TextElideMode.ElideMiddle)
        self._who = WrappedLabel(WHO)
        self._as = ElidedLabel()
        self._problem, self._adjudication = QWidget(), QWidget()
        self._problem_text = WrappedLabel()
        self._adjudicated, self._opinions = WrappedLabel(), WrappedLabel()
        self._figures = FigureTable()
        self._figures_hint = WrappedLabel(
            "Shows how the verdicts “prediction right” would change the figures."
        )
        self._export = QToolButton()
        self._shown: tuple[str, str] = ("", "")
        self._previous = self._reviewer = ""
        self._explain()
        self._lay_out()
        self._wire()
        self.show_object(None, None, hint=NOTHING_TO_JUDGE)
        self.show_adjudication("")
        self.show_progress(None, None, busy=None)
        self.show_figures([])
        self.history.show_object([])
        self.history.show_last([])

    # What is shown.

    def show_reviewer(self, name: str, *, previous: str = "") -> None:
        """Show who reviews; without a name, ask for one and offer the previous one."""
        if not self.name.hasFocus():
            self.name.setText(name)
        self.name.setPlaceholderText("your name")
        self._who.setVisible(not name)
        self._previous = previous
        self.same.setVisible(bool(previous) and not name)
        short = previous if len(previous) <= LONGEST_NAME else f"{previous[:LONGEST_NAME]}…"
        self.same.setText(shown(f"Continue as {short}").replace("&", "&&"))
        self.same.setToolTip(shown(f"Review as {previous}, who reviewed last."))
        self._reviewer = name
        self._show_heading()
        self.verdicts.show_reviewer(name)

    def show_object(
        self,
        title: str | None,
        record: ReviewRecord | None,
        *,
        verdict: Verdict | None = None,
        hint: str | None = None,
        fresh: bool = True,
        draft: tuple[str, str] | None = None,
    ) -> None:
        """Show the selected object and its verdict.

        Parameters
        ----------
        title
            The name of the object; None without a selection.
        record
            The verdict on it, or None; also where several objects are selected.
        verdict
            The verdict that all selected objects have, or None.
        hint
            The text without a selection; how to make one if None.
        fresh
            Whether it is another object than before: tags and note are then its own.
        draft
            Tags and note that were typed but are not kept with a verdict.
        """
        self.object_title.set_text(title or hint or NO_OBJECT)
        self.verdicts.show_verdict(verdict, enabled=title is not None)
        self.withdrawal.setEnabled(record is not None)
        kept = ("", "") if record is None else (record.tag, record.note)
        # Text being typed stays: it is the draft.
        if fresh or kept != self._shown:
            self._shown = kept
            tags, note = draft or kept
            self.tags.set_text(tags)
            self.note.set_text(note)
        self._show_draft()

    def show_mending(self, at_once: bool) -> None:
        """Show whether verdicts mend the annotation at once, and remember it."""
        self.mends_at_once.setChecked(at_once)
        self.mend.setText("Mend: at once" if at_once else "Mend")
        _on_mends_at_once(at_once)

    def show_adjudication(self, text: str, opinions: str = "") -> None:
        """Show between whom is decided, and their verdicts on the object; empty hides it."""
        self._adjudication.setVisible(bool(text))
        self._adjudicated.setText(text)
        self._opinions.show_text(opinions)

    def show_place(self, path: Path, *, is_there: bool) -> None:
        """Show where verdicts are kept."""
        verb = "Kept in" if is_there else "Will be kept in"
        self.where.set_text(f"{verb} {path.parent.name}/{path.name}", tooltip=str(path))

    def show_problem(self, problem: ReviewError | None) -> None:
        """Show why the review file cannot be used, and what to do; nothing if it can."""
        text = "" if problem is None else problem.message
        suggestion = None if problem is None else problem.suggestion
        self._problem.setVisible(bool(text))
        self._problem_text.setText(text[:1].upper() + text[1:])
        self.suggestion.setVisible(suggestion is not None)
        self.suggestion.setToolTip(
            "" if suggestion is None else shown(f"Keep verdicts in {suggestion}")
        )

    def show_progress(
        self,
        region: Share | None,
        cohort: Share | None,
        *,
        busy: tuple[int, int] | None,
        mended: tuple[int, int] = (0, 0),
        can_stop: bool = False,
    ) -> None:
        """Show how many failures have a verdict or were mended.

        Parameters
        ----------
        region, cohort
            Failures with a verdict, of those that there are; None if unknown.
        busy
            The number of regions counted, and to count; None if all are.
        mended
            Failures of the region and of the cohort that there are no longer.
        can_stop
            Whether counting can be stopped.
        """
        for bar, name, share, gone in (
            (self.region_progress, "region", region, mended[0]),
            (self.cohort_progress, "cohort", cohort, mended[1]),
        ):
            # A bar whose value is set paints the window at once; this lets it wait its turn.
            bar.setUpdatesEnabled(False)
            bar.setRange(0, max(share.total + gone if share else 0, 1))
            bar.setValue(share.done + gone if share else 0)
            text = UNDEFINED if share is None else _share_text(share, gone)
            if name == "cohort" and busy is not None:
                text += f" (counting {busy[0]} of {busy[1]} regions)"
            bar.setFormat(f"{name.capitalize()}: {text}")
            bar.setUpdatesEnabled(True)
        self.stop.setVisible(can_stop)

    def show_figures(self, units: Sequence[BeforeAfter]) -> None:
        """Show the figures that would follow if the verdicts were right."""
        header = [Cell("", WHAT_IF)]
        for unit in units:
            header += [
                Cell(unit.title, f"The {unit.title} as it is."),
                Cell("→", f"The {unit.title} if the verdicts were right. {WHAT_IF}"),
                Cell("±", "The difference."),
            ]
        names = list(units[0].before) if units else []
        rows = []
        for name in names:
            text = METRIC_TEXTS[name]
            row = [Cell(text.caption, text.meaning)]
            for unit in units:
                before, after = unit.before[name], unit.after[name]
                row += [
                    Cell(ratio_text(before), _undefined(before)),
                    Cell(ratio_text(after), _undefined(after), bold=True),
                    Cell(signed(after - before)),
                ]
            rows.append(row)
        self._figures.fill(header, rows)
        self._figures.setVisible(bool(units))
        self._figures_hint.setVisible(not units)

    # Texts, for tests and screen readers.

    def adjudication_text(self) -> str:
        """Return between whom is decided and their verdicts; empty in an own review."""
        if self._adjudication.isHidden():
            return ""
        return f"{self._adjudicated.text()}\n{self._opinions.text()}".strip()

    def reviewer_text(self) -> str:
        """Return the text about who reviews; empty while the name is asked for."""
        return "" if self._as.isHidden() else self._as.text()

    def problem_text(self) -> str:
        """Return why the file cannot be used; empty if it can."""
        return "" if self._problem.isHidden() else self._problem_text.text()

    def figures(self) -> list[list[str]]:
        """Return the figures before and after as they are shown."""
        return self._figures.texts()

    @property
    def has_draft(self) -> bool:
        """Whether tags and note differ from those that are kept with the verdict."""
        return self.details() != self._shown

    def details(self) -> tuple[str, str]:
        """Return tags and note as they stand in the fields."""
        return self.tags.text(), self.note.text().strip()

    def finish_name(self) -> None:
        """Take a name that was typed as if Enter had been pressed after it."""
        if self.name.isModified():
            self._on_name()

    def ask_for_name(self) -> None:
        """Put the cursor where the reviewer's name is to be entered."""
        self.settings.setVisible(True)
        self.name.setVisible(True)
        self.verticalScrollBar().setValue(0)  # type: ignore[union-attr]
        self.name.setFocus()

    # How it is made.

    def _explain(self) -> None:
        tooltips: dict[QWidget, str] = {
            self.note: "A remark, kept with the verdict. Enter saves it, Shift+Enter adds a line.",
            self._draft: "Not kept with a verdict yet: give one, or press Enter to change the one "
            "that this object has.",
            self.name: f"{WHO} Verdicts are kept under this name. Enter to change it.",
            self.undo: "Withdraw your last verdict of this window; the previous one counts again.",
            self.withdrawal: "Withdraw your verdict on the selected object, whenever it was "
            "given; the previous one counts again.",
            self.following: "The next failure without a verdict, in the order of N, from the first "
            "again after the last.",
            self.compare: "Two reviewers' agreement and the objects on which they differ. Shows "
            "you the other's verdicts: look when both are done.",
            self.end_adjudication: "Return to your own verdicts.",
            self.mends_at_once: "“Prediction right” mends the annotation at once as the verdict "
            "says; “both wrong” deletes the annotated object. Figures follow, Ctrl+Z undoes it.",
            self.goes_on: "Whether a verdict leads to the next failure without one, also in other "
            "regions.",
            self.place: "Choose another file for the verdicts, new or existing.",
            self.retry: "Try the review file again.",
            self.stop: "Stop counting the verdicts in the other regions.",
        }
        for widget, text in tooltips.items():
            widget.setToolTip(text)
        for bar, what in ((self.region_progress, "region"), (self.cohort_progress, "cohort")):
            bar.setToolTip(
                f"Failures of this {what} and team that have a verdict or were mended. A "
                "misclassified pair counts once."
            )
        menu = QMenu(self._export)
        for wanted in ReviewExport:
            if (entry := menu.addAction(str(wanted))) is not None:
                entry.triggered.connect(lambda _=False, w=wanted: self.export_wanted.emit(w))
        self._export.setText("Export")
        self._export.setToolTip("Write verdicts as CSV, or this region for QuPath.")
        self._export.setMenu(menu)
        opens_menu(self._export)

    def _lay_out(self) -> None:
        self.object_title.setStyleSheet("font-weight: bold")
        stack(self._problem, self._problem_text, FlowBar(self.suggestion, self.retry))
        self._problem.setVisible(False)
        stack(self._adjudication, self._adjudicated, self._opinions, FlowBar(self.end_adjudication))
        self.name.setAccessibleName("Reviewer's name")
        self.settings.add_beside_title(self.name)
        for widget in (self._who, self.where, FlowBar(self.place, self.compare)):
            self.settings.add(widget)
        self.what_if.add(self._figures_hint)
        self.what_if.add(self._figures)
        details, top = QGridLayout(), Qt.AlignmentFlag.AlignTop
        details.setSpacing(4)
        details.setColumnStretch(1, 1)
        details.addWidget(PlainLabel("Tags"), 0, 0)
        details.addWidget(self.tags, 0, 1, 1, 2)
        details.addWidget(PlainLabel("Note"), 1, 0, top)
        details.addWidget(self.note, 1, 1)
        details.addWidget(self._draft, 1, 2, top)
        more = MenuButton(
            "More",
            "Who reviews, what else to do with verdicts, and what they would change.",
            *(self.withdrawal, self.goes_on, self._export, None),
            *(self.shows_reviewer, self.shows_what_if),
        )
        fill(
            self._rows,
            self._problem,
            self._as,
            self.settings,
            FlowBar(self.same),
            self._adjudication,
            self.object_title,
            self.verdicts,
            details,
            self.state,
            FlowBar(self.undo, self.following, self.mend, more),
            self.region_progress,
            (Grow(self.cohort_progress), self.stop),
            Grow(self.history),
            self.what_if,
        )

    def _wire(self) -> None:
        self.name.editingFinished.connect(self._on_name)
        for edited in (self.note.edited, self.tags.edited):
            edited.connect(self._show_draft)
        # Enter and Esc leave the field: N and similar keys would go into the text.
        for field in (self.name, self.note, self.tags.line):
            field.entered.connect(self.typing_ended.emit)
            field.escaped.connect(self.typing_ended.emit)
        self.same.pushed.connect(self._on_same)
        self.settings.fold.toggled.connect(lambda _unfolded: self._show_heading())
        for switch, section in (
            (self.shows_reviewer, self.settings),
            (self.shows_what_if, self.what_if),
        ):
            switch.toggled.connect(section.fold.setChecked)
            section.fold.toggled.connect(switch.setChecked)
        self.what_if.fold.toggled.connect(self.what_if.setVisible)
        self.what_if.hide()
        self.goes_on.toggled.connect(_on_goes_on)
        self.mends_at_once.toggled.connect(self.show_mending)

    def _show_heading(self) -> None:
        """Show the name, or its field if the section is open or the name is missing."""
        is_open = self.settings.fold.isChecked() or not self._reviewer
        # A field that is hidden while one types in it would lose the typed text.
        self.name.setVisible(is_open or self.name.hasFocus())
        self.settings.setVisible(is_open or self.name.hasFocus())
        self._as.set_text(f"Reviewer: {self._reviewer}")
        self._as.setHidden(is_open)

    def _on_name(self) -> None:
        self.name.setModified(False)
        self.named.emit(self.name.text().strip())

    def _on_same(self) -> None:
        self.name.setText(self._previous)
        self.named.emit(self._previous)
        self.typing_ended.emit()

    def _show_draft(self) -> None:
        self._draft.setVisible(self.has_draft)


def _switch(text: str) -> ToolButton:
    """Make an entry of a menu that is on or off."""
    button = ToolButton(text)
    button.setCheckable(True)
    return button


def _on_mends_at_once(wanted: bool) -> None:
    PREFERENCES.mends_at_once = wanted


def _on_goes_on(wanted: bool) -> None:
    PREFERENCES.goes_on = wanted


def _undefined(value: float) -> str:
    return "Undefined: there is nothing to compute it from." if math.isnan(value) else ""


def _share_text(share: Share, mended: int) -> str:
    """Describe the progress; a failure that was mended is one that was reviewed."""
    done, total = count_text(share.done + mended), count_text(share.total + mended)
    more = f" ({count_text(mended)} mended)" if mended else ""
    return f"{done} of {total} failures reviewed{more}"
