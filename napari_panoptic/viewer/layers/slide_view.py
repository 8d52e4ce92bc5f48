"""A whole slide in the viewer: objects from near, squares of failed objects from afar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer
from psygnal import Signal
from qtpy.QtCore import QObject
from qtpy.QtCore import Signal as QtSignal  # type: ignore[attr-defined]

from napari_panoptic.display.failure_cells import (
    FailureCells,
    cell_px_at,
    scale_text,
    usual_diameter_px,
)
from napari_panoptic.display.listed import ListedObjects
from napari_panoptic.display.object_layers import (
    EMPHASIS_COLOURS,
    HATCH_COLOUR,
    ZONE_COLOUR,
    PixelSize,
)
from napari_panoptic.display.slide_layers import (
    LEVELS_FROM_PIXELS,
    DrawnArea,
    DrawnSide,
    SideLook,
    apart_colours,
    selected_rings,
)
from napari_panoptic.display.styles import ColourBy, Display, Look, count_text
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledArea, TiledPair
from napari_panoptic.viewer.kit.shown import show_error
from napari_panoptic.viewer.layers.labels import label_colours
from napari_panoptic.viewer.layers.outlines import line_around, outlines_of
from napari_panoptic.viewer.layers.owned import (
    AMBIGUOUS,
    IMAGE,
    REFERENCE,
    SELECTED,
    ZONE,
    OwnedLayers,
    Owner,
    Slot,
    active_kept,
    put_in_place,
    set_unless_so,
)
from napari_panoptic.viewer.layers.scene import UNNAMED, Pointed, Scene

FAILURES = "failures"
SMALLEST_ON_SCREEN_PX = 3.0
"""Objects that are smaller on the screen are not drawn one by one."""
ON_SLIDE = " (slide)"
"""Added to the names of layers of objects, since the scene may have hidden ones so called."""
ENTERED_ON_SCREEN_PX = 12.0
"""How large objects are on the screen after a click on a square."""


class _Arrivals(QObject):
    """Takes the news that pixels have been read from the threads that read them."""

    arrived = QtSignal(str)  # the name of the layer that shows them

    def teller(self, name: str) -> Callable[[], None]:
        """Return the reporter of the pixels of a layer.

        It keeps this object alive, which a signal by itself does not.
        """
        return lambda: self.arrived.emit(name)


_AREA_COLOURS = {AMBIGUOUS: HATCH_COLOUR, ZONE: ZONE_COLOUR}
_State = tuple[ColourBy, tuple[int, ...], ListedObjects | None]


@dataclass(eq=False)
class _SlideSlot(Slot):
    """A layer of the view; the rest concerns those of objects."""

    scheme: ClassScheme | None = None
    """The classes that it has the colours of."""
    state: _State | None = None
    """How its objects are drawn."""


class SlideView:
    """The layers of a slide that was evaluated tile by tile; an alternative to the scene's objects.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The scene whose objects are hidden meanwhile; its image stays.
    """

    keeps: frozenset[str] = frozenset({IMAGE})
    scale_changed = Signal(str)  # the meaning of the squares' colours, as rich text; empty for none

    def __init__(self, viewer: ViewerModel, scene: Scene) -> None:
        self._viewer, self._scene = viewer, scene
        self._own = OwnedLayers(viewer, Owner.SLIDE, _SlideSlot)
        self._sides: dict[Side, DrawnSide] = {}
        self._areas: dict[str, DrawnArea] = {}
        self._zone: Zone | None = None
        self._display: Display | None = None
        self._outcomes: Outcomes | None = None
        self._cells: FailureCells | None = None
        self._team: str | None = None
        self.region: str | None = None  # the shown slide
        self._shape = (0, 0)
        self._pixels = PixelSize.from_mpp(None)
        self._diameter_px = 1.0
        self._arrivals = _Arrivals()
        self._arrivals.arrived.connect(self._on_arrival)

    @property
    def is_on(self) -> bool:
        """Whether a slide is shown."""
        return self._outcomes is not None

    @property
    def is_busy(self) -> bool:
        """Whether pixels are being read; objects are drawn roughly until they are there."""
        is_area_busy = any(area.is_busy for area in self._areas.values())
        return is_area_busy or any(side.windows.is_busy for side in self._sides.values())

    @property
    def is_far(self) -> bool:
        """Whether a slide is seen from so far away that objects cannot be distinguished."""
        return self.is_on and self._diameter_px * self._scene.camera.zoom < SMALLEST_ON_SCREEN_PX

    def layer(self, role: str) -> Any | None:
        """Return one of the view's layers; None if it is not there."""
        return self._own.layer(role)

    def show(
        self,
        snapshot: RegionSnapshot,
        evaluation: Evaluation[TiledPair],
        scheme: ClassScheme,
        team: str,
    ) -> None:
        """Show a team's result on a slide; the same pixels are not read again."""
        outcomes, pair = evaluation.outcomes, evaluation.pair
        if snapshot.region.name != self.region:
            self.leave()
        if outcomes is self._outcomes and team == self._team:
            return
        self._team = team
        self.region = snapshot.region.name
        self._shape, self._pixels = snapshot.shape, PixelSize.of(snapshot)
        self._outcomes, self._cells = outcomes, None
        self._diameter_px = usual_diameter_px(outcomes)
        with active_kept(self._viewer):
            self._fill_area(pair.ambiguous)
            self._fill_zone(evaluation)
            self._fill_side(Side.REFERENCE, REFERENCE, evaluation, scheme)
            self._fill_side(Side.PREDICTION, self._scene.name_of(team), evaluation, scheme)
            self._fill_failures()
        if self._scene.alternative is self:
            self.apply_look(self._scene.look)
        else:
            self._scene.activate(self)

    def wait(self) -> None:
        """Hide the objects: those of another team are about to come."""
        if not self.is_on:
            return
        self._outcomes, self._cells = None, None
        self._own.hide_all()

    def name_layers(self) -> None:
        """Name the layer of the team as the scene names those of teams."""
        layer = self._own.layer(Side.PREDICTION.value)
        if layer is not None:
            layer.name = self._scene.name_of(self._team or UNNAMED) + ON_SLIDE

    def leave(self, *, restore: bool = True) -> None:
        """Let the scene's own layers come back; without ``restore`` the layers stay as they are."""
        if self.region is None:
            return
        self._outcomes, self._cells, self._display = None, None, None
        self._team, self.region = None, None
        for role in list(self._areas):
            self._let_area_go(role)
        for side in self._sides.values():
            side.leave()
        self._sides.clear()
        self._own.forget_user()
        # Hidden, not removed: the next slide is shown on them, and programs that are deleted
        # between two draws bring some OpenGL drivers down.
        if restore:
            self._own.hide_all()
        self._scene.deactivate(self)

    def place_text(self, position: Sequence[float]) -> str:
        """Describe the outcomes of the objects around a world position, if squares are shown."""
        cells = self._cells
        if not self._shows_cells() or cells is None:
            return ""
        found = cells.at(*self._pixels.to_px((position[-2], position[-1])))
        if found is None:
            return ""
        edge = count_text(round(max(cells.size_yx_px)))
        return f"square of {edge} px: {found.text}"

    def enter(self, position: Sequence[float]) -> bool:
        """Go near a world position if squares are shown; return whether they are."""
        if not self._shows_cells() or self._pixels.px_inside(position, self._shape) is None:
            return False
        camera = self._viewer.scene.camera
        camera.center = (0.0, float(position[-2]), float(position[-1]))
        camera.zoom = ENTERED_ON_SCREEN_PX / self._diameter_px / min(self._pixels.scale)
        return True

    # As an alternative to the scene.

    def objects_at(
        self,
        position: Sequence[float],
        viewbox: tuple[int, int] | None,  # noqa: ARG002 - there is one
    ) -> list[Pointed]:
        """List the objects under a world position, the prediction's first."""
        at = self._pixels.px_inside(position, self._shape)
        if at is None or self.is_far:
            return []
        found = []
        for side, team in ((Side.PREDICTION, self._team), (Side.REFERENCE, None)):
            layer, drawn = self._own.layer(side.value), self._sides.get(side)
            row = None
            if layer is not None and drawn is not None and layer.visible:
                row = drawn.row_at(*at)
            if row is not None:
                found.append(Pointed(team, side, row))
        return found

    def apply_look(self, look: Look) -> None:
        """Draw objects in another way, or as heavy as the zoom asks for; or squares instead."""
        if not self.is_on:
            return
        if look.display is not self._display:
            self._own.forget_user()  # asking for another display overrules hidden layers
            self._display = look.display
        shown, far = look.display is not Display.HIDDEN, self.is_far
        for side in Side:
            self._draw(side, look)
            self._show(side.value, visible=shown and not far)
        if far:
            self._colour_cells()
        self._show(FAILURES, visible=shown and far)
        self._show(AMBIGUOUS, visible=AMBIGUOUS in self._areas)
        self._show(ZONE, visible=ZONE in self._areas and look.with_zone and not far)
        self.scale_changed.emit(scale_text() if self._shows_cells() else "")

    def emphasise(self, selection: Selection | None) -> None:
        """Draw rings around the selected object and its partner, or remove them."""
        if selection is None or not self.is_on or selection.team != self._team:
            self._own.set_visible(SELECTED, False)
            return
        across = selection.side.other
        selected, opposite = self._sides[selection.side], self._sides[across]
        if selection.row >= len(selected.outcomes):
            return
        is_line = self._scene.are_lines
        rings, _ = selected_rings(
            selected, selection.row, opposite, ring_px=self._scene.ring_px, as_line=is_line
        )
        slot = self._own.slot(SELECTED)
        if slot is None:
            slot = self._add(SELECTED, Labels(rings.image, name=SELECTED))
            slot.layer.colormap = label_colours(np.array(list(EMPHASIS_COLOURS.values())))
        line_around(slot.layer, self._viewer, is_line)
        self._put(slot, rings.image)
        slot.layer.translate = self._pixels.to_world(rings.origin_yx_px)
        self._own.set_visible(SELECTED, True)

    def _shows_cells(self) -> bool:
        layer = self._own.layer(FAILURES)
        return self.is_far and layer is not None and bool(layer.visible)

    def _on_arrival(self, role: str) -> None:
        """Draw from pixels what was drawn roughly."""
        layer = self._own.layer(role)
        if layer is not None and layer.visible:
            layer.refresh(extent=False, thumbnail=False)

    def _fill_side(
        self, side: Side, name: str, evaluation: Evaluation[TiledPair], scheme: ClassScheme
    ) -> None:
        """Fill the layer of a side; the same pixels are not read again."""
        outcomes = evaluation.outcomes.side(side)
        labels = evaluation.pair.side(side)
        before, slot = self._sides.get(side), self._own.slot(side.value)
        if slot is not None and before is not None and before.labels is labels:
            before.take_outcomes(outcomes)
            slot.state = None
            return
        if before is not None:
            before.leave()
        told = self._arrivals.teller(side.value)
        drawn = DrawnSide(labels, outcomes, tells_apart=True, on_failure=_tell, on_arrival=told)
        self._sides[side] = drawn
        slot = self._put_levels(side.value, name, drawn.levels)
        slot.state = None
        if slot.scheme != scheme:
            slot.layer.colormap = label_colours(apart_colours(scheme))
            slot.scheme = scheme

    def _fill_area(self, area: TiledArea | None, role: str = AMBIGUOUS) -> None:
        """Show where objects or pixels do not count; the same pixels are not read again."""
        before = self._areas.get(role)
        if area is not None and before is not None and before.area is area:
            return
        self._let_area_go(role)
        if area is None:
            return
        told = self._arrivals.teller(role)
        is_hatched = role == AMBIGUOUS
        drawn = DrawnArea(area, is_hatched=is_hatched, on_failure=_tell, on_arrival=told)
        self._areas[role] = drawn
        layer = self._put_levels(role, role, drawn.levels).layer
        layer.colormap = label_colours(np.array([(0, 0, 0, 0), _AREA_COLOURS[role]]))

    def _fill_zone(self, evaluation: Evaluation[TiledPair]) -> None:
        """Show the uncertain border under the objects."""
        pair, before = evaluation.pair, self._zone
        self._zone = Zone.of(evaluation.table, evaluation.settings)
        area = (
            None if self._zone is None else TiledArea(self._shape, partial(self._zone.mask, pair))
        )
        if self._zone is not None and self._zone.is_same(before) and ZONE in self._areas:
            area = self._areas[ZONE].area
        self._fill_area(area, ZONE)

    def _put_levels(self, role: str, name: str, levels: Sequence[Any]) -> _SlideSlot:
        """Set the levels of a hidden layer of labels, which is added if it is not there."""
        slot = self._own.slot(role)
        if slot is None:
            layer = Labels(list(levels), multiscale=True, name=name + ON_SLIDE, visible=False)
            return self._add(role, layer)
        self._put(slot, list(levels))
        slot.layer.name = name + ON_SLIDE
        return slot

    def _put(self, slot: _SlideSlot, data: Any) -> None:
        """Set the data of a layer and hide it: nothing is sliced until everything is set."""
        self._own.set_visible(slot.role, False)
        slot.layer.data = data
        put_in_place(slot.layer, self._pixels, remeasure=True)
        slot.layer.editable = False

    def _add(self, role: str, layer: Layer) -> _SlideSlot:
        put_in_place(layer, self._pixels)
        return self._own.add(role, layer)

    def _let_area_go(self, role: str) -> None:
        area = self._areas.pop(role, None)
        if area is not None:
            area.leave()

    def _fill_failures(self) -> None:
        if self._own.slot(FAILURES) is None:
            layer = Image(np.zeros((1, 1, 4), np.uint8), name=FAILURES, rgb=True, visible=False)
            layer.interpolation2d = "nearest"
            self._add(FAILURES, layer)

    def _draw(self, side: Side, look: Look) -> None:
        """Set the codes, colours and outline widths of a side."""
        slot, drawn = self._own.slot(side.value), self._sides[side]
        if slot is None:
            return
        set_unless_so(slot.layer, "opacity", look.opacity)
        zoom, lines = self._scene.camera.zoom, outlines_of(slot.layer, self._viewer)
        lines.set_width(look.line_px(side))
        lines.set_usual_side(self._diameter_px)
        widths = tuple(look.contour(side, zoom * (1 << k)) for k in range(LEVELS_FROM_PIXELS))
        is_lined = lines.are_lines and widths[0] > 0
        if is_lined:
            widths = (0,) * LEVELS_FROM_PIXELS  # lines are drawn around whole objects
        set_unless_so(slot.layer, "contour", int(is_lined))
        wanted = look.colour_by, widths, self._scene.listed
        if wanted == slot.state:
            return
        slot.state = wanted
        drawn.look = SideLook(drawn.codes(look.colour_by, self._scene.listed), widths)
        if slot.layer.visible:
            slot.layer.refresh(extent=False)

    def _colour_cells(self) -> None:
        """Count failures in squares that are well seen at the present zoom."""
        slot, cell_px = self._own.slot(FAILURES), cell_px_at(self._scene.camera.zoom)
        is_same = self._cells is not None and self._cells.cell_px == cell_px
        if slot is None or self._outcomes is None or is_same:
            return
        self._cells = FailureCells.count(self._outcomes, self._shape, cell_px)
        was_visible, (height, width) = slot.layer.visible, self._cells.size_yx_px
        self._put(slot, self._cells.picture())
        slot.layer.scale = self._pixels.extent((height, width))
        slot.layer.translate = self._pixels.to_world(((height - 1) / 2, (width - 1) / 2))
        self._own.set_visible(FAILURES, was_visible)

    def _show(self, role: str, *, visible: bool) -> None:
        """Show or hide a layer; one that the user hid or showed stays so."""
        slot = self._own.slot(role)
        if slot is not None:
            self._own.set_visible(role, visible if slot.user_visible is None else slot.user_visible)


def _tell(error: Exception) -> None:
    show_error(f"{error}; objects there are not drawn")
