"""Actions on objects: each returns a `Mend`, which is applied, and undone by its exact inverse.

How to use it::

    mend = accept(evaluation, [(Side.PREDICTION, 7)])       # pure: nothing is changed
    mend.overwritten, mend.not_done                         # what to say or ask before
    session.apply(mend)                                     # or apply(mend, edited_pair)
    session.apply(mend.inverse)                             # undone, to the last pixel

Objects are named by targets: their side and id. An action takes any number of targets and is one
mend, however many objects it changes. All targets are mended together: outlines that are replaced
or deleted are removed first, so that the order of the targets decides nothing but new ids.

======================  =========================================================================
`accept`                the annotation takes outline and class of predictions
`delete`                objects are removed
`merge`                 sets of objects become one object each, gaps of at most 2 px closed
`split`                 objects are divided by those of the other side that lie in them
`take_class`            objects take the class of their partner
`mark_ambiguous`        the pixels of objects join the ambiguous area
`mend_of_verdicts`      what verdicts would change
======================  =========================================================================

`Claim` decides about pixels of objects that are not targets: they stay (`KEEP`) or are taken
(`TAKE`). To ask the user, compute the mend with `TAKE`, and read ``overwritten``. New objects are
numbered from ``first_id``; with a session, pass a number above `Session.known_ids`.

Evaluations are those of a session (`Session.with_all_scores`, so that no threshold leaves out
objects) or of `EditedPair.evaluate`. Objects that keep shared pixels are flattened, as edits do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failure_groups import FailureGroup
from napari_panoptic.nuclei.edits import Edit, EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate_again
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.statistics.graphs import connected_components
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import SIDES, STATUS_CODE, Side, Status, Verdict

Target = tuple[Side, int]
"""An object: its side and its id."""
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
    bbox: tuple[int, int, int, int]


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
    def box(self) -> tuple[int, int, int, int] | None:
        """y0, x0, y1, x1 in px, half open, around the pixels; None if only classes change."""
        return _around(self.y, self.x) if len(self.y) else None

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
    def box(self) -> tuple[int, int, int, int]:
        """y0, x0, y1, x1 in px, half open, around the pixels."""
        return _around(self.y, self.x)

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
    def bbox(self) -> tuple[int, int, int, int] | None:
        """y0, x0, y1, x1 in px, half open, around all pixels that change; None if none does."""
        boxes = [box for change in self.sides if (box := change.box) is not None]
        boxes += [] if self.area is None else [self.area.box]
        return _union(boxes) if boxes else None


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


# --- actions ----------------------------------------------------------------------------------


def accept(
    evaluation: Evaluation,
    targets: Iterable[Target],
    *,
    claim: Claim = Claim.KEEP,
    covered: Covered = Covered.ASK,
    first_id: int | None = None,
) -> Mend:
    """Let the annotation take the outline and class of predictions.

    An annotated object with a partner is replaced by it, and keeps its id. An FN is replaced by the
    unmatched prediction that fits best, if their IoU reaches the setting `near_iou`. An FP becomes
    a new annotated object.

    Parameters
    ----------
    evaluation, targets
        The objects, of either side; both objects of a pair are the same target.
    claim, covered, first_id
        See the top of this module.
    """
    work = _Work(evaluation, first_id)
    used: set[int] = set()
    replacements: dict[int, tuple[int, Target]] = {}
    new: dict[int, Target] = {}
    for target in work.known(targets):
        row, prediction = work.annotated_and_predicted(target)
        if prediction is None:
            work.refuse(target, "no prediction fits it; delete it, or draw it")
        elif row in replacements:
            continue  # the other object of the pair
        elif row is not None and prediction in used:
            work.refuse(target, "another annotated object takes the prediction that fits it")
        elif row is not None:
            replacements[row] = prediction, target
            used.add(prediction)
        elif work.is_ignored(target):
            work.refuse(target, "it lies in the ambiguous area")
        else:
            new.setdefault(prediction, target)
    for row, (prediction, target) in replacements.items():
        work.replace(row, prediction, target)
    for prediction, target in new.items():
        if prediction not in used:
            work.add(prediction, target, covered)
    return work.mend(claim)


def delete(evaluation: Evaluation, targets: Iterable[Target]) -> Mend:
    """Remove objects of either side."""
    work = _Work(evaluation)
    for target in work.known(targets):
        work.remove(target, target, MendAction.DELETE)
    return work.mend(Claim.KEEP)


def merge(
    evaluation: Evaluation, sets: Iterable[Sequence[Target]], *, claim: Claim = Claim.KEEP
) -> Mend:
    """Make one object of each set of objects.

    It is their union, in which gaps of at most 2 px are closed: a pixel is part of a gap unless
    some square of 3 x 3 px contains it and no pixel of the objects. The largest object keeps its id
    and class (the lowest id of equals).

    Parameters
    ----------
    evaluation
        The objects.
    sets
        The objects to merge; those of a set are on one side. `objects_to_merge` returns those of a
        failure group.
    claim
        Whether gaps include pixels of other objects.
    """
    work = _Work(evaluation)
    taken: set[Target] = set()
    for members in sets:
        known = [target for target in work.known(members) if target not in taken]
        if len({side for side, _ in known}) != 1 or len(known) < 2:
            for target in known:
                work.refuse(target, "merging needs two or more objects of one side")
            continue
        taken.update(known)
        work.merge(known)
    return work.mend(claim)


def split(
    evaluation: Evaluation, targets: Iterable[Target], *, first_id: int | None = None
) -> Mend:
    """Divide objects by those of the other side that have more than half of their area inside.

    Each pixel goes to the nearest of these, by a watershed on the distance from them. The largest
    part keeps the id (the first of equals); all parts keep the class.
    """
    work = _Work(evaluation, first_id)
    for target in work.known(targets):
        work.split(target)
    return work.mend(Claim.KEEP)


def take_class(evaluation: Evaluation, targets: Iterable[Target]) -> Mend:
    """Let misclassified objects of either side take the class of their partner."""
    work = _Work(evaluation)
    for target in work.known(targets):
        side, _ = target
        partner = work.partner(target)
        if partner is None:
            work.refuse(target, "it has no partner")
            continue
        class_name = work.views[side.other].class_name(partner)
        if work.views[side].class_name(work.row(target)) == class_name:
            work.refuse(target, "its partner has the same class")
        else:
            work.rename(target, class_name, target)
    return work.mend(Claim.KEEP)


def mark_ambiguous(evaluation: Evaluation, targets: Iterable[Target]) -> Mend:
    """Let the pixels of objects join the ambiguous area; the objects stay."""
    work = _Work(evaluation)
    for target in work.known(targets):
        work.mark(target)
    return work.mend(Claim.KEEP)


def mend_of_verdicts(
    evaluation: Evaluation,
    verdicts: Mapping[Target, Verdict],
    *,
    claim: Claim = Claim.KEEP,
    covered: Covered = Covered.ASK,
    first_id: int | None = None,
) -> Mend:
    """Return what verdicts would change of the annotation.

    ==================  ===========================================================================
    prediction right    an FN is deleted, an FP accepted; a misclassified object takes the class of
                        the prediction, and another object with a partner its outline
    both wrong          the annotated object is deleted, and its place is to be drawn; so is that of
                        an FP
    other verdicts      nothing
    ==================  ===========================================================================

    Verdicts on both objects of a pair that say the same count once. Those that say different
    things of one annotated object are not applied.

    Parameters
    ----------
    evaluation
        The objects.
    verdicts
        Object -> the verdict on it.
    claim, covered, first_id
        See the top of this module.
    """
    work = _Work(evaluation, first_id)
    wanted = {
        target: action
        for target in work.known(verdicts)
        if (action := _action(work, target, verdicts[target])) is not None
    }
    by_row: dict[int, list[Target]] = {}
    for target, action in wanted.items():
        row = work.annotated(target)
        if action is MendAction.ACCEPT:
            work.add(work.row(target), target, covered)
        elif row is None:
            work.note_place(target)
        else:
            by_row.setdefault(row, []).append(target)
    for row, targets in by_row.items():
        if len({wanted[target] for target in targets}) > 1:
            for target in targets:
                work.refuse(target, "the verdicts on the two objects of a pair differ")
            continue
        work.correct(row, targets[0], wanted[targets[0]])
    return work.mend(claim)


def flattened(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation of the objects as edits see them: none shares pixels."""
    if not evaluation.pair.has_planes:
        return evaluation
    return evaluate_again(evaluation, evaluation.settings.replaced(overlaps=Overlaps.FLATTEN))


