from __future__ import annotations

import json
import os
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.patterns import Listing, Pattern, natural_key
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, Cohort, Source
from tests.support.builders import two_objects, write_tiff

DATA = "MoNuSAC Testing Data and Annotations"
COPIES = "MoNuSAC_Testing_Color_Coded_Masks"


def touch(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return root


def monusac(root: Path) -> Path:
    """Lay out two patients with three regions and two teams."""
    for region in ("P_A_1", "P_A_2", "P_B_10"):
        patient = region.rpartition("_")[0]
        touch(
            root,
            f"{DATA}/{patient}/{region}.svs",
            f"{DATA}/{patient}/{region}.xml",
            f"Teams/alpha/{patient}/{region}_mask.png.tif",
            f"Submissions/alpha/{patient}/{region}/Epithelial/1.mat",
            f"Submissions/beta/{patient}/{region}/Neutrophil/3.mat",
            f"{COPIES}/{patient}/{region}_RGB_mask.tif.tif",
        )
    return root


def kinds(cohort: Cohort) -> list[FindingKind]:
    return [finding.kind for finding in cohort.findings]


def only(cohort: Cohort, kind: FindingKind) -> Finding:
    (finding,) = [finding for finding in cohort.findings if finding.kind is kind]
    return finding


def test_the_monusac_folders(tmp_path: Path) -> None:
    root = monusac(tmp_path / "cohort é")
    cohort = open_cohort(root)
    assert (cohort.name, cohort.root, cohort.scheme) == ("cohort é", root, MONUSAC_CLASSES)
    assert [r.name for r in cohort.regions] == ["P_A_1", "P_A_2", "P_B_10"]
    assert cohort.patients == ("P_A", "P_B")
    assert [(t.name, t.is_annotation) for t in cohort.teams] == [
        ("alpha", False),
        ("beta", False),
        ("colour-coded GT", True),
    ]
    region = cohort.regions[0]
    assert region.image == root / DATA / "P_A" / "P_A_1.svs"
    assert region.reference is not None
    assert region.reference.source == Source.IMAGESCOPE
    assert region.reference.all_paths == (root / DATA / "P_A" / "P_A_1.xml",)
    assert set(cohort.predictions["alpha", "P_A_1"]) == {Source.COLOUR_CODED, Source.SUBMISSION}
    beta = cohort.predictions["beta", "P_B_10"]
    assert list(beta) == [Source.SUBMISSION]
    assert list(beta[Source.SUBMISSION].paths) == ["Neutrophil"]
    copy = cohort.predictions["colour-coded GT", "P_A_2"][Source.COLOUR_CODED]
    assert copy.all_paths == (root / COPIES / "P_A" / "P_A_2_RGB_mask.tif.tif",)
    assert cohort.findings == ()


def test_geojson_beside_other_forms_and_instead_of_them(tmp_path: Path) -> None:
    root = monusac(tmp_path)
    (root / DATA / "P_B" / "P_B_10.xml").unlink()
    for region in ("P_A_1", "P_B_10"):
        patient = region.rpartition("_")[0]
        touch(root, f"{DATA}/{patient}/{region}.geojson")
        touch(root, f"Teams/gamma/{patient}/{region}.geojson")
    cohort = open_cohort(root)
    sources = [r.reference.source for r in cohort.regions if r.reference]
    assert sources == [Source.IMAGESCOPE, Source.IMAGESCOPE, Source.GEOJSON]
    assert list(cohort.predictions["gamma", "P_A_1"]) == [Source.GEOJSON]
    assert not [f for f in cohort.findings if f.kind is FindingKind.EXTRA]


@pytest.mark.parametrize("absent", ["Teams", "Submissions", COPIES])
def test_only_the_annotations_must_be_there(tmp_path: Path, absent: str) -> None:
    root = monusac(tmp_path)
    (root / absent).rename(tmp_path.parent / f"{tmp_path.name} {absent}")
    cohort = open_cohort(root)
    assert len(cohort.regions) == 3
    assert cohort.findings == ()
    assert ("colour-coded GT" in [t.name for t in cohort.teams]) is (absent != COPIES)


def test_case_and_image_endings_do_not_matter(tmp_path: Path) -> None:
    root = touch(
        tmp_path,
        f"{DATA.upper()}/P/P_1.SVS",
        f"{DATA.upper()}/P/P_1.tif",
        f"{DATA.upper()}/P/P_1.XML",
        f"{DATA.upper()}/P/P_2.jpeg",
        f"{DATA.upper()}/P/P_2.xml",
        "teams/T/p/p_1_MASK.png.TIF",
        "SUBMISSIONS/t/P/P_1/epithelial/a.MAT",
    )
    cohort = open_cohort(root)
    assert [r.image and r.image.name for r in cohort.regions] == ["P_1.SVS", "P_2.jpeg"]
    assert len(cohort.teams) == 1
    assert list(cohort.predictions) == [(cohort.teams[0].name, "P_1")]
    assert len(cohort.predictions[cohort.teams[0].name, "P_1"]) == 2


def test_without_patient_folders_the_name_tells_the_patient(tmp_path: Path) -> None:
    root = touch(
        tmp_path,
        f"{DATA}/P_A_10.svs",
        f"{DATA}/P_A_2.svs",
        f"{DATA}/P_A_2.xml",
        f"{DATA}/P_A_10.xml",
        f"{DATA}/single.xml",
        f"{DATA}/single.svs",
        "Teams/T/P_A_2_mask.tif",
        "Teams/T/P_A_10_mask.tif",
        "Teams/T/single_mask.tif",
        "Submissions/T/P_A_2/Epithelial/a.mat",
        "Submissions/T/P_A_10/Epithelial/a.mat",
        "Submissions/T/single/Epithelial/a.mat",
    )
    cohort = open_cohort(root)
    assert [(r.patient, r.name) for r in cohort.regions] == [
        ("P_A", "P_A_2"),
        ("P_A", "P_A_10"),
        ("single", "single"),
    ]
    assert all(len(forms) == 2 for forms in cohort.predictions.values())
    assert cohort.findings == ()


def test_the_same_region_name_in_two_patients(tmp_path: Path) -> None:
    root = touch(
        tmp_path,
        *(f"{DATA}/{p}/01.{ending}" for p in ("A", "B") for ending in ("svs", "xml")),
        *(f"Teams/T/{p}/01_mask.png" for p in ("A", "B")),
    )
    cohort = open_cohort(root)
    assert [(r.patient, r.name) for r in cohort.regions] == [("A", "A_01"), ("B", "B_01")]
    for region in cohort.regions:
        (files,) = cohort.predictions["T", region.name].values()
        assert files.all_paths == (root / f"Teams/T/{region.patient}/01_mask.png",)
    assert cohort.findings == ()


def test_a_region_folder_without_files_is_an_empty_prediction(tmp_path: Path) -> None:
    root = monusac(tmp_path)
    for region in ("P_A_1", "P_B_10"):
        folder = root / "Submissions/beta" / region.rpartition("_")[0] / region
        (folder / "Neutrophil/3.mat").unlink()
        if region == "P_B_10":
            (folder / "Neutrophil").rmdir()
    cohort = open_cohort(root)
    for region in ("P_A_1", "P_B_10"):
        assert cohort.predictions["beta", region][Source.SUBMISSION].paths == {}
    assert cohort.findings == ()


def test_missing_predictions_are_one_finding_per_team_and_form(tmp_path: Path) -> None:
    root = monusac(tmp_path)
    for region in ("P_A_1", "P_A_2"):
        (root / f"Teams/alpha/P_A/{region}_mask.png.tif").unlink()
    folder = root / "Submissions/beta/P_B/P_B_10"
    folder.rename(tmp_path.parent / f"{tmp_path.name} gone")
    cohort = open_cohort(root)
    assert ("beta", "P_B_10") not in cohort.predictions
    assert list(cohort.predictions["alpha", "P_A_1"]) == [Source.SUBMISSION]
    alpha, beta = cohort.findings
    assert (alpha.kind, alpha.team, alpha.count, alpha.region) == ("missing", "alpha", 2, None)
    assert "P_A_1 and P_A_2" in alpha.message
    assert (beta.kind, beta.team, beta.count, beta.region) == ("missing", "beta", 1, "P_B_10")


def test_images_without_annotation_and_annotations_without_image(tmp_path: Path) -> None:
    root = touch(
        tmp_path, f"{DATA}/P/P_1.svs", f"{DATA}/P/P_2.xml", f"{DATA}/P/P_3.svs", f"{DATA}/P/P_3.xml"
    )
    cohort = open_cohort(root)
    bare, blind, _ = cohort.regions
    assert bare.reference is None
    assert blind.image is None
    assert [(f.kind, f.region) for f in cohort.findings] == [
        (FindingKind.MISSING, "P_2"),
        (FindingKind.MISSING, "P_1"),
    ]
    assert "shown, but not evaluated" in cohort.findings[1].message


def test_what_belongs_nowhere_is_reported_and_left(tmp_path: Path) -> None:
    root = touch(
        monusac(tmp_path),
        "Submissions/alpha/P_A/P_A_1/Tumour/1.mat",
        "Submissions/alpha/P_A/P_A_2/Tumour/1.mat",
        "Teams/alpha/P_Z/P_Z_1_mask.png.tif",
        f"{DATA}/P_A/notes.txt",
        "Teams/alpha/.DS_Store",
        "Teams/alpha/P_A/._P_A_1_mask.png.tif",
        "readme.txt",
    )
    (root / "Teams" / "gamma" / "P_A").mkdir(parents=True)
    cohort = open_cohort(root)
    assert [t.name for t in cohort.competing_teams] == ["alpha", "beta"]
    found = {(f.kind.value, f.team, f.class_name, f.region, f.count) for f in cohort.findings}
    assert found == {
        ("extra", "alpha", "Tumour", None, 2),
        ("extra", "alpha", None, "P_Z_1", 1),
        ("missing", "gamma", None, None, 1),
        ("extra", None, None, None, 1),
    }
    assert any("P_A/notes.txt" in f.message for f in cohort.findings)


def test_several_files_of_a_class_are_all_kept_in_order(tmp_path: Path) -> None:
    root = touch(
        monusac(tmp_path), *(f"Submissions/beta/P_A/P_A_1/Neutrophil/{n}.mat" for n in (10, 2))
    )
    files = open_cohort(root).predictions["beta", "P_A_1"][Source.SUBMISSION]
    assert [path.name for path in files.paths["Neutrophil"]] == ["2.mat", "3.mat", "10.mat"]


def test_files_of_a_submission_come_in_class_order(tmp_path: Path) -> None:
    root = touch(
        tmp_path,
        f"{DATA}/P/P_1.svs",
        *(f"Submissions/T/P/P_1/{name}/a.mat" for name in ("Ambiguous", *MONUSAC_CLASSES.names)),
    )
    files = open_cohort(root).predictions["T", "P_1"][Source.SUBMISSION]
    assert list(files.paths) == [*MONUSAC_CLASSES.names, "Ambiguous"]


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match="no such folder"):
        open_cohort(tmp_path / "nowhere")


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    touch(tmp_path, "a.svs")
    with pytest.raises(CohortError, match="open the folder that holds the whole cohort"):
        open_cohort(tmp_path / "a.svs")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"empty; expected .*PATIENT/REGION\.svs.*cohort\.toml"):
        open_cohort(tmp_path)


