"""One detection far beyond the image ended evaluate; arrays of time differences were no error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic import evaluate_pair
from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import LabelError
from napari_panoptic.io.formats.points.point_files import read_points

DESCRIPTION = """
task = "detections"
mpp = 0.25

[files]
reference = "{region}.csv"
predictions = "teams/{team}/{region}.csv"
"""


@pytest.mark.parametrize("line", ["1e160,3,0.8", "3,-1e160", "1e308,1e308,0.5"])
def test_defect_30_a_detection_far_off_is_left_out_and_listed(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort, tables = tmp_path / "cohort", tmp_path / "tables"
    (cohort / "teams" / "a").mkdir(parents=True)
    (cohort / "cohort.toml").write_text(DESCRIPTION)
    for name in ("p_1", "p_2"):
        (cohort / f"{name}.csv").write_text("10,10\n50,50\n")
        (cohort / "teams" / "a" / f"{name}.csv").write_text("10,10,0.9\n")
    (cohort / "teams" / "a" / "p_1.csv").write_text(f"10,10,0.9\n{line}\n")
    assert main(["evaluate", str(cohort), "--output", str(tables)]) == 0
    assert any(tables.glob("*.csv"))
    told = capsys.readouterr().err
    assert "line 2 of p_1.csv is left out" in told
    assert "coordinates up to 1e+12 px" in told


def test_defect_30_the_mean_of_a_mitosis_far_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,1\n1e308,1,1e308,1\n")
    read = read_points(path, is_reference=True)
    assert read.points.ids.tolist() == [1]
    assert [finding.object_ids for finding in read.findings] == [(2,)]


@pytest.mark.parametrize("unit", ["s", "D"])
def test_defect_30_differences_of_times_are_no_labels(unit: str) -> None:
    labels = np.ones((4, 4), np.int32)
    times = labels.astype(f"timedelta64[{unit}]")
    with pytest.raises(LabelError, match="must hold whole numbers, found type timedelta64"):
        evaluate_pair(times, labels, reference_classes={1: "a"}, prediction_classes={1: "a"})
