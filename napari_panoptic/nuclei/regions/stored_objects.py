"""Outcomes and counts of objects that were written as rows of ``objects.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts, count
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.nuclei.values.vocabulary import CAUSES, STATUSES, Side


@dataclass(frozen=True, eq=False)
class RegionCounts:
    """The counts of one version in one region.

    Parameters
    ----------
    patient, region
        Names.
    counts
        The counts.
    """

    patient: str
    region: str
    counts: Counts


def counts_of_rows(objects: pd.DataFrame, class_names: Sequence[str]) -> list[RegionCounts]:
    """Count objects region by region.

    Parameters
    ----------
    objects
        Rows of one team: patient, region and `OBJECT_COLUMNS`.
    class_names
        The scored classes, in order.

    Returns
    -------
    list of RegionCounts
        Regions without objects have none.
    """
    return [
        RegionCounts(str(place[0]), str(place[1]), count(outcomes_of_rows(own, class_names)))
        for place, own in objects.groupby(["patient", "region"], sort=False)
    ]


def outcomes_of_rows(objects: pd.DataFrame, class_names: Sequence[str]) -> Outcomes:
    """Return the outcomes of a region from the rows of its objects.

    What rows lack is unknown: 95th percentiles of distances are NaN, bounding boxes empty.

    Parameters
    ----------
    objects, class_names
        As in `counts_of_rows`, of one region.
    """
    rows = {
        side: objects[objects["side"] == str(side)].sort_values("id", kind="stable")
        for side in Side
    }
    ids = {side: own["id"].to_numpy(np.int64) for side, own in rows.items()}

    def outcomes_of(side: Side, other: Side) -> SideOutcomes:
        own = rows[side]
        partner = np.full(len(own), NO_PARTNER, np.int32)
        matched = own["partner_id"].notna().to_numpy()
        wanted = pd.Index(own["partner_id"][matched].to_numpy(np.int64))
        partner[matched] = pd.Index(ids[other]).get_indexer(wanted)
        if (partner[matched] == NO_PARTNER).any():
            lost = wanted[partner[matched] == NO_PARTNER][0]
            raise LabelError(
                f"expected a {other} object {lost}, the partner of a {side} object, found none; "
                "evaluate again",
                region=str(own["region"].iloc[0]),
            )
        n = len(own)
        return SideOutcomes(
            side=side,
            ids=ids[side],
            class_index=(_codes(own["class"], class_names) + 1).astype(np.int16),
            status=_codes(own["status"], STATUSES).astype(np.int8),
            cause=_codes(own["cause"], CAUSES).astype(np.int8),
            partner=partner,
            iou=own["iou"].to_numpy(np.float64),
            hausdorff_px=own["hausdorff_px"].to_numpy(np.float64),
            hausdorff95_px=np.full(n, np.nan),
            area_px=own["area_px"].to_numpy(np.int64),
            centroid_yx_px=own[["centroid_y_px", "centroid_x_px"]].to_numpy(np.float64),
            bbox=np.zeros((n, 4), np.int32),
            score=own["score"].to_numpy(np.float64) if "score" in own else np.full(n, np.nan),
        )

    return Outcomes(
        reference=outcomes_of(Side.REFERENCE, Side.PREDICTION),
        prediction=outcomes_of(Side.PREDICTION, Side.REFERENCE),
        class_names=tuple(class_names),
        mpp=None,
    )


def _codes(words: pd.Series, vocabulary: Sequence[str]) -> NDArray[np.intp]:
    """Return the position of each word in a vocabulary."""
    known = pd.Index([str(word) for word in vocabulary])
    return known.get_indexer(pd.Index(words.to_numpy(object), dtype=object))
