"""Work in other threads, without a window."""

import shutil
from threading import Event

import pytest
from qtpy.QtCore import QThreadPool, QTimer
from qtpy.QtTest import QTest

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.viewer.jobs import region_work as work
from napari_panoptic.viewer.jobs.region_work import RegionLoader, SummaryWork
from tests.support.small_cohort import REGIONS, mask_path

pytestmark = pytest.mark.usefixtures("qapp", "qtbot")


@pytest.fixture
def session(cohort):
    return Session(cohort)


@pytest.fixture
def shown(session):
    """Collect the names of the regions that are delivered."""
    shown = []
    for signal in (session.region_changed, session.teams_came):
        signal.connect(lambda snapshot: shown.append(snapshot.region.name))
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


class TestSlowFiles:
    """Files on a network that does not answer; no window waits for them."""

    @pytest.fixture
    def slow(self, monkeypatch):
        """Let the first region not come before it is let go."""
        may_come, begun = Event(), []
        original = work.load_in_steps

        def steps(cohort, name, *arguments, **options):
            begun.append(name)
            if name == cohort.regions[0].name:
                assert may_come.wait(30)
            return original(cohort, name, *arguments, **options)

        monkeypatch.setattr(work, "load_in_steps", steps)
        monkeypatch.setattr(work, "ABANDONED_AFTER_MS", 30)
        yield may_come, begun
        may_come.set()

    def test_the_window_lives_while_a_file_does_not_come(self, session, slow, shown, wait_until):
        may_come, begun = slow
        ticks = []
        timer = QTimer()
        timer.timeout.connect(lambda: ticks.append(begun[:]))
        timer.start(5)
        loader = RegionLoader(session)
        loader.load(session.request(region_name=session.cohort.regions[0].name))
        wait_until(lambda: len(ticks) > 20 and begun)
        assert shown == []
        assert loader.is_busy
        may_come.set()
        wait_until(lambda: not loader.is_busy)
        assert set(shown) == {session.cohort.regions[0].name}
        timer.stop()

    def test_a_switch_can_be_abandoned_for_another_region(self, session, slow, shown, wait_until):
        may_come, begun = slow
        first, second, third = (region.name for region in session.cohort.regions[:3])
        threads = QThreadPool.globalInstance().maxThreadCount()
        loader = RegionLoader(session)
        loader.load(session.request(region_name=first))
        wait_until(lambda: begun == [first])
        loader.load(session.request(region_name=second))
        wait_until(lambda: not loader.is_busy)
        assert set(shown) == {second}
        loader.load(session.request(region_name=third))
        wait_until(lambda: not loader.is_busy)
        may_come.set()  # comes after all, and is shown to nobody
        wait_until(lambda: loader._abandoned == 0)
        assert set(shown) == {second, third}
        assert QThreadPool.globalInstance().maxThreadCount() == threads

    def test_only_so_many_are_waited_for_by_nobody(self, session, wait_until, monkeypatch):
        may_come, begun = Event(), []

        def steps(_cohort, name, *_arguments, **_options):
            begun.append(name)
            assert may_come.wait(30)
            return iter(())

        monkeypatch.setattr(work, "load_in_steps", steps)
        monkeypatch.setattr(work, "ABANDONED_AFTER_MS", 10)
        loader = RegionLoader(session)
        names = [region.name for region in session.cohort.regions]
        for number, name in enumerate(names[: work.MOST_ABANDONED + 1]):
            loader.load(session.request(region_name=name))
            wait_until(lambda n=number: len(begun) == n + 1)
        loader.load(session.request(region_name=names[-1]))
        QTest.qWait(10 * work.ABANDONED_AFTER_MS)  # nothing may begin, however long it takes
        assert len(begun) == work.MOST_ABANDONED + 1
        may_come.set()
        wait_until(lambda: not loader.is_busy and loader._abandoned == 0)
        assert begun[-1] == names[-1]


class TestChangingFiles:
    """Files that change or vanish while their cohort is open."""

    @pytest.fixture
    def session(self, own_folder):
        return Session(open_cohort(own_folder))

    @pytest.fixture
    def loader(self, session):
        loader = RegionLoader(session)
        yield loader
        loader.close()

    @pytest.fixture
    def look_at(self, session, loader, wait_until):
        """Give a function that asks for a region and gives what is shown then."""

        def look(number):
            loader.load(session.request(region_name=REGIONS[number].name))
            wait_until(lambda: not loader.is_busy)
            return session.snapshot

        return look

    def test_a_changed_prediction_is_read_again(self, own_folder, look_at):
        before = look_at(0).predictions["alpha"]
        shutil.copy(
            mask_path(own_folder, "beta", REGIONS[0]), mask_path(own_folder, "alpha", REGIONS[0])
        )
        look_at(1)
        snapshot = look_at(0)
        beta = snapshot.predictions["beta"]
        assert len(snapshot.predictions["alpha"].ids) == len(beta.ids) != len(before.ids)

    @pytest.mark.parametrize("kind", ["prediction", "annotation", "image"])
    def test_what_vanished_is_told_and_the_rest_is_shown(self, own_folder, look_at, kind):
        look_at(0)
        name = REGIONS[1].name
        gone = {
            "prediction": [mask_path(own_folder, "alpha", REGIONS[1])],
            "annotation": [*own_folder.rglob(f"{name}.xml")],
            "image": [*own_folder.rglob(f"{name}.svs")],
        }[kind]
        assert gone
        for path in gone:
            path.unlink()
        snapshot = look_at(1)
        told = [f for f in snapshot.findings if f.kind is FindingKind.UNREADABLE]
        assert told
        assert {f.path for f in told} & set(gone)
        assert all("no such file" in f.message for f in told)
        teams = {"prediction": {"beta"}, "image": {"alpha", "beta"}}.get(kind, set())
        assert set(snapshot.evaluations) & {"alpha", "beta"} == teams

    def test_where_the_whole_folder_goes_away_it_is_told_until_it_is_back(
        self, own_folder, loader, look_at
    ):
        told = []
        loader.failed.connect(lambda error: told.append(str(error)))
        shown = look_at(0)
        away = own_folder.rename(own_folder.with_name("unplugged"))
        assert look_at(1) is shown
        (said,) = told
        assert REGIONS[1].name in said
        assert "not there any more" in said
        assert "put it back" in said
        away.rename(own_folder)
        assert look_at(1).region.name == REGIONS[1].name
        assert len(told) == 1


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
