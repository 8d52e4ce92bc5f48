"""The versions of the challenge's scoring side by side, and the published table of its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from napari_panoptic.nuclei.class_masks import (
    BY_ID,
    BY_PAIR,
    ClassEvaluations,
    evaluate_classes,
)
from napari_panoptic.nuclei.conventions import (
    Ambiguity,
    RegionPlace,
    RegionSums,
    Sum,
    TeamSums,
    Value,
)
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.questions.engines.convention_objects import (
    ABSENT,
    NOT_BY_ID,
    Difference,
    differences,
)
from napari_panoptic.questions.engines.convention_objects import (
    BY_ID as COUNTED_BY_ID,
)
from napari_panoptic.statistics.means import spread
from napari_panoptic.values.conventions import (
    CORRECTED_PROTOCOL,
    Convention,
    Mistake,
    corrections_of,
    figures_of,
    score_of,
    with_corrections,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import protocol
from tests.nuclei.test_class_masks import CLASSES, SETTINGS, random_masks

AS_RUN: frozenset[Mistake] = frozenset()
MATCHING = frozenset({Mistake.MATCHING})
VERSIONS = [
    frozenset(chosen) for n in range(len(Mistake) + 1) for chosen in combinations(tuple(Mistake), n)
]
"""Every choice of corrections: none, each alone, each two, all."""


@dataclass(frozen=True, eq=False)
class Scored:
    """One team in one region: all classes together, and each alone."""

    patient: str
    region: str
    evaluation: Evaluation
    classes: ClassEvaluations

    @property
    def differences(self) -> list[Difference]:
        place = ("t", self.region)
        return differences(self.evaluation, self.classes, Ambiguity.CLIP, place)


def scored(pair: LabelPair, patient: str, region: str) -> Scored:
    return Scored(patient, region, evaluate(pair, SETTINGS), evaluate_classes(pair, SETTINGS))


def team(seed: int) -> list[Scored]:
    rng = np.random.default_rng(seed)
    shape = (14, 18)
    found = []
    for k in range(6):
        pair = LabelPair(
            LabelImage.from_class_masks(random_masks(rng, shape, restart=False), CLASSES, shape),
            LabelImage.from_class_masks(random_masks(rng, shape, restart=True), CLASSES, shape),
            None,
        )
        found.append(scored(pair, "abb"[k % 3], f"r{k}"))
    return found


def convention(version: frozenset[Mistake]) -> Convention:
    return score_of(with_corrections(version)).convention


def score(regions: Sequence[Scored], version: frozenset[Mistake]) -> Value:
    """Give the one number of a team by a version of the scoring."""
    sums = [RegionSums(own.classes.sums, None) for own in regions]
    (figure,) = figures_of(with_corrections(version))
    places = [RegionPlace(own.patient) for own in regions]
    return TeamSums(places, sums).figure(figure.formula, figure.convention)


def false_positives(regions: Sequence[Scored], version: frozenset[Mistake]) -> int:
    return sum(int(own.classes.counts(convention(version)).fp.sum()) for own in regions)


def test_names_lead_to_their_settings_and_back() -> None:
    names = [with_corrections(version) for version in VERSIONS]
    assert len(set(names)) == 8
    assert names[0] == "monusac-2020-as-run"
    assert names[-1] == CORRECTED_PROTOCOL
    assert len({convention(version) for version in VERSIONS}) == 8
    for version, name in zip(VERSIONS, names, strict=True):
        assert protocol(name).convention == name
        assert corrections_of(name) == version
    # Corrections in another order, or all of them one by one, are the same version.
    assert protocol("monusac-2020-as-run+per-patient+matching").convention == (
        "monusac-2020-as-run+matching+per-patient"
    )
    every = "+".join(["monusac-2020-as-run", *map(str, Mistake)])
    assert protocol(every) == protocol(CORRECTED_PROTOCOL)


@pytest.mark.parametrize("seed", range(5))
def test_every_version_is_the_mean_of_its_counts(seed: int) -> None:
    for regions in (team(10 * seed + k) for k in range(3)):
        for version in VERSIONS:
            is_by_patient = Mistake.PER_PATIENT in version
            units: dict[str, Counts] = {}
            for own in regions:
                unit = own.patient if is_by_patient else own.region
                counts = own.classes.counts(convention(version))
                units[unit] = units[unit] + counts if unit in units else counts
            wanted = spread([unit_metrics(counts).pq for counts in units.values()])
            found = score(regions, version)
            assert found.value == pytest.approx(wanted.mean, rel=1e-12, nan_ok=True)
            assert found.units == wanted.n <= (2 if is_by_patient else 6)


@pytest.mark.parametrize("seed", range(8))
def test_differences_of_matching_explain_the_counts(seed: int) -> None:
    regions = team(seed)
    change = 0
    for own in regions:
        for found in own.differences:
            if found.reason in (COUNTED_BY_ID, NOT_BY_ID):
                change += len(found.names) * (1 if found.reason == NOT_BY_ID else -1)
                # Without an annotated object no id is that of one: both rules count the same.
                number = CLASSES.index(found.class_name)
                assert own.classes.sums[BY_PAIR][number, Sum.HAD_REFERENCE]
    as_run, corrected = (false_positives(regions, version) for version in (AS_RUN, MATCHING))
    assert corrected - as_run == change


@pytest.mark.parametrize("seed", range(8))
def test_differences_of_absent_classes_are_all_their_false_positives(seed: int) -> None:
    regions = team(seed)
    found = [one for own in regions for one in own.differences if one.reason == ABSENT]
    not_counted, counted = (
        false_positives(regions, version)
        for version in (MATCHING, MATCHING | {Mistake.ABSENT_CLASS_FP})
    )
    assert sum(len(one.names) for one in found) == counted - not_counted


def test_a_region_with_nothing_left_is_a_unit() -> None:
    shape = (6, 6)
    mask = np.zeros(shape, np.int32)
    mask[1:4, 1:4] = 1
    labels = LabelImage.from_class_masks({CLASSES[0]: mask}, CLASSES, shape)
    whole, cut = (LabelPair(labels, labels, area) for area in (None, np.ones(shape, bool)))
    regions = [scored(whole, "a", "whole"), scored(cut, "a", "cut"), scored(cut, "b", "alone")]
    assert score(regions, AS_RUN) == Value(pytest.approx(1 / 3), 3)
    assert score(regions, frozenset({Mistake.PER_PATIENT})) == Value(0.5, 2)


def as_run_and_corrected(pair: LabelPair) -> tuple[float, float]:
    found = [scored(pair, "p", "r")]
    return score(found, AS_RUN).value, score(found, MATCHING).value


def test_the_published_table_of_label_alignments() -> None:
    """Table 1 of Foucart et al. (2021): which nuclei matched follows from its rows."""
    # Three of five nuclei match, with a summed IoU of 5 x 0.501.
    shape = (30, 500)
    reference, prediction = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for number, kept in enumerate((0, 835, 835, 0, 835)):
        x = 100 * number
        reference[10:20, x : x + 100] = 48 + number
        area = reference == 48 + number
        flat = np.flatnonzero(area)
        hit = flat[: kept or 100]
        prediction.flat[hit] = 1 + number
    annotated = LabelImage.from_class_masks({"E": reference}, CLASSES, shape)
    found = {}
    # From below the annotation's ids, of which the last is 52, to above.
    for first in range(48 - 5, 52 + 2):
        moved = np.where(prediction > 0, prediction - 1 + first, 0).astype(np.int32)
        pair = LabelPair(annotated, LabelImage.from_class_masks({"E": moved}, CLASSES, shape))
        sums = evaluate_classes(pair, SETTINGS).sums
        assert sums[BY_PAIR][0, [Sum.TP, Sum.FP, Sum.FN]].tolist() == [3, 2, 2]
        assert sums[BY_ID][0, [Sum.TP, Sum.FN]].tolist() == [3, 2]
        found[first] = as_run_and_corrected(pair)
    published = {
        44: 0.385, 45: 0.417, 46: 0.455, 47: 0.455, 48: 0.501,
        49: 0.501, 50: 0.455, 51: 0.417,
    }  # fmt: skip
    for first, pq in published.items():
        assert found[first][0] == pytest.approx(pq, abs=6e-4)
    (constant,) = {corrected for _, corrected in found.values()}
    assert constant == pytest.approx(0.501)
    as_run = [pq for pq, _ in found.values()]
    assert as_run[0] == as_run[-1] == pytest.approx(0.385, abs=6e-4)
    assert max(as_run) == pytest.approx(0.501)


def test_nothing_to_score() -> None:
    empty = LabelImage.empty((4, 4), CLASSES)
    nothing = scored(LabelPair(empty, empty), "p", "r")
    assert nothing.differences == []
    for version in VERSIONS:
        found = score([nothing], version)
        assert np.isnan(found.value)
        assert found.units == 0


def test_one_team_without_a_region() -> None:
    for version in VERSIONS:
        assert np.isnan(score([], version).value)
