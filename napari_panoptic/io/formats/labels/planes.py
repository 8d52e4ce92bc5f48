"""Objects from planes of ids: one plane with a table of classes, or one plane per class.

Planes are held whole or read in windows. A whole label image is read as one window, so that the
same objects are counted, renumbered and left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.guard import largest_px
from napari_panoptic.io.formats.class_tables import ClassTable
from napari_panoptic.io.formats.format import TiledMasks
from napari_panoptic.io.formats.labels.masks import vanished_findings, whole_numbers
from napari_panoptic.io.formats.reading import note
from napari_panoptic.io.pixels.label_windows import TiledPixels
from napari_panoptic.kernels.relabel import (
    list_labels,
    look_up_ids,
    run_values,
    search_ids,
)
from napari_panoptic.kernels.restore import components
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import (
    ClassRows,
    IdImage,
    LabelImage,
    Vanished,
    dtype_of_ids,
)
from napari_panoptic.values.windowed_labels import Box, TiledArea, TiledLabels, if_any, paste

BINARY_VALUES = (1, 255)
"""Values of objects in binary masks."""
_PASS_PX = 1024
_HIGHEST_ID = np.iinfo(np.int64).max
# A table with a place for every id up to the highest, where it is not much larger than this.
_DENSE_UP_TO = 1 << 22
_DENSE_FACTOR = 8


class Plane:
    """The ids in one image, window by window, as unsigned numbers.

    The window that a thread read last is kept for it: objects and ambiguous
    area are often asked for one after the other.

    Parameters
    ----------
    source
        The numbers.
    what
        What they are, for errors.
    highest
        The highest id if all pixels are in memory; 0 if it is not known.
    """

    def __init__(self, source: TiledPixels, what: str, highest: int = 0) -> None:
        self.source, self.what, self.highest = source, what, highest
        self._last = threading.local()

    @classmethod
    def held(cls, array: NDArray[Any], path: Path, what: str) -> Plane:
        """Make a plane of an array (y, x) as saved.

        Raises
        ------
        UnreadableFileError
            If it is not 2-D or holds anything but non-negative whole numbers.
        """
        if array.ndim != 2:
            raise UnreadableFileError(
                f"{what} must be 2-D (rows, columns), found an array of shape {array.shape}",
                path=path,
            )
        numbers = _unsigned(whole_numbers(array, path=path, what=what))
        highest = int(numbers.max(initial=0))
        if highest > _HIGHEST_ID:
            # Ranks keep the order; rank 0 must stay background.
            values, ranks = np.unique(numbers, return_inverse=True)
            numbers = ranks.reshape(numbers.shape).astype(np.uint64) + np.uint64(values[0] != 0)
        height, width = numbers.shape
        # One tile: a whole image is one window.
        tile_px = max(height, width)
        source = TiledPixels(
            path, (height, width), tile_px, lambda box: numbers[box[0] : box[2], box[1] : box[3]]
        )
        return cls(source, what, highest)

    @classmethod
    def of(cls, numbers: NDArray[Any] | TiledPixels, path: Path, what: str) -> Plane:
        """Make a plane of what a reader returned: windows, or an array as in `held`."""
        if isinstance(numbers, TiledPixels):
            return cls(numbers, what)
        return cls.held(numbers, path, what)

    @property
    def path(self) -> Path:
        """The file, or folder."""
        return self.source.path

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in px."""
        return self.source.shape

    def read(self, box: Box) -> NDArray[np.unsignedinteger[Any]]:
        """Return a window, uint32 or uint64 (y, x); not to be changed."""
        known = getattr(self._last, "window", None)
        if known is not None and known[0] == box:
            window: NDArray[np.unsignedinteger[Any]] = known[1]
            return window
        numbers = self.source.read(box)
        if numbers.dtype.kind != "u":
            numbers = whole_numbers(numbers, path=self.path, what=self.what)
        window = _unsigned(numbers)
        if window.dtype == np.uint64 and int(window.max(initial=0)) > _HIGHEST_ID:
            raise self.too_large()
        self._last.window = box, window
        return window

    def narrowed(self) -> Plane:
        """Return a plane in memory whose ids have 32 bits, which must fit."""
        window = self.read((0, 0, *self.shape))
        if window.dtype == np.uint32:
            return self
        return Plane.held(window.astype(np.uint32), self.path, self.what)

    def too_large(self) -> UnreadableFileError:
        """Return the error for ids that int64 cannot hold."""
        return UnreadableFileError(
            f"{self.what} has ids above 2^63: renumber its objects", path=self.path
        )

    def filled(self, box: Box) -> NDArray[np.bool_] | None:
        """Return which pixels of a window have an id; None if none has."""
        return if_any(self.read(box) > 0)

    def ids(self, progress: CountReport = unreported) -> NDArray[np.int64]:
        """Read all windows, and return the ids in them, ascending."""
        found = np.zeros(0, np.int64)
        waiting: list[NDArray[np.int64]] = []
        for ids in self.over_windows(lambda box: _distinct(self.read(box)), progress):
            waiting.append(ids)
            if sum(map(len, waiting)) > 1_000_000:
                found, waiting = np.unique(np.concatenate([found, *waiting])), []
        if len(waiting) == 1 and not len(found):
            return waiting[0]
        return np.unique(np.concatenate([found, *waiting]))

    def over_windows(
        self, work: Callable[[Box], NDArray[Any]], progress: CountReport
    ) -> Iterator[NDArray[Any]]:
        """Yield a result for each window of the plane, in order."""
        tile_px = self.source.tile_px
        edge = tile_px * max(1, _PASS_PX // tile_px) if tile_px else _PASS_PX
        height, width = self.shape
        boxes = [
            (y, x, min(y + edge, height), min(x + edge, width))
            for y in range(0, height, edge)
            for x in range(0, width, edge)
        ]
        if len(boxes) == 1:
            yield work(boxes[0])
            progress(1, 1)
            return
        pool = ThreadPoolExecutor(max_workers=2)
        try:
            for done, found in enumerate(pool.map(work, boxes), start=1):
                yield found
                progress(done, len(boxes))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# --- objects by a table of classes ---------------------------------------------------------------


def objects_of_table(
    plane: Plane,
    table: ClassTable,
    scheme: ClassScheme,
    progress: CountReport = unreported,
) -> TiledMasks:
    """Take the objects of a plane from the table of their classes, without reading its pixels.

    The pixels are read only if objects that the table lacks have a class. Objects of the ambiguous
    class are excluded areas; those of unknown classes are left out, and reported afterwards.
    """
    note(*table.findings)
    if scheme.canonical("") is not None:
        table = table.with_unnamed(plane.ids(progress))
    if plane.highest > _HIGHEST_ID:
        raise plane.too_large()
    known = table.only(table.class_index(scheme) >= 0)
    # The ambiguous class has number 0: it is known, but is no object.
    class_index = known.class_index(scheme)
    is_object = class_index > 0
    numbers = np.where(is_object, np.cumsum(is_object), 0).astype(np.int32)
    lookup = _Lookup.of(known.ids, numbers)
    area = None
    if not is_object.all():
        is_area = _Lookup.of(known.ids, (~is_object).astype(np.int32))
        area = TiledArea(plane.shape, lambda box: if_any(is_area.of_window(plane.read(box))[0] > 0))
    unknown_ids: set[int] = set()

    def read(box: Box) -> NDArray[np.int32]:
        window, strangers = lookup.of_window(plane.read(box))
        unknown_ids.update(strangers.tolist())  # in one step: windows are read in threads
        return window

    def after(_: NDArray[np.bool_]) -> tuple[Finding, ...]:
        return tuple(_unknown_classes(sorted(unknown_ids), table, plane.path, scheme))

    labels = TiledLabels(
        shape=plane.shape,
        ids=known.ids[is_object],
        class_index=class_index[is_object],
        original_ids=known.ids[is_object],
        class_names=scheme.names,
        read=read,
        tile_px=plane.source.tile_px,
        known_scores=table.scores,
    )
    return TiledMasks(labels, area, findings_after=after)


def _unknown_classes(
    ids: list[int], table: ClassTable, path: Path, scheme: ClassScheme
) -> Iterator[Finding]:
    """Report the objects that are left out: one finding per unknown name, and one for no name."""
    names = table.names_of(ids)
    for name in sorted({names.get(id_, "") for id_ in ids}):
        concerned = tuple(id_ for id_ in ids if names.get(id_, "") == name)
        called = f"of the unknown class '{name}'" if name else "without a class"
        yield Finding(
            FindingKind.UNKNOWN_CLASS,
            f"{counted(len(concerned), 'object')} {called} left out: {english_list(concerned)}; "
            f"known classes are {english_list(list(scheme.names))}",
            path=path,
            class_name=name or None,
            count=len(concerned),
            object_ids=concerned,
        )


# --- a plane for each class ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassObjects:
    """The objects of one class."""

    plane: Plane
    #: int64 (n,): their ids, ascending.
    ids: NDArray[np.int64]

    def mask(self) -> IdImage:
        """Return the whole plane as image (y, x) of ids, int32 if they fit, else int64."""
        window = self.plane.read((0, 0, *self.plane.shape))
        dtype = dtype_of_ids(self.ids)
        if dtype.itemsize == window.dtype.itemsize:
            return window.view(dtype)
        return window.astype(dtype)


def class_objects(
    plane: Plane,
    class_name: str | None,
    *,
    may_be_binary: bool = True,
    progress: CountReport = unreported,
) -> ClassObjects:
    """Find the objects of a plane.

    A mask with the single value 1 or 255 in several pieces is binary: its
    8-connected components become objects, in raster order, unless the format
    rules that out. Ids too large for int64 are replaced by 1..n in the same order. Both are
    noted, with the name of the class.
    """

    def fallback(message: str, count: int) -> None:
        kind = FindingKind.FALLBACK
        note(Finding(kind, message, path=plane.path, class_name=class_name, count=count))

    ids = plane.ids(progress)
    if may_be_binary and len(ids) == 1 and ids[0] in BINARY_VALUES:
        pieces, n = _pieces(plane, progress)
        if n > 1:
            fallback(f"{plane.what} is binary: its {n} connected components became the objects", n)
            ids = np.arange(1, n + 1)
            return ClassObjects(pieces, ids)
    if plane.highest > _HIGHEST_ID:  # the plane has ranks
        n, of = len(ids), f"{plane.what} has ids up to {plane.highest}"
        fallback(f"{of}: its objects were numbered 1 to {n}", n)
    if plane.highest and dtype_of_ids(ids).itemsize == 4:
        # MATLAB saves float64: all classes are held until they are flattened.
        plane = plane.narrowed()
    return ClassObjects(plane, ids)


def flattened(
    own: Mapping[str, ClassObjects], shape: tuple[int, int], scheme: ClassScheme
) -> TiledMasks:
    """Lay the classes over each other, in class order: a later class covers.

    The whole image keeps the mask of each class.
    """
    layers = {name: own[name] for name in scheme.names if name in own and len(own[name].ids)}
    rows = ClassRows.of({name: objects.ids for name, objects in layers.items()}, scheme.names)
    lookups = [
        (objects.plane, _Lookup.of(objects.ids, numbers))
        for objects, numbers in zip(layers.values(), rows.numbers, strict=True)
    ]

    def read(box: Box) -> NDArray[np.int32]:
        window: NDArray[np.int32] | None = None
        for plane, lookup in lookups:
            over, _ = lookup.of_window(plane.read(box))
            if window is None:
                window = over
            else:
                np.copyto(window, over, where=over > 0)
        return np.zeros((box[2] - box[0], box[3] - box[1]), np.int32) if window is None else window

    labels = TiledLabels(
        shape=shape,
        ids=rows.ids,
        class_index=rows.class_index,
        original_ids=rows.original_ids,
        class_names=scheme.names,
        read=read,
        tile_px=max((plane.source.tile_px for plane, _ in lookups), default=0),
    )

    def after(has_pixel: NDArray[np.bool_]) -> tuple[Finding, ...]:
        lost = [
            Vanished(int(labels.ids[row]), scheme.names[number - 1], "covered by another class")
            for row, number in enumerate(labels.class_index.tolist())
            if not has_pixel[row]
        ]
        return tuple(vanished_findings(lost))

    def whole() -> tuple[LabelImage, tuple[Finding, ...]]:
        masks = {name: objects.mask() for name, objects in own.items()}
        return LabelImage.from_class_masks(masks, scheme.names, shape).with_class_overlaps(), ()

    return TiledMasks(labels, None, findings_after=after, whole=whole)


def _pieces(plane: Plane, progress: CountReport) -> tuple[Plane, int]:
    """Label the 8-connected pieces of a binary mask; return them and their number."""
    whole = (0, 0, *plane.shape)
    # A plane in memory is not cut to the extent of its objects.
    top, left, bottom, right = whole if plane.highest else _extent(plane, progress)
    if (bottom - top) * (right - left) > largest_px():
        raise UnreadableFileError(
            "the mask is binary (every object has the same number) and too large to tell "
            "its objects apart here: give every object a number of its own",
            path=plane.path,
        )
    held = components((plane.read((top, left, bottom, right)) > 0).view(np.uint8))

    def read(box: Box) -> NDArray[np.integer[Any]]:
        y0, x0, y1, x1 = box
        if top <= y0 and y1 <= bottom and left <= x0 and x1 <= right:
            return held[y0 - top : y1 - top, x0 - left : x1 - left].view(np.uint32)
        window = np.zeros((y1 - y0, x1 - x0), np.uint32)
        paste(window, box, held, (top, left))
        return window

    pieces = Plane(replace(plane.source, read=read), plane.what)
    return pieces, int(held.max(initial=0))


def _extent(plane: Plane, progress: CountReport) -> Box:
    """Return the smallest window that holds all pixels with an id; there is at least one."""

    def extent(box: Box) -> NDArray[np.int64]:
        filled = plane.read(box) > 0
        y, x = (np.flatnonzero(filled.any(axis=axis)) + box[1 - axis] for axis in (1, 0))
        return np.array([[y[0], x[0], y[-1], x[-1]]] if len(y) else np.zeros((0, 4)), np.int64)

    extents = np.concatenate(list(plane.over_windows(extent, progress)))
    top, left = extents[:, :2].min(axis=0).tolist()
    bottom, right = (extents[:, 2:].max(axis=0) + 1).tolist()
    return top, left, bottom, right


# --- numbers -------------------------------------------------------------------------------------


def _unsigned(numbers: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Return non-negative integers in one of the two types that kernels accept."""
    if numbers.dtype.itemsize <= 4:
        return np.ascontiguousarray(numbers, np.uint32)
    return np.ascontiguousarray(numbers).view(np.uint64)


def _distinct(window: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
    """Return the ids in a window, ascending."""
    if window.dtype == np.uint32:
        _, present = list_labels(window.view(np.int32), _DENSE_UP_TO)
        if len(present):
            return np.flatnonzero(present)
    values = np.unique(run_values(window))
    return values[values > 0]


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Numbers by id: a table with a place for each id, or a search if that is too large."""

    #: int64 (n,), ascending; empty where there is a place for each.
    ids: NDArray[np.int64]
    #: int32: the number of each id, or of each place with one more at the end; -1 for none.
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, ids: NDArray[np.int64], numbers: NDArray[np.int32]) -> _Lookup:
        """Make a table from ascending ids and a number for each."""
        highest = int(ids[-1]) if len(ids) else 0
        if highest > max(_DENSE_UP_TO, _DENSE_FACTOR * len(ids)):
            return cls(np.concatenate([[0], ids]), np.concatenate([[0], numbers]).astype(np.int32))
        # The last place is for all ids above the highest.
        places = np.full(highest + 2, -1, np.int32)
        places[0] = 0
        places[ids] = numbers
        return cls(np.zeros(0, np.int64), places)

    def of_window(
        self, window: NDArray[np.unsignedinteger[Any]]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the numbers of a window, 0 for ids without one, and those ids."""
        numbers = np.empty(window.shape, np.int32)
        if len(self.ids):
            has_strangers = search_ids(window, self.ids, self.numbers, numbers)
        else:
            has_strangers = look_up_ids(window, self.numbers, numbers)
        strangers = np.zeros(0, np.int64)
        if has_strangers:
            strangers = _distinct(np.where(numbers < 0, window, window.dtype.type(0)))
            np.maximum(numbers, 0, out=numbers)
        return numbers, strangers
