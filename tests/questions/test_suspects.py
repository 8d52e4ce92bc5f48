"""Suspect annotations: hand-made cases, an obvious oracle, and planted errors."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.suspects import KINDS, choose, plant, rate, regions_of, with_errors
from napari_panoptic import EvaluationSettings
from napari_panoptic.common.errors import LabelError, SettingsError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.questions.engines.suspects import (
    NO_MEMBER,
    Agreement,
    Suspect,
    SuspectKind,
    agreement,
    find_suspects,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Restoration
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples
from tests.support.paths import SHARED_CASES, needs_shared_cases

Box = tuple[int, int, int, int]  # first row, end row, first column, end column
NAMES = ("A", "B")
GRID = [(y, y + 6, x, x + 6) for y in (2, 12, 22, 32) for x in (2, 12, 22, 32)]


def drawn(
    boxes: Mapping[int, Box], classes: Mapping[int, str] | None = None, shape=(44, 44)
) -> LabelImage:
    labels = np.zeros(shape, np.int32)
    for id_, (top, bottom, left, right) in boxes.items():
        labels[top:bottom, left:right] = id_
    return LabelImage.from_array(labels, dict.fromkeys(boxes, "A") | dict(classes or {}), NAMES)


def compared(
    reference: LabelImage, teams: Mapping[str, LabelImage], ambiguous=None, region="r"
) -> Agreement:
    evaluations = {
        team: evaluate(LabelPair(reference, labels, ambiguous), EvaluationSettings(distances=False))
        for team, labels in teams.items()
    }
    return agreement(evaluations, patient="p", region=region)


def grid(**changes: Box | None) -> dict[int, Box]:
    """Return sixteen boxes by number; `o3=None` leaves out the third, a box replaces it."""
    boxes: dict[int, Box | None] = dict(enumerate(GRID, start=1))
    boxes |= {int(name[1:]): box for name, box in changes.items()}
    return {id_: box for id_, box in boxes.items() if box is not None}


TEAMS = {"a": drawn(grid()), "b": drawn(grid())}


def only(kind: SuspectKind, found: tuple[Suspect, ...]) -> Suspect:
    (suspect,) = found
    assert suspect.kind is kind
    assert 0 < suspect.score <= 1
    assert suspect.teams == ("a", "b")
    assert (suspect.patient, suspect.region) == ("p", "r")
    return suspect


def test_a_right_annotation_has_no_suspects() -> None:
    assert find_suspects([compared(drawn(grid()), TEAMS)]) == ()
    assert find_suspects([]) == ()


def test_an_overlooked_object() -> None:
    found = find_suspects([compared(drawn(grid(o6=None)), TEAMS)])
    suspect = only(SuspectKind.OVERLOOKED, found)
    assert (suspect.side, suspect.team, suspect.id) == (Side.PREDICTION, "a", 6)
    assert suspect.bbox == (12, 12, 18, 18)
    assert suspect.centroid_yx_px == (14.5, 14.5)
    # 15 of 16 are confirmed; the priors are the same share.
    assert suspect.score == pytest.approx((15 / 16) ** 2)
    assert "the annotation has none" in suspect.sentence


def test_an_object_that_one_team_predicts_is_not_overlooked() -> None:
    teams = {"a": drawn(grid()), "b": drawn(grid(o6=None))}
    assert find_suspects([compared(drawn(grid(o6=None)), teams)]) == ()


def test_a_badly_located_object() -> None:
    found = find_suspects([compared(drawn(grid(o6=(11, 20, 11, 20))), TEAMS)])
    suspect = only(SuspectKind.BADLY_LOCATED, found)
    assert (suspect.side, suspect.team, suspect.id) == (Side.REFERENCE, None, 6)
    # IoU 36/81, typically 1; 15 of 16 are confirmed.
    assert suspect.score == pytest.approx((15 / 16) ** 2 * min(1, 2 * (1 - 36 / 81)))
    assert "with the annotation 0.44; 1.00 is typical" in suspect.sentence


def test_teams_that_invent_objects_may_locate_the_others_well() -> None:
    invented = {id_ + 100: (y + 6, y + 9, x, x + 6) for id_, (y, _, x, _) in grid().items()}
    seen_by_all = {id_: box for id_, box in grid().items() if id_ > 6}
    teams = {
        "blind": drawn(seen_by_all),
        "also blind": drawn(seen_by_all),
        "eager": drawn(grid() | invented),
        "also eager": drawn(grid() | invented),
    }
    # An object that reaches over the next one. That it is merged, too, says little: of the two,
    # one is a proposal of teams that invent objects.
    found = find_suspects([compared(drawn(grid(o6=(12, 18, 12, 27), o7=None)), teams)])
    (suspect,) = (own for own in found if own.kind is SuspectKind.BADLY_LOCATED)
    assert (suspect.id, suspect.teams) == (6, ("eager", "also eager"))
    # They alone see 6 annotated objects, of which 5 are confirmed; of all that are seen, 14 of 15.
    of_two = (5 + 4 * 14 / 15) / (6 + 4)
    assert suspect.score == pytest.approx(((5 + 4 * of_two) / (6 + 4)) ** 2)
    # What they invent is hardly suspect.
    assert max(own.score for own in found if own is not suspect) < suspect.score / 2


def test_a_wrong_class() -> None:
    found = find_suspects([compared(drawn(grid(), {6: "B"}), TEAMS)])
    suspect = only(SuspectKind.WRONG_CLASS, found)
    assert (suspect.id, suspect.class_name, suspect.suggested_class) == (6, "B", "A")
    assert suspect.score == pytest.approx((15 / 16) ** 2)


def test_a_class_that_one_team_predicts_has_half_the_score() -> None:
    teams = {"a": drawn(grid()), "b": drawn({})}
    (suspect,) = find_suspects([compared(drawn(grid(), {6: "B"}), teams)])
    assert suspect.kind is SuspectKind.WRONG_CLASS
    assert suspect.teams == ("a",)
    assert suspect.score == pytest.approx((15 / 16) ** 2 / 2)


def test_a_split_object() -> None:
    halves = grid(o6=(12, 18, 12, 15)) | {90: (12, 18, 15, 18)}
    suspect = only(SuspectKind.SPLIT, find_suspects([compared(drawn(halves), TEAMS)]))
    assert {suspect.id, *suspect.other_ids} == {6, 90}
    assert "the annotation has 2" in suspect.sentence


def test_merged_objects() -> None:
    whole = grid(o6=(12, 18, 12, 28), o7=None)
    suspect = only(SuspectKind.MERGED, find_suspects([compared(drawn(whole), TEAMS)]))
    assert suspect.id == 6
    assert "agree on 2 objects" in suspect.sentence


def test_nothing_is_suspect_in_the_ambiguous_area() -> None:
    ambiguous = np.zeros((44, 44), bool)
    ambiguous[10:20, 10:17] = True  # five of six columns of the sixth object
    assert find_suspects([compared(drawn(grid(o6=None)), TEAMS, ambiguous)]) == ()


def test_teams_that_are_often_wrong_are_hardly_trusted() -> None:
    """Two teams invent the same objects everywhere; two others are right."""
    invented = {id_ + 100: (y + 6, y + 9, x, x + 6) for id_, (y, _, x, _) in grid().items()}
    teams = {
        "right": drawn(grid()),
        "also right": drawn(grid()),
        "wrong": drawn(grid() | invented),
        "also wrong": drawn(grid() | invented),
    }
    found = find_suspects([compared(drawn(grid(o6=None)), teams)])
    assert found[0].teams == tuple(teams)
    assert {suspect.teams for suspect in found[1:]} == {("wrong", "also wrong")}
    assert len(found) == 1 + len(invented)
    assert found[0].score > 0.8
    assert max(suspect.score for suspect in found[1:]) < 0.05


def test_a_team_may_be_absent_from_a_region() -> None:
    regions = [
        compared(drawn(grid(o6=None)), TEAMS | {"c": drawn(grid())}, region="first"),
        compared(drawn(grid(), {3: "B"}), TEAMS, region="second"),
    ]
    found = find_suspects(regions)
    assert {(own.region, own.kind, own.id) for own in found} == {
        ("first", SuspectKind.OVERLOOKED, 6),
        ("second", SuspectKind.WRONG_CLASS, 3),
    }
    assert list(found) == sorted(found, key=lambda own: -own.score)


def test_different_settings_or_annotations_are_refused() -> None:
    def evaluated(reference: LabelImage, **chosen: str) -> Evaluation:
        return evaluate(
            LabelPair(reference, TEAMS["a"]), EvaluationSettings(distances=False, **chosen)
        )

    with pytest.raises(SettingsError):
        agreement({"a": evaluated(TEAMS["a"]), "b": evaluated(TEAMS["a"], ambiguous="keep")})
    with pytest.raises(LabelError):
        agreement({"a": evaluated(TEAMS["a"]), "b": evaluated(drawn(grid(o6=None)))})
    with pytest.raises(LabelError):
        agreement({})


# --- an oracle ----------------------------------------------------------------------------------


def blobs(rng: np.random.Generator, n: int) -> LabelImage:
    boxes = {}
    for id_ in range(1, n + 1):
        y, x = rng.integers(0, 24, 2)
        h, w = rng.integers(2, 9, 2)
        boxes[id_] = (int(y), int(y + h), int(x), int(x + w))
    labels = np.zeros((32, 32), np.int32)
    for id_, (top, bottom, left, right) in boxes.items():
        labels[top:bottom, left:right] = id_
    classes = {id_: str(rng.choice(NAMES)) for id_ in boxes}
    return LabelImage.from_array(labels, classes, NAMES)


def varied(rng: np.random.Generator, labels: LabelImage) -> LabelImage:
    """Shift an image by up to a pixel, drop an object, and change some classes."""
    image = np.roll(labels.id_image(), tuple(rng.integers(-1, 2, 2)), axis=(0, 1))
    ids = np.unique(image[image > 0])
    if len(ids):
        image[image == rng.choice(ids)] = 0
    classes = {int(id_): str(rng.choice(NAMES, p=(0.7, 0.3))) for id_ in ids}
    return LabelImage.from_array(image, classes, NAMES)


def masks_of(labels: LabelImage, void: np.ndarray) -> list[np.ndarray]:
    return [(labels.index == row + 1) & ~void for row in range(len(labels))]


def iou(one: np.ndarray, other: np.ndarray) -> float:
    union = (one | other).sum()
    return float((one & other).sum() / union) if union else 0.0


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n_teams=st.integers(1, 4), has_void=st.booleans())
def test_proposals_equal_the_obvious_ones(seed: int, n_teams: int, has_void: bool) -> None:
    rng = np.random.default_rng(seed)
    reference = blobs(rng, 6)
    teams = {f"team {k}": varied(rng, reference) for k in range(n_teams)}
    void = np.zeros((32, 32), bool)
    if has_void:
        void[:, :9] = True
    found = compared(reference, teams, void)

    predicted = [masks_of(labels, void) for labels in teams.values()]
    nodes = [(t, r) for t, own in enumerate(predicted) for r, mask in enumerate(own) if mask.any()]
    groups = [{node} for node in nodes]
    for t, r in nodes:
        for u, s in nodes:
            if t < u and iou(predicted[t][r], predicted[u][s]) > 0.5:
                joined = [own for own in groups if (t, r) in own or (u, s) in own]
                groups = [own for own in groups if own not in joined]
                groups.append(set().union(*joined))
    listed = [
        {(t, int(r)) for t, r in enumerate(members) if r != NO_MEMBER} for members in found.members
    ]
    for own in groups:
        if len({t for t, _ in own}) == len(own):
            assert own in listed
        else:  # one of each team, and it is one of the group
            (kept,) = [other for other in listed if other <= own]
            assert {t for t, _ in kept} == {t for t, _ in own}
    assert len(listed) == len(groups)

    annotated = masks_of(reference, void)
    means = np.zeros((len(listed), len(annotated)))
    for place, own in enumerate(listed):
        between = [iou(predicted[t][r], predicted[u][s]) for t, r in own for u, s in own if t < u]
        expected = np.mean(between) if between else math.nan
        assert found.iou[place] == pytest.approx(expected, nan_ok=True)
        for row, mask in enumerate(annotated):
            means[place, row] = np.mean([iou(predicted[t][r], mask) for t, r in own])
    touching = np.zeros_like(means)
    touching[tuple(found.touching)] = found.touching_iou
    np.testing.assert_allclose(touching, means, atol=1e-12)
    for row in range(len(annotated)):
        place = found.counterpart[row]
        if place >= 0:
            assert means[place, row] == pytest.approx(means[:, row].max())
            assert means[place, row] == pytest.approx(means[place].max())
            assert found.counterpart_iou[row] == pytest.approx(means[place, row])
        elif len(listed) and means[:, row].max() >= 0.1 + 1e-9:
            rival = means[means[:, row].argmax()].max()
            ties = np.isclose(means[:, row], means[:, row].max()).sum() > 1
            assert ties or rival >= means[:, row].max()


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_and_names_of_teams_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = blobs(rng, 8)
    teams = {f"team {k}": varied(rng, reference) for k in range(3)}
    found = find_suspects([compared(reference, teams)])
    again = find_suspects([compared(reference, dict(reversed(teams.items())))])
    assert all(0 < own.score <= 1 for own in found)

    def described(own: Suspect) -> tuple[object, ...]:
        return own.kind, round(own.score, 9), tuple(sorted(own.teams)), own.suggested_class

    assert sorted(map(str, map(described, found))) == sorted(map(str, map(described, again)))


# --- planted errors -----------------------------------------------------------------------------


def test_planted_errors_are_what_they_say() -> None:
    labels = drawn(grid())
    planted = plant(labels, [1, 6, 11], KINDS)
    areas = dict(zip(*np.unique(planted.labels.id_image(), return_counts=True), strict=True))
    assert 1 not in areas
    assert areas[6] > 1.5 * 36
    assert areas[2] == areas[11] == 36
    names = dict(
        zip(planted.labels.ids.tolist(), planted.labels.class_names_of_objects(), strict=True)
    )
    assert [id_ for id_, name in names.items() if name != "A"] == [11]
    ((ids, kinds),) = choose([labels], 0.5, seed=0)
    assert len(set(ids)) == len(ids) == 8
    assert set(kinds) == set(KINDS)


def test_planted_errors_are_first_where_teams_are_perfect() -> None:
    labels = drawn(grid())
    planted = plant(labels, [1, 6, 11], KINDS)
    suspects = find_suspects([compared(planted.labels, {"a": labels, "b": labels})])
    found = rate({"r": planted}, suspects)
    assert (found.planted, found.precision, found.auroc) == (3, 1.0, 1.0)
    assert rate({"r": planted}, []).auroc == 0.5


@pytest.mark.long
@needs_shared_cases
def test_planted_errors_in_real_regions() -> None:
    """One seed of `python -m benchmarks suspects`; results: docs/explanation/statistics.md."""
    cohort = open_cohort(SHARED_CASES / "monusac")
    teams = [team.name for team in cohort.competing_teams]
    regions = regions_of(cohort, Restoration.BORDER_DILATED)
    planted, agreements = with_errors(regions, teams, 0.05, seed=0)
    found = rate(planted, find_suspects(agreements))
    assert found.planted >= 150
    assert found.precision >= 0.8
    assert found.auroc >= 0.95
