"""The whole chain on a small cohort: files in, tables out, against the oracle.

The expected figures come from a second reading of the files, the plainest there is: polygons
filled one by one on the whole frame, components by flood fill, objects dilated one after the
other; nothing of the package takes part in it.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import skimage.draw
import tifffile

from napari_panoptic.cli.main import main
from tests.support import oracle
from tests.support.oracle import OracleResult
from tests.support.small_cohort import (
    AMBIGUOUS,
    ANNOTATIONS,
    CLASSES,
    COLOURS,
    MPP,
    REGIONS,
    TEAMS,
    SmallRegion,
    annotation_mask_path,
    mask_path,
    submission_folder,
)

GT = "colour-coded GT"
EVERY_TEAM = (*TEAMS, GT)
RESTORATIONS = ("border-removed", "border-dilated")
RULES = ("strict-iou", "centroid")
POLICIES = ("clip", "clip-predictions", "majority", "keep")
METRICS = (
    *("pq", "sq", "dq"),
    *("detection_precision", "detection_recall", "detection_f1", "detection_accuracy"),
    *("balanced_accuracy", "mean_iou", "mean_hausdorff_px"),
)
REGION_FIGURES = ("tp", "fp", "fn", "iou_sum", "pq", "sq", "dq")
CLASS_FIGURES = (*REGION_FIGURES, "precision", "recall", "f1", "mean_iou", "mean_hausdorff_px")
OBJECT_CELLS = (
    *("side", "id", "class", "status", "cause", "partner_id", "partner_class", "iou"),
    *("hausdorff_px", "hausdorff_um", "area_px", "centroid_y_px", "centroid_x_px", "score"),
)


def choices(*options: tuple[str, ...]) -> list[Any]:
    """Return all combinations: half of them, with every value of each option, for each run."""
    return [
        values if sum(places) % 2 == 0 else pytest.param(*values, marks=pytest.mark.long)
        for places, values in zip(
            product(*(range(len(own)) for own in options)), product(*options), strict=True
        )
    ]


Labels = np.ndarray
ClassMasks = dict[str, Labels]
Rows = list[dict[str, Any]]


# --- the plain reading ------------------------------------------------------------------------


def read_polygons(root: Path, region: SmallRegion) -> list[tuple[int, str, list, list]]:
    """List the polygons of the file: number, class, rows and columns of the vertices."""
    path = root / ANNOTATIONS / region.patient / f"{region.name}.xml"
    polygons = []
    for layer in ElementTree.parse(path).getroot().iter("Annotation"):  # noqa: S314 - our own file
        name = layer.find("Attributes/Attribute").get("Name")
        for element in layer.iterfind("Regions/Region"):
            vertices = element.findall("Vertices/Vertex")
            rows = [int(float(vertex.get("Y"))) for vertex in vertices]
            columns = [int(float(vertex.get("X"))) for vertex in vertices]
            polygons.append((len(polygons) + 1, name, rows, columns))
    return polygons


@cache
def annotated_masks(root: Path, region: SmallRegion) -> tuple[ClassMasks, np.ndarray]:
    """Fill the polygons: one mask per class, and the ambiguous area."""
    masks = {name: np.zeros(region.shape, np.int64) for name in (*CLASSES, AMBIGUOUS)}
    for number, name, rows, columns in read_polygons(root, region):
        masks[name][skimage.draw.polygon(rows, columns, region.shape)] = number
    return {name: masks[name] for name in CLASSES}, masks[AMBIGUOUS] > 0


def flood_filled(inside: np.ndarray) -> Labels:
    """Number the 8-connected components in raster order."""
    labels = np.zeros(inside.shape, np.int64)
    height, width = inside.shape
    following = 0
    for seed in zip(*np.nonzero(inside), strict=True):
        if labels[seed]:
            continue
        following += 1
        labels[seed] = following
        waiting = [seed]
        while waiting:
            y, x = waiting.pop()
            for v, u in product((y - 1, y, y + 1), (x - 1, x, x + 1)):
                if 0 <= v < height and 0 <= u < width and inside[v, u] and not labels[v, u]:
                    labels[v, u] = following
                    waiting.append((v, u))
    return labels


def dilated(labels: Labels) -> Labels:
    """Let every object in turn take its four neighbours, from whomever they were."""
    grown = labels.copy()
    height, width = labels.shape
    for label in range(1, int(labels.max()) + 1):
        for y, x in zip(*np.nonzero(labels == label), strict=True):
            for v, u in ((y, x), (y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= v < height and 0 <= u < width:
                    grown[v, u] = label
    return grown


def restored_masks(path: Path, restoration: str) -> ClassMasks:
    rgb = tifffile.imread(path)
    masks = {n: flood_filled((rgb == np.array(COLOURS[n])).all(axis=2)) for n in CLASSES}
    if restoration == "border-dilated":
        return {name: dilated(mask) for name, mask in masks.items()}
    return masks


def submitted_masks(folder: Path, shape: tuple[int, int]) -> ClassMasks:
    masks = {name: np.zeros(shape, np.int64) for name in CLASSES}
    for name in CLASSES:
        for path in folder.glob(f"{name}/*.mat"):
            variables = scipy.io.loadmat(path)
            (values,) = (v for key, v in variables.items() if not key.startswith("__"))
            binary = set(np.unique(values).tolist()) <= {0, 255}
            masks[name] = flood_filled(values > 0) if binary else values.astype(np.int64)
    return masks


def ids_of(mask: Labels) -> list[int]:
    return [int(label) for label in np.unique(mask) if label]


def flattened(masks: ClassMasks) -> tuple[Labels, dict[int, str]]:
    """Lay the classes over each other; ids that two classes use are given anew to all."""
    every_id = [label for mask in masks.values() for label in ids_of(mask)]
    keep = len(set(every_id)) == len(every_id)
    flat = np.zeros(next(iter(masks.values())).shape, np.int64)
    classes: dict[int, str] = {}
    for name in CLASSES:
        for label in ids_of(masks[name]):
            new = label if keep else len(classes) + 1
            classes[new] = name
            flat[masks[name] == label] = new
    return flat, classes


@cache
def predicted_masks(
    root: Path, team: str, region: SmallRegion, source: str, restoration: str
) -> ClassMasks:
    if source == "submission":
        return submitted_masks(submission_folder(root, team, region), region.shape)
    is_annotation = team == GT
    path = annotation_mask_path(root, region) if is_annotation else mask_path(root, team, region)
    return restored_masks(path, restoration)


def expected_regions(
    root: Path, team: str, source: str, restoration: str, rule: str, policy: str
) -> list[tuple[SmallRegion, OracleResult]]:
    results = []
    for region in REGIONS:
        reference_masks, ambiguous = annotated_masks(root, region)
        reference, reference_classes = flattened(reference_masks)
        prediction, prediction_classes = flattened(
            predicted_masks(root, team, region, source, restoration)
        )
        result = oracle.evaluate(
            reference,
            prediction,
            reference_classes,
            prediction_classes,
            CLASSES,
            ambiguous,
            matching=rule,
            policy=policy,
            mpp=MPP,
        )
        results.append((region, result))
    return results


# --- the expected tables ----------------------------------------------------------------------


def by_patient(results: list[tuple[SmallRegion, OracleResult]]) -> dict[str, OracleResult]:
    patients = sorted({region.patient for region, _ in results})
    return {
        patient: oracle.aggregate([r for region, r in results if region.patient == patient])
        for patient in patients
    }


def expected_tables(results: dict[str, list[tuple[SmallRegion, OracleResult]]]) -> dict[str, Rows]:
    tables: dict[str, Rows] = {name: [] for name in TABLES}
    for team, regions in results.items():
        for region, result in regions:
            place = {"team": team, "patient": region.patient, "region": region.name}
            tables["objects"].extend(
                place | {cell: row[cell] for cell in OBJECT_CELLS} for row in result.objects
            )
            tables["regions"].extend(region_rows(place, result))
        patients = by_patient(regions)
        for patient, result in patients.items():
            place = {"team": team, "patient": patient}
            tables["patients"].append(place | result.unit)
            tables["patients_by_class"].extend(
                place | {"class": name} | result.by_class[name] for name in CLASSES
            )
        tables["teams"].append(team_row(team, patients))
        tables["confusion"].extend(confusion_rows(team, patients))
    return tables


def region_rows(place: dict[str, Any], result: OracleResult) -> Rows:
    present = [
        name
        for name in CLASSES
        if any(result.by_class[name][count] for count in ("tp", "fp", "fn"))
    ]
    rows = [place | {"class": name} | result.by_class[name] for name in present]
    nothing = dict.fromkeys(("tp", "fp", "fn", "iou_sum"))
    unit = {name: result.unit[name] for name in ("pq", "sq", "dq")}
    return [*rows, place | {"class": "mean"} | nothing | unit]


def team_row(team: str, patients: dict[str, OracleResult]) -> dict[str, Any]:
    row: dict[str, Any] = {"team": team, "patients": len(patients)}
    for name in METRICS:
        defined = [r.unit[name] for r in patients.values() if r.unit[name] is not None]
        row[f"{name}_mean"] = statistics.fmean(defined) if defined else None
        row[f"{name}_sd"] = statistics.stdev(defined) if len(defined) > 1 else None
    return row


def confusion_rows(team: str, patients: dict[str, OracleResult]) -> Rows:
    names = ("none", *CLASSES)
    return [
        {
            "team": team,
            "reference": reference,
            "prediction": prediction,
            "count": sum(result.confusion[i][j] for result in patients.values()),
        }
        for i, reference in enumerate(names)
        for j, prediction in enumerate(names)
    ]


TABLES = {
    "objects": ("team", "patient", "region", *OBJECT_CELLS),
    "regions": ("team", "patient", "region", "class", *REGION_FIGURES),
    "patients": ("team", "patient", *METRICS),
    "patients_by_class": ("team", "patient", "class", *CLASS_FIGURES),
    "teams": ("team", "patients", *(f"{m}_{part}" for m in METRICS for part in ("mean", "sd"))),
    "confusion": ("team", "reference", "prediction", "count"),
}
"""The tables of the contract and their columns, in order."""


# --- comparing --------------------------------------------------------------------------------


Evaluate = Callable[..., Path]


@pytest.fixture
def evaluated(small_folder: Path, tmp_path: Path) -> Evaluate:
    def run(*options: str) -> Path:
        assert main(["evaluate", str(small_folder), "--output", str(tmp_path), *options]) == 0
        return tmp_path

    return run


def assert_same_tables(folder: Path, expected: dict[str, Rows]) -> None:
    for name, columns in TABLES.items():
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            # Teams may take turns: what belongs to one team keeps its order.
            found = sorted(reader, key=lambda row: EVERY_TEAM.index(row["team"]))
        assert tuple(reader.fieldnames or ()) == columns
        assert len(found) == len(expected[name]), name
        for row, wanted in zip(found, expected[name], strict=True):
            for column in columns:
                assert_same_cell(row[column], wanted[column], f"{name} {column} of {wanted}")


def assert_same_cell(found: str, wanted: Any, what: str) -> None:
    """An undefined figure is an empty cell; counts are whole numbers."""
    if wanted is None:
        assert found == "", what
    elif isinstance(wanted, str | int):
        assert found == str(wanted), what
    else:
        assert math.isclose(float(found), wanted, rel_tol=1e-12, abs_tol=1e-12), what


def assert_same_scores(folder: Path, expected: dict[str, Rows]) -> None:
    scores = json.loads((folder / "evaluation.json").read_text("utf-8"))["score"]
    assert scores == pytest.approx(
        {row["team"]: row["pq_mean"] for row in expected["teams"]}, rel=1e-12
    )


@pytest.mark.parametrize(("restoration", "rule", "policy"), choices(RESTORATIONS, RULES, POLICIES))
def test_colour_coded(
    small_folder: Path, evaluated: Evaluate, restoration: str, rule: str, policy: str
) -> None:
    options = ["--restoration", restoration, "--matching", rule, "--ambiguous", policy]
    folder = evaluated("--teams", ",".join(EVERY_TEAM), *options)
    expected = expected_tables(
        {
            team: expected_regions(small_folder, team, "colour-coded", restoration, rule, policy)
            for team in EVERY_TEAM
        }
    )
    assert_same_tables(folder, expected)
    assert_same_scores(folder, expected)


@pytest.mark.parametrize(("rule", "policy"), choices(RULES, POLICIES))
def test_submissions(small_folder: Path, evaluated: Evaluate, rule: str, policy: str) -> None:
    folder = evaluated("--source", "submission", "--matching", rule, "--ambiguous", policy)
    expected = expected_tables(
        {
            team: expected_regions(small_folder, team, "submission", "", rule, policy)
            for team in TEAMS
        }
    )
    assert_same_tables(folder, expected)
    assert_same_scores(folder, expected)


def test_the_cohort_has_what_it_is_there_for(evaluated: Evaluate) -> None:
    folder = evaluated()
    with (folder / "objects.csv").open(encoding="utf-8", newline="") as file:
        objects = list(csv.DictReader(file))
    assert {row["status"] for row in objects} == {"TP", "FP", "FN", "misclassified", "ignored"}
    causes = {row["cause"] for row in objects}
    assert {"split", "merged", "missed", "fragment", "merger", "spurious"} <= causes
    assert {"ambiguous-spill", "too-small", "too-large", "displaced"} <= causes
    record = json.loads((folder / "evaluation.json").read_text("utf-8"))
    vanished = [(w["region"][-2:], w["object_ids"]) for w in record["warnings"]["vanished"]]
    assert vanished == [("_1", [4]), ("_2", [3])]
    assert len(record["warnings"]["overlapping"]) >= 2
    assert {"outside-image", "degenerate"} <= record["warnings"].keys()


# --- the challenge's own scoring --------------------------------------------------------------


@cache
def challenge_class(root: Path, team: str, number: int, name: str) -> dict[str, Any]:
    """Score one class of one region alone, with the challenge's error and without."""
    region = REGIONS[number]
    reference_masks, ambiguous = annotated_masks(root, region)
    reference = reference_masks[name]
    prediction = predicted_masks(root, team, region, "colour-coded", "border-removed")[name]
    ids = [dict.fromkeys(ids_of(mask), name) for mask in (reference, prediction)]
    rows = oracle.evaluate(reference, prediction, *ids, CLASSES, ambiguous).objects
    matched = {r["id"]: r["iou"] for r in rows if r["side"] == "reference" and r["partner_id"]}
    left = [r for r in rows if r["side"] == "prediction" and r["status"] != "ignored"]
    return {
        "patient": region.patient,
        "name": name,
        "in_reference": bool(ids[0]),
        "in_prediction": bool(ids[1]),
        "iou_sum": math.fsum(matched.values()),
        "tp": len(matched),
        "fn": sum(r["status"] == "FN" for r in rows),
        "fp": sum(r["status"] == "FP" for r in left),
        "fp_as_run": sum(r["id"] not in matched for r in left),
    }


