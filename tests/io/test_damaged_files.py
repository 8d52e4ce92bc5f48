"""Faults that fuzzing found: each with the smallest file that shows it."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import struct
import threading
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pandas as pd
import pytest
import tifffile
from numpy.typing import NDArray

from napari_panoptic.common.errors import CohortError, PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.description import read_description
from napari_panoptic.io.cohorts.detections import read_detection_description
from napari_panoptic.io.cohorts.raters_layout import read_raters_description
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.labels.arrays import AREAS, _area_of, array_items
from napari_panoptic.io.formats.labels.coco_panoptic import panoptic_items
from napari_panoptic.io.formats.labels.matlab import mat_variables
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.io.images.volumes import read_mask, read_volume
from napari_panoptic.io.pixels.decode import pixel_shape, read_pixels, without_warnings
from napari_panoptic.io.pixels.label_windows import open_pixels, zarr_areas, zarr_label
from napari_panoptic.io.pixels.page_chain import MOST_PAGES
from napari_panoptic.io.tables.metadata import read_metadata
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.result_store import DamagedPartError, PartStore
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.review.file import ReviewError, ReviewFile
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.vocabulary import Verdict
from tests.support.builders import (
    label_files,
    noise,
    submission,
    two_objects,
    write_svs,
    write_tiff,
)
from tests.support.outlines import read_outlines
from tests.support.review_cases import subject

SHAPE = (12, 16)


@contextmanager
def every_file_closed() -> Iterator[None]:
    """Fail where a file stays open, even if only until the garbage collector comes."""
    gc.disable()
    try:
        first_free = os.dup(0)
        os.close(first_free)
        yield
        now_free = os.dup(0)
        os.close(now_free)
        assert now_free == first_free
    finally:
        gc.enable()


# --- TIFF -----------------------------------------------------------------------------------


def test_a_slide_whose_tiles_are_damaged(tmp_path: Path) -> None:
    """It was closed twice, and the second time raised an error of its own."""
    path = write_svs(tmp_path / "a.svs", noise(40, 40))
    with tifffile.TiffFile(path) as tiff:
        offset, size = tiff.pages[0].dataoffsets[0], tiff.pages[0].databytecounts[0]
    data = bytearray(path.read_bytes())
    data[offset : offset + size] = bytes(size)
    path.write_bytes(data)
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        read_image(path)


@pytest.mark.parametrize("tag", [322, 323], ids=["width", "height"])
def test_a_slide_whose_tiles_claim_to_be_huge(tmp_path: Path, tag: int) -> None:
    """OpenSlide ended the process, for want of 90 GB."""
    path = write_svs(tmp_path / "a.svs", noise(40, 40))
    with tifffile.TiffFile(path) as tiff:
        place = tiff.pages[0].tags[tag].valueoffset
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, place, 0x54000000)
    path.write_bytes(data)
    with pytest.raises(UnreadableFileError, match="pieces too large"):
        read_image(path)


def _next_page(path: Path, place: int) -> None:
    """Change where the page behind the first one begins."""
    data = bytearray(path.read_bytes())
    (first,) = struct.unpack_from("<I", data, 4)
    (n_tags,) = struct.unpack_from("<H", data, first)
    struct.pack_into("<I", data, first + 2 + 12 * n_tags, place or first)
    path.write_bytes(data)


@pytest.mark.parametrize("read", [read_pixels, pixel_shape, open_pixels])
def test_pages_that_lead_in_a_circle(tmp_path: Path, read: Any) -> None:
    """The decoder went round for hours."""
    path = write_tiff(tmp_path / "a.tif", two_objects().astype(np.uint16))
    _next_page(path, 0)
    options = {"colour": False} if read is read_pixels else {}
    with pytest.raises(UnreadableFileError, match="in a circle"):
        read(path, "a mask", **options)


def test_a_chain_of_countless_pages(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", two_objects().astype(np.uint16))
    begin = path.stat().st_size
    # Pages without a tag: their number, which is 0, and the place of the next one.
    count = MOST_PAGES + 1
    pages = [struct.pack("<HI", 0, begin + 6 * (k + 1)) for k in range(count)]
    path.write_bytes(path.read_bytes() + b"".join(pages))
    _next_page(path, begin)
    with pytest.raises(UnreadableFileError, match=f"more than {MOST_PAGES}"):
        pixel_shape(path, "a mask")


@pytest.mark.parametrize("read", [read_pixels, pixel_shape, open_pixels])
def test_a_page_whose_description_is_cut_off(tmp_path: Path, read: Any) -> None:
    """The decoder took a value in it for the place of the next page, which led in a circle."""
    path = tmp_path / "a.tif"
    entries = [struct.pack("<HHII", 256 + k, 3, 1, 16) for k in range(14)]
    content = b"II*\0" + struct.pack("<IH", 8, 15) + b"".join(entries)
    path.write_bytes(content + struct.pack("<I", 16))
    options = {"colour": False} if read is read_pixels else {}
    with pytest.raises(UnreadableFileError, match="cut off"):
        read(path, "a mask", **options)


@pytest.mark.parametrize("read", [read_pixels, open_pixels])
def test_differences_that_are_not_compressed(tmp_path: Path, read: Any) -> None:
    """Whole images differed from windows, which took them for pixels."""
    path = tmp_path / "a.tif"
    write_tiff(path, two_objects().astype(np.uint16), extratags=[(65000, 3, 1, 2, True)])
    data = path.read_bytes()
    # The tag becomes that of the predictor: horizontal differences.
    before, after = (struct.pack("<HHI", code, 3, 1) for code in (65000, 317))
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))
    options = {"colour": False} if read is read_pixels else {}
    with pytest.raises(UnreadableFileError, match="predictor but no compression"):
        read(path, "a mask", **options)


@pytest.mark.parametrize("big", [False, True])
def test_several_pages_are_read(tmp_path: Path, big: bool) -> None:
    planes = np.stack([two_objects(20, 20).astype(np.uint16)] * 3)
    path = write_tiff(tmp_path / "a.tif", planes, bigtiff=big, photometric="minisblack")
    assert np.array_equal(read_pixels(path, "a mask", colour=False), np.moveaxis(planes, 0, -1))


def test_pixel_data_that_are_nowhere(tmp_path: Path) -> None:
    """The file's first bytes were taken for objects, and whole images differed from windows."""
    path = write_tiff(tmp_path / "a.tif", two_objects().astype(np.uint32))
    with tifffile.TiffFile(path) as tiff:
        tag = tiff.pages[0].tags["StripOffsets"]
        place = tag.offset + 8
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, place, 0)
    path.write_bytes(data)
    with pytest.raises(UnreadableFileError, match="place of its pixel data is missing"):
        read_pixels(path, "a mask", colour=False)
    with pytest.raises(UnreadableFileError, match="place of its pixel data is missing"):
        open_pixels(path, "a mask")


