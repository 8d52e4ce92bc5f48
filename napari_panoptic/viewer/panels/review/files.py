"""The files of a review: drafts, verdicts, those of other windows, and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from psygnal import Signal
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.formats.polygons.geojson_writer import geo_objects, write_geojson
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.export import (
    AGREEMENT_TABLE,
    VERDICT_TABLE,
    Row,
    agreement_rows,
    object_details,
    verdict_frame,
    verdict_rows,
    write_table,
)
from napari_panoptic.review.progress import evaluated_region
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.tags import remembered
from napari_panoptic.review.verdicts import ReviewerAgreement, ReviewRecord
from napari_panoptic.review.watch import FileChanges
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest, Several, show_failure, stop_timers
from napari_panoptic.viewer.kit.questions import file_to_save
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels.review.panel import ReviewExport, ReviewPanel
from napari_panoptic.viewer.state.preferences import PREFERENCES

ObjectName = tuple[str, str, str, str, int]
"""Reviewer, region, team, side and id of an object."""
_KINDS = (str, str, str, str, int, str, str)
"""Fields of a remembered draft: the object's name, its tags and its note."""
Texts = tuple[str, str]
"""Tags and note of an object."""


class Drafts:
    """The drafts of a cohort, which the next window offers again.

    Parameters
    ----------
    cohort_root
        The cohort's folder, for which they are remembered.
    panel
        Where they are typed.
    reviewing
        The review.
    verdicts
        The verdicts of the cohort.
    """

    def __init__(
        self, cohort_root: Path, panel: ReviewPanel, reviewing: Reviewing, verdicts: CohortVerdicts
    ) -> None:
        self._root, self._panel = cohort_root, panel
        self._reviewing, self._verdicts = reviewing, verdicts
        self._texts: dict[ObjectName, Texts] = {}
        for line in filter(_is_draft, PREFERENCES.drafts(cohort_root)):
            *names, id_, tags, note = line
            self._texts[(*names, id_)] = tags, note
        self._written = dict(self._texts)
        panel.tags.offer(PREFERENCES.tags)

    def write(self) -> None:
        """Remember the drafts for the next window, where they changed."""
        if self._texts != self._written:
            lines = [[*name, *texts] for name, texts in self._texts.items()]
            PREFERENCES.keep_drafts(self._root, lines)
            self._written = dict(self._texts)

    def of(self, name: FailureName) -> Texts | None:
        """Return tags and note that were typed for an object and are not saved."""
        return self._texts.get(self._key(name))

    def assign_to(self, reviewer: str) -> None:
        """Assign the drafts that were typed before the reviewer was named."""
        if self._reviewing.reviewer:
            return
        for name in [name for name in self._texts if not name[0]]:
            self._texts[(reviewer, *name[1:])] = self._texts.pop(name)

    def keep_typed(self, names: Iterable[FailureName]) -> None:
        """Keep typed texts with their objects, also if no verdict follows."""
        if not self._panel.has_draft:
            self.forget(names)
            return
        for name in names:
            self._texts[self._key(name)] = self._panel.details()

    def to_save(self, names: Iterable[FailureName]) -> dict[FailureName, Texts]:
        """Return tags and note for each object; of several, each keeps its own if none is typed."""
        tags, note = self._panel.details()
        records = {name: self._verdicts.record(name) for name in names}
        return {
            name: (tags, note)
            if len(records) == 1 or record is None
            else (tags or record.tag, note or record.note)
            for name, record in records.items()
        }

    def forget(self, names: Iterable[FailureName]) -> None:
        """Forget the drafts of objects, such as those whose tags and note were saved."""
        for name in names:
            self._texts.pop(self._key(name), None)

    def restore(self, records: Iterable[ReviewRecord]) -> None:
        """Make a draft of tags and note of verdicts that were withdrawn.

        Where an earlier verdict is in effect again and has some, they are those of that verdict.
        """
        for record in records:
            name = FailureName(record.team, record.region, record.side, record.object_id)
            standing = self._verdicts.record(name)
            if standing is None or not (standing.tag or standing.note):
                self._texts[self._key(name)] = record.tag, record.note

    def offer_again(self, tags: str) -> None:
        """Remember the user's own tags, and offer them."""
        known = PREFERENCES.tags
        if (own := remembered(known, tags)) != known:
            PREFERENCES.tags = own
            self._panel.tags.offer(own)

    def _key(self, name: FailureName) -> ObjectName:
        return self._reviewing.reviewer, name.region, name.team, str(name.side), name.id


