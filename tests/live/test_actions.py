"""Actions on objects: each has an exact inverse, and figures follow it exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.segmentation import watershed

from napari_panoptic import EvaluationSettings
from napari_panoptic.common.errors import LabelError
from napari_panoptic.explain.failure_groups import GroupKind, failure_groups
from napari_panoptic.live.actions import (
    accept,
    delete,
    mark_ambiguous,
    mend_of_verdicts,
    merge,
    objects_to_merge,
    objects_to_split,
    split,
    take_class,
)
from napari_panoptic.live.mends import Claim, Covered, Mend, MendAction, apply
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_pair
from napari_panoptic.values.labels import LabelImage, LabelPair, Scores
from napari_panoptic.values.settings import AmbiguousPolicy, Matching, Overlaps
from napari_panoptic.values.vocabulary import Side, Status, Verdict
from tests.support.edited_sessions import check, session_in, shown_labels
from tests.support.examples import examples
from tests.support.label_cases import (
    CLASS_NAMES,
    EPITHELIAL,
    LYMPHOCYTE,
    MACROPHAGE,
    LabelCase,
    random_pair,
)

REFERENCE, PREDICTION = Side.REFERENCE, Side.PREDICTION


def pair_of(case: LabelCase) -> LabelPair:
    prediction = LabelImage.from_array(case.prediction, case.prediction_classes, CLASS_NAMES)
    scores = Scores(prediction.ids, np.linspace(0.1, 0.9, len(prediction)))
    return LabelPair(
        LabelImage.from_array(case.reference, case.reference_classes, CLASS_NAMES),
        LabelImage(**{**vars(prediction), "known_scores": scores}),
        case.ambiguous,
        0.25,
    )


def case_of(
    reference: list[tuple[int, int, int, int, int]],
    prediction: list[tuple[int, int, int, int, int]],
    *,
    classes: dict[int, str] | None = None,
    shape: tuple[int, int] = (40, 40),
) -> LabelCase:
    """Draw rectangles: id, y0, y1, x0, x1; predictions have the classes given."""
    images = []
    for blocks in (reference, prediction):
        image = np.zeros(shape, np.int32)
        for id_, y0, y1, x0, x1 in blocks:
            image[y0:y1, x0:x1] = id_
        images.append(image)
    names = {block[0]: EPITHELIAL for block in prediction} | (classes or {})
    return LabelCase(images[0], images[1], {b[0]: EPITHELIAL for b in reference}, names)


def classes_of(labels: LabelImage) -> dict[int, str]:
    return dict(zip(labels.ids.tolist(), labels.class_names_of_objects().tolist(), strict=True))


def evaluated_anew(pair: LabelPair, wanted: EvaluationSettings) -> Evaluation:
    return evaluate_pair(
        pair.reference.id_image(),
        pair.prediction.id_image(),
        reference_classes=classes_of(pair.reference),
        prediction_classes=classes_of(pair.prediction),
        ambiguous=pair.ambiguous,
        settings=wanted,
        mpp=pair.mpp,
        class_names=CLASS_NAMES,
        scores=pair.prediction.known_scores,
    )


def assert_same(live: Evaluation, full: Evaluation) -> None:
    assert live.objects.equals(full.objects)
    np.testing.assert_array_equal(live.counts.confusion, full.counts.confusion)
    np.testing.assert_equal(dict(live.metrics), dict(full.metrics))
    assert live.by_class.equals(full.by_class)


class State:
    """All that an inverse must restore."""

    def __init__(self, live: EditedPair, wanted: EvaluationSettings) -> None:
        pair = live.pair()
        self.images = [pair.side(side).id_image() for side in Side]
        self.classes = [classes_of(pair.side(side)) for side in Side]
        self.area = None if pair.ambiguous is None else pair.ambiguous.copy()
        self.objects = live.evaluate(wanted).objects

    def assert_equals(self, other: State) -> None:
        for mine, theirs in zip(self.images, other.images, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert self.classes == other.classes
        assert (self.area is None) == (other.area is None)
        np.testing.assert_array_equal(self.area, other.area)
        assert self.objects.equals(other.objects)


class Actor:
    """Acts on a pair as users do, and undoes it."""

    def __init__(self, seed: int, wanted: EvaluationSettings) -> None:
        self.rng, self.wanted = np.random.default_rng(seed), wanted
        self.live = EditedPair(pair_of(random_pair(self.rng, max_id=2**31)))
        self.done: list[tuple[State, Mend]] = []

    def act(self) -> Mend:
        rng, now = self.rng, self.live.evaluate(self.wanted)
        targets = [
            (side, int(id_))
            for side in Side
            for id_ in rng.permutation(now.outcomes.side(side).ids)[: int(rng.integers(4))]
        ]
        claim = list(Claim)[int(rng.integers(2))]
        match int(rng.integers(7)):
            case 0:
                covered = list(Covered)[int(rng.integers(3))]
                return accept(now, targets, claim=claim, covered=covered)
            case 1:
                return delete(now, targets)
            case 2:
                return merge(now, [[t for t in targets if t[0] is s] for s in Side], claim=claim)
            case 3:
                return split(now, targets)
            case 4:
                return take_class(now, targets)
            case 5:
                return mark_ambiguous(now, targets)
        verdicts = {target: list(Verdict)[int(rng.integers(4))] for target in targets}
        return mend_of_verdicts(now, verdicts, claim=claim)

    def step(self) -> None:
        if self.done and self.rng.random() < 0.3:
            before, mend = self.done.pop()
            apply(mend.inverse, self.live)
            State(self.live, self.wanted).assert_equals(before)
            return
        before, mend = State(self.live, self.wanted), self.act()
        apply(mend, self.live)
        check_objects(mend, before, State(self.live, self.wanted))
        self.done.append((before, mend))


def check_objects(mend: Mend, before: State, after: State) -> None:
    """Check that a mend says what it does."""
    for mended in mend.objects:
        number = list(Side).index(mended.side)
        for state, id_, area, name in (
            (before, mended.id_before, mended.area_before_px, mended.class_before),
            (after, mended.id_after, mended.area_after_px, mended.class_after),
        ):
            assert area == (0 if id_ is None else np.count_nonzero(state.images[number] == id_))
            assert name == ("" if id_ is None else state.classes[number][id_])
    for (side, id_), lost in mend.overwritten.items():
        was, now = (state.images[list(Side).index(side)] == id_ for state in (before, after))
        assert np.count_nonzero(was & ~now) <= lost
        assert ((side, id_) in mend.vanished) == (not now.any())
    changed = {mended.id_before for mended in mend.objects} | {i for _, i in mend.overwritten}
    for was, now in zip(before.images, after.images, strict=True):
        assert set(np.unique(was[was != now])) <= changed | {0}


@settings(max_examples=examples(40), deadline=None)
@given(
    seed=st.integers(0, 2**20),
    matching=st.sampled_from(Matching),
    policy=st.sampled_from(AmbiguousPolicy),
)
def test_actions_and_inverses_restore_everything(
    seed: int, matching: Matching, policy: AmbiguousPolicy
) -> None:
    actor = Actor(seed, EvaluationSettings(matching=matching, ambiguous=policy))
    first = State(actor.live, actor.wanted)
    for _ in range(8):
        actor.step()
        live = actor.live.evaluate(actor.wanted)
        assert_same(live, evaluated_anew(actor.live.pair(), actor.wanted))
    while actor.done:
        before, mend = actor.done.pop()
        apply(mend.inverse, actor.live)
        State(actor.live, actor.wanted).assert_equals(before)
    State(actor.live, actor.wanted).assert_equals(first)


def run(mend: Mend, evaluation: Evaluation) -> LabelPair:
    live = EditedPair(evaluation.pair)
    apply(mend, live)
    return live.pair()


def test_accepting_an_fp_adds_an_object_and_keeps_or_takes_pixels() -> None:
    case = case_of(
        [(3, 0, 10, 0, 10)], [(7, 5, 20, 5, 20), (8, 0, 10, 0, 9)], classes={7: MACROPHAGE}
    )
    now = evaluate(pair_of(case))
    kept = accept(now, [(PREDICTION, 7)])
    assert kept.spared == {(REFERENCE, 3): 5}  # the rest lies under the other prediction
    assert not kept.overwritten
    image = run(kept, now).reference.id_image()
    np.testing.assert_array_equal(image == 3, case.reference == 3)
    np.testing.assert_array_equal(image == 4, (case.prediction == 7) & (case.reference == 0))
    (added,) = kept.objects
    assert (added.action, added.id_before, added.id_after) == (MendAction.ACCEPT, None, 4)
    assert (added.class_before, added.class_after) == ("", MACROPHAGE)
    taken = accept(now, [(PREDICTION, 7)], claim=Claim.TAKE, first_id=50)
    assert taken.overwritten == {(REFERENCE, 3): int((case.prediction[:10, :10] == 7).sum())}
    after = run(taken, now)
    np.testing.assert_array_equal(after.reference.id_image() == 50, case.prediction == 7)


def test_accepting_replaces_what_matches_or_fits() -> None:
    case = case_of(
        [(1, 0, 10, 0, 10), (2, 20, 30, 20, 30)],
        [(5, 2, 10, 0, 10), (6, 20, 26, 20, 27)],
        classes={5: LYMPHOCYTE},
    )
    now = evaluate(pair_of(case))
    mend = accept(now, [(PREDICTION, 5), (REFERENCE, 1), (REFERENCE, 2), (PREDICTION, 6)])
    assert [mended.action for mended in mend.objects] == [MendAction.REPLACE] * 2
    after = run(mend, now)
    np.testing.assert_array_equal(after.reference.id_image() == 1, case.prediction == 5)
    np.testing.assert_array_equal(after.reference.id_image() == 2, case.prediction == 6)
    assert classes_of(after.reference) == {1: LYMPHOCYTE, 2: EPITHELIAL}


def test_an_fp_that_covers_two_objects_asks() -> None:
    case = case_of([(1, 0, 10, 0, 10), (2, 0, 10, 14, 24)], [(9, 0, 10, 0, 24)])
    now = evaluate(pair_of(case))
    asked = accept(now, [(PREDICTION, 9)])
    assert asked.changes_nothing
    assert asked.not_done[0].covers == (1, 2)
    instead = accept(now, [(PREDICTION, 9)], covered=Covered.REPLACE)
    assert run(instead, now).reference.ids.tolist() == [3]
    beside = accept(now, [(PREDICTION, 9)], covered=Covered.BESIDE)
    assert run(beside, now).reference.ids.tolist() == [1, 2, 3]
    taken = accept(now, [(PREDICTION, 9)], covered=Covered.BESIDE, claim=Claim.TAKE)
    assert taken.vanished == ((REFERENCE, 1), (REFERENCE, 2))


def test_an_outline_without_a_free_pixel_is_not_accepted() -> None:
    case = case_of([(1, 0, 20, 0, 20)], [(9, 2, 6, 2, 6)])
    mend = accept(evaluate(pair_of(case)), [(PREDICTION, 9)])
    assert mend.changes_nothing
    assert not mend.objects
    assert "have all of its pixels" in mend.not_done[0].reason


def slowly_closed(mask: Any) -> Any:
    """Close a mask by trying every square of 3 x 3 px."""
    padded = np.pad(mask, 3)
    result = np.ones_like(padded)
    for y in range(1, padded.shape[0] - 1):
        for x in range(1, padded.shape[1] - 1):
            square = np.s_[y - 1 : y + 2, x - 1 : x + 2]
            if not padded[square].any():
                result[square] = False
    return result[3:-3, 3:-3]


@pytest.mark.parametrize("seed", range(6))
def test_merging_closes_gaps_as_a_slow_closing_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = enumerate(rng.integers(0, 26, (5, 2)).tolist(), start=1)
    blocks = [(k, y, y + 6, x, x + 5) for k, (y, x) in corners]
    case = case_of([(1, 0, 3, 0, 3)], blocks, shape=(32, 32))
    now = evaluate(pair_of(case))
    members = [int(id_) for id_ in now.outcomes.prediction.ids if id_ != 1]
    for claim in Claim:
        mend = merge(now, [[(PREDICTION, id_) for id_ in members]], claim=claim)
        image = run(mend, now).prediction.id_image()
        union = np.isin(case.prediction, members)
        allowed = (case.prediction == 0) | union | (claim is Claim.TAKE)
        areas = {id_: np.count_nonzero(case.prediction == id_) for id_ in members}
        largest = max(members, key=lambda id_: (areas[id_], -id_))
        np.testing.assert_array_equal(image == largest, slowly_closed(union) & allowed | union)


def test_merging_closes_gaps_of_two_px_and_no_wider_ones() -> None:
    for gap in (1, 2, 3):
        case = case_of([], [(4, 5, 15, 5, 10), (2, 5, 15, 10 + gap, 16 + gap)])
        now = evaluate(pair_of(case))
        after = run(merge(now, [[(PREDICTION, 4), (PREDICTION, 2)]]), now).prediction
        assert after.ids.tolist() == [2]
        assert np.count_nonzero(after.index) == 110 + (10 * gap if gap < 3 else 0)


def test_a_split_group_is_merged_and_a_merged_one_split() -> None:
    case = case_of(
        [(1, 0, 10, 0, 20), (2, 20, 30, 0, 10), (3, 20, 30, 13, 23)],
        [(5, 0, 10, 0, 9), (6, 0, 10, 10, 20), (7, 20, 30, 0, 23)],
    )
    now = evaluate(pair_of(case))
    groups = {group.kind: group for group in failure_groups(now)}
    merged = merge(now, [objects_to_merge(groups[GroupKind.SPLIT], now)])
    parted = split(now, objects_to_split(groups[GroupKind.MERGER], now))
    live = EditedPair(now.pair)
    apply(merged, live)
    apply(parted, live)
    after = live.evaluate(now.settings)
    assert (after.outcomes.reference.status == after.outcomes.reference.status[0]).all()
    assert after.outcomes.reference.count(Status.TP) == 3
    assert live.pair().prediction.ids.tolist() == [6, 7, 8]


@pytest.mark.parametrize("seed", range(6))
def test_splitting_gives_each_pixel_to_the_nearest_object(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = case_of(
        [(1, 2, 8, 2, 8), (2, 20, 27, 4, 9), (3, 6, 14, 25, 30)],
        [(9, 0, 32, 0, 32)],
        shape=(32, 32),
    )
    prediction = np.array(case.prediction)
    y, x = rng.integers(8, 20, 2)
    prediction[y : y + 6, x : x + 3] = 0
    prediction[31, 31] = prediction[29, :] = 9
    prediction[30, :] = 0  # a piece of its own, without a seed
    case = LabelCase(case.reference, prediction, case.reference_classes, {9: LYMPHOCYTE})
    now = evaluate(pair_of(case))
    after = run(split(now, [(PREDICTION, 9)]), now).prediction
    mask = prediction == 9
    assert set(classes_of(after).values()) == {LYMPHOCYTE}
    np.testing.assert_array_equal(after.index > 0, mask)
    seeds = np.where(mask, case.reference, 0)
    yx = np.argwhere(np.ones(mask.shape))
    distances = np.stack(
        [
            np.sqrt(((yx[:, np.newaxis] - np.argwhere(seeds == k)) ** 2).sum(-1)).min(1)
            for k in (1, 2, 3)
        ]
    ).reshape(3, *mask.shape)
    flooded = watershed(distances.min(0), seeds, mask=mask)
    parts = np.where(mask & (flooded == 0), distances.argmin(0) + 1, flooded)
    for part in (1, 2, 3):
        found = np.unique(after.id_image()[(parts == part) & mask])
        assert len(found) == 1
    sizes = [np.count_nonzero(parts == part) for part in (1, 2, 3)]
    largest = 1 + int(np.argmax(sizes))
    assert after.id_image()[parts == largest][0] == 9


def test_verdicts_mend_the_annotation() -> None:
    case = case_of(
        [(1, 0, 6, 0, 6), (2, 10, 16, 0, 6), (3, 20, 26, 0, 6), (4, 30, 36, 0, 6)],
        [(5, 10, 16, 0, 6), (6, 20, 26, 0, 5), (7, 0, 6, 20, 26), (8, 30, 36, 20, 26)],
        classes={5: MACROPHAGE},
    )
    now = evaluate(pair_of(case))
    right, both = Verdict.PREDICTION_RIGHT, Verdict.BOTH_WRONG
    verdicts = {
        (REFERENCE, 1): right,
        (REFERENCE, 2): right,
        (REFERENCE, 3): right,
        (REFERENCE, 4): both,
        (PREDICTION, 5): right,
        (PREDICTION, 7): right,
        (PREDICTION, 8): both,
    }
    mend = mend_of_verdicts(now, verdicts)
    found = {mended.target: mended for mended in mend.objects}
    assert {target: mended.action for target, mended in found.items()} == {
        (REFERENCE, 1): MendAction.DELETE,
        (REFERENCE, 2): MendAction.RECLASSIFY,
        (REFERENCE, 3): MendAction.REPLACE,
        (REFERENCE, 4): MendAction.DRAW,
        (PREDICTION, 7): MendAction.ACCEPT,
        (PREDICTION, 8): MendAction.DRAW,
    }
    after = run(mend, now).reference
    assert classes_of(after) == {2: MACROPHAGE, 3: EPITHELIAL, 5: EPITHELIAL}
    np.testing.assert_array_equal(after.id_image() == 3, case.prediction == 6)
    np.testing.assert_array_equal(after.id_image() == 2, case.reference == 2)
    for verdict in (Verdict.ANNOTATION_RIGHT, Verdict.CANNOT_TELL):
        assert mend_of_verdicts(now, dict.fromkeys(verdicts, verdict)).changes_nothing


def test_verdicts_that_differ_on_a_pair_are_not_applied() -> None:
    now = evaluate(pair_of(case_of([(3, 0, 6, 0, 6)], [(6, 0, 6, 0, 5)])))
    verdicts = {(REFERENCE, 3): Verdict.PREDICTION_RIGHT, (PREDICTION, 6): Verdict.BOTH_WRONG}
    mend = mend_of_verdicts(now, verdicts)
    assert mend.changes_nothing
    assert len(mend.not_done) == 2


def test_taking_the_class_leaves_pixels() -> None:
    case = case_of([(3, 0, 6, 0, 6)], [(6, 0, 6, 0, 5)], classes={6: LYMPHOCYTE})
    now = evaluate(pair_of(case))
    after = run(take_class(now, [(PREDICTION, 6)]), now)
    assert classes_of(after.prediction) == {6: EPITHELIAL}
    np.testing.assert_array_equal(after.prediction.id_image(), case.prediction)
    assert take_class(evaluate(after), [(PREDICTION, 6)]).not_done


def test_a_mend_of_other_objects_is_refused_and_changes_nothing() -> None:
    case = case_of([(3, 0, 6, 0, 6)], [(6, 0, 6, 0, 5)])
    live = EditedPair(pair_of(case))
    now = live.evaluate(EvaluationSettings())
    mend = delete(now, [(REFERENCE, 3), (PREDICTION, 6)])
    live.set_pixels(PREDICTION, np.array([0]), np.array([0]), 0)
    with pytest.raises(LabelError, match="prepare it again"):
        apply(mend, live)
    assert live.pair().reference.ids.tolist() == [3]


def test_unknown_targets_are_listed() -> None:
    now = evaluate(pair_of(case_of([(3, 0, 6, 0, 6)], [])))
    mend = delete(now, [(REFERENCE, 99), (REFERENCE, 3), (REFERENCE, 3)])
    assert len(mend.objects) == 1
    assert mend.not_done[0].target == (REFERENCE, 99)


def test_a_session_applies_mends_and_takes_them_back(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    acts: list[Callable[[Evaluation], Mend]] = [
        lambda now: accept(now, all_targets(now)[::3], first_id=10_000),
        lambda now: delete(now, all_targets(now)[::4]),
        lambda now: merge(now, [all_targets(now)[:2], all_targets(now)[-2:]]),
        lambda now: mark_ambiguous(now, all_targets(now)[1::5]),
    ]
    for act in acts:
        before = {side: shown_labels(session, side).id_image() for side in Side}
        assert session.evaluation is not None
        objects = session.evaluation.objects
        mend = act(session.evaluation)
        assert session.apply(mend)
        check(session)
        session.apply(mend.inverse)
        check(session)
        assert session.evaluation.objects.equals(objects)
        for side in Side:
            np.testing.assert_array_equal(shown_labels(session, side).id_image(), before[side])
            assert not session.is_edited(side)
        assert not session.has_any_edits


def all_targets(now: Evaluation) -> list[tuple[Side, int]]:
    return [(side, id_) for side in Side for id_ in now.outcomes.side(side).ids.tolist()]


def test_objects_that_share_pixels_are_flattened_as_edits_do() -> None:
    case = case_of([(3, 0, 6, 0, 6)], [(6, 0, 6, 0, 5), (7, 4, 9, 3, 9)])
    flat = pair_of(case)
    plane = np.where(case.prediction == 7, 0, flat.prediction.index)
    plane[4:6, 3:5] = 1
    planes = (plane.astype(np.int32), np.where(case.prediction == 7, 2, 0).astype(np.int32))
    whole = replace(flat.prediction, planes=planes, other_form=lambda: flat.prediction)
    wanted = EvaluationSettings(overlaps=Overlaps.KEEP)
    now = evaluate(LabelPair(flat.reference, whole, None, 0.25), wanted)
    assert now.pair.has_planes
    live = EditedPair(flat)
    apply(delete(now, [(PREDICTION, 6)]), live)
    assert live.pair().prediction.ids.tolist() == [7]
