"""Commands of an open desk in napari's command palette, and the keys that call them.

napari has one list of commands for all windows. A command is registered when the first window
offers it and removed with the last one. It acts on the window in front, and is disabled in a
window that does not offer it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import napari
from app_model import Action, Application
from app_model.expressions import Expr, get_context
from psygnal import Signal
from qtpy.compat import isalive
from qtpy.QtCore import QObject
from qtpy.QtGui import QKeySequence, QShortcut  # type: ignore[attr-defined]
from qtpy.QtWidgets import QAbstractItemView, QApplication, QWidget

from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.widgets import CLICKED, TYPED_INTO

PREFIX = "napari-panoptic."
"""How the ids of all commands start."""


def offer(viewer: Any, actions: Mapping[Shortcut, Callable[[], object]]) -> Callable[[], None]:
    """List actions in the command palette while a desk is open.

    Parameters
    ----------
    viewer
        The viewer in whose window they work.
    actions
        Line of the key list -> the function to call; lines without an action id are left out.

    Returns
    -------
    callable
        Removes them; a second call does nothing.
    """
    offered = {line: action for line, action in actions.items() if line.action}
    for line, action in offered.items():
        if line.action not in _COMMANDS:
            _COMMANDS[line.action] = _Command(line)
        _COMMANDS[line.action].add(viewer, action)
    kept_weakly = weakref.ref(viewer)

    def withdraw() -> None:
        while offered:
            line, _ = offered.popitem()
            command = _COMMANDS.get(line.action)
            if command is not None and command.remove(kept_weakly()):
                del _COMMANDS[line.action]

    return withdraw


class _Command:
    """One command, and the windows that offer it.

    Parameters
    ----------
    line
        Its line in the key list.
    """

    def __init__(self, line: Shortcut) -> None:
        self._actions: weakref.WeakKeyDictionary[Any, Callable[[], object]] = (
            weakref.WeakKeyDictionary()
        )
        self._flag = f"panoptic_{line.action}"
        self._dispose: Callable[[], None] = lambda: None
        action = Action(
            id=PREFIX + line.action,
            title=line.title,
            callback=self._run,
            enablement=Expr.parse(self._flag),
        )
        self._app = _application()
        if self._app is not None:
            with self._app.menus.menus_changed.blocked():
                self._dispose = self._app.register_action(action)

    def add(self, viewer: Any, action: Callable[[], object]) -> None:
        """Let a window offer it."""
        self._actions[viewer] = action
        self._enable(viewer, True)
        _list_again(viewer)

    def remove(self, viewer: Any | None) -> bool:
        """Let a window no longer offer it; returns whether none does, and it is removed."""
        if viewer is not None and self._actions.pop(viewer, None) is not None:
            self._enable(viewer, False)
        if not self._actions and self._app is not None:
            with self._app.menus.menus_changed.blocked():
                self._dispose()
        if viewer is not None:
            _list_again(viewer)
        return not self._actions

    def _run(self) -> None:
        current = napari.current_viewer()
        action = self._actions.get(getattr(current, "__wrapped__", current))
        if action is not None:
            action()

    def _enable(self, viewer: Any, is_offered: bool) -> None:
        """Set the context key that the palette of the viewer's window evaluates."""
        context = get_context(viewer.layers)
        if context is not None:
            context[self._flag] = is_offered


_COMMANDS: dict[str, _Command] = {}


def _list_again(viewer: Any) -> None:
    """Let the palette of a window list the commands again.

    napari keeps the palettes of closed windows connected to its list, so that any change of the
    list fails in them: changes are reported only to the palette concerned. Without the private
    names, the palette lists the commands that are there when a window is opened.
    """
    window = getattr(getattr(viewer, "window", None), "_qt_window", None)
    palette = getattr(window, "_command_palette", None)
    app = _application()
    if palette is None or app is None or not isalive(palette):  # type: ignore[no-untyped-call]
        return
    if hasattr(palette, "_on_app_menus_changed"):
        palette._on_app_menus_changed({app.menus.COMMAND_PALETTE_ID})


