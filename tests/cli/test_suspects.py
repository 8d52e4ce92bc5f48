"""The command ``suspects``."""

import json
import shutil

import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.questions.suspects import SUSPECTS, Suspects
from napari_panoptic.values.links import CohortKey, ObjectLink, check_link
from napari_panoptic.values.settings import EvaluationSettings, Restoration


def test_the_table_names_objects_of_the_cohort(nuclei_sample, tmp_path, capsys):
    assert main(["suspects", str(nuclei_sample), "-o", str(tmp_path / "out")]) == 0

    assert "teams can make the same errors" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} >= set(Suspects.file_names())
    found = pd.read_csv(tmp_path / "out" / SUSPECTS.file, keep_default_na=False)
    assert found.columns.tolist() == SUSPECTS.keys
    assert len(found)
    assert found["score"].between(0, 1).all()
    assert found["score"].is_monotonic_decreasing
    cohort = open_cohort(nuclei_sample)
    settings = EvaluationSettings(distances=False, restoration=Restoration.BORDER_DILATED)
    for name, rows in found.groupby("region"):
        region = load_region(cohort, name, settings)
        for row in rows.itertuples():
            labels = region.reference if row.side == "reference" else region.predictions[row.team]
            assert row.id in labels.ids
            assert (row.team == "") == (row.side == "reference")
            assert row.team in ("", *row.teams.split(" | "))
            link = ObjectLink.parse(row.link)
            assert check_link(link, cohort) == link
            assert (link.cohort, link.region) == (CohortKey.of(cohort), name)
            assert link.settings == settings.replaced(distances=True)
            assert link.team in row.teams.split(" | ")
            assert link.objects[0] == (row.side, row.id)
            others = " ".join(str(id_) for _, id_ in link.objects[1:])
            assert others == " ".join(sorted(str(row.other_ids).split()))


def test_the_record_states_what_was_compared(nuclei_sample, tmp_path):
    arguments = ["--ambiguous", "keep", "--restoration", "border-removed"]
    assert main(["suspects", str(nuclei_sample), "-o", str(tmp_path), *arguments]) == 0

    record = json.loads((tmp_path / Suspects.file_names()[-1]).read_text(encoding="utf-8"))
    assert record["settings"]["ambiguous"] == "keep"
    assert record["settings"]["restoration"] == "border-removed"
    assert record["reference_objects"] > 0
    assert record["inputs"]
    assert set(record["tables"]) == {SUSPECTS.file}


def test_one_team_has_no_consensus(nuclei_sample, tmp_path, capsys):
    team = open_cohort(nuclei_sample).competing_teams[0].name
    with pytest.raises(SystemExit) as stopped:
        main(["suspects", str(nuclei_sample), "-o", str(tmp_path / "out"), "--teams", team])

    assert stopped.value.code == 2
    assert "two or more teams agree; found 1 team" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_regions_without_two_teams_are_left_out(nuclei_sample, tmp_path, capsys):
    shutil.copytree(nuclei_sample, tmp_path / "cohort")
    shutil.rmtree(tmp_path / "cohort" / "Submissions")
    for folder in (tmp_path / "cohort" / "Teams").iterdir():
        for path in sorted(folder.rglob("*.tif"))[1:]:
            path.unlink()
    status = main(["suspects", str(tmp_path / "cohort"), "-o", str(tmp_path / "out")])

    assert status == 0
    assert "the search for suspects needs two" in capsys.readouterr().err
    record = json.loads((tmp_path / "out" / Suspects.file_names()[-1]).read_text(encoding="utf-8"))
    assert record["regions"] == 1
