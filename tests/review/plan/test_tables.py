"""Plans and verdicts as tables: what is written can be read, and mistakes are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.review.plan.design import draw
from napari_panoptic.review.plan.estimates import ItemVerdict
from napari_panoptic.review.plan.tables import (
    PLAN,
    plan_frame,
    read_plan,
    read_verdicts,
)
from napari_panoptic.review.plan.units import KINDS, ItemKind
from napari_panoptic.values.vocabulary import Verdict


@pytest.fixture
def plan(small_units):
    return draw(small_units, 60, 1)


@pytest.fixture
def path(tmp_path, plan):
    """The plan as a table."""
    file = tmp_path / "plan.csv"
    file.write_bytes(PLAN.csv(plan_frame(plan)))
    return file


def verdicts(tmp_path, text):
    file = tmp_path / "verdicts.csv"
    file.write_text(text)
    return file


def first(plan, kind):
    return int(plan.units.is_kind(kind).argmax()) + 1


def test_a_plan_is_read_as_it_was_written(plan, path, small_units):
    found, findings = read_plan(path).plan(small_units)
    assert findings == ()
    assert found.units.keys == plan.units.keys
    assert found.stratum == plan.stratum
    assert found.probability.tolist() == plan.probability.tolist()
    assert found.level is plan.level
    assert read_plan(path).teams(("beta", "gamma", "alpha")) == ("alpha", "beta")


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.integers(10, 90), st.integers(0, 10**6))
def test_plans_of_every_level_are_read(tmp_path_factory, small_units, n, seed):
    path = tmp_path_factory.mktemp("plan") / "plan.csv"
    plan = draw(small_units, n, seed)
    plan_frame(plan).to_csv(path, index=False)
    found, _ = read_plan(path).plan(small_units)
    assert (found.level, found.stratum) == (plan.level, plan.stratum)


def test_background_has_no_id(plan):
    frame = plan_frame(plan)
    assert list(frame) == PLAN.keys
    tiles = frame[frame.side == "background"]
    assert len(tiles)
    assert tiles.id.isna().all()
    assert frame[frame.side != "background"].id.notna().all()
    assert frame.item.tolist() == list(range(1, 61))


def test_names_that_a_spreadsheet_would_compute_are_found_again(tmp_path, small_units):
    from dataclasses import replace

    named = replace(small_units, team=("=" + small_units.team).astype(object))
    path = tmp_path / "plan.csv"
    path.write_bytes(PLAN.csv(plan_frame(draw(named, 60, 1))))
    assert "'=alpha" in path.read_text()
    assert len(read_plan(path).plan(named)[0]) == 60
    assert read_plan(path).teams(("=alpha", "=beta")) == ("=alpha", "=beta")


def test_a_plan_with_items_removed_has_other_probabilities(path, small_units):
    pd.read_csv(path).iloc[:-1].to_csv(path, index=False)
    found, (finding,) = read_plan(path).plan(small_units)
    assert len(found) == 59
    assert "were computed again" in finding.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="stratum"), "add stratum"),
        (lambda t: t.iloc[:0], "found no items"),
        (lambda t: t.assign(item=t.item.replace(2, 1)), "item 1 is in line 2 and again in line 3"),
        (lambda t: t.assign(item=t.item + 1), "expected the items 1 to 60"),
        (lambda t: t.assign(item="x"), "expected a number as item in line 2"),
        (lambda t: t.assign(region="elsewhere"), "are not in this cohort"),
        (lambda t: t.assign(id=t.id + 1000), "are not in this cohort"),
        (lambda t: t.assign(stratum="alpha/TP"), "strata are not those of this cohort"),
    ],
)
def test_tables_that_are_no_plan_of_the_cohort_are_refused(path, small_units, change, message):
    change(pd.read_csv(path)).to_csv(path, index=False)
    with pytest.raises(UnreadableFileError, match=message):
        read_plan(path).plan(small_units)


def test_a_team_that_the_cohort_lacks_is_named(path):
    with pytest.raises(UnreadableFileError, match="there is no team 'alpha'"):
        read_plan(path).teams(("beta",))


def test_verdicts_are_read(plan, tmp_path):
    tile, fp = first(plan, ItemKind.BACKGROUND), first(plan, ItemKind.FP)
    text = (
        "item,verdict,count,note\n"
        f"{fp},Prediction-Right,,a remark\n{tile},annotation-right,2,\n\n"
        f"{first(plan, ItemKind.TP)},,,not reviewed\n"
    )
    found, findings = read_verdicts(verdicts(tmp_path, text), plan)
    wanted = [
        ItemVerdict(fp, Verdict.PREDICTION_RIGHT),
        ItemVerdict(tile, Verdict.ANNOTATION_RIGHT, 2),
    ]
    assert found == sorted(wanted, key=lambda answer: answer.item)
    assert findings == ()


@pytest.mark.parametrize(
    ("cells", "answer"),
    [
        ("annotation-right,", ItemVerdict(0, Verdict.ANNOTATION_RIGHT, 0)),
        (",0", ItemVerdict(0, Verdict.ANNOTATION_RIGHT, 0)),
        ("both-wrong,3", ItemVerdict(0, Verdict.ANNOTATION_RIGHT, 3)),
        ("cannot-tell,", ItemVerdict(0, Verdict.CANNOT_TELL)),
        (",4.0", ItemVerdict(0, Verdict.ANNOTATION_RIGHT, 4)),
    ],
)
def test_the_count_of_a_tile_decides(plan, tmp_path, cells, answer):
    from dataclasses import replace

    tile = first(plan, ItemKind.BACKGROUND)
    found, _ = read_verdicts(verdicts(tmp_path, f"item,verdict,count\n{tile},{cells}\n"), plan)
    assert found == [replace(answer, item=tile)]


def test_a_plan_of_objects_alone_needs_no_counts(plan, tmp_path):
    from dataclasses import replace

    objects = plan.units.kind != KINDS.index(ItemKind.BACKGROUND)
    own = replace(
        plan,
        units=plan.units[objects],
        stratum=tuple(np.array(plan.stratum)[objects]),
        probability=plan.probability[objects],
    )
    found, _ = read_verdicts(verdicts(tmp_path, "item,verdict\n2,both-wrong\n1,\n"), own)
    assert found == [ItemVerdict(2, Verdict.BOTH_WRONG)]


def test_rows_outside_of_the_plan_are_left_out(plan, tmp_path):
    fp = first(plan, ItemKind.FP)
    text = f"item,verdict,count\n{fp},both-wrong,\n{fp},both-wrong,\n61,both-wrong,\n999,,1\n"
    found, (outside, repeated) = read_verdicts(verdicts(tmp_path, text), plan)
    assert found == [ItemVerdict(fp, Verdict.BOTH_WRONG)]
    assert "2 rows (61 and 999) are not in the plan" in outside.message
    assert "are there twice with the same verdict" in repeated.message


@pytest.mark.parametrize(
    ("kind", "cells", "message"),
    [
        (ItemKind.FP, "prediction-rihgt,", "found 'prediction-rihgt'"),
        (ItemKind.FP, ",3", "expected annotation-right, .* found ''"),
        (ItemKind.FN, "both-wrong,3", "only background items have a count"),
        (ItemKind.BACKGROUND, "both-wrong,", "needs the number of nuclei"),
        (ItemKind.BACKGROUND, "annotation-right,-1", "a whole number from 0 as count, found '-1'"),
        (ItemKind.BACKGROUND, "annotation-right,1.5", "found '1.5'"),
        (ItemKind.BACKGROUND, "annotation-right,nan", "found 'nan'"),
        (ItemKind.BACKGROUND, "annotation-right,inf", "found 'inf'"),
        (ItemKind.FP, "annotation-right,1e400", "found '1e400'"),
        (ItemKind.BACKGROUND, "wrong,1", "found 'wrong'"),
    ],
)
def test_cells_that_mean_nothing_are_refused(plan, tmp_path, kind, cells, message):
    item = first(plan, kind)
    file = verdicts(tmp_path, f"item,verdict,count\n{item},{cells}\n")
    with pytest.raises(UnreadableFileError, match=rf"line 2, item {item}: .*{message}"):
        read_verdicts(file, plan)


def test_two_verdicts_on_an_item_are_refused(plan, tmp_path):
    fp = first(plan, ItemKind.FP)
    text = f"item,verdict,count\n{fp},both-wrong,\n{fp},annotation-right,\n"
    with pytest.raises(UnreadableFileError, match="one verdict in line 2 and another in line 3"):
        read_verdicts(verdicts(tmp_path, text), plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,verdict\n1,both-wrong\n", "add count"),
        ("item,verdict,count\n0,both-wrong,\n", "expected the number of an item in line 2"),
        ("item,verdict,count\n1.5,both-wrong,\n", "expected the number of an item in line 2"),
        ("item,verdict,count\n1,both-wrong\n", "expected 3 cells in line 2, found 2"),
        ('item,verdict,count\n1,"both', "a table of verdicts in CSV, found"),
    ],
)
def test_other_tables_are_refused(plan, tmp_path, text, message):
    with pytest.raises(UnreadableFileError, match=message):
        read_verdicts(verdicts(tmp_path, text), plan)
