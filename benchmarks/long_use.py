"""Using one window for long: does it grow, does it get slower?

Memory is resident memory after Python's garbage was collected and the allocator has given back what
it can: otherwise what glibc keeps for threads and a software OpenGL covers up anything smaller.
Times are processor time: of all threads for a switch, of the main thread for a stroke.
"""

import ctypes
import gc
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from qtpy.QtCore import QCoreApplication, QEvent, QObject
from qtpy.QtWidgets import QApplication

from benchmarks.measure import ms, print_table, temporary
from benchmarks.windows import answer_ms, opened, settle
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.samples.write import write_sample_cohort
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

WATCHED = (Session, RegionSnapshot, Evaluation, LabelImage, EditedPair)


@dataclass(frozen=True)
class Census:
    """Memory, and the number of everything that a window could leave behind."""

    memory_mib: float
    counts: dict[str, int]


def census(desk: Desk) -> Census:
    """Collect garbage, and count what is left."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    for _ in range(3):
        gc.collect()
    # By type: some weak references look like what they led to, and fail where that is gone.
    kinds = list(map(type, gc.get_objects()))
    alive = Counter(kind for kind in kinds if issubclass(kind, WATCHED))
    files = Path("/proc/self/fd")
    counts = {
        "layers": len(desk._viewer.layers),
        "widgets": len(QApplication.allWidgets()),
        "Qt objects": sum(issubclass(kind, QObject) for kind in kinds),
        "threads": threading.active_count(),
        "files": len(list(files.iterdir())) if files.is_dir() else 0,
        **{kind.__name__: alive[kind] for kind in WATCHED},
    }
    if os.name == "posix" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    return Census(psutil.Process().memory_info().rss / 2**20, counts)


def use(desk: Desk, switches: int, strokes: int, *, seed: int) -> tuple[list[float], list[float]]:
    """Go through regions, and paint in the last; returns ms per switch and per stroke."""
    names = [region.name for region in desk.session.cohort.regions]
    shown = desk.session.snapshot.region.name if desk.session.snapshot else names[-1]
    following = [names[(names.index(shown) + 1 + k) % len(names)] for k in range(switches)]
    switched = [ms(partial(_switch, desk, name), time.process_time) for name in following]
    settle(desk)
    return switched, _paint(desk, strokes, np.random.default_rng(seed))


def _switch(desk: Desk, name: str) -> None:
    answer_ms(desk, lambda: desk.panels.navigator.place_chosen.emit(name))


def _paint(desk: Desk, strokes: int, rng: np.random.Generator) -> list[float]:
    """Dab the brush about, on either side, with undo; then discard it all."""
    edits = desk.presenter(EditsPresenter).edits
    if not edits.set_on(True):
        return []
    times = []
    for number in range(strokes):
        if number % 50 == 0:
            side = Side.PREDICTION if number % 100 == 0 else Side.REFERENCE
            edits.activate(side)
            layer: Any = desk.link.scene.object_layer(side, desk.session.team)[0]
            layer.brush_size = 8
            height, width = layer.data.shape
            top = int(np.asarray(layer.data).max())
        y, x = rng.integers(0, height), rng.integers(0, width)
        label = (int(rng.integers(1, top + 1)), 0, top + 1 + number % 50)[number % 3]
        times.append(ms(lambda: layer.paint((y, x), label)))  # noqa: B023
        if number % 10 == 9:
            layer.undo()
            QApplication.processEvents()
    settle(desk)
    edits.set_on(False)
    edits.discard()
    settle(desk)
    return times


def long_use(switches: int = 1000, strokes: int = 10_000, rounds: int = 100) -> None:
    """Memory and times after each tenth of the rounds of switches, strokes and undo; what is left.

    The first line comes after every region was seen; memory may grow by 5 % from there.
    """
    switched: list[float] = []
    stroked: list[float] = []
    rows, first = [], 0.0
    with temporary() as folder, opened(write_sample_cohort(folder / "cohort")) as (desk, _):
        for number in range(1, rounds + 1):
            times = use(desk, switches // rounds, strokes // rounds, seed=number)
            switched += times[0]
            stroked += times[1]
            if number % max(1, rounds // 10):
                continue
            found = census(desk)
            first = first or found.memory_mib
            growth = found.memory_mib / first - 1
            last = [f"{median(each[-100:]):.2f}" for each in (switched, stroked)]
            memory = f"{found.memory_mib:.1f}", f"{growth:+.1%}{' above' * (growth > 0.05)}"
            rows.append([len(switched), len(stroked), *last, *memory, *found.counts.values()])
    header = ["switches", "strokes", "ms a switch", "ms a stroke", "MiB", "growth", *found.counts]
    print_table(f"{rounds} rounds; times of the last 100", header, rows)
