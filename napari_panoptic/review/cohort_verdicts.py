"""Verdicts on failures in any region and of any team, whether it is shown or not. No Qt here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from napari_panoptic.explain.failures import (
    FailureName,
    FailureSet,
    RegionFailures,
)
from napari_panoptic.live.session import Session
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.review.identity import Fingerprint, ObjectKey, Subject, matched, object_key
from napari_panoptic.review.judged import Judged
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.verdicts import Judgement, ReviewRecord
from napari_panoptic.values.vocabulary import SIDES, Side, Verdict

Records = Mapping[tuple[Side, int], ReviewRecord]
"""Side and id of an object -> the verdict on it."""
Details = tuple[Verdict, str, str]
"""A verdict, its tags and its note."""


@dataclass(frozen=True, eq=False)
class _Known:
    """The verdicts on one team in one region."""

    #: The summary of the region when they were found: with another one they are outdated.
    line: RegionSummary | None
    #: The verdicts; both objects of a misclassified pair have that of the pair.
    records: Records
    #: Failures with a verdict, and all failures.
    done: int
    total: int


class CohortVerdicts:
    """The verdicts on the failures of a cohort, as far as it is evaluated.

    Those of the region that is shown are the review's own. Those of other regions are read from
    the review file once, and matched with the failures of the cohort summary.

    Parameters
    ----------
    session
        What is looked at.
    reviewing
        The review.
    """

    def __init__(self, session: Session, reviewing: Reviewing) -> None:
        self._session, self._reviewing = session, reviewing
        self._known: dict[tuple[str, str], _Known] = {}
        self._file: tuple[object, int] | None = None
        self._given: dict[tuple[str, str], RegionFailures] = {}
        reviewing.touched.connect(self._forget)

    def include(self, objects: FailureSet | None) -> None:
        """Know also the given objects of a set, which may be no failures; no others any more."""
        given = () if objects is None else objects.given
        changed = {region for _, region in self._given} | {block.region for block in given}
        self._given = {(block.team, block.region): block.failures for block in given}
        self._forget(changed)

    def record(self, name: FailureName) -> ReviewRecord | None:
        """Return the verdict on an object, None if it has none."""
        known = self._of(name.team, name.region)
        return None if known is None else known.records.get((name.side, name.id))

    def is_open(self, name: FailureName) -> bool:
        """Return whether a failure can be judged and has no verdict."""
        if self._is_shown(name.team, name.region):
            self._reviewing.follow()  # edits
        known = self._of(name.team, name.region)
        return known is not None and (name.side, name.id) not in known.records

    def subject(self, name: FailureName) -> Subject | None:
        """Describe an object as the review file knows it; None if it is not known here.

        Parameters
        ----------
        name
            Any object of what is shown, or a failure or included object in another region or of
            another team.
        """
        if self._is_shown(name.team, name.region) and self._session.evaluation is not None:
            row = self._session.evaluation.outcomes.side(name.side).row_of(name.id)
            return None if row is None else self._reviewing.subject(name.side, row)
        line = self._session.summaries.get((name.region, name.team))
        known = None if line is None else line.failures
        for failures in (known, self._given.get((name.team, name.region))):
            row = None if failures is None else _row_of(name, failures)
            if failures is not None and row is not None:
                return _subject(name, failures, row)
        return None

    def give(self, given: Mapping[FailureName, Details]) -> list[ReviewRecord]:
        """Save verdicts on objects of any region and team, which are undone together.

        Parameters
        ----------
        given
            Object -> its verdict, tags and note. Objects that are not known here are left out.

        Returns
        -------
        list of ReviewRecord
            The verdicts; empty if none was saved.
        """
        evaluation = self._session.evaluation
        if evaluation is not None and all(self._is_shown(at.team, at.region) for at in given):
            rows = {at: evaluation.outcomes.side(at.side).row_of(at.id) for at in given}
            return self._reviewing.give_all(
                {(at.side, row): given[at] for at, row in rows.items() if row is not None}
            )
        subjects = {at: self.subject(at) for at in given}
        return self._reviewing.give_anywhere(
            [Judgement(of, *given[at]) for at, of in subjects.items() if of is not None],
            shown=[self.record(at) for at in given],
        )

    def reviewed(self) -> dict[str, int]:
        """Return region -> its number of failures of the current team with a verdict."""
        return {region: known.done for region, known in self._of_team().items()}

    def counts(self) -> tuple[int, int]:
        """Count the current team's failures with a verdict, and all, in the regions evaluated."""
        found = self._of_team().values()
        return sum(known.done for known in found), sum(known.total for known in found)

    def keep(self, judged: Judged | None) -> None:
        """Keep the verdicts on what is shown, also for later, when another region is shown."""
        snapshot, team = self._session.snapshot, self._session.team
        if judged is None or snapshot is None or team is None:
            return
        if judged.evaluation is not self._session.evaluation:
            return  # the session is ahead: they come again with the next look
        region = snapshot.region.name
        line = self._session.summaries.get((region, team))
        known = self._known.get((team, region))
        if known is None or known.line is not line or known.records is not judged.by_id:
            self._known[team, region] = _Known(line, judged.by_id, *judged.counts())

    def _of_team(self) -> dict[str, _Known]:
        team = self._session.team or ""
        found = {
            region.name: self._of(team, region.name) for region in self._session.cohort.regions
        }
        return {region: known for region, known in found.items() if known is not None}

    def _forget(self, regions: Collection[str]) -> None:
        self._known = {key: known for key, known in self._known.items() if key[1] not in regions}

    def _follow_file(self) -> None:
        """Forget everything if another reviewer or another file is used."""
        store = self._reviewing.store
        file = None if store is None else (store, store.times_opened)
        if file != self._file:
            self._file, self._known = file, {}

    def _of(self, team: str, region: str) -> _Known | None:
        """Return the verdicts on a team in a region; None if nothing can be judged there."""
        self._follow_file()
        if self._is_shown(team, region):
            if self._session.evaluation is None:
                return None
            self.keep(self._reviewing.judged)
            return self._known.get((team, region))
        line = self._session.summaries.get((region, team))
        if line is None or line.failures is None:
            return None
        known = self._known.get((team, region))
        if known is None or known.line is not line:
            known = self._read(line, line.failures)
            if self._reviewing.problem is None:
                self._known[team, region] = known
        return known

    def _read(self, line: RegionSummary, failures: RegionFailures) -> _Known:
        """Match the verdicts in the review file with the failures of a region."""
        subjects = _subjects(line.team, line.region, failures)
        total = len(subjects)
        if (given := self._given.get((line.team, line.region))) is not None:
            subjects = {**_subjects(line.team, line.region, given), **subjects}
        # A file that cannot be used was reported, and is not asked again for every region.
        is_usable = subjects and self._reviewing.problem is None
        if not is_usable or line.region not in self._reviewing.reviewed_regions(line.team):
            return _Known(line, {}, 0, total)
        records = self._reviewing.records(line.region)
        places: list[ObjectKey] = [object_key(subject) for subject in subjects.values()]
        # Objects that are no failures are not known here.
        numbers = matched(places, map(object_key, records), are_all=False)
        found = {
            (name.side, name.id): records[number]
            for name, number in zip(subjects, numbers, strict=True)
            if number is not None
        }
        own = zip(failures.columns["side"].tolist(), failures.columns["id"].tolist(), strict=True)
        done = sum((SIDES[side], id_) in found for side, id_ in own)
        return _Known(line, found, done, total)

    def _is_shown(self, team: str, region: str) -> bool:
        snapshot = self._session.snapshot
        if snapshot is None:
            return False
        return (team, region) == (self._session.team, snapshot.region.name)


def _row_of(name: FailureName, failures: RegionFailures) -> int | None:
    columns = failures.columns
    is_it = (columns["side"] == SIDES.index(name.side)) & (columns["id"] == name.id)
    found = np.flatnonzero(is_it)
    return int(found[0]) if len(found) else None


def _subjects(team: str, region: str, failures: RegionFailures) -> dict[FailureName, Subject]:
    """Describe all objects as the review file knows them."""
    sides, ids = failures.columns["side"].tolist(), failures.columns["id"].tolist()
    names = [
        FailureName(team, region, SIDES[side], id_) for side, id_ in zip(sides, ids, strict=True)
    ]
    return {name: _subject(name, failures, row) for row, name in enumerate(names)}


def _subject(name: FailureName, failures: RegionFailures, row: int) -> Subject:
    columns = failures.columns
    y, x = columns["whole_centroid_yx_px"][row].tolist()
    class_name = failures.class_names[int(columns["class"][row]) - 1]
    return Subject(
        team=name.team,
        region=name.region,
        side=name.side,
        object_id=name.id,
        fingerprint=Fingerprint(class_name, y, x, int(columns["whole_area_px"][row])),
    )
