"""Figures by the conventions of published evaluation codes, from sums over regions.

The pairs of a region are found once, in O(overlapping pairs); every figure is a quotient of sums
over them, added up and averaged as its convention says. docs/reference/conventions.md
names the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import ambiguous_share
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable, overlap_table
from napari_panoptic.nuclei.windowed_evaluation import tiles_outside
from napari_panoptic.nuclei.zone import Element, Zone, counted_outside
from napari_panoptic.statistics.graphs import pairs_by_component
from napari_panoptic.statistics.means import means_defined, quotient, quotients
from napari_panoptic.values.conventions import (
    AddedOver,
    ClassMean,
    Constant,
    Convention,
    Formula,
    MeanOver,
    Nothing,
    ObjectScope,
    Pairs,
    choices_of,
    figures_of,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.integer]
BoolArray = NDArray[np.bool_]
Pieces = tuple[LabelImage, IntArray]
"""The pieces of objects as objects of the first class, and the row of the object of each."""

CENTROID_PX = 12.0
"""Largest distance of the centroids of a pair, in px: HoVer-Net's at 40x."""
MOST_DISTANCES = 25_000_000
"""Of centroids in a region: with more, their assignment would need more than memory and patience
have, also in the published code."""


class Ambiguity(StrEnum):
    """How ambiguous areas count: the policies of the settings, and those of panopticapi."""

    CLIP = "clip"
    CLIP_PREDICTIONS = "clip-predictions"
    MAJORITY = "majority"
    KEEP = "keep"
    VOID = "void"  # cut as by clip; unmatched predictions that were mostly inside are ignored
    BACKGROUND = "keep, background void"  # the same of all that is not annotated
    CLIP_BACKGROUND = "clip, background void"


@dataclass(frozen=True)
class Uncertain:
    """The rules of settings with an uncertain border, or a share of ambiguous areas."""

    settings: EvaluationSettings

    def __str__(self) -> str:
        share, zone = self.settings.ambiguous_share, self.settings.zone_px
        words = "" if share is None else f", share {share:g}"
        return f"{self.settings.ambiguous}{words}" + (f", zone {zone} px" if zone else "")


Rules = Ambiguity | Uncertain
"""Which pixels and objects count."""


def rules_of(settings: EvaluationSettings) -> Rules:
    """Return which pixels and objects count under some settings."""
    if not settings.is_uncertain:
        return Ambiguity(str(settings.ambiguous))
    names = "ambiguous", "ambiguous_share", "zone_px"
    return Uncertain(EvaluationSettings(**{name: getattr(settings, name) for name in names}))


class Sum(IntEnum):
    """The sums over the objects of a class, or of all."""

    HAD_REFERENCE = 0  # regions with an annotated object
    HAD_PREDICTION = 1  # and with a predicted one
    TP = 2
    FP = 3
    FN = 4
    IOU = 5  # of the pairs
    SHARED = 6  # pixels of the pairs
    UNION = 7  # pixels in the denominator


@dataclass(frozen=True, eq=False)
class RegionSums:
    """What every convention needs of a team in a region, under one set of rules."""

    #: "objects pairs" -> float64 (K, 8), whose columns are `Sum`: K = 1 for all together, else the
    #: number of classes. What cannot be had is missing.
    sums: Mapping[str, FloatArray]
    #: float64 (C + 1, C + 1): objects paired by centroids, rows reference, index 0 none; None with
    #: more than `MOST_DISTANCES`.
    types: FloatArray | None


def key_of(objects: ObjectScope, pairs: Pairs) -> str:
    """Return the key of `RegionSums.sums` under which a convention finds its sums."""
    if pairs is Pairs.COUNTS:
        pairs = Pairs.ABOVE_HALF
    return f"{objects} {pairs}"


# --- one region: pairs and their sums -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Side:
    """The objects of one side under an ambiguous policy."""

    #: int (n,): class, from 1.
    classes: IntArray
    #: int64 (n,): pixels that count; and bool (n,): whether the object is there.
    area: NDArray[np.int64]
    exists: BoolArray
    #: bool (n,): whether it is ignored unless it is in a pair.
    ignored: BoolArray
    #: float64 (n, 2).
    centroid_yx_px: FloatArray

    def judged(self, paired: IntArray) -> BoolArray:
        """Return which objects (n,) count: rows in pairs, and others that are not ignored."""
        counts: BoolArray = self.exists & ~self.ignored
        counts[paired] = True
        return counts


