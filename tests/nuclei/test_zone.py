"""The uncertain border and the share of ambiguous areas, against the slow, obvious oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.zone import Element, Zone
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings, Matching
from napari_panoptic.values.vocabulary import Side, Status
from tests.support.compare import assert_agrees, evaluate_case, oracle_case
from tests.support.examples import seeds
from tests.support.label_cases import CASES, LabelCase, random_pair

POLICIES = [policy.value for policy in AmbiguousPolicy]
RULES = [rule.value for rule in Matching]


def settings_of(seed: int) -> dict[str, object]:
    policy = POLICIES[seed % 4]
    share = [None, 0.25, 0.0, 0.8][seed // 4 % 4]
    return {
        "ambiguous": policy,
        "ambiguous_share": None if policy == "keep" else share,
        "zone_px": seed % 5,
        "matching": RULES[seed // 5 % 2],
        "iou_threshold": [0.5, 0.5, 0.7][seed // 7 % 3],
        "outlines": ["as-published", "both-clipped", "both-whole"][seed // 3 % 3],
    }


@pytest.mark.parametrize("zone_px", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CASES)
def test_named_cases(name: str, policy: str, zone_px: int) -> None:
    settings = {"ambiguous": policy, "zone_px": zone_px}
    assert_agrees(evaluate_case(CASES[name], **settings), oracle_case(CASES[name], **settings))


@pytest.mark.parametrize("seed", seeds(500))
def test_random_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_pair(rng, tuple(int(n) for n in rng.integers(1, 33, 2)))
    settings = settings_of(seed)
    assert_agrees(evaluate_case(case, **settings), oracle_case(case, **settings))


def outcome_of(evaluation: Evaluation) -> list[list[object]]:
    columns = ["side", "class", "status", "cause", "iou", "area_px", "hausdorff_px"]
    return sorted(evaluation.objects[columns].astype(str).to_numpy().tolist())


@pytest.mark.parametrize("seed", seeds(40))
def test_other_ids_and_a_turned_image_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_pair(rng, (24, 31), max_id=60)
    settings = {"zone_px": 1 + seed % 4, "ambiguous": POLICIES[seed % 4]}
    before = outcome_of(evaluate_case(case, **settings))
    numbers = np.concatenate([[0], rng.permutation(60) + 1])
    relabelled = replace(
        case,
        reference=numbers[case.reference],
        reference_classes={int(numbers[id_]): name for id_, name in case.reference_classes.items()},
    )
    turned = replace(
        case,
        reference=np.rot90(case.reference).T,
        prediction=np.rot90(case.prediction).T,
        ambiguous=None if case.ambiguous is None else np.rot90(case.ambiguous).T,
    )
    for other in (relabelled, turned):
        assert outcome_of(evaluate_case(other, **settings)) == before


@pytest.mark.parametrize("seed", seeds(60))
def test_evaluating_again_is_evaluating(seed: int) -> None:
    pair = evaluate_case(random_pair(np.random.default_rng(seed), (20, 25))).pair
    first, second = (EvaluationSettings(**settings_of(seed + k)) for k in (0, 1 + seed % 9))
    found = evaluate_again(evaluate(pair, first), second)
    assert found.objects.equals(evaluate(pair, second).objects)


def test_nuclei_without_a_pixel_left_are_ignored_and_counted() -> None:
    reference, prediction = np.zeros((2, 20, 20), int)
    reference[2:12, 2:12], reference[15:17, 15:17] = 1, 2
    prediction[2:12, 3:13], prediction[13:14, 4:8] = 1, 2
    case = LabelCase(reference, prediction, *({1: "Epithelial", 2: "Epithelial"},) * 2, None)
    found = evaluate_case(case, zone_px=2)
    assert found.outcomes.reference.count(Status.IGNORED) == 1
    assert found.outcomes.prediction.count(Status.IGNORED) == 1
    assert found.in_zone(Side.REFERENCE).tolist() == [False, True]
    assert found.in_zone(Side.PREDICTION).tolist() == [False, True]
    assert not evaluate_case(case).in_zone(Side.REFERENCE).any()


def test_the_element_of_nuceval() -> None:
    """17 and 33 pixels, as NUCEVAL.md draws them."""
    lines = {1: [0, 1, 0], 2: [0, 2, 2, 2, 0], 3: [0, 2, 3, 3, 3, 2, 0]}
    for width, reach in lines.items():
        zone = Zone(width, Element.NUCEVAL, True, np.zeros(0, np.uint8))
        assert zone.reach.tolist() == reach


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"zone_px": -1}, "zone_px"),
        ({"zone_px": 1.5}, "zone_px"),
        ({"ambiguous_share": 1.5}, "ambiguous_share"),
        ({"ambiguous_share": 0.5, "ambiguous": "keep"}, "keep"),
        ({"zone_px": 2, "convention": "stardist"}, "stardist"),
        ({"ambiguous_share": 0.5, "convention": "monusac-2020-as-run"}, "ambiguous_share"),
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        EvaluationSettings(**values)


@pytest.mark.parametrize("seed", seeds(60))
def test_what_the_zone_decides_differs_without_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_pair(rng, tuple(int(n) for n in rng.integers(8, 33, 2)))
    now = evaluate_case(case, **settings_of(seed))
    before = evaluate_again(now, now.settings.replaced(zone_px=0))
    for side in Side:
        is_other = now.outcomes.side(side).status != before.outcomes.side(side).status
        np.testing.assert_array_equal(now.decided_by_zone(side), is_other)
        np.testing.assert_array_equal(
            now.judged_whole.side(side).area, before.judged.side(side).area
        )
