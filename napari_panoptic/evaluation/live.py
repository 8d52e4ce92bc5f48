"""The overlap of two label images that somebody edits, kept up to date pixel by pixel.

A stroke changes some hundred pixels of millions. Counting starts from the
pixels that changed, never from the whole image, and distances are computed
again only for objects whose pixels changed. The result equals a full
recomputation after any sequence of edits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import LabelError, english_list
from napari_panoptic.evaluation.ambiguity import JudgedOverlap, judge
from napari_panoptic.evaluation.distances import (
    PairDistances,
    contour_distances,
    contours,
    cuts,
    pair_distances,
)
from napari_panoptic.evaluation.evaluate import Evaluation, assembled
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.matching import Matches, match
from napari_panoptic.evaluation.overlap import OverlapTable, SideTable, overlap_table
from napari_panoptic.evaluation.settings import EvaluationSettings
from napari_panoptic.evaluation.vocabulary import Side

# Above so many pairs to measure, one pass over the image beats cutting out windows.
_WINDOWS_UP_TO = 300


@dataclass(frozen=True)
class Edit:
    """What an edit changed.

    Parameters
    ----------
    side
        The side whose pixels were set.
    changed_px
        Number of pixels that have another id now.
    ids
        Ids that gained or lost pixels, ascending, without the background.
    """

    side: Side
    changed_px: int
    ids: tuple[int, ...]


class _LiveSide:
    """The objects of one side, in slots that stay while the image is edited.

    A slot is a row that an object keeps even when its last pixel goes; such
    slots are left out of every result.
    """

    def __init__(self, labels: LabelImage, table: SideTable) -> None:
        self.class_names = labels.class_names
        self.index = labels.index.copy()
        self.ids = labels.ids.copy()
        self.class_index = labels.class_index.copy()
        self.original_ids = labels.original_ids.copy()
        self.area = table.area.copy()
        self.void_area = table.void_area.copy()
        self.sum_yx = table.sum_yx.copy()
        self.void_sum_yx = table.void_sum_yx.copy()
        self.bbox = table.bbox.copy()
        self.first_pixel = table.first_pixel.copy()
        self.slot_of = {int(id_): slot for slot, id_ in enumerate(self.ids)}

    def slots(self, ids: NDArray[np.int64], classes: Mapping[int, str]) -> NDArray[np.int32]:
        """Give the 1-based slot of each id, 0 for background; new ids get a slot."""
        if ids.size and (ids == ids.flat[0]).all():  # as in a stroke or a fill
            return np.full(ids.shape, self._slot(int(ids.flat[0]), classes), np.int32)
        unique, inverse = np.unique(ids, return_inverse=True)
        known = [self._slot(int(id_), classes) for id_ in unique]
        return np.array(known, np.int32)[inverse].reshape(ids.shape)

    def _slot(self, id_: int, classes: Mapping[int, str]) -> int:
        if id_ == 0:
            return 0
        if id_ not in self.slot_of:
            self._add(id_, classes.get(id_))
        return self.slot_of[id_] + 1

    def _add(self, id_: int, class_name: str | None) -> None:
        if id_ < 0:
            raise LabelError(f"ids must be positive, found {id_}", object_id=id_)
        if class_name not in self.class_names:
            raise LabelError(
                f"a new object needs a class, one of {english_list(self.class_names)}; "
                f"found {class_name}",
                object_id=id_,
            )
        self.slot_of[id_] = len(self.ids)
        number = self.class_names.index(str(class_name)) + 1
        self.ids = np.append(self.ids, np.int64(id_))
        self.class_index = np.append(self.class_index, np.int16(number))
        self.original_ids = np.append(self.original_ids, np.int64(id_))
        self.area = np.append(self.area, np.int64(0))
        self.void_area = np.append(self.void_area, np.int64(0))
        nothing = np.zeros((1, 2), np.int64)
        self.sum_yx = np.concatenate([self.sum_yx, nothing])
        self.void_sum_yx = np.concatenate([self.void_sum_yx, nothing])
        self.bbox = np.concatenate([self.bbox, np.zeros((1, 4), np.int32)])
        self.first_pixel = np.append(self.first_pixel, np.int64(0))

    def recount(
        self,
        yx: NDArray[np.int64],
        slots: NDArray[np.int32],
        in_void: NDArray[np.bool_],
        sign: int,
    ) -> None:
        """Add (+1) or take away (-1) pixels of objects."""
        inside = slots > 0
        rows = slots[inside] - 1
        np.add.at(self.area, rows, sign)
        np.add.at(self.sum_yx, rows, sign * yx[inside])
        void = in_void[inside]
        np.add.at(self.void_area, rows[void], sign)
        np.add.at(self.void_sum_yx, rows[void], sign * yx[inside][void])

    def remeasure(self, row: int, window: tuple[int, int, int, int]) -> None:
        """Find an object's bounding box and first pixel again, within a window."""
        y0, x0, y1, x1 = window
        mask = self.index[y0:y1, x0:x1] == row + 1
        rows = np.flatnonzero(mask.any(axis=1))
        if not len(rows):
            self.bbox[row] = 0
            self.first_pixel[row] = 0
            return
        columns = np.flatnonzero(mask.any(axis=0))
        self.bbox[row] = (y0 + rows[0], x0 + columns[0], y0 + rows[-1] + 1, x0 + columns[-1] + 1)
        first_x = x0 + int(mask[rows[0]].argmax())
        self.first_pixel[row] = (y0 + int(rows[0])) * self.index.shape[1] + first_x

    def table(self) -> SideTable:
        """Freeze the counts."""
        return SideTable(
            area=self.area.copy(),
            void_area=self.void_area.copy(),
            sum_yx=self.sum_yx.copy(),
            void_sum_yx=self.void_sum_yx.copy(),
            bbox=self.bbox.copy(),
            first_pixel=self.first_pixel.copy(),
        )

    def labels(self) -> LabelImage:
        """Give a view of the labels; its pixels change with the next edit."""
        return LabelImage(
            index=self.index,
            ids=self.ids,
            class_index=self.class_index,
            original_ids=self.original_ids,
            class_names=self.class_names,
        )


