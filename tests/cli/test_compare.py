"""``napari-panoptic compare``: exit status, diff.csv and compare.json, from files and tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile

from napari_panoptic.cli.main import main
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.questions.compare import Compare
from napari_panoptic.values.links import CohortKey, ObjectLink, check_link
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.commands import Run
from tests.support.paths import SHARED_CASES, needs_shared_cases
from tests.support.version_cohort import PATIENTS, write_version_cohort

CONTRACT = ("old", "new", "metric", "difference", "low", "high", "p", "patients", "verdict")
DIFF_CONTRACT = (
    "patient,region,side,id,partner_before,partner_after,status_before,status_after,"
    "cause_before,cause_after,iou_before,iou_after,change"
)
NOT_WORSE, WORSE, UNDECIDED = 0, 3, 4


@pytest.fixture(scope="module")
def version_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_version_cohort(tmp_path_factory.mktemp("versions") / "cohort")


@pytest.fixture(scope="module")
def tables(version_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evaluate each version into a folder of its own, and all into one."""
    folder = tmp_path_factory.mktemp("tables")
    for team in ("old", "better", "worse"):
        assert (
            main(["evaluate", str(version_folder), "--teams", team, "-o", str(folder / team)]) == 0
        )
    assert main(["evaluate", str(version_folder), "-o", str(folder / "all")]) == 0
    return folder


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "compare.json").read_text("utf-8"))
    return found


def diff(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "diff.csv", keep_default_na=False, na_values=[""])


def outcomes(folder: Path, team: str) -> dict[tuple[str, int], str]:
    """Return the status of each reference object of a team, from ``objects.csv``."""
    objects = pd.read_csv(folder / "objects.csv")
    own = objects[(objects["team"] == team) & (objects["side"] == "reference")]
    return {(row["region"], row["id"]): row["status"] for row in own.to_dict("records")}


def test_a_better_version_passes_and_a_worse_one_does_not(
    version_folder: Path, tmp_path: Path, run: Run
) -> None:
    better = run("compare", version_folder, "old", "better", "-o", tmp_path / "better")
    assert better.code == NOT_WORSE
    assert record(tmp_path / "better")["verdict"] == "not-worse"
    worse = run("compare", version_folder, "old", "worse", "-o", tmp_path / "worse")
    assert worse.code == WORSE
    assert record(tmp_path / "worse")["verdict"] == "worse"
    assert run("compare", version_folder, "old", "worse", "--margin", 0.9).code == NOT_WORSE
    assert run("compare", version_folder, "old", "old", "--margin", 0).code == UNDECIDED
    assert run("compare", version_folder, "old", "old").code == NOT_WORSE


def test_the_record_agrees_with_the_tables_of_evaluate(
    version_folder: Path, tables: Path, tmp_path: Path, run: Run
) -> None:
    run("compare", version_folder, "old", "better", "-o", tmp_path)
    found = record(tmp_path)
    assert tuple(found)[: len(CONTRACT)] == CONTRACT
    assert (found["old"], found["new"], found["metric"]) == ("old", "better", "pq")
    patients = pd.read_csv(tables / "all" / "patients.csv").set_index(["team", "patient"])
    for one in found["metrics"]:
        own = patients[one["metric"]]
        apart = (own["better"] - own["old"]).dropna()
        assert one["difference"] == pytest.approx(apart.mean(), abs=1e-12)
        assert one["patients"] == len(apart)
    assert found["difference"] == found["metrics"][0]["difference"]
    assert found["patients"] == len(PATIENTS)
    assert found["low"] <= found["difference"] <= found["high"]
    assert found["delta_pq"]["total"] == pytest.approx(found["difference"], abs=1e-12)
    by_class = pd.read_csv(tables / "all" / "patients_by_class.csv")
    by_class = by_class.set_index(["team", "class", "patient"])["pq"].sort_index()
    for one in found["classes"]:
        apart = (by_class["better", one["class"]] - by_class["old", one["class"]]).dropna()
        assert one["difference"] == pytest.approx(apart.mean(), abs=1e-12)
    assert found["versions"]["napari-panoptic"]
    assert found["settings"]["iou_threshold"] == 0.5
    assert any(name.endswith("P1_a.tif") for name in found["inputs"])


