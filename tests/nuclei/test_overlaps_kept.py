"""Objects that share pixels, against one boolean mask per object."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, binary_erosion
from scipy.spatial.distance import cdist

from napari_panoptic.common.errors import LabelError, SettingsError
from napari_panoptic.io.formats.polygons import rasterize as rasterizing
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.regions.shifts import shifted
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.conventions import CONVENTIONS, DEFAULT_PROTOCOL
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import (
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Overlaps,
)
from tests.support.examples import examples
from tests.support.outlines import polygons_of

Mask = NDArray[np.bool_]
Box = tuple[int, int, int, int]
SHAPE = (12, 14)
KEEP = EvaluationSettings(overlaps=Overlaps.KEEP)
NAMES = MONUSAC_CLASSES.names

# Corner, height and width, in px; some reach beyond the image.
BOX = st.tuples(st.integers(0, 11), st.integers(0, 13), st.integers(1, 7), st.integers(1, 7))
OBJECTS = st.lists(st.tuples(BOX, st.sampled_from(NAMES[:3])), max_size=7)


def drawn(objects: list[tuple[Box, str]]) -> LabelImage:
    """Draw boxes as the reader of polygons does, in order."""
    outlines = [
        (name, [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]) for (y, x, h, w), name in objects
    ]
    polygons = polygons_of(outlines, MONUSAC_CLASSES)
    return rasterize_polygons(polygons, SHAPE, MONUSAC_CLASSES).held().labels


def masks_of(objects: list[tuple[Box, str]]) -> dict[int, Mask]:
    """Fill each box by itself."""
    masks = {}
    for number, ((y, x, h, w), _) in enumerate(objects, start=1):
        mask = np.zeros(SHAPE, bool)
        mask[y : y + h + 1, x : x + w + 1] = True
        masks[number] = mask
    return masks


def iou_of(a: Mask, b: Mask) -> float:
    union = np.count_nonzero(a | b)
    return np.count_nonzero(a & b) / union if union else 0.0


def contour(mask: Mask) -> NDArray[np.int64]:
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    return np.argwhere(mask & ~binary_erosion(mask, cross, border_value=1))


def hausdorff(a: Mask, b: Mask) -> float:
    if not len(contour(a)) or not len(contour(b)):
        return math.nan
    distances = cdist(contour(a), contour(b))
    return float(max(distances.min(axis=1).max(), distances.min(axis=0).max()))


def best_sum(iou: dict[tuple[int, int], float]) -> float:
    """Try every one-to-one choice among pairs; give the largest summed IoU."""
    best = 0.0
    for size in range(1, len(iou) + 1):
        for chosen in itertools.combinations(iou, size):
            rows, columns = {r for r, _ in chosen}, {c for _, c in chosen}
            if len(rows) == len(columns) == size:
                best = max(best, sum(iou[pair] for pair in chosen))
    return best


def pair_of(
    reference: list[tuple[Box, str]], prediction: list[tuple[Box, str]], void: Mask | None = None
) -> LabelPair:
    return LabelPair(drawn(reference), drawn(prediction), void, mpp=0.5)


def matched(evaluation: Evaluation) -> dict[tuple[int, int], float]:
    rows = evaluation.objects.query("side == 'reference' and partner_id.notna()")
    return {
        (int(row.id), int(row.partner_id)): float(row.iou) for row in rows.itertuples(index=False)
    }


def zone_of(masks: list[Mask], zone_px: int) -> Mask:
    """Grow and shrink each mask by itself; the image's edge is no edge."""
    found = np.zeros(SHAPE, bool)
    y, x = np.ogrid[-zone_px : zone_px + 1, -zone_px : zone_px + 1]
    disk = y * y + x * x <= zone_px * zone_px
    for mask in masks:
        found |= binary_dilation(mask, disk) & ~binary_erosion(mask, disk, border_value=1)
    return found


