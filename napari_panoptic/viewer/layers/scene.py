"""The layers of the desk: made, filled, coloured and found again in one place.

Only layers that the scene made itself are ever touched. One that was deleted by
hand is made again when the next region is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels, Layer
from numpy.typing import NDArray

from napari_panoptic.display import object_layers as contents
from napari_panoptic.display.listed import ListedObjects, Others
from napari_panoptic.display.marks import region_rings
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.labels import (
    drawn_once,
    label_colours,
    put_data,
    set_colours,
)
from napari_panoptic.viewer.layers.outlines import LayerOutlines, line_around, outlines_of
from napari_panoptic.viewer.layers.owned import (
    AMBIGUOUS,
    IMAGE,
    REFERENCE,
    RESULTS,
    SELECTED,
    ZONE,
    OwnedLayers,
    Owner,
    Slot,
    active_kept,
    put_in_place,
    set_units,
    set_unless_so,
    show_image,
)
from napari_panoptic.viewer.layers.watch import LayerValues, shows

_TEAM = "team: "

EDITED = " (edited)"
"""Added to the name of a layer that shows a working copy."""
UNNAMED = "prediction"
"""Name of the layer of a team while teams are not to be named; napari numbers several."""


@dataclass(frozen=True)
class Pointed:
    """An object that lies under a point."""

    #: The team whose layer it is on; None on the reference layer.
    team: str | None
    #: Reference or prediction.
    side: Side
    #: Its 0-based row.
    row: int


class AlternativeView(Protocol):
    """A view of the same objects; the scene's own layers are hidden while it is active."""

    keeps: frozenset[str]
    """Roles of the scene's layers that stay visible."""

    def objects_at(
        self, position: Sequence[float], viewbox: tuple[int, int] | None
    ) -> list[Pointed]:
        """List the objects under a world position in a cell of the canvas."""

    def apply_look(self, look: Look) -> None:
        """Draw objects in another way, or as heavy as the zoom asks for."""

    def emphasise(self, selection: Selection | None) -> None:
        """Mark the selected object."""


@dataclass(eq=False)
class _SceneSlot(Slot):
    """A layer of the scene; most of this concerns objects."""

    is_filled: bool = True
    """Whether its pixels are those of its content; objects are filled in when they are shown."""
    array: NDArray[np.uint16] | None = None
    """The layer's own array, to be filled again."""
    values: LayerValues | None = None
    lut: NDArray[np.float32] | None = None
    coloured_by: tuple[object, object, ColourBy, object] | None = None
    hidden_name: str = ""
    """Name of the layer of a team while that is not shown."""

    @property
    def is_team(self) -> bool:
        """Whether it shows the objects of a team."""
        return self.role.startswith(_TEAM)

    @property
    def side(self) -> Side:
        """The side whose objects it shows."""
        return Side.PREDICTION if self.is_team else Side.REFERENCE

    def forget_content(self) -> None:
        """Fill and colour the layer again when it is shown next."""
        self.content = self.coloured_by = self.lut = None

    @property
    def is_waiting(self) -> bool:
        """Whether objects are still to be filled in."""
        return self.content is not None and not self.is_filled


@dataclass(frozen=True, eq=False)
class _Band:
    """The uncertain border of a region, and what it depends on."""

    pair: LabelPair
    zone: Zone

    def is_same(self, other: object) -> bool:
        """Return whether another band has the same pixels."""
        if not isinstance(other, _Band):
            return False
        mine, theirs = self.pair, other.pair
        is_same_place = mine.reference is theirs.reference and mine.ambiguous is theirs.ambiguous
        return is_same_place and self.zone.is_same(other.zone)

    def picture(self) -> NDArray[np.uint8]:
        """Return uint8 (y, x): 1 in the zone."""
        return self.zone.mask(self.pair, (0, 0, *self.pair.reference.shape)).view(np.uint8)


def _role(side: Side, team: str | None) -> str:
    return REFERENCE if side is Side.REFERENCE else _TEAM + str(team)


