"""Keys of a viewer and commands of napari's palette: bound together, released together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from napari_panoptic.viewer.kit.commands import offer
from napari_panoptic.viewer.kit.keys import Shortcut

Action = Callable[[], object]
Release = Callable[[], None]


def bind(viewer: Any, actions: Mapping[str, Action]) -> Release:
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


def bind_commands(viewer: Any, actions: Mapping[Shortcut, Action]) -> Release:
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
