"""The command ``slices``: its files are a contract."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.commands import Run

COLUMNS = ["slice", "objects", "failures", "rate", "rate_elsewhere", "p", "confirmed"]


@pytest.fixture
def slices(run: Run) -> Run:
    """Return a function that runs ``slices`` with few permutations."""
    return partial(run, "slices", "--permutations", "99")


def planted(objects: pd.DataFrame, path: Path, *, team: str, failing: tuple[str, ...]) -> Path:
    """Write a table in which objects that fail are blurred more often than others."""
    own = objects[(objects["team"] == team) & (objects["side"] == "reference")]
    rng = np.random.default_rng(7)
    fails = own["status"].isin(failing).to_numpy()
    blur = np.where(rng.random(len(own)) < np.where(fails, 0.7, 0.1), 0.9, 0.1)
    table = own[["patient", "region", "side", "id"]].assign(
        blur=(blur + 0.1 * rng.random(len(own))).round(4), batch=rng.choice(["a", "b"], len(own))
    )
    table.to_csv(path, index=False)
    return path


def test_a_planted_slice_is_written_and_printed(
    slices: Run, nuclei_sample: Path, sample_objects: pd.DataFrame, tmp_path: Path
) -> None:
    table = planted(
        sample_objects, tmp_path / "c.csv", team="merger", failing=("FN", "misclassified")
    )
    code, out, err = slices(
        nuclei_sample, "--team", "merger", "-o", tmp_path / "out", "--covariates", table
    )
    assert code == 0, err
    found = pd.read_csv(tmp_path / "out" / "slices.csv", keep_default_na=False)
    assert list(found)[:7] == COLUMNS
    first = found.iloc[0]
    assert first["slice"].startswith("Nuclei with blur of ")
    own = sample_objects[
        (sample_objects["team"] == "merger")
        & (sample_objects["side"] == "reference")
        & (sample_objects["status"] != "ignored")
    ].merge(pd.read_csv(table), on=["patient", "region", "side", "id"])
    inside = own["blur"] >= float(first["condition"].removeprefix("blur >= "))
    fails = own["status"].isin(["FN", "misclassified"])
    assert first["objects"] == inside.sum()
    assert first["failures"] == (inside & fails).sum()
    assert first["rate"] == pytest.approx(fails[inside].mean())
    assert first["rate_elsewhere"] == pytest.approx(fails[~inside].mean())
    assert (found["p"] <= 0.05).all()
    assert set(found["confirmed"]) <= {"yes", "no", ""}
    assert f"1. {first['slice']}: " in out
    record = json.loads((tmp_path / "out" / "slices.json").read_text("utf-8"))
    assert record["failures"] == fails.sum()
    assert record["objects"] == len(own)
    assert {"blur", "batch", "area_px", "haematoxylin_od"} <= set(record["covariates"])


def test_nothing_that_stands_out_is_a_header(
    slices: Run, nuclei_sample: Path, sample_objects: pd.DataFrame, tmp_path: Path
) -> None:
    arguments = (nuclei_sample, "--team", "careful", "-o", tmp_path, "--cause", "split")
    code, out, _ = slices(*arguments)
    assert not ((sample_objects["team"] == "careful") & (sample_objects["cause"] == "split")).any()
    assert code == 0
    assert "nothing stands out" in out
    lines = (tmp_path / "slices.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1
    assert lines[0].split(",")[:7] == COLUMNS


def test_the_side_follows_from_the_cause(slices: Run, nuclei_sample: Path, tmp_path: Path) -> None:
    code, out, _ = slices(
        nuclei_sample, "--team", "over-splitter", "-o", tmp_path, "--cause", "fragment"
    )
    assert code == 0
    record = json.loads((tmp_path / "slices.json").read_text("utf-8"))
    assert (record["side"], record["cause"]) == ("prediction", "fragment")
    assert "predictions are fragment" in out


@pytest.mark.long
def test_the_same_command_gives_the_same_files(
    slices: Run, nuclei_sample: Path, tmp_path: Path
) -> None:
    written = []
    for folder in ("a", "b"):
        code, *_ = slices(nuclei_sample, "--team", "merger", "-o", tmp_path / folder)
        assert code == 0
        written.append([(tmp_path / folder / f"slices.{x}").read_bytes() for x in ("csv", "json")])
    assert written[0] == written[1]


def test_features_are_chosen(slices: Run, nuclei_sample: Path, tmp_path: Path) -> None:
    names = "rim_gradient_px,minor_axis_px,score"
    out = tmp_path / "out"
    code, *_ = slices(nuclei_sample, "--team", "merger", "-o", out, "--features", names)
    assert code == 0
    record = json.loads((out / "slices.json").read_text("utf-8"))
    assert record["covariates"] == ["minor_axis_px", "rim_gradient_px"]
    assert record["covariates_without_use"] == ["score"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--team", "nobody"), "nobody"),
        (("--team", "merger", "--cause", "tired"), "tired"),
        (("--team", "merger", "--cause", "fragment", "--side", "reference"), "fragment"),
        (("--team", "merger", "--side", "left"), "left"),
        (("--team", "merger", "--features", "area"), "haematoxylin_sd"),
        (("--team", "merger", "--permutations", "18"), "must be at least 19"),
        ((), "--team"),
    ],
)
def test_mistakes_end_with_2(
    slices: Run, nuclei_sample: Path, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    code, _, err = slices(nuclei_sample, "-o", tmp_path / "out", *arguments)
    assert code == 2
    assert problem in err
    assert not (tmp_path / "out").exists()


def test_a_table_that_cannot_be_read_ends_with_1(
    slices: Run, nuclei_sample: Path, tmp_path: Path
) -> None:
    table = tmp_path / "c.csv"
    table.write_text("patient,blur\np,1\n", encoding="utf-8")
    code, _, err = slices(
        nuclei_sample, "--team", "merger", "-o", tmp_path / "out", "--covariates", table
    )
    assert code == 1
    assert "add region, side and id" in err


def test_cohorts_of_other_tasks_are_refused(
    slices: Run, detection_sample: Path, tmp_path: Path
) -> None:
    code, _, err = slices(detection_sample, "--team", "x", "-o", tmp_path / "out")
    assert code == 2
    assert "no 'slices' for" in err
