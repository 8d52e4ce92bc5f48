"""The panel around the gallery: what it shows, how it is grouped and sorted, and progress."""

from __future__ import annotations

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QHBoxLayout, QSlider, QVBoxLayout, QWidget

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.display import styles
from napari_panoptic.display.failure_sections import GroupBy
from napari_panoptic.display.object_rows import WorstFirst
from napari_panoptic.values.vocabulary import CAUSES
from napari_panoptic.viewer.kit.choice_menus import ChoiceMenu, FilterMenu
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import ElidedLabel, ToolButton
from napari_panoptic.viewer.panels.failures.crops import Crops
from napari_panoptic.viewer.panels.failures.view import (
    LARGEST_CROP,
    SMALLEST_CROP,
    USUAL_CROP,
    FailureView,
)
from napari_panoptic.viewer.state.preferences import Queue

NO_COHORT = "No failures to show. Open a cohort, or choose a region and team with a prediction."
NO_FAILURES = "No failures here: nothing is FN, FP or misclassified. J goes to the next region."
NONE_YET = "No failures yet: the regions are being evaluated."
NONE_AT_ALL = "No failures: nothing is FN, FP or misclassified in any region."
ALL_HIDDEN = "None of the listed objects is a failure. Press “List all” to see every failure."
NONE_CHOSEN = "None of the chosen objects is a failure now. Press “Show all” for all failures."
FILTERED = "No failure passes the filters. Press “List all” to see every failure again."
SLIDER_PX = 90


class Scope(MenuChoice):
    """Which failures the gallery shows."""

    ALL = "all regions", "The failures of all regions of the cohort, except whole slides."
    REGION = "this region", "The failures of the region that is shown."
    LISTED = "listed objects", "The failures that the object table lists, in its order."
    CHOSEN = "chosen failures", "The failures that another panel chose, such as those of a slice."


class FailuresPanel(QWidget):
    """The gallery with its menus; signals what the user wants of other panels."""

    changed = Signal()  # scope, sections or filters
    field_changed = Signal(int)
    size_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.crops = Crops()
        self.view = FailureView(self.crops)
        self.scope = ChoiceMenu("Show", "Which failures to show.", list(Scope))
        self.group_by = ChoiceMenu("Group by", "What the sections are.", list(GroupBy))
        self.sort = ChoiceMenu(
            "Sort", "The order within each section, of the table and of N.", list(WorstFirst)
        )
        self.queue = ChoiceMenu("N", "Where N and Shift+N lead.", list(Queue))
        self.status = FilterMenu("status", [str(status) for status in styles.FAILURES])
        self.cause = FilterMenu("cause", [str(cause) for cause in CAUSES])
        self.chosen = WrappedLabel()
        self.show_all = ToolButton("Show all", "Show the failures of all regions again.")
        self.export = ToolButton("Export…", "Save the failures shown as a table and as pictures.")
        self.everything = ToolButton("✕ List all", "List all objects again, and all failures.")
        self.halt = ToolButton("Stop", "")
        self.closer = ToolButton("+", "Show less around each object. Also Ctrl+wheel.")
        self.wider = ToolButton("−", "Show more around each object. Also Ctrl+wheel.")
        self.crop_size = QSlider(Qt.Orientation.Horizontal)
        self.crop_size.setRange(SMALLEST_CROP, LARGEST_CROP)
        self.crop_size.setValue(USUAL_CROP)
        self.crop_size.setFixedWidth(SLIDER_PX)
        self.crop_size.setToolTip("Size of the crops.")
        self.crop_size.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.line, self.progress = ElidedLabel(), ElidedLabel()
        self.hint = WrappedLabel(NO_COHORT)
        self._connect()
        self._lay_out()
        self.show_progress("", is_running=False)
        self.show_chosen("")

    def show_hint(self, text: str) -> None:
        """Show why there are no failures; empty if there are some."""
        self.hint.show_text(text)
        self.view.setVisible(not text)

    def show_chosen(self, text: str) -> None:
        """Show what the chosen failures have in common; empty if none are chosen."""
        self.chosen.setText(text)
        for widget in (self.chosen, self.show_all):
            widget.setVisible(bool(text))
        self.scope.offer(Scope.CHOSEN, offered=bool(text))
        if text:
            self.scope.show_choice(Scope.CHOSEN)
        elif self.scope.choice is Scope.CHOSEN:
            self.scope.show_choice(Scope.ALL)

    def show_progress(self, text: str, *, is_running: bool) -> None:
        """Show how much of the cohort is evaluated; empty once all of it is."""
        self.progress.set_text(text)
        self.progress.setVisible(bool(text))
        self.halt.setVisible(bool(text))
        self.halt.setText("Stop" if is_running else "Continue")
        self.halt.setToolTip(
            "Stop evaluating the cohort." if is_running else "Evaluate the other regions."
        )

    def clear_filters(self) -> None:
        """Let every status and cause through."""
        for menu in (self.status, self.cause):
            menu.check_only(None)

    def _connect(self) -> None:
        for menu in (self.scope, self.group_by):
            menu.chosen.connect(lambda _choice: self.changed.emit())
        for words in (self.status, self.cause):
            words.changed.connect(self.changed.emit)
        for button, step in ((self.closer, -1), (self.wider, 1)):
            button.pushed.connect(lambda step=step: self.field_changed.emit(step))
        self.view.zoomed.connect(self.field_changed.emit)
        self.crop_size.valueChanged.connect(self._on_size)

    def _on_size(self, points: int) -> None:
        self.view.resize_crops(points)
        self.size_changed.emit()

    def _lay_out(self) -> None:
        menus = (self.scope, self.group_by, self.sort, self.status, self.cause, self.queue)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addWidget(FlowBar(*menus))
        of_crops = (self.everything, self.wider, self.closer, self.crop_size, self.export)
        rows: tuple[tuple[PlainLabel, tuple[QWidget, ...]], ...] = (
            (self.chosen, (self.show_all,)),
            (self.progress, (self.halt,)),
            (self.line, of_crops),
        )
        for label, buttons in rows:
            row = QHBoxLayout()
            row.setSpacing(3)
            row.addWidget(label, 1)
            for button in buttons:
                row.addWidget(button)
            layout.addLayout(row)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.hint, 1)  # in the gallery's place
        layout.addWidget(self.view, 1)
        self.setFocusProxy(self.view)
