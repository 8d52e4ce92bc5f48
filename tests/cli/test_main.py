"""The command line: its contract, and clear sentences for whatever is wrong."""

from __future__ import annotations

import csv
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from scipy.ndimage import gaussian_filter

from napari_panoptic import __version__
from napari_panoptic.io.files.guard import VARIABLE
from napari_panoptic.nuclei.regions import cluster
from tests.support.commands import Outcome, Run
from tests.support.paths import REPOSITORY
from tests.support.small_cohort import ANNOTATIONS, REGIONS, TEAMS, mask_path, write_cohort

TABLES = ("objects", "regions", "patients", "patients_by_class", "teams", "confusion")
PROGRAM = "napari-panoptic: "
FIRST = REGIONS[0]
RESULTS = len(REGIONS) * len(TEAMS)


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "evaluation.json").read_text("utf-8"))
    return found


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def evaluated_pairs(folder: Path) -> set[tuple[str, str]]:
    """Tell which teams were evaluated in which regions."""
    return {(row["team"], row["region"]) for row in rows(folder, "regions")}


EVERY_PAIR = {(team, region.name) for team in TEAMS for region in REGIONS}


def xml_path(cohort: Path) -> Path:
    return cohort / ANNOTATIONS / FIRST.patient / f"{FIRST.name}.xml"


def svs_path(cohort: Path) -> Path:
    return cohort / ANNOTATIONS / FIRST.patient / f"{FIRST.name}.svs"


# --- what is written --------------------------------------------------------------------------


def test_all_files_of_the_contract_are_written(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "folder"
    outcome = run("evaluate", small_folder, "--output", folder)
    assert outcome.code == 0
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [*(f"{name}.csv" for name in TABLES), "evaluation.json"]
    )
    assert evaluated_pairs(folder) == EVERY_PAIR
    printed = dict(re.findall(r"^(alpha|beta) +([0-9.]+)$", outcome.out, re.MULTILINE))
    scores = record(folder)["score"]
    assert printed == {team: f"{scores[team]:.4f}" for team in TEAMS}
    assert str(folder) in outcome.out


def test_the_record_says_what_was_done_with_what(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    options = ["--matching", "centroid", "--iou-threshold", "0.4", "--no-distances"]
    assert run("evaluate", small_folder, "--output", tmp_path, *options).code == 0
    found = record(tmp_path)
    assert found["settings"]["matching"] == "centroid"
    assert found["settings"]["iou_threshold"] == 0.4
    assert found["settings"]["distances"] is False
    assert found["versions"]["napari-panoptic"] == __version__
    assert {"python", "numpy", "scipy", "tifffile"} <= found["versions"].keys()
    assert {"vanished", "overlapping", "missing", "unreadable"} <= found["warnings"].keys()
    assert found["score"].keys() == set(TEAMS)
    assert found["statistics"]["pq"]["ranks"].keys() == set(TEAMS)
    # Image, annotation and a mask of each team per region, and the submissions.
    masks = [name for name in found["inputs"] if name.endswith("_mask.png.tif")]
    assert len(masks) == RESULTS
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in found["inputs"].values())
    assert f"{ANNOTATIONS}/{FIRST.patient}/{FIRST.name}.svs" in found["inputs"]
    assert not any("RGB_mask" in name for name in found["inputs"])