@given(
    reference=OBJECTS,
    prediction=OBJECTS,
    has_void=st.booleans(),
    zone_px=st.sampled_from([0, 1, 2]),
)
@settings(max_examples=examples(90), deadline=None)
def test_figures_are_those_of_whole_masks(
    reference: list[tuple[Box, str]],
    prediction: list[tuple[Box, str]],
    has_void: bool,
    zone_px: int,
) -> None:
    void = np.zeros(SHAPE, bool)
    void[3:6, 4:9] = has_void
    pair = pair_of(reference, prediction, void if has_void else None)
    evaluation = evaluate(pair, KEEP.replaced(zone_px=zone_px))
    outlined = {k: m & ~void for k, m in masks_of(reference).items()}
    left = ~void & ~zone_of(list(outlined.values()), zone_px)
    cut = {
        "reference": {k: m & left for k, m in masks_of(reference).items()},
        "prediction": {k: m & left for k, m in masks_of(prediction).items()},
    }
    objects = evaluation.objects
    for side, masks in cut.items():
        rows = objects[objects["side"] == side].set_index("id")
        assert rows.index.tolist() == list(masks)
        for id_, mask in masks.items():
            whole = masks_of(reference if side == "reference" else prediction)[id_]
            measured = mask if mask.any() else whole
            assert rows.loc[id_, "area_px"] == np.count_nonzero(measured)
            place = tuple(rows.loc[id_, ["centroid_y_px", "centroid_x_px"]])
            assert place == pytest.approx(np.argwhere(measured).mean(axis=0))
            assert (rows.loc[id_, "status"] == "ignored") == (not mask.any())
    iou = {
        (r, p): iou_of(a, b)
        for r, a in cut["reference"].items()
        for p, b in cut["prediction"].items()
    }
    pairs = matched(evaluation)
    candidates = {pair: value for pair, value in iou.items() if value > 0.5}
    assert len({r for r, _ in pairs}) == len({p for _, p in pairs}) == len(pairs)
    assert pairs == pytest.approx({pair: candidates[pair] for pair in pairs})
    # The slow search is only possible where few pairs compete.
    if len(candidates) <= 10:
        assert sum(pairs.values()) == pytest.approx(best_sum(candidates))
    for row in objects.itertuples(index=False):
        if row.status in ("FN", "FP"):
            own = [
                v for (r, p), v in iou.items() if (r if row.side == "reference" else p) == row.id
            ]
            assert row.iou == pytest.approx(max(own, default=0.0))
    for r, p in pairs:
        # The prediction's whole outline and the cut one of the reference, as published.
        expected = hausdorff(outlined[r], masks_of(prediction)[p])
        found = objects.query("side == 'reference' and id == @r")["hausdorff_px"].item()
        assert found == pytest.approx(expected, nan_ok=True)


@given(reference=OBJECTS, prediction=OBJECTS)
@settings(max_examples=examples(40), deadline=None)
def test_the_centroid_rule_is_one_to_one(
    reference: list[tuple[Box, str]], prediction: list[tuple[Box, str]]
) -> None:
    evaluation = evaluate(pair_of(reference, prediction), KEEP.replaced(matching=Matching.CENTROID))
    whole, predicted = masks_of(reference), masks_of(prediction)
    partners = list(matched(evaluation))
    assert len({p for _, p in partners}) == len(partners)
    for r, p in partners:
        best = max(iou_of(whole[r], mask) for mask in predicted.values())
        assert iou_of(whole[r], predicted[p]) == pytest.approx(best)
        y, x = np.rint(np.argwhere(predicted[p]).mean(axis=0)).astype(int)
        assert whole[r][y, x]


@given(objects=OBJECTS)
@settings(max_examples=examples(40), deadline=None)
def test_planes_hold_every_object_once_and_whole(objects: list[tuple[Box, str]]) -> None:
    flat = drawn(objects)
    whole = flat.with_overlaps(Overlaps.KEEP)
    masks = masks_of(objects)
    shared = {a for a, b in itertools.permutations(masks, 2) if (masks[a] & masks[b]).any()}
    assert whole.ids[whole.overlapping_rows()].tolist() == sorted(shared)
    for row, id_ in enumerate(whole.ids.tolist()):
        places = [sheet == row + 1 for sheet in whole.sheets]
        assert sum(place.any() for place in places) == 1
        assert np.array_equal(np.any(places, axis=0), masks[id_])
    assert np.array_equal(whole.id_image(), flat.id_image())
    again = whole.with_overlaps(Overlaps.FLATTEN)
    assert again is flat or not shared


