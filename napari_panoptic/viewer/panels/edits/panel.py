"""The controls of editing."""

from __future__ import annotations

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import (
    QFrame,
    QGridLayout,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.figures import FigureTable
from napari_panoptic.viewer.kit.inputs import ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar, ScrollPanel
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import PushButton, separator
from napari_panoptic.viewer.panels.edits.texts import HEADER, NO_REGION, difference_rows


class EditsPanel(ScrollPanel):
    """The controls of editing; knows nothing of what they do."""

    edit_toggled = Signal(bool)
    shapes_toggled = Signal(bool)
    shown = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, spacing_px=4)
        self.edit = _button("Edit", "Make the objects editable (Alt+D).", checkable=True)
        whose = "Whose objects the brush paints: the annotation's or the team's."
        self.side = ChoiceBox(meaning=whose).shrinkable()
        self.new_object = _button("New object", "Paint a new object with the brush.")
        self.new_class = ChoiceBox(
            meaning="The class of newly painted objects; automatic: that of the selected object, "
            "otherwise the most frequent one."
        ).shrinkable()
        self.object_class = ChoiceBox(
            meaning="The class of the selected object; choose another to change it. Undo (Ctrl+Z) "
            "takes it back, as it does a stroke."
        ).shrinkable()
        self.undo = _button(
            "Undo",
            "Take back what was done last on the active layer: a stroke, a class given, or an "
            "ambiguous area (Ctrl+Z).",
        )
        self.redo = _button("Redo", "Redo the last undone change (Ctrl+Shift+Z).")
        self.shapes = _button(
            "Ambiguous areas as shapes",
            "Draw, move and delete the areas that the annotation excludes; figures follow.",
            checkable=True,
        )
        self.state = WrappedLabel(NO_REGION)
        self.state.setToolTip(
            "A working copy is what you drew; the files are as they were until you save elsewhere."
        )
        self.differences = FigureTable()
        self.save = _button("Save as…", "Write what you drew to a file of your choice.")
        self.open = _button(
            "Open…",
            "Go on with objects that were saved: those of the side chosen above become those of a "
            "file, as if you had drawn them.",
        )
        self.discard = _button("Discard…", "Go back to the files of this region.")
        self.left = QFrame()
        self.left.setFrameShape(QFrame.Shape.StyledPanel)
        self.left_state = WrappedLabel()
        self.restore = _button("Restore", "Continue with these edits, as if just drawn.")
        self.discard_left = _button("Discard", "Delete these edits for good.")
        self._lay_out()
        self._connect()
        self.show_left("", "")

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
        """Be up to date when the panel comes to the front."""
        super().showEvent(event)
        self.shown.emit()

    def _lay_out(self) -> None:
        layout = self._rows
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
        left = QVBoxLayout(self.left)
        left.setContentsMargins(6, 4, 6, 4)
        left.addWidget(self.left_state)
        left.addWidget(FlowBar(self.restore, self.discard_left))
        layout.addWidget(self.left)
        layout.addLayout(grid)
        layout.addWidget(FlowBar(self.new_object, self.undo, self.redo, self.shapes))
        layout.addWidget(separator())
        layout.addWidget(self.state)
        layout.addWidget(FlowBar(self.save, self.open, self.discard))
        layout.addWidget(self.differences)
        layout.addStretch(1)

    def chosen_side(self) -> Side:
        """Return which side is to be edited."""
        return self.side.choice or Side.PREDICTION

    def _connect(self) -> None:
        self.edit.toggled.connect(lambda on: self.edit_toggled.emit(on))
        self.shapes.toggled.connect(lambda on: self.shapes_toggled.emit(on))


def _button(text: str, tooltip: str, *, checkable: bool = False) -> PushButton:
    button = PushButton(text, tooltip)
    button.setCheckable(checkable)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keys with the image
    return button
