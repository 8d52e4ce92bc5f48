"""Converting to arrays: the files that NumPy writes, and a message on a full disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.cli.main import main
from tests.support.paths import REPOSITORY

KILOBYTE = 1024


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk, on Linux")
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={4 * KILOBYTE}"
    command = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("disks cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S607


@pytest.mark.long
@pytest.mark.parametrize("form", ["pannuke", "conic"])
def test_a_full_disk_is_reported(pannuke: Path, full_disk: Path, form: str) -> None:
    output = full_disk / "out"
    command = [sys.executable, "-m", "napari_panoptic.cli.main", "convert", str(pannuke)]
    done = subprocess.run(
        [*command, "--to", form, "--output", str(output)],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, signal.Signals(-done.returncode).name
    assert "No space left on device" in done.stderr
    assert "choose another place" in done.stderr
    assert list(full_disk.iterdir()) == []


@pytest.mark.parametrize(("form", "name"), [("pannuke", "masks.npy"), ("conic", "labels.npy")])
def test_the_arrays_are_those_that_numpy_writes(
    pannuke: Path,
    tmp_path: Path,
    form: str,
    name: str,
) -> None:
    output = tmp_path / "out"
    assert main(["convert", str(pannuke), "--to", form, "--output", str(output)]) == 0
    assert sorted(path.name for path in output.iterdir()) == sorted([name, "regions.csv"])
    array = np.load(output / name)
    np.save(tmp_path / name, array)
    assert (output / name).read_bytes() == (tmp_path / name).read_bytes()
    masks = np.load(pannuke / "masks.npy")
    np.testing.assert_array_equal(
        array if form == "pannuke" else array[..., 0],
        masks if form == "pannuke" else masks[..., :5].sum(-1),
    )
