"""The strip below the image: what colours and outlines mean, with counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from napari.settings import get_settings
from psygnal import Signal
from qtpy.QtCore import QEvent, QSignalBlocker, QSize, Qt
from qtpy.QtGui import QFont, QFontMetrics, QResizeEvent
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QSlider,
    QToolButton,
    QWidget,
)

from napari_panoptic.display import styles
from napari_panoptic.display.object_rows import SIDE_WORDS, ObjectFilter
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.live.session import EditedEvaluation
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.values.cohort import ClassScheme, Rgb
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import SIDES, Side, Status
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.shown import RichLabel
from napari_panoptic.viewer.kit.widgets import heading, outline_icon
from napari_panoptic.viewer.panels.objects.panel import ObjectsPresenter
from napari_panoptic.viewer.panels.part import BLIND_SENTENCE, Connections, Presenter

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
        self.instead = RichLabel(wraps=True)
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


class LegendPresenter(Presenter[LegendStrip]):
    """Counts the objects that are shown, and lists those of an entry."""

    title = "Legend"
    shows_outcomes = False  # it has a text of its own for that

    def connections(self) -> Connections:
        """Listen to session, state and strip."""
        session, panel, events = self.session, self.panel, self.link.state.events
        return [
            (session.region_changed, self._show_counts),
            (session.team_changed, self._show_counts),
            (session.threshold_changed, self._show_counts),
            (session.edited, self._on_edited),
            (events.look, self._show_look),
            (events.is_blind, self._show_blind),
            (panel.chip_clicked, self._list),
            (panel.look_chosen, partial(setattr, self.link.state, "look")),
        ]

    def refresh(self) -> None:
        """Show look and counts."""
        self._show_blind(self.link.state.is_blind)
        self._show_look(self.link.state.look)

    def cycle_display(self) -> None:
        """Draw objects as outlines, filled, or not at all: the next of these."""
        look = self.link.state.look
        self.link.state.look = replace(look, display=look.display.following)

    def toggle_colours(self) -> None:
        """Colour objects by class instead of status, or the reverse."""
        look = self.link.state.look
        by_status = look.colour_by is ColourBy.STATUS
        other = ColourBy.CLASS if by_status else ColourBy.STATUS
        self.link.state.look = replace(look, colour_by=other)

    def _show_look(self, look: Look) -> None:
        self.panel.show_look(look)
        self._show_counts()

    def _show_blind(self, is_blind: bool) -> None:
        self.panel.show_instead(BLIND_SENTENCE if is_blind else "")

    def _on_edited(self, edit: EditedEvaluation) -> None:
        if edit.team == self.session.team:
            self._show_counts()

    def _show_counts(self, _changed: object = None) -> None:
        session = self.session
        snapshot, evaluation = session.snapshot, session.shown
        self.panel.show_counts(
            None if evaluation is None else evaluation.outcomes,
            None if snapshot is None else snapshot.reference,
            None if snapshot is None else snapshot.predictions.get(session.team or ""),
            session.cohort.scheme,
        )

    def _list(self, side: Side, word: str) -> None:
        """List only the objects of an entry; the same one again lists all."""
        words = frozenset({word})
        is_status = word in set(Status)
        wanted = ObjectFilter(
            sides=frozenset({SIDE_WORDS[SIDES.index(side)]}),
            statuses=words if is_status else None,
            classes=None if is_status else words,
        )
        self.link.presenter(ObjectsPresenter).list_only(wanted)
