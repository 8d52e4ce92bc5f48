"""Several teams beside each other: one cell of the canvas for each, and one camera.

napari's grid gives every group of layers a cell. Each team gets a group of its
own: the image, the objects of reference and team, both coloured by the team's
outcomes, and rings around what is selected. The groups
stand at the end of the layer list, counted from there; everything else is
hidden meanwhile, and shown again as it was.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray
from qtpy.QtCore import QTimer

from napari_panoptic.evaluation.evaluate import Evaluation
from napari_panoptic.evaluation.labels import LabelPair
from napari_panoptic.evaluation.matching import NO_PARTNER
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.regions import Rgb
from napari_panoptic.session import RegionSnapshot, Selection, Session
from napari_panoptic.viewer import layers as contents
from napari_panoptic.viewer import marks, styles
from napari_panoptic.viewer.layers import PixelSize
from napari_panoptic.viewer.recolour import label_colours, set_colours
from napari_panoptic.viewer.scene import Pointed, Scene, image_layer_data
from napari_panoptic.viewer.styles import ColourBy, Display, Look

MAX_TEAMS = 6
"""So many cells can still be read on one screen."""
SPACING = 4.0
"""Screen pixels between cells."""
TITLE_SIZE = 11
PX_PER_LETTER_AND_POINT = 1.1
"""How wide a letter is, generously."""
FILLED_WIDTH = 2
"""Outline width of the reference where predictions are filled."""
CELL = "napari-panoptic cell"
"""Key in the metadata of a layer that names the team whose cell it is in."""
RING_ON_SCREEN_PX, MAX_RING_PX = 3.0, 8


@dataclass(frozen=True, eq=False)
class CellPictures:
    """What the cells show, as far as it takes time to compute.

    Parameters
    ----------
    objects
        Team -> uint16 (y, x): one picture of reference and predictions, since
        every layer costs a tenth of a second. Values 1..n are reference
        objects, then come the predictions, and then the hatching of ambiguous
        areas.
    widths
        Outline widths of reference and predictions in px; where both are 0,
        predictions are filled.
    """

    objects: Mapping[str, NDArray[np.uint16]]
    widths: tuple[int, int]


def cell_pictures(
    evaluations: Mapping[str, Evaluation], widths: tuple[int, int]
) -> CellPictures | None:
    """Draw the objects of all teams; for workers. None without teams."""
    if not evaluations:
        return None
    pair = next(iter(evaluations.values())).pair
    reference = marks.outlines(pair.reference.index, widths[0] or FILLED_WIDTH, len(pair.reference))
    hatching = None if pair.ambiguous is None else contents.hatching(pair.ambiguous) > 0
    return CellPictures(
        {team: _cell(e.pair, reference, hatching, widths) for team, e in evaluations.items()},
        widths,
    )


def _cell(
    pair: LabelPair,
    reference: NDArray[np.uint16],
    hatching: NDArray[np.bool_] | None,
    widths: tuple[int, int],
) -> NDArray[np.uint16]:
    own, n_reference = pair.prediction, len(pair.reference)
    if widths[1] == 0:
        prediction = contents.label_data(own)
        on_top = (prediction > 0) & (reference == 0)
    else:
        prediction = marks.outlines(own.index, widths[1], len(own))
        on_top = prediction > 0
    picture = reference.copy()
    picture[on_top] = _wrapped(prediction[on_top].astype(np.int64) + n_reference)
    if hatching is not None:
        picture[hatching & (picture == 0)] = _wrapped(np.int64(n_reference + len(own) + 1))
    return picture


def _wrapped(values: Any) -> Any:
    """Start over where there are more values than colours; the desk warns of that."""
    return ((values - 1) % contents.MAX_OBJECTS + 1).astype(np.uint16)


def grid_shape(cells: int, region: tuple[int, int], canvas: tuple[float, float]) -> tuple[int, int]:
    """Choose rows and columns so that the region is shown as large as can be.

    Parameters
    ----------
    cells
        How many there are.
    region, canvas
        Height and width of the region in px and of the canvas.
    """
    shapes = [(rows, -(-cells // rows)) for rows in range(1, cells + 1)]

    def zoom(shape: tuple[int, int]) -> tuple[float, int]:
        rows, columns = shape
        fit = min(canvas[0] / rows / region[0], canvas[1] / columns / region[1])
        return fit, -rows * columns

    return max(shapes, key=zoom)


def team_lut(evaluation: Evaluation, look: Look, colours: Sequence[Rgb]) -> NDArray[np.float32]:
    """Colour a cell's picture by a team's outcomes, or by class.

    Returns
    -------
    float32 (65535, 4)
    """
    lut = np.zeros((styles.LUT_LENGTH, 4), np.float32)
    first = 1
    for side in (Side.REFERENCE, Side.PREDICTION):
        pair = evaluation.pair
        labels = pair.reference if side is Side.REFERENCE else pair.prediction
        if look.colour_by is ColourBy.CLASS:
            own = styles.class_lut(labels.class_index, colours)
        else:
            own = styles.status_lut(evaluation.outcomes.side(side).status)
        last = min(first + len(labels), styles.LUT_LENGTH)
        lut[first:last] = own[1 : 1 + last - first]
        first = last
    if first < styles.LUT_LENGTH:
        lut[first] = contents.HATCH_COLOUR
    return lut


class TeamGrid:
    """The cells of several teams in a viewer; stands in for the scene.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The scene that steps aside.
    session
        The live state.
    redraw_wanted
        Called when outlines of another width are needed.
    left
        Called when the view cannot go on and went back to that of one team.
    """

    keeps: frozenset[str] = frozenset()

    def __init__(
        self,
        viewer: ViewerModel,
        scene: Scene,
        session: Session,
        redraw_wanted: Callable[[], None],
        left: Callable[[], None],
    ) -> None:
        self._viewer, self._scene, self._session = viewer, scene, session
        self._redraw_wanted, self._left = redraw_wanted, left
        self._cells: dict[str, dict[str, Layer]] = {}
        self._evaluations: Mapping[str, Evaluation] = {}
        self._snapshot: RegionSnapshot | None = None
        self._widths: tuple[int, int] | None = None
        self._shown_image: object = None
        self._colours: Sequence[Rgb] = ()
        self._coloured: dict[str, object] = {}
        self._before: _Before | None = None
        self._is_changing = False
        self._selection: Selection | None = None
        self._arranger = QTimer()
        self._arranger.setSingleShot(True)
        self._arranger.setInterval(0)
        self._arranger.timeout.connect(self._arrange_again)

    @property
    def is_on(self) -> bool:
        """Whether the cells are shown."""
        return self._before is not None

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams shown, in reading order."""
        return tuple(self._cells)

    def layer(self, team: str, role: str) -> Any:
        """Give a layer of a team's cell: image, objects or ring."""
        return self._cells[team][role]

    def wanted_widths(self, zoom: float | None = None) -> tuple[int, int]:
        """Give the outline widths that the present look and zoom ask for."""
        look, zoom = self._scene.look, zoom or self._zoom()
        return look.contour(Side.REFERENCE, zoom), look.contour(Side.PREDICTION, zoom)

    def widths_of_a_cell(self, snapshot: RegionSnapshot, cells: int) -> tuple[int, int]:
        """Give the outline widths for the zoom that cells of this number will have."""
        canvas = (float(self._viewer.canvas.size[0]), float(self._viewer.canvas.size[1]))
        rows, columns = grid_shape(cells, snapshot.shape, canvas)
        zoom = min(canvas[0] / rows / snapshot.shape[0], canvas[1] / columns / snapshot.shape[1])
        return self.wanted_widths(zoom)

    def show(
        self,
        snapshot: RegionSnapshot,
        evaluations: Mapping[str, Evaluation],
        pictures: CellPictures,
        colours: Sequence[Rgb],
    ) -> None:
        """Show the teams of a region; the first six of them.

        Parameters
        ----------
        snapshot
            The region.
        evaluations
            Team -> its evaluation.
        pictures
            The same teams, drawn.
        colours
            The colour of each class.
        """
        is_new_region = self._snapshot is None or self._snapshot.region != snapshot.region
        before = self._selection
        self._snapshot, self._evaluations, self._colours = snapshot, evaluations, colours
        self._widths = pictures.widths
        entering = not self.is_on
        self._is_changing = True
        try:
            if entering:
                self._enter()
            wanted = list(evaluations)[:MAX_TEAMS]
            roles = self._roles(snapshot)
            if not self._can_reuse(wanted, roles, snapshot):
                self._remove_cells()
                for team in reversed(wanted):
                    self._cells[team] = self._made(team, roles, pictures)
                self._cells = {team: self._cells[team] for team in wanted}
            else:
                for team in wanted:
                    self._fill(team, pictures, snapshot if is_new_region else None)
            self._shown_image = snapshot.image
            self._colour()
            self._set_grid(len(roles), snapshot.shape)
            self._name()
        finally:
            self._is_changing = False
        if entering or is_new_region:
            self._scene.fit()
        self.emphasise(before if entering is False else self._session.selection)

    def leave(self, *, restore: bool = True) -> None:
        """Go back to the view of one team, as it was."""
        # The timer is left alone: it may be gone with its application, and does nothing by now.
        before, self._before = self._before, None
        if before is None:
            return
        self._viewer.layers.events.inserted.disconnect(self._on_inserted)
        self._viewer.layers.events.removed.disconnect(self._on_removed)
        if not restore:
            self._cells = {}
            return
        self._is_changing = True
        try:
            before.restore_grid(self._viewer)  # first: removing is slow in a grid
            self._remove_cells()
            for layer, visible in before.others:
                if layer in self._viewer.layers:
                    layer.visible = visible
            self._scene.come_back()
            same = self._snapshot is not None and self._snapshot.region.name == before.region
            if same:
                before.restore_camera(self._viewer)
            else:
                self._scene.fit()
            if before.active is not None and before.active in self._viewer.layers:
                self._viewer.layers.selection.active = before.active
        finally:
            self._is_changing = False
        self._snapshot = None

    def show_team(self) -> None:
        """Mark the cell of the current team."""
        self._name()

    # As a stand-in for the scene.

    def objects_at(
        self, position: Sequence[float], viewbox: tuple[int, int] | None
    ) -> list[Pointed]:
        """List the objects under a point in a cell: the team's, then the reference."""
        team = self._team_at(viewbox)
        snapshot = self._session.snapshot
        if team is None or snapshot is None or self._snapshot is None:
            return []
        if snapshot.region != self._snapshot.region:
            return []  # the cells are about to follow
        pixels = PixelSize.from_mpp(snapshot.mpp)
        y, x = pixels.to_px((position[-2], position[-1]))
        if not (0 <= y < snapshot.shape[0] and 0 <= x < snapshot.shape[1]):
            return []
        if self._scene.look.display is Display.HIDDEN:
            return []
        found = []
        for side in (Side.PREDICTION, Side.REFERENCE):
            row = snapshot.row_at(side, team, y, x)
            if row is not None:
                found.append(Pointed(team, side, row))
        return found

    def apply_look(self, look: Look) -> None:
        """Colour anew; outlines of another width are asked for."""
        if not self.is_on or self._is_changing:
            return
        if self.wanted_widths() != self._widths:
            self._redraw_wanted()
        for cell in self._cells.values():
            _set(cell["objects"], "visible", look.display is not Display.HIDDEN)
        self._colour()
        self._name()

    def emphasise(self, selection: Selection | None) -> None:
        """Ring the selected object in every cell, with its partner of that team."""
        self._selection = selection
        if not self.is_on or self._snapshot is None:
            return
        for team, cell in self._cells.items():
            picture = None if selection is None else self._picture(team, selection)
            ring: Any = cell["ring"]
            _set(ring, "visible", False)
            if picture is None:
                continue
            ring.data = picture.image
            y, x = picture.origin_yx_px
            ring.translate = PixelSize.from_mpp(self._snapshot.mpp).to_world((y, x))
            ring.visible = True

    # Layers.

    def _roles(self, snapshot: RegionSnapshot) -> list[str]:
        """List the layers of a cell from below."""
        return [*([] if snapshot.image is None else ["image"]), "objects", "ring"]

    def _enter(self) -> None:
        viewer = self._viewer
        active = viewer.layers.selection.active
        self._scene.step_aside(self)
        # What is kept of the scene, or is somebody else's, would get cells too.
        others = [(layer, layer.visible) for layer in viewer.layers if layer.visible]
        region = None if self._snapshot is None else self._snapshot.region.name
        self._before = _Before.of(viewer, others, active, region)
        for layer, _ in others:
            layer.visible = False
        viewer.layers.events.inserted.connect(self._on_inserted)
        viewer.layers.events.removed.connect(self._on_removed)

    def _made(self, team: str, roles: Sequence[str], pictures: CellPictures) -> dict[str, Layer]:
        snapshot = self._snapshot
        if snapshot is None:
            return {}
        cell: dict[str, Layer] = {}
        for role in roles:
            layer: Layer
            if role == "image" and snapshot.image is not None:
                data, options, _ = image_layer_data(snapshot.image)
                layer = Image(data, **{**options, "metadata": {}})
            elif role == "ring":
                layer = Labels(np.zeros((4, 4), np.uint8), visible=False)
                layer.colormap = label_colours(np.array(list(contents.EMPHASIS_COLOURS.values())))
            else:
                layer = Labels(pictures.objects[team])
            layer.metadata[CELL] = team
            layer.name = f"{role} · {team}"
            self._size(layer)
            self._viewer.add_layer(layer)
            if role != "image":
                layer.editable = False
            cell[role] = layer
        return cell

    def _can_reuse(
        self, teams: Sequence[str], roles: Sequence[str], snapshot: RegionSnapshot
    ) -> bool:
        """Tell whether the layers that there are can show other contents."""
        if list(self._cells) != list(teams) or not self._cells:
            return False
        cell: dict[str, Any] = next(iter(self._cells.values()))
        if set(cell) != set(roles):
            return False
        # A layer cannot change between one level and several.
        several = snapshot.image is not None and len(snapshot.image.levels) > 1
        is_new = self._shown_image is not snapshot.image
        return not (is_new and "image" in cell and (several or cell["image"].multiscale))

    def _fill(self, team: str, pictures: CellPictures, region: RegionSnapshot | None) -> None:
        """Show other objects in a cell, and another region where one is given."""
        cell: dict[str, Any] = self._cells[team]
        layer: Any = cell["objects"]
        layer.data = pictures.objects[team]
        layer.editable = False
        if region is None:
            return
        if region.image is not None:
            cell["image"].data = region.image.levels[0]
        cell["ring"].visible = False
        for own in cell.values():
            self._size(own)

    def _size(self, layer: Layer) -> None:
        pixels = PixelSize.from_mpp(None if self._snapshot is None else self._snapshot.mpp)
        layer.units = pixels.units
        layer.scale = pixels.scale

    def _remove_cells(self) -> None:
        # napari collects garbage once per layer that is removed, a quarter of
        # a second each: what lives already need not be looked through.
        gc.freeze()
        try:
            self._remove_layers()
        finally:
            gc.unfreeze()

    def _remove_layers(self) -> None:
        for cell in self._cells.values():
            own = [layer for layer in cell.values() if layer in self._viewer.layers]
            for layer in own:
                self._viewer.layers.remove(layer)
        self._cells = {}
        self._coloured = {}

    def _colour(self) -> None:
        look = self._scene.look
        for team, cell in self._cells.items():
            evaluation, layer = self._evaluations[team], cell["objects"]
            key = (evaluation, look.colour_by)
            if self._coloured.get(team) != key:
                set_colours(layer, team_lut(evaluation, look, self._colours))
                self._coloured[team] = key
            _set(layer, "opacity", look.opacity)
            _set(layer, "visible", look.display is not Display.HIDDEN)

    def _name(self) -> None:
        """Write name and PQ into every cell; the current team's is marked."""
        for team, cell in self._cells.items():
            title = cell.get("image") or cell["objects"]
            current = team == self._session.team
            pq = styles.ratio_text(self._evaluations[team].metrics.pq)
            name = f"{'▶ ' if current else ''}{team}   PQ {pq}"
            if title.name != name:
                title.name = name
            overlay = title.name_overlay
            overlay.font_size = self._title_size(name)
            overlay.visible = True

    def _title_size(self, title: str) -> float:
        """Choose a size in which a title fits its cell."""
        width = float(self._viewer.canvas.viewbox_size(self._viewer.layers)[1])
        return float(np.clip(width / (PX_PER_LETTER_AND_POINT * len(title)), 6, TITLE_SIZE))

    def _set_grid(self, stride: int, region: tuple[int, int]) -> None:
        grid = self._viewer.canvas.grid
        canvas = (float(self._viewer.canvas.size[0]), float(self._viewer.canvas.size[1]))
        grid.stride = -stride
        grid.shape = grid_shape(len(self._cells), region, canvas)
        grid.spacing = SPACING
        grid.enabled = True
        before = self._before
        if before is not None and before.active is not None:
            selection = self._viewer.layers.selection
            if before.active in self._viewer.layers:
                selection.active = before.active

    def _team_at(self, viewbox: tuple[int, int] | None) -> str | None:
        if viewbox is None:
            return None
        layers = self._viewer.layers
        for number in self._viewer.canvas.grid.contents_at(tuple(viewbox), layers):
            team = layers[number].metadata.get(CELL)
            if team in self._cells:
                return str(team)
        return None

    def _on_inserted(self, event: Any) -> None:
        """Take in that something else was added: it is hidden, and the cells stay last."""
        layer = event.value
        if self._is_changing or self._before is None or CELL in layer.metadata:
            return
        self._arranger.start()

    def _on_removed(self, event: Any) -> None:
        """Go back to one team where somebody deleted a layer of a cell."""
        if self._is_changing or self._before is None:
            return
        if CELL in event.value.metadata:
            self._arranger.start()

    def _arrange_again(self) -> None:
        before = self._before
        if before is None:
            return
        own = [layer for cell in self._cells.values() for layer in cell.values()]
        if any(layer not in self._viewer.layers for layer in own):
            self.leave()
            self._left()
            return
        self._is_changing = True
        try:
            mine = set(own)
            for layer in list(self._viewer.layers):
                if layer not in mine and layer.visible:
                    if not self._scene.owns(layer):
                        before.others.append((layer, True))
                    layer.visible = False
            last = [self._viewer.layers.index(layer) for layer in own]
            if min(last) != len(self._viewer.layers) - len(own):
                order = sorted(last)
                self._viewer.layers.move_multiple(order, len(self._viewer.layers))
        finally:
            self._is_changing = False

    def _picture(self, team: str, selection: Selection) -> contents.Emphasis | None:
        """Draw the rings of a cell: the object, and what this team has in its place."""
        evaluation, owner = self._evaluations[team], self._evaluations.get(selection.team)
        if owner is None or selection.row >= len(owner.outcomes.side(selection.side)):
            return None
        side, row = selection.side, selection.row
        if side is Side.PREDICTION and team != selection.team:
            # Other teams have another object there, or none: the reference object tells.
            reference = int(owner.outcomes.prediction.partner[row])
            if reference == NO_PARTNER:
                box = owner.outcomes.prediction.bbox[row]
                return contents.emphasis(
                    owner.pair.prediction, row, box=box, ring_px=self._ring_px()
                )
            side, row = Side.REFERENCE, reference
        own, across = evaluation.outcomes.side(side), evaluation.outcomes.other(side)
        pair, partner = evaluation.pair, int(own.partner[row])
        labels = (pair.reference, pair.prediction)
        mine, other = labels if side is Side.REFERENCE else labels[::-1]
        if partner == NO_PARTNER:
            return contents.emphasis(mine, row, box=own.bbox[row], ring_px=self._ring_px())
        return contents.emphasis(
            mine,
            row,
            box=own.bbox[row],
            other=other,
            partner_row=partner,
            partner_box=across.bbox[partner],
            ring_px=self._ring_px(),
        )

    def _ring_px(self) -> int:
        return int(np.clip(round(RING_ON_SCREEN_PX / self._zoom()), 1, MAX_RING_PX))

    def _zoom(self) -> float:
        pixels = PixelSize.from_mpp(None if self._snapshot is None else self._snapshot.mpp)
        return float(self._viewer.scene.camera.zoom) * pixels.scale[0]


