"""Doubts about masks: numbers that are not those of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from napari_panoptic.nuclei.inspection.looking import SeenSide
from napari_panoptic.nuclei.inspection.values import Doubt, Target
from napari_panoptic.nuclei.values.cohort import Objects

LEAST_PIECES = 10
"""With fewer pieces in all, objects may as well be cut by chance."""
MANY_TIMES = 4
"""How many times as many pieces as numbers look like numbers of classes."""
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
            f"Masks of {target.in_words} have {numbers} numbers in {pieces} separate pieces, as "
            "where all nuclei of a class have the same number. Touching nuclei of such masks "
            "stay one object.",
            tuple(target.fix("objects", str(word), label) for word, label in _OBJECTS),
        )
