"""An action in the making: what is known of its targets, and what is done to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from napari_panoptic.live.canvas import Canvas, CanvasChange, SideObjects, is_last
from napari_panoptic.live.mends import (
    AreaChange,
    Claim,
    IntArray,
    Mend,
    MendAction,
    MendedObject,
    NotMended,
    Target,
)
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate_again
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import SIDES, STATUS_CODE, Side, Status


@dataclass(frozen=True)
class Noted:
    """What is done to an object; its area afterwards is known at the end."""

    target: Target
    action: MendAction
    #: The side and the row of the object that is changed; None for a new one, and for a place.
    side: Side
    row: int | None
    #: Its id and class afterwards, if it is there.
    id_after: int | None = None
    class_after: str = ""
    #: The number of its new outline on the canvas; None if it keeps its own.
    outline: int | None = None


class Draft:
    """What an action does, object by object; `mend` returns all of it.

    Parameters
    ----------
    evaluation
        The objects; those that share pixels are flattened.
    first_id
        The lowest id of new objects; None for one above all ids of the side.
    """

    def __init__(self, evaluation: Evaluation, first_id: int | None = None) -> None:
        self.evaluation = flattened(evaluation)
        self.objects = {side: SideObjects(self.evaluation, side) for side in SIDES}
        self.canvases = {side: Canvas(self.objects[side]) for side in SIDES}
        self._first_id = first_id
        self._next_ids: dict[Side, int] = {}
        self._order: dict[Target, int] = {}
        self._noted: list[Noted] = []
        self._not_done: list[NotMended] = []
        self._marked: list[IntArray] = []

    # What is known of a target.

    def existing(self, targets: Iterable[Target]) -> list[Target]:
        """Return the targets that have an object, each once; refuse the others."""
        present = []
        for target in dict.fromkeys(targets):
            self._order.setdefault(target, len(self._order))
            if self.evaluation.outcomes.side(target[0]).row_of(target[1]) is None:
                self.refuse(target, "there is no such object with a pixel")
            else:
                present.append(target)
        return present

    def row(self, target: Target) -> int:
        """Return the row of an object."""
        side, id_ = target
        return int(np.searchsorted(self.evaluation.outcomes.side(side).ids, id_))

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

    # What is done.

    def refuse(self, target: Target, reason: str, covers: Sequence[int] = ()) -> None:
        """Do nothing to a target, for a reason."""
        self._not_done.append(NotMended(target, reason, tuple(covers)))

    def note(self, noted: Noted) -> None:
        """List an object that is changed; its pixels are drawn on the canvas."""
        self._noted.append(noted)

    def remove(self, side: Side, row: int, target: Target, action: MendAction) -> None:
        """Remove an object."""
        self.canvases[side].clear(row)
        self.note(Noted(target, action, side, row))

    def rename(self, side: Side, row: int, target: Target, class_name: str) -> None:
        """Let an object have another class."""
        id_ = self.objects[side].id(row)
        self.canvases[side].rename(id_, class_name)
        self.note(Noted(target, MendAction.RECLASSIFY, side, row, id_, class_name))

    def replace(self, row: int, prediction: int, target: Target) -> None:
        """Let an annotated object have the outline and class of a prediction."""
        predicted, side = self.objects[Side.PREDICTION], Side.REFERENCE
        id_, class_name = self.objects[side].id(row), predicted.class_name(prediction)
        canvas = self.canvases[side]
        canvas.clear(row)
        outline = canvas.paint(predicted.pixels(prediction), id_, class_name)
        self.note(Noted(target, MendAction.REPLACE, side, row, id_, class_name, outline))

    def mark(self, pixels: IntArray) -> None:
        """Let pixels join the ambiguous area."""
        self._marked.append(pixels)

    def new_id(self, side: Side) -> int:
        """Return an id that no object of a side has."""
        highest = int(self.objects[side].labels.ids.max(initial=0))
        first = highest + 1 if self._first_id is None else max(self._first_id, highest + 1)
        self._next_ids[side] = self._next_ids.get(side, first) + 1
        return self._next_ids[side] - 1

    # The result.

    def mend(self, claim: Claim) -> Mend:
        """Return what is done as one mend, its objects in the order of the targets."""
        drawn = {side: canvas.drawn(claim) for side, canvas in self.canvases.items()}
        objects = []
        for noted in sorted(self._noted, key=lambda noted: self._place(noted.target)):
            mended = self._mended(noted, drawn[noted.side])
            if noted.outline is None or mended.area_after_px:
                objects.append(mended)
            else:
                why = "annotated objects have all of its pixels; let it take them, or delete them"
                self.refuse(mended.target, why)
        claimed_px = {
            (side, id_): number
            for side, each in drawn.items()
            for id_, number in each.claimed_px.items()
        }
        return Mend(
            sides=tuple(each.change for each in drawn.values() if each.change is not None),
            area=self._area_change(),
            objects=tuple(objects),
            overwritten=claimed_px if claim is Claim.TAKE else {},
            vanished=tuple((side, id_) for side in SIDES for id_ in drawn[side].vanished),
            spared=claimed_px if claim is Claim.KEEP else {},
            not_done=tuple(self._not_done),
        )

    def _place(self, target: Target) -> int:
        return self._order.get(target, len(self._order))

    def _mended(self, noted: Noted, drawn: CanvasChange) -> MendedObject:
        """Return a mended object with the area that it has afterwards."""
        objects, row, id_after = self.objects[noted.side], noted.row, noted.id_after
        area = 0 if row is None else int(objects.area[row])
        left = 0
        if noted.outline is not None:
            left = drawn.areas[noted.outline]
        elif row is not None and id_after is not None:
            left = area - int(drawn.lost[row + 1])
        is_lost = noted.outline is None and not left
        return MendedObject(
            target=noted.target,
            action=noted.action,
            side=noted.side,
            id_before=None if row is None else objects.id(row),
            id_after=None if is_lost else id_after,
            class_before="" if row is None else objects.class_name(row),
            class_after="" if is_lost else noted.class_after,
            area_before_px=area,
            area_after_px=left,
            bbox=self.objects[noted.target[0]].box(self.row(noted.target)),
        )

    def _area_change(self) -> AreaChange | None:
        if not self._marked:
            return None
        pair = self.evaluation.pair
        positions, width = np.concatenate(self._marked), pair.reference.shape[1]
        y, x = np.divmod(positions[is_last(positions, width)], width)
        is_new = pair.ambiguous is None
        return AreaChange(y.astype(np.int32), x.astype(np.int32), is_added=True, is_new=is_new)


def flattened(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation of the objects as edits see them: none shares pixels."""
    if not evaluation.pair.has_planes:
        return evaluation
    return evaluate_again(evaluation, evaluation.settings.replaced(overlaps=Overlaps.FLATTEN))
