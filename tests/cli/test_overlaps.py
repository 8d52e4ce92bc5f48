"""Polygons that overlap, on the command line: figures both ways, and how many it concerns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from tests.support.overlapping_cohort import write_overlapping


@pytest.fixture(scope="module")
def overlapping_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One nucleus that was found, and covered half by another prediction."""
    return write_overlapping(tmp_path_factory.mktemp("cohort"))


def arguments(cohort: Path, output: Path, *options: str) -> list[str]:
    return ["evaluate", str(cohort), "--output", str(output), *options]


def evaluated(cohort: Path, output: Path, *options: str) -> tuple[dict[str, Any], pd.DataFrame]:
    assert main(arguments(cohort, output, *options)) == 0
    record = json.loads((output / "evaluation.json").read_text("utf-8"))
    return record, pd.read_csv(output / "objects.csv")


@pytest.mark.long
def test_both_ways(
    overlapping_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat, cut = evaluated(overlapping_folder, tmp_path / "flat")
    capsys.readouterr()
    kept, whole = evaluated(overlapping_folder, tmp_path / "kept", "--overlaps", "keep")
    # 100 px of which 40 are covered: 60 / 100; or all of them.
    of_first = "region == 'P_1' and side == 'reference' and id == 1"
    assert cut.query(of_first)["iou"].item() == 0.6
    assert whole.query(of_first)["iou"].item() == 1.0
    assert whole.query("side == 'prediction'")["area_px"].tolist() == [100] * 6
    assert flat["settings"]["overlaps"] == "flatten"
    assert "overlaps" not in flat
    assert flat["score"]["team"] == pytest.approx(1.6 / 2.5)
    assert kept["score"]["team"] == pytest.approx(2 / 2.5)
    assert kept["overlaps"] == {
        "team": {
            "overlapping_objects": 4,
            "keep": kept["score"]["team"],
            "flatten": flat["score"]["team"],
        }
    }
    assert "4 predicted objects of team share pixels" in capsys.readouterr().out


def test_regions_in_windows_say_so(overlapping_folder: Path, tmp_path: Path) -> None:
    kept = arguments(overlapping_folder, tmp_path / "out", "--overlaps", "keep")
    assert main([*kept, "--held-up-to", "100"]) == 1


def test_a_table_of_class_names_belongs_to_the_inputs(
    overlapping_folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "cohort"
    shutil.copytree(overlapping_folder, copy)
    names = {"1": ["Lymphocyte", [0, 0, 0]]}
    (copy / "team" / "type_info.json").write_text(json.dumps(names))
    record, objects = evaluated(copy, tmp_path / "out")
    assert set(objects.query("side == 'prediction'")["class"]) == {"Lymphocyte"}
    assert "team/type_info.json" in record["inputs"]
    assert "extra" not in record["warnings"]


def test_not_with_the_scoring_of_the_challenge(
    overlapping_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = arguments(overlapping_folder, tmp_path / "out", "--overlaps", "keep")
    with pytest.raises(SystemExit) as stopped:
        main([*kept, "--protocol", "monusac-2020-as-run"])
    assert stopped.value.code == 2
    assert "leave overlaps at flatten" in capsys.readouterr().err
