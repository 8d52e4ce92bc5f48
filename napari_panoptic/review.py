"""What reviewers say of single objects, kept on disk from the moment it is said.

Nothing here knows of Qt. A verdict belongs to an object, not to an outcome: the
object is known by its place, size and class, so that its verdict is found
again under other settings and after objects were numbered anew.
"""

from __future__ import annotations

import csv
import io
import math
import sqlite3
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import Finding
from napari_panoptic.evaluation.agreement import Agreement, cohens_kappa
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.io._files import replaced_when_complete
from napari_panoptic.io.review_file import (
    REVIEW_FILE,
    ReviewError,
    empty_log,
    explained,
    identity_of,
    now,
    open_review_file,
    stamp,
    suggested_path,
    transaction,
)
from napari_panoptic.spreadsheets import inert

if TYPE_CHECKING:
    from napari_panoptic.evaluation.evaluate import Evaluation

__all__ = [
    "CSV_COLUMNS",
    "REVIEW_FILE",
    "Fingerprint",
    "HistoryEntry",
    "Place",
    "Progress",
    "ReviewError",
    "ReviewRecord",
    "ReviewStore",
    "ReviewerAgreement",
    "Share",
    "Subject",
    "Verdict",
    "matched",
    "paired",
    "place_of",
    "subjects_of",
    "suggested_path",
]

CSV_COLUMNS = (
    "reviewer",
    "team",
    "region",
    "side",
    "object_id",
    "class",
    "verdict",
    "tag",
    "note",
    "given_at",
    "centroid_y_px",
    "centroid_x_px",
    "area_px",
)

_COLUMNS = (
    "reviewer, team, region, side, object_id, class_name, centroid_y_px, centroid_x_px, area_px, "
    "verdict, tag, note, given_at"
)
# Neither withdrawn nor replaced by one that is not withdrawn itself.
_STANDING = (
    "withdrawn_at IS NULL AND NOT EXISTS (SELECT 1 FROM verdicts AS later "
    "WHERE later.replaces = verdicts.id AND later.withdrawn_at IS NULL)"
)

# Centroids of one object under two settings lie closer together than this share of its radius;
# those of two objects, which share no pixel, do not (but for rings and crescents).
_NEAR = 0.5
# How much an object's area may change: growing by 5 px makes a speck many times larger.
_AREA_FACTOR = 100.0


Place = tuple[str, str, str, str, float, float, int]
"""All that tells objects apart: team, region, side, class, centroid y and x in px, area in px."""


class Verdict(StrEnum):
    """Who is right about an object."""

    ANNOTATION_RIGHT = "annotation-right"  # the prediction is wrong
    PREDICTION_RIGHT = "prediction-right"  # the annotation is wrong
    BOTH_WRONG = "both-wrong"  # something else is there
    CANNOT_TELL = "cannot-tell"  # the image does not decide it


class _Where(TypedDict, total=False):
    """What an error says of the place it is about."""

    region: str
    object_id: int