@pytest.mark.parametrize("read", [read_pixels, open_pixels])
@pytest.mark.parametrize("options", [{}, {"compression": "adobe_deflate"}])
def test_strips_that_are_not_listed(tmp_path: Path, read: Any, options: dict[str, Any]) -> None:
    """They were background, half a million of them where the height was damaged."""
    path = write_tiff(tmp_path / "a.tif", two_objects().astype(np.uint16), **options)
    _set_tag(path, "ImageLength", 12 * 500_000)
    more = {"colour": False} if read is read_pixels else {}
    with pytest.raises(UnreadableFileError, match="1 of 500000 strips"):
        read(path, "a mask", **more)


def test_one_strip_with_all_that_several_should_have(tmp_path: Path) -> None:
    """Such files are read: nothing is missing."""
    path = write_tiff(tmp_path / "a.tif", two_objects().astype(np.uint16))
    _set_tag(path, "RowsPerStrip", 3)
    assert np.array_equal(read_pixels(path, "a mask", colour=False), two_objects())


def _set_tag(path: Path, name: str, value: int) -> None:
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags[name].overwrite(value, dtype="I")


# --- NPY and PNG ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (7,), ()])
@pytest.mark.parametrize("source", [Source.COLOUR_CODED, Source.LABELS])
def test_pictures_without_pixels(tmp_path: Path, shape: tuple[int, ...], source: Source) -> None:
    """The smallest value of no values was asked for."""
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(shape, np.uint16))
    files = MaskFiles(source, {"": (path,)})
    with pytest.raises(UnreadableFileError, match="expected a 2-D or 3-D image"):
        load_masks(files, MONUSAC_CLASSES, shape=None)
    with pytest.raises(UnreadableFileError, match="expected a 2-D or 3-D image"):
        pixel_shape(path, "a mask")


@pytest.mark.parametrize("header", ["{'descr': '<i4', 'shape': (", "(" * 9000, "{'descr': \x00"])
def test_npy_headers_that_are_no_python(tmp_path: Path, header: str) -> None:
    """Python's tokenizer and parser have errors of their own."""
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        pixel_shape(path, "a mask")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_calls_a_function(tmp_path: Path, packed: bool, version: int) -> None:
    """Python's message on such a header contains an address in memory."""
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': size(), }"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    array = b"\x93NUMPY" + bytes([version, 0]) + length + header
    path = tmp_path / ("a.npz" if packed else "a.npy")
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("labels.npy", array)
    else:
        path.write_bytes(array)
    with pytest.raises(UnreadableFileError, match=r"on line 1\)") as e:
        pixel_shape(path, "a mask")
    assert "0x" not in str(e.value)


def test_an_npz_with_a_type_that_is_no_python(tmp_path: Path) -> None:
    """numpy calls a number that begins with 0 a syntax error."""
    header = b"{'descr': '01', 'fortran_order': False, 'shape': (2, 2), }"
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
        archive.writestr("labels.npy", start + header)
    for read in (pixel_shape, partial(read_pixels, colour=False)):
        with pytest.raises(UnreadableFileError, match="cannot be decoded"):
            read(path, "a mask")


