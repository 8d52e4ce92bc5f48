"""One picture of annotation and prediction over the image, to check that they fit together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from napari_panoptic.common.text import visible
from napari_panoptic.display.palette import STATUS_COLOURS
from napari_panoptic.inspection.inspect import Inspection
from napari_panoptic.inspection.looking import SampledSide, probed, sampled_region
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.report.pictures import readable_image
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Status

REFERENCE_COLOUR, PREDICTION_COLOUR = STATUS_COLOURS[Status.FN], STATUS_COLOURS[Status.FP]
FIELD_PX = 320
"""Width and height of the part of a larger region that is shown."""
PICTURE_PX = 720
"""The longer side of the picture."""
MOST_TIMES = 8
"""Small regions are enlarged by no more than this."""
_REFERENCE_WIDTH, _PREDICTION_WIDTH = 2, 3
_BLACK = 24
_LEGEND_PX = 26

Box = tuple[int, int, int, int]


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
    # The annotation is drawn last, and thinner: equal outlines show both colours.
    sides = (
        (seen.predictions.get(team), PREDICTION_COLOUR, _PREDICTION_WIDTH),
        (seen.reference, REFERENCE_COLOUR, _REFERENCE_WIDTH),
    )
    drawn = [
        (labels, colour, width)
        for side, colour, width in sides
        if (labels := _labels(side)) is not None
    ]
    if not drawn:
        return None
    box = _box(drawn[-1][0])
    image = readable_image(region.image, region.image_item)
    try:
        pixels = _tissue(image, box)
    finally:
        if image is not None:
            image.close()
    times = max(1, min(MOST_TIMES, PICTURE_PX // max(pixels.shape[:2])))
    pixels = pixels.repeat(times, axis=0).repeat(times, axis=1)
    for labels, colour, line in drawn:
        window = labels[box[0] : box[2], box[1] : box[3]]
        large = np.ascontiguousarray(window.repeat(times, axis=0).repeat(times, axis=1))
        pixels[outline_pixels(large, line) > 0] = colour
    return InspectionPicture(pixels, name, team)


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
