"""Compare probability maps with several raters: Dice at levels, as in QUBIQ.

The reference of a structure is the mean of its n raters' masks: a voxel that k
of them marked has the probability k / n. Reference and prediction are made
binary at several levels, compared by Dice at each, and the Dice averaged
(QUBIQ, structured description of the challenge design, "Metric(s)").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.statistics.means import mean_defined
from napari_panoptic.values.raters import AtLevel, BothEmpty, RatersSettings

RELIABILITY_BINS = 10
"""Number of equal bins between 0 and 1 for the calibration."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """Several raters' masks of one structure in one case.

    Raises
    ------
    LabelError
        Without raters, or for masks of another number or dimension.
    """

    #: n names.
    raters: tuple[str, ...]
    #: bool (n, y, x) or (n, z, y, x).
    masks: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Check that names and masks fit together."""
        if not self.raters or len(self.raters) != len(self.masks) or self.masks.ndim not in (3, 4):
            raise LabelError(
                f"expected at least one rater, found {len(self.raters)}, and a 2-D or 3-D mask of "
                f"each; found an array of shape {self.masks.shape}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the image: (y, x) or (z, y, x)."""
        return tuple(self.masks.shape[1:])

    @property
    def is_volume(self) -> bool:
        """Whether there are slices."""
        return self.masks.ndim == 4

    @cached_property
    def votes(self) -> NDArray[np.uint16]:
        """uint16, shaped as the image: number of raters that marked a voxel."""
        votes = np.zeros(self.shape, np.uint16)
        for mask in self.masks:
            votes += mask
        return votes

    @cached_property
    def marked(self) -> NDArray[np.intp]:
        """Flat indices of the voxels that some rater marked."""
        return np.flatnonzero(self.votes)


def least_votes(n_raters: int, level: float, at_level: AtLevel) -> int:
    """Return the number of raters that must mark a voxel for it to reach a level.

    Computed in whole numbers, so that 3 of 10 raters reach 0.3 exactly.

    Examples
    --------
    >>> [least_votes(6, level, AtLevel.AT_LEAST) for level in (0.1, 0.5, 0.9)]
    [1, 3, 6]
    >>> [least_votes(6, level, AtLevel.ABOVE) for level in (0.1, 0.5, 0.9)]
    [1, 4, 6]
    """
    # The decimal as written, not the nearest binary fraction.
    needed = Fraction(str(level)) * n_raters
    return math.ceil(needed) if at_level is AtLevel.AT_LEAST else math.floor(needed) + 1


def levels_reached_by_votes(n_raters: int, settings: RatersSettings) -> NDArray[np.uint8]:
    """Return uint8 (n + 1,): the number of levels that 0 ... n votes reach."""
    least = [least_votes(n_raters, level, settings.at_level) for level in settings.levels]
    return np.searchsorted(least, np.arange(n_raters + 1), side="right").astype(np.uint8)


def levels_reached(probabilities: NDArray[np.floating], settings: RatersSettings) -> NDArray[Any]:
    """Return uint8: the number of levels that each probability reaches.

    Levels are rounded to the map's own precision: a map that was saved as
    float32 with the value 0.7 reaches the level 0.7.
    """
    levels = np.asarray(settings.levels, probabilities.dtype)
    reached = np.zeros(probabilities.shape, np.uint8)
    for level in levels:
        if settings.at_level is AtLevel.AT_LEAST:
            reached += probabilities >= level
        else:
            reached += probabilities > level
    return reached


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """The number of voxels that reach each of L levels."""

    #: int64 (..., L): in the reference, in the prediction, and in both.
    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    both: NDArray[np.int64]

    def __getitem__(self, row: int) -> LevelCounts:
        """Return the counts of one slice, or of one rater left out."""
        return LevelCounts(self.reference[row], self.prediction[row], self.both[row])

    def dice(self, both_empty: BothEmpty = BothEmpty.ONE) -> FloatArray:
        """Return float64 (..., L): 2 both / (reference + prediction).

        If both sides are empty it is 1 or NaN, as set.
        """
        return dice_of(self.reference, self.prediction, self.both, both_empty)


def dice_of(
    first: NDArray[np.int64] | int,
    second: NDArray[np.int64] | int,
    both: NDArray[np.int64] | int,
    both_empty: BothEmpty = BothEmpty.ONE,
) -> FloatArray:
    """Return 2 both / (first + second); 1 or NaN, as set, if both are empty."""
    sizes = np.asarray(first, np.float64) + np.asarray(second, np.float64)
    nothing = 1.0 if both_empty is BothEmpty.ONE else math.nan
    found = np.full(sizes.shape, nothing)
    dice: FloatArray = np.divide(2.0 * np.asarray(both), sizes, out=found, where=sizes > 0)
    return dice


def count_levels(reference: NDArray[Any], prediction: NDArray[Any], n_levels: int) -> LevelCounts:
    """Count voxels by the levels that they reach on both sides.

    Parameters
    ----------
    reference, prediction
        Whole numbers, flat: the number of levels that each voxel reaches.
    n_levels
        L.
    """
    return count_levels_by_slice(np.zeros(1, np.intp), reference, prediction, n_levels, 1)[0]


def count_levels_by_slice(
    slices: NDArray[np.intp],
    reference: NDArray[Any],
    prediction: NDArray[Any],
    n_levels: int,
    n_slices: int,
) -> LevelCounts:
    """Count voxels by slice and by the levels that they reach on both sides.

    Parameters
    ----------
    slices
        The slice of each voxel, flat.
    reference, prediction, n_levels
        As for `count_levels`.
    n_slices
        Number of slices, the first axis of what is returned.
    """
    side = n_levels + 1
    codes = (slices * side + reference) * side + prediction
    table = np.bincount(codes, minlength=n_slices * side * side).reshape(n_slices, side, side)
    # A voxel that reaches a level reaches all below it.
    at_least = table[:, ::-1, ::-1].cumsum(axis=1).cumsum(axis=2)[:, ::-1, ::-1]
    return LevelCounts(
        reference=at_least[:, 1:, 0],
        prediction=at_least[:, 0, 1:],
        both=np.diagonal(at_least[:, 1:, 1:], axis1=1, axis2=2),
    )


@dataclass(frozen=True, eq=False)
class RaterAgreement:
    """The agreement of the n raters of one structure."""

    #: n names.
    raters: tuple[str, ...]
    #: int64 (n,): voxels that each marked.
    area_px: NDArray[np.int64]
    #: float64 (n, n): Dice of each two raters' masks; 1 on the diagonal.
    pairwise: FloatArray
    #: float64 (n, L): Dice of each rater's mask, taken as a probability map, against the mean of
    #: the others at each level; NaN with one rater.
    left_out: FloatArray
    #: float64 (n,): their averages over levels.
    left_out_mean: FloatArray

    @property
    def mean_pairwise(self) -> float:
        """Mean Dice over the pairs of different raters; NaN with one rater."""
        pairs = self.pairwise[np.triu_indices(len(self.raters), 1)]
        return mean_defined(pairs)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest average of a left-out rater; NaN with one rater."""
        if np.isnan(self.left_out_mean).all():
            return math.nan, math.nan
        return float(np.nanmin(self.left_out_mean)), float(np.nanmax(self.left_out_mean))


def agreement(reference: Reference, settings: RatersSettings) -> RaterAgreement:
    """Compare the raters with each other, and each with the mean of the others."""
    n = len(reference.raters)
    masks = reference.masks.reshape(n, -1)[:, reference.marked]
    areas = masks.sum(axis=1, dtype=np.int64)
    pairwise = np.ones((n, n))
    for i in range(n):
        for j in range(i):
            both = int(np.count_nonzero(masks[i] & masks[j]))
            dice = dice_of(int(areas[i]), int(areas[j]), both, settings.both_empty)
            pairwise[i, j] = pairwise[j, i] = float(dice)
    n_levels = len(settings.levels)
    left_out = np.full((n, n_levels), math.nan)
    if n > 1:
        votes = reference.votes.ravel()[reference.marked]
        by_votes = levels_reached_by_votes(n - 1, settings)
        for i, mask in enumerate(masks):
            others = by_votes[votes - mask]
            # A mask has the probabilities 0 and 1: it reaches no level, or all up to 1.
            own = levels_reached(mask.astype(np.float64), settings)
            left_out[i] = count_levels(others, own, n_levels).dice(settings.both_empty)
    means = np.array([mean_defined(row) for row in left_out])
    return RaterAgreement(reference.raters, areas, pairwise, left_out, means)


@dataclass(frozen=True, eq=False)
class MapReliability:
    """Calibration: the raters' frequency for each predicted probability."""

    #: int64 (bins,): number of voxels with a probability in each bin.
    voxels: NDArray[np.int64]
    #: float64 (bins,): sums of the probabilities, and of the raters' mean.
    predicted: FloatArray
    observed: FloatArray

    @classmethod
    def zero(cls) -> MapReliability:
        """Return the calibration of no voxels."""
        bins = RELIABILITY_BINS
        return cls(np.zeros(bins, np.int64), np.zeros(bins), np.zeros(bins))

    def __add__(self, other: MapReliability) -> MapReliability:
        """Pool two cases."""
        return MapReliability(
            self.voxels + other.voxels,
            self.predicted + other.predicted,
            self.observed + other.observed,
        )


@dataclass(frozen=True, eq=False)
class MapComparison:
    """One probability map against the raters of a structure."""

    #: Counts of the whole image, on which the score is based.
    counts: LevelCounts
    #: int64 (z, L) each: counts of each slice, to find errors in a volume. None in two dimensions.
    slices: LevelCounts | None
    #: int64 (n, L) each: against the mean of all raters but one, for each of these; the same
    #: references that the raters' own spread has. None with one rater.
    left_out: LevelCounts | None
    #: Mean over voxels and raters of (p - m)^2, m being 1 where the rater marked the voxel and 0
    #: elsewhere (Brier, Monthly Weather Review 1950); over the whole image.
    brier: float
    #: Its value for the raters' mean, the minimum over all maps.
    brier_least: float
    #: Over the whole image.
    reliability: MapReliability

    def dice(self, settings: RatersSettings) -> FloatArray:
        """Return float64 (L,): Dice at each level."""
        return self.counts.dice(settings.both_empty)

    def score(self, settings: RatersSettings) -> float:
        """Average Dice over the levels."""
        return mean_defined(self.dice(settings))

    def slice_scores(self, settings: RatersSettings) -> FloatArray:
        """Return float64 (z,): the average of each slice; empty in two dimensions."""
        if self.slices is None:
            return np.zeros(0)
        return np.array([mean_defined(row) for row in self.slices.dice(settings.both_empty)])

    def left_out_score(self, settings: RatersSettings) -> float:
        """Average over levels against all raters but one, and this over the one left out."""
        if self.left_out is None:
            return math.nan
        rows = self.left_out.dice(settings.both_empty)
        return mean_defined(np.array([mean_defined(row) for row in rows]))


def compare(
    reference: Reference, probabilities: NDArray[np.floating], settings: RatersSettings
) -> MapComparison:
    """Compare a probability map with the raters.

    Parameters
    ----------
    reference
        The raters' masks.
    probabilities
        Floating-point numbers from 0 to 1, of the reference's shape.
    settings
        The levels, and how they are reached.

    Raises
    ------
    LabelError
        If the shapes differ.
    """
    if probabilities.shape != reference.shape:
        raise LabelError(
            f"the prediction must have the raters' shape {reference.shape}, "
            f"found {probabilities.shape}"
        )
    n, n_levels = len(reference.raters), len(settings.levels)
    reached = levels_reached(probabilities, settings).ravel()
    # The background, most of the image, reaches no level on either side.
    somewhere = np.flatnonzero((reached > 0) | (reference.votes.ravel() > 0))
    own = reached[somewhere]
    votes = reference.votes.ravel()[somewhere]
    by_votes = levels_reached_by_votes(n, settings)[votes]
    slices = None
    if reference.is_volume:
        number = somewhere // (reference.shape[1] * reference.shape[2])
        slices = count_levels_by_slice(number, by_votes, own, n_levels, reference.shape[0])
    brier, least = _brier(reference, probabilities)
    return MapComparison(
        counts=count_levels(by_votes, own, n_levels),
        slices=slices,
        left_out=_without_each(reference, somewhere, votes, own, settings) if n > 1 else None,
        brier=brier,
        brier_least=least,
        reliability=_reliability(reference, probabilities),
    )


def _without_each(
    reference: Reference,
    somewhere: NDArray[np.intp],
    votes: NDArray[np.uint16],
    own: NDArray[np.uint8],
    settings: RatersSettings,
) -> LevelCounts:
    """Compare with the mean of all raters but one, for each."""
    n_levels = len(settings.levels)
    by_votes = levels_reached_by_votes(len(reference.raters) - 1, settings)
    found = [
        count_levels(by_votes[votes - mask.ravel()[somewhere]], own, n_levels)
        for mask in reference.masks
    ]
    return LevelCounts(
        reference=np.stack([counts.reference for counts in found]),
        prediction=np.stack([counts.prediction for counts in found]),
        both=np.stack([counts.both for counts in found]),
    )


def _brier(reference: Reference, probabilities: NDArray[np.floating]) -> tuple[float, float]:
    """Return the Brier score and its least value.

    With v of n raters marking a voxel, the mean over them of (p - m)^2 is
    (p - v/n)^2 + v/n (1 - v/n).
    """
    n, size = len(reference.raters), probabilities.size
    share = reference.votes.ravel()[reference.marked] / n
    least = float((share * (1.0 - share)).sum()) / size
    excess = 0.0
    for votes, own in _touched(reference.votes, probabilities):
        excess += float(np.square(own.astype(np.float64) - votes / n).sum())
    return excess / size + least, least


def _reliability(reference: Reference, probabilities: NDArray[np.floating]) -> MapReliability:
    n, bins = len(reference.raters), RELIABILITY_BINS
    found = MapReliability.zero()
    edges = np.arange(1, bins) / bins
    for votes, values in _touched(reference.votes, probabilities):
        place = np.searchsorted(edges.astype(values.dtype), values, side="right")
        found += MapReliability(
            np.bincount(place, minlength=bins).astype(np.int64),
            np.bincount(place, values, minlength=bins).astype(np.float64),
            np.bincount(place, votes / n, minlength=bins).astype(np.float64),
        )
    # All others have the probability 0, and no rater marked them.
    found.voxels[0] += probabilities.size - found.voxels.sum()
    return found


def _touched(
    votes: NDArray[np.uint16], probabilities: NDArray[np.floating]
) -> Iterator[tuple[NDArray[np.uint16], NDArray[np.floating]]]:
    """Yield votes and probabilities, flat, of voxels where either is not 0.

    Slice by slice: a volume in double precision would need twice its memory again.
    """
    for counts, values in zip(_planes(votes), _planes(probabilities), strict=True):
        there = (counts != 0) | (values != 0)
        yield counts[there], values[there]


def _planes(image: NDArray[Any]) -> Sequence[NDArray[Any]]:
    return list(image) if image.ndim == 3 else [image]


class Standing(StrEnum):
    """The position of a team relative to the spread of the raters."""

    BELOW = "below"  # worse than every rater
    WITHIN = "within"  # between the worst and the best rater, or equal to one of them
    ABOVE = "above"  # better than every rater
    UNDEFINED = ""  # one rater has no spread


def standing(score: float, spread: tuple[float, float]) -> Standing:
    """Return whether a left-out score is below, within or above the raters' own.

    Parameters
    ----------
    score
        A team's average against all raters but one (`MapComparison.left_out_score`).
    spread
        The lowest and the highest average of a rater against the others.
    """
    low, high = spread
    if math.isnan(score) or math.isnan(low):
        return Standing.UNDEFINED
    if score < low:
        return Standing.BELOW
    return Standing.ABOVE if score > high else Standing.WITHIN
