"""A plan in the review file: the next item, verdicts, two reviewers, extension."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.plan.design import draw, extend
from napari_panoptic.review.plan.estimates import ItemVerdict, estimate
from napari_panoptic.review.plan.object_verdicts import object_verdicts
from napari_panoptic.review.plan.units import ItemKind
from napari_panoptic.review.store import ReviewStore, read_review
from napari_panoptic.review.verdicts import Share
from napari_panoptic.values.vocabulary import Verdict
from tests.support.review_cases import subject


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.sqlite"


@pytest.fixture
def plan(small_units):
    return draw(small_units, 40, 3)


def objects(plan):
    return [
        k for k in range(1, len(plan) + 1) if not plan.units.is_kind(ItemKind.BACKGROUND)[k - 1]
    ]


def tiles(plan):
    return [k for k in range(1, len(plan) + 1) if plan.units.is_kind(ItemKind.BACKGROUND)[k - 1]]


def answer_all(review, plan, verdict=Verdict.ANNOTATION_RIGHT):
    while (item := review.plan.next_item()) is not None:
        review.plan.answer(item, verdict, count=1 if item in tiles(plan) else None)


def test_a_plan_is_read_as_it_was_saved(path, plan):
    with ReviewStore(path, reviewer="Ada") as review:
        assert review.plan.stored() is None
        assert review.plan.next_item() is review.plan.undo() is None
        assert review.plan.answers() == []
        assert review.plan.progress() == Share(0, 0)
        number = review.plan.save(plan, {"restoration": "border-removed"})
    with ReviewStore(path, reviewer="Bo") as review:
        stored = review.plan.stored()
    assert stored.number == number
    assert stored.settings == {"restoration": "border-removed"}
    found = stored.plan
    assert found.units.keys == plan.units.keys
    assert found.units.class_names == plan.units.class_names
    for name in (
        "patient",
        "y_px",
        "x_px",
        "kind",
        "detail",
        "iou",
        "reference_class",
        "prediction_class",
    ):
        assert getattr(found.units, name).tolist() == getattr(plan.units, name).tolist()
    assert (found.stratum, found.level, found.seed) == (plan.stratum, plan.level, plan.seed)
    assert found.probability.tolist() == plan.probability.tolist()


def test_a_file_of_the_same_layout_takes_a_plan_and_keeps_its_verdicts(path, plan):
    with ReviewStore(path, reviewer="Ada") as store:
        given = store.give(subject(1), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer="Ada") as review:
        assert review.notices == ()
        review.plan.save(plan)
        review.plan.answer(objects(plan)[0], Verdict.BOTH_WRONG)
    with ReviewStore(path, reviewer="Ada") as store:
        assert store.verdicts() == [given]
        assert store.undo() == []


def test_an_item_of_a_long_plan_is_judged_in_as_few_steps_as_one_of_a_short_plan(path, small_units):
    """Calls of functions are counted."""
    n_calls = []
    for n in (20, 80):
        with ReviewStore(path.with_name(f"{n}.sqlite"), reviewer="Ada") as review:
            review.plan.save(draw(small_units, n, 3))
            item, calls = review.plan.next_item(), []
            sys.setprofile(lambda _frame, event, _what, calls=calls: calls.append(event))
            try:
                review.plan.answer(item, Verdict.CANNOT_TELL)
                review.plan.next_item()
                review.plan.progress()
            finally:
                sys.setprofile(None)
        n_calls.append(len(calls))
    assert n_calls[1] < 1.2 * n_calls[0]


def test_the_next_item_is_the_first_without_a_verdict(path, plan):
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        seen = []
        while (item := review.plan.next_item()) is not None:
            seen.append(item)
            review.plan.answer(item, Verdict.CANNOT_TELL)
            assert review.plan.progress() == Share(len(seen), 40)
        assert seen == list(range(1, 41))
        assert review.plan.undo() == 40
        assert review.plan.next_item() == 40
    with ReviewStore(path, reviewer="Ada") as review:
        assert review.plan.undo() is None  # given by another window
        assert review.plan.next_item() == 40


def test_a_later_verdict_replaces_an_earlier_one_until_it_is_undone(path, plan):
    item = objects(plan)[0]
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        review.plan.answer(item, Verdict.BOTH_WRONG)
        review.plan.answer(item, Verdict.PREDICTION_RIGHT, note="pale")
        assert review.plan.answers() == [ItemVerdict(item, Verdict.PREDICTION_RIGHT)]
        assert review.plan.undo() == item
        assert review.plan.answers() == [ItemVerdict(item, Verdict.BOTH_WRONG)]


@pytest.mark.parametrize(
    ("place", "verdict", "count", "message"),
    [
        (objects, Verdict.BOTH_WRONG, 1, "expected no count"),
        (tiles, Verdict.ANNOTATION_RIGHT, None, "found none; enter a number"),
        (tiles, Verdict.ANNOTATION_RIGHT, -1, "found -1"),
        (tiles, Verdict.CANNOT_TELL, 2, "expected no count"),
        (lambda _plan: [41], Verdict.BOTH_WRONG, None, "1 to 40, found 41"),
    ],
)
def test_verdicts_that_fit_no_item_are_refused(path, plan, place, verdict, count, message):
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        with pytest.raises(ReviewError, match=message):
            review.plan.answer(place(plan)[0], verdict, count=count)
        assert review.plan.answers() == []


def test_a_verdict_without_a_plan_is_refused(path):
    with (
        ReviewStore(path, reviewer="Ada") as review,
        pytest.raises(ReviewError, match="draw a plan first"),
    ):
        review.plan.answer(1, Verdict.BOTH_WRONG)


def test_an_extended_plan_keeps_verdicts_and_has_new_probabilities(path, plan, small_units):
    larger = extend(plan, small_units, 60)
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        answer_all(review, plan)
        before = review.plan.answers()
        review.plan.extend(larger)
        assert review.plan.answers() == before
        assert review.plan.next_item() == 41
        stored = review.plan.stored().plan
        assert stored.units.keys == larger.units.keys
        assert stored.probability.tolist() == larger.probability.tolist()
        with pytest.raises(ReviewError, match="save it as a new plan"):
            review.plan.extend(draw(small_units, 70, 4))
        with pytest.raises(ReviewError, match="save it as a new plan"):
            review.plan.extend(replace(plan, seed=99))


def test_a_new_plan_begins_without_verdicts(path, plan, small_units):
    with ReviewStore(path, reviewer="Ada") as review:
        first = review.plan.save(plan)
        answer_all(review, plan)
        assert review.plan.save(draw(small_units, 40, 4)) > first
        assert review.plan.answers() == []
        assert review.plan.next_item() == 1


def test_two_reviewers_share_a_plan_or_both_complete_it(path, plan):
    one, two, three = objects(plan)[:3]
    tile = tiles(plan)[0]
    with ReviewStore(path, reviewer="Ada") as ada, ReviewStore(path, reviewer="Bo") as bo:
        ada.plan.save(plan)
        ada.plan.answer(one, Verdict.BOTH_WRONG)
        ada.plan.answer(two, Verdict.ANNOTATION_RIGHT)
        bo.plan.answer(two, Verdict.PREDICTION_RIGHT)
        bo.plan.answer(three, Verdict.ANNOTATION_RIGHT)
        bo.plan.answer(tile, Verdict.ANNOTATION_RIGHT, count=2)
        assert ada.plan.reviewers() == ["Ada", "Bo"]
        assert ada.plan.answers("Bo") == ada.plan.answers("  Bo ") == bo.plan.answers()
        assert {a.item: a.verdict for a in ada.plan.pooled_answers()} == {
            one: Verdict.BOTH_WRONG,
            two: Verdict.CANNOT_TELL,
            three: Verdict.ANNOTATION_RIGHT,
            tile: Verdict.ANNOTATION_RIGHT,
        }
        assert ada.plan.progress() == Share(2, 40)
        assert ada.plan.progress(is_shared=True) == Share(4, 40)
        alone = next(k for k in range(1, 41) if k not in (one, two))
        shared = next(k for k in range(1, 41) if k not in (one, two, three, tile))
        assert (ada.plan.next_item(), ada.plan.next_item(is_shared=True)) == (alone, shared)
        ada.plan.answer(tile, Verdict.ANNOTATION_RIGHT, count=1)
        found = ada.plan.agreement("Ada", "Bo")
        assert (found.n, found.observed) == (1, 0.0)
        assert ada.plan.agreement(" Ada", "Bo ").n == found.n
        bo.plan.answer(two, Verdict.ANNOTATION_RIGHT)
        assert ada.plan.agreement("Ada", "Bo").observed == 1.0
        assert next(a for a in ada.plan.pooled_answers() if a.item == two).verdict is (
            Verdict.ANNOTATION_RIGHT
        )


def test_counts_of_one_tile_by_several_reviewers_are_averaged(path, plan):
    tile = tiles(plan)[0]
    with (
        ReviewStore(path, reviewer="Ada") as ada,
        ReviewStore(path, reviewer="Bo") as bo,
        ReviewStore(path, reviewer="Cy") as cy,
    ):
        ada.plan.save(plan)
        ada.plan.answer(tile, Verdict.ANNOTATION_RIGHT, count=3)
        bo.plan.answer(tile, Verdict.ANNOTATION_RIGHT, count=4)
        assert ada.plan.pooled_answers() == [ItemVerdict(tile, Verdict.ANNOTATION_RIGHT, 4)]
        cy.plan.answer(tile, Verdict.ANNOTATION_RIGHT, count=3)
        assert ada.plan.pooled_answers() == [ItemVerdict(tile, Verdict.ANNOTATION_RIGHT, 3)]
        cy.plan.answer(tile, Verdict.CANNOT_TELL)
        assert ada.plan.pooled_answers() == [ItemVerdict(tile, Verdict.CANNOT_TELL)]


def test_verdicts_outside_of_the_plan_are_in_no_estimate(path, plan, small_units):
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        answer_all(review, plan)
        before = estimate(review.plan.stored().plan, small_units, review.plan.answers()).rows
        review.give(subject(1, region=plan.units.region[0], team="alpha"), Verdict.BOTH_WRONG)
        after = estimate(review.plan.stored().plan, small_units, review.plan.answers()).rows
    assert [str(row) for row in before] == [str(row) for row in after]


def test_names_in_another_spelling_are_the_same_items(path, small_units):
    decomposed = replace(small_units, team=(small_units.team + "e\u0301").astype(object))
    plan = draw(decomposed, 40, 3)
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        answer_all(review, plan)
        found = estimate(review.plan.stored().plan, decomposed, review.plan.answers())
    assert {row.team for row in found.rows} == {"alphae\u0301", "betae\u0301"}


def damage(path, number, change):
    """Change the value of a change as another program would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (text,) = connection.execute(
            "SELECT value FROM changes WHERE number = ?", (number,)
        ).fetchone()
        value = json.loads(text)
        change(value)
        connection.execute(
            "UPDATE changes SET value = ? WHERE number = ?", (json.dumps(value), number)
        )


