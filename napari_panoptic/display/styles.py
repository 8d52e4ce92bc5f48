"""The looks of objects: colours and outline widths. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.glossary import STATUS_MEANINGS as STATUS_MEANINGS

# Defined there, and known here by the name that every panel uses.
from napari_panoptic.display.palette import ALPHA as ALPHA
from napari_panoptic.display.palette import STATUS_COLOURS as STATUS_COLOURS
from napari_panoptic.display.palette import class_colours as class_colours
from napari_panoptic.display.palette import hex_colour as hex_colour
from napari_panoptic.display.palette import rgba_table
from napari_panoptic.display.palette import status_colour_table as status_colour_table
from napari_panoptic.tables import figures
from napari_panoptic.tables.figures import UNDEFINED as UNDEFINED
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import CAUSE_MEANINGS as CAUSE_MEANINGS
from napari_panoptic.values.vocabulary import Cause, Side, Status

count_text, signed_count_text = figures.count, figures.signed_count
short_count_text = figures.short_count
ratio_text, signed_text = figures.ratio, figures.finely_signed
decimal_text, length_text = figures.decimal, figures.length

LUT_LENGTH = (1 << 16) - 1
"""Rows of a colour table: one per uint16 label, so that no label wraps onto another's colour.

One less than there are labels: napari cannot draw wider numbers with a longer
table, and the user may give a layer such data."""

NEUTRAL_COLOUR: Rgb = (255, 255, 255)
"""Colour of objects that were not evaluated."""

FAILURES: tuple[Status, ...] = (Status.FN, Status.FP, Status.MISCLASSIFIED)
"""The statuses that need a look."""

THIN_ON_SCREEN_PX, EXTRA_ON_SCREEN_PX = 2.7, 1.2
"""Outline width of a prediction on the screen, and by how much a reference outline is
heavier: where they lie on each other, both can be read."""
MAX_THIN_PX, MAX_EXTRA_PX = 3, 2
"""The same in image pixels, where the region is seen from far away."""

REFERENCE_LINE_PX, PREDICTION_LINE_PX = 2.5, 1.5
"""Width on the screen of outlines that are drawn as lines, unless the user chose another."""
LEAST_LINE_PX, MOST_LINE_PX = 0.5, 6.0

FILL_OPACITY = 0.6
"""Opacity of filled objects unless the user chose another."""
LEAST_FILL_OPACITY = 0.1
"""Fainter objects would look as if there were none."""
OUTLINE_OPACITY = 1.0


class ColourBy(StrEnum):
    """What the colour of an object tells."""

    STATUS = "status"  # of the object
    CLASS = "class"  # which kind of nucleus it is


class Display(StrEnum):
    """How objects are drawn."""

    OUTLINE = "outlines"  # the tissue stays visible
    FILL = "filled"  # areas at a glance
    HIDDEN = "hidden"  # tissue only

    @property
    def following(self) -> Display:
        """The next way to draw, round and round."""
        members = list(Display)
        return members[(members.index(self) + 1) % len(members)]


@dataclass(frozen=True)
class Look:
    """How the objects of a desk look at the moment."""

    #: What colours tell.
    colour_by: ColourBy = ColourBy.STATUS
    #: Outlines, filled or hidden.
    display: Display = Display.OUTLINE
    #: Opacity of filled objects, from `LEAST_FILL_OPACITY` to 1.
    fill_opacity: float = FILL_OPACITY
    #: Width of the reference's outlines on the screen, from `LEAST_LINE_PX` to `MOST_LINE_PX`.
    reference_line_px: float = REFERENCE_LINE_PX
    #: The same of predictions.
    prediction_line_px: float = PREDICTION_LINE_PX
    #: Whether the uncertain border is drawn.
    with_zone: bool = True

    def __post_init__(self) -> None:
        """Check the opacity and the widths."""
        if not LEAST_FILL_OPACITY <= self.fill_opacity <= 1:
            raise ValueError(
                f"expected an opacity from {LEAST_FILL_OPACITY} to 1, not {self.fill_opacity}"
            )

        for width_px in (self.reference_line_px, self.prediction_line_px):
            if not LEAST_LINE_PX <= width_px <= MOST_LINE_PX:
                raise ValueError(
                    f"expected a width from {LEAST_LINE_PX} to {MOST_LINE_PX} px, not {width_px}"
                )

    def line_px(self, side: Side) -> float:
        """Return the width on the screen of a side's outlines where they are lines."""
        is_reference = side is Side.REFERENCE
        return self.reference_line_px if is_reference else self.prediction_line_px

    def contour(self, side: Side, screen_px_per_px: float = 1.0) -> int:
        """Return the outline width of a side in image pixels; 0 means filled.

        Parameters
        ----------
        side
            Reference or prediction.
        screen_px_per_px
            The zoom: how large an image pixel is on the screen.
        """
        if self.display is Display.FILL:
            return 0
        thin = min(max(round(THIN_ON_SCREEN_PX / screen_px_per_px), 1), MAX_THIN_PX)
        if side is Side.PREDICTION:
            return thin
        return thin + min(max(round(EXTRA_ON_SCREEN_PX / screen_px_per_px), 1), MAX_EXTRA_PX)

    @property
    def opacity(self) -> float:
        """Opacity of the object layers."""
        return self.fill_opacity if self.display is Display.FILL else OUTLINE_OPACITY


STATUS_WORDS: Mapping[Status, str] = {
    Status.TP: "TP",
    Status.FP: "FP",
    Status.FN: "FN",
    Status.MISCLASSIFIED: "misclassified",
    Status.IGNORED: "ignored",
}
SHORT_STATUS_WORDS: Mapping[Status, str] = {**STATUS_WORDS, Status.MISCLASSIFIED: "mis."}
"""For narrow columns and captions, beside a colour or above a tooltip with the whole word."""

CAUSE_WORDS: Mapping[Cause, str] = {
    **{cause: str(cause) for cause in Cause},
    Cause.AMBIGUOUS_SPILL: "mostly ambiguous",
}
"""The causes in the words of the window; files have the code names."""


def status_lut(
    status: NDArray[np.int8], values: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Colour every object by its status.

    Parameters
    ----------
    status
        int8 (n,): status codes, in row order.
    values
        int64 (n,): the label of each object, if they are not 1..n.

    Returns
    -------
    float32 (65535, 4): RGBA of each label; label ``k`` is row ``k - 1``, label
    0 and labels without an object are transparent.
    """
    return _lut(status_colour_table()[status], values)


def class_lut(
    class_index: NDArray[np.int16],
    colours: Sequence[Rgb],
    values: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """Colour every object by its class.

    Parameters
    ----------
    class_index
        int16 (n,): 1-based class of each object, in row order.
    colours
        The colour of each class, in class order.
    values
        int64 (n,): the label of each object, if they are not 1..n.

    Returns
    -------
    As `status_lut`.
    """
    return _lut(rgba_table(colours)[class_index - 1], values)


def neutral_lut(count: int) -> NDArray[np.float32]:
    """Colour every object alike, because nothing is known about it; as `status_lut`."""
    return _lut(np.repeat(rgba_table([NEUTRAL_COLOUR]), count, axis=0))


def _lut(rgba: NDArray[np.float32], values: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    lut = np.zeros((LUT_LENGTH, 4), np.float32)
    if values is None:
        shown = min(len(rgba), LUT_LENGTH - 1)
        lut[1 : shown + 1] = rgba[:shown]
    else:
        inside = (values > 0) & (values < LUT_LENGTH)
        lut[values[inside]] = rgba[inside]
    return lut
