"""The panels beside the object table, in the order of their tabs."""

from __future__ import annotations

from napari_panoptic.viewer.desk_part import DeskPart
from napari_panoptic.viewer.review_part import ReviewPart
from napari_panoptic.viewer.widgets.audit_panel import AuditPart
from napari_panoptic.viewer.widgets.edits_panel import EditsPart
from napari_panoptic.viewer.widgets.gallery import GalleryPart
from napari_panoptic.viewer.widgets.groups_panel import GroupsPart
from napari_panoptic.viewer.widgets.teams_panel import TeamsPart

PARTS: tuple[type[DeskPart], ...] = (
    GalleryPart,
    TeamsPart,
    GroupsPart,
    AuditPart,
    EditsPart,
    ReviewPart,
)
