"""The objects that the table lists, and how the image shows the others. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.display.object_rows import ObjectRows
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

DIMMED_ALPHA = 0.25
"""Opacity of objects that are not listed, if they are dimmed."""


class Others(MenuChoice):
    """How objects that the table does not list are drawn."""

    SHOWN = (
        "all objects",
        "The image shows every object, whether it is listed here or not.",
        "show",
    )
    DIMMED = (
        "these in context",
        "The image shows the listed objects and their partners, the others faintly.",
        "dim",
    )
    HIDDEN = (
        "only these",
        "The image shows the listed objects and their partners, and no others.",
        "hide",
    )

    @property
    def alpha(self) -> float:
        """How opaque they are, as a share of what they would be."""
        return {Others.SHOWN: 1.0, Others.DIMMED: DIMMED_ALPHA, Others.HIDDEN: 0.0}[self]


@dataclass(frozen=True, eq=False)
class ListedObjects:
    """Which objects stand out on the image."""

    #: Side -> int64 (n,): ids of the listed objects and of their partners.
    ids: dict[Side, NDArray[np.int64]]
    #: How all other objects are drawn.
    others: Others

    @classmethod
    def from_order(
        cls, rows: ObjectRows, order: NDArray[np.intp], outcomes: Outcomes, others: Others
    ) -> ListedObjects:
        """Take the rows that a table lists, and the partners of their objects.

        Parameters
        ----------
        rows, order
            What the table has, and which of it is listed.
        outcomes
            What the rows were made from.
        others
            How all other objects are to be drawn.
        """
        on_reference = order < rows.n_reference
        chosen = {
            Side.REFERENCE: order[on_reference],
            Side.PREDICTION: order[~on_reference] - rows.n_reference,
        }
        ids = {}
        for side in Side:
            partners = outcomes.other(side).partner[chosen[side.other]]
            kept = np.zeros(len(outcomes.side(side)), bool)
            kept[chosen[side]] = True
            kept[partners[partners != NO_PARTNER]] = True
            ids[side] = outcomes.side(side).ids[kept]
        return cls(ids, others)

    def stands_out(self, side: Side, labels: LabelImage) -> NDArray[np.bool_]:
        """Mark the objects of a label image that are listed, bool (n,)."""
        found: NDArray[np.bool_] = np.isin(labels.ids, self.ids[side])
        return found

    def faded(
        self,
        lut: NDArray[np.float32],
        side: Side,
        labels: LabelImage,
        values: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        """Make the colours of objects that are not listed fainter.

        Parameters
        ----------
        lut
            float32 (65535, 4): RGBA of each label; not changed.
        side, labels
            Whose colours they are.
        values
            int64 (n,): the label of each object, if they are not 1..n because the objects were
            edited.
        """
        rows = np.flatnonzero(~self.stands_out(side, labels))
        faded = rows + 1 if values is None else values[rows]
        result = lut.copy()
        result[faded[faded < len(lut)], 3] *= self.others.alpha
        return result