def objects_to_merge(group: FailureGroup, evaluation: Evaluation) -> list[Target]:
    """Return the predictions of a group that is a split or has duplicates."""
    ids = evaluation.outcomes.prediction.ids[group.prediction_rows]
    return [(Side.PREDICTION, id_) for id_ in ids.tolist()]


def objects_to_split(group: FailureGroup, evaluation: Evaluation) -> list[Target]:
    """Return the predictions of a group that contain several annotated objects."""
    ids = evaluation.outcomes.prediction.ids
    return [
        (Side.PREDICTION, int(ids[row]))
        for row in group.prediction_rows.tolist()
        if len(_inside(evaluation, Side.PREDICTION, row)) > 1
    ]


def _action(work: _Work, target: Target, verdict: Verdict) -> MendAction | None:
    """Return what a verdict would change, None for nothing; refuse what cannot be changed."""
    if verdict is Verdict.BOTH_WRONG:
        return MendAction.DRAW
    if verdict is not Verdict.PREDICTION_RIGHT:
        return None
    if work.is_ignored(target):
        work.refuse(target, "it is ignored: the ambiguous area excludes it")
        return None
    if work.partner(target) is None:
        return MendAction.DELETE if target[0] is Side.REFERENCE else MendAction.ACCEPT
    is_misclassified = work.status(target) == STATUS_CODE[Status.MISCLASSIFIED]
    return MendAction.RECLASSIFY if is_misclassified else MendAction.REPLACE


