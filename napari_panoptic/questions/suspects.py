"""Suspect annotations: where several teams agree with each other, but not with the annotation.

No review is needed. Suspects are not errors: teams can make the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import english_list
from napari_panoptic.explain.consensus import (
    SAME_PLACE_IOU,
    check_comparable,
    team_overlap,
)
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.statistics.graphs import connected_components
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side

AGREEMENT_IOU = 0.5
"""Predictions of two teams are the same object if their IoU exceeds this."""
NO_MEMBER = -1
LIKELY_SCORE = 0.5
"""Below this score, most suspects are correct annotations."""
_ABSENT, _SILENT, _AGREES, _DISSENTS = range(4)
_PRIOR = 4.0
_ALONE = 0.5
_SAYS_MORE = 2.0
_LEAST_IOU = 1e-9

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class SuspectKind(StrEnum):
    """How the annotation differs from the object on which teams agree."""

    OVERLOOKED = "overlooked"  # no object where teams agree on one
    BADLY_LOCATED = "badly-located"  # outline differs from the one that teams share
    WRONG_CLASS = "wrong-class"  # class differs from the one that teams share
    SPLIT = "split"  # several objects where teams agree on one
    MERGED = "merged"  # one object where teams agree on several


@dataclass(frozen=True)
class Suspect:
    """A place where the annotation may be wrong.

    Parameters
    ----------
    kind
        How the annotation differs from the object on which teams agree.
    score
        From 0 to 1; higher is more suspect. See `find_suspects`.
    patient, region
        The place.
    side, team, id
        The object that represents the suspect: a reference object (team is None). If the annotation
        overlooks the object, it is the largest prediction of the agreeing teams.
    other_ids
        The other reference objects of a split object.
    class_name
        Class of the object.
    suggested_class
        Another class, for the kind ``wrong-class``; else empty.
    teams
        The teams that agree with each other.
    bbox
        y0, x0, y1, x1 of the whole object in px, half open.
    centroid_yx_px
        Its centroid.
    sentence
        The reason, for the user.
    team_ids
        If the annotation overlooks the object: the id of the prediction of each agreeing team;
        else empty.
    """

    kind: SuspectKind
    score: float
    patient: str
    region: str
    side: Side
    team: str | None
    id: int
    other_ids: tuple[int, ...]
    class_name: str
    suggested_class: str
    teams: tuple[str, ...]
    bbox: tuple[int, int, int, int]
    centroid_yx_px: tuple[float, float]
    sentence: str
    team_ids: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Agreement:
    """The objects that teams propose in one region, without label images.

    A proposal is an object that one team predicts, or on which two or more teams agree.

    Parameters
    ----------
    patient, region
        The region.
    teams
        T names.
    class_names
        The scored classes, in order.
    reference
        The n reference objects.
    predictions
        The predictions of each team.
    votes
        int16 (n, T): the class that each team predicts for each reference object, 1-based; 0 for
        none.
    counterpart
        int64 (n,): the proposal assigned to each reference object; -1 for none.
    counterpart_iou
        float64 (n,): the mean IoU of its members with the reference object; 0 without a proposal.
    members
        int64 (g, T): the rows of the predictions that form a proposal; -1 for teams without one.
    iou
        float64 (g,): mean IoU over all pairs of members; NaN for a single member.
    ambiguous
        bool (g,): whether more than half of it lies in the ambiguous area.
    touching
        int64 (2, k): the pairs of a proposal and a reference object that overlap.
    touching_iou, share_of_object, share_of_reference
        float64 (k,): means over the members. IoU of the member and the reference object; share of
        the member inside the reference object; share of the reference object inside the member.
    """

    patient: str
    region: str
    teams: tuple[str, ...]
    class_names: tuple[str, ...]
    reference: SideOutcomes
    predictions: tuple[SideOutcomes, ...]
    votes: NDArray[np.int16]
    counterpart: IntArray
    counterpart_iou: FloatArray
    members: IntArray
    iou: FloatArray
    ambiguous: BoolArray
    touching: IntArray
    touching_iou: FloatArray
    share_of_object: FloatArray
    share_of_reference: FloatArray

    @property
    def is_shared(self) -> BoolArray:
        """Whether two or more teams agree on each proposal, bool (g,)."""
        shared: BoolArray = (self.members != NO_MEMBER).sum(axis=1) > 1
        return shared

    def __len__(self) -> int:
        """Count the proposals."""
        return len(self.members)


def agreement(
    evaluations: Mapping[str, Evaluation], *, patient: str = "", region: str = ""
) -> Agreement:
    """Find the objects that teams propose in a region, and which teams agree on each.

    Predictions of two teams belong to one proposal if their IoU, after the ambiguous policy, is
    above 0.5. Chains of such pairs form one proposal. If a chain has several predictions of one
    team, the one with the largest summed IoU becomes a member, and the others are left out.

    A proposal is assigned to a reference object if each has the highest mean IoU with the other,
    and this IoU is at least 0.1.

    Parameters
    ----------
    evaluations
        Team -> its evaluation of the region, all with the same reference and settings (except
        distances). Not changed.
    patient, region
        Names for the result.

    Raises
    ------
    LabelError
        Without teams, or if the references or ambiguous areas differ.
    SettingsError
        If the settings differ.
    """
    check_comparable(evaluations)
    several = list(evaluations.values())
    first = several[0]
    members, iou = _proposals(several)
    touching, *means = _touching(several, members)
    counterpart, counterpart_iou = _counterparts(
        touching, means[0], len(members), len(first.outcomes.reference)
    )
    return Agreement(
        patient=patient,
        region=region,
        teams=tuple(evaluations),
        class_names=first.pair.class_names,
        reference=first.outcomes.reference,
        predictions=tuple(evaluation.outcomes.prediction for evaluation in several),
        votes=_votes(several, members[counterpart], counterpart >= 0),
        counterpart=counterpart,
        counterpart_iou=counterpart_iou,
        members=members,
        iou=iou,
        ambiguous=_ambiguous(several, members),
        touching=touching,
        touching_iou=means[0],
        share_of_object=means[1],
        share_of_reference=means[2],
    )


def _votes(
    several: Sequence[Evaluation], members: IntArray, has_counterpart: BoolArray
) -> NDArray[np.int16]:
    """Return the class (n, T) that each team predicts for each reference object."""
    votes = []
    for team, evaluation in enumerate(several):
        row = evaluation.outcomes.reference.partner.astype(np.int64)
        if len(members):
            row = np.where(has_counterpart & (members[:, team] != NO_MEMBER), members[:, team], row)
        classes = np.append(evaluation.outcomes.prediction.class_index, np.int16(0))
        votes.append(classes[row])  # -1, for no prediction, selects the last row
    return np.stack(votes, axis=1)


def _counterparts(
    touching: IntArray, iou: FloatArray, n_proposals: int, n_reference: int
) -> tuple[IntArray, FloatArray]:
    """Assign a proposal to each reference object, with their mean IoU."""
    counterpart = np.full(n_reference, -1, np.int64)
    found = np.zeros(n_reference)
    best = [np.full(n, -1, np.int64) for n in (n_proposals, n_reference)]
    for own, of_each in zip(touching, best, strict=True):
        order = np.lexsort((-iou, own))
        first = order[np.diff(own[order], prepend=-1) != 0]
        of_each[own[first]] = first
    pairs = np.intersect1d(best[0], best[1])
    pairs = pairs[pairs >= 0]
    pairs = pairs[iou[pairs] >= SAME_PLACE_IOU]
    counterpart[touching[1, pairs]], found[touching[1, pairs]] = touching[0, pairs], iou[pairs]
    return counterpart, found


def _proposals(several: Sequence[Evaluation]) -> tuple[IntArray, FloatArray]:
    """Return the members (g, T) of proposals, and the mean IoU over all pairs of members."""
    counts = [len(evaluation.outcomes.prediction) for evaluation in several]
    offsets = np.cumsum([0, *counts])
    n = int(offsets[-1])
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for a, b in combinations(range(len(several)), 2):
        rows, columns, iou = team_overlap(several[a], several[b])
        parts.append((offsets[a] + rows, offsets[b] + columns, iou))
    i, j, iou = (np.concatenate(part) for part in zip(*parts, strict=True))
    same = iou > AGREEMENT_IOU
    place = connected_components(i[same], j[same], n)
    strength = np.bincount(i[same], iou[same], n) + np.bincount(j[same], iou[same], n)

    # The prediction with the largest summed IoU, for each team and proposal.
    left = [evaluation.judged.prediction.area > 0 for evaluation in several]
    nodes = np.flatnonzero(np.concatenate(left))
    team = np.repeat(np.arange(len(several)), counts)
    nodes = nodes[np.lexsort((nodes, -strength[nodes], team[nodes], place[nodes]))]
    is_first = np.ones(len(nodes), bool)
    is_first[1:] = (np.diff(place[nodes]) != 0) | (np.diff(team[nodes]) != 0)
    nodes = nodes[is_first]
    found, group = np.unique(place[nodes], return_inverse=True)
    members = np.full((len(found), len(several)), NO_MEMBER, np.int64)
    members[group, team[nodes]] = nodes - offsets[team[nodes]]

    group_of = np.full(n, -1, np.int64)
    group_of[nodes] = group
    inside = (group_of[i] >= 0) & (group_of[i] == group_of[j])
    summed = np.bincount(group_of[i][inside], iou[inside], len(found))
    size = (members != NO_MEMBER).sum(axis=1)
    order = _in_reading_order(several, members)
    pairs = size * (size - 1) / 2
    mean = np.divide(summed, pairs, out=np.full(len(found), np.nan), where=pairs > 0)
    return members[order], mean[order]


def _in_reading_order(several: Sequence[Evaluation], members: IntArray) -> IntArray:
    """Return an order of proposals that does not depend on the order of the teams."""
    corner = np.full((len(members), 4), np.iinfo(np.int32).max, np.int64)
    for own, evaluation in zip(members.T, several, strict=True):
        there = own != NO_MEMBER
        box = evaluation.outcomes.prediction.bbox[own[there]]
        corner[there] = np.minimum(corner[there], box)
    order: IntArray = np.lexsort(corner[:, ::-1].T)
    return order


def _touching(
    several: Sequence[Evaluation], members: IntArray
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the pairs of overlapping proposals and reference objects, with means over members."""
    n = len(several[0].outcomes.reference)
    keys = [np.zeros(0, np.int64)]
    values = [np.zeros((3, 0))]
    for team, evaluation in enumerate(several):
        judged = evaluation.judged
        rows, columns = judged.pair_reference, judged.pair_prediction
        group_of = _group_of(members[:, team], len(evaluation.outcomes.prediction))
        kept = np.flatnonzero(group_of[columns] >= 0)
        rows, columns = rows[kept], columns[kept]
        keys.append(group_of[columns] * n + rows)
        shared = judged.intersection[kept]
        of_prediction = shared / judged.prediction.area[columns]
        of_reference = shared / judged.reference.area[rows]
        values.append(np.stack([judged.iou[kept], of_prediction, of_reference]))
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    touching = np.stack(np.divmod(key, max(n, 1)))
    size = (members != NO_MEMBER).sum(axis=1)[touching[0]]
    iou, of_object, of_reference = (
        np.bincount(place, value, len(key)) / size for value in np.concatenate(values, axis=1)
    )
    return touching, iou, of_object, of_reference


