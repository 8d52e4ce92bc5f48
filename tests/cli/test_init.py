"""``napari-panoptic init`` recognises folders, and says what it cannot find."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from scipy.io import savemat

from napari_panoptic.inspection.inspect import inspect_folder
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.report.nuclei.inspection_picture import PREDICTION_COLOUR, REFERENCE_COLOUR
from tests.support.commands import Run, exit_status
from tests.support.small_cohort import write_cohort


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.parent / "cache"))


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    Image.fromarray(pixels).save(path)


def labels(path: Path, table: str | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.zeros((20, 30), np.uint16)
    image[2:9, 3:12] = 1
    image[11:18, 15:28] = 2
    if path.suffix == ".npy":
        np.save(path, image)
    elif path.suffix == ".png":
        Image.fromarray(image).save(path)
    else:
        tifffile.imwrite(path, image)
    if table is not None:
        path.with_suffix(".csv").write_text(table)


def test_packed_geojson_is_recognised_and_compared(tmp_path: Path, run: Run) -> None:
    square = [[[2, 2], [12, 2], [12, 12], [2, 12], [2, 2]]]
    geometry = {"type": "Polygon", "coordinates": square}
    text = json.dumps([{"type": "Feature", "geometry": geometry}]).encode()
    for region in ("p1_a", "p2_a"):
        picture(tmp_path / "images" / f"{region}.png")
        for folder in ("annotation", "teams/one", "teams/two"):
            path = tmp_path / folder / f"{region}.geojson.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(text))
    assert run("init", tmp_path)[0] == 0
    cohort = open_cohort(tmp_path)
    assert [region.name for region in cohort.regions] == ["p1_a", "p2_a"]
    assert all(region.reference for region in cohort.regions)
    assert cohort.team_names == ("one", "two")
    own = ("annotation/p1_a.geojson.gz", "teams/one/p1_a.geojson.gz", "images/p1_a.png", "out")
    reference, prediction, image, output = (tmp_path / name for name in own)
    arguments = ("--reference", reference, "--prediction", prediction, "--image", image)
    code, out, _ = run("evaluate", *arguments, "-o", output)
    assert code == 0
    assert "1.0000" in out


def test_images_annotation_and_models_in_folders_of_their_own(tmp_path: Path, run: Run) -> None:
    for region in ("p1_a", "p1_b", "p2_a"):
        picture(tmp_path / "images" / f"{region}.png")
        labels(tmp_path / "ground_truth" / f"{region}.tif")
        labels(tmp_path / "stardist" / f"{region}.tif")
        labels(tmp_path / "cellpose" / f"{region}.tif")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "3 images: images/{region}.png" in out
    assert "3 regions, 2 patients, 2 teams" in out
    cohort = open_cohort(tmp_path)
    assert cohort.team_names == ("cellpose", "stardist")
    assert not cohort.findings
    assert all(region.image and region.reference for region in cohort.regions)
    assert run("evaluate", tmp_path, "-o", tmp_path.parent / "out")[0] == 0


def test_names_with_endings_of_their_own_and_one_model(tmp_path: Path, run: Run) -> None:
    for region in ("a", "b"):
        picture(tmp_path / "img" / f"{region}.jpg")
        labels(tmp_path / "gt" / f"{region}_gt.png")
        labels(tmp_path / "mymodel" / f"{region}_cp_masks.png")
    code, _, err = run("init", tmp_path)
    assert code == 0, err
    cohort = open_cohort(tmp_path)
    assert cohort.team_names == ("mymodel",)
    assert [region.name for region in cohort.regions] == ["a", "b"]
    assert len(cohort.predictions) == 2


@pytest.mark.parametrize(
    ("place", "pattern", "team"),
    [
        ("models/A/{0}.tif", "models/{team}/{region}.tif", "A"),
        ("Teams/A/masks/{0}.tif", "Teams/{team}/masks/{region}.tif", "A"),
        ("models/A/{0}/{0}.tif", "models/{team}/{patient}/{region}.tif", "A"),
        ("models/{0}/{0}.tif", "models/{patient}/{region}.tif", "predictions"),
        ("other/A/{0}.tif", "other/A/{region}.tif", "predictions"),
    ],
)
def test_the_name_of_a_single_team(
    place: str, pattern: str, team: str, tmp_path: Path, run: Run
) -> None:
    for region in ("p1", "p2"):
        labels(tmp_path / place.format(region))
        inner = f"{region}/{region}" if "{0}/" in place else region
        labels(tmp_path / "gt" / f"{inner}.tif")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert f"{pattern}, format labels" in out
    cohort = open_cohort(tmp_path)
    assert (cohort.team_names, len(cohort.predictions)) == ((team,), 2)


def test_patients_and_teams_in_nested_folders(tmp_path: Path, run: Run) -> None:
    for patient in ("p1", "p2"):
        for region in ("x", "y"):
            name = f"{patient}_{region}"
            picture(tmp_path / "images" / patient / f"{name}.png")
            labels(tmp_path / "annotations" / patient / f"{name}.tif", "id,class\n1,A\n2,B\n")
            for team in ("one", "two"):
                file = tmp_path / "teams" / team / patient / f"{name}.tif"
                labels(file, "id,class\n1,A\n2,A\n")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    cohort = open_cohort(tmp_path)
    assert cohort.patients == ("p1", "p2")
    assert cohort.team_names == ("one", "two")
    assert cohort.scheme.names == ("A", "B")
    assert len(cohort.predictions) == 8
    assert "of one and two" in out


def test_folders_of_sites_above_those_of_patients(tmp_path: Path, run: Run) -> None:
    for site, patient in (("a", "p1"), ("a", "p2"), ("b", "p3"), ("b", "p4")):
        place = f"{site}/{patient}/{patient}_r1"
        picture(tmp_path / "images" / f"{place}.png")
        labels(tmp_path / "annotations" / f"{place}.tif")
        for team in ("one", "two"):
            labels(tmp_path / team / f"{place}.tif")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "4 regions, 4 patients, 2 teams" in out
    cohort = open_cohort(tmp_path)
    assert cohort.patients == ("p1", "p2", "p3", "p4")
    assert not cohort.findings
    assert all(region.image and region.reference for region in cohort.regions)
    assert len(cohort.predictions) == 8


def test_a_pattern_that_loses_files_is_refused(tmp_path: Path, run: Run) -> None:
    for site in ("a", "b"):
        picture(tmp_path / "images" / site / "p1" / "r1.png")
        picture(tmp_path / "images" / site / "p2" / "r1.png")
    for place in ("gt", "model"):
        labels(tmp_path / place / "r1.tif")
    code, _, err = run("init", tmp_path)
    assert code == 1
    assert "takes for files of one region: images/a/p1/r1.png and images/b/p1/r1.png" in err
    assert not (tmp_path / "cohort.toml").exists()

    for run_ in ("r1", "r2"):
        for team in ("one", "two"):
            labels(tmp_path / "runs" / "teams" / team / run_ / "a.tif")
    labels(tmp_path / "runs" / "gt" / "a.tif")
    code, _, err = run("init", tmp_path / "runs")
    assert code == 1
    assert "'teams/{team}/{team}/{region}.tif' does not find" in err


@pytest.mark.parametrize("in_folders", [False, True])
def test_pictures_of_cellpose_are_no_images_and_no_teams(
    in_folders: bool, tmp_path: Path, run: Run
) -> None:
    """What ``cellpose --save_png --save_tif --save_flows --save_outlines --save_txt`` writes."""
    out_of = {name: name if in_folders else "" for name in ("flows", "outlines")}
    results = tmp_path / "cellpose"
    for region in ("a", "b"):
        picture(tmp_path / "images" / f"{region}.png")
        labels(tmp_path / "gt" / f"{region}.tif")
        labels(results / f"{region}_cp_masks.png")
        picture(results / f"{region}_cp_output.png")
        picture(results / out_of["outlines"] / f"{region}_outlines_cp_masks.png")
        for kind in ("flows", "dP"):
            file = results / out_of["flows"] / f"{region}_{kind}_cp_masks.tif"
            file.parent.mkdir(exist_ok=True)
            tifffile.imwrite(file, np.ones((20, 30, 3), np.uint16), photometric="rgb")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "8 pictures of results not used" in out
    cohort = open_cohort(tmp_path)
    assert cohort.team_names == ("cellpose",)
    assert [region.name for region in cohort.regions] == ["a", "b"]


def test_overlays_of_consep_are_no_images(tmp_path: Path, run: Run) -> None:
    image = np.zeros((20, 30), np.int32)
    image[2:9, 3:12] = 1
    content = {"inst_map": image, "type_map": (image > 0).astype(np.int32)}
    for part, names in (("Train", ("train_1", "train_2")), ("Test", ("test_1",))):
        for name in names:
            picture(tmp_path / part / "Images" / f"{name}.png")
            picture(tmp_path / part / "Overlay" / f"{name}.png")
            for folder in (tmp_path / part / "Labels", tmp_path / "hovernet" / "mat"):
                folder.mkdir(parents=True, exist_ok=True)
                savemat(folder / f"{name}.mat", content)
            picture(tmp_path / "hovernet" / "overlay" / f"{name}.png")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "3 images: */Images/{region}.png" in out
    assert "6 pictures of results not used" in out
    cohort = open_cohort(tmp_path)
    assert [region.name for region in cohort.regions] == ["test_1", "train_1", "train_2"]
    assert all(region.image and region.image.parent.name == "Images" for region in cohort.regions)
    assert len(cohort.predictions) == 3


def test_masks_of_nucls_in_colour_are_no_images(tmp_path: Path, run: Run) -> None:
    table = "group,type,coords_x,coords_y\n"
    table += 'tumor,polyline,"2,8,8,2","2,2,6,6"\nlymphocyte,polyline,"12,16,16","12,12,16"\n'
    for name in ("p1_a", "p2_a"):
        for folder in ("mask", "rgb", "visualization"):
            picture(tmp_path / folder / f"{name}.png")
        for folder in ("csv_annotation", "model"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.csv").write_text(table)
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "2 images: rgb/{region}.png" in out
    assert "format nucls" in out
    cohort = open_cohort(tmp_path)
    assert cohort.scheme.names == ("tumor", "lymphocyte")
    assert cohort.team_names == ("model",)


def test_overlays_beside_images_are_to_be_moved(tmp_path: Path, run: Run) -> None:
    for region in ("a", "b"):
        picture(tmp_path / "images" / f"{region}.png")
        picture(tmp_path / "images" / f"{region}_overlay.png")
        labels(tmp_path / "gt" / f"{region}.tif")
        labels(tmp_path / "model" / f"{region}.tif")
    code, _, err = run("init", tmp_path)
    assert code == 1
    assert "also finds: images/a_overlay.png and images/b_overlay.png. Put images" in err


def test_images_annotation_and_predictions_in_one_folder(tmp_path: Path, run: Run) -> None:
    for region in ("p1_a", "p2_a"):
        picture(tmp_path / "all" / f"{region}.jpg")
        labels(tmp_path / "all" / f"{region}_gt.png")
        labels(tmp_path / "all" / f"{region}_pred.png")
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "2 annotations: all/{region}_gt.png" in out
    cohort = open_cohort(tmp_path)
    assert [region.name for region in cohort.regions] == ["p1_a", "p2_a"]
    assert len(cohort.predictions) == 2
    assert not cohort.findings

    for region in ("a", "b"):  # what cellpose --save_png writes beside the images
        picture(tmp_path / "flat" / "images" / f"{region}.png")
        labels(tmp_path / "flat" / "images" / f"{region}_cp_masks.png")
        labels(tmp_path / "flat" / "gt" / f"{region}.png")
    code, _, err = run("init", tmp_path / "flat")
    assert code == 1
    assert "also finds: images/a_cp_masks.png and images/b_cp_masks.png. Put images" in err


@pytest.fixture(scope="module", params=["coco-panoptic", "coco-instances", "hovernet", "geojson"])
def converted(
    request: pytest.FixtureRequest, nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Convert the annotation and two teams of the sample to a format, beside its images."""
    folder = tmp_path_factory.mktemp("converted")
    (folder / "images").mkdir()
    for image in nuclei_sample.rglob("*.svs"):
        shutil.copy(image, folder / "images")
    convert = ("convert", nuclei_sample, "--to", request.param, "--output")
    assert exit_status(*convert, folder / "annotation") == 0
    for team in ("careful", "merger"):
        assert exit_status(*convert, folder / "models" / team, "--team", team) == 0
    return folder


