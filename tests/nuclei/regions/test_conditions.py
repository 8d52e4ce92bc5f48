"""Many conditions at once: what single evaluations give, from files that are read once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.labels import colour_coded
from napari_panoptic.nuclei import class_masks, evaluate
from napari_panoptic.nuclei.conventions import RegionPlace, TeamSums
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.nuclei.regions import reading as pipeline
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
from napari_panoptic.nuclei.regions.conditions import (
    LESSONS_NEIGHBOURS,
    Condition,
    lessons_conditions,
    radius_conditions,
    robustness,
    shift_conditions,
    star,
    threshold_conditions,
)
from napari_panoptic.nuclei.regions.experiment import (
    Experiment,
    cohort_robustness,
)
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.nuclei.regions.shifts import SHIFTS, Shift, shifted
from napari_panoptic.statistics.means import spread
from napari_panoptic.values.cohort import MONUSAC_CLASSES, Cohort, Source
from napari_panoptic.values.conventions import (
    CHALLENGE_PROTOCOL,
    DEFAULT_PROTOCOL,
    Mistake,
    with_corrections,
)
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import (
    PROTOCOLS,
    EvaluationSettings,
    Outlines,
    Restoration,
)
from tests.support.one_by_one import evaluate_alone
from tests.support.paths import SHARED_CASES, needs_shared_cases
from tests.support.small_cohort import REGIONS, TEAMS, mask_path, submission_folder

FIRST = REGIONS[0]
QUICK = EvaluationSettings(distances=False)
AS_RUN = QUICK.replaced(convention=CHALLENGE_PROTOCOL)
CLASSES = MONUSAC_CLASSES.names
DILATED = EvaluationSettings(restoration=Restoration.BORDER_DILATED)


def protocol_conditions(*, source: Source | None = None) -> tuple[Condition, ...]:
    """Give the usual evaluation, and each class alone on its own masks."""
    names = (DEFAULT_PROTOCOL, CHALLENGE_PROTOCOL)
    return tuple(Condition(name, PROTOCOLS[name], source) for name in names)


UNSHIFTED = (
    *lessons_conditions(),
    *radius_conditions(),
    *threshold_conditions(),
    *protocol_conditions(),
    Condition("hover-net", QUICK.replaced(convention="hover-net")),
    *protocol_conditions(source=Source.SUBMISSION),
    *lessons_conditions(QUICK, source=Source.SUBMISSION),
    Condition("clip both", EvaluationSettings(outlines=Outlines.BOTH_CLIPPED)),
    Condition("keep", DILATED.replaced(ambiguous="keep")),
    Condition("no such form", EvaluationSettings(), Source.LABELS),
    Condition("named form", EvaluationSettings(), Source.COLOUR_CODED),
    Condition("corrected", EvaluationSettings(convention=f"{CHALLENGE_PROTOCOL}+matching")),
)

OF_EVERY_KIND = (
    *lessons_conditions(),
    *radius_conditions()[::4],
    *threshold_conditions()[::3],
    *protocol_conditions()[:2],
    *UNSHIFTED[-(5 + 4) :],
)
"""Fewer, for cohorts that are read differently: the last nine are of forms and other rules."""

Alone = dict[tuple[str, EvaluationSettings, Source | None], list[RegionResult]]
"""Region, settings and format -> what a single evaluation gives."""


@pytest.fixture(scope="module")
def alone() -> Alone:
    """Results of single evaluations of `cohort`, each computed once."""
    return {}


def everybody(cohort: Cohort) -> list[str]:
    return [team.name for team in cohort.teams]


def same_counts(one: Counts | None, other: Counts | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(Counts))


def same_sums(one: RegionResult, other: RegionResult) -> bool:
    if one.sums is None or other.sums is None:
        return one.sums is other.sums
    a, b = one.sums, other.sums
    return (
        list(a.sums) == list(b.sums)
        and all(np.array_equal(a.sums[key], b.sums[key]) for key in a.sums)
        and (a.types is None) == (b.types is None)
        and (a.types is None or np.array_equal(a.types, b.types))
    )


def assert_same(found: RegionResult, wanted: RegionResult, what: str) -> None:
    """Every figure, bit by bit, and every finding."""
    for name in ("team", "patient", "region", "findings"):
        assert getattr(found, name) == getattr(wanted, name), (what, name)
    assert (found.objects is None) == (wanted.objects is None), what
    if found.objects is not None:
        pd.testing.assert_frame_equal(found.objects, wanted.objects, check_exact=True, obj=what)
    assert same_counts(found.counts, wanted.counts), what
    assert same_sums(found, wanted), what


def assert_all_same(
    cohort: Cohort, conditions: tuple[Condition, ...], known: Alone | None = None
) -> None:
    """Compare with each condition alone; `known` keeps those results for other tests."""
    names, known = everybody(cohort), {} if known is None else known
    for region in cohort.regions:
        together = Experiment(names, conditions).evaluate(cohort, region)
        assert len(together) == len(conditions)
        for condition, results in zip(conditions, together, strict=True):
            key = region.name, condition.settings, condition.source
            if key not in known:
                known[key] = evaluate_alone(cohort, region, names, *key[1:])
            for found, wanted in zip(results, known[key], strict=True):
                what = f"{condition.name}, {wanted.team}, {wanted.region}"
                assert_same(found, wanted, what)


# --- the same as single evaluations -----------------------------------------------------------


@pytest.mark.parametrize(
    "number", [0, 1, 4, *(pytest.param(number, marks=pytest.mark.long) for number in (2, 3))]
)
def test_every_condition_gives_what_it_gives_alone(
    small_cohort: Cohort, alone: Alone, number: int
) -> None:
    cohort = replace(small_cohort, regions=(small_cohort.regions[number],))
    assert_all_same(cohort, UNSHIFTED, alone)


@pytest.mark.long
def test_the_order_of_conditions_makes_no_difference(small_cohort: Cohort, alone: Alone) -> None:
    """Whatever was computed before, without distances or by another rule."""
    mixed = (*lessons_conditions(QUICK), *UNSHIFTED)
    order = np.random.default_rng(3).permutation(len(mixed))
    assert_all_same(small_cohort, tuple(mixed[k] for k in order), alone)


def test_what_cannot_be_read_is_the_same_finding(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", FIRST).unlink()  # its submission is used instead
    mask_path(own_folder, "beta", REGIONS[1]).write_bytes(b"no mask")
    shutil.rmtree(submission_folder(own_folder, "alpha", REGIONS[2]))
    next((own_folder).rglob(f"{REGIONS[3].name}.xml")).write_text("<Annotations", encoding="utf-8")
    cohort = open_cohort(own_folder)
    assert_all_same(replace(cohort, regions=cohort.regions[:4]), OF_EVERY_KIND)
    results = Experiment(TEAMS, OF_EVERY_KIND).evaluate(cohort, cohort.regions[0])
    kinds = {f.kind for found in results for result in found for f in result.findings}
    assert {FindingKind.FALLBACK, FindingKind.MISSING} <= kinds


def test_a_colour_coded_annotation_is_restored_by_every_way(own_folder: Path) -> None:
    """Then both sides depend on the restoration, and label images are paired anew with each."""
    description = """
