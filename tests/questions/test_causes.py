"""What each cause costs: an oracle over rows of objects, and images that are mended in fact."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic import evaluate_pair, open_cohort
from napari_panoptic.cli.main import main
from napari_panoptic.questions.causes import CAUSE_WORDS, Causes, _changes
from napari_panoptic.statistics.bootstrap import mean_interval
from napari_panoptic.values.cohort import Region

FIGURES = ("pq", "sq", "dq", "f1")
Rows = list[dict[str, Any]]


def mended(rows: Rows, cause: str) -> Rows:
    """Mend the failures of a cause, one row of ``objects.csv`` after the other."""
    result = []
    for row in rows:
        own = dict(row)
        if cause == "misclassified" and row["status"] == "misclassified":
            own["status"] = "TP"
            if row["side"] == "prediction":
                own["class"] = row["partner_class"]
            own["partner_class"] = own["class"]
        elif cause == row["cause"] and row["status"] == "FN":
            own |= {"status": "TP", "partner_class": row["class"], "iou": 1.0}
        elif cause == row["cause"] and row["status"] == "FP":
            continue
        result.append(own)
    return result


def figures(rows: Rows, name: str) -> dict[str, float]:
    """Compute the figures of a class, or of all for an empty name, as the definitions say."""
    if not name:
        classes = sorted({row["class"] for row in rows})
        each = [figures(rows, own) for own in classes]
        mean = {}
        for figure in FIGURES[:3]:
            known = [own[figure] for own in each if not math.isnan(own[figure])]
            mean[figure] = sum(known) / len(known) if known else math.nan
        return mean | {"f1": f1(rows)}
    reference = [row for row in rows if row["side"] == "reference" and row["class"] == name]
    predicted = [row for row in rows if row["side"] == "prediction" and row["class"] == name]
    right = [row for row in reference if row["status"] == "TP"]
    fn = sum(row["status"] in ("FN", "misclassified") for row in reference)
    fp = sum(row["status"] in ("FP", "misclassified") for row in predicted)
    total, tp = sum(row["iou"] for row in right), len(right)
    weight = tp + fp / 2 + fn / 2
    return {
        "pq": total / weight if weight else math.nan,
        "sq": total / tp if tp else math.nan,
        "dq": tp / weight if weight else math.nan,
        "f1": f1([*reference, *predicted]),
    }


def f1(rows: Rows) -> float:
    """Return the F1 of detection, whatever the classes of matched objects."""
    reference = [row["status"] for row in rows if row["side"] == "reference"]
    found = sum(status in ("TP", "misclassified") for status in reference)
    fn = reference.count("FN")
    fp = sum(row["status"] == "FP" for row in rows)
    weight = found + fp / 2 + fn / 2
    return found / weight if weight else math.nan


@pytest.mark.parametrize("team", ["merger", "confuser"])
def test_every_row_is_that_of_an_oracle(
    nuclei_sample: Path, sample_objects: pd.DataFrame, tmp_path: Path, team: str
) -> None:
    assert main(["causes", str(nuclei_sample), "--team", team, "-o", str(tmp_path)]) == 0
    found = pd.read_csv(tmp_path / "causes.csv", dtype={"class": str}).fillna({"class": ""})
    own = sample_objects[(sample_objects["team"] == team) & (sample_objects["status"] != "ignored")]
    own = own.assign(iou=pd.to_numeric(own["iou"]))
    patients = [rows.to_dict("records") for _, rows in own.groupby("patient", sort=False)]
    assert list(found["cause"][: len(CAUSE_WORDS)].sort_values()) == sorted(CAUSE_WORDS)
    for row in found.to_dict("records"):
        before = [figures(rows, row["class"]) for rows in patients]
        after = [figures(mended(rows, row["cause"]), row["class"]) for rows in patients]
        for figure in FIGURES:
            each = [b[figure] - a[figure] for a, b in zip(before, after, strict=True)]
            known = [change for change in each if not math.isnan(change)]
            wanted = sum(known) / len(known) if known else math.nan
            assert row[f"d_{figure}"] == pytest.approx(wanted, nan_ok=True)
            if figure == "pq" and len(known) > 1:
                interval = mean_interval(known)
                assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
        of_cause = own[(own["cause"] == row["cause"]) & own["status"].isin(["FN", "FP"])]
        if row["cause"] == "misclassified":
            of_cause = own[(own["status"] == "misclassified")]
            of_cause = of_cause[(of_cause["side"] == "reference") | (row["class"] != "")]
        n = len(of_cause if not row["class"] else of_cause[of_cause["class"] == row["class"]])
        assert row["failures"] == n


def test_removing_the_fps_of_a_cause_gives_the_figures_of_the_images_without_them() -> None:
    rng = np.random.default_rng(3)
    reference, prediction = (np.zeros((120, 120), np.int32) for _ in range(2))
    for k in range(1, 30):
        y, x = rng.integers(0, 110, 2)
        reference[y : y + 9, x : x + 9] = k
        if k % 3:
            dy, dx = rng.integers(-3, 4, 2)
            prediction[max(y + dy, 0) : y + dy + 8, max(x + dx, 0) : x + dx + 8] = k
    for k in range(30, 40):
        y, x = rng.integers(0, 112, 2)
        prediction[y : y + 5, x : x + 5] = k
    classes = {k: "ab"[k % 2] for k in range(1, 40)}
    names = {"reference_classes": classes, "prediction_classes": classes, "class_names": ["a", "b"]}
    evaluation = evaluate_pair(reference, prediction, **names)
    region = Region("r", "p", None, None)
    _, confusion, iou_sum, _ = Causes(team="t").part(evaluation, region)
    tried = 0
    for place, cause in enumerate(CAUSE_WORDS):
        rows = evaluation.objects.query(f"cause == '{cause}' and status == 'FP'")
        if not len(rows) or len(evaluation.objects.query(f"cause == '{cause}' and status == 'FN'")):
            continue
        tried += 1
        left = np.where(np.isin(prediction, rows["id"]), 0, prediction)
        mended_pair = evaluate_pair(reference, left, **names)
        changes = _changes(confusion, iou_sum)[:, 0, place]
        for change, name in zip(changes, ("pq", "sq", "dq", "detection_f1"), strict=True):
            wanted = mended_pair.metrics[name] - evaluation.metrics[name]
            assert change == pytest.approx(wanted, abs=1e-12)
    assert tried


def test_a_row_leads_to_its_failures(nuclei_sample: Path, sample_objects: pd.DataFrame) -> None:
    answer = open_cohort(nuclei_sample).ask("causes", team="merger")
    table = answer.tables["causes.csv"]
    row = int(np.flatnonzero((table["cause"] == "merged") & (table["class"] == ""))[0])
    wanted = sample_objects[
        (sample_objects["team"] == "merger") & (sample_objects["cause"] == "merged")
    ]
    assert len(wanted) == table["failures"][row] > 0
    found = answer.objects("causes.csv", row)
    keys = ["region", "side", "id"]
    assert set(found[keys].itertuples(index=False)) == set(wanted[keys].itertuples(index=False))


def test_wrong_words_and_nothing_to_evaluate(
    nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (
        ["causes", str(nuclei_sample), "-o", str(tmp_path)],
        ["causes", str(nuclei_sample), "--team", "nobody", "-o", str(tmp_path)],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "no team 'nobody'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_record_has_settings_and_inputs(nuclei_sample: Path, tmp_path: Path) -> None:
    arguments = ["--team", "merger", "-o", str(tmp_path), "--ambiguous", "keep"]
    assert main(["causes", str(nuclei_sample), *arguments]) == 0
    record = json.loads((tmp_path / "causes.json").read_text("utf-8"))
    assert record["settings"]["ambiguous"] == "keep"
    assert record["team"] == "merger"
    assert record["inputs"]
    assert set(record["tables"]) == {"causes.csv"}
