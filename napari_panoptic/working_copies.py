"""What somebody drew: copies of label images under edit. Originals are never changed.

A copy comes to be with the first edit and lives as long as the session, through
changes of region, team and settings, until it is discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import LabelError, PanopticError
from napari_panoptic.evaluation.evaluate import Evaluation, evaluate
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.live import Edit, IdWindow, LiveEvaluation
from napari_panoptic.evaluation.settings import EvaluationSettings
from napari_panoptic.evaluation.vocabulary import Side

T = TypeVar("T")
Area = tuple[Any, Any]
"""Pixels of an image as two indices: arrays of rows and columns, or two slices."""
ROWS_AT_A_TIME = 256
"""So many rows of two images are compared before it is asked whether they differ."""


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
        Team -> what came of these images, as far as known.
    """

    region: str
    reference: LabelImage
    ambiguous: NDArray[np.bool_] | None
    predictions: Mapping[str, LabelImage]
    mpp: float | None
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)

    def pair(self, team: str) -> LabelPair:
        """Give a team's label pair."""
        if team not in self.predictions:
            raise PanopticError(
                f"team '{team}' has no prediction here that could be edited", region=self.region
            )
        return LabelPair(self.reference, self.predictions[team], self.ambiguous, self.mpp)


@dataclass
class _RegionCopies:
    """The copies of one region: one live pair per team that was looked at since."""

    originals: Originals
    live: dict[str, LiveEvaluation] = field(default_factory=dict)
    edited_teams: set[str] = field(default_factory=set)
    is_reference_edited: bool = False
    reference_at_rest: LabelImage | None = None
    ambiguous: NDArray[np.bool_] | None = None
    is_ambiguous_edited: bool = False
    differs_at: dict[str | None, tuple[int, int]] = field(default_factory=dict)
    """A pixel (y, x) of each team's copy, and of the reference's (None), that is not as on disk."""

    @property
    def is_any_edited(self) -> bool:
        """Whether anything is not as on disk."""
        return bool(self.edited_teams) or self.is_reference_edited or self.is_ambiguous_edited


