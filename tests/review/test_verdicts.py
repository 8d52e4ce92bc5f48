"""The order in which a third reviewer decides disagreements."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from napari_panoptic.review.verdicts import Adjudication, ReviewRecord, Role, Share, compared
from napari_panoptic.values.vocabulary import Verdict
from tests.support.review_cases import subject


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
