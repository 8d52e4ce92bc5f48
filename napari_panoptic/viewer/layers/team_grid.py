"""Several teams beside each other: one cell of the canvas for each, and one camera.

napari's grid gives every group of layers a cell. Each team gets a group of its
own: the image, the objects of reference and team, both coloured by the team's
outcomes, and rings around what is selected. The groups
stand at the end of the layer list, counted from there; everything else is
hidden meanwhile, and shown again as it was.

napari takes up to a tenth of a second for each layer that is added or removed.
So cells are made hidden, one layer per turn of the event loop, while the view of
before can still be used; when all are there they take its place, and are filled
one after the other. Cells that are left are hidden together and removed one layer
per turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer
from qtpy.QtCore import QTimer

from napari_panoptic.common.text import shortened
from napari_panoptic.nuclei.display import object_layers as drawing
from napari_panoptic.nuclei.display import styles
from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.nuclei.display.styles import Display, Look
from napari_panoptic.nuclei.display.team_pictures import CellPictures, grid_shape, team_lut
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.session import Selection, Session
from napari_panoptic.nuclei.snapshots import RegionSnapshot
from napari_panoptic.nuclei.values.cohort import Region, Rgb
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.kit.shown import show_info, shown
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.desk_layers import image_layer_data, set_unless_so
from napari_panoptic.viewer.layers.kept_in_place import keep_in_place
from napari_panoptic.viewer.layers.owned import disown, own, role_of
from napari_panoptic.viewer.layers.recolour import label_colours, set_colours
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.layers.stand_in import Pointed

MAX_TEAMS = 6
"""The largest number of cells that can be read on one screen."""
SPACING = 4.0
"""Screen pixels between cells."""
TITLE_SIZE, SMALLEST_TITLE = 11, 6
SHORTEST_NAME = 5
"""Letters of a team's name that a title has at least, its middle left out."""
PX_PER_LETTER_AND_POINT = 1.1
"""How wide a letter is, generously."""
FLAT_ONLY = "Side by side is 2-D only: the display was switched to 2-D."
_NO_RING = np.zeros((4, 4), np.uint8)
CELL = "napari-panoptic cell"
"""Owner of the layers of cells (see `owned`); their role is the team of the cell."""
RING_ON_SCREEN_PX = 3.0


@dataclass(frozen=True, eq=False)
class _Contents:
    """What cells are to show."""

    snapshot: RegionSnapshot
    evaluations: Mapping[str, Evaluation]
    pictures: CellPictures
    colours: Sequence[Rgb]

    @property
    def teams(self) -> list[str]:
        """The teams that get a cell, in reading order."""
        return list(islice(self.evaluations, MAX_TEAMS))

    @property
    def roles(self) -> list[str]:
        """The layers of a cell from below."""
        return [*([] if self.snapshot.image is None else ["image"]), "objects", "ring"]

    @property
    def pixels(self) -> PixelSize:
        """How large pixels are."""
        return PixelSize.of(self.snapshot)


