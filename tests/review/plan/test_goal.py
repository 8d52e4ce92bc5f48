"""The plan for a goal, and what is kept with it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.plan.conclusions import difference, difference_sentence
from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.review.plan.design import draw
from napari_panoptic.review.plan.estimates import ItemVerdict, estimate, expected
from napari_panoptic.review.plan.goal import Goal, PlanSetup, offer, reached
from napari_panoptic.review.plan.items import item_at
from napari_panoptic.review.plan.tables import (
    ITEM_VERDICTS,
    plan_frame,
    read_verdicts,
    verdicts_frame,
)
from napari_panoptic.review.plan.units import NO_ID, TILE_PX, ItemKind, population
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Verdict

GOAL = Goal(Quantity.F1, ("T",), half_width=0.06, minutes=60, seconds_per_item=20)


def width_of(plan, units, quantity):
    """Return the expected half-width of each team's figure over all classes."""
    rows = expected(plan, units)
    return [r.half_width for r in rows if (r.quantity, r.class_name) == (quantity, ALL)]


class TestOffer:
    def test_it_is_the_smallest_plan_that_is_precise_enough(self, many_units):
        found = offer(many_units, GOAL, seed=3)
        n = len(found.plan)
        assert n == found.needed < GOAL.affordable == 180
        (width,) = width_of(draw(many_units, n, 3), many_units, Quantity.F1)
        (before,) = width_of(draw(many_units, n - 1, 3), many_units, Quantity.F1)
        assert width <= GOAL.half_width < before
        assert found.half_width == width

    def test_time_limits_it_but_not_below_what_any_plan_needs(self, many_units):
        short = offer(many_units, replace(GOAL, minutes=15), seed=3)
        assert len(short.plan) == 45 < short.needed
        assert short.half_width > GOAL.half_width
        hurried = offer(many_units, replace(GOAL, minutes=1), seed=3)
        assert len(hurried.plan) == hurried.least == 2 * len(ItemKind)

    def test_a_number_of_items_decides_over_precision_and_time(self, many_units):
        for wanted in (60, 250):
            found = offer(many_units, GOAL, seed=3, items=wanted)
            assert len(found.plan) == wanted
            assert found.half_width == width_of(found.plan, many_units, Quantity.F1)[0]
        assert len(offer(many_units, GOAL, seed=3, items=1).plan) == found.least

    def test_a_difference_has_the_width_of_both_figures_together(self, small_units):
        goal = Goal(Quantity.PRECISION, ("alpha", "beta"), 0.3, 60, 20)
        found = offer(small_units, goal, seed=1)
        widths = width_of(found.plan, small_units, Quantity.PRECISION)
        assert len(widths) == 2
        assert found.half_width == pytest.approx(math.sqrt(sum(w**2 for w in widths)))

    @pytest.mark.parametrize(
        ("field", "value"),
        [("half_width", 0.0), ("minutes", -1.0), ("seconds_per_item", math.nan), ("teams", ())],
    )
    def test_a_goal_that_makes_no_sense_is_refused(self, field, value):
        with pytest.raises(SettingsError, match="expected"):
            replace(GOAL, **{field: value})


def answers_to(plan):
    """Find every third annotation wrong, and a nucleus in every second tile."""
    return [
        ItemVerdict(k, Verdict.ANNOTATION_RIGHT, k % 2)
        if item_at(plan, k).kind is ItemKind.BACKGROUND
        else ItemVerdict(k, Verdict.PREDICTION_RIGHT if k % 3 == 0 else Verdict.ANNOTATION_RIGHT)
        for k in range(1, len(plan) + 1)
    ]


def test_what_was_reached_is_the_figure_or_the_difference(small_units):
    plan = draw(small_units, len(small_units), seed=1)
    found = estimate(plan, small_units, answers_to(plan))
    one = {
        r.team: r.estimate
        for r in found.rows
        if (r.quantity, r.class_name) == (Quantity.RECALL, ALL)
    }
    goal = Goal(Quantity.RECALL, ("beta",), 0.1, 60, 20)
    assert reached(goal, found).estimate == one["beta"]
    both = reached(replace(goal, teams=("beta", "alpha")), found)
    assert both.estimate == pytest.approx(one["beta"] - one["alpha"])
    assert both.half_width == pytest.approx(0.0, abs=1e-12)  # everything was reviewed
    told = difference_sentence(difference(found, Quantity.RECALL, "beta", "alpha"), Quantity.RECALL)
    better = "beta" if one["beta"] > one["alpha"] else "alpha"
    assert f"{both.estimate:+.3f}" in told
    assert told.endswith(f": {better} is better.")


def test_items_are_those_of_the_plans_table(small_units):
    plan = draw(small_units, 40, seed=2)
    for number, row in enumerate(plan_frame(plan).itertuples(), start=1):
        item = item_at(plan, number)
        assert (item.number, item.team, item.region) == (row.item, row.team, row.region)
        if item.tile_yx_px is None:
            assert (str(item.side), item.object_id) == (row.side, row.id)
        else:
            y, x = item.tile_yx_px
            assert y % TILE_PX == x % TILE_PX == 0
            assert y <= row.y_px < y + TILE_PX
            assert x <= row.x_px < x + TILE_PX
        assert (item.object_id is None) == (plan.units.id[number - 1] == NO_ID)
        assert str(item.kind) in item.words


def test_verdicts_are_read_as_they_were_written(small_units, tmp_path):
    plan = draw(small_units, 40, seed=2)
    answers = [*answers_to(plan)[:-1], ItemVerdict(len(plan), Verdict.CANNOT_TELL)]
    (tmp_path / "verdicts.csv").write_bytes(ITEM_VERDICTS.csv(verdicts_frame(answers)))
    assert read_verdicts(tmp_path / "verdicts.csv", plan) == (answers, ())


def test_the_setup_of_a_plan_is_kept_as_json():
    setup = PlanSetup(
        GOAL,
        EvaluationSettings(matching="centroid", ambiguous="keep"),
        Source.SUBMISSION,
        is_shared=True,
        is_blind=True,
    )
    assert PlanSetup.of(json.loads(json.dumps(setup.as_record()))) == setup
    assert PlanSetup.of({}) == PlanSetup()
    for broken in ({"goal": {"quantity": "f2"}}, {"evaluation": {"radius": "wide"}}):
        with pytest.raises(PanopticError, match=r"draw a new plan|radius"):
            PlanSetup.of(broken)


def test_counting_the_items_can_be_stopped(small_folder):
    cohort = open_cohort(small_folder)
    shares: list[float] = []
    progress = Progress(report=lambda share, _doing: shares.append(share))
    assert len(population(cohort, Reading(teams=("alpha",)), progress=progress).units)
    assert shares == pytest.approx(np.linspace(0, 1, len(cohort.regions) + 1)[1:])
    with pytest.raises(StoppedError):
        population(cohort, Reading(teams=("alpha",)), progress=Progress(lambda: False))
