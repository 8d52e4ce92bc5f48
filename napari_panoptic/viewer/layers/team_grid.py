"""Several teams beside each other: one cell of the canvas for each, and one camera.

napari's grid gives every group of layers a cell. Each team gets a group of its
own: the image, the objects of reference and team, both coloured by the team's
outcomes, and rings around what is selected. The groups
stand at the end of the layer list, counted from there; everything else is
hidden meanwhile, and shown again as it was.

napari takes up to a tenth of a second for each layer that is added or removed.
So layers are added hidden, one per turn of the event loop, while the previous view
stays in use. The cells then replace it, and are filled one after the other. Layers
that no cell needs any more are hidden at once, and removed one per turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer

from napari_panoptic.common.text import shortened
from napari_panoptic.display import styles
from napari_panoptic.display.marks import team_rings
from napari_panoptic.display.object_layers import (
    EMPHASIS_COLOURS,
    PixelSize,
    image_layer_data,
)
from napari_panoptic.display.styles import Display, Look
from napari_panoptic.display.team_pictures import AREA, CellPictures, grid_shape, team_lut
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.shown import show_info, shown
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.labels import label_colours, set_colours
from napari_panoptic.viewer.layers.outlines import Beneath, outlines_of
from napari_panoptic.viewer.layers.owned import (
    IMAGE,
    OwnedLayers,
    Owner,
    Slot,
    put_in_place,
    set_unless_so,
)
from napari_panoptic.viewer.layers.scene import Pointed, Scene

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
PAINTING_MS = 50
"""How long the last cell may take until it can be seen."""
RING_ON_SCREEN_PX = 3.0
REMOVED_AT_ONCE = 6
"""Layers: napari collects garbage once for all of them, which takes longer than removing one."""
OBJECTS, RING = "objects", "ring"
"""Parts of a cell beside its image, from below."""


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
    def parts(self) -> list[str]:
        """The layers of a cell from below."""
        return [*([] if self.snapshot.image is None else [IMAGE]), OBJECTS, RING]

    @property
    def pixels(self) -> PixelSize:
        """How large pixels are."""
        return PixelSize.of(self.snapshot)

    def role(self, team: str, part: str) -> str:
        """Return the role of a layer of a cell."""
        image = self.snapshot.image
        if part == IMAGE and image is not None and len(image.levels) > 1:
            # A layer cannot change between one level and several.
            part = f"{part} of {self.snapshot.region.name}"
        return f"{part} · {team}"

    @property
    def cells(self) -> dict[str, tuple[str, str]]:
        """Role -> team and part of each layer, from below: the last cell comes first."""
        pairs = [(team, part) for team in reversed(self.teams) for part in self.parts]
        return {self.role(team, part): (team, part) for team, part in pairs}

    @property
    def roles(self) -> list[str]:
        """The roles of all layers, from below."""
        return list(self.cells)

    @cached_property
    def beneath(self) -> Beneath | None:
        """The reference, which all cells draw as lines beneath their team's."""
        reference = self.pictures.reference
        return None if reference is None else Beneath(reference, AREA)

    def can_follow(self, shown: _Contents | None) -> bool:
        """Return whether the layers of other contents can show these."""
        return shown is not None and shown.roles == self.roles


