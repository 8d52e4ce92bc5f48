"""All teams in one picture: how many found each nucleus, and where several have an FP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels
from numpy.typing import NDArray

from napari_panoptic.kernels import drawing as drawing_kernels
from napari_panoptic.nuclei.display import marks, styles
from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.nuclei.display.styles import Display, Look
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.explain.consensus import Consensus, InventedPlace, consensus
from napari_panoptic.nuclei.session import Selection, Session
from napari_panoptic.nuclei.snapshots import RegionSnapshot
from napari_panoptic.nuclei.values.cohort import Rgb
from napari_panoptic.nuclei.values.vocabulary import Side, Status
from napari_panoptic.viewer.layers.desk_layers import AMBIGUOUS, IMAGE, SELECTED
from napari_panoptic.viewer.layers.kept_in_place import keep_in_place
from napari_panoptic.viewer.layers.owned import own
from napari_panoptic.viewer.layers.recolour import label_colours, set_colours
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.layers.stand_in import Pointed

CONSENSUS_LAYER = "consensus of the teams"
INVENTED_LAYER = "invented by several teams"
CONSENSUS = "napari-panoptic consensus"
"""Owner of these layers (see `owned`)."""
SEVERAL = 2
"""Number of teams from which an invented object is worth a look."""

_ANCHORS: tuple[Rgb, ...] = (
    (255, 255, 120),
    (120, 235, 40),
    (0, 190, 130),
    (0, 135, 215),
    (0, 60, 215),
    (0, 0, 20),
)
"""From an object that no team found to one that all did: ever darker, so that the
order can be seen by every eye, and without the pinks and purples of the tissue."""
IGNORED_COLOUR = styles.STATUS_COLOURS[Status.IGNORED]
INVENTED_COLOUR = styles.STATUS_COLOURS[Status.FP]
_WIDEST_HATCH_PX = 9


class Count(StrEnum):
    """What is counted over the teams."""

    FOUND = "found"
    MISSED = "missed"
    MISNAMED = "misnamed"


@dataclass(frozen=True, eq=False)
class ConsensusPicture:
    """What the consensus view shows.

    Parameters
    ----------
    consensus
        The figures.
    evaluations
        Team -> its evaluation, of which they are.
    objects
        uint16 (y, x): outlines of the reference objects, the heavier the more
        teams missed or misnamed one; or whole objects.
    places
        uint16 (y, x): hatched places that several teams invent; label ``k`` is
        the place ``k - 1``.
    width_px
        Width of the lightest outline; 0 for filled objects.
    """

    consensus: Consensus
    evaluations: Mapping[str, Evaluation]
    objects: NDArray[np.uint16]
    places: NDArray[np.uint16]
    width_px: int


def level_colours(teams: int) -> list[Rgb]:
    """Return a colour for each number of teams, from none to all: light to dark."""
    at = np.linspace(0, len(_ANCHORS) - 1, teams + 1)
    table = np.array(_ANCHORS, float)
    mixed = np.stack([np.interp(at, np.arange(len(table)), table[:, k]) for k in range(3)], axis=1)
    return [(int(r), int(g), int(b)) for r, g, b in np.rint(mixed)]


def levels(found: Consensus, count: Count) -> NDArray[np.int64]:
    """Return each reference object's place in the colours: 0 is the worst."""
    if count is Count.FOUND:
        return found.found
    return len(found.teams) - (found.missed if count is Count.MISSED else found.misnamed)


def consensus_picture(evaluations: Mapping[str, Evaluation], width_px: int) -> ConsensusPicture:
    """Compare the teams and draw the result; for workers.

    Parameters
    ----------
    evaluations
        Team -> its evaluation.
    width_px
        Width of the lightest outline; 0 to fill the objects.
    """
    result = consensus(evaluations)
    reference = next(iter(evaluations.values())).pair.reference
    extra = np.rint(2 * (1 - result.found / len(result.teams))).astype(np.int64)
    objects = marks.outlines(
        reference.index, width_px + np.where(_all_ignored(result), 0, extra), len(reference)
    )
    if width_px == 0:
        objects = reference.index.astype(np.uint16)
    places = _places_drawn(evaluations, result.invented_by(SEVERAL), reference.shape)
    return ConsensusPicture(result, evaluations, objects, places, width_px)


def _all_ignored(result: Consensus) -> NDArray[np.bool_]:
    ignored: NDArray[np.bool_] = result.ignored == len(result.teams)
    return ignored


def _places_drawn(
    evaluations: Mapping[str, Evaluation], places: Sequence[InventedPlace], shape: tuple[int, int]
) -> NDArray[np.uint16]:
    """Hatch the places, the closer the more teams invent something there."""
    whole, lines = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
    spacing = np.array([max(_WIDEST_HATCH_PX - len(place.rows), 3) for place in places], np.int64)
    for team, evaluation in evaluations.items():
        members = [(k, row) for k, place in enumerate(places) for row in place.rows.get(team, ())]
        number, rows = np.array(members, np.int64).reshape(-1, 2).T
        drawing_kernels.lay_down(
            whole,
            lines,
            np.ascontiguousarray(evaluation.pair.prediction.index, np.int32),
            rows + 1,
            evaluation.outcomes.prediction.bbox[rows].astype(np.int64),
            number + 1,
            spacing[number],
        )
    boxes = np.array([place.bbox for place in places], np.int64).reshape(-1, 4)
    drawn: NDArray[np.uint16] = drawing_kernels.rims_and_lines(whole, lines, boxes)
    return drawn


