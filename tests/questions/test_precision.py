"""Average precision equals that of pycocotools, and objects that are ignored count nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from napari_panoptic import EvaluationSettings
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.notebook import evaluate_pair
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.questions.engines.precision import (
    COCO_IOUS,
    RECALLS,
    average_precisions,
    precision_recall,
)
from napari_panoptic.questions.engines.scored_objects import scored_region
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelImage, LabelPair, Scores
from napari_panoptic.values.settings import Overlaps
from tests.support.label_cases import CLASS_NAMES, random_pair
from tests.support.outlines import polygons_of

SHAPE = (24, 28)
KINDS = ("blobs", "blocks", "mosaic", "nested")


def boxes(rng: np.random.Generator) -> LabelImage:
    """Draw rectangles that keep the pixels they share."""
    outlines = []
    for _ in range(int(rng.integers(0, 14))):
        (x, y), (w, h) = rng.integers(0, 18, 2).tolist(), rng.integers(2, 9, 2).tolist()
        ring = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]
        outlines.append((str(rng.choice(CLASS_NAMES[:2])), ring))
    polygons = polygons_of(outlines, MONUSAC_CLASSES)
    drawn = rasterize_polygons(polygons, SHAPE, MONUSAC_CLASSES).held().labels
    return drawn.with_overlaps(Overlaps.KEEP)


def random_region(rng: np.random.Generator, *, overlap: bool, ties: bool) -> LabelPair:
    """Draw a region whose predictions have scores, some of them equal if there may be ties."""
    if overlap:
        reference = boxes(rng)
        # Often the same boxes: equal IoUs, and several predictions for one object.
        prediction = reference if rng.random() < 0.5 else boxes(rng)
        pair = LabelPair(reference, prediction)
    else:
        kind = str(rng.choice(KINDS))
        case = random_pair(rng, SHAPE, reference_kind=kind, with_ambiguous=False)
        pair = LabelPair.from_arrays(
            case.reference,
            case.prediction,
            case.reference_classes,
            case.prediction_classes,
            CLASS_NAMES,
        )
    ids = pair.prediction.ids
    scores = Scores(ids, rng.integers(0, 8, len(ids)) / 8 if ties else rng.random(len(ids)))
    return replace(pair, prediction=replace(pair.prediction, known_scores=scores))


def masks(labels: LabelImage) -> Iterator[NDArray[np.uint8]]:
    """Yield a mask per object."""
    for row in range(1, len(labels) + 1):
        found = np.any([sheet == row for sheet in labels.sheets], axis=0)
        yield np.asfortranarray(found, np.uint8)


def by_threshold(images: list[dict[str, Any]], place: int) -> float:
    """Return the average precision of pycocotools' matches, threshold by threshold."""
    n = sum(int((np.asarray(image["gtIgnore"]) == 0).sum()) for image in images)
    if not n:
        return float("nan")
    score = np.concatenate([image["dtScores"] for image in images])
    counts = ~np.concatenate([image["dtIgnore"][place] for image in images]).astype(bool)
    is_tp = np.concatenate([image["dtMatches"][place] for image in images]) > 0
    kept = [counts & (score >= threshold) for threshold in np.unique(score[counts])]
    points = [((is_tp & own).sum() / n, (is_tp & own).sum() / own.sum()) for own in kept]
    return float(
        np.mean([max((p for r, p in points if r >= least), default=0.0) for least in RECALLS])
    )


def of_coco(pairs: list[LabelPair], *, ties: bool) -> dict[str, list[float]]:
    """Return pycocotools' average precision per class and IoU.

    Of equal scores, pycocotools counts those of the first image first; with ties, its matches
    are counted here instead.
    """
    objects: dict[str, list[dict[str, Any]]] = {"reference": [], "prediction": []}
    for image, pair in enumerate(pairs, start=1):
        for side, listed in objects.items():
            labels: LabelImage = getattr(pair, side)
            for row, mask in enumerate(masks(labels)):
                listed.append(
                    {
                        "id": len(listed) + 1,
                        "image_id": image,
                        "category_id": int(labels.class_index[row]),
                        "segmentation": coco_masks.encode(mask),
                        "area": int(mask.sum()),
                        "iscrowd": 0,
                        "score": float(labels.scores[row]),
                    }
                )
    sides = []
    for listed in objects.values():
        side = COCO()
        side.dataset = {
            "images": [
                {"id": number, "height": SHAPE[0], "width": SHAPE[1]}
                for number in range(1, len(pairs) + 1)
            ],
            "annotations": listed,
            "categories": [{"id": n} for n in range(1, len(CLASS_NAMES) + 1)],
        }
        side.createIndex()
        sides.append(side)
    evaluation = COCOeval(*sides, "segm")
    evaluation.params.maxDets = [10**6]
    evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
    evaluation.evaluate()
    if ties:
        found = [image for image in evaluation.evalImgs if image is not None]
        return {
            name: [
                by_threshold([image for image in found if image["category_id"] == number], place)
                for place in range(len(COCO_IOUS))
            ]
            for number, name in enumerate(CLASS_NAMES, start=1)
        }
    evaluation.accumulate()
    precision = evaluation.eval["precision"][:, :, :, 0, 0]
    means = np.where(precision[:, 0] < 0, np.nan, precision.mean(axis=1))
    return {name: means[:, k].tolist() for k, name in enumerate(CLASS_NAMES)}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
