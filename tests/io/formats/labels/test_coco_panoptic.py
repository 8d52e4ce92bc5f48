"""COCO panoptic: the published definition, written down slowly, against the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import CohortError, UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.registry import load_masks
from tests.support.builders import noise

SHAPE = (12, 16)
CATEGORIES = [
    {"id": 7, "name": "epithelial", "isthing": 1, "supercategory": "nucleus", "color": [9, 9, 9]},
    {"id": 3, "name": "Lymphocyte", "isthing": 1, "supercategory": "nucleus", "color": [1, 1, 1]},
]
STUFF = {"id": 40, "name": "tissue", "isthing": 0, "supercategory": "back", "color": [2, 2, 2]}


def ids() -> NDArray[np.int64]:
    image = np.zeros(SHAPE, np.int64)
    image[1:4, 1:5] = 5
    image[1:4, 8:12] = 300  # needs G
    image[6:9, 1:5] = 70000  # needs B
    image[6:9, 8:12] = 256**3 - 1
    return image


def write_png(path: Path, image: NDArray[np.int64]) -> None:
    """Spell every id out as its colour, pixel by pixel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.zeros((*image.shape, 3), np.uint8)
    for y, x in np.ndindex(image.shape):
        value = int(image[y, x])
        pixels[y, x] = value % 256, value // 256 % 256, value // 256**2
    Image.fromarray(pixels).save(path)


def segments(*of: tuple[int, int, int]) -> list[dict[str, Any]]:
    return [
        {"id": i, "category_id": c, "iscrowd": crowd, "area": 0, "bbox": [0, 0, 0, 0]}
        for i, c, crowd in of
    ]


ALL = segments((5, 7, 0), (300, 3, 0), (70000, 7, 1), (256**3 - 1, 3, 0))


def cohort_in(root: Path, info: list[dict[str, Any]], categories: list[dict[str, Any]]) -> Path:
    (root / "cohort.toml").write_text(
        "[classes]\nEpithelial = [255, 0, 0]\nLymphocyte = [255, 255, 0]\n[files]\n"
        'image = "images/{region}.png"\nreference.coco-panoptic = "panoptic_val.json"\n'
        'predictions.coco-panoptic = "{team}.json"\n'
    )
    (root / "images").mkdir(exist_ok=True)
    Image.fromarray(noise(*SHAPE)).save(root / "images" / "a_1.png")
    table = {
        "images": [{"id": 1, "file_name": "a_1.png", "width": 16, "height": 12}],
        "annotations": [{"image_id": 1, "file_name": "a_1.png", "segments_info": info}],
        "categories": categories,
    }
    for name in ("panoptic_val", "team"):
        write_png(root / name / "a_1.png", ids())
        (root / f"{name}.json").write_text(json.dumps(table))
    return root


def read(root: Path) -> LoadedMasks:
    cohort = open_cohort(root)
    (region,) = cohort.regions
    assert region.name == "a_1"
    assert region.reference is not None
    assert [t.name for t in cohort.teams if t.name != "panoptic_val"] == ["team"]
    return load_masks(region.reference, cohort.scheme, shape=SHAPE, region=region.name)


def test_ids_classes_and_crowds(tmp_path: Path) -> None:
    loaded = read(cohort_in(tmp_path, ALL, CATEGORIES))
    assert loaded.findings == ()
    image = ids()
    assert loaded.ambiguous is not None
    assert np.array_equal(loaded.ambiguous, image == 70000)
    image[image == 70000] = 0
    assert np.array_equal(loaded.labels.id_image(), image)
    assert loaded.labels.class_names_of_objects().tolist() == [
        "Epithelial",
        "Lymphocyte",
        "Lymphocyte",
    ]


def test_json_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    root = cohort_in(tmp_path, ALL, CATEGORIES)
    path = root / "panoptic_val.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read(root).labels) == 3


def test_file_names_with_backslashes(tmp_path: Path) -> None:
    root = cohort_in(tmp_path, ALL, CATEGORIES)
    for name in ("panoptic_val", "team"):
        (root / name / "sub").mkdir()
        (root / name / "a_1.png").rename(root / name / "sub" / "a_1.png")
        path = root / f"{name}.json"
        table = json.loads(path.read_text())
        table["annotations"][0]["file_name"] = "sub\\a_1.png"
        path.write_text(json.dumps(table))
    assert len(read(root).labels) == 3


def test_with_stuff_in_the_background_no_segment_is_void(tmp_path: Path) -> None:
    info = segments((5, 7, 0), (300, 40, 0), (70000, 7, 0), (256**3 - 1, 3, 0))
    loaded = read(cohort_in(tmp_path, info, [*CATEGORIES, STUFF]))
    assert loaded.findings == ()
    assert loaded.labels.ids.tolist() == [5, 70000, 256**3 - 1]
    assert loaded.ambiguous is not None
    assert np.array_equal(loaded.ambiguous, ids() == 0)


