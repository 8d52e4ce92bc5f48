"""Real regions, real slides: figures that other people's code computed on the very same files.

Some go through the command line and back through the tables it writes, as a person who only has
the tables would check it. The other conditions are evaluated together from files that are read
once; `tests/nuclei/test_conditions.py` shows that this gives what the command gives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
from napari_panoptic.nuclei.regions.conditions import Condition, lessons_conditions
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.results import placed
from napari_panoptic.report.nuclei.tables import (
    patients_by_class_table,
    patients_table,
    regions_table,
    teams_table,
)
from napari_panoptic.statistics.means import spread
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.conventions import Mistake, with_corrections
from napari_panoptic.values.settings import protocol
from tests.support.paths import REPOSITORY, SHARED_CASES, needs_shared_cases

pytestmark = needs_shared_cases

CLASSES = list(MONUSAC_CLASSES.names)
COHORT = SHARED_CASES / "monusac"
COLOUR_CODED = "colour-coded GT"
BOTH_RESTORATIONS_AND_RULES = pytest.mark.parametrize(
    ("restoration", "rule"),
    [
        ("border-removed", "strict-iou"),
        ("border-dilated", "centroid"),
        pytest.param("border-removed", "centroid", marks=pytest.mark.long),
        pytest.param("border-dilated", "strict-iou", marks=pytest.mark.long),
    ],
)
SCORES = {
    "as_run": None,
    "matching_fixed": "matching",
    "absent_class_fp_counted": "absent-class-fp",
    "per_patient": "per-patient",
    "all_corrections": "matching,absent-class-fp,per-patient",
}


@dataclass(frozen=True)
class Tables:
    """Tables by name, and the record beside them."""

    frames: dict[str, pd.DataFrame]
    record: dict[str, Any]

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.frames[name]


Run = Callable[[str], Tables]
"""Returns the tables of a condition by its name, or by the corrections of the challenge."""
CHALLENGE = "monusac-2020-as-run"
COMMANDS = {
    "border-removed strict-iou": [],
    "border-dilated centroid": ["--restoration=border-dilated", "--matching=centroid"],
    "": [f"--protocol={CHALLENGE}", "--no-distances"],
}


@pytest.fixture(
    scope="module",
    params=[
        ("jitter", "tight"),
        pytest.param(("log-seeds", "otsu-watershed"), marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def teams(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the teams to evaluate, besides the annotation's own colour-coded version."""
    found: tuple[str, ...] = request.param
    return found


