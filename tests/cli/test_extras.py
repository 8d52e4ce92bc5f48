"""Files that need a package that is not installed: each command names the extra that brings it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import h5py
import nibabel
import numpy as np
import pytest
import tifffile
from packaging.requirements import Requirement

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import MissingPackageError, UnreadableFileError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.labels.matlab import mat_variables
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.images.volumes import read_mask
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from tests.support.builders import two_objects
from tests.support.dicom import ann_group, needs_highdicom, write_ann, write_seg
from tests.support.paths import REPOSITORY

OBJECTS = two_objects()
RING = np.array([(3.0, 3.0), (9.0, 3.0), (9.0, 9.0)])
EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
PACKAGES = [
    pytest.param("nibabel", "nifti", id="nibabel"),
    pytest.param("h5py", "matlab", id="h5py"),
    pytest.param("pydicom", "dicom", id="pydicom", marks=needs_highdicom),
    pytest.param("highdicom", "dicom", id="highdicom", marks=needs_highdicom),
]


def write(folder: Path, package: str) -> Path:
    """Write a file that needs a package."""
    folder.mkdir(parents=True, exist_ok=True)
    if package == "nibabel":
        path = folder / "lesion_r1.nii.gz"
        nibabel.save(nibabel.Nifti1Image((OBJECTS > 0).T.astype(np.uint8), np.eye(4)), path)
    elif package == "h5py":
        path = folder / "r1.mat"
        with h5py.File(path, "w", userblock_size=512) as file:
            file["inst_map"] = OBJECTS.T.astype(np.float64)
    elif package == "pydicom":
        path = write_ann(folder / "r1.dcm", [ann_group("Epithelial", [RING])])
    else:
        path = write_seg(folder / "r1.dcm", OBJECTS.astype(np.uint8), ["a", "b"], kind="LABELMAP")
    return path


def read(path: Path, package: str) -> object:
    if package == "nibabel":
        return read_mask(path, "a mask").values
    if package == "h5py":
        return mat_variables(path)
    source = Source.DICOM_ANN if package == "pydicom" else Source.DICOM_SEG
    return load_masks(MaskFiles(source, {"": (path,)}), MONUSAC_CLASSES, shape=OBJECTS.shape)


@pytest.mark.parametrize(("package", "extra"), PACKAGES)
def test_the_error_names_file_package_and_extra(
    package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, package)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError) as caught:
        read(path, package)
    assert caught.value.path == path
    assert f"needs the Python package {package} (" in caught.value.message
    assert f'run pip install "napari-panoptic[{extra}]", or ' in caught.value.message
    assert package in {Requirement(text).name for text in EXTRAS[extra]}


@pytest.mark.parametrize(("package", "extra"), PACKAGES[1:])
def test_commands_name_the_extra(
    package: str,
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cohort = tmp_path / "cohort"
    (cohort / "annotations").mkdir(parents=True)
    reference = cohort / "annotations" / "r1.tif"
    tifffile.imwrite(reference, OBJECTS.astype(np.uint16))
    prediction = write(cohort / "predictions", package)
    form = {"h5py": "hovernet-mat", "pydicom": "dicom-ann"}.get(package, "dicom-seg")
    description = (
        "[classes]\nEpithelial = [255, 0, 0]\n[files]\n"
        'reference.labels = "annotations/{region}.tif"\n'
        f'predictions.{form} = "predictions/{{region}}{prediction.suffix}"\n'
    )
    pair = ("--reference", str(reference), "--prediction", str(prediction))
    out = ("-o", str(tmp_path / "out"))
    monkeypatch.setitem(sys.modules, package, None)
    hint = f'pip install "napari-panoptic[{extra}]"'
    if package != "highdicom":  # only pixels need it
        assert main(["init", str(cohort)]) == 1
        assert hint in capsys.readouterr().err
        assert main(["view", *pair, "--screenshot", str(tmp_path / "a.png")]) == 1
        assert hint in capsys.readouterr().err
    for command, output in (("evaluate", "out"), ("report", "out.html")):
        assert main([command, *pair, "-o", str(tmp_path / output)]) == 1
        said = capsys.readouterr().err
        assert hint in said
        assert str(prediction) in said
    (cohort / "cohort.toml").write_text(description, encoding="utf-8")
    convert = ("convert", str(cohort), "--team", "predictions", "--to", "geojson", *out)
    assert main(convert) == 1
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(("package", "extra"), PACKAGES[1:3])
def test_init_lists_an_unrelated_file_and_goes_on(
    package: str,
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for side in ("gt", "model"):
        (tmp_path / side).mkdir()
        tifffile.imwrite(tmp_path / side / "r1.tif", OBJECTS.astype(np.uint16))
    unrelated = write(tmp_path / "experiments" / "of" / "others", package)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["init", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"1 file not recognised: {unrelated.relative_to(tmp_path).as_posix()}" in said
    assert f"{unrelated}: reading this file needs the Python package {package}" in said
    assert f'pip install "napari-panoptic[{extra}]"' in said
    assert open_cohort(tmp_path).team_names == ("model",)


@pytest.mark.parametrize("side", ["masks", "teams"])
@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_no_figures_of_raters_without_the_package(
    side: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unreadable masks are left out, and unreadable predictions count as background."""
    cohort = tmp_path / "cohort"
    endings = {"masks": "npy", "teams": "npy", side: "nii.gz"}
    for own, ending in endings.items():
        for name in ("a", "b"):
            path = write(cohort / own / name, "nibabel")
            if ending == "npy":
                np.save(path.with_name("lesion_r1.npy"), (OBJECTS > 0).astype(np.float32))
    (cohort / "cohort.toml").write_text(
        'task = "raters"\n[files]\n'
        f'raters = "masks/{{rater}}/{{structure}}_{{case}}.{endings["masks"]}"\n'
        f'predictions = "teams/{{team}}/{{structure}}_{{case}}.{endings["teams"]}"\n',
        encoding="utf-8",
    )
    monkeypatch.setitem(sys.modules, "nibabel", None)
    out = tmp_path / "out.html"
    assert main([command, str(cohort), "-o", str(out)]) == 1
    assert 'pip install "napari-panoptic[nifti]"' in capsys.readouterr().err
    assert not out.exists()


def test_damaged_nifti_is_no_missing_package(tmp_path: Path) -> None:
    path = tmp_path / "a.nii"
    path.write_bytes(b"no image")
    with pytest.raises(UnreadableFileError):
        read_mask(path, "a mask")
