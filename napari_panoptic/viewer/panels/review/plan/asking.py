"""The form of a plan: the figure to estimate, the precision, and the time available."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QGridLayout,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.review.plan.corrected import Quantity
from napari_panoptic.review.plan.goal import Goal
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.work_controls import WorkControls
from napari_panoptic.viewer.panels.review.plan import words

PRECISION, MINUTES, SECONDS = 0.05, 60, 20
"""The goal that the form starts with."""
_ALONE = Choice(None, "no other team", "The figure of one team.")


class AskPage(QWidget):
    """The form of a plan, and the plan that results from it."""

    changed = Signal()  # anything that decides the plan
    draw_wanted = Signal()
    back_wanted = Signal()

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
        self.offer = PlainLabel()
        self.counting = WorkControls(
            "Count the items",
            "Evaluate the team in all regions to count the items.",
            stop_tooltip="",
        )
        self.draw, self.back = QPushButton("Draw the plan"), QPushButton("Back to the plan")
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
        about = PlainLabel(words.ABOUT)
        for label in (about, self.offer):
            label.setWordWrap(True)
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
        layout.addWidget(about)
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
        for button, signal in (
            (self.draw, self.draw_wanted),
            (self.back, self.back_wanted),
        ):
            button.clicked.connect(lambda _=False, s=signal: s.emit())
