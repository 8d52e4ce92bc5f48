"""Averages in every way, against sums written out one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.nuclei.averages import (
    UNDEFINED_RULES,
    AggregationTable,
    ClassMean,
    RegionCounts,
    Unit,
    aggregate,
    aggregation_table,
)
from napari_panoptic.nuclei.metrics import Counts

CLASSES = ("E", "L", "N")


def counts(*rows: tuple[int, int, int, float]) -> Counts:
    """TP, FP, FN and summed IoU of each class."""
    tp, fp, fn, iou = (np.array(column) for column in zip(*rows, strict=True))
    return replace(
        Counts.zero(CLASSES),
        tp=tp,
        fp=fp,
        fn=fn,
        iou_sum=iou.astype(float),
        present=((tp + fp + fn) > 0).astype(np.int64),
    )


def random_regions(seed: int) -> list[RegionCounts]:
    rng = np.random.default_rng(seed)
    found = []
    for k in range(7):
        tp = rng.integers(0, 6, 3) * (rng.random(3) < 0.7)
        rows = [
            (int(t), int(rng.integers(0, 3)) * int(t > 1), int(rng.integers(0, 4)), t * 0.7)
            for t in tp
        ]
        patient = f"p{k % 3}"
        found.append(RegionCounts(f"r{k}", patient, counts(*rows), "lung" if k % 3 else "kidney"))
    return found


def plain(regions: list[RegionCounts], unit: Unit, mean: ClassMean) -> list[float]:
    """Sum by unit in lists, divide, and average by the words of the definition."""
    units: dict[str, list[RegionCounts]] = {}
    for r in regions:
        key = {"region": r.region, "patient": r.patient, "group": r.group, "pooled": "all"}[unit]
        units.setdefault(key, []).append(r)
    values = []
    for _, own in sorted(units.items()):
        pq, weights = [], []
        for k in range(3):
            tp, fp, fn = (
                sum(int(getattr(r.counts, n)[k]) for r in own) for n in ("tp", "fp", "fn")
            )
            iou = sum(float(r.counts.iou_sum[k]) for r in own)
            divisor = tp + fp / 2 + fn / 2
            if divisor == 0 and mean is ClassMean.PRESENT:
                continue
            pq.append(iou / divisor if divisor else 0.0)
            weights.append(tp + fn if mean is ClassMean.WEIGHTED else 1)
        total = sum(weights)
        if total:
            values.append(sum(p * w for p, w in zip(pq, weights, strict=True)) / total)
        else:
            values.append(float("nan"))
    return values


@pytest.mark.parametrize("mean", list(ClassMean))
@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("seed", range(6))
def test_against_the_plain_way(seed: int, unit: Unit, mean: ClassMean) -> None:
    regions = random_regions(seed)
    found = aggregate("t", regions, CLASSES, unit=unit, class_mean=mean)
    expected = plain(regions, unit, mean)
    np.testing.assert_allclose(list(found.values.values()), expected, rtol=1e-12)
    defined = [value for value in expected if not np.isnan(value)]
    assert found.n_units == len(expected)
    assert found.spread.n == len(defined)
    assert found.spread.mean == pytest.approx(np.mean(defined), rel=1e-12)
    assert found.undefined_rule == UNDEFINED_RULES[mean]


def test_a_choice_can_turn_the_ranking_round() -> None:
    """One small region with one mistake outweighs a large one, unless objects are pooled."""
    nothing = (0, 0, 0, 0.0)
    large, small = (
        counts((90, 0, 10, 80.0), nothing, nothing),
        counts((0, 1, 1, 0), nothing, nothing),
    )
    poor, perfect = (
        counts((50, 0, 50, 45.0), nothing, nothing),
        counts((1, 0, 0, 0.9), nothing, nothing),
    )
    regions = {
        "a": [RegionCounts("r1", "p", large), RegionCounts("r2", "p", small)],
        "b": [RegionCounts("r1", "p", poor), RegionCounts("r2", "p", perfect)],
    }
    table = aggregation_table(regions, CLASSES)
    assert table.ranks["a", Unit.REGION, ClassMean.PRESENT] == 2
    assert table.ranks["a", Unit.PATIENT, ClassMean.PRESENT] == 1
    assert Unit.GROUP not in {unit for unit, _ in table.ways}


def test_a_class_that_nobody_has() -> None:
    regions = {"a": [RegionCounts("r", "p", counts((1, 0, 0, 0.8), (0, 0, 0, 0), (0, 0, 0, 0)))]}
    table: AggregationTable = aggregation_table(regions, CLASSES)
    means = {mean: table.aggregates["a", Unit.PATIENT, mean].spread.mean for mean in ClassMean}
    assert means[ClassMean.PRESENT] == means[ClassMean.WEIGHTED] == pytest.approx(0.8)
    assert means[ClassMean.ALL] == pytest.approx(0.8 / 3)


def test_a_team_without_regions_has_no_rank() -> None:
    regions = {"a": random_regions(1), "b": []}
    table = aggregation_table(regions, CLASSES)
    assert table.ranks["b", Unit.PATIENT, ClassMean.PRESENT] == 0
    assert table.aggregates["b", Unit.PATIENT, ClassMean.PRESENT].spread.n == 0
    assert {table.ranks["a", *way] for way in table.ways} == {1}


def test_who_belongs_to_no_group_is_left_out_of_them() -> None:
    regions = random_regions(2)
    some = [replace(r, group="" if r.patient == "p1" else r.group) for r in regions]
    found = aggregate("t", some, CLASSES, unit=Unit.GROUP, class_mean=ClassMean.ALL)
    left = [r for r in some if r.group]
    assert set(found.values) == {r.group for r in left}
    np.testing.assert_allclose(
        list(found.values.values()), plain(left, Unit.GROUP, ClassMean.ALL), rtol=1e-12
    )
