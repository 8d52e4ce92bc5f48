"""Good files and documents to begin with: small ones made here, and small pieces of real ones.

Formats that libraries or tests write have files; the others have documents, which are plain values
as `fuzz.documents` writes them. All are the same in every run. A function is called when its reader
is tested, before any input: libraries that it imports may warn then.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import scipy.io
import scipy.sparse
import tifffile
from numpy.typing import NDArray
from PIL import Image

from fuzz.documents import zipped
from napari_panoptic.review.plan.design import draw
from napari_panoptic.review.plan.goal import PlanSetup
from napari_panoptic.review.plan.units import KINDS, Units
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.vocabulary import Verdict
from tests.support.builders import Points, annotation_xml, colour_mask, square, two_objects
from tests.support.paths import REPOSITORY, SHARED_CASES, contents
from tests.support.review_cases import subject
from tests.support.review_units import units_of_kinds
from tests.support.zarr_stores import FOREIGN, write_zarr

LARGEST_BYTES = 6000  # larger files are no seeds: inputs should be quick
MASK = two_objects()
FLAT = MASK.astype(np.uint16)
DEEP = np.stack([MASK > 0, MASK == 0])
RGB = colour_mask(MASK)


# --- real files ---------------------------------------------------------------------------------


def real_files(*patterns: str) -> list[bytes]:
    """Return small files among the shared cases, four of each pattern, if these are available."""
    found = []
    for pattern in patterns:
        paths = sorted(SHARED_CASES.glob(pattern))
        small = (path for path in paths if path.stat().st_size <= LARGEST_BYTES)
        found += [path.read_bytes() for path in islice(small, 4)]
    return found


def real_annotations() -> Iterator[bytes]:
    """Return the beginnings of real ImageScope files, with their first two regions."""
    for path in sorted(SHARED_CASES.glob("monusac/*/*/*.xml"))[:3]:
        text = path.read_text(encoding="utf-8", errors="replace")
        vertices = r"(<Vertices>(?:\s*<Vertex [^>]*>){8})(?:\s*<Vertex [^>]*>)*"
        head, *regions = re.split(r"(?=<Region )", text[: 4 * 10**5])
        regions = [re.sub(vertices, r"\1", region.split("</Region>")[0]) for region in regions[:2]]
        if regions:
            body = "</Region>".join([*regions, "</Regions></Annotation></Annotations>"])
            yield (head + body).encode()


def real_dump() -> list[bytes]:
    """Return the first lines of the organisers' output."""
    path = REPOSITORY / "tests" / "data" / "organisers_dump.txt"
    return [path.read_bytes()[:1500].rpartition(b"\n")[0]]


# --- files by their libraries -------------------------------------------------------------------


