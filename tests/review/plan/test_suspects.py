"""Which items of a plan are suspect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.questions.engines.suspects import LIKELY_SCORE, Suspect, SuspectKind
from napari_panoptic.review.plan.design import StratumLevel, draw, stratified
from napari_panoptic.review.plan.suspects import with_suspects
from napari_panoptic.review.plan.units import KINDS, NO_ID, SIDES, ItemKind, ItemSide, Units
from napari_panoptic.values.vocabulary import Side

LOCATED = Suspect(
    kind=SuspectKind.BADLY_LOCATED,
    score=LIKELY_SCORE,
    patient="P",
    region="P_1",
    side=Side.REFERENCE,
    team=None,
    id=3,
    other_ids=(),
    class_name="Round",
    suggested_class="",
    teams=("T", "U"),
    bbox=(0, 0, 9, 9),
    centroid_yx_px=(4.0, 4.0),
    sentence="",
)
OVERLOOKED = replace(
    LOCATED,
    kind=SuspectKind.OVERLOOKED,
    side=Side.PREDICTION,
    team="U",
    id=8,
    team_ids=(7, 8),
    centroid_yx_px=(70.0, 10.0),
)


@pytest.fixture
def units() -> Units:
    """Items of two teams: reference 3 and 4, prediction 7 and 8, and two tiles each."""
    rows = [
        (team, side, kind, id_, place, detail)
        for team in ("T", "V")
        for side, kind, id_, place, detail in (
            (ItemSide.REFERENCE, ItemKind.TP, 3, (4, 4), ""),
            (ItemSide.REFERENCE, ItemKind.FN, 4, (20, 20), "missed"),
            (ItemSide.PREDICTION, ItemKind.FP, 7, (71, 10), "spurious"),
            (ItemSide.PREDICTION, ItemKind.FP, 8, (90, 90), "spurious"),
            (ItemSide.BACKGROUND, ItemKind.BACKGROUND, NO_ID, (40, 40), "empty"),
            (ItemSide.BACKGROUND, ItemKind.BACKGROUND, NO_ID, (90, 40), "partly"),
        )
    ]
    team, side, kind, ids, place, detail = zip(*rows, strict=True)
    n = len(rows)
    has_class = np.array([id_ != NO_ID for id_ in ids])
    is_fp = np.array([own is ItemKind.FP for own in kind])
    return Units(
        class_names=("Round",),
        team=np.array(team, object),
        patient=np.full(n, "P", object),
        region=np.full(n, "P_1", object),
        side=np.array([SIDES.index(own) for own in side], np.int8),
        kind=np.array([KINDS.index(own) for own in kind], np.int8),
        id=np.array(ids, np.int64),
        y_px=np.array([y for y, _ in place], float),
        x_px=np.array([x for _, x in place], float),
        reference_class=(has_class & ~is_fp).astype(np.int16),
        prediction_class=is_fp.astype(np.int16),
        iou=np.zeros(n),
        detail=np.array(detail, object),
    )


def marks(units: Units) -> list[tuple[str, str, int]]:
    return [
        (units.team[row], KINDS[units.kind[row]], int(units.id[row]))
        for row in np.flatnonzero(units.is_suspect)
    ]


def test_a_suspect_object_is_one_item_of_every_team(units: Units) -> None:
    found = with_suspects(units, [LOCATED])
    assert marks(found) == [("T", ItemKind.TP, 3), ("V", ItemKind.TP, 3)]
    assert found.cause.tolist() == units.detail.tolist()
    split = replace(LOCATED, other_ids=(4,))
    assert [id_ for *_, id_ in marks(with_suspects(units, [split]))] == [3, 4, 3, 4]


def test_an_overlooked_object_is_an_fp_of_teams_that_agree_else_a_tile(units: Units) -> None:
    found = with_suspects(units, [OVERLOOKED])
    assert marks(found) == [("T", ItemKind.FP, 7), ("V", ItemKind.BACKGROUND, NO_ID)]
    assert found.y_px[found.is_suspect].tolist() == [71, 90]  # the tile of rows from 64


def test_other_regions_and_low_scores_are_not_suspect(units: Units) -> None:
    others = [replace(LOCATED, score=LIKELY_SCORE - 0.01), replace(OVERLOOKED, region="P_2")]
    assert not with_suspects(units, others).is_suspect.any()
    again = with_suspects(with_suspects(units, [LOCATED]), others)
    assert again.detail.tolist() == units.detail.tolist()


@pytest.mark.parametrize("level", StratumLevel)
def test_suspects_are_strata_of_their_own_at_every_level(units: Units, level: StratumLevel) -> None:
    found = with_suspects(units, [LOCATED, OVERLOOKED])
    strata = stratified(found, level)
    for name, is_suspect in zip(strata.names, strata.suspect, strict=True):
        assert (name.split("/")[2:3] == ["suspect"]) == is_suspect
    assert [strata.suspect[k] for k in strata.of_unit] == found.is_suspect.tolist()
    whole = draw(found, len(found), 0)
    assert (whole.probability == 1).all()
