"""At the end of the failures no verdict replaces another, and the window says so."""

from itertools import pairwise

import pytest

from napari_panoptic.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.state.preferences import Queue

pytestmark = pytest.mark.long


@pytest.fixture
def queue(review):
    """Return what sets the order, which the next test does not take over."""
    state = review.desk.link.state
    yield lambda order: setattr(state, "queue", order)
    state.queue = Queue.REGION


def judge_all(review):
    """Give the verdict "annotation right" on every failure; return the last object."""
    review.settle()  # the first failure is selected
    last = None
    for _ in range(review.left_in_cohort()):
        assert review.end_text() == ""
        last = review.session.selection
        review.give(1)
        review.settle()
    assert review.left_to_judge() == 0
    assert review.left_in_cohort() == 0
    return last


def test_nothing_is_stored_when_nothing_is_left_to_judge(review):
    last = judge_all(review)
    assert review.end_text() == "All failures reviewed"
    assert review.end_text() in review.said_above()
    stored = review.stored()
    for number in (2, 3, 4, 2, 3, 4, 2):
        review.give(number)
    assert review.stored() == stored
    assert review.session.selection == last
    assert any("not stored" in text for text in review.texts())
    assert "not stored" in review.said_above()
    assert review.button("annotation right").isChecked()
    assert review.end_text() == "All failures reviewed"


def test_the_buttons_wait_for_another_object(review):
    last = judge_all(review)
    buttons = [review.button(words) for words in ("annotation", "prediction", "both", "cannot")]
    assert not any(button.isVisible() or button.isEnabled() for button in buttons)
    other = Side.PREDICTION if last.side is Side.REFERENCE else Side.REFERENCE
    review.session.select_row(other, 0)
    assert all(button.isVisible() and button.isEnabled() for button in buttons)
    assert review.end_text() == ""


@pytest.mark.parametrize("order", list(Queue))
def test_every_failure_of_the_cohort_comes_once(review, queue, order):
    queue(order)
    judge_all(review)
    stored = review.stored()
    names = {(record.region, record.side, record.object_id) for record in stored}
    assert len(names) == len(stored)
    assert {record.region for record in stored} == {at.name for at in review.cohort.regions}
    regions = [record.region for record in stored]
    changes = sum(one != other for one, other in pairwise(regions))
    assert (changes == 1) is (order is Queue.REGION)


def test_the_review_goes_on_in_the_next_region_by_itself(review, wait_until):
    review.settle()  # the first failure is selected
    first = review.session.snapshot.region.name
    count = review.left_to_judge()
    for _ in range(count):
        assert review.session.snapshot.region.name == first
        last = review.session.selection
        review.give(1)
    stored = review.stored()
    assert len(stored) == count
    review.give(2)  # while the next region is on its way
    assert review.stored() == stored
    wait_until(lambda: review.session.snapshot.region.name != first)
    wait_until(lambda: review.session.selection not in (None, last))
    assert review.end_text() == ""
    review.give(2)
    (*_, newest) = review.stored()
    assert len(review.stored()) == count + 1
    assert newest.region == review.session.snapshot.region.name


def test_failures_that_were_left_out_come_at_the_end(review):
    review.settle()
    review.step()
    skipped = review.session.snapshot.region.name, review.session.selection
    review.step()
    for _ in range(review.left_in_cohort() - 1):
        review.give(1)
        review.settle()
    assert review.end_text() == ""
    assert (review.session.snapshot.region.name, review.session.selection) == skipped
    review.button("next open").click()
    assert review.end_text() == ""
    assert "the only failure left" in review.said_above()
    review.give(1)
    assert review.end_text() == "All failures reviewed"
    assert review.left_in_cohort() == 0


def test_what_was_reviewed_before_is_not_gone_to(review):
    review.settle()  # the first failure is selected
    for _ in range(review.left_to_judge()):
        review.give(1)
    review.settle()
    second = review.session.snapshot.region.name
    review.give(1)
    review.give(3)
    stored, left = review.stored(), review.left_in_cohort()
    review.start_again()  # the verdicts of the other region are only in the file
    review.enter_name("Ada")
    review.list_all()
    assert review.session.snapshot.region.name == second
    review.button("next open").click()
    for _ in range(left):
        assert review.session.snapshot.region.name == second
        review.give(2)
    assert review.end_text() == "All failures reviewed"
    assert review.stored()[: len(stored)] == stored
    assert len(review.stored()) == len(stored) + left


def test_a_button_obeys_the_same_rule(review):
    judge_all(review)
    stored = review.stored()
    review.button("both wrong").click()
    assert review.stored() == stored
    assert review.button("annotation right").isChecked()
    assert not review.button("both wrong").isChecked()


def test_a_verdict_is_changed_after_a_click_on_its_object(review):
    last = judge_all(review)
    count = len(review.stored())
    review.click_object(last.side, last.row)
    if review.session.selection != last:  # its partner lies on top
        review.click_object(last.side, last.row)
    review.give(2)
    verdicts = [record.verdict for record in review.stored()]
    assert verdicts.count(Verdict.PREDICTION_RIGHT) == 1
    assert len(verdicts) == count
    review.give(3)
    assert [record.verdict for record in review.stored()] == verdicts


def test_a_row_of_the_table_that_is_current_is_clicked_again(review):
    last = judge_all(review)
    view = review.desk.panels.objects.view
    view.clicked.emit(view.currentIndex())
    assert review.session.selection == last
    review.give(4)
    assert [record.verdict for record in review.stored()].count(Verdict.CANNOT_TELL) == 1


def test_undo_lets_the_object_be_judged_again(review):
    judge_all(review)
    count = len(review.stored())
    review.undo()
    assert len(review.stored()) == count - 1
    review.give(2)
    assert [record.verdict for record in review.stored()].count(Verdict.PREDICTION_RIGHT) == 1


def test_other_settings_do_not_select_an_object_anew(review, wait_until):
    review.panel.goes_on.click()
    review.session.select_row(Side.REFERENCE, 0)
    review.give(1)
    stored, chosen = review.stored(), review.session.selection
    review.desk.panels.settings.threshold.setValue(0.6)
    wait_until(lambda: review.desk.is_settled)
    assert review.session.selection == chosen
    review.give(2)
    assert review.stored() == stored


def test_the_end_is_said_once(review):
    judge_all(review)
    for _ in range(3):
        review.button("next open").click()
    said = " ".join(review.texts())
    assert said.count("All failures reviewed") == 1
