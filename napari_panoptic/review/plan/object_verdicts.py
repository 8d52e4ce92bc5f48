"""Verdicts on the objects of a plan, for the corrected annotation."""

from __future__ import annotations

import numpy as np

from napari_panoptic.review.corrections import PlannedVerdict
from napari_panoptic.review.plan.store import PlanAnswers
from napari_panoptic.review.plan.units import SIDES, ItemSide
from napari_panoptic.values.vocabulary import Side

SIDE_OF = {ItemSide.REFERENCE: Side.REFERENCE, ItemSide.PREDICTION: Side.PREDICTION}
"""The side of an item that is an object."""


def object_verdicts(planned: PlanAnswers) -> list[PlannedVerdict]:
    """Return the verdicts on objects; tiles have none, but a count of nuclei to be drawn."""
    units = planned.stored.plan.units
    is_tile = units.side == SIDES.index(ItemSide.BACKGROUND)
    classes = ("", *units.class_names)
    is_annotated = units.reference_class > 0
    own_class = np.where(is_annotated, units.reference_class, units.prediction_class)
    return [
        PlannedVerdict(
            team=str(units.team[row]),
            region=str(units.region[row]),
            side=SIDE_OF[SIDES[int(units.side[row])]],
            object_id=int(units.id[row]),
            class_name=classes[int(own_class[row])],
            y_px=float(units.y_px[row]),
            x_px=float(units.x_px[row]),
            reviewer=given.reviewer,
            verdict=given.answer.verdict,
            note=given.note,
            given_at=given.given_at,
        )
        for given in planned.given
        for row in [given.answer.item - 1]
        if not is_tile[row]
    ]
