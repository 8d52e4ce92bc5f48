"""Reports and records that contradicted themselves, or lacked what they should say."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.raters.evaluate import evaluate_raters
from napari_panoptic.report.raters.tables import record_of
from napari_panoptic.report.sections import REFERENCES
from tests.defects.outlined_cohort import evaluated, feature, write_cohort, write_features

USUAL = {"vanished", "overlapping", "missing", "unreadable"}
TEAM = "a patient team"


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two raters and three teams, of whom one has no Dice in the last case."""
    folder = tmp_path_factory.mktemp("rated")
    full, none = np.zeros((12, 12), np.uint8), np.zeros((12, 12), np.uint8)
    full[3:9, 3:9] = 255
    for case, mask in (("c1", full), ("c2", full), ("c3", none)):
        images = {
            "raters/r1": mask,
            "raters/r2": mask,
            f"teams/{TEAM}": mask,
            "teams/b": np.roll(full, 2),
            "teams/c": np.roll(full, 1),
        }
        for place, image in images.items():
            (folder / place).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / place / f"{case}_lesion.png")
    (folder / "cohort.toml").write_text(
        'task = "raters"\n[files]\nraters = "raters/{rater}/{case}_{structure}.png"\n'
        'predictions = "teams/{team}/{case}_{structure}.png"\n'
        '[levels]\nboth_empty = "undefined"\n'
    )
    return folder


def record(cohort: Path, output: Path) -> dict[str, Any]:
    assert main(["evaluate", str(cohort), "--output", str(output)]) == 0
    found: dict[str, Any] = json.loads((output / "evaluation.json").read_text("utf-8"))
    return found


def test_defect_21_raters_are_compared_over_cases(rated: Path, tmp_path: Path) -> None:
    statistics = record(rated, tmp_path)["statistics"]
    assert statistics["unit"] == "case"
    assert statistics["bootstrap"]["over"] == "cases"
    # The word is chosen where the sentence is made: the name of a team stays.
    assert statistics["(all)"]["omitted"] == {"c3": f"{TEAM} has no figure for case c3"}


def test_defect_21_a_paper_is_cited_in_one_spelling(rated: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(rated), "--output", str(page)]) == 0
    text = page.read_text("utf-8")
    assert REFERENCES["demsar"] in text
    assert "Demsar" not in text


def test_defect_21_every_task_has_the_same_warnings(
    rated: Path, detection_sample: Path, tmp_path: Path
) -> None:
    labels = np.zeros((20, 20), np.int32)
    labels[3:9, 3:9] = 1
    nuclei = write_cohort(tmp_path / "nuclei", labels)
    square = [(3, 3), (9, 3), (9, 9), (3, 9)]
    write_features(nuclei / "team" / "P_1.geojson", [feature([square])])
    assert set(evaluated(nuclei).warnings) >= USUAL
    for number, cohort in enumerate((rated, detection_sample)):
        assert set(record(cohort, tmp_path / str(number))["warnings"]) >= USUAL


def test_defect_21_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    """One team has ten regions, the other nine."""
    labels = np.zeros((12, 12), np.int32)
    labels[3:9, 3:9] = 1
    square = [(3, 3), (9, 3), (9, 9), (3, 9)]
    cohort = write_cohort(tmp_path / "cohort", labels)
    for number in range(2, 11):
        for name in ("P_1.png", "labels/P_1.tif"):
            copy = cohort / name.replace("P_1", f"P{number}_1")
            copy.write_bytes((cohort / name).read_bytes())
    regions = ["P_1", *(f"P{number}_1" for number in range(2, 11))]
    for team, own in (("all", regions), ("most", regions[1:])):
        for region in own:
            write_features(cohort / team / f"{region}.geojson", [feature([square])])
    page = tmp_path / "report.html"
    assert main(["report", str(cohort), "--output", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "9 and 10" in text
    assert "10 and 9" not in text


def test_defect_21_findings_of_mat_files_say_where(tmp_path: Path) -> None:
    labels = np.zeros((20, 20), np.int32)
    labels[3:9, 3:9] = 1
    predictions = 'predictions.hovernet-mat = "{team}/*/{region}.mat"'
    cohort = write_cohort(tmp_path, labels, predictions=predictions)
    for first in "ab":
        (cohort / "hovernet" / first).mkdir(parents=True)
        savemat(cohort / "hovernet" / first / "P_1.mat", {"inst_map": labels})
    warnings = [w for kind in evaluated(cohort).warnings.values() for w in kind]
    (extra,) = [w for w in warnings if "b/P_1.mat" in w["message"] + str(w["path"])]
    assert (extra["region"], extra["team"]) == ("P_1", "hovernet")


@pytest.mark.parametrize("name", ["P_1.xml", "P_1.hovernet.json", "P_1.db", "P_1.roi.zip"])
def test_defect_21_built_in_formats_are_found_among_the_folders_of_monusac(
    tmp_path: Path, name: str
) -> None:
    annotations = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    team = tmp_path / "Teams" / "someone" / "P"
    for folder in (annotations, team):
        folder.mkdir(parents=True)
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(annotations / "P_1.png")
    (team / name).write_bytes(b"x")
    cohort = open_cohort(tmp_path)
    (files,) = cohort.predictions["someone", "P_1"].values()
    assert files.all_paths == (team / name,)


def test_defect_21_no_cache_keeps_an_evaluation_alive(rated: Path) -> None:
    evaluation = evaluate_raters(open_raters(rated))
    record_of(evaluation)
    gone = weakref.ref(evaluation)
    del evaluation
    gc.collect()
    assert gone() is None
