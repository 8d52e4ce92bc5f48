"""Arrays of one image become a cohort folder, so that all that reads cohorts can show them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.description_edits import description_text, toml_text
from napari_panoptic.io.cohorts.pair import PAIR, scheme_of
from napari_panoptic.io.formats.labels.label_images import AMBIGUOUS_SUFFIX
from napari_panoptic.io.formats.labels.label_tiff import class_table_text, write_labels
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ONLY_CLASS, ClassScheme
from napari_panoptic.values.labels import check_mpp

Classes = Mapping[int, str] | str
"""Id -> name of its class, or one class for every object."""
_CHUNK_PX = 1024
_TILE_PX = 256
_LARGE_PX = 2**28
"""Larger arrays are written in blocks, which can be read window by window."""
_UNSAFE = re.compile(r'[\\/:*?"<>|{}\x00-\x1f]+')


@dataclass(frozen=True, eq=False)
class Labels:
    """The objects of one side."""

    #: Whole numbers (y, x), 0 for background: NumPy, or any lazy array (Dask, Zarr) with a shape
    #: and slices, which is written block by block.
    array: Any
    #: The classes of its objects.
    classes: Classes = ONLY_CLASS
    #: The scores of those objects that have one.
    scores: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LabelsComparison:
    """An annotation and predictions of one image, as arrays."""

    #: The annotation.
    reference: Labels
    #: Team -> its objects.
    predictions: Mapping[str, Labels]
    #: uint8 (y, x, 3) or any grey or RGB array, or None; a lazy one is written block by block.
    image: Any = None
    #: Boolean array (y, x), True where nothing is scored, or None.
    ambiguous: Any = None
    #: Micrometres per pixel, or None.
    mpp: float | None = None
    #: Values that are shown black and white; None for the range of the image.
    image_limits: tuple[float, float] | None = None

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
        check_mpp(self.mpp)
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

    @property
    def _folders(self) -> dict[str, str]:
        return dict(zip(self.predictions, unique_safe_names(self.predictions), strict=True))

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
            If the folder has files in it, or cannot be written.
        """
        return _written(folder, self._write_files)

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
        _write_image(path, self.image, self.image_limits, self.mpp)

    def write_side(self, folder: Path, team: str | None) -> str:
        """Write the objects of a team, or the annotation where None; return the file's ending."""
        side = self.reference if team is None else self.predictions[team]
        place = folder / "reference" if team is None else folder / "teams" / self._folders[team]
        place.mkdir(parents=True, exist_ok=True)
        # A mask of the ambiguous area can lie beside a TIFF only.
        is_large = not isinstance(side.array, np.ndarray) or side.array.size > _LARGE_PX
        is_lazy = is_large and self.ambiguous is None
        path = place / f"{self.region}{'.zarr' if is_lazy else '.tif'}"
        if is_lazy:
            ids = _write_blocks(path, side.array)
        else:
            array = np.asarray(side.array)
            write_labels(path, array)
            ids = np.unique(array)
        rows = class_rows(ids, side.classes)
        text = class_table_text(rows, [side.scores.get(id_, math.nan) for id_, _ in rows])
        path.with_suffix(".csv").write_text(text, encoding="utf-8", newline="")
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


