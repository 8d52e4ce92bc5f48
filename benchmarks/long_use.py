"""Use one window for long: does it grow, does it get slower?

Needs a display: ``xvfb-run -a python -m benchmarks.long_use`` where there is none. Rounds of
region switches and strokes of the brush on the sample cohort, with undo, both sides, and edits
discarded at the end of each round. After each tenth of the rounds the size of the process and the
number of everything that could be left behind are printed; the first of these lines comes after
every region was seen, which is what the others are compared with.

What the process holds is its resident memory after Python's garbage was collected and the
allocator has given back what it can (``malloc_trim``): without that, what glibc keeps for the
arenas of threads, and what a software OpenGL keeps, covers up anything smaller. Times are those of
the processor, so that other work on the machine does not count: of all threads for a switch, of
the main thread for a stroke with everything that follows at once.
"""

import argparse
import ctypes
import gc
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from qtpy.QtCore import QCoreApplication, QEvent, QObject
from qtpy.QtWidgets import QApplication

from benchmarks.windows import opened, settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.samples.write import write_sample_cohort
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

SWITCHES, STROKES, ROUNDS = 1000, 10_000, 100
LINES = 10
MOST_GROWTH = 0.05
WATCHED = (Session, RegionSnapshot, Evaluation, LabelImage, EditedPair)


@dataclass(frozen=True)
class Census:
    """How many there are of everything that a window could leave behind.

    Parameters
    ----------
    memory_mib
        Resident memory, after what can be given back was.
    counts
        Layers, widgets, threads, open files, objects of Qt, and values of the
        evaluation that are alive.
    """

    memory_mib: float
    counts: dict[str, int]


def census(desk: Desk) -> Census:
    """Collect garbage, and count what is left."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    for _ in range(3):
        gc.collect()
    # By type: some weak references look like what they led to, and fail where that is gone.
    alive = Counter(kind for kind in map(type, gc.get_objects()) if issubclass(kind, WATCHED))
    counts = {
        "layers": len(desk._viewer.layers),
        "widgets": len(QApplication.allWidgets()),
        "Qt objects": sum(issubclass(kind, QObject) for kind in map(type, gc.get_objects())),
        "threads": threading.active_count(),
        "files": _open_files(),
        **{kind.__name__: alive[kind] for kind in WATCHED},
    }
    if os.name == "posix" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    return Census(psutil.Process().memory_info().rss / 2**20, counts)


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def use(desk: Desk, switches: int, strokes: int, *, seed: int) -> tuple[list[float], list[float]]:
    """Go through regions, and paint in the last; gives ms per switch and per stroke."""
    session, link = desk.session, desk.link
    if session is None or link is None:
        raise RuntimeError("the desk shows no cohort")
    names = [region.name for region in session.cohort.regions]
    shown = session.snapshot.region.name if session.snapshot else names[-1]
    following = names.index(shown) + 1
    switched = [_switch(desk, names[(following + k) % len(names)]) for k in range(switches)]
    settle(desk)
    return switched, _paint(desk, strokes, np.random.default_rng(seed))


def _switch(desk: Desk, name: str) -> float:
    """Choose a region in the list; gives ms of all threads until all teams are there."""
    session = desk.session
    answers: list[bool] = []

    def note(_snapshot: RegionSnapshot) -> None:
        answers.append(True)

    session.region_changed.connect(note)
    began = time.process_time()
    desk.panels.navigator.place_chosen.emit(name)
    while not answers or desk.link.loader.is_busy:
        QApplication.processEvents()
        time.sleep(0.0005)  # leaves the interpreter to the worker
    session.region_changed.disconnect(note)
    return 1000 * (time.process_time() - began)


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
        began = time.thread_time()
        layer.paint((y, x), label)
        times.append(1000 * (time.thread_time() - began))
        if number % 10 == 9:
            layer.undo()
            QApplication.processEvents()
    settle(desk)
    edits.set_on(False)
    edits.discard()
    settle(desk)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--switches", type=int, default=SWITCHES)
    parser.add_argument("--strokes", type=int, default=STROKES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--types", action="store_true", help="print which types grow in number")
    options = parser.parse_args()
    per_round = options.switches // options.rounds, options.strokes // options.rounds
    with TemporaryDirectory() as folder:
        cohort = open_cohort(write_sample_cohort(Path(folder) / "cohort"))
        with opened(cohort) as (desk, _):
            _run(desk, options.rounds, per_round, options.types)


def _run(desk: Desk, rounds: int, per_round: tuple[int, int], with_types: bool) -> None:
    switched: list[float] = []
    stroked: list[float] = []
    lines: list[Census] = []
    types_before: Counter[str] = Counter()
    for number in range(1, rounds + 1):
        times = use(desk, *per_round, seed=number)
        switched += times[0]
        stroked += times[1]
        if number % max(1, rounds // LINES) == 0:
            lines.append(census(desk))
            told = ", ".join(f"{n} {name}" for name, n in lines[-1].counts.items())
            print(
                f"{len(switched):5} switches {len(stroked):6} strokes: "
                f"{lines[-1].memory_mib:7.1f} MiB; last 100: {median(switched[-100:]):6.1f} ms a "
                f"switch, {median(stroked[-100:]):5.2f} ms a stroke; {told}",
                flush=True,
            )
            if with_types:
                types = Counter(
                    f"{type(v).__module__}.{type(v).__qualname__}" for v in gc.get_objects()
                )
                print("   grown:", (types - types_before).most_common(25), flush=True)
                types_before = types
    growth = lines[-1].memory_mib / lines[0].memory_mib - 1
    print(f"memory: {growth:+.1%} since the first line" + "  above" * (growth > MOST_GROWTH))
    for name, times in (("switch", switched), ("stroke", stroked)):
        first, last = median(times[:100]), median(times[-100:])
        print(f"median {name}: {first:.2f} ms for the first 100, {last:.2f} ms for the last 100")


if __name__ == "__main__":
    main()
