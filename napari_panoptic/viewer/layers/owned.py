"""Which layers the desks created, known by identity.

Metadata and names would not do: napari's "Duplicate layer" copies both, and a copy belongs
to the user.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from napari.layers import Layer

_ROLES: WeakKeyDictionary[Layer, tuple[str, str]] = WeakKeyDictionary()


def own(layer: Layer, owner: str, role: str) -> None:
    """Register a layer that a desk created.

    Parameters
    ----------
    layer
        The layer.
    owner
        The kind of view that uses it.
    role
        What the layer shows there.
    """
    _ROLES[layer] = owner, role


def disown(layer: Layer) -> None:
    """Forget a layer: the desks no longer touch it."""
    _ROLES.pop(layer, None)


def role_of(layer: Layer, owner: str) -> str | None:
    """Return the role of a layer that a kind of view created, else None."""
    found = _ROLES.get(layer)
    return found[1] if found is not None and found[0] == owner else None


def is_own(layer: Layer) -> bool:
    """Return whether any desk created a layer."""
    return layer in _ROLES


def find_own(viewer: Any, owner: str, role: str) -> Any | None:
    """Return the layer of a role in a viewer, also one that an earlier desk left there."""
    return next((layer for layer in viewer.layers if role_of(layer, owner) == role), None)


def own_when_added(viewer: Any, options: dict[str, Any], owner: str, role: str) -> dict[str, Any]:
    """Register the layer that napari is about to create from layer data.

    Parameters
    ----------
    viewer
        The viewer that the layer is added to next.
    options
        Options of the layer data.
    owner, role
        As `own`.

    Returns
    -------
    The options with a mark by which the layer is recognised once; it is then removed.
    """
    mark = object()

    def take(event: Any) -> None:
        viewer.layers.events.inserted.disconnect(take)
        if event.value.metadata.get(owner) is mark:
            del event.value.metadata[owner]
            own(event.value, owner, role)

    viewer.layers.events.inserted.connect(take)
    return {**options, "metadata": {owner: mark}}
