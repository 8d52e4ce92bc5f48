"""Editable copies of the label images of a region; the originals never change.

The first edit of a side copies it. Copies live as long as the session, through changes of region,
team and settings, until they are discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.edits import Area, Box, EditedPair, EditedSide
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings, Overlaps
from napari_panoptic.values.vocabulary import SIDES, Side

T = TypeVar("T")
WHOLE: Area = (slice(0), slice(0))
"""An empty area, for edits of unknown pixels: afterwards, all pixels are compared."""


@dataclass(frozen=True, eq=False)
class EditedAnnotation:
    """The annotation of a region in the files and now, in arrays that later edits do not change."""

    region: Region
    #: The objects; they share no pixels.
    before: LabelImage
    now: LabelImage
    #: The ambiguous area now: a bool image (y, x), or None.
    ambiguous: NDArray[np.bool_] | None
    is_area_changed: bool
    #: Micrometres per pixel, or None.
    mpp: float | None


class RegionCopies:
    """The label images of one region under edit.

    Sides are named by a key: the team of a prediction, None for the reference. Edited objects
    share no pixels, since a stroke sets one id per pixel.

    Parameters
    ----------
    loaded
        The region as it is on disk, with a reference.
    """

    def __init__(self, loaded: RegionSnapshot) -> None:
        self.loaded = loaded
        #: The ambiguous area now: a bool image (y, x), or None.
        self.ambiguous = loaded.ambiguous
        self.is_ambiguous_edited = False
        #: The sides that were edited by hand, not only mirrored; and whether the area was.
        self.drawn: set[str | None] = set()
        self.is_area_drawn = False
        self._sides: dict[str | None, EditedSide] = {}
        self._pairs: dict[str, EditedPair] = {}
        self._flat: dict[str | None, LabelImage] = {}
        self._on_disk: dict[tuple[str, EvaluationSettings], Evaluation] = {}
        self.follow(loaded)

    @property
    def edited(self) -> frozenset[str | None]:
        """The keys of the sides that differ from the files now."""
        return frozenset(key for key, side in self._sides.items() if side.is_edited)

    @property
    def has_edits(self) -> bool:
        """Whether anything differs from the files."""
        return self.is_ambiguous_edited or bool(self.edited)

    @property
    def is_used(self) -> bool:
        """Whether anything was edited, even if all of it was undone."""
        return self.is_ambiguous_edited or bool(self._sides)

    def is_restored_differently(self, key: str | None) -> bool:
        """Return whether the original of an edited side has been restored differently since."""
        return key in self.edited and self._sides[key].base is not self._flat.get(key)

    def concern(self, team: str) -> bool:
        """Return whether edits concern a team's figures."""
        return self.is_ambiguous_edited or not self.edited.isdisjoint((None, team))

    def follow(self, loaded: RegionSnapshot) -> None:
        """Take over the files' contents, which may be restored differently; keep edited sides."""
        before, self.loaded = self.loaded, loaded
        known = _sides(before)
        self._flat = {
            key: self._flat[key]
            if key in self._flat and labels is known[key]
            else labels.with_overlaps(Overlaps.FLATTEN)
            for key, labels in _sides(loaded).items()
        }
        self._on_disk.clear()
        self._drop_outdated()
        if not self.is_ambiguous_edited and loaded.ambiguous is not before.ambiguous:
            self._use_area(loaded.ambiguous)

    def _drop_outdated(self) -> None:
        """Drop unedited copies whose original has been restored differently since."""
        for key, side in list(self._sides.items()):
            if not side.is_edited and side.base is not self._flat.get(key):
                del self._sides[key]
                for team in list(self._pairs) if key is None else [key]:
                    self._pairs.pop(team, None)

    def edit(
        self,
        team: str,
        side: Side,
        do: Callable[[EditedPair], T],
        area: Area = WHOLE,
        *,
        is_mirrored: bool = False,
    ) -> T:
        """Edit a side.

        Parameters
        ----------
        team
            The team whose prediction is edited, or that is shown with an edited reference.
        side
            The side that is edited.
        do
            Edits the team's pair.
        area
            The pixels that may change.
        is_mirrored
            Whether the edit only follows the source of the objects.

        Raises
        ------
        PanopticError
            For a team without a prediction, or raised by `do`; nothing is changed then.
        """
        edit = do(self._live(team))
        key = key_of(side, team)
        self._sides[key].note_edit(area)
        self._drop_outdated()
        if not is_mirrored:
            self.drawn.add(key)
        return edit

    def set_ambiguous(
        self, ambiguous: NDArray[np.bool_] | None, box: Box | None = None, *, is_mirrored: bool
    ) -> None:
        """Redraw the ambiguous area, for all teams; see `EditedPair.set_ambiguous`."""
        self._use_area(ambiguous, box)
        self.is_ambiguous_edited = not _is_same_area(self.ambiguous, self.loaded.ambiguous)
        self.is_area_drawn |= not is_mirrored

    def _use_area(self, ambiguous: NDArray[np.bool_] | None, box: Box | None = None) -> None:
        self.ambiguous = ambiguous
        for pair in self._pairs.values():
            pair.set_ambiguous(ambiguous, box)

    def evaluate(self, team: str, settings: EvaluationSettings) -> Evaluation:
        """Evaluate a team as it is now."""
        return self._live(team).evaluate(settings)

    def evaluate_on_disk(self, team: str, settings: EvaluationSettings) -> Evaluation:
        """Evaluate a team as it is in the files."""
        asked = team, settings
        if asked not in self._on_disk:
            self._on_disk[asked] = evaluate(
                self._pair_of(team, self._flat, self.loaded.ambiguous), settings
            )
        return self._on_disk[asked]

    def pair(self, team: str) -> LabelPair:
        """Return a team's label pair as it is now; the next edit changes its pixels."""
        now = self._flat | {key: side.labels for key, side in self._sides.items()}
        return self._pair_of(team, now, self.ambiguous)

    def labels(self, side: Side, team: str) -> LabelImage:
        """Return a side as it is now, which later edits do not change."""
        key, labels = key_of(side, team), self.pair(team).side(side)
        if key in self.edited:
            return replace(labels, index=labels.index.copy())
        return self._flat[key]

    @property
    def is_annotation_drawn(self) -> bool:
        """Whether the annotation, or the ambiguous area, differs by edits by hand."""
        is_reference = None in self.edited and None in self.drawn
        return is_reference or (self.is_ambiguous_edited and self.is_area_drawn)

    def annotation(self) -> EditedAnnotation:
        """Return the annotation in the files and now."""
        before = self._flat[None]
        now = self._sides[None].labels if None in self.edited else before
        area = self.ambiguous
        return EditedAnnotation(
            self.loaded.region,
            before,
            replace(now, index=now.index.copy(), ids=now.ids.copy()),
            None if area is None else area.copy(),
            self.is_ambiguous_edited,
            self.loaded.mpp,
        )

    def known_ids(self, side: Side, team: str) -> NDArray[np.int64]:
        """Return the ids of a side that have a class, including those without pixels."""
        key, labels = key_of(side, team), self.pair(team).side(side)
        return self._sides[key].known_ids if key in self._sides else labels.ids

    def _pair_of(
        self,
        team: str,
        sides: Mapping[str | None, LabelImage],
        ambiguous: NDArray[np.bool_] | None,
    ) -> LabelPair:
        if team not in self._flat:
            raise PanopticError(
                f"team '{team}' has no prediction here that could be edited",
                region=self.loaded.region.name,
            )
        return LabelPair(sides[None], sides[team], ambiguous, self.loaded.mpp)

    def _live(self, team: str) -> EditedPair:
        """Return the edited pair of a team; it is created for the first edit or evaluation."""
        if team not in self._pairs:
            pair = self.pair(team)
            sides = {
                side: self._sides.setdefault(key_of(side, team), EditedSide(pair.side(side)))
                for side in SIDES
            }
            known = self.loaded.evaluations.get(team)
            if (
                self.is_ambiguous_edited
                or any(own.labels is not own.base for own in sides.values())
                or (known is not None and known.pair.has_planes)
            ):
                known = None
            self._pairs[team] = EditedPair(pair, known=known, sides=sides, beside=self._pairs)
        return self._pairs[team]


def key_of(side: Side, team: str | None) -> str | None:
    """Return the key of a side: the team of a prediction, None for the reference."""
    return None if side is Side.REFERENCE else team


def _sides(snapshot: RegionSnapshot) -> dict[str | None, LabelImage]:
    """Return the objects of a region by the key of their side."""
    found: dict[str | None, LabelImage] = {}
    found.update(snapshot.predictions)
    if snapshot.reference is not None:
        found[None] = snapshot.reference
    return found


def _is_same_area(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    """Return whether two ambiguous areas are the same; None equals an empty area."""
    if one is None or other is None:
        return not any(mask is not None and mask.any() for mask in (one, other))
    return np.array_equal(one, other)
