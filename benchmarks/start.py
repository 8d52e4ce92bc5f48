"""Measure how much longer the desk takes to open than an empty napari window.

Needs a display: ``xvfb-run -a python -m benchmarks.start COHORT`` where there is none.
Every start is a process of its own, in turn: an empty napari window until it has been
drawn; the same with an image and two layers of labels, which napari is shown to need in
any case; and ``napari-panoptic view COHORT`` until the first region's objects have been
drawn in their colours. Files and compiled modules lie in caches after a first start of
each, which does not count; ``--cold`` instead starts once without compiled modules and
tells when the window was there, how long it was ever held up, and when colours came.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

STARTS = 7
LIMIT_S = 1.0
PATIENCE_S = 300.0

_NAPARI = """
import sys, time
import napari
import numpy as np
from qtpy.QtWidgets import QApplication

viewer = napari.Viewer()
if "layers" in sys.argv:
    viewer.add_image(np.zeros((500, 500, 3), np.uint8))
    for _ in range(2):
        viewer.add_labels(np.ones((500, 500), np.uint8))
drawn = []
canvas = viewer.window._qt_viewer.canvas._scene_canvas
canvas.events.draw.connect(lambda _: drawn.append(1), position="last")
canvas.update()
while not drawn:
    QApplication.processEvents()
print("drawn", time.time())
print("cpu", time.process_time())
"""

_DESK = """
import sys, time
started = time.time()

def watch():
    import napari
    from qtpy.QtWidgets import QApplication
    from napari_panoptic.viewer.desk.nuclei import desk_of

    viewer = napari.current_viewer()
    canvas = viewer.window._qt_viewer.canvas._scene_canvas
    drawn, longest, last = [], 0.0, time.time()
    canvas.events.draw.connect(lambda _: drawn.append(is_coloured(viewer) and time.time()),
        position='last')
    print("window", last)
    while not any(drawn):
        QApplication.processEvents()
        time.sleep(0.001)
        now = time.time()
        longest, last = max(longest, now - last), now
    print("longest", longest)
    print("drawn", next(at for at in drawn if at))
    print("cpu", time.process_time())

def is_coloured(viewer):
    # Layers are drawn in between, too, while they are being filled.
    from napari_panoptic.viewer.desk.nuclei import desk_of
    desk = desk_of(viewer)
    is_evaluated = desk.session is not None and desk.session.evaluation is not None
    return is_evaluated and not desk.link.scene.is_filling

def main():
    from napari_panoptic.__main__ import main as command
    import napari
    napari.run = watch
    sys.argv = ["napari-panoptic", "view", sys.argv[1]]
    sys.exit(command())

main()
"""


def start(code: str, *arguments: str, **variables: str) -> dict[str, float]:
    """Start a process; gives its moments, in seconds since it was asked for."""
    environment = {**os.environ, **variables}
    # Where Python may not keep what it compiled, each start would compile this package anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.time()
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        check=False,
    )
    told = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    if "drawn" not in told:
        raise RuntimeError(f"nothing was drawn: {done.stderr[-2000:]}")
    moments = {name: float(value) for name, value in told.items()}
    return {name: at - began if at > began else at for name, at in moments.items()}


def compare(cohort: Path, starts: int) -> None:
    """Start all in turn, and print medians and their differences."""
    told: dict[str, list[dict[str, float]]] = {"empty": [], "layers": [], "desk": []}
    for number in range(starts + 1):
        once = {
            "empty": start(_NAPARI),
            "layers": start(_NAPARI, "layers"),
            "desk": start(_DESK, str(cohort)),
        }
        if number:  # the first fills the caches
            for name, moments in once.items():
                told[name].append(moments)
    drawn = {name: median(at["drawn"] for at in starts) for name, starts in told.items()}
    cpu = {name: median(at["cpu"] for at in starts) for name, starts in told.items()}
    more = drawn["desk"] - drawn["empty"]
    above = "" if more <= LIMIT_S else f", above {LIMIT_S:g}"
    print(f"{cohort.name}, medians of {starts} starts: s until drawn, processor time")
    print(f"  empty window of napari      {drawn['empty']:.2f} {cpu['empty']:.2f}")
    print(f"  with an image and 2 labels  {drawn['layers']:.2f} {cpu['layers']:.2f}")
    print(f"  first coloured region       {drawn['desk']:.2f} {cpu['desk']:.2f}")
    print(
        f"  {more:.2f} more than the empty window{above}"
        f"; {drawn['desk'] - drawn['layers']:.2f} more than with such layers"
    )


def cold(cohort: Path) -> None:
    """Start as for the first time: no module has been compiled by Python."""
    with TemporaryDirectory() as cache:
        moments = start(_DESK, str(cohort), PYTHONPYCACHEPREFIX=cache)
    print(
        f"{cohort.name}, first start: window {moments['window']:.2f} s, "
        f"held up {moments['longest']:.2f} s at most, first coloured region "
        f"{moments['drawn']:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path)
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--cold", action="store_true", help="start as for the first time")
    options = parser.parse_args()
    if options.cold:
        cold(options.cohort)
    else:
        compare(options.cohort, options.starts)


if __name__ == "__main__":
    main()
