"""NucEval's figures: against its own ones, and against masks that are painted one by one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import napari_panoptic
from napari_panoptic.nuclei.conventions import RegionPlace, RegionSums, TeamSums, sums_of_pair
from napari_panoptic.nuclei.conventions import rules_of as rules
from napari_panoptic.values.conventions import figures_of
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings
from tests.support import nuceval_oracle
from tests.support.compare import evaluate_case
from tests.support.examples import seeds
from tests.support.label_cases import LabelCase, random_pair
from tests.support.paths import SHARED_CASES

PUBLISHED = SHARED_CASES / "nuceval" / "nuceval_monusac.json"
NUCEVAL = ("nuceval", "nuceval-weighted")
SHARES = (None, 0.25, 0.5, 0.0)


def settings_of(seed: int) -> tuple[dict[str, Any], float | None]:
    """Return settings, and what they are for NucEval: the share, None without an area."""
    share = SHARES[seed // 6 % 4]
    policy = "keep" if share is None else "clip"
    return {"zone_px": seed % 6, "ambiguous": policy, "ambiguous_share": share}, share


def case_of(seed: int) -> LabelCase:
    rng = np.random.default_rng(seed)
    return random_pair(rng, tuple(int(n) for n in rng.integers(4, 33, 2)))


def left_of(case: LabelCase, width: int, share: float | None) -> list[nuceval_oracle.Masks]:
    sides = case.reference, case.prediction
    return nuceval_oracle.sides_left(sides, case.ambiguous, share, width)


def sums_of(case: LabelCase, settings: dict[str, Any]) -> RegionSums:
    found = evaluate_case(case, **settings)
    return sums_of_pair(found.pair, found.table, rules(found.settings))


def figures(sums: TeamSums, name: str) -> dict[str, float]:
    return {own.name: sums.figure(*own[1:3]).value for own in figures_of(name)}


# --- real regions, with NucEval's own figures ---------------------------------------------------

OF_MONUSAC: dict[str, dict[str, Any]] = {
    "default": {"ambiguous": "keep"},
    **{f"amb {s:g}": {"ambiguous_share": s} for s in (0.25, 0.5, 0.75)},
    **{f"zone {n}": {"ambiguous": "keep", "zone_px": n} for n in range(1, 6)},
    **{f"zone {n}, amb 0.25": {"zone_px": n, "ambiguous_share": 0.25} for n in range(1, 4)},
}
LONG = {*OF_MONUSAC} - {"default", "zone 2", "zone 2, amb 0.25"}


@pytest.mark.skipif(not PUBLISHED.exists(), reason="NucEval's figures of MoNuSAC are not here")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in OF_MONUSAC]
)
def test_figures_of_nuceval_itself(name: str) -> None:
    published = json.loads(PUBLISHED.read_text("utf-8"))["codes"]["nuceval"]
    cohort = napari_panoptic.open_cohort(SHARED_CASES / "monusac")
    frame = cohort.conventions(convention=NUCEVAL, settings=EvaluationSettings(**OF_MONUSAC[name]))
    found = frame.set_index(["team", "convention", "figure"])["value"]
    for team, own in published.items():
        for convention, mean in zip(NUCEVAL, ("mean", "weighted_mean"), strict=True):
            for figure in nuceval_oracle.FIGURES:
                expected = own[name]["set"][mean][figure]
                assert found[team, convention, figure] == pytest.approx(expected, abs=1e-11)


# --- slow, obvious ones -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(100))
def test_random_pairs(seed: int) -> None:
    case, (settings, share) = case_of(seed), settings_of(seed)
    found = TeamSums([RegionPlace("")], [sums_of(case, settings)])
    expected = nuceval_oracle.figures(*left_of(case, settings["zone_px"], share))
    assert figures(found, "nuceval") == pytest.approx(expected, abs=1e-12)


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(values, weights=weights)) if weights.any() else np.nan


@pytest.mark.parametrize("seed", range(6))
def test_means_and_the_mean_without_each_region(seed: int) -> None:
    (settings, share), n = settings_of(seed + 6 * (seed % 2)), 8
    cases = [case_of(seed + 20 * k) for k in range(n)]
    found = TeamSums([RegionPlace("")] * n, [sums_of(case, settings) for case in cases])
    left = [left_of(case, settings["zone_px"], share) for case in cases]
    values, weight = (
        [nuceval_oracle.figures(*sides) for sides in left],
        [len(own) for own, _ in left],
    )
    for figure in figures_of("nuceval-weighted"):
        own = np.array([value[figure.name] for value in values])
        assert figures(found, "nuceval")[figure.name] == pytest.approx(own.mean(), abs=1e-12)
        expected = weighted_mean(own, np.array(weight))
        assert figures(found, "nuceval-weighted")[figure.name] == pytest.approx(
            expected, abs=1e-12, nan_ok=True
        )
        rest = found.without_each(figure.formula, figure.convention)
        for k in range(n):
            others = np.arange(n) != k
            expected = weighted_mean(own[others], np.array(weight)[others])
            assert rest[k] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def blocks(*places: tuple[int, int, int, int]) -> np.ndarray:
    image = np.zeros((24, 24), int)
    for id_, (top, bottom, left, right) in enumerate(places, start=1):
        image[top:bottom, left:right] = id_
    return image


@pytest.mark.parametrize(
    ("sides", "value"),
    [((blocks(), blocks()), 1.0), ((blocks((2, 9, 2, 9)), blocks()), 0.0)],
    ids=["both empty", "no prediction"],
)
@pytest.mark.parametrize("zone_px", [0, 1])
def test_empty_sides(sides: tuple[np.ndarray, np.ndarray], value: float, zone_px: int) -> None:
    case = LabelCase(*sides, {1: "Epithelial"} if value == 0 else {}, {}, None)
    found = TeamSums([RegionPlace("")], [sums_of(case, {"zone_px": zone_px})])
    assert set(figures(found, "nuceval").values()) == {value}


def test_a_small_nucleus_that_vanishes_cannot_be_missed() -> None:
    case = LabelCase(blocks((4, 6, 4, 6)), blocks(), {1: "Epithelial"}, {}, None)
    for zone_px, pq in ((0, 0.0), (1, 1.0)):
        found = TeamSums([RegionPlace("")], [sums_of(case, {"zone_px": zone_px})])
        assert figures(found, "nuceval")["pq"] == pq
        weighted = figures(found, "nuceval-weighted")["pq"]
        assert np.isnan(weighted) if zone_px else weighted == 0.0


def test_of_equal_ious_the_larger_union_is_the_best() -> None:
    """2 of 8 px and 3 of 12 px: the constant in the denominator prefers the second."""
    reference, prediction = np.zeros((2, 8, 30), int)
    reference[3, 10:16] = 1
    prediction[3, 8:12], prediction[3, 13:22] = 1, 2
    case = LabelCase(reference, prediction, {1: "Epithelial"}, dict.fromkeys((1, 2), "Epithelial"))
    found = TeamSums([RegionPlace("")], [sums_of(case, {})])
    assert figures(found, "nuceval")["aji"] == pytest.approx(3 / (12 + 4 + 1e-6), abs=1e-12)


# --- the usual PQ with a border or a share ------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(60))
def test_the_usual_figure_is_that_of_the_evaluation(seed: int) -> None:
    policy = [str(policy) for policy in AmbiguousPolicy][seed % 4]
    share = None if policy == "keep" else SHARES[seed // 4 % 4]
    settings = {"ambiguous": policy, "zone_px": 1 + seed % 3, "ambiguous_share": share}
    evaluation = evaluate_case(case_of(seed), **settings)
    rows = evaluation.conventions()
    assert set(rows["convention"]) == {"disentangled", *NUCEVAL}
    found = rows.set_index(["convention", "figure"])["value"]["disentangled", "pq"]
    assert found == pytest.approx(evaluation.metrics.pq, rel=1e-12, nan_ok=True)
