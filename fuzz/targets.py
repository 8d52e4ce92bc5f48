"""Every reader, with what it is fed. A new reader needs a function and an entry in `TARGETS`."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import documents as doc
from fuzz import seeds
from fuzz.challenge_readers import CHALLENGE_TARGETS
from fuzz.judge import check_findings
from fuzz.sound import check_masks, check_mpp, check_polygons
from fuzz.target import ONE_CLASS, SHAPE, Target, load, none, npy_good, one_of, unpacked
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.cohorts.description import read_description
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.patches import read_patches
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.polygons.geojson import read_geojson
from napari_panoptic.io.formats.polygons.imagescope import read_polygons
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.io.tables.challenge_dump import read_dump, read_organs
from napari_panoptic.io.tables.metadata import read_metadata
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.review.export import VERDICT_COLUMNS, verdict_rows, write_csv
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.settings import Restoration

# --- polygons -----------------------------------------------------------------------------------


def read_imagescope(path: Path) -> None:
    """Read ImageScope XML in one of the ways in which it is read."""
    if one_of(path, 2):
        check_polygons(read_polygons(path, MONUSAC_CLASSES), MONUSAC_CLASSES)
    else:
        load(path, Source.IMAGESCOPE)


def read_geojson_file(path: Path) -> None:
    """Read GeoJSON, or draw it."""
    if one_of(path, 2):
        check_polygons(read_geojson(path, MONUSAC_CLASSES), MONUSAC_CLASSES)
    else:
        load(path, Source.GEOJSON)


def _xml(tag: str, *inside: Any, **attributes: str) -> dict[str, Any]:
    return {"tag": tag, **attributes, "in": list(inside)}


def _imagescope_goods() -> list[Any]:
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


def _geojson_goods() -> list[Any]:
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


# --- pixels -------------------------------------------------------------------------------------


def read_colour_coded(path: Path) -> None:
    """Read a colour-coded mask, and restore it in some way."""
    files = MaskFiles(Source.COLOUR_CODED, {"": (path,)})
    radius = one_of(path, 6) - 2
    if radius <= 2:
        options = {"restoration": Restoration.BORDER_DILATED, "radius": radius}
        shape = reference_shape(None, [files])
        check_masks(load_masks(files, MONUSAC_CLASSES, shape=shape, **options))
    else:
        load(path, Source.COLOUR_CODED)


def read_submission(path: Path) -> None:
    """Read a class of a submission."""
    load(path, Source.SUBMISSION, class_name="Epithelial")


def read_label_image(path: Path) -> None:
    """Read a label image: of a single class, of all classes, of one class of several."""
    match one_of(path, 6):
        case 0:
            load(path, Source.LABELS)
        case 1:
            load(path, Source.LABELS, class_name="Epithelial")
        case 2:
            load(path, Source.LABELS, class_name="Ambiguous")
        case _:
            load(path, Source.LABELS, ONE_CLASS)


def read_labels(path: Path) -> None:
    """Read a label image of a single class."""
    load(path, Source.LABELS, ONE_CLASS)


def read_patch_table(path: Path) -> None:
    """Read where regions lie in slides."""
    for placed in read_patches(path):
        assert placed.region
        assert placed.slide
        assert np.isfinite([placed.patch.x_px, placed.patch.y_px]).all()
        assert 0 < placed.patch.scale < 1000


def _patch_goods() -> list[Any]:
    header = ["region", "slide", "x", "y", "scale"]
    return [
        [header, ["a", "s", 1, 2.5, 2], ["b", "s", 0, -4, ""]],
        [["region", "x", "y"], ["a", 1, 2]],
    ]


def read_classified_labels(path: Path) -> None:
    """Read a label image with its table of classes, from one input."""
    names = ("labels.npy", "labels.csv", "labels.json")
    folder = unpacked(path, names)
    load(folder / "labels.npy", Source.LABELS)


def read_zarr(path: Path) -> None:
    """Read a Zarr folder, from one input."""
    load(unpacked(path, ZARR_FILES), Source.LABELS, ONE_CLASS)


def read_slide(path: Path) -> None:
    """Read an image with its resolution."""
    if one_of(path, 2):
        info = probe_image(path)
        check_mpp(info.mpp)
        check_findings(info.findings)
        return
    with read_image(path) as image:
        check_mpp(image.mpp)
        check_findings(image.findings)
        assert image.levels[0].shape == (*image.shape, 3)
        for level in image.levels:
            assert level.dtype == np.uint8
            assert level.ndim == 3
            assert np.asarray(level[:8, :8]).shape[2] == 3


ZARR_FILES = (
    *("zarr.json", ".zgroup", ".zarray", ".zattrs", "0.0", "0.1", "c/0/0"),
    *("0/.zarray", "0/.zattrs", "0/zarr.json", "0/0.0", "0/0.1", "0/c/0/0"),
    *("labels/.zgroup", "labels/.zattrs", "labels/zarr.json"),
    *("labels/n/.zgroup", "labels/n/.zattrs", "labels/n/0/.zarray", "labels/n/0/0.0"),
)


def _pixel_seeds() -> list[bytes]:
    mask = seeds.two_objects()
    two = np.stack([mask, mask], axis=-1)
    flat = mask.astype(np.uint16)
    return [
        *(seeds.npy(array) for array in (mask, mask.astype(float), mask.astype(bool), two)),
        *(seeds.tiff(flat, compression=c) for c in (None, "adobe_deflate", "lzw")),
        seeds.tiff(flat, tile=(16, 16), predictor=True, compression="adobe_deflate"),
        seeds.tiff(np.stack([flat] * 3), photometric="minisblack"),
        seeds.tiff(flat, bigtiff=True, byteorder=">"),
        seeds.png(mask.astype(np.uint8)),
        seeds.png(flat),
    ]


def _seg_seeds() -> list[bytes]:
    mask = seeds.two_objects()
    others = {"outlines": mask, "flows": [mask], "filename": "a.png", "diameter": np.nan}
    return [seeds.npy(np.array({"masks": mask.astype(np.uint16)} | others, dtype=object))]


def _seg_goods() -> list[Any]:
    return [{"masks": [[1, 2], [3, 4]], "flows": [0.5, None, True], "filename": "a"}]


def _npz_seeds() -> list[bytes]:
    mask = seeds.two_objects()
    return [seeds.npz(labels=mask), seeds.npz(image=mask, masks=mask)]


def _npz_goods() -> list[Any]:
    mask = npy_good(seeds.two_objects())
    return [[["arr_0.npy", mask]], [["image.npy", mask], ["labels.npy", mask]]]


def _colour_seeds() -> list[bytes]:
    rgb = seeds.colours(seeds.two_objects())
    alpha = np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])
    return [
        *seeds.real_files("monusac/MoNuSAC_Testing_Color_Coded_Masks/*/*.tif"),
        *seeds.real_files("monusac/Teams/*/*/*.tif"),
        *(seeds.tiff(rgb, photometric="rgb", compression=c) for c in (None, "adobe_deflate")),
        seeds.tiff(
            rgb, photometric="rgb", planarconfig="contig", compression="lzw", predictor=True
        ),
        seeds.tiff(np.moveaxis(rgb, -1, 0), photometric="rgb", planarconfig="separate"),
        *(seeds.png(rgb, form) for form in ("PNG", "BMP", "GIF", "WEBP")),
        seeds.png(alpha),
    ]


def _slide_seeds() -> list[bytes]:
    rgb = seeds.colours(seeds.two_objects())
    options = {"photometric": "rgb", "resolution": (40_000, 40_000), "resolutionunit": 3}
    return [
        *seeds.real_files("monusac/*/*/*.svs"),
        seeds.slide(rgb),
        seeds.tiff(rgb, **options),
        seeds.tiff(rgb.astype(np.uint16) * 257, photometric="rgb"),
        *(seeds.png(rgb, form) for form in ("PNG", "JPEG", "BMP", "GIF", "WEBP")),
        seeds.png(rgb[..., 0]),
    ]


def _tiff_good(data: Any, tags: dict[int, list[Any]], order: str = "<") -> dict[str, Any]:
    listed = [[code, *value] for code, value in sorted(tags.items())]
    return {"order": order, "pages": [{"tags": listed, "data": [doc.array_hex(data)]}]}


def _tiff_tags(samples: int, bits: int, **more: Any) -> dict[int, list[Any]]:
    """Give the tags of one strip of 12 x 16 px."""
    return {
        256: [4, SHAPE[1]],
        257: [4, SHAPE[0]],
        258: [3, [bits] * samples],
        259: [3, more.get("compression", 1)],
        262: [3, 2 if samples == 3 else 1],
        273: [4, "offset"],
        277: [3, samples],
        278: [4, SHAPE[0]],
        279: [4, "size"],
        282: [5, [40_000, 1]],
        283: [5, [40_000, 1]],
        284: [3, 1],
        296: [3, 3],
        339: [3, [1] * samples],
    }


def _tiled(tags: dict[int, list[Any]]) -> dict[int, list[Any]]:
    kept = {code: value for code, value in tags.items() if code not in (273, 278, 279)}
    return kept | {322: [3, 16], 323: [3, 16], 324: [4, "offset"], 325: [4, "size"]}


def _colour_tiffs() -> list[Any]:
    rgb = seeds.colours(seeds.two_objects())
    padded = np.zeros((16, 16, 3), np.uint8)
    padded[:12] = rgb
    aperio = {270: [2, "Aperio Image Library v1\r\n16x12|MPP = 0.25|AppMag = 40"]}
    palette = _tiff_tags(1, 8) | {262: [3, 3], 320: [3, [65535, 0] * 384]}
    return [
        _tiff_good(rgb, _tiff_tags(3, 8)),
        _tiff_good(padded, _tiled(_tiff_tags(3, 8)) | aperio),
        _tiff_good(seeds.two_objects().astype(np.uint8), palette),
    ]


def _label_tiffs() -> list[Any]:
    mask = seeds.two_objects()
    padded = np.zeros((16, 16), np.uint16)
    padded[:12] = mask
    return [
        _tiff_good(mask.astype(np.uint16), _tiff_tags(1, 16)),
        _tiff_good(mask.astype(">u4"), _tiff_tags(1, 32), ">"),
        _tiff_good(padded, _tiled(_tiff_tags(1, 16))),
        _tiff_good(mask.astype(np.float32), _tiff_tags(1, 32) | {339: [3, 3]}),
    ]


def _png_goods() -> list[Any]:
    """Give PNG files as lists of chunks: colours, a palette, 16 bits."""
    mask, rgb = seeds.two_objects(), seeds.colours(seeds.two_objects())
    height, width = SHAPE

    def chunks(depth: int, kind: int, rows: Any, *more: list[str]) -> list[Any]:
        lines = b"".join(b"\0" + row.tobytes() for row in rows)
        header = ["IHDR", [width, height, depth, kind, 0, 0, 0]]
        return [header, *more, ["IDAT", lines.hex()], ["IEND", ""]]

    palette = ["PLTE", "000000ff0000ffff00"]
    return [
        chunks(8, 2, rgb, ["pHYs", "00002e2300002e2301"], ["tEXt", "4100422043"]),
        chunks(8, 3, mask.astype(np.uint8), palette, ["tRNS", "00ff"]),
        chunks(16, 0, mask.astype(">u2"), ["gAMA", "0000b18f"]),
    ]


def _pictures(value: Any) -> bytes:
    """Write a TIFF, PNG or NPY document, whichever it is."""
    if isinstance(value, dict):
        return doc.npy_bytes(value) if "header" in value else doc.tiff_bytes(value)
    return doc.png_bytes(value)


def _npy_goods() -> list[Any]:
    mask = seeds.two_objects()
    return [
        npy_good(mask),
        npy_good(mask.astype(np.uint64)),
        npy_good(np.stack([mask, mask], axis=-1).astype(np.float32)),
        npy_good(np.asfortranarray(mask.astype(np.int16)), fortran_order=True),
    ]


def _classified_goods() -> list[Any]:
    mask = seeds.two_objects()
    images = ["hex:" + seeds.npy(array).hex() for array in (mask, mask.astype(np.uint64) << 40)]
    return [
        {"labels.npy": images[0], "labels.json": {"1": "Epithelial", "2": "Lymphocyte"}},
        {"labels.npy": images[0], "labels.json": {"1": "Ambiguous", "2": 2}},
        {"labels.npy": images[1], "labels.json": {str(1 << 40): "Epithelial"}},
    ]


def _zarr_goods() -> list[Any]:
    data = "hex:" + doc.array_hex(seeds.two_objects())
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


def _mat_seeds() -> list[bytes]:
    import scipy.sparse

    mask = seeds.two_objects()
    return [
        *seeds.real_files("monusac/Submissions/*/*/*/*/*.mat"),
        seeds.mat(n_ary_mask=mask),
        seeds.mat(img=mask.astype(float), _options={"do_compression": True}),
        seeds.mat(img=mask > 0, other=mask, _options={"format": "4"}),
        seeds.mat(img=mask.astype(np.int16), _options={"format": "4"}),
        seeds.mat(img=scipy.sparse.csc_matrix(mask.astype(float)), text="a"),
        seeds.mat(img=mask, cell=np.array([1, "a"], object), struct={"a": mask}),
    ]


def _mat_goods() -> list[Any]:
    mask = seeds.two_objects()

    def variable(array: Any, kind: int, stored: int, **more: Any) -> dict[str, Any]:
        data = doc.array_hex(array, order="F")
        base = {"class": kind, "flags": 0, "dims": list(SHAPE), "name": "n_ary_mask"}
        return {**base, "type": stored, "data": data, "more": [], "compressed": False, **more}

    sparse = variable(np.ones(2), 5, 5, name="img", more=[[5, "0100000002"], [9, "00"]])
    return [
        [variable(mask, 12, 5)],
        [variable(mask.astype(float), 6, 9, compressed=True), variable(mask, 12, 5, name="x")],
        [variable(mask.astype(np.uint8), 9, 2, flags=2)],
        [sparse],
    ]


# --- text ---------------------------------------------------------------------------------------


def _read_table(path: Path) -> None:
    table = read_class_table(path, MONUSAC_CLASSES)
    assert (np.diff(table.ids) > 0).all()
    assert not len(table.ids) or table.ids[0] > 0
    classes = table.as_mapping()
    assert all(type(id_) is int and type(name) is str for id_, name in classes.items())
    assert table.names_of(list(classes)) == classes


def read_metadata_csv(path: Path) -> None:
    """Read a table of patients."""
    table = read_metadata(path, ["p1", "p2"])
    check_findings(table.findings)
    assert all(set(cells) <= {"p1", "p2"} for cells in table.columns.values())


def read_dump_file(path: Path) -> None:
    """Read the organisers' output."""
    dump = read_dump(path)
    assert dump.figures
    assert all(0 <= figure.pq <= 1 for figure in dump.figures)
    table = path.with_name("organs.csv")
    table.write_text("patient,organ\nP1,Lung\n", encoding="utf-8")
    read_organs(table, dump)


