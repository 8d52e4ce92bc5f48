"""Verdicts on failures in any region of a cohort, shown or not, without a window."""

from contextlib import closing

import numpy as np
import pytest

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.live.summary import RegionSummary, evaluate_cohort_summary
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import SIDES, STATUS_CODE, Side, Status, Verdict

VERDICTS = list(Verdict)
TEAM, OTHER_TEAM = "careful", "merger"


@pytest.fixture(scope="module")
def lines(sample_cohort):
    """Evaluate two teams in all regions once."""
    settings = Session(sample_cohort).settings
    return list(evaluate_cohort_summary(sample_cohort, Reading(settings, teams=(TEAM, OTHER_TEAM))))


@pytest.fixture
def session(sample_cohort, lines):
    session = Session(sample_cohort)
    session.set_team(TEAM)
    for line in lines:
        session.add_summary(line)
    return session


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.sqlite"


@pytest.fixture
def reviewing(session, path):
    reviewing = Reviewing(session, reviewer="Ada", path=path)
    reviewing.begin()
    with closing(reviewing):
        yield reviewing


@pytest.fixture
def verdicts(session, reviewing):
    return CohortVerdicts(session, reviewing)


def show(session, reviewing, region):
    request = session.request(region_name=region)
    session.deliver(request, load_region(session.cohort, region, session.settings))
    reviewing.refresh()


def failures_of(lines, *teams):
    """Name all failures."""
    return [
        FailureName(line.team, line.region, SIDES[side], id_)
        for line in lines
        if line.team in teams
        for side, id_ in zip(
            line.failures.columns["side"].tolist(),
            line.failures.columns["id"].tolist(),
            strict=True,
        )
    ]


def misclassified(lines):
    """Name the reference objects of misclassified pairs, with the ids of their partners."""
    code = STATUS_CODE[Status.MISCLASSIFIED]
    return [
        (FailureName(line.team, line.region, Side.REFERENCE, int(id_)), int(partner))
        for line in lines
        if line.team == TEAM
        for id_, partner, status in zip(
            line.failures.columns["id"],
            line.failures.columns["partner_id"],
            line.failures.columns["status"],
            strict=True,
        )
        if status == code
    ]


def test_a_failure_is_described_alike_whether_its_region_is_shown_or_not(
    session, reviewing, verdicts, lines, sample_cohort
):
    names = failures_of(lines, TEAM)
    from_summary = {name: verdicts.subject(name) for name in names}
    for region in sample_cohort.regions[:3]:
        show(session, reviewing, region.name)
        for name in names:
            if name.region == region.name:
                assert verdicts.subject(name) == from_summary[name]


def test_what_is_open_is_what_was_not_judged_wherever_one_looks_from(
    session, reviewing, verdicts, lines, sample_cohort, path
):
    rng = np.random.default_rng(19)
    names, given = failures_of(lines, TEAM), {}
    for region in [at.name for at in sample_cohort.regions[:3]]:
        show(session, reviewing, region)
        here = [name for name in names if name.region == region]
        for number in rng.choice(len(here), min(8, len(here)), replace=False):
            verdict = VERDICTS[rng.integers(len(VERDICTS))]
            assert len(verdicts.give({here[number]: (verdict, "", "")})) == 1
            given[here[number]] = verdict
        assert {name for name in names if not verdicts.is_open(name)} == set(given)
    fresh = Reviewing(session, reviewer="Ada", path=path)
    fresh.begin()
    with closing(fresh):
        from_file = CohortVerdicts(session, fresh)
        for found in (verdicts, from_file):
            records = {name: found.record(name) for name in names}
            assert {at: r.verdict for at, r in records.items() if r is not None} == given
            assert found.counts() == (len(given), len(names))
            for region, n in found.reviewed().items():
                assert n == sum(name.region == region for name in given)


def test_verdicts_in_several_regions_and_teams_are_given_and_undone_together(
    session, reviewing, verdicts, lines, sample_cohort
):
    show(session, reviewing, sample_cohort.regions[0].name)
    names = failures_of(lines, TEAM, OTHER_TEAM)
    some = names[:: len(names) // 9]
    assert len({name.region for name in some}) > 1
    assert len({name.team for name in some}) == 2
    records = verdicts.give(dict.fromkeys(some, (Verdict.BOTH_WRONG, "debris", "")))
    assert len(records) == len(some)
    assert {(r.team, r.region, r.side, r.object_id) for r in records} == {
        (name.team, name.region, name.side, name.id) for name in some
    }
    assert {name for name in names if not verdicts.is_open(name)} == set(some)
    assert sum(verdicts.reviewed().values()) == sum(name.team == TEAM for name in some)
    assert len(reviewing.undo()) == len(some)
    assert all(map(verdicts.is_open, names))
    assert set(verdicts.reviewed().values()) == {0}


def test_both_objects_of_a_misclassified_pair_have_its_verdict(
    session, reviewing, verdicts, lines, sample_cohort
):
    name, partner_id = misclassified(lines)[0]
    partner = FailureName(TEAM, name.region, Side.PREDICTION, partner_id)
    show(session, reviewing, name.region)
    verdicts.give({partner: (Verdict.PREDICTION_RIGHT, "", "")})
    assert verdicts.record(name) == verdicts.record(partner)
    assert not verdicts.is_open(name)
    (other, *_) = (region.name for region in sample_cohort.regions if region.name != name.region)
    show(session, reviewing, other)
    assert not verdicts.is_open(name)
    assert verdicts.counts()[0] == 1


def test_another_reviewer_and_another_window(
    session, reviewing, verdicts, lines, sample_cohort, path
):
    show(session, reviewing, sample_cohort.regions[0].name)
    names = failures_of(lines, TEAM)
    there = next(name for name in names if name.region == sample_cohort.regions[1].name)
    verdicts.give({there: (Verdict.CANNOT_TELL, "", "")})
    assert not verdicts.is_open(there)
    reviewing.use(reviewer="Grace")
    assert verdicts.is_open(there)
    reviewing.use(reviewer="Ada")
    record = verdicts.record(there)
    with ReviewStore(path, reviewer="Ada") as same:
        same.withdraw(record)
    reviewing.apply_changes(reviewing.file_check()())
    assert verdicts.is_open(there)
    assert verdicts.reviewed()[there.region] == 0


def test_nothing_is_open_where_nothing_can_be_judged(session, verdicts, sample_cohort):
    region = sample_cohort.regions[0].name
    session.add_summary(RegionSummary(region, TEAM, None, None, is_slide=True))
    name = FailureName(TEAM, region, Side.REFERENCE, 1)
    assert not verdicts.is_open(name)
    assert verdicts.subject(name) is None
    assert verdicts.give({name: (Verdict.BOTH_WRONG, "", "")}) == []
    assert region not in verdicts.reviewed()


def test_a_file_that_cannot_be_read_is_reported_once(session, reviewing, verdicts, lines):
    show(session, reviewing, lines[0].region)
    names = failures_of(lines, TEAM)
    there = [name for name in names if name.region != lines[0].region]
    verdicts.give(dict.fromkeys(there, (Verdict.BOTH_WRONG, "", "")))
    failed = []
    reviewing.failed.connect(failed.append)
    reviewing.use(reviewer="Ada")
    reviewing.store.close()
    assert set(verdicts.reviewed().values()) == {0}
    assert len(failed) == 1
    reviewing.try_again()
    assert not any(map(verdicts.is_open, there))
