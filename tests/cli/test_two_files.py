"""An annotation and predictions of one image are compared as files, without a cohort folder."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic import evaluate_pair
from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.regions.conversion import Conversion, convert, form_to_write
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.commands import Run
from tests.support.paths import SHARED_CASES, needs_shared_cases
from tests.support.small_cohort import ANNOTATIONS, REGIONS, mask_path

SHAPE = (40, 60)
EMPTY = {"cause": "", "partner_class": ""}
NUMBERED = ("--classes", "Epithelial,Lymphocyte,Neutrophil,Macrophage")
"""HoVer-Net's classes are numbers: only the user can tell which is which."""


@pytest.fixture
def truth() -> NDArray[np.uint16]:
    labels = np.zeros(SHAPE, np.uint16)
    labels[2:12, 2:12] = 1
    labels[2:12, 20:30] = 2
    labels[20:35, 5:25] = 7
    return labels


@pytest.fixture
def guess(truth: NDArray[np.uint16]) -> NDArray[np.uint16]:
    labels = np.roll(np.where(truth == 7, 0, truth).astype(np.uint16), 1, axis=1)
    labels[20:35, 40:50] = 9
    return labels


def objects(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "objects.csv", keep_default_na=False, na_values=[""])


def write(path: Path, labels: NDArray[np.uint16], form: str) -> Path:
    path = path.with_name(path.name + form)
    if form == ".npy":
        np.save(path, labels)
    else:
        tifffile.imwrite(path, labels)
    return path


@pytest.mark.parametrize("in_windows", [False, True])
def test_an_inverted_mask_is_named(tmp_path: Path, run: Run, in_windows: bool) -> None:
    objects_ = np.zeros((120, 120), np.uint8)
    objects_[20:60, 30:60] = objects_[70:100, 20:110] = 255
    reference = write(tmp_path / "truth", objects_, ".tif")
    prediction = write(tmp_path / "net", 255 - objects_, ".tif")
    arguments = ("--reference", reference, "--prediction", prediction, "-o", tmp_path / "out")
    code, *_ = run("evaluate", *arguments, *(("--held-up-to", "1") if in_windows else ()))
    record = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    (found,) = record["warnings"]["convention"]
    assert (code, found["team"], found["object_ids"]) == (0, "net", [255])
    assert "covers more than 50% of the region" in found["message"]
    assert "inverted" in found["message"]


def test_settings_of_a_cohort_need_a_folder(tmp_path: Path, run: Run) -> None:
    objects_ = np.zeros((120, 120), np.uint8)
    objects_[2:9, 2:9] = objects_[100:110, 100:110] = 1  # far apart
    objects_[20:29, 20:29] = 2
    for folder in ("annotation", "models/net"):
        (tmp_path / folder).mkdir(parents=True)
    reference = write(tmp_path / "annotation" / "a", objects_, ".tif")
    prediction = write(tmp_path / "models" / "net" / "a", objects_, ".tif")
    output = ("-o", tmp_path / "out")
    code, _, error = run("evaluate", "--reference", reference, "--prediction", prediction, *output)
    assert code == 0
    assert "single files have no cohort.toml" in error
    assert "napari-panoptic init FOLDER" in error
    shutil.rmtree(tmp_path / "out")

    assert run("init", tmp_path, "--fix", "all", "--picture", tmp_path / "a.png")[0] == 0
    code, _, error = run("evaluate", tmp_path, *output)
    assert code == 0
    assert "single files" not in error


@pytest.mark.parametrize("form", [".tif", ".npy"])
def test_two_label_images_give_the_figures_of_evaluate_pair(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16], guess: NDArray[np.uint16], form: str
) -> None:
    reference, prediction = (
        write(tmp_path / "truth", truth, form),
        write(tmp_path / "stardist", guess, form),
    )
    output = tmp_path / "out"
    code, *_ = run("evaluate", "--reference", reference, "--prediction", prediction, "-o", output)
    assert code == 0
    found = objects(output)
    assert set(found["team"]) == {"stardist"}
    assert set(found["region"]) == set(found["patient"]) == {"pair"}
    expected = evaluate_pair(
        truth,
        guess,
        reference_classes=dict.fromkeys((1, 2, 7), "Nucleus"),
        prediction_classes=dict.fromkeys((1, 2, 9), "Nucleus"),
    )
    columns = list(expected.objects.columns)
    pd.testing.assert_frame_equal(
        found[columns].fillna(EMPTY).reset_index(drop=True),
        expected.objects.fillna(EMPTY).reset_index(drop=True),
        check_dtype=False,
        check_exact=True,
    )
    assert found.loc[found["status"] == "FN", "id"].tolist() == [7]
    assert found.loc[found["status"] == "FP", "id"].tolist() == [9]


