"""Peers that need PyTorch: run in an environment of their own by `benchmarks.worker`.

The functions are called as those of `benchmarks.contenders` are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int32]


def cellpose_iou(reference: Labels, prediction: Labels) -> NDArray[np.int64]:
    """Give the pairs (k, 2) with an IoU above 0.5 in cellpose's table of all pairs."""
    from cellpose.metrics import _intersection_over_union

    return np.argwhere(_intersection_over_union(reference, prediction)[1:, 1:] > 0.5) + 1


def cellpose_ap(reference: Labels, prediction: Labels) -> NDArray[np.int64]:
    """Give the number of pairs of cellpose's average precision at 0.5, which it accepts."""
    from cellpose.metrics import average_precision

    _, matched, _, _ = average_precision(reference, prediction, threshold=[0.5])
    return np.array(matched[0], np.int64)


def torchmetrics_quality(reference: Labels, prediction: Labels) -> NDArray[np.int64]:
    """Give the number of pairs behind torchmetrics' panoptic quality, all objects of one class."""
    import torch
    from torchmetrics.detection import PanopticQuality

    metric = PanopticQuality(things={1}, stuffs={0})
    metric.update(*(torch.from_numpy(_class_and_id(labels)) for labels in (prediction, reference)))
    metric.compute()
    counted: Any = metric.true_positives
    # Things come first.
    return np.array(int(counted[0]), np.int64)


def _class_and_id(labels: Labels) -> Labels:
    return np.stack([labels > 0, labels], axis=-1).astype(np.int32)[None]


CONTENDERS = {
    "cellpose, table of IoUs": cellpose_iou,
    "cellpose, average_precision": cellpose_ap,
    "torchmetrics PanopticQuality": torchmetrics_quality,
}
