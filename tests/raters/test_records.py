"""Records and pages of raters: words, citations, warnings, and nothing that is kept too long."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.raters.evaluate import evaluate_raters
from napari_panoptic.report.raters.tables import record_of
from napari_panoptic.report.sections import REFERENCES
from tests.support.outlined_cohort import evaluated, feature, write_cohort, write_features

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


def test_raters_are_compared_over_cases(rated: Path, tmp_path: Path) -> None:
    statistics = record(rated, tmp_path)["statistics"]
    assert statistics["unit"] == "case"
    assert statistics["bootstrap"]["over"] == "cases"
    # The word is chosen where the sentence is made: the name of a team stays.
    assert statistics["(all)"]["omitted"] == {"c3": f"{TEAM} has no figure for case c3"}


def test_a_paper_is_cited_in_one_spelling(rated: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(rated), "--output", str(page)]) == 0
    text = page.read_text("utf-8")
    assert REFERENCES["demsar"] in text
    assert "Demsar" not in text


def test_every_task_has_the_same_warnings(
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


def test_no_cache_keeps_an_evaluation_alive(rated: Path) -> None:
    evaluation = evaluate_raters(open_raters(rated))
    record_of(evaluation)
    gone = weakref.ref(evaluation)
    del evaluation
    gc.collect()
    assert gone() is None
