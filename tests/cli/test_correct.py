"""The command ``correct``: the annotation with the verdicts of a review applied."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile
from lxml import etree
from PIL import Image

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.polygons.geojson_writer import geo_objects, write_geojson
from napari_panoptic.live.mends import Claim
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.plan.corrected import DECIDED
from napari_panoptic.review.plan.design import Plan, draw
from napari_panoptic.review.plan.object_verdicts import object_verdicts
from napari_panoptic.review.plan.units import SIDES, ItemKind, population
from napari_panoptic.review.store import ReviewStore, read_review
from napari_panoptic.values.cohort import ClassScheme, Cohort
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.links import CohortKey, ObjectLink
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, Verdict
from tests.support.corrected import (
    SETTINGS,
    assert_same_figures,
    correct,
    evaluation_of,
    failures,
    give,
    in_the_window,
    record,
    table,
)
from tests.support.paths import contents
from tests.support.review_cases import subject


@pytest.mark.parametrize("claim", list(Claim))
def test_laid_over_a_copy_it_gives_the_figures_of_the_window(
    nuclei_sample: Path, tmp_path: Path, claim: Claim
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    team = cohort.team_names[0]
    verdicts = {}
    for seed, region in enumerate(cohort.regions):
        verdicts[region.name] = failures(evaluation_of(cohort, region.name, team), seed)
        give(review, cohort, region.name, team, verdicts[region.name])
    assert correct(nuclei_sample, review, output, "--claim", str(claim)) == 0
    assert record(output)["counts"]["differing_px"] == 0
    copy = tmp_path / "copy"
    shutil.copytree(nuclei_sample, copy)
    shutil.copytree(output, copy, dirs_exist_ok=True)
    corrected = open_cohort(copy)
    for region in cohort.regions:
        shown = in_the_window(cohort, region.name, team, verdicts[region.name], claim)
        assert_same_figures(evaluation_of(corrected, region.name, team), shown)
    assert {"accept", "delete", "replace", "reclassify", "draw"} <= set(table(output)["action"])


def one_region(nuclei_sample: Path, review: Path, seed: int = 1) -> tuple[str, str]:
    """Save verdicts on the failures of the first region; return its name and the team."""
    cohort = open_cohort(nuclei_sample)
    region, team = cohort.regions[0].name, cohort.team_names[0]
    give(review, cohort, region, team, failures(evaluation_of(cohort, region, team), seed))
    return region, team


@pytest.mark.parametrize("form", ["imagescope", "geojson", "labels"])
def test_another_format_comes_with_a_cohort_that_opens(
    nuclei_sample: Path, tmp_path: Path, form: str
) -> None:
    review, output = tmp_path / "r.sqlite", tmp_path / "out"
    region, _ = one_region(nuclei_sample, review)
    assert correct(nuclei_sample, review, tmp_path / "own") == 0
    assert correct(nuclei_sample, review, output, "--to", form) == 0
    written = open_cohort(output)
    assert [each.name for each in written.regions] == [region]
    assert written.regions[0].patient == open_cohort(nuclei_sample).regions[0].patient
    copy = tmp_path / "copy"
    shutil.copytree(nuclei_sample, copy)
    shutil.copytree(tmp_path / "own", copy, dirs_exist_ok=True)
    laid_over = open_cohort(copy)
    expected = HeldRegion(laid_over, laid_over.region(region), SETTINGS).reference(SETTINGS).masks
    found = HeldRegion(written, written.region(region), SETTINGS).reference(SETTINGS).masks
    assert expected is not None
    assert found is not None
    one, other = (np.array([0, *m.labels.class_index])[m.labels.index] for m in (expected, found))
    np.testing.assert_array_equal(one, other)
    assert len(found.labels) == len(expected.labels)
    assert (found.ambiguous is None) == (expected.ambiguous is None)
    assert record(output)["counts"]["differing_px"] == 0
    rows = table(output)
    for row in rows[rows["id_after"] != ""].to_dict("records"):
        place = int(np.searchsorted(found.labels.ids, int(row["id_after"])))
        assert np.count_nonzero(found.labels.index == place + 1) == row["area_after_px"]
        assert found.labels.class_names_of_objects()[place] == row["class_after"]


def test_geojson_states_who_changed_an_object_and_when(nuclei_sample: Path, tmp_path: Path) -> None:
    review, output = tmp_path / "r.sqlite", tmp_path / "out"
    one_region(nuclei_sample, review)
    assert correct(nuclei_sample, review, output, "--to", "geojson") == 0
    (path,) = output.rglob("*.geojson")
    features = json.loads(path.read_text("utf-8"))["features"]
    notes = [each["properties"]["metadata"] for each in features]
    noted = [note["correction"] for note in notes if "correction" in note]
    rows = table(output)
    assert sorted(noted) == sorted(rows[rows["id_after"] != ""]["action"])
    assert {note["corrected_by"] for note in notes if "correction" in note} == {"Ann"}
    assert all(features[0]["properties"]["classification"]["name"] for each in features)


def test_each_row_links_to_its_object(nuclei_sample: Path, tmp_path: Path) -> None:
    region, team = one_region(nuclei_sample, tmp_path / "r.sqlite")
    assert correct(nuclei_sample, tmp_path / "r.sqlite", tmp_path / "out") == 0
    key = CohortKey.of(open_cohort(nuclei_sample))
    for row in table(tmp_path / "out").to_dict("records"):
        link = ObjectLink.parse(str(row["link"]))
        assert (link.cohort, link.region, link.team) == (key, region, team)
        assert link.objects == ((Side(row["side"]), int(row["id"])),)


def test_neither_cohort_nor_review_changes(nuclei_sample: Path, tmp_path: Path) -> None:
    shutil.copytree(nuclei_sample, tmp_path / "cohort")
    review = tmp_path / "cohort" / "panoptic-review.sqlite"
    one_region(nuclei_sample, review)
    before = contents(tmp_path / "cohort")
    assert correct(tmp_path / "cohort", review, tmp_path / "out") == 0
    assert contents(tmp_path / "cohort") == before


def test_an_output_with_other_files_is_refused(nuclei_sample: Path, tmp_path: Path) -> None:
    review, output = tmp_path / "r.sqlite", tmp_path / "out"
    one_region(nuclei_sample, review)
    assert correct(nuclei_sample, review, output) == 0
    # Its own files; and an option by its former name.
    assert correct(nuclei_sample, review, output, "--overlaps", "take") == 0
    assert record(output)["settings"]["overlaps"] == "take"
    before = contents(output)
    (output / "mine.txt").write_text("mine")
    assert correct(nuclei_sample, review, output) == 1
    (output / "mine.txt").unlink()
    assert contents(output) == before
    (path,) = output.rglob("*.xml")
    path.write_text("changed by hand")
    assert correct(nuclei_sample, review, output) == 1
    assert correct(nuclei_sample, review, nuclei_sample) == 1


def test_exit_status(
    nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    region, (team, other, *_) = cohort.regions[0].name, cohort.team_names
    assert correct(nuclei_sample, tmp_path / "none.sqlite", output) == 1
    with ReviewStore(review, reviewer="Ann"):
        pass
    assert correct(nuclei_sample, review, output) == 1
    targets = failures(evaluation_of(cohort, region, team), 1)
    give(review, cohort, region, team, dict.fromkeys(targets, Verdict.ANNOTATION_RIGHT))
    assert correct(nuclei_sample, review, output) == 1
    assert "nothing to correct" in capsys.readouterr().err
    assert not output.exists()
    give(review, cohort, region, other, failures(evaluation_of(cohort, region, other), 2))
    assert correct(nuclei_sample, review, output) == 2
    message = capsys.readouterr().err
    assert team in message
    assert other in message
    assert correct(nuclei_sample, review, output, "--team", "nobody") == 2
    assert correct(nuclei_sample, review, output, "--team", team) == 1
    assert correct(nuclei_sample, review, output, "--team", other) == 0
    assert record(output)["other_teams"] == [team]
    assert set(table(output)["team"]) == {other}


def test_reviewers_who_agree_differ_or_are_decided_between(
    nuclei_sample: Path, tmp_path: Path
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    region, team = cohort.regions[0].name, cohort.team_names[0]
    right, wrong = Verdict.PREDICTION_RIGHT, Verdict.ANNOTATION_RIGHT
    found = evaluation_of(cohort, region, team).outcomes.reference
    missed = found.ids[found.status == STATUS_CODE[Status.FN]][:4].tolist()
    agreed, conflict, decided, rejected = ((Side.REFERENCE, id_) for id_ in missed)
    ann = dict.fromkeys((agreed, conflict, decided, rejected), right)
    give(review, cohort, region, team, ann, reviewer="Ann")
    bob = {agreed: right, conflict: wrong, decided: wrong, rejected: wrong}
    give(review, cohort, region, team, bob, reviewer="Bob")
    chosen = {decided: right, rejected: wrong}
    both = ("Ann", "Bob")
    give(review, cohort, region, team, chosen, reviewer="Cleo", adjudicates=both)
    assert correct(nuclei_sample, review, output) == 0
    rows = table(output)
    assert dict(zip(rows["id"], rows["reviewer"], strict=True)) == {
        agreed[1]: "Ann | Bob",
        decided[1]: "Cleo",
    }
    (listed,) = record(output)["conflicts"]
    assert listed["id"] == conflict[1]
    assert listed["verdicts"] == {"Ann": "prediction-right", "Bob": "annotation-right"}


def test_verdicts_on_objects_that_changed_are_listed(nuclei_sample: Path, tmp_path: Path) -> None:
    folder, review, output = tmp_path / "cohort", tmp_path / "r.sqlite", tmp_path / "out"
    shutil.copytree(nuclei_sample, folder)
    cohort = open_cohort(folder)
    region, team = cohort.regions[0].name, cohort.team_names[0]
    found = evaluation_of(cohort, region, team).outcomes.reference
    missed = found.ids[found.status == STATUS_CODE[Status.FN]][:3].tolist()
    targets = [(Side.REFERENCE, id_) for id_ in missed]
    give(review, cohort, region, team, dict.fromkeys(targets, Verdict.PREDICTION_RIGHT))
    reference = cohort.regions[0].reference
    assert reference is not None
    (path,) = reference.object_paths
    tree = etree.parse(str(path))
    regions = tree.getroot().findall(".//Regions/Region")
    moved, gone = (regions[id_ - 1] for id_ in missed[:2])
    for vertex in moved.iter("Vertex"):
        vertex.set("X", str(float(vertex.get("X", "0")) + 1))
    for vertex in gone.iter("Vertex"):
        vertex.set("X", "0")
    tree.write(str(path))
    assert correct(folder, review, output) == 0
    assert table(output)["id"].tolist() == missed[2:]
    reasons = {item["id"]: item["why"] for item in record(output)["not_applied"]}
    assert "changed" in reasons[missed[0]]
    assert "not there" in reasons[missed[1]]


def test_a_verdict_on_an_unknown_region_is_listed(nuclei_sample: Path, tmp_path: Path) -> None:
    review, output = tmp_path / "r.sqlite", tmp_path / "out"
    _, team = one_region(nuclei_sample, review)
    with ReviewStore(review, reviewer="Ann") as store:
        store.give(subject(1, region="elsewhere", team=team), Verdict.BOTH_WRONG)
    assert correct(nuclei_sample, review, output) == 0
    assert any("no such region" in item["why"] for item in record(output)["not_applied"])


# --- own formats ------------------------------------------------------------------------------

SHAPE = (48, 64)
CLASSES = ("Epithelial", "Lymphocyte", "Neutrophil")


def drawn(boxes: list[tuple[int, int, int, int]]) -> Any:
    image = np.zeros(SHAPE, np.int32)
    for id_, (y, x, height, width) in enumerate(boxes, start=1):
        image[y : y + height, x : x + width] = id_
    return image


REFERENCE = drawn([(2, 2, 8, 8), (2, 20, 8, 8), (20, 2, 8, 8), (20, 20, 8, 8)])
PREDICTION = drawn([(2, 2, 8, 7), (2, 20, 8, 8), (30, 40, 8, 8), (6, 40, 6, 6)])
OF_REFERENCE = {1: "Epithelial", 2: "Lymphocyte", 3: "Epithelial", 4: "Lymphocyte"}
OF_PREDICTION = {1: "Epithelial", 2: "Neutrophil", 3: "Lymphocyte", 4: "Epithelial"}


def of_class(name: str) -> Any:
    return np.where(
        np.isin(REFERENCE, [k for k, c in OF_REFERENCE.items() if c == name]), REFERENCE, 0
    )


def write_table(path: Path, classes: dict[int, str]) -> None:
    if path.suffix == ".json":
        path.write_text(json.dumps(classes))
    else:
        path.write_text("id,class\n" + "".join(f"{k},{c}\n" for k, c in classes.items()))


def tiff_with_table(folder: Path) -> str:
    tifffile.imwrite(folder / "r.tif", REFERENCE.astype(np.uint16))
    tifffile.imwrite(folder / "r_ambiguous.tif", (REFERENCE == 4).astype(np.uint8))
    write_table(folder / "r.csv", OF_REFERENCE)
    return 'reference.labels = "annotation/{region}.tif"'


def npy_with_json(folder: Path) -> str:
    np.save(folder / "r.npy", REFERENCE)
    write_table(folder / "r.json", OF_REFERENCE)
    return 'reference.labels = "annotation/{region}.npy"'


def png_with_table_elsewhere(folder: Path) -> str:
    Image.fromarray(REFERENCE.astype(np.uint16)).save(folder / "r.png")
    write_table(folder / "classes_r.csv", OF_REFERENCE)
    return (
        'reference.labels = "annotation/{region}.png"\n'
        'reference.classes = "annotation/classes_{region}.csv"'
    )


def tiff_per_class(folder: Path) -> str:
    for name in ("Epithelial", "Lymphocyte"):  # no file yet for the third
        tifffile.imwrite(folder / f"r_{name}.tif", of_class(name).astype(np.uint16))
    return 'reference.labels = "annotation/{region}_{class}.tif"'


def ids_and_class_numbers(folder: Path) -> str:
    numbers = np.array([0, *(CLASSES.index(c) + 1 for c in OF_REFERENCE.values())])[REFERENCE]
    np.save(folder / "r.npy", np.stack([REFERENCE, numbers], axis=-1))
    return 'reference.labels = "annotation/{region}.npy"'


def channels(folder: Path) -> str:
    array = np.stack([*(of_class(name) for name in CLASSES), REFERENCE == 0])
    tifffile.imwrite(folder / "r.tif", array.astype(np.uint16), photometric="minisblack")
    return 'reference.labels = "annotation/{region}.tif"'


def geojson(folder: Path) -> str:
    labels = LabelImage.from_array(REFERENCE, OF_REFERENCE, CLASSES)
    scheme = ClassScheme(CLASSES, ((255, 0, 0), (0, 255, 0), (0, 0, 255)))
    objects = geo_objects(labels, side=Side.REFERENCE)
    write_geojson(folder / "r.geojson", objects, scheme=scheme)
    return 'reference.geojson = "annotation/{region}.geojson"'


@pytest.mark.parametrize(
    "write",
    [
        tiff_with_table,
        npy_with_json,
        png_with_table_elsewhere,
        tiff_per_class,
        ids_and_class_numbers,
        channels,
        geojson,
    ],
)
def test_own_formats(tmp_path: Path, write: Callable[[Path], str]) -> None:
    folder, review, output = tmp_path / "cohort", tmp_path / "r.sqlite", tmp_path / "out"
    for name in ("annotation", "T", "images"):
        (folder / name).mkdir(parents=True)
    Image.fromarray(np.zeros((*SHAPE, 3), np.uint8)).save(folder / "images" / "r.png")
    tifffile.imwrite(folder / "T" / "r.tif", PREDICTION.astype(np.uint16))
    write_table(folder / "T" / "r.csv", OF_PREDICTION)
    colours = "\n".join(f"{name} = [{k}, 0, 0]" for k, name in enumerate(CLASSES))
    (folder / "cohort.toml").write_text(
        f"[classes]\n{colours}\n[ambiguous]\nname = 'Ambiguous'\n[files]\n"
        f'image = "images/{{region}}.png"\n'
        f'predictions.labels = "{{team}}/{{region}}.tif"\n{write(folder / "annotation")}\n'
    )
    cohort = open_cohort(folder)
    now = evaluation_of(cohort, "r", "T")
    targets = {(Side.REFERENCE, 1), (Side.REFERENCE, 2), (Side.REFERENCE, 3)}
    verdicts = dict.fromkeys(
        [*sorted(targets), (Side.PREDICTION, 3), (Side.PREDICTION, 4)], Verdict.PREDICTION_RIGHT
    )
    verdicts[Side.REFERENCE, 4] = Verdict.ANNOTATION_RIGHT
    assert len(now.outcomes.reference) == 4
    give(review, cohort, "r", "T", verdicts)
    before = contents(folder)
    assert correct(folder, review, output) == 0
    assert contents(folder) == before
    assert record(output)["counts"]["differing_px"] == 0
    assert set(contents(output)) <= {*before, "corrections.csv", "corrections.json"} | {
        "annotation/r_Neutrophil.tif"
    }
    shutil.copytree(output, folder, dirs_exist_ok=True)
    after = evaluation_of(open_cohort(folder), "r", "T")
    assert_same_figures(after, in_the_window_before(before, tmp_path, verdicts))
    labels = after.pair.reference
    classes = labels.class_names_of_objects()
    at = {place: labels.index[place] - 1 for place in [(4, 4), (4, 24), (34, 44), (8, 42)]}
    assert [classes[row] for row in at.values()] == [OF_PREDICTION[k] for k in (1, 2, 3, 4)]
    assert labels.index[24, 4] == 0
    rows = table(output).set_index(["side", "id"])
    assert rows["id_after"]["prediction", 3] == str(labels.ids[at[34, 44]])


def in_the_window_before(
    before: dict[str, bytes], tmp_path: Path, verdicts: dict[tuple[Side, int], Verdict]
) -> Evaluation:
    folder = tmp_path / "before"
    for name, data in before.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return in_the_window(open_cohort(folder), "r", "T", verdicts, Claim.KEEP)


def test_a_format_that_cannot_be_written_needs_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, review = tmp_path / "cohort", tmp_path / "r.sqlite"
    for name in ("annotation", "T"):
        (folder / name).mkdir(parents=True)
    colours = np.array([(0, 0, 0), (255, 0, 0), (0, 255, 0)], np.uint8)
    numbers = np.where(REFERENCE > 0, (REFERENCE - 1) % 2 + 1, 0)
    tifffile.imwrite(folder / "annotation" / "r.tif", colours[numbers])
    tifffile.imwrite(folder / "T" / "r.tif", PREDICTION.astype(np.uint16))
    write_table(folder / "T" / "r.csv", dict.fromkeys(OF_PREDICTION, "A"))
    (folder / "cohort.toml").write_text(
        "[classes]\nA = [255, 0, 0]\nB = [0, 255, 0]\n[files]\n"
        'predictions.labels = "{team}/{region}.tif"\n'
        'reference.colour-coded = "annotation/{region}.tif"\n'
    )
    cohort = open_cohort(folder)
    give(review, cohort, "r", "T", {(Side.PREDICTION, 3): Verdict.PREDICTION_RIGHT})
    assert correct(folder, review, tmp_path / "out") == 2
    assert "give --to" in capsys.readouterr().err
    assert correct(folder, review, tmp_path / "out", "--to", "labels") == 0
    assert table(tmp_path / "out")["action"].tolist() == ["accept"]


# --- with a plan ------------------------------------------------------------------------------


def reviewed_plan(
    review: Path,
    cohort: Cohort,
    team: str,
    n_items: int | None = None,
    *,
    n_given: int | None = None,
    wrong: float = 0.15,
    reviewer: str = "Ann",
) -> Plan:
    """Save a plan of a team and random verdicts on its first items, as the window does.

    Without a number of items it has all objects, and no tile has a verdict.
    """
    units = population(cohort, Reading(teams=(team,))).units
    plan = draw(units, n_items or len(units), seed=1)
    tiles = plan.units.is_kind(ItemKind.BACKGROUND)
    verdicts = np.random.default_rng(5).choice(
        3, len(plan), p=[1 - wrong, 2 * wrong / 3, wrong / 3]
    )
    with ReviewStore(review, reviewer=reviewer) as store:
        store.plan.save(plan)
        for item in range(1, len(plan) + 1)[:n_given]:
            if tiles[item - 1] and n_items is not None:
                store.plan.answer(item, Verdict.ANNOTATION_RIGHT, count=1)
            elif not tiles[item - 1]:
                store.plan.answer(item, DECIDED[int(verdicts[item - 1])])
    return plan


def corrected_plan(
    cohort: Cohort, review: Path, output: Path
) -> tuple[Plan, dict[str, Any], dict[str, Any]]:
    """Correct the cohort by a plan; return the plan and the first two objects that change."""
    plan = reviewed_plan(review, cohort, cohort.team_names[0], 60)
    assert correct(cohort.root, review, output) == 0
    first, second, *_ = table(output).to_dict("records")
    return plan, first, second


def test_a_reviewed_plan_gives_corrections_and_no_estimates(
    nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    reviewed_plan(review, cohort, cohort.team_names[0])
    before = review.read_bytes()
    assert correct(nuclei_sample, review, output) == 0
    assert review.read_bytes() == before
    assert "estimate" not in capsys.readouterr().out
    assert set(record(output)["tables"]) == {"corrections.csv"}
    assert "after_mending" not in record(output)
    assert not (output / "estimates.csv").exists()
    assert {"accept", "delete", "replace", "reclassify", "draw"} <= set(table(output)["action"])
    assert correct(nuclei_sample, review, output) == 0  # its own files are replaced


def test_verdicts_on_a_plan_change_what_those_without_one_change(
    nuclei_sample: Path, tmp_path: Path
) -> None:
    cohort, review, other = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "o.sqlite"
    team = cohort.team_names[1]
    plan = reviewed_plan(review, cohort, team, 60)
    planned = read_review(review).plan
    assert planned is not None
    by_region: dict[str, dict[tuple[Side, int], Verdict]] = {}
    for given in object_verdicts(planned):
        of_region = by_region.setdefault(given.region, {})
        of_region[given.side, given.object_id] = given.verdict
    for region, verdicts in by_region.items():
        give(other, cohort, region, team, verdicts)
    for file, folder in ((review, "planned"), (other, "free")):
        assert correct(nuclei_sample, file, tmp_path / folder) == 0
    planned_rows, free = (table(tmp_path / name) for name in ("planned", "free"))
    pd.testing.assert_frame_equal(planned_rows.drop(columns="time"), free.drop(columns="time"))
    assert record(tmp_path / "planned")["counts"]["verdicts"] == np.count_nonzero(
        plan.units.id >= 0
    )


def test_a_plan_that_finds_no_error_corrects_nothing(
    nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    reviewed_plan(review, cohort, cohort.team_names[0], 60, wrong=0.0)
    assert correct(nuclei_sample, review, output) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert not output.exists()


def test_the_newest_verdict_of_a_reviewer_holds_and_reviewers_can_differ(
    nuclei_sample: Path, tmp_path: Path
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    plan, first, second = corrected_plan(cohort, review, output)
    for row, reviewer in ((first, "Ann"), (second, "Bob")):
        target = Side(row["side"]), int(row["id"])
        verdict = {target: Verdict.ANNOTATION_RIGHT}
        give(review, cohort, row["region"], cohort.team_names[0], verdict, reviewer=reviewer)
    before = len(table(output))
    assert correct(nuclei_sample, review, output) == 0
    assert len(table(output)) == before - 2
    (conflict,) = record(output)["conflicts"]
    assert (conflict["region"], conflict["id"]) == (second["region"], int(second["id"]))
    assert set(conflict["verdicts"]) == {"Ann", "Bob"}
    with ReviewStore(review, reviewer="Ann") as store:  # and again on the item
        keys = zip(plan.units.region, plan.units.id.tolist(), strict=True)
        item = 1 + list(keys).index((first["region"], int(first["id"])))
        store.plan.answer(item, Verdict.BOTH_WRONG)
    assert correct(nuclei_sample, review, output) == 0
    assert len(table(output)) == before - 1


def test_items_that_are_other_objects_now_are_listed(nuclei_sample: Path, tmp_path: Path) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    _, moved, gone = corrected_plan(cohort, review, output)
    with closing(sqlite3.connect(review)) as connection, connection:
        is_plan = "kind = 'plan-saved'"
        (text,) = connection.execute(f"SELECT value FROM changes WHERE {is_plan}").fetchone()  # noqa: S608
        plan = json.loads(text)
        units = plan["plan"]["units"]
        keys = list(zip(units["region"], units["side"], units["id"], strict=True))
        for row, dy, id_ in ((moved, 0.5, int(moved["id"])), (gone, 0, 99999)):
            side = [str(side) for side in SIDES].index(row["side"])
            item = keys.index((row["region"], side, int(row["id"])))
            units["y_px"][item] += dy
            units["id"][item] = id_
        connection.execute(f"UPDATE changes SET value = ? WHERE {is_plan}", (json.dumps(plan),))  # noqa: S608
    assert correct(nuclei_sample, review, output) == 0
    reasons = {item["id"]: item["why"] for item in record(output)["not_applied"]}
    assert "changed" in reasons[int(moved["id"])]
    assert "not there" in reasons[99999]


def test_a_plan_without_verdicts_leaves_the_other_verdicts(
    nuclei_sample: Path, tmp_path: Path
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    reviewed_plan(review, cohort, cohort.team_names[0], 60, n_given=0)
    assert correct(nuclei_sample, review, output) == 1
    one_region(nuclei_sample, review)
    assert correct(nuclei_sample, review, output) == 0
    assert len(table(output))
