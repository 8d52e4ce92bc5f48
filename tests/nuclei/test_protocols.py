"""Protocols side by side, against scores computed one by one, and the published table."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.nuclei.challenge import (
    challenge_counts,
    evaluate_challenge,
    team_score,
)
from napari_panoptic.nuclei.protocols import (
    ChallengeRegion,
    Reason,
    alignments,
    challenge_versions,
    differences,
    protocol_table,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import (
    CORRECTED_PROTOCOL,
    Correction,
    challenge_protocol_name,
    protocol,
)
from tests.nuclei.test_challenge import CLASSES, SETTINGS, random_masks

AS_RUN: frozenset[Correction] = frozenset()


def scored(rng: np.random.Generator, patient: str, region: str) -> ChallengeRegion:
    shape = (14, 18)
    pair = LabelPair(
        LabelImage.from_class_masks(random_masks(rng, shape, restart=False), CLASSES, shape),
        LabelImage.from_class_masks(random_masks(rng, shape, restart=True), CLASSES, shape),
        None,
    )
    return ChallengeRegion(patient, region, evaluate_challenge(pair, SETTINGS).scores)


def team(seed: int) -> list[ChallengeRegion]:
    rng = np.random.default_rng(seed)
    return [scored(rng, "abb"[k % 3], f"r{k}") for k in range(6)]


def test_names_lead_to_their_settings_and_back() -> None:
    names = [challenge_protocol_name(version) for version in challenge_versions()]
    assert len(set(names)) == 8
    assert names[0] == "monusac-2020-as-run"
    assert names[-1] == CORRECTED_PROTOCOL
    for version, name in zip(challenge_versions(), names, strict=True):
        assert protocol(name).corrections == version


@pytest.mark.parametrize("seed", range(5))
def test_every_column_is_the_score_by_itself(seed: int) -> None:
    teams = {name: team(10 * seed + k) for k, name in enumerate("xyz")}
    table = protocol_table(teams, {"x": (0.5, 2), "z": (0.25, 2)})
    assert table.protocols[-1] == "disentangled"
    np.testing.assert_array_equal(table.scores[:, -1], [0.5, np.nan, 0.25])
    np.testing.assert_array_equal(table.ranks[:, -1], [1, 0, 2])
    for column, version in enumerate(challenge_versions()):
        for row, regions in enumerate(teams.values()):
            counts = [(r.patient, challenge_counts(r.scores, version)) for r in regions]
            assert table.scores[row, column] == team_score(counts, version)
            per_patient = Correction.PER_PATIENT in version
            assert table.n_units[row, column] <= (2 if per_patient else 6)


@pytest.mark.parametrize("seed", range(8))
def test_differences_of_matching_explain_the_counts(seed: int) -> None:
    regions = team(seed)
    matching = frozenset({Correction.MATCHING})
    change = 0
    for found in differences(regions, AS_RUN, matching):
        assert found.correction is Correction.MATCHING
        change += len(found.ids) * (1 if found.reason is Reason.ID_ALIKE else -1)
    as_run, corrected = (
        sum(int(challenge_counts(r.scores, version).fp.sum()) for r in regions)
        for version in (AS_RUN, matching)
    )
    assert corrected - as_run == change
    assert differences(regions, matching, matching) == []


@pytest.mark.parametrize("seed", range(8))
def test_differences_of_absent_classes_are_all_their_false_positives(seed: int) -> None:
    regions = team(seed)
    one, other = (
        frozenset({Correction.MATCHING}),
        frozenset({Correction.MATCHING, Correction.ABSENT_CLASS_FP}),
    )
    found = differences(regions, one, other)
    assert {d.reason for d in found} <= {Reason.ABSENT_CLASS}
    counted, not_counted = (
        sum(int(challenge_counts(r.scores, version).fp.sum()) for r in regions)
        for version in (other, one)
    )
    assert sum(len(d.ids) for d in found) == counted - not_counted


def test_weights_are_shares_of_the_whole() -> None:
    found = differences(team(3), AS_RUN, frozenset({Correction.PER_PATIENT}))
    shares = np.array([d.share for d in found])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    shift = np.abs(shares[:, 0] - shares[:, 1])
    assert (np.diff(shift) <= 0).all()


def test_a_region_with_nothing_left_has_its_share() -> None:
    shape = (6, 6)
    mask = np.zeros(shape, np.int32)
    mask[1:4, 1:4] = 1
    labels = LabelImage.from_class_masks({CLASSES[0]: mask}, CLASSES, shape)
    whole, cut = (
        evaluate_challenge(LabelPair(labels, labels, area), SETTINGS).scores
        for area in (None, np.ones(shape, bool))
    )
    regions = [ChallengeRegion("a", "whole", whole), ChallengeRegion("a", "cut", cut)]
    regions.append(ChallengeRegion("b", "alone", cut))
    found = differences(regions, AS_RUN, frozenset({Correction.PER_PATIENT}))
    shares = {d.region: d.share for d in found}
    assert shares == {"whole": (1 / 3, 0.5), "cut": (1 / 3, 0.0), "alone": (1 / 3, 0.5)}
    table = protocol_table({"x": regions}, versions=[AS_RUN, frozenset({Correction.PER_PATIENT})])
    np.testing.assert_array_equal(table.n_units, [[3, 2]])


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
    pair = LabelPair(
        LabelImage.from_class_masks({"E": reference}, CLASSES, shape),
        LabelImage.from_class_masks({"E": prediction}, CLASSES, shape),
    )
    score = evaluate_challenge(pair, SETTINGS).scores["E"]
    assert (score.tp, score.fp, score.fn) == (3, 2, 2)
    found = {a.first_id: a for a in alignments(score)}
    published = {
        44: 0.385, 45: 0.417, 46: 0.455, 47: 0.455, 48: 0.501,
        49: 0.501, 50: 0.455, 51: 0.417,
    }  # fmt: skip
    for first, pq in published.items():
        assert found[first].pq_as_run == pytest.approx(pq, abs=6e-4)
    (constant,) = {a.pq for a in found.values()}
    assert constant == pytest.approx(0.501)
    ends = list(found.values())
    assert ends[0].pq_as_run == ends[-1].pq_as_run == pytest.approx(0.385, abs=6e-4)
    assert max(a.pq_as_run for a in ends) == pytest.approx(0.501)


def test_nothing_to_align() -> None:
    empty = LabelImage.empty((4, 4), CLASSES)
    score = evaluate_challenge(LabelPair(empty, empty), SETTINGS).scores["E"]
    assert alignments(score) == []


def test_one_team_without_a_region() -> None:
    table = protocol_table({"x": []})
    assert np.isnan(table.scores).all()
    assert (table.ranks == 0).all()
    assert (table.n_units == 0).all()
    assert protocol_table({}).scores.shape == (0, 8)
