"""The items of packages: those of plans, the worst failures, and pairs of two teams."""

from dataclasses import replace

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.review.package.choosing import (
    ItemQuestion,
    failures_of,
    numbered,
    pairs_in,
    read_questions,
    shuffled,
    worst,
    worst_pairs,
)
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Side, Status
from tests.support.review_packages import READING
from tests.support.small_cohort import REGIONS, TEAMS

HEADER = "item,team,patient,region,side,id,y_px,x_px,stratum,probability\n"
NAME = REGIONS[0].name


@pytest.fixture(scope="module")
def failures(small_cohort):
    return failures_of(small_cohort, replace(READING, teams=TEAMS))[0]


def plan_of(tmp_path, *lines):
    path = tmp_path / "plan.csv"
    path.write_text(HEADER + "\n".join(lines), encoding="utf-8")
    return path


def test_a_plan_is_read_in_its_order(small_cohort, tmp_path):
    path = plan_of(
        tmp_path,
        f"2,alpha,P,{NAME},reference,7,1.5,2.5,FN,0.5",
        f"1,beta,P,{NAME},background,,70.0,10.0,background,0.1",
    )
    questions, digest = read_questions(path, small_cohort)
    assert questions == [
        ItemQuestion("2", "alpha", NAME, Side.REFERENCE, 7),
        ItemQuestion("1", "beta", NAME, None, None, 70.0, 10.0),
    ]
    assert len(digest) == 64


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "found no items"),
        ((f"1,gamma,P,{NAME},reference,7,1,2,s,1",), "line 2: this cohort has no team 'gamma'"),
        (("1,alpha,P,nowhere,reference,7,1,2,s,1",), "no region 'nowhere'"),
        ((f"1,alpha,P,{NAME},both,7,1,2,s,1",), "line 2 is no item of a plan"),
        ((f"1,alpha,P,{NAME},reference,x,1,2,s,1",), "line 2 is no item of a plan"),
        ((f"1,alpha,P,{NAME},background,,nan,2,s,1",), "line 2 is no item of a plan"),
        ((f",alpha,P,{NAME},reference,7,1,2,s,1",), "line 2 is no item of a plan"),
        ((f"1,alpha,P,{NAME},reference,7,1,2,s,1",) * 2, "item 1 is in the plan more than once"),
    ],
)
def test_other_tables_are_refused(small_cohort, tmp_path, lines, message):
    with pytest.raises(UnreadableFileError, match=message):
        read_questions(plan_of(tmp_path, *lines), small_cohort)


def test_a_table_without_the_columns_is_refused(small_cohort, tmp_path):
    path = tmp_path / "plan.csv"
    path.write_text("item,team\n1,alpha\n")
    with pytest.raises(UnreadableFileError, match="add region, side, id, y_px and x_px"):
        read_questions(path, small_cohort)


def outcomes(cohort, team):
    """Give (region, side, id) -> (status, cause, IoU, area) of every object of a team."""
    result = {}
    for region in cohort.regions:
        found = load_region(cohort, region.name, READING.settings).evaluations[team]
        for side in Side:
            own = found.outcomes.side(side)
            for row, id_ in enumerate(own.ids.tolist()):
                values = STATUSES[own.status[row]], CAUSES[own.cause[row]]
                numbers = float(own.iou[row]), int(own.area_px[row])
                result[region.name, side, id_] = (*values, *numbers)
    return result


def is_failure(side, status):
    return status in {Side.REFERENCE: (Status.FN, Status.MISCLASSIFIED)}.get(side, (Status.FP,))


def test_the_worst_failures_come_first(small_cohort, failures):
    known = {team: outcomes(small_cohort, team) for team in TEAMS}
    expected = sorted(
        (found[2], -found[3])
        for of_team in known.values()
        for (_, side, _), found in of_team.items()
        if is_failure(side, found[0])
    )
    chosen = worst(failures, 1000)
    assert len(set(chosen)) == len(chosen) == len(expected) > 20
    found = [known[q.team][q.region, q.side, q.object_id] for q in chosen]
    assert [(iou, -area) for _, _, iou, area in found] == expected
    assert worst(failures, 5) == chosen[:5]


def test_pairs_are_nuclei_whose_outcomes_differ(small_cohort, failures):
    alpha, beta = (outcomes(small_cohort, team) for team in TEAMS)
    expected = {
        (region, id_)
        for (region, side, id_), found in alpha.items()
        if side is Side.REFERENCE and found[:2] != beta[region, side, id_][:2]
    }
    pairs = worst_pairs(failures, TEAMS, 1000)
    assert {(first.region, first.object_id) for first, _ in pairs} == expected
    assert len(pairs) == len(expected) > 5
    for first, second in pairs:
        assert (first.team, second.team) == TEAMS
        assert (first.region, first.object_id) == (second.region, second.object_id)
    assert worst_pairs(failures, TEAMS, 3) == pairs[:3]


def test_items_of_a_plan_on_one_nucleus_are_a_pair():
    first = ItemQuestion("1", "alpha", "R", Side.REFERENCE, 7)
    other = ItemQuestion("2", "alpha", "R", Side.PREDICTION, 7)
    tile = ItemQuestion("3", "alpha", "R", None, None)
    second = ItemQuestion("4", "beta", "R", Side.REFERENCE, 7)
    third = ItemQuestion("5", "gamma", "R", Side.REFERENCE, 7)
    again = ItemQuestion("6", "beta", "R", Side.REFERENCE, 7)
    found = pairs_in([first, other, tile, second, third, again], TEAMS)
    assert found == [(first, second), (other,), (tile,), (third,), (again,)]


def test_sides_and_order_are_random_and_repeatable(failures):
    pairs = worst_pairs(failures, TEAMS, 1000)
    once = shuffled(pairs, 1, order=False)
    assert once == shuffled(pairs, 1, order=False)
    assert once != shuffled(pairs, 2, order=False)
    assert [set(group) for group in once] == [set(group) for group in pairs]
    assert {group[0].team for group in once} == set(TEAMS)
    mixed = shuffled(pairs, 1, order=True)
    assert mixed != once
    assert {frozenset(group) for group in mixed} == {frozenset(group) for group in once}
    items = [question.item for group in numbered(mixed) for question in group]
    assert items == [str(number) for number in range(1, 2 * len(pairs) + 1)]