def _saved(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def tiff(array: NDArray[Any], **options: Any) -> bytes:
    return _saved(lambda file: tifffile.imwrite(file, array, **options))


def png(array: NDArray[Any], form: str = "PNG", **options: Any) -> bytes:
    return _saved(lambda file: Image.fromarray(array).save(file, form, **options))


def npy(array: NDArray[Any]) -> bytes:
    return _saved(lambda file: np.save(file, array))


def mat(options: dict[str, Any] | None = None, **variables: Any) -> bytes:
    content = _saved(lambda file: scipy.io.savemat(file, variables, **(options or {})))
    return re.sub(b"Created on: .{24}", b"Created on: ".ljust(36), content)


def npz_archives() -> list[bytes]:
    each = [("labels.npy", npy(MASK))], [("image.npy", npy(MASK)), ("masks.npy", npy(MASK))]
    return [*map(zipped, each), *(zipped(own, zipfile.ZIP_DEFLATED) for own in each)]


def _pngs() -> list[bytes]:
    """Return colours with texts and a resolution, a palette, and 16 bits."""
    palette = Image.fromarray(MASK.astype(np.uint8), "P")
    palette.putpalette([0, 0, 0, 255, 0, 0, 255, 255, 0])
    palette = _saved(lambda file: palette.save(file, "PNG", transparency=0))
    return [png(RGB, dpi=(300, 300)), palette, png(FLAT)]


def label_images() -> list[bytes]:
    ordered = np.asfortranarray(MASK.astype(np.int16))
    arrays = (MASK, MASK.astype(float), MASK > 0, MASK.astype(np.uint64), ordered)
    return [
        *(tiff(FLAT, compression=c) for c in (None, "adobe_deflate", "lzw")),
        tiff(FLAT, tile=(16, 16), predictor=True, compression="adobe_deflate"),
        tiff(np.stack([FLAT] * 3), photometric="minisblack"),
        tiff(FLAT, bigtiff=True, byteorder=">"),
        tiff(MASK.astype(np.float32), tile=(16, 16)),
        tiff(MASK.astype(np.uint32), byteorder=">"),
        *map(npy, (*arrays, np.stack([MASK, MASK], axis=-1).astype(np.float32))),
        png(MASK.astype(np.uint8)),
        *_pngs(),
    ]


def segmentations() -> list[Any]:
    others = {"outlines": MASK, "flows": [0.5, None, True], "filename": "a", "diameter": np.nan}
    masks = [[[1, 2], [3, 4]], FLAT]
    return [npy(np.array({"masks": own} | others, dtype=object)) for own in masks]


def _aperio() -> bytes:
    text = "Aperio Image Library v11.2.1 \r\n16x12 (16x16) RGB|AppMag = 40|MPP = 0.25"
    options: dict[str, Any] = {"metadata": None, "tile": (16, 16), "compression": "adobe_deflate"}
    return tiff(RGB, photometric="rgb", description=text, **options)


def colours() -> list[bytes]:
    whole: dict[str, Any] = {"photometric": "rgb", "planarconfig": "contig"}
    palette = np.zeros((3, 256), np.uint16)
    palette[:, 1:3] = [[65535, 65535], [0, 65535], [0, 0]]
    return [
        *(tiff(RGB, photometric="rgb", compression=c) for c in (None, "adobe_deflate")),
        _aperio(),
        tiff(RGB, **whole, compression="lzw", predictor=True),
        tiff(np.moveaxis(RGB, -1, 0), photometric="rgb", planarconfig="separate"),
        tiff(MASK.astype(np.uint8), photometric="palette", colormap=palette),
        *_pngs(),
        *(png(RGB, form) for form in ("BMP", "GIF", "WEBP")),
        png(np.dstack([RGB, np.full(MASK.shape, 255, np.uint8)])),
    ]


def slides() -> list[bytes]:
    return [
        *(_aperio(), tiff(RGB, photometric="rgb", resolution=(40_000, 40_000), resolutionunit=3)),
        tiff(RGB.astype(np.uint16) * 257, photometric="rgb"),
        *_pngs(),
        *(png(RGB, form) for form in ("JPEG", "BMP", "GIF", "WEBP")),
        png(RGB[..., 0]),
    ]


def submissions() -> list[bytes]:
    sparse = scipy.sparse.csc_matrix(MASK.astype(float))
    return [
        mat(n_ary_mask=MASK),
        mat({"do_compression": True}, img=MASK.astype(float)),
        mat(img=MASK > 0, x=MASK),
        mat(img=sparse, text="a"),
        mat(img=MASK, cell=np.array([1, "a"], object), struct={"a": MASK}),
        mat({"format": "4"}, img=MASK > 0, other=MASK),
        mat({"format": "4"}, img=MASK.astype(np.int16)),
    ]


def hovernet_mats() -> list[bytes]:
    types = {"inst_map": MASK, "inst_type": np.array([[1.0], [2.0]])}
    ids = np.array([[2], [1]], np.int32)
    return [
        *(mat(**types), mat({"do_compression": True}, **types, inst_uid=ids)),
        *(mat(inst_map=MASK, type_map=(MASK > 0).astype(np.uint8)), mat(inst_map=MASK)),
    ]


def niftis() -> list[bytes]:
    ones = (np.stack([MASK] * 2, axis=-1) > 0).astype(np.uint8)
    arrays = [ones, ones / np.float32(2), ones[..., 0].astype(np.float64), ones.astype(np.int16)]
    arrays += [ones.astype(np.complex64), ones[..., None, None]]
    found = []
    for array in arrays:
        image = nibabel.Nifti1Image(array, np.diag([0.5, 0.5, 2.0, 1.0]))
        image.header.set_xyzt_units("mm")
        found.append(image.to_bytes())
    return found


def volumes() -> list[bytes]:
    mask = (MASK > 0).astype(np.uint8)
    arrays = MASK > 0, DEEP.astype(np.float32) / 2, DEEP.astype(np.uint16) * 65535, mask * 255
    return [
        *map(npy, arrays),
        *(png(own) for own in (mask * 255, mask.astype(np.uint16), np.stack([mask] * 3, axis=-1))),
        tiff(DEEP * np.uint8(255), photometric="minisblack"),
        tiff(DEEP.astype(np.float32), photometric="minisblack", compression="adobe_deflate"),
    ]


# --- outlines -----------------------------------------------------------------------------------


def imagescope() -> list[bytes]:
    crossing: Points = [(8, 2), (12, 9), (12, 2), (8, 9)]
    layers = ("Epithelial", [square(1, 1), crossing]), ("Ambiguous", [square(1, 1)])
    text = annotation_xml(*layers, ("x", [square(2, 2)]))
    return [
        text.replace("<Region ", '<Region Type="0" NegativeROA="0" ').encode(),
        b"<Annotations/>",
    ]


def asap() -> list[bytes]:
    corners = enumerate(((1, 1), (5.5, 1), (5, 4)))
    places = "".join(f'<Coordinate Order="{n}" X="{x}" Y="{y}" />' for n, (x, y) in corners)
    own = "".join(
        f'<Annotation Type="{kind}" PartOfGroup="{group}"><Coordinates>{places}</Coordinates>'
        "</Annotation>"
        for kind, group in (("Polygon", "Epithelial"), ("Spline", "None"), ("Dot", "Ambiguous"))
    )
    text = f"<ASAP_Annotations><Annotations>{own}</Annotations></ASAP_Annotations>"
    return [text.encode(), b"<ASAP_Annotations/>"]


def halo() -> list[bytes]:
    return [(FOREIGN / "halo.annotations").read_bytes(), b"<Annotations/>"]


_RING, _HOLE = [[1, 1], [6, 1], [6.5, 5], [1, 5], [1, 1]], [[2, 2], [3, 2], [3, 3], [2, 2]]
_POLYGON = {"type": "Polygon", "coordinates": [_RING, _HOLE]}
_SEVERAL = {"type": "MultiPolygon", "coordinates": [[_RING], [_HOLE]]}


def _feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


_FEATURES = [
    _feature(_POLYGON, objectType="annotation", classification={"name": "Epithelial"}),
    _feature(_SEVERAL, classification={"names": ["Lymphocyte", "Positive"]}),
    _feature(_POLYGON, classification="Ambiguous") | {"nucleusGeometry": _SEVERAL},
    _feature(None, objectType="tile"),
    _feature({"type": "Point", "coordinates": [1, 2]}),
]
GEOJSON = [{"type": "FeatureCollection", "features": _FEATURES}, _FEATURES, _FEATURES[0]]
_RUNS = {"size": [12, 16], "counts": [14, 3, 9, 3, 163]}
_ENTRY = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": [[1, 1, 5, 1, 5, 4, 1, 4]]}
_OTHER = {"id": 2, "image_id": 2, "category_id": 1, "segmentation": _RUNS, "score": 0.5}
COCO_INSTANCES = [
    {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
        "annotations": [_ENTRY | {"iscrowd": 0}, _OTHER, _ENTRY | {"id": 3, "iscrowd": 1}],
        "categories": [{"id": 1, "name": "Epithelial"}],
    },
    [_ENTRY, _OTHER | {"segmentation": {"size": [12, 16], "counts": "12=0"}}],
    (FOREIGN / "coco_instances.json").read_bytes(),
]
SQUARE = [[1, 1], [5, 1], [5, 4], [1, 4]]
_CELLS = [{"contour": SQUARE, "type": 1, "type_prob": 0.5}, {"contour": SQUARE, "type": 7}]
CELLVIT = [{"type_map": {"1": "Epithelial"}, "cells": _CELLS}, {"type_map": None, "cells": []}]
_POINTS = [[1, 1, 0], [5, 1, 0], [5, 4, 0]]
_LINE = {"type": "polyline", "closed": True, "points": _POINTS, "holes": [_POINTS]}
_CIRCLE = {"type": "circle", "center": [8, 6, 0], "radius": 2, "group": "Epithelial"}
_BOX = _CIRCLE | {"type": "rectangle", "width": 4, "height": 2, "rotation": 1}
_ELEMENTS = [_BOX | {"label": {"value": "Lymphocyte"}}, _LINE | {"group": "Ambiguous"}]
DSA = [
    {"name": "Epithelial", "elements": [_LINE, _CIRCLE]},
    [{"annotation": {"name": "a", "elements": _ELEMENTS}}],
]
_NUCLEUS = {"bbox": [[1, 1], [5, 6]], "centroid": [3.0, 2.5], "contour": SQUARE, "type": 1}
_CELL = {"contour": [[8, 6], [12, 6], [12, 9]], "type": "Lymphocyte", "type_prob": 0.5}
HOVERNET = [
    {"mag": 40, "nuc": {"1": _NUCLEUS, "2": _CELL}},
    {"nuc": {"7": _NUCLEUS | {"type": None}, "a": _CELL | {"type": "Ambiguous"}}},
    {"mag": None, "nuc": {}},
]


def roi_files() -> dict[str, bytes]:
    from roifile import ROI_TYPE, ImagejRoi

    names = {"Epithelial-0001": "POLYGON", "0002": "TRACED", "Lymphocyte 4": "OVAL", "a": "LINE"}
    found = {}
    for group, (name, kind) in enumerate(names.items()):
        roi = ImagejRoi.frompoints(SQUARE, name=name)
        roi.roitype, roi.group = ROI_TYPE[kind], group
        found[f"{name}.roi"] = roi.tobytes()
    steps = [0, 8, 2, 1, 12, 2, 1, 12, 9, 4, 0, 9, 3, 1, 10, 4, 1, 9, 4, 4]
    roi = ImagejRoi(roitype=ROI_TYPE.RECT, top=1, left=1, bottom=5, right=6, position=1)
    roi.multi_coordinates, roi.shape_roi_size = np.array(steps, np.float32), len(steps)
    return found | {"Ambiguous/0003.roi": roi.tobytes()}


def rois() -> list[bytes]:
    return [zipped([*roi_files().items()]), zipped([])]


def annotation_store() -> list[Any]:
    def ring(*points: tuple[float, float]) -> bytes:
        closed = [*points, points[0]]
        return struct.pack("<I", len(closed)) + np.array(closed, "<f8").tobytes()

    rings = ring((1, 1), (6, 1), (6, 5), (1, 5)) + ring((2, 2), (3, 2), (3, 3))
    polygon = struct.pack("<BII", 1, 3, 2) + rings
    several = struct.pack("<BII", 1, 6, 1) + polygon
    point = struct.pack("<BIdd", 1, 1, 1.5, 2.5)
    statements = [
        "CREATE TABLE metadata (key TEXT UNIQUE, value TEXT)",
        "CREATE TABLE annotations(id INTEGER PRIMARY KEY, geometry BLOB, properties TEXT)",
    ]
    rows: list[Any] = [
        ["metadata", ["compression", "null"]],
        ["annotations", [1, polygon, '{"type": "Epithelial"}']],
        ["annotations", [2, several, '{"class": {"name": "Ambiguous"}}']],
        ["annotations", [3, point, '{"type": 2}']],
    ]
    return [{"statements": statements, "rows": rows}]


# --- several files as one -----------------------------------------------------------------------


@cache
def classified_labels() -> list[Any]:
    mask, wide = npy(MASK), npy(MASK.astype(np.uint64) << 40)
    return [
        {"labels.npy": mask, "labels.json": {"1": "Epithelial", "2": "Lymphocyte"}},
        {"labels.npy": mask, "labels.json": {"1": "Ambiguous", "2": 2}},
        {"labels.npy": wide, "labels.json": {str(1 << 40): "Epithelial"}},
        {"labels.npy": mask, "labels.csv": b"id,class\n1,Epithelial\n2,2\n"},
    ]


@cache
def zarrs() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        for kind, zarr_format in (*product(("array", "label"), (2, 3)), ("image", 2)):
            place = Path(folder) / f"{kind}-{zarr_format}"
            write_zarr(place, MASK, kind=kind, zarr_format=zarr_format)
        stores = [contents(place) for place in sorted(Path(folder).iterdir())]
    return [
        {name: json.loads(own) if own[:1] == b"{" else own for name, own in store.items()}
        for store in stores
    ]


@cache
def arrays() -> list[Any]:
    two = np.stack([np.stack([MASK, (MASK > 0)], axis=-1).astype(np.int32)] * 2)
    types, areas = npy(np.array(["Lung", "Liver"])), npy(np.stack([MASK == 1, MASK == 2]))
    others = {"patch_info.csv": b"patch_info\nt-1\nt-2\n", "ambiguous.npy": areas}
    return [
        {"masks.npy": npy(two), "regions.csv": b"region,patient\na,p\nb,q\n"},
        {"masks.npy": npy(two.astype(float)), "types.npy": types},
        {"masks.npy": npy(two.astype(np.uint8)), **others},
    ]


@cache
def coco_panoptic() -> list[Any]:
    picture = png(np.pad(MASK[..., np.newaxis], ((0, 0), (0, 0), (0, 2))).astype(np.uint8))
    segments = [
        {"id": 1, "category_id": 1, "iscrowd": 0, "area": 12, "bbox": [1, 1, 4, 3]},
        *({"id": 2, "category_id": 2, "iscrowd": 1}, {"id": 5, "category_id": 3}),
    ]
    categories = [
        *({"id": 1, "name": "Epithelial", "isthing": 1}, {"id": 2, "name": "Lymphocyte"}),
        {"id": 3, "name": "glass", "isthing": 0},
    ]
    annotations = [
        {"image_id": 1, "file_name": "r.png", "segments_info": segments},
        {"image_id": 2, "file_name": "s.png", "segments_info": segments[:1]},
    ]
    table = {"images": [], "annotations": annotations, "categories": categories}
    return [{"panoptic.json": table, "panoptic/r.png": picture, "panoptic/s.png": picture}]


# --- tables and descriptions --------------------------------------------------------------------


POINTS = [
    [[1, 2, 0.5], [3.25, 4], [5, 6, 0.75, ""]],
    [[1, 2, 1, 3, 2, 3, 2, 2], [5, 6]],
    *([[2, 0.5]], [[3]]),
]
CLASS_TABLES = [[["id", "class"], [1, "Epithelial"], [2, "Lymphocyte"], [3, 2]]]
METADATA = [[["patient", "organ", "age"], ["p1", "Lung", 51], ["p2", "Liver", ""]]]
PATCHES = [
    [["region", "slide", "x", "y", "scale"], ["a", "s", 1, 2.5, 2], ["b", "s", 0, -4, ""]],
    [["region", "x", "y"], ["a", 1, 2]],
]
_PATH = r".\P1\P1_1\Epithelial\1_mask.mat"
_FILES = r"['D:\\TEAM/.\\P1\\P1_1/Epithelial\\1.mat']"
DUMPS = [["TEAM", _PATH, _FILES, 0.25, _PATH.replace("Epi", "x"), "[]", 0, "OTHER", _PATH, 1.0]]


_IMAGES = [{"id": n, "file_name": f"{n:03d}.tiff", "width": 16, "height": 12} for n in (1, 2)]
_CATEGORIES = [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}]
_MITOSIS = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1.5, 2, 9.5, 10]}
_MITOSES = [_MITOSIS, _MITOSIS | {"id": 2, "category_id": 2}]
_MITOSES += [_MITOSIS | {"id": 3, "image_id": 2, "score": 0.5}]
BOXES = [{"images": _IMAGES, "categories": _CATEGORIES, "annotations": _MITOSES}]
_PATIENT = {"patient": "(?P<patient>.+)_[0-9]+"}
_PREDICTIONS = {
    "geojson": "teams/{team}/{region}.geojson",
    "labels": ["teams/{team}/{region}/{class}.tif"],
    "classes": "teams/{team}/{region}.csv",
}
_NUCLEI = {
    "image": ["{region}.png", "a/{region}.png"],
    "reference": {"imagescope": ["{region}.xml", "a/{region}.xml"]},
    "predictions": _PREDICTIONS,
}
_CLASSES = {
    "classes": {"Epithelial": [255, 0, 0], "Lymphocyte": [255, 255, 0]},
    "ambiguous": {"name": "Ambiguous"},
}
_MASKS = {"border": [[139, 69, 19]], "background": [[0, 0, 0]]}
_MORE = {"masks": _MASKS, "aliases": {"epi": "Epithelial"}, "files": _NUCLEI | _PATIENT}
COHORTS = [{"name": "x", "task": "nuclei", **_CLASSES, **_MORE}]
_OF_TEAM = {"reference": "{region}.csv", "predictions": "teams/{team}/{region}.csv"}
_DETECTIONS = {"image": ["{region}.png", "a/{region}.png"], "ignore": "{region}_no.csv"}
_DETECTIONS |= {**_OF_TEAM, **_PATIENT, "atypia": _OF_TEAM}
_DETECTIONS["predictions"] = [_OF_TEAM["predictions"]]
DETECTION_COHORTS = [
    {"task": "detections", "name": "x", "mpp": mpp, "files": _DETECTIONS}
    for mpp in ({"A*": 0.25, "*": [0.25, 0.5]}, 1)
]
_RATERS = {"image": "{case}-{modality}.png", "raters": ["{rater}/{case}_{structure}.png"]}
_RATERS["predictions"] = "teams/{team}/{case}_{structure}.tif"
_LEVELS = {"at": [0.1, 0.5], "equal": "at-least", "both_empty": "one"}
RATERS_COHORTS = [
    {"task": "raters", "name": "x", "files": _RATERS, "levels": _LEVELS},
    {"task": "raters", "files": {"raters": {"imagescope": "{rater}/{case}.xml"}}, **_CLASSES},
    {"task": "raters"},
]