def test_a_png_with_a_chunk_that_has_no_name(tmp_path: Path) -> None:
    """Pillow calls that a syntax error."""
    path = tmp_path / "a.png"

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(10)))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"\0\0\0\0", b"") + pixels)
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        read_pixels(path, "a mask", colour=False)


def test_a_channel_of_class_numbers_with_countless_numbers(tmp_path: Path) -> None:
    """A table with a place for each number was made: terabytes for one large number."""
    ids = np.arange(1, 193).reshape(SHAPE)
    path = tmp_path / "a.npy"
    np.save(path, np.stack([ids, ids], axis=-1))
    with pytest.raises(UnreadableFileError, match="192 different numbers up to 192"):
        load_masks(label_files(path), MONUSAC_CLASSES, shape=SHAPE)


def test_a_large_class_number_is_an_unknown_class(tmp_path: Path) -> None:
    numbers = two_objects().astype(np.int64)
    numbers[numbers == 2] = 2**40
    path = tmp_path / "a.npy"
    np.save(path, np.stack([two_objects(), numbers], axis=-1))
    loaded = load_masks(label_files(path), MONUSAC_CLASSES, shape=SHAPE)
    assert loaded.labels.ids.tolist() == [1]
    assert any(str(2**40) in finding.message for finding in loaded.findings)


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_vertex_of_hundreds_of_digits(tmp_path: Path, number: int) -> None:
    """It raised `OverflowError`."""
    path = tmp_path / "a.geojson"
    ring = [[number, 0], [1, 1], [5, 1], [5, 4], [1, 4]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    # NaN keeps the vertices from the scanner of plain numbers.
    path.write_text(json.dumps({"type": "Feature", "geometry": geometry, "x": float("nan")}))
    found = read_outlines(Source.GEOJSON, path)
    assert not (np.abs(found.polygons.vertices_xy) > 5).any()
    assert found.findings


@pytest.mark.parametrize("x", ["1e308", "-1e308", "1e999", "nan"])
def test_a_hole_in_a_region_with_an_absurd_vertex(tmp_path: Path, x: str) -> None:
    """Looking for the region that contains the hole warned of overflows."""

    def region(negative: int, *points: tuple[str, int]) -> str:
        vertices = "".join(f'<V X="{x}" Y="{y}"/>' for x, y in points)
        head = f'<Region Type="Polygon" NegativeROA="{negative}"><Vertices>'
        return f"{head}{vertices}</Vertices></Region>"

    outer = region(0, ("2", 2), ("14", 2), (x, 12), ("2", 12))
    inner = region(1, ("4", 4), ("6", 4), ("6", 6))
    path = tmp_path / "a.annotations"
    path.write_text(
        f'<Annotations><Annotation Name="Epithelial"><Regions>{outer}{inner}</Regions>'
        "</Annotation></Annotations>"
    )
    with pytest.raises(UnreadableFileError, match="object 1 with a coordinate out of range"):
        load_masks(MaskFiles(Source.HALO, {"": (path,)}), MONUSAC_CLASSES, shape=SHAPE)


@pytest.mark.parametrize("kind", ["9" * 5000, "²", "٣" * 30])
def test_a_text_of_digits_that_is_no_class_number(tmp_path: Path, kind: str) -> None:
    """Python refuses to convert thousands of digits, and small raised ones."""
    contour = [[1, 1], [5, 1], [5, 4], [1, 4]]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"nuc": {"1": {"contour": contour, "type": kind}}}))
    loaded = load_masks(MaskFiles(Source.HOVERNET, {"": (path,)}), MONUSAC_CLASSES, shape=SHAPE)
    assert loaded.labels.ids.tolist() == []
    (finding,) = loaded.findings
    assert finding.kind is FindingKind.UNKNOWN_CLASS


# --- MATLAB ---------------------------------------------------------------------------------


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _mat(
    tmp_path: Path,
    class_number: int,
    *elements: tuple[int, NDArray[Any] | bytes],
    shape: tuple[int, int] = SHAPE,
) -> MaskFiles:
    """Write one variable; elements follow its name."""
    body = _element(6, struct.pack("<II", class_number, 0)) + _element(
        5, struct.pack("<2i", *shape)
    )
    body += _element(1, b"n_ary_mask")
    for kind, data in elements:
        body += _element(kind, data if isinstance(data, bytes) else data.tobytes(order="F"))
    path = tmp_path / "a.mat"
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    path.write_bytes(header + _element(14, body))
    return submission(Epithelial=path)


def _ids(files: MaskFiles) -> NDArray[np.int64]:
    return load_masks(files, MONUSAC_CLASSES, shape=SHAPE).labels.id_image()


def test_matlab_numbers_are_read(tmp_path: Path) -> None:
    files = _mat(tmp_path, 6, (2, two_objects().astype(np.uint8)))
    assert np.array_equal(_ids(files), two_objects())


