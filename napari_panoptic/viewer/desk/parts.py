"""The panels beside the object table, in the order of their tabs."""

from __future__ import annotations

from napari_panoptic.viewer.audit_part import AuditPart
from napari_panoptic.viewer.desk_part import DeskPart
from napari_panoptic.viewer.groups_part import GroupsPart
from napari_panoptic.viewer.ranking_part import RankingPart
from napari_panoptic.viewer.review_part import ReviewPart
from napari_panoptic.viewer.teams_part import TeamsPart
from napari_panoptic.viewer.widgets.edits_panel import EditsPart
from napari_panoptic.viewer.widgets.gallery import GalleryPart

PARTS: tuple[type[DeskPart], ...] = (
    GalleryPart,
    TeamsPart,
    GroupsPart,
    AuditPart,
    EditsPart,
    ReviewPart,
    RankingPart,
)
