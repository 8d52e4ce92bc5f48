"""Estimates: exact for a complete review, unbiased, and equal to the formulas of textbooks."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.explain.what_if import without_annotation_errors
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.review.plan.design import draw, stratified
from napari_panoptic.review.plan.estimates import ItemVerdict, estimate, expected, items_needed
from napari_panoptic.review.plan.tables import plan_frame
from napari_panoptic.review.plan.units import SUSPECT, ItemKind
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support import survey_oracle

DECIDED = (Verdict.ANNOTATION_RIGHT, Verdict.PREDICTION_RIGHT, Verdict.BOTH_WRONG)


def answers(plan, seed=0, shares=(0.7, 0.2, 0.1), lacked=0.3):
    """Return a random answer to each item."""
    rng = np.random.default_rng(seed)
    verdicts = rng.choice(3, len(plan), p=shares)
    counts = rng.poisson(lacked, len(plan))
    tiles = plan.units.is_kind(ItemKind.BACKGROUND)
    return [
        ItemVerdict(k, DECIDED[0], int(counts[k - 1]))
        if tiles[k - 1]
        else ItemVerdict(k, DECIDED[verdicts[k - 1]])
        for k in range(1, len(plan) + 1)
    ]


def marked(units, share, seed=0):
    """Mark a random share of items as suspect, whatever is true of them."""
    is_suspect = np.random.default_rng(seed).random(len(units)) < share
    pairs = zip(units.detail, is_suspect.tolist(), strict=True)
    details = [f"{SUSPECT} {own}".strip() if is_own else own for own, is_own in pairs]
    return replace(units, detail=np.array(details, object))


def by_figure(estimates):
    return {(str(row.quantity), row.class_name): row for row in estimates.rows}


def evaluations(cohort_folder, team):
    cohort = open_cohort(cohort_folder)
    quick = EvaluationSettings(distances=False)
    for region in cohort.regions:
        found = HeldRegion(cohort, region, quick).evaluate(team, quick).evaluation
        if found is not None:
            yield region, found


def close(found, wanted):
    return (math.isnan(found) and math.isnan(wanted)) or math.isclose(found, wanted, rel_tol=1e-9)


@pytest.mark.parametrize("team", ["alpha", "beta"])
def test_a_complete_review_that_finds_no_error_gives_the_figures_of_evaluate(
    team, small_folder, small_units
):
    units = small_units[small_units.team == team]
    plan = draw(units, len(units), 1)
    found = by_figure(estimate(plan, units, answers(plan, shares=(1, 0, 0), lacked=0)))
    counts = Counts.zero(units.class_names)
    for _, evaluation in evaluations(small_folder, team):
        counts += evaluation.counts
    pooled = unit_metrics(counts)
    wanted = {
        "precision": pooled.detection_precision,
        "recall": pooled.detection_recall,
        "f1": pooled.detection_f1,
        "pq": pooled.pq,
        "annotation-error-rate": 0.0,
    }
    for name, value in wanted.items():
        row = found[name, ALL]
        assert close(row.estimate, value)
        assert row.low == row.estimate == row.high
    for name, value in zip(units.class_names, counts.figures_by_class["pq"], strict=True):
        assert close(found["pq", name].estimate, float(value))


@pytest.mark.parametrize("team", ["alpha", "beta"])
def test_a_complete_review_gives_the_figures_without_the_annotation_errors(
    team, small_folder, small_units
):
    """The same rules as `without_annotation_errors`, for the verdict that it knows."""
    units = small_units[small_units.team == team]
    plan = draw(units, len(units), 1)
    given = answers(plan, shares=(0.6, 0.4, 0), lacked=0)
    wrong = {
        (
            plan.units.region[a.item - 1],
            int(plan.units.side[a.item - 1]),
            int(plan.units.id[a.item - 1]),
        )
        for a in given
        if a.verdict is Verdict.PREDICTION_RIGHT
    }
    counts = Counts.zero(units.class_names)
    for region, evaluation in evaluations(small_folder, team):
        rows = {
            side: [
                row
                for row, id_ in enumerate(evaluation.outcomes.side(side).ids.tolist())
                if (region.name, number, id_) in wrong
            ]
            for number, side in enumerate(Side)
        }
        counts += without_annotation_errors(
            evaluation, reference_rows=rows[Side.REFERENCE], prediction_rows=rows[Side.PREDICTION]
        )
    found, pooled = by_figure(estimate(plan, units, given)), unit_metrics(counts)
    assert close(found["precision", ALL].estimate, pooled.detection_precision)
    assert close(found["recall", ALL].estimate, pooled.detection_recall)
    assert close(found["f1", ALL].estimate, pooled.detection_f1)
    assert close(found["pq", ALL].estimate, pooled.pq)


def test_verdicts_on_a_pair_worked_out_by_hand():
    """One object of each fate, all of both sides wrong, and two nuclei that neither has."""
    from napari_panoptic.review.plan.units import units_of
    from tests.support.small_pairs import four_fates

    units = units_of(four_fates(), "T", "P", "R")
    plan = draw(units, len(units), 1)

    def review(verdict, count):
        tiles = plan.units.is_kind(ItemKind.BACKGROUND)
        given = [
            ItemVerdict(k, DECIDED[0], count) if tiles[k - 1] else ItemVerdict(k, verdict)
            for k in range(1, len(plan) + 1)
        ]
        rows = by_figure(estimate(plan, units, given))
        return {name: rows[name, ALL].estimate for name in map(str, Quantity)}

    # 11 TP, 12 as another class, 13 FN; 23 FP. Ignored objects take no part.
    assert review(Verdict.ANNOTATION_RIGHT, 0) == {
        "annotation-error-rate": 0,
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
        "pq": pytest.approx((0.9 / 1.5 + 0) / 2),
    }
    # 11 and 12 are TP with their IoU, 13 is none, 23 is a TP with IoU 1; two are missed.
    assert review(Verdict.PREDICTION_RIGHT, 2) == {
        "annotation-error-rate": 1,
        "precision": 1,
        "recall": pytest.approx(3 / 5),
        "f1": pytest.approx(6 / 8),
        # Round: one nucleus and a third of the two that are lacking; Long: two, and two thirds.
        "pq": pytest.approx((0.9 / (1 + 1 / 3) + 1.9 / (2 + 2 / 3)) / 2),
    }
    nothing = review(Verdict.BOTH_WRONG, 0)
    assert (nothing["annotation-error-rate"], nothing["precision"], nothing["f1"]) == (1, 0, 0)
    assert math.isnan(nothing["recall"])


@pytest.mark.parametrize(("suspect", "counts"), [(0.0, ()), (0.3, ()), (0.0, (0, 0, 5))])
def test_estimates_equal_those_of_an_independent_implementation(
    small_folder, small_units, suspect, counts
):
    units = marked(small_units[small_units.team == "alpha"], suspect)
    plan = draw(units, 30, 3)
    assert any("/suspect" in name for name in plan.stratum) == bool(suspect)
    given = answers(plan, seed=2)
    tiles = [k for k, answer in enumerate(given) if answer.count is not None]
    for k, count in zip(tiles, counts, strict=False):
        given[k] = replace(given[k], count=count)
    assert len(tiles) >= len(counts)
    assert (plan.probability < 1).any()
    text = plan_frame(plan).to_csv(index=False)
    rows = list(csv.DictReader(io.StringIO(text)))
    objects = {}
    for region, evaluation in evaluations(small_folder, "alpha"):
        table = evaluation.objects.to_csv(index=False)
        for row in csv.DictReader(io.StringIO(table)):
            objects[region.name, row["side"], int(row["id"])] = row
    verdicts = {a.item: (str(a.verdict), a.count or 0) for a in given}
    everything = draw(units, len(units), 0)
    complete = csv.DictReader(io.StringIO(plan_frame(everything).to_csv(index=False)))
    strata = stratified(everything.units, plan.level)
    population = [
        {**row, "stratum": strata.names[number]}
        for row, number in zip(complete, strata.of_unit.tolist(), strict=True)
        if row["side"] != "background"
    ]
    wanted = survey_oracle.estimates(rows, verdicts, objects, units.class_names, population)
    found = by_figure(estimate(plan, units, given))
    assert set(found) == set(wanted)
    assert sum(not math.isnan(value) for value, _ in wanted.values()) > 15
    for which, (value, error) in wanted.items():
        assert found[which].estimate == pytest.approx(value, rel=1e-9, nan_ok=True), which
        assert found[which].standard_error == pytest.approx(error, rel=1e-4, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("suspect", [0.0, 0.1])
@pytest.mark.parametrize("n_plans", [25, pytest.param(60, marks=pytest.mark.long)])
def test_estimates_are_unbiased(many_units, suspect, n_plans):
    """The mean over many plans is the truth, within 5 of its standard errors."""
    many_units = marked(many_units, suspect)
    truth_plan = draw(many_units, len(many_units), 0)
    given = dict(zip(truth_plan.units.keys, answers(truth_plan, seed=1), strict=True))
    truth = by_figure(estimate(truth_plan, many_units, answers(truth_plan, seed=1)))
    found = []
    for seed in range(n_plans):
        plan = draw(many_units, 80, seed)
        own = [replace(given[key], item=k) for k, key in enumerate(plan.units.keys, start=1)]
        rows = by_figure(estimate(plan, many_units, own))
        found.append([rows[name, ALL].estimate for name in ("annotation-error-rate", "precision")])
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(len(found))
    wanted = [truth[name, ALL].estimate for name in ("annotation-error-rate", "precision")]
    assert (np.abs(mean - wanted) < 5 * spread).all()


def test_a_review_that_stops_early_uses_the_probabilities_of_what_was_reviewed(many_units):
    plan = draw(many_units, 300, 2)
    given = answers(plan)
    early = estimate(plan, many_units, given[:220])
    assert "80 of 300 items have no verdict: the first ones" in early.findings[0].message
    # As if a plan of the first 220 items had been drawn.
    strata = {}
    for name in plan.stratum[:220]:
        strata[name] = strata.get(name, 0) + 1
    size = {
        name: round(plan.stratum.count(name) / p)
        for name, p in zip(plan.stratum, plan.probability.tolist(), strict=True)
    }
    assert set(strata) == set(plan.stratum)
    weight = [size[name] / strata[name] for name in plan.stratum[:220]]
    wrong = over = 0.0
    for own, answer in zip(weight, given[:220], strict=True):
        if plan.units.reference_class[answer.item - 1]:
            wrong += own * (answer.verdict is not Verdict.ANNOTATION_RIGHT)
            over += own
    found = by_figure(early)["annotation-error-rate", ALL]
    assert found.estimate == pytest.approx(wrong / over)
    assert (
        found.half_width
        > by_figure(estimate(plan, many_units, given))["annotation-error-rate", ALL].half_width
    )


def test_strata_without_a_verdict_take_those_of_their_outcome(many_units):
    plan = draw(many_units, 150, 2)
    absent = next(name for name in plan.stratum if "/FN/missed/" in name)
    given = [a for a in answers(plan, shares=(0, 1, 0)) if plan.stratum[a.item - 1] != absent]
    found = by_figure(estimate(plan, many_units, given))
    # All verdicts are alike, so that it does not matter which stand for the others.
    assert found["annotation-error-rate", ALL].estimate == pytest.approx(1)
    assert found["precision", ALL].estimate == pytest.approx(1)


def test_an_outcome_without_any_verdict_leaves_figures_undefined(many_units):
    plan = draw(many_units, 150, 2)
    given = [a for a in answers(plan) if not plan.units.is_kind(ItemKind.FP)[a.item - 1]]
    estimates = estimate(plan, many_units, given)
    found = by_figure(estimates)
    assert not math.isnan(found["annotation-error-rate", ALL].estimate)
    assert math.isnan(found["precision", ALL].estimate)
    assert math.isnan(found["pq", "Round"].low)
    assert any("no FP of T was reviewed" in finding.message for finding in estimates.findings)


def test_items_that_cannot_be_told_are_left_out_and_bounded(many_units):
    plan = draw(many_units, 200, 2)
    given = answers(plan)
    unclear = [k for k in range(1, 21) if not plan.units.is_kind(ItemKind.BACKGROUND)[k - 1]]
    changed = [replace(a, verdict=Verdict.CANNOT_TELL) if a.item in unclear else a for a in given]
    found = estimate(plan, many_units, changed)
    left_out = estimate(plan, many_units, [a for a in given if a.item not in unclear])
    assert found.unclear == len(unclear)
    for own, other in zip(found.rows, left_out.rows, strict=True):
        assert own.estimate == pytest.approx(other.estimate, nan_ok=True)
    worst = [
        replace(a, verdict=Verdict.PREDICTION_RIGHT) if a.item in unclear else a for a in given
    ]
    best = [replace(a, verdict=Verdict.ANNOTATION_RIGHT) if a.item in unclear else a for a in given]
    bounds = by_figure(found)["annotation-error-rate", ALL].if_unclear
    wanted = [
        by_figure(estimate(plan, many_units, each))["annotation-error-rate", ALL].estimate
        for each in (best, worst)
    ]
    assert bounds == pytest.approx(tuple(wanted))


def test_verdicts_that_decide_nothing_are_an_error(many_units):
    plan = draw(many_units, 100, 1)
    with pytest.raises(PanopticError, match="none of which decides"):
        estimate(plan, many_units, [ItemVerdict(1, Verdict.CANNOT_TELL)])


def test_teams_are_estimated_on_their_own(small_units):
    plan = draw(small_units, 60, 1)
    given = answers(plan)
    both = {(r.team, r.quantity, r.class_name): r for r in estimate(plan, small_units, given).rows}
    assert {team for team, *_ in both} == {"alpha", "beta"}
    # Verdicts on one team do not matter to the other.
    beta = [a for a in given if plan.units.team[a.item - 1] == "beta"]
    other = [
        replace(a, verdict=Verdict.PREDICTION_RIGHT)
        for a in given
        if plan.units.team[a.item - 1] == "alpha"
    ]
    changed = estimate(plan, small_units, [*beta, *other]).rows
    for row in changed:
        before = both[row.team, row.quantity, row.class_name]
        if row.team == "beta":
            assert row.estimate == pytest.approx(before.estimate, nan_ok=True)
    assert any(
        row.estimate != both[row.team, row.quantity, row.class_name].estimate
        for row in changed
        if row.team == "alpha"
    )


@pytest.mark.parametrize("n_items", [12, 40, 200])
def test_the_interval_for_other_patients_is_not_narrower(many_units, n_items):
    for seed in range(3, 9):
        plan = draw(many_units, n_items, seed)
        for row in estimate(plan, many_units, answers(plan, seed)).rows:
            if not math.isnan(row.estimate):
                assert row.patients_low <= row.low + 1e-9
                assert row.patients_high >= row.high - 1e-9


def test_expected_widths_are_about_those_of_a_review_as_assumed(many_units):
    """Within a third of the mean width over 30 reviews with the assumed shares of verdicts."""
    plan = draw(many_units, 200, 1)
    before = {r.quantity: r.half_width for r in expected(plan, many_units) if r.class_name == ALL}
    widths = {quantity: [] for quantity in Quantity}
    for seed in range(30):
        own = draw(many_units, 200, seed)
        rng = np.random.default_rng(seed)
        given = []
        for k in range(1, len(own) + 1):
            if own.units.is_kind(ItemKind.BACKGROUND)[k - 1]:
                given.append(ItemVerdict(k, DECIDED[0], int(rng.poisson(0.1))))
                continue
            wrong = 0.05 if own.units.is_kind(ItemKind.TP)[k - 1] else 0.3
            verdict = rng.choice(3, p=[1 - wrong, wrong / 2, wrong / 2])
            given.append(ItemVerdict(k, DECIDED[verdict]))
        for row in estimate(own, many_units, given).rows:
            if row.class_name == ALL:
                widths[row.quantity].append(row.half_width)
    for quantity, found in widths.items():
        assert before[quantity] == pytest.approx(np.mean(found), rel=1 / 3)


@pytest.mark.parametrize("quantity", [Quantity.ERROR_RATE, Quantity.F1])
def test_the_items_needed_give_the_width_and_fewer_do_not(many_units, quantity):
    wanted = 0.06

    def width(n):
        plan = draw(many_units, n, 0)
        return next(
            row.half_width
            for row in expected(plan, many_units)
            if (row.quantity, row.class_name) == (quantity, ALL)
        )

    found = items_needed(many_units, quantity, wanted)
    assert width(found) <= wanted < width(found - 1)
    assert items_needed(many_units, quantity, 1e-9) == len(many_units)
    with pytest.raises(SettingsError, match="nothing to review"):
        items_needed(many_units[:0], quantity, wanted)


def test_widths_follow_the_verdicts(many_units):
    plan = draw(many_units, 200, 1)
    given = answers(plan, shares=(0.5, 0.3, 0.2))
    final = by_figure(estimate(plan, many_units, given))["annotation-error-rate", ALL].half_width

    def width(n):
        return next(
            row.half_width
            for row in expected(plan, many_units, given[:n])
            if (row.quantity, row.class_name) == (Quantity.ERROR_RATE, ALL)
        )

    assert abs(width(150) - final) < abs(width(0) - final)


def test_a_pair_is_one_item_however_it_is_evaluated():
    image = np.zeros((20, 20), int)
    image[2:9, 2:9] = 1
    found = evaluate_pair(
        image, image, reference_classes={1: "A"}, prediction_classes={1: "A"}, class_names=("A",)
    )
    from napari_panoptic.review.plan.units import units_of

    assert units_of(found, "T", "P", "R").is_kind(ItemKind.TP).sum() == 1
