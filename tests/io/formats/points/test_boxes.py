"""Boxes in JSON files of many images, as MIDOG 2021 and MIDOG++ have them, in cohorts of points.

Keys and conventions are those of DeepMicroscopy/MIDOG (databases/MIDOG.json) and
DeepMicroscopy/MIDOGpp (databases/MIDOG++.json); the numbers are our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.detections.evaluate import load_frame
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.io.formats.points.boxes import read_boxes
from napari_panoptic.io.formats.points.point_files import read_points
from napari_panoptic.values.cohort import Task

CATEGORIES = [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}]
SIZE = (400, 500)


def box(image: int, id_: int, x: float, y: float, category: int = 1, **more: Any) -> dict[str, Any]:
    corners = [x - 25, y - 25, x + 25, y + 25]
    return {"bbox": corners, "category_id": category, "image_id": image, "id": id_, **more}


def midog(path: Path, annotations: list[Any], count: int = 3, **more: Any) -> Path:
    height, width = SIZE
    listed = [
        {"license": 1, "file_name": f"{n:03d}.tiff", "id": n, "width": width, "height": height}
        for n in range(1, count + 1)
    ]
    table = {"info": {}, "images": listed, "categories": CATEGORIES, "annotations": annotations}
    path.write_text(json.dumps(table | more))
    return path


TRUTH = [box(1, 1, 100, 90.5), box(1, 2, 300, 200, 2), box(1, 3, 10, 390), box(2, 4, 250, 250)]


def test_a_cohort_of_midog(tmp_path: Path) -> None:
    """One JSON for the annotation and one for each team, of the same images."""
    for name in ("001", "002", "003"):
        Image.fromarray(np.zeros((*SIZE, 3), np.uint8)).save(tmp_path / f"{name}.png")
    midog(tmp_path / "MIDOG.json", TRUTH)
    (tmp_path / "teams").mkdir()
    found = [box(1, 7, 104, 90, score=0.75), box(1, 8, 460, 30, score=0.5), box(4, 9, 1, 1)]
    midog(tmp_path / "teams" / "one.json", found, count=4)
    (tmp_path / "teams" / "two.json").write_text("{}")
    (tmp_path / "cohort.toml").write_text(
        'task = "detections"\nmpp = 0.25\n[files]\nimage = "{region}.png"\n'
        'reference = "MIDOG.json"\npredictions = "teams/{team}.json"\n'
    )
    cohort = open_detection_cohort(tmp_path)
    assert [frame.name for frame in cohort.frames] == ["001", "002", "003"]
    assert cohort.team_names == ("one",)
    first, second, third = (load_frame(cohort, frame) for frame in cohort.frames)
    assert first.reference is not None
    assert first.reference.xy_px.tolist() == [[100, 90.5], [10, 390]]
    assert first.reference.ids.tolist() == [1, 3]
    points = first.predictions["one"]
    assert points.xy_px.tolist() == [[104, 90], [460, 30]]
    assert points.confidence.tolist() == [0.75, 0.5]
    assert second.reference is not None
    assert len(second.reference) == 1
    assert len(second.predictions["one"]) == 0
    assert third.reference is not None
    assert len(third.reference) == 0
    told = [(finding.kind, str(finding.path and finding.path.name)) for finding in cohort.findings]
    assert (FindingKind.EXTRA, "MIDOG.json") in told  # a hard negative
    assert (FindingKind.MISSING, "MIDOG.json") in told  # no annotation in 003
    assert (FindingKind.EXTRA, "one.json") in told  # an image 004
    assert (FindingKind.UNREADABLE, "two.json") in told
    # The folders of the challenge need no description, but for the size of pixels.
    (tmp_path / "cohort.toml").unlink()
    (tmp_path / "teams").rename(tmp_path / "Teams")
    assert task_of(tmp_path) is Task.DETECTIONS
    again = open_detection_cohort(tmp_path)
    assert [frame.name for frame in again.frames] == ["001", "002", "003"]
    assert again.team_names == ("one",)


@pytest.mark.parametrize("with_sizes", [False, True])
def test_corners_and_sizes(with_sizes: bool, tmp_path: Path) -> None:
    annotations = [box(1, n, 60 + 30 * n, 380 - 20 * n) for n in range(1, 9)]
    if with_sizes:
        for own in annotations:
            own["bbox"][2:] = [50, 50]
    points = read_boxes(midog(tmp_path / "a.json", annotations, 1))
    assert not points.findings
    expected = [[60 + 30 * n, 380 - 20 * n] for n in range(1, 9)]
    assert points.points["001"].xy_px.tolist() == expected


def test_boxes_that_can_be_both_are_reported(tmp_path: Path) -> None:
    found = read_boxes(
        midog(tmp_path / "a.json", [box(1, 1, 35, 35) | {"bbox": [9, 9, 50, 50]}], 1)
    )
    assert [finding.kind for finding in found.findings] == [FindingKind.CONVENTION]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"categories": [{"id": 5, "name": "a"}, {"id": 6, "name": "b"}]}, "category = "),
        ({"categories": []}, "no categories"),
        ({"annotations": [box(1, 1, 5, 5) | {"bbox": [1, 2, 3]}]}, "four"),
        ({"annotations": [box(1, 1, 5, 5) | {"bbox": [1, 2, 3, 1e300]}]}, "four finite"),
        ({"annotations": [box(1, 1, 5, 5) | {"bbox": [9, 9, 3, -1]}]}, "neither"),
        ({"annotations": [box(1, 1, 5, 5, score="a")]}, "score"),
        ({"annotations": [box(1, 1, 5, 5, score=[0.5])]}, "scores that are lists"),
        ({"annotations": [box(9, 1, 5, 5)]}, "not listed"),
        ({"images": [{"id": n, "file_name": f"{n}/b.png"} for n in (1, 2)]}, "the same name"),
        (
            {"images": [{"id": 1, "file_name": ""}], "annotations": []},
            "expected the name of an image, found ''",
        ),
        ({"images": [{"id": 1, "file_name": None}]}, "as file_name, found None"),
        ({"images": [{"id": None, "file_name": "a"}]}, "as the id of an image, found None"),
    ],
)
def test_damaged_boxes_are_refused(more: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read_boxes(midog(tmp_path / "a.json", **{"annotations": TRUTH, **more}))


def test_the_category_is_stated(tmp_path: Path) -> None:
    path = midog(tmp_path / "a.json", TRUTH)
    assert read_boxes(path, "Hard negative").points["001"].ids.tolist() == [2]
    with pytest.raises(UnreadableFileError, match="no image 'x'"):
        read_boxes(path).of("x", path)


def test_boxes_of_an_image_of_another_size_are_named(tmp_path: Path) -> None:
    path = midog(tmp_path / "a.json", TRUTH[:3], 1)
    assert not read_points(path, shape=SIZE).findings
    (finding,) = read_points(path, shape=(800, 1000)).findings
    assert finding.kind is FindingKind.CONVENTION
    assert "states an image of 500 x 400 px, and the image has 1000 x 800 px" in finding.message
    assert finding.count == 2