def _is_draft(line: Any) -> bool:
    return (
        isinstance(line, list)
        and len(line) == len(_KINDS)
        and all(isinstance(value, kind) for value, kind in zip(line, _KINDS, strict=True))
    )


POLL_MS = 1000
"""How often the file is looked at for what other windows did."""


class _Say(Protocol):
    def __call__(self, text: str, *, saved: bool | None = None) -> None: ...


class ReviewFiles:
    """Moves a review to another file, looks for changes by other windows, and exports.

    Parameters
    ----------
    session
        The review.
    panel
        The parent of the dialogs.
    reviewing
        The review.
    say
        Shows the outcome of an export.
    """

    moving = Signal()  # another file is about to be used
    changed = Signal(tuple)  # regions in which others changed verdicts, perhaps none

    def __init__(
        self, session: Session, panel: ReviewPanel, reviewing: Reviewing, say: _Say
    ) -> None:
        self._session, self._panel, self._reviewing = session, panel, reviewing
        self._say = say
        self._exports = Several()
        self._is_closed = False
        self._check: Latest[FileChanges] = Latest(self._on_checked)
        self._tick = QTimer()
        self._tick.setInterval(POLL_MS)
        self._tick.timeout.connect(self.check)

    @property
    def is_busy(self) -> bool:
        """Whether a file is being written."""
        return self._exports.is_busy

    @property
    def is_checking(self) -> bool:
        """Whether the answer of a check is still to come."""
        return self._check.is_busy

    def begin(self) -> None:
        """Check the file at each tick from now on."""
        self._tick.start()

    def close(self) -> None:
        """Stop checking, ignore answers still to come, and report written files no more."""
        self._is_closed = True
        stop_timers(self._tick)
        self._check.drop()

    def check(self) -> None:
        """Look at the file in another thread: a network drive may take its time."""
        check = None if self.is_checking else self._reviewing.file_check()
        if check is not None:
            self._check.start(check)

    def _on_checked(self, changes: FileChanges) -> None:
        self.changed.emit(self._reviewing.apply_changes(changes))

    def choose(self) -> None:
        """Ask for a file, new or existing."""
        chosen, _ = QFileDialog.getSaveFileName(
            self._panel,
            "Keep verdicts in this file; one that exists is continued",
            str(self._reviewing.path),
            "Reviews (*.sqlite)",
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if chosen:
            self._use(Path(chosen))

    def use_suggestion(self) -> None:
        """Use the place that is suggested where the present one cannot be used."""
        problem = self._reviewing.problem
        if problem is not None and problem.suggestion is not None:
            self._use(problem.suggestion)

    def _use(self, path: Path) -> None:
        """Use a file, also when this cohort is opened again."""
        PREFERENCES.choose_review_file(self._session.cohort.root, path)
        self.moving.emit()
        self._reviewing.use(path=path)

    def export(self, wanted: ReviewExport) -> None:
        """Write verdicts, or the objects of the region."""
        if wanted is ReviewExport.REGION:
            self.write_region()
        else:
            self.write_verdicts(everybody=wanted is ReviewExport.ALL)

    def write_verdicts(self, *, everybody: bool) -> None:
        """Write the verdicts in the whole cohort as CSV, with status and cause."""
        store = self._reviewing.store
        if store is None:
            show_info("There are no verdicts to write yet: give the first one.")
            return
        path = self._ask_where(VERDICT_TABLE.file, "CSV (*.csv)")
        if path is None:
            return
        try:
            records = store.verdicts(include_others=True)
        except PanopticError as error:
            show_error(str(error))
            return
        if not everybody:  # decisions too, whether the user is deciding or not
            records = [record for record in records if record.reviewer == store.reviewer]
        write = partial(_write_verdicts, path, records, self._rows_here(records), self._evaluator())
        self._write(write, path, "verdicts")

    def write_agreement(self, found: ReviewerAgreement) -> None:
        """Write the verdicts of two reviewers, the decisions between them, and kappa as CSV."""
        path = self._ask_where(AGREEMENT_TABLE.file, "CSV (*.csv)")
        if path is not None:
            frame = AGREEMENT_TABLE.frame(agreement_rows(found))
            self._write(partial(write_table, path, AGREEMENT_TABLE, frame), path, "objects")

    def write_region(self) -> None:
        """Write the objects of the region as GeoJSON, with their verdicts."""
        session, judged = self._session, self._reviewing.judged
        if judged is None or session.snapshot is None or session.team is None:
            show_info("There are no evaluated objects here to write.")
            return
        region, team = session.snapshot.region.name, session.team
        path = self._ask_where(f"{region}-{team}.geojson", "GeoJSON (*.geojson)")
        if path is None:
            return
        sides = {}
        for side in Side:
            # A copy: the shown labels may be painted on while the file is written.
            sides[side] = (session.edited_labels(side), object_details(judged, side))
        self._write(
            partial(_write_objects, path, sides, region, team, session.cohort.scheme),
            path,
            "objects",
        )

    def _rows_here(self, records: Sequence[ReviewRecord]) -> dict[int, Row]:
        """Return the rows of the region shown, which may be under edit: not for workers."""
        session, judged = self._session, self._reviewing.judged
        if session.snapshot is None or judged is None:
            return {}
        place = session.snapshot.region.name, session.team
        here = [record for record in records if (record.region, record.team) == place]
        rows = verdict_rows(here, lambda _region, _team: judged.evaluation)
        return {id(record): row for record, row in zip(here, rows, strict=True)}

    def _evaluator(self) -> Callable[[str, str], Evaluation | None]:
        """Return a function that evaluates a region and team in a worker, None if impossible."""
        session = self._session
        cohort, settings, source = session.cohort, session.settings, session.source
        regions = {region.name for region in cohort.regions}
        teams = {team.name for team in cohort.teams}

        def evaluation_of(region: str, team: str) -> Evaluation | None:
            if region not in regions or team not in teams:
                return None
            try:
                return evaluated_region(cohort, region, team, settings, source)
            except PanopticError:
                return None  # the verdicts are written without an outcome

        return evaluation_of

    def _write(self, write: Callable[[], int], path: Path, what: str) -> None:
        def done(count: int) -> None:
            if not self._is_closed:
                self._say(f"{count} {what} written to {path.name}")

        def failed(error: PanopticError) -> None:
            show_failure(error)
            if not self._is_closed:
                self._say(f"NOT written: {path.name}", saved=False)

        self._say(f"writing {path.name} …")
        self._exports.start(write, done, failed)

    def _ask_where(self, name: str, kind: str) -> Path | None:
        return file_to_save(self._panel, "Write to", name, kind)


def _write_verdicts(
    path: Path,
    records: Sequence[ReviewRecord],
    known: Mapping[int, Row],
    evaluation_of: Callable[[str, str], Evaluation | None],
) -> int:
    others = [record for record in records if id(record) not in known]
    rows = iter(verdict_rows(others, evaluation_of))
    ordered = [known[id(record)] if id(record) in known else next(rows) for record in records]
    return write_table(path, VERDICT_TABLE, verdict_frame(ordered))


def _write_objects(
    path: Path,
    sides: Mapping[Side, tuple[LabelImage, Mapping[int, Mapping[str, object]]]],
    region: str,
    team: str,
    scheme: ClassScheme,
) -> int:
    objects = (
        item
        for side, (labels, details) in sides.items()
        for item in geo_objects(labels, side=side, region=region, team=team, details=details)
    )
    return write_geojson(path, objects, scheme=scheme)
