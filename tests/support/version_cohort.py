"""A cohort of label images whose teams are versions of one model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray

PATIENTS = tuple(f"P{number}" for number in range(1, 11))
TOML = """
name = "versions"
[classes]
Round = [255, 0, 0]
Long = [0, 0, 255]
[files]
reference.labels = "reference/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""
MISSED = {"old": 3, "better": 1, "worse": 6}
"""How many of the 12 nuclei of every region a version misses, give or take one."""


def write_version_cohort(folder: Path, patients: tuple[str, ...] = PATIENTS) -> Path:
    """Write a cohort with the versions ``old``, ``better`` and ``worse``, a region per patient.

    Every version has one FP at the same place in each region, and another one of its own.
    Every fourth object that is found has the wrong class in ``old``.
    """
    folder.mkdir(parents=True)
    (folder / "cohort.toml").write_text(TOML, "utf-8")
    for number, patient in enumerate(patients):
        rng = np.random.default_rng(number)
        name = f"{patient}_a.tif"
        labels = np.zeros((60, 84), np.uint16)
        for id_ in range(1, 13):
            _draw(labels, id_, id_ - 1)
        _write(folder / "reference" / name, labels, _classes(labels))
        for version, missed in MISSED.items():
            found = np.roll(labels, 1, axis=0)
            lost = rng.permutation(12)[: missed + int(rng.integers(-1, 2))] + 1
            found[np.isin(found, lost)] = 0
            _draw(found, 20, 12)
            _draw(found, 21, {"old": 13, "better": 14, "worse": 15}[version])
            classes = _classes(found)
            if version == "old":
                classes |= {id_: "Long" for id_ in classes if id_ % 4 == 0}
            _write(folder / "teams" / version / name, found, classes)
    return folder


def _draw(labels: NDArray[np.uint16], id_: int, place: int) -> None:
    """Draw a square at one of 28 places."""
    row, column = divmod(place, 7)
    labels[2 + 14 * row : 12 + 14 * row, 2 + 12 * column : 10 + 12 * column] = id_


def _classes(labels: NDArray[np.uint16]) -> dict[int, str]:
    ids = set(np.unique(labels).tolist()) - {0}
    return {id_: "Long" if id_ % 3 == 0 else "Round" for id_ in sorted(ids)}


def _write(path: Path, labels: NDArray[np.uint16], classes: dict[int, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, labels)
    rows = [f"{id_},{name}" for id_, name in classes.items()]
    path.with_suffix(".csv").write_text("\n".join(["id,class", *rows, ""]), "utf-8")
