"""``napari-panoptic sweep``: everything recomputed from the tables of ``evaluate``."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.questions.sweep import Sweep
from tests.support.sweep_cohort import MERGED, SIZES, SPLIT, TOML, write_labels

TEAMS = [f"min_size{size}" for size in SIZES]


@pytest.fixture(scope="module")
def swept(sweep_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    assert main(["sweep", str(sweep_folder), "-o", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def tables(sweep_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    assert main(["evaluate", str(sweep_folder), "-o", str(folder), "--no-distances"]) == 0
    return folder


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def test_the_choice_is_that_by_hand(swept: Path, tables: Path) -> None:
    patients = read(tables / "patients.csv")
    pq = patients.pivot_table(index="patient", columns="team", values="pq")[TEAMS]
    record = json.loads((swept / "sweep.json").read_text("utf-8"))
    found = read(swept / "sweep.csv")
    assert list(found["team"]) == TEAMS
    assert list(found["param_min_size"]) == list(SIZES)
    np.testing.assert_allclose(found["mean"], pq.mean(), atol=1e-12)
    assert (found["low"] <= found["mean"]).all()
    assert (found["mean"] <= found["high"]).all()
    assert record["best"] == pq.mean().idxmax()
    chosen = {patient: pq.drop(patient).mean().idxmax() for patient in pq.index}
    assert len(set(chosen.values())) > 1  # the patients disagree
    left_out = [pq.loc[patient, team] for patient, team in chosen.items()]
    assert record["honest"]["mean"] == pytest.approx(np.mean(left_out), abs=1e-12)
    assert record["optimistic"] == pytest.approx(pq.mean().max(), abs=1e-12)
    assert record["optimism"]["mean"] == pytest.approx(pq.mean().max() - np.mean(left_out))
    assert record["optimism"]["mean"] > 0
    rows = read(swept / "sweep_patients.csv").set_index("patient")
    assert rows["chosen"].to_dict() == chosen
    np.testing.assert_allclose(rows["left_out"], left_out, atol=1e-12)
    np.testing.assert_allclose(rows[[f"figure_{team}" for team in TEAMS]], pq, atol=1e-12)


def test_causes_and_flips_are_those_of_the_objects(
    swept: Path, tables: Path, sweep_folder: Path
) -> None:
    objects = read(tables / "objects.csv").fillna({"cause": ""})
    causes = read(swept / "sweep_causes.csv").set_index(["team", "side", "cause"])["count"]
    failed = objects[objects["status"].isin(["FN", "FP"])].groupby(["team", "side", "cause"]).size()
    for key, n in causes.items():
        assert n == failed.get(key, 0)
    assert causes.sum() == failed[TEAMS].sum()
    for place, team in enumerate(TEAMS):  # as planted
        assert causes[team, "reference", "split"] == sum(n[place] for n in SPLIT.values())
        assert causes[team, "reference", "merged"] == 2 * sum(n[place] for n in MERGED.values())
    # The report has a column for each cause that occurs under any setting.
    (wide,) = (
        t
        for t in Sweep().answer(open_cohort(sweep_folder)).tables
        if t.heading == "Causes of failures"
    )
    counted = causes.unstack(["side", "cause"]).loc[TEAMS]
    occurring = counted.loc[:, counted.any()]
    assert not occurring.all().all()  # some of them do not occur under all settings
    assert list(wide.frame) == ["setting", *(f"{side}: {cause}" for side, cause in occurring)]
    assert wide.frame.drop(columns="setting").to_numpy().tolist() == occurring.to_numpy().tolist()
    steps = read(swept / "sweep_steps.csv").set_index(["team_before", "team_after"])
    assert list(steps.index) == list(pairwise(TEAMS))
    assert list(steps["turns"].fillna("")) == ["", "yes", ""]
    # Fragments and mergers, and an FP in each of four regions that is elsewhere under each setting.
    assert list(steps["gone"]) == [2 * (24 - 6) + 4, 2 * 6 + 4, 4]
    assert list(steps["new"]) == [4, 4 + 4, 16 - 4 + 4]
    flips = read(swept / "sweep_flips.csv")
    reference = objects[objects["side"] == "reference"].copy()
    reference["outcome"] = reference["status"].where(
        reference["cause"] == "", reference["status"] + ": " + reference["cause"]
    )
    outcome = reference.set_index(["team", "region", "id"])["outcome"]
    for before, after in steps.index:
        both = pd.DataFrame({"before": outcome[before], "after": outcome[after]})
        moved = both[both["before"] != both["after"]]
        own = flips[(flips["team_before"] == before) & (flips["team_after"] == after)]
        annotated = own[own["side"] == "reference"].set_index(["region", "id"])
        assert annotated["outcome_before"].to_dict() == moved["before"].to_dict()
        assert annotated["outcome_after"].to_dict() == moved["after"].to_dict()
        assert steps.loc[(before, after), "fixed"] == (moved["after"] == "TP").sum()
        assert steps.loc[(before, after), "broken"] == (moved["before"] == "TP").sum()
        fps = own[own["side"] == "prediction"]["change"].value_counts()
        assert steps.loc[(before, after), "new"] == fps.get("new", 0)
        assert steps.loc[(before, after), "gone"] == fps.get("gone", 0)


def test_a_table_names_the_settings(
    sweep_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "settings.csv"
    table.write_text("team;mode;size\nmin_size3;b;3\nother;a;1\nmin_size1;b;1\n", "utf-8")
    command = ["sweep", str(sweep_folder), "--settings", str(table), "-o", str(tmp_path / "out")]
    assert main([*command, "--metric", "f1"]) == 0
    found = read(tmp_path / "out" / "sweep.csv")
    assert list(found["team"]) == ["min_size1", "min_size3", "other"]  # words as first met
    assert list(found["param_mode"]) == ["b", "b", "a"]
    steps = read(tmp_path / "out" / "sweep_steps.csv")
    pairs = list(zip(steps["parameter"], steps["team_before"], steps["team_after"], strict=True))
    assert pairs == [("mode", "min_size1", "other"), ("size", "min_size1", "min_size3")]
    assert "best setting: other (mode=a, size=1)" in capsys.readouterr().out
    page = (tmp_path / "out" / "sweep.html").read_text("utf-8")
    assert page.count("<svg") == 2
    assert "min_size3" in page
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(Sweep.file_names())


def test_a_setting_does_not_win_by_patients_in_whom_it_finds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cohort"
    for patient in range(4):
        name, reference = f"P{patient}_a.tif", np.zeros((20, 40), np.uint16)
        for id_ in (1, 2, 3):
            reference[4:16, 12 * id_ - 10 : 12 * id_] = id_
        shifted, strict = np.roll(reference, 1, axis=1), reference * (reference == 1)
        write_labels(folder / "reference" / name, reference)
        write_labels(folder / "teams" / "t=0.5" / name, shifted)
        write_labels(folder / "teams" / "t=0.9" / name, strict if patient == 0 else 0 * strict)
    (folder / "cohort.toml").write_text(TOML, "utf-8")
    assert main(["sweep", str(folder), "-o", str(tmp_path / "out"), "--metric", "sq"]) == 0
    record = json.loads((tmp_path / "out" / "sweep.json").read_text("utf-8"))
    found = read(tmp_path / "out" / "sweep.csv").set_index("team")
    # IoU of an object shifted by 1 of 10 px; one patient has a perfect figure at 0.9.
    assert found["mean"].to_dict() == pytest.approx(
        {"t=0.5": 9 / 11, "t=0.9": (3 * 9 / 11 + 1) / 4}
    )
    assert found["patients"].to_dict() == {"t=0.5": 4, "t=0.9": 1}
    assert record["honest"]["n"] == 4
    assert record["honest"]["mean"] < 1
    assert record["counted_as_worst"] == ["P1", "P2", "P3"]
    out = capsys.readouterr().out
    assert "over 4 patients" in out
    assert "undefined under some settings: 3 patients (P1, P2 and P3)" in out
    assert "(an interval of a choice needs at least 6 patients, found 4)" in out
    rows = read(tmp_path / "out" / "sweep_patients.csv")
    assert rows["figure_t=0.9"].isna().sum() == 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--teams", "other,min_size1"], "expected the same parameters"),
        (["--teams", "min_size1"], "two or more settings"),
        (["--metric", "nothing"], "invalid choice"),
        (["--protocol", "monusac-2020-as-run"], "leave them out"),
    ],
)
def test_mistakes_are_explained(
    sweep_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    said: str,
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(sweep_folder), "-o", str(tmp_path / "out"), *more])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