def at_item(column, value, *, of_tile=False):
    """Return a function that gives the first object or tile of a plan another value."""

    def change(saved):
        units = saved["plan"]["units"]
        row = next(k for k, id_ in enumerate(units["id"]) if (id_ == -1) == of_tile)
        (saved["plan"] if column in saved["plan"] else units)[column][row] = value

    return change


def twice(of_tile):
    """Return a function that has the first object or tile of a plan twice."""

    def change(saved):
        units = saved["plan"]["units"]
        first, second, *_ = (k for k, id_ in enumerate(units["id"]) if (id_ == -1) == of_tile)
        for name in ("team", "region", "side", "id", "y_px", "x_px"):
            units[name][second] = units[name][first]

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["plan"].update(level="deep"),
        *(lambda saved, seed=seed: saved["plan"].update(seed=seed) for seed in ("1", -1, 1.5)),
        *(
            lambda saved, names=names: saved["plan"]["units"].update(class_names=names)
            for names in ("Epithelial", {"Epithelial": 1}, [1, 2], ["c"] * 2**15)
        ),
        lambda saved: saved.update(settings=[]),
        lambda saved: saved.pop("settings"),
        lambda saved: saved["plan"]["units"]["id"].pop(),
        lambda saved: saved["plan"]["stratum"].pop(),
        *(at_item(name, 5) for name in ("team", "patient", "region", "detail", "stratum")),
        *(at_item(axis, value) for axis in ("y_px", "x_px") for value in ("far", 1e308)),
        *(at_item("iou", value) for value in (-0.5, 1.5, float("inf"), float("nan"), "much")),
        *(at_item("probability", value) for value in (0, -0.5, 1.5, 1e-320, float("nan"), "often")),
        *(at_item("side", value) for value in (3, -1, "above", 1.5)),
        *(at_item("kind", value) for value in (5, -1, 300)),
        *(at_item("id", value) for value in (1.5, None, -1, -2, 2**63)),
        at_item("id", 1, of_tile=True),
        *(at_item("reference_class", value) for value in (99, -1, 0.5, 70000)),
        at_item("prediction_class", -1),
        twice(of_tile=False),
        twice(of_tile=True),
    ],
)
def test_a_plan_that_another_program_changed_is_refused(path, plan, change):
    with ReviewStore(path, reviewer="Ada") as review:
        number = review.plan.save(plan)
    damage(path, number, change)
    refused = "holds a plan that cannot be understood .*restore a copy"
    with ReviewStore(path, reviewer="Ada") as review:
        for read in (review.plan.stored, review.plan.answers, review.plan.next_item):
            with pytest.raises(ReviewError, match=refused):
                read()
    with pytest.raises(ReviewError, match=refused):
        read_review(path)


