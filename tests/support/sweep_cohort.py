"""A cohort whose teams are settings of one post-processing, from splits to mergers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray

TOML = """
name = "sweep"
[classes]
Nucleus = [255, 0, 0]
[files]
reference.labels = "reference/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""
SIZES = (1, 2, 3, 10)
"""Values of the parameter; sorted as words, 10 would be the second."""
SPLIT = {"A": (6, 3, 0, 0), "B": (6, 2, 0, 0), "C": (6, 1, 0, 0), "D": (6, 0, 0, 0)}
MERGED = {"A": (0, 0, 0, 4), "B": (0, 0, 1, 4), "C": (0, 0, 1, 4), "D": (0, 0, 2, 4)}
"""Patient -> number of 12 nuclei that are split, and of 6 pairs that are merged, by setting."""


def write_sweep_cohort(folder: Path) -> Path:
    """Write a cohort with the teams ``min_size1``, … and ``other``, a region per patient."""
    for patient in SPLIT:
        name = f"{patient}_a.tif"
        reference = _nuclei()
        write_labels(folder / "reference" / name, reference)
        for place, size in enumerate(SIZES):
            found = reference.copy()
            _split(found, SPLIT[patient][place])
            _merge(found, MERGED[patient][place])
            found[-6:-1, 2 * size : 2 * size + 5] = 99  # an FP that moves
            write_labels(folder / "teams" / f"min_size{size}" / name, found)
        write_labels(folder / "teams" / "other" / name, reference)
    (folder / "cohort.toml").write_text(TOML, "utf-8")
    return folder


def write_labels(path: Path, labels: NDArray[np.uint16]) -> None:
    """Write a label image of objects of the only class."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, labels)
    rows = [f"{id_},Nucleus" for id_ in sorted({*np.unique(labels).tolist()} - {0})]
    path.with_suffix(".csv").write_text("\n".join(["id,class", *rows, ""]), "utf-8")


def _nuclei() -> NDArray[np.uint16]:
    """Draw six pairs of nuclei, 12 x 8 px each, 2 px apart."""
    labels = np.zeros((96, 24), np.uint16)
    for id_ in range(1, 13):
        pair, second = divmod(id_ - 1, 2)
        labels[1 + 14 * pair : 13 + 14 * pair, 2 + 10 * second : 10 + 10 * second] = id_
    return labels


def _split(labels: NDArray[np.uint16], n: int) -> None:
    """Cut the last nuclei into halves."""
    for id_ in range(12, 12 - n, -1):
        rows = np.flatnonzero((labels == id_).any(axis=1))
        upper = labels[rows[0] : rows[5] + 1]
        upper[upper == id_] = 50 + id_


def _merge(labels: NDArray[np.uint16], n: int) -> None:
    """Join the first pairs."""
    for pair in range(n):
        labels[1 + 14 * pair : 13 + 14 * pair, 2:20] = 2 * pair + 1
