"""The strips around the image: what is shown, how far a slide is, and what the colours mean."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from napari.settings import get_settings
from psygnal import Signal
from qtpy.QtCore import QEvent, QSignalBlocker, QSize, Qt
from qtpy.QtGui import QFont, QFontMetrics, QResizeEvent
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSlider,
    QToolButton,
    QWidget,
)

from napari_panoptic.display import styles
from napari_panoptic.display.describe import ObjectFacts
from napari_panoptic.display.glossary import FIGURE_MEANINGS
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.values.cohort import ClassScheme, Rgb
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.jobs.timers import single_shot
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.keys import DESK_KEYS, KEY_LIST
from napari_panoptic.viewer.kit.shown import RichLabel
from napari_panoptic.viewer.kit.title_strip import FigureTitle
from napari_panoptic.viewer.kit.widgets import heading, outline_icon

STOP, EVALUATE = "Stop", "Evaluate"
_STEPS = 1000


class SlideBar(QWidget):
    """A line that is seen only while a slide is shown."""

    stop_wanted = Signal()
    evaluate_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = RichLabel()
        # Rather cut than make a narrow window wider.
        self._words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._progress = QProgressBar()
        self._progress.setRange(0, _STEPS)
        self._progress.setFixedWidth(240)
        self.button = QPushButton()
        self.button.clicked.connect(lambda _=False: self._on_button())
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._words, 1)
        row.addWidget(self._progress)
        row.addWidget(self.button)
        self.show_nothing()

    def text(self) -> str:
        """Return the text, as rich text; empty if the line is hidden."""
        return "" if self.isHidden() else self._words.text()

    def progress_text(self) -> str:
        """Return the text about work under way; empty if there is none."""
        return "" if self._progress.isHidden() else self._progress.format()

    def show_nothing(self) -> None:
        """Hide the line: no slide is shown."""
        self.hide()

    def show_words(self, words: str, tooltip: str = "") -> None:
        """Show a text about the slide, as rich text."""
        self._words.set_rich(words)
        self._words.setToolTip(tooltip)
        self.show()

    def show_waiting(self, saying: str, share: float = 0.0) -> None:
        """Show how far the evaluation is, from 0 to 1, with a way to stop it."""
        self._progress.setValue(round(_STEPS * share))
        self._progress.setFormat(f"{saying} %p%")
        self._offer(STOP, "Stop; the slide can be evaluated later.")
        self._progress.show()

    def show_stopped(self) -> None:
        """Show that the slide is not evaluated, with a way to do that."""
        self._progress.hide()
        self._offer(EVALUATE, "Evaluate this team on this slide.")

    def show_done(self) -> None:
        """Show that nothing is under way."""
        self._progress.hide()
        self.button.hide()

    def _offer(self, word: str, tooltip: str) -> None:
        self.button.setText(word)
        self.button.setToolTip(tooltip)
        self.button.show()

    def _on_button(self) -> None:
        if self.button.text() == STOP:
            self.stop_wanted.emit()
        else:
            self.evaluate_wanted.emit()


PATIENCE_MS = 150
"""How long something is being loaded before the title says so."""
OPACITY_PX = 72
"""Width of the slider for the opacity of filled objects."""
_SIDE_STATUSES: Mapping[Side, tuple[Status, ...]] = {
    Side.REFERENCE: (Status.TP, Status.FN, Status.MISCLASSIFIED, Status.IGNORED),
    Side.PREDICTION: (Status.TP, Status.FP, Status.MISCLASSIFIED, Status.IGNORED),
}
_ICON_WIDTHS: Mapping[Side, float] = {Side.REFERENCE: 3.5, Side.PREDICTION: 1.6}
_SHORT_WORDS = {str(status): word for status, word in styles.SHORT_STATUS_WORDS.items()}
_ICON_PX, _CHIP_PADDING_PX = 18, 7
SMALL_PT = 9
"""Font size of the counts where larger ones do not fit the legend."""
_SIDE_MEANINGS: Mapping[Side, str] = {
    Side.REFERENCE: "The annotation, drawn with thick outlines.",
    Side.PREDICTION: "The team's objects, drawn with thin outlines.",
}
NOTHING_SELECTED = "Click a nucleus to see its outcome; N goes to the next failure."
NOTHING_OPEN = "Open a cohort, two layers or the sample with the buttons at the right."
KEYS = " · ".join(f"{shortcut.text}: {shortcut.meaning}" for shortcut in (*DESK_KEYS, KEY_LIST))


@dataclass(frozen=True)
class Chip:
    """One entry of the legend."""

    #: A status or class.
    word: str
    #: Its colour.
    colour: Rgb
    #: How many objects, or None if that is unknown.
    count: int | None
    #: One sentence.
    meaning: str


def status_chips(outcomes: Outcomes | None, side: Side) -> list[Chip]:
    """List the statuses of a side with their counts."""
    return [
        Chip(
            styles.STATUS_WORDS[status],
            styles.STATUS_COLOURS[status],
            None if outcomes is None else outcomes.side(side).count(status),
            styles.STATUS_MEANINGS[status],
        )
        for status in _SIDE_STATUSES[side]
    ]


def class_chips(labels: LabelImage | SideOutcomes | None, scheme: ClassScheme) -> list[Chip]:
    """List the classes of a side with their counts."""
    return [
        Chip(
            name,
            colour,
            None if labels is None else int((labels.class_index == number).sum()),
            f"Nuclei of the class {name}.",
        )
        for number, (name, colour) in enumerate(
            zip(scheme.names, styles.class_colours(len(scheme.names)), strict=True), start=1
        )
    ]


def _chip_text(chip: Chip, is_short: bool) -> str:
    to_text = styles.short_count_text if is_short else styles.count_text
    word = _SHORT_WORDS.get(chip.word, chip.word) if is_short else chip.word
    return word if chip.count is None else f"{word} {to_text(chip.count)}"


def _chip_width(chip: Chip, font: QFont, is_short: bool) -> int:
    words = QFontMetrics(font).horizontalAdvance(_chip_text(chip, is_short))
    return words + _ICON_PX + _CHIP_PADDING_PX


def _sized(font: QFont, size_pt: float) -> QFont:
    sized = QFont(font)
    sized.setPointSizeF(size_pt)
    return sized


class LegendStrip(QWidget):
    """What colours and outline weights mean, with counts; always in sight.

    A chip is clicked to list only these objects.
    """

    chip_clicked = Signal(Side, str)
    look_chosen = Signal(Look)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = Look()
        self._places: dict[Side, QWidget] = {}
        self._rows: dict[Side, QHBoxLayout] = {}
        self.chips: dict[tuple[Side, str], QToolButton] = {}
        self._shown: dict[Side, Sequence[Chip]] = {}
        self._of_objects: list[QWidget] = []
        self.instead = RichLabel()
        self.instead.setWordWrap(True)
        self.instead.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.instead.setFixedHeight(len(Side) * (self.instead.fontMetrics().lineSpacing() + 4))
        self.instead.hide()
        grid = QGridLayout(self)
        grid.setContentsMargins(6, 2, 6, 2)
        grid.setVerticalSpacing(1)
        for line, side in enumerate(Side):
            name = heading(side.value)
            name.setToolTip(_SIDE_MEANINGS[side])
            place = self._places[side] = QWidget()
            # Counts of slides are long: they are shortened before they make a window wider.
            place.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            self._rows[side] = QHBoxLayout(place)
            self._rows[side].setContentsMargins(0, 0, 0, 0)
            self._rows[side].setSpacing(0)
            grid.addWidget(name, line, 0)
            grid.addWidget(place, line, 1)
            self._of_objects += [name, place]
        grid.addWidget(self.instead, 0, 1, len(Side), 1)
        grid.setColumnStretch(1, 1)
        display = [Choice(choice, choice.value) for choice in Display]
        colours = [Choice(choice, f"by {choice.value}") for choice in ColourBy]
        self._display = ChoiceBox(display, "How objects are drawn (H)")
        self._colour_by = ChoiceBox(colours, "What the colours mean (Q)")
        self._opacity = QSlider(Qt.Orientation.Horizontal)
        self._opacity.setRange(round(100 * styles.LEAST_FILL_OPACITY), 100)
        self._opacity.setFixedWidth(OPACITY_PX)
        self._opacity.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._opacity.valueChanged.connect(self._on_opacity)
        grid.addWidget(self._opacity, 0, 3)
        for line, menu in enumerate((self._display, self._colour_by)):
            menu.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
            menu.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            menu.chosen.connect(self._on_menu)
            grid.addWidget(menu, line, 2)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.show_look(self._look)
        self.show_counts(None, None, None, None)

    def show_counts(
        self,
        outcomes: Outcomes | None,
        reference: LabelImage | None,
        prediction: LabelImage | None,
        scheme: ClassScheme | None,
    ) -> None:
        """Show counts per side, by status or class as colours tell it."""
        labels: dict[Side, LabelImage | SideOutcomes | None] = {
            Side.REFERENCE: reference,
            Side.PREDICTION: prediction,
        }
        if outcomes is not None:  # these leave out objects that were erased
            labels = {side: outcomes.side(side) for side in Side}
        for side in Side:
            if self._look.colour_by is ColourBy.CLASS and scheme is not None:
                self._fill(side, class_chips(labels[side], scheme))
            else:
                self._fill(side, status_chips(outcomes, side))

    def show_instead(self, text: str) -> None:
        """Set the meaning of the colours of another view; empty for none."""
        self.instead.set_rich(text)
        self.instead.setVisible(bool(text))
        for widget in (*self._of_objects, self._colour_by):
            widget.setVisible(not text)
        if not text:
            self._fit_all()

    def show_look(self, look: Look) -> None:
        """Show how objects are drawn."""
        self._look = look
        self._display.show_choice(look.display)
        self._colour_by.show_choice(look.colour_by)
        with QSignalBlocker(self._opacity):
            self._opacity.setValue(round(100 * look.fill_opacity))
        self._opacity.setVisible(look.display is Display.FILL)
        self._opacity.setToolTip(f"Opacity of filled objects: {100 * look.fill_opacity:.0f} %")
        self._fit_all()

    def _fill(self, side: Side, chips: Sequence[Chip]) -> None:
        if [chip.word for chip in chips] != [word for s, word in self.chips if s is side]:
            self._rebuild(side, chips)
        self._shown[side] = chips
        self._fit()

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Write counts out where there is room for that."""
        super().resizeEvent(event)
        self._fit_all()

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Follow napari's font size, which changes with the style."""
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.StyleChange:
            self._fit_all()

    def _fit_all(self) -> None:
        if (layout := self.layout()) is not None:
            layout.activate()  # else the places are as wide as before
        self._fit()

    def _fit(self) -> None:
        """Write counts out, or shorter or smaller where that does not fit.

        Tooltips have the exact counts. Both sides are written alike. Only the smallest form
        decides how narrow the legend can be.
        """
        usual = float(get_settings().appearance.font_size)
        small = min(SMALL_PT, usual)
        forms = [(usual, False), (usual, True), (small, False), (small, True)]
        rooms = {}
        for side in self._shown:
            needed, place = self._width(side, *forms[-1]), self._places[side]
            place.setMinimumWidth(needed)
            rooms[side] = max(place.width(), needed)
        size_pt, is_short = next(
            form
            for form in forms
            if all(self._width(side, *form) <= room for side, room in rooms.items())
        )
        for side, chips in self._shown.items():
            for chip in chips:
                self._write(side, chip, size_pt, is_short)
            self._rows[side].invalidate()

    def _width(self, side: Side, size_pt: float, is_short: bool) -> int:
        """Return the width that the chips of a side take."""
        return sum(
            _chip_width(chip, _sized(self.font(), size_pt), is_short) for chip in self._shown[side]
        )

    def _write(self, side: Side, chip: Chip, size_pt: float, is_short: bool) -> None:
        button, font = self.chips[side, chip.word], _sized(self.font(), size_pt)
        if button.font() != font:
            button.setFont(font)
        button.setText(_chip_text(chip, is_short))
        button.setFixedWidth(_chip_width(chip, font, is_short))
        exact = "" if chip.count is None else f" Here: {styles.count_text(chip.count)}."
        button.setToolTip(f"{chip.meaning}{exact} Click to list only these.")

    def _rebuild(self, side: Side, chips: Sequence[Chip]) -> None:
        row = self._rows[side]
        while (item := row.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for key in [key for key in self.chips if key[0] is side]:
            del self.chips[key]
        for chip in chips:
            button = QToolButton()
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setIcon(outline_icon(chip.colour, _ICON_WIDTHS[side], size=_ICON_PX))
            button.setIconSize(QSize(_ICON_PX, _ICON_PX))
            button.setAutoRaise(True)
            button.setStyleSheet("padding: 0px; margin: 0px; border: none")
            button.clicked.connect(
                lambda _=False, s=side, w=chip.word: self.chip_clicked.emit(s, w)
            )
            self.chips[side, chip.word] = button
            row.addWidget(button)
        row.addStretch(1)

    def _on_menu(self, _choice: Display | ColourBy) -> None:
        chosen = replace(self._look, colour_by=self._colour_by.choice, display=self._display.choice)
        if chosen != self._look:
            self.look_chosen.emit(chosen)

    def _on_opacity(self, percent: int) -> None:
        self.look_chosen.emit(replace(self._look, fill_opacity=percent / 100))


class TitleStrip(FigureTitle):
    """Which region, team and rules are shown, the PQ, and the selected object."""

    def __init__(self) -> None:
        super().__init__(
            "No cohort is open",
            NOTHING_SELECTED,
            figure_meaning=f"{FIGURE_MEANINGS['pq']} Of this region and team.",
            notes_meaning="Problems in the files: vanished, overlapping, missing. "
            "Click for the list.",
        )
        self._busy = QProgressBar()
        self._busy.setRange(0, 0)
        self._busy.setTextVisible(False)
        self._busy.setFixedSize(70, 8)
        self._busy.setVisible(False)
        self._patience = single_shot(PATIENCE_MS, self._busy.show, self)
        self._first.insertWidget(self._first.indexOf(self.figure), self._busy)
        self.slide = SlideBar()
        self._lines.addWidget(self.slide)

    def show_title(
        self, parts: Sequence[str], pq: float | None, note: str = "", *, hint: str = ""
    ) -> None:
        """Show what is looked at, most important first, its PQ, a note on that, and a tooltip."""
        tooltip = f"{hint}\n{KEYS}" if hint else KEYS
        self._title.set_text(" · ".join(part for part in parts if part), tooltip=tooltip)
        figure = "" if pq is None else f"PQ {styles.ratio_text(pq)}"
        beside = f"<small>{html.escape(note)}</small>&nbsp; " if note else ""
        self.figure.set_rich(f"{beside}<b style='font-size: large'>{figure}</b>")

    def show_selected(self, facts: ObjectFacts | None) -> None:
        """Name one object and its outcome; its card has the figures."""
        if facts is None:
            self.selected.set_text(NOTHING_SELECTED, tooltip=KEYS)
            return
        lines = [facts.explanation, *(f"{name}: {value}" for name, value in facts.figures())]
        self.selected.set_text(f"▶ {facts.title} · {facts.verdict}", tooltip="\n".join(lines))

    def show_message(self, text: str) -> None:
        """Show a message until another object is selected."""
        self.selected.set_text(text, tooltip=KEYS)

    def show_notes(self, count: int) -> None:
        """Show how many oddities the files of this region have."""
        self.notes.show_count(count)

    def show_busy(self, busy: bool) -> None:
        """Show that something is being loaded, once it takes long enough to be noticed."""
        if busy:
            self._patience.start()
        else:
            self._patience.stop()
            self._busy.hide()
