"""The suspect annotations of a cohort: which of them are listed, and those that are selected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QAbstractItemView

from napari_panoptic.display.styles import count_text
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.engines.suspects import LIKELY_SCORE, SuspectKind
from napari_panoptic.questions.suspects import Suspects
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.panels.filters import FilterMenu
from napari_panoptic.viewer.panels.question.presenter import QuestionPresenter
from napari_panoptic.viewer.panels.question.view import QuestionView

FILTERED = "No suspect passes the filters. Choose “all scores”, or more kinds and classes."
_SCORES = (
    Choice(LIKELY_SCORE, f"score ≥ {LIKELY_SCORE}", "The most suspect ones."),
    Choice(0.0, "all scores", "Most suspects with a low score are correct annotations."),
)


class SuspectsView(QuestionView):
    """Filters above the question; several suspects can be selected."""

    def __init__(self) -> None:
        of_kind = FilterMenu("kind", [str(kind) for kind in SuspectKind])
        class_name, least = FilterMenu("class", []), ChoiceBox(_SCORES, "Which scores to list.")
        filters, listed = FlowBar(of_kind, class_name, least), WrappedLabel()
        super().__init__(Suspects, filters, listed)
        self.of_kind, self.class_name, self.least = of_kind, class_name, least
        self.filters, self.listed = filters, listed
        self.making.start.setToolTip(
            "Show the selected suspects if several are selected, else all that are listed."
        )
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        for menu in (of_kind, class_name):
            menu.changed.connect(self._show_table)
        least.chosen.connect(lambda _score: self._show_table())
        self.table_chosen.connect(self._on_table)
        self._on_table()

    def show_answer(self, answer: Answer) -> None:
        """Show an answer, and offer its classes."""
        (table,) = answer.tables
        self.class_name.set_words(sorted(set(table.frame["class"])))
        super().show_answer(answer)

    def passing(self, table: AnswerTable) -> NDArray[np.bool_]:
        """Return which suspects pass the filters."""
        frame, kinds, classes = table.frame, self.of_kind.checked(), self.class_name.checked()
        passes: NDArray[np.bool_] = frame["score"].to_numpy() >= self.least.choice
        for column, chosen in (("kind", kinds), ("class", classes)):
            if chosen is not None:
                passes &= frame[column].isin(chosen).to_numpy()
        return passes

    def chosen_rows(self) -> Sequence[int]:
        """Return the selected suspects if several are, else all that are listed."""
        rows = self.table.rows()
        chosen = sorted(index.row() for index in self.table.selection().selectedRows())
        return [rows[place] for place in chosen] if len(chosen) > 1 else rows

    def _on_table(self) -> None:
        """Show how many suspects pass the filters."""
        n = 0 if self.shown_table is None else len(self.shown_table.frame)
        listed = len(self.table.rows()) if n else 0
        self.filters.setVisible(n > 0)
        text = f"{count_text(listed)} listed, of {count_text(n)} with any score."
        self.listed.show_text((text if listed else FILTERED) if n else "")
        self.making.start.setEnabled(listed > 0)


class SuspectsPresenter(QuestionPresenter):
    """The suspect annotations of the whole cohort."""

    kind = Suspects
    title, key = Suspects.title, Suspects.key
    panel_type = SuspectsView