# --- how a mend is made -----------------------------------------------------------------------


class _View:
    """The objects of one side: pixels by row."""

    def __init__(self, evaluation: Evaluation, side: Side) -> None:
        self.side = side
        self.labels: LabelImage = evaluation.pair.side(side)
        self.bbox = evaluation.table.side(side).bbox
        self.area = evaluation.table.side(side).area
        self.width = self.labels.shape[1]

    def box(self, row: int) -> tuple[int, int, int, int]:
        y0, x0, y1, x1 = self.bbox[row].tolist()
        return y0, x0, y1, x1

    def mask(self, row: int) -> BoolArray:
        """Return the object within its bounding box."""
        y0, x0, y1, x1 = self.box(row)
        found: BoolArray = self.labels.index[y0:y1, x0:x1] == row + 1
        return found

    def pixels(self, row: int) -> IntArray:
        """Return the raster positions of the pixels of an object."""
        y0, x0, _, _ = self.box(row)
        return self.positions(self.mask(row), y0, x0)

    def positions(self, mask: BoolArray, y0: int, x0: int) -> IntArray:
        """Return the raster positions of the pixels of a mask at a place."""
        y, x = np.nonzero(mask)
        return (y + y0) * self.width + (x + x0)

    def class_name(self, row: int) -> str:
        return self.labels.class_names[int(self.labels.class_index[row]) - 1]