def rgb(
    image: Any, limits: tuple[float, float] | None = None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Turn a grey or RGB(A) image of any type into RGB of 8 bits.

    Parameters
    ----------
    image
        The pixels (y, x) or (y, x, channel).
    limits
        Values that become black and white. None leaves 8 bits as they are and
        takes floats up to 1 as shares of white; other types are scaled by their
        range in the image, as napari shows them.
    """
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    pixels = pixels[..., :3]
    if pixels.dtype == np.uint8 and limits in (None, (0, 255)):
        return np.ascontiguousarray(pixels)
    values = np.nan_to_num(pixels.astype(np.float64))
    low, high = limits or (float(values.min(initial=0)), float(values.max(initial=0)))
    if limits is None and np.issubdtype(pixels.dtype, np.floating) and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scaled = (values.clip(low, high) - low) * (255 / (high - low) if high > low else 0)
    return scaled.round().astype(np.uint8)


def _write_image(
    path: Path, image: Any, limits: tuple[float, float] | None, mpp: float | None = None
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    size = None if mpp is None else 10_000 / mpp
    # Taken apart into tiles here: a lazy image is then never held as a whole.
    tifffile.imwrite(
        path,
        _tiles(image, limits),
        shape=(*image.shape[:2], 3),
        dtype=np.uint8,
        photometric="rgb",
        tile=(_TILE_PX, _TILE_PX),
        compression="adobe_deflate",
        resolution=None if size is None else (size, size),
        resolutionunit=None if size is None else "CENTIMETER",
        metadata=None,
    )


def _tiles(
    image: Any, limits: tuple[float, float] | None
) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
    """Yield the tiles of an image row by row, those at the margins filled up."""
    if isinstance(image, np.ndarray):
        image, limits = rgb(image, limits), None
    elif limits is None and image.dtype != np.uint8:
        limits = _range_of(image)  # of all tiles, which would be scaled each by its own
    height, width = image.shape[:2]
    for y in range(0, height, _TILE_PX):
        strip = rgb(image[y : y + _TILE_PX], limits)
        for x in range(0, width, _TILE_PX):
            tile = np.zeros((_TILE_PX, _TILE_PX, 3), np.uint8)
            part = strip[:, x : x + _TILE_PX]
            tile[: part.shape[0], : part.shape[1]] = part
            yield tile


def _range_of(image: Any) -> tuple[float, float]:
    """Return which values of a lazy image become black and white, as in `rgb`."""
    strips = (np.asarray(image[y : y + _TILE_PX]) for y in range(0, image.shape[0], _TILE_PX))
    ranges = [(float(np.nanmin(strip)), float(np.nanmax(strip))) for strip in strips if strip.size]
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    is_share = np.issubdtype(image.dtype, np.floating) and low >= 0 and high <= 1
    return (0.0, 1.0) if is_share else (low, high)


def unique_safe_names(names: Iterable[str]) -> list[str]:
    """Return a different folder name for each name, also where case is ignored."""
    found: list[str] = []
    for name in names:
        safe, number = safe_name(name), 2
        while safe.casefold() in {each.casefold() for each in found}:
            safe, number = f"{safe_name(name)} ({number})", number + 1
        found.append(safe)
    return found


def safe_name(name: str) -> str:
    """Return a name that a folder can have, for any name of a team."""
    return _UNSAFE.sub("_", name).strip(" .") or "_"


def _write_blocks(path: Path, array: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Write a lazy array as Zarr, of which only some blocks are held at a time; return its ids."""
    import zarr

    height, width = array.shape
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "iub":
        raise LabelError(f"labels must be whole numbers, found {dtype}")
    rows = _rows_of_blocks(array)
    target = zarr.create_array(
        str(path),
        shape=array.shape,
        dtype=np.uint8 if dtype.kind == "b" else dtype,
        chunks=(min(rows, height), min(_CHUNK_PX, width)),
        zarr_format=2,
        # Readers report missing chunks as lost.
        config={"write_empty_chunks": True},
    )
    found = np.zeros(0, np.int64)
    for y in range(0, height, rows):
        strip = np.asarray(array[y : y + rows]).astype(target.dtype)
        target[y : y + rows] = strip
        found = np.union1d(found, np.unique(strip)).astype(np.int64)
    return found


def _rows_of_blocks(array: Any) -> int:
    """Return how many rows are read at a time: those of the array's own blocks, where it can be."""
    blocks = getattr(array, "chunks", None)
    rows = blocks[0] if blocks else _CHUNK_PX
    rows = int(rows[0] if isinstance(rows, tuple) else rows)
    return rows if _TILE_PX <= rows <= 4 * _CHUNK_PX else _CHUNK_PX


@dataclass(frozen=True, eq=False)
class PointsComparison:
    """Annotated points and detections of one image, as arrays."""

    #: float (n, 2): x and y of the annotated points, in px.
    reference: np.ndarray[Any, np.dtype[np.float64]]
    #: Team -> float (n, 2) or (n, 3): x, y and perhaps confidence.
    predictions: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]
    #: Micrometres per pixel.
    mpp_xy: tuple[float, float]
    #: Height and width in px, where there is no image.
    shape: tuple[int, int]
    #: As in `LabelsComparison`; without an image a black one is written.
    image: Any = None
    image_limits: tuple[float, float] | None = None
    name: str = "comparison"
    region: str = field(default=PAIR)

    def write(self, folder: Path) -> Path:
        """Write the comparison as a cohort of detections; see `LabelsComparison.write`."""
        return _written(folder, self._write_files)

    def _write_files(self, folder: Path) -> None:
        image = np.zeros(self.shape, np.uint8) if self.image is None else self.image
        _write_image(folder / "image" / f"{self.region}.tif", image, self.image_limits)
        _write_points(folder / "reference" / f"{self.region}.csv", self.reference)
        names = unique_safe_names(self.predictions)
        for team, points in zip(names, self.predictions.values(), strict=True):
            _write_points(folder / "teams" / team / f"{self.region}.csv", points)
        lines = (
            "# Where the files of this cohort are; see docs/reference/detections.md.",
            'task = "detections"',
            f"name = {toml_text(self.name)}",
            f"mpp = [{self.mpp_xy[0]!r}, {self.mpp_xy[1]!r}]",
            "",
            "[files]",
            'image = "image/{region}.tif"',
            'reference = "reference/{region}.csv"',
            'predictions = "teams/{team}/{region}.csv"',
        )
        (folder / DESCRIPTION).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_points(path: Path, points: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(points.tolist())


def _written(folder: Path, write: Callable[[Path], None]) -> Path:
    """Write into a new or empty folder.

    Raises
    ------
    PanopticError
        If the folder has files in it, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise PanopticError("the folder is not empty; choose a new or empty one", path=folder)
        write(folder)
    except OSError as error:
        raise PanopticError(
            f"the comparison cannot be written ({error.strerror or error}); choose another folder",
            path=folder,
        ) from error
    return folder
