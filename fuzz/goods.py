"""Good files and documents to begin with: small ones made here, and small pieces of real ones.

Documents are plain values, as the functions of `fuzz.documents` write them.
"""

from __future__ import annotations

import io
import json
import re
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import tifffile
from numpy.typing import NDArray
from PIL import Image

from fuzz.documents import array_hex, roi_bytes
from napari_panoptic.values.cohort import MONUSAC_CLASSES

CASES = Path(__file__).resolve().parent.parent.parent / "shared" / "cases"
LARGEST_BYTES = 6000  # larger files are no seeds: inputs should be quick
MASK = np.zeros((12, 16), np.int32)
MASK[1:4, 1:5], MASK[6:10, 8:13] = 1, 2
HEIGHT, WIDTH = MASK.shape
RGB = np.array([(0, 0, 0), *MONUSAC_CLASSES.colours], np.uint8)[MASK]
PADDED = np.pad(RGB, ((0, 4), (0, 0), (0, 0)))
DEEP = np.stack([MASK > 0, MASK == 0])
SQUARE = [[1, 1], [5, 1], [5, 4], [1, 4]]
CLASSES = {"Epithelial": [255, 0, 0], "Lymphocyte": [255, 255, 0]}


# --- real files ---------------------------------------------------------------------------------


def real_files(pattern: str) -> list[bytes]:
    """Return small files among the shared cases, if these are available."""
    paths = (path for path in sorted(CASES.glob(pattern)) if path.stat().st_size <= LARGEST_BYTES)
    return [path.read_bytes() for path in islice(paths, 4)]


def real_annotations() -> Iterator[bytes]:
    """Return the beginnings of real ImageScope files, with their first two regions."""
    for path in sorted(CASES.glob("monusac/*/*/*.xml"))[:3]:
        text = path.read_text(encoding="utf-8", errors="replace")
        vertices = r"(<Vertices>(?:\s*<Vertex [^>]*>){8})(?:\s*<Vertex [^>]*>)*"
        head, *regions = re.split(r"(?=<Region )", text[: 4 * 10**5])
        regions = [re.sub(vertices, r"\1", region.split("</Region>")[0]) for region in regions[:2]]
        if regions:
            body = "</Region>".join([*regions, "</Regions></Annotation></Annotations>"])
            yield (head + body).encode()


def real_dump() -> list[bytes]:
    """Return the first lines of the organisers' output."""
    path = CASES / "challenge-dump" / "per_image_class_pq.txt"
    return [path.read_bytes()[:1500].rpartition(b"\n")[0]] if path.is_file() else []


# --- files by their libraries -------------------------------------------------------------------


