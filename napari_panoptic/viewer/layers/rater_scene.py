"""The layers of a case of several raters: image, disagreement, outlines of raters and levels.

Everything has three dimensions, a slice being a volume of one. Outlines are
drawn for the slice that is looked at only. Layers are hidden and filled again,
never removed: that can upset the display between two drawings.
"""

from __future__ import annotations

from typing import Any

import napari
import numpy as np
from napari.layers import Image, Layer, Vectors
from napari.utils import Colormap
from numpy.typing import NDArray

from napari_panoptic.raters.slice_outlines import (
    CasePicture,
    OutlineChoice,
    OutlinePrefetcher,
    OutlineSegments,
    Shown,
    SliceOutlines,
    disagreement_colours,
)
from napari_panoptic.values.raters import RatersSettings
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.napari_private import moved_once, refresh_held
from napari_panoptic.viewer.layers.owned import OwnedLayers, Owner, Slot, set_units

DISAGREEMENT = "disagreement of the raters"
PROBABILITY = "predicted probability"


_OUTLINES = {
    Shown.RATERS: "outline of each rater",
    Shown.REFERENCE: "levels of the raters' mean",
    Shown.PREDICTION: "levels of the prediction",
}
LINE_PX = {Shown.REFERENCE: 2.8, Shown.PREDICTION: 2.8, Shown.RATERS: 1.5}
"""Width of outlines on the screen: raters are many, and step back."""


def disagreement_colormap(n_raters: int) -> Colormap:
    """Return the colour map of the numbers of votes (see `disagreement_colours`)."""
    colours = disagreement_colours(n_raters)
    return Colormap(colours, name=f"disagreement of {n_raters}", interpolation="linear")


def picture_layer_data(picture: CasePicture) -> tuple[Any, dict[str, Any], str]:
    """Return data, options and type of the layer that shows the first image of a case."""
    name, (_, values) = next(iter(_named_images(picture).items()))
    options = {
        "name": name,
        "rgb": values.ndim == 4,
        "scale": picture.spacing,
        "units": ("millimeter" if picture.is_mm else "pixel",) * 3,
    }
    return values, options, "image"


def image_role(name: str, values: NDArray[Any]) -> str:
    """Return the role of an image; a layer cannot change between colours and grey values."""
    return f"{name} in colour" if values.ndim == 4 else name


def _named_images(picture: CasePicture) -> dict[str, tuple[str, NDArray[Any]]]:
    """Return layer name -> modality and values of each image; a black one without any."""
    images = {
        f"image {modality}".strip(): (modality, values)
        for modality, values in picture.pictures.items()
    }
    return images or {"no image": ("", np.broadcast_to(np.uint8(0), picture.votes.shape))}