@dataclass(frozen=True, eq=False)
class Met:
    """The objects of a region and the pairs that share a counting pixel."""

    #: The objects.
    reference: _Side
    prediction: _Side
    #: int (m,): rows of the two objects of each pair, the pixels that they share, and their IoU.
    rows: IntArray
    columns: IntArray
    shared: NDArray[np.int64]
    iou: FloatArray
    #: The number of classes.
    n_classes: int

    @cached_property
    def is_same_class(self) -> BoolArray:
        """Which pairs (m,) are of one class."""
        same: BoolArray = self.reference.classes[self.rows] == self.prediction.classes[self.columns]
        return same

    @cached_property
    def union(self) -> NDArray[np.int64]:
        """The pixels (m,) of either object."""
        areas = self.reference.area[self.rows] + self.prediction.area[self.columns]
        union: NDArray[np.int64] = areas - self.shared
        return union


def met(
    table: OverlapTable,
    classes: tuple[IntArray, IntArray],
    n_classes: int,
    rules: Rules,
    counted: OverlapTable | None = None,
) -> Met:
    """Apply rules to an overlap table, as `napari_panoptic.nuclei.ambiguity` does.

    Parameters
    ----------
    table
        The counts of a region.
    classes
        Of the annotated and the predicted objects, from 1.
    n_classes
        The number of scored classes.
    rules
        Which pixels and objects count.
    counted
        The counts of the pixels outside of the zone; None without one.
    """
    if isinstance(rules, Uncertain):
        ambiguity, limit = Ambiguity(str(rules.settings.ambiguous)), rules.settings.share_limit
    else:
        ambiguity, limit = rules, 0.5 if rules is Ambiguity.MAJORITY else 1.0
    counted = counted or table
    keeps_all = ambiguity in (Ambiguity.KEEP, Ambiguity.BACKGROUND)
    cuts_reference = not keeps_all and ambiguity is not Ambiguity.CLIP_PREDICTIONS
    shared = counted.intersection
    shared = shared if keeps_all else shared - counted.void_intersection
    is_cut = cuts_reference, not keeps_all
    inside = [ambiguous_share(table.side(side)) > limit for side in Side]
    sides = [
        _side(counted.side(side), own, ambiguity, is_inside, is_cut=cut)
        for side, own, is_inside, cut in zip(Side, classes, inside, is_cut, strict=True)
    ]
    rows, columns = counted.pair_reference, counted.pair_prediction
    chosen = np.flatnonzero((shared > 0) & sides[0].exists[rows] & sides[1].exists[columns])
    rows, columns, shared = rows[chosen], columns[chosen], shared[chosen]
    if ambiguity is Ambiguity.VOID:
        mostly = table.prediction.void_area > table.prediction.area / 2
        sides[1] = replace(sides[1], ignored=mostly)
    if ambiguity in (Ambiguity.BACKGROUND, Ambiguity.CLIP_BACKGROUND):
        # The reference has no segment of background.
        covered = np.bincount(columns, shared, minlength=len(table.prediction)).astype(np.int64)
        beyond = sides[1].area - covered
        sides[1] = replace(sides[1], area=covered, ignored=beyond > sides[1].area / 2)
    union = sides[0].area[rows] + sides[1].area[columns] - shared
    iou = quotients(shared, union)
    if ambiguity is Ambiguity.MAJORITY:
        # As in the evaluation: a pair of two classes keeps its objects from being ignored, too.
        for side, paired in zip(sides, (rows, columns), strict=True):
            side.ignored[paired[iou > 0.5]] = False
    return Met(sides[0], sides[1], rows, columns, shared, iou, n_classes)


def _side(
    side: SideTable, classes: IntArray, ambiguity: Ambiguity, inside: BoolArray, *, is_cut: bool
) -> _Side:
    area = side.area - side.void_area if is_cut else side.area
    is_majority = ambiguity is Ambiguity.MAJORITY
    if is_cut and not is_majority:
        area = np.where(inside, 0, area)
    sum_yx = side.sum_yx - side.void_sum_yx if is_cut and not is_majority else side.sum_yx
    pixels = area if is_cut and not is_majority else side.area
    return _Side(
        classes=classes,
        area=area,
        exists=(side.area if is_majority else area) > 0,
        ignored=inside & is_majority,
        centroid_yx_px=sum_yx / np.maximum(pixels, 1)[:, np.newaxis],
    )


