"""Readers of other programs' and challenges' formats, with what they are fed."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import documents as doc
from fuzz import seeds
from fuzz.judge import check_findings
from fuzz.sound import check_masks, check_polygons
from fuzz.target import ONE_CLASS, SHAPE, Target, load, none, npy_good, one_of, unpacked
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.cohorts.detections import open_detection_cohort, read_detection_description
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.io.formats.labels.arrays import array_items
from napari_panoptic.io.formats.labels.coco_panoptic import panoptic_items
from napari_panoptic.io.formats.points.boxes import read_boxes
from napari_panoptic.io.formats.points.point_files import read_atypia, read_points
from napari_panoptic.io.formats.polygons.annotation_store import read_store
from napari_panoptic.io.formats.polygons.coco_instances import instance_items
from napari_panoptic.io.formats.polygons.hovernet import read_hovernet
from napari_panoptic.io.formats.polygons.imagej_rois import read_rois
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.io.images.volumes import (
    SPATIAL,
    Volume,
    read_mask,
    read_probabilities,
    read_volume,
)
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source

ARRAY_FILES = ("masks.npy", "ambiguous.npy", "regions.csv", "types.npy", "patch_info.csv")
COCO_FILES = ("panoptic.json", "panoptic/r.png", "panoptic/s.png")


# --- detections ---------------------------------------------------------------------------------


def read_point_file(path: Path) -> None:
    """Read points, or a score of atypia."""
    way = one_of(path, 4)
    if way == 0:
        found = read_atypia(path)
        assert found.score in (None, 1, 2, 3)
        return
    read = read_points(path, shape=SHAPE if way == 1 else None, is_reference=way < 3)
    check_findings(read.findings)
    points = read.points
    assert np.isfinite(points.xy_px).all()
    assert points.xy_px.shape == (len(points.ids), 2)
    assert points.confidence.shape == points.ids.shape
    assert (np.diff(points.ids) > 0).all()


def read_box_file(path: Path) -> None:
    """Read boxes of one category or the other as points."""
    found = read_boxes(path, None if one_of(path, 2) else "hard negative")
    check_findings(found.findings)
    for name in found.names:
        points, _ = found.of(name, path)
        assert np.isfinite(points.xy_px).all()
        assert points.xy_px.shape == (len(points.ids), 2)
        assert not np.isinf(points.confidence).any()
        assert len(set(points.ids.tolist())) == len(points)


def _box_goods() -> list[Any]:
    images = [{"id": n, "file_name": f"{n:03d}.tiff", "width": 16, "height": 12} for n in (1, 2)]
    categories = [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}]
    entry = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1.5, 2, 9.5, 10]}
    others = [entry | {"id": 2, "category_id": 2}, entry | {"id": 3, "image_id": 2, "score": 0.5}]
    return [{"images": images, "categories": categories, "annotations": [entry, *others]}]


def read_detection_cohort(path: Path) -> None:
    """Open a folder of detections by its description."""
    with suppress(PanopticError):
        read_detection_description(path)
    _touch(path, "A_1.png", "A_1.csv", "A_1_no.csv", "a/A_2.png", "teams/t/A_1.csv")
    cohort = open_detection_cohort(path.parent)
    check_findings(cohort.findings)
    assert cohort.frames
    for frame in cohort.frames:
        mpp = frame.mpp_xy
        assert mpp is None or all(math.isfinite(value) and value > 0 for value in mpp)


def _touch(path: Path, *names: str) -> None:
    for name in names:
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).touch()


def _point_goods() -> list[Any]:
    return [
        [[1, 2, 0.5], [3.25, 4], [5, 6, 0.75, ""]],
        [[1, 2, 1, 3, 2, 3, 2, 2], [5, 6]],
        [[2, 0.5]],
        [[3]],
    ]


def _detection_cohort_goods() -> list[Any]:
    files = {
        "image": ["{region}.png", "a/{region}.png"],
        "reference": "{region}.csv",
        "predictions": ["teams/{team}/{region}.csv"],
        "ignore": "{region}_no.csv",
        "patient": "(?P<patient>.+)_[0-9]+",
        "atypia": {"reference": "{region}.csv", "predictions": "teams/{team}/{region}.csv"},
    }
    several = {"A*": 0.25, "*": [0.25, 0.5]}
    return [{"task": "detections", "name": "x", "mpp": mpp, "files": files} for mpp in (several, 1)]


# --- several raters -----------------------------------------------------------------------------


def read_raters_cohort(path: Path) -> None:
    """Open a folder of several raters by its description."""
    _touch(path, "c-flair.png", "r1/c_s.png", "r2/c_s.png", "r2/c.xml", "teams/t/c_s.tif")
    _touch(path, "d/image.nii.gz", "d/s_seg01.nii.gz", "d/s_seg02.nii.gz", "teams/t/d/s.nii.gz")
    cohort = open_raters(path.parent)
    check_findings(cohort.findings)
    assert cohort.cases
    assert cohort.structures
    assert cohort.raters
    assert all(0 < level <= 1 for level in cohort.settings.levels)


def read_nifti(path: Path) -> None:
    """Read NIfTI; now and then compressed, and now and then cut off."""
    way = one_of(path, 5)
    if way < 2:
        packed = path.with_suffix(".nii.gz")
        content = gzip.compress(path.read_bytes(), 1, mtime=0)
        packed.write_bytes(content[: len(content) - 12 * way])
        path = packed
    _read_volume(path, one_of(path, 3))


def read_any_volume(path: Path) -> None:
    """Read a TIFF, PNG or NPY as an image, a mask or a probability map."""
    _read_volume(path, one_of(path, 3))


def _read_volume(path: Path, way: int) -> None:
    if way == 0:
        _check_volume(read_volume(path, "an image"))
        return
    volume = (read_mask if way == 1 else read_probabilities)(path, "a file")
    _check_volume(volume)
    assert volume.values.ndim in SPATIAL
    if way == 1:
        assert volume.values.dtype == np.bool_
    else:
        assert volume.values.dtype.kind == "f"
        assert ((volume.values >= 0) & (volume.values <= 1)).all()


def _check_volume(volume: Volume) -> None:
    check_findings(volume.findings)
    assert volume.values.size
    assert volume.values.ndim >= 2
    if volume.spacing_mm is not None:
        assert all(math.isfinite(size) and size > 0 for size in volume.spacing_mm)
    assert volume.affine is None or volume.affine.shape == (4, 4)


def _raters_cohort_goods() -> list[Any]:
    levels = {"at": [0.1, 0.5], "equal": "at-least", "both_empty": "one"}
    plain = {
        "image": "{case}-{modality}.png",
        "raters": ["{rater}/{case}_{structure}.png"],
        "predictions": "teams/{team}/{case}_{structure}.tif",
    }
    objects = {"raters": {"imagescope": "{rater}/{case}.xml"}}
    classes = {"Epithelial": [255, 0, 0], "Lymphocyte": [255, 255, 0]}
    return [
        {"task": "raters", "name": "x", "files": plain, "levels": levels},
        {"task": "raters", "files": objects, "classes": classes, "ambiguous": {"name": "A"}},
        {"task": "raters"},
    ]


def _nifti_goods() -> list[Any]:
    mask = np.stack([seeds.two_objects()] * 2, axis=-1)

    def good(array: Any, code: int, **more: Any) -> dict[str, Any]:
        header = {
            "sizeof_hdr": 348,
            "dim": [array.ndim, *array.shape, *[1] * (7 - array.ndim)],
            "datatype": code,
            "bitpix": array.dtype.itemsize * 8,
            "pixdim": [1.0, 0.5, 0.5, 2.0, 1.0, 1.0, 1.0, 1.0],
            **{"vox_offset": 352.0, "scl_slope": 1.0, "scl_inter": 0.0, "xyzt_units": 2},
            **{"qform_code": 1, "sform_code": 1, "srow_x": [0.5, 0.0, 0.0, 0.0]},
            **{"srow_y": [0.0, 0.5, 0.0, 0.0], "srow_z": [0.0, 0.0, 2.0, 0.0], "magic": "n+1"},
        }
        return {"header": header | more, "data": doc.array_hex(array, order="F")}

    ones = (mask > 0).astype(np.uint8)
    return [
        good(ones, 2),
        good((ones / np.float32(2)), 16),
        good(ones[..., 0].astype(np.float64), 64),
        good(ones.astype(np.int16), 4, scl_slope=0.5, sform_code=0),
        good(ones.astype(np.complex64), 32),
        good(ones[..., None, None], 2),
    ]


def _volume_goods() -> list[Any]:
    mask = seeds.two_objects() > 0
    deep = np.stack([mask, ~mask])
    return [
        npy_good(mask),
        npy_good(deep.astype(np.float32) / 2),
        npy_good(deep.astype(np.uint16) * 65535),
        npy_good(mask.astype(np.uint8) * 255),
    ]


def _volume_seeds() -> list[bytes]:
    mask = (seeds.two_objects() > 0).astype(np.uint8)
    deep = np.stack([mask, mask])
    return [
        seeds.png(mask * 255),
        seeds.png(mask.astype(np.uint16)),
        seeds.png(np.stack([mask] * 3, axis=-1)),
        seeds.tiff(deep * np.uint8(255), photometric="minisblack"),
        seeds.tiff(deep.astype(np.float32), photometric="minisblack", compression="adobe_deflate"),
    ]


# --- files of many regions ----------------------------------------------------------------------


def read_pannuke(path: Path) -> None:
    """Read an array of PanNuke with what lies beside it, from one input."""
    _read_array(path, Source.PANNUKE)


def read_conic(path: Path) -> None:
    """Read an array of CoNIC with what lies beside it, from one input."""
    _read_array(path, Source.CONIC)


def _read_array(path: Path, source: Source) -> None:
    array = unpacked(path, ARRAY_FILES) / "masks.npy"
    for item in islice(array_items(array), 3):
        _check_item(item.name)
        files = MaskFiles(source, {"": (array, *item.paths)}, item.key)
        check_masks(load_masks(files, ONE_CLASS, shape=reference_shape(None, [files])))


def _check_item(name: str) -> None:
    assert name
    name.encode("utf-8")


def read_coco(path: Path) -> None:
    """Read a COCO panoptic JSON with two pictures, from one input."""
    listed = unpacked(path, COCO_FILES) / "panoptic.json"
    for item in islice(panoptic_items(listed), 3):
        files = MaskFiles(Source.COCO_PANOPTIC, {"": (listed, *item.paths)}, item.key)
        check_masks(load_masks(files, MONUSAC_CLASSES, shape=reference_shape(None, [files])))


def _array_goods() -> list[Any]:
    mask = seeds.two_objects()
    two = np.stack([np.stack([mask, (mask > 0)], axis=-1).astype(np.int32)] * 2)

    def packed(array: Any) -> str:
        return "hex:" + seeds.npy(array).hex()

    def table(text: str) -> str:
        return "hex:" + text.encode().hex()

    return [
        {"masks.npy": packed(two), "regions.csv": table("region,patient\na,p\nb,q\n")},
        {"masks.npy": packed(two.astype(float)), "types.npy": packed(np.array(["Lung", "Liver"]))},
        {
            "masks.npy": packed(two.astype(np.uint8)),
            "patch_info.csv": table("patch_info\nt-1\nt-2\n"),
            "ambiguous.npy": packed(np.stack([mask == 1, mask == 2])),
        },
    ]


def _array_seeds() -> list[bytes]:
    """Give arrays whose headers are edited by hand: packing hides them from documents."""
    heads = [(2, 12, 16, 2), (2**31, 0, 0, 2), (10**9, 1, 0, 2), (0, 12, 16, 2), (2, 0, 16, 2)]
    none_ = np.zeros(0, np.int32)
    goods = [npy_good(none_, shape=list(head)) for head in heads]
    return [doc.pack_files({"masks.npy": "hex:" + doc.npy_bytes(good).hex()}) for good in goods]


def _coco_goods() -> list[Any]:
    mask = seeds.two_objects()
    rgb = np.stack([mask, np.zeros_like(mask), np.zeros_like(mask)], axis=-1).astype(np.uint8)
    picture = "hex:" + seeds.png(rgb).hex()
    segments = [
        {"id": 1, "category_id": 1, "iscrowd": 0, "area": 12, "bbox": [1, 1, 4, 3]},
        {"id": 2, "category_id": 2, "iscrowd": 1},
        {"id": 5, "category_id": 3},
    ]
    categories = [
        {"id": 1, "name": "Epithelial", "isthing": 1},
        {"id": 2, "name": "Lymphocyte"},
        {"id": 3, "name": "glass", "isthing": 0},
    ]
    annotations = [
        {"image_id": 1, "file_name": "r.png", "segments_info": segments},
        {"image_id": 2, "file_name": "s.png", "segments_info": segments[:1]},
    ]
    table = {"images": [], "annotations": annotations, "categories": categories}
    return [{"panoptic.json": table, "panoptic/r.png": picture, "panoptic/s.png": picture}]


# --- other programs -----------------------------------------------------------------------------


def read_hovernet_json(path: Path) -> None:
    """Read HoVer-Net JSON, or draw it."""
    if one_of(path, 2):
        check_polygons(read_hovernet(path, MONUSAC_CLASSES), MONUSAC_CLASSES)
    else:
        load(path, Source.HOVERNET)


def read_hovernet_mat(path: Path) -> None:
    """Read a ``.mat`` file of HoVer-Net or CoNSeP."""
    files = MaskFiles(Source.HOVERNET_MAT, {"": (path,)})
    check_masks(load_masks(files, MONUSAC_CLASSES, shape=reference_shape(None, [files])))


def outlines_of(source: Source) -> Callable[[Path], None]:
    """Return a reader of a format of outlines, which draws them."""

    def read(path: Path) -> None:
        load(path, source)

    return read


def read_coco_instances(path: Path) -> None:
    """Read COCO instances: each of the regions that the file lists."""
    for item in list(instance_items(path))[:3]:
        files = MaskFiles(Source.COCO_INSTANCES, {"": (path,)}, item.key)
        check_masks(load_masks(files, MONUSAC_CLASSES, shape=SHAPE))


def _coco_instance_goods() -> list[Any]:
    square = [[1, 1, 5, 1, 5, 4, 1, 4]]
    runs = {"size": [4, 4], "counts": [1, 2, 13]}
    packed = {"size": [4, 4], "counts": "12=0"}
    entry = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": square, "iscrowd": 0}
    other = {"id": 2, "image_id": 2, "category_id": 1, "segmentation": runs, "score": 0.5}
    return [
        {
            "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
            "annotations": [entry, other, entry | {"id": 3, "iscrowd": 1}],
            "categories": [{"id": 1, "name": "Epithelial"}],
        },
        [entry, other | {"segmentation": packed}],
    ]


def _cellvit_goods() -> list[Any]:
    square = [[1, 1], [5, 1], [5, 4], [1, 4]]
    cells = [{"contour": square, "type": 1, "type_prob": 0.5}, {"contour": square, "type": 7}]
    return [{"type_map": {"1": "Epithelial"}, "cells": cells}, {"type_map": None, "cells": []}]


def _dsa_goods() -> list[Any]:
    points = [[1, 1, 0], [5, 1, 0], [5, 4, 0]]
    line = {"type": "polyline", "closed": True, "points": points, "holes": [points]}
    circle = {"type": "circle", "center": [8, 6, 0], "radius": 2, "group": "Epithelial"}
    box = circle | {"type": "rectangle", "width": 4, "height": 2, "rotation": 1}
    label = {"label": {"value": "Lymphocyte"}}
    return [
        {"name": "Epithelial", "elements": [line, circle]},
        [{"annotation": {"name": "a", "elements": [box | label, line | {"group": "Ambiguous"}]}}],
    ]


def _xml(tag: str, *inside: Any, **attributes: str) -> dict[str, Any]:
    return {"tag": tag, **attributes, "in": list(inside)}


def _asap_goods() -> list[Any]:
    corners = ((1, 1), (5.5, 1), (5, 4))
    places = [
        _xml("Coordinate", Order=str(n), X=str(x), Y=str(y)) for n, (x, y) in enumerate(corners)
    ]
    own = [
        _xml("Annotation", _xml("Coordinates", *places), Type=kind, PartOfGroup=group)
        for kind, group in (("Polygon", "Epithelial"), ("Spline", "None"), ("Dot", "Ambiguous"))
    ]
    return [_xml("ASAP_Annotations", _xml("Annotations", *own)), _xml("ASAP_Annotations")]


def _halo_goods() -> list[Any]:
    corners = [_xml("V", X="1", Y="1"), _xml("V", X="6", Y="5")]
    regions = [
        _xml("Region", _xml("Vertices", *corners), Type=kind, NegativeROA=hole)
        for kind, hole in (("Rectangle", "0"), ("Ellipse", "1"), ("Polygon", "1"), ("Ruler", "0"))
    ]
    layer = _xml("Annotation", _xml("Regions", *regions), Name="Epithelial")
    return [_xml("Annotations", layer), _xml("Annotations")]


def read_roi_archive(path: Path) -> None:
    """Read ImageJ ROIs, or draw them."""
    if one_of(path, 2):
        check_polygons(read_rois(path, MONUSAC_CLASSES), MONUSAC_CLASSES)
    else:
        load(path, Source.IMAGEJ_ROI)


def _roi_goods() -> list[Any]:
    # roifile is imported before any input is judged.
    import roifile  # noqa: F401

    square = [[0, 0], [5, 0], [5, 4], [0, 4]]
    steps = [0, 8, 2, 1, 12, 2, 1, 12, 9, 4, 0, 9, 3, 1, 10, 4, 1, 9, 4, 4]
    box = [1, 1, 5, 6]
    return [
        [
            {"name": "Epithelial-0001.roi", "type": 0, "box": box, "points": square},
            {"name": "0002.roi", "type": 8, "box": box, "points": square, "group": 2},
            {"name": "Ambiguous/0003.roi", "type": 1, "box": box, "path": steps, "plane": 1},
            {"name": "Lymphocyte 4.roi", "type": 2, "box": box},
            {"name": "line.roi", "type": 3, "box": box},
        ],
        [],
    ]


def _roi_seeds() -> list[bytes]:
    packed = doc.roi_bytes(_roi_goods()[0])
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return [archive.read(info) for info in archive.infolist()]


def read_annotation_store(path: Path) -> None:
    """Read an annotation store, or draw it."""
    if one_of(path, 2):
        check_polygons(read_store(path, MONUSAC_CLASSES), MONUSAC_CLASSES)
    else:
        load(path, Source.ANNOTATION_STORE)


def read_preferences(path: Path) -> None:
    """Look at what napari's settings could hold for this plugin."""
    import json

    from napari_panoptic.viewer.state.preferences import Preferences

    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    values = values if isinstance(values, dict) else {"files": values}
    texts = {("review" if key == "files" else "desk", key): str(v) for key, v in values.items()}
    preferences = Preferences(texts)
    # Whatever this machine's napari remembers.
    preferences._settings = lambda: None  # type: ignore[method-assign]
    assert preferences.look
    assert preferences.order
    assert preferences.others
    assert preferences.last_cohort is None or preferences.last_cohort.is_dir()
    assert preferences.hidden_columns is not None
    chosen = preferences.review_file(Path("/c"))
    assert chosen is None or isinstance(chosen, Path)


