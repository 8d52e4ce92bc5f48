"""The panels beside the object table, in the order of their tabs."""

from __future__ import annotations

from napari_panoptic.viewer.panels.audit.part import AuditPart
from napari_panoptic.viewer.panels.edits.panel import EditsPart
from napari_panoptic.viewer.panels.failures.part import FailuresPart
from napari_panoptic.viewer.panels.groups.part import GroupsPart
from napari_panoptic.viewer.panels.object_card import ObjectPart
from napari_panoptic.viewer.panels.part import DeskPart
from napari_panoptic.viewer.panels.ranking.part import RankingPart
from napari_panoptic.viewer.panels.review.part import ReviewPart
from napari_panoptic.viewer.panels.teams.part import TeamsPart

PARTS: tuple[type[DeskPart], ...] = (
    ObjectPart,
    FailuresPart,
    TeamsPart,
    GroupsPart,
    AuditPart,
    EditsPart,
    ReviewPart,
    RankingPart,
)
