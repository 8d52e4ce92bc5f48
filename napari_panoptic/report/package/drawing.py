"""Pictures of the items of a package: tissue as JPEG, and outlines as closed lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.crops import (
    CropSource,
    bounded_field_px,
    tissue_at,
    windows_around,
)
from napari_panoptic.display.outlines import line_rings
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.reading import (
    read_picture,
)
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.report.pictures import jpeg
from napari_panoptic.review.judged import Subjects, judged_as_one
from napari_panoptic.review.package.choosing import ItemQuestion
from napari_panoptic.review.package.contents import PackageItem, Target
from napari_panoptic.review.plan.units import TILE_PX
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.reading import HELD_UP_TO_PX, Reading
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Cause, Side, Status
from napari_panoptic.values.windowed_labels import window

LARGEST_PX = 512
"""Largest width of a picture; wider fields are shown in fewer pixels."""
SMALLEST_FIELD_PX = 224
"""Smallest width of a field: enough surroundings to judge a small nucleus by."""
SURROUNDINGS = 3.0
"""Width of the field, in widths of the object."""
ROOM = 1.3
"""The same for objects that are too large for that."""
CLOSE_UP = 2.2
"""Width that is shown first, in widths of the object."""
ITEM_BYTES = 58_000
"""Most bytes of an item's picture and outlines: 300 of them, in base64, stay below 25 MB."""
LONGEST_SIDE_PX = 64
"""Lines around larger objects are nowhere too wide for them."""
_QUALITIES = (92, 88, 84, 80, 72, 60)
_MARGIN_PX = 2
_WAYS = {1: "a", 4: "b", 3: "c", 2: "d", -1: "e", -4: "f", -3: "g", -2: "h"}
"""Letters of the ways x + 3 y: to the right, then clockwise, as `package.js` reads them."""


@dataclass(frozen=True)
class Outlined:
    """The outlines of one side, as closed lines from the picture's corner.

    A line is written as ``x y`` of its first corner in halves of a pixel, the steps to the others,
    and a semicolon. A step is a letter for the way (a to the right, b down to the right, c down,
    and so on, clockwise) and a length unless it is 1: in pixels, or in halves along diagonals.

    Lines of objects whose shorter side is of the same length, in px and at most
    `LONGEST_SIDE_PX`, are kept together: it limits their width.
    """

    #: Shorter side -> lines of the object or objects to judge.
    concerned: Mapping[int, str]
    #: The same for unrelated objects around them.
    beside: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class DrawnItem:
    """An item and its picture."""

    #: The item.
    item: PackageItem
    #: The picture of the tissue, as JPEG.
    jpeg: bytes
    #: Width of the picture, in pixels of the image.
    field_px: int
    #: x, y and width of the part that is shown first, or of the tile to count in.
    close_up: tuple[int, int, int]
    #: Side -> outlines.
    outlines: Mapping[Side, Outlined]
    #: Micrometres per pixel of the image, or None.
    mpp: float | None
    #: Side -> classes of the objects to judge; empty if the side has none here.
    classes: Mapping[Side, tuple[str, ...]]
    #: The outcome; None, no cause and NaN for background tiles.
    status: Status | None = None
    cause: Cause = Cause.NONE
    iou: float = float("nan")


def drawn(
    cohort: Cohort, questions: Sequence[ItemQuestion], reading: Reading
) -> Iterator[DrawnItem]:
    """Look up and draw the items of a package.

    Parameters
    ----------
    cohort, reading
        The cohort, and how its objects are read.
    questions
        What is asked.

    Yields
    ------
    DrawnItem
        Region by region, in the order of the cohort.

    Raises
    ------
    PanopticError
        If an object is not there, or its region cannot be read: a sample without some of its
        items would be another sample.
    """
    for region in cohort.regions:
        own = [question for question in questions if question.region == region.name]
        if not own:
            continue
        held = HeldRegion(cohort, region, reading.settings, held_up_to_px=HELD_UP_TO_PX)
        image, _ = read_picture(region)
        try:
            for team in dict.fromkeys(question.team for question in own):
                of_team = [question for question in own if question.team == team]
                evaluation = _evaluation(held, region.name, team, reading)
                crops = CropSource.of(image, evaluation)
                subjects = Subjects(evaluation, region=region.name, team=team)
                for question in of_team:
                    if question.object_id is None:
                        yield _tile(question, crops)
                    else:
                        yield _object(question, subjects, crops)
        finally:
            if image is not None:
                image.close()


def _evaluation(held: HeldRegion, region: str, team: str, reading: Reading) -> Evaluation:
    evaluation = held.evaluate(team, reading.settings, reading.source).evaluation
    if evaluation is None:
        raise PanopticError(
            f"team {team} cannot be evaluated here, but the package needs it; "
            f"'napari-panoptic evaluate' reports the reason",
            region=region,
        )
    return evaluation


