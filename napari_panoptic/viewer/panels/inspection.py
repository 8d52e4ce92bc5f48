"""The dialog before a cohort opens: its contents, a picture, and doubts with settings."""

from __future__ import annotations

from collections.abc import Callable

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QImage, QPixmap, QResizeEvent
from qtpy.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from napari_panoptic.common.text import counted
from napari_panoptic.inspection.inspect import Inspection
from napari_panoptic.inspection.values import Doubt, Fix, count_rows
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.report.nuclei.inspection_picture import (
    PREDICTION_COLOUR,
    REFERENCE_COLOUR,
    InspectionPicture,
)
from napari_panoptic.viewer.kit.layouts import DIALOG_MARGINS, Grow, lay_out, row_of
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import (
    PushButton,
    button_box,
    heading,
    separator,
    swatch_icon,
)

TITLE = "Open cohort"
NO_DOUBTS = "No doubts: the files that were read are consistent."
NO_PICTURE = "No picture: no region has both an annotation and a prediction that can be drawn."
UNCHANGED = "Opening writes nothing."
NEW = f"“Open” writes {DESCRIPTION} into the folder."
CHANGED = f"“Open” writes the settings into {DESCRIPTION}, and keeps a copy of what it replaces."
CHOOSE = "Choose…"
_PICTURE_PX = 330
_LEAST_PICTURE_PX = 220


class InspectionDialog(QDialog):
    """The recognised contents of a folder; nothing is evaluated or written before “Open”.

    Parameters
    ----------
    parent
        The window.
    """

    fix_wanted = Signal(object)  # a Fix

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(TITLE)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.picture = _Picture()
        self._bar = QProgressBar()
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self.note = WrappedLabel()
        self.doubts: list[DoubtRow] = []
        buttons = button_box(QDialogButtonBox.StandardButton.Cancel)
        buttons.rejected.connect(self.reject)
        self.open_button = PushButton("Open")
        self.open_button.setDefault(True)
        buttons.addButton(self.open_button, QDialogButtonBox.ButtonRole.AcceptRole)
        content = Grow((Grow(self._area), self.picture))
        lay_out(self, content, self._bar, (Grow(self.note), buttons), margins=DIALOG_MARGINS)
        self._fit(parent)
        self.set_busy(False)

    def show_inspection(
        self, inspection: Inspection, picture: InspectionPicture | None, *, is_new: bool
    ) -> None:
        """Show the recognised contents.

        Parameters
        ----------
        inspection
            The recognised contents.
        picture
            Both outlines; None if there is no such region.
        is_new
            Whether the folder has no ``cohort.toml`` yet.
        """
        self.doubts = [DoubtRow(doubt, self.fix_wanted.emit) for doubt in inspection.doubts]
        count = len(self.doubts)
        notes = "\n".join(["Also noticed:", *inspection.notes])
        body = QWidget()
        lay_out(
            body,
            heading(shown(inspection.cohort.name)),
            _counts(inspection),
            heading(counted(count, "doubt")) if count else WrappedLabel(NO_DOUBTS),
            *self.doubts,
            separator(),
            WrappedLabel(_objects(inspection)),
            *([WrappedLabel(notes)] if inspection.notes else []),
            margins=(4, 4, 8, 4),
        ).setSpacing(6)
        self._area.setWidget(body)
        self.picture.show_picture(picture)
        self.note.setText(UNCHANGED if inspection.is_saved else NEW if is_new else CHANGED)
        self.set_busy(False)

    def set_busy(self, is_busy: bool) -> None:
        """Show whether the folder is being read again; the buttons wait for it."""
        self._bar.setVisible(is_busy)
        self.open_button.setEnabled(not is_busy)
        for row in self.doubts:
            row.setEnabled(not is_busy)

    def show_failed(self, message: str) -> None:
        """Show the error of writing a setting or the description."""
        self.note.setText(f"⚠ {message}")
        self.set_busy(False)

    def texts(self) -> list[str]:
        """Return all texts about the folder."""
        body = self._area.widget()
        return [] if body is None else [label.text() for label in body.findChildren(PlainLabel)]

    def _fit(self, parent: QWidget | None) -> None:
        """Resize to the default size, or smaller in a small window."""
        width, height = 980, 640
        if parent is not None:
            width, height = min(width, parent.width() - 60), min(height, parent.height() - 60)
        self.resize(max(width, 640), max(height, 420))


