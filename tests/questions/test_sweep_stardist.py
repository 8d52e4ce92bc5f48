"""The best setting is that of StarDist's ``optimize_thresholds``, on the same candidates.

``StarDist2D.optimize_thresholds`` calls ``stardist.utils.optimize_threshold`` for each NMS
threshold and keeps the best. That function needs of a model only its
``_instances_from_prediction``. Where StarDist is not installed, only a restatement of the
documented procedure is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.questions.engines.sweep import sweep_cohort
from napari_panoptic.questions.engines.sweep_design import parameters_in, sweep_design
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.sweep_cohort import TOML, write_labels

Labels = NDArray[np.uint16]
NMS = (0.2, 0.5)
IOUS = (0.3, 0.5, 0.7)
STEP = 0.03
TOLERANCE = 0.01
"""Of StarDist's search, relative."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Discs of a detector with their probabilities, and the annotation of the image."""

    truth: Labels
    masks: NDArray[np.bool_]
    probability: NDArray[np.float64]

    @cached_property
    def overlaps(self) -> NDArray[np.float64]:
        """The IoU of every two candidates."""
        return iou(self.masks, self.masks)

    def instances(self, prob: float, nms: float) -> Labels:
        """Return the candidates above a probability, without those that overlap a better one."""
        labels = np.zeros(self.truth.shape, np.uint16)
        kept: list[int] = []
        for one in np.argsort(-self.probability).tolist():
            if self.probability[one] > prob and (self.overlaps[one, kept] <= nms).all():
                kept.append(one)
                labels[self.masks[one] & (labels == 0)] = len(kept)
        return labels


def iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the IoU (n, m) of masks (n, y, x) with others (m, y, x)."""
    first, second = (own.reshape(len(own), -1).astype(np.float64) for own in (a, b))
    shared = first @ second.T
    found: NDArray[np.float64] = shared / (
        first.sum(axis=1)[:, np.newaxis] + second.sum(axis=1) - shared
    )
    return found


def candidates(seed: int) -> Candidates:
    """Draw 16 nuclei, a candidate near each, doubtful second ones, and unlikely spurious ones."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((96, 96))
    truth = np.zeros(rows.shape, np.uint16)
    masks, probability = [], []

    def disc(y: float, x: float, radius: float) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (rows - y) ** 2 + (columns - x) ** 2 <= radius**2
        return found

    for place in range(16):
        y, x = 12 + 24 * (place // 4), 12 + 24 * (place % 4)
        truth[disc(y, x, 8)] = place + 1
        masks.append(disc(y + rng.uniform(-1.5, 1.5), x, rng.uniform(6.5, 9)))
        probability.append(rng.uniform(0.55, 0.95))
        if place % 2:  # a second candidate that overlaps the first by about a third
            masks.append(disc(y + rng.uniform(-1, 1), x + rng.uniform(5, 8), 7))
            probability.append(rng.uniform(0.4, 0.7))
        if place % 3 == 0:
            masks.append(disc(y + 11, x + 11, 4))
            probability.append(rng.uniform(0.3, 0.62))
    return Candidates(truth, np.array(masks), np.array(probability))


def accuracy(truth: Sequence[Labels], found: Sequence[Labels], threshold: float) -> float:
    """Return tp / (tp + fp + fn) over several images, matched one to one at an IoU."""
    tp = n_truth = n_found = 0
    for a, b in zip(truth, found, strict=True):
        masks = [np.array([own == i for i in np.unique(own) if i]) for own in (a, b)]
        n_truth, n_found = n_truth + len(masks[0]), n_found + len(masks[1])
        if len(masks[0]) and len(masks[1]):
            table = iou(*masks)
            right = table >= threshold
            at = linear_sum_assignment(-right.astype(float) - table / (2 * min(table.shape)))
            tp += int(right[at].sum())
    return tp / (n_truth + n_found - tp)


Optimise = Callable[[Sequence[Candidates], float], tuple[float, float]]


def restated(images: Sequence[Candidates], nms: float) -> tuple[float, float]:
    """Search the probability between half of the highest one and that by golden sections."""
    highest = max(float(one.probability.max()) for one in images)
    known: dict[float, float] = {}

    def loss(threshold: float) -> float:
        prob = float(np.clip(threshold, highest / 2, highest))
        if prob not in known:
            truth = [one.truth for one in images]
            found = [one.instances(prob, nms) for one in images]
            known[prob] = float(np.mean([accuracy(truth, found, at) for at in IOUS]))
        return -known[prob]

    best = minimize_scalar(
        loss,
        method="golden",
        bracket=(highest / 2, highest),
        tol=TOLERANCE,
        options={"maxiter": 20},
    )
    return float(best.x), -float(best.fun)


def stardist(images: Sequence[Candidates], nms: float) -> tuple[float, float]:
    """Call StarDist's own search; candidates take the place of the network's output."""
    utils = pytest.importorskip("stardist.utils")

    class Model:
        """What StarDist's search asks a model for."""

        def _instances_from_prediction(
            self, _shape: object, own: NDArray[np.float64], *_: object, **at: float
        ) -> tuple[Labels, None]:
            image = next(one for one in images if one.probability is own)
            return image.instances(at["prob_thresh"], at["nms_thresh"]), None

    truth = [one.truth for one in images]
    outputs = [(one.probability, None) for one in images]
    prob, value = utils.optimize_threshold(
        truth, outputs, Model(), nms, iou_threshs=list(IOUS), tol=TOLERANCE, verbose=0
    )
    return float(prob), float(value)


@pytest.mark.parametrize("optimise", [restated, stardist])
def test_the_best_setting_is_that_of_stardist(optimise: Optimise, tmp_path: Path) -> None:
    images = [candidates(seed) for seed in (1, 2)]
    prob, value, nms = max(
        ((*optimise(images, nms), nms) for nms in NMS), key=lambda found: found[1]
    )
    probabilities = [round(p, 2) for p in np.arange(0.43, 0.7, STEP)]
    settings = {f"prob{p}_nms{n}": (p, n) for n in NMS for p in probabilities}
    settings[f"prob{prob!r}_nms{nms}"] = (prob, nms)
    for number, image in enumerate(images):
        write_labels(tmp_path / "reference" / f"P_{number}.tif", image.truth)
        for team, at in settings.items():
            write_labels(tmp_path / "teams" / team / f"P_{number}.tif", image.instances(*at))
    (tmp_path / "cohort.toml").write_text(TOML, "utf-8")
    cohort = open_cohort(tmp_path)
    assert cohort.patients == ("P",)  # StarDist sums over images
    design = sweep_design({team: parameters_in(team) for team in settings})
    figures = np.mean(
        [
            sweep_cohort(
                cohort,
                design,
                EvaluationSettings(iou_threshold=threshold),
                metric="detection_accuracy",
            ).figures[0]
            for threshold in IOUS
        ],
        axis=0,
    )
    by_setting = {
        setting.values: float(figure)
        for setting, figure in zip(design.settings, figures, strict=True)
    }
    assert design.parameters == ("prob", "nms")
    assert by_setting[prob, nms] == pytest.approx(value, abs=1e-12)
    best = max(by_setting, key=lambda at: by_setting[at])
    assert by_setting[best] == pytest.approx(value, abs=1e-12)
    del by_setting[prob, nms]
    highest = max(by_setting.values())
    on_grid = [at for at, figure in by_setting.items() if figure >= highest - 1e-12]
    assert best[1] == nms
    assert {at[1] for at in on_grid} == {nms}
    assert min(abs(at[0] - prob) for at in on_grid) <= STEP + TOLERANCE * prob