def test_several_predictions_are_teams_named_after_their_files(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16], guess: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "mask", guess, ".tif")
    one, other = tmp_path / "a" / "mask.tif", tmp_path / "b" / "mask.tif"
    arguments = ("--reference", reference, "--prediction", one, "--prediction", other)
    code, *_ = run("evaluate", *arguments, "-o", tmp_path / "out")
    assert code == 0
    # The files have one name: their folders tell them apart.
    assert set(objects(tmp_path / "out")["team"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("form", "ending"),
    [
        ("labels", ".tif"),
        ("geojson", ".geojson"),
        ("hovernet", ".hovernet.json"),
        ("annotation-store", ".db"),
        ("imagej-roi", ".roi.zip"),
        ("ome-zarr", ".ome.zarr"),
    ],
)
def test_every_written_format_can_be_the_prediction(
    tmp_path: Path, run: Run, small_folder: Path, form: str, ending: str
) -> None:
    """Outlines and label images are recognised; objects are those of the cohort's own run."""
    opened = open_cohort(small_folder)
    region = opened.regions[0]
    work = Conversion(opened, "alpha", form_to_write(form), EvaluationSettings(), None, False)
    convert(work, tmp_path / "converted")
    prediction = next((tmp_path / "converted").rglob(f"{region.name}{ending}"))
    folder = small_folder / ANNOTATIONS / region.patient
    code, _, error = run(
        *("evaluate", "--reference", folder / f"{region.name}.xml", "--prediction", prediction),
        *("--image", folder / f"{region.name}.svs", "-o", tmp_path / "out"),
        *(NUMBERED if form == "hovernet" else ()),
    )
    assert code == 0, error
    assert (
        main(["evaluate", str(small_folder), "--teams", "alpha", "-o", str(tmp_path / "whole")])
        == 0
    )
    whole = objects(tmp_path / "whole").query(f"region == '{region.name}'")
    found = objects(tmp_path / "out")
    same = ["side", "class", "status", "cause", "iou", "area_px"]
    order = ["side", "area_px", "centroid_y_px", "centroid_x_px"]
    pd.testing.assert_frame_equal(
        found.sort_values(order)[same].reset_index(drop=True),
        whole.sort_values(order)[same].reset_index(drop=True),
        check_exact=True,
    )


def test_a_colour_coded_mask_is_recognised_by_its_colours(
    tmp_path: Path, run: Run, small_folder: Path
) -> None:
    region = open_cohort(small_folder).regions[0]
    folder = small_folder / ANNOTATIONS / region.patient
    code, _, error = run(
        *("evaluate", "--reference", folder / f"{region.name}.xml"),
        *("--prediction", mask_path(small_folder, "alpha", REGIONS[0])),
        *("-o", tmp_path / "out"),
    )
    assert code == 0, error
    assert "Epithelial" in set(objects(tmp_path / "out")["class"])


def test_tables_of_classes_beside_both_images_are_used(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16], guess: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    prediction = write(tmp_path / "guess", guess, ".tif")
    reference.with_suffix(".csv").write_text("id,class\n1,Tumour\n2,Stroma\n7,Tumour\n")
    prediction.with_suffix(".json").write_text(json.dumps({"1": "Tumour", "2": "Tumour", "9": "X"}))
    arguments = ("evaluate", "--reference", reference, "--prediction", prediction)
    assert run(*arguments, "-o", tmp_path / "out")[0] == 0
    found = objects(tmp_path / "out").set_index(["side", "id"])
    assert found.loc[("reference", 1), "status"] == "TP"
    assert found.loc[("reference", 2), "status"] == "misclassified"
    assert found.loc[("prediction", 9), "class"] == "X"


def test_classes_of_one_file_alone_are_reported_and_not_used(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16], guess: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    prediction = write(tmp_path / "guess", guess, ".tif")
    reference.with_suffix(".csv").write_text("id,class\n1,Tumour\n2,Stroma\n7,Tumour\n")
    arguments = ("evaluate", "--reference", reference, "--prediction", prediction)
    code, _, error = run(*arguments, "-o", tmp_path / "out")
    assert code == 0
    assert "Tumour and Stroma" in error
    assert set(objects(tmp_path / "out")["class"]) == {"Nucleus"}


def test_a_table_given_on_the_command_line_serves_both_images(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16], guess: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    prediction = write(tmp_path / "guess", guess, ".tif")
    table = tmp_path / "classes.csv"
    table.write_text("id,class\n1,A\n2,B\n7,A\n9,B\n")
    arguments = ("evaluate", "--reference", reference, "--prediction", prediction)
    assert run(*arguments, "--classes", table, "-o", tmp_path / "out")[0] == 0
    assert set(objects(tmp_path / "out")["class"]) == {"A", "B"}


@pytest.mark.parametrize("order", [("Epithelial", "Lymphocyte"), ("Lymphocyte", "Epithelial")])
def test_classes_are_taken_as_written(
    order: tuple[str, str], tmp_path: Path, run: Run, truth: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    prediction = write(tmp_path / "guess", truth, ".tif")
    reference.with_suffix(".csv").write_text("id,class\n1,Lymphocyte\n2,Epithelial\n7,Lymphocyte\n")
    prediction.with_suffix(".csv").write_text("id,class\n1,1\n2,2\n7,1\n")
    sides = ("--reference", reference, "--prediction", prediction)
    out = tmp_path / "out"
    code, _, error = run("evaluate", *sides, "--classes", ",".join(order), "-o", out)
    assert code == 0
    assert f"1 = {order[0]} and 2 = {order[1]}" in error
    rows = objects(out)
    predicted = rows[rows["side"] == "prediction"]
    assert predicted["class"].tolist() == [order[0], order[1], order[0]]
    assert (rows["status"] == "TP").all() == (order[0] == "Lymphocyte")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give a COHORT, or --reference FILE and --prediction FILE"),
        (("--reference", "a.tif"), "--prediction FILE is missing"),
        (("--prediction", "a.tif"), "--reference FILE is missing"),
        (("folder", "--reference", "a.tif"), "not both"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "report", "view"])
def test_half_a_pair_is_refused(
    run: Run, tmp_path: Path, command: str, arguments: tuple[str, ...], says: str
) -> None:
    output = () if command == "view" else ("-o", tmp_path / "out.html")
    code, _, error = run(command, *arguments, *output)
    assert code == 2
    assert says in error


def test_files_that_cannot_be_compared_are_named(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    photo = tmp_path / "photo.tif"
    tifffile.imwrite(
        photo,
        np.random.default_rng(0).integers(0, 255, (*SHAPE, 3), np.uint8),
        photometric="rgb",
    )
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    for prediction, says in (
        (tmp_path / "absent.tif", "there is no such file"),
        (photo, "found an RGB picture"),
        (text, "found a file with the ending '.txt'"),
        (reference, None),
    ):
        code, _, error = run(
            *("evaluate", "--reference", reference, "--prediction", prediction),
            *("-o", tmp_path / "out"),
        )
        if says is None:
            assert code == 0
        else:
            assert code == 1
            assert says in error
            assert str(prediction) in error


def test_outlines_alone_ask_for_the_image(tmp_path: Path, run: Run, small_folder: Path) -> None:
    region = open_cohort(small_folder).regions[0]
    annotation = small_folder / ANNOTATIONS / region.patient / f"{region.name}.xml"
    copy = tmp_path / "copy.xml"
    copy.write_bytes(annotation.read_bytes())
    code, _, error = run(
        "evaluate", "--reference", annotation, "--prediction", copy, "-o", tmp_path / "out"
    )
    assert code == 1
    assert "--image" in error


@pytest.mark.long
def test_a_report_of_two_files(
    tmp_path: Path, run: Run, truth: NDArray[np.uint16], guess: NDArray[np.uint16]
) -> None:
    reference = write(tmp_path / "truth", truth, ".tif")
    prediction = write(tmp_path / "guess", guess, ".tif")
    report = tmp_path / "report.html"
    code, _, error = run(
        "report", "--reference", reference, "--prediction", prediction, "-o", report
    )
    assert code == 0, error
    assert "guess" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("is_results", [False, True])
def test_a_coco_file_of_many_images_is_read_for_the_image_that_is_given(
    tmp_path: Path, run: Run, is_results: bool
) -> None:
    def entry(id_: int, image: int, left: int) -> dict[str, object]:
        outline = [[left, 2, left + 9, 2, left + 9, 12, left, 12]]
        return {"id": id_, "image_id": image, "category_id": 1, "segmentation": outline}

    images = [{"id": 4, "file_name": "a_1.png"}, {"id": 9, "file_name": "sub/a_2.png"}]
    objects_ = [entry(1, 4, 30), entry(2, 9, 5), entry(3, 9, 20)]
    table = {
        "images": images,
        "annotations": objects_,
        "categories": [{"id": 1, "name": "Nucleus"}],
    }
    reference, prediction = tmp_path / "truth.json", tmp_path / "net.json"
    reference.write_text(json.dumps(table))
    prediction.write_text(json.dumps(objects_ if is_results else table))
    Image.fromarray(np.zeros((*SHAPE, 3), np.uint8)).save(tmp_path / "a_2.png")
    arguments = ("evaluate", "--reference", reference, "--prediction", prediction)
    code, _, error = run(*arguments, "--image", tmp_path / "a_2.png", "-o", tmp_path / "out")
    assert code == 0, error
    assert len(objects(tmp_path / "out")) == 4
    assert set(objects(tmp_path / "out")["status"]) == {"TP"}
    code, _, error = run(*arguments, "-o", tmp_path / "out")
    assert code == 1
    assert "of which one is called like the file that --image names; found 2 images" in error


@needs_shared_cases
@pytest.mark.parametrize(
    ("name", "pq", "word"),
    [
        ("imagescope_ruler.xml", 1, "1 ruler of ImageScope"),
        ("imagescope_ellipses.xml", 0.88, ""),  # of the rectangles around them
        ("qupath_parent.geojson", 1, "1 annotation with a class around detections"),
        ("pred.geojson.gz", 1, ""),
        ("hovernet_nan.json", 1, "1 object whose score is not a finite number"),
    ],
)
def test_files_that_users_of_other_programs_reported(
    tmp_path: Path, run: Run, name: str, pq: float, word: str
) -> None:
    wild = SHARED_CASES / "wild"
    code, _, error = run(
        *("evaluate", "--reference", wild / "truth.tif", "--prediction", wild / name),
        *("-o", tmp_path),
    )
    assert code == 0, error
    (found,) = pd.read_csv(tmp_path / "patients.csv")["pq"]
    assert found == pytest.approx(pq, abs=0.01)
    assert word in (tmp_path / "evaluation.json").read_text()


def test_nuclei_in_the_outline_of_an_area_are_named(tmp_path: Path, run: Run) -> None:
    def outline(x: int, size: int) -> dict[str, object]:
        ring = [[x, x], [x + size, x], [x + size, x + size], [x, x + size], [x, x]]
        geometry = {"type": "Polygon", "coordinates": [ring]}
        return {"type": "Feature", "geometry": geometry, "properties": {}}

    labels = np.zeros((60, 60), np.uint16)
    labels[10:20, 10:20] = 1
    tifffile.imwrite(tmp_path / "truth.tif", labels)
    content = {"type": "FeatureCollection", "features": [outline(10, 9), outline(5, 50)]}
    (tmp_path / "p.geojson").write_text(json.dumps(content))
    given = ("--reference", tmp_path / "truth.tif", "--prediction", tmp_path / "p.geojson")
    ran = run("evaluate", *given, "-o", tmp_path / "out", "--no-distances")
    assert "contained in a later object of the class, such as an outline of an area" in ran.err


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((49, 20, 30), bool), r"shape \(49, 20, 30\)"),
        (np.dstack([np.eye(20, dtype=np.uint8), np.full((20, 20), 255)]), "grey with alpha"),
    ],
)
def test_arrays_that_are_no_label_image_are_named(
    tmp_path: Path, run: Run, array: np.ndarray, said: str
) -> None:
    tifffile.imwrite(
        tmp_path / "truth.tif",
        np.eye(
            *array.shape[-2:] if array.ndim == 3 and array.shape[2] != 2 else (20, 20),
            dtype=np.uint16,
        ),
    )
    np.save(tmp_path / "p.npy", array)
    given = ("--reference", tmp_path / "truth.tif", "--prediction", tmp_path / "p.npy")
    ran = run("evaluate", *given, "-o", tmp_path / "out", "--no-distances")
    assert ran.code == 1
    assert re.search(said, ran.err)
