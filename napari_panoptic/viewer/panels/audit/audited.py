"""Two ambiguous policies compared on a region and team."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.explain.policy_audit import PolicyAudit, audit_policies, spill_table
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.panels.seen_part import Material


@dataclass(frozen=True, eq=False)
class Audited:
    """What is shown: the policies compared, and the spill under the one that is set."""

    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation
    audit: PolicyAudit
    objects: pd.DataFrame
    spill: pd.DataFrame
    rows: NDArray[np.int64]  # of its side, for each row of `objects`

    @property
    def has_area(self) -> bool:
        """Whether there is an ambiguous area at all."""
        area = self.evaluation.pair.ambiguous
        return area is not None and bool(area.any())


def audited(known: Material, team: str, first: str, second: str) -> Audited:
    """Compare two policies; for workers."""
    evaluation = known.complete()[team]
    audit = audit_policies(evaluation, first, second)
    outcomes = evaluation.outcomes
    rows = np.concatenate([np.arange(len(outcomes.side(side))) for side in Side])
    return Audited(
        known.snapshot, team, evaluation, audit, audit.objects, spill_table(evaluation), rows
    )
