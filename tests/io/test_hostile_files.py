"""Files made to harm whoever opens them: each is refused with a plain error, and does nothing.

Sizes are chosen so that a reader without the defence either succeeds, or takes
gigabytes or minutes.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import tifffile
from PIL import Image

from napari_panoptic.common.errors import SettingsError, UnreadableFileError
from napari_panoptic.io.files import guard
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.io.pixels.decode import pixel_shape, read_pixels
from napari_panoptic.io.pixels.label_windows import open_pixels
from napari_panoptic.io.pixels.zarr_chunks import inflated
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from tests.support.builders import annotation_xml, submission, two_objects, write_mat
from tests.support.outlines import read_outlines

WHAT = "a mask"


class Program:
    """What a pickle can hold: a call that is made when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


def same_hash(number: int) -> bytes:
    """Return a number for a pickle, in 10 bytes; the hashes of all are equal."""
    return (number * (2**61 - 1)).to_bytes(10, "little")


def read(path: Path) -> object:
    return read_pixels(path, WHAT, colour=False)


# --- programs ---------------------------------------------------------------------------------


def zarr_array(folder: Path, chunk: bytes, **metadata: object) -> Path:
    """Write a Zarr array of version 2 with one chunk, as it is given."""
    folder.mkdir()
    plain = {"zarr_format": 2, "shape": [16, 16], "chunks": [16, 16], "dtype": "<i4"}
    empty = {"compressor": None, "filters": None, "order": "C", "fill_value": 0}
    (folder / ".zarray").write_text(json.dumps({**plain, **empty, **metadata}))
    (folder / "0.0").write_bytes(chunk)
    return folder


