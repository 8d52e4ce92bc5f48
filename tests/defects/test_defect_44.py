"""Exit statuses, messages, and what one bad entry takes with it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from tests.faults.kill import small
from tests.support.paths import REPOSITORY
from tests.support.small_cohort import REGIONS, mask_path


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("small"), 1)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="closed pipes are reported differently there")
@pytest.mark.parametrize(
    "closed", [pytest.param(["stdout"], marks=pytest.mark.long), ["stdout", "stderr"]]
)
def test_defect_44_tables_are_written_when_nobody_reads_the_output(
    cohort: Path, tmp_path: Path, closed: list[str]
) -> None:
    """As with `| true` and with `2>&1 | true`."""
    output = tmp_path / "out"
    command = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(cohort)]
    process = subprocess.Popen(
        [*command, "--output", str(output)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    streams = {"stdout": process.stdout, "stderr": process.stderr}
    for name in closed:
        streams.pop(name).close()  # type: ignore[union-attr]
    said = {name: stream.read().decode() for name, stream in streams.items() if stream}
    for stream in streams.values():
        stream.close()  # type: ignore[union-attr]
    assert process.wait(300) == 0
    assert (output / "evaluation.json").is_file()
    for text in said.values():
        assert "cannot be written" not in text
        assert "Traceback" not in text
        assert "Broken" not in text


@pytest.mark.parametrize("offset", [pytest.param(0, marks=pytest.mark.long), 9_999])
def test_defect_44_a_tiff_without_pages_is_described_in_one_line(
    tmp_path: Path, offset: int
) -> None:
    """Neither lines of tifffile nor Python's own words are shown."""
    root = small(tmp_path, 1)
    path = mask_path(root, "alpha", REGIONS[0])
    path.write_bytes(b"II*\0" + struct.pack("<I", offset))
    command = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(root)]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out")],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if path.name in line]
    assert line.startswith("napari-panoptic: ")
    assert "a part that the format requires is missing" in line
    for own in ("tifffile", "TiffFile", "list index out of range"):
        assert own not in done.stderr


def test_defect_44_no_message_contains_a_nul(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = panoptic_cohort(tmp_path)
    table = json.loads((root / "teams" / "team.json").read_text())
    names = (root / "teams" / "other.json", root / "teams" / "team.json")
    table["annotations"][0]["file_name"] = "a\0.png"
    names[0].write_text(json.dumps(table))
    table["annotations"][0]["file_name"] = "a.png"
    table["annotations"][0]["segments_info"][0]["id"] = "1\0 2"
    names[1].write_text(json.dumps(table))
    output = tmp_path / "out"
    assert main(["evaluate", str(root), "--output", str(output)]) == 0
    said = capsys.readouterr()
    assert "\0" not in said.out + said.err
    record = json.loads((output / "evaluation.json").read_text("utf-8"))
    messages = [w["message"] for found in record["warnings"].values() for w in found]
    assert messages
    assert not [message for message in messages if "\0" in message]


@pytest.mark.parametrize("bad", [0, -3, 2**24, 2**70])
def test_defect_44_a_segment_id_that_no_pixel_can_have_costs_this_segment(
    tmp_path: Path, bad: int
) -> None:
    record = with_id(tmp_path, bad)
    assert record["evaluated_regions"] == {"team": 2}
    (warning,) = record["warnings"]["vanished"]
    assert warning["object_ids"] == [bad]
    assert record["score"]["team"] == pytest.approx((1 + 2 / 3) / 2)  # one of four is missed


@pytest.mark.parametrize("bad", ["one", None, [1]])
def test_defect_44_a_segment_id_that_is_no_number_costs_its_region(
    tmp_path: Path, bad: object
) -> None:
    record = with_id(tmp_path, bad)
    assert record["evaluated_regions"] == {"team": 1}
    (warning,) = record["warnings"]["unreadable"]
    assert "a.png" in warning["message"]
    assert warning["region"] == "a"


def with_id(folder: Path, bad: object) -> Any:
    """Evaluate a team with one odd id; return the record."""
    root = panoptic_cohort(folder)
    table = json.loads((root / "teams" / "team.json").read_text())
    text = json.dumps(table).replace('"id": 1,', f'"id": {json.dumps(bad)},', 1)
    (root / "teams" / "team.json").write_text(text)
    assert main(["evaluate", str(root), "--output", str(folder / "out")]) == 0
    return json.loads((folder / "out" / "evaluation.json").read_text("utf-8"))


def panoptic_cohort(folder: Path) -> Path:
    """Write two regions of two nuclei, and one team that found them all."""
    root = folder / "cohort"
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[2:8, 2:8, 0] = 1
    pixels[9:14, 3:9, 0] = 2
    info = [{"id": id_, "category_id": 1, "iscrowd": 0} for id_ in (1, 2)]
    table = {
        "annotations": [
            {"file_name": f"{name}.png", "segments_info": [dict(own) for own in info]}
            for name in "ab"
        ],
        "categories": [{"id": 1, "name": "nucleus", "isthing": 1}],
    }
    for name in ("reference", "teams/team"):
        (root / name).mkdir(parents=True)
        for region in "ab":
            Image.fromarray(pixels).save(root / name / f"{region}.png")
        (root / f"{name}.json").write_text(json.dumps(table))
    (root / "cohort.toml").write_text(
        'classes.nucleus = [255, 0, 0]\nfiles.image = "reference/{region}.png"\n'
        'files.reference.coco-panoptic = "reference.json"\n'
        'files.predictions.coco-panoptic = "teams/{team}.json"\n'
    )
    return root