def _application() -> Application | None:
    """Return napari's list of commands; where it is kept elsewhere, there is no palette."""
    try:
        from napari._app_model import get_app_model
    except ImportError:
        return Application.get_app("napari")
    application: Application = get_app_model()
    return application


class SingleKeys(QObject):
    """Keys of a window that work in place of napari's while they are switched on, until released.

    Those that write something stay with a text field that has the focus. Space and Enter stay
    with whatever they press: buttons, lists and menus.

    Parameters
    ----------
    owner
        A widget of the window that is always in sight. The keys work also in floating panels.
    keys
        The keys.
    """

    pressed = Signal(str)  # the key

    def __init__(self, owner: QWidget, keys: Iterable[Shortcut]) -> None:
        super().__init__()
        self._is_on = False
        self._shortcuts = {line.key: QShortcut(QKeySequence(line.key), owner) for line in keys}
        for key, shortcut in self._shortcuts.items():
            shortcut.setAutoRepeat(False)
            shortcut.activated.connect(partial(self.pressed.emit, key))
        self.set_on(False)
        self._application = QApplication.instance()
        if isinstance(self._application, QApplication):
            self._application.focusChanged.connect(self._on_focus)

    def set_on(self, is_on: bool) -> None:
        """Switch the keys on or off."""
        self._is_on = is_on
        self._enable(QApplication.focusWidget())

    def release(self) -> None:
        """Remove the keys; the window may be gone already."""
        if isinstance(self._application, QApplication) and isalive(self):  # type: ignore[no-untyped-call]
            self._application.focusChanged.disconnect(self._on_focus)
        self._application, self._is_on = None, False
        while self._shortcuts:
            _, shortcut = self._shortcuts.popitem()
            if isalive(shortcut):  # type: ignore[no-untyped-call]
                shortcut.setEnabled(False)
                shortcut.deleteLater()

    def _on_focus(self, _before: QWidget | None, after: QWidget | None) -> None:
        if self._is_on:
            self._enable(after)

    def _enable(self, focused: QWidget | None) -> None:
        is_pressed = isinstance(focused, _PRESSED)
        for key, shortcut in self._shortcuts.items():
            shortcut.setEnabled(self._is_on and not (is_pressed and key in ("Space", "Return")))


_PRESSED = (*CLICKED, *TYPED_INTO, QAbstractItemView)
"""Widgets that have a use of their own for Space or Enter."""

Release = Callable[[], None]


def bind(viewer: Any, actions: Mapping[str, Callable[[], object]]) -> Release:
    """Bind keys of a viewer.

    Parameters
    ----------
    viewer
        The viewer.
    actions
        Key, as napari writes it (``Shift-n``) -> the function to call.

    Returns
    -------
    callable
        Unbinds the keys and restores earlier bindings; a second call does nothing.
    """
    earlier: dict[str, Any] = {}
    for key, action in actions.items():
        earlier[key] = viewer.bind_key(key, lambda _viewer, act=action: act(), overwrite=True)

    def release() -> None:
        while earlier:
            key, before = earlier.popitem()
            viewer.bind_key(key, None)
            if callable(before):
                viewer.bind_key(key, before)

    return release


def bind_commands(viewer: Any, actions: Mapping[Shortcut, Callable[[], object]]) -> Release:
    """Bind keys, and list those with an action id in napari's command palette.

    Parameters
    ----------
    viewer
        The viewer.
    actions
        Line of the key list -> the function to call. A line without a key is only in the palette.

    Returns
    -------
    callable
        Releases both; a second call does nothing.
    """
    unbind = bind(viewer, {line.key: action for line, action in actions.items() if line.key})
    withdraw = offer(viewer, actions)

    def release() -> None:
        unbind()
        withdraw()

    return release
