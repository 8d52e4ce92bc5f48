"""Load or compile what the window needs while it opens, so that the user need not wait later.

``python -m napari_panoptic.viewer.warm`` compiles it in advance.
"""

from __future__ import annotations

import numpy as np
from napari.utils.transforms import Affine

from napari_panoptic.nuclei.display.team_pictures import consensus_picture
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.warm_up import WARM_UP
from napari_panoptic.viewer.editing.shapes_ready import prepare_shapes


def warm_up() -> None:
    """Begin, in another thread, unless that was done before."""
    # napari's units are defined when a layer is first created. In two threads at once that fails.
    Affine(affine_matrix=np.eye(3), ndim=2)
    WARM_UP.at_last = draw_in_window
    WARM_UP.start()


def draw_in_window(snapshot: RegionSnapshot) -> None:
    """Draw what only the window draws: a consensus of three teams, and shapes."""
    found = snapshot.evaluations["T"]
    for width_px in (0, 1):
        consensus_picture({"T": found, "U": found, "V": found}, width_px)
    prepare_shapes()


if __name__ == "__main__":
    warm_up()
    WARM_UP.finish()
