from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.spreadsheets import inert, inert_cells
from napari_panoptic.nuclei.outcomes import OBJECTS
from napari_panoptic.nuclei.regions.results import placed
from napari_panoptic.report.writing import write_set

FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x","y")']


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_texts(text: str) -> None:
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "Team A", "a=b", "'=1", "1", "–"])
def test_other_texts_stay(text: str) -> None:
    assert inert(text) == text


def test_numbers_and_undefined_cells_stay() -> None:
    frame = pd.DataFrame({"=team": ["-a", "b", None], "pq": [-0.5, np.nan, 1.0], "n": [-1, 0, 1]})
    safe = inert_cells(frame)
    assert list(safe.columns) == ["'=team", "pq", "n"]
    assert safe["'=team"].tolist()[:2] == ["'-a", "b"]
    assert safe["'=team"].isna().tolist() == [False, False, True]
    pd.testing.assert_frame_equal(safe[["pq", "n"]], frame[["pq", "n"]])
    assert list(frame.columns) == ["=team", "pq", "n"]
    plain = pd.DataFrame({"team": ["a"], "pq": [1.0]})
    pd.testing.assert_frame_equal(inert_cells(plain), plain)


def test_tables_and_rows_of_objects(tmp_path: Path) -> None:
    frame = pd.DataFrame({"team": ["=1+1"], "score": [-0.25]})
    path, _ = write_set(tmp_path, {"teams.csv": frame}, ("evaluation.json", {}))
    assert path.read_text(encoding="utf-8") == "team,score\n'=1+1,-0.25\n"
    objects = OBJECTS.frame([{"class": "+Cell", "iou": -1.0}, {"class": "Cell", "iou": 0.5}])
    rows = placed(objects, ("=team", "-patient", "@region"))
    assert OBJECTS.csv(rows, with_header=False).decode() == (
        "'=team,'-patient,'@region,,,'+Cell,,,,,-1.0,,,,,,\n"
        "'=team,'-patient,'@region,,,Cell,,,,,0.5,,,,,,\n"
    )
