"""The panel of suspect annotations: search, filters, the list, and the reason of one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import QAbstractItemView, QWidget

from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.questions.engines.suspects import LIKELY_SCORE, Suspect, SuspectKind
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.choice_menus import FilterMenu
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar, ListPanel
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import PushButton
from napari_panoptic.viewer.kit.work_controls import WorkControls

HINT = (
    "Press “Search” to find where several teams agree with each other, but not with the "
    "annotation, over the whole cohort."
)
ONE_TEAM = "Suspects are found where two or more teams agree: this cohort has fewer."
SEARCHING = "Searching over the cohort …"
STALE = "Outdated: the ambiguous policy or the files have changed. Press “Search” again."
STOPPED = "The search was stopped. Press “Search” to start again."
GALLERY_STALE = (
    "The settings or the files have changed. Press “Show in gallery” again for the suspects as "
    "they are now."
)
NOTHING = "Nothing could be compared; see the notes of the regions."
NONE = "No suspects: the teams agree on nothing but the annotation."
FILTERED = "No suspect passes the filters. Choose “all scores”, or more kinds and classes."
CAUTION = "A suspect is not an error: teams can make the same errors. Look at the image."
NOT_EDITED = "Unsaved edits are not included: the search reads the files."


class SuspectsPanel(ListPanel):
    """The suspects of a cohort, which of them to list, and where to see them."""

    gallery_wanted = Signal(list)  # of Suspect
    suspect_chosen = Signal(object)  # Suspect
    centre_wanted = Signal(object)  # Suspect

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.work = WorkControls(
            "Search",
            "Compare all teams over the cohort, from the files.",
            stop_tooltip="Stop the search.",
        )
        self.making = WorkControls(
            "Show in gallery",
            "Show the listed suspects, or the selected ones if several are.",
            stop_tooltip="Stop showing or saving suspects.",
        )
        self.search, self.stop = self.work.start, self.work.stop
        self.kind = FilterMenu("kind", [str(kind) for kind in SuspectKind])
        self.class_name = FilterMenu("class", [])
        self.least = ChoiceBox(
            [
                Choice(LIKELY_SCORE, f"score ≥ {LIKELY_SCORE}", "The most suspect ones."),
                Choice(
                    0.0, "all scores", "Most suspects with a low score are correct annotations."
                ),
            ],
            "Which scores to list.",
        )
        self.gallery = self.making.start
        self.export = PushButton(
            "Export…", "Save all suspects, as the command “suspects” does, whatever is listed."
        )
        self.headline, self.note = WrappedLabel(), WrappedLabel()
        self.caution, self.reason = WrappedLabel(CAUTION), WrappedLabel()
        self._suspects: tuple[Suspect, ...] = ()
        self._about = ""
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self._lay_out()
        self._connect()
        self.show_nothing(HINT)

    def listed(self) -> list[Suspect]:
        """Return the suspects that are listed, in the order of the table."""
        return [self._suspects[row] for row in self.table.rows()]

    def selected(self) -> list[Suspect]:
        """Return the selected suspects, in the order of the table."""
        places = sorted(index.row() for index in self.table.selection().selectedRows())
        rows = self.table.rows()
        return [self._suspects[rows[place]] for place in places]

    def show_progress(self, share: float | None, doing: str = "") -> None:
        """Show the share of a gallery or export that is done; None if none is being made."""
        self.making.show_progress(share, doing, may_start=bool(self._suspects))
        self.export.setEnabled(share is None)

    def show_nothing(self, hint: str) -> None:
        """Show a sentence and no suspects."""
        self._suspects = ()
        self.table.show_rows([])
        self.hint.setText(hint)
        for widget in (self.headline, self.table, self.gallery, *self._of_list):
            widget.hide()
        self.hint.show()
        self.show_note("")
        self.setFocusProxy(self.search)

    def show_suspects(self, suspects: Sequence[Suspect], about: str) -> None:
        """List suspects.

        Parameters
        ----------
        suspects
            The most suspect first.
        about
            What was compared, in words.
        """
        self._suspects, self._about = tuple(suspects), about
        self.class_name.set_words(sorted({s.class_name for s in suspects}))
        for widget in (self.headline, *self._of_list):
            widget.show()
        self.gallery.setVisible(bool(suspects) and not self.making.is_running)
        self._fill()
        self.setFocusProxy(self.table)

    def show_note(self, text: str, tooltip: str = "") -> None:
        """Show a note about the suspects; an empty text hides it."""
        self.note.show_text(text)
        self.note.setToolTip(tooltip)

    @property
    def _of_list(self) -> tuple[QWidget, ...]:
        filters = (self.kind, self.class_name, self.least)
        return (*filters, self.export, self.caution, self.reason)

    def _fill(self) -> None:
        """List the suspects that pass the filters."""
        suspects, kinds, classes = self._suspects, self.kind.checked(), self.class_name.checked()
        chosen = np.array(
            [
                (kinds is None or str(s.kind) in kinds)
                and (classes is None or s.class_name in classes)
                and s.score >= self.least.choice
                for s in suspects
            ],
            bool,
        )
        n = int(chosen.sum())
        self.table.show_rows(suspect_columns(suspects), chosen)
        self.table.setVisible(n > 0)
        self.hint.setText(FILTERED if suspects else NONE)
        self.hint.setVisible(n == 0)
        self.gallery.setEnabled(n > 0)
        self.headline.setText(
            f"{count_text(n)} of {count_text(len(suspects))} suspects {self._about}"
        )
        self._show_reason(None)

    def _show_reason(self, row: int | None) -> None:
        sentence = "" if row is None else self._suspects[row].sentence
        self.reason.setText(sentence[:1].upper() + sentence[1:])
        self.reason.setVisible(row is not None)

    def _on_row(self, row: int, _column: int) -> None:
        self._show_reason(row)
        self.suspect_chosen.emit(self._suspects[row])

    def _on_gallery(self) -> None:
        selected = self.selected()
        self.gallery_wanted.emit(selected if len(selected) > 1 else self.listed())

    def _connect(self) -> None:
        for menu in (self.kind, self.class_name):
            menu.changed.connect(self._fill)
        self.least.chosen.connect(lambda _score: self._fill())
        self.gallery.pushed.connect(self._on_gallery)
        self.table.row_chosen.connect(self._on_row)
        self.table.cell_activated.connect(self._on_row)  # a click on the row that is current
        self.table.centre_wanted.connect(lambda row: self.centre_wanted.emit(self._suspects[row]))

    def _lay_out(self) -> None:
        filters = (self.kind, self.class_name, self.least)
        made = (self.gallery, self.making.stop, self.export)
        layout = self._rows
        layout.addWidget(FlowBar(self.search, self.stop, *filters, *made))
        for widget in (
            self.work.bar,
            self.making.bar,
            self.headline,
            self.caution,
            self.note,
            self.hint,
        ):
            layout.addWidget(widget)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.reason)
        layout.addStretch(0)


def suspect_columns(suspects: Sequence[Suspect]) -> list[Column]:
    """Return what is shown of suspects."""
    words = [
        ("kind", "What may be wrong.", [str(s.kind) for s in suspects]),
        ("class", "Class in the annotation → class that teams predict.", _classes(suspects)),
        ("region", "Click to go to the object.", [s.region for s in suspects]),
        ("patient", "The patient.", [s.patient for s in suspects]),
        ("teams", "Which agree.", [", ".join(s.teams) for s in suspects]),
    ]

    def tooltip(row: int) -> str:
        own = suspects[row]
        return f"{own.region}, {own.side} {own.id}: {own.sentence}"

    score = Column(
        "score",
        "From 0 to 1; higher is more suspect. It orders the list and is no probability.",
        np.array([suspect.score for suspect in suspects], np.float64),
        text=ratio_text,
        tooltip=tooltip,
    )
    return [
        score,
        *(
            Column(
                title,
                meaning,
                np.array(values, str),
                tooltip=tooltip,
                is_text=True,
                stretch=title not in ("kind", "class"),
            )
            for title, meaning, values in words
        ),
    ]


def _classes(suspects: Sequence[Suspect]) -> list[str]:
    return [" → ".join(filter(None, (s.class_name, s.suggested_class))) for s in suspects]