def pairs_by(rule: Pairs, found: Met, candidates: IntArray) -> IntArray:
    """Return which of the candidate pairs of objects are pairs by a rule.

    Parameters
    ----------
    rule
        The rule; one that is about overlaps.
    found
        The objects that meet.
    candidates
        int (k,): positions of the pairs to choose from, ascending.
    """
    iou = found.iou[candidates]
    match rule:
        case Pairs.ABOVE_HALF | Pairs.ABOVE_HALF_BY_ID:
            chosen = np.flatnonzero(iou > 0.5)
        case Pairs.HALF:  # one more pair outweighs every sum of IoU
            candidates = candidates[iou >= 0.5]
            return _assigned(found, candidates, 1.0 + found.iou[candidates] / _SMALL)
        case Pairs.ONE_TO_ONE:
            return _assigned(found, candidates, iou)
        case Pairs.BEST_IOU:
            columns = found.columns[candidates]
            order = np.lexsort((columns, -iou, found.rows[candidates]))
            chosen = order[np.diff(found.rows[candidates][order], prepend=-1) != 0]
        case Pairs.LARGEST_OVERLAP:
            largest = np.zeros(len(found.reference.area), np.int64)
            np.maximum.at(largest, found.rows[candidates], found.shared[candidates])
            is_largest = found.shared[candidates] == largest[found.rows[candidates]]
            chosen = np.flatnonzero(is_largest)
        case _:
            return candidates
    pairs: IntArray = candidates[chosen]
    return pairs


_SMALL = 1e6
"""By which IoUs are divided so that no sum of them reaches the weight of a pair."""


def _assigned(found: Met, candidates: IntArray, weight: FloatArray) -> IntArray:
    """Return the one-to-one subset of candidate pairs of largest summed weight."""
    rows, columns, left = found.rows[candidates], found.columns[candidates], np.arange(len(weight))
    if all(np.bincount(of).max(initial=0) <= 1 for of in (rows, columns)):
        return candidates  # no two compete
    chosen: list[IntArray] = []
    while len(left):
        # A pair that outweighs the best others of both its objects together is in the best subset.
        others = sum(_best_other(of[left], weight[left]) for of in (rows, columns))
        sure = left[weight[left] >= others]
        for of in (rows, columns):  # of equal ones, the first
            sure = sure[np.unique(of[sure], return_index=True)[1]]
        if not len(sure):
            break
        chosen.append(sure)
        taken = np.isin(rows[left], rows[sure]) | np.isin(columns[left], columns[sure])
        left = left[~taken]
    for group in pairs_by_component(rows[left], columns[left]):
        own = left[group]
        chosen.append(own[_heaviest(rows[own], columns[own], weight[own])])
    found_pairs: IntArray = np.sort(candidates[np.concatenate([left[:0], *chosen])])
    return found_pairs


def _best_other(of: IntArray, weight: FloatArray) -> FloatArray:
    """Return, for each pair (k,) of an object, the largest weight of its other pairs, or 0."""
    order = np.lexsort((-weight, of))
    starts = np.diff(of[order], prepend=-1) != 0
    is_first = np.zeros(len(of), bool)
    is_first[order] = starts
    first, second = (np.zeros(of.max(initial=-1) + 1) for _ in range(2))
    first[of[order[starts]]] = weight[order[starts]]
    after = np.flatnonzero(starts[:-1] & ~starts[1:]) + 1
    second[of[order[after]]] = weight[order[after]]
    return np.where(is_first, second[of], first[of])