class _Canvas:
    """The pixels of one side that a mend changes: outlines that go, then outlines that come."""

    def __init__(self, view: _View) -> None:
        self.view = view
        self.cleared: list[IntArray] = []
        #: bool (n + 1,): the rows that go, plus one; the background is free as well.
        self.is_free = np.zeros(len(view.labels) + 1, np.bool_)
        self.is_free[0] = True
        self.painted: list[tuple[IntArray, int]] = []
        self.classes: dict[int, str] = {}
        self.renamed: dict[int, str] = {}
        #: int64 (n + 1,): pixels that each object loses, by row plus one; set by `change`.
        self.lost = np.zeros(len(view.labels) + 1, np.int64)
        self.overwritten: dict[int, int] = {}
        self.spared: dict[int, int] = {}

    def clear(self, row: int) -> None:
        if not self.is_free[row + 1]:
            self.is_free[row + 1] = True
            self.cleared.append(self.view.pixels(row))

    def paint(self, pixels: IntArray, id_: int, class_name: str) -> int:
        """Let an object have pixels; return its number among those that are painted."""
        self.painted.append((pixels, id_))
        self.classes[id_] = class_name
        return len(self.painted) - 1

    def change(self, claim: Claim) -> tuple[SideChange | None, list[int], list[int]]:
        """Return the change, the area of each painted object, and the ids that vanish."""
        index, ids = self.view.labels.index.ravel(), np.concatenate([[0], self.view.labels.ids])
        outlines = [self._claimed(pixels, index, claim) for pixels, _ in self.painted]
        positions = np.concatenate([*self.cleared, *outlines, np.zeros(0, np.int64)])
        lengths = [sum(map(len, self.cleared)), *map(len, outlines)]
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        is_last = _is_last(positions, self.view.width)
        positions, numbers = positions[is_last], numbers[is_last]
        areas = np.bincount(numbers, minlength=len(lengths))[1:].tolist()
        rows = index[positions]
        before = ids[rows]
        after = np.array([0, *(id_ for _, id_ in self.painted)], np.int64)[numbers]
        gone = self._vanished(rows)
        changed = before != after
        if not changed.any() and not self.renamed:
            return None, areas, gone
        y, x = np.divmod(positions[changed], self.view.width)
        self.lost = np.bincount(rows[changed], minlength=len(ids))
        touched = np.flatnonzero(self.lost)
        concerned = {int(ids[row]) for row in touched} | self.classes.keys() | self.renamed.keys()
        known = self._classes(concerned)
        change = SideChange(
            side=self.view.side,
            y=y.astype(np.int32),
            x=x.astype(np.int32),
            ids_before=before[changed],
            ids_after=after[changed],
            classes_before=known,
            classes_after=known | self.classes | self.renamed,
        )
        return change, areas, gone

    def _classes(self, ids: Iterable[int]) -> dict[int, str]:
        """Return id -> class of those objects that are there before."""
        own = self.view.labels.ids
        wanted = np.intersect1d(np.array(list(ids), np.int64), own, assume_unique=True)
        rows = np.searchsorted(own, wanted).tolist()
        return {
            id_: self.view.class_name(row) for id_, row in zip(wanted.tolist(), rows, strict=True)
        }

    def _claimed(self, pixels: IntArray, index: NDArray[np.int32], claim: Claim) -> IntArray:
        """Return the pixels that an outline gets; note those of other objects."""
        rows = index[pixels]
        free = self.is_free[rows]
        if free.all():
            return pixels
        counts = self.spared if claim is Claim.KEEP else self.overwritten
        found, numbers = np.unique(rows[~free], return_counts=True)
        for row, number in zip(found.tolist(), numbers.tolist(), strict=True):
            id_ = int(self.view.labels.ids[row - 1])
            counts[id_] = counts.get(id_, 0) + number
        return pixels[free] if claim is Claim.KEEP else pixels

    def _vanished(self, rows: NDArray[np.int32]) -> list[int]:
        """Return the ids of the objects that lose all pixels to others."""
        if not self.overwritten:
            return []
        own = np.searchsorted(self.view.labels.ids, list(self.overwritten))
        lost = np.bincount(rows, minlength=len(self.view.labels) + 1)[own + 1]
        return [
            id_
            for id_, is_gone in zip(self.overwritten, lost == self.view.area[own], strict=True)
            if is_gone
        ]


@dataclass(frozen=True)
class _Pending:
    """A mended object whose area afterwards is not known yet."""

    object: MendedObject
    #: Its number among the painted objects; None if it is not painted.
    number: int | None


