"""What mending changes: exact for a complete review, and intervals that hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tifffile
from PIL import Image

from benchmarks.reviews import mended, mending_coverage, plant, together
from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.actions import Claim, apply, mend_of_verdicts
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.corrections import CorrectionRequest
from napari_panoptic.review.plan.after_mending import MENDED, after_mending, reviewed_objects
from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.review.plan.design import draw
from napari_panoptic.review.plan.estimates import ItemVerdict
from napari_panoptic.review.plan.mending import annotated_cohort
from napari_panoptic.review.plan.mending_tables import figure_records, sentences
from napari_panoptic.review.plan.units import SIDES, ItemKind, population
from napari_panoptic.values.settings import EvaluationSettings, Matching
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.survey_oracle import least

SETTINGS = EvaluationSettings(distances=False)
RIGHT, WRONG, BOTH = Verdict.ANNOTATION_RIGHT, Verdict.PREDICTION_RIGHT, Verdict.BOTH_WRONG
N_REVIEWS = 40


def request(folder, team, claim=Claim.KEEP, settings=SETTINGS):
    return CorrectionRequest(open_cohort(folder), (), team, settings, claim=claim)


def complete_plan(folder, team):
    units = population(open_cohort(folder), (team,)).units
    return draw(units, len(units), seed=1)


def random_answers(plan, seed, shares=(0.4, 0.4, 0.2)):
    """Return a random verdict on each item; tiles have one nucleus each."""
    verdicts = np.random.default_rng(seed).choice(3, len(plan), p=shares)
    tiles = plan.units.is_kind(ItemKind.BACKGROUND)
    return [
        ItemVerdict(k, RIGHT, 1) if tiles[k - 1] else ItemVerdict(k, (RIGHT, WRONG, BOTH)[verdict])
        for k, verdict in enumerate(verdicts, start=1)
    ]


# --- the slow way -----------------------------------------------------------------------------


def figures_of(sums):
    """Compute precision, recall, F1 and PQ of each class and of all from sums of a team."""
    tp, fp, fn, iou = (sums[name] for name in ("tp", "fp", "fn", "iou"))
    with np.errstate(invalid="ignore", divide="ignore"):
        by_class = [tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn)]
        by_class.append(iou / (tp + fp / 2 + fn / 2))
    pairs, spurious, missed = sums["pairs"], sums["spurious"], sums["missed"]
    overall = [
        pairs / (pairs + spurious),
        pairs / (pairs + missed),
        2 * pairs / (2 * pairs + spurious + missed),
        np.nanmean(by_class[-1]),
    ]
    return np.array([[*values, value] for values, value in zip(by_class, overall, strict=True)])


def slow_sums(evaluation):
    """Return the sums of a fresh evaluation, from its tables."""
    found, objects = evaluation.by_class, evaluation.objects
    is_pair = objects["status"].isin(["TP", "misclassified"]) & (objects["side"] == "reference")
    return {
        "tp": found["tp"].to_numpy(float),
        "fp": found["fp"].to_numpy(float),
        "fn": found["fn"].to_numpy(float),
        "iou": found["iou_sum"].to_numpy(float),
        "pairs": int(is_pair.sum()),
        "spurious": int((objects["status"] == "FP").sum()),
        "missed": int((objects["status"] == "FN").sum()),
    }


def fresh(pair):
    """Evaluate a pair from its pixels."""
    sides = [pair.reference, pair.prediction]
    classes = [
        dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
        for labels in sides
    ]
    return evaluate_pair(
        *(labels.id_image() for labels in sides),
        reference_classes=classes[0],
        prediction_classes=classes[1],
        ambiguous=pair.ambiguous,
        settings=SETTINGS,
        mpp=pair.mpp,
        class_names=pair.class_names,
    )


def slow_figures(work, plan, answers, team):
    """Mend one object after the other in a new copy, and add up what changes."""
    verdict_of = dict(zip(plan.units.keys, [a.verdict for a in answers], strict=True))
    total = None
    for region in work.cohort.regions:
        held = HeldRegion(work.cohort, region, SETTINGS)
        reviewed = held.evaluate(work.team, SETTINGS).evaluation
        own = held.evaluate(team, SETTINGS).evaluation
        if own is None:
            continue
        before = slow_sums(fresh(own.pair))
        total = before if total is None else {k: total[k] + before[k] for k in before}
        units = plan.units[(plan.units.region == region.name) & (plan.units.id >= 0)]
        for key, side, id_ in zip(units.keys, units.side, units.id.tolist(), strict=True):
            target = Side(str(SIDES[side])), id_
            mend = mend_of_verdicts(
                reviewed, {target: verdict_of[key]}, claim=work.claim, covered=work.covered
            )
            edited = EditedPair(own.pair)
            apply(mend, edited)
            after = slow_sums(fresh(edited.pair()))
            total = {k: total[k] + after[k] - before[k] for k in total}
    return figures_of(total)


def estimated(found, team):
    rows = [row for row in found.rows if row.team == team]
    return {
        name: np.array([getattr(row, name) for row in rows]).reshape(len(MENDED), -1)
        for name in ("as_annotated", "after", "change", "low", "high", "items")
    }


@pytest.mark.parametrize(("team", "claim"), [("alpha", Claim.KEEP), ("beta", Claim.TAKE)])
def test_a_complete_review_gives_the_sum_of_all_changes(small_folder, team, claim):
    work, plan = request(small_folder, team, claim), complete_plan(small_folder, team)
    answers = random_answers(plan, seed=2)
    found = after_mending(work, plan, answers)
    assert found.decided == found.objects == (plan.units.id >= 0).sum()
    for other in ("alpha", "beta"):
        rows = estimated(found, other)
        expected = slow_figures(work, plan, answers, other)
        np.testing.assert_allclose(rows["after"], expected, atol=1e-9)
        for bound in ("low", "high"):
            np.testing.assert_allclose(rows[bound], rows["change"], atol=1e-9)
        np.testing.assert_allclose(rows["change"], rows["after"] - rows["as_annotated"])


def test_changes_of_objects_apart_add_up_to_the_corrected_annotation(nuclei_sample):
    case = plant(open_cohort(nuclei_sample), "careful", "usual")
    np.testing.assert_allclose(case.truth, together(case), atol=1e-9)
    rows = mended(case, len(case.units), seed=3)
    found = np.array([row.after for row in rows]).reshape(case.truth.shape)
    np.testing.assert_allclose(found, case.truth, atol=1e-9)


def boxes(*places):
    image = np.zeros((48, 64), np.uint16)
    for id_, (y, x, height, width) in enumerate(places, start=1):
        image[y : y + height, x : x + width] = id_
    return image


@pytest.fixture
def two_teams(tmp_path):
    """One region: one misses a nucleus of three, and has one more; the other agrees with both."""
    reference = boxes((2, 2, 8, 8), (2, 20, 8, 8), (20, 2, 8, 8))
    teams = {
        "one": boxes((2, 2, 8, 8), (2, 20, 8, 8), (30, 40, 8, 8)),
        "other": boxes((2, 2, 8, 8), (20, 2, 8, 8), (30, 40, 8, 4)),
    }
    for name, image in {"annotation": reference, **teams}.items():
        (tmp_path / name).mkdir()
        tifffile.imwrite(tmp_path / name / "r.tif", image)
        rows = "".join(f"{id_},A\n" for id_ in range(1, int(image.max()) + 1))
        (tmp_path / name / "r.csv").write_text(f"id,class\n{rows}")
    (tmp_path / "images").mkdir()
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(tmp_path / "images" / "r.png")
    (tmp_path / "cohort.toml").write_text(
        '[classes]\nA = [255, 0, 0]\n[files]\nimage = "images/{region}.png"\n'
        'reference.labels = "annotation/{region}.tif"\n'
        'predictions.labels = "{team}/{region}.tif"\n'
    )
    return tmp_path


def verdicts_by_kind(plan, wanted):
    return [
        ItemVerdict(
            k, wanted.get(ItemKind(kind), RIGHT), 0 if kind == ItemKind.BACKGROUND else None
        )
        for k, kind in enumerate([list(ItemKind)[code] for code in plan.units.kind], start=1)
    ]


def test_figures_of_a_team_that_was_not_reviewed_change_as_counted_by_hand(two_teams):
    plan = complete_plan(two_teams, "one")
    wrong = {ItemKind.FN: WRONG, ItemKind.FP: WRONG}
    found = after_mending(request(two_teams, "one"), plan, verdicts_by_kind(plan, wrong))
    one, other = (estimated(found, team) for team in ("one", "other"))
    pq = MENDED.index(Quantity.PQ)
    # One: 2 TP, 1 FP, 1 FN; then the FN is gone, and the FP is a TP.
    assert one["as_annotated"][pq].tolist() == [pytest.approx(2 / 3)] * 2
    assert one["after"].tolist() == [[1, 1]] * 4
    # Other: 2 TP, 1 FP, 1 FN. A nucleus that it found is no longer annotated, and its FP overlaps
    # half of the new one.
    assert other["as_annotated"][pq].tolist() == [pytest.approx(2 / 3)] * 2
    held = HeldRegion(open_cohort(two_teams), open_cohort(two_teams).regions[0], SETTINGS)
    pair = held.evaluate("other", SETTINGS).evaluation.pair
    mended = evaluate_pair(
        boxes((2, 2, 8, 8), (2, 20, 8, 8), (30, 40, 8, 8)),
        pair.prediction.id_image(),
        reference_classes=dict.fromkeys((1, 2, 3), "A"),
        prediction_classes=dict.fromkeys((1, 2, 3), "A"),
        class_names=("A",),
        settings=SETTINGS,
    )
    np.testing.assert_allclose(other["after"], figures_of(slow_sums(mended)))
    assert found.changing == 2


# --- the sample -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_given", [15, 25, 40])
def test_reviewed_objects_stand_for_all_objects(small_folder, small_units, n_given):
    units = small_units[small_units.team == "alpha"]
    plan = draw(units, 40, seed=5)
    objects = annotated_cohort(request(small_folder, "alpha")).objects
    answers = verdicts_by_kind(plan, {})[:n_given]
    sample = reviewed_objects(plan, "alpha", objects, answers)
    assert not sample.absent
    assert sample.weight.sum() == pytest.approx(len(objects))
    assert len(sample.rows) == np.count_nonzero(plan.units.id[:n_given] >= 0)


def test_an_outcome_without_a_verdict_leaves_the_figures_empty(small_folder):
    plan = complete_plan(small_folder, "alpha")
    is_fp = plan.units.is_kind(ItemKind.FP)
    answers = [a for a in verdicts_by_kind(plan, {ItemKind.FN: WRONG}) if not is_fp[a.item - 1]]
    found = after_mending(request(small_folder, "alpha"), plan, answers)
    assert all(math.isnan(row.change) and math.isnan(row.low) for row in found.rows)
    assert any("no FP of alpha was reviewed" in finding.message for finding in found.findings)
    assert "cannot be estimated yet" in sentences(found)[0]


def test_items_that_could_not_be_judged_and_tiles_change_nothing(small_folder):
    work, plan = request(small_folder, "alpha"), complete_plan(small_folder, "alpha")
    answers = random_answers(plan, seed=4)
    (doubted, *_) = (a.item for a in answers if a.verdict is not RIGHT)
    unclear = [
        ItemVerdict(a.item, Verdict.CANNOT_TELL) if a.item == doubted else a for a in answers
    ]
    without = [a for a in answers if a.item != doubted and plan.units.id[a.item - 1] >= 0]
    one, other = (after_mending(work, plan, given) for given in (unclear, without))
    assert figure_records(one) == figure_records(other)
    assert (one.unclear, other.unclear) == (1, 0)
    assert one.in_tiles == plan.units.is_kind(ItemKind.BACKGROUND).sum()
    assert "to be drawn" in sentences(one)[-1]


def test_without_a_wrong_annotation_nothing_changes_but_it_is_not_certain(small_folder):
    units = population(open_cohort(small_folder), ("alpha",)).units
    plan = draw(units, 20, seed=1)
    found = after_mending(request(small_folder, "alpha"), plan, verdicts_by_kind(plan, {}))
    assert found.changing == 0
    for row in found.rows:
        if row.class_name == ALL:
            assert row.change == 0
            assert row.low < 0 < row.high
            assert row.items == 0


def test_a_plan_of_other_settings_or_without_verdicts_is_refused(small_folder):
    plan = complete_plan(small_folder, "alpha")
    answers = verdicts_by_kind(plan, {})
    strict = SETTINGS.replaced(matching=Matching.STRICT_IOU, iou_threshold=0.9)
    with pytest.raises(SettingsError, match="drawn"):
        after_mending(request(small_folder, "alpha", settings=strict), plan, answers)
    with pytest.raises(PanopticError, match="none that decides"):
        after_mending(request(small_folder, "alpha"), plan, [])


# --- intervals --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted_case(nuclei_sample):
    return plant(open_cohort(nuclei_sample), "merger", "usual")


@pytest.mark.parametrize("n_items", [20, 100])
def test_intervals_hold_the_change_of_every_team(planted_case, n_items):
    found = mending_coverage(planted_case, n_items, range(N_REVIEWS))
    assert (found.covered[..., -1] >= least(N_REVIEWS)).all()
    is_far = np.abs(found.mean - planted_case.truth)[..., -1] > (0.06 if n_items < 50 else 0.03)
    assert not is_far.any()
    # An interval that always holds the truth may be of no use.
    assert found.half_width[..., -1].max() < (0.4 if n_items < 50 else 0.12)