# --- what this program keeps --------------------------------------------------------------------


def parts() -> list[Any]:
    import pandas as pd

    from napari_panoptic.common.findings import Finding, FindingKind
    from napari_panoptic.nuclei.metrics import Counts
    from napari_panoptic.nuclei.regions.result_store import PartStore
    from napari_panoptic.nuclei.regions.results import RegionResult

    with tempfile.TemporaryDirectory() as folder:
        store = PartStore(Path(folder) / "parts")
        finding = Finding(FindingKind.EXTRA, "odd", path=Path("x"), object_ids=(1, 2))
        objects = pd.DataFrame({"side": ["reference"], "id": [1], "iou": [0.5]})
        objects["partner_id"] = pd.Series([None], dtype="Int64")
        result = RegionResult("t", "p", "r", objects, Counts.zero(("a",)), findings=(finding,))
        store.write("r", "f", [[result]])
        header, body, _ = store._path("r").read_text(encoding="utf-8").split("\n")
    return [{"header": json.loads(header), "body": json.loads(body)}]


def reviews() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panoptic-review.sqlite"
        for reviewer in ("me", "you"):
            with ReviewStore(path, reviewer=reviewer) as store:
                store.give(subject(1, team="t"), Verdict.BOTH_WRONG, tag="artefact", note="a note")
        with closing(sqlite3.connect(path)) as connection, connection:
            _same_at_each_run(connection)
        return [path.read_bytes()]


