"""Questions: where to save something, and before something is lost.

A file may be replaced, or a window close with edits that are not saved.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import (
    QDialogButtonBox,
    QFileDialog,
    QLineEdit,
    QMainWindow,
    QMessageBox,
    QWidget,
)

from napari_panoptic.common.text import english_list
from napari_panoptic.viewer.kit.shown import shown

T = TypeVar("T")
MOST_LISTED = 8
"""The most things that would be lost that a question names."""


def file_to_save(parent: QWidget | None, title: str, usual: Path | str, kinds: str) -> Path | None:
    """Ask for a file to write; None if the user cancels.

    Parameters
    ----------
    parent
        Above which window.
    title
        The subject of the question.
    usual
        The file that is suggested.
    kinds
        The kinds of files, as in ``CSV (*.csv)``.
    """
    chosen, _ = QFileDialog.getSaveFileName(parent, title, str(usual), kinds)
    return Path(chosen) if chosen else None


class FolderDialog(QFileDialog):
    """Asks for a folder to write into. A name that does not exist becomes a new folder.

    The dialogs of the system, and Qt's own, refuse such a name.
    """

    def __init__(self, parent: QWidget | None, title: str, start: str) -> None:
        super().__init__(parent, title, start)
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setOptions(QFileDialog.Option.ShowDirsOnly | QFileDialog.Option.DontUseNativeDialog)
        for field in self.findChildren(QLineEdit):
            field.textChanged.connect(self._allow)  # after Qt has looked whether it exists

    @staticmethod
    def ask(parent: QWidget | None, title: str, start: str) -> str:
        """Return the folder that the user chooses; empty if the user cancels."""
        dialog = FolderDialog(parent, title, start)
        is_chosen = bool(dialog.exec())
        chosen = dialog.selectedFiles() if is_chosen else []
        dialog.deleteLater()
        return chosen[0] if chosen else ""

    def accept(self) -> None:
        """Create the folder if there is none; Qt reports a name that cannot be one."""
        with suppress(OSError):
            for name in self.selectedFiles():
                Path(name).mkdir(parents=True, exist_ok=True)
        super().accept()

    def _allow(self, text: str) -> None:
        for box in self.findChildren(QDialogButtonBox):
            button = box.button(QDialogButtonBox.StandardButton.Open)
            if button is not None:
                button.setEnabled(bool(text.strip()))


def folder_from(parent: QWidget | None, title: str, start: Path | str = "") -> Path | None:
    """Ask for a folder to write into, from a folder on; None if the user cancels.

    A name that does not exist becomes a new folder.
    """
    chosen = FolderDialog.ask(parent, title, str(start))
    return Path(chosen) if chosen else None


def existing_folder(parent: QWidget | None, title: str, start: Path | str = "") -> Path | None:
    """Ask for a folder to read, from a folder on; None if the user cancels."""
    chosen = QFileDialog.getExistingDirectory(parent, title, str(start))
    return Path(chosen) if chosen else None


def may_replace(parent: QWidget, files: Iterable[Path]) -> bool:
    """Ask before files are replaced that no dialog has asked about: True if they may be.

    A name gets its ending after the dialog has looked whether it is there, and
    some forms have files beside the one that is named.

    Parameters
    ----------
    parent
        Above which window.
    files
        What would be written; only those that are there already are asked about.
    """
    there = [file.name for file in files if file.exists()]
    if not there:
        return True
    words = "exists already and" if len(there) == 1 else "exist already and all"
    text = f"{english_list(there)} {words} will be replaced. Save?"
    return is_confirmed(parent, "Replace files", text)


def may_write(parent: QWidget, target: Path, *, asked: Path, files: Sequence[Path] = ()) -> bool:
    """Ask before a file is replaced, unless a file dialog has asked about that very name.

    Parameters
    ----------
    parent
        Above which window.
    target
        The file, which may have an ending that was not in the dialog.
    asked
        The name as it was chosen in the dialog.
    files
        All files that would be written, where it is not the target alone.
    """
    was_asked = target == asked and target.exists()
    return was_asked or may_replace(parent, files or (target,))


@dataclass(frozen=True)
class BoxQuestion(Generic[T]):
    """A question in a box with buttons. Enter and Esc change nothing."""

    title: str
    text: str
    #: Text of each button -> the answer; the last one is harmless, and is what Esc means.
    answers: Mapping[str, T]
    #: What would be lost; listed below the text.
    lost: Sequence[str] = ()
    #: The button for Enter; the harmless one if empty.
    usual: str = ""


def ask(
    parent: QWidget | None,
    question: BoxQuestion[T],
    *,
    place: Callable[[QMessageBox], object] | None = None,
) -> T:
    """Ask, and return the answer.

    Parameters
    ----------
    parent
        Above which window.
    question
        What is asked.
    place
        Moves the box; None for the middle of the window.
    """
    lines = [question.text, *question.lost[:MOST_LISTED]]
    left = len(question.lost) - MOST_LISTED
    if left > 0:
        lines.append(f"… and {left} more")
    box = QMessageBox(parent)
    icons = QMessageBox.Icon
    box.setIcon(icons.Warning if question.lost else icons.Question)
    box.setWindowTitle(question.title)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(shown("\n".join(lines)))
    *_, harmless = question.answers
    accept, reject = QMessageBox.ButtonRole.AcceptRole, QMessageBox.ButtonRole.RejectRole
    buttons = {
        text: box.addButton(text, reject if text == harmless else accept)
        for text in question.answers
    }
    box.setEscapeButton(buttons[harmless])
    box.setDefaultButton(buttons[question.usual or harmless])
    if place is not None:
        place(box)
    box.exec()
    clicked = box.clickedButton()
    chosen = next((text for text, button in buttons.items() if button is clicked), harmless)
    return question.answers[chosen]


def is_confirmed(parent: QWidget, title: str, text: str) -> bool:
    """Ask before something is lost; True only for Yes."""
    return ask(parent, BoxQuestion(title, text, {"Yes": True, "No": False}))


class CloseGuard(QObject):
    """Asks before a window closes.

    Parameters
    ----------
    window
        The window.
    may_close
        Asks; False keeps the window open.
    """

    def __init__(self, window: QMainWindow, may_close: Callable[[], bool]) -> None:
        super().__init__()
        # Weakly: a window that were held by what lives in it would only be destroyed when
        # the interpreter ends, in the midst of PyQt's own clearing up, which crashes.
        self._window = weakref.ref(window)
        self._may_close = may_close
        window.installEventFilter(self)

    def release(self) -> None:
        """Ask no more."""
        window = self._window()
        if window is not None and isalive(window):  # type: ignore[no-untyped-call]
            window.removeEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Ignore the closing of the window if the user wants to stay."""
        is_closing = event is not None and event.type() == QEvent.Type.Close
        if is_closing and watched is self._window() and not self._may_close():
            event.ignore()  # type: ignore[union-attr]
            return True
        return False
