"""The queue of failures: where it begins, where it goes on, and what the control says."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_panoptic.display.failure_queue import QueuePlace
from napari_panoptic.display.object_rows import ObjectFilter, WorstFirst
from napari_panoptic.display.styles import FAILURES
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import SIDES, STATUS_CODE, Side, Status
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.panels.queue import QueueBar, QueuePresenter
from napari_panoptic.viewer.state.preferences import PREFERENCES, Queue

FIRST_TEAM = "merger"
"""It fails more."""


@pytest.fixture(scope="module")
def shown_parts():
    """Show no panel beside the table: the queue stands above them."""
    return ()


@pytest.fixture
def at_first(fresh_desk):
    fresh_desk.state.order = WorstFirst.IMPACT


@pytest.fixture
def bar(desk):
    return desk.panels.queue


@pytest.fixture
def take_step(desk, bar, wait_until):
    """Give a function that clicks an arrow of the control and waits."""

    def take(step=1):
        place = QPoint(bar.width() - 5 if step > 0 else 5, bar.height() // 2)
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=place)
        wait_until(lambda: desk.is_settled)
        chosen = desk.session.selection
        return desk.session.snapshot.region.name, chosen.side, chosen.id

    return take


def costs(desk):
    """Return the failures of the team with the mean PQ without each, the dearest first."""
    session = desk.session
    lines = [line for line in session.summaries.values() if line.team == session.team]
    names, now = session.cohort.scheme.names, counts_of(desk)
    found = []
    for number, line in enumerate(lines):
        columns = line.failures.columns
        for row in range(len(line.failures)):
            after = list(now)
            after[number] = after[number][0], mended(line.counts, columns, row)
            mean = summarise_team(after, names).averaged["pq"].mean
            place = line.region, SIDES[columns["side"][row]], int(columns["id"][row])
            found.append((-mean, -int(columns["area_px"][row]), place))
    return sorted(found, key=lambda cost: cost[:2])


def counts_of(desk):
    """Return patient and counts of every region of the team."""
    session = desk.session
    patient_of = {region.name: region.patient for region in session.cohort.regions}
    lines = [line for line in session.summaries.values() if line.team == session.team]
    return [(patient_of[line.region], line.counts) for line in lines]


def mended(counts, columns, row):
    """Count a region again with one failure mended."""
    confusion, iou_sum = counts.confusion.copy(), counts.iou_sum.copy()
    own, other = int(columns["class"][row]), int(columns["partner_class"][row])
    if columns["status"][row] == STATUS_CODE[Status.FP]:
        confusion[0, own] -= 1
    else:
        confusion[own, other] -= 1
        confusion[own, own] += 1
        iou_sum[own - 1] += columns["iou"][row] if other else 1.0
    tp = np.diagonal(confusion)[1:]
    fp, fn = confusion[:, 1:].sum(axis=0) - tp, confusion[1:].sum(axis=1) - tp
    present = (tp + fp + fn > 0).astype(int)
    changes = {"tp": tp, "fp": fp, "fn": fn, "iou_sum": iou_sum, "present": present}
    return type(counts)(**{**vars_of(counts), "confusion": confusion, **changes})


def vars_of(counts):
    return {name: getattr(counts, name) for name in counts.__dataclass_fields__}


def test_over_the_cohort_the_dearest_failures_come_first(desk, bar, take_step):
    desk.session.select_row(Side.REFERENCE, 3)  # the queue does not begin after it
    bar.scope.choose(Queue.COHORT)
    expected = costs(desk)
    for n in range(6):
        place = take_step()
        assert place in [p for cost, area, p in expected if (cost, area) == expected[n][:2]]
        assert bar.place_text() == f"{n + 1} of {len(expected)}"
    now = summarise_team(counts_of(desk), desk.session.cohort.scheme.names).averaged["pq"].mean
    assert f"would add {-expected[5][0] - now:.4f} to the team's mean PQ" in bar.toolTip()
    assert take_step(-1) == expected[4][2]
    assert bar.place_text() == f"5 of {len(expected)}"


def test_in_a_region_it_begins_with_the_first_whatever_is_selected(desk, bar, take_step):
    model = desk.panels.objects.model
    rows = [model.rows.object_of(int(row)) for row in model.failures()]
    desk.session.select_row(*rows[3])
    desk.link.failures.leave()
    chosen = []
    for n in range(3):
        take_step()
        chosen.append((desk.session.selection.side, desk.session.selection.row))
        assert bar.place_text() == f"{n + 1} of {len(rows)}"
    assert chosen == rows[:3]


def test_once_it_has_begun_it_goes_on_from_the_failure_that_the_user_selects(desk, take_step):
    model = desk.panels.objects.model
    rows = [model.rows.object_of(int(row)) for row in model.failures()]
    take_step()
    desk.session.select_row(*rows[4])
    take_step()
    assert (desk.session.selection.side, desk.session.selection.row) == rows[5]


def test_the_place_is_that_of_the_selected_failure(desk, bar, wait_until):
    model = desk.panels.objects.model
    rows = [model.rows.object_of(int(row)) for row in model.failures()]
    wait_until(lambda: bar.place_text() == str(len(rows)))
    desk.session.select_row(*rows[2])
    wait_until(lambda: bar.place_text() == f"3 of {len(rows)}")
    status = desk.session.evaluation.outcomes.reference.status
    desk.session.select_row(Side.REFERENCE, int(np.flatnonzero(status == 0)[0]))
    wait_until(lambda: bar.place_text() == str(len(rows)))


def test_filters_of_the_table_narrow_it(desk, bar, wait_until):
    bar.scope.choose(Queue.COHORT)
    only = ObjectFilter(statuses=frozenset({"FP"}))
    desk.panels.objects.set_filter(only)
    lines = [line for line in desk.session.summaries.values() if line.team == "merger"]
    n = sum(int(line.counts.confusion[0].sum()) for line in lines)
    wait_until(lambda: bar.place_text() == str(n))


def test_small_failures_come_last_and_are_called_so(desk, bar, take_step):
    desk.panels.objects.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
    areas = desk.panels.objects.model.rows.values["area_px"]
    rows = desk.panels.objects.model.failures()
    PREFERENCES.small_px = small_px = int(np.median(areas[rows]))
    bar.order.choose(WorstFirst.IOU)
    seen, words = [], []
    for _ in rows:
        take_step()
        chosen = desk.session.selection
        own = desk.session.evaluation.outcomes.side(chosen.side)
        seen.append(int(own.area_px[chosen.row]) < small_px)
        words.append("small" in bar.place_text())
    assert seen == sorted(seen)
    assert 0 < sum(seen) < len(seen)
    assert words == seen


def test_without_a_setting_small_is_the_smallest_percent_of_the_annotated(desk):
    lines = [line for line in desk.session.summaries.values() if line.team == "merger"]
    areas = sorted(px for line in lines for px in line.failures.annotated_px.tolist())
    assert desk.link.failures.walk.order.small_px == areas[int(0.01 * (len(areas) - 1))]
    PREFERENCES.small_px = 77
    assert desk.link.failures.walk.order.small_px == 77


def test_it_is_one_choice_with_the_state(desk, bar):
    bar.order.choose(WorstFirst.CAUSE)
    assert desk.state.order is PREFERENCES.order is WorstFirst.CAUSE
    assert desk.panels.objects.model.worst is WorstFirst.CAUSE
    desk.state.queue = Queue.COHORT
    assert bar.scope.choice is Queue.COHORT
    assert [order.short for order in WorstFirst] == [
        "Impact",
        "IoU",
        "Area",
        "Score",
        "Cause",
        "Random",
    ]
    assert [queue.short for queue in Queue] == ["This region", "Whole cohort"]


def test_a_blind_reviewer_sees_no_numbers(desk, bar, wait_until):
    desk.state.is_blind = True
    wait_until(lambda: desk.is_settled)
    assert bar.place_text() == ""
    assert not bar.can_step
    desk.state.is_blind = False
    wait_until(lambda: desk.is_settled)
    assert bar.place_text()
    assert bar.can_step


def test_it_is_short(qtbot):
    bar = QueueBar()
    qtbot.addWidget(bar)
    bar.setStyleSheet("font-size: 9pt")
    bar.scope.show_choice(Queue.COHORT)
    bar.order.show_choice(WorstFirst.RANDOM)
    bar.show_place(QueuePlace(1234, 5678))
    bar.show()
    assert bar.sizeHint().width() <= 330


class TestOpening:
    @pytest.fixture
    def reopen(self, window, cohort, wait_until, close_desk):
        """Give a function that opens the cohort in a window without a desk."""
        opened = []

        def open_again():
            while opened:
                close_desk(opened.pop())
            desk = desk_of(window)
            opened.append(desk)
            desk.show_cohort(cohort)
            wait_until(lambda: desk.session.snapshot is not None and desk.is_settled)
            return desk

        yield open_again
        while opened:
            close_desk(opened.pop())

    def test_the_worst_failure_is_selected_and_in_view(self, reopen):
        desk = reopen()
        model = desk.panels.objects.model
        side, row = model.rows.object_of(int(model.failures()[0]))
        chosen = desk.session.selection
        assert (chosen.side, chosen.row) == (side, row)
        view = desk.viewer
        yx = desk.session.evaluation.outcomes.side(side).centroid_yx_px[row]
        place = view.layers["reference"].data_to_world(yx)
        off = np.abs(np.subtract(place, view.scene.camera.center[-2:])) * view.scene.camera.zoom
        assert (off < np.array(view.window._qt_viewer.canvas.size) / 2).all()
        desk.link.failures.step()
        chosen = desk.session.selection
        assert (chosen.side, chosen.row) == model.rows.object_of(int(model.failures()[1]))

    @pytest.mark.parametrize(
        "queue", [Queue.COHORT, pytest.param(Queue.REGION, marks=pytest.mark.long)]
    )
    def test_a_restart_goes_on_where_it_was(self, reopen, wait_until, queue):
        desk = reopen()
        desk.state.queue = queue
        for _ in range(4):
            desk.link.failures.step()
            wait_until(lambda: desk.is_settled)
        chosen, region = desk.session.selection, desk.session.snapshot.region.name
        text = desk.panels.queue.place_text()
        desk.link.failures.step()
        wait_until(lambda: desk.is_settled)
        after = desk.session.selection, desk.session.snapshot.region.name
        desk.link.failures.step(-1)
        wait_until(lambda: desk.is_settled)
        again = reopen()
        assert again.session.snapshot.region.name == region
        assert again.session.selection == chosen
        assert again.panels.queue.place_text() == text
        again.link.failures.step()
        wait_until(lambda: again.is_settled)
        assert (again.session.selection, again.session.snapshot.region.name) == after

    @pytest.mark.long
    def test_over_the_cohort_it_goes_on_though_another_region_was_looked_at(
        self, reopen, wait_until
    ):
        desk = reopen()
        desk.state.queue = Queue.COHORT
        for _ in range(3):
            desk.link.failures.step()
            wait_until(lambda: desk.is_settled)
        last = desk.session.snapshot.region.name
        desk.link.failures.step()
        wait_until(lambda: desk.is_settled)
        expected = desk.session.selection
        desk.link.failures.step(-1)
        wait_until(lambda: desk.is_settled)
        other = next(at.name for at in desk.session.cohort.regions if at.name != last)
        desk.link.request(region=other)
        wait_until(lambda: desk.is_settled)
        again = reopen()
        assert again.session.snapshot.region.name == other
        again.link.failures.step()
        wait_until(lambda: again.is_settled)
        assert again.session.selection == expected

    @pytest.mark.long
    def test_another_order_begins_anew_also_after_a_restart(self, reopen, wait_until):
        desk = reopen()
        for _ in range(3):
            desk.link.failures.step()
        desk.state.order = WorstFirst.AREA
        wait_until(lambda: desk.is_settled)
        desk.presenter(QueuePresenter)
        again = reopen()
        model = again.panels.objects.model
        chosen = again.session.selection
        assert (chosen.side, chosen.row) == model.rows.object_of(int(model.failures()[0]))


def test_a_cohort_opens_in_the_first_region_with_a_failure_that_is_not_small(
    window, close_desk, cohort, wait_until
):
    def largest_failure(region):
        outcomes = load_region(cohort, region.name, settings).evaluations["careful"].outcomes
        sides = [outcomes.side(side) for side in SIDES]
        return max(int(side.area_px[np.isin(side.status, codes)].max(initial=0)) for side in sides)

    settings = EvaluationSettings(distances=False)
    codes = [STATUS_CODE[status] for status in FAILURES]
    first, second = regions = tuple(sorted(cohort.regions[:2], key=largest_failure))
    PREFERENCES.small_px = largest_failure(first) + 1
    cohort = replace(cohort, regions=regions)
    desk = desk_of(window)
    desk.show_cohort(cohort, team="careful")
    wait_until(lambda: desk.is_settled)
    assert desk.state.queue is Queue.COHORT
    assert desk.session.snapshot.region.name == second.name
    chosen = desk.session.selection
    area_px = desk.session.shown.outcomes.side(chosen.side).area_px[chosen.row]
    assert area_px >= desk.link.failures.walk.order.small_px
    desk.show_cohort(cohort, team="careful", region=first.name)  # the region that was asked for
    wait_until(lambda: desk.is_settled)
    assert desk.session.snapshot.region.name == first.name
    close_desk(desk)
