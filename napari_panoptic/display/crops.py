"""Small pictures of single objects at one scale; pure functions on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.outlines import Lined, draw_outlines, margin_px, shorter_sides
from napari_panoptic.display.palette import status_colour_table
from napari_panoptic.display.styles import PREDICTION_LINE_PX, REFERENCE_LINE_PX
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side, of_side
from napari_panoptic.values.windowed_labels import Box, overlap, window

SMALLEST_FIELD_PX, LARGEST_FIELD_PX = 32, 512
"""Bounds of the width of a crop in the image."""
FIELD_STEP_PX = 16
ROOM = 1.8
"""Default width of a crop, in widths of a large object."""
LARGE_SHARE = 90.0
"""Percentile of the widths of all objects that counts as a large one."""
LINE_PX = {Side.REFERENCE: REFERENCE_LINE_PX, Side.PREDICTION: PREDICTION_LINE_PX}
"""Width of the outlines of each side in points."""
EDGE_WIDTH, EDGE_DASH = 3, 6
"""Width and length of the dashes along the edge of a crop that is too small for its object."""
OTHER_TEAM_RGBA = (255, 255, 255, 235)
OTHER_TEAM_WIDTH, OTHER_TEAM_DASH = 2, 4
"""Outlines of other teams, such as another version of the prediction, in points."""
BESIDE_ALPHA = 0.45
"""Opacity of objects unrelated to the one in the centre."""
BEYOND = 128
"""Grey value outside of the image, and of regions without one."""


@dataclass(frozen=True, eq=False)
class OtherTeam:
    """The objects of another team, whose outlines are drawn too."""

    #: The objects.
    labels: LabelImage
    #: int (n, 4): the box of each.
    bbox: NDArray[np.integer]

    @classmethod
    def of(cls, evaluation: Evaluation) -> OtherTeam:
        """Take the predictions of an evaluation."""
        return cls(evaluation.pair.prediction, evaluation.outcomes.prediction.bbox)


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
    #: Other teams whose outlines are drawn too.
    beside: tuple[OtherTeam, ...] = ()

    @classmethod
    def of(
        cls,
        image: SlideImage | None,
        evaluation: Evaluation,
        beside: tuple[OtherTeam, ...] = (),
    ) -> CropSource:
        """Take the objects and outcomes of an evaluation."""
        pair = evaluation.pair
        return cls(image, pair.reference, pair.prediction, evaluation.outcomes, beside)

    def labels(self, side: Side) -> LabelImage:
        """Return the objects of a side."""
        return of_side(side, self.reference, self.prediction)

    @cached_property
    def colours(self) -> dict[Side, NDArray[np.uint8]]:
        """RGBA of every label of a side, uint8 (n + 1, 4); label 0 is transparent."""
        return {side: _label_colours(self.outcomes.side(side)) for side in Side}

    @cached_property
    def shorter(self) -> dict[Side, NDArray[np.int32]]:
        """The shorter side of every object of a side in px, as of `shorter_sides`."""
        return {side: shorter_sides(self.outcomes.side(side).bbox) for side in Side}

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
    margin = margin_px(size_px / field_px, per_point)
    wide = corner[0] - margin, corner[1] - margin
    windows, concerned = windows_around(source, side, row, wide, field_px + 2 * margin)
    layers = [
        Lined(
            windows[which],
            source.shorter[which],
            _fainter(source.colours[which], concerned[which]),
            LINE_PX[which],
            row + 1 if which is side else 0,
        )
        for which in Side
    ]
    box = _square(wide, field_px + 2 * margin)
    layers += [_dashed(other, box) for other in source.beside]
    outlines = draw_outlines(layers, (size_px, size_px), margin_px=margin, per_point=per_point)
    if max(y1 - y0, x1 - x0) > field_px:  # it continues beyond the crop
        inner = windows[side][margin:-margin, margin:-margin]
        is_object = _enlarged(inner, size_px) == row + 1
        outlines[is_object & _dashed_edge(size_px, per_point)] = source.colours[side][row + 1]
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
    return windows, _concerned(source, side, row, windows, corner)


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
    source: CropSource,
    side: Side,
    row: int,
    windows: dict[Side, NDArray[np.int32]],
    corner: tuple[int, int],
) -> dict[Side, NDArray[np.int64]]:
    """Return the labels of the object, of its partner, and of overlapping objects."""
    outcomes = source.outcomes.side(side)
    y0, x0, y1, x1 = outcomes.bbox[row].tolist()
    here = tuple(
        slice(max(low - start, 0), max(high - start, 0))
        for low, high, start in ((y0, y1, corner[0]), (x0, x1, corner[1]))
    )
    own, other = windows[side][here], windows[side.other][here]
    touching = np.unique(other[own == row + 1]).astype(np.int64)
    partner = int(outcomes.partner[row])
    if partner != NO_PARTNER:
        touching = np.append(touching, partner + 1)
    return {side: np.array([row + 1]), side.other: touching}


def _enlarged(square: NDArray[Any], size_px: int) -> NDArray[Any]:
    """Resize a square with nearest-neighbour interpolation."""
    nearest = ((np.arange(size_px) + 0.5) * len(square) / size_px).astype(np.intp)
    return square[np.ix_(nearest, nearest)]


def _dashed(other: OtherTeam, box: Box) -> Lined:
    """Return how the objects of another team are outlined in a window."""
    return Lined(
        window(other.labels.index, box),
        shorter_sides(other.bbox),
        np.full((len(other.labels) + 1, 4), OTHER_TEAM_RGBA, np.uint8),
        OTHER_TEAM_WIDTH,
        dash=OTHER_TEAM_DASH,
    )


def _dashed_edge(size: int, per_point: float) -> NDArray[np.bool_]:
    """Return a mask of dashes along the edge of a crop."""
    width, length = (max(round(each * per_point), 1) for each in (EDGE_WIDTH, EDGE_DASH))
    along = np.arange(size)
    near = np.minimum(along, size - 1 - along) < width
    dash = (along // length) % 2 == 0
    dashes: NDArray[np.bool_] = (near[:, None] & dash) | (near & dash[:, None])
    return dashes


def _fainter(colours: NDArray[np.uint8], concerned: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the colours of labels, those of unrelated objects more transparent."""
    fainter = colours.copy()
    fainter[:, 3] = fainter[:, 3] * BESIDE_ALPHA
    fainter[concerned] = colours[concerned]
    return fainter


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
