"""Files that other programs wrote, and what is in them.

``labels.png`` holds ellipses under their numbers. ``hovernet.json`` and ``tiatoolbox-2.1.3.db``
hold their contours as OpenCV 5.0.0 finds them (RETR_TREE, CHAIN_APPROX_SIMPLE, object by object, as
HoVer-Net's post-processing calls it), the latter written by TIAToolbox 2.1.3 from Shapely polygons.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.support.paths import REPOSITORY

FOLDER = REPOSITORY / "tests" / "data" / "contours"
HOVERNET = FOLDER / "hovernet.json"


def label_image() -> NDArray[np.int64]:
    """Give the objects that the files outline."""
    return np.asarray(Image.open(FOLDER / "labels.png")).astype(np.int64)


def tiatoolbox_store(folder: Path) -> Path:
    """Unpack the annotation store."""
    path = folder / "tiatoolbox.db"
    path.write_bytes(gzip.decompress((FOLDER / "tiatoolbox-2.1.3.db.gz").read_bytes()))
    return path
