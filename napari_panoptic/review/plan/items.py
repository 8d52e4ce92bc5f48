"""An item of a plan as a place to go to, in words."""

from __future__ import annotations

from dataclasses import dataclass

from napari_panoptic.review.plan.design import Plan
from napari_panoptic.review.plan.units import KINDS, NO_ID, SIDES, TILE_PX, ItemKind, ItemSide
from napari_panoptic.values.vocabulary import Side


@dataclass(frozen=True)
class PlanItem:
    """An item of a plan."""

    #: Its number in the plan, from 1.
    number: int
    #: Its team and its region.
    team: str
    region: str
    #: Its outcome before the review.
    kind: ItemKind
    #: The object; None for a tile.
    side: Side | None
    object_id: int | None
    #: First pixel of the tile (y, x); None for an object.
    tile_yx_px: tuple[int, int] | None
    #: Names of its classes, and the cause of an FN or FP; empty for none.
    reference_class: str
    prediction_class: str
    detail: str

    @property
    def words(self) -> str:
        """The item in a few words, with its team and status."""
        if self.kind is ItemKind.BACKGROUND:
            return f"square of background, {self.team}"
        classes = dict.fromkeys(filter(None, (self.reference_class, self.prediction_class)))
        return " · ".join([f"{self.kind} of {self.team}", " → ".join(classes), *self._cause])

    @property
    def _cause(self) -> list[str]:
        return [self.detail] if self.detail else []


def item_at(plan: Plan, number: int) -> PlanItem:
    """Return an item of a plan.

    Parameters
    ----------
    plan
        The plan.
    number
        Number of the item, from 1.
    """
    units, row = plan.units, number - 1
    kind, own_side = KINDS[int(units.kind[row])], SIDES[int(units.side[row])]
    names = ("", *units.class_names)
    is_tile = int(units.id[row]) == NO_ID
    first = tuple(int(value // TILE_PX) * TILE_PX for value in (units.y_px[row], units.x_px[row]))
    return PlanItem(
        number,
        str(units.team[row]),
        str(units.region[row]),
        kind,
        None if own_side is ItemSide.BACKGROUND else Side(own_side.value),
        None if is_tile else int(units.id[row]),
        (first[0], first[1]) if is_tile else None,
        names[int(units.reference_class[row])],
        names[int(units.prediction_class[row])],
        "" if is_tile else str(units.detail[row]),
    )
