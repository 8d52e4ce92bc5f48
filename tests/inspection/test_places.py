"""Objects in another place than those of the other side: the cause, and the setting that helps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic import notebook
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.inspection.inspect import inspect_folder
from napari_panoptic.inspection.values import Doubt
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.settings import EvaluationSettings
from tests.support import planted_import as planted

ALPHA = "teams/alpha"
SETTINGS = EvaluationSettings(distances=False)
HEIGHT, WIDTH = planted.SHAPE
Change = Callable[[planted.Points], planted.Points]


@pytest.fixture(scope="module")
def clean(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the clean cohort."""
    return planted.write_clean(tmp_path_factory.mktemp("planted") / "clean", nuclei_sample)


def only_doubt(folder: Path) -> Doubt:
    (doubt,) = inspect_folder(folder).doubts
    return doubt


def table_of(fixes: tuple[Any, ...]) -> dict[str, Any]:
    (fix,) = fixes
    return {key[-1]: value["alpha"] for key, value in fix.settings}


@pytest.mark.parametrize(
    ("um_per_px", "corner", "swapped"),
    [
        *((0.2527, (0, 0), False), (0.2527, (40, -25), False), (1.7, (0, 0), False)),
        *((0.37, (12, 7), True), (1.0, (900, 40), True)),
    ],
)
def test_scale_and_offset_are_found(
    um_per_px: float, corner: tuple[int, int], swapped: bool, clean: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    step = -1 if swapped else 1
    planted.change_points(folder, ALPHA, lambda xy: ((xy - corner) * um_per_px)[:, ::step])
    inspection = inspect_folder(folder)
    (doubt,) = inspection.doubts
    found = table_of(doubt.fixes)
    assert found.get("scale", 1) == pytest.approx(1 / um_per_px, rel=2e-3)
    assert np.abs(np.subtract(found.get("offset", [0, 0]), corner)).max() <= 1
    assert found.get("axes") == ("swapped" if swapped else None)
    fixed = inspection.with_fixes([doubt.fix()])
    assert fixed.doubts == ()


@pytest.mark.parametrize("stated", ["scale = 4", "scale = 3.8", 'axes = "swapped"'])
def test_settings_that_are_nearly_right_or_wrong_are_doubted_again(
    stated: str, clean: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.change_points(folder, ALPHA, lambda xy: xy * 0.2527)
    text = (folder / "cohort.toml").read_text()
    key, _, value = stated.partition(" = ")
    (folder / "cohort.toml").write_text(f"{text}predictions.{key} = {{ alpha = {value} }}\n")
    inspection = inspect_folder(folder)
    (doubt,) = inspection.doubts
    found = table_of(doubt.fixes)
    assert found["scale"] == pytest.approx(1 / 0.2527, rel=1e-3)
    assert found.get("axes") == ("as-stated" if "axes" in stated else None)
    assert inspection.with_fixes([doubt.fix()]).doubts == ()


TURNS: dict[str, Change] = {
    "mirrored left to right": lambda xy: np.array([WIDTH, 0]) + xy * [-1, 1],
    "mirrored top to bottom": lambda xy: np.array([0, HEIGHT]) + xy * [1, -1],
    "turned by 180 degrees": lambda xy: np.array([WIDTH, HEIGHT]) - xy,
    "turned by 90 degrees clockwise": lambda xy: np.array([0, WIDTH]) + xy[:, ::-1] * [1, -1],
    "turned by 90 degrees counter-clockwise": lambda xy: (
        np.array([HEIGHT, 0]) + xy[:, ::-1] * [-1, 1]
    ),
    "turned by 90 degrees and mirrored": lambda xy: np.array([HEIGHT, WIDTH]) - xy[:, ::-1],
}


@pytest.mark.parametrize("words", TURNS)
def test_a_turned_side_is_named(words: str, clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.change_points(folder, ALPHA, TURNS[words])
    doubt = only_doubt(folder)
    assert (doubt.name, doubt.fixes) == ("overlap:alpha", ())
    assert f"; {words} they have 0.9" in doubt.message


def test_mirrored_masks_are_named(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.change_masks(folder, ALPHA, lambda ids: np.ascontiguousarray(ids[::-1]))
    assert "mirrored top to bottom they have" in only_doubt(folder).message


def test_files_of_other_regions_are_named(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    first, second = (folder / ALPHA / f"{name}.geojson" for name in planted.REGIONS)
    texts = second.read_text(), first.read_text()
    first.write_text(texts[0])
    second.write_text(texts[1])
    doubt = only_doubt(folder)
    assert doubt.name == "overlap:alpha"
    assert "with files of other regions they have 0.9" in doubt.message
    assert f"{first.name} fits where {second.name} is" in doubt.message


def runs_by_rows(mask: NDArray[np.bool_]) -> list[int]:
    """Count the pixels of runs row by row, as COCO does not."""
    flat = np.concatenate([[False], mask.ravel()])
    ends = np.flatnonzero(np.diff(flat.astype(np.int8)))
    return np.diff([0, *ends.tolist(), mask.size]).tolist()


def test_run_lengths_by_rows_are_named(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.as_coco(folder)
    for name, ids in planted.masks_in(folder, ALPHA).items():
        path = folder / ALPHA / f"{name}.coco.json"
        table = json.loads(path.read_text())
        for number, entry in enumerate(table["annotations"], start=1):
            counts = runs_by_rows(ids == number)
            entry["segmentation"] = {"size": list(planted.SHAPE), "counts": counts}
        path.write_text(json.dumps(table))
    doubt = only_doubt(folder)
    assert (doubt.name, doubt.fixes) == ("overlap:alpha", ())
    assert "run lengths that go row by row" in doubt.message


def test_one_rule_for_the_folder_the_evaluation_and_the_window(clean: Path, tmp_path: Path) -> None:
    """Little overlap without a cure that is known, in a cohort and in its only region."""
    folder = shutil.copytree(clean, tmp_path / "cohort")

    def scattered(ids: NDArray[np.int32]) -> NDArray[np.int32]:
        moved = np.zeros_like(ids)
        for number in range(1, int(ids.max()) + 1):
            shift = (37 * number % HEIGHT, 91 * number % WIDTH)
            moved[np.roll(ids == number, shift, (0, 1))] = number
        return moved

    planted.change_masks(folder, ALPHA, scattered)
    doubt, *_ = inspect_folder(folder).doubts  # some objects are in two pieces
    assert (doubt.name, doubt.fixes) == ("overlap:alpha", ())
    assert "did not help" in doubt.message

    def told() -> list[str]:
        found = (
            notebook.open_cohort(folder)
            .evaluate(settings=EvaluationSettings(distances=False))
            .findings
        )
        return found[found["kind"] == FindingKind.LITTLE_OVERLAP]["message"].tolist()

    (message,) = told()
    assert "objects of alpha and the" in message
    assert "overlap little (Dice 0." in message
    for path in folder.rglob(f"{planted.REGIONS[1]}*"):
        path.unlink()
    (message,) = told()
    snapshot = load_region(open_cohort(folder), planted.REGIONS[0], SETTINGS)
    in_window = [f for f in snapshot.findings if f.kind is FindingKind.LITTLE_OVERLAP]
    assert [(finding.team, finding.message) for finding in in_window] == [("alpha", message)]


def test_honest_teams_overlap_enough(nuclei_sample: Path) -> None:
    found = (
        notebook.open_cohort(nuclei_sample)
        .evaluate(settings=EvaluationSettings(distances=False))
        .findings
    )
    assert FindingKind.LITTLE_OVERLAP not in found["kind"].tolist()