def _hovernet_goods() -> list[Any]:
    square = [[1, 1], [5, 1], [5, 4], [1, 4]]
    nucleus = {"bbox": [[1, 1], [5, 6]], "centroid": [3.0, 2.5], "contour": square, "type": 1}
    other = {"contour": [[8, 6], [12, 6], [12, 9]], "type": "Lymphocyte", "type_prob": 0.5}
    return [
        {"mag": 40, "nuc": {"1": nucleus, "2": other}},
        {"nuc": {"7": nucleus | {"type": None}, "a": other | {"type": "Ambiguous"}}},
        {"mag": None, "nuc": {}},
    ]


def _hovernet_mat_goods() -> list[Any]:
    mask = seeds.two_objects()

    def variable(name: str, array: Any, kind: int, stored: int, **more: Any) -> dict[str, Any]:
        base = {"class": kind, "flags": 0, "dims": list(array.shape), "name": name, "more": []}
        return base | {"type": stored, "data": doc.array_hex(array, order="F"), **more}

    instances = variable("inst_map", mask, 12, 5)
    types = variable("inst_type", np.array([[1.0], [2.0]]), 6, 9)
    ids = variable("inst_uid", np.array([[2], [1]], np.int32), 12, 5, compressed=True)
    return [
        [instances, types],
        [instances, types, ids],
        [instances, variable("type_map", (mask > 0).astype(np.uint8), 9, 2)],
        [instances],
    ]


