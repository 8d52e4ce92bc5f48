"""The layers of a case of several raters: image, disagreement, outlines of raters and levels.

Everything has three dimensions, a slice being a volume of one. Outlines are
drawn for the slice that is looked at only. Layers are hidden and filled again,
never removed: that can upset the display between two drawings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import napari
import numpy as np
from napari.layers import Image, Layer, Vectors
from napari.utils import Colormap
from numpy.typing import NDArray

from napari_panoptic.evaluation.raters import levels_reached, levels_reached_by_votes
from napari_panoptic.level_outlines import (
    PREDICTION_COLOURS,
    REFERENCE_COLOURS,
    level_colours,
    outline_segments,
    rater_colour,
)
from napari_panoptic.rated import RatersSettings
from napari_panoptic.regions import Rgb
from napari_panoptic.viewer.left_behind import take_unit

OWNER = "napari-panoptic-rated"
"""Key in the metadata of the layers that belong to this view."""
SAMPLED = 200_000
"""Contrast is set by so many values of an image."""
FAINT = 0.45
"""How opaque levels are that are not the chosen one."""
DISAGREEMENT = "disagreement of the raters"
PROBABILITY = "predicted probability"


class Shown(StrEnum):
    """What can be shown over the image."""

    RATERS = "raters"
    REFERENCE = "their mean"
    PREDICTION = "prediction"
    DISAGREEMENT = "disagreement"


_OUTLINES = {
    Shown.RATERS: "outline of each rater",
    Shown.REFERENCE: "levels of the raters' mean",
    Shown.PREDICTION: "levels of the prediction",
}
LINE_PX = {Shown.REFERENCE: 2.8, Shown.PREDICTION: 2.8, Shown.RATERS: 1.5}
"""Width of outlines on the screen: raters are many, and step back."""

Line = tuple[NDArray[np.float32], Rgb, float]
"""Segments of an outline, their colour, and how opaque they are."""


@dataclass(frozen=True, eq=False)
class CasePicture:
    """What is shown of a structure of a case.

    Parameters
    ----------
    pictures
        Modality -> (z, y, x), or (z, y, x, colour).
    masks
        bool (n, z, y, x).
    raters
        The place of each rater in the cohort, for the colour.
    votes
        uint16 (z, y, x).
    probabilities
        Floating-point (z, y, x).
    spacing
        Distances of voxels along z, y and x, in mm where `is_mm`.
    """

    pictures: Mapping[str, NDArray[Any]]
    masks: NDArray[np.bool_]
    raters: tuple[int, ...]
    votes: NDArray[np.uint16]
    probabilities: NDArray[np.floating]
    spacing: tuple[float, float, float]
    is_mm: bool

    @property
    def unit(self) -> str:
        """In what `spacing` is, as napari calls it."""
        return "millimeter" if self.is_mm else "pixel"


def disagreement_colormap(n_raters: int) -> Colormap:
    """Colour votes by how far raters disagree, 1 - |2 v/n - 1|: clear where all are of one mind.

    From transparent over purple to pink: no grey of the image, no blue or orange of outlines.
    """
    share = np.arange(n_raters + 1) / max(n_raters, 1)
    heat = 1 - np.abs(2 * share - 1)
    colours = np.zeros((n_raters + 1, 4))
    anchors = np.array([[0.4, 0.0, 0.55], [0.85, 0.1, 0.85], [1.0, 0.65, 1.0]])
    for channel in range(3):
        colours[:, channel] = np.interp(heat, [0, 0.5, 1], anchors[:, channel])
    colours[:, 3] = np.where(heat > 0, 0.2 + 0.35 * heat, 0)
    return Colormap(colours, name=f"disagreement of {n_raters}", interpolation="linear")


def as_volume(image: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Make a volume of one slice of an image of two spatial dimensions."""
    return image[np.newaxis] if ndim == 2 else image


def picture_layer_data(picture: CasePicture) -> tuple[Any, dict[str, Any], str]:
    """Give data, options and type of the layer that shows the first image of a case."""
    name, values = next(iter(_named_images(picture).items()))
    return values, _image_options(name, values, picture.spacing, picture.unit, "image"), "image"


def _named_images(picture: CasePicture) -> dict[str, NDArray[Any]]:
    """Give the images of a case by the names of their layers; a black one where there is none."""
    images = {f"image {name}".strip(): values for name, values in picture.pictures.items()}
    return images or {"no image": np.broadcast_to(np.uint8(0), picture.votes.shape)}


def _image_options(
    name: str, values: NDArray[Any], spacing: tuple[float, ...], unit: str, role: str
) -> dict[str, Any]:
    return {
        "name": name,
        "rgb": values.ndim == 4,
        "scale": spacing,
        "units": (unit,) * 3,
        "metadata": {OWNER: role},
    }