@pytest.fixture(scope="module")
def objects_of_sample(nuclei_sample: Path) -> dict[str, int]:
    """Count the objects of each folder of the sample."""
    return {count.name: count.objects for count in inspect_folder(nuclei_sample).counts}


@pytest.mark.parametrize("teams", [("careful",), ("careful", "merger")])
def test_converted_files_are_recognised(
    converted: Path,
    teams: tuple[str, ...],
    objects_of_sample: dict[str, int],
    tmp_path: Path,
    run: Run,
) -> None:
    for folder in ("images", "annotation", *(f"models/{team}" for team in teams)):
        shutil.copytree(converted / folder, tmp_path / folder)
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "0 doubts" in out
    assert "not recognised" not in out
    counts = inspect_folder(tmp_path).counts
    assert {count.name for count in counts} == {"images", "annotation", *teams}
    assert all(count.objects == objects_of_sample[count.name] for count in counts)
    assert not any(count.missing or count.unused for count in counts)


def test_a_file_of_many_regions_for_each_team(tmp_path: Path, run: Run) -> None:
    names = ("p1_a", "p2_a")
    segment = {"image_id": 1, "category_id": 1, "segmentation": [[2, 2, 12, 2, 12, 12]]}
    table = {
        "images": [{"id": n, "file_name": f"{name}.png"} for n, name in enumerate(names, 1)],
        "annotations": [{"id": 1, **segment}],
        "categories": [{"id": 1, "name": "Lymphocyte"}],
    }
    for name in names:
        picture(tmp_path / "images" / f"{name}.png")
    for file in ("gt/all.json", "models/one.json", "models/two.json"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(table))
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "annotations: gt/all.json, format coco-instances" in out
    assert open_cohort(tmp_path).team_names == ("one", "two")

    (tmp_path / "cohort.toml").unlink()
    (tmp_path / "models" / "notes.json").write_text("[1]")
    code, _, err = run("init", tmp_path)
    assert code == 1
    assert "the pattern 'models/{team}.json' also finds: models/notes.json" in err