def test_a_plan_whose_settings_are_nested_too_deeply_is_refused(path, plan):
    with ReviewStore(path, reviewer="Ada") as review:
        number = review.plan.save(plan)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "UPDATE changes SET value = ? WHERE number = ?", ("[" * 100_000, number)
            )
    with (
        ReviewStore(path, reviewer="Ada") as review,
        pytest.raises(ReviewError, match="nested too deeply"),
    ):
        review.plan.stored()


@pytest.mark.parametrize(
    ("of", "change"),
    [
        *((objects, {"item": item}) for item in (0, 1000, 1.5, "x", 10**400)),
        *((objects, {name: 5}) for name in ("reviewer", "verdict", "note")),
        (objects, {"verdict": "maybe"}),
        (objects, {"count": 1}),
        *((tiles, {"count": count}) for count in (None, -1, 10000, 2.5, "many", True)),
    ],
)
def test_a_verdict_on_an_item_that_another_program_changed_is_left_out(path, plan, of, change):
    own, other = of(plan)[0], objects(plan)[1]
    with ReviewStore(path, reviewer="Ada") as review:
        saved = review.plan.save(plan)
        kept = review.plan.answer(other, Verdict.BOTH_WRONG)
        review.plan.answer(own, Verdict.ANNOTATION_RIGHT, count=1 if own in tiles(plan) else None)
    damage(path, saved + 2, lambda value: value.update(change))
    with ReviewStore(path, reviewer="Ada") as review:
        assert review.plan.answers() == review.plan.pooled_answers() == [kept]
        (notice,) = review.notices
        assert f"change {saved + 2} of the review file cannot be read" in notice.message
        assert review.plan.next_item() == 1
    found = read_review(path)
    assert found.plan.answers == [kept]
    assert [finding.message for finding in found.findings] == [notice.message]


