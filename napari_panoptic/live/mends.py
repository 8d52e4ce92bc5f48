"""Changes of objects and of the ambiguous area: values, each with its exact inverse.

A `Mend` is made by the actions in `napari_panoptic.live.actions`. It changes nothing until it is
applied, and its inverse restores every pixel, class and the area.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.edits import Edit, EditedPair
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import Side

Target = tuple[Side, int]
"""An object: its side and its id."""
Box = tuple[int, int, int, int]
"""y0, x0, y1, x1 in px, half open."""
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Claim(StrEnum):
    """Which object gets the pixels that a mended object shares with others."""

    KEEP = "keep"  # other objects keep their pixels
    TAKE = "take"  # the mended object takes them


class Covered(StrEnum):
    """How to accept an FP that covers more than half of each of several annotated objects."""

    ASK = "ask"  # not accepted, and listed in `Mend.not_done`
    BESIDE = "beside"  # accepted beside them; `Claim` decides who gets the pixels
    REPLACE = "replace"  # accepted instead of them: they are deleted


class MendAction(StrEnum):
    """What was done to an object."""

    ACCEPT = "accept"  # a new annotated object with the outline of an FP
    DELETE = "delete"
    REPLACE = "replace"  # the outline and class of the prediction instead of its own
    RECLASSIFY = "reclassify"
    MERGE = "merge"
    SPLIT = "split"
    DRAW = "draw"  # deleted if annotated; its place is to be drawn by hand
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True)
class MendedObject:
    """One object that a mend creates, changes or removes."""

    #: The object that the user or the verdict named.
    target: Target
    action: MendAction
    #: The side of the object that is changed: for a prediction that is accepted, the annotation.
    side: Side
    #: The id of the object that is changed; None for a new one, and for a place that is drawn.
    id_before: int | None
    #: Its id afterwards; None if it is gone.
    id_after: int | None
    #: Empty where there is no object.
    class_before: str
    class_after: str
    area_before_px: int
    area_after_px: int
    #: y0, x0, y1, x1 in px, half open: the bounding box of the target.
    bbox: Box


@dataclass(frozen=True)
class NotMended:
    """A target that nothing was done to."""

    target: Target
    #: Why, for the user.
    reason: str
    #: The annotated objects that it covers, if that is the reason: see `Covered`.
    covers: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class SideChange:
    """The pixels and classes of one side that a mend changes."""

    side: Side
    #: int32 (n,): the pixels whose id changes, each once.
    y: NDArray[np.int32]
    x: NDArray[np.int32]
    #: int64 (n,): their ids, 0 for background.
    ids_before: IntArray
    ids_after: IntArray
    #: Id -> class, of the objects that have one of these pixels or get another class.
    classes_before: Mapping[int, str]
    classes_after: Mapping[int, str]

    @property
    def inverse(self) -> SideChange:
        """The change that restores what was before."""
        return replace(
            self,
            ids_before=self.ids_after,
            ids_after=self.ids_before,
            classes_before=self.classes_after,
            classes_after=self.classes_before,
        )

    @property
    def renamed(self) -> dict[int, str]:
        """Id -> new class, of the objects that get another class."""
        before = self.classes_before
        return {id_: new for id_, new in self.classes_after.items() if before.get(id_, new) != new}

    @property
    def box(self) -> Box | None:
        """y0, x0, y1, x1 in px, half open, around the pixels; None if only classes change."""
        return around(self.y, self.x) if len(self.y) else None

    def apply(self, pair: EditedPair) -> Edit:
        """Change the pixels and classes of a pair.

        Raises
        ------
        LabelError
            If the objects are not those that the change was made for; nothing is changed then.
        """
        self.check(pair.pair())
        edit = pair.set_pixels(
            self.side, self.y, self.x, self.ids_after, classes=self.classes_after
        )
        for id_, class_name in self.renamed.items():
            pair.set_class(self.side, id_, class_name)
        return edit

    def check(self, pair: LabelPair) -> None:
        """Check that the objects of a pair are those that the change was made for.

        Raises
        ------
        LabelError
            If they have changed since.
        """
        labels = pair.side(self.side)
        height, width = labels.shape
        is_inside = not len(self.y) or (self.y.max() < height and self.x.max() < width)
        numbers = labels.index[self.y, self.x] if is_inside else None
        ids = np.concatenate([[0], labels.ids])
        if numbers is None or not np.array_equal(ids[numbers], self.ids_before):
            raise LabelError(
                f"the objects of the {self.side} have changed since the action was prepared; "
                f"prepare it again"
            )


@dataclass(frozen=True, eq=False)
class AreaChange:
    """Pixels that join the ambiguous area, or leave it."""

    #: int32 (n,).
    y: NDArray[np.int32]
    x: NDArray[np.int32]
    #: Whether they join.
    is_added: bool
    #: Whether there was no ambiguous area before they joined.
    is_new: bool

    @property
    def inverse(self) -> AreaChange:
        """The change that restores what was before."""
        return replace(self, is_added=not self.is_added)

    @property
    def box(self) -> Box:
        """y0, x0, y1, x1 in px, half open, around the pixels."""
        return around(self.y, self.x)

    def applied_to(self, area: BoolArray | None, shape: tuple[int, int]) -> BoolArray | None:
        """Return the area afterwards; `area` does not change."""
        result = np.zeros(shape, np.bool_) if area is None else area.copy()
        result[self.y, self.x] = self.is_added
        # More may have been drawn since.
        return None if self.is_new and not self.is_added and not result.any() else result


@dataclass(frozen=True, eq=False)
class Mend:
    """An action that is ready to be applied; it changes nothing by itself."""

    #: What changes on either side; none, one or two.
    sides: tuple[SideChange, ...] = ()
    #: What changes of the ambiguous area, if anything.
    area: AreaChange | None = None
    #: The objects that are created, changed or removed on purpose, in the order of the targets.
    objects: tuple[MendedObject, ...] = ()
    #: Other objects that lose pixels -> how many; see `Claim`.
    overwritten: Mapping[Target, int] = field(default_factory=dict)
    #: Other objects that lose all their pixels.
    vanished: tuple[Target, ...] = ()
    #: Other objects that keep pixels within the new outlines -> how many; see `Claim`.
    spared: Mapping[Target, int] = field(default_factory=dict)
    #: The targets that nothing is done to.
    not_done: tuple[NotMended, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether neither objects nor the ambiguous area change."""
        return not self.sides and self.area is None

    @property
    def inverse(self) -> Mend:
        """The mend that restores every pixel, class and the area, after this one."""
        return Mend(
            sides=tuple(change.inverse for change in reversed(self.sides)),
            area=None if self.area is None else self.area.inverse,
        )

    @property
    def bbox(self) -> Box | None:
        """y0, x0, y1, x1 in px, half open, around all pixels that change; None if none does."""
        boxes = [box for change in self.sides if (box := change.box) is not None]
        boxes += [] if self.area is None else [self.area.box]
        return union(boxes) if boxes else None


def apply(mend: Mend, pair: EditedPair) -> tuple[Edit, ...]:
    """Apply a mend to an edited pair; a session has a method of its own.

    Returns
    -------
    tuple of Edit
        One for each side that changes.

    Raises
    ------
    LabelError
        If the objects have changed since the mend was made; nothing is changed then.
    """
    for change in mend.sides:
        change.check(pair.pair())
    edits = tuple(change.apply(pair) for change in mend.sides)
    if mend.area is not None:
        now = pair.pair()
        pair.set_ambiguous(mend.area.applied_to(now.ambiguous, now.reference.shape))
    return edits


def around(y: NDArray[np.int32], x: NDArray[np.int32]) -> Box:
    """Return the box around some pixels, at least one."""
    return int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1


def union(boxes: Sequence[Box]) -> Box:
    """Return the box around some boxes, at least one."""
    y0, x0, y1, x1 = zip(*boxes, strict=True)
    return min(y0), min(x0), max(y1), max(x1)