class Scene:
    """The desk's layers in one viewer.

    Parameters
    ----------
    viewer
        The viewer; layers of others in it are left alone.
    """

    def __init__(self, viewer: ViewerModel) -> None:
        self._viewer = viewer
        self._own = OwnedLayers(viewer, Owner.DESK, _SceneSlot, self._on_visible)
        self._edited_roles: frozenset[str] = frozenset()
        self._hides_teams = False
        self._filling = Within()
        self._snapshot: RegionSnapshot | None = None
        self._scheme: ClassScheme | None = None
        self._team: str | None = None
        self._beside: frozenset[str] = frozenset()
        self._emphasised: Selection | None = None
        self._look = Look()
        self._listed: ListedObjects | None = None
        #: Moves the camera over the shown region.
        self.camera = camera.RegionCamera(viewer, lambda: self._snapshot)
        self._alternatives: list[AlternativeView] = []  # the last one is shown
        self._visible_before: dict[str, bool] = {}
        """Role -> whether a layer was visible before the first alternative view."""

    def activate(self, view: AlternativeView) -> None:
        """Show another view in place of the own layers; those that it keeps stay."""
        if not self._alternatives:
            self._visible_before = {slot.role: slot.layer.visible for slot in self._own}
        self._set_alternatives([*self._without(view), view])

    def deactivate(self, view: AlternativeView) -> None:
        """Show the view before the last one again."""
        if view in self._alternatives:
            self._set_alternatives(self._without(view))

    @property
    def alternative(self) -> AlternativeView | None:
        """The view that is shown in place of the own layers, if any."""
        return self._alternatives[-1] if self._alternatives else None

    def owns(self, layer: Layer) -> bool:
        """Return whether a layer is one of the scene's."""
        return layer in self._own

    @property
    def image_layer(self) -> Layer | None:
        """The layer of the region's image; None if there is none."""
        return self._own.layer(IMAGE)

    def _without(self, view: AlternativeView) -> list[AlternativeView]:
        return [other for other in self._alternatives if other is not view]

    def _set_alternatives(self, views: list[AlternativeView]) -> None:
        for role, visible in self._visible_before.items():
            if role != SELECTED:
                self._own.set_visible(role, visible)
        self._alternatives, self._own.notes_user = views, not views
        if not views:
            self._visible_before = {}
        self._apply_look()
        self.emphasise(self._emphasised)

    def _hide_own(self, view: AlternativeView) -> None:
        """Hide the layers that a view does not keep; new ones are shown later."""
        for slot in self._own:
            if slot.role in view.keeps:
                continue
            if slot.role in (IMAGE, AMBIGUOUS) and slot.layer.visible:
                self._visible_before[slot.role] = True
            self._own.set_visible(slot.role, False)

    @property
    def look(self) -> Look:
        """How objects are drawn at the moment."""
        return self._look

    def show(self, snapshot: RegionSnapshot, scheme: ClassScheme, team: str | None) -> None:
        """Fill the layers with a snapshot; unchanged ones are left alone.

        Parameters
        ----------
        snapshot
            The contents.
        scheme
            The classes and their colours.
        team
            The team whose objects are visible.
        """
        with self._filling:
            self._fill(snapshot, scheme, team)

    @property
    def is_filling(self) -> bool:
        """Whether layers are being filled: their contents are then neither old nor new."""
        return bool(self._filling)

    def _fill(self, snapshot: RegionSnapshot, scheme: ClassScheme, team: str | None) -> None:
        previous = self._snapshot
        self._snapshot, self._scheme, self._team = snapshot, scheme, team
        self.emphasise(None)
        if not snapshot.is_slide:
            self._drop_other_teams(snapshot)
        # Of all layers before one is added: napari then draws at once.
        set_units(self._viewer, self.camera.pixels.units, Owner.DESK)
        is_new = (
            previous is None
            or previous.region != snapshot.region
            or PixelSize.of(previous) != PixelSize.of(snapshot)
        )
        if previous is not None and previous.region != snapshot.region:
            self._beside = frozenset()
        if is_new:
            self.camera.fit()  # how heavy outlines are depends on the zoom
        self._fill_ambiguous(snapshot.ambiguous)
        if snapshot.is_slide:  # a view of its own shows the objects of slides
            for slot in self._own:
                if slot.role == REFERENCE or slot.is_team:
                    self._hide_empty(slot.role)
        else:
            for role, name, labels in self._object_contents(snapshot):
                self._fill_objects(role, name, labels)
        # napari measures all layers after the last one.
        if snapshot.image is None:
            self._hide_empty(IMAGE)
        else:
            self._forget_visible(IMAGE)
            show_image(self._own, snapshot.image, self.camera.pixels)
        self._arrange()
        self._activate()
        if previous is None:
            self._viewer.canvas.overlays.scale_bar.visible = snapshot.mpp is not None
        if is_new:
            self.camera.fit()  # napari moves it for a first layer, and there may be more cells
        self._apply_look()

    def take_edit(
        self, snapshot: RegionSnapshot, *, edited: Sequence[tuple[Side, str | None]] = ()
    ) -> None:
        """Follow an edit whose pixels the layers have already: only colours are new.

        Parameters
        ----------
        snapshot
            The region with the edit.
        edited
            The sides, and teams, that are working copies: marked in the names
            of their layers.
        """
        self._snapshot = snapshot
        for role, _, labels in self._object_contents(snapshot):
            slot = self._own.slot(role)
            if slot is not None and labels is not None and slot.content is not None:
                slot.content = labels
        self.mark_edited(edited)
        self._apply_colours()

    def take_unseen_edit(self, snapshot: RegionSnapshot, team: str) -> None:
        """Follow an edit of a team that is not looked at: its layer is filled again later."""
        self._snapshot = snapshot
        labels, slot = snapshot.predictions.get(team), self._own.slot(_TEAM + team)
        if labels is None or slot is None:
            return
        slot.content, slot.is_filled, slot.coloured_by = labels, False, None
        if slot.layer.visible:  # the user shows it
            self._apply_colours()

    def mark_edited(self, edited: Sequence[tuple[Side, str | None]]) -> None:
        """Mark the names of layers that show working copies."""
        roles = frozenset(_role(side, team) for side, team in edited)
        if roles != self._edited_roles:
            self._edited_roles = roles
            self._name_layers()

    def hide_teams(self, hidden: bool) -> None:
        """Name no team in the names of layers, or name them again."""
        if hidden != self._hides_teams:
            self._hides_teams = hidden
            self._own.adopt_all()
            self._name_layers()

    def name_of(self, team: str) -> str:
        """Return the name of the layer of a team."""
        return UNNAMED if self._hides_teams else shown(team)

    def _name_layers(self) -> None:
        for slot in self._own:
            name = shown(slot.role.removeprefix(_TEAM))
            wanted, was_hidden = slot.hidden_name or slot.layer.name, bool(slot.hidden_name)
            plain = wanted.removesuffix(EDITED)
            if plain in (name, name + RESULTS):
                wanted = plain + EDITED if slot.role in self._edited_roles else plain
            is_hidden = self._hides_teams and slot.is_team
            slot.hidden_name = wanted if is_hidden else ""
            if not (is_hidden and was_hidden):
                set_unless_so(slot.layer, "name", UNNAMED if is_hidden else wanted)

    def show_ambiguous(self, mask: NDArray[np.bool_] | None) -> None:
        """Show an ambiguous area that was redrawn; None hides it."""
        self._fill_ambiguous(mask)
        self._arrange()

    def show_zone(self) -> None:
        """Draw the uncertain border of the region as it is now; hide it where there is none."""
        if self.alternative is not None:  # which hides it
            return
        band, slot = self._band if self._look.with_zone else None, self._own.slot(ZONE)
        if band is None:
            self._own.hide_empty(ZONE)
            return
        if slot is None:
            layer = self._add_labels(ZONE, ZONE, band.picture()).layer
            layer.colormap = label_colours(np.array([(0, 0, 0, 0), contents.ZONE_COLOUR]))
            self._arrange()
        elif not band.is_same(slot.content):
            self._put_picture(slot.layer, band.picture())
        self._own.show_content(ZONE, band)

    @property
    def _band(self) -> _Band | None:
        """The uncertain border of the region that is held, if its settings have one."""
        evaluations = {} if self._snapshot is None else self._snapshot.evaluations
        found = evaluations.get(self._team or "") or next(iter(evaluations.values()), None)
        zone = None if found is None else Zone.of(found.table, found.settings)
        return None if found is None or zone is None else _Band(found.pair, zone)

    def object_layer(self, side: Side, team: str | None) -> tuple[Labels, LayerValues] | None:
        """Return the layer of the reference or of a team, and what its values stand for."""
        slot = self._own.slot(_role(side, team))
        if slot is None:
            return None
        self._catch_up(slot)
        return None if slot.values is None else (slot.layer, slot.values)

    def restore_objects(self, side: Side, team: str | None) -> None:
        """Refill the layer of a side, or create it again if the user deleted it."""
        if self._snapshot is None:
            return
        if (slot := self._own.slot(_role(side, team))) is not None:
            slot.forget_content()
        with self._filling:
            with active_kept(self._viewer):
                for role, name, labels in self._object_contents(self._snapshot):
                    if role == _role(side, team):
                        self._fill_objects(role, name, labels)
                self._arrange()
            self._apply_look()

    def set_team(self, team: str | None, snapshot: RegionSnapshot | None = None) -> None:
        """Show the objects of another team, with the edits made meanwhile."""
        self._snapshot = snapshot or self._snapshot
        if team != self._team:
            self._forget_visible_teams()
            self._beside = frozenset()
        self._team = team
        self.emphasise(None)
        self._apply_look()

    def show_beside(self, teams: Collection[str]) -> None:
        """Show the objects of other teams too, until another team or region is shown."""
        roles = frozenset(_TEAM + team for team in teams)
        if roles != self._beside:
            self._beside = roles
            self._apply_look()

    def set_look(self, look: Look) -> None:
        """Draw objects in another way."""
        changed = look.display is not self._look.display
        self._look = look
        for slot in self._own if changed else ():
            if slot.user_visible is False:  # asking for another display overrules hidden layers
                slot.user_visible = None
        self._apply_look()

    @property
    def listed(self) -> ListedObjects | None:
        """The objects that stand out from the others; None if all are drawn alike."""
        return self._listed

    def set_listed(self, listed: ListedObjects | None) -> None:
        """Let some objects stand out from the others; None draws all alike."""
        if listed is not None or self._listed is not None:
            self._listed = listed
            self._apply_look()

    def _forget_visible_teams(self) -> None:
        """Show the new team, and no other any more; also after an alternative view."""
        for slot in self._own:
            if slot.is_team:
                slot.user_visible = None
                self._visible_before.pop(slot.role, None)

    def objects_at(
        self, position: Sequence[float], viewbox: tuple[int, int] | None = None
    ) -> list[Pointed]:
        """List the objects under a world position, those on the topmost layer first.

        Only layers that can be seen count. ``viewbox`` is the cell of the
        canvas, if there are several.
        """
        if self.alternative is not None:
            return self.alternative.objects_at(position, viewbox)
        snapshot = self._snapshot
        at = None if snapshot is None else self.camera.pixels.px_inside(position, snapshot.shape)
        if snapshot is None or at is None:
            return []
        candidates: list[tuple[int, Pointed]] = []
        for role, name, labels in self._object_contents(snapshot):
            layer = self._own.layer(role)
            if layer is None or labels is None or not layer.visible or not labels.index[at]:
                continue
            is_reference = role == REFERENCE
            side = Side.REFERENCE if is_reference else Side.PREDICTION
            row = snapshot.row_at(side, self._team if is_reference else name, *at)
            if row is None:
                continue
            pointed = Pointed(None if is_reference else name, side, row)
            if self._is_left_out(pointed, int(labels.ids[labels.index[at] - 1])):
                continue
            candidates.append((self._viewer.layers.index(layer), pointed))
        return [pointed for _, pointed in sorted(candidates, key=lambda pair: -pair[0])]

    def _is_left_out(self, pointed: Pointed, id_: int) -> bool:
        """Return whether an object is not drawn, because only listed ones are."""
        if self._listed is None or self._listed.others is not Others.HIDDEN:
            return False
        if pointed.team not in (None, self._team):
            return False
        return id_ not in self._listed.ids[pointed.side]

    def emphasise(self, selection: Selection | None) -> None:
        """Draw rings around the selected object and its partner, or remove them."""
        self._emphasised = selection
        if self.alternative is not None and SELECTED not in self.alternative.keeps:
            self.alternative.emphasise(selection)
            return
        self._widen(selection)
        layer, picture = self._own.layer(SELECTED), None
        if selection is not None and self._snapshot is not None:
            picture = region_rings(
                self._snapshot, selection, ring_px=self.ring_px, as_line=self.are_lines
            )
        if picture is None:
            self._own.set_visible(SELECTED, False)
            return
        if layer is None:
            layer = self._add_labels(SELECTED, SELECTED, picture.image).layer
            layer.colormap = label_colours(np.array(list(contents.EMPHASIS_COLOURS.values())))
        with drawn_once(layer):
            line_around(layer, self._viewer, self.are_lines)
            put_data(layer, picture.image, self.camera.pixels, origin_yx_px=picture.origin_yx_px)
        self._own.set_visible(SELECTED, True)

    def _widen(self, selection: Selection | None) -> None:
        """Draw the line of the selected object wider than the others."""
        role = None if selection is None else _role(selection.side, selection.team)
        for slot in self._own:
            if slot.role == REFERENCE or slot.is_team:
                label = None
                if selection is not None and slot.role == role and slot.values is not None:
                    label = slot.values.value(selection.id)
                self._lines(slot).select(label)

    def follow_zoom(self) -> None:
        """Draw outlines and rings as heavy as they are well seen at the present zoom."""
        if self._snapshot is None:
            return
        if self.alternative is not None:
            self.alternative.apply_look(self._look)
        else:
            self._apply_contours()
        self.emphasise(self._emphasised)

    def release(self) -> None:
        """Let go of the layers; the next scene takes them over, or the desk removes them."""
        self._emphasised = None  # a window that is being closed takes no new layer
        if self._alternatives:
            self._set_alternatives([])
        self.hide_teams(False)
        while self.catch_up_one():
            pass
        self._own.release()
        self._edited_roles = frozenset()
        self._snapshot = None

    def _object_contents(
        self, snapshot: RegionSnapshot
    ) -> list[tuple[str, str, LabelImage | None]]:
        """List role, name and objects of the reference and of every team."""
        teams = [(_TEAM + name, name, labels) for name, labels in snapshot.predictions.items()]
        return [(REFERENCE, REFERENCE, snapshot.reference), *teams]

    def _drop_other_teams(self, snapshot: RegionSnapshot) -> None:
        wanted = {role for role, _, _ in self._object_contents(snapshot)}
        wanted |= {_TEAM + name for name in snapshot.pending}
        self._own.adopt_all()
        for slot in self._own:
            if slot.is_team and slot.role not in wanted:
                self._own.remove(slot.role)

    def _fill_ambiguous(self, mask: NDArray[np.bool_] | None) -> None:
        slot = self._own.slot(AMBIGUOUS)
        if mask is None or not mask.any():
            self._hide_empty(AMBIGUOUS)
            if slot is not None and self._snapshot is not None:
                self._put_picture(slot.layer, np.zeros(self._snapshot.shape, np.uint8))
            return
        if slot is None:
            layer = self._add_labels(AMBIGUOUS, AMBIGUOUS, contents.hatching(mask)).layer
            layer.colormap = label_colours(np.array([(0, 0, 0, 0), contents.HATCH_COLOUR]))
        elif slot.content is not mask:
            self._put_picture(slot.layer, contents.hatching(mask))
        self._forget_visible(AMBIGUOUS)
        self._own.show_content(AMBIGUOUS, mask)

    def _hide_empty(self, role: str) -> None:
        """Hide a layer that a region has nothing for, also after an alternative view."""
        self._own.hide_empty(role)
        self._forget_visible(role)

    def _forget_visible(self, role: str) -> None:
        """Treat a layer without contents as a new one after an alternative view."""
        slot = self._own.slot(role)
        if slot is not None and slot.content is None:
            self._visible_before.pop(role, None)

    def _put_picture(self, layer: Labels, picture: NDArray[np.uint8]) -> None:
        with drawn_once(layer):
            put_data(layer, picture, self.camera.pixels)

    def _fill_objects(self, role: str, name: str, labels: LabelImage | None) -> None:
        if labels is None:
            self._own.remove(role)
            return
        slot = self._own.slot(role)
        is_looked_at = name in (REFERENCE, self._team)
        if slot is None:
            picture = np.zeros(labels.shape, np.uint16)
            slot = self._add_labels(role, name, picture, visible=False)
            slot.array = picture
        is_filled = slot.content is labels and slot.is_filled
        slot.is_filled = is_filled or self._shows(slot, labels)
        slot.content = labels
        if is_looked_at or slot.layer.visible:  # most are never looked at
            self._catch_up(slot)

    def _catch_up(self, slot: _SceneSlot) -> None:
        """Fill a layer with its objects, unless that was done."""
        labels, layer, own = slot.content, slot.layer, slot.array
        if slot.is_filled or not isinstance(labels, LabelImage):
            return
        slot.values = LayerValues(labels.ids)
        can_reuse = own is not None and own is layer.data and own.shape == labels.shape
        with drawn_once(layer):
            if can_reuse and not self._has_copy(layer) and self.camera.pixels.lies_at(layer):
                contents.label_data(labels, out=own)  # sooner done than with other data
            else:
                slot.array = contents.label_data(labels)
                put_data(layer, slot.array, self.camera.pixels)
            self._outline(slot)
        slot.is_filled = True

    def _has_copy(self, layer: Labels) -> bool:
        """Return whether another layer shows the same array, as a copy by the user may."""
        return any(
            other is not layer
            and isinstance(other, Labels)
            and isinstance(other.data, np.ndarray)
            and np.may_share_memory(other.data, layer.data)
            for other in self._viewer.layers
        )

    def catch_up_one(self) -> bool:
        """Fill one of the layers that were left out; return whether there are more.

        For a moment when nothing else is to be done: a hidden layer that the user
        opens or saves must hold what its name says.
        """
        waiting = [slot for slot in self._own if slot.is_waiting]
        if waiting:
            with self._filling:
                self._catch_up(waiting[0])
        if len(waiting) == 1:
            waiting[0].layer.scale = waiting[0].layer.scale  # napari measures all layers again
        return len(waiting) > 1

    def _on_visible(self, slot: _SceneSlot) -> None:
        """Draw a team made visible by the user like the current team."""
        if slot.layer.visible and slot.is_team:
            self._catch_up(slot)
            if isinstance(slot.content, LabelImage):
                self._colour(slot, slot.content)
            self._outline(slot)

    def _shows(self, slot: _SceneSlot, labels: LabelImage) -> bool:
        """Return whether a layer shows the objects already, as one under edit does."""
        return (
            slot.values is not None
            and slot.content is not None
            and self.camera.pixels.lies_at(slot.layer)
            and shows(slot.layer.data, slot.values, labels)
        )

    def _add_labels(
        self, role: str, name: str, data: NDArray[Any], *, visible: bool = True
    ) -> _SceneSlot:
        name = self._own.free_name(name) + (EDITED if role in self._edited_roles else "")
        is_hidden = self._hides_teams and role.startswith(_TEAM)
        layer = Labels(data, name=UNNAMED if is_hidden else name, visible=visible)
        put_in_place(layer, self.camera.pixels)
        slot = self._own.add(role, layer)
        slot.hidden_name = name if is_hidden else ""
        return slot

    def _arrange(self) -> None:
        """Put the own layers in order, wherever those of others are."""
        teams = sorted(slot.role for slot in self._own if slot.is_team)
        self._own.arrange([IMAGE, AMBIGUOUS, ZONE, REFERENCE, *teams, SELECTED])

    def _activate(self) -> None:
        """Make the image active at first: keys and mouse then change no objects."""
        image, active = self._own.layer(IMAGE), self._viewer.layers.selection.active
        if image is not None and (active is None or active in self._own):
            self._viewer.layers.selection.active = image

    def _apply_look(self) -> None:
        """Colour, outline and show or hide the object layers."""
        if self._snapshot is None:
            return
        if self.alternative is not None:
            self._hide_own(self.alternative)
            self.alternative.apply_look(self._look)
            return
        self.show_zone()
        self._apply_colours()
        self._apply_contours()
        is_hidden = self._look.display is Display.HIDDEN
        for role, _, labels in self._object_contents(self._snapshot):
            slot = self._own.slot(role)
            if slot is not None and labels is not None:
                visible = self._is_drawn(slot) and not is_hidden and slot.user_visible is not False
                self._own.set_visible(role, visible)
        for name in self._snapshot.pending:  # their layers still show the region before
            self._own.set_visible(_TEAM + name, False)

    def _is_drawn(self, slot: _SceneSlot) -> bool:
        """Return whether a slot is of the reference, the current team, or shown by the user."""
        is_opened = slot.is_team and bool(slot.user_visible)
        return is_opened or slot.role in (
            REFERENCE,
            _TEAM + str(self._team),
            *self._beside,
        )

    def _apply_contours(self) -> None:
        for slot in self._own:
            self._outline(slot)

    def _outline(self, slot: _SceneSlot) -> None:
        """Outline objects, where they are drawn."""
        if self._is_drawn(slot):
            lines = self._lines(slot)
            lines.set_width(self._look.line_px(slot.side))
            # Lines have the same width at every zoom.
            zoom = 1.0 if lines.are_lines else self.camera.zoom
            set_unless_so(slot.layer, "contour", self._look.contour(slot.side, zoom))
            set_unless_so(slot.layer, "opacity", self._look.opacity)

    @property
    def are_lines(self) -> bool:
        """Whether outlines are lines, rather than pixels of the image."""
        slots = [slot for slot in self._own if slot.role == REFERENCE or slot.is_team]
        return bool(slots) and all(self._lines(slot).are_lines for slot in slots)

    @property
    def ring_px(self) -> int:
        """Width in image pixels of the ring around the selected object, or of the line's place."""
        on_screen_px = camera.LINE_AROUND_PX if self.are_lines else camera.RING_ON_SCREEN_PX
        return camera.ring_px(self.camera.zoom, on_screen_px)

    def _lines(self, slot: _SceneSlot) -> LayerOutlines:
        return outlines_of(slot.layer, self._viewer)

    def _apply_colours(self) -> None:
        """Colour the objects that are drawn."""
        if self._snapshot is None:
            return
        for role, _, labels in self._object_contents(self._snapshot):
            slot = self._own.slot(role)
            if slot is not None and labels is not None and self._is_drawn(slot):
                self._catch_up(slot)
                self._colour(slot, labels)

    def _colour(self, slot: _SceneSlot, labels: LabelImage) -> None:
        """Colour objects by status: those of the reference, for the current team."""
        side = slot.side
        team = slot.role.removeprefix(_TEAM) if slot.is_team else self._team
        is_too_many, outcomes = contents.too_many_objects(labels), None
        evaluations = {} if self._snapshot is None else self._snapshot.evaluations
        evaluation = evaluations.get(team or "")
        if evaluation is not None:
            # Without the predictions that a threshold leaves out.
            labels, outcomes = evaluation.pair.side(side), evaluation.outcomes.side(side)
        listed = self._listed if team == self._team else None
        wanted = (labels, outcomes, self._look.colour_by, listed)
        if self._scheme is None or slot.coloured_by == wanted:
            return
        slot.coloured_by = wanted
        values = None if slot.values is None or is_too_many else slot.values.values(labels.ids)
        if outcomes is not None and not is_too_many:
            self._lines(slot).set_boxes(outcomes.bbox, values)
        lut = contents.object_lut(labels, outcomes, self._scheme, self._look.colour_by, values)
        if listed is not None and outcomes is not None:
            lut = listed.faded(lut, side, labels, values)
        # The other side's colours often stay: then there is nothing to send to the card.
        if slot.lut is None or not np.array_equal(slot.lut, lut):
            set_colours(slot.layer, lut, self._viewer)
            slot.lut = lut
