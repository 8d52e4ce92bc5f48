"""Pictures of marks on top of objects, and of rings around the selected one. Pure: no Qt.

Outlines are drawn here rather than by the layer where several views show the
same objects, or if a layer cannot do it: of different width per object,
dashed, or around several objects as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.object_layers import Emphasis, emphasis
from napari_panoptic.kernels import drawing
from napari_panoptic.kernels.drawing import MARK, MARK_EDGE
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import Box, window

MARK_COLOURS: tuple[tuple[float, float, float, float], ...] = (
    (0.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 1.0, 1.0),
    (0.0, 0.0, 0.0, 1.0),
)
"""RGBA of these values, background first."""


def outlines(
    index: NDArray[np.int32], width_px: int | NDArray[np.int64], n_objects: int
) -> NDArray[np.uint16]:
    """Draw the outline of every object, inside of it.

    Parameters
    ----------
    index
        int32 (y, x): label ``k`` for object ``k - 1``, 0 for background.
    width_px
        One width for all, or one per object (n,); an object of width 0 is
        left out.
    n_objects
        How many objects there are.

    Returns
    -------
    uint16 (y, x)
        The label on outlines, 0 elsewhere; labels beyond 65,534 start over.
        The image edge is no outline.
    """
    widths = np.zeros(n_objects + 1, np.int64)
    widths[1:] = width_px
    drawn: NDArray[np.uint16] = drawing.outlines(np.ascontiguousarray(index, np.int32), widths)
    return drawn


def dashed(
    shape: tuple[int, int],
    objects: Sequence[tuple[LabelImage, NDArray[np.int64], NDArray[np.int32]]],
    *,
    width_px: int = 1,
) -> NDArray[np.uint8]:
    """Draw light and dark dashes closely around objects.

    Parameters
    ----------
    shape
        Height and width of the region.
    objects
        Label images, pixel values (n,) of the objects in them, and their
        bounding boxes (n, 4).
    width_px
        Width of the line.

    Returns
    -------
    uint8 (y, x): ``MARK`` and ``MARK_EDGE`` on dashes, 0 elsewhere.
    """
    picture = np.zeros(shape, np.uint8)
    for labels, values, boxes in objects:
        for sheet in labels.sheets:
            index = np.ascontiguousarray(sheet, np.int32)
            drawing.dash(
                picture, index, values.astype(np.int64), boxes.astype(np.int64), width_px + 1
            )
    return picture


def ring_around(
    objects: Sequence[tuple[LabelImage, NDArray[np.int64]]], box: Box, *, ring_px: int
) -> Emphasis:
    """Draw one ring around several objects as if they were one.

    Parameters
    ----------
    objects
        Label images and the pixel values (n,) of the objects in them.
    box
        The box that holds them all: y0, x0, y1, x1, half open.
    ring_px
        Width of the light ring; the dark ones beside it are half as wide.
    """
    from scipy import ndimage

    reach = 3 * ring_px + 1
    around = box[0] - reach, box[1] - reach, box[2] + reach, box[3] + reach
    union = np.zeros((around[2] - around[0], around[3] - around[1]), bool)
    for labels, values in objects:
        for sheet in labels.sheets:
            union |= np.isin(window(sheet, around), values)
    union = ndimage.binary_fill_holes(ndimage.binary_closing(union, iterations=ring_px))
    distance = ndimage.distance_transform_edt(~union)
    half = max(ring_px / 2, 1.0)
    picture = np.zeros(union.shape, np.uint8)
    picture[(distance > 0) & (distance <= ring_px + 2 * half)] = MARK_EDGE
    picture[(distance > half) & (distance <= ring_px + half)] = MARK
    return Emphasis(picture, around[:2])


def box_of(snapshot: RegionSnapshot | None, selection: Selection) -> NDArray[np.int32] | None:
    """Return the bounding box of an object: y0, x0, y1, x1, half open; None if unknown."""
    evaluation = None if snapshot is None else snapshot.result(selection.team)
    own = None if evaluation is None else evaluation.outcomes.side(selection.side)
    return None if own is None or selection.row >= len(own) else own.bbox[selection.row]


def region_rings(
    snapshot: RegionSnapshot, selection: Selection, *, ring_px: int, as_line: bool = False
) -> Emphasis | None:
    """Draw the rings of an object of a region.

    Parameters
    ----------
    snapshot
        The region.
    selection
        The object.
    ring_px, as_line
        As in :func:`napari_panoptic.display.object_layers.emphasis`.

    Returns
    -------
    None where the region does not have the object.
    """
    evaluation = snapshot.evaluations.get(selection.team)
    if evaluation is None or selection.row >= len(evaluation.outcomes.side(selection.side)):
        return None
    return _rings(evaluation, selection.side, selection.row, ring_px, as_line)


def team_rings(
    evaluations: Mapping[str, Evaluation],
    team: str,
    selection: Selection,
    *,
    ring_px: int,
    as_line: bool = False,
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
    ring_px, as_line
        As in :func:`napari_panoptic.display.object_layers.emphasis`.

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
            return _rings(owner, side, row, ring_px, as_line)
        side, row = Side.REFERENCE, reference
    return _rings(evaluation, side, row, ring_px, as_line)


def _rings(evaluation: Evaluation, side: Side, row: int, ring_px: int, as_line: bool) -> Emphasis:
    """Draw the rings of an object and of its partner, if it has one."""
    outcomes, pair = evaluation.outcomes, evaluation.pair
    own, other = outcomes.side(side), outcomes.other(side)
    partner = int(own.partner[row])
    beside = None
    if partner != NO_PARTNER:
        beside = pair.side(side.other), partner, other.bbox[partner]
    return emphasis((pair.side(side), row, own.bbox[row]), beside, ring_px=ring_px, as_line=as_line)
