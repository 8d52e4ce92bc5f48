"""Slides that are held in memory, and behave as those that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.io.formats.labels.label_tiff import write_labels
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.windowed_labels import Box, TiledLabels, TiledPair


def tiled(
    labels: LabelImage, tile_px: int = 512, *, on_read: Callable[[Box], object] = lambda _box: None
) -> TiledLabels:
    """Let a label image be read window by window."""

    def read(box: Box) -> NDArray[np.int32]:
        on_read(box)
        y0, x0, y1, x1 = box
        return np.ascontiguousarray(labels.index[y0:y1, x0:x1])

    return TiledLabels(
        labels.shape,
        labels.ids,
        labels.class_index,
        labels.original_ids,
        labels.class_names,
        read,
        tile_px,
    )


def tiled_pair(pair: LabelPair) -> TiledPair:
    """Let a label pair be read window by window."""
    return TiledPair(tiled(pair.reference), tiled(pair.prediction), None, pair.mpp)


def random_pair(
    shape: tuple[int, int], objects: int, *, seed: int = 1, prediction_seed: int = 0
) -> LabelPair:
    """Draw ellipses, of which some are missed, shifted, misnamed or invented."""
    rng, fate = np.random.default_rng(seed), np.random.default_rng(1000 + prediction_seed)
    names = MONUSAC_CLASSES.names
    reference, prediction = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    of_reference, of_prediction = {}, {}
    for id_ in range(1, objects + 1):
        centre, axes = rng.uniform((0, 0), shape), rng.uniform(5, 14, 2)
        kind, class_ = fate.random(), int(rng.integers(len(names)))
        of_reference[id_] = names[class_]
        _ellipse(reference, centre, axes, id_)
        if kind < 0.2:
            continue
        of_prediction[id_] = names[(class_ + (kind > 0.9)) % len(names)]
        _ellipse(prediction, centre + (axes * 1.2 if kind < 0.35 else 0), axes, id_)
    return LabelPair(
        LabelImage.from_array(reference, of_reference, names),
        LabelImage.from_array(prediction, of_prediction, names),
    )


def _ellipse(
    image: NDArray[np.int32], centre: NDArray[np.float64], axes: NDArray[np.float64], id_: int
) -> None:
    (y0, x0), (y1, x1) = np.maximum(centre - axes, 0).astype(int), (centre + axes).astype(int) + 1
    y, x = np.ogrid[y0 : min(y1, image.shape[0]), x0 : min(x1, image.shape[1])]
    inside = ((y - centre[0]) / axes[0]) ** 2 + ((x - centre[1]) / axes[1]) ** 2 <= 1
    window = image[y0:y1, x0:x1]
    window[inside & (window == 0)] = id_


SLIDE, SMALL, TEAMS = "S_1", "S_2", ("first", "second")
SHAPES = {SLIDE: (700, 1100), SMALL: (120, 150)}
HELD_UP_TO_PX = 300 * 300
"""Between the two regions: one is a slide, one is held."""
_TOML = """name = "slides"

[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
image = "images/{region}.png"
reference.labels = "reference/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""


def write_slide_cohort(root: Path) -> dict[tuple[str, str], LabelPair]:
    """Write a slide and a small region as a cohort; gives each team's label pair."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "cohort.toml").write_text(_TOML)
    (root / "images").mkdir()
    pairs = {}
    for region, shape in SHAPES.items():
        rgb = np.full((*shape, 3), 200, np.uint8)
        Image.fromarray(rgb).save(root / "images" / f"{region}.png")
        objects = shape[0] * shape[1] // 2000
        for number, team in enumerate(TEAMS):
            pair = random_pair(shape, objects, seed=1, prediction_seed=number)
            _write(root / "reference" / f"{region}.tif", pair.reference)
            _write(root / "teams" / team / f"{region}.tif", pair.prediction)
            pairs[region, team] = pair
    return pairs


def _write(path: Path, labels: LabelImage) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_labels(path, labels.id_image())
    names = labels.class_names_of_objects()
    lines = [f"{id_},{name}" for id_, name in zip(labels.ids.tolist(), names, strict=True)]
    path.with_suffix(".csv").write_text("\n".join(["id,class", *lines, ""]))
