"""Tables: shown, written and documented from the same columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from napari_panoptic.questions.sweep import SWEEP
from napari_panoptic.report.columns import shown_columns, table, team_column
from napari_panoptic.report.detections import tables as detections
from napari_panoptic.report.nuclei import tables as nuclei
from napari_panoptic.report.raters import tables as raters
from napari_panoptic.tables.columns import (
    TableSpec,
    across,
    name_column,
    number,
    ranked,
    unshown,
    whole,
)

NAN = float("nan")
TASKS = {"nuclei": nuclei.TABLES, "detections": detections.TABLES, "raters": raters.TABLES}
SPEC = TableSpec(
    "few.csv",
    "team",
    [
        name_column("team"),
        unshown("patients", about="number"),
        whole("rank"),
        number("pq", "PQ"),
    ],
)


@pytest.mark.parametrize("task", TASKS)
def test_the_files_have_the_columns_of_their_specifications(
    task: str, sample_tables: dict[str, Path]
) -> None:
    for spec in TASKS[task]:
        found = pd.read_csv(sample_tables[task] / spec.file, nrows=1).columns.tolist()
        if spec.file == "slices.csv":  # followed by the levels
            found = found[: len(spec.keys)]
        assert found == spec.keys


def test_a_table_without_rows_has_its_columns() -> None:
    assert SPEC.frame([]).columns.tolist() == ["team", "patients", "rank", "pq"]
    shown = table("few", "Few.", shown_columns(SPEC, ["a"]), SPEC.frame([]))
    assert "The table has no rows." in shown


@dataclass
class _Quality:
    class_name: str
    pq: float
    rank: int = 9


def test_rows_are_records_objects_or_several_of_them() -> None:
    spec = TableSpec("", "class", [*SPEC.columns, name_column("class")])
    rows = [
        {"team": "a", "pq": 0.5},
        _Quality("Lymphocyte", 0.25),
        ({"team": "b", "rank": 2}, _Quality("Epithelial", 0.75)),
    ]
    found = spec.frame(rows)
    assert found["team"].tolist()[::2] == ["a", "b"]
    assert found["class"].tolist()[1:] == ["Lymphocyte", "Epithelial"]
    assert found["pq"].tolist() == [0.5, 0.25, 0.75]
    assert found["rank"].tolist()[1:] == [9, 2]  # the first that has it
    assert found[["team", "class", "patients"]].isna().sum().tolist() == [1, 1, 3]


def test_rows_follow_the_file_without_a_second_header() -> None:
    frame = SPEC.frame([{"team": "=a", "patients": 3, "rank": 1, "pq": 0.5}]).assign(other=1)
    whole = SPEC.csv(frame[frame.columns[::-1]])
    assert whole == b"team,patients,rank,pq\n'=a,3,1,0.5\n"
    assert SPEC.csv(SPEC.frame([])) + SPEC.csv(frame, with_header=False) == whole


def test_undefined_values_are_shown_and_sorted_as_such() -> None:
    frame = SPEC.frame([{"team": "a", "patients": 3, "rank": None, "pq": 0.25}])
    frame["rank"] = frame["rank"].astype("Int64")
    shown = table("few", "Few.", shown_columns(SPEC, ["a"], ["team", "pq"]), frame)
    assert re.findall(r'<th scope="col"[^>]*>([^<]*)', shown) == ["team", "PQ", "rank"]
    assert 'data-value="0.25">0.250</td>' in shown
    assert 'data-value="">–</td>' in shown
    assert "patients" not in re.sub(r'href="[^"]*"', "", shown)


def test_figures_of_teams_stand_side_by_side() -> None:
    frame = pd.DataFrame(
        {"way": ["x", "x", "y", "y"], "team": ["a", "b"] * 2, "pq": [0.5, 0.25, NAN, 0.75],
         "rank": [1, 2, NAN, 1]}
    )  # fmt: skip
    rows = across(frame, ["way"], "team")
    assert [row["way"] for row in rows] == ["x", "y"]
    columns = [name_column("way"), *(ranked(team, ("team", team)) for team in ("a", "b"))]
    shown = re.sub(r"<[^>]*>", "", table("ways", "Ways.", columns, frame, rows))
    assert shown.endswith("wayabx0.500 (1)0.250 (2)y–0.750 (1)")


def test_names_in_cells_are_escaped() -> None:
    frame = pd.DataFrame({"team": ["<b>"], "patient": ["<script>"]})
    shown = table("names", "Names.", [team_column(["<b>"]), name_column("patient")], frame)
    assert "<b>" not in shown
    assert "<script>" not in shown


@pytest.mark.parametrize("spec", [SWEEP, SPEC])
def test_a_page_names_its_columns_as_the_panel_and_the_terminal_do(spec: TableSpec) -> None:
    titles = [column.title for column in shown_columns(spec)]
    assert [column.title for column in shown_columns(spec, ("a", "b"))] == titles
    assert titles[0] == ("setting" if spec is SWEEP else "team")