def test_the_diff_agrees_with_the_tables_of_evaluate(
    version_folder: Path, tables: Path, tmp_path: Path, run: Run
) -> None:
    run("compare", version_folder, "old", "worse", "-o", tmp_path)
    rows = diff(tmp_path)
    assert ",".join(rows.columns).startswith(f"{DIFF_CONTRACT},")
    before, after = (outcomes(tables / "all", team) for team in ("old", "worse"))
    right = [{key for key, status in own.items() if status == "TP"} for own in (before, after)]
    reference = rows[rows["side"] == "reference"]
    for change, keys in (("broken", right[0] - right[1]), ("fixed", right[1] - right[0])):
        own = reference[reference["change"] == change]
        assert set(zip(own["region"], own["id"], strict=True)) == keys
    counts = record(tmp_path)["counts"]
    assert counts == {name: int((rows["change"] == name).sum()) for name in counts}
    assert sum(counts.values()) == len(rows)
    # One FP is at the same place in both versions.
    fps = rows[rows["side"] == "prediction"]
    assert set(fps.loc[fps["change"] == "persistent", "id"]) == {20}
    assert counts["persistent"] == counts["new"] == counts["gone"] == len(PATIENTS)
    assert rows["delta_pq"].sum() == pytest.approx(record(tmp_path)["difference"], abs=1e-12)


def test_links_lead_to_the_object_of_the_version_that_fails(
    version_folder: Path, tmp_path: Path, run: Run
) -> None:
    settings = ("--iou-threshold", "0.6", "--no-distances")
    run("compare", version_folder, "old", "worse", "-o", tmp_path, *settings)
    rows, opened = diff(tmp_path), open_cohort(version_folder)
    assert rows.columns[-1] == "link"
    question = Compare(old="old", new="worse", settings=EvaluationSettings(iou_threshold=0.6))
    table = question.answer(opened).tables[0]
    assert table.objects is not None
    for row, text in enumerate(rows["link"]):
        link = ObjectLink.parse(text)
        ((side, id_),) = link.objects
        named = FailureName(link.team, link.region, side, id_)
        assert {named} == table.objects(row).names
        assert check_link(link, opened) == link
        assert link.cohort == CohortKey.of(opened)
        assert link.settings == EvaluationSettings(iou_threshold=0.6)


def test_output_folders_of_evaluate_give_the_same(
    version_folder: Path, tables: Path, tmp_path: Path, run: Run
) -> None:
    run("compare", version_folder, "old", "better", "-o", tmp_path / "files")
    ran = run("compare", tables / "old", tables / "better", "-o", tmp_path / "tables")
    assert ran.code == NOT_WORSE
    assert "there are no pixels" in ran.out
    files, found = record(tmp_path / "files"), record(tmp_path / "tables")
    assert found["fp_pairing"] == "discs"
    for name in (*CONTRACT, "counts", "delta_pq", "metrics", "classes", "before_after"):
        assert found[name] == files[name], name
    # The squares are alike enough to their discs.
    of_files = diff(tmp_path / "files").assign(link=np.nan)  # folders name no cohort
    pd.testing.assert_frame_equal(of_files, diff(tmp_path / "tables"))
    chosen = run(
        "compare", tables / "all", tables / "all", "--teams", "old,better", "-o", tmp_path / "all"
    )
    assert chosen.code == NOT_WORSE
    pd.testing.assert_frame_equal(of_files, diff(tmp_path / "all"))


def test_one_team_in_two_runs_is_named_after_the_folders(
    tables: Path, tmp_path: Path, run: Run
) -> None:
    run("compare", tables / "all", tables / "old", "--teams", "old", "-o", tmp_path)
    found = record(tmp_path)
    assert (found["old"], found["new"]) == ("all", "old")
    assert found["counts"]["broken"] == found["counts"]["fixed"] == 0


