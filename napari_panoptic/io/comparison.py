"""Arrays of one image become a cohort folder, so that all that reads cohorts can show them."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from napari_panoptic.errors import LabelError, PanopticError
from napari_panoptic.io._layout import DESCRIPTION
from napari_panoptic.io.folder_scan import description_text
from napari_panoptic.io.label_images import AMBIGUOUS_SUFFIX, write_labels
from napari_panoptic.io.pair import ONLY_CLASS, PAIR, scheme_of
from napari_panoptic.regions import MONUSAC_CLASSES, ClassScheme

Classes = Mapping[int, str] | str
"""Id -> name of its class, or one class for every object."""
_CHUNK_PX = 1024
_UNSAFE = re.compile(r'[\\/:*?"<>|{}\x00-\x1f]+')


@dataclass(frozen=True, eq=False)
class Labels:
    """The objects of one side.

    Parameters
    ----------
    array
        Whole numbers (y, x), 0 for background: NumPy, or any lazy array (Dask,
        Zarr) with a shape and slices, which is written block by block.
    classes
        The classes of its objects.
    """

    array: Any
    classes: Classes = ONLY_CLASS


@dataclass(frozen=True, eq=False)
class Comparison:
    """An annotation and predictions of one image, as arrays.

    Parameters
    ----------
    reference
        The annotation.
    predictions
        Team -> its objects.
    image
        uint8 (y, x, 3) or any grey or RGB array, or None.
    ambiguous
        Boolean array (y, x), True where nothing is scored, or None.
    mpp
        Micrometres per pixel, or None.
    """

    reference: Labels
    predictions: Mapping[str, Labels]
    image: Any = None
    ambiguous: Any = None
    mpp: float | None = None
    name: str = "comparison"
    region: str = field(default=PAIR)

    def __post_init__(self) -> None:
        """Check that the arrays fit together.

        Raises
        ------
        LabelError
            Naming the array, its shape and the expected one.
        """
        if not self.predictions:
            raise PanopticError("there is nothing to compare with: give at least one prediction")
        shape = tuple(self.reference.array.shape)
        named = {f"the prediction '{n}'": p.array for n, p in self.predictions.items()}
        named |= {"the ambiguous mask": self.ambiguous, "the image": self.image}
        if len(shape) != 2:
            raise LabelError(f"the reference must be 2-D (y, x), found an array of shape {shape}")
        for what, array in named.items():
            if array is not None and tuple(array.shape[:2]) != shape:
                raise LabelError(
                    f"{what} has the shape {tuple(array.shape)}, the reference {shape}: crop or "
                    "resample one of them so that both cover the same pixels"
                )

    @property
    def scheme(self) -> ClassScheme:
        """The classes of all sides, in order of first mention."""
        sides = (self.reference, *self.predictions.values())
        names = [
            name
            for side in sides
            for name in ([side.classes] if isinstance(side.classes, str) else side.classes.values())
        ]
        wanted = [name for name in dict.fromkeys(names) if name != MONUSAC_CLASSES.ambiguous]
        return scheme_of(wanted or [ONLY_CLASS])

    def write(self, folder: Path) -> Path:
        """Write all of it as a cohort with a ``cohort.toml``.

        Parameters
        ----------
        folder
            An empty folder, or one to be made.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        PanopticError
            Where the folder has files in it, or cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise PanopticError(
                    "the folder is not empty; choose a new or empty one", path=folder
                )
            self._write_files(folder)
        except OSError as error:
            raise PanopticError(
                f"the comparison cannot be written ({error.strerror or error}); choose another "
                "folder",
                path=folder,
            ) from error
        return folder

    def _write_files(self, folder: Path) -> None:
        if self.image is not None:
            self.write_image(folder)
        ending = self.write_side(folder, None)
        if self.ambiguous is not None:
            area = folder / "reference" / f"{self.region}{AMBIGUOUS_SUFFIX}"
            write_labels(area, np.asarray(self.ambiguous).astype(bool).astype(np.uint8))
        endings = {self.write_side(folder, team) for team in self.predictions}
        lines = {
            "image": ["image/{region}.tif"] if self.image is not None else [],
            "reference.labels": ["reference/{region}" + ending],
            "predictions.labels": ["teams/{team}/{region}" + each for each in sorted(endings)],
        }
        text = description_text(self.name, self.scheme, lines)
        (folder / DESCRIPTION).write_text(text, encoding="utf-8")

    def write_image(self, folder: Path) -> None:
        """Write the image into a comparison's folder."""
        path = folder / "image" / f"{self.region}.tif"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = None if self.mpp is None else 10_000 / self.mpp
        tifffile.imwrite(
            path,
            rgb(self.image),
            photometric="rgb",
            tile=(256, 256),
            compression="adobe_deflate",
            resolution=None if size is None else (size, size),
            resolutionunit=None if size is None else "CENTIMETER",
            metadata=None,
        )

    def write_side(self, folder: Path, team: str | None) -> str:
        """Write the objects of a team, or the annotation where None; return the file's ending."""
        side = self.reference if team is None else self.predictions[team]
        place = folder / "reference" if team is None else folder / "teams" / safe_name(team)
        place.mkdir(parents=True, exist_ok=True)
        # A mask of the ambiguous area can lie beside a TIFF only.
        is_lazy = not isinstance(side.array, np.ndarray) and self.ambiguous is None
        path = place / f"{self.region}{'.zarr' if is_lazy else '.tif'}"
        if is_lazy:
            _write_blocks(path, side.array)
            ids = _ids_of_blocks(side.array)
        else:
            array = np.asarray(side.array)
            write_labels(path, array)
            ids = np.unique(array)
        with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("id", "class"))
            table.writerows(class_rows(ids, side.classes))
        return path.suffix


