"""The tables themselves: what stands in them where something is undefined or missing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.files import fingerprints
from napari_panoptic.nuclei.outcomes import OBJECTS
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.results import ObjectsFile, RegionResult, placed
from napari_panoptic.report.nuclei.tables import (
    input_fingerprints,
    patients_by_class_table,
    patients_table,
    record_of,
    regions_table,
    teams_table,
    write_tables,
)
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import PROTOCOLS, EvaluationSettings
from tests.support.small_cohort import ANNOTATIONS, REGIONS, TEAMS

FIRST = REGIONS[0]
SETTINGS = EvaluationSettings()


def evaluated(
    cohort: Cohort, settings: EvaluationSettings, teams: Sequence[str]
) -> list[RegionResult]:
    alone = (Condition("alone", settings),)
    regions = (Experiment(teams, alone).evaluate(cohort, r)[0] for r in cohort.regions)
    return [result for found in regions for result in found]


@pytest.fixture(scope="module")
def evaluation(small_cohort: Cohort) -> CohortEvaluation:
    names = [team.name for team in small_cohort.teams]
    return CohortEvaluation(
        small_cohort, SETTINGS, "disentangled", evaluated(small_cohort, SETTINGS, names)
    )


@pytest.fixture(scope="module")
def nothing(small_cohort: Cohort) -> CohortEvaluation:
    results = [
        RegionResult(team, region.patient, region.name, None, None)
        for region in REGIONS
        for team in TEAMS
    ]
    return CohortEvaluation(small_cohort, SETTINGS, "disentangled", results)


def of_team(evaluation: CohortEvaluation, *names: str) -> CohortEvaluation:
    return replace(evaluation, results=[r for r in evaluation.results if r.team in names])


def objects_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Give one row per object of every team and region, all in memory."""
    frames = [
        placed(result.objects, result.place)
        for result in evaluation.evaluated
        if result.objects is not None and not result.objects.empty
    ]
    return pd.concat(frames, ignore_index=True) if frames else OBJECTS.frame([])


def test_tables_of_nothing_have_their_columns_and_no_rows(nothing: CohortEvaluation) -> None:
    for table in (objects_table, regions_table, patients_table, patients_by_class_table):
        frame = table(nothing)
        assert len(frame) == 0
        assert list(frame.columns)[:2] == ["team", "patient"]
    teams = teams_table(nothing)
    assert teams["team"].tolist() == list(TEAMS)
    assert teams["patients"].tolist() == [0, 0]
    assert teams["pq_mean"].isna().all()


def test_columns_of_objects_are_those_that_others_read() -> None:
    contract = (
        "team,patient,region,side,id,class,status,cause,partner_id,partner_class,iou,hausdorff_px,"
        "hausdorff_um,area_px,centroid_y_px,centroid_x_px"
    )
    assert OBJECTS.csv(OBJECTS.frame([])).decode().startswith(f"{contract},")


def test_undefined_numbers_are_null_in_the_record(
    nothing: CohortEvaluation, tmp_path: Path
) -> None:
    write_tables(nothing, tmp_path)
    text = (tmp_path / "evaluation.json").read_text("utf-8")
    assert "NaN" not in text
    found = json.loads(text)
    assert found["score"] == dict.fromkeys(TEAMS)
    assert found["evaluated_regions"] == dict.fromkeys(TEAMS, 0)
    assert found["statistics"]["pq"]["patients"] == 0


def test_a_unit_with_nothing_in_it_is_undefined(evaluation: CohortEvaluation) -> None:
    """Team alpha finds nothing where nothing is annotated: no figure, and no part in the mean."""
    patients = patients_table(of_team(evaluation, "alpha")).set_index("patient")
    assert patients.loc[REGIONS[-1].patient].drop("team").isna().all()
    team = teams_table(of_team(evaluation, "alpha")).iloc[0]
    assert team["patients"] == 3
    assert team["pq_mean"] == pytest.approx(patients["pq"].dropna().mean(), rel=1e-12)
    assert patients["pq"].notna().sum() == 2


def test_the_region_table_lists_classes_that_are_present(evaluation: CohortEvaluation) -> None:
    regions = regions_table(evaluation)
    rows = regions[(regions["team"] == "beta") & (regions["region"] == REGIONS[-1].name)]
    assert rows["class"].tolist() == ["Lymphocyte", "Neutrophil", "mean"]
    mean = rows.iloc[-1]
    assert pd.isna(mean[["tp", "fp", "fn", "iou_sum", "sq"]]).all()
    assert (mean["pq"], mean["dq"]) == (0.0, 0.0)


def test_statistics_compare_the_competing_teams(evaluation: CohortEvaluation) -> None:
    found: dict[str, Any] = record_of(evaluation)["statistics"]
    ranks = found["pq"]["mean_ranks"]
    assert set(ranks) == set(TEAMS)
    # Only patients with a figure of both teams count; alpha is better in each of the two.
    assert found["pq"]["patients"] == 2
    assert ranks == {"alpha": 1.0, "beta": 2.0}
    assert np.isnan(found["pq"]["friedman_p"])
    assert found["pq"]["nemenyi_p"] is None
    assert found["pq"]["ranks"] == {"alpha": 1, "beta": 1}


