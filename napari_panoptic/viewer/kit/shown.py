"""Texts from files in Qt: always as they are written, never as markup, in labels and in messages.

Qt takes any text that looks like HTML for HTML: in labels, tooltips and message
boxes a team's name could then draw pictures from files or other machines, and
look like a part of the program. Text from a file goes through `shown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from napari.utils import notifications
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QWidget

from napari_panoptic.common.text import visible

# Whatever Qt could take for a tag; it also counts an escaped one.
_MARKUP = re.compile(r"<[^<]*>|<\?xml|<!doc|&lt;", re.IGNORECASE)
LONGEST = 1000
"""Of a line: Qt lays out a whole text before it shows a part of it."""
_LONG_WORD = re.compile(r"[^\s/-]{30}")
MAY_BREAK = "\N{ZERO WIDTH SPACE}"
"""Cannot be seen; a line may end there."""
_JOINED = "\N{WORD JOINER}"
"""Cannot be seen; behind a "<" it tells Qt that no tag follows."""


def shown(text: str) -> str:
    """Return a text, line by line, as any widget can show it: nothing in it is markup.

    Ordinary texts come back as they are.
    """
    lines = "\n".join(visible(line, longest=LONGEST) for line in text.split("\n"))
    if not _MARKUP.search(lines):
        return lines
    return lines.replace("<", f"<{_JOINED}").replace("&", f"&{_JOINED}")


def show_error(text: str) -> None:
    """Show an error as a napari notification."""
    notifications.show_error(shown(text))


class DeskMessages:
    """Hints and warnings in a desk's own place, until it is released.

    A notification of napari covers a part of the image, takes the keyboard focus when it closes,
    and stays when its subject is over.

    Parameters
    ----------
    is_current
        Returns whether the desk is in the window that is used.
    show
        Shows a message in place of the one before.
    """

    def __init__(self, is_current: Callable[[], bool], show: Callable[[str], object]) -> None:
        self.is_current, self.show = is_current, show
        _desks.append(self)

    def release(self) -> None:
        """Leave messages to napari."""
        if self in _desks:
            _desks.remove(self)


_desks: list[DeskMessages] = []


def show_warning(text: str) -> None:
    """Warn in the desk's own place; without a desk, by a napari notification."""
    _show(text, notifications.show_warning)


def show_info(text: str) -> None:
    """Inform in the desk's own place; without a desk, by a napari notification."""
    _show(text, notifications.show_info)


def _show(text: str, notify: Callable[[str], object]) -> None:
    desk = next((each for each in reversed(_desks) if each.is_current()), None)
    if desk is None:
        notify(shown(text))
    else:
        desk.show(text)


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show any error of a view as napari shows its own, so that the other views go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - napari reports it, with its traceback
        notifications.notification_manager.receive_error(type(error), error, error.__traceback__)


class RichLabel(QLabel):
    """A label of markup, in which the caller escaped all text from files."""

    def __init__(self, parent: QWidget | None = None, *, wraps: bool = False) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(wraps)

    def set_rich(self, markup: str) -> None:
        """Show markup; direction and control characters of names in it are written out."""
        self.setText(visible(markup))


class PlainLabel(QLabel):
    """A label that shows its text and tooltip as they are written."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str | None) -> None:  # noqa: N802 - Qt's name
        """Show a text."""
        super().setText(shown(text or ""))

    def setToolTip(self, text: str | None) -> None:  # noqa: N802 - Qt's name
        """Explain it."""
        super().setToolTip(shown(text or ""))


class WrappedLabel(PlainLabel):
    """A plain label in as many lines as its text needs."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setWordWrap(True)

    def set_breakable(self, text: str) -> None:
        """Show a text whose long words continue in the next line.

        Else the label is as wide as the longest of them, and a scroll area around it cuts lines.
        """
        QLabel.setText(self, _LONG_WORD.sub(lambda part: part[0] + MAY_BREAK, shown(text)))

    def show_text(self, text: str) -> None:
        """Show a text; an empty one hides the label."""
        self.setText(text)
        self.setVisible(bool(text))


class OpeningReport(Protocol):
    """Where the user sees what is being opened, and why something cannot be."""

    def show_reading(self, name: str) -> None:
        """Show that something is being read."""

    def show_failed(self, message: str) -> None:
        """Show why nothing was opened."""

    def show_over(self) -> None:
        """Show that reading has ended."""


class _Notifications:
    """Reports errors as napari notifications, and nothing else."""

    def show_reading(self, name: str) -> None:
        """Show nothing."""

    def show_failed(self, message: str) -> None:
        """Show an error."""
        show_error(message)

    def show_over(self) -> None:
        """Show nothing."""


NOTIFICATIONS = _Notifications()
