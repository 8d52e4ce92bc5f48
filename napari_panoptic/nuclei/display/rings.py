"""Rings around the selected object and its partner. Pure: evaluations in, small pictures out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.display.object_layers import Emphasis, emphasis
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.live.session import Selection
from napari_panoptic.nuclei.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.values.labels import LabelImage
from napari_panoptic.nuclei.values.vocabulary import Side


def outcomes_of(snapshot: RegionSnapshot | None, team: str | None) -> Outcomes | None:
    """Return a team's outcomes in a region; None if they are not known."""
    evaluation = None if snapshot is None or team is None else snapshot.result(team)
    return None if evaluation is None else evaluation.outcomes


def box_of(snapshot: RegionSnapshot | None, selection: Selection) -> NDArray[np.int32] | None:
    """Return the bounding box of an object: y0, x0, y1, x1, half open; None if unknown."""
    outcomes = outcomes_of(snapshot, selection.team)
    if outcomes is None or selection.row >= len(outcomes.side(selection.side)):
        return None
    box: NDArray[np.int32] = outcomes.side(selection.side).bbox[selection.row]
    return box


def region_rings(
    snapshot: RegionSnapshot, selection: Selection, *, ring_px: int
) -> Emphasis | None:
    """Draw the rings of an object of a region.

    Parameters
    ----------
    snapshot
        The region.
    selection
        The object.
    ring_px
        Width of the inner ring.

    Returns
    -------
    None where the region does not have the object.
    """
    side, team = selection.side, selection.team
    outcomes, box = outcomes_of(snapshot, team), box_of(snapshot, selection)
    own = _labels(snapshot, team, side)
    index = snapshot.index_of(side, team, selection.row) if box is not None else None
    if outcomes is None or box is None or own is None or index is None:
        return None
    partner = int(outcomes.side(side).partner[selection.row])
    if partner == NO_PARTNER:
        return emphasis(own, index - 1, box=box, ring_px=ring_px)
    across = Side.PREDICTION if side is Side.REFERENCE else Side.REFERENCE
    partner_index = snapshot.index_of(across, team, partner) or 0
    return emphasis(
        own,
        index - 1,
        box=box,
        other=_labels(snapshot, team, across),
        partner_row=partner_index - 1,
        partner_box=outcomes.side(across).bbox[partner],
        ring_px=ring_px,
    )


def team_rings(
    evaluations: Mapping[str, Evaluation], team: str, selection: Selection, *, ring_px: int
) -> Emphasis | None:
    """Draw the rings of an object, and of what a team has in its place.

    Parameters
    ----------
    evaluations
        Team -> its evaluation.
    team
        The team, which need not be that of the selection.
    selection
        The object.
    ring_px
        Width of the inner ring.

    Returns
    -------
    None where no team has the object.
    """
    evaluation, owner = evaluations[team], evaluations.get(selection.team)
    if owner is None or selection.row >= len(owner.outcomes.side(selection.side)):
        return None
    side, row = selection.side, selection.row
    if side is Side.PREDICTION and team != selection.team:
        # Other teams have another object there, or none: the reference object decides.
        reference = int(owner.outcomes.prediction.partner[row])
        if reference == NO_PARTNER:
            box = owner.outcomes.prediction.bbox[row]
            return emphasis(owner.pair.prediction, row, box=box, ring_px=ring_px)
        side, row = Side.REFERENCE, reference
    own, across = evaluation.outcomes.side(side), evaluation.outcomes.other(side)
    pair, partner = evaluation.pair, int(own.partner[row])
    labels, other = pair.reference, pair.prediction
    if side is Side.PREDICTION:
        labels, other = other, labels
    if partner == NO_PARTNER:
        return emphasis(labels, row, box=own.bbox[row], ring_px=ring_px)
    return emphasis(
        labels,
        row,
        box=own.bbox[row],
        other=other,
        partner_row=partner,
        partner_box=across.bbox[partner],
        ring_px=ring_px,
    )


def _labels(snapshot: RegionSnapshot, team: str, side: Side) -> LabelImage | None:
    return snapshot.reference if side is Side.REFERENCE else snapshot.predictions.get(team)
