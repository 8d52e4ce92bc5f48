"""Each start asks who reviews, and verdicts are stored under that name."""

import pytest

pytestmark = pytest.mark.long


def test_the_name_is_asked_for_at_each_start(review):
    review.step()
    review.give(1)
    before = review.stored()
    review.start_again()
    assert review.name.text() == ""
    assert any("Who reviews?" in text for text in review.texts())
    review.step()
    assert "name" in review.button("prediction right").toolTip()
    review.give(2)
    assert review.stored() == before
    assert review.panel.window().focusWidget() is review.name


def test_one_click_continues_as_the_previous_reviewer(review):
    review.start_again()
    review.button("Continue as Ada").click()
    assert review.name.text() == "Ada"
    assert review.button("Continue as") is None
    review.step()
    review.give(2)
    assert len(review.stored("Ada")) == 1


def test_another_person_reviews_under_another_name(review):
    review.step()
    review.give(1)
    review.start_again()
    review.enter_name("Grace")
    review.step()
    review.give(2)
    assert len(review.stored("Ada")) == len(review.stored("Grace")) == 1


def test_the_name_stays_for_other_cohorts_of_the_window(review):
    review.open()
    assert review.name.text() == "Ada"
