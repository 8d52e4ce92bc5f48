"""A deeply nested table of class names is refused, and nothing else is lost by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from tests.support.nested_names import cohort_with_type_info


@pytest.mark.parametrize("depth", [1_500, 100_000])
def test_deep_nesting_in_a_table_of_names_is_a_finding(
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


def test_a_value_may_be_nested_as_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f'{{"1": [{"[" * 900}{"]" * 900}]}}'
    cohort = cohort_with_type_info(tmp_path, table)
    assert main(["evaluate", str(cohort), "--output", str(tmp_path / "out")]) == 0
    assert len(capsys.readouterr().err) < 5_000