@pytest.mark.parametrize(
    "metadata",
    [
        {"dtype": "|O", "filters": [{"id": "pickle"}]},
        {"dtype": "|O", "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}]},
        {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pickle"}},
        {"filters": [{"id": "pickle"}]},
    ],
)
def test_zarr_runs_no_pickle(tmp_path: Path, metadata: dict[str, object]) -> None:
    mark = tmp_path / "was-run"
    path = zarr_array(tmp_path / "a.zarr", pickle.dumps(Program(mark)), **metadata)
    with pytest.raises(UnreadableFileError):
        open_pixels(path, WHAT)
    assert not mark.exists()


def test_zarr_codecs_are_those_that_are_known(tmp_path: Path) -> None:
    path = zarr_array(tmp_path / "a.zarr", b"", compressor={"id": "bz2", "level": 1})
    with pytest.raises(UnreadableFileError, match="found bz2"):
        open_pixels(path, WHAT)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_numpy_files_run_no_pickle(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "was-run"
    objects = np.array([[Program(mark)]], dtype=object)
    if name.endswith("npz"):
        np.savez(tmp_path / name, a=objects)
    else:
        np.save(tmp_path / name, objects, allow_pickle=True)
    for way in (read, lambda path: open_pixels(path, WHAT)):
        with pytest.raises(UnreadableFileError):
            way(tmp_path / name)
    assert not mark.exists()


def test_masks_of_cellpose_run_no_pickle(tmp_path: Path) -> None:
    """Masks beside a program are read; a program instead of masks is refused."""
    mark, masks = tmp_path / "was-run", two_objects()
    path = tmp_path / "a_seg.npy"
    np.save(path, {"masks": masks, "flows": [Program(mark)]})  # type: ignore[arg-type]
    assert np.array_equal(read(path), masks)  # type: ignore[arg-type]
    for value in (Program(mark), [Program(mark)], [masks, Program(mark)]):
        np.save(path, {"masks": value})  # type: ignore[arg-type]
        for way in (read, lambda path: open_pixels(path, WHAT), lambda p: pixel_shape(p, WHAT)):
            with pytest.raises(UnreadableFileError, match="pickled"):
                way(path)
    assert not mark.exists()


def test_pickled_arrays_of_other_sizes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a_seg.npy"
    np.save(path, {"masks": np.ones((12, 16), np.uint8)})  # type: ignore[arg-type]
    good = path.read_bytes()
    assert good.count(b"K\x0cK\x10") == 1  # the numbers of rows and columns
    path.write_bytes(good.replace(b"K\x0cK\x10", b"K\xffK\x10"))
    with pytest.raises(UnreadableFileError, match="pickled"):
        read(path)
    path.write_bytes(good[:-20])
    with pytest.raises(UnreadableFileError, match="pickled"):
        read(path)


@pytest.mark.parametrize(
    "program",
    [
        b"\x96" + (2**50).to_bytes(8, "little"),  # an array of 2^50 bytes
        b"cos\nmkdir\n(" + b"N" * 9999 + b"tq\x00" + b"0cos\nmkdir\nh\x00R" * 50_000,
        # Keys of the same hash: tuples in tuples, numbers, places in the memory.
        b"}(K\x01" + b"2\x86" * 200 + b"Nu",
        b"}(" + b"".join(b"\x8a\x0a%sN" % same_hash(k) for k in range(50_000)) + b"u",
        b"".join(b"Np%d\n" % (k * (2**61 - 1)) for k in range(50_000)),
    ],
    ids=["size", "arguments", "tuples", "numbers", "memory"],
)
def test_pickles_take_no_more_time_and_memory_than_plain_values(
    tmp_path: Path, program: bytes
) -> None:
    path = tmp_path / "a_seg.npy"
    np.save(path, {"masks": 0})  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes()[:128] + b"\x80\x04" + program + b".")
    start = time.process_time()
    with pytest.raises(UnreadableFileError, match="pickled"):
        read(path)
    assert time.process_time() - start < 20


def test_an_archive_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i4", "fortran_order": False, "shape": (100_000, 100_000)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.npy", header.getvalue() + bytes(1000))
    tracemalloc.start()
    with pytest.raises(UnreadableFileError, match="claims 100000 x 100000"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_postscript_is_no_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 30 20\n%%EndComments\nshowpage\n")
    with pytest.raises(UnreadableFileError):
        pixel_shape(path, WHAT)


def test_matlab_functions_are_no_masks(tmp_path: Path) -> None:
    # The class of an array is the lowest byte of its flags; 16 is a function handle.
    plain = write_mat(tmp_path / "a.mat", img=two_objects()).read_bytes()
    flags = plain.index(struct.pack("<II", 6, 8)) + 8
    path = tmp_path / "b.mat"
    path.write_bytes(plain[:flags] + b"\x10" + plain[flags + 1 :])
    with pytest.raises(UnreadableFileError, match="2-D numeric variable"):
        load_masks(submission(Epithelial=path), MONUSAC_CLASSES, shape=None)


# --- more than there is memory for ------------------------------------------------------------


def test_a_tiff_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((16, 16), np.uint8), compression="adobe_deflate")
    with tifffile.TiffFile(path, mode="r+") as tiff:
        for tag in ("ImageWidth", "ImageLength", "RowsPerStrip"):
            tiff.pages[0].tags[tag].overwrite(60_000)  # type: ignore[union-attr]
    with pytest.raises(UnreadableFileError, match="claims 60000 x 60000"):
        read(path)
    with pytest.raises(UnreadableFileError, match="too large to be read at once"):
        read_image(path)


def test_a_tiff_with_a_huge_tile(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((16, 16), np.uint8), tile=(16, 16), compression="lzw")
    with tifffile.TiffFile(path, mode="r+") as tiff:
        for tag in ("TileWidth", "TileLength"):
            tiff.pages[0].tags[tag].overwrite(60_000)  # type: ignore[union-attr]
    for way in (read, lambda path: open_pixels(path, WHAT)):
        with pytest.raises(UnreadableFileError, match="smaller tiles"):
            way(path)


@pytest.mark.parametrize(("compression", "kind"), [("jpeg", "JPEG"), ("webp", "WEBP")])
def test_a_tile_that_is_a_larger_picture(tmp_path: Path, compression: str, kind: str) -> None:
    large = tmp_path / "large"
    Image.new("RGB", (1500, 1500)).save(large, kind)
    path = tmp_path / "a.tif"
    tifffile.imwrite(
        path,
        iter([large.read_bytes()]),
        shape=(64, 64, 3),
        dtype=np.uint8,
        tile=(64, 64),
        compression=compression,
        photometric="rgb",
        metadata=None,
    )
    with pytest.raises(UnreadableFileError, match="found one of 1500 x 1500 px"):
        read(path)


def png(width: int, height: int) -> bytes:
    """Write the head of a PNG file, and no pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (head, b"IDAT" + zlib.compress(b""), b"IEND")
    chunks = (struct.pack(">I", len(p) - 4) + p + struct.pack(">I", zlib.crc32(p)) for p in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_a_png_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(20_000, 20_000))
    with pytest.raises(UnreadableFileError, match="claims 20000 x 20000"):
        read(path)
    with pytest.raises(UnreadableFileError, match="too large to be read at once"):
        read_image(path)


def test_pillow_does_not_warn_below_the_limit(tmp_path: Path) -> None:
    theirs = Image.MAX_IMAGE_PIXELS
    path = tmp_path / "a.png"
    path.write_bytes(png(10_000, 10_000))  # Pillow warns from 9,459 squared
    assert probe_image(path).shape == (10_000, 10_000)
    assert theirs == Image.MAX_IMAGE_PIXELS


def test_an_npy_file_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.lib.format.open_memmap(path, "w+", np.uint8, (20_000, 20_000)).flush()  # a sparse file
    with pytest.raises(UnreadableFileError, match="claims 20000 x 20000"):
        read(path)
    with path.open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        read(path)


def matlab(path: Path, *elements: bytes) -> Path:
    """Write a MATLAB file of elements that are already in bytes."""
    head = write_mat(path, x=np.zeros((2, 2))).read_bytes()[:128]
    path.write_bytes(head + b"".join(elements))
    return path


def test_a_matlab_file_that_inflates_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(guard.VARIABLE, str(2**20))
    element = write_mat(tmp_path / "a.mat", img=np.zeros((64, 64), np.uint8)).read_bytes()[128:]
    stream = zlib.compressobj(9)
    inflated = stream.compress(element) + b"".join(stream.compress(bytes(2**20)) for _ in range(9))
    inflated += stream.flush()
    path = matlab(tmp_path / "b.mat", struct.pack("<II", 15, len(inflated)) + inflated)
    assert path.stat().st_size < 2**15
    with pytest.raises(UnreadableFileError, match="bytes of compressed data, found more"):
        load_masks(submission(Epithelial=path), MONUSAC_CLASSES, shape=None)


def test_a_sparse_matrix_that_fills_the_memory(tmp_path: Path) -> None:
    huge = scipy.sparse.csc_matrix(([1.0], ([0], [0])), (2**20, 2**12))
    path = write_mat(tmp_path / "a.mat", img=huge)
    with pytest.raises(UnreadableFileError, match="claims 1048576 x 4096"):
        load_masks(submission(Epithelial=path), MONUSAC_CLASSES, shape=None)


def test_two_variables_of_one_name(tmp_path: Path) -> None:
    # The list of variables tells of the last, and the reader gives the first.
    small = write_mat(tmp_path / "a.mat", img=two_objects()).read_bytes()[128:]
    large = write_mat(tmp_path / "b.mat", img=two_objects(40, 50)).read_bytes()[128:]
    path = matlab(tmp_path / "c.mat", large, small)
    assert [shape for _, shape, _ in scipy.io.whosmat(path)] == [(40, 50), (12, 16)]
    with pytest.raises(UnreadableFileError, match="img twice"):
        load_masks(submission(Epithelial=path), MONUSAC_CLASSES, shape=None)


def test_a_zarr_array_with_huge_chunks(tmp_path: Path) -> None:
    path = zarr_array(tmp_path / "a.zarr", b"", chunks=[2**20, 2**20])
    with pytest.raises(UnreadableFileError, match="smaller tiles"):
        open_pixels(path, WHAT)


EDGE = 256


def zarr_of_version_3(folder: Path, chunk: bytes, *codecs: dict[str, object]) -> Path:
    """Write a Zarr array of version 3 with one chunk, as it is given."""
    (folder / "c" / "0").mkdir(parents=True)
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [EDGE, EDGE],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [EDGE, EDGE]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
    }
    (folder / "zarr.json").write_text(json.dumps(metadata))
    (folder / "c" / "0" / "0").write_bytes(chunk)
    return folder


def zstd_of_unknown_size(data: bytes) -> bytes:
    """Write zeros as Zstandard that does not say how many (RFC 8878, 3.1.1: runs of one byte)."""
    sizes = [min(2**17, len(data) - start) for start in range(0, len(data), 2**17)]
    runs = [size << 3 | 0b010 for size in sizes]
    runs[-1] |= 1
    return b"\x28\xb5\x2f\xfd\x00\x50" + b"".join(struct.pack("<I", n)[:3] + b"\0" for n in runs)


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "several gzip": ("gzip", lambda d: 4 * gzip.compress(d[: len(d) // 4])),
    "zlib": ("zlib", zlib.compress),
    "zstd": ("zstd", lambda data: bytes(numcodecs.Zstd().encode(data))),
    "zstd of unknown size": ("zstd", zstd_of_unknown_size),
    "lz4": ("lz4", lambda data: bytes(numcodecs.LZ4().encode(data))),
    "blosc": ("blosc", lambda data: bytes(numcodecs.Blosc().encode(data))),
}
SETTINGS: dict[str, dict[str, object]] = {
    "gzip": {"level": 1},
    "zstd": {"level": 1, "checksum": False},
    "blosc": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0, "typesize": 4},
}


def zarr_ways(codec: str) -> dict[str, Callable[[Path, bytes], Path]]:
    """Give ways to have one chunk of int32 in a codec, by what they are."""

    def sharded(path: Path, chunk: bytes) -> Path:
        inner = {"chunk_shape": [EDGE, EDGE], "codecs": [BYTES, of_3], "index_codecs": [BYTES]}
        shards = {"name": "sharding_indexed", "configuration": inner}
        return zarr_of_version_3(path, chunk + struct.pack("<QQ", 0, len(chunk)), shards)

    shape: dict[str, object] = {"shape": [EDGE, EDGE], "chunks": [EDGE, EDGE]}
    ways: dict[str, Callable[[Path, bytes], Path]] = {
        "version 2": lambda path, chunk: zarr_array(path, chunk, **shape, compressor={"id": codec}),
        "filter": lambda path, chunk: zarr_array(path, chunk, **shape, filters=[{"id": codec}]),
    }
    if settings := SETTINGS.get(codec):
        of_3: dict[str, object] = {"name": codec, "configuration": settings}
        ways["version 3"] = lambda path, chunk: zarr_of_version_3(path, chunk, BYTES, of_3)
        ways["shard"] = sharded
    return ways


@pytest.mark.parametrize("name", ENCODERS)
def test_zarr_chunks_inflate_to_what_their_array_says(tmp_path: Path, name: str) -> None:
    codec, encoded = ENCODERS[name]
    size = EDGE * EDGE * 4
    whole, bomb = encoded(bytes(size)), encoded(bytes(2**24))
    assert len(bomb) < 2**18
    for number, (way, written) in enumerate(zarr_ways(codec).items()):
        pixels = open_pixels(written(tmp_path / f"{number}.zarr", whole), WHAT)
        assert not pixels.read((0, 0, EDGE, EDGE)).any(), way
        # Read as a whole, and cut off, they are as plainly refused.
        for data, words in ((bomb, "inflates to more"), (whole[:-1], "cannot be decoded")):
            number += 10
            path = written(tmp_path / f"{number}.zarr", data)
            tracemalloc.start()
            with pytest.raises(UnreadableFileError, match=words):
                open_pixels(path, WHAT).read((0, 0, EDGE, EDGE))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 2**22, way


def test_a_zarr_chunk_of_very_many_streams_takes_no_time(tmp_path: Path) -> None:
    streams = 200_000 * gzip.compress(b"") + gzip.compress(b"abc")
    assert inflated("gzip", streams, 1000, path=tmp_path) == b"abc"
    with pytest.raises(ValueError, match="cut off"):
        inflated("gzip", b"", 1000, path=tmp_path)


def test_zarr_files_larger_than_what_is_in_them(tmp_path: Path) -> None:
    path = zarr_array(tmp_path / "a.zarr", b"")
    os.truncate(path / "0.0", 2**32)  # sparse
    with pytest.raises(UnreadableFileError, match=r"at most 2,064 bytes .* 4,294,967,296"):
        open_pixels(path, WHAT).read((0, 0, 16, 16))
    os.truncate(path / ".zarray", 2**32)
    with pytest.raises(UnreadableFileError, match=r"at most 268,435,456 bytes"):
        open_pixels(path, WHAT)


def test_a_shard_whose_index_claims_too_much(tmp_path: Path) -> None:
    inner = {"chunk_shape": [EDGE, EDGE], "codecs": [BYTES], "index_codecs": [BYTES]}
    shards: dict[str, object] = {"name": "sharding_indexed", "configuration": inner}
    path = zarr_of_version_3(tmp_path / "a.zarr", struct.pack("<QQ", 0, 2**40), shards)
    os.truncate(path / "c" / "0" / "0", 2**40)
    with (path / "c" / "0" / "0").open("r+b") as file:
        file.seek(-16, os.SEEK_END)
        file.write(struct.pack("<QQ", 0, 2**40 - 16))
    with pytest.raises(UnreadableFileError, match=r"at most 2,147,483,648 bytes"):
        open_pixels(path, WHAT).read((0, 0, 8, 8))
    metadata = json.loads((path / "zarr.json").read_text())
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [2**21, 2**20]
    (path / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(UnreadableFileError, match="smaller tiles"):
        open_pixels(path, WHAT)


def test_a_slide_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.svs"
    text = "Aperio Image Library v11.2.1 \r\n16x16 (256x256) RGB|AppMag = 40"
    tifffile.imwrite(
        path, np.zeros((16, 16, 3), np.uint8), tile=(256, 256), description=text, metadata=None
    )
    with tifffile.TiffFile(path, mode="r+") as tiff:
        for tag in ("ImageWidth", "ImageLength"):
            tiff.pages[0].tags[tag].overwrite(2**19)  # type: ignore[union-attr]
    for way in (probe_image, read_image):
        with pytest.raises(UnreadableFileError, match=r"slide of up to|too large to be read"):
            way(path)


def test_the_limit_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    Image.new("L", (40, 30)).save(path)
    monkeypatch.setenv(guard.VARIABLE, "1199")
    with pytest.raises(UnreadableFileError, match=r"up to 1,199 px .* --max-pixels"):
        read(path)
    monkeypatch.setenv(guard.VARIABLE, "1200")
    assert np.shape(read(path)) == (30, 40)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0", "-5", "many"])
def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(guard.VARIABLE, text)
    with pytest.raises(SettingsError, match=guard.VARIABLE):
        guard.largest_px()


@pytest.mark.parametrize("length", [0, 1, 2**20, 3 * 2**20])
def test_inflated_bytes_are_counted_exactly(tmp_path: Path, length: int) -> None:
    data = zlib.compress(bytes(length))
    guard.check_inflated(data, length, path=tmp_path)
    if length * 2 > 2**20:
        with pytest.raises(UnreadableFileError):
            guard.check_inflated(data, length // 2, path=tmp_path)


# --- XML --------------------------------------------------------------------------------------


LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))


@pytest.mark.parametrize(
    "declarations",
    [
        f'<!ENTITY a0 "ha">{LAUGHS}',
        '<!ENTITY a9 SYSTEM "file:///etc/hostname">',
        '<!ENTITY a9 SYSTEM "http://127.0.0.1:9/">',
        '<!ENTITY % a9 SYSTEM "file:///etc/hostname"> %a9;',
    ],
)
def test_entities_are_refused(tmp_path: Path, declarations: str) -> None:
    text = annotation_xml(("Epithelial", [[(0, 0), (4, 0), (4, 4)]]))
    head, body = text.split("\n", 1)
    path = tmp_path / "a.xml"
    path.write_text(f"{head}<!DOCTYPE Annotations [{declarations}]>{body}", encoding="utf-8")
    with pytest.raises(UnreadableFileError, match="entities"):
        read_outlines(Source.IMAGESCOPE, path)


def test_deep_and_wide_xml(tmp_path: Path) -> None:
    wide = "<x " + " ".join(f'a{n}="1"' for n in range(50_000)) + "/>"
    text = annotation_xml(("Epithelial", [[(0, 0), (4, 0), (4, 4)]]))
    path = tmp_path / "a.xml"
    path.write_text(text.replace("</Annotations>", f"{wide}</Annotations>"), encoding="utf-8")
    assert len(read_outlines(Source.IMAGESCOPE, path).polygons) == 1
    for tag in ("x", "Annotation"):
        deep = f"<{tag}>" * 100_000 + f"</{tag}>" * 100_000
        path.write_text(text.replace("</Annotations>", f"{deep}</Annotations>"), encoding="utf-8")
        with pytest.raises(UnreadableFileError, match="within each other"):
            read_outlines(Source.IMAGESCOPE, path)


def test_xml_in_a_tiff_is_not_read(tmp_path: Path) -> None:
    # In the same folder: tifffile itself takes none from elsewhere, of late.
    tifffile.imwrite(tmp_path / "private.tif", np.full((8, 8), 77, np.uint8))
    ome = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:1">'
        '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint8" SizeX="8" '
        'SizeY="8" SizeC="1" SizeZ="1" SizeT="1"><TiffData IFD="0" PlaneCount="1">'
        '<UUID FileName="private.tif">urn:uuid:2</UUID></TiffData></Pixels></Image></OME>'
    )
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.ones((8, 8), np.uint8), description=ome, metadata=None)
    assert tifffile.imread(path).max() != 1  # by itself the library looks into the other file
    assert read(path).max() == 1  # type: ignore[attr-defined]
    assert open_pixels(path, WHAT).read((0, 0, 8, 8)).max() == 1
    for image in (probe_image, read_image):
        with pytest.raises(UnreadableFileError, match=r"in one file, found planes in others"):
            image(path)


# --- what is no file --------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    os.mkfifo(path)
    with pytest.raises(UnreadableFileError, match="found a pipe"):
        read(path)
    for source in (Source.LABELS, Source.GEOJSON, Source.COCO_INSTANCES):
        with pytest.raises(UnreadableFileError, match="found a pipe"):
            load_masks(MaskFiles(source, {"": (path,)}, "1"), MONUSAC_CLASSES, shape=(8, 8))