def _heaviest(rows: IntArray, columns: IntArray, weight: FloatArray) -> IntArray:
    """Return the positions of the one-to-one pairs of largest summed weight (k,), all positive."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    (_, i), (_, j) = (np.unique(of, return_inverse=True) for of in (rows, columns))
    n, m = int(i.max()) + 1, int(j.max()) + 1
    # Each row has a column of its own, for rows that stay alone; all weigh 1 more than they do.
    ends = np.concatenate([i, np.arange(n)]), np.concatenate([j, m + np.arange(n)])
    graph = coo_array((np.concatenate([weight + 1.0, np.ones(n)]), ends), shape=(n, m + n))
    own, other = min_weight_full_bipartite_matching(graph.tocsr(), maximize=True)
    keys = i.astype(np.int64) * (m + n) + j
    chosen: IntArray = np.flatnonzero(np.isin(keys, own.astype(np.int64) * (m + n) + other))
    return chosen


_OVERLAP_RULES = (
    *(Pairs.ABOVE_HALF, Pairs.HALF, Pairs.BEST_IOU, Pairs.ONE_TO_ONE, Pairs.LARGEST_OVERLAP),
    *(Pairs.ANY_OVERLAP, Pairs.PIXELS),
)


def sums_by(rule: Pairs, found: Met, *, by_class: bool) -> FloatArray:
    """Sum up the pairs by a rule, and what is in none; float64 (K, 8), see `Sum`."""
    n = found.n_classes if by_class else 1
    sides = found.reference, found.prediction
    scope = [side.classes - 1 if by_class else np.zeros(len(side.area), np.intp) for side in sides]
    candidates = np.flatnonzero(found.is_same_class) if by_class else np.arange(len(found.rows))
    pairs = pairs_by(rule, found, candidates)
    rows, columns, own = found.rows[pairs], found.columns[pairs], scope[0][found.rows[pairs]]

    def summed(of: IntArray, values: IntArray | FloatArray | None = None) -> NDArray[Any]:
        return np.bincount(of, values, minlength=n)

    sums = np.zeros((n, len(Sum)))
    is_of_pixels = rule in (Pairs.ANY_OVERLAP, Pairs.PIXELS)
    sums[:, Sum.TP] = summed(own)
    sums[:, Sum.IOU] = summed(own, found.iou[pairs])
    sums[:, Sum.SHARED] = summed(own, found.shared[pairs])
    if rule is not Pairs.PIXELS:
        union = found.union[pairs] + (found.shared[pairs] if is_of_pixels else 0)
        sums[:, Sum.UNION] = summed(own, union)
    for side, of, used, had, alone in zip(
        sides,
        scope,
        (rows, columns),
        (Sum.HAD_REFERENCE, Sum.HAD_PREDICTION),
        (Sum.FN, Sum.FP),
        strict=True,
    ):
        judged = side.judged(used)
        counts = side.area > 0 if rule is Pairs.PIXELS else judged
        is_alone = judged.copy()
        is_alone[used] = False
        left = np.flatnonzero(counts if rule is Pairs.PIXELS else is_alone)
        sums[:, had] = summed(of[counts]) > 0
        sums[:, alone] = summed(of[is_alone])
        if rule is not Pairs.ANY_OVERLAP:
            sums[:, Sum.UNION] += summed(of[left], side.area[left])
    return sums


def types_of(found: Met) -> FloatArray | None:
    """Pair objects by centroids; float64 (C + 1, C + 1), or None with too many objects.

    The least total distance over all objects, then pairs of at most `CENTROID_PX`
    (Graham et al., HoVer-Net, 2019).
    """
    rows, columns = np.flatnonzero(found.reference.exists), np.flatnonzero(found.prediction.exists)
    if len(rows) * len(columns) > MOST_DISTANCES:
        return None
    i, j = centroid_pairs(found, rows, columns)
    n = found.n_classes + 1
    own, other = found.reference.classes, found.prediction.classes
    types = np.zeros((n, n))
    np.add.at(types, (own[i], other[j]), 1)
    alone = (
        np.setdiff1d(np.flatnonzero(side.judged(used)), used)
        for side, used in ((found.reference, i), (found.prediction, j))
    )
    types[:, 0], types[0] = (
        np.bincount(of[rest], minlength=n) for of, rest in zip((own, other), alone, strict=True)
    )
    return types


def centroid_pairs(found: Met, rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows and columns of the objects that are paired by their centroids."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    ends = found.reference.centroid_yx_px[rows], found.prediction.centroid_yx_px[columns]
    distance = cdist(*ends)
    i, j = linear_sum_assignment(distance)
    near = distance[i, j] <= CENTROID_PX
    return rows[i[near]], columns[j[near]]


def region_sums(
    table: OverlapTable,
    classes: tuple[IntArray, IntArray],
    n_classes: int,
    ambiguity: Ambiguity,
) -> RegionSums:
    """Sum up a region for all conventions but those of pieces and class masks; see `met`."""
    found = met(table, classes, n_classes, ambiguity)
    sums = {
        key_of(objects, rule): sums_by(rule, found, by_class=objects is ObjectScope.BY_CLASS)
        for objects in (ObjectScope.TOGETHER, ObjectScope.BY_CLASS)
        for rule in _OVERLAP_RULES
    }
    sums |= _sums_of_nuceval(found)
    types = types_of(found)
    if types is not None:
        alone = np.zeros((1, len(Sum)))
        alone[0, : Sum.FN + 1] = (
            *(types[1:].any(), types[:, 1:].any()),
            *(types[1:, 1:].sum(), types[0].sum(), types[:, 0].sum()),
        )
        sums[key_of(ObjectScope.TOGETHER, Pairs.CENTROIDS)] = alone
    return RegionSums(sums, types)


def _sums_of_nuceval(found: Met) -> dict[str, FloatArray]:
    # The best of equal IoUs has the larger union.
    nearly = replace(found, iou=found.shared / (found.union + 1e-6))
    return {
        key_of(ObjectScope.NUCEVAL, rule): sums_by(rule, own, by_class=False)
        for rule, own in (
            *((rule, found) for rule in (Pairs.PIXELS, Pairs.ABOVE_HALF)),
            (Pairs.BEST_IOU, nearly),
        )
    }


def sums_of_pair(
    pair: LabelPair | TiledPair,
    table: OverlapTable,
    rules: Rules,
    outside: OverlapTable | None = None,
    whole_pieces: Callable[[LabelImage], Pieces] | None = None,
) -> RegionSums:
    """Sum up a label pair for all conventions but those of class masks.

    Those of pieces are missing for a pair that is read in windows. With an uncertain border, or
    a share of ambiguous areas, only the conventions that know them have sums.

    Parameters
    ----------
    pair, table
        The label pair, each pixel in one object, and its counts.
    rules
        Which pixels and objects count.
    outside
        The counts of the pixels outside of the uncertain border; None if they are not known: for
        a pair that is read in windows, all sums are missing then.
    whole_pieces
        Returns the pieces of objects from which nothing is cut; None to find them.
    """
    classes = pair.reference.class_index, pair.prediction.class_index
    n = len(pair.class_names)
    if isinstance(rules, Uncertain):
        if isinstance(pair, LabelPair):
            outside = outside or counted_outside(pair, table, rules.settings)
            other = counted_outside(pair, table, rules.settings, Element.NUCEVAL)
        elif outside is None:
            return RegionSums({}, None)
        else:
            zone = Zone.of(table, rules.settings, Element.NUCEVAL)
            other = tiles_outside(pair, table, zone)
        found = met(table, classes, n, rules, outside)
        key = key_of(ObjectScope.BY_CLASS, Pairs.ABOVE_HALF)
        usual = {key: sums_by(Pairs.ABOVE_HALF, found, by_class=True)}
        return RegionSums(usual | _sums_of_nuceval(met(table, classes, n, rules, other)), None)
    sums = region_sums(table, classes, n, rules)
    if not isinstance(pair, LabelPair):
        return sums
    return replace(sums, sums={**sums.sums, **sums_of_pieces(pair, rules, whole_pieces)})


def sums_of_pieces(
    pair: LabelPair,
    ambiguity: Ambiguity,
    whole_pieces: Callable[[LabelImage], Pieces] | None = None,
) -> dict[str, FloatArray]:
    """Sum up a region with every object split into its 8-connected pieces; see `sums_of_pair`.

    Areas that are cut from objects are cut first, so that they can part an object too.
    """
    is_cut = ambiguity not in (Ambiguity.KEEP, Ambiguity.MAJORITY, Ambiguity.BACKGROUND)
    whole_pieces = whole_pieces or pieces_of

    def split(labels: LabelImage, *, cuts: bool) -> LabelImage:
        cut = pair.ambiguous if cuts else None
        return (whole_pieces(labels) if cut is None else pieces_of(labels, cut))[0]

    sides = (
        split(pair.reference, cuts=is_cut and ambiguity is not Ambiguity.CLIP_PREDICTIONS),
        split(pair.prediction, cuts=is_cut),
    )
    table = overlap_table(LabelPair(sides[0], sides[1], pair.ambiguous, pair.mpp))
    ones = np.ones(len(sides[0]), np.intp), np.ones(len(sides[1]), np.intp)
    found = met(table, ones, 1, ambiguity)
    return {
        key_of(ObjectScope.PIECES, rule): sums_by(rule, found, by_class=False)
        for rule in _OVERLAP_RULES
    }


def pieces_of(labels: LabelImage, cut: BoolArray | None = None) -> Pieces:
    """Split objects into their 8-connected pieces.

    Parameters
    ----------
    labels
        The objects.
    cut
        bool image (y, x): the pixels that count for none; None for no pixel.

    Returns
    -------
    pieces
        As objects of the first class.
    rows
        int (k,): of each piece, the row of its object.
    """
    from skimage.measure import label

    index = labels.index if cut is None else np.where(cut, 0, labels.index)
    pieces, n = label(index, background=0, return_num=True, connectivity=2)
    ids = np.arange(1, n + 1)
    rows = np.zeros(n + 1, np.intp)
    rows[pieces] = index
    split = LabelImage(
        index=pieces.astype(np.int32),
        ids=ids,
        class_index=np.ones(n, np.int16),
        original_ids=ids,
        class_names=labels.class_names,
    )
    return split, rows[1:] - 1


# --- a team over regions ------------------------------------------------------------------------


@dataclass(frozen=True)
class RegionPlace:
    """Where a region belongs; empty for what is not known."""

    #: Its patient, the tissue of that, and its part of a cross-validation.
    patient: str
    tissue: str = ""
    fold: str = ""


@dataclass(frozen=True)
class Value:
    """A figure of a team."""

    #: NaN where the published code has none: skipped, undefined, or an error.
    value: float
    #: How many regions or groups the last mean is over; None where counts are pooled.
    units: int | None


class TeamSums:
    """The sums of a team over regions, from which all its figures follow.

    Parameters
    ----------
    places
        Of the R regions.
    regions
        Their sums.
    """

    def __init__(self, places: Sequence[RegionPlace], regions: Sequence[RegionSums]) -> None:
        self.places, self.regions = tuple(places), tuple(regions)
        self._stacks: dict[str, FloatArray | None] = {}

    def __len__(self) -> int:
        """Count the regions."""
        return len(self.regions)

    @cached_property
    def levels(self) -> dict[MeanOver, tuple[IntArray, ...]]:
        """What is averaged over -> numbers (R,) of the groups of regions, the smallest first.

        What no region has is no level; -1 for a region of no group.
        """
        names = ("patient", "tissue", "fold")
        texts = [[getattr(place, name) for place in self.places] for name in names]
        patients, tissues, folds = (np.unique(own, return_inverse=True)[1] for own in texts)
        tissues = np.where([bool(text) for text in texts[1]], tissues, -1)
        of_tissue = (tissues,) if any(texts[1]) else ()
        within = tissues * len(self.places) + folds if of_tissue else folds
        if of_tissue:
            within = np.where(tissues < 0, -1, within)
        by_fold = (within,) if any(texts[2]) else ()
        return {
            MeanOver.PATIENTS: (patients,),
            MeanOver.TISSUES: of_tissue,
            MeanOver.FOLDS: (*by_fold, *of_tissue),
        }

    def stack(self, key: str) -> FloatArray | None:
        """Return the sums (R, K, 8) of a key; None if a region has none."""
        if key not in self._stacks:
            found = [region.sums.get(key) for region in self.regions]
            is_whole = bool(found) and all(own is not None for own in found)
            self._stacks[key] = np.stack(found) if is_whole else None  # type: ignore[arg-type]
        return self._stacks[key]

    def in_effect(self, convention: Convention) -> Convention:
        """Return a convention with the average that there is: without tissues, over regions."""
        mean_over = convention.mean_over
        if mean_over is MeanOver.FOLDS and len(self.levels[mean_over]) < 2:
            is_by_tissue = bool(self.levels[MeanOver.TISSUES])
            mean_over = (
                MeanOver.TISSUES if is_by_tissue or not self.levels[mean_over] else mean_over
            )
        if mean_over is MeanOver.TISSUES and not self.levels[mean_over]:
            mean_over = MeanOver.REGIONS
        return replace(convention, mean_over=mean_over)

    def figure(self, formula: Formula, convention: Convention) -> Value:
        """Compute a figure of all objects."""
        return self._figure(formula, convention)[0]

    def by_class(self, formula: Formula, convention: Convention) -> list[Value]:
        """Compute a figure of each class; empty if there is none."""
        return self._figure(formula, convention)[1]

    def _figure(self, formula: Formula, convention: Convention) -> tuple[Value, list[Value]]:
        stack = self.stack(key_of(convention.objects, convention.pairs))
        if stack is None:
            return _NOTHING, []
        if formula is Formula.R2:
            return _of_classes(_r2(stack))
        if formula in (Formula.TYPE_F1, Formula.TYPE_ACCURACY):
            known = [own.types for own in self.regions if own.types is not None]
            f1, accuracy = _of_types(np.sum(known, axis=0))
            return Value(accuracy, None), _of_classes(f1)[1]
        stack, counts = self._counted(stack, convention)
        if convention.added_over is not AddedOver.REGION:
            units = self._units(convention)
            stack, counts = _added(stack, units), _added(counts, units) > 0
        values, is_error = _values(stack, counts, formula, convention)
        if is_error.any():
            return _NOTHING, []
        if convention.mean_over is MeanOver.NUCLEI:
            weight = self._annotated(convention)
            return Value(quotient(float(values[:, 0] @ weight), float(weight.sum())), len(self)), []
        if convention.mean_over is MeanOver.NOTHING:
            return _of_classes(values[0])
        levels = self._levels_of(convention)
        classes = [_mean_over(own, levels) for own in values.T]
        if convention.classes is ClassMean.LAST:
            return _of_classes(np.array([own.value for own in classes]))[0], classes
        return _mean_over(means_defined(values, axis=1), levels), classes

    def without_each(self, formula: Formula, convention: Convention) -> FloatArray:
        """Compute a figure of all objects without each region (R,), but for rounding.

        Its row is subtracted from the sums that it is part of. A quotient of sums only.
        """
        stack = self.stack(key_of(convention.objects, convention.pairs))
        if stack is None:
            return np.full(len(self), np.nan)
        stack, counts = self._counted(stack, convention)
        units = self._units(convention)
        added, counted, regions = (
            _added(own, units) for own in (stack, counts, np.ones(len(self)))
        )
        before, is_error = _values(added, counted > 0, formula, convention)
        after, is_error_after = _values(
            added[units] - stack, counted[units] > counts, formula, convention
        )
        is_rest = regions[units] > 1
        if convention.mean_over is MeanOver.NUCLEI:
            weight = self._annotated(convention)
            weighted = weight * before[:, 0]
            return quotients(weighted.sum() - weighted, weight.sum() - weight)
        after[~is_rest] = np.nan
        errors = np.asarray(is_error.any(axis=1))
        others = np.count_nonzero(errors) - errors[units]
        if (
            convention.mean_over is not MeanOver.NOTHING
            and convention.classes is not ClassMean.LAST
        ):
            before, after = (means_defined(own, axis=1)[:, np.newaxis] for own in (before, after))
        for groups in (*self._levels_of(convention), np.zeros(len(self), np.intp)):
            before, after, units = _regrouped(before, after, units, groups)
        found = means_defined(after, axis=1)
        found[(others > 0) | (is_error_after.any(axis=1) & is_rest)] = np.nan
        return found

    def _counted(self, stack: FloatArray, convention: Convention) -> tuple[FloatArray, BoolArray]:
        """Return the sums that count, the others as 0, and which classes (R, K) of regions do."""
        had = stack[..., Sum.HAD_REFERENCE] > 0, stack[..., Sum.HAD_PREDICTION] > 0
        match convention.nothing:
            case Nothing.NO_REFERENCE:
                counts = had[0]
            case Nothing.BOTH_EMPTY:
                counts = had[0] | had[1]
            case Nothing.EITHER_EMPTY:
                counts = had[0] & had[1]
            case _:
                counts = np.ones(stack.shape[:2], bool)
        return stack * counts[..., np.newaxis], counts

    def _annotated(self, convention: Convention) -> FloatArray:
        """Return the number (R,) of annotated nuclei that count in each region."""
        key = key_of(convention.objects, Pairs.ABOVE_HALF)
        return np.array([own.sums[key][0, _ANNOTATED].sum() for own in self.regions])

    def _units(self, convention: Convention) -> IntArray:
        """Return the number (R,) of the region, patient or set that each region is added to."""
        match convention.added_over:
            case AddedOver.REGION:
                return np.arange(len(self))
            case AddedOver.SET:
                return np.zeros(len(self), np.intp)
        return self.levels[MeanOver.PATIENTS][0]

    def _levels_of(self, convention: Convention) -> tuple[IntArray, ...]:
        """Return the groups that units are averaged over, before all are."""
        if convention.added_over is AddedOver.PATIENT:
            return ()
        return self.levels.get(convention.mean_over, ())


def _added(values: FloatArray | BoolArray, units: IntArray) -> FloatArray:
    """Add rows (R, ...) by the number of their unit."""
    added = np.zeros((units.max(initial=-1) + 1, *values.shape[1:]))
    np.add.at(added, units, values)
    return added


def _values(
    stack: FloatArray, counts: BoolArray, formula: Formula, convention: Convention
) -> tuple[FloatArray, BoolArray]:
    """Return the quotients (U, K) of regions, patients or the set; NaN where left out.

    And which of them are errors of the published code.
    """
    values = _quotients(stack, formula, convention.constant)
    is_of_pixels = formula in (Formula.SHARED, Formula.DICE)
    below = stack[..., Sum.UNION] if is_of_pixels else stack[..., _COUNTS].sum(axis=-1)
    raises = convention.nothing in (Nothing.ERROR, Nothing.ERROR_PREDICTION)
    is_error = (below == 0) & raises
    if convention.nothing is Nothing.ERROR_PREDICTION:
        is_error |= stack[..., Sum.HAD_PREDICTION] == 0
    values[np.isnan(values)] = 0.0
    if convention.nothing is Nothing.ONE:
        values[below == 0] = 1.0
    values[~counts] = np.nan
    return values, is_error


def _regrouped(
    before: FloatArray, after: FloatArray, units: IntArray, groups: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Average units over groups, with all regions and without each.

    Parameters
    ----------
    before
        The values (U, K) of units.
    after
        The value (R, K) of the unit of each region without that region.
    units, groups
        The number (R,) of the unit and of the group of each region; -1 for no group.

    Returns
    -------
    The same three of the groups.
    """
    is_in = groups >= 0
    of_unit = np.full(len(before), -1)
    of_unit[units] = groups
    before = np.where(of_unit[:, np.newaxis] >= 0, before, np.nan)
    after = np.where(is_in[:, np.newaxis], after, np.nan)
    of_unit, groups = np.maximum(of_unit, 0), np.maximum(groups, 0)
    known, left = ~np.isnan(before), ~np.isnan(after)
    total, n = _added(np.where(known, before, 0.0), of_unit), _added(known, of_unit)
    own = np.where(known, before, 0.0)[units]
    rest = total[groups] - own + np.where(left, after, 0.0)
    return quotients(total, n), quotients(rest, n[groups] - known[units] + left), groups


