"""Doubts about masks: numbers that do not identify objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from napari_panoptic.nuclei.inspection.looking import SeenSide
from napari_panoptic.nuclei.inspection.values import Doubt, Target
from napari_panoptic.nuclei.values.cohort import Objects

LEAST_PIECES = 10
"""With fewer pieces in all, objects may as well be cut by chance."""
MANY_TIMES = 4
"""Ratio of pieces to numbers from which numbers look like classes."""
_OBJECTS = (
    (Objects.PIECES, "Each piece is an object"),
    (Objects.NUMBERS, "Each number is an object"),
)


def piece_doubt(target: Target, sides: Sequence[SeenSide]) -> Iterator[Doubt]:
    """Report masks whose numbers have too many pieces for numbers of objects."""
    masks = [s for s in sides if s.masks is not None and s.files.rules.objects is None]
    pieces = sum(side.pieces for side in masks)
    numbers = sum(side.counts().total() for side in masks)
    if pieces >= max(LEAST_PIECES, MANY_TIMES * numbers) and numbers:
        yield Doubt(
            f"objects:{target.name}",
            f"Masks of {target.in_words} have {numbers} numbers in {pieces} separate pieces, as if "
            "all nuclei of a class had the same number. Touching nuclei in such masks remain "
            "one object.",
            tuple(target.fix("objects", str(word), label) for word, label in _OBJECTS),
        )