class RaterScene:
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
        self.rater: int | None = None
        self._outlines: SliceOutlines | None = None
        self._prefetcher = OutlinePrefetcher()
        self._filling = Within()
        self._own = OwnedLayers(viewer, Owner.RATERS, Slot)
        viewer.dims.events.current_step.connect(self._on_step)
        viewer.scene.camera.events.zoom.connect(self._on_zoom)

    @property
    def slice_number(self) -> int:
        """The slice that is looked at."""
        picture, place = self._picture, self._viewer.dims.point
        if picture is None or len(place) < 3:
            return 0
        # The third axis from the end: layers of others may have more axes, and other steps.
        number = round(float(place[-3]) / picture.spacing[0])
        return min(max(number, 0), len(picture.votes) - 1)

    def prepare(self) -> None:
        """Add the layers, hidden and empty, while a case is read: that takes time."""
        self._own.adopt_all()
        if list(self._own):
            return
        with self._filling:
            for role in (DISAGREEMENT, PROBABILITY):
                self._image(role, np.zeros((1, 1, 1), np.uint8), (0, 1), visible=False)
            for shown in _OUTLINES:
                self._add_vectors(shown)

    def show(self, picture: CasePicture, *, is_new_case: bool) -> None:
        """Show a case instead of the one before; another case is looked at as a whole."""
        self._picture = picture
        self._outlines, self.rater = SliceOutlines(picture, self._settings), None
        # Layers that are added move slider and camera, which would draw outlines in between.
        with self._filling:
            with moved_once(self._viewer):
                units = (self._unit,) * 3
                set_units(self._viewer, units, Owner.RATERS)  # before the image has another
                self._fill_images(picture)
                self._fill_overlays(picture)
                set_units(self._viewer, units, Owner.RATERS)
            if is_new_case:
                self.go_to_slice(picture.start)
            self.set_shown(self.shown)
        self._viewer.layers.selection.active = self._vectors(Shown.RATERS)
        dims = self._viewer.dims
        dims.axis_labels = (*dims.axis_labels[:-3], "slice", "y", "x")
        self._viewer.canvas.overlays.scale_bar.visible = picture.is_mm
        if is_new_case:
            self._viewer.reset_view()
            self._on_zoom()

    def show_nothing(self) -> None:
        """Hide and empty the layers: there is a case of which nothing is known."""
        self._picture = self._outlines = self.rater = None
        with self._filling:
            for slot in self._own:
                self._put_away(slot)

    def set_level(self, level: int) -> None:
        """Choose a level."""
        self.level = level
        self._draw_outlines()

    def set_only(self, only: bool) -> None:
        """Choose whether the other levels are left out."""
        self.only_level = only
        self._draw_outlines()

    def set_rater(self, rater: int | None) -> None:
        """Outline one rater only, by the place in the case; all where None."""
        self.rater = rater
        self._draw_outlines()

    def set_shown(self, shown: set[Shown]) -> None:
        """Choose the layers over the image."""
        self.shown = shown
        self._draw_outlines()
        is_open = self._picture is not None and Shown.DISAGREEMENT in shown
        self._own.set_visible(DISAGREEMENT, is_open)

    def go_to_slice(self, number: int) -> None:
        """Look at another slice."""
        if self._picture is not None:
            dims = self._viewer.dims
            dims.set_point(dims.ndim - 3, number * self._picture.spacing[0])

    def close(self) -> None:
        """Let go of the viewer; layers stay as they are."""
        self._viewer.dims.events.current_step.disconnect(self._on_step)
        self._viewer.scene.camera.events.zoom.disconnect(self._on_zoom)
        self._prefetcher.close()
        self._own.release()

    # --- filling ---------------------------------------------------------------------------------

    def _fill_images(self, picture: CasePicture) -> None:
        wanted = {
            image_role(name, values): (name, modality, values)
            for name, (modality, values) in _named_images(picture).items()
        }
        for slot in self._own:
            is_overlay = slot.role in (DISAGREEMENT, PROBABILITY)
            if isinstance(slot.layer, Image) and not is_overlay and slot.role not in wanted:
                self._put_away(slot)
        for number, (role, (name, modality, values)) in enumerate(wanted.items()):
            layer = self._image(role, values, (0.0, 1.0), name=name, at=0)
            if not layer.rgb:
                low, high, lowest, highest = picture.contrasts.get(modality, (0.0, 1.0, 0.0, 1.0))
                layer.contrast_limits_range = (lowest, highest)
                layer.contrast_limits = (low, high)
            self._own.set_visible(role, number == 0)

    def _fill_overlays(self, picture: CasePicture) -> None:
        n = len(picture.raters)
        layer = self._image(DISAGREEMENT, picture.votes, (0, n))
        layer.colormap = disagreement_colormap(n)
        layer.contrast_limits = (0, n)
        layer.blending = "translucent"
        probability = self._image(PROBABILITY, picture.probabilities, (0, 1), visible=False)
        probability.colormap = "inferno"
        probability.blending = "additive"
        for shown in _OUTLINES:
            if self._vectors(shown) is None:
                self._add_vectors(shown)

    def _image(
        self,
        role: str,
        values: NDArray[Any],
        limits: tuple[float, float],
        *,
        name: str | None = None,
        at: int | None = None,
        visible: bool = True,
    ) -> Any:
        """Set the values of an image, which is added if it is not there.

        Without limits napari would search the values for them.
        """
        layer = self._own.layer(role)
        if layer is not None:
            layer.data = values
            self._put_in_place(layer)
            return layer
        picture, is_rgb = self._picture, values.ndim == 4
        layer = Image(
            values,
            name=name or role,
            rgb=is_rgb,
            contrast_limits=None if is_rgb else limits,
            scale=None if picture is None else picture.spacing,
            units=(self._unit,) * 3,
            visible=visible,
        )
        return self._own.add(role, layer, at=at).layer

    @property
    def _unit(self) -> str:
        return "millimeter" if self._picture is not None and self._picture.is_mm else "pixel"

    def _put_in_place(self, layer: Layer) -> None:
        """Set scale and unit if they differ: setting either measures everything again."""
        if self._picture is None:
            return
        spacing = self._picture.spacing[-layer.ndim :]
        if not np.array_equal(layer.scale, spacing) or str(layer.units[0]) != self._unit:
            layer.scale, layer.units = spacing, (self._unit,) * layer.ndim

    def _put_away(self, slot: Slot) -> None:
        """Hide a layer and empty it, so that it cannot be taken for the shown case."""
        layer = slot.layer
        self._own.hide_empty(slot.role)
        if isinstance(layer, Vectors) and len(layer.data):
            layer.data = np.zeros((0, 2, 2), np.float32)
        elif isinstance(layer, Image) and layer.data.shape[:3] != (1, 1, 1):
            layer.data = np.zeros((1, 1, 1, 3) if layer.rgb else (1, 1, 1), layer.data.dtype)
        layer.thumbnail = np.zeros_like(layer.thumbnail)  # napari draws none of hidden layers

    def _vectors(self, shown: Shown) -> Vectors | None:
        """Return the layer of outlines; None if the user, or the closing window, removed it."""
        layer: Vectors | None = self._own.layer(str(shown))
        return layer

    def _add_vectors(self, shown: Shown) -> None:
        layer = Vectors(
            np.zeros((0, 2, 2), np.float32),
            ndim=2,
            units=(self._unit,) * 2,
            name=_OUTLINES[shown],
            vector_style="line",
            visible=False,
        )
        self._own.add(str(shown), layer)

    # --- outlines --------------------------------------------------------------------------------

    def _draw_outlines(self) -> None:
        """Draw the wanted layers of the shown slice; all else stays hidden."""
        picture, outlines = self._picture, self._outlines
        looks = set()
        for shown in _OUTLINES:
            slot = self._own.slot(str(shown))
            if slot is not None and shown in self.shown and outlines is not None:
                look = OutlineChoice(shown, self.level, self.only_level, self.rater)
                self._fill(slot, outlines.of(self.slice_number, look))
                looks.add(look)
            elif slot is not None:
                self._put_away(slot)
        if picture is not None and outlines is not None:
            self._prefetcher.request(outlines, self.slice_number, len(picture.votes), looks)

    def _fill(self, slot: Slot, outlines: OutlineSegments) -> None:
        """Show outlines in one go, or napari would measure and draw after each change."""
        layer = slot.layer
        with refresh_held(layer), layer.events.edge_color.blocker():
            layer.data = outlines.vectors
            if len(outlines.vectors):
                layer.edge_color = outlines.colours
            self._put_in_place(layer)
            self._own.set_visible(slot.role, True)
        # A thumbnail is drawn segment by segment, which takes longer than all else.
        layer.refresh(thumbnail=False, extent=bool(self._filling))

    def _on_step(self) -> None:
        if not self._filling:
            self._draw_outlines()

    def _on_zoom(self) -> None:
        """Keep outlines as wide on the screen as they are."""
        picture = self._picture
        if picture is None or self._filling:
            return
        for shown, line_px in LINE_PX.items():
            layer = self._vectors(shown)
            width = line_px / (float(self._viewer.scene.camera.zoom) * picture.spacing[-1])
            if layer is not None and abs(layer.edge_width - width) > 0.05 * width:
                with refresh_held(layer):
                    layer.edge_width = width
                layer.refresh(thumbnail=False, extent=False)
