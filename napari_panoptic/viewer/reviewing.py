"""The review of a cohort while it is shown: session and review file joined. No Qt here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from psygnal import Signal

from napari_panoptic.errors import Finding, PanopticError
from napari_panoptic.evaluation.evaluate import Evaluation
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.review import (
    REVIEW_FILE,
    HistoryEntry,
    ReviewError,
    ReviewRecord,
    ReviewStore,
    Verdict,
    suggested_path,
)
from napari_panoptic.session import Session
from napari_panoptic.viewer.judged import Judged, Object, Subjects, judged_as_one

LONGEST_WAIT_S = 0.4
"""How long the window waits at most while another one writes."""


def usual_place(root: Path) -> Path:
    """Give where the review of a cohort is kept.

    Beside the cohort; where that cannot be and a review was begun at the place
    of the user's own before, there.
    """
    beside = root / REVIEW_FILE
    own = suggested_path(beside)
    return own if own is not None and not beside.exists() and own.exists() else beside


class Reviewing:
    """Verdicts on what a session shows, read from and written to a review file.

    The file is opened when it is there, and made with the first verdict.

    Parameters
    ----------
    session
        What is looked at.
    reviewer
        Who reviews; empty where nobody has said so yet.
    path
        The review file.
    """

    changed = Signal()  # other verdicts, another reviewer or another file
    failed = Signal(PanopticError)
    noticed = Signal(Finding)

    def __init__(self, session: Session, *, reviewer: str, path: Path) -> None:
        self._session = session
        self._reviewer = reviewer.strip()
        self._path = path
        self._store: ReviewStore | None = None
        self._problem: ReviewError | None = None
        self._judged: Judged | None = None
        self._subjects: Subjects | None = None

    @property
    def reviewer(self) -> str:
        """Who reviews; empty where nobody has said so yet."""
        return self._reviewer

    @property
    def path(self) -> Path:
        """The review file, though it may not be there yet."""
        return self._path

    @property
    def store(self) -> ReviewStore | None:
        """The open review file; None before the first verdict, or where it cannot be used."""
        return self._store

    @property
    def problem(self) -> ReviewError | None:
        """Why the review file cannot be used at the moment."""
        return self._problem

    @property
    def judged(self) -> Judged | None:
        """The verdicts on the objects shown; None where nothing is evaluated."""
        return self._judged

    def begin(self) -> None:
        """Open the review file where there is one, and read it."""
        if self._reviewer and self._path.exists():
            self._open()
        self.refresh()

    def use(self, *, reviewer: str | None = None, path: Path | None = None) -> None:
        """Let somebody else review, or keep the review in another file."""
        self.close()
        self._problem = None
        self._reviewer = self._reviewer if reviewer is None else reviewer.strip()
        self._path = path or self._path
        self.begin()

    def try_again(self) -> None:
        """Open a file that could not be used before."""
        self.use()

    def close(self) -> None:
        """Let go of the file."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def refresh(self) -> None:
        """Read the verdicts on what is shown now."""
        evaluation, team = self._session.evaluation, self._session.team
        snapshot = self._session.snapshot
        if evaluation is None or snapshot is None or team is None:
            self._judged, self._subjects = None, None
        else:
            self._subjects = Subjects(evaluation, region=snapshot.region.name, team=team)
            self._judged = Judged(evaluation, self._read(self._subjects))
        self.changed.emit()

    def follow(self) -> None:
        """Read the verdicts again where objects were edited since the last look."""
        self._current_subjects()

    def record(self, side: Side, row: int) -> ReviewRecord | None:
        """Give the verdict on an object that is shown."""
        if self._judged is None or not self._is_there(self._judged.evaluation, side, row):
            return None
        return self._judged.record(side, row)

    def give(
        self, side: Side, row: int, verdict: Verdict, *, tag: str = "", note: str = ""
    ) -> ReviewRecord | None:
        """Save a verdict; None, with the reason told, where it was not saved."""
        subjects = self._current_subjects()
        if subjects is None or not self._is_there(subjects.evaluation, side, row):
            return None
        store = self._store or self._open()
        if store is None:
            return None
        place = judged_as_one(subjects.evaluation, side, row)
        try:
            record = store.give(subjects.of(*place), verdict, tag=tag, note=note)
        except ReviewError as error:
            self._tell(error)
            return None
        self._problem = None
        self.refresh()
        return record

    def undo(self) -> ReviewRecord | None:
        """Withdraw the newest verdict; None where there is none or it was not withdrawn."""
        if self._store is None:
            return None
        try:
            record = self._store.undo()
        except ReviewError as error:
            self._tell(error)
            return None
        self._problem = None
        if record is not None:
            self.refresh()
        return record

    def history(self, side: Side, row: int) -> list[HistoryEntry]:
        """Give every verdict that the reviewer ever gave on an object that is shown."""
        subjects = self._current_subjects()
        if self._store is None or subjects is None:
            return []
        try:
            return self._store.history(subjects.of(*judged_as_one(subjects.evaluation, side, row)))
        except ReviewError as error:
            self._tell(error)
            return []

    def own_records(self) -> Mapping[str, list[ReviewRecord]]:
        """Give the reviewer's verdicts on the current team, by region."""
        result: dict[str, list[ReviewRecord]] = {}
        if self._store is None or self._session.team is None:
            return result
        try:
            for record in self._store.verdicts(team=self._session.team):
                result.setdefault(record.region, []).append(record)
        except ReviewError as error:
            self._tell(error)
        return result

    def poll(self) -> tuple[str, ...]:
        """Notice what other windows did to the file; gives the regions concerned."""
        if self._problem is not None:
            return ()  # told once; "try again" goes on
        if self._store is None:
            if self._reviewer and self._path.exists():
                self.begin()
            return ()
        try:
            regions = self._store.poll()
        except ReviewError as error:
            self._tell(error)
            return ()
        if regions:
            self.refresh()
        return regions

    def find(self, record: ReviewRecord) -> Object | None:
        """Find the object that a verdict is about among those shown."""
        subjects = self._current_subjects()
        if subjects is None:
            return None
        side, found = record.side, None
        least = float("inf")
        for row in subjects.near(side, [record]):
            likeness = record.fingerprint.likeness(subjects.of(side, row).fingerprint)
            if likeness is not None and likeness < least:
                least, found = likeness, row
        return None if found is None else (side, found)

    def _open(self) -> ReviewStore | None:
        try:
            self._store = ReviewStore(self._path, reviewer=self._reviewer, timeout_s=LONGEST_WAIT_S)
        except ReviewError as error:
            self._tell(error)
            return None
        self._problem = None
        for notice in self._store.notices:
            self.noticed.emit(notice)
        return self._store

    def _read(self, subjects: Subjects) -> dict[Object, ReviewRecord]:
        if self._store is None:
            return {}
        try:
            return read_verdicts(self._store, subjects, region=self._region())
        except ReviewError as error:
            self._tell(error)
            return {}

    def _region(self) -> str:
        snapshot = self._session.snapshot
        return "" if snapshot is None else snapshot.region.name

    def _current_subjects(self) -> Subjects | None:
        """Describe what is shown now, though edits may have come since the last look."""
        if self._subjects is None or self._subjects.evaluation is not self._session.evaluation:
            self.refresh()
        return self._subjects

    def _is_there(self, evaluation: Evaluation, side: Side, row: int) -> bool:
        return 0 <= row < len(evaluation.outcomes.side(side))

    def _tell(self, error: ReviewError) -> None:
        self._problem = error
        self.failed.emit(error)
        self.changed.emit()


def read_verdicts(
    store: ReviewStore, subjects: Subjects, *, region: str
) -> dict[Object, ReviewRecord]:
    """Find the reviewer's verdicts on the objects of an evaluation.

    Raises
    ------
    ReviewError
        Where the file cannot be read.
    """
    records = store.verdicts(region=region)
    places = [(side, row) for side in Side for row in subjects.near(side, records)]
    found = store.verdicts_on([subjects.of(*place) for place in places])
    return {
        place: record for place, record in zip(places, found, strict=True) if record is not None
    }
