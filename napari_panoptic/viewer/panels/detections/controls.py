"""The form of the desk of detections, and the strips above and below the image."""

from __future__ import annotations

import math

from psygnal import Signal
from qtpy.QtCore import QPointF, QRectF, QSignalBlocker, Qt
from qtpy.QtGui import QPainter, QPen, QPixmap
from qtpy.QtWidgets import QDoubleSpinBox, QFormLayout, QGridLayout, QSizePolicy, QSlider, QWidget

from napari_panoptic.detections.pairing import DISTANCE_UM, DetectionSettings
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.display.glossary import DETECTION_MEANINGS, POINT_STATUS_MEANINGS
from napari_panoptic.display.styles import STATUS_COLOURS, UNDEFINED, count_text, ratio_text
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.detections import DetectionCohort
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.keys import DETECTION_KEYS, KEY_LIST, key_text
from napari_panoptic.viewer.kit.layouts import Grow, row_of
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.title_strip import FigureTitle
from napari_panoptic.viewer.kit.widgets import (
    TISSUE,
    ElidedLabel,
    FormPanel,
    PushButton,
    ToolButton,
    heading,
    qcolor,
)
from napari_panoptic.viewer.panels.detections.lists import SIDE_WORDS
from napari_panoptic.viewer.state.preferences import Tool, ToolInHand

_STEPS = 1000
NOTHING_SELECTED = "Click a point to see its outcome; N: next failure."
_TOOL_HINTS = {
    Tool.ADD: "Click the image to add {} points; press the button again to stop.",
    Tool.MOVE: "Drag {} points, Delete removes them; press the button again to stop.",
}


