"""Teams whose objects have scores in a table beside each label image."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tifffile

DESCRIPTION = """
[classes]
Tumour = [255, 0, 0]
Lymphocyte = [0, 255, 0]

[files]
reference.labels = "annotation/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""


def write_side(folder: Path, name: str, labels: np.ndarray, rows: Sequence[tuple]) -> None:
    """Write a label image and its table of id, class and, where rows have it, score."""
    folder.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(folder / f"{name}.tif", labels)
    with (folder / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "class", "score")[: len(rows[0])], *rows])
