"""What tests of several commands share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import Outcome, Run, exit_status
from tests.support.small_cohort import write_first_regions

OWN_TABLE = "region,patient\nr0,A\nr1,B\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the program; nothing may ever end in a traceback."""

    def call(*arguments: object) -> Outcome:
        code = exit_status(*arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Outcome(code, out, err)

    return call


@pytest.fixture(scope="session")
def one_region(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the first region of the small cohort once; no test changes it."""
    return write_first_regions(tmp_path_factory.mktemp("one-region"), 1)


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