[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
reference.colour-coded = "MoNuSAC_Testing_Color_Coded_Masks/{patient}/{region}_RGB_mask.tif.tif"
predictions.colour-coded = "Teams/{team}/{patient}/{region}_mask.png.tif"
predictions.submission = "Submissions/{team}/{patient}/{region}/{class}/*.mat"
"""
    (own_folder / "cohort.toml").write_text(description, encoding="utf-8")
    cohort = open_cohort(own_folder)
    assert cohort.regions[0].reference is not None
    assert cohort.regions[0].reference.source == Source.COLOUR_CODED
    assert_all_same(replace(cohort, regions=cohort.regions[:2]), OF_EVERY_KIND)


def test_no_conditions_no_teams(small_cohort: Cohort) -> None:
    region = small_cohort.regions[0]
    assert Experiment(TEAMS, ()).evaluate(small_cohort, region) == []
    assert Experiment((), UNSHIFTED[:2]).evaluate(small_cohort, region) == [[], []]


def test_sums_alone_are_the_same_sums(small_cohort: Cohort) -> None:
    region = small_cohort.regions[0]
    whole = Experiment(TEAMS, UNSHIFTED).evaluate(small_cohort, region)
    sums = Experiment(TEAMS, UNSHIFTED, with_objects=False).evaluate(small_cohort, region)
    for one, other in zip(chain(*whole), chain(*sums), strict=True):
        assert other.objects is None
        assert same_counts(one.counts, other.counts)
        assert same_sums(one, other)


def test_objects_of_some_conditions_and_sums_of_others(small_cohort: Cohort) -> None:
    region = small_cohort.regions[0]
    whole = Experiment(TEAMS, UNSHIFTED).evaluate(small_cohort, region)
    work = Experiment(TEAMS, UNSHIFTED[:2], sums_of=UNSHIFTED[2:])
    assert work.all_conditions == UNSHIFTED
    for number, (results, wanted) in enumerate(
        zip(work.evaluate(small_cohort, region), whole, strict=True)
    ):
        for one, other in zip(results, wanted, strict=True):
            assert (one.objects is None) == (number >= 2)
            assert same_counts(one.counts, other.counts)
            assert same_sums(one, other)


# --- the least work ---------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch, *functions: tuple[Any, str]) -> Counter[str]:
    """Count the calls of functions, given as module and name."""
    counter: Counter[str] = Counter()

    def count_calls(module: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            counter[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, call)

    for module, name in functions:
        count_calls(module, name)
    return counter


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often files are read, masks restored and overlaps counted."""
    return counted(
        monkeypatch,
        (pipeline, "load_masks"),
        (colour_coded, "restore"),
        (evaluate, "overlap_table"),
    )


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often an ambiguous policy is applied, and objects are matched."""
    return counted(monkeypatch, (evaluate, "judge"), (evaluate, "match"))


def test_files_are_read_once_and_overlaps_counted_once(
    small_cohort: Cohort, calls: Counter[str]
) -> None:
    conditions = (*lessons_conditions(), *threshold_conditions(), *radius_conditions())
    Experiment(("alpha",), conditions).evaluate(small_cohort, small_cohort.regions[0])
    # The annotation and one mask; border-removed, and radius -3 to 5 with 1 among both.
    assert calls == {"load_masks": 2, "restore": 10, "overlap_table": 10}


def test_a_form_without_restoration_is_paired_once(
    small_cohort: Cohort, calls: Counter[str]
) -> None:
    conditions = (
        *lessons_conditions(source=Source.SUBMISSION),
        *radius_conditions(source=Source.SUBMISSION),
    )
    Experiment(("alpha",), conditions).evaluate(small_cohort, small_cohort.regions[0])
    assert calls == {"load_masks": 2, "overlap_table": 1}


def test_a_form_without_restoration_is_matched_once_under_each_rule(
    small_cohort: Cohort, stages: Counter[str]
) -> None:
    base = EvaluationSettings(distances=False)
    conditions = (
        *lessons_conditions(base, source=Source.SUBMISSION),
        *radius_conditions(base=base, source=Source.SUBMISSION),
        *threshold_conditions(base=base, source=Source.SUBMISSION),
    )
    Experiment(("alpha",), (), sums_of=conditions).evaluate(small_cohort, small_cohort.regions[0])
    # Strict IoU at 19 thresholds, 0.5 among them, and the centroid rule.
    assert stages == {"judge": 1, "match": 20}


def test_shifts_restore_nothing_anew(small_cohort: Cohort, calls: Counter[str]) -> None:
    Experiment(("alpha",), shift_conditions()).evaluate(small_cohort, small_cohort.regions[0])
    assert calls == {"load_masks": 2, "restore": 1, "overlap_table": 9}


def test_the_challenge_pairs_every_class_once(
    small_cohort: Cohort, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = Counter[str]()
    original = class_masks.class_pairs

    def class_pairs(*sides: Any) -> Any:
        scored["class_pairs"] += 1
        return original(*sides)

    monkeypatch.setattr(class_masks, "class_pairs", class_pairs)
    conditions = tuple(
        Condition(f"{threshold}", AS_RUN.replaced(iou_threshold=threshold))
        for threshold in (0.3, 0.5, 0.7)
    )
    Experiment(("alpha",), conditions).evaluate(small_cohort, small_cohort.regions[0])
    assert scored == {"class_pairs": 1}
    assert calls["overlap_table"] == len(CLASSES)


# --- shifts -----------------------------------------------------------------------------------


def slow_shift(image: np.ndarray, shift: Shift) -> np.ndarray:
    moved = np.zeros_like(image)
    height, width = image.shape
    for y, x in np.argwhere(image > 0).tolist():
        if 0 <= y + shift[0] < height and 0 <= x + shift[1] < width:
            moved[y + shift[0], x + shift[1]] = image[y, x]
    return moved


@pytest.mark.parametrize("shift", [*SHIFTS, (3, -2), (-30, 0), (0, 39), (40, 0), (-41, 1), (2, 90)])
def test_pixels_move_as_whole(shift: Shift) -> None:
    rng = np.random.default_rng(1)
    ids = np.kron(rng.permutation(20)[:16].reshape(4, 4), np.ones((10, 10), int))
    masks = {CLASSES[0]: ids.astype(np.int32)}
    labels = LabelImage.from_class_masks(masks, CLASSES, ids.shape)
    moved = shifted(labels, shift)
    wanted = slow_shift(labels.id_image(), shift)
    np.testing.assert_array_equal(moved.id_image(), wanted)
    np.testing.assert_array_equal(moved.ids, np.unique(wanted[wanted > 0]))
    np.testing.assert_array_equal(
        moved.class_masks[CLASSES[0]], slow_shift(masks[CLASSES[0]], shift)
    )
    assert (
        sorted([*moved.ids.tolist(), *(lost.id for lost in moved.vanished)]) == labels.ids.tolist()
    )
    assert (moved is labels) == (shift == (0, 0))


def test_a_shift_gives_what_shifted_files_give(own_folder: Path, tmp_path: Path) -> None:
    """Masks with room to the edge, moved on disk and evaluated alone."""
    for region in REGIONS[:2]:
        rgb = tifffile.imread(mask_path(own_folder, "alpha", region))
        rgb[:3] = rgb[-3:] = rgb[:, :3] = rgb[:, -3:] = 0
        tifffile.imwrite(mask_path(own_folder, "alpha", region), rgb, photometric="rgb")
    conditions = (
        *shift_conditions(),
        *shift_conditions([(2, -2)], DILATED),
        *(Condition(f"challenge {shift}", AS_RUN, None, shift) for shift in SHIFTS),
    )
    cohort = open_cohort(own_folder)
    together = {
        region.name: Experiment(("alpha",), conditions).evaluate(cohort, region)
        for region in cohort.regions[:2]
    }
    for number, condition in enumerate(conditions):
        moved = shutil.copytree(own_folder, tmp_path / f"moved {number}")
        for region in REGIONS[:2]:
            path = mask_path(moved, "alpha", region)
            tifffile.imwrite(
                path,
                np.roll(tifffile.imread(path), condition.shift, axis=(0, 1)),
                photometric="rgb",
            )
        cohort_there = open_cohort(moved)
        for region in cohort_there.regions[:2]:
            (alone,) = evaluate_alone(cohort_there, region, ["alpha"], condition.settings, None)
            (found,) = together[region.name][number]
            assert found.objects is not None
            assert alone.objects is not None
            pd.testing.assert_frame_equal(found.objects, alone.objects, check_exact=True)
            assert same_counts(found.counts, alone.counts), (condition.name, region.name)
            assert same_sums(found, alone)


def test_what_leaves_the_image_is_said(small_cohort: Cohort) -> None:
    conditions = shift_conditions([(0, 0), (FIRST.shape[0], 0)], QUICK)
    still, gone = Experiment(("alpha",), conditions).evaluate(small_cohort, small_cohort.regions[0])
    outside = [f for f in gone[0].findings if f.kind is FindingKind.OUTSIDE_IMAGE]
    (finding,) = [f for f in outside if f.team == "alpha"]
    assert still[0].counts is not None
    assert gone[0].counts is not None
    assert gone[0].counts.confusion[:, 1:].sum() == 0
    n_predicted = (still[0].objects["side"] == "prediction").sum()  # type: ignore[index]
    assert finding.count == len(finding.object_ids) == n_predicted
    assert (finding.team, finding.region) == ("alpha", FIRST.name)


# --- robustness -------------------------------------------------------------------------------


def counts_with(tp: int, fp: int, iou: float) -> Counts:
    zero = Counts.zero(("A",))
    matrix = np.array([[0, fp], [0, tp]])
    one = {"tp": np.array([tp]), "fp": np.array([fp]), "iou_sum": np.array([tp * iou])}
    values = {f.name: getattr(zero, f.name) for f in fields(Counts)} | one
    return Counts(**{**values, "confusion": matrix})


def test_curves_are_means_over_patients_and_ranks_change_where_they_cross() -> None:
    steady = [("p", counts_with(2, 0, 0.6)), ("q", counts_with(2, 0, 0.8))]
    falls = [[("p", counts_with(2, 0, iou))] for iou in (0.9, 0.8, 0.5)]
    nothing: list[tuple[str, Counts]] = []
    found = robustness(
        {"steady": [steady] * 3, "falls": falls, "none": [nothing] * 3}, ["a", "b", "c"], ("A",)
    )
    np.testing.assert_allclose(found.pq[0], 0.7, rtol=1e-15)
    np.testing.assert_allclose(found.pq[1], [0.9, 0.8, 0.5], rtol=1e-15)
    assert np.isnan(found.pq[2]).all()
    assert found.ranks.tolist() == [[2, 2, 1], [1, 1, 2], [0, 0, 0]]
    assert found.n_patients.tolist() == [[2, 2, 2], [1, 1, 1], [0, 0, 0]]
    changes = [(c.team, c.conditions, c.ranks) for c in found.changes]
    assert changes == [("steady", ("b", "c"), (2, 1)), ("falls", ("b", "c"), (1, 2))]


def test_neighbours_are_those_named() -> None:
    teams = {
        "one": [[("p", counts_with(1, 0, iou))] for iou in (0.9, 0.6, 0.9, 0.6)],
        "two": [[("p", counts_with(1, 0, 0.7))]] * 4,
    }
    names = [condition.name for condition in lessons_conditions()]
    grid = robustness(teams, names, ("A",), neighbours=LESSONS_NEIGHBOURS)
    assert {c.conditions for c in grid.changes} == {(names[0], names[1]), (names[2], names[3])}
    shifts = robustness(teams, names, ("A",), neighbours=star(4))
    assert {c.conditions for c in shifts.changes} == {(names[0], names[1]), (names[0], names[3])}


def test_families_are_named_apart() -> None:
    families = (
        lessons_conditions(),
        radius_conditions(),
        threshold_conditions(),
        shift_conditions(),
    )
    assert [len(family) for family in families] == [4, 9, 19, 9]
    names = [condition.name for family in families for condition in family]
    assert len(set(names)) == len(names)
    assert [c.settings.radius for c in families[1]] == list(range(-3, 6))
    assert families[2][0].settings.iou_threshold == 0.05
    assert families[2][-1].settings.iou_threshold == 0.95
    assert {c.shift for c in families[3]} == {(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)}


def test_all_corrections_follow_from_the_class_sums(small_cohort: Cohort) -> None:
    conditions = protocol_conditions()
    results = [
        result
        for region in small_cohort.regions
        for result in Experiment(TEAMS, conditions).evaluate(small_cohort, region)[1]
    ]
    for choice in range(2 ** len(Mistake)):
        corrections = frozenset(c for bit, c in enumerate(Mistake) if choice >> bit & 1)
        settings = AS_RUN.replaced(convention=with_corrections(corrections))
        found = [
            result
            for region in small_cohort.regions
            for result in evaluate_alone(small_cohort, region, TEAMS, settings, None)
        ]
        by_counts = CohortEvaluation(small_cohort, settings, "own", found)
        for team in TEAMS:
            score = score_of_sums([r for r in results if r.team == team], settings)
            np.testing.assert_equal(
                score, score_of_sums([r for r in found if r.team == team], settings)
            )
            np.testing.assert_equal(score, by_counts.score(team))
            assert score == pytest.approx(
                score_of_counts([r for r in found if r.team == team], corrections), rel=1e-12
            )


def score_of_sums(results: list[RegionResult], settings: EvaluationSettings) -> float:
    """Compute the one number of a team from what conventions need."""
    known = [(RegionPlace(r.patient), r.sums) for r in results if r.sums is not None]
    _, formula, convention, *_ = settings.score
    return TeamSums([p for p, _ in known], [s for _, s in known]).figure(formula, convention).value


def score_of_counts(results: list[RegionResult], corrections: frozenset[Mistake]) -> float:
    """Average the PQ of the counts of regions or patients."""
    units: dict[str, Counts] = {}
    for result in results:
        unit = result.patient if Mistake.PER_PATIENT in corrections else result.region
        if result.counts is not None:
            units[unit] = units[unit] + result.counts if unit in units else result.counts
    return spread([unit_metrics(counts).pq for counts in units.values()]).mean


# --- the lessons paper's experiment on real regions -------------------------------------------


@needs_shared_cases
def test_the_two_by_two_table_of_real_regions() -> None:
    cohort = open_cohort(SHARED_CASES / "monusac")
    expected = json.loads((cohort.root / "expected.json").read_text("utf-8"))["disentangled"]
    plan = Experiment(tuple(expected), lessons_conditions(QUICK), with_objects=False)
    regions = (plan.evaluate(cohort, region) for region in cohort.regions)
    found = cohort_robustness(regions, plan, cohort.scheme.names, neighbours=LESSONS_NEIGHBOURS)
    assert found.teams == tuple(expected)
    for row, team in enumerate(found.teams):
        for column, name in enumerate(found.conditions):
            patients = expected[team][name].values()
            for figure in ("PQ", "SQ", "DQ"):
                wanted = np.mean([p[figure] for p in patients if p[figure] is not None])
                value = getattr(found, figure.lower())[row, column]
                assert value == pytest.approx(wanted, rel=1e-9), (team, name, figure)
            assert found.n_patients[row, column] == len(patients)
    ours = {(c.team, c.conditions) for c in found.changes}
    means = {
        name: {t: np.mean([p["PQ"] for p in expected[t][name].values()]) for t in expected}
        for name in found.conditions
    }
    ranks = {
        name: {t: 1 + sum(v > values[t] for v in values.values()) for t in values}
        for name, values in means.items()
    }
    pairs = [(found.conditions[a], found.conditions[b]) for a, b in LESSONS_NEIGHBOURS]
    assert ours == {
        (t, pair) for pair in pairs for t in expected if ranks[pair[0]][t] != ranks[pair[1]][t]
    }