class DetectionSettingsPanel(FormPanel):
    """Team, distance, threshold, and the actions on edits."""

    settings_chosen = Signal(DetectionSettings)
    tool_wanted = Signal(object, object)  # Side or None, Tool

    def __init__(self) -> None:
        super().__init__()
        self._settings = DetectionSettings()
        self._range: tuple[float, float] | None = None
        self.team = ChoiceBox(meaning="The team whose detections are shown.").shrinkable()
        self.distance = QDoubleSpinBox()
        self.distance.setRange(0.1, 1000.0)
        self.distance.setDecimals(1)
        self.distance.setSuffix(" µm")
        self.distance.setKeyboardTracking(False)
        self.distance.setToolTip(DETECTION_MEANINGS["distance"])
        self.reset = ToolButton("Reset", f"Back to {DISTANCE_UM:g} µm and all detections.")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _STEPS)
        self.slider.setToolTip(DETECTION_MEANINGS["threshold"])
        self._threshold = PlainLabel()
        self.open = PushButton("Open cohort…")
        self.add_detections = PushButton(
            "Add detections", "Each click on the image adds a detection."
        )
        self.add_annotated = PushButton("Add annotated", "Each click adds an annotated point.")
        self.move_points = PushButton(
            "Move, delete",
            "Drag points to move them; Delete removes those marked. Works on the points that were "
            "selected or edited last: detections or annotated ones.",
        )
        self.undo = PushButton(
            "Undo",
            f"Undo the last change of this frame, of detections or annotated points "
            f"({key_text('Ctrl-z')}).",
        )
        self.redo = PushButton("Redo", f"Make it again ({key_text('Ctrl-Shift-z')}).")
        self.save = PushButton("Save as…", "Write the changed points to a CSV file.")
        self._edits = ElidedLabel()
        self._lay_out()
        self._connect()

    def show_cohort(self, cohort: DetectionCohort) -> None:
        """List the teams of a cohort."""
        self.team.offer([Choice(name, name) for name in cohort.team_names])
        self.team.setEnabled(bool(cohort.teams))

    def show_session(self, session: DetectionSession, held: ToolInHand) -> None:
        """Show team, settings, edits, and which tool is in hand for whose points."""
        self._settings, self._range = session.settings, session.confidence_range
        self.team.show_choice(session.team)
        with QSignalBlocker(self.distance), QSignalBlocker(self.slider):
            self.distance.setValue(session.settings.distance_um)
            self.slider.setEnabled(self._range is not None)
            if not self.slider.isSliderDown():
                self.slider.setValue(self._position(session.settings.confidence))
        confidence = session.settings.confidence
        threshold = "all" if confidence is None else f"≥ {confidence:.3f}"
        self._threshold.setText("no confidences" if self._range is None else threshold)
        self.reset.setEnabled(session.settings != DetectionSettings())
        self._show_edits(session, held.side)
        self._show_tool(held)

    def _show_edits(self, session: DetectionSession, side: Side) -> None:
        """Show whether steps can be undone, and the unsaved edits."""
        self.undo.setEnabled(session.may_undo())
        self.redo.setEnabled(session.may_undo(back=False))
        words = [f"{name} ({team or 'annotation'})" for name, team in session.unsaved]
        self._edits.set_text(f"not saved: {', '.join(words)}" if words else "no unsaved edits")
        self.save.setEnabled(session.points(side) is not None)

    def _show_tool(self, held: ToolInHand) -> None:
        is_adding = held.tool is Tool.ADD
        self.add_detections.setChecked(is_adding and held.side is Side.PREDICTION)
        self.add_annotated.setChecked(is_adding and held.side is Side.REFERENCE)
        self.move_points.setChecked(held.tool is Tool.MOVE)

    def _lay_out(self) -> None:
        self._threshold.setMinimumWidth(self.fontMetrics().horizontalAdvance("no confidences"))
        form = QFormLayout(self)
        form.setContentsMargins(6, 4, 6, 4)
        form.setVerticalSpacing(4)
        form.addRow(self.open)
        form.addRow(PlainLabel("Team"), self.team)
        form.addRow(PlainLabel("Within"), row_of(Grow(self.distance), self.reset))
        form.addRow(PlainLabel("Confidence"), row_of(Grow(self.slider), self._threshold))
        form.addRow(row_of(self.add_detections, self.add_annotated, None))
        form.addRow(row_of(self.move_points, self.undo, self.redo, None))
        form.addRow(row_of(self.save, Grow(self._edits)))

    def _connect(self) -> None:
        self.distance.valueChanged.connect(self._choose)
        self.slider.valueChanged.connect(self._choose)
        self.reset.pushed.connect(lambda: self.settings_chosen.emit(DetectionSettings()))
        for button, side, tool in (
            (self.add_detections, Side.PREDICTION, Tool.ADD),
            (self.add_annotated, Side.REFERENCE, Tool.ADD),
            (self.move_points, None, Tool.MOVE),
        ):
            button.setCheckable(True)
            button.clicked.connect(
                lambda on, s=side, t=tool: self.tool_wanted.emit(s, t if on else Tool.LOOK)
            )

    def _choose(self, _value: float) -> None:
        confidence = self._settings.confidence
        if self.slider.value() != self._position(confidence):
            confidence = self._confidence(self.slider.value())
        self.settings_chosen.emit(DetectionSettings(self.distance.value(), confidence))

    def _confidence(self, position: int) -> float | None:
        """Return the threshold at a place of the slider; none at its beginning."""
        if self._range is None or position == 0:
            return None
        low, high = self._range
        return low + (high - low) * position / _STEPS

    def _position(self, confidence: float | None) -> int:
        if self._range is None or confidence is None:
            return 0
        low, high = self._range
        share = (confidence - low) / (high - low) if high > low else 1.0
        return min(max(round(_STEPS * share), 1), _STEPS)


class DetectionTitle(FigureTitle):
    """Which frame and team are shown, the F-measure, and the selected point."""

    def __init__(self) -> None:
        super().__init__(
            "",
            NOTHING_SELECTED,
            figure_meaning=DETECTION_MEANINGS["f_measure"],
            notes_meaning="Problems in the files of this frame. Click for the list.",
        )

    def show_session(self, session: DetectionSession) -> None:
        """Show the chosen frame, and its F-measure."""
        self.notes.show_count(len(session.findings))
        if session.shown is None:
            failed = next(iter(session.failed.values()), "")
            self._title.set_text(failed or "Loading …")
            self.figure.set_rich("")
            return
        settings, frame = session.settings, session.shown.frame
        parts = [frame.name, session.team or "no team", f"within {settings.distance_um:g} µm"]
        if settings.confidence is not None:
            parts.append(f"confidence ≥ {settings.confidence:.3f}")
        parts += [
            f"nothing {word}"
            for side, word in SIDE_WORDS.items()
            if (points := session.points(side)) is not None and not len(points)
        ]
        keys = " · ".join(f"{key.text}: {key.meaning}" for key in (*DETECTION_KEYS, KEY_LIST))
        self._title.set_text(" · ".join(parts), tooltip=keys)
        figure = (
            _why(session)
            if session.judged is None
            else (f"F {ratio_text(session.judged.counts.f_measure)}")
        )
        self.figure.set_rich(f"<b style='font-size: large'>{figure}</b>")

    def show_selected(self, session: DetectionSession, held: ToolInHand) -> None:
        """Show the selected point in a line; with a tool in hand, what to do with it."""
        hint = _TOOL_HINTS.get(held.tool, "").format(SIDE_WORDS[held.side])
        self.selected.set_text(hint or _described(session))