def challenge_score(root: Path, team: str, corrections: tuple[str, ...]) -> float:
    fp = "fp" if "matching" in corrections else "fp_as_run"
    units: dict[object, list[dict[str, Any]]] = {}
    for number, region in enumerate(REGIONS):
        unit = region.patient if "per-patient" in corrections else number
        for name in CLASSES:
            figures = challenge_class(root, team, number, name)
            if figures["in_reference"] or (
                "absent-class-fp" in corrections and figures["in_prediction"]
            ):
                units.setdefault(unit, []).append(figures)
    scores = []
    for counted in units.values():
        qualities = []
        for name in CLASSES:
            own = [figures for figures in counted if figures["name"] == name]
            weight = sum(f["tp"] + f[fp] / 2 + f["fn"] / 2 for f in own)
            if own:
                qualities.append(sum(f["iou_sum"] for f in own) / weight if weight else 0.0)
        scores.append(statistics.fmean(qualities))
    return statistics.fmean(scores)


EVERY_CHOICE = [
    tuple(word for word, wanted in zip(words, choice, strict=True) if wanted)
    for words in [("matching", "absent-class-fp", "per-patient")]
    for choice in product((False, True), repeat=3)
]


@pytest.mark.parametrize("corrections", EVERY_CHOICE, ids=lambda c: "+".join(c) or "as run")
def test_the_challenges_scoring(
    small_folder: Path, evaluated: Evaluate, corrections: tuple[str, ...]
) -> None:
    correct = ["--correct", ",".join(corrections)] if corrections else []
    folder = evaluated("--protocol", "monusac-2020-as-run", *correct)
    record = json.loads((folder / "evaluation.json").read_text("utf-8"))
    expected = {team: challenge_score(small_folder, team, corrections) for team in TEAMS}
    assert record["score"] == pytest.approx(expected, rel=1e-12)
    for team in TEAMS:
        absent = [
            figures["fp"]
            for number, name in product(range(len(REGIONS)), CLASSES)
            if not (figures := challenge_class(small_folder, team, number, name))["in_reference"]
        ]
        found = record["absent_classes"][team]
        assert found == {"false_positives": sum(absent), "masks": sum(map(bool, absent))}