def test_a_folder_of_overlays_beside_one_team_is_no_team(tmp_path: Path, run: Run) -> None:
    for region in ("a", "flow_b"):  # a name, not a picture of flows
        picture(tmp_path / "images" / f"{region}.jpg")
        picture(tmp_path / "overlays" / f"{region}.png")
        labels(tmp_path / "gt" / f"{region}.png")
        labels(tmp_path / "model" / f"{region}.png")
    code, _, err = run("init", tmp_path)
    assert code == 0, err
    cohort = open_cohort(tmp_path)
    assert len(cohort.team_names) == 1
    assert len(cohort.predictions) == 2


def test_the_description_is_commented_and_not_written_twice(tmp_path: Path, run: Run) -> None:
    labels(tmp_path / "gt" / "a.tif")
    labels(tmp_path / "model" / "a.tif")
    assert run("init", tmp_path)[0] == 0
    text = (tmp_path / "cohort.toml").read_text(encoding="utf-8")
    assert text.startswith("#")
    code, out, _ = run("init", tmp_path)
    assert code == 0
    assert "already, which was not changed" in out
    assert (tmp_path / "cohort.toml").read_text(encoding="utf-8") == text


def test_what_cannot_be_found_is_said_and_nothing_written(tmp_path: Path, run: Run) -> None:
    for folder in ("one", "two"):
        labels(tmp_path / "unclear" / folder / "a.tif")
    code, out, err = run("init", tmp_path / "unclear")
    assert code == 1
    assert "not clear which files are the annotation" in err
    assert "--reference" in err
    code, _, err = run("init", tmp_path / "unclear", "--reference", "two")
    assert code == 0, err
    assert open_cohort(tmp_path / "unclear").team_names == ("one",)

    picture(tmp_path / "only" / "images" / "a.png")
    code, out, err = run("init", tmp_path / "only")
    assert code == 1
    assert "1 image" in out
    assert "no annotation and no prediction was found" in err
    assert not (tmp_path / "only" / "cohort.toml").exists()

    labels(tmp_path / "half" / "gt" / "a.tif")
    code, _, err = run("init", tmp_path / "half")
    assert code == 1
    assert "no predictions were found" in err


