"""The queue of failures: each exactly once, there and back, also while edits remove some."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.display.failure_queue import (
    UNKNOWN,
    FailureQueue,
    QueuePosition,
    QueueStop,
)
from napari_panoptic.explain.failures import (
    Block,
    CohortFailures,
    RegionFailures,
)
from napari_panoptic.values.vocabulary import SIDES, Side

objects = st.tuples(st.integers(0, 4), st.sampled_from(range(2)), st.integers(1, 50))
UNTIMED = settings(deadline=None)
orders = st.lists(objects, unique=True, max_size=30)
REGIONS = [f"R{number}" for number in range(5)]


def queue_of(order):
    """Return a queue of objects that are given as region, side and id, in this order."""
    own = {number: [at for at in order if at[0] == number] for number in {at[0] for at in order}}
    blocks, place = [], {}
    for number, listed in own.items():
        for at in listed:
            place[at] = len(place)
        columns = {name: np.zeros(len(listed), column.dtype) for name, column in _scalars()}
        columns["side"] = np.array([at[1] for at in listed], np.int8)
        columns["id"] = np.array([at[2] for at in listed], np.int64)
        columns["centroid_yx_px"] = np.zeros((len(listed), 2))
        columns["bbox"] = np.zeros((len(listed), 4), np.int32)
        blocks.append(Block("T", "P", REGIONS[number], RegionFailures(columns, ("A",), None)))
    rows = np.array([place[at] for at in order], np.intp)
    return FailureQueue(CohortFailures(blocks), rows, REGIONS)


def _scalars():
    columns = CohortFailures().columns
    return [(name, column) for name, column in columns.items() if column.ndim == 1]


def stop_of(at):
    if at[1] == UNKNOWN:
        return QueueStop("T", REGIONS[at[0]])
    return QueueStop("T", REGIONS[at[0]], SIDES[at[1]], at[2])


class Walk:
    """Somebody who goes through a queue, which may change between two steps."""

    def __init__(self):
        self.position = None

    @property
    def stop(self):
        return None if self.position is None else self.position.stop

    def go_to(self, stop, queue):
        self.position = QueuePosition(stop, queue)

    def step(self, queue, step, *, start=None, wanted=None, wraps=False):
        if self.position is not None:
            at = queue.standing(self.position)
        else:
            at = None if start is None else queue.before_region(REGIONS[start], step)
        place = queue.step(step, at, wanted, wraps=wraps)
        if place is None:
            return None
        self.position = QueuePosition(queue.item(place), queue)
        return self.stop


def walked(walk, queue, step=1, **choices):
    found = []
    while (stop := walk.step(queue, step, **choices)) is not None:
        found.append(stop)
        assert len(found) <= len(queue)
    return found


@UNTIMED
@given(orders)
def test_every_failure_is_reached_once_in_order(order):
    queue, walk = queue_of(order), Walk()
    assert walked(walk, queue) == [stop_of(at) for at in order]
    assert walk.stop == (stop_of(order[-1]) if order else None)


@UNTIMED
@given(orders, st.data())
def test_previous_is_the_inverse_of_next(order, data):
    queue, walk = queue_of(order), Walk()
    for _ in range(data.draw(st.integers(0, len(order)))):
        walk.step(queue, 1)
    before = walk.stop
    if walk.step(queue, 1) is not None and before is not None:
        assert walk.step(queue, -1) == before
    before = walk.stop
    if walk.step(queue, -1) is not None and before is not None:
        assert walk.step(queue, 1) == before


@UNTIMED
@given(orders, st.data())
def test_edits_that_remove_objects_skip_and_repeat_nothing(order, data):
    queue, walk = queue_of(order), Walk()
    steps = data.draw(st.integers(0, len(order)))
    seen = [walk.step(queue, 1) for _ in range(steps)]
    kept = [at for at in order if data.draw(st.booleans())]
    ahead = walked(walk, queue_of(kept))
    assert ahead == [stop_of(at) for at in kept if stop_of(at) not in seen]
    if steps:
        behind = Walk()
        behind.go_to(seen[-1], queue)
        expected = [stop_of(at) for at in kept if stop_of(at) in seen[:-1]]
        assert walked(behind, queue_of(kept), -1) == expected[::-1]


@UNTIMED
@given(orders, st.data())
def test_only_wanted_stops_are_reached(order, data):
    queue, walk = queue_of(order), Walk()
    expected = [stop_of(at) for at in order if data.draw(st.booleans())]
    assert walked(walk, queue, wanted=expected.__contains__) == expected


def test_at_the_end_it_stays_and_returns_nothing():
    queue, walk = queue_of([(0, 0, 1), (0, 0, 2)]), Walk()
    walked(walk, queue)
    assert walk.step(queue, 1) is None
    assert walk.stop == QueueStop("T", "R0", Side.REFERENCE, 2)
    assert walk.step(queue, -1) == QueueStop("T", "R0", Side.REFERENCE, 1)
    assert walk.step(queue, -1) is None


def test_the_first_step_begins_in_the_region_that_is_shown():
    queue = queue_of([(0, 0, 1), (1, 0, 5), (1, 1, 6), (3, 0, 9)])
    assert Walk().step(queue, 1, start=1) == QueueStop("T", "R1", Side.REFERENCE, 5)
    assert Walk().step(queue, -1, start=1) == QueueStop("T", "R1", Side.PREDICTION, 6)
    assert Walk().step(queue, 1, start=2) == QueueStop("T", "R3", Side.REFERENCE, 9)
    assert Walk().step(queue, -1, start=2) == QueueStop("T", "R1", Side.PREDICTION, 6)


def test_a_region_that_is_not_known_yet_is_a_stop_and_left_once_it_is_known():
    first, unknown = [(0, 0, 4), (0, 1, 4)], [(1, UNKNOWN, 0), (2, UNKNOWN, 0)]
    walk, before = Walk(), queue_of([*first, *unknown])
    assert before.n_failures == 2
    assert walked(walk, before)[-2:] == [QueueStop("T", "R1"), QueueStop("T", "R2")]
    walk = Walk()
    for _ in range(3):
        walk.step(before, 1)
    known = [*first, (1, 0, 7)]
    after = queue_of([*known, unknown[1]])
    assert walk.step(after, 1) == QueueStop("T", "R1", Side.REFERENCE, 7)
    assert walk.step(after, 1) == QueueStop("T", "R2")
    assert walk.step(queue_of(known), 1) is None


def test_the_user_may_go_elsewhere():
    queue, walk = queue_of([(0, 0, 1), (0, 0, 2), (0, 0, 3)]), Walk()
    assert queue.find(QueueStop("T", "R0", Side.PREDICTION, 2)) is None
    assert queue.find(QueueStop("U", "R0", Side.REFERENCE, 2)) is None
    walk.go_to(QueueStop("T", "R0", Side.REFERENCE, 2), queue)
    assert walk.step(queue, 1) == QueueStop("T", "R0", Side.REFERENCE, 3)
    walk.go_to(QueueStop("T", "R0", Side.REFERENCE, 1), queue)
    assert walk.step(queue, 1) == QueueStop("T", "R0", Side.REFERENCE, 2)


def test_a_remembered_stop_that_is_gone_leads_to_the_first():
    queue, walk = queue_of([(0, 0, 1), (0, 0, 2)]), Walk()
    walk.position = QueuePosition(QueueStop("T", "R0", Side.REFERENCE, 9))
    assert walk.step(queue, 1) == QueueStop("T", "R0", Side.REFERENCE, 1)


def test_a_part_is_one_region():
    queue = queue_of([(0, 0, 1), (1, 0, 5), (0, 1, 6), (3, 0, 9)])
    part = queue.part("R0")
    assert [part.item(place).id for place in range(len(part))] == [1, 6]
    assert not len(queue.part("R2"))


@UNTIMED
@given(orders, st.sampled_from((1, -1)), st.data())
def test_around_the_end_the_next_wanted_one_follows(order, step, data):
    queue, walk = queue_of(order), Walk()
    wanted = [at for at in order if data.draw(st.booleans())]
    if order:
        here = data.draw(st.integers(0, len(order) - 1))
        walk.go_to(stop_of(order[here]), queue)
        others = [order[(here + step * k) % len(order)] for k in range(1, len(order))]
    else:
        others = []
    found = walk.step(queue, step, wanted=[stop_of(at) for at in wanted].__contains__, wraps=True)
    expected = [at for at in others if at in wanted]
    assert found == (stop_of(expected[0]) if expected else None)