def _group_of(members: IntArray, n: int) -> IntArray:
    """Return the proposal of each of a team's n predictions, -1 for none."""
    group_of = np.full(n, -1, np.int64)
    groups = np.flatnonzero(members != NO_MEMBER)
    group_of[members[groups]] = groups
    return group_of


def _ambiguous(several: Sequence[Evaluation], members: IntArray) -> BoolArray:
    summed = np.zeros(len(members))
    for team, evaluation in enumerate(several):
        if evaluation.settings.ambiguous is AmbiguousPolicy.KEEP:
            continue
        side = evaluation.table.prediction
        share = np.append(side.void_area / np.maximum(side.area, 1), 0.0)
        summed += share[members[:, team]]
    inside: BoolArray = summed > 0.5 * (members != NO_MEMBER).sum(axis=1)
    return inside


# --- scores -----------------------------------------------------------------------------------


def find_suspects(regions: Sequence[Agreement]) -> tuple[Suspect, ...]:
    """Find the places where the annotation may be wrong, the most suspect first.

    The reliability of teams is estimated from all regions together, so pass the whole cohort. The
    reliability of a proposal is estimated from all proposals of exactly its teams. It is the share
    of these proposals that the annotation confirms by an object with a mean IoU above 0.5. This
    share is shrunk towards the share of all proposals of the same number of teams, and that towards
    the share of all proposals, each with a weight of 4 proposals. It is then squared, so that teams
    that are right half of the time count little. Proposals mostly in the ambiguous area are left
    out.

    - overlooked: a proposal of two or more teams whose mean IoU with every reference object is
      below 0.1, and at most half of which lies in reference objects. Score: its reliability.
    - badly-located: a reference object and its assigned proposal. Score: the reliability, times
    twice the relative loss of IoU, 1 - IoU / (median IoU of reference objects with their
    proposals), limited to 0 to 1. Only proposals that are assigned to a reference object count for
    this reliability, because teams with many FPs may still locate the other objects well.
    - wrong-class: teams predict a class for a reference object, and the annotation has another.
      Score: the share of reference objects that have the class which the teams predict, among those
      for which exactly these teams predict the same class and exactly the same other teams predict
      another; shrunk and squared as above. The class that a team predicts is that of its member of
      the assigned proposal, or else of the prediction that matches the object.
    - split: a proposal of two or more teams that contains more than half of each of two or more
      reference objects, which cover more than half of it and none of which is confirmed.
      Score: its reliability.
    - merged: a reference object that contains more than half of each of two or more proposals,
      each of two or more teams, which cover more than half of it, and that is not confirmed.
      Score: the lowest of their reliabilities.

    If only one team has the other class or the other outline, the score is halved. An object that
    is more than one of badly-located, split and merged is listed under the highest score; as
    badly-located only if that score is more than twice as high, because the other kinds explain
    more.

    Parameters
    ----------
    regions
        The proposals of each region, see `agreement`; not changed.

    Returns
    -------
    tuple of Suspect
        All with a score above 0, by descending score, then by region, kind and id.
    """
    if not regions:
        return ()
    trust = zip(
        _reliabilities(regions),
        _reliabilities(regions, only_counterparts=True),
        _class_reliabilities(regions),
        strict=True,
    )
    typical_iou = _typical_iou(regions)
    found = [
        suspect
        for region, own in zip(regions, trust, strict=True)
        for suspect in _RegionSuspects(region, *own, typical_iou).all()
        if suspect.score > 0
    ]
    kinds = list(SuspectKind)
    places = {(own.patient, own.region): place for place, own in enumerate(regions)}
    found.sort(key=lambda s: (-s.score, places[s.patient, s.region], kinds.index(s.kind), s.id))
    return tuple(found)


