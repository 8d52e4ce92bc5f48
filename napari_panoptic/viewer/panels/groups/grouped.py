"""The failure groups of a region and team."""

from __future__ import annotations

from dataclasses import dataclass

from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.explain.failure_groups import (
    FailureGroup,
    counts_if_merged,
    failure_groups,
)
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.metrics import Metrics, unit_metrics
from napari_panoptic.viewer.panels.seen_part import Material


@dataclass(frozen=True, eq=False)
class Grouped:
    """What is shown: the groups of a region and team."""

    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation
    groups: tuple[FailureGroup, ...]
    if_all_merged: Metrics


def grouped(known: Material, team: str) -> Grouped:
    """Find the groups; for workers."""
    evaluation = known.complete()[team]
    groups = failure_groups(evaluation)
    merged = counts_if_merged(evaluation, groups) if groups else evaluation.counts
    return Grouped(known.snapshot, team, evaluation, groups, unit_metrics(merged))