def test_two_teams_in_two_runs_keep_their_names(tables: Path, tmp_path: Path, run: Run) -> None:
    run("compare", tables / "old", tables / "worse", "-o", tmp_path)
    found = record(tmp_path)
    assert (found["old"], found["new"]) == ("old", "worse")
    run("compare", tables / "all", tables / "all", "--teams", "old,better", "-o", tmp_path)
    found = record(tmp_path)
    assert (found["old"], found["new"]) == ("old", "better")


def test_two_predictions_of_one_image(version_folder: Path, tmp_path: Path, run: Run) -> None:
    files = [version_folder / "teams" / version / "P1_a.tif" for version in ("old", "worse")]
    reference = version_folder / "reference" / "P1_a.tif"
    ran = run("compare", "--reference", reference, "--prediction", *files, "-o", tmp_path)
    assert ran.code == UNDECIDED
    assert "cannot be decided with 1 patient" in ran.out
    found = record(tmp_path)
    assert (found["old"], found["new"], found["patients"]) == ("old", "worse", 1)
    assert found["low"] is None
    assert found["counts"]["broken"] > 0
    alone = run("compare", "--reference", reference, "--prediction", files[0])
    assert alone.code == 2
    assert "--prediction OLD NEW" in alone.err


def test_too_few_patients_are_undecided(tmp_path: Path, run: Run) -> None:
    few = write_version_cohort(tmp_path / "few", PATIENTS[:7])
    ran = run("compare", few, "old", "worse", "-o", tmp_path / "out")
    assert ran.code == UNDECIDED
    assert (
        "cannot be decided with 7 patients: at least 8 are needed"
        in record(tmp_path / "out")["reason"]
    )


def test_a_gate_prints_one_line(version_folder: Path, run: Run) -> None:
    ran = run("compare", version_folder, "old", "worse", "--gate", "--metric", "f1")
    assert ran.code == WORSE
    (line,) = ran.out.splitlines()
    assert line.startswith("worse: detection_f1 -0.")
    assert run("compare", version_folder, "--metric", "f1", "old", "--gate", "worse") == ran


