"""The store of verdicts: each one is on disk as soon as it is given."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from napari_panoptic.common.findings import Finding
from napari_panoptic.review.file import (
    ReviewError,
    explained,
    file_identity,
    now,
    open_review_file,
    open_to_read,
    stamp,
    transaction,
)
from napari_panoptic.review.identity import (
    Fingerprint,
    Subject,
    found_in,
    one_spelling,
    reach_px,
    reviewer_name,
)
from napari_panoptic.review.rows import LARGEST_WHOLE, Row, names_in, understood
from napari_panoptic.review.verdicts import (
    HistoryEntry,
    Judgement,
    Receipt,
    ReviewerAgreement,
    ReviewRecord,
    Role,
    compared,
)
from napari_panoptic.values.vocabulary import Side, Verdict

_COLUMNS = (
    "reviewer, team, region, side, object_id, class_name, centroid_y_px, centroid_x_px, area_px, "
    "verdict, tag, note, given_at, role"
)
_NAMES = tuple(_COLUMNS.split(", "))
# In files of any layout: added with the first receipt, and no business of other versions.
_RECEIPTS = (
    "CREATE TABLE IF NOT EXISTS receipts (digest TEXT PRIMARY KEY, package TEXT NOT NULL, "
    "reviewer TEXT NOT NULL, received_at TEXT NOT NULL)"
)
_NEWEST = "SELECT max(revision) FROM verdicts"
# Neither withdrawn nor replaced by one that is not withdrawn itself.
_STANDING = (
    "withdrawn_at IS NULL AND NOT EXISTS (SELECT 1 FROM verdicts AS later "
    "WHERE later.replaces = verdicts.id AND later.withdrawn_at IS NULL)"
)
_ALL = f"SELECT {_COLUMNS} FROM verdicts WHERE {_STANDING} ORDER BY id"  # noqa: S608
_ALL_WITHOUT_ROLE = _ALL.replace("role", "'' AS role")  # in files of the first layout
_OWN = "reviewer = :reviewer AND role = :role"
_OWN_WINDOW = f"{_OWN} AND writer = :writer"
# Near enough to be worth a comparison.
_OWN_NEARBY = (
    f"{_OWN} AND region = :region AND team = :team AND side = :side "
    "AND class_name = :class_name AND centroid_y_px BETWEEN :y - :reach AND :y + :reach "
    "AND centroid_x_px BETWEEN :x - :reach AND :x + :reach"
)


def read_verdicts(path: Path) -> list[ReviewRecord]:
    """Read all verdicts that stand, of all reviewers, oldest first; the file does not change.

    Raises
    ------
    ReviewError
        If the file is missing, damaged, or none of this program.
    """
    connection, version = open_to_read(path)
    with closing(connection):
        try:
            rows = connection.execute(_ALL if version > 1 else _ALL_WITHOUT_ROLE).fetchall()
        except sqlite3.Error as error:
            raise explained(error, path, "the verdicts cannot be read") from error
    return [_record(row, path) for row in rows]


class ReviewStore:
    """The verdicts of a cohort, in one SQLite file.

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
        self._path = path
        self._reviewer = _reviewer_name(reviewer)
        self._adjudicates = adjudicates
        self._timeout_s = timeout_s
        self._writer = window or uuid4().hex
        self._lock = threading.RLock()
        self._notices: tuple[Finding, ...] = ()
        self._seen = (0, 0)
        self._times_opened = 0
        self._open(create=create)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

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
        """Files that were set aside or converted on opening."""
        return self._notices

    @property
    def times_opened(self) -> int:
        """Number of times the file was opened: again whenever another file replaced it."""
        return self._times_opened

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
            self._path,
            reviewer=self._reviewer,
            window=self._writer,
            adjudicates=self._adjudicates,
            create=False,
        )
        twin._seen = -1, self._seen[1]
        return twin

    def close(self) -> None:
        """Close the file. Nothing is lost without calling it."""
        with self._lock:
            self._connection.close()

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
        with self._writing(failure, records[0] if records else None) as connection:
            if receipt is not None:
                self._note_receipt(connection, receipt)
            revision = self._next_revision()
            saved = []
            for record in records:
                number, replaced = self._standing_on(record)
                connection.execute(
                    f"INSERT INTO verdicts ({_COLUMNS}, replaces, revision, writer) "  # noqa: S608
                    f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*record.values().values(), number, revision, self._writer),
                )
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
        there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'receipts'"
        if not self._read(there, {}):
            return
        rows = self._read(
            "SELECT reviewer, received_at FROM receipts WHERE digest = :digest",
            {"digest": receipt.digest},
        )
        for reviewer, received_at in rows:
            raise ReviewError(
                f"these verdicts were imported before, as those of {str(reviewer)[:200]} at "
                f"{str(received_at)[:19]} UTC; nothing was changed. Save them again from the page "
                f"if verdicts were added",
                path=self._path,
            )

    def _note_receipt(self, connection: sqlite3.Connection, receipt: Receipt) -> None:
        connection.execute(_RECEIPTS)
        self.check_not_received(receipt)
        connection.execute(
            "INSERT INTO receipts VALUES (?, ?, ?, ?)",
            (receipt.digest, receipt.package, self._reviewer, stamp(now())),
        )

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
        with self._writing("the verdict was NOT undone") as connection:
            rows = connection.execute(
                f"SELECT id, {_COLUMNS} FROM verdicts WHERE {_OWN_WINDOW} AND {_STANDING} "  # noqa: S608
                f"AND revision = (SELECT revision FROM verdicts WHERE {_OWN_WINDOW} "
                f"AND {_STANDING} ORDER BY id DESC LIMIT 1) ORDER BY id",
                self._own() | {"writer": self._writer},
            ).fetchall()
            records = [_record(row[1:], self._path) for row in rows]
            for row in rows:
                self._withdraw(connection, row[0])
        return records

    def may_undo(self) -> bool:
        """Return whether :meth:`undo` has a verdict to withdraw.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        rows = self._read(
            f"SELECT 1 FROM verdicts WHERE {_OWN_WINDOW} AND {_STANDING} LIMIT 1",  # noqa: S608
            self._own() | {"writer": self._writer},
        )
        return bool(rows)

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
        with self._writing("the verdict was NOT withdrawn", record) as connection:
            number, _ = self._standing_on(record)
            if number is not None:
                self._withdraw(connection, number)
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
        with self._writing(failure, records[0] if records else None) as connection:
            found = [(number, record) for record in records if (number := self._number_of(record))]
            for number, _ in found:
                self._withdraw(connection, number)
        return [record for _, record in found]

    def _number_of(self, record: ReviewRecord) -> int | None:
        """Return the number of a verdict that still stands."""
        rows = self._connection.execute(
            f"SELECT id, {_COLUMNS} FROM verdicts WHERE {_OWN_NEARBY} AND {_STANDING}",  # noqa: S608
            self._nearby(record),
        )
        same = (row[0] for row in rows if _record(row[1:], self._path) == record)
        return next(same, None)

    def _withdraw(self, connection: sqlite3.Connection, number: int) -> None:
        connection.execute(
            "UPDATE verdicts SET withdrawn_at = ?, revision = ?, writer = ? WHERE id = ?",
            (stamp(now()), self._next_revision(), self._writer, number),
        )

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
        wanted: dict[str, str | None] = {"region": region, "team": team}
        if reviewer is not None:
            wanted |= {"reviewer": reviewer_name(reviewer), "role": Role.REVIEWER}
        elif not include_others:
            wanted |= self._own()
        given = {name: one_spelling(value) for name, value in wanted.items() if value is not None}
        conditions = " AND ".join([_STANDING, *(f"{name} = :{name}" for name in given)])
        rows = self._read(
            f"SELECT {_COLUMNS} FROM verdicts WHERE {conditions} ORDER BY id",  # noqa: S608
            given,
        )
        return [_record(row, self._path) for row in rows]

    def history(self, subject: Subject) -> list[HistoryEntry]:
        """Return every verdict that the reviewer ever gave on an object, oldest first.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        rows = self._read(
            f"SELECT {_COLUMNS}, withdrawn_at, {_STANDING} FROM verdicts "  # noqa: S608
            f"WHERE {_OWN_NEARBY} ORDER BY id",
            self._nearby(subject),
        )
        entries = [
            HistoryEntry(
                _record(row[:-2], self._path),
                standing=bool(row[-1]),
                withdrawn_at=self._withdrawn_at(row[-2]),
            )
            for row in rows
        ]
        return [entry for entry in entries if subject.likeness(entry.record) is not None]

    def _withdrawn_at(self, value: Any) -> datetime | None:
        with understood("verdict", self._path):
            return (
                None if value is None else Row(("withdrawn_at",), (value,)).moment("withdrawn_at")
            )

    def recent(self, count: int) -> list[ReviewRecord]:
        """Return the reviewer's newest verdicts that stand, newest first.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        rows = self._read(
            f"SELECT {_COLUMNS} FROM verdicts WHERE {_OWN} AND {_STANDING} "  # noqa: S608
            f"ORDER BY id DESC LIMIT :count",
            self._own() | {"count": count},
        )
        return [_record(row, self._path) for row in rows]

    def reviewers(self) -> list[str]:
        """Return the names of all reviewers with an own verdict that stands, sorted.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        rows = self._read(
            f"SELECT DISTINCT reviewer FROM verdicts WHERE {_STANDING} "  # noqa: S608
            "AND role = :role ORDER BY reviewer",
            {"role": Role.REVIEWER},
        )
        return names_in(rows, "reviewer", self._path)

    def regions(self, *, team: str) -> list[str]:
        """Return the regions with verdicts on a team that count here, sorted.

        Those of an adjudicator are the regions that anyone has judged.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        rows = self._read(
            f"SELECT DISTINCT region FROM verdicts WHERE {_STANDING} "  # noqa: S608
            f"AND (:everybody OR ({_OWN})) AND team = :team ORDER BY region",
            self._own() | {"everybody": self._adjudicates is not None, "team": one_spelling(team)},
        )
        return names_in(rows, "region", self._path)

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

    def _own(self) -> dict[str, Any]:
        return {"reviewer": self._reviewer, "role": str(self.role)}

    def poll(self, *, include_others: bool = False) -> tuple[str, ...]:
        """Return the regions in which other windows changed verdicts since the last call.

        Cheap enough to be called every second.

        Parameters
        ----------
        include_others
            Also changes of other reviewers' verdicts.

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
            version, newest = self._state_of_file()
            if version == self._seen[0]:
                return ()
            rows = self._read(
                "SELECT DISTINCT region FROM verdicts WHERE revision > :seen "
                "AND revision <= :newest AND writer <> :writer "
                "AND (:everybody OR reviewer = :reviewer) ORDER BY region",
                {
                    "seen": self._seen[1],
                    "newest": newest,
                    "writer": self._writer,
                    "everybody": include_others or self._adjudicates is not None,
                    "reviewer": self._reviewer,
                },
            )
            self._seen = version, newest
        return tuple(names_in(rows, "region", self._path))

    def _open(self, *, create: bool = True) -> None:
        self._connection, notices = open_review_file(self._path, self._timeout_s, create=create)
        self._notices += notices
        self._times_opened += 1
        self._identity = file_identity(self._path)
        try:
            self._seen = self._state_of_file()
        except BaseException:
            # An open connection would keep the damaged file from being set aside.
            self._connection.close()
            raise

    def _state_of_file(self) -> tuple[int, int]:
        """Return SQLite's data version, and the number of the newest change."""
        # In this order: a change in between makes the first number outdated, so that the
        # next call finds it.
        ((version,),) = self._read("PRAGMA data_version", {})
        ((newest,),) = self._read(_NEWEST, {})
        return int(version), self._checked(newest)

    def _read(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise explained(error, self._path, "the verdicts cannot be read") from error

    @contextmanager
    def _writing(
        self, failure: str, record: ReviewRecord | None = None
    ) -> Iterator[sqlite3.Connection]:
        """Run statements as one transaction, which is on disk at the end or did not happen."""
        with self._lock:
            self._follow_file(failure, record)
            try:
                with transaction(self._connection):
                    yield self._connection
            except sqlite3.Error as error:
                raise explained(error, self._path, failure, **_where(record)) from error

    def _follow_file(self, failure: str, record: ReviewRecord | None) -> None:
        """Open the file again if another one has replaced it under the path."""
        identity = file_identity(self._path)
        if identity == self._identity:
            return
        if identity is None:
            raise ReviewError(
                f"{failure}: the review file was moved or deleted while it was in use; put it "
                f"back, or open the review again",
                path=self._path,
                **_where(record),
            )
        self._connection.close()
        try:
            self._open(create=False)
        except ReviewError as error:
            raise ReviewError(
                f"{failure}: {error.message}",
                path=self._path,
                suggestion=error.suggestion,
                **_where(record),
            ) from error

    def _standing_on(self, record: ReviewRecord) -> tuple[int | None, ReviewRecord | None]:
        """Find the reviewer's standing verdict on the same object, with its number."""
        rows = self._connection.execute(
            f"SELECT id, {_COLUMNS} FROM verdicts WHERE {_OWN_NEARBY} AND {_STANDING}",  # noqa: S608
            self._nearby(record),
        ).fetchall()
        known = [_record(row[1:], self._path) for row in rows]
        at = found_in(record, known)
        if at is None:
            return None, None
        with understood("verdict", self._path, **_where(record)):
            return Row(("id",), rows[at][:1]).whole("id"), known[at]

    def _nearby(self, subject: Subject) -> dict[str, str | float]:
        """Return the values of `_OWN_NEARBY`."""
        fingerprint = subject.fingerprint
        return {
            **self._own(),
            "team": one_spelling(subject.team),
            "region": one_spelling(subject.region),
            "side": str(subject.side),
            "class_name": one_spelling(subject.class_name),
            "y": float(fingerprint.centroid_y_px),
            "x": float(fingerprint.centroid_x_px),
            "reach": float(reach_px(fingerprint.area_px)),
        }

    def _next_revision(self) -> int:
        (newest,) = self._connection.execute(_NEWEST).fetchone()
        return self._checked(newest) + 1

    def _checked(self, newest: Any) -> int:
        """Return the number of the newest change, 0 if there is none yet."""
        if newest is None:
            return 0
        # SQLite stores any type in any column, and no number above this one.
        if not isinstance(newest, int) or not 0 <= newest < sys.maxsize:
            raise ReviewError(
                f"a verdict has the number {str(newest)[:60]!r}, which none can have: the review "
                f"file was changed by another program. It was left as it is: restore a copy, or "
                f"begin another file",
                path=self._path,
            )
        return newest


def _where(subject: Subject | None) -> dict[str, Any]:
    """Return the object that an error is about, if there is one."""
    return {} if subject is None else {"region": subject.region, "object_id": subject.object_id}


def _reviewer_name(name: str) -> str:
    cleaned = reviewer_name(name)
    if not cleaned:
        raise ReviewError("a review needs the reviewer's name, found none; enter a name")
    return cleaned


def _record(values: Sequence[Any], path: Path) -> ReviewRecord:
    row = Row(_NAMES, values)
    _, _, region, _, object_id, *_ = values
    with understood("verdict", path, region=region, object_id=object_id):
        return ReviewRecord(
            reviewer=row.text("reviewer"),
            team=row.text("team"),
            region=row.text("region"),
            side=row.word("side", Side),
            object_id=row.whole("object_id", -LARGEST_WHOLE),
            fingerprint=Fingerprint(
                row.text("class_name"),
                row.centroid_px("centroid_y_px"),
                row.centroid_px("centroid_x_px"),
                row.whole("area_px"),
            ),
            verdict=row.word("verdict", Verdict),
            tag=row.text("tag"),
            note=row.text("note"),
            given_at=row.moment("given_at"),
            role=row.word("role", Role),
        )
