"""CellViT, ASAP, HALO and the Digital Slide Archive; and files of programs that none reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.formats.polygons.shapes import contains, ellipse, rectangle
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    MaskFiles,
    OutlineRules,
    Source,
    Vertices,
)
from tests.support.builders import annotation_xml, square
from tests.support.outlines import read_outlines

DATA = Path(__file__).resolve().parents[3] / "data" / "formats"
SHAPE = (30, 32)


def loaded(path: Path, source: Source) -> LoadedMasks:
    return load_masks(MaskFiles(source, {"": (path,)}), MONUSAC_CLASSES, shape=SHAPE)


def boxes(*filled: tuple[int, int, int, int, int]) -> NDArray[np.int64]:
    """Draw ids over rows and columns, ends included in neither."""
    image = np.zeros(SHAPE, np.int64)
    for id_, top, bottom, left, right in filled:
        image[top:bottom, left:right] = id_
    return image


def saved(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(text.encode("latin-1"))
    return path


def classes(masks: LoadedMasks) -> list[str]:
    return [str(name) for name in masks.labels.class_names_of_objects()]


# --- CellViT --------------------------------------------------------------------------------------

CELLS = {
    "wsi_metadata": {"extension": "svs", "base_magnification": 40},
    "processed_patches": ["0_0"],
    "type_map": {"0": "Background", "1": "Epithelial", "2": "Lymphocyte"},
    "cells": [
        {
            "bbox": [[2, 2], [7, 9]],
            "centroid": [5.0, 4.0],
            "contour": [[2, 2], [2, 6], [8, 6], [8, 2]],
            "type_prob": 0.875,
            "type": 1,
            "patch_coordinates": [0, 0],
            "cell_status": 0,
            "offset_global": [0, 0],
        },
        {"contour": [[12, 12], [12, 15], [15, 15], [15, 12]], "type": 2, "type_prob": None},
    ],
}


def test_contours_of_cellvit_are_pixels(tmp_path: Path) -> None:
    masks = loaded(saved(tmp_path, "cells.json", CELLS), Source.CELLVIT)
    assert np.array_equal(masks.labels.id_image(), boxes((1, 2, 7, 2, 9), (2, 12, 16, 12, 16)))
    assert classes(masks) == ["Epithelial", "Lymphocyte"]
    np.testing.assert_array_equal(masks.labels.scores, [0.875, np.nan])


def test_centres_of_cellvit_are_refused(tmp_path: Path) -> None:
    cells = {"type_map": {}, "cells": [{"centroid": [1, 2], "type": 1}]}
    with pytest.raises(UnreadableFileError, match=r"use cells\.json"):
        loaded(saved(tmp_path, "cell_detection.json", cells), Source.CELLVIT)


# --- ASAP -----------------------------------------------------------------------------------------

ASAP = """<?xml version="1.0"?>
<ASAP_Annotations>
  <Annotations>
    <Annotation Name="Annotation 0" Type="Polygon" PartOfGroup="Epithelial" Color="#F4FA58">
      <Coordinates>
        <Coordinate Order="0" X="2" Y="2" />
        <Coordinate Order="2" X="8" Y="6" />
        <Coordinate Order="1" X="8" Y="2" />
        <Coordinate Order="3" X="2" Y="6" />
      </Coordinates>
    </Annotation>
    <Annotation Name="Annotation 1" Type="Dot" PartOfGroup="Lymphocyte" Color="#F4FA58">
      <Coordinates><Coordinate Order="0" X="20" Y="20" /></Coordinates>
    </Annotation>
    <Annotation Name="Annotation 2" Type="Rectangle" PartOfGroup="Ambiguous" Color="#F4FA58">
      <Coordinates>
        <Coordinate Order="0" X="10" Y="10" /><Coordinate Order="1" X="14" Y="10" />
        <Coordinate Order="2" X="14" Y="13" /><Coordinate Order="3" X="10" Y="13" />
      </Coordinates>
    </Annotation>
    <Annotation Name="Annotation 3" Type="Polygon" PartOfGroup="None" Color="#F4FA58">
      <Coordinates>
        <Coordinate Order="0" X="20" Y="20" /><Coordinate Order="1" X="24" Y="20" />
        <Coordinate Order="2" X="24" Y="24" />
      </Coordinates>
    </Annotation>
  </Annotations>
  <AnnotationGroups>
    <Group Name="Epithelial" PartOfGroup="None" Color="#00ff00"><Attributes /></Group>
  </AnnotationGroups>
