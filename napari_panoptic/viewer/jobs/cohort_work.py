"""Evaluate every region of all teams, also by the conventions of other codes.

Finished regions are kept in the user's cache folder until all are done, so that
an evaluation that was stopped, or whose window was closed, goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from platformdirs import user_cache_path

from napari_panoptic import __version__
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.progress import UNWATCHED, Progress, StoppedError
from napari_panoptic.io.tables.metadata import Metadata, metadata_beside
from napari_panoptic.nuclei.regions.run import RegionDone
from napari_panoptic.questions.answer import Answer
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.questions.question import Question
from napari_panoptic.report.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
    n_kept,
)
from napari_panoptic.report.nuclei.ranking_answer import (
    PATIENTS_FILE,
    STATISTICS_FILE,
    ranking_answer,
)
from napari_panoptic.values.cohort import Cohort

KEPT_COHORTS = 4
"""Number of cohorts whose unfinished evaluations are kept."""


@dataclass(frozen=True, kw_only=True)
class WholeCohort(Question):
    """How teams rank under each protocol and average, how firmly, and what changes it."""

    title = "Ranking"
    key = "Alt-r"
    verb = "Evaluate cohort"
    hint = (
        "Evaluate the cohort to see how teams rank under each protocol and average, how firmly, "
        "and what changes it."
    )
    tables = (*Conventions.tables, STATISTICS_FILE, PATIENTS_FILE)
    share_of_gathering = 1.0

    #: Names of the teams.
    teams: tuple[str, ...]

    @classmethod
    def record_file(cls) -> str:
        """Return the name of the JSON file."""
        return "ranking.json"

    def gather(
        self,
        cohort: Cohort,
        progress: Progress = UNWATCHED,
        *,
        jobs: int | None = 1,  # noqa: ARG002 - the window keeps a processor to itself
    ) -> CohortReport:
        """Evaluate the cohort in every way that a report shows."""
        try:
            metadata = patients_of(cohort)
        except PanopticError:  # the panel says so
            metadata = None
        request = ReportRequest(
            cohort=cohort,
            settings=self.settings,
            protocol=self.protocol,
            team_names=self.teams,
            source=self.source,
            metadata=metadata,
            held_up_to_px=self.held_up_to_px,
        )
        return kept_report(request, progress)

    def answered(
        self,
        cohort: Cohort,  # noqa: ARG002 - it is part of the report
        gathered: CohortReport,
        progress: Progress = UNWATCHED,  # noqa: ARG002 - it takes a moment
    ) -> Answer:
        """Return tables by convention and metric, and plots."""
        return ranking_answer(gathered)

    def answer_to(self, question: Question, gathered: CohortReport) -> Answer | None:
        """Return the answer to a question that the report has asked, too."""
        wanted = _asked_of_files(question)
        return next(
            (answer for own, answer in gathered.answers if _asked_of_files(own) == wanted), None
        )


def _asked_of_files(question: Question) -> Question:
    """Return a question without what is the same for all of a cohort, or has no effect."""
    if question.own_settings is not None:
        question = replace(question, protocol="")
    return replace(question, metadata=None) if isinstance(question, Conventions) else question


def patients_of(cohort: Cohort) -> Metadata | None:
    """Return what the table in a cohort's folder says of its patients; None if there is none.

    Raises
    ------
    PanopticError
        If it cannot be read.
    """
    return metadata_beside(cohort.root, cohort.patients)


def kept_report(request: ReportRequest, progress: Progress = UNWATCHED) -> CohortReport:
    """Evaluate a cohort, from what is kept of it on; nothing is kept of one that is done.

    Raises
    ------
    StoppedError
        If cancelled; what is done is kept.
    PanopticError
        If the cohort cannot be evaluated; nothing is kept of it.
    """
    store = store_of(request)
    try:
        found = _evaluated_from(request, store, progress)
    except PanopticError:
        shutil.rmtree(store.parent, ignore_errors=True)
        raise
    if found is None:
        raise StoppedError("the evaluation was stopped before it was done")
    shutil.rmtree(store.parent, ignore_errors=True)
    return found


def _evaluated_from(request: ReportRequest, store: Path, progress: Progress) -> CohortReport | None:
    """Evaluate a cohort from what is kept of it; without a store where that fails."""
    if not _make_room(store):
        return _report(request, None, progress)
    try:
        return _report(request, store, progress)
    except PanopticError as error:
        if error.path is None or not error.path.is_relative_to(store):
            raise
        return _report(request, None, progress)


def _report(request: ReportRequest, store: Path | None, progress: Progress) -> CohortReport | None:
    done, kept, total = 0, 0 if store is None else n_kept(store), len(request.cohort.regions)

    def count(region: RegionDone) -> None:
        nonlocal done
        done += not region.is_again
        n = min(max(done, kept), total)
        progress.tell(n / total, f"{n} of {total} regions")

    # One region at a time: the window keeps a processor to itself.
    return cohort_report(
        request, jobs=1, store=store, on_result=count, is_wanted=progress.is_wanted
    )


def store_of(request: ReportRequest) -> Path:
    """Return the folder for finished regions of an evaluation: in its cohort's, in the cache."""
    record = {
        "version": __version__,
        "protocol": request.protocol,
        "settings": request.settings.as_record(),
        "source": request.source,
        "teams": request.team_names,
    }
    cohort = _digest(os.fsencode(request.cohort.root.resolve()))
    asked = _digest(json.dumps(record, sort_keys=True).encode())
    return user_cache_path("napari-panoptic") / "cohorts" / cohort / asked


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _make_room(store: Path) -> bool:
    """Make a store's folder, and remove what other settings and the oldest cohorts have left.

    Where the cache cannot be written to, nothing is kept, which is no error.
    """
    own = store.parent
    try:
        store.mkdir(parents=True, exist_ok=True)
        os.utime(own)
        by_age = sorted(own.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        others = [path for path in by_age if path != own]
        left = [path for path in own.iterdir() if path != store]
    except OSError:
        return False
    for path in [*others[: -(KEPT_COHORTS - 1)], *left]:
        shutil.rmtree(path, ignore_errors=True)
    return True
