"""The store of a review: each verdict is on disk as soon as it is given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Self
from uuid import uuid4

from napari_panoptic.common.findings import Finding
from napari_panoptic.review.changes import (
    BEFORE_ALL,
    ReviewChange,
    ReviewChanges,
    VerdictGiven,
    VerdictsReceived,
    VerdictWithdrawn,
    as_stored,
    check_not_received,
)
from napari_panoptic.review.file import ReviewError, ReviewFile, now
from napari_panoptic.review.identity import (
    Fingerprint,
    Subject,
    found_in,
    one_spelling,
    reach_px,
    reviewer_name,
)
from napari_panoptic.review.plan.store import PlanAnswers, PlanReview, Plans
from napari_panoptic.review.verdicts import (
    HistoryEntry,
    Judgement,
    Receipt,
    ReviewerAgreement,
    ReviewRecord,
    Role,
    compared,
)
from napari_panoptic.values.vocabulary import Verdict

_CELL_PX = 64
"""Verdicts are looked up by squares of this size."""
_OF_VERDICTS = "region <> '' AND typeof(region) = 'text'"
# Values of a verdict, found without decoding all of it.
_REVIEWER, _ROLE, _TEAM = (
    f"CASE WHEN json_valid(value) THEN json_extract(value, '$.record.{name}') END"
    for name in ("reviewer", "role", "team")
)


class RegionVerdicts:
    """The verdicts of all reviewers in one region, as far as the changes were taken."""

    def __init__(self) -> None:
        #: Number of the newest change that was taken.
        self.newest = BEFORE_ALL
        #: Number of a change -> the verdict that it gave, oldest first.
        self.given: dict[int, VerdictGiven] = {}
        #: Number of a change -> when the verdict that it gave was withdrawn.
        self.withdrawn: dict[int, datetime] = {}
        self._replaced_by: dict[int, list[int]] = defaultdict(list)
        self._by_place: dict[tuple[object, ...], list[int]] = defaultdict(list)

    def take(self, change: ReviewChange) -> None:
        """Take the next change."""
        self.newest = change.number
        match change.value:
            case VerdictGiven(record) as given:
                self.given[change.number] = given
                if given.replaces is not None:
                    self._replaced_by[given.replaces].append(change.number)
                place = record.fingerprint
                cell = (int(place.centroid_y_px // _CELL_PX), int(place.centroid_x_px // _CELL_PX))
                self._by_place[*_kind_of(record, record.reviewer, record.role), *cell].append(
                    change.number
                )
            case VerdictWithdrawn(number) if number in self.given:
                self.withdrawn[number] = change.at

    def standing(self) -> dict[int, ReviewRecord]:
        """Return the verdicts that are neither withdrawn nor replaced, oldest first."""
        return {n: given.record for n, given in self.given.items() if self.is_standing(n)}

    def is_standing(self, number: int) -> bool:
        """Return whether the verdict that a change gave is neither withdrawn nor replaced."""
        replaced_by = self._replaced_by.get(number, ())
        return number not in self.withdrawn and all(n in self.withdrawn for n in replaced_by)

    def near(self, subject: Subject, reviewer: str, role: Role) -> list[int]:
        """Return the changes that gave a reviewer's verdicts near an object, oldest first."""
        place, reach = subject.fingerprint, float(reach_px(subject.fingerprint.area_px))
        rows, columns = (
            range(int((at - reach) // _CELL_PX), int((at + reach) // _CELL_PX) + 1)
            for at in (place.centroid_y_px, place.centroid_x_px)
        )
        kind = _kind_of(subject, reviewer, role)
        cells = ((*kind, *cell) for cell in product(rows, columns))
        return sorted(n for cell in cells for n in self._by_place.get(cell, ()))


def _kind_of(subject: Subject, reviewer: str, role: Role) -> tuple[object, ...]:
    return (
        reviewer,
        role,
        one_spelling(subject.team),
        subject.side,
        one_spelling(subject.class_name),
    )


class ReviewStore:
    """The verdicts of a cohort, and the review of a plan, in one SQLite file.

    A verdict is on disk when :meth:`give` returns. Nothing is ever deleted:
    a verdict that was replaced or undone stays as history. Several windows and
    several reviewers can work on one file. A reviewer sees only the own
    verdicts, unless those of others are asked for.

    Parameters
    ----------
    path
        The file.
    reviewer
        The reviewer's name.
    timeout_s
        Time to wait, in seconds, while another window writes.
    window
        Id of the window, to tell its verdicts from those of others; a new one if
        None.
    adjudicates
        The two reviewers whose disagreements this one decides; None for a reviewer's
        own verdicts. Both kinds are kept apart.
    create
        Whether to create a missing file, with its folder if the folder above exists;
        an error if not.

    Raises
    ------
    ReviewError
        If the file cannot be used: a place that cannot be written to, a file of a
        newer version or of another program (left untouched), a locked file.
    """

    def __init__(
        self,
        path: Path,
        *,
        reviewer: str,
        timeout_s: float = 2.0,
        window: str | None = None,
        adjudicates: tuple[str, str] | None = None,
        create: bool = True,
    ) -> None:
        self._reviewer = _reviewer_name(reviewer)
        self._adjudicates = adjudicates
        self._writer = window or uuid4().hex
        self._file = ReviewFile(path, timeout_s=timeout_s, create=create)
        self._lock = self._file.lock
        try:
            self._changes = ReviewChanges(self._file)
            self._regions: dict[str, RegionVerdicts] = {}
            self._times_opened = self._file.times_opened
            self._seen = self._file.state()
            # A new window has given nothing yet.
            self._own_seen = 0 if window else self._seen[1]
            self._own: list[tuple[int, str]] = []
            #: The review of a plan in the same file.
            self.plan = PlanReview(self._changes, self._reviewer, self._writer)
        except BaseException:
            # An open connection would keep the damaged file from being set aside.
            self._file.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def reviewer(self) -> str:
        """The reviewer's name."""
        return self._reviewer

    @property
    def role(self) -> Role:
        """Whether verdicts are the reviewer's own or decide between others."""
        return Role.REVIEWER if self._adjudicates is None else Role.ADJUDICATOR

    @property
    def notices(self) -> tuple[Finding, ...]:
        """Files that were set aside on opening, and changes found so far that cannot be read."""
        return self._file.notices + self._changes.findings

    @property
    def times_opened(self) -> int:
        """Number of times the file was opened: again whenever another file replaced it."""
        return self._file.times_opened

    def twin(self) -> ReviewStore:
        """Open the file again, for another thread.

        Writes by either store are not reported by the other's `poll`; writes by other
        windows since this one was opened are.

        Raises
        ------
        ReviewError
            If the file cannot be used, or is not there any more.
        """
        twin = ReviewStore(
            self.path,
            reviewer=self._reviewer,
            window=self._writer,
            adjudicates=self._adjudicates,
            create=False,
        )
        twin._seen = -1, self._seen[1]
        return twin

    def close(self) -> None:
        """Close the file. Nothing is lost without calling it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def give(
        self, subject: Subject, verdict: Verdict, *, tag: str = "", note: str = ""
    ) -> ReviewRecord:
        """Save a verdict; one on the same object by the same reviewer is replaced.

        Returns
        -------
        ReviewRecord
            The verdict as it is on disk, with the one that it replaced.

        Raises
        ------
        ReviewError
            If it was not saved, with the reason.
        """
        (record,) = self.give_all([Judgement(subject, verdict, tag, note)])
        return record

    def give_all(
        self, judgements: Sequence[Judgement], *, receipt: Receipt | None = None
    ) -> list[ReviewRecord]:
        """Save several verdicts at once; :meth:`undo` takes them back together.

        Parameters
        ----------
        judgements
            The verdicts.
        receipt
            The file that they came in. It is noted with them, and refused if it was
            received before.

        Returns
        -------
        list of ReviewRecord
            The verdicts as they are on disk, each with the one that it replaced.

        Raises
        ------
        ReviewError
            If they were not saved: all of them are, or none.
        """
        records = [self._recorded(judgement) for judgement in judgements]
        failure = "the verdict was NOT saved"
        if len(records) > 1:
            failure = f"the {len(records)} verdicts were NOT saved"
        with self._writing(failure, records[0] if records else None):
            if receipt is not None:
                self.check_not_received(receipt)
                self._changes.append(VerdictsReceived(receipt, self._reviewer))
            batch = self._file.state()[1] + 1
            regions = {name: self._region(name) for name in {r.region for r in records}}
            saved = []
            for record in records:
                region = regions[record.region]
                number, replaced = self._on(record, region)
                given = VerdictGiven(as_stored(record), number, batch, self._writer)
                region.take(self._changes.append(given, record.region))
                saved.append(replace(record, replaced=replaced))
        return saved

    def _recorded(self, judgement: Judgement) -> ReviewRecord:
        subject, fingerprint = judgement.subject, judgement.subject.fingerprint
        return ReviewRecord(
            reviewer=self._reviewer,
            team=one_spelling(subject.team),
            region=one_spelling(subject.region),
            side=subject.side,
            object_id=int(subject.object_id),
            fingerprint=Fingerprint(
                one_spelling(fingerprint.class_name),
                float(fingerprint.centroid_y_px),
                float(fingerprint.centroid_x_px),
                int(fingerprint.area_px),
            ),
            verdict=judgement.verdict,
            tag=one_spelling(judgement.tag).strip(),
            note=one_spelling(judgement.note).strip(),
            given_at=judgement.given_at or now(),
            role=self.role,
            beside=subject.beside,
        )

    def check_not_received(self, receipt: Receipt) -> None:
        """Check that a file of verdicts was not received before.

        Raises
        ------
        ReviewError
            If it was, or the review file cannot be read.
        """
        check_not_received(self._changes, receipt)

    def undo(self) -> list[ReviewRecord]:
        """Withdraw the newest verdicts of this window; those that they replaced stand again.

        Verdicts that were given together are withdrawn together. Only those that this
        window gave and no other window has replaced since are withdrawn.

        Returns
        -------
        list of ReviewRecord
            The withdrawn verdicts; empty if no verdict of this window stands.

        Raises
        ------
        ReviewError
            If they could not be withdrawn.
        """
        with self._writing("the verdict was NOT undone"):
            newest = self._newest_batch()
            return [self._withdraw(number, region) for number, region in newest]

    def may_undo(self) -> bool:
        """Return whether :meth:`undo` has a verdict to withdraw.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        with self._lock:
            return bool(self._newest_batch())

    def withdraw(self, record: ReviewRecord) -> bool:
        """Withdraw the reviewer's verdict on an object, from any window and time.

        The verdict that it replaced stands again, as after :meth:`undo`.

        Parameters
        ----------
        record
            A verdict on the object; the one that stands is withdrawn.

        Returns
        -------
        bool
            Whether a verdict was withdrawn.

        Raises
        ------
        ReviewError
            If it could not be withdrawn.
        """
        with self._writing("the verdict was NOT withdrawn", record):
            number, _ = self._on(record, self._region(one_spelling(record.region)))
            if number is not None:
                self._withdraw(number, record.region)
        return number is not None

    def take_back(self, records: Sequence[ReviewRecord]) -> list[ReviewRecord]:
        """Withdraw verdicts of the reviewer that were given together.

        Parameters
        ----------
        records
            The verdicts; the ones that they replaced stand again.

        Returns
        -------
        list of ReviewRecord
            Those of them that were withdrawn; others were withdrawn or replaced before.

        Raises
        ------
        ReviewError
            If they could not be withdrawn.
        """
        failure = "the verdict was NOT undone"
        with self._writing(failure, records[0] if records else None):
            standing = [(n, record) for record in records if (n := self._number_of(record))]
            return [self._withdraw(number, record.region) for number, record in standing]

    def _withdraw(self, number: int, name: str) -> ReviewRecord:
        region = self._region(name)
        withdrawn = VerdictWithdrawn(number, self._reviewer, self._writer)
        region.take(self._changes.append(withdrawn, name))
        return region.given[number].record

    def _newest_batch(self) -> list[tuple[int, str]]:
        """Return number and region of the verdicts that `undo` withdraws, oldest first."""
        rows = self._file.read(
            "SELECT number, region FROM changes WHERE number > :seen AND kind = 'verdict-given' "
            "AND instr(value, :writer) ORDER BY number",
            seen=self._own_seen,
            writer=self._writer,
        )
        self._own += rows
        self._own_seen = max([self._own_seen, *(number for number, _ in rows)])
        batch, newest = None, []
        for number, region in reversed(self._own):
            given = self._region(region).given.get(number)
            if given is None or given.writer != self._writer or not self._is_own(given.record):
                continue
            if batch not in (None, given.batch):
                break
            if self._region(region).is_standing(number):
                batch = given.batch
                newest.append((number, region))
        return newest[::-1]

    def verdicts(
        self,
        *,
        region: str | None = None,
        team: str | None = None,
        include_others: bool = False,
        reviewer: str | None = None,
    ) -> list[ReviewRecord]:
        """Return the verdicts that stand, oldest first.

        Parameters
        ----------
        region, team
            Only those of this region or team.
        include_others
            Also those of other reviewers, and adjudications.
        reviewer
            This reviewer's own ones, no adjudications; overrides `include_others`.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        with self._lock:
            if region is None:
                regions = list(self._all_regions().values())
            else:
                regions = [self._region(one_spelling(region))]
            standing = {n: record for each in regions for n, record in each.standing().items()}
        wanted_team = None if team is None else one_spelling(team)
        name = None if reviewer is None else reviewer_name(reviewer)

        def is_wanted(record: ReviewRecord) -> bool:
            if wanted_team is not None and record.team != wanted_team:
                return False
            if name is not None:
                return record.reviewer == name and record.role is Role.REVIEWER
            return include_others or self._is_own(record)

        return [standing[n] for n in sorted(standing) if is_wanted(standing[n])]

    def history(self, subject: Subject) -> list[HistoryEntry]:
        """Return every verdict that the reviewer ever gave on an object, oldest first.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        with self._lock:
            region = self._region(one_spelling(subject.region))
            return [
                HistoryEntry(
                    record,
                    standing=region.is_standing(n),
                    withdrawn_at=region.withdrawn.get(n),
                )
                for n in region.near(subject, self._reviewer, self.role)
                if (record := region.given[n].record) and subject.likeness(record) is not None
            ]

    def recent(self, count: int) -> list[ReviewRecord]:
        """Return the reviewer's newest verdicts that stand, newest first.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        found: list[ReviewRecord] = []
        before = self._file.state()[1] + 1
        with self._lock:
            while len(found) < count and (rows := self._page(before)):
                for number, region in rows:
                    record = self._region(region).standing().get(number)
                    if record is not None and self._is_own(record):
                        found.append(record)
                before = rows[-1][0]
        return found[:count]

    def _page(self, before: int) -> list[tuple[int, str]]:
        """Return number and region of the verdicts given before a change, the newest first."""
        return self._file.read(
            "SELECT number, region FROM changes WHERE number < :before "
            "AND kind = 'verdict-given' AND typeof(region) = 'text' "
            "ORDER BY number DESC LIMIT 100",
            before=before,
        )

    def reviewers(self) -> list[str]:
        """Return the names of all reviewers with an own verdict that stands, sorted.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        records = self.verdicts(include_others=True)
        return sorted({r.reviewer for r in records if r.role is Role.REVIEWER})

    def regions(self, *, team: str) -> list[str]:
        """Return the regions with verdicts on a team that count here, sorted.

        Those of an adjudicator are the regions that anyone has judged.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        with self._lock:
            rows = self._file.read(
                f"SELECT region, EXISTS ("  # noqa: S608
                f"SELECT 1 FROM changes AS other WHERE other.region = one.region "
                f"AND kind = 'verdict-withdrawn') "
                f"FROM (SELECT DISTINCT region FROM changes WHERE {_OF_VERDICTS}) AS one "
                f"WHERE EXISTS (SELECT 1 FROM changes WHERE changes.region = one.region "
                f"AND kind = 'verdict-given' AND {_TEAM} = :team "
                f"AND (:everybody OR ({_REVIEWER} = :reviewer AND {_ROLE} = :role)))",
                team=one_spelling(team),
                everybody=self._adjudicates is not None,
                reviewer=self._reviewer,
                role=str(self.role),
            )
            # Elsewhere each object that was judged has a verdict that stands.
            found = [
                region
                for region, has_withdrawn in rows
                if not has_withdrawn or self._has_standing(region, one_spelling(team))
            ]
        return sorted(found)

    def _has_standing(self, region: str, team: str) -> bool:
        """Return whether a verdict on a team that counts here stands in a region."""
        standing = self._region(region).standing().values()
        return any(
            record.team == team and (self._adjudicates is not None or self._is_own(record))
            for record in standing
        )

    def agreement(self, first: str, second: str, *, region: str | None = None) -> ReviewerAgreement:
        """Compare two reviewers. The reviewer who asks is no longer blind.

        Parameters
        ----------
        first, second
            Their names.
        region
            Only their verdicts in this region.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        return compared(
            self.verdicts(reviewer=first, region=region),
            self.verdicts(reviewer=second, region=region),
            self._decisions((first, second), region),
            first=first,
            second=second,
        )

    def current(self, *, region: str) -> list[ReviewRecord]:
        """Return the verdicts that count here: the reviewer's own, oldest first.

        For an adjudicator these are the decisions, newest first, and what both reviewers
        agree on.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        if self._adjudicates is None:
            return self.verdicts(region=region)
        found = self.agreement(*self._adjudicates, region=region)
        agreed = [item.first for item in found.items if item.is_agreed and item.decision is None]
        return [*self._decisions(self._adjudicates, region), *agreed]

    def _decisions(self, between: tuple[str, str], region: str | None) -> list[ReviewRecord]:
        """Return the adjudications by others than two reviewers, newest first."""
        return [
            record
            for record in reversed(self.verdicts(include_others=True, region=region))
            if record.role is Role.ADJUDICATOR and record.reviewer not in between
        ]

    def _is_own(self, record: ReviewRecord) -> bool:
        return record.reviewer == self._reviewer and record.role is self.role

    def poll(self) -> tuple[str, ...]:
        """Return the regions in which other windows changed verdicts since the last call.

        Those of an adjudicator are of all reviewers. Cheap enough to be called every second.

        Returns
        -------
        tuple of str
            Names of the regions, sorted.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        with self._lock:
            version, newest = self._file.state()
            if version == self._seen[0]:
                return ()
            found = self._changes.read(
                "number > :seen AND number <= :newest AND region <> ''",
                seen=self._seen[1],
                newest=newest,
            )
            self._seen = version, newest
        regions = set()
        for change in found:
            match change.value:
                case VerdictGiven() | VerdictWithdrawn() as value if value.writer != self._writer:
                    if self._adjudicates is not None or value.reviewer == self._reviewer:
                        regions.add(change.region)
        return tuple(sorted(regions))

    def _region(self, name: str) -> RegionVerdicts:
        """Return the verdicts in a region, with what was appended since the last call."""
        self._follow()
        region = self._regions.setdefault(name, RegionVerdicts())
        for change in self._changes.read(
            "region = :region AND number > :newest",
            region=name,
            newest=region.newest,
        ):
            region.take(change)
        return region

    def _all_regions(self) -> dict[str, RegionVerdicts]:
        """Return the verdicts in all regions."""
        self._follow()
        names = self._file.read(
            f"SELECT DISTINCT region FROM changes WHERE {_OF_VERDICTS}"  # noqa: S608
        )
        return {name: self._region(name) for (name,) in names}

    def _follow(self) -> None:
        """Forget what was read from a file that another one has replaced."""
        if self._times_opened != self._file.times_opened:
            self._times_opened = self._file.times_opened
            self._regions = {}

    def _standing_near(self, subject: Subject, region: RegionVerdicts) -> dict[int, ReviewRecord]:
        """Return the reviewer's verdicts that stand near an object, by number, oldest first."""
        near = region.near(subject, self._reviewer, self.role)
        return {n: region.given[n].record for n in near if region.is_standing(n)}

    def _on(
        self, record: ReviewRecord, region: RegionVerdicts
    ) -> tuple[int | None, ReviewRecord | None]:
        """Return the reviewer's standing verdict on the same object, with its number."""
        near = self._standing_near(record, region)
        at = found_in(record, list(near.values())) if near else None
        return (None, None) if at is None else list(near.items())[at]

    def _number_of(self, record: ReviewRecord) -> int | None:
        """Return the number of a verdict of the reviewer that still stands."""
        near = self._standing_near(record, self._region(record.region))
        return next((n for n, standing in near.items() if standing == record), None)

    @contextmanager
    def _writing(self, failure: str, record: ReviewRecord | None = None) -> Iterator[None]:
        """Append changes as one transaction, which is on disk at the end or did not happen."""
        where = {} if record is None else {"region": record.region, "object_id": record.object_id}
        with self._lock:
            try:
                with self._file.writing(failure, **where):
                    yield
            except BaseException:
                self._regions = {}  # they may have changes that were not written
                raise


@dataclass(frozen=True, eq=False)
class Review:
    """All that a review file says, read at once."""

    #: The verdicts that stand, of all reviewers, oldest first.
    verdicts: tuple[ReviewRecord, ...]
    #: The current plan and its verdicts; None if there is no plan.
    plan: PlanAnswers | None
    #: Changes that cannot be read, which are left out.
    findings: tuple[Finding, ...]


def read_review(path: Path) -> Review:
    """Read a review file, which does not change.

    Raises
    ------
    ReviewError
        If the file is missing, damaged, or none of this program.
    """
    with closing(ReviewFile(path, to_read=True)) as file:
        changes, plans = ReviewChanges(file), Plans()
        verdicts = all_verdicts(changes)
        plans.take_new(changes)
    current = plans.current
    planned = None if current is None else PlanAnswers(current, tuple(plans.given()))
    return Review(tuple(verdicts), planned, changes.findings)


def all_verdicts(changes: ReviewChanges) -> list[ReviewRecord]:
    """Return the verdicts in a file that stand, of all reviewers, oldest first.

    Raises
    ------
    ReviewError
        If the file cannot be read.
    """
    regions: dict[str, RegionVerdicts] = defaultdict(RegionVerdicts)
    for change in changes.read("region <> ''"):
        regions[change.region].take(change)
    standing = {n: record for each in regions.values() for n, record in each.standing().items()}
    return [standing[n] for n in sorted(standing)]


def _reviewer_name(name: str) -> str:
    cleaned = reviewer_name(name)
    if not cleaned:
        raise ReviewError("a review needs the reviewer's name, found none; enter a name")
    return cleaned
