"""The Zarr of TIAToolbox 2: stores written by dask, as TIAToolbox 2.1.3 does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source

da = pytest.importorskip("dask.array", reason="dask writes the stores")

SHAPE = (30, 32)
PADDING = np.iinfo(np.int32).min


def nuclei() -> dict[str, NDArray[Any]]:
    """Return a rectangle of columns 2 to 8 and rows 2 to 5, and a triangle."""
    square = [(2, 2), (2, 5), (8, 5), (8, 2)]
    triangle = [(12, 12), (12, 18), (18, 18), (PADDING, PADDING)]
    return {
        "box": np.array([[2, 2, 9, 6], [12, 12, 19, 19]]),
        "centroid": np.array([[5, 3.5], [14, 16]]),
        "contours": np.array([square, triangle], np.int32),
        "prob": np.array([0.75, 0.5]),
        "type": np.array([1, 2]),
    }


def saved(path: Path, arrays: dict[str, NDArray[Any]], prefix: str = "", suffix: str = "") -> Path:
    for name, array in arrays.items():
        dask_array = da.from_array(array, chunks="auto").rechunk("auto")
        dask_array.to_zarr(url=str(path), component=f"{prefix}{name}{suffix}")
    return path


def loaded(path: Path) -> LoadedMasks:
    files = MaskFiles(Source.TIATOOLBOX_ZARR, {"": (path,)})
    return load_masks(files, MONUSAC_CLASSES, shape=SHAPE)


@pytest.mark.parametrize(("prefix", "suffix"), [("", ""), ("nuclei_segmentation/", ""), ("", "/0")])
def test_nuclei_of_a_slide_of_several_tasks_and_of_one_patch(
    prefix: str, suffix: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "a.zarr", nuclei(), prefix, suffix)
    if prefix:
        saved(path, nuclei(), "layer_segmentation/")
    assert format_of(path) == Source.TIATOOLBOX_ZARR
    masks = loaded(path)
    image = masks.labels.id_image()
    expected = np.zeros(SHAPE, np.int64)
    expected[2:6, 2:9] = 1
    assert np.array_equal(np.where(image == 1, 1, 0), expected)
    assert image[18, 12:19].tolist() == [2] * 7
    assert (image == 2).sum() == 7 * 8 // 2
    names = masks.labels.class_names_of_objects().tolist()
    assert names == list(MONUSAC_CLASSES.names[:2])
    assert masks.labels.scores.tolist() == [0.75, 0.5]
    assert [finding.kind for finding in masks.findings] == [FindingKind.CLASS_ORDER]
    files = MaskFiles(Source.TIATOOLBOX_ZARR, {"": (path,)})
    tiles = open_masks(files, MONUSAC_CLASSES, SHAPE)
    assert np.array_equal(tiles.labels.read((0, 0, *SHAPE)), masks.labels.index)


def test_a_store_without_a_nucleus(tmp_path: Path) -> None:
    empty = {name: np.empty(0, np.int8) for name in nuclei()}
    path = tmp_path / "a.zarr"
    for name, array in empty.items():
        zarr.create_array(str(path / name), data=array, chunks=(1,))
    zarr.open_group(str(path), mode="a")
    assert format_of(path) == Source.TIATOOLBOX_ZARR
    assert len(loaded(path).labels) == 0


def test_a_store_of_several_patches_is_refused(tmp_path: Path) -> None:
    path = saved(saved(tmp_path / "a.zarr", nuclei(), suffix="/0"), nuclei(), suffix="/1")
    assert format_of(path) == Source.TIATOOLBOX_ZARR
    with pytest.raises(UnreadableFileError, match="several images, whose names it does not state"):
        loaded(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"prob": np.array([0.75])},
        {"contours": np.zeros((2, 4), np.int32)},
        {"contours": np.zeros((2, 4, 2), np.float32)},
        {"type": np.array([1.5, 2, 3])},
    ],
)
def test_damaged_stores_are_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    path = saved(tmp_path / "a.zarr", {**nuclei(), **changed})
    with pytest.raises(UnreadableFileError, match="TIAToolbox"):
        loaded(path)


def test_a_cohort_with_stores_of_two_teams(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for region in ("p1_a", "p2_a"):
        for folder in ("gt", "one", "two"):
            (tmp_path / folder).mkdir(exist_ok=True)
        image = np.zeros(SHAPE, np.uint16)
        image[2:6, 2:9] = 1
        np.save(tmp_path / "gt" / f"{region}.npy", image)
        for team in ("one", "two"):
            saved(tmp_path / team / f"{region}.zarr", nuclei())
    assert main(["init", str(tmp_path)]) == 0
    assert "4 predictions of one and two: {team}/{region}.zarr, format tiatoolbox-zarr" in (
        capsys.readouterr().out
    )
    assert main(["evaluate", str(tmp_path), "-o", str(tmp_path.with_name("tables"))]) == 0
