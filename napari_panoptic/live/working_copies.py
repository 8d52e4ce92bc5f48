"""Editable copies of label images; the originals never change.

A copy is created by the first edit. It lives as long as the session, through changes of
region, team and settings, until it is discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.edits import EditedPair, Erased
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

T = TypeVar("T")
Area = tuple[Any, Any]
"""Pixels of an image as two indices: arrays of rows and columns, or two slices."""
ROWS_AT_A_TIME = 256
"""Rows of two images that are compared at a time."""


@dataclass(frozen=True, eq=False)
class Originals:
    """The label images of a region as they are on disk.

    Parameters
    ----------
    region
        Its name.
    reference
        The annotated objects.
    ambiguous
        bool image (y, x), or None.
    predictions
        Team -> its objects.
    mpp
        Micrometres per pixel, or None.
    evaluations
        Team -> the evaluation of these images, if known.
    """

    region: str
    reference: LabelImage
    ambiguous: NDArray[np.bool_] | None
    predictions: Mapping[str, LabelImage]
    mpp: float | None
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)

    def side(self, key: str | None) -> LabelImage:
        """Return the objects of a team, or of the reference (None)."""
        return self.reference if key is None else self.pair(key).prediction

    def pair(self, team: str) -> LabelPair:
        """Return a team's label pair."""
        if team not in self.predictions:
            raise PanopticError(
                f"team '{team}' has no prediction here that could be edited", region=self.region
            )
        return LabelPair(self.reference, self.predictions[team], self.ambiguous, self.mpp)


@dataclass
class _RegionCopies:
    """The copies of one region: one edited pair per team that was shown since.

    Sides are keyed by the team of a prediction, None for the reference.
    """

    originals: Originals
    live: dict[str, EditedPair] = field(default_factory=dict)
    bases: dict[str | None, LabelImage] = field(default_factory=dict)
    """The original of each edited side; other sides are as on disk."""
    at_rest: dict[str | None, LabelImage] = field(default_factory=dict)
    """Edited sides whose edited pair was dropped; an edited pair supersedes them."""
    ambiguous: NDArray[np.bool_] | None = None
    is_ambiguous_edited: bool = False
    erased: dict[str | None, Erased] = field(default_factory=dict)
    """The erased objects of each side."""
    differs_at: dict[str | None, tuple[int, int]] = field(default_factory=dict)
    """A pixel (y, x) of each edited side that differs from its base."""

    @property
    def is_any_edited(self) -> bool:
        """Whether anything differs from the files."""
        return bool(self.bases) or self.is_ambiguous_edited

    def drop_live(self, teams: Iterable[str]) -> None:
        """Drop edited pairs, but keep their edited sides."""
        for team in teams:
            pair = self.live.pop(team).pair()
            if None in self.bases:
                self.at_rest[None] = pair.reference
            if team in self.bases:
                self.at_rest[team] = pair.prediction


