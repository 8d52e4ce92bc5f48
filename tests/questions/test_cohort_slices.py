"""Slices over a cohort: the same as in steps, and the failures that each of them names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.explain.failures import Block, FailureName
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.questions.engines.cohort_objects import common_slices
from napari_panoptic.questions.slices import Slices, reason_sentence, slice_figures, slice_sentence
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

TEAM, SETTINGS = "merger", EvaluationSettings()


@pytest.fixture(scope="module")
def one_team_cohort(nuclei_sample):
    cohort = open_cohort(nuclei_sample)
    teams = tuple(team for team in cohort.teams if team.name == TEAM)
    return replace(cohort, regions=cohort.regions[:5], teams=teams)


@pytest.fixture(scope="module")
def objects(one_team_cohort):
    return Slices(team=TEAM, settings=SETTINGS).gather(one_team_cohort)


@pytest.mark.parametrize("side", list(Side))
def test_failures_of_a_slice_are_failures_of_the_cohort(one_team_cohort, objects, side):
    question = Slices(team=TEAM, settings=SETTINGS, side=side, permutations=99)
    (found,) = question.answered(one_team_cohort, objects).tables
    expected = common_slices(objects, side, permutations=99)
    assert found.sentences() == [slice_sentence(own, side) for own in expected.slices]
    everything = set()
    for line in evaluate_cohort_summary(one_team_cohort, Reading(SETTINGS, teams=(TEAM,))):
        if line.failures is not None:
            block = Block(line.team, "", line.region, line.failures)
            everything |= names_of(block)
    assert expected.slices
    for row, own in enumerate(expected.slices):
        names = found.objects(row).names
        assert len(names) == own.failures
        assert names <= everything


@pytest.mark.parametrize(
    ("side", "cause"), [(Side.REFERENCE, None), (Side.REFERENCE, "merged"), (Side.PREDICTION, None)]
)
def test_a_reason_is_given_for_exactly_the_failures_of_certain_slices(
    one_team_cohort, objects, side, cause
):
    question = Slices(team=TEAM, settings=SETTINGS, side=side, cause=cause, permutations=99)
    answer = question.answered(one_team_cohort, objects)
    found = common_slices(objects, side, cause, permutations=99)
    certain = [own for own in found.slices if own.confirmed is not False]
    assert certain
    frame = objects.of_side(side)
    statuses = ("FN", "misclassified") if side is Side.REFERENCE else ("FP",)
    n_reasons = 0
    for row, (region, id_, status, own_cause) in enumerate(
        zip(frame["region"], frame["id"], frame["status"], frame["cause"], strict=True)
    ):
        name = FailureName(TEAM, region, side, id_)
        reason = answer.reason(name)
        around = [own for own in certain if row in own.rows]
        is_failure = own_cause == cause if cause else status in statuses
        if not (is_failure and around):
            assert reason is None
            continue
        n_reasons += 1
        best = max(around, key=lambda own: own.rate - own.rate_elsewhere)
        assert reason.sentence == reason_sentence(best, side, cause)
        assert reason.tooltip.count("Also: ") == len(around) - 1
        for own in around:
            assert slice_figures(own) in reason.tooltip
        assert f"p = {best.p:.2g}" in reason.tooltip
        assert "slices searched" in reason.tooltip
        assert answer.reason(replace(name, team="careful")) is None
        assert answer.reason(replace(name, side=side.other)) is None
    assert n_reasons


def names_of(block):
    columns = block.failures.columns
    sides = list(Side)
    return {
        FailureName(block.team, block.region, sides[side], int(id_))
        for side, id_ in zip(columns["side"], columns["id"], strict=True)
    }


def test_reading_and_searching_report_one_progress_and_can_be_cancelled(one_team_cohort):
    shares = []
    question = Slices(team=TEAM, settings=SETTINGS, permutations=99)

    def report(share, _doing):
        shares.append(share)

    def is_wanted():
        return not shares or shares[-1] < 0.3

    with pytest.raises(StoppedError):
        question.answer(one_team_cohort, Progress(is_wanted, report))
    assert shares == sorted(shares)
    assert 0.3 <= shares[-1] < 0.5


def test_another_search_needs_no_other_objects():
    """What is searched, and how, does not decide which objects there are."""
    first = Slices(team=TEAM, settings=SETTINGS)
    for other in (
        Slices(team=TEAM, settings=SETTINGS, side=Side.PREDICTION),
        Slices(team=TEAM, settings=SETTINGS, cause="merged", permutations=99, seed=3),
    ):
        assert other != first
        assert other.gathering == first.gathering
    assert Slices(team="careful", settings=SETTINGS).gathering != first.gathering
