"""panoptica, which needs an older NumPy: run in an environment of its own by `benchmarks.worker`.

The functions are called as those of `benchmarks.contenders` are.
"""

import numpy as np
from numpy.typing import NDArray
from panoptica import (
    InputType,
    NaiveThresholdMatching,
    Panoptica_Evaluator,
    UnmatchedInstancePair,
    disable_citation_reminder,
)
from panoptica.metrics import Metric

disable_citation_reminder()

Labels = NDArray[np.int32]


def match(reference: Labels, prediction: Labels) -> NDArray[np.int64]:
    """Match with the naive matcher, which accepts an IoU of 0.5; pairs (k, 2)."""
    pair = UnmatchedInstancePair(prediction.astype(np.uint32), reference.astype(np.uint32))
    found = NaiveThresholdMatching()._match_instances(pair, matching_threshold=0.5)
    pairs = [(int(r), int(p)) for p, r in found.get_one_to_one_dictionary().items()]
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def evaluate(reference: Labels, prediction: Labels) -> NDArray[np.int64]:
    """Evaluate with IoU as the only metric of an instance; the number of pairs."""
    evaluator = Panoptica_Evaluator(
        expected_input=InputType.UNMATCHED_INSTANCE,
        instance_matcher=NaiveThresholdMatching(),
        instance_metrics=[Metric.IOU],
        global_metrics=[],
    )
    results = evaluator.evaluate(prediction.astype(np.uint32), reference.astype(np.uint32))
    (result,) = results.values()
    return np.array(int(result.tp), np.int64)


CONTENDERS = {"panoptica, matcher alone": match, "panoptica, evaluation": evaluate}
