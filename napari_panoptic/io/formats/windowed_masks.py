"""The objects of one side of a slide that is too large to hold, as opened from disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding
from napari_panoptic.nuclei.values.windowed_labels import TiledArea, TiledLabels


@dataclass(frozen=True, eq=False)
class TiledMasks:
    """What `napari_panoptic.io.formats.format.LoadedMasks` is, without the pixels.

    Parameters
    ----------
    labels
        The scored objects; their pixels are read from the files when they are
        asked for.
    ambiguous
        Where the file marks an excluded area; None where it marks none.
    findings
        What was odd.
    findings_after
        Gives what only shows when every window has been read, from bool (n,):
        which objects turned out to have a pixel. None where nothing can.
    magnification
        That of the image in whose px the objects are, where the file says it.
    """

    labels: TiledLabels
    ambiguous: TiledArea | None
    findings: tuple[Finding, ...] = ()
    findings_after: Callable[[NDArray[np.bool_]], tuple[Finding, ...]] | None = None
    magnification: float | None = None