</ASAP_Annotations>
"""


def test_polygons_of_asap(tmp_path: Path) -> None:
    masks = loaded(saved(tmp_path, "a.xml", ASAP), Source.ASAP)
    assert np.array_equal(masks.labels.id_image(), boxes((1, 2, 6, 2, 8)))
    assert classes(masks) == ["Epithelial"]
    assert masks.ambiguous is not None
    assert np.array_equal(masks.ambiguous, boxes((1, 10, 13, 10, 14)) > 0)
    assert [finding.kind for finding in masks.findings] == ["fallback", "unknown-class"]


@pytest.mark.parametrize(
    "damaged",
    [ASAP[:-60], ASAP.replace('X="8" Y="2"', 'Y="2"'), ASAP.replace('X="8"', 'X="nan"'), "<A/>"],
)
def test_damaged_asap_is_refused(damaged: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="expected ASAP XML"):
        loaded(saved(tmp_path, "a.xml", damaged), Source.ASAP)


# --- HALO -----------------------------------------------------------------------------------------


def test_regions_of_halo_are_those_of_pyhaloxml() -> None:
    """The GeoJSON is what pyhaloxml 3.1.2 made of the same file."""
    ours = loaded(DATA / "halo.annotations", Source.HALO)
    theirs = loaded(DATA / "halo_by_pyhaloxml.geojson", Source.GEOJSON)
    assert classes(ours) == ["Epithelial", "Epithelial", "Lymphocyte"] == classes(theirs)
    for id_ in (1, 2):
        expected = theirs.labels.id_image() == id_
        assert np.array_equal(ours.labels.id_image() == id_, expected)
    assert (ours.labels.index == 1).sum() == 12 * 10 - 4 * 3  # one with a hole
    # The same ellipse by other vertices.
    different = (ours.labels.index == 3) != (theirs.labels.index == 3)
    assert different.sum() <= 2
    assert [f.message for f in ours.findings] == ["1 region without an area (Ruler) left out"]


def test_a_hole_outside_of_all_regions_has_no_effect(tmp_path: Path) -> None:
    text = (DATA / "halo.annotations").read_text()
    moved = text.replace('X="5" Y="5"', 'X="28" Y="28"')
    masks = loaded(saved(tmp_path, "a.annotations", moved), Source.HALO)
    assert (masks.labels.index == 1).sum() == 12 * 10
    assert {finding.message for finding in masks.findings} == {
        "1 region without an area (Ruler) left out",
        "1 negative region outside of all regions of their layer left out",
    }


# --- Digital Slide Archive ------------------------------------------------------------------------

ELEMENTS = [
    {
        "type": "polyline",
        "closed": True,
        "points": [[2, 2, 0], [8, 2, 0], [8, 6, 0], [2, 6, 0]],
        "holes": [[[3, 3, 0], [5, 3, 0], [5, 5, 0], [3, 5, 0]]],
        "group": "Epithelial",
    },
    {"type": "polyline", "points": [[0, 0, 0], [20, 20, 0], [0, 20, 0]], "group": "Epithelial"},
    {
        "type": "rectangle",
        "center": [20, 10, 0],
        "width": 4,
        "height": 8,
        "rotation": np.pi / 2,
        "label": {"value": "Lymphocyte"},
    },
    {"type": "circle", "center": [10, 20, 0], "radius": 4},
    {"type": "point", "center": [1, 1, 0]},
]


@pytest.mark.parametrize("wrapped", [False, True])
def test_elements_of_the_slide_archive(wrapped: bool, tmp_path: Path) -> None:
    annotation: Any = {"name": "Macrophage", "elements": ELEMENTS}
    content = [{"_id": "0", "annotation": annotation}] if wrapped else annotation
    masks = loaded(saved(tmp_path, "a.json", content), Source.DSA)
    image = masks.labels.id_image()
    expected = boxes((1, 2, 6, 2, 8), (2, 8, 12, 16, 24))
    expected[3:5, 3:5] = 0
    assert np.array_equal(np.where(image == 3, 0, image), expected)
    assert classes(masks) == ["Epithelial", "Lymphocyte", "Macrophage"]
    y, x = np.indices(SHAPE) + 0.5
    assert np.array_equal(image == 3, (x - 10) ** 2 + (y - 20) ** 2 <= 16)
    assert [finding.message for finding in masks.findings] == [
        "1 open line left out",
        "1 element without an area (point) left out",
    ]


@pytest.mark.parametrize(
    "content",
    [
        {"elements": [{"type": "circle", "center": [1, 1, 0]}]},
        {"elements": [{"type": "polyline", "closed": True, "points": [1, 2, 3]}]},
        {"elements": [5]},
        {
            "elements": [
                {"type": "circle", "center": [5, 5, z], "radius": 3}
                for z in (0, 1)  # on two planes
            ]
        },
        {"name": "a"},
        [[]],
        5,
    ],
)
def test_damaged_elements_are_refused(content: Any, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="expected DSA"):
        loaded(saved(tmp_path, "a.json", content), Source.DSA)


# --- JSON as programs write it --------------------------------------------------------------------

SQUARE = [[2, 2], [9, 2], [9, 9], [2, 9]]
ODD = float("nan")
TABLES: dict[Source, Any] = {
    Source.CELLVIT: {"cells": [{"contour": SQUARE, "type": "Epithelial", "type_prob": ODD}]},
    Source.HOVERNET: {
        "nuc": {"1": {"centroid": [ODD, 1], "contour": SQUARE, "type": 1, "type_prob": ODD}}
    },
    Source.COCO_INSTANCES: {
        "images": [{"id": 1, "file_name": "a.png"}],
        "annotations": [
            {
                "image_id": 1,
                "category_id": 1,
                "area": ODD,
                "score": ODD,
                "segmentation": [[*SQUARE[0], *SQUARE[1], *SQUARE[2], *SQUARE[3]]],
            }
        ],
        "categories": [{"id": 1, "name": "Epithelial"}],
    },
    Source.DSA: {
        "elements": [{"type": "polyline", "closed": True, "points": SQUARE, "lineWidth": ODD}],
        "name": "Epithelial",
    },
    Source.GEOJSON: {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [[*SQUARE, SQUARE[0]]]},
        "properties": {"classification": "Epithelial", "measurements": {"a": ODD}},
    },
}


@pytest.mark.parametrize("source", TABLES)
def test_json_with_a_byte_order_mark_and_nan_is_read(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    (tmp_path / "type_info.json").write_text('\ufeff{"1": ["Epithelial", [1, 2, 3]]}', "utf-8")
    path.write_text("\ufeff" + json.dumps(TABLES[source]), "utf-8")
    masks = loaded(path, source)
    assert np.count_nonzero(masks.labels.id_image() == 1) >= 49
    assert classes(masks) == ["Epithelial"]
    has_score = '"type_prob"' in path.read_text("utf-8") or '"score"' in path.read_text("utf-8")
    odd = [
        finding for finding in masks.findings if "score is not a finite number" in finding.message
    ]
    assert [finding.object_ids for finding in odd] == [(1,)] * has_score


# --- outlines through pixel centres ---------------------------------------------------------------

CONTOURS = [
    [(x + 4, y), (x, y + 4), (x, y + 6), (x + 4, y + 10), (x + 8, y + 6), (x + 8, y + 4)]
    for x, y in ((2, 2), (16, 2), (2, 16), (16, 16))
]
"""As OpenCV traces them."""


def in_asap(folder: Path) -> Path:
    outlines = [
        f'<Annotation Name="a" Type="Polygon" PartOfGroup="Epithelial"><Coordinates>{"".join(ring)}'
        "</Coordinates></Annotation>"
        for ring in ([f'<Coordinate X="{x}" Y="{y}"/>' for x, y in own] for own in CONTOURS)
    ]
    content = f"<ASAP_Annotations><Annotations>{''.join(outlines)}</Annotations></ASAP_Annotations>"
    return saved(folder, "a.asap.xml", content)


def in_halo(folder: Path) -> Path:
    outlines = [
        f'<Region Type="Polygon" NegativeROA="0"><Vertices>{"".join(ring)}</Vertices></Region>'
        for ring in ([f'<V X="{x}" Y="{y}"/>' for x, y in own] for own in CONTOURS)
    ]
    layer = f'<Annotation Name="Epithelial"><Regions>{"".join(outlines)}</Regions></Annotation>'
    return saved(folder, "a.annotations", f"<Annotations>{layer}</Annotations>")


def in_dsa(folder: Path) -> Path:
    elements = [
        {"type": "polyline", "closed": True, "points": [[*point, 0] for point in own]}
        for own in CONTOURS
    ]
    return saved(folder, "a.dsa.json", {"name": "Epithelial", "elements": elements})


def in_coco(folder: Path) -> Path:
    annotations = [
        {"id": id_, "image_id": 1, "category_id": 1, "segmentation": [np.ravel(own).tolist()]}
        for id_, own in enumerate(CONTOURS, start=1)
    ]
    categories = [{"id": 1, "name": "Epithelial"}]
    images = [{"id": 1, "file_name": "a.png"}]
    table = {"images": images, "annotations": annotations, "categories": categories}
    return saved(folder, "a.coco.json", table)


@pytest.mark.parametrize(
    ("write", "source"),
    [
        (in_asap, Source.ASAP),
        (in_halo, Source.HALO),
        (in_dsa, Source.DSA),
        (in_coco, Source.COCO_INSTANCES),
    ],
)
def test_contours_of_opencv_are_listed_and_read_as_the_cohort_states(
    write: Callable[[Path], Path], source: Source, tmp_path: Path
) -> None:
    path = write(tmp_path)
    (finding,) = loaded(path, source).findings
    assert finding.message.startswith("4 outlines like OpenCV contours")
    rules = OutlineRules(vertices=Vertices.PIXEL_CENTRES)
    files = MaskFiles(source, {"": (path,)}, rules=rules)
    masks = load_masks(files, MONUSAC_CLASSES, shape=SHAPE)
    y, x = np.indices((11, 9))
    own = (np.abs(x - 4) + np.abs(y - 5) <= 5) & (np.abs(x - 4) <= 4)
    expected = np.zeros(SHAPE, np.int64)
    for id_, (left, top) in enumerate(((2, 2), (16, 2), (2, 16), (16, 16)), start=1):
        expected[top : top + 11, left : left + 9][own] = id_
    assert np.array_equal(masks.labels.id_image(), expected)
    assert not masks.findings


# --- shapes ---------------------------------------------------------------------------------------


def area(ring: NDArray[np.float64]) -> float:
    (x, y), (after_x, after_y) = ring.T, np.roll(ring, -1, axis=0).T
    return float(abs((x * after_y - y * after_x).sum()) / 2)


@pytest.mark.parametrize("turned", [0.0, 0.3, 2.0])
def test_shapes_have_their_areas(turned: float) -> None:
    assert area(rectangle((5, 6), (2, 3), turned)) == pytest.approx(24)
    assert area(ellipse((5, 6), (2, 3), turned)) == pytest.approx(6 * np.pi)
    assert rectangle((5, 6), (2, 3), turned).mean(axis=0) == pytest.approx((5, 6))


def test_what_a_ring_contains() -> None:
    ring = np.array([(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (2.0, 1.0), (0.0, 4.0)])
    assert contains(ring, (1, 1))
    assert not contains(ring, (2, 3))
    assert not contains(ring, (5, 1))
    assert not contains(np.zeros((0, 2)), (0, 0))


# --- recognition ----------------------------------------------------------------------------------

NUCLEI = {
    "1": {
        "bbox": [[2, 2], [6, 8]],
        "centroid": [4.5, 3.5],
        "contour": [[2, 2], [2, 5], [7, 5], [7, 2]],
        "type_prob": 0.75,
        "type": 1,
    },
    "2": {"bbox": [], "centroid": [], "contour": [[12, 12], [12, 15], [15, 15]], "type": 2},
}
"""What HoVer-Net writes under "nuc", as some programs save it alone."""
MANY_IMAGES = {
    "info": {},
    "licenses": [],
    "images": [
        {"id": id_, "file_name": f"TCGA-XX-{id_:06d}_region.png", "width": 1000, "height": 1000}
        for id_ in range(1200)
    ],
    "annotations": [
        {"id": 1, "image_id": 0, "category_id": 1, "segmentation": [[1, 1, 5, 1, 5, 5]]},
    ],
    "categories": [{"id": 1, "name": "a"}],
}
"""The images alone take more than 100,000 bytes."""
BOXES = {"id": 1, "image_id": 0, "category_id": 1, "bbox": [1, 1, 5, 5]}
SAM_MASK = {
    "segmentation": {"size": [30, 32], "counts": "0"},
    "area": 24,
    "bbox": [2, 2, 6, 4],
    "predicted_iou": 0.875,
    "point_coords": [[4.5, 3.5]],
    "stability_score": 0.96875,
    "crop_box": [0, 0, 32, 30],
}
HISTOPLUS_CELL = {
    "cell_id": 1,
    "cell_type": "Plasmocyte",
    "confidence": 0.5,
    "coordinates": [[2.0, 2.0], [8.0, 2.0], [8.0, 6.0]],
    "centroid": [6.0, 3.0],
}
HISTOPLUS = {
    "model_name": "histoplus_v1",
    "inference_mpp": 0.25,
    "cell_masks": [
        {"x": 1, "y": 1, "level": 16, "width": 224, "height": 224, "masks": [HISTOPLUS_CELL]}
    ],
}
ADE20K = {
    "annotation": {
        "filename": "a.jpg",
        "imsize": [30, 32, 3],
        "object": [
            {"id": 0, "name": "cell", "name_ndx": 1, "polygon": {"x": [2, 8, 8], "y": [2, 2, 6]}}
        ],
    }
}
LABELME = """<annotation><filename>a.jpg</filename><object><name>cell</name><deleted>0</deleted>
<polygon><username>a</username><pt><x>2</x><y>2</y></pt><pt><x>8</x><y>2</y></pt></polygon>
</object></annotation>"""


def test_nuclei_of_hovernet_without_their_root(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.json", NUCLEI)
    masks = loaded(path, format_of(path))
    image = masks.labels.id_image()
    assert np.array_equal(image == 1, boxes((1, 2, 6, 2, 8)) == 1)
    assert masks.labels.ids.tolist() == [1, 2]
    np.testing.assert_array_equal(masks.labels.scores, [0.75, np.nan])
    cut = saved(tmp_path, "cut.json", json.dumps(NUCLEI)[:-40])
    with pytest.raises(UnreadableFileError, match="cut off"):
        loaded(cut, Source.HOVERNET)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", {"version": 3, "cohort": "x"}), ("a.xml", "<settings><a/></settings>")],
)
def test_unknown_content_is_of_no_format(name: str, content: Any, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="the content of none"):
        format_of(saved(tmp_path, name, content))


@pytest.mark.parametrize("name", ["a.zarr.zip", "pinst_pp.zip"])
def test_a_zipped_zarr_is_no_archive_of_rois(name: str, tmp_path: Path) -> None:
    store = zarr.storage.ZipStore(tmp_path / name, mode="w")
    zarr.create_array(store, data=np.ones((4, 4), np.int32), zarr_format=2)
    store.close()
    with pytest.raises(UnreadableFileError, match="zipped Zarr; unpack it"):
        format_of(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("cells.json", CELLS, Source.CELLVIT),
        ("a.xml", ASAP, Source.ASAP),
        ("a.xml", "<?xml version='1.0'?><!-- x --><Annotations/>", Source.IMAGESCOPE),
        ("a.json", {"name": "a", "elements": ELEMENTS}, Source.DSA),
        ("a.json", [{"image_id": 1, "category_id": 1, "segmentation": []}], Source.COCO_INSTANCES),
        ("a.json", {"images": [], "annotations": [], "categories": []}, Source.COCO_INSTANCES),
        ("a.json", {"type": "FeatureCollection", "features": []}, Source.GEOJSON),
        ("a.json", {"mag": 40, "nuc": {}}, Source.HOVERNET),
        ("a.annotations", "<Annotations/>", Source.HALO),
        ("a.json", NUCLEI, Source.HOVERNET),
        ("a.txt", "0 0.5 0.25 0.5 0.75 1 0.5\n", Source.YOLO),
        ("a.txt", "3 0.5 1e-05 0.5 0.75 1 0.5 0.875", Source.YOLO),
        ("a.json", [], Source.GEOJSON),
        ("a.json", [{"type": "Feature", "geometry": None}], Source.GEOJSON),
        ("a.json", MANY_IMAGES, Source.COCO_INSTANCES),
    ],
)
def test_files_are_recognised_by_their_content(
    name: str, content: Any, source: Source, tmp_path: Path
) -> None:
    assert format_of(saved(tmp_path, name, content)) == source


@pytest.mark.parametrize(
    ("name", "content", "tool"),
    [
        ("a.sqlite", "x", "SlideRunner"),
        ("a.qpdata", "x", "QuPath project"),
        ("a.json", {"shapes": [], "imagePath": "a.png"}, "labelme"),
        ("a.json", {"_via_img_metadata": {}}, "VGG Image Annotator"),
        ("a.json", {"images": [], "annotations": [{"segments_info": []}]}, "COCO panoptic"),
        ("a.xml", "<annotations>\n  <version>1.1</version></annotations>", "CVAT"),
        ("a.ndpa", "<annotations/>", "NDP"),
        ("a.db", "SQLite format 3 CREATE TABLE `Annotations_coordinates`", "SlideRunner"),
        ("a.qptiff", "x", "slide"),
        ("a.label", "\x89HDF\r\n", "HDF5"),
        ("a.json", {"annotations": [{"bbox": [], "category_id": 1}] * 2}, "cohort of detections"),
        ("a.json", {"type": "Multiple points", "points": []}, "grand-challenge"),
        ("a.xml", "<?xml version='1.0'?>\n<TrackMate version='7'/>", "TrackMate"),
        ("a.txt", "Image\tName\tCentroid X \u00b5m\n", "QuPath"),
        ("a.txt", "0 0.5 0.25 0.5 0.75\n1 0.5 0.25 0.5 0.75\n", "YOLO labels of boxes"),
        ("a.txt", "0 0.5 0.25 0.5 0.75 0.875", "YOLO labels of boxes"),
        ("a.json", [SAM_MASK], "Segment Anything"),
        ("a.json", {"image": {"image_id": 1}, "annotations": [SAM_MASK]}, "Segment Anything"),
        ("a.json", {"1": [3, [20.5, 7.25]], "2": [1, [4.0, 9.0]]}, "HoVer-NeXt"),
        ("a.json", HISTOPLUS, "Histoplus"),
        ("a.json", ADE20K, "ADE20K"),
        ("a.xml", LABELME, "LabelMe"),
        ("a.json", {**MANY_IMAGES, "annotations": [BOXES] * 2}, "cohort of detections"),
        ("a.json", {**MANY_IMAGES, "annotations": [{"segments_info": []}]}, "COCO panoptic"),
    ],
)
def test_files_of_other_programs_are_named(
    name: str, content: Any, tool: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, name, content)
    with pytest.raises(UnreadableFileError, match=tool):
        format_of(path)
    # So it is in a cohort that takes the file for something else.
    with pytest.raises(UnreadableFileError, match=f"expected .* This is .*{tool}"):
        loaded(path, Source.GEOJSON)


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"as in predictions\.cellvit"):
        loaded(saved(tmp_path, "a.json", CELLS), Source.HOVERNET)


HALO = """<Annotations>
  <Annotation LineColor="65535" Name="Epithelial" Visible="True">
    <Regions>
      <Region Type="Polygon" HasEndcaps="0" NegativeROA="0">
        <Vertices><V X="1" Y="1" /><V X="9" Y="1" /><V X="9" Y="9" /></Vertices>
        <Comments />
      </Region>
    </Regions>
  </Annotation>
