"""Verdicts and agreements as CSV."""

import pytest

from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.review.export import (
    AGREEMENT_TABLE,
    VERDICT_TABLE,
    agreement_rows,
    verdict_frame,
    verdict_rows,
    write_table,
)
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Side, Verdict
from tests.support.paths import csv_rows
from tests.support.review_cases import subject
from tests.support.small_pairs import four_fates


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.sqlite"


def test_verdicts_have_the_outcome_of_their_object(path):
    evaluation = four_fates()
    subjects = Subjects(evaluation, region="R", team="T")
    places = [(side, row) for side in Side for row in range(2)]
    for name in ("Ada", "Bo"):
        with ReviewStore(path, reviewer=name) as store:
            for place in places:
                store.give(subjects.of(*place), Verdict.CANNOT_TELL)
            store.give(subject(70, region="elsewhere"), Verdict.CANNOT_TELL)
            store.give(subject(71, region="R"), Verdict.CANNOT_TELL)  # not there any more
            records = store.verdicts(include_others=True)
    asked = []

    def evaluation_of(region, team):
        asked.append((region, team))
        return evaluation if region == "R" else None

    rows = verdict_rows(records, evaluation_of)
    assert sorted(asked) == [("R", "T"), ("elsewhere", "T")]
    for number, row in enumerate(rows):
        side, at = places[number % 6] if number % 6 < 4 else (None, None)
        if side is None:
            assert "status" not in row
            continue
        own = evaluation.outcomes.side(side)
        assert row["status"] == str(STATUSES[own.status[at]])
        assert row["cause"] == str(CAUSES[own.cause[at]])
        assert ("partner_id" in row) == (own.partner[at] != NO_PARTNER)
        assert row["iou"] == pytest.approx(own.iou[at], rel=0, nan_ok=True)


def test_the_table_of_verdicts(path, tmp_path):
    with ReviewStore(path, reviewer="=Ada()") as store:
        store.give(subject(1), Verdict.PREDICTION_RIGHT, tag="fold", note='says "yes", and\nno')
        store.give(subject(2, side=Side.PREDICTION), Verdict.CANNOT_TELL)
        records = store.verdicts()
    target = tmp_path / "verdicts.csv"
    rows = verdict_rows(records, lambda _region, _team: None)
    table = verdict_frame(rows)
    assert write_table(target, VERDICT_TABLE, table) == 2
    first, second = csv_rows(target)
    assert list(first) == VERDICT_TABLE.keys
    assert (first["tag"], first["note"]) == ("fold", 'says "yes", and\nno')
    assert first["reviewer"] != "=Ada()"  # a spreadsheet would compute it
    assert (second["side"], second["verdict"]) == ("prediction", "cannot-tell")
    assert float(second["centroid_y_px"]) == 40.0
    assert second["status"] == ""
    with pytest.raises(ReviewError, match="choose another place"):
        write_table(tmp_path / "nowhere" / "verdicts.csv", VERDICT_TABLE, table)


def test_the_table_of_an_agreement(path, tmp_path):
    verdicts = list(Verdict)
    for name, codes in (("Ada", (0, 1, 1)), ("Bo", (0, 2, 3))):
        with ReviewStore(path, reviewer=name) as store:
            for number, code in enumerate(codes, start=1):
                store.give(subject(number), verdicts[code], note=f"{name} {number}")
    with ReviewStore(path, reviewer="Cy", adjudicates=("Ada", "Bo")) as store:
        store.give(subject(2), verdicts[2], note="clear")
        found = store.agreement("Ada", "Bo")
    target = tmp_path / "agreement.csv"
    write_table(target, AGREEMENT_TABLE, AGREEMENT_TABLE.frame(agreement_rows(found)))
    agreed, decided, still_open = csv_rows(target)
    assert agreed["final"] == agreed["first_verdict"] == agreed["second_verdict"]
    assert (decided["adjudicator"], decided["final"]) == ("Cy", str(verdicts[2]))
    assert decided["adjudicator_note"] == "clear"
    assert (still_open["adjudicator"], still_open["final"]) == ("", "")
    assert {row["objects"] for row in (agreed, decided, still_open)} == {"3"}
    assert agreed["agreed"] == "1"
    assert float(agreed["kappa"]) == pytest.approx(found.agreement.kappa)