def test_png_and_json_that_disagree_are_reported(tmp_path: Path) -> None:
    info = segments((5, 7, 0), (300, 3, 0), (70000, 7, 0), (12, 3, 0))
    loaded = read(cohort_in(tmp_path, info, CATEGORIES))
    assert [(f.kind, f.object_ids) for f in loaded.findings] == [
        (FindingKind.VANISHED, (12,)),
        (FindingKind.UNKNOWN_CLASS, (256**3 - 1,)),
    ]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.pop("categories"), "the key 'categories' is missing"),
        (lambda t: t["categories"].clear(), "categories .* are not described"),
        (lambda t: t["annotations"].append(t["annotations"][0]), "several annotations"),
        *(
            (lambda t, name=name: t["annotations"][0].update(file_name=name), match)
            for name, match in (
                *((name, "in the folder of the PNG") for name in ("../a_1.png", "", "/", "C:a")),
                *((name, "expected the name of a region") for name in (" .png", "\t.png")),
                *((name, "expected a text as file_name") for name in (None, 1, ["a.png"])),
            )
        ),
    ],
)
def test_a_wrong_json_says_what_is_wrong(change: Any, match: str, tmp_path: Path) -> None:
    root = cohort_in(tmp_path, ALL, CATEGORIES)
    table = json.loads((root / "panoptic_val.json").read_text())
    change(table)
    (root / "panoptic_val.json").write_text(json.dumps(table))
    (root / "images" / "a_1.png").unlink()
    with pytest.raises(CohortError, match=match):
        open_cohort(root)


def test_a_wrong_png(tmp_path: Path) -> None:
    root = cohort_in(tmp_path, ALL, CATEGORIES)
    Image.fromarray(np.zeros(SHAPE, np.uint8)).save(root / "panoptic_val" / "a_1.png")
    with pytest.raises(UnreadableFileError, match="R \\+ 256 G"):
        read(root)
    (root / "panoptic_val" / "a_1.png").unlink()
    with pytest.raises(UnreadableFileError, match="there is no such file"):
        read(root)


def data_set(root: Path, categories: list[dict[str, Any]]) -> Path:
    """Write a data set as it is distributed, without a description, and a team's predictions."""
    path = cohort_in(root, ALL, categories)
    (path / "cohort.toml").unlink()
    (path / "Teams").mkdir()
    for name in ("team.json", "team"):
        (path / name).rename(path / "Teams" / name)
    return path


def test_a_data_set_needs_no_description(tmp_path: Path) -> None:
    cohort = open_cohort(data_set(tmp_path, [*CATEGORIES, STUFF]))
    assert cohort.findings == ()
    assert cohort.scheme.names == ("epithelial", "Lymphocyte")
    assert cohort.scheme.colours == ((9, 9, 9), (1, 1, 1))
    assert cohort.scheme.ambiguous is None
    (region,) = cohort.regions
    assert region.image == tmp_path / "images" / "a_1.png"
    for files in (region.reference, *cohort.predictions["team", "a_1"].values()):
        assert files is not None
        loaded = load_masks(files, cohort.scheme, shape=SHAPE)
        assert loaded.labels.ids.tolist() == [5, 300, 256**3 - 1]


@pytest.mark.parametrize("called", ["ambiguous", "unsure"])
def test_a_category_of_crowds_alone_or_of_the_name_is_the_excluded_area(
    called: str, tmp_path: Path
) -> None:
    area = {"id": 9, "name": called, "isthing": 1}
    info = segments((5, 7, 0), (300, 3, 0), (70000, 9, int(called == "unsure")))
    path = data_set(tmp_path, [*CATEGORIES, area])
    table = json.loads((path / "panoptic_val.json").read_text())
    table["annotations"][0]["segments_info"] = info
    (path / "panoptic_val.json").write_text(json.dumps(table))
    scheme = open_cohort(path).scheme
    assert scheme.ambiguous == called
    assert scheme.names == ("epithelial", "Lymphocyte")


def test_classes_without_colours_get_different_ones(tmp_path: Path) -> None:
    things = [{"id": n, "name": f"c{n}"} for n in (7, 3, 9)]
    colours = open_cohort(data_set(tmp_path, things)).scheme.colours
    assert len(set(colours)) == 3


@pytest.mark.parametrize("categories", [[], [{"id": 7, "name": "A"}, {"id": 3, "name": "a"}]])
def test_a_data_set_without_classes_of_different_names_is_refused(
    categories: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = data_set(tmp_path, CATEGORIES)
    (path / "panoptic_val.json").write_text(
        json.dumps({"images": [], "annotations": [], "categories": categories})
    )
    with pytest.raises(CohortError, match=r"different names.*cohort\.toml"):
        open_cohort(path)
