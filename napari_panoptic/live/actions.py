"""Actions on objects: each returns a `Mend`, which is applied, and undone by its exact inverse.

How to use it::

    mend = accept(evaluation, [(Side.PREDICTION, 7)])       # pure: nothing is changed
    mend.overwritten, mend.not_done                         # what to say or ask before
    session.apply(mend)                                     # or apply(mend, edited_pair)
    session.apply(mend.inverse)                             # undone, to the last pixel

Objects are named by targets: their side and id. An action takes any number of targets and is one
mend, however many objects it changes. All targets are mended together: outlines that are replaced
or deleted are removed first, so that the order of the targets decides nothing but new ids.

======================  =========================================================================
`accept`                the annotation takes outline and class of predictions
`delete`                objects are removed
`merge`                 sets of objects become one object each, gaps of at most 2 px closed
`split`                 objects are divided by those of the other side that lie in them
`take_class`            objects take the class of their partner
`mark_ambiguous`        the pixels of objects join the ambiguous area
`mend_of_verdicts`      what verdicts would change
======================  =========================================================================

`Claim` decides about pixels of objects that are not targets: they stay (`KEEP`) or are taken
(`TAKE`). To ask the user, compute the mend with `TAKE`, and read ``overwritten``. New objects are
numbered from ``first_id``; with a session, pass a number above `Session.known_ids`.

Evaluations are those of a session (`Session.with_all_scores`, so that no threshold leaves out
objects) or of `EditedPair.evaluate`. Objects that keep shared pixels are flattened, as edits do.

To add an action, say on a `Draft` which objects go and which outlines come; the inverse follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failure_groups import FailureGroup
from napari_panoptic.live.canvas import SideObjects, closed, clusters
from napari_panoptic.live.draft import Draft, Noted
from napari_panoptic.live.mends import (
    Claim,
    Covered,
    IntArray,
    Mend,
    MendAction,
    Target,
    union,
)
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, Verdict


def accept(
    evaluation: Evaluation,
    targets: Iterable[Target],
    *,
    claim: Claim = Claim.KEEP,
    covered: Covered = Covered.ASK,
    first_id: int | None = None,
) -> Mend:
    """Let the annotation take the outline and class of predictions.

    An annotated object with a partner is replaced by it, and keeps its id. An FN is replaced by the
    unmatched prediction that fits best, if their IoU reaches the setting `near_iou`. An FP becomes
    a new annotated object.

    Parameters
    ----------
    evaluation, targets
        The objects, of either side; both objects of a pair are the same target.
    claim, covered, first_id
        See the top of this module.
    """
    draft = Draft(evaluation, first_id)
    replacements: dict[int, tuple[int, Target]] = {}
    used: set[int] = set()
    new: dict[int, Target] = {}
    for target in draft.existing(targets):
        row, prediction = draft.annotated(target), _fitting(draft, target)
        if prediction is None:
            draft.refuse(target, "no prediction fits it; delete it, or draw it")
        elif row in replacements:
            continue  # the other object of the pair
        elif row is not None and prediction in used:
            draft.refuse(target, "another annotated object takes the prediction that fits it")
        elif row is not None:
            replacements[row] = prediction, target
            used.add(prediction)
        elif draft.is_ignored(target):
            draft.refuse(target, "it lies in the ambiguous area")
        else:
            new.setdefault(prediction, target)
    for row, (prediction, target) in replacements.items():
        draft.replace(row, prediction, target)
    for prediction, target in new.items():
        if prediction not in used:
            _add(draft, prediction, target, covered)
    return draft.mend(claim)


def delete(evaluation: Evaluation, targets: Iterable[Target]) -> Mend:
    """Remove objects of either side."""
    draft = Draft(evaluation)
    for target in draft.existing(targets):
        draft.remove(target[0], draft.row(target), target, MendAction.DELETE)
    return draft.mend(Claim.KEEP)


def merge(
    evaluation: Evaluation, sets: Iterable[Sequence[Target]], *, claim: Claim = Claim.KEEP
) -> Mend:
    """Make one object of each set of objects.

    It is their union, in which gaps of at most 2 px are closed: a pixel is part of a gap unless
    some square of 3 x 3 px contains it and no pixel of the objects. The largest object keeps its id
    and class (the lowest id of equals).

    Parameters
    ----------
    evaluation
        The objects.
    sets
        The objects to merge; those of a set are on one side. `objects_to_merge` returns those of a
        failure group.
    claim
        Whether gaps include pixels of other objects.
    """
    draft = Draft(evaluation)
    merged: set[Target] = set()
    for members in sets:
        targets = [target for target in draft.existing(members) if target not in merged]
        if len({side for side, _ in targets}) != 1 or len(targets) < 2:
            for target in targets:
                draft.refuse(target, "merging needs two or more objects of one side")
            continue
        merged.update(targets)
        _merge(draft, targets)
    return draft.mend(claim)


def _merge(draft: Draft, targets: Sequence[Target]) -> None:
    side = targets[0][0]
    objects, canvas = draft.objects[side], draft.canvases[side]
    rows = [draft.row(target) for target in targets]
    largest = max(rows, key=lambda row: (objects.area[row], -row))
    id_, class_name = objects.id(largest), objects.class_name(largest)
    cluster = clusters(objects.bbox[rows])
    unions = [
        _closed_union(objects, np.array(rows)[cluster == k].tolist())
        for k in range(int(cluster.max()) + 1)
    ]
    for row in rows:
        canvas.clear(row)
    outline = canvas.paint(np.concatenate(unions), id_, class_name)
    for target, row in zip(targets, rows, strict=True):
        draft.note(Noted(target, MendAction.MERGE, side, row, id_, class_name, outline))


def _closed_union(objects: SideObjects, rows: Sequence[int]) -> IntArray:
    """Return the pixels of objects, and of the gaps between them."""
    y0, x0, y1, x1 = union([objects.box(row) for row in rows])
    mask = np.zeros((y1 - y0, x1 - x0), np.bool_)
    for row in rows:
        top, left, bottom, right = objects.box(row)
        mask[top - y0 : bottom - y0, left - x0 : right - x0] |= objects.mask(row)
    return objects.positions(closed(mask), y0, x0)


def split(
    evaluation: Evaluation, targets: Iterable[Target], *, first_id: int | None = None
) -> Mend:
    """Divide objects by those of the other side that have more than half of their area inside.

    Each pixel goes to the nearest of these, by a watershed on the distance from them. The largest
    part keeps the id (the first of equals); all parts keep the class.
    """
    draft = Draft(evaluation, first_id)
    for target in draft.existing(targets):
        seeds = _inside(draft.evaluation, target[0], draft.row(target))
        if len(seeds) < 2:
            reason = f"it contains {len(seeds)} objects of the other side, not several"
            draft.refuse(target, reason)
        else:
            _split(draft, target, seeds)
    return draft.mend(Claim.KEEP)


def _split(draft: Draft, target: Target, seeds: IntArray) -> None:
    """Divide an object by some of the other side, given their rows."""
    distance_transform_edt, watershed = split_functions()
    side, row = target[0], draft.row(target)
    objects, others, canvas = draft.objects[side], draft.objects[side.other], draft.canvases[side]
    y0, x0, y1, x1 = objects.box(row)
    mask = objects.mask(row)
    seed_numbers = np.zeros(len(others.labels) + 1, np.int32)
    seed_numbers[seeds + 1] = np.arange(1, len(seeds) + 1)
    markers = np.where(mask, seed_numbers[others.labels.index[y0:y1, x0:x1]], 0)
    distance, nearest = distance_transform_edt(markers == 0, return_indices=True)
    parts = watershed(distance, markers, mask=mask)
    # Pieces of the object without a seed are out of the watershed's reach.
    parts = np.where(mask & (parts == 0), markers[tuple(nearest)], parts)
    areas = np.bincount(parts[mask], minlength=len(seeds) + 1)[1:]
    largest, class_name = int(np.argmax(areas)), objects.class_name(row)
    canvas.clear(row)
    for part in range(len(seeds)):
        id_ = target[1] if part == largest else draft.new_id(side)
        outline = canvas.paint(objects.positions(parts == part + 1, y0, x0), id_, class_name)
        draft.note(Noted(target, MendAction.SPLIT, side, row, id_, class_name, outline))


def take_class(evaluation: Evaluation, targets: Iterable[Target]) -> Mend:
    """Let misclassified objects of either side take the class of their partner."""
    draft = Draft(evaluation)
    for target in draft.existing(targets):
        side, row, partner = target[0], draft.row(target), draft.partner(target)
        if partner is None:
            draft.refuse(target, "it has no partner")
            continue
        class_name = draft.objects[side.other].class_name(partner)
        if draft.objects[side].class_name(row) == class_name:
            draft.refuse(target, "its partner has the same class")
        else:
            draft.rename(side, row, target, class_name)
    return draft.mend(Claim.KEEP)


def mark_ambiguous(evaluation: Evaluation, targets: Iterable[Target]) -> Mend:
    """Let the pixels of objects join the ambiguous area; the objects stay."""
    draft = Draft(evaluation)
    area = draft.evaluation.pair.ambiguous
    for target in draft.existing(targets):
        (side, id_), row = target, draft.row(target)
        objects = draft.objects[side]
        pixels = objects.pixels(row)
        pixels = pixels if area is None else pixels[~area.ravel()[pixels]]
        if not len(pixels):
            draft.refuse(target, "it lies in the ambiguous area already")
            continue
        draft.mark(pixels)
        class_name = objects.class_name(row)
        draft.note(Noted(target, MendAction.AMBIGUOUS, side, row, id_, class_name))
    return draft.mend(Claim.KEEP)


def mend_of_verdicts(
    evaluation: Evaluation,
    verdicts: Mapping[Target, Verdict],
    *,
    claim: Claim = Claim.KEEP,
    covered: Covered = Covered.ASK,
    first_id: int | None = None,
) -> Mend:
    """Return what verdicts would change of the annotation.

    ==================  ===========================================================================
    prediction right    an FN is deleted, an FP accepted; a misclassified object takes the class of
                        the prediction, and another object with a partner its outline
    both wrong          the annotated object is deleted, and its place is to be drawn; so is that of
                        an FP
    other verdicts      nothing
    ==================  ===========================================================================

    Verdicts on both objects of a pair that say the same count once. Those that say different
    things of one annotated object are not applied.

    Parameters
    ----------
    evaluation
        The objects.
    verdicts
        Object -> the verdict on it.
    claim, covered, first_id
        See the top of this module.
    """
    draft = Draft(evaluation, first_id)
    corrections = {
        target: action
        for target in draft.existing(verdicts)
        if (action := _correction(draft, target, verdicts[target])) is not None
    }
    by_row: dict[int, list[Target]] = {}
    for target, action in corrections.items():
        row = draft.annotated(target)
        if action is MendAction.ACCEPT:
            _add(draft, draft.row(target), target, covered)
        elif row is None:
            draft.note(Noted(target, MendAction.DRAW, Side.REFERENCE, None))
        else:
            by_row.setdefault(row, []).append(target)
    for row, same in by_row.items():
        if len({corrections[target] for target in same}) > 1:
            for target in same:
                draft.refuse(target, "the verdicts on the two objects of a pair differ")
        else:
            _correct(draft, row, same[0], corrections[same[0]])
    return draft.mend(claim)


def _correction(draft: Draft, target: Target, verdict: Verdict) -> MendAction | None:
    """Return what a verdict would change, None for nothing; refuse what cannot be changed."""
    if verdict is Verdict.BOTH_WRONG:
        return MendAction.DRAW
    if verdict is not Verdict.PREDICTION_RIGHT:
        return None
    if draft.is_ignored(target):
        draft.refuse(target, "it is ignored: the ambiguous area excludes it")
        return None
    if draft.partner(target) is None:
        return MendAction.DELETE if target[0] is Side.REFERENCE else MendAction.ACCEPT
    is_misclassified = draft.status(target) == STATUS_CODE[Status.MISCLASSIFIED]
    return MendAction.RECLASSIFY if is_misclassified else MendAction.REPLACE


def _correct(draft: Draft, row: int, target: Target, action: MendAction) -> None:
    """Change an annotated object as a verdict says."""
    side = Side.REFERENCE
    partner = draft.partner((side, draft.objects[side].id(row)))
    if action in (MendAction.DELETE, MendAction.DRAW) or partner is None:
        draft.remove(side, row, target, action)
    elif action is MendAction.RECLASSIFY:
        draft.rename(side, row, target, draft.objects[Side.PREDICTION].class_name(partner))
    else:
        draft.replace(row, partner, target)


def _add(draft: Draft, prediction: int, target: Target, covered: Covered) -> None:
    """Make a new annotated object of an FP."""
    side, predicted = Side.REFERENCE, draft.objects[Side.PREDICTION]
    inside = _inside(draft.evaluation, Side.PREDICTION, prediction).tolist()
    ids = [draft.objects[side].id(row) for row in inside]
    if covered is Covered.REPLACE:
        for row, id_ in zip(inside, ids, strict=True):
            draft.remove(side, row, (side, id_), MendAction.DELETE)
    elif covered is Covered.ASK and len(ids) > 1:
        reason = f"it covers the annotated objects {english_list(ids)}; decide on them by hand"
        draft.refuse(target, reason, ids)
        return
    new_id, class_name = draft.new_id(side), predicted.class_name(prediction)
    outline = draft.canvases[side].paint(predicted.pixels(prediction), new_id, class_name)
    draft.note(Noted(target, MendAction.ACCEPT, side, None, new_id, class_name, outline))


def objects_to_merge(group: FailureGroup, evaluation: Evaluation) -> list[Target]:
    """Return the predictions of a group that is a split or has duplicates."""
    ids = evaluation.outcomes.prediction.ids[group.prediction_rows]
    return [(Side.PREDICTION, id_) for id_ in ids.tolist()]


def objects_to_split(group: FailureGroup, evaluation: Evaluation) -> list[Target]:
    """Return the predictions of a group that contain several annotated objects."""
    ids = evaluation.outcomes.prediction.ids
    return [
        (Side.PREDICTION, int(ids[row]))
        for row in group.prediction_rows.tolist()
        if len(_inside(evaluation, Side.PREDICTION, row)) > 1
    ]


def _fitting(draft: Draft, target: Target) -> int | None:
    """Return the row of the prediction that an object is, matches or would be replaced by."""
    if target[0] is Side.PREDICTION:
        return draft.row(target)
    partner = draft.partner(target)
    if partner is not None or draft.is_ignored(target):
        return partner
    judged, outcomes = draft.evaluation.judged, draft.evaluation.outcomes
    pairs = np.flatnonzero(judged.pair_reference == draft.row(target))
    is_fp = outcomes.prediction.status[judged.pair_prediction[pairs]] == STATUS_CODE[Status.FP]
    pairs = pairs[is_fp]
    if not len(pairs):
        return None
    best = pairs[np.argmax(judged.iou[pairs])]
    fits = judged.iou[best] >= draft.evaluation.settings.near_iou
    return int(judged.pair_prediction[best]) if fits else None


def split_functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions that divide objects; the first call imports packages for 0.3 s."""
    from scipy.ndimage import distance_transform_edt
    from skimage.segmentation import watershed

    return distance_transform_edt, watershed


def _inside(evaluation: Evaluation, side: Side, row: int) -> IntArray:
    """Return the rows of the objects of the other side that lie mostly in an object.

    More than half of their area after the ambiguous policy; ignored ones do not count.
    """
    judged = evaluation.judged
    pairs = np.flatnonzero(judged.rows_of_pairs(side) == row)
    rows = judged.rows_of_pairs(side.other)[pairs].astype(np.int64)
    status = evaluation.outcomes.side(side.other).status[rows]
    is_inside = 2 * judged.intersection[pairs] > judged.side(side.other).area[rows]
    inside: IntArray = np.sort(rows[is_inside & (status != STATUS_CODE[Status.IGNORED])])
    return inside
