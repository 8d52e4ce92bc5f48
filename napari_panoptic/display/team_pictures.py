"""Pictures of several teams, in a cell each or all in one. Pure: evaluations in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import marks, styles
from napari_panoptic.display import object_layers as drawing
from napari_panoptic.display.styles import ColourBy, Look
from napari_panoptic.explain.consensus import Consensus, FpPlace, consensus
from napari_panoptic.kernels.drawing import draw_cell, outline_pixels
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import Side, Status

FILLED_WIDTH = 2
"""Outline width of the reference where predictions are filled."""
SEVERAL = 2
"""Number of teams from which a place with FPs is worth a look."""

_ANCHORS: tuple[Rgb, ...] = (
    (255, 255, 120),
    (120, 235, 40),
    (0, 190, 130),
    (0, 135, 215),
    (0, 60, 215),
    (0, 0, 20),
)
"""From an object that no team found to one that all did: ever darker, so that the
order can be seen by every eye, and without the pinks and purples of the tissue."""
IGNORED_COLOUR = styles.STATUS_COLOURS[Status.IGNORED]
FP_COLOUR = styles.STATUS_COLOURS[Status.FP]
AREA = styles.LUT_LENGTH - 1
"""The value of ambiguous areas that graphics cards hatch."""
MOST_MORE_PX = 2.0
"""Additional width of the outline of an object that no team found."""
_WIDEST_HATCH_PX = 9
_NO_AREA = np.zeros((1, 1), np.bool_)


@dataclass(frozen=True, eq=False)
class CellPictures:
    """What the cells show, as far as it takes time to compute."""

    #: Team -> uint16 (y, x): one picture of reference and predictions, since every layer costs a
    #: tenth of a second. Values 1..n are reference objects, then come the predictions, and then the
    #: hatching of ambiguous areas.
    objects: Mapping[str, NDArray[np.uint16]]
    #: Outline widths of reference and predictions in px; where both are 0, predictions are filled.
    #: None where outlines are lines: ``objects`` are whole predictions then.
    widths: tuple[int, int] | None
    #: uint16 (y, x): whole reference objects, and `AREA` for ambiguous areas beside them. None
    #: unless outlines are lines.
    reference: NDArray[np.uint16] | None = None


def cell_pictures(
    evaluations: Mapping[str, Evaluation], widths: tuple[int, int] | None
) -> CellPictures | None:
    """Draw the objects of all teams; for workers. None without teams."""
    if not evaluations:
        return None
    pair = next(iter(evaluations.values())).pair
    if widths is None:
        whole = {team: _whole(e.pair) for team, e in evaluations.items()}
        return CellPictures(whole, None, _whole_reference(pair))
    reference = marks.outlines(pair.reference.index, widths[0] or FILLED_WIDTH, len(pair.reference))
    return CellPictures(
        {team: _cell(e.pair, reference, widths[1]) for team, e in evaluations.items()}, widths
    )


def _cell(pair: LabelPair, reference: NDArray[np.uint16], width_px: int) -> NDArray[np.uint16]:
    drawn: NDArray[np.uint16] = draw_cell(
        reference,
        np.ascontiguousarray(pair.prediction.index, np.int32),
        _NO_AREA if pair.ambiguous is None else pair.ambiguous,
        pair.ambiguous is not None,
        width_px,
        len(pair.reference),
        len(pair.prediction),
    )
    return drawn


def _whole(pair: LabelPair) -> NDArray[np.uint16]:
    """Return the predictions in the values of a cell."""
    nothing = np.zeros(pair.reference.shape, np.uint16)
    prediction = np.ascontiguousarray(pair.prediction.index, np.int32)
    numbers = len(pair.reference), len(pair.prediction)
    drawn: NDArray[np.uint16] = draw_cell(nothing, prediction, _NO_AREA, False, 0, *numbers)
    return drawn


def _whole_reference(pair: LabelPair) -> NDArray[np.uint16]:
    whole = drawing.label_data(pair.reference)
    if pair.ambiguous is not None:
        whole[pair.ambiguous & (whole == 0)] = AREA
    return whole


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
    for side in Side:
        labels = evaluation.pair.side(side)
        if look.colour_by is ColourBy.CLASS:
            own = styles.class_lut(labels.class_index, colours)
        else:
            own = styles.status_lut(evaluation.outcomes.side(side).status)
        last = min(first + len(labels), styles.LUT_LENGTH)
        lut[first:last] = own[1 : 1 + last - first]
        first = last
    if first < styles.LUT_LENGTH:
        lut[first] = lut[AREA] = drawing.HATCH_COLOUR
    return lut


class Count(StrEnum):
    """What is counted over the teams."""

    FOUND = "found"
    FN = "fn"
    MISCLASSIFIED = "misclassified"


@dataclass(frozen=True, eq=False)
class ConsensusPicture:
    """What the consensus view shows."""

    #: The figures.
    consensus: Consensus
    #: Team -> the evaluation from which they were computed.
    evaluations: Mapping[str, Evaluation]
    #: uint16 (y, x): the reference objects.
    objects: NDArray[np.uint16]
    #: float64 (n,): how much wider the outline of each is, the more teams failed on it.
    more_px: NDArray[np.float64]
    #: uint16 (y, x): hatched places where several teams have an FP; label ``k`` is the place
    #: ``k - 1``.
    places: NDArray[np.uint16]


def level_colours(teams: int) -> list[Rgb]:
    """Return a colour for each number of teams, from none to all: light to dark."""
    at = np.linspace(0, len(_ANCHORS) - 1, teams + 1)
    table = np.array(_ANCHORS, float)
    mixed = np.stack([np.interp(at, np.arange(len(table)), table[:, k]) for k in range(3)], axis=1)
    return [(int(r), int(g), int(b)) for r, g, b in np.rint(mixed)]


def levels(found: Consensus, count: Count) -> NDArray[np.int64]:
    """Return each reference object's place in the colours: 0 is the worst."""
    if count is Count.FOUND:
        return found.found
    return len(found.teams) - (found.fn if count is Count.FN else found.misclassified)