def _reliabilities(
    regions: Sequence[Agreement], *, only_counterparts: bool = False
) -> list[FloatArray]:
    """Return, per region, the reliability of each proposal.

    Parameters
    ----------
    regions
        The regions.
    only_counterparts
        Count only proposals that are assigned to a reference object.
    """
    states = [
        np.where(region.members != NO_MEMBER, _AGREES, _SILENT).astype(np.int8)
        for region in regions
    ]
    confirmed = [_is_confirmed(region) for region in regions]
    counted = [~region.ambiguous for region in regions]
    if only_counterparts:
        counted = [
            own & np.isin(np.arange(len(region)), region.counterpart)
            for own, region in zip(counted, regions, strict=True)
        ]
    return _rates(regions, states, confirmed, counted)


def _typical_iou(regions: Sequence[Agreement]) -> float:
    """Return the median IoU of reference objects with their assigned proposals."""
    found = [region.counterpart_iou[region.counterpart >= 0] for region in regions]
    every = np.concatenate([np.zeros(0), *found])
    return float(np.median(every)) if len(every) else 0.0


def _is_confirmed(region: Agreement) -> BoolArray:
    """Return which proposals the annotation confirms."""
    confirmed = np.zeros(len(region), bool)
    confirmed[region.touching[0, region.touching_iou > AGREEMENT_IOU]] = True
    return confirmed