def test_unreadable_predictions_are_findings_and_do_not_pass(
    version_folder: Path, tmp_path: Path, run: Run
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(version_folder, broken)
    (broken / "teams" / "better" / "P2_a.tif").write_bytes(b"no image")
    (broken / "teams" / "old" / "P3_a.tif").unlink()
    ran = run("compare", broken, "old", "better", "-o", tmp_path / "out")
    assert ran.code == UNDECIDED
    assert "P2_a.tif" in ran.err
    found = record(tmp_path / "out")
    assert (found["regions"], found["only_old"], found["only_new"]) == (8, ["P2_a"], ["P3_a"])
    assert found["reason"].endswith("but 1 region could be evaluated for old only")
    assert found["warnings"]["unreadable"]
    assert set(diff(tmp_path / "out")["patient"]) == {*PATIENTS} - {"P2", "P3"}
    # The tables of an evaluation keep what could not be read.
    for team in ("old", "better"):
        run("evaluate", broken, "--teams", team, "-o", tmp_path / team)
    again = run("compare", tmp_path / "old", tmp_path / "better", "-o", tmp_path / "again")
    assert again.code == UNDECIDED
    found = record(tmp_path / "again")
    assert (found["only_old"], found["only_new"]) == (["P2_a"], ["P3_a"])
    assert found["warnings"]["unreadable"]
    # The other way round, nothing is lost but patients.
    assert run("compare", broken, "better", "old").code in (WORSE, UNDECIDED)


def test_nothing_to_compare_is_explained(version_folder: Path, tmp_path: Path, run: Run) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(version_folder, broken)
    for path in (broken / "teams" / "better").glob("*.tif"):
        path.write_bytes(b"no image")
    ran = run("compare", broken, "old", "better", "-o", tmp_path / "out")
    assert ran.code == 1
    assert "found none (" in ran.err
    assert not (tmp_path / "out").exists()


def test_regions_without_any_object_count_as_evaluated(tmp_path: Path, run: Run) -> None:
    cohort = write_version_cohort(tmp_path / "cohort")
    empty = np.zeros((60, 84), np.uint16)
    for path in ("reference", "teams/old", "teams/better"):
        tifffile.imwrite(cohort / path / "P8_a.tif", empty)
        (cohort / path / "P8_a.csv").write_text("id,class\n", "utf-8")
    for team in ("old", "better"):
        run("evaluate", cohort, "--teams", team, "-o", tmp_path / team)
    ran = run("compare", tmp_path / "old", tmp_path / "better", "-o", tmp_path / "out")
    assert ran.code == NOT_WORSE
    found = record(tmp_path / "out")
    assert (found["regions"], found["patients"], found["only_old"]) == (10, 9, [])
    assert found["metrics"][0]["omitted"] == {"P8": "no team has a figure for patient P8"}


def test_a_patient_with_a_figure_of_one_version_only_does_not_pass(
    tmp_path: Path, run: Run
) -> None:
    cohort = write_version_cohort(tmp_path / "cohort")
    empty = np.zeros((60, 84), np.uint16)
    # P8 has no nucleus, and the new version invents some.
    for path in ("reference", "teams/old"):
        tifffile.imwrite(cohort / path / "P8_a.tif", empty)
        (cohort / path / "P8_a.csv").write_text("id,class\n", "utf-8")
    ran = run("compare", cohort, "old", "better", "--gate")
    assert ran.code == UNDECIDED
    assert "but patient P8 has a figure of the new version only" in ran.out
    # The new version finds nothing in P1; SQ is undefined there.
    tifffile.imwrite(cohort / "teams" / "better" / "P1_a.tif", empty)
    (cohort / "teams" / "better" / "P1_a.csv").write_text("id,class\n", "utf-8")
    ran = run("compare", cohort, "old", "better", "--metric", "sq", "-o", tmp_path / "out")
    assert ran.code == UNDECIDED
    assert "patient P1 has a figure of the old version only" in record(tmp_path / "out")["reason"]


def test_regions_read_in_windows_are_paired_without_pixels(
    version_folder: Path, tmp_path: Path, run: Run
) -> None:
    run("compare", version_folder, "old", "worse", "-o", tmp_path / "held")
    windows = run(
        "compare", version_folder, "old", "worse", "-o", tmp_path / "windows", "--held-up-to", 1000
    )
    assert windows.code == WORSE
    assert "read in windows" in windows.err
    assert record(tmp_path / "windows")["fp_pairing"].startswith("pixels, and discs")
    pd.testing.assert_frame_equal(diff(tmp_path / "held"), diff(tmp_path / "windows"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old", "beter"), "did you mean better?"),
        (("old", "better", "worse"), "give a COHORT and two of its teams"),
        (("old", "better", "--margin", "-0.1"), "margin must be a number from 0"),
        (("old", "better", "--metric", "dice"), "invalid choice"),
        (("old", "better", "--teams", "old"), "--teams is for two output folders"),
        (("old", "better", "--protocol", "monusac-2020-as-run"), "choose another protocol"),
        (("old", "better", "--iou-step", "-1"), "--iou-step must be a number from 0"),
    ],
)
def test_mistakes_in_the_command(
    version_folder: Path, run: Run, arguments: tuple[str, ...], message: str
) -> None:
    ran = run("compare", version_folder, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_evaluations_that_do_not_compare(
    version_folder: Path, tables: Path, tmp_path: Path, run: Run
) -> None:
    other = tmp_path / "other"
    run("evaluate", version_folder, "--teams", "better", "-o", other, "--iou-threshold", 0.6)
    ran = run("compare", tables / "old", other)
    assert ran.code == 1
    assert "iou_threshold 0.5 and 0.6" in ran.err
    assert run("compare", tables / "old", tmp_path).code == 1
    several = run("compare", tables / "all", tables / "old")
    assert several.code == 2
    assert "give --teams TEAM, or OLD,NEW" in several.err
    unused = run("compare", tables / "old", tables / "better", "--matching", "centroid")
    assert unused.code == 2
    assert "--matching has no effect" in unused.err


def test_evaluations_of_earlier_versions_compare_as_before(
    tables: Path, tmp_path: Path, run: Run
) -> None:
    """Their settings have a scoring and its corrections in place of a convention."""

    def earlier(name: str, scoring: str, corrections: list[str]) -> Path:
        folder = tmp_path / name
        shutil.copytree(tables / "old", folder)
        content = json.loads((folder / "evaluation.json").read_text("utf-8"))
        del content["settings"]["convention"]
        content["settings"] |= {"scoring": scoring, "corrections": corrections}
        (folder / "evaluation.json").write_text(json.dumps(content), "utf-8")
        return folder

    usual = earlier("usual", "disentangled", [])
    for number, old in enumerate((usual, tables / "old")):
        ran = run("compare", old, tables / "better", "-o", tmp_path / f"out {number}")
        assert ran.code == NOT_WORSE
    assert diff(tmp_path / "out 0").equals(diff(tmp_path / "out 1"))
    for number, corrections in enumerate(([], ["matching"], ["matching", "per-patient"])):
        ran = run("compare", earlier(f"{number}", "challenge", corrections), tables / "better")
        assert ran.code == 2
        assert "choose another protocol" in ran.err
    ran = run("compare", earlier("unknown", "challenge", ["all"]), tables / "better")
    assert ran.code == 1
    assert "expected settings, classes, versions" in ran.err


def test_damaged_tables_are_refused(tables: Path, tmp_path: Path, run: Run) -> None:
    for number, (name, content) in enumerate(
        (
            ("objects.csv", "team,patient\n1,2\n"),
            ("objects.csv", ""),
            ("evaluation.json", "[]"),
            ("evaluation.json", "{"),
            ("evaluation.json", "{}"),
        )
    ):
        damaged = tmp_path / str(number)
        shutil.copytree(tables / "better", damaged)
        (damaged / name).write_text(content, "utf-8")
        ran = run("compare", tables / "old", damaged)
        assert ran.code == 1
        assert name in ran.err
    changed = tmp_path / "changed"
    shutil.copytree(tables / "better", changed)
    text = (changed / "objects.csv").read_text("utf-8")
    (changed / "objects.csv").write_text(text.replace(",missed,", ",split,"), "utf-8")
    ran = run("compare", tables / "old", changed)
    assert ran.code == NOT_WORSE
    assert "changed after the evaluation" in ran.err
    (changed / "objects.csv").write_text(text.replace(",missed,", ",lost,"), "utf-8")
    assert "found lost" in run("compare", tables / "old", changed).err


@needs_shared_cases
def test_real_regions_against_the_published_figures(tmp_path: Path, run: Run) -> None:
    cohort = SHARED_CASES / "monusac"
    ran = run("compare", cohort, "otsu-watershed", "log-seeds", "--no-distances", "-o", tmp_path)
    expected = json.loads((cohort / "expected.json").read_text("utf-8"))["disentangled"]
    teams = [
        expected[team]["border-removed strict-iou"] for team in ("otsu-watershed", "log-seeds")
    ]
    apart = [teams[1][patient]["PQ"] - teams[0][patient]["PQ"] for patient in teams[0]]
    found = record(tmp_path)
    assert found["difference"] == pytest.approx(np.mean(apart), rel=1e-9)
    assert found["delta_pq"]["total"] == pytest.approx(np.mean(apart), rel=1e-9)
    assert (ran.code, found["verdict"]) == (WORSE, "worse")
    tps = [sum(sum(patient["TP"]) for patient in team.values()) for team in teams]
    counts = found["counts"]
    assert counts["broken"] + counts["still-right"] == tps[0]
    assert counts["fixed"] + counts["still-right"] == tps[1]