@pytest.mark.parametrize("kind", [0, 8, 14, 200])
def test_matlab_numbers_of_no_known_type(tmp_path: Path, kind: int) -> None:
    """The library ended the process."""
    with pytest.raises(UnreadableFileError, match=f"unknown type {kind}"):
        _ids(_mat(tmp_path, 12, (kind, two_objects())))


@pytest.mark.parametrize("size", [0, 4, 766, 1000])
def test_matlab_numbers_that_do_not_fill_the_variable(tmp_path: Path, size: int) -> None:
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        _ids(_mat(tmp_path, 12, (5, bytes(size))))


def test_small_matlab_elements_that_claim_too_much(tmp_path: Path) -> None:
    """The name was cut to four bytes, and with it all that follows was misread."""
    files = _mat(tmp_path, 9, (2, two_objects().astype(np.uint8)))
    path = files.all_paths[0]
    name = _element(1, b"n_ary_mask")
    small = struct.pack("<HH", 1, 5) + b"mask" + bytes(len(name) - 8)
    path.write_bytes(path.read_bytes().replace(name, small))
    with pytest.raises(UnreadableFileError, match="small element of 5 bytes"):
        _ids(files)


def test_matlab_variables_of_negative_size(tmp_path: Path) -> None:
    """That was the size of the region, where nothing else told it."""
    files = _mat(tmp_path, 12, (5, bytes(8)), shape=(-1, -2))
    assert reference_shape(None, [files]) is None
    with pytest.raises(UnreadableFileError, match="negative size"):
        load_masks(files, MONUSAC_CLASSES, shape=None)


def test_a_matlab_file_that_claims_more_than_it_has(tmp_path: Path) -> None:
    """As much memory was taken as it claims."""
    path = tmp_path / "a.mat"
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"
    path.write_bytes(header + struct.pack("<II", 15, 2**32 - 1) + b"x")
    tracemalloc.start()
    with pytest.raises(UnreadableFileError):
        mat_variables(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 28


@pytest.mark.parametrize("order", ["<", ">"])
def test_matlab_4_is_refused(tmp_path: Path, order: str) -> None:
    path = tmp_path / "a.mat"
    numbers = two_objects().astype(np.uint8)
    header = struct.pack(f"{order}5i", 50 if order == "<" else 1050, *numbers.shape, 0, 4)
    path.write_bytes(header + b"img\0" + numbers.tobytes(order="F"))
    files = submission(Epithelial=path)
    assert reference_shape(None, [files]) is None
    with pytest.raises(UnreadableFileError, match=r"version 4, which is not read; save it again"):
        load_masks(files, MONUSAC_CLASSES, shape=None)


def _sparse(tmp_path: Path, rows: list[int], starts: list[int]) -> MaskFiles:
    parts = [(5, np.array(rows, np.int32)), (5, np.array(starts, np.int32))]
    return _mat(tmp_path, 5, *parts, (9, np.arange(1.0, len(rows) + 1)))


def test_sparse_matlab_matrices_are_read(tmp_path: Path) -> None:
    ids = _ids(_sparse(tmp_path, [3, 11], [0, 1] + [1] * 14 + [2]))
    expected = np.zeros(SHAPE)
    expected[3, 0], expected[11, 15] = 1, 2
    assert np.array_equal(ids, expected)


@pytest.mark.parametrize(
    ("rows", "starts"),
    [
        ([5_000_000, 1], [0] + [2] * 16),  # was written there, outside of all memory
        ([-1, 1], [0] + [2] * 16),
        ([0, 1], []),
        ([0, 1], [0, 2]),
        ([0, 1], [0] * 16 + [10**9]),
        ([0, 1], [0, 2, 1] + [2] * 14),
        ([0, 1], [1] + [2] * 16),
    ],
)
def test_sparse_matlab_matrices_with_wrong_indices(
    tmp_path: Path, rows: list[int], starts: list[int]
) -> None:
    """The library ended the process, or wrote to memory that was not its own."""
    with pytest.raises(UnreadableFileError, match="sparse matrix"):
        _ids(_sparse(tmp_path, rows, starts))


# --- text -----------------------------------------------------------------------------------


def _classes(path: Path, content: str) -> dict[int, str]:
    path.write_text(content, encoding="utf-8")
    return read_class_table(path, MONUSAC_CLASSES).as_mapping()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("id,class\n1\n", {1: ""}),  # was the class None
        ("id,class\n1,a\x0cb\n", {1: "a\x0cb"}),  # was taken for two lines
        ("id,class\n1,a\u2028b\n", {1: "a\u2028b"}),
        ("id,class\n1.0,a\n2,b\n", {1: "a", 2: "b"}),
        ("id,class\n1,a\n \n2,b\n", {1: "a", 2: "b"}),
        ("id,class,class\n1,a,b\n", {1: "b"}),
    ],
)
def test_unusual_class_tables(tmp_path: Path, content: str, expected: dict[int, str]) -> None:
    assert _classes(tmp_path / "a.csv", content) == expected


