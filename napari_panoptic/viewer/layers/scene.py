"""The layers of the desk: made, filled, coloured and found again in one place.

Only layers that the scene made itself are ever touched. One that was deleted by
hand is made again when the next region is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray

from napari_panoptic.io.images import SlideImage
from napari_panoptic.nuclei.display import object_layers as contents
from napari_panoptic.nuclei.display.listed import Listed, Others
from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.nuclei.display.styles import ColourBy, Display, Look
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.session import Selection
from napari_panoptic.nuclei.snapshots import RegionSnapshot
from napari_panoptic.nuclei.values.cohort import ClassScheme
from napari_panoptic.nuclei.values.labels import LabelImage
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.desk_layers import (
    AMBIGUOUS,
    IMAGE,
    REFERENCE,
    ROLE,
    SELECTED,
    image_layer_data,
    set_unless_so,
)
from napari_panoptic.viewer.layers.fast_outlines import draw_outlines_fast
from napari_panoptic.viewer.layers.in_one_go import drawn_once, put_data
from napari_panoptic.viewer.layers.kept_in_place import keep_in_place
from napari_panoptic.viewer.layers.left_behind import take_unit
from napari_panoptic.viewer.layers.owned import find_own, is_own, own, role_of
from napari_panoptic.viewer.layers.recolour import label_colours, set_colours
from napari_panoptic.viewer.layers.stand_in import Pointed, StandIn
from napari_panoptic.viewer.layers.watch import LayerValues, shows

_TEAM = "team: "

EDITED = " (edited)"
"""Added to the name of a layer that shows a working copy."""
RESULTS = " (results)"
"""Added to the name of a layer where a layer of the user's has that name."""


