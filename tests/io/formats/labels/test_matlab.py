"""MATLAB files of version 7.3, which are HDF5."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files.guard import VARIABLE
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.labels.matlab import mat_value, mat_variables
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from tests.support.builders import submission, two_objects

OBJECTS = two_objects()
NUMBERS = np.random.default_rng(1).integers(0, 900, (70, 45))


def write(path: Path, numbers: NDArray[Any], **storage: Any) -> Path:
    """Write a variable as MATLAB does: 512 bytes of its own first, columns first."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("img", data=numbers.T, **storage)
    return path


def read(path: Path) -> LoadedMasks:
    files = submission(Epithelial=path)
    return load_masks(files, MONUSAC_CLASSES, shape=OBJECTS.shape, region="R_1", team="T")


def test_masks_are_read(tmp_path: Path) -> None:
    labels = read(write(tmp_path / "a.mat", OBJECTS)).labels
    np.testing.assert_array_equal(labels.id_image(), OBJECTS)


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "<i4", "f4", "f8"])
@pytest.mark.parametrize(
    "storage",
    [
        {},
        {"chunks": (16, 9)},
        {"chunks": (16, 9), "compression": "gzip"},
        {"chunks": (45, 70), "compression": "gzip", "shuffle": True},
        {"chunks": (8, 8), "compression": "gzip", "shuffle": True, "fletcher32": True},
    ],
    ids=["whole", "chunks", "deflated", "shuffled", "with checksums"],
)
def test_all_ways_to_store_numbers(tmp_path: Path, dtype: str, storage: dict[str, Any]) -> None:
    numbers = (NUMBERS % 251).astype(dtype)
    path = write(tmp_path / "a.mat", numbers, **storage)
    assert mat_variables(path) == {"img": numbers.shape}
    found = mat_value(path, "img")
    assert found.dtype == numbers.dtype
    np.testing.assert_array_equal(found, numbers)


def test_chunks_that_were_never_written_hold_the_fill_value(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("img", (20, 30), "u1", chunks=(10, 10), fillvalue=7)
        dataset[:10, :10] = 3
    expected = np.full((30, 20), 7)
    expected[:10, :10] = 3
    np.testing.assert_array_equal(mat_value(path, "img"), expected)


def test_numbers_elsewhere_are_not_seen(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(range(100)))
    other = write(tmp_path / "other.mat", OBJECTS)
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        file["text"] = "words"
        file["linked"] = h5py.ExternalLink(str(other), "img")
        file["soft"] = h5py.SoftLink("/nowhere")
        file.create_dataset("outside", (10, 10), "u1", external=[(str(secret), 0, 100)])
        layout = h5py.VirtualLayout((4, 4), "u1")
        layout[:] = h5py.VirtualSource(str(other), "img", OBJECTS.T.shape)[:4, :4]
        file.create_virtual_dataset("put_together", layout)
    assert mat_variables(path) == {}


def test_a_variable_without_numbers_does_not_hide_the_others(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mat", OBJECTS)
    with h5py.File(path, "a") as file:
        file["empty"] = h5py.Empty("f8")
    assert mat_variables(path) == {"img": OBJECTS.shape}


def test_what_claims_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        file.create_dataset("img", (60_000, 60_000), "u1", chunks=(8, 8))
    with pytest.raises(UnreadableFileError, match="claims 60000 x 60000"):
        mat_value(path, "img")
    monkeypatch.setenv(VARIABLE, str(2**40))
    with h5py.File(path, "w") as file:
        file.create_dataset("img", (60_000, 60_000), "u1", chunks=(30_000, 30_000))
    with pytest.raises(UnreadableFileError, match="smaller tiles"):
        mat_value(path, "img")


def test_a_chunk_that_inflates_without_end(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    bomb = zlib.compress(bytes(2**25))  # HDF5 1.14 keeps no more than 64 kB of so small a chunk
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("img", (8, 8), "u1", chunks=(8, 8), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), bomb)
    with pytest.raises(UnreadableFileError, match="has 65 bytes or more, expected 64"):
        mat_value(path, "img")


@pytest.mark.parametrize("mask", [0, 1])
def test_chunks_of_another_size_or_kind(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "a.mat"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("img", (8, 8), "u1", chunks=(8, 8), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(63)), filter_mask=mask)
    with pytest.raises(UnreadableFileError, match="63 bytes" if mask == 0 else "not stored as"):
        mat_value(path, "img")


def test_unknown_filters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mat", OBJECTS, chunks=(4, 4), compression="lzf")
    with pytest.raises(UnreadableFileError, match="filter 32000"):
        mat_value(path, "img")


def test_truncated_files(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mat", NUMBERS, chunks=(16, 9), compression="gzip")
    data = path.read_bytes()
    for keep in (600, len(data) // 2, len(data) - 40):
        path.write_bytes(data[:keep])
        with pytest.raises(UnreadableFileError, match="cannot be decoded"):
            read(path)


def test_other_files_are_not_taken_for_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(b"\x89HDF but no more")
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        mat_variables(path)