def test_a_known_layout_needs_no_description(tmp_path: Path, run: Run) -> None:
    cohort = write_cohort(tmp_path / "monusac")
    code, out, _ = run("init", cohort)
    assert code == 0
    assert "needs no cohort.toml" in out
    assert not (cohort / "cohort.toml").exists()


def test_a_folder_that_is_not_there(tmp_path: Path, run: Run) -> None:
    code, _, err = run("init", tmp_path / "absent")
    assert code == 1
    assert "absent" in err


def test_doubts_are_printed_and_written_on_request(tmp_path: Path, run: Run) -> None:
    folder, file = tmp_path / "cohort", tmp_path / "both.png"
    for region in ("p1_a", "p2_a"):
        picture(folder / "images" / f"{region}.png")
        labels(folder / "gt" / f"{region}.tif", "id,class\n1,Tumour\n2,Stroma\n")
        labels(folder / "model" / f"{region}.tif", "id,class\n1,tumor\n2,Stroma\n")
    description = "[classes]\nTumour = [1, 2, 3]\nStroma = [9, 9, 9]\n\n[files]\n"
    description += 'image = "images/{region}.png"\nreference.labels = "gt/{region}.tif"\n'
    description += 'predictions.labels = "{team}/{region}.tif"'
    (folder / "cohort.toml").write_text(description)
    code, out, err = run("init", folder, "--picture", file)
    assert code == 0, err
    assert "2 doubts:" in out
    assert """--fix 'class:tumor' writes aliases.tumor = "Tumour\"""" in out
    assert (folder / "cohort.toml").read_text() == description
    with Image.open(file) as drawn:
        colours = {colour for _, colour in drawn.getcolors(1 << 16)}
    assert {REFERENCE_COLOUR, PREDICTION_COLOUR} <= colours
    code, _, err = run("init", folder, "--fix", "mpp")
    assert code == 2
    assert "mpp=0.25" in err
    code, out, err = run("init", folder, "--fix", "class:tumor", "--fix", "mpp=0.25")
    assert code == 0, err
    assert "0 doubts" in out
    assert "cohort.toml.bak" in out
    assert (folder / "cohort.toml.bak").read_text() == description
    cohort = open_cohort(folder)
    assert cohort.scheme.aliases == {"tumor": "Tumour"}
    assert {region.mpp for region in cohort.regions} == {0.25}