def read_cohort(path: Path) -> None:
    """Open a folder by its description."""
    with suppress(PanopticError):
        task_of(path.parent)
    with suppress(PanopticError):
        read_description(path)
    for name in ("p1_1.png", "p1_1.xml", "a/p1_2.xml", "teams/t/p1_1.geojson"):
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).touch()
    cohort = open_cohort(path.parent)
    check_findings(cohort.findings)
    assert cohort.regions
    assert len({region.name for region in cohort.regions}) == len(cohort.regions)


def _table_goods() -> list[Any]:
    return [[["id", "class"], [1, "Epithelial"], [2, "Lymphocyte"], [3, 2]]]


def _metadata_goods() -> list[Any]:
    return [[["patient", "organ", "age"], ["p1", "Lung", 51], ["p2", "Liver", ""]]]


def _dump_goods() -> list[Any]:
    path = r".\P1\P1_1\Epithelial\1_mask.mat"
    files = r"['D:\\TEAM/.\\P1\\P1_1/Epithelial\\1.mat']"
    return [["TEAM", path, files, 0.25, path.replace("Epi", "x"), "[]", 0, "OTHER", path, 1.0]]


def _cohort_goods() -> list[Any]:
    return [
        {
            "name": "x",
            "task": "nuclei",
            "classes": {"Epithelial": [255, 0, 0], "Lymphocyte": [255, 255, 0]},
            "ambiguous": {"name": "Ambiguous"},
            "masks": {"border": [[139, 69, 19]], "background": [[0, 0, 0]]},
            "aliases": {"epi": "Epithelial"},
            "files": {
                "image": ["{region}.png", "a/{region}.png"],
                "reference": {"imagescope": ["{region}.xml", "a/{region}.xml"]},
                "predictions": {
                    "geojson": "teams/{team}/{region}.geojson",
                    "labels": ["teams/{team}/{region}/{class}.tif"],
                    "classes": "teams/{team}/{region}.csv",
                },
                "patient": "(?P<patient>.+)_[0-9]+",
            },
        }
    ]


