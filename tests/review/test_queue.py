"""The order in which objects are reviewed."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from napari_panoptic.nuclei.display.object_rows import ObjectRows
from napari_panoptic.nuclei.values.vocabulary import STATUS_CODE, Side, Status, Verdict
from napari_panoptic.review.judged import Judged, Subjects
from napari_panoptic.review.progress import RegionLine, next_region
from napari_panoptic.review.queue import Adjudication, next_open, with_partner
from napari_panoptic.review.verdicts import ReviewRecord, Role, Share, compared
from tests.support.review_cases import subject
from tests.support.small_pairs import four_fates


def record_on(of, verdict, reviewer="Ada", role=Role.REVIEWER):
    values = {name: getattr(of, name) for name in ("team", "region", "side", "object_id")}
    return ReviewRecord(
        **values,
        fingerprint=of.fingerprint,
        reviewer=reviewer,
        verdict=verdict,
        role=role,
        given_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


class TestFailures:
    @pytest.fixture
    def evaluation(self):
        return four_fates()

    @pytest.fixture
    def rows(self, evaluation):
        return ObjectRows.prepared(evaluation.outcomes)

    @pytest.fixture
    def following(self, evaluation, rows):
        """Return what finds the next failure in the order of the rows."""
        order = np.arange(len(rows))
        on_prediction = order >= rows.n_reference
        wrong = STATUS_CODE[Status.MISCLASSIFIED]
        twice = on_prediction & (rows.values["status"] == wrong)
        failures = np.flatnonzero(rows.failures() & ~twice)

        def find(judged=None, start=None, leave_out=()):
            judged = Judged(evaluation, judged or {})
            return next_open(judged, rows, order, failures, start, leave_out)

        find.failures = [rows.object_of(int(row)) for row in failures]
        return find

    def test_failures_come_in_order_and_then_from_the_first(self, following):
        first, *_, last = following.failures
        assert following() == first
        assert following(start=last, leave_out=[last]) == first
        for here, after in zip(following.failures, following.failures[1:], strict=False):
            assert following(start=here, leave_out=[here]) == after

    def test_judged_ones_and_those_selected_are_left_out(self, evaluation, following):
        subjects = Subjects(evaluation, region="R", team="T")
        judged = {at: record_on(subjects.of(*at), Verdict.BOTH_WRONG) for at in following.failures}
        *done, left = judged
        assert following({at: judged[at] for at in done}) == left
        assert following(judged) is None
        assert following(leave_out=following.failures) is None

    def test_the_table_may_be_about_to_follow_an_edit(self, evaluation, rows):
        some = np.arange(len(rows))
        assert next_open(Judged(evaluation, {}), ObjectRows.empty(), some, some, None) is None

    def test_a_misclassified_pair_is_left_out_as_a_whole(self, evaluation):
        own = evaluation.outcomes.reference
        row = int(np.flatnonzero(own.status == STATUS_CODE[Status.MISCLASSIFIED])[0])
        partner = (Side.PREDICTION, int(own.partner[row]))
        assert with_partner(evaluation, (Side.REFERENCE, row)) == {(Side.REFERENCE, row), partner}


def test_the_next_region_has_open_failures():
    counts = four_fates().counts
    lines = {
        "A": RegionLine("A", 0, 3, counts, counts),
        "B": RegionLine("B", 2, 2, counts, counts),
        "D": RegionLine("D", 1, 2, counts, counts),
    }
    names = ["A", "B", "C", "D"]  # C is not evaluated
    assert next_region(names, "A", lines) == "D"
    assert next_region(names, "D", lines) == "A"
    assert next_region(names, "", lines) == "A"
    assert next_region(["B"], "B", lines) is None
    assert next_region(names, "A", {"A": lines["A"]}) is None


class TestAdjudication:
    @pytest.fixture
    def adjudication(self):
        """Let Ada and Bo differ on the objects 2 and 3, and on another team's 2."""
        others = [subject(n) for n in (1, 2, 3)] + [replace(subject(2), team="U")]
        right, wrong = Verdict.ANNOTATION_RIGHT, Verdict.BOTH_WRONG
        ada = [record_on(of, right) for of in others]
        bo = [record_on(of, right if k == 0 else wrong, "Bo") for k, of in enumerate(others)]
        return Adjudication(compared(ada, bo, first="Ada", second="Bo"))

    def test_open_disagreements_come_one_after_the_other(self, adjudication):
        assert adjudication.progress == Share(0, 3)
        first = adjudication.following(None).first
        assert (first.object_id, first.team) == (2, "T")
        second = adjudication.following(first).first
        assert (second.object_id, second.team) == (3, "T")
        third = adjudication.following(second).first
        assert (third.object_id, third.team) == (2, "U")
        assert adjudication.following(third).first is first
        assert adjudication.following(subject(1)).first is first

    def test_decisions_count_until_none_is_open(self, adjudication):
        for number in range(3):
            item = adjudication.following(None)
            decision = record_on(item.first, Verdict.CANNOT_TELL, "Cy", Role.ADJUDICATOR)
            adjudication.decide(decision)
            assert adjudication.item_of(item.first).final is Verdict.CANNOT_TELL
            assert adjudication.progress == Share(number + 1, 3)
        assert adjudication.following(None) is None
        assert adjudication.item_of(subject(1)) is None
