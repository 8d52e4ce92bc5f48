"""Several teams on one region, against counting object by object."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic import EvaluationSettings
from napari_panoptic.common.errors import LabelError, SettingsError
from napari_panoptic.explain.consensus import consensus
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.vocabulary import STATUSES
from tests.support.examples import examples
from tests.support.label_cases import CLASS_NAMES, random_pair

policies = st.sampled_from(["clip", "clip-predictions", "majority", "keep"])


def random_teams(seed: int, n: int, **chosen: Any) -> dict[str, Evaluation]:
    """Make n teams on one reference; half of them are copies of others that shift or drop."""
    rng = np.random.default_rng(seed)
    case = random_pair(rng, (18, 18))
    reference = LabelImage.from_array(case.reference, case.reference_classes, CLASS_NAMES)
    evaluations = {}
    for k in range(n):
        other = random_pair(rng, (18, 18), prediction_kind="edited", with_ambiguous=False)
        labels, classes = other.prediction, other.prediction_classes
        if k % 2:
            labels = np.roll(case.prediction, int(rng.integers(0, 3)), axis=0)
            classes = case.prediction_classes
        pair = LabelPair(
            reference, LabelImage.from_array(labels, classes, CLASS_NAMES), case.ambiguous
        )
        evaluations[f"team {k}"] = evaluate(pair, EvaluationSettings(distances=False, **chosen))
    return evaluations


def expected_places(evaluations: dict[str, Evaluation]) -> set[frozenset[tuple[str, int]]]:
    """Join FPs of different teams, pair by pair of masks, until nothing changes."""
    masks = {}
    for team, evaluation in evaluations.items():
        void = evaluation.pair.ambiguous
        kept = evaluation.settings.ambiguous == "keep" or void is None
        objects = evaluation.objects
        statuses = objects.loc[objects["side"] == "prediction", "status"]
        for row, status in enumerate(statuses):
            if status == "FP":
                mask = evaluation.pair.prediction.index == row + 1
                masks[team, row] = mask if kept else mask & ~void
    places = [{fp} for fp in masks]
    for a, b in itertools.combinations(masks, 2):
        shared, union = (masks[a] & masks[b]).sum(), (masks[a] | masks[b]).sum()
        if a[0] != b[0] and shared / union >= 0.1:
            joined = [place for place in places if a in place or b in place]
            places = [place for place in places if place not in joined]
            places.append(set().union(*joined))
    return {frozenset(place) for place in places}


@settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), policy=policies)
def test_counts_and_places_equal_the_obvious_ones(seed: int, n: int, policy: str) -> None:
    evaluations = random_teams(seed, n, ambiguous=policy)
    found = consensus(evaluations)
    statuses = [
        e.objects.loc[e.objects["side"] == "reference", "status"].tolist()
        for e in evaluations.values()
    ]
    for row, words in enumerate(zip(*statuses, strict=True)):
        assert [STATUSES[code] for code in found.status[row]] == list(words)
        assert found.found[row] == words.count("TP")
        assert found.misclassified[row] == words.count("misclassified")
        assert found.fn[row] == words.count("FN")
        assert found.ignored[row] == words.count("ignored")
        judged = [word for word in words if word != "ignored"]
        assert found.fn_for_all[row] == (bool(judged) and set(judged) == {"FN"})
        assert found.found_by_one_only[row] == (words.count("TP") == 1)
    places = [
        frozenset((team, int(row)) for team, rows in place.rows.items() for row in rows)
        for place in found.fp_places
    ]
    assert len(set(places)) == len(places)
    assert set(places) == expected_places(evaluations)
    for place in found.fp_places:
        members = [
            (evaluations[team].outcomes.prediction, row)
            for team, rows in place.rows.items()
            for row in rows
        ]
        boxes = np.array([side.bbox[row] for side, row in members])
        assert place.bbox == (*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0))
        weights = [side.area_px[row] for side, row in members]
        centroid = np.average([s.centroid_yx_px[r] for s, r in members], axis=0, weights=weights)
        np.testing.assert_allclose(place.centroid_yx_px, centroid)


def team(
    blocks: dict[int, tuple[int, int, int, int]], classes: dict[int, str] | None = None
) -> Evaluation:
    """Evaluate rectangles (first row, end row, first column, end column) on two references."""
    reference, prediction = np.zeros((2, 20, 40), np.int32)
    reference[2:8, 2:8], reference[2:8, 12:18] = 1, 2
    for label, (top, bottom, left, right) in blocks.items():
        prediction[top:bottom, left:right] = label
    named = dict.fromkeys(blocks, "A") | (classes or {})
    pair = LabelPair(
        LabelImage.from_array(reference, {1: "A", 2: "A"}, ("A", "B")),
        LabelImage.from_array(prediction, named, ("A", "B")),
    )
    return evaluate(pair)


FIRST, SECOND = (2, 8, 2, 8), (2, 8, 12, 18)


def test_three_teams_by_hand() -> None:
    evaluations = {
        "a": team({1: FIRST, 5: (12, 18, 20, 26)}),
        "b": team({1: FIRST, 2: SECOND, 3: (12, 18, 21, 27)}, {1: "B"}),
        "c": team({9: (12, 18, 30, 36)}),
    }
    found = consensus(evaluations)
    assert found.found.tolist() == [1, 1]
    assert found.misclassified.tolist() == [1, 0]
    assert found.fn.tolist() == [1, 2]
    assert found.found_by_one_only.tolist() == [True, True]
    assert found.fn_for_all.tolist() == [False, False]
    (both,) = found.shared_fp_places(2)
    assert both.teams == ("a", "b")
    assert both.bbox == (12, 20, 18, 27)
    assert both.centroid_yx_px == (14.5, 23.0)
    assert [place.teams for place in found.fp_places] == [("a", "b"), ("c",)]
    rows = [{team: own.tolist() for team, own in place.rows.items()} for place in found.fp_places]
    assert rows == [{"a": [1], "b": [2]}, {"c": [0]}]
    assert [STATUSES[code] for code in found.status[:, 2]] == ["FN", "FN"]


def test_what_all_miss() -> None:
    found = consensus({"a": team({1: FIRST}), "b": team({1: FIRST})})
    assert found.fn_for_all.tolist() == [False, True]
    assert found.fp_places == ()


def test_two_false_positives_of_one_team_meet_through_another() -> None:
    halves = team({1: (12, 18, 20, 26), 2: (12, 18, 26, 32)})
    whole = team({4: (12, 18, 20, 32)})
    assert len(consensus({"halves": halves}).fp_places) == 2
    (place,) = consensus({"halves": halves, "whole": whole}).fp_places
    assert {name: rows.tolist() for name, rows in place.rows.items()} == {
        "halves": [0, 1],
        "whole": [0],
    }


def test_touching_by_less_than_a_tenth_is_no_common_place() -> None:
    # Each 60 px; 10 px shared of 110 is below 0.1, 12 px of 108 above.
    apart = consensus({"a": team({1: (10, 20, 20, 26)}), "b": team({1: (10, 20, 25, 31)})})
    assert len(apart.fp_places) == 2
    near = {"a": team({1: (10, 16, 20, 30)}), "b": team({1: (10, 16, 28, 38)})}
    assert len(consensus(near).fp_places) == 1


def test_what_cannot_be_compared_is_refused() -> None:
    ours = team({1: FIRST})
    with pytest.raises(LabelError, match="at least one team"):
        consensus({})
    stricter = evaluate(ours.pair, EvaluationSettings(iou_threshold=0.7))
    with pytest.raises(SettingsError, match="iou_threshold"):
        consensus({"ours": ours, "theirs": stricter})
    nothing = LabelImage.empty(ours.pair.reference.shape, ("A", "B"))
    elsewhere = evaluate(LabelPair(nothing, ours.pair.prediction))
    with pytest.raises(LabelError, match="different references"):
        consensus({"ours": ours, "theirs": elsewhere})
    all_void = np.ones(ours.pair.reference.shape, bool)
    void = evaluate(LabelPair(ours.pair.reference, ours.pair.prediction, all_void))
    with pytest.raises(LabelError, match="ambiguous areas"):
        consensus({"ours": ours, "theirs": void})


def test_distances_need_not_have_been_computed_for_all() -> None:
    ours = team({1: FIRST})
    quick = evaluate(ours.pair, EvaluationSettings(distances=False))
    assert consensus({"ours": ours, "quick": quick}).found.tolist() == [2, 0]
    assert not math.isnan(ours.metrics.mean_hausdorff_px)