def figure_rows(
    sums: TeamSums, names: Iterable[str], rules: Rules, classes: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``conventions.csv`` but for the team: of all objects, then of each class.

    Parameters
    ----------
    sums
        Of a team.
    names
        The conventions; see `napari_panoptic.values.conventions.figures_of`.
    rules
        Which pixels and objects count in the sums.
    classes
        The names of the scored classes.
    """
    for name in names:
        for figure in figures_of(name):
            found = []
            if figure.of_all:
                found.append(("", sums.figure(figure.formula, figure.convention)))
            if figure.of_classes:
                by_class = sums.by_class(figure.formula, figure.convention)
                found += zip(classes, by_class, strict=False)
            choices = choices_of(sums.in_effect(figure.convention), str(rules))
            for word, one in found:
                place = {"convention": name, "figure": figure.name, "class": word}
                yield {**place, "value": one.value, "units": one.units, **choices}


_NOTHING = Value(float("nan"), None)
_COUNTS = [Sum.TP, Sum.FP, Sum.FN]
_ANNOTATED = [Sum.TP, Sum.FN]


def _quotients(sums: FloatArray, formula: Formula, constant: Constant) -> FloatArray:
    """Compute a formula of sums (..., 8); NaN for 0 / 0."""
    tp, fp, fn, iou, shared, union = np.moveaxis(sums[..., Sum.TP :], -1, 0)
    weight = tp + fp / 2 + fn / 2
    every = {Constant.EVERY: 1e-8, Constant.LARGER: 1e-6}.get(constant, 0.0)
    of_sq = 1e-6 if constant in (Constant.SQ, Constant.BOTH) else every
    of_dq = 1e-6 if constant is Constant.BOTH else every
    match formula:
        case Formula.PQ if constant is Constant.NONE:
            return quotients(iou, weight)
        case Formula.PQ:
            return quotients(tp, weight + of_dq) * quotients(iou, tp + of_sq)
        case Formula.SQ:
            return quotients(iou, tp + of_sq)
        case Formula.DQ:
            return quotients(tp, weight + of_dq)
        case Formula.PRECISION:
            return quotients(tp, tp + fp + every)
        case Formula.RECALL:
            return quotients(tp, tp + fn + every)
        case Formula.ACCURACY:
            return quotients(tp, tp + fp + fn + every)
        case Formula.TRUE_SCORE:
            return quotients(iou, tp + fn + every)
        case Formula.SHARED:
            return quotients(shared, union + every)
        case Formula.DICE:
            return quotients(2 * shared, union + every)
    raise ValueError(f"{formula} is no quotient of these sums")


def _mean_over(values: FloatArray, levels: Iterable[IntArray]) -> Value:
    """Average values (R,) over groups of regions, the smallest groups first."""
    at_hand = np.arange(len(values))
    for groups in levels:
        belongs = groups[at_hand] >= 0
        at_hand, values = at_hand[belongs], values[belongs]
        # Groups of regions lie within the groups of the next level.
        numbers, firsts, place = np.unique(groups[at_hand], return_index=True, return_inverse=True)
        known = ~np.isnan(values)
        total = np.bincount(place[known], values[known], minlength=len(numbers))
        values = quotients(total, np.bincount(place[known], minlength=len(numbers)))
        at_hand = at_hand[firsts]
    units = int((~np.isnan(values)).sum())
    return Value(float(means_defined(values, axis=0)), units)


def _of_classes(values: FloatArray) -> tuple[Value, list[Value]]:
    """Return the mean of pooled figures (K,), and the figures."""
    mean = float(means_defined(values, axis=0))
    return Value(mean, None), [Value(float(value), None) for value in values]


def _r2(stack: FloatArray) -> FloatArray:
    """Compute R2 (K,) of numbers of objects over regions, as scikit-learn does."""
    true = stack[..., Sum.TP] + stack[..., Sum.FN]
    predicted = stack[..., Sum.TP] + stack[..., Sum.FP]
    residual = ((true - predicted) ** 2).sum(axis=0)
    total = ((true - true.mean(axis=0)) ** 2).sum(axis=0)
    found = 1 - quotients(residual, total)
    found[total == 0] = (residual == 0)[total == 0]
    return found if len(stack) > 1 else np.full(len(found), np.nan)


def _of_types(types: FloatArray) -> tuple[FloatArray, float]:
    """Compute F1 (C,) of each type that was annotated, and the accuracy, as HoVer-Net does."""
    paired, own = types[1:, 1:], np.diagonal(types)[1:]
    wrong = paired.sum(axis=0) + paired.sum(axis=1) - 2 * own
    f1 = quotients(2 * own, 2 * own + 2 * wrong + types[0, 1:] + types[1:, 0])
    f1[types[1:].sum(axis=1) == 0] = np.nan
    return f1, float(quotients(own.sum(), paired.sum()))
