"""Formats that packages bring: the page that tells how, and what is broken."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats import registry as forms
from napari_panoptic.io.formats.format import Format, LoadedMasks
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from tests.support.builders import noise, two_objects, write_svs, write_tiff
from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
TABLE = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8").split("\n## ")[0]
PAGE = (DOCS / "tasks" / "add-a-format.md").read_text(encoding="utf-8")
MODULE, OUTLINES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
(PROJECT,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)
SHAPE = (12, 16)
IN_WINDOWS_AND_BACK = """
from napari_panoptic.io.pixels.label_windows import TiledPixels

def read_tiled(path, item, classes):
    found = read(path, item, classes)
    window = lambda box: found.numbers[box[0] : box[2], box[1] : box[3]]
    return Numbered(TiledPixels(path, found.numbers.shape, 0, window), found.entries)

def write(path, objects):
    named = zip(objects.labels.ids, objects.labels.class_names_of_objects())
    header = "\\n".join(f"{id_} {name}" for id_, name in named)
    np.savetxt(path, objects.labels.id_image(), "%d", header=header)
    return (path,)

"""
"""What a mask format of a page needs to be read in windows, and to be written."""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install distributions, each of one module, into a folder of their own."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(forms, "_KNOWN", forms._Known())
    before = set(sys.modules)

    def install(name: str, text: str, points: dict[str, str]) -> None:
        module = name.replace("-", "_")
        (site / f"{module}.py").write_text(text, encoding="utf-8")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{key} = {value}" for key, value in points.items()]
        (info / "entry_points.txt").write_text(f"[{forms.ENTRY_POINTS}]\n" + "\n".join(lines))

    yield install  # type: ignore[misc]
    for module in set(sys.modules) - before:
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(site)):
            del sys.modules[module]


def grid(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = np.zeros(SHAPE, int)
    numbers[2:7, 1:6], numbers[5:9, 10:13], numbers[0, 0] = 7, 9, 3
    np.savetxt(path, numbers, "%d", header="7 epithelial\n9 Lymphocyte\n3 Odd")
    return path


def described(root: Path) -> Path:
    """Make a cohort whose annotation and one team are grids."""
    (root / "cohort.toml").write_text(
        "[classes]\nEpithelial = [255, 0, 0]\nLymphocyte = [255, 255, 0]\n[files]\n"
        'image = "{region}.png"\nreference.grid = "{region}.txt"\n'
        'predictions.grid = "teams/{team}/{region}.txt"\n'
        'predictions.labels = "teams/{team}/{region}.tif"\n'
    )
    Image.fromarray(noise(*SHAPE)).save(root / "a_1.png")
    grid(root / "a_1.txt")
    grid(root / "teams" / "round" / "a_1.txt")
    return root


def test_the_page_tells_how_to_bring_a_format(install: Install, tmp_path: Path) -> None:
    points = tomllib.loads(PROJECT)["project"]["entry-points"][forms.ENTRY_POINTS]
    install("nuclei-grid", MODULE, points)
    assert len(MODULE.splitlines()) <= 40
    root = described(tmp_path)
    tables = tmp_path / "tables"
    assert main(["evaluate", str(root), "--output", str(tables), "--source", "grid"]) == 0
    objects = pd.read_csv(tables / "objects.csv")
    assert objects.query("side == 'reference'")["id"].tolist() == [7, 9]
    assert objects["status"].tolist() == ["TP"] * 4
    assert list(forms.known_forms())[-1] == "grid"
    cohort = open_cohort(root)
    (region,) = cohort.regions
    assert region.reference is not None
    assert region.reference.source == "grid"
    loaded = load_masks(region.reference, cohort.scheme, shape=None, region="a_1")
    assert loaded.labels.shape == SHAPE
    inside = np.zeros(SHAPE, bool)
    inside[2:7, 1:6] = True
    assert np.array_equal(loaded.labels.id_image() == 7, inside)
    (finding,) = loaded.findings
    assert (finding.kind, finding.class_name) == (FindingKind.UNKNOWN_CLASS, "Odd")
    assert (finding.path, finding.region) == (root / "a_1.txt", "a_1")
    with pytest.raises(UnreadableFileError, match="must have the region's size"):
        load_masks(region.reference, cohort.scheme, shape=(3, 4))
    (root / "a_1.txt").write_text("1 2\n1")
    with pytest.raises(UnreadableFileError, match="rows of ids") as caught:
        load_masks(region.reference, cohort.scheme, shape=None, region="a_1")
    assert (caught.value.path, caught.value.region) == (root / "a_1.txt", "a_1")


def test_a_mask_format_in_windows_and_back(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by `init`, and converted, opened as a slide, and documented like others."""
    head, tail = MODULE.replace("=read,", "=read_tiled, write=write, in_windows=True,").split(
        "GRID"
    )
    install("nuclei-grid", f"{head}{IN_WINDOWS_AND_BACK}GRID{tail}", {"grid": "nuclei_grid:GRID"})
    root = tmp_path / "cohort"
    numbers = np.loadtxt(grid(root / "annotation" / "a_1.grid.txt"), int)
    grid(root / "models" / "round" / "a_1.grid.txt")
    (root / "images").mkdir()
    Image.fromarray(noise(*SHAPE)).save(root / "images" / "a_1.png")
    fixes = (f"--fix=class:{name}" for name in ("epithelial", "Lymphocyte", "Odd"))
    assert main(["init", str(root), *fixes]) == 0
    assert main(["evaluate", str(root), "--output", str(tmp_path / "tables")]) == 0
    objects = pd.read_csv(tmp_path / "tables" / "objects.csv")
    assert objects[["id", "status"]].values.tolist() == [[id_, "TP"] for id_ in (3, 7, 9) * 2]

    cohort = open_cohort(root)
    files = cohort.predictions["round", "a_1"][Source("grid")]
    tiles = open_masks(files, cohort.scheme, SHAPE).labels
    window = np.concatenate([[0], tiles.ids])[tiles.read((2, 3, 9, 12))]
    np.testing.assert_array_equal(window, numbers[2:9, 3:12])

    back = tmp_path / "back"
    to_grid = ["--team", "round", "--to", "grid", "--output", str(back)]
    assert main(["convert", str(root), *to_grid]) == 0
    np.testing.assert_array_equal(np.loadtxt(back / "a_1.grid.txt"), numbers)

    monkeypatch.syspath_prepend(str(DOCS))
    pages = importlib.import_module("generated")
    assert "grid" in pages.commands("convert")