class ConsensusView:
    """The consensus layers in a viewer; stands in for the scene's objects.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The scene whose objects step aside; image and rings stay.
    session
        The live state.
    """

    keeps: frozenset[str] = frozenset({IMAGE, AMBIGUOUS, SELECTED})

    def __init__(self, viewer: ViewerModel, scene: Scene, session: Session) -> None:
        self._viewer, self._scene, self._session = viewer, scene, session
        self._layers: dict[str, Any] = {}
        self._picture: ConsensusPicture | None = None
        self._is_on = False

    @property
    def is_on(self) -> bool:
        """Whether the consensus is shown."""
        return self._is_on

    def layer(self, name: str) -> Any:
        """Return one of the view's layers."""
        return self._layers[name]

    def show(self, snapshot: RegionSnapshot, picture: ConsensusPicture, count: Count) -> None:
        """Show the consensus on a region."""
        self._picture = picture
        if not self._is_on:
            self._is_on = True
            self._scene.step_aside(self)
        active = self._viewer.layers.selection.active
        for name, data in (
            (INVENTED_LAYER, picture.places),
            (CONSENSUS_LAYER, picture.objects),
        ):
            self._fill(name, data, PixelSize.of(snapshot))
        if active is not None and active in self._viewer.layers:
            self._viewer.layers.selection.active = active
        self.show_count(count)
        self.apply_look(self._scene.look)

    def show_count(self, count: Count) -> None:
        """Colour the objects by what is counted."""
        picture = self._picture
        if picture is None or not self._is_on:
            return
        result = picture.consensus
        colours = [*level_colours(len(result.teams)), IGNORED_COLOUR]
        level = np.where(_all_ignored(result), len(colours) - 1, levels(result, count))
        # class_lut counts from 1.
        lut = styles.class_lut((level + 1).astype(np.int16), colours)
        set_colours(self._layers[CONSENSUS_LAYER], lut)
        n_places = len(result.invented_by(SEVERAL))
        invented = styles.class_lut(np.ones(n_places, np.int16), [INVENTED_COLOUR])
        set_colours(self._layers[INVENTED_LAYER], invented)

    def leave(self, *, restore: bool = True) -> None:
        """Show the objects of one team again."""
        if not self._is_on:
            return
        self._is_on = False
        layers, self._layers = self._layers, {}
        if not restore:
            return
        for layer in layers.values():
            if layer in self._viewer.layers:
                self._viewer.layers.remove(layer)
        self._scene.come_back()

    # As a stand-in for the scene.

    def objects_at(
        self,
        position: Sequence[float],
        viewbox: tuple[int, int] | None,  # noqa: ARG002 - there is one
    ) -> list[Pointed]:
        """List the reference object and the invented objects of a place under a point."""
        snapshot, picture = self._session.snapshot, self._picture
        if snapshot is None or picture is None or self._scene.look.display is Display.HIDDEN:
            return []
        y, x = PixelSize.of(snapshot).to_px((position[-2], position[-1]))
        if not (0 <= y < snapshot.shape[0] and 0 <= x < snapshot.shape[1]):
            return []
        found = []
        row = snapshot.row_at(Side.REFERENCE, self._session.team, y, x)
        if row is not None:
            found.append(Pointed(None, Side.REFERENCE, row))
        for team in picture.consensus.teams:
            row = snapshot.row_at(Side.PREDICTION, team, y, x)
            if row is not None and self._is_invented(team, row):
                found.append(Pointed(team, Side.PREDICTION, row))
        return found

    def apply_look(self, look: Look) -> None:
        """Show, hide or fill the objects."""
        for layer in self._layers.values():
            if layer.visible == (look.display is Display.HIDDEN):
                layer.visible = look.display is not Display.HIDDEN
            if layer.opacity != look.opacity:
                layer.opacity = look.opacity

    def emphasise(self, selection: Selection | None) -> None:
        """Leave the rings to the scene, which keeps its own."""

    def _is_invented(self, team: str, row: int) -> bool:
        if self._picture is None:
            return False
        places = self._picture.consensus.invented_by(SEVERAL)
        return any(row in place.rows.get(team, ()) for place in places)

    def _fill(self, name: str, data: NDArray[np.uint16], pixels: PixelSize) -> None:
        layer = self._layers.get(name)
        if layer is not None and layer not in self._viewer.layers:
            layer = None  # the user deleted it
        if layer is None:
            layer = Labels(data, name=name)
            layer.units, layer.scale, layer.translate = pixels.units, pixels.scale, pixels.origin
            layer.colormap = label_colours(np.zeros((2, 4), np.float32))
            own(layer, CONSENSUS, name)
            self._viewer.add_layer(layer)
            layer.editable = False
            keep_in_place(layer)
            self._layers[name] = layer
        elif layer.data is not data:
            layer.data = data
            layer.editable = False
        layer.units, layer.scale, layer.translate = pixels.units, pixels.scale, pixels.origin
