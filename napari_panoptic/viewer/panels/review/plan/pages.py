"""The pages of the plan panel: the form of a plan, and the item under review."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QGridLayout,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.review.plan.corrected import Quantity
from napari_panoptic.review.plan.goal import Goal
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.keys import key_text
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import PushButton, WorkControls
from napari_panoptic.viewer.panels.review.inputs import (
    BUTTON_PX,
    SPACING_PX,
    VERDICT_KEYS,
    VerdictButtons,
    is_verdict_key,
    verdict_title,
)
from napari_panoptic.viewer.panels.review.plan import words
from napari_panoptic.viewer.panels.review.plan.words import TILE_QUESTION

PRECISION, MINUTES, SECONDS = 0.05, 60, 20
"""The goal that the form starts with."""
_ALONE = Choice(None, "no other team", "The figure of one team.")


class AskPage(QWidget):
    """The form of a plan, and the plan that results from it."""

    changed = Signal()  # anything that decides the plan

    def __init__(self) -> None:
        super().__init__()
        self.quantity = ChoiceBox(words.QUESTIONS, "Figure that the review estimates.")
        self.quantity.shrinkable().show_choice(Quantity.F1)
        self.team = ChoiceBox(meaning="Team whose predictions are reviewed.").shrinkable()
        self.other = ChoiceBox(
            meaning="Estimate the difference between two teams. Each team gets its own sample."
        ).shrinkable()
        self.precision = QDoubleSpinBox()
        self.minutes, self.seconds, self.seed = QSpinBox(), QSpinBox(), QSpinBox()
        self.is_blind = QCheckBox("Hide team and status")
        self.is_shared = QCheckBox("Share with other reviewers")
        self.has_suspects = QCheckBox("More suspects")
        self.offer = WrappedLabel()
        self.counting = WorkControls(
            "Count the items",
            "Evaluate the team in all regions to count the items.",
            stop_tooltip="",
        )
        self.draw, self.back = PushButton("Draw the plan"), PushButton("Back to the plan")
        self._set_numbers()
        self._explain()
        self._lay_out()
        self._wire()
        self.counting.start.hide()

    @property
    def goal(self) -> Goal | None:
        """The goal in the form; None without a team."""
        if self.team.choice is None:
            return None
        others = [self.other.choice] if self.other.choice not in (None, self.team.choice) else []
        if self.quantity.choice is Quantity.ERROR_RATE:
            others = []
        return Goal(
            self.quantity.choice,
            (self.team.choice, *others),
            self.precision.value(),
            float(self.minutes.value()),
            float(self.seconds.value()),
        )

    def offer_teams(self, teams: Sequence[str], team: str | None) -> None:
        """List the teams of a cohort."""
        self.team.offer([Choice(name, name) for name in teams])
        if team in teams:
            self.team.show_choice(team)
        self.other.offer([_ALONE, *(Choice(name, name) for name in teams)])
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

    def _set_numbers(self) -> None:
        self.precision.setRange(0.005, 0.5)
        self.precision.setSingleStep(0.01)
        self.precision.setDecimals(3)
        self.precision.setPrefix("± ")
        self.precision.setValue(PRECISION)
        for box, low, high, value, suffix in (
            (self.minutes, 1, 6000, MINUTES, " min"),
            (self.seconds, 1, 3600, SECONDS, " s"),
            (self.seed, 0, 2**31 - 1, 1, ""),
        ):
            box.setRange(low, high)
            box.setValue(value)
            box.setSuffix(suffix)
        for number in (self.precision, self.minutes, self.seconds, self.seed):
            number.setKeyboardTracking(False)
            number.setAlignment(Qt.AlignmentFlag.AlignLeft)

    def _explain(self) -> None:
        tooltips: dict[QWidget, str] = {
            self.precision: "Half the width of the 95 % interval: 0.05 means 5 percentage points.",
            self.minutes: "Time available for the whole review.",
            self.seconds: "Average time per verdict.",
            self.seed: "The same seed and cohort produce the same plan.",
            self.is_blind: "Hide team names, status colours and object lists while you "
            "review the plan.",
            self.is_shared: "One verdict per item is enough, from any reviewer. If not shared, "
            "each reviewer completes the plan and the agreement is shown.",
            self.has_suspects: "Draw more annotations that several teams contradict. The "
            "estimates correct for this, and the interval for annotation errors usually "
            "becomes narrower.",
            self.draw: "Draw the items at random and save the plan in the review file.",
            self.back: "Return to the current plan.",
        }
        for widget, text in tooltips.items():
            widget.setToolTip(text)

    def _lay_out(self) -> None:
        self.offer.setStyleSheet("font-weight: bold")
        grid = QGridLayout()
        grid.setSpacing(4)
        rows = (
            ("Estimate", self.quantity),
            ("Team", self.team),
            ("Compared with", self.other),
            ("Precision", self.precision),
            ("Time available", self.minutes),
            ("Time per item", self.seconds),
            ("Seed", self.seed),
        )
        for number, (text, widget) in enumerate(rows):
            grid.addWidget(PlainLabel(text), number, 0)
            grid.addWidget(widget, number, 1)
        grid.setColumnStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(5)
        layout.addWidget(WrappedLabel(words.ABOUT))
        layout.addLayout(grid)
        layout.addWidget(FlowBar(self.is_shared, self.is_blind, self.has_suspects))
        layout.addWidget(self.offer)
        layout.addWidget(self.counting.bar)
        layout.addWidget(FlowBar(self.draw, self.counting.start, self.counting.stop, self.back))
        layout.addStretch(1)

    def _wire(self) -> None:
        for box in (self.quantity, self.team, self.other):
            box.chosen.connect(self._on_change)
        for number in (self.precision, self.minutes, self.seconds, self.seed):
            number.valueChanged.connect(self._on_change)
        self.has_suspects.toggled.connect(self._on_change)


MOST_NUCLEI = 999


class CountBox(QSpinBox):
    """A number of nuclei; Enter saves it, and verdict keys go to the desk."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setRange(0, MOST_NUCLEI)
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
    """The item under review, and the question about it."""

    verdict_given = Signal(Verdict)

    def __init__(self) -> None:
        super().__init__()
        self.verdicts = VerdictButtons()
        self.verdicts.show_reviewer("anyone")  # a plan is shown only to a named reviewer
        self.nuclei = CountBox()
        keys = {verdict: key_text(key) for verdict, key in VERDICT_KEYS.items()}
        self.save = PushButton(f"Save the number   {keys[Verdict.ANNOTATION_RIGHT]}")
        unclear = Verdict.CANNOT_TELL
        self.unclear = PushButton(f"{verdict_title(unclear)}   {keys[unclear]}")
        self._title, self._tile = WrappedLabel(), QWidget()
        self._lay_out()
        self.verdicts.given.connect(self.verdict_given.emit)
        self.nuclei.entered.connect(self._on_count)
        self.save.pushed.connect(self._on_count)
        self.unclear.pushed.connect(lambda: self.verdict_given.emit(Verdict.CANNOT_TELL))
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

    def _on_count(self) -> None:
        # With a number, the verdict only states that the tile can be judged.
        self.verdict_given.emit(Verdict.ANNOTATION_RIGHT)

    def _lay_out(self) -> None:
        self._title.setStyleSheet("font-weight: bold")
        self.unclear.setCheckable(True)
        for button in (self.save, self.unclear):
            button.setMinimumHeight(BUTTON_PX)
        question = WrappedLabel(TILE_QUESTION)
        tile, layout = QGridLayout(self._tile), QVBoxLayout(self)
        tile.setContentsMargins(0, 0, 0, 0)
        tile.setSpacing(SPACING_PX)
        layout.setContentsMargins(0, 0, 0, 0)
        tile.addWidget(question, 0, 0, 1, 2)
        tile.addWidget(self.nuclei, 1, 0)
        tile.addWidget(self.save, 1, 1)
        tile.addWidget(self.unclear, 2, 0, 1, 2)
        for widget in (self._title, self.verdicts, self._tile):
            layout.addWidget(widget)
