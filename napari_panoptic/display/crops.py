"""Small pictures of single objects at one scale; pure functions on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.object_layers import checks, overlap, window
from napari_panoptic.display.palette import status_colour_table
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import Box

SMALLEST_FIELD_PX, LARGEST_FIELD_PX = 32, 512
"""Bounds of the width of a crop in the image."""
FIELD_STEP_PX = 16
ROOM = 1.8
"""Default width of a crop, in widths of a large object."""
LARGE_SHARE = 90.0
"""Percentile of the widths of all objects that counts as a large one."""
REFERENCE_RIM_PX, PREDICTION_RIM_PX = 3, 2
"""Outline widths on the screen: the reference is heavier, as on the image."""
DASH_PX = 6
"""Length of the dashes along the edge of a crop that is too small for its object."""
OTHER_TEAM_RGBA = (255, 255, 255, 235)
OTHER_TEAM_RIM_PX, OTHER_TEAM_DASH_PX = 2, 4
"""Outlines of other teams, such as another version of the prediction, in points."""
BESIDE_ALPHA = 0.45
"""Opacity of objects unrelated to the one in the centre."""
BEYOND = 128
"""Grey value outside of the image, and of regions without one."""


@dataclass(frozen=True, eq=False)
class CropSource:
    """The source of crops: image, labels and outcomes."""

    #: The pixels of the region, or None.
    image: SlideImage | None
    #: The objects of the two sides.
    reference: LabelImage
    prediction: LabelImage
    #: Their outcomes.
    outcomes: Outcomes
    #: The objects of other teams, whose outlines are drawn too.
    beside: tuple[LabelImage, ...] = ()

    @classmethod
    def of(
        cls,
        image: SlideImage | None,
        evaluation: Evaluation,
        beside: tuple[LabelImage, ...] = (),
    ) -> CropSource:
        """Take the objects and outcomes of an evaluation."""
        pair = evaluation.pair
        return cls(image, pair.reference, pair.prediction, evaluation.outcomes, beside)

    def labels(self, side: Side) -> LabelImage:
        """Return the objects of a side."""
        return self.reference if side is Side.REFERENCE else self.prediction

    @cached_property
    def colours(self) -> dict[Side, NDArray[np.uint8]]:
        """RGBA of every label of a side, uint8 (n + 1, 4); label 0 is transparent."""
        return {side: _label_colours(self.outcomes.side(side)) for side in Side}

    def usual_field_px(self) -> int:
        """Return the width of a crop in which nearly all objects can be seen whole."""
        boxes = np.concatenate([self.outcomes.side(side).bbox for side in Side])
        if not len(boxes):
            return SMALLEST_FIELD_PX
        extents = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
        return bounded_field_px(ROOM * float(np.percentile(extents, LARGE_SHARE)))


def bounded_field_px(wanted: float) -> int:
    """Return the nearest allowed width of crops."""
    steps = FIELD_STEP_PX * round(wanted / FIELD_STEP_PX)
    return int(np.clip(steps, SMALLEST_FIELD_PX, LARGEST_FIELD_PX))


@dataclass(frozen=True, eq=False)
class Crop:
    """A picture of an object and its surroundings."""

    #: uint8 (y, x, 3): the pixels of the image as they are.
    tissue: NDArray[np.uint8]
    #: uint8 (size, size, 4): outlines as RGBA, as fine as the screen.
    outlines: NDArray[np.uint8]


def cut(
    source: CropSource, side: Side, row: int, *, field_px: int, size_px: int, per_point: float = 1.0
) -> Crop:
    """Return the crop of an object, with both outlines in the colours of their status.

    Parameters
    ----------
    source
        The source of the crop.
    side, row
        The object, by its row in the outcomes.
    field_px
        Width of the crop in the image.
    size_px
        Width of the crop on the screen.
    per_point
        Pixels of the screen per point, a factor for the outlines.
    """
    y0, x0, y1, x1 = (int(value) for value in source.outcomes.side(side).bbox[row])
    corner = (y0 + y1 - field_px) // 2, (x0 + x1 - field_px) // 2
    on_top = _on_top(source, side, row)
    field = _square(corner, field_px)
    labels = {
        which: _enlarged(_drawn(source.labels(which), on_top[which], field), size_px)
        for which in Side
    }
    concerned = _concerned(source, side, row, labels)
    outlines = np.zeros((size_px, size_px, 4), np.uint8)
    for which, width in ((Side.REFERENCE, REFERENCE_RIM_PX), (Side.PREDICTION, PREDICTION_RIM_PX)):
        own = labels[which]
        rim = _rim(own, max(round(width * per_point), 1))
        if which is Side.REFERENCE:  # straddles the border: seen beside a prediction's on it
            own, grown = _grown(own)
            rim |= grown
        if which is side:
            rim |= np.isin(own, concerned[which]) & _dashed_edge(size_px, width)
        colours = source.colours[which][own[rim]]
        beside = ~np.isin(own[rim], concerned[which])
        colours[beside, 3] = (colours[beside, 3] * BESIDE_ALPHA).astype(np.uint8)
        outlines[rim] = colours
    for other in source.beside:
        dash = max(round(OTHER_TEAM_DASH_PX * per_point), 1)
        width = max(round(OTHER_TEAM_RIM_PX * per_point), 1)
        beside_it = _enlarged(window(other.index, field), size_px)
        rim = _rim(beside_it, width) & checks((size_px, size_px), dash)
        outlines[rim] = OTHER_TEAM_RGBA
    return Crop(tissue_at(source.image, corner, field_px, size_px), outlines)


def windows_around(
    source: CropSource, side: Side, row: int, corner: tuple[int, int], field_px: int
) -> tuple[dict[Side, NDArray[np.int32]], dict[Side, NDArray[np.int64]]]:
    """Return the labels around an object, as numbers instead of a picture.

    Parameters
    ----------
    source
        The source of the crop.
    side, row
        The object, by its row in the outcomes.
    corner, field_px
        y, x of the first pixel, and the width.

    Returns
    -------
    windows
        Side -> int32 (field_px, field_px); zero beyond the image. Of overlapping objects, the
        object and its partner are uppermost.
    concerned
        Side -> the labels of the object, of its partner, and of objects that they overlap.
    """
    uppermost = _on_top(source, side, row)
    field = _square(corner, field_px)
    windows = {which: _drawn(source.labels(which), uppermost[which], field) for which in Side}
    return windows, _concerned(source, side, row, windows)


def _label_colours(own: SideOutcomes) -> NDArray[np.uint8]:
    """Colour each label by the status of its object."""
    colours = (255 * status_colour_table()).astype(np.uint8)
    return np.concatenate([np.zeros((1, 4), np.uint8), colours[own.status]])


def _on_top(source: CropSource, side: Side, row: int) -> dict[Side, int]:
    """Return the labels of the object and of its partner; 0 for none."""
    partner = int(source.outcomes.side(side).partner[row])  # -1 for none
    return {side: row + 1, side.other: partner + 1}


def _square(corner: tuple[int, int], width: int) -> Box:
    return corner[0], corner[1], corner[0] + width, corner[1] + width


def _drawn(labels: LabelImage, label: int, box: Box) -> NDArray[np.int32]:
    """Return a window; among overlapping objects, the one of a label is on top."""
    drawn: NDArray[np.int32] = window(labels.index, box)
    for plane in labels.planes:
        drawn[window(plane, box) == label] = label
    return drawn


def _concerned(
    source: CropSource, side: Side, row: int, labels: dict[Side, NDArray[np.int32]]
) -> dict[Side, NDArray[np.int64]]:
    """Return the labels of the object, of its partner, and of overlapping objects."""
    touching = np.unique(labels[side.other][labels[side] == row + 1]).astype(np.int64)
    partner = int(source.outcomes.side(side).partner[row])
    if partner != NO_PARTNER:
        touching = np.append(touching, partner + 1)
    return {side: np.array([row + 1]), side.other: touching}


def _enlarged(square: NDArray[Any], size_px: int) -> NDArray[Any]:
    """Resize a square with nearest-neighbour interpolation."""
    nearest = ((np.arange(size_px) + 0.5) * len(square) / size_px).astype(np.intp)
    return square[np.ix_(nearest, nearest)]


def _rim(labels: NDArray[np.int32], width: int) -> NDArray[np.bool_]:
    """Return a mask of object pixels near their border; the edge of the crop is no border."""
    padded = np.pad(labels, width, mode="edge")
    height, breadth = labels.shape
    rim = np.zeros(labels.shape, bool)
    for shift in range(1, width + 1):
        for y, x in ((shift, 0), (-shift, 0), (0, shift), (0, -shift)):
            moved = padded[width + y : width + y + height, width + x : width + x + breadth]
            rim |= moved != labels
    return rim & (labels > 0)


def _dashed_edge(size: int, width: int) -> NDArray[np.bool_]:
    """Return a mask of dashes along the edge, for an object that continues beyond the crop."""
    along = np.arange(size)
    near = np.minimum(along, size - 1 - along) < width
    dash = (along // DASH_PX) % 2 == 0
    dashes: NDArray[np.bool_] = (near[:, None] & dash) | (near & dash[:, None])
    return dashes


def _grown(labels: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Dilate objects by a pixel into the background; return labels and the added pixels."""
    padded = np.pad(labels, 1)
    neighbours = (padded[2:, 1:-1], padded[:-2, 1:-1], padded[1:-1, 2:], padded[1:-1, :-2])
    beside = np.maximum.reduce(neighbours)
    grown = (labels == 0) & (beside > 0)
    return np.where(grown, beside, labels), grown


def tissue_at(
    image: SlideImage | None, corner: tuple[int, int], field_px: int, size_px: int
) -> NDArray[np.uint8]:
    """Read the pixels behind a crop, from the smallest level that is fine enough.

    Parameters
    ----------
    image
        The image; grey is returned if None.
    corner
        y, x of the crop's first pixel in the image, which may lie outside it.
    field_px, size_px
        Its width in pixels of the image and of the screen.

    Returns
    -------
    uint8 (width, width, 3)
    """
    if image is None:
        return np.full((1, 1, 3), BEYOND, np.uint8)
    level, factor = image.levels[0], 1.0
    for coarser in image.levels[1:]:
        by = image.shape[0] / coarser.shape[0]
        if field_px / by >= size_px:
            level, factor = coarser, by
    width = max(round(field_px / factor), 1)
    at = round(corner[0] / factor), round(corner[1] / factor)
    inside, place = overlap(level.shape, _square(at, width))
    tissue = np.full((width, width, 3), BEYOND, np.uint8)
    tissue[place] = np.asarray(level[inside])[..., :3]
    return tissue