def _why(session: DetectionSession) -> str:
    """Describe why there is no figure."""
    name = "" if session.shown is None else session.shown.frame.name
    if name in session.unjudged:
        return "cannot be judged"
    if session.points(Side.REFERENCE) is None:
        return "no usable annotation"
    if session.team is None:
        return "no predictions: add a team's files"
    return f"file of this team: {session.lacking(name, session.team)}"


def _described(session: DetectionSession) -> str:
    judged = session.judged
    if session.selection is None or judged is None:
        return NOTHING_SELECTED
    side, row = session.selection
    own = judged.side(side)
    status = STATUSES[own.status[row]]
    parts = [f"▶ {SIDE_WORDS[side]} {own.points.ids[row]}", str(status)]
    if not math.isnan(own.points.confidence[row]):
        parts.append(f"confidence {own.points.confidence[row]:g}")
    if not math.isnan(own.distance_um[row]):
        what = "partner" if status is Status.TP else "nearest"
        parts.append(f"{what} {own.distance_um[row]:.1f} µm away")
    return " · ".join(parts)


_LEGEND: tuple[tuple[Side, Status, str], ...] = (
    (Side.REFERENCE, Status.TP, "TP"),
    (Side.REFERENCE, Status.FN, "FN"),
    (Side.PREDICTION, Status.TP, "TP"),
    (Side.PREDICTION, Status.FP, "FP"),
    (Side.PREDICTION, Status.IGNORED, "below threshold"),
)


def _symbol(side: Side, colour: Rgb) -> QPixmap:
    """Draw a circle or a cross on a tissue-coloured ground."""
    size = 16
    pixmap = QPixmap(2 * size, 2 * size)  # twice as fine, for sharp screens
    pixmap.setDevicePixelRatio(2.0)
    pixmap.fill(qcolor(TISSUE))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if side is Side.REFERENCE:
        painter.setPen(QPen(qcolor(colour), 2.6))
        painter.drawEllipse(QRectF(2.5, 2.5, size - 5, size - 5))
    else:
        middle = size / 2
        for width, pen in ((5.4, (13, 13, 13)), (3.2, colour)):
            painter.setPen(QPen(qcolor(pen), width))
            painter.drawLine(QPointF(3.5, middle), QPointF(size - 3.5, middle))
            painter.drawLine(QPointF(middle, 3.5), QPointF(middle, size - 3.5))
    painter.end()
    return pixmap


class DetectionLegend(QWidget):
    """What circles, crosses and colours mean, with counts."""

    def __init__(self) -> None:
        super().__init__()
        self._words = {(side, status): PlainLabel() for side, status, _ in _LEGEND}
        grid = QGridLayout(self)
        grid.setContentsMargins(6, 2, 6, 2)
        grid.setVerticalSpacing(1)
        for line, side in enumerate(Side):
            grid.addWidget(heading(SIDE_WORDS[side], DETECTION_MEANINGS[str(side)]), line, 0)
            row = row_of()
            for status_side, status, _ in _LEGEND:
                if status_side is side:
                    icon, words = PlainLabel(), self._words[side, status]
                    icon.setPixmap(_symbol(side, STATUS_COLOURS[status]))
                    words.setToolTip(POINT_STATUS_MEANINGS[status])
                    row.addWidget(icon)
                    row.addWidget(words)
                    row.addSpacing(8)
            row.addStretch(1)
            grid.addLayout(row, line, 1)
        grid.setColumnStretch(1, 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_session(self, session: DetectionSession) -> None:
        """Count the shown points."""
        judged = session.judged
        for side, status, word in _LEGEND:
            text = UNDEFINED
            if judged is not None:
                own = judged.side(side).status
                text = count_text(int((own == STATUS_CODE[status]).sum()))
            self._words[side, status].setText(f"{word} {text}")

    def text(self, side: Side, status: Status) -> str:
        """Return the text about a status."""
        return self._words[side, status].text()
