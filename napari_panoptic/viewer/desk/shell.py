"""The common parts of all desks: docks around the image and workspaces, opened and closed as one.

A desk is a guest in napari's window: it touches only docks and layers that it created, and
leaves the window as it found it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from napari import current_viewer
from psygnal import Signal
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, Qt
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtWidgets import QDockWidget, QMainWindow, QSizePolicy, QWidget

from napari_panoptic.values.cohort import Task
from napari_panoptic.viewer.desk.docks import DockFonts, add_docks, after_layout, remove_docks
from napari_panoptic.viewer.desk.message_board import MessageBoard
from napari_panoptic.viewer.desk.window import (
    Keyboard,
    TitleButtons,
    WindowBefore,
    WindowSize,
    give_corners_to_sides,
    is_own,
)
from napari_panoptic.viewer.desk.workspaces import (
    LAYERS,
    Arrangement,
    Arranger,
    Workspace,
    WorkspaceBar,
)
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.keys import workspace_shortcut
from napari_panoptic.viewer.kit.layouts import Grow, lay_out
from napari_panoptic.viewer.kit.napari_private import (
    free_textures_in_own_context,
    release_old_cells,
    unwrapped,
)
from napari_panoptic.viewer.kit.questions import CloseGuard
from napari_panoptic.viewer.kit.shown import NOTIFICATIONS, DeskMessages, OpeningReport
from napari_panoptic.viewer.kit.title_strip import TitleLines
from napari_panoptic.viewer.kit.widgets import dock_of
from napari_panoptic.viewer.layers.owned import remove_owned
from napari_panoptic.viewer.panels.start import dropped_files
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import PREFERENCES

LAYERS_MEANING = "Show napari's layer list and layer controls"


class DeskStrip(QWidget):
    """The strip above the image, and the handle on the desk: without its dock, the desk closes.

    A cohort's folder dropped on it is opened; so are an annotation and predictions of one image.

    Parameters
    ----------
    desk
        The desk.
    top
        The widget below the row of workspaces.
    bar
        The row of workspaces.
    """

    def __init__(self, desk: DeskShell, bar: WorkspaceBar, top: QWidget) -> None:
        super().__init__()
        self.desk, self._was_docked = desk, False
        self.setAcceptDrops(True)
        lay_out(self, bar, Grow(top)).setSpacing(0)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def event(self, event: QEvent | None) -> bool:
        """Close the desk when napari takes the strip out of its dock."""
        if event is not None and event.type() == QEvent.Type.ParentChange:
            was_docked, self._was_docked = self._was_docked, self.parent() is not None
            if was_docked and not self._was_docked:
                self.desk.close()
        return super().event(event)

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:  # noqa: N802
        """Accept files."""
        if event is not None and dropped_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:  # noqa: N802
        """Open dropped files."""
        if event is not None and (paths := dropped_files(event)):
            event.acceptProposedAction()
            self.desk.open(paths)


Wanted = Path | Sequence[Path] | Task | None
"""What a desk is asked to open: a cohort's folder, files dropped on it, the sample of a task, or a
folder that the user is asked for."""


class _Released(Protocol):
    """What works in the window until it is released."""

    def release(self) -> None:
        """Do nothing any more."""


class DeskShell(ABC):
    """The docks of a desk and their workspaces; subclasses fill them.

    Parameters
    ----------
    viewer
        The viewer in whose window the desk stands.
    """

    closed = Signal()
    opener: ClassVar[Callable[..., None]]
    """Opens other cohorts (viewer, `Wanted`, where to report, parent of dialogs); set by
    `viewer.opening`, which knows all desks."""
    name: ClassVar[str]
    """Name of the dock of the strip."""
    workspaces: ClassVar[Sequence[Workspace]]
    empty: ClassVar[Arrangement | None] = None
    """Where docks stand before a cohort is open; None for a desk that is never empty."""
    extras: ClassVar[Mapping[str, str]] = {}
    """Docks that a menu shows in every workspace, and their purpose."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = unwrapped(viewer)
        free_textures_in_own_context(self._viewer)
        release_old_cells(self._viewer)
        self._before = WindowBefore(self._viewer)
        self.state = DeskState.restored(PREFERENCES)
        self.companions: list[object] = []
        """Objects that live as long as the desk is open."""
        self._docks: dict[str, QDockWidget] = {}
        self._guests: list[QDockWidget] = []
        self._standing = Arrangement()
        self._arranger: Arranger
        self._keyboard: Keyboard
        self._helpers: list[_Released] = []
        self.messages: MessageBoard | None = None
        """Shows what napari's own messages truncate or hide; None unless the desk is built."""
        self._shown: Workspace | None = None
        self._unbind_workspaces: Callable[[], None] = lambda: None
        self._is_closed = False
        self._bar = WorkspaceBar(self.workspaces, [*self.extras.items(), (LAYERS, LAYERS_MEANING)])
        self._bar.chosen.connect(self._on_workspace)
        self._bar.reset_wanted.connect(self.reset_workspace)
        self._bar.extra_toggled.connect(self._on_extra)
        self._bar.leave.pushed.connect(self._close_if_wanted)

    def make_strip(self, top: TitleLines) -> None:
        """Make the handle, once the subclass has its widgets."""
        self._top = top
        self.strip = DeskStrip(self, self._bar, top)
        # The window may go without closing the docks first: then only what is not Qt's is
        # left to be undone. A method, not a lambda: Qt's bindings hold methods weakly, but
        # call lambdas that were collected already.
        self.strip.destroyed.connect(self._let_go)

    @abstractmethod
    def docked(self) -> Mapping[str, QWidget]:
        """Return title -> panel of all docks."""

    @abstractmethod
    def legend_strip(self) -> QWidget:
        """Return what colours and outlines mean: below the image, or part of the strip."""

    @abstractmethod
    def leave_cohort(self) -> None:
        """Stop all work and undo all connections; touch no widget."""

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""
        return True

    @property
    def viewer(self) -> Any:
        """The viewer in whose window the desk stands."""
        return self._viewer

    def ask_for_cohort(self) -> None:
        """Let the user choose a folder, and open it on the matching desk."""
        self.open(None)

    def open(self, wanted: Wanted, report: OpeningReport = NOTIFICATIONS) -> None:
        """Open a cohort on the matching desk, in the background."""
        self.opener(self._viewer, wanted, report, self.strip)

    @property
    def is_arranged(self) -> bool:
        """Whether the docks have followed the last change of the window."""
        return not self._docks or self._arranger.is_at_rest

    @property
    def workspace(self) -> Workspace | None:
        """The shown workspace; None before the desk is built."""
        return self._shown

    @property
    def is_empty(self) -> bool:
        """Whether ways to begin are shown in place of a workspace."""
        return self.empty is not None and self._shown is None

    def dock(self, title: str) -> QDockWidget:
        """Return the dock of a panel; a KeyError where there is none."""
        return self._docks[title]

    def build(self) -> None:
        """Put the panels around the image; done only once."""
        window = self.strip.window()
        if self._docks or self._is_closed or not isinstance(window, QMainWindow):
            return
        self.messages = MessageBoard(window, self._is_current)
        hints = DeskMessages(self._is_current, self.show_message)
        strip_dock = dock_of(self.strip)
        if strip_dock is not None:
            window.addDockWidget(Qt.DockWidgetArea.TopDockWidgetArea, strip_dock)
            strip_dock.setTitleBarWidget(QWidget())
            strip_dock.show()
        legend, name = self.legend_strip(), f"{self.name} legend"
        around = [(title, widget, "right") for title, widget in self.docked().items()]
        strips = [] if self.strip.isAncestorOf(legend) else [name]
        around += [(name, legend, "bottom") for name in strips]
        size = WindowSize(window)
        self._docks = docks = add_docks(self._viewer, around, strips)
        give_corners_to_sides(window)
        self._bar.leave.setHidden(is_own(window))  # there is nothing behind the desk
        movable = {title: dock for title, dock in docks.items() if title != name}
        for title, dock in movable.items():
            action = dock.toggleViewAction()
            if action is not None:  # in napari's Window menu
                action.triggered.connect(partial(self._on_menu, title))
        self._arranger = Arranger(window, movable, docks.get(name, legend), size)
        self._keyboard = Keyboard(self._viewer, window, movable.values(), (self.strip, legend))
        for title in self.extras:
            movable[title].visibilityChanged.connect(self._show_extras)
        self._bind_keys()
        if self.empty is None:
            self.show_last_workspace()
        else:
            self._arrange(self.empty)
            self._bar.offer_workspaces(False)
        # The legend's letters stay small, or it would make the columns beside the image narrow.
        fonts = DockFonts([*movable.values(), *([] if strip_dock is None else [strip_dock])])
        guard, titles = CloseGuard(window, self.may_leave), TitleButtons(movable.values())
        self._helpers = [self._arranger, guard, fonts, titles, size, self._keyboard]
        self._helpers += [self.messages, hints]

    def show_message(self, text: str) -> None:
        """Show a hint or warning above the image; one that is cut there also over the image."""
        self._top.show_message(text)
        if self._top.selected.is_cut and self.messages is not None:
            self.messages.show_text(text)

    def show_last_workspace(self) -> None:
        """Show the workspace of the last window."""
        names = [workspace.name for workspace in self.workspaces]
        self.show_workspace(self.state.workspace if self.state.workspace in names else names[0])

    def show_workspace(self, name: str) -> None:
        """Arrange the window for a task, as the user left it the last time."""
        if not self._docks:
            return
        self._keep_arrangement()
        self._shown = next(each for each in self.workspaces if each.name == name)
        kept = Arrangement.from_json(PREFERENCES.arrangements().get(self._key(self._shown)))
        self._arrange(kept or self._shown.arrangement)
        self._bar.offer_workspaces(True)
        self._bar.show_workspace(name)
        self.state.workspace = name

    def reset_workspace(self, name: str) -> None:
        """Show a workspace as it is built in."""
        workspace = next(each for each in self.workspaces if each.name == name)
        if workspace is not self._shown:
            self.show_workspace(name)
        PREFERENCES.keep_arrangement(self._key(workspace), None)
        self._arrange(workspace.arrangement)

    def reveal(self, title: str) -> None:
        """Bring a panel to the front, in the workspace that is for it where necessary."""
        dock = self._docks.get(title)
        if dock is None:
            return
        if dock.isHidden():
            suitable = [each for each in self.workspaces if title in each.arrangement.docks]
            if not suitable:
                self._on_extra(title, True)
            elif self._shown not in suitable:
                self.show_workspace(min(suitable, key=lambda each: each.main != title).name)
        dock.show()
        dock.raise_()
        widget = self.docked()[title]
        if widget.focusProxy() is not None:
            widget.setFocus()  # its arrow keys work at once

    def set_available(self, title: str, available: bool) -> None:
        """Show or hide a panel that not every cohort has something for."""
        dock = self._docks.get(title)
        if dock is None or self._shown is None:
            return
        for workspace in self.workspaces:
            if workspace.main == title and len(self.workspaces) > 1:
                self._bar.button(workspace.name).setVisible(available)
                if workspace is self._shown and not available:
                    self.show_workspace(self.workspaces[0].name)
        wanted = available and title in self._shown.arrangement.docks
        if wanted is dock.isHidden():
            self._arranger.toggle_quietly(title, wanted)

    def tab_behind(self, dock: QDockWidget) -> None:
        """Keep a dock that is not the desk's in a tab behind the panels at the right.

        On its own it would take their room in every workspace, and make a small window higher.
        """
        if dock not in self._guests:
            self._guests.append(dock)
        if not dock.isFloating():
            self._put_behind([dock])

    def _take_guests(self) -> list[QDockWidget]:
        """Take the guests out of the right column; the user may have put them elsewhere."""
        self._guests = [dock for dock in self._guests if isalive(dock)]  # type: ignore[no-untyped-call]
        window = self.strip.window()
        if not isinstance(window, QMainWindow):
            return []
        right = Qt.DockWidgetArea.RightDockWidgetArea
        taken = [
            dock
            for dock in self._guests
            if not dock.isHidden()
            and not dock.isFloating()
            and window.dockWidgetArea(dock) == right
        ]
        for dock in taken:
            window.removeDockWidget(dock)
        return taken

    def _put_behind(self, guests: Sequence[QDockWidget]) -> None:
        """Put guests behind the largest stack at the right."""
        column, window = self._standing.right, self.strip.window()
        stacks = () if column is None else column.stacks
        names = [name for at in sorted(stacks, key=lambda at: -at.share) for name in at.docks]
        places = (dock for name in names if (dock := self._docks.get(name)) is not None)
        place = next((dock for dock in places if not dock.isFloating()), None)
        for dock in guests:
            if place is not None and isinstance(window, QMainWindow):
                if dock not in window.tabifiedDockWidgets(place):
                    window.tabifyDockWidget(place, dock)
                after_layout(dock, place.raise_)  # Qt brings the last dock to the front
            elif isinstance(window, QMainWindow):
                window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
            dock.show()

    def close(self) -> None:
        """Remove the panels and the desk's layers, and leave the window as it was."""
        if self._is_closed:
            return
        self._keep_arrangement()
        own, docks = dock_of(self.strip), list(self._docks.values())
        if docks:
            self._arranger.put_napari_back()
        self._let_go()
        remove_owned(self._viewer)
        remove_docks(self._viewer, [*docks, *([] if own is None else [own])])
        self.strip.deleteLater()
        self._before.restore()

    def _close_if_wanted(self) -> None:
        """Close the desk, unless something would be lost that is to stay."""
        if self.may_leave():
            self.close()

    def _let_go(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for helper in self._helpers:
            helper.release()
        self._helpers, self._docks = [], {}
        self.messages = None
        self._unbind_workspaces()
        self.leave_cohort()
        self.closed.emit()
        self.companions.clear()

    def _is_current(self) -> bool:
        return unwrapped(current_viewer()) is self._viewer

    def _bind_keys(self) -> None:
        """Let Ctrl with a number show a workspace; the number keys remain napari's."""
        keys = {
            workspace_shortcut(number, workspace.name): partial(self._on_workspace, workspace.name)
            for number, workspace in enumerate(self.workspaces, start=1)
        }
        self._unbind_workspaces = bind_commands(self._viewer, keys)

    def _arrange(self, wanted: Arrangement) -> None:
        self._standing = wanted
        guests = self._take_guests()  # together with the panels they may need too much room
        self._arranger.apply(wanted)
        self._put_behind(guests)
        self._show_extras()
        self._keyboard.check()

    def _keep_arrangement(self) -> None:
        """Remember the user's changes of the workspace that is left."""
        if self._docks and self._shown is not None and self._arranger.is_users:
            found = self._arranger.arrangement()
            PREFERENCES.keep_arrangement(self._key(self._shown), found.to_json())

    def _key(self, workspace: Workspace) -> str:
        return f"{self.name}/{workspace.name}"

    def _on_workspace(self, name: str) -> None:
        """Show a workspace that the user asks for; an empty desk keeps its ways to begin."""
        if not self.is_empty and not self._bar.button(name).isHidden():
            self.show_workspace(name)

    def _on_menu(self, title: str, shown: bool) -> None:
        if shown:
            self._docks[title].hide()  # it is shown where it belongs
            self.reveal(title)

    def _on_extra(self, name: str, wanted: bool) -> None:
        if self._docks:
            self._arranger.toggle(name, wanted)
            self._show_extras()

    def _show_extras(self) -> None:
        if self._docks:
            for name in (*self.extras, LAYERS):
                self._bar.show_extra(name, self._arranger.is_shown(name))


DeskT = TypeVar("DeskT", bound=DeskShell)


def desk_in(viewer: Any, kind: type[DeskT]) -> DeskT | None:
    """Return the desk of a kind that is open in a viewer, or None."""
    docked = unwrapped(viewer).window.dock_widgets.values()
    strips = (widget for widget in docked if isinstance(widget, DeskStrip))
    return next((strip.desk for strip in strips if isinstance(strip.desk, kind)), None)


def desk_of(viewer: Any, kind: type[DeskT]) -> DeskT:
    """Return the desk of a kind in a viewer, opened where it is not yet.

    Parameters
    ----------
    viewer
        A viewer with a window.
    kind
        Which desk.
    """
    desk = desk_in(viewer, kind)
    return open_desk(viewer, kind(viewer) if desk is None else desk)


def open_desk(viewer: Any, desk: DeskT) -> DeskT:
    """Dock a desk in a viewer, unless it is docked already."""
    if dock_of(desk.strip) is None:
        unwrapped(viewer).window.add_dock_widget(
            desk.strip, name=desk.name, area="top", add_vertical_stretch=False
        )
    desk.build()
    return desk
