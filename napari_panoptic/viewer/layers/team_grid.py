"""Several teams beside each other: one cell of the canvas for each, and one camera.

napari's grid gives every group of layers a cell. Each team gets a group of its
own: the image, the objects of reference and team, both coloured by the team's
outcomes, and rings around the selection. The groups
stand at the end of the layer list, counted from there; everything else is
hidden meanwhile, and shown again as it was.

The images come first, all in one batch; then, when they are drawn, the objects of all
teams and the rings: napari arranges its canvas once for each batch, which takes longer
than anything else. Layers that no cell needs any more are hidden at once, and removed
when Qt has handled pending events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from napari.components import ViewerModel
from napari.layers import Image, Labels, Layer

from napari_panoptic.display import styles
from napari_panoptic.display.marks import team_rings
from napari_panoptic.display.names import cut_off, distinct_names
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
from napari_panoptic.viewer.kit.napari_private import arranged_once
from napari_panoptic.viewer.kit.shown import show_info, shown
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.labels import label_colours, set_colours
from napari_panoptic.viewer.layers.outlines import Beneath, line_around, outlines_of
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
"""Letters of a team's name that a title has at least."""
PX_PER_LETTER_AND_POINT = 1.1
"""How wide a letter is, generously."""
FLAT_ONLY = "Side by side is 2-D only: the display was switched to 2-D."
_NO_RING = np.zeros((4, 4), np.uint8)
PAINTING_MS = 100
"""How long the cells may take until they can be seen."""
RING_ON_SCREEN_PX = 3.0
OBJECTS, RING = "objects", "ring"
"""Parts of a cell beside its image, from below."""


@dataclass(frozen=True, eq=False)
class _Objects:
    """The objects of all cells."""

    evaluations: Mapping[str, Evaluation]
    pictures: CellPictures
    colours: Sequence[Rgb]

    @cached_property
    def beneath(self) -> Beneath | None:
        """The reference, which all cells draw as lines beneath their team's."""
        reference = self.pictures.reference
        return None if reference is None else Beneath(reference, AREA)


