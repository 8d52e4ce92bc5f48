"""On a first start, compile the kernels of the evaluation in a second process.

Numba compiles on one processor at a time. While the window's process compiles the kernels
that read and draw a region, ``python -m napari_panoptic.nuclei.first_start`` compiles those
that evaluate and edit it. Each finds in numba's cache what the other has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from napari_panoptic.kernels.changes import list_changes
from napari_panoptic.nuclei.edits import EditedPair, IdWindow
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.values.vocabulary import Side

SIDE_PX = 24
CLASSES = ("A", "B")
OTHER_SETTINGS = (
    {"matching": "centroid", "ambiguous": "keep", "outlines": "both-whole"},
    {"iou_threshold": 0.3, "ambiguous": "majority"},
    {"ambiguous": "clip-predictions"},
    {"distances": False},
)
"""Settings that use other kernels than the defaults."""


def compile_beside() -> subprocess.Popen[bytes] | None:
    """Start the second process; None if kernels are cached already or there is one processor."""
    if (os.cpu_count() or 1) < 2 or has_cached_kernels():
        return None
    try:
        return subprocess.Popen(  # noqa: S603 - this very interpreter
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:  # no more processes: this one compiles everything
        return None


def has_cached_kernels() -> bool:
    """Return whether a process compiled kernels before, or none can be cached."""
    folder = list_changes.stats.cache_path  # type: ignore[attr-defined]
    return folder is None or any(Path(folder).glob("*.nbi"))


def evaluate_and_edit() -> None:
    """Evaluate and edit a tiny pair under all settings, as the window does."""
    pair = _tiny_pair()
    settings = EvaluationSettings()
    evaluation = evaluate(pair, settings)
    live = EditedPair(pair, known=evaluation)
    y, x = np.mgrid[4:6, 4:12].reshape(2, -1)
    window = IdWindow((3, 3), np.array([[0, 1], [1, 2]], np.uint16), np.array([0, 1, 900]))
    classes = {900: CLASSES[0], 901: CLASSES[1]}
    for side in Side:
        for id_ in (901, 0):
            live.set_pixels(side, y, x, id_, classes=classes)
            live.evaluate(settings)
        live.set_window(side, window, classes=classes)
        live.evaluate(settings)
    live.set_ambiguous(None)
    live.evaluate(settings)
    for changes in OTHER_SETTINGS:
        evaluate(pair, settings.replaced(**changes))


def _tiny_pair() -> LabelPair:
    """Make one matched object, one found in pieces, and an ambiguous area."""
    shape = (SIDE_PX, SIDE_PX)
    reference, prediction = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    reference[3:10, 3:10], reference[12:21, 4:13] = 1, 2
    prediction[4:9, 4:9], prediction[14:20, 16:22], prediction[15:17, 4:9] = 1, 2, 3
    ambiguous = np.zeros(shape, bool)
    ambiguous[12:20, 14:22] = True
    classes = {1: CLASSES[0], 2: CLASSES[1], 3: CLASSES[1]}
    return LabelPair(
        LabelImage.from_array(reference, classes, CLASSES),
        LabelImage.from_array(prediction, classes, CLASSES),
        ambiguous,
    )


if __name__ == "__main__":
    evaluate_and_edit()
