"""The ranking of teams: the same figures as among the statistics of ``evaluate``."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from napari_panoptic import open_cohort
from napari_panoptic.cli.main import main


def test_the_ranking_is_that_of_evaluate(nuclei_sample: Path, tmp_path: Path) -> None:
    quick = ["--protocol", "disentangled"]
    assert main(["ranking", str(nuclei_sample), "-o", str(tmp_path / "r"), *quick]) == 0
    assert main(["evaluate", str(nuclei_sample), "-o", str(tmp_path / "e"), *quick]) == 0
    found = pd.read_csv(tmp_path / "r" / "ranking.csv")
    record = json.loads((tmp_path / "r" / "ranking.json").read_text("utf-8"))
    wanted = json.loads((tmp_path / "e" / "evaluation.json").read_text("utf-8"))["statistics"]
    means = pd.read_csv(tmp_path / "e" / "teams.csv").set_index("team")
    assert set(found["metric"]) == set(record["statistics"])
    for row in found.to_dict("records"):
        metric, team = row["metric"], row["team"]
        assert row["mean"] == pytest.approx(means.loc[team, f"{metric}_mean"], nan_ok=True)
        one = record["statistics"][metric]
        assert row["rank"] == one["ranks"][team]
        assert row["mean_rank"] == one["mean_ranks"][team]
        assert row["friedman_p"] == pytest.approx(one["friedman_p"], nan_ok=True)
        if metric in wanted:
            assert one == wanted[metric]
    assert set(wanted) & set(record["statistics"])


def test_a_row_leads_to_the_failures_of_its_team(nuclei_sample: Path) -> None:
    cohort = open_cohort(nuclei_sample)
    answer = cohort.ask("ranking", teams=("careful", "merger"))
    table = answer.tables["ranking.csv"]
    objects = cohort.evaluate("merger").objects
    failed = objects[objects["status"].isin(["FN", "FP", "misclassified"])]
    row = int(table.index[table["team"] == "merger"][0])
    assert len(answer.objects("ranking.csv", row)) == len(failed)


def test_one_team_has_no_rank(
    nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["ranking", str(nuclei_sample), "--teams", "merger", "-o", str(tmp_path)])
    assert stop.value.code == 2
    assert "two or more teams" in capsys.readouterr().err
