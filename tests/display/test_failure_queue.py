"""The queue of failures: each exactly once, there and back, also while edits remove some."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.display.failure_queue import FailureQueue, QueueStop, Stops
from napari_panoptic.values.vocabulary import SIDES, Side

objects = st.tuples(st.integers(0, 4), st.sampled_from(range(2)), st.integers(1, 50))
UNTIMED = settings(deadline=None)
orders = st.lists(objects, unique=True, max_size=30)


def stops_of(order):
    values = np.array(order, np.int64).reshape(-1, 3)
    return Stops(values[:, 0], values[:, 1].astype(np.int8), values[:, 2])


def stop_of(at):
    return QueueStop(at[0], SIDES[at[1]], at[2])


def walked(queue, stops, step=1, **choices):
    found = []
    while (stop := queue.step(stops, step, **choices)) is not None:
        found.append(stop)
        assert len(found) <= len(stops)
    return found


@UNTIMED
@given(orders)
def test_every_failure_is_reached_once_in_order(order):
    stops, queue = stops_of(order), FailureQueue()
    assert walked(queue, stops) == [stop_of(at) for at in order]
    assert queue.stop == (stop_of(order[-1]) if order else None)


@UNTIMED
@given(orders, st.data())
def test_previous_is_the_inverse_of_next(order, data):
    stops, queue = stops_of(order), FailureQueue()
    for _ in range(data.draw(st.integers(0, len(order)))):
        queue.step(stops, 1)
    before = queue.stop
    if queue.step(stops, 1) is not None and before is not None:
        assert queue.step(stops, -1) == before
    before = queue.stop
    if queue.step(stops, -1) is not None and before is not None:
        assert queue.step(stops, 1) == before


@UNTIMED
@given(orders, st.data())
def test_edits_that_remove_objects_skip_and_repeat_nothing(order, data):
    stops, queue = stops_of(order), FailureQueue()
    steps = data.draw(st.integers(0, len(order)))
    seen = [queue.step(stops, 1) for _ in range(steps)]
    kept = [at for at in order if data.draw(st.booleans())]
    ahead = walked(queue, stops_of(kept))
    assert ahead == [stop_of(at) for at in kept if stop_of(at) not in seen]
    if steps:
        behind = FailureQueue()
        assert behind.go_to(seen[-1], stops)
        expected = [stop_of(at) for at in kept if stop_of(at) in seen[:-1]]
        assert walked(behind, stops_of(kept), -1) == expected[::-1]


@UNTIMED
@given(orders, st.data())
def test_only_wanted_stops_are_reached(order, data):
    stops, queue = stops_of(order), FailureQueue()
    wanted = np.array([data.draw(st.booleans()) for _ in order], bool)
    expected = [stop_of(at) for at, is_wanted in zip(order, wanted, strict=True) if is_wanted]
    assert walked(queue, stops, wanted=wanted) == expected


def test_at_the_end_it_stays_and_returns_nothing():
    stops, queue = stops_of([(0, 0, 1), (0, 0, 2)]), FailureQueue()
    walked(queue, stops)
    assert queue.step(stops, 1) is None
    assert queue.stop == QueueStop(0, Side.REFERENCE, 2)
    assert queue.step(stops, -1) == QueueStop(0, Side.REFERENCE, 1)
    assert queue.step(stops, -1) is None


def test_the_first_step_begins_in_the_region_that_is_shown():
    stops = stops_of([(0, 0, 1), (1, 0, 5), (1, 1, 6), (3, 0, 9)])
    assert FailureQueue().step(stops, 1, start=1) == QueueStop(1, Side.REFERENCE, 5)
    assert FailureQueue().step(stops, -1, start=1) == QueueStop(1, Side.PREDICTION, 6)
    assert FailureQueue().step(stops, 1, start=2) == QueueStop(3, Side.REFERENCE, 9)
    assert FailureQueue().step(stops, -1, start=2) == QueueStop(1, Side.PREDICTION, 6)


def test_a_region_that_is_not_known_yet_is_a_stop_and_left_once_it_is_known():
    first = Stops.of_region(0, np.array([0, 1]), np.array([4, 4]))
    queue = FailureQueue()
    before = Stops.joined([first, Stops.unknown(1), Stops.unknown(2)])
    assert walked(queue, before)[-2:] == [QueueStop(1), QueueStop(2)]
    queue.reset()
    for _ in range(3):
        queue.step(before, 1)
    known = Stops.of_region(1, np.array([0]), np.array([7]))
    after = Stops.joined([first, known, Stops.unknown(2)])
    assert queue.step(after, 1) == QueueStop(1, Side.REFERENCE, 7)
    assert queue.step(after, 1) == QueueStop(2)
    empty = Stops.joined([first, known])
    assert queue.step(empty, 1) is None


def test_the_user_may_go_elsewhere_but_only_within_the_queue():
    stops, queue = stops_of([(0, 0, 1), (0, 0, 2), (0, 0, 3)]), FailureQueue()
    queue.step(stops, 1)
    assert not queue.go_to(QueueStop(0, Side.PREDICTION, 2), stops)
    assert queue.step(stops, 1) == QueueStop(0, Side.REFERENCE, 2)
    assert queue.go_to(QueueStop(0, Side.REFERENCE, 1), stops)
    assert queue.step(stops, 1) == QueueStop(0, Side.REFERENCE, 2)


@UNTIMED
@given(orders, st.sampled_from((1, -1)), st.data())
def test_around_the_end_the_next_wanted_one_follows(order, step, data):
    stops, queue = stops_of(order), FailureQueue()
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order))))
    if order:
        here = data.draw(st.integers(0, len(order) - 1))
        queue.go_to(stop_of(order[here]), stops)
        others = [order[(here + step * k) % len(order)] for k in range(1, len(order))]
    else:
        others = []
    found = queue.step(stops, step, wanted=wanted.astype(bool), wraps=True)
    expected = [at for at in others if wanted[order.index(at)]]
    assert found == (stop_of(expected[0]) if expected else None)
