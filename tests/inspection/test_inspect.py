"""Every doubt is named in a cohort that is wrong in one way, and its setting makes it right."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from napari_panoptic.inspection.inspect import inspect_folder
from napari_panoptic.inspection.values import Fix
from tests.support import planted_import as planted
from tests.support.paths import SHARED_CASES, needs_shared_cases

ALPHA = "teams/alpha"


@pytest.fixture(scope="module")
def clean(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the clean cohort."""
    return planted.write_clean(tmp_path_factory.mktemp("planted") / "clean", nuclei_sample)


@pytest.fixture(scope="module")
def right(clean: Path) -> list[list[Any]]:
    """Evaluate the clean cohort."""
    return planted.objects_of(clean)


@dataclass(frozen=True)
class Plant:
    """What is done to the clean cohort, the doubt about it, and what is chosen."""

    wrong: Callable[[Path], None]
    doubt: str
    choice: str | None = None


def named(old: str, new: str) -> Callable[[Path], None]:
    """Give the objects of a class another name in the files of one team."""

    def rename(feature: dict[str, Any]) -> None:
        classification = feature["properties"]["classification"]
        if classification["name"] == old:
            classification["name"] = new

    return lambda folder: planted.change_features(folder, ALPHA, rename)


def moved(place: str, change: Callable[[planted.Points], planted.Points]) -> Callable[[Path], None]:
    """Change the coordinates of one side."""
    return lambda folder: planted.change_points(folder, place, change)


