"""What desks do with napari's window: its size, its keyboard focus, and the way back.

The state of the whole window (``QMainWindow.saveState``) is not used: restoring it undoes what
the user did meanwhile, and crashes Qt where another dock was floated or moved to another side.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from psygnal import Signal
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, QPoint, QSize, Qt
from qtpy.QtGui import QCursor, QFocusEvent
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QDockWidget,
    QLayout,
    QMainWindow,
    QWidget,
)

from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.layouts import QWIDGETSIZE_MAX, ShrinkingPanel
from napari_panoptic.viewer.kit.napari_private import canvas_widget, focus_canvas, window_of
from napari_panoptic.viewer.kit.widgets import CLICKED, TYPED_INTO, is_in_sight

_TOP, _LEFT = Qt.DockWidgetArea.TopDockWidgetArea, Qt.DockWidgetArea.LeftDockWidgetArea
_RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
_CORNERS = {
    Qt.Corner.TopLeftCorner: _TOP,
    Qt.Corner.BottomLeftCorner: _LEFT,
    Qt.Corner.TopRightCorner: _TOP,
    Qt.Corner.BottomRightCorner: _RIGHT,
}
"""The dock area that owns each corner while a desk is open."""
_LEAST_PX = QSize(160, 40)
"""Minimum panel size in a window too small for all panels."""
_UNLIMITED = QSize(QWIDGETSIZE_MAX, QWIDGETSIZE_MAX)
_LEFT_BY = (*CLICKED, *TYPED_INTO)
"""Widgets that a click on one of `CLICKED` takes the focus from, so that keys go to the image."""
_POPUP_MS = 50
"""How often to check whether a menu is still open or a button is held."""


_OWN = "napari-panoptic window"
"""Property of the windows that the program opened itself."""


def mark_own(viewer: Any) -> None:
    """Note that the program opened the window: a desk then arranges napari's docks too."""
    window = window_of(viewer)
    if window is not None:
        window.setProperty(_OWN, True)


def is_own(window: QWidget | None) -> bool:
    """Return whether the program opened the window; in others, a desk is a guest."""
    return window is not None and bool(window.property(_OWN))


class WindowPart(QObject):
    """Something that works in a window until it is released, without holding it.

    A window must not be held by what lives in it.

    Parameters
    ----------
    window
        The window.
    """

    def __init__(self, window: QMainWindow) -> None:
        super().__init__()
        self._of = weakref.ref(window)

    @property
    def window(self) -> QMainWindow | None:
        """The window; None once it is gone, or this was released."""
        window = self._of()
        return window if window is not None and isalive(window) else None  # type: ignore[no-untyped-call]

    def release(self) -> None:
        """Do nothing any more."""
        if (window := self.window) is not None:
            window.removeEventFilter(self)
        self._of = lambda: None  # type: ignore[assignment]


class WindowBefore:
    """Corners, tabs and sizes of docks before a desk changes them.

    Parameters
    ----------
    viewer
        The viewer whose window it is, before any dock of the desk is in it.
    """

    def __init__(self, viewer: Any) -> None:
        window = window_of(viewer)
        self._window = None if window is None else weakref.ref(window)
        if window is not None:
            self._note(window)
        self._viewer = viewer
        self._has_scale_bar = viewer.canvas.overlays.scale_bar.visible
        self._axis_labels = viewer.dims.axis_labels

    def restore(self) -> None:
        """Undo what desks change; docks that the user moved, floated or hid stay as they are.

        The desk's own docks must have been removed.
        """
        window = None if self._window is None else self._window()
        if window is None or not isalive(window):  # type: ignore[no-untyped-call]
            return
        for corner, area in self._corners.items():
            window.setCorner(corner, area)
        window.setTabPosition(_RIGHT, self._tabs)
        self._restore_sizes(window)
        self._viewer.canvas.overlays.scale_bar.visible = self._has_scale_bar
        if self._viewer.dims.ndim == len(self._axis_labels):
            self._viewer.dims.axis_labels = self._axis_labels

    def _note(self, window: QMainWindow) -> None:
        self._corners = {corner: window.corner(corner) for corner in _CORNERS}
        self._tabs = window.tabPosition(_RIGHT)
        docks = [dock for dock in window.findChildren(QDockWidget) if _is_docked(window, dock)]
        self._areas = {dock: window.dockWidgetArea(dock) for dock in docks}
        self._sizes = {dock: dock.size() for dock in docks if dock.isVisible()}

    def _restore_sizes(self, window: QMainWindow) -> None:
        docks = [dock for dock in self._sizes if self._is_in_place(window, dock)]
        sizes = [self._sizes[dock] for dock in docks]
        for orientation, lengths in (
            (Qt.Orientation.Horizontal, [size.width() for size in sizes]),
            (Qt.Orientation.Vertical, [size.height() for size in sizes]),
        ):
            window.resizeDocks(docks, lengths, orientation)

    def _is_in_place(self, window: QMainWindow, dock: QDockWidget) -> bool:
        if not isalive(dock):  # type: ignore[no-untyped-call]
            return False
        return _is_docked(window, dock) and window.dockWidgetArea(dock) == self._areas[dock]


