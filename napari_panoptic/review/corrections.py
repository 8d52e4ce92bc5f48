"""The annotation of a cohort with the verdicts of a review applied.

`decided` finds out what reviewers say of each object, and `corrected_regions` applies it, region by
region. `napari_panoptic.review.corrected_files` writes the files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.format import Format
from napari_panoptic.live.actions import mend_of_verdicts
from napari_panoptic.live.mends import Claim, Covered, Mend, MendedObject, Target, apply
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.corrected_files import CorrectedAnnotation, Correction
from napari_panoptic.review.identity import Fingerprint, found_in
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.verdicts import ReviewRecord, Role
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict

_SAME_PX = 1e-6
"""Centroids of the same pixels are as close as this, whatever the rounding of their sums."""


@dataclass(frozen=True)
class ObjectDecision:
    """What holds of one object after all its verdicts."""

    target: Target
    verdict: Verdict
    #: Those who gave it, by name.
    reviewers: tuple[str, ...]
    #: The newest of their verdicts.
    record: ReviewRecord

    def correction_of(self, mended: MendedObject) -> Correction:
        """Return what it does to an object."""
        record = self.record
        return Correction(mended, record.team, self.reviewers, record.given_at, self.verdict)


@dataclass(frozen=True)
class VerdictConflict:
    """An object on which reviewers differ, with no decision."""

    target: Target
    records: tuple[ReviewRecord, ...]


@dataclass(frozen=True)
class NotApplied:
    """A verdict that changes nothing, though it should."""

    record: ReviewRecord
    #: Why, for the user.
    reason: str


@dataclass(frozen=True)
class Decided:
    """What the verdicts on the objects of a region and team come to."""

    decisions: tuple[ObjectDecision, ...]
    conflicts: tuple[VerdictConflict, ...]
    not_applied: tuple[NotApplied, ...]


@dataclass(frozen=True, eq=False)
class CorrectedRegion:
    """The annotation of one region with verdicts applied."""

    region: Region
    decided: Decided
    #: What changes; None if the region cannot be evaluated.
    mend: Mend | None = None
    #: The region before and after, with its objects and ambiguous area.
    before: LabelPair | None = None
    after: LabelPair | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def changed(self) -> LabelPair | None:
        """The region after the corrections, if its annotation changes."""
        has_changed = self.mend is not None and not self.mend.changes_nothing
        return self.after if has_changed else None

    @property
    def not_applied(self) -> tuple[NotApplied, ...]:
        """All verdicts that could not be applied."""
        refused = () if self.mend is None else self.mend.not_done
        records = {decision.target: decision.record for decision in self.decided.decisions}
        return (
            *self.decided.not_applied,
            *(NotApplied(records[item.target], item.reason) for item in refused),
        )

    @property
    def annotation(self) -> CorrectedAnnotation:
        """What is written of it."""
        after = self.changed
        return CorrectedAnnotation(
            self.region,
            self.corrections,
            labels=None if after is None else after.reference,
            ambiguous=None if after is None else after.ambiguous,
            mpp=None if after is None else after.mpp,
        )

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """The objects that verdicts change."""
        decisions = {decision.target: decision for decision in self.decided.decisions}
        mended = () if self.mend is None else self.mend.objects
        return tuple(
            decisions[own.target].correction_of(own) for own in mended if own.target in decisions
        )


@dataclass(frozen=True)
class PlannedVerdict:
    """A verdict on an object that a plan has drawn."""

    team: str
    region: str
    side: Side
    object_id: int
    class_name: str
    #: Centroid of the pixels that the ambiguous policy leaves, when the plan was drawn.
    y_px: float
    x_px: float
    reviewer: str
    verdict: Verdict
    note: str
    #: Time in UTC.
    given_at: datetime

    def of(self, fingerprint: Fingerprint) -> ReviewRecord:
        """Return the verdict on an object, as a record like those without a plan."""
        return ReviewRecord(
            team=self.team,
            region=self.region,
            side=self.side,
            object_id=self.object_id,
            fingerprint=fingerprint,
            reviewer=self.reviewer,
            verdict=self.verdict,
            note=self.note,
            given_at=self.given_at,
        )

    @property
    def not_found(self) -> ReviewRecord:
        """The verdict as a record if its object is not known any more."""
        return self.of(Fingerprint(self.class_name, self.y_px, self.x_px, 0))


@dataclass(frozen=True)
class CorrectionRequest:
    """What is corrected, and how."""

    cohort: Cohort
    #: The verdicts; those on other teams do not count.
    records: Sequence[ReviewRecord]
    team: str
    settings: EvaluationSettings
    #: Which format of the predictions is read; None for the usual one.
    source: Source | None = None
    claim: Claim = Claim.KEEP
    #: The format to write; None for that of the cohort.
    form: Format | None = None
    #: Verdicts on the items of a plan; those on other teams do not count.
    planned: Sequence[PlannedVerdict] = ()

    @property
    def given(self) -> list[ReviewRecord | PlannedVerdict]:
        """All verdicts on the team."""
        every: list[ReviewRecord | PlannedVerdict] = [*self.records, *self.planned]
        return [own for own in every if own.team == self.team]

    @property
    def region_names(self) -> set[str]:
        """Names of the regions with a verdict on the team."""
        return {own.region for own in self.given}

    @property
    def covered(self) -> Covered:
        """How FPs that cover several annotated objects are accepted."""
        return Covered.ASK if self.claim is Claim.KEEP else Covered.BESIDE


# --- what reviewers say -----------------------------------------------------------------------


def decided(evaluation: Evaluation, records: Sequence[ReviewRecord], region: str) -> Decided:
    """Find the objects of verdicts, and what holds of each.

    An adjudicator's verdict decides (the newest); equal verdicts count once; different ones are a
    conflict. Verdicts on objects that have other pixels or another class now are not applied.

    Parameters
    ----------
    evaluation
        The objects as they are on disk.
    records
        The verdicts on one team in this region.
    region
        Its name.
    """
    of_object: dict[Target, list[ReviewRecord]] = defaultdict(list)
    found: set[int] = set()
    not_applied: list[NotApplied] = []
    for own in _by_giver(records):
        subjects = Subjects(evaluation, region=region, team=own[0].team)
        for (side, row), record in subjects.find(own).items():
            subject = subjects.of(side, row)
            found.add(id(record))
            if subject.fingerprint.has_pixels_of(record.fingerprint):
                of_object[side, subject.object_id].append(record)
            else:
                not_applied.append(NotApplied(record, "the object has changed on disk since"))
    missing = "the object is not there any more"
    not_applied += [NotApplied(record, missing) for record in records if id(record) not in found]
    decisions, conflicts = [], []
    for target, given in sorted(of_object.items(), key=lambda item: (item[0][0], item[0][1])):
        decision = _decision(target, given)
        if decision is None:
            conflicts.append(VerdictConflict(target, tuple(given)))
        else:
            decisions.append(decision)
    return Decided(tuple(decisions), tuple(conflicts), tuple(not_applied))


def planned_records(
    evaluation: Evaluation, planned: Sequence[PlannedVerdict], region: str
) -> tuple[list[ReviewRecord], list[NotApplied]]:
    """Return verdicts on items of a plan as records of the objects as they are on disk.

    Parameters
    ----------
    evaluation
        The objects as they are on disk.
    planned
        The verdicts on one team in this region.
    region
        Its name.

    Returns
    -------
    list of ReviewRecord
        Those whose object is the same as when the plan was drawn.
    list of NotApplied
        The others.
    """
    records, not_applied = [], []
    subjects = Subjects(evaluation, region=region, team=planned[0].team) if planned else None
    for own in planned:
        outcomes = evaluation.outcomes.side(own.side)
        row = outcomes.row_of(own.object_id)
        if subjects is None or row is None:
            not_applied.append(NotApplied(own.not_found, "the object is not there any more"))
            continue
        subject = subjects.of(own.side, row)
        apart = outcomes.centroid_yx_px[row] - (own.y_px, own.x_px)
        if np.hypot(*apart) < _SAME_PX and subject.class_name == own.class_name:
            records.append(replace(own.of(subject.fingerprint), beside=subject.beside))
        else:
            not_applied.append(NotApplied(own.not_found, "the object has changed on disk since"))
    return records, not_applied


def newest_of_each(
    records: Sequence[ReviewRecord], of_plan: Sequence[ReviewRecord]
) -> list[ReviewRecord]:
    """Return verdicts without a plan and on items of one, without those that are replaced.

    Of two verdicts of a reviewer on one object, the newer one replaces the other.
    """
    kept = list(records)
    for record in of_plan:
        own = [n for n, other in enumerate(kept) if _giver_of(other) == _giver_of(record)]
        at = found_in(record, [kept[n] for n in own])
        if at is None:
            kept.append(record)
        elif kept[own[at]].given_at < record.given_at:
            kept[own[at]] = record
    return kept


def _by_giver(records: Iterable[ReviewRecord]) -> Iterable[list[ReviewRecord]]:
    """Group verdicts by who gave them: an object has one of each."""
    groups: dict[tuple[str, str], list[ReviewRecord]] = defaultdict(list)
    for record in records:
        groups[_giver_of(record)].append(record)
    return groups.values()


def _giver_of(record: ReviewRecord) -> tuple[str, str]:
    return record.reviewer, record.role


def _decision(target: Target, given: Sequence[ReviewRecord]) -> ObjectDecision | None:
    """Return what holds of an object; None if reviewers differ, undecided."""
    adjudicated = [record for record in given if record.role is Role.ADJUDICATOR]
    chosen = [max(adjudicated, key=lambda record: record.given_at)] if adjudicated else given
    if len({record.verdict for record in chosen}) > 1:
        return None
    newest = max(chosen, key=lambda record: record.given_at)
    reviewers = tuple(dict.fromkeys(record.reviewer for record in chosen))
    return ObjectDecision(target, newest.verdict, reviewers, newest)


# --- corrections ------------------------------------------------------------------------------


def corrected_regions(work: CorrectionRequest) -> Iterator[CorrectedRegion]:
    """Apply the verdicts on a team, region by region, in the order of the cohort.

    Regions without a verdict on the team are left out, and so are verdicts on regions that the
    cohort does not have: see `unknown_regions`.
    """
    names = work.region_names
    for region in work.cohort.regions:
        if region.name in names:
            yield _corrected(work, region)


def unknown_regions(work: CorrectionRequest) -> list[NotApplied]:
    """Return the verdicts on regions that the cohort does not have."""
    known = {region.name for region in work.cohort.regions}
    return [
        NotApplied(_as_record(own), "the cohort has no such region")
        for own in work.given
        if own.region not in known
    ]


def _as_record(given: ReviewRecord | PlannedVerdict) -> ReviewRecord:
    return given.not_found if isinstance(given, PlannedVerdict) else given


def _corrected(work: CorrectionRequest, region: Region) -> CorrectedRegion:
    given = [own for own in work.given if own.region == region.name]
    records = [own for own in given if isinstance(own, ReviewRecord)]
    planned = [own for own in given if isinstance(own, PlannedVerdict)]
    try:
        held = HeldRegion(work.cohort, region, work.settings, held_up_to_px=HELD_UP_TO_PX)
        found = held.evaluate(work.team, work.settings, work.source)
    except PanopticError as error:
        finding = Finding.unreadable(error, region=region.name, team=work.team)
        return _unread(region, [*map(_as_record, given)], (finding,))
    evaluation = found.evaluation
    if evaluation is None:
        return _unread(region, [*map(_as_record, given)], found.findings)
    if planned:
        of_plan, not_applied = planned_records(evaluation, planned, region.name)
        outcome = decided(evaluation, newest_of_each(records, of_plan), region.name)
        outcome = replace(outcome, not_applied=(*outcome.not_applied, *not_applied))
    else:
        outcome = decided(evaluation, records, region.name)
    verdicts = {decision.target: decision.verdict for decision in outcome.decisions}
    mend = mend_of_verdicts(evaluation, verdicts, claim=work.claim, covered=work.covered)
    edited = EditedPair(evaluation.pair, known=evaluation)
    apply(mend, edited)
    return CorrectedRegion(
        region, outcome, mend, evaluation.pair, edited.pair(), tuple(found.findings)
    )


def _unread(
    region: Region, records: Sequence[ReviewRecord], findings: Sequence[Finding]
) -> CorrectedRegion:
    reason = next((f.message for f in findings if f.kind is FindingKind.UNREADABLE), None)
    reason = f"the region cannot be evaluated: {reason or 'something is missing'}"
    not_applied = tuple(NotApplied(record, reason) for record in records)
    return CorrectedRegion(region, Decided((), (), not_applied), findings=tuple(findings))


# --- the record -------------------------------------------------------------------------------


def conflict_record(found: CorrectedRegion, conflict: VerdictConflict) -> dict[str, Any]:
    """Return a conflict as `CORRECTIONS_RECORD` has it."""
    side, id_ = conflict.target
    given = {_giver(record): str(record.verdict) for record in conflict.records}
    return {"region": found.region.name, "side": str(side), "id": id_, "verdicts": given}


def _giver(record: ReviewRecord) -> str:
    return f"{record.reviewer} ({record.role})" if record.role else record.reviewer


def not_applied_record(item: NotApplied) -> dict[str, Any]:
    """Return a verdict that was not applied as `CORRECTIONS_RECORD` has it."""
    record, place = item.record, item.record.fingerprint
    return {
        "region": record.region,
        "side": str(record.side),
        "id": record.object_id,
        "class": record.class_name,
        "y_px": place.centroid_y_px,
        "x_px": place.centroid_x_px,
        "verdict": str(record.verdict),
        "reviewer": record.reviewer,
        "why": item.reason,
    }


def pixels_of_others(found: CorrectedRegion) -> list[dict[str, Any]]:
    """Return which annotated objects lost pixels to accepted outlines, or kept them."""
    if found.mend is None:
        return []
    kinds = {"taken": found.mend.overwritten, "kept": found.mend.spared}
    return [
        {
            "region": found.region.name,
            "id": id_,
            "pixels": kind,
            "px": number,
            "is_gone": (side, id_) in found.mend.vanished,
        }
        for kind, objects in kinds.items()
        for (side, id_), number in objects.items()
    ]