def _saved(write: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def tiff(array: NDArray[Any], **options: Any) -> bytes:
    return _saved(lambda file: tifffile.imwrite(file, array, **options))


def png(array: NDArray[Any], form: str = "PNG") -> bytes:
    return _saved(lambda file: Image.fromarray(array).save(file, form))


def npy(array: NDArray[Any]) -> bytes:
    return _saved(lambda file: np.save(file, array))


def mat(options: dict[str, Any] | None = None, **variables: Any) -> bytes:
    return _saved(lambda file: scipy.io.savemat(file, variables, **(options or {})))


def label_files() -> list[bytes]:
    flat = MASK.astype(np.uint16)
    arrays = (MASK, MASK.astype(float), MASK.astype(bool), np.stack([MASK, MASK], axis=-1))
    return [
        *map(npy, arrays),
        *(tiff(flat, compression=c) for c in (None, "adobe_deflate", "lzw")),
        tiff(flat, tile=(16, 16), predictor=True, compression="adobe_deflate"),
        tiff(np.stack([flat] * 3), photometric="minisblack"),
        tiff(flat, bigtiff=True, byteorder=">"),
        png(MASK.astype(np.uint8)),
        png(flat),
    ]


def segmentation_files() -> list[bytes]:
    others = {"outlines": MASK, "flows": [MASK], "filename": "a.png", "diameter": np.nan}
    return [npy(np.array({"masks": MASK.astype(np.uint16)} | others, dtype=object))]


def npz_files() -> list[bytes]:
    each: tuple[dict[str, Any], ...] = ({"labels": MASK}, {"image": MASK, "masks": MASK})
    return [_saved(lambda file, own=own: np.savez_compressed(file, **own)) for own in each]  # type: ignore[misc]


def colour_files() -> list[bytes]:
    whole: dict[str, Any] = {"photometric": "rgb", "planarconfig": "contig"}
    return [
        *real_files("monusac/MoNuSAC_Testing_Color_Coded_Masks/*/*.tif"),
        *real_files("monusac/Teams/*/*/*.tif"),
        *(tiff(RGB, photometric="rgb", compression=c) for c in (None, "adobe_deflate")),
        tiff(RGB, **whole, compression="lzw", predictor=True),
        tiff(np.moveaxis(RGB, -1, 0), photometric="rgb", planarconfig="separate"),
        *(png(RGB, form) for form in ("PNG", "BMP", "GIF", "WEBP")),
        png(np.dstack([RGB, np.full(MASK.shape, 255, np.uint8)])),
    ]


def slide_files() -> list[bytes]:
    text = "Aperio Image Library v11.2.1 \r\n16x12 (16x16) RGB|AppMag = 40|MPP = 0.25"
    aperio = {"metadata": None, "tile": (16, 16), "compression": "adobe_deflate"}
    return [
        *real_files("monusac/*/*/*.svs"),
        tiff(RGB, photometric="rgb", description=text, **aperio),
        tiff(RGB, photometric="rgb", resolution=(40_000, 40_000), resolutionunit=3),
        tiff(RGB.astype(np.uint16) * 257, photometric="rgb"),
        *(png(RGB, form) for form in ("PNG", "JPEG", "BMP", "GIF", "WEBP")),
        png(RGB[..., 0]),
    ]


def mat_files() -> list[bytes]:
    import scipy.sparse

    return [
        *real_files("monusac/Submissions/*/*/*/*/*.mat"),
        mat(n_ary_mask=MASK),
        mat({"do_compression": True}, img=MASK.astype(float)),
        mat({"format": "4"}, img=MASK > 0, other=MASK),
        mat({"format": "4"}, img=MASK.astype(np.int16)),
        mat(img=scipy.sparse.csc_matrix(MASK.astype(float)), text="a"),
        mat(img=MASK, cell=np.array([1, "a"], object), struct={"a": MASK}),
    ]


def volume_files() -> list[bytes]:
    mask = (MASK > 0).astype(np.uint8)
    deep = np.stack([mask, mask])
    return [
        *(png(own) for own in (mask * 255, mask.astype(np.uint16), np.stack([mask] * 3, axis=-1))),
        tiff(deep * np.uint8(255), photometric="minisblack"),
        tiff(deep.astype(np.float32), photometric="minisblack", compression="adobe_deflate"),
    ]


def roi_files() -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(roi_bytes(rois()[0]))) as archive:
        return [archive.read(info) for info in archive.infolist()]


# --- documents: outlines ------------------------------------------------------------------------


def _xml(tag: str, *inside: Any, **attributes: str) -> dict[str, Any]:
    return {"tag": tag, **attributes, "in": list(inside)}


def imagescope() -> list[Any]:
    def region(*points: tuple[float, float], **attributes: str) -> dict[str, Any]:
        vertices = [_xml("Vertex", X=str(x), Y=str(y), Z="0") for x, y in points]
        return _xml("Region", _xml("Attributes"), _xml("Vertices", *vertices), **attributes)

    def layer(name: str, *regions: dict[str, Any]) -> dict[str, Any]:
        attributes = _xml("Attributes", _xml("Attribute", Name=name))
        headers = _xml("RegionAttributeHeaders", _xml("AttributeHeader", Id="9999"))
        return _xml("Annotation", attributes, _xml("Regions", headers, *regions), Name="")

    square = region((1, 1), (6, 1), (6.5, 5), (1, 5), Id="1", Type="0", NegativeROA="0")
    crossing = region((8, 2), (12, 9), (12, 2), (8, 9), Id="2", Type="2")
    layers = [layer("Epithelial", square, crossing), layer("Ambiguous", square), layer("x", square)]
    return [_xml("Annotations", *layers, MicronsPerPixel="0.25"), _xml("Annotations")]


