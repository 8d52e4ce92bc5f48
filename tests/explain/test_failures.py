"""The failures of a cohort: an obvious oracle, and counts that add up with the summaries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.display.failure_sections import (
    SMALL,
    GroupBy,
    passing,
    sections,
)
from napari_panoptic.display.object_rows import ObjectFilter, ObjectRows, WorstFirst, worst_first
from napari_panoptic.display.styles import CAUSE_WORDS
from napari_panoptic.explain.failures import (
    Block,
    CohortFailures,
    FailureName,
    FailureSet,
)
from napari_panoptic.explain.impact import PatientMean
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.live.summary import RegionSummary, evaluate_cohort_summary
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Cause, Side

SETTINGS = EvaluationSettings()
FAILED = ("FN", "FP", "misclassified")


@pytest.fixture(scope="module")
def lines(small_cohort):
    return list(
        evaluate_cohort_summary(small_cohort, Reading(SETTINGS, teams=small_cohort.team_names))
    )


@pytest.fixture(scope="module")
def failures(small_cohort, lines):
    return CohortFailures(
        [
            Block(line.team, small_cohort.region(line.region).patient, line.region, line.failures)
            for line in lines
            if line.failures is not None
        ]
    )


@pytest.fixture(scope="module")
def snapshots(small_cohort):
    return {at.name: load_region(small_cohort, at.name, SETTINGS) for at in small_cohort.regions}


def expected(snapshots, team, region):
    """Take the failures from the rows of all objects, a misclassified pair once."""
    objects = snapshots[region].evaluations[team].objects
    is_twin = (objects["status"] == "misclassified") & (objects["side"] == "prediction")
    return objects[objects["status"].isin(FAILED) & ~is_twin]


def test_they_are_the_failed_objects_of_every_region_and_team(failures, snapshots, lines):
    frame = failures.frame(np.arange(len(failures)))
    assert len(frame)
    for line in lines:
        own = frame[(frame["team"] == line.team) & (frame["region"] == line.region)]
        oracle = expected(snapshots, line.team, line.region)
        pd.testing.assert_frame_equal(
            own.drop(columns=["team", "patient", "region"]).reset_index(drop=True),
            oracle.reset_index(drop=True),
            check_dtype=False,
        )


def test_counts_add_up_with_the_summaries(failures, lines):
    status = failures.frame(np.arange(len(failures)))["status"]
    confusion = sum(line.counts.confusion for line in lines if line.counts is not None)
    assert (status == "FN").sum() == confusion[1:, 0].sum()
    assert (status == "FP").sum() == confusion[0, 1:].sum()
    off_diagonal = confusion[1:, 1:].sum() - np.trace(confusion[1:, 1:])
    assert (status == "misclassified").sum() == off_diagonal > 0


def test_rows_and_boxes_are_those_of_the_outcomes(failures, snapshots):
    for at in range(len(failures)):
        place, side = failures.place(at), failures.side(at)
        own = snapshots[place.region].evaluations[place.team].outcomes.side(side)
        row = int(failures.columns["row"][at])
        assert own.ids[row] == failures.columns["id"][at]
        np.testing.assert_array_equal(own.bbox[row], failures.columns["bbox"][at])


def test_a_failure_is_found_by_its_name_and_by_its_partners(failures):
    for at in range(len(failures)):
        name = failures.name(at)
        assert failures.find(name) == at
        partner = int(failures.columns["partner_id"][at])
        if partner >= 0:
            twin = FailureName(name.team, name.region, Side.PREDICTION, partner)
            assert failures.find(twin) == at
    assert failures.find(FailureName("nobody", "nowhere", Side.REFERENCE, 1)) is None


def test_a_run_goes_on_where_it_was_stopped(small_cohort, lines):
    known = {(line.region, line.team) for line in lines[:3]}
    rest = list(
        evaluate_cohort_summary(
            small_cohort, Reading(SETTINGS, teams=small_cohort.team_names), known=known
        )
    )
    assert [(a.region, a.team) for a in rest] == [(a.region, a.team) for a in lines[3:]]


def test_too_large_regions_are_left_out_with_a_reason(small_cohort):
    for line in evaluate_cohort_summary(
        small_cohort, Reading(SETTINGS, None, small_cohort.team_names, held_up_to_px=10)
    ):
        assert line.is_slide
        assert line.failures is None
        assert "evaluated when it is looked at" in line.findings[0].message


def test_without_an_evaluation_there_are_none():
    line = RegionSummary.of("a", "b", None)
    assert line.failures is None
    assert len(CohortFailures()) == 0
    assert list(CohortFailures().frame(np.zeros(0, int))["id"]) == []


@pytest.mark.parametrize("by", list(WorstFirst))
def test_the_order_is_that_of_the_object_table(failures, snapshots, by):
    for block in failures.blocks:
        own = CohortFailures([block])
        outcomes = snapshots[block.region].evaluations[block.team].outcomes
        rows = ObjectRows.from_outcomes(outcomes)
        listed = [at for at in rows.worst_first(by) if rows.failures()[at]]
        twins = rows.values["status"] == rows.words["status"].index("misclassified")
        twins &= np.arange(len(rows)) >= rows.n_reference
        table = [int(rows.values["id"][at]) for at in listed if not twins[at]]
        mean = PatientMean.of([("", snapshots_counts(snapshots, block))])
        impact = mean.gains(np.zeros(len(own), np.intp), own.columns)
        columns = {**own.columns, "impact": impact}
        assert own.columns["id"][worst_first(columns, by)].tolist() == table


def snapshots_counts(snapshots, block):
    return snapshots[block.region].evaluations[block.team].counts


def test_a_random_order_is_always_the_same_and_no_other_one(failures):
    columns = failures.columns
    order = worst_first(columns, WorstFirst.RANDOM)
    assert sorted(order.tolist()) == list(range(len(failures)))
    backwards = {name: column[::-1] for name, column in columns.items()}
    again = len(failures) - 1 - worst_first(backwards, WorstFirst.RANDOM)
    for name in ("id", "side", "area_px"):  # equal objects may change places
        np.testing.assert_array_equal(columns[name][again], columns[name][order])
        assert abs(np.corrcoef(columns[name][order], np.arange(len(order)))[0, 1]) < 0.25


def test_small_failures_come_last_in_one_section(failures):
    areas = failures.columns["area_px"]
    small_px = int(np.median(areas))
    order = worst_first(failures.columns, WorstFirst.AREA)[::-1]
    found = sections(failures, order, GroupBy.CLASS, small_px)
    assert found[-1].title == SMALL
    assert str(small_px) in found[-1].meaning
    assert found[-1].rows.tolist() == [row for row in order if areas[row] < small_px]
    assert found[:-1]
    assert all((areas[at.rows] >= small_px).all() for at in found[:-1])
    assert sum(len(at.rows) for at in found) == len(failures)
    assert SMALL not in [at.title for at in sections(failures, order, GroupBy.CLASS)]


def test_annotated_areas_are_those_of_all_reference_objects(lines, snapshots):
    for line in lines:
        if line.failures is not None:
            objects = snapshots[line.region].evaluations[line.team].objects
            own = objects.loc[objects["side"] == "reference", "area_px"]
            assert line.failures.annotated_px.tolist() == own.tolist()


def test_filters_let_the_same_objects_through_as_the_table(failures):
    everything = failures.frame(np.arange(len(failures)))
    for wanted, column in (
        (ObjectFilter(statuses=frozenset({"FN"})), everything["status"] == "FN"),
        (ObjectFilter(sides=frozenset({"pred"})), everything["side"] == "prediction"),
        (ObjectFilter(causes=frozenset({"missed", ""})), everything["cause"].isin(["missed", ""])),
        (ObjectFilter(classes=frozenset({"Epithelial"})), everything["class"] == "Epithelial"),
        (
            ObjectFilter(pairs=frozenset({("Epithelial", "none")})),
            (everything["class"] == "Epithelial") & (everything["status"] == "FN"),
        ),
        (ObjectFilter(), everything["id"] == everything["id"]),
    ):
        np.testing.assert_array_equal(passing(failures, wanted), column.to_numpy())


@pytest.mark.parametrize("by", list(GroupBy))
def test_sections_hold_every_row_once_in_the_order_given(failures, by):
    order = worst_first(failures.columns, WorstFirst.AREA)
    found = sections(failures, order, by)
    assert sorted(np.concatenate([at.rows for at in found]).tolist()) == list(range(len(failures)))
    frame = failures.frame(np.arange(len(failures)))
    places = np.argsort(order)
    for section in found:
        values = set(frame.iloc[section.rows][str(by)])
        if by is GroupBy.CAUSE:
            values = {CAUSE_WORDS[Cause(value)] if value else "" for value in values}
        assert values == {"" if section.title == "misclassified" else section.title}
        assert (np.diff(places[section.rows]) > 0).all()
    assert sections(CohortFailures(), np.zeros(0, int), by) == ()


def test_causes_come_by_their_worst_failure(failures):
    order = worst_first(failures.columns, WorstFirst.AREA)
    found = sections(failures, order, GroupBy.CAUSE)
    firsts = [np.flatnonzero(order == at.rows[0])[0] for at in found]
    assert firsts == sorted(firsts)


def test_a_set_has_exactly_the_failures_that_are_named(failures):
    names = [failures.name(row) for row in range(0, len(failures), 3)]
    chosen = FailureSet("every third", frozenset(names))
    parts = CohortFailures([chosen.part(block) for block in failures.blocks])
    assert [parts.name(row) for row in range(len(parts))] == names
    assert chosen.teams == {name.team for name in names}


def test_a_set_knows_misclassified_pairs_by_either_object(failures):
    frame = failures.frame(np.arange(len(failures)))
    rows = np.flatnonzero(frame["status"] == "misclassified")
    names = [
        FailureName(at.team, at.region, Side.PREDICTION, int(at.partner_id))
        for at in frame.iloc[rows].itertuples()
    ]
    chosen = FailureSet("misclassified", frozenset(names))
    parts = CohortFailures([chosen.part(block) for block in failures.blocks])
    found = {parts.name(row) for row in range(len(parts))}
    assert found == {failures.name(int(row)) for row in rows}
