"""What readers are fed, and what most of them need to be read."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fuzz import documents as doc
from fuzz.judge import Judge, Read
from fuzz.sound import check_masks, check_tiles
from napari_panoptic.io.formats.registry import load_masks, open_masks, reference_shape
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source

SHAPE = (12, 16)
ONE_CLASS = ClassScheme(("Nucleus",), ((255, 0, 0),))


@dataclass(frozen=True, eq=False)
class Target:
    """A reader, and what it is fed.

    Parameters
    ----------
    file
        What an input is called on disk.
    read
        Reads the file; raises `AssertionError` for a value that is not sound.
    seeds
        Gives good files.
    goods, write
        Good documents as plain values, and what writes them: see `fuzz.documents`.
    makes_files
        Whether reading leaves other files in the folder.
    """

    file: str
    read: Read
    seeds: Callable[[], Iterable[bytes]]
    goods: Callable[[], list[Any]]
    write: doc.Write
    makes_files: bool = False

    @cached_property
    def good_documents(self) -> list[Any]:
        """The good documents."""
        return self.goods()

    def judge(self) -> Judge:
        """Give who judges inputs."""
        return Judge(self.read, self.file, makes_files=self.makes_files)

    def document(self, decisions: bytes) -> bytes:
        """Give a file of the right form with mistakes in it; see `fuzz.documents.document`."""
        return doc.document(self.good_documents, self.write, decisions)

    def all_seeds(self) -> list[bytes]:
        """Give the good files, those of the good documents among them."""
        return [*self.seeds(), *(self.write(good) for good in self.good_documents)]


def load(
    path: Path, source: Source, scheme: ClassScheme = MONUSAC_CLASSES, class_name: str = ""
) -> None:
    """Load masks, and in windows where that can be; now and then of a size that nobody knows."""
    files = MaskFiles(source, {class_name: (path,)})
    if one_of(path, 4) == 0:
        shape = reference_shape(None, [files])
        assert shape is None or (len(shape) == 2 and min(shape) >= 0)
        check_masks(load_masks(files, scheme, shape=shape))
        return
    whole = load_masks(files, scheme, shape=SHAPE)
    check_masks(whole)
    if source not in (Source.COLOUR_CODED, Source.SUBMISSION):
        check_tiles(open_masks(files, scheme, SHAPE), whole)


def one_of(path: Path, ways: int) -> int:
    """Choose a way to read an input, always the same for the same input."""
    content = path.read_bytes() if path.is_file() else b""
    return zlib.crc32(content, len(content)) // 7 % ways


def unpacked(path: Path, names: tuple[str, ...]) -> Path:
    """Write the files that one input holds, see `fuzz.documents.pack_files`; give their folder."""
    folder = path.parent / "unpacked.zarr"
    for name, content in doc.unpack_files(path.read_bytes(), names).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def npy_good(array: Any, **more: Any) -> dict[str, Any]:
    """Give an NPY document; see `fuzz.documents.npy_bytes`."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": list(array.shape)}
    return {"version": 1, "header": header | more, "data": doc.array_hex(array)}


def none() -> list[Any]:
    """Give no seeds but the good documents."""
    return []
