"""Names with "&" and quotes in what the review says about a verdict."""

import pytest

from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.review.file import REVIEW_FILE
from napari_panoptic.review.store import ReviewStore

pytestmark = pytest.mark.long


def test_names_are_shown_as_they_are_written(review):
    review.settle()
    review.desk.panels.objects.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
    review.step()
    summaries = review.session.summaries.values()
    for _ in range(sum(int(line.counts.confusion[0, 1:].sum()) for line in summaries)):
        assert review.end_text() == ""
        review.give(1)
        review.settle()
        assert "on R&D's " in review.state()
    assert review.end_text() == "End of the queue"
    assert any("are hidden by the table's filters" in text for text in review.texts())


def test_what_another_window_took_back_is_told_by_the_verdict(review, wait_until):
    review.desk.panels.objects.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
    review.step()
    review.give(1)
    (record,) = review.stored()
    with ReviewStore(review.cohort.root / REVIEW_FILE, reviewer="Ada") as other:
        other.withdraw(record)
    wait_until(lambda: any("taken back" in text for text in review.texts()))
    assert review.state() == ""
    assert any("on R&D's " in text for text in review.texts())