def _ring(*points: tuple[float, float]) -> bytes:
    closed = [*points, points[0]]
    return struct.pack("<I", len(closed)) + np.array(closed, "<f8").tobytes()


def _store_goods() -> list[Any]:
    ring = _ring((1, 1), (6, 1), (6, 5), (1, 5))
    polygon = struct.pack("<BII", 1, 3, 2) + ring + _ring((2, 2), (3, 2), (3, 3))
    several = struct.pack("<BII", 1, 6, 1) + polygon
    point = struct.pack("<BIdd", 1, 1, 1.5, 2.5)
    statements = [
        "CREATE TABLE metadata (key TEXT UNIQUE, value TEXT)",
        "CREATE TABLE annotations(id INTEGER PRIMARY KEY, geometry BLOB, properties TEXT)",
    ]
    rows: list[Any] = [
        ["annotations", [1, "hex:" + polygon.hex(), '{"type": "Epithelial"}']],
        ["annotations", [2, "hex:" + several.hex(), '{"class": {"name": "Ambiguous"}}']],
        ["annotations", [3, "hex:" + point.hex(), '{"type": 2}']],
    ]
    plain = [["metadata", ["compression", "null"]]]
    return [{"statements": statements, "rows": plain + rows}]


def _preferences_goods() -> list[Any]:
    # napari warns while it is imported: before any input is judged.
    import napari_panoptic.viewer.state.preferences  # noqa: F401

    return [
        {
            **{"colour_by": "status", "display": "outline", "order": "iou", "others": "shown"},
            **{"hidden_columns": "iou, id", "last_cohort": "/", "files": '{"/c": "/d"}'},
        }
    ]


