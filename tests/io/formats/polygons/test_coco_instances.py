"""COCO instances: run lengths of pycocotools, polygons, many images, damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.files.guard import VARIABLE
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.polygons import coco_instances
from napari_panoptic.io.formats.polygons.coco_instances import (
    instance_items,
    unpacked,
    write_files,
)
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    Crowds,
    MaskFiles,
    OutlineRules,
    Source,
    Vertices,
)
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples

DATA = Path(__file__).resolve().parents[3] / "data" / "formats"
FROM_PYCOCOTOOLS = DATA / "coco_instances.json"
"""Written with pycocotools 2.0.11: packed and plain run lengths, a polygon, a crowd."""
SHAPE = (18, 24)


def loaded(
    path: Path, item: str | None, shape: tuple[int, int] = SHAPE, **rules: Any
) -> LoadedMasks:
    files = MaskFiles(Source.COCO_INSTANCES, {"": (path,)}, item, rules=OutlineRules(**rules))
    return load_masks(files, MONUSAC_CLASSES, shape=shape)


def written(folder: Path, objects: list[Any], **more: Any) -> Path:
    table = {
        "images": [{"id": 1, "file_name": "only.png", "height": 18, "width": 24}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1} | own for own in objects],
        "categories": [{"id": 1, "name": "Epithelial"}],
    } | more
    path = folder / "a.coco.json"
    path.write_text(json.dumps(table))
    return path


def test_masks_of_pycocotools_come_back_pixel_by_pixel() -> None:
    masks = loaded(FROM_PYCOCOTOOLS, "7")
    expected = 10 * np.array(json.loads((DATA / "coco_instances_labels.json").read_text()))
    assert np.array_equal(masks.labels.id_image(), expected)
    assert masks.labels.class_names_of_objects().tolist() == ["Lymphocyte", "Epithelial"] * 3
    assert not masks.findings


def test_polygons_and_crowds() -> None:
    masks = loaded(FROM_PYCOCOTOOLS, "8")
    expected = np.zeros(SHAPE, np.int64)
    expected[1:7, 1:9] = 70  # as pycocotools fills it
    assert np.array_equal(masks.labels.id_image(), expected)
    ambiguous = np.zeros(SHAPE, bool)
    ambiguous[:, 16:] = True
    assert masks.ambiguous is not None
    assert np.array_equal(masks.ambiguous, ambiguous)


def test_names_of_images_with_backslashes(tmp_path: Path) -> None:
    images = [{"id": 7, "file_name": "images\\p0_1.png"}, {"id": 8, "file_name": "b\\p0_2.png"}]
    items = instance_items(written(tmp_path, [], images=images))
    assert [item.name for item in items] == ["p0_1", "p0_2"]


@pytest.mark.parametrize("name", ["", " ", ".", "/", "..", None, 1.5, True, [], "\ud800"])
def test_images_without_a_name_are_refused(name: Any, tmp_path: Path) -> None:
    """A region had an empty name."""
    path = tmp_path / "a.json"
    image = {"id": 1, "file_name": name, "height": 18.0, "width": float("nan")}
    path.write_text(json.dumps({"images": [image], "annotations": [], "categories": []}))
    with pytest.raises(UnreadableFileError, match=r"expected .*found .*export it again"):
        list(instance_items(path))


@pytest.mark.parametrize("id_", ["", " ", "..", None, 1.5, {}, False])
def test_results_of_images_without_an_id_are_refused(id_: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"image_id": id_, "category_id": 1, "segmentation": []}]))
    with pytest.raises(UnreadableFileError, match=r"expected .*found .*export it again"):
        list(instance_items(path))


def test_ids_of_images(tmp_path: Path) -> None:
    """Of two images with one id, the first was lost."""
    images = [{"id": 1, "file_name": "a.png"}, {"id": 1.0, "file_name": "b.png"}]
    with pytest.raises(UnreadableFileError, match="several images have the id 1"):
        list(instance_items(written(tmp_path, [], images=images)))
    images[1]["file_name"] = "a.png"
    (item,) = instance_items(written(tmp_path, [{"image_id": 1.0}], images=images))
    assert (item.name, item.key) == ("a", "1")


def test_regions_are_images() -> None:
    items = list(instance_items(FROM_PYCOCOTOOLS))
    assert [(item.name, item.key) for item in items] == [("first", "7"), ("second", "8")]


def packed(lengths: list[int]) -> str:
    """Pack run lengths by the definition: five bits per character, the lowest first."""
    text = ""
    for place, length in enumerate(lengths):
        rest = length - lengths[place - 2] if place > 2 else length
        while True:
            bits, rest = rest & 31, rest >> 5
            is_last = rest == (-1 if bits & 16 else 0)
            text += chr(48 + bits + (0 if is_last else 32))
            if is_last:
                break
    return text


def test_what_is_written_is_what_pycocotools_writes(tmp_path: Path) -> None:
    """Run lengths, areas and boxes of the same labels; then ids, classes and pixels again."""
    theirs = json.loads(FROM_PYCOCOTOOLS.read_text())["annotations"][:6]
    ours = tmp_path / "ours.coco.json"
    labels = replace(loaded(FROM_PYCOCOTOOLS, "7").labels, known_scores=None)
    ambiguous = np.zeros(SHAPE, bool)
    ambiguous[4:9, 20:] = ambiguous[0, 0] = True
    objects = Objects(labels, Side.REFERENCE, "first", "", ambiguous, MONUSAC_CLASSES, None)
    write_files(ours, objects)
    written = json.loads(ours.read_text())["annotations"]
    assert [own["iscrowd"] for own in written] == [0] * 6 + [1, 1]
    for own, other in zip(written, theirs, strict=False):
        assert (own["area"], own["bbox"]) == (other["area"], other["bbox"])
        text = own["segmentation"]["counts"]
        counts = other["segmentation"]["counts"]
        assert text == (counts if isinstance(counts, str) else packed(counts))
        assert text == packed(unpacked(text).tolist())
    again = loaded(ours, None)
    assert np.array_equal(again.labels.id_image(), labels.id_image())
    assert np.array_equal(again.labels.class_index, labels.class_index)
    assert again.ambiguous is not None
    assert np.array_equal(again.ambiguous, ambiguous)
    assert not again.findings


@given(st.lists(st.integers(0, 2**31), max_size=20))
def test_packed_lengths_come_back(lengths: list[int]) -> None:
    assert unpacked(packed(lengths)).tolist() == lengths
    assert coco_instances.packed(lengths) == packed(lengths)


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_masks_come_back(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    mask = np.random.default_rng(seed).random((6, 7)) < 0.5
    mask[0, 0] = True
    flat = mask.ravel(order="F")
    ends = np.flatnonzero(np.diff(flat)) + 1
    lengths = np.diff([0, *ends, flat.size]).tolist()
    lengths = [0, *lengths] if flat[0] else lengths
    for counts in (lengths, packed(lengths)):
        runs = {"segmentation": {"size": [6, 7], "counts": counts}}
        images = [{"id": 1, "file_name": "only.png"}]
        path = written(tmp_path_factory.mktemp("coco"), [runs], images=images)
        masks = loaded(path, None, (6, 7))
        assert np.array_equal(masks.labels.index > 0, mask)


def test_results_have_scores_and_class_numbers(tmp_path: Path) -> None:
    square = [[2, 2, 8, 2, 8, 8, 2, 8]]
    results = [
        {"image_id": 5, "category_id": 2, "segmentation": square, "score": 0.75},
        {"image_id": 6, "category_id": 1, "segmentation": square, "score": 0.5},
    ]
    path = tmp_path / "results.coco.json"
    path.write_text(json.dumps(results))
    masks = loaded(path, "5")
    assert masks.labels.class_names_of_objects().tolist() == ["Lymphocyte"]
    assert masks.labels.scores.tolist() == [0.75]
    assert [item.name for item in instance_items(path)] == ["5", "6"]


RUNS = {"size": [18, 24], "counts": [10, 4, 18 * 24 - 14]}


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        ([], "a box alone outlines no nucleus"),
        (None, "a box alone outlines no nucleus"),
        ([[1, 2, 3]], "a polygon is a list"),
        (RUNS | {"counts": [10, 4]}, "do not add up"),
        (RUNS | {"counts": [10, -4, 18 * 24 - 6]}, "whole numbers that fit"),
        (RUNS | {"counts": "a" * 40}, "damaged|cut off|add up"),
        (RUNS | {"counts": "P"}, "cut off"),
        (RUNS | {"size": [0, 24]}, "need a size"),
        ({"size": [2**16, 2**16], "counts": [0, 2**32]}, "larger than images may be"),
    ],
)
def test_damage_is_refused(segmentation: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        loaded(written(tmp_path, [{"segmentation": segmentation}]), None)


@pytest.mark.parametrize("odd", [{"segmentation": []}, {"segmentation": None}, {}])
def test_one_annotation_without_a_segmentation_is_listed(odd: Any, tmp_path: Path) -> None:
    square = {"segmentation": [[2, 2, 8, 2, 8, 8, 2, 8]]}
    masks = loaded(written(tmp_path, [square, odd | {"id": 2}]), None)
    assert masks.labels.ids.tolist() == [1]
    listed = {finding.kind: finding.object_ids for finding in masks.findings}
    assert listed == {FindingKind.DEGENERATE: (2,), FindingKind.VANISHED: (2,)}


SQUARE = [[2, 2, 8, 2, 8, 8, 2, 8]]


def test_crowds_are_listed_and_become_objects_where_the_cohort_says_so(tmp_path: Path) -> None:
    crowds = [{"iscrowd": 1, "segmentation": RUNS}, {"id": 2, "iscrowd": 1, "segmentation": SQUARE}]
    path = written(tmp_path, crowds)
    (finding,) = loaded(path, None).findings
    assert finding.message.startswith("2 crowds")
    assert 'reference.crowds = "objects"' in finding.message
    masks = loaded(path, None, crowds=Crowds.OBJECTS)
    assert len(masks.labels) == 2
    assert masks.ambiguous is None
    assert not masks.findings
    assert not loaded(path, None, crowds=Crowds.EXCLUDED).findings


def test_crowds_of_the_ambiguous_class_are_no_doubt(tmp_path: Path) -> None:
    crowd = {"iscrowd": 1, "segmentation": RUNS, "category_id": 9}
    path = written(tmp_path, [crowd], categories=[{"id": 9, "name": "Ambiguous"}])
    masks = loaded(path, None, crowds=Crowds.OBJECTS)
    assert masks.ambiguous is not None
    assert not loaded(path, None).findings


@pytest.mark.parametrize("segmentation", [SQUARE, RUNS])
@pytest.mark.parametrize("has_entry", [True, False])
def test_a_stated_size_other_than_the_regions_is_refused(
    segmentation: Any, has_entry: bool, tmp_path: Path
) -> None:
    images = {"images": [{"id": 1, "file_name": "a.png"}]}
    path = written(tmp_path, [{"segmentation": segmentation}], **({} if has_entry else images))
    if segmentation is SQUARE and not has_entry:
        assert len(loaded(path, None, (36, 48)).labels) == 1  # nothing states a size
        return
    with pytest.raises(UnreadableFileError, match=r"reference\.scale = 2 if"):
        loaded(path, None, (36, 48))
    scaled = loaded(path, None, (36, 48), scale=2.0).labels.index
    assert (scaled > 0).sum() == 4 * (loaded(path, None).labels.index > 0).sum()
    assert len(loaded(path, None, (36, 48), scale=1.0).labels) == 1


def test_run_lengths_of_another_size_than_their_image_are_refused(tmp_path: Path) -> None:
    runs = {"size": [9, 12], "counts": [10, 4, 9 * 12 - 14]}
    with pytest.raises(UnreadableFileError, match="run lengths of 12 x 9 px in an image of 24 x"):
        loaded(written(tmp_path, [{"segmentation": runs}]), None)


@pytest.mark.parametrize("half", [0.0, 0.5])
def test_run_lengths_keep_their_pixels_beside_polygons_through_centres(
    half: float, tmp_path: Path
) -> None:
    mask = np.zeros(SHAPE, np.int64)
    mask[1:12, 10:22] = 1
    mask[3:6, 12:15] = mask[1, 10] = mask[8, 18] = 0  # with two holes
    mask[15:17, 3:6] = 1  # and another piece
    flat = mask.ravel(order="F")
    ends = [0, *(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    runs = {"size": list(SHAPE), "counts": np.diff(ends).tolist()}
    # Two triangles with diagonals, of whole numbers or of scikit-image.
    lines = [[2, 2, 6, 2, 2, 6], [2, 8, 6, 8, 2, 12]]
    moved = [[x + half * (place % 2) for place, x in enumerate(ring)] for ring in lines]
    path = written(
        tmp_path,
        [{"segmentation": moved}, {"id": 2, "segmentation": runs}],
    )
    image = loaded(path, None, vertices=Vertices.PIXEL_CENTRES).labels.id_image()
    assert np.array_equal(image == 2, mask > 0)
    assert (image == 1).sum() == (20 if half else 30)  # 15 pixels on and within each


@pytest.mark.parametrize(("order", "count"), [("C", 1), ("F", 0)])
def test_run_lengths_that_go_row_by_row_are_named(order: Any, count: int, tmp_path: Path) -> None:
    entries = []
    for y in (2, 9):
        mask = np.zeros(SHAPE, np.int8)
        mask[y : y + 4, 5:11] = 1
        ends = np.flatnonzero(np.diff(mask.ravel(order))) + 1
        counts = np.diff([0, *ends.tolist(), mask.size]).tolist()
        entries.append({"id": y, "segmentation": {"size": list(SHAPE), "counts": counts}})
    found = [
        f for f in loaded(written(tmp_path, entries), None).findings if "row by row" in f.message
    ]
    assert len(found) == count
    assert all(finding.count == 2 for finding in found)


def test_many_large_runs_are_refused_before_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(4 * 18 * 24))
    runs = {"segmentation": {"size": [18, 24], "counts": [0, 18 * 24]}}
    assert len(loaded(written(tmp_path, [runs] * 4), None).labels) == 1  # the last covers all
    with pytest.raises(UnreadableFileError, match="larger than images may be"):
        loaded(written(tmp_path, [runs] * 5), None)


@pytest.mark.parametrize(
    "table",
    [{}, {"images": []}, 5, [5], {"images": [{"id": 1}], "annotations": []}, {"annotations": [{}]}],
)
def test_other_json_is_refused(table: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.coco.json"
    path.write_text(json.dumps(table))
    with pytest.raises(UnreadableFileError, match="expected COCO instances"):
        loaded(path, None)


def test_a_cohort_of_one_json_and_of_many(tmp_path: Path) -> None:
    square = {"segmentation": [[2, 2, 8, 2, 8, 8, 2, 8]]}
    image = np.zeros((*SHAPE, 3), np.uint8)
    from PIL import Image

    for name in ("one", "two"):
        Image.fromarray(image).save(tmp_path / f"{name}.png")
        own = written(tmp_path, [square], images=[{"id": 1, "file_name": f"{name}.png"}])
        own.rename(tmp_path / f"{name}.team.json")
    both = [{"id": 1, "file_name": "one.png"}, {"id": 2, "file_name": "two.png"}]
    written(tmp_path, [square, square | {"id": 2, "image_id": 2}], images=both)
    (tmp_path / "cohort.toml").write_text(
        '[files]\nimage = "{region}.png"\nreference.coco-instances = "a.coco.json"\n'
        'predictions.coco-instances = "{region}.team.json"\n[classes]\nEpithelial = [255, 0, 0]\n'
    )
    cohort = open_cohort(tmp_path)
    assert [region.name for region in cohort.regions] == ["one", "two"]
    for region in cohort.regions:
        snapshot = load_region(cohort, region.name, EvaluationSettings(distances=False))
        (evaluation,) = snapshot.evaluations.values()
        assert evaluation.metrics.pq == 1.0
