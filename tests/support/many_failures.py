"""Failures without files: as many as a test wants."""

from __future__ import annotations

import numpy as np

from napari_panoptic.explain.failures import Block, CohortFailures, RegionFailures
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Status


def many_failures(n: int, *, regions: int = 1) -> CohortFailures:
    """Make missed reference objects: n in all, spread over some regions."""
    blocks = []
    for number, part in enumerate(np.array_split(np.arange(n), regions)):
        k = len(part)
        columns = {
            "side": np.zeros(k, np.int8),
            "id": part + 1,
            "row": part,
            "class": np.ones(k, np.int16),
            "status": np.full(k, STATUS_CODE[Status.FN], np.int8),
            "cause": np.full(k, CAUSE_CODE[Cause.MISSED], np.int8),
            "partner_id": np.full(k, -1),
            "partner_class": np.zeros(k, np.int16),
            "iou": np.zeros(k),
            "hausdorff_px": np.full(k, np.nan),
            "hausdorff95_px": np.full(k, np.nan),
            "area_px": part + 10,
            "centroid_yx_px": np.zeros((k, 2)),
            "bbox": np.zeros((k, 4), np.int32),
            "score": np.full(k, np.nan),
        }
        found = RegionFailures(columns, ("Epithelial",), None)
        blocks.append(Block("team", "patient", f"region {number}", found))
    return CohortFailures(blocks)
