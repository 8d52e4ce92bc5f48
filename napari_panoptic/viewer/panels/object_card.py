"""The card of the selected object: its picture, its outcome and why, and its figures."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from psygnal import Signal
from qtpy.QtCore import QEvent, Qt
from qtpy.QtGui import QEnterEvent, QGuiApplication, QImage, QPalette, QPixmap, QResizeEvent
from qtpy.QtWidgets import QBoxLayout, QWidget

from napari_panoptic.display import styles
from napari_panoptic.display.crops import CropSource, bounded_field_px
from napari_panoptic.display.describe import ObjectFacts, facts_of
from napari_panoptic.display.explanation import (
    Named,
    Sentence,
    explain,
    explain_border,
    plain_text,
)
from napari_panoptic.display.object_rows import COLUMNS
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.questions.answer import Reason
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.keys import DESK_KEYS, KEY_LIST
from napari_panoptic.viewer.kit.layouts import NO_MARGINS, Grow, ScrollPanel, fill, lay_out
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import ToolButton, viewport_of
from napari_panoptic.viewer.panels.failures.crops import crop_picture
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.question.presenter import QuestionPresenter
from napari_panoptic.viewer.panels.question.view import QuestionView
from napari_panoptic.viewer.panels.region_panel import SeenPresenter

EMPTY = "No nucleus is selected. Click one in the image, or use the keys:"
CROP_PX, SMALLEST_CROP_PX = 200, 100
"""Width of the picture on the screen."""
_MARGINS_PX = 24
"""Around picture and text, and between them."""
_UNBROKEN = str.maketrans(" \N{THIN SPACE}", "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}")
_WHOLE_NUMBERS = str.maketrans("\N{THIN SPACE}", "\N{NARROW NO-BREAK SPACE}")
LONGEST_IN_ONE_LINE = 24
"""Most characters of a value that stays on one line."""
ROOM = 1.5
"""Least width of the picture in the image, in widths of the object."""
WIDE_PX, LOW_PX = 460, 360
"""In a wide or a low panel, the picture stands beside the text."""
_VERDICT = next(column for column in COLUMNS if column.name == "verdict")


@dataclass(frozen=True, eq=False)
class Card:
    """The shown facts of an object."""

    #: Its figures.
    facts: ObjectFacts
    #: Why it has its status.
    sentence: Sentence
    #: Why it failed, from the common traits of the cohort's failures; None if that is unknown.
    reason: Reason | None = None
    #: The matched object, or None.
    partner: Named | None = None
    #: The reviewer's verdict; empty if there is none.
    verdict: str = ""
    #: Draws its picture, given a width in px and a factor for outlines; None without one.
    draw: Callable[[int, float], QImage] | None = None

    @property
    def status(self) -> str:
        """Return its status as a heading."""
        if self.facts.status is None:
            return "Not evaluated"
        word = styles.STATUS_WORDS[self.facts.status]
        return word[:1].upper() + word[1:]

    @property
    def lines(self) -> list[tuple[str, Sentence]]:
        """List names and values of its figures; the partner is a link."""
        lines: list[tuple[str, Sentence]] = [(k, (v,)) for k, v in self.facts.details()]
        if self.partner is not None:
            lines.insert(2, ("Partner", (f"{self.partner.side} ", self.partner)))
        return [*lines, ("Verdict", (self.verdict,))] if self.verdict else lines

    @property
    def text(self) -> str:
        """Return all of it as plain text."""
        head = [f"{self.status}: {self.facts.title}", plain_text(self.sentence)]
        head += [] if self.reason is None else [self.reason.sentence]
        return "\n".join(head + [f"{name}: {plain_text(value)}" for name, value in self.lines])


class ObjectCard(ScrollPanel):
    """Shows the selected object; its text can be selected and copied."""

    object_wanted = Signal(Side, int)  # and its id

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, margins_px=(6, 4, 6, 4), spacing_px=None)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.card: Card | None = None
        self.hint, self._picture = RichLabel(wraps=True), PlainLabel()
        keys = [(key.text, html.escape(key.meaning)) for key in (*DESK_KEYS, KEY_LIST)]
        self.hint.set_rich(f"{EMPTY}{_table(keys)}")
        self._picture.setScaledContents(True)
        self.copy_button = ToolButton("Copy", "Copy everything on this card as text.")
        self.copy_button.pushed.connect(self.copy)
        self.link_button = ToolButton(
            "Copy link", "Copy a link to this object, for colleagues with the same cohort."
        )
        self._head, self._sentence, self._figures = (RichLabel(wraps=True) for _ in range(3))
        self.reason = WrappedLabel()
        self._texts = (self._head, self._sentence, self.reason, self._figures)
        for label in self._texts:
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
            label.linkActivated.connect(self.follow)
        self._content = QWidget()
        picture, texts = QWidget(), QWidget()
        lay_out(picture, self._picture, (self.copy_button, self.link_button, None))
        self._buttons = self.copy_button, self.link_button
        for button in self._buttons:
            keeps = button.sizePolicy()
            keeps.setRetainSizeWhenHidden(True)
            button.setSizePolicy(keeps)
            button.hide()
        lay_out(texts, *self._texts)
        self._columns = QBoxLayout(QBoxLayout.Direction.TopToBottom, self._content)
        self._columns.setContentsMargins(*NO_MARGINS)
        fill(self._columns, picture, Grow(texts))
        fill(self._rows, self.hint, self._content, None)
        self.show_card(None)

    def show_card(self, card: Card | None) -> None:
        """Show an object; a hint if there is none."""
        self.card = card
        self.hint.setVisible(card is None)
        self._content.setVisible(card is not None)
        if card is not None:
            self._draw(card)
            self._write(card)

    def copy(self) -> None:
        """Copy all of it as text."""
        clipboard = QGuiApplication.clipboard()
        if clipboard is not None and self.card is not None:
            clipboard.setText(self.card.text)

    def follow(self, link: str) -> None:
        """Ask for the object of a link."""
        side, _, id_ = link.partition("/")
        self.object_wanted.emit(Side(side), int(id_))

    def enterEvent(self, event: QEnterEvent | None) -> None:  # noqa: N802
        """Offer to copy while the mouse is over the card."""
        super().enterEvent(event)
        for button in self._buttons:
            button.setVisible(self.card is not None)

    def leaveEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Leave the room to the picture."""
        super().leaveEvent(event)
        for button in self._buttons:
            button.hide()

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Put the picture beside the text, and make it smaller, where there is less room."""
        super().resizeEvent(event)
        self._fit_picture()

    def _fit_picture(self) -> None:
        """Leave the text the width of its longest word."""
        is_beside = self.width() >= WIDE_PX or self.height() < LOW_PX
        directions = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        self._columns.setDirection(directions[is_beside])
        words = max(label.minimumSizeHint().width() for label in self._texts)
        left = viewport_of(self).width() - words - _MARGINS_PX
        high = self.height() - self.copy_button.sizeHint().height() - 16
        room = min(high, 2 * self.width() // 5, left) if is_beside else CROP_PX
        size = min(max(room, SMALLEST_CROP_PX), CROP_PX)
        self._picture.setFixedSize(size, size)

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Draw links in the colour of another theme."""
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.PaletteChange and self.card:
            self._write(self.card)

    def _draw(self, card: Card) -> None:
        self._picture.setVisible(card.draw is not None)
        if card.draw is None:
            return
        fine = self.devicePixelRatioF()
        pixmap = QPixmap.fromImage(card.draw(round(CROP_PX * fine), fine))
        pixmap.setDevicePixelRatio(fine)
        self._picture.setPixmap(pixmap)

    def _write(self, card: Card) -> None:
        facts = card.facts
        swatch = ""
        if facts.status is not None:
            colour = styles.hex_colour(styles.STATUS_COLOURS[facts.status])
            swatch = f"<span style='color:{colour}'>■</span> "
        title = f"<b style='font-size: large'>{html.escape(card.status)}</b>"
        self._head.set_rich(f"{swatch}{title}<br>{html.escape(facts.title)}")
        self._sentence.set_rich(self._linked(card.sentence))
        self._sentence.setToolTip(facts.explanation)
        reason = card.reason
        self.reason.show_text("" if reason is None else reason.sentence)
        self.reason.setToolTip("" if reason is None else reason.tooltip)
        lines = [(name, self._linked(_kept_together(value))) for name, value in card.lines]
        self._figures.set_rich(_table(lines))
        self._fit_picture()

    def _linked(self, sentence: Sentence) -> str:
        """Write a sentence with links in the colour of the text."""
        colour = self.palette().color(QPalette.ColorRole.WindowText).name()
        return "".join(
            html.escape(part.translate(_WHOLE_NUMBERS))
            if isinstance(part, str)
            else f"<a style='color:{colour}' href='{part.side}/{part.id}'>{part.id}</a>"
            for part in sentence
        )


