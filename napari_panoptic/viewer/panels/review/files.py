"""The files of a review: where verdicts are kept, what other windows wrote, and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from psygnal import Signal
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.formats.polygons.geojson_writer import geo_objects, write_geojson
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.review.export import (
    AGREEMENT_COLUMNS,
    VERDICT_COLUMNS,
    Row,
    agreement_rows,
    object_details,
    verdict_rows,
    write_csv,
)
from napari_panoptic.review.progress import evaluated_region
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.verdicts import ReviewerAgreement, ReviewRecord
from napari_panoptic.review.watch import FileChanges
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest, Several, show_failure
from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels.review.panel import ReviewExport, ReviewPanel
from napari_panoptic.viewer.state.preferences import PREFERENCES

POLL_MS = 1000
"""How often the file is looked at for what other windows did."""


class _Say(Protocol):
    def __call__(self, text: str, *, saved: bool | None = None) -> None: ...


class ReviewFiles:
    """Moves a review to another file, looks for changes by other windows, and exports.

    Parameters
    ----------
    session
        What is reviewed.
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
        """Stop checking, ignore answers still to come, and report no more what is written."""
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
        path = self._ask_where("verdicts.csv", "CSV (*.csv)")
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
        path = self._ask_where("agreement.csv", "CSV (*.csv)")
        if path is not None:
            rows = agreement_rows(found)
            self._write(partial(write_csv, path, AGREEMENT_COLUMNS, rows), path, "objects")

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
            # A copy: what is shown may be painted on while the file is written.
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
        """Return what evaluates a region and team in a worker, None where that is impossible."""
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
        chosen, _ = QFileDialog.getSaveFileName(self._panel, "Write to", name, kind)
        return Path(chosen) if chosen else None


def _write_verdicts(
    path: Path,
    records: Sequence[ReviewRecord],
    known: Mapping[int, Row],
    evaluation_of: Callable[[str, str], Evaluation | None],
) -> int:
    others = [record for record in records if id(record) not in known]
    rows = iter(verdict_rows(others, evaluation_of))
    ordered = [known[id(record)] if id(record) in known else next(rows) for record in records]
    return write_csv(path, VERDICT_COLUMNS, ordered)


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
