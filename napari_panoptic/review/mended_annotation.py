"""What was mended in a window: the rows of objects that differ from the files.

Pixels and classes decide which objects have changed; what was done to them is known from the mends
that are still in effect. Whatever no mend explains was drawn by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from napari_panoptic.live.mends import Mend, MendAction, MendedObject, Target
from napari_panoptic.live.working_copies import EditedAnnotation
from napari_panoptic.review.corrected_files import CorrectedAnnotation, Correction
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side, Verdict

NO_BOX = (0, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class DoneMend:
    """A mend that is in effect, by whom and why."""

    region: str
    team: str
    mend: Mend
    at: datetime
    #: Empty if nobody has given a name.
    reviewer: str = ""
    #: The verdicts that it follows from.
    verdicts: Mapping[Target, Verdict] = field(default_factory=dict)

    def correction_of(self, mended: MendedObject) -> Correction:
        """Return what it did to an object."""
        reviewers = (self.reviewer,) if self.reviewer else ()
        verdict = self.verdicts.get(mended.target)
        return Correction(mended, self.team, reviewers, self.at, verdict)


def mended_annotation(edited: EditedAnnotation, done: Sequence[DoneMend]) -> CorrectedAnnotation:
    """Return the annotation of a region as it is to be written, with what was done.

    Parameters
    ----------
    edited
        The objects in the files and now.
    done
        The mends of the region that are in effect, oldest first.
    """
    before, now = _Objects(edited.before), _Objects(edited.now)
    mentions = _mentions(done)
    reshaped = _reshaped(edited.before, edited.now)
    renamed = {id_ for id_ in before.ids & now.ids if before.name(id_) != now.name(id_)}
    # Others lost pixels to a mended object, which is said of that object.
    others = {id_ for own in done for side, id_ in own.mend.overwritten if side is Side.REFERENCE}
    changed = sorted((reshaped | renamed) - (others - mentions.keys()))
    rows = [
        _correction(id_, mentions.get(id_), before, now, is_reshaped=id_ in reshaped)
        for id_ in changed
    ]
    is_marked = edited.is_area_changed
    rows += [
        own.correction_of(_of_annotation(mended))
        for own in done
        for mended in own.mend.objects
        if (mended.action is MendAction.AMBIGUOUS and is_marked) or _is_place(mended)
    ]
    return CorrectedAnnotation(edited.region, tuple(rows), edited.now, edited.ambiguous, edited.mpp)


def noted_places(region: Region, done: Sequence[DoneMend]) -> CorrectedAnnotation:
    """Return the places to draw in a region whose annotation is as in the files."""
    rows = [
        own.correction_of(mended)
        for own in done
        for mended in own.mend.objects
        if own.region == region.name and _is_place(mended)
    ]
    return CorrectedAnnotation(region, tuple(rows))


def pixels_lost(region: str, done: Iterable[DoneMend]) -> list[dict[str, Any]]:
    """Return which annotated objects lost pixels to mended ones, or kept them within."""
    return [
        {"region": region, "id": id_, "pixels": kind, "px": number}
        for own in done
        for kind, objects in (("taken", own.mend.overwritten), ("kept", own.mend.spared))
        for (side, id_), number in objects.items()
        if side is Side.REFERENCE
    ]


class _Objects:
    """The ids, classes and areas of a label image."""

    def __init__(self, labels: LabelImage) -> None:
        areas = np.bincount(labels.index.ravel(), minlength=len(labels) + 1)[1:]
        names = labels.class_names_of_objects().tolist()
        ids = labels.ids.tolist()
        there = [row for row, area in enumerate(areas.tolist()) if area]
        self._of_id = {ids[row]: (names[row], int(areas[row])) for row in there}

    @property
    def ids(self) -> set[int]:
        """The ids of objects with pixels."""
        return set(self._of_id)

    def name(self, id_: int | None) -> str:
        """Return the class of an object; empty if there is none."""
        return "" if id_ is None or id_ not in self._of_id else self._of_id[id_][0]

    def area(self, id_: int | None) -> int:
        """Return the pixels of an object."""
        return 0 if id_ is None or id_ not in self._of_id else self._of_id[id_][1]

    def found(self, id_: int | None) -> int | None:
        """Return an id if there is an object of it."""
        return id_ if id_ in self._of_id else None


def _mentions(done: Sequence[DoneMend]) -> dict[int, Correction]:
    """Return id -> what was done last to this annotated object."""
    found: dict[int, Correction] = {}
    for own in done:
        for mended in own.mend.objects:
            is_object = mended.side is Side.REFERENCE and mended.action is not MendAction.AMBIGUOUS
            is_new = mended.action is MendAction.SPLIT or mended.id_before is None
            id_ = mended.id_after if is_new else mended.id_before
            if is_object and id_ is not None:
                found[id_] = own.correction_of(mended)
    return found


def _of_annotation(mended: MendedObject) -> MendedObject:
    """Return what was done without the facts of a prediction: no annotated object has its id."""
    if mended.side is Side.REFERENCE:
        return mended
    return replace(
        mended,
        id_before=None,
        id_after=None,
        class_before="",
        class_after="",
        area_before_px=0,
        area_after_px=0,
    )


def _is_place(mended: MendedObject) -> bool:
    """Return whether something is only to be drawn, where nothing is annotated."""
    return mended.action is MendAction.DRAW and mended.id_before is None


def _reshaped(before: LabelImage, now: LabelImage) -> set[int]:
    """Return the ids of the objects whose pixels differ."""
    one, other = before.id_image(), now.id_image()
    differs = one != other
    ids = np.union1d(one[differs], other[differs])
    return set(ids[ids > 0].tolist())


def _correction(
    id_: int, known: Correction | None, before: _Objects, now: _Objects, *, is_reshaped: bool
) -> Correction:
    """Return what was done to an object that has changed."""
    was, is_now = before.found(id_), now.found(id_)
    action = _action(was, is_now, is_reshaped=is_reshaped)
    if known is not None and _explains(known.mended, was, is_now, is_reshaped=is_reshaped):
        action = known.mended.action
        was = before.found(known.mended.id_before) if was is None else was
        is_now = now.found(known.mended.id_after) if is_now is None else is_now
    mended = MendedObject(
        target=(Side.REFERENCE, id_) if known is None else known.mended.target,
        action=action,
        side=Side.REFERENCE,
        id_before=was,
        id_after=is_now,
        class_before=before.name(was),
        class_after=now.name(is_now),
        area_before_px=before.area(was),
        area_after_px=now.area(is_now),
        bbox=NO_BOX if known is None else known.mended.bbox,
    )
    return Correction(mended) if known is None else replace(known, mended=mended)


def _action(was: int | None, is_now: int | None, *, is_reshaped: bool) -> MendAction:
    """Return what happened to an object that no mend explains."""
    if is_now is None:
        return MendAction.DELETE
    return MendAction.DRAW if was is None or is_reshaped else MendAction.RECLASSIFY


def _explains(
    mended: MendedObject, was: int | None, is_now: int | None, *, is_reshaped: bool
) -> bool:
    """Return whether an action is one after which an object is as it is."""
    match mended.action:
        case MendAction.DELETE | MendAction.DRAW:
            return is_now is None
        case MendAction.ACCEPT:
            return was is None and is_now is not None
        case MendAction.REPLACE:
            return was is not None and is_now is not None
        case MendAction.RECLASSIFY:
            return not is_reshaped
    return True
