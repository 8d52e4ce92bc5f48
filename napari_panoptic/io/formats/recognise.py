"""Which program wrote a JSON or XML file, and what to do with files that no format reads."""

from __future__ import annotations

import re
from pathlib import Path

from napari_panoptic.nuclei.values.cohort import Source

_SNIFFED_BYTES = 1 << 16
_JSON_MARKS: tuple[tuple[tuple[bytes, ...], Source], ...] = (
    ((b'"nuc"',), Source.HOVERNET),
    ((b'"FeatureCollection"',), Source.GEOJSON),
    ((b'"wsi_metadata"',), Source.CELLVIT),
    ((b'"type_map"', b'"cells"'), Source.CELLVIT),
    ((b'"elements"',), Source.DSA),
    ((b'"image_id"', b'"category_id"'), Source.COCO_INSTANCES),
    ((b'"images"', b'"categories"'), Source.COCO_INSTANCES),
)
"""Words of which all stand at the beginning of a file, the most specific first."""
_FOREIGN_JSON: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b'"shapes"', b'"imagePath"'), "a labelme file; export COCO with labelme2coco"),
    ((b'"_via_img_metadata"',), "a project of the VGG Image Annotator; export it as COCO"),
    ((b'"shape_attributes"',), "a file of the VGG Image Annotator; export it as COCO"),
    ((b'"annotations"', b'"original_width"'), "a Label Studio export; export it as COCO"),
    (
        (b'"segments_info"',),
        "a COCO panoptic JSON, whose masks are in a folder beside it; open the folder of both",
    ),
)
_FOREIGN_XML: tuple[tuple[bytes, str], ...] = (
    (b"<ndpviewstate", "an NDP.view annotation (.ndpa); export GeoJSON through QuPath"),
    (b"<annotations>\n  <version>", "a CVAT file; export it as COCO"),
    (b"<bndbox>", "a Pascal VOC file of boxes, which outline no nucleus; export outlines"),
    (b"<OME", "OME-XML, which has no outlines that are read; export GeoJSON"),
)
_FOREIGN_ENDINGS = {
    ".sqlite": "a SlideRunner or EXACT database; export its annotations as COCO or GeoJSON",
    ".qpdata": "data of a QuPath project; export GeoJSON with File > Export objects",
    ".qpproj": "a QuPath project; export GeoJSON with File > Export objects",
    ".ndpa": "an NDP.view annotation; export GeoJSON through QuPath",
    ".dcm": "a DICOM file; export its annotations as GeoJSON or label images",
    ".h5": "an HDF5 file; export label images (TIFF, NPY)",
    ".hdf5": "an HDF5 file; export label images (TIFF, NPY)",
    ".ilp": "an ilastik project; export object identities as a label image (TIFF)",
    ".pkl": "a pickle, which can run programs and is not opened; export label images or GeoJSON",
    ".dat": "data of TIAToolbox in a pickle, which can run programs and is not opened; save an "
    "annotation store (.db)",
    ".parquet": "a table; export GeoJSON or label images",
    ".pt": "data of PyTorch, which can run programs and is not opened; export cells.json of "
    "CellViT, or GeoJSON",
}


def json_source(path: Path) -> Source | None:
    """Return the format of a JSON file with objects, by its beginning; None if unknown."""
    start = _start(path)
    return next((form for marks, form in _JSON_MARKS if all(m in start for m in marks)), None)


def xml_source(path: Path) -> Source | None:
    """Return the format of an XML file with objects, by its root element; None if unknown."""
    root = re.search(rb"<([A-Za-z_][\w.-]*)", _without_comments(_start(path)))
    if root is None:
        return None
    forms = {b"ASAP_Annotations": Source.ASAP, b"Annotations": Source.IMAGESCOPE}
    form = forms.get(root[1])
    is_halo = form == Source.IMAGESCOPE and re.search(rb"<V\s+X=", _start(path))
    return Source.HALO if is_halo else form


def foreign_tool(path: Path) -> str | None:
    """Describe a file of a known program that no format reads, and what to do; None if unknown."""
    name = path.name.casefold()
    for ending, what in _FOREIGN_ENDINGS.items():
        if name.endswith(ending):
            return what
    if name.endswith(".json"):
        start = _start(path)
        return next((w for marks, w in _FOREIGN_JSON if all(m in start for m in marks)), None)
    if name.endswith(".xml"):
        start = _start(path).replace(b"\r", b"")
        return next((what for mark, what in _FOREIGN_XML if mark in start), None)
    return None


def _without_comments(text: bytes) -> bytes:
    return re.sub(rb"<!--.*?-->|<\?.*?\?>", b"", text, flags=re.DOTALL)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_SNIFFED_BYTES)