def asap() -> list[Any]:
    corners = enumerate(((1, 1), (5.5, 1), (5, 4)))
    places = [_xml("Coordinate", Order=str(n), X=str(x), Y=str(y)) for n, (x, y) in corners]
    own = [
        _xml("Annotation", _xml("Coordinates", *places), Type=kind, PartOfGroup=group)
        for kind, group in (("Polygon", "Epithelial"), ("Spline", "None"), ("Dot", "Ambiguous"))
    ]
    return [_xml("ASAP_Annotations", _xml("Annotations", *own)), _xml("ASAP_Annotations")]


def halo() -> list[Any]:
    corners = [_xml("V", X="1", Y="1"), _xml("V", X="6", Y="5")]
    regions = [
        _xml("Region", _xml("Vertices", *corners), Type=kind, NegativeROA=hole)
        for kind, hole in (("Rectangle", "0"), ("Ellipse", "1"), ("Polygon", "1"), ("Ruler", "0"))
    ]
    layer = _xml("Annotation", _xml("Regions", *regions), Name="Epithelial")
    return [_xml("Annotations", layer), _xml("Annotations")]


def geojson() -> list[Any]:
    ring = [[1, 1], [6, 1], [6.5, 5], [1, 5], [1, 1]]
    hole = [[2, 2], [3, 2], [3, 3], [2, 2]]
    polygon = {"type": "Polygon", "coordinates": [ring, hole]}
    several = {"type": "MultiPolygon", "coordinates": [[ring], [hole]]}

    def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
        return {"type": "Feature", "geometry": geometry, "properties": properties}

    features = [
        feature(polygon, objectType="annotation", classification={"name": "Epithelial"}),
        feature(several, classification={"names": ["Lymphocyte", "Positive"]}),
        feature(polygon, classification="Ambiguous") | {"nucleusGeometry": several},
        feature(None, objectType="tile"),
        feature({"type": "Point", "coordinates": [1, 2]}),
    ]
    return [{"type": "FeatureCollection", "features": features}, features, features[0]]


def coco_instances() -> list[Any]:
    square = [[1, 1, 5, 1, 5, 4, 1, 4]]
    runs = {"size": [4, 4], "counts": [1, 2, 13]}
    entry = {"id": 1, "image_id": 1, "category_id": 1, "segmentation": square, "iscrowd": 0}
    other = {"id": 2, "image_id": 2, "category_id": 1, "segmentation": runs, "score": 0.5}
    return [
        {
            "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
            "annotations": [entry, other, entry | {"id": 3, "iscrowd": 1}],
            "categories": [{"id": 1, "name": "Epithelial"}],
        },
        [entry, other | {"segmentation": {"size": [4, 4], "counts": "12=0"}}],
    ]


def cellvit() -> list[Any]:
    cells = [{"contour": SQUARE, "type": 1, "type_prob": 0.5}, {"contour": SQUARE, "type": 7}]
    return [{"type_map": {"1": "Epithelial"}, "cells": cells}, {"type_map": None, "cells": []}]


def dsa() -> list[Any]:
    points = [[1, 1, 0], [5, 1, 0], [5, 4, 0]]
    line = {"type": "polyline", "closed": True, "points": points, "holes": [points]}
    circle = {"type": "circle", "center": [8, 6, 0], "radius": 2, "group": "Epithelial"}
    box = circle | {"type": "rectangle", "width": 4, "height": 2, "rotation": 1}
    label = {"label": {"value": "Lymphocyte"}}
    return [
        {"name": "Epithelial", "elements": [line, circle]},
        [{"annotation": {"name": "a", "elements": [box | label, line | {"group": "Ambiguous"}]}}],
    ]


def hovernet() -> list[Any]:
    nucleus = {"bbox": [[1, 1], [5, 6]], "centroid": [3.0, 2.5], "contour": SQUARE, "type": 1}
    other = {"contour": [[8, 6], [12, 6], [12, 9]], "type": "Lymphocyte", "type_prob": 0.5}
    return [
        {"mag": 40, "nuc": {"1": nucleus, "2": other}},
        {"nuc": {"7": nucleus | {"type": None}, "a": other | {"type": "Ambiguous"}}},
        {"mag": None, "nuc": {}},
    ]


def rois() -> list[Any]:
    # roifile is imported before any input is judged.
    import roifile  # noqa: F401

    square, box = [[0, 0], [5, 0], [5, 4], [0, 4]], [1, 1, 5, 6]
    steps = [0, 8, 2, 1, 12, 2, 1, 12, 9, 4, 0, 9, 3, 1, 10, 4, 1, 9, 4, 4]
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
        ["annotations", [1, "hex:" + polygon.hex(), '{"type": "Epithelial"}']],
        ["annotations", [2, "hex:" + several.hex(), '{"class": {"name": "Ambiguous"}}']],
        ["annotations", [3, "hex:" + point.hex(), '{"type": 2}']],
    ]
    return [{"statements": statements, "rows": rows}]


