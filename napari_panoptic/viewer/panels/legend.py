"""The legend above the image: what colours and outlines mean, with counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from psygnal import Signal, SignalInstance
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtGui import (  # type: ignore[attr-defined]
    QAction,
    QIcon,
    QPainter,
    QPaintEvent,
    QPixmap,
)
from qtpy.QtWidgets import QMenu, QSizePolicy, QSlider, QToolButton, QWidget, QWidgetAction

from napari_panoptic.display import styles
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.explain.failures import decided_by_zone
from napari_panoptic.live.session import EditedEvaluation
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.values.cohort import ClassScheme, Rgb
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import SIDES, Side, Status
from napari_panoptic.viewer.kit.layouts import Grow, row_of
from napari_panoptic.viewer.kit.menus import TickMenu
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, show_info
from napari_panoptic.viewer.kit.widgets import Clickable, opens_menu, outline_icon
from napari_panoptic.viewer.panels.objects.presenter import ObjectsPresenter
from napari_panoptic.viewer.panels.part import (
    BLIND_SENTENCE,
    Connections,
    Presenter,
    Surroundings,
)

OPACITY_PX = 120
"""Least width of the slider for the opacity of filled objects."""
_STATUS_SIDES: Mapping[Status, Sequence[Side]] = {
    Status.TP: SIDES,
    Status.FN: (Side.REFERENCE,),
    Status.FP: (Side.PREDICTION,),
    Status.MISCLASSIFIED: SIDES,
    Status.IGNORED: SIDES,
}
_ICON_WIDTHS: Mapping[Side, float] = {Side.REFERENCE: 2.5, Side.PREDICTION: 1.5}
_SHORT_WORDS = {
    **{str(status): word for status, word in styles.SHORT_STATUS_WORDS.items()},
    "decided by border": "border",
}
_ICON_PX, _BETWEEN_PX, UNLIMITED_PX = 16, 10, 1 << 20


@dataclass(frozen=True)
class Chip:
    """One entry of the legend."""

    #: A status or class.
    word: str
    #: Its colour.
    colour: Rgb
    #: How many objects of each side that can have it; None if that is unknown.
    counts: Mapping[Side, int | None]
    #: One sentence.
    meaning: str
    #: What a click does.
    click: str = "Click to list only these; again for all."


def status_chips(outcomes: Outcomes | None) -> list[Chip]:
    """List the statuses with their counts."""
    return [
        Chip(
            styles.STATUS_WORDS[status],
            styles.STATUS_COLOURS[status],
            {side: None if outcomes is None else outcomes.side(side).count(status) for side in on},
            styles.STATUS_MEANINGS[status],
        )
        for status, on in _STATUS_SIDES.items()
    ]


def class_chips(
    labels: Mapping[Side, LabelImage | SideOutcomes | None], scheme: ClassScheme
) -> list[Chip]:
    """List the classes with their counts."""
    colours = styles.class_colours(len(scheme.names))
    return [
        Chip(
            name,
            colour,
            {
                side: None if found is None else int((found.class_index == number).sum())
                for side, found in labels.items()
            },
            f"Nuclei of the class {name}.",
        )
        for number, (name, colour) in enumerate(zip(scheme.names, colours, strict=True), start=1)
    ]


NONE_DECIDED = (
    "No status in this region depends on the uncertain border. Widen it in the settings to look "
    "for others."
)
BORDER = "decided by border"
_BORDER_GREY: Rgb = (140, 140, 140)


def border_chip(decided: Mapping[Side, int]) -> Chip:
    """Return the entry of the uncertain border, with how many objects it decides."""
    return Chip(
        BORDER,
        _BORDER_GREY,
        {**decided},
        "Grey bands are the uncertain border; the status of these objects depends on it.",
        "Click to show them in the gallery, and to lead through them with N.",
    )


class LegendEntry(Clickable, PlainLabel):
    """An outline in a colour, a word and its counts; a click lists only these objects."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._icon = QPixmap()
        self.setIndent(_ICON_PX + 4)

    def show_icon(self, icon: QIcon) -> None:
        """Show another outline."""
        self._icon = icon.pixmap(_ICON_PX, _ICON_PX)
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802
        """Draw the outline beside the text."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.drawPixmap(0, (self.height() - _ICON_PX) // 2, self._icon)
        painter.end()


class ViewMenu(QToolButton):
    """The way objects are drawn, the meaning of their colours, and the opacity of filled ones."""

    look_chosen = Signal(Look)

    def __init__(self) -> None:
        super().__init__()
        self._look = Look()
        menu = TickMenu(self)
        menu.setToolTipsVisible(True)
        self.setMenu(menu)
        opens_menu(self)
        self.setToolTip("How objects are drawn (H), and what their colours mean (Q)")
        self._displays = {each: self._add(menu, each.value, display=each) for each in Display}
        menu.addSeparator()
        self._colours = {
            each: self._add(menu, f"by {each.value}", colour_by=each) for each in ColourBy
        }
        menu.addSeparator()
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(round(100 * styles.LEAST_FILL_OPACITY), 100)
        self.opacity.setMinimumWidth(OPACITY_PX)
        self.opacity.valueChanged.connect(self._on_opacity)
        self.zone = QAction("uncertain border", menu)
        self.zone.setCheckable(True)
        self.zone.setVisible(False)
        self.zone.setToolTip("Whether the uncertain border is drawn as a grey band.")
        self.zone.triggered.connect(
            lambda on: self.look_chosen.emit(replace(self._look, with_zone=on))
        )
        menu.addAction(self.zone)
        menu.addSeparator()
        self._opacity = QWidgetAction(menu)
        self._opacity.setDefaultWidget(self.opacity)
        menu.addAction(self._opacity)

    def show_look(self, look: Look, *, with_colours: bool = True) -> None:
        """Show how objects are drawn; colours may have another meaning."""
        self._look = look
        for display, action in self._displays.items():
            action.setChecked(display is look.display)
        for colours, action in self._colours.items():
            action.setChecked(colours is look.colour_by)
            action.setVisible(with_colours)
        self.zone.setChecked(look.with_zone)
        with QSignalBlocker(self.opacity):
            self.opacity.setValue(round(100 * look.fill_opacity))
        self._opacity.setVisible(look.display is Display.FILL)
        self.opacity.setToolTip(f"Opacity of filled objects: {100 * look.fill_opacity:.0f} %")
        words = [look.display.value, *([f"by {look.colour_by.value}"] if with_colours else [])]
        self.setText(" ".join(words))

    def choose(self, choice: Display | ColourBy) -> None:
        """Choose an entry, as a click in the menu does."""
        actions: Mapping[Any, QAction] = {**self._displays, **self._colours}
        actions[choice].trigger()

    def _add(self, menu: QMenu, words: str, **change: Any) -> QAction:
        action = QAction(words, menu)
        action.setCheckable(True)
        action.triggered.connect(lambda _=False: self._on_choice(replace(self._look, **change)))
        menu.addAction(action)
        return action

    def _on_choice(self, chosen: Look) -> None:
        self.show_look(self._look)  # the entry chosen already stays ticked
        if chosen != self._look:
            self.look_chosen.emit(chosen)

    def _on_opacity(self, percent: int) -> None:
        self.look_chosen.emit(replace(self._look, fill_opacity=percent / 100))


class LegendStrip(QWidget):
    """What colours and outline weights mean, with counts, in one line.

    An entry is clicked to list only these objects.
    """

    chip_clicked = Signal(str)  # a status or class

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = Look()
        self.chips: dict[str, LegendEntry] = {}
        self._shown: Sequence[Chip] = ()
        self._room_px = UNLIMITED_PX
        self.instead = RichLabel()
        self.instead.hide()
        self._entries = QWidget()
        self._row = row_of()
        self._row.setSpacing(_BETWEEN_PX)
        self._entries.setLayout(self._row)
        self._weights = PlainLabel("thick: annotation · thin: prediction")
        self._weights.setToolTip("Thick outlines are annotated objects, thin ones predicted.")
        self.view = ViewMenu()
        line = row_of(self.view, self._entries, self._weights, Grow(self.instead))
        line.setSpacing(_BETWEEN_PX)
        self.setLayout(line)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.show_look(self._look)
        self.show_counts(None, None, None, None)

    @property
    def look_chosen(self) -> SignalInstance:
        """Emitted when the user wants objects drawn in another way (Look)."""
        found: SignalInstance = self.view.look_chosen
        return found

    def show_counts(
        self,
        outcomes: Outcomes | None,
        reference: LabelImage | None,
        prediction: LabelImage | None,
        scheme: ClassScheme | None,
        decided: Mapping[Side, int] | None = None,
    ) -> None:
        """Show counts per side, by status or class, as objects are coloured.

        Parameters
        ----------
        outcomes, reference, prediction, scheme
            The objects and their classes, as far as there are any.
        decided
            How many objects the uncertain border decides; None without one.
        """
        labels: dict[Side, LabelImage | SideOutcomes | None] = {
            Side.REFERENCE: reference,
            Side.PREDICTION: prediction,
        }
        if outcomes is not None:  # these leave out objects that were erased
            labels = {side: outcomes.side(side) for side in Side}
        if self._look.colour_by is ColourBy.CLASS and scheme is not None:
            chips = class_chips(labels, scheme)
        else:
            chips = status_chips(outcomes)
        self.view.zone.setVisible(decided is not None)
        self.fill([*chips, *([] if decided is None else [border_chip(decided)])])

    def show_instead(self, text: str) -> None:
        """Set the meaning of the colours of another view; empty for none."""
        self.instead.set_rich(text)
        self.instead.setVisible(bool(text))
        self._entries.setVisible(not text)
        self.view.show_look(self._look, with_colours=not text)
        self._fit()

    def show_look(self, look: Look) -> None:
        """Show how objects are drawn."""
        self._look = look
        self.view.show_look(look, with_colours=self.instead.isHidden())

    def fill(self, chips: Sequence[Chip]) -> None:
        """Show entries with their counts."""
        self._shown = chips
        if [chip.word for chip in chips] != list(self.chips):
            self._rebuild()
        self._fit()

    def fit(self, room_px: int) -> None:
        """Take at most so much room: write words and counts shorter where they do not fit."""
        if room_px != self._room_px:
            self._room_px = room_px
            self._fit()

    def _fit(self) -> None:
        self._weights.setVisible(self.instead.isHidden())
        for is_short, with_weights in ((False, True), (False, False), (True, False)):
            for chip in self._shown:
                self._write(chip, is_short)
            if not with_weights:
                self._weights.hide()
            if self.sizeHint().width() <= self._room_px:
                break

    def _write(self, chip: Chip, is_short: bool) -> None:
        entry = self.chips[chip.word]
        to_text = styles.short_count_text if is_short else styles.count_text
        word = _SHORT_WORDS.get(chip.word, chip.word) if is_short else chip.word
        known = [count for count in chip.counts.values() if count is not None]
        # The same on both sides as one number, else annotation and prediction.
        texts = [to_text(count) for count in (known if len(set(known)) > 1 else known[:1])]
        entry.setText(" ".join([word, *([" | ".join(texts)] if texts else [])]))
        exact = "; ".join(
            f"{side.value} {styles.count_text(count)}"
            for side, count in chip.counts.items()
            if count is not None
        )
        here = f" Here: {exact}." if exact else ""
        entry.setToolTip(f"{chip.meaning}{here} {chip.click}")

    def _rebuild(self) -> None:
        for entry in self.chips.values():
            entry.hide()
            entry.deleteLater()
        self.chips = {}
        for chip in self._shown:
            entry = self.chips[chip.word] = LegendEntry()
            widths = [_ICON_WIDTHS[side] for side in chip.counts]
            entry.show_icon(outline_icon(chip.colour, *widths, size=_ICON_PX))
            entry.clicked.connect(partial(self.chip_clicked.emit, chip.word))
            self._row.addWidget(entry)


class LegendPresenter(Presenter[LegendStrip]):
    """Counts the objects that are shown, and lists those of an entry."""

    title = "Legend"
    shows_outcomes = False  # it has a text of its own for that

    def __init__(self, around: Surroundings, panel: LegendStrip) -> None:
        super().__init__(around, panel)
        self._decided: Mapping[Side, int] | None = None

    def connections(self) -> Connections:
        """Listen to session, state and strip."""
        session, panel, events = self.session, self.panel, self.link.state.events
        return [
            (session.region_changed, self._count),
            (session.team_changed, self._count),
            (session.threshold_changed, self._count),
            (self.link.edits_rested, self._count),
            (session.edited, self._on_edited),
            (events.look, self._show_look),
            (events.is_blind, self._show_blind),
            (panel.chip_clicked, self._list),
            (panel.look_chosen, partial(setattr, self.link.state, "look")),
        ]

    def refresh(self) -> None:
        """Show look and counts."""
        self._show_blind(self.link.state.is_blind)
        self._count()
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

    def _count(self, _changed: object = None) -> None:
        """Count the objects that the uncertain border decides, and show all counts."""
        evaluation, self._decided = self.session.evaluation, None
        if evaluation is not None and evaluation.settings.zone_px:
            self._decided = {
                side: int(np.count_nonzero(evaluation.decided_by_zone(side))) for side in SIDES
            }
        self._show_counts()

    def _show_counts(self, _changed: object = None) -> None:
        session = self.session
        snapshot, evaluation = session.snapshot, session.shown
        self.panel.show_counts(
            None if evaluation is None else evaluation.outcomes,
            None if snapshot is None else snapshot.reference,
            None if snapshot is None else snapshot.predictions.get(session.team or ""),
            session.cohort.scheme,
            self._decided,
        )

    def _list(self, word: str) -> None:
        """List only the objects of an entry; the same one again lists all."""
        if word == BORDER:
            self._show_decided()
            return
        words = frozenset({word})
        is_status = word in set(Status)
        wanted = ObjectFilter(
            statuses=words if is_status else None, classes=None if is_status else words
        )
        self.link.presenter(ObjectsPresenter).list_only(wanted)

    def _show_decided(self) -> None:
        """Show the objects that the uncertain border decides in the gallery and the queue."""
        session = self.session
        evaluation, snapshot = session.evaluation, session.snapshot
        if evaluation is None or snapshot is None:
            return
        found = decided_by_zone(evaluation, snapshot.region, str(session.team))
        if found.names:
            self.link.show_objects(found)
        else:
            show_info(NONE_DECIDED)