def _kept_together(value: Sentence) -> Sentence:
    """Return a value whose short parts stay on one line: the label reserves room for them."""
    return tuple(
        part.translate(_UNBROKEN)
        if isinstance(part, str) and len(part) <= LONGEST_IN_ONE_LINE
        else part
        for part in value
    )


def _table(lines: Sequence[tuple[str, str]]) -> str:
    cells = [f"<tr><td>{name}&nbsp;&nbsp;</td><td>{value}</td></tr>" for name, value in lines]
    return f"<table cellspacing='0'>{''.join(cells)}</table>"


class ObjectPresenter(SeenPresenter[ObjectCard]):
    """Keeps the card in step with the selection, edits and verdicts."""

    title = "Object"
    key = "Alt-i"
    panel_type = ObjectCard

    def connections(self) -> Connections:
        """Follow the selection; select the object of a link."""
        return [
            *super().connections(),
            (self.session.selection_changed, self.refresh),
            (self.link.panels.objects.verdicts_changed, self.refresh),
            (self.panel.object_wanted, self.select_id),
            *(
                (part.widget.answer_changed, self._on_answer)
                for part in self.link.parts
                if isinstance(part.widget, QuestionView)
            ),
            (self.panel.link_button.pushed, self.link.links.copy_shown),
        ]

    def compute_now(self) -> None:
        """Show the selected object."""
        selection = self.session.selection
        self.panel.show_card(None if selection is None else self._card(selection))

    def _card(self, selection: Selection) -> Card | None:
        side, row = selection.side, selection.row
        facts = facts_of(self.session, selection.team, side, row)
        snapshot = self.session.snapshot
        if snapshot is None or facts is None:
            return None
        evaluation = snapshot.result(selection.team)
        if evaluation is None:
            return Card(facts, (facts.explanation,))
        partner = None
        if facts.partner_row is not None and facts.partner_id is not None:
            across = evaluation.outcomes.other(side).side
            partner = Named(across, facts.partner_row, facts.partner_id)
        rows = self.link.panels.objects.model.rows
        at = rows.row_of(side, row)
        why, border = explain(evaluation, side, row), explain_border(evaluation, side, row)
        return Card(
            facts,
            (*why, " ", *border) if border else why,
            self._reason(selection),
            partner,
            verdict=rows.text(at, _VERDICT) if at < len(rows) else "",
            draw=self._drawing(snapshot, selection),
        )

    def _on_answer(self) -> None:
        """Show the reason of another answer; of several that change, most have none."""
        selection, card = self.session.selection, self.panel.card
        reason = None if selection is None else self._reason(selection)
        if reason != (None if card is None else card.reason):
            self.refresh()

    def _reason(self, selection: Selection) -> Reason | None:
        """Return the reason of a failure from the first answer that has one; asks no question."""
        if self.session.snapshot is None:
            return None
        region = self.session.snapshot.region.name
        name = FailureName(selection.team, region, selection.side, selection.id)
        presenters = (part.presenter for part in self.link.parts)
        asked = (own for own in presenters if isinstance(own, QuestionPresenter))
        return next(filter(None, (own.reason(name) for own in asked)), None)

    def _drawing(
        self, snapshot: RegionSnapshot, selection: Selection
    ) -> Callable[[int, float], QImage] | None:
        """Return the source of the object's picture; None on a slide, which is not held."""
        found = snapshot.evaluations.get(selection.team)
        if found is None:
            return None
        source = CropSource.of(snapshot.image, found)
        side, row = selection.side, selection.row
        y0, x0, y1, x1 = (int(edge) for edge in found.outcomes.side(side).bbox[row])
        field_px = bounded_field_px(max(source.usual_field_px(), ROOM * max(y1 - y0, x1 - x0)))
        return lambda size_px, fine: crop_picture(
            source, side, row, field_px=field_px, size_px=size_px, per_point=fine
        )