@dataclass(frozen=True)
class Fingerprint:
    """What an object is known by, whatever its number and its outcome.

    Parameters
    ----------
    class_name
        Its class.
    centroid_y_px, centroid_x_px
        Centroid of all its pixels, before any ambiguous area is cut away.
    area_px
        Number of these pixels.
    """

    class_name: str
    centroid_y_px: float
    centroid_x_px: float
    area_px: int

    def likeness(self, other: Fingerprint) -> float | None:
        """Tell how far two fingerprints are from being equal.

        Returns
        -------
        float or None
            0 for equal ones, more for less similar ones; None for those of
            different objects.
        """
        smaller, larger = sorted((max(1, self.area_px), max(1, other.area_px)))
        distance = math.hypot(
            self.centroid_y_px - other.centroid_y_px, self.centroid_x_px - other.centroid_x_px
        )
        reach = _reach(smaller)
        near = distance < reach and larger <= _AREA_FACTOR * smaller
        if self.class_name != other.class_name or not near:
            return None
        return distance / reach + 0.1 * math.log(larger / smaller)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An object that can be judged, in the context in which it is seen.

    Parameters
    ----------
    team
        Whose prediction it is, or is compared with.
    region
        Where it is.
    side
        Annotation or prediction.
    object_id
        Its id under the settings of the moment.
    fingerprint
        What it is known by.
    """

    team: str
    region: str
    side: Side
    object_id: int
    fingerprint: Fingerprint

    @property
    def class_name(self) -> str:
        """Its class."""
        return self.fingerprint.class_name


@dataclass(frozen=True, kw_only=True)
class ReviewRecord(Subject):
    """One verdict on one object.

    Parameters
    ----------
    reviewer
        Who gave it.
    verdict
        Who is right.
    tag
        A word for sorting, or empty.
    note
        A remark, or empty.
    given_at
        When, in UTC.
    """

    reviewer: str
    verdict: Verdict
    tag: str = ""
    note: str = ""
    given_at: datetime


@dataclass(frozen=True)
class HistoryEntry:
    """A verdict that was given once, and what became of it.

    Parameters
    ----------
    record
        The verdict.
    standing
        Whether it holds.
    withdrawn_at
        When it was undone, in UTC; None where it was not. One that neither
        stands nor was undone was replaced by a later one.
    """

    record: ReviewRecord
    standing: bool
    withdrawn_at: datetime | None


@dataclass(frozen=True)
class Share:
    """How many of a number of objects have a verdict."""

    done: int
    total: int


@dataclass(frozen=True)
class Progress:
    """How far the review has come.

    Parameters
    ----------
    cohort
        All objects together.
    regions
        Region -> its objects, in the order in which regions first occurred.
    """

    cohort: Share
    regions: Mapping[str, Share]


@dataclass(frozen=True, eq=False)
class ReviewerAgreement:
    """Two reviewers compared.

    Parameters
    ----------
    first, second
        Their names.
    agreement
        Kappa and its interval over the objects that both have judged.
    pairs
        Their verdicts on these objects.
    disagreements
        Those of the pairs with different verdicts.
    """

    first: str
    second: str
    agreement: Agreement
    pairs: tuple[tuple[ReviewRecord, ReviewRecord], ...]
    disagreements: tuple[tuple[ReviewRecord, ReviewRecord], ...]


def subjects_of(evaluation: Evaluation, side: Side, *, region: str, team: str) -> list[Subject]:
    """Describe all objects of one side of an evaluated pair, in row order.

    Parameters
    ----------
    evaluation
        The pair and its overlap table. The settings do not matter.
    side
        Which side.
    region, team
        Where it is from.
    """
    of_reference = side is Side.REFERENCE
    labels = evaluation.pair.reference if of_reference else evaluation.pair.prediction
    table = evaluation.table.reference if of_reference else evaluation.table.prediction
    centroids = table.sum_yx / np.maximum(table.area, 1)[:, None]
    rows = zip(
        labels.ids.tolist(),
        labels.class_names_of_objects().tolist(),
        centroids.tolist(),
        table.area.tolist(),
        strict=True,
    )
    return [
        Subject(
            team=team,
            region=region,
            side=side,
            object_id=id_,
            fingerprint=Fingerprint(class_name, y, x, area),
        )
        for id_, class_name, (y, x), area in rows
    ]


class ReviewStore:
    """The verdicts of a cohort, in one SQLite file.

    A verdict is on disk when :meth:`give` returns. Nothing is ever deleted:
    a verdict that was replaced or undone stays as history. Several windows and
    several reviewers can work on one file. A reviewer sees only the own
    verdicts, unless those of others are asked for.

    Parameters
    ----------
    path
        The file; made where it is not there. Its folder is made too, if the
        folder above is there.
    reviewer
        Who reviews, by name.
    timeout_s
        How long to wait, in seconds, while another window writes.

    Raises
    ------
    ReviewError
        Where the file cannot be used: a place that cannot be written to, a file
        of a newer version or of another program (left untouched), a locked file.
    """

    def __init__(self, path: Path, *, reviewer: str, timeout_s: float = 2.0) -> None:
        self._path = path
        self._reviewer = _reviewer_name(reviewer)
        self._timeout_s = timeout_s
        self._writer = uuid4().hex
        self._lock = threading.RLock()
        self._notices: tuple[Finding, ...] = ()
        self._seen = (0, 0)
        self._times_opened = 0
        self._open()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def reviewer(self) -> str:
        """Who reviews."""
        return self._reviewer

    @property
    def notices(self) -> tuple[Finding, ...]:
        """What happened on opening that people should know: a file set aside or converted."""
        return self._notices

    @property
    def times_opened(self) -> int:
        """How often the file was opened: once more where another one took its place."""
        return self._times_opened

    def twin(self) -> ReviewStore:
        """Open the file once more, for another thread.

        What either of the two writes is no news to the other one's `poll`;
        what others wrote since this one was opened is.

        Raises
        ------
        ReviewError
            Where the file cannot be used.
        """
        twin = ReviewStore(self._path, reviewer=self._reviewer)
        twin._writer = self._writer
        twin._seen = -1, self._seen[1]
        return twin

    def close(self) -> None:
        """Let go of the file. Nothing is lost without it."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def give(
        self, subject: Subject, verdict: Verdict, *, tag: str = "", note: str = ""
    ) -> ReviewRecord:
        """Save a verdict; one on the same object by the same reviewer is replaced.

        Returns
        -------
        ReviewRecord
            What is on disk now.

        Raises
        ------
        ReviewError
            Where it was not saved; the message says so, and why.
        """
        fingerprint = subject.fingerprint
        record = ReviewRecord(
            reviewer=self._reviewer,
            team=_text(subject.team),
            region=_text(subject.region),
            side=subject.side,
            object_id=int(subject.object_id),
            fingerprint=Fingerprint(
                _text(fingerprint.class_name),
                float(fingerprint.centroid_y_px),
                float(fingerprint.centroid_x_px),
                int(fingerprint.area_px),
            ),
            verdict=verdict,
            tag=_text(tag).strip(),
            note=_text(note).strip(),
            given_at=now(),
        )
        with self._writing("the verdict was NOT saved", record) as connection:
            replaced = self._standing_on(record)
            connection.execute(
                f"INSERT INTO verdicts ({_COLUMNS}, replaces, revision, writer) "  # noqa: S608
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*_row(record), replaced, self._next_revision(), self._writer),
            )
        return record

    def undo(self) -> ReviewRecord | None:
        """Withdraw the reviewer's newest verdict; one that it replaced stands again.

        Returns
        -------
        ReviewRecord or None
            What was withdrawn; None where there is nothing left to undo.

        Raises
        ------
        ReviewError
            Where it could not be withdrawn.
        """
        with self._writing("the verdict was NOT undone") as connection:
            row = connection.execute(
                f"SELECT id, {_COLUMNS} FROM verdicts "  # noqa: S608
                f"WHERE reviewer = ? AND withdrawn_at IS NULL ORDER BY id DESC LIMIT 1",
                (self._reviewer,),
            ).fetchone()
            if row is None:
                return None
            connection.execute(
                "UPDATE verdicts SET withdrawn_at = ?, revision = ?, writer = ? WHERE id = ?",
                (stamp(now()), self._next_revision(), self._writer, row[0]),
            )
        return _record(row[1:], self._path)

    def verdicts(
        self,
        *,
        region: str | None = None,
        team: str | None = None,
        include_others: bool = False,
        reviewer: str | None = None,
    ) -> list[ReviewRecord]:
        """Give the verdicts that stand, oldest first.

        Parameters
        ----------
        region, team
            Only those of this region or team.
        include_others
            Those of all reviewers, not only the own.
        reviewer
            Those of this reviewer, whoever asks; goes before `include_others`.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        if reviewer is None and not include_others:
            reviewer = self._reviewer
        wanted = {"region": region, "team": team, "reviewer": reviewer}
        given = {name: _text(value) for name, value in wanted.items() if value is not None}
        conditions = " AND ".join([_STANDING, *(f"{name} = :{name}" for name in given)])
        rows = self._read(
            f"SELECT {_COLUMNS} FROM verdicts WHERE {conditions} ORDER BY id",  # noqa: S608
            given,
        )
        return [_record(row, self._path) for row in rows]

    def verdicts_on(self, subjects: Sequence[Subject]) -> list[ReviewRecord | None]:
        """Give the reviewer's own verdict on each object, None where there is none yet.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        own = self.verdicts(region=_only_region(subjects))
        found = matched(map(place_of, subjects), map(place_of, own))
        return [None if number is None else own[number] for number in found]

    def progress(self, failures: Sequence[Subject]) -> Progress:
        """Count how many of some objects the reviewer has judged.

        Parameters
        ----------
        failures
            The objects to be judged, usually all failures of the cohort.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        region = _only_region(failures)
        here = "" if region is None else " AND region = :region"
        # Places only: to count verdicts, nobody has to know what they say.
        own = self._read(
            f"SELECT {_PLACE_COLUMNS} FROM verdicts "  # noqa: S608
            f"WHERE {_STANDING} AND reviewer = :reviewer{here} ORDER BY id",
            {"reviewer": self._reviewer, "region": _text(region or "")},
        )
        done: dict[str, int] = defaultdict(int)
        total: dict[str, int] = defaultdict(int)
        for subject, number in zip(failures, matched(map(place_of, failures), own), strict=True):
            total[subject.region] += 1
            done[subject.region] += number is not None
        return Progress(
            Share(sum(done.values()), sum(total.values())),
            {region: Share(done[region], count) for region, count in total.items()},
        )

    def history(self, subject: Subject) -> list[HistoryEntry]:
        """Give every verdict that the reviewer ever gave on an object, oldest first.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        rows = self._read(
            f"SELECT {_COLUMNS}, withdrawn_at, {_STANDING} FROM verdicts "  # noqa: S608
            f"WHERE {_OWN_PLACE} ORDER BY id",
            self._place(subject),
        )
        entries = [
            HistoryEntry(
                _record(row[:-2], self._path),
                standing=bool(row[-1]),
                withdrawn_at=None if row[-2] is None else datetime.fromisoformat(row[-2]),
            )
            for row in rows
        ]
        own = subject.fingerprint
        return [e for e in entries if own.likeness(e.record.fingerprint) is not None]

    def reviewers(self) -> list[str]:
        """Name everybody with a verdict that stands, sorted.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        rows = self._read(
            f"SELECT DISTINCT reviewer FROM verdicts WHERE {_STANDING} ORDER BY reviewer",  # noqa: S608
            {},
        )
        return [name for (name,) in rows]

    def regions(self, *, team: str) -> list[str]:
        """Name the regions in which the reviewer's own verdicts on a team stand, sorted.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        rows = self._read(
            f"SELECT DISTINCT region FROM verdicts WHERE {_STANDING} "  # noqa: S608
            f"AND reviewer = :reviewer AND team = :team ORDER BY region",
            {"reviewer": self._reviewer, "team": _text(team)},
        )
        return [name for (name,) in rows]

    def agreement(self, first: str, second: str) -> ReviewerAgreement:
        """Compare two reviewers, which ends the blindness of whoever asks.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
        """
        pairs = paired(self.verdicts(reviewer=first), self.verdicts(reviewer=second))
        compared = cohens_kappa(
            [str(a.verdict) for a, _ in pairs],
            [str(b.verdict) for _, b in pairs],
            order=[str(verdict) for verdict in Verdict],
        )
        different = tuple((a, b) for a, b in pairs if a.verdict is not b.verdict)
        return ReviewerAgreement(first, second, compared, tuple(pairs), different)

    def poll(self, *, include_others: bool = False) -> tuple[str, ...]:
        """Tell where other windows have changed verdicts since the last call.

        Cheap enough to be called every second.

        Parameters
        ----------
        include_others
            Also where other reviewers' verdicts changed, not only the own ones.

        Returns
        -------
        tuple of str
            Names of the regions, sorted.

        Raises
        ------
        ReviewError
            Where the file cannot be read.
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
                    "everybody": include_others,
                    "reviewer": self._reviewer,
                },
            )
            self._seen = version, newest
        return tuple(region for (region,) in rows)

    def export_csv(self, path: Path, *, include_others: bool = False) -> int:
        """Write the verdicts that stand as a CSV file, whole or not at all.

        Returns
        -------
        int
            How many there are.

        Raises
        ------
        ReviewError
            Where the review file cannot be read, or the CSV file not written.
        """
        records = self.verdicts(include_others=include_others)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for record in records:
            cells = _csv_row(record)
            writer.writerow([inert(c) if isinstance(c, str) else c for c in cells])
        try:
            with replaced_when_complete(path) as file:
                file.write(text.getvalue().encode("utf-8"))
        except OSError as error:
            raise ReviewError(
                f"the verdicts cannot be written here ({error.strerror or error}); choose "
                f"another place, or free some space",
                path=path,
            ) from error
        return len(records)

    def _open(self) -> None:
        self._connection, notices = open_review_file(self._path, self._timeout_s)
        self._notices += notices
        self._times_opened += 1
        self._identity = identity_of(self._path)
        try:
            self._seen = self._state_of_file()
        except BaseException:
            # Otherwise nobody could set the damaged file aside while this one lives.
            self._connection.close()
            raise

    def _state_of_file(self) -> tuple[int, int]:
        """Give a number that others' changes change, and the newest change's number."""
        # In this order: a change in between makes the first number outdated, so that the
        # next look finds it in any case.
        ((version,),) = self._read("PRAGMA data_version", {})
        ((newest,),) = self._read("SELECT max(revision) FROM verdicts", {})
        return int(version), int(newest or 0)

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
            empty_log(self._connection)

    def _follow_file(self, failure: str, record: ReviewRecord | None) -> None:
        """Make sure that what is written goes to the file that people see under the path."""
        identity = identity_of(self._path)
        if identity == self._identity:
            return
        if identity is None:
            raise ReviewError(
                f"{failure}: the review file was moved or deleted while it was in use; put it "
                f"back, or open the review anew",
                path=self._path,
                **_where(record),
            )
        self._connection.close()
        try:
            self._open()
        except ReviewError as error:
            raise ReviewError(
                f"{failure}: {error.message}",
                path=self._path,
                suggestion=error.suggestion,
                **_where(record),
            ) from error

    def _standing_on(self, record: ReviewRecord) -> int | None:
        """Find the reviewer's standing verdict on the same object."""
        rows = self._connection.execute(
            f"SELECT id, {_COLUMNS} FROM verdicts WHERE {_OWN_PLACE} AND {_STANDING}",  # noqa: S608
            self._place(record),
        ).fetchall()
        known = [_record(row[1:], self._path) for row in rows]
        (number,) = matched([place_of(record)], map(place_of, known))
        return None if number is None else int(rows[number][0])

    def _place(self, subject: Subject) -> dict[str, str | float]:
        y, x = _centroid(subject)
        return {
            "reviewer": self._reviewer,
            "team": _text(subject.team),
            "region": _text(subject.region),
            "side": str(subject.side),
            "class_name": _text(subject.class_name),
            "y": float(y),
            "x": float(x),
            "reach": _reach(subject.fingerprint.area_px),
        }

    def _next_revision(self) -> int:
        (newest,) = self._connection.execute("SELECT max(revision) FROM verdicts").fetchone()
        return int(newest or 0) + 1


