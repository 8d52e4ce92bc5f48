"""The controls of editing, and what edits did to the figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QFrame, QGridLayout, QWidget

from napari_panoptic.common.text import counted
from napari_panoptic.display import slide_texts, styles
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.live.autosaves import EditedPart
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.tables.figures import with_sign
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.editing.object_actions import ACTION_TEXTS, Asking, ObjectAction
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar, ScrollPanel, lay_out
from napari_panoptic.viewer.kit.menus import MenuButton
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import PushButton, separator

NOTHING_EDITED = (
    "Nothing is edited here. Press Edit, choose the brush (2) or the eraser (1), and paint on the "
    "image: every figure follows. The brush draws a new object, or continues the selected one. "
    "Files are never changed; you draw on a working copy."
)
NOTHING_DRAWN = (
    "Nothing is drawn yet. Choose the brush (2) or the eraser (1) and paint on the image: every "
    "figure follows. The brush continues one object, also elsewhere, until you press “New "
    "object” (or M) or select another one. Files are never changed; you draw on a copy."
)
GOES_ON = "The brush continues one object, also elsewhere, until “New object” (or M)."
DRAW_AREAS = (
    "Ambiguous areas: draw one as a polygon (P; a double click ends it), a rectangle (R) or an "
    "ellipse (E). Select one (S) to move it, or to delete it (Delete). Undo (Ctrl+Z) takes back "
    "the last change of them."
)
WILL_FLATTEN = (
    "Objects of this region share pixels: as soon as one is edited, all are flattened, and so are "
    "the figures."
)
NO_REGION = "Nothing can be edited: open a cohort and choose a region with an annotation."
HEADER = [
    Cell("", "Figures of this region and team."),
    Cell("files", "From the files."),
    Cell("edited", "From the working copy."),
    Cell("difference", "Edited minus files."),
]
_LENGTHS = ("mean_hausdorff_px",)
_SIDES = {Status.FP: (Side.PREDICTION,), Status.IGNORED: tuple(Side)}
"""Where the objects of a status are counted, if not in the annotation; as in the metrics."""


class EditsPanel(ScrollPanel):
    """The controls of editing; knows nothing of their effects."""

    shown = Signal()
    corrected_wanted = Signal(str)  # the format, OWN for that of the files
    action_wanted = Signal(object)  # ObjectAction
    asking_chosen = Signal(object)  # Asking
    place_wanted = Signal(str)  # its number

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, spacing_px=4)
        self.edit = _button("Edit", "Make the objects editable (Alt+D).", checkable=True)
        whose = "Whose objects the brush paints: the annotation's or the team's."
        self.side = ChoiceBox(meaning=whose).shrinkable()
        self.new_object = _button("New object", "Paint a new object with the brush.")
        self.new_class = ChoiceBox(
            meaning="The class of newly painted objects; automatic: that of the selected object, "
            "or the most frequent one if none is selected."
        ).shrinkable()
        self.object_class = ChoiceBox(
            meaning="The class of the selected object; choose another to change it. Undo (Ctrl+Z) "
            "takes it back, as it does a stroke."
        ).shrinkable()
        self.undo = _button(
            "Undo",
            "Take back the last step: a stroke, a class given, an action on objects, an "
            "ambiguous area or a verdict (Ctrl+Z).",
        )
        self.redo = _button("Redo", "Redo the last undone change (Ctrl+Shift+Z).")
        self.mend = mend_button(self.action_wanted.emit)
        self._asking = {asking: _radio(*texts) for asking, texts in _ASKING_TEXTS.items()}
        for asking, entry in self._asking.items():
            entry.pushed.connect(lambda asking=asking: self._choose_asking(asking))
        self.mend.gather(None, *self._asking.values())
        self.shapes = _button(
            "Ambiguous areas as shapes",
            "Draw, move and delete the areas that the annotation excludes; figures follow.",
            checkable=True,
        )
        self.state = WrappedLabel(NO_REGION)
        self.state.setToolTip(
            "A working copy has your drawings; the files stay unchanged until you save elsewhere."
        )
        self.to_draw = RichLabel(wraps=True)
        self.to_draw.setToolTip(
            "Places of verdicts “both wrong”: the annotated object is deleted, and the right one "
            "is to be drawn by hand. Click one to go there."
        )
        self.to_draw.linkActivated.connect(self.place_wanted.emit)
        self.to_draw.hide()
        self.differences = FigureTable()
        self.save = _button("Save as…", "Write your drawings to a file of your choice.")
        self.open = _button(
            "Open…",
            "Go on with objects that were saved: those of the side chosen above become those of a "
            "file, as if you had drawn them.",
        )
        self.corrected = corrected_button(self.corrected_wanted.emit)
        self.discard = _button("Discard…", "Go back to the files of this region.")
        self.left = QFrame()
        self.left.setFrameShape(QFrame.Shape.StyledPanel)
        self.left_state = WrappedLabel()
        self.restore = _button("Restore", "Continue with these edits, as if just drawn.")
        self.discard_left = _button("Discard", "Delete these edits for good.")
        self._lay_out()
        self.show_left("", "")

    def show_asking(self, asking: Asking) -> None:
        """Mark what happens to pixels of other objects."""
        for own, entry in self._asking.items():
            entry.setChecked(own is asking)

    def _choose_asking(self, asking: Asking) -> None:
        self.show_asking(asking)
        self.asking_chosen.emit(asking)

    def show_left(self, text: str, button: str, *, may_restore: bool = True) -> None:
        """Offer edits of an earlier window; an empty text hides the offer."""
        self.left.setVisible(bool(text))
        self.left_state.setText(text)
        self.restore.setText(shown(button))
        self.restore.setEnabled(may_restore)

    def show_difference(self, before: Evaluation | None, now: Evaluation | None) -> None:
        """Show every figure of the files beside that of the working copy."""
        self.differences.setVisible(before is not None and now is not None)
        if before is not None and now is not None:
            self.differences.fill(HEADER, difference_rows(before, now))

    def showEvent(self, event: QShowEvent | None) -> None:  # noqa: N802
        """Refresh when the panel comes to the front."""
        super().showEvent(event)
        self.shown.emit()

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(6)
        grid.addWidget(self.edit, 0, 0)
        grid.addWidget(self.side, 0, 1)
        for line, (text, field) in enumerate(
            (("New", self.new_class), ("Selected", self.object_class)), start=1
        ):
            label = PlainLabel(text)
            label.setToolTip(field.toolTip())
            grid.addWidget(label, line, 0)
            grid.addWidget(field, line, 1)
        grid.setColumnStretch(1, 1)
        lay_out(
            self.left,
            self.left_state,
            FlowBar(self.restore, self.discard_left),
            margins=(6, 4, 6, 4),
        )
        self._rows.addWidget(self.left)
        self._rows.addLayout(grid)
        for row in (
            FlowBar(self.new_object, self.mend, self.undo, self.redo, self.shapes),
            separator(),
            self.state,
            self.to_draw,
            FlowBar(self.save, self.corrected, self.open, self.discard),
            self.differences,
        ):
            self._rows.addWidget(row)
        self._rows.addStretch(1)

    def chosen_side(self) -> Side:
        """Return which side is to be edited: the annotation until a team is chosen."""
        return self.side.choice or Side.REFERENCE


OWN = ""
"""Stands for the format of the cohort's files."""
_FORM_TEXTS: Mapping[str, tuple[str, str]] = {
    OWN: (
        "In the format of the files…",
        "At the same relative paths, so that the folder can be laid over a copy of the cohort.",
    ),
    Source.GEOJSON: ("As GeoJSON (QuPath)…", "With the action of each changed object."),
    Source.IMAGESCOPE: ("As ImageScope XML…", "With a cohort.toml that opens."),
    Source.LABELS: ("As label images…", "TIFF with a table of classes, and a cohort.toml."),
}
_ASKING_TEXTS = {
    Asking.ASK: ("Ask about pixels of other objects", "Ask before an outline covers them."),
    Asking.KEEP: ("Leave pixels of other objects", "A new outline leaves them out."),
    Asking.TAKE: ("Take pixels of other objects", "A new outline takes them."),
}


