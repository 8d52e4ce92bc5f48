"""The review of a cohort while it is shown: session and review file joined. No Qt here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from psygnal import Signal

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.review.file import (
    REVIEW_FILE,
    ReviewError,
    may_be_there,
    suggested_path,
)
from napari_panoptic.review.identity import Subject, one_spelling, reviewer_name
from napari_panoptic.review.judged import Judged, Object, Subjects, judged_as_one
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import (
    HistoryEntry,
    Judgement,
    ReviewerAgreement,
    ReviewRecord,
)
from napari_panoptic.review.watch import FileChanges, Known, Watch, check_for_file
from napari_panoptic.values.vocabulary import Side, Verdict

_Found = TypeVar("_Found")
_Default = TypeVar("_Default")

LONGEST_WAIT_S = 0.4
"""How long the window waits at most while another one writes."""


def usual_place(root: Path) -> Path:
    """Return where the review of a cohort is kept.

    Beside the cohort; if that is impossible and a review was begun at the place
    of the user's own before, there.
    """
    beside = root / REVIEW_FILE
    if root.is_file():  # two files instead of a folder
        beside = root.with_name(f"{root.stem}.{REVIEW_FILE}")
    own = suggested_path(beside)
    if own is not None and not may_be_there(beside) and may_be_there(own):
        return own
    return beside


@dataclass(frozen=True, eq=False)
class _Shown:
    """The verdicts on the objects that are shown."""

    subjects: Subjects
    #: The verdicts in the region, as they were read.
    records: tuple[ReviewRecord, ...]
    #: Those on the objects.
    judged: Judged


class Reviewing:
    """Verdicts on what a session shows, read from and written to a review file.

    The file is opened when it is there, and made with the first verdict.

    Parameters
    ----------
    session
        What is looked at.
    reviewer
        The reviewer's name; empty until it is entered.
    path
        The review file.
    window
        What tells the verdicts of this window from those of others, for undo;
        something new where None.
    """

    changed = Signal()  # other verdicts, another reviewer or another file
    touched = Signal(tuple)  # regions in which verdicts changed, shown or not; before `changed`
    failed = Signal(PanopticError)
    noticed = Signal(Finding)

    def __init__(
        self, session: Session, *, reviewer: str, path: Path, window: str | None = None
    ) -> None:
        self._session = session
        self._reviewer = reviewer_name(reviewer)
        self._path = path
        self._window = window or uuid4().hex
        self._adjudicates: tuple[str, str] | None = None
        self._store: ReviewStore | None = None
        self._problem: ReviewError | None = None
        self._known = Known()
        self._shown: _Shown | None = None
        self._watch: Watch | None = None
        self._noticed: set[Finding] = set()

    @property
    def reviewer(self) -> str:
        """Name of the reviewer as the file keeps it; empty if not yet given."""
        return self._reviewer

    @property
    def adjudicates(self) -> tuple[str, str] | None:
        """The two reviewers between whom is decided; None in an own review."""
        return self._adjudicates

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
        """The verdicts on the objects shown; None if nothing is evaluated."""
        return None if self._shown is None else self._shown.judged

    def begin(self) -> None:
        """Open the review file where there is one, and read it."""
        if self._reviewer and may_be_there(self._path):
            self._open()
        self.refresh()

    def use(
        self,
        *,
        reviewer: str | None = None,
        path: Path | None = None,
        adjudicates: tuple[str, str] | None = None,
    ) -> None:
        """Change the reviewer or the file, or decide between two other reviewers.

        Parameters
        ----------
        reviewer, path
            Those so far if None.
        adjudicates
            The two reviewers; None for an own review.
        """
        self.close()
        self._adjudicates = adjudicates
        self._forget()
        self._problem = None
        self._reviewer = self._reviewer if reviewer is None else reviewer_name(reviewer)
        self._path = path or self._path
        self.begin()

    def opened(self) -> ReviewStore | None:
        """Return the review file, created if missing; None if that failed, which is reported."""
        return self._store or self._open()

    def try_again(self) -> None:
        """Open a file that could not be used before."""
        self.use(adjudicates=self._adjudicates)

    def close(self) -> None:
        """Let go of the file."""
        self._stop_watching()
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def refresh(self) -> None:
        """Lay the verdicts over what is shown now; the file is read only where it must be."""
        self._lay_over()
        self.changed.emit()

    def _lay_over(self) -> None:
        evaluation, team = self._session.evaluation, self._session.team
        region = self._region
        if evaluation is None or region is None or team is None:
            self._shown = None
            return
        subjects = Subjects(evaluation, region=region, team=team)
        records, before = self._records(region), self._shown
        if not records:
            judged = Judged(evaluation, {})
        elif (
            before is not None
            and records is before.records
            and subjects.are_those_of(before.subjects)
        ):
            judged = before.judged.under(evaluation)
        else:
            judged = Judged(evaluation, subjects.find(records))
        self._shown = _Shown(subjects, records, judged)

    def follow(self) -> None:
        """Read the verdicts again where objects were edited since the last look."""
        self._current_subjects()

    def record(self, side: Side, row: int) -> ReviewRecord | None:
        """Return the verdict on an object that is shown."""
        judged = self.judged
        if judged is None or not self._is_there(judged.evaluation, side, row):
            return None
        return judged.record(side, row)

    def give(
        self, side: Side, row: int, verdict: Verdict, *, tag: str = "", note: str = ""
    ) -> ReviewRecord | None:
        """Save a verdict; report why and return None if it was not saved."""
        records = self.give_all({(side, row): (verdict, tag, note)})
        return records[0] if records else None

    def give_all(self, given: Mapping[Object, tuple[Verdict, str, str]]) -> list[ReviewRecord]:
        """Save several verdicts, which are undone together.

        Parameters
        ----------
        given
            Object -> its verdict, tags and note. Of a misclassified pair, the first counts.

        Returns
        -------
        list of ReviewRecord
            The verdicts; empty if none was saved, which was reported.
        """
        subjects = self._current_subjects()
        if subjects is None or not given:
            return []
        if not all(self._is_there(subjects.evaluation, *place) for place in given):
            return []
        by_place: dict[Object, tuple[Verdict, str, str]] = {}
        for place, details in given.items():
            by_place.setdefault(judged_as_one(subjects.evaluation, *place), details)
        shown = {} if self.judged is None else self.judged.records
        records = self._save(
            [Judgement(subjects.of(*at), *details) for at, details in by_place.items()],
            shown=[shown.get(at) for at in by_place],
        )
        if len(records) == 1:
            self._show_saved(next(iter(by_place)), records[0])
        elif records:
            self._forget()
            self.refresh()
        return records

    def give_anywhere(
        self, judgements: Sequence[Judgement], shown: Sequence[ReviewRecord | None] = ()
    ) -> list[ReviewRecord]:
        """Save verdicts on objects of any region and team, which are undone together.

        Parameters
        ----------
        judgements
            The verdicts.
        shown
            The verdicts that the user has seen on these objects; others that are replaced are
            reported.

        Returns
        -------
        list of ReviewRecord
            The verdicts; empty if none was saved, which was reported.
        """
        records = self._save(judgements, shown=shown) if judgements else []
        self._read_again(records)
        return records

    def _save(
        self, judgements: Sequence[Judgement], *, shown: Sequence[ReviewRecord | None]
    ) -> list[ReviewRecord]:
        store = self.opened()
        if store is None:
            return []
        times_opened = store.times_opened
        try:
            records = store.give_all(judgements)
        except ReviewError as error:
            self._report(error)
            return []
        self._problem = None
        if store.times_opened != times_opened:
            self._forget()
        for record in records:
            if (old := record.replaced_elsewhere) is not None and old not in shown:
                self.noticed.emit(_replaced(record, old))
        return records

    def may_undo(self) -> bool:
        """Return whether a verdict of this window stands that `undo` would withdraw."""
        return self._ask(lambda store: store.may_undo(), default=False)

    def undo(self) -> list[ReviewRecord]:
        """Withdraw this window's newest verdicts; empty if there are none or it was not done."""
        records = self._ask(lambda store: store.undo(), default=None)
        if records is None:
            return []
        self._problem = None
        self._read_again(records)
        return records

    def take_back(self, records: Sequence[ReviewRecord]) -> list[ReviewRecord] | None:
        """Withdraw verdicts that were given together.

        Returns
        -------
        list of ReviewRecord or None
            Those that still stood and are withdrawn; None if that failed, which was reported.
        """
        found = self._ask(lambda store: store.take_back(records), default=None)
        if found is not None:
            self._problem = None
            self._read_again(found)
        return found

    def _read_again(self, records: Sequence[ReviewRecord]) -> None:
        """Read verdicts again after some were given or withdrawn, in any region."""
        if records:
            self._forget()
            self.touched.emit(tuple({record.region for record in records}))
            self.refresh()

    def withdraw(self, side: Side, row: int) -> ReviewRecord | None:
        """Withdraw the verdict on an object that is shown; None if none was withdrawn."""
        record = self.record(side, row)
        if record is None:
            return None
        was_there = self._ask(lambda store: store.withdraw(record), default=None)
        if was_there is None:
            return None
        self._problem = None
        self._forget()
        self.refresh()
        return record if was_there else None

    def history(self, side: Side, row: int) -> list[HistoryEntry]:
        """Return every verdict that the reviewer ever gave on an object that is shown."""
        subjects = self._current_subjects()
        if subjects is None:
            return []
        return self._ask(
            lambda store: store.history(
                subjects.of(*judged_as_one(subjects.evaluation, side, row))
            ),
            default=[],
        )

    def recent(self, count: int) -> list[ReviewRecord]:
        """Return the reviewer's newest verdicts in the whole cohort, newest first."""
        return self._ask(lambda store: store.recent(count), default=[])

    def agreement(self, first: str, second: str) -> ReviewerAgreement | None:
        """Compare two reviewers over the whole cohort; None if that failed."""
        return self._ask(lambda store: store.agreement(first, second), default=None)

    def subject(self, side: Side, row: int) -> Subject | None:
        """Describe the object that a verdict on an object that is shown is kept with."""
        subjects = self._current_subjects()
        if subjects is None or not self._is_there(subjects.evaluation, side, row):
            return None
        return subjects.of(*judged_as_one(subjects.evaluation, side, row))

    def records(self, region: str) -> Sequence[ReviewRecord]:
        """Return the reviewer's verdicts in a region, shown or not; none if that failed."""
        if self._known.region == region:
            return self._known.records
        return self._read(region) or ()

    def reviewed_regions(self, team: str | None = None) -> list[str]:
        """Name the regions in which the reviewer has judged a team, sorted.

        Parameters
        ----------
        team
            The current one where None.
        """
        team = self._session.team if team is None else team
        if self._store is None or team is None:
            return []
        if team not in self._known.reviewed:
            regions = self._ask(lambda store: store.regions(team=team), default=None)
            if regions is None:
                return []
            self._known = self._known.with_reviewed(team, regions)
        return sorted(self._known.reviewed[team])

    def file_check(self) -> Callable[[], FileChanges] | None:
        """Return a function that checks the file for changes by other windows; None if needless.

        Call it in another thread, one at a time, and pass its result to `apply_changes`.
        """
        if self._problem is not None or not self._reviewer:
            return None  # reported once; "try again" continues
        if self._store is None:
            return partial(check_for_file, self._path, self._known)
        if self._watch is not None and self._watch.times_opened != self._store.times_opened:
            self._stop_watching()
        if self._watch is None:
            self._watch = Watch(self._store)
        return partial(self._watch.check, self._known, self._region, self._session.team)

    def apply_changes(self, changes: FileChanges) -> tuple[str, ...]:
        """Show what a check of the file found; return the regions that others changed."""
        if self._problem is not None:
            return ()
        is_newest = changes.asked is self._known
        if changes.file_exists and self._store is None:
            self.begin()
        elif changes.error is not None and is_newest:
            self._report(changes.error)
        elif changes.known is not None:
            # Verdicts given and regions chosen in the meantime are newer than the check.
            self._known = changes.known if is_newest else Known()
            self.touched.emit(changes.regions)
            self.refresh()
        return changes.regions

    @property
    def _region(self) -> str | None:
        snapshot = self._session.snapshot
        return None if snapshot is None else snapshot.region.name

    def _stop_watching(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def find(self, record: ReviewRecord) -> Object | None:
        """Find the object that a verdict is about among those shown.

        An annotation is the same one for every team; a prediction is only found among those of
        its own team.
        """
        subjects = self._current_subjects()
        if subjects is None or record.region != one_spelling(subjects.region):
            return None
        if record.side is Side.PREDICTION and record.team != one_spelling(subjects.team):
            return None
        side, fingerprint = record.side, record.fingerprint
        likenesses = (
            (fingerprint.likeness(subjects.of(side, row).fingerprint), row)
            for row in subjects.near(side, [record])
        )
        found = [(likeness, row) for likeness, row in likenesses if likeness is not None]
        return (side, min(found)[1]) if found else None

    def _open(self) -> ReviewStore | None:
        try:
            self._store = ReviewStore(
                self._path,
                reviewer=self._reviewer,
                timeout_s=LONGEST_WAIT_S,
                window=self._window,
                adjudicates=self._adjudicates,
            )
        except ReviewError as error:
            self._report(error)
            return None
        self._problem = None
        self._forget()
        self._noticed = set()
        self._pass_notices_on(self._store)
        return self._store

    def _pass_notices_on(self, store: ReviewStore) -> None:
        """Report what the file says about itself, such as changes that cannot be read, once."""
        for notice in store.notices:
            if notice not in self._noticed:
                self._noticed.add(notice)
                self.noticed.emit(notice)

    def _records(self, region: str) -> tuple[ReviewRecord, ...]:
        """Return the reviewer's verdicts in a region, from the cache or the file."""
        if self._store is None:
            return ()
        if self._known.region != region:
            records = self._read(region)
            if records is None:
                return ()
            self._known = replace(self._known, region=region, records=records)
        return self._known.records

    def _read(self, region: str) -> tuple[ReviewRecord, ...] | None:
        """Read the reviewer's verdicts in a region; None if that failed, which is reported."""
        return self._ask(lambda store: tuple(store.current(region=region)), default=None)

    def _ask(
        self, question: Callable[[ReviewStore], _Found], *, default: _Default
    ) -> _Found | _Default:
        """Return the answer of the open file, or the default.

        The default is for no open file, and for a failure, which is reported.
        """
        if self._store is None:
            return default
        try:
            answer = question(self._store)
        except ReviewError as error:
            self._report(error)
            return default
        self._pass_notices_on(self._store)
        return answer

    def _show_saved(self, place: Object, record: ReviewRecord) -> None:
        """Show a verdict that was saved: it alone has changed what is shown."""
        shown = self._shown
        old = None if shown is None else shown.judged.records.get(place)
        # What was replaced stands no longer, and must not be found again.
        if shown is None or self._known.region is None or old != record.replaced:
            self._forget()
            self.refresh()
            return
        self._known = self._known.with_verdict(record, old)
        judged = shown.judged.with_verdict(place, record)
        self._shown = _Shown(shown.subjects, self._known.records, judged)
        self.changed.emit()

    def _forget(self) -> None:
        """Read the file again when its verdicts are needed."""
        self._known = Known()

    def _current_subjects(self) -> Subjects | None:
        """Describe what is shown now, though edits may have come since the last look."""
        evaluation = None if self._shown is None else self._shown.subjects.evaluation
        if evaluation is not self._session.evaluation:  # both are None on a whole slide
            self.refresh()
        return None if self._shown is None else self._shown.subjects

    def _is_there(self, evaluation: Evaluation, side: Side, row: int) -> bool:
        return 0 <= row < len(evaluation.outcomes.side(side))

    def _report(self, error: ReviewError) -> None:
        self._problem = error
        self.failed.emit(error)
        self.changed.emit()


def _replaced(record: ReviewRecord, old: ReviewRecord) -> Finding:
    """Report a verdict that replaced one on an object with other pixels."""
    return Finding(
        FindingKind.CHANGED,
        f"the verdict on {record.side} {record.object_id} replaced one on {old.side} "
        f"{old.object_id} at the same place ({VERDICT_WORDS[old.verdict]}, "
        f"{old.fingerprint.area_px} px; now {record.fingerprint.area_px} px). Undo it if they are "
        f"different objects",
        region=record.region,
        team=record.team,
        object_ids=(record.object_id,),
    )