def _class_reliabilities(regions: Sequence[Agreement]) -> list[FloatArray]:
    """Return, per region, the reliability of the classes that teams predict.

    Returns
    -------
    list of ndarray
        float64 (n, C) per region: the reliability of each class for each reference object; 0 if
        no team predicts it, and halved if only one does.
    """
    n_classes = len(regions[0].class_names)
    states, hits = [], []
    for region in regions:
        votes = region.votes[:, np.newaxis, :]
        classes = np.arange(1, n_classes + 1)[:, np.newaxis]
        state = np.where(votes == 0, _SILENT, np.where(votes == classes, _AGREES, _DISSENTS))
        states.append(state.reshape(-1, len(region.teams)).astype(np.int8))
        hits.append((region.reference.class_index[:, np.newaxis] == classes.T).reshape(-1))
    agreeing = [(state == _AGREES).sum(axis=1) for state in states]
    rates = _rates(regions, states, hits, [n > 0 for n in agreeing])
    weight = np.array([0.0, _ALONE, 1.0])
    return [
        (rate * weight[np.minimum(n, 2)]).reshape(-1, n_classes)
        for rate, n in zip(rates, agreeing, strict=True)
    ]


def _rates(
    regions: Sequence[Agreement],
    states: Sequence[NDArray[np.int8]],
    hits: Sequence[BoolArray],
    counted: Sequence[BoolArray],
) -> list[FloatArray]:
    """Return, per region, the squared share of hits among all rows with the same states of teams.

    Parameters
    ----------
    regions
        The regions, for their teams.
    states
        int8 (k, T) per region: the state of each team of the region.
    hits, counted
        bool (k,) per region: whether each row is a hit, and whether it counts.
    """
    teams = list(dict.fromkeys(team for region in regions for team in region.teams))
    patterns = [np.zeros((0, len(teams)), np.int8)]
    for region, state in zip(regions, states, strict=True):
        pattern = np.full((len(state), len(teams)), _ABSENT, np.int8)
        pattern[:, [teams.index(team) for team in region.teams]] = state
        patterns.append(pattern)
    pattern = np.concatenate(patterns)
    counts = np.concatenate([np.zeros(0, bool), *counted])
    is_hit = np.concatenate([np.zeros(0, bool), *hits]) & counts
    number = (pattern == _AGREES).sum(axis=1)
    alike = np.unique(pattern, axis=0, return_inverse=True)[1].reshape(-1)
    rate = np.full(len(pattern), is_hit.sum() / max(counts.sum(), 1))
    for group in (number, alike):
        n = np.bincount(group, counts)[group]
        rate = (np.bincount(group, is_hit)[group] + _PRIOR * rate) / (n + _PRIOR)
    return np.split(rate**2, np.cumsum([len(state) for state in states])[:-1])