class _Work:
    """A mend in the making."""

    def __init__(self, evaluation: Evaluation, first_id: int | None = None) -> None:
        self.evaluation = evaluation = flattened(evaluation)
        self.views = {side: _View(evaluation, side) for side in SIDES}
        self._canvases = {side: _Canvas(self.views[side]) for side in SIDES}
        self._first_id = first_id
        self._next_ids: dict[Side, int] = {}
        self._order: dict[Target, int] = {}
        self._rows: dict[Target, int] = {}
        self._pending: list[_Pending] = []
        self._not_done: list[NotMended] = []
        self._marked: list[IntArray] = []

    # What is known of a target.

    def known(self, targets: Iterable[Target]) -> list[Target]:
        """Return the targets that there are, each once; refuse the others."""
        found = []
        for target in dict.fromkeys(targets):
            side, id_ = target
            self._order.setdefault(target, len(self._order))
            row = self.evaluation.outcomes.side(side).row_of(id_)
            if row is None:
                self.refuse(target, "there is no such object with a pixel")
            else:
                self._rows[target] = row
                found.append(target)
        return found

    def row(self, target: Target) -> int:
        """Return the row of a known target."""
        if target not in self._rows:
            side, id_ = target
            ids = self.evaluation.outcomes.side(side).ids
            self._rows[target] = int(np.searchsorted(ids, id_))
        return self._rows[target]

    def status(self, target: Target) -> int:
        """Return the code of its status."""
        return int(self.evaluation.outcomes.side(target[0]).status[self.row(target)])

    def is_ignored(self, target: Target) -> bool:
        """Return whether the ambiguous policy excludes it."""
        return self.status(target) == STATUS_CODE[Status.IGNORED]

    def partner(self, target: Target) -> int | None:
        """Return the row of its partner on the other side, None if it has none."""
        row = int(self.evaluation.outcomes.side(target[0]).partner[self.row(target)])
        return None if row == NO_PARTNER else row

    def annotated(self, target: Target) -> int | None:
        """Return the row of the annotated object that a target is, or matches."""
        return self.row(target) if target[0] is Side.REFERENCE else self.partner(target)

    def annotated_and_predicted(self, target: Target) -> tuple[int | None, int | None]:
        """Return the rows of the annotated object and the prediction that belong together."""
        if target[0] is Side.PREDICTION:
            return self.partner(target), self.row(target)
        row, partner = self.row(target), self.partner(target)
        return row, self._best_unmatched(row) if partner is None else partner

    def _best_unmatched(self, row: int) -> int | None:
        """Return the unmatched prediction of the highest IoU with an annotated object."""
        judged, outcomes = self.evaluation.judged, self.evaluation.outcomes
        pairs = np.flatnonzero(judged.pair_reference == row)
        rows = judged.pair_prediction[pairs]
        is_fp = outcomes.prediction.status[rows] == STATUS_CODE[Status.FP]
        pairs, rows = pairs[is_fp], rows[is_fp]
        if self.is_ignored((Side.REFERENCE, int(outcomes.reference.ids[row]))) or not len(pairs):
            return None
        iou = judged.iou[pairs]
        best = int(np.argmax(iou))
        return int(rows[best]) if iou[best] >= self.evaluation.settings.near_iou else None

    # What is to be done.

    def refuse(self, target: Target, reason: str, covers: Sequence[int] = ()) -> None:
        """Note that nothing is done to a target."""
        self._not_done.append(NotMended(target, reason, tuple(covers)))

    def remove(self, own: Target, target: Target, action: MendAction) -> None:
        """Remove an object."""
        row, view = self.row(own), self.views[own[0]]
        self._canvases[own[0]].clear(row)
        self._note(target, action, own[0], own[1], None, view.class_name(row), "", row)

    def replace(self, row: int, prediction: int, target: Target) -> None:
        """Let an annotated object have the outline and class of a prediction."""
        reference, other = self.views[Side.REFERENCE], self.views[Side.PREDICTION]
        canvas, id_ = self._canvases[Side.REFERENCE], int(reference.labels.ids[row])
        before, after = reference.class_name(row), other.class_name(prediction)
        canvas.clear(row)
        number = canvas.paint(other.pixels(prediction), id_, after)
        if before != after:
            canvas.renamed[id_] = after
        action = MendAction.REPLACE
        self._note(target, action, Side.REFERENCE, id_, id_, before, after, row, number)

    def add(self, prediction: int, target: Target, covered: Covered) -> None:
        """Make a new annotated object of an FP."""
        canvas, view = self._canvases[Side.REFERENCE], self.views[Side.PREDICTION]
        pixels = view.pixels(prediction)
        inside = _inside(self.evaluation, Side.PREDICTION, prediction)
        ids = self.views[Side.REFERENCE].labels.ids[inside].tolist()
        if covered is Covered.REPLACE:
            for id_ in ids:
                own = Side.REFERENCE, id_
                self.remove(own, own, MendAction.DELETE)
        elif covered is Covered.ASK and len(ids) > 1:
            reason = f"it covers the annotated objects {english_list(ids)}; decide on them by hand"
            self.refuse(target, reason, ids)
            return
        id_, name = self._new_id(Side.REFERENCE), view.class_name(prediction)
        number = canvas.paint(pixels, id_, name)
        self._note(target, MendAction.ACCEPT, Side.REFERENCE, None, id_, "", name, None, number)

    def rename(self, own: Target, class_name: str, target: Target) -> None:
        """Set the class of an object."""
        row, view = self.row(own), self.views[own[0]]
        self._canvases[own[0]].renamed[own[1]] = class_name
        action, before = MendAction.RECLASSIFY, view.class_name(row)
        self._note(target, action, own[0], own[1], own[1], before, class_name, row)

    def correct(self, row: int, target: Target, action: MendAction) -> None:
        """Do to an annotated object what a verdict says."""
        own = Side.REFERENCE, int(self.views[Side.REFERENCE].labels.ids[row])
        partner = self.partner(own)
        if action in (MendAction.DELETE, MendAction.DRAW) or partner is None:
            self.remove(own, target, action)
        elif action is MendAction.RECLASSIFY:
            self.rename(own, self.views[Side.PREDICTION].class_name(partner), target)
        else:
            self.replace(row, partner, target)

    def note_place(self, target: Target) -> None:
        """Note a place that is to be drawn, at which nothing is annotated."""
        self._note(target, MendAction.DRAW, Side.REFERENCE, None, None, "", "", None)

    def merge(self, members: Sequence[Target]) -> None:
        """Make one object of several of one side."""
        side = members[0][0]
        view, canvas = self.views[side], self._canvases[side]
        rows = [self.row(target) for target in members]
        largest = max(rows, key=lambda row: (view.area[row], -row))
        id_, name = int(view.labels.ids[largest]), view.class_name(largest)
        near = _near(view.bbox[rows])
        outlines = [
            self._closed_union(view, [row for row, own in zip(rows, near, strict=True) if own == k])
            for k in range(int(near.max()) + 1)
        ]
        for row in rows:
            canvas.clear(row)
        number = canvas.paint(np.concatenate(outlines), id_, name)
        for target, row in zip(members, rows, strict=True):
            before, action = view.class_name(row), MendAction.MERGE
            self._note(target, action, side, target[1], id_, before, name, row, number)

    @staticmethod
    def _closed_union(view: _View, rows: Sequence[int]) -> IntArray:
        """Return the raster positions of the pixels of objects, and of the gaps between them."""
        y0, x0, y1, x1 = _union([view.box(row) for row in rows])
        union = np.zeros((y1 - y0, x1 - x0), np.bool_)
        for row in rows:
            top, left, bottom, right = view.box(row)
            union[top - y0 : bottom - y0, left - x0 : right - x0] |= view.mask(row)
        return view.positions(_closed(union), y0, x0)

    def split(self, target: Target) -> None:
        """Divide an object by those of the other side that lie in it."""
        distance_transform_edt, watershed = split_functions()
        side, id_ = target
        view, canvas, row = self.views[side], self._canvases[side], self.row(target)
        seeds = _inside(self.evaluation, side, row)
        y0, x0, y1, x1 = view.box(row)
        mask = view.mask(row)
        others = self.views[side.other].labels.index[y0:y1, x0:x1]
        lookup = np.zeros(len(self.views[side.other].labels) + 1, np.int32)
        lookup[seeds + 1] = np.arange(1, len(seeds) + 1)
        markers = np.where(mask, lookup[others], 0)
        if len(seeds) < 2:
            self.refuse(target, f"it contains {len(seeds)} objects of the other side, not several")
            return
        distance, nearest = distance_transform_edt(markers == 0, return_indices=True)
        parts = watershed(distance, markers, mask=mask)
        # Pieces of the object without a seed are out of the watershed's reach.
        parts = np.where(mask & (parts == 0), markers[tuple(nearest)], parts)
        areas = np.bincount(parts[mask], minlength=len(seeds) + 1)[1:]
        largest, name = int(np.argmax(areas)), view.class_name(row)
        canvas.clear(row)
        for part in range(len(seeds)):
            own = id_ if part == largest else self._new_id(side)
            number = canvas.paint(view.positions(parts == part + 1, y0, x0), own, name)
            self._note(target, MendAction.SPLIT, side, id_, own, name, name, row, number)

    def mark(self, target: Target) -> None:
        """Let the pixels of an object join the ambiguous area."""
        side, id_ = target
        view, row = self.views[side], self.row(target)
        pixels, area = view.pixels(row), self.evaluation.pair.ambiguous
        pixels = pixels if area is None else pixels[~area.ravel()[pixels]]
        if not len(pixels):
            self.refuse(target, "it lies in the ambiguous area already")
            return
        self._marked.append(pixels)
        name = view.class_name(row)
        self._note(target, MendAction.AMBIGUOUS, side, id_, id_, name, name, row)

    def _new_id(self, side: Side) -> int:
        ids = self.views[side].labels.ids
        highest = int(ids[-1]) if len(ids) else 0
        first = highest + 1 if self._first_id is None else max(self._first_id, highest + 1)
        self._next_ids[side] = self._next_ids.get(side, first) + 1
        return self._next_ids[side] - 1

    def _note(
        self,
        target: Target,
        action: MendAction,
        side: Side,
        id_before: int | None,
        id_after: int | None,
        class_before: str,
        class_after: str,
        row: int | None,
        number: int | None = None,
    ) -> None:
        view = self.views[target[0]]
        area = 0 if row is None else int(self.views[side].area[row])
        mended = MendedObject(
            target=target,
            action=action,
            side=side,
            id_before=id_before,
            id_after=id_after,
            class_before=class_before,
            class_after=class_after,
            area_before_px=area,
            area_after_px=0 if id_after is None else area,
            bbox=view.box(self.row(target)),
        )
        self._pending.append(_Pending(mended, number))

    def mend(self, claim: Claim) -> Mend:
        """Return what was noted as one mend."""
        changes, gone, areas = [], [], {}
        for side, canvas in self._canvases.items():
            change, areas[side], vanished = canvas.change(claim)
            gone += [(side, id_) for id_ in vanished]
            changes += [] if change is None else [change]
        objects = []
        for item in sorted(self._pending, key=self._place):
            mended = self._finished(item, areas)
            if item.number is None or mended.area_after_px:
                objects.append(mended)
            else:
                why = "annotated objects have all of its pixels; let it take them, or delete them"
                self.refuse(mended.target, why)
        return Mend(
            sides=tuple(changes),
            area=self._area_change(),
            objects=tuple(objects),
            overwritten=self._of_sides("overwritten"),
            vanished=tuple(gone),
            spared=self._of_sides("spared"),
            not_done=tuple(self._not_done),
        )

    def _place(self, item: _Pending) -> int:
        return self._order.get(item.object.target, len(self._order))

    def _finished(self, item: _Pending, areas: Mapping[Side, Sequence[int]]) -> MendedObject:
        """Return a mended object with the area that it has afterwards."""
        mended = item.object
        if item.number is not None:
            return replace(mended, area_after_px=areas[mended.side][item.number])
        if mended.id_after is None:
            return mended
        row = self.row((mended.side, mended.id_after))
        left = mended.area_after_px - int(self._canvases[mended.side].lost[row + 1])
        if left:
            return replace(mended, area_after_px=left)
        return replace(mended, id_after=None, class_after="", area_after_px=0)

    def _of_sides(self, name: str) -> dict[Target, int]:
        return {
            (side, id_): number
            for side, canvas in self._canvases.items()
            for id_, number in getattr(canvas, name).items()
        }

    def _area_change(self) -> AreaChange | None:
        if not self._marked:
            return None
        width = self.evaluation.pair.reference.shape[1]
        positions = np.concatenate(self._marked)
        y, x = np.divmod(positions[_is_last(positions, width)], width)
        is_new = self.evaluation.pair.ambiguous is None
        return AreaChange(y.astype(np.int32), x.astype(np.int32), is_added=True, is_new=is_new)


