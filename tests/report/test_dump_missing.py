"""Gaps in the organisers' output: a team's own mean, and what counts as the worst."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from napari_panoptic.cli.main import main

FIGURES = {
    "whole": {"P1 E": 0.9, "P2 E": 0.8, "P3 E": 0.7, "P3 L": 0.5},
    "other": {"P1 E": 0.4, "P2 E": 0.3, "P3 E": 0.2, "P3 L": 0.4},
    "gapped": {"P1 E": 0.5, "P2 E": 0.6, "P3 L": 0.8},
}
"""Team -> patient and class -> PQ; each patient has one region."""


def dumped(folder: Path, missing: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    lines = []
    for team, figures in FIGURES.items():
        lines.append(team)
        for place, pq in figures.items():
            patient, name = place.split()
            lines += [f".\\{patient}\\{patient}_1\\{name}\\1_mask.mat", "['1.mat']", repr(pq)]
    path = folder / "dump.txt"
    path.write_text("\n".join(lines))
    output = folder / missing
    assert main(["dump", str(path), "--missing", missing, "--output", str(output)]) == 0
    record = json.loads((output / "statistics.json").read_text("utf-8"))
    return pd.read_csv(output / "leaderboard.csv").set_index("team"), record["statistics"]["mean"]


def test_a_teams_own_mean_is_over_what_it_has(tmp_path: Path) -> None:
    for missing in ("complete-cases", "worst"):
        board, record = dumped(tmp_path, missing)
        assert board.loc["gapped", "patients"] == 2
        assert board.loc["gapped", "patient_mean"] == pytest.approx(0.55)
        assert record["means"]["gapped"]["mean"] == pytest.approx(0.55)
        assert board.loc["whole", "patient_mean"] == pytest.approx((0.9 + 0.8 + 0.6) / 3)


def test_what_counts_as_the_worst_is_listed(tmp_path: Path) -> None:
    _, record = dumped(tmp_path, "worst")
    assert record["patients"] == 3
    assert record["counted_as_worst"] == [["gapped", "P3"]]
    pairs = {(pair["first"], pair["second"]): pair for pair in record["pairs"]}
    assert pairs["whole", "gapped"]["counted_as_worst"] == [["gapped", "P3"]]
    assert pairs["whole", "other"]["counted_as_worst"] == []
    # The missing class counts as 0, not the whole patient: (0 + 0.8) / 2.
    expected = ((0.9 - 0.5) + (0.8 - 0.6) + (0.6 - 0.4)) / 3
    assert pairs["whole", "gapped"]["difference"]["mean"] == pytest.approx(expected)


def test_complete_cases_list_nothing(tmp_path: Path) -> None:
    _, record = dumped(tmp_path, "complete-cases")
    assert record["patients"] == 2
    assert record["counted_as_worst"] == []
