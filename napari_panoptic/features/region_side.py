"""The objects of one side of one region, as features measure them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.values.labels import LabelImage

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, eq=False)
class RegionSide:
    """The objects of one side of one region, as functions that compute features receive them."""

    #: Names of the patient, the region and the team.
    patient: str
    region: str
    team: str
    #: The objects as a label image, row by row those of `outcomes`.
    labels: LabelImage
    #: Their outcomes, which features must not depend on, and ids, classes, areas and boxes.
    outcomes: SideOutcomes
    #: The image, of the size of the label image; None if there is none that can be read.
    image: SlideImage | None
    #: Micrometres per pixel, or None.
    mpp: float | None
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.labels)

    def once(self, compute: Callable[[RegionSide], ValueT]) -> ValueT:
        """Return what a function returns for these objects; it is called once."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        found: ValueT = self._known[compute]
        return found

    def in_px(self, length_um: float, length_px: float) -> float:
        """Return a length in px, given it in µm, and in px for an unknown size of pixels."""
        return length_px if self.mpp is None else length_um / self.mpp

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """float64 (n, 6): area, sums of y and x, and central sums of y², x² and yx, in px."""
        return _moments(self.labels)

    @property
    def centroid_yx_px(self) -> NDArray[np.float64]:
        """float64 (n, 2): centroids of the whole objects."""
        centroids: NDArray[np.float64] = self.moments[:, 1:3] / self.moments[:, :1]
        return centroids


def _moments(labels: LabelImage) -> NDArray[np.float64]:
    sums = np.zeros((3, len(labels) + 1))
    pixels = []
    for sheet in labels.sheets:
        y, x = np.nonzero(sheet)
        objects = sheet[y, x]
        pixels.append((objects, y, x))
        for k, weights in enumerate((None, y, x)):
            sums[k] += np.bincount(objects, weights, minlength=len(labels) + 1)
    with np.errstate(invalid="ignore"):
        centre_y, centre_x = sums[1:] / sums[0]
    central = np.zeros((3, len(labels) + 1))
    for objects, y, x in pixels:
        dy, dx = y - centre_y[objects], x - centre_x[objects]
        for k, product in enumerate((dy * dy, dx * dx, dy * dx)):
            central[k] += np.bincount(objects, product, minlength=len(labels) + 1)
    return np.concatenate([sums, central])[:, 1:].T
