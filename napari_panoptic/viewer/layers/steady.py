"""Keeps the view when the canvas changes its size, for example with another workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from napari.components import ViewerModel
from numpy.typing import NDArray

from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.layers.camera import canvas_size

SETTLE_MS = 60
"""How long the canvas keeps its size before the view follows: docks are laid out in steps."""


class Fitted(Protocol):
    """What can be shown as a whole."""

    def fit(self) -> None:
        """Show all of it."""

    def is_whole_in_sight(self, canvas: NDArray[np.float64]) -> bool:
        """Return whether all of it fills a canvas of a height and width on the screen."""


class SteadyView:
    """Keeps in view what was in view before the canvas changed its size.

    A region that filled the canvas fills it again. Otherwise the camera moves only if `keep`
    moves it.

    Parameters
    ----------
    viewer
        The viewer.
    scene
        What the viewer shows.
    keep
        Called with the size of the canvas before, where the user has zoomed.
    """

    def __init__(
        self,
        viewer: ViewerModel,
        scene: Fitted,
        keep: Callable[[NDArray[np.float64]], None] = lambda _canvas: None,
    ) -> None:
        self._viewer, self._scene, self._keep = viewer, scene, keep
        self._canvas = canvas_size(viewer)  # when the camera last moved
        self._fitted_zoom: float | None = None  # of a whole region, until the view follows
        self._later = single_shot(SETTLE_MS, self._follow)
        self._events = (viewer.scene.camera.events.center, viewer.scene.camera.events.zoom)
        for event in self._events:
            event.connect(self._remember)
        viewer.canvas.events.size.connect(self._wait)

    @property
    def is_busy(self) -> bool:
        """Whether the view has yet to follow the canvas."""
        return self._later.isActive()

    def release(self) -> None:
        """Leave the camera alone from now on."""
        stop_timers(self._later)
        for event in self._events:
            event.disconnect(self._remember)
        self._viewer.canvas.events.size.disconnect(self._wait)

    def _remember(self) -> None:
        self._canvas = canvas_size(self._viewer)

    def _wait(self) -> None:
        if self._scene.is_whole_in_sight(self._canvas):
            self._fitted_zoom = self._viewer.scene.camera.zoom
        self._later.start()

    def _follow(self) -> None:
        before = self._canvas
        # An object may have been brought to the middle meanwhile, at the same zoom.
        has_zoom_of_whole = self._viewer.scene.camera.zoom == self._fitted_zoom
        self._fitted_zoom = None
        self._remember()
        if has_zoom_of_whole or self._scene.is_whole_in_sight(before):
            self._scene.fit()
        else:
            self._keep(before)
