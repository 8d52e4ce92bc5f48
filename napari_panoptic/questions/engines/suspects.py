"""Suspect annotations: where several teams agree with each other, but not with the annotation.

No review is needed. Suspects are not errors: teams can make the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations, compress
from typing import Any

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
from napari_panoptic.statistics.means import quotients
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
    """A place where the annotation may be wrong."""

    #: How the annotation differs from the object on which teams agree.
    kind: SuspectKind
    #: From 0 to 1; higher is more suspect. See `find_suspects`.
    score: float
    #: The place.
    patient: str
    region: str
    #: The object that represents the suspect: a reference object. If the annotation overlooks the
    #: object, it is the largest prediction of the agreeing teams.
    side: Side
    id: int
    #: Class of the object.
    class_name: str
    #: The teams that agree with each other.
    teams: tuple[str, ...]
    #: y0, x0, y1, x1 of the whole object in px, half open.
    bbox: tuple[int, int, int, int]
    #: Its centroid.
    centroid_yx_px: tuple[float, float]
    #: The reason, for the user.
    sentence: str
    #: The team of the prediction that represents the suspect; None for a reference object.
    team: str | None = None
    #: The other reference objects of a split object.
    other_ids: tuple[int, ...] = ()
    #: Another class, for the kind ``wrong-class``; else empty.
    suggested_class: str = ""
    #: If the annotation overlooks the object: the id of the prediction of each agreeing team; else
    #: empty.
    team_ids: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Agreement:
    """The objects that teams propose in one region, without label images.

    A proposal is an object that one team predicts, or on which two or more teams agree.
    """

    #: The region.
    patient: str
    region: str
    #: T names.
    teams: tuple[str, ...]
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: The n reference objects.
    reference: SideOutcomes
    #: The predictions of each team.
    predictions: tuple[SideOutcomes, ...]
    #: int16 (n, T): the class that each team predicts for each reference object, 1-based; 0 for
    #: none.
    votes: NDArray[np.int16]
    #: int64 (n,): the proposal assigned to each reference object; -1 for none.
    counterpart: IntArray
    #: float64 (n,): the mean IoU of its members with the reference object; 0 without a proposal.
    counterpart_iou: FloatArray
    #: int64 (g, T): the rows of the predictions that form a proposal; -1 for teams without one.
    members: IntArray
    #: float64 (g,): mean IoU over all pairs of members; NaN for a single member.
    iou: FloatArray
    #: bool (g,): whether more than half of it lies in the ambiguous area.
    ambiguous: BoolArray
    #: int64 (2, k): the pairs of a proposal and a reference object that overlap.
    touching: IntArray
    #: float64 (k,): means over the members. IoU of the member and the reference object; share of
    #: the member inside the reference object; share of the reference object inside the member.
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
    nodes = nodes[np.lexsort((nodes, -strength[nodes]))]
    _, strongest = np.unique(place[nodes] * len(several) + team[nodes], return_index=True)
    nodes = nodes[strongest]
    found, group = np.unique(place[nodes], return_inverse=True)
    members = np.full((len(found), len(several)), NO_MEMBER, np.int64)
    members[group, team[nodes]] = nodes - offsets[team[nodes]]

    group_of = np.full(n, -1, np.int64)
    group_of[nodes] = group
    inside = (group_of[i] >= 0) & (group_of[i] == group_of[j])
    summed = np.bincount(group_of[i][inside], iou[inside], len(found))
    size = (members != NO_MEMBER).sum(axis=1)
    mean = quotients(summed, size * (size - 1) / 2)
    order = _in_reading_order(several, members)
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
        group_of = np.full(len(evaluation.outcomes.prediction), -1, np.int64)
        groups = np.flatnonzero(members[:, team] != NO_MEMBER)
        group_of[members[groups, team]] = groups
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
        regions,
        _reliabilities(regions),
        _reliabilities(regions, only_counterparts=True),
        _class_reliabilities(regions),
        strict=True,
    )
    every_iou = np.concatenate([own.counterpart_iou[own.counterpart >= 0] for own in regions])
    typical_iou = float(np.median(every_iou)) if len(every_iou) else 0.0
    found = [suspect for own in trust for suspect in _RegionSuspects(*own, typical_iou).all()]
    return tuple(sorted(found, key=lambda suspect: -suspect.score))


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
    states, hits, counted = [], [], []
    for own in regions:
        states.append(np.where(own.members != NO_MEMBER, _AGREES, _SILENT))
        hits.append(_marked(own.touching[0, own.touching_iou > AGREEMENT_IOU], len(own)))
        is_counterpart = _marked(own.counterpart[own.counterpart >= 0], len(own))
        counted.append(~own.ambiguous & (is_counterpart | (not only_counterparts)))
    return _rates(regions, states, hits, counted)


def _marked(rows: IntArray, n: int) -> BoolArray:
    """Return bool (n,), True in some rows."""
    marked = np.zeros(n, bool)
    marked[rows] = True
    return marked


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
        states.append(state.reshape(-1, len(region.teams)))
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
    states: Sequence[IntArray],
    hits: Sequence[BoolArray],
    counted: Sequence[BoolArray],
) -> list[FloatArray]:
    """Return, per region, the squared share of hits among all rows with the same states of teams.

    Parameters
    ----------
    regions
        The regions, for their teams.
    states
        int64 (k, T) per region: the state of each team of the region.
    hits, counted
        bool (k,) per region: whether each row is a hit, and whether it counts.
    """
    teams = list(dict.fromkeys(team for region in regions for team in region.teams))
    patterns = []
    for region, state in zip(regions, states, strict=True):
        pattern = np.full((len(state), len(teams)), _ABSENT, np.int8)
        pattern[:, [teams.index(team) for team in region.teams]] = state
        patterns.append(pattern)
    pattern = np.concatenate(patterns)
    counts = np.concatenate(counted)
    is_hit = np.concatenate(hits) & counts
    number = (pattern == _AGREES).sum(axis=1)
    alike = np.unique(pattern, axis=0, return_inverse=True)[1].reshape(-1)
    rate = np.full(len(pattern), is_hit.sum() / max(counts.sum(), 1))
    for group in (number, alike):
        n = np.bincount(group, counts)[group]
        rate = (np.bincount(group, is_hit)[group] + _PRIOR * rate) / (n + _PRIOR)
    return np.split(rate**2, np.cumsum([len(state) for state in states])[:-1])


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


def _has_parts(whole: IntArray, share: FloatArray, n: int) -> BoolArray:
    """Return which of n objects consist of two or more parts that cover more than half of them.

    Parameters
    ----------
    whole, share
        (k,): the object of each part, and the share of that object inside the part.
    """
    has_parts: BoolArray = np.bincount(whole, minlength=n) > 1
    return has_parts & (np.bincount(whole, share, n) > 0.5)


@dataclass(frozen=True, eq=False)
class _RegionSuspects:
    """Finds the suspects of one region."""

    own: Agreement
    #: float64 (g,): reliability of the teams of each proposal, that it is an object
    reliability: FloatArray
    #: float64 (g,): the same, that it is the outline of an annotated object
    located: FloatArray
    #: float64 (n, C): reliability of each class for each reference object
    classes: FloatArray
    #: median IoU of reference objects with their proposals, over all regions
    typical_iou: float

    def all(self) -> list[Suspect]:
        """Return the suspects of all kinds with a score above 0, by kind and id."""
        outlines = _likeliest([*self._split(), *self._merged(), *self._badly_located()])
        found = [*self._overlooked(), *outlines, *self._wrong_class()]
        kinds = list(SuspectKind)
        found.sort(key=lambda suspect: (kinds.index(suspect.kind), suspect.id))
        return [suspect for suspect in found if suspect.score > 0]

    def _overlooked(self) -> list[Suspect]:
        own = self.own
        groups = own.touching[0]
        nearest = np.zeros(len(own))
        np.maximum.at(nearest, groups, own.touching_iou)
        covered = np.bincount(groups, own.share_of_object, len(own))
        free = (nearest < SAME_PLACE_IOU) & (covered <= 0.5) & self._counts
        found = []
        for group in np.flatnonzero(free).tolist():
            teams = self._teams(group)
            members = [
                (side, int(row))
                for side, row in zip(own.predictions, own.members[group], strict=True)
                if row != NO_MEMBER
            ]
            largest = int(np.argmax([side.area_px[row] for side, row in members]))
            reason = f"{english_list(teams)} agree on an object; the annotation has none"
            suspect = self._suspect(
                SuspectKind.OVERLOOKED,
                self.reliability[group],
                members[largest],
                teams,
                f"{reason}; {self._trust(group)}",
                team=teams[largest],
                team_ids=tuple(int(side.ids[row]) for side, row in members),
            )
            found.append(suspect)
        return found

    def _badly_located(self) -> list[Suspect]:
        own, typical = self.own, self.typical_iou
        rows = np.flatnonzero(own.counterpart >= 0)
        groups, iou = own.counterpart[rows], own.counterpart_iou[rows]
        loss = np.clip(2 * (1 - iou / max(typical, _LEAST_IOU)), 0, 1)
        trust = self.located[groups] * np.where(own.is_shared[groups], 1, _ALONE)
        score = trust * loss
        found = []
        for k in np.flatnonzero((score > 0) & ~own.ambiguous[groups]).tolist():
            teams = self._teams(int(groups[k]))
            between = f" with each other {own.iou[groups[k]]:.2f}," if len(teams) > 1 else ""
            reason = (
                f"IoU of {english_list(teams)}{between} with the annotation {iou[k]:.2f}; "
                f"{typical:.2f} is typical"
            )
            place = own.reference, int(rows[k])
            found.append(self._suspect(SuspectKind.BADLY_LOCATED, score[k], place, teams, reason))
        return found

    def _wrong_class(self) -> list[Suspect]:
        own = self.own
        annotated = own.reference.class_index - 1
        others = self.classes.copy()
        others[np.arange(len(annotated)), annotated] = 0
        found = []
        for row in np.flatnonzero(others.any(axis=1)).tolist():
            suggested = int(others[row].argmax())
            teams = self._named(own.votes[row] == suggested + 1)
            say = "predicts" if len(teams) == 1 else "agree on"
            suspect = self._suspect(
                SuspectKind.WRONG_CLASS,
                others[row, suggested],
                (own.reference, row),
                teams,
                f"annotated as {own.class_names[annotated[row]]}; {english_list(teams)} {say} "
                f"{own.class_names[suggested]}",
                suggested_class=own.class_names[suggested],
            )
            found.append(suspect)
        return found

    def _split(self) -> list[Suspect]:
        own = self.own
        groups, rows = own.touching
        inside = (own.share_of_reference > 0.5) & ~self._reference_confirmed[rows]
        is_split = _has_parts(groups[inside], own.share_of_object[inside], len(own))
        found = []
        for group in np.flatnonzero(is_split & self._counts).tolist():
            at = np.flatnonzero(inside & (groups == group))
            first, *others = rows[at[np.argsort(-own.share_of_object[at], kind="stable")]].tolist()
            teams = self._teams(group)
            reason = f"{english_list(teams)} agree on one object; the annotation has {len(at)}"
            suspect = self._suspect(
                SuspectKind.SPLIT,
                self.reliability[group],
                (own.reference, first),
                teams,
                f"{reason}; {self._trust(group)}",
                other_ids=tuple(own.reference.ids[others].tolist()),
            )
            found.append(suspect)
        return found

    def _merged(self) -> list[Suspect]:
        own = self.own
        groups, rows = own.touching
        inside = (own.share_of_object > 0.5) & self._counts[groups]
        is_merged = _has_parts(rows[inside], own.share_of_reference[inside], len(own.reference))
        found = []
        for row in np.flatnonzero(is_merged & ~self._reference_confirmed).tolist():
            at = groups[inside & (rows == row)]
            weakest = int(at[np.argmin(self.reliability[at])])
            teams = self._teams(weakest)
            reason = f"{english_list(teams)} agree on {len(at)} objects; the annotation has one"
            suspect = self._suspect(
                SuspectKind.MERGED,
                self.reliability[weakest],
                (own.reference, row),
                teams,
                f"{reason}; {self._trust(weakest)}",
            )
            found.append(suspect)
        return found

    @property
    def _counts(self) -> BoolArray:
        """Whether teams agree on each proposal (g,), outside of the ambiguous area."""
        return self.own.is_shared & ~self.own.ambiguous

    @cached_property
    def _reference_confirmed(self) -> BoolArray:
        """Whether a proposal confirms each reference object (n,)."""
        own = self.own
        return _marked(own.touching[1, own.touching_iou > AGREEMENT_IOU], len(own.reference))

    def _teams(self, group: int) -> tuple[str, ...]:
        """Return the teams that agree on a proposal."""
        return self._named(self.own.members[group] != NO_MEMBER)

    def _named(self, chosen: BoolArray) -> tuple[str, ...]:
        return tuple(compress(self.own.teams, chosen))

    def _trust(self, group: int) -> str:
        share = float(np.sqrt(self.reliability[group]))
        return f"it has {share:.0%} of the objects on which exactly these teams agree"

    def _suspect(
        self,
        kind: SuspectKind,
        score: float,
        place: tuple[SideOutcomes, int],
        teams: tuple[str, ...],
        reason: str,
        **further: Any,
    ) -> Suspect:
        """Return the suspect that an object represents, with further fields of `Suspect`."""
        side, row = place
        y, x = side.centroid_yx_px[row].tolist()
        top, left, bottom, right = side.bbox[row].tolist()
        return Suspect(
            kind=kind,
            score=float(score),
            patient=self.own.patient,
            region=self.own.region,
            side=side.side,
            id=int(side.ids[row]),
            class_name=self.own.class_names[side.class_index[row] - 1],
            teams=teams,
            bbox=(top, left, bottom, right),
            centroid_yx_px=(y, x),
            sentence=f"{reason}.",
            **further,
        )
