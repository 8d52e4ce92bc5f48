"""The evaluation of a whole cohort in a worker, with progress, and to be stopped at any time.

Finished regions are kept in the user's cache folder until all are done, so that
an evaluation that was stopped, or whose window was closed, goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from platformdirs import user_cache_path
from psygnal import Signal

from napari_panoptic import __version__
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.regions.run import RegionDone
from napari_panoptic.report.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
    n_kept,
)
from napari_panoptic.viewer.jobs.jobs import Job, Stream

KEPT_COHORTS = 4
"""Number of cohorts whose unfinished evaluations are kept."""


class CohortWork:
    """Evaluates a cohort in every way that a report shows, one request at a time."""

    progressed = Signal(int, int)
    finished = Signal(CohortReport)
    failed = Signal(PanopticError)

    def __init__(self) -> None:
        self._stream: Stream[CohortReport] = Stream(
            self._take, failed=self.failed.emit, progressed=self.progressed.emit
        )

    @property
    def is_busy(self) -> bool:
        """Whether a cohort is being evaluated."""
        return self._stream.is_busy

    def start(self, request: ReportRequest) -> None:
        """Evaluate a cohort instead of whatever is being evaluated."""
        self._stream.start(partial(_evaluated, request))
        self.progressed.emit(0, len(request.cohort.regions))

    def stop(self) -> None:
        """Cancel the evaluation."""
        self._stream.stop()

    def _take(self, found: CohortReport) -> None:
        self.stop()  # nothing more is to come
        self.finished.emit(found)


def _evaluated(request: ReportRequest, job: Job[CohortReport]) -> Iterator[CohortReport]:
    """Evaluate a cohort; nothing is kept of one that is done or cannot be evaluated."""
    store = store_of(request)
    try:
        found = _evaluated_from(request, store, job)
    except PanopticError:
        shutil.rmtree(store.parent, ignore_errors=True)
        raise
    if found is not None:
        shutil.rmtree(store.parent, ignore_errors=True)
        # Computed on first access: in the window's thread it would block it.
        _ = found.statistics
        yield found


def _evaluated_from(
    request: ReportRequest, store: Path, job: Job[CohortReport]
) -> CohortReport | None:
    """Evaluate a cohort from its kept results; without a store if that fails."""
    if not _make_room(store):
        return _report(request, None, job)
    try:
        return _report(request, store, job)
    except PanopticError as error:
        if error.path is None or not error.path.is_relative_to(store):
            raise
        return _report(request, None, job)


def _report(
    request: ReportRequest, store: Path | None, job: Job[CohortReport]
) -> CohortReport | None:
    done, kept, total = 0, 0 if store is None else n_kept(store), len(request.cohort.regions)

    def count(region: RegionDone) -> None:
        nonlocal done
        done += not region.is_again
        job.report(min(max(done, kept), total), total)

    # One region at a time: the window keeps a processor to itself.
    return cohort_report(
        request, jobs=1, store=store, on_result=count, is_wanted=lambda: job.is_wanted
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