def _is_docked(window: QMainWindow, dock: QDockWidget) -> bool:
    nowhere = Qt.DockWidgetArea.NoDockWidgetArea
    return not dock.isFloating() and window.dockWidgetArea(dock) != nowhere


def give_corners_to_sides(window: QMainWindow) -> None:
    """Let the columns at the left and the right reach down to the bottom, below the strip."""
    for corner, area in _CORNERS.items():
        window.setCorner(corner, area)


class WindowSize(WindowPart):
    """Keeps a window as large as the user made it, and within its screen.

    By itself, Qt enlarges a window to the least size of its docks, also beyond the screen, and
    never shrinks it again.

    Parameters
    ----------
    window
        The window.
    """

    limited = Signal()  # the panels have less room than they need

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._limit = _UNLIMITED
        self._needed = QSize()  # when the limit was set
        layout = window.layout()
        if layout is not None:
            layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        window.installEventFilter(self)

    @property
    def is_limited(self) -> bool:
        """Whether the window is too small for the panels."""
        return bool(self._limit != _UNLIMITED)

    def lift_limits(self) -> None:
        """Let all panels have the room that they need, as far as the window has it."""
        window = self.window
        if window is not None:
            self._needed = QSize()
            self._set_limit(window, _UNLIMITED)

    def release(self) -> None:
        """Return the size of the window to Qt."""
        window = self.window
        if window is not None:
            window.setMinimumSize(0, 0)
            layout = window.layout()
            if layout is not None:
                layout.setSizeConstraint(QLayout.SizeConstraint.SetDefaultConstraint)
        super().release()

    def eventFilter(self, _watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice when docks need more room, or the window has more; pass events on."""
        window = self.window
        if window is not None and event is not None:
            if event.type() == QEvent.Type.LayoutRequest:
                self._keep(window)
            elif event.type() == QEvent.Type.Resize:
                is_enough = window.size().expandedTo(self._needed) == window.size()
                if self.is_limited and is_enough:
                    self.lift_limits()
        return False

    def _keep(self, window: QMainWindow) -> None:
        """Limit the panels if they need more than the window has."""
        room = room_for(window)
        needed, free = window.minimumSizeHint(), window.size().boundedTo(room)
        limit = QSize(
            _LEAST_PX.width() if needed.width() > free.width() else self._limit.width(),
            _LEAST_PX.height() if needed.height() > free.height() else self._limit.height(),
        )
        if limit == self._limit:
            window.setMinimumSize(needed.boundedTo(room))
        else:
            self._needed = self._needed.expandedTo(needed)
            self._set_limit(window, limit)
            self.limited.emit()

    def _set_limit(self, window: QMainWindow, limit: QSize) -> None:
        self._limit = limit
        for panel in window.findChildren(ShrinkingPanel):
            panel.limit(limit)


def room_for(window: QWidget) -> QSize:
    """Return how large a window can be on its screen, with its title bar."""
    screen = window.screen()
    if screen is None:
        return _UNLIMITED
    return screen.availableGeometry().size() - (window.frameGeometry().size() - window.size())


def fit_into_screen(window: QWidget) -> None:
    """Shrink and move a window so that it lies on its screen with its title bar."""
    screen = window.screen()
    if screen is None:
        return
    if (size := window.size().boundedTo(room_for(window))) != window.size():
        window.resize(size)
    free, frame = screen.availableGeometry(), window.frameGeometry()
    beyond = QPoint(max(frame.right() - free.right(), 0), max(frame.bottom() - free.bottom(), 0))
    if not beyond.isNull():
        window.move(frame.topLeft() - beyond)


_MOUSE = (QEvent.Type.Enter, QEvent.Type.Leave, QEvent.Type.Move, QEvent.Type.Resize)


class TitleButtons(QObject):
    """Shows the buttons in the titles of docks only while the mouse is over the dock.

    Parameters
    ----------
    docks
        The docks; where one floats, its buttons stay.
    """

    def __init__(self, docks: Iterable[QDockWidget]) -> None:
        super().__init__()
        self._docks = list(docks)
        for dock in self._docks:
            dock.installEventFilter(self)
            # napari makes another title then.
            dock.dockLocationChanged.connect(self._on_moved)
            dock.topLevelChanged.connect(self._on_moved)
            _show_title_buttons(dock, False)

    def release(self) -> None:
        """Show all of them again."""
        for dock in self._docks:
            if isalive(self) and isalive(dock):  # type: ignore[no-untyped-call]
                dock.removeEventFilter(self)
                _show_title_buttons(dock, True)
        self._docks = []

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice the mouse, also where a dock moves away below it; pass events on."""
        if event is not None and event.type() in _MOUSE and isinstance(watched, QDockWidget):
            self._follow(watched, event.type() != QEvent.Type.Leave)
        return False

    def _on_moved(self, _where: object) -> None:
        dock = self.sender()
        if isinstance(dock, QDockWidget) and dock in self._docks:
            self._follow(dock)

    @staticmethod
    def _follow(dock: QDockWidget, may_be_over: bool = True) -> None:
        is_over = may_be_over and dock.rect().contains(dock.mapFromGlobal(QCursor.pos()))
        _show_title_buttons(dock, is_over or dock.isFloating())


def _show_title_buttons(dock: QDockWidget, shown: bool) -> None:
    title = dock.titleBarWidget()
    for button in () if title is None else title.findChildren(QAbstractButton):
        button.setVisible(shown)


class Keyboard(WindowPart):
    """Moves the focus to the image when the widget that has it is hidden, or after a click.

    Qt gives it to the next widget, such as a menu, which takes letters as its own; and a widget
    behind a tab keeps it. A button that is clicked would keep Space and Enter for itself, and a
    text field that was typed in before would take the keys of the desk. When a message of napari
    closes, napari gives the focus to the image: a text field that is typed in gets it back, or the
    rest of a note would be commands.

    Parameters
    ----------
    viewer
        The viewer with the image.
    window
        Its window.
    docks
        Docks that can be hidden behind a tab.
    strips
        What else has buttons.
    """

    def __init__(
        self,
        viewer: Any,
        window: QMainWindow,
        docks: Iterable[QDockWidget],
        strips: Iterable[QWidget] = (),
    ) -> None:
        super().__init__(window)
        self._viewer = viewer
        self._at_press: QWidget | None = None  # the widget with the focus when a button was pressed
        self._clicked = single_shot(0, self._settle_click, self)
        docks = list(docks)
        self._parts: list[QWidget] = [*docks, *strips]
        self._watch()
        self._before: QWidget | None = None  # the widget with the focus before it was hidden
        self._after: QWidget | None = None  # what Qt gave it to
        self._later = single_shot(0, self._settle, self)
        self._application = QApplication.instance()
        if isinstance(self._application, QApplication):
            self._application.focusChanged.connect(self._on_focus)
        self._canvas = canvas_widget(viewer)
        self._reason: Qt.FocusReason | None = None  # why the image got the focus last
        if self._canvas is not None:
            self._canvas.installEventFilter(self)
        for dock in docks:
            dock.visibilityChanged.connect(self._on_seen)

    def check(self) -> None:
        """Move the focus to the image, unless a widget in sight has it, once docks are laid out."""
        self._later.start()

    def release(self) -> None:
        """Leave the focus to Qt."""
        stop_timers(self._later, self._clicked)
        self._parts = []
        if isinstance(self._application, QApplication):
            self._application.focusChanged.disconnect(self._on_focus)
        self._application = None
        if self._canvas is not None and isalive(self._canvas):  # type: ignore[no-untyped-call]
            self._canvas.removeEventFilter(self)
        self._canvas = None
        super().release()

    def _on_focus(self, before: QWidget | None, after: QWidget | None) -> None:
        window = self.window
        if isinstance(after, _LEFT_BY):
            self._watch()  # the focus moves before the press reaches a button, also a later one
        if window is None or before is None or not isalive(before):  # type: ignore[no-untyped-call]
            return
        if before.isVisible():
            if isinstance(before, TYPED_INTO) and self._is_taken_by_message(after):
                before.setFocus(Qt.FocusReason.OtherFocusReason)
            return
        if window.isAncestorOf(before):
            self._before = self._before or before  # docks that are moved are hidden for a moment
            self._after = after
            self.check()

    def _is_taken_by_message(self, after: QWidget | None) -> bool:
        return after is self._canvas and self._reason == Qt.FocusReason.OtherFocusReason

    def _on_seen(self, seen: bool) -> None:
        if not seen:
            self.check()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice clicks, and why the image gets the focus; pass events on."""
        window = self.window
        if window is None or event is None:
            return False
        if watched is self._canvas:
            if isinstance(event, QFocusEvent) and event.type() == QEvent.Type.FocusIn:
                self._reason = event.reason()
            return False
        if event.type() == QEvent.Type.MouseButtonPress:
            self._at_press = window.focusWidget()
            self._clicked.start(0)  # a button with a menu hears of no release
        elif event.type() == QEvent.Type.MouseButtonRelease:
            self._clicked.start(0)
        return False

    def _settle_click(self) -> None:
        """Return the focus to the image, unless the click gave it to a text field or a list."""
        window, before = self.window, self._at_press
        if window is None or before is None:
            return
        if QApplication.activePopupWidget() is not None or _is_held(before):
            self._clicked.start(_POPUP_MS)
            return
        self._at_press = None
        if isalive(before) and window.focusWidget() is before and isinstance(before, _LEFT_BY):  # type: ignore[no-untyped-call]
            self._focus_image(window)

    def _watch(self) -> None:
        """Notice clicks on all buttons, also those that panels and napari made since."""
        for part in self._parts:
            if isalive(part):  # type: ignore[no-untyped-call]
                for button in part.findChildren(QWidget):
                    if isinstance(button, CLICKED):
                        button.installEventFilter(self)

    def _settle(self) -> None:
        self._watch()  # napari makes another title bar for another place
        window, before, after = self.window, self._before, self._after
        self._before = self._after = None
        if window is None or not window.isVisible():
            return
        focused = window.focusWidget()
        if before is not None and focused is after:
            focused = before
        if focused is not None and isalive(focused) and is_in_sight(focused):  # type: ignore[no-untyped-call]
            focused.setFocus()
            return
        self._focus_image(window)

    def _focus_image(self, window: QMainWindow) -> None:
        central = window.centralWidget()
        if central is not None and central.isVisible() and window.isActiveWindow():
            focus_canvas(self._viewer)
        else:  # napari handles the keys of its window like those of the image
            window.setFocus()


def _is_held(widget: QWidget) -> bool:
    """Return whether a button or slider is still pressed."""
    is_slider = isinstance(widget, QAbstractSlider) and widget.isSliderDown()
    return is_slider or (isinstance(widget, QAbstractButton) and widget.isDown())