@pytest.mark.parametrize("id_", [10**30, -(10**30)])
@pytest.mark.parametrize("ending", ["csv", "json"])
def test_ids_beyond_any_number_in_an_image(tmp_path: Path, ending: str, id_: int) -> None:
    content = {"csv": f"id,class\n{id_},a\n2,b", "json": json.dumps({id_: "a", "2": "b"})}
    assert _classes(tmp_path / f"a.{ending}", content[ending]) == {2: "b"}


def test_json_classes_that_are_no_text(tmp_path: Path) -> None:
    content = f'{{"1": null, "2": {10**30}, "3": 1}}'
    assert _classes(tmp_path / "a.json", content) == {1: "", 2: str(10**30), 3: "Epithelial"}


@pytest.mark.parametrize("content", ["[" * 100_000, '{"1": "\\ud800"}', '{"1.5": "a"}'])
def test_json_tables_that_nobody_can_use(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnreadableFileError, match="found something else"):
        _classes(tmp_path / "a.json", content)


def test_a_table_of_patients_keeps_lines_within_cells(tmp_path: Path) -> None:
    path = tmp_path / "metadata.csv"
    path.write_text('patient,note\np,"a\nb"\n', encoding="utf-8")
    assert read_metadata(path, ["p"]).group_of("note", "p") == "a\nb"


def test_what_messages_quote_is_cut() -> None:
    assert len(english_list(["a" * 5000, "b"])) < 300
    message = str(PanopticError(f"expected a number, found {'a' * 5000}; write one"))
    assert len(message) < 2100
    assert message.endswith("; write one")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x = " + "[" * 100_000, "no valid TOML"),
        ("x = " + "9" * 5000, "no valid TOML"),
        ("files.reference.labels = '{region}/*a*a*a*a*a.png'", "4 placeholders"),
    ],
)
def test_descriptions_of_cohorts(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "cohort.toml"
    path.write_text(f"{line}\nclasses.a = [1, 2, 3]\nfiles.image = '{{region}}.png'\n")
    with pytest.raises(CohortError, match=words):
        read_description(path)


def test_an_export_with_nan_and_countless_brackets(tmp_path: Path) -> None:
    """NaN is no JSON: what reads it all the same has a depth at which it gives up, or none."""
    path = tmp_path / "a.geojson"
    path.write_text("[NaN, " + "[" * 3000 + "]" * 3001)
    with pytest.raises(UnreadableFileError, match=r"damaged|its feature 1 is none"):
        read_outlines(Source.GEOJSON, path)


@pytest.mark.parametrize(
    "content", ["<Annotations><Region", "<Annotations><!-- a --><Region", "<a><Annotations"]
)
def test_an_annotation_that_is_cut_off_is_closed(tmp_path: Path, content: str) -> None:
    """It stayed open until the garbage collector came, and Windows would not let it go."""
    path = tmp_path / "a.xml"
    path.write_text(content)
    with every_file_closed(), pytest.raises(UnreadableFileError):
        read_outlines(Source.IMAGESCOPE, path)


# --- volumes --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"tile": (16, 16)}])
def test_stacks_of_pages_are_read(tmp_path: Path, options: dict[str, Any]) -> None:
    """All but uncompressed ones were refused: later pages are described by the first."""
    stack = np.stack([two_objects(32, 40) > 0] * 3).astype(np.uint8)
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, stack, photometric="minisblack", **options)
    assert np.array_equal(read_mask(path, "a mask").values, stack > 0)
    assert read_pixels(path, "labels", colour=False).size == stack.size


