"""A whole slide in the viewer: objects from near, squares of failed objects from afar."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QObject
from qtpy.QtCore import Signal as QtSignal  # type: ignore[attr-defined]

from napari_panoptic.nuclei.display.failure_cells import (
    FEW_OBJECTS,
    SHARE_COLOURS,
    FailureCells,
    cell_px_at,
    share_texts,
)
from napari_panoptic.nuclei.display.listed import Listed
from napari_panoptic.nuclei.display.object_layers import EMPHASIS_COLOURS, HATCH_COLOUR, PixelSize
from napari_panoptic.nuclei.display.slide_layers import (
    LEVELS_FROM_PIXELS,
    DrawnArea,
    DrawnSide,
    SideLook,
    code_colours,
    selected_rings,
)
from napari_panoptic.nuclei.display.styles import ColourBy, Display, Look, count_text
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.nuclei.palette import hex_colour
from napari_panoptic.nuclei.session import Selection
from napari_panoptic.nuclei.snapshots import RegionSnapshot
from napari_panoptic.nuclei.values.cohort import ClassScheme
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.nuclei.values.windowed_labels import TiledArea, TiledLabels, TiledPair
from napari_panoptic.viewer.kit.shown import show_error, shown
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.desk_layers import AMBIGUOUS, IMAGE, REFERENCE, SELECTED
from napari_panoptic.viewer.layers.kept_in_place import keep_in_place
from napari_panoptic.viewer.layers.owned import own
from napari_panoptic.viewer.layers.recolour import label_colours
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.layers.stand_in import Pointed

FAILURES = "failures"
SMALLEST_ON_SCREEN_PX = 3.0
"""Objects that are smaller on the screen are not drawn one by one."""
SLIDE = "napari-panoptic slide"
"""Owner of the layers of this view (see `owned`)."""
ON_SLIDE = " (slide)"
"""Added to the names of layers of objects, since the scene may have hidden ones so called."""
ENTERED_ON_SCREEN_PX = 12.0
"""How large objects are on the screen after a click on a square."""


class _Arrivals(QObject):
    """Takes the news that pixels have been read from the threads that read them."""

    arrived = QtSignal(str)  # the name of the layer that shows them

    def teller(self, name: str) -> Callable[[], None]:
        """Return what tells of pixels of a layer.

        It keeps this object alive, which a signal by itself does not.
        """
        return lambda: self.arrived.emit(name)


_TISSUE = "#dcb4cc"
"""Behind colours in words, since they are made to be seen on tissue."""

_State = tuple[ColourBy, tuple[int, ...], Listed | None]


class SlideView:
    """The layers of a slide that was evaluated tile by tile; stands in for the scene's objects.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The scene whose objects step aside; its image stays.
    """

    keeps: frozenset[str] = frozenset({IMAGE})
    scale_changed = Signal(str)  # what the colours of squares mean, as rich text; empty for none

    def __init__(self, viewer: ViewerModel, scene: Scene) -> None:
        self._viewer, self._scene = viewer, scene
        self._layers: dict[str, Layer] = {}
        self._names: dict[Side, str] = {}
        self._sides: dict[Side, DrawnSide] = {}
        self._states: dict[Side, _State] = {}
        self._area: DrawnArea | None = None
        self._set_visible: dict[str, bool] = {}
        self._by_hand: dict[str, bool] = {}
        self._display: Display | None = None
        self._outcomes: Outcomes | None = None
        self._cells: FailureCells | None = None
        self._team: str | None = None
        self.region: str | None = None  # the slide that is shown
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
        is_area_busy = self._area is not None and self._area.is_busy
        return is_area_busy or any(side.windows.is_busy for side in self._sides.values())

    @property
    def is_far(self) -> bool:
        """Whether a slide is seen from so far away that objects cannot be distinguished."""
        return self.is_on and self._diameter_px * self._scene.zoom < SMALLEST_ON_SCREEN_PX

    def layer(self, name: str) -> Any:
        """Return one of the view's layers."""
        return self._layers[name]

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
        self._diameter_px = _usual_diameter_px(outcomes)
        active = self._viewer.layers.selection.active
        self._fill_area(pair.ambiguous)
        for side, labels in ((Side.REFERENCE, pair.reference), (Side.PREDICTION, pair.prediction)):
            name = REFERENCE if side is Side.REFERENCE else shown(team)
            known = self._sides.get(side)
            if known is not None and known.labels is labels and self._is_there(self._names[side]):
                known.take_outcomes(outcomes.side(side))
                self._states.pop(side, None)
            else:
                self._fill(side, name, scheme, self._drawn_side(name, labels, outcomes.side(side)))
        self._fill_failures()
        if active is not None and active in self._viewer.layers:
            self._viewer.layers.selection.active = active
        if self._scene.stand_in is not self:
            self._scene.step_aside_always(self)
        self.apply_look(self._scene.look)

    def wait(self) -> None:
        """Hide the objects: those of another team are about to come."""
        if not self.is_on:
            return
        self._note_eyes()
        self._outcomes, self._cells = None, None
        for name, layer in self._layers.items():
            layer.visible = False
            self._set_visible[name] = False

    def leave(self, *, restore: bool = True) -> None:
        """Let the scene's own layers come back; without ``restore`` the layers stay as they are."""
        if self.region is None:
            return
        self._note_eyes()
        self._outcomes, self._cells, self._display = None, None, None
        self._team, self.region = None, None
        self._let_area_go()
        for side in self._sides.values():
            side.leave()
        for held in (self._sides, self._states, self._by_hand):
            held.clear()
        # Hidden, not removed: the next slide is shown on them, and programs that are deleted
        # between two draws bring some OpenGL drivers down.
        for name, layer in self._layers.items() if restore else ():
            if layer in self._viewer.layers:
                layer.visible = False
                self._set_visible[name] = False
        self._scene.step_aside_always(None)

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
        """Go near a world position where squares are shown; tells whether that was so."""
        y, x = self._pixels.to_px((position[-2], position[-1]))
        inside = 0 <= y < self._shape[0] and 0 <= x < self._shape[1]
        if not self._shows_cells() or not inside:
            return False
        camera = self._viewer.scene.camera
        camera.center = (0.0, float(position[-2]), float(position[-1]))
        camera.zoom = ENTERED_ON_SCREEN_PX / self._diameter_px / min(self._pixels.scale)
        return True

    # As a stand-in for the scene.

    def objects_at(
        self,
        position: Sequence[float],
        viewbox: tuple[int, int] | None,  # noqa: ARG002 - there is one
    ) -> list[Pointed]:
        """List the objects under a world position, the prediction's first."""
        y, x = self._pixels.to_px((position[-2], position[-1]))
        inside = 0 <= y < self._shape[0] and 0 <= x < self._shape[1]
        if not inside or self.is_far:
            return []
        found = []
        for side, team in ((Side.PREDICTION, self._team), (Side.REFERENCE, None)):
            layer = self._layers.get(self._names.get(side, ""))
            row = None
            if layer is not None and layer.visible and layer in self._viewer.layers:
                row = self._sides[side].row_at(y, x)
            if row is not None:
                found.append(Pointed(team, side, row))
        return found

    def apply_look(self, look: Look) -> None:
        """Draw objects in another way, or as heavy as the zoom asks for; or squares instead."""
        if not self.is_on:
            return
        if look.display is not self._display:
            self._note_eyes()
            self._by_hand.clear()  # asking for another display overrules closed eyes
            self._display = look.display
        shown, far = look.display is not Display.HIDDEN, self.is_far
        for side in Side:
            self._draw(side, look)
            self._show(self._names[side], visible=shown and not far)
        if far:
            self._colour_cells()
        self._show(FAILURES, visible=shown and far)
        self._show(AMBIGUOUS, visible=self._area is not None)
        self.scale_changed.emit(scale_text() if self._shows_cells() else "")

    def emphasise(self, selection: Selection | None) -> None:
        """Draw rings around the selected object and its partner, or remove them."""
        layer = self._mine(SELECTED)
        if selection is None or not self.is_on or selection.team != self._team:
            if layer is not None:
                layer.visible = False
            return
        across = Side.PREDICTION if selection.side is Side.REFERENCE else Side.REFERENCE
        own, other = self._sides[selection.side], self._sides[across]
        if selection.row >= len(own.outcomes):
            return
        ring_px = camera.ring_px(self._scene.zoom)
        rings, _ = selected_rings(own, selection.row, other, ring_px=ring_px)
        if layer is None:
            layer = self._add(SELECTED, Labels(rings.image, name=SELECTED, **self._size()))
            layer.colormap = label_colours(np.array(list(EMPHASIS_COLOURS.values())))
        layer.visible = False  # nothing is sliced until everything is set
        layer.data = rings.image
        self._place(layer)
        y, x = rings.origin_yx_px
        layer.translate = self._pixels.to_world((y, x))
        layer.visible = True

    def _size(self) -> dict[str, Any]:
        pixels = self._pixels
        return {"scale": pixels.scale, "translate": pixels.origin, "units": pixels.units}

    def _place(self, layer: Layer) -> None:
        pixels = self._pixels
        layer.units, layer.scale, layer.translate = pixels.units, pixels.scale, pixels.origin

    def _shows_cells(self) -> bool:
        layer = self._mine(FAILURES)
        return self.is_far and layer is not None and bool(layer.visible)

    def _mine(self, name: str) -> Any | None:
        """Return one of the own layers, unless the user deleted it."""
        layer = self._layers.get(name)
        return layer if layer is not None and layer in self._viewer.layers else None

    def _is_there(self, name: str) -> bool:
        return self._mine(name) is not None

    def _drawn_side(self, name: str, labels: TiledLabels, outcomes: SideOutcomes) -> DrawnSide:
        told = self._arrivals.teller(name)
        return DrawnSide(labels, outcomes, on_failure=_tell, on_arrival=told)

    def _on_arrival(self, name: str) -> None:
        """Draw what was drawn roughly from its pixels."""
        layer = self._mine(name)
        if layer is not None and layer.visible:
            layer.refresh(extent=False, thumbnail=False)

    def _fill(self, side: Side, name: str, scheme: ClassScheme, drawn: DrawnSide) -> None:
        """Make the layer of a side, or fill the one that showed another team."""
        former = self._names.get(side, "")
        layer = self._mine(former)
        if side in self._sides:
            self._sides[side].leave()
        self._names[side], self._sides[side] = name, drawn
        self._states.pop(side, None)
        if layer is not None:
            self._set_visible.pop(former, None)
            self._layers[name] = self._layers.pop(former)
            layer.visible = False  # nothing is sliced until everything is set
            layer.data = list(drawn.levels)
            self._place(layer)
            layer.name = name + ON_SLIDE
            layer.editable = False
        else:
            layer = Labels(
                list(drawn.levels),
                multiscale=True,
                name=name + ON_SLIDE,
                visible=False,
                colormap=label_colours(code_colours(scheme)),
                **self._size(),
            )
            self._add(name, layer)
        self._set_visible[name] = False

    def _fill_area(self, area: TiledArea | None) -> None:
        """Show where objects do not count; the same pixels are not read again."""
        if area is None or (self._area is not None and self._area.area is area):
            if area is None:
                self._let_area_go()
            return
        self._let_area_go()
        told = self._arrivals.teller(AMBIGUOUS)
        self._area = DrawnArea(area, on_failure=_tell, on_arrival=told)
        layer = self._mine(AMBIGUOUS)
        if layer is not None:
            layer.visible = False  # nothing is sliced until everything is set
            layer.data = list(self._area.levels)
            self._place(layer)
            layer.editable = False
        else:
            layer = self._add(
                AMBIGUOUS,
                Labels(
                    list(self._area.levels),
                    multiscale=True,
                    name=AMBIGUOUS + ON_SLIDE,
                    visible=False,
                    colormap=label_colours(np.array([(0, 0, 0, 0), HATCH_COLOUR])),
                    **self._size(),
                ),
            )
        self._set_visible[AMBIGUOUS] = False

    def _let_area_go(self) -> None:
        area, self._area = self._area, None
        if area is not None:
            area.leave()

    def _fill_failures(self) -> None:
        if not self._is_there(FAILURES):
            nothing = np.zeros((1, 1, 4), np.uint8)
            layer = Image(nothing, name=FAILURES, rgb=True, visible=False, **self._size())
            layer.interpolation2d = "nearest"
            self._add(FAILURES, layer)
            self._set_visible[FAILURES] = False

    def _add(self, name: str, layer: Layer) -> Any:
        active = self._viewer.layers.selection.active
        own(layer, SLIDE, name)
        self._viewer.add_layer(layer)
        keep_in_place(layer)
        if isinstance(layer, Labels):
            layer.editable = False
        self._layers[name] = layer
        if active is not None and active in self._viewer.layers:
            self._viewer.layers.selection.active = active
        return layer

    def _draw(self, side: Side, look: Look) -> None:
        """Set the codes, colours and outline widths of a side."""
        layer, drawn = self._mine(self._names[side]), self._sides[side]
        if layer is None:
            return
        if layer.opacity != look.opacity:
            layer.opacity = look.opacity
        zoom = self._scene.zoom
        widths = tuple(look.contour(side, zoom * (1 << k)) for k in range(LEVELS_FROM_PIXELS))
        wanted = look.colour_by, widths, self._scene.listed
        if wanted == self._states.get(side):
            return
        self._states[side] = wanted
        drawn.look = SideLook(drawn.codes(look.colour_by, self._scene.listed), widths)
        if layer.visible:
            layer.refresh(extent=False)

    def _colour_cells(self) -> None:
        """Count failures in squares that are well seen at the present zoom."""
        layer, cell_px = self._mine(FAILURES), cell_px_at(self._scene.zoom)
        is_same = self._cells is not None and self._cells.cell_px == cell_px
        if layer is None or self._outcomes is None or is_same:
            return
        self._cells = FailureCells.count(self._outcomes, self._shape, cell_px)
        picture: NDArray[np.uint8] = self._cells.picture()
        visible, layer.visible = layer.visible, False  # nothing is sliced until everything is set
        layer.data = picture
        layer.units = self._pixels.units
        height, width = self._cells.size_yx_px
        layer.scale = self._pixels.extent((height, width))
        layer.translate = self._pixels.to_world(((height - 1) / 2, (width - 1) / 2))
        layer.visible = visible

    def _show(self, name: str, *, visible: bool) -> None:
        """Show or hide a layer; one that the user hid or showed stays so."""
        layer = self._mine(name)
        if layer is None:
            return
        self._note_eye(name, layer)
        wanted = self._by_hand.get(name, visible)
        if layer.visible != wanted:
            layer.visible = wanted
        self._set_visible[name] = wanted

    def _note_eyes(self) -> None:
        for name, layer in self._layers.items():
            self._note_eye(name, layer)

    def _note_eye(self, name: str, layer: Layer) -> None:
        before = self._set_visible.get(name)
        if before is not None and layer.visible != before:
            self._by_hand[name] = layer.visible
            self._set_visible[name] = layer.visible


def scale_text() -> str:
    """Describe what the colours of squares mean, as rich text."""
    parts = [
        f"<span style='color:{hex_colour(colour)}; background-color:{_TISSUE}'>&nbsp;■&nbsp;</span>"
        f"&nbsp;{html.escape(text)}"
        for colour, text in zip(SHARE_COLOURS, share_texts(), strict=True)
    ]
    return f"<b>failed</b>, % per square: {' '.join(parts)}"


SCALE_MEANING = (
    "Objects that failed (FN, FP and misclassified), as a share of all objects of a square; a "
    f"matched pair is one object. Clear: none failed; fainter: fewer than {FEW_OBJECTS} objects. "
    "Rest on a square for its figures, click it to go there."
)


def _usual_diameter_px(outcomes: Outcomes) -> float:
    """Return the diameter of a disk of the median area."""
    areas = np.concatenate([outcomes.reference.area_px, outcomes.prediction.area_px])
    return 2 * math.sqrt(float(np.median(areas)) / math.pi) if len(areas) else 1.0


def _tell(error: Exception) -> None:
    show_error(f"{error}; objects there are not drawn")
