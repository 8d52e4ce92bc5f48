"""Compares several teams on one region: status of each reference object, places with FPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError, SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.ambiguity import judge
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.nuclei.overlap import overlap_table
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.statistics.graphs import connected_components
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings
from napari_panoptic.values.vocabulary import STATUS_CODE, Status

SAME_PLACE_IOU = 0.1
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FpPlace:
    """A place where one or more teams have an FP."""

    #: Team -> rows (int64, ascending) of its FPs here; only teams that have one.
    rows: Mapping[str, IntArray]
    #: y0, x0, y1, x1 in px, half open: the bounding box of all of them.
    bbox: tuple[int, int, int, int]
    #: Mean of their centroids, weighted by area.
    centroid_yx_px: tuple[float, float]

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams that have an FP here."""
        return tuple(self.rows)


@dataclass(frozen=True, eq=False)
class Consensus:
    """The outcomes of several teams in one region."""

    #: The T names.
    teams: tuple[str, ...]
    #: The reference objects with the outcomes of the first team. Ids, classes and places are the
    #: same for all teams.
    reference: SideOutcomes
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: int8 (n, T): status of each reference object for each team, as positions in ``STATUSES``.
    status: NDArray[np.int8]
    #: Every place where at least one team has an FP; the places with the most teams first, then in
    #: reading order.
    fp_places: tuple[FpPlace, ...]

    @cached_property
    def found(self) -> IntArray:
        """The number of teams that found each reference object in its class (TP), (n,)."""
        return self._count(Status.TP)

    @cached_property
    def misclassified(self) -> IntArray:
        """The number of teams that found each reference object in another class, (n,)."""
        return self._count(Status.MISCLASSIFIED)

    @cached_property
    def fn(self) -> IntArray:
        """The number of teams for which each reference object is an FN, (n,)."""
        return self._count(Status.FN)

    @cached_property
    def ignored(self) -> IntArray:
        """The number of teams for which each reference object is ignored, (n,)."""
        return self._count(Status.IGNORED)

    @property
    def fn_for_all(self) -> BoolArray:
        """Reference objects that are FN for every team that does not ignore them (one or more)."""
        judged: IntArray = len(self.teams) - self.ignored
        fn_for_all: BoolArray = (self.fn > 0) & (self.fn == judged)
        return fn_for_all

    @property
    def found_by_one_only(self) -> BoolArray:
        """Reference objects that exactly one team found in their class.

        Other teams may have misclassified them.
        """
        found: BoolArray = self.found == 1
        return found

    def shared_fp_places(self, at_least: int = 2) -> tuple[FpPlace, ...]:
        """Return the places where at least this many teams have an FP."""
        return tuple(place for place in self.fp_places if len(place.rows) >= at_least)

    def _count(self, status: Status) -> IntArray:
        counted: IntArray = (self.status == STATUS_CODE[status]).sum(axis=1, dtype=np.int64)
        return counted


def consensus(evaluations: Mapping[str, Evaluation]) -> Consensus:
    """Compare the outcomes of several teams on one region.

    FPs of two teams are at the same place if their IoU, after the ambiguous policy, is at least
    0.1. Chains of such pairs form one place. Two FPs of one team share a place only if FPs of other
    teams connect them.

    Parameters
    ----------
    evaluations
        Team -> its evaluation of the region, all with the same reference and
        settings (except distances). Not changed.

    Raises
    ------
    LabelError
        Without teams, or if the references or ambiguous areas differ.
    SettingsError
        If the settings differ, because their statuses cannot be compared.
    """
    check_comparable(evaluations)
    first = next(iter(evaluations.values()))
    statuses = [evaluation.outcomes.reference.status for evaluation in evaluations.values()]
    return Consensus(
        teams=tuple(evaluations),
        reference=first.outcomes.reference,
        class_names=first.pair.class_names,
        status=np.stack(statuses, axis=1),
        fp_places=_fp_places(evaluations),
    )


def check_comparable(evaluations: Mapping[str, Evaluation]) -> None:
    """Check that teams were evaluated against one annotation under the same settings.

    Raises
    ------
    LabelError
        Without teams, or if the references or ambiguous areas differ.
    SettingsError
        If the settings differ.
    """
    if not evaluations:
        raise LabelError("a consensus needs the evaluation of at least one team, found none")
    (first_name, first), *others = evaluations.items()
    for name, other in others:
        differences = first.settings.replaced(distances=False).differences(
            other.settings.replaced(distances=False)
        )
        if differences:
            raise SettingsError(
                f"teams '{first_name}' and '{name}' were evaluated with different "
                f"{english_list(list(differences))}: evaluate them with the same settings first"
            )
        if not _same_reference(first, other):
            raise LabelError(
                f"teams '{first_name}' and '{name}' were evaluated against different references "
                "or ambiguous areas: a consensus needs one region and one annotation"
            )