</Annotations>
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_halo_is_refused_by_its_name(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.annotations"
    path.write_text(HALO, encoding=encoding)
    with pytest.raises(UnreadableFileError, match="found annotations of HALO") as told:
        read_outlines(Source.IMAGESCOPE, path)
    assert "export GeoJSON" in str(told.value)


def test_annotations_of_imagescope_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(annotation_xml(("Epithelial", [square(1, 1)])))
    assert len(read_outlines(Source.IMAGESCOPE, path).polygons) == 1


@pytest.mark.parametrize("name", ["nuc", "elements", "cells", "contour", "Multiple points"])
def test_a_class_named_like_a_key_of_another_format(tmp_path: Path, name: str) -> None:
    """GeoJSON with the class "nuc" was taken for HoVer-Net."""
    ring = [[0, 0], [9, 0], [9, 9], [0, 0]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {"classification": {"name": name}},
    }
    path = tmp_path / "a.json"
    for content in ({"type": "FeatureCollection", "features": [feature]}, [feature], feature):
        path.write_text(json.dumps(content))
        assert format_of(path) == Source.GEOJSON
    nuclei = {"1": {"contour": ring, "type": name}}
    path.write_text(json.dumps({"mag": None, "nuc": nuclei}))
    assert format_of(path) == Source.HOVERNET


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.geojson", '{"type": "FeatureCollection"}'.encode("utf-16"), "UTF-16; save it in UTF-8"),
        ("a.xml", "<Annotations/>".encode("utf-16"), "UTF-16; save it in UTF-8"),
        ("a.csv", b"cell_id,vertex_x,vertex_y\n1,2.5,3.5\n", "boundaries of cells"),
    ],
)
def test_texts_that_no_format_reads_are_named(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableFileError, match=said):
        format_of(tmp_path / name)
