"""Verdicts laid over objects, without a window."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.review.judged import Judged, Subjects, judged_as_one
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.review_cases import subjects_of
from tests.support.small_pairs import empty_pair, four_fates

PLACE = {"region": "R", "team": "T"}


def record(subjects, side, row, verdict):
    given = vars(subjects.of(side, row))
    return ReviewRecord(
        **given, reviewer="Ada", verdict=verdict, given_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


def judged(**verdicts):
    evaluation = four_fates()
    subjects = Subjects(evaluation, **PLACE)
    records = {}
    for name, verdict in verdicts.items():
        side = Side.REFERENCE if name[0] == "r" else Side.PREDICTION
        row = int(name[1:])
        records[side, row] = record(subjects, side, row, verdict)
    return Judged(evaluation, records)


@pytest.mark.parametrize("side", list(Side))
def test_subjects_are_those_of_the_review_file(side):
    evaluation = four_fates()
    subjects = Subjects(evaluation, **PLACE)
    described = [subjects.of(side, row) for row in range(len(evaluation.outcomes.side(side)))]
    assert described == subjects_of(evaluation, side, **PLACE)


def test_an_object_that_lost_all_pixels_does_not_shift_the_others():
    evaluation = four_fates()
    live = EditedPair(evaluation.pair)
    y, x = np.nonzero(evaluation.pair.prediction.index == 1)
    live.set_pixels(Side.PREDICTION, y, x, 0)
    after = live.evaluate(EvaluationSettings())
    subjects = Subjects(after, **PLACE)
    ids = after.outcomes.prediction.ids.tolist()
    assert ids == [22, 23]
    before = {s.object_id: s for s in subjects_of(evaluation, Side.PREDICTION, **PLACE)}
    assert [subjects.of(Side.PREDICTION, row) for row in range(2)] == [before[i] for i in ids]


@pytest.mark.parametrize("given_on", ["r1", "r2", "p2", "p1"])
def test_failures_count_a_misclassified_pair_once(given_on):
    assert judged().counts() == (0, 3)
    assert judged(**{given_on: Verdict.BOTH_WRONG}).counts() == (1, 3)
    assert judged(r1=Verdict.BOTH_WRONG, p1=Verdict.BOTH_WRONG).counts() == (1, 3)


def test_a_misclassified_prediction_is_judged_with_its_reference():
    evaluation = four_fates()
    assert judged_as_one(evaluation, Side.PREDICTION, 1) == (Side.REFERENCE, 1)
    assert judged_as_one(evaluation, Side.PREDICTION, 0) == (Side.PREDICTION, 0)


@pytest.mark.parametrize("given_on", ["r1", "p1"])
def test_either_object_of_a_pair_gives_both_the_verdict(given_on):
    found = judged(**{given_on: Verdict.BOTH_WRONG})
    assert found.codes[Side.REFERENCE].tolist() == [0, 3, 0, 0]
    assert found.codes[Side.PREDICTION].tolist() == [0, 3, 0]
    for side in Side:
        assert found.record(side, 1).verdict is Verdict.BOTH_WRONG
    assert found.counts() == (1, 3)


def test_verdicts_on_what_is_no_failure_do_not_count_as_progress():
    assert judged(r0=Verdict.ANNOTATION_RIGHT).counts() == (0, 3)


def test_only_prediction_right_changes_the_figures():
    nothing = judged(r2=Verdict.ANNOTATION_RIGHT, p2=Verdict.BOTH_WRONG)
    before = nothing.evaluation.counts
    np.testing.assert_array_equal(nothing.corrected_counts().confusion, before.confusion)
    after = judged(r2=Verdict.PREDICTION_RIGHT, p2=Verdict.PREDICTION_RIGHT).corrected_counts()
    assert after.fn.sum() == before.fn.sum() - 1
    assert after.fp.sum() == before.fp.sum() - 1


def test_nothing_to_judge():
    found = Judged(empty_pair(), {})
    assert found.counts() == (0, 0)
    assert Subjects(found.evaluation, **PLACE).near(Side.REFERENCE, []) == []


def test_verdicts_are_found_again_in_the_file(tmp_path):
    evaluation = four_fates()
    subjects = Subjects(evaluation, **PLACE)
    with ReviewStore(tmp_path / "r.sqlite", reviewer="Ada") as store:
        store.give(subjects.of(Side.REFERENCE, 2), Verdict.CANNOT_TELL)
        store.give(
            replace(subjects.of(Side.REFERENCE, 0), team="another"), Verdict.PREDICTION_RIGHT
        )
        found = subjects.find(store.current(region="R"))
    assert {place: r.verdict for place, r in found.items()} == {
        (Side.REFERENCE, 2): Verdict.CANNOT_TELL
    }


def test_near_misses_none():
    evaluation = four_fates()
    subjects = Subjects(evaluation, **PLACE)
    for side in Side:
        for row in range(len(evaluation.outcomes.side(side))):
            given = record(subjects, side, row, Verdict.CANNOT_TELL)
            assert row in subjects.near(side, [given])


def equal(one, other):
    return all(np.array_equal(one.codes[side], other.codes[side]) for side in Side)


@pytest.mark.parametrize("place", ["r0", "r1", "r2", "p1", "p2"])
@pytest.mark.parametrize("before", [{}, {"r1": Verdict.CANNOT_TELL, "r2": Verdict.BOTH_WRONG}])
def test_one_verdict_more_is_as_if_all_were_laid_over_anew(place, before):
    start = judged(**before)
    wanted = judged(**before | {place: Verdict.PREDICTION_RIGHT})
    side, row = (Side.REFERENCE if place[0] == "r" else Side.PREDICTION), int(place[1:])
    kept = {side: codes.copy() for side, codes in start.codes.items()}
    after = start.with_verdict((side, row), wanted.records[side, row])
    assert equal(after, wanted)
    assert after.records == wanted.records
    assert after.counts() == wanted.counts()
    assert all(np.array_equal(kept[side], start.codes[side]) for side in Side)


def test_verdicts_follow_their_objects_to_other_outcomes():
    evaluation = four_fates()
    strict = evaluate(evaluation.pair, EvaluationSettings(iou_threshold=0.9))
    before = judged(r1=Verdict.BOTH_WRONG, p2=Verdict.CANNOT_TELL)
    assert before.codes[Side.PREDICTION].tolist() == [0, 3, 4]
    after = before.under(strict)
    assert equal(after, Judged(strict, before.records))
    assert after.evaluation is strict


def test_objects_are_told_from_others():
    evaluation = four_fates()
    subjects = Subjects(evaluation, **PLACE)
    strict = evaluate(evaluation.pair, EvaluationSettings(iou_threshold=0.9))
    assert subjects.are_those_of(Subjects(strict, **PLACE))
    assert not subjects.are_those_of(Subjects(evaluation, region="R", team="another"))
    live = EditedPair(evaluation.pair)
    y, x = np.nonzero(evaluation.pair.prediction.index == 1)
    live.set_pixels(Side.PREDICTION, y[:1], x[:1], 0)
    edited = live.evaluate(EvaluationSettings())
    assert not Subjects(edited, **PLACE).are_those_of(subjects)