def test_among_the_folders_of_monusac_its_files_are_found(install: Install, tmp_path: Path) -> None:
    install("nuclei-grid", MODULE, {"grid": "nuclei_grid:GRID"})
    annotations = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    grid(annotations / "P_1.grid.txt")
    write_svs(annotations / "P_1.svs", noise(*SHAPE))
    grid(tmp_path / "Teams" / "round" / "P" / "P_1.grid.txt")
    cohort = open_cohort(tmp_path)
    assert cohort.findings == ()
    assert cohort.regions[0].reference is not None
    assert cohort.regions[0].reference.source == "grid"
    assert list(cohort.predictions["round", "P_1"]) == ["grid"]


def outlines(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["id,class,outline", *rows, ""]))
    return path


SQUARES = ("7,epithelial,1 1 5 1 5 5 1 5", "9,Lymphocyte,8 2 12 2 12 6 8 6", "3,Odd,1 1 2 2 1 2")


def test_the_page_tells_how_to_bring_a_format_of_outlines(install: Install, tmp_path: Path) -> None:
    """It is found, drawn, reported on, and read in windows, as built-in ones are."""
    install("nuclei-outlines", OUTLINES, {"outlines": "nuclei_outlines:OUTLINES"})
    assert len(OUTLINES.splitlines()) <= 30
    annotations = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    annotations.mkdir(parents=True)
    write_svs(annotations / "P_1.svs", noise(*SHAPE))
    path = outlines(annotations / "P_1.outlines.csv", *SQUARES, "12,Macrophage,4 4 9 4 9 9 4 9")
    outlines(tmp_path / "Teams" / "round" / "P" / "P_1.outlines.csv", *SQUARES)
    cohort = open_cohort(tmp_path)
    (region,) = cohort.regions
    assert region.reference is not None
    assert (region.reference.source, region.reference.all_paths) == ("outlines", (path,))
    assert list(cohort.predictions["round", "P_1"]) == ["outlines"]
    loaded = load_masks(region.reference, cohort.scheme, shape=SHAPE)
    kinds = {finding.kind for finding in loaded.findings}
    assert kinds == {FindingKind.UNKNOWN_CLASS, FindingKind.FALLBACK, FindingKind.OVERLAPPING}
    expected = np.zeros(SHAPE, int)
    for number, (y, x, size) in {1: (1, 1, 4), 2: (2, 8, 4), 4: (4, 4, 5)}.items():
        expected[y : y + size, x : x + size] = number
    np.testing.assert_array_equal(loaded.labels.id_image(), expected)
    tiles = open_masks(region.reference, cohort.scheme, SHAPE).labels
    window = np.concatenate([[0], tiles.ids])[tiles.read((2, 3, 9, 12))]
    np.testing.assert_array_equal(window, expected[2:9, 3:12])