@given(reference=OBJECTS, prediction=OBJECTS, policy=st.sampled_from(AmbiguousPolicy))
@settings(max_examples=examples(30), deadline=None)
def test_evaluating_again_equals_evaluating(
    reference: list[tuple[Box, str]], prediction: list[tuple[Box, str]], policy: AmbiguousPolicy
) -> None:
    void = np.zeros(SHAPE, bool)
    void[2:5, 2:5] = True
    pair = pair_of(reference, prediction, void)
    flat, keep = EvaluationSettings(ambiguous=policy), KEEP.replaced(ambiguous=policy)
    zone = flat.replaced(zone_px=1)
    for first, second in ((flat, keep), (keep, flat), (flat, zone), (zone, flat), (keep, zone)):
        again = evaluate_again(evaluate(pair, first), second).objects
        assert again.equals(evaluate(pair, second).objects)


def test_without_shared_pixels_nothing_changes() -> None:
    pair = pair_of([((0, 0, 3, 3), "Epithelial")], [((0, 1, 3, 3), "Epithelial")])
    flat, kept = evaluate(pair), evaluate(pair, KEEP)
    assert flat.objects.equals(kept.objects)
    assert kept.pair is pair


def test_a_covered_object_is_there_again() -> None:
    objects = [((2, 2, 1, 1), "Epithelial"), ((0, 0, 8, 8), "Epithelial")]
    pair = pair_of(objects[:1], objects)
    assert evaluate(pair).counts.tp.sum() == 0
    kept = evaluate(pair, KEEP)
    assert matched(kept) == {(1, 1): 1.0}
    assert kept.pair.prediction.vanished == ()


def test_two_predictions_of_one_nucleus_cannot_both_match() -> None:
    pair = pair_of(
        [((0, 0, 6, 6), "Epithelial")],
        [((0, 0, 6, 6), "Epithelial"), ((0, 0, 6, 5), "Epithelial")],
    )
    kept = evaluate(pair, KEEP).objects
    assert kept["status"].tolist() == ["TP", "TP", "FP"]
    assert kept["cause"].tolist()[2] == "duplicate"


def test_classes_in_masks_of_their_own() -> None:
    one, two = np.zeros((2, 4, 6), np.int32)
    one[:3, :3], one[3, 5] = 5, 2
    two[1:, 1:] = 2  # covers the object 2 of the other class, and a part of 5
    flat = LabelImage.from_class_masks({NAMES[0]: one, NAMES[1]: two}, NAMES, (4, 6))
    labels = flat.with_class_overlaps()
    whole = labels.with_overlaps(Overlaps.KEEP)
    assert [lost.id for lost in flat.vanished] == [1]
    assert whole.vanished == ()
    assert whole.ids.tolist() == [1, 2, 3]
    assert whole.original_ids.tolist() == [2, 5, 2]
    assert whole.class_index.tolist() == [1, 1, 2]
    for row, mask in enumerate((one == 2, one == 5, two == 2)):
        assert np.array_equal(np.any([p == row + 1 for p in whole.planes], axis=0), mask)
    assert whole.ids[whole.overlapping_rows()].tolist() == [1, 2, 3]


def test_what_is_shifted_keeps_its_overlaps() -> None:
    objects = [((2, 2, 1, 1), "Epithelial"), ((0, 0, 8, 8), "Epithelial")]
    moved = shifted(drawn(objects), (-3, 1)).with_overlaps(Overlaps.KEEP)
    assert moved.ids.tolist() == [1, 2]
    assert np.argwhere(moved.planes[0] == 1).tolist() == [[0, 3], [0, 4]]


def test_too_many_over_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasterizing, "MOST_PLANES", 3)
    objects: list[tuple[Box, str]] = [((1, 1, size, size), "Epithelial") for size in range(1, 5)]
    pair = pair_of([], objects)
    assert len(evaluate(pair).objects) == 1
    with pytest.raises(LabelError, match="more than 3 in one place"):
        evaluate(pair, KEEP)


@pytest.mark.parametrize("name", [name for name in CONVENTIONS if name != DEFAULT_PROTOCOL])
def test_other_conventions_know_no_overlaps(name: str) -> None:
    with pytest.raises(SettingsError, match="overlaps at flatten"):
        EvaluationSettings(overlaps=Overlaps.KEEP, convention=name)
