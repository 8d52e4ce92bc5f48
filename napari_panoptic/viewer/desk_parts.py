"""The panels beside the object table, in the order of their tabs."""

from __future__ import annotations

from napari_panoptic.viewer.desk_part import DeskPart

PARTS: tuple[type[DeskPart], ...] = ()
