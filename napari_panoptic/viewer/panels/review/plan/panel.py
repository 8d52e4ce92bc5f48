"""The panel of a planned review: the form of a plan, or its items and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QFormLayout,
    QGridLayout,
    QSpinBox,
    QWidget,
)

from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.review.plan.goal import Goal
from napari_panoptic.review.verdicts import Share
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, name_choices
from napari_panoptic.viewer.kit.keys import key_text
from napari_panoptic.viewer.kit.layouts import FlowBar, ScrollPanel, stack
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import (
    ElidedLabel,
    PushButton,
    ThinBar,
    WorkControls,
    heading,
)
from napari_panoptic.viewer.panels.review.inputs import (
    BUTTON_PX,
    SPACING_PX,
    UNDO_KEY,
    VERDICT_KEYS,
    StateLine,
    VerdictButtons,
    is_verdict_key,
    verdict_title,
    with_alt,
)
from napari_panoptic.viewer.panels.review.plan import words
from napari_panoptic.viewer.panels.review.plan.work import MINUTES, PRECISION, SECONDS

MORE_ITEMS = 50
"""Default number of items to add to a plan."""
_MOST_SEED = 2**31 - 1
_MOST_NUCLEI = 999
_ALONE = Choice(None, "no other team", "The figure of one team.")


class PlanForm(QWidget):
    """The form of a plan, and the plan that results from it."""

    changed = Signal()  # anything that decides the plan

    def __init__(self) -> None:
        super().__init__()
        self.quantity = ChoiceBox(words.QUESTIONS, "Figure that the review estimates.").shrinkable()
        self.quantity.show_choice(Quantity.F1)
        self.team = ChoiceBox(meaning="Team whose predictions are reviewed.").shrinkable()
        self.other = ChoiceBox(
            meaning="Estimate the difference between two teams. Each team gets its own sample."
        ).shrinkable()
        self.precision = QDoubleSpinBox()
        self.precision.setRange(0.005, 0.5)
        self.precision.setSingleStep(0.01)
        self.precision.setDecimals(3)
        self.precision.setPrefix("± ")
        self.precision.setValue(PRECISION)
        self.precision.setToolTip(
            "Half the width of the 95 % interval: 0.05 means 5 percentage points."
        )
        self.minutes = _number(1, 6000, MINUTES, "Time available for the whole review.", " min")
        self.seconds = _number(1, 3600, SECONDS, "Average time per verdict.", " s")
        self.items = _number(
            0,
            100_000,
            0,
            "How many items to review. At 0, as many as the precision needs and the time allows.",
            " items",
        )
        self.items.setSpecialValueText("as the precision needs")
        self.seed = _number(0, _MOST_SEED, 1, "The same seed and cohort produce the same plan.")
        self.is_blind = _tick(
            "Hide team and status",
            "Hide team names, status colours and object lists while you review the plan.",
        )
        self.is_shared = _tick(
            "Share with other reviewers",
            "One verdict per item is enough, from any reviewer. If not shared, each reviewer "
            "completes the plan and the agreement is shown.",
        )
        self.has_suspects = _tick(
            "More suspects",
            "Draw more annotations that several teams contradict. The estimates correct for this, "
            "and the interval for annotation errors usually becomes narrower.",
        )
        self.offer = WrappedLabel()
        self.counting = WorkControls(
            "Count the items",
            "Evaluate the team in all regions to count the items.",
            stop_tooltip="",
        )
        self.draw = PushButton(
            "Draw the plan", "Draw the items at random and save the plan in the review file."
        )
        self.back = PushButton("Back to the plan", "Return to the current plan.")
        self._lay_out()
        self.counting.start.hide()

    @property
    def goal(self) -> Goal | None:
        """The goal in the form; None without a team."""
        quantity, team, other = (box.choice for box in (self.quantity, self.team, self.other))
        if team is None:
            return None
        is_difference = other not in (None, team) and quantity is not Quantity.ERROR_RATE
        return Goal(
            quantity,
            (team, other) if is_difference else (team,),
            self.precision.value(),
            float(self.minutes.value()),
            float(self.seconds.value()),
        )

    @property
    def wanted_items(self) -> int | None:
        """The number of items that was typed; None where it follows from precision and time."""
        return self.items.value() or None

    @property
    def wants_suspects(self) -> bool:
        """Whether more suspects are to be drawn, which takes several teams."""
        return self.has_suspects.isEnabled() and self.has_suspects.isChecked()

    def offer_teams(self, teams: Sequence[str], team: str | None) -> None:
        """List the teams of a cohort."""
        self.team.offer(name_choices(teams))
        if team in teams:
            self.team.show_choice(team)
        self.other.offer([_ALONE, *name_choices(teams)])
        self.has_suspects.setEnabled(len(teams) > 1)
        self._show_others()

    def show_offer(self, text: str, *, may_draw: bool) -> None:
        """Show the plan for the goal, or why there is none."""
        self.offer.setText(text)
        self.draw.setEnabled(may_draw)

    def _show_others(self) -> None:
        is_difference = self.quantity.choice is not Quantity.ERROR_RATE and self.other.count() > 2
        self.other.setEnabled(is_difference)

    def _on_change(self, _value: object = None) -> None:
        self._show_others()
        self.changed.emit()

    def _lay_out(self) -> None:
        self.offer.setStyleSheet("font-weight: bold")
        fields = QWidget()
        form = QFormLayout(fields)
        form.setContentsMargins(0, 0, 0, 0)
        form.setSpacing(4)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for text, choice in (
            ("Estimate", self.quantity),
            ("Team", self.team),
            ("Versus", self.other),
        ):
            choice.chosen.connect(self._on_change)
            form.addRow(PlainLabel(text), choice)
        for text, number in (
            ("Precision", self.precision),
            ("Time", self.minutes),
            ("Per item", self.seconds),
            ("Items", self.items),
            ("Seed", self.seed),
        ):
            number.setKeyboardTracking(False)
            number.setAlignment(Qt.AlignmentFlag.AlignLeft)
            number.valueChanged.connect(self._on_change)
            form.addRow(PlainLabel(text), number)
        self.has_suspects.toggled.connect(self._on_change)
        stack(
            self,
            WrappedLabel(words.ABOUT),
            fields,
            FlowBar(self.is_shared, self.is_blind, self.has_suspects),
            self.offer,
            self.counting.bar,
            FlowBar(self.draw, self.counting.start, self.counting.stop, self.back),
        )


def _number(low: int, high: int, value: int, tooltip: str, suffix: str = "") -> QSpinBox:
    box = QSpinBox()
    box.setRange(low, high)
    box.setValue(value)
    box.setSuffix(suffix)
    box.setToolTip(tooltip)
    return box


def _tick(text: str, tooltip: str) -> QCheckBox:
    box = QCheckBox(text)
    box.setToolTip(tooltip)
    return box


class CountBox(QSpinBox):
    """A number of nuclei; Enter saves it, and verdict keys go to the desk."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setRange(0, _MOST_NUCLEI)
        self.setSuffix(" nuclei")
        self.setMinimumHeight(BUTTON_PX)
        self.setMinimumWidth(110)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Save on Enter."""
        if event is not None and is_verdict_key(event):
            event.ignore()
        elif event is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.interpretText()
            self.entered.emit()
        else:
            super().keyPressEvent(event)


class ItemBox(QWidget):
    """The item under review, and the question about it.

    Its answer is emitted by `verdicts.given`; with a number of nuclei, the verdict only states
    that the tile can be judged.
    """

    def __init__(self) -> None:
        super().__init__()
        self.verdicts = VerdictButtons()
        self.verdicts.show_reviewer("anyone")  # a plan is shown only to a named reviewer
        self.nuclei = CountBox()
        self.save = self._answer("Save the number", Verdict.ANNOTATION_RIGHT)
        self.unclear = self._answer(verdict_title(Verdict.CANNOT_TELL), Verdict.CANNOT_TELL)
        self.unclear.setCheckable(True)
        self.nuclei.entered.connect(self.save.pushed.emit)
        self._title, self._tile = WrappedLabel(), QWidget()
        self._title.setStyleSheet("font-weight: bold")
        tile = QGridLayout(self._tile)
        tile.setContentsMargins(0, 0, 0, 0)
        tile.setSpacing(SPACING_PX)
        tile.addWidget(WrappedLabel(words.TILE_QUESTION), 0, 0, 1, 2)
        tile.addWidget(self.nuclei, 1, 0)
        tile.addWidget(self.save, 1, 1)
        tile.addWidget(self.unclear, 2, 0, 1, 2)
        stack(self, self._title, self.verdicts, self._tile)
        self._tile.hide()

    def show_object(self, title: str, verdict: Verdict | None) -> None:
        """Ask about an object; its earlier verdict is marked."""
        self._show(title, is_tile=False)
        self.verdicts.show_verdict(verdict, enabled=True)

    def show_tile(self, title: str, verdict: Verdict | None, count: int | None) -> None:
        """Ask for a number of nuclei; an earlier one is shown."""
        self._show(title, is_tile=True)
        self.nuclei.setValue(count or 0)
        self.unclear.setChecked(verdict is Verdict.CANNOT_TELL)
        self.nuclei.setFocus()
        self.nuclei.selectAll()

    def type_digit(self, digit: int) -> None:
        """Begin another number of nuclei, as if the field had been chosen before."""
        self.nuclei.setValue(digit)
        self.nuclei.setFocus()
        if (line := self.nuclei.lineEdit()) is not None:
            line.setCursorPosition(1)  # before the suffix

    def show_end(self, text: str, detail: str) -> None:
        """Show that all items are reviewed."""
        self._show("", is_tile=False)
        self.verdicts.show_end(text, detail)

    def title(self) -> str:
        """Return the displayed name of the item."""
        return self._title.text()

    def _show(self, title: str, *, is_tile: bool) -> None:
        self.verdicts.show_end("")
        self._title.setText(title)
        self.verdicts.setVisible(not is_tile)
        self._tile.setVisible(is_tile)

    def _answer(self, text: str, verdict: Verdict) -> PushButton:
        button = PushButton(f"{text}   {key_text(with_alt(VERDICT_KEYS[verdict]))}")
        button.setMinimumHeight(BUTTON_PX)
        button.pushed.connect(partial(self.verdicts.given.emit, verdict))
        return button


class PlanPanel(ScrollPanel):
    """Form, items and estimates of a planned review; a view without logic."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, margins_px=(8, 4, 8, 4), spacing_px=5)
        self.ask, self.item = PlanForm(), ItemBox()
        self.enter_name = PushButton(
            "Enter your name…", "Go to the reviewer's name in the Review panel."
        )
        self.begin = PushButton(
            "Begin the review",
            "Go to the first item without a verdict. Each verdict goes on to the next.",
        )
        self.pause = PushButton(
            "Pause", "Pause the review. It resumes at the same item, even after a restart."
        )
        self.undo = PushButton(
            f"Undo   {UNDO_KEY}", "Withdraw your last verdict on an item in this window."
        )
        self.previous = PushButton(
            "Previous item", "Go back to the previous item to change its verdict."
        )
        self.following = PushButton("Next open", "Go to the first item without a verdict.")
        self.again = PushButton("Show the item", "Return to the item after looking elsewhere.")
        self.of_class = ChoiceBox(meaning="Class of the figures.")
        self.export = PushButton(
            "Export estimates…", "Write the plan, verdicts and estimates as CSV and JSON files."
        )
        self.extension = PushButton(
            "Add items", "Draw more items for this plan and keep its verdicts."
        )
        self.more = _number(1, 10_000, MORE_ITEMS, "Number of items to add.", " more items")
        self.new = PushButton(
            "New plan…", "Draw a new plan. This one and its verdicts stay in the review file."
        )
        self.bar, self.headline = ThinBar(), WrappedLabel()
        self.headline.setStyleSheet("font-weight: bold")
        self.hint, self._problem, self._precision = (WrappedLabel() for _ in range(3))
        self._sentences, self._design, self._notes = (WrappedLabel() for _ in range(3))
        self._design.setToolTip(words.METHOD)
        self._name, self.state = ElidedLabel(""), StateLine()
        self.table, self._review, self._going = FigureTable(), QWidget(), QWidget()
        self._lay_out()
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
        self, sentences: str | None, rows: Sequence[Sequence[Cell]], classes: Sequence[str]
    ) -> None:
        """Show the estimates as sentences and as a table; None if there are none yet."""
        self._sentences.setText(sentences or "No estimates yet. Review some items first.")
        choices = [Choice(name, "all classes" if name == ALL else name) for name in classes]
        self.of_class.show_among(choices, self.of_class.choice if choices else None)
        if choices and self.of_class.choice is None:
            self.of_class.show_choice(ALL)
        self.of_class.setVisible(len(choices) > 1)
        self.table.fill(words.HEADER, rows)
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

    def _lay_out(self) -> None:
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
            FlowBar(self.more, self.extension),
            self._problem,
            heading("Results for the whole cohort"),
            self._sentences,
            self.of_class,
            self.table,
            self._design,
            self._notes,
            FlowBar(self.export, self.new),
        )
        for widget in (self.hint, FlowBar(self.enter_name), self.ask, self._review):
            self._rows.addWidget(widget)
        self._rows.addStretch(1)
