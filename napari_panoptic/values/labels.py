"""Label images: the objects of one side of one region, validated once and trusted after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.text import english_list
from napari_panoptic.kernels.relabel import (
    lay_over,
    list_labels,
    look_up,
    present_labels,
    shift_labels,
)
from napari_panoptic.kernels.threads import THREADS_FROM_PX, in_threads
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import Side, of_side

IdImage = NDArray[np.int32 | np.int64]
"""An image (y, x) of ids, 0 for background; int64 where an id needs it."""

# Ids up to this many, or this many times the pixels, are relabelled by a lookup table.
_LISTED_IDS = 1 << 16
_LISTED_IDS_PER_PX = 4


@dataclass(frozen=True)
class Vanished:
    """An object of a file that has no pixel in the label image."""

    #: The id that the object would have.
    id: int
    #: Its class.
    class_name: str
    #: Why it has no pixel, for the user.
    reason: str


@dataclass(frozen=True, eq=False)
class Scores:
    """The confidence scores of a model, from its file."""

    #: int64 (n,): of the objects, ascending, unique.
    ids: NDArray[np.int64]
    #: float64 (n,); NaN if the file has none.
    values: NDArray[np.float64]

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return float64 (m,): the score of each id, NaN if there is none."""
        if not len(self.ids):
            return np.full(len(ids), np.nan)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.values[places], np.nan)