def test_a_folder_that_is_no_cohort(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"no cohort; expected .*cohort\.toml"):
        open_cohort(touch(tmp_path, "holiday/beach.jpg"))


@pytest.mark.parametrize("name", [DATA, "Teams"])
def test_one_folder_too_deep(tmp_path: Path, name: str) -> None:
    with pytest.raises(CohortError, match="open the folder above"):
        open_cohort(monusac(tmp_path) / name)


def test_one_folder_too_high(tmp_path: Path) -> None:
    monusac(tmp_path / "inner")
    with pytest.raises(CohortError, match="did you mean the folder 'inner'"):
        open_cohort(tmp_path)


def test_a_layout_without_a_single_region(tmp_path: Path) -> None:
    (tmp_path / DATA).mkdir()
    with pytest.raises(CohortError, match="no image and no annotation was found"):
        open_cohort(tmp_path)


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Forbid to list some folders, also for those whom no permission stops."""
    folders: set[Path] = set()
    real = os.scandir

    def scandir(folder: Any) -> Any:
        if Path(folder) in folders:
            raise PermissionError(13, "Permission denied", str(folder))
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    return folders


def test_a_folder_without_permission(tmp_path: Path, forbidden: set[Path]) -> None:
    forbidden.add(tmp_path)
    with pytest.raises(CohortError, match="permission to read this folder") as caught:
        open_cohort(tmp_path)
    assert caught.value.path == tmp_path


def test_an_inner_folder_without_permission(tmp_path: Path, forbidden: set[Path]) -> None:
    root = monusac(tmp_path)
    forbidden.add(root / "Teams" / "alpha")
    cohort = open_cohort(root)
    assert list(cohort.predictions["alpha", "P_A_1"]) == [Source.SUBMISSION]
    finding = only(cohort, FindingKind.UNREADABLE)
    assert finding.path == root / "Teams" / "alpha"
    forbidden.add(root / DATA)
    with pytest.raises(CohortError, match=r"Annotations' cannot be read"):
        open_cohort(root)


def test_natural_order() -> None:
    names = ["r_10", "R_9", "r_2", "r_002b", "10", "9", "a"]
    assert sorted(names, key=natural_key) == ["9", "10", "a", "r_2", "r_002b", "R_9", "r_10"]


def test_numbers_of_thousands_of_digits_have_an_order() -> None:
    """Python refuses to convert them."""
    names = ["r" + "9" * 5000, "r" + "1" * 5001, "r9", "r" + "0" * 5000 + "1"]
    assert sorted(names, key=natural_key) == [names[3], names[2], names[0], names[1]]


def test_patterns_bind_the_same_text_everywhere(tmp_path: Path) -> None:
    root = touch(tmp_path, "a/a_1.x", "a/b_1.x", "b/b_2.x", "b/deep/b_3.x", "a+/a+_[9].x")
    found = list(Pattern("{patient}/{patient}_{region}.x").files(Listing(root)))
    assert [match.fields for match in found] == [
        {"patient": "a", "region": "1"},
        {"patient": "a+", "region": "[9]"},
        {"patient": "b", "region": "2"},
    ]
    assert [m.path.name for m in Pattern("*/b_*.x").files(Listing(root))] == ["b_1.x", "b_2.x"]
    assert [m.fields["region"] for m in Pattern("{region}/{region}_1.x").files(Listing(root))] == [
        "a"
    ]


@pytest.mark.parametrize(
    "text", ["", "/a", "../a", "a/../b", "**/a", "{colour}", "{region", "C:/a"]
)
def test_patterns_that_cannot_be(text: str) -> None:
    with pytest.raises(CohortError, match="found '"):
        Pattern(text)


def test_names_that_leave_no_room_for_those_of_other_files(tmp_path: Path) -> None:
    region = "a" * (255 - len(".tif"))
    (tmp_path / "cohort.toml").write_text(
        '[classes]\nEpithelial = [255, 0, 0]\n[files]\nreference.labels = "{region}.tif"\n'
        'predictions.labels = "{team}/{region}.tif"\n'
    )
    (tmp_path / "alpha").mkdir()
    for folder in (tmp_path, tmp_path / "alpha"):
        write_tiff(folder / f"{region}.tif", two_objects())
    cohort = open_cohort(tmp_path)
    assert [own.name for own in cohort.regions] == [region]
    assert cohort.regions[0].reference is not None
    loaded = load_masks(cohort.regions[0].reference, cohort.scheme, shape=None)
    assert loaded.labels.ids.tolist() == [1, 2]
    assert loaded.ambiguous is None


SIMPLE = """
[classes]
Zelle = [255, 0, 0]