# --- documents: pixels --------------------------------------------------------------------------


def npy_good(array: Any, **more: Any) -> dict[str, Any]:
    """Return an NPY document."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": list(array.shape)}
    return {"version": 1, "header": header | more, "data": array_hex(array)}


def _tiff(
    data: Any, samples: int, bits: int, more: Any = None, order: str = "<", tiled: bool = False
) -> dict[str, Any]:
    """Return a TIFF document of one strip or tile of 12 x 16 px."""
    tags: dict[int, list[Any]] = {256: [4, WIDTH], 257: [4, HEIGHT], 258: [3, [bits] * samples]}
    tags |= {259: [3, 1], 262: [3, 2 if samples == 3 else 1], 277: [3, samples], 284: [3, 1]}
    tags |= {282: [5, [40_000, 1]], 283: [5, [40_000, 1]], 296: [3, 3], 339: [3, [1] * samples]}
    if tiled:
        tags |= {322: [3, 16], 323: [3, 16], 324: [4, "offset"], 325: [4, "size"]}
    else:
        tags |= {273: [4, "offset"], 278: [4, HEIGHT], 279: [4, "size"]}
    listed = [[code, *value] for code, value in sorted((tags | (more or {})).items())]
    return {"order": order, "pages": [{"tags": listed, "data": [array_hex(data)]}]}


def _pngs() -> list[Any]:
    """Return PNG files as lists of chunks: colours, a palette, 16 bits."""

    def chunks(depth: int, kind: int, rows: Any, *more: list[str]) -> list[Any]:
        lines = b"".join(b"\0" + row.tobytes() for row in rows)
        header = ["IHDR", [WIDTH, HEIGHT, depth, kind, 0, 0, 0]]
        return [header, *more, ["IDAT", lines.hex()], ["IEND", ""]]

    palette = ["PLTE", "000000ff0000ffff00"]
    return [
        chunks(8, 2, RGB, ["pHYs", "00002e2300002e2301"], ["tEXt", "4100422043"]),
        chunks(8, 3, MASK.astype(np.uint8), palette, ["tRNS", "00ff"]),
        chunks(16, 0, MASK.astype(">u2"), ["gAMA", "0000b18f"]),
    ]


def colours() -> list[Any]:
    aperio = {270: [2, "Aperio Image Library v1\r\n16x12|MPP = 0.25|AppMag = 40"]}
    palette = {262: [3, 3], 320: [3, [65535, 0] * 384]}
    tiled = _tiff(PADDED, 3, 8, aperio, tiled=True)
    return [_tiff(RGB, 3, 8), tiled, _tiff(MASK.astype(np.uint8), 1, 8, palette), *_pngs()]


def label_images() -> list[Any]:
    padded = np.pad(MASK.astype(np.uint16), ((0, 4), (0, 0)))
    deep = np.stack([MASK, MASK], axis=-1).astype(np.float32)
    ordered = np.asfortranarray(MASK.astype(np.int16))
    return [
        _tiff(MASK.astype(np.uint16), 1, 16),
        _tiff(MASK.astype(">u4"), 1, 32, order=">"),
        _tiff(padded, 1, 16, tiled=True),
        _tiff(MASK.astype(np.float32), 1, 32, {339: [3, 3]}),
        *map(npy_good, (MASK, MASK.astype(np.uint64), deep)),
        npy_good(ordered, fortran_order=True),
        *_pngs(),
    ]


def npz_archives() -> list[Any]:
    mask = npy_good(MASK)
    return [[["arr_0.npy", mask]], [["image.npy", mask], ["labels.npy", mask]]]


def _packed(array: Any) -> str:
    return "hex:" + (array.encode() if isinstance(array, str) else npy(array)).hex()


def classified_labels() -> list[Any]:
    mask, wide = _packed(MASK), _packed(MASK.astype(np.uint64) << 40)
    return [
        {"labels.npy": mask, "labels.json": {"1": "Epithelial", "2": "Lymphocyte"}},
        {"labels.npy": mask, "labels.json": {"1": "Ambiguous", "2": 2}},
        {"labels.npy": wide, "labels.json": {str(1 << 40): "Epithelial"}},
    ]


def zarrs() -> list[Any]:
    data = "hex:" + array_hex(MASK)
    old = {
        **{"zarr_format": 2, "shape": [12, 16], "chunks": [12, 16], "dtype": "<i4"},
        **{"compressor": None, "fill_value": 0, "order": "C", "filters": None},
    }
    new = {
        **{"zarr_format": 3, "node_type": "array", "shape": [12, 16], "data_type": "int32"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [12, 16]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        **{"fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]},
        **{"attributes": {}},
    }
    scales = {"multiscales": [{"version": "0.4", "datasets": [{"path": "0"}]}], "image-label": {}}
    group = {"zarr_format": 2}
    labels = {"zarr_format": 3, "node_type": "group", "attributes": {"ome": scales}}
    return [
        {".zarray": old, "0.0": data},
        {"zarr.json": new, "c/0/0": data},
        {".zgroup": group, ".zattrs": scales, "0/.zarray": old, "0/0.0": data},
        {"zarr.json": labels, "0/zarr.json": new, "0/c/0/0": data},
        {
            **{".zgroup": group, ".zattrs": {"multiscales": [{"datasets": [{"path": "0"}]}]}},
            **{"labels/.zgroup": group, "labels/.zattrs": {"labels": ["n"]}},
            **{"labels/n/.zgroup": group, "labels/n/.zattrs": scales},
            **{"labels/n/0/.zarray": old, "labels/n/0/0.0": data},
        },
    ]


def _variable(name: str, array: Any, kind: int, stored: int, **more: Any) -> dict[str, Any]:
    data, dims = array_hex(array, order="F"), list(array.shape)
    base = {"class": kind, "flags": 0, "dims": dims, "name": name, "type": stored, "data": data}
    return {**base, "more": [], "compressed": False, **more}


def submissions() -> list[Any]:
    name, wide = "n_ary_mask", MASK.astype(float)
    sparse = {"dims": [12, 16], "more": [[5, "0100000002"], [9, "00"]]}
    return [
        [_variable(name, MASK, 12, 5)],
        [_variable(name, wide, 6, 9, compressed=True), _variable("x", MASK, 12, 5)],
        [_variable(name, MASK.astype(np.uint8), 9, 2, flags=2)],
        [_variable("img", np.ones(2), 5, 5, **sparse)],
    ]


def hovernet_mats() -> list[Any]:
    instances = _variable("inst_map", MASK, 12, 5)
    types = _variable("inst_type", np.array([[1.0], [2.0]]), 6, 9)
    ids = _variable("inst_uid", np.array([[2], [1]], np.int32), 12, 5, compressed=True)
    type_map = _variable("type_map", (MASK > 0).astype(np.uint8), 9, 2)
    return [[instances, types], [instances, types, ids], [instances, type_map], [instances]]


def arrays() -> list[Any]:
    two = np.stack([np.stack([MASK, (MASK > 0)], axis=-1).astype(np.int32)] * 2)
    places, patches = "region,patient\na,p\nb,q\n", "patch_info\nt-1\nt-2\n"
    types, area = np.array(["Lung", "Liver"]), np.stack([MASK == 1, MASK == 2])
    others = {"patch_info.csv": _packed(patches), "ambiguous.npy": _packed(area)}
    return [
        {"masks.npy": _packed(two), "regions.csv": _packed(places)},
        {"masks.npy": _packed(two.astype(float)), "types.npy": _packed(types)},
        {"masks.npy": _packed(two.astype(np.uint8)), **others},
    ]


def coco_panoptic() -> list[Any]:
    rgb = np.stack([MASK, np.zeros_like(MASK), np.zeros_like(MASK)], axis=-1).astype(np.uint8)
    picture = "hex:" + png(rgb).hex()
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


def niftis() -> list[Any]:
    ones = (np.stack([MASK] * 2, axis=-1) > 0).astype(np.uint8)

    def good(array: Any, code: int, **more: Any) -> dict[str, Any]:
        header = {
            "sizeof_hdr": 348,
            "dim": [array.ndim, *array.shape, *[1] * (7 - array.ndim)],
            **{"datatype": code, "bitpix": array.dtype.itemsize * 8},
            "pixdim": [1.0, 0.5, 0.5, 2.0, 1.0, 1.0, 1.0, 1.0],
            **{"vox_offset": 352.0, "scl_slope": 1.0, "scl_inter": 0.0, "xyzt_units": 2},
            **{"qform_code": 1, "sform_code": 1, "srow_x": [0.5, 0.0, 0.0, 0.0]},
            **{"srow_y": [0.0, 0.5, 0.0, 0.0], "srow_z": [0.0, 0.0, 2.0, 0.0], "magic": "n+1"},
        }
        return {"header": header | more, "data": array_hex(array, order="F")}

    return [
        good(ones, 2),
        good((ones / np.float32(2)), 16),
        good(ones[..., 0].astype(np.float64), 64),
        good(ones.astype(np.int16), 4, scl_slope=0.5, sform_code=0),
        good(ones.astype(np.complex64), 32),
        good(ones[..., None, None], 2),
    ]


def volumes() -> list[Any]:
    deep, wide = DEEP.astype(np.float32) / 2, DEEP.astype(np.uint16) * 65535
    return [npy_good(own) for own in (MASK > 0, deep, wide, (MASK > 0).astype(np.uint8) * 255)]


# --- documents: tables and descriptions ---------------------------------------------------------


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
SEGMENTATIONS = [{"masks": [[1, 2], [3, 4]], "flows": [0.5, None, True], "filename": "a"}]


def boxes() -> list[Any]:
    images = [{"id": n, "file_name": f"{n:03d}.tiff", "width": 16, "height": 12} for n in (1, 2)]
    categories = [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}]
    entry = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1.5, 2, 9.5, 10]}
    others = [entry | {"id": 2, "category_id": 2}, entry | {"id": 3, "image_id": 2, "score": 0.5}]
    return [{"images": images, "categories": categories, "annotations": [entry, *others]}]


def cohorts() -> list[Any]:
    predictions = {
        "geojson": "teams/{team}/{region}.geojson",
        "labels": ["teams/{team}/{region}/{class}.tif"],
        "classes": "teams/{team}/{region}.csv",
    }
    files = {
        "image": ["{region}.png", "a/{region}.png"],
        "reference": {"imagescope": ["{region}.xml", "a/{region}.xml"]},
        "predictions": predictions,
        "patient": "(?P<patient>.+)_[0-9]+",
    }
    masks = {"border": [[139, 69, 19]], "background": [[0, 0, 0]]}
    head = {"name": "x", "task": "nuclei", "classes": CLASSES, "ambiguous": {"name": "Ambiguous"}}
    return [head | {"masks": masks, "aliases": {"epi": "Epithelial"}, "files": files}]


def detection_cohorts() -> list[Any]:
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


def raters_cohorts() -> list[Any]:
    levels = {"at": [0.1, 0.5], "equal": "at-least", "both_empty": "one"}
    plain = {
        "image": "{case}-{modality}.png",
        "raters": ["{rater}/{case}_{structure}.png"],
        "predictions": "teams/{team}/{case}_{structure}.tif",
    }
    objects = {"raters": {"imagescope": "{rater}/{case}.xml"}}
    return [
        {"task": "raters", "name": "x", "files": plain, "levels": levels},
        {"task": "raters", "files": objects, "classes": CLASSES, "ambiguous": {"name": "A"}},
        {"task": "raters"},
    ]


# --- documents: what this program keeps ---------------------------------------------------------


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


def reviews() -> list[Any]:
    from napari_panoptic.review.file import _SCHEMA

    now = "2026-01-01T00:00:00.000000+00:00"
    verdict: list[Any] = [1, "me", "t", "r", "prediction", 7, "Epithelial", 4.5, 5.5, 20]
    verdict += ["artefact", "", "a note", now, None, None, 1, "w"]
    rows = [["schema_version", [1, now]], ["verdicts", verdict]]
    return [{"statements": [" ".join(text.split()) for text in _SCHEMA], "rows": rows}]


def preferences() -> list[Any]:
    # napari warns while it is imported: before any input is judged.
    import napari_panoptic.viewer.state.preferences  # noqa: F401

    look = {"colour_by": "status", "display": "outline", "order": "iou", "others": "shown"}
    return [look | {"hidden_columns": "iou, id", "last_cohort": "/", "files": '{"/c": "/d"}'}]
