"""What one bad entry of a COCO panoptic file takes with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.cli.main import main


def test_no_message_contains_a_nul(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_a_segment_id_that_no_pixel_can_have_costs_this_segment(tmp_path: Path, bad: int) -> None:
    record = with_id(tmp_path, bad)
    assert record["evaluated_regions"] == {"team": 2}
    (warning,) = record["warnings"]["vanished"]
    assert warning["object_ids"] == [bad]
    assert record["score"]["team"] == pytest.approx((1 + 2 / 3) / 2)  # one of four is missed


@pytest.mark.parametrize("bad", ["one", None, [1]])
def test_a_segment_id_that_is_no_number_costs_its_region(tmp_path: Path, bad: object) -> None:
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