class WorkingCopies:
    """The edited label images of a cohort, region by region."""

    def __init__(self) -> None:
        self._regions: dict[str, _RegionCopies] = {}

    def is_edited(self, region: str, side: Side, team: str | None = None) -> bool:
        """Return whether a region's reference, or a team's prediction, differs from the file.

        A copy does not differ any more once all its edits are undone.
        """
        copies = self._regions.get(region)
        if copies is None:
            return False
        return _key(side, team) in copies.bases

    def is_restored_differently(
        self, originals: Originals, side: Side, team: str | None = None
    ) -> bool:
        """Return whether a copy was made from objects that are not the current originals."""
        copies = self._regions.get(originals.region)
        key = _key(side, team)
        if copies is None or key not in copies.bases:
            return False
        return copies.bases[key] is not originals.side(key)

    def is_ambiguous_edited(self, region: str) -> bool:
        """Return whether the ambiguous area of a region was redrawn."""
        copies = self._regions.get(region)
        return copies is not None and copies.is_ambiguous_edited

    def has_edits(self, region: str) -> bool:
        """Return whether anything in a region differs from the files."""
        copies = self._regions.get(region)
        return copies is not None and copies.is_any_edited

    def edit(
        self,
        originals: Originals,
        team: str,
        side: Side,
        do: Callable[[EditedPair], T],
        area: Area = (slice(0), slice(0)),
    ) -> T:
        """Edit a copy, which is created if there is none yet.

        Parameters
        ----------
        originals
            The region as it is on disk.
        team
            The team whose prediction is edited, or that is shown with an
            edited reference.
        side
            The side that is edited.
        do
            Edits a pair: the team's, and those of other teams if the reference is edited.
        area
            The pixels that may change.

        Raises
        ------
        PanopticError
            For a team without a prediction, or as `do` raises it; nothing is changed then.
        """
        known = originals.region in self._regions
        copies = self._regions.setdefault(originals.region, _RegionCopies(originals))
        try:
            self._refresh(copies, originals)
            edit = do(self._live(copies, team))
        except PanopticError:
            if not known:
                del self._regions[originals.region]
            raise
        if side is Side.REFERENCE:
            for name, live in copies.live.items():
                if name != team:
                    do(live)
        _note_edited(copies, team, side, area)
        return edit

    def set_ambiguous(self, originals: Originals, ambiguous: NDArray[np.bool_] | None) -> None:
        """Redraw the ambiguous area of a region, for all teams."""
        copies = self._regions.setdefault(originals.region, _RegionCopies(originals))
        self._refresh(copies, originals)
        # One copy for all teams, which the caller cannot change.
        copies.ambiguous = None if ambiguous is None else ambiguous.copy()
        copies.is_ambiguous_edited = not _is_same_area(copies.ambiguous, originals.ambiguous)
        for live in copies.live.values():
            live.set_ambiguous(copies.ambiguous)

    def evaluate(
        self, originals: Originals, team: str, settings: EvaluationSettings
    ) -> Evaluation | None:
        """Evaluate a team on the copies of a region; return None if nothing is edited."""
        copies = self._regions.get(originals.region)
        if copies is None:
            return None
        self._refresh(copies, originals)
        return self._live(copies, team).evaluate(settings)

    def is_affected(self, region: str, team: str) -> bool:
        """Return whether edits concern a team's figures."""
        copies = self._regions.get(region)
        if copies is None:
            return False
        return copies.is_ambiguous_edited or not {None, team}.isdisjoint(copies.bases)

    def pair(self, originals: Originals, team: str) -> LabelPair:
        """Return a team's label pair as it is now; the next edit changes its pixels."""
        copies = self._regions.get(originals.region)
        if copies is None or not self.is_affected(originals.region, team):
            return originals.pair(team)
        self._refresh(copies, originals)
        if team in copies.live:
            return copies.live[team].pair()
        return _resting_pair(copies, team)

    def labels(self, originals: Originals, team: str, side: Side) -> LabelImage:
        """Return a side as it is now, edited or not."""
        copies = self._regions.get(originals.region)
        if copies is None or not self.is_edited(originals.region, side, team):
            return originals.side(_key(side, team))
        self._refresh(copies, originals)
        return self._live(copies, team).labels(side)

    def known_ids(self, originals: Originals, team: str, side: Side) -> NDArray[np.int64]:
        """Return the ids of a side that have a class, including those without pixels."""
        copies = self._regions.get(originals.region)
        live = None if copies is None else copies.live.get(team)
        return originals.pair(team).side(side).ids if live is None else live.known_ids(side)

    def ambiguous(self, originals: Originals) -> NDArray[np.bool_] | None:
        """Return the ambiguous area as it is now."""
        copies = self._regions.get(originals.region)
        if copies is None or not copies.is_ambiguous_edited:
            return originals.ambiguous
        return copies.ambiguous

    def discard(self, region: str) -> None:
        """Discard the copies of a region."""
        self._regions.pop(region, None)

    def _live(self, copies: _RegionCopies, team: str) -> EditedPair:
        if team not in copies.live:
            pair, known = copies.originals.pair(team), None
            now = _resting_pair(copies, team)
            is_as_on_disk = not copies.is_ambiguous_edited and not copies.bases.keys() & {
                None,
                team,
            }
            if is_as_on_disk:
                now, known = pair, copies.originals.evaluations.get(team)
            erased = {
                Side.REFERENCE: copies.erased.setdefault(None, {}),
                Side.PREDICTION: copies.erased.setdefault(team, {}),
            }
            copies.live[team] = EditedPair(now, known=known, erased=erased)
            copies.at_rest.pop(team, None)
        return copies.live[team]

    def _refresh(self, copies: _RegionCopies, originals: Originals) -> None:
        """Replace the originals, which may be restored differently; keep edited sides."""
        before, copies.originals = copies.originals, originals

        is_other = None not in copies.bases and before.reference is not originals.reference
        old, new = before.predictions, originals.predictions
        copies.drop_live(
            [
                team
                for team in copies.live
                if is_other or (team not in copies.bases and old.get(team) is not new.get(team))
            ]
        )


