"""At the end of a region's failures, verdicts overwrote that of the last object."""

from qtpy.QtCore import Qt

from napari_panoptic.nuclei.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.state.preferences import Queue


def judge_all(review):
    """Give the verdict "annotation right" on every failure; return the last object."""
    review.press(Qt.Key.Key_N)
    last = None
    for _ in range(review.left_to_judge()):
        last = review.session.selection
        review.give(1)
    assert review.left_to_judge() == 0
    return last


def test_defect_01_nothing_is_stored_when_nothing_is_left_to_judge(review):
    last = judge_all(review)
    stored = review.stored()
    for number in (2, 3, 4, 2, 3, 4, 2):
        review.give(number)
    assert review.stored() == stored
    assert review.session.selection == last
    assert any("not stored" in text for text in review.texts())
    assert review.button("annotation right").isChecked()
    assert "failures of this region reviewed" in review.end_text()


def test_defect_01_the_buttons_wait_for_another_object(review):
    last = judge_all(review)
    buttons = [review.button(words) for words in ("annotation", "prediction", "both", "cannot")]
    assert not any(button.isVisible() or button.isEnabled() for button in buttons)
    other = Side.PREDICTION if last.side is Side.REFERENCE else Side.REFERENCE
    review.session.select_row(other, 0)
    assert all(button.isVisible() and button.isEnabled() for button in buttons)
    assert review.end_text() == ""


def test_defect_01_the_review_continues_in_the_next_region(review, wait_until):
    judge_all(review)
    first = review.session.snapshot.region.name
    count = len(review.stored())
    wait_until(lambda: review.desk.is_settled)
    review.session.select(None)
    review.button("next open").click()
    review.button("Continue in").click()
    wait_until(lambda: review.session.snapshot.region.name != first)
    wait_until(lambda: review.session.selection is not None)
    assert review.end_text() == ""
    review.give(2)
    (*_, newest) = review.stored()
    assert len(review.stored()) == count + 1
    assert newest.region == review.session.snapshot.region.name


def test_defect_01_a_queue_over_the_cohort_goes_on_by_itself(review, wait_until):
    review.desk.link.state.queue = Queue.COHORT
    try:
        wait_until(lambda: review.desk.is_settled)
        first = review.session.snapshot.region.name
        last = judge_all(review)
        stored = review.stored()
        review.give(2)  # while the next region is on its way
        assert review.stored() == stored
        wait_until(lambda: review.session.snapshot.region.name != first)
        wait_until(lambda: review.session.selection not in (None, last))
        assert review.end_text() == ""
        review.give(2)
        assert len(review.stored()) == len(stored) + 1
    finally:
        review.desk.link.state.queue = Queue.REGION


def test_defect_01_a_button_obeys_the_same_rule(review):
    judge_all(review)
    stored = review.stored()
    review.button("both wrong").click()
    assert review.stored() == stored
    assert review.button("annotation right").isChecked()
    assert not review.button("both wrong").isChecked()


def test_defect_01_a_verdict_is_changed_after_a_click_on_its_object(review):
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


def test_defect_01_a_row_of_the_table_that_is_current_is_clicked_again(review):
    last = judge_all(review)
    view = review.desk.panels.objects.view
    view.clicked.emit(view.currentIndex())
    assert review.session.selection == last
    review.give(4)
    assert [record.verdict for record in review.stored()].count(Verdict.CANNOT_TELL) == 1


def test_defect_01_undo_lets_the_object_be_judged_again(review):
    judge_all(review)
    count = len(review.stored())
    review.undo()
    assert len(review.stored()) == count - 1
    review.give(2)
    assert [record.verdict for record in review.stored()].count(Verdict.PREDICTION_RIGHT) == 1


def test_defect_01_other_settings_do_not_select_an_object_anew(review, wait_until):
    review.button("next after a verdict").click()
    review.session.select_row(Side.REFERENCE, 0)
    review.give(1)
    stored, chosen = review.stored(), review.session.selection
    review.desk.panels.settings.threshold.setValue(0.6)
    wait_until(lambda: review.desk.is_settled)
    assert review.session.selection == chosen
    review.give(2)
    assert review.stored() == stored


def test_defect_01_the_end_is_said_once(review):
    judge_all(review)
    for _ in range(3):
        review.button("next open").click()
    said = " ".join(review.texts())
    assert said.count("All failures of this region reviewed") == 1