def test_a_class_of_one_team_only_is_a_doubt(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "cohort"
    for region in ("p1_a", "p2_a"):
        picture(folder / "images" / f"{region}.png")
        for side, names in {
            "gt": ("Tumour", "Neutrophil"),
            "one": ("Tumour", "PMN"),
            "two": ("Tumour", "Mitosis"),
            "three": ("Tumour", "Mitosis"),
        }.items():
            table = "id,class\n" + "".join(f"{n},{name}\n" for n, name in enumerate(names, 1))
            labels(folder / side / f"{region}.tif", table)
    code, out, err = run("init", folder)
    assert code == 0, err
    assert open_cohort(folder).scheme.names == ("Tumour", "Neutrophil", "Mitosis")
    assert "--fix 'class:PMN' writes aliases.PMN = \"\"" in out
    (folder / "cohort.toml").unlink()
    code, out, err = run("init", folder, "--fix", "class:PMN=Neutrophil")
    assert code == 0, err
    assert open_cohort(folder).scheme.aliases == {"PMN": "Neutrophil"}


def test_numbers_in_results_are_categories_of_the_annotation(tmp_path: Path, run: Run) -> None:
    categories = [{"id": 4, "name": "Long"}, {"id": 2, "name": "Round"}]
    for region in ("p1_a", "p2_a"):
        picture(tmp_path / "images" / f"{region}.png")
        objects = [
            {"category_id": number, "image_id": 1, "segmentation": [[x, 2, x + 6, 2, x + 6, 9]]}
            for number, x in ((2, 2), (4, 15))
        ]
        image = {"id": 1, "file_name": f"{region}.png", "height": 20, "width": 30}
        described = {"images": [image], "categories": categories, "annotations": objects}
        results = [{**entry, "score": 0.5} for entry in objects]
        for folder, content in (("gt", described), ("models/one", results)):
            path = tmp_path / folder / f"{region}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    scheme = open_cohort(tmp_path).scheme
    assert scheme.aliases == {"4": "Long", "2": "Round"}
    assert "one: 4 (" in out
    assert "numbers:" not in out


def test_unreadable_files_come_first_and_classes_from_the_annotation(
    tmp_path: Path, run: Run
) -> None:
    picture(tmp_path / "images" / "p1_a.png")
    labels(tmp_path / "annotation" / "p1_a.tif", "id,class\n1,Round\n2,Long\n")
    team = tmp_path / "models" / "one" / "p1_a.tif"
    labels(team, "label,cell_type\n1,Round\n2,Long\n")
    inspection = inspect_folder(tmp_path)
    assert inspection.cohort.scheme.names == ("Round", "Long")
    assert [doubt.name for doubt in inspection.doubts] == ["unreadable:one", "mpp"]
    assert "no column id and class" in inspection.doubts[0].message
    # Where the annotation's own tables cannot be read, no list of classes is right.
    labels(tmp_path / "annotation" / "p1_a.tif", "label,cell_type\n1,Round\n2,Long\n")
    code, _, err = run("init", tmp_path)
    assert code == 1
    assert "the classes cannot be read from the annotation" in err
    assert not (tmp_path / "cohort.toml").exists()


def test_a_terminal_is_asked_and_a_script_is_not(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture(tmp_path / "images" / "a.png")
    for folder in ("gt", "model"):
        labels(tmp_path / folder / "a.tif")
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or "2")
    assert run("init", tmp_path)[0] == 0
    assert not asked
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert len(asked) == 1
    assert "2  0.5 µm per px (20x): files.mpp = 0.5" in out
    assert open_cohort(tmp_path).regions[0].mpp == 0.5


def test_files_of_operating_systems_are_passed_over(tmp_path: Path, run: Run) -> None:
    write_folders(tmp_path)
    for folder in ("images", "annotation", "models/unet"):
        for name in ("Thumbs.db", "desktop.ini", "._p1_a.png", ".DS_Store"):
            (tmp_path / folder / name).write_bytes(b"\xd0\xcf\x11\xe0")
        (tmp_path / folder / "__MACOSX").mkdir()
        (tmp_path / folder / "__MACOSX" / "p1_a.tif").write_bytes(b"\0\5\x16\7")
    code, out, err = run("init", tmp_path)
    assert (code, "not recognised" in out) == (0, False), err
    cohort = open_cohort(tmp_path)
    assert cohort.team_names == ("unet",)
    assert cohort.findings == ()


def test_a_database_is_recognised_by_its_content(tmp_path: Path, run: Run) -> None:
    write_folders(tmp_path)
    (tmp_path / "annotation" / "p1_a.db").write_bytes(b"\xd0\xcf\x11\xe0" * 100)
    code, out, err = run("init", tmp_path)
    assert code == 0, err
    assert "1 file not recognised: annotation/p1_a.db" in out


def test_packed_json_is_recognised_by_its_content(tmp_path: Path, run: Run) -> None:
    write_folders(tmp_path)
    square = [[[2, 2], [12, 2], [12, 12], [2, 12], [2, 2]]]
    features = [{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": square}}]
    for name in ("p1_a", "p2_a"):
        path = tmp_path / "models" / "hoverfast" / "json" / f"{name}.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(features).encode()))
    other = tmp_path / "other" / "p1_a.json.gz"
    other.parent.mkdir()
    for content in (b'{"wsi_metadata": {}}', None):
        packed = gzip.compress(content) if content else b"\x1f\x8b damaged"
        other.write_bytes(packed)
        code, out, err = run("init", tmp_path)
        assert code == 0, err
        assert "models/{team}/json/{region}.json.gz, format geojson" in out
        assert "1 file not recognised: other/p1_a.json.gz" in out
        assert open_cohort(tmp_path).team_names == ("hoverfast", "unet")
        (tmp_path / "cohort.toml").unlink()


def test_folders_of_a_side_and_a_patient(tmp_path: Path, run: Run) -> None:
    for number in ("01", "02", "03"):
        picture(tmp_path / f"Slide_{number}" / f"{number}_1.png")
        labels(tmp_path / f"GT_{number}" / f"{number}_1.png")
        labels(tmp_path / "predictions" / "unet" / f"{number}_1.tif")
    for more in ((), ("--reference", "GT_01")):
        code, _, err = run("init", tmp_path, *more)
        assert code == 0, err
        cohort = open_cohort(tmp_path)
        assert [region.patient for region in cohort.regions] == ["01", "02", "03"]
        assert all(region.reference and region.image for region in cohort.regions)
        assert cohort.team_names == ("unet",)
        (tmp_path / "cohort.toml").unlink()


@pytest.mark.parametrize("given", ["whole", "relative", "name", "below"])
def test_the_annotation_can_be_named_by_any_path(
    given: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folders(tmp_path / "cohort", annotation="a")
    monkeypatch.chdir(tmp_path)
    path = {
        "whole": tmp_path / "cohort" / "a",
        "relative": "cohort/a/",
        "name": "a",
        "below": "./a",
    }[given]
    assert run("init", "cohort", "--reference", path)[0] == 0
    cohort = open_cohort(tmp_path / "cohort")
    assert all(region.reference for region in cohort.regions)
    assert cohort.team_names == ("unet",)


def test_the_annotation_can_be_a_file(tmp_path: Path, run: Run) -> None:
    write_folders(tmp_path)
    shutil.rmtree(tmp_path / "annotation")
    images = [{"id": n, "file_name": f"p{n}_a.png", "width": 30, "height": 20} for n in (1, 2)]
    outline = [[2, 2, 12, 2, 12, 12, 2, 12]]
    nuclei = [{"image_id": n, "id": n, "category_id": 1, "segmentation": outline} for n in (1, 2)]
    content = {"images": images, "annotations": nuclei, "categories": [{"id": 1, "name": "A"}]}
    (tmp_path / "nuclei.json").write_text(json.dumps(content))
    assert run("init", tmp_path)[0] == 1
    code, out, err = run("init", tmp_path, "--reference", "nuclei.json")
    assert code == 0, err
    assert "2 annotations: nuclei.json" in out


def test_a_path_that_is_no_annotation_is_named(tmp_path: Path, run: Run) -> None:
    write_folders(tmp_path)
    for path, message in (
        ("annotatoin", "which is not there. Check how it is spelt"),
        (tmp_path.parent, "which is not there. Check how it is spelt"),
        ("images", "no annotation was found in 'images'"),
    ):
        code, _, err = run("init", tmp_path, "--reference", path)
        assert code == 1
        assert message in err
        assert not (tmp_path / "cohort.toml").exists()


def write_folders(folder: Path, *, annotation: str = "annotation") -> None:
    """Write images, an annotation and the predictions of one model, of two patients."""
    for name in ("p1_a", "p2_a"):
        picture(folder / "images" / f"{name}.png")
        labels(folder / annotation / f"{name}.tif")
        labels(folder / "models" / "unet" / f"{name}.tif")


def test_a_cache_that_cannot_be_written_costs_only_the_picture(
    nuclei_sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """The command ended before its doubts."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(
        "napari_panoptic.cli.init.user_cache_path", lambda _name: tmp_path / "file" / "cache"
    )
    ran = run("init", nuclei_sample)
    assert ran.code == 0
    assert "no picture, since the cache cannot be written" in ran.err
    assert "look at it with" in ran.out