def consensus_picture(evaluations: Mapping[str, Evaluation]) -> ConsensusPicture:
    """Compare the teams and draw the result; for workers."""
    result = consensus(evaluations)
    reference = next(iter(evaluations.values())).pair.reference
    failed = 1 - result.found / len(result.teams)
    more_px = np.where(_all_ignored(result), 0.0, MOST_MORE_PX * failed)
    objects = drawing.label_data(reference)
    places = _places_drawn(evaluations, result.shared_fp_places(SEVERAL), reference.shape)
    return ConsensusPicture(result, evaluations, objects, more_px, places)


def object_colours(found: Consensus, count: Count) -> NDArray[np.float32]:
    """Return the colour of each label of ``objects``, float32 (65535, 4)."""
    colours = [*level_colours(len(found.teams)), IGNORED_COLOUR]
    level = np.where(_all_ignored(found), len(colours) - 1, levels(found, count))
    # class_lut counts from 1.
    return styles.class_lut((level + 1).astype(np.int16), colours)


def place_colours(found: Consensus) -> NDArray[np.float32]:
    """Return the colour of each label of ``places``, float32 (65535, 4)."""
    n_places = len(found.shared_fp_places(SEVERAL))
    return styles.class_lut(np.ones(n_places, np.int16), [FP_COLOUR])


def _all_ignored(result: Consensus) -> NDArray[np.bool_]:
    ignored: NDArray[np.bool_] = result.ignored == len(result.teams)
    return ignored


def _places_drawn(
    evaluations: Mapping[str, Evaluation], places: Sequence[FpPlace], shape: tuple[int, int]
) -> NDArray[np.uint16]:
    """Hatch the places, the closer the more teams invent something there."""
    whole, lines = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
    spacing = np.array([1, *(max(_WIDEST_HATCH_PX - len(place.rows), 3) for place in places)])
    for team, evaluation in evaluations.items():
        prediction = evaluation.pair.prediction
        number_of = np.zeros(len(prediction) + 1, np.int32)
        for number, place in enumerate(places, 1):
            if team in place.rows:
                number_of[place.rows[team] + 1] = number
        y, x = np.nonzero(number_of[prediction.index])
        own = number_of[prediction.index[y, x]]
        whole[y, x] = np.maximum(whole[y, x], own)
        lines[y, x] |= (y + x) % spacing[own] == 0
    return np.where(lines, whole, outline_pixels(whole, 2)).astype(np.uint16)
