"""The sample cohort of several raters: drawn by a seeded generator, in the folders of QUBIQ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.samples.write import write_once

RATERS_SAMPLE_NAME = "Structures, several raters (sample cohort)"
RATERS_SAMPLE_SEED = 2021
SAMPLE_TEAMS = ("calibrated", "overconfident", "shifted")
"""Each is what its name says; shifted also lacks one prediction."""
FLAT, DEEP = "prostate", "kidney"
"""Data sets of the sample: slices with two structures, and a small volume with one."""
N_FLAT, N_FLAT_RATERS, N_DEEP_RATERS = 4, 6, 3
FLAT_SHAPE, DEEP_SHAPE = (160, 160), (20, 96, 96)
FLAT_MM, DEEP_MM = (0.6, 0.6), (3.0, 0.8, 0.8)

_DESCRIPTION = f"""# Drawn by a program: no patient, no scanner, no rater.
# The folders are those of QUBIQ, which need no description of their own.
task = "raters"
name = "{RATERS_SAMPLE_NAME}"
"""
_SOFTNESS_PX = {"calibrated": 2.2, "overconfident": 0.15, "shifted": 2.2}
_SHIFT_PX = {"calibrated": 0, "overconfident": 1, "shifted": 4}


@dataclass(frozen=True, eq=False)
class _Structure:
    """How far inside a structure each voxel lies, in px, and whose outline differs how."""

    depth_px: NDArray[np.float64]
    masks: tuple[NDArray[np.bool_], ...]


def write_raters_sample(folder: Path, *, seed: int = RATERS_SAMPLE_SEED) -> Path:
    """Write a sample cohort of several raters: four slices, one volume, three teams.

    The same seed gives the same values, always. A folder that already holds
    this cohort is left as it is.

    Parameters
    ----------
    folder
        A folder that does not exist or is empty.
    seed
        Seed of the generator.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    CohortError
        If the folder holds something else, or cannot be written.
    """
    return write_once(
        folder, _DESCRIPTION, lambda draft: _write(draft, seed), note_name=DESCRIPTION
    )


def _write(root: Path, seed: int) -> None:
    for number in range(1, N_FLAT + 1):
        rng = np.random.default_rng([seed, number])
        gland = _structure(rng, FLAT_SHAPE, (0.5, 0.5), 0.3, N_FLAT_RATERS, 2.0)
        zone = _structure(rng, FLAT_SHAPE, (0.6, 0.5), 0.13, N_FLAT_RATERS, 2.5)
        own = {"task01": gland, "task02": zone}
        # As in the challenge's own data, one case lacks a rater.
        absent = {("task01", 6), ("task02", 6)} if number == N_FLAT else set()
        _write_case(root, FLAT, f"case{number:02d}", own, FLAT_MM, rng, absent)
    rng = np.random.default_rng([seed, 0])
    kidney = _structure(rng, DEEP_SHAPE, (0.5, 0.5, 0.45), 0.27, N_DEEP_RATERS, 1.6)
    _write_case(root, DEEP, "case01", {"task01": kidney}, DEEP_MM, rng, set())
    (root / "Teams" / "shifted" / FLAT / "case02" / "task02.nii.gz").unlink()


def _structure(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    centre: tuple[float, ...],
    radius: float,
    n_raters: int,
    disagreement_px: float,
) -> _Structure:
    """Draw an uneven ellipse, and the outline that each rater sees."""
    width = shape[-1]
    grid = np.meshgrid(*(np.arange(size) + 0.5 for size in shape), indexing="ij")
    stretch = [width / size * factor for size, factor in zip(shape, (1.0, 1.15, 0.9), strict=False)]
    squares = [
        ((axis - place * size) * own) ** 2
        for axis, place, size, own in zip(grid, centre, shape, stretch, strict=True)
    ]
    depth = radius * width - np.sqrt(np.sum(squares, axis=0)) + _waves(rng, shape, 4.0)
    masks = tuple(
        depth + rng.normal(0, 0.4 * disagreement_px) + _waves(rng, shape, disagreement_px) > 0
        for _ in range(n_raters)
    )
    return _Structure(depth, masks)


def _waves(
    rng: np.random.Generator, shape: tuple[int, ...], height_px: float
) -> NDArray[np.float64]:
    waves: NDArray[np.float64] = gaussian_filter(
        rng.normal(size=shape), [size / 14 for size in shape], mode="wrap"
    )
    waves *= height_px / waves.std()
    return waves


def _write_case(
    root: Path,
    data_set: str,
    case: str,
    structures: Mapping[str, _Structure],
    spacing_mm: tuple[float, ...],
    rng: np.random.Generator,
    absent: set[tuple[str, int]],
) -> None:
    folder = root / data_set / case
    _write_nifti(folder / "image.nii.gz", _image(rng, structures), spacing_mm)
    for name, structure in structures.items():
        for rater, mask in enumerate(structure.masks, start=1):
            if (name, rater) not in absent:
                path = folder / f"{name}_seg{rater:02d}.nii.gz"
                _write_nifti(path, mask.astype(np.uint8), spacing_mm)
        for team in SAMPLE_TEAMS:
            depth = np.roll(structure.depth_px, _SHIFT_PX[team], axis=-1)
            clipped = np.clip(depth / _SOFTNESS_PX[team], -30, 30)
            found = (1 / (1 + np.exp(-clipped))).astype(np.float32)
            found[found < 0.02] = 0  # packs well
            path = root / "Teams" / team / data_set / case / f"{name}.nii.gz"
            _write_nifti(path, found, spacing_mm)


def _image(rng: np.random.Generator, structures: Mapping[str, _Structure]) -> NDArray[np.int16]:
    first = next(iter(structures.values())).depth_px
    grey = 90 + 12 * _waves(rng, first.shape, 1.0)
    for place, structure in enumerate(structures.values()):
        grey += (70 - 45 * place) / (1 + np.exp(-np.clip(structure.depth_px / 2.5, -30, 30)))
    return np.round(grey + rng.normal(0, 6, first.shape)).astype(np.int16)


def _write_nifti(path: Path, values: NDArray[np.generic], spacing_mm: tuple[float, ...]) -> None:
    """Write (y, x) as one slice, or (z, y, x); x comes first in NIfTI."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = np.atleast_3d(values.T) if values.ndim == 2 else values.T
    sizes = [*reversed(spacing_mm), 1.0][:3]
    image = nibabel.Nifti1Image(stored, np.diag([*sizes, 1.0]))
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)
