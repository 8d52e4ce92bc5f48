"""The teams of a region compared, and drawn for a view of them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from napari_panoptic.nuclei.display.consensus_picture import (
    ConsensusPicture,
    consensus_picture,
)
from napari_panoptic.nuclei.display.team_pictures import CellPictures, cell_pictures
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.explain.consensus import Consensus, consensus
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot
from napari_panoptic.viewer.panels.seen_part import Material
from napari_panoptic.viewer.state.modes import ViewMode


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is shown: the teams of a region, compared and, where asked for, drawn."""

    snapshot: RegionSnapshot
    evaluations: Mapping[str, Evaluation]
    consensus: Consensus
    cells: CellPictures | None
    picture: ConsensusPicture | None


def compared(known: Material, mode: ViewMode, widths: tuple[int, int]) -> Comparison:
    """Compare the teams and draw what a view needs; for workers."""
    evaluations = known.complete()
    picture = consensus_picture(evaluations, widths[1]) if mode is ViewMode.CONSENSUS else None
    return Comparison(
        snapshot=known.snapshot,
        evaluations=evaluations,
        consensus=consensus(evaluations) if picture is None else picture.consensus,
        cells=cell_pictures(evaluations, widths) if mode is ViewMode.GRID else None,
        picture=picture,
    )
