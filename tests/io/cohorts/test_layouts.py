"""``cohort.toml``, and the page that documents it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.layouts import MONUSAC_LAYOUT
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.values.cohort import Cohort, Source
from tests.support.builders import two_objects, write_svs, write_tiff
from tests.support.paths import REPOSITORY
from tests.support.zarr_stores import write_zarr

PAGE = REPOSITORY / "docs" / "reference" / "cohorts.md"
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
SHAPE = (12, 16)

MINIMAL = """
[classes]
A = [255, 0, 0]
B = [0, 255, 0]
[files]
image = "{region}.png"
"""


def describe(root: Path, text: str) -> Path:
    (root / "cohort.toml").write_text(text, encoding="utf-8")
    return root


def save(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".png":
        Image.fromarray(array).save(path)
    else:
        write_tiff(path, array)


def check(cohort: Cohort, *, team: str, region: str, classes: list[str]) -> None:
    """Load both sides of a region, each with two objects."""
    assert cohort.findings == ()
    place = cohort.region(region)
    assert place.reference is not None
    shape = reference_shape(place.image, [])
    assert shape == SHAPE
    (prediction,) = cohort.predictions[team, region].values()
    for files in (place.reference, prediction):
        loaded = load_masks(files, cohort.scheme, shape=shape)
        # Nothing names the numbers of classes in arrays of ids and classes.
        has_numbers = place.name.startswith("consep") and len(files.all_paths) == 1
        kinds = [FindingKind.CLASS_ORDER] * has_numbers
        assert [finding.kind for finding in loaded.findings] == kinds
        assert loaded.labels.class_names_of_objects().tolist() == classes


def test_the_page_has_four_examples() -> None:
    names = [tomllib.loads(text)["name"] for text in EXAMPLES]
    assert names == ["My model", "PanNuke, fold 3", "CoNIC", "Slides"]


def test_the_example_of_own_label_images_of_the_page(tmp_path: Path) -> None:
    root = describe(tmp_path, EXAMPLES[0])
    for region in ("p1_a", "p1_b"):
        save(root / f"images/{region}.png", np.zeros((*SHAPE, 3), np.uint8))
        save(root / f"annotation/{region}.tif", two_objects())
        save(root / f"model/{region}.tif", two_objects())
    cohort = open_cohort(root)
    assert cohort.patients == ("p1",)
    check(cohort, team="predictions", region="p1_b", classes=["Nucleus", "Nucleus"])


def test_the_pannuke_example_of_the_page(tmp_path: Path) -> None:
    root = describe(tmp_path, EXAMPLES[1])
    channels = np.zeros((*SHAPE, 6))
    channels[..., 1] = np.where(two_objects() == 1, 5, 0)
    channels[..., 4] = np.where(two_objects() == 2, 6, 0)
    channels[..., 5] = two_objects() == 0
    for region in ("breast_0001", "colon_0002"):
        save(root / f"images/{region}.png", np.zeros((*SHAPE, 3), np.uint8))
        save(root / f"masks/{region}.npy", channels)
        save(root / f"teams/hover/{region}.npy", channels)
    cohort = open_cohort(root)
    assert cohort.name == "PanNuke, fold 3"
    assert cohort.scheme.names == ("Neoplastic", "Inflammatory", "Connective", "Dead", "Epithelial")
    assert cohort.scheme.ambiguous is None
    assert cohort.patients == ("breast", "colon")
    check(cohort, team="hover", region="colon_0002", classes=["Inflammatory", "Epithelial"])


def test_the_conic_example_of_the_page(tmp_path: Path) -> None:
    root = describe(tmp_path, EXAMPLES[2])
    ids = two_objects()
    array = np.stack([ids, np.where(ids == 1, 4, 0) + np.where(ids == 2, 6, 0)], axis=-1)
    for region in ("consep_1-0003", "consep_1-0012"):
        save(root / f"images/{region}.tif", np.zeros((*SHAPE, 3), np.uint8))
        save(root / f"labels/{region}.npy", array)
        save(root / f"teams/one/{region}.npy", array)
        save(root / f"teams/two/labels/{region}.tif", ids)
        table = root / f"teams/two/classes/{region}.csv"
        table.parent.mkdir(exist_ok=True)
        table.write_text("id,class\n1,plasma CELL\n2,Connective\n")
    cohort = open_cohort(root)
    assert len(cohort.scheme.names) == 6
    assert cohort.patients == ("consep_1",)
    assert [team.name for team in cohort.teams] == ["one", "two"]
    for team in ("one", "two"):
        check(cohort, team=team, region="consep_1-0012", classes=["Plasma", "Connective"])


def test_the_example_of_whole_slides_of_the_page(tmp_path: Path) -> None:
    root = describe(tmp_path, EXAMPLES[3])
    ids = two_objects()
    for region in ("p_1", "p_2"):
        write_svs(root / f"slides/{region}.svs", np.zeros((*SHAPE, 3), np.uint8))
        write_zarr(root / f"annotation/{region}.ome.zarr", ids)
        table = root / f"annotation/classes/{region}.csv"
        table.parent.mkdir(exist_ok=True)
        table.write_text("id,class\n1,Lymphocyte\n2,Epithelial\n")
        for number, name in enumerate(("Lymphocyte", "Epithelial"), start=1):
            write_zarr(root / f"teams/one/{name}/{region}.zarr", np.where(ids == number, ids, 0))
    cohort = open_cohort(root)
    assert cohort.findings == ()
    assert cohort.patients == ("p",)
    check(cohort, team="one", region="p_2", classes=["Lymphocyte", "Epithelial"])


def test_the_page_shows_the_folders_that_are_known() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = re.search(r"^```\n(MoNuSAC.*?)^```$", page, re.M | re.S)
    assert shown is not None
    written = set(re.findall(r"^\S.*?/\S*(?= |$)", shown[1], re.M))
    known = {
        re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), pattern.text)
        for pattern in MONUSAC_LAYOUT.all_patterns
    }
    assert len(written) == 5
    assert written <= known


def test_the_smallest_description(tmp_path: Path) -> None:
    root = describe(tmp_path, MINIMAL)
    save(root / "x_1.png", np.zeros((*SHAPE, 3), np.uint8))
    cohort = open_cohort(root / "cohort.toml")
    assert (cohort.name, cohort.root, cohort.teams) == (tmp_path.name, root, ())
    assert [(r.patient, r.name, r.reference) for r in cohort.regions] == [("x", "x_1", None)]
    assert cohort.findings == ()


def test_everything_that_can_be_described(tmp_path: Path) -> None:
    text = """
        name = "Ours"
        [classes]
        A = [1, 2, 3]
        B = [4, 5, 6]
        [ambiguous]
        name = "Void"
        [masks]
        border = [[7, 8, 9]]
        background = [[255, 255, 255], [0, 0, 0]]
        [aliases]
        alpha = "A"
        [files]
        image = ["images/{region}.tif", "images/{region}.png"]
        patient = "{patient}-*"
        reference.imagescope = "xml/{region}.xml"
        reference.labels = "masks/{region}/{class}.png"
        predictions.colour-coded = "pred/{region}.png"
        annotation.colour-coded = "copy/{region}.png"
    """
    root = describe(tmp_path, text)
    for name in (
        *("images/12-a.tif", "images/12-a.png", "images/3-b.png", "xml/3-b.xml", "xml/12-a.xml"),
        *("masks/12-a/alpha.png", "masks/12-a/VOID.png", "masks/4-c/B.png", "masks/4-c/else.png"),
        *("pred/12-a.png", "copy/12-a.png", "pred/notes.txt"),
    ):
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_bytes(b"x")
    cohort = open_cohort(root)
    assert cohort.name == "Ours"
    assert cohort.scheme.border == ((7, 8, 9),)
    assert cohort.scheme.background == ((255, 255, 255), (0, 0, 0))
    assert [(r.patient, r.name) for r in cohort.regions] == [
        ("3", "3-b"),
        ("4", "4-c"),
        ("12", "12-a"),
    ]
    b, c, a = cohort.regions
    assert a.image == root / "images/12-a.tif"
    # Of several forms of an annotation the first one that is described is taken.
    assert a.reference is not None
    assert a.reference.source == Source.IMAGESCOPE
    assert c.reference is not None
    assert {name: [p.name for p in paths] for name, paths in c.reference.paths.items()} == {
        "B": ["B.png"]
    }
    assert [team.name for team in cohort.teams] == ["predictions", "colour-coded GT"]
    assert list(cohort.predictions) == [("predictions", "12-a"), ("colour-coded GT", "12-a")]
    assert sorted(f.kind.value for f in cohort.findings) == ["extra", "extra", "missing", "missing"]
    assert b.reference is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[classes]", "[clases]", "unknown key 'clases' at the top; did you mean classes"),
        ("image =", "imag =", r"unknown key 'imag' in \[files\]; did you mean image"),
        ("image =", "zzz =", r"unknown key 'zzz' in \[files\]; known are image"),
        ("image =", "reference.color-coded =", "did you mean colour-coded"),
        ("[files]", "[masks]\nborders = []\n[files]", "did you mean border"),
        ("[files]", "[ambiguous]\nnames = 'a'\n[files]", "did you mean name"),
        ("[files]", "[ambiguous]\nname = 3\n[files]", "ambiguous.name must be text"),
        ("[files]", "[masks]\nborder = 1\n[files]", "masks.border must be a list"),
        ("[files]", "[masks]\nborder = [1]\n[files]", "masks.border must be a colour"),
        ("[files]", "[aliases]\nC = 'D'\n[files]", r"classes that do not exist: \['D'\]"),
        ("[255, 0, 0]", "[256, 0, 0]", "classes.A must be a colour"),
        ("[255, 0, 0]", "'red'", "classes.A must be a colour"),
        ("A = [255, 0, 0]", "b = [255, 0, 0]", "all different"),
        ("{region}.png", "{regoin}.png", "placeholders are .*found '{regoin}.png'"),
        ("{region}.png", "one.png", "files.image needs the placeholder {region}"),
        ("{region}.png", "{region}/{team}.png", "cannot have the placeholder {team}"),
        ('"{region}.png"', "7", "must be a path pattern"),
        ('image = "{region}.png"', "image = []", "image or reference"),
        ("image =", "patient = '('\nimage =", r"write a pattern such as \{patient\}_\*"),
        ("image =", "patient = '{patient}/*'\nimage =", r"the placeholder \{patient\} alone"),
        ("image =", "reference = 1\nimage =", "files.reference must be a table"),
        (
            "image =",
            'reference = "{region}.tif"\nimage =',
            r"must name the format of the files, such as files.reference.labels.*'{region}.tif'",
        ),
        (
            "image =",
            'predictions.submission = "{team}/{region}.mat"\nimage =',
            "files.predictions.submission needs the placeholder {class}",
        ),
        ("A = [", "A = = [", r"no valid TOML: .*line 3"),
        ("[classes]\nA = [255, 0, 0]\nB = [0, 255, 0]\n", "", r"\[classes\] is missing"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in MINIMAL
    root = describe(tmp_path, MINIMAL.replace(old, new, 1))
    with pytest.raises(CohortError, match=words) as caught:
        open_cohort(root)
    assert caught.value.path == root / "cohort.toml"


def test_a_description_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "cohort.toml").write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(CohortError, match="UTF-8"):
        open_cohort(tmp_path)


def test_nothing_fits_the_description(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"looked for '{region}\.png'"):
        open_cohort(describe(tmp_path, MINIMAL))


def test_a_folder_without_files_is_an_empty_prediction_here_too(tmp_path: Path) -> None:
    text = MINIMAL + 'predictions.labels = "teams/{team}/{region}/{class}.png"\n'
    root = describe(tmp_path, text)
    save(root / "x_1.png", np.zeros((*SHAPE, 3), np.uint8))
    save(root / "x_2.png", np.zeros((*SHAPE, 3), np.uint8))
    save(root / "teams/t/x_1/A.png", np.zeros(SHAPE, np.uint8))
    (root / "teams/t/x_2").mkdir()
    cohort = open_cohort(root)
    assert cohort.predictions["t", "x_2"][Source.LABELS].paths == {}
    assert FindingKind.MISSING not in {finding.kind for finding in cohort.findings}