def class_rows(ids: Any, classes: Classes) -> list[tuple[int, str]]:
    """List the class of each id.

    Raises
    ------
    LabelError
        For an id without a class.
    """
    rows = []
    for id_ in np.asarray(ids).tolist():
        if id_ == 0:
            continue
        name = classes if isinstance(classes, str) else classes.get(int(id_))
        if name is None:
            raise LabelError(f"object {id_} has no class; name one for every id", object_id=id_)
        rows.append((int(id_), name))
    return rows


def rgb(image: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Turn a grey or RGB(A) image of any type into RGB of 8 bits.

    Floats up to 1 are taken as shares of white; other types are scaled by their
    range in the image, as napari shows them.
    """
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    pixels = pixels[..., :3]
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    values = np.nan_to_num(pixels.astype(np.float64))
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    if np.issubdtype(pixels.dtype, np.floating) and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scaled = (values - low) * (255 / (high - low) if high > low else 0)
    return scaled.round().astype(np.uint8)


def safe_name(name: str) -> str:
    """Return a name that a folder can have, for any name of a team."""
    return _UNSAFE.sub("_", name).strip(" .") or "_"


def _write_blocks(path: Path, array: Any) -> None:
    """Write a lazy array as Zarr, of which only some blocks are held at a time."""
    import zarr

    height, width = array.shape
    dtype = np.dtype(array.dtype)
    if dtype.kind == "b":
        dtype = np.dtype(np.uint8)
    target = zarr.create_array(
        str(path),
        shape=array.shape,
        dtype=dtype,
        chunks=(min(_CHUNK_PX, height), min(_CHUNK_PX, width)),
        zarr_format=2,
    )
    for y in range(0, height, _CHUNK_PX):
        target[y : y + _CHUNK_PX] = np.asarray(array[y : y + _CHUNK_PX]).astype(dtype)


def _ids_of_blocks(array: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = [
        np.unique(np.asarray(array[y : y + _CHUNK_PX])) for y in range(0, array.shape[0], _CHUNK_PX)
    ]
    return np.unique(np.concatenate(found)).astype(np.int64)
