"""Label images of slides: objects are known when they are opened, pixels read in windows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.io.files.guard import largest_px
from napari_panoptic.io.formats.class_tables import ClassTable
from napari_panoptic.io.formats.format import LoadRequest, TiledMasks, located
from napari_panoptic.io.formats.labels.label_images import (
    WHAT,
    class_table_of,
    excluded_area,
    single_image,
    unknown_classes,
)
from napari_panoptic.io.formats.labels.masks import (
    BINARY_VALUES,
    extra_files,
    vanished_findings,
    whole_numbers,
)
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.io.pixels.label_windows import TiledPixels, absent_chunks, open_pixels
from napari_panoptic.kernels.relabel import look_up_ids, run_values, search_ids
from napari_panoptic.kernels.restore import components
from napari_panoptic.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.values.labels import LabelImage, Vanished, region_ids
from napari_panoptic.values.windowed_labels import Box, TiledArea, TiledLabels, UnknownIds

_PASS_PX = 1024
_HIGHEST_ID = np.iinfo(np.int32).max
# A table with a place for every id up to the highest, where it is not much larger than this.
_DENSE_UP_TO = 1 << 22
_DENSE_FACTOR = 8


def open_label_tiles(
    files: MaskFiles,
    scheme: ClassScheme,
    shape: tuple[int, int],
    *,
    region: str | None = None,
    team: str | None = None,
    progress: CountReport = unreported,
) -> TiledMasks:
    """Open the label images of one slide.

    These are read, with the same results as by
    `napari_panoptic.io.formats.labels.label_images.read_labels`:

    - one image for all classes with a table of classes, which is read at once,
      the pixels not at all;
    - one image per class, or one image of a single class. Their ids are only
      known from the pixels, which are read once.

    Parameters
    ----------
    files
        Of the form of label images; see
        `napari_panoptic.io.pixels.label_windows.open_pixels`.
    scheme
        The classes.
    shape
        Height and width in px that the images must have.
    region, team
        Names, for findings and errors.
    progress
        Called with the progress if all windows must be read.

    Raises
    ------
    UnreadableFileError
        If a file cannot be read in windows, has another size, or does not
        tell the classes of its objects.
    """
    request = LoadRequest(shape=shape, region=region, team=team)
    opened = _Opening(scheme, shape, request, progress)
    if paths := files.paths.get(""):
        return opened.single(paths, files.rules.score)
    return opened.per_class(files)


@dataclass(frozen=True)
class _Opening:
    """Arguments shared by all ways to open label images."""

    scheme: ClassScheme
    shape: tuple[int, int]
    request: LoadRequest
    progress: CountReport

    def single(self, paths: tuple[Path, ...], score: str | None) -> TiledMasks:
        """Open one image for all classes."""
        path, sidecars, findings = single_image(paths, self.request)
        pixels = self.opened(path, "the label image")
        table = class_table_of(path, sidecars, self.scheme, self.request, score)
        if table is not None:
            findings += table.findings
            return self._with_area(path, self._with_table(pixels, table, findings))
        name = self.scheme.names[0]
        masks = self._flattened({name: (pixels, "the label image")}, None, findings)
        return self._with_area(path, masks)

    def _with_area(self, path: Path, masks: TiledMasks) -> TiledMasks:
        """Add the excluded area that lies beside the label image, or in the same OME-Zarr image."""
        if (area := excluded_area(path, self.scheme)) is None:
            return masks
        check_size(area.shape, self.shape, path=area.path, region=self.request.region)
        filled = _Pixels(area, "the excluded area", self.request.region).filled
        if (before := masks.ambiguous) is None:
            return replace(masks, ambiguous=TiledArea(self.shape, filled))

        def both(box: Box) -> NDArray[np.bool_] | None:
            one, other = filled(box), before.read(box)
            return other if one is None else one if other is None else one | other

        return replace(masks, ambiguous=TiledArea(self.shape, both))

    def per_class(self, files: MaskFiles) -> TiledMasks:
        """Open one image per class, the ambiguous one included."""
        masks: dict[str, tuple[_Pixels, str]] = {}
        ambiguous: TiledArea | None = None
        findings: list[Finding] = []
        for name, paths in files.paths.items():
            if not paths:
                continue
            what = f"the {name} label image"
            findings += [*extra_files(name, paths), *absent_chunks(paths[0])]
            pixels = self.opened(paths[0], what)
            if name == self.scheme.ambiguous:
                ambiguous = TiledArea(self.shape, pixels.filled)
            elif name in self.scheme.names:
                masks[name] = pixels, what
        return self._flattened(masks, ambiguous, findings)

    def opened(self, path: Path, what: str) -> _Pixels:
        pixels = open_pixels(path, WHAT)
        check_size(pixels.shape, self.shape, path=path, region=self.request.region, what=what)
        return _Pixels(pixels, what, self.request.region)

    def _with_table(
        self, pixels: _Pixels, classes: ClassTable, findings: list[Finding]
    ) -> TiledMasks:
        """Take the objects from the table of their classes."""
        if classes.ids.max(initial=0) > _HIGHEST_ID:
            pixels, classes = self._renumbered(pixels, classes, findings)
        known = classes.only(classes.class_index(self.scheme) >= 0)
        # The ambiguous class has number 0: known, and no object.
        class_index = known.class_index(self.scheme)
        is_object = class_index > 0
        numbers = np.where(is_object, np.cumsum(is_object), 0).astype(np.int32)
        lookup = _Lookup.of(known.ids, numbers)
        area = None
        if not is_object.all():
            is_area = _Lookup.of(known.ids, (~is_object).astype(np.int32))
            area = TiledArea(self.shape, lambda box: _any(pixels.looked_up(is_area, box)[0] > 0))
        unknown_ids = UnknownIds()

        def read(box: Box) -> NDArray[np.int32]:
            window, strangers = pixels.looked_up(lookup, box)
            unknown_ids.note(strangers)
            return window

        def after(_: NDArray[np.bool_]) -> tuple[Finding, ...]:
            found = unknown_ids.ids()
            names = classes.names_of(found)
            unknown = unknown_classes(found, [None] * len(found), names, pixels.path, self.scheme)
            return located(unknown, self.request)

        labels = self._labels(known.ids[is_object], class_index[is_object], None, read, [pixels])
        labels = replace(labels, unknown_ids=unknown_ids, known_scores=classes.scores)
        return TiledMasks(labels, area, located(findings, self.request), after)

    def _renumbered(
        self, pixels: _Pixels, classes: ClassTable, findings: list[Finding]
    ) -> tuple[_Pixels, ClassTable]:
        """Renumber the objects from 1 if any id of the image is too large."""
        ids = self._ids_in(pixels)
        highest = int(ids.max(initial=0))
        if highest <= _HIGHEST_ID:
            return pixels, classes
        message = f"the label image has ids up to {highest}: objects were renumbered"
        findings.append(Finding(FindingKind.FALLBACK, message, path=pixels.path, count=len(ids)))
        renumbered = pixels.replaced(_Lookup.of(ids, np.arange(1, len(ids) + 1, dtype=np.int32)))
        present = classes.only(np.isin(classes.ids, ids))
        return renumbered, replace(present, ids=np.searchsorted(ids, present.ids) + 1)

    def _flattened(
        self,
        masks: Mapping[str, tuple[_Pixels, str]],
        ambiguous: TiledArea | None,
        findings: list[Finding],
    ) -> TiledMasks:
        """Lay the classes over each other, in class order: a later class covers."""
        own_ids: dict[str, NDArray[np.int64]] = {}
        layers: list[tuple[_Pixels, NDArray[np.int64]]] = []
        for name in self.scheme.names:
            if name not in masks:
                continue
            pixels, file_ids, found = self._objects(*masks[name], name)
            findings.extend(found)
            if len(file_ids):
                is_large = file_ids[-1] > _HIGHEST_ID
                own_ids[name] = np.arange(1, len(file_ids) + 1) if is_large else file_ids
                layers.append((pixels, file_ids))
        nothing = np.zeros(0, np.int64)
        original = np.concatenate([nothing, *own_ids.values()])
        ids = np.concatenate([nothing, *region_ids(own_ids).values()])
        class_index = np.repeat(
            np.array([self.scheme.names.index(name) + 1 for name in own_ids], np.int16),
            [len(own) for own in own_ids.values()],
        )
        order = np.argsort(ids, kind="stable")
        numbers = np.empty(len(ids), np.int32)
        numbers[order] = np.arange(1, len(ids) + 1, dtype=np.int32)
        ends = np.cumsum([len(file_ids) for _, file_ids in layers])
        looked_up = [
            (pixels, _Lookup.of(file_ids, numbers[end - len(file_ids) : end]))
            for (pixels, file_ids), end in zip(layers, ends.tolist(), strict=True)
        ]

        def read(box: Box) -> NDArray[np.int32]:
            window = np.zeros((box[2] - box[0], box[3] - box[1]), np.int32)
            for pixels, lookup in looked_up:
                over, _ = pixels.looked_up(lookup, box)
                np.copyto(window, over, where=over > 0)
            return window

        labels = self._labels(
            ids[order], class_index[order], original[order], read, [p for p, _ in layers]
        )

        def after(has_pixel: NDArray[np.bool_]) -> tuple[Finding, ...]:
            names = np.array(self.scheme.names, dtype=object)[labels.class_index - 1]
            lost = tuple(
                Vanished(int(labels.ids[row]), str(names[row]), "covered by another class")
                for row in np.flatnonzero(~has_pixel).tolist()
            )
            without_pixels = replace(LabelImage.empty((0, 0), self.scheme.names), vanished=lost)
            return located(vanished_findings(without_pixels), self.request)

        return TiledMasks(labels, ambiguous, located(findings, self.request), after)

    def _labels(
        self,
        ids: NDArray[np.int64],
        class_index: NDArray[np.int16],
        original: NDArray[np.int64] | None,
        read: Callable[[Box], NDArray[np.int32]],
        pixels: Sequence[_Pixels],
    ) -> TiledLabels:
        return TiledLabels(
            shape=self.shape,
            ids=ids,
            class_index=class_index,
            original_ids=ids if original is None else original,
            class_names=self.scheme.names,
            read=read,
            tile_px=max((p.tile_px for p in pixels), default=0),
        )

    # --- what only the pixels tell ------------------------------------------------------------

    def _objects(
        self, pixels: _Pixels, what: str, name: str
    ) -> tuple[_Pixels, NDArray[np.int64], list[Finding]]:
        """Find the ids of one mask; the pieces of a binary mask are its objects."""
        ids = self._ids_in(pixels)

        def fallback(message: str, count: int) -> list[Finding]:
            class_name = None if what == "the label image" else name
            kind = FindingKind.FALLBACK
            return [Finding(kind, message, path=pixels.path, class_name=class_name, count=count)]

        if len(ids) == 1 and ids[0] in BINARY_VALUES:
            pieces = self._pieces(pixels)
            if pieces is not None:
                held, n = pieces
                message = f"{what} is binary: its {n} connected components became the objects"
                return held, np.arange(1, n + 1), fallback(message, n)
        highest = int(ids.max(initial=0))
        if highest > _HIGHEST_ID:
            message = f"{what} has ids up to {highest}: its objects were numbered 1 to {len(ids)}"
            return pixels, ids, fallback(message, len(ids))
        return pixels, ids, []

    def _ids_in(self, pixels: _Pixels) -> NDArray[np.int64]:
        """Read all windows, and return the ids in them, ascending."""
        found = np.zeros(0, np.int64)
        waiting: list[NDArray[np.int64]] = []
        for ids in self._over_windows(pixels, lambda box: np.unique(run_values(pixels.read(box)))):
            waiting.append(ids.astype(np.int64))
            if sum(map(len, waiting)) > 1_000_000:
                found, waiting = np.unique(np.concatenate([found, *waiting])), []
        found = np.unique(np.concatenate([found, *waiting]))
        return found[found > 0]

    def _over_windows(
        self, pixels: _Pixels, work: Callable[[Box], NDArray[Any]]
    ) -> Iterator[NDArray[Any]]:
        edge = pixels.tile_px * max(1, _PASS_PX // pixels.tile_px) if pixels.tile_px else _PASS_PX
        height, width = self.shape
        boxes = [
            (y, x, min(y + edge, height), min(x + edge, width))
            for y in range(0, height, edge)
            for x in range(0, width, edge)
        ]
        pool = ThreadPoolExecutor(max_workers=2)
        try:
            for done, found in enumerate(pool.map(work, boxes), start=1):
                yield found
                self.progress(done, len(boxes))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _pieces(self, pixels: _Pixels) -> tuple[_Pixels, int] | None:
        """Label the 8-connected pieces of a binary mask; return None if there is only one."""

        def extent(box: Box) -> NDArray[np.int64]:
            y, x = np.nonzero(pixels.read(box))
            if not len(y):
                return np.zeros((0, 4), np.int64)
            corners = [y.min() + box[0], x.min() + box[1], y.max() + box[0], x.max() + box[1]]
            return np.array([corners], np.int64)

        extents = np.concatenate(list(self._over_windows(pixels, extent)))
        top, left = extents[:, :2].min(axis=0).tolist()
        bottom, right = (extents[:, 2:].max(axis=0) + 1).tolist()
        if (bottom - top) * (right - left) > largest_px():
            raise UnreadableFileError(
                "the mask is binary (every object has the same number) and too large to tell "
                "its objects apart here: give every object a number of its own",
                path=pixels.path,
                region=self.request.region,
            )
        held = components((pixels.read((top, left, bottom, right)) > 0).astype(np.uint8))
        n = int(held.max(initial=0))
        if n <= 1:
            return None

        def read(box: Box) -> NDArray[np.int32]:
            y0, x0, y1, x1 = box
            window = np.zeros((y1 - y0, x1 - x0), np.int32)
            a, b = max(y0, top), min(y1, bottom)
            c, d = max(x0, left), min(x1, right)
            if a < b and c < d:
                window[a - y0 : b - y0, c - x0 : d - x0] = held[
                    a - top : b - top, c - left : d - left
                ]
            return window

        return _Pixels(replace(pixels.source, read=read), pixels.what, self.request.region), n


class _Pixels:
    """The ids in one file, window by window, as unsigned numbers.

    The window that a thread read last is kept for it: objects and ambiguous
    area are often asked for one after the other.
    """

    def __init__(self, source: TiledPixels, what: str, region: str | None) -> None:
        self.source, self.what, self._region = source, what, region
        self._last = threading.local()

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def tile_px(self) -> int:
        return self.source.tile_px

    def read(self, box: Box) -> NDArray[np.unsignedinteger[Any]]:
        """Return a window, uint32 or uint64 (y, x); not to be changed."""
        known = getattr(self._last, "window", None)
        if known is not None and known[0] == box:
            window: NDArray[np.unsignedinteger[Any]] = known[1]
            return window
        window = self._numbers(box)
        if window.dtype == np.uint64 and int(window.max(initial=0)) > np.iinfo(np.int64).max:
            raise UnreadableFileError(
                f"{self.what} has ids above 2^63: renumber its objects",
                path=self.path,
                region=self._region,
            )
        self._last.window = box, window
        return window

    def _numbers(self, box: Box) -> NDArray[np.unsignedinteger[Any]]:
        numbers = self.source.read(box)
        if numbers.dtype.kind != "u":
            numbers = whole_numbers(numbers, path=self.path, what=self.what, region=self._region)
        # Few types, so that few kernels are compiled.
        if numbers.dtype.itemsize <= 4:
            return np.ascontiguousarray(numbers, np.uint32)
        return np.ascontiguousarray(numbers).view(np.uint64)

    def filled(self, box: Box) -> NDArray[np.bool_] | None:
        return _any(self.read(box) > 0)

    def looked_up(self, lookup: _Lookup, box: Box) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return a window of numbers, and the ids in it that the table does not have."""
        return lookup.of_window(self.read(box))

    def replaced(self, lookup: _Lookup) -> _Pixels:
        """Return the same with every id replaced by its number."""
        source = replace(self.source, read=lambda box: self.looked_up(lookup, box)[0])
        return _Pixels(source, self.what, self._region)


def _any(mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return mask if mask.any() else None


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Lookup of numbers by id: a table with a place for each id, or a search if that is too large.

    Parameters
    ----------
    ids
        int64 (n,), ascending; empty where there is a place for each.
    numbers
        int32: the number of each id, or of each place with one more at the
        end; -1 for none.
    """

    ids: NDArray[np.int64]
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
            strangers = np.unique(window[numbers < 0]).astype(np.int64)
            np.maximum(numbers, 0, out=numbers)
        return numbers, strangers
