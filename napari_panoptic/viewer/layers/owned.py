"""The layers that the desks create: added, found again, placed, shown, hidden and removed.

A layer is recognised by identity. Metadata and names would not do: napari's "Duplicate layer"
copies both, and a copy belongs to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from napari.layers import Image, Labels, Layer

from napari_panoptic.display.object_layers import PixelSize, image_layer_data
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.viewer.kit.napari_private import not_activated, show_tools
from napari_panoptic.viewer.kit.shown import show_info, shown

IMAGE = "image"
AMBIGUOUS = "ambiguous areas"
ZONE = "uncertain border"
REFERENCE = "reference"
SELECTED = "selected object"

STAYS = (
    "Layers of this window can't be moved, rotated or scaled: they would no longer match the "
    "metrics and files."
)
RESULTS = " (results)"
"""Added to the name of a layer where a layer of the user's has that name."""


class Owner(StrEnum):
    """The kinds of views that create layers."""

    DESK = "napari-panoptic desk"  # of nuclei and of detections
    RATERS = "napari-panoptic raters"
    SLIDE = "napari-panoptic slide"
    AREAS = "napari-panoptic areas"  # ambiguous areas drawn as shapes
    CELLS = "napari-panoptic cells"  # of teams side by side
    CONSENSUS = "napari-panoptic consensus"
    MARKS = "napari-panoptic marks"


_OWNED: WeakKeyDictionary[Layer, tuple[Owner, str]] = WeakKeyDictionary()


def is_own(layer: Layer) -> bool:
    """Return whether any desk created a layer."""
    return layer in _OWNED


def find_own(viewer: Any, owner: Owner, role: str) -> Any | None:
    """Return the layer of a role in a viewer, also one that an earlier desk left there."""
    return next((layer for layer in viewer.layers if _OWNED.get(layer) == (owner, role)), None)


def own_when_added(viewer: Any, options: dict[str, Any], owner: Owner, role: str) -> dict[str, Any]:
    """Register the layer that napari is about to create from layer data.

    Parameters
    ----------
    viewer
        The viewer that the layer is added to next.
    options
        Options of the layer data.
    owner, role
        The kind of view that uses it, and its role there.

    Returns
    -------
    The options with a mark by which the layer is recognised once; it is then removed.
    """
    mark = object()

    def take(event: Any) -> None:
        viewer.layers.events.inserted.disconnect(take)
        if event.value.metadata.get(owner) is mark:
            del event.value.metadata[owner]
            _own(event.value, owner, role)

    viewer.layers.events.inserted.connect(take)
    return {**options, "metadata": {owner: mark}}


def remove_owned(viewer: Any) -> None:
    """Remove the layers of a desk that is closed; those of others stay."""
    with viewer.layers.batched_update():
        for layer in [layer for layer in viewer.layers if is_own(layer)]:
            viewer.layers.remove(layer)


def set_units(viewer: Any, units: tuple[str, ...], owner: Owner) -> None:
    """Set the unit of one owner's layers, and of the hidden layers of all desks.

    napari warns, and shows no scale any more, if units of layers differ, also of hidden ones;
    the desk that shows them again sets its own unit.

    Parameters
    ----------
    viewer
        The viewer; layers of others in it are left alone.
    units
        Such as ``("pixel", "pixel")``; all alike.
    owner
        Whose visible layers change as well.
    """
    for layer in viewer.layers:
        is_affected = is_own(layer) and (_OWNED[layer][0] is owner or not layer.visible)
        if is_affected and {str(unit) for unit in layer.units} != set(units):
            layer.units = units[:1] * layer.ndim


def set_unless_so(layer: Layer, name: str, value: object) -> None:
    """Set an attribute if it differs: napari slices again whenever one is set."""
    if getattr(layer, name) != value:
        setattr(layer, name, value)


