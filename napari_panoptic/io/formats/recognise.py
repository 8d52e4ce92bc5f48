"""Which program wrote a file, by its content, and what to do with files that no format reads."""

from __future__ import annotations

import os
import re
import zlib
from contextlib import suppress
from pathlib import Path

from napari_panoptic.io.formats.dicom_files import ANNOTATIONS, SEGMENTATIONS, SLIDE, dicom_class
from napari_panoptic.values.cohort import Source

_SNIFFED_BYTES = 1 << 16
# These are values in JSON; all other marks are keys, as which no name of a class stands.
_VALUES = (
    b'"FeatureCollection"',
    b'"Feature"',
    b'"Multiple points"',
    b'"Multiple polygons"',
    b'"Multiple 2D bounding boxes"',
)
_JSON_MARKS: tuple[tuple[tuple[bytes, ...], Source], ...] = (
    ((b'"FeatureCollection"',), Source.GEOJSON),
    ((b'"Feature"',), Source.GEOJSON),
    ((b'"nuc"',), Source.HOVERNET),
    ((b'"wsi_metadata"',), Source.CELLVIT),
    ((b'"type_map"', b'"cells"'), Source.CELLVIT),
    ((b'"cells"', b'"contour"'), Source.CELLVIT),
    ((b'"elements"',), Source.DSA),
    ((b'"image_id"', b'"category_id"'), Source.COCO_INSTANCES),
    ((b'"images"', b'"categories"'), Source.COCO_INSTANCES),
    ((b'"images"', b'"file_name"'), Source.COCO_INSTANCES),
    ((b'"contour"', b'"centroid"'), Source.HOVERNET),  # the nuclei alone, without "nuc"
    ((b'"geometry"', b'"coordinates"'), Source.GEOJSON),
)
"""Words of which all stand at the beginning or end of a file, the most specific first."""
_SEGMENTS = b'"segments_info"'
_FOREIGN_JSON: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b'"shapes"', b'"imagePath"'), "a labelme file; export COCO with labelme2coco"),
    ((b'"_via_img_metadata"',), "a project of the VGG Image Annotator; export it as COCO"),
    ((b'"shape_attributes"',), "a file of the VGG Image Annotator; export it as COCO"),
    ((b'"annotations"', b'"original_width"'), "a Label Studio export; export it as COCO"),
    ((b'"Labeled Data"',), "a Labelbox export; convert it to COCO"),
    ((b'"data_row"', b'"media_attributes"'), "a Labelbox export; convert it to COCO"),
    ((b'"classTitle"', b'"geometryType"'), "a Supervisely file; export it as COCO"),
    ((b'"schema_ref"', b'"slots"'), "a V7 Darwin file; export it as COCO"),
    ((b'"createTimestamp"', b'"uri"', b'"images"'), "a QuPath project; export GeoJSON from it"),
    (
        (b'"Multiple points"', b'"points"'),
        "points of grand-challenge.org, which outline no nucleus; open them as a cohort of "
        'detections (task = "detections" in cohort.toml)',
    ),
    (
        (b'"Multiple polygons"', b'"polygons"'),
        "polygons of grand-challenge.org in mm; save GeoJSON in px",
    ),
    (
        (b'"stability_score"', b'"predicted_iou"'),
        "masks of Segment Anything (SAM); save them as a label image (TIFF, PNG, NPY)",
    ),
    (
        (b'"cell_masks"', b'"cell_type"'),
        "cells of Histoplus, in px of tiles; save them as GeoJSON in px of the image",
    ),
    ((b'"annotation"', b'"name_ndx"'), "an ADE20K annotation; export it as COCO"),
    (
        (b'"Multiple 2D bounding boxes"', b'"boxes"'),
        "boxes of grand-challenge.org, which outline no nucleus",
    ),
    (
        (_SEGMENTS,),
        "a COCO panoptic JSON, whose masks are in a folder beside it; open the folder of both",
    ),
)
_TABLE_MARKS = (
    ((b"shape-type", b"vertex-index", b"axis-0"), Source.NAPARI_SHAPES),
    ((b"coords_x", b"coords_y"), Source.NUCLS),
)
_BOXES = (
    "boxes in COCO's layout (as of MIDOG), which outline no nucleus; open them as a cohort of "
    'detections (task = "detections" in cohort.toml), or export COCO with segmentations'
)
_FOREIGN_XML: tuple[tuple[bytes, str], ...] = (
    (b"<ndpviewstate", "an NDP.view annotation (.ndpa); export GeoJSON through QuPath"),
    (b"<annotations>\n  <version>", "a CVAT file; export it as COCO"),
    (b"<polygon>", "a LabelMe file; export COCO, or label images"),
    (b"<bndbox>", "a Pascal VOC file of boxes, which outline no nucleus; export outlines"),
    (b"<TrackMate", "a TrackMate file; export a label image (Actions > Export label image)"),
    (b"<classname>plugins.kernel.roi", "ROIs of Icy; save a label image, or ROIs as .roi"),
    (b"<session", "a Sedeen session; export GeoJSON through QuPath"),
    (b"<OME", "OME-XML, which has no outlines that are read; export GeoJSON"),
)
_SLIDE = "a slide, which holds no objects; give it as the image"
_TABLE = "a table, which has no outlines; export GeoJSON or label images"
_FOREIGN_ENDINGS = {
    ".sqlite": "a SlideRunner or EXACT database; export its annotations as COCO or GeoJSON",
    ".qpdata": "data of a QuPath project; export GeoJSON with File > Export objects",
    ".qpproj": "a QuPath project; export GeoJSON with File > Export objects",
    ".ndpa": "an NDP.view annotation; export GeoJSON through QuPath",
    ".mld": "annotations of Visiopharm; export them as XML, or GeoJSON through QuPath",
    ".h5": "an HDF5 file; export label images (TIFF, NPY)",
    ".hdf5": "an HDF5 file; export label images (TIFF, NPY)",
    ".h5ad": "a table of AnnData; export GeoJSON or label images",
    ".ilp": "an ilastik project; export object identities as a label image (TIFF)",
    ".cpproj": "a CellProfiler project; save objects as label images (ConvertObjectsToImage)",
    ".cppipe": "a CellProfiler pipeline; save objects as label images (ConvertObjectsToImage)",
    ".pkl": "a pickle, which can run programs and is not opened; export label images or GeoJSON",
    ".pickle": "a pickle, which can run programs and is not opened; export label images or GeoJSON",
    ".dat": "data of TIAToolbox in a pickle, which can run programs and is not opened; save an "
    "annotation store (.db)",
    ".parquet": _TABLE,
    ".xlsx": _TABLE,
    ".ndjson": "a Labelbox export; convert it to COCO",
    ".pt": "data of PyTorch, which can run programs and is not opened; export cells.json of "
    "CellViT, or GeoJSON",
    **dict.fromkeys((".svs", ".ndpi", ".mrxs", ".scn", ".bif", ".qptiff", ".vsi", ".czi"), _SLIDE),
}
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89HDF\r\n", _FOREIGN_ENDINGS[".h5"]),
    (b"PAR1", _TABLE),
    (b"\xac\xed\x00\x05", _FOREIGN_ENDINGS[".qpdata"]),
    (b"%PDF", "a PDF; export label images or GeoJSON"),
)
"""First bytes of files whose names may say something else."""
_SQLITE = b"SQLite format 3"
_GZIP = b"\x1f\x8b"
_PACKED = "packed JSON that is not GeoJSON; unpack it"
_NO_DATABASE = (
    "a file ending in .db that is no SQLite database, as annotation stores are; remove it"
)
_ZARR_NAMES = (b".zarray", b".zgroup", b"zarr.json")
_ZIPPED_ZARR = "a zipped Zarr; unpack it into a folder whose name ends in .zarr"
_HOVERNEXT = re.compile(rb'\s*\{\s*"\d+"\s*:\s*\[\s*\d+\s*,\s*\[[-\d.e+,\s]+\]\s*\]')
"""``class_inst.json``: a class and a centre for each id."""
_TEXTS = (".json", ".geojson", ".xml", ".annotations", ".csv", ".tsv", ".txt")
_DICOM = "a DICOM file without objects that are read; export GeoJSON or label images"
_SLIDERUNNER_TABLE = b"Annotations_coordinates"
_QUPATH_COLUMNS = re.compile(rb"Centroid X (\xc2?\xb5m|px)")
_YOLO = re.compile(rb"\d+( -?[\d.]+(e-?\d+)?){4,} *\r?\n?")
_YOLO_NUMBERS = 6
"""Number of coordinates of the smallest outline; a box has four, and perhaps a score."""


