"""What the canvas shows, and what the mouse does on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from napari_panoptic.values.vocabulary import Side


class ViewMode(StrEnum):
    """Which teams the canvas shows."""

    ONE = "One team"
    GRID = "Side by side"
    CONSENSUS = "Consensus"


class VersionScope(StrEnum):
    """Where two versions are compared."""

    REGION = "this region"
    COHORT = "whole cohort"


@dataclass(frozen=True)
class VersionChoice:
    """Two teams that are compared as an old and a new version, and where.

    A name that is empty, or of no team of the cohort, stands for a team of the cohort.
    """

    old: str = ""
    new: str = ""
    scope: VersionScope = VersionScope.REGION


class Tool(StrEnum):
    """What the mouse does on the active layer of points, as napari calls it."""

    LOOK = "pan_zoom"  # moves the image; a click selects
    ADD = "add"
    MOVE = "select"  # moves points, and marks those that Delete removes


@dataclass(frozen=True)
class ToolInHand:
    """A tool, and the side whose points it works on."""

    side: Side = Side.PREDICTION
    tool: Tool = Tool.LOOK
