"""All teams in one picture: how many found each nucleus, and where several have an FP.

Pure: evaluations in, arrays and tables of colours out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels import drawing as drawing_kernels
from napari_panoptic.nuclei.display import marks, styles
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.explain.consensus import Consensus, FpPlace, consensus
from napari_panoptic.nuclei.values.cohort import Rgb
from napari_panoptic.nuclei.values.vocabulary import Status

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
_WIDEST_HATCH_PX = 9


class Count(StrEnum):
    """What is counted over the teams."""

    FOUND = "found"
    FN = "fn"
    MISCLASSIFIED = "misclassified"


@dataclass(frozen=True, eq=False)
class ConsensusPicture:
    """What the consensus view shows.

    Parameters
    ----------
    consensus
        The figures.
    evaluations
        Team -> its evaluation, of which they are.
    objects
        uint16 (y, x): outlines of the reference objects, the heavier the more
        teams failed on one; or whole objects.
    places
        uint16 (y, x): hatched places that several teams invent; label ``k`` is
        the place ``k - 1``.
    width_px
        Width of the lightest outline; 0 for filled objects.
    """

    consensus: Consensus
    evaluations: Mapping[str, Evaluation]
    objects: NDArray[np.uint16]
    places: NDArray[np.uint16]
    width_px: int


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


def consensus_picture(evaluations: Mapping[str, Evaluation], width_px: int) -> ConsensusPicture:
    """Compare the teams and draw the result; for workers.

    Parameters
    ----------
    evaluations
        Team -> its evaluation.
    width_px
        Width of the lightest outline; 0 to fill the objects.
    """
    result = consensus(evaluations)
    reference = next(iter(evaluations.values())).pair.reference
    extra = np.rint(2 * (1 - result.found / len(result.teams))).astype(np.int64)
    objects = marks.outlines(
        reference.index, width_px + np.where(_all_ignored(result), 0, extra), len(reference)
    )
    if width_px == 0:
        objects = reference.index.astype(np.uint16)
    places = _places_drawn(evaluations, result.shared_fp_places(SEVERAL), reference.shape)
    return ConsensusPicture(result, evaluations, objects, places, width_px)


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
    spacing = np.array([max(_WIDEST_HATCH_PX - len(place.rows), 3) for place in places], np.int64)
    for team, evaluation in evaluations.items():
        members = [(k, row) for k, place in enumerate(places) for row in place.rows.get(team, ())]
        number, rows = np.array(members, np.int64).reshape(-1, 2).T
        drawing_kernels.lay_down(
            whole,
            lines,
            np.ascontiguousarray(evaluation.pair.prediction.index, np.int32),
            rows + 1,
            evaluation.outcomes.prediction.bbox[rows].astype(np.int64),
            number + 1,
            spacing[number],
        )
    boxes = np.array([place.bbox for place in places], np.int64).reshape(-1, 4)
    drawn: NDArray[np.uint16] = drawing_kernels.rims_and_lines(whole, lines, boxes)
    return drawn
