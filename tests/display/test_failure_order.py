"""Which failures come first: over the cohort, region by region, in the table, and of a set."""

from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.display.failure_queue import (
    FailureOrder,
    QueueStop,
    ShownRegion,
    TableListing,
    known_lines,
)
from napari_panoptic.display.object_rows import ObjectFilter, ObjectRows, WorstFirst
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.explain.impact import PatientMean
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import SIDES

SETTINGS = EvaluationSettings(distances=False)
TEAM = "merger"


@pytest.fixture(scope="module")
def session(nuclei_sample):
    cohort = open_cohort(nuclei_sample)
    session = Session(replace(cohort, regions=cohort.regions[:3]), SETTINGS)
    teams = ("careful", TEAM)
    for line in evaluate_cohort_summary(session.cohort, Reading(SETTINGS, teams=tuple(teams))):
        session.add_summary(line)
    return session


@pytest.fixture
def order(session):
    lines = known_lines(session, (TEAM,))
    return FailureOrder(session.cohort.regions, TEAM, (TEAM,), lines, WorstFirst.IMPACT)


@pytest.fixture(scope="module")
def listing(session):
    """List the first region as the table does."""
    name = session.cohort.regions[0].name
    outcomes = load_region(session.cohort, name, SETTINGS).evaluations[TEAM].outcomes
    rows = ObjectRows.from_outcomes(outcomes)
    listed = rows.worst_first(WorstFirst.IOU)
    return TableListing(rows, listed, False, outcomes.class_names, outcomes.mpp)


def stops(queue):
    return [queue.item(place) for place in range(len(queue))]


def names(line):
    columns = line.failures.columns
    return [
        FailureName(line.team, line.region, SIDES[side], int(id_))
        for side, id_ in zip(columns["side"], columns["id"], strict=True)
    ]


def test_it_is_equal_until_a_line_changes(session, order):
    again = replace(order, lines=known_lines(session, {TEAM}))
    assert again == order
    assert replace(order, lines=order.lines[1:]) != order
    assert replace(order, by=WorstFirst.AREA) != order
    assert {line.team for line in order.lines} == {TEAM}


def test_the_whole_cohort_has_each_failure_once_and_small_ones_last(order):
    found = [stop.name for stop in stops(order.queue)]
    assert sorted(found, key=str) == sorted((n for at in order.lines for n in names(at)), key=str)
    assert order.queue.n_failures == len(found)
    sized = replace(order, chosen_small_px=150, by=WorstFirst.CAUSE)
    area = sized.queue.failures.columns["area_px"][sized.queue.rows]
    assert (np.diff((area < sized.small_px).astype(int)) >= 0).all()
    assert 0 < (area < sized.small_px).sum() < len(area)


def test_alone_a_failure_counts_for_its_region(order):
    alone = replace(order, is_alone=True)
    for line in order.lines:
        region = PatientMean.of([("", line.counts)])
        gains = region.gains(np.zeros(len(line.failures), np.intp), line.failures.columns)
        for name, gain in list(zip(names(line), gains, strict=True))[:5]:
            assert alone.impact_of(name) == gain
            assert order.impact_of(name) != gain
    assert alone.impact_of(FailureName(TEAM, order.regions[0].name, SIDES[0], 10**6)) is None


def test_region_by_region_the_shown_one_is_as_listed_and_others_may_be_unknown(order, listing):
    first, second, third = (region.name for region in order.regions)
    shown = ShownRegion(first, listing)
    known = [line for line in order.lines if line.region != second]
    by_region = replace(order, lines=tuple(known), is_alone=True, shown=shown)
    found = stops(by_region.queue)
    regions = [stop.region for stop in found]
    assert regions == sorted(regions, key=[first, second, third].index)
    assert [stop for stop in found if stop.region == second] == [QueueStop(TEAM, second)]
    listed = [stop.id for stop in found if stop.region == first]
    rows = listing.rows.listed_failures(listing.order)
    area = listing.rows.values["area_px"][rows]
    is_small = area < order.small_px
    expected = np.concatenate([rows[~is_small], rows[is_small]])
    assert listed == listing.rows.values["id"][expected].tolist()
    # What is shown of it is the same without the others, and alone it counts as much.
    alone = by_region.of_region(first)
    assert stops(alone.queue) == stops(by_region.queue.part(first))
    assert alone.small_px == by_region.small_px
    name = alone.queue.item(0).name
    assert alone.impact_of(name) == by_region.impact_of(name)
    assert set(stops(by_region.of_region(third).queue)) == set(stops(by_region.queue.part(third)))
    pending = replace(by_region, shown=ShownRegion(first, None, is_pending=True))
    assert stops(pending.queue)[0] == QueueStop(TEAM, first)
    nothing = replace(by_region, shown=ShownRegion(first, None))
    assert stops(nothing.queue)[0] == QueueStop(TEAM, second)


def test_a_table_sorted_by_a_column_keeps_its_order(order, listing):
    sorted_table = replace(listing, order=listing.rows.ordered_by("area_px", descending=False))
    sorted_table = replace(sorted_table, is_sorted=True)
    assert sorted_table != listing
    queue = order.listed(ShownRegion(order.regions[0].name, sorted_table))
    area = queue.failures.columns["area_px"][queue.rows]
    assert (np.diff(area) >= 0).all()
    missed = replace(order, wanted=ObjectFilter(statuses=frozenset({"FN"})))
    part = missed.listed(ShownRegion(order.regions[0].name, sorted_table))
    assert 0 < len(part) < len(queue)


def test_a_set_limits_it_over_teams_and_says_so(session, order):
    teams = ("careful", TEAM)
    lines = known_lines(session, teams)
    wanted = [names(line)[0] for line in lines[:2]] + [names(line)[-1] for line in lines[-2:]]
    limit = FailureSet("some that matter", frozenset(wanted))
    limited = replace(order, teams=teams, lines=lines, limit=limit)
    assert {stop.name for stop in stops(limited.queue)} == set(wanted)
    assert limited.limit_text == "4 chosen: some that matter"
    assert order.limit_text == ""
    long = replace(order, limit=replace(limit, title="a" * 30 + " and " + "b" * 30))
    assert len(long.limit_text) == 40
