"""Small label pairs that the viewer tests share."""

import numpy as np

from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.values.cohort import ClassScheme

SCHEME = ClassScheme(names=("Round", "Long"), colours=((255, 0, 0), (0, 0, 255)))
REFERENCE_CLASSES = {11: "Round", 12: "Round", 13: "Long", 14: "Long"}
PREDICTION_CLASSES = {21: "Round", 22: "Long", 23: "Long"}


def four_fates(mpp=0.5):
    """Make a pair with one object of each fate, 40 x 60 px.

    Reference: 11 found (TP), 12 found as another class, 13 missed, 14 ignored.
    Prediction: 21 and 22 match 11 and 12, 23 is spurious.
    """
    reference = np.zeros((40, 60), np.int64)
    reference[4:14, 4:14] = 11
    reference[4:14, 24:34] = 12
    reference[24:34, 4:16] = 13
    reference[24:34, 44:54] = 14
    prediction = np.zeros((40, 60), np.int64)
    prediction[5:14, 4:14] = 21
    prediction[4:14, 24:33] = 22
    prediction[22:30, 24:32] = 23
    ambiguous = np.zeros((40, 60), bool)
    ambiguous[20:40, 40:60] = True
    return evaluate_pair(
        reference,
        prediction,
        reference_classes=REFERENCE_CLASSES,
        prediction_classes=PREDICTION_CLASSES,
        ambiguous=ambiguous,
        class_names=SCHEME.names,
        mpp=mpp,
    )


def all_found():
    """Make a pair without a failure: two objects, annotated and predicted alike."""
    image = np.zeros((40, 60), np.int64)
    image[4:14, 4:14] = 11
    image[24:34, 4:16] = 13
    return evaluate_pair(
        image,
        image,
        reference_classes=REFERENCE_CLASSES,
        prediction_classes=REFERENCE_CLASSES,
        class_names=SCHEME.names,
    )


def empty_pair():
    """Make a pair without a single object."""
    nothing = np.zeros((10, 10), int)
    return evaluate_pair(
        nothing,
        nothing,
        reference_classes={},
        prediction_classes={},
        class_names=SCHEME.names,
    )