class Scene:
    """The desk's layers in one viewer.

    Parameters
    ----------
    viewer
        The viewer; layers of others in it are left alone.
    """

    def __init__(self, viewer: ViewerModel) -> None:
        self._viewer = viewer
        self._layers: dict[str, Layer] = {}
        self._contents: dict[str, object] = {}
        self._behind: dict[str, LabelImage] = {}
        self._arrays: dict[str, NDArray[np.uint16]] = {}
        self._values: dict[str, LayerValues] = {}
        self._luts: dict[str, NDArray[np.float32]] = {}
        self._edited_roles: frozenset[str] = frozenset()
        self._is_filling = False
        self._colours: dict[str, tuple[object, object, ColourBy, object]] = {}
        self._set_visible: dict[str, bool] = {}
        self._closed_eyes: set[str] = set()
        self._opened_eyes: set[str] = set()
        self._snapshot: RegionSnapshot | None = None
        self._scheme: ClassScheme | None = None
        self._team: str | None = None
        self._emphasised: Selection | None = None
        self._look = Look()
        self._follow = camera.Follow()
        self._listed: Listed | None = None
        self._stand_in: StandIn | None = None
        self._always: StandIn | None = None
        self._seen_before: dict[str, tuple[Layer, bool]] = {}

    def step_aside(self, stand_in: StandIn) -> None:
        """Hide the own layers, but those it keeps, and let another view stand in for them."""
        if self._stand_in is None:
            self._note_eyes()
            present = {role: self._mine(role) for role in list(self._layers)}
            self._seen_before = {
                role: (layer, layer.visible) for role, layer in present.items() if layer is not None
            }
        else:
            self._show_as_before()
        self._stand_in = stand_in
        self._hide_own()
        self.emphasise(self._emphasised)

    def come_back(self) -> None:
        """Show the own layers again as they were seen before."""
        if self._stand_in is None:
            return
        self._show_as_before()
        self._stand_in = None
        for role in list(self._set_visible):
            layer = self._mine(role)  # hidden meanwhile by the scene, not by hand
            self._set_visible[role] = layer is not None and layer.visible
        self._apply_look()
        self._show_as_before()
        self._seen_before = {}
        self.emphasise(self._emphasised)

        if self._always is not None:
            self.step_aside(self._always)

    def step_aside_always(self, stand_in: StandIn | None) -> None:
        """Let a view stand in whenever no other does; None for none any more."""
        self._always = stand_in
        if stand_in is None:
            self.come_back()
        else:
            self.step_aside(stand_in)

    @property
    def stand_in(self) -> StandIn | None:
        """The view that stands in for the own layers, if any."""
        return self._stand_in

    def owns(self, layer: Layer) -> bool:
        """Return whether a layer is one of the scene's."""
        return layer in self._layers.values()

    @property
    def image_layer(self) -> Layer | None:
        """The layer of the region's image; None if there is none."""
        return self._mine(IMAGE)

    def _show_as_before(self) -> None:
        for role, (layer, visible) in self._seen_before.items():
            if self._mine(role) is layer and role != SELECTED:
                set_unless_so(layer, "visible", visible)

    def _hide_own(self) -> None:
        """Hide what is not kept; new layers are seen again later as any new layer is."""
        kept = frozenset() if self._stand_in is None else self._stand_in.keeps
        for role in list(self._layers):
            layer = self._mine(role)
            if layer is None or role in kept:
                continue
            if role in (IMAGE, AMBIGUOUS) and layer.visible:
                self._seen_before[role] = (layer, True)
            set_unless_so(layer, "visible", False)

    @property
    def look(self) -> Look:
        """How objects are drawn at the moment."""
        return self._look

    def show(self, snapshot: RegionSnapshot, scheme: ClassScheme, team: str | None) -> None:
        """Fill the layers with a snapshot; what did not change is left as it is.

        Parameters
        ----------
        snapshot
            What there is to show.
        scheme
            The classes and their colours.
        team
            The team whose objects are visible.
        """
        self._is_filling = True
        try:
            self._fill(snapshot, scheme, team)
        finally:
            self._is_filling = False

    @property
    def is_filling(self) -> bool:
        """Whether layers are being filled: what they show is then neither old nor new."""
        return self._is_filling

    def _fill(self, snapshot: RegionSnapshot, scheme: ClassScheme, team: str | None) -> None:
        previous = self._snapshot
        self._snapshot, self._scheme, self._team = snapshot, scheme, team
        self.emphasise(None)
        if not snapshot.is_slide:
            self._drop_other_teams(snapshot)
        self._take_unit()
        is_new = (
            previous is None
            or previous.region != snapshot.region
            or PixelSize.of(previous) != PixelSize.of(snapshot)
        )
        if is_new:
            self.fit()  # how heavy outlines are depends on the zoom
        self._fill_ambiguous(snapshot.ambiguous)
        if snapshot.is_slide:  # a view of its own shows the objects of slides
            for role in [REFERENCE, *(role for role in self._layers if role.startswith(_TEAM))]:
                self._put_away(role)
        else:
            for role, name, labels in self._object_contents(snapshot):
                self._fill_objects(role, name, labels)
        # The last one tells napari how far all layers reach.
        self._fill_image(snapshot.image)
        self._arrange()
        self._activate()
        if previous is None:
            self._viewer.canvas.overlays.scale_bar.visible = snapshot.mpp is not None
        if is_new:
            self.fit()  # napari moves the camera for a first layer, and there may be more cells
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
            if labels is not None and role in self._behind:
                self._behind[role] = labels
            elif labels is not None and role in self._contents:
                self._contents[role] = labels
        self.mark_edited(edited)
        self._apply_colours()

    def take_unseen_edit(self, snapshot: RegionSnapshot, team: str) -> None:
        """Follow an edit of a team that is not looked at: its layer is filled again later."""
        self._snapshot = snapshot
        role = _TEAM + team
        labels, layer = snapshot.predictions.get(team), self._mine(role)
        if labels is None or layer is None:
            return
        self._contents.pop(role, None)
        self._colours.pop(role, None)
        self._behind[role] = labels
        if layer.visible:  # the user opened its eye
            self._apply_colours()

    def mark_edited(self, edited: Sequence[tuple[Side, str | None]]) -> None:
        """Mark the names of layers that show working copies."""
        roles = frozenset(
            REFERENCE if side is Side.REFERENCE else _TEAM + str(team) for side, team in edited
        )
        if roles == self._edited_roles:
            return
        self._edited_roles = roles
        for role in list(self._layers):
            layer, name = self._mine(role), shown(role.removeprefix(_TEAM))
            plain = "" if layer is None else layer.name.removesuffix(EDITED)
            if layer is not None and plain in (name, name + RESULTS):
                layer.name = plain + EDITED if role in roles else plain

    def show_ambiguous(self, mask: NDArray[np.bool_] | None) -> None:
        """Show an ambiguous area that was redrawn; None hides it."""
        active = self._viewer.layers.selection.active
        self._fill_ambiguous(mask)
        self._arrange()
        if active in self._viewer.layers:
            self._viewer.layers.selection.active = active

    def object_layer(self, side: Side, team: str | None) -> tuple[Labels, LayerValues] | None:
        """Return the layer of the reference or of a team, and what its values stand for."""
        role = REFERENCE if side is Side.REFERENCE else _TEAM + str(team)
        self._catch_up(role)
        layer = self._mine(role)
        values = self._values.get(role)
        return None if layer is None or values is None else (layer, values)

    def restore_objects(self, side: Side, team: str | None) -> None:
        """Refill the layer of a side, or create it again if the user deleted it."""
        if self._snapshot is None:
            return
        wanted = REFERENCE if side is Side.REFERENCE else _TEAM + str(team)
        self._is_filling = True
        try:
            for role, name, labels in self._object_contents(self._snapshot):
                if role == wanted:
                    self._contents.pop(role, None)
                    self._colours.pop(role, None)
                    self._luts.pop(role, None)
                    active = self._viewer.layers.selection.active
                    self._fill_objects(role, name, labels)
                    self._arrange()
                    self._viewer.layers.selection.active = active
            self._apply_look()
        finally:
            self._is_filling = False

    def set_team(self, team: str | None, snapshot: RegionSnapshot | None = None) -> None:
        """Show the objects of another team, with what was edited meanwhile."""
        self._snapshot = snapshot or self._snapshot
        if team != self._team:
            self._note_eyes()
            self._forget_eyes_of_teams()
        self._team = team
        self.emphasise(None)
        self._apply_look()

    def set_look(self, look: Look) -> None:
        """Draw objects in another way."""
        changed = look.display is not self._look.display
        self._look = look
        if changed:
            self._note_eyes()
            self._closed_eyes.clear()
            self._set_visible.clear()  # asking for another display overrules closed eyes
        self._apply_look()

    @property
    def listed(self) -> Listed | None:
        """The objects that stand out from the others; None if all are drawn alike."""
        return self._listed

    def set_listed(self, listed: Listed | None) -> None:
        """Let some objects stand out from the others; None draws all alike."""
        if listed is not None or self._listed is not None:
            self._listed = listed
            self._apply_look()

    def _forget_eyes_of_teams(self) -> None:
        """Show the new team, and no other any more; also when the scene comes back."""
        for role in [role for role in self._seen_before if role.startswith(_TEAM)]:
            del self._seen_before[role]
        self._opened_eyes.clear()
        self._closed_eyes = {role for role in self._closed_eyes if not role.startswith(_TEAM)}

    def objects_at(
        self, position: Sequence[float], viewbox: tuple[int, int] | None = None
    ) -> list[Pointed]:
        """List the objects under a world position, those on the topmost layer first.

        Only layers that can be seen count. ``viewbox`` is the cell of the
        canvas, if there are several.
        """
        if self._stand_in is not None:
            return self._stand_in.objects_at(position, viewbox)
        if self._snapshot is None:
            return []
        y, x = self._pixels.to_px((position[-2], position[-1]))
        height, width = self._snapshot.shape
        if not (0 <= y < height and 0 <= x < width):
            return []
        found: list[tuple[int, Pointed]] = []
        for role, name, labels in self._object_contents(self._snapshot):
            layer = self._mine(role)
            if layer is None or labels is None or not layer.visible or not labels.index[y, x]:
                continue
            is_reference = role == REFERENCE
            side = Side.REFERENCE if is_reference else Side.PREDICTION
            row = self._snapshot.row_at(side, self._team if is_reference else name, y, x)
            if row is None:
                continue
            pointed = Pointed(None if is_reference else name, side, row)
            if self._is_left_out(pointed, int(labels.ids[labels.index[y, x] - 1])):
                continue
            found.append((self._viewer.layers.index(layer), pointed))
        return [pointed for _, pointed in sorted(found, key=lambda pair: -pair[0])]

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
        if self._stand_in is not None and SELECTED not in self._stand_in.keeps:
            self._stand_in.emphasise(selection)
            return
        layer = self._mine(SELECTED)
        picture = None if selection is None else self._picture(selection)
        if picture is None:
            if layer is not None:
                set_unless_so(layer, "visible", False)
            return
        if layer is None:
            active = self._viewer.layers.selection.active
            layer = self._add_labels(SELECTED, SELECTED, picture.image)
            layer.colormap = label_colours(np.array(list(contents.EMPHASIS_COLOURS.values())))
            self._viewer.layers.selection.active = active
        with drawn_once(layer):
            put_data(layer, picture.image, self._pixels, origin_yx_px=picture.origin_yx_px)
        set_unless_so(layer, "visible", True)

    def centre(self, selection: Selection, *, only_if_hidden: bool = False) -> None:
        """Bring an object to the middle of the canvas.

        Parameters
        ----------
        selection
            The object.
        only_if_hidden
            Leave the view alone if the object can be seen, and the zoom in
            any case.
        """
        box = self._box(selection)
        if box is not None:
            self.centre_box(box.tolist(), only_if_hidden=only_if_hidden)

    def bring_into_view(self, selection: Selection) -> None:
        """Centre an object, large enough on the screen to judge it."""
        box = self._box(selection)
        if box is not None:
            self._follow.bring(self._viewer, box.tolist(), self._pixels)

    def centre_box(self, box: Sequence[float], *, only_if_hidden: bool = False) -> None:
        """Bring a box (y0, x0, y1, x1 in px) to the middle of the canvas, as `centre` does."""
        camera.centre(self._viewer, box, self._pixels, only_if_hidden=only_if_hidden)

    def follow_zoom(self) -> None:
        """Draw outlines and rings as heavy as they are well seen at the present zoom."""
        if self._snapshot is None:
            return
        if self._stand_in is not None:
            self._stand_in.apply_look(self._look)
        else:
            self._apply_contours()
        self.emphasise(self._emphasised)

    def fit(self) -> None:
        """Show the whole region."""
        if self._snapshot is not None:
            camera.fit(self._viewer, self._snapshot.shape, self._pixels)

    @property
    def zoom(self) -> float:
        """How large an image pixel is on the screen."""
        return camera.zoom(self._viewer, self._pixels)

    def release(self) -> None:
        """Let go of the layers; the next scene takes them over, or the desk removes them."""
        self.come_back()
        while self.catch_up_one():
            pass
        for layer in self._layers.values():
            layer.events.visible.disconnect(self._on_eye)
        self._layers.clear()
        self._contents.clear()
        self._behind.clear()
        self._arrays.clear()
        self._values.clear()
        self._colours.clear()
        self._luts.clear()
        self._set_visible.clear()
        self._edited_roles = frozenset()
        self._snapshot = None

    @property
    def _pixels(self) -> PixelSize:
        return PixelSize.of(self._snapshot)

    def _object_contents(
        self, snapshot: RegionSnapshot
    ) -> list[tuple[str, str, LabelImage | None]]:
        """List role, name and objects of the reference and of every team."""
        teams = [(_TEAM + name, name, labels) for name, labels in snapshot.predictions.items()]
        return [(REFERENCE, REFERENCE, snapshot.reference), *teams]

    def _mine(self, role: str) -> Any | None:
        """Return the layer of a role, unless the user deleted it.

        A layer that an earlier scene made is taken over.
        """
        layer = self._layers.get(role)
        if layer is not None and layer not in self._viewer.layers:
            self._forget(role)
            layer = None
        if layer is None:
            layer = find_own(self._viewer, ROLE, role)
            if layer is not None:
                self._own(role, layer)
        return layer

    def _forget(self, role: str) -> None:
        self._layers.pop(role, None)
        self._contents.pop(role, None)
        self._behind.pop(role, None)
        self._arrays.pop(role, None)
        self._values.pop(role, None)
        self._colours.pop(role, None)
        self._luts.pop(role, None)
        self._set_visible.pop(role, None)

    def _drop_other_teams(self, snapshot: RegionSnapshot) -> None:
        wanted = {role for role, _, _ in self._object_contents(snapshot)}
        wanted |= {_TEAM + name for name in snapshot.pending}
        for layer in list(self._viewer.layers):
            role = role_of(layer, ROLE) or ""
            if role.startswith(_TEAM) and role not in wanted:
                self._viewer.layers.remove(layer)
                self._forget(role)

    def _take_unit(self) -> None:
        """Set the region's unit for all layers before one is added: napari then draws at once."""
        for layer in self._viewer.layers:
            is_mine = role_of(layer, ROLE) is not None  # or an earlier scene's
            if is_mine and {str(own) for own in layer.units} != set(self._pixels.units):
                layer.units = self._pixels.units
        take_unit(self._viewer, self._pixels.units[0])

    def _fill_image(self, image: SlideImage | None) -> None:
        layer = self._mine(IMAGE)
        if image is None:
            self._put_away(IMAGE)
            return
        several = len(image.levels) > 1
        if layer is not None and (layer.multiscale or several):
            # A layer cannot change between one level and several.
            self._viewer.layers.remove(layer)
            self._forget(IMAGE)
            layer = None
        data, options, _ = image_layer_data(image, self._pixels)
        if layer is None:
            layer = Image(data, **options)
            layer.name = self._result_name(IMAGE)
            own(layer, ROLE, IMAGE)
            self._own(IMAGE, self._viewer.add_layer(layer))
        elif self._contents.get(IMAGE) is not image:
            self._size(layer)
            layer.data = data
        self._bring_out(IMAGE, image)

    def _fill_ambiguous(self, mask: NDArray[np.bool_] | None) -> None:
        layer = self._mine(AMBIGUOUS)
        if mask is None or not mask.any():
            self._put_away(AMBIGUOUS)
            if layer is not None and self._snapshot is not None:
                self._put_hatching(layer, np.zeros(self._snapshot.shape, np.uint8))
            return
        if layer is None:
            layer = self._add_labels(AMBIGUOUS, AMBIGUOUS, contents.hatching(mask))
            layer.colormap = label_colours(np.array([(0, 0, 0, 0), contents.HATCH_COLOUR]))
        elif self._contents.get(AMBIGUOUS) is not mask:
            self._put_hatching(layer, contents.hatching(mask))
        self._bring_out(AMBIGUOUS, mask)

    def _put_away(self, role: str) -> None:
        """Hide a layer that a region has nothing for: to remove one takes napari far longer."""
        layer = self._mine(role)
        self._contents.pop(role, None)
        self._seen_before.pop(role, None)
        self._set_visible.pop(role, None)  # it was not a hand that closed its eye
        if layer is not None:
            set_unless_so(layer, "visible", False)

    def _bring_out(self, role: str, shown: object) -> None:
        """Note what a layer shows; one that was put away is seen again."""
        layer = self._mine(role)
        if layer is not None and role not in self._contents:
            self._seen_before.pop(role, None)
            set_unless_so(layer, "visible", True)
        self._contents[role] = shown

    def _put_hatching(self, layer: Labels, picture: NDArray[np.uint8]) -> None:
        with drawn_once(layer):
            put_data(layer, picture, self._pixels)

    def _fill_objects(self, role: str, name: str, labels: LabelImage | None) -> None:
        if labels is None:
            layer = self._mine(role)
            if layer is not None:
                self._viewer.layers.remove(layer)
                self._forget(role)
            return
        layer = self._mine(role)
        is_looked_at = name in (REFERENCE, self._team)
        if layer is None:
            picture = self._arrays[role] = np.zeros(labels.shape, np.uint16)
            layer = self._add_labels(role, name, picture, visible=False)
        elif self._contents.get(role) is labels or self._shows(role, layer, labels):
            self._note_content(role, labels)
            return
        if is_looked_at or layer.visible:
            self._put_objects(role, layer, labels)
        else:
            self._behind[role] = labels  # most are never looked at

    def _note_content(self, role: str, labels: LabelImage) -> None:
        self._behind.pop(role, None)
        self._contents[role] = labels

    def _put_objects(self, role: str, layer: Labels, labels: LabelImage) -> None:
        """Set the objects of a layer."""
        self._values[role] = LayerValues(labels.ids)
        own = self._arrays.get(role)
        can_reuse = own is not None and own is layer.data and own.shape == labels.shape
        with drawn_once(layer):
            if can_reuse and not self._has_copy(layer) and self._pixels.lies_at(layer):
                contents.label_data(labels, out=own)  # sooner done than with other data
            else:
                self._arrays[role] = contents.label_data(labels)
                put_data(layer, self._arrays[role], self._pixels)
            self._outline(role, layer)
        self._note_content(role, labels)

    def _has_copy(self, layer: Labels) -> bool:
        """Return whether another layer shows the same array, as a copy by the user may."""
        return any(
            other is not layer
            and isinstance(other, Labels)
            and isinstance(other.data, np.ndarray)
            and np.may_share_memory(other.data, layer.data)
            for other in self._viewer.layers
        )

    def _catch_up(self, role: str) -> None:
        """Fill a layer with what was left out while it was hidden."""
        labels, layer = self._behind.pop(role, None), self._mine(role)
        if labels is not None and layer is not None:
            self._put_objects(role, layer, labels)

    def catch_up_one(self) -> bool:
        """Fill one of the layers that were left out; tells whether there are more.

        For a moment when nothing else is to be done: who opens or saves a layer
        that is out of sight shall find what its name says.
        """
        role = next(iter(self._behind), None)
        if role is not None:
            self._is_filling = True
            try:
                self._catch_up(role)
            finally:
                self._is_filling = False
        layer = self._mine(role) if role is not None and not self._behind else None
        if layer is not None:
            layer.scale = layer.scale  # tells napari how far all layers reach
        return bool(self._behind)

    def _on_eye(self, event: Any) -> None:
        """Draw a team whose eye was opened by hand as the one that is looked at is drawn."""
        role = role_of(event.source, ROLE) or ""
        self._note_eye(role)
        if event.source.visible and role.startswith(_TEAM):
            self._catch_up(role)
            labels = self._contents.get(role)
            if isinstance(labels, LabelImage):
                self._colour(role, event.source, labels)
            self._outline(role, event.source)

    def _shows(self, role: str, layer: Labels, labels: LabelImage) -> bool:
        """Return whether a layer shows the objects already, as one under edit does."""
        values = self._values.get(role)
        return (
            values is not None
            and role in self._contents
            and self._pixels.lies_at(layer)
            and shows(layer.data, values, labels)
        )

    def _add_labels(
        self, role: str, name: str, data: NDArray[Any], *, visible: bool = True
    ) -> Labels:
        plain = self._result_name(shown(name))
        shown_name = plain + (EDITED if role in self._edited_roles else "")
        layer = Labels(data, name=shown_name, visible=visible)
        draw_outlines_fast(layer)
        self._size(layer)
        own(layer, ROLE, role)  # before others hear of it
        self._viewer.add_layer(layer)
        layer.editable = False  # the figures would not follow
        self._own(role, layer)
        return layer

    def _result_name(self, name: str) -> str:
        """Return a layer's name that is no name of a layer of the user's."""
        is_taken = any(layer.name == name for layer in self._viewer.layers if not is_own(layer))
        return name + RESULTS if is_taken else name

    def _own(self, role: str, layer: Layer) -> None:
        self._layers[role] = layer
        own(layer, ROLE, role)
        layer.events.visible.connect(self._on_eye)
        keep_in_place(layer)

    def _size(self, layer: Layer) -> None:
        layer.units = self._pixels.units
        if tuple(layer.scale) != self._pixels.scale:
            layer.scale = self._pixels.scale
        if tuple(layer.translate) != self._pixels.origin:
            layer.translate = self._pixels.origin

    def _arrange(self) -> None:
        """Put the own layers in order, wherever those of others are."""
        teams = sorted(role for role in self._layers if role.startswith(_TEAM))
        last = -1
        for role in (IMAGE, AMBIGUOUS, REFERENCE, *teams, SELECTED):
            layer = self._mine(role)
            if layer is None:
                continue
            place = self._viewer.layers.index(layer)
            if place < last:
                self._viewer.layers.move(place, last + 1)
                place = last
            last = place

    def _activate(self) -> None:
        """Make the image active at first: keys and mouse then change no objects."""
        image = self._mine(IMAGE)
        if image is not None and self._viewer.layers.selection.active not in (
            layer for layer in self._viewer.layers if layer not in self._layers.values()
        ):
            self._viewer.layers.selection.active = image

    def _apply_look(self) -> None:
        """Colour, outline and show or hide the object layers."""
        if self._snapshot is None:
            return
        if self._stand_in is not None:
            self._hide_own()
            self._stand_in.apply_look(self._look)
            return
        self._note_eyes()
        self._apply_colours()
        self._apply_contours()
        for role, _, labels in self._object_contents(self._snapshot):
            layer = self._mine(role)
            if layer is not None and labels is not None:
                self._show(role, layer, visible=role in self._drawn_roles())
        for name in self._snapshot.pending:  # their layers still show what was before
            layer = self._mine(_TEAM + name)
            if layer is not None:
                self._show(_TEAM + name, layer, visible=False)

    def _drawn_roles(self) -> set[str]:
        """Return the roles of the reference, the current team and those opened by hand."""
        return {REFERENCE, _TEAM + str(self._team), *self._opened_eyes}

    def _apply_contours(self) -> None:
        """Outline the objects that are drawn."""
        for role in self._drawn_roles():
            layer = self._mine(role)
            if layer is not None:
                self._outline(role, layer)

    def _outline(self, role: str, layer: Labels) -> None:
        """Outline objects, where they are drawn."""
        if role in self._drawn_roles():
            side = Side.REFERENCE if role == REFERENCE else Side.PREDICTION
            set_unless_so(layer, "contour", self._look.contour(side, self.zoom))
            set_unless_so(layer, "opacity", self._look.opacity)

    def _apply_colours(self) -> None:
        """Colour the objects that are drawn."""
        if self._snapshot is None:
            return
        drawn = self._drawn_roles()
        for role, _, labels in self._object_contents(self._snapshot):
            if role not in drawn:
                continue
            self._catch_up(role)
            layer = self._mine(role)
            if layer is not None and labels is not None:
                self._colour(role, layer, labels)

    def _colour(self, role: str, layer: Labels, labels: LabelImage) -> None:
        """Colour objects by status: those of the reference, for the current team."""
        is_reference = role == REFERENCE
        side = Side.REFERENCE if is_reference else Side.PREDICTION
        team = self._team if is_reference else role.removeprefix(_TEAM)
        outcomes = self._outcomes(team)
        own = None if outcomes is None else outcomes.side(side)
        listed = self._listed if team == self._team else None
        wanted = (labels, own, self._look.colour_by, listed)
        if self._scheme is None or self._colours.get(role) == wanted:
            return
        self._colours[role] = wanted
        values = self._values.get(role)
        value_of = None if values is None or contents.too_many_objects(labels) else values.values
        lut = contents.object_lut(labels, own, self._scheme, self._look.colour_by, value_of)
        if listed is not None and own is not None:
            lut = listed.faded(lut, side, labels, value_of)
        # The other side's colours often stay: then there is nothing to send to the card.
        known = self._luts.get(role)
        if known is None or not np.array_equal(known, lut):
            set_colours(layer, lut, self._viewer)
            self._luts[role] = lut

    def _show(self, role: str, layer: Layer, *, visible: bool) -> None:
        """Show or hide a layer; one that the user hid stays hidden."""
        hidden = self._look.display is Display.HIDDEN or role in self._closed_eyes
        self._set_visible[role] = visible and not hidden
        set_unless_so(layer, "visible", visible and not hidden)

    def _note_eyes(self) -> None:
        """Notice which eyes were opened or closed by hand since they were set."""
        for role in list(self._layers):
            self._note_eye(role)

    def _note_eye(self, role: str) -> None:
        """Notice whether a layer's eye was opened or closed by hand since it was set.

        One of another team than the current one stays open until another team is chosen.
        """
        if self._stand_in is not None:
            return
        layer = self._mine(role)
        if layer is None or self._set_visible.get(role) in (None, layer.visible):
            return
        self._set_visible[role] = layer.visible
        if role.startswith(_TEAM) and role != _TEAM + str(self._team):
            (self._opened_eyes.add if layer.visible else self._opened_eyes.discard)(role)
        else:
            (self._closed_eyes.discard if layer.visible else self._closed_eyes.add)(role)

    def _outcomes(self, team: str | None) -> Outcomes | None:
        if self._snapshot is None or team is None:
            return None
        evaluation = self._snapshot.result(team)
        return None if evaluation is None else evaluation.outcomes

    def _labels(self, team: str, side: Side) -> LabelImage | None:
        if self._snapshot is None:
            return None
        if side is Side.REFERENCE:
            return self._snapshot.reference
        return self._snapshot.predictions.get(team)

    def _box(self, selection: Selection) -> NDArray[np.int32] | None:
        outcomes = self._outcomes(selection.team)
        if outcomes is None or selection.row >= len(outcomes.side(selection.side)):
            return None
        box: NDArray[np.int32] = outcomes.side(selection.side).bbox[selection.row]
        return box

    def _picture(self, selection: Selection) -> contents.Emphasis | None:
        outcomes, box = self._outcomes(selection.team), self._box(selection)
        own = self._labels(selection.team, selection.side)
        if self._snapshot is None or outcomes is None or box is None or own is None:
            return None
        index = self._snapshot.index_of(selection.side, selection.team, selection.row)
        if index is None:
            return None
        partner = int(outcomes.side(selection.side).partner[selection.row])
        if partner == NO_PARTNER:
            return contents.emphasis(own, index - 1, box=box, ring_px=camera.ring_px(self.zoom))
        across = Side.PREDICTION if selection.side is Side.REFERENCE else Side.REFERENCE
        partner_index = self._snapshot.index_of(across, selection.team, partner) or 0
        return contents.emphasis(
            own,
            index - 1,
            box=box,
            other=self._labels(selection.team, across),
            partner_row=partner_index - 1,
            partner_box=outcomes.side(across).bbox[partner],
            ring_px=camera.ring_px(self.zoom),
        )