def mend_button(do: Callable[[ObjectAction], object]) -> MenuButton:
    """Return a menu of the actions on the chosen objects."""
    entries = []
    for action, text in ACTION_TEXTS.items():
        entry = PushButton(f"{text.title}   {text.shortcut.text}", text.meaning)
        entry.pushed.connect(lambda action=action: do(action))
        entries.append(entry)
    return MenuButton(
        "Mend", "Mend the chosen objects; Ctrl+Z undoes it. Files never change.", *entries
    )


def corrected_button(save: Callable[[str], object]) -> MenuButton:
    """Return a menu of the formats in which corrected annotations can be saved."""
    entries = []
    for form, texts in _FORM_TEXTS.items():
        entry = PushButton(*texts)
        entry.pushed.connect(lambda form=form: save(form))
        entries.append(entry)
    return MenuButton(
        "Save corrected annotation",
        "Write the annotation of all regions with changes to a folder, with corrections.csv: what "
        "was changed, by whom and when. The files of the cohort stay as they are.",
        *entries,
    )


def _radio(text: str, tooltip: str) -> PushButton:
    return _button(text, tooltip, checkable=True)


def _button(text: str, tooltip: str, *, checkable: bool = False) -> PushButton:
    button = PushButton(text, tooltip)
    button.setCheckable(checkable)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keys with the image
    return button