def _say(teams: Sequence[str], alone: str, together: str) -> str:
    return f"{english_list(list(teams))} {alone if len(teams) == 1 else together}"


def _likeliest(found: Sequence[Suspect]) -> list[Suspect]:
    """Return the likeliest suspect of each object; the first if several are equally likely."""
    best: dict[int, Suspect] = {}
    for suspect in found:
        for id_ in (suspect.id, *suspect.other_ids):
            if id_ not in best or _likelihood(suspect) > _likelihood(best[id_]):
                best[id_] = suspect
    return [suspect for suspect in found if best[suspect.id] is suspect]


def _likelihood(suspect: Suspect) -> float:
    return suspect.score * (1.0 if suspect.kind is SuspectKind.BADLY_LOCATED else _SAYS_MORE)


class _RegionSuspects:
    """Finds the suspects of one region.

    Parameters
    ----------
    own
        The proposals of the region.
    reliability
        float64 (g,): reliability of the teams of each proposal, of it as an object.
    located
        float64 (g,): the same, of it as the outline of an annotated object.
    classes
        float64 (n, C): reliability of each class for each reference object.
    typical_iou
        Median IoU of reference objects with their proposals, over all regions.
    """

    def __init__(
        self,
        own: Agreement,
        reliability: FloatArray,
        located: FloatArray,
        classes: FloatArray,
        typical_iou: float,
    ) -> None:
        self._own, self._typical_iou = own, typical_iou
        self._reliability, self._located, self._classes = reliability, located, classes
        n = len(own.reference)
        self._reference_confirmed = np.zeros(n, bool)
        self._reference_confirmed[own.touching[1, own.touching_iou > AGREEMENT_IOU]] = True

    def all(self) -> list[Suspect]:
        """Return the suspects of all kinds."""
        outlines = _likeliest([*self._split(), *self._merged(), *self._badly_located()])
        return [*self._overlooked(), *outlines, *self._wrong_class()]

    def _overlooked(self) -> list[Suspect]:
        own = self._own
        groups = own.touching[0]
        nearest = np.zeros(len(own))
        np.maximum.at(nearest, groups, own.touching_iou)
        covered = np.bincount(groups, own.share_of_object, len(own))
        free = (nearest < SAME_PLACE_IOU) & (covered <= 0.5) & ~own.ambiguous & own.is_shared
        return [self._of_prediction(int(group)) for group in np.flatnonzero(free)]

    def _badly_located(self) -> list[Suspect]:
        own = self._own
        typical = self._typical_iou
        rows = np.flatnonzero(own.counterpart >= 0)
        groups, iou = own.counterpart[rows], own.counterpart_iou[rows]
        loss = np.clip(2 * (1 - iou / max(typical, _LEAST_IOU)), 0, 1)
        trust = self._located[groups] * np.where(own.is_shared[groups], 1, _ALONE)
        score = trust * loss
        found = []
        for k in np.flatnonzero((score > 0) & ~own.ambiguous[groups]).tolist():
            teams = self._teams(int(groups[k]))
            between = f" with each other {own.iou[groups[k]]:.2f}," if len(teams) > 1 else ""
            reason = (
                f"IoU of {english_list(teams)}{between} with the annotation {iou[k]:.2f}; "
                f"{typical:.2f} is typical"
            )
            found.append(
                self._of_reference(
                    SuspectKind.BADLY_LOCATED, float(score[k]), int(rows[k]), teams, reason
                )
            )
        return found

    def _wrong_class(self) -> list[Suspect]:
        own = self._own
        n = len(own.reference)
        others = self._classes.copy()
        others[np.arange(n), own.reference.class_index - 1] = 0
        found = []
        for row in np.flatnonzero(others.any(axis=1)).tolist():
            suggested = int(others[row].argmax()) + 1
            score = float(others[row, suggested - 1])
            teams = [t for t, v in zip(own.teams, own.votes[row], strict=True) if v == suggested]
            annotated = own.class_names[own.reference.class_index[row] - 1]
            found.append(
                self._of_reference(
                    SuspectKind.WRONG_CLASS,
                    score,
                    row,
                    tuple(teams),
                    f"annotated as {annotated}; {_say(teams, 'predicts', 'agree on')} "
                    f"{own.class_names[suggested - 1]}",
                    suggested=own.class_names[suggested - 1],
                )
            )
        return found

    def _split(self) -> list[Suspect]:
        own = self._own
        groups, rows = own.touching
        inside = (own.share_of_reference > 0.5) & ~self._reference_confirmed[rows]
        parts = np.bincount(groups[inside], minlength=len(own))
        covered = np.bincount(groups[inside], own.share_of_object[inside], len(own))
        found = []
        for group in np.flatnonzero(
            (parts > 1) & (covered > 0.5) & own.is_shared & ~own.ambiguous
        ).tolist():
            at = np.flatnonzero(inside & (groups == group))
            at = at[np.argsort(-own.share_of_object[at], kind="stable")]
            teams = self._teams(group)
            found.append(
                self._of_reference(
                    SuspectKind.SPLIT,
                    float(self._reliability[group]),
                    int(rows[at[0]]),
                    teams,
                    f"{english_list(teams)} agree on one object; the annotation has {len(at)}; "
                    + self._trust(group),
                    others=rows[at[1:]],
                )
            )
        return found

    def _merged(self) -> list[Suspect]:
        own = self._own
        groups, rows = own.touching
        n = len(own.reference)
        inside = (own.share_of_object > 0.5) & (own.is_shared & ~own.ambiguous)[groups]
        parts = np.bincount(rows[inside], minlength=n)
        covered = np.bincount(rows[inside], own.share_of_reference[inside], n)
        merged = (parts > 1) & (covered > 0.5) & ~self._reference_confirmed
        found = []
        for row in np.flatnonzero(merged).tolist():
            at = groups[inside & (rows == row)]
            weakest = int(at[np.argmin(self._reliability[at])])
            teams = self._teams(weakest)
            found.append(
                self._of_reference(
                    SuspectKind.MERGED,
                    float(self._reliability[weakest]),
                    row,
                    teams,
                    f"{english_list(teams)} agree on {len(at)} objects; the annotation has one; "
                    + self._trust(weakest),
                )
            )
        return found

    def _teams(self, group: int) -> tuple[str, ...]:
        own = self._own
        agrees = own.members[group] != NO_MEMBER
        return tuple(team for team, is_in in zip(own.teams, agrees, strict=True) if is_in)

    def _trust(self, group: int) -> str:
        share = float(np.sqrt(self._reliability[group]))
        return f"it has {share:.0%} of the objects on which exactly these teams agree"

    def _of_prediction(self, group: int) -> Suspect:
        """Return an overlooked object, represented by the largest of the agreeing predictions."""
        own = self._own
        teams = [k for k, row in enumerate(own.members[group]) if row != NO_MEMBER]
        rows = [(own.predictions[k], int(own.members[group, k])) for k in teams]
        team = teams[int(np.argmax([side.area_px[row] for side, row in rows]))]
        reason = f"{english_list(self._teams(group))} agree on an object; the annotation has none"
        found = self._suspect(
            SuspectKind.OVERLOOKED,
            float(self._reliability[group]),
            (own.predictions[team], int(own.members[group, team])),
            self._teams(group),
            f"{reason}; {self._trust(group)}",
            team=own.teams[team],
        )
        return replace(found, team_ids=tuple(int(side.ids[row]) for side, row in rows))

    def _of_reference(
        self,
        kind: SuspectKind,
        score: float,
        row: int,
        teams: tuple[str, ...],
        reason: str,
        *,
        suggested: str = "",
        others: IntArray | None = None,
    ) -> Suspect:
        reference = self._own.reference
        found = self._suspect(kind, score, (reference, row), teams, reason)
        ids = () if others is None else tuple(reference.ids[others].tolist())
        return replace(found, suggested_class=suggested, other_ids=ids)

    def _suspect(
        self,
        kind: SuspectKind,
        score: float,
        place: tuple[SideOutcomes, int],
        teams: tuple[str, ...],
        reason: str,
        *,
        team: str | None = None,
    ) -> Suspect:
        side, row = place
        y, x = side.centroid_yx_px[row].tolist()
        top, left, bottom, right = side.bbox[row].tolist()
        return Suspect(
            kind=kind,
            score=score,
            patient=self._own.patient,
            region=self._own.region,
            side=side.side,
            team=team,
            id=int(side.ids[row]),
            other_ids=(),
            class_name=self._own.class_names[side.class_index[row] - 1],
            suggested_class="",
            teams=teams,
            bbox=(top, left, bottom, right),
            centroid_yx_px=(y, x),
            sentence=f"{reason}.",
        )
