"""The command ``scores``: its files are a contract, and its figures those of ``evaluate``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.notebook import open_cohort as opened
from napari_panoptic.questions.engines.precision import COCO_IOUS
from napari_panoptic.questions.engines.thresholds import FIGURES
from napari_panoptic.questions.scores import ScoreQuality
from napari_panoptic.report.nuclei.cohort_report import ReportRequest, cohort_report
from napari_panoptic.report.nuclei.page import report_page
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.commands import Run
from tests.support.scored_files import DESCRIPTION, write_side

PATIENTS = 7
LEAST = 0.4


@pytest.fixture(scope="module")
def scored_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a team with scores, the same without low scores, and the same without any."""
    root = tmp_path_factory.mktemp("scores")
    (root / "cohort.toml").write_text(DESCRIPTION)
    rng = np.random.default_rng(2)
    for patient in range(PATIENTS):
        reference, prediction = np.zeros((2, 60, 60), np.uint16)
        annotated, predicted = [], []
        for number in range(1, 26):
            y, x = np.array(divmod(number - 1, 5)) * 12 + 1
            kind = str(rng.choice(["Tumour", "Lymphocyte"]))
            score = round(float(rng.random()), 2)
            if rng.random() < 0.9:
                reference[y : y + 8, x : x + 8] = number
                annotated.append((number, kind))
            shift = 1 if rng.random() < score + 0.2 else 4
            prediction[y : y + 8, x + shift : x + shift + 7] = number
            guess = kind if rng.random() < 0.8 else "Tumour"
            predicted.append((number, guess, score if rng.random() < 0.9 else ""))
        name = f"p{patient}_1"
        low = [row[0] for row in predicted if row[2] != "" and row[2] < LEAST]
        others = [row[:2] for row in predicted if row[0] not in low]
        write_side(root / "annotation", name, reference, annotated)
        write_side(root / "teams" / "scored", name, prediction, predicted)
        write_side(root / "teams" / "plain", name, prediction, [row[:2] for row in predicted])
        cut = np.where(np.isin(prediction, low), 0, prediction)
        write_side(root / "teams" / "cut", name, cut, others)
    return root


def test_figures_are_those_of_an_evaluation_of_fewer_predictions(
    run: Run, scored_folder: Path, tmp_path: Path
) -> None:
    assert run("evaluate", scored_folder, "-o", tmp_path / "e", "--no-distances")[0] == 0
    code, out, err = run("scores", scored_folder, "--team", "scored", "-o", tmp_path / "s")
    assert code == 0, err
    assert {path.name for path in (tmp_path / "s").iterdir()} == set(ScoreQuality.file_names())
    found = {spec.file: pd.read_csv(tmp_path / "s" / spec.file) for spec in ScoreQuality.tables}
    for spec in ScoreQuality.tables:
        assert list(found[spec.file]) == spec.keys, spec.file
    teams = pd.read_csv(tmp_path / "e" / "teams.csv").set_index("team")
    thresholds = found["thresholds.csv"]
    whole = thresholds.iloc[0]
    cut = thresholds[thresholds["threshold"] >= LEAST].iloc[0]
    for name in FIGURES:
        assert whole[name] == pytest.approx(teams.loc["plain", f"{name}_mean"], rel=1e-12)
        assert cut[name] == pytest.approx(teams.loc["cut", f"{name}_mean"], rel=1e-12)
    # The same objects, in the order of their scores.
    objects = pd.read_csv(tmp_path / "e" / "objects.csv")
    own = objects[(objects["team"] == "scored") & (objects["side"] == "prediction")]
    wrong = own[own["status"].isin(["FP", "misclassified"]) & own["score"].notna()]
    failures = found["failures_by_score.csv"]
    assert failures["score"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(
        failures.sort_values(["region", "id"], ignore_index=True),
        wrong.sort_values(["region", "id"], ignore_index=True),
    )
    assert whole["kept"] == len(own)
    assert cut["kept"] == (~(own["score"] < LEAST)).sum()
    average = found["average_precision.csv"]
    assert set(average["class"]) == {"Tumour", "Lymphocyte", "mean"}
    assert average["iou"].unique().tolist() == pytest.approx(COCO_IOUS)
    record = json.loads((tmp_path / "s" / "scores.json").read_text())
    assert record["without_score"] == own["score"].isna().sum()
    assert record["predictions"] == len(own)
    assert record["ap"] == pytest.approx(average.loc[average["class"] == "mean", "ap"].mean())
    best = record["best_thresholds"]["pq"]
    assert best["optimistic"] == pytest.approx(thresholds["pq"].max(), rel=1e-12)
    chosen = found["chosen_thresholds.csv"]
    after = chosen.loc[chosen["figure"] == "pq", "after"]
    assert best["honest"]["mean"] == pytest.approx(after.mean())
    assert best["honest"]["mean"] <= best["optimistic"]
    binned = found["reliability.csv"]
    assert binned["objects"].sum() == own["score"].notna().sum()
    assert record["ece"] == pytest.approx(
        ((binned["share"] - binned["score"]).abs() * binned["objects"]).sum()
        / binned["objects"].sum()
    )
    assert f"scored: {len(own)} predictions" in out
    assert "for patients who did not choose the threshold" in out
    # The same in Python.
    scores = opened(scored_folder).scores("scored")
    assert scores.best("pq").threshold == best["threshold"]


def test_without_scores_it_says_how_to_state_them(
    run: Run, scored_folder: Path, tmp_path: Path
) -> None:
    code, _, err = run("scores", scored_folder, "--team", "plain", "-o", tmp_path / "out")
    assert code == 1
    assert "plain: no prediction has a score" in err
    assert "predictions.score" in err
    assert not list((tmp_path / "out").glob("*"))


def test_where_matches_depend_on_others_there_is_no_curve(
    run: Run, scored_folder: Path, tmp_path: Path
) -> None:
    arguments = (
        "scores",
        scored_folder,
        "--team",
        "scored",
        "-o",
        tmp_path,
        "--matching",
        "centroid",
    )
    code, out, _ = run(*arguments)
    assert code == 0
    assert "No figures over thresholds" in out
    assert pd.read_csv(tmp_path / "thresholds.csv").empty
    assert len(pd.read_csv(tmp_path / "reliability.csv")) == 10


def test_the_report_shows_teams_with_scores(scored_folder: Path) -> None:
    found = open_cohort(scored_folder)
    settings = EvaluationSettings(distances=False)
    request = ReportRequest(found, settings, "disentangled", ("scored", "plain"))
    report = cohort_report(request, jobs=1)
    assert report is not None
    answers = {own.team: answer for own, answer in report.answers if isinstance(own, ScoreQuality)}
    assert list(answers) == ["scored"]
    alone = ScoreQuality(team="scored", settings=settings).answer(found)
    assert answers["scored"].notes == alone.notes
    for name, table in alone.files.items():
        pd.testing.assert_frame_equal(answers["scored"].files[name], table)
    text = report_page(report, [], only=["scores"])
    assert "Average precision" in text
    assert "PQ is best without scores below" in text
    assert text.count("<svg") == len(alone.plots) == 3
