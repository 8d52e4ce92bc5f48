"""Averages over regions, patients and the whole set, against sums written out one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.conventions import (
    RegionPlace,
    RegionSums,
    Sum,
    TeamSums,
    Value,
    key_of,
)
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.values.conventions import (
    DISENTANGLED,
    AddedOver,
    ClassMean,
    Convention,
    Formula,
    MeanOver,
    Nothing,
)

CLASSES = ("E", "L", "N")
KEY = key_of(DISENTANGLED.objects, DISENTANGLED.pairs)
Region = tuple[str, Counts]
UNITS = {
    "region": replace(DISENTANGLED, added_over=AddedOver.REGION, mean_over=MeanOver.REGIONS),
    "patient": DISENTANGLED,
    "pooled": replace(DISENTANGLED.pooled(), classes=ClassMean.LAST),
}
"""What counts are added over -> the convention."""
CLASS_MEANS = {"present": Nothing.BOTH_EMPTY, "all": Nothing.ZERO}
"""Which classes are averaged: those of either side, or all, of which an absent one counts 0."""


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


def random_regions(seed: int) -> list[Region]:
    """Give seven regions of three patients."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(7):
        tp = rng.integers(0, 6, 3) * (rng.random(3) < 0.7)
        rows = [
            (int(t), int(rng.integers(0, 3)) * int(t > 1), int(rng.integers(0, 4)), t * 0.7)
            for t in tp
        ]
        found.append((f"p{k % 3}", counts(*rows)))
    return found


def team_sums(regions: Sequence[Region]) -> TeamSums:
    sums = []
    for _, own in regions:
        of_class = np.zeros((len(CLASSES), len(Sum)))
        of_class[:, Sum.HAD_REFERENCE] = own.tp + own.fn > 0
        of_class[:, Sum.HAD_PREDICTION] = own.tp + own.fp > 0
        for column, name in ((Sum.TP, "tp"), (Sum.FP, "fp"), (Sum.FN, "fn"), (Sum.IOU, "iou_sum")):
            of_class[:, column] = getattr(own, name)
        sums.append(RegionSums({KEY: of_class}, None))
    return TeamSums([RegionPlace(patient) for patient, _ in regions], sums)


def pq(regions: Sequence[Region], convention: Convention) -> Value:
    return team_sums(regions).figure(Formula.PQ, convention)


def convention(unit: str, mean: str) -> Convention:
    return replace(UNITS[unit], nothing=CLASS_MEANS[mean])


def plain(regions: Sequence[Region], unit: str, mean: str) -> list[float]:
    """Sum by unit in lists, divide, and average by the words of the definition."""
    units: dict[str, list[Counts]] = {}
    for number, (patient, own) in enumerate(regions):
        key = {"region": f"r{number}", "patient": patient, "pooled": "all"}[unit]
        units.setdefault(key, []).append(own)
    values = []
    for _, members in sorted(units.items()):
        quality = []
        for k in range(3):
            tp, fp, fn = (sum(int(getattr(c, n)[k]) for c in members) for n in ("tp", "fp", "fn"))
            iou = sum(float(c.iou_sum[k]) for c in members)
            divisor = tp + fp / 2 + fn / 2
            if divisor == 0 and mean == "present":
                continue
            quality.append(iou / divisor if divisor else 0.0)
        values.append(sum(quality) / len(quality) if quality else float("nan"))
    return values


@pytest.mark.parametrize("mean", CLASS_MEANS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("seed", range(6))
def test_against_the_plain_way(seed: int, unit: str, mean: str) -> None:
    regions = random_regions(seed)
    expected = plain(regions, unit, mean)
    defined = [value for value in expected if not np.isnan(value)]
    found = pq(regions, convention(unit, mean))
    assert found.value == pytest.approx(np.mean(defined), rel=1e-12)
    assert found.units == (None if unit == "pooled" else len(defined))


@pytest.mark.parametrize("seed", range(6))
def test_a_summary_against_the_plain_way(seed: int) -> None:
    regions = random_regions(seed)
    found = summarise_team(regions, CLASSES)
    expected = plain(regions, "patient", "present")
    defined = [value for value in expected if not np.isnan(value)]
    assert list(found.patients) == list(found.metrics) == ["p0", "p1", "p2"]
    of_patients = [metrics.pq for metrics in found.metrics.values()]
    np.testing.assert_allclose(of_patients, expected, rtol=1e-12)
    assert found.averaged["pq"].n == len(defined)
    assert found.averaged["pq"].mean == pytest.approx(np.mean(defined), rel=1e-12)
    assert found.averaged["pq"].mean == pytest.approx(pq(regions, DISENTANGLED).value, rel=1e-12)
    (pooled,) = plain(regions, "pooled", "present")
    assert found.pooled.pq == pytest.approx(pooled, rel=1e-12)
    by_region = [unit_metrics(own).pq for _, own in regions]
    np.testing.assert_allclose(by_region, plain(regions, "region", "present"), rtol=1e-12)


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
    a, b = [("p", large), ("p", small)], [("p", poor), ("p", perfect)]
    by_region, by_patient = convention("region", "present"), convention("patient", "present")
    assert pq(a, by_region).value < pq(b, by_region).value
    assert pq(a, by_patient).value > pq(b, by_patient).value


def test_a_class_that_nobody_has() -> None:
    regions = [("p", counts((1, 0, 0, 0.8), (0, 0, 0, 0), (0, 0, 0, 0)))]
    means = {mean: pq(regions, convention("patient", mean)).value for mean in CLASS_MEANS}
    assert means["present"] == pytest.approx(0.8)
    assert means["all"] == pytest.approx(0.8 / 3)
    assert summarise_team(regions, CLASSES).averaged["pq"].mean == pytest.approx(0.8)


def test_a_team_without_regions_has_no_figure() -> None:
    found = summarise_team([], CLASSES)
    assert found.averaged["pq"].n == 0
    assert np.isnan(found.averaged["pq"].mean)
    assert np.isnan(found.pooled.pq)
    for unit in UNITS:
        for mean in CLASS_MEANS:
            assert np.isnan(pq([], convention(unit, mean)).value)


class _Patient(str):
    """A name that counts its comparisons."""

    n_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        type(self).n_compared += 1
        return str(self) == other


def test_a_summary_compares_no_patient_with_all_regions() -> None:
    one = counts((1, 0, 0, 0.8), (0, 0, 0, 0), (0, 0, 0, 0))
    regions = [(_Patient(f"p{k // 2:03}"), one) for k in range(400)]
    _Patient.n_compared = 0
    assert len(summarise_team(regions, CLASSES).patients) == 200
    assert _Patient.n_compared < 5 * len(regions)
