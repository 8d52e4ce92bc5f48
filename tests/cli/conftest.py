"""What tests of several commands share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

OWN_TABLE = "region,patient\nr0,A\nr1,B\n"


@pytest.fixture
def pannuke(tmp_path: Path) -> Path:
    """An annotation, one team, and the names of the regions beside the annotation."""
    masks = np.zeros((2, 16, 16, 6), np.int32)
    masks[:, 2:8, 2:8, 0] = 1
    masks[:, 9:14, 3:9, 1] = 2
    masks[..., 5] = masks[..., :5].sum(axis=-1) == 0
    root = tmp_path / "cohort"
    (root / "Teams").mkdir(parents=True)
    np.save(root / "masks.npy", masks)
    np.save(root / "images.npy", np.zeros((2, 16, 16, 3), np.uint8))
    np.save(root / "Teams" / "one.npy", masks)
    for folder in (root, root / "Teams"):
        (folder / "regions.csv").write_text(OWN_TABLE)
    return root