@dataclass(frozen=True, eq=False)
class _Contents:
    """What cells are to show."""

    snapshot: RegionSnapshot
    #: The teams that get a cell, in reading order.
    teams: Sequence[str]
    #: Their objects; None while only the images are shown.
    objects: _Objects | None = None

    @property
    def parts(self) -> list[str]:
        """The layers of a cell from below."""
        image = [] if self.snapshot.image is None else [IMAGE]
        return image if self.objects is None else [*image, OBJECTS, RING]

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
        self._own = OwnedLayers(viewer, Owner.CELLS, Slot)
        self._shown: _Contents | None = None
        # Shown when the images are painted.
        self._coming: _Contents | None = None
        self._before: _Before | None = None
        self._changing = Within()
        self._is_disturbed = False  # others added layers, or the user deleted one of a cell
        self._selection: Selection | None = None
        # When Qt has handled pending events.
        self._tidier = single_shot(0, self._tidy)
        # After the cells: Qt paints when everything else has been handled.
        self._painting = single_shot(PAINTING_MS, self._on_painted)

    @property
    def is_on(self) -> bool:
        """Whether the cells are shown."""
        return self._before is not None

    @property
    def is_busy(self) -> bool:
        """Whether cells are still to be painted or arranged, or layers to be removed."""
        return self._painting.isActive() or self._has_work()

    def _has_work(self) -> bool:
        return self._is_disturbed or bool(self._leftovers())

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams shown, in reading order."""
        return () if self._shown is None else tuple(self._shown.teams)

    def layer(self, team: str, part: str) -> Any | None:
        """Return a layer of a team's cell: image, objects or ring; None if it is not there."""
        return None if self._shown is None else self._own.layer(self._shown.role(team, part))

    def owns(self, layer: Layer) -> bool:
        """Return whether a layer belongs to a cell."""
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
        """Show the teams of a region, the first six of them.

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
        teams = list(islice(evaluations, MAX_TEAMS))
        contents = _Contents(snapshot, teams, _Objects(evaluations, pictures, colours))
        shown = self._shown
        if shown is not None and shown.objects is None and self._painting.isActive():
            self._coming = contents  # the images are painted first
        else:
            self._show(contents)

    def show_images(self, snapshot: RegionSnapshot, teams: Sequence[str]) -> None:
        """Show the image of a region in the cells of teams whose objects are still to come."""
        if snapshot.image is not None and not self.is_on:
            self._show(_Contents(snapshot, teams[:MAX_TEAMS]))

    def leave(self, *, restore: bool = True, at_once: bool = False) -> None:
        """Go back to the view of one team, as it was.

        Parameters
        ----------
        restore
            Whether there still is a window.
        at_once
            Whether to remove all layers now, rather than when Qt has handled pending events.
        """
        if not restore:
            stop_timers(self._tidier, self._painting)
            self._before = self._shown = self._coming = None
            self._is_disturbed = False
            self._own.release()
            return
        self._come_back()
        self._tidier.start()
        if at_once:
            self._remove_leftovers()

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
        shown = self._shown
        if shown is None or shown.objects is None or self._changing:
            return
        if self.wanted_widths() != shown.objects.pictures.widths:
            self._redraw_wanted()
        for team in self.teams:
            self._colour(team, shown, look)
        self._name()

    def emphasise(self, selection: Selection | None) -> None:
        """Ring the selected object in every cell, with its partner of that team."""
        self._selection = selection
        shown = self._shown
        if shown is None or shown.objects is None:
            return
        is_line = self._scene.are_lines
        on_screen_px = camera.LINE_AROUND_PX if is_line else RING_ON_SCREEN_PX
        ring_px = camera.ring_px(self._zoom(), on_screen_px)
        for team in self.teams:
            rings, ring = None, self.layer(team, RING)
            if selection is not None:
                evaluations = shown.objects.evaluations
                rings = team_rings(evaluations, team, selection, ring_px=ring_px, as_line=is_line)
            # Always visible: napari arranges all cells again when a layer is shown or hidden.
            if ring is None or rings is None:
                self._clear_ring(team)
                continue
            line_around(ring, self._viewer, is_line)
            ring.data = rings.image
            ring.translate = shown.pixels.to_world(rings.origin_yx_px)

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

    def _tidy(self) -> None:
        """Arrange the cells again if layers came or went, and remove layers that are left over."""
        if self._is_disturbed:
            self._stay_flat()
            self._arrange_again()
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Remove layers in one batch: napari collects garbage once for all of them."""
        if leftovers := self._leftovers():
            with self._viewer.layers.batched_update():
                for role in leftovers:
                    self._own.remove(role)

    def _leftovers(self) -> list[str]:
        """Return the roles of layers that no cell needs any more."""
        needed = set() if self._shown is None else set(self._shown.roles)
        return [slot.role for slot in self._own if slot.role not in needed]

    def _make(self, contents: _Contents, role: str, at: int) -> None:
        """Add a layer; all but images are empty yet."""
        image = contents.snapshot.image
        _team, part = contents.cells[role]
        layer: Layer
        if part == IMAGE and image is not None:
            data, options, _ = image_layer_data(image, contents.pixels)
            layer = Image(data, **{**options, "name": shown(role)})
        else:
            layer = Labels(_NO_RING)
            layer.name = shown(role)
            put_in_place(layer, contents.pixels)
            if part == RING:
                layer.colormap = label_colours(np.array(list(EMPHASIS_COLOURS.values())))
        self._own.add(role, layer, at=at)

    def _show(self, contents: _Contents) -> None:
        """Show cells, in place of the present canvas."""
        self._stay_flat()
        self._coming = None
        before = self._shown
        is_new_region = before is None or before.snapshot.region != contents.snapshot.region
        if self._before is None:
            self._selection = self._session.selection
        if contents.can_follow(before) and not is_new_region:
            with self._changing:
                self._fill(contents)
        else:
            with self._changing, arranged_once(self._viewer):
                self._arrange(contents)
        if is_new_region:
            self._scene.camera.fit()
        self._name()
        self.apply_look(self._scene.look)
        self.emphasise(self._selection)
        self._painting.start()
        self._tidier.start()

    def _arrange(self, contents: _Contents) -> None:
        if self._before is None:
            self._enter(contents.snapshot.region.name)
        # Off while layers come into sight: each of them would have napari arrange all cells.
        self._viewer.canvas.grid.enabled = False
        layers = self._viewer.layers
        first = min((layers.index(slot.layer) for slot in self._own), default=len(layers))
        for at, role in enumerate(contents.roles, first):
            if self._own.slot(role) is None:
                self._make(contents, role, at)
        self._fill(contents)
        for role in self._leftovers():
            self._own.set_visible(role, False)
        self._put_last(contents)
        self._set_grid(len(contents.parts), contents.snapshot.shape)

    def _on_painted(self) -> None:
        objects = None if self._shown is None else self._shown.objects
        if self._coming is not None:
            self._show(self._coming)
        elif objects is not None and self.wanted_widths() != objects.pictures.widths:
            # The graphics driver refused lines when it was to draw the first ones.
            self._redraw_wanted()

    def _put_last(self, contents: _Contents) -> None:
        """Move the cells to the end of the layer list, where they are counted from."""
        layers = self._viewer.layers
        places = [layers.index(self._own.layer(role)) for role in contents.roles]
        if places != list(range(len(layers) - len(places), len(layers))):
            layers.move_multiple(places, len(layers))

    def _enter(self, region: str) -> None:
        viewer = self._viewer
        active = viewer.layers.selection.active
        was_whole = self._scene.camera.is_whole_in_sight(camera.canvas_size(viewer))
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
        self._before = self._shown = self._coming = None
        self._is_disturbed = False
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
                self._scene.camera.fit()
            if before.active is not None and before.active in viewer.layers:
                viewer.layers.selection.active = before.active

    def _fill(self, contents: _Contents) -> None:
        """Bring the layers of the cells up to date."""
        self._shown = contents
        for team in contents.teams:
            self._fill_cell(team, contents)

    def _fill_cell(self, team: str, contents: _Contents) -> None:
        image, photo = contents.snapshot.image, self.layer(team, IMAGE)
        objects = self.layer(team, OBJECTS)
        if objects is not None and contents.objects is not None:
            picture = contents.objects.pictures.objects[team]
            if objects.data is not picture:
                objects.data = picture
                objects.editable = False
        level = None if image is None or len(image.levels) > 1 else image.levels[0]
        if photo is not None and level is not None and photo.data is not level:
            photo.data = level
        for part in contents.parts:
            if (layer := self.layer(team, part)) is not None:
                put_in_place(layer, contents.pixels, remeasure=True)
                self._own.set_visible(contents.role(team, part), True)
        self._clear_ring(team)
        self._colour(team, contents, self._scene.look)

    def _colour(self, team: str, contents: _Contents, look: Look) -> None:
        slot = self._own.slot(contents.role(team, OBJECTS))
        if slot is None or contents.objects is None:
            return
        evaluation = contents.objects.evaluations[team]
        if slot.content != (evaluation, look.colour_by):
            set_colours(slot.layer, team_lut(evaluation, look, contents.objects.colours))
            slot.content = (evaluation, look.colour_by)
            boxes = [evaluation.outcomes.side(side).bbox for side in Side]
            outlines_of(slot.layer, self._viewer).set_boxes(np.concatenate(boxes))
        self._outline(slot.layer, contents.objects.beneath)
        set_unless_so(slot.layer, "opacity", look.opacity)
        self._own.set_visible(slot.role, look.display is not Display.HIDDEN)

    def _outline(self, layer: Labels, beneath: Beneath | None) -> None:
        """Draw lines, unless outlines are in the picture already."""
        if beneath is not None:
            lines, look = outlines_of(layer, self._viewer), self._scene.look
            lines.put_beneath(beneath, look.line_px(Side.REFERENCE))
            lines.set_width(look.line_px(Side.PREDICTION))
        set_unless_so(layer, "contour", 0 if beneath is None else 1)

    def _name(self) -> None:
        """Write name and PQ into every cell; the current team's is marked."""
        for team, short in zip(self.teams, distinct_names(self.teams), strict=True):
            title = self.layer(team, IMAGE) or self.layer(team, OBJECTS)
            if self._shown is None or title is None:
                continue
            current = team == self._session.team
            figure = ""
            if self._shown.objects is not None:
                pq = self._shown.objects.evaluations[team].metrics.pq
                figure = f"   PQ {styles.ratio_text(pq)}"
            mark = "▶ " if current else ""
            room = max(self._most_letters() - len(mark) - len(figure), SHORTEST_NAME)
            name = shown(f"{mark}{cut_off(short, room)}{figure}")
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
        shown = {} if self._shown is None else self._shown.cells
        teams = {self._own.layer(role): team for role, (team, _part) in shown.items()}
        return next((teams[layers[at]] for at in found if layers[at] in teams), None)

    def _on_inserted(self, event: Any) -> None:
        """Take in that something else was added: it is hidden, and the cells stay last."""
        if not (self._changing or event.value in self._own):
            self._is_disturbed = True
            self._tidier.start()

    def _on_removed(self, event: Any) -> None:
        """Go back to one team if the user deleted a layer of a cell."""
        if not self._changing and event.value in self._own:
            self._is_disturbed = True
            self._tidier.start()

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
