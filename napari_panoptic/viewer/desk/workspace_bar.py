"""The row of workspaces above the image."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QButtonGroup, QMenu, QSizePolicy, QToolButton, QWidget

from napari_panoptic.viewer.desk.workspaces import Workspace
from napari_panoptic.viewer.kit.rows import row_of
from napari_panoptic.viewer.kit.widgets import ToolButton

CHOSEN_STYLE = (
    "QToolButton { padding: 3px 9px; border: 0 } "
    "QToolButton:checked { font-weight: bold; border-bottom: 2px solid palette(highlight) }"
)


class WorkspaceBar(QWidget):
    """A button for each workspace, and one for each dock that any workspace may show.

    Parameters
    ----------
    workspaces
        What to choose from; a single one needs no button.
    extras
        Titles of the docks with a button of their own, and what they are for.
    """

    chosen = Signal(str)
    reset_wanted = Signal(str)  # the arrangement built in, instead of the user's own
    extra_toggled = Signal(str, bool)

    def __init__(self, workspaces: Sequence[Workspace], extras: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        self._extras: dict[str, QToolButton] = {}
        for number, workspace in enumerate(workspaces if len(workspaces) > 1 else (), start=1):
            self._add_workspace(workspace, number)
        for name, meaning in extras:
            button = self._extras[name] = _button(name, meaning)
            button.clicked.connect(
                lambda on=False, name=name: self.extra_toggled.emit(name, bool(on))
            )
        self.leave = _button("✕", "Close the desk")
        self.leave.setCheckable(False)
        row = row_of(*self._buttons.values(), None, *self._extras.values(), self.leave)
        row.setContentsMargins(2, 0, 2, 0)
        row.setSpacing(1)
        self.setLayout(row)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def offer_workspaces(self, wanted: bool) -> None:
        """Enable or disable the buttons of all workspaces."""
        for button in self._buttons.values():
            button.setEnabled(wanted)

    def show_workspace(self, name: str) -> None:
        """Mark the workspace that is shown."""
        if name in self._buttons:
            self._buttons[name].setChecked(True)

    def show_extra(self, name: str, visible: bool) -> None:
        """Mark whether a dock with a button of its own is shown."""
        if name in self._extras:
            self._extras[name].setChecked(visible)

    def button(self, name: str) -> QToolButton:
        """Return the button of a workspace or dock."""
        return self._buttons[name] if name in self._buttons else self._extras[name]

    def _add_workspace(self, workspace: Workspace, number: int) -> None:
        button = _button(workspace.name, f"{workspace.meaning} (Ctrl+{number})")
        button.clicked.connect(lambda _=False, name=workspace.name: self.chosen.emit(name))
        button.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        button.customContextMenuRequested.connect(
            lambda place, name=workspace.name: self._show_menu(name, place)
        )
        self._group.addButton(button)
        self._buttons[workspace.name] = button

    def _show_menu(self, name: str, place: QPoint) -> None:
        menu = QMenu(self)
        action = menu.addAction("Reset the arrangement")
        if action is not None:
            action.triggered.connect(lambda _=False: self.reset_wanted.emit(name))
        menu.exec(self._buttons[name].mapToGlobal(place))


def _button(text: str, meaning: str) -> ToolButton:
    button = ToolButton(text, meaning)
    button.setCheckable(True)
    button.setAutoRaise(True)
    button.setStyleSheet(CHOSEN_STYLE)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keys with the desk
    return button
