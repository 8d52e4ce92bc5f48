"""Lists of objects one after the other: there, back, and around the end."""

from napari_panoptic.display.object_queue import ListedQueue, QueueGap

QUEUE = ListedQueue("abcd")


def test_it_begins_with_the_first_and_backwards_with_the_last():
    assert QUEUE.item(QUEUE.step()) == "a"
    assert QUEUE.item(QUEUE.step(-1)) == "d"
    assert QUEUE.step(is_wanted="xc".__contains__) == 2
    assert ListedQueue("").step() is None


def test_it_ends_unless_it_wraps():
    last, first = QueueGap.at(3), QueueGap.at(0)
    assert QUEUE.step(1, last) is None
    assert QUEUE.step(1, last, wraps=True) == 0
    assert QUEUE.step(-1, first) is None
    assert QUEUE.step(-1, first, wraps=True) == 3


def test_around_the_end_it_does_not_lead_to_the_same_object():
    assert QUEUE.step(1, QueueGap.at(1), "b".__contains__, wraps=True) is None
    after = QueueGap(2, 2)
    assert QUEUE.step(1, after, "b".__contains__, wraps=True) == 1
    assert QUEUE.step(-1, after) == 1