def test_no_distances_leaves_them_undefined_and_nothing_else(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    run("evaluate", small_folder, "--output", tmp_path / "with")
    run("evaluate", small_folder, "--output", tmp_path / "without", "--no-distances")
    pairs = zip(
        rows(tmp_path / "with", "objects"), rows(tmp_path / "without", "objects"), strict=True
    )
    measured = 0
    for full, quick in pairs:
        measured += full["hausdorff_px"] != ""
        assert (quick["hausdorff_px"], quick["hausdorff_um"]) == ("", "")
        for column in quick.keys() - {"hausdorff_px", "hausdorff_um"}:
            assert quick[column] == full[column]
    assert measured > 0
    assert {row["mean_hausdorff_px"] for row in rows(tmp_path / "without", "patients")} == {""}


def test_the_same_files_again_and_with_any_number_of_jobs(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    for name, number in {"first": 1, "again": 1, "parallel": 4}.items():
        assert (
            run("evaluate", small_folder, "--output", tmp_path / name, "--jobs", number).code == 0
        )
    for path in (tmp_path / "first").iterdir():
        for other in ("again", "parallel"):
            assert (tmp_path / other / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_place_of_tables_has_a_short_name(run: Run, small_folder: Path, tmp_path: Path) -> None:
    assert run("evaluate", small_folder, "-o", tmp_path / "tables").code == 0
    assert (tmp_path / "tables" / "teams.csv").exists()


def test_older_tables_are_replaced_whole(run: Run, small_folder: Path, tmp_path: Path) -> None:
    command = ("evaluate", small_folder, "--output", tmp_path, "--no-distances")
    assert run(*command).code == 0
    (tmp_path / "teams.csv").write_text("x" * 100_000, encoding="utf-8")
    early = {k: v for k, v in record(tmp_path).items() if k != "tables"}  # without fingerprints
    (tmp_path / "evaluation.json").write_text(json.dumps(early), encoding="utf-8")
    assert run(*command).code == 0
    assert [row["team"] for row in rows(tmp_path, "teams")] == list(TEAMS)


def test_a_radius_asks_for_dilation(run: Run, small_folder: Path, tmp_path: Path) -> None:
    run("evaluate", small_folder, "--output", tmp_path / "short", "--radius", 2)
    long = ["--restoration", "border-dilated", "--radius", 2]
    run("evaluate", small_folder, "--output", tmp_path / "long", *long)
    run("evaluate", small_folder, "--output", tmp_path / "removed")
    found = record(tmp_path / "short")["settings"]
    assert (found["restoration"], found["radius"]) == ("border-dilated", 2)
    objects = [
        (tmp_path / name / "objects.csv").read_bytes() for name in ("short", "long", "removed")
    ]
    assert objects[0] == objects[1] != objects[2]


def test_a_negative_radius_is_not_taken_for_an_option(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    assert run("evaluate", small_folder, "--output", tmp_path, "--radius", "-1").code == 0
    assert record(tmp_path)["settings"]["radius"] == -1


def test_options_override_the_protocol(run: Run, small_folder: Path, tmp_path: Path) -> None:
    protocol = ["--protocol", "monusac-2020-as-run", "--ambiguous", "keep"]
    assert run("evaluate", small_folder, "--output", tmp_path, *protocol).code == 0
    found = record(tmp_path)
    assert found["protocol"] == "monusac-2020-as-run"
    assert found["settings"]["convention"] == "monusac-2020-as-run"
    assert found["absent_classes"].keys() == found["score"].keys()
    assert found["settings"]["ambiguous"] == "keep"


def test_corrections_come_beside_those_of_the_protocol(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    for name, correct in (
        ("monusac-2020-corrected", "matching"),
        ("monusac-2020-as-run+per-patient", "matching,absent-class-fp"),
    ):
        options = ["--protocol", name, "--correct", correct, "--no-distances"]
        done = run("evaluate", small_folder, "--output", tmp_path / name, *options)
        assert done.code == 0
        assert record(tmp_path / name)["settings"]["convention"] == "monusac-2020-corrected"
        assert "mean over patients" in done.out
    options = ["--protocol", "monusac-2020-as-run+per-patient", "--correct", "matching"]
    assert run("evaluate", small_folder, "--output", tmp_path / "two", *options).code == 0
    found = record(tmp_path / "two")["settings"]["convention"]
    assert found == "monusac-2020-as-run+matching+per-patient"


def test_chosen_teams_only(run: Run, small_folder: Path, tmp_path: Path) -> None:
    teams = " colour-coded GT , alpha,alpha"
    assert run("evaluate", small_folder, "--output", tmp_path, "--teams", teams).code == 0
    names = [row["team"] for row in rows(tmp_path, "teams")]
    assert names == ["colour-coded GT", "alpha"]
    assert any("RGB_mask" in name for name in record(tmp_path)["inputs"])
    # The annotation's own version is no competitor.
    assert record(tmp_path)["statistics"] == {}


# --- wrong arguments: 2 -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--teams", "alpha,gamma"], "there is no team 'gamma'"),
        (["--teams", ","], "expected names separated by commas"),
        (["--matching", "nearest"], "strict-iou"),
        (["--ambiguous", "drop"], "clip-predictions"),
        (["--restoration", "watershed"], "border-dilated"),
        (["--source", "polygons"], "submission"),
        (["--source", "polygons"], "geojson"),
        (["--held-up-to", "0"], "must be at least 1"),
        (["--outlines", "none"], "as-published"),
        (["--protocol", "monusac"], "monusac-2020-as-run"),
        (["--correct", "matching"], "--protocol monusac-2020-as-run"),
        (["--protocol", "monusac-2020-as-run", "--correct", "match"], "absent-class-fp"),
        (["--iou-threshold", "1.5"], "between 0 and 1"),
        (["--iou-threshold", "0"], "between 0 and 1"),
        (["--iou-threshold", "nan"], "between 0 and 1"),
        (["--iou-threshold", "half"], "--iou-threshold"),
        (["--radius", "21"], "from -20 to 20"),
        (["--radius", "1.5"], "--radius"),
        (["--restoration", "border-removed", "--radius", "2"], "leave one of the two out"),
        (["--scheduler", "proceses"], "did you mean processes?"),
        (["--scheduler", "nowhere"], "such as tcp://10.0.0.5:8786"),
        (["--scheduler", "tcp://127.0.0.1:many"], "is no address"),
        (["--scheduler", "http://127.0.0.1:8786"], "is no address"),
        (["--jobs", "0"], "must be at least 1, found 0"),
        (["--jobs", "many"], "must be a whole number, found 'many'"),
        (["--threshold", "0.5"], "--threshold"),
    ],
)
def test_wrong_options(
    run: Run, small_folder: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    outcome = run("evaluate", small_folder, "--output", tmp_path / "out", *options)
    assert outcome.code == 2
    assert said in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--teams", "alpha,gamma"], "there is no team 'gamma'"),
        (["--source", "polygons"], "submission"),
        (["--protocol", "monusac"], "monusac-2020-as-run"),
        (["--correct", "matching"], "--protocol monusac-2020-as-run"),
        (["--protocol", "monusac-2020-as-run", "--correct", "match"], "absent-class-fp"),
        (["--jobs", "0"], "must be at least 1, found 0"),
        (["--radius", "2"], "--radius"),
    ],
)
def test_wrong_options_of_a_report(
    run: Run, small_folder: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    outcome = run("report", small_folder, "-o", tmp_path / "report.html", *options)
    assert outcome.code == 2
    assert said in outcome.err
    assert not list(tmp_path.glob("*.html*"))
    assert not list(tmp_path.glob(".report*"))


def test_a_scheduler_that_does_not_answer_leaves_no_report(
    run: Run, small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "report.html"
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.2)
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        outcome = run("report", small_folder, "-o", output, "--scheduler", address)
    assert outcome.code == 1
    assert f"no Dask scheduler answers at '{address}'" in outcome.err
    assert not output.exists()


@pytest.mark.parametrize("arguments", [["evaluate"], ["evaluate", "somewhere"], ["evaluated"]])
def test_arguments_that_lack(run: Run, arguments: list[str]) -> None:
    assert run(*arguments).code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vieww", "a"], "invalid choice: 'vieww' (choose from"),
        (["vieww", "a"], "did you mean view?"),
        (["convert", "a", "--to", "ome-zar", "--output", "b"], "did you mean ome-zarr?"),
        (["evaluate", "a", "--output", "b", "--matching", "strict"], "did you mean strict-iou?"),
        (["evaluate", "a", "--output", "b", "--macthing", "x"], "no option '--macthing'; did you"),
        (["evaluate", "a", "--output", "b", "--macthing=x"], "did you mean --matching?"),
        (["evaluate", "a", "--outptu", "b"], "no option '--outptu'; did you mean --output"),
        (["evaluate", "a", "-output", "b"], "no option '-output'; did you mean --output?"),
        (["evaluate", "--cohrt", "a", "--output", "b"], "there is no option '--cohrt'"),
        (["report", "a", "--outptu=b.html"], "no option '--outptu'; did you mean --output"),
        (["convert", "a", "--too", "labels", "--output", "b"], "'--too'; did you mean --to"),
        (["evaluate", "a", "--outp", "b", "--jobs", "0"], "must be at least 1"),
        (["evaluate", "a", "--output", "b", "--radius", "-99"], "from -20 to 20"),
        (["evaluate", "--output", "b", "--", "--cohrt", "x"], "a name with spaces needs quotes"),
        (["evaluate", "a", "--output", "b", "--qqq"], "see 'napari-panoptic evaluate --help'"),
        (["evaluate", "a", "cohort", "--output", "b"], "a name with spaces needs quotes"),
        (["--versio"], None),
        (["--qqq"], "there is no option '--qqq'; see 'napari-panoptic --help'"),
    ],
)
def test_misspelt_words(run: Run, arguments: list[str], said: str | None) -> None:
    outcome = run(*arguments)
    if said is None:  # what is short but clear is understood
        assert outcome.code == 0
        return
    assert outcome.code == 2
    assert said in outcome.err


def test_misspelt_names(run: Run, small_folder: Path, tmp_path: Path) -> None:
    names = {"Alfa": "did you mean alpha?", "zzz": "it has alpha, beta"}
    for name, said in names.items():
        outcome = run("evaluate", small_folder, "--output", tmp_path / "out", "--teams", name)
        assert outcome.code == 2
        assert f"--teams: there is no team '{name}' in this cohort; {said}" in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--region", "nowhere"], "--region: there is no region 'nowhere' in this cohort"),
        (["--screenshot", "a.jpg"], "--screenshot: a picture is a PNG file, whose name ends in"),
    ],
)
def test_wrong_options_of_a_window(
    run: Run, small_folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")  # nothing gets as far as a window
    outcome = run("view", small_folder, *options)
    assert outcome.code == 2
    assert said in outcome.err


def test_a_column_that_is_not_there(run: Run, small_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("patient,organ\n", encoding="utf-8")
    options = ["-o", tmp_path / "report.html", "--metadata", table, "--group", "age"]
    outcome = run("report", small_folder, *options)
    assert outcome.code == 2
    assert "there is no column 'age' to group by; known: organ" in outcome.err


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "--output", "out"),
        ("report", "-o", "out.html"),
        ("convert", "--to", "labels", "--team", "alpha", "--output", "out"),
    ],
)
def test_a_form_that_no_team_has(
    run: Run,
    small_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *options = command
    outcome = run(name, small_folder, *options, "--source", "geojson")
    assert outcome.code == 2
    assert "--source: no prediction of alpha" in outcome.err
    assert "has the format 'geojson'; there is colour-coded and submission" in outcome.err
    assert not list(tmp_path.iterdir())


def test_a_limit_in_the_environment_that_is_no_number(
    run: Run, small_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "many")
    outcome = run("evaluate", small_folder, "--output", tmp_path / "out")
    assert outcome.code == 2
    assert f"{VARIABLE} must be a positive whole number, found 'many'" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("before", [None, "1000000"])
def test_a_limit_of_one_command_does_not_hold_for_the_next(
    run: Run,
    small_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str | None,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VARIABLE, before)
    command = "evaluate", small_folder, "--no-distances", "--output"
    assert run(*command, tmp_path / "small", "--max-pixels", 10).code == 1
    assert os.environ.get(VARIABLE) == before
    assert run(*command, tmp_path / "usual").code == 0


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.1"])
def test_a_report_under_another_name_than_that_of_html(
    run: Run, small_folder: Path, tmp_path: Path, name: str
) -> None:
    outcome = run("report", small_folder, "-o", tmp_path / name)
    assert outcome.code == 2
    assert f"found '{tmp_path / name}', give '{tmp_path / 'report.html'}'" in outcome.err
    assert not list(tmp_path.iterdir())


def test_no_display_is_said_in_words(
    run: Run, small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    outcome = run("view", small_folder)
    assert outcome.code == 1
    assert "there is no display to open a window on" in outcome.err


def test_no_command_shows_what_there_is(run: Run) -> None:
    outcome = run()
    assert outcome.code == 2
    for command in ("view", "evaluate", "sample", "demo"):
        assert command in outcome.out


OPTIONS = {
    "evaluate": (
        "COHORT --output --teams --restoration --radius --source --matching --iou-threshold "
        "--ambiguous --ambiguous-share --zone --outlines --protocol --correct --jobs "
        "--scheduler --resume --no-distances --held-up-to"
    ),
    "report": (
        "COHORT --output --teams --protocol --correct --source --metadata --jobs --scheduler "
        "--resume --held-up-to --date"
    ),
    "view": "COHORT --region --link --screenshot",
    "sample": "FOLDER",
    "demo": "--cohort --screenshot",
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help_explains_every_option(run: Run, command: str) -> None:
    outcome = run(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    for option in OPTIONS[command].split():
        line = rf"^  (-o [^ ]+, )?{option}( [A-Z{{][^ ]*|, --no-[a-z]+)?(  +|\n {{20,}})[a-z]"
        assert re.search(line, outcome.out, re.MULTILINE), f"{option} is not explained"


@pytest.mark.parametrize("command", ["slices", "groups", "causes"])
def test_help_says_where_larger_regions_are_left_out(
    run: Run, small_folder: Path, tmp_path: Path, command: str
) -> None:
    said = re.sub(r"\s+", " ", run(command, "--help").out)
    assert "regions of more pixels are left out and reported" in said
    outcome = run(command, small_folder, "--team", "alpha", "-o", tmp_path, "--held-up-to", "1")
    assert outcome.code == 1
    assert "too large" in outcome.err


def test_version(run: Run) -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.out) == (0, f"napari-panoptic {__version__}\n")


# --- nothing to evaluate: 1 -------------------------------------------------------------------


def fails(run: Run, cohort: Path, output: Path, said: str) -> Outcome:
    outcome = run("evaluate", cohort, "--output", output)
    assert outcome.code == 1
    assert said in outcome.err
    assert all(line.startswith(PROGRAM) for line in outcome.err.splitlines())
    assert outcome.out == ""
    return outcome


def test_missing_folder(run: Run, tmp_path: Path) -> None:
    fails(run, tmp_path / "nowhere", tmp_path, "there is no such folder")


def test_a_misspelt_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "Cohort 1").mkdir()
    fails(run, tmp_path / "cohort1", tmp_path, "did you mean Cohort 1?")
    fails(run, tmp_path / "no" / "cohort", tmp_path, f"no folder '{tmp_path / 'no'}' to hold it")


def test_a_file_instead_of_a_folder(run: Run, small_folder: Path, tmp_path: Path) -> None:
    fails(run, svs_path(small_folder), tmp_path, "this is a file")


def test_an_empty_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    fails(run, tmp_path / "empty", tmp_path / "out", "the folder is empty")
    assert not (tmp_path / "out").exists()


def test_another_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear diary", encoding="utf-8")
    fails(run, tmp_path / "notes", tmp_path / "out", "no cohort")


def test_a_cohort_without_predictions(run: Run, own_folder: Path, tmp_path: Path) -> None:
    (own_folder / "Teams").rename(tmp_path / "Teams")
    (own_folder / "Submissions").rename(tmp_path / "Submissions")
    said = (
        "it has no predictions; expected are files such as "
        "Teams/TEAM/PATIENT/REGION_mask.png.tif, Submissions/TEAM/PATIENT/REGION/CLASS/*.mat, "
    )
    fails(run, own_folder, tmp_path / "out", said)
    assert not (tmp_path / "out").exists()


def test_a_data_set_of_coco_without_predictions(
    run: Run, small_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "coco"
    assert run("convert", small_folder, "--to", "coco-panoptic", "--output", folder).code == 0
    said = (
        "it has no predictions; expected are files such as Teams/TEAM.json, or a cohort.toml that "
        "says where they are"
    )
    for command in (("evaluate", "--output", "out"), ("report", "-o", "out.html")):
        name, option, output = command
        outcome = run(name, folder, option, tmp_path / output)
        assert outcome.code == 1
        assert said.removeprefix("it") in outcome.err
        assert "Submissions" not in outcome.err


def test_a_cohort_without_annotations(run: Run, own_folder: Path, tmp_path: Path) -> None:
    for path in own_folder.rglob("*.xml"):
        path.unlink()
    said = (
        "no region has an annotation; expected are files such as "
        "MoNuSAC Testing Data and Annotations/PATIENT/REGION.xml, "
    )
    fails(run, own_folder, tmp_path / "out", said)
    outcome = run("convert", own_folder, "--to", "geojson", "--output", tmp_path / "out")
    assert outcome.code == 1
    assert "there is nothing of the annotation to convert; name a team" in outcome.err
    assert "alpha" in outcome.err
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_made(run: Run, small_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for output in (tmp_path / "file", tmp_path / "file" / "tables"):
        outcome = run("evaluate", small_folder, "--output", output)
        assert outcome.code == 1
        assert "the tables cannot be written" in outcome.err
        assert "choose another --output" in outcome.err
        assert output.exists() == ("expected a folder, found a file" in outcome.err)
    assert (tmp_path / "file").read_text("utf-8") == "in the way"


def test_everything_unreadable(run: Run, own_folder: Path, tmp_path: Path) -> None:
    for path in own_folder.rglob("*.xml"):
        path.write_text("<Annotations", encoding="utf-8")
    said = "no region has both a readable annotation and a readable prediction"
    outcome = fails(run, own_folder, tmp_path / "out", said)
    for region in REGIONS:
        assert f"{region.name}.xml" in outcome.err
    assert not (tmp_path / "out").exists()
    assert "evaluation.json" not in outcome.err  # there is none


# --- something cannot be read: the rest is evaluated --------------------------------------------


def survives(
    run: Run, cohort: Path, output: Path, *, kind: str, said: str, lost: set[tuple[str, str]]
) -> Outcome:
    """All but the lost pairs are evaluated; the reason is on stderr and in the record."""
    options = ["--source", "colour-coded"]
    outcome = run("evaluate", cohort, "--output", output, *options)
    assert outcome.code == 0
    assert evaluated_pairs(output) == EVERY_PAIR - lost
    messages = [warning["message"] for warning in record(output)["warnings"][kind]]
    assert any(said in message for message in messages), messages
    assert any(said in line and line.startswith(PROGRAM) for line in outcome.err.splitlines())
    # The kind is for machines.
    assert not any(line.startswith(f"{PROGRAM}{kind}: ") for line in outcome.err.splitlines())
    return outcome


ALPHA_LOST = {("alpha", FIRST.name)}
ALL_LOST = {(team, FIRST.name) for team in TEAMS}


def test_an_unreadable_mask(run: Run, own_folder: Path, tmp_path: Path) -> None:
    path = mask_path(own_folder, "alpha", FIRST)
    path.write_bytes(b"II*\0" + b"garbage" * 20)
    survives(run, own_folder, tmp_path, kind="unreadable", said=path.name, lost=ALPHA_LOST)
    warning = record(tmp_path)["warnings"]["unreadable"][0]
    assert (warning["team"], warning["region"]) == ("alpha", FIRST.name)
    assert warning["path"] == str(path)


def test_a_mask_cut_off(run: Run, own_folder: Path, tmp_path: Path) -> None:
    path = mask_path(own_folder, "alpha", FIRST)
    path.write_bytes(path.read_bytes()[:-2000])
    survives(run, own_folder, tmp_path, kind="unreadable", said=path.name, lost=ALPHA_LOST)


def test_an_empty_mask_file(run: Run, own_folder: Path, tmp_path: Path) -> None:
    mask_path(own_folder, "alpha", FIRST).write_bytes(b"")
    survives(run, own_folder, tmp_path, kind="unreadable", said="an empty file", lost=ALPHA_LOST)


def test_a_mask_of_another_size(run: Run, own_folder: Path, tmp_path: Path) -> None:
    path = mask_path(own_folder, "alpha", FIRST)
    tifffile.imwrite(path, np.zeros((20, 20, 3), np.uint8), photometric="rgb")
    said = "must have the region's size of 56 x 40 px, found 20 x 20 px"
    survives(run, own_folder, tmp_path, kind="unreadable", said=said, lost=ALPHA_LOST)


def test_a_greyscale_mask(run: Run, own_folder: Path, tmp_path: Path) -> None:
    path = mask_path(own_folder, "alpha", FIRST)
    tifffile.imwrite(path, tifffile.imread(path).max(axis=2))
    said = "found a greyscale image with values from 0 to 255"
    survives(run, own_folder, tmp_path, kind="unreadable", said=said, lost=ALPHA_LOST)


def test_an_anti_aliased_mask_is_read_and_reported(
    run: Run, own_folder: Path, tmp_path: Path
) -> None:
    path = mask_path(own_folder, "alpha", FIRST)
    blurred = gaussian_filter(tifffile.imread(path).astype(float), (0.4, 0.4, 0))
    tifffile.imwrite(path, blurred.astype(np.uint8), photometric="rgb")
    said = "have a colour that no class has and count as background"
    survives(run, own_folder, tmp_path, kind="unknown-colours", said=said, lost=set())
    warning = record(tmp_path)["warnings"]["unknown-colours"][0]
    assert (warning["team"], warning["region"]) == ("alpha", FIRST.name)


def test_a_missing_mask(run: Run, own_folder: Path, tmp_path: Path) -> None:
    mask_path(own_folder, "alpha", FIRST).unlink()
    said = f"team 'alpha' has no prediction in the format 'colour-coded' for region {FIRST.name}"
    survives(run, own_folder, tmp_path, kind="missing", said=said, lost=ALPHA_LOST)


@pytest.mark.parametrize("kept", [0, 60])
def test_a_slide_cut_off_is_missed_only_by_the_eye(
    run: Run, own_folder: Path, tmp_path: Path, kept: int
) -> None:
    path = svs_path(own_folder)
    path.write_bytes(path.read_bytes()[:kept])
    survives(run, own_folder, tmp_path, kind="unreadable", said=path.name, lost=set())
    # Distances of this region stay in px: nobody knows how large its pixels are.
    distances = [
        (row["region"], row["hausdorff_um"])
        for row in rows(tmp_path, "objects")
        if row["hausdorff_px"]
    ]
    assert {um for name, um in distances if name == FIRST.name} == {""}
    assert "" not in {um for name, um in distances if name != FIRST.name}


def test_a_slide_without_its_pixels_is_enough_to_evaluate(
    run: Run, own_folder: Path, tmp_path: Path
) -> None:
    path = svs_path(own_folder)
    path.write_bytes(path.read_bytes()[:700])  # the header, with size and micrometres per pixel
    assert run("evaluate", own_folder, "--output", tmp_path).code == 0
    assert evaluated_pairs(tmp_path) == EVERY_PAIR


def test_a_region_without_annotation(run: Run, own_folder: Path, tmp_path: Path) -> None:
    xml_path(own_folder).unlink()
    said = "no annotation: shown, but not evaluated"
    survives(run, own_folder, tmp_path, kind="missing", said=said, lost=ALL_LOST)


def test_an_annotation_cut_off(run: Run, own_folder: Path, tmp_path: Path) -> None:
    text = xml_path(own_folder).read_bytes()
    xml_path(own_folder).write_bytes(text[: len(text) // 2])
    said = "its XML is cut off or damaged"
    survives(run, own_folder, tmp_path, kind="unreadable", said=said, lost=ALL_LOST)


def test_an_entity_bomb(run: Run, own_folder: Path, tmp_path: Path) -> None:
    entities = '<!ENTITY a0 "boom">' + "".join(
        f'<!ENTITY a{k + 1} "{f"&a{k};" * 10}">' for k in range(9)
    )
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [{entities}]><Annotations>&a9;</Annotations>'
    xml_path(own_folder).write_text(bomb, encoding="utf-8")
    said = "a document type declaration"
    survives(run, own_folder, tmp_path, kind="unreadable", said=said, lost=ALL_LOST)


def test_an_annotation_of_another_program(run: Run, own_folder: Path, tmp_path: Path) -> None:
    xml_path(own_folder).write_text("<ASAP_Annotations/>", encoding="utf-8")
    said = "an XML file of another program"
    survives(run, own_folder, tmp_path, kind="unreadable", said=said, lost=ALL_LOST)


def test_a_team_of_which_nothing_can_be_read(run: Run, own_folder: Path, tmp_path: Path) -> None:
    for region in REGIONS:
        mask_path(own_folder, "alpha", region).write_bytes(b"no mask")
    lost = {("alpha", region.name) for region in REGIONS}
    outcome = survives(
        run, own_folder, tmp_path, kind="unreadable", said="cannot be decoded", lost=lost
    )
    assert record(tmp_path)["score"]["alpha"] is None
    assert [row["team"] for row in rows(tmp_path, "patients")] == ["beta"] * 3
    # Who has no score comes last and has a dash.
    scores = [line.split()[:2] for line in outcome.out.splitlines()[1:3]]
    assert [team for team, _ in scores] == ["beta", "alpha"]
    assert scores[1][1] == "\N{EN DASH}"


def test_one_region_is_told_of_in_the_singular(run: Run, own_folder: Path, tmp_path: Path) -> None:
    for path in own_folder.rglob("*.xml"):
        if FIRST.name not in path.name:
            path.unlink()
    outcome = run("evaluate", own_folder, "--output", tmp_path / "out", "--no-distances")
    assert "(1 region of 1 patient)" in outcome.out


def test_a_path_that_is_not_ascii(run: Run, tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path / "Kohorte Äö – 染色")
    folder = tmp_path / "Ergebnis ß"
    for kind in ("Teams", "Submissions"):
        (cohort / kind / "alpha").rename(cohort / kind / "équipe")
    outcome = run("evaluate", cohort, "--output", folder)
    assert outcome.code == 0
    assert [row["team"] for row in rows(folder, "teams")] == ["beta", "équipe"]
    assert record(folder)["cohort"] == "Kohorte Äö – 染色"
    assert "unreadable" not in outcome.err


# --- the sample, and the process ----------------------------------------------------------------


def test_the_sample_can_be_evaluated(run: Run, tmp_path: Path) -> None:
    outcome = run("sample", tmp_path / "sample")
    assert outcome.code == 0
    assert f"napari-panoptic view {tmp_path / 'sample'}" in outcome.out
    arguments = ["evaluate", tmp_path / "sample", "--output", tmp_path / "out", "--no-distances"]
    assert run(*arguments).code == 0
    scores = record(tmp_path / "out")["score"]
    assert len(scores) == 4
    assert all(0 < score < 1 for score in scores.values())
    assert record(tmp_path / "out")["warnings"]["unreadable"] == []


def test_a_sample_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    outcome = run("sample", tmp_path / "file" / "sample")
    assert outcome.code == 1
    assert outcome.err.startswith(PROGRAM)
    outcome = run("sample", tmp_path / "file")
    assert outcome.code == 1
    assert "needs a new or empty folder, and this is a file" in outcome.err


HEAVY = {
    *("asyncio", "dask", "distributed", "h5py", "http.client", "matplotlib", "nibabel"),
    *("openslide", "pydicom", "scipy", "shapely", "skimage", "xml.sax", "zarr"),
    *("napari", "qtpy", "vispy"),
}
"""What no command imports before it needs it."""


def test_help_imports_nothing_that_takes_long() -> None:
    arguments = [sys.executable, "-X", "importtime", "-m", "napari_panoptic.cli.main", "--help"]
    done = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert "evaluate" in done.stdout
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "argparse" in imported
    slow = {"numpy", "scipy", "pandas", "matplotlib", "tifffile"}
    window = {"napari", "qtpy", "PyQt6", "PySide6", "vispy", "magicgui", "superqt"}
    assert not imported & (slow | window)


def test_the_commands_import_nothing_that_takes_long() -> None:
    code = (
        "import sys\n"
        "from importlib import import_module\n"
        "from napari_panoptic.cli.main import COMMANDS\n"
        "for name in COMMANDS:\n"
        "    import_module('napari_panoptic.cli.' + name.replace('-', '_'))\n"
        "from napari_panoptic.cli.question import question_command\n"
        "from napari_panoptic.questions.question import question_names\n"
        "for name in question_names():\n"
        "    question_command(name)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.split())
    assert {"napari_panoptic.cli.compare", "napari_panoptic.questions.slices"} <= imported
    assert not imported & {*HEAVY, "pandas", "tqdm", "filelock"}


def test_evaluating_two_images_imports_nothing_that_takes_long(tmp_path: Path) -> None:
    image, out = tmp_path / "image.tif", tmp_path / "out"
    tifffile.imwrite(image, np.eye(8, dtype=np.uint8))
    arguments = ["evaluate", "--reference", image, "--prediction", image, "--output", out]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "napari_panoptic.cli.main", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (out / "teams.csv").is_file()
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pandas" in imported  # for the tables
    assert not imported & {*HEAVY, "napari_panoptic.report.nuclei.cohort_report"}


def test_the_process_ends_with_the_exit_code(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(tmp_path / "no")]
    done = subprocess.run(
        [*arguments, "--output", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    said = "there is no such folder; give the folder that holds the whole cohort"
    assert done.stderr == f"{PROGRAM}{tmp_path / 'no'}: {said}\n"
    assert done.stdout == ""


STOPPED = """
import sys, threading, types

def stopped():
    # As a kernel in native code that a second Ctrl-C found at work.
    threading.Thread(target=threading.Event().wait).start()
    print("written")
    {ended}

command = types.ModuleType("napari_panoptic.cli.main")
command.main = stopped
sys.modules[command.__name__] = command
from napari_panoptic.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("ended", ["return 130", "raise KeyboardInterrupt"])
def test_a_stopped_command_ends_though_threads_are_still_at_work(ended: str) -> None:
    """The interpreter is not torn down around them, which would bring the process down."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED.format(ended=ended)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = "" if ended == "return 130" else f"{PROGRAM}stopped\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "written\n", said)


def test_the_command_leaves_the_garbage_collector_alone() -> None:
    program = (
        "import gc, runpy, sys\n"
        "sys.argv = ['napari-panoptic', '--version']\n"
        "try:\n"
        "    runpy.run_module('napari_panoptic', run_name='__main__')\n"
        "except SystemExit:\n"
        "    pass\n"
        "assert gc.isenabled()\n"
        "assert gc.get_freeze_count() == 0, gc.get_freeze_count()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
