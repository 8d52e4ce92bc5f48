"""A cohort evaluated in a worker: stopped, taken up again, and where nothing can be kept."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.nuclei.regions.run import RegionDone
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.report.nuclei.cohort_report import ReportRequest, cohort_report, n_kept
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.jobs import cohort_work
from napari_panoptic.viewer.jobs.cohort_work import KEPT_COHORTS, kept_report, store_of
from napari_panoptic.viewer.panels.ranking import RankingPresenter

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


def finish(request):
    """Evaluate; return what was found, and the shares that were reported as done."""
    shares = []
    found = kept_report(request, Progress(report=lambda share, _doing: shares.append(share)))
    return found, shares


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


def test_it_finds_what_the_panel_shows(request_):
    found, _ = finish(request_)
    assert "pq" in found.statistics
    assert found.conventions is not None
    assert "conventions.csv" in found.conventions.files


@pytest.mark.long
def test_it_goes_on_where_another_stopped_and_leaves_nothing(request_, taken_over, cache):
    kept = leave_some(request_)
    found, shares = finish(request_)
    assert taken_over == [True] * kept + [False] * (5 - kept)
    assert same(found, cohort_report(request_, jobs=1))
    assert len(shares) == 5
    assert all(kept / 5 <= share <= 1 for share in shares)
    assert list((cache / "cohorts").iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("damage", [b"", b"garbage", None], ids=["empty", "garbage", "cut off"])
def test_what_is_damaged_in_the_cache_is_done_again(request_, taken_over, damage):
    leave_some(request_)
    first, *others = sorted(store_of(request_).rglob("*.part.json"))
    first.write_bytes(first.read_bytes()[:-30] if damage is None else damage)
    found, _ = finish(request_)
    assert sum(taken_over) == len(others)
    assert same(found, cohort_report(request_, jobs=1))


@pytest.mark.long
def test_two_windows_that_evaluate_the_same_cohort_both_end(request_):
    """They share what is kept, and the first that ends removes it."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(kept_report, (request_, request_))
    assert same(one, other)


def test_stopped_by_hand_it_keeps_what_is_done(request_, taken_over):
    with pytest.raises(StoppedError):
        kept_report(request_, Progress(lambda: len(taken_over) < 2))
    before = n_kept(store_of(request_))
    assert before >= 1
    taken_over.clear()
    found, _ = finish(request_)
    assert sum(taken_over) >= before
    assert found.radii.found.pq.shape[0] == 2


@pytest.mark.long
def test_progress_is_at_least_what_was_left(request_, monkeypatch):
    def again(request, *, on_result, **_options):
        for _ in range(5):
            on_result(RegionDone("r", is_taken_over=False))
        return cohort_report(request, jobs=1)

    monkeypatch.setattr(cohort_work, "cohort_report", again)
    monkeypatch.setattr(cohort_work, "n_kept", lambda _store: 4)
    _, shares = finish(request_)
    assert shares == [0.8, 0.8, 0.8, 0.8, 1.0]


def test_an_unforeseen_error_keeps_what_is_done(request_, monkeypatch):
    leave_some(request_)

    def fail(*_asked, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr(cohort_work, "cohort_report", fail)
    with pytest.raises(ZeroDivisionError):
        kept_report(request_)
    assert n_kept(store_of(request_)) >= 4


@pytest.mark.long
def test_other_settings_begin_anew_and_remove_the_old(request_, taken_over, cache):
    leave_some(request_)
    other = replace(request_, settings=EvaluationSettings(iou_threshold=0.6))
    assert store_of(other).parent == store_of(request_).parent
    assert store_of(other) != store_of(request_)
    found, _ = finish(other)
    assert found.request is other
    assert taken_over == [False] * 5
    assert list((cache / "cohorts").iterdir()) == []


@pytest.mark.long
def test_of_few_cohorts_is_something_kept(request_, cache):
    folder = cache / "cohorts"
    for number in range(KEPT_COHORTS + 2):
        path = folder / f"cohort {number}" / "asked" / "kept"
        path.mkdir(parents=True)
        os.utime(path.parent.parent, (number, number))
    finish(request_)
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == [f"cohort {number}" for number in range(3, KEPT_COHORTS + 2)]


@pytest.mark.long
def test_a_cache_that_cannot_be_written_is_no_error(request_, cache):
    cache.write_text("a file where the folder should be", encoding="utf-8")
    found, _ = finish(request_)
    assert same(found, cohort_report(request_, jobs=1))


@pytest.mark.long
def test_a_cache_that_is_full_in_the_middle_is_no_error(request_, monkeypatch):
    real, written = PartStore.write, []

    def full(self, region, fingerprint, results):
        if len(written) == 4:
            raise PanopticError("no space is left", path=self.folder)
        written.append(region)
        real(self, region, fingerprint, results)

    monkeypatch.setattr(PartStore, "write", full)
    found, _ = finish(request_)
    assert len(written) == 4
    assert same(found, cohort_report(request_, jobs=1))


def test_nothing_to_evaluate_is_still_told(request_, cache):
    empty = replace(request_, cohort=replace(request_.cohort, predictions={}))
    with pytest.raises(UnansweredError, match="no region has both"):
        finish(empty)
    assert list((cache / "cohorts").iterdir()) == []


@pytest.mark.long
def test_after_a_closed_window_another_goes_on(
    new_desk, close_desk, wait_until, cohort, cache, taken_over
):
    part = new_desk.presenter(RankingPresenter)
    new_desk.raise_part(part)
    part.ask()
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
    found, _ = finish(asked)
    assert found.evaluation.evaluated
    assert sum(taken_over) >= left
