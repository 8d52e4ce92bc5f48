"""What the cells of several teams show. Pure: evaluations in, arrays and tables of colours out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels import drawing as drawing_kernels
from napari_panoptic.nuclei.display import marks, styles
from napari_panoptic.nuclei.display import object_layers as drawing
from napari_panoptic.nuclei.display.styles import ColourBy, Look
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.values.cohort import Rgb
from napari_panoptic.nuclei.values.labels import LabelPair
from napari_panoptic.nuclei.values.vocabulary import Side

FILLED_WIDTH = 2
"""Outline width of the reference where predictions are filled."""


@dataclass(frozen=True, eq=False)
class CellPictures:
    """What the cells show, as far as it takes time to compute.

    Parameters
    ----------
    objects
        Team -> uint16 (y, x): one picture of reference and predictions, since
        every layer costs a tenth of a second. Values 1..n are reference
        objects, then come the predictions, and then the hatching of ambiguous
        areas.
    widths
        Outline widths of reference and predictions in px; where both are 0,
        predictions are filled.
    """

    objects: Mapping[str, NDArray[np.uint16]]
    widths: tuple[int, int]


def cell_pictures(
    evaluations: Mapping[str, Evaluation], widths: tuple[int, int]
) -> CellPictures | None:
    """Draw the objects of all teams; for workers. None without teams."""
    if not evaluations:
        return None
    pair = next(iter(evaluations.values())).pair
    reference = marks.outlines(pair.reference.index, widths[0] or FILLED_WIDTH, len(pair.reference))
    return CellPictures(
        {team: _cell(e.pair, reference, widths[1]) for team, e in evaluations.items()}, widths
    )


def _cell(pair: LabelPair, reference: NDArray[np.uint16], width_px: int) -> NDArray[np.uint16]:
    drawn: NDArray[np.uint16] = drawing_kernels.draw_cell(
        reference,
        np.ascontiguousarray(pair.prediction.index, np.int32),
        _NO_AREA if pair.ambiguous is None else pair.ambiguous,
        pair.ambiguous is not None,
        width_px,
        len(pair.reference),
        len(pair.prediction),
    )
    return drawn


_NO_AREA = np.zeros((1, 1), np.bool_)


def grid_shape(cells: int, region: tuple[int, int], canvas: tuple[float, float]) -> tuple[int, int]:
    """Choose rows and columns so that the region is shown as large as can be.

    Parameters
    ----------
    cells
        How many there are.
    region, canvas
        Height and width of the region in px and of the canvas.
    """
    shapes = [(rows, -(-cells // rows)) for rows in range(1, cells + 1)]

    def zoom(shape: tuple[int, int]) -> tuple[float, int]:
        rows, columns = shape
        fit = min(canvas[0] / rows / region[0], canvas[1] / columns / region[1])
        return fit, -rows * columns

    return max(shapes, key=zoom)


def team_lut(evaluation: Evaluation, look: Look, colours: Sequence[Rgb]) -> NDArray[np.float32]:
    """Colour a cell's picture by a team's outcomes, or by class.

    Returns
    -------
    float32 (65535, 4)
    """
    lut = np.zeros((styles.LUT_LENGTH, 4), np.float32)
    first = 1
    for side in (Side.REFERENCE, Side.PREDICTION):
        pair = evaluation.pair
        labels = pair.reference if side is Side.REFERENCE else pair.prediction
        if look.colour_by is ColourBy.CLASS:
            own = styles.class_lut(labels.class_index, colours)
        else:
            own = styles.status_lut(evaluation.outcomes.side(side).status)
        last = min(first + len(labels), styles.LUT_LENGTH)
        lut[first:last] = own[1 : 1 + last - first]
        first = last
    if first < styles.LUT_LENGTH:
        lut[first] = drawing.HATCH_COLOUR
    return lut