def _same_at_each_run(connection: sqlite3.Connection) -> None:
    """Replace the times and windows in a review file."""
    connection.execute("UPDATE changes SET at = '2026-01-01'")
    for name, value in (("$.writer", "w"), ("$.record.given_at", "2026-01-01")):
        connection.execute("UPDATE changes SET value = json_replace(value, ?, ?)", (name, value))


@cache
def plan_units() -> Units:
    """Return a population of five items, one of each kind."""
    kinds, classes = np.arange(5), np.array([1, 2, 1, 2, 1])
    details = np.array(["", "", "missed", "split", "empty"], object)
    other = np.where(kinds == 1, 3 - classes, classes)
    return units_of_kinds(
        *(("Round", "Long"), kinds, kinds % 2, (classes, other), np.full(5, 0.75), details)
    )


def plans() -> list[bytes]:
    """Return a review with a plan of these items, and the verdicts on them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panoptic-review.sqlite"
        for reviewer in ("me", "you"):
            with ReviewStore(path, reviewer=reviewer) as review:
                if review.plan.stored() is None:
                    review.plan.save(draw(plan_units(), 5, 3), PlanSetup().as_record())
                while (item := review.plan.next_item()) is not None:
                    is_tile = KINDS[review.plan.stored().plan.units.kind[item - 1]] == "background"
                    review.plan.answer(item, Verdict.BOTH_WRONG, count=2 if is_tile else None)
        with closing(sqlite3.connect(path)) as connection, connection:
            _same_at_each_run(connection)
        return [path.read_bytes()]


def preferences() -> list[Any]:
    # napari warns while it is imported: before any input is judged.
    import napari_panoptic.viewer.state.preferences  # noqa: F401

    look = {"colour_by": "status", "display": "outline", "order": "iou", "others": "shown"}
    return [look | {"hidden_columns": "iou, id", "last_cohort": "/", "files": '{"/c": "/d"}'}]