# --- what this program keeps --------------------------------------------------------------------


def read_part(path: Path) -> None:
    """Read a region that an interrupted run kept."""
    store = PartStore(path.parent / "parts")
    place = store._path("r")
    place.parent.mkdir()
    path.rename(place)
    fingerprint = store.fingerprint("r")
    assert type(fingerprint) is str
    for results in store.read("r") or ():
        for result in results:
            check_findings(result.findings)


def read_review(path: Path) -> None:
    """Open a review, look at it, and write to it."""
    store = ReviewStore(path, reviewer="me", timeout_s=0.01)
    try:
        check_findings(store.notices)
        store.reviewers()
        store.regions(team="t")
        store.agreement("me", "you")
        store.verdicts(include_others=True)
        store.poll(include_others=True)
        store.recent(20)
        rows = verdict_rows(store.verdicts(include_others=True), lambda _region, _team: None)
        write_csv(path.with_suffix(".csv"), VERDICT_COLUMNS, rows)
        for record in store.verdicts()[:2]:
            store.withdraw(record)
        store.undo()
    finally:
        store.close()


def _part_goods() -> list[Any]:
    import pandas as pd

    from napari_panoptic.common.findings import Finding, FindingKind
    from napari_panoptic.nuclei.metrics import Counts
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


def _review_goods() -> list[Any]:
    from napari_panoptic.review.file import _SCHEMA

    now = "2026-01-01T00:00:00.000000+00:00"
    verdict: list[Any] = [1, "me", "t", "r", "prediction", 7, "Epithelial", 4.5, 5.5, 20]
    verdict += ["artefact", "", "a note", now, None, None, 1, "w"]
    rows = [["schema_version", [1, now]], ["verdicts", verdict]]
    return [{"statements": [" ".join(text.split()) for text in _SCHEMA], "rows": rows}]


