"""Uncertain borders: every width against rows of objects that are evaluated for it alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic import EvaluationSettings, open_cohort
from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.questions.borders import BORDERS, FIGURES, WIDTHS_PX, Borders
from napari_panoptic.report.answers import drawn
from napari_panoptic.statistics.bootstrap import mean_interval
from napari_panoptic.values.cohort import Cohort
from tests.support.one_by_one import evaluate_alone
from tests.support.slides import HELD_UP_TO_PX, write_slide_cohort
from tests.support.sweep_cohort import TOML, write_labels

Rows = list[dict[str, Any]]


def figures(rows: Rows, name: str) -> dict[str, float]:
    """Compute the figures of a class, or of all for an empty name, as the definitions say."""
    if not name:
        each = [figures(rows, own) for own in sorted({row["class"] for row in rows})]
        found = {}
        for figure in ("pq", "sq", "dq", "mean_iou"):
            known = [own[figure] for own in each if not math.isnan(own[figure])]
            found[figure] = mean(known) if known else math.nan
        return found | {"detection_f1": f1(rows)}
    reference = [row for row in rows if row["side"] == "reference" and row["class"] == name]
    predicted = [row for row in rows if row["side"] == "prediction" and row["class"] == name]
    right = [row["iou"] for row in reference if row["status"] == "TP"]
    matched = [row["iou"] for row in reference if row["status"] in ("TP", "misclassified")]
    failed = [row for row in [*reference, *predicted] if row["status"] != "TP"]
    weight = len(right) + len(failed) / 2
    return {
        "pq": sum(right) / weight if weight else math.nan,
        "sq": mean(right) if right else math.nan,
        "dq": len(right) / weight if weight else math.nan,
        "mean_iou": mean(matched) if matched else math.nan,
        "detection_f1": f1([*reference, *predicted]),
    }


def f1(rows: Rows) -> float:
    """Return the F1 of detection, whatever the classes of matched objects."""
    found = sum(
        row["status"] in ("TP", "misclassified") for row in rows if row["side"] == "reference"
    )
    failed = sum(row["status"] in ("FN", "FP") for row in rows)
    return found / (found + failed / 2) if found + failed else math.nan


def objects_at(cohort: Cohort, team: str, px: int, **settings: Any) -> pd.DataFrame:
    """Evaluate each region of a team for one width alone."""
    own = EvaluationSettings(distances=False, zone_px=px, **settings)
    found = [
        result.objects.assign(region=result.region, patient=result.patient)
        for region in cohort.regions
        for result in evaluate_alone(cohort, region, [team], own, None)
        if result.objects is not None
    ]
    return pd.concat(found, ignore_index=True)


def assert_is_oracle(found: pd.DataFrame, cohort: Cohort, team: str, **settings: Any) -> None:
    """Compare all rows of a team with what the objects of each width give."""
    keys = ["region", "side", "id"]
    first = objects_at(cohort, team, 0, **settings).set_index(keys)
    usual: dict[str, dict[str, float]] = {}
    for px in WIDTHS_PX:
        objects = objects_at(cohort, team, px, **settings)
        own = objects[objects["status"] != "ignored"]
        patients = {name: rows.to_dict("records") for name, rows in own.groupby("patient")}
        before = first.loc[list(objects[keys].itertuples(index=False, name=None)), "status"]
        changed = objects[objects["status"].to_numpy() != before.to_numpy()]
        for name in ("", *cohort.scheme.names):
            row = found.query(f"team == '{team}' and `class` == '{name}' and zone_px == {px}")
            (row,) = row.to_dict("records")
            by_patient = {patient: figures(rows, name) for patient, rows in patients.items()}
            for figure in FIGURES:
                known = [f[figure] for f in by_patient.values() if not math.isnan(f[figure])]
                wanted = mean_interval(known)
                ends = row[figure], row[f"{figure}_low"], row[f"{figure}_high"]
                assert ends == pytest.approx((wanted.mean, wanted.low, wanted.high), nan_ok=True)
            pq = {patient: own["pq"] for patient, own in by_patient.items()}
            usual.setdefault(name, pq)
            gains = [pq[p] - usual[name][p] for p in pq if p in usual[name]]
            gains = [gain for gain in gains if not math.isnan(gain)]
            assert row["gain"] == pytest.approx(mean(gains) if gains else math.nan, nan_ok=True)
            assert row["patients"] == sum(not math.isnan(own) for own in pq.values())
            of_class = changed[changed["class"] == name] if name else changed
            assert row["changed"] == len(of_class)
            gone = of_class[of_class["status"] == "ignored"]
            for side in ("reference", "prediction"):
                assert row[f"vanished_{side}"] == (gone["side"] == side).sum()


@pytest.mark.parametrize("ambiguous", ["clip", "keep"])
def test_every_row_is_that_of_an_oracle(
    small_cohort: Cohort, tmp_path: Path, ambiguous: str
) -> None:
    own = ["-o", str(tmp_path), "--ambiguous", ambiguous]
    assert main(["borders", str(small_cohort.root), *own]) == 0
    found = pd.read_csv(tmp_path / "borders.csv", dtype={"class": str}).fillna({"class": ""})
    assert list(found) == BORDERS.keys
    assert len(found) == 2 * len(WIDTHS_PX) * (1 + len(small_cohort.scheme.names))
    for team in ("alpha", "beta"):
        assert_is_oracle(found, small_cohort, team, ambiguous=ambiguous)


def test_slides_are_read_in_windows(tmp_path: Path) -> None:
    write_slide_cohort(tmp_path / "cohort")
    cohort = open_cohort(tmp_path / "cohort").cohort
    own = Borders(teams=("first", "second"), held_up_to_px=HELD_UP_TO_PX)
    frame = own.answer(cohort).files["borders.csv"]
    held = Borders(teams=("first", "second")).answer(cohort).files["borders.csv"]
    pd.testing.assert_frame_equal(frame, held)
    assert frame["vanished_reference"].max() < frame["changed"].max()


# --- a cohort whose figures can be worked out by hand -------------------------------------------


def write_squares(folder: Path, patients: int = 3) -> Path:
    """Write four nuclei of 20 px and one of 4 px for each patient, and two teams.

    ``shrunk`` draws the large ones 2 px too small on each side; ``missing`` lacks one of them.
    """
    for patient in "ABCDEF"[:patients]:
        reference = np.zeros((70, 70), np.uint16)
        for place in range(4):
            y, x = 5 + 32 * (place // 2), 5 + 32 * (place % 2)
            reference[y : y + 20, x : x + 20] = place + 1
        reference[30:34, 62:66] = 5
        shrunk, missing = np.zeros_like(reference), np.where(reference == 4, 0, reference)
        for id_ in range(1, 5):
            y, x = np.argwhere(reference == id_)[0]
            shrunk[y + 2 : y + 18, x + 2 : x + 18] = id_
        shrunk[reference == 5] = 5
        name = f"{patient}_a.tif"
        write_labels(folder / "reference" / name, reference)
        write_labels(folder / "teams" / "shrunk" / name, shrunk)
        write_labels(folder / "teams" / "missing" / name, missing)
    (folder / "cohort.toml").write_text(TOML, "utf-8")
    return folder


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_squares(tmp_path_factory.mktemp("squares") / "cohort")


def test_one_team_is_a_sentence(squares: Path) -> None:
    answer = open_cohort(squares).ask("borders", teams=("shrunk",)).answer
    assert answer.headline == (
        "shrunk: PQ 0.712; without the 2 px along annotated borders 1.000: 0.288 of the loss of "
        "0.288 is border (95% interval 0.288 to 0.288)."
    )
    assert (
        "6 objects of both sides have another status; 3 annotated objects and 3" in answer.notes[0]
    )
    assert [plot.name for plot in answer.plots] == ["robustness_curves"]
    frame = answer.files["borders.csv"].query("`class` == ''")
    assert frame["pq"].tolist() == pytest.approx([0.712, (4 * 256 / 324 + 1) / 5, 1, 1, 1, 1])
    assert frame["rank"].isna().all()


def test_the_winner_changes(squares: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = squares.parent / "out"
    assert main(["borders", str(squares), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "highest PQ changes: missing from 0 px, shrunk from 2 px on." in printed
    assert "At 0 px, missing is 0.177 above shrunk" in printed
    assert "At 2 px, shrunk is 0.143 above missing" in printed
    assert "another order than at 0 px at 2, 3, 4 and 5 px." in printed
    assert (
        "missing: PQ 0.889; without the 2 px along annotated borders 0.857: none of the" in printed
    )
    record = json.loads((out / "borders.json").read_text("utf-8"))
    assert record["widths_px"] == list(WIDTHS_PX)
    assert record["settings"]["zone_px"] == 0
    assert record["inputs"]
    assert set(record["tables"]) == {"borders.csv"}
    (pair,) = record["statistics"]["2 px"]["pairs"]
    assert abs(pair["difference"]["mean"]) == pytest.approx(1 - 3 / 3.5)


def test_ranks_are_those_of_the_command_ranking(nuclei_sample: Path) -> None:
    cohort = open_cohort(nuclei_sample)
    teams = tuple(cohort.teams)
    answer, wanted = cohort.ask("borders", teams=teams), cohort.ask("ranking", teams=teams)
    found = answer.tables["borders.csv"].query("`class` == '' and zone_px == 0").set_index("team")
    ranking = wanted.tables["ranking.csv"].query("metric == 'pq'").set_index("team")
    for ours, theirs in (("pq", "mean"), ("pq_low", "low"), ("pq_high", "high")):
        assert found[ours].to_dict() == pytest.approx(ranking[theirs].to_dict())
    for key in ("rank", "mean_rank", "friedman_p"):
        assert found[key].to_dict() == ranking[key].to_dict()
    assert any("PQ at 0 px differs between teams (Friedman" in own for own in answer.answer.notes)
    assert [len(drawn(plot).points) > 0 for plot in answer.answer.plots] == [True, True]


def test_a_row_leads_to_its_objects(squares: Path) -> None:
    answer = open_cohort(squares).ask("borders", teams=("missing", "shrunk"))
    table = answer.tables["borders.csv"]
    for row in (0, 2):
        found = answer.objects("borders.csv", row)
        assert len(found) == table["changed"][row] == 3 * row
    assert set(found["id"]) == {5}
    assert set(found["side"]) == {"reference", "prediction"}


def test_one_patient_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_squares(tmp_path / "cohort", patients=1), tmp_path / "out"
    assert main(["borders", str(folder), "--team", "shrunk", "-o", str(out)]) == 0
    assert "0.288 of the loss of 0.288 is border.\n" in capsys.readouterr().out
    assert pd.read_csv(out / "borders.csv")["pq_low"].isna().all()
    assert main(["borders", str(folder), "-o", str(out)]) == 0


def test_µm_are_beside_px_where_they_are_known(small_cohort: Cohort) -> None:
    headline = open_cohort(small_cohort.root).ask("borders", teams=("alpha",)).answer.headline
    assert headline.startswith("alpha: PQ ")
    assert "without the 2 px (0.5 µm) along annotated borders" in headline


def test_a_width_of_the_settings_is_refused(squares: Path) -> None:
    settings = EvaluationSettings(zone_px=3)
    with pytest.raises(SettingsError, match="0 to 5 px, found one of 3 px"):
        open_cohort(squares).ask("borders", settings=settings)
