"""Another view of the same objects, while the layers of one team step aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from napari_panoptic.display.styles import Look
from napari_panoptic.live.session import Selection
from napari_panoptic.values.vocabulary import Side


@dataclass(frozen=True)
class Pointed:
    """An object that lies under a point."""

    #: The team whose layer it is on; None on the reference layer.
    team: str | None
    #: Reference or prediction.
    side: Side
    #: Its 0-based row.
    row: int


class StandIn(Protocol):
    """Another view of the same objects, while the scene's own layers step aside."""

    keeps: frozenset[str]
    """Roles of the scene's layers that stay."""

    def objects_at(
        self, position: Sequence[float], viewbox: tuple[int, int] | None
    ) -> list[Pointed]:
        """List the objects under a world position in a cell of the canvas."""

    def apply_look(self, look: Look) -> None:
        """Draw objects in another way, or as heavy as the zoom asks for."""

    def emphasise(self, selection: Selection | None) -> None:
        """Mark the selected object."""
