"""Workspaces: which docks stand where for a task, and how the user arranged them.

Only docks of the desk are arranged; in a window that the program opened itself also napari's own
two, as long as they are in the left column where napari puts them. Docks of other plugins and
floating docks stay where they are. A row of buttons above the image chooses one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psygnal import Signal
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, QPoint, Qt
from qtpy.QtWidgets import (
    QButtonGroup,
    QDockWidget,
    QMainWindow,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from napari_panoptic.viewer.desk.window import WindowPart, WindowSize, is_own
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.layouts import row_of
from napari_panoptic.viewer.kit.menus import MenuButton
from napari_panoptic.viewer.kit.napari_private import napari_docks
from napari_panoptic.viewer.kit.widgets import ToolButton, is_in_sight

LAYERS = "Layers"
"""The name under which napari's layer list and layer controls are arranged."""
_WORDS = {LAYERS: "Layer list"}
"""Titles in words that nothing else in the window has."""
REST_MS = 300
"""How long after a change of the window its docks are still being laid out by Qt."""
_SAME_SHARE = 0.02
_EXTRA_SHARE, _EXTRA_HEIGHT = 0.22, 0.6
_HOMES = {LAYERS: "left", "Regions": "left", "Frames": "left", "Cases": "left"}
"""Default side of docks that do not belong on the right."""
_AREAS = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
_HORIZONTAL, _VERTICAL = Qt.Orientation.Horizontal, Qt.Orientation.Vertical


@dataclass(frozen=True)
class Stack:
    """Docks in one place, in tabs; the first is in front."""

    #: Their titles.
    docks: tuple[str, ...]
    #: Their share of the side's height (of its width at the bottom).
    share: float = 1.0


@dataclass(frozen=True)
class DockArea:
    """The docks of one side of the window."""

    #: Share of the window's width (of its height at the bottom).
    share: float
    #: From the top (from the left at the bottom).
    stacks: tuple[Stack, ...]


@dataclass(frozen=True)
class Arrangement:
    """Where docks stand; docks that are not named are hidden."""

    #: The sides; None for an empty one.
    left: DockArea | None = None
    right: DockArea | None = None
    bottom: DockArea | None = None
    #: Whether the canvas is shown.
    has_image: bool = True

    @property
    def areas(self) -> dict[str, DockArea]:
        """The sides that hold docks."""
        sides = {"left": self.left, "right": self.right, "bottom": self.bottom}
        return {name: area for name, area in sides.items() if area is not None}

    @property
    def docks(self) -> tuple[str, ...]:
        """The titles of all docks that are shown."""
        return tuple(
            dock for area in self.areas.values() for at in area.stacks for dock in at.docks
        )

    def is_like(self, other: Arrangement) -> bool:
        """Return whether the same docks stand in the same places, in about the same sizes."""
        one, two = list(self._numbers()), list(other._numbers())
        same_places = [key for key, _ in one] == [key for key, _ in two]
        return same_places and all(
            abs(a - b) <= _SAME_SHARE for (_, a), (_, b) in zip(one, two, strict=True)
        )

    def _numbers(self) -> Iterator[tuple[object, float]]:
        for side, area in self.areas.items():
            yield side, area.share
            for stack in area.stacks:
                yield (side, stack.docks), stack.share

    def to_json(self) -> dict[str, Any]:
        """Return the arrangement as plain values."""
        found: dict[str, Any] = {
            side: [area.share, [[list(at.docks), at.share] for at in area.stacks]]
            for side, area in self.areas.items()
        }
        return {**found, "has_image": self.has_image}

    @classmethod
    def from_json(cls, found: Any) -> Arrangement | None:
        """Return the arrangement of plain values; None if they are damaged."""
        try:
            sides = {
                side: DockArea(
                    float(found[side][0]),
                    tuple(Stack(tuple(map(str, at[0])), float(at[1])) for at in found[side][1]),
                )
                for side in _AREAS
                if side in found
            }
            return cls(**sides, has_image=bool(found["has_image"]))
        except (KeyError, TypeError, ValueError, IndexError):
            return None


@dataclass(frozen=True)
class Workspace:
    """An arrangement of the window for one task."""

    #: One word, shown on its button.
    name: str
    #: One sentence for the tooltip.
    meaning: str
    #: Where the docks stand until the user moves them.
    arrangement: Arrangement
    #: The dock that the workspace is for.
    main: str