def test_average_precision_is_that_of_pycocotools(
    overlap: bool, ties: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    contested = 0
    for seed in range(10 if overlap else 50):
        rng = np.random.default_rng(seed)
        pairs = [
            random_region(rng, overlap=overlap, ties=ties) for _ in range(int(rng.integers(1, 5)))
        ]
        settings = EvaluationSettings(
            overlaps=Overlaps.KEEP if overlap else Overlaps.FLATTEN, distances=False
        )
        regions = [scored_region(evaluate(pair, settings), "p", "r") for pair in pairs]
        contested += sum(
            len(np.unique(own.pairs.prediction[own.pairs.iou >= 0.5]))
            < int((own.pairs.iou >= 0.5).sum())
            for own in regions
        )
        table = average_precisions(regions)
        assert list(table) == list(COCO_IOUS)
        wanted = of_coco(pairs, ties=ties)
        for name, values in wanted.items():
            np.testing.assert_allclose(table.loc[name], values, rtol=0, atol=1e-12)
        expected = np.array(list(wanted.values()))
        if not np.isnan(expected).all():
            assert table.loc["mean"].mean() == pytest.approx(np.nanmean(expected), abs=1e-12)
    if overlap:
        assert contested > 0, "no detection had to choose between objects"
    capsys.readouterr()


def test_equal_scores_count_together_whatever_the_names_of_regions() -> None:
    right, wrong = np.array([[1, 1, 0, 0, 0]]), np.array([[0, 0, 0, 1, 1]])
    found = []
    for names in ("ab", "ba"):
        regions = [
            scored_region(evaluate_pair(right, prediction, scores=[0.5]), "p", name)
            for name, prediction in zip(names, (right, wrong), strict=True)
        ]
        regions.sort(key=lambda region: region.region)
        curve = precision_recall(regions, 0.5)
        assert (curve.score.tolist(), curve.precision.tolist()) == ([0.5], [0.5])
        found.append(curve.average_precision)
    assert found == pytest.approx([51 * 0.5 / 101] * 2)


def test_precision_and_recall_at_each_detection() -> None:
    reference = np.array([[1, 1, 0, 2, 2, 0, 3, 3, 0, 0]])
    prediction = np.array([[1, 1, 0, 2, 2, 0, 0, 0, 4, 5]])
    scores = {1: 0.5, 2: 0.875, 4: 0.75}
    regions = evaluate_pair(reference, prediction, scores=scores).scores.regions
    curve = precision_recall(regions, 0.5)
    assert curve.score.tolist() == [0.875, 0.75, 0.5]
    assert curve.precision.tolist() == [1, 1 / 2, 2 / 3]
    assert curve.recall.tolist() == [1 / 3, 1 / 3, 2 / 3]
    # Recalls up to 0.33 have precision 1, up to 0.66 2/3, and higher ones 0.
    assert curve.average_precision == pytest.approx((34 + 33 * 2 / 3) / 101)


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        # Object 2 and its prediction have no pixel left.
        ("clip", [(1, True), (3, False)]),
        # Object 2 is ignored, whatever matches it.
        ("majority", [(1, True), (3, False)]),
        ("clip-predictions", [(1, True), (3, False)]),
        ("keep", [(1, True), (2, True), (3, False), (4, False)]),
    ],
)
def test_ignored_objects_count_nowhere(policy: str, found: list[tuple[int, bool]]) -> None:
    reference = np.array([[1, 1, 0, 2, 2, 2, 0, 0, 0, 0]])
    prediction = np.array([[1, 1, 0, 2, 2, 2, 0, 3, 0, 4]])
    ambiguous = np.array([[0, 0, 0, 1, 1, 1, 0, 0, 0, 1]], bool)
    scores = {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6}
    result = evaluate_pair(
        reference,
        prediction,
        ambiguous=ambiguous,
        settings=EvaluationSettings(ambiguous=policy),
        scores=scores,
    )
    curve = precision_recall(result.scores.regions, 0.5)
    assert curve.score.tolist() == [scores[id_] for id_, _ in found]
    hits = np.cumsum([is_hit for _, is_hit in found])
    np.testing.assert_allclose(curve.precision, hits / np.arange(1, len(found) + 1))
    assert curve.references == (2 if policy in ("keep", "clip-predictions") else 1)
