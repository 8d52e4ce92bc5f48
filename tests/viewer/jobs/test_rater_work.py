"""Cases of several raters, loaded and evaluated in other threads, without a window."""

import sys
from threading import Event

import pytest

from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.samples.write import write_raters_sample
from napari_panoptic.viewer.jobs import rater_work as work
from napari_panoptic.viewer.jobs.rater_work import CaseEvaluator, CaseLoader, WantedCase

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")


@pytest.fixture(scope="module")
def raters_cohort(tmp_path_factory):
    return open_raters(write_raters_sample(tmp_path_factory.mktemp("raters") / "sample"))


@pytest.fixture
def wanted(raters_cohort):
    """Give a request for the first case, and one for the same case of another team."""
    case = raters_cohort.cases[0]
    return [WantedCase(case.name, case.structures[0], team) for team in raters_cohort.teams[:2]]


@pytest.mark.qt_no_exception_capture
def test_after_an_unforeseen_error_the_rest_counts_as_not_evaluated(
    raters_cohort, wait_until, monkeypatch
):
    """Else a window that waits for all scores would wait for ever."""
    raised, results, evaluate = [], {}, work.evaluate_structure
    monkeypatch.setattr(sys, "excepthook", lambda *error: raised.append(error[0]))

    def fail_later(*asked):
        if results:
            raise ZeroDivisionError
        return evaluate(*asked)

    def note(case, structure, result):
        results[case, structure] = result

    monkeypatch.setattr(work, "evaluate_structure", fail_later)
    scores = CaseEvaluator(raters_cohort, note)
    scores.start(raters_cohort.structures[0])
    wait_until(lambda: scores.is_done and raised)
    assert set(results) == {
        (case.name, name) for case in raters_cohort.cases for name in case.masks
    }
    assert any(result is None for result in results.values())
    assert raised == [ZeroDivisionError]


def test_closed_it_evaluates_nothing_more(raters_cohort, wait_until):
    results, others = [], []
    closed, other = (
        CaseEvaluator(raters_cohort, lambda *result: results.append(result)),
        CaseEvaluator(raters_cohort, lambda *result: others.append(result)),
    )
    closed.start(raters_cohort.structures[0])
    closed.close()
    closed.start(raters_cohort.structures[0])
    other.start(raters_cohort.structures[0])
    wait_until(lambda: other.is_done)
    assert results == []
    assert len(others) == len(set(others)) > 1


def test_what_was_read_for_an_outdated_request_is_not_read_again(
    raters_cohort, wanted, wait_until, monkeypatch
):
    read, begun, may_go_on, views, load = [], Event(), Event(), [], work.load_reference

    def slow(*asked):
        read.append(asked[1].name)
        begun.set()
        assert may_go_on.wait(30)
        return load(*asked)

    monkeypatch.setattr(work, "load_reference", slow)
    loader = CaseLoader(raters_cohort, views.append, lambda *error: views.append(error))
    first, second = wanted
    loader.load(first)
    wait_until(begun.is_set)
    loader.load(second)
    loader.load(second)  # asked for already
    may_go_on.set()
    wait_until(lambda: not loader.is_busy)
    assert [view.wanted for view in views] == [second]
    assert len(read) == 1
    assert views[-1].comparison is not None