class TeamGrid:
    """The cells of several teams in a viewer; an alternative to the scene.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        The scene whose layers are hidden meanwhile.
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
        self._own = OwnedLayers(viewer, Owner.CELLS, Slot)
        self._shown: _Contents | None = None
        self._coming: _Contents | None = None
        self._unfilled: deque[str] = deque()
        self._before: _Before | None = None
        self._changing = Within()
        self._is_disturbed = False  # others added layers, or the user deleted one of a cell
        self._selection: Selection | None = None
        # When Qt has handled what is pending.
        self._builder = single_shot(0, self._build)
        # After the last cell: Qt paints when everything else has been handled.
        self._painting = single_shot(PAINTING_MS, lambda: None)

    @property
    def is_on(self) -> bool:
        """Whether the cells are shown."""
        return self._before is not None

    @property
    def is_busy(self) -> bool:
        """Whether layers are still to be made, filled, painted or removed."""
        return self._painting.isActive() or self._has_work()

    def _has_work(self) -> bool:
        is_unfinished = self._coming is not None or self._is_disturbed
        return is_unfinished or bool(self._unfilled or self._leftovers())

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams shown, in reading order."""
        return () if self._shown is None else tuple(self._shown.teams)

    def layer(self, team: str, part: str) -> Any | None:
        """Return a layer of a team's cell: image, objects or ring; None if it is not there."""
        return None if self._shown is None else self._own.layer(self._shown.role(team, part))

    def owns(self, layer: Layer) -> bool:
        """Return whether a layer belongs to a cell, also to one in the making."""
        return layer in self._own

    def wanted_widths(self, zoom: float | None = None) -> tuple[int, int] | None:
        """Return the outline widths that the present look and zoom ask for; None for lines."""
        look, zoom = self._scene.look, zoom or self._zoom()
        if self._scene.are_lines and look.display is not Display.FILL:
            return None
        return look.contour(Side.REFERENCE, zoom), look.contour(Side.PREDICTION, zoom)

    def widths_of_a_cell(self, snapshot: RegionSnapshot, cells: int) -> tuple[int, int] | None:
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
        if contents.can_follow(self._coming):
            self._coming = contents  # layers that were made already are filled in the end
            return
        self._coming = None
        if not contents.can_follow(self._shown):
            self._coming = contents
        elif self._is_of_another_region(contents):
            self._show(contents)
        else:
            self._shown = contents
            if self._unfilled:
                self._unfilled = deque(contents.teams)
            else:
                for team in contents.teams:
                    self._fill(team, contents)
                self._name()
                self.emphasise(self._selection)
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
            stop_timers(self._builder, self._painting)
            self._before = self._coming = self._shown = None
            self._is_disturbed = False
            self._unfilled.clear()
            self._own.release()
            return
        self._coming = None
        self._come_back()
        self._builder.start()
        if at_once:
            with self._viewer.layers.batched_update():
                for role in self._leftovers():
                    self._own.remove(role)

    def show_team(self) -> None:
        """Mark the cell of the current team."""
        self._name()

    # As an alternative to the scene.

    def objects_at(
        self, position: Sequence[float], viewbox: tuple[int, int] | None
    ) -> list[Pointed]:
        """List the objects under a point in a cell: the team's, then the reference."""
        team = self._team_at(viewbox)
        snapshot = self._session.snapshot
        if team is None or snapshot is None or self._shown is None:
            return []
        contents = self._shown
        if snapshot.region != contents.snapshot.region:
            return []  # the cells are about to follow
        at = contents.pixels.px_inside(position, snapshot.shape)
        if at is None or self._scene.look.display is Display.HIDDEN:
            return []
        found = []
        for side in (Side.PREDICTION, Side.REFERENCE):
            row = snapshot.row_at(side, team, *at)
            if row is not None:
                found.append(Pointed(team, side, row))
        return found

    def apply_look(self, look: Look) -> None:
        """Recolour; request outlines if their width changed."""
        if self._shown is None or self._changing or self._unfilled:
            return
        if self.wanted_widths() != self._shown.pictures.widths:
            self._redraw_wanted()
        for team in self.teams:
            self._colour(team, self._shown, look)
        self._name()

    def emphasise(self, selection: Selection | None) -> None:
        """Ring the selected object in every cell, with its partner of that team."""
        self._selection = selection
        if self._shown is None or self._unfilled:
            return
        ring_px = camera.ring_px(self._zoom(), RING_ON_SCREEN_PX)
        for team in self.teams:
            rings, ring = None, self.layer(team, RING)
            if selection is not None:
                rings = team_rings(self._shown.evaluations, team, selection, ring_px=ring_px)
            # Always visible: napari arranges all cells again when a layer is shown or hidden.
            if ring is None or rings is None:
                self._clear_ring(team)
                continue
            ring.data = rings.image
            ring.translate = self._shown.pixels.to_world(rings.origin_yx_px)

    def _clear_ring(self, team: str) -> None:
        ring = self.layer(team, RING)
        if ring is not None:
            ring.data = _NO_RING

    # Layers.

    def _stay_flat(self) -> None:
        """Switch the 3-D display off: napari cannot draw flat layers as volumes."""
        if self._viewer.dims.ndisplay != 2:
            self._viewer.dims.ndisplay = 2
            show_info(FLAT_ONLY)

    def _build(self) -> None:
        """Make a layer, or arrange the cells when all are made, or fill one, or remove some."""
        if not self._has_work():
            return  # left meanwhile
        self._stay_flat()
        coming = self._coming
        if self._is_disturbed:
            self._arrange_again()
        elif coming is not None:
            missing = [role for role in coming.roles if self._own.slot(role) is None]
            if missing:
                self._make(coming, missing[0])
            else:
                self._coming = None
                self._show(coming)
        elif self._shown is not None and self._unfilled:
            self._fill_next(self._shown)
        else:
            with self._viewer.layers.batched_update():
                for role in self._leftovers()[:REMOVED_AT_ONCE]:
                    self._own.remove(role)
        self._tell_progress()
        if self._has_work():
            self._builder.start()

    def _leftovers(self) -> list[str]:
        """Return the roles of layers that no cell needs any more."""
        needed = {role for at in (self._shown, self._coming) if at is not None for role in at.roles}
        return [slot.role for slot in self._own if slot.role not in needed]

    def _make(self, contents: _Contents, role: str) -> None:
        """Add a hidden layer."""
        image, layer = contents.snapshot.image, Labels(_NO_RING)
        team, part = contents.cells[role]
        if part == IMAGE and image is not None:
            data, options, _ = image_layer_data(image, contents.pixels)
            layer = Image(data, **options)
        elif part == RING:
            layer.colormap = label_colours(np.array(list(EMPHASIS_COLOURS.values())))
        else:
            layer = Labels(contents.pictures.objects[team])
        layer.name, layer.visible = shown(role), False
        put_in_place(layer, contents.pixels)
        # Before the cells that are shown: their places are counted from the end.
        n_shown = 0 if self._shown is None else len(self._shown.roles)
        with self._changing:
            self._own.add(role, layer, at=len(self._viewer.layers) - n_shown)

    def _tell_progress(self) -> None:
        """Report how many steps are done: layers created and cells filled."""
        contents = self._coming or self._shown
        if contents is None or not (self._coming or self._unfilled):
            self._progress(0, 0)
            return
        total = len(contents.roles) + len(contents.teams)
        left = len(self._unfilled)
        if self._coming is not None:
            missing = [role for role in contents.roles if self._own.slot(role) is None]
            left = len(missing) + len(contents.teams)
        self._progress(total - left, total)

    def _show(self, contents: _Contents) -> None:
        """Show complete cells on the canvas; they are filled one by one."""
        is_new_region = self._is_of_another_region(contents)
        if self._before is None:
            self._selection = self._session.selection
        with self._changing, self._viewer.layers.batched_update():
            self._arrange(contents)
        self._unfilled = deque(contents.teams)
        self._builder.start()
        if is_new_region:
            self._scene.fit()

    def _is_of_another_region(self, contents: _Contents) -> bool:
        return self._shown is None or self._shown.snapshot.region != contents.snapshot.region

    def _arrange(self, contents: _Contents) -> None:
        if self._before is None:
            self._enter(contents.snapshot.region.name)
        self._shown = contents
        # A layer that comes into sight in a grid whose cells napari has not made yet
        # makes one, and napari then takes all for made: the mouse misses them.
        self._viewer.canvas.grid.enabled = False
        rings = {contents.role(team, RING) for team in contents.teams}
        for slot in self._own:  # cells without a visible layer are left out
            self._own.set_visible(slot.role, slot.role in rings)
        for team in contents.teams:
            self._clear_ring(team)
        self._put_last(contents)
        self._set_grid(len(contents.parts), contents.snapshot.shape)

    def _put_last(self, contents: _Contents) -> None:
        """Move the cells to the end of the layer list, where they are counted from."""
        layers = self._viewer.layers
        places = [layers.index(self._own.layer(role)) for role in contents.roles]
        if places != list(range(len(layers) - len(places), len(layers))):
            layers.move_multiple(places, len(layers))

    def _fill_next(self, shown: _Contents) -> None:
        """Fill the next cell; after the last one, do what was put off."""
        self._painting.start()
        with self._changing:
            self._fill(self._unfilled.popleft(), shown)
            self._name()
        if not self._unfilled:
            self.apply_look(self._scene.look)
            self.emphasise(self._selection)

    def _enter(self, region: str) -> None:
        viewer = self._viewer
        active = viewer.layers.selection.active
        was_whole = self._scene.is_whole_in_sight(camera.canvas_size(viewer))
        self._scene.activate(self)
        # Layers kept from the scene, or owned by others, would get cells too.
        others = [(layer, layer.visible) for layer in viewer.layers if layer.visible]
        grid, view = viewer.canvas.grid, viewer.scene.camera
        self._before = _Before(
            others=others,
            active=active,
            region=region,
            was_whole=was_whole,
            center=tuple(view.center),
            zoom=float(view.zoom),
            grid=(grid.enabled, grid.stride, tuple(grid.shape), grid.spacing),
        )
        for layer, _ in others:
            layer.visible = False
        viewer.layers.events.inserted.connect(self._on_inserted)
        viewer.layers.events.removed.connect(self._on_removed)
        viewer.dims.events.ndisplay.connect(self._stay_flat)

    def _come_back(self) -> None:
        before, shown, viewer = self._before, self._shown, self._viewer
        self._before = self._shown = None
        self._is_disturbed = False
        self._unfilled.clear()
        self._tell_progress()
        if before is None or shown is None:
            return
        viewer.layers.events.inserted.disconnect(self._on_inserted)
        viewer.layers.events.removed.disconnect(self._on_removed)
        viewer.dims.events.ndisplay.disconnect(self._stay_flat)
        with self._changing:
            with viewer.layers.batched_update():
                grid = viewer.canvas.grid
                grid.enabled, grid.stride, grid.shape, grid.spacing = before.grid
                self._own.hide_all()
                for layer, visible in before.others:
                    if layer in viewer.layers:
                        layer.visible = visible
                self._scene.deactivate(self)
            if shown.snapshot.region.name == before.region and not before.was_whole:
                viewer.scene.camera.center = before.center
                viewer.scene.camera.zoom = before.zoom
                # The canvas may have been smaller then, and have shown no border.
                camera.drop_border(viewer, shown.snapshot.shape, shown.pixels)
            else:
                self._scene.fit()
            if before.active is not None and before.active in viewer.layers:
                viewer.layers.selection.active = before.active

    def _fill(self, team: str, contents: _Contents) -> None:
        """Let the layers of a cell show what they do not show yet."""
        image, objects = contents.snapshot.image, self.layer(team, OBJECTS)
        picture, photo = contents.pictures.objects[team], self.layer(team, IMAGE)
        if objects is not None and objects.data is not picture:
            objects.data = picture
            objects.editable = False
        level = None if image is None or len(image.levels) > 1 else image.levels[0]
        if photo is not None and level is not None and photo.data is not level:
            photo.data = level
        for part in contents.parts:
            if (layer := self.layer(team, part)) is not None:
                put_in_place(layer, contents.pixels, remeasure=True)
        if photo is not None:
            self._own.set_visible(contents.role(team, IMAGE), True)
        self._colour(team, contents, self._scene.look)

    def _colour(self, team: str, contents: _Contents, look: Look) -> None:
        slot = self._own.slot(contents.role(team, OBJECTS))
        if slot is None:
            return
        evaluation = contents.evaluations[team]
        if slot.content != (evaluation, look.colour_by):
            set_colours(slot.layer, team_lut(evaluation, look, contents.colours))
            slot.content = (evaluation, look.colour_by)
        self._outline(slot.layer, contents, evaluation)
        set_unless_so(slot.layer, "opacity", look.opacity)
        self._own.set_visible(slot.role, look.display is not Display.HIDDEN)

    def _outline(self, layer: Labels, contents: _Contents, evaluation: Evaluation) -> None:
        """Draw lines, unless outlines are in the picture already."""
        if contents.beneath is not None:
            lines, look, outcomes = (
                outlines_of(layer, self._viewer),
                self._scene.look,
                evaluation.outcomes,
            )
            lines.put_beneath(contents.beneath, look.line_px(Side.REFERENCE))
            lines.set_width(look.line_px(Side.PREDICTION))
            lines.set_boxes(np.concatenate([outcomes.side(side).bbox for side in Side]))
        set_unless_so(layer, "contour", 0 if contents.beneath is None else 1)

    def _name(self) -> None:
        """Write name and PQ into every cell that is filled; the current team's is marked."""
        for team in self.teams:
            title = self.layer(team, IMAGE) or self.layer(team, OBJECTS)
            if self._shown is None or title is None or team in self._unfilled:
                continue
            current = team == self._session.team
            pq = styles.ratio_text(self._shown.evaluations[team].metrics.pq)
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
        grid.shape = grid_shape(len(self.teams), region, canvas)
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
        found = self._viewer.canvas.grid.contents_at(tuple(viewbox), layers)
        rings = {self.layer(team, RING): team for team in self.teams}
        return next((rings[layers[at]] for at in found if layers[at] in rings), None)

    def _on_inserted(self, event: Any) -> None:
        """Take in that something else was added: it is hidden, and the cells stay last."""
        if not (self._changing or event.value in self._own):
            self._is_disturbed = True
            self._builder.start()

    def _on_removed(self, event: Any) -> None:
        """Go back to one team if the user deleted a layer of a cell."""
        if not self._changing and event.value in self._own:
            self._is_disturbed = True
            self._builder.start()

    def _arrange_again(self) -> None:
        self._is_disturbed = False
        before, shown = self._before, self._shown
        if before is None or shown is None:
            return
        if any(self._own.slot(role) is None for role in shown.roles):
            self.leave()
            self._left()
            return
        with self._changing:
            for layer in list(self._viewer.layers):
                if layer not in self._own and layer.visible:
                    if not self._scene.owns(layer):
                        before.others.append((layer, True))
                    layer.visible = False
            self._put_last(shown)

    def _zoom(self) -> float:
        pixels = PixelSize.from_mpp(None) if self._shown is None else self._shown.pixels
        return camera.zoom(self._viewer, pixels)


@dataclass(frozen=True, eq=False)
class _Before:
    """How the view was before the cells."""

    others: list[tuple[Layer, bool]]
    """Layers of others, and whether they were visible."""
    active: Layer | None
    region: str
    was_whole: bool
    center: tuple[float, ...]
    zoom: float
    grid: tuple[bool, int, tuple[int, int], float]
    """Whether napari's grid was enabled, its stride, shape and spacing."""
