"""What single verdicts change in the sums of every team once the annotation is mended.

A mended object changes the figures of all teams, also of those whose predictions were not
reviewed. What it changes is not derived from rules: the annotation is mended as the command
``correct`` does, each team is evaluated in this region, and the mend is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.live.actions import Mend, Target, apply, mend_of_verdicts
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.nuclei.regions.run import walk, walk_teams
from napari_panoptic.review.corrections import CorrectionRequest
from napari_panoptic.review.plan.corrected import DECIDED, FloatArray, SumPositions
from napari_panoptic.review.plan.object_verdicts import SIDE_OF
from napari_panoptic.review.plan.units import SIDES, IntArray, Units, joined, objects_of
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.vocabulary import Verdict


@dataclass(frozen=True, eq=False)
class AnnotatedCohort:
    """The sums of all teams as annotated, and the objects of one of them."""

    #: The teams (U,), without those that cannot be evaluated anywhere.
    teams: tuple[str, ...]
    #: float64 (U, K): their sums over the cohort.
    sums: FloatArray
    #: The objects of the reviewed team that can be items: without tiles.
    objects: Units
    #: Why regions or teams are left out.
    findings: tuple[Finding, ...] = ()

    @property
    def positions(self) -> SumPositions:
        """What each sum is."""
        return SumPositions(len(self.objects.class_names))


def annotated_cohort(
    work: CorrectionRequest,
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    progress: Progress = UNWATCHED,
) -> AnnotatedCohort:
    """Evaluate all competing teams over a cohort.

    Parameters
    ----------
    work
        The cohort, the reviewed team, and how to evaluate.
    held_up_to_px
        Number of pixels that a region may have.
    progress
        Where progress is reported.

    Raises
    ------
    StoppedError
        If the work is cancelled.
    """
    names = [team.name for team in work.cohort.competing_teams]
    names += [] if work.team in names else [work.team]

    def of_region(own: Evaluation, region: Region, team: str) -> tuple[FloatArray, Units | None]:
        is_reviewed = team == work.team
        units = objects_of(own.outcomes, team, region.patient, region.name) if is_reviewed else None
        return sums_of(own.counts), units

    sums: dict[str, FloatArray] = {}
    objects: list[Units] = []
    findings: list[Finding] = []
    for found in walk_teams(
        work.cohort,
        names,
        work.settings,
        work.source,
        of_region,
        jobs=None,
        held_up_to_px=held_up_to_px,
        progress=progress,
    ):
        findings += found.findings
        if found.result is not None:
            added, units = found.result
            sums[found.team] = sums.get(found.team, np.zeros_like(added)) + added
            objects += [] if units is None else [units]
    teams = tuple(name for name in names if name in sums)
    n_sums = len(SumPositions(len(work.cohort.scheme.names)))
    every = np.array([sums[name] for name in teams]).reshape(len(teams), n_sums)
    units = joined(work.cohort.scheme.names, objects)
    return AnnotatedCohort(teams, every, units, tuple(dict.fromkeys(findings)))


def sums_of(counts: Counts) -> FloatArray:
    """Return the sums of a team in a region (K,), without errors; see `SumPositions`."""
    confusion = counts.confusion
    by_class = [
        confusion[1:].sum(axis=1),
        np.zeros(len(counts.tp)),
        *(counts.tp, counts.fp, counts.fn, counts.iou_sum),
    ]
    overall = [confusion[1:, 1:].sum(), confusion[0, 1:].sum(), confusion[1:, 0].sum(), 0]
    return np.concatenate([*by_class, overall]).astype(np.float64)


def mending_changes(
    work: CorrectionRequest,
    known: AnnotatedCohort,
    rows: Sequence[int] | IntArray,
    verdicts: Sequence[int] | IntArray,
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    progress: Progress = UNWATCHED,
) -> FloatArray:
    """Return what verdicts change in the sums of each team, each mended alone.

    Parameters
    ----------
    work, known
        The cohort, how to mend, and the objects.
    rows
        Rows of the objects (n,); one may occur several times.
    verdicts
        Positions in `DECIDED` (n,).
    held_up_to_px
        Number of pixels that a region may have.
    progress
        Where progress is reported.

    Returns
    -------
    float64 (n, U, K)
        The sums after the mend less those before it; 0 where the mend changes nothing, or is not
        possible.

    Raises
    ------
    SettingsError
        If a region cannot be evaluated any more.
    StoppedError
        If the work is cancelled.
    """
    result = np.zeros((len(rows), *known.sums.shape))
    tasks = _tasks(known.objects, np.asarray(rows, np.int64), np.asarray(verdicts, np.int64))
    regions = [region for region in work.cohort.regions if region.name in tasks]

    def of_region(region: Region, held: HeldRegion) -> FloatArray:
        targets = [(target, verdict) for _, target, verdict in tasks[region.name]]
        return _changes(work, known.teams, held, targets)

    for region, found in walk(
        work.cohort,
        known.teams,
        work.settings,
        of_region,
        regions=regions,
        jobs=None,
        held_up_to_px=held_up_to_px,
        progress=progress,
    ):
        if isinstance(found, Finding):
            raise SettingsError(f"region {region.name} cannot be read again: {found.message}")
        result[[place for place, _, _ in tasks[region.name]]] = found
    return result


def _tasks(
    objects: Units, rows: IntArray, verdicts: NDArray[np.int64]
) -> dict[str, list[tuple[int, Target, Verdict]]]:
    """Return region -> place in the result, object and verdict of what can change something."""
    tasks: dict[str, list[tuple[int, Target, Verdict]]] = {}
    for place, (row, number) in enumerate(zip(rows.tolist(), verdicts.tolist(), strict=True)):
        verdict = DECIDED[number]
        if verdict is Verdict.ANNOTATION_RIGHT:
            continue
        target = SIDE_OF[SIDES[int(objects.side[row])]], int(objects.id[row])
        tasks.setdefault(str(objects.region[row]), []).append((place, target, verdict))
    return tasks


def _changes(
    work: CorrectionRequest,
    teams: Sequence[str],
    held: HeldRegion,
    wanted: Sequence[tuple[Target, Verdict]],
) -> FloatArray:
    """Mend objects of a region one by one, and evaluate each team; return (n, U, K)."""
    own = held.evaluate(work.team, work.settings, work.source).evaluation
    result = np.zeros((len(wanted), len(teams), len(SumPositions(len(work.cohort.scheme.names)))))
    if own is None:
        return result
    mends = [
        mend_of_verdicts(own, {target: verdict}, claim=work.claim, covered=work.covered)
        for target, verdict in wanted
    ]
    for number, team in enumerate(teams):
        found = held.evaluate(team, work.settings, work.source).evaluation
        if found is not None:
            result[:, number] = _changes_of(found, mends, len(result[0, 0]))
        held.forget(team)
    return result


def _changes_of(evaluation: Evaluation, mends: Sequence[Mend], n_sums: int) -> FloatArray:
    """Return what each mend alone changes in the sums of a team, (n, K)."""
    result = np.zeros((len(mends), n_sums))
    edited = EditedPair(evaluation.pair, known=evaluation)
    before = sums_of(evaluation.counts)
    for row, mend in enumerate(mends):
        if not mend.changes_nothing:
            apply(mend, edited)
            result[row] = sums_of(edited.evaluate(evaluation.settings).counts) - before
            apply(mend.inverse, edited)
    return result