_PLACE_COLUMNS = "team, region, side, class_name, centroid_y_px, centroid_x_px, area_px"
# The reviewer's own, and near enough to be worth a comparison.
_OWN_PLACE = (
    "reviewer = :reviewer AND region = :region AND team = :team AND side = :side "
    "AND class_name = :class_name AND centroid_y_px BETWEEN :y - :reach AND :y + :reach "
    "AND centroid_x_px BETWEEN :x - :reach AND :x + :reach"
)


def paired(
    first: Sequence[ReviewRecord], second: Sequence[ReviewRecord]
) -> list[tuple[ReviewRecord, ReviewRecord]]:
    """Put two reviewers' verdicts on the same objects beside each other.

    Objects that only one of them judged are left out.
    """
    found = matched(map(place_of, first), map(place_of, second))
    return [
        (record, second[number])
        for record, number in zip(first, found, strict=True)
        if number is not None
    ]


def matched(subjects: Iterable[Place], others: Iterable[Place]) -> list[int | None]:
    """Find for each object the other that is the same object, each at most once.

    Parameters
    ----------
    subjects
        The objects to be found.
    others
        Among which to find them.

    Returns
    -------
    list of int or None
        For each object the number of the other one; None where there is none.
    """
    subjects, others = list(subjects), list(others)
    result: list[int | None] = [None] * len(subjects)
    own_groups, other_groups = _grouped(subjects), _grouped(others)
    for group in own_groups.keys() & other_groups.keys():
        own, other = own_groups[group], other_groups[group]
        candidates = _alike(_measures(subjects, own), _measures(others, other))
        taken: set[int] = set()
        # The most similar first; the order of the lists decides between equals.
        for i, j in zip(*candidates, strict=True):
            if result[own[i]] is None and j not in taken:
                result[own[i]] = other[j]
                taken.add(j)
    return result


