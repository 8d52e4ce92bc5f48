"""A cohort evaluated in a worker: stopped, taken up again, and where nothing can be kept."""

import os
import sys
from dataclasses import replace

import pytest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.nuclei.regions.run import RegionDone
from napari_panoptic.report.nuclei.cohort_report import ReportRequest, cohort_report, n_kept
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.jobs import cohort_work, jobs
from napari_panoptic.viewer.jobs.cohort_work import KEPT_COHORTS, CohortWork, store_of
from napari_panoptic.viewer.panels.ranking import RankingPresenter
from tests.support.waiting import wait_until as wait_for

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")


@pytest.fixture
def request_(cohort):
    small = replace(cohort, regions=cohort.regions[:5])
    return ReportRequest(small, EvaluationSettings(), "disentangled", ("careful", "merger"))


@pytest.fixture
def taken_over(monkeypatch):
    """Collect of each region whether it was there already."""
    told = []

    def noted(*asked, on_result, **options):
        def note(done: RegionDone):
            told.append(done.is_taken_over)
            on_result(done)

        return cohort_report(*asked, on_result=note, **options)

    monkeypatch.setattr(cohort_work, "cohort_report", noted)
    return told


@pytest.fixture
def finish(wait_until):
    """Give a function that evaluates, and gives what came of it and how it went."""

    def run(request):
        work, found, failed, steps = CohortWork(), [], [], []
        work.finished.connect(found.append)
        work.failed.connect(failed.append)
        work.progressed.connect(lambda done, total: steps.append((done, total)))
        work.start(request)
        wait_until(lambda: not work.is_busy)
        return found, failed, steps

    return run


def leave_some(request, n=4):
    """Do what an evaluation that was stopped after some regions has done."""
    done = []
    store = store_of(request)
    cohort_report(
        request, jobs=1, store=store, on_result=done.append, is_wanted=lambda: len(done) < n
    )
    assert n_kept(store) == len(done) >= n
    return len(done)


def same(found, wanted):
    return found.radii.found.pq.tolist() == wanted.radii.found.pq.tolist() and (
        found.evaluation.score("merger") == wanted.evaluation.score("merger")
    )


def test_the_window_has_nothing_left_to_compute(request_, finish):
    (found,), failed, _ = finish(request_)
    assert not failed
    assert "statistics" in vars(found)
    assert "pq" in found.statistics
    assert found.conventions is not None
    assert "conventions.csv" in found.conventions.files


