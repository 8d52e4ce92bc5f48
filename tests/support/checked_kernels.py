"""Take the kernels that check every index, which `scripts/checked.sh` compiles: a plugin of pytest.

It is imported before any kernel. Programs that tests start take the ordinary kernels.
"""

from __future__ import annotations

import sys

from napari_panoptic import kernels
from tests.support.paths import REPOSITORY

FOLDER = REPOSITORY / "build/checked/napari_panoptic/kernels"

if "napari_panoptic.kernels.counts" in sys.modules or not any(FOLDER.glob("counts.*")):
    raise RuntimeError(f"expected checked kernels in {FOLDER}: run scripts/checked.sh before")
kernels.__path__.insert(0, str(FOLDER))
