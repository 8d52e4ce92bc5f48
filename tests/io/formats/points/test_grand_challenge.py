"""Points of grand-challenge.org in mm, as algorithms of MIDOG and MONKEY write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.detections.evaluate import LoadedFrame, load_frame
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.io.formats.points.point_files import read_points

MPP = 0.25


def point(x_px: float, y_px: float, name: str, probability: float | None = None) -> dict[str, Any]:
    at = {"point": [x_px * MPP / 1000, y_px * MPP / 1000, 0], "name": name}
    return at if probability is None else {**at, "probability": probability}


def saved(path: Path, points: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"type": "Multiple points", "points": points, "version": {"major": 1, "minor": 0}}
    path.write_text(json.dumps(table))


def frame_of(folder: Path, points: list[Any], extra: str = "") -> LoadedFrame:
    Image.fromarray(np.zeros((400, 500, 3), np.uint8)).save(folder / "a.png")
    (folder / "a.csv").write_text("100,90\n")
    saved(folder / "teams" / "one" / "a.json", points)
    (folder / "cohort.toml").write_text(
        f'task = "detections"\nmpp = {MPP}\n{extra}\n[files]\nimage = "{{region}}.png"\n'
        'reference = "{region}.csv"\npredictions = "teams/{team}/{region}.json"\n'
    )
    cohort = open_detection_cohort(folder)
    assert not cohort.findings
    return load_frame(cohort, cohort.frames[0])


POINTS = [
    point(104, 90, "mitotic figure", 0.75),
    point(20, 30, "non-mitotic figure", 0.5),
    point(600, 390, "mitotic figure"),
]


def test_points_in_mm_become_px(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, POINTS)
    points = frame.predictions["one"]
    np.testing.assert_allclose(points.xy_px, [[104, 90], [600, 390]])
    assert points.ids.tolist() == [1, 3]
    np.testing.assert_array_equal(points.confidence, [0.75, np.nan])
    found = {finding.kind: finding.object_ids for finding in frame.findings}
    assert found == {FindingKind.EXTRA: (2,), FindingKind.OUTSIDE_IMAGE: (3,)}


def test_a_category_and_names_of_single_points(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, POINTS, 'category = "non-mitotic figure"')
    assert frame.predictions["one"].ids.tolist() == [2]
    monkey = [point(5, 6, "Point 0", 1.0), point(7, 8, "Point 1", 0.5)]
    frame = frame_of(tmp_path, monkey)
    np.testing.assert_allclose(frame.predictions["one"].xy_px, [[5, 6], [7, 8]])
    assert not frame.findings
    assert len(frame_of(tmp_path, []).predictions["one"]) == 0


@pytest.mark.parametrize(
    "points",
    [[{"name": "a"}], [{"point": [1]}], [{"point": ["a", 2]}], [point(1e30, 2, "a")], 5, [5]],
)
def test_damaged_points_are_reported(points: Any, tmp_path: Path) -> None:
    frame = frame_of(tmp_path, points)
    assert not frame.predictions
    (finding,) = frame.findings
    assert finding.kind is FindingKind.UNREADABLE
    assert "grand-challenge.org" in finding.message


def test_one_file_for_all_images_is_reported(tmp_path: Path) -> None:
    frame_of(tmp_path, POINTS)
    saved(tmp_path / "two.json", POINTS)
    text = (tmp_path / "cohort.toml").read_text()
    (tmp_path / "cohort.toml").write_text(text.replace("teams/{team}/{region}", "{team}"))
    (finding, *_) = open_detection_cohort(tmp_path).findings
    assert finding.kind is FindingKind.UNREADABLE
    assert "write {region} into its pattern" in finding.message


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    before = frame_of(tmp_path, POINTS)
    path = tmp_path / "teams" / "one" / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    frame = load_frame(open_detection_cohort(tmp_path), before.frame)
    assert frame.predictions["one"].ids.tolist() == [1, 3]


def test_points_in_mm_need_the_size_of_a_pixel(tmp_path: Path) -> None:
    """The message was about boxes."""
    saved(tmp_path / "a.json", POINTS)
    with pytest.raises(UnreadableFileError, match=r"micrometres per pixel .*mpp = NUMBER"):
        read_points(tmp_path / "a.json")
