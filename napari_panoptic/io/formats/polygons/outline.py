"""What a file of outlines says, object by object: the values that its reader yields."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.values.cohort import UNSTATED, OutlineRules

Note = tuple[FindingKind, str]
"""Something noticed about an object: its kind, and the message that follows the number of such
objects, ``contour(s) with vertices between pixels``."""


class MadeBy(IntEnum):
    """The author of an outline, where a file states it."""

    UNSTATED = 0
    PROGRAM = 1  # as one nucleus
    HAND = 2  # perhaps around detected nuclei, as the outline of an area


@dataclass(slots=True)
class Outline:
    """An object."""

    #: Arrays or lists (n, 2): x and y in px, with or without a last vertex that repeats the first.
    #: Filled together by the even-odd rule. Copied later: they must not change.
    rings: Sequence[ArrayLike]
    #: Its class as the file spells it, see
    #: `napari_panoptic.io.formats.class_numbers.ClassNumbers.of`.
    entry: Hashable = None
    #: Its id; None for its running number. An id that cannot be kept is 0 or negative.
    id: int | None = None
    #: The probability that a model gives it, a number; None if the file gives none. Anything else
    #: is reported.
    score: Any = None
    #: Whether each ring is a hole; by default all but the first are.
    is_hole: Sequence[bool] = ()
    #: Whether it is an area that is excluded from scoring, also where the cohort has no class for
    #: such areas; its class is then that of the objects in it.
    is_excluded: bool = False
    #: What is reported about it if its class is known.
    notes: Sequence[Note] = ()
    made_by: MadeBy = MadeBy.UNSTATED


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that outlines no object, and is reported."""

    #: What it is, after the number of such: ``row(s) without an area left out``. ``{}`` in it
    #: stands for all details.
    message: str
    detail: str = ""
    kind: FindingKind = FindingKind.FALLBACK
    #: Whether it takes a running number, which is reported, and not the next object.
    is_numbered: bool = False
    #: Its id if it is numbered, as of an `Outline`.
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Stated:
    """What a file states about all of its objects; may come at any place."""

    #: Micrometres per pixel.
    mpp: float | None = None
    #: Magnification of the image in whose px the vertices are.
    magnification: float | None = None
    #: Height and width in px of the image in whose px the vertices are.
    shape: tuple[int, int] | None = None


Said = Outline | LeftOut | Stated | Finding


@dataclass
class OutlineFile:
    """A file to read, and how."""

    path: Path
    #: How outlines are read where the format leaves it open.
    rules: OutlineRules = UNSTATED
    #: The key of the region, in a file that holds many; None for the only one.
    item: str | None = None
    #: Receives what was read of the file and all of it, in bytes or in objects.
    report: CountReport = unreported
    _amounts: tuple[int, int] = field(default=(0, 1), init=False)

    def progress(self, done: int, total: int) -> None:
        """Report the progress of reading; an exception that `report` raises cancels it."""
        self._amounts = done, total
        self.pause()

    def pause(self) -> None:
        """Report the last amounts again, so that the caller can cancel here."""
        self.report(*self._amounts)
