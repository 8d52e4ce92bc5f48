"""Work in other threads, without a window."""

from threading import Event

import pytest

from napari_panoptic.errors import PanopticError
from napari_panoptic.session import Session
from napari_panoptic.viewer import work
from napari_panoptic.viewer.work import RegionLoader, SummaryWork

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")


@pytest.fixture
def session(cohort):
    return Session(cohort)


@pytest.fixture
def shown(session):
    """Collect the names of the regions that are delivered."""
    shown = []
    session.region_changed.connect(lambda snapshot: shown.append(snapshot.region.name))
    return shown


class TestRegionLoader:
    def test_what_is_outdated_is_never_shown(self, session, shown, wait_until):
        loader = RegionLoader(session)
        names = [region.name for region in session.cohort.regions]
        for name in names:
            loader.load(session.request(region_name=name))
        wait_until(lambda: not loader.is_busy)
        assert shown == 2 * names[-1:]  # with the team that is looked at, then with all

    def test_busy_is_told_once_for_many_requests(self, session, wait_until):
        loader = RegionLoader(session)
        told = []
        loader.busy_changed.connect(told.append)
        for region in session.cohort.regions:
            loader.load(session.request(region_name=region.name))
        wait_until(lambda: not loader.is_busy)
        assert told == [True, False]

    def test_after_closing_nothing_is_shown(self, session, shown, wait_until):
        loader = RegionLoader(session)
        loader.load(session.request())
        loader.close()
        wait_until(lambda: not loader.is_busy)
        assert shown == []

    def test_after_closing_no_other_team_is_evaluated(self, session, wait_until, monkeypatch):
        asked, may_ask = [], Event()

        def steps(*_args, is_wanted, **_kwargs):
            assert may_ask.wait(20)
            asked.append(is_wanted())
            return iter(())

        monkeypatch.setattr(work, "load_in_steps", steps)
        loader = RegionLoader(session)
        loader.load(session.request())
        may_ask.set()
        wait_until(lambda: not loader.is_busy)
        may_ask.clear()
        loader.load(session.request())
        loader.close()
        may_ask.set()
        wait_until(lambda: not loader.is_busy)
        assert asked == [True, False]

    def test_a_failure_is_told_in_its_own_words(self, session, wait_until, monkeypatch):
        def fail(*_args, **_kwargs):
            raise PanopticError("expected a region, found a hole")

        monkeypatch.setattr(work, "load_in_steps", fail)
        loader = RegionLoader(session)
        told = []
        loader.failed.connect(lambda error: told.append(str(error)))
        loader.load(session.request())
        wait_until(lambda: not loader.is_busy)
        assert told == ["expected a region, found a hole"]


class TestSummaryWork:
    def test_every_region_of_every_team_gets_its_line(self, session, wait_until):
        summary = SummaryWork(session)
        told = []
        summary.progressed.connect(lambda done, total: told.append((done, total)))
        summary.start()
        wait_until(lambda: not summary.is_busy)
        assert len(session.summaries) == summary.total == 10
        assert told[0] == (0, 10)
        assert told[-1] == (10, 10)

    def test_it_goes_on_after_being_held(self, session, wait_until):
        summary = SummaryWork(session)
        summary.start()
        for held in (True, False, True, False):
            summary.hold(held)
        wait_until(lambda: not summary.is_busy)
        assert len(session.summaries) == summary.total

    def test_starting_over_drops_the_lines_of_older_settings(self, session, wait_until):
        summary = SummaryWork(session)
        summary.start()
        session.request(settings=session.settings.replaced(iou_threshold=0.95))
        summary.start()
        wait_until(lambda: not summary.is_busy)
        strict = {key: line.counts.tp.sum() for key, line in session.summaries.items()}
        session.request(settings=session.protocol)
        summary.start()
        wait_until(lambda: not summary.is_busy)
        usual = {key: line.counts.tp.sum() for key, line in session.summaries.items()}
        assert sum(strict.values()) < sum(usual.values())

    def test_stopped_it_tells_that_it_is_done(self, session, wait_until):
        summary = SummaryWork(session)
        told = []
        summary.start()
        summary.progressed.connect(lambda done, total: told.append((done, total)))
        summary.stop()
        assert told == [(10, 10)]
        assert not summary.is_busy
        wait_until(lambda: True)
