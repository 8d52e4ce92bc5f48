"""Draw the crop of an object."""

from __future__ import annotations

from dataclasses import replace

from qtpy.QtCore import Qt
from qtpy.QtGui import QImage, QPainter

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.display.crops import Crop, CropSource, cut
from napari_panoptic.nuclei.values.vocabulary import Side


def crop_picture(
    source: CropSource, side: Side, row: int, *, field_px: int, size_px: int, per_point: float
) -> QImage:
    """Draw an object and its surroundings, with both outlines.

    Parameters
    ----------
    source, side, row, field_px, size_px, per_point
        As in `napari_panoptic.nuclei.display.crops.cut`. Where the image cannot be read, the
        outlines are drawn on grey.
    """
    try:
        crop = cut(source, side, row, field_px=field_px, size_px=size_px, per_point=per_point)
    except PanopticError:  # a damaged place in the slide
        source = replace(source, image=None)
        crop = cut(source, side, row, field_px=field_px, size_px=size_px, per_point=per_point)
    return picture_of(crop, size_px)


def picture_of(crop: Crop, size_px: int) -> QImage:
    """Draw the outlines of a crop over its tissue.

    Parameters
    ----------
    crop
        The crop.
    size_px
        Its width on the screen.
    """
    height, width, _ = crop.tissue.shape
    ground = QImage(crop.tissue.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    picture: QImage = ground.scaled(
        size_px,
        size_px,
        Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    ).convertToFormat(QImage.Format.Format_RGB32)
    lines = crop.outlines.tobytes()
    outlines = QImage(lines, size_px, size_px, 4 * size_px, QImage.Format.Format_RGBA8888)
    painter = QPainter(picture)
    painter.drawImage(0, 0, outlines)
    painter.end()
    return picture
