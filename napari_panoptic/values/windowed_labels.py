"""Label images too large to hold: the objects are known, the pixels are read window by window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.relabel import look_up
from napari_panoptic.values.labels import Scores, check_pair, scores_of
from napari_panoptic.values.vocabulary import Side

Box = tuple[int, int, int, int]
"""A window in px: y0, x0, y1, x1, half open, inside the image."""


@dataclass(frozen=True, eq=False)
class TiledLabels:
    """The objects of one side of a slide."""

    #: Height and width in px.
    shape: tuple[int, int]
    #: int64 (n,): the objects' ids for people and files, ascending, unique, positive. Unlike in a
    #: `LabelImage`, a row may have no pixel.
    ids: NDArray[np.int64]
    #: int16 (n,): 1-based index into ``class_names``.
    class_index: NDArray[np.int16]
    #: int64 (n,): the id in the file that the object came from.
    original_ids: NDArray[np.int64]
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: Returns a window as a new int32 image (y, x): 0 is background, ``k`` the object of row ``k -
    #: 1``. Pixels of unknown ids are background. Thread-safe, and releases the GIL if possible.
    read: Callable[[Box], NDArray[np.int32]]
    #: Edge of the tiles in which the pixels are stored, or 0 if any window costs the same. Windows
    #: are best aligned with such tiles.
    tile_px: int = 0
    #: As in `LabelImage`.
    known_scores: Scores | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64 (n,): the score of each object, as in `LabelImage`."""
        return scores_of(self.known_scores, self.ids)

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    def only(self, kept: NDArray[np.bool_]) -> TiledLabels:
        """Return the objects of some rows (bool, n); the pixels of others become background."""
        if kept.all():
            return self
        lookup = np.zeros(len(self) + 1, np.int32)
        lookup[1:][kept] = np.arange(1, np.count_nonzero(kept) + 1, dtype=np.int32)
        read_all = self.read

        def read(box: Box) -> NDArray[np.int32]:
            window = read_all(box)
            return look_up(lookup, window, np.empty_like(window))

        return replace(
            self,
            ids=self.ids[kept],
            class_index=self.class_index[kept],
            original_ids=self.original_ids[kept],
            read=read,
        )


@dataclass(frozen=True, eq=False)
class TiledArea:
    """An excluded area of a slide."""

    #: Height and width in px.
    shape: tuple[int, int]
    #: Returns a window as a bool image (y, x), or None if nothing of the area lies in it.
    #: Thread-safe.
    read: Callable[[Box], NDArray[np.bool_] | None]


@dataclass(frozen=True, eq=False)
class TiledPair:
    """Reference and prediction of one slide, with the ambiguous area.

    Raises
    ------
    LabelError
        If shapes or class lists differ.
    """

    #: The two sides, of one shape and one class list.
    reference: TiledLabels
    prediction: TiledLabels
    #: The excluded area; None if nothing is excluded.
    ambiguous: TiledArea | None = None
    #: Micrometres per pixel, or None if unknown.
    mpp: float | None = None

    def __post_init__(self) -> None:
        """Check that everything fits together."""
        shape = None if self.ambiguous is None else self.ambiguous.shape
        check_pair(self.reference, self.prediction, shape)

    def side(self, side: Side) -> TiledLabels:
        """Return the objects of one side."""
        return self.reference if side is Side.REFERENCE else self.prediction

    @property
    def has_planes(self) -> bool:
        """Whether objects of one side may share pixels: never in windows."""
        return False

    @property
    def class_names(self) -> tuple[str, ...]:
        """The scored classes, in order."""
        return self.reference.class_names