def place_of(subject: Subject) -> Place:
    """Give all that tells an object from others."""
    own = subject.fingerprint
    return (
        subject.team,
        subject.region,
        subject.side,
        own.class_name,
        own.centroid_y_px,
        own.centroid_x_px,
        own.area_px,
    )


def _only_region(subjects: Sequence[Subject]) -> str | None:
    regions = {subject.region for subject in subjects}
    return regions.pop() if len(regions) == 1 else None


def _where(subject: Subject | None) -> _Where:
    return (
        _Where() if subject is None else _Where(region=subject.region, object_id=subject.object_id)
    )


def _grouped(places: Sequence[Place]) -> dict[tuple[str, ...], list[int]]:
    as_spelled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, place in enumerate(places):
        as_spelled[place[:4]].append(number)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for names, numbers in as_spelled.items():
        groups[tuple(_text(str(name)) for name in names)] += numbers
    return {names: sorted(numbers) for names, numbers in groups.items()}


def _measures(places: Sequence[Place], numbers: Sequence[int]) -> NDArray[np.float64]:
    """Give centroid and area of some places, (n, 3)."""
    return np.array([places[number][4:] for number in numbers], np.float64)


def _alike(own: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Give the pairs of rows that can be the same object, the most similar first.

    The same as :meth:`Fingerprint.likeness`, for many at a time.
    """
    from scipy.spatial import cKDTree

    reaches = np.maximum(1.0, _NEAR * np.sqrt(np.maximum(own[:, 2], 1) / math.pi))
    found = cKDTree(others[:, :2]).query_ball_point(own[:, :2], reaches)
    lengths = np.fromiter(map(len, found), np.intp, len(found))
    i = np.repeat(np.arange(len(own)), lengths)
    j = np.fromiter(chain.from_iterable(found), np.intp, len(i))
    smaller = np.maximum(1, np.minimum(own[i, 2], others[j, 2]))
    larger = np.maximum(1, np.maximum(own[i, 2], others[j, 2]))
    distance = np.hypot(own[i, 0] - others[j, 0], own[i, 1] - others[j, 1])
    reach = np.maximum(1.0, _NEAR * np.sqrt(smaller / math.pi))
    near = np.flatnonzero((distance < reach) & (larger <= _AREA_FACTOR * smaller))
    unlike = distance[near] / reach[near] + 0.1 * np.log(larger[near] / smaller[near])
    order = near[np.lexsort((j[near], i[near], unlike))]
    return i[order].tolist(), j[order].tolist()


def _centroid(subject: Subject) -> tuple[float, float]:
    return subject.fingerprint.centroid_y_px, subject.fingerprint.centroid_x_px


def _reach(area_px: int) -> float:
    """Give the distance within which a centroid can be the same object's, in px."""
    # Centroids of neighbouring single pixels are one pixel apart, which is too far.
    return max(1.0, _NEAR * math.sqrt(area_px / math.pi))


def _reviewer_name(name: str) -> str:
    cleaned = " ".join(_text(name).split())
    if not cleaned:
        raise ReviewError("a review needs the reviewer's name, found none; enter a name")
    return cleaned


@lru_cache(maxsize=4096)
def _text(value: str) -> str:
    """Make text that can be stored and compared: one spelling, no broken characters."""
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", whole)


def _row(record: ReviewRecord) -> tuple[str | int | float, ...]:
    return (
        record.reviewer,
        record.team,
        record.region,
        str(record.side),
        record.object_id,
        record.class_name,
        record.fingerprint.centroid_y_px,
        record.fingerprint.centroid_x_px,
        record.fingerprint.area_px,
        str(record.verdict),
        record.tag,
        record.note,
        stamp(record.given_at),
    )


def _record(row: Sequence[Any], path: Path) -> ReviewRecord:
    reviewer, team, region, side, object_id, class_name, y, x, area, verdict, tag, note, at = row
    try:
        return ReviewRecord(
            reviewer=reviewer,
            team=team,
            region=region,
            side=Side(side),
            object_id=object_id,
            fingerprint=Fingerprint(class_name, y, x, area),
            verdict=Verdict(verdict),
            tag=tag,
            note=note,
            given_at=datetime.fromisoformat(at),
        )
    except ValueError as error:
        raise ReviewError(
            f"the review file holds a verdict that cannot be understood ({error}); it was "
            f"changed by another program: restore a copy, or begin another file",
            path=path,
            region=region,
            object_id=object_id,
        ) from error


def _csv_row(record: ReviewRecord) -> tuple[str | int | float, ...]:
    return (
        record.reviewer,
        record.team,
        record.region,
        str(record.side),
        record.object_id,
        record.class_name,
        str(record.verdict),
        record.tag,
        record.note,
        record.given_at.isoformat(timespec="seconds"),
        record.fingerprint.centroid_y_px,
        record.fingerprint.centroid_x_px,
        record.fingerprint.area_px,
    )
