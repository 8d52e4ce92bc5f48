"""Names that UTF-8 cannot hold: everything is written, with what cannot be encoded spelled out."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from tests.support.paths import contents
from tests.support.small_cohort import REGIONS, mask_path, write_first_regions

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")

ODD = os.fsdecode(b"x\xff")
WRITTEN = r"x\udcff"


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_first_regions(tmp_path_factory.mktemp("names"), 2)


@pytest.fixture
def copied_folder(intact: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(intact, tmp_path / "cohort"))


def rename_all(root: Path, old: str) -> None:
    """Rename every file and folder with a text in its name."""
    for path in sorted(root.rglob(f"*{old}*"), key=lambda path: -len(path.parts)):
        path.rename(path.with_name(path.name.replace(old, ODD)))


def values(output: Path, table: str, column: str) -> set[str]:
    with (output / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return {row[column] for row in csv.DictReader(file)}


def test_a_team_whose_name_is_no_utf8_is_in_every_table(
    copied_folder: Path, tmp_path: Path
) -> None:
    rename_all(copied_folder, "alpha")
    output = tmp_path / "out"
    assert main(["evaluate", str(copied_folder), "--output", str(output)]) == 0
    for table in ("objects", "regions", "patients", "patients_by_class", "teams", "confusion"):
        assert values(output, table, "team") == {WRITTEN, "beta"}
    record = json.loads((output / "evaluation.json").read_bytes().decode("utf-8"))
    assert set(record["score"]) == {WRITTEN, "beta"}


def test_a_region_whose_name_is_no_utf8_is_in_every_table(
    copied_folder: Path, tmp_path: Path
) -> None:
    rename_all(copied_folder, REGIONS[1].name)
    output = tmp_path / "out"
    assert main(["evaluate", str(copied_folder), "--output", str(output)]) == 0
    for table in ("objects", "regions"):
        assert values(output, table, "region") == {REGIONS[0].name, WRITTEN}


def test_odd_files_are_listed_and_the_tables_are_a_whole_set(
    copied_folder: Path, tmp_path: Path
) -> None:
    path = mask_path(copied_folder, "alpha", REGIONS[0])
    path.with_name(f"{ODD}{path.name}").write_bytes(b"no mask")
    output = tmp_path / "out"
    assert main(["evaluate", str(copied_folder), "--output", str(output)]) == 0
    assert WRITTEN.encode("unicode_escape") in (output / "evaluation.json").read_bytes()


def test_half_a_character_as_the_name_of_a_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cohort.toml").write_text(
        "classes.a = [255, 0, 0]\nclasses.b = [0, 255, 0]\n"
        'files.image = "{region}.png"\n'
        'files.reference.geojson = "{region}.geojson"\n'
        'files.predictions.hovernet = "{team}/{region}.json"\n'
    )
    box = [[2, 2], [9, 2], [9, 9], [2, 9]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [[*box, box[0]]]},
        "properties": {"classification": {"name": "a"}},
    }
    Image.new("RGB", (16, 16)).save(tmp_path / "r.png")
    (tmp_path / "r.geojson").write_text(json.dumps([feature]))
    (tmp_path / "t").mkdir()
    nucleus = {"contour": box, "type": 1}
    (tmp_path / "t" / "r.json").write_text(json.dumps({"mag": 40, "nuc": {"1": nucleus}}))
    (tmp_path / "t" / "type_info.json").write_text('{"1": ["\\ud800", [0, 0, 0]]}')
    output = tmp_path / "out"
    assert main(["evaluate", str(tmp_path), "--output", str(output)]) == 0
    assert r"\ud800" in capsys.readouterr().err
    assert r"\\ud800" in (output / "evaluation.json").read_text("utf-8")


@pytest.mark.long
@pytest.mark.usefixtures("no_plots")
def test_a_report_is_written(copied_folder: Path, tmp_path: Path) -> None:
    rename_all(copied_folder, "alpha")
    rename_all(copied_folder, REGIONS[1].name)
    page = tmp_path / f"{ODD}.html"
    assert main(["report", str(copied_folder), "--output", str(page)]) == 0
    assert WRITTEN in page.read_text("utf-8")


@pytest.mark.parametrize("form", ["geojson", "coco-panoptic", "conic"])
def test_a_conversion_writes_files_or_says_why_not(
    copied_folder: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arrays hold regions of one size, which these are not."""
    rename_all(copied_folder, REGIONS[1].name)
    output = tmp_path / "out"
    command = [
        "convert",
        str(copied_folder),
        "--team",
        "alpha",
        "--to",
        form,
        "--output",
        str(output),
    ]
    if main(command):
        assert capsys.readouterr().err.startswith("napari-panoptic: ")
        assert not output.exists()
    else:
        assert contents(output)