def test_two_files_of_a_plugins_format_are_compared(install: Install, tmp_path: Path) -> None:
    install("nuclei-outlines", OUTLINES, {"outlines": "nuclei_outlines:OUTLINES"})
    Image.fromarray(noise(*SHAPE)).save(tmp_path / "a.png")
    files = [outlines(tmp_path / f"{name}.outlines.csv", *SQUARES) for name in "ab"]
    sides = ["--reference", str(files[0]), "--prediction", str(files[1])]
    image = ["--image", str(tmp_path / "a.png")]
    assert main(["evaluate", *sides, *image, "--output", str(tmp_path / "tables")]) == 0
    objects = pd.read_csv(tmp_path / "tables" / "objects.csv")
    assert objects["status"].tolist() == ["TP"] * 4


@pytest.mark.parametrize(
    "row", ["1,Epithelial,1 1 5", "1,Epithelial,1 1 x 5", "1,Epithelial,1 1 nan 5"]
)
def test_outlines_that_cannot_be_read_are_refused(
    install: Install, tmp_path: Path, row: str
) -> None:
    install("nuclei-outlines", OUTLINES, {"outlines": "nuclei_outlines:OUTLINES"})
    files = MaskFiles(Source("outlines"), {"": (outlines(tmp_path / "a.csv", row),)})
    with pytest.raises(UnreadableFileError, match=r"expected Outlines \(CSV\)"):
        load_masks(files, MONUSAC_CLASSES, shape=SHAPE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise RuntimeError('no licence')", "no licence"),
        ("import a_module_that_is_not_there", "No module named 'a_module_that_is_not_there'"),
        ("F = 3", "expected a napari_panoptic.io.formats.format.Format, found a int"),
        ("G = 3", "has no attribute 'F'"),
        (
            "from napari_panoptic.io.formats.format import Format\n"
            "F = Format(name='labels', title='Mine', open=print)",
            "the format 'labels' is built in, and cannot be replaced; choose another name",
        ),
    ],
)
def test_a_broken_package_is_named_and_stops_nothing(
    text: str, reason: str, install: Install, tmp_path: Path
) -> None:
    install("broken-package", text, {"mine": "broken_package:F"})
    (tmp_path / "cohort.toml").write_text(
        '[classes]\nEpithelial = [255, 0, 0]\n[files]\nreference.labels = "{region}.tif"\n'
    )
    write_tiff(tmp_path / "a_1.tif", two_objects())
    cohort = open_cohort(tmp_path)
    (finding,) = cohort.findings
    assert finding.kind is FindingKind.BROKEN_PLUGIN
    assert "the format 'mine' of the package broken-package cannot be used" in finding.message
    assert reason in finding.message
    assert cohort.regions[0].reference is not None
    loaded = load_masks(cohort.regions[0].reference, cohort.scheme, shape=SHAPE)
    assert len(loaded.labels) == 2


def test_a_format_is_registered_within_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_KNOWN", forms._Known())
    expected = load_masks(MaskFiles(Source.SUBMISSION, {}), MONUSAC_CLASSES, shape=SHAPE)

    def load(*_: object) -> LoadedMasks:
        return expected

    mine = Format(name="mine", title="Mine", open=load)
    files = MaskFiles(Source("mine"), {})
    with pytest.raises(UnreadableFileError, match="no reader for masks in the format 'mine'"):
        load_masks(files, MONUSAC_CLASSES, shape=SHAPE)
    forms.register(mine)
    forms.register(mine)
    assert load_masks(files, MONUSAC_CLASSES, shape=SHAPE).labels is expected.labels
    with pytest.raises(PanopticError, match="'mine' is there already"):
        forms.register(Format(name="mine", title="Other", open=load))
    with pytest.raises(PanopticError, match="'geojson' is built in"):
        forms.register(Format(name="geojson", title="Other", open=load))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"name": "My format", "open": print}, "lower-case letters, digits and hyphens"),
        ({"name": "mine"}, "neither be read nor written"),
        ({"name": "mine", "write": print}, "needs an ending"),
        ({"name": "mine", "open": print, "endings": ("csv",)}, "start with a dot or _, found csv"),
    ],
)
def test_a_format_that_cannot_be_used(fields: dict[str, object], match: str) -> None:
    with pytest.raises(PanopticError, match=match):
        Format(title="Mine", **fields)  # type: ignore[arg-type]


def test_the_page_lists_every_built_in_format() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|.*\| *(\S*) *\| *(\S*) *\|$", TABLE, re.M)
    listed = [(name, bool(written), bool(tiled)) for name, written, tiled in rows]
    assert listed == [
        (
            form.name,
            form.write is not None or form.write_all is not None,
            form.in_windows or form.name == "ome-zarr",  # read as labels
        )
        for form in forms.BUILT_IN
    ]