def test_an_item_is_answered_without_reading_the_plan_again(path, plan):
    """Each answer read and checked the whole plan three times: 1.2 s an item of 8,000."""
    with ReviewStore(path, reviewer="Ada") as review:
        review.plan.save(plan)
        stored = review.plan.stored()
        for item in objects(plan)[:3]:
            review.plan.answer(item, Verdict.BOTH_WRONG)
            assert review.plan.next_item() is not None
        assert review.plan.stored() is stored


def test_a_plan_is_read_without_writing_to_its_file(path, plan):
    with pytest.raises(ReviewError):
        read_review(path)
    with ReviewStore(path, reviewer="Ada") as review:
        assert read_review(path).plan is None
        review.plan.save(plan)
        answer_all(review, plan, Verdict.PREDICTION_RIGHT)
    with ReviewStore(path, reviewer="Bo") as review:
        review.plan.answer(objects(plan)[0], Verdict.BOTH_WRONG, note="torn")
        pooled = review.plan.pooled_answers()
    before = path.read_bytes()
    found = read_review(path).plan
    assert path.read_bytes() == before
    assert found.answers == pooled
    assert found.stored.plan.units.keys == plan.units.keys
    assert found.teams == {"alpha", "beta"}
    (given,) = (own for own in found.given if own.reviewer == "Bo")
    assert (given.answer.verdict, given.note) == (Verdict.BOTH_WRONG, "torn")
    verdicts = object_verdicts(found)
    assert len(verdicts) == len(objects(plan)) + 1
    row = objects(plan)[0] - 1
    assert verdicts[0].object_id == plan.units.id[row]
    assert verdicts[0].region == plan.units.region[row]