class RatedScene:
    """The layers in a viewer.

    Parameters
    ----------
    viewer
        The viewer.
    settings
        The levels.
    """

    def __init__(self, viewer: napari.Viewer, settings: RatersSettings) -> None:
        self._viewer, self._settings = viewer, settings
        self._picture: CasePicture | None = None
        self.level = len(settings.levels) // 2
        self.only_level = True
        self.shown = {Shown.RATERS, Shown.REFERENCE, Shown.PREDICTION, Shown.DISAGREEMENT}
        self._by_votes: NDArray[np.uint8] = np.zeros(1, np.uint8)
        self._is_filling = False
        self._units: dict[str, str] = {}
        viewer.dims.events.current_step.connect(self._on_step)
        viewer.scene.camera.events.zoom.connect(self._on_zoom)

    @property
    def slice_number(self) -> int:
        """The slice that is looked at."""
        steps = self._viewer.dims.current_step
        n = 1 if self._picture is None else self._picture.votes.shape[0]
        return min(int(steps[0]), n - 1) if len(steps) > 2 else 0

    def show(self, picture: CasePicture, *, is_new_case: bool) -> None:
        """Show a case instead of the one before; another case is looked at as a whole."""
        self._picture = picture
        self._by_votes = levels_reached_by_votes(len(picture.raters), self._settings)
        # Layers that are added move slider and camera, which would draw outlines in between.
        self._is_filling = True
        try:
            self._fill_images(picture)
            self._fill_overlays(picture)
            take_unit(self._viewer, self._unit)
        finally:
            self._is_filling = False
        self.set_shown(self.shown)
        self._viewer.layers.selection.active = self._vectors(Shown.RATERS)
        self._viewer.dims.axis_labels = ("slice", "y", "x")
        self._viewer.canvas.overlays.scale_bar.visible = picture.is_mm
        if is_new_case:
            self._viewer.reset_view()
            self._on_zoom()

    def set_level(self, level: int, *, only: bool) -> None:
        """Choose a level, and whether the others are drawn as well."""
        self.level, self.only_level = level, only
        self._draw_outlines()

    def set_shown(self, shown: set[Shown]) -> None:
        """Choose what is shown over the image."""
        self.shown = shown
        self._draw_outlines()
        for layer in self._own():
            if layer.name == DISAGREEMENT:
                layer.visible = Shown.DISAGREEMENT in shown

    def go_to_slice(self, number: int) -> None:
        """Look at another slice."""
        self._viewer.dims.set_current_step(0, number)

    def close(self) -> None:
        """Let go of the viewer; layers stay as they are."""
        self._viewer.dims.events.current_step.disconnect(self._on_step)
        self._viewer.scene.camera.events.zoom.disconnect(self._on_zoom)

    # --- filling ---------------------------------------------------------------------------------

    def _fill_images(self, picture: CasePicture) -> None:
        wanted = _named_images(picture)
        for layer in self._own():
            if layer.metadata[OWNER] == "image" and layer.name not in wanted:
                layer.visible = False
        for number, (name, values) in enumerate(wanted.items()):
            layer = self._image(name, values, picture.spacing, role="image")
            if not layer.rgb:
                low, high, lowest, highest = _contrast(values)
                layer.contrast_limits_range = (lowest, highest)
                layer.contrast_limits = (low, high)
            layer.visible = number == 0

    def _fill_overlays(self, picture: CasePicture) -> None:
        n = len(picture.raters)
        votes = picture.votes.astype(np.uint8) if n < 256 else picture.votes
        layer = self._image(DISAGREEMENT, votes, picture.spacing)
        layer.colormap = disagreement_colormap(n)
        layer.contrast_limits = (0, n)
        layer.blending = "translucent"
        probability = self._image(PROBABILITY, picture.probabilities, picture.spacing)
        probability.contrast_limits = (0, 1)
        probability.colormap = "inferno"
        probability.blending = "additive"
        for shown in _OUTLINES:
            if self._vectors(shown) is None:
                self._add_vectors(shown)

    def _image(
        self,
        name: str,
        values: NDArray[Any],
        spacing: tuple[float, ...],
        *,
        role: str = "overlay",
    ) -> Image:
        is_rgb = values.ndim == 4
        # Colours cannot be changed for grey ones in a layer that is there.
        for layer in self._own():
            if isinstance(layer, Image) and layer.name == name and layer.rgb == is_rgb:
                layer.data = values
                self._give_place(layer)
                return layer
        options = _image_options(name, values, spacing, self._unit, role)
        added: Image = self._viewer.add_image(values, **options, visible=name != PROBABILITY)
        place = len(self._viewer.layers) - 1
        if role == "image" and place > 0:
            self._viewer.layers.move(place, 0)  # below what lies over it
        return added

    @property
    def _unit(self) -> str:
        return "pixel" if self._picture is None else self._picture.unit

    def _give_place(self, layer: Layer) -> None:
        """Set scale and unit where they differ: either has everything measured anew."""
        if self._picture is None:
            return
        spacing = self._picture.spacing[-layer.ndim :]
        if not np.array_equal(layer.scale, spacing) or self._units.get(layer.name) != self._unit:
            layer.scale, layer.units = spacing, (self._unit,) * layer.ndim
            self._units[layer.name] = self._unit

    def _vectors(self, shown: Shown) -> Vectors | None:
        """Give the layer of outlines; None where somebody, or the closing window, removed it."""
        for layer in self._own():
            if layer.metadata[OWNER] == str(shown) and isinstance(layer, Vectors):
                return layer
        return None

    def _add_vectors(self, shown: Shown) -> None:
        self._viewer.add_vectors(
            np.zeros((0, 2, 2), np.float32),
            ndim=2,
            units=(self._unit,) * 2,
            name=_OUTLINES[shown],
            vector_style="line",
            metadata={OWNER: str(shown)},
        )

    def _own(self) -> list[Layer]:
        return [layer for layer in self._viewer.layers if OWNER in layer.metadata]

    # --- outlines --------------------------------------------------------------------------------

    def _draw_outlines(self) -> None:
        """Draw what is wanted of the slice that is looked at; all else stays hidden."""
        for shown in _OUTLINES:
            layer = self._vectors(shown)
            if layer is not None and shown in self.shown:
                self._fill(layer, self._lines(shown))
            elif layer is not None:
                layer.visible = False

    def _lines(self, shown: Shown) -> list[Line]:
        picture = self._picture
        if picture is None:
            return []
        z = self.slice_number
        if shown is Shown.RATERS:
            return [
                (outline_segments(mask[z]), rater_colour(number), 0.9)
                for mask, number in zip(picture.masks, picture.raters, strict=True)
            ]
        if shown is Shown.REFERENCE:
            return self._level_lines(self._by_votes[picture.votes[z]], REFERENCE_COLOURS)
        reached = levels_reached(picture.probabilities[z], self._settings)
        return self._level_lines(reached, PREDICTION_COLOURS)

    def _level_lines(self, reached: NDArray[Any], ends: tuple[Rgb, Rgb]) -> list[Line]:
        return [
            (outline_segments(reached > place), colour, 1.0 if place == self.level else FAINT)
            for place, colour in enumerate(level_colours(ends, len(self._settings.levels)))
            if place == self.level or not self.only_level
        ]

    def _fill(self, layer: Vectors, lines: Sequence[Line]) -> None:
        nothing = np.zeros((0, 2, 2), np.float32)
        segments = np.concatenate([nothing, *(own for own, _, _ in lines)])
        # Shown first: napari finds out only then which segments there are to be coloured.
        layer.visible = True
        self._give_place(layer)
        layer.data = np.stack([segments[:, 0], segments[:, 1] - segments[:, 0]], axis=1)
        if len(segments):
            counts = [len(own) for own, _, _ in lines]
            colours = [[*(c / 255 for c in colour), alpha] for _, colour, alpha in lines]
            layer.edge_color = np.repeat(np.array(colours), counts, axis=0)

    def _on_step(self) -> None:
        if not self._is_filling:
            self._draw_outlines()

    def _on_zoom(self) -> None:
        """Keep outlines as wide on the screen as they are."""
        picture = self._picture
        if picture is None or self._is_filling:
            return
        for shown, line_px in LINE_PX.items():
            layer = self._vectors(shown)
            width = line_px / (float(self._viewer.scene.camera.zoom) * picture.spacing[-1])
            if layer is not None and abs(layer.edge_width - width) > 0.05 * width:
                layer.edge_width = width


def _contrast(values: NDArray[Any]) -> tuple[float, float, float, float]:
    """Give the 1st and 99th percentile, the least and the greatest value."""
    some = values.ravel()[:: max(1, values.size // SAMPLED)].astype(np.float64)
    some = some[np.isfinite(some)]
    if not some.size:
        return 0.0, 1.0, 0.0, 1.0
    low, high = (float(value) for value in np.percentile(some, [1, 99]))
    lowest, highest = float(some.min()), float(some.max())
    top = max(high, low + 1e-6)
    return low, top, lowest, max(highest, top)


def hide_layers(viewer: Any) -> None:
    """Hide what a desk has left behind; the next one fills it again."""
    for layer in viewer.layers:
        if OWNER in layer.metadata:
            layer.visible = False
