"""Measure how long actions on objects take on the desk.

Needs a display: ``xvfb-run -a python -m benchmarks.mends`` where there is none. Each action is
done and undone on single objects of an image of M, and on 500 objects at once, with everything
that follows before the interface is free again: the working copy, figures, colours, layers and
the panels Edits, Review, Objects and Metrics, which are all in sight. Main-thread processor time.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import numpy as np
import tifffile
from qtpy.QtWidgets import QApplication, QDockWidget

from benchmarks.cases import Size
from benchmarks.strokes import TEAM, write_cohort
from benchmarks.windows import opened, settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.actions import Target
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Side, Status
from napari_panoptic.viewer.desk.nuclei import Desk
from napari_panoptic.viewer.editing.object_actions import Asking, ObjectAction
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

SIZE = Size("M", 1500, 1200)
MANY = 500
CALLS = 30
LIMIT_MS, LIMIT_MANY_MS = 12.0, 100.0
PANELS = ("Edits", "Review", "Objects", "Metrics")


def spoil(root: Path) -> None:
    """Let some predictions be pieces of an object, and some contain two."""
    path = root / "teams" / TEAM / "R_1.tif"
    labels = tifffile.imread(path)
    ids = np.unique(labels[labels > 0])
    for one, other in zip(ids[:40:2].tolist(), ids[1:40:2].tolist(), strict=True):
        _, xs = np.nonzero(labels == one)
        own = (labels == one) & (np.indices(labels.shape)[1] > xs.mean())
        labels[labels == other] = 0
        labels[own] = other
    reference = tifffile.imread(root / "reference" / "R_1.tif")
    for id_ in ids[40:80].tolist():
        _, xs = np.nonzero(labels == id_)
        middle = int(xs.mean())
        own = labels == id_
        found = np.bincount(reference[own]).argmax() if own.any() else 0
        part = (reference == found) & (np.indices(labels.shape)[1] > middle)
        if found:
            reference[part] = reference.max() + 1
    tifffile.imwrite(path, labels)
    tifffile.imwrite(root / "reference" / "R_1.tif", reference)
    for folder, image in (("reference", reference), (f"teams/{TEAM}", labels)):
        table = root / folder / "R_1.csv"
        lines = table.read_text(encoding="utf-8").splitlines()
        known = {line.split(",")[0] for line in lines}
        present = np.unique(image[image > 0]).tolist()
        lines += [f"{id_},Epithelial" for id_ in present if str(id_) not in known]
        kept = [lines[0], *(line for line in lines[1:] if int(line.split(",")[0]) in set(present))]
        table.write_text("\n".join(kept), encoding="utf-8")


def show_panels(desk: Desk) -> None:
    """Show the panels beside each other, in windows of their own."""
    docks = desk.strip.window().findChildren(QDockWidget)
    for number, title in enumerate(PANELS):
        dock = next(dock for dock in docks if dock.windowTitle() == title)
        dock.setFloating(True)
        dock.show()
        dock.move(40 + 380 * number, 60)
        dock.resize(370, 700)
    QApplication.processEvents()
    settle(desk)


def targets_of(desk: Desk, kind: ObjectAction) -> list[Target]:
    """Return objects that an action changes something of."""
    evaluation = desk.session.evaluation
    reference, prediction = (evaluation.outcomes.side(side) for side in Side)
    match kind:
        case ObjectAction.MERGE:
            own, rows = prediction, prediction.cause == CAUSE_CODE[Cause.FRAGMENT]
        case ObjectAction.SPLIT:
            own, rows = prediction, prediction.cause == CAUSE_CODE[Cause.MERGER]
        case ObjectAction.TAKE_CLASS:
            own, rows = reference, reference.status == STATUS_CODE[Status.MISCLASSIFIED]
        case ObjectAction.ACCEPT | ObjectAction.DELETE | ObjectAction.MARK_AMBIGUOUS:
            own, rows = reference, reference.partner >= 0
    return [(own.side, int(own.ids[row])) for row in np.flatnonzero(rows)]


def measure(desk: Desk, kind: ObjectAction, n: int, calls: int) -> dict[str, list[float]]:
    """Do an action and undo it, each time on other objects."""
    part = desk.presenter(EditsPresenter)
    every = targets_of(desk, kind)
    found: dict[str, list[float]] = {"do": [], "undo": [], "redo": []}
    rng = np.random.default_rng(2)
    n = min(n, len(every))
    for _ in range(calls + 2):
        chosen = [every[k] for k in rng.permutation(len(every))[:n]]
        side, id_ = chosen[0]
        desk.session.select_row(side, desk.session.evaluation.outcomes.side(side).row_of(id_))
        settle(desk)
        before = len(part.mending.done)
        found["do"].append(timed(lambda: part.mending.do(kind, chosen)))  # noqa: B023
        if len(part.mending.done) == before:
            found["do"].pop()
            continue
        settle(desk)
        found["undo"].append(timed(part.undo))
        settle(desk)
        found["redo"].append(timed(lambda: part.undo(redo=True)))
        settle(desk)
        part.undo()
        settle(desk)
    return found


def timed(call: Callable[[], object]) -> float:
    """Return the main thread's time of a call in ms."""
    start = time.thread_time()
    call()
    return 1000 * (time.thread_time() - start)


def main() -> None:
    """Print a line for each action."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        root = write_cohort(Path(folder), SIZE)
        spoil(root)
        with opened(open_cohort(root)) as (desk, _viewer):
            show_panels(desk)
            part = desk.presenter(EditsPresenter)
            part.mending.asking = Asking.TAKE
            outcomes = desk.session.evaluation.outcomes
            n_objects = len(outcomes.reference) + len(outcomes.prediction)
            print(f"{SIZE.side} x {SIZE.side} px, {n_objects} objects: ms (first, median, p95)")
            for n, limit in ((1, LIMIT_MS), (MANY, LIMIT_MANY_MS)):
                for kind in ObjectAction:
                    calls = options.calls if n == 1 else max(3, options.calls // 4)
                    times = measure(desk, kind, n, calls)
                    for name, each in times.items():
                        if not each:
                            print(f"  {kind} {n}: nothing done")
                            continue
                        above = "" if median(each[1:]) <= limit else f"  above {limit:g}"
                        p95 = quantiles(each[1:], n=20)[-1]
                        label = f"{kind}, {n}: {name}"
                        print(
                            f"  {label:32} {each[0]:7.1f} {median(each[1:]):7.1f} {p95:7.1f}{above}"
                        )
            part.edits.discard()
            settle(desk)


if __name__ == "__main__":
    main()
