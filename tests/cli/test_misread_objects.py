"""Small files whose objects are easily misread: what `evaluate` says, and the setting that helps.

The inputs are rebuilt from reports of users: 49 nuclei on 200 x 200 px.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from napari_panoptic.cli.main import main
from napari_panoptic.inspection.inspect import inspect_folder
from tests.support.paths import SHARED_CASES, needs_shared_cases

pytestmark = needs_shared_cases
WILD = SHARED_CASES / "wild"


def score_in(tables: Path) -> float:
    (score,) = json.loads((tables / "evaluation.json").read_text())["score"].values()
    return float(score)


def evaluated(folder: Path, truth: str, prediction: str, *more: str) -> int:
    sides = ["--reference", str(WILD / truth), "--prediction", str(WILD / prediction)]
    return main(["evaluate", *sides, *more, "--no-distances", "-o", str(folder)])


def score_with(folder: Path, truth: str, prediction: str, form: str, setting: str) -> float:
    """Evaluate a cohort of one region, with a setting of its predictions."""
    for side, name in (("truth", truth), ("team", prediction)):
        (folder / side).mkdir()
        shutil.copy(WILD / name, folder / side / f"r{Path(name).suffix}")
    place = f"team/{{region}}{Path(prediction).suffix}"
    (folder / "cohort.toml").write_text(
        f'[classes]\nNucleus = [255, 0, 0]\n[files]\nreference.labels = "truth/{{region}}.tif"\n'
        f'predictions.{form} = "{place}"\npredictions.{setting}\n'
    )
    assert main(["evaluate", str(folder), "--no-distances", "-o", str(folder / "out")]) == 0
    return score_in(folder / "out")


@pytest.mark.parametrize(
    ("truth", "prediction", "form", "told", "setting"),
    [
        (
            *("truth.tif", "cvat_masks_prediction.json", "coco-instances"),
            *("49 crowds", 'crowds = "objects"'),
        ),
        (
            *("opencv_truth.tif", "opencv_contours_coco.json", "coco-instances"),
            *("like OpenCV contours", 'vertices = "pixel-centres"'),
        ),
        (
            *("truth.tif", "coco_half_size.json", "coco-instances"),
            *("found ones in px of an image of 100 x 100 px", "scale = 2"),
        ),
        (
            *("wrap_truth.tif", "wrap_8bit.tif", "labels"),
            *("33 objects whose pieces lie far apart", 'objects = "pieces"'),
        ),
    ],
)
def test_the_matter_is_named_and_its_setting_helps(
    truth: str,
    prediction: str,
    form: str,
    told: str,
    setting: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    evaluated(tmp_path / "pair", truth, prediction)
    said = capsys.readouterr().err
    assert told in said
    assert f"predictions.{setting}" in said
    # An id of 256 is 0 in 8 bits: that object is lost.
    least = 0.99 if form == "labels" else 1.0
    assert score_with(tmp_path, truth, prediction, form, setting) >= least


@pytest.mark.parametrize("side", ["reference", "predictions"])
@pytest.mark.parametrize("held", [True, False])
def test_a_slide_with_bounds_is_named_and_its_setting_helps(
    held: bool, side: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = ["--image", str(WILD / "bounds.scn")]
    more = [] if held else ["--held-up-to", "1"]
    evaluated(tmp_path / "pair", "bounds_openslide.geojson", "bounds_qupath.geojson", *image, *more)
    said = capsys.readouterr().err
    assert "begins at x 40, y 30 (its bounds)" in said
    assert 'or predictions.offset = "slide-bounds"' in said
    places = ("t", "a") if side == "reference" else ("a", "t")
    shutil.copy(WILD / "bounds.scn", tmp_path / "r.scn")
    for program, place in zip(("openslide", "qupath"), places, strict=True):
        (tmp_path / place).mkdir()
        shutil.copy(WILD / f"bounds_{program}.geojson", tmp_path / place / "r.geojson")
    (tmp_path / "cohort.toml").write_text(
        '[classes]\nNucleus = [255, 0, 0]\n[aliases]\n"" = "Nucleus"\n[files]\n'
        'image = "{region}.scn"\nreference.geojson = "a/{region}.geojson"\n'
        'predictions.geojson = "t/{region}.geojson"\n'
    )
    inspection = inspect_folder(tmp_path)
    (doubt,) = (doubt for doubt in inspection.doubts if doubt.name.startswith("offset:"))
    assert doubt.fix().lines == [f'files.{side}.offset = "slide-bounds"']
    inspection.with_fixes([doubt.fix()]).save()
    out = tmp_path / "out"
    assert main(["evaluate", str(tmp_path), "--no-distances", "-o", str(out), *more]) == 0
    assert score_in(out) == 1.0
    with (tmp_path / "cohort.toml").open("a") as file:
        other = "reference" if side == "predictions" else "predictions"
        file.write(f"{other}.offset = [0, 0]\n")
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path), "--no-distances", "-o", str(tmp_path / "n")]) == 0
    assert "its bounds" not in capsys.readouterr().err


def in_the_corner(ids: NDArray[np.uint16]) -> NDArray[np.uint16]:
    small = np.zeros_like(ids)
    small[: len(ids) // 2, : ids.shape[1] // 2] = ids[::2, ::2]
    return small


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (in_the_corner, "overlap little (Dice 0.1"),
        (lambda ids: np.where(np.arange(ids.shape[1]) > 110, ids, 0), "do not touch"),
    ],
)
def test_objects_that_lie_elsewhere_are_named(
    change: Callable[[NDArray[np.uint16]], NDArray[np.uint16]],
    told: str,
    held: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ids = tifffile.imread(WILD / "truth.tif").astype(np.uint16)
    reference = np.where(np.arange(ids.shape[1]) < 80, ids, 0) if told == "do not touch" else ids
    tifffile.imwrite(tmp_path / "a.tif", reference.astype(np.uint16))
    tifffile.imwrite(tmp_path / "b.tif", change(ids).astype(np.uint16))
    more = [] if held else ["--held-up-to", "1"]
    assert evaluated(tmp_path / "o", str(tmp_path / "a.tif"), str(tmp_path / "b.tif"), *more) == 0
    said = capsys.readouterr().err
    assert told in said
    assert "set scale, offset or axes" in said
    warnings = json.loads((tmp_path / "o" / "evaluation.json").read_text())["warnings"]
    assert len(warnings["little-overlap"]) == 1


def test_outlines_that_lie_outside_altogether_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (WILD / "bounds_qupath.geojson").read_text()
    path = tmp_path / "far.geojson"
    path.write_text(re.sub(r"\[(\d+), (\d+)\]", r"[\g<1>000, \g<2>000]", text))
    assert evaluated(tmp_path / "out", "truth.tif", str(path)) == 0
    assert "49 polygons, none in the image" in capsys.readouterr().err


@pytest.mark.parametrize(("highest", "count"), [(200, 1), (40, 39)])
def test_objects_of_slides_are_listed_too(highest: int, count: int, tmp_path: Path) -> None:
    """Numbers that were cut off at one number, or that wrapped, read in windows."""
    ids = tifffile.imread(WILD / "wrap_truth.tif").astype(np.int64)
    wrong = np.minimum(ids, highest) if count == 1 else ids % highest
    tifffile.imwrite(tmp_path / "a.tif", wrong.astype(np.uint8))
    whole, windows = tmp_path / "whole", tmp_path / "windows"
    sides = ("wrap_truth.tif", str(tmp_path / "a.tif"))
    assert evaluated(whole, *sides) == 0
    assert evaluated(windows, *sides, "--held-up-to", "1") == 0
    for place in (whole, windows):
        warnings = json.loads((place / "evaluation.json").read_text())["warnings"]
        (finding,) = warnings["convention"]
        assert finding["count"] == count