class LiveEvaluation:
    """A label pair under edit, evaluated anew after each edit at the edit's cost.

    Parameters
    ----------
    pair
        What to start from. It is copied: the original is never changed.
    table
        Its overlap table, where it is known already.
    """

    def __init__(self, pair: LabelPair, *, table: OverlapTable | None = None) -> None:
        table = table or overlap_table(pair)
        self._pair = pair
        self._void = pair.ambiguous
        self._sides = {
            Side.REFERENCE: _LiveSide(pair.reference, table.reference),
            Side.PREDICTION: _LiveSide(pair.prediction, table.prediction),
        }
        self._keys = _key(table.pair_reference + 1, table.pair_prediction + 1)
        self._shared = table.intersection.copy()
        self._void_shared = table.void_intersection.copy()
        self._known: _KnownDistances | None = None
        self._touched: dict[Side, set[int]] = {side: set() for side in Side}

    def set_pixels(
        self,
        side: Side,
        y: NDArray[np.integer],
        x: NDArray[np.integer],
        ids: NDArray[np.integer] | int,
        *,
        classes: Mapping[int, str] | None = None,
    ) -> Edit:
        """Set pixels of one side to ids, as a stroke, a fill, an undo or anything else does.

        Parameters
        ----------
        side
            The side that is edited.
        y, x
            Coordinates (n,) in px, each pixel at most once.
        ids
            One id for all, or one per pixel (n,); 0 erases.
        classes
            Id -> class name, for ids that are new.

        Raises
        ------
        LabelError
            For a new id without a class; nothing is changed then.
        """
        own = self._sides[side]
        other = self._sides[Side.PREDICTION if side is Side.REFERENCE else Side.REFERENCE]
        y, x = np.asarray(y, np.int64), np.asarray(x, np.int64)
        wanted = np.broadcast_to(np.asarray(ids, np.int64), y.shape)
        new = own.slots(wanted, classes or {})
        old = own.index[y, x]
        differs = new != old
        y, x, new, old = y[differs], x[differs], new[differs], old[differs]
        if not len(y):
            return Edit(side, 0, ())
        in_void = np.zeros(len(y), bool) if self._void is None else self._void[y, x]
        yx = np.stack([y, x], axis=1)
        facing = other.index[y, x]
        own.index[y, x] = new
        own.recount(yx, old, in_void, -1)
        own.recount(yx, new, in_void, +1)
        self._move_shared(side, old, new, facing, in_void)
        touched = np.unique(np.concatenate([old, new]))
        touched = touched[touched > 0] - 1
        self._remeasure(own, touched, yx, new)
        self._touched[side].update(touched.tolist())
        return Edit(side, len(y), tuple(sorted(own.ids[touched].tolist())))

    def set_ambiguous(self, ambiguous: NDArray[np.bool_] | None) -> None:
        """Replace the ambiguous area; counted anew, since it may change anywhere."""
        self._void = None if ambiguous is None else ambiguous.copy()
        self._pair = replace(self._pair, ambiguous=self._void)
        table = overlap_table(self.pair())
        for side, counted in zip(Side, (table.reference, table.prediction), strict=True):
            live = self._sides[side]
            live.void_area, live.void_sum_yx = counted.void_area.copy(), counted.void_sum_yx.copy()
        self._keys = _key(table.pair_reference + 1, table.pair_prediction + 1)
        self._shared = table.intersection.copy()
        self._void_shared = table.void_intersection.copy()
        self._known = None

    def id_at(self, side: Side, y: int, x: int) -> int:
        """Tell the id at a pixel, 0 for background."""
        own = self._sides[side]
        slot = int(own.index[y, x])
        return int(own.ids[slot - 1]) if slot else 0

    def set_class(self, side: Side, id_: int, class_name: str) -> None:
        """Give an object another class.

        Raises
        ------
        LabelError
            For an object that is not there, or an unknown class.
        """
        own = self._sides[side]
        if id_ not in own.slot_of or class_name not in own.class_names:
            raise LabelError(f"there is no object {id_} or no class {class_name} on this side")
        own.class_index = own.class_index.copy()
        own.class_index[own.slot_of[id_]] = own.class_names.index(class_name) + 1

    def pair(self) -> LabelPair:
        """Give the label pair as it is now: views that the next edit changes."""
        return replace(
            self._pair,
            reference=self._sides[Side.REFERENCE].labels(),
            prediction=self._sides[Side.PREDICTION].labels(),
        )

    def labels(self, side: Side) -> LabelImage:
        """Give a copy of one side as it is now, with the objects that have a pixel."""
        return self._sides[side].labels().tidied()

    def table(self) -> OverlapTable:
        """Give the counts as they are now."""
        return OverlapTable(
            reference=self._sides[Side.REFERENCE].table(),
            prediction=self._sides[Side.PREDICTION].table(),
            pair_reference=((self._keys >> 32) - 1).astype(np.int32),
            pair_prediction=((self._keys & 0xFFFFFFFF) - 1).astype(np.int32),
            intersection=self._shared.copy(),
            void_intersection=self._void_shared.copy(),
        )

    def evaluate(self, settings: EvaluationSettings) -> Evaluation:
        """Evaluate the pair as it is now; equal to a full evaluation.

        Distances of pairs whose objects did not change since the last call are
        taken over from it.
        """
        pair, table = self.pair(), self.table()
        judged = judge(table, settings.ambiguous)
        matches = match(pair, table, judged, settings)
        distances = self._distances(pair, table, judged, matches, settings)
        return assembled(pair, settings, table, judged, matches, distances)

    def _move_shared(
        self,
        side: Side,
        old: NDArray[np.int32],
        new: NDArray[np.int32],
        facing: NDArray[np.int32],
        in_void: NDArray[np.bool_],
    ) -> None:
        """Take the changed pixels from the old pairs and give them to the new ones."""
        lost, gained = (old > 0) & (facing > 0), (new > 0) & (facing > 0)
        own = np.concatenate([old[lost], new[gained]])
        across = np.concatenate([facing[lost], facing[gained]])
        if not len(own):
            return
        reference, prediction = (own, across) if side is Side.REFERENCE else (across, own)
        change = np.repeat([-1, 1], [lost.sum(), gained.sum()])
        void_change = change * np.concatenate([in_void[lost], in_void[gained]])
        keys, place = np.unique(_key(reference, prediction), return_inverse=True)
        delta, void_delta = np.zeros((2, len(keys)), np.int64)
        np.add.at(delta, place, change)
        np.add.at(void_delta, place, void_change)

        at = np.searchsorted(self._keys, keys)
        known = at < len(self._keys)
        known[known] = self._keys[at[known]] == keys[known]
        self._shared[at[known]] += delta[known]
        self._void_shared[at[known]] += void_delta[known]
        if not known.all():
            self._keys = np.insert(self._keys, at[~known], keys[~known])
            self._shared = np.insert(self._shared, at[~known], delta[~known])
            self._void_shared = np.insert(self._void_shared, at[~known], void_delta[~known])
        if (self._shared == 0).any():
            alive = self._shared > 0
            self._keys = self._keys[alive]
            self._shared, self._void_shared = self._shared[alive], self._void_shared[alive]

    @staticmethod
    def _remeasure(
        own: _LiveSide, touched: NDArray[np.int32], yx: NDArray[np.int64], new: NDArray[np.int32]
    ) -> None:
        for row in touched.tolist():
            window = own.bbox[row].tolist()
            gained = yx[new == row + 1]
            if len(gained):
                low, high = gained.min(axis=0), gained.max(axis=0) + 1
                empty = window[2] == 0
                y0, x0 = low if empty else np.minimum(window[:2], low)
                y1, x1 = high if empty else np.maximum(window[2:], high)
                window = [int(y0), int(x0), int(y1), int(x1)]
            own.remeasure(row, (window[0], window[1], window[2], window[3]))

    def _distances(
        self,
        pair: LabelPair,
        table: OverlapTable,
        judged: JudgedOverlap,
        matches: Matches,
        settings: EvaluationSettings,
    ) -> PairDistances | None:
        if not settings.distances:
            return None
        rows = judged.pair_reference[matches.pair]
        columns = judged.pair_prediction[matches.pair]
        keys = _key(rows, columns)
        figures = np.full((len(keys), 3), np.nan)
        to_measure = np.ones(len(keys), bool)
        cutting = cuts(judged, settings.outlines)
        if self._known is not None and self._known.cutting == cutting:
            at, found = self._known.find(keys)
            changed_rows = np.array(sorted(self._touched[Side.REFERENCE]), np.int64)
            changed_columns = np.array(sorted(self._touched[Side.PREDICTION]), np.int64)
            found &= ~np.isin(rows, changed_rows) & ~np.isin(columns, changed_columns)
            figures[found] = self._known.figures[at[found]]
            to_measure = ~found
        measure = _windowed if to_measure.sum() <= _WINDOWS_UP_TO else _whole
        figures[to_measure] = measure(
            pair, table, judged, rows[to_measure], columns[to_measure], settings
        )
        order = np.argsort(keys)
        self._known = _KnownDistances(cutting, keys[order], figures[order])
        for touched in self._touched.values():
            touched.clear()
        return PairDistances(figures[:, 0], figures[:, 1], figures[:, 2])


