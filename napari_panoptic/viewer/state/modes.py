"""What the canvas shows, and what the mouse does on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from napari_panoptic.nuclei.values.vocabulary import Side


class ViewMode(StrEnum):
    """Which teams the canvas shows."""

    ONE = "One team"
    GRID = "Side by side"
    CONSENSUS = "Consensus"


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