[files]
image = "Präparate/{region}.png"
reference.labels = "Präparate/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
predictions.objects = { "München" = "pieces" }
"""


def test_names_are_compared_as_people_read_them(tmp_path: Path) -> None:
    """Files come from macOS, which writes letters with accents as two characters."""
    two = partial(unicodedata.normalize, "NFD")
    (tmp_path / "cohort.toml").write_text(SIMPLE, encoding="utf-8")
    folder = two("Präparate")
    names = (
        f"{folder}/Señal_1.png",
        two(f"{folder}/Señal_1.tif"),
        two("teams/München/Señal_1.tif"),
    )
    cohort = open_cohort(touch(tmp_path, *names))
    assert kinds(cohort) == []
    assert [region.name for region in cohort.regions] == ["Señal_1"]
    region = cohort.region(two("Señal_1"))
    assert region.image is not None
    assert region.reference is not None
    assert cohort.checked_team(two("München")) == "München"
    assert ("München", "Señal_1") in cohort.predictions


def test_teams_that_differ_in_case_only_are_named(tmp_path: Path) -> None:
    (tmp_path / "cohort.toml").write_text(SIMPLE.replace("predictions.objects", "# "))
    cohort = open_cohort(
        touch(tmp_path, "Präparate/a_1.tif", "teams/UNet/a_1.tif", "teams/unet/a_1.tif")
    )
    assert len(cohort.teams) == 1
    messages = [f.message for f in cohort.findings if f.kind is FindingKind.EXTRA]
    assert any(
        "UNet" in message and "unet" in message and "differ in case only" in message
        for message in messages
    )


@pytest.mark.parametrize("name", ["P_1.xml", "P_1.hovernet.json", "P_1.db", "P_1.roi.zip"])
def test_built_in_formats_are_found_among_the_folders_of_monusac(tmp_path: Path, name: str) -> None:
    annotations = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    team = tmp_path / "Teams" / "someone" / "P"
    for folder in (annotations, team):
        folder.mkdir(parents=True)
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(annotations / "P_1.png")
    (team / name).write_bytes(b"x")
    cohort = open_cohort(tmp_path)
    (files,) = cohort.predictions["someone", "P_1"].values()
    assert files.all_paths == (team / name,)


def test_results_by_image_id_belong_to_the_images_of_the_annotation(tmp_path: Path) -> None:
    outline = [[2, 2, 12, 2, 12, 12, 2, 12]]
    images = {7: "p1_a", 1: "p2_a"}
    nuclei = [{"image_id": i, "category_id": 1, "segmentation": outline} for i in images]
    content: dict[str, Any] = {
        "images": [
            {"id": i, "file_name": f"{name}.png", "height": 20, "width": 20}
            for i, name in images.items()
        ],
        "annotations": [{**nucleus, "id": nucleus["image_id"]} for nucleus in nuclei],
        "categories": [{"id": 1, "name": "Nucleus"}],
    }
    (tmp_path / "models").mkdir()
    (tmp_path / "annotation.json").write_text(json.dumps(content))
    (tmp_path / "models" / "one.json").write_text(json.dumps(nuclei))
    (tmp_path / "cohort.toml").write_text(
        '[classes]\nNucleus = [255, 0, 0]\n[files]\nreference.coco-instances = "*.json"\n'
        'predictions.coco-instances = "models/{team}.json"\n'
    )
    cohort = open_cohort(tmp_path)
    assert cohort.findings == ()
    found = {region: files for (_, region), files in cohort.predictions.items()}
    items = {name: files[Source.COCO_INSTANCES].item for name, files in found.items()}
    assert items == {"p1_a": "7", "p2_a": "1"}
    # With the same id in two files, nothing says which image is meant.
    content["images"] = [
        {**image, "file_name": f"{image['id']}_b.png"} for image in content["images"]
    ]
    (tmp_path / "more.json").write_text(json.dumps(content))
    cohort = open_cohort(tmp_path)
    assert cohort.predictions == {}
    assert FindingKind.EXTRA in {finding.kind for finding in cohort.findings}