def test_a_short_distance_ranks_first(evaluation: CohortEvaluation) -> None:
    """In the first patient beta, which matches little, matches it closely."""
    own = [r for r in evaluation.results if r.patient == FIRST.patient and r.team in TEAMS]
    one_patient = replace(evaluation, results=own)
    distances = patients_table(one_patient).set_index("team")["mean_hausdorff_px"]
    assert distances["beta"] < distances["alpha"]
    found = record_of(one_patient)["statistics"]
    assert found["mean_hausdorff_px"]["mean_ranks"] == {"alpha": 2.0, "beta": 1.0}
    assert found["detection_recall"]["mean_ranks"] == {"alpha": 1.0, "beta": 2.0}


def test_findings_are_listed_once_by_kind(evaluation: CohortEvaluation) -> None:
    odd = Finding(FindingKind.NO_MPP, "no micrometres per pixel", region=FIRST.name)
    results = [replace(r, findings=(*r.findings, odd)) for r in evaluation.results]
    warnings = record_of(replace(evaluation, results=results))["warnings"]
    assert [w["message"] for w in warnings["no-mpp"]] == [odd.message]
    assert warnings["missing"] == []
    # The annotation is read once for all teams, so it is reported once.
    assert len([w for w in warnings["degenerate"] if w["region"] == FIRST.name]) == 1


@pytest.mark.parametrize("protocol", ["disentangled", "monusac-2020-as-run"])
def test_objects_written_one_by_one_make_the_same_tables(
    small_cohort: Cohort, tmp_path: Path, protocol: str
) -> None:
    settings = PROTOCOLS[protocol]
    results = evaluated(small_cohort, settings, TEAMS)
    whole = CohortEvaluation(small_cohort, settings, protocol, results)
    write_tables(whole, tmp_path / "whole")
    table = objects_table(whole).to_csv(index=False, lineterminator="\n")
    assert (tmp_path / "whole" / "objects.csv").read_bytes() == table.encode()
    (tmp_path / "streamed").mkdir()
    with ObjectsFile(tmp_path / "streamed") as objects:
        for result in results:
            objects.add(result)
        small = [result.without_objects() for result in results]
        assert all(result.objects is None for result in small)
        write_tables(replace(whole, results=small), tmp_path / "streamed", objects)
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "streamed" / path.name).read_bytes() == path.read_bytes(), path.name
    assert len(list((tmp_path / "streamed").iterdir())) == 7


def test_an_unfinished_table_of_objects_leaves_the_older_one(
    evaluation: CohortEvaluation, tmp_path: Path
) -> None:
    (tmp_path / "objects.csv").write_text("the old one", encoding="utf-8")
    with ObjectsFile(tmp_path) as objects:
        objects.add(evaluation.results[0])
        assert (tmp_path / "objects.csv").read_bytes() == b"the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["objects.csv"]


def test_fingerprints_are_those_of_the_files(small_cohort: Cohort) -> None:
    found = input_fingerprints(small_cohort, ["alpha"])
    assert not any("/beta/" in name or "RGB_mask" in name for name in found)
    name = f"{ANNOTATIONS}/{FIRST.patient}/{FIRST.name}.svs"
    content = (small_cohort.root / name).read_bytes()
    assert found[name] == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_fingerprints_of_large_and_of_missing_files(
    small_cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_WHOLE_FILE_BYTES", 1000)
    monkeypatch.setattr(fingerprints, "_END_BYTES", 100)
    path = small_cohort.root / ANNOTATIONS / FIRST.patient / f"{FIRST.name}.svs"
    name = path.relative_to(small_cohort.root).as_posix()
    data = path.read_bytes()
    ends = str(len(data)).encode() + data[:100] + data[-100:]
    found = input_fingerprints(small_cohort, [])
    assert found[name] == f"sha256-of-size-and-ends:{hashlib.sha256(ends).hexdigest()}"
    gone = replace(small_cohort.regions[0], image=small_cohort.root / "gone.svs", reference=None)
    found = input_fingerprints(replace(small_cohort, regions=(gone,)), [])
    assert found == {"gone.svs": "unreadable: No such file or directory"}


def test_a_table_is_written_whole_or_not_at_all(
    evaluation: CohortEvaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "objects.csv").write_text("the old one", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_tables(evaluation, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["objects.csv"]
    assert (tmp_path / "objects.csv").read_bytes() == b"the old one"


def test_every_digit_is_written(evaluation: CohortEvaluation, tmp_path: Path) -> None:
    write_tables(evaluation, tmp_path)
    found = pd.read_csv(tmp_path / "objects.csv", dtype=str)
    wanted = objects_table(evaluation)
    for column in ("iou", "centroid_y_px"):
        # By NumPy: pandas has read the last digit wrong or right, as it was told or by itself.
        read = found[column].to_numpy(float)
        np.testing.assert_array_equal(read, wanted[column].to_numpy(float))
    assert b"\r" not in (tmp_path / "objects.csv").read_bytes()
