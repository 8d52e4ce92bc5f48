"""Which predictions of a cohort are read, and how objects are matched."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from napari_panoptic.values.cohort import Source
from napari_panoptic.values.settings import EvaluationSettings

HELD_UP_TO_PX = 2**28
"""Regions of more pixels are evaluated in windows: their label images and what is computed from
them take about 16 bytes a pixel, 4 GiB here."""


@dataclass(frozen=True)
class Reading:
    """Which predictions of a cohort are read, and how objects are matched."""

    #: How objects are recovered, matched and scored.
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    #: The format of the predictions; None for the usual one.
    source: Source | None = None
    #: Names of the teams.
    teams: tuple[str, ...] = ()
    #: Regions of more pixels are left out, or read in windows.
    held_up_to_px: int = HELD_UP_TO_PX

    @property
    def without_distances(self) -> Self:
        """The same without distances between outlines, which take long to measure."""
        return replace(self, settings=self.settings.replaced(distances=False))