@dataclass(frozen=True, eq=False)
class _Before:
    """How the view was before the cells."""

    others: list[tuple[Layer, bool]]
    active: Layer | None
    region: str | None
    center: tuple[float, ...]
    zoom: float
    grid: tuple[bool, int, tuple[int, int], float]
    gridded_scale_bar: bool

    @classmethod
    def of(
        cls,
        viewer: ViewerModel,
        others: list[tuple[Layer, bool]],
        active: Layer | None,
        region: str | None,
    ) -> _Before:
        grid, camera = viewer.canvas.grid, viewer.scene.camera
        return cls(
            others=others,
            active=active,
            region=region,
            center=tuple(camera.center),
            zoom=float(camera.zoom),
            grid=(grid.enabled, grid.stride, tuple(grid.shape), grid.spacing),
            gridded_scale_bar=viewer.canvas.overlays.scale_bar.gridded,
        )

    def restore_grid(self, viewer: ViewerModel) -> None:
        grid = viewer.canvas.grid
        grid.enabled, grid.stride, grid.shape, grid.spacing = self.grid
        viewer.canvas.overlays.scale_bar.gridded = self.gridded_scale_bar

    def restore_camera(self, viewer: ViewerModel) -> None:
        viewer.scene.camera.center = self.center
        viewer.scene.camera.zoom = self.zoom


def _set(layer: Any, name: str, value: object) -> None:
    if getattr(layer, name) != value:
        setattr(layer, name, value)