def scores_of(known: Scores | None, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return float64 (n,): the score of each id, NaN if there is none."""
    return np.full(len(ids), np.nan) if known is None else known.of(ids)


class LazyMasks(Mapping[str, IdImage]):
    """The mask of each class by itself, made whenever it is requested: most never are.

    Parameters
    ----------
    names
        The classes.
    make
        Returns the mask (y, x) of a class.
    """

    def __init__(self, names: Iterable[str], make: Callable[[str], IdImage]) -> None:
        self._names, self._make = tuple(names), make

    def __getitem__(self, name: str) -> IdImage:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False)
class LabelImage:
    """The objects of one side of one region."""

    #: int32 image (y, x): 0 is background, ``k`` is the object of row ``k - 1`` of the arrays
    #: below. Every row has at least one pixel.
    index: NDArray[np.int32]
    #: int64 (n,): the objects' ids for people and files, ascending, unique, positive.
    ids: NDArray[np.int64]
    #: int16 (n,): 1-based index into ``class_names``.
    class_index: NDArray[np.int16]
    #: int64 (n,): the id in the file that the object came from; may repeat between classes.
    original_ids: NDArray[np.int64]
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: Class name -> int32 image (y, x) of that class alone, before classes were flattened over each
    #: other, with ids as in the file. Empty if there were no such masks.
    class_masks: Mapping[str, IdImage] = field(default_factory=dict)
    #: Objects of the file that have no pixel here.
    vanished: tuple[Vanished, ...] = ()
    #: Number of pixels that more than one object of the file claimed.
    overlapping_px: int = 0
    #: If objects keep the pixels that they share: int32 images (y, x) numbered as ``index``, each
    #: object whole in exactly one of them. ``index`` then shows the uppermost object of each pixel,
    #: so that completely covered objects have no pixel in it. Empty if every pixel has one object.
    planes: tuple[NDArray[np.int32], ...] = ()
    #: Returns the same objects in the other form: with ``planes`` if there are none here, else
    #: without. None if no objects share pixels, or if this is unknown.
    other_form: Callable[[], LabelImage] | None = None
    #: The scores in the file, perhaps of more objects than are here; None if it has none.
    known_scores: Scores | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64 (n,): the score of each object in row order, NaN if there is none."""
        return scores_of(self.known_scores, self.ids)

    @property
    def sheets(self) -> tuple[NDArray[np.int32], ...]:
        """The images in which every object is found whole: ``planes``, or ``index`` alone."""
        return self.planes or (self.index,)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in px."""
        height, width = self.index.shape
        return height, width

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    def class_names_of_objects(self) -> NDArray[np.object_]:
        """Return the class name of each object, in row order."""
        return np.array(self.class_names, dtype=object)[self.class_index - 1]

    def id_image(self) -> NDArray[np.int64]:
        """Return an image (y, x) of ids, 0 for background."""
        return np.concatenate([[0], self.ids])[self.index]

    def with_overlaps(self, overlaps: Overlaps) -> LabelImage:
        """Return the objects with the pixels that they share, or without.

        Raises
        ------
        LabelError
            If too many objects overlap.
        """
        if self.other_form is None or (overlaps is Overlaps.KEEP) == bool(self.planes):
            return self
        other = self.other_form()
        if other.other_form is None:
            other = replace(other, other_form=lambda: self)
        if other.known_scores is self.known_scores:
            return other
        return replace(other, known_scores=self.known_scores)

    def overlapping_rows(self) -> NDArray[np.int64]:
        """Return int64 (k,): the rows of the objects that share a pixel, ascending."""
        if len(self.planes) < 2:
            return np.zeros(0, np.int64)
        claims = np.zeros(self.shape, np.int32)
        for plane in self.planes:
            claims += plane > 0
        found = np.unique(np.concatenate([plane[claims > 1] for plane in self.planes]))
        return found[found > 0].astype(np.int64) - 1

    def in_planes(
        self,
        planes: Sequence[NDArray[np.int32]],
        ids: NDArray[np.int64],
        class_index: NDArray[np.int16],
        original_ids: NDArray[np.int64],
    ) -> LabelImage:
        """Return the same objects, and those covered completely, with all their pixels.

        Parameters
        ----------
        planes
            int32 images (y, x) as in ``planes``, but objects without a
            pixel have vanished.
        ids, class_index, original_ids
            Of every row, as in `LabelImage`.
        """
        used = np.zeros(len(ids), np.bool_)
        for plane in planes:
            used |= present_labels(plane, len(ids))[1:]
        rows = np.flatnonzero(used)
        lookup = np.zeros(len(ids) + 1, np.int32)
        lookup[rows + 1] = np.arange(1, len(rows) + 1, dtype=np.int32)
        kept = ids[rows]
        shown = np.concatenate([[0], np.searchsorted(kept, self.ids) + 1]).astype(np.int32)
        found = set(kept.tolist())
        return replace(
            self,
            index=shown[self.index],
            ids=kept,
            class_index=class_index[rows],
            original_ids=original_ids[rows],
            vanished=tuple(lost for lost in self.vanished if lost.id not in found),
            planes=tuple(lookup[plane] for plane in planes),
            other_form=None,
        )

    def with_class_overlaps(self) -> LabelImage:
        """Return the same objects, able to keep the pixels that classes share."""
        return (
            replace(self, other_form=cache(self._in_class_planes)) if self.overlapping_px else self
        )

    def _in_class_planes(self) -> LabelImage:
        """Return the same objects, those of each class in a plane of their own."""
        masks = class_compacts(self.class_masks, self.class_names)
        rows = ClassRows.of({name: ids for name, (_, ids) in masks.items()}, self.class_names)
        planes = [
            np.concatenate([np.zeros(1, np.int32), numbers])[index]
            for (index, _), numbers in zip(masks.values(), rows.numbers, strict=True)
        ]
        return self.in_planes(planes, rows.ids, rows.class_index, rows.original_ids)

    def tidied(self) -> LabelImage:
        """Return a copy with ids ascending and without rows that have no pixel.

        All label images are so, unless their pixels were moved or removed.
        """
        return self.of_rows(
            present_labels(self.index, len(self.ids))[1:], np.empty_like(self.index)
        )

    def of_rows(
        self, present: NDArray[np.bool_], index: NDArray[np.int32], lines: slice = slice(None)
    ) -> LabelImage:
        """Return the objects of some rows, ids ascending.

        Parameters
        ----------
        present
            bool (n,): rows to keep; every other row must be empty.
        index
            int32 (y, x): receives the new numbers; may be that of this label image, which
            becomes invalid. It is unchanged then if only the last rows are dropped.
        lines
            The lines of the image with all objects that get another number; the others of
            ``index`` have these numbers already.
        """
        rows = np.flatnonzero(present)
        rows = rows[np.argsort(self.ids[rows], kind="stable")]
        numbers = np.arange(1, len(rows) + 1, dtype=np.int32)
        lookup = np.zeros(len(self.ids) + 1, np.int32)
        lookup[rows + 1] = numbers
        if index is not self.index:
            look_up(lookup, self.index[lines], index[lines])
        else:
            _relabel(index[lines], lookup)
        return replace(
            self,
            index=index,
            ids=self.ids[rows],
            class_index=self.class_index[rows],
            original_ids=self.original_ids[rows],
        )

    def only(self, kept: NDArray[np.bool_]) -> LabelImage:
        """Return the objects of some rows (bool, n); the pixels of others become background."""
        if kept.all():
            return self
        lookup = np.zeros(len(self) + 1, np.int32)
        lookup[1:][kept] = np.arange(1, np.count_nonzero(kept) + 1, dtype=np.int32)
        return replace(
            self,
            index=look_up(lookup, self.index, np.empty_like(self.index)),
            ids=self.ids[kept],
            class_index=self.class_index[kept],
            original_ids=self.original_ids[kept],
            class_masks={},
            planes=tuple(lookup[plane] for plane in self.planes),
            other_form=None,
        )

    @classmethod
    def empty(cls, shape: tuple[int, int], class_names: Sequence[str]) -> LabelImage:
        """Make a label image without objects."""
        return cls(
            index=np.zeros(shape, np.int32),
            ids=np.zeros(0, np.int64),
            class_index=np.zeros(0, np.int16),
            original_ids=np.zeros(0, np.int64),
            class_names=tuple(class_names),
        )

    @classmethod
    def from_array(
        cls,
        labels: ArrayLike,
        classes: Mapping[int, str] | str,
        class_names: Sequence[str],
        *,
        side: str = "labels",
    ) -> LabelImage:
        """Make a label image of an array of ids and a class for each id.

        Parameters
        ----------
        labels
            Integer array (y, x) of any integer type, 0 for background. Kept, not
            copied, if it is int32 and numbered 1..n; not changed.
        classes
            Id -> class name, for at least every id in the array; or one class
            name for all.
        class_names
            The known classes, in order.
        side
            Name of the array in error messages.

        Raises
        ------
        LabelError
            For an array that is not 2-D, not whole numbers, or has negative
            ids; for an id without a class, or a class that is not known.
        """
        index, ids = _numbered(labels, side)
        return cls(
            index=index,
            ids=ids,
            class_index=_class_numbers(ids, classes, class_names, side),
            original_ids=ids,
            class_names=tuple(class_names),
        )

    @classmethod
    def from_class_masks(
        cls,
        masks: Mapping[str, IdImage],
        class_names: Sequence[str],
        shape: tuple[int, int],
    ) -> LabelImage:
        """Flatten one mask per class, in class order: a later class overwrites.

        Objects keep their ids if no two classes use the same id;
        otherwise all objects get new ids, class by class in class order. An
        object that is overwritten completely has vanished and is reported.

        Parameters
        ----------
        masks
            Class name -> int32 image (y, x) of ids of that class, 0 for
            background. Kept, not copied.
        class_names
            The scored classes, in order.
        shape
            Height and width in px.
        """
        own = class_compacts(masks, class_names)
        flat = np.zeros(shape, np.int32)
        offset = overlapping_px = 0
        for index, class_own in own.values():
            overlapping_px += lay_over(flat, index, offset)
            offset += len(class_own)
        return cls.from_flattened(
            flat,
            {name: ids for name, (_, ids) in own.items()},
            class_names,
            class_masks=dict(masks),
            overlapping_px=overlapping_px,
        )

    @classmethod
    def from_flattened(
        cls,
        flat: NDArray[np.int32],
        own_ids: Mapping[str, NDArray[np.int64]],
        class_names: Sequence[str],
        *,
        class_masks: Mapping[str, IdImage],
        vanished: Sequence[Vanished] = (),
        overlapping_px: int,
    ) -> LabelImage:
        """Make a label image of classes that are already flattened.

        Parameters
        ----------
        flat
            int32 image (y, x): 0 for background, k for the k-th object of
            ``own_ids``, class by class. Kept, not copied.
        own_ids
            Class name -> int64 (m,): the ids of its objects in the class mask,
            ascending; classes in order.
        class_names
            The scored classes, in order.
        class_masks, vanished, overlapping_px
            As in :meth:`from_class_masks`, which also describes the ids, and objects
            that are covered completely.
        """
        rows = ClassRows.of(own_ids, class_names)
        n = len(rows.ids)
        numbers = np.concatenate([np.zeros(1, np.int32), *rows.numbers])
        # If no pixel was taken from another class, nothing is covered.
        survives = present_labels(flat, n) if overlapping_px else np.ones(n + 1, np.bool_)
        has_pixel = np.zeros(n + 1, np.bool_)
        has_pixel[numbers] = survives
        has_pixel = has_pixel[1:]
        lookup = np.where(survives, np.concatenate([[0], np.cumsum(has_pixel)])[numbers], 0)
        index = flat
        if not np.array_equal(lookup, np.arange(n + 1)):
            index = look_up(lookup.astype(np.int32), flat, np.empty_like(flat))
        names = np.array(class_names, dtype=object)
        overwritten = [
            Vanished(int(rows.ids[row]), str(name), "covered by another class")
            for row, name in enumerate(names[rows.class_index - 1])
            if not has_pixel[row]
        ]
        return cls(
            index=index,
            ids=rows.ids[has_pixel],
            class_index=rows.class_index[has_pixel],
            original_ids=rows.original_ids[has_pixel],
            class_names=tuple(class_names),
            class_masks=class_masks,
            vanished=(*vanished, *overwritten),
            overlapping_px=overlapping_px,
        )


@dataclass(frozen=True, eq=False)
class LabelPair:
    """Reference and prediction of one region, with the ambiguous area.

    Raises
    ------
    LabelError
        If shapes or class lists differ, or the micrometres per pixel are not a positive number.
    """

    #: The two sides, of one shape and one class list.
    reference: LabelImage
    prediction: LabelImage
    #: bool image (y, x), True where the annotation excludes the area; None if nothing is excluded.
    ambiguous: NDArray[np.bool_] | None = None
    #: Micrometres per pixel, or None if unknown.
    mpp: float | None = None

    def __post_init__(self) -> None:
        """Check that shapes and classes agree."""
        check_mpp(self.mpp)
        shape = None if self.ambiguous is None else self.ambiguous.shape
        check_pair(self.reference, self.prediction, shape)

    @classmethod
    def from_arrays(
        cls,
        reference: ArrayLike,
        prediction: ArrayLike,
        reference_classes: Mapping[int, str] | str,
        prediction_classes: Mapping[int, str] | str,
        class_names: Sequence[str],
        *,
        ambiguous: NDArray[np.bool_] | None = None,
        mpp: float | None = None,
    ) -> LabelPair:
        """Make a pair of two arrays of ids, see :meth:`LabelImage.from_array`.

        Raises
        ------
        LabelError
            As for each side, and if the sides differ in shape.
        """

        def taken(side: tuple[str, ArrayLike, Mapping[int, str] | str]) -> LabelImage:
            name, labels, classes = side
            return LabelImage.from_array(labels, classes, class_names, side=name)

        sides = [
            ("reference", reference, reference_classes),
            ("prediction", prediction, prediction_classes),
        ]
        if np.size(reference) < THREADS_FROM_PX:
            both = [taken(side) for side in sides]
        else:
            both = in_threads(taken, sides)
        return cls(both[0], both[1], ambiguous, mpp)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The scored classes, in order."""
        return self.reference.class_names

    def side(self, side: Side) -> LabelImage:
        """Return the objects of one side."""
        return of_side(side, self.reference, self.prediction)

    @property
    def has_planes(self) -> bool:
        """Whether objects of one side may share pixels."""
        return bool(self.reference.planes or self.prediction.planes)

    def reference_at(self, y: NDArray[np.int64], x: NDArray[np.int64]) -> list[NDArray[np.int32]]:
        """Return the reference objects (row plus one; 0 for none) at points, image by image."""
        return [sheet[y, x] for sheet in self.reference.sheets]

    def ambiguous_at(self, y: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which points (n,) are in the ambiguous area."""
        return np.zeros(len(y), bool) if self.ambiguous is None else self.ambiguous[y, x]

    def with_overlaps(self, overlaps: Overlaps) -> LabelPair:
        """Return both sides with the pixels that objects share, or without.

        Raises
        ------
        LabelError
            As :meth:`LabelImage.with_overlaps` does.
        """
        reference = self.reference.with_overlaps(overlaps)
        prediction = self.prediction.with_overlaps(overlaps)
        if reference is self.reference and prediction is self.prediction:
            return self
        return replace(self, reference=reference, prediction=prediction)


def check_mpp(mpp: float | None) -> None:
    """Raise a LabelError unless micrometres per pixel are None or a positive number."""
    if mpp is None or (isinstance(mpp, Real) and 0 < float(mpp) < np.inf):
        return
    raise LabelError(
        f"the micrometres per pixel (mpp) must be a positive number, found {mpp!r}; leave them out "
        f"if they are unknown"
    )


class Sized(Protocol):
    """The objects of a side, held or read in windows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Height and width in px."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The scored classes, in order."""


def check_pair(
    reference: Sized, prediction: Sized, ambiguous_shape: tuple[int, ...] | None
) -> None:
    """Raise a LabelError if the sizes or the classes of two sides differ."""
    of_others = {"prediction": prediction.shape, "ambiguous mask": ambiguous_shape}
    for name, shape in of_others.items():
        if shape is not None and shape != reference.shape:
            raise LabelError(
                f"the {name} must have the reference's size of "
                f"{size_text(reference.shape)}, found {size_text(shape)}"
            )
    if reference.class_names != prediction.class_names:
        raise LabelError(
            f"reference and prediction must have the same classes, found "
            f"{reference.class_names} and {prediction.class_names}"
        )


def class_compacts(
    masks: Mapping[str, IdImage], class_names: Sequence[str]
) -> dict[str, tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Apply :func:`compact` to each class mask that holds an object, in class order."""
    own = {name: compact(masks[name]) for name in class_names if name in masks}
    return {name: (index, ids) for name, (index, ids) in own.items() if len(ids)}


def region_ids(own_ids: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """Decide the ids in the region of the objects of several class masks.

    Parameters
    ----------
    own_ids
        Class -> ids in the class mask, ascending, classes in order.

    Returns
    -------
    dict
        Class -> ids in the region: the same if no two classes use the same id; otherwise all
        objects are numbered from 1, class by class.
    """
    every_id = np.concatenate([np.zeros(0, np.int64), *own_ids.values()])
    if len(np.unique(every_id)) == len(every_id):
        return dict(own_ids)
    ends = np.cumsum([len(ids) for ids in own_ids.values()])
    return {
        name: np.arange(end - len(ids) + 1, end + 1, dtype=np.int64)
        for (name, ids), end in zip(own_ids.items(), ends, strict=True)
    }


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The objects of several class masks, in ascending order of their ids in the region."""

    #: As in `LabelImage`.
    ids: NDArray[np.int64]
    class_index: NDArray[np.int16]
    original_ids: NDArray[np.int64]
    #: Of each class mask, int32 (m,): row plus one of each of its objects.
    numbers: tuple[NDArray[np.int32], ...]

    @classmethod
    def of(cls, own_ids: Mapping[str, NDArray[np.int64]], class_names: Sequence[str]) -> ClassRows:
        """List the objects.

        Parameters
        ----------
        own_ids
            Class -> ids in the class mask, ascending, classes in order.
        class_names
            The scored classes, in order.
        """
        nothing = np.zeros(0, np.int64)
        ids = np.concatenate([nothing, *region_ids(own_ids).values()])
        original_ids = np.concatenate([nothing, *own_ids.values()])
        counts = list(map(len, own_ids.values()))
        classes = [list(class_names).index(name) + 1 for name in own_ids]
        class_index = np.repeat(np.array(classes, np.int16), counts)
        order, numbers = np.argsort(ids), np.empty(len(ids), np.int32)
        numbers[order] = np.arange(1, len(ids) + 1, dtype=np.int32)
        by_class = np.split(numbers, np.cumsum(counts, dtype=np.int64))[:-1]
        return cls(ids[order], class_index[order], original_ids[order], tuple(by_class))


def dtype_of_ids(ids: NDArray[np.int64]) -> np.dtype[np.int32 | np.int64]:
    """Return the type of an image of ids: int32 if they fit, else int64."""
    return np.dtype(np.int32 if ids.max(initial=0) <= np.iinfo(np.int32).max else np.int64)


def pixels_of_ids(index: NDArray[np.int32], ids: NDArray[np.int64]) -> IdImage:
    """Return an image of ids (y, x), given that of rows plus one and the id of each row."""
    found: IdImage = np.concatenate([[0], ids]).astype(dtype_of_ids(ids)).take(index)
    return found


def checked_array(labels: ArrayLike, side: str) -> NDArray[np.integer]:
    """Return labels as an array, checked to be 2-D, whole and not negative.

    Raises
    ------
    LabelError
        With what was expected and what was found.
    """
    array = _integers(labels, side)
    if array.size and np.issubdtype(array.dtype, np.signedinteger) and int(array.min()) < 0:
        raise _negative(array, side)
    if array.size and array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise LabelError(f"the {side} holds ids above 2^63, found {int(array.max())}")
    return array


def checked_mask(mask: ArrayLike) -> NDArray[np.bool_]:
    """Return the ambiguous mask as booleans (y, x), checked to be 2-D and to hold numbers.

    Raises
    ------
    LabelError
        With what was expected and what was found.
    """
    array = plain_array(mask, "ambiguous mask")
    if array.ndim != 2:
        raise LabelError(f"the ambiguous mask must be 2-D (y, x), found shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise LabelError(f"the ambiguous mask must be boolean, found type {array.dtype}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise LabelError(
            "the ambiguous mask must be boolean, found NaN; replace it by True or False"
        )
    return array.astype(np.bool_, copy=False)


def plain_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return values as an array; a conversion would lose the mask of a masked array.

    Raises
    ------
    LabelError
        For masked values, and for rows of different lengths.
    """
    if np.ma.is_masked(values):
        raise LabelError(
            f"the {what} is a masked array, and what its mask hides cannot be told from the rest; "
            f"fill it first, such as by .filled(0)"
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise LabelError(f"the {what} must be an array (y, x), found: {error}") from error


def _integers(labels: ArrayLike, side: str) -> NDArray[np.integer]:
    array = plain_array(labels, side)
    if array.ndim != 2:
        raise LabelError(f"the {side} must be a 2-D array (y, x), found shape {array.shape}")
    if array.dtype == bool:
        array = array.astype(np.uint8)
    # By kind: to numpy, differences of times are integers, too.
    if array.dtype.kind not in "iu":
        raise LabelError(f"the {side} must hold whole numbers, found type {array.dtype}")
    return array


def _negative(array: NDArray[np.integer], side: str) -> LabelError:
    return LabelError(f"the {side} must not hold negative ids, found {int(array.min())}")


def _numbered(labels: ArrayLike, side: str) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Check an array and relabel it 1..n, in a single pass for int32."""
    array = _integers(labels, side)
    if array.dtype != np.int32:
        return compact(checked_array(array, side))
    try:
        return compact(array)
    except ValueError as error:
        raise _negative(array, side) from error


def _class_numbers(
    ids: NDArray[np.int64],
    classes: Mapping[int, str] | str,
    class_names: Sequence[str],
    side: str,
) -> NDArray[np.int16]:
    """Return the 1-based class of each id."""
    number_of = {name: number for number, name in enumerate(class_names, start=1)}
    if isinstance(classes, str):
        names: list[str | None] = [classes] if len(ids) else []
        numbers = np.full(len(ids), number_of.get(classes, 0), np.int16)
    else:
        names = list(map(classes.get, ids.tolist()))
        numbers = np.array([number_of.get(name or "", 0) for name in names], np.int16)
    if numbers.all():
        return numbers
    if without := [id_ for id_, name in zip(ids.tolist(), names, strict=False) if name is None]:
        raise LabelError(
            f"every id of the {side} needs a class; there is none for {english_list(without)}",
            object_id=without[0],
        )
    unknown = sorted({str(name) for name in names if name not in number_of})
    raise LabelError(
        f"unknown class {english_list(unknown)} in the {side}; "
        f"known are {english_list(list(class_names))}"
    )


def _relabel(image: NDArray[np.int32], lookup: NDArray[np.int32]) -> None:
    """Write the entry of every label in place; where one object came or went, most move by one."""
    labels = np.flatnonzero(lookup)
    steps = lookup[labels] - labels
    moved = np.flatnonzero(steps)
    if not len(moved):
        return
    step, last, to = int(steps[moved[0]]), -1, -1
    if steps[-1] != step:
        last, to = int(labels[-1]), int(lookup[labels[-1]])
    if (steps[moved[0] : len(steps) - (last > 0)] == step).all():
        shift_labels(image, int(labels[moved[0]]), step, last, to)
    else:
        look_up(lookup, image, image)


def compact(values: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Relabel an image 1..n, in ascending order of its ids.

    Returns
    -------
    index
        int32 image (y, x) of labels, 0 for background; the given array itself
        if it is numbered so already.
    ids
        int64 (n,): the id of each label, ascending.

    Raises
    ------
    ValueError
        For negative ids.
    """
    limit = min(max(_LISTED_IDS_PER_PX * values.size, _LISTED_IDS), np.iinfo(np.int32).max - 1)
    if not np.can_cast(values.dtype, np.int32) and int(values.max(initial=0)) > limit:
        return _compact_sparse(values)
    narrow = np.ascontiguousarray(values, dtype=np.int32)
    lowest, present = list_labels(narrow, limit)
    if lowest < 0:
        raise ValueError("ids must not be negative")
    if len(present) == 0:
        return _compact_sparse(values)
    ids = np.flatnonzero(present)
    if len(ids) == len(present) - 1:  # numbered 1..n already
        return narrow, ids
    lookup = np.zeros(len(present), np.int32)
    lookup[ids] = np.arange(1, len(ids) + 1, dtype=np.int32)
    # A converted copy is not shared and can be overwritten.
    result = np.empty_like(narrow) if np.shares_memory(narrow, values) else narrow
    return look_up(lookup, narrow, result), ids


def _compact_sparse(values: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Relabel an image whose ids are too far apart for a lookup table."""
    flat = values.ravel()
    # Runs of equal pixels are far fewer than pixels.
    starts = np.flatnonzero(np.append(flat.size > 0, flat[1:] != flat[:-1]))
    runs = flat[starts]
    ids = np.unique(runs)
    if len(ids) and ids[0] < 0:
        raise ValueError("ids must not be negative")
    numbers = np.zeros(flat.size, np.int32)
    ids = ids[ids > 0]
    rows = np.searchsorted(ids, runs, side="right")  # 0 for background
    numbers[starts] = np.diff(rows, prepend=0)
    np.cumsum(numbers, out=numbers)
    return numbers.reshape(values.shape), ids.astype(np.int64)


def size_text(shape: tuple[int, ...]) -> str:
    """Return a shape as text for messages: width x height in px."""
    return f"{shape[1]} x {shape[0]} px"