def json_source(path: Path) -> Source | None:
    """Return the format of a JSON file with objects, by its ends; None if unknown."""
    ends = _ends(path)
    if re.fullmatch(rb"(\xef\xbb\xbf)?\s*\[\s*\]\s*", ends):
        return Source.GEOJSON  # QuPath's, of no objects
    return next((form for marks, form in _JSON_MARKS if _stand_in(ends, marks)), None)


def _stand_in(text: bytes, marks: tuple[bytes, ...]) -> bool:
    """Return whether all marks stand in a text, keys of objects as keys."""
    endings = (b"" if mark in _VALUES else rb"\s*:" for mark in marks)
    return all(
        re.search(re.escape(mark) + ending, text)
        for mark, ending in zip(marks, endings, strict=True)
    )


def is_coco_panoptic(path: Path) -> bool:
    """Return whether a JSON file lists the segments of masks in a folder beside it."""
    return _SEGMENTS in _ends(path)


def xml_source(path: Path) -> Source | None:
    """Return the format of an XML file with objects, by its root element; None if unknown."""
    root = re.search(rb"<([A-Za-z_][\w.-]*)", _without_comments(_start(path)))
    if root is None:
        return None
    forms = {b"ASAP_Annotations": Source.ASAP, b"Annotations": Source.IMAGESCOPE}
    form = forms.get(root[1])
    is_halo = form == Source.IMAGESCOPE and re.search(rb"<V\s+X=", _start(path))
    return Source.HALO if is_halo else form


