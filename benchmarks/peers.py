"""Peers that need another NumPy or PyTorch: run in environments of their own by `workers`.

The functions are called as those of `benchmarks.contenders`; each imports its peer.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int32]
Pairs = NDArray[np.int64]


def panoptica_match(reference: Labels, prediction: Labels) -> Pairs:
    """Match with the naive matcher, which accepts an IoU of 0.5; pairs (k, 2)."""
    from panoptica import NaiveThresholdMatching, UnmatchedInstancePair

    pair = UnmatchedInstancePair(prediction.astype(np.uint32), reference.astype(np.uint32))
    found = NaiveThresholdMatching()._match_instances(pair, matching_threshold=0.5)
    pairs = [(int(r), int(p)) for p, r in found.get_one_to_one_dictionary().items()]
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def panoptica_evaluate(reference: Labels, prediction: Labels) -> Pairs:
    """Evaluate with IoU as the only metric of an instance; the number of pairs."""
    import panoptica
    from panoptica.metrics import Metric

    panoptica.disable_citation_reminder()
    evaluator = panoptica.Panoptica_Evaluator(
        expected_input=panoptica.InputType.UNMATCHED_INSTANCE,
        instance_matcher=panoptica.NaiveThresholdMatching(),
        instance_metrics=[Metric.IOU],
        global_metrics=[],
    )
    results = evaluator.evaluate(prediction.astype(np.uint32), reference.astype(np.uint32))
    (result,) = results.values()
    return np.array(int(result.tp), np.int64)


def cellpose_iou(reference: Labels, prediction: Labels) -> Pairs:
    """Return the pairs (k, 2) with an IoU above 0.5 in cellpose's table of all pairs."""
    from cellpose.metrics import _intersection_over_union

    return np.argwhere(_intersection_over_union(reference, prediction)[1:, 1:] > 0.5) + 1


def cellpose_ap(reference: Labels, prediction: Labels) -> Pairs:
    """Return the number of pairs of cellpose's average precision at 0.5, which it accepts."""
    from cellpose.metrics import average_precision

    _, matched, _, _ = average_precision(reference, prediction, threshold=[0.5])
    return np.array(matched[0], np.int64)


def torchmetrics_quality(reference: Labels, prediction: Labels) -> Pairs:
    """Return the number of pairs behind torchmetrics' panoptic quality, objects of one class."""
    import torch
    from torchmetrics.detection import PanopticQuality

    metric = PanopticQuality(things={1}, stuffs={0})
    classed = (
        np.stack([own > 0, own], axis=-1).astype(np.int32) for own in (prediction, reference)
    )
    metric.update(*(torch.from_numpy(own[None]) for own in classed))
    metric.compute()
    counted: Any = metric.true_positives
    return np.array(int(counted[0]), np.int64)  # things come first


CONTENDERS = {
    "panoptica, matcher alone": panoptica_match,
    "panoptica, evaluation": panoptica_evaluate,
    "cellpose, table of IoUs": cellpose_iou,
    "cellpose, average_precision": cellpose_ap,
    "torchmetrics PanopticQuality": torchmetrics_quality,
}
