"""Probabilities of NIfTI files with a scale are the numbers that were scaled."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.io.images.volumes import read_probabilities

RATERS = 10


def write_scaled(path: Path, values: NDArray[np.int16], slope: float, intercept: float = 0) -> None:
    """Write whole numbers with a scale, which NIfTI-1 keeps in single precision."""
    image = nibabel.Nifti1Image(values, np.eye(4))
    image.header.set_slope_inter(slope, intercept)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.to_filename(path)
    # nibabel scales on writing; what is stored has to be the whole numbers.
    header = bytearray(path.read_bytes())
    header[112:120] = np.array([slope, intercept], "<f4").tobytes()
    path.write_bytes(header)


def test_the_raters_own_mean_in_percent_scores_1(tmp_path: Path) -> None:
    votes = np.arange(RATERS + 1, dtype=np.int16).repeat(12).reshape(11, 12)
    for rater in range(RATERS):
        folder = tmp_path / "masks" / f"r{rater}"
        folder.mkdir(parents=True)
        mask = np.where(votes > rater, 255, 0).astype(np.uint8)
        Image.fromarray(mask).save(folder / "case01_lesion.png")
    write_scaled(tmp_path / "teams" / "mean" / "case01_lesion.nii", (votes * 10).T, 0.01)
    (tmp_path / "cohort.toml").write_text(
        'task = "raters"\n[files]\nraters = "masks/{rater}/{case}_{structure}.png"\n'
        'predictions = "teams/{team}/{case}_{structure}.nii"\n'
    )
    assert main(["evaluate", str(tmp_path), "--output", str(tmp_path / "tables")]) == 0
    record = json.loads((tmp_path / "tables" / "evaluation.json").read_text("utf-8"))
    assert record["score"] == {"mean": 1.0}


@pytest.mark.parametrize("whole", [100, 1000, 255, 20, 10_000, 3])
def test_shares_are_those_that_were_scaled(tmp_path: Path, whole: int) -> None:
    path = tmp_path / "a.nii"
    numbers = np.arange(whole + 1, dtype=np.int16)
    write_scaled(path, numbers[:, None], 1 / whole)
    found = read_probabilities(path, "a map").values.ravel()
    np.testing.assert_array_equal(found, (numbers / whole).astype(np.float32))


def test_an_intercept_is_added(tmp_path: Path) -> None:
    path = tmp_path / "a.nii"
    write_scaled(path, np.array([[-32000, 0], [8000, 32000]], np.int16).T, 1 / 64000, 0.5)
    found = read_probabilities(path, "a map").values
    np.testing.assert_array_equal(found, np.array([[0, 0.5], [0.625, 1]], np.float32))
