"""One picture of annotation and prediction over the image, to check that they fit together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from napari_panoptic.common.text import visible
from napari_panoptic.display.outlines import Lined, draw_outlines, margin_px, shorter_sides
from napari_panoptic.display.palette import STATUS_COLOURS
from napari_panoptic.display.styles import PREDICTION_LINE_PX, REFERENCE_LINE_PX
from napari_panoptic.inspection.inspect import Inspection
from napari_panoptic.inspection.looking import SampledSide, probed, sampled_region
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.report.pictures import outlined, readable_image
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Status
from napari_panoptic.values.windowed_labels import Box, window

REFERENCE_COLOUR, PREDICTION_COLOUR = STATUS_COLOURS[Status.FN], STATUS_COLOURS[Status.FP]
FIELD_PX = 320
"""Width and height of the part of a larger region that is shown."""
PICTURE_PX = 720
"""The longer side of the picture."""
MOST_TIMES = 8
"""Small regions are enlarged by no more than this."""
_BLACK = 24
_LEGEND_PX = 26


@dataclass(frozen=True, eq=False)
class InspectionPicture:
    """Outlines of both sides over the image."""

    #: The picture, uint8 (y, x, 3).
    pixels: NDArray[np.uint8]
    #: The region and the team of the outlines.
    region: str
    team: str


def inspection_picture(inspection: Inspection) -> InspectionPicture | None:
    """Draw the annotation and one team's prediction over a part of the image.

    Returns
    -------
    InspectionPicture or None
        None if no region has both sides.
    """
    if inspection.shown is None:
        return None
    name, team = inspection.shown
    region = inspection.cohort.region(name)
    info = probed([region]).get(name)
    seen = sampled_region(inspection.cohort, region, info, [team])
    sides = (
        (seen.reference, REFERENCE_COLOUR, REFERENCE_LINE_PX),
        (seen.predictions.get(team), PREDICTION_COLOUR, PREDICTION_LINE_PX),
    )
    drawn = [
        (labels, colour, line)
        for side, colour, line in sides
        if (labels := _labels(side)) is not None
    ]
    if not drawn:
        return None
    box = _box(drawn[0][0])
    image = readable_image(region.image, region.image_item)
    try:
        pixels = _tissue(image, box)
    finally:
        if image is not None:
            image.close()
    height, width, _ = pixels.shape
    times = max(1, min(MOST_TIMES, PICTURE_PX // max(height, width)))
    margin = margin_px(times)
    wide = box[0] - margin, box[1] - margin, box[2] + margin, box[3] + margin
    layers = [_lined(window(labels, wide), colour, line) for labels, colour, line in drawn]
    outlines = draw_outlines(layers, (times * height, times * width), margin_px=margin)
    picture = outlined(pixels, outlines, is_smooth=False)
    return InspectionPicture(np.asarray(picture), name, team)


def save_picture(picture: InspectionPicture, path: Path) -> None:
    """Write a picture as PNG, with a line that explains its colours."""
    height, width = picture.pixels.shape[:2]
    page = Image.new("RGB", (width, height + _LEGEND_PX), (_BLACK, _BLACK, _BLACK))
    page.paste(Image.fromarray(picture.pixels), (0, 0))
    draw = ImageDraw.Draw(page)
    at = 8
    team = visible(picture.team, longest=40)
    colours: tuple[tuple[str, Rgb], ...] = (
        ("annotation", REFERENCE_COLOUR),
        (team, PREDICTION_COLOUR),
        (visible(picture.region, longest=40), (220, 220, 220)),
    )
    for text, colour in colours:
        # The font of Pillow has no other letters.
        shown = text.encode("latin-1", "replace").decode("latin-1")
        draw.text((at, height + 7), shown, fill=colour)
        at += int(draw.textlength(shown)) + 18
    with replaced_when_complete(path) as file:
        page.save(file, "PNG")


def _labels(side: SampledSide | None) -> NDArray[np.int32] | None:
    return None if side is None or side.masks is None else side.masks.labels.index


def _lined(labels: NDArray[np.int32], colour: Rgb, width: float) -> Lined:
    """Return how the objects of a window are outlined."""
    from scipy import ndimage

    boxes = np.zeros((labels.max(initial=0), 4), np.int64)
    for box, found in zip(boxes, ndimage.find_objects(labels), strict=True):
        if found is not None:
            box[:] = [each.start for each in found] + [each.stop for each in found]
    colours = np.full((len(boxes) + 1, 4), (*colour, 255), np.uint8)
    return Lined(labels, shorter_sides(boxes), colours, width)


def _box(labels: NDArray[np.int32]) -> Box:
    """Return the part to show: around the middle object of the annotation."""
    height, width = labels.shape
    ys, xs = np.nonzero(labels)
    edge_y, edge_x = min(FIELD_PX, height), min(FIELD_PX, width)
    if not len(ys):
        return 0, 0, edge_y, edge_x
    middle = np.argmin(np.abs(ys - np.median(ys)) + np.abs(xs - np.median(xs)))
    y = int(np.clip(ys[middle] - edge_y // 2, 0, height - edge_y))
    x = int(np.clip(xs[middle] - edge_x // 2, 0, width - edge_x))
    return y, x, y + edge_y, x + edge_x


def _tissue(image: SlideImage | None, box: Box) -> NDArray[np.uint8]:
    y0, x0, y1, x1 = box
    pixels = np.full((y1 - y0, x1 - x0, 3), _BLACK, np.uint8)
    if image is not None:
        part = np.asarray(image.levels[0][y0:y1, x0:x1])
        pixels[: part.shape[0], : part.shape[1]] = part  # smaller than masks, if these do not fit
    return pixels