CHALLENGE_TARGETS: dict[str, Target] = {
    "points": Target("a.csv", read_point_file, none, _point_goods, doc.csv_bytes),
    "boxes": Target("a.json", read_box_file, none, _box_goods, doc.json_bytes),
    "detection-cohort": Target(
        "cohort.toml", read_detection_cohort, none, _detection_cohort_goods, doc.toml_bytes, True
    ),
    "raters-cohort": Target(
        "cohort.toml", read_raters_cohort, none, _raters_cohort_goods, doc.toml_bytes, True
    ),
    "nifti": Target("a.nii", read_nifti, none, _nifti_goods, doc.nifti_bytes, True),
    "volume": Target("a.tif", read_any_volume, _volume_seeds, _volume_goods, doc.npy_bytes),
    "pannuke": Target("a.packed", read_pannuke, none, _array_goods, doc.pack_files, True),
    "conic": Target("a.packed", read_conic, none, _array_goods, doc.pack_files, True),
    "coco-panoptic": Target("a.packed", read_coco, none, _coco_goods, doc.pack_files, True),
    "hovernet": Target("a.json", read_hovernet_json, none, _hovernet_goods, doc.json_bytes),
    "hovernet-mat": Target("a.mat", read_hovernet_mat, none, _hovernet_mat_goods, doc.mat_bytes),
    "annotation-store": Target(
        "a.db", read_annotation_store, none, _store_goods, doc.sqlite_bytes, True
    ),
    "imagej-roi": Target("a.zip", read_roi_archive, _roi_seeds, _roi_goods, doc.roi_bytes),
    "coco-instances": Target(
        "a.json", read_coco_instances, none, _coco_instance_goods, doc.json_bytes
    ),
    "cellvit": Target("a.json", outlines_of(Source.CELLVIT), none, _cellvit_goods, doc.json_bytes),
    "dsa": Target("a.json", outlines_of(Source.DSA), none, _dsa_goods, doc.json_bytes),
    "asap": Target("a.xml", outlines_of(Source.ASAP), none, _asap_goods, doc.xml_bytes),
    "cellpose-outlines": Target(
        "a.txt", outlines_of(Source.CELLPOSE_OUTLINES), none, _point_goods, doc.csv_bytes
    ),
    "halo": Target("a.annotations", outlines_of(Source.HALO), none, _halo_goods, doc.xml_bytes),
    "preferences": Target("a.json", read_preferences, none, _preferences_goods, doc.json_bytes),
}
"""Name -> reader."""