class WorkingCopies:
    """The edited label images of a cohort, region by region."""

    def __init__(self) -> None:
        self._regions: dict[str, _RegionCopies] = {}

    def is_edited(self, region: str, side: Side, team: str | None = None) -> bool:
        """Tell whether the reference of a region, or a team's prediction there, is not as on disk.

        A copy whose every edit was undone is as on disk again.
        """
        copies = self._regions.get(region)
        if copies is None:
            return False
        if side is Side.REFERENCE:
            return copies.is_reference_edited
        return team in copies.edited_teams

    def is_ambiguous_edited(self, region: str) -> bool:
        """Tell whether the ambiguous area of a region was redrawn."""
        copies = self._regions.get(region)
        return copies is not None and copies.is_ambiguous_edited

    def has_edits(self, region: str) -> bool:
        """Tell whether anything in a region is not as on disk."""
        copies = self._regions.get(region)
        return copies is not None and copies.is_any_edited

    def edit(
        self,
        originals: Originals,
        team: str,
        side: Side,
        y: NDArray[np.integer],
        x: NDArray[np.integer],
        ids: NDArray[np.integer] | int,
        classes: Mapping[int, str] | None = None,
    ) -> Edit:
        """Set pixels of a copy, made where there is none yet.

        Parameters
        ----------
        originals
            The region as it is on disk.
        team
            The team whose prediction is edited, or against which an edited
            reference is looked at.
        side, y, x, ids, classes
            As in :meth:`LiveEvaluation.set_pixels`.

        Raises
        ------
        PanopticError
            For a team without a prediction, or a new id without a class;
            nothing is changed then.
        """
        return self._edit(
            originals,
            team,
            side,
            lambda live: live.set_pixels(side, y, x, ids, classes=classes),
            (y, x),
        )

    def edit_window(
        self,
        originals: Originals,
        team: str,
        side: Side,
        window: IdWindow,
        classes: Mapping[int, str] | None = None,
        renamed: Mapping[int, str] | None = None,
    ) -> Edit:
        """Set all pixels of a window of a copy, otherwise as :meth:`edit`.

        Parameters
        ----------
        originals, team, side, window, classes
            As there.
        renamed
            Id -> another class, for objects that are there already.
        """
        (y, x), (height, width) = window.corner_yx, window.numbers.shape

        def do(live: LiveEvaluation) -> Edit:
            known = live.pair().reference if side is Side.REFERENCE else live.pair().prediction
            ids = set(known.ids.tolist())
            for id_, name in (renamed or {}).items():  # before anything is changed
                if id_ not in ids or name not in known.class_names:
                    raise LabelError(f"there is no object {id_}, or no class {name}, on this side")
            edit = live.set_window(side, window, classes=classes)
            for id_, name in (renamed or {}).items():
                live.set_class(side, id_, name)
            return edit

        return self._edit(originals, team, side, do, (slice(y, y + height), slice(x, x + width)))

    def _edit(
        self,
        originals: Originals,
        team: str,
        side: Side,
        do: Callable[[LiveEvaluation], T],
        area: Area = (slice(0), slice(0)),
    ) -> T:
        known = originals.region in self._regions
        copies = self._regions.setdefault(originals.region, _RegionCopies(originals))
        try:
            edit = do(self._live(copies, team))
        except PanopticError:
            if not known:
                del self._regions[originals.region]
            raise
        is_edited = _is_edited(copies, team, side, area)
        if side is Side.PREDICTION:
            (copies.edited_teams.add if is_edited else copies.edited_teams.discard)(team)
            return edit
        copies.is_reference_edited = is_edited
        for name, live in copies.live.items():
            if name != team:
                do(live)
        return edit

    def set_class(
        self, originals: Originals, team: str, side: Side, id_: int, class_name: str
    ) -> None:
        """Give an object of a copy another class."""
        self._edit(originals, team, side, lambda live: live.set_class(side, id_, class_name))

    def set_ambiguous(self, originals: Originals, ambiguous: NDArray[np.bool_] | None) -> None:
        """Redraw the ambiguous area of a region, for all teams."""
        copies = self._regions.setdefault(originals.region, _RegionCopies(originals))
        # One copy for all, which stays as it is whatever the caller does with theirs.
        copies.ambiguous = None if ambiguous is None else ambiguous.copy()
        copies.is_ambiguous_edited = not _is_same_area(copies.ambiguous, originals.ambiguous)
        for live in copies.live.values():
            live.set_ambiguous(copies.ambiguous)

    def evaluate(
        self, originals: Originals, team: str, settings: EvaluationSettings
    ) -> Evaluation | None:
        """Evaluate a team against the copies of a region; None where nothing is edited."""
        copies = self._regions.get(originals.region)
        if copies is None:
            return None
        self._refresh(copies, originals)
        return self._live(copies, team).evaluate(settings)

    def original_evaluation(
        self, originals: Originals, team: str, settings: EvaluationSettings
    ) -> Evaluation:
        """Evaluate a team on the files as they are, for comparison with the copies."""
        return evaluate(originals.pair(team), settings)

    def is_affected(self, region: str, team: str) -> bool:
        """Tell whether a team's figures are others than those of the files."""
        copies = self._regions.get(region)
        if copies is None:
            return False
        of_all = copies.is_reference_edited or copies.is_ambiguous_edited
        return of_all or team in copies.edited_teams

    def pair(self, originals: Originals, team: str) -> LabelPair:
        """Give a team's label pair as it is now: views that the next edit changes."""
        copies = self._regions.get(originals.region)
        if copies is None or not self.is_affected(originals.region, team):
            return originals.pair(team)
        self._refresh(copies, originals)
        if team in copies.live:
            return copies.live[team].pair()
        reference = self._seen_reference(copies)
        return replace(
            originals.pair(team), reference=reference, ambiguous=self.ambiguous(originals)
        )

    def labels(self, originals: Originals, team: str, side: Side) -> LabelImage:
        """Give a side as it is now, edited or not."""
        copies = self._regions.get(originals.region)
        if copies is None or not self.is_edited(originals.region, side, team):
            return originals.reference if side is Side.REFERENCE else originals.predictions[team]
        return self._live(copies, team).labels(side)

    def ambiguous(self, originals: Originals) -> NDArray[np.bool_] | None:
        """Give the ambiguous area as it is now."""
        copies = self._regions.get(originals.region)
        if copies is None or not copies.is_ambiguous_edited:
            return originals.ambiguous
        return copies.ambiguous

    def discard(self, region: str) -> None:
        """Go back to the originals of a region."""
        self._regions.pop(region, None)

    def _live(self, copies: _RegionCopies, team: str) -> LiveEvaluation:
        if team not in copies.live:
            pair = copies.originals.pair(team)
            known = copies.originals.evaluations.get(team)
            if copies.is_reference_edited or copies.is_ambiguous_edited:
                known = None
            if copies.is_reference_edited:
                pair = replace(pair, reference=self._reference(copies))
            if copies.is_ambiguous_edited:
                pair = replace(pair, ambiguous=copies.ambiguous)
            copies.live[team] = LiveEvaluation(pair, known=known)
        return copies.live[team]

    def _seen_reference(self, copies: _RegionCopies) -> LabelImage:
        """Give the edited reference as a view, from any live pair."""
        for live in copies.live.values():
            return live.pair().reference
        return copies.reference_at_rest or copies.originals.reference

    def _reference(self, copies: _RegionCopies) -> LabelImage:
        """Give the edited reference, from any live pair: all of them have the same."""
        for live in copies.live.values():
            return live.labels(Side.REFERENCE)
        return copies.reference_at_rest or copies.originals.reference

    def _refresh(self, copies: _RegionCopies, originals: Originals) -> None:
        """Take over what was restored in another way since; what was edited stays."""
        before, copies.originals = copies.originals, originals
        is_other_reference = (
            not copies.is_reference_edited and before.reference is not originals.reference
        )
        changed = [
            team
            for team in copies.live
            if team not in copies.edited_teams
            and (
                is_other_reference
                or before.predictions.get(team) is not originals.predictions.get(team)
            )
        ]
        if changed and copies.is_reference_edited:
            copies.reference_at_rest = self._reference(copies)
        for team in changed:
            del copies.live[team]
        if is_other_reference:
            ambiguous = self.ambiguous(originals)
            for team, live in list(copies.live.items()):
                prediction = live.labels(Side.PREDICTION)
                pair = LabelPair(originals.reference, prediction, ambiguous, originals.mpp)
                copies.live[team] = LiveEvaluation(pair)