def _same_reference(first: Evaluation, other: Evaluation) -> bool:
    ours, theirs = first.pair, other.pair
    same_objects = ours.reference is theirs.reference or (
        np.array_equal(ours.reference.ids, theirs.reference.ids)
        and np.array_equal(ours.reference.class_index, theirs.reference.class_index)
        and len(ours.reference.sheets) == len(theirs.reference.sheets)
        and all(map(np.array_equal, ours.reference.sheets, theirs.reference.sheets))
    )
    same_area = ours.ambiguous is theirs.ambiguous
    if ours.ambiguous is not None and theirs.ambiguous is not None:
        same_area = same_area or np.array_equal(ours.ambiguous, theirs.ambiguous)
    return same_objects and same_area


# --- FPs of several teams at the same place ---------------------------------------------------


def _fp_places(evaluations: Mapping[str, Evaluation]) -> tuple[FpPlace, ...]:
    several = list(evaluations.values())
    sides = [evaluation.outcomes.prediction for evaluation in several]
    fps = [np.flatnonzero(side.status == STATUS_CODE[Status.FP]) for side in sides]
    # FPs of all teams have consecutive numbers, team by team; other objects have -1.
    numbers, count = [np.full(len(side), -1, np.int64) for side in sides], 0
    for number, rows in zip(numbers, fps, strict=True):
        number[rows] = count + np.arange(len(rows))
        count += len(rows)
    ends: list[tuple[IntArray, IntArray]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for a, b in combinations(range(len(several)), 2):
        rows, columns, iou = team_overlap(several[a], several[b])
        i, j = numbers[a][rows], numbers[b][columns]
        near = (i >= 0) & (j >= 0) & (iou >= SAME_PLACE_IOU)
        ends.append((i[near], j[near]))
    i, j = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    places = _places(list(evaluations), sides, fps, connected_components(i, j, count))
    return tuple(sorted(places, key=lambda p: (-len(p.rows), p.bbox)))


def _places(
    names: list[str], sides: list[SideOutcomes], fps: list[IntArray], place: IntArray
) -> list[FpPlace]:
    if not len(place):
        return []
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    team = np.repeat(np.arange(len(fps)), [len(rows) for rows in fps])[order]
    row = np.concatenate(fps)[order]
    own = list(zip(sides, fps, strict=True))
    bbox = np.concatenate([side.bbox[rows] for side, rows in own])[order]
    area = np.concatenate([side.area_px[rows] for side, rows in own])[order]
    yx = np.concatenate([side.centroid_yx_px[rows] for side, rows in own])[order]
    low = np.minimum.reduceat(bbox[:, :2], starts, axis=0)
    high = np.maximum.reduceat(bbox[:, 2:], starts, axis=0)
    weight = np.add.reduceat(area, starts)
    centroids = np.add.reduceat(yx * area[:, None], starts, axis=0) / weight[:, None]
    return [
        FpPlace(_rows_by_team(names, teams, rows), (y0, x0, y1, x1), (y, x))
        for teams, rows, (y0, x0), (y1, x1), (y, x) in zip(
            np.split(team, starts[1:]),
            np.split(row, starts[1:]),
            low.tolist(),
            high.tolist(),
            centroids.tolist(),
            strict=True,
        )
    ]


def _rows_by_team(names: list[str], team: IntArray, row: IntArray) -> dict[str, IntArray]:
    if len(team) == 1:
        return {names[team[0]]: row}
    return {names[k]: row[team == k] for k in dict.fromkeys(team.tolist())}


# --- predictions of two teams -----------------------------------------------------------------


def team_overlap(one: Evaluation, other: Evaluation) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the IoU of all pairs of predictions of two teams that overlap.

    Parameters
    ----------
    one, other
        The teams' evaluations of one region under the same settings.

    Returns
    -------
    rows, columns
        int64 (k,): the rows of the predictions in the outcomes of each team.
    iou
        float64 (k,): their IoU after the ambiguous policy.
    """
    # The void rule removes ambiguous pixels from the IoU, which has the same effect as cutting
    # them; so has the zone.
    keeps = one.settings.ambiguous is AmbiguousPolicy.KEEP
    void = None if keeps else one.pair.ambiguous
    if (zone := Zone.of(one.table, one.settings)) is not None:
        uncertain = zone.mask(one.pair, (0, 0, *one.pair.reference.shape))
        void = uncertain if void is None else void | uncertain
    table = overlap_table(LabelPair(one.pair.prediction, other.pair.prediction, void))
    shared = judge(table, EvaluationSettings())
    rows, columns = shared.pair_reference, shared.pair_prediction
    return rows.astype(np.int64), columns.astype(np.int64), shared.iou