@dataclass(eq=False)
class _Cells:
    """Cells, complete or in the making."""

    contents: _Contents
    layers: dict[str, dict[str, Layer]] = field(init=False)
    wanted: deque[tuple[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        """List the layers that are to be made: the last cell comes first."""
        self.layers = {team: {} for team in self.contents.teams}
        self.wanted = deque(
            (team, role) for team in reversed(self.contents.teams) for role in self.contents.roles
        )

    @property
    def all(self) -> list[Layer]:
        """All layers that there are."""
        return [layer for cell in self.layers.values() for layer in cell.values()]

    def can_show(self, contents: _Contents) -> bool:
        """Return whether these layers can show other contents."""
        now = self.contents
        if (now.teams, now.roles) != (contents.teams, contents.roles):
            return False
        images = (now.snapshot.image, contents.snapshot.image)
        # A layer cannot change between one level and several.
        several = any(image is not None and len(image.levels) > 1 for image in images)
        return images[0] is images[1] or not several


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
    progress
        Called with how many steps towards the cells are done, and how many there
        are; with 0 and 0 when the cells are there or given up.
    """

    keeps: frozenset[str] = frozenset()

    def __init__(
        self,
        viewer: ViewerModel,
        scene: Scene,
        session: Session,
        redraw_wanted: Callable[[], None],
        left: Callable[[], None],
        progress: Callable[[int, int], None],
    ) -> None:
        self._viewer, self._scene, self._session = viewer, scene, session
        self._redraw_wanted, self._left, self._progress = redraw_wanted, left, progress
        self._shown: _Cells | None = None
        self._coming: _Cells | None = None
        self._unfilled: deque[str] = deque()
        self._leftovers: deque[Layer] = deque()
        self._coloured: dict[str, object] = {}
        self._before: _Before | None = None
        self._is_changing = False
        self._selection: Selection | None = None
        self._region_fitted: Region | None = None
        self._arranger = _next_turn(self._arrange_again)
        self._builder = _next_turn(self._build)

    @property
    def is_on(self) -> bool:
        """Whether the cells are shown."""
        return self._before is not None

    @property
    def is_busy(self) -> bool:
        """Whether layers are still to be made, filled or removed."""
        return self._coming is not None or bool(self._unfilled or self._leftovers)

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams shown, in reading order."""
        return tuple(self._cells)

    def layer(self, team: str, role: str) -> Any:
        """Return a layer of a team's cell: image, objects or ring."""
        return self._cells[team][role]

    @property
    def _cells(self) -> Mapping[str, Mapping[str, Any]]:
        return {} if self._shown is None else self._shown.layers

    def wanted_widths(self, zoom: float | None = None) -> tuple[int, int]:
        """Return the outline widths that the present look and zoom ask for."""
        look, zoom = self._scene.look, zoom or self._zoom()
        return look.contour(Side.REFERENCE, zoom), look.contour(Side.PREDICTION, zoom)

    def widths_of_a_cell(self, snapshot: RegionSnapshot, cells: int) -> tuple[int, int]:
        """Return the outline widths for the zoom that cells of this number will have."""
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
        """Show the teams of a region, the first six of them: at once where there are cells.

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
        self._stay_flat()
        contents = _Contents(snapshot, evaluations, pictures, colours)
        if self._coming is not None and self._coming.can_show(contents):
            self._coming.contents = contents  # layers that were made already are filled in the end
            return
        self._give_up()
        if self._shown is not None and self._shown.can_show(contents):
            is_new_region = self._shown.contents.snapshot.region != snapshot.region
            self._shown.contents = contents
            if is_new_region:
                self._show(self._shown)
            elif self._unfilled:
                self._unfilled = deque(contents.teams)
            else:
                for team in contents.teams:
                    self._fill(team, contents)
                self._name()
                self.emphasise(self._selection)
            return
        self._coming = _Cells(contents)
        self._tell_progress()
        self._builder.start()

    def leave(self, *, restore: bool = True, at_once: bool = False) -> None:
        """Go back to the view of one team, as it was.

        Parameters
        ----------
        restore
            Whether there still is a window.
        at_once
            Whether to remove all layers now, rather than bit by bit.
        """
        if not restore:
            stop_timers(self._arranger, self._builder)
            self._before = self._coming = self._shown = None
            self._unfilled.clear()
            self._leftovers.clear()
            return
        self._give_up()
        self._come_back()
        if at_once:
            self._remove_leftovers(len(self._leftovers))

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
        if team is None or snapshot is None or self._shown is None:
            return []
        contents = self._shown.contents
        if snapshot.region != contents.snapshot.region:
            return []  # the cells are about to follow
        y, x = contents.pixels.to_px((position[-2], position[-1]))
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
        """Recolour; request outlines if their width changed."""
        if self._shown is None or self._is_changing or self._unfilled:
            return
        if self.wanted_widths() != self._shown.contents.pictures.widths:
            self._redraw_wanted()
        for team in self._cells:
            self._colour(team, self._shown.contents, look)
        self._name()

    def emphasise(self, selection: Selection | None) -> None:
        """Ring the selected object in every cell, with its partner of that team."""
        self._selection = selection
        if self._shown is None or self._unfilled:
            return
        pixels = self._shown.contents.pixels
        for team, cell in self._cells.items():
            picture = None if selection is None else self._picture(team, selection)
            ring: Any = cell["ring"]
            # Always visible: napari arranges all cells again when a layer is shown or hidden.
            if picture is None:
                ring.data = _NO_RING
                continue
            ring.data = picture.image
            ring.translate = pixels.to_world(picture.origin_yx_px)

    @property
    def _evaluations(self) -> Mapping[str, Evaluation]:
        return {} if self._shown is None else self._shown.contents.evaluations

    # Layers.

    def _stay_flat(self) -> None:
        """Switch the 3-D display off: napari cannot draw flat layers as volumes."""
        if self._viewer.dims.ndisplay != 2:
            self._viewer.dims.ndisplay = 2
            show_info(FLAT_ONLY)

    def _build(self) -> None:
        """Make a layer, or arrange the cells when all are made, or fill one, or remove a layer."""
        if not self.is_busy:
            return  # left meanwhile
        self._stay_flat()
        coming = self._coming
        if coming is None:
            if self._shown is not None and self._unfilled:
                self._fill_next(self._shown)
            elif self._leftovers:
                self._remove_leftovers(1)
        elif any(layer not in self._viewer.layers for layer in coming.all):
            self.leave()  # the user deleted one
            self._left()
        elif coming.wanted:
            self._make(coming, *coming.wanted.popleft())
        else:
            self._coming = None
            self._show(coming)
        self._tell_progress()
        if self.is_busy:
            self._builder.start()

    def _make(self, coming: _Cells, team: str, role: str) -> None:
        """Add a hidden layer; what is active stays active."""
        contents, layers = coming.contents, self._viewer.layers
        layer: Layer
        if role == "image" and contents.snapshot.image is not None:
            data, options, _ = image_layer_data(contents.snapshot.image, contents.pixels)
            layer = Image(data, **{**options, "visible": False})
        elif role == "ring":
            layer = Labels(_NO_RING, visible=False)
            layer.colormap = label_colours(np.array(list(drawing.EMPHASIS_COLOURS.values())))
        else:
            layer = Labels(contents.pictures.objects[team], visible=False)
        own(layer, CELL, team)
        layer.name = shown(f"{role} · {team}")
        keep_in_place(layer)
        _size(layer, contents.pixels)
        active = layers.selection.active
        self._is_changing = True
        try:
            # Before the cells that are shown: their places are counted from the end.
            layers.insert(len(layers) - (0 if self._shown is None else len(self._shown.all)), layer)
            layers.selection.active = active
        finally:
            self._is_changing = False
        if isinstance(layer, Labels):
            layer.editable = False
        coming.layers[team][role] = layer

    def _give_up(self) -> None:
        """Want the cells that are being made no more."""
        coming, self._coming = self._coming, None
        if coming is not None:
            self._discard(coming)
            self._tell_progress()

    def _tell_progress(self) -> None:
        """Report how many steps are done: layers created and cells filled."""
        cells = self._coming or self._shown
        if cells is None or not (self._coming or self._unfilled):
            self._progress(0, 0)
            return
        left = len(cells.wanted) + (len(cells.layers) if self._coming else len(self._unfilled))
        total = len(cells.layers) * (len(cells.contents.roles) + 1)
        self._progress(total - left, total)

    def _discard(self, cells: _Cells) -> None:
        """Hide cells, and let them be removed bit by bit."""
        for layer in cells.all:
            disown(layer)
            set_unless_so(layer, "visible", False)
        self._leftovers.extend(cells.all)
        self._builder.start()

    def _remove_leftovers(self, count: int) -> None:
        with self._viewer.layers.batched_update():
            self._remove([self._leftovers.popleft() for _ in range(count)])

    def _remove(self, layers: Sequence[Layer]) -> None:
        for layer in layers:
            if layer in self._viewer.layers:
                self._viewer.layers.remove(layer)

    def _show(self, cells: _Cells) -> None:
        """Show complete cells on the canvas; they are filled one by one."""
        contents, region = cells.contents, cells.contents.snapshot.region
        if self._before is None:
            self._selection = self._session.selection
        self._is_changing = True
        try:
            with self._viewer.layers.batched_update():
                self._arrange(cells)
        finally:
            self._is_changing = False
        self._unfilled = deque(contents.teams)
        self._builder.start()
        if self._region_fitted != region:
            self._region_fitted = region
            self._scene.fit()

    def _arrange(self, cells: _Cells) -> None:
        contents, grid = cells.contents, self._viewer.canvas.grid
        if self._before is None:
            self._enter(contents.snapshot.region.name)
        elif self._shown is not None and self._shown is not cells:
            self._remove(self._shown.all)
            self._coloured = {}
        self._shown = cells
        # A layer that comes into sight in a grid whose cells napari has not made yet
        # makes one, and napari then takes all for made: the mouse misses them.
        grid.enabled = False
        for cell in self._cells.values():
            for role, layer in cell.items():
                set_unless_so(
                    layer, "visible", role == "ring"
                )  # cells without a visible layer are left out
            cell["ring"].data = _NO_RING
        self._set_grid(len(contents.roles), contents.snapshot.shape)

    def _fill_next(self, shown: _Cells) -> None:
        """Fill the next cell; after the last one, do what was put off."""
        self._is_changing = True
        try:
            self._fill(self._unfilled.popleft(), shown.contents)
            self._name()
        finally:
            self._is_changing = False
        if not self._unfilled:
            self.apply_look(self._scene.look)
            self.emphasise(self._selection)

    def _enter(self, region: str) -> None:
        viewer = self._viewer
        active = viewer.layers.selection.active
        self._scene.step_aside(self)
        # Layers kept from the scene, or owned by others, would get cells too.
        others = [(layer, layer.visible) for layer in viewer.layers if layer.visible]
        self._before = _Before.of(viewer, others, active, region)
        for layer, _ in others:
            layer.visible = False
        viewer.layers.events.inserted.connect(self._on_inserted)
        viewer.layers.events.removed.connect(self._on_removed)
        viewer.dims.events.ndisplay.connect(self._stay_flat)

    def _come_back(self) -> None:
        before, shown, viewer = self._before, self._shown, self._viewer
        self._before = self._shown = self._region_fitted = None
        self._unfilled.clear()
        self._tell_progress()
        if before is None or shown is None:
            return
        viewer.layers.events.inserted.disconnect(self._on_inserted)
        viewer.layers.events.removed.disconnect(self._on_removed)
        viewer.dims.events.ndisplay.disconnect(self._stay_flat)
        self._is_changing = True
        try:
            with viewer.layers.batched_update():
                before.restore_grid(viewer)
                self._discard(shown)
                self._coloured = {}
                for layer, visible in before.others:
                    if layer in viewer.layers:
                        layer.visible = visible
                self._scene.come_back()
            if shown.contents.snapshot.region.name == before.region:
                before.restore_camera(viewer)
            else:
                self._scene.fit()
            if before.active is not None and before.active in viewer.layers:
                viewer.layers.selection.active = before.active
        finally:
            self._is_changing = False

    def _fill(self, team: str, contents: _Contents) -> None:
        """Let the layers of a cell show what they do not show yet."""
        cell, image = self._cells[team], contents.snapshot.image
        picture = contents.pictures.objects[team]
        if cell["objects"].data is not picture:
            cell["objects"].data = picture
            cell["objects"].editable = False
        level = None if image is None or len(image.levels) > 1 else image.levels[0]
        if level is not None and cell["image"].data is not level:
            cell["image"].data = level
        for layer in cell.values():
            _size(layer, contents.pixels)
        if image is not None:
            set_unless_so(cell["image"], "visible", True)
        self._colour(team, contents, self._scene.look)

    def _colour(self, team: str, contents: _Contents, look: Look) -> None:
        evaluation, layer = contents.evaluations[team], self._cells[team]["objects"]
        key = (evaluation, look.colour_by)
        if self._coloured.get(team) != key:
            set_colours(layer, team_lut(evaluation, look, contents.colours))
            self._coloured[team] = key
        set_unless_so(layer, "opacity", look.opacity)
        set_unless_so(layer, "visible", look.display is not Display.HIDDEN)

    def _name(self) -> None:
        """Write name and PQ into every cell that is filled; the current team's is marked."""
        for team, cell in self._cells.items():
            if team in self._unfilled:
                continue
            title = cell.get("image") or cell["objects"]
            current = team == self._session.team
            pq = styles.ratio_text(self._evaluations[team].metrics.pq)
            mark, figure = "▶ " if current else "", f"   PQ {pq}"
            room = max(self._most_letters() - len(mark) - len(figure), SHORTEST_NAME)
            name = shown(f"{mark}{shortened(team, room)}{figure}")
            if title.name != name:
                title.name = name
            overlay = title.name_overlay
            overlay.font_size = self._title_size(name)
            overlay.visible = True

    def _title_size(self, title: str) -> float:
        """Choose a size in which a title fits its cell."""
        size = self._cell_width() / (PX_PER_LETTER_AND_POINT * len(title))
        return float(np.clip(size, SMALLEST_TITLE, TITLE_SIZE))

    def _most_letters(self) -> int:
        """Return how many letters fit into a cell where they are as small as they get."""
        return int(self._cell_width() / (PX_PER_LETTER_AND_POINT * SMALLEST_TITLE))

    def _cell_width(self) -> float:
        return float(self._viewer.canvas.viewbox_size(self._viewer.layers)[1])

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
            team = role_of(layers[number], CELL)
            if team in self._cells:
                return team
        return None

    def _on_inserted(self, event: Any) -> None:
        """Take in that something else was added: it is hidden, and the cells stay last."""
        layer = event.value
        if self._is_changing or self._before is None or role_of(layer, CELL) is not None:
            return
        self._arranger.start()

    def _on_removed(self, event: Any) -> None:
        """Go back to one team if the user deleted a layer of a cell."""
        if self._is_changing or self._before is None:
            return
        if role_of(event.value, CELL) is not None:
            self._arranger.start()

    def _arrange_again(self) -> None:
        before, shown = self._before, self._shown
        if before is None or shown is None:
            return
        own = shown.all
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

    def _picture(self, team: str, selection: Selection) -> drawing.Emphasis | None:
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
                return drawing.emphasis(
                    owner.pair.prediction, row, box=box, ring_px=self._ring_px()
                )
            side, row = Side.REFERENCE, reference
        own, across = evaluation.outcomes.side(side), evaluation.outcomes.other(side)
        pair, partner = evaluation.pair, int(own.partner[row])
        labels = (pair.reference, pair.prediction)
        mine, other = labels if side is Side.REFERENCE else labels[::-1]
        if partner == NO_PARTNER:
            return drawing.emphasis(mine, row, box=own.bbox[row], ring_px=self._ring_px())
        return drawing.emphasis(
            mine,
            row,
            box=own.bbox[row],
            other=other,
            partner_row=partner,
            partner_box=across.bbox[partner],
            ring_px=self._ring_px(),
        )

    def _ring_px(self) -> int:
        return camera.ring_px(self._zoom(), RING_ON_SCREEN_PX)

    def _zoom(self) -> float:
        pixels = PixelSize.from_mpp(None) if self._shown is None else self._shown.contents.pixels
        return camera.zoom(self._viewer, pixels)


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


def _size(layer: Layer, pixels: PixelSize) -> None:
    set_unless_so(layer, "units", pixels.units)
    layer.scale = pixels.scale
    layer.translate = pixels.origin


def _next_turn(action: Callable[[], None]) -> QTimer:
    """Make a timer that does something when Qt has handled what is pending."""
    timer = QTimer()
    timer.setSingleShot(True)
    timer.setInterval(0)
    timer.timeout.connect(action)
    return timer
