"""The panel of a planned review: the form of a plan, or its items and estimates."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtWidgets import (
    QProgressBar,
    QSpinBox,
    QWidget,
)

from napari_panoptic.review.plan.corrected import ALL
from napari_panoptic.review.verdicts import Share
from napari_panoptic.viewer.kit.figures import FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.keys import key_text
from napari_panoptic.viewer.kit.layouts import FlowBar, ScrollPanel, stack
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import ElidedLabel, PushButton, heading
from napari_panoptic.viewer.panels.review.inputs import StateLine
from napari_panoptic.viewer.panels.review.panel import UNDO_KEY
from napari_panoptic.viewer.panels.review.plan import words
from napari_panoptic.viewer.panels.review.plan.pages import AskPage, ItemBox

MORE_ITEMS = 50
"""Default number of items to add to a plan."""


class PlanPanel(ScrollPanel):
    """Form, items and estimates of a planned review; a view without logic."""

    extension_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, margins_px=(8, 4, 8, 4), spacing_px=5)
        self.ask, self.item = AskPage(), ItemBox()
        self.enter_name = PushButton("Enter your name…")
        self.begin, self.pause = PushButton("Begin the review"), PushButton("Pause")
        self.undo = PushButton(f"Undo   {key_text(UNDO_KEY)}")
        self.previous, self.following = PushButton("Previous item"), PushButton("Next open")
        self.again = PushButton("Show the item")
        self.of_class = ChoiceBox(meaning="Class of the figures.")
        self.export, self.extension = PushButton("Export estimates…"), PushButton("Add items")
        self.more, self.new = QSpinBox(), PushButton("New plan…")
        self.bar, self.headline = QProgressBar(), WrappedLabel()
        self.hint, self._problem, self._precision = (WrappedLabel() for _ in range(3))
        self._sentences, self._design, self._notes = (WrappedLabel() for _ in range(3))
        self._name, self.state = ElidedLabel(""), StateLine()
        self.table, self._review, self._going = FigureTable(), QWidget(), QWidget()
        self._explain()
        self._lay_out()
        self._wire()
        self.show_problem("")
        self.show_results(None, (), ())

    def show_hint(self, text: str, *, wants_name: bool = False) -> None:
        """Show only a sentence, with a button to enter the name if it is missing."""
        self.hint.show_text(text)
        self.enter_name.setVisible(wants_name)
        if text:
            self.ask.hide()
            self._review.hide()

    def show_asking(self, *, has_plan: bool) -> None:
        """Show the form, with a button back to the current plan if there is one."""
        self.show_hint("")
        self.ask.back.setVisible(has_plan)
        self.ask.show()
        self._review.hide()

    def show_plan(self, name: str, *, is_on: bool, is_begun: bool) -> None:
        """Show a plan, and whether its items are being reviewed."""
        self.show_hint("")
        self.ask.hide()
        self._review.show()
        self._name.set_text(name)
        self.begin.setText("Continue the review" if is_begun else "Begin the review")
        self.begin.setVisible(not is_on)
        self._going.setVisible(is_on)

    def show_progress(self, share: Share, headline: str, precision: str) -> None:
        """Show the progress and the current estimate."""
        self.bar.setRange(0, max(share.total, 1))
        self.bar.setValue(share.done)
        self.headline.setText(headline)
        self._precision.show_text(precision)

    def show_problem(self, text: str) -> None:
        """Show why there are no figures; nothing if there are."""
        self._problem.show_text(text[:1].upper() + text[1:])

    def show_results(
        self, sentences: str | None, rows: Sequence[words.Row], classes: Sequence[str]
    ) -> None:
        """Show the estimates as sentences and as a table; None if there are none yet."""
        self._sentences.setText(sentences or "No estimates yet. Review some items first.")
        choices = [Choice(name, "all classes" if name == ALL else name) for name in classes]
        self.of_class.show_among(choices, self.of_class.choice if choices else None)
        if choices and self.of_class.choice is None:
            self.of_class.show_choice(ALL)
        self.of_class.setVisible(len(choices) > 1)
        self.table.fill(*words.cells(rows))
        self.table.setVisible(bool(rows))
        self.export.setEnabled(sentences is not None)

    def show_design(self, design: str, notes: str) -> None:
        """Show the design and the notes."""
        self._design.show_text(design)
        self._notes.show_text(notes)

    # Texts, for tests and screen readers.

    def problem_text(self) -> str:
        """Return why there are no figures; empty if there are."""
        return "" if self._problem.isHidden() else self._problem.text()

    def result_text(self) -> str:
        """Return the estimates as sentences, the design, and the notes."""
        return "\n".join(at.text() for at in (self._sentences, self._design, self._notes))

    # Layout.

    def _explain(self) -> None:
        tooltips: dict[QWidget, str] = {
            self.begin: "Go to the first item without a verdict. Each verdict goes on to the next.",
            self.pause: "Pause the review. It resumes at the same item, even after a restart.",
            self.undo: "Withdraw your last verdict on an item in this window.",
            self.previous: "Go back to the previous item to change its verdict.",
            self.following: "Go to the first item without a verdict.",
            self.again: "Return to the item after looking elsewhere.",
            self.export: "Write the plan, verdicts and estimates as CSV and JSON files.",
            self.extension: "Draw more items for this plan and keep its verdicts.",
            self.more: "Number of items to add.",
            self.new: "Draw a new plan. This one and its verdicts stay in the review file.",
            self.enter_name: "Go to the reviewer's name in the Review panel.",
        }
        for widget, text in tooltips.items():
            widget.setToolTip(text)

    def _lay_out(self) -> None:
        self.headline.setStyleSheet("font-weight: bold")
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(10)
        self.more.setRange(1, 10_000)
        self.more.setValue(MORE_ITEMS)
        stack(
            self._going,
            self.item,
            FlowBar(self.undo, self.previous, self.following, self.again, self.pause),
        )
        stack(
            self._review,
            self._name,
            self.bar,
            self.headline,
            self._precision,
            FlowBar(self.begin),
            self._going,
            self.state,
            self._problem,
            heading("Results for the whole cohort"),
            self._sentences,
            self.of_class,
            self.table,
            self._design,
            self._notes,
            FlowBar(self.export, self.more, self.extension, self.new),
        )
        for widget in (self.hint, FlowBar(self.enter_name), self.ask, self._review):
            self._rows.addWidget(widget)
        self._rows.addStretch(1)

    def _wire(self) -> None:
        self.extension.pushed.connect(lambda: self.extension_wanted.emit(self.more.value()))