def _object(question: ItemQuestion, subjects: Subjects, crops: CropSource) -> DrawnItem:
    outcomes = crops.outcomes
    side = question.side or Side.REFERENCE
    row = outcomes.side(side).row_of(question.object_id or 0)
    if row is None:
        raise PanopticError(
            f"the {side} of team {question.team} has no such object, but the plan asks for it; "
            f"write the plan again, for this cohort as it is now",
            region=question.region,
            object_id=question.object_id,
        )
    own = outcomes.side(side)
    y0, x0, y1, x1 = (int(value) for value in own.bbox[row])
    extent = max(y1 - y0, x1 - x0)
    field = max(bounded_field_px(SURROUNDINGS * extent), SMALLEST_FIELD_PX, round(ROOM * extent))
    corner = (y0 + y1 - field) // 2, (x0 + x1 - field) // 2
    wide = corner[0] - _MARGIN_PX, corner[1] - _MARGIN_PX
    windows, concerned = windows_around(crops, side, row, wide, field + 2 * _MARGIN_PX)
    concerned = {which: labels[labels > 0] for which, labels in concerned.items()}
    outlines = {
        which: _outlined(windows[which], concerned[which], crops.shorter[which]) for which in Side
    }
    close_up = min(max(round(CLOSE_UP * extent), SMALLEST_FIELD_PX // 3), field)
    subject = subjects.of(*judged_as_one(subjects.evaluation, side, row))
    target = Target(subject.side, subject.object_id, subject.fingerprint)
    return DrawnItem(
        item=PackageItem(question.item, question.team, question.region, target),
        jpeg=_tissue(crops.image, corner, field, _length(outlines)),
        field_px=field,
        close_up=((field - close_up) // 2, (field - close_up) // 2, close_up),
        outlines=outlines,
        mpp=outcomes.mpp,
        classes={which: _classes(crops.labels(which), concerned[which]) for which in Side},
        status=STATUSES[own.status[row]],
        cause=CAUSES[own.cause[row]],
        iou=float(own.iou[row]),
    )


def _tile(question: ItemQuestion, crops: CropSource) -> DrawnItem:
    y0, x0 = (int(at // TILE_PX) * TILE_PX for at in (question.y_px, question.x_px))
    field = SMALLEST_FIELD_PX
    room = (field - TILE_PX) // 2
    corner = y0 - room, x0 - room
    top, left = corner[0] - _MARGIN_PX, corner[1] - _MARGIN_PX
    width = field + 2 * _MARGIN_PX
    box = top, left, top + width, left + width
    outlines = {
        which: _outlined(window(crops.labels(which).index, box), np.zeros(0), crops.shorter[which])
        for which in Side
    }
    return DrawnItem(
        item=PackageItem(question.item, question.team, question.region, None),
        jpeg=_tissue(crops.image, corner, field, _length(outlines)),
        field_px=field,
        close_up=(room, room, TILE_PX),
        outlines=outlines,
        mpp=crops.outcomes.mpp,
        classes={},
    )


def _classes(labels: LabelImage, concerned: NDArray[np.int64]) -> tuple[str, ...]:
    numbers = labels.class_index[concerned - 1].tolist()
    return tuple(dict.fromkeys(labels.class_names[number - 1] for number in sorted(numbers)))


def _outlined(
    labels: NDArray[np.int32], concerned: NDArray[np.generic], shorter: NDArray[np.int32]
) -> Outlined:
    """Trace the objects of a window that has a margin around the picture."""
    rings = line_rings(labels)
    sides = np.minimum(shorter[rings.label], LONGEST_SIDE_PX).tolist()
    halves = np.split(rings.halves_xy - 2 * _MARGIN_PX, rings.start[1:-1])
    paths: dict[bool, dict[int, str]] = {True: {}, False: {}}
    for ring, side, own in zip(
        halves, sides, np.isin(rings.label, concerned).tolist(), strict=False
    ):
        paths[own][side] = paths[own].get(side, "") + _path(ring)
    return Outlined(paths[True], paths[False])


def _path(halves: NDArray[np.int32]) -> str:
    """Write a ring of corners in halves of a pixel; `package.js` makes a path of SVG of it.

    SVG's own notation takes three times as many bytes.
    """
    x, y = halves[0].tolist()
    steps = np.diff(halves, axis=0)
    lengths = abs(steps).max(axis=1)
    ways = (np.sign(steps) @ [1, 3]).tolist()
    # Along an axis, lengths are whole pixels.
    lengths = np.where((steps == 0).any(axis=1), lengths // 2, lengths)
    written = [
        f"{_WAYS[way]}{length if length > 1 else ''}"
        for way, length in zip(ways, lengths.tolist(), strict=True)
    ]
    return f"{x} {y}{''.join(written)};"


def _length(outlines: Mapping[Side, Outlined]) -> int:
    paths = [path for each in outlines.values() for path in each.concerned.values()]
    paths += [path for each in outlines.values() for path in each.beside.values()]
    return sum(map(len, paths))


def _tissue(
    image: SlideImage | None, corner: tuple[int, int], field_px: int, path_bytes: int
) -> bytes:
    """Encode the tissue as well as the item's share of the page allows."""
    width = min(field_px, LARGEST_PX)
    try:
        pixels = tissue_at(image, corner, field_px, width)
    except PanopticError:  # that part of the image is damaged
        pixels = tissue_at(None, corner, field_px, width)
    picture = Image.fromarray(pixels)
    if image is not None and picture.width != width:
        picture = picture.resize((width, width), Image.Resampling.LANCZOS)
    most = ITEM_BYTES - path_bytes * 3 // 4  # paths are not written in base64
    while True:
        for quality in _QUALITIES:
            content = jpeg(picture, quality=quality)
            if len(content) <= most:
                return content
        if picture.width <= SMALLEST_FIELD_PX // 2:
            return content
        half = picture.width // 2
        picture = picture.resize((half, half), Image.Resampling.LANCZOS)