def split_functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions that divide objects; the first call imports packages for 0.3 s."""
    from scipy.ndimage import distance_transform_edt
    from skimage.segmentation import watershed

    return distance_transform_edt, watershed


def _inside(evaluation: Evaluation, side: Side, row: int) -> IntArray:
    """Return the rows of the objects of the other side that lie mostly in an object.

    More than half of their area after the ambiguous policy; ignored ones do not count.
    """
    judged = evaluation.judged
    pairs = np.flatnonzero(judged.rows_of_pairs(side) == row)
    rows = judged.rows_of_pairs(side.other)[pairs].astype(np.int64)
    status = evaluation.outcomes.side(side.other).status[rows]
    is_inside = 2 * judged.intersection[pairs] > judged.side(side.other).area[rows]
    found: IntArray = np.sort(rows[is_inside & (status != STATUS_CODE[Status.IGNORED])])
    return found


def _near(bbox: NDArray[np.integer]) -> IntArray:
    """Return the cluster, from 0, of each of some boxes (n, 4) that a closing can connect."""
    y0, x0, y1, x1 = bbox.T
    reach = 2
    is_near = (y0[:, np.newaxis] < y1 + reach + 1) & (x0[:, np.newaxis] < x1 + reach + 1)
    one, other = np.nonzero(is_near & is_near.T)
    return connected_components(one, other, len(bbox))


def _closed(mask: BoolArray) -> BoolArray:
    """Return a mask with its gaps of at most 2 px closed, by a square of 3 x 3 px."""
    grown = np.pad(mask, 2)
    grown = _over_square(grown, np.logical_or)
    return _over_square(grown, np.logical_and)[2:-2, 2:-2]


def _over_square(mask: BoolArray, join: np.ufunc) -> BoolArray:
    """Join each pixel with its eight neighbours; those at the edge of the image are False."""
    rows = np.zeros_like(mask)
    rows[1:-1] = join(join(mask[:-2], mask[2:]), mask[1:-1])
    result = np.zeros_like(mask)
    result[:, 1:-1] = join(join(rows[:, :-2], rows[:, 2:]), rows[:, 1:-1])
    return result


def _is_last(positions: IntArray, width: int) -> BoolArray:
    """Return which raster positions (n,) do not come again later."""
    if not len(positions):
        return np.zeros(0, np.bool_)
    first = int(positions.min()) // width * width
    # Memory of the rows between; the system provides only the pages that are written.
    last = np.zeros(int(positions.max()) - first + 1, np.int32)
    order = np.arange(len(positions), dtype=np.int32)
    last[positions - first] = order
    found: BoolArray = last[positions - first] == order
    return found


def _around(y: NDArray[np.int32], x: NDArray[np.int32]) -> tuple[int, int, int, int]:
    return int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1


def _union(boxes: Sequence[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    y0, x0, y1, x1 = zip(*boxes, strict=True)
    return min(y0), min(x0), max(y1), max(x1)