class DoubtRow(QWidget):
    """A doubt, the settings that remove it, and a button that applies one of them.

    Parameters
    ----------
    doubt
        The doubt.
    apply
        Called with the chosen setting.
    """

    def __init__(self, doubt: Doubt, apply: Callable[[Fix], object]) -> None:
        super().__init__()
        self.doubt = doubt
        self.choices = QComboBox()
        self.apply_button = QPushButton("Apply")
        self.line = WrappedLabel()
        self.line.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row = (self.choices, self.apply_button, None)
        lay_out(self, WrappedLabel(doubt.message), row, self.line, margins=(0, 2, 0, 6))
        self._apply = apply
        if not doubt.fixes:
            for widget in (self.choices, self.apply_button, self.line):
                widget.hide()
            return
        self.choices.addItems([shown(fix.label) for fix in doubt.fixes])
        self.choices.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        if not doubt.is_clear:
            self.choices.setPlaceholderText(CHOOSE)
            self.choices.setCurrentIndex(-1)
        self.choices.currentIndexChanged.connect(lambda _=0: self._show_choice())
        self.apply_button.clicked.connect(lambda _=False: self._on_apply())
        self._show_choice()

    def _show_choice(self) -> None:
        index = self.choices.currentIndex()
        self.apply_button.setEnabled(index >= 0)
        lines = self.doubt.fixes[index].lines if index >= 0 else []
        self.line.setText("\n".join(lines))
        self.line.setVisible(bool(lines))

    def _on_apply(self) -> None:
        index = self.choices.currentIndex()
        if index >= 0:
            self._apply(self.doubt.fixes[index])


class _Picture(QWidget):
    """A picture of both outlines, scaled to the space available, with its legend."""

    def __init__(self) -> None:
        super().__init__()
        self._pixels: QPixmap | None = None
        self.image = PlainLabel()
        self.image.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignHCenter)
        self.image.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self.image.setMinimumSize(_LEAST_PICTURE_PX, _LEAST_PICTURE_PX)
        self.region = WrappedLabel()
        self._team = PlainLabel()
        self._legend = QWidget()
        swatches = []
        for colour in (REFERENCE_COLOUR, PREDICTION_COLOUR):
            swatches.append(PlainLabel())
            swatches[-1].setPixmap(swatch_icon(colour, size=12).pixmap(12, 12))
        reference, prediction = swatches
        self._legend.setLayout(row_of(reference, "Annotation", prediction, self._team, None))
        lay_out(self, self._legend, self.region, Grow(self.image), margins=(4, 4, 4, 4))
        self.setFixedWidth(_PICTURE_PX)

    def show_picture(self, picture: InspectionPicture | None) -> None:
        """Show a picture; None for a sentence instead."""
        self._legend.setVisible(picture is not None)
        self.region.setText(NO_PICTURE if picture is None else f"Part of {picture.region}")
        self._pixels = None
        if picture is not None:
            height, width, _ = picture.pixels.shape
            content = picture.pixels.tobytes()
            image = QImage(content, width, height, 3 * width, QImage.Format.Format_RGB888)
            self._pixels = QPixmap.fromImage(image.copy())
            self._team.setText(picture.team)
        self._draw()

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Fit the picture into the space available."""
        super().resizeEvent(event)
        self._draw()

    def _draw(self) -> None:
        if self._pixels is None:
            self.image.clear()
            return
        self.image.setPixmap(
            self._pixels.scaled(
                self.image.size(),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        )


def _counts(inspection: Inspection) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(14)
    grid.setVerticalSpacing(2)
    header, rows = count_rows(inspection.counts)
    for row, texts in enumerate([header, *(row[:-1] for row in rows)]):
        for column, text in enumerate(texts):
            label = PlainLabel(text)
            is_number = 0 < column < len(texts) - 1
            side = Qt.AlignmentFlag.AlignRight if is_number else Qt.AlignmentFlag.AlignLeft
            label.setAlignment(side | Qt.AlignmentFlag.AlignTop)
            label.setWordWrap(column == len(texts) - 1)
            grid.addWidget(label, row, column)
    grid.setColumnStretch(len(header) - 1, 1)
    return grid


def _objects(inspection: Inspection) -> str:
    _, rows = count_rows(inspection.counts)
    read, regions = len(inspection.looked_at), len(inspection.cohort.regions)
    lines = [f"Objects in the regions read ({read} of {regions}):"]
    return "\n".join([*lines, *(f"{row[0]}: {row[-1]}" for row in rows if row[-1])])