TARGETS: dict[str, Target] = {
    "imagescope": Target(
        "a.xml", read_imagescope, seeds.real_annotations, _imagescope_goods, doc.xml_bytes
    ),
    "geojson": Target("a.geojson", read_geojson_file, none, _geojson_goods, doc.json_bytes),
    "colour-coded": Target(
        "a_mask.tif",
        read_colour_coded,
        _colour_seeds,
        lambda: [*_colour_tiffs(), *_png_goods()],
        _pictures,
    ),
    "labels": Target(
        "a.tif",
        read_label_image,
        _pixel_seeds,
        lambda: [*_label_tiffs(), *_npy_goods(), *_png_goods()],
        _pictures,
    ),
    "cellpose-seg": Target("a_seg.npy", read_labels, _seg_seeds, _seg_goods, doc.pickle_bytes),
    "npz": Target("a.npz", read_labels, _npz_seeds, _npz_goods, doc.npz_bytes),
    "labels-with-classes": Target(
        "a.packed", read_classified_labels, none, _classified_goods, doc.pack_files, True
    ),
    "zarr": Target("a.packed", read_zarr, none, _zarr_goods, doc.pack_files, True),
    "submission": Target("a.mat", read_submission, _mat_seeds, _mat_goods, doc.mat_bytes),
    "slide": Target(
        "a.svs", read_slide, _slide_seeds, lambda: [*_colour_tiffs(), *_png_goods()], _pictures
    ),
    "picture": Target(
        "a.png", read_slide, _slide_seeds, lambda: [*_colour_tiffs(), *_png_goods()], _pictures
    ),
    "classes-csv": Target("a.csv", _read_table, none, _table_goods, doc.csv_bytes),
    "classes-json": Target(
        "a.json", _read_table, none, lambda: [{"1": "Epithelial", "2": 2}], doc.json_bytes
    ),
    "metadata": Target("metadata.csv", read_metadata_csv, none, _metadata_goods, doc.csv_bytes),
    "dump": Target("dump.txt", read_dump_file, seeds.real_dump, _dump_goods, doc.lines_bytes, True),
    "patches": Target("a.csv", read_patch_table, none, _patch_goods, doc.csv_bytes),
    "cohort": Target("cohort.toml", read_cohort, none, _cohort_goods, doc.toml_bytes, True),
    "parts": Target("part", read_part, none, _part_goods, doc.part_bytes, True),
    "review": Target(
        "panoptic-review.sqlite", read_review, none, _review_goods, doc.sqlite_bytes, True
    ),
    **CHALLENGE_TARGETS,
}
"""Name -> reader."""
