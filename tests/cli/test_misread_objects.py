"""Small files whose objects are easily misread: what `evaluate` says, and the setting that helps.

The inputs are rebuilt from reports of users: 49 nuclei on 200 x 200 px.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
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
            *("49 crowd(s)", 'crowds = "objects"'),
        ),
        (
            *("opencv_truth.tif", "opencv_contours_coco.json", "coco-instances"),
            *("look like OpenCV contours", 'vertices = "pixel-centres"'),
        ),
        (
            *("truth.tif", "coco_half_size.json", "coco-instances"),
            *("found ones in px of an image of 100 x 100 px", "scale = 2"),
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
    assert score_with(tmp_path, truth, prediction, form, setting) == 1.0