def redrawn(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Change the masks of a team."""
    return lambda folder: planted.change_masks(folder, ALPHA, change)


def renamed(place: str, behind: str) -> Callable[[Path], None]:
    """Add something to the names of the files of one side."""

    def rename(folder: Path) -> None:
        for name in planted.REGIONS:
            file = folder / place / f"{name}.geojson"
            file.rename(file.with_name(f"{name}{behind}.geojson"))

    return rename


def coco_by_opencv(folder: Path) -> None:
    planted.change_rings(folder, ALPHA, planted.by_opencv)
    planted.as_coco(folder)


def in_micrometres(folder: Path) -> None:
    """State coordinates in micrometres, of pixels that are no power of two."""
    planted.change_points(folder, ALPHA, lambda xy: xy * 0.3)
    with (folder / "cohort.toml").open("a") as file:
        file.write("mpp = 0.3\n")


PLANTS = {
    "micrometres": Plant(in_micrometres, "scale:alpha"),
    "COCO by OpenCV": Plant(coco_by_opencv, "vertices:alpha"),
    "COCO of half the size": Plant(
        lambda folder: planted.as_coco(folder, ALPHA, times=0.5), "size:alpha"
    ),
    "COCO crowds": Plant(
        lambda folder: planted.as_coco(folder, ALPHA, crowds=True), "crowds:alpha"
    ),
    "OpenCV": Plant(
        lambda folder: planted.change_rings(folder, ALPHA, planted.by_opencv), "vertices:alpha"
    ),
    "scikit-image": Plant(
        lambda folder: planted.change_rings(folder, ALPHA, planted.by_scikit_image),
        "vertices:alpha",
    ),
    "annotation by OpenCV": Plant(
        lambda folder: planted.change_rings(folder, "annotation", planted.by_opencv),
        "vertices:annotation",
    ),
    "CellViT": Plant(lambda folder: planted.joined_by_class(folder, ALPHA), "multipolygons:alpha"),
    "class": Plant(named("Lymphocyte", "lymphocytes"), "class:lymphocytes"),
    "other class": Plant(named("Neutrophil", "PMN"), "class:PMN", "Neutrophil"),
    "x and y": Plant(moved(ALPHA, lambda xy: xy[:, ::-1]), "axes:alpha"),
    "half": Plant(moved(ALPHA, lambda xy: xy / 2), "scale:alpha"),
    "level": Plant(moved(ALPHA, lambda xy: xy * 4), "scale:alpha"),
    "slide": Plant(moved(ALPHA, lambda xy: xy + np.array([3000, 7000])), "offset:alpha"),
    "annotation of slide": Plant(
        moved("annotation", lambda xy: xy + np.array([250, -130])), "offset:annotation"
    ),
    "names": Plant(renamed(ALPHA, "_pred"), "names:alpha"),
    "names of annotations": Plant(renamed("annotation", ".manual"), "names:annotation"),
    "transposed": Plant(redrawn(lambda ids: ids.T), "size:alpha"),
    "enlarged": Plant(redrawn(lambda ids: np.kron(ids, np.ones((2, 2), ids.dtype))), "size:alpha"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_doubt_is_named_and_its_setting_gives_the_right_objects(
    name: str, clean: Path, right: list[list[Any]], tmp_path: Path
) -> None:
    plant, folder = PLANTS[name], tmp_path / "cohort"
    shutil.copytree(clean, folder)
    plant.wrong(folder)
    before = (folder / "cohort.toml").read_text()
    inspection = inspect_folder(folder)
    assert [doubt.name for doubt in inspection.doubts] == [plant.doubt]
    fixed = inspection.with_fixes([inspection.doubts[0].fix(plant.choice)])
    assert fixed.doubts == ()
    assert (folder / "cohort.toml").read_text() == before
    kept = fixed.save()
    assert kept is not None
    assert kept.read_text() == before
    after = (folder / "cohort.toml").read_text().splitlines()
    changed = [line for line in before.splitlines() if line not in after]
    assert len(changed) == (plant.doubt.startswith("names:"))  # where a line has the pattern
    assert planted.objects_of(folder) == right


def test_settings_of_several_doubts_do_not_replace_each_other(
    clean: Path, right: list[list[Any]], tmp_path: Path
) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    for team in ("alpha", "beta"):
        planted.change_rings(folder, f"teams/{team}", planted.by_opencv)
    inspection = inspect_folder(folder)
    assert [doubt.name for doubt in inspection.doubts] == ["vertices:alpha", "vertices:beta"]
    inspection.with_fixes([doubt.fix() for doubt in inspection.doubts]).save()
    table = tomllib.loads((folder / "cohort.toml").read_text())
    both = {"alpha": "pixel-centres", "beta": "pixel-centres"}
    assert table["files"]["predictions"]["vertices"] == both
    assert planted.objects_of(folder) == right


def test_micrometres_are_those_of_the_other_images(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.without_mpp(folder, planted.REGIONS[0])
    inspection = inspect_folder(folder)
    assert [doubt.name for doubt in inspection.doubts] == ["mpp"]
    inspection.with_fixes([inspection.doubts[0].fix()]).save()
    assert planted.objects_of(folder, distances=True) == planted.objects_of(clean, distances=True)
    for name in planted.REGIONS:
        planted.without_mpp(folder, name)
    (folder / "cohort.toml").write_text(planted.DESCRIPTION)
    assert not inspect_folder(folder).doubts[0].is_clear


def test_masks_of_class_numbers_are_cut_into_pieces(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.of_one_class(folder)
    assert inspect_folder(folder).doubts == ()
    right = planted.objects_of(folder)
    for name, ids in planted.masks_in(folder, ALPHA).items():
        tifffile.imwrite(folder / ALPHA / f"{name}.tif", np.where(ids > 0, 3, 0).astype(np.uint8))
    inspection = inspect_folder(folder)
    assert [doubt.name for doubt in inspection.doubts] == ["objects:alpha"]
    inspection.with_fixes([inspection.doubts[0].fix()]).save()
    assert planted.objects_of(folder) == right


def test_inverted_masks_are_named(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.of_one_class(folder)
    for name, ids in planted.masks_in(folder, ALPHA).items():
        tifffile.imwrite(folder / ALPHA / f"{name}.tif", np.where(ids > 0, 0, 255).astype(np.uint8))
    doubts = {doubt.name: doubt for doubt in inspect_folder(folder).doubts}
    assert "may be inverted" in doubts["vast:alpha"].message


def test_numbers_that_wrapped_are_a_doubt(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.of_one_class(folder)
    for name, ids in planted.masks_in(folder, ALPHA).items():
        wrapped = np.where(ids > 0, 1 + ids % (ids.max() // 3 + 1), 0).astype(np.uint8)
        tifffile.imwrite(folder / ALPHA / f"{name}.tif", wrapped)
    (doubt,) = inspect_folder(folder).doubts
    assert doubt.name == "objects:alpha"
    assert "as where numbers wrapped or were cut off at 255" in doubt.message
    assert [fix.name for fix in doubt.fixes] == ["pieces", "numbers"]


def test_outlines_of_slides_whose_regions_have_places_are_no_doubt(
    clean: Path, right: list[list[Any]], tmp_path: Path
) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.change_points(folder, "annotation", lambda xy: xy + np.array([9000, 100]))
    assert [d.name for d in inspect_folder(folder).doubts] == ["offset:annotation"]
    text = planted.DESCRIPTION.replace("annotation/{region}", "annotation/{slide}")
    text += "".join(f"[patches.{name}]\nx = 9000\ny = 100\n" for name in planted.REGIONS)
    (folder / "cohort.toml").write_text(text)
    assert inspect_folder(folder).doubts == ()
    assert planted.objects_of(folder) == right


def test_missing_and_empty_files_are_named(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    (folder / ALPHA / f"{planted.REGIONS[0]}.geojson").unlink()
    (folder / ALPHA / f"{planted.REGIONS[1]}.geojson").write_text("[]")
    (folder / ALPHA / "Sample-Z_1.geojson").write_text("[]")
    inspection = inspect_folder(folder)
    assert [doubt.name for doubt in inspection.doubts] == ["empty:alpha", "missing:alpha"]
    (alpha,) = (side for side in inspection.counts if side.name == "alpha")
    assert (alpha.found, alpha.matched, alpha.missing, alpha.unused) == (1, 1, 1, 1)


@needs_shared_cases
@pytest.mark.parametrize(
    ("name", "doubts"),
    # On these two large regions, both algorithms cover less than 26 % of what is annotated.
    [("monusac", []), ("monusac-large", ["overlap:log-seeds", "overlap:otsu-watershed"])],
)
def test_doubts_about_real_cohorts(name: str, doubts: list[str]) -> None:
    found = inspect_folder(SHARED_CASES / name).doubts
    assert [doubt.name for doubt in found] == doubts
    assert not any(doubt.fixes for doubt in found)


def test_the_sample_has_no_doubts_and_is_counted(nuclei_sample: Path) -> None:
    inspection = inspect_folder(nuclei_sample)
    assert inspection.doubts == ()
    assert inspection.is_saved
    assert {side.matched for side in inspection.counts} == {6}
    # A known layout can be written down, as it must be to hold a setting.
    described = inspect_folder(nuclei_sample, description=inspection.description)
    assert described.cohort.regions == inspection.cohort.regions
    assert described.cohort.predictions == inspection.cohort.predictions
    assert described.cohort.scheme == inspection.cohort.scheme


@pytest.mark.parametrize("name", ["Tumour", "Tumour cell", "a.b", ""])
def test_the_line_of_a_setting_is_valid_toml(name: str) -> None:
    (line,) = Fix("", "", ((("aliases", name), "Epithelial"),)).lines
    assert tomllib.loads(line) == {"aliases": {name: "Epithelial"}}