def _is_edited(copies: _RegionCopies, team: str, side: Side, area: Area) -> bool:
    """Tell whether a side differs from the file after an edit of some of its pixels.

    All pixels are looked at only where neither those just edited nor the one that was
    known to differ do: as a rule after the last stroke was undone.
    """
    now, pair = copies.live[team].pair(), copies.originals.pair(team)
    is_reference = side is Side.REFERENCE
    own, original = (
        (now.reference, pair.reference) if is_reference else (now.prediction, pair.prediction)
    )
    n = len(original)
    # Objects keep their rows in a copy; new ones come after them.
    if not (
        np.array_equal(own.ids[:n], original.ids)
        and np.array_equal(own.class_index[:n], original.class_index)
    ):
        return True
    key = None if is_reference else team
    known = copies.differs_at.get(key)
    if known is not None and own.index[known] != original.index[known]:
        return True
    found = _first_difference(own.index, original.index, area)
    if found is None:
        copies.differs_at.pop(key, None)
        return False
    copies.differs_at[key] = found
    return True


def _first_difference(
    one: NDArray[np.int32], other: NDArray[np.int32], area: Area
) -> tuple[int, int] | None:
    """Find a pixel (y, x) in which two images differ, first in an area; None where none does."""
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
    """Tell whether two ambiguous areas are the same; none is an empty one."""
    if one is None or other is None:
        return not any(mask is not None and mask.any() for mask in (one, other))
    return np.array_equal(one, other)