def put_in_place(layer: Layer, pixels: PixelSize, *, remeasure: bool = False) -> None:
    """Set the units, scale and origin of a layer where they differ.

    Parameters
    ----------
    layer
        The layer.
    pixels
        How large its pixels are, and where they lie.
    remeasure
        Set the scale in any case: napari then measures how far data of another size reach.
    """
    if tuple(str(unit) for unit in layer.units) != pixels.units:
        layer.units = pixels.units
    if remeasure or tuple(layer.scale) != pixels.scale:
        layer.scale = pixels.scale
    if tuple(layer.translate) != pixels.origin:
        layer.translate = pixels.origin


@contextmanager
def active_kept(viewer: Any) -> Iterator[None]:
    """Keep the active layer: napari activates each layer that is added."""
    selection = viewer.layers.selection
    active = selection.active
    with not_activated(viewer.layers):
        yield
    if active is None or active in viewer.layers:
        selection.active = active


@dataclass(eq=False)
class Slot:
    """One layer of a view, and its state."""

    role: str
    layer: Any
    content: object = None
    """The content of the layer; None while it is hidden because there is nothing to show."""
    user_visible: bool | None = None
    """Whether the user showed or hid it; None if neither."""


S = TypeVar("S", bound=Slot)


class OwnedLayers(Generic[S]):
    """The layers of one view in a viewer, by role.

    Layers that the user deletes are forgotten. Layers that an earlier view of the same kind left
    in the viewer are taken over when they are asked for.

    Parameters
    ----------
    viewer
        The viewer; layers of others in it are left alone.
    owner
        The kind of view.
    kind
        The class of the slots.
    on_visible
        Called with each slot whose layer was shown or hidden, also by these layers themselves.
    """

    def __init__(
        self,
        viewer: Any,
        owner: Owner,
        kind: Callable[[str, Any], S],
        on_visible: Callable[[S], None] | None = None,
    ) -> None:
        self._viewer, self._owner, self._kind = viewer, owner, kind
        self._report_visible = on_visible
        self._slots: dict[str, S] = {}
        self._is_setting = False
        self.notes_user = True
        """Whether others show or hide layers on behalf of the user."""

    def __contains__(self, layer: object) -> bool:
        """Return whether a layer is one of these."""
        return any(slot.layer is layer for slot in self._slots.values())

    def __iter__(self) -> Iterator[S]:
        """Iterate over the slots of the layers that are in the viewer."""
        found = [self.slot(role) for role in list(self._slots)]
        return iter([slot for slot in found if slot is not None])

    def slot(self, role: str) -> S | None:
        """Return the slot of a role; None where there is no layer."""
        slot = self._slots.get(role)
        if slot is not None and slot.layer in self._viewer.layers:
            return slot
        self._forget(role)
        layer = find_own(self._viewer, self._owner, role)
        return None if layer is None else self._hold(role, layer)

    def layer(self, role: str) -> Any | None:
        """Return the layer of a role; None where there is none."""
        slot = self.slot(role)
        return None if slot is None else slot.layer

    def adopt_all(self) -> None:
        """Take over the layers that earlier views of the same kind left in the viewer."""
        for layer in self._viewer.layers:
            owner, role = _OWNED.get(layer, (None, ""))
            if owner is self._owner and layer not in self:
                self._hold(role, layer)

    def add(self, role: str, layer: Layer, *, at: int | None = None) -> S:
        """Add a layer to the viewer, above all others or at a place; the active layer stays.

        Labels cannot be edited: the metrics would not follow.
        """
        if isinstance(layer, Labels):
            show_tools(layer, shown=False)
        _own(layer, self._owner, role)  # before others hear of it
        with active_kept(self._viewer):
            layers = self._viewer.layers
            layers.insert(len(layers) if at is None else at, layer)
        if isinstance(layer, Labels):
            layer.editable = False
        return self._hold(role, layer)

    def remove(self, role: str) -> None:
        """Remove the layer of a role, if there is one."""
        slot = self.slot(role)
        if slot is not None:
            self._forget(role)
            self._viewer.layers.remove(slot.layer)

    def set_visible(self, role: str, visible: bool) -> None:
        """Show or hide the layer of a role; not the user's doing."""
        slot = self.slot(role)
        if slot is not None and slot.layer.visible != visible:
            before, self._is_setting = self._is_setting, True
            try:
                slot.layer.visible = visible
            finally:
                self._is_setting = before

    def hide_all(self) -> None:
        """Hide all layers; not the user's doing."""
        for slot in self:
            self.set_visible(slot.role, False)

    def hide_empty(self, role: str) -> None:
        """Hide a layer without contents: removing it would take napari far longer."""
        slot = self.slot(role)
        if slot is not None:
            slot.content = None
            self.set_visible(role, False)

    def show_content(self, role: str, content: object) -> None:
        """Set the content of a layer; show it if it was hidden because it had none."""
        slot = self.slot(role)
        if slot is not None:
            was_empty, slot.content = slot.content is None, content
            if was_empty:
                self.set_visible(role, True)

    def forget_user(self) -> None:
        """Forget which layers the user showed or hid."""
        for slot in self._slots.values():
            slot.user_visible = None

    def arrange(self, roles: list[str]) -> None:
        """Put layers into this order, from below, wherever those of others are."""
        layers, last = self._viewer.layers, -1
        for layer in (self.layer(role) for role in roles):
            if layer is None:
                continue
            place = layers.index(layer)
            if place < last:
                layers.move(place, last + 1)
                place = last
            last = place

    def free_name(self, name: str) -> str:
        """Return a name for a layer that no layer of the user's has."""
        name = shown(name)
        is_taken = any(layer.name == name and not is_own(layer) for layer in self._viewer.layers)
        return name + RESULTS if is_taken else name

    def release(self) -> None:
        """Forget the layers; they stay in the viewer."""
        for role in list(self._slots):
            self._forget(role)

    def _hold(self, role: str, layer: Layer) -> S:
        _own(layer, self._owner, role)
        slot = self._slots[role] = self._kind(role, layer)
        layer.events.visible.connect(self._on_visible)
        return slot

    def _forget(self, role: str) -> None:
        slot = self._slots.pop(role, None)
        if slot is not None:
            slot.layer.events.visible.disconnect(self._on_visible)

    def _on_visible(self, event: Any) -> None:
        slot = next(slot for slot in self._slots.values() if slot.layer is event.source)
        if self.notes_user and not self._is_setting:
            slot.user_visible = bool(slot.layer.visible)
        if self._report_visible is not None:
            self._report_visible(slot)


def show_image(own: OwnedLayers[S], image: SlideImage, pixels: PixelSize) -> None:
    """Show the image of a region on the layer of the role ``IMAGE``, which is added if needed."""
    slot = own.slot(IMAGE)
    is_new = slot is None or slot.content is not image
    if slot is not None and is_new and (slot.layer.multiscale or len(image.levels) > 1):
        own.remove(IMAGE)  # a layer cannot change between one level and several
        slot = None
    if slot is None:
        data, options, _ = image_layer_data(image, pixels)
        own.add(IMAGE, Image(data, **{**options, "name": own.free_name(IMAGE)}))
    elif is_new:
        put_in_place(slot.layer, pixels)
        slot.layer.data = image.levels[0]
    own.show_content(IMAGE, image)


def _own(layer: Layer, owner: Owner, role: str) -> None:
    """Register a layer, and reject napari's transform tool on it; repeated calls do nothing."""
    if layer not in _OWNED:
        # Last: the buttons of napari's controls must hear of the one tool before the other.
        layer.events.mode.connect(_reject_transform, position="last")
    _OWNED[layer] = owner, role


def _reject_transform(event: Any) -> None:
    if str(event.source.mode) == "transform":
        event.source.mode = "pan_zoom"
        show_info(STAYS)
