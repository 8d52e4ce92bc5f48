"""Filters of lists: menus of classes, sides, statuses, causes and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psygnal import Signal
from qtpy.QtWidgets import QToolButton

from napari_panoptic.display import styles
from napari_panoptic.display.glossary import VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.display.names import cut_off
from napari_panoptic.display.object_rows import SIDE_WORDS
from napari_panoptic.values.vocabulary import SIDES, Cause, Status
from napari_panoptic.viewer.kit.menus import TickMenu
from napari_panoptic.viewer.kit.widgets import opens_menu

_SIDE_TEXTS = dict(zip(SIDE_WORDS, (str(side) for side in SIDES), strict=True))
_TEXTS = _SIDE_TEXTS | {str(cause): word for cause, word in styles.CAUSE_WORDS.items()}
"""Menu labels that differ from their values."""
_VERDICT_TEXTS = {VERDICT_WORDS[verdict]: text for verdict, text in VERDICT_MEANINGS.items()}
_NO_CAUSE, _NO_VERDICT = "no cause", "no verdict"


FILTER = "Filter"
LONGEST_FILTER = 40
"""Most characters of filters on their button."""


class FilterMenu(QToolButton):
    """A button with a menu of words, each let through or not."""

    changed = Signal()

    def __init__(self, title: str, words: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._words: tuple[str, ...] = ()
        self._menu = TickMenu(self)
        self._menu.setToolTipsVisible(True)
        self.setMenu(self._menu)
        opens_menu(self)
        self.setToolTip(f"Which {title} to list.")
        self.set_words(words)

    def set_words(self, words: Sequence[str]) -> None:
        """Offer other words, all let through; the same words stay as they are."""
        self._show_state()
        if tuple(words) == self._words:
            return
        self._words = tuple(words)
        self._menu.clear()
        for word in words:
            action = self._menu.addAction(_text_of(self._title, word))
            if action is not None:
                action.setCheckable(True)
                action.setChecked(True)
                action.setData(word)
                action.setToolTip(_meaning(word))
                action.triggered.connect(lambda _=False: self._on_change())
        self._show_state()

    def checked(self) -> frozenset[str] | None:
        """Return the words that are let through; None for all."""
        chosen = frozenset(a.data() for a in self._menu.actions() if a.isChecked())
        return None if len(chosen) == len(self._words) else chosen

    def uncheck(self, word: str) -> None:
        """Stop letting a word through, as a click in the menu does."""
        for action in self._menu.actions():
            if action.data() == word and action.isChecked():
                action.trigger()

    def check_only(self, words: frozenset[str] | None) -> None:
        """Let only some words through; None for all."""
        for action in self._menu.actions():
            action.setChecked(words is None or action.data() in words)
        self._show_state()

    def _on_change(self) -> None:
        self._show_state()
        self.changed.emit()

    def _show_state(self) -> None:
        chosen = self.checked()
        title = self._title.capitalize()
        self.setText(title if chosen is None or not self._words else f"{title} ({len(chosen)})")


def filter_text(chosen: Mapping[str, frozenset[str] | None]) -> str:
    """Return the text of a button for filters, as far as it fits.

    Parameters
    ----------
    chosen
        Title of a `FilterMenu` -> the words that it lets through; None for all.
    """
    texts = [
        ", ".join(sorted(_text_of(title, word) for word in words))
        for title, words in chosen.items()
        if words is not None
    ]
    return cut_off(f"{FILTER}: {'; '.join(texts)}", LONGEST_FILTER) if texts else FILTER


def _text_of(title: str, word: str) -> str:
    """Return how the menu of a title writes a word."""
    return _TEXTS.get(word, word) or (_NO_VERDICT if title == "verdict" else _NO_CAUSE)


def _meaning(word: str) -> str:
    if word in set(Status):
        return styles.STATUS_MEANINGS[Status(word)]
    if word in set(Cause):
        cause = Cause(word)
        meaning = styles.CAUSE_MEANINGS[cause]
        return meaning if styles.CAUSE_WORDS[cause] == word else f"{cause}: {meaning}"
    return _VERDICT_TEXTS.get(word, "")