class Arranger(WindowPart):
    """Puts docks where an arrangement says, and keeps their shares when the window is resized.

    Parameters
    ----------
    window
        The window.
    docks
        Title -> dock.
    legend
        Shown with the canvas only; a dock of its own stands below it.
    size
        Keeps the window from growing.
    """

    def __init__(
        self,
        window: QMainWindow,
        docks: Mapping[str, QDockWidget],
        legend: QWidget,
        size: WindowSize,
    ) -> None:
        super().__init__(window)
        self._docks = dict(docks)
        self._legend = legend
        self._size = size
        size.limited.connect(self._on_limited)
        self._arrangement = self._baseline = Arrangement()
        self._is_changing = False
        self.is_users = False
        """Whether the user changed the arrangement since it was applied."""
        # Qt lays docks out after the resize event.
        self._later = single_shot(0, self._follow, self)
        self._end = single_shot(REST_MS, self._rest, self)
        for widget in (window, *self._docks.values()):
            widget.installEventFilter(self)
        for dock in self._docks.values():
            dock.visibilityChanged.connect(self._on_seen)

    @property
    def is_at_rest(self) -> bool:
        """Whether the last change has been followed."""
        return not (self._is_changing or self._later.isActive())

    def apply(self, wanted: Arrangement) -> None:
        """Arrange the docks."""
        window = self.window
        if window is None:
            return
        self._arrangement, self.is_users = wanted, False
        self._begin_change()
        window.setUpdatesEnabled(False)
        self._size.lift_limits()
        try:
            self._set_canvas_visible(window, wanted.has_image)
            self._legend.setVisible(wanted.has_image)
            places = self._places()
            if not is_own(window):
                del places[LAYERS]  # they stay as the user has them
            for dock in [dock for group in places.values() for dock in group]:
                if not dock.isFloating():
                    window.removeDockWidget(dock)  # hides it
            for side, area in wanted.areas.items():
                self._fill(window, side, area, places)
            for title, docks in places.items():
                if title not in wanted.docks:
                    self._hide(window, title, docks)
        finally:
            window.setUpdatesEnabled(True)
        self._later.start()

    def is_shown(self, title: str) -> bool:
        """Return whether a dock is shown, if only as a tab."""
        return any(not dock.isHidden() for dock in self._places().get(title, ()))

    def toggle(self, title: str, wanted: bool) -> None:
        """Show a dock at the side where it is at home, or hide it."""
        now = self.arrangement()
        if not wanted:
            for dock in self._places().get(title, ()):
                dock.hide()
        elif title == LAYERS and not is_own(self.window):
            for dock in self._places()[LAYERS]:
                dock.show()
        elif title not in now.docks:
            side = _HOMES.get(title, "right")
            area = now.areas.get(side) or DockArea(_EXTRA_SHARE, ())
            new = DockArea(area.share, (Stack((title,), _EXTRA_HEIGHT), *area.stacks))
            areas: dict[str, Any] = {side: new}
            self.apply(replace(now, **areas))
        self.is_users = True

    def toggle_quietly(self, title: str, wanted: bool) -> None:
        """Show or hide a dock; its neighbours take or leave the room."""
        for dock in self._places().get(title, ()):
            dock.setVisible(wanted)
        self._begin_change()  # this is not the user's doing
        self._end.start()

    def put_napari_back(self) -> None:
        """Put napari's own docks back into the left column."""
        window = self.window
        if window is not None and not self.is_shown(LAYERS) and self._napari_docks():
            self._fill(window, "left", DockArea(_EXTRA_SHARE, (Stack((LAYERS,)),)), self._places())

    def arrangement(self) -> Arrangement:
        """Return where the docks stand now."""
        window = self.window
        if window is None:
            return self._arrangement
        areas = {side: self._area(window, side) for side in _AREAS}
        central = window.centralWidget()
        return Arrangement(**areas, has_image=central is None or not central.isHidden())

    def release(self) -> None:
        """Arrange nothing any more, and show the canvas."""
        stop_timers(self._later, self._end)
        if self.window is not None:
            self._set_canvas_visible(self.window, True)
            for dock in self._docks.values():
                if isalive(dock):  # type: ignore[no-untyped-call]
                    dock.removeEventFilter(self)
        super().release()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice a new size of the window, or of a dock resized by the user; pass events on."""
        if event is not None and event.type() == QEvent.Type.Resize:
            if watched is self.window:
                self._begin_change()
            self._later.start()
        return False

    def _napari_docks(self) -> Sequence[QDockWidget]:
        """Return napari's own docks if they are where napari puts them; elsewhere they are left."""
        if (window := self.window) is None:
            return []
        docks = [dock for dock in napari_docks(window) if dock is not None]
        in_place = (
            not d.isFloating() and window.dockWidgetArea(d) == _AREAS["left"] for d in docks
        )
        return docks if len(docks) == 2 and all(in_place) else []

    def _places(self) -> dict[str, Sequence[QDockWidget]]:
        """Return title -> docks; two for napari's own."""
        places: dict[str, Sequence[QDockWidget]] = {n: (d,) for n, d in self._docks.items()}
        return places | {LAYERS: self._napari_docks()}

    @staticmethod
    def _set_canvas_visible(window: QMainWindow, visible: bool) -> None:
        central = window.centralWidget()
        if central is not None:
            central.setVisible(visible)

    def _fill(
        self,
        window: QMainWindow,
        side: str,
        area: DockArea,
        places: Mapping[str, Sequence[QDockWidget]],
    ) -> None:
        """Put docks on one side, in stacks of tabs."""
        # Tabs keep one order, whichever of them was in front when the user left.
        order = {name: number for number, name in enumerate(places)}
        groups = []
        for at in area.stacks:
            names = [name for name in at.docks if name in places]
            fronts, docks = (
                [dock for name in each for dock in places[name] if not dock.isFloating()]
                for each in (names, sorted(names, key=order.__getitem__))
            )
            if docks:
                groups.append((docks, fronts[0]))
        for number, (docks, _) in enumerate(groups):
            if number:
                across = _HORIZONTAL if side == "bottom" else _VERTICAL
                window.splitDockWidget(groups[number - 1][0][0], docks[0], across)
            elif side == "bottom" and isinstance(self._legend, QDockWidget):
                window.splitDockWidget(self._legend, docks[0], _VERTICAL)
            else:
                window.addDockWidget(_AREAS[side], docks[0])
        # Later: a dock that is split off a tab would only become another tab.
        for docks, front in groups:
            for dock in docks[1:]:
                window.tabifyDockWidget(docks[0], dock)
            for dock in docks:
                dock.show()
            front.raise_()

    def _hide(self, window: QMainWindow, title: str, docks: Sequence[QDockWidget]) -> None:
        """Hide docks in a place where napari's Window menu can show them again."""
        area = _AREAS[_HOMES.get(title, "right")]
        for dock in docks:
            if not dock.isFloating():
                window.addDockWidget(area, dock)
            dock.hide()

    def _on_seen(self, seen: bool) -> None:
        """Let a hidden dock shrink: Qt keeps the minimum height that it had while visible."""
        dock = self.sender()
        if not seen and isinstance(dock, QDockWidget):
            dock.setMinimumHeight(0)

    def _on_limited(self) -> None:
        """Share the room."""
        self._begin_change()
        self._later.start()

    def _begin_change(self) -> None:
        """Take what docks do from now on for the program's doing; an earlier change goes on."""
        self._is_changing = True
        self._end.stop()

    def _follow(self) -> None:
        window = self.window
        if window is None:
            return
        if self._is_changing:
            self._give_sizes(window)
            self._end.start()  # resizing that follows is not the user's
        else:
            self._arrangement = self.arrangement()
            self.is_users |= not self._arrangement.is_like(self._baseline)

    def _rest(self) -> None:
        self._is_changing = False
        self._baseline = self.arrangement()

    def _give_sizes(self, window: QMainWindow) -> None:
        """Resize the docks to their shares."""
        widths: dict[QDockWidget, int] = {}
        for side, area in self._arrangement.areas.items():
            firsts = [(at, dock) for at in area.stacks if (dock := self._seen(at)) is not None]
            if not firsts:
                continue
            at_bottom = side == "bottom"
            if at_bottom:
                height = round(area.share * window.height())
                window.resizeDocks([firsts[0][1]], [height], _VERTICAL)
            else:
                widths[firsts[0][1]] = round(area.share * window.width())
            sharing = [dock for _, dock in firsts]
            if self._size.is_limited:  # docks of others too, or they would keep what they took
                sharing = _in_sight_at(window, _AREAS[side])
            total = sum(d.width() if at_bottom else d.height() for d in sharing)
            whole = sum(at.share for at, _ in firsts)
            sizes = [round(at.share / whole * total) for at, _ in firsts]
            across = _HORIZONTAL if at_bottom else _VERTICAL
            window.resizeDocks([dock for _, dock in firsts], sizes, across)
        # Both columns at once: without the canvas, each has what the other leaves.
        window.resizeDocks(list(widths), list(widths.values()), _HORIZONTAL)

    def _seen(self, stack: Stack) -> QDockWidget | None:
        """Return the dock of a stack that is in sight."""
        places = self._places()
        docks = [dock for name in stack.docks for dock in places.get(name, ())]
        return next((dock for dock in docks if not dock.isFloating() and is_in_sight(dock)), None)

    def _area(self, window: QMainWindow, side: str) -> DockArea | None:
        """Describe one side as it is: of each stack of tabs the one in sight, and those behind."""
        at_bottom = side == "bottom"
        here = {
            name: group
            for name, group in self._places().items()
            if group and _is_on(window, side, group)
        }
        stacks = []
        for name, group in here.items():
            seen = next((dock for dock in group if is_in_sight(dock)), None)
            if seen is not None:
                tabs = window.tabifiedDockWidgets(group[0])
                behind = [other for other in here if here[other][0] in tabs]
                start, size = (seen.x(), seen.width()) if at_bottom else (seen.y(), seen.height())
                stacks.append((start, size, (name, *behind), seen))
        if not stacks:
            return None
        stacks.sort(key=lambda at: at[0])
        total, first = sum(size for _, size, _, _ in stacks), stacks[0][3]
        share = first.height() / window.height() if at_bottom else first.width() / window.width()
        return DockArea(share, tuple(Stack(names, size / total) for _, size, names, _ in stacks))


