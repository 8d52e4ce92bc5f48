"""The panel of slices: which failures to search, the slices in words, and rates by covariate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.display.styles import CAUSE_MEANINGS, STATUS_MEANINGS
from napari_panoptic.questions.engines.cohort_objects import CAUSES_OF
from napari_panoptic.values.vocabulary import Cause, Side, Status
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.plot_view import PlotView
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import is_desk_key
from napari_panoptic.viewer.kit.work_controls import WorkControls

HINT = (
    "Press “Search” to find what the failures of this team have in common over the cohort: slices "
    "of objects, such as a class and a size, that fail more often than the others."
)
NO_TEAM = "Choose a team with predictions to search what its failures have in common."
SEARCHING = "Searching over the cohort …"
STALE = "Outdated: the team, the settings or the files have changed. Press “Search” again."
STOPPED = "The search was stopped. Press “Search” to start again."
LEADS = "Click a slice to see its failures."
NOT_EDITED = "Unsaved edits are not included: the search reads the files."
ANY_CAUSE = "any cause"
_SIDES = (
    Choice(Side.REFERENCE, "FN & misclassified", "Annotated objects that are FN or misclassified."),
    Choice(Side.PREDICTION, "FP", "Predictions that are FP."),
)
_LEAST_LIST_PX, _LEAST_PLOT_PX = 90, 130


@dataclass(frozen=True)
class SliceLine:
    """A slice as a line of the list."""

    #: Its sentence and its figures.
    text: str
    tooltip: str


class SliceList(QListWidget):
    """Sentences of which one is chosen by a click, Enter or Space."""

    opened = Signal(int)
    rested = Signal(int)  # the row that the keys or the mouse went to

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSpacing(2)
        self.setMinimumHeight(_LEAST_LIST_PX)
        self.setAccessibleName("Slices")
        self.currentRowChanged.connect(self._on_row)
        self.itemClicked.connect(lambda item: self.opened.emit(self.row(item)))

    def fill(self, lines: Sequence[SliceLine]) -> None:
        """Show other sentences, the first one current."""
        self.clear()
        for number, line in enumerate(lines, start=1):
            item = QListWidgetItem(shown(f"{number}. {line.text}"))
            item.setToolTip(shown(line.tooltip))
            self.addItem(item)
        if lines:
            self.setCurrentRow(0)

    def texts(self) -> list[str]:
        """Return the sentences."""
        items = (self.item(row) for row in range(self.count()))
        return [item.text() for item in items if item is not None]

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Open on Enter and Space; letters go to the desk."""
        keys = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if event is not None and event.key() in keys and self.currentRow() >= 0:
            self.opened.emit(self.currentRow())
        elif event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _on_row(self, row: int) -> None:
        if row >= 0:
            self.rested.emit(row)


class SlicesPanel(QWidget):
    """Which failures to search, what they have in common, and rates over a covariate."""

    what_changed = Signal()  # side or cause

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.side = ChoiceBox(_SIDES, "Which failures to search.")
        self.cause = ChoiceBox(meaning="Only failures of this cause count; the rest do not fail.")
        self.work = WorkControls(
            "Search",
            "Search all slices over the cohort, from the files on disk.",
            stop_tooltip="Stop the search.",
        )
        self.search, self.stop = self.work.start, self.work.stop
        self.headline, self.note = WrappedLabel(), WrappedLabel()
        self.list = SliceList()
        self.covariate = ChoiceBox(meaning="The covariate of the plot.")
        self.plot = PlotView()
        self.plot.setMinimumHeight(_LEAST_PLOT_PX)
        self._of_plot = QWidget()
        self._offer_causes()
        self._lay_out()
        self._connect()
        self.show_nothing(HINT)

    def show_nothing(self, hint: str) -> None:
        """Show a sentence and no slices."""
        self.headline.setText(hint)
        self.list.fill(())
        self.list.hide()
        self.setFocusProxy(self.search)
        self.show_note("")
        self.covariate.offer(())
        self._of_plot.hide()
        self.plot.show_plot(None)

    def show_slices(
        self, headline: str, lines: Sequence[SliceLine], covariates: Sequence[Choice]
    ) -> None:
        """Show the slices that were found, and offer covariates for the plot."""
        self.headline.setText(headline)
        self.covariate.offer(covariates)
        self._of_plot.setVisible(bool(covariates))
        self.list.fill(lines)
        self.list.setVisible(bool(lines))
        self.setFocusProxy(self.list if lines else self.search)

    def show_note(self, text: str, tooltip: str = "") -> None:
        """Show a note about the slices; an empty text hides it."""
        self.note.show_text(text)
        self.note.setToolTip(tooltip)

    def _offer_causes(self) -> None:
        words = [Choice(None, ANY_CAUSE, "All failures of these objects.")]
        words += [Choice(word, word, _meaning(word)) for word in CAUSES_OF[Side(self.side.choice)]]
        self.cause.offer(words)

    def _on_side(self, _side: Side) -> None:
        self._offer_causes()
        self.what_changed.emit()

    def _connect(self) -> None:
        self.side.chosen.connect(self._on_side)
        self.cause.chosen.connect(lambda _cause: self.what_changed.emit())

    def _lay_out(self) -> None:
        layout, top, of_plot = QVBoxLayout(self), QHBoxLayout(), QVBoxLayout(self._of_plot)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        for chosen in (self.side, self.cause, self.search, self.stop):
            top.addWidget(chosen)
        layout.addLayout(top)
        for below in (self.work.bar, self.headline, self.note):
            layout.addWidget(below)
        layout.addWidget(self.list, 1)
        row = QHBoxLayout()
        row.addWidget(PlainLabel("Failure rate over"))
        row.addWidget(self.covariate, 1)
        of_plot.setContentsMargins(0, 0, 0, 0)
        of_plot.addLayout(row)
        of_plot.addWidget(self.plot, 1)
        layout.addWidget(self._of_plot, 1)
        layout.addStretch(0)


def _meaning(word: str) -> str:
    if word in set(Cause):
        return CAUSE_MEANINGS[Cause(word)]
    return STATUS_MEANINGS[Status(word)]