@pytest.fixture(scope="module")
def run(teams: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Evaluate the real regions under each condition once."""
    done: dict[str, Tables] = {}

    def evaluated(name: str) -> Tables:
        is_challenge = not name or name in SCORES.values()
        chosen = teams if is_challenge else (*teams, COLOUR_CODED)
        if name in COMMANDS and name not in done:
            options = [f"--teams={','.join(chosen)}", *COMMANDS[name]]
            done[name] = commanded(options, tmp_path_factory.mktemp("tables"))
        elif name not in done:
            done.update(evaluated_together(chosen, is_challenge=is_challenge))
        return done[name]

    return evaluated


def commanded(options: list[str], folder: Path) -> Tables:
    """Return what the command line writes."""
    arguments = ["evaluate", str(COHORT), "--output", str(folder), *options]
    arguments += ["--scheduler", "threads"]  # processes take longer to start than the work
    assert main(arguments) == 0
    frames = {path.stem: pd.read_csv(path) for path in folder.glob("*.csv")}
    return Tables(frames, json.loads((folder / "evaluation.json").read_text("utf-8")))


def evaluated_together(teams: tuple[str, ...], *, is_challenge: bool) -> dict[str, Tables]:
    """Evaluate the conditions of one kind that no command has, from files that are read once."""
    cohort, quick = open_cohort(COHORT), protocol(CHALLENGE).replaced(distances=False)
    conditions = list(lessons_conditions())
    if is_challenge:
        conditions = [
            Condition(
                correct,
                quick.replaced(convention=with_corrections(map(Mistake, correct.split(",")))),
            )
            for correct in SCORES.values()
            if correct
        ]
    conditions = [condition for condition in conditions if condition.name not in COMMANDS]
    work = Experiment(teams, tuple(conditions))
    regions = [work.evaluate(cohort, region) for region in cohort.regions]
    found = {}
    for number, condition in enumerate(conditions):
        results = [result for region in regions for result in region[number]]
        evaluation = CohortEvaluation(cohort, condition.settings, condition.name, results)
        frames = {
            "regions": regions_table(evaluation),
            "patients": patients_table(evaluation),
            "patients_by_class": patients_by_class_table(evaluation),
            "teams": teams_table(evaluation),
            "objects": pd.concat(
                [
                    placed(result.objects, result.place)
                    for result in results
                    if result.objects is not None
                ]
            ),
        }
        score = {team: evaluation.score(team) for team in evaluation.team_names}
        found[condition.name] = Tables(frames, {"score": score})
    return found


def condition(run: Run, restoration: str, rule: str) -> Tables:
    return run(f"{restoration} {rule}")


def challenge(run: Run, correct: str | None) -> Tables:
    return run(correct or "")


@cache
def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((COHORT / "expected.json").read_text("utf-8"))
    return found


def agree(found: Any, wanted: Any, what: str) -> None:
    """null in the expected figures is an empty cell in ours."""
    if wanted is None:
        assert math.isnan(found), f"{what}: {found}, expected undefined"
    else:
        assert math.isclose(found, wanted, rel_tol=1e-9), f"{what}: {found}, expected {wanted}"


def all_agree(found: Any, wanted: list[Any], what: str) -> None:
    assert len(found) == len(wanted), what
    for name, value, figure in zip(CLASSES, found, wanted, strict=True):
        agree(value, figure, f"{what} of {name}")


def counted(objects: pd.DataFrame) -> np.ndarray:
    """Count the confusion matrix of a patient from the rows of its objects."""
    index = {name: number for number, name in enumerate(CLASSES, start=1)}
    matrix = np.zeros((5, 5), int)
    sides = {side: objects[objects["side"] == side] for side in ("reference", "prediction")}
    matched = sides["reference"]["status"].isin(["TP", "misclassified"])
    for own, partner in sides["reference"].loc[matched, ["class", "partner_class"]].to_numpy():
        matrix[index[own], index[partner]] += 1
    for name in sides["reference"].loc[sides["reference"]["status"] == "FN", "class"]:
        matrix[index[name], 0] += 1
    for name in sides["prediction"].loc[sides["prediction"]["status"] == "FP", "class"]:
        matrix[0, index[name]] += 1
    return matrix


# --- the disentangled figures -----------------------------------------------------------------


@BOTH_RESTORATIONS_AND_RULES
def test_disentangled(run: Run, teams: tuple[str, ...], restoration: str, rule: str) -> None:
    every_team = (*teams, COLOUR_CODED)
    tables = condition(run, restoration, rule)
    patients = tables["patients"].set_index(["team", "patient"])
    by_class = dict(list(tables["patients_by_class"].groupby(["team", "patient"])))
    objects = dict(list(tables["objects"].groupby(["team", "patient"])))
    wanted = {
        team: expected()["disentangled"][team][f"{restoration} {rule}"] for team in every_team
    }
    assert set(patients.index) == {(team, p) for team in every_team for p in wanted[team]}
    # The annotation's own colour-coded version comes without expected distances.
    assert all(("HD" in f) == (t != COLOUR_CODED) for t in wanted for f in wanted[t].values())
    for team, patient in patients.index:
        figures, what = wanted[team][patient], f"{team} {patient}"
        check_patient(patients.loc[(team, patient)], figures, what)
        check_classes(by_class[team, patient].set_index("class").loc[CLASSES], figures, what)
        check_objects(objects[team, patient], figures, what)


def check_patient(unit: pd.Series, figures: dict[str, Any], what: str) -> None:
    detection = figures["detection"]
    for column, figure in {
        "pq": figures["PQ"],
        "sq": figures["SQ"],
        "dq": figures["DQ"],
        "detection_precision": detection["prec"],
        "detection_recall": detection["rec"],
        "detection_f1": detection["f1"],
        "detection_accuracy": detection["acc"],
        "balanced_accuracy": figures["classification"]["overall_acc"],
        "mean_iou": figures["segmentation"]["aIoU"],
        **({"mean_hausdorff_px": figures["HD"]} if "HD" in figures else {}),
    }.items():
        agree(unit[column], figure, f"{what} {column}")


def check_classes(classes: pd.DataFrame, figures: dict[str, Any], what: str) -> None:
    for column, values in {
        "tp": figures["TP"],
        "fp": figures["FP"],
        "fn": figures["FN"],
        "pq": figures["PQc"],
        "precision": figures["classification"]["class_prec"],
        "recall": figures["classification"]["class_rec"],
        "f1": figures["classification"]["class_f1"],
        "mean_iou": figures["segmentation"]["IoUc"],
        **({"mean_hausdorff_px": figures["HDc"]} if "HDc" in figures else {}),
    }.items():
        all_agree(classes[column], values, f"{what} {column}")


def check_objects(objects: pd.DataFrame, figures: dict[str, Any], what: str) -> None:
    """Count and average the rows of the objects anew: they must tell the same story."""
    matrix = counted(objects)
    assert matrix.tolist() == figures["cm"], what
    matched = matrix[1:, 1:]
    for row, wanted in zip(matched, figures["classification"]["NCM"], strict=True):
        all_agree(row / max(row.sum(), 1), wanted, f"{what} NCM")
    pairs = objects[(objects["side"] == "reference") & objects["partner_id"].notna()]
    of_class = pairs.groupby("class")[["iou", "hausdorff_px"]].mean().reindex(CLASSES)
    all_agree(of_class["iou"], figures["segmentation"]["IoUc"], f"{what} IoUc")
    if "HD" in figures:
        agree(pairs["hausdorff_px"].mean(), figures["HD"], f"{what} HD")
        all_agree(of_class["hausdorff_px"], figures["HDc"], f"{what} HDc")


@BOTH_RESTORATIONS_AND_RULES
def test_teams_are_the_means_of_the_expected_patients(
    run: Run, teams: tuple[str, ...], restoration: str, rule: str
) -> None:
    rows = condition(run, restoration, rule)["teams"].set_index("team")
    score = condition(run, restoration, rule).record["score"]
    for team in (*teams, COLOUR_CODED):
        patients = expected()["disentangled"][team][f"{restoration} {rule}"].values()
        quality = [figures["PQ"] for figures in patients]
        assert rows.loc[team, "patients"] == len(quality)
        agree(rows.loc[team, "pq_mean"], float(np.mean(quality)), team)
        agree(rows.loc[team, "pq_sd"], float(np.std(quality, ddof=1)), team)
        agree(score[team], float(np.mean(quality)), team)


# --- the challenge's own scoring --------------------------------------------------------------


@pytest.mark.parametrize("name", SCORES)
def test_challenge_scores(run: Run, teams: tuple[str, ...], name: str) -> None:
    score = challenge(run, SCORES[name]).record["score"]
    assert set(score) == set(teams)
    for team in teams:
        agree(score[team], expected()["challenge"][team][name], f"{team} {name}")


def test_what_the_challenge_never_counted(run: Run, teams: tuple[str, ...]) -> None:
    uncounted = challenge(run, None).record["absent_classes"]
    for team in teams:
        wanted = expected()["challenge"][team]
        assert uncounted[team]["false_positives"] == wanted["fp_in_absent_classes"]
        assert uncounted[team]["masks"] == wanted["masks_ignored"]


# Which correction shows which of the expected figures, and in which rows.
REGION_TABLES = {
    None: ("pq_as_run", "fp_as_run", False),
    "absent-class-fp": ("pq_as_run", "fp_as_run", True),
    "matching": ("pq_fixed", "fp_fixed", False),
    "matching,absent-class-fp,per-patient": ("pq_fixed", "fp_fixed", True),
}


@pytest.mark.parametrize("correct", REGION_TABLES)
def test_challenge_figures_of_every_region_and_class(
    run: Run, teams: tuple[str, ...], correct: str | None
) -> None:
    pq, fp, absent_too = REGION_TABLES[correct]
    rows = challenge(run, correct)["regions"]
    rows = rows[rows["class"] != "mean"]
    for team in teams:
        wanted = {
            key: figures
            for key, figures in expected()["challenge"][team]["per_image_class"].items()
            if figures["gt_has_class"] or (absent_too and figures["pred_has_class"])
        }
        found = {
            f"{row['patient']}|{row['region']}|{CLASSES.index(row['class'])}": row
            for row in rows[rows["team"] == team].to_dict("records")
        }
        assert found.keys() == wanted.keys()
        for key, figures in wanted.items():
            counts = [found[key][column] for column in ("tp", "fp", "fn")]
            assert counts == [figures["tp"], figures[fp], figures["fn"]], f"{team} {key}"
            agree(found[key]["pq"], figures[pq], f"{team} {key}")


# --- the organisers' own output ---------------------------------------------------------------

ORGANS = {
    "Lung": "49-6743 50-6591 55-7570 55-7573 73-4662 78-7152 MP-A4T7",
    "Kidney": "2Z-A9JG 2Z-A9JN DW-7838 DW-7963 F9-A8NY IZ-A6M9 MH-A55W",
    "Breast": "A2-A04X A2-A0ES D8-A3Z6 E2-A108 EW-A6SB",
    "Prostate": "G9-6356 G9-6367 VP-A87E VP-A87H X4-A8KS YL-A9WL",
}


def printed(team: str) -> pd.DataFrame:
    """Read what the organisers' code printed of one team: path, files found (if any), PQ."""
    text = (SHARED_CASES / "challenge-dump" / "per_image_class_pq.txt").read_text("utf-8")
    rows, current, place = [], "", ("", "", "")
    for line in filter(None, text.splitlines()):
        if line.startswith(".\\"):
            _, patient, region, class_name, _ = line.split("\\")
            place = (patient, region, class_name)
        elif re.fullmatch(r"[0-9.e-]+", line):
            rows.append((current, *place, float(line)))
        elif not line.startswith("["):
            current = line
    table = pd.DataFrame(rows, columns=["team", "patient", "region", "class", "pq"])
    return table[table["team"] == team]


def test_mean_over_regions_of_the_organisers_own_output() -> None:
    dump = printed("SJTU_426")
    assert (dump["region"].nunique(), dump["patient"].nunique()) == (101, 25)
    assert not dump.duplicated(["region", "class"]).any()
    regions = [spread(of_region.tolist()).mean for _, of_region in dump.groupby("region")["pq"]]
    assert spread(regions).mean == pytest.approx(0.5792538515659122, rel=1e-12)


def test_table_2_of_the_challenges_critics() -> None:
    paper = REPOSITORY.parent / "shared" / "papers" / "monusac-evaluation-errors.txt"
    table = paper.read_text("utf-8").partition("Table 2:")[2].partition("This is, however")[0]
    dump = printed("SJTU_426")
    organ, compared = "", 0
    for name, class_name, pq in re.findall(r"^(\w*)\t(\w+)\t[0-9.]+\t([0-9.]+)$", table, re.M):
        organ = name or organ
        codes = tuple(f"TCGA-{code}-" for code in ORGANS[organ].split())
        chosen = dump["patient"].str.startswith(codes) & (dump["class"] == class_name)
        mean = spread(dump.loc[chosen, "pq"].tolist()).mean
        assert f"{mean:.3f}" == pq, f"{organ} {class_name}"
        compared += 1
    assert compared == 16


# --- real slides ------------------------------------------------------------------------------


def test_a_real_slide_of_one_level() -> None:
    info = probe_image(SHARED_CASES / "slides" / "CMU-1-Small-Region.svs")
    assert info.shape == (2967, 2220)
    assert info.mpp == pytest.approx(0.499)
    assert info.findings == ()
    with read_image(SHARED_CASES / "slides" / "CMU-1-Small-Region.svs") as image:
        pixels = np.asarray(image.levels[0])
    assert pixels.shape == (2967, 2220, 3)
    assert pixels.std() > 10


def test_a_real_slide_without_micrometres_per_pixel() -> None:
    path = SHARED_CASES / "slides" / "TCGA-CR-7395-01A-01-TS1.svs"
    with read_image(path) as image:
        assert (image.shape, image.mpp) == ((3567, 4443), None)
        assert [finding.kind for finding in image.findings] == [FindingKind.NO_MPP]
        assert np.asarray(image.levels[0][:64, :64]).shape == (64, 64, 3)


@pytest.mark.parametrize("read", [probe_image, read_image])
def test_a_slide_that_nobody_can_read(read: Callable[[Path], object]) -> None:
    path = SHARED_CASES / "slides" / "broken.svs"
    with pytest.raises(UnreadableFileError, match="it is damaged or of another format") as found:
        read(path)
    assert found.value.path == path
