"""The work of finding a cohort's files grows with their number, not with its square."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
import tifffile
from PIL import Image

from napari_panoptic.io.cohorts.folder_scan import scan_folder
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.raters import open_raters

Write = Callable[[Path, int], None]


def image_bytes(ending: str) -> bytes:
    file = io.BytesIO()
    if ending == ".png":
        Image.new("RGB", (4, 4)).save(file, "PNG")
    else:
        tifffile.imwrite(file, np.ones((4, 4), np.uint8))
    return file.getvalue()


CONTENTS = {".png": image_bytes(".png"), ".tif": image_bytes(".tif"), ".xml": b"<Annotations/>"}


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENTS.get(path.suffix, b""))


def one_folder_per_side(root: Path, i: int) -> None:
    touch(root, f"images/r{i}.png", f"gt/r{i}.tif", f"models/a/r{i}_pred.tif")


def one_folder_per_patient(root: Path, i: int) -> None:
    touch(root, f"images/p{i}/r{i}.png", f"gt/p{i}/r{i}.tif", f"models/a/p{i}/r{i}.tif")


def numbered_sides(root: Path, i: int) -> None:
    touch(root, f"Slide_{i}/r{i}.png", f"GT_{i}/r{i}.tif", f"A_{i}/r{i}.tif")


def many_teams(root: Path, i: int) -> None:
    touch(root, "images/r.png", "gt/r.tif", f"models/a{i}/r.tif")


def monusac(root: Path, i: int) -> None:
    place = f"MoNuSAC Testing Data and Annotations/P{i}/P{i}_1"
    touch(root, f"{place}.png", f"{place}.xml", f"Teams/A/P{i}/P{i}_1_mask.png.tif")


def qubiq(root: Path, i: int) -> None:
    touch(root, f"case{i}/image.nii.gz", f"case{i}/s_seg01.nii.gz", f"teams/A/case{i}/s.nii.gz")


def scan_and_open(root: Path) -> object:
    return open_cohort(root, description=scan_folder(root).description())


def calls(work: Callable[[], object]) -> int:
    """Count the calls of functions, and the steps of generators."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("write", "work"),
    [
        (one_folder_per_side, scan_and_open),
        (one_folder_per_patient, scan_and_open),
        (numbered_sides, scan_and_open),
        (many_teams, scan_and_open),
        (monusac, open_cohort),
        (qubiq, open_raters),
    ],
)
def test_twice_the_files_take_twice_the_calls(
    tmp_path: Path, write: Write, work: Callable[[Path], object]
) -> None:
    """Maps of QUBIQ were sought among all cases: 200 cases took 2.35 times the calls of 100."""
    roots = {number: tmp_path / str(number) for number in (60, 120)}
    for number, root in roots.items():
        for i in range(number):
            write(root, i)
    work(roots[60])  # what is imported or kept at first is no work on files
    few, many = (calls(lambda root=root: work(root)) for root in roots.values())
    assert few > 60 * 50
    assert many < 2.1 * few