@dataclass(frozen=True, eq=False)
class _KnownDistances:
    """Distances of the pairs that matched last time, sorted by key."""

    cutting: tuple[bool, bool]
    keys: NDArray[np.int64]
    figures: NDArray[np.float64]

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        at = np.searchsorted(self.keys, keys)
        found = at < len(self.keys)
        found[found] = self.keys[at[found]] == keys[found]
        return at, found


def _key(reference: NDArray[np.integer], prediction: NDArray[np.integer]) -> NDArray[np.int64]:
    return (reference.astype(np.int64) << 32) | prediction.astype(np.int64)


def _whole(
    pair: LabelPair,
    table: OverlapTable,  # noqa: ARG001 - same call as _windowed
    judged: JudgedOverlap,
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    settings: EvaluationSettings,
) -> NDArray[np.float64]:
    """Measure pairs in one pass over the image."""
    return _figures(pair_distances(pair, judged, rows, columns, settings.outlines))


def _windowed(
    pair: LabelPair,
    table: OverlapTable,
    judged: JudgedOverlap,
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    settings: EvaluationSettings,
) -> NDArray[np.float64]:
    """Measure a few pairs, each in the window that holds both objects."""
    figures = np.full((len(rows), 3), np.nan)
    cut_reference, cut_prediction = cuts(judged, settings.outlines)
    height, width = pair.reference.shape
    first = np.zeros(1, np.int32)
    for k, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        boxes = np.stack([table.reference.bbox[row], table.prediction.bbox[column]])
        # One pixel more, so that only the image edge is an edge of the window.
        y0, x0 = np.maximum(boxes[:, :2].min(axis=0) - 1, 0)
        y1, x1 = np.minimum(boxes[:, 2:].max(axis=0) + 1, (height, width))
        window = np.s_[y0:y1, x0:x1]
        void = None if pair.ambiguous is None else pair.ambiguous[window]
        reference = (pair.reference.index[window] == row + 1).astype(np.int32)
        prediction = (pair.prediction.index[window] == column + 1).astype(np.int32)
        figures[k] = _figures(
            contour_distances(
                contours(reference, 1, without=void if cut_reference else None),
                contours(prediction, 1, without=void if cut_prediction else None),
                first,
                first,
            )
        )[0]
    return figures


def _figures(distances: PairDistances) -> NDArray[np.float64]:
    return np.stack(
        [distances.hausdorff_px, distances.hausdorff95_px, distances.average_surface_px], axis=1
    )
