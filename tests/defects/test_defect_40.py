"""A deeply nested table of class names is refused, and nothing else is lost by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from napari_panoptic.cli.main import main


@pytest.mark.parametrize("depth", [1_500, 100_000])
def test_defect_40_deep_nesting_in_a_table_of_names_is_a_finding(
    tmp_path: Path, depth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = cohort_with_type_info(tmp_path, "[" * depth)
    output = tmp_path / "out"
    assert main(["evaluate", str(cohort), "--output", str(output)]) == 0
    said = capsys.readouterr().err
    assert "type_info.json" in said
    assert "nested too deeply" in said
    record = json.loads((output / "evaluation.json").read_text("utf-8"))
    assert record["evaluated_regions"] == {"damaged": 0, "sound": 1}


def test_defect_40_a_value_may_be_nested_as_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f'{{"1": [{"[" * 900}{"]" * 900}]}}'
    cohort = cohort_with_type_info(tmp_path, table)
    assert main(["evaluate", str(cohort), "--output", str(tmp_path / "out")]) == 0
    assert len(capsys.readouterr().err) < 5_000


def cohort_with_type_info(folder: Path, table: str) -> Path:
    """Write a region and two teams, one of which has a table of names."""
    root = folder / "cohort"
    box = [[2, 2], [9, 2], [9, 9], [2, 9]]
    for team in ("damaged", "sound"):
        (root / team).mkdir(parents=True)
        nucleus = {"contour": box, "type": 1}
        text = json.dumps({"mag": 40, "nuc": {"1": nucleus}})
        (root / team / "r.json").write_text(text)
    (root / "damaged" / "type_info.json").write_text(table)
    (root / "cohort.toml").write_text(
        "classes.a = [255, 0, 0]\nclasses.b = [0, 255, 0]\n"
        'files.image = "{region}.png"\nfiles.reference.geojson = "{region}.geojson"\n'
        'files.predictions.hovernet = "{team}/{region}.json"\n'
    )
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [[*box, box[0]]]},
        "properties": {"classification": {"name": "a"}},
    }
    (root / "r.geojson").write_text(json.dumps([feature]))
    Image.new("RGB", (16, 16)).save(root / "r.png")
    return root
