"""cleanlab's scores of suspect boxes: run in an environment of its own by `benchmarks.suspects`."""

import json
import sys
from pathlib import Path

import numpy as np
from cleanlab.object_detection.rank import (
    compute_badloc_box_scores,
    compute_overlooked_box_scores,
    compute_swap_box_scores,
)

# Predictions have the share of agreeing teams as their probability, at least half here.
LIKELY = 0.5


def main(source: Path, target: Path) -> None:
    """Score the boxes of a file; higher is more suspect in the result."""
    labels, predictions = json.loads(source.read_text())
    labels = [{name: np.array(own) for name, own in label.items()} for label in labels]
    boxes = [
        [np.array(own, float).reshape(-1, 5) for own in per_class] for per_class in predictions
    ]
    both = {"labels": labels, "predictions": [_in_objects(own) for own in boxes]}
    likely = {"high_probability_threshold": LIKELY}
    found = {
        "overlooked": compute_overlooked_box_scores(**both, **likely),
        "badly-located": compute_badloc_box_scores(**both, low_probability_threshold=LIKELY),
        "wrong-class": compute_swap_box_scores(**both, **likely),
    }
    suspect = {
        kind: [(1 - np.asarray(own, float)).tolist() for own in scores]
        for kind, scores in found.items()
    }
    target.write_text(json.dumps(suspect))


def _in_objects(per_class: list[np.ndarray]) -> np.ndarray:
    array = np.empty(len(per_class), object)
    array[:] = per_class
    return array


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
