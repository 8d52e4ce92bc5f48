"""The groups of a cohort: those of its regions, one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from napari_panoptic import EvaluationSettings, open_cohort
from napari_panoptic.cli.main import main
from napari_panoptic.explain.failure_groups import failure_groups, lost_over
from napari_panoptic.nuclei.regions.region import held_region

COLUMNS = ["region", "kind", "reference_ids", "prediction_ids", "pq_lost"]


@pytest.mark.parametrize("team", ["over-splitter", "merger"])
def test_the_table_has_the_groups_of_all_regions(
    nuclei_sample: Path, tmp_path: Path, team: str
) -> None:
    assert main(["groups", str(nuclei_sample), "--team", team, "-o", str(tmp_path)]) == 0
    found = pd.read_csv(tmp_path / "groups.csv", keep_default_na=False, dtype=str)
    assert list(found) == COLUMNS
    cohort, settings = open_cohort(nuclei_sample).cohort, EvaluationSettings(distances=False)
    wanted, evaluations = [], []
    for region in cohort.regions:
        held = held_region(cohort, region, settings)
        evaluation = held.evaluate(team, settings, None).evaluation
        if evaluation is None:
            continue
        evaluations.append(evaluation)
        sides = evaluation.outcomes.reference, evaluation.outcomes.prediction
        for group in failure_groups(evaluation):
            ids = [
                " ".join(str(side.ids[row]) for row in rows)
                for side, rows in zip(
                    sides, (group.reference_rows, group.prediction_rows), strict=True
                )
            ]
            wanted.append([region.name, str(group.kind), *ids, group.pq_lost])
    assert len(wanted) == len(found) > 0
    for row, own in zip(found.to_numpy().tolist(), wanted, strict=True):
        assert row[:4] == own[:4]
        assert float(row[4]) == own[4]
    record = json.loads((tmp_path / "groups.json").read_text("utf-8"))
    for kind, loss in zip(record["kinds"], lost_over(evaluations), strict=True):
        assert kind["kind"] == (loss.kind or "all")
        assert kind["groups"] == loss.groups
        assert kind["pq_lost"] == pytest.approx(loss.pq_lost, abs=1e-12)


def test_a_row_leads_to_the_objects_of_its_group(nuclei_sample: Path) -> None:
    answer = open_cohort(nuclei_sample).ask("groups", team="merger")
    first = answer.tables["groups.csv"].iloc[0]
    found = answer.objects("groups.csv", 0)
    assert set(found["region"]) == {first["region"]}
    for side in ("reference", "prediction"):
        ids = found.loc[found["side"] == side, "id"]
        assert sorted(ids) == sorted(map(int, first[f"{side}_ids"].split()))


def test_shared_pixels_are_given_to_one_object(nuclei_sample: Path) -> None:
    kept = EvaluationSettings(overlaps="keep")
    cohort = open_cohort(nuclei_sample)
    flat = cohort.ask("groups", team="merger")
    found = cohort.ask("groups", team="merger", settings=kept)
    pd.testing.assert_frame_equal(found.tables["groups.csv"], flat.tables["groups.csv"])
    assert found.answer.notes
    assert not flat.answer.notes