@pytest.mark.parametrize("shape", [(65535, 12, 2**63 - 1), (2**63 - 1,)])
def test_npy_sizes_that_overflow(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """NumPy warned, and went on with another size."""
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        header = {"descr": "<u2", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(UnreadableFileError, match="a mask"):
        read_mask(path, "a mask")


def test_a_stack_whose_pixels_have_no_known_size(tmp_path: Path) -> None:
    """It came out without a voxel."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros(SHAPE, np.uint8))
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags["BitsPerSample"].overwrite(10_000)
    with pytest.raises(UnreadableFileError, match="without a voxel"):
        read_volume(path, "an image")


# --- Zarr -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"shape": "\udc8a"}, {"dtype": "|O"}, {"fill_value": "x"}, {"unknown": 1}]
)
def test_zarr_metadata(tmp_path: Path, change: dict[str, Any]) -> None:
    """Warnings got out, and messages that no terminal can show."""
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    good = {"zarr_format": 2, "shape": [12, 16], "chunks": [12, 16], "dtype": "<i4"}
    good |= {"compressor": None, "fill_value": 0, "order": "C", "filters": None}
    (folder / ".zarray").write_text(json.dumps(good | change))
    try:
        open_pixels(folder, "a mask").read((0, 0, 12, 16))
    except PanopticError as error:
        str(error).encode("utf-8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": [12, 2**31]}, "px"),
        ({"shape": [12, 10**30]}, "px"),
        ({"shape": [12, 10**400]}, "px"),
        ({"chunks": [0, 16]}, "chunks of at least 1 px"),
    ],
)
def test_zarr_sizes_that_no_image_has(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    """All chunks that there should be were listed, to count those that are there."""
    (tmp_path / "a.zarr").mkdir()
    array = {"zarr_format": 2, "shape": [12, 16], "chunks": [12, 16], "dtype": "<i4"}
    array |= {"compressor": None, "fill_value": 0, "order": "C", "filters": None}
    (tmp_path / "a.zarr" / ".zarray").write_text(json.dumps(array | change))
    files = label_files(tmp_path / "a.zarr")
    with pytest.raises(UnreadableFileError, match=words):
        load_masks(files, MONUSAC_CLASSES, shape=None)


def test_a_zarr_label_that_is_a_group(tmp_path: Path) -> None:
    folder = _image_with_labels(tmp_path / "a.zarr", "n")
    (folder / "labels/n/0/.zarray").rename(folder / "labels/n/0/.zgroup")
    (folder / "labels/n/0/.zgroup").write_text('{"zarr_format": 2}')
    with pytest.raises(UnreadableFileError, match="found a group"):
        load_masks(label_files(folder), MONUSAC_CLASSES, shape=SHAPE)


def _image_with_labels(folder: Path, *labels: str) -> Path:
    """Write an OME-Zarr image that names some labels; only ``n`` is there."""
    scales = {"multiscales": [{"datasets": [{"path": "0"}]}]}
    array = {"zarr_format": 2, "shape": [12, 16], "chunks": [12, 16], "dtype": "<i4"}
    array |= {"compressor": None, "fill_value": 0, "order": "C", "filters": []}
    label = scales | {"image-label": {}}
    groups = {"": scales, "labels": {"labels": list(labels)}, "labels/n": label}
    for name, attributes in groups.items():
        (folder / name).mkdir(parents=True)
        (folder / name / ".zgroup").write_text('{"zarr_format": 2}')
        (folder / name / ".zattrs").write_text(json.dumps(attributes))
    (folder / "labels/n/0").mkdir()
    (folder / "labels/n/0/.zarray").write_text(json.dumps(array))
    return folder


def test_zarr_warnings_of_its_metadata(tmp_path: Path) -> None:
    """Zarr warns of filters that are an empty list."""
    folder = _image_with_labels(tmp_path / "a.zarr", "n")
    array, _ = zarr_label(folder, "a mask")
    assert array.shape == (12, 16)
    assert zarr_areas(folder, {"n"}) == ()


def test_a_zarr_label_without_a_name(tmp_path: Path) -> None:
    """It was looked for in its own group a thousand times."""
    folder = _image_with_labels(tmp_path / "a.zarr", "")
    with pytest.raises(UnreadableFileError, match="a group with neither"):
        zarr_label(folder, "a mask")


# --- what the program keeps -----------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["[[{}]]", "[5]", "5", "[" * 100_000, '[[{"team": 5, "patient": "p", "region": "r"}]]']
)
def test_a_stored_region_of_another_layout(tmp_path: Path, body: str) -> None:
    store = PartStore(tmp_path)
    header = {"format": "napari-panoptic region 3", "region": "r", "fingerprint": "f"}
    line = json.dumps(header | {"sha256": sha256(body.encode()).hexdigest()})
    store._path("r").write_text(f"{line}\n{body}\n", encoding="utf-8")
    with pytest.raises(DamagedPartError):
        store.read("r")


@pytest.mark.parametrize("dtype", [[], "i4,i4"])
def test_a_stored_table_whose_columns_have_several_fields(tmp_path: Path, dtype: object) -> None:
    result = {"team": "t", "patient": "p", "region": "r", "objects": [["iou", dtype, [0.5]]]}
    header = {"format": "napari-panoptic region 3", "region": "r", "fingerprint": "f"}
    body = json.dumps([[result | {"counts": None, "scores": {}}]])
    store = PartStore(tmp_path)
    line = json.dumps(header | {"sha256": sha256(body.encode()).hexdigest()})
    store._path("r").write_text(f"{line}\n{body}\n", encoding="utf-8")
    with pytest.raises(DamagedPartError):
        store.read("r")


def _change(path: Path, *keys: Any, value: Any) -> None:
    """Change a value of the results in a stored region."""
    header, body, _ = path.read_text(encoding="utf-8").split("\n")
    results = json.loads(body)
    place = results
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    body = json.dumps(results)
    line = json.dumps(json.loads(header) | {"sha256": sha256(body.encode()).hexdigest()})
    path.write_text(f"{line}\n{body}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("region",), "s"),  # the results of another region
        (("objects", 0, 2, 0), 1e300),  # a warning of a conversion
        (("objects", 0, 2, 0), 1.5),
        (("objects", 1, 2, 0), "1"),
        (("counts", "tp"), []),
        (("counts", "tp"), [1, 2]),
        (("counts", "tp", 0), 1.5),
        (("counts", "tp", 0), -1),
        (("counts", "confusion"), [[0]]),
        (("counts", "iou_sum", 0), float("nan")),
        (("counts", "hausdorff_sum_px", 0), float("inf")),
        (("counts", "ignored_reference"), -1),
    ],
)
def test_a_stored_number_that_no_evaluation_has(
    tmp_path: Path, keys: tuple[Any, ...], value: Any
) -> None:
    store = PartStore(tmp_path)
    objects = pd.DataFrame({"partner_id": pd.array([1], "Int64"), "iou": [0.5]})
    store.write("r", "f", [[RegionResult("t", "p", "r", objects, Counts.zero(("a",)))]])
    assert store.read("r") is not None
    _change(store._path("r"), 0, 0, *keys, value=value)
    with pytest.raises(DamagedPartError, match="evaluated again"):
        store.read("r")


@pytest.mark.parametrize("count", [0, -1, 1.0])
def test_a_stored_finding_that_nobody_made(tmp_path: Path, count: float) -> None:
    """It was shown as found no times."""
    store = PartStore(tmp_path)
    finding = Finding(FindingKind.EXTRA, "odd", count=7)
    store.write("r", "f", [[RegionResult("t", "p", "r", None, None, findings=(finding,))]])
    _change(store._path("r"), 0, 0, "findings", 0, "count", value=count)
    with pytest.raises(DamagedPartError):
        store.read("r")


def test_a_stored_region_whose_first_line_is_deep(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    store._path("r").write_text("[" * 100_000 + "\n\n", encoding="utf-8")
    with pytest.raises(DamagedPartError):
        store.fingerprint("r")


@pytest.mark.parametrize("layout", [0, -1, -(2**31), 2**31 - 1])
def test_a_review_of_another_layout(tmp_path: Path, layout: int) -> None:
    path = tmp_path / "review.sqlite"
    ReviewFile(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {layout}")
    before = path.read_bytes()
    with every_file_closed(), pytest.raises(ReviewError, match=r"newer version|another program"):
        ReviewFile(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", [-(2**62), -1, 2**63 - 1])
def test_a_change_whose_number_this_program_never_gives(tmp_path: Path, number: int) -> None:
    path = tmp_path / "review.sqlite"
    with ReviewStore(path, reviewer="a") as store:
        given = store.give(subject(), Verdict.BOTH_WRONG)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE changes SET number = ?", (number,))
    with every_file_closed(), ReviewStore(path, reviewer="a") as store:
        assert store.verdicts() == [given]
        if number == 2**63 - 1:  # no larger number is left
            with pytest.raises(ReviewError, match="NOT saved"):
                store.give(subject(2), Verdict.BOTH_WRONG)
        else:
            store.give(subject(2), Verdict.BOTH_WRONG)
            assert len(store.verdicts()) == 2


def test_a_review_whose_schema_is_no_text(tmp_path: Path) -> None:
    """SQLite quotes it, and Python could not make text of what SQLite said."""
    path = tmp_path / "review.sqlite"
    ReviewFile(path).close()
    content = path.read_bytes()
    assert b"CREATE TABLE changes" in content
    path.write_bytes(content.replace(b"CREATE TABLE changes", b"CREATE \x80ABLE changes"))
    with closing(ReviewFile(path)) as file:
        (notice,) = file.notices
    assert "schema" in notice.message


def test_a_review_of_which_a_statement_is_no_text(tmp_path: Path) -> None:
    """The bytes were searched like a text, which raised `TypeError`."""
    path = tmp_path / "review.sqlite"
    ReviewFile(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = CAST(sql AS BLOB)")
    with every_file_closed(), pytest.raises(ReviewError, match="expected a review file of plain"):
        ReviewFile(path)


def test_warnings_are_back_when_the_last_decoder_ends() -> None:
    before = list(warnings.filters)
    entered, may_end = threading.Event(), threading.Event()

    def decode() -> None:
        with without_warnings():
            entered.set()
            may_end.wait(10)

    other = threading.Thread(target=decode)
    with without_warnings():
        other.start()
        entered.wait(10)
    warnings.warn("nobody hears this", stacklevel=1)
    may_end.set()
    other.join()
    assert warnings.filters == before
    with pytest.raises(UserWarning, match="heard"):
        warnings.warn("this is heard", stacklevel=1)


def test_what_is_written_out_makes_no_message_endless() -> None:
    error = PanopticError("\0" * 5000, path=Path("\0" * 200))
    assert len(str(error)) <= 4000


def test_types_of_pannuke_in_more_dimensions(tmp_path: Path) -> None:
    np.save(tmp_path / "masks.npy", np.zeros((2, 4, 4, 6)))
    np.save(tmp_path / "types.npy", np.array([["a", "b"], ["c", "d"]]))
    with pytest.raises(UnreadableFileError, match="2"):
        list(array_items(tmp_path / "masks.npy"))


def test_excluded_areas_that_are_text(tmp_path: Path) -> None:
    areas = tmp_path / AREAS
    np.save(areas, np.zeros((1, 12, 16), "S1"))
    files = MaskFiles(Source.CONIC, {"": (tmp_path / "labels.npy", areas)}, item="0")
    with pytest.raises(UnreadableFileError, match=r"excluded areas .* type \|S1"):
        _area_of(files, (12, 16))


def test_a_store_whose_schema_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE annotations (id, geometry, properties)")
        connection.execute("CREATE TABLE metadata (key, value)")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE metadata", b"CREATE \x80ABLE metadata"))
    with every_file_closed(), pytest.raises(UnreadableFileError, match="not UTF-8"):
        read_outlines(Source.ANNOTATION_STORE, path)


def test_resolutions_of_which_one_is_below_zero(tmp_path: Path) -> None:
    """Their mean was taken for micrometres per pixel."""
    path = write_tiff(
        tmp_path / "a.tif", noise(9, 9), resolution=(40_000, 50_000), resolutionunit="CENTIMETER"
    )
    with tifffile.TiffFile(path) as tiff:
        place = tiff.pages[0].tags["YResolution"].valueoffset
    data = bytearray(path.read_bytes())
    for code in (282, 283):  # signed numbers
        entry = struct.pack("<HHI", code, 5, 1)
        assert data.count(entry) == 1
        data[:] = data.replace(entry, struct.pack("<HHI", code, 10, 1))
    (denominator,) = struct.unpack_from("<i", data, place + 4)
    struct.pack_into("<i", data, place + 4, -denominator)
    path.write_bytes(data)
    info = probe_image(path)
    assert info.mpp is None
    assert [finding.kind for finding in info.findings] == [FindingKind.NO_MPP]


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="invalid character"):
        read_pixels(tmp_path / "a\0.png", "a mask", colour=False)


@pytest.mark.parametrize(
    ("name", "words"),
    [("a" * 300 + ".png", "cannot be opened"), ("a\0/b.png", "in the folder of the PNG files")],
)
def test_pictures_of_coco_panoptic_that_no_file_can_have(
    tmp_path: Path, name: str, words: str
) -> None:
    """The file was looked for once more to explain that it is not there, which failed."""
    path = tmp_path / "panoptic.json"
    annotation = {"image_id": 1, "file_name": name, "segments_info": []}
    categories = [{"id": 1, "name": "Epithelial"}]
    path.write_text(json.dumps({"annotations": [annotation], "categories": categories}))
    path.with_suffix("").mkdir()
    with pytest.raises(UnreadableFileError, match=words):
        _load_all_items(path)


def _load_all_items(path: Path) -> None:
    for item in panoptic_items(path):
        files = MaskFiles(Source.COCO_PANOPTIC, {"": (path, *item.paths)}, item.key)
        load_masks(files, MONUSAC_CLASSES, shape=SHAPE)


@pytest.mark.parametrize("level", ["1" + 400 * "0", "1e400", "nan"])
def test_a_level_beyond_any_number(tmp_path: Path, level: str) -> None:
    path = tmp_path / "cohort.toml"
    files = 'image = "{case}.png"\nraters = "{rater}/{case}-{structure}.png"\npredictions = []'
    path.write_text(f'task = "raters"\n[levels]\nat = [{level}]\n[files]\n{files}\n', "utf-8")
    with pytest.raises(CohortError, match="levels"):
        read_raters_description(path)


@pytest.mark.parametrize("size", ["1" + 400 * "0", "inf", "nan", "1e7", "0"])
def test_a_pixel_size_beyond_measure(tmp_path: Path, size: str) -> None:
    path = tmp_path / "cohort.toml"
    files = (
        'image = "{region}.tif"\nreference = "{region}.csv"\npredictions = "{team}/{region}.csv"'
    )
    text = f'task = "detections"\nmpp = {size}\n[files]\n{files}\n'
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CohortError, match="micrometres per pixel"):
        read_detection_description(path)


@pytest.mark.parametrize(
    ("shape", "change"),
    [
        ((12,), {}),
        ((12, 16), {"quatern_b": np.nan, "qform_code": 1}),
        ((12, 16), {"vox_offset": 368}),
        ((12, 16), {"dim": [3, 32767, 32767, 32767, 32767, 32767, 32767, 32767]}),
    ],
)
def test_nifti_headers_that_libraries_warn_of(
    tmp_path: Path, shape: tuple[int, ...], change: dict[str, Any]
) -> None:
    image = nibabel.Nifti1Image(np.ones(shape, np.uint8), np.eye(4))
    path = tmp_path / "a.nii"
    nibabel.save(image, path)
    content = path.read_bytes()
    header = np.frombuffer(content[:348], nibabel.nifti1.header_dtype).copy()
    for name, value in change.items():
        header[name] = value
    path.write_bytes(header.tobytes() + content[348:] + bytes(64))
    with warnings.catch_warnings(action="error"), suppress(UnreadableFileError):
        assert read_volume(path, "an image").values.ndim >= 2
