"""Every figure of every label pair equals that of the slow, obvious oracle."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.values.settings import AmbiguousPolicy, Matching, Outlines
from tests.support.compare import assert_agrees, evaluate_case, oracle_case
from tests.support.examples import seeds
from tests.support.label_cases import CASES, INTEGER_DTYPES, KINDS, random_pair

POLICIES = [policy.value for policy in AmbiguousPolicy]
RULES = [rule.value for rule in Matching]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", CASES)
def test_named_cases(name: str, rule: str, policy: str) -> None:
    settings = {"matching": rule, "ambiguous": policy}
    assert_agrees(
        evaluate_case(CASES[name], mpp=0.25, **settings),
        oracle_case(CASES[name], mpp=0.25, **settings),
    )


@pytest.mark.parametrize("seed", seeds(400))
def test_random_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 33, 2))
    case = random_pair(rng, shape)
    settings = {
        "matching": RULES[seed % 2],
        "ambiguous": POLICIES[seed // 2 % 4],
        "outlines": list(Outlines)[seed // 8 % 3].value,
        "iou_threshold": [0.5, 0.5, 0.6, 0.85][seed // 24 % 4],
        "near_iou": [0.1, 0.3][seed // 96 % 2],
    }
    assert_agrees(evaluate_case(case, **settings), oracle_case(case, **settings))


@pytest.mark.parametrize("seed", seeds(120))
def test_thresholds_below_one_half(seed: int) -> None:
    rng = np.random.default_rng(10_000 + seed)
    case = random_pair(rng, (20, 20))
    settings = {
        "iou_threshold": [0.05, 0.2, 0.35, 0.499][seed % 4],
        "ambiguous": POLICIES[seed // 4 % 4],
    }
    found, expected = evaluate_case(case, **settings), oracle_case(case, **settings)
    if expected.unique_matching:
        assert_agrees(found, expected)
    else:  # several assignments are equally good: only their sum of IoU is determined
        wanted = sum(o["iou"] for o in expected.objects if o["partner_id"] is not None)
        assert found.counts.matched_iou_sum.sum() * 2 == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_every_integer_type(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(list(KINDS).index(kind))
    case = random_pair(rng, (17, 23), dtype=dtype, reference_kind=kind, prediction_kind="edited")
    assert_agrees(evaluate_case(case), oracle_case(case))
