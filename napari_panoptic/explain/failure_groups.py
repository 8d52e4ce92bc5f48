"""Groups the objects of splits, mergers and duplicates, and computes the PQ that each costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.explain.what_if import tally, tally_all
from napari_panoptic.kernels.counts import pair_keys, pair_rows
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.distances import KnownDistances
from napari_panoptic.nuclei.evaluate import Evaluation, evaluated
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts, Metrics, unit_metrics
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.statistics.graphs import chosen_components
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import AmbiguousPolicy, Matching
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Status

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
NO_GROUP = -1


class GroupKind(StrEnum):
    """The kind of error in a group."""

    SPLIT = "split"  # several predictions share one reference object
    MERGER = "merger"  # one prediction contains several reference objects
    DUPLICATE = "duplicate"  # further predictions in a matched reference object
    MIXED = "mixed"  # a merger with a split or duplicate


_OVER = (Cause.SPLIT, Cause.FRAGMENT, Cause.DUPLICATE)
_SPLIT = (Cause.SPLIT, Cause.FRAGMENT)
_UNDER = (Cause.MERGED, Cause.MERGER)


@dataclass(frozen=True, eq=False)
class FailureGroup:
    """The objects of one split, merger or duplicate."""

    #: What went wrong.
    kind: GroupKind
    #: int64: rows of the objects in the group, ascending, including matched objects.
    reference_rows: IntArray
    prediction_rows: IntArray
    #: int64 (k,): rows of the pairs within the group that share pixels which count.
    pair_reference: IntArray
    pair_prediction: IntArray
    #: int64 (k,): pixels that they share.
    intersection_px: IntArray
    #: float64 (k,): these pixels as a share of the area of each of the two objects, after the
    #: ambiguous policy.
    share_of_reference: FloatArray
    share_of_prediction: FloatArray
    #: y0, x0, y1, x1 in px, half open: the bounding box of all objects.
    bbox: tuple[int, int, int, int]
    #: PQ of the region if the group were merged and cut as :func:`counts_if_merged` does, minus its
    #: PQ now. Negative where the merged object would be the worse one.
    pq_lost: float


@dataclass(frozen=True, eq=False)
class CohortLoss:
    """The PQ that all groups of a kind cost over several regions."""

    #: Which groups; None for all kinds together.
    kind: GroupKind | None
    #: Number of groups.
    groups: int
    #: Counts summed over the regions: as evaluated, and with all these groups merged and cut
    #: together. ``after`` has no distances.
    before: Counts
    after: Counts

    @property
    def pq_lost(self) -> float:
        """PQ of the summed counts after, minus before; NaN without objects."""
        return unit_metrics(self.after).pq - unit_metrics(self.before).pq


def failure_groups(evaluation: Evaluation) -> tuple[FailureGroup, ...]:
    """Find the splits, mergers and duplicates of a region.

    Two objects are connected if they match, or if one lies mostly (more than half of its area
    after the ambiguous policy) inside the other. A group is a connected component with at least
    one unmatched object of cause split, merged, fragment, merger or duplicate. Ignored objects
    take no part.

    Parameters
    ----------
    evaluation
        What was evaluated; not changed.

    Returns
    -------
    tuple of FailureGroup
        The group that costs the most PQ first. No object is in two groups.

    Raises
    ------
    LabelError
        If objects keep shared pixels, because the areas of merged objects cannot be added then.

    Notes
    -----
    With strict IoU and a threshold of at least 0.5, no group changes the outcomes of another, and
    one pass computes the losses of all. Other rules (and ``majority`` with an ambiguous area) need
    one pass for each group.
    """
    links = _links(evaluation)
    sets = _group_sets(evaluation, links)
    if sets.n == 0:
        return ()
    groups = _assembled_groups(evaluation, links, sets, _losses(evaluation, links, sets))
    return tuple(sorted(groups, key=lambda group: (-group.pq_lost, group.bbox)))


def counts_if_merged(evaluation: Evaluation, groups: Sequence[FailureGroup]) -> Counts:
    """Count the region as if the groups had been segmented in one piece each.

    First, every prediction that contains more than half of each of two or more reference objects of
    its group is cut along them: each reference object gets the part inside it, and the rest is
    removed. Then the parts and predictions that lie in one reference object (with more than half of
    their area, or matched by it) become one object, whose class is that of most of its area (the
    earlier class if equal). Finally, all objects are matched again.

    Parameters
    ----------
    evaluation
        What was evaluated; not changed.
    groups
        Groups of this evaluation, edited together.

    Returns
    -------
    Counts
        The counts of the edited label image, but without Hausdorff distances, because outlines are
        not in the overlap table. They are computed from areas and intersections, which are
        additive. Only rules that use centroids or first pixels (centroid rule, threshold below 0.5)
        need the pixels of the predictions to be cut.
    """
    edited = _outcomes_if_merged(evaluation, groups)
    return tally_all(edited).counts(edited.class_names)


def statuses_if_merged(evaluation: Evaluation, group: FailureGroup) -> NDArray[np.int8]:
    """Return the status code that each reference object of a group would have.

    See :func:`counts_if_merged` for the edit. In the order of `reference_rows`.
    """
    return _outcomes_if_merged(evaluation, [group]).reference.status[group.reference_rows]


def _outcomes_if_merged(evaluation: Evaluation, groups: Sequence[FailureGroup]) -> Outcomes:
    set_of_reference = np.full(len(evaluation.outcomes.reference), NO_GROUP, np.int64)
    set_of_prediction = np.full(len(evaluation.outcomes.prediction), NO_GROUP, np.int64)
    for number, group in enumerate(groups):
        set_of_reference[group.reference_rows] = number
        set_of_prediction[group.prediction_rows] = number
    sets = _Sets(len(groups), set_of_reference, set_of_prediction)
    links = _links(evaluation)
    return _evaluate_plan(evaluation, links, _plan(evaluation, links, sets))


def pq_if_merged(evaluation: Evaluation, group: FailureGroup) -> Metrics:
    """Compute the metrics of the region as if a group had been segmented in one piece.

    See :func:`counts_if_merged` for the edit. The mean Hausdorff distance is NaN.
    """
    return unit_metrics(counts_if_merged(evaluation, [group]))


def lost_over(evaluations: Iterable[Evaluation]) -> tuple[CohortLoss, ...]:
    """Sum the PQ that each kind of group costs over the regions of a team.

    Parameters
    ----------
    evaluations
        One per region; used one after the other and not kept.

    Returns
    -------
    tuple of CohortLoss
        One per kind, then one for all kinds together (kind None); empty without evaluations. The
        losses of the kinds do not add up to the loss of all, because PQ is a quotient.
    """
    before: list[Counts] = []
    after: dict[GroupKind | None, list[Counts]] = {kind: [] for kind in (*GroupKind, None)}
    number = dict.fromkeys(after, 0)
    for evaluation in evaluations:
        before.append(evaluation.counts)
        groups = failure_groups(evaluation)
        for kind, counts in after.items():
            chosen = [group for group in groups if kind in (None, group.kind)]
            number[kind] += len(chosen)
            counts.append(counts_if_merged(evaluation, chosen) if chosen else evaluation.counts)
    if not before:
        return ()
    names = before[0].class_names
    total = summed(before, names)
    return tuple(
        CohortLoss(kind, number[kind], total, _without_distances(summed(counts, names)))
        for kind, counts in after.items()
    )


def _without_distances(counts: Counts) -> Counts:
    nothing = Counts.zero(counts.class_names)
    return replace(
        counts,
        hausdorff_sum_px=nothing.hausdorff_sum_px,
        hausdorff_pairs=nothing.hausdorff_pairs,
        hausdorff95_sum_px=nothing.hausdorff95_sum_px,
    )


# --- groups of objects ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Links:
    """The pairs of objects that are not ignored, and whether one object lies inside the other."""

    judged: JudgedOverlap
    reference: IntArray  # rows
    prediction: IntArray
    shared: IntArray
    reference_inside: BoolArray  # more than half of the reference object is in the prediction
    prediction_inside: BoolArray


@dataclass(frozen=True, eq=False)
class _Sets:
    """Disjoint sets of objects: the set of each row, or NO_GROUP."""

    n: int
    of_reference: IntArray
    of_prediction: IntArray

    def holds(self, links: _Links) -> BoolArray:
        """Return which pairs have both objects in one set."""
        own = self.of_reference[links.reference]
        within: BoolArray = (own != NO_GROUP) & (own == self.of_prediction[links.prediction])
        return within


def _links(evaluation: Evaluation) -> _Links:
    if evaluation.pair.has_planes:
        # The areas of merged objects are added, so that shared pixels would count twice.
        raise LabelError(
            'groups are only available if objects share no pixels: set overlaps to "flatten"'
        )
    judged, outcomes = evaluation.judged, evaluation.outcomes
    ignored = STATUS_CODE[Status.IGNORED]
    kept = (outcomes.reference.status[judged.pair_reference] != ignored) & (
        outcomes.prediction.status[judged.pair_prediction] != ignored
    )
    reference = judged.pair_reference[kept].astype(np.int64)
    prediction = judged.pair_prediction[kept].astype(np.int64)
    shared = judged.intersection[kept]
    return _Links(
        judged=judged,
        reference=reference,
        prediction=prediction,
        shared=shared,
        reference_inside=2 * shared > judged.reference.area[reference],
        prediction_inside=2 * shared > judged.prediction.area[prediction],
    )


def _group_sets(evaluation: Evaluation, links: _Links) -> _Sets:
    """Return the failure group of each object."""
    outcomes = evaluation.outcomes
    matched = outcomes.reference.partner[links.reference] == links.prediction
    edge = links.reference_inside | links.prediction_inside | matched
    n_reference = len(outcomes.reference)
    causes = [CAUSE_CODE[cause] for cause in (*_OVER, *_UNDER)]
    cause = np.concatenate([outcomes.reference.cause, outcomes.prediction.cause])
    number, n = chosen_components(
        links.reference[edge], n_reference + links.prediction[edge], np.isin(cause, causes)
    )
    return _Sets(n, number[:n_reference], number[n_reference:])


def _assembled_groups(
    evaluation: Evaluation, links: _Links, sets: _Sets, losses: FloatArray
) -> list[FailureGroup]:
    judged, table = links.judged, evaluation.table
    of_pair = np.where(sets.holds(links), sets.of_reference[links.reference], NO_GROUP)
    of_object = np.concatenate([sets.of_reference, sets.of_prediction])
    bbox = np.concatenate([table.reference.bbox, table.prediction.bbox])
    found = []
    for kind, rows, columns, pairs, box, loss in zip(
        _kinds(evaluation.outcomes, sets),
        _by_set(sets.of_reference, sets.n),
        _by_set(sets.of_prediction, sets.n),
        _by_set(of_pair, sets.n),
        _enclosing(bbox, of_object, sets.n).tolist(),
        losses.tolist(),
        strict=True,
    ):
        r, p, shared = links.reference[pairs], links.prediction[pairs], links.shared[pairs]
        group = FailureGroup(
            kind=kind,
            reference_rows=rows,
            prediction_rows=columns,
            pair_reference=r,
            pair_prediction=p,
            intersection_px=shared,
            share_of_reference=shared / judged.reference.area[r],
            share_of_prediction=shared / judged.prediction.area[p],
            bbox=tuple(box),
            pq_lost=loss,
        )
        found.append(group)
    return found


def _by_set(sets: IntArray, n: int) -> list[IntArray]:
    """Return the rows of each of n sets, ascending."""
    rows = np.argsort(sets, kind="stable")
    _, *found, _ = np.split(rows, np.searchsorted(sets[rows], np.arange(n + 1)))
    return found


def _enclosing(bbox: NDArray[np.integer], sets: IntArray, n: int) -> IntArray:
    """Return the bounding box (n, 4) of the objects of each of n sets."""
    bbox, sets = bbox[sets != NO_GROUP], sets[sets != NO_GROUP]
    boxes = np.repeat([[np.iinfo(np.int32).max] * 2 + [0] * 2], n, axis=0)
    np.minimum.at(boxes[:, :2], sets, bbox[:, :2])
    np.maximum.at(boxes[:, 2:], sets, bbox[:, 2:])
    return boxes


def _kinds(outcomes: Outcomes, sets: _Sets) -> list[GroupKind]:
    of = np.concatenate([sets.of_reference, sets.of_prediction])
    cause = np.concatenate([outcomes.reference.cause, outcomes.prediction.cause])

    def has(causes: tuple[Cause, ...]) -> BoolArray:
        chosen = np.isin(cause, [CAUSE_CODE[c] for c in causes]) & (of != NO_GROUP)
        return np.bincount(of[chosen], minlength=sets.n) > 0

    over, split, under = has(_OVER), has(_SPLIT), has(_UNDER)
    # Later assignments overwrite earlier ones.
    kinds = [GroupKind.DUPLICATE] * sets.n
    for kind, applies in (
        (GroupKind.SPLIT, split),
        (GroupKind.MERGER, under),
        (GroupKind.MIXED, under & over),
    ):
        for k in np.flatnonzero(applies):
            kinds[k] = kind
    return kinds


# --- counts with merged objects ---------------------------------------------------------------


def _losses(evaluation: Evaluation, links: _Links, sets: _Sets) -> FloatArray:
    """Compute the PQ that each set costs by itself (n,)."""
    if not _sets_are_independent(evaluation):
        return np.array([_loss(evaluation, links, sets, k) for k in range(sets.n)])
    total = tally_all(evaluation.outcomes)
    now = total.pq()
    plan = _plan(evaluation, links, sets)
    edited = _evaluate_plan(evaluation, links, plan)
    of_prediction = np.concatenate([sets.of_prediction[plan.kept], sets.of_reference[plan.home]])
    before = tally(evaluation.outcomes, sets.of_reference, sets.of_prediction, sets.n)
    after = tally(edited, sets.of_reference, of_prediction, sets.n)
    return (total + (after - before)).pq() - now


def _loss(evaluation: Evaluation, links: _Links, sets: _Sets, number: int) -> float:
    """Compute the PQ that one set costs, by evaluating the region without it."""
    alone = _Sets(
        sets.n,
        np.where(sets.of_reference == number, number, NO_GROUP),
        np.where(sets.of_prediction == number, number, NO_GROUP),
    )
    edited = _evaluate_plan(evaluation, links, _plan(evaluation, links, alone))
    return float((tally_all(edited).pq() - tally_all(evaluation.outcomes).pq())[0])


def _sets_are_independent(evaluation: Evaluation) -> bool:
    """Return whether editing one group can never change an outcome outside of it.

    With strict IoU and a threshold of at least 0.5, whether a pair matches does not depend on other
    objects. A merged object lies mostly in its own reference object, so that its IoU with any other
    stays below the threshold. Under ``majority`` this may fail, because ambiguous pixels leave the
    union.
    """
    settings = evaluation.settings
    if settings.matching is not Matching.STRICT_IOU or settings.one_to_one_enforced:
        return False
    has_void = bool(evaluation.table.prediction.void_area.any())
    return settings.ambiguous is not AmbiguousPolicy.MAJORITY or not has_void


@dataclass(frozen=True, eq=False)
class _Plan:
    """The predictions to remove, and the new objects that replace them.

    A new object belongs to one reference object (``home``). It consists of whole predictions and of
    pieces; a piece is the overlap of that reference object with a prediction that is cut.
    """

    kept: BoolArray  # (n predictions,)
    home: IntArray  # reference row of each new object
    whole: IntArray  # rows of predictions that become part of a new object ...
    whole_into: IntArray  # ... and the new object of each
    piece: IntArray  # positions of the pieces in the links ...
    piece_into: IntArray  # ... and the new object of each


def _plan(evaluation: Evaluation, links: _Links, sets: _Sets) -> _Plan:
    n_reference, n_prediction = len(sets.of_reference), len(sets.of_prediction)
    within = sets.holds(links)
    swallows = within & links.reference_inside
    cut = np.bincount(links.prediction[swallows], minlength=n_prediction) >= 2
    piece = np.flatnonzero(swallows & cut[links.prediction])

    lies_in = evaluation.outcomes.prediction.partner.astype(np.int64)
    inside = within & links.prediction_inside
    lies_in[links.prediction[inside]] = links.reference[inside]
    whole = np.flatnonzero((sets.of_prediction != NO_GROUP) & ~cut & (lies_in != NO_PARTNER))

    n_whole = np.bincount(lies_in[whole], minlength=n_reference)
    n_pieces = np.bincount(links.reference[piece], minlength=n_reference)
    changes = (n_pieces > 0) | (n_whole >= 2)
    home = np.flatnonzero(changes)
    new = np.full(n_reference, -1, np.int64)
    new[home] = np.arange(len(home))
    whole = whole[changes[lies_in[whole]]]
    kept = ~cut
    kept[whole] = False
    return _Plan(
        kept=kept,
        home=home,
        whole=whole,
        whole_into=new[lies_in[whole]],
        piece=piece,
        piece_into=new[links.reference[piece]],
    )


def _evaluate_plan(evaluation: Evaluation, links: _Links, plan: _Plan) -> Outcomes:
    """Merge and cut predictions, and evaluate the region again, without distances.

    Rows of predictions: those that stay, then the new ones.
    """
    pair, whole = _edited_pair(evaluation.pair, links, plan), evaluation.table
    table = _edited_table(evaluation, whole, None, links, plan)
    outside = None
    if (zone := Zone.of(whole, evaluation.settings)) is not None:
        outside = _edited_table(evaluation, evaluation.judged.counted, zone, links, plan)
    settings = evaluation.settings.replaced(distances=False)
    return evaluated(pair, table, settings, KnownDistances.none(), counted=outside).outcomes


def _edited_table(
    evaluation: Evaluation, table: OverlapTable, zone: Zone | None, links: _Links, plan: _Plan
) -> OverlapTable:
    """Return counts of a region after a plan: of all pixels, or of those outside of a zone."""
    # Both are sorted by reference row, then prediction row.
    position = np.searchsorted(
        pair_keys(table.pair_reference, table.pair_prediction),
        pair_keys(links.reference[plan.piece], links.prediction[plan.piece]),
    )
    n_kept = int(plan.kept.sum())
    row = np.full(len(plan.kept), -1, np.int64)
    row[plan.kept] = np.arange(n_kept)
    row[plan.whole] = n_kept + plan.whole_into
    target = row[table.pair_prediction]
    target[position] = n_kept + plan.piece_into

    pairs = np.flatnonzero(target >= 0)
    keys = pair_keys(table.pair_reference[pairs], target[pairs])
    order = np.argsort(keys, kind="stable")
    keys, pairs = keys[order], pairs[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    pair_reference, pair_prediction = pair_rows(keys[first])
    return OverlapTable(
        reference=table.reference,
        prediction=_edited_side(evaluation, table, position, zone, links, plan),
        pair_reference=pair_reference,
        pair_prediction=pair_prediction,
        intersection=np.add.reduceat(table.intersection[pairs], first),
        void_intersection=np.add.reduceat(table.void_intersection[pairs], first),
    )


def _edited_side(
    evaluation: Evaluation,
    table: OverlapTable,
    position: IntArray,
    zone: Zone | None,
    links: _Links,
    plan: _Plan,
) -> SideTable:
    side = table.prediction
    sums, void_sums, first_pixel = _piece_places(evaluation, zone, links, plan)

    def summed_up(own: IntArray, pieces: IntArray) -> IntArray:
        new = np.zeros((len(plan.home), *own.shape[1:]), np.int64)
        np.add.at(new, plan.whole_into, own[plan.whole])
        np.add.at(new, plan.piece_into, pieces)
        return np.concatenate([own[plan.kept], new])

    first = np.full(len(plan.home), np.iinfo(np.int64).max)
    np.minimum.at(first, plan.whole_into, side.first_pixel[plan.whole])
    np.minimum.at(first, plan.piece_into, first_pixel)
    # The bounding box of the parts of a new object is large enough for it.
    parts = np.concatenate([plan.whole, links.prediction[plan.piece]])
    into = np.concatenate([plan.whole_into, plan.piece_into])
    box = _enclosing(side.bbox[parts], into, len(plan.home))
    return SideTable(
        area=summed_up(side.area, table.intersection[position]),
        void_area=summed_up(side.void_area, table.void_intersection[position]),
        sum_yx=summed_up(side.sum_yx, sums),
        void_sum_yx=summed_up(side.void_sum_yx, void_sums),
        bbox=np.concatenate([side.bbox[plan.kept], box.astype(np.int32)]),
        first_pixel=np.concatenate([side.first_pixel[plan.kept], first]),
    )


def _piece_places(
    evaluation: Evaluation, zone: Zone | None, links: _Links, plan: _Plan
) -> tuple[IntArray, IntArray, IntArray]:
    """Return coordinate sums (k, 2), those of ambiguous pixels, and first pixels of the pieces.

    Without the pixels in a zone, if there is one.

    The overlap table does not have them. If no rule needs them, the pixels are not read, the sums
    are 0, and the first pixel is that of the prediction.
    """
    settings, pair = evaluation.settings, evaluation.pair
    prediction = links.prediction[plan.piece]
    sums = np.zeros((len(plan.piece), 2), np.int64)
    void_sums = np.zeros_like(sums)
    first = evaluation.table.prediction.first_pixel[prediction]
    if settings.matching is not Matching.CENTROID and not settings.one_to_one_enforced:
        return sums, void_sums, first
    for k, (r, p) in enumerate(zip(links.reference[plan.piece], prediction, strict=True)):
        y0, x0, y1, x1 = evaluation.table.prediction.bbox[p].tolist()
        window = np.s_[y0:y1, x0:x1]
        mine = (pair.prediction.index[window] == p + 1) & (pair.reference.index[window] == r + 1)
        if zone is not None:
            mine &= ~zone.mask(pair, (y0, x0, y1, x1))
        yx = np.argwhere(mine) + np.array([y0, x0])
        sums[k] = yx.sum(axis=0)
        if len(yx):
            first[k] = yx[0, 0] * pair.reference.shape[1] + yx[0, 1]
        if pair.ambiguous is not None:
            void_sums[k] = yx[pair.ambiguous[window][mine]].sum(axis=0)
    return sums, void_sums, first


def _edited_pair(pair: LabelPair, links: _Links, plan: _Plan) -> LabelPair:
    """Return the pair with the new list of predicted objects, for the stages after the overlap.

    These stages read ids and classes of the predictions, but only pixels of the reference. The
    pixels of the prediction are therefore not changed.
    """
    old = pair.prediction
    n_kept, n_new = int(plan.kept.sum()), len(plan.home)
    # Ids only break ties. Ranks serve as well, and cannot overflow. New objects come last.
    ids = np.arange(1, n_kept + n_new + 1)
    classes = np.concatenate([old.class_index[plan.kept], _majority_class(pair, links, plan)])
    prediction = LabelImage(
        index=old.index,
        ids=ids,
        class_index=classes,
        original_ids=ids,
        class_names=old.class_names,
    )
    return replace(pair, prediction=prediction)


def _majority_class(pair: LabelPair, links: _Links, plan: _Plan) -> NDArray[np.int16]:
    """Return the class that holds most of each new object's area after the policy."""
    class_index = pair.prediction.class_index.astype(np.int64)
    n = len(pair.class_names) + 1
    area = np.concatenate([links.judged.prediction.area[plan.whole], links.shared[plan.piece]])
    part_class = class_index[np.concatenate([plan.whole, links.prediction[plan.piece]])]
    into = np.concatenate([plan.whole_into, plan.piece_into])
    votes = np.bincount(into * n + part_class, weights=area, minlength=len(plan.home) * n)
    winner: NDArray[np.int16] = votes.reshape(-1, n).argmax(axis=1).astype(np.int16)
    return winner
