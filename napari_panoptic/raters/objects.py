"""Pairwise agreement of several raters on objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings


@dataclass(frozen=True, eq=False)
class ObjectAgreement:
    """Agreement of n raters on the objects of each of C classes."""

    #: The C classes.
    class_names: tuple[str, ...]
    #: float64 (C, n, n): panoptic quality, and F1 of objects matched at an IoU above 0.5 with the
    #: same class (DQ). NaN if neither rater has an object of the class.
    pq: NDArray[np.float64]
    f1: NDArray[np.float64]

    def of_class(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return PQ and F1, (n, n) each, of a class."""
        place = self.class_names.index(name)
        return self.pq[place], self.f1[place]


def object_agreement(labels: Sequence[LabelImage]) -> ObjectAgreement:
    """Evaluate each pair of raters as if one were the reference of the other.

    At a threshold of 0.5 a matching is one to one, so that PQ and F1 are the
    same whichever of the two is the reference; no ambiguous area is cut.

    Parameters
    ----------
    labels
        The n raters' objects: one shape, the same classes.
    """
    settings = EvaluationSettings(ambiguous=AmbiguousPolicy.KEEP, distances=False)
    names = labels[0].class_names
    pq, f1 = np.full((2, len(names), len(labels), len(labels)), math.nan)
    for i, first in enumerate(labels):
        for j, second in enumerate(labels[: i + 1]):
            quality = evaluate(LabelPair(first, second), settings).counts.figures_by_class
            pq[:, i, j] = pq[:, j, i] = quality["pq"]
            f1[:, i, j] = f1[:, j, i] = quality["dq"]
    return ObjectAgreement(names, pq, f1)
