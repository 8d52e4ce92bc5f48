"""The way from failure to failure, without a window: limits, resuming, and each failure once."""

from dataclasses import replace

import pytest

from napari_panoptic.display.failure_walk import ChosenOrder, FailureWalk, WalkStep
from napari_panoptic.display.object_rows import ObjectFilter, WorstFirst
from napari_panoptic.explain.failures import FailureSet
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings

SETTINGS = EvaluationSettings(distances=False)
TEAM = "merger"
OVER_ALL = ChosenOrder(WorstFirst.IOU, ObjectFilter(), is_by_region=False)


@pytest.fixture
def session(nuclei_sample):
    cohort = open_cohort(nuclei_sample)
    session = Session(replace(cohort, regions=cohort.regions[:2]), SETTINGS)
    for line in evaluate_cohort_summary(session.cohort, Reading(SETTINGS, teams=(TEAM,))):
        session.add_summary(line)
    session.set_team(TEAM)
    show(session, session.cohort.regions[0].name)
    return session


@pytest.fixture
def walk(session):
    return FailureWalk(session, lambda: OVER_ALL, lambda: None)


def show(session, region):
    request = session.request(region_name=region)
    session.deliver(request, load_region(session.cohort, region, SETTINGS))


def go(walk, session, step=1):
    """Go where a step leads, as the desk does; return the stop."""
    stop = walk.go(WalkStep(step), more_come=False)
    if stop is not None:
        if session.snapshot.region.name != stop.region:
            show(session, stop.region)
        session.select_row(stop.side, session.evaluation.outcomes.side(stop.side).row_of(stop.id))
    return stop


def test_it_leads_to_each_failure_once_and_back_to_the_first(walk, session):
    queue = walk.order.queue
    expected = [queue.item(place) for place in range(len(queue))]
    assert [go(walk, session) for _ in expected] == expected
    assert go(walk, session) is None
    place = walk.place()
    assert place.number == place.total == len(expected)
    assert [go(walk, session, -1) for _ in expected[1:]] == expected[-2::-1]


def test_a_limit_leaves_out_all_others_and_ignores_the_filter(walk, session):
    queue = walk.order.queue
    wanted = [queue.item(place) for place in (1, 4)]
    filtered = replace(OVER_ALL, wanted=ObjectFilter(statuses=frozenset()))
    walk = FailureWalk(session, lambda: filtered, lambda: None)
    walk.limit = FailureSet("two", frozenset(stop.name for stop in wanted), None)
    assert [go(walk, session), go(walk, session)] == wanted
    assert go(walk, session) is None


def test_a_later_start_goes_on_where_the_first_one_ended(walk, session):
    for _ in range(3):
        stop = go(walk, session)
    kept = walk.to_keep()
    assert kept == [TEAM, stop.region, str(stop.side), stop.id]
    following = walk.order.queue.item(3)
    session.select(None)
    later = FailureWalk(session, lambda: OVER_ALL, lambda: None)
    later.resume(kept)
    assert go(later, session) == following


@pytest.mark.parametrize("kept", [None, [], ["careful", "?", "prediction", 1], ["merger", 3]])
def test_a_stop_that_is_unknown_is_not_gone_on_from(walk, session, kept):
    walk.resume(kept)
    assert walk.to_keep() == []
    assert go(walk, session) == walk.order.queue.item(0)


def test_where_it_ended_is_waited_for_while_its_region_is_evaluated(walk, session):
    first, second = (region.name for region in session.cohort.regions)
    queue = walk.order.queue
    stops = map(queue.item, range(len(queue)))
    last = next(stop for stop in stops if stop.region == second)
    session.clear_summaries()
    walk.resume([TEAM, last.region, str(last.side), last.id])
    assert session.snapshot.region.name == first
    assert walk.go(WalkStep(1), more_come=True) == last