def _key(side: Side, team: str | None) -> str | None:
    """Return the key of a side in the copies of a region."""
    return None if side is Side.REFERENCE else team


def _resting_pair(copies: _RegionCopies, team: str) -> LabelPair:
    """Return the label pair of a team without an edited pair; the next edit changes its pixels."""
    pair = copies.originals.pair(team)
    for live in copies.live.values():
        reference = live.pair().reference
        break
    else:
        reference = copies.at_rest.get(None, pair.reference)
    return replace(
        pair,
        reference=reference,
        prediction=copies.at_rest.get(team, pair.prediction),
        ambiguous=copies.ambiguous if copies.is_ambiguous_edited else pair.ambiguous,
    )


def _note_edited(copies: _RegionCopies, team: str, side: Side, area: Area) -> None:
    """Record whether a side differs from its original, after an edit of some pixels."""
    key = _key(side, team)
    original = copies.originals.side(key)
    base = copies.bases.get(key, original)
    now = copies.live[team].pair().side(side)
    if _differs(now, base, copies.differs_at, key, area):
        copies.bases[key] = base
        return
    copies.bases.pop(key, None)
    copies.at_rest.pop(key, None)
    if base is not original:  # restored differently since: the copy is no longer needed
        copies.drop_live(list(copies.live) if key is None else [team])


def _differs(
    now: LabelImage,
    base: LabelImage,
    differs_at: dict[str | None, tuple[int, int]],
    key: str | None,
    area: Area,
) -> bool:
    """Return whether a copy differs from its original, after an edit of some pixels.

    All pixels are compared only if neither the edited pixels nor the last known difference
    differ: usually after the last stroke was undone.
    """
    if not np.array_equal(now.ids, base.ids) or not np.array_equal(
        now.class_index, base.class_index
    ):
        return True
    known = differs_at.get(key)
    if known is not None and now.index[known] != base.index[known]:
        return True
    found = _first_difference(now.index, base.index, area)
    if found is None:
        differs_at.pop(key, None)
        return False
    differs_at[key] = found
    return True


def _first_difference(
    one: NDArray[np.int32], other: NDArray[np.int32], area: Area
) -> tuple[int, int] | None:
    """Return a pixel (y, x) in which two images differ, searched first in an area, or None."""
    places = np.flatnonzero(one[area] != other[area])
    if len(places):
        rows, columns = area
        if isinstance(rows, slice):
            width = columns.stop - columns.start
            return rows.start + int(places[0]) // width, columns.start + int(places[0]) % width
        return int(rows[places[0]]), int(columns[places[0]])
    for top in range(0, len(one), ROWS_AT_A_TIME):
        band = slice(top, top + ROWS_AT_A_TIME)
        if not np.array_equal(one[band], other[band]):
            y, x = np.argwhere(one[band] != other[band])[0]
            return top + int(y), int(x)
    return None


def _is_same_area(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    """Return whether two ambiguous areas are the same; none is an empty one."""
    if one is None or other is None:
        return not any(mask is not None and mask.any() for mask in (one, other))
    return np.array_equal(one, other)