def state_text(
    session: Session,
    copies: Sequence[EditedPart],
    unsaved: Collection[EditedPart],
    *,
    is_on: bool,
    draws_areas: bool,
) -> str:
    """Describe the working copies of a region, or how to begin.

    Parameters
    ----------
    session
        The live state.
    copies
        The working copies of the shown region.
    unsaved
        The unsaved edits of all regions.
    is_on
        Whether editing is switched on.
    draws_areas
        Whether napari's tools work on ambiguous areas.
    """
    if session.evaluation is None:
        return on_slide(session.snapshot, slide_texts.EDITS, NO_REGION)
    if not copies:
        text = DRAW_AREAS if draws_areas else NOTHING_DRAWN if is_on else NOTHING_EDITED
        is_kept = session.snapshot is not None and session.snapshot.keeps_overlaps
        return f"{text} {WILL_FLATTEN}" if is_kept else text
    lines = [f"{c.words} ({'not saved' if c in unsaved else 'saved'})" for c in copies]
    elsewhere = len({c.region for c in unsaved} - {copies[0].region})
    more = f" Not saved in {counted(elsewhere, 'other region')} either." if elsewhere else ""
    if session.is_flattened:
        more += " Both are compared with overlaps flattened."
    if draws_areas:
        more += f" {DRAW_AREAS}"
    elif is_on:
        more += f" {GOES_ON}"
    return f"✎ Working copies: {', '.join(lines)}. The files are unchanged.{more}"


def difference_rows(before: Evaluation, now: Evaluation) -> list[list[Cell]]:
    """Return one row per figure and count: of the files, edited, and their difference."""
    return [
        *(_figure_row(name, before, now) for name in METRIC_TEXTS),
        *(_count_row(*line) for line in _counts(before, now)),
    ]


def _figure_row(name: str, before: Evaluation, now: Evaluation) -> list[Cell]:
    about = METRIC_TEXTS[name]
    old, new = float(before.metrics[name]), float(now.metrics[name])
    texts = [_text(name, value) for value in (old, new)]
    return [
        Cell(about.caption + (" px" if name in _LENGTHS else ""), about.meaning),
        *(Cell(text, _why(value)) for text, value in zip(texts, (old, new), strict=True)),
        Cell(signed(name, old, new), f"{new - old:+.6f}", bold=texts[0] != texts[1]),
    ]


def _count_row(name: str, old: int, new: int) -> list[Cell]:
    return [
        Cell(name, f"Number of {name}."),
        Cell(styles.count_text(old)),
        Cell(styles.count_text(new)),
        Cell(styles.signed_count_text(new - old), bold=old != new),
    ]


def signed(name: str, before: float, now: float) -> str:
    """Write how a figure changed, with its sign; an en dash if one is undefined."""
    change = now - before
    if math.isnan(change):
        return styles.UNDEFINED
    return with_sign(change, _text(name, abs(change)))


def _text(name: str, value: float) -> str:
    return styles.decimal_text(value) if name in _LENGTHS else styles.ratio_text(value)


def _why(value: float) -> str:
    return "Undefined: there is nothing to measure." if math.isnan(value) else ""


def _counts(before: Evaluation, now: Evaluation) -> list[tuple[str, int, int]]:
    rows = []
    for title, side in (
        ("annotated objects", Side.REFERENCE),
        ("predicted objects", Side.PREDICTION),
    ):
        rows.append((title, len(before.outcomes.side(side)), len(now.outcomes.side(side))))
    for status in styles.STATUS_WORDS:
        sides = _SIDES.get(status, (Side.REFERENCE,))
        old, new = (
            sum(e.outcomes.side(side).count(status) for side in sides) for e in (before, now)
        )
        rows.append((styles.STATUS_WORDS[status], old, new))
    return rows