def table_source(path: Path) -> Source | None:
    """Return the format of a table with outlines, by its first line; None if unknown."""
    names = _start(path).partition(b"\n")[0]
    return next((form for words, form in _TABLE_MARKS if all(w in names for w in words)), None)


def text_source(path: Path) -> Source | None:
    """Return the format of a text file with outlines, by its first line; None if unknown."""
    line = _start(path).partition(b"\n")[0]
    is_outline = _YOLO.fullmatch(line) and len(line.split()) > _YOLO_NUMBERS
    return Source.YOLO if is_outline else None


def foreign_tool(path: Path) -> str | None:
    """Describe a file of a known program that no format reads, and what to do; None if unknown."""
    name = path.name.casefold()
    for ending, what in _FOREIGN_ENDINGS.items():
        if name.endswith(ending):
            return what
    if path.is_dir():
        return None
    if name.endswith(".dcm") and dicom_source(path) is None:
        return _SLIDE if dicom_class(path) == SLIDE else _DICOM
    start = _start(path)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and name.endswith(_TEXTS):
        return "a text in UTF-16; save it in UTF-8"
    if name.endswith(".db") and not start.startswith(_SQLITE):
        return _NO_DATABASE
    if name.endswith(".json.gz"):
        return None if json_source(path) == Source.GEOJSON else _PACKED
    if name.endswith(".json"):
        return _foreign_json(_ends(path))
    if name.endswith(".zip"):
        ends = _ends(path)
        return _ZIPPED_ZARR if any(mark in ends for mark in _ZARR_NAMES) else None
    if name.endswith(".xml"):
        start = start.replace(b"\r", b"")
        return next((what for mark, what in _FOREIGN_XML if mark in start), None)
    if name.endswith((".txt", ".csv", ".tsv")):
        return _foreign_table(start)
    if start.startswith(_SQLITE) and _SLIDERUNNER_TABLE in start:
        return _FOREIGN_ENDINGS[".sqlite"]
    return next((what for mark, what in _MAGIC if start.startswith(mark)), None)


def dicom_source(path: Path) -> Source | None:
    """Return the format of a DICOM file with objects, by its SOP class; None if unknown."""
    sop_class = dicom_class(path)
    if sop_class in SEGMENTATIONS:
        return Source.DICOM_SEG
    return Source.DICOM_ANN if sop_class == ANNOTATIONS else None


def source_of(path: Path) -> Source | None:
    """Return the format of a file with objects whose content decides it, or None."""
    kinds = {
        ".json": json_source,
        ".gz": json_source,
        ".csv": table_source,
        ".txt": text_source,
        ".xml": xml_source,
        ".annotations": xml_source,
        ".dcm": dicom_source,
    }
    recognised = kinds.get(path.suffix.casefold())
    return None if recognised is None else recognised(path)


def _foreign_json(start: bytes) -> str | None:
    # Of an annotation with a segmentation, the beginning may have been cut at its box.
    if start.count(b'"bbox"') > 1 and b'"category_id"' in start and b'"segment' not in start:
        return _BOXES
    if _HOVERNEXT.match(start):
        return (
            "classes and centres of HoVer-NeXt, without outlines; its label image is pinst_pp.zip: "
            "unpack that into a folder whose name ends in .zarr"
        )
    return next((w for marks, w in _FOREIGN_JSON if _stand_in(start, marks)), None)


def _foreign_table(start: bytes) -> str | None:
    if _QUPATH_COLUMNS.search(start):
        return (
            "a table of measurements of QuPath, which has no outlines; export GeoJSON with "
            "File > Export objects"
        )
    if all(name in start.partition(b"\n")[0] for name in (b"cell_id", b"vertex_x", b"vertex_y")):
        return (
            "boundaries of cells (as of Xenium) in micrometres; save them as GeoJSON in px of the "
            "image, a polygon for each cell_id"
        )
    if _YOLO.match(start) and len(start.partition(b"\n")[0].split()) <= _YOLO_NUMBERS:
        return "YOLO labels of boxes, which outline no nucleus; export segments"
    return None


def _without_comments(text: bytes) -> bytes:
    return re.sub(rb"<!--.*?-->|<\?.*?\?>", b"", text, flags=re.DOTALL)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_SNIFFED_BYTES)


def _ends(path: Path) -> bytes:
    """Return the beginning of a file and its end: in COCO, a list of images may come first.

    Of a file packed by gzip, only the unpacked beginning.
    """
    with path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES)
        if start.startswith(_GZIP):
            with suppress(zlib.error):  # a damaged file is refused when it is read
                return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start, _SNIFFED_BYTES)
        rest = file.seek(0, os.SEEK_END) - len(start)
        file.seek(-min(rest, _SNIFFED_BYTES), os.SEEK_END)
        return start + file.read()