@pytest.mark.long
def test_it_goes_on_where_another_stopped_and_leaves_nothing(request_, finish, taken_over, cache):
    kept = leave_some(request_)
    (found,), failed, steps = finish(request_)
    assert not failed
    assert taken_over == [True] * kept + [False] * (5 - kept)
    assert same(found, cohort_report(request_, jobs=1))
    # At first that it has begun, where there is time to say so; then no less than was there.
    assert steps
    assert all(done == 0 or kept <= done <= 5 for done, _ in steps)
    assert list((cache / "cohorts").iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("damage", [b"", b"garbage", None], ids=["empty", "garbage", "cut off"])
def test_what_is_damaged_in_the_cache_is_done_again(request_, finish, taken_over, damage):
    leave_some(request_)
    first, *others = sorted(store_of(request_).rglob("*.part.json"))
    first.write_bytes(first.read_bytes()[:-30] if damage is None else damage)
    (found,), failed, _ = finish(request_)
    assert not failed
    assert sum(taken_over) == len(others)
    assert same(found, cohort_report(request_, jobs=1))


@pytest.mark.long
def test_two_windows_that_evaluate_the_same_cohort_both_end(request_, wait_until):
    """They share what is kept, and the first that ends removes it."""
    works, found, failed = [CohortWork(), CohortWork()], [], []
    for work in works:
        work.finished.connect(found.append)
        work.failed.connect(failed.append)
        work.start(request_)
    wait_until(lambda: not any(work.is_busy for work in works))
    assert failed == []
    one, other = found
    assert same(one, other)


def test_stopped_by_hand_it_keeps_what_is_done(request_, finish, taken_over, wait_until):
    work, ended = CohortWork(), []
    work.finished.connect(ended.append)
    work.start(request_)
    wait_until(lambda: len(taken_over) >= 2)
    work.stop()
    before = n_kept(store_of(request_))
    assert before >= 1
    taken_over.clear()
    (found,), _, _ = finish(request_)
    assert ended == []
    assert sum(taken_over) >= before
    assert found.radii.found.pq.shape[0] == 2


@pytest.mark.long
def test_progress_is_at_least_what_was_left(request_, monkeypatch, wait_until):
    monkeypatch.setattr(jobs, "PROGRESS_EVERY_MS", 0)
    leave_some(request_)
    seen = []

    def slow(request, *, on_result, **_options):
        for _ in range(5):
            shown = len(seen)
            on_result(RegionDone("r", is_taken_over=False))
            wait_for(lambda shown=shown: len(seen) > shown)  # in a thread of its own
        return cohort_report(request, jobs=1)

    monkeypatch.setattr(cohort_work, "cohort_report", slow)
    monkeypatch.setattr(cohort_work, "n_kept", lambda _store: 4)
    work = CohortWork()
    work.start(request_)
    work.progressed.connect(lambda done, _total: seen.append(done))
    wait_until(lambda: not work.is_busy)
    assert seen == [4, 4, 4, 4, 5]


@pytest.mark.qt_no_exception_capture
def test_an_unforeseen_error_is_told_and_keeps_what_is_done(request_, finish, monkeypatch):
    raised = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: raised.append(error[0]))
    leave_some(request_)

    def fail(*_asked, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr(cohort_work, "cohort_report", fail)
    found, (error,), _ = finish(request_)
    assert found == []
    assert "unexpected error" in str(error)
    assert raised == [ZeroDivisionError]
    assert n_kept(store_of(request_)) >= 4


@pytest.mark.long
def test_other_settings_begin_anew_and_remove_the_old(request_, finish, taken_over, cache):
    leave_some(request_)
    other = replace(request_, settings=EvaluationSettings(iou_threshold=0.6))
    assert store_of(other).parent == store_of(request_).parent
    assert store_of(other) != store_of(request_)
    (found,), _, _ = finish(other)
    assert found.request is other
    assert taken_over == [False] * 5
    assert list((cache / "cohorts").iterdir()) == []


@pytest.mark.long
def test_of_few_cohorts_is_something_kept(request_, finish, cache):
    folder = cache / "cohorts"
    for number in range(KEPT_COHORTS + 2):
        path = folder / f"cohort {number}" / "asked" / "kept"
        path.mkdir(parents=True)
        os.utime(path.parent.parent, (number, number))
    finish(request_)
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == [f"cohort {number}" for number in range(3, KEPT_COHORTS + 2)]


@pytest.mark.long
def test_a_cache_that_cannot_be_written_is_no_error(request_, finish, cache):
    cache.write_text("a file where the folder should be", encoding="utf-8")
    (found,), failed, _ = finish(request_)
    assert not failed
    assert same(found, cohort_report(request_, jobs=1))


@pytest.mark.long
def test_a_cache_that_is_full_in_the_middle_is_no_error(request_, finish, monkeypatch):
    real, written = PartStore.write, []

    def full(self, region, fingerprint, results):
        if len(written) == 4:
            raise PanopticError("no space is left", path=self.folder)
        written.append(region)
        real(self, region, fingerprint, results)

    monkeypatch.setattr(PartStore, "write", full)
    (found,), failed, _ = finish(request_)
    assert len(written) == 4
    assert not failed
    assert same(found, cohort_report(request_, jobs=1))


def test_nothing_to_evaluate_is_still_told(request_, finish, cache):
    empty = replace(request_, cohort=replace(request_.cohort, predictions={}))
    found, (error,), _ = finish(empty)
    assert not found
    assert "no region has both" in str(error)
    assert list((cache / "cohorts").iterdir()) == []


@pytest.mark.long
def test_after_a_closed_window_another_goes_on(
    new_desk, close_desk, wait_until, cohort, cache, finish, taken_over
):
    part = new_desk.presenter(RankingPresenter)
    new_desk.raise_part(part)
    part.evaluate()
    wait_until(lambda: len(list(cache.rglob("*.part.json"))) >= 2)
    close_desk(new_desk)
    wait_until(lambda: not part.is_busy)
    left = len(list(cache.rglob("*.part.json")))
    assert 2 <= left < len(cohort.regions)
    taken_over.clear()
    asked = ReportRequest(
        cohort,
        new_desk.session.settings,
        "disentangled",
        tuple(team.name for team in cohort.competing_teams),
        new_desk.session.source,
    )
    assert n_kept(store_of(asked)) >= left
    (found,), _, _ = finish(asked)
    assert found.evaluation.evaluated
    assert sum(taken_over) >= left
