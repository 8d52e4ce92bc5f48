"""Where the camera of a viewer looks, and how large things are on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from napari.components import ViewerModel
from numpy.typing import NDArray

from napari_panoptic.display.marks import box_of
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.viewer.kit.napari_private import moved_once

MARGIN = 0.02
"""Empty border around a region that fills the canvas, as a share of the canvas."""
FITTED_SHARE = 0.8
"""A region that is visible as a whole and covers more of one direction fills the canvas."""
SMALL_SHARE, COMFORTABLE_SHARE = 0.05, 0.1
"""Centring zooms in on an object below the first share of the canvas, to the second."""
SMALLEST_ON_SCREEN_PX, AIM_ON_SCREEN_PX = 64, 80
"""An object to be judged is at least as large as the first; one that is not gets the second."""
SEARCHED_SHARE = 0.4
"""A place in which to look for something covers at least this share of the canvas."""
LARGEST_SHARE, LARGEST_FOLLOWED_SHARE = 0.9, 0.35
"""The most of the canvas that such an object covers, and where an earlier one set the zoom."""
RING_ON_SCREEN_PX = 3.5
"""Width of each ring around the selected object, on the screen."""
LINE_AROUND_PX = 4.0
"""Distance of the line around the selected object from it, on the screen."""
MAX_RING_PX = 8
"""The most of either in the image, where it is seen from far away."""


def fit(viewer: ViewerModel, shape: tuple[int, int], pixels: PixelSize) -> None:
    """Show a whole region of a shape (y, x) in pixels in the canvas or in a cell of it."""
    height, width = shape
    middle = pixels.to_world(((height - 1) / 2, (width - 1) / 2))
    camera = viewer.scene.camera
    zoom = _whole_zoom(viewer, shape, pixels)
    with moved_once(viewer):
        camera.center = (0.0, *middle)
        camera.zoom = zoom


def is_fitted(
    viewer: ViewerModel, shape: tuple[int, int], pixels: PixelSize, canvas: NDArray[np.float64]
) -> bool:
    """Return whether a whole region is in sight and fills a canvas, about as `fit` shows it.

    Parameters
    ----------
    viewer
        Whose camera counts.
    shape
        Shape (y, x) of the region in px.
    pixels
        How large pixels are.
    canvas
        Height and width of the canvas on the screen.
    """
    box = (0, 0, *shape)
    _, extent = _place(box, pixels)
    share = float((extent * viewer.scene.camera.zoom / canvas).max())
    return share > FITTED_SHARE and is_in_sight(viewer, box, pixels, canvas)


def is_in_sight(
    viewer: ViewerModel, box: Sequence[float], pixels: PixelSize, canvas: NDArray[np.float64]
) -> bool:
    """Return whether a box (y0, x0, y1, x1 in px) lies in a canvas of a height and width."""
    middle, extent = _place(box, pixels)
    camera = viewer.scene.camera
    beyond = np.abs(middle - camera.center[-2:]) + extent / 2 > canvas / camera.zoom / 2
    return not beyond.any()


def on_canvas(
    viewer: ViewerModel, box: Sequence[float], pixels: PixelSize
) -> tuple[float, float, float, float]:
    """Return where a box (y0, x0, y1, x1 in px) is on a canvas without cells, in the same order."""
    middle, extent = _place(box, pixels)
    zoom = viewer.scene.camera.zoom
    at = (middle - viewer.scene.camera.center[-2:]) * zoom + canvas_size(viewer) / 2
    (y0, x0), (y1, x1) = at - extent * zoom / 2, at + extent * zoom / 2
    return float(y0), float(x0), float(y1), float(x1)


def centre(
    viewer: ViewerModel,
    box: Sequence[float],
    pixels: PixelSize,
    *,
    within: tuple[int, int] | None = None,
    only_if_hidden: bool = False,
) -> None:
    """Bring a box to the middle of the canvas, or as near as the border of an image allows.

    An object that is small from afar is brought nearer.

    Parameters
    ----------
    viewer
        Whose camera moves.
    box
        (y0, x0, y1, x1) in px.
    pixels
        How large pixels are.
    within
        Shape (y, x) in px of an image: no empty border is shown beside it, and the view stays
        where the box and its neighbourhood are in sight at this zoom.
    only_if_hidden
        Leave the view alone if the box can be seen, and the zoom in any case.
    """
    if only_if_hidden and is_in_sight(viewer, box, pixels, canvas_size(viewer)):
        return
    middle, extent = _place(box, pixels)
    camera = viewer.scene.camera
    canvas = canvas_size(viewer) / camera.zoom
    zoom, share = float(camera.zoom), float((extent / canvas).max())
    if not only_if_hidden and share < SMALL_SHARE:
        zoom *= COMFORTABLE_SHARE / share
    if within is not None:
        look_at(viewer, box, pixels, within, zoom)
        return
    camera.center = (0.0, float(middle[0]), float(middle[1]))
    camera.zoom = zoom


def look_at(
    viewer: ViewerModel,
    box: Sequence[float],
    pixels: PixelSize,
    shape: tuple[int, int],
    zoom: float,
) -> None:
    """Show a box (y0, x0, y1, x1 in px) at a zoom, without an empty border beside the image.

    The view stays if the zoom does and the box is in sight with its neighbourhood: once its
    larger side on each side, as far as the image of a shape (y, x) in px reaches.
    """
    camera = viewer.scene.camera
    (height, width), (y0, x0, y1, x1) = shape, (float(value) for value in box)
    around = max(y1 - y0, x1 - x0)
    seen = (
        max(y0 - around, 0),
        max(x0 - around, 0),
        min(y1 + around, height),
        min(x1 + around, width),
    )
    is_kept = np.isclose(zoom, camera.zoom)
    if is_kept and is_in_sight(viewer, seen, pixels, canvas_size(viewer)):
        return
    y, x = _within_border(viewer, _place(box, pixels)[0], pixels, shape, zoom)
    with moved_once(viewer):
        camera.center = (0.0, float(y), float(x))
        camera.zoom = zoom


def drop_border(viewer: ViewerModel, shape: tuple[int, int], pixels: PixelSize) -> None:
    """Move the view so that it shows no empty border beside an image of a shape (y, x) in px."""
    camera = viewer.scene.camera
    middle = np.array(camera.center[-2:])
    inside = _within_border(viewer, middle, pixels, shape, float(camera.zoom))
    if not np.allclose(inside, middle):
        camera.center = (0.0, float(inside[0]), float(inside[1]))


class Follow:
    """Brings one object after another into view, large enough to judge.

    The user's own zoom is kept if it suits the object. It comes back as soon as an object
    needs no other one.
    """

    def __init__(self) -> None:
        self._own_zoom = self._followed_zoom = 0.0

    def bring(
        self,
        viewer: ViewerModel,
        box: Sequence[float],
        pixels: PixelSize,
        *,
        within: tuple[int, int],
        least_share: float = 0.0,
    ) -> None:
        """Show a box as `look_at` does, and zoom where it is too small or too large.

        Parameters
        ----------
        viewer
            Whose camera moves.
        box
            (y0, x0, y1, x1) in px.
        pixels
            How large pixels are.
        within
            Shape (y, x) in px of the image, beside which no empty border is shown.
        least_share
            The least of the canvas that it covers.
        """
        camera, canvas = viewer.scene.camera, canvas_size(viewer)
        _, extent = _place(box, pixels)
        larger, zoom = float(extent.max()), float(camera.zoom)
        is_followed = bool(np.isclose(zoom, self._followed_zoom))
        if not is_followed:
            self._own_zoom = zoom
        is_vast = is_followed and larger * zoom > LARGEST_FOLLOWED_SHARE * canvas.min()
        if is_vast:
            zoom = min(zoom, max(self._own_zoom, _whole_zoom(viewer, within, pixels)))
        if larger * zoom < SMALLEST_ON_SCREEN_PX:
            zoom = AIM_ON_SCREEN_PX / larger
        zoom = max(zoom, least_share * float(canvas.min()) / larger)
        zoom = min(zoom, LARGEST_SHARE * float((canvas / extent).min()))
        self._followed_zoom = zoom
        look_at(viewer, box, pixels, within, zoom)


class RegionCamera:
    """Brings the shown region, its objects, and boxes (y0, x0, y1, x1 in px) of it into view.

    Parameters
    ----------
    viewer
        Whose camera moves.
    snapshot
        Returns the shown region, if any.
    """

    def __init__(self, viewer: ViewerModel, snapshot: Callable[[], RegionSnapshot | None]) -> None:
        self._viewer, self._snapshot, self._follow = viewer, snapshot, Follow()

    @property
    def pixels(self) -> PixelSize:
        """How large pixels are."""
        return PixelSize.of(self._snapshot())

    @property
    def zoom(self) -> float:
        """How large an image pixel is on the screen."""
        return zoom(self._viewer, self.pixels)

    def fit(self) -> None:
        """Show the whole region."""
        if (shown := self._snapshot()) is not None:
            fit(self._viewer, shown.shape, self.pixels)

    def is_whole_in_sight(self, canvas: NDArray[np.float64]) -> bool:
        """Return whether the whole region fills a canvas of a height and width on the screen."""
        snapshot = self._snapshot()
        return snapshot is not None and is_fitted(self._viewer, snapshot.shape, self.pixels, canvas)

    def is_object_in_sight(self, selection: Selection, canvas: NDArray[np.float64]) -> bool:
        """Return whether an object lies in a canvas of a height and width on the screen."""
        return any(
            is_in_sight(self._viewer, box, self.pixels, canvas) for box in self._box(selection)
        )

    def on_canvas(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """Return where a box is on the canvas, in the same order."""
        return on_canvas(self._viewer, box, self.pixels)

    def centre(self, selection: Selection) -> None:
        """Bring an object exactly to the middle of the canvas; from afar, nearer."""
        for box in self._box(selection):
            self.centre_box(box)

    def centre_box(self, box: Sequence[float]) -> None:
        """Bring a box to the middle of the canvas, as `centre` does."""
        centre(self._viewer, box, self.pixels)

    def show_object(self, selection: Selection, *, only_if_hidden: bool = False) -> None:
        """Bring an object as near to the middle of the canvas as the image's border allows.

        Parameters
        ----------
        selection
            The object.
        only_if_hidden
            Leave the view alone if the object can be seen, and the zoom in
            any case.
        """
        for box in self._box(selection):
            self.show_box(box, only_if_hidden=only_if_hidden)

    def show_box(self, box: Sequence[float], *, only_if_hidden: bool = False) -> None:
        """Bring a box near to the middle, as `show_object` does."""
        if (shown := self._snapshot()) is not None:
            centre(
                self._viewer, box, self.pixels, within=shown.shape, only_if_hidden=only_if_hidden
            )

    def bring_into_view(self, selection: Selection) -> None:
        """Show an object as `show_object` does, large enough on the screen to judge it."""
        for box in self._box(selection):
            self.bring_box_into_view(box, least=0)

    def bring_box_into_view(self, box: Sequence[float], *, least: float = SEARCHED_SHARE) -> None:
        """Show a box, large enough to look for something in it."""
        if (shown := self._snapshot()) is not None:
            self._follow.bring(
                self._viewer, box, self.pixels, within=shown.shape, least_share=least
            )

    def _box(self, selection: Selection) -> list[list[float]]:
        """Return the box of an object; nothing if it is not in the region."""
        box = box_of(self._snapshot(), selection)
        return [] if box is None else [box.tolist()]


def canvas_size(viewer: ViewerModel) -> NDArray[np.float64]:
    """Return height and width of the canvas, or of its cell where there are several."""
    return np.array(viewer.canvas.viewbox_size(viewer.layers), float)


def zoom(viewer: ViewerModel, pixels: PixelSize) -> float:
    """Return how large an image pixel is on the screen."""
    return float(viewer.scene.camera.zoom) * min(pixels.scale)


def ring_px(zoom: float, on_screen_px: float) -> int:
    """Return the width, in image pixels, of a ring of a width on the screen."""
    return int(np.clip(round(on_screen_px / zoom), 1, MAX_RING_PX))


def _whole_zoom(viewer: ViewerModel, shape: tuple[int, int], pixels: PixelSize) -> float:
    """Return the zoom at which a whole region fills the canvas."""
    extent = np.array(pixels.extent(shape))
    return (1 - MARGIN) * float(np.min(canvas_size(viewer) / extent))


def _place(
    box: Sequence[float], pixels: PixelSize
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle and the extent (y, x) in the world of a box (y0, x0, y1, x1) in px."""
    y0, x0, y1, x1 = (float(value) for value in box)
    middle = pixels.to_world(((y0 + y1 - 1) / 2, (x0 + x1 - 1) / 2))
    return np.array(middle), np.array(pixels.extent((y1 - y0, x1 - x0)))


def _within_border(
    viewer: ViewerModel,
    middle: NDArray[np.float64],
    pixels: PixelSize,
    shape: tuple[int, int],
    zoom: float,
) -> NDArray[np.float64]:
    """Return the middle of the view (y, x) that is nearest to one and shows no empty border.

    An image that is smaller than the canvas is centred.
    """
    whole_middle, whole = _place((0, 0, *shape), pixels)
    furthest = np.maximum(whole - canvas_size(viewer) / zoom, 0) / 2
    return np.clip(middle, whole_middle - furthest, whole_middle + furthest)