def _in_sight_at(window: QMainWindow, area: Qt.DockWidgetArea) -> list[QDockWidget]:
    docks = window.findChildren(QDockWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return [
        dock
        for dock in docks
        if not dock.isFloating() and window.dockWidgetArea(dock) == area and is_in_sight(dock)
    ]


def _is_on(window: QMainWindow, side: str, docks: Sequence[QDockWidget]) -> bool:
    return all(
        not dock.isHidden()
        and not dock.isFloating()
        and window.dockWidgetArea(dock) == _AREAS[side]
        for dock in docks
    )


CHOSEN_STYLE = (
    "QToolButton { padding: 3px 9px; border: 0 } "
    "QToolButton:checked { font-weight: bold; border-bottom: 2px solid palette(highlight) }"
)


class WorkspaceBar(QWidget):
    """A button for each workspace, and a menu of the docks that any workspace may show.

    Parameters
    ----------
    workspaces
        What to choose from; a single one needs no button.
    extras
        Titles of the docks in the menu, and their purpose.
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
            button = self._extras[name] = _button(_WORDS.get(name, name), meaning)
            button.clicked.connect(
                lambda on=False, name=name: self.extra_toggled.emit(name, bool(on))
            )
        self.leave = _button("✕", "Close the desk")
        self.leave.setCheckable(False)
        #: The menu of the docks.
        self.panels = MenuButton("Panels", "More panels, and all keys.", *self._extras.values())
        self.panels.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        row = row_of(*self._buttons.values(), None, self.panels, self.leave)
        row.setContentsMargins(2, 0, 2, 0)
        row.setSpacing(1)
        self.setLayout(row)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def offer_workspaces(self, wanted: bool) -> None:
        """Enable or disable the buttons of all workspaces."""
        for button in self._buttons.values():
            button.setEnabled(wanted)

    def show_workspace(self, name: str) -> None:
        """Mark the shown workspace."""
        if name in self._buttons:
            self._buttons[name].setChecked(True)

    def show_extra(self, name: str, visible: bool) -> None:
        """Mark whether a dock of the menu is shown."""
        if name in self._extras:
            self._extras[name].setChecked(visible)

    def button(self, name: str) -> QToolButton:
        """Return the button of a workspace, or the menu entry of a dock."""
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
